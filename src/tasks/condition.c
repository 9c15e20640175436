/* condition.c - see condition.h.
 *
 * |T| and |T^-1| by power iterations with T and with its inverse.  Each product is divided by the Frobenius norm of its
 * matrix, so that vectors neither overflow nor, in so few steps, vanish, and no step waits for the last one's length. */
#include "tasks/condition.h"

#include <inttypes.h>
#include <math.h>

#include "base/math.h"

enum { STEPS = 8 };

/* to = from, both n x n, columns ld apart in `from` and packed in `to`. */
static fs_result condition_copy(fsi_operand *A, int64_t n, const double *from, int64_t ld, double *to)
{
    const fs_matrix columns = {(void *)from, n, n, ld, 1, 0, 0, FS_F64, A->ctx->backend->memory};
    DENSE(A, widen, &columns, to, n);
    return FS_OK;
}

fs_result fsi_invert(fsi_operand *A, int64_t n, const double *T, int64_t ld, double **inverse)
{
    FSI_TRY(fsi_operand_alloc(A, n * n, inverse));
    DENSE(A, zero, *inverse, (size_t)(n * n) * sizeof(double));
    DENSE(A, diagonal, n, *inverse, n, NULL, 1.0);
    DENSE(A, trsm, 1, 0, n, n, T, ld, *inverse, n);
    return FS_OK;
}

/* T's rows divided by the values that `there` selects: lengths (squared), or entries of the diagonal. */
static fs_result divide_rows(fsi_operand *A, int64_t n, double *T, double *there, int squared)
{
    const fs_allocator *memory = &A->ctx->allocator;
    double *host = memory->alloc(memory->user, (size_t)n * sizeof *host);
    if (!host) return fs_fail(FS_ENOMEM, "%s: no memory for %" PRId64 " lengths", A->who, n);
    fs_result result = A->dense->fetch(A->handle, there, (size_t)n * sizeof *host, host);
    for (int64_t i = 0; i < n; i++) host[i] = host[i] > 0 ? 1 / (squared ? sqrt(host[i]) : host[i]) : 0;
    if (result == FS_OK) result = A->dense->send(A->handle, host, (size_t)n * sizeof *host, there);
    memory->release(memory->user, host);
    return result == FS_OK ? A->dense->scale_rows(A->handle, n, n, T, n, there) : result;
}

/* T's rows over their lengths; `work` has n x n numbers and n.  The squares of lengths need not be f64 numbers, but
 * those of lengths over entries of the diagonal are, which are at least 1. */
static fs_result scale(fsi_operand *A, int64_t n, double *T, double *work)
{
    const fs_matrix turned = {T, n, n, 1, n, 0, 0, FS_F64, A->ctx->backend->memory};
    double *lengths = work + n * n;
    DENSE(A, diagonal, n, T, n, lengths, 0.0);
    FSI_TRY(divide_rows(A, n, T, lengths, 0));
    DENSE(A, widen, &turned, work, n);
    DENSE(A, squares, n, n, work, n, lengths);
    return divide_rows(A, n, T, lengths, 1);
}

/* The largest singular value of M, n x n packed; x and y have n numbers. */
static fs_result largest(fsi_operand *A, int64_t n, const double *M, double *x, double *y, double *value)
{
    double size, before, after;
    DENSE(A, norm, n * n, M, &size);
    *value = size;
    if (!(size > 0) || !isfinite(size)) return FS_OK;
    for (int step = 0; step < STEPS; step++) {
        if (step == STEPS - 1) DENSE(A, norm, n, x, &before);
        DENSE(A, gemm, 1, 0, n, 1, n, 1 / size, M, n, x, n, 0.0, y, n);
        DENSE(A, gemm, 0, 0, n, 1, n, 1 / size, M, n, y, n, 0.0, x, n);
    }
    DENSE(A, norm, n, x, &after);
    *value = size * sqrt(after / before);
    return FS_OK;
}

/* A starting vector, unlikely to be a singular vector, in x and again in y. */
static fs_result start(fsi_operand *A, int64_t n, double *x)
{
    const fs_allocator *memory = &A->ctx->allocator;
    double *host = memory->alloc(memory->user, (size_t)(2 * n) * sizeof *host);
    if (!host) return fs_fail(FS_ENOMEM, "%s: no memory for %" PRId64 " numbers", A->who, n);
    for (int64_t i = 0; i < n; i++)
        host[i] = host[n + i] = (double)((uint32_t)(i + 1) * 2654435761u >> 8) * 0x1p-23 - 1;
    const fs_result result = A->dense->send(A->handle, host, (size_t)(2 * n) * sizeof *host, x);
    memory->release(memory->user, host);
    return result;
}

/* work: n x n + 3 n numbers. */
static fs_result estimate(fsi_operand *A, int64_t n, const double *T, const double *inverse, double *work,
                          double *condition)
{
    double *x = work, *other = work + n, *y = work + 2 * n, high, low;
    FSI_TRY(start(A, n, x));
    FSI_TRY(largest(A, n, T, x, y, &high));
    FSI_TRY(largest(A, n, inverse, other, y, &low));
    *condition = high > 0 ? high * low : INFINITY;
    if (!(*condition < INFINITY)) *condition = INFINITY;
    if (*condition < 1) *condition = 1;
    return fsi_operand_share_host(A, condition, 1);
}

fs_result fsi_condition(fsi_operand *A, int64_t n, const double *L, int64_t ld, int scaled, double *condition,
                        double **inverse)
{
    double *T = NULL, *work = NULL, *M = NULL;
    fs_result result = fsi_operand_alloc(A, n * n, &T);
    if (result == FS_OK) result = fsi_operand_alloc(A, n * n + 3 * n, &work);
    if (result == FS_OK) result = condition_copy(A, n, L, ld, T);
    if (result == FS_OK && scaled) result = scale(A, n, T, work);
    if (result == FS_OK) result = fsi_invert(A, n, T, n, &M);
    if (result == FS_OK) result = estimate(A, n, T, M, work, condition);
    fsi_operand_free(A, T);
    fsi_operand_free(A, work);
    if (inverse && result == FS_OK) *inverse = M;
    else fsi_operand_free(A, M);
    return result;
}
