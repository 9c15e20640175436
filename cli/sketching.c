/* sketching.c - see sketching.h. */
#include "sketching.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "base/dtype.h"
#include "multiply.h"

enum { EVERY_SECONDS = 30 };

/* options ---------------------------------------------------------------------------------------------------- */

int sketching_is_option(int code) { return code >= SKETCHING_MEMORY && code <= SKETCHING_EVERY; }

int sketching_option(const char *command, int code, const char *value, sketching_options *o)
{
    if (code == SKETCHING_MEMORY) return cli_size(command, "--memory", value, 4096, &o->memory);
    if (code == SKETCHING_EVERY) return cli_number(command, "--every", value, 0, 86400, &o->every);
    o->resume = 1;
    return 0;
}

int sketching_check(const char *command, const sketching_options *o, const char *output)
{
    if (o->resume && (!output || !strcmp(output, "-")))
        return cli_usage(command, "--resume keeps its state beside the output; name one with -o FILE");
    if (o->every >= 0 && !o->resume) return cli_usage(command, "--every says how often --resume writes its state");
    return 0;
}

/* opening ---------------------------------------------------------------------------------------------------- */

int sketching_open(sketching *s, const char *const *paths, int64_t files, const input_options *how,
                   const sketching_options *o, progress *bar)
{
    input_options first = *how;
    *s = (sketching){.o = o, .how = how, .paths = paths, .files = files, .bar = bar};
    s->panels = how->locate == 2 || files > 1 || o->memory || o->resume;
    if (s->panels) first.locate = 2;
    if (input_open(paths[0], &first, bar, &s->in)) return EXIT_FAILURE;
    if (files > 1) snprintf(s->name, sizeof s->name, "%s and %" PRId64 " more", s->in.name, files - 1);
    else snprintf(s->name, sizeof s->name, "%s", s->in.name);
    s->d = s->in.d;
    s->n = s->in.n;
    s->dtype = s->in.dtype;
    return 0;
}

/* How much of A is in memory where it is not said: four times Y, which every panel of rows reads and writes again, and
 * enough for long pieces of many samples of a batch; a GPU wants few calls. */
static int64_t choose_memory(const sketching *s, const fs_context *ctx, int64_t k)
{
    const int64_t least = (int64_t)64 << 20, most = (int64_t)192 << 20;
    char where[64];
    fs_context_describe(ctx, where, sizeof where);
    if (strncmp(where, "cpu", 3)) return most;
    const int64_t y = s->how->batch_major ? 0 : s->n > most / k ? most : k * s->n * 4;
    return 4 * y < least ? least : 4 * y > most ? most : 4 * y;
}

static int open_stream(sketching *s, int threads)
{
    const file_options *file = &s->how->file;
    fs_stream_options how = FS_STREAM_INIT;
    fs_matrix A;
    how.memory = s->id.memory;
    how.threads = threads;
    how.batch_major = s->how->batch_major;
    how.tensor = file->tensor;
    how.rows = file->rows;
    how.cols = file->cols;
    how.dtype = file->dtype;
    how.by_columns = file->by_columns;
    if (stream_open(&s->stream, s->paths, s->files, &how, &s->in.file) || fs_stream_shape(s->stream, &A))
        return cli_library_fail();
    s->d = A.rows;
    s->n = A.cols;
    snprintf(s->id.reads, sizeof s->id.reads, "%s by %s", file_dtype_name(A.dtype),
             s->in.is_sparse     ? "entries"
             : A.col_stride == 1 ? "rows"
                                 : "columns");
    return 0;
}

int sketching_begin(sketching *s, const fs_context *ctx, int64_t k, int threads)
{
    s->id.memory = s->o->memory ? s->o->memory : choose_memory(s, ctx, k);
    return s->panels || (!s->in.is_sparse && !s->in.A.data) ? open_stream(s, threads) : 0;
}

int sketching_keep(sketching *s, const char *output)
{
    if (!s->o->resume) return 0;
    return checkpoint_start(&s->state, output, s->o->every < 0 ? EVERY_SECONDS : (double)s->o->every);
}

/* the product ------------------------------------------------------------------------------------------------ */

/* What this run makes; with --resume, what of it the state has. */
static int identify(sketching *s, const fs_spec *spec, int64_t row0, fs_matrix *Y)
{
    identity *id = &s->id;
    id->definition = fs_definition_version();
    id->spec = *spec;
    id->n = s->n;
    id->dtype = Y->dtype;
    id->rows = cli_array(1, 1, sizeof *id->rows);
    if (!id->rows) return cli_fail("there is no memory for a range of rows");
    id->count = 1;
    *id->rows = (identity_rows){row0, row0 + s->d};
    if (!s->o->resume) return 0;
    id->panels = fs_stream_panels(s->stream);
    id->file = cli_array(s->files, 1, sizeof *id->file);
    if (!id->file) return cli_fail("there is no memory for %" PRId64 " files", s->files);
    id->files = s->files;
    for (int64_t i = 0; i < id->files; i++) {
        const stream_file file = stream_file_at(s->stream, i);
        id->file[i] = (identity_file){file.bytes, file.changed, file.start};
    }
    return checkpoint_load(&s->state, id, s->stream, Y);
}

/* The elements of a panel in the type `dtype`, where the panel's own has sums of another. */
static int convert(sketching *s, fs_panel *p, fs_dtype dtype)
{
    const fs_dtype from = p->is_sparse ? p->sparse.dtype : p->A.dtype;
    if (fsi_dtype_sum(from) == dtype) return 0;
    const int64_t count = p->is_sparse ? p->sparse.nnz : p->A.rows * p->A.cols; /* packed */
    const size_t bytes = (size_t)count * (size_t)fsi_dtype_size(dtype);
    if (bytes > s->converted_bytes) {
        free(s->converted);
        s->converted = malloc(bytes);
        s->converted_bytes = s->converted ? bytes : 0;
    }
    if (bytes && !s->converted)
        return cli_fail("there is no memory for %" PRId64 " elements of %s as %s; give a smaller --memory", count,
                        s->name, file_dtype_name(dtype));
    const void *data = p->is_sparse ? p->sparse.value : p->A.data;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) fsi_store(s->converted, dtype, i, fsi_load(data, from, i));
    if (p->is_sparse) p->sparse.value = s->converted, p->sparse.dtype = dtype;
    else p->A.data = s->converted, p->A.dtype = dtype;
    return 0;
}

static int multiply_stream(sketching *s, fs_context *ctx, const fs_sketch *S, int64_t row0, const fs_matrix *Y)
{
    const int64_t panels = fs_stream_panels(s->stream);
    fs_panel p = FS_PANEL_INIT;
    if (fs_stream_seek(s->stream, s->id.done)) return cli_library_fail();
    for (;;) {
        progress_at(s->bar, (double)s->id.done / (double)panels, "sketching %s%s", s->in.name,
                    s->files > 1 ? " ..." : "");
        if (fs_stream_next(s->stream, &p)) return cli_library_fail();
        if (!p.A.rows) return 0;
        if (convert(s, &p, Y->dtype)) return EXIT_FAILURE;
        fs_matrix to = *Y;
        to.cols = p.A.cols;
        to.offset += p.col0 * to.col_stride;
        const double beta = p.row0 ? 1.0 : 0.0;
        if (p.is_sparse ? fs_apply_sparse(ctx, S, row0 + p.row0, 1.0, &p.sparse, beta, &to)
                        : fs_apply(ctx, S, row0 + p.row0, 1.0, &p.A, beta, &to))
            return cli_library_fail();
        s->id.done++;
        if (s->o->resume && s->id.done < panels) checkpoint_save(&s->state, &s->id, Y);
    }
}

int sketching_run(sketching *s, fs_context *ctx, const fs_sketch *S, const fs_spec *spec, int64_t row0, fs_matrix *Y)
{
    const int code = identify(s, spec, row0, Y);
    if (code) return code;
    return s->stream ? multiply_stream(s, ctx, S, row0, Y) : multiply(ctx, S, spec, &s->in, row0, Y, s->bar);
}

void sketching_save(sketching *s, const fs_matrix *Y)
{
    if (!s->o->resume) return;
    s->state.next = 0; /* it is due */
    checkpoint_save(&s->state, &s->id, Y);
}

void sketching_end(sketching *s)
{
    if (s->o && s->o->resume) checkpoint_end(&s->state);
}

void sketching_close(sketching *s)
{
    free(s->converted);
    identity_free(&s->id);
    fs_stream_destroy(s->stream);
    input_close(&s->in);
}
