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

fs_result fsi_multiply_triangle(fsi_operand *A, int64_t n, int64_t count, const double *T, const double *X, double *to)
{
    enum { BLOCK = 256 };
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t height = fsi_min(BLOCK, n - i);
        DENSE(A, gemm, 0, 0, height, count, i + height, 1.0, T + i, n, X, n, 0.0, to + i, n);
    }
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

/* What a matrix M, n x n packed, is multiplied by: x, and y for M x; each has n numbers. */
typedef struct iteration {
    const double *M;
    double *x, *y;
    double size; /* |M|_F, then the largest singular value of M */
} iteration;

/* The sizes |M|_F of two iterations, from squares of their columns in `there`, 2 n numbers. */
static fs_result frobenius(fsi_operand *A, int64_t n, iteration *both, double *there, double *host)
{
    for (int i = 0; i < 2; i++) DENSE(A, squares, n, n, both[i].M, n, there + i * n);
    DENSE(A, fetch, there, (size_t)(2 * n) * sizeof *host, host);
    for (int i = 0; i < 2; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += host[i * n + j];
        both[i].size = sqrt(sum);
        if (!(sum > 0x1p-900 && sum < 0x1p900)) DENSE(A, norm, n * n, both[i].M, &both[i].size);
    }
    return FS_OK;
}

/* The largest singular values of two matrices, side by side: the host waits twice.  `there` has 2 n + 4 numbers. */
static fs_result largest(fsi_operand *A, int64_t n, iteration *both, double *there, double *host)
{
    double *lengths = there + 2 * n, length[4];
    FSI_TRY(frobenius(A, n, both, there, host));
    for (int i = 0; i < 2; i++)
        if (!(both[i].size > 0) || !isfinite(both[i].size)) return FS_OK;
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < 2; i++) {
            const iteration *it = &both[i];
            if (step == STEPS - 1) DENSE(A, squares, n, 1, it->x, n, lengths + 2 * i);
            DENSE(A, gemm, 1, 0, n, 1, n, 1 / it->size, it->M, n, it->x, n, 0.0, it->y, n);
            DENSE(A, gemm, 0, 0, n, 1, n, 1 / it->size, it->M, n, it->y, n, 0.0, it->x, n);
            if (step == STEPS - 1) DENSE(A, squares, n, 1, it->x, n, lengths + 2 * i + 1);
        }
    DENSE(A, fetch, lengths, sizeof length, length);
    for (int i = 0; i < 2; i++) both[i].size *= sqrt(sqrt(length[2 * i + 1] / length[2 * i]));
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

/* From T and its inverse, or the transpose of that; `there` has 5 n + 4 numbers, `host` 2 n. */
static fs_result estimate(fsi_operand *A, int64_t n, const double *T, const double *inverse, double *there,
                          double *host, double *condition)
{
    double *x = there, *y = there + 2 * n;
    iteration both[2] = {{T, x, y, 0}, {inverse, x + n, y, 0}};
    FSI_TRY(start(A, n, x));
    FSI_TRY(largest(A, n, both, there + 3 * n, host));
    *condition = both[0].size > 0 ? both[0].size * both[1].size : INFINITY;
    if (!(*condition < INFINITY)) *condition = INFINITY;
    if (*condition < 1) *condition = 1;
    return fsi_operand_share_host(A, condition, 1);
}

/* to = the transpose of (D L)^-1, T = D L with a diagonal D, M = L^-1: rows of M' times L(i, i) / T(i, i). */
static fs_result scale_inverse(fsi_operand *A, int64_t n, double *L, int64_t ld, double *T, double *M, double *to,
                               double *there, double *host)
{
    const fs_matrix turned = {M, n, n, 1, n, 0, 0, FS_F64, A->ctx->backend->memory};
    DENSE(A, diagonal, n, L, ld, there, 0.0);
    DENSE(A, diagonal, n, T, n, there + n, 0.0);
    DENSE(A, fetch, there, (size_t)(2 * n) * sizeof *host, host);
    for (int64_t i = 0; i < n; i++) host[i] /= host[n + i];
    DENSE(A, send, host, (size_t)n * sizeof *host, there);
    DENSE(A, widen, &turned, to, n);
    DENSE(A, scale_rows, n, n, to, n, there);
    return FS_OK;
}

/* What fsi_condition needs; M is L^-1 where that is wanted, and otherwise T^-1. */
typedef struct condition_memory {
    double *T, *work, *M, *host;
} condition_memory;

static fs_result condition_run(fsi_operand *A, int64_t n, double *L, int64_t ld, int scaled, int wanted,
                               condition_memory *m, double *condition)
{
    double *inverse, *there;
    FSI_TRY(fsi_operand_alloc(A, n * n, &m->T));
    FSI_TRY(fsi_operand_alloc(A, n * n + 5 * n + 4, &m->work));
    there = m->work + n * n;
    FSI_TRY(condition_copy(A, n, L, ld, m->T));
    if (scaled) FSI_TRY(scale(A, n, m->T, m->work));
    if (!m->M) FSI_TRY(fsi_invert(A, n, wanted ? L : m->T, wanted ? ld : n, &m->M));
    inverse = m->M;
    if (scaled && wanted) {
        inverse = m->work;
        FSI_TRY(scale_inverse(A, n, L, ld, m->T, m->M, inverse, there, m->host));
    }
    return estimate(A, n, m->T, inverse, there, m->host, condition);
}

fs_result fsi_condition(fsi_operand *A, int64_t n, double *L, int64_t ld, int scaled, double *condition,
                        double **inverse)
{
    const fs_allocator *memory = &A->ctx->allocator;
    condition_memory m = {.M = inverse ? *inverse : NULL};
    m.host = memory->alloc(memory->user, (size_t)(2 * n) * sizeof *m.host);
    if (!m.host) return fs_fail(FS_ENOMEM, "%s: no memory for %" PRId64 " numbers", A->who, n);
    const fs_result result = condition_run(A, n, L, ld, scaled, inverse != NULL, &m, condition);
    memory->release(memory->user, m.host);
    fsi_operand_free(A, m.T);
    fsi_operand_free(A, m.work);
    if (inverse) *inverse = m.M;
    else fsi_operand_free(A, m.M);
    return result;
}
