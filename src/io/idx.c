/* idx.c - IDX files (the format of MNIST), with or without gzip.
 *
 * Big-endian: two zero bytes, a type, the number of dimensions, a 32-bit size for each, then the values, the last
 * dimension fastest.  No type is one of the library's as it stands, so values are read and converted, exactly: to f32,
 * or to f64 from int32 and float64. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

enum { MAX_DIMENSIONS = 4, CHUNK = 1 << 15 };

typedef struct kind {
    int code, bytes;
    fs_dtype dtype;
    const char *name;
} kind;
static const kind kinds[] = {{0x08, 1, FS_F32, "uint8"},   {0x09, 1, FS_F32, "int8"},    {0x0B, 2, FS_F32, "int16"},
                             {0x0C, 4, FS_F64, "int32"},   {0x0D, 4, FS_F32, "float32"}, {0x0E, 8, FS_F64, "float64"}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static double value_of(const kind *k, const unsigned char *at)
{
    const uint64_t bits = reader_big(at, k->bytes);
    const uint32_t half = (uint32_t)bits;
    float single;
    double whole;
    switch (k->code) {
    case 0x08: return (double)bits;
    case 0x09: return (double)(int8_t)bits;
    case 0x0B: return (double)(int16_t)bits;
    case 0x0C: return (double)(int32_t)bits;
    case 0x0D: memcpy(&single, &half, sizeof single); return (double)single;
    default: memcpy(&whole, &bits, sizeof whole); return whole;
    }
}

/* Reads the header; *start is how long it is. */
static int read_header(reader_stream *stream, const kind **k, reader_shape *shape, int64_t *start)
{
    const char *path = stream->in->path;
    unsigned char magic[4], sizes[4 * MAX_DIMENSIONS];
    int64_t got = reader_more(stream, magic, 4);
    if (got < 0) return EXIT_FAILURE;
    if (got < 4) return bad_file("%s: the file ends in the middle of its header, after %" PRId64 " bytes", path, got);
    if (magic[0] || magic[1])
        return bad_file("%s: this is not an IDX file: it starts with %02x %02x, not with 00 00", path, magic[0],
                        magic[1]);
    *k = NULL;
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].code == magic[2]) *k = &kinds[i];
    if (!*k) return bad_file("%s: the header says type 0x%02x, which IDX files do not have", path, magic[2]);
    if (magic[3] < 1 || magic[3] > MAX_DIMENSIONS)
        return bad_file("%s: the header says %d dimensions; 1 to %d are read", path, magic[3], MAX_DIMENSIONS);
    shape->dimensions = magic[3];
    *start = 4 + 4 * (int64_t)magic[3];
    got = reader_more(stream, sizes, *start - 4);
    if (got < 0) return EXIT_FAILURE;
    if (got < *start - 4)
        return bad_file("%s: the file ends in the middle of its header, after %" PRId64 " bytes", path, 4 + got);
    for (int i = 0; i < shape->dimensions; i++) shape->size[i] = (int64_t)reader_big(sizes + 4 * i, 4);
    return 0;
}

/* Reads all values and keeps the first ones; then nothing may follow. */
static int read_values(reader_stream *stream, const kind *k, int64_t count, int64_t kept, void *data)
{
    const char *path = stream->in->path;
    unsigned char *chunk = malloc(CHUNK * 8);
    int code = chunk ? 0 : bad_file("%s: there is no memory for %d bytes", path, CHUNK * 8);
    for (int64_t i = 0; i < count && !code; i += CHUNK) {
        const int64_t n = count - i < CHUNK ? count - i : CHUNK;
        const int64_t got = reader_more(stream, chunk, n * k->bytes);
        if (got < 0) code = EXIT_FAILURE;
        else if (got < n * k->bytes)
            code = bad_file("%s: the header says %" PRId64 " bytes of values, but %" PRId64 " follow it", path,
                            count * k->bytes, i * k->bytes + got);
        for (int64_t j = 0; j < n && i + j < kept && !code; j++)
            if (k->dtype == FS_F64) ((double *)data)[i + j] = value_of(k, chunk + j * k->bytes);
            else ((float *)data)[i + j] = (float)value_of(k, chunk + j * k->bytes);
    }
    const int64_t more = code ? 0 : reader_more(stream, chunk, 1);
    if (more < 0) code = EXIT_FAILURE;
    if (more > 0)
        code = bad_file("%s: the header says %" PRId64 " bytes of values, but more follow it", path, count * k->bytes);
    free(chunk);
    return code;
}

static int read_stream(reader_stream *stream, const file_options *options, file_matrix *out)
{
    const kind *k = NULL;
    reader_shape shape;
    reader_text text;
    int64_t start = 0, need, rows, cols;
    const char *path = stream->in->path;
    if (read_header(stream, &k, &shape, &start) || reader_is_matrix(stream->in, &shape)) return EXIT_FAILURE;
    const int64_t there = stream->most > start ? stream->most - start : 0;
    need = reader_bytes(&shape, k->bytes);
    if ((!stream->gzip || need < 0) && reader_fits(stream->in, &shape, k->name, k->bytes, there, &need))
        return EXIT_FAILURE;
    if (need > there)
        return bad_file("%s: the header says %s %s, which needs %" PRId64 " bytes, but %" PRId64
                        " bytes of gzip unpack to at most %" PRId64, path, reader_shape_text(text, &shape), k->name,
                        need, stream->in->bytes, stream->most);
    reader_rows_cols(&shape, &rows, &cols);
    if (options->max_cols && cols > options->max_cols)
        return bad_file("%s: the header says rows of %" PRId64 " values; at most %" PRId64 " are read", path, cols,
                        options->max_cols);
    const int64_t kept = options->max_rows && rows > options->max_rows ? options->max_rows : rows;
    out->whole = options->locate == 2;
    void *data = out->whole ? NULL : reader_array(stream->in, out, 0, kept * cols, fs_dtype_size(k->dtype));
    if (!out->whole && (!data || read_values(stream, k, rows * cols, kept * cols, data))) return EXIT_FAILURE;
    out->gzip = stream->gzip;
    out->dense = fs_row_major(data, kept, cols, k->dtype);
    snprintf(out->stored, sizeof out->stored, "%s", k->name);
    return 0;
}

int idx_read(const reader_source *in, const file_options *options, file_matrix *out)
{
    reader_stream stream;
    if (reader_start(in, &stream)) return EXIT_FAILURE;
    const int code = read_stream(&stream, options, out);
    reader_stop(&stream);
    return code;
}
