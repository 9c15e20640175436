/* cuda_baselines.c - the third-party baselines of `fsbench cuda`: other ways of sketching, and the library, on the same
 * matrices.
 *
 * ms is the product with S ready, prep_ms the time to make S, full_ms the two in one call.  Where S is never stored
 * there is only ms. */
#include <stdio.h>

#include "bench/baselines/algorithm1.h"
#include "bench/baselines/baselines.h"
#include "bench/gpu/bench_gpu.h"

enum { ROW = 1, BATCH = 2 };
#define UNSAID (fs_shuffle)0

static const struct peer {
    const char *name;
    const baseline *baseline;
    int layouts; /* that it is measured on */
    fs_dtype dtype;
    baseline_product product;
    fs_family family;
    int64_t kappa, s;
    fs_shuffle shuffle;
} peers[] = {
    {"baseline-flashsketch", &baseline_library, ROW, FS_F32, 0, FS_BLOCKPERM, 1, 4, FS_SHUFFLE_ROWS},
    {"baseline-flashsketch", &baseline_library, BATCH, FS_F32, 0, FS_BLOCKPERM, 1, 4, FS_SHUFFLE_GROUPS},
    {"baseline-flashsketch-bf16", &baseline_library, ROW, FS_BF16, 0, FS_BLOCKPERM, 1, 4, FS_SHUFFLE_ROWS},
    {"baseline-flashsketch-bf16", &baseline_library, BATCH, FS_BF16, 0, FS_BLOCKPERM, 1, 4, FS_SHUFFLE_GROUPS},
    {"baseline-flashsketch-kappa1", &baseline_library, ROW, FS_F32, 0, FS_BLOCKPERM, 1, 4, FS_SHUFFLE_NONE},
    {"baseline-flashsketch-kappa2", &baseline_library, ROW, FS_F32, 0, FS_BLOCKPERM, 2, 2, FS_SHUFFLE_NONE},
    {"baseline-flashsketch-kappa4", &baseline_library, ROW, FS_F32, 0, FS_BLOCKPERM, 4, 1, FS_SHUFFLE_NONE},
    {"baseline-flashsketch-srht", &baseline_library, ROW | BATCH, FS_F32, 0, FS_SRHT, 0, 0, UNSAID},
    {"baseline-srht-passes", &baseline_srht_passes, ROW, FS_F32, 0, FS_SRHT, 0, 0, UNSAID},
    {"baseline-shared-kappa1", &baseline_shared_atomics, ROW, FS_F32, 0, FS_BLOCKPERM, 1, 4, FS_SHUFFLE_NONE},
    {"baseline-shared-kappa2", &baseline_shared_atomics, ROW, FS_F32, 0, FS_BLOCKPERM, 2, 2, FS_SHUFFLE_NONE},
    {"baseline-shared-kappa4", &baseline_shared_atomics, ROW, FS_F32, 0, FS_BLOCKPERM, 4, 1, FS_SHUFFLE_NONE},
    {"baseline-cusparse-sjlt", &baseline_cusparse, ROW | BATCH, FS_F32, 0, FS_SJLT, 0, 4, UNSAID},
    {"baseline-scatter-sjlt", &baseline_scatter, ROW | BATCH, FS_F32, 0, FS_SJLT, 0, 4, UNSAID},
    {"baseline-gaussian-f32", &baseline_gaussian, ROW | BATCH, FS_F32, PRODUCT_F32, FS_GAUSSIAN, 0, 0, UNSAID},
    {"baseline-gaussian-tf32", &baseline_gaussian, ROW | BATCH, FS_F32, PRODUCT_TF32, FS_GAUSSIAN, 0, 0, UNSAID},
    {"baseline-gaussian-bf16", &baseline_gaussian, ROW | BATCH, FS_BF16, PRODUCT_BF16, FS_GAUSSIAN, 0, 0, UNSAID},
};
enum { PEERS = sizeof peers / sizeof peers[0] };

static const struct {
    int64_t d, n;
    int layout;
} shapes[] = {{65536, 1024, ROW}, {262144, 512, ROW}, {131072, 512, BATCH}};
static const int64_t sizes[] = {256, 1024, 4096};
enum { SHAPES = sizeof shapes / sizeof shapes[0], SIZES = sizeof sizes / sizeof sizes[0] };

static int check(const struct peer *peer, const baseline_problem *p, void *state, double *error)
{
    bench_gpu *g = p->g;
    bench_sketch library = {p->context, p->S, 0};
    const fs_matrix A = bench_gpu_view(g->from.data, p->spec.d, p->n, p->batch_major, p->dtype);
    const fs_matrix Y = bench_gpu_view(g->to.data, p->spec.k, p->n, p->batch_major, FS_F32);
    const bench_reference reference = peer->baseline->reference;
    if (reference) return bench_gpu_error(g, reference, state, &A, &Y, error);
    return bench_gpu_error(g, bench_sketch_apply, &library, &A, &Y, error);
}

static int measure(const struct peer *peer, const baseline_problem *p, void *state)
{
    bench_record record = bench_record_of(peer->name, "apply", &p->spec, p->n, p->dtype);
    record.batch_major = p->batch_major;
    record.bytes = p->n * (p->spec.d * (int64_t)fs_dtype_size(p->dtype) + p->spec.k * (int64_t)fs_dtype_size(FS_F32));
    if (bench_gpu_measure_baseline(p->g, peer->baseline, state, p, &record.times, &record.prep_ms, &record.full_ms) ||
        check(peer, p, state, &record.error))
        return 1;
    bench_gpu_report(p->g, &record);
    return 0;
}

static int run_case(bench_gpu *g, const struct peer *peer, int shape, int64_t k)
{
    const int batch_major = shapes[shape].layout == BATCH;
    baseline_problem p = {
        g, g->context[FS_PRECISION_FULL], FS_SPEC_INIT, NULL, shapes[shape].n, batch_major, peer->dtype, peer->product};
    fs_sketch *S = NULL;
    void *state = NULL;
    p.spec.d = shapes[shape].d, p.spec.k = k, p.spec.seed = 7, p.spec.family = peer->family;
    p.spec.kappa = peer->kappa, p.spec.s = peer->s, p.spec.shuffle = peer->shuffle;
    p.spec.M = algorithm1_blocks(peer->shuffle, k);
    int failed = bench_fs_failed(fs_sketch_create(&S, &p.spec), "making a sketch") ||
                 bench_fs_failed(fs_sketch_spec(S, &p.spec), "reading a sketch's spec");
    p.S = S;
    if (!failed) {
        failed = peer->baseline->open(&state, &p) || measure(peer, &p, state);
        peer->baseline->close(state);
    }
    fs_sketch_destroy(S);
    if (failed) bench_no_result(peer->name, shapes[shape].d, shapes[shape].n, k);
    return failed;
}

int bench_cuda_baselines(bench_gpu *g)
{
    int failed = 0;
    for (int shape = 0; shape < SHAPES; shape++)
        for (int size = 0; size < SIZES; size++)
            for (int i = 0; i < PEERS; i++)
                if (bench_wanted(g->options, peers[i].name) && peers[i].layouts & shapes[shape].layout)
                    failed |= run_case(g, &peers[i], shape, sizes[size]);
    return failed;
}
