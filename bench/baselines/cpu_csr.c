/* cpu_csr.c - the SJLT as a sparse matrix on a CPU: S in CSR, a row of Y is the sum of its rows of A. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baselines.h"

typedef struct csr {
    baseline_problem problem;
    fs_sparse S;
} csr;

static int open(void **state, const baseline_problem *problem)
{
    csr *s = calloc(1, sizeof *s);
    *state = s;
    if (!s) return 1;
    s->problem = *problem;
    s->S = (fs_sparse){
        .format = FS_CSR, .index_type = FS_INDEX32, .rows = problem->spec.k, .cols = problem->spec.d, .dtype = FS_F32};
    if (bench_fs_failed(fs_sketch_nnz(problem->S, 0, problem->spec.d, &s->S.nnz), "counting the nonzeros of S"))
        return 1;
    s->S.ptr = malloc(sizeof(int32_t) * (size_t)(s->S.rows + 1));
    s->S.index = malloc(sizeof(int32_t) * (size_t)s->S.nnz);
    s->S.value = malloc(sizeof(float) * (size_t)s->S.nnz);
    if (s->S.ptr && s->S.index && s->S.value) return 0;
    fprintf(stderr, "fsbench: no memory for S in CSR\n");
    return 1;
}

static int prepare(void *state)
{
    csr *s = state;
    return bench_fs_failed(fs_sketch_to_csr(s->problem.context, s->problem.S, 0, &s->S), "writing S as CSR");
}

static int run(void *state, void *A, void *Y)
{
    const csr *s = state;
    const int32_t *ptr = s->S.ptr, *index = s->S.index;
    const float *value = s->S.value;
    const int64_t n = s->problem.n;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < s->S.rows; i++) {
        float *y = (float *)Y + i * n;
        memset(y, 0, sizeof *y * (size_t)n);
        for (int32_t e = ptr[i]; e < ptr[i + 1]; e++) {
            const float *a = (const float *)A + index[e] * n, v = value[e];
            for (int64_t j = 0; j < n; j++) y[j] += v * a[j];
        }
    }
    return 0;
}

static void close(void *state)
{
    csr *s = state;
    if (!s) return;
    free(s->S.ptr);
    free(s->S.index);
    free(s->S.value);
    free(s);
}

const baseline baseline_cpu_csr = {open, prepare, run, NULL, close};
