/* random.h - random numbers of the inputs and of the Gaussian's distribution: SplitMix64, one state for each use. */
#ifndef FSI_BENCH_QUALITY_RANDOM_H
#define FSI_BENCH_QUALITY_RANDOM_H

#include <math.h>
#include <stdint.h>

static inline uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Above 0 and below 1. */
static inline double random_uniform(uint64_t *state) { return ((double)(random_bits(state) >> 11) + 0.5) * 0x1p-53; }
static inline int64_t random_below(uint64_t *state, int64_t bound)
{
    return (int64_t)(random_bits(state) % (uint64_t)bound);
}

static inline double random_normal(uint64_t *state)
{
    const double radius = sqrt(-2 * log(random_uniform(state)));
    return radius * cos(6.283185307179586 * random_uniform(state));
}

/* Gamma by Marsaglia and Tsang ("A simple method for generating gamma variables", TOMS 2000); shape below 1 by
 * Gamma(shape + 1) U^(1 / shape). */
static inline double random_gamma(uint64_t *state, double shape)
{
    const double factor = shape < 1 ? pow(random_uniform(state), 1 / shape) : 1;
    const double b = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * b);
    for (;;) {
        const double x = random_normal(state), v = (1 + c * x) * (1 + c * x) * (1 + c * x);
        if (v > 0 && log(random_uniform(state)) <= x * x / 2 + b - b * v + b * log(v)) return factor * b * v;
    }
}

/* The square root of a chi-square; Student's t. */
static inline double random_chi(uint64_t *state, double freedom) { return sqrt(2 * random_gamma(state, freedom / 2)); }
static inline double random_student(uint64_t *state, double freedom)
{
    const double z = random_normal(state);
    return z / (random_chi(state, freedom) / sqrt(freedom));
}

/* Poisson of a mean below some hundreds. */
static inline int random_poisson(uint64_t *state, double mean)
{
    int count = 0;
    for (double left = exp(-mean), p = random_uniform(state); p > left && count < 10000; p *= random_uniform(state))
        count++;
    return count;
}

#endif
