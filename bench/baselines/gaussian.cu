/* gaussian.cu - the dense Gaussian by cuBLAS: S in memory, Y = S A as one matrix product.
 *
 * f32 and TF32 take A in f32; bf16 takes A and S in bf16 and sums in f32. */
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <stdio.h>
#include <stdlib.h>

#include "baselines.h"
#include "bench/gpu/bench_gpu.h"
#include "def/gauss.h"

typedef struct gaussian {
    baseline_problem problem;
    cublasHandle_t handle;
    void *S; /* k x d, row-major, in A's type */
} gaussian;

/* Thread (j, p) makes the entries of column j in rows 4 p ... 4 p + 3; k is a multiple of 4. */
template <class T> static __global__ void draw(fsi_gauss G, double scale, T *S)
{
    const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, p = blockIdx.y;
    if (j >= G.d) return;
    float z[4];
    fsi_gauss_four(&G, p, j, z);
    for (int i = 0; i < 4; i++) S[(4 * p + i) * G.d + j] = (T)(float)(z[i] * scale);
}

static int cublas_failed(cublasStatus_t status, const char *doing)
{
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    fprintf(stderr, "fsbench: %s: %s\n", doing, cublasGetStatusString(status));
    return 1;
}

static int open(void **state, const baseline_problem *problem)
{
    gaussian *s = (gaussian *)calloc(1, sizeof *s);
    *state = s;
    if (!s) return 1;
    s->problem = *problem;
    if (problem->spec.k % 4) {
        fprintf(stderr, "fsbench: the Gaussian baseline needs k to be a multiple of 4\n");
        return 1;
    }
    const int64_t entries = problem->spec.k * problem->spec.d;
    const size_t bytes = (size_t)entries * (problem->dtype == FS_F32 ? sizeof(float) : sizeof(__nv_bfloat16));
    if (bench_cuda_failed(cudaMalloc(&s->S, bytes), "reserving memory for S")) return 1;
    return cublas_failed(cublasCreate(&s->handle), "opening cuBLAS") ||
           cublas_failed(cublasSetStream(s->handle, problem->g->stream), "giving cuBLAS a stream");
}

static int prepare(void *state)
{
    const gaussian *s = (const gaussian *)state;
    const fs_spec *spec = &s->problem.spec;
    const fsi_gauss G = fsi_gauss_make(spec->seed, spec->d, spec->k);
    const double scale = 1.0 / __builtin_sqrt((double)spec->k);
    const dim3 grid((unsigned)((spec->d + 255) / 256), (unsigned)(spec->k / 4));
    if (s->problem.dtype == FS_F32) draw<float><<<grid, 256, 0, s->problem.g->stream>>>(G, scale, (float *)s->S);
    else draw<__nv_bfloat16><<<grid, 256, 0, s->problem.g->stream>>>(G, scale, (__nv_bfloat16 *)s->S);
    return bench_cuda_failed(cudaGetLastError(), "drawing S");
}

/* cuBLAS takes matrices by columns and reads a row-major one as its transpose.  So row-major A gives Y' = A' S';
 * batch-major A is d x n by columns already, and Y = S A takes S transposed. */
static int run(void *state, void *A, void *Y)
{
    const gaussian *s = (const gaussian *)state;
    const baseline_problem *p = &s->problem;
    const int d = (int)p->spec.d, n = (int)p->n, k = (int)p->spec.k;
    const cudaDataType type = p->dtype == FS_F32 ? CUDA_R_32F : CUDA_R_16BF;
    const cublasComputeType_t compute = p->product == PRODUCT_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const float one = 1, zero = 0;
    cublasStatus_t status;
    if (p->batch_major)
        status = cublasGemmEx(s->handle, CUBLAS_OP_T, CUBLAS_OP_N, k, n, d, &one, s->S, type, d, A, type, d, &zero, Y,
                              CUDA_R_32F, k, compute, CUBLAS_GEMM_DEFAULT);
    else
        status = cublasGemmEx(s->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, k, d, &one, A, type, n, s->S, type, d, &zero, Y,
                              CUDA_R_32F, n, compute, CUBLAS_GEMM_DEFAULT);
    return cublas_failed(status, "multiplying by cuBLAS");
}

static void close(void *state)
{
    gaussian *s = (gaussian *)state;
    if (!s) return;
    if (s->handle) cublasDestroy(s->handle);
    cudaFree(s->S);
    free(s);
}

extern "C" const baseline baseline_gaussian = {open, prepare, run, NULL, close};
