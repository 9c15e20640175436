/* scatter.cu - the SJLT by scattering into Y in global memory, as the projector of GraSS does (Hu et al., 2025).
 *
 * One thread for every element of A; it adds the element, with its sign, to s elements of Y with float atomics.  Rows
 * and signs are read from a table that is made beforehand: here 4 bytes a nonzero, 2 (row) + (1 if the sign is
 * minus). */
#include <stdlib.h>

#include "baselines.h"
#include "bench/gpu/bench_gpu.h"
#include "def/blockperm.h"

typedef struct scatter {
    baseline_problem problem;
    uint32_t *code; /* d x s */
} scatter;

/* Column j of the SJLT, which is BlockPerm-SJLT with a single block. */
static __global__ void draw(fsi_blockperm B, uint32_t *code)
{
    const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= B.d) return;
    for (int64_t q = 0; q < B.bands; q++)
        fsi_blockperm_nonzeros(&B, 0, j, 1, q, B.k, code + j * B.s + q * B.per_band, 1);
}

/* A is `outer` runs of `inner` elements.  ROW_MAJOR: a run is a row of A, otherwise a sample of all its coordinates. */
template <bool ROW_MAJOR> static __global__ void add(const float *A, int64_t outer, int64_t inner, const uint32_t *code,
                                                     int s, float scale, int64_t k, float *Y)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= inner) return;
    for (int64_t o = blockIdx.y; o < outer; o += gridDim.y) {
        const float x = scale * A[o * inner + i];
        const uint32_t *mine = code + (ROW_MAJOR ? o : i) * s;
        for (int t = 0; t < s; t++) {
            const int64_t row = mine[t] >> 1;
            atomicAdd(ROW_MAJOR ? &Y[row * inner + i] : &Y[o * k + row], mine[t] & 1 ? -x : x);
        }
    }
}

static int open(void **state, const baseline_problem *problem)
{
    scatter *s = (scatter *)calloc(1, sizeof *s);
    *state = s;
    if (!s) return 1;
    s->problem = *problem;
    const size_t bytes = sizeof *s->code * (size_t)(problem->spec.d * problem->spec.s);
    return bench_cuda_failed(cudaMalloc(&s->code, bytes), "reserving memory for S");
}

static int prepare(void *state)
{
    const scatter *s = (const scatter *)state;
    const fs_spec *spec = &s->problem.spec;
    const fsi_blockperm B = fsi_blockperm_make(spec->seed, spec->d, spec->k, 1, 1, spec->s, FSI_DEF_NONE, 1);
    draw<<<(unsigned)((spec->d + 255) / 256), 256, 0, s->problem.g->stream>>>(B, s->code);
    return bench_cuda_failed(cudaGetLastError(), "drawing S");
}

static int run(void *state, void *A, void *Y)
{
    const scatter *s = (const scatter *)state;
    const baseline_problem *p = &s->problem;
    const bool by_sample = p->batch_major || p->n == 1; /* one column has the layout of one sample */
    const int64_t d = p->spec.d, k = p->spec.k, inner = by_sample ? d : p->n, outer = by_sample ? p->n : d;
    const dim3 grid((unsigned)((inner + 255) / 256), (unsigned)(outer < 65535 ? outer : 65535));
    const float scale = (float)(1.0 / __builtin_sqrt((double)p->spec.s));
    const auto kernel = by_sample ? add<false> : add<true>;
    const size_t bytes = sizeof(float) * (size_t)(k * p->n);
    if (bench_cuda_failed(cudaMemsetAsync(Y, 0, bytes, p->g->stream), "clearing Y")) return 1;
    kernel<<<grid, 256, 0, p->g->stream>>>((const float *)A, outer, inner, s->code, (int)p->spec.s, scale, k,
                                           (float *)Y);
    return bench_cuda_failed(cudaGetLastError(), "scattering into Y");
}

static void close(void *state)
{
    scatter *s = (scatter *)state;
    if (!s) return;
    cudaFree(s->code);
    free(s);
}

extern "C" const baseline baseline_scatter = {open, prepare, run, NULL, close};
