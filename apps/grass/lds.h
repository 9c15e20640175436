/* lds.h - the linear datamodeling score: how well sums of scores predict the outputs of models trained on subsets.
 *
 * For test example t and subset i, a_i is the sum of the scores of the subset's examples and y_i the output of a model
 * that was trained on it.  LDS_t is Spearman's correlation of a and y over the subsets. */
#ifndef FSI_APPS_GRASS_LDS_H
#define FSI_APPS_GRASS_LDS_H

#include <stdint.h>

/* Pearson's correlation of the ranks of a and b, ties sharing the mean of theirs; NaN where a or b is constant or has
 * a NaN.  work: 3 n doubles. */
double lds_spearman(int64_t n, const double *a, const double *b, double *work);

/* LDS of `tests` examples: scores is tests x N, chosen is subsets x half (the examples of each subset), y is subsets x
 * tests, all packed.  work: 5 subsets doubles. */
void lds_of(int64_t tests, int64_t N, int64_t subsets, int64_t half, const double *scores, const int64_t *chosen,
            const double *y, double *lds, double *work);

/* A summary of values at n test examples, averaged over seeds: their mean, their (population) deviation over the
 * examples, and between what 95 of 100 bootstrap means lie. */
typedef struct lds_summary {
    double mean, deviation, low, high;
    int64_t count; /* examples whose values are all numbers; the others are left out */
} lds_summary;
enum { LDS_SAMPLES = 2000 };

/* values: seeds x n, packed, each row being LDS of one sketch, or the difference of two of the same seed: then the
 * examples, the models and the masks are the same for both, and only what they do not share is in the interval.  A
 * bootstrap sample draws examples and seeds (from `seed`), so the interval covers the choice of both; with few seeds
 * their contribution is too small by a factor of sqrt(1 - 1 / seeds).  work: 2 n + LDS_SAMPLES doubles.  Without a
 * number all are NaN. */
lds_summary lds_summarise(int64_t n, int64_t seeds, const double *values, uint64_t seed, double *work);

#endif
