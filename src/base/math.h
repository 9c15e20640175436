/* math.h - integer arithmetic of sizes: the smaller, the larger, quotients and multiples rounded up.
 *
 * Arguments are sizes, at most 2^62 each, so that no sum overflows.  C11 and C++17; src/def has its own copies, because
 * the definition of S depends on nothing. */
#ifndef FSI_BASE_MATH_H
#define FSI_BASE_MATH_H

#include <stdint.h>

/* In CUDA files also for device code. */
#ifdef __CUDACC__
#define FSI_MATH static inline __host__ __device__
#else
#define FSI_MATH static inline
#endif

FSI_MATH int64_t fsi_min(int64_t a, int64_t b) { return a < b ? a : b; }
FSI_MATH int64_t fsi_max(int64_t a, int64_t b) { return a > b ? a : b; }
FSI_MATH int64_t fsi_div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
FSI_MATH int64_t fsi_round_up(int64_t a, int64_t unit) { return fsi_div_up(a, unit) * unit; }

#endif
