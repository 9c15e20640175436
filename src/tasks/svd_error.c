/* svd_error.c - |A_c - U diag(s) V'|_F, known or estimated. */
#include <math.h>

#include "base/math.h"
#include "tasks/svd.h"

/* The normal quantile of 0.995: a confidence of 0.99 in both sides together. */
static const double QUANTILE = 2.5758293035489004;
/* The error of sums of squares in f64, relative to |A|_F^2. */
static const double ROUNDING = 1e-12;

/* Chi-squared with v degrees of freedom over v, at the normal quantile z (Wilson and Hilferty). */
static double chi_squared(double v, double z)
{
    const double root = 1 - 2 / (9 * v) + z * sqrt(2 / (9 * v));
    return root > 0 ? root * root * root : 0;
}

/* With p independent rows of signs, |T E|_F^2 has the mean |E|_F^2 and a spread as of chi-squared with
 * p (sum e_j^2)^2 / sum e_j^4 degrees of freedom, e_j the singular values of E; The off-diagonal entries of K = (T E)(T
 * E)' give the fourth powers, with an error for which a factor of 1.5 is allowed.  One e_j alone gives p. */
fs_result fsi_svd_probe_error(fsi_svd *t)
{
    const int64_t n = t->A.n, p = FSI_SVD_PROBES;
    double square = 0, off = 0;
    DENSE(&t->A, gemm, 1, 0, p, p, n, 1.0, t->Tt, n, t->Tt, n, 0.0, t->small, p);
    DENSE(&t->A, fetch, t->small, (size_t)(p * p) * sizeof *t->host, t->host);
    for (int64_t a = 0; a < p; a++) {
        square += t->host[a + a * p];
        for (int64_t b = 0; b < a; b++) off += t->host[a + b * p] * t->host[a + b * p];
    }
    const double fourth = 1.5 * off * 2 * (double)p / (double)(p - 1);
    const double freedom = fourth > 0 ? fmax((double)p, (double)p * square * square / fourth) : (double)p;
    const double slack = 16 * fsi_operand_unit(&t->A) * t->raw_norm;
    t->error = sqrt(square);
    t->low = fmax(0, t->error / sqrt(chi_squared(freedom, QUANTILE)) - slack);
    t->high = t->error / sqrt(chi_squared(freedom, -QUANTILE)) + slack;
    return FS_OK;
}

/* |A_c - A_c V V'|^2 = |A_c|^2 - |A_c V|^2; the probes where that is too small a difference. */
fs_result fsi_svd_range_error(fsi_svd *t)
{
    const int64_t n = t->A.n, r = t->r, p = FSI_SVD_PROBES;
    double square = 0;
    if (t->all) { /* A_c is its decomposition: the singular values that were not asked for are the error */
        for (int64_t j = t->t - 1; j >= r; j--) square += t->D[j] * t->D[j];
        t->error = t->low = t->high = sqrt(square);
        return FS_OK;
    }
    for (int64_t j = r - 1; j >= 0; j--) square += t->s[j] * t->s[j];
    const double apart = t->norm * t->norm - square, rounding = ROUNDING * t->raw_norm * t->raw_norm;
    if (apart >= 1e3 * rounding && rounding > 0) {
        t->error = sqrt(apart);
        t->low = sqrt(apart - rounding);
        t->high = sqrt(apart + rounding);
        return FS_OK;
    }
    DENSE(&t->A, gemm, 1, 0, r, p, n, 1.0, t->W, n, t->Tt, n, 0.0, t->X, r);
    DENSE(&t->A, gemm, 0, 0, n, p, r, -1.0, t->W, n, t->X, r, 1.0, t->Tt, n);
    return fsi_svd_probe_error(t);
}
