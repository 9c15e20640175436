/* lstsq_direct.c - the preconditioner from the singular values of A itself.
 *
 * A = U s V', whichever of A and A' is taller: with N = V diag(1 / s) of the values that count, A N is orthonormal to
 * rounding, and x = N z is the shortest solution.  The iteration then needs one or two steps. */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/math.h"
#include "tasks/lstsq.h"

typedef struct copier {
    fsi_lstsq *l;
    double *to; /* in the backend's memory */
    int64_t ld;
} copier;

static void densify(const fs_sparse *A, double *to, int64_t ld)
{
    const int by_rows = A->format == FS_CSR;
    for (int64_t i = 0; i < (by_rows ? A->rows : A->cols); i++) {
        const int64_t end = fsi_index_load(A->ptr, A->index_type, i + 1);
        for (int64_t e = fsi_index_load(A->ptr, A->index_type, i); e < end; e++) {
            const int64_t other = fsi_index_load(A->index, A->index_type, e);
            to[by_rows ? other + i * ld : i + other * ld] += fsi_load(A->value, A->dtype, e);
        }
    }
}

/* A sparse slice by way of its product with the identity, which every backend has. */
static fs_result copy_sparse(fsi_lstsq *l, const fs_sparse *A, double *to, int64_t ld)
{
    if (A->memory == FS_MEMORY_HOST && l->A.ctx->backend->memory == FS_MEMORY_HOST) {
        densify(A, to, ld);
        return FS_OK;
    }
    double *unit;
    FSI_TRY(fsi_operand_alloc(&l->A, l->n * l->n, &unit));
    fs_result result = l->A.dense->zero(l->A.handle, unit, (size_t)(l->n * l->n) * sizeof *unit);
    if (result == FS_OK) result = l->A.dense->diagonal(l->A.handle, l->n, unit, l->n, NULL, 1.0);
    if (result == FS_OK) result = l->A.dense->product_sparse(l->A.handle, A, l->n, unit, to);
    fsi_operand_free(&l->A, unit);
    return result;
}

static fs_result copy_slice(void *user, int64_t row0, const fs_matrix *dense, const fs_sparse *sparse)
{
    const copier *c = user;
    double *to = c->to + (c->l->A.row0 + row0) * c->ld;
    if (sparse) return copy_sparse(c->l, sparse, to, c->ld);
    DENSE(&c->l->A, widen, dense, to, c->ld);
    return FS_OK;
}

fs_result fsi_lstsq_whole(fsi_lstsq *l, double *to, int64_t ld)
{
    copier c = {l, to, ld};
    DENSE(&l->A, zero, to, (size_t)(l->A.rows * ld) * sizeof *to);
    FSI_TRY(fsi_operand_visit(&l->A, 0, copy_slice, &c));
    return fsi_operand_sum(&l->A, to, l->A.rows * ld);
}

static fs_result decompose(fsi_lstsq *l, double *Y, double *X, double *Vt)
{
    const int64_t n = l->n, d = l->A.rows, p = fsi_min(n, d);
    const fs_memory memory = l->A.ctx->backend->memory;
    FSI_TRY(fsi_lstsq_whole(l, Y, n));
    DENSE(&l->A, norm, d * n, Y, &l->norm);
    FSI_REQUIRE(isfinite(l->norm), "%s: A has an element that is not finite, or too large to be squared", l->A.who);
    const fs_matrix turned = {Y, n, d, 1, n, 0, 0, FS_F64, memory}, right = {Vt, p, p, 1, p, 0, 0, FS_F64, memory};
    if (d < n) { /* Y, n x d, is A' = U s V': U has A's right singular vectors */
        DENSE(&l->A, svd, n, p, Y, n, l->values, Vt);
        DENSE(&l->A, add, n * p, 1.0, Y, l->N);
        return FS_OK;
    }
    DENSE(&l->A, widen, &turned, X, d);
    DENSE(&l->A, svd, d, p, X, d, l->values, Vt);
    DENSE(&l->A, widen, &right, l->N, n);
    return FS_OK;
}

fs_result fsi_lstsq_factor_direct(fsi_lstsq *l)
{
    const int64_t n = l->n, d = l->A.rows, p = fsi_min(n, d);
    double *Y = NULL, *X = NULL, *Vt = NULL;
    fs_result result = fsi_operand_alloc(&l->A, n * p, &l->N);
    if (result == FS_OK) result = l->A.dense->zero(l->A.handle, l->N, (size_t)(n * p) * sizeof(double));
    if (result == FS_OK) result = fsi_operand_alloc(&l->A, n * d, &Y);
    if (result == FS_OK && d >= n) result = fsi_operand_alloc(&l->A, n * d, &X);
    if (result == FS_OK) result = fsi_operand_alloc(&l->A, p * p, &Vt);
    if (result == FS_OK) result = decompose(l, Y, X, Vt);
    fsi_operand_free(&l->A, Y);
    fsi_operand_free(&l->A, X);
    fsi_operand_free(&l->A, Vt);
    if (result == FS_OK) result = fsi_operand_share(&l->A, l->N, n * p);
    if (result == FS_OK) result = fsi_operand_share_host(&l->A, l->values, p);
    if (result != FS_OK) return result;
    for (int64_t i = 0; i < p; i++) l->values[i] = hypot(l->values[i], sqrt(l->o.lambda));
    l->rank = 0;
    while (l->rank < p && l->values[l->rank] > l->o.rcond * l->values[0]) l->rank++;
    l->told.condition = l->rank ? l->values[0] / l->values[l->rank - 1] : 1;
    l->told.method = FS_LSTSQ_DIRECT;
    l->contraction = 0.02;
    return FS_OK;
}
