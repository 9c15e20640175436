/* property.h - what the tests of the definition share.
 *
 * Every test is a property of S with fixed seeds, so it gives the same answer on every run.  A statistical property
 * holds if its statistic stays within FOUR_SIGMA or its chi-square limit, which a true property exceeds about once in
 * 16 000 or in 32 000 times; the seeds were not chosen. */
#ifndef FSI_TESTS_DEF_PROPERTY_H
#define FSI_TESTS_DEF_PROPERTY_H

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "def/def.h"

/* Formats of numbers in messages. */
#define I64 "%" PRId64
#define U64 "%" PRIu64
#define U32 "%" PRIu32

#define FOUR_SIGMA 4.0
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Fails with a printed message that holds the numbers. */
#define HOLDS(holds, ...) \
    do { \
        if (!(holds)) { \
            print_error(__VA_ARGS__); \
            print_error("\n"); \
            fail(); \
        } \
    } while (0)

/* The value that chi-square with `freedom` degrees of freedom exceeds with probability 3e-5: the 4 sigma point of
 * Wilson and Hilferty's cube-root approximation (PNAS 1931). */
static inline double chi_square_limit(double freedom)
{
    const double v = 2.0 / (9.0 * freedom);
    return freedom * pow(1.0 - v + FOUR_SIGMA * sqrt(v), 3.0);
}

/* Checks that `count` fits equally likely cells.  The message names what was counted. */
static inline void check_uniform(const int64_t *count, int64_t cells, const char *format, ...)
{
    char what[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    double total = 0.0, chi = 0.0;
    for (int64_t i = 0; i < cells; i++) total += (double)count[i];
    const double mean = total / (double)cells, limit = chi_square_limit((double)cells - 1.0);
    for (int64_t i = 0; i < cells; i++) chi += ((double)count[i] - mean) * ((double)count[i] - mean) / mean;
    HOLDS(mean >= 5.0, "%s: only %g in each of " I64 " cells", what, mean, cells);
    HOLDS(cells == 1 || chi < limit, "%s: chi-square %.1f with " I64 " degrees of freedom, the limit is %.1f", what,
          chi, cells - 1, limit);
}

/* That a value found from samples, whose standard error is `error`, is the true one. */
static inline void check_mean(double found, double truth, double error, const char *format, ...)
{
    char what[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const double off = fabs(found - truth) / error;
    HOLDS(off <= FOUR_SIGMA, "%s: %.6g, expected %.6g; that is %.1f standard errors of %.2g off", what, found, truth,
          off, error);
}

static inline fsi_def_spec blockperm_spec(int64_t d, int64_t k, int64_t M, int64_t kappa, int64_t s, int32_t shuffle,
                                          int64_t interleave, uint64_t seed)
{
    const fsi_def_spec spec = {d, k, M, kappa, s, interleave, seed, FSI_DEF_BLOCKPERM, shuffle, 0};
    return spec;
}

#endif
