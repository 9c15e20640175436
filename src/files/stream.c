/* stream.c - a matrix in files, a panel at a time (flashsketch_files.h).
 *
 * Lines are contiguous in the files: rows of A, or its columns.  Shards whose lines continue from file to file make one
 * segment; where shards are joined across their lines (arrays in Fortran order), each is a segment of its own.  A
 * segment is cut into panels of so many lines, or of so many elements of so many lines.
 *
 * A file whose elements are not stored as they are in memory (Matrix Market, IDX, gzip) is read whole for its first
 * panel, and held until a panel of another file is read; its panels are cut and joined like others.  A sparse file is a
 * panel of its own.
 *
 * A read-ahead thread loads panels into the page cache before they are used, at little cost where they are there
 * already. panels.c loads panels within the memory that is allowed.
 *
 * A pipe is read in order where its panels follow one another in it; otherwise it is copied to a temporary file. */
#include "flashsketch_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "files/panels.h"

enum {
    /* Columns of a panel, if A has as many: every panel generates its part of S once more, so narrow panels cost time
     * (docs/files.md). */
    COLUMNS_LEAST = 128,
    SPAN_LEAST = 1 << 16 /* but bytes of each column, at least */
};
static const int64_t MEMORY = (int64_t)64 << 20;

/* A sparse file as a panel. */
static fs_result next_sparse(fs_stream *s, fs_panel *panel)
{
    const shard *in = &s->shards[s->next];
    FSI_TRY(panel_hold(s, in));
    panel->is_sparse = 1;
    panel->sparse = s->file.sparse;
    if (s->batch_major) panel->sparse.rows = in->cols, panel->sparse.cols = in->rows, panel->sparse.format = FS_CSC;
    panel->A = fs_row_major(NULL, panel->sparse.rows, panel->sparse.cols, s->dtype);
    *(s->batch_major ? &panel->col0 : &panel->row0) = in->first;
    s->next++;
    return FS_OK;
}

/* Whether the panels of a pipe do not follow one another in it. */
static int must_spool(const fs_stream *s, const shard *x)
{
    const segment *g = s->segments;
    while (x - s->shards >= g->shard + g->shards) g++;
    return x->pipe && g->step != g->width && g->step_lines != 1;
}

/* Copies a pipe to a temporary file. */
static fs_result spool_pipe(shard *x)
{
    reader_source copy = {.path = x->path, .options = &x->pipe->none};
    FSI_TRY(pipe_spool(x->pipe, &x->pipe->in, &x->fd));
    pipe_close(x->pipe);
    x->pipe = NULL;
    copy.fd = x->fd;
    FSI_TRY(source_measure(&copy));
    if (copy.bytes == x->bytes) return FS_OK;
    return fs_fail(FS_EFILE,
                   "%s: %" PRId64 " x %" PRId64 " elements and what is before them need %" PRId64 " bytes, "
                   "but %" PRId64 " came",
                   x->path, x->rows, x->cols, x->bytes, copy.bytes);
}

static void stop_reading(fs_stream *s)
{
    if (s->reads_ahead) ahead_stop(&s->ahead);
    s->started = s->reads_ahead = 0;
}

/* The steps that depend on how panels are cut, done at the first panel.  Where the system creates no thread, panels are
 * read when they are used. */
static fs_result start_reading(fs_stream *s)
{
    for (int64_t i = 0; i < s->count && !s->is_sparse; i++)
        if (must_spool(s, &s->shards[i])) FSI_TRY(spool_pipe(&s->shards[i]));
    s->ahead = (ahead){.bring = panel_bring, .user = s, .count = s->panels};
    s->reads_ahead = ahead_start(&s->ahead) == 0;
    s->started = 1;
    return FS_OK;
}

static fs_result next_dense(fs_stream *s, fs_panel *panel)
{
    const place at = place_of(s, s->next);
    char *data;
    FSI_TRY(panel_fetch(s, &at, &data));
    panel->A = s->by_columns ? fs_col_major(data, at.elements, at.lines, s->dtype)
                             : fs_row_major(data, at.lines, at.elements, s->dtype);
    panel->row0 = s->by_columns ? at.in->base + at.element : at.line;
    panel->col0 = s->by_columns ? at.line : at.in->base + at.element;
    s->next++;
    return FS_OK;
}

static fs_result next_panel(fs_stream *s, fs_panel *panel)
{
    if (s->next == s->panels) return FS_OK;
    if (!s->started) FSI_TRY(start_reading(s));
    if (s->reads_ahead) ahead_wait(&s->ahead, s->next);
    return s->is_sparse ? next_sparse(s, panel) : next_dense(s, panel);
}

fs_result fs_stream_next(fs_stream *s, fs_panel *panel)
{
    fs_panel full = FS_PANEL_INIT;
    FSI_REQUIRE(s && panel, "fs_stream_next: a pointer is NULL");
    FSI_TRY(fs_struct_check("fs_stream_next", "panel", panel, sizeof full));
    const fs_result result = next_panel(s, &full);
    fs_struct_write(panel, &full, sizeof full);
    return result;
}

fs_result fs_stream_seek(fs_stream *s, int64_t panel)
{
    FSI_REQUIRE(s, "fs_stream_seek: the stream is NULL");
    FSI_REQUIRE(panel >= 0 && panel <= s->panels, "fs_stream_seek: panel %" PRId64 " is not from 0 to %" PRId64, panel,
                s->panels);
    s->next = panel;
    return FS_OK;
}

int64_t fs_stream_panels(const fs_stream *s) { return s ? s->panels : 0; }

fs_result fs_stream_shape(const fs_stream *s, fs_matrix *A)
{
    FSI_REQUIRE(s && A, "fs_stream_shape: a pointer is NULL");
    *A = s->by_columns ? fs_col_major(NULL, s->rows, s->cols, s->dtype)
                       : fs_row_major(NULL, s->rows, s->cols, s->dtype);
    return FS_OK;
}

int fs_stream_is_sparse(const fs_stream *s) { return s && s->is_sparse; }

fs_result fs_stream_get_file(const fs_stream *s, int64_t i, fs_stream_file *file)
{
    FSI_REQUIRE(s && file, "fs_stream_get_file: a pointer is NULL");
    FSI_REQUIRE(i >= 0 && i < s->count, "fs_stream_get_file: the stream has %" PRId64 " files, and none is %" PRId64,
                s->count, i);
    const shard *x = &s->shards[i];
    const fs_stream_file full = {sizeof full, x->path, x->bytes, x->changed, x->start};
    FSI_TRY(fs_struct_check("fs_stream_get_file", "file", file, sizeof full));
    fs_struct_write(file, &full, sizeof full);
    return FS_OK;
}

/* opening ---------------------------------------------------------------------------------------------------- */

/* The order of an array; a single row or column is in both. */
typedef enum order { EITHER = -1, BY_ROWS, BY_COLUMNS } order;

/* Copies the properties of an open file; the shard takes over its descriptor or pipe. */
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
    to->kind = file->kind;
    to->kept = file->kept;
    to->fd = file->fd;
    to->pipe = file->pipe;
    file->kept = 0; /* owned by the shard now */
    file->pipe = NULL;
    return to->path ? FS_OK : fs_fail(FS_ENOMEM, "%s: no memory for its name", path);
}

/* Checks that shard i, of this type and order, can be joined to the first one. */
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
        return fs_fail(FS_EFILE,
                       "%s: its rows have %" PRId64 " elements, but those of %s have %" PRId64
                       "; files are joined row by row",
                       b->path, b->cols, a->path, a->cols);
    if (in != EITHER && in != all)
        return fs_fail(FS_EFILE,
                       "%s: it is stored by %s, but those before it by %s; the files of a matrix are in one "
                       "order",
                       b->path, in == BY_COLUMNS ? "columns" : "rows", all == BY_COLUMNS ? "columns" : "rows");
    return FS_OK;
}

/* Opens a file as shard i.  A single file that must be read whole is read now, and kept in s->file. */
static fs_result open_shard(fs_stream *s, int64_t i, const char *path, const file_options *how, fs_dtype *dtype,
                            order *in, int *sparse)
{
    file_matrix file;
    shard *x = &s->shards[i];
    FSI_TRY(file_open(path, how, &file));
    const fs_result result = take_file(x, path, &file, dtype, in, sparse);
    x->loaded = file.dense.data || file.sparse.ptr;
    if (x->loaded && result == FS_OK) {
        x->whole = 1;
        s->file = file;
    } else file_close(&file);
    return result;
}

static fs_result find_shards(fs_stream *s, const char *const *paths, const file_options *how, order *all)
{
    int64_t inputs = 0;
    *all = EITHER;
    for (int64_t i = 0; i < s->count; i++) inputs += paths[i] && !strcmp(paths[i], "-");
    if (inputs > 1)
        return fs_fail(FS_EFILE, "standard input can be only one of the files; it comes %" PRId64 " times", inputs);
    for (int64_t i = 0; i < s->count; i++) {
        fs_dtype dtype;
        order in;
        int sparse;
        FSI_REQUIRE(paths[i], "fs_stream_create: the name of file %" PRId64 " is NULL", i);
        FSI_TRY(open_shard(s, i, paths[i], how, &dtype, &in, &sparse));
        if (i == 0) s->dtype = dtype, s->is_sparse = sparse;
        if (*all == EITHER) *all = in;
        FSI_TRY(check_shard(s, i, dtype, in, *all, sparse));
        const int64_t most = INT64_MAX / (sparse ? 1 : s->shards[i].cols) / 8; /* so many rows that all their elements
                                                                                * can be counted */
        if (s->shards[i].rows > most - s->rows)
            return fs_fail(FS_EFILE, "%s: with it the files have more elements than can be counted", s->shards[i].path);
        s->rows += s->shards[i].rows;
    }
    s->cols = s->shards[0].cols;
    s->element = fsi_dtype_size(s->dtype);
    return FS_OK;
}

/* Cuts a segment into panels of at most `memory` bytes, or of one row where all panels have whole rows. */
static void cut(const fs_stream *s, segment *g)
{
    const int64_t room = s->memory / s->element > 0 ? s->memory / s->element : 1, unit = 32;
    int64_t lines = room / g->width, elements = g->width;
    if (s->whole_rows && s->by_columns) {
        lines = g->lines;
        elements = room / lines < 1 ? 1 : room / lines < g->width ? room / lines : g->width;
        if (elements > unit && elements < g->width) elements -= elements % unit;
    } else if (s->whole_rows && lines < 1) lines = 1;
    else if (lines < 1 || (s->by_columns && lines < COLUMNS_LEAST && lines < g->lines)) {
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

/* Segments, not yet cut into panels. */
static fs_result make_segments(fs_stream *s, int fortran)
{
    s->segment_count = fortran ? s->count : 1;
    s->segments = calloc((size_t)s->segment_count, sizeof *s->segments);
    if (!s->segments) return fs_fail(FS_ENOMEM, "no memory for %" PRId64 " files", s->count);
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
    return FS_OK;
}

/* The panels of all segments, for s->memory bytes. */
static void cut_all(fs_stream *s)
{
    if (s->is_sparse) return;
    s->panels = 0;
    for (int64_t i = 0; i < s->segment_count; i++) {
        cut(s, &s->segments[i]);
        s->panels += s->segments[i].panels;
    }
}

fs_result fs_stream_set_memory(fs_stream *s, int64_t memory)
{
    FSI_REQUIRE(s, "fs_stream_set_memory: the stream is NULL");
    FSI_REQUIRE(memory >= 1, "fs_stream_set_memory: memory is %" PRId64 ", it must be >= 1", memory);
    for (int64_t i = 0; i < s->count && s->started; i++)
        FSI_REQUIRE(!s->shards[i].pipe, "fs_stream_set_memory: a pipe is being read; give options.reread");
    stop_reading(s);
    panel_unmap(s);
    free(s->buffer);
    s->buffer = NULL;
    s->memory = memory;
    s->next = 0;
    cut_all(s);
    return FS_OK;
}

static fs_result open_all(fs_stream *s, const char *const *paths, const fs_stream_options *o)
{
    const file_options how = {.format = o->rows ? FILE_RAW : FILE_GUESS,
                              .tensor = s->tensor,
                              .rows = o->rows,
                              .cols = o->cols,
                              .dtype = o->dtype,
                              .by_columns = o->by_columns,
                              .locate = s->count == 1 ? 1 : 2,
                              .spool = o->reread,
                              .watch = o->progress,
                              .user = o->user};
    order all;
    s->how = (file_options){.tensor = s->tensor, .watch = o->progress, .user = o->user};
    FSI_TRY(find_shards(s, paths, &how, &all));
    s->batch_major = o->batch_major != 0;
    if (s->is_sparse) make_sparse_panels(s);
    else FSI_TRY(make_segments(s, all == BY_COLUMNS));
    cut_all(s);
    if (s->batch_major) { /* from the files' rows and columns to those of A */
        const int64_t samples = s->rows;
        s->rows = s->cols;
        s->cols = samples;
    }
    return FS_OK;
}

fs_result fs_stream_create(fs_stream **out, const char *const *paths, int64_t count, const fs_stream_options *options)
{
    fs_stream_options full = FS_STREAM_INIT;
    FSI_REQUIRE(out && paths, "fs_stream_create: a pointer is NULL");
    *out = NULL;
    if (options) FSI_TRY(fs_struct_read("fs_stream_create", "options", options, &full, sizeof full));
    FSI_REQUIRE(count >= 1, "fs_stream_create: count is %" PRId64 ", it must be >= 1", count);
    FSI_REQUIRE(full.memory >= 0, "fs_stream_create: options.memory is %" PRId64 ", it must be >= 0", full.memory);
    FSI_REQUIRE(full.threads >= 0 && full.threads <= FS_THREADS_MAX,
                "fs_stream_create: options.threads is %d, it must be from 0 (OpenMP's own number) to %d", full.threads,
                FS_THREADS_MAX);
    fs_stream *s = calloc(1, sizeof *s);
    if (s) s->shards = calloc((size_t)count, sizeof *s->shards);
    if (!s || !s->shards) {
        free(s);
        return fs_fail(FS_ENOMEM, "fs_stream_create: no memory for %" PRId64 " files", count);
    }
    s->count = count;
    s->slice = (fs_panel)FS_PANEL_INIT;
    if (full.tensor && !(s->tensor = strdup(full.tensor))) {
        fs_stream_destroy(s);
        return fs_fail(FS_ENOMEM, "fs_stream_create: no memory for the name of a tensor");
    }
    s->memory = full.memory ? full.memory : MEMORY;
    s->threads = full.threads;
    const fs_result result = open_all(s, paths, &full);
    if (result == FS_OK) *out = s;
    else fs_stream_destroy(s);
    return result;
}

void fs_stream_destroy(fs_stream *s)
{
    if (!s) return;
    stop_reading(s);
    for (int64_t i = 0; i < s->count; i++) {
        if (s->shards[i].kept && s->shards[i].fd >= 0) close(s->shards[i].fd);
        pipe_close(s->shards[i].pipe);
        free(s->shards[i].path);
    }
    panel_unmap(s);
    file_close(&s->file);
    free(s->buffer);
    free(s->tensor);
    free(s->segments);
    free(s->shards);
    free(s);
}
