/* lds.c - ranks, their correlation, the mean of correlations and its interval. */
#include "lds.h"

#include <math.h>
#include <stdlib.h>

#include "random.h"
#include "def/uniform.h"

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ranks[i] = the mean position of x[i] among the sorted, counted from 0; twice that is an integer. */
static void ranks_of(int64_t n, const double *x, double *sorted, double *ranks)
{
    for (int64_t i = 0; i < n; i++) sorted[i] = x[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int64_t i = 0; i < n; i++) {
        int64_t low = 0, high = n; /* the first position of x[i], then the first after its equals */
        for (int64_t end = n; low < end;) {
            const int64_t middle = (low + end) / 2;
            if (sorted[middle] < x[i]) low = middle + 1;
            else end = middle;
        }
        for (int64_t start = low; start < high;) {
            const int64_t middle = (start + high) / 2;
            if (sorted[middle] <= x[i]) start = middle + 1;
            else high = middle;
        }
        ranks[i] = 0.5 * (double)(low + high - 1);
    }
}

double lds_spearman(int64_t n, const double *a, const double *b, double *work)
{
    double *sorted = work, *ra = work + n, *rb = work + 2 * n, aa = 0, bb = 0, ab = 0;
    for (int64_t i = 0; i < n; i++)
        if (isnan(a[i]) || isnan(b[i])) return NAN;
    ranks_of(n, a, sorted, ra);
    ranks_of(n, b, sorted, rb);
    for (int64_t i = 0; i < n; i++) {
        const double x = ra[i] - 0.5 * (double)(n - 1), y = rb[i] - 0.5 * (double)(n - 1); /* the mean rank */
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : NAN;
}

void lds_of(int64_t tests, int64_t N, int64_t subsets, int64_t half, const double *scores, const int64_t *chosen,
            const double *y, double *lds, double *work)
{
    double *a = work, *b = work + subsets;
    for (int64_t t = 0; t < tests; t++) {
        for (int64_t i = 0; i < subsets; i++) {
            a[i] = 0;
            for (int64_t j = 0; j < half; j++) a[i] += scores[t * N + chosen[i * half + j]];
            b[i] = y[i * tests + t];
        }
        lds[t] = lds_spearman(subsets, a, b, work + 2 * subsets);
    }
}

/* means[i] = the mean over the seeds of the values at example i; where `sample` is not negative, over that bootstrap
 * sample of the seeds. */
static void mean_of_seeds(int64_t n, int64_t seeds, const double *values, uint64_t seed, int64_t sample, double *means)
{
    for (int64_t i = 0; i < n; i++) means[i] = 0;
    for (int64_t j = 0; j < seeds; j++) {
        const int64_t row = sample < 0 ? j
                                       : fsi_random_below(seed, GRASS_TAG_BOOTSTRAP_SEEDS, (uint64_t)j,
                                                          (uint32_t)sample, (uint32_t)seeds);
        for (int64_t i = 0; i < n; i++) means[i] += values[row * n + i] / (double)seeds;
    }
}

lds_summary lds_summarise(int64_t n, int64_t seeds, const double *values, uint64_t seed, double *work)
{
    lds_summary s = {0, 0, NAN, NAN, 0};
    double *all = work, *x = work + n, *means = work + 2 * n;
    mean_of_seeds(n, seeds, values, seed, -1, all);
    for (int64_t i = 0; i < n; i++)
        if (!isnan(all[i])) s.mean += all[i], s.count++;
    s.mean /= (double)s.count; /* NaN without a number */
    for (int64_t i = 0; i < n; i++)
        if (!isnan(all[i])) s.deviation += (all[i] - s.mean) * (all[i] - s.mean);
    s.deviation = sqrt(s.deviation / (double)s.count);
    if (!s.count) return s;
    for (uint32_t m = 0; m < LDS_SAMPLES; m++) {
        int64_t count = 0;
        mean_of_seeds(n, seeds, values, seed, m, x);
        for (int64_t i = 0; i < n; i++)
            if (!isnan(all[i])) x[count++] = x[i];
        means[m] = 0;
        for (int64_t i = 0; i < count; i++)
            means[m] += x[fsi_random_below(seed, GRASS_TAG_BOOTSTRAP, (uint64_t)i, m, (uint32_t)count)];
        means[m] /= (double)count;
    }
    qsort(means, LDS_SAMPLES, sizeof *means, by_value);
    s.low = means[LDS_SAMPLES / 40];
    s.high = means[LDS_SAMPLES - 1 - LDS_SAMPLES / 40];
    return s;
}
