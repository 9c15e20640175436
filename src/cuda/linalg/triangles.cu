/* triangles.cu - B op(L)^-1 and op(L)^-1 B for many rows or columns of B, as products.
 *
 * cuBLAS's trsm divides by one column of L after another.  Here L is cut into blocks of 64: those on the diagonal are
 * inverted, all in one launch, and the rest is products of B with the blocks beside them,
 *
 *     B_j = L(j,j)^-1 (B_j - sum over i < j of L(j,i) B_i)
 *
 * (and likewise on the other side and for L').  The rows of the result are as good as those of a substitution but for the
 * condition of the diagonal blocks, however large that of L is.  Each block's is bounded by |X diag(q)|_F 8, X being its
 * inverse and q the lengths of its rows.  Above REFINED one step of refinement with the block itself makes up for it;
 * above MOST, trsm does it. */
#include "cuda/linalg/libraries.h"
#include "cuda/linalg/products.h"

namespace {

enum { BLOCK = 64, PITCH = BLOCK + 1, LEAST_COLUMNS = 1024, MOST_BLOCKS = 64 };
const double REFINED = 1e3, MOST = 1e9;

/* D_b = diagonal block b with zeros above, X_b its inverse, packed columns; a thread has one column of each.  What is
 * beyond n is I. */
__global__ void __launch_bounds__(BLOCK)
    invert_blocks(int n, const double *L, int64_t ld, double *X, double *D, double *conditions)
{
    __shared__ double tile[BLOCK * PITCH], over[BLOCK], sums[BLOCK / 32];
    const int c = threadIdx.x, first = BLOCK * (int)blockIdx.x;
    for (int e = c; e < BLOCK * BLOCK; e += BLOCK) {
        const int r = e % BLOCK, k = e / BLOCK, row = first + r;
        tile[r * PITCH + k] = row < n && k <= r ? L[row + (int64_t)(first + k) * ld] : (double)(r == k);
    }
    __syncthreads();
    double length = 0;
    for (int k = 0; k <= c; k++) length = fma(tile[c * PITCH + k], tile[c * PITCH + k], length);
    over[c] = 1 / tile[c * PITCH + c];
    __syncthreads();
    double x[BLOCK], square = 0;
#pragma unroll
    for (int r = 0; r < BLOCK; r++) {
        double sum[4] = {r == c ? 1.0 : 0.0, 0, 0, 0};
#pragma unroll
        for (int k = 0; k < r; k++) sum[k % 4] = fma(-tile[r * PITCH + k], x[k], sum[k % 4]);
        x[r] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) * over[r];
        square = fma(x[r], x[r], square);
    }
    const int64_t at = (int64_t)blockIdx.x * BLOCK * BLOCK + c * BLOCK;
#pragma unroll
    for (int r = 0; r < BLOCK; r++) X[at + r] = x[r], D[at + r] = tile[r * PITCH + c];
    double scaled = square * length;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) scaled += __shfl_xor_sync(0xffffffffu, scaled, offset);
    if (c % 32 == 0) sums[c / 32] = scaled;
    __syncthreads();
    if (c == 0) conditions[blockIdx.x] = 8 * sqrt(sums[0] + sums[1]);
}

/* A call: B is `wide` numbers across the blocks of L, which go along its rows (left) or columns. */
typedef struct division {
    void *handle;
    int left, transposed;
    int64_t n, wide; /* the order of L */
    const double *L;
    int64_t ldl;
    double *B;
    int64_t ldb;
    double *X, *D, *T, *conditions; /* inverses, blocks; BLOCK x wide twice, packed as B is; in the GPU's memory */
} division;

double *block_of(const division *d, int64_t at) { return d->B + at * (d->left ? 1 : d->ldb); }

/* C = a M Y + b C or (right) a Y M' + b C, M (rows x inner) a block of L or, `turned`, its transpose's. */
fs_result multiply(const division *d, double a, const double *M, int64_t ldm, int turned, int64_t rows, int64_t inner,
                   const double *Y, int64_t ldy, double b, double *C, int64_t ldc)
{
    const fsi_dense *dense = &fsi_gpu_dense;
    return d->left ? dense->gemm(d->handle, turned, 0, rows, d->wide, inner, a, M, ldm, Y, ldy, b, C, ldc)
                   : dense->gemm(d->handle, 0, !turned, d->wide, rows, inner, a, Y, ldy, M, ldm, b, C, ldc);
}

/* B_j -= what the blocks that are done make of it.  The blocks are done upwards where B_j needs those below. */
fs_result subtract_done(const division *d, int64_t at, int64_t height, int upwards)
{
    const int64_t begin = upwards ? at + height : 0, count = upwards ? d->n - begin : at;
    if (!count) return FS_OK;
    const double *M = upwards ? d->L + begin + at * d->ldl : d->L + at; /* L(begin.., at..) or L(at.., 0..) */
    return multiply(d, -1.0, M, d->ldl, upwards, height, count, block_of(d, begin), d->ldb, 1.0, block_of(d, at),
                    d->ldb);
}

fs_result copy_block(const division *d, int64_t height, const double *from, int64_t ld_from, double *to, int64_t ld_to)
{
    fsi_gpu *gpu = ((fsi_gpu_handle *)d->handle)->gpu;
    const int64_t rows = d->left ? height : d->wide, columns = d->left ? d->wide : height;
    return fsi_gpu_check(gpu,
                         cudaMemcpy2DAsync(to, (size_t)ld_to * sizeof *to, from, (size_t)ld_from * sizeof *to,
                                           (size_t)rows * sizeof *to, (size_t)columns, cudaMemcpyDeviceToDevice,
                                           gpu->stream),
                         "copying a block");
}

/* B_j = op(L(j,j))^-1 B_j. */
fs_result divide_block(const division *d, int64_t at, int64_t height, int upwards, int refined)
{
    const double *X = d->X + at * BLOCK, *D = d->D + at * BLOCK;
    double *B = block_of(d, at), *T = d->T, *rest = d->T + BLOCK * d->wide;
    const int64_t block = BLOCK, ldt = d->left ? block : d->wide;
    FSI_TRY(multiply(d, 1.0, X, BLOCK, upwards, height, height, B, d->ldb, 0.0, T, ldt));
    if (refined) {
        FSI_TRY(copy_block(d, height, B, d->ldb, rest, ldt));
        FSI_TRY(multiply(d, -1.0, D, BLOCK, upwards, height, height, T, ldt, 1.0, rest, ldt));
        FSI_TRY(multiply(d, 1.0, X, BLOCK, upwards, height, height, rest, ldt, 1.0, T, ldt));
    }
    return copy_block(d, height, T, ldt, B, d->ldb);
}

fs_result run(const division *d, int *done)
{
    fsi_gpu *gpu = ((fsi_gpu_handle *)d->handle)->gpu;
    double conditions[MOST_BLOCKS];
    const int64_t blocks = fsi_div_up(d->n, BLOCK);
    /* B_j needs those below it for L'^-1 B and B L^-1. */
    const int upwards = d->left ? d->transposed : !d->transposed;
    invert_blocks<<<(unsigned)blocks, BLOCK, 0, gpu->stream>>>((int)d->n, d->L, d->ldl, d->X, d->D, d->conditions);
    FSI_TRY(FSI_LAUNCHED(gpu, "inverting blocks"));
    FSI_TRY(fsi_gpu_dense.fetch(d->handle, d->conditions, (size_t)blocks * sizeof *conditions, conditions));
    for (int64_t b = 0; b < blocks; b++)
        if (!(conditions[b] <= MOST)) return FS_OK;
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t at = (upwards ? blocks - 1 - b : b) * BLOCK, height = fsi_min(BLOCK, d->n - at);
        FSI_TRY(subtract_done(d, at, height, upwards));
        FSI_TRY(divide_block(d, at, height, upwards, conditions[at / BLOCK] > REFINED));
    }
    *done = 1;
    return FS_OK;
}

}  // namespace

fs_result fsi_gpu_divide_by_blocks(void *handle, int left, int transposed, int64_t m, int64_t n, const double *L,
                                   int64_t ldl, double *B, int64_t ldb, int *done)
{
    fsi_gpu *gpu = ((fsi_gpu_handle *)handle)->gpu;
    const int64_t order = left ? m : n, wide = left ? n : m, blocks = fsi_div_up(order, BLOCK);
    void *scratch;
    *done = 0;
    if (wide < LEAST_COLUMNS || wide < 2 * order || blocks > MOST_BLOCKS || order == 0) return FS_OK;
    const int64_t inverses = blocks * BLOCK * BLOCK;
    FSI_TRY(fsi_gpu_scratch(gpu, (2 * inverses + 2 * BLOCK * wide + blocks) * (int64_t)sizeof(double), &scratch));
    double *X = (double *)scratch, *T = X + 2 * inverses;
    const division d = {handle,       left, transposed,          order, wide, L, ldl, B, ldb, X,
                        X + inverses, T,    T + 2 * BLOCK * wide};
    return run(&d, done);
}
