/* task.c - see task.h. */
#include "task.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "cli.h"
#include "exact.h"
#include "output.h"

/* the command line ------------------------------------------------------------------------------------------- */

int task_option(const char *command, int code, const char *value, task_options *o)
{
    if (spec_is_option(code) || input_is_option(code) || sketching_is_option(code) || code == SPEC_ERROR)
        o->about_A = code;
    if (spec_is_option(code)) return spec_option(command, code, value, &o->spec);
    if (code == SPEC_ERROR) return spec_error_option(command, value, &o->error);
    if (input_is_option(code)) return input_option(command, code, value, &o->input);
    if (sketching_is_option(code)) return sketching_option(command, code, value, &o->stream);
    if (where_is_option(code)) return where_option(command, code, value, &o->where);
    if (code == TASK_JSON) return o->json = 1, 0;
    if (code == TASK_FROM) return o->from = 1, 0;
    if (code == 'q') return o->quiet = 1, 0;
    return -1;
}

/* Options that exclude --from. */
static int check_from(const cli_command *command, const task_options *o, int rhs)
{
    char text[64];
    if (o->exact)
        return cli_usage(command->name, "--exact reads A again, and --from has only its sketch; leave one of them out");
    if (o->rhs_files)
        return cli_usage(command->name, "--from takes the sketch of B as its second file; leave --rhs out");
    for (const cli_option *option = command->options; o->about_A && option->code; option++)
        if (option->code == o->about_A) {
            cli_option_text(option, text, sizeof text);
            return cli_usage(command->name, "--from reads existing sketches, which define S; leave '%s' out",
                             text + strspn(text, " "));
        }
    if (o->files != 1 + rhs)
        return cli_usage(command->name, "--from takes %s, but got %" PRId64 " file%s",
                         rhs ? "two files, the sketch of A and that of B" : "one file, the sketch of A", o->files,
                         o->files == 1 ? "" : "s");
    return 0;
}

int task_arguments(const cli_command *command, task_options *o, int rhs, int argc, char **argv)
{
    o->paths = (const char *const *)argv + 1;
    o->files = argc - 1;
    if (o->from) return check_from(command, o, rhs);
    const int code = input_paths(&o->input, argc, argv);
    if (code) return code;
    if (rhs && !o->rhs_files) return cli_usage(command->name, "name the file of B, with --rhs FILE");
    const int wrong = spec_error_check(command->name, &o->spec, o->error, "S");
    return wrong ? wrong : sketching_check(command->name, &o->stream, o->output);
}

/* opening ---------------------------------------------------------------------------------------------------- */

int task_dense(task *t)
{
    fs_panel all = FS_PANEL_INIT;
    if (t->dense.data) return 0;
    const int code = input_whole(t->A.stream, &all);
    return code ? code : exact_dense(t->A.name, &all, &t->dense, &t->copy);
}

/* The sketch of one of the matrices, in the workspace.  The state of B is kept until A is sketched too. */
static int sketch(task *t, sketching *s, fs_matrix *to)
{
    fs_matrix Y = *to;
    if (to->memory != FS_MEMORY_HOST)
        Y = fs_row_major(cli_array(Y.rows, Y.cols, fs_dtype_size(Y.dtype)), Y.rows, Y.cols, Y.dtype);
    if (!Y.data)
        return cli_fail("no memory for a sketch of %" PRId64 " x %" PRId64 "; give a smaller -k", to->rows, to->cols);
    int code = sketching_run(s, t->ctx, t->S, &t->spec, 0, &Y);
    if (!code && s == &t->rhs) sketching_save(s, &Y);
    if (!code && to->memory != FS_MEMORY_HOST && fs_add(t->ctx, &Y, 1, 0.0, to)) code = cli_library_fail();
    if (to->memory != FS_MEMORY_HOST) free(Y.data);
    return code;
}

static int task_fill(task *t)
{
    fs_matrix Y, C;
    const double start = cli_seconds();
    if (fs_workspace_views(t->w, &Y, &C)) return cli_library_fail();
    int code = t->rhs_name ? sketch(t, &t->rhs, &C) : 0;
    if (!code) code = sketch(t, &t->A, &Y);
    if (!code && fs_workspace_set_sketch(t->w, t->S)) code = cli_library_fail();
    t->sketch_seconds = cli_seconds() - start;
    return code;
}

/* The files of A and B; the context must suit both. */
static int open_files(task *t, int64_t basis)
{
    static const input_options plain = INPUT_INIT;
    const task_options *o = t->o;
    fs_context_options where = o->where;
    const int threads = where.threads, reread = o->exact || basis;
    int code = sketching_open(&t->A, o->paths, o->files, &o->input, &o->stream, threads, reread, &t->bar);
    if (!code && o->rhs_files)
        code = sketching_open(&t->rhs, o->rhs, o->rhs_files, &plain, &o->stream, threads, o->exact, &t->bar);
    if (code) return code;
    if ((basis || o->exact) && where.backend == FS_BACKEND_CUDA)
        return cli_fail("a matrix in a file is %s by the CPU only; use --device cpu or auto",
                        basis ? "given a basis" : "compared exactly");
    if (basis || o->exact) where.backend = FS_BACKEND_CPU;
    if (basis) code = fs_context_create(&t->ctx, &where) ? cli_library_fail() : 0;
    else code = sketching_context(&t->A, o->rhs_files ? &t->rhs : NULL, &where, &t->ctx);
    t->spec = o->spec;
    if (!code) code = spec_for_error(&t->spec, o->error, t->A.d, basis && basis < t->A.n ? basis : t->A.n);
    if (!code) code = sketching_begin(&t->A, t->ctx, t->spec.k);
    if (!code && o->rhs_files) code = sketching_begin(&t->rhs, t->ctx, t->spec.k);
    t->in.name = t->A.name, t->in.d = t->A.d, t->in.n = t->A.n;
    return code;
}

static int check_shapes(task *t)
{
    if (t->o->spec.d && t->o->spec.d != t->in.d)
        return cli_fail("%s has %" PRId64 " rows, but -d is %" PRId64 "; leave -d out", t->in.name, t->in.d,
                        t->o->spec.d);
    if (!t->o->rhs_files) return 0;
    if (t->rhs.d != t->in.d)
        return cli_fail("%s has %" PRId64 " rows, but %s has %" PRId64, t->rhs.name, t->rhs.d, t->in.name, t->in.d);
    t->rhs_name = t->rhs.name;
    t->B = fs_row_major(NULL, t->rhs.d, t->rhs.n, t->rhs.dtype);
    return 0;
}

/* States beside the output, one for each matrix. */
static int keep(task *t)
{
    char name[PATH_MAX];
    int code = t->o->output ? sketching_keep(&t->A, t->o->output) : 0;
    if (code || !t->rhs_name || !t->o->stream.resume) return code;
    const int length = snprintf(name, sizeof name, "%s" OUTPUT_RHS, t->o->output);
    if (length < 0 || (size_t)length >= sizeof name)
        return cli_fail("the name of the output is too long (%zu bytes); give a shorter one", strlen(t->o->output));
    return sketching_keep(&t->rhs, name);
}

int task_workspace(task *t, int64_t basis)
{
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    shape.k = t->spec.k, shape.n = basis ? basis : t->in.n, shape.rhs = t->B.cols;
    shape.dtype = t->sum;
    shape.basis = basis ? t->in.d : 0;
    return fs_workspace_create(&t->w, t->ctx, &shape) ? cli_library_fail() : 0;
}

static int open_all(task *t, int64_t basis)
{
    int code = open_files(t, basis);
    if (!code) code = check_shapes(t);
    if (!code && t->o->exact) code = exact_possible(t);
    if (code) return code;
    fs_spec spec = t->spec;
    spec.d = t->in.d;
    t->sum = cli_sum_dtype(t->A.dtype);
    code = spec_sketch(&spec, &t->S, &t->spec);
    if (!code) code = keep(t);
    if (!code) code = task_workspace(t, basis && t->in.n < basis ? t->in.n : basis);
    return code || basis ? code : task_fill(t);
}

int task_open(task *t, const task_options *o, int64_t basis)
{
    memset(t, 0, sizeof *t);
    t->o = o;
    t->bar = progress_start(1, o->quiet);
    for (int64_t i = 0; i < o->rhs_files; i++)
        if (claims_input(o->rhs[i])) return EXIT_FAILURE;
    for (int64_t i = 0; o->from && i < o->files; i++)
        if (claims_input(o->paths[i]) || claims_input_beside(o->paths[i], OUTPUT_IDENTITY)) return EXIT_FAILURE;
    if (o->stream.resume && output_check_two(o->output, NULL)) return EXIT_FAILURE; /* states are written before it */
    if (o->output && !o->stream.resume && !(t->out = output_open(o->output))) return EXIT_FAILURE;
    const int code = o->from ? task_from(t) : open_all(t, basis);
    progress_end(&t->bar);
    return code;
}

void task_close(task *t)
{
    fs_workspace_destroy(t->w);
    fs_context_destroy(t->ctx);
    fs_sketch_destroy(t->S);
    free(t->copy);
    sketching_close(&t->A);
    sketching_close(&t->rhs);
    output_abandon();
}

int task_write(task *t, double *data, int64_t rows, int64_t cols)
{
    const fs_matrix m = fs_row_major(data, rows, cols, FS_F64);
    if (t->o->stream.resume) t->out = output_open(t->o->output);
    if (!t->out) return t->o->output ? EXIT_FAILURE : 0;
    const int failed = fs_file_write_npy(t->out, &m, t->sum, NULL) != FS_OK;
    t->out = NULL;
    const int code = failed ? cli_library_fail() : output_close();
    if (code || !t->o->stream.resume) return code;
    sketching_end(&t->A);
    if (t->rhs_name) sketching_end(&t->rhs);
    return 0;
}

int task_is_piped(const task *t) { return t->o->output && !strcmp(t->o->output, "-"); }

/* printing --------------------------------------------------------------------------------------------------- */

void task_print_head(const task *t)
{
    char text[256];
    fs_sketch_describe(t->S, text, sizeof text);
    const char *how = t->o->from ? "sketched in " : "";
    printf("A         %s%s, %" PRId64 " x %" PRId64 "\n", how, t->in.name, t->in.d, t->in.n);
    if (t->rhs_name) printf("B         %s%s, %" PRId64 " x %" PRId64 "\n", how, t->rhs_name, t->B.rows, t->B.cols);
    printf("S         %s\n", text);
}

static void print_time(const char *what, double seconds, const char *end)
{
    printf("%s %.3g ms%s", what, 1e3 * seconds, end);
}
void task_print_times(double sketch, double solve)
{
    printf("time      ");
    print_time("sketch", sketch, ", ");
    print_time("solve", solve, ", ");
    print_time("total", sketch + solve, "\n");
}

cJSON *task_json(const task *t, double sketch, double solve)
{
    cJSON *out = cJSON_CreateObject(), *spec = cJSON_CreateObject();
    json_spec(spec, &t->spec);
    cJSON_AddItemToObject(out, "spec", spec);
    json_whole(out, "rows", t->in.d);
    json_whole(out, "cols", t->in.n);
    json_device(out, t->ctx);
    json_real(out, "sketch_seconds", sketch);
    json_real(out, "solve_seconds", solve);
    json_real(out, "total_seconds", sketch + solve);
    return out;
}
