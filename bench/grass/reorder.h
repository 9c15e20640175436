/* reorder.h - what baselines need around their product on a GPU, queued on the benchmark's stream. */
#ifndef FSI_BENCH_GRASS_REORDER_H
#define FSI_BENCH_GRASS_REORDER_H

#include "bench/gpu/bench_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* to[i count + j] = A[i p + list[j]], i < n, j < count */
void grass_gather_device(const bench_gpu *g, const float *A, int64_t n, int64_t p, const int64_t *list, int64_t count,
                         float *to);
/* to[j rows + i] = from[i cols + j] */
void grass_transpose_device(const bench_gpu *g, const float *from, int64_t rows, int64_t cols, float *to);

#ifdef __cplusplus
}
#endif

#endif
