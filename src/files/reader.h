/* reader.h - what the readers of src/files share: the file, checked sizes, elements, views, unpacked bytes. */
#ifndef FSI_FILES_READER_H
#define FSI_FILES_READER_H

#include <inttypes.h>
#include <zlib.h>

#include "base/dtype.h"
#include "base/error.h"
#include "files/file.h"

/* The failure of a reader: keeps the message for fs_error_message.  bad_file returns FS_EFILE, out_of_memory FS_ENOMEM.
 * Functions that return a count return minus the code. */
fs_result bad_file(const char *format, ...) __attribute__((format(printf, 1, 2)));
fs_result out_of_memory(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The code that a negative count stands for. */
static inline fs_result reader_failure(int64_t negative) { return (fs_result)-negative; }

typedef struct reader_pipe reader_pipe;

/* A source: an open regular file, or a pipe, whose length is not known.  source_open makes it. */
typedef struct reader_source {
    const char *path;       /* what messages call it */
    int fd;                 /* -1 where it is a pipe */
    int64_t bytes, changed; /* its length, and when it was last written to, in ns; of a pipe 0, and when it was
                                    opened */
    const file_options *options;
    reader_pipe *pipe; /* owned; NULL: a file */
} reader_source;

/* Opens a file, or standard input ("-").  A pipe is copied to a temporary file in TMPDIR (/tmp), unless only its
 * position is needed (options->locate) and it is npy or raw: then in->pipe has it, from the first byte on.  *in keeps
 * options, which must live as long.  Returns FS_OK, FS_EFILE or FS_ENOMEM. */
fs_result source_open(const char *path, const file_options *options, reader_source *in);
void source_close(reader_source *in);

/* Length and time of an open file.  FS_EFILE: it cannot be read. */
fs_result source_measure(reader_source *in);

/* A format: fills out, whose format is set and whose other fields are 0.  After a failure file_open closes it. */
typedef fs_result reader(const reader_source *in, const file_options *options, file_matrix *out);
reader npy_read, mtx_read, safetensors_read, idx_read, csv_read, npz_read, raw_read;

/* The formats with a recognizable beginning, for messages. */
#define READER_FORMATS "npy, npz, Matrix Market, safetensors or IDX"

/* Calls options->watch, where there is one. */
void reader_watch(const reader_source *in, int64_t bytes, int64_t all);

/* sizes ------------------------------------------------------------------------------------------------------ */

typedef struct reader_shape {
    int dimensions;
    int64_t size[FILE_MAX_DIMENSIONS];
} reader_shape;

/* a b, or -1 where that is more than int64_t counts; a and b are not negative. */
int64_t reader_times(int64_t a, int64_t b);

/* The bytes of the elements of a shape, -1 where they cannot be counted.  Sizes are not negative. */
int64_t reader_bytes(const reader_shape *shape, int64_t element);

/* Reports that the contents of a file cannot be opened as a matrix, for this reason.  Where it may also be described
 * (options->describe), out->why keeps the reason; otherwise the message does.  Returns 0, "no matrix". */
int reader_cannot(const reader_source *in, file_matrix *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The result of a reader after that: FS_OK where the file was described. */
static inline fs_result reader_refused(const file_matrix *out) { return out->why[0] ? FS_OK : FS_EFILE; }

/* Whether a shape is that of a matrix with elements: 1 to FILE_MAX_DIMENSIONS sizes of at least 1.  If not,
 * reader_cannot has been called. */
int reader_is_matrix(const reader_source *in, const reader_shape *shape, file_matrix *out);

/* The shape as the file has it, for its description. */
void reader_keep_shape(const reader_shape *shape, file_matrix *out);

/* Rows and columns of a shape whose bytes have been counted. */
void reader_rows_cols(const reader_shape *shape, int64_t *rows, int64_t *cols);

/* "4096 x 1024", cut to fit; "one" of no dimensions. */
typedef char reader_text[160];
const char *reader_shape_text(reader_text text, const reader_shape *shape);

/* Checks that `there` bytes (-1: not known, it is a pipe) are exactly the number that a header's shape and type need;
 * *need gets the number.  FS_EFILE, with the message "PATH: the header gives 4096 x 1024 float32, which needs
 * 16777216 bytes, but 1234 follow it". */
fs_result reader_fits(const reader_source *in, const reader_shape *shape, const char *type, int64_t element,
                      int64_t there, int64_t *need);

/* Allocates `count` items of `bytes` bytes as out->memory[slot]; NULL after FS_ENOMEM. */
void *reader_array(const reader_source *in, file_matrix *out, int slot, int64_t count, int64_t bytes);

/* elements --------------------------------------------------------------------------------------------------- */

/* An element type: letter 'f', 'i', 'u' or 'b', as in file_kind; 'f' has 2, 4 or 8 bytes. */
file_kind reader_kind(char letter, int bytes, int big);

/* The library's own type, little-endian. */
file_kind reader_kind_of(fs_dtype dtype);

/* "int32", "float64, big-endian"; returns name. */
const char *reader_kind_name(const file_kind *kind, char *name, size_t bytes);

/* Whether elements are stored in the file as they are in memory. */
int reader_is_native(const file_kind *kind);

/* `count` elements of a file become elements of kind->dtype.  `from` may be the end of to's own memory. */
void reader_convert(const file_kind *kind, const void *from, int64_t count, void *to);

/* `count` elements that start at `offset`, converted.  Returns 0, an errno, or -1 where the file ends before. */
int reader_pread(int fd, int64_t offset, int64_t count, const file_kind *kind, void *to);

/* views ------------------------------------------------------------------------------------------------------ */

/* Makes out->dense the packed matrix of this shape that starts `start` bytes into the file, where reader_fits has been.
 * It is mapped where its elements can be used as they are and there is address space for it, otherwise read into
 * memory.  Where it is only to be located, it gets no data.  Returns FS_OK, FS_EFILE or FS_ENOMEM. */
fs_result reader_view(const reader_source *in, int64_t start, const reader_shape *shape, const file_kind *kind,
                      int by_columns, file_matrix *out);

/* Whether this machine's numbers are little-endian, as those in most files are. */
static inline int reader_is_little(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one;
}

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

/* bytes ------------------------------------------------------------------------------------------------------ */

typedef enum reader_packing { READER_PLAIN, READER_GZIP, READER_DEFLATE } reader_packing;

enum { READER_BUFFER = 1 << 17 };

/* Bytes of a source, one after the other, unpacked. */
typedef struct reader_stream {
    const reader_source *in;
    int fd, is_pipe;
    int64_t at, end; /* where the next byte is that is not in the buffer, and where they end */
    unsigned char *buffer;
    int64_t taken, filled, room; /* of the buffer: READER_BUFFER bytes, or all that there are */
    reader_packing packing;
    int gzip;
    int64_t most; /* an upper bound of the bytes to come: those in the file, or deflate's limit for them */
    int counts;   /* `given` and `crc` are kept: how many bytes came, and their CRC-32 */
    int64_t given;
    uLong crc;
    z_stream z;
    int inflating, open, members; /* z is in use; it is inside a member; members that are done */
} reader_stream;

/* All bytes of a file, decompressed if they are gzip.  Returns FS_OK, FS_EFILE or FS_ENOMEM; reader_stop ends streams
 * that were started. */
fs_result reader_start(const reader_source *in, reader_stream *stream);
void reader_stop(reader_stream *stream);

/* Bytes `at` to `end` - 1 of a file, compressed by this method. */
fs_result reader_start_at(const reader_source *in, reader_packing packing, int64_t at, int64_t end,
                          reader_stream *stream);

/* Reads up to `bytes` bytes, fewer only at the end; minus the code where the file cannot be
 * read or is damaged.
 * gzip data that end early are damaged; so are bytes after them that are not gzip. */
int64_t reader_more(reader_stream *stream, void *to, int64_t bytes);

/* Fills the buffer up and returns how much it holds, or minus the code after a failure. */
int64_t reader_fill(reader_stream *stream);

/* Reads `count` elements and converts the first `kept` of them.  Returns the bytes that were there, or minus the
 * code. */
int64_t reader_values(reader_stream *stream, const file_kind *kind, int64_t count, int64_t kept, void *to);

/* A pipe that is read in order.  Its first READER_BUFFER bytes are in the buffer from the start on. */
struct reader_pipe {
    reader_source in;
    file_options none;
    reader_stream stream;
};

/* Copies a pipe of which no more than the first buffer was read to a temporary file, from its first byte on.  Returns
 * 0, or FS_EFILE or FS_ENOMEM. */
fs_result pipe_spool(reader_pipe *pipe, const reader_source *watching, int *fd);
void pipe_close(reader_pipe *pipe);

#endif
