/* expect.h - the error that a sketch of k rows should have: that of a dense Gaussian, which the default sketch reaches
 * (docs/definition.md, "Which sketch"; tests/properties/quality.c measures it). */
#ifndef FSI_CLI_EXPECT_H
#define FSI_CLI_EXPECT_H

#include <math.h>
#include <stdint.h>

/* The standard deviation of |S x|^2 / |x|^2 for one vector: |S x|^2 is a chi^2 of k degrees over k. */
static inline double expect_vector(int64_t k) { return sqrt(2.0 / (double)k); }

/* |(S Q)' S Q - I|_2 for a basis Q of n dimensions: the edge of the Marchenko-Pastur law, (1 + sqrt(n / k))^2 - 1. */
static inline double expect_space(int64_t k, int64_t n)
{
    const double edge = 1 + sqrt((double)n / (double)k);
    return edge * edge - 1;
}

#endif
