/* safetensors.c - the format of huggingface/safetensors: the length of the header in 8 bytes, little-endian; the
 * header, JSON: {"NAME": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}, ..., "__metadata__": {...}}; the
 * data, which the tensors cover without a gap or an overlap.
 *
 * All of the header is checked before any of it is used, including the entries of other tensors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "files/reader.h"

/* The format's own limit is 100 MB.  cJSON takes 64 bytes and more for a value that has two in the file; real headers
 * have about 100 bytes for each tensor. */
enum { MAX_HEADER = 16 << 20 };

typedef struct tensor {
    const char *name, *dtype; /* owned by the JSON */
    reader_shape shape;
    int64_t start, end; /* within the data */
} tensor;

typedef struct table {
    const reader_source *in;
    char *text; /* the header, owned, as are json and tensors */
    cJSON *json;
    int64_t data, bytes; /* where the data start and how many there are */
    int64_t count;
    tensor *tensors;
} table;

/* The element's bits; 0 for a type that is not known, whose tensors' sizes are then not checked. */
static int bits_of(const char *dtype)
{
    static const struct {
        const char *name;
        int bits;
    } types[] = {{"F32", 32},    {"F16", 16},    {"BF16", 16},   {"F64", 64},    {"I8", 8},
                 {"U8", 8},      {"BOOL", 8},    {"I16", 16},    {"U16", 16},    {"I32", 32},
                 {"U32", 32},    {"I64", 64},    {"U64", 64},    {"C64", 64},    {"F8_E4M3", 8},
                 {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i].name, dtype)) return types[i].bits;
    return 0;
}

typedef char shown_name[80];
static const char *safetensors_show(shown_name shown, const char *name)
{
    return file_printable(shown, sizeof(shown_name), name, strlen(name));
}

/* A size or offset: JSON has doubles, which count exactly to 2^53. */
static int whole(const cJSON *item, int64_t *number)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 0x1p53) ||
        item->valuedouble != floor(item->valuedouble))
        return 0;
    *number = (int64_t)item->valuedouble;
    return 1;
}

static fs_result read_shape(const table *t, const cJSON *list, const char *name, reader_shape *shape)
{
    shown_name shown;
    shape->dimensions = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (shape->dimensions == FILE_MAX_DIMENSIONS)
            return bad_file("%s: the tensor '%s' has more than %d dimensions", t->in->path,
                            safetensors_show(shown, name), FILE_MAX_DIMENSIONS);
        if (!whole(item, &shape->size[shape->dimensions]))
            return bad_file("%s: the tensor '%s' has a size in dimension %d that is not an integer from 0 to 2^53",
                            t->in->path, safetensors_show(shown, name), shape->dimensions + 1);
        shape->dimensions++;
    }
    return 0;
}

/* The bytes that a tensor's shape and type need; -1 where they cannot be counted. */
static int64_t bytes_needed(const tensor *x, int bits)
{
    const int64_t all = reader_bytes(&x->shape, bits);
    return all < 0 ? -1 : all / 8 + (all % 8 != 0);
}

static fs_result read_tensor(const table *t, const cJSON *item, tensor *x)
{
    shown_name shown, type;
    const cJSON *dtype = NULL, *shape = NULL, *offsets = NULL, *field;
    int fields = 0;
    safetensors_show(shown, item->string);
    for (field = cJSON_IsObject(item) ? item->child : NULL; field; field = field->next) {
        fields++;
        if (!strcmp(field->string, "dtype")) dtype = field;
        if (!strcmp(field->string, "shape")) shape = field;
        if (!strcmp(field->string, "data_offsets")) offsets = field;
    }
    if (fields != 3 || !cJSON_IsString(dtype) || !cJSON_IsArray(shape) || !cJSON_IsArray(offsets))
        return bad_file("%s: the tensor '%s' is not described by dtype, shape and data_offsets", t->in->path, shown);
    x->name = item->string;
    x->dtype = dtype->valuestring;
    FSI_TRY(read_shape(t, shape, x->name, &x->shape));
    const cJSON *first = offsets->child, *second = first ? first->next : NULL;
    if (!second || second->next || !whole(first, &x->start) || !whole(second, &x->end) || x->start > x->end)
        return bad_file("%s: the tensor '%s' has data_offsets that are not two integers, the first not above the "
                        "second",
                        t->in->path, shown);
    if (x->end > t->bytes)
        return bad_file("%s: the tensor '%s' ends at byte %" PRId64 " of the data, but %" PRId64 " follow the header",
                        t->in->path, shown, x->end, t->bytes);
    const int bits = bits_of(x->dtype);
    const int64_t need = bits ? bytes_needed(x, bits) : x->end - x->start;
    reader_text text;
    if (need != x->end - x->start)
        return bad_file("%s: the tensor '%s' is %s %s, which needs %s%" PRId64 " bytes, but its offsets span %" PRId64,
                        t->in->path, shown, reader_shape_text(text, &x->shape), safetensors_show(type, x->dtype),
                        need < 0 ? "more than " : "", need < 0 ? INT64_MAX : need, x->end - x->start);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tensor *)a)->name, ((const tensor *)b)->name);
}
static int by_start(const void *a, const void *b)
{
    const tensor *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return x->end != y->end ? (x->end < y->end ? -1 : 1) : by_name(a, b); /* empty ones before what starts there */
}

/* Checks that names are distinct and that the tensors, in the order of their data, cover the data. */
static fs_result check_cover(table *t)
{
    shown_name shown;
    int64_t reached = 0;
    qsort(t->tensors, (size_t)t->count, sizeof *t->tensors, by_name);
    for (int64_t i = 1; i < t->count; i++)
        if (!by_name(&t->tensors[i - 1], &t->tensors[i]))
            return bad_file("%s: the tensor '%s' occurs twice", t->in->path,
                            safetensors_show(shown, t->tensors[i].name));
    qsort(t->tensors, (size_t)t->count, sizeof *t->tensors, by_start);
    for (int64_t i = 0; i < t->count; i++) {
        if (t->tensors[i].start != reached)
            return bad_file("%s: the tensor '%s' starts at byte %" PRId64 " of the data, but the one before it ends at "
                            "%" PRId64,
                            t->in->path, safetensors_show(shown, t->tensors[i].name), t->tensors[i].start, reached);
        reached = t->tensors[i].end;
    }
    if (reached != t->bytes)
        return bad_file("%s: the tensors end at byte %" PRId64 " of the data, but %" PRId64 " follow the header",
                        t->in->path, reached, t->bytes);
    return 0;
}

static void table_free(table *t)
{
    cJSON_Delete(t->json);
    free(t->tensors);
    free(t->text);
}

static int is_metadata(const cJSON *item)
{
    const cJSON *field = item->child;
    while (field && cJSON_IsString(field)) field = field->next;
    return cJSON_IsObject(item) && !field;
}

/* Reads the header's text, which it allocates into t->text.  Returns 0, or FS_EFILE or FS_ENOMEM. */
static fs_result read_text(table *t, reader_stream *stream)
{
    const reader_source *in = t->in;
    unsigned char first[8];
    const int64_t there = reader_more(stream, first, 8);
    if (there < 0) return reader_failure(there);
    if (there < 8)
        return bad_file("%s: this is not a safetensors file: it has %" PRId64 " bytes, fewer than the length of a "
                        "header",
                        in->path, in->bytes);
    const uint64_t length = reader_little(first, 8);
    if (length > (uint64_t)in->bytes - 8)
        return bad_file("%s: the header gives its length as %" PRIu64 " bytes, but %" PRId64 " follow", in->path,
                        length, in->bytes - 8);
    if (length > MAX_HEADER)
        return bad_file("%s: the header has %" PRIu64 " bytes; at most %d are read", in->path, length, MAX_HEADER);
    t->data = 8 + (int64_t)length;
    t->bytes = in->bytes - t->data;
    t->text = malloc(length ? (size_t)length : 1);
    if (!t->text) return out_of_memory("%s: no memory for a header of %" PRIu64 " bytes", in->path, length);
    const int64_t got = reader_more(stream, t->text, (int64_t)length);
    if (got < 0) return reader_failure(got);
    return got == (int64_t)length ? 0 : bad_file("%s: the file has become shorter while it was read", in->path);
}

/* Checks the header.  table_free is for what it leaves, also after a failure. */
static fs_result table_read(table *t, const reader_source *in)
{
    reader_stream stream;
    memset(t, 0, sizeof *t);
    t->in = in;
    FSI_TRY(reader_start_at(in, READER_PLAIN, 0, in->bytes, &stream));
    const fs_result code = read_text(t, &stream);
    reader_stop(&stream);
    if (code) return code;
    const int64_t length = t->data - 8;
    const char *text = t->text, *end = text;
    if (length && *text == '{') t->json = cJSON_ParseWithLengthOpts(text, (size_t)length, &end, 0);
    if (!t->json) return bad_file("%s: the header is not JSON from byte %td on", in->path, end - text);
    while (end < text + length && *end == ' ') end++;
    if (end != text + length)
        return bad_file("%s: the header continues after its JSON, at byte %td", in->path, end - text);
    const cJSON *item;
    cJSON_ArrayForEach(item, t->json) t->count++;
    t->tensors = calloc(t->count ? (size_t)t->count : 1, sizeof *t->tensors);
    if (!t->tensors) return out_of_memory("%s: no memory for %" PRId64 " tensors", in->path, t->count);
    t->count = 0;
    cJSON_ArrayForEach(item, t->json)
    {
        if (!strcmp(item->string, "__metadata__")) {
            if (!is_metadata(item)) return bad_file("%s: __metadata__ is not a table of strings", in->path);
            continue;
        }
        FSI_TRY(read_tensor(t, item, &t->tensors[t->count]));
        t->count++;
    }
    return check_cover(t);
}

/* The requested tensor; NULL after a message that lists them. */
static const tensor *safetensors_find(const table *t, const char *name)
{
    shown_name shown, wanted;
    char names[400] = "";
    size_t at = 0;
    if (!name && t->count == 1) return t->tensors;
    for (int64_t i = 0; i < t->count; i++) {
        if (name && !strcmp(t->tensors[i].name, name)) return &t->tensors[i];
        if (at >= sizeof names - sizeof shown - 8) continue;
        safetensors_show(shown, t->tensors[i].name);
        at += (size_t)snprintf(names + at, sizeof names - at, "%s'%s'", at ? ", " : "", shown);
        if (at >= sizeof names - sizeof shown - 8 && i + 1 < t->count)
            at += (size_t)snprintf(names + at, sizeof names - at, ", ...");
    }
    if (!t->count) bad_file("%s: the file holds no tensors", t->in->path);
    else if (name)
        bad_file("%s: there is no tensor '%s'; the file holds %" PRId64 ": %s", t->in->path,
                 safetensors_show(wanted, name), t->count, names);
    else bad_file("%s: the file holds %" PRId64 " tensors; choose one with --tensor: %s", t->in->path, t->count, names);
    return NULL;
}

static fs_result open_tensor(const table *t, const tensor *x, file_matrix *out)
{
    static const char *const known[] = {"F32", "F64", "F16", "BF16"};
    shown_name shown, type;
    int i = 0;
    while (i < 4 && strcmp(known[i], x->dtype)) i++;
    reader_keep_shape(&x->shape, out);
    if (i == 4) {
        snprintf(out->stored, sizeof out->stored, "%.40s", safetensors_show(type, x->dtype));
        reader_cannot(t->in, out,
                      "the tensor '%s' is of type %s; F16, BF16, F32 and F64 are read: save it as one of "
                      "them",
                      safetensors_show(shown, x->name), type);
        return reader_refused(out);
    }
    const file_kind kind = reader_kind_of((fs_dtype)(FS_F32 + i));
    reader_kind_name(&kind, out->stored, sizeof out->stored);
    if (!reader_is_matrix(t->in, &x->shape, out)) return reader_refused(out);
    return reader_view(t->in, t->data + x->start, &x->shape, &kind, 0, out);
}

static void list(const table *t, const file_options *options)
{
    for (int64_t i = 0; i < t->count; i++) {
        const tensor *x = &t->tensors[i];
        file_tensor seen = {FILE_SAFETENSORS, x->name, x->dtype, x->shape.dimensions, {0}};
        memcpy(seen.shape, x->shape.size, sizeof seen.shape);
        options->list(options->user, &seen);
    }
}

static void report_notes(const table *t, const file_options *options)
{
    const cJSON *notes = cJSON_GetObjectItemCaseSensitive(t->json, "__metadata__"), *note;
    cJSON_ArrayForEach(note, notes) options->note(options->user, note->string, note->valuestring);
}

fs_result safetensors_read(const reader_source *in, const file_options *options, file_matrix *out)
{
    table t;
    fs_result code = table_read(&t, in);
    if (!code && options->list) list(&t, options);
    if (!code && options->note) report_notes(&t, options);
    if (!code && options->describe && !options->tensor && t.count != 1)
        (void)reader_cannot(in, out, "the file holds %" PRId64 " tensors", t.count);
    else if (!code) {
        const tensor *x = safetensors_find(&t, options->tensor);
        code = x ? open_tensor(&t, x, out) : FS_EFILE;
    }
    table_free(&t);
    return code;
}
