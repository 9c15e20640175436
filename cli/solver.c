/* solver.c - see solver.h. */
#include "solver.h"

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
    o->paths = (const char *const *)argv + 1;
    o->files = argc - 1;
    return input_paths(&o->input, argc, argv);
}

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
    if (fs_stream_set_memory(s->files.stream, o->stream.memory ? o->stream.memory : MEMORY) ||
        fs_stream_slices(s->files.stream, &s->slices))
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
    if (files && output_open_several(paths, files)) return EXIT_FAILURE;
    return open_files(s);
}

void solver_close(solver *s)
{
    progress_end(&s->bar);
    for (int i = 0; i < s->count; i++)
        if (!s->outputs[i].is_mapped) free(s->outputs[i].data);
    fs_context_destroy(s->ctx);
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
    return written ? output_close() : 0;
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
