/* triangles.cu - B op(L)^-1 and op(L)^-1 B for many rows or columns of B.
 *
 * cuBLAS's trsm divides by one column of L after another.  Here L is halved, at a multiple of 64, until what is left is
 * a block of at most 64: with L = [P 0; M Q] and B = [C; D] alike,
 *
 *     C := P^-1 C,   D := Q^-1 (D - M C)
 *
 * (from below for L', and likewise on the right), so that all but the blocks is products, half of which are with n / 2
 * columns of L.  A block is a substitution: each thread has one row or column of B, whose 64 numbers pass through
 * shared memory.  The result is as good as that of a substitution with all of L, whatever the condition of its blocks. */
#include "cuda/linalg/libraries.h"
#include "cuda/linalg/products.h"

namespace {

enum { BLOCK = 64, HALF = BLOCK / 2, LINES = 64, PITCH = LINES + 1, LEAST_LINES = 512, BATCH = 16 };
enum { SHARED = (BLOCK * PITCH + BLOCK * BLOCK + BLOCK) * (int)sizeof(double) };

/* A line is a column of B (left) or a row, its numbers `step` apart and lines `apart`. */
typedef struct block_call {
    const double *L; /* the block, of `height` rows and columns */
    int64_t ldl;
    double *B; /* its part of the first line */
    int64_t step, apart, lines;
    int height, upwards; /* upwards: with the transpose of the block, from its last number on */
} block_call;

/* The number r of a line is that of the substitution's step r. */
__device__ __forceinline__ int64_t place_of(const block_call &C, int r) { return C.upwards ? C.height - 1 - r : r; }

/* y(r) -= T(r) x for the numbers r of a half from `least` on, T 16 bytes at a time. */
template <int LEAST> __device__ __forceinline__ void subtract(const double *T, double x, double *y)
{
#pragma unroll
    for (int r = LEAST / 2 * 2; r < HALF; r += 2) {
        const double2 pair = *(const double2 *)(T + r);
        if (r >= LEAST) y[r] = fma(-pair.x, x, y[r]);
        y[r + 1] = fma(-pair.y, x, y[r + 1]);
    }
}

/* Steps K and later of a half, in registers. */
template <int K> __device__ __forceinline__ void substitute(const double *T, const double *over, double *y)
{
    if constexpr (K < HALF) {
        y[K] *= over[K];
        if constexpr (K + 1 < HALF) subtract<K + 1>(T + K * BLOCK, y[K], y);
        substitute<K + 1>(T, over, y);
    }
}

extern __shared__ double2 triangles_shared[]; /* for its alignment, 16 bytes */

/* 1. T = the block in the order of the steps, T(r, k) at T[k BLOCK + r], I beyond `height`; over: 1 / its diagonal.
 * 2. LINES lines into x: number r of line t at x[r PITCH + t].
 * 3. The first half of the numbers; what it takes from the second; that half.
 * 4. Back. */
__global__ void __launch_bounds__(LINES) divide_lines(const __grid_constant__ block_call C)
{
    double *T = (double *)triangles_shared, *over = T + BLOCK * BLOCK, *x = over + BLOCK;
    const int t = threadIdx.x;
    const int64_t first = blockIdx.x * (int64_t)LINES;
    for (int e = t; e < BLOCK * BLOCK; e += BATCH * LINES) {
        double batch[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const int r = (e + b * LINES) % BLOCK, k = (e + b * LINES) / BLOCK;
            const bool inside = r < C.height && k <= r;
            const int64_t at = C.upwards ? place_of(C, k) + place_of(C, r) * C.ldl : r + k * C.ldl;
            batch[b] = inside ? C.L[at] : (double)(r == k);
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++) T[e + b * LINES] = batch[b];
    }
    const bool across = C.step == 1; /* neighbouring threads have neighbouring numbers of a line */
    for (int e = t; e < BLOCK * LINES; e += BATCH * LINES) {
        double batch[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const int at = e + b * LINES, fast = at % LINES, slow = at / LINES;
            const int r = across ? fast : slow, line = across ? slow : fast;
            const bool inside = r < C.height && first + line < C.lines;
            batch[b] = inside ? C.B[place_of(C, r) * C.step + (first + line) * C.apart] : 0.0;
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const int at = e + b * LINES, fast = at % LINES, slow = at / LINES;
            x[(across ? fast : slow) * PITCH + (across ? slow : fast)] = batch[b];
        }
    }
    __syncthreads();
    over[t] = 1 / T[t * BLOCK + t];
    __syncthreads();
    double y[HALF];
#pragma unroll
    for (int r = 0; r < HALF; r++) y[r] = x[r * PITCH + t];
    substitute<0>(T, over, y);
#pragma unroll
    for (int r = 0; r < HALF; r++) x[r * PITCH + t] = y[r];
    if (C.height > HALF) {
#pragma unroll
        for (int r = 0; r < HALF; r++) y[r] = x[(HALF + r) * PITCH + t];
#pragma unroll 2
        for (int k = 0; k < HALF; k++) subtract<0>(T + k * BLOCK + HALF, x[k * PITCH + t], y);
        substitute<0>(T + HALF * BLOCK + HALF, over + HALF, y);
#pragma unroll
        for (int r = 0; r < HALF; r++) x[(HALF + r) * PITCH + t] = y[r];
    }
    __syncthreads();
    for (int e = t; e < BLOCK * LINES; e += LINES) {
        const int fast = e % LINES, slow = e / LINES;
        const int r = across ? fast : slow, line = across ? slow : fast;
        if (r < C.height && first + line < C.lines)
            C.B[place_of(C, r) * C.step + (first + line) * C.apart] = x[r * PITCH + line];
    }
}

/* A call: B is `wide` numbers across the blocks of L, which go along its rows (left) or columns. */
typedef struct division {
    void *handle;
    int left, upwards; /* upwards: the last rows of L first */
    int64_t wide;
    const double *L;
    int64_t ldl;
    double *B;
    int64_t ldb;
} division;

double *part_of(const division *d, int64_t at) { return d->B + at * (d->left ? 1 : d->ldb); }

fs_result divide_block(const division *d, int64_t at, int64_t height)
{
    fsi_gpu *gpu = ((fsi_gpu_handle *)d->handle)->gpu;
    const block_call C = {d->L + at + at * d->ldl, d->ldl,  part_of(d, at), d->left ? 1 : d->ldb,
                          d->left ? d->ldb : 1,    d->wide, (int)height,    d->upwards};
    divide_lines<<<(unsigned)fsi_div_up(d->wide, LINES), LINES, SHARED, gpu->stream>>>(C);
    return FSI_LAUNCHED(gpu, "dividing by a block");
}

/* The part of B from `to` on, `height` numbers of each line, less the block of L beside or above it times that from
 * `from` on, which is done. */
fs_result subtract_done(const division *d, int64_t to, int64_t height, int64_t from, int64_t count)
{
    const fsi_dense *dense = &fsi_gpu_dense;
    const double *M = d->upwards ? d->L + from + to * d->ldl : d->L + to + from * d->ldl, *Y = part_of(d, from);
    return d->left ? dense->gemm(d->handle, d->upwards, 0, height, d->wide, count, -1.0, M, d->ldl, Y, d->ldb, 1.0,
                                 part_of(d, to), d->ldb)
                   : dense->gemm(d->handle, 0, !d->upwards, d->wide, height, count, -1.0, Y, d->ldb, M, d->ldl, 1.0,
                                 part_of(d, to), d->ldb);
}

fs_result divide(const division *d, int64_t at, int64_t height)
{
    if (height <= BLOCK) return divide_block(d, at, height);
    const int64_t half = fsi_round_up(fsi_div_up(height, 2), BLOCK), rest = height - half;
    const int64_t first = d->upwards ? at + half : at, first_height = d->upwards ? rest : half;
    const int64_t second = d->upwards ? at : at + half, second_height = height - first_height;
    FSI_TRY(divide(d, first, first_height));
    FSI_TRY(subtract_done(d, second, second_height, first, first_height));
    return divide(d, second, second_height);
}

}  // namespace

fs_result fsi_gpu_divide_by_blocks(void *handle, int left, int transposed, int64_t m, int64_t n, const double *L,
                                   int64_t ldl, double *B, int64_t ldb, int *done)
{
    fsi_gpu *gpu = ((fsi_gpu_handle *)handle)->gpu;
    const int64_t order = left ? m : n, wide = left ? n : m;
    *done = 0;
    if (wide < LEAST_LINES || order == 0 || gpu->traits.shared < SHARED) return FS_OK;
    FSI_TRY(fsi_gpu_check(gpu, cudaFuncSetAttribute(divide_lines, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED),
                          "preparing a division by a block"));
    /* A number needs those below it for L'^-1 B and B L^-1. */
    const division d = {handle, left, left ? transposed : !transposed, wide, L, ldl, B, ldb};
    FSI_TRY(divide(&d, 0, order));
    *done = 1;
    return FS_OK;
}
