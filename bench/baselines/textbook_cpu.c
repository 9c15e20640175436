/* textbook_cpu.c - the textbook's solvers by OpenBLAS: sgemm and sgesv; sgels. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "textbook.h"

/* Fortran's calling convention; matrices by columns. */
typedef void (*gemm_function)(const char *ta, const char *tb, const int *m, const int *n, const int *k,
                              const float *alpha, const float *A, const int *lda, const float *B, const int *ldb,
                              const float *beta, float *C, const int *ldc);
typedef void (*gesv_function)(const int *n, const int *rhs, float *A, const int *lda, int *pivots, float *B,
                              const int *ldb, int *info);
typedef void (*gels_function)(const char *trans, const int *m, const int *n, const int *rhs, float *A, const int *lda,
                              float *B, const int *ldb, float *work, const int *room, int *info);

typedef struct solver {
    int k, n, rhs, room;
    void *blas;
    gemm_function gemm;
    gesv_function gesv;
    gels_function gels;
    float *G, *B, *work;
    int *pivots;
} solver;

static int open(void **state, struct bench_gpu *unused, int64_t k, int64_t n, int64_t rhs)
{
    (void)unused;
    solver *s = calloc(1, sizeof *s);
    *state = s;
    if (!s) return 1;
    const int64_t larger = k > n ? k : n;
    s->k = (int)k, s->n = (int)n, s->rhs = (int)rhs, s->room = (int)(64 * (k + n));
    s->blas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (s->blas) {
        *(void **)&s->gemm = dlsym(s->blas, "sgemm_");
        *(void **)&s->gesv = dlsym(s->blas, "sgesv_");
        *(void **)&s->gels = dlsym(s->blas, "sgels_");
    }
    s->G = malloc(sizeof *s->G * (size_t)(n * n));
    s->B = malloc(sizeof *s->B * (size_t)(larger * rhs));
    s->work = malloc(sizeof *s->work * (size_t)s->room);
    s->pivots = malloc(sizeof *s->pivots * (size_t)n);
    if (!s->gemm || !s->gesv || !s->gels) {
        fprintf(stderr, "fsbench: OpenBLAS with LAPACK is not installed (libopenblas.so.0)\n");
        return 1;
    }
    if (s->G && s->B && s->work && s->pivots) return 0;
    fprintf(stderr, "fsbench: no memory for a textbook's solver\n");
    return 1;
}

/* Y in packed rows is Y' by columns, n x k. */
static int ridge(void *state, float *Y, float *C, float lambda, float *X)
{
    solver *s = state;
    const float one = 1, zero = 0;
    int info = 0;
    s->gemm("N", "T", &s->n, &s->n, &s->k, &one, Y, &s->n, Y, &s->n, &zero, s->G, &s->n);
    s->gemm("N", "N", &s->n, &s->rhs, &s->k, &one, Y, &s->n, C, &s->k, &zero, X, &s->n);
    for (int64_t i = 0; i < s->n; i++) s->G[i * s->n + i] += lambda;
    s->gesv(&s->n, &s->rhs, s->G, &s->n, s->pivots, X, &s->n, &info);
    /* A singular matrix has no solution by LU: the residual is then NaN. */
    if (info)
        for (int64_t i = 0; i < (int64_t)s->n * s->rhs; i++) X[i] = (float)(0.0 / 0.0);
    return 0;
}

static int solve(void *state, float *Y, float *C, float *X)
{
    solver *s = state;
    const int64_t larger = s->k > s->n ? s->k : s->n;
    const int ldb = (int)larger;
    int info = 0;
    for (int64_t j = 0; j < s->rhs; j++) memcpy(s->B + j * larger, C + j * s->k, sizeof *C * (size_t)s->k);
    s->gels("T", &s->n, &s->k, &s->rhs, Y, &s->n, s->B, &ldb, s->work, &s->room, &info);
    for (int64_t j = 0; j < s->rhs; j++)
        for (int64_t i = 0; i < s->n; i++) X[j * s->n + i] = info ? (float)(0.0 / 0.0) : s->B[j * larger + i];
    return 0;
}

static void close(void *state)
{
    solver *s = state;
    if (!s) return;
    if (s->blas) dlclose(s->blas);
    free(s->G);
    free(s->B);
    free(s->work);
    free(s->pivots);
    free(s);
}

const textbook textbook_cpu = {open, ridge, solve, close};
