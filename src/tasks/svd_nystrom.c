/* svd_nystrom.c - singular values by a single read of A: generalised Nystrom (Nakatsukasa, arXiv 2009.11392).
 *
 * C = A Omega and S A come from the same read, and A ~ C (S C)^+ S A.  With S C = U1 D V1', truncated where D is 0 to
 * rounding, that is Q1 H with Q1 = C V1 D^-1, nearly orthonormal as S keeps lengths, and H = U1'S A: the
 * pseudo-inverse is never formed.  Then G = Q1'Q1 = E diag(values) E', F = E diag(values)^1/2, the singular values of
 * H'F = V diag(s) U_R', and U = Q1 E diag(values)^-1/2 U_R. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "tasks/svd.h"

/* S C = U1 D V1': R = V1 D^-1, l x t, and Q = H' = (S A)'U1, n x t. */
static fs_result factor_core(fsi_svd *t)
{
    const int64_t n = t->A.n, l = t->l, k = t->k;
    fs_matrix C = fs_col_major(t->Ct, l, k, FS_F64);
    C.memory = t->A.ctx->backend->memory;
    DENSE(&t->A, widen, &C, t->W, k);
    DENSE(&t->A, svd, k, l, t->W, k, t->D, t->Vt);
    FSI_TRY(fsi_operand_share(&t->A, t->W, k * l));
    FSI_TRY(fsi_operand_share_host(&t->A, t->D, l));
    FSI_TRY(fsi_operand_share(&t->A, t->Vt, l * l));
    /* A Gram matrix of C itself loses values below the square root of f64's rounding. */
    const double rounding = t->kept ? (double)fsi_max(l, 16) * 0x1p-52 : 1e-7, least = t->D[0] * rounding;
    t->t = 0;
    while (t->t < l && t->D[t->t] > fmax(least, 0x1p-960)) t->t++;
    DENSE(&t->A, fetch, t->Vt, (size_t)(l * l) * sizeof *t->host, t->host);
    double *R = t->host + l * l;
    for (int64_t j = 0; j < t->t; j++)
        for (int64_t i = 0; i < l; i++) R[i + j * l] = t->host[j + i * l] / t->D[j];
    DENSE(&t->A, send, R, (size_t)(l * t->t) * sizeof *R, t->R);
    if (t->t) DENSE(&t->A, gemm, 0, 0, n, t->t, k, 1.0, t->Yt, n, t->W, k, 0.0, t->Q, n);
    return FS_OK;
}

/* E = Q1'Q1, t x t. */
static fs_result gram(fsi_svd *t)
{
    const int64_t l = t->l, m = t->t;
    fs_matrix all = fs_col_major(t->E, l, l, FS_F64);
    all.memory = t->A.ctx->backend->memory;
    if (t->kept) {
        DENSE(&t->A, zero, t->G, (size_t)(m * m) * sizeof *t->G);
        FSI_TRY(fsi_svd_kept(t, m, t->R, fsi_svd_gram));
        FSI_TRY(fsi_operand_sum(&t->A, t->G, m * m));
        all.rows = all.cols = all.col_stride = m;
        DENSE(&t->A, narrow, t->G, m, 1, &all);
        return FS_OK;
    }
    DENSE(&t->A, narrow, t->G, l, 1, &all);
    DENSE(&t->A, gemm, 0, 0, l, m, l, 1.0, t->E, l, t->R, l, 0.0, t->M, l);
    DENSE(&t->A, gemm, 1, 0, m, m, l, 1.0, t->R, l, t->M, l, 0.0, t->E, m);
    return FS_OK;
}

/* W = H'F, n x l, and Vr = F^+, l x t; columns of F beyond the accuracy of E are 0. *rank: the number of the others. */
static fs_result join(fsi_svd *t, int64_t *rank)
{
    const int64_t n = t->A.n, l = t->l, m = t->t;
    double *values = t->host + 2 * l * l, *F = t->host + l * l, *E = t->host;
    *rank = 0;
    DENSE(&t->A, zero, t->W, (size_t)(n * l) * sizeof *t->W);
    if (!m) return FS_OK;
    FSI_TRY(gram(t));
    DENSE(&t->A, svd, m, m, t->E, m, values, t->Vt);
    FSI_TRY(fsi_operand_share(&t->A, t->E, m * m));
    FSI_TRY(fsi_operand_share_host(&t->A, values, m));
    while (*rank < m && values[*rank] > values[0] * 1e-10) ++*rank;
    DENSE(&t->A, fetch, t->E, (size_t)(m * m) * sizeof *E, E);
    memset(F, 0, (size_t)(l * m) * sizeof *F);
    for (int64_t j = 0; j < *rank; j++)
        for (int64_t i = 0; i < m; i++) F[j + i * l] = E[i + j * m] / sqrt(values[j]);
    DENSE(&t->A, send, F, (size_t)(l * m) * sizeof *F, t->Vr);
    memset(F, 0, (size_t)(l * m) * sizeof *F);
    for (int64_t j = 0; j < *rank; j++)
        for (int64_t i = 0; i < m; i++) F[i + j * m] = E[i + j * m] * sqrt(values[j]);
    DENSE(&t->A, send, F, (size_t)(l * m) * sizeof *F, t->M);
    DENSE(&t->A, gemm, 0, 0, n, l, m, 1.0, t->Q, n, t->M, m, 0.0, t->W, n);
    return FS_OK;
}

/* M = Z = diag(sign) U_R'F^+, r x t. */
static fs_result map_of_u(fsi_svd *t, int64_t rank, const double *sign)
{
    const int64_t l = t->l, m = t->t, r = t->r;
    DENSE(&t->A, gemm, 0, 0, r, m, l, 1.0, t->Vt, l, t->Vr, l, 0.0, t->M, r);
    DENSE(&t->A, fetch, t->M, (size_t)(r * m) * sizeof *t->host, t->host);
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < r; i++) t->host[i + j * r] *= i < rank ? sign[i] : 0;
    DENSE(&t->A, send, t->host, (size_t)(r * m) * sizeof *t->host, t->M);
    return FS_OK;
}

/* Tt -= V diag(s) U'T', where U'T' = Z R'Omega'(T A)'. */
static fs_result probe(fsi_svd *t)
{
    const int64_t n = t->A.n, l = t->l, m = t->t, r = t->r, p = FSI_SVD_PROBES;
    if (m) {
        DENSE(&t->A, gemm, 1, 0, l, p, n, 1.0, t->P, n, t->Tt, n, 0.0, t->X, l);
        DENSE(&t->A, gemm, 1, 0, m, p, l, 1.0, t->R, l, t->X, l, 0.0, t->O, m);
        DENSE(&t->A, gemm, 0, 0, r, p, m, 1.0, t->M, r, t->O, m, 0.0, t->X, r);
        DENSE(&t->A, send, t->s, (size_t)r * sizeof *t->s, t->small);
        DENSE(&t->A, scale_rows, r, p, t->X, r, t->small);
        DENSE(&t->A, gemm, 0, 0, n, p, r, -1.0, t->W, n, t->X, r, 1.0, t->Tt, n);
    }
    return fsi_svd_probe_error(t);
}

fs_result fsi_svd_nystrom(fsi_svd *t)
{
    const int64_t n = t->A.n, l = t->l;
    double *const sign = t->host + 2 * l * l + l;
    int64_t rank;
    FSI_TRY(fsi_operand_signs(&t->A, t->A.n, t->l, t->options.seed + 2 * UINT64_C(0x9E3779B97F4A7C15), t->G, t->P));
    FSI_TRY(fsi_svd_first_read(t, t->P));
    fsi_operand_progress(&t->A, 0.7, "singular values");
    FSI_TRY(factor_core(t));
    FSI_TRY(join(t, &rank));
    DENSE(&t->A, svd, n, l, t->W, n, t->D, t->Vt);
    FSI_TRY(fsi_operand_share_host(&t->A, t->D, l));
    FSI_TRY(fsi_operand_share(&t->A, t->Vt, l * l));
    for (int64_t j = 0; j < t->r; j++) t->s[j] = j < rank ? t->D[j] : 0;
    FSI_TRY(fsi_svd_put_v(t, sign));
    if (t->t) FSI_TRY(map_of_u(t, rank, sign));
    if (t->U) FSI_TRY(t->t ? fsi_svd_kept(t, t->t, t->R, fsi_svd_put_u) : fsi_svd_zero_u(t));
    return probe(t);
}
