/* cholesky.cu - Cholesky's factor of a matrix of some hundred to two thousand columns, in f64, in place.
 *
 * Matrices of this size wait for latencies: cuSOLVER's potrf takes 460 us of an H200 for 1025 columns and 250 for 513
 * (2026-11-15), where the sketch of a matrix takes 80.  Two launches for every 64 columns:
 *
 *   panel    a thread block for each tile of 64 rows below the diagonal one.  Each of them factors the diagonal tile as
 *            well, with its own rows below it, so that none waits for another.  A thread has a row's 16 columns in
 *            registers; a column takes one exchange through shared memory.
 *   update   a thread block for each tile of what is left: minus the product of two tiles of the panel.  One more puts
 *            the diagonal tile's factor in place, which others of the panel's launch may still have read from there.
 *
 * A is column-major, its lower triangle is used and becomes L; what is above the diagonal is left as it is.  The order
 * of all sums is fixed. */
#include "gpu.h"

namespace {

enum { NB = 64, ROWS = 2 * NB, PART = 16, PANEL_THREADS = ROWS * (NB / PART), UPDATE_THREADS = 256, DEPTH = 32 };

/* grid: tiles below the diagonal one, at least 1; `j` is the first of the columns.  info: 0, or 1 + the first column
 * whose pivot is not positive. */
__global__ void __launch_bounds__(PANEL_THREADS) panel(int n, int j, double *A, int64_t ld, double *diagonal, int *info)
{
    __shared__ double raw[2][ROWS], root[2];
    const int row = threadIdx.x % ROWS, part = threadIdx.x / ROWS, width = n - j < NB ? n - j : NB;
    const int tile = row < NB ? 0 : 1 + blockIdx.x, at = j + tile * NB + row % NB;
    const bool reports = blockIdx.x == 0 && row < NB;
    double a[PART];
    if (j == 0 && blockIdx.x == 0 && threadIdx.x == 0) *info = 0;
    /* 1. 16 columns of a row; columns and rows that there are not are zero */
#pragma unroll
    for (int c = 0; c < PART; c++)
        a[c] = at < n && part * PART + c < width ? A[at + (j + part * PART + c) * ld] : 0.0;
    /* 2. column after column: divided by the root of its pivot, and taken out of those behind it */
#pragma unroll 1
    for (int p = 0; p < NB / PART; p++)
#pragma unroll
        for (int c = 0; c < PART; c++) {
            const int k = p * PART + c, turn = c & 1;
            if (k >= width) break;
            if (part == p) {
                raw[turn][row] = a[c];
                if (row == k) {
                    root[turn] = rsqrt(a[c]);
                    if (reports && !(a[c] > 0.0) && *info == 0) *info = j + k + 1;
                }
            }
            __syncthreads();
            const double scaled = raw[turn][row] * root[turn], other = root[turn];
            if (part == p) a[c] = scaled;
#pragma unroll
            for (int i = 0; i < PART; i++)
                if (part > p || (part == p && i > c)) a[i] -= scaled * (raw[turn][part * PART + i] * other);
        }
    /* 3. the rows of this tile; the diagonal one where nobody else reads it */
#pragma unroll
    for (int c = 0; c < PART; c++) {
        const int column = part * PART + c;
        if (column >= width || at >= n) continue;
        if (tile > 0) A[at + (j + column) * ld] = a[c];
        else if (blockIdx.x == 0 && row >= column) {
            if (n - j > NB) diagonal[row + column * NB] = a[c];
            else A[at + (j + column) * ld] = a[c];
        }
    }
}

/* grid: tiles (i, l), i >= l, of the columns from j + NB on, row after row, and one more. */
__global__ void __launch_bounds__(UPDATE_THREADS) update(int n, int j, double *A, int64_t ld, const double *diagonal)
{
    __shared__ double left[DEPTH][NB], right[DEPTH][NB];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16, first = j + NB;
    if (blockIdx.x + 1 == gridDim.x) {
        for (int e = tid; e < NB * NB; e += UPDATE_THREADS)
            if (e % NB >= e / NB) A[j + e % NB + (j + e / NB) * ld] = diagonal[e];
        return;
    }
    int i = (int)((sqrt(8.0 * blockIdx.x + 1.0) - 1.0) / 2.0);
    while ((i + 1) * (i + 2) / 2 <= (int)blockIdx.x) i++;
    while (i * (i + 1) / 2 > (int)blockIdx.x) i--;
    const int l = (int)blockIdx.x - i * (i + 1) / 2, row0 = first + i * NB, column0 = first + l * NB;
    double sum[4][4] = {};
    for (int depth = 0; depth < NB; depth += DEPTH) {
        __syncthreads();
#pragma unroll
        for (int e = tid; e < DEPTH * NB; e += UPDATE_THREADS) {
            const int r = e % NB, d = e / NB;
            const double *column = A + (j + depth + d) * ld;
            left[d][r] = row0 + r < n ? column[row0 + r] : 0.0;
            right[d][r] = column0 + r < n ? column[column0 + r] : 0.0;
        }
        __syncthreads();
#pragma unroll 8
        for (int d = 0; d < DEPTH; d++)
#pragma unroll
            for (int y = 0; y < 4; y++)
#pragma unroll
                for (int x = 0; x < 4; x++) sum[y][x] = fma(left[d][tx + 16 * x], right[d][ty + 16 * y], sum[y][x]);
    }
#pragma unroll
    for (int y = 0; y < 4; y++)
#pragma unroll
        for (int x = 0; x < 4; x++) {
            const int row = row0 + tx + 16 * x, column = column0 + ty + 16 * y;
            if (row < n && row >= column) A[row + column * ld] -= sum[y][x];
        }
}

}  // namespace

fs_result fs_gpu_cholesky(fs_gpu *gpu, int64_t n, double *A, int64_t ld, double *scratch, int *info)
{
    for (int64_t j = 0; j < n; j += NB) {
        const int below = n - j > NB ? (int)fs_div_up(n - j - NB, NB) : 0;
        panel<<<below > 1 ? below : 1, PANEL_THREADS, 0, gpu->stream>>>((int)n, (int)j, A, ld, scratch, info);
        if (below)
            update<<<below * (below + 1) / 2 + 1, UPDATE_THREADS, 0, gpu->stream>>>((int)n, (int)j, A, ld, scratch);
    }
    return fs_gpu_check(gpu, cudaGetLastError(), "factoring a matrix");
}
