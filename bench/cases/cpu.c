/* cpu.c - the cases of `fsbench cpu`: one table, one measurement. */
#include <flashsketch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

enum layout { ROW_MAJOR, BATCH_MAJOR };
enum op { APPLY, ADJOINT };

static const struct bench_case {
    const char *name;
    enum op op;
    enum layout layout;
    fs_dtype dtype;
    fs_family family;
    int64_t k, kappa, s; /* 0: the default */
    fs_shuffle shuffle;
} cases[] = {
    {"default", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS},
    {"default", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 4096, 0, 0, FS_SHUFFLE_ROWS},
    {"s1", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 1, FS_SHUFFLE_ROWS},
    {"s1", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 4096, 0, 1, FS_SHUFFLE_ROWS},
    {"batch", APPLY, BATCH_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS},
    {"batch", APPLY, BATCH_MAJOR, FS_F32, FS_BLOCKPERM, 4096, 0, 0, FS_SHUFFLE_ROWS},
    {"batch-groups", APPLY, BATCH_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_GROUPS},
    {"batch-groups", APPLY, BATCH_MAJOR, FS_F32, FS_BLOCKPERM, 4096, 0, 0, FS_SHUFFLE_GROUPS},
    {"contiguous", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 1, 4, FS_SHUFFLE_NONE},
    {"contiguous-k4s1", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 4, 1, FS_SHUFFLE_NONE},
    {"groups", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_GROUPS},
    {"f64", APPLY, ROW_MAJOR, FS_F64, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS},
    {"f16", APPLY, ROW_MAJOR, FS_F16, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS},
    {"bf16", APPLY, ROW_MAJOR, FS_BF16, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS},
    {"batch-bf16", APPLY, BATCH_MAJOR, FS_BF16, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS},
    {"adjoint", ADJOINT, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS},
    {"batch-adjoint", ADJOINT, BATCH_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS},
    {"sjlt", APPLY, ROW_MAJOR, FS_F32, FS_SJLT, 1024, 0, 4, (fs_shuffle)0},
    {"countsketch", APPLY, ROW_MAJOR, FS_F32, FS_SJLT, 1024, 0, 1, (fs_shuffle)0},
    {"blockrow", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKROW, 1024, 2, 2, (fs_shuffle)0},
    {"srht", APPLY, ROW_MAJOR, FS_F32, FS_SRHT, 1024, 0, 0, (fs_shuffle)0},
    {"gaussian", APPLY, ROW_MAJOR, FS_F32, FS_GAUSSIAN, 1024, 0, 0, (fs_shuffle)0},
};
enum { CASES = sizeof cases / sizeof cases[0], CHECKED = 64, D = 65536, N = 512 };

/* The present case: the wide matrix is D x N, the narrow one k x N. */
typedef struct bench_run {
    const struct bench_case *c;
    fs_spec spec;
    fs_sketch *S;
    fs_context *ctx;
    fs_matrix from, to;
} bench_run;

static fs_matrix view(void *data, int64_t rows, enum layout layout, fs_dtype dtype)
{
    return layout == ROW_MAJOR ? fs_row_major(data, rows, N, dtype) : fs_batch_major(data, N, rows, dtype);
}

static fs_result once(const bench_run *r, const fs_matrix *from, fs_matrix *to)
{
    return r->c->op == APPLY ? fs_apply(r->ctx, r->S, 0, 1.0, from, 0.0, to)
                             : fs_apply_adjoint(r->ctx, r->S, 0, 1.0, from, 0.0, to);
}

/* CHECKED columns of a matrix, `step` apart. */
static fs_matrix every_column(const fs_matrix *m, int64_t step)
{
    fs_matrix sampled = *m;
    sampled.cols = CHECKED;
    sampled.col_stride *= step;
    return sampled;
}

/* |result - reference| / |reference| on CHECKED columns; the reference sums in double over the same elements. */
static double relative_error(const bench_run *r)
{
    const int64_t rows_in = r->from.rows, rows_out = r->to.rows, step = N / CHECKED;
    double *in = malloc(sizeof *in * (size_t)(rows_in * CHECKED)),
           *out = malloc(sizeof *out * (size_t)(rows_out * CHECKED)),
           *made = malloc(sizeof *made * (size_t)(rows_out * CHECKED));
    double difference = 0, norm = 0;
    if (in && out && made) {
        const fs_matrix sampled = every_column(&r->from, step), found = every_column(&r->to, step);
        fs_matrix from = fs_row_major(in, rows_in, CHECKED, FS_F64), to = fs_row_major(out, rows_out, CHECKED, FS_F64);
        fs_matrix y = fs_row_major(made, rows_out, CHECKED, FS_F64);
        if (fs_add(r->ctx, &sampled, 1, 0.0, &from) || once(r, &from, &to) || fs_add(r->ctx, &found, 1, 0.0, &y))
            fprintf(stderr, "fsbench: %s\n", fs_error_message());
        for (int64_t i = 0; i < rows_out * CHECKED; i++) {
            difference += (made[i] - out[i]) * (made[i] - out[i]);
            norm += out[i] * out[i];
        }
    }
    free(in);
    free(out);
    free(made);
    return sqrt(difference / norm);
}

static void report(const bench_run *r, const bench_options *o, double floor_ms, double ms, double error)
{
    char backend[256];
    fs_context_describe(r->ctx, backend, sizeof backend);
    printf(
        "{\"case\": \"%s\", \"op\": \"%s\", \"backend\": \"%s\", \"family\": \"%s\", \"d\": %d, \"n\": %d, \"k\": %" PRId64
        ", \"M\": %" PRId64 ", \"kappa\": %" PRId64 ", \"s\": %" PRId64 ", \"shuffle\": \"%s\", \"layout\": \"%s\", "
        "\"dtype\": \"%s\", \"threads\": %d, \"floor_ms\": %.3f, \"ms\": %.3f, \"ratio\": %.3f, \"error\": %.2e, "
        "\"machine\": \"%s\", \"commit\": \"%s\", \"date\": \"%s\"}\n",
        r->c->name, r->c->op == APPLY ? "apply" : "adjoint", backend, fs_family_name(r->spec.family), D, N, r->spec.k,
        r->spec.M, r->spec.kappa, r->spec.s, fs_shuffle_name(r->spec.shuffle),
        r->c->layout == ROW_MAJOR ? "row" : "batch", fs_dtype_name(r->c->dtype), o->threads, floor_ms, ms,
        ms / floor_ms, error, bench_machine(), o->commit, bench_date());
    fflush(stdout);
}

/* Lower bound and case are measured in turns, under the same load of the machine. */
static int measure(bench_run *r, const bench_options *o, void *wide, void *narrow)
{
    const struct bench_case *c = r->c;
    const fs_dtype sum = c->dtype == FS_F64 ? FS_F64 : FS_F32;
    const int64_t bytes = (int64_t)fs_dtype_size(c->dtype), out_bytes = (int64_t)fs_dtype_size(sum);
    double *floor_s = malloc(sizeof *floor_s * (size_t)o->repetitions * 2), *case_s = floor_s + o->repetitions;
    if (!floor_s) return 1;
    r->from = c->op == APPLY ? view(wide, D, c->layout, c->dtype) : view(narrow, c->k, c->layout, c->dtype);
    r->to = c->op == APPLY ? view(narrow, c->k, c->layout, sum) : view(wide, D, c->layout, c->dtype);
    for (int i = -2; i < o->repetitions; i++) {
        const double t0 = bench_now();
        if (c->op == APPLY) bench_floor(wide, D * N * bytes, narrow, c->k * N * out_bytes, o->threads);
        else bench_floor(narrow, c->k * N * bytes, wide, D * N * bytes, o->threads);
        const double t1 = bench_now();
        if (once(r, &r->from, &r->to) != FS_OK) {
            fprintf(stderr, "fsbench: %s\n", fs_error_message());
            free(floor_s);
            return 1;
        }
        const double t2 = bench_now();
        if (i >= 0) floor_s[i] = t1 - t0, case_s[i] = t2 - t1;
    }
    const double floor_ms = 1e3 * bench_median(floor_s, o->repetitions),
                 ms = 1e3 * bench_median(case_s, o->repetitions);
    free(floor_s);
    report(r, o, floor_ms, ms, relative_error(r));
    return 0;
}

/* The test matrix in a case's element type.  Returns 0, or 1 after an error message. */
static int fill(fs_context *ctx, void *data, int64_t count, fs_dtype dtype)
{
    if (dtype == FS_F32) {
        bench_fill(data, count, 1);
        return 0;
    }
    float run[4096];
    for (int64_t i = 0; i < count; i += 4096) {
        const int64_t here = count - i < 4096 ? count - i : 4096;
        const fs_matrix from = fs_row_major(run, 1, here, FS_F32);
        fs_matrix to = fs_row_major((char *)data + (size_t)i * fs_dtype_size(dtype), 1, here, dtype);
        bench_fill(run, here, (uint64_t)i);
        if (fs_add(ctx, &from, 1, 0.0, &to)) {
            fprintf(stderr, "fsbench: %s\n", fs_error_message());
            return 1;
        }
    }
    return 0;
}

int bench_cpu(const bench_options *o)
{
    enum { PAGE = 4096 };
    void *wide = aligned_alloc(PAGE, (size_t)D * N * 8), *narrow = aligned_alloc(PAGE, (size_t)4096 * N * 8);
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = FS_BACKEND_CPU;
    where.threads = o->threads;
    int failed = !wide || !narrow;
    fs_dtype filled = (fs_dtype)0;
    for (int i = 0; i < CASES && !failed; i++) {
        bench_run r = {.c = &cases[i], .spec = FS_SPEC_INIT};
        if (o->filter && !strstr(cases[i].name, o->filter)) continue;
        r.spec.d = D, r.spec.k = cases[i].k, r.spec.seed = 7, r.spec.family = cases[i].family;
        r.spec.kappa = cases[i].kappa, r.spec.s = cases[i].s, r.spec.shuffle = cases[i].shuffle;
        failed = fs_sketch_create(&r.S, &r.spec) != FS_OK || fs_sketch_spec(r.S, &r.spec) != FS_OK ||
                 fs_context_create(&r.ctx, &where) != FS_OK;
        if (failed) fprintf(stderr, "fsbench: %s\n", fs_error_message());
        if (!failed && (filled != cases[i].dtype || cases[i].op == ADJOINT))
            failed = fill(r.ctx, wide, (int64_t)D * N, filled = cases[i].dtype);
        if (!failed && cases[i].op == ADJOINT) {
            failed = fill(r.ctx, narrow, cases[i].k * N, cases[i].dtype);
            filled = (fs_dtype)0;
        }
        if (!failed) failed = measure(&r, o, wide, narrow);
        fs_context_destroy(r.ctx);
        fs_sketch_destroy(r.S);
    }
    free(wide);
    free(narrow);
    return failed;
}
