/* panels.c - see panels.h.
 *
 * A panel that is contiguous in one file, stored as in memory, is mapped, by all threads, and unmapped when the next
 * one is requested.  Any other panel is copied into the stream's buffer by all threads (pread): over the end of a file,
 * pieces of lines, elements that are misaligned or of another type; and where there is no address space for a mapping.
 * What comes through a pipe is copied by one thread.
 *
 * Mapping is much faster than copying where the file system has large folios, and as fast with pages of 4 KiB
 * (docs/files.md).  MADV_POPULATE_READ (Linux 5.14) fails where touching a page would be a SIGBUS; then, and on older
 * systems, the panel is copied, and pread returns the error. */
#define _GNU_SOURCE /* preadv2 */
#include "files/panels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/math.h"

enum {
    ALIGNED = 64,    /* of the buffer */
    PIECE = 1 << 20, /* bytes that a thread copies at a time */
    BRING = 4 << 20, /* bytes that a thread maps at a time */
    PROBE = 1 << 17, /* bytes that are brought into the page cache at a time: as many as Linux reads ahead at once */
    WINDOW = 1 << 23 /* and that are requested at a time */
};

/* where a panel is ------------------------------------------------------------------------------------------- */

place place_of(const fs_stream *s, int64_t panel)
{
    const segment *g = s->segments;
    while (panel >= g->panels) panel -= g++->panels;
    const int64_t across = (g->width + g->step - 1) / g->step;
    place at = {g, panel / across * g->step_lines, g->step_lines, panel % across * g->step, g->step};
    if (at.lines > g->lines - at.line) at.lines = g->lines - at.line;
    if (at.elements > g->width - at.element) at.elements = g->width - at.element;
    return at;
}

/* The part of a panel that is in one shard: `runs` runs of `count` elements, `pitch` from one to the next, beginning
 * with its element `first`. */
typedef struct part {
    const shard *in;
    int64_t first, runs, count, pitch;
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
    const int64_t lines = (end < shard_end ? end : shard_end) - *line, pitch = at->in->width;
    part p = {low, (*line - low->first) * pitch + at->element, lines, at->elements, pitch};
    if (p.count == pitch) p.runs = 1, p.count *= lines;
    *line += lines;
    return p;
}

/* reading ---------------------------------------------------------------------------------------------------- */

/* The shard's file, opened again; -1 after a message.  shard_close is for what it returns. */
static int shard_open(const shard *in)
{
    struct stat about;
    const int fd = in->kept ? in->fd : open(in->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &about)) {
        (void)fs_fail(FS_EFILE, "%s: the file can no longer be opened (%s)", in->path, strerror(errno));
        if (fd >= 0 && !in->kept) close(fd);
        return -1;
    }
    const int64_t changed = about.st_mtim.tv_sec * INT64_C(1000000000) + about.st_mtim.tv_nsec;
    if (about.st_size == in->bytes && (changed == in->changed || in->kept)) return fd;
    (void)fs_fail(
        FS_EFILE, "%s: the file has changed while it was read: it had %" PRId64 " bytes and has %" PRId64 "%s",
        in->path, in->bytes, (int64_t)about.st_size, about.st_size == in->bytes ? ", but was written to" : "");
    if (!in->kept) close(fd);
    return -1;
}
static void shard_close(const shard *in, int fd)
{
    if (!in->kept) close(fd);
}

fs_result panel_hold(fs_stream *s, const shard *in)
{
    if (in->loaded) return FS_OK;
    const int fd = shard_open(in);
    if (fd < 0) return FS_EFILE;
    fs_result result = FS_OK;
    if (s->held != in) {
        file_close(&s->file);
        s->held = NULL;
        result = file_read(fd, in->path, &s->how, &s->file);
        if (result == FS_OK) {
            const int sparse = s->file.is_sparse;
            const int64_t rows = sparse ? s->file.sparse.rows : s->file.dense.rows;
            const int64_t cols = sparse ? s->file.sparse.cols : s->file.dense.cols;
            if (sparse == s->is_sparse && rows == in->rows && cols == in->cols &&
                (sparse || (s->file.dense.dtype == s->dtype && s->file.dense.data)))
                s->held = in;
            else
                result = fs_fail(FS_EFILE,
                                 "%s: the file has changed while it was read: it was %" PRId64 " x %" PRId64
                                 " and is %" PRId64 " x %" PRId64,
                                 in->path, in->rows, in->cols, rows, cols);
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

/* The next bytes of a pipe, converted; bytes before them that are not needed are skipped. */
static fs_result copy_pipe(const part *p, char *to)
{
    const shard *in = p->in;
    reader_stream *stream = &in->pipe->stream;
    const int64_t all = in->rows * in->cols * in->kind.bytes, from = p->first * in->kind.bytes;
    const int64_t at = stream->at - (stream->filled - stream->taken) - in->start;
    int64_t there = at;
    char passed[4096], name[48];
    if (at > from)
        return fs_fail(FS_EFILE,
                       "%s: byte %" PRId64 " of a pipe is needed again, after byte %" PRId64 "; to read "
                       "panels twice give a file",
                       in->path, from, at);
    while (there < from) {
        const int64_t left = from - there, step = left < (int64_t)sizeof passed ? left : (int64_t)sizeof passed;
        const int64_t got = reader_more(stream, passed, step);
        if (got < 0) return reader_failure(got);
        there += got;
        if (got < step) break;
    }
    if (there == from) {
        const int64_t got = reader_values(stream, &in->kind, p->count, p->count, to);
        if (got < 0) return reader_failure(got);
        there += got;
    }
    const int ends = there < from + p->count * in->kind.bytes;
    const int64_t more = !ends && there == all ? reader_more(stream, passed, 1) : 0;
    if (more < 0) return reader_failure(more);
    if (!ends && !more) return FS_OK;
    return fs_fail(FS_EFILE, "%s: %" PRId64 " x %" PRId64 " %s needs %" PRId64 " bytes, but %s%" PRId64 " came",
                   in->path, in->rows, in->cols, reader_kind_name(&in->kind, name, sizeof name), all,
                   more ? "more than " : "only ", there);
}

static int threads_for(const fs_stream *s, int64_t pieces) { return pieces > 1 ? fs_thread_count(s->threads) : 1; }

/* Copies a part to `to`, from its file, or from the memory that holds all of it. */
static fs_result copy_part(fs_stream *s, const part *p, char *to)
{
    const int64_t piece = PIECE / s->element, pieces = (p->count + piece - 1) / piece, all = p->runs * pieces;
    if (p->in->pipe) return copy_pipe(p, to);
    if (p->in->whole) FSI_TRY(panel_hold(s, p->in));
    const char *held = p->in->whole ? s->file.dense.data : NULL;
    const int fd = held ? -1 : shard_open(p->in);
    int wrong = 0;
    if (!held && fd < 0) return FS_EFILE;
#pragma omp parallel for num_threads(threads_for(s, all)) schedule(dynamic)
    for (int64_t i = 0; i < all; i++) {
        const int64_t run = i / pieces, at = i % pieces * piece, left = p->count - at;
        const int64_t count = left < piece ? left : piece, from = p->first + run * p->pitch + at;
        char *here = to + (run * p->count + at) * s->element;
        if (held) memcpy(here, held + from * s->element, (size_t)(count * s->element));
        const int64_t offset = p->in->start + from * p->in->kind.bytes;
        const int code = held ? 0 : reader_pread(fd, offset, count, &p->in->kind, here);
        if (code) {
#pragma omp atomic write
            wrong = code;
        }
    }
    if (held) return FS_OK;
    shard_close(p->in, fd);
    if (!wrong) return FS_OK;
    return fs_fail(FS_EFILE, "%s: the file could not be read (%s)", p->in->path,
                   wrong < 0 ? "it has become shorter" : strerror(wrong));
}

/* Whether the byte at an offset is in the page cache; 0 also where that cannot be known. */
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

/* Brings bytes of a file into the page cache: requests WINDOW of them and waits for the first PROBE, so that the disk
 * always has requests queued. */
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
    const int64_t bytes = p->in->kind.bytes;
    const int fd = p->in->pipe || p->in->loaded ? -1 : shard_open(p->in);
    if (fd < 0) return;
    if (p->in->whole) bring_run(fd, 0, p->in->bytes, nowhere, stop);
    for (int64_t run = 0; !p->in->whole && run < p->runs; run++)
        bring_run(fd, p->in->start + (p->first + run * p->pitch) * bytes, p->count * bytes, nowhere, stop);
    shard_close(p->in, fd);
}

void panel_bring(void *stream, int64_t panel, const atomic_int *stop)
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
        if (!p.in->whole || p.first == 0) bring_part(&p, nowhere, stop); /* a whole file once */
    }
    free(nowhere);
}

/* mapping ---------------------------------------------------------------------------------------------------- */

static void give_back(fs_stream *s)
{
    if (s->used_bytes) (void)madvise(s->used, (size_t)s->used_bytes, MADV_DONTNEED);
    s->used_bytes = 0;
}

void panel_unmap(fs_stream *s)
{
    if (s->mapped) munmap(s->map, (size_t)s->mapped->bytes);
    s->mapped = NULL;
    s->used_bytes = 0;
}

/* The mapping of a shard's file; there is one at a time.  FS_EFILE: the file has changed. */
static fs_result map_shard(fs_stream *s, const shard *in)
{
    const int fd = shard_open(in);
    if (fd < 0) return FS_EFILE;
    if (s->mapped != in) {
        panel_unmap(s);
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
    const int64_t page = sysconf(_SC_PAGESIZE), offset = p->in->start + p->first * s->element;
    const int64_t first = offset / page * page;
    const int64_t end = (offset + p->count * s->element + page - 1) / page * page;
    const int64_t pieces = (end - first + BRING - 1) / BRING;
    int wrong = 0;
    if (p->runs != 1 || offset % s->element || p->in->pipe || !reader_is_native(&p->in->kind)) return FS_OK;
    FSI_TRY(map_shard(s, p->in));
    if (s->mapped != p->in) return FS_OK;
    if (s->used_bytes == end - first && s->used == s->map + first) { /* the only panel, requested again */
        *data = s->map + offset;
        return FS_OK;
    }
    give_back(s);
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
    if (!wrong) *data = s->map + offset;
#else
    (void)s, (void)p, (void)data;
#endif
    return FS_OK;
}

/* Where a part is in the memory that holds its file; *data stays NULL where it must be copied. */
static fs_result held_part(fs_stream *s, const part *p, char **data)
{
    FSI_TRY(panel_hold(s, p->in));
    if (p->runs == 1) *data = (char *)s->file.dense.data + p->first * s->element;
    return FS_OK;
}

/* The stream's buffer has room for its largest panel.  FS_ENOMEM: no memory for it. */
static fs_result make_buffer(fs_stream *s)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < s->segment_count; i++) {
        const segment *g = &s->segments[i];
        bytes = fsi_max(bytes, fsi_min(g->step_lines, g->lines) * g->step * s->element);
    }
    s->buffer = aligned_alloc(ALIGNED, (size_t)fsi_round_up(bytes, ALIGNED));
    if (s->buffer) return FS_OK;
    return fs_fail(FS_ENOMEM,
                   "%s: no memory for a panel of %" PRId64
                   " bytes; give less memory to panels, or allow more (ulimit -v)",
                   s->shards[0].path, bytes);
}

fs_result panel_fetch(fs_stream *s, const place *at, char **data)
{
    int64_t line = at->line;
    const int64_t end = at->line + at->lines;
    const part first = part_of(s, at, &line);
    *data = NULL;
    if (line != end || first.in->whole) give_back(s);
    if (line == end) FSI_TRY(first.in->whole ? held_part(s, &first, data) : map_part(s, &first, data));
    if (*data) return FS_OK;
    give_back(s);
    if (!s->buffer) FSI_TRY(make_buffer(s));
    char *to = s->buffer;
    for (line = at->line; line < end;) {
        const part p = part_of(s, at, &line);
        FSI_TRY(copy_part(s, &p, to));
        to += p.runs * p.count * s->element;
    }
    *data = s->buffer;
    return FS_OK;
}
