/* dense.cu - the linear algebra of tasks on a GPU: cuBLAS and cuSOLVER (libraries.h), cholesky.cu and tall_qr.cu where
 * those are faster, and a few kernels for the other operations. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "cuda/linalg/cholesky.h"
#include "cuda/linalg/libraries.h"
#include "cuda/linalg/products.h"
#include "cuda/runtime/element.cuh"

typedef struct gpu_dense {
    fsi_gpu *gpu; /* first: fsi_gpu_handle */
    const fsi_linalg *lib;
    double *work, *values; /* cuSOLVER's work space; eigenvalues or singular values that are copied to the host */
    fsi_cholesky cholesky; /* our own potrf and trsv, where they are faster */
    fsi_linalg_answers answers;
    int lwork;
    size_t bytes;
} gpu_dense;

/* opening ---------------------------------------------------------------------------------------------------- */

static fs_result good(const gpu_dense *h, int status, const char *what)
{
    return fsi_linalg_check(h->gpu, status, what);
}

static void dense_close(void *handle)
{
    gpu_dense *h = (gpu_dense *)handle;
    const fs_allocator memory = h->gpu->host.allocator;
    on_device here(h->gpu->device);
    if (h->gpu->linalg) {
        cudaStreamSynchronize(h->gpu->stream);
        fsi_linalg_free(h->gpu, h->work);
        fsi_linalg_free(h->gpu, h->values);
        fsi_linalg_free(h->gpu, h->cholesky.memory);
        fsi_linalg_give_answers(h->gpu, &h->answers);
    }
    memory.release(memory.user, h);
}

static fs_result reserve(gpu_dense *h, int64_t n, int64_t m, int64_t p)
{
    int potrf = 0, syevd = 0, gesvd = 0;
    double *none = NULL;
    FSI_TRY(good(h, h->lib->potrf_size(h->lib->solver, LOWER, (int)n, none, (int)n + 8, &potrf),
                 "asking for potrf's work space"));
    FSI_TRY(good(h, h->lib->syevd_size(h->lib->solver, NO_VECTORS, LOWER, (int)n, none, (int)n, none, &syevd),
                 "asking for syevd's work space"));
    FSI_TRY(good(h, h->lib->gesvd_size(h->lib->solver, (int)m, (int)p, &gesvd), "asking for gesvd's work space"));
    h->lwork = (int)fsi_max(fsi_max(potrf, syevd), gesvd);
    h->bytes = (size_t)h->lwork * sizeof(double) + (size_t)(n > p ? n : p) * sizeof(double);
    const size_t work = (size_t)(h->lwork > 0 ? h->lwork : 1) * sizeof(double);
    FSI_TRY(fsi_gpu_check(h->gpu, fsi_linalg_alloc(h->gpu, work, (void **)&h->work), "taking cuSOLVER's work space"));
    FSI_TRY(fsi_gpu_check(h->gpu,
                          fsi_linalg_alloc(h->gpu, (size_t)(n > p ? n : p) * sizeof(double), (void **)&h->values),
                          "taking memory for eigenvalues"));
    FSI_TRY(fsi_cholesky_open(h->gpu, n, &h->cholesky));
    h->bytes += h->cholesky.bytes;
    return FS_OK;
}

static fs_result open_libraries(gpu_dense *h, int64_t n, int64_t m, int64_t p)
{
    FSI_TRY(fsi_linalg_open(h->gpu));
    h->lib = h->gpu->linalg;
    FSI_TRY(fsi_linalg_take_answers(h->gpu, &h->answers));
    FSI_TRY(fsi_linalg_follow(h->gpu));
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
    const cudaError_t error = fsi_linalg_alloc(h->gpu, bytes, memory);
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
    fsi_linalg_free(h->gpu, memory);
}

/* kernels ---------------------------------------------------------------------------------------------------- */

/* Blocks of 64 x 4 threads loop over rows i and columns j: neighbours have neighbouring j. */
enum { ACROSS = 64, DOWN = 4, FLAT = 256 };
static dim3 tile_grid(int64_t rows, int64_t cols)
{
    const int64_t x = fsi_div_up(cols, ACROSS), y = fsi_div_up(rows, DOWN);
    return dim3((unsigned)(x < 1024 ? x : 1024), (unsigned)(y < 32768 ? y : 32768));
}
#define FOR_TILE(i, rows, j, cols) \
    for (int64_t i = blockIdx.y * (int64_t)DOWN + threadIdx.y; i < (rows); i += (int64_t)gridDim.y * DOWN) \
        for (int64_t j = blockIdx.x * (int64_t)ACROSS + threadIdx.x; j < (cols); j += (int64_t)gridDim.x * ACROSS)

template <class T> static __global__ void widen_kernel(fsi_input<T> from, int64_t rows, int64_t cols,
                                                       const int64_t *order, double *to, int64_t ld)
{
    FOR_TILE(i, rows, j, cols) to[j + i * ld] = (double)from.at(i, order ? order[j] : j);
}
template <class T>
static fs_result widen(gpu_dense *h, const fs_matrix *from, const int64_t *order, double *to, int64_t ld)
{
    widen_kernel<T><<<tile_grid(from->rows, from->cols), dim3(ACROSS, DOWN), 0, h->gpu->stream>>>(
        fsi_input_of<T>(from), from->rows, from->cols, order, to, ld);
    return FSI_LAUNCHED(h->gpu, "widening a matrix");
}
static fs_result dense_widen_columns(void *handle, const fs_matrix *from, const int64_t *order, double *to, int64_t ld)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    if (from->rows == 0 || from->cols == 0) return FS_OK;
#define WIDEN(T) widen<T>(h, from, order, to, ld)
    return FSI_BY_DTYPE(from->dtype, WIDEN);
#undef WIDEN
}
static fs_result dense_widen(void *handle, const fs_matrix *from, double *to, int64_t ld)
{
    return dense_widen_columns(handle, from, NULL, to, ld);
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
    FSI_TRY(fsi_linalg_follow(h->gpu));
    *norm = 0;
    for (int64_t at = 0; at < count; at += INT_MAX) {
        double slice = 0; /* in host memory: the call waits */
        FSI_TRY(good(h,
                     h->lib->dnrm2(h->lib->blas, count - at < INT_MAX ? (int)(count - at) : INT_MAX, x + at, 1, &slice),
                     "nrm2"));
        *norm = hypot(*norm, slice);
    }
    return FS_OK;
}

static fs_result dense_scale_rows(void *handle, int64_t m, int64_t n, double *B, int64_t ld, const double *f)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_linalg_follow(h->gpu));
    return good(h, h->lib->ddgmm(h->lib->blas, LEFT, (int)m, (int)n, B, (int)ld, f, 1, B, (int)ld), "dgmm");
}

static fs_result dense_syrk(void *handle, int64_t n, int64_t k, const double *X, int64_t ldx, double beta, double *G,
                            int64_t ldg)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_linalg_follow(h->gpu));
    const double one = 1;
    if (k >= 2 * n) return fsi_gpu_gram(handle, 0, n, k, X, ldx, beta, G, ldg);
    return good(h, h->lib->dsyrk(h->lib->blas, LOWER, OP_N, (int)n, (int)k, &one, X, (int)ldx, &beta, G, (int)ldg),
                "syrk");
}

static fs_result dense_gemm(void *handle, int ta, int tb, int64_t m, int64_t n, int64_t k, double alpha,
                            const double *A, int64_t lda, const double *B, int64_t ldb, double beta, double *C,
                            int64_t ldc)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_linalg_follow(h->gpu));
    if (n == 1 && m > 0 && k > 0)
        return good(h,
                    h->lib->dgemv(h->lib->blas, ta ? OP_T : OP_N, (int)(ta ? k : m), (int)(ta ? m : k), &alpha, A,
                                  (int)lda, B, tb ? (int)ldb : 1, &beta, C, 1),
                    "gemv");
    return good(h,
                h->lib->dgemm(h->lib->blas, ta ? OP_T : OP_N, tb ? OP_T : OP_N, (int)m, (int)n, (int)k, &alpha, A,
                              (int)lda, B, (int)ldb, &beta, C, (int)ldc),
                "gemm");
}

/* x = op(L)^-1 x, elements of x being `stride` apart. */
static fs_result substitute(gpu_dense *h, int transposed, int64_t n, const double *L, int64_t ldl, double *x,
                            int64_t stride)
{
    if (transposed && h->cholesky.memory && n <= h->cholesky.most)
        return fsi_cholesky_substitute(h->gpu, &h->cholesky, n, L, ldl, x, stride);
    return good(
        h, h->lib->dtrsv(h->lib->blas, LOWER, transposed ? OP_T : OP_N, NON_UNIT, (int)n, L, (int)ldl, x, (int)stride),
        "trsv");
}

static fs_result dense_trsm(void *handle, int left, int transposed, int64_t m, int64_t n, const double *L, int64_t ldl,
                            double *B, int64_t ldb)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_linalg_follow(h->gpu));
    const double one = 1;
    /* One row times the inverse of op(L) is the inverse of its transpose times a column. */
    if (!left && m == 1) return substitute(h, !transposed, n, L, ldl, B, ldb);
    if (left && n == 1) return substitute(h, transposed, m, L, ldl, B, 1);
    return good(h,
                h->lib->dtrsm(h->lib->blas, left ? LEFT : RIGHT, LOWER, transposed ? OP_T : OP_N, NON_UNIT, (int)m,
                              (int)n, &one, L, (int)ldl, B, (int)ldb),
                "trsm");
}

static fs_result dense_potrf(void *handle, int64_t n, double *G, int64_t ld)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_linalg_follow(h->gpu));
    if (h->cholesky.memory && n <= h->cholesky.most)
        return fsi_cholesky_factor(h->gpu, &h->cholesky, n, G, ld, h->answers.info);
    return good(h, h->lib->potrf(h->lib->solver, LOWER, (int)n, G, (int)ld, h->work, h->lwork, h->answers.info),
                "potrf");
}

/* FS_OK, or FS_EBACKEND where the last eigen or svd did not converge; waits. */
static fs_result converged(gpu_dense *h, const char *what, int64_t rows, int64_t cols)
{
    FSI_TRY(fsi_gpu_check(h->gpu, cudaStreamSynchronize(h->gpu->stream), "waiting for a task"));
    const int info = h->answers.info[1];
    if (info == 0) return FS_OK;
    return h->gpu->host.fail(FS_EBACKEND, "the %s of a %lld x %lld matrix did not converge (info %d)", what,
                             (long long)rows, (long long)cols, info);
}

static fs_result dense_eigen(void *handle, int64_t n, double *G, int64_t ld, double *values)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_linalg_follow(h->gpu));
    FSI_TRY(good(h,
                 h->lib->syevd(h->lib->solver, NO_VECTORS, LOWER, (int)n, G, (int)ld, h->values, h->work, h->lwork,
                               h->answers.info + 1),
                 "syevd"));
    FSI_TRY(dense_fetch(h, h->values, (size_t)n * sizeof *values, values));
    return converged(h, "eigenvalues", n, n);
}

static fs_result dense_svd(void *handle, int64_t m, int64_t p, double *X, int64_t ld, double *s, double *Vt)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_linalg_follow(h->gpu));
    FSI_TRY(good(h,
                 h->lib->gesvd(h->lib->solver, 'O', 'S', (int)m, (int)p, X, (int)ld, h->values, NULL, (int)m, Vt,
                               (int)p, h->work, h->lwork, NULL, h->answers.info + 1),
                 "gesvd"));
    FSI_TRY(dense_fetch(h, h->values, (size_t)p * sizeof *s, s));
    return converged(h, "singular values", m, p);
}

/* By reflectors.  geqrf's work space and their scalars are scratch of the context: open does not know the sizes. */
static fs_result householder(gpu_dense *h, int64_t m, int64_t p, double *X, int64_t ld, double *L)
{
    int size = 0;
    void *scratch;
    FSI_TRY(good(h, h->lib->geqrf_size(h->lib->solver, (int)m, (int)p, X, (int)ld, &size),
                 "asking for geqrf's work space"));
    const int64_t scalars = fsi_round_up(p, 32);
    FSI_TRY(fsi_gpu_scratch(h->gpu, (scalars + (size > 0 ? size : 1)) * (int64_t)sizeof(double), &scratch));
    double *tau = (double *)scratch;
    FSI_TRY(good(
        h, h->lib->geqrf(h->lib->solver, (int)m, (int)p, X, (int)ld, tau, tau + scalars, size, h->answers.info + 1),
        "geqrf"));
    return fsi_gpu_lower_of(h->gpu, p, X, ld, L);
}

/* By Cholesky QR, and the remaining factor by reflectors; `room` has 2 p (p + 1) numbers, `host` 2 p. */
static fs_result qr_in(gpu_dense *h, int64_t m, int64_t p, double *X, int64_t ld, double *L, double *room, double *host)
{
    int factors, done;
    double *C = room + p * p;
    FSI_TRY(fsi_gpu_tall_qr(h, m, p, X, ld, L, room, host, &factors, &done));
    if (done) return FS_OK;
    FSI_TRY(householder(h, m, p, X, ld, factors ? C : L));
    return factors ? fsi_gpu_append_triangle(h, p, L, C, room) : FS_OK;
}

static fs_result dense_qr(void *handle, int64_t m, int64_t p, double *X, int64_t ld, double *L)
{
    gpu_dense *h = (gpu_dense *)handle;
    const fs_allocator *memory = &h->gpu->host.allocator;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_linalg_follow(h->gpu));
    if (p == 0) return FS_OK;
    if (!h->cholesky.memory || p > h->cholesky.most) return householder(h, m, p, X, ld, L);
    void *room = NULL;
    FSI_TRY(dense_alloc(h, (size_t)(2 * p * (p + 1)) * sizeof(double), &room));
    double *host = (double *)memory->alloc(memory->user, (size_t)(2 * p) * sizeof(double));
    const fs_result result = host ? qr_in(h, m, p, X, ld, L, (double *)room, host)
                                  : h->gpu->host.fail(FS_ENOMEM, "no memory for a diagonal of %lld numbers",
                                                      (long long)p);
    if (host) memory->release(memory->user, host);
    dense_release(h, room);
    return result;
}

/* time ------------------------------------------------------------------------------------------------------- */

static fs_result dense_mark(void *handle, int mark)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    return fsi_gpu_check(h->gpu, cudaEventRecord(h->answers.mark[mark], h->gpu->stream), "noting the time");
}
static fs_result dense_wait(void *handle, int *info)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    FSI_TRY(fsi_gpu_check(h->gpu, cudaStreamSynchronize(h->gpu->stream), "waiting for a task"));
    if (info) *info = h->answers.info[0];
    return FS_OK;
}
static double dense_seconds(void *handle, int from, int to)
{
    gpu_dense *h = (gpu_dense *)handle;
    on_device here(h->gpu->device);
    float milliseconds = 0;
    if (cudaEventElapsedTime(&milliseconds, h->answers.mark[from], h->answers.mark[to]) != cudaSuccess)
        cudaGetLastError();
    return 1e-3 * (double)milliseconds;
}

const fsi_dense fsi_gpu_dense = {
    .open = dense_open,
    .close = dense_close,
    .bytes = dense_bytes,
    .alloc = dense_alloc,
    .release = dense_release,
    .widen = dense_widen,
    .widen_columns = dense_widen_columns,
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
