/* npy.c - NumPy's format (numpy.org/neps/nep-0001-npy-format), versions 1 to 3.
 *
 * Six bytes "\x93NUMPY", two bytes of version, the length of the header (16 bits, from version 2 on 32), the header: a
 * Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } filled up with spaces and a newline;
 * then the elements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

enum { MAX_HEADER = 65535 }; /* NumPy itself stops at 10000 */

typedef struct header {
    const char *path;
    const char *start, *at, *end;
    char descr[32];
    int by_columns;
    reader_shape shape;
    int seen[3];   /* of the three keys */
    int64_t bytes; /* before the elements */
} header;

static int wrong(const header *h, const char *wanted)
{
    char text[32];
    const size_t left = (size_t)(h->end - h->at);
    return bad_file("%s: byte %td of the header must be %s, but there stands '%s'", h->path, h->at - h->start, wanted,
                    file_printable(text, sizeof text, h->at, left < 12 ? left : 12));
}

static void skip_spaces(header *h)
{
    while (h->at < h->end && strchr(" \t\n\r", *h->at) && *h->at) h->at++;
}

/* Whether the next thing is c, which is then taken. */
static int take(header *h, char c)
{
    skip_spaces(h);
    if (h->at == h->end || *h->at != c) return 0;
    h->at++;
    return 1;
}

static int read_string(header *h, char *text, size_t bytes)
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

static int read_descr(header *h)
{
    skip_spaces(h);
    if (h->at < h->end && (*h->at == '[' || *h->at == '('))
        return bad_file("%s: the array is structured (its elements are records); save one field of it", h->path);
    return read_string(h, h->descr, sizeof h->descr);
}

static int read_order(header *h)
{
    skip_spaces(h);
    const int64_t left = h->end - h->at;
    h->by_columns = left >= 4 && !memcmp(h->at, "True", 4);
    if (!h->by_columns && (left < 5 || memcmp(h->at, "False", 5))) return wrong(h, "True or False");
    h->at += h->by_columns ? 4 : 5;
    return 0;
}

static int read_size(header *h, int64_t *size)
{
    skip_spaces(h);
    if (h->at < h->end && *h->at == '-')
        return bad_file("%s: the header says a negative size in dimension %d", h->path, h->shape.dimensions + 1);
    if (h->at == h->end || *h->at < '0' || *h->at > '9') return wrong(h, "a size");
    for (*size = 0; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
        if (*size > (INT64_MAX - (*h->at - '0')) / 10)
            return bad_file("%s: the header says a size of more than 63 bits in dimension %d", h->path,
                            h->shape.dimensions + 1);
        *size = 10 * *size + (*h->at - '0');
    }
    if (h->at < h->end && *h->at == 'L') h->at++; /* Python 2's way to write a long */
    return 0;
}

static int read_shape(header *h)
{
    if (!take(h, '(')) return wrong(h, "'('");
    while (!take(h, ')')) {
        if (h->shape.dimensions == FILE_MAX_DIMENSIONS)
            return bad_file("%s: the header says more than %d dimensions", h->path, FILE_MAX_DIMENSIONS);
        if (read_size(h, &h->shape.size[h->shape.dimensions])) return EXIT_FAILURE;
        h->shape.dimensions++;
        if (take(h, ',')) continue;
        if (!take(h, ')')) return wrong(h, "',' or ')'");
        break;
    }
    return 0;
}

static int read_dictionary(header *h)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    static int (*const values[])(header *) = {read_descr, read_order, read_shape};
    char key[32];
    if (!take(h, '{')) return wrong(h, "'{'");
    while (!take(h, '}')) {
        if (read_string(h, key, sizeof key)) return EXIT_FAILURE;
        int i = 0;
        while (i < 3 && strcmp(key, keys[i])) i++;
        if (i == 3 || h->seen[i]++) return wrong(h, "after descr, fortran_order or shape, each of them once");
        if (!take(h, ':')) return wrong(h, "':'");
        if (values[i](h)) return EXIT_FAILURE;
        if (take(h, ',')) continue;
        if (!take(h, '}')) return wrong(h, "',' or '}'");
        break;
    }
    skip_spaces(h);
    if (h->at != h->end) return wrong(h, "the last");
    for (int i = 0; i < 3; i++)
        if (!h->seen[i]) return bad_file("%s: the header does not say '%s'", h->path, keys[i]);
    return 0;
}

static int read_dtype(const header *h, file_kind *kind)
{
    static const char *const known[] = {"<f4", "<f8", "<f2"};
    char text[64];
    for (int i = 0; i < 3; i++)
        if (!strcmp(h->descr, known[i])) {
            *kind = reader_kind_of((fs_dtype)(FS_F32 + i));
            return 0;
        }
    if (strchr(h->descr, 'O'))
        return bad_file("%s: the array holds Python objects, which are not read; save it as numbers", h->path);
    if (h->descr[0] == '>')
        return bad_file("%s: the array is big-endian ('%s'); save it with astype('<%s')", h->path,
                        file_printable(text, sizeof text, h->descr, strlen(h->descr)), text + 1);
    return bad_file("%s: the array holds elements of type '%s'; '<f2', '<f4' and '<f8' are read", h->path,
                    file_printable(text, sizeof text, h->descr, strlen(h->descr)));
}

/* The bytes before the header's text and how long that is.  Returns how many bytes there are, or -1 after a message. */
static int64_t read_length(reader_stream *stream, int64_t *length)
{
    const char *path = stream->in->path;
    unsigned char first[12];
    const int64_t got = reader_more(stream, first, 10);
    if (got < 0) return -1;
    if (got < 10 || memcmp(first, "\x93NUMPY", 6)) {
        bad_file("%s: this is not an npy file: it does not begin with \\x93NUMPY and a version", path);
        return -1;
    }
    if (first[6] < 1 || first[6] > 3 || first[7]) {
        bad_file("%s: this is npy version %d.%d; 1.0, 2.0 and 3.0 are read", path, first[6], first[7]);
        return -1;
    }
    const int64_t more = first[6] == 1 ? 0 : reader_more(stream, first + 10, 2);
    if (more < 0) return -1;
    const int64_t fixed = first[6] == 1 ? 10 : 12, there = stream->most - fixed;
    *length = 10 + more < fixed ? 0 : (int64_t)reader_little(first + 8, (int)fixed - 8);
    if (10 + more < fixed || *length > there) {
        bad_file("%s: the header says it has %" PRId64 " bytes, but %" PRId64 " follow", path, *length,
                 there < 0 ? 0 : there);
        return -1;
    }
    if (*length <= MAX_HEADER) return fixed;
    bad_file("%s: the header has %" PRId64 " bytes; at most %d are read", path, *length, MAX_HEADER);
    return -1;
}

/* Reads the header; text is MAX_HEADER bytes of room for it, h->bytes becomes how much of the stream it takes. */
static int read_header(reader_stream *stream, char *text, header *h)
{
    int64_t length = 0;
    const int64_t fixed = read_length(stream, &length), got = fixed < 0 ? -1 : reader_more(stream, text, length);
    if (got < 0) return EXIT_FAILURE;
    if (got < length)
        return bad_file("%s: the header says it has %" PRId64 " bytes, but %" PRId64 " follow", stream->in->path, length,
                        got);
    h->path = stream->in->path;
    h->start = h->at = text;
    h->end = text + length;
    h->bytes = fixed + length;
    return read_dictionary(h);
}

static int open_array(const reader_source *in, const header *h, file_matrix *out)
{
    file_kind kind;
    int64_t need;
    char name[sizeof out->stored];
    if (read_dtype(h, &kind) || reader_is_matrix(in, &h->shape)) return EXIT_FAILURE;
    reader_kind_name(&kind, name, sizeof name);
    if (reader_fits(in, &h->shape, name, kind.bytes, in->pipe ? -1 : in->bytes - h->bytes, &need)) return EXIT_FAILURE;
    if (h->by_columns && h->shape.dimensions > 2)
        return bad_file("%s: the array has %d dimensions in Fortran order; more than 2 are read in C order only",
                        in->path, h->shape.dimensions);
    return reader_view(in, h->bytes, &h->shape, &kind, h->by_columns, out);
}

int npy_read(const reader_source *in, const file_options *options, file_matrix *out)
{
    reader_stream file, *stream = in->pipe ? &in->pipe->stream : &file;
    header h = {.path = in->path};
    (void)options;
    char *text = malloc(MAX_HEADER);
    if (!text) return bad_file("%s: there is no memory for a header of %d bytes", in->path, MAX_HEADER);
    int code = in->pipe ? 0 : reader_start_at(in, READER_PLAIN, 0, in->bytes, &file);
    if (!code) {
        code = read_header(stream, text, &h);
        if (!in->pipe) reader_stop(&file);
    }
    if (!code) code = open_array(in, &h, out);
    free(text);
    return code;
}
