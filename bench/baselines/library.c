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

static fs_matrix view(const baseline_problem *p, void *data, int64_t rows, fs_dtype dtype)
{
    fs_matrix m = p->batch_major ? fs_batch_major(data, p->n, rows, dtype) : fs_row_major(data, rows, p->n, dtype);
    m.memory = p->g ? FS_MEMORY_CUDA : FS_MEMORY_HOST;
    return m;
}

static int run(void *state, void *A, void *Y)
{
    const baseline_problem *p = state;
    fs_matrix from = view(p, A, p->spec.d, p->dtype), to = view(p, Y, p->spec.k, FS_F32);
    return bench_fs_failed(fs_apply(p->context, p->S, 0, 1.0, &from, 0.0, &to), "applying a sketch");
}

const baseline baseline_library = {open, NULL, run, NULL, free};
