/* cpu_algorithm1.c - the paper's Algorithm 1 on a CPU.
 *
 * A task computes the tile of Y in block row g and some columns: it loops over the kappa input blocks f^l(g) and adds
 * every row to s rows of its tile.  Rows and signs are hashed again in every tile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algorithm1.h"
#include "baselines.h"

enum { BR = ALGORITHM1_BR, TN = ALGORITHM1_TN };

typedef struct algorithm1 {
    baseline_problem problem;
    fsi_wiring wiring;
    int64_t bc;
    float scale;
} algorithm1;

static int open(void **state, const baseline_problem *problem)
{
    const fs_spec *spec = &problem->spec;
    algorithm1 *s = calloc(1, sizeof *s);
    *state = s;
    if (!s) return 1;
    s->problem = *problem;
    s->wiring = fsi_wiring_make(spec->seed, (uint32_t)spec->M);
    s->bc = spec->d / spec->M;
    s->scale = (float)(1.0 / __builtin_sqrt((double)(spec->kappa * spec->s)));
    const int fits = spec->k % BR == 0 && spec->M == spec->k / BR && spec->d % spec->M == 0;
    if (!fits) fprintf(stderr, "fsbench: Algorithm 1 takes whole blocks of %d rows\n", BR);
    return !fits;
}

/* Adds input block h to the tile of output block g. */
static void add_block(const algorithm1 *s, const float *A, uint32_t g, uint32_t h, int64_t column, int64_t width,
                      float (*sums)[TN])
{
    const int64_t n = s->problem.n;
    const int nonzeros = (int)s->problem.spec.s;
    for (int64_t u = 0; u < s->bc; u++) {
        const uint32_t w = algorithm1_word((uint32_t)s->problem.spec.seed, g, h, (uint32_t)u);
        const float *a = A + ((int64_t)h * s->bc + u) * n + column;
        for (int e = 0; e < nonzeros; e++) {
            float *sum = sums[algorithm1_row(w, e)];
            const float sign = algorithm1_minus(w, e) ? -1.0f : 1.0f;
            for (int64_t t = 0; t < width; t++) sum[t] += sign * a[t];
        }
    }
}

static int run(void *state, void *A, void *Y)
{
    const algorithm1 *s = state;
    const int64_t n = s->problem.n, tiles = (n + TN - 1) / TN, M = s->problem.spec.M;
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < M * tiles; task++) {
        const uint32_t g = (uint32_t)(task / tiles);
        const int64_t column = task % tiles * TN, width = n - column < TN ? n - column : TN;
        float sums[BR][TN] = {{0}};
        uint32_t h = g;
        for (int64_t l = 0; l < s->problem.spec.kappa; l++) {
            h = fsi_wiring_next(&s->wiring, h);
            add_block(s, A, g, h, column, width, sums);
        }
        for (int64_t i = 0; i < BR; i++)
            for (int64_t t = 0; t < width; t++) ((float *)Y)[(g * BR + i) * n + column + t] = s->scale * sums[i][t];
    }
    return 0;
}

/* The same S from its definition, in double: every row of every block is added to its rows of Y. */
static int reference(void *state, const fs_matrix *from, fs_matrix *to)
{
    const algorithm1 *s = state;
    const int64_t n = from->cols, M = s->problem.spec.M;
    const double scale = 1.0 / __builtin_sqrt((double)(s->problem.spec.kappa * s->problem.spec.s)), *A = from->data;
    double *Y = to->data;
    memset(Y, 0, sizeof *Y * (size_t)(to->rows * n));
    for (int64_t j = 0; j < s->bc * M; j++) {
        const uint32_t h = (uint32_t)(j / s->bc);
        uint32_t g = h;
        for (int64_t l = 0; l < s->problem.spec.kappa; l++) {
            g = fsi_wiring_back(&s->wiring, g);
            const uint32_t w = algorithm1_word((uint32_t)s->problem.spec.seed, g, h, (uint32_t)(j % s->bc));
            for (int e = 0; e < (int)s->problem.spec.s; e++) {
                double *y = Y + ((int64_t)g * BR + algorithm1_row(w, e)) * n;
                const double sign = algorithm1_minus(w, e) ? -scale : scale;
                for (int64_t t = 0; t < n; t++) y[t] += sign * A[j * n + t];
            }
        }
    }
    return 0;
}

const baseline baseline_cpu_algorithm1 = {open, NULL, run, reference, free};
