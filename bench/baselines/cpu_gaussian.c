/* cpu_gaussian.c - the dense Gaussian on a CPU: S in memory, Y = S A by OpenBLAS. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "baselines.h"
#include "def/gauss.h"

enum { ROW_MAJOR = 101, PLAIN = 111 }; /* CBLAS's numbers */
typedef void (*sgemm_function)(int order, int transA, int transB, int m, int n, int k, float alpha, const float *A,
                               int lda, const float *B, int ldb, float beta, float *C, int ldc);

typedef struct gaussian {
    baseline_problem problem;
    void *blas; /* dlopen's handle */
    sgemm_function sgemm;
    float *S; /* k x d, row-major */
} gaussian;

static int open(void **state, const baseline_problem *problem)
{
    gaussian *s = calloc(1, sizeof *s);
    *state = s;
    if (!s) return 1;
    s->problem = *problem;
    s->S = malloc(sizeof *s->S * (size_t)(problem->spec.k * problem->spec.d));
    s->blas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (s->blas) *(void **)&s->sgemm = dlsym(s->blas, "cblas_sgemm");
    if (!s->S) fprintf(stderr, "fsbench: no memory for a dense S\n");
    if (!s->sgemm) fprintf(stderr, "fsbench: OpenBLAS is not installed (libopenblas.so.0)\n");
    return !s->S || !s->sgemm;
}

static int prepare(void *state)
{
    gaussian *s = state;
    const int64_t d = s->problem.spec.d, k = s->problem.spec.k;
    const fsi_gauss G = fsi_gauss_make(s->problem.spec.seed, d, k);
    const double scale = 1.0 / __builtin_sqrt((double)k);
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < (k + 3) / 4; p++)
        for (int64_t j = 0; j < d; j++) {
            float z[4];
            fsi_gauss_four(&G, p, j, z);
            for (int64_t e = 0; e < 4 && 4 * p + e < k; e++) s->S[(4 * p + e) * d + j] = (float)(z[e] * scale);
        }
    return 0;
}

static int run(void *state, void *A, void *Y)
{
    const gaussian *s = state;
    const int d = (int)s->problem.spec.d, k = (int)s->problem.spec.k, n = (int)s->problem.n;
    s->sgemm(ROW_MAJOR, PLAIN, PLAIN, k, n, d, 1.0f, s->S, d, A, n, 0.0f, Y, n);
    return 0;
}

static void close(void *state)
{
    gaussian *s = state;
    if (!s) return;
    if (s->blas) dlclose(s->blas);
    free(s->S);
    free(s);
}

const baseline baseline_cpu_gaussian = {open, prepare, run, NULL, close};
