/* baselines.h - third-party and textbook ways of sketching, each behind a table of functions.
 *
 * Every one of them multiplies by the S that the library has for the same spec (except Algorithm 1, which hashes as
 * algorithm1.h says and brings its own reference), so its result can be checked.  Making S and multiplying by it are
 * separate calls. */
#ifndef FSI_BENCH_BASELINES_BASELINES_H
#define FSI_BENCH_BASELINES_BASELINES_H

#include "bench/bench.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum baseline_product { PRODUCT_F32, PRODUCT_TF32, PRODUCT_BF16 } baseline_product;

/* Y = S A with A d x n, packed, row-major or batch-major (n x d); Y in f32 and laid out as A. */
struct bench_gpu;
typedef struct baseline_problem {
    struct bench_gpu *g; /* NULL: on the CPU */
    fs_context *context; /* of the library, at full precision */
    fs_spec spec;        /* full */
    const fs_sketch *S;
    int64_t n;
    int batch_major;
    fs_dtype dtype;           /* of A */
    baseline_product product; /* dense products only */
} baseline_problem;

/* Functions return 0, or 1 after printing an error message. */
typedef struct baseline {
    int (*open)(void **state, const baseline_problem *problem); /* takes memory; close it even if it failed */
    int (*prepare)(void *state);                                /* makes S; NULL: S is made in every call */
    int (*run)(void *state, void *A, void *Y);                  /* queues the product */
    bench_reference reference;                                  /* of the state; NULL: the library's S in double */
    void (*close)(void *state);                                 /* NULL is a no-op */
} baseline;

extern const baseline baseline_library; /* library.c: on both */

/* On a GPU. */
extern const baseline baseline_gaussian;       /* gaussian.cu: cuBLAS */
extern const baseline baseline_cusparse;       /* cusparse.c: S in CSR */
extern const baseline baseline_scatter;        /* scatter.cu: float atomics in global memory */
extern const baseline baseline_shared_atomics; /* shared_atomics.cu: float atomics in shared memory */
extern const baseline baseline_srht_passes;    /* srht_passes.cu: a Hadamard transform in global memory */

/* On a CPU, row-major f32 only. */
extern const baseline baseline_cpu_gaussian;   /* cpu_gaussian.c: S in memory, OpenBLAS */
extern const baseline baseline_cpu_csr;        /* cpu_csr.c: S in CSR */
extern const baseline baseline_cpu_scatter;    /* cpu_scatter.c: a table of rows and signs, scattered */
extern const baseline baseline_cpu_algorithm1; /* cpu_algorithm1.c: hashed again for every tile */

#ifdef __cplusplus
}
#endif

#endif
