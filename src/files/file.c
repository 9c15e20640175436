/* file.c - opening: which format, which reader; and the functions that all readers use. */
#include "files/file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "files/reader.h"
#include "flashsketch_extend.h"

typedef char message[2048];

fs_result bad_file(const char *format, ...)
{
    message text;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fs_fail(FS_EFILE, "%s", text);
}

fs_result out_of_memory(const char *format, ...)
{
    message text;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fs_fail(FS_ENOMEM, "%s", text);
}

const char *file_format_name(file_format format)
{
    static const char *const names[] = {"unknown", "npy", "Matrix Market", "safetensors", "IDX", "CSV", "npz", "raw"};
    return names[format >= FILE_NPY && format <= FILE_RAW ? format : 0];
}

const char *file_printable(char *out, size_t bytes, const char *text, size_t length)
{
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        const int plain = c >= 0x20 && c < 0x7F;
        if (at + (plain ? 1 : 4) >= bytes) break;
        at += (size_t)snprintf(out + at, bytes - at, plain ? "%c" : "\\x%02x", c);
    }
    if (bytes) out[at] = 0;
    return out;
}

/* sizes ------------------------------------------------------------------------------------------------------ */

int64_t reader_times(int64_t a, int64_t b) { return a && b > INT64_MAX / a ? -1 : a * b; }

int64_t reader_bytes(const reader_shape *shape, int64_t element)
{
    int64_t bytes = element;
    for (int i = 0; i < shape->dimensions; i++)
        if (!shape->size[i]) return 0;
    for (int i = 0; i < shape->dimensions && bytes >= 0; i++) bytes = reader_times(bytes, shape->size[i]);
    return bytes;
}

int reader_cannot(const reader_source *in, file_matrix *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->why, sizeof out->why, format, arguments);
    va_end(arguments);
    if (in->options->describe) return 0;
    bad_file("%s: %s", in->path, out->why);
    out->why[0] = 0;
    return 0;
}

int reader_is_matrix(const reader_source *in, const reader_shape *shape, file_matrix *out)
{
    if (shape->dimensions < 1 || shape->dimensions > FILE_MAX_DIMENSIONS)
        return reader_cannot(in, out, "the header gives %d dimensions; a matrix needs 1 to %d", shape->dimensions,
                             FILE_MAX_DIMENSIONS);
    for (int i = 0; i < shape->dimensions; i++)
        if (shape->size[i] < 1)
            return reader_cannot(in, out, "the header gives size %" PRId64 " in dimension %d: there is nothing to read",
                                 shape->size[i], i + 1);
    return 1;
}

void reader_keep_shape(const reader_shape *shape, file_matrix *out)
{
    out->has_shape = 1;
    out->dimensions = shape->dimensions;
    memcpy(out->shape, shape->size, sizeof out->shape);
}

void reader_rows_cols(const reader_shape *shape, int64_t *rows, int64_t *cols)
{
    *rows = shape->size[0];
    *cols = 1;
    for (int i = 1; i < shape->dimensions; i++) *cols *= shape->size[i];
}

const char *reader_shape_text(reader_text text, const reader_shape *shape)
{
    size_t at = 0;
    snprintf(text, sizeof(reader_text), "one");
    for (int i = 0; i < shape->dimensions && at < sizeof(reader_text); i++)
        at += (size_t)snprintf(text + at, sizeof(reader_text) - at, "%s%" PRId64, i ? " x " : "", shape->size[i]);
    return text;
}

fs_result reader_fits(const reader_source *in, const reader_shape *shape, const char *type, int64_t element,
                      int64_t there, int64_t *need)
{
    reader_text text;
    *need = reader_bytes(shape, element);
    reader_shape_text(text, shape);
    if (*need < 0 || (there < 0 && *need > INT64_MAX / 16))
        return bad_file("%s: the header gives %s %s, which is more bytes than can be counted", in->path, text, type);
    if (there >= 0 && *need != there)
        return bad_file("%s: the header gives %s %s, which needs %" PRId64 " bytes, but %" PRId64 " follow it",
                        in->path, text, type, *need, there);
    return 0;
}

void *reader_array(const reader_source *in, file_matrix *out, int slot, int64_t count, int64_t bytes)
{
    const int64_t all = reader_times(count, bytes);
    if (all >= 0 && (uint64_t)all <= PTRDIFF_MAX) out->memory[slot] = malloc(all ? (size_t)all : 1);
    if (!out->memory[slot])
        (void)out_of_memory("%s: no memory for %" PRId64 " values of %" PRId64 " bytes; allow more (ulimit -v), or cut "
                            "the matrix into several files",
                            in->path, count, bytes);
    return out->memory[slot];
}

/* views ------------------------------------------------------------------------------------------------------ */

const char *file_dtype_name(fs_dtype dtype)
{
    static const char *const names[] = {"?", "float32", "float64", "float16", "bfloat16"};
    return names[dtype >= FS_F32 && dtype <= FS_BF16 ? dtype : 0];
}

/* Maps the whole file into out->map; it stays NULL where that is not possible. */
static void map(const reader_source *in, file_matrix *out)
{
    if ((uint64_t)in->bytes > SIZE_MAX / 2) return;
    void *map = mmap(NULL, (size_t)in->bytes, PROT_READ, MAP_PRIVATE, in->fd, 0);
    if (map == MAP_FAILED) return;
    out->map = map;
    out->map_bytes = (size_t)in->bytes;
}

/* *data is where the elements are mapped, or where they have been read to. */
static fs_result elements(const reader_source *in, int64_t start, int64_t count, const file_kind *kind,
                          file_matrix *out, void **data)
{
    const int64_t size = fsi_dtype_size(kind->dtype);
    if (reader_is_native(kind) && start % size == 0) map(in, out);
    *data = out->map ? (char *)out->map + start : reader_array(in, out, 0, count, size);
    if (!*data) return FS_ENOMEM;
    const int wrong = out->map ? 0 : reader_pread(in->fd, start, count, kind, *data);
    if (!wrong) return FS_OK;
    return bad_file("%s: the file could not be read (%s)", in->path,
                    wrong < 0 ? "it has become shorter" : strerror(wrong));
}

fs_result reader_view(const reader_source *in, int64_t start, const reader_shape *shape, const file_kind *kind,
                      int by_columns, file_matrix *out)
{
    int64_t rows, cols;
    void *data = NULL;
    reader_rows_cols(shape, &rows, &cols);
    if (!in->options->locate) FSI_TRY(elements(in, start, rows * cols, kind, out, &data));
    out->start = start;
    out->kind = *kind;
    out->dense = by_columns ? fs_col_major(data, rows, cols, kind->dtype) : fs_row_major(data, rows, cols, kind->dtype);
    if (!out->stored[0]) reader_kind_name(kind, out->stored, sizeof out->stored);
    return 0;
}

/* opening ---------------------------------------------------------------------------------------------------- */

/* Whether bytes can be text: no control characters but tabs and ends of lines. */
static int is_text(const unsigned char *start, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        if ((start[i] < 0x20 && start[i] != '\t' && start[i] != '\n' && start[i] != '\r') || start[i] == 0x7F) return 0;
    return bytes > 0;
}

/* The format of a file that begins like this.  safetensors and IDX have no magic number, but a byte in their first four
 * that no text has; CSV, which is any text, comes last and takes no file from the others. */
static file_format format_of(const unsigned char *start, int64_t bytes)
{
    static const char npy[] = "\x93NUMPY", mtx[] = "%%MatrixMarket";
    const int type = bytes < 4 ? 0 : start[2];
    if (bytes >= 6 && !memcmp(start, npy, 6)) return FILE_NPY;
    if (bytes >= 4 && (!memcmp(start, "PK\3\4", 4) || !memcmp(start, "PK\5\6", 4))) return FILE_NPZ;
    if (bytes >= 14 && !strncasecmp((const char *)start, mtx, 14)) return FILE_MTX;
    if (bytes >= 9 && start[8] == '{' && !reader_little(start + 4, 4)) return FILE_SAFETENSORS;
    if (bytes >= 4 && !start[0] && !start[1] && type >= 0x08 && type <= 0x0E) return FILE_IDX;
    return is_text(start, bytes) ? FILE_CSV : FILE_GUESS;
}

static fs_result guess(const reader_source *in, file_format *format)
{
    unsigned char start[512];
    char text[32];
    reader_stream stream;
    FSI_TRY(reader_start(in, &stream));
    const int64_t got = reader_more(&stream, start, sizeof start);
    const int gzip = stream.gzip;
    reader_stop(&stream);
    if (got < 0) return reader_failure(got);
    *format = format_of(start, got);
    if (*format == FILE_GUESS)
        return bad_file("%s: '%s...' is not the beginning of an " READER_FORMATS
                        " file, nor text (CSV); for a raw file give "
                        "--shape and --dtype",
                        in->path, file_printable(text, sizeof text, (char *)start, got < 16 ? (size_t)got : 16));
    if (gzip && *format != FILE_MTX && *format != FILE_IDX && *format != FILE_CSV)
        return bad_file("%s: this is %s inside gzip; unpack it (gunzip), so that it can be mapped", in->path,
                        file_format_name(*format));
    return 0;
}

/* Reads an open file by the reader of its format. */
static fs_result read_source(const reader_source *in, file_matrix *out)
{
    static reader *const readers[] = {NULL,     npy_read, mtx_read, safetensors_read,
                                      idx_read, csv_read, npz_read, raw_read};
    const file_options *options = in->options;
    file_format format = options->format;
    if (format == FILE_GUESS && in->pipe) format = FILE_NPY; /* see source_open */
    fs_result code = format == FILE_GUESS ? guess(in, &format) : 0;
    out->format = format;
    if (!code && options->tensor && format != FILE_SAFETENSORS && format != FILE_NPZ)
        code = bad_file("%s: this is %s, not safetensors or npz: it holds one matrix, and no tensor '%s'", in->path,
                        file_format_name(format), options->tensor);
    if (!code) code = readers[format](in, options, out);
    out->bytes = in->pipe ? out->start + out->dense.rows * out->dense.cols * out->kind.bytes : in->bytes;
    out->changed = in->changed;
    return code;
}

fs_result file_open(const char *path, const file_options *options, file_matrix *out)
{
    const file_options none = {0};
    reader_source in;
    memset(out, 0, sizeof *out);
    FSI_TRY(source_open(path, options ? options : &none, &in));
    const fs_result code = read_source(&in, out);
    const int has_arrays = out->dense.data || out->sparse.ptr;
    out->kept = !code && !has_arrays && !*out->why && (!strcmp(path, "-") || in.options->keep);
    if (out->kept) {
        out->fd = in.fd;
        out->pipe = in.pipe;
    } else source_close(&in);
    if (code) file_close(out);
    return code;
}

fs_result file_read(int fd, const char *name, const file_options *options, file_matrix *out)
{
    reader_source in = {.path = name, .fd = fd, .options = options};
    memset(out, 0, sizeof *out);
    FSI_TRY(source_measure(&in));
    const fs_result code = read_source(&in, out);
    if (code) file_close(out);
    return code;
}

fs_result file_load(const char *name, file_matrix *file)
{
    const file_options none = {0};
    reader_source in = {.path = name, .fd = file->fd, .options = &none};
    FSI_TRY(source_measure(&in));
    if (in.bytes != file->bytes)
        return bad_file("%s: the file has changed: it had %" PRId64 " bytes and has %" PRId64, name, file->bytes,
                        in.bytes);
    void *data = NULL;
    const fs_result code = elements(&in, file->start, file->dense.rows * file->dense.cols, &file->kind, file, &data);
    if (code) {
        free(file->memory[0]);
        file->memory[0] = NULL;
        return code;
    }
    file->dense.data = data;
    close(file->fd);
    file->kept = 0;
    return FS_OK;
}

void file_close(file_matrix *file)
{
    if (file->map) munmap(file->map, file->map_bytes);
    if (file->kept && file->fd >= 0) close(file->fd);
    pipe_close(file->pipe);
    for (int i = 0; i < 3; i++) free(file->memory[i]);
    memset(file, 0, sizeof *file);
}
