/* products.cu - products with the rows of A by panels in f64 and cuBLAS, where normal.cu has no room: wide rows, many
 * right-hand sides; and small kernels that products share.
 *
 * A panel X = A' of some rows is widened to f64 and multiplied twice, U = P'X - B' and W += X U'.  A itself is read
 * once; its panel, twice or four times as large, is written once and read twice, from L2 where it stays there. */
#include "cuda/linalg/products.h"
#include "cuda/runtime/element.cuh"

namespace {

enum { THREADS = 256, LEAST_ROWS = 64 };
const int64_t PANEL_BYTES = 1 << 24;

unsigned blocks_for(int64_t items)
{
    const int64_t blocks = fsi_div_up(items, THREADS);
    return (unsigned)(blocks < 1 ? 1 : blocks < 65536 ? blocks : 65536);
}

template <class T> __global__ void subtract_kernel(fsi_input<T> B, int64_t rows, int64_t m, double *U)
{
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < rows * m; e += (int64_t)gridDim.x * THREADS) {
        const int64_t i = e / m;
        U[e] -= (double)B.at(i, e - i * m);
    }
}
template <class T> fs_result subtract(fsi_gpu *gpu, int64_t rows, int64_t m, const fs_matrix *B, double *U)
{
    subtract_kernel<T><<<blocks_for(rows * m), THREADS, 0, gpu->stream>>>(fsi_input_of<T>(B), rows, m, U);
    return FSI_LAUNCHED(gpu, "subtracting right-hand sides");
}

/* A thread block for each sum: threads add every 256th square, then halves of them. */
__global__ void __launch_bounds__(THREADS) squares_kernel(int64_t rows, int64_t m, const double *U, double *squares)
{
    __shared__ double sums[THREADS];
    for (int64_t c = blockIdx.x; c < m; c += gridDim.x) {
        double sum = 0;
        for (int64_t i = threadIdx.x; i < rows; i += THREADS) sum = fma(U[c + i * m], U[c + i * m], sum);
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if ((int)threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0) squares[c] += sums[0];
        __syncthreads();
    }
}

/* The lower triangle of G = S + beta G, S packed. */
__global__ void add_lower(int64_t n, const double *S, double beta, double *G, int64_t ld)
{
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < n * n; e += (int64_t)gridDim.x * THREADS) {
        const int64_t j = e / n, i = e - j * n;
        if (i >= j) G[i + j * ld] = beta == 0 ? S[e] : fma(beta, G[i + j * ld], S[e]);
    }
}

__global__ void lower_kernel(int64_t p, const double *X, int64_t ld, double *L)
{
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < p * p; e += (int64_t)gridDim.x * THREADS) {
        const int64_t j = e / p, i = e - j * p; /* L(i, j) = R(j, i) */
        const double r = i >= j ? X[j + i * ld] : 0.0;
        L[e] = i >= j && X[j + j * ld] < 0 ? -r : r;
    }
}

}  // namespace

fs_result fsi_gpu_subtract(fsi_gpu *gpu, int64_t rows, int64_t m, const fs_matrix *B, double *U)
{
    if (!B || rows * m == 0) return FS_OK;
#define SUBTRACT(T) subtract<T>(gpu, rows, m, B, U)
    return FSI_BY_DTYPE(B->dtype, SUBTRACT);
#undef SUBTRACT
}

fs_result fsi_gpu_add_squares(fsi_gpu *gpu, int64_t rows, int64_t m, const double *U, double *squares)
{
    if (rows * m == 0) return FS_OK;
    squares_kernel<<<(unsigned)fsi_min(m, 65536), THREADS, 0, gpu->stream>>>(rows, m, U, squares);
    return FSI_LAUNCHED(gpu, "summing squares of residuals");
}

fs_result fsi_gpu_lower_of(fsi_gpu *gpu, int64_t p, const double *X, int64_t ld, double *L)
{
    if (p == 0) return FS_OK;
    lower_kernel<<<blocks_for(p * p), THREADS, 0, gpu->stream>>>(p, X, ld, L);
    return FSI_LAUNCHED(gpu, "storing a triangle");
}

/* Block rows of G by gemm, which cuts long sums into slices for all SMs; syrk does not. */
fs_result fsi_gpu_gram(void *handle, int transposed, int64_t n, int64_t k, const double *X, int64_t ldx, double beta,
                       double *G, int64_t ldg)
{
    fsi_gpu *gpu = ((fsi_gpu_handle *)handle)->gpu;
    const int64_t block = n <= 768 ? n : 512;
    void *scratch;
    if (n == 0) return FS_OK;
    FSI_TRY(fsi_gpu_scratch(gpu, n * n * (int64_t)sizeof(double), &scratch));
    double *S = (double *)scratch;
    for (int64_t i = 0; i < n; i += block) {
        const int64_t height = fsi_min(block, n - i);
        const double *rows = X + i * (transposed ? ldx : 1);
        FSI_TRY(fsi_gpu_dense.gemm(handle, transposed, !transposed, height, i + height, k, 1.0, rows, ldx, X, ldx, 0.0,
                                   S + i, n));
    }
    add_lower<<<blocks_for(n * n), THREADS, 0, gpu->stream>>>(n, S, beta, G, ldg);
    return FSI_LAUNCHED(gpu, "adding a Gram matrix");
}

fs_result fsi_gpu_panel_products(void *handle, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B,
                                 double *U, double *W, double *squares)
{
    const fsi_dense *dense = &fsi_gpu_dense;
    fsi_gpu *gpu = ((fsi_gpu_handle *)handle)->gpu;
    on_device here(gpu->device);
    const int64_t n = A->cols;
    if (A->rows == 0 || m == 0) return FS_OK;
    int64_t most = fsi_max(LEAST_ROWS, PANEL_BYTES / (int64_t)sizeof(double) / (n > 0 ? n : 1));
    most = fsi_min(most, A->rows);
    void *scratch;
    FSI_TRY(fsi_gpu_scratch(gpu, most * (n + (U ? 0 : m)) * (int64_t)sizeof(double), &scratch));
    double *X = (double *)scratch, *own = X + most * n;
    for (int64_t i = 0; i < A->rows; i += most) {
        fs_matrix panel = *A;
        panel.data = (char *)A->data + i * A->row_stride * fsi_dtype_size(A->dtype);
        panel.rows = fsi_min(most, A->rows - i);
        double *to = U ? U + i * m : own;
        if (n == 0) {
            FSI_TRY(dense->zero(handle, to, (size_t)(panel.rows * m) * sizeof *to));
        } else {
            FSI_TRY(dense->widen(handle, &panel, X, n));
            FSI_TRY(dense->gemm(handle, 1, 0, m, panel.rows, n, 1.0, P, n, X, n, 0.0, to, m));
        }
        if (U) continue;
        fs_matrix right;
        if (B) {
            right = *B;
            right.data = (char *)B->data + i * B->row_stride * fsi_dtype_size(B->dtype);
        }
        FSI_TRY(fsi_gpu_subtract(gpu, panel.rows, m, B ? &right : NULL, to));
        FSI_TRY(fsi_gpu_add_squares(gpu, panel.rows, m, to, squares));
        if (n > 0) FSI_TRY(dense->gemm(handle, 0, 1, n, m, panel.rows, 1.0, X, n, to, m, 1.0, W, n));
    }
    return FS_OK;
}
