/* sketching.c - see sketching.h. */
#include "sketching.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

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
    if (o->every >= 0 && !o->resume)
        return cli_usage(command, "--every is the interval of the states of --resume; give --resume too");
    return 0;
}

/* opening ---------------------------------------------------------------------------------------------------- */

int sketching_open(sketching *s, const char *const *paths, int64_t files, const input_options *how,
                   const sketching_options *o, int threads, int reread, progress *bar)
{
    fs_stream_options options = how->file;
    fs_matrix A;
    *s = (sketching){.o = o, .batch_major = options.batch_major, .files = files, .file = {bar, input_name(paths[0])}};
    s->whole = files == 1 && !o->memory && !o->resume;
    if (files > 1) snprintf(s->name, sizeof s->name, "%s and %" PRId64 " more", s->file.name, files - 1);
    else snprintf(s->name, sizeof s->name, "%s", s->file.name);
    options.threads = threads;
    options.reread = reread;
    options.progress = input_progress;
    options.user = &s->file;
    if (fs_stream_create(&s->stream, paths, files, &options) || fs_stream_shape(s->stream, &A))
        return cli_library_fail();
    s->is_sparse = fs_stream_is_sparse(s->stream);
    s->d = A.rows;
    s->n = A.cols;
    s->dtype = A.dtype;
    snprintf(s->id.reads, sizeof s->id.reads, "%s by %s", fs_file_dtype_name(A.dtype),
             s->is_sparse        ? "entries"
             : A.col_stride == 1 ? "rows"
                                 : "columns");
    return 0;
}

int sketching_context(const sketching *A, const sketching *B, const fs_context_options *where, fs_context **ctx)
{
    fs_context_options options = *where;
    const sketching *sparse = A->is_sparse ? A : B && B->is_sparse ? B : NULL;
    if (sparse && options.backend == FS_BACKEND_CUDA)
        return cli_fail("%s is sparse, and a sparse matrix in a file is sketched by the CPU only; use --device cpu or "
                        "auto",
                        sparse->file.name);
    if (sparse) options.backend = FS_BACKEND_CPU;
    return fs_context_create(ctx, &options) ? cli_library_fail() : 0;
}

/* The memory of panels where --memory is not given: four times Y, because every panel of rows reads and writes Y, and
 * enough for long segments of many samples of a batch; for a GPU, enough to need few calls. */
static int64_t choose_memory(const sketching *s, const fs_context *ctx, int64_t k)
{
    const int64_t least = (int64_t)64 << 20, most = (int64_t)192 << 20;
    if (fs_context_backend(ctx) != FS_BACKEND_CPU) return most;
    const int64_t y = s->batch_major ? 0 : s->n > most / k ? most : k * s->n * 4;
    return 4 * y < least ? least : 4 * y > most ? most : 4 * y;
}

int sketching_begin(sketching *s, const fs_context *ctx, int64_t k)
{
    s->id.memory = s->o->memory ? s->o->memory : choose_memory(s, ctx, k);
    return fs_stream_set_memory(s->stream, s->id.memory) ? cli_library_fail() : 0;
}

int sketching_keep(sketching *s, const char *output)
{
    if (!s->o->resume) return 0;
    return checkpoint_start(&s->state, output, s->o->every < 0 ? EVERY_SECONDS : (double)s->o->every);
}

/* the product ------------------------------------------------------------------------------------------------ */

/* The description of this run; with --resume, the part of it that the state has. */
static int identify(sketching *s, const fs_spec *spec, int64_t row0, fs_matrix *Y)
{
    identity *id = &s->id;
    id->definition = fs_definition_version();
    id->spec = *spec;
    id->n = s->n;
    id->dtype = Y->dtype;
    id->rows = cli_array(1, 1, sizeof *id->rows);
    if (!id->rows) return cli_fail("no memory for a range of rows");
    id->count = 1;
    *id->rows = (identity_rows){row0, row0 + s->d};
    if (!s->o->resume) return 0;
    id->panels = fs_stream_panels(s->stream);
    id->file = cli_array(s->files, 1, sizeof *id->file);
    if (!id->file) return cli_fail("no memory for %" PRId64 " files", s->files);
    id->files = s->files;
    for (int64_t i = 0; i < id->files; i++) {
        fs_stream_file file = FS_STREAM_FILE_INIT;
        if (fs_stream_get_file(s->stream, i, &file)) return cli_library_fail();
        id->file[i] = (identity_file){file.bytes, file.changed_ns, file.start};
    }
    return checkpoint_load(&s->state, id, s->stream, Y);
}

/* The elements of a panel in the type of Y, where sums of the panel's own type are of another. */
static int convert_panel(sketching *s, fs_context *ctx, fs_panel *p, fs_dtype dtype)
{
    const fs_dtype from = p->is_sparse ? p->sparse.dtype : p->A.dtype;
    if (cli_sum_dtype(from) == dtype) return 0;
    const int64_t count = p->is_sparse ? p->sparse.nnz : p->A.rows * p->A.cols; /* packed */
    const size_t bytes = (size_t)count * fs_dtype_size(dtype);
    if (bytes > s->converted_bytes) {
        free(s->converted);
        s->converted = malloc(bytes);
        s->converted_bytes = s->converted ? bytes : 0;
    }
    if (bytes && !s->converted)
        return cli_fail("no memory for %" PRId64 " elements of %s as %s; give a smaller --memory", count, s->name,
                        fs_file_dtype_name(dtype));
    const fs_matrix in = p->is_sparse ? fs_row_major(p->sparse.value, 1, count, from) : p->A;
    fs_matrix out = in;
    out.data = s->converted, out.dtype = dtype;
    if (fs_add(ctx, &in, 1, 0.0, &out)) return cli_library_fail();
    if (p->is_sparse) p->sparse.value = s->converted, p->sparse.dtype = dtype;
    else p->A.data = s->converted, p->A.dtype = dtype;
    return 0;
}

int sketching_run(sketching *s, fs_context *ctx, const fs_sketch *S, const fs_spec *spec, int64_t row0, fs_matrix *Y)
{
    const int code = identify(s, spec, row0, Y);
    if (code) return code;
    const int64_t panels = fs_stream_panels(s->stream);
    fs_panel p = FS_PANEL_INIT;
    if (fs_stream_seek(s->stream, s->id.done)) return cli_library_fail();
    for (;;) {
        progress_at(s->file.bar, (double)s->id.done / (double)panels, "sketching %s%s", s->file.name,
                    s->files > 1 ? " ..." : "");
        if (fs_stream_next(s->stream, &p)) return cli_library_fail();
        if (!p.A.rows) return 0;
        if (convert_panel(s, ctx, &p, Y->dtype)) return EXIT_FAILURE;
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
}
