/* embedding.c - the embedding error to expect of a sketch.
 *
 * The error is that of the largest eigenvalue of (S Q)'(S Q), Q an orthonormal basis of n columns.  For a Gaussian S it
 * is (sqrt(k - 1) + sqrt(n))^2 / k - 1 + scale W, scale = (sqrt(k - 1) + sqrt(n)) (1 / sqrt(k - 1) + 1 / sqrt(n))^1/3 / k
 * and W of Tracy and Widom's distribution of real matrices (Johnstone, Annals of Statistics 29, 2001), which a shifted
 * gamma distribution approximates (Chiani, Journal of Multivariate Analysis 129, 2014).  tests/tasks/plan.c compares it
 * with draws.
 *
 * A sparse S has that error where no rows of A outweigh the others (measured: 0.92 to 1.00 of it at k = 2 n to 16 n).
 * Where n rows do, S Q is n columns of S, and the error is larger by a factor that grows with k / n and falls with kappa
 * and s. */
#include "tasks/embedding.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

#include "base/error.h"
#include "base/math.h"
#include "core/sketch.h"
#include "flashsketch_tasks.h"

enum { RATIOS = 7 };
static const double FIRST = 2,
                    COLUMNS = 64; /* k / n of the first column, each is twice the one before; n of the table */

struct fsi_concentrated {
    int64_t rows, kappa, nonzeros;         /* rows of a block, at most; kappa s */
    double mean[RATIOS], exceeded[RATIOS]; /* exceeded with probability 0.05 */
};

/* Means and 95th percentiles of the error over those of a dense Gaussian S, for k = 2, 4, 8, ..., 128 n and n = 64 scattered
 * unit rows of 2^20, M = ceil(k / rows): 600 draws each.  A factor below 1 is given as 1.  The better the later. */
static const fsi_concentrated table[] = {
    /* fast, in blocks of 64 and of 128 rows */
    {64, 1, 4, {1.02, 1.07, 1.14, 1.25, 1.39, 1.54, 1.77}, {1.10, 1.24, 1.34, 1.58, 1.82, 2.07, 2.64}},
    {128, 1, 4, {1.01, 1.06, 1.12, 1.23, 1.36, 1.53, 1.67}, {1.09, 1.21, 1.29, 1.50, 1.80, 2.05, 2.65}},
    /* default */
    {64, 1, 8, {1.00, 1.03, 1.09, 1.17, 1.30, 1.49, 1.65}, {1.04, 1.10, 1.27, 1.42, 1.65, 1.94, 2.38}},
    {128, 1, 8, {1.00, 1.01, 1.06, 1.13, 1.24, 1.40, 1.56}, {1.00, 1.07, 1.20, 1.36, 1.51, 1.77, 2.19}},
    /* kappa 2, s 4 */
    {128, 2, 8, {1.01, 1.00, 1.02, 1.09, 1.16, 1.27, 1.43}, {1.06, 1.03, 1.08, 1.21, 1.38, 1.58, 1.82}},
    /* high */
    {64, 2, 16, {1.00, 1.00, 1.02, 1.07, 1.14, 1.28, 1.42}, {1.00, 1.00, 1.08, 1.19, 1.38, 1.55, 1.87}},
    {128, 2, 16, {1.00, 1.00, 1.00, 1.04, 1.08, 1.18, 1.31}, {1.00, 1.00, 1.03, 1.11, 1.21, 1.36, 1.58}},
    /* gaussian */
    {64, 4, 32, {1.00, 1.00, 1.00, 1.01, 1.06, 1.14, 1.25}, {1.00, 1.00, 1.00, 1.07, 1.17, 1.30, 1.50}},
    {128, 4, 32, {1.00, 1.00, 1.00, 1.00, 1.03, 1.07, 1.16}, {1.00, 1.00, 1.00, 1.01, 1.08, 1.18, 1.34}},
};

const fsi_concentrated *fsi_concentrated_line(const fsi_def_spec *p)
{
    const fsi_concentrated *best = NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (p->M <= fsi_div_up(p->k, table[i].rows) && p->kappa >= fsi_min(p->M, table[i].kappa) &&
            p->kappa * p->s >= table[i].nonzeros)
            best = &table[i];
    return best;
}

double fsi_concentrated_factor(const fsi_concentrated *line, double k, double n, double tail)
{
    /* n columns as 64 at another k / n.  Up to k = 64 n, n = 8 to 256 (k <= 32 n there), measured means and 95th percentiles
     * are at most 6 % above this; at n = 8 they are below it.  Beyond the last column as between the last two. */
    const double at = fmax(0, log2(k / n * pow(n / COLUMNS, 2.0 / 3) / FIRST));
    const int i = (int)fmin(at, RATIOS - 2);
    const double mean = line->mean[i] + (at - i) * (line->mean[i + 1] - line->mean[i]);
    const double exceeded = line->exceeded[i] + (at - i) * (line->exceeded[i + 1] - line->exceeded[i]);
    return mean + tail * (exceeded - mean);
}

/* z with P(Z > z) = p for a standard normal Z, by bisection. */
static double normal_quantile(double p)
{
    double low = -40, high = 40;
    for (int i = 0; i < 80; i++) {
        const double middle = (low + high) / 2;
        if (0.5 * erfc(middle / sqrt(2)) > p) low = middle;
        else high = middle;
    }
    return low;
}

/* The gamma distribution's quantile by Wilson and Hilferty's cube. */
double fsi_tracy_widom_quantile(double p)
{
    static const double shape = 46.446, scale = 0.186054, shift = 9.84801;
    const double cube = 1 - 1 / (9 * shape) + normal_quantile(p) / (3 * sqrt(shape));
    return shape * cube * cube * cube * scale - shift;
}

static double error_of_columns(int64_t k, int64_t n, double w, double tail, const fsi_concentrated *line)
{
    const double a = sqrt((double)k - 1), b = sqrt((double)n), sum = a + b;
    const double gaussian = (sum * sum + w * sum * cbrt(1 / a + 1 / b)) / (double)k - 1;
    /* A single column has |chi^2_k / k - 1|, of mean sqrt(4 / (pi k)). */
    const double error = fmax(gaussian, sqrt(4 / (3.14159265358979 * (double)k)));
    return line ? error * fsi_concentrated_factor(line, (double)k, (double)n, tail) : error;
}

/* The formula falls with n for small n, where it bounds the error: (w / 6)^1.5 columns, two for a probability of 1e-6,
 * and some more with the factor.  So many columns have the error of fewer, too. */
double fsi_embedding_error(int64_t k, int64_t n, double w, double tail, const fsi_concentrated *line)
{
    enum { FALLING = 8 };
    double error = error_of_columns(k, n, w, tail, line);
    for (int64_t fewer = 1; fewer < fsi_min(n, FALLING); fewer++)
        error = fmax(error, error_of_columns(k, fewer, w, tail, line));
    return error;
}

double fs_ose_expected(int64_t k, int64_t n)
{
    const double edge = 1 + sqrt((double)n / (double)k);
    return edge * edge - 1;
}

/* Whether the errors are known, and of which line (NULL: those of a Gaussian S). */
static int line_of(const fsi_def_spec *p, int64_t n, int concentrated, const fsi_concentrated **line)
{
    *line = NULL;
    if (p->family == FSI_DEF_BLOCKROW) return 0;
    if (p->family == FSI_DEF_GAUSS || !concentrated) return 1;
    if (p->family == FSI_DEF_SRHT || (p->family == FSI_DEF_BLOCKPERM && p->shuffle == FSI_DEF_NONE)) return 0;
    if ((double)p->k < FIRST * (double)n) return 0;
    *line = fsi_concentrated_line(p);
    return *line != NULL;
}

fs_result fs_ose_errors(const fs_sketch *S, int64_t n, int concentrated, double *typical, double *exceeded)
{
    const fsi_concentrated *line;
    FSI_REQUIRE(S && typical && exceeded, "fs_ose_errors: %s is NULL", !S ? "S" : !typical ? "typical" : "exceeded");
    FSI_REQUIRE(n >= 1 && n <= INT32_MAX, "fs_ose_errors: n is %" PRId64 ", it must be from 1 to %d", n, INT32_MAX);
    FSI_REQUIRE(concentrated == 0 || concentrated == 1, "fs_ose_errors: concentrated is %d, it must be 0 or 1",
                concentrated);
    const int known = line_of(&S->spec, n, concentrated, &line);
    *typical = known ? fsi_embedding_error(S->spec.k, n, FSI_TRACY_WIDOM_MEAN, 0, line) : (double)NAN;
    *exceeded = known ? fsi_embedding_error(S->spec.k, n, fsi_tracy_widom_quantile(0.05), 1, line) : (double)NAN;
    return FS_OK;
}
