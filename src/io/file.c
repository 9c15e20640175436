/* file.c - opening: which format, which reader; and what they all use. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader.h"

int bad_file(const char *format, ...)
{
    char sentence[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    (void)fs_fail(FS_EFILE, "%s", sentence);
    return EXIT_FAILURE;
}

const char *file_format_name(file_format format)
{
    static const char *const names[] = {"unknown", "npy", "Matrix Market", "safetensors", "IDX", "raw"};
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

int64_t reader_times(int64_t a, int64_t b)
{
    return a && b > INT64_MAX / a ? -1 : a * b;
}

int64_t reader_bytes(const reader_shape *shape, int64_t element)
{
    int64_t bytes = element;
    for (int i = 0; i < shape->dimensions; i++)
        if (!shape->size[i]) return 0;
    for (int i = 0; i < shape->dimensions && bytes >= 0; i++) bytes = reader_times(bytes, shape->size[i]);
    return bytes;
}

int reader_is_matrix(const reader_source *in, const reader_shape *shape)
{
    if (shape->dimensions < 1 || shape->dimensions > FILE_MAX_DIMENSIONS)
        return bad_file("%s: the header says %d dimensions; a matrix needs 1 to %d", in->path, shape->dimensions,
                        FILE_MAX_DIMENSIONS);
    for (int i = 0; i < shape->dimensions; i++)
        if (shape->size[i] < 1)
            return bad_file("%s: the header says size %" PRId64 " in dimension %d: there is nothing to read", in->path,
                            shape->size[i], i + 1);
    return 0;
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
    text[0] = 0;
    for (int i = 0; i < shape->dimensions && at < sizeof(reader_text); i++)
        at += (size_t)snprintf(text + at, sizeof(reader_text) - at, "%s%" PRId64, i ? " x " : "", shape->size[i]);
    return text;
}

int reader_fits(const reader_source *in, const reader_shape *shape, const char *type, int64_t element, int64_t there,
                int64_t *need)
{
    reader_text text;
    *need = reader_bytes(shape, element);
    reader_shape_text(text, shape);
    if (*need < 0)
        return bad_file("%s: the header says %s %s, which is more bytes than can be counted", in->path, text, type);
    if (*need != there)
        return bad_file("%s: the header says %s %s, which needs %" PRId64 " bytes, but %" PRId64 " follow it", in->path,
                        text, type, *need, there);
    return 0;
}

void *reader_array(const reader_source *in, file_matrix *out, int slot, int64_t count, int64_t bytes)
{
    const int64_t all = reader_times(count, bytes);
    if (all >= 0 && (uint64_t)all <= PTRDIFF_MAX) out->memory[slot] = malloc(all ? (size_t)all : 1);
    if (!out->memory[slot])
        bad_file("%s: there is no memory for %" PRId64 " values of %" PRId64 " bytes", in->path, count, bytes);
    return out->memory[slot];
}

/* views ------------------------------------------------------------------------------------------------------ */

const char *file_dtype_name(fs_dtype dtype)
{
    static const char *const names[] = {"?", "float32", "float64", "float16", "bfloat16"};
    return names[dtype >= FS_F32 && dtype <= FS_BF16 ? dtype : 0];
}

void reader_native(void *data, int64_t count, int64_t element)
{
    if (reader_is_little()) return;
    for (unsigned char *at = data, *end = at + count * element; at < end; at += element)
        for (int64_t i = 0; i < element / 2; i++) {
            const unsigned char low = at[i];
            at[i] = at[element - 1 - i];
            at[element - 1 - i] = low;
        }
}

int reader_view(const reader_source *in, int64_t start, int64_t rows, int64_t cols, fs_dtype dtype, int by_columns,
                file_matrix *out)
{
    const int64_t element = fs_dtype_size(dtype), count = rows * cols;
    unsigned char *data = in->options->locate ? NULL : (unsigned char *)out->map + start;
    if (data && (!reader_is_little() || (uintptr_t)data % (uintptr_t)element)) {
        unsigned char *copy = reader_array(in, out, 0, count, element);
        if (!copy) return EXIT_FAILURE;
        memcpy(copy, data, (size_t)(count * element));
        reader_native(copy, count, element);
        data = copy;
    }
    out->start = start;
    out->dense = by_columns ? fs_col_major(data, rows, cols, dtype) : fs_row_major(data, rows, cols, dtype);
    if (!out->stored[0]) snprintf(out->stored, sizeof out->stored, "%s", file_dtype_name(dtype));
    return 0;
}

int reader_map(const reader_source *in, file_matrix *out)
{
    if ((uint64_t)in->bytes > SIZE_MAX / 2)
        return bad_file("%s: %" PRId64 " bytes are more than this machine can map", in->path, in->bytes);
    void *map = mmap(NULL, (size_t)in->bytes, PROT_READ, MAP_PRIVATE, in->fd, 0);
    if (map == MAP_FAILED) return bad_file("%s: the file cannot be mapped (%s)", in->path, strerror(errno));
    out->map = map;
    out->map_bytes = (size_t)in->bytes;
    return 0;
}

/* streams ---------------------------------------------------------------------------------------------------- */

static void watch(const reader_source *in, int64_t bytes, int64_t all)
{
    if (in->options->watch) in->options->watch(in->options->user, bytes, all);
}

int reader_start(const reader_source *in, reader_stream *stream)
{
    const int64_t ratio = 1032;
    const int fd = lseek(in->fd, 0, SEEK_SET) ? -1 : dup(in->fd);
    stream->in = in;
    stream->file = fd < 0 ? NULL : gzdopen(fd, "rb");
    if (!stream->file) {
        const int why = errno;
        if (fd >= 0) close(fd);
        return bad_file("%s: the file cannot be read (%s)", in->path, strerror(why));
    }
    gzbuffer(stream->file, 1 << 17);
    stream->gzip = !gzdirect(stream->file);
    stream->most = stream->gzip ? reader_times(in->bytes, ratio) : in->bytes;
    if (stream->most < 0) stream->most = INT64_MAX;
    return 0;
}

void reader_stop(reader_stream *stream)
{
    gzclose(stream->file);
}

int64_t reader_more(reader_stream *stream, void *to, int64_t bytes)
{
    int64_t got = 0;
    while (got < bytes) {
        const int64_t step = bytes - got < 1 << 20 ? bytes - got : 1 << 20;
        const int n = gzread(stream->file, (char *)to + got, (unsigned)step);
        int code = Z_OK;
        const char *why = n < step ? gzerror(stream->file, &code) : "";
        if (code == Z_ERRNO) {
            bad_file("%s: the file could not be read (%s)", stream->in->path, strerror(errno));
            return -1;
        }
        if (code == Z_BUF_ERROR) {
            bad_file("%s: the gzip data end in the middle; get the file again", stream->in->path);
            return -1;
        }
        if (code != Z_OK && code != Z_STREAM_END) {
            const char *colon = strstr(why, ": "); /* zlib's sentences start with the name it was given */
            bad_file("%s: %s; the file is damaged, get it again", stream->in->path, colon ? colon + 2 : why);
            return -1;
        }
        if (n <= 0) break;
        got += n;
        watch(stream->in, gzoffset(stream->file), stream->in->bytes);
    }
    return got;
}

/* opening ---------------------------------------------------------------------------------------------------- */

/* Copies standard input to a temporary file without a name, which is gone when it is closed, whatever happens. */
static int spool(reader_source *in)
{
    char buffer[1 << 16];
    FILE *copy = tmpfile();
    ssize_t got = 0;
    int64_t bytes = 0;
    while (copy && (got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0) {
        if (fwrite(buffer, 1, (size_t)got, copy) != (size_t)got) break;
        bytes += got;
        watch(in, bytes, 0);
    }
    if (copy && got == 0 && fflush(copy) == 0) in->fd = dup(fileno(copy));
    const int why = errno;
    if (copy) fclose(copy);
    if (in->fd >= 0) return 0;
    return bad_file("standard input could not be copied to a temporary file (%s, after %" PRId64 " bytes); write it to "
                    "a file of your own first", strerror(why), bytes);
}

static int standard_input(reader_source *in)
{
    struct stat about;
    in->path = "standard input";
    if (isatty(STDIN_FILENO)) return bad_file("standard input is a terminal; pipe a matrix into it, or name a file");
    const int is_file = fstat(STDIN_FILENO, &about) == 0 && S_ISREG(about.st_mode) && !lseek(STDIN_FILENO, 0, SEEK_CUR);
    if (!is_file) return spool(in);
    in->fd = dup(STDIN_FILENO);
    return in->fd >= 0 ? 0 : bad_file("standard input cannot be read (%s)", strerror(errno));
}

/* What the system says of an open file.  Returns 0, or EXIT_FAILURE after saying why it cannot be read. */
static int measure(reader_source *in)
{
    struct stat about;
    const int is_file = fstat(in->fd, &about) == 0 && S_ISREG(about.st_mode);
    in->bytes = is_file ? about.st_size : 0;
    in->changed = is_file ? about.st_mtim.tv_sec * INT64_C(1000000000) + about.st_mtim.tv_nsec : 0;
    if (in->bytes > 0) return 0;
    if (is_file) return bad_file("%s: the file is empty", in->path);
    return bad_file("%s: this is not a file; a pipe or device is read as standard input ('-')", in->path);
}

/* *in keeps options, which must live as long. */
static int source_open(const char *path, const file_options *options, reader_source *in)
{
    *in = (reader_source){path, -1, 0, 0, options};
    if (!strcmp(path, "-")) {
        if (standard_input(in)) return EXIT_FAILURE;
    } else in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe that nobody writes to must not stop us */
    if (in->fd < 0) return bad_file("%s: the file cannot be opened (%s)", path, strerror(errno));
    const int code = measure(in);
    if (code) close(in->fd);
    return code;
}

/* The format that the first bytes tell; safetensors and IDX have no magic of their own, so they come last. */
static file_format format_of(const unsigned char *start, int64_t bytes)
{
    static const char npy[] = "\x93NUMPY", mtx[] = "%%MatrixMarket";
    const int type = bytes < 4 ? 0 : start[2];
    if (bytes >= 6 && !memcmp(start, npy, 6)) return FILE_NPY;
    if (bytes >= 14 && !strncasecmp((const char *)start, mtx, 14)) return FILE_MTX;
    if (bytes >= 9 && start[8] == '{' && !reader_little(start + 4, 4)) return FILE_SAFETENSORS;
    if (bytes >= 4 && !start[0] && !start[1] && type >= 0x08 && type <= 0x0E) return FILE_IDX;
    return FILE_GUESS;
}

static int guess(const reader_source *in, file_format *format)
{
    unsigned char start[16];
    char text[32];
    reader_stream stream;
    if (reader_start(in, &stream)) return EXIT_FAILURE;
    const int64_t got = reader_more(&stream, start, sizeof start);
    reader_stop(&stream);
    if (got < 0) return EXIT_FAILURE;
    *format = format_of(start, got);
    if (*format == FILE_GUESS)
        return bad_file("%s: '%s...' begins no npy, Matrix Market, safetensors or IDX file; for a raw file give "
                        "--shape and --dtype", in->path, file_printable(text, sizeof text, (char *)start, (size_t)got));
    if (stream.gzip && *format != FILE_MTX && *format != FILE_IDX)
        return bad_file("%s: this is %s inside gzip; unpack it (gunzip), so that it can be mapped", in->path,
                        file_format_name(*format));
    return 0;
}

/* Reads an open file by the reader of its format. */
static int read_source(const reader_source *in, file_matrix *out)
{
    static reader *const readers[] = {NULL, npy_read, mtx_read, safetensors_read, idx_read, raw_read};
    const file_options *options = in->options;
    file_format format = options->format;
    int code = format == FILE_GUESS ? guess(in, &format) : 0;
    out->format = format;
    if (!code && options->tensor && format != FILE_SAFETENSORS)
        code = bad_file("%s: this is %s, not safetensors: it holds one matrix, and no tensor '%s'", in->path,
                        file_format_name(format), options->tensor);
    if (!code) code = readers[format](in, options, out);
    out->bytes = in->bytes;
    out->changed = in->changed;
    return code;
}

fs_result file_open(const char *path, const file_options *options, file_matrix *out)
{
    const file_options none = {0};
    reader_source in;
    memset(out, 0, sizeof *out);
    if (source_open(path, options ? options : &none, &in)) return FS_EFILE;
    const int code = read_source(&in, out), has_arrays = out->dense.data || out->sparse.ptr;
    out->kept = !code && !has_arrays && !strcmp(path, "-");
    if (out->kept) out->fd = in.fd;
    else close(in.fd);
    if (!code) return FS_OK;
    file_close(out);
    return FS_EFILE;
}

fs_result file_read(int fd, const char *name, file_matrix *out)
{
    const file_options none = {0};
    reader_source in = {name, fd, 0, 0, &none};
    memset(out, 0, sizeof *out);
    if (!measure(&in) && !read_source(&in, out)) return FS_OK;
    file_close(out);
    return FS_EFILE;
}

void file_close(file_matrix *file)
{
    if (file->map) munmap(file->map, file->map_bytes);
    if (file->kept) close(file->fd);
    for (int i = 0; i < 3; i++) free(file->memory[i]);
    memset(file, 0, sizeof *file);
}
