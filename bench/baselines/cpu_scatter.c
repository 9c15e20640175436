/* cpu_scatter.c - the SJLT by scattering into Y, as scatter.cu does on a GPU; a thread owns a range of columns, so
 * that no two threads add to one element. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baselines.h"
#include "def/blockperm.h"

typedef struct scatter {
    baseline_problem problem;
    uint32_t *code; /* d x s: 2 (row) + (1 if the sign is minus) */
} scatter;

static int open(void **state, const baseline_problem *problem)
{
    scatter *s = calloc(1, sizeof *s);
    *state = s;
    if (!s) return 1;
    s->problem = *problem;
    s->code = malloc(sizeof *s->code * (size_t)(problem->spec.d * problem->spec.s));
    if (!s->code) fprintf(stderr, "fsbench: no memory for the rows and signs of S\n");
    return !s->code;
}

static int prepare(void *state)
{
    scatter *s = state;
    const fs_spec *spec = &s->problem.spec;
    const fsi_blockperm B = fsi_blockperm_make(spec->seed, spec->d, spec->k, 1, 1, spec->s, FSI_DEF_NONE, 1);
#pragma omp parallel for schedule(static)
    for (int64_t j = 0; j < B.d; j++)
        for (int64_t q = 0; q < B.bands; q++)
            fsi_blockperm_nonzeros(&B, 0, j, 1, q, B.k, s->code + j * B.s + q * B.per_band, 1);
    return 0;
}

static int run(void *state, void *A, void *Y)
{
    const scatter *s = state;
    const int64_t d = s->problem.spec.d, k = s->problem.spec.k, n = s->problem.n, nonzeros = s->problem.spec.s;
    const float scale = (float)(1.0 / __builtin_sqrt((double)nonzeros));
#pragma omp parallel
    {
        const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
        const int64_t first = n * me / threads, last = n * (me + 1) / threads;
        for (int64_t i = 0; i < k; i++) memset((float *)Y + i * n + first, 0, sizeof(float) * (size_t)(last - first));
        for (int64_t i = 0; i < d; i++)
            for (int64_t t = 0; t < nonzeros; t++) {
                const uint32_t code = s->code[i * nonzeros + t];
                const float sign = code & 1 ? -scale : scale, *a = (const float *)A + i * n;
                float *y = (float *)Y + (code >> 1) * n;
                for (int64_t j = first; j < last; j++) y[j] += sign * a[j];
            }
    }
    return 0;
}

static void close(void *state)
{
    scatter *s = state;
    if (!s) return;
    free(s->code);
    free(s);
}

const baseline baseline_cpu_scatter = {open, prepare, run, NULL, close};
