/* lstsq_direct.c - the rows of A in one place, and for fewer rows than columns the preconditioner from its singular values.
 *
 * A' = V s U': with N = V diag(1 / s) of the values that count, A N is orthonormal to rounding, and x = N z is the
 * shortest solution.  The iteration then needs one or two steps. */
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

/* A sparse slice through its product with the identity, which every backend can compute. */
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

/* l->N = V and the values from A', n x d in Y. */
static fs_result lstsq_direct_decompose(fsi_lstsq *l, double *Y, double *Ut)
{
    const int64_t n = l->n, d = l->A.rows;
    FSI_TRY(fsi_lstsq_whole(l, Y, n));
    DENSE(&l->A, norm, d * n, Y, &l->norm);
    FSI_TRY(fsi_lstsq_check_norm(l));
    DENSE(&l->A, svd, n, d, Y, n, l->values, Ut);
    return FS_OK;
}

fs_result fsi_lstsq_factor_wide(fsi_lstsq *l)
{
    const int64_t n = l->n, d = l->A.rows;
    double *Ut = NULL;
    fs_result result = fsi_operand_alloc(&l->A, n * d, &l->N);
    if (result == FS_OK) result = fsi_operand_alloc(&l->A, d * d, &Ut);
    if (result == FS_OK) result = lstsq_direct_decompose(l, l->N, Ut);
    fsi_operand_free(&l->A, Ut);
    if (result == FS_OK) result = fsi_operand_share(&l->A, l->N, n * d);
    if (result == FS_OK) result = fsi_operand_share_host(&l->A, l->values, d);
    if (result != FS_OK) return result;
    for (int64_t i = 0; i < d; i++) l->values[i] = hypot(l->values[i], sqrt(l->o.lambda));
    l->rank = 0;
    while (l->rank < d && l->values[l->rank] > l->o.rcond * l->values[0]) l->rank++;
    l->told.condition = l->rank ? l->values[0] / l->values[l->rank - 1] : 1;
    l->told.method = FS_LSTSQ_DIRECT;
    l->is_refined = 1;
    l->contraction = 0.02;
    return FS_OK;
}
