/* plan.c - k, kappa and s for a wanted embedding error.
 *
 * The error is that of the largest eigenvalue of (S Q)'(S Q), Q an orthonormal basis of n columns.  For a Gaussian S it
 * is (sqrt(k - 1) + sqrt(n))^2 / k - 1 + scale W, scale = (sqrt(k - 1) + sqrt(n)) (1 / sqrt(k - 1) + 1 / sqrt(n))^1/3 / k
 * and W of Tracy and Widom's distribution of real matrices (Johnstone, Annals of Statistics 29, 2001), which a shifted
 * gamma distribution approximates (Chiani, Journal of Multivariate Analysis 129, 2014).  tests/tasks/plan.c compares it
 * with draws.
 *
 * The default sketch has that error where no rows of A outweigh the others.  Where n rows do, its error is larger by a
 * factor that grows with k / n and falls with kappa; the factor below bounds it, as tests/tasks/plan.c
 * finds. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/math.h"
#include "flashsketch_tasks.h"

static const double PROBABILITY = 0.05;
enum { BLOCK = 64, MOST_KAPPA = 4, NONZEROS = 4, FEWEST_ROWS = 8 };

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

/* w with P(W > w) = p: the gamma distribution's quantile by Wilson and Hilferty's cube. */
static double tracy_widom_quantile(double p)
{
    static const double shape = 46.446, scale = 0.186054, shift = 9.84801;
    const double cube = 1 - 1 / (9 * shape) + normal_quantile(p) / (3 * sqrt(shape));
    return shape * cube * cube * cube * scale - shift;
}
static const double TRACY_WIDOM_MEAN = -1.2065;

static int64_t kappa_of(int64_t k, int coherent) { return coherent ? fsi_min(MOST_KAPPA, fsi_div_up(k, BLOCK)) : 1; }

/* What n dominant rows multiply the error by; `tail`: 0 for the mean, 1 for the error exceeded with probability 0.05,
 * in between and beyond in proportion to the logarithm of the probability. */
static double coherent_factor(double k, double n, double kappa, double tail)
{
    return 1 + 0.12 * (1 + tail) / kappa * log2(fmax(1, k / n));
}

/* w is Tracy and Widom's variable. */
static double error_of_columns(int64_t k, int64_t n, double w, double tail, int coherent)
{
    const double a = sqrt((double)k - 1), b = sqrt((double)n), sum = a + b;
    const double gaussian = (sum * sum + w * sum * cbrt(1 / a + 1 / b)) / (double)k - 1;
    /* A single column has |chi^2_k / k - 1|, of mean sqrt(4 / (pi k)). */
    const double error = fmax(gaussian, sqrt(4 / (3.14159265358979 * (double)k)));
    return coherent ? error * coherent_factor((double)k, (double)n, (double)kappa_of(k, 1), tail) : error;
}

/* The formula falls with n for small n, where it bounds the error: (w / 6)^1.5 columns, two for a probability of 1e-6,
 * and some more with the coherent factor.  So many columns have the error of fewer, too. */
static double error_at(int64_t k, int64_t n, double w, double tail, int coherent)
{
    enum { FALLING = 8 };
    double error = error_of_columns(k, n, w, tail, coherent);
    for (int64_t fewer = 1; fewer < fsi_min(n, FALLING); fewer++)
        error = fmax(error, error_of_columns(k, fewer, w, tail, coherent));
    return error;
}

typedef struct goal {
    fs_plan_options options;
    double w, tail;
} goal;
static double exceeded(const goal *g, int64_t k)
{
    return error_at(k, g->options.n, g->w, g->tail, g->options.coherent);
}

static fs_result check(const fs_plan_options *o)
{
    FSI_REQUIRE(o->n >= 1 && o->n <= INT32_MAX / 2, "fs_plan: options.n is %" PRId64 ", it must be from 1 to %d", o->n,
                INT32_MAX / 2);
    FSI_REQUIRE(o->d == 0 || o->d >= o->n,
                "fs_plan: options.d is %" PRId64 ", it must be at least n = %" PRId64 ", or 0 where it is not known",
                o->d, o->n);
    FSI_REQUIRE(o->error > 0 && o->error < 1,
                "fs_plan: options.error is %g, it must be above 0 and below 1 (at 1 a direction may be lost)",
                o->error);
    FSI_REQUIRE(o->probability == 0 || (o->probability >= 1e-6 && o->probability <= 0.5),
                "fs_plan: options.probability is %g, it must be from 1e-6 to 0.5, or 0 for %g", o->probability,
                PROBABILITY);
    FSI_REQUIRE(o->coherent == 0 || o->coherent == 1, "fs_plan: options.coherent is %d, it must be 0 or 1",
                o->coherent);
    return FS_OK;
}

/* The smallest k of at most `most` rows that reaches the error, as a multiple of the rows of a block where that is at
 * most `most` too. */
static fs_result smallest_k(const goal *g, int64_t most, int64_t *k)
{
    const fs_plan_options *o = &g->options;
    int64_t low = fsi_max(o->n, FEWEST_ROWS) - 1, high = most;
    if (!(low < high) || exceeded(g, most) > o->error)
        return fs_fail(FS_EINVAL,
                       "fs_plan: no k up to %s = %" PRId64 " has an error of %g for n = %" PRId64
                       "; the smallest that can be had is %.3g",
                       o->d ? "d" : "2^31 - 1", most, o->error, o->n, most > 1 ? exceeded(g, most) : INFINITY);
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (exceeded(g, middle) > o->error) low = middle;
        else high = middle;
    }
    const int64_t step = high > BLOCK ? BLOCK : FEWEST_ROWS, rounded = fsi_div_up(high, step) * step;
    *k = rounded <= most && exceeded(g, rounded) <= o->error ? rounded : high;
    return FS_OK;
}

fs_result fs_plan(const fs_plan_options *options, fs_plan_report *report)
{
    const fs_plan_options start = FS_PLAN_INIT;
    const fs_plan_report empty = FS_PLAN_REPORT_INIT;
    goal g = {.options = start};
    fs_plan_report r = empty;
    FSI_REQUIRE(options && report, "fs_plan: %s is NULL", options ? "report" : "options");
    FSI_TRY(fs_struct_read("fs_plan", "options", options, &g.options, sizeof g.options));
    FSI_TRY(fs_struct_check("fs_plan", "report", report, sizeof *report));
    fs_plan_options *o = &g.options;
    FSI_TRY(check(o));
    if (!o->probability) o->probability = PROBABILITY;
    g.w = tracy_widom_quantile(o->probability);
    g.tail = log(o->probability) / log(PROBABILITY);
    FSI_TRY(smallest_k(&g, o->d ? fsi_min(o->d, INT32_MAX) : INT32_MAX, &r.k));
    r.kappa = kappa_of(r.k, o->coherent);
    r.s = NONZEROS;
    r.typical = error_at(r.k, o->n, TRACY_WIDOM_MEAN, 0, o->coherent);
    r.exceeded = exceeded(&g, r.k);
    const double ratio = (double)r.k / (double)o->n;
    if (o->coherent)
        snprintf(
            r.reason, sizeof r.reason,
            "k = %.3g n: a Gaussian S has that error at k with probability %.3g, times %.2f for rows that outweigh "
            "the others with kappa = %" PRId64,
            ratio, 1 - o->probability, coherent_factor((double)r.k, (double)o->n, (double)r.kappa, g.tail), r.kappa);
    else
        snprintf(r.reason, sizeof r.reason,
                 "k = %.3g n: the largest eigenvalue of a Gaussian S on n columns (Tracy and Widom) stays within the "
                 "error with probability %.3g; the default sketch has the same where no rows outweigh the others",
                 ratio, 1 - o->probability);
    fs_struct_write(report, &r, sizeof r);
    return FS_OK;
}
