/* lstsq_error.c - norms for the backward error of least squares: |(A'A + shift^2 D^2)^-1/2 g| by the factor for A.
 *
 * With D = diag(values) and T = D^-1 L, A'A + shift^2 D^2 is D (T T' + shift^2 I) D, and T T' is made once.  Its Cholesky
 * factor is good to the rounding unit times the condition of T T' + shift^2 I, which shift^2 bounds too; where that is
 * not enough, [T'; shift I] gets a triangular factor of its own. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "tasks/lstsq.h"

/* Relative error of a squared norm that a Cholesky factor may leave. */
static const double ROUGH = 0.1;

/* normal = D^-1 L L'D^-1 and behind it 1 / D. */
static fs_result make_normal(fsi_lstsq *l)
{
    const int64_t n = l->n;
    const fs_matrix columns = {l->L, n, n, n, 1, 0, 0, FS_F64, l->A.ctx->backend->memory};
    double *T, *reciprocals = l->scratch;
    fsi_operand_free(&l->A, l->normal);
    FSI_TRY(fsi_operand_alloc(&l->A, n * n + n, &l->normal));
    FSI_TRY(fsi_operand_alloc(&l->A, n * n, &T));
    for (int64_t j = 0; j < n; j++) reciprocals[j] = 1 / l->values[j];
    double *D = l->normal + n * n;
    fs_result result = l->A.dense->send(l->A.handle, reciprocals, (size_t)n * sizeof *D, D);
    if (result == FS_OK) result = l->A.dense->widen(l->A.handle, &columns, T, n);
    if (result == FS_OK) result = l->A.dense->scale_rows(l->A.handle, n, n, T, n, D);
    if (result == FS_OK) result = l->A.dense->zero(l->A.handle, l->normal, (size_t)(n * n) * sizeof *D);
    if (result == FS_OK) result = l->A.dense->syrk(l->A.handle, n, n, T, n, 0.0, l->normal, n);
    fsi_operand_free(&l->A, T);
    return result;
}

fs_result fsi_lstsq_measure_columns(fsi_lstsq *l)
{
    const int64_t n = l->n;
    const fs_matrix turned = {l->L, n, n, 1, n, 0, 0, FS_F64, l->A.ctx->backend->memory};
    double *R, *squares;
    FSI_TRY(fsi_operand_alloc(&l->A, n * n + n, &R));
    squares = R + n * n;
    fs_result result = l->A.dense->widen(l->A.handle, &turned, R, n);
    if (result == FS_OK) result = l->A.dense->squares(l->A.handle, n, n, R, n, squares);
    if (result == FS_OK) result = l->A.dense->fetch(l->A.handle, squares, (size_t)n * sizeof *squares, l->values);
    for (int64_t j = 0; j < n; j++) l->values[j] = sqrt(l->values[j]);
    fsi_operand_free(&l->A, R);
    FSI_TRY(result);
    FSI_TRY(fsi_operand_share_host(&l->A, l->values, n));
    return make_normal(l);
}

/* G, n x n, with g = D P's columns: P becomes (T T' + shift^2 I)^-1/2 g by a Cholesky factor.  *good: it had one. */
static fs_result divide_by_cholesky(fsi_lstsq *l, double shift, int64_t count, double *G, int *good)
{
    const int64_t n = l->n;
    const fs_matrix columns = {l->normal, n, n, n, 1, 0, 0, FS_F64, l->A.ctx->backend->memory};
    int broken;
    DENSE(&l->A, widen, &columns, G, n);
    DENSE(&l->A, diagonal, n, G, n, NULL, shift * shift);
    DENSE(&l->A, potrf, n, G, n);
    DENSE(&l->A, scale_rows, n, count, l->P, n, l->normal + n * n);
    DENSE(&l->A, trsm, 1, 0, n, count, G, n, l->P, n);
    DENSE(&l->A, wait, &broken);
    *good = broken == 0;
    return FS_OK;
}

/* The same by the triangular factor of [T'; shift I], 2 n x n in X. */
static fs_result divide_by_triangle(fsi_lstsq *l, double shift, int64_t count, double *X)
{
    const int64_t n = l->n;
    const fs_matrix columns = {l->L, n, n, n, 1, 0, 0, FS_F64, l->A.ctx->backend->memory};
    double *F = X + 2 * n * n; /* T, then the factor */
    const fs_matrix turned = {F, n, n, 1, n, 0, 0, FS_F64, l->A.ctx->backend->memory};
    DENSE(&l->A, zero, X, (size_t)(2 * n * n) * sizeof *X);
    DENSE(&l->A, widen, &columns, F, n);
    DENSE(&l->A, scale_rows, n, n, F, n, l->normal + n * n);
    DENSE(&l->A, widen, &turned, X, 2 * n);
    DENSE(&l->A, diagonal, n, X + n, 2 * n, NULL, shift);
    DENSE(&l->A, qr, 2 * n, n, X, 2 * n, F);
    DENSE(&l->A, scale_rows, n, count, l->P, n, l->normal + n * n);
    DENSE(&l->A, trsm, 1, 0, n, count, F, n, l->P, n);
    return l->A.dense->wait(l->A.handle, NULL);
}

/* Columns of P, `count` of them from v in host memory, become (A'A + shift^2 D^2)^-1/2 times them, up to an orthogonal
 * factor. */
static fs_result divide_by_shifted(fsi_lstsq *l, double shift, const double *v, int64_t count)
{
    const int64_t n = l->n;
    const size_t bytes = (size_t)(n * count) * sizeof *v;
    const double least = shift * shift + pow(l->told.condition, -2);
    double *room;
    int good = 0;
    DENSE(&l->A, send, v, bytes, l->P);
    if (0x1p-53 * (double)n * (1 + shift * shift) <= ROUGH * least) {
        FSI_TRY(fsi_operand_alloc(&l->A, n * n, &room));
        const fs_result result = divide_by_cholesky(l, shift, count, room, &good);
        fsi_operand_free(&l->A, room);
        FSI_TRY(result);
        if (good) return FS_OK;
        DENSE(&l->A, send, v, bytes, l->P);
    }
    FSI_TRY(fsi_operand_alloc(&l->A, 3 * n * n, &room));
    const fs_result result = divide_by_triangle(l, shift, count, room);
    fsi_operand_free(&l->A, room);
    return result;
}

/* The norms of all right-hand sides with shifts from `least` to twice that, which are marked as done by a shift of
 * infinity. */
static fs_result norms_of_group(fsi_lstsq *l, double least, double *shifts, const double *g, double *norms)
{
    const int64_t n = l->n;
    const size_t bytes = (size_t)n * sizeof *g;
    double *v = l->scratch;
    int64_t count = 0;
    for (int64_t c = 0; c < l->m; c++)
        if (shifts[c] <= 2 * least) memcpy(v + count++ * n, g + c * n, bytes);
    FSI_TRY(divide_by_shifted(l, least, v, count));
    DENSE(&l->A, fetch, l->P, (size_t)count * bytes, v);
    for (int64_t c = 0; c < l->m; c++) {
        if (!(shifts[c] <= 2 * least)) continue;
        for (int64_t i = 0; i < n; i++) norms[c] = hypot(norms[c], v[i]);
        shifts[c] = INFINITY;
        v += n;
    }
    return FS_OK;
}

static fs_result norms_by_vectors(fsi_lstsq *l, const double *shifts, const double *g, double *norms)
{
    const int64_t n = l->n, m = l->m, r = l->rank;
    double *v = l->scratch;
    DENSE(&l->A, send, g, (size_t)(n * m) * sizeof *g, l->P);
    DENSE(&l->A, gemm, 1, 0, r, m, n, 1.0, l->N, n, l->P, n, 0.0, l->W, r);
    DENSE(&l->A, fetch, l->W, (size_t)(r * m) * sizeof *v, v);
    for (int64_t c = 0; c < m; c++)
        for (int64_t i = 0; i < r && isfinite(shifts[c]); i++)
            norms[c] = hypot(norms[c], v[c * r + i] / hypot(l->values[i], shifts[c]));
    return FS_OK;
}

fs_result fsi_lstsq_shifted_norms(fsi_lstsq *l, double *shifts, const double *g, double *norms)
{
    memset(norms, 0, (size_t)l->m * sizeof *norms);
    if (!l->rank) return FS_OK;
    if (l->N) return norms_by_vectors(l, shifts, g, norms);
    for (;;) {
        double least = INFINITY;
        for (int64_t c = 0; c < l->m; c++) least = fmin(least, shifts[c]);
        if (!isfinite(least)) return FS_OK;
        FSI_TRY(norms_of_group(l, least, shifts, g, norms));
    }
}
