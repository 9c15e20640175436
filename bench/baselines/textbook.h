/* textbook.h - how textbooks solve sketched problems, for comparison: LU of the normal equations; QR. */
#ifndef FSI_BENCH_BASELINES_TEXTBOOK_H
#define FSI_BENCH_BASELINES_TEXTBOOK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bench_gpu;

/* For Y, k x n in packed rows, C, k x rhs by columns, and X, n x rhs by columns, f32, in the memory of the CPU or GPU.
 * Y and C may be overwritten.  Functions return 0, or 1 after printing an error message; on a GPU results are ready
 * after a synchronization of the stream. */
typedef struct textbook {
    int (*open)(void **state, struct bench_gpu *g, int64_t k, int64_t n, int64_t rhs); /* close it even if it failed */
    int (*ridge)(void *state, float *Y, float *C, float lambda, float *X);             /* LU of Y'Y + lambda I */
    int (*solve)(void *state, float *Y, float *C, float *X); /* QR of Y; of Y' where k < n, for the shortest x */
    void (*close)(void *state);                              /* NULL is a no-op */
} textbook;

extern const textbook textbook_cpu, textbook_gpu;

#ifdef __cplusplus
}
#endif

#endif
