/* tall_qr.cu - the triangular factor of a tall matrix by Cholesky QR.
 *
 * X'X = C C' gives X = (X C'^-1) C', all of it products and one Cholesky factor, where Householder's reflectors go
 * column by column.  X C'^-1 is orthonormal to u cond(X)^2 only, so the same is done with it, until what is left is
 * orthonormal to a half: the last factor is then exact to rounding, and L is the product of all.  Where cond(X)^2 u is
 * about 1 or more, so that X'X has no reliable factor, the diagonal is made larger by the share 8 p u first: X C'^-1 has
 * then a condition number of at most sqrt(8 p u) cond(X) (shifted Cholesky QR: Fukaya, Kannan, Nakatsukasa, Yamamoto and
 * Yanagisawa, 2020).  As a share of the diagonal the shift does not depend on the scale of columns. */
#include "cuda/linalg/products.h"

namespace {

enum { STEPS = 8, THREADS = 256 };
const double UNIT = 0x1p-53, NEARLY_ORTHONORMAL = 0.5;

__global__ void scale_diagonal(int64_t p, double *G, double factor)
{
    const int64_t j = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (j < p) G[j + j * p] *= factor;
}

typedef struct tall {
    void *handle;
    int64_t m, p, ld;
    double *X, *G, *C; /* C also takes products of factors */
    double *diagonals; /* 2 p: those of G and of its factor; in `host` afterwards */
    double *host;
} tall;

/* G = X'X, its lower triangle, zeros above; *off = |G - I|_F of that. */
fs_result make_gram(const tall *t, double *off)
{
    const fsi_dense *dense = &fsi_gpu_dense;
    FSI_TRY(dense->zero(t->handle, t->G, (size_t)(t->p * t->p) * sizeof *t->G));
    FSI_TRY(fsi_gpu_gram(t->handle, 1, t->p, t->m, t->X, t->ld, 0.0, t->G, t->p));
    FSI_TRY(dense->diagonal(t->handle, t->p, t->G, t->p, NULL, -1.0));
    FSI_TRY(dense->norm(t->handle, t->p * t->p, t->G, off));
    return dense->diagonal(t->handle, t->p, t->G, t->p, t->diagonals, 1.0);
}

/* C = the factor of G with its diagonal times `factor`; *good: whether no pivot is a rounding error. */
fs_result make_factor(const tall *t, double factor, int *good)
{
    fsi_gpu *gpu = ((fsi_gpu_handle *)t->handle)->gpu;
    const fsi_dense *dense = &fsi_gpu_dense;
    const size_t bytes = (size_t)(t->p * t->p) * sizeof *t->C;
    int info = 0;
    FSI_TRY(fsi_gpu_check(gpu, cudaMemcpyAsync(t->C, t->G, bytes, cudaMemcpyDeviceToDevice, gpu->stream),
                          "copying a Gram matrix"));
    if (factor != 1) {
        scale_diagonal<<<(unsigned)fsi_div_up(t->p, THREADS), THREADS, 0, gpu->stream>>>(t->p, t->C, factor);
        FSI_TRY(FSI_LAUNCHED(gpu, "shifting a Gram matrix"));
    }
    FSI_TRY(dense->diagonal(t->handle, t->p, t->C, t->p, t->diagonals, 0.0));
    FSI_TRY(dense->potrf(t->handle, t->p, t->C, t->p));
    FSI_TRY(dense->diagonal(t->handle, t->p, t->C, t->p, t->diagonals + t->p, 0.0));
    FSI_TRY(dense->fetch(t->handle, t->diagonals, (size_t)(2 * t->p) * sizeof *t->host, t->host));
    FSI_TRY(dense->wait(t->handle, &info));
    /* A factor that was shifted has no smaller pivots than the shift. */
    const double least = factor != 1 ? 0 : 1024 * (double)t->p * UNIT;
    *good = info == 0;
    for (int64_t j = 0; j < t->p; j++) {
        const double pivot = t->host[t->p + j];
        *good = *good && pivot * pivot > least * t->host[j];
    }
    return FS_OK;
}

/* L = L C; G is spoilt. */
fs_result append(const tall *t, double *L)
{
    fsi_gpu *gpu = ((fsi_gpu_handle *)t->handle)->gpu;
    const int64_t p = t->p;
    FSI_TRY(fsi_gpu_dense.gemm(t->handle, 0, 0, p, p, p, 1.0, L, p, t->C, p, 0.0, t->G, p));
    return fsi_gpu_check(gpu,
                         cudaMemcpyAsync(L, t->G, (size_t)(p * p) * sizeof *L, cudaMemcpyDeviceToDevice, gpu->stream),
                         "copying a triangle");
}

fs_result run(const tall *t, double *L, int *factors, int *done)
{
    fsi_gpu *gpu = ((fsi_gpu_handle *)t->handle)->gpu;
    const size_t bytes = (size_t)(t->p * t->p) * sizeof *L;
    for (int step = 0; step < STEPS; step++) {
        double off;
        int good;
        FSI_TRY(make_gram(t, &off));
        const bool last = off <= NEARLY_ORTHONORMAL;
        FSI_TRY(make_factor(t, 1, &good));
        if (!good && !last) FSI_TRY(make_factor(t, 1 + 8 * (double)t->p * UNIT, &good));
        if (!good) return FS_OK;
        if (step > 0) FSI_TRY(append(t, L));
        else
            FSI_TRY(fsi_gpu_check(gpu, cudaMemcpyAsync(L, t->C, bytes, cudaMemcpyDeviceToDevice, gpu->stream),
                                  "copying a triangle"));
        ++*factors;
        *done = last;
        if (last) return FS_OK;
        FSI_TRY(fsi_gpu_dense.trsm(t->handle, 0, 1, t->m, t->p, t->C, t->p, t->X, t->ld));
    }
    return FS_OK;
}

}  // namespace

fs_result fsi_gpu_tall_qr(void *handle, int64_t m, int64_t p, double *X, int64_t ld, double *L, double *room,
                          double *host, int *factors, int *done)
{
    const tall t = {handle, m, p, ld, X, room, room + p * p, room + 2 * p * p, host};
    *factors = *done = 0;
    return run(&t, L, factors, done);
}
fs_result fsi_gpu_append_triangle(void *handle, int64_t p, double *L, double *C, double *work)
{
    const tall t = {handle, p, p, p, NULL, work, C, NULL, NULL};
    return append(&t, L);
}
