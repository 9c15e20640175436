/* svd_tall.c - all singular values of a tall A by its QR factorization: A = Q R (basis.h), R = Z diag(s) V' of n x n, so
 * that A = (Q Z) diag(s) V'.
 *
 * Q is not stored: the last read of A divides its rows by the factors of R and multiplies them by Z, and by inverses of
 * factors at once where those may be used.  Where columns of A are dependent to rounding, R says nothing of the
 * small singular values, and svd_range.c does it. */
#include <math.h>

#include "tasks/basis.h"
#include "tasks/svd.h"

typedef struct svd_tall {
    fsi_svd *t;
    fsi_basis basis;
    double *T; /* n x n: R', then V */
} svd_tall;

static fs_result put_panel(void *user, int64_t row0, int64_t rows)
{
    svd_tall *q = user;
    FSI_TRY(fsi_basis_divide_before(&q->basis, rows));
    return fsi_svd_put_u(q->t, q->t->A.n, row0, rows, q->basis.rows.Z);
}

/* Room in O for the rows of a panel of the basis. */
static fs_result match_panels(svd_tall *q)
{
    fsi_svd *t = q->t;
    if (q->basis.rows.most <= t->x_rows) return FS_OK;
    fsi_operand_free(&t->A, t->O);
    t->O = NULL;
    return fsi_operand_alloc(&t->A, t->l * q->basis.rows.most, &t->O);
}

/* U' = diag(sign) Z'R'^-1 A', its first r rows. */
static fs_result put_u(svd_tall *q, const double *sign)
{
    fsi_svd *t = q->t;
    const int64_t n = t->A.n, r = t->r;
    const fs_matrix first = {t->Vt, n, r, n, 1, 0, 0, FS_F64, t->A.ctx->backend->memory};
    DENSE(&t->A, widen, &first, t->M, r);
    DENSE(&t->A, send, sign, (size_t)r * sizeof *sign, t->small);
    DENSE(&t->A, scale_rows, r, n, t->M, r, t->small);
    if (q->basis.N) {
        DENSE(&t->A, gemm, 0, 0, r, n, n, 1.0, t->M, r, q->basis.N, n, 0.0, t->R, r);
        double *const swap = t->M;
        t->M = t->R;
        t->R = swap;
    }
    FSI_TRY(match_panels(q));
    return fsi_rows_visit(&q->basis.rows, put_panel, q);
}

static fs_result decompose(svd_tall *q)
{
    fsi_svd *t = q->t;
    const int64_t n = t->A.n;
    const fs_memory memory = t->A.ctx->backend->memory;
    const fs_matrix all = {q->basis.G, n, n, n, 1, 0, 0, FS_F64, memory};
    double *const sign = t->host;
    double square = 0;
    FSI_TRY(fsi_operand_alloc(&t->A, n * n, &q->T));
    DENSE(&t->A, widen, &all, q->T, n);
    fsi_operand_progress(&t->A, 0.5, "singular values");
    DENSE(&t->A, svd, n, n, q->T, n, t->A.dtype == FS_F64 ? 0 : fsi_operand_unit(&t->A), t->D, t->Vt);
    FSI_TRY(fsi_operand_share_host(&t->A, t->D, n));
    FSI_TRY(fsi_operand_share(&t->A, q->T, n * n));
    FSI_TRY(fsi_operand_share(&t->A, t->Vt, n * n));
    for (int64_t j = n - 1; j >= 0; j--) square += t->D[j] * t->D[j];
    t->norm = t->raw_norm = sqrt(square);
    t->t = n;
    for (int64_t j = 0; j < t->r; j++) t->s[j] = t->D[j];
    const fs_matrix first = {q->T, t->r, n, n, 1, 0, 0, FS_F64, memory};
    DENSE(&t->A, widen, &first, t->W, n);
    FSI_TRY(fsi_svd_put_v(t, sign));
    if (t->U) FSI_TRY(put_u(q, sign));
    return fsi_svd_range_error(t);
}

static fs_result svd_tall_run(svd_tall *q, int *done)
{
    fsi_svd *t = q->t;
    const fsi_basis_options how = {FSI_PIVOT_DEPENDENT, fsi_operand_rcond(&t->A, 0), NULL, 4, t->options.seed, 1};
    FSI_TRY(fsi_basis_sketch(&q->basis, &t->A, &how));
    if (q->basis.pivots) return FS_OK;
    FSI_TRY(fsi_basis_orthogonalize(&q->basis));
    *done = 1;
    return decompose(q);
}

fs_result fsi_svd_tall(fsi_svd *t, int *done)
{
    svd_tall q = {.t = t};
    *done = 0;
    const fs_result result = svd_tall_run(&q, done);
    fsi_operand_free(&t->A, q.T);
    fsi_basis_close(&q.basis);
    return result;
}
