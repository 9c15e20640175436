/* tails.c - the distribution of |S x|^2 for x with few nonzeros, equal ones, in rows that the assignment to blocks
 * treats alike: the same places in several rounds of M rows.
 *
 * A seed is used for COLUMNS of them, each in other rounds and places: |S x|^2 of two of them are nearly independent,
 * so quantiles of all are quantiles of each. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "quality.h"

enum { COLUMNS = 64 };

static const struct quality_shape {
    const char *name;
    int64_t rounds, places, step; /* places 0: all M, below 0: M / -places; step: between them */
} shapes[] = {
    {"2 rounds, 4 neighbouring places", 2, 4, 1},
    {"2 rounds, 4 places, step 4", 2, 4, 4},
    {"2 rounds, 16 places", 2, 16, 1},
    {"2 rounds, half of them", 2, -2, 1},
    {"2 rounds, all of them", 2, 0, 1},
    {"4 rounds, 2 places", 4, 2, 1},
    {"16 rounds, 1 place", 16, 1, 1},
    {"16 rounds, 4 places", 16, 4, 1},
    {"1 round, 8 places", 1, 8, 1},
    {"2 rows", 2, 1, 1},
};
const int quality_shape_count = sizeof shapes / sizeof shapes[0];
const char *quality_shape_name(int shape) { return shapes[shape].name; }

typedef struct input {
    fs_sparse A;
    int32_t *ptr, *index;
    double *value;
} input;

/* Column c has its nonzeros in every COLUMNS-th round from c on, places from 5 c on: rounds side by side would mostly be
 * of one window, whose columns do not meet. */
static int make_input(int shape, int64_t M, input *x)
{
    const struct quality_shape *s = &shapes[shape];
    const int64_t wanted = s->places > 0 ? s->places : s->places ? M / -s->places : M;
    const int64_t places = wanted < 1 ? 1 : wanted > M ? M : wanted;
    const int64_t step = s->step * places <= M ? s->step : 1;
    const int64_t d = COLUMNS * s->rounds * M, nonzeros = COLUMNS * s->rounds * places;
    x->ptr = calloc((size_t)d + 1, sizeof *x->ptr);
    x->index = malloc(sizeof *x->index * (size_t)nonzeros);
    x->value = malloc(sizeof *x->value * (size_t)nonzeros);
    if (!x->ptr || !x->index || !x->value) return 1;
    for (int64_t c = 0; c < COLUMNS; c++)
        for (int64_t q = c; q < COLUMNS * s->rounds; q += COLUMNS)
            for (int64_t p = 0; p < places; p++) x->ptr[q * M + (5 * c + p * step) % M + 1] = 1;
    for (int64_t j = 0; j < d; j++) {
        const int64_t at = x->ptr[j];
        x->ptr[j + 1] += (int32_t)at;
        if (x->ptr[j + 1] == at) continue;
        x->index[at] = (int32_t)(j / M % COLUMNS);
        x->value[at] = 1 / sqrt((double)(s->rounds * places));
    }
    x->A = (fs_sparse){FS_CSR, FS_INDEX32, d, COLUMNS, nonzeros, x->ptr, x->index, x->value, FS_F64, FS_MEMORY_HOST};
    return 0;
}

/* Squared norms less 1 of the columns of S A for one seed. */
static int one_seed(fs_context *ctx, const fs_spec *spec, const input *x, double *Y, double *norms)
{
    fs_sketch *S;
    const fs_matrix to = fs_row_major(Y, spec->k, COLUMNS, FS_F64);
    if (bench_fs_failed(fs_sketch_create(&S, spec), "making a sketch")) return 1;
    const fs_result result = fs_apply_sparse(ctx, S, 0, 1.0, &x->A, 0.0, &to);
    fs_sketch_destroy(S);
    if (bench_fs_failed(result, "sketching a vector")) return 1;
    for (int64_t c = 0; c < COLUMNS; c++) norms[c] = -1;
    for (int64_t i = 0; i < spec->k; i++)
        for (int64_t c = 0; c < COLUMNS; c++) norms[c] += Y[i * COLUMNS + c] * Y[i * COLUMNS + c];
    return 0;
}

static int draw_all(const input *x, const fs_spec *spec, int64_t seeds, int threads, double *norms)
{
    int failed = 0;
#pragma omp parallel num_threads(threads) reduction(| : failed)
    {
        fs_context_options options = FS_CONTEXT_INIT;
        fs_context *ctx = NULL;
        double *Y = malloc(sizeof *Y * (size_t)(spec->k * COLUMNS));
        options.backend = FS_BACKEND_CPU, options.threads = 1;
        failed |= !Y || bench_fs_failed(fs_context_create(&ctx, &options), "opening a context");
#pragma omp for schedule(static)
        for (int64_t i = 0; i < seeds; i++) {
            fs_spec drawn = *spec;
            drawn.seed = (uint64_t)i;
            if (!failed) failed |= one_seed(ctx, &drawn, x, Y, norms + i * COLUMNS);
        }
        fs_context_destroy(ctx);
        free(Y);
    }
    return failed;
}

int quality_tail_of(int shape, const fs_spec *spec, int64_t M, int64_t draws, int threads, quality_tail *out)
{
    const int64_t seeds = (draws + COLUMNS - 1) / COLUMNS, count = seeds * COLUMNS;
    double *norms = malloc(sizeof *norms * (size_t)count), squares = 0, fourths = 0;
    input x = {0};
    *out = (quality_tail){0};
    fs_spec sized = *spec;
    int bad = !norms || make_input(shape, M, &x);
    if (bad) fprintf(stderr, "fsbench: no memory for %" PRId64 " draws\n", count);
    sized.d = x.A.rows;
    if (!bad) bad = draw_all(&x, &sized, seeds, threads, norms);
    if (!bad) {
        for (int64_t i = 0; i < count; i++) squares += norms[i] * norms[i];
        for (int64_t i = 0; i < count; i++) fourths += norms[i] * norms[i] * norms[i] * norms[i];
        const double variance = squares / (double)count; /* E |S x|^2 = 1 */
        out->draws = count;
        out->deviation = sqrt(variance);
        out->kurtosis = variance > 1e-20 ? fourths / (double)count / (variance * variance) : NAN;
        out->q99 = quality_quantile(norms, count, 0.99);
        out->q999 = quality_quantile(norms, count, 0.999); /* sorted now */
        const int64_t largest = count / 1000 > 0 ? count / 1000 : 1;
        for (int64_t i = count - largest; i < count; i++) out->top += norms[i] / (double)largest;
    }
    free(x.ptr);
    free(x.index);
    free(x.value);
    free(norms);
    return bad;
}
