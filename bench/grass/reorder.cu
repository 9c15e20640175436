/* reorder.cu - what third-party baselines need around their product on a GPU: the masked coordinates one after the
 * other, and a transpose.  Both move memory as fast as plain kernels can, because they are part of the comparison. */
#include "reorder.h"

enum { THREADS = 256, SAMPLES = 4, TILE = 32, TILE_ROWS = 8 };

/* A thread takes one coordinate of SAMPLES samples, so that it has as many loads in flight; neighbouring threads take
 * neighbouring coordinates of the ascending list and write neighbouring values. */
static __global__ void gather(const float *A, int64_t n, int64_t p, const int64_t *list, int64_t count, float *to)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x, first = (int64_t)blockIdx.y * SAMPLES;
    if (j >= count) return;
    const float *from = A + list[j];
    float x[SAMPLES];
#pragma unroll
    for (int i = 0; i < SAMPLES; i++) x[i] = first + i < n ? from[(first + i) * p] : 0.0f;
#pragma unroll
    for (int i = 0; i < SAMPLES; i++)
        if (first + i < n) to[(first + i) * count + j] = x[i];
}

/* Tiles through shared memory; a column more than the tile has, so that columns lie in different banks. */
static __global__ void transpose(const float *from, int64_t rows, int64_t cols, float *to)
{
    __shared__ float tile[TILE][TILE + 1];
    const int64_t i0 = (int64_t)blockIdx.y * TILE, j0 = (int64_t)blockIdx.x * TILE;
#pragma unroll
    for (int i = threadIdx.y; i < TILE; i += TILE_ROWS)
        if (i0 + i < rows && j0 + threadIdx.x < cols) tile[i][threadIdx.x] = from[(i0 + i) * cols + j0 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int j = threadIdx.y; j < TILE; j += TILE_ROWS)
        if (j0 + j < cols && i0 + threadIdx.x < rows) to[(j0 + j) * rows + i0 + threadIdx.x] = tile[threadIdx.x][j];
}

void grass_gather_device(const bench_gpu *g, const float *A, int64_t n, int64_t p, const int64_t *list, int64_t count,
                         float *to)
{
    const dim3 grid((unsigned)((count + THREADS - 1) / THREADS), (unsigned)((n + SAMPLES - 1) / SAMPLES));
    gather<<<grid, THREADS, 0, g->stream>>>(A, n, p, list, count, to);
}

void grass_transpose_device(const bench_gpu *g, const float *from, int64_t rows, int64_t cols, float *to)
{
    const dim3 grid((unsigned)((cols + TILE - 1) / TILE), (unsigned)((rows + TILE - 1) / TILE));
    transpose<<<grid, dim3(TILE, TILE_ROWS), 0, g->stream>>>(from, rows, cols, to);
}
