/* stream.c - a matrix in files, a panel at a time (flashsketch_files.h).
 *
 * Lines are what is contiguous in the files: rows of A, or its columns.  Shards whose lines go on from file to file
 * make one segment; where shards are joined across their lines (arrays in Fortran order), each is a segment of its own.
 * A segment is cut into panels of so many lines, or of so many elements of so many lines.
 *
 * A file whose elements are not in it as they are in memory (Matrix Market, IDX, gzip) is read whole when the first
 * panel of it is asked for, and held until one of another file is: panels are cut and joined as they are of others.  A
 * sparse file is a panel of its own.
 *
 * A thread of its own brings panels into the page cache before they are asked for; where they are there already it
 * costs next to nothing.  A panel that lies in one piece in one file is mapped where it is, by all threads, and given
 * back when the next one is asked for, so that memory is what it was said to be.  Any other panel is copied into a
 * buffer by all threads (pread): over the end of a file, pieces of lines, elements that are misaligned or in the other
 * byte order.
 *
 * Mapping 2 GiB took 2 ms where the file system has large folios (ext4 of Linux 6.18, a file written in pieces of 4
 * MiB), and copying them 60 ms on two cores; with pages of 4 KiB both took about as long.  MADV_POPULATE_READ (Linux
 * 5.14) fails where touching a page would be a SIGBUS; then, and where there is none, the panel is copied, and pread
 * tells what is wrong with the file. */
#define _GNU_SOURCE /* preadv2 */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ahead.h"
#include "error.h"
#include "reader.h"

enum {
    PIECE = 1 << 20,    /* bytes that a thread copies at a time */
    BRING = 4 << 20,    /* bytes that a thread maps at a time */
    PROBE = 1 << 17,    /* bytes that are brought into the page cache at a time: as many as Linux reads ahead at once */
    WINDOW = 1 << 23,   /* and that are asked for at a time */
    /* Columns of a panel, if A has them, because every panel makes its part of S again: on a CPU, 128 columns of 2^20
     * rows took 1.5 times as long in panels of 64, 3 times in panels of 16, 48 times one by one. */
    COLUMNS_LEAST = 128,
    SPAN_LEAST = 1 << 16, /* but bytes of each column, at least */
    ALIGNED = 64
};
static const int64_t MEMORY = (int64_t)64 << 20;

typedef struct shard {
    char *path;
    int kept, fd;           /* standard input stays open, in fd */
    int whole;              /* it is read whole, and `start` is 0 */
    int64_t bytes, changed;
    int64_t start;          /* of its elements in the file */
    int64_t rows, cols;     /* of its array */
    int64_t first, lines;   /* its lines in its segment; of a sparse one its rows in all files */
} shard;

typedef struct segment {
    int64_t shard, shards;        /* the first, and how many */
    int64_t lines, width;         /* width: elements of a line */
    int64_t base;                 /* where its elements (not its lines) begin in A */
    int64_t step_lines, step;     /* lines of a panel, and elements of each */
    int64_t panels;
} segment;

struct fs_stream {
    shard *shards;
    segment *segments;
    int64_t count, segment_count;
    int is_sparse;         /* every file is, and there are no segments */
    int batch_major;
    int by_columns;        /* lines are columns of A */
    int64_t rows, cols, element;
    fs_dtype dtype;
    int threads;           /* as fs_thread_count takes them */
    int64_t panels, next, memory;
    char *buffer;
    const shard *mapped;   /* whose file is at `map`, whole; NULL: none */
    char *map, *used;      /* used: the pages of the last panel, if it was mapped */
    int64_t used_bytes;
    const shard *held;     /* which of those that are read whole is in `file`; NULL: none */
    file_matrix file;
    int reads_ahead;       /* the thread is there */
    ahead ahead;
};

/* where a panel is ------------------------------------------------------------------------------------------- */

typedef struct place {
    const segment *in;
    int64_t line, lines, element, elements; /* of the segment */
} place;

static place place_of(const fs_stream *s, int64_t panel)
{
    const segment *g = s->segments;
    while (panel >= g->panels) panel -= g++->panels;
    const int64_t across = (g->width + g->step - 1) / g->step;
    place at = {g, panel / across * g->step_lines, g->step_lines, panel % across * g->step, g->step};
    if (at.lines > g->lines - at.line) at.lines = g->lines - at.line;
    if (at.elements > g->width - at.element) at.elements = g->width - at.element;
    return at;
}

/* The part of a panel that is in one shard: `runs` runs of `bytes` bytes, `pitch` from one to the next in the file. */
typedef struct part {
    const shard *in;
    int64_t offset, runs, bytes, pitch;
} part;

/* The part that begins with a line of the panel; *line becomes the first line after it. */
static part part_of(const fs_stream *s, const place *at, int64_t *line)
{
    const shard *low = s->shards + at->in->shard, *high = low + at->in->shards; /* the line is in low ... high - 1 */
    while (high - low > 1) {
        const shard *middle = low + (high - low) / 2;
        if (middle->first <= *line) low = middle;
        else high = middle;
    }
    const int64_t end = at->line + at->lines, shard_end = low->first + low->lines;
    const int64_t lines = (end < shard_end ? end : shard_end) - *line, pitch = at->in->width * s->element;
    part p = {low, low->start + (*line - low->first) * pitch + at->element * s->element, lines,
              at->elements * s->element, pitch};
    if (p.bytes == pitch) p.runs = 1, p.bytes *= lines;
    *line += lines;
    return p;
}

/* reading ---------------------------------------------------------------------------------------------------- */

/* The shard's file, opened again; -1 after saying why not.  shard_close is for what it returns. */
static int shard_open(const shard *in)
{
    struct stat about;
    const int fd = in->kept ? in->fd : open(in->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &about)) {
        (void)fs_fail(FS_EFILE, "%s: the file cannot be opened any more (%s)", in->path, strerror(errno));
        if (fd >= 0 && !in->kept) close(fd);
        return -1;
    }
    const int64_t changed = about.st_mtim.tv_sec * INT64_C(1000000000) + about.st_mtim.tv_nsec;
    if (about.st_size == in->bytes && (changed == in->changed || in->kept)) return fd;
    (void)fs_fail(FS_EFILE, "%s: the file has changed while it was read: it had %" PRId64 " bytes and has %" PRId64
                  "%s", in->path, in->bytes, (int64_t)about.st_size,
                  about.st_size == in->bytes ? ", but was written to" : "");
    if (!in->kept) close(fd);
    return -1;
}
static void shard_close(const shard *in, int fd)
{
    if (!in->kept) close(fd);
}

/* Reads a shard that is read whole, unless it is held.  FS_EFILE: it is damaged, or not what it was. */
static fs_result hold(fs_stream *s, const shard *in)
{
    const int fd = shard_open(in);
    if (fd < 0) return FS_EFILE;
    fs_result result = FS_OK;
    if (s->held != in) {
        file_close(&s->file);
        s->held = NULL;
        result = file_read(fd, in->path, &s->file);
        if (result == FS_OK) {
            const int sparse = s->file.is_sparse;
            const int64_t rows = sparse ? s->file.sparse.rows : s->file.dense.rows;
            const int64_t cols = sparse ? s->file.sparse.cols : s->file.dense.cols;
            if (sparse == s->is_sparse && rows == in->rows && cols == in->cols &&
                (sparse || (s->file.dense.dtype == s->dtype && s->file.dense.data)))
                s->held = in;
            else
                result = fs_fail(FS_EFILE, "%s: the file has changed while it was read: it was %" PRId64 " x %" PRId64
                                 " and is %" PRId64 " x %" PRId64, in->path, in->rows, in->cols, rows, cols);
        }
    }
    shard_close(in, fd);
    return result;
}

/* Returns 0, an errno, or -1 where the file ends before. */
static int read_all(int fd, char *to, int64_t bytes, int64_t offset)
{
    while (bytes > 0) {
        const ssize_t got = pread(fd, to, (size_t)bytes, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got ? errno : -1;
        to += got, bytes -= got, offset += got;
    }
    return 0;
}

static int threads_for(const fs_stream *s, int64_t pieces)
{
    return pieces > 1 ? fs_thread_count(s->threads) : 1;
}

/* Copies a part to `to`, from its file, or from the memory that holds all of it. */
static fs_result copy_part(fs_stream *s, const part *p, char *to)
{
    const int64_t pieces = (p->bytes + PIECE - 1) / PIECE, all = p->runs * pieces;
    if (p->in->whole) FS_TRY(hold(s, p->in));
    const char *held = p->in->whole ? s->file.dense.data : NULL;
    const int fd = held ? -1 : shard_open(p->in);
    int wrong = 0;
    if (!held && fd < 0) return FS_EFILE;
#pragma omp parallel for num_threads(threads_for(s, all)) schedule(dynamic)
    for (int64_t i = 0; i < all; i++) {
        const int64_t run = i / pieces, at = i % pieces * PIECE, left = p->bytes - at;
        const int64_t bytes = left < PIECE ? left : PIECE, from = p->offset + run * p->pitch + at;
        char *here = to + run * p->bytes + at;
        if (held) memcpy(here, held + from, (size_t)bytes);
        const int code = held ? 0 : read_all(fd, here, bytes, from);
        if (code) {
#pragma omp atomic write
            wrong = code;
        }
    }
    if (held) return FS_OK;
    shard_close(p->in, fd);
    if (!wrong) {
        reader_native(to, p->runs * p->bytes / s->element, s->element);
        return FS_OK;
    }
    return fs_fail(FS_EFILE, "%s: the file could not be read (%s)", p->in->path,
                   wrong < 0 ? "it has become shorter" : strerror(wrong));
}

/* Whether the byte at an offset is in the page cache; 0 also where nobody knows. */
static int is_cached(int fd, int64_t offset)
{
#ifdef RWF_NOWAIT
    char byte;
    struct iovec to = {&byte, 1};
    return preadv2(fd, &to, 1, (off_t)offset, RWF_NOWAIT) == 1;
#else
    return (void)fd, (void)offset, 0;
#endif
}

/* Brings bytes of a file into the page cache: asks for WINDOW of them and waits for the first PROBE, so that a disk has
 * always enough to do. */
static void bring_run(int fd, int64_t offset, int64_t bytes, char *nowhere, const atomic_int *stop)
{
    int64_t asked = 0;
    for (int64_t i = 0; i < bytes && !*stop; i += PROBE) {
        const int64_t here = bytes - i < PROBE ? bytes - i : PROBE;
        if (is_cached(fd, offset + i) && is_cached(fd, offset + i + here - 1)) continue;
        if (asked < i) asked = i;
        for (; asked < bytes && asked < i + WINDOW; asked += PROBE)
            (void)posix_fadvise(fd, (off_t)(offset + asked), PROBE, POSIX_FADV_WILLNEED);
        (void)read_all(fd, nowhere, here, offset + i);
    }
}

/* Brings a part into the page cache; all of a file that is read whole. */
static void bring_part(const part *p, char *nowhere, const atomic_int *stop)
{
    const int fd = shard_open(p->in);
    if (fd < 0) return;
    if (p->in->whole) bring_run(fd, 0, p->in->bytes, nowhere, stop);
    for (int64_t run = 0; !p->in->whole && run < p->runs; run++)
        bring_run(fd, p->offset + run * p->pitch, p->bytes, nowhere, stop);
    shard_close(p->in, fd);
}

/* Brings a panel into the page cache.  What goes wrong here goes wrong again, and is told, when it is copied. */
static void bring(void *stream, int64_t panel, const atomic_int *stop)
{
    const fs_stream *s = stream;
    char *nowhere = malloc(PROBE);
    if (s->is_sparse) {
        const part all = {.in = &s->shards[panel]};
        if (nowhere) bring_part(&all, nowhere, stop);
        free(nowhere);
        return;
    }
    const place at = place_of(s, panel);
    for (int64_t line = at.line; nowhere && line < at.line + at.lines && !*stop;) {
        const part p = part_of(s, &at, &line);
        if (!p.in->whole || p.offset == 0) bring_part(&p, nowhere, stop); /* a whole file once */
    }
    free(nowhere);
}

/* mapping ---------------------------------------------------------------------------------------------------- */

static void give_back(fs_stream *s)
{
    if (s->used_bytes) (void)madvise(s->used, (size_t)s->used_bytes, MADV_DONTNEED);
    s->used_bytes = 0;
}

static void unmap(fs_stream *s)
{
    if (s->mapped) munmap(s->map, (size_t)s->mapped->bytes);
    s->mapped = NULL;
    s->used_bytes = 0;
}

/* The mapping of a shard's file, the only one there is.  FS_EFILE: the file is not what it was. */
static fs_result map_shard(fs_stream *s, const shard *in)
{
    const int fd = shard_open(in);
    if (fd < 0) return FS_EFILE;
    if (s->mapped != in) {
        unmap(s);
        void *map = mmap(NULL, (size_t)in->bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED) s->map = map, s->mapped = in;
    }
    shard_close(in, fd);
    return FS_OK;
}

/* Where a part is mapped; *data stays NULL where it must be copied. */
static fs_result map_part(fs_stream *s, const part *p, char **data)
{
#ifdef MADV_POPULATE_READ
    const int64_t page = sysconf(_SC_PAGESIZE), first = p->offset / page * page;
    const int64_t end = (p->offset + p->bytes + page - 1) / page * page, pieces = (end - first + BRING - 1) / BRING;
    int wrong = 0;
    if (p->runs != 1 || p->offset % s->element || !reader_is_little()) return FS_OK;
    FS_TRY(map_shard(s, p->in));
    if (s->mapped != p->in) return FS_OK;
#pragma omp parallel for num_threads(threads_for(s, pieces)) schedule(dynamic)
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t at = first + i * BRING, left = end - at;
        if (madvise(s->map + at, (size_t)(left < BRING ? left : BRING), MADV_POPULATE_READ)) {
#pragma omp atomic write
            wrong = 1;
        }
    }
    s->used = s->map + first;
    s->used_bytes = end - first;
    if (!wrong) *data = s->map + p->offset;
#else
    (void)s, (void)p, (void)data;
#endif
    return FS_OK;
}

/* Where a part is in the memory that holds its file; *data stays NULL where it must be copied. */
static fs_result held_part(fs_stream *s, const part *p, char **data)
{
    FS_TRY(hold(s, p->in));
    if (p->runs == 1) *data = (char *)s->file.dense.data + p->offset;
    return FS_OK;
}

/* The elements of a panel: where they are, or copied. */
static fs_result fetch(fs_stream *s, const place *at, char **data)
{
    int64_t line = at->line;
    const int64_t end = at->line + at->lines;
    const part first = part_of(s, at, &line);
    char *to = s->buffer;
    give_back(s);
    *data = NULL;
    if (line == end) FS_TRY(first.in->whole ? held_part(s, &first, data) : map_part(s, &first, data));
    if (*data) return FS_OK;
    give_back(s);
    for (line = at->line; line < end;) {
        const part p = part_of(s, at, &line);
        FS_TRY(copy_part(s, &p, to));
        to += p.runs * p.bytes;
    }
    *data = s->buffer;
    return FS_OK;
}

/* A sparse file as a panel. */
static fs_result next_sparse(fs_stream *s, fs_panel *panel)
{
    const shard *in = &s->shards[s->next];
    FS_TRY(hold(s, in));
    panel->is_sparse = 1;
    panel->sparse = s->file.sparse;
    if (s->batch_major) panel->sparse.rows = in->cols, panel->sparse.cols = in->rows, panel->sparse.format = FS_CSC;
    panel->A = fs_row_major(NULL, panel->sparse.rows, panel->sparse.cols, s->dtype);
    *(s->batch_major ? &panel->col0 : &panel->row0) = in->first;
    s->next++;
    return FS_OK;
}

fs_result fs_stream_next(fs_stream *s, fs_panel *panel)
{
    FS_REQUIRE(s && panel, "fs_stream_next: a pointer is NULL");
    memset(panel, 0, sizeof *panel);
    if (s->next == s->panels) return FS_OK;
    ahead_wait(&s->ahead, s->next);
    if (s->is_sparse) return next_sparse(s, panel);
    const place at = place_of(s, s->next);
    char *data;
    FS_TRY(fetch(s, &at, &data));
    panel->A = s->by_columns ? fs_col_major(data, at.elements, at.lines, s->dtype)
                             : fs_row_major(data, at.lines, at.elements, s->dtype);
    panel->row0 = s->by_columns ? at.in->base + at.element : at.line;
    panel->col0 = s->by_columns ? at.line : at.in->base + at.element;
    s->next++;
    return FS_OK;
}

fs_result fs_stream_seek(fs_stream *s, int64_t panel)
{
    FS_REQUIRE(s, "fs_stream_seek: the stream is NULL");
    FS_REQUIRE(panel >= 0 && panel <= s->panels, "fs_stream_seek: panel %" PRId64 " is not from 0 to %" PRId64, panel,
               s->panels);
    s->next = panel;
    return FS_OK;
}

int64_t fs_stream_panels(const fs_stream *s) { return s ? s->panels : 0; }

fs_result fs_stream_shape(const fs_stream *s, fs_matrix *A)
{
    FS_REQUIRE(s && A, "fs_stream_shape: a pointer is NULL");
    *A = s->by_columns ? fs_col_major(NULL, s->rows, s->cols, s->dtype)
                       : fs_row_major(NULL, s->rows, s->cols, s->dtype);
    return FS_OK;
}

int64_t stream_files(const fs_stream *s) { return s->count; }

stream_file stream_file_at(const fs_stream *s, int64_t file)
{
    const shard *x = &s->shards[file];
    return (stream_file){x->path, x->bytes, x->changed, x->start};
}

/* opening ---------------------------------------------------------------------------------------------------- */

file_options stream_how(const fs_stream_options *o)
{
    return (file_options){.format = o->rows ? FILE_RAW : FILE_GUESS, .tensor = o->tensor, .rows = o->rows,
                          .cols = o->cols, .dtype = o->dtype, .by_columns = o->by_columns, .locate = 2};
}

/* In which order an array is: of a single row or column, in either. */
typedef enum order { EITHER = -1, BY_ROWS, BY_COLUMNS } order;

/* What a located file says; *file is closed. */
static fs_result take_file(shard *to, const char *path, file_matrix *file, fs_dtype *dtype, order *in, int *sparse)
{
    const fs_matrix *dense = &file->dense;
    *sparse = file->is_sparse;
    to->path = strdup(strcmp(path, "-") ? path : "standard input");
    to->bytes = file->bytes;
    to->changed = file->changed;
    to->start = file->start;
    to->whole = file->whole;
    to->rows = *sparse ? file->sparse.rows : dense->rows;
    to->cols = *sparse ? file->sparse.cols : dense->cols;
    *dtype = *sparse ? file->sparse.dtype : dense->dtype;
    *in = *sparse || to->rows == 1 || to->cols == 1 ? EITHER : dense->col_stride == 1 ? BY_ROWS : BY_COLUMNS;
    to->kept = file->kept;
    to->fd = file->fd;
    file->kept = 0; /* it is ours now */
    file_close(file);
    return to->path ? FS_OK : fs_fail(FS_ENOMEM, "%s: there is no memory for its name", path);
}

/* That shard i, of this type and order, goes with the first one. */
static fs_result check_shard(const fs_stream *s, int64_t i, fs_dtype dtype, order in, order all, int sparse)
{
    const shard *a = s->shards, *b = a + i;
    if (sparse != s->is_sparse)
        return fs_fail(FS_EFILE, "%s: it is %s, but %s is %s; the files of a matrix are all of one kind", b->path,
                       sparse ? "sparse" : "dense", a->path, sparse ? "dense" : "sparse");
    if (dtype != s->dtype)
        return fs_fail(FS_EFILE, "%s: it holds %s, but %s holds %s; the files of a matrix are of one type", b->path,
                       file_dtype_name(dtype), a->path, file_dtype_name(s->dtype));
    if (b->cols != a->cols)
        return fs_fail(FS_EFILE, "%s: its rows have %" PRId64 " elements, but those of %s have %" PRId64
                       "; files are joined row by row", b->path, b->cols, a->path, a->cols);
    if (in != EITHER && in != all)
        return fs_fail(FS_EFILE, "%s: it is stored by %s, but those before it by %s; the files of a matrix are in one "
                       "order", b->path, in == BY_COLUMNS ? "columns" : "rows", all == BY_COLUMNS ? "columns" : "rows");
    for (const shard *before = a; b->kept && before < b; before++)
        if (before->kept) return fs_fail(FS_EFILE, "standard input can be only one of the files");
    return FS_OK;
}

static fs_result find_shards(fs_stream *s, const char *const *paths, const file_options *how, file_matrix *first,
                             order *all)
{
    *all = EITHER;
    for (int64_t i = 0; i < s->count; i++) {
        file_matrix file = {0};
        fs_dtype dtype;
        order in;
        int sparse;
        FS_REQUIRE(paths[i], "fs_stream_open: the name of file %" PRId64 " is NULL", i);
        if (i == 0 && first) file = *first, memset(first, 0, sizeof *first);
        else FS_TRY(file_open(paths[i], how, &file));
        FS_TRY(take_file(&s->shards[i], paths[i], &file, &dtype, &in, &sparse));
        if (i == 0) s->dtype = dtype, s->is_sparse = sparse;
        if (*all == EITHER) *all = in;
        FS_TRY(check_shard(s, i, dtype, in, *all, sparse));
        const int64_t most = INT64_MAX / (sparse ? 1 : s->shards[i].cols) / 8; /* rows of which all elements count */
        if (s->shards[i].rows > most - s->rows)
            return fs_fail(FS_EFILE, "%s: with it the files have more elements than can be counted", s->shards[i].path);
        s->rows += s->shards[i].rows;
    }
    s->cols = s->shards[0].cols;
    s->element = fs_dtype_size(s->dtype);
    return FS_OK;
}

/* Cuts a segment into panels of at most `memory` bytes. */
static void cut(const fs_stream *s, segment *g)
{
    const int64_t room = s->memory / s->element > 0 ? s->memory / s->element : 1, unit = 32;
    int64_t lines = room / g->width, elements = g->width;
    if (lines < 1 || (s->by_columns && lines < COLUMNS_LEAST && lines < g->lines)) {
        const int64_t most = room * s->element / SPAN_LEAST;
        lines = s->by_columns ? (most < COLUMNS_LEAST ? most : COLUMNS_LEAST) : 1;
        if (lines > g->lines) lines = g->lines;
        if (lines < 1) lines = 1;
        elements = room / lines < g->width ? room / lines : g->width;
        if (elements > unit && elements < g->width) elements -= elements % unit;
    } else if (lines > unit) lines -= lines % unit; /* whole lines of a shuffle, and of Philox calls */
    g->step_lines = lines;
    g->step = elements;
    g->panels = (g->lines + lines - 1) / lines * ((g->width + elements - 1) / elements);
}

/* The panels of sparse files. */
static void make_sparse_panels(fs_stream *s)
{
    for (int64_t i = 1; i < s->count; i++) s->shards[i].first = s->shards[i - 1].first + s->shards[i - 1].rows;
    s->panels = s->count;
}

/* Segments and panels. */
static fs_result make_segments(fs_stream *s, int fortran)
{
    s->segment_count = fortran ? s->count : 1;
    s->segments = calloc((size_t)s->segment_count, sizeof *s->segments);
    if (!s->segments) return fs_fail(FS_ENOMEM, "there is no memory for %" PRId64 " files", s->count);
    s->by_columns = fortran != s->batch_major;
    for (int64_t i = 0, row = 0; i < s->count; i++) {
        shard *x = &s->shards[i];
        segment *g = &s->segments[fortran ? i : 0];
        if (!g->shards) *g = (segment){.shard = i, .width = fortran ? x->rows : x->cols, .base = fortran ? row : 0};
        x->first = g->lines;
        x->lines = fortran ? x->cols : x->rows;
        g->lines += x->lines;
        g->shards++;
        row += x->rows;
    }
    for (int64_t i = 0; i < s->segment_count; i++) {
        cut(s, &s->segments[i]);
        s->panels += s->segments[i].panels;
    }
    return FS_OK;
}

static fs_result make_buffer(fs_stream *s)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < s->segment_count; i++) {
        const segment *g = &s->segments[i];
        const int64_t lines = g->step_lines < g->lines ? g->step_lines : g->lines, need = lines * g->step * s->element;
        if (need > bytes) bytes = need;
    }
    s->buffer = aligned_alloc(ALIGNED, (size_t)((bytes + ALIGNED - 1) / ALIGNED * ALIGNED));
    if (s->buffer) return FS_OK;
    return fs_fail(FS_ENOMEM, "there is no memory for a panel of %" PRId64 " bytes; allow less", bytes);
}

static fs_result open_all(fs_stream *s, const char *const *paths, const fs_stream_options *o, file_matrix *first)
{
    const file_options how = stream_how(o);
    order all;
    FS_TRY(find_shards(s, paths, &how, first, &all));
    s->batch_major = o->batch_major != 0;
    if (s->is_sparse) make_sparse_panels(s);
    else {
        FS_TRY(make_segments(s, all == BY_COLUMNS));
        FS_TRY(make_buffer(s));
    }
    if (s->batch_major) { /* from the files' rows and columns to those of A */
        const int64_t samples = s->rows;
        s->rows = s->cols;
        s->cols = samples;
    }
    s->ahead = (ahead){.bring = bring, .user = s, .count = s->panels};
    const int code = ahead_start(&s->ahead);
    if (code) return fs_fail(FS_ENOMEM, "there is no thread to read ahead (%s)", strerror(code));
    s->reads_ahead = 1;
    return FS_OK;
}

fs_result fs_stream_open(fs_stream **out, const char *const *paths, int64_t count, const fs_stream_options *options)
{
    return stream_open(out, paths, count, options, NULL);
}

fs_result stream_open(fs_stream **out, const char *const *paths, int64_t count, const fs_stream_options *options,
                      file_matrix *first)
{
    const fs_stream_options none = FS_STREAM_INIT;
    FS_REQUIRE(out && paths, "fs_stream_open: a pointer is NULL");
    *out = NULL;
    if (!options) options = &none;
    FS_REQUIRE(options->size == sizeof *options, "fs_stream_open: options.size is %zu, it must be %zu; start from "
               "FS_STREAM_INIT", options->size, sizeof *options);
    FS_REQUIRE(count >= 1, "fs_stream_open: %" PRId64 " files are not a matrix", count);
    FS_REQUIRE(options->memory >= 0, "fs_stream_open: options.memory is %" PRId64, options->memory);
    FS_REQUIRE(options->threads >= 0 && options->threads <= FS_THREADS_MAX,
               "fs_stream_open: options.threads is %d, it must be from 0 (OpenMP's own number) to %d", options->threads,
               FS_THREADS_MAX);
    fs_stream *s = calloc(1, sizeof *s);
    if (s) s->shards = calloc((size_t)count, sizeof *s->shards);
    if (!s || !s->shards) {
        free(s);
        return fs_fail(FS_ENOMEM, "fs_stream_open: there is no memory for %" PRId64 " files", count);
    }
    s->count = count;
    s->memory = options->memory ? options->memory : MEMORY;
    s->threads = options->threads;
    const fs_result result = open_all(s, paths, options, first);
    if (result == FS_OK) *out = s;
    else fs_stream_close(s);
    return result;
}

void fs_stream_close(fs_stream *s)
{
    if (!s) return;
    if (s->reads_ahead) ahead_stop(&s->ahead);
    for (int64_t i = 0; i < s->count; i++) {
        if (s->shards[i].kept) close(s->shards[i].fd);
        free(s->shards[i].path);
    }
    unmap(s);
    file_close(&s->file);
    free(s->buffer);
    free(s->segments);
    free(s->shards);
    free(s);
}
