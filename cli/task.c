/* task.c - see task.h. */
#include "task.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "dtype.h"
#include "multiply.h"
#include "output.h"

int task_option(const char *command, int code, const char *value, task_options *o)
{
    if (spec_is_option(code)) return spec_option(command, code, value, &o->spec);
    if (input_is_option(code)) return input_option(command, code, value, &o->input);
    if (where_is_option(code)) return where_option(command, code, value, &o->where);
    if (code == TASK_JSON) return o->json = 1, 0;
    if (code == 'q') return o->quiet = 1, 0;
    return -1;
}

/* The dense matrix of an open input; a sparse one is written out into *copy. */
static int dense_of(const input *in, fs_matrix *dense, void **copy)
{
    *dense = in->A;
    if (!in->is_sparse) return 0;
    double *data = cli_array(in->d, in->n, sizeof *data);
    if (!data)
        return cli_fail("there is no memory for %s as a dense matrix, %" PRId64 " x %" PRId64 " float64", in->name,
                        in->d, in->n);
    memset(data, 0, (size_t)(in->d * in->n) * sizeof *data);
    const fs_sparse *A = &in->sparse;
    const int64_t lines = A->format == FS_CSR ? A->rows : A->cols;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t e = fs_index_load(A->ptr, A->index_type, line); e < fs_index_load(A->ptr, A->index_type, line + 1);
             e++) {
            const int64_t other = fs_index_load(A->index, A->index_type, e);
            data[A->format == FS_CSR ? line * in->n + other : other * in->n + line] += fs_load(A->value, A->dtype, e);
        }
    *copy = data;
    *dense = fs_row_major(data, in->d, in->n, FS_F64);
    return 0;
}

int task_dense(task *t)
{
    return t->dense.data ? 0 : dense_of(&t->in, &t->dense, &t->copy);
}

/* B in the type of sums, whatever its file has. */
static int open_rhs(task *t)
{
    const fs_dtype sum = fs_dtype_sum(t->in.dtype);
    const input_options plain = {0};
    input in;
    fs_matrix from;
    void *copy = NULL;
    int code = input_open(t->o->rhs, &plain, &t->bar, &in);
    if (!code && in.d != t->in.d)
        code = cli_fail("%s has %" PRId64 " rows, but %s has %" PRId64, in.name, in.d, t->in.name, t->in.d);
    if (!code) code = dense_of(&in, &from, &copy);
    if (!code) {
        t->B = fs_row_major(cli_array(in.d, in.n, (size_t)fs_dtype_size(sum)), in.d, in.n, sum);
        if (!t->B.data) code = cli_fail("there is no memory for %s, %" PRId64 " x %" PRId64, in.name, in.d, in.n);
    }
    for (int64_t i = 0; !code && i < in.d; i++)
        for (int64_t j = 0; j < in.n; j++)
            fs_store(t->B.data, sum, i * in.n + j,
                     fs_load(from.data, from.dtype, from.offset + i * from.row_stride + j * from.col_stride));
    free(copy);
    input_close(&in);
    return code;
}

/* The sketch of both matrices, in the workspace. */
static int fill(task *t)
{
    fs_matrix Y, C;
    const double start = cli_seconds();
    if (fs_workspace_views(t->w, &Y, &C)) return cli_library_fail();
    const int code = multiply(t->ctx, t->S, &t->spec, &t->in, 0, &Y, &t->bar);
    if (code) return code;
    if (t->B.data && fs_apply(t->ctx, t->S, 0, 1.0, &t->B, 0.0, &C)) return cli_library_fail();
    if (fs_workspace_set_sketch(t->w, t->S)) return cli_library_fail();
    t->sketch_seconds = cli_seconds() - start;
    return 0;
}

static int open_all(task *t, int64_t basis)
{
    const task_options *o = t->o;
    fs_spec spec = o->spec;
    fs_context_options where = o->where;
    if (!spec.d) spec.d = t->in.d;
    if (spec.d != t->in.d)
        return cli_fail("%s has %" PRId64 " rows, but -d says %" PRId64 "; leave -d out", t->in.name, t->in.d, spec.d);
    if ((basis || o->exact) && where.backend == FS_BACKEND_CUDA)
        return cli_fail("a matrix in a file is %s by the CPU only; use --device cpu or auto",
                        basis ? "given a basis" : "compared exactly");
    if (basis || o->exact) where.backend = FS_BACKEND_CPU;
    if (spec_sketch(&spec, &t->S, &t->spec)) return EXIT_FAILURE;
    int code = basis ? 0 : multiply_context(&t->in, &where, &t->ctx);
    if (basis && fs_context_create(&t->ctx, &where)) code = cli_library_fail();
    if (!code && o->rhs) code = open_rhs(t);
    if (code) return code;
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    shape.k = t->spec.k, shape.n = basis ? basis : t->in.n, shape.rhs = t->B.cols;
    shape.dtype = fs_dtype_sum(t->in.dtype);
    shape.basis = basis ? t->in.d : 0;
    if (fs_workspace_create(&t->w, t->ctx, &shape)) return cli_library_fail();
    return basis ? 0 : fill(t);
}

int task_open(task *t, const cli_command *command, const task_options *o, int64_t basis)
{
    memset(t, 0, sizeof *t);
    t->o = o;
    t->bar = progress_start(1, o->quiet);
    if (!o->spec.k) return cli_usage(command->name, "say how many rows S has, with -k N");
    if (o->output && !(t->out = output_open(o->output))) return EXIT_FAILURE;
    int code = input_open(o->path, &o->input, &t->bar, &t->in);
    if (!code) code = open_all(t, basis && t->in.n < basis ? t->in.n : basis);
    progress_end(&t->bar);
    return code;
}

void task_close(task *t)
{
    fs_workspace_destroy(t->w);
    fs_context_destroy(t->ctx);
    fs_sketch_destroy(t->S);
    free(t->B.data);
    free(t->copy);
    input_close(&t->in);
    output_abandon();
}

int task_write(task *t, double *data, int64_t rows, int64_t cols)
{
    if (!t->out) return 0;
    const fs_matrix m = fs_row_major(data, rows, cols, FS_F64);
    file_write_npy(t->out, &m, fs_dtype_sum(t->in.dtype));
    t->out = NULL;
    return output_close();
}

int task_is_piped(const task *t)
{
    return t->o->output && !strcmp(t->o->output, "-");
}

/* printing --------------------------------------------------------------------------------------------------- */

void task_print_head(const task *t)
{
    char text[256];
    fs_sketch_describe(t->S, text, sizeof text);
    printf("A         %s, %" PRId64 " x %" PRId64 "\n", t->in.name, t->in.d, t->in.n);
    if (t->B.data) printf("B         %s, %" PRId64 " x %" PRId64 "\n", t->o->rhs, t->B.rows, t->B.cols);
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

void json_real(cJSON *object, const char *name, double value)
{
    if (isfinite(value)) cJSON_AddNumberToObject(object, name, value);
    else cJSON_AddNullToObject(object, name);
}

cJSON *task_json(const task *t, double sketch, double solve)
{
    cJSON *out = cJSON_CreateObject(), *spec = cJSON_CreateObject();
    char text[512];
    json_spec(spec, &t->spec);
    cJSON_AddItemToObject(out, "spec", spec);
    json_whole(out, "rows", t->in.d);
    json_whole(out, "cols", t->in.n);
    fs_context_describe(t->ctx, text, sizeof text);
    cJSON_AddStringToObject(out, "device", text);
    json_real(out, "sketch_seconds", sketch);
    json_real(out, "solve_seconds", solve);
    json_real(out, "total_seconds", sketch + solve);
    return out;
}
