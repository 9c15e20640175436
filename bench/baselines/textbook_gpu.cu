/* textbook_gpu.cu - the textbook's solvers by cuBLAS and cuSOLVER, in f32: getrf of the normal equations; geqrf. */
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/gpu/bench_gpu.h"
#include "textbook.h"

typedef struct solver {
    bench_gpu *g;
    int k, n, rhs;
    cublasHandle_t blas;
    cusolverDnHandle_t lapack;
    float *G, *T, *tau, *work; /* n x n; Y by columns (k x n) or Y' (n x k); the QR's scalars */
    int *pivots, *info;
    int room; /* floats in work */
} solver;

static int blas_failed(cublasStatus_t status, const char *doing)
{
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    fprintf(stderr, "fsbench: %s: %s\n", doing, cublasGetStatusString(status));
    return 1;
}
static int lapack_failed(cusolverStatus_t status, const char *doing)
{
    if (status == CUSOLVER_STATUS_SUCCESS) return 0;
    fprintf(stderr, "fsbench: %s: cuSOLVER's status %d\n", doing, (int)status);
    return 1;
}

static __global__ void add_to_diagonal(float *G, int n, float lambda)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) G[(int64_t)i * n + i] += lambda;
}

/* The largest workspace that any of the factorizations needs. */
static int workspace(solver *s)
{
    const int rows = s->k > s->n ? s->k : s->n, steps = s->k > s->n ? s->n : s->k;
    int lu = 0, qr = 0, mul = 0;
    const cublasOperation_t op = s->k >= s->n ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (lapack_failed(cusolverDnSgetrf_bufferSize(s->lapack, s->n, s->n, s->G, s->n, &lu), "asking for LU's memory") ||
        lapack_failed(cusolverDnSgeqrf_bufferSize(s->lapack, rows, steps, s->T, rows, &qr), "asking for QR's memory") ||
        lapack_failed(cusolverDnSormqr_bufferSize(s->lapack, CUBLAS_SIDE_LEFT, op, rows, s->rhs, steps, s->T, rows,
                                                  s->tau, s->T, rows, &mul),
                      "asking for Q's memory"))
        return 1;
    s->room = lu > qr ? lu : qr;
    if (mul > s->room) s->room = mul;
    return bench_cuda_failed(cudaMalloc((void **)&s->work, sizeof(float) * (size_t)(s->room + 1)),
                             "reserving memory for factorizations");
}

static int open(void **state, struct bench_gpu *g, int64_t k, int64_t n, int64_t rhs)
{
    solver *s = (solver *)calloc(1, sizeof *s);
    *state = s;
    if (!s) return 1;
    s->g = g, s->k = (int)k, s->n = (int)n, s->rhs = (int)rhs;
    const char *doing = "reserving memory for a textbook's solver";
    return blas_failed(cublasCreate(&s->blas), "opening cuBLAS") ||
           blas_failed(cublasSetStream(s->blas, g->stream), "giving cuBLAS a stream") ||
           lapack_failed(cusolverDnCreate(&s->lapack), "opening cuSOLVER") ||
           lapack_failed(cusolverDnSetStream(s->lapack, g->stream), "giving cuSOLVER a stream") ||
           bench_cuda_failed(cudaMalloc((void **)&s->G, sizeof(float) * (size_t)(n * n)), doing) ||
           bench_cuda_failed(cudaMalloc((void **)&s->T, sizeof(float) * (size_t)(k * n)), doing) ||
           bench_cuda_failed(cudaMalloc((void **)&s->tau, sizeof(float) * (size_t)(k + n)), doing) ||
           bench_cuda_failed(cudaMalloc((void **)&s->pivots, sizeof(int) * (size_t)n), doing) ||
           bench_cuda_failed(cudaMalloc((void **)&s->info, sizeof(int)), doing) || workspace(s);
}

/* cuBLAS reads Y in packed rows as Y', n x k.  A singular matrix leaves infinities, which the residual shows. */
static int ridge(void *state, float *Y, float *C, float lambda, float *X)
{
    solver *s = (solver *)state;
    const int n = s->n, k = s->k;
    const float one = 1, zero = 0;
    if (blas_failed(cublasSgemm(s->blas, CUBLAS_OP_N, CUBLAS_OP_T, n, n, k, &one, Y, n, Y, n, &zero, s->G, n),
                    "making Y'Y") ||
        blas_failed(cublasSgemm(s->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, s->rhs, k, &one, Y, n, C, k, &zero, X, n),
                    "making Y'C"))
        return 1;
    add_to_diagonal<<<(unsigned)((n + 255) / 256), 256, 0, s->g->stream>>>(s->G, n, lambda);
    return bench_cuda_failed(cudaGetLastError(), "adding lambda") ||
           lapack_failed(cusolverDnSgetrf(s->lapack, n, n, s->G, n, s->work, s->pivots, s->info), "factoring by LU") ||
           lapack_failed(cusolverDnSgetrs(s->lapack, CUBLAS_OP_N, n, s->rhs, s->G, n, s->pivots, X, n, s->info),
                         "solving by LU");
}

/* k >= n: Y = Q R, x = R^-1 Q'c. */
static int solve_tall(solver *s, const float *Y, float *C, float *X)
{
    const int n = s->n, k = s->k;
    const float one = 1, zero = 0;
    return blas_failed(cublasSgeam(s->blas, CUBLAS_OP_T, CUBLAS_OP_N, k, n, &one, Y, n, &zero, s->T, k, s->T, k),
                       "transposing Y") ||
           lapack_failed(cusolverDnSgeqrf(s->lapack, k, n, s->T, k, s->tau, s->work, s->room, s->info),
                         "factoring by QR") ||
           lapack_failed(cusolverDnSormqr(s->lapack, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, k, s->rhs, n, s->T, k, s->tau, C, k,
                                          s->work, s->room, s->info),
                         "multiplying by Q'") ||
           blas_failed(cublasStrsm(s->blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT,
                                   n, s->rhs, &one, s->T, k, C, k),
                       "solving with R") ||
           bench_cuda_failed(cudaMemcpy2DAsync(X, sizeof(float) * (size_t)n, C, sizeof(float) * (size_t)k,
                                               sizeof(float) * (size_t)n, (size_t)s->rhs, cudaMemcpyDeviceToDevice,
                                               s->g->stream),
                             "copying x");
}

/* k < n: Y' = Q R, x = Q R^-T c, the shortest of all. */
static int solve_wide(solver *s, const float *Y, float *C, float *X)
{
    const int n = s->n, k = s->k;
    const float one = 1;
    const cudaStream_t stream = s->g->stream;
    const size_t whole = sizeof(float) * (size_t)n * (size_t)k, x_pitch = sizeof(float) * (size_t)n;
    return bench_cuda_failed(cudaMemcpyAsync(s->T, Y, whole, cudaMemcpyDeviceToDevice, stream), "copying Y") ||
           lapack_failed(cusolverDnSgeqrf(s->lapack, n, k, s->T, n, s->tau, s->work, s->room, s->info),
                         "factoring by QR") ||
           blas_failed(cublasStrsm(s->blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT,
                                   k, s->rhs, &one, s->T, n, C, k),
                       "solving with R'") ||
           bench_cuda_failed(cudaMemsetAsync(X, 0, x_pitch * (size_t)s->rhs, stream), "clearing x") ||
           bench_cuda_failed(cudaMemcpy2DAsync(X, x_pitch, C, sizeof(float) * (size_t)k, sizeof(float) * (size_t)k,
                                               (size_t)s->rhs, cudaMemcpyDeviceToDevice, stream),
                             "copying x") ||
           lapack_failed(cusolverDnSormqr(s->lapack, CUBLAS_SIDE_LEFT, CUBLAS_OP_N, n, s->rhs, k, s->T, n, s->tau, X, n,
                                          s->work, s->room, s->info),
                         "multiplying by Q");
}

static int solve(void *state, float *Y, float *C, float *X)
{
    solver *s = (solver *)state;
    return s->k >= s->n ? solve_tall(s, Y, C, X) : solve_wide(s, Y, C, X);
}

static void close(void *state)
{
    solver *s = (solver *)state;
    if (!s) return;
    if (s->blas) cublasDestroy(s->blas);
    if (s->lapack) cusolverDnDestroy(s->lapack);
    cudaFree(s->G);
    cudaFree(s->T);
    cudaFree(s->tau);
    cudaFree(s->work);
    cudaFree(s->pivots);
    cudaFree(s->info);
    free(s);
}

extern "C" const textbook textbook_gpu = {open, ridge, solve, close};
