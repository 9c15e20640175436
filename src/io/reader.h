/* reader.h - what the readers of src/io share and nobody else needs: the file, checked sizes, views, gzip. */
#ifndef FS_IO_READER_H
#define FS_IO_READER_H

#include <inttypes.h>
#include <zlib.h>

#include "dtype.h"
#include "file.h"

/* Keeps a sentence for fs_error_message and returns EXIT_FAILURE, what readers return when they fail. */
int bad_file(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An open regular file; file_open makes and closes it. */
typedef struct reader_source {
    const char *path; /* what sentences call it */
    int fd;
    int64_t bytes, changed;      /* its length, and when it was last written to, in ns */
    const file_options *options; /* for watch and locate */
} reader_source;

/* A format: fills out, whose format is set and whose other fields are 0.  After a failure file_open closes it. */
typedef int reader(const reader_source *in, const file_options *options, file_matrix *out);
reader npy_read, mtx_read, safetensors_read, idx_read, raw_read;

/* Maps the whole file into out->map.  Returns 0, or EXIT_FAILURE after saying why. */
int reader_map(const reader_source *in, file_matrix *out);

/* sizes ------------------------------------------------------------------------------------------------------ */

typedef struct reader_shape {
    int dimensions;
    int64_t size[FILE_MAX_DIMENSIONS];
} reader_shape;

/* a b, or -1 where that is more than int64_t counts; a and b are not negative. */
int64_t reader_times(int64_t a, int64_t b);

/* The bytes of the elements of a shape, -1 where they cannot be counted.  Sizes are not negative. */
int64_t reader_bytes(const reader_shape *shape, int64_t element);

/* That a shape is a matrix with something in it: 1 to FILE_MAX_DIMENSIONS sizes of at least 1.  Returns 0, or
 * EXIT_FAILURE after saying why not. */
int reader_is_matrix(const reader_source *in, const reader_shape *shape);

/* Rows and columns of a shape whose bytes have been counted. */
void reader_rows_cols(const reader_shape *shape, int64_t *rows, int64_t *cols);

/* "4096 x 1024", cut to fit. */
typedef char reader_text[160];
const char *reader_shape_text(reader_text text, const reader_shape *shape);

/* That `there` bytes are exactly what a header's shape and type need; *need gets the number.  Returns 0, or
 * EXIT_FAILURE after the sentence: "PATH: the header says 4096 x 1024 float32, which needs 16777216 bytes, but 1234
 * follow it". */
int reader_fits(const reader_source *in, const reader_shape *shape, const char *type, int64_t element, int64_t there,
                int64_t *need);

/* count things of `bytes` bytes into out->memory[slot]; NULL after saying that there is no memory. */
void *reader_array(const reader_source *in, file_matrix *out, int slot, int64_t count, int64_t bytes);

/* views ------------------------------------------------------------------------------------------------------ */

/* Makes out->dense the packed little-endian matrix that starts `start` bytes into the mapping, where reader_fits has
 * been; copies it where its elements are misaligned or this machine is big-endian.  Where it is only to be located, it
 * gets no data.  Returns 0, or EXIT_FAILURE after saying that there is no memory. */
int reader_view(const reader_source *in, int64_t start, int64_t rows, int64_t cols, fs_dtype dtype, int by_columns,
                file_matrix *out);

/* Whether this machine's numbers are little-endian, as those in files are. */
static inline int reader_is_little(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one;
}

/* `count` elements as a file has them, little-endian, turned into this machine's own order where they are. */
void reader_native(void *data, int64_t count, int64_t element);

/* Numbers in the order that a file has. */
static inline uint64_t reader_little(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}
static inline uint64_t reader_big(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | at[i];
    return value;
}

/* streams ---------------------------------------------------------------------------------------------------- */

/* The bytes of a file from its start, unpacked if they are gzip. */
typedef struct reader_stream {
    const reader_source *in;
    gzFile file;
    int gzip;
    int64_t most; /* bytes that can come at most: the file's, or 1032 times as many, deflate's limit (zlib.net) */
} reader_stream;

/* Returns 0, or EXIT_FAILURE after saying why; reader_stop is for streams that were started. */
int reader_start(const reader_source *in, reader_stream *stream);
void reader_stop(reader_stream *stream);

/* Reads up to `bytes` bytes, fewer only at the end; -1 after saying that the file cannot be read or is damaged.  A gzip
 * file that ends in its middle is damaged. */
int64_t reader_more(reader_stream *stream, void *to, int64_t bytes);

#endif
