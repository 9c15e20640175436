/* cpu.c - the cases of `fsbench cpu`: a table of one shape, a sweep over shapes, one measurement. */
#include <flashsketch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

enum layout { ROW_MAJOR, BATCH_MAJOR };
enum op { APPLY, ADJOINT };
enum { CHECKED = 64, D = 65536, N = 512, SWEEP_BYTES = 1 << 27 };

typedef struct bench_case {
    const char *name;
    enum op op;
    enum layout layout;
    fs_dtype dtype;
    fs_family family;
    int64_t k, kappa, s; /* 0: the default */
    fs_shuffle shuffle;
    int64_t d, n; /* n 0: D x N; d 0: as many as make SWEEP_BYTES */
    int64_t pad;  /* elements between lines; as many before the first */
} bench_case;

static const bench_case cases[] = {
    {"default", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"default", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 4096, 0, 0, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"s1", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 1, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"s1", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 4096, 0, 1, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"batch", APPLY, BATCH_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"batch", APPLY, BATCH_MAJOR, FS_F32, FS_BLOCKPERM, 4096, 0, 0, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"batch-groups", APPLY, BATCH_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_GROUPS, 0, 0, 0},
    {"batch-groups", APPLY, BATCH_MAJOR, FS_F32, FS_BLOCKPERM, 4096, 0, 0, FS_SHUFFLE_GROUPS, 0, 0, 0},
    {"contiguous", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 1, 4, FS_SHUFFLE_NONE, 0, 0, 0},
    {"contiguous-k4s1", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 4, 1, FS_SHUFFLE_NONE, 0, 0, 0},
    {"groups", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_GROUPS, 0, 0, 0},
    {"f64", APPLY, ROW_MAJOR, FS_F64, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"f16", APPLY, ROW_MAJOR, FS_F16, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"bf16", APPLY, ROW_MAJOR, FS_BF16, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"batch-bf16", APPLY, BATCH_MAJOR, FS_BF16, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"adjoint", ADJOINT, ROW_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"batch-adjoint", ADJOINT, BATCH_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS, 0, 0, 0},
    {"sjlt", APPLY, ROW_MAJOR, FS_F32, FS_SJLT, 1024, 0, 4, (fs_shuffle)0, 0, 0, 0},
    {"countsketch", APPLY, ROW_MAJOR, FS_F32, FS_SJLT, 1024, 0, 1, (fs_shuffle)0, 0, 0, 0},
    {"blockrow", APPLY, ROW_MAJOR, FS_F32, FS_BLOCKROW, 1024, 2, 2, (fs_shuffle)0, 0, 0, 0},
    {"srht", APPLY, ROW_MAJOR, FS_F32, FS_SRHT, 1024, 0, 0, (fs_shuffle)0, 0, 0, 0},
    {"gaussian", APPLY, ROW_MAJOR, FS_F32, FS_GAUSSIAN, 1024, 0, 0, (fs_shuffle)0, 0, 0, 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* The sweep: matrices of SWEEP_BYTES over widths, layouts, types and sketches.  A line is a case at several widths, up
 * to the first 0. */
static const struct sweep_line {
    bench_case c;
    int64_t n[24];
} sweep[] = {
#define DEFAULT(dtype) dtype, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_ROWS, 0, 0
    {{"sweep-rows", APPLY, ROW_MAJOR, DEFAULT(FS_F32), 0},
     {1, 2, 3, 4, 7, 8, 13, 16, 31, 32, 33, 50, 64, 65, 100, 127, 128, 257, 512, 777, 1001, 2049, 4096}},
    {{"sweep-rows", APPLY, ROW_MAJOR, DEFAULT(FS_F32), 1}, {8, 32, 128, 512}},
    {{"sweep-batch", APPLY, BATCH_MAJOR, DEFAULT(FS_F32), 0},
     {2, 3, 8, 13, 16, 32, 33, 64, 65, 128, 257, 512, 1001, 4096}},
    {{"sweep-batch", APPLY, BATCH_MAJOR, DEFAULT(FS_F32), 1}, {8, 512}},
    {{"sweep-rows", APPLY, ROW_MAJOR, DEFAULT(FS_F64), 0}, {1, 8, 33, 128, 512, 1001, 4096}},
    {{"sweep-rows", APPLY, ROW_MAJOR, DEFAULT(FS_F16), 0}, {1, 8, 33, 128, 512, 1001, 4096}},
    {{"sweep-rows", APPLY, ROW_MAJOR, DEFAULT(FS_BF16), 0}, {1, 8, 32, 33, 128, 512, 1001, 4096}},
    {{"sweep-batch", APPLY, BATCH_MAJOR, DEFAULT(FS_F64), 0}, {33, 512}},
    {{"sweep-batch", APPLY, BATCH_MAJOR, DEFAULT(FS_F16), 0}, {33, 512}},
    {{"sweep-batch", APPLY, BATCH_MAJOR, DEFAULT(FS_BF16), 0}, {33, 512}},
    {{"sweep-adjoint", ADJOINT, ROW_MAJOR, DEFAULT(FS_F32), 0}, {1, 8, 33, 128, 512, 1001}},
    {{"sweep-adjoint", ADJOINT, BATCH_MAJOR, DEFAULT(FS_F32), 0}, {8, 512}},
#undef DEFAULT
#define GROUPS APPLY, BATCH_MAJOR, FS_F32, FS_BLOCKPERM, 1024, 0, 0, FS_SHUFFLE_GROUPS, 0, 0, 0
    {{"sweep-batch-groups", GROUPS}, {8, 33, 128, 512}},
#undef GROUPS
#define ROWS(k, kappa, s, d) APPLY, ROW_MAJOR, FS_F32, FS_BLOCKPERM, k, kappa, s, FS_SHUFFLE_ROWS, d, 0, 0
    {{"sweep-k", ROWS(64, 0, 0, 0)}, {32, 512}},
    {{"sweep-k", ROWS(256, 0, 0, 0)}, {512}},
    {{"sweep-k", ROWS(1000, 0, 0, 0)}, {512}},
    {{"sweep-k", ROWS(4096, 0, 0, 0)}, {1, 8, 32, 128, 512}},
    {{"sweep-k", ROWS(64, 0, 0, 60000)}, {784}},
    {{"sweep-k", ROWS(256, 0, 0, 60000)}, {784}},
    {{"sweep-k", ROWS(1024, 0, 0, 60000)}, {784}},
    {{"sweep-k", ROWS(4096, 0, 0, 60000)}, {784}},
    {{"sweep-s", ROWS(1024, 1, 1, 0)}, {1, 32, 512}},
    {{"sweep-s", ROWS(1024, 1, 4, 0)}, {1, 32, 512}},
    {{"sweep-s", ROWS(1024, 1, 16, 0)}, {512}},
    {{"sweep-s", ROWS(1024, 1, 64, 0)}, {512}},
    {{"sweep-kappa", ROWS(1024, 2, 2, 0)}, {512}},
    {{"sweep-kappa", ROWS(1024, 2, 4, 0)}, {1, 32, 512}},
    {{"sweep-kappa", ROWS(1024, 4, 1, 0)}, {512}},
    {{"sweep-kappa", ROWS(1024, 4, 4, 0)}, {512}},
    {{"sweep-kappa", ROWS(1024, 8, 4, 0)}, {512}},
#undef ROWS
#define FAMILY(layout, family, k, kappa, s) APPLY, layout, FS_F32, family, k, kappa, s, (fs_shuffle)0, 0, 0, 0
    {{"sweep-sjlt", FAMILY(ROW_MAJOR, FS_SJLT, 1024, 0, 4)}, {1, 32, 512}},
    {{"sweep-sjlt", FAMILY(ROW_MAJOR, FS_SJLT, 1024, 0, 1)}, {512}},
    {{"sweep-sjlt", FAMILY(ROW_MAJOR, FS_SJLT, 4096, 0, 4)}, {512}},
    {{"sweep-sjlt", FAMILY(BATCH_MAJOR, FS_SJLT, 1024, 0, 4)}, {512}},
    {{"sweep-srht", FAMILY(ROW_MAJOR, FS_SRHT, 1024, 0, 0)}, {1, 32, 512}},
    {{"sweep-srht", FAMILY(ROW_MAJOR, FS_SRHT, 4096, 0, 0)}, {512}},
    {{"sweep-blockrow", FAMILY(ROW_MAJOR, FS_BLOCKROW, 1024, 2, 2)}, {1, 512}},
#undef FAMILY
};
enum { LINES = sizeof sweep / sizeof sweep[0], WIDTHS = sizeof sweep[0].n / sizeof sweep[0].n[0] };

/* The present case: the wide matrix is d x n, the narrow one k x n. */
typedef struct bench_run {
    bench_case c;
    fs_spec spec;
    fs_sketch *S;
    fs_context *ctx;
    fs_matrix from, to;
} bench_run;

static fs_matrix view(const bench_case *c, void *data, int64_t rows, fs_dtype dtype)
{
    char *at = (char *)data + (size_t)c->pad * fs_dtype_size(dtype);
    fs_matrix m = c->layout == ROW_MAJOR ? fs_row_major(at, rows, c->n, dtype) : fs_batch_major(at, c->n, rows, dtype);
    *(c->layout == ROW_MAJOR ? &m.row_stride : &m.col_stride) += c->pad;
    return m;
}

static fs_result once(const bench_run *r, const fs_matrix *from, fs_matrix *to)
{
    return r->c.op == APPLY ? fs_apply(r->ctx, r->S, 0, 1.0, from, 0.0, to)
                            : fs_apply_adjoint(r->ctx, r->S, 0, 1.0, from, 0.0, to);
}

/* `count` columns of a matrix, `step` apart. */
static fs_matrix some_columns(const fs_matrix *m, int64_t count, int64_t step)
{
    fs_matrix sampled = *m;
    sampled.cols = count;
    sampled.col_stride *= step;
    return sampled;
}

/* |result - reference| / |reference| on CHECKED columns, fewer where rows are many; the reference sums in double over
 * the same elements. */
static double relative_error(const bench_run *r)
{
    const int64_t rows_in = r->from.rows, rows_out = r->to.rows, most = ((int64_t)1 << 23) / (rows_in + rows_out) + 1;
    const int64_t few = r->c.n < CHECKED ? r->c.n : CHECKED, count = few < most ? few : most, step = r->c.n / count;
    double *in = malloc(sizeof *in * (size_t)(rows_in * count)),
           *out = malloc(sizeof *out * (size_t)(rows_out * count)),
           *made = malloc(sizeof *made * (size_t)(rows_out * count));
    double difference = 0, norm = 0;
    if (in && out && made) {
        const fs_matrix sampled = some_columns(&r->from, count, step), found = some_columns(&r->to, count, step);
        fs_matrix from = fs_row_major(in, rows_in, count, FS_F64), to = fs_row_major(out, rows_out, count, FS_F64);
        fs_matrix y = fs_row_major(made, rows_out, count, FS_F64);
        if (fs_add(r->ctx, &sampled, 1, 0.0, &from) || once(r, &from, &to) || fs_add(r->ctx, &found, 1, 0.0, &y))
            fprintf(stderr, "fsbench: %s\n", fs_error_message());
        for (int64_t i = 0; i < rows_out * count; i++) {
            difference += (made[i] - out[i]) * (made[i] - out[i]);
            norm += out[i] * out[i];
        }
    }
    free(in);
    free(out);
    free(made);
    return sqrt(difference / norm);
}

/* Sorted times, in seconds. */
static void report(const bench_run *r, const bench_options *o, const double *floor_s, const double *case_s,
                   double error)
{
    const double floor_ms = 1e3 * floor_s[o->repetitions / 2], ms = 1e3 * case_s[o->repetitions / 2];
    char backend[256];
    fs_context_describe(r->ctx, backend, sizeof backend);
    printf(
        "{\"case\": \"%s\", \"op\": \"%s\", \"backend\": \"%s\", \"family\": \"%s\", \"d\": %" PRId64
        ", \"n\": %" PRId64 ", \"pad\": %" PRId64 ", \"k\": %" PRId64 ", \"M\": %" PRId64 ", \"kappa\": %" PRId64
        ", \"s\": %" PRId64 ", \"shuffle\": \"%s\", \"layout\": \"%s\", \"dtype\": \"%s\", \"threads\": %d, "
        "\"floor_ms\": %.3f, \"ms\": %.3f, \"ratio\": %.3f, \"floor_min\": %.3f, \"ms_min\": %.3f, \"error\": %.2e, \"machine\": \"%s\", "
        "\"commit\": \"%s\", \"date\": \"%s\"}\n",
        r->c.name, r->c.op == APPLY ? "apply" : "adjoint", backend, fs_family_name(r->spec.family), r->c.d, r->c.n,
        r->c.pad, r->spec.k, r->spec.M, r->spec.kappa, r->spec.s, bench_shuffle_name(r->spec.shuffle),
        r->c.layout == ROW_MAJOR ? "row" : "batch", fs_dtype_name(r->c.dtype), o->threads, floor_ms, ms, ms / floor_ms,
        1e3 * floor_s[0], 1e3 * case_s[0], error, bench_machine(), o->commit, bench_date());
    fflush(stdout);
}

/* Lower bound and case are measured in turns, under the same load of the machine. */
static int measure(bench_run *r, const bench_options *o, void *wide, void *narrow)
{
    const bench_case *c = &r->c;
    const fs_dtype sum = c->dtype == FS_F64 ? FS_F64 : FS_F32;
    const int64_t bytes = (int64_t)fs_dtype_size(c->dtype), out_bytes = (int64_t)fs_dtype_size(sum);
    double *floor_s = malloc(sizeof *floor_s * (size_t)o->repetitions * 2), *case_s = floor_s + o->repetitions;
    if (!floor_s) return 1;
    r->from = c->op == APPLY ? view(c, wide, c->d, c->dtype) : view(c, narrow, c->k, c->dtype);
    r->to = c->op == APPLY ? view(c, narrow, c->k, sum) : view(c, wide, c->d, c->dtype);
    for (int i = -2; i < o->repetitions; i++) {
        const double t0 = bench_now();
        if (c->op == APPLY) bench_floor(wide, c->d * c->n * bytes, narrow, c->k * c->n * out_bytes, o->threads);
        else bench_floor(narrow, c->k * c->n * bytes, wide, c->d * c->n * bytes, o->threads);
        const double t1 = bench_now();
        if (once(r, &r->from, &r->to) != FS_OK) {
            fprintf(stderr, "fsbench: %s\n", fs_error_message());
            free(floor_s);
            return 1;
        }
        const double t2 = bench_now();
        if (i >= 0) floor_s[i] = t1 - t0, case_s[i] = t2 - t1;
    }
    bench_median(floor_s, o->repetitions), bench_median(case_s, o->repetitions);
    report(r, o, floor_s, case_s, relative_error(r));
    free(floor_s);
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

/* The memory of all cases: a wide and a narrow matrix, and what the wide one holds. */
typedef struct bench_memory {
    void *wide, *narrow;
    int64_t wide_bytes, narrow_bytes;
    fs_dtype filled; /* type of the numbers in the wide one; 0: others */
} bench_memory;

static int bench_one(const bench_options *o, bench_memory *m, const bench_case *c)
{
    bench_run r = {.c = *c, .spec = FS_SPEC_INIT};
    const int64_t bytes = (int64_t)fs_dtype_size(c->dtype);
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = FS_BACKEND_CPU;
    where.threads = o->threads;
    if (!c->n) r.c.n = N, r.c.d = D;
    if (!r.c.d) r.c.d = SWEEP_BYTES / bytes / r.c.n;
    r.spec.d = r.c.d, r.spec.k = c->k, r.spec.seed = 7, r.spec.family = c->family;
    r.spec.kappa = c->kappa, r.spec.s = c->s, r.spec.shuffle = c->shuffle;
    int failed = fs_sketch_create(&r.S, &r.spec) != FS_OK || fs_sketch_spec(r.S, &r.spec) != FS_OK ||
                 fs_context_create(&r.ctx, &where) != FS_OK;
    if (failed) fprintf(stderr, "fsbench: %s\n", fs_error_message());
    if (!failed && c->op == APPLY && m->filled != c->dtype)
        failed = fill(r.ctx, m->wide, m->wide_bytes / bytes, m->filled = c->dtype);
    if (!failed && c->op == ADJOINT) {
        failed = fill(r.ctx, m->narrow, m->narrow_bytes / bytes, c->dtype);
        m->filled = (fs_dtype)0;
    }
    if (!failed) failed = measure(&r, o, m->wide, m->narrow);
    fs_context_destroy(r.ctx);
    fs_sketch_destroy(r.S);
    return failed;
}

int bench_cpu(const bench_options *o)
{
    enum { PAGE = 4096 };
    bench_memory m = {.wide_bytes = (int64_t)D * N * 8, .narrow_bytes = (int64_t)4096 * 1024 * 8};
    m.wide = aligned_alloc(PAGE, (size_t)m.wide_bytes);
    m.narrow = aligned_alloc(PAGE, (size_t)m.narrow_bytes);
    int failed = !m.wide || !m.narrow;
    if (!failed) memset(m.wide, 0, (size_t)m.wide_bytes), memset(m.narrow, 0, (size_t)m.narrow_bytes);
    for (int i = 0; i < CASES && !failed; i++)
        if (!o->filter || strstr(cases[i].name, o->filter)) failed = bench_one(o, &m, &cases[i]);
    for (int i = 0; i < LINES && !failed; i++)
        for (int w = 0; w < WIDTHS && sweep[i].n[w] && !failed; w++) {
            bench_case c = sweep[i].c;
            c.n = sweep[i].n[w];
            if (!o->filter || strstr(c.name, o->filter)) failed = bench_one(o, &m, &c);
        }
    free(m.wide);
    free(m.narrow);
    return failed;
}
