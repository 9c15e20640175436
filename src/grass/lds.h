/* lds.h - the linear datamodeling score: do sums of scores predict what models trained on subsets say?
 *
 * For test example t and subset i, a_i is the sum of the scores of the subset's examples and y_i what a model that was
 * trained on it says.  LDS_t is Spearman's correlation of a and y over the subsets. */
#ifndef FS_GRASS_LDS_H
#define FS_GRASS_LDS_H

#include <stdint.h>

/* Pearson's correlation of the ranks of a and b, ties sharing the mean of theirs; NaN where a or b is constant or has
 * a NaN.  work: 3 n doubles. */
double lds_spearman(int64_t n, const double *a, const double *b, double *work);

/* LDS of `tests` examples: scores is tests x N, chosen is subsets x half (the examples of each subset), y is subsets x
 * tests, all packed.  work: 5 subsets doubles. */
void lds_of(int64_t tests, int64_t N, int64_t subsets, int64_t half, const double *scores, const int64_t *chosen,
            const double *y, double *lds, double *work);

/* Mean and (population) deviation of the values that are numbers, how many they are, and where the mean of 95 of 100
 * bootstrap samples of them lies; the samples are drawn from a seed. */
typedef struct lds_summary {
    double mean, deviation, low, high;
    int64_t count;
} lds_summary;
enum { LDS_SAMPLES = 2000 };

/* work: n + LDS_SAMPLES doubles.  Without a number all are NaN. */
lds_summary lds_summarise(int64_t n, const double *values, uint64_t seed, double *work);

#endif
