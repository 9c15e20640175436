/* shared_atomics.cu - BlockPerm-SJLT after the FlashSketch paper's Algorithm 1: sums in shared memory by float atomics.
 *
 * A thread block computes the tile of Y in block row g and a tile of TN columns.  It loops over the kappa input blocks
 * f^l(g), loads TK rows of A at a time into shared memory, and adds every element to s rows of its tile; rows and signs
 * are hashed again for every element.  Where block rows and column tiles are too few for the GPU, input blocks are cut
 * into slices whose partial tiles are added with global atomics (the paper's split-B_c fallback).  S is never stored.
 *
 * algorithm1.h has the hash.  Its S is not the library's, so the reference below scatters in double. */
#include <stdio.h>
#include <stdlib.h>

#include "algorithm1.h"
#include "baselines.h"
#include "bench/gpu/bench_gpu.h"

enum { BR = ALGORITHM1_BR, TN = ALGORITHM1_TN, TK = ALGORITHM1_TK, THREADS = 256, MOST_SLICES = 16 };

typedef struct shared_atomics {
    baseline_problem problem;
    fsi_wiring wiring;
} shared_atomics;

/* The arguments of a kernel. */
typedef struct block_shape {
    fsi_wiring wiring;
    uint32_t seed;
    int64_t n, bc; /* bc: rows of an input block */
    int kappa, slices;
    float scale;
} block_shape;

/* Adds rows first ... first + TK - 1 of input block h to the tile of sums.  WHOLE: n is a multiple of TN. */
template <int S, bool WHOLE> static __device__ void add_rows(const block_shape &p, const float *A, uint32_t g,
                                                             uint32_t h, int64_t first, int64_t column,
                                                             float (*rows)[TN], float (*sums)[TN])
{
    const float *corner = A + ((int64_t)h * p.bc + first) * p.n + column;
    if (WHOLE) {
        for (int i = threadIdx.x; i < TK * TN / 4; i += THREADS) {
            const int u = i / (TN / 4), t = i % (TN / 4) * 4;
            *(float4 *)&rows[u][t] = *(const float4 *)(corner + u * p.n + t);
        }
    } else {
        for (int i = threadIdx.x; i < TK * TN; i += THREADS) {
            const int u = i / TN, t = i % TN;
            rows[u][t] = column + t < p.n ? corner[u * p.n + t] : 0.0f;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TK * TN; i += THREADS) {
        const int u = i / TN, t = i % TN;
        const uint32_t w = algorithm1_word(p.seed, g, h, (uint32_t)(first + u));
        const float x = rows[u][t];
#pragma unroll
        for (int e = 0; e < S; e++) atomicAdd(&sums[algorithm1_row(w, e)][t], algorithm1_minus(w, e) ? -x : x);
    }
    __syncthreads();
}

/* Block (tile of columns, g, slice). */
template <int S, bool WHOLE> static __global__ void __launch_bounds__(THREADS)
    sketch(block_shape p, const float *A, float *Y)
{
    __shared__ float rows[TK][TN], sums[BR][TN];
    const int64_t column = (int64_t)blockIdx.x * TN, per_slice = p.bc / p.slices;
    const uint32_t g = blockIdx.y;
    for (int i = threadIdx.x; i < BR * TN; i += THREADS) sums[i / TN][i % TN] = 0;
    __syncthreads();
    uint32_t h = g;
    for (int l = 0; l < p.kappa; l++) {
        h = fsi_wiring_next(&p.wiring, h);
        for (int64_t u = 0; u < per_slice; u += TK)
            add_rows<S, WHOLE>(p, A, g, h, blockIdx.z * per_slice + u, column, rows, sums);
    }
    for (int i = threadIdx.x; i < BR * TN; i += THREADS) {
        float *to = Y + ((int64_t)g * BR + i / TN) * p.n + column + i % TN;
        const float y = p.scale * sums[i / TN][i % TN];
        if (!WHOLE && column + i % TN >= p.n) continue;
        if (p.slices == 1) *to = y;
        else atomicAdd(to, y);
    }
}

/* The same S by plain scattering in double, one thread an element of A; Y is zero before. */
static __global__ void scatter_double(block_shape p, int s, const double *A, double *Y)
{
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, j = at / p.n, column = at % p.n;
    if (j >= p.bc * p.wiring.M) return;
    const uint32_t h = (uint32_t)(j / p.bc);
    uint32_t g = h;
    for (int l = 0; l < p.kappa; l++) {
        g = fsi_wiring_back(&p.wiring, g);
        const uint32_t w = algorithm1_word(p.seed, g, h, (uint32_t)(j % p.bc));
        for (int e = 0; e < s; e++) {
            const double x = p.scale * A[at];
            atomicAdd(&Y[((int64_t)g * BR + algorithm1_row(w, e)) * p.n + column], algorithm1_minus(w, e) ? -x : x);
        }
    }
}

static int open(void **state, const baseline_problem *problem)
{
    const fs_spec *spec = &problem->spec;
    shared_atomics *s = (shared_atomics *)calloc(1, sizeof *s);
    *state = s;
    if (!s) return 1;
    s->problem = *problem;
    const int fits = spec->k % BR == 0 && spec->M == spec->k / BR && spec->d % (spec->M * TK) == 0 &&
                     !problem->batch_major && problem->dtype == FS_F32;
    if (!fits) fprintf(stderr, "fsbench: the shared-memory baseline takes row-major f32 in whole blocks\n");
    s->wiring = fsi_wiring_make(spec->seed, (uint32_t)spec->M);
    return !fits;
}

static block_shape shape_of(const shared_atomics *s, int64_t n)
{
    const fs_spec *spec = &s->problem.spec;
    block_shape p;
    p.wiring = s->wiring;
    p.seed = (uint32_t)spec->seed;
    p.n = n;
    p.bc = spec->d / spec->M;
    p.kappa = (int)spec->kappa;
    p.scale = (float)(1.0 / __builtin_sqrt((double)(spec->kappa * spec->s)));
    p.slices = 1;
    return p;
}

template <bool WHOLE> static auto kernel_for(int64_t s) -> void (*)(block_shape, const float *, float *)
{
    return s == 1 ? sketch<1, WHOLE> : s == 2 ? sketch<2, WHOLE> : sketch<4, WHOLE>;
}

static int run(void *state, void *A, void *Y)
{
    const shared_atomics *s = (const shared_atomics *)state;
    const baseline_problem *problem = &s->problem;
    block_shape p = shape_of(s, problem->n);
    /* Slices until there are eight thread blocks for every SM, each of whole tiles. */
    const int64_t tiles = (problem->n + TN - 1) / TN, enough = 8 * (int64_t)problem->g->processors;
    while (p.slices < MOST_SLICES && tiles * problem->spec.M * p.slices < enough && p.bc % (2 * p.slices * TK) == 0)
        p.slices *= 2;
    const size_t bytes = sizeof(float) * (size_t)(problem->spec.k * problem->n);
    if (p.slices > 1 && bench_cuda_failed(cudaMemsetAsync(Y, 0, bytes, problem->g->stream), "clearing Y")) return 1;
    const dim3 grid((unsigned)tiles, (unsigned)problem->spec.M, (unsigned)p.slices);
    const auto kernel = problem->n % TN ? kernel_for<false>(problem->spec.s) : kernel_for<true>(problem->spec.s);
    kernel<<<grid, THREADS, 0, problem->g->stream>>>(p, (const float *)A, (float *)Y);
    return bench_cuda_failed(cudaGetLastError(), "sketching with shared-memory atomics");
}

static int reference(void *state, const fs_matrix *from, fs_matrix *to)
{
    const shared_atomics *s = (const shared_atomics *)state;
    const cudaStream_t stream = s->problem.g->stream;
    const block_shape p = shape_of(s, from->cols);
    const double *A = (const double *)from->data;
    const int64_t elements = from->rows * from->cols;
    const size_t bytes = sizeof(double) * (size_t)(to->rows * to->cols);
    if (bench_cuda_failed(cudaMemsetAsync(to->data, 0, bytes, stream), "clearing the reference")) return 1;
    const unsigned blocks = (unsigned)((elements + 255) / 256);
    scatter_double<<<blocks, 256, 0, stream>>>(p, (int)s->problem.spec.s, A, (double *)to->data);
    return bench_cuda_failed(cudaGetLastError(), "making the reference");
}

extern "C" const baseline baseline_shared_atomics = {open, NULL, run, reference, free};
