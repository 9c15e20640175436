/* qr.h - what the tests of fs_qr share: matrices of a given condition, and the checks of a factorization. */
#ifndef FSI_TESTS_TASKS_QR_H
#define FSI_TESTS_TASKS_QR_H

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"
#include "tests/support/sources.h"

typedef struct answer {
    view Q, R;
    int64_t *pivots;
    fs_qr_report report;
} answer;

static inline answer answer_make(int64_t d, int64_t n, fs_dtype dtype)
{
    const fs_qr_report start = FS_QR_REPORT_INIT;
    answer a = {view_make(ROWS, d, n, dtype), view_make(COLUMNS, n, n, FS_F64), room(n, sizeof(int64_t)), start};
    return a;
}
static inline void answer_free(answer *a) { view_free(&a->Q), view_free(&a->R), free(a->pivots); }

static inline fs_qr_options options_of(int pivot)
{
    fs_qr_options o = FS_QR_INIT;
    o.pivot = pivot, o.seed = 5;
    return o;
}

static inline fs_result factor(fs_context *ctx, const fs_operand *A, const fs_qr_options *o, answer *a)
{
    return fs_qr(ctx, A, o, &a->Q.m, &a->R.m, o->pivot ? a->pivots : NULL, &a->report);
}

/* |Q'Q - I|_F, columns from `rank` on being 0; the rounding of its own sums does not count. */
static inline double unorthogonality(const fs_matrix *Q, int64_t rank)
{
    double square = 0;
    for (int64_t a = 0; a < Q->cols; a++)
        for (int64_t b = 0; b < Q->cols; b++) {
            long double dot = 0;
            for (int64_t i = 0; i < Q->rows; i++) dot += (long double)at(Q, i, a) * at(Q, i, b);
            dot -= a == b && a < rank;
            square += (double)(dot * dot);
        }
    return sqrt(square);
}

/* |A(:, J) - Q R|_F over |A|_F. */
static inline double misfit(const fs_matrix *A, const answer *a, int pivoted)
{
    double square = 0;
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t j = 0; j < A->cols; j++) {
            double x = at(A, i, pivoted ? a->pivots[j] : j);
            for (int64_t c = 0; c <= j; c++) x -= at(&a->Q.m, i, c) * at(&a->R.m, c, j);
            square += x * x;
        }
    return sqrt(square) / fmax(norm_of(A), DBL_MIN);
}

static inline void expect_triangle(const fs_matrix *R, int64_t rank)
{
    for (int64_t j = 0; j < R->cols; j++) {
        assert_true(j < rank ? at(R, j, j) > 0 : at(R, j, j) == 0);
        for (int64_t i = 0; i < R->rows; i++)
            if (i > j || i >= rank) assert_true(at(R, i, j) == 0);
    }
}

static inline void expect_permutation(const int64_t *pivots, int64_t n)
{
    int *seen = room(n, sizeof *seen);
    memset(seen, 0, (size_t)n * sizeof *seen);
    for (int64_t j = 0; j < n; j++) {
        assert_true(pivots[j] >= 0 && pivots[j] < n && !seen[pivots[j]]);
        seen[pivots[j]] = 1;
    }
    free(seen);
}

/* A of singular values from 1 to 1 / condition in a layout and type. */
static inline view matrix_of(layout how, int64_t d, int64_t n, fs_dtype dtype, double condition)
{
    problem p = problem_make(d, n, 1, FS_F64, condition, 0, 11);
    view A = view_make(how, d, n, dtype);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++) put(&A.m, i, j, at(&p.A, i, j));
    problem_free(&p);
    return A;
}

static inline double unit_of(fs_dtype dtype)
{
    return dtype == FS_F64 ? 0x1p-53 : dtype == FS_F32 ? 0x1p-24 : dtype == FS_F16 ? 0x1p-11 : 0x1p-8;
}
/* Of the sums of a type: f32 for 16-bit elements. */
static inline double sum_unit_of(fs_dtype dtype) { return dtype == FS_F64 ? 0x1p-53 : 0x1p-24; }

/* Checks every property of a factorization.  `what` begins every message. */
static inline void expect_factors(const char *what, const fs_matrix *A, const answer *a, int pivot)
{
    const int64_t rank = a->report.rank, n = A->cols;
    assert_true(rank == 0 ? a->report.orthogonality == 0 : a->report.orthogonality > 0 || rank == 1);
    const double u = unit_of(a->Q.m.dtype);
    expect_below(what, unorthogonality(&a->Q.m, rank), 10 * (double)n * u);
    expect_below(what, misfit(A, a, pivot),
                 4 * u + (rank < n ? 64 * sqrt((double)n) * sum_unit_of(A->dtype) : 0x1p-50));
    expect_below(what, a->report.orthogonality, 10 * (double)n * 0x1p-53);
    expect_triangle(&a->R.m, rank);
    if (!pivot) return;
    expect_permutation(a->pivots, n);
    for (int64_t j = 1; j < rank; j++)
        expect_below("diagonal of a pivoted R falls", at(&a->R.m, j, j), 2 * at(&a->R.m, j - 1, j - 1));
}

/* Runs fs_qr, Q of type dtype, and checks it; returns the rank. */
static inline int64_t check_qr(const char *what, const fs_matrix *A, int pivot, fs_dtype dtype)
{
    fs_context *ctx = context_of(NULL, 0);
    answer a = answer_make(A->rows, A->cols, dtype);
    const fs_operand operand = dense_operand(A);
    const fs_qr_options o = options_of(pivot);
    MUST(factor(ctx, &operand, &o, &a));
    expect_factors(what, A, &a, pivot);
    const int64_t rank = a.report.rank;
    answer_free(&a);
    fs_context_destroy(ctx);
    return rank;
}

#endif
