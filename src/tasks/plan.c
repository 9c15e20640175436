/* plan.c - k, kappa and s for a wanted embedding error: the smallest k whose error (embedding.h) is small enough.
 *
 * Without dominant rows the default sketch has a Gaussian's error.  With them the rung high pays: the default would need
 * more rows.  Two dominant rows that meet in one row of Y err by 1 / (kappa s), however large k is; small errors take the
 * rung gaussian.  tests/tasks/plan.c compares all three with draws. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/math.h"
#include "flashsketch_tasks.h"
#include "tasks/embedding.h"

static const double PROBABILITY = 0.05, SMALL_ERROR = 0.25;
enum { BLOCK = 2 * FSI_BAND_ROWS, FEWEST_ROWS = 8 };

typedef struct goal {
    fs_plan_options options;
    double w, tail;
} goal;

/* The full spec of k rows. */
static fsi_def_spec spec_of(const goal *g, int64_t k)
{
    fsi_def_spec spec = {.d = k, .k = k, .quality = FSI_DEF_DEFAULT};
    if (g->options.coherent) spec.quality = g->options.error < SMALL_ERROR ? FSI_DEF_GAUSSIAN : FSI_DEF_HIGH;
    fsi_def_defaults(&spec);
    return spec;
}

static const fsi_concentrated *line_of(const goal *g, int64_t k)
{
    const fsi_def_spec spec = spec_of(g, k);
    return g->options.coherent ? fsi_concentrated_line(&spec) : NULL;
}

static double exceeded(const goal *g, int64_t k)
{
    return fsi_embedding_error(k, g->options.n, g->w, g->tail, line_of(g, k));
}

static fs_result plan_check(const fs_plan_options *o)
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

/* The smallest k of at most `most` rows that reaches the error, rounded up to whole blocks where that is at most `most`
 * too; up to half a block, to a multiple of FEWEST_ROWS. */
static fs_result smallest_k(const goal *g, int64_t most, int64_t *k)
{
    const fs_plan_options *o = &g->options;
    int64_t low = fsi_max(o->n, FEWEST_ROWS) - 1, high = most;
    if (!(low < high) || exceeded(g, most) > o->error)
        return fs_fail(FS_EINVAL,
                       "fs_plan: no k up to %s = %" PRId64 " gives an error of at most %g for n = %" PRId64
                       "; the smallest possible error is %.3g",
                       o->d ? "d" : "2^31 - 1", most, o->error, o->n, most > 1 ? exceeded(g, most) : INFINITY);
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (exceeded(g, middle) > o->error) low = middle;
        else high = middle;
    }
    const int64_t step = high > BLOCK / 2 ? BLOCK : FEWEST_ROWS, rounded = fsi_div_up(high, step) * step;
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
    FSI_TRY(plan_check(o));
    if (!o->probability) o->probability = PROBABILITY;
    g.w = fsi_tracy_widom_quantile(o->probability);
    g.tail = log(o->probability) / log(PROBABILITY);
    FSI_TRY(smallest_k(&g, o->d ? fsi_min(o->d, INT32_MAX) : INT32_MAX, &r.k));
    const fsi_def_spec spec = spec_of(&g, r.k);
    r.kappa = spec.kappa, r.s = spec.s;
    r.typical = fsi_embedding_error(r.k, o->n, FSI_TRACY_WIDOM_MEAN, 0, line_of(&g, r.k));
    r.exceeded = exceeded(&g, r.k);
    const double ratio = (double)r.k / (double)o->n;
    if (o->coherent)
        snprintf(
            r.reason, sizeof r.reason,
            "k = %.3g n: a Gaussian S has that error at k with probability %.3g, times %.2f for rows that outweigh "
            "the others with kappa = %" PRId64,
            ratio, 1 - o->probability, fsi_concentrated_factor(line_of(&g, r.k), (double)r.k, (double)o->n, g.tail),
            r.kappa);
    else
        snprintf(r.reason, sizeof r.reason,
                 "k = %.3g n: the largest eigenvalue of a Gaussian S on n columns (Tracy and Widom) stays within the "
                 "error with probability %.3g; the default sketch has the same where no rows outweigh the others",
                 ratio, 1 - o->probability);
    fs_struct_write(report, &r, sizeof r);
    return FS_OK;
}
