/* svd_range.c - singular values from a basis P of A's rows: those of the sketch S A, sharpened by power steps.
 *
 * With orthonormal P and D the singular values of S A P, Q1 = A P D^-1 is nearly orthonormal (S keeps lengths), and as
 * P is orthonormal, rounding in A P is that of A.  From the Gram matrix G = Q1'Q1 = L L' follow the singular values of
 * A P: D L = V_R s U_R', V = P V_R, U = Q1 L^-T U_R, orthonormal to rounding for any condition number of A.  Where all
 * singular values are wanted, P has min(d, n) columns and this is A's own decomposition. */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/math.h"
#include "tasks/svd.h"

/* Pivots of a well-conditioned G, relative to the largest; eigenvalues of it that rounding leaves. */
static const double GOOD_PIVOT = 0.03, ROUNDED = 0x1p-50;
enum { ROUNDS = 6 };

static fs_matrix transposed(const fsi_svd *t, double *data, int64_t rows, int64_t cols)
{
    fs_matrix m = fs_col_major(data, rows, cols, FS_F64);
    m.memory = t->A.ctx->backend->memory;
    return m;
}

/* the basis ---------------------------------------------------------------------------------------------------- */

/* P and the first `count` of D are those of one rank. */
static fs_result share_basis(fsi_svd *t, int64_t count)
{
    FSI_TRY(fsi_operand_share(&t->A, t->P, t->A.n * t->l));
    return fsi_operand_share_host(&t->A, t->D, count);
}

/* P = the first l right singular vectors of Y, D = its singular values. */
static fs_result basis_of_sketch(fsi_svd *t)
{
    const int64_t n = t->A.n, k = t->k;
    fsi_operand_progress(&t->A, 0.2, "basis");
    if (n > k) {
        const fs_matrix Y = transposed(t, t->Yt, n, k);
        fs_matrix rows = Y;
        rows.rows = k, rows.cols = n, rows.row_stride = n, rows.col_stride = 1;
        DENSE(&t->A, widen, &rows, t->W, n);
        DENSE(&t->A, svd, n, k, t->W, n, t->D, t->Vt);
        rows.data = t->W;
        rows.rows = t->l;
        DENSE(&t->A, widen, &rows, t->P, n);
        return share_basis(t, k);
    }
    const fs_matrix Y = transposed(t, t->Yt, n, k), V = transposed(t, t->Vt, t->l, n);
    fs_matrix from = V;
    from.col_stride = n;
    DENSE(&t->A, widen, &Y, t->W, k);
    DENSE(&t->A, svd, k, n, t->W, k, t->D, t->Vt);
    DENSE(&t->A, widen, &from, t->P, n);
    return share_basis(t, n);
}

/* One Cholesky QR of P: *good where G is well-conditioned to `least`, its smallest pivot over its largest. */
static fs_result cholesky_step(fsi_svd *t, double least, int *good)
{
    const int64_t n = t->A.n, l = t->l;
    int info;
    DENSE(&t->A, gemm, 1, 0, l, l, n, 1.0, t->P, n, t->P, n, 0.0, t->G, l);
    DENSE(&t->A, potrf, l, t->G, l);
    DENSE(&t->A, diagonal, l, t->G, l, t->small, 0.0);
    DENSE(&t->A, fetch, t->small, (size_t)l * sizeof *t->host, t->host);
    DENSE(&t->A, wait, &info);
    double low = INFINITY, high = 0;
    for (int64_t j = 0; j < l; j++) low = fmin(low, t->host[j]), high = fmax(high, t->host[j]);
    *good = info == 0 && low >= least * high;
    if (*good) DENSE(&t->A, trsm, 0, 1, n, l, t->G, l, t->P, n);
    return FS_OK;
}

/* Orthonormal columns in P, by Cholesky QR twice where P's condition allows, otherwise by singular vectors. */
static fs_result orthonormalise(fsi_svd *t)
{
    int good;
    FSI_TRY(cholesky_step(t, 1e-5, &good));
    if (good) FSI_TRY(cholesky_step(t, 0.5, &good));
    if (!good) DENSE(&t->A, svd, t->A.n, t->l, t->P, t->A.n, t->host, t->Vt);
    return FS_OK;
}

/* P = the right singular vectors of Y restricted to the columns of P, D = the singular values. */
static fs_result rotate(fsi_svd *t)
{
    const int64_t n = t->A.n, l = t->l, k = t->k;
    DENSE(&t->A, gemm, 1, 0, k, l, n, 1.0, t->Yt, n, t->P, n, 0.0, t->W, k);
    DENSE(&t->A, svd, k, l, t->W, k, t->D, t->Vt);
    DENSE(&t->A, gemm, 0, 1, n, l, l, 1.0, t->P, n, t->Vt, l, 0.0, t->Q, n);
    double *const swap = t->P;
    t->P = t->Q;
    t->Q = swap;
    return share_basis(t, l);
}

/* P = orth(A_c'A_c P).  Columns are singular vectors of Y before it and have length 1 after it, so that small singular
 * values are not lost in the rounding of large ones, which A'A squares. */
static fs_result power_step(fsi_svd *t)
{
    const int64_t n = t->A.n, l = t->l;
    FSI_TRY(fsi_svd_normal(t));
    DENSE(&t->A, squares, n, l, t->Q, n, t->small);
    DENSE(&t->A, fetch, t->small, (size_t)l * sizeof *t->D, t->D);
    memset(t->host, 0, (size_t)(l * l) * sizeof *t->host);
    for (int64_t j = 0; j < l; j++) t->host[j + j * l] = t->D[j] > 0 ? 1 / sqrt(t->D[j]) : 0;
    DENSE(&t->A, send, t->host, (size_t)(l * l) * sizeof *t->host, t->M);
    DENSE(&t->A, gemm, 0, 0, n, l, l, 1.0, t->Q, n, t->M, l, 0.0, t->P, n);
    FSI_TRY(orthonormalise(t));
    return rotate(t);
}

/* singular values ---------------------------------------------------------------------------------------------- */

/* How many of D count: above the rounding of n sums in f64, and large enough to divide by. */
static int64_t count_of(const fsi_svd *t, int64_t most)
{
    const double least = fmax(t->D[0] * (double)fsi_max(t->A.n, 16) * 0x1p-52, 0x1p-960);
    int64_t count = 0;
    while (count < most && t->D[count] > least) count++;
    return count;
}

/* G = the lower triangle of Q1'Q1, zeros above it; E = all of it.  Q1' = R' kept, or one read. */
static fs_result gram_of(fsi_svd *t)
{
    const int64_t l = t->l, m = t->t, n = t->A.n;
    DENSE(&t->A, fetch, t->Vr, (size_t)(l * m) * sizeof *t->host, t->host);
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < l; i++) t->host[i + j * l] /= t->D[j];
    DENSE(&t->A, send, t->host, (size_t)(l * m) * sizeof *t->host, t->R);
    DENSE(&t->A, zero, t->G, (size_t)(m * m) * sizeof *t->G);
    if (t->kept) {
        FSI_TRY(fsi_svd_kept(t, m, t->R, fsi_svd_gram));
    } else {
        DENSE(&t->A, gemm, 0, 0, n, m, l, 1.0, t->P, n, t->R, l, 0.0, t->Q, n);
        FSI_TRY(fsi_svd_product(t, m, t->Q, fsi_svd_gram));
    }
    FSI_TRY(fsi_operand_sum(&t->A, t->G, m * m));
    const fs_matrix all = transposed(t, t->E, m, m);
    DENSE(&t->A, narrow, t->G, m, 1, &all);
    return FS_OK;
}

/* Vr's first m columns = those times the left singular vectors of F, m x m, whose singular values are D, descending;
 * Vt gets the right ones. */
static fs_result turn(fsi_svd *t, double *F)
{
    const int64_t l = t->l, m = t->t;
    DENSE(&t->A, svd, m, m, F, m, t->D, t->Vt);
    DENSE(&t->A, gemm, 0, 0, l, m, m, 1.0, t->Vr, l, F, m, 0.0, t->W, l);
    const fs_matrix turned = transposed(t, t->Vr, l, m);
    fs_matrix as_rows = turned; /* narrow: to(i, j) = from[j + i ld] */
    as_rows.rows = m, as_rows.cols = l, as_rows.row_stride = l, as_rows.col_stride = 1;
    DENSE(&t->A, narrow, t->W, l, 0, &as_rows);
    FSI_TRY(fsi_operand_share_host(&t->A, t->D, m));
    FSI_TRY(fsi_operand_share(&t->A, t->Vr, l * m));
    return fsi_operand_share(&t->A, t->Vt, m * m);
}

/* The factor of a well-conditioned G: Vt = U_R'L^-1, D, Vr; *good 0 where it is not. */
static fs_result by_cholesky(fsi_svd *t, int *good)
{
    const int64_t m = t->t;
    const size_t bytes = (size_t)(m * m) * sizeof *t->host;
    int info;
    DENSE(&t->A, potrf, m, t->G, m);
    DENSE(&t->A, fetch, t->G, bytes, t->host);
    DENSE(&t->A, wait, &info);
    double low = INFINITY, high = 0;
    for (int64_t j = 0; j < m; j++) low = fmin(low, t->host[j + j * m]), high = fmax(high, t->host[j + j * m]);
    double fits = info == 0 && low >= GOOD_PIVOT * high && isfinite(high);
    FSI_TRY(fsi_operand_share_host(&t->A, &fits, 1));
    *good = fits != 0;
    if (!*good) return FS_OK;
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < m; i++) t->host[i + j * m] = i < j ? 0 : t->host[i + j * m] * t->D[i];
    DENSE(&t->A, send, t->host, bytes, t->M);
    FSI_TRY(turn(t, t->M));
    DENSE(&t->A, trsm, 0, 0, m, m, t->G, m, t->Vt, m);
    return FS_OK;
}

/* A better D and Vr where S A was not accurate enough, as sums in f32 are for condition numbers above 1e6: by the
 * eigenvectors of G = E diag(values) E', which give D to half of f64's digits. */
static fs_result svd_range_refine(fsi_svd *t)
{
    const int64_t m = t->t;
    const size_t bytes = (size_t)(m * m) * sizeof *t->host;
    double *values = t->host + t->l * t->l;
    DENSE(&t->A, svd, m, m, t->E, m, values, t->Vt);
    DENSE(&t->A, fetch, t->E, bytes, t->host);
    for (int64_t j = 0; j < m; j++) {
        const double root = sqrt(fmax(values[j], values[0] * ROUNDED));
        for (int64_t i = 0; i < m; i++) t->host[i + j * m] *= root * t->D[i];
    }
    DENSE(&t->A, send, t->host, bytes, t->M);
    FSI_TRY(turn(t, t->M));
    t->t = count_of(t, m);
    return FS_OK;
}

/* D, Vr and Vt of the basis P. */
static fs_result whiten(fsi_svd *t)
{
    int good = 0;
    DENSE(&t->A, zero, t->Vr, (size_t)(t->l * t->l) * sizeof *t->Vr);
    DENSE(&t->A, diagonal, t->l, t->Vr, t->l, NULL, 1.0);
    t->t = count_of(t, t->l);
    for (int round = 0; round < ROUNDS && t->t > 0; round++) {
        fsi_operand_progress(&t->A, 0.7, "singular values");
        FSI_TRY(gram_of(t));
        FSI_TRY(by_cholesky(t, &good));
        if (good) return FS_OK;
        FSI_TRY(svd_range_refine(t));
    }
    return t->t == 0 ? FS_OK
                     : fs_fail(FS_EBACKEND, "%s: no orthonormal basis after %d Gram matrices", t->A.who, ROUNDS);
}

static fs_result keep(fsi_svd *t, int64_t m, int64_t row0, int64_t rows, double *X)
{
    fs_matrix from = fs_row_major(X, rows, m, FS_F64);
    from.memory = t->A.ctx->backend->memory;
    DENSE(&t->A, widen, &from, t->kept + row0 * m, m);
    return FS_OK;
}

/* U' = diag(sign) U_R'L^-1 Q1', with the R (or Q = P R) of Q1 that gram_of left. */
static fs_result put_rows_of_u(fsi_svd *t, const double *sign)
{
    const int64_t m = t->t, r = t->r;
    DENSE(&t->A, fetch, t->Vt, (size_t)(m * m) * sizeof *t->host, t->host);
    double *Z = t->host + m * m;
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < r; i++) Z[i + j * r] = i < m ? sign[i] * t->host[i + j * m] : 0;
    DENSE(&t->A, send, Z, (size_t)(r * m) * sizeof *Z, t->M);
    return t->kept ? fsi_svd_kept(t, m, t->R, fsi_svd_put_u) : fsi_svd_product(t, m, t->Q, fsi_svd_put_u);
}

fs_result fsi_svd_range(fsi_svd *t)
{
    const int64_t l = t->l;
    double *const sign = t->host + 2 * l * l;
    FSI_TRY(fsi_svd_first_read(t, NULL));
    FSI_TRY(basis_of_sketch(t));
    /* Sums in f32 give the rows of a wide A to f32's digits only: with all of them wanted, a power step in f64. */
    const int steps = t->all ? t->S && t->A.n > l : t->options.power_steps;
    for (int q = 0; q < steps; q++) {
        fsi_operand_progress(&t->A, 0.2 + 0.4 * q / steps, "power steps");
        FSI_TRY(power_step(t));
    }
    if (t->kept) FSI_TRY(fsi_svd_product(t, l, t->P, keep));
    FSI_TRY(whiten(t));
    for (int64_t j = 0; j < t->r; j++) t->s[j] = j < t->t ? t->D[j] : 0;
    DENSE(&t->A, gemm, 0, 0, t->A.n, t->r, l, 1.0, t->P, t->A.n, t->Vr, l, 0.0, t->W, t->A.n);
    FSI_TRY(fsi_svd_put_v(t, sign));
    if (t->U) FSI_TRY(t->t ? put_rows_of_u(t, sign) : fsi_svd_zero_u(t));
    return fsi_svd_range_error(t);
}
