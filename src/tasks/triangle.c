/* triangle.c - see triangle.h. */
#include "tasks/triangle.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Sums of several independent chains, which compilers vectorize without reordering anything. */
static double dot(int64_t n, const double *x, const double *y)
{
    double sum[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++) sum[l] += x[i + l] * y[i + l];
    for (; i < n; i++) sum[0] += x[i] * y[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* |x|, whatever the size of its elements. */
static double length(int64_t n, const double *x)
{
    double most = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    if (!(most > 0) || !isfinite(most)) return most;
    int exponent;
    frexp(most, &exponent);
    const double scale = ldexp(1, -exponent < DBL_MAX_EXP ? -exponent : DBL_MAX_EXP - 1);
    for (int64_t i = 0; i < n; i++) sum += x[i] * scale * (x[i] * scale);
    return sqrt(sum) / scale;
}

/* pivots ----------------------------------------------------------------------------------------------------- */

/* Turns column `at` of R, from its diagonal on, into (beta, v): the reflector I - tau v v' with v_0 = 1. */
static double reflect(int64_t count, double *x, double *tau)
{
    const double rest = length(count - 1, x + 1), alpha = x[0], size = hypot(alpha, rest);
    *tau = 0;
    if (rest == 0) return alpha;
    const double beta = alpha > 0 ? -size : size;
    *tau = (beta - alpha) / beta;
    for (int64_t i = 1; i < count; i++) x[i] /= alpha - beta;
    return beta;
}

static void triangle_exchange(int64_t n, double *R, int64_t a, int64_t b, int64_t *pivots, double *now, double *exact)
{
    if (a == b) return;
    for (int64_t i = 0; i < n; i++) {
        const double x = R[i + a * n];
        R[i + a * n] = R[i + b * n];
        R[i + b * n] = x;
    }
    const int64_t p = pivots[a];
    pivots[a] = pivots[b];
    pivots[b] = p;
    now[b] = now[a]; /* column a is done after this step */
    exact[b] = exact[a];
}

void fsi_triangle_pivot(int64_t n, double *R, int64_t *pivots, double *work)
{
    double *now = work, *exact = work + n; /* lengths of what is left of columns: updated, and when last computed */
    for (int64_t j = 0; j < n; j++) {
        pivots[j] = j;
        now[j] = exact[j] = length(n, R + j * n);
    }
    for (int64_t at = 0; at < n; at++) {
        int64_t best = at;
        for (int64_t j = at + 1; j < n; j++)
            if (now[j] > now[best]) best = j;
        triangle_exchange(n, R, at, best, pivots, now, exact);
        double tau, *v = R + at + at * n;
        const double beta = reflect(n - at, v, &tau);
        v[0] = 1;
        for (int64_t j = at + 1; j < n; j++) {
            double *x = R + at + j * n;
            const double t = tau != 0 ? tau * dot(n - at, v, x) : 0;
            for (int64_t i = 0; i < n - at && t != 0; i++) x[i] -= t * v[i];
            if (now[j] == 0) continue;
            /* LAPACK's rule (dlaqp2): the length is updated until half of its digits are gone, then recomputed. */
            const double share = fabs(x[0]) / now[j], left = fmax(0.0, (1 - share) * (1 + share));
            const double kept = left * (now[j] / exact[j]) * (now[j] / exact[j]);
            if (kept > 1.5e-8) now[j] *= sqrt(left);
            else now[j] = exact[j] = length(n - at - 1, x + 1);
        }
        v[0] = beta;
        for (int64_t i = 1; i < n - at; i++) v[i] = 0;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = n - 1; j >= i && R[i + i * n] < 0; j--) R[i + j * n] = -R[i + j * n];
}

int64_t fsi_triangle_rank(int64_t n, const double *R, double rcond)
{
    int64_t rank = 0;
    while (rank < n && R[rank + rank * n] > rcond * R[0]) rank++;
    return rank;
}
