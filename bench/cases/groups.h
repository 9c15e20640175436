/* groups.h - the cases that `fsbench cuda` measures and `fsbench tune` tunes for.
 *
 * A group is a sketch, an element type and a layout; its cases are its shapes times its k. */
#ifndef FSI_BENCH_CASES_GROUPS_H
#define FSI_BENCH_CASES_GROUPS_H

#include "bench/gpu/bench_gpu.h"

typedef struct bench_shape {
    int64_t d, n;
} bench_shape;

typedef struct bench_group {
    const char *name;
    int adjoint, batch_major;
    fs_dtype dtype; /* of A and Y */
    fs_precision precision;
    fs_family family;
    int64_t kappa, s; /* 0: the default */
    fs_shuffle shuffle;
    int64_t interleave;
    const bench_shape *shapes; /* ends with d = 0 */
    const int64_t *k;          /* ends with 0 */
    int64_t flatness;          /* only cases with d >= flatness k */
    int tuned;                 /* whether `fsbench tune` tries it: there is a choice of kernels */
    int64_t M;                 /* 0: the default */
    int64_t gap, offset;       /* elements between rows or samples of A, and before its first one */
} bench_group;

extern const bench_group bench_groups[];
extern const int bench_group_count;

/* The present case: S, and views of the buffers of a measurement. */
typedef struct bench_case {
    const bench_group *group;
    fs_spec spec; /* full */
    fs_sketch *S;
    bench_sketch sketch;
    int64_t from_rows, to_rows, n;
} bench_case;

/* Makes the sketch of a case for a context.  0, or 1 after printing an error message; close it all the same. */
int bench_case_open(bench_case *c, const bench_group *group, const bench_shape *A, int64_t k, fs_context *context);
void bench_case_close(bench_case *c);

fs_matrix bench_case_from(const bench_case *c, void *data);
fs_matrix bench_case_to(const bench_case *c, void *data);

/* What to time: c must live as long as the work. */
bench_work bench_case_work(bench_case *c);

/* Calls `run` for every case that the options select; 0 if none of them failed.  One that fails is named on stderr and
 * the others still run. */
typedef int (*bench_case_run)(bench_gpu *g, bench_case *c, void *user);
int bench_for_cases(bench_gpu *g, int tuned_only, bench_case_run run, void *user);

#endif
