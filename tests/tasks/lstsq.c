/* lstsq.c - fs_lstsq against LAPACK's gelsd: backward errors for condition numbers up to 1e14, rank and shortest
 * solutions, rows of all sizes, shapes, right-hand sides, ridge, scales. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"

static fs_context *ctx;
static int open_context(void **state)
{
    (void)state;
    ctx = context_of(NULL, 0);
    return 0;
}
static int close_context(void **state)
{
    (void)state;
    fs_context_destroy(ctx);
    return 0;
}

/* X, n x rhs packed rows in f64, and the report. */
static fs_lstsq_report solve(const fs_matrix *A, const fs_matrix *B, const fs_lstsq_options *options, double *x)
{
    fs_operand operand = FS_OPERAND_INIT;
    fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
    const fs_matrix X = fs_row_major(x, A->cols, B->cols, FS_F64);
    operand.dense = A;
    MUST(fs_lstsq(ctx, &operand, B, options, &X, &report));
    return report;
}

/* gelsd's answer in f64. */
static int64_t reference(const fs_matrix *A, const fs_matrix *B, double rcond, double *x)
{
    double *a = doubles_of(A), *b = doubles_of(B);
    const int64_t rank = lapack_solve(A->rows, A->cols, B->cols, a, b, rcond, x);
    free(a), free(b);
    return rank;
}

static double default_rcond(const fs_matrix *A)
{
    return fmax(8, sqrt((double)A->cols)) * (A->dtype == FS_F64 ? 0x1p-52 : 0x1p-23);
}

/* |x - y| / |y| */
static double difference(int64_t count, const double *x, const double *y)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < count; i++) error = hypot(error, x[i] - y[i]), size = hypot(size, y[i]);
    return size > 0 ? error / size : error;
}

/* The largest backward error of all columns of X; `scaled`: of A with columns of length 1. */
static double worst_error(const fs_matrix *A, const fs_matrix *B, const double *x, int scaled)
{
    const int64_t d = A->rows, n = A->cols, m = B->cols;
    double *a = doubles_of(A), *b = room(d, 8), *y = room(n, 8), *lengths = room(n, 8), worst = 0;
    for (int64_t j = 0; j < n; j++) {
        lengths[j] = 0;
        for (int64_t i = 0; i < d; i++) lengths[j] = hypot(lengths[j], a[i * n + j]);
        if (!scaled || lengths[j] == 0) lengths[j] = 1;
        for (int64_t i = 0; i < d; i++) a[i * n + j] /= lengths[j];
    }
    for (int64_t c = 0; c < m; c++) {
        double size = 0;
        for (int64_t i = 0; i < d; i++) b[i] = at(B, i, c), size += fabs(b[i]);
        for (int64_t j = 0; j < n; j++) y[j] = x[j * m + c] * lengths[j];
        if (size > 0) worst = fmax(worst, backward_error(d, n, a, b, y));
    }
    free(a), free(b), free(y), free(lengths);
    return worst;
}

/* accuracy ------------------------------------------------------------------------------------------------------ */

static double gelsds_error(const fs_matrix *A, const fs_matrix *B)
{
    double *lapack = room(A->cols * B->cols, 8);
    reference(A, B, 0x1p-53, lapack);
    const double error = worst_error(A, B, lapack, 0);
    free(lapack);
    return error;
}

/* A residual of a tenth of |b| at conditions where the rounding of A'(b - A x) in f64 would keep the error above 1e-15
 * and the iteration from ending. */
static void check_large_residual(double condition)
{
    enum { ROWS_OF_A = 8000, COLUMNS_OF_A = 60 };
    problem p = problem_make_orthogonal(ROWS_OF_A, COLUMNS_OF_A, condition, 0.1, 5);
    double x[COLUMNS_OF_A];
    fs_lstsq_options options = FS_LSTSQ_INIT;
    options.method = FS_LSTSQ_ITERATE;
    const fs_lstsq_report report = solve(&p.A, &p.B, &options, x);
    assert_int_equal(report.converged, 1);
    expect_at_most("backward error", worst_error(&p.A, &p.B, x, 1), 0x1p-52);
    expect_at_most("iterations", (double)report.iterations, 30);
    problem_free(&p);
}
static void large_residuals_end_at_rounding(void **state)
{
    (void)state;
    for (double condition = 1e9; condition < 1e13; condition *= 10) check_large_residual(condition);
    fs_context *const usual = ctx;
    for (int v = 0; v < variant_count; v++) {
        ctx = context_of(variants[v], 1);
        if (!ctx) continue;
        check_large_residual(1e10);
        fs_context_destroy(ctx);
    }
    ctx = usual;
}

/* The bar: at most four times gelsd's backward error, measured here; near the rounding unit all count as equal. */
static void expect_gelsds_error(const char *what, const fs_matrix *A, const fs_matrix *B, const double *x, double gelsd)
{
    expect_at_most(what, worst_error(A, B, x, 0), fmax(4 * gelsd, 1.25 * 0x1p-53));
}

static const char *const method_names[] = {"auto", "iterate", "normal", "direct"};

static void backward_errors_are_gelsds(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1500, 24}, {90, 24}};
    static const double noises[] = {0, 1e-6, 1};
    for (int exponent = 0; exponent <= 14; exponent += exponent < 8 ? 4 : 2)
        for (int shape = 0; shape < 2; shape++)
            for (int noise = 0; noise < 3; noise++) {
                problem p = problem_make(shapes[shape][0], shapes[shape][1], 1, FS_F64, pow(10, exponent),
                                         noises[noise], (uint64_t)(10 * exponent + noise));
                const double gelsd = gelsds_error(&p.A, &p.B);
                for (int method = 0; method < 4; method++) {
                    double x[24];
                    char what[100];
                    fs_lstsq_options options = FS_LSTSQ_INIT;
                    options.method = (fs_lstsq_method)method, options.measure_error = 1;
                    const fs_lstsq_report report = solve(&p.A, &p.B, &options, x);
                    snprintf(what, sizeof what, "%s, %d x %d, cond 1e%d, noise %g", method_names[method], (int)p.d,
                             (int)p.n, exponent, noises[noise]);
                    expect_gelsds_error(what, &p.A, &p.B, x, gelsd);
                    if (!report.converged) fail_msg("%s: %s", what, report.note);
                    const double error = worst_error(&p.A, &p.B, x, 1);
                    /* What is far below the rounding unit is rounding of the estimate itself. */
                    const double slack = 0x1p-55;
                    if (report.true_backward_error > 2 * error + slack ||
                        report.true_backward_error < error / 2 - 1e-16 || report.backward_error > 4 * error + slack ||
                        report.backward_error < error / 4 - 1e-16)
                        fail_msg("%s: reported %g and %g, measured %g", what, report.backward_error,
                                 report.true_backward_error, error);
                }
                problem_free(&p);
            }
}

/* A and b in f32: the forward error is no larger than twice that of sgelsd, the answer being dgelsd's. */
static void f32_answers_are_better_than_sgelsds(void **state)
{
    (void)state;
    enum { D = 1200, N = 20, RHS = 2 };
    for (int exponent = 0; exponent <= 5; exponent++)
        for (int method = 0; method < 4; method++) {
            problem p = problem_make(D, N, RHS, FS_F32, pow(10, exponent), 1e-2, (uint64_t)exponent + 1);
            double x[N * RHS], best[N * RHS], lapack[N * RHS], *a = doubles_of(&p.A), *b = doubles_of(&p.B);
            char what[80];
            fs_lstsq_options options = FS_LSTSQ_INIT;
            options.method = (fs_lstsq_method)method;
            const fs_lstsq_report report = solve(&p.A, &p.B, &options, x);
            snprintf(what, sizeof what, "f32, %s, cond 1e%d", method_names[method], exponent);
            reference(&p.A, &p.B, 0x1p-53, best);
            lapack_solve_f32(D, N, RHS, a, b, 0x1p-24, lapack);
            expect_at_most(what, difference(N * RHS, x, best), 2 * difference(N * RHS, lapack, best));
            assert_int_equal(report.converged, 1);
            problem_free(&p);
            free(a), free(b);
        }
}

/* Rows of very different sizes, and rows that hold nearly all of some columns: a sketch that is uniform would miss them. */
static void graded_and_coherent_rows(void **state)
{
    (void)state;
    enum { D = 1600, N = 20 };
    for (int kind = 0; kind < 4; kind++)
        for (int method = 0; method < 3; method++) {
            problem p = problem_make(D, N, 2, FS_F64, 1e4, 1e-3, 31);
            for (int64_t i = 0; i < D; i++)
                for (int64_t j = 0; j < N + 2; j++) {
                    const fs_matrix *m = j < N ? &p.A : &p.B;
                    const int64_t c = j < N ? j : j - N;
                    double v = at(m, i, c);
                    if (kind == 0) v *= pow(10, -6.0 * (double)i / D);          /* graded */
                    if (kind == 1 && j < N) v = i == 7 * j ? 1 + (double)j : 0; /* columns of I */
                    if (kind == 2 && i % 80 == 3) v *= 1e6;                     /* n rows outweigh the others */
                    if (kind == 3 && i % 3) v = 0;                              /* zero rows */
                    put(m, i, c, v);
                }
            double x[N * 2];
            char what[60];
            fs_lstsq_options options = FS_LSTSQ_INIT;
            options.method = (fs_lstsq_method)method;
            const fs_lstsq_report report = solve(&p.A, &p.B, &options, x);
            snprintf(what, sizeof what, "rows of kind %d, %s", kind, method_names[method]);
            if (!report.converged) fail_msg("%s: %s", what, report.note);
            expect_gelsds_error(what, &p.A, &p.B, x, gelsds_error(&p.A, &p.B));
            problem_free(&p);
        }
}

/* rank ---------------------------------------------------------------------------------------------------------- */

/* rank, residual, length and elements of gelsd's answer. */
static void expect_gelsds_answer(const char *what, const fs_matrix *A, const fs_matrix *B, double rcond, double slack)
{
    const int64_t count = A->cols * B->cols;
    double *x = room(count, 8), *lapack = room(count, 8);
    for (int method = 0; method < 4; method++) {
        char which[120];
        fs_lstsq_options options = FS_LSTSQ_INIT;
        options.rcond = rcond, options.method = (fs_lstsq_method)method;
        const int64_t rank = reference(A, B, rcond > 0 ? rcond : default_rcond(A), lapack);
        const fs_lstsq_report report = solve(A, B, &options, x);
        snprintf(which, sizeof which, "%s, %s", what, method_names[method]);
        if (report.rank != rank) fail_msg("%s: rank %d, gelsd has %d", which, (int)report.rank, (int)rank);
        expect_at_most(which, difference(count, x, lapack), slack);
        const int64_t most = A->rows < A->cols ? A->rows : A->cols;
        if (!report.converged || (rank < most) != (strstr(report.note, "shortest") != NULL))
            fail_msg("%s: converged %d, note '%s'", which, report.converged, report.note);
    }
    free(x), free(lapack);
}

static void dependent_columns_have_the_shortest_solution(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1000, 16}, {100, 16}, {16, 16}, {9, 16}, {1, 16}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int kind = 0; kind < 5; kind++) {
            const int64_t d = shapes[s][0], n = shapes[s][1];
            view A = view_make(ROWS, d, n, FS_F64), B = view_make(ROWS, d, 2, FS_F64);
            fill_normal(&A.m, 3), fill_normal(&B.m, 4);
            for (int64_t i = 0; i < d; i++) {
                if (kind == 1) put(&A.m, i, 5, at(&A.m, i, 2)), put(&A.m, i, 9, -2 * at(&A.m, i, 0));
                if (kind == 2) put(&A.m, i, 3, 0), put(&A.m, i, 15, 0);
                if (kind == 3)
                    for (int64_t j = 0; j < n; j++) put(&A.m, i, j, 0);
                if (kind == 4) /* rank 2 */
                    for (int64_t j = 2; j < n; j++) put(&A.m, i, j, (double)j * at(&A.m, i, 0) - 3 * at(&A.m, i, 1));
            }
            char what[60];
            snprintf(what, sizeof what, "kind %d, %d x %d", kind, (int)d, (int)n);
            /* A random 16 x 16 matrix has a condition number of some hundred. */
            expect_gelsds_answer(what, &A.m, &B.m, 0, 1e-11);
            view_free(&A), view_free(&B);
        }
}

/* Singular values without a gap, of which rcond leaves some out: the answer depends on A's very singular vectors. */
static void rcond_counts_as_in_gelsd(void **state)
{
    (void)state;
    for (int64_t d = 100; d <= 1600; d *= 16)
        for (int dtype = FS_F32; dtype <= FS_F64; dtype++) {
            problem p = problem_make(d, 21, 2, (fs_dtype)dtype, 1e5, 1e-2, 9);
            /* values 10^(-j / 4): rcond between two of them */
            static const double rconds[] = {0.75e-4, 0.75e-2, 0.3, 0.9};
            for (int r = 0; r < 4; r++) {
                char what[60];
                snprintf(what, sizeof what, "rcond %g, %d rows, type %d", rconds[r], (int)d, dtype);
                expect_gelsds_answer(what, &p.A, &p.B, rconds[r], 1e-8);
            }
            problem_free(&p);
        }
}

/* Columns that are dependent but for a part far below rcond, or above it. */
static void nearly_dependent_columns(void **state)
{
    (void)state;
    enum { D = 800, N = 12 };
    for (int exponent = -18; exponent <= -6; exponent += 4) {
        view A = view_make(ROWS, D, N, FS_F64), B = view_make(ROWS, D, 1, FS_F64);
        fill_normal(&A.m, 13), fill_normal(&B.m, 14);
        for (int64_t i = 0; i < D; i++) put(&A.m, i, 7, at(&A.m, i, 3) + pow(10, exponent) * at(&A.m, i, 7));
        char what[60];
        snprintf(what, sizeof what, "dependent but for 1e%d", exponent);
        /* Of x some u / 10^exponent is open: |r| is of the size of |b|, and |x| of |b| / 10^exponent. */
        expect_gelsds_answer(what, &A.m, &B.m, 0, exponent == -18 ? 1e-11 : 1e-13 * pow(10, -exponent));
        if (exponent == -10) expect_gelsds_answer(what, &A.m, &B.m, 1e-8, 1e-7);
        view_free(&A), view_free(&B);
    }
}

/* shapes and right-hand sides ------------------------------------------------------------------------------------- */

static void every_shape_has_its_answer(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 1},   {2, 1}, {700, 1}, {5000, 1}, {2, 2},    {40, 40},
                                        {41, 40}, {1, 7}, {7, 40},  {39, 40},  {300, 37}, {330, 40}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int64_t rhs = 1; rhs <= 3; rhs += 2) {
            view A = view_make(ROWS, shapes[s][0], shapes[s][1], FS_F64),
                 B = view_make(ROWS, shapes[s][0], rhs, FS_F64);
            char what[60];
            fill_normal(&A.m, s), fill_normal(&B.m, s + 40);
            snprintf(what, sizeof what, "%d x %d, %d right-hand sides", (int)shapes[s][0], (int)shapes[s][1], (int)rhs);
            expect_gelsds_answer(what, &A.m, &B.m, 0, 1e-9);
            view_free(&A), view_free(&B);
        }
}

/* Right-hand sides of all sizes, from consistent to orthogonal to A, and zeros: each as good as alone. */
static void many_right_hand_sides(void **state)
{
    (void)state;
    enum { D = 900, N = 12, RHS = 40 };
    for (int method = 0; method < 3; method++) {
        problem p = problem_make(D, N, RHS, FS_F64, 1e9, 0, 77);
        for (int64_t c = 0; c < RHS; c++)
            for (int64_t i = 0; i < D; i++) {
                const double noise = c % 5 ? pow(10, -4.0 * (double)(c % 5)) : 0, b = at(&p.B, i, c);
                put(&p.B, i, c,
                    c % 11 == 10 ? 0 : pow(10, (double)(c % 7) - 3) * (b + noise * normal_at(78, i * RHS + c)));
            }
        double x[N * RHS];
        fs_lstsq_options options = FS_LSTSQ_INIT;
        options.method = (fs_lstsq_method)method;
        const fs_lstsq_report report = solve(&p.A, &p.B, &options, x);
        if (!report.converged) fail_msg("%s: %s", method_names[method], report.note);
        for (int64_t c = 0; c < RHS; c++) {
            double one[N], *b = room(D, 8);
            char what[60];
            snprintf(what, sizeof what, "%s, right-hand side %d", method_names[method], (int)c);
            for (int64_t i = 0; i < D; i++) b[i] = at(&p.B, i, c);
            for (int64_t j = 0; j < N; j++) one[j] = x[j * RHS + c];
            const fs_matrix B = fs_row_major(b, D, 1, FS_F64);
            if (c % 11 == 10)
                for (int64_t j = 0; j < N; j++) assert_true(one[j] == 0);
            else expect_gelsds_error(what, &p.A, &B, one, gelsds_error(&p.A, &B));
            free(b);
        }
        problem_free(&p);
    }
}

/* ridge and scales -------------------------------------------------------------------------------------------------- */

/* Against the singular values of A: x = V diag(s / (s^2 + lambda)) U'b, U'b from V'A'b / s. */
static void ridge_from_nothing_to_all(void **state)
{
    (void)state;
    enum { D = 800, N = 10 };
    for (int64_t d = 5; d <= D; d = d == 5 ? 60 : d == 60 ? D : D + 1)
        for (int exponent = -20; exponent <= 60; exponent += 10)
            for (int method = 0; method < 4; method++) {
                problem p = problem_make(D, N, 1, FS_F64, 1e3, 0.1, 5);
                p.A.rows = p.B.rows = d;
                const double lambda = pow(10, exponent);
                const int64_t m = d < N ? d : N;
                double s[N], V[N * N], g[N] = {0}, want[N] = {0}, x[N], *a = doubles_of(&p.A);
                for (int64_t i = 0; i < d; i++)
                    for (int64_t j = 0; j < N; j++) g[j] += a[i * N + j] * at(&p.B, i, 0);
                lapack_singular_vectors(d, N, a, s, V);
                for (int64_t i = 0; i < m; i++) {
                    double sum = 0;
                    for (int64_t j = 0; j < N; j++) sum += V[j * m + i] * g[j];
                    for (int64_t j = 0; j < N; j++) want[j] += V[j * m + i] * sum / (s[i] * s[i] + lambda);
                }
                fs_lstsq_options options = FS_LSTSQ_INIT;
                options.lambda = lambda, options.method = (fs_lstsq_method)method, options.measure_error = 1;
                const fs_lstsq_report report = solve(&p.A, &p.B, &options, x);
                char what[80];
                snprintf(what, sizeof what, "%s, lambda 1e%d, %d rows", method_names[method], exponent, (int)d);
                if (!report.converged) fail_msg("%s: %s", what, report.note);
                expect_at_most(what, difference(N, x, want), 1e-8);
                expect_at_most(what, report.true_backward_error, 1e-15);
                free(a);
                problem_free(&p);
            }
}

/* Scales of A and b change x as they do in exact arithmetic, or are refused with what to do. */
static void scales_change_nothing_or_are_refused(void **state)
{
    (void)state;
    static const double scales[] = {1, 1e-100, 1e100, 1e-135, 1e135, 1e-150, 1e150, 1e-300, 1e300};
    enum { D = 600, N = 8 };
    problem p = problem_make(D, N, 1, FS_F64, 1e5, 0.1, 6);
    double want[N], x[N];
    reference(&p.A, &p.B, 1e-15, want);
    for (int a = 0; a < 9; a++)
        for (int b = 0; b < 9; b++) {
            view A = view_make(ROWS, D, N, FS_F64), B = view_make(ROWS, D, 1, FS_F64);
            for (int64_t i = 0; i < D; i++) {
                put(&B.m, i, 0, scales[b] * at(&p.B, i, 0));
                for (int64_t j = 0; j < N; j++) put(&A.m, i, j, scales[a] * at(&p.A, i, j));
            }
            fs_operand operand = FS_OPERAND_INIT;
            operand.dense = &A.m;
            const fs_matrix X = fs_row_major(x, N, 1, FS_F64);
            const fs_result result = fs_lstsq(ctx, &operand, &B.m, NULL, &X, NULL);
            char what[60];
            snprintf(what, sizeof what, "A times %g, b times %g", scales[a], scales[b]);
            if (result == FS_OK) {
                for (int64_t j = 0; j < N; j++) x[j] = x[j] / scales[b] * scales[a];
                expect_at_most(what, difference(N, x, want), 1e-8);
            } else {
                REFUSED(result, FS_EINVAL, "scale");
                if (a < 3 && b < 3) fail_msg("%s is refused", what);
            }
            view_free(&A), view_free(&B);
        }
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_residuals_end_at_rounding),
        cmocka_unit_test(backward_errors_are_gelsds),
        cmocka_unit_test(f32_answers_are_better_than_sgelsds),
        cmocka_unit_test(graded_and_coherent_rows),
        cmocka_unit_test(dependent_columns_have_the_shortest_solution),
        cmocka_unit_test(rcond_counts_as_in_gelsd),
        cmocka_unit_test(nearly_dependent_columns),
        cmocka_unit_test(every_shape_has_its_answer),
        cmocka_unit_test(many_right_hand_sides),
        cmocka_unit_test(ridge_from_nothing_to_all),
        cmocka_unit_test(scales_change_nothing_or_are_refused),
    };
    need_openblas();
    return cmocka_run_group_tests(tests, open_context, close_context);
}
