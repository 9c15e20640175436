/* npy.c - NumPy's format (numpy.org/neps/nep-0001-npy-format), versions 1 to 3.
 *
 * Six bytes "\x93NUMPY", two bytes of version, the length of the header (16 bits, from version 2 on 32), the header: a
 * Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } filled up with spaces and a newline;
 * then the elements.  descr is the order of bytes (<, > or | for one byte), a letter and the number of bytes; or a list
 * of such, for records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/formats/npy.h"

enum { MAX_HEADER = 65535 }; /* NumPy itself stops at 10000 */

typedef struct header {
    const char *path;
    const char *start, *at, *end;
    npy_array *a;
    char descr[64]; /* as in the file; a list is cut */
    int is_list;
    int seen[3]; /* of the three keys */
} header;

static fs_result wrong(const header *h, const char *wanted)
{
    char text[32];
    const size_t left = (size_t)(h->end - h->at);
    return bad_file("%s: header byte %td: expected %s, found '%s'", h->path, h->at - h->start, wanted,
                    file_printable(text, sizeof text, h->at, left < 12 ? left : 12));
}

static void skip_spaces(header *h)
{
    while (h->at < h->end && strchr(" \t\n\r", *h->at) && *h->at) h->at++;
}

/* Whether the next character is c, which is then consumed. */
static int npy_take(header *h, char c)
{
    skip_spaces(h);
    if (h->at == h->end || *h->at != c) return 0;
    h->at++;
    return 1;
}

static fs_result read_string(header *h, char *text, size_t bytes)
{
    skip_spaces(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"')) return wrong(h, "a string");
    const char *first = h->at + 1;
    const char *last = memchr(first, *h->at, (size_t)(h->end - first));
    if (!last || (size_t)(last - first) >= bytes) return wrong(h, "a short string");
    memcpy(text, first, (size_t)(last - first));
    text[last - first] = 0;
    h->at = last + 1;
    return 0;
}

/* A list or tuple, whose text is kept, cut: strings, and brackets that close in some order. */
static fs_result read_list(header *h)
{
    const char *first = h->at;
    int depth = 0;
    do {
        if (h->at == h->end) return wrong(h, "the end of the list");
        const char c = *h->at++;
        if (c == '[' || c == '(') depth++;
        if (c == ']' || c == ')') depth--;
        if (c == '\'' || c == '"') {
            const char *last = memchr(h->at, c, (size_t)(h->end - h->at));
            if (!last) return wrong(h, "a string that ends");
            h->at = last + 1;
        }
    } while (depth);
    const size_t length = (size_t)(h->at - first), most = sizeof h->descr - 1;
    memcpy(h->descr, first, length < most ? length : most);
    h->descr[length < most ? length : most] = 0;
    h->is_list = 1;
    return 0;
}

static fs_result read_descr(header *h)
{
    skip_spaces(h);
    if (h->at < h->end && (*h->at == '[' || *h->at == '(')) return read_list(h);
    return read_string(h, h->descr, sizeof h->descr);
}

static fs_result read_order(header *h)
{
    skip_spaces(h);
    const int64_t left = h->end - h->at;
    h->a->by_columns = left >= 4 && !memcmp(h->at, "True", 4);
    if (!h->a->by_columns && (left < 5 || memcmp(h->at, "False", 5))) return wrong(h, "True or False");
    h->at += h->a->by_columns ? 4 : 5;
    return 0;
}

static fs_result read_size(header *h, int64_t *size)
{
    skip_spaces(h);
    if (h->at < h->end && *h->at == '-')
        return bad_file("%s: the header gives a negative size in dimension %d", h->path, h->a->shape.dimensions + 1);
    if (h->at == h->end || *h->at < '0' || *h->at > '9') return wrong(h, "a size");
    for (*size = 0; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
        if (*size > (INT64_MAX - (*h->at - '0')) / 10)
            return bad_file("%s: the header gives a size of more than 63 bits in dimension %d", h->path,
                            h->a->shape.dimensions + 1);
        *size = 10 * *size + (*h->at - '0');
    }
    if (h->at < h->end && *h->at == 'L') h->at++; /* Python 2's way to write a long */
    return 0;
}

static fs_result read_shape(header *h)
{
    if (!npy_take(h, '(')) return wrong(h, "'('");
    while (!npy_take(h, ')')) {
        if (h->a->shape.dimensions == FILE_MAX_DIMENSIONS)
            return bad_file("%s: the header gives more than %d dimensions", h->path, FILE_MAX_DIMENSIONS);
        FSI_TRY(read_size(h, &h->a->shape.size[h->a->shape.dimensions]));
        h->a->shape.dimensions++;
        if (npy_take(h, ',')) continue;
        if (!npy_take(h, ')')) return wrong(h, "',' or ')'");
        break;
    }
    return 0;
}

static fs_result read_dictionary(header *h)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    static fs_result (*const values[])(header *) = {read_descr, read_order, read_shape};
    char key[32];
    if (!npy_take(h, '{')) return wrong(h, "'{'");
    while (!npy_take(h, '}')) {
        FSI_TRY(read_string(h, key, sizeof key));
        int i = 0;
        while (i < 3 && strcmp(key, keys[i])) i++;
        if (i == 3 || h->seen[i]++) return wrong(h, "descr, fortran_order or shape, each of them once");
        if (!npy_take(h, ':')) return wrong(h, "':'");
        FSI_TRY(values[i](h));
        if (npy_take(h, ',')) continue;
        if (!npy_take(h, '}')) return wrong(h, "',' or '}'");
        break;
    }
    skip_spaces(h);
    if (h->at != h->end) return wrong(h, "the end of the header");
    for (int i = 0; i < 3; i++)
        if (!h->seen[i]) return bad_file("%s: the header has no '%s'", h->path, keys[i]);
    return 0;
}

/* Why elements with a letter of descr are not read, and what to do. */
static const struct {
    char letter;
    int bytes;
    const char *word, *why;
} others[] = {
    {'c', 1, "complex", "complex numbers are not read; save A.real and A.imag, each as an array of its own"},
    {'S', 1, "text", "it holds text; save it as numbers, for example with A.astype('<f8')"},
    {'a', 1, "text", "it holds text; save it as numbers, for example with A.astype('<f8')"},
    {'U', 4, "text", "it holds text; save it as numbers, for example with A.astype('<f8')"},
    {'M', 1, "times", "it holds times; save them as numbers, for example with A.astype('<i8')"},
    {'m', 1, "times", "it holds times; save them as numbers, for example with A.astype('<i8')"},
    {'V', 1, "records", "it is structured (its elements are records); save one field of it, A['NAME']"},
    {'O', 0, "objects", "it holds Python objects, which are not read; save it as numbers, with A.astype('<f8')"}};

static int is_read(char order, char letter, long bytes)
{
    if (order != '<' && order != '>' && !(order == '|' && bytes == 1)) return 0;
    if (letter == 'f') return bytes == 2 || bytes == 4 || bytes == 8;
    if (letter == 'b') return bytes == 1;
    return (letter == 'i' || letter == 'u') && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
}

/* From descr to the kind of element, or to the reason why it is not read. */
static void read_dtype(const header *h)
{
    npy_array *a = h->a;
    const char *descr = h->descr, order = descr[0], letter = order ? descr[1] : 0;
    char *end = NULL;
    const long bytes = letter && descr[2] >= '0' && descr[2] <= '9' ? strtol(descr + 2, &end, 10) : 0;
    const char *word = "elements", *why = NULL;
    file_printable(a->descr, sizeof a->descr, descr, strlen(descr));
    if (!h->is_list && end && !*end && is_read(order, letter, bytes)) {
        a->kind = reader_kind(letter, (int)bytes, order == '>');
        a->element = bytes;
        reader_kind_name(&a->kind, a->stored, sizeof a->stored);
        return;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (h->is_list ? others[i].letter == 'V' : others[i].letter == letter) {
            word = others[i].word, why = others[i].why;
            if (end && !h->is_list && bytes <= INT32_MAX) a->element = bytes * others[i].bytes;
        }
    snprintf(a->stored, sizeof a->stored, "%s '%.32s'", word, a->descr);
    if (why) snprintf(a->why, sizeof a->why, "%s", why);
    else
        snprintf(a->why, sizeof a->why,
                 "its elements are of type '%.32s', which is not read; save it as numbers, for "
                 "example with A.astype('<f8')",
                 a->descr);
}

/* The bytes before the header's text and how long that is.  Returns how many bytes there are, or minus the code. */
static int64_t read_length(reader_stream *stream, int64_t *length)
{
    const char *path = stream->in->path;
    unsigned char first[12];
    const int64_t got = reader_more(stream, first, 10);
    if (got < 0) return got;
    if (got < 10 || memcmp(first, "\x93NUMPY", 6)) {
        return -(int64_t)bad_file("%s: this is not an npy file: it does not begin with \\x93NUMPY and a version", path);
    }
    if (first[6] < 1 || first[6] > 3 || first[7]) {
        return -(int64_t)bad_file("%s: this is npy version %d.%d; 1.0, 2.0 and 3.0 are read", path, first[6], first[7]);
    }
    const int64_t more = first[6] == 1 ? 0 : reader_more(stream, first + 10, 2);
    if (more < 0) return more;
    const int64_t fixed = first[6] == 1 ? 10 : 12, there = stream->most - fixed;
    *length = 10 + more < fixed ? 0 : (int64_t)reader_little(first + 8, (int)fixed - 8);
    if (10 + more < fixed || *length > there) {
        return -(int64_t)bad_file("%s: the header gives its length as %" PRId64 " bytes, but %" PRId64 " follow", path,
                                  *length, there < 0 ? 0 : there);
    }
    if (*length <= MAX_HEADER) return fixed;
    return -(int64_t)bad_file("%s: the header has %" PRId64 " bytes; at most %d are read", path, *length, MAX_HEADER);
}

fs_result npy_header(reader_stream *stream, npy_array *a)
{
    memset(a, 0, sizeof *a);
    int64_t length = 0;
    const int64_t fixed = read_length(stream, &length);
    if (fixed < 0) return reader_failure(fixed);
    char *text = malloc(length ? (size_t)length : 1);
    if (!text) return out_of_memory("%s: no memory for a header of %" PRId64 " bytes", stream->in->path, length);
    const int64_t got = reader_more(stream, text, length);
    header h = {.path = stream->in->path, .start = text, .at = text, .end = text + length, .a = a};
    a->bytes = fixed + length;
    fs_result code = got < 0 ? reader_failure(got) : FS_OK;
    if (!code && got < length)
        code = bad_file("%s: the header gives its length as %" PRId64 " bytes, but %" PRId64 " follow", h.path, length,
                        got);
    if (!code) code = read_dictionary(&h);
    if (!code) read_dtype(&h);
    free(text);
    return code;
}

int npy_is_matrix(const reader_source *in, const npy_array *a, int64_t there, file_matrix *out)
{
    int64_t need;
    memcpy(out->stored, a->stored, sizeof out->stored);
    reader_keep_shape(&a->shape, out);
    if (a->element && reader_fits(in, &a->shape, a->stored, a->element, there, &need)) return 0;
    if (*a->why) return reader_cannot(in, out, "%s", a->why);
    if (!reader_is_matrix(in, &a->shape, out)) return 0;
    if (a->by_columns && a->shape.dimensions > 2)
        return reader_cannot(in, out,
                             "the array has %d dimensions in Fortran order; more than 2 are read in C order "
                             "only, which numpy.ascontiguousarray makes",
                             a->shape.dimensions);
    return 1;
}

fs_result npy_read(const reader_source *in, const file_options *options, file_matrix *out)
{
    reader_stream file, *stream = in->pipe ? &in->pipe->stream : &file;
    npy_array a;
    (void)options;
    if (!in->pipe) FSI_TRY(reader_start_at(in, READER_PLAIN, 0, in->bytes, &file));
    const fs_result code = npy_header(stream, &a);
    if (!in->pipe) reader_stop(&file);
    if (code) return code;
    if (!npy_is_matrix(in, &a, in->pipe ? -1 : in->bytes - a.bytes, out)) return reader_refused(out);
    return reader_view(in, a.bytes, &a.shape, &a.kind, a.by_columns, out);
}
