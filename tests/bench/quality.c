/* quality.c - a reduced `fsbench quality`: that no rung embeds worse than the limits below, on inputs that are hard for
 * it; and that its inputs and the Gaussian's distribution are what they should be.
 *
 * Seeds are fixed, so a ratio changes only with S or with the inputs.  Limits are what the definition reaches, and 2 to
 * 3 percent. */
#include "bench/quality/quality.h"

#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 2, SEEDS = 40, GAUSSIAN_DRAWS = 1000 };

/* The limits: of each rung mean and 95th percentile of the error over the Gaussian's, and the share of singular draws;
 * k = ratio n. */
static const char *const rungs[] = {"fast", "default", "high", "gaussian"};
enum { RUNGS = sizeof rungs / sizeof rungs[0] };
typedef struct limits {
    double mean, p95, singular;
} limits;
/* clang-format off */
static const struct cell {
    const char *input;
    int64_t n;
    double ratio;
    limits of[RUNGS];
} cells[] = {
    /* input, n, k / n,           fast,                default,             high,                gaussian */
    {"gaussian",         64,   16, {{1.00, 0.99, 0}, {1.02, 1.02, 0}, {1.02, 1.05, 0}, {1.02, 1.01, 0}}},
    {"student",          64,   16, {{1.07, 1.20, 0}, {1.01, 1.01, 0}, {1.02, 1.01, 0}, {1.02, 1.04, 0}}},
    {"scattered",        64,   16, {{1.26, 1.45, 0}, {1.15, 1.26, 0}, {1.06, 1.12, 0}, {1.03, 1.02, 0}}},
    {"side-by-side",     64,   16, {{0.01, 0.01, 0}, {0.01, 0.01, 0}, {0.65, 0.66, 0}, {0.84, 0.83, 0}}},
    {"stride-2",         64,   16, {{0.01, 0.01, 0}, {0.01, 0.01, 0}, {0.65, 0.66, 0}, {0.83, 0.83, 0}}},
    {"stride-M",         64,   16, {{0.86, 1.08, 0}, {0.98, 1.08, 0}, {0.99, 1.04, 0}, {0.98, 0.97, 0}}},
    {"half-runs",        64,   16, {{0.01, 0.01, 0}, {0.01, 0.01, 0}, {0.65, 0.67, 0}, {0.85, 0.84, 0}}},
    {"two-rounds",       64,   16, {{0.01, 0.01, 0}, {0.01, 0.01, 0}, {0.66, 0.67, 0}, {0.85, 0.84, 0}}},
    {"flat-two-rounds",  64,   16, {{0.84, 0.82, 0}, {0.93, 0.90, 0}, {0.99, 0.98, 0}, {1.01, 0.98, 0}}},
    {"scattered",       128,   16, {{1.42, 1.84, 0}, {1.22, 1.54, 0}, {1.12, 1.26, 0}, {1.06, 1.12, 0}}},
    {"stride-M",        128,   16, {{1.12, 1.50, 0}, {1.07, 1.16, 0}, {1.03, 1.09, 0}, {1.01, 1.02, 0}}},
    {"two-rounds",      128,   16, {{0.01, 0.01, 0}, {0.80, 0.89, 0}, {0.92, 0.94, 0}, {0.97, 1.01, 0}}},
    {"scattered",        64,    2, {{1.04, 1.07, 0}, {1.00, 0.99, 0}, {1.00, 0.98, 0}, {1.00, 1.00, 0}}},
    {"two-rounds",       64,    2, {{0.49, 0.46, 0}, {0.76, 0.74, 0}, {0.88, 0.84, 0}, {0.95, 0.95, 0}}},
    {"scattered",       128, 1.25, {{1.05, 1.16, 0}, {1.01, 1.01, 0}, {1.01, 1.00, 0}, {1.02, 1.03, 0}}},
    {"side-by-side",    128, 1.25, {{0.69, 0.69, 0}, {0.84, 0.84, 0}, {0.93, 0.90, 0}, {0.97, 0.95, 0}}},
    {"stride-M",        128, 1.25, {{0.85, 0.85, 0}, {0.95, 0.97, 0}, {0.97, 0.95, 0}, {0.98, 0.97, 0}}},
};
/* clang-format on */
enum { CELLS = sizeof cells / sizeof cells[0] };

static lapack library;
static quality_worker *workers[THREADS];

static const quality_input *input_named(const char *name)
{
    for (int i = 0; i < quality_input_count; i++)
        if (!strcmp(quality_inputs[i].name, name)) return &quality_inputs[i];
    fail_msg("there is no input %s", name);
    return NULL;
}
static const quality_rung *rung_named(const char *name)
{
    for (int i = 0; i < quality_rung_count; i++)
        if (!strcmp(quality_rungs[i].name, name)) return &quality_rungs[i];
    fail_msg("there is no rung %s", name);
    return NULL;
}

/* Whether a rung is within its limits; prints its ratios. */
static int is_within(const struct cell *cell, int rung, const quality_summary *gaussian)
{
    static quality_draw draws[SEEDS];
    const limits *limit = &cell->of[rung];
    int seeds[SEEDS], singular = 0;
    double errors[SEEDS], mean = 0;
    fs_spec spec;
    quality_matrix m;
    assert_int_equal(quality_spec(rung_named(rungs[rung]), 65536, quality_k(cell->n, cell->ratio), 0, &spec), 0);
    assert_int_equal(quality_matrix_make(&library, input_named(cell->input), cell->n, quality_blocks(&spec), &m), 0);
    spec.d = m.d;
    for (int i = 0; i < SEEDS; i++) seeds[i] = i;
    assert_int_equal(quality_draws(workers, THREADS, &m, &spec, seeds, SEEDS, draws), 0);
    quality_matrix_free(&m);
    for (int i = 0; i < SEEDS; i++) {
        errors[i] = draws[i].error;
        mean += draws[i].error / SEEDS / gaussian->mean;
        singular += draws[i].smallest < QUALITY_SINGULAR;
    }
    const double p95 = quality_quantile(errors, SEEDS, 0.95) / gaussian->p95, share = (double)singular / SEEDS;
    const int is = mean <= limit->mean && p95 <= limit->p95 && share <= limit->singular;
    print_message("%-15s n %3d, k %4g n  %-8s  %.3f (%.2f)  %.3f (%.2f)  %.3f (%.3f)%s\n", cell->input, (int)cell->n,
                  cell->ratio, rungs[rung], mean, limit->mean, p95, limit->p95, share, limit->singular,
                  is ? "" : "  too large");
    return is;
}

static void no_rung_is_worse_than_its_limits(void **state)
{
    (void)state;
    int failures = 0;
    print_message("error over the Gaussian's, limits in brackets: mean, 95th percentile; share of singular draws\n");
    for (int i = 0; i < CELLS; i++) {
        quality_summary gaussian;
        const int64_t k = quality_k(cells[i].n, cells[i].ratio);
        assert_int_equal(quality_gaussian(&library, cells[i].n, k, GAUSSIAN_DRAWS, THREADS, &gaussian), 0);
        for (int rung = 0; rung < RUNGS; rung++) failures += !is_within(&cells[i], rung, &gaussian);
    }
    if (failures) fail_msg("%d of these are above their limits", failures);
}

/* Row i of [Q r] of an input, as n + 1 numbers. */
static void row_of(const quality_matrix *m, int64_t i, double *row)
{
    const int64_t wide = m->n + 1;
    if (m->dense) {
        memcpy(row, m->dense + i * wide, sizeof *row * (size_t)wide);
        return;
    }
    memset(row, 0, sizeof *row * (size_t)wide);
    for (int32_t e = m->ptr[i]; e < m->ptr[i + 1]; e++) row[m->index[e]] += m->value[e];
}

static void inputs_are_orthonormal(void **state)
{
    (void)state;
    enum { N = 32 };
    static const int64_t blocks[] = {1, 3, 64};
    for (int t = 0; t < quality_input_count * 3; t++) {
        const quality_input *input = &quality_inputs[t / 3];
        double gram[(N + 1) * (N + 1)] = {0}, row[N + 1], worst = 0, leverage = 0;
        quality_matrix m;
        if (t % 3 && !input->by_blocks) continue;
        assert_int_equal(quality_matrix_make(&library, input, N, blocks[t % 3], &m), 0);
        for (int64_t i = 0; i < m.d; i++) {
            double sum = 0;
            row_of(&m, i, row);
            for (int a = 0; a <= N; a++)
                for (int b = 0; b <= N && row[a] != 0; b++) gram[a * (N + 1) + b] += row[a] * row[b];
            for (int a = 0; a < N; a++) sum += row[a] * row[a];
            leverage = sum > leverage ? sum : leverage;
        }
        for (int a = 0; a <= N; a++)
            for (int b = 0; b <= N; b++) worst = fmax(worst, fabs(gram[a * (N + 1) + b] - (a == b)));
        if (!(worst < 1e-12) || fabs(leverage - m.leverage) > 1e-12)
            fail_msg("%s, M = %d: [Q r] is orthonormal to %g, its leverage is %g and not %g", input->name,
                     (int)blocks[t % 3], worst, leverage, m.leverage);
        quality_matrix_free(&m);
    }
}

/* The bidiagonal form against the library's dense Gaussian. */
static void the_gaussian_is_that_of_the_library(void **state)
{
    (void)state;
    enum { N = 32, K = 64, DRAWS = 400 };
    static quality_draw draws[DRAWS];
    static int seeds[DRAWS];
    quality_matrix m = {.n = N, .seed = 1};
    quality_summary gaussian;
    fs_spec spec;
    double mean = 0, smallest = 0, residual = 0, values[DRAWS];
    assert_int_equal(quality_matrix_rows(&m, 2 * N, 2 * N), 0);
    for (int64_t j = 0; j < N; j++) m.A[j * 2 * N + 2 * j] = 1;
    m.orthonormal = 1;
    assert_int_equal(quality_matrix_finish(&library, &m), 0);
    assert_int_equal(quality_spec(rung_named("dense"), m.d, K, 0, &spec), 0);
    for (int i = 0; i < DRAWS; i++) seeds[i] = i;
    assert_int_equal(quality_draws(workers, THREADS, &m, &spec, seeds, DRAWS, draws), 0);
    quality_matrix_free(&m);
    for (int i = 0; i < DRAWS; i++) {
        mean += draws[i].error / DRAWS, residual += draws[i].residual / DRAWS;
        values[i] = draws[i].smallest;
    }
    smallest = quality_quantile(values, DRAWS, 0.5);
    assert_int_equal(quality_gaussian(&library, N, K, 4000, THREADS, &gaussian), 0);
    print_message("dense Gaussian: error %.4f, smallest %.4f, residual %.4f; by the bidiagonal form %.4f, %.4f, %.4f\n",
                  mean, smallest, residual, gaussian.mean, gaussian.smallest, gaussian.residual);
    assert_true(fabs(mean - gaussian.mean) < 4 * gaussian.deviation / sqrt(DRAWS));
    assert_true(fabs(smallest / gaussian.smallest - 1) < 0.1);
    /* E |y|^2 = n / (k - n - 1). */
    assert_true(fabs(gaussian.residual / sqrt(1 + (double)N / (K - N - 1)) - 1) < 0.02);
    assert_true(fabs(residual / gaussian.residual - 1) < 0.02);
}

static int open_workers(void **state)
{
    (void)state;
    for (int t = 0; t < THREADS; t++)
        if (!(workers[t] = quality_worker_open(&library))) return 1;
    return 0;
}
static int close_workers(void **state)
{
    (void)state;
    for (int t = 0; t < THREADS; t++) quality_worker_close(workers[t]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_are_orthonormal),
        cmocka_unit_test(the_gaussian_is_that_of_the_library),
        cmocka_unit_test(no_rung_is_worse_than_its_limits),
    };
    if (lapack_open(&library, 1)) return 77;
    const int failed = cmocka_run_group_tests(tests, open_workers, close_workers);
    lapack_close(&library);
    return failed;
}
