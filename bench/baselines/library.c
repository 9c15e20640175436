/* library.c - the library itself among the baselines, so that one run holds everything that is compared. */
#include <stdlib.h>

#include "baselines.h"

static int open(void **state, const baseline_problem *problem)
{
    baseline_problem *p = malloc(sizeof *p);
    if (p) *p = *problem;
    *state = p;
    return !p;
}

static int run(void *state, void *A, void *Y)
{
    const baseline_problem *p = state;
    bench_sketch sketch = {p->g->context[FS_PRECISION_FULL], p->S, 0};
    const fs_matrix from = bench_gpu_view(A, p->spec.d, p->n, p->batch_major, p->dtype);
    fs_matrix to = bench_gpu_view(Y, p->spec.k, p->n, p->batch_major, FS_F32);
    return bench_sketch_apply(&sketch, &from, &to);
}

const baseline baseline_library = {open, NULL, run, NULL, free};
