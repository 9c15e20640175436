/* dense.cu - the linear algebra of tasks on a GPU: cuBLAS and cuSOLVER, cholesky.cu where that is faster, and a few
 * kernels for what none of them has.
 *
 * Both libraries are opened when the first workspace is made, and never linked: the plugin loads where neither is
 * installed.  Their functions are declared here, by the few that are used, so that neither's headers are needed to
 * build; the numbers are those of cublas_api.h and cusolver_common.h, which have not changed since CUDA 8. */
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/linalg/cholesky.h"
#include "cuda/linalg/products.h"
#include "cuda/runtime/element.cuh"
#include "cuda/runtime/gpu.h"

enum { OP_N = 0, OP_T = 1, LOWER = 0, LEFT = 0, RIGHT = 1, NON_UNIT = 0, NO_VECTORS = 0 };

typedef struct gpu_libraries {
    void *cublas, *cusolver; /* dlopen's handles */
    int (*cublasCreate)(void **);
    int (*cublasDestroy)(void *);
    int (*cublasSetStream)(void *, cudaStream_t);
    int (*dgemm)(void *, int, int, int, int, int, const double *, const double *, int, const double *, int,
                 const double *, double *, int);
    int (*dsyrk)(void *, int, int, int, int, const double *, const double *, int, const double *, double *, int);
    int (*dtrsm)(void *, int, int, int, int, int, int, const double *, const double *, int, double *, int);
    int (*dtrsv)(void *, int, int, int, int, const double *, int, double *, int);
    int (*ddgmm)(void *, int, int, int, const double *, int, const double *, int, double *, int);
    int (*dnrm2)(void *, int, const double *, int, double *);
    int (*cusolverCreate)(void **);
    int (*cusolverDestroy)(void *);
    int (*cusolverSetStream)(void *, cudaStream_t);
    int (*potrf_size)(void *, int, int, double *, int, int *);
    int (*potrf)(void *, int, int, double *, int, double *, int, int *);
    int (*syevd_size)(void *, int, int, int, const double *, int, const double *, int *);
    int (*syevd)(void *, int, int, int, double *, int, double *, double *, int, int *);
    int (*gesvd_size)(void *, int, int, int *);
    int (*gesvd)(void *, signed char, signed char, int, int, double *, int, double *, double *, int, double *, int,
                 double *, int, double *, int *);
    int (*geqrf_size)(void *, int, int, double *, int, int *);
    int (*geqrf)(void *, int, int, double *, int, double *, double *, int, int *);
} gpu_libraries;

typedef struct gpu_dense {
    fsi_gpu *gpu; /* first: fsi_gpu_handle */
    gpu_libraries lib;
    void *blas, *solver;   /* their handles */
    cudaStream_t stream;   /* theirs */
    double *work, *values; /* cuSOLVER's work space; eigenvalues or singular values on their way to the host */
    fsi_cholesky cholesky; /* our own potrf and trsv, where they are faster */
    int *info;             /* what potrf came to; then what eigen and svd did: host memory that the GPU
                                         writes, so that no copy is waited for */
    int lwork;
    size_t bytes;
    cudaEvent_t mark[FSI_DENSE_MARKS];
} gpu_dense;

/* opening ---------------------------------------------------------------------------------------------------- */

/* The two of one release of CUDA: cuBLAS 13 comes with cuSOLVER 12, cuBLAS 12 with cuSOLVER 11. */
static const char *const releases[][2] = {
    {"libcublas.so.13", "libcusolver.so.12"},
    {"libcublas.so.12", "libcusolver.so.11"},
    {"/usr/local/cuda/lib64/libcublas.so", "/usr/local/cuda/lib64/libcusolver.so"},
};

static fs_result load(fsi_gpu *gpu, gpu_libraries *lib)
{
    /* They stay loaded when the last workspace is gone: they are large, and loading them again takes its time. */
    const int how = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    char why[256] = "";
    for (size_t i = 0; i < sizeof releases / sizeof releases[0] && !lib->cusolver; i++) {
        lib->cublas = dlopen(releases[i][0], how);
        if (lib->cublas) lib->cusolver = dlopen(releases[i][1], how);
        if (lib->cusolver) break;
        const char *said = dlerror();
        if (!*why || lib->cublas) snprintf(why, sizeof why, "%s", said ? said : "the loader says nothing");
        if (lib->cublas) dlclose(lib->cublas);
        lib->cublas = NULL;
    }
    if (!lib->cusolver)
        return gpu->host.fail(FS_EBACKEND, "tasks on a GPU need cuBLAS and cuSOLVER, which could not be loaded: %s",
                              why);
    const struct {
        void *function;
        int solver;
        const char *name;
    } wanted[] = {
        {&lib->cublasCreate, 0, "cublasCreate_v2"},
        {&lib->cublasDestroy, 0, "cublasDestroy_v2"},
        {&lib->cublasSetStream, 0, "cublasSetStream_v2"},
        {&lib->dgemm, 0, "cublasDgemm_v2"},
        {&lib->dsyrk, 0, "cublasDsyrk_v2"},
        {&lib->dtrsm, 0, "cublasDtrsm_v2"},
        {&lib->dtrsv, 0, "cublasDtrsv_v2"},
        {&lib->ddgmm, 0, "cublasDdgmm"},
        {&lib->dnrm2, 0, "cublasDnrm2_v2"},
        {&lib->cusolverCreate, 1, "cusolverDnCreate"},
        {&lib->cusolverDestroy, 1, "cusolverDnDestroy"},
        {&lib->cusolverSetStream, 1, "cusolverDnSetStream"},
        {&lib->potrf_size, 1, "cusolverDnDpotrf_bufferSize"},
        {&lib->potrf, 1, "cusolverDnDpotrf"},
        {&lib->syevd_size, 1, "cusolverDnDsyevd_bufferSize"},
        {&lib->syevd, 1, "cusolverDnDsyevd"},
        {&lib->gesvd_size, 1, "cusolverDnDgesvd_bufferSize"},
        {&lib->gesvd, 1, "cusolverDnDgesvd"},
        {&lib->geqrf_size, 1, "cusolverDnDgeqrf_bufferSize"},
        {&lib->geqrf, 1, "cusolverDnDgeqrf"},
    };
    for (const auto &w : wanted) {
        void *found = dlsym(w.solver ? lib->cusolver : lib->cublas, w.name);
        if (!found)
            return gpu->host.fail(FS_EBACKEND, "%s has no %s, which tasks need", w.solver ? "cuSOLVER" : "cuBLAS",
                                  w.name);
        memcpy(w.function, &found, sizeof found);
    }
    return FS_OK;
}

/* FS_OK, or FS_EBACKEND with the status of cuBLAS or cuSOLVER. */
static fs_result good(const gpu_dense *h, int status, const char *what)
{
    if (status == 0) return FS_OK;
    return h->gpu->host.fail(FS_EBACKEND, "%s on %s: status %d", what, h->gpu->name, status);
}

/* The context's stream may have changed (fs_context_set_stream): the libraries follow it before they queue work. */
static fs_result follow_stream(gpu_dense *h)
{
    if (h->stream == h->gpu->stream) return FS_OK;
    FSI_TRY(good(h, h->lib.cublasSetStream(h->blas, h->gpu->stream), "giving cuBLAS a stream"));
    FSI_TRY(good(h, h->lib.cusolverSetStream(h->solver, h->gpu->stream), "giving cuSOLVER a stream"));
    h->stream = h->gpu->stream;
    return FS_OK;
}

static void dense_close(void *handle)
{
    gpu_dense *h = (gpu_dense *)handle;
    const fs_allocator memory = h->gpu->host.allocator;
    on_device here(h->gpu->device);
    cudaStreamSynchronize(h->gpu->stream);
    if (h->blas) h->lib.cublasDestroy(h->blas);
    if (h->solver) h->lib.cusolverDestroy(h->solver);
    for (cudaEvent_t event : h->mark)
        if (event) cudaEventDestroy(event);
    cudaFree(h->work);
    cudaFree(h->values);
    cudaFree(h->cholesky.memory);
    cudaFreeHost(h->info);
    if (h->lib.cusolver) dlclose(h->lib.cusolver);
    if (h->lib.cublas) dlclose(h->lib.cublas);
    memory.release(memory.user, h);
}

static fs_result reserve(gpu_dense *h, int64_t n, int64_t m, int64_t p)
{
    int potrf = 0, syevd = 0, gesvd = 0;
    double *none = NULL;
    FSI_TRY(good(h, h->lib.potrf_size(h->solver, LOWER, (int)n, none, (int)n + 8, &potrf),
                 "asking for potrf's work space"));
    FSI_TRY(good(h, h->lib.syevd_size(h->solver, NO_VECTORS, LOWER, (int)n, none, (int)n, none, &syevd),
                 "asking for syevd's work space"));
    FSI_TRY(good(h, h->lib.gesvd_size(h->solver, (int)m, (int)p, &gesvd), "asking for gesvd's work space"));
    h->lwork = (int)fsi_max(fsi_max(potrf, syevd), gesvd);
    h->bytes = (size_t)h->lwork * sizeof(double) + (size_t)(n > p ? n : p) * sizeof(double);
    FSI_TRY(fsi_gpu_check(h->gpu, cudaMalloc((void **)&h->work, (size_t)(h->lwork > 0 ? h->lwork : 1) * sizeof(double)),
                          "taking cuSOLVER's work space"));
    FSI_TRY(fsi_gpu_check(h->gpu, cudaMalloc((void **)&h->values, (size_t)(n > p ? n : p) * sizeof(double)),
                          "taking memory for eigenvalues"));
    FSI_TRY(fsi_gpu_check(h->gpu, cudaHostAlloc((void **)&h->info, 2 * sizeof(int), cudaHostAllocDefault),
                          "taking memory for an answer"));
    h->info[0] = h->info[1] = 0;
    FSI_TRY(fsi_cholesky_open(h->gpu, n, &h->cholesky));
    h->bytes += h->cholesky.bytes;
    for (cudaEvent_t &event : h->mark) FSI_TRY(fsi_gpu_check(h->gpu, cudaEventCreate(&event), "making an event"));
    return FS_OK;
}

static fs_result open_libraries(gpu_dense *h, int64_t n, int64_t m, int64_t p)
{
    FSI_TRY(load(h->gpu, &h->lib));
    FSI_TRY(good(h, h->lib.cublasCreate(&h->blas), "opening cuBLAS"));
    FSI_TRY(good(h, h->lib.cublasSetStream(h->blas, h->gpu->stream), "giving cuBLAS a stream"));
    FSI_TRY(good(h, h->lib.cusolverCreate(&h->solver), "opening cuSOLVER"));
    FSI_TRY(good(h, h->lib.cusolverSetStream(h->solver, h->gpu->stream), "giving cuSOLVER a stream"));
    h->stream = h->gpu->stream;
    return reserve(h, n, m, p);
}

static fs_result dense_open(void **handle, void *backend, const fsi_host *host, int64_t n, int64_t m, int64_t p)
{
    fsi_gpu *gpu = (fsi_gpu *)backend;
    on_device here(gpu->device);
    gpu_dense *h = (gpu_dense *)host->allocator.alloc(host->allocator.user, sizeof *h);
    if (!h) return host->fail(FS_ENOMEM, "no memory for the %zu bytes of a workspace", sizeof *h);
    memset(h, 0, sizeof *h);
    h->gpu = gpu;
    const fs_result result = open_libraries(h, n, m, p);
    if (result == FS_OK) *handle = h;
    else dense_close(h);
    return result;
}

static size_t dense_bytes(const void *handle) { return ((const gpu_dense *)handle)->bytes; }
static fs_result dense_alloc(void *handle, size_t bytes, void **memory)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    size_t free_bytes = 0, all = 0;
    const cudaError_t error = cudaMalloc(memory, bytes ? bytes : 1);
    if (error != cudaErrorMemoryAllocation) return fsi_gpu_check(h->gpu, error, "taking memory for a workspace");
    cudaGetLastError();
    cudaMemGetInfo(&free_bytes, &all);
    return h->gpu->host.fail(FS_ENOMEM, "no memory for %zu bytes of a workspace on %s: %zu are free", bytes,
                             h->gpu->name, free_bytes);
}
static void dense_release(void *handle, void *memory)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    cudaStreamSynchronize(h->gpu->stream);
    cudaFree(memory);
}

/* kernels ---------------------------------------------------------------------------------------------------- */

/* Blocks of 64 x 4 threads walk over rows i and columns j: neighbours have neighbouring j. */
enum { ACROSS = 64, DOWN = 4, FLAT = 256 };
static dim3 tile_grid(int64_t rows, int64_t cols)
{
    const int64_t x = fsi_div_up(cols, ACROSS), y = fsi_div_up(rows, DOWN);
    return dim3((unsigned)(x < 1024 ? x : 1024), (unsigned)(y < 32768 ? y : 32768));
}
#define FOR_TILE(i, rows, j, cols) \
    for (int64_t i = blockIdx.y * (int64_t)DOWN + threadIdx.y; i < (rows); i += (int64_t)gridDim.y * DOWN) \
        for (int64_t j = blockIdx.x * (int64_t)ACROSS + threadIdx.x; j < (cols); j += (int64_t)gridDim.x * ACROSS)

template <class T>
static __global__ void widen_kernel(fsi_input<T> from, int64_t rows, int64_t cols, double *to, int64_t ld)
{
    FOR_TILE(i, rows, j, cols) to[j + i * ld] = (double)from.at(i, j);
}
template <class T> static fs_result widen(gpu_dense *h, const fs_matrix *from, double *to, int64_t ld)
{
    widen_kernel<T><<<tile_grid(from->rows, from->cols), dim3(ACROSS, DOWN), 0, h->gpu->stream>>>(
        fsi_input_of<T>(from), from->rows, from->cols, to, ld);
    return FSI_LAUNCHED(h->gpu, "widening a matrix");
}
static fs_result dense_widen(void *handle, const fs_matrix *from, double *to, int64_t ld)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    if (from->rows == 0 || from->cols == 0) return FS_OK;
#define WIDEN(T) widen<T>(h, from, to, ld)
    return FSI_BY_DTYPE(from->dtype, WIDEN);
#undef WIDEN
}

static __global__ void narrow_kernel(const double *from, int64_t ld, int symmetric, fsi_output to, int64_t rows,
                                     int64_t cols)
{
    FOR_TILE(i, rows, j, cols)
    {
        const double x = from[symmetric && j < i ? i + j * ld : j + i * ld];
        if (to.dtype == FS_F64) fsi_output_put(to, i, j, x);
        else fsi_output_put(to, i, j, (float)x);
    }
}
static fs_result dense_narrow(void *handle, const double *from, int64_t ld, int symmetric, const fs_matrix *to)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    if (to->rows == 0 || to->cols == 0) return FS_OK;
    narrow_kernel<<<tile_grid(to->rows, to->cols), dim3(ACROSS, DOWN), 0, h->gpu->stream>>>(
        from, ld, symmetric, fsi_output_of(to, 1.0, 0.0), to->rows, to->cols);
    return FSI_LAUNCHED(h->gpu, "storing a result");
}

static unsigned flat_grid(int64_t count)
{
    const int64_t blocks = fsi_div_up(count, FLAT);
    return (unsigned)(blocks < 65536 ? blocks : 65536);
}
static __global__ void diagonal_kernel(int64_t n, double *G, int64_t ld, double *d, double shift)
{
    for (int64_t j = blockIdx.x * (int64_t)FLAT + threadIdx.x; j < n; j += (int64_t)gridDim.x * FLAT) {
        const double x = G[j + j * ld];
        if (d) d[j] = x;
        if (shift != 0) G[j + j * ld] = x + shift;
    }
}
static fs_result dense_diagonal(void *handle, int64_t n, double *G, int64_t ld, double *d, double shift)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    if (n == 0) return FS_OK;
    diagonal_kernel<<<flat_grid(n), FLAT, 0, h->gpu->stream>>>(n, G, ld, d, shift);
    return FSI_LAUNCHED(h->gpu, "reading a diagonal");
}

static __global__ void ones_kernel(int64_t n, double *G, int64_t ld)
{
    for (int64_t j = blockIdx.x * (int64_t)FLAT + threadIdx.x; j < n; j += (int64_t)gridDim.x * FLAT)
        if (G[j + j * ld] == 0) G[j + j * ld] = 1;
}
static fs_result dense_ones(void *handle, int64_t n, double *G, int64_t ld)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    ones_kernel<<<flat_grid(n), FLAT, 0, h->gpu->stream>>>(n, G, ld);
    return FSI_LAUNCHED(h->gpu, "filling a diagonal");
}

/* A warp for each sum. */
static __global__ void squares_kernel(int64_t n, int64_t count, const double *x, int64_t ld, double *squares)
{
    const int lane = threadIdx.x % 32;
    for (int64_t i = blockIdx.x * (int64_t)(FLAT / 32) + threadIdx.x / 32; i < count;
         i += (int64_t)gridDim.x * (FLAT / 32)) {
        double sum = 0;
        for (int64_t j = lane; j < n; j += 32) sum += x[j + i * ld] * x[j + i * ld];
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
        if (lane == 0) squares[i] = sum;
    }
}
static fs_result dense_squares(void *handle, int64_t n, int64_t count, const double *x, int64_t ld, double *squares)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    if (count == 0) return FS_OK;
    squares_kernel<<<flat_grid(count * 32), FLAT, 0, h->gpu->stream>>>(n, count, x, ld, squares);
    return FSI_LAUNCHED(h->gpu, "summing squares");
}

static __global__ void add_kernel(int64_t count, double a, const double *x, double *y)
{
    for (int64_t i = blockIdx.x * (int64_t)FLAT + threadIdx.x; i < count; i += (int64_t)gridDim.x * FLAT)
        y[i] += a * x[i];
}
static fs_result dense_add(void *handle, int64_t count, double a, const double *x, double *y)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    if (count == 0) return FS_OK;
    add_kernel<<<flat_grid(count), FLAT, 0, h->gpu->stream>>>(count, a, x, y);
    return FSI_LAUNCHED(h->gpu, "adding vectors");
}

/* copies ----------------------------------------------------------------------------------------------------- */

static fs_result dense_fetch(void *handle, const void *from, size_t bytes, void *host)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_gpu_check(h->gpu, cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, h->gpu->stream),
                          "copying a result to the host"));
    return fsi_gpu_check(h->gpu, cudaStreamSynchronize(h->gpu->stream), "waiting for a task");
}
static fs_result dense_send(void *handle, const void *host, size_t bytes, void *to)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_gpu_check(h->gpu, cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, h->gpu->stream),
                          "copying numbers to the GPU"));
    return fsi_gpu_check(h->gpu, cudaStreamSynchronize(h->gpu->stream), "waiting for a copy");
}
static fs_result dense_zero(void *handle, void *x, size_t bytes)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    return fsi_gpu_check(h->gpu, cudaMemsetAsync(x, 0, bytes, h->gpu->stream), "clearing a matrix");
}

/* cuBLAS and cuSOLVER ---------------------------------------------------------------------------------------- */

static fs_result dense_norm(void *handle, int64_t count, const double *x, double *norm)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(follow_stream(h));
    *norm = 0;
    for (int64_t at = 0; at < count; at += INT_MAX) {
        double slice = 0; /* in host memory: the call waits */
        FSI_TRY(good(h, h->lib.dnrm2(h->blas, count - at < INT_MAX ? (int)(count - at) : INT_MAX, x + at, 1, &slice),
                     "nrm2"));
        *norm = hypot(*norm, slice);
    }
    return FS_OK;
}

static fs_result dense_scale_rows(void *handle, int64_t m, int64_t n, double *B, int64_t ld, const double *f)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(follow_stream(h));
    return good(h, h->lib.ddgmm(h->blas, LEFT, (int)m, (int)n, B, (int)ld, f, 1, B, (int)ld), "dgmm");
}

static fs_result dense_syrk(void *handle, int64_t n, int64_t k, const double *X, int64_t ldx, double beta, double *G,
                            int64_t ldg)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(follow_stream(h));
    const double one = 1;
    return good(h, h->lib.dsyrk(h->blas, LOWER, OP_N, (int)n, (int)k, &one, X, (int)ldx, &beta, G, (int)ldg), "syrk");
}

static fs_result dense_gemm(void *handle, int ta, int tb, int64_t m, int64_t n, int64_t k, double alpha,
                            const double *A, int64_t lda, const double *B, int64_t ldb, double beta, double *C,
                            int64_t ldc)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(follow_stream(h));
    return good(h,
                h->lib.dgemm(h->blas, ta ? OP_T : OP_N, tb ? OP_T : OP_N, (int)m, (int)n, (int)k, &alpha, A, (int)lda,
                             B, (int)ldb, &beta, C, (int)ldc),
                "gemm");
}

static fs_result dense_trsm(void *handle, int left, int transposed, int64_t m, int64_t n, const double *L, int64_t ldl,
                            double *B, int64_t ldb)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(follow_stream(h));
    const double one = 1;
    /* One row times the inverse of op(L) is the inverse of its transpose times a column, which trsv is made for. */
    if (!left && m == 1 && !transposed && h->cholesky.memory)
        return fsi_cholesky_substitute(h->gpu, &h->cholesky, n, L, ldl, B, ldb);
    if (!left && m == 1)
        return good(h,
                    h->lib.dtrsv(h->blas, LOWER, transposed ? OP_N : OP_T, NON_UNIT, (int)n, L, (int)ldl, B, (int)ldb),
                    "trsv");
    return good(h,
                h->lib.dtrsm(h->blas, left ? LEFT : RIGHT, LOWER, transposed ? OP_T : OP_N, NON_UNIT, (int)m, (int)n,
                             &one, L, (int)ldl, B, (int)ldb),
                "trsm");
}

static fs_result dense_potrf(void *handle, int64_t n, double *G, int64_t ld)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(follow_stream(h));
    if (h->cholesky.memory) return fsi_cholesky_factor(h->gpu, &h->cholesky, n, G, ld, h->info);
    return good(h, h->lib.potrf(h->solver, LOWER, (int)n, G, (int)ld, h->work, h->lwork, h->info), "potrf");
}

/* FS_OK, or FS_EBACKEND where the last eigen or svd did not converge; waits. */
static fs_result converged(gpu_dense *h, const char *what, int64_t rows, int64_t cols)
{
    FSI_TRY(fsi_gpu_check(h->gpu, cudaStreamSynchronize(h->gpu->stream), "waiting for a task"));
    const int info = h->info[1];
    if (info == 0) return FS_OK;
    return h->gpu->host.fail(FS_EBACKEND, "the %s of a %lld x %lld matrix did not converge (info %d)", what,
                             (long long)rows, (long long)cols, info);
}

static fs_result dense_eigen(void *handle, int64_t n, double *G, int64_t ld, double *values)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(follow_stream(h));
    FSI_TRY(good(
        h, h->lib.syevd(h->solver, NO_VECTORS, LOWER, (int)n, G, (int)ld, h->values, h->work, h->lwork, h->info + 1),
        "syevd"));
    FSI_TRY(dense_fetch(h, h->values, (size_t)n * sizeof *values, values));
    return converged(h, "eigenvalues", n, n);
}

static fs_result dense_svd(void *handle, int64_t m, int64_t p, double *X, int64_t ld, double *s, double *Vt)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(follow_stream(h));
    FSI_TRY(good(h,
                 h->lib.gesvd(h->solver, 'O', 'S', (int)m, (int)p, X, (int)ld, h->values, NULL, (int)m, Vt, (int)p,
                              h->work, h->lwork, NULL, h->info + 1),
                 "gesvd"));
    FSI_TRY(dense_fetch(h, h->values, (size_t)p * sizeof *s, s));
    return converged(h, "singular values", m, p);
}

/* geqrf's work space and scalars of its reflectors are scratch of the context: open does not know the sizes. */
static fs_result dense_qr(void *handle, int64_t m, int64_t p, double *X, int64_t ld, double *L)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(follow_stream(h));
    if (p == 0) return FS_OK;
    int size = 0;
    void *scratch;
    FSI_TRY(good(h, h->lib.geqrf_size(h->solver, (int)m, (int)p, X, (int)ld, &size), "asking for geqrf's work space"));
    const int64_t scalars = fsi_round_up(p, 32);
    FSI_TRY(fsi_gpu_scratch(h->gpu, (scalars + (size > 0 ? size : 1)) * (int64_t)sizeof(double), &scratch));
    double *tau = (double *)scratch;
    FSI_TRY(
        good(h, h->lib.geqrf(h->solver, (int)m, (int)p, X, (int)ld, tau, tau + scalars, size, h->info + 1), "geqrf"));
    return fsi_gpu_lower_of(h->gpu, p, X, ld, L);
}

/* time ------------------------------------------------------------------------------------------------------- */

static fs_result dense_mark(void *handle, int mark)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    return fsi_gpu_check(h->gpu, cudaEventRecord(h->mark[mark], h->gpu->stream), "noting the time");
}
static fs_result dense_wait(void *handle, int *info)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_gpu_check(h->gpu, cudaStreamSynchronize(h->gpu->stream), "waiting for a task"));
    if (info) *info = h->info[0];
    return FS_OK;
}
static double dense_seconds(void *handle, int from, int to)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    float milliseconds = 0;
    if (cudaEventElapsedTime(&milliseconds, h->mark[from], h->mark[to]) != cudaSuccess) cudaGetLastError();
    return 1e-3 * (double)milliseconds;
}

const fsi_dense fsi_gpu_dense = {
    .open = dense_open,
    .close = dense_close,
    .bytes = dense_bytes,
    .alloc = dense_alloc,
    .release = dense_release,
    .widen = dense_widen,
    .narrow = dense_narrow,
    .fetch = dense_fetch,
    .send = dense_send,
    .zero = dense_zero,
    .diagonal = dense_diagonal,
    .ones = dense_ones,
    .squares = dense_squares,
    .scale_rows = dense_scale_rows,
    .add = dense_add,
    .norm = dense_norm,
    .syrk = dense_syrk,
    .gemm = dense_gemm,
    .trsm = dense_trsm,
    .potrf = dense_potrf,
    .eigen = dense_eigen,
    .svd = dense_svd,
    .qr = dense_qr,
    .product = fsi_gpu_dense_product,
    .normal = fsi_gpu_dense_normal,
    .product_sparse = fsi_gpu_dense_product_sparse,
    .normal_sparse = fsi_gpu_dense_normal_sparse,
    .mark = dense_mark,
    .wait = dense_wait,
    .seconds = dense_seconds,
};
