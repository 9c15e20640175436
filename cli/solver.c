/* solver.c - see solver.h. */
#include "solver.h"

#include <flashsketch_extend.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "output.h"

static const int64_t MEMORY = (int64_t)192 << 20; /* of a panel: few calls for a GPU, and a small share of a machine's
                                                   * memory */

/* the command line ------------------------------------------------------------------------------------------- */

int solver_option(const char *command, int code, const char *value, solver_options *o)
{
    if (code == SPEC_SEED) return cli_seed(command, value, &o->seed);
    if (input_is_option(code)) return input_option(command, code, value, &o->input);
    if (sketching_is_option(code)) return sketching_option(command, code, value, &o->stream);
    if (where_is_option(code)) return where_option(command, code, value, &o->where);
    if (code == SOLVER_JSON) return o->json = 1, 0;
    if (code == 'q') return o->quiet = 1, 0;
    return -1;
}

int solver_arguments(solver_options *o, int argc, char **argv)
{
    o->command = argv[0];
    o->paths = (const char *const *)argv + 1;
    o->files = argc - 1;
    return input_paths(&o->input, argc, argv);
}

static int64_t solver_memory(const solver *s) { return s->o->stream.memory ? s->o->stream.memory : MEMORY; }

/* reads of A ------------------------------------------------------------------------------------------------- */

static fs_result begin_read(void *user)
{
    solver *s = user;
    s->read++;
    s->panel = 0;
    return s->slices.rewind(s->slices.user);
}

static fs_result next_rows(void *user, fs_matrix *dense, const fs_sparse **sparse)
{
    solver *s = user;
    progress_at(&s->bar, (double)s->panel++ / (double)fs_stream_panels(s->files.stream), "read %" PRId64 " of %s%s%s",
                s->read, s->files.name, s->doing[0] ? ": " : "", s->doing);
    return s->slices.next(s->slices.user, dense, sparse);
}

static void note_progress(void *user, double share, const char *doing)
{
    solver *s = user;
    (void)share; /* of the total, which is not known in advance; the bar shows the share of a read */
    snprintf(s->doing, sizeof s->doing, "%.*s", (int)strcspn(doing, ","), doing); /* after it, the number of a read */
}

/* the state of a run ------------------------------------------------------------------------------------------- */

static fs_result load_sums(void *user, int64_t read, void *sums, size_t bytes, int64_t *rows)
{
    solver *s = user;
    const passes_read *found = passes_find(&s->state, read);
    *rows = 0;
    if (!found) return FS_OK;
    if ((uint64_t)found->bytes != bytes || found->rows > s->d)
        return fs_fail(FS_EFILE,
                       "%s: read %" PRId64 " has %" PRId64 " bytes of sums of %" PRId64 " rows, but in this run they "
                       "are %zu bytes of at most %" PRId64 " rows; remove it to start again",
                       s->state.state.path, read, found->bytes, found->rows, bytes, s->d);
    s->read = read;
    s->panel = found->panels;
    *rows = found->rows;
    memcpy(sums, s->state.sums + found->at, bytes);
    return *rows < s->d ? fs_stream_seek(s->files.stream, s->panel) : FS_OK;
}

static int is_due(void *user, int64_t read, int64_t rows)
{
    const solver *s = user;
    (void)read;
    return rows == s->d || cli_seconds() >= s->state.state.next; /* a state has the sums of all reads that are done */
}

static fs_result save_sums(void *user, int64_t read, const void *sums, size_t bytes, int64_t rows)
{
    solver *s = user;
    const passes_read now = {read, (int64_t)bytes, rows, s->panel, 0};
    return passes_save(&s->state, &now, sums);
}

/* The state is beside the first output, and is none of the outputs. */
static int start_state(solver *s)
{
    const sketching_options *how = &s->o->stream;
    const char *first = NULL;
    for (int i = s->count - 1; i >= 0; i--)
        if (s->outputs[i].path) first = s->outputs[i].path;
    int code = sketching_check(s->o->command, how, first);
    if (code || !how->resume) return code;
    code = passes_start(&s->state, first, sketching_every(how));
    for (int i = 0; i < s->count && !code; i++)
        if (s->outputs[i].path && !strcmp(s->outputs[i].path, s->state.state.path))
            code = cli_usage(s->o->command, "--resume keeps its state in %s; name another output", s->outputs[i].path);
    return code;
}

/* What the sums of any solver depend on. */
static void describe(solver *s)
{
    passes *p = &s->state;
    passes_text(p, "the command", s->o->command);
    passes_text(p, "the version", fs_version());
    passes_whole(p, "definition", fs_definition_version());
    passes_files(p, "A", &s->files);
    passes_whole(p, "d =", s->d);
    passes_whole(p, "n =", s->n);
    passes_text(p, "elements of A", s->files.id.reads);
    passes_whole(p, "--memory", solver_memory(s));
    passes_text(p, "--device", fs_backend_name(fs_context_backend(s->ctx)));
    passes_exact(p, "--seed", s->o->seed);
}

int solver_resume(solver *s)
{
    if (!s->state.is_kept) return 0;
    const fs_checkpoint all = {sizeof all, load_sums, is_due, save_sums, s};
    s->checkpoint = all;
    s->passes.checkpoint = &s->checkpoint;
    return passes_load(&s->state);
}

/* opening and closing ------------------------------------------------------------------------------------------ */

static int open_files(solver *s)
{
    const solver_options *o = s->o;
    int code = sketching_open(&s->files, o->paths, o->files, &o->input, &o->stream, o->where.threads, 1, &s->bar);
    if (!code) code = sketching_context(&s->files, NULL, &o->where, &s->ctx);
    if (code) return code;
    const fs_slices start = FS_SLICES_INIT;
    const fs_operand operand = FS_OPERAND_INIT;
    s->slices = start;
    s->A = operand;
    if (fs_stream_set_memory(s->files.stream, solver_memory(s)) || fs_stream_slices(s->files.stream, &s->slices))
        return cli_library_fail();
    s->passes = s->slices;
    s->passes.rewind = begin_read, s->passes.next = next_rows, s->passes.user = s;
    s->A.slices = &s->passes;
    s->progress = (fs_progress){note_progress, s};
    s->d = s->files.d, s->n = s->files.n, s->dtype = s->files.dtype;
    s->sum = cli_sum_dtype(s->dtype);
    return 0;
}

int solver_open(solver *s, const solver_options *o, solver_output *outputs, int count)
{
    const char *paths[OUTPUT_MOST];
    int files = 0;
    memset(s, 0, sizeof *s);
    s->o = o, s->outputs = outputs, s->count = count;
    s->bar = progress_start(1, o->quiet);
    for (int i = 0; i < count; i++)
        if (outputs[i].path) outputs[i].number = files, paths[files++] = outputs[i].path;
    int code = start_state(s);
    if (code) return code;
    if (files && output_open_several(paths, files)) return EXIT_FAILURE;
    code = open_files(s);
    if (!code) describe(s);
    return code;
}

void solver_close(solver *s)
{
    progress_end(&s->bar);
    for (int i = 0; i < s->count; i++)
        if (!s->outputs[i].is_mapped) free(s->outputs[i].data);
    fs_context_destroy(s->ctx);
    passes_free(&s->state);
    sketching_close(&s->files);
    output_abandon();
}

/* outputs ---------------------------------------------------------------------------------------------------- */

/* The same as in src/files, for types and vectors that a matrix of the library does not have. */
static void write_header(FILE *file, const solver_output *o, char type)
{
    enum { HEADER = 128, BEFORE = 10 };
    const uint16_t one = 1;
    const char order = *(const char *)&one ? '<' : '>';
    char header[HEADER + 1], shape[48];
    if (o->cols) snprintf(shape, sizeof shape, "(%" PRId64 ", %" PRId64 ")", o->rows, o->cols);
    else snprintf(shape, sizeof shape, "(%" PRId64 ",)", o->rows);
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = HEADER - BEFORE;
    header[9] = 0;
    const int length = snprintf(header + BEFORE, HEADER - BEFORE,
                                "{'descr': '%c%c%d', 'fortran_order': False, 'shape': %s, }", order, type, o->bytes,
                                shape);
    header[BEFORE + length] = ' ';
    header[HEADER - 1] = '\n';
    fwrite(header, 1, HEADER, file);
}

int solver_room(solver_output *o, const char *what, int64_t rows, int64_t cols, char type, int bytes)
{
    o->rows = rows, o->cols = cols, o->bytes = bytes;
    const int64_t width = cols ? cols : 1, all = rows > INT64_MAX / bytes / width ? -1 : rows * width * bytes;
    if (o->path && all >= 0) {
        write_header(output_stream(o->number), o, type);
        if (output_map(o->number, all, &o->data)) return EXIT_FAILURE;
        o->is_mapped = o->data != NULL;
        if (o->is_mapped) return 0;
    }
    o->data = all >= 0 ? calloc(1, (size_t)all + 1) : NULL;
    if (o->data) return 0;
    return cli_fail("no memory for %s, %" PRId64 " x %" PRId64 " elements of %d bytes", what, rows, width, bytes);
}

fs_matrix solver_matrix(const solver_output *o)
{
    return fs_row_major(o->data, o->rows, o->cols ? o->cols : 1, o->bytes == 8 ? FS_F64 : FS_F32);
}

int solver_write(solver *s)
{
    int written = 0;
    progress_end(&s->bar);
    for (int i = 0; i < s->count; i++) {
        solver_output *o = &s->outputs[i];
        if (!o->path) continue;
        written = 1;
        const size_t count = (size_t)(o->rows * (o->cols ? o->cols : 1));
        if (!o->is_mapped) fwrite(o->data, (size_t)o->bytes, count, output_stream(o->number));
    }
    const int code = written ? output_close() : 0;
    if (!code) passes_end(&s->state);
    return code;
}

int solver_fail(const solver *s, fs_result result)
{
    return result == FS_EINVAL ? cli_input_fail(s->files.name) : cli_library_fail();
}

int solver_is_piped(const solver *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->outputs[i].path && !strcmp(s->outputs[i].path, "-")) return 1;
    return 0;
}

/* printing --------------------------------------------------------------------------------------------------- */

void solver_print_head(const solver *s)
{
    printf("A         %s, %" PRId64 " x %" PRId64 "%s\n", s->files.name, s->d, s->n,
           s->files.is_sparse ? ", sparse" : "");
}

cJSON *solver_json(const solver *s)
{
    cJSON *out = cJSON_CreateObject();
    json_whole(out, "rows", s->d);
    json_whole(out, "cols", s->n);
    cJSON_AddStringToObject(out, "dtype", fs_dtype_name(s->dtype));
    json_exact(out, "seed", s->o->seed);
    json_device(out, s->ctx);
    return out;
}
