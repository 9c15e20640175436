/* normal_twice.cu - W += A'(A P - B) of a dense f64 A in one read, with sums of twice the precision.
 *
 * It is the gradient from which a solver restarts (src/cpu/normal_twice.c has the reason).  A thread block takes tiles of
 * R whole rows, tile t belonging to block t mod grid, which it loads to shared memory once and reads there twice:
 *
 *     1. u = A P - B     a warp for each row; u is rounded to hi + lo once its sum is whole
 *     2. W += A'u        a thread for each column, or for a column and a share of the rows where n is below 256
 *
 * A sum is hi + lo: a product and the addition to hi leave their errors, which are exact in f64, to lo.  Every block has
 * sums of its own in shared memory; their total is made in a fixed order.  Each right-hand side is worked on while the
 * tile is there. */
#include "cuda/linalg/products.h"
#include "cuda/runtime/element.cuh"

namespace {

enum { WARPS = 8, THREADS = 32 * WARPS, MOST_ROWS = 64, LEAST_ROWS = 4, MOST_RHS = 8 };

struct twice {
    double hi, lo;
};

typedef struct twice_call {
    const double *A, *P;
    int64_t row_stride, col_stride, rows;
    int n, m, tile_rows, parts;
    const void *B;
    int64_t b_row_stride, b_col_stride;
    fs_dtype b_dtype;
    twice *partial;  /* of each block: m x n (n contiguous) */
    double *squares; /* of each block: m */
} twice_call;

/* s += x */
__device__ __forceinline__ void add(double x, twice *s)
{
    const double sum = s->hi + x, added = sum - s->hi;
    s->lo += (s->hi - (sum - added)) + (x - added);
    s->hi = sum;
}
/* s += a x */
__device__ __forceinline__ void add_product(double a, double x, twice *s)
{
    const double product = __dmul_rn(a, x); /* never joined with the addition to one rounding */
    s->lo += fma(a, x, -product);
    add(product, s);
}

__device__ __forceinline__ void load_tile(const twice_call &C, int64_t row0, int count, double *tile)
{
    const double *from = C.A + row0 * C.row_stride;
    if (C.col_stride == 1 || C.col_stride == -1) {
        for (int e = threadIdx.x; e < count * C.n; e += THREADS) {
            const int r = e / C.n, j = e - r * C.n;
            tile[e] = from[r * C.row_stride + j * C.col_stride];
        }
    } else {
        for (int e = threadIdx.x; e < count * C.n; e += THREADS) {
            const int j = e / count, r = e - j * count;
            tile[r * C.n + j] = from[r * C.row_stride + j * C.col_stride];
        }
    }
}

/* Step 1: rows of the tile, warp w those with numbers w, w + 8 ... */
__device__ __forceinline__ void multiply(const twice_call &C, int c, int64_t row0, int count, const double *tile,
                                         twice *u)
{
    const int lane = threadIdx.x % 32;
    const double *p = C.P + (int64_t)c * C.n;
    for (int r = threadIdx.x / 32; r < count; r += WARPS) {
        twice s = {0, 0};
        for (int j = lane; j < C.n; j += 32) add_product(tile[r * C.n + j], p[j], &s);
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) {
            const double hi = __shfl_xor_sync(0xffffffffu, s.hi, offset),
                         lo = __shfl_xor_sync(0xffffffffu, s.lo, offset);
            /* In the same order on both sides, so that all lanes have the same. */
            const bool upper = lane & offset;
            twice sum = {upper ? hi : s.hi, upper ? lo : s.lo};
            add(upper ? s.hi : hi, &sum);
            sum.lo += upper ? s.lo : lo;
            s = sum;
        }
        if (lane == 0) {
            add(-fsi_element_at(C.B, C.b_dtype, (row0 + r) * C.b_row_stride + c * C.b_col_stride), &s);
            u[r].hi = s.hi + s.lo;
            u[r].lo = s.lo - (u[r].hi - s.hi);
        }
    }
}

/* Step 2: an element of `sums` belongs to one thread for the whole of the kernel. */
__device__ __forceinline__ void multiply_back(const twice_call &C, int count, const double *tile, const twice *u,
                                              twice *sums)
{
    for (int item = threadIdx.x; item < C.parts * C.n; item += THREADS) {
        const int part = item / C.n, j = item - part * C.n;
        twice s = sums[item];
        for (int r = part; r < count; r += C.parts) {
            const double a = tile[r * C.n + j];
            s.lo = fma(a, u[r].lo, s.lo);
            add_product(a, u[r].hi, &s);
        }
        sums[item] = s;
    }
}

extern __shared__ double2 twice_shared[]; /* for its alignment, 16 bytes */

__global__ void __launch_bounds__(THREADS) multiply_twice(const __grid_constant__ twice_call C)
{
    __shared__ double squares[MOST_RHS];
    __shared__ twice u[MOST_ROWS];
    twice *sums = (twice *)twice_shared; /* m x parts x n */
    double *tile = (double *)(sums + C.m * C.parts * C.n);
    const int lane = threadIdx.x % 32;
    for (int e = threadIdx.x; e < C.m * C.parts * C.n; e += THREADS) sums[e].hi = sums[e].lo = 0;
    if (threadIdx.x < C.m) squares[threadIdx.x] = 0;
    const int64_t tiles = (C.rows + C.tile_rows - 1) / C.tile_rows;
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row0 = t * C.tile_rows;
        const int count = (int)(C.rows - row0 < C.tile_rows ? C.rows - row0 : C.tile_rows);
        __syncthreads(); /* the last tile is done with */
        load_tile(C, row0, count, tile);
        for (int c = 0; c < C.m; c++) {
            __syncthreads();
            multiply(C, c, row0, count, tile, u);
            __syncthreads();
            multiply_back(C, count, tile, u, sums + c * C.parts * C.n);
            if (threadIdx.x >= THREADS - 32) {
                double square = 0;
                for (int r = lane; r < count; r += 32) square = fma(u[r].hi, u[r].hi, square);
#pragma unroll
                for (int offset = 16; offset > 0; offset /= 2) square += __shfl_xor_sync(0xffffffffu, square, offset);
                if (lane == 0) squares[c] += square;
            }
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < C.m * C.n; e += THREADS) {
        const int c = e / C.n, j = e - c * C.n;
        const twice *from = sums + (int64_t)c * C.parts * C.n + j;
        twice s = from[0];
        for (int part = 1; part < C.parts; part++) {
            add(from[part * C.n].hi, &s);
            s.lo += from[part * C.n].lo;
        }
        C.partial[(int64_t)blockIdx.x * C.m * C.n + e] = s;
    }
    if (threadIdx.x < C.m) C.squares[blockIdx.x * C.m + threadIdx.x] = squares[threadIdx.x];
}

/* W += the blocks' sums, in their order; squares likewise. */
__global__ void __launch_bounds__(THREADS) add_blocks(int blocks, int64_t count, int m, const twice *partial,
                                                      const double *partial_squares, double *W, double *squares)
{
    const int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (e < count) {
        twice s = {0, 0};
        for (int b = 0; b < blocks; b++) {
            const twice other = partial[b * count + e];
            add(other.hi, &s);
            s.lo += other.lo;
        }
        W[e] += s.hi + s.lo;
    }
    if (e >= m) return;
    double sum = 0;
    for (int b = 0; b < blocks; b++) sum += partial_squares[b * m + e];
    squares[e] += sum;
}

/* Rows of a tile for `blocks` thread blocks on an SM; below LEAST_ROWS: no room. */
int64_t rows_for(const fsi_gpu_traits *traits, int64_t n, int64_t sums, int blocks)
{
    /* What a block takes besides: u and the squares, and 1 KiB of the system's. */
    const int64_t own = MOST_ROWS * 16 + MOST_RHS * 8 + 1024;
    const int64_t most = fsi_min(traits->shared - own, traits->shared_per_processor / blocks - own);
    return fsi_min(MOST_ROWS, (most - sums) / (8 * n));
}

}  // namespace

fs_result fsi_gpu_normal_twice(fsi_gpu *gpu, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B,
                               double *W, double *squares, int *done)
{
    const int64_t n = A->cols;
    *done = 0;
    if (A->dtype != FS_F64 || !B || m > MOST_RHS || n > 65536) return FS_OK;
    const int64_t parts = n < THREADS ? THREADS / n : 1, sums = 16 * m * parts * n;
    int blocks = 3;
    int64_t rows = rows_for(&gpu->traits, n, sums, blocks);
    while (blocks > 1 && rows < WARPS) rows = rows_for(&gpu->traits, n, sums, --blocks);
    if (rows < LEAST_ROWS) return FS_OK;
    const int64_t grid = fsi_min(fsi_div_up(A->rows, rows), (int64_t)gpu->traits.processors * blocks), count = m * n;
    void *scratch;
    FSI_TRY(fsi_gpu_scratch(gpu, grid * (count * (int64_t)sizeof(twice) + m * (int64_t)sizeof(double)), &scratch));
    twice_call C = {};
    C.A = (const double *)A->data, C.P = P;
    C.row_stride = A->row_stride, C.col_stride = A->col_stride, C.rows = A->rows;
    C.n = (int)n, C.m = (int)m, C.tile_rows = (int)rows, C.parts = (int)parts;
    C.B = B->data, C.b_row_stride = B->row_stride, C.b_col_stride = B->col_stride, C.b_dtype = B->dtype;
    C.partial = (twice *)scratch;
    C.squares = (double *)(C.partial + grid * count);
    FSI_TRY(fsi_gpu_check(gpu,
                          cudaFuncSetAttribute(multiply_twice, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               (int)(gpu->traits.shared - MOST_ROWS * 16 - MOST_RHS * 8)),
                          "preparing a gradient"));
    multiply_twice<<<(unsigned)grid, THREADS, (size_t)(sums + rows * n * 8), gpu->stream>>>(C);
    FSI_TRY(FSI_LAUNCHED(gpu, "a gradient"));
    add_blocks<<<(unsigned)fsi_div_up(count, THREADS), THREADS, 0, gpu->stream>>>((int)grid, count, (int)m, C.partial,
                                                                                  C.squares, W, squares);
    FSI_TRY(FSI_LAUNCHED(gpu, "adding gradients"));
    *done = 1;
    return FS_OK;
}
