/* data.cu - the matrices of data.c, made in device memory: a thread makes four rows of a column. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "data.h"

static int failed(cudaError_t error, const char *doing)
{
    if (error == cudaSuccess) return 0;
    fprintf(stderr, "fsbench: %s: %s\n", doing, cudaGetErrorString(error));
    return 1;
}

static __global__ void make(recipe r, float *A)
{
    const int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x, p = blockIdx.x;
    float a[4];
    if (j >= r.n) return;
    recipe_four(&r, p, j, a);
    for (int e = 0; e < 4; e++)
        if (4 * p + e < r.d) A[(4 * p + e) * r.n + j] = a[e];
}

static __global__ void normals(uint64_t seed, enum recipe_stream stream, int64_t rows, int64_t cols, float *out)
{
    const int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x, p = blockIdx.x;
    float z[4];
    if (j >= cols) return;
    recipe_normals(seed, stream, p, j, z);
    for (int e = 0; e < 4; e++)
        if (4 * p + e < rows) out[(4 * p + e) * cols + j] = z[e];
}

/* A thread sums a row, in the order in which the host does. */
static __global__ void times(const float *A, int64_t d, int64_t n, const float *x, double *Ax)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    if (i >= d) return;
    for (int64_t j = 0; j < n; j++) sum = __dadd_rn(sum, __dmul_rn(A[i * n + j], x[j]));
    Ax[i] = sum;
}

/* Blocks (four rows, 128 columns). */
static dim3 fours(int64_t rows, int64_t cols)
{
    return dim3((unsigned)((rows + 3) / 4), (unsigned)((cols + 127) / 128));
}

/* Files are read by the host. */
static int make_from_file(const data_set *set, float *A)
{
    const size_t bytes = sizeof(float) * (size_t)(set->d * set->n);
    float *host = (float *)malloc(bytes);
    if (!host) fprintf(stderr, "fsbench: no memory for a matrix of %zu bytes\n", bytes);
    const int bad = !host || data_make(set, host) ||
                    failed(cudaMemcpy(A, host, bytes, cudaMemcpyHostToDevice), "copying a matrix");
    free(host);
    return bad;
}

int data_make_device(const data_set *set, float *A, void *on)
{
    cudaStream_t stream = (cudaStream_t)on;
    if (set->source->kind) return make_from_file(set, A);
    recipe r = {set->source->recipe, set->seed, set->d, set->n, NULL, NULL};
    float *factors = NULL;
    if (r.kind == RECIPE_LOWRANK) {
        const size_t bytes = sizeof(float) * (size_t)(RECIPE_RANK * (r.d + r.n));
        if (failed(cudaMalloc((void **)&factors, bytes), "reserving memory for two factors")) return 1;
        float *V = factors + RECIPE_RANK * r.d;
        normals<<<fours(r.d, RECIPE_RANK), 128, 0, stream>>>(r.seed, STREAM_U, r.d, RECIPE_RANK, factors);
        normals<<<fours(RECIPE_RANK, r.n), 128, 0, stream>>>(r.seed, STREAM_V, RECIPE_RANK, r.n, V);
        r.U = factors, r.V = V;
    }
    make<<<fours(r.d, r.n), 128, 0, stream>>>(r, A);
    const int bad = failed(cudaGetLastError(), "making a matrix") ||
                    failed(cudaStreamSynchronize(stream), "making a matrix");
    cudaFree(factors);
    return bad;
}

int data_times_device(const float *A, int64_t d, int64_t n, const float *x, double *Ax, void *on)
{
    times<<<(unsigned)((d + 127) / 128), 128, 0, (cudaStream_t)on>>>(A, d, n, x, Ax);
    return failed(cudaGetLastError(), "multiplying A by a vector");
}
