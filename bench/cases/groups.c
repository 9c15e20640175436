/* groups.c - the table of cases, and the run of a case. */
#include "groups.h"

static const bench_shape matrices[] = {{16384, 1024}, {65536, 1024}, {131072, 512}, {262144, 512}, {0, 0}};
static const bench_shape one[] = {{65536, 1024}, {0, 0}};
static const bench_shape batches[] = {{131072, 512}, {1048576, 64}, {0, 0}};
static const bench_shape narrow[] = {{16777216, 1},  {16777216, 2},  {16777216, 4},  {16777216, 8},
                                     {16777216, 16}, {16777216, 32}, {16777216, 64}, {0, 0}};
static const int64_t all_k[] = {64, 256, 512, 1024, 2048, 4096, 0}, from_256[] = {256, 512, 1024, 2048, 4096, 0},
                     from_512[] = {512, 1024, 2048, 4096, 0};
static const int64_t small_k[] = {256, 1024, 0};
static const int64_t two_k[] = {1024, 4096, 0};
static const int64_t k_1024[] = {1024, 0}, k_4096[] = {4096, 0};

/* The sweep: 2^25 elements in widths without a pattern, and in widths around powers of two, where tiles and 16-byte
 * chunks end. */
#define SWEPT(n) \
    { \
        33554432 / (n), n \
    }
static const bench_shape any_n[] = {
    SWEPT(1),   SWEPT(2),   SWEPT(3),    SWEPT(7),    SWEPT(8),    SWEPT(16),   SWEPT(25),   SWEPT(32),
    SWEPT(33),  SWEPT(48),  SWEPT(50),   SWEPT(64),   SWEPT(65),   SWEPT(96),   SWEPT(100),  SWEPT(127),
    SWEPT(128), SWEPT(129), SWEPT(160),  SWEPT(257),  SWEPT(300),  SWEPT(500),  SWEPT(513),  SWEPT(700),
    SWEPT(777), SWEPT(784), SWEPT(1001), SWEPT(1024), SWEPT(1500), SWEPT(2047), SWEPT(4099), {0, 0}};
static const bench_shape some_n[] = {SWEPT(1),   SWEPT(8),    SWEPT(33),   SWEPT(100), SWEPT(257),
                                     SWEPT(777), SWEPT(1004), SWEPT(1024), {0, 0}};
static const bench_shape wide_n[] = {SWEPT(257), SWEPT(777), SWEPT(1024), {0, 0}};
/* samples of d coordinates: {d, samples} */
static const bench_shape samples[] = {{33554432, 1}, {4194304, 8}, {4194303, 8},  {1048576, 33},
                                      {524288, 64},  {524287, 64}, {131072, 256}, {109386, 300},
                                      {65536, 512},  {65537, 512}, {16384, 2048}, {0, 0}};
static const bench_shape few_samples[] = {{4194304, 8}, {524288, 64}, {109386, 300},
                                          {65536, 512}, {65537, 512}, {0, 0}};
static const bench_shape tiny[] = {{1000, 64}, {2000, 128}, {5000, 256}, {10000, 100}, {10000, 512}, {0, 0}};

#define NONE FS_SHUFFLE_NONE
#define ROWS FS_SHUFFLE_ROWS
#define GROUPS FS_SHUFFLE_GROUPS
#define UNSAID (fs_shuffle)0
#define FULL FS_PRECISION_FULL
#define FAST FS_PRECISION_FAST
#define PACKED 0, 0, 0 /* the default M, no gap, no offset */
const bench_group bench_groups[] = {
    /* name, adjoint, batch, dtype, precision, family, kappa, s, shuffle, interleave, shapes, k, flatness, tuned, M, gap,
     * offset */
    {"rows-s1-none", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 1, NONE, 0, matrices, all_k, 1, 1, PACKED},
    {"rows-s1-rows", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 1, ROWS, 0, matrices, all_k, 1, 1, PACKED},
    {"rows-s4-none", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 4, NONE, 0, matrices, all_k, 1, 1, PACKED},
    {"rows-s4-rows", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 4, ROWS, 0, matrices, all_k, 1, 1, PACKED},
    {"rows-s8-none", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 8, NONE, 0, matrices, all_k, 1, 1, PACKED},
    {"rows-s8-rows", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 8, ROWS, 0, matrices, all_k, 1, 1, PACKED},
    /* k = 64 has one block of the default height; kappa > 1 needs more. */
    {"kappa2", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 2, 2, NONE, 0, matrices, from_256, 32, 1, PACKED},
    {"kappa4", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 4, 1, NONE, 0, matrices, from_256, 32, 1, PACKED},
    {"kappa2-s4", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 2, 4, ROWS, 0, matrices, from_256, 32, 1, PACKED},
    {"kappa4-s4", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 4, 4, ROWS, 0, matrices, from_512, 32, 1, PACKED},
    {"rung-high", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 2, 8, ROWS, 0, matrices, from_512, 32, 1, PACKED},
    {"rung-gaussian", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 4, 8, ROWS, 0, matrices, from_512, 32, 1, PACKED},
    {"half-f16-kappa2-s4", 0, 0, FS_F16, FULL, FS_BLOCKPERM, 2, 4, ROWS, 0, matrices, from_256, 32, 1, PACKED},
    {"half-f16", 0, 0, FS_F16, FULL, FS_BLOCKPERM, 1, 4, ROWS, 0, matrices, all_k, 1, 1, PACKED},
    {"half-bf16", 0, 0, FS_BF16, FULL, FS_BLOCKPERM, 1, 4, ROWS, 0, matrices, all_k, 1, 1, PACKED},
    {"half-f16-s8", 0, 0, FS_F16, FULL, FS_BLOCKPERM, 1, 8, ROWS, 0, matrices, all_k, 1, 1, PACKED},
    {"half-bf16-s8", 0, 0, FS_BF16, FULL, FS_BLOCKPERM, 1, 8, ROWS, 0, matrices, all_k, 1, 1, PACKED},
    {"batch-one", 0, 1, FS_F32, FULL, FS_BLOCKPERM, 1, 4, GROUPS, 1, batches, two_k, 1, 1, PACKED},
    {"batch-4", 0, 1, FS_F32, FULL, FS_BLOCKPERM, 1, 4, GROUPS, 4, batches, two_k, 1, 1, PACKED},
    {"batch-8", 0, 1, FS_F32, FULL, FS_BLOCKPERM, 1, 4, GROUPS, 8, batches, two_k, 1, 1, PACKED},
    {"batch-largest", 0, 1, FS_F32, FULL, FS_BLOCKPERM, 1, 4, GROUPS, 0, batches, two_k, 1, 1, PACKED},
    {"batch-s8", 0, 1, FS_F32, FULL, FS_BLOCKPERM, 1, 8, GROUPS, 0, batches, two_k, 1, 1, PACKED},
    {"narrow", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 4, ROWS, 0, narrow, k_1024, 1, 1, PACKED},
    {"narrow-s8", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 8, ROWS, 0, narrow, k_1024, 1, 1, PACKED},
    {"adjoint-none", 1, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 4, NONE, 0, one, k_4096, 1, 0, PACKED},
    {"adjoint-rows", 1, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 4, ROWS, 0, one, k_4096, 1, 0, PACKED},
    {"adjoint-s8", 1, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 8, ROWS, 0, one, k_4096, 1, 0, PACKED},
    {"blockrow", 0, 0, FS_F32, FULL, FS_BLOCKROW, 2, 2, UNSAID, 0, one, two_k, 1, 0, PACKED},
    {"srht", 0, 0, FS_F32, FULL, FS_SRHT, 0, 0, UNSAID, 0, one, k_1024, 1, 0, PACKED},
    {"sjlt-s4", 0, 0, FS_F32, FULL, FS_SJLT, 0, 4, UNSAID, 0, one, k_1024, 1, 0, PACKED},
    {"sjlt-s1", 0, 0, FS_F32, FULL, FS_SJLT, 0, 1, UNSAID, 0, one, k_1024, 1, 0, PACKED},
    {"gaussian", 0, 0, FS_F32, FULL, FS_GAUSSIAN, 0, 0, UNSAID, 0, one, k_1024, 1, 0, PACKED},
    {"f64", 0, 0, FS_F64, FULL, FS_BLOCKPERM, 1, 4, ROWS, 0, one, k_1024, 1, 1, PACKED},
    {"f64-s8", 0, 0, FS_F64, FULL, FS_BLOCKPERM, 1, 8, ROWS, 0, one, k_1024, 1, 1, PACKED},
    {"fast-kappa1", 0, 0, FS_F32, FAST, FS_BLOCKPERM, 1, 4, ROWS, 0, one, two_k, 1, 1, PACKED},
    {"fast-kappa2", 0, 0, FS_F32, FAST, FS_BLOCKPERM, 2, 2, NONE, 0, one, k_1024, 1, 1, PACKED},
    {"fast-kappa4", 0, 0, FS_F32, FAST, FS_BLOCKPERM, 4, 1, NONE, 0, one, k_1024, 1, 1, PACKED},
    {"groups", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 4, GROUPS, 0, one, two_k, 1, 1, PACKED},
    {"sweep-f32", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, any_n, k_1024, 1, 0, PACKED},
    {"sweep-f32-offset", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, some_n, k_1024, 1, 0, 0, 0, 1},
    {"sweep-f32-gap", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, some_n, k_1024, 1, 0, 0, 1, 0},
    {"sweep-f32-none", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 0, 0, NONE, 0, some_n, k_1024, 1, 0, PACKED},
    {"sweep-f16", 0, 0, FS_F16, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, any_n, k_1024, 1, 0, PACKED},
    {"sweep-bf16", 0, 0, FS_BF16, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, some_n, k_1024, 1, 0, PACKED},
    {"sweep-f64", 0, 0, FS_F64, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, some_n, k_1024, 1, 0, PACKED},
    {"sweep-batch-lines", 0, 1, FS_F32, FULL, FS_BLOCKPERM, 0, 0, GROUPS, 0, samples, k_1024, 1, 0, PACKED},
    {"sweep-batch-rows", 0, 1, FS_F32, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, few_samples, k_1024, 1, 0, PACKED},
    {"sweep-batch-bf16", 0, 1, FS_BF16, FULL, FS_BLOCKPERM, 0, 0, GROUPS, 0, samples, k_1024, 1, 0, PACKED},
    {"sweep-kappa2-s4", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 2, 4, ROWS, 0, wide_n, k_1024, 1, 0, PACKED},
    {"sweep-kappa2-s8", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 2, 8, ROWS, 0, wide_n, k_1024, 1, 0, PACKED},
    {"sweep-kappa3-s4", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 3, 4, ROWS, 0, wide_n, k_1024, 1, 0, PACKED},
    {"sweep-kappa4-s4", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 4, 4, ROWS, 0, wide_n, k_1024, 1, 0, PACKED},
    {"sweep-kappa8-s2", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 8, 2, ROWS, 0, wide_n, k_1024, 1, 0, PACKED},
    {"sweep-s16", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 16, ROWS, 0, wide_n, k_1024, 1, 0, PACKED},
    {"sweep-s64", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 1, 64, ROWS, 0, wide_n, k_1024, 1, 0, PACKED},
    {"sweep-blocks10", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, wide_n, k_1024, 1, 0, 10, 0, 0},
    {"sweep-blocks8", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, wide_n, k_1024, 1, 0, 8, 0, 0},
    {"sweep-blocks2", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, wide_n, k_1024, 1, 0, 2, 0, 0},
    {"sweep-sjlt", 0, 0, FS_F32, FULL, FS_SJLT, 0, 4, UNSAID, 0, wide_n, k_1024, 1, 0, PACKED},
    {"sweep-sjlt-s1", 0, 0, FS_F32, FULL, FS_SJLT, 0, 1, UNSAID, 0, wide_n, k_1024, 1, 0, PACKED},
    {"sweep-srht", 0, 0, FS_F32, FULL, FS_SRHT, 0, 0, UNSAID, 0, wide_n, two_k, 1, 0, PACKED},
    {"sweep-srht-bf16", 0, 0, FS_BF16, FULL, FS_SRHT, 0, 0, UNSAID, 0, wide_n, k_1024, 1, 0, PACKED},
    {"sweep-gaussian", 0, 0, FS_F32, FULL, FS_GAUSSIAN, 0, 0, UNSAID, 0, wide_n, small_k, 1, 0, PACKED},
    {"sweep-gaussian-bf16", 0, 0, FS_BF16, FULL, FS_GAUSSIAN, 0, 0, UNSAID, 0, wide_n, k_1024, 1, 0, PACKED},
    {"sweep-adjoint", 1, 0, FS_F32, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, some_n, k_1024, 1, 0, PACKED},
    {"sweep-tiny", 0, 0, FS_F32, FULL, FS_BLOCKPERM, 0, 0, ROWS, 0, tiny, small_k, 1, 0, PACKED},
};
const int bench_group_count = sizeof bench_groups / sizeof bench_groups[0];

int bench_case_open(bench_case *c, const bench_group *group, const bench_shape *A, int64_t k, fs_context *context)
{
    *c = (bench_case){.group = group, .spec = FS_SPEC_INIT, .n = A->n};
    c->spec.d = A->d, c->spec.k = k, c->spec.seed = 7, c->spec.family = group->family;
    c->spec.kappa = group->kappa, c->spec.s = group->s, c->spec.M = group->M;
    c->spec.shuffle = group->shuffle, c->spec.interleave = group->interleave;
    c->from_rows = group->adjoint ? k : A->d, c->to_rows = group->adjoint ? A->d : k;
    if (bench_fs_failed(fs_sketch_create(&c->S, &c->spec), "making a sketch")) return 1;
    c->sketch = (bench_sketch){context, c->S, group->adjoint};
    return bench_fs_failed(fs_sketch_spec(c->S, &c->spec), "reading a sketch's spec");
}
void bench_case_close(bench_case *c) { fs_sketch_destroy(c->S); }

fs_matrix bench_case_from(const bench_case *c, void *data)
{
    const bench_group *group = c->group;
    fs_matrix from = bench_gpu_view((char *)data + group->offset * (int64_t)fs_dtype_size(group->dtype), c->from_rows,
                                    c->n, group->batch_major, group->dtype);
    *(group->batch_major ? &from.col_stride : &from.row_stride) += group->gap;
    return from;
}
fs_matrix bench_case_to(const bench_case *c, void *data)
{
    return bench_gpu_view(data, c->to_rows, c->n, c->group->batch_major, c->group->dtype);
}

static int queue(void *user, void *from, void *to)
{
    bench_case *c = user;
    const fs_matrix in = bench_case_from(c, from);
    fs_matrix out = bench_case_to(c, to);
    return bench_sketch_apply(&c->sketch, &in, &out);
}

bench_work bench_case_work(bench_case *c)
{
    const int64_t row = c->n * (int64_t)fs_dtype_size(c->group->dtype), sampled = c->spec.k * c->spec.kappa * c->spec.s;
    const int64_t from = c->from_rows * row, to = c->to_rows * row, aligned = -256;
    const int64_t gaps = (c->group->offset + c->group->gap * (c->group->batch_major ? c->n : c->from_rows)) *
                         (int64_t)fs_dtype_size(c->group->dtype);
    bench_work work = {c->group->dtype, (from + gaps + 255) & aligned, (to + 255) & aligned, from, to, queue, c};
    /* FlashBlockRow reads only the rows that it samples. */
    if (c->spec.family == FS_BLOCKROW && sampled < c->from_rows) work.read = sampled * row;
    return work;
}

static int run_case(bench_gpu *g, const bench_group *group, const bench_shape *A, int64_t k, bench_case_run run,
                    void *user)
{
    bench_case c;
    const int failed = bench_case_open(&c, group, A, k, g->context[group->precision]) || run(g, &c, user);
    bench_case_close(&c);
    if (failed) bench_no_result(group->name, A->d, A->n, k);
    return failed;
}

int bench_for_cases(bench_gpu *g, int tuned_only, bench_case_run run, void *user)
{
    int failed = 0;
    for (int i = 0; i < bench_group_count; i++) {
        const bench_group *group = &bench_groups[i];
        if (!bench_wanted(g->options, group->name) || (tuned_only && !group->tuned)) continue;
        for (const bench_shape *A = group->shapes; A->d; A++)
            for (const int64_t *k = group->k; *k; k++)
                if (A->d >= group->flatness * *k) failed |= run_case(g, group, A, *k, run, user);
    }
    return failed;
}
