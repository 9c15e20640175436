/* identity.c - see identity.h. */
#include "identity.h"

#include <errno.h>
#include <flashsketch_extend.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "output.h"
#include "spec_options.h"

static const int64_t MOST_TEXT = (int64_t)64 << 20, MOST_ROWS = (int64_t)1 << 48, MOST = (int64_t)1 << 53;

void identity_free(identity *id)
{
    free(id->rows);
    free(id->file);
    memset(id, 0, sizeof *id);
}

/* writing ---------------------------------------------------------------------------------------------------- */

static void add_pair(cJSON *array, int64_t a, int64_t b)
{
    cJSON *pair = cJSON_CreateArray();
    char text[64];
    snprintf(text, sizeof text, "%" PRId64, a);
    cJSON_AddItemToArray(pair, cJSON_CreateRaw(text));
    snprintf(text, sizeof text, "%" PRId64, b);
    cJSON_AddItemToArray(pair, cJSON_CreateRaw(text));
    cJSON_AddItemToArray(array, pair);
}

char *identity_text(const identity *id)
{
    cJSON *all = cJSON_CreateObject();
    json_whole(all, "flashsketch", IDENTITY_VERSION);
    json_whole(all, "definition", id->definition);
    cJSON *spec = cJSON_AddObjectToObject(all, "spec");
    json_spec(spec, &id->spec);
    cJSON *rows = cJSON_AddArrayToObject(all, "rows");
    for (int64_t i = 0; i < id->count; i++) add_pair(rows, id->rows[i].first, id->rows[i].end);
    json_whole(all, "n", id->n);
    cJSON_AddBoolToObject(all, "batch_major", id->batch_major);
    cJSON_AddStringToObject(all, "dtype", fs_file_dtype_name(id->dtype));
    json_whole(all, "crc32", id->crc);
    if (id->panels) {
        cJSON *state = cJSON_AddObjectToObject(all, "state");
        json_whole(state, "panels", id->panels);
        json_whole(state, "done", id->done);
        json_whole(state, "memory", id->memory);
        cJSON_AddStringToObject(state, "reads", id->reads);
        cJSON *files = cJSON_AddArrayToObject(state, "files");
        for (int64_t i = 0; i < id->files; i++) {
            cJSON *one = cJSON_CreateObject();
            json_whole(one, "bytes", id->file[i].bytes);
            json_whole(one, "start", id->file[i].start);
            json_exact(one, "changed_ns", (uint64_t)id->file[i].changed);
            cJSON_AddItemToArray(files, one);
        }
    }
    char *text = cJSON_Print(all);
    cJSON_Delete(all);
    return text;
}

int identity_write(FILE *out, const identity *id, const fs_matrix *Y, fs_dtype dtype)
{
    FILE *second = output_second();
    identity what = *id;
    what.dtype = dtype;
    int code = fs_file_write_npy(out, Y, dtype, &what.crc) ? cli_library_fail() : 0;
    char *text = second ? identity_text(&what) : NULL;
    if (text) fprintf(second, "%s\n", text);
    if (!code) code = second && !text ? cli_fail("no memory for the text of what Y is") : output_close();
    output_abandon();
    free(text);
    return code;
}

/* reading ---------------------------------------------------------------------------------------------------- */

typedef struct reading {
    const char *name; /* of the file, for messages */
    fs_result result; /* FS_OK until something is wrong */
} reading;

static void wrong(reading *r, const char *field, const char *wanted)
{
    if (r->result == FS_OK)
        r->result = fs_fail(FS_EFILE, "%s: '%s' is not %s; flashsketch has not written this", r->name, field, wanted);
}

static const cJSON *member(reading *r, const cJSON *object, const char *field)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field);
    if (!item) wrong(r, field, "there");
    return item;
}

static int64_t whole_of(reading *r, const cJSON *item, const char *field, int64_t low, int64_t high)
{
    const double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (value >= (double)low && value <= (double)high && value == floor(value)) return (int64_t)value;
    char wanted[80];
    snprintf(wanted, sizeof wanted, "an integer from %" PRId64 " to %" PRId64, low, high);
    wrong(r, field, wanted);
    return low;
}
static int64_t read_whole(reading *r, const cJSON *object, const char *field, int64_t low, int64_t high)
{
    return whole_of(r, member(r, object, field), field, low, high);
}

static const char *read_text(reading *r, const cJSON *object, const char *field)
{
    const cJSON *item = member(r, object, field);
    if (!cJSON_IsString(item)) wrong(r, field, "a text");
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* Digits of an unsigned number of 64 bits. */
static uint64_t read_exact(reading *r, const cJSON *object, const char *field)
{
    const char *text = read_text(r, object, field);
    char *end = NULL;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || *end) wrong(r, field, "a text of digits, of at most 64 bits");
    return value;
}

static void read_spec(reading *r, const cJSON *object, identity *id)
{
    const fs_spec none = FS_SPEC_INIT;
    fs_spec *spec = &id->spec, full = none;
    fs_sketch *S = NULL;
    *spec = none;
    const char *family = read_text(r, object, "family"), *shuffle = read_text(r, object, "shuffle");
    if (r->result == FS_OK && fs_family_from_name(family, &spec->family)) wrong(r, "family", "the name of a family");
    spec->d = read_whole(r, object, "d", 1, MOST_ROWS);
    spec->k = read_whole(r, object, "k", 1, INT32_MAX);
    spec->seed = read_exact(r, object, "seed");
    spec->M = read_whole(r, object, "M", 1, INT32_MAX);
    spec->kappa = read_whole(r, object, "kappa", 1, INT32_MAX);
    spec->s = read_whole(r, object, "s", 1, INT32_MAX);
    if (r->result == FS_OK && fs_shuffle_from_name(shuffle, &spec->shuffle)) wrong(r, "shuffle", "the name of a shuffle");
    spec->interleave = read_whole(r, object, "interleave", 1, INT32_MAX);
    if (r->result) return;
    /* The library checks whether the fields are consistent. */
    if (id->definition == fs_definition_version() && (fs_sketch_create(&S, spec) || fs_sketch_spec(S, &full)))
        wrong(r, "spec", "a valid spec");
    fs_sketch_destroy(S);
}

/* An array's length, and room for so many items of `bytes` bytes; NULL where that is 0 or fails. */
static void *read_array(reading *r, const cJSON *array, const char *field, size_t bytes, int64_t *count)
{
    *count = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : 0;
    if (*count < 1) wrong(r, field, "an array with elements");
    void *room = *count < 1 ? NULL : calloc((size_t)*count, bytes);
    if (*count >= 1 && !room) r->result = fs_fail(FS_ENOMEM, "%s: no memory for it", r->name);
    if (!room) *count = 0;
    return room;
}

static void read_rows(reading *r, const cJSON *array, identity *id)
{
    int64_t i = 0, last = -1;
    const cJSON *pair;
    id->rows = read_array(r, array, "rows", sizeof *id->rows, &id->count);
    if (!id->rows) return;
    cJSON_ArrayForEach(pair, array)
    {
        const cJSON *first = cJSON_IsArray(pair) ? pair->child : NULL, *end = first ? first->next : NULL;
        identity_rows *rows = &id->rows[i++];
        rows->first = whole_of(r, first, "rows", 0, id->spec.d);
        rows->end = whole_of(r, end, "rows", 0, id->spec.d);
        if (rows->first <= last || rows->end <= rows->first || (end && end->next))
            wrong(r, "rows", "pairs of a first row and the one after the last, ascending, with gaps between them");
        last = rows->end;
    }
}

static void read_state(reading *r, const cJSON *object, identity *id)
{
    int64_t i = 0;
    id->panels = read_whole(r, object, "panels", 1, MOST);
    id->done = read_whole(r, object, "done", 1, id->panels);
    id->memory = read_whole(r, object, "memory", 1, MOST);
    snprintf(id->reads, sizeof id->reads, "%s", read_text(r, object, "reads"));
    const cJSON *files = member(r, object, "files"), *one;
    id->file = read_array(r, files, "files", sizeof *id->file, &id->files);
    if (!id->file) return;
    cJSON_ArrayForEach(one, files)
    {
        id->file[i].bytes = read_whole(r, one, "bytes", 1, MOST);
        id->file[i].start = read_whole(r, one, "start", 0, MOST);
        id->file[i++].changed = (int64_t)read_exact(r, one, "changed_ns");
    }
}

static void read_all(reading *r, const cJSON *all, identity *id)
{
    const int64_t version = read_whole(r, all, "flashsketch", 1, INT32_MAX);
    if (r->result == FS_OK && version != IDENTITY_VERSION)
        r->result = fs_fail(FS_EFILE, "%s: it is of version %" PRId64 "; this flashsketch reads version %d", r->name,
                            version, IDENTITY_VERSION);
    id->definition = read_whole(r, all, "definition", 1, INT32_MAX);
    read_spec(r, member(r, all, "spec"), id);
    read_rows(r, member(r, all, "rows"), id);
    id->n = read_whole(r, all, "n", 1, MOST);
    const cJSON *batch = member(r, all, "batch_major"), *state = cJSON_GetObjectItemCaseSensitive(all, "state");
    if (!cJSON_IsBool(batch)) wrong(r, "batch_major", "true or false");
    id->batch_major = cJSON_IsTrue(batch);
    const char *dtype = read_text(r, all, "dtype");
    if (r->result == FS_OK && fs_dtype_from_name(dtype, &id->dtype)) wrong(r, "dtype", "the name of a type");
    id->crc = (uint32_t)read_whole(r, all, "crc32", 0, UINT32_MAX);
    if (state) read_state(r, state, id);
}

fs_result identity_parse(const char *name, const char *text, size_t length, identity *id)
{
    reading r = {name, FS_OK};
    cJSON *all = cJSON_ParseWithLength(text, length);
    memset(id, 0, sizeof *id);
    if (!cJSON_IsObject(all)) r.result = fs_fail(FS_EFILE, "%s: it is not a JSON object", name);
    else read_all(&r, all, id);
    cJSON_Delete(all);
    if (r.result) identity_free(id);
    return r.result;
}

/* files ------------------------------------------------------------------------------------------------------ */

typedef struct found_text {
    const char *path;
    char says[PATH_MAX]; /* the file that the text is in: `path`, or the one beside it */
    fs_result result;
    int found;
    identity *id;
} found_text;

/* The text beside an npy file, if there is one. */
static void read_beside(const char *path, found_text *f)
{
    char *name = f->says;
    const int length = snprintf(name, sizeof f->says, "%s" OUTPUT_IDENTITY, path);
    FILE *file = length > 0 && (size_t)length < sizeof f->says ? fopen(name, "rb") : NULL;
    if (!file) return;
    f->found = 1;
    const int64_t bytes = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    char *text = bytes > 0 && bytes <= MOST_TEXT ? malloc((size_t)bytes) : NULL;
    rewind(file);
    if (!text || fread(text, 1, (size_t)bytes, file) != (size_t)bytes)
        f->result = fs_fail(FS_EFILE, "%s: it cannot be read, or is empty or larger than %" PRId64 " bytes", name,
                            MOST_TEXT);
    else f->result = identity_parse(name, text, (size_t)bytes, f->id);
    free(text);
    fclose(file);
}

/* FS_EFILE unless the text describes the matrix of the file. */
static fs_result belongs(const found_text *f, fs_file *file)
{
    const identity *id = f->id;
    const int64_t rows = id->batch_major ? id->n : id->spec.k, cols = id->batch_major ? id->spec.k : id->n;
    fs_file_info m = FS_FILE_INFO_INIT;
    fs_matrix Y;
    fs_result result = fs_file_get_info(file, &m);
    if (result) return result;
    if (m.is_sparse || m.by_columns || m.rows != rows || m.cols != cols || m.dtype != id->dtype)
        return fs_fail(FS_EFILE,
                       "%s: it describes a sketch of %" PRId64 " x %" PRId64 " %s, but %s holds %" PRId64 " x %" PRId64
                       " %s; make the sketch again, or remove %s",
                       f->says, rows, cols, fs_file_dtype_name(id->dtype), f->path, m.rows, m.cols,
                       fs_file_dtype_name(m.dtype), f->says);
    if ((result = fs_file_matrix(file, &Y)) != FS_OK) return result;
    const uint32_t crc = fs_file_crc32(&Y);
    if (crc != id->crc)
        return fs_fail(FS_EFILE,
                       "%s: it describes elements whose CRC-32 is %" PRIu32 ", but those of %s have %" PRIu32
                       ": they have changed since they were written; make the sketch again, or remove %s",
                       f->says, id->crc, f->path, crc, f->says);
    return FS_OK;
}

fs_result identity_find(const char *path, fs_file *file, identity *id, int *found)
{
    found_text f = {.path = path, .id = id};
    fs_file_info info = FS_FILE_INFO_INIT;
    const char *text = fs_file_metadata(file, IDENTITY_KEY);
    memset(id, 0, sizeof *id);
    *found = 0;
    snprintf(f.says, sizeof f.says, "%s", path);
    fs_result result = fs_file_get_info(file, &info);
    if (result) return result;
    if (info.format == FS_FILE_NPY) read_beside(path, &f);
    else if (text) {
        f.found = 1;
        f.result = identity_parse(path, text, strlen(text), id);
    }
    if (f.result || !f.found) return f.result;
    result = belongs(&f, file);
    if (result) identity_free(id);
    *found = !result;
    return result;
}

static fs_result open_described(const char *path, fs_file *file, fs_matrix *Y, identity *id)
{
    int found;
    fs_result result = identity_find(path, file, id, &found);
    if (!result && !found)
        result = fs_fail(FS_EFILE,
                         "%s: its description is missing: there is no %s%s; 'flashsketch sketch -o' "
                         "writes one",
                         path, path, OUTPUT_IDENTITY);
    return result ? result : fs_file_matrix(file, Y);
}

fs_result identity_open(const char *path, fs_file **file, fs_matrix *Y, identity *id)
{
    fs_result result = fs_file_open(file, path, NULL);
    if (!result && (result = open_described(path, *file, Y, id)) != FS_OK) {
        fs_file_close(*file);
        identity_free(id);
        *file = NULL;
    }
    return result;
}

fs_result identity_open_finished(const char *path, fs_file **file, fs_matrix *Y, identity *id)
{
    fs_result result = identity_open(path, file, Y, id);
    if (result) return result;
    if (id->panels)
        result = fs_fail(FS_EFILE,
                         "%s: it is the state of a run that is not finished; give the command that wrote it "
                         "again, with --resume",
                         path);
    else if (id->definition != fs_definition_version())
        result = fs_fail(FS_EFILE,
                         "%s: it uses definition %" PRId64
                         " of S, and this flashsketch has definition %d; make it again "
                         "from the rows of A with this flashsketch",
                         path, id->definition, fs_definition_version());
    if (result) {
        fs_file_close(*file);
        identity_free(id);
        *file = NULL;
    }
    return result;
}

typedef struct number {
    const char *name;
    int64_t a, b;
} number;
typedef struct word {
    const char *name, *a, *b;
} word;

static fs_result same(const char *name_a, const char *name_b, const word *words, int word_count, const number *numbers,
                      int number_count)
{
    for (int i = 0; i < word_count; i++)
        if (strcmp(words[i].a, words[i].b))
            return fs_fail(FS_EFILE, "%s: it has %s %s, but %s has %s", name_b, words[i].name, words[i].b, name_a,
                           words[i].a);
    for (int i = 0; i < number_count; i++)
        if (numbers[i].a != numbers[i].b)
            return fs_fail(FS_EFILE, "%s: it has %s %" PRId64 ", but %s has %" PRId64, name_b, numbers[i].name,
                           numbers[i].b, name_a, numbers[i].a);
    return FS_OK;
}

fs_result identity_same_sketch(const char *name_a, const identity *a, const char *name_b, const identity *b)
{
    const number numbers[] = {{"definition", a->definition, b->definition},
                              {"d =", a->spec.d, b->spec.d},
                              {"k =", a->spec.k, b->spec.k},
                              {"M =", a->spec.M, b->spec.M},
                              {"kappa =", a->spec.kappa, b->spec.kappa},
                              {"s =", a->spec.s, b->spec.s},
                              {"interleave", a->spec.interleave, b->spec.interleave}};
    const word words[] = {{"family", fs_family_name(a->spec.family), fs_family_name(b->spec.family)},
                          {"shuffle", fs_shuffle_name(a->spec.shuffle), fs_shuffle_name(b->spec.shuffle)}};
    const fs_result result = same(name_a, name_b, words, sizeof words / sizeof words[0], numbers,
                                  sizeof numbers / sizeof numbers[0]);
    if (result) return result;
    if (a->spec.seed != b->spec.seed)
        return fs_fail(FS_EFILE, "%s: it has seed %" PRIu64 ", but %s has %" PRIu64, name_b, b->spec.seed, name_a,
                       a->spec.seed);
    return FS_OK;
}

fs_result identity_agree(const char *name_a, const identity *a, const char *name_b, const identity *b)
{
    const number columns = {"n =", a->n, b->n};
    const word words[] = {
        {"type", fs_file_dtype_name(a->dtype), fs_file_dtype_name(b->dtype)},
        {"order", a->batch_major ? "batch-major" : "k x n", b->batch_major ? "batch-major" : "k x n"}};
    const fs_result result = identity_same_sketch(name_a, a, name_b, b);
    return result ? result : same(name_a, name_b, words, sizeof words / sizeof words[0], &columns, 1);
}
