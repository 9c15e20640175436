/* idx.c - IDX files (the format of MNIST), with or without gzip.
 *
 * Big-endian: two zero bytes, a type, the number of dimensions, a 32-bit size for each, then the values, the last
 * dimension fastest.  No type is one of the library's as it stands, so values are read and converted, exactly: to f32,
 * or to f64 from int32 and float64. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/reader.h"

enum { MAX_DIMENSIONS = 4 };

typedef struct kind {
    int code;
    char letter;
    int bytes;
    const char *name;
} kind;
static const kind kinds[] = {{0x08, 'u', 1, "uint8"}, {0x09, 'i', 1, "int8"},    {0x0B, 'i', 2, "int16"},
                             {0x0C, 'i', 4, "int32"}, {0x0D, 'f', 4, "float32"}, {0x0E, 'f', 8, "float64"}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Reads the header; *start is how long it is. */
static fs_result read_header(reader_stream *stream, const kind **k, reader_shape *shape, int64_t *start)
{
    const char *path = stream->in->path;
    unsigned char magic[4], sizes[4 * MAX_DIMENSIONS];
    int64_t got = reader_more(stream, magic, 4);
    if (got < 0) return reader_failure(got);
    if (got < 4) return bad_file("%s: the file ends in the middle of its header, after %" PRId64 " bytes", path, got);
    if (magic[0] || magic[1])
        return bad_file("%s: this is not an IDX file: it starts with %02x %02x, not with 00 00", path, magic[0],
                        magic[1]);
    *k = NULL;
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].code == magic[2]) *k = &kinds[i];
    if (!*k) return bad_file("%s: the header gives type 0x%02x, which IDX files do not have", path, magic[2]);
    if (magic[3] < 1 || magic[3] > MAX_DIMENSIONS)
        return bad_file("%s: the header gives %d dimensions; 1 to %d are read", path, magic[3], MAX_DIMENSIONS);
    shape->dimensions = magic[3];
    *start = 4 + 4 * (int64_t)magic[3];
    got = reader_more(stream, sizes, *start - 4);
    if (got < 0) return reader_failure(got);
    if (got < *start - 4)
        return bad_file("%s: the file ends in the middle of its header, after %" PRId64 " bytes", path, 4 + got);
    for (int i = 0; i < shape->dimensions; i++) shape->size[i] = (int64_t)reader_big(sizes + 4 * i, 4);
    return 0;
}

/* Reads all values and keeps the first ones; then nothing may follow. */
static fs_result read_values(reader_stream *stream, const file_kind *k, int64_t count, int64_t kept, void *data)
{
    const char *path = stream->in->path;
    char more;
    const int64_t there = reader_values(stream, k, count, kept, data);
    if (there < 0) return reader_failure(there);
    if (there < count * k->bytes)
        return bad_file("%s: the header gives %" PRId64 " bytes of values, but %" PRId64 " follow it; get the file "
                        "again",
                        path, count * k->bytes, there);
    const int64_t rest = reader_more(stream, &more, 1);
    if (rest < 0) return reader_failure(rest);
    if (rest > 0)
        return bad_file("%s: the header gives %" PRId64 " bytes of values, but more follow it", path, count * k->bytes);
    return 0;
}

static fs_result read_stream(reader_stream *stream, const file_options *options, file_matrix *out)
{
    const kind *k = NULL;
    reader_shape shape = {0};
    reader_text text;
    int64_t start = 0, need, rows, cols;
    const char *path = stream->in->path;
    FSI_TRY(read_header(stream, &k, &shape, &start));
    out->gzip = stream->gzip;
    snprintf(out->stored, sizeof out->stored, "%s", k->name);
    reader_keep_shape(&shape, out);
    if (!reader_is_matrix(stream->in, &shape, out)) return reader_refused(out);
    const int64_t there = stream->most > start ? stream->most - start : 0;
    need = reader_bytes(&shape, k->bytes);
    if (!stream->gzip || need < 0) FSI_TRY(reader_fits(stream->in, &shape, k->name, k->bytes, there, &need));
    if (need > there)
        return bad_file("%s: the header gives %s %s, which needs %" PRId64 " bytes, but %" PRId64
                        " bytes of gzip unpack to at most %" PRId64,
                        path, reader_shape_text(text, &shape), k->name, need, stream->in->bytes, stream->most);
    reader_rows_cols(&shape, &rows, &cols);
    if (options->max_cols && cols > options->max_cols)
        return bad_file("%s: the header gives rows of %" PRId64 " values; at most %" PRId64 " are read", path, cols,
                        options->max_cols);
    const int64_t kept = options->max_rows && rows > options->max_rows ? options->max_rows : rows;
    const file_kind element = reader_kind(k->letter, k->bytes, 1);
    out->whole = options->locate == 2;
    void *data = out->whole ? NULL : reader_array(stream->in, out, 0, kept * cols, fsi_dtype_size(element.dtype));
    if (!out->whole && !data) return FS_ENOMEM;
    if (!out->whole) FSI_TRY(read_values(stream, &element, rows * cols, kept * cols, data));
    out->dense = fs_row_major(data, kept, cols, element.dtype);
    return 0;
}

fs_result idx_read(const reader_source *in, const file_options *options, file_matrix *out)
{
    reader_stream stream;
    FSI_TRY(reader_start(in, &stream));
    const fs_result code = read_stream(&stream, options, out);
    reader_stop(&stream);
    return code;
}
