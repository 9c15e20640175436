/* baselines.h - ways of sketching that people use today, behind one table of functions each.
 *
 * Every one of them multiplies by the S that the library has for the same spec (except shared_atomics.cu, which
 * hashes as the paper does and brings its own reference), so its result can be checked.  Making S is apart from
 * multiplying by it. */
#ifndef FS_BENCH_BASELINES_H
#define FS_BENCH_BASELINES_H

#include "bench_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum baseline_product { PRODUCT_F32, PRODUCT_TF32, PRODUCT_BF16 } baseline_product;

/* Y = S A with A d x n, packed, row-major or batch-major (n x d); Y in f32 and laid out as A. */
typedef struct baseline_problem {
    bench_gpu *g;
    fs_spec spec;             /* full */
    const fs_sketch *S;
    int64_t n;
    int batch_major;
    fs_dtype dtype;           /* of A */
    baseline_product product; /* dense products only */
} baseline_problem;

/* Functions return 0, or 1 after a sentence on stderr. */
typedef struct baseline {
    int (*open)(void **state, const baseline_problem *problem); /* takes memory; close it even if it failed */
    int (*prepare)(void *state);                                /* makes S; NULL: S is made in every call */
    int (*run)(void *state, void *A, void *Y);                  /* queues the product */
    bench_reference reference;                                  /* of the state; NULL: the library's S in double */
    void (*close)(void *state);                                 /* NULL is nothing */
} baseline;

extern const baseline baseline_library;        /* library.c */
extern const baseline baseline_gaussian;       /* gaussian.cu: cuBLAS */
extern const baseline baseline_cusparse;       /* cusparse.c: S in CSR */
extern const baseline baseline_scatter;        /* scatter.cu: float atomics in global memory */
extern const baseline baseline_shared_atomics; /* shared_atomics.cu: float atomics in shared memory */

#ifdef __cplusplus
}
#endif

#endif
