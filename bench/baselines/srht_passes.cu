/* srht_passes.cu - the usual implementation of the SRHT: signs, a whole Hadamard transform in memory, k of its rows.
 *
 * A thread takes one column and 16 rows `apart` rows from each other, does four stages of the transform in registers
 * and writes them back; log2(N) / 4 such passes, the last one shorter, go over the N x n work matrix, N the power of
 * two at or above d.  The first reads A, with signs, and zeros below it.  Then k rows are gathered and scaled.  Signs
 * and rows are read from tables that are made beforehand. */
#include <stdio.h>
#include <stdlib.h>

#include "baselines.h"
#include "bench/gpu/bench_gpu.h"
#include "def/srht.h"

enum { THREADS = 128 };

typedef struct srht_passes {
    baseline_problem problem;
    float *work, *sign; /* N x n; d */
    int64_t *row;       /* k */
} srht_passes;

static __global__ void draw(fsi_srht H, float *sign, int64_t *row)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < H.d) sign[i] = fsi_srht_flip(&H, i) ? -1.0f : 1.0f;
    if (i < H.k) row[i] = (int64_t)fsi_srht_row(&H, i);
}

/* Groups are COUNT rows `apart` from each other; where one begins. */
template <int COUNT> static __host__ __device__ int64_t first_row(int64_t group, int64_t apart)
{
    return group / apart * apart * COUNT + group % apart;
}

/* The stages of one column and one group, in registers. */
template <int COUNT> static __host__ __device__ void stages(float *x)
{
#pragma unroll
    for (int half = 1; half < COUNT; half *= 2)
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            if (!(i & half)) {
                const float a = x[i], b = x[i + half];
                x[i] = a + b, x[i + half] = a - b;
            }
}

/* One group of one column of a pass.  A is not NULL in the first one: rows from d on are zero. */
template <int COUNT> static __host__ __device__ void transform(const float *A, int64_t d, const float *sign,
                                                               float *work, int64_t n, int64_t apart, int64_t group,
                                                               int64_t column)
{
    const int64_t first = first_row<COUNT>(group, apart);
    float x[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int64_t row = first + i * apart;
        if (!A) x[i] = work[row * n + column];
        else x[i] = row < d ? sign[row] * A[row * n + column] : 0.0f;
    }
    stages<COUNT>(x);
#pragma unroll
    for (int i = 0; i < COUNT; i++) work[(first + i * apart) * n + column] = x[i];
}

/* Blocks (group, tile of columns). */
template <int COUNT>
static __global__ void pass(const float *A, int64_t d, const float *sign, float *work, int64_t n, int64_t apart)
{
    const int64_t column = (int64_t)blockIdx.y * THREADS + threadIdx.x;
    if (column < n) transform<COUNT>(A, d, sign, work, n, apart, blockIdx.x, column);
}

/* Blocks (row of Y, tile of columns). */
static __global__ void gather(const int64_t *row, const float *work, int64_t n, float scale, float *Y)
{
    const int64_t column = (int64_t)blockIdx.y * THREADS + threadIdx.x;
    if (column < n) Y[blockIdx.x * n + column] = scale * work[row[blockIdx.x] * n + column];
}

static int open(void **state, const baseline_problem *problem)
{
    srht_passes *s = (srht_passes *)calloc(1, sizeof *s);
    *state = s;
    if (!s) return 1;
    s->problem = *problem;
    if (problem->batch_major || problem->dtype != FS_F32) {
        fprintf(stderr, "fsbench: the Hadamard passes take row-major f32\n");
        return 1;
    }
    const size_t bytes = sizeof(float) * (size_t)(fsi_srht_order(problem->spec.d) * problem->n);
    const char *doing = "reserving memory for a Hadamard transform";
    return bench_cuda_failed(cudaMalloc((void **)&s->work, bytes), doing) ||
           bench_cuda_failed(cudaMalloc((void **)&s->sign, sizeof(float) * (size_t)problem->spec.d), doing) ||
           bench_cuda_failed(cudaMalloc((void **)&s->row, sizeof(int64_t) * (size_t)problem->spec.k), doing);
}

static int prepare(void *state)
{
    const srht_passes *s = (const srht_passes *)state;
    const fsi_srht H = fsi_srht_make(s->problem.spec.seed, s->problem.spec.d, s->problem.spec.k);
    const int64_t items = H.d > H.k ? H.d : H.k;
    draw<<<(unsigned)((items + THREADS - 1) / THREADS), THREADS, 0, s->problem.g->stream>>>(H, s->sign, s->row);
    return bench_cuda_failed(cudaGetLastError(), "drawing S");
}

static int run(void *state, void *A, void *Y)
{
    const srht_passes *s = (const srht_passes *)state;
    const fs_spec *spec = &s->problem.spec;
    const int64_t n = s->problem.n;
    const cudaStream_t stream = s->problem.g->stream;
    const int64_t N = fsi_srht_order(spec->d);
    const unsigned tiles = (unsigned)((n + THREADS - 1) / THREADS);
    const float *from = (const float *)A;
    for (int64_t apart = 1; apart < N; from = NULL) {
        const int64_t left = N / apart, count = left < 16 ? left : 16;
        const auto kernel = count == 16 ? pass<16> : count == 8 ? pass<8> : count == 4 ? pass<4> : pass<2>;
        kernel<<<dim3((unsigned)(N / count), tiles), THREADS, 0, stream>>>(from, spec->d, s->sign, s->work, n, apart);
        apart *= count;
    }
    const float scale = (float)(1.0 / __builtin_sqrt((double)spec->k));
    gather<<<dim3((unsigned)spec->k, tiles), THREADS, 0, stream>>>(s->row, s->work, n, scale, (float *)Y);
    return bench_cuda_failed(cudaGetLastError(), "running a Hadamard transform");
}

static void close(void *state)
{
    srht_passes *s = (srht_passes *)state;
    if (!s) return;
    cudaFree(s->work);
    cudaFree(s->sign);
    cudaFree(s->row);
    free(s);
}

extern "C" const baseline baseline_srht_passes = {open, prepare, run, NULL, close};
