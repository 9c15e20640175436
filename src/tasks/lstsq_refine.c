/* lstsq_refine.c - the factor of A itself from that of its sketch, by one more read of A.
 *
 * A N is nearly orthonormal, so that the Cholesky factor C of its Gram matrix, (A N)'(A N) = C C', is accurate whatever
 * the condition of A.  With N = R^-1, R = L', that gives A'A = (L C)(L C)'.  With N = V diag(1 / s) it gives the singular
 * values of A V as those of diag(s) C, and its right singular vectors. */
#include <math.h>

#include "base/math.h"
#include "tasks/condition.h"
#include "tasks/lstsq.h"
#include "tasks/rows.h"

typedef struct gram {
    fsi_lstsq *l;
    fsi_rows rows;
    double *scales; /* 1 / s in the backend's memory, where V is used */
    double *G, *T;  /* rank x rank; rank x rows of a panel, where that is not divided in place */
    int by_inverse; /* A N is by a product with the inverse of L */
    double square;  /* |A|_F^2 of this caller's rows */
} gram;

/* G += (A N)'(A N) of a panel, whose rows are the columns of Z. */
static fs_result add_panel(void *user, int64_t row0, int64_t rows)
{
    gram *g = user;
    fsi_lstsq *l = g->l;
    const int64_t n = l->n, r = l->rank;
    double norm, *Z = g->rows.Z;
    (void)row0;
    DENSE(&l->A, norm, n * rows, Z, &norm);
    g->square += norm * norm;
    if (g->by_inverse) {
        FSI_TRY(fsi_multiply_triangle(&l->A, n, rows, l->inverse, Z, g->T));
        DENSE(&l->A, syrk, n, rows, g->T, n, 1.0, g->G, n);
        return FS_OK;
    }
    if (!l->N) {
        DENSE(&l->A, trsm, 1, 0, n, rows, l->L, n, Z, n);
        DENSE(&l->A, syrk, n, rows, Z, n, 1.0, g->G, n);
        return FS_OK;
    }
    DENSE(&l->A, gemm, 1, 0, r, rows, n, 1.0, l->N, n, Z, n, 0.0, g->T, r);
    DENSE(&l->A, scale_rows, r, rows, g->T, r, g->scales);
    DENSE(&l->A, syrk, r, rows, g->T, r, 1.0, g->G, r);
    return FS_OK;
}

/* lambda N'N, what the rows sqrt(lambda) I below A add. */
static fs_result add_ridge(gram *g)
{
    fsi_lstsq *l = g->l;
    const int64_t n = l->n, r = l->rank;
    double *T;
    if (l->o.lambda == 0) return FS_OK;
    if (l->N) { /* V'V = I */
        DENSE(&l->A, zero, g->T, (size_t)(r * r) * sizeof(double));
        DENSE(&l->A, diagonal, r, g->T, r, NULL, sqrt(l->o.lambda));
        DENSE(&l->A, scale_rows, r, r, g->T, r, g->scales);
        DENSE(&l->A, syrk, r, r, g->T, r, 1.0, g->G, r);
        return FS_OK;
    }
    FSI_TRY(fsi_operand_alloc(&l->A, n * n, &T));
    fs_result result = l->A.dense->zero(l->A.handle, T, (size_t)(n * n) * sizeof(double));
    if (result == FS_OK) result = l->A.dense->diagonal(l->A.handle, n, T, n, NULL, sqrt(l->o.lambda));
    if (result == FS_OK) result = l->A.dense->trsm(l->A.handle, 1, 0, n, n, l->L, n, T, n);
    if (result == FS_OK) result = l->A.dense->syrk(l->A.handle, n, n, T, n, 1.0, g->G, n);
    if (result == FS_OK) result = l->A.dense->wait(l->A.handle, NULL);
    fsi_operand_free(&l->A, T);
    return result;
}

/* G, n x n or rank x rank, and norm = |A|_F. */
static fs_result make_gram(gram *g)
{
    fsi_lstsq *l = g->l;
    const int64_t n = l->n, r = l->rank;
    FSI_TRY(fsi_rows_open(&g->rows, &l->A, NULL));
    FSI_TRY(fsi_operand_alloc(&l->A, r * r, &g->G));
    if (l->N || g->by_inverse) FSI_TRY(fsi_operand_alloc(&l->A, r * fsi_max(r, g->rows.most), &g->T));
    if (l->N) {
        FSI_TRY(fsi_operand_alloc(&l->A, n, &g->scales));
        for (int64_t i = 0; i < r; i++) l->scratch[i] = 1 / l->values[i];
        DENSE(&l->A, send, l->scratch, (size_t)r * sizeof(double), g->scales);
    }
    DENSE(&l->A, zero, g->G, (size_t)(r * r) * sizeof(double));
    fsi_operand_progress(&l->A, 1, "singular values of A");
    const fsi_sums sums[] = {{g->G, (size_t)(r * r) * sizeof(double), 0}, {&g->square, sizeof g->square, 1}};
    FSI_TRY(fsi_rows_accumulate(&g->rows, add_panel, g, sums, 2));
    FSI_TRY(fsi_operand_sum(&l->A, g->G, r * r));
    FSI_TRY(fsi_operand_sum_host(&l->A, &g->square, 1));
    l->norm = sqrt(g->square);
    return add_ridge(g);
}

/* L = L C. */
static fs_result refine_triangle(fsi_lstsq *l, const double *C)
{
    const int64_t n = l->n;
    double *product;
    FSI_TRY(fsi_operand_alloc(&l->A, n * n, &product));
    const fs_result result = l->A.dense->gemm(l->A.handle, 0, 0, n, n, n, 1.0, l->L, n, C, n, 0.0, product, n);
    fsi_operand_free(&l->A, l->L);
    l->L = product;
    FSI_TRY(result);
    FSI_TRY(fsi_operand_share(&l->A, l->L, n * n));
    if (!l->inverse) return FS_OK;
    fsi_operand_free(&l->A, l->inverse);
    l->inverse = NULL;
    FSI_TRY(fsi_invert(&l->A, n, l->L, n, &l->inverse));
    return fsi_operand_share(&l->A, l->inverse, n * n);
}

/* diag(s) C = U s' W': the values become s', V becomes V U. */
static fs_result refine_vectors(fsi_lstsq *l, double *C, double *Wt, double *scales)
{
    const int64_t n = l->n, r = l->rank;
    double *product;
    DENSE(&l->A, send, l->values, (size_t)r * sizeof(double), scales);
    DENSE(&l->A, scale_rows, r, r, C, r, scales);
    DENSE(&l->A, svd, r, r, C, r, 0.0, l->values, Wt);
    FSI_TRY(fsi_operand_share_host(&l->A, l->values, r));
    FSI_TRY(fsi_operand_alloc(&l->A, n * r, &product));
    const fs_result result = l->A.dense->gemm(l->A.handle, 0, 0, n, r, r, 1.0, l->N, n, C, r, 0.0, product, n);
    fsi_operand_free(&l->A, l->N);
    l->N = product;
    return result == FS_OK ? fsi_operand_share(&l->A, l->N, n * r) : result;
}

static fs_result lstsq_refine_refine(gram *g)
{
    fsi_lstsq *l = g->l;
    const int64_t r = l->rank;
    int broken = 0;
    FSI_TRY(make_gram(g));
    DENSE(&l->A, potrf, r, g->G, r);
    DENSE(&l->A, wait, &broken);
    double failed = broken;
    FSI_TRY(fsi_operand_share_host(&l->A, &failed, 1));
    if (failed != 0) return FS_OK; /* columns of A N are dependent: A's small values are rounding errors */
    FSI_TRY(l->N ? refine_vectors(l, g->G, g->T, g->scales) : refine_triangle(l, g->G));
    FSI_TRY(l->N ? fsi_operand_share(&l->A, l->N, l->n * r) : fsi_operand_share(&l->A, l->L, l->n * l->n));
    if (l->N) FSI_TRY(fsi_operand_share_host(&l->A, l->values, r));
    DENSE(&l->A, wait, NULL);
    l->is_refined = 1;
    return FS_OK;
}

fs_result fsi_lstsq_refine(fsi_lstsq *l, int by_inverse)
{
    gram g = {.l = l, .by_inverse = by_inverse};
    if (!l->rank) return FS_OK;
    const fs_result result = lstsq_refine_refine(&g);
    fsi_operand_free(&l->A, g.G);
    fsi_operand_free(&l->A, g.T);
    fsi_operand_free(&l->A, g.scales);
    fsi_rows_close(&g.rows);
    return result;
}
