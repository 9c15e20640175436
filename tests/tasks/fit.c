/* fit.c - fs_solve and fs_ridge give what LAPACK in double gives for the same Y and C, up to condition numbers of 1e6.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/problems.h"

static const struct shape {
    int64_t d, n, rhs, k;
} shapes[] = {
    {600, 1, 1, 40}, {600, 12, 1, 100}, {601, 12, 3, 101}, {1500, 60, 2, 256}, {700, 30, 40, 31},
};
static const double conditions[] = {1, 1e3, 1e6};

/* |X - want| / |want|, X a view and want row-major. */
static double distance(const fs_matrix *X, const double *want)
{
    double apart = 0, whole = 0;
    for (int64_t i = 0; i < X->rows; i++)
        for (int64_t j = 0; j < X->cols; j++) {
            const double x = want[i * X->cols + j];
            apart += (at(X, i, j) - x) * (at(X, i, j) - x);
            whole += x * x;
        }
    return sqrt(apart / whole);
}

static void check(const struct shape *s, fs_dtype dtype, double condition, double lambda)
{
    problem p = problem_make(s->d, s->n, s->rhs, dtype, condition, 0.1, 11);
    bench b = bench_open(&p, s->k, 5, 0);
    fs_matrix Y, C, X = fs_row_major(room(s->n * s->rhs, 8), s->n, s->rhs, FS_F64);
    fs_fit_report report = FS_FIT_REPORT_INIT;
    MUST(fs_task_sketch(b.w, b.S, &p.A, &p.B));
    MUST(lambda > 0 ? fs_ridge(b.w, lambda, &X, &report) : fs_solve(b.w, 0.0, &X, &report));
    MUST(fs_workspace_views(b.w, &Y, &C));
    double *y = doubles_of(&Y), *c = doubles_of(&C), *want = room(s->n * s->rhs, 8);
    if (lambda > 0) lapack_ridge(s->k, s->n, s->rhs, y, c, lambda, want);
    else assert_int_equal(lapack_solve(s->k, s->n, s->rhs, y, c, 1e-12, want), report.rank);
    /* f32: the equations in f64, once, so the square of the condition number counts (a factorization in f32 would err
     * by 1e-7 times the condition number, all digits at 1e6).  f64: one step of refinement.  With k hardly more than n
     * the sketch itself makes it worse. */
    const double close = s->k == s->n + 1 ? 10 : 1;
    const double growth = dtype == FS_F32 ? 3e-16 * condition * condition * close : 1e-13 * condition * close;
    const double bound = lambda > 0 ? 1e-12 : fmax(1e-13, growth);
    const double error = distance(&X, want);
    if (!(error <= bound))
        fail_msg("%s n %lld k %lld rhs %lld condition %g lambda %g: error %g, bound %g",
                 dtype == FS_F32 ? "f32" : "f64", (long long)s->n, (long long)s->k, (long long)s->rhs, condition,
                 lambda, error, bound);
    if (report.method != FS_METHOD_CHOLESKY) fail_msg("condition %g was not solved by Cholesky", condition);
    assert_true(report.condition >= 1 && report.condition <= condition * 4 * close); /* a lower bound, of Y's */
    assert_true(fabs(report.sketched - residual_norm(&Y, &X, &C)) <= 1e-10 * report.rhs);
    assert_true(fabs(report.rhs - norm_of(&C)) <= 1e-12 * report.rhs);
    assert_true(report.total_seconds == report.sketch_seconds + report.solve_seconds && report.sketch_seconds > 0 &&
                report.solve_seconds > 0);
    double *exact = room(s->rhs, 8), square_sum = 0;
    MUST(fs_residual(b.w, &p.A, &p.B, &X, exact));
    for (int64_t j = 0; j < s->rhs; j++) square_sum += exact[j] * exact[j];
    assert_true(fabs(sqrt(square_sum) - residual_norm(&p.A, &X, &p.B)) <= 1e-12 * norm_of(&p.B));
    free(y), free(c), free(want), free(exact), free(X.data);
    bench_close(&b);
    problem_free(&p);
}

static void solve_is_lapacks(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int c = 0; c < 3; c++)
            for (int f64 = 0; f64 < 2; f64++) check(&shapes[s], f64 ? FS_F64 : FS_F32, conditions[c], 0.0);
}

static void ridge_is_lapacks(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int f64 = 0; f64 < 2; f64++) {
            check(&shapes[s], f64 ? FS_F64 : FS_F32, 1e3, 1e-3);
            check(&shapes[s], f64 ? FS_F64 : FS_F32, 1e3, 10.0);
        }
}

/* The shortest of many solutions: k < n, columns that are twice there, and columns of zeros. */
static void shortest_solution_is_lapacks(void **state)
{
    (void)state;
    enum { FEW_ROWS, TWICE, TWICE_F64, ZEROS, ZEROS_F64, KINDS };
    static const int64_t ranks[] = {20, 28, 28, 29, 29};
    for (int kind = 0; kind < KINDS; kind++) {
        problem p = problem_make(400, 30, 2, kind == TWICE_F64 || kind == ZEROS_F64 ? FS_F64 : FS_F32, 10, 0.1, 3);
        const int twice = kind == TWICE || kind == TWICE_F64;
        const int64_t k = kind == FEW_ROWS ? 20 : 90;
        for (int64_t i = 0; i < p.d; i++) {
            if (kind != FEW_ROWS) put(&p.A, i, 9, 0.0);
            if (twice) put(&p.A, i, 7, at(&p.A, i, 2));
        }
        bench b = bench_open(&p, k, 8, 0);
        fs_matrix Y, C, X = fs_col_major(room(30 * 2, 8), 30, 2, FS_F64);
        fs_fit_report report = FS_FIT_REPORT_INIT;
        MUST(fs_task_sketch(b.w, b.S, &p.A, &p.B));
        MUST(fs_solve(b.w, 0.0, &X, &report));
        MUST(fs_workspace_views(b.w, &Y, &C));
        double *y = doubles_of(&Y), *c = doubles_of(&C), want[60];
        const int64_t rank = lapack_solve(k, 30, 2, y, c, 1e-6, want);
        assert_int_equal(rank, ranks[kind]);
        assert_int_equal(report.rank, rank);
        assert_int_equal(report.method, twice ? FS_METHOD_SVD : FS_METHOD_CHOLESKY);
        if (!(distance(&X, want) <= 1e-11)) fail_msg("kind %d: error %g", kind, distance(&X, want));
        if (kind == FEW_ROWS) assert_true(isnan(report.residual) && report.low == 0 && isinf(report.high));
        else assert_true(report.low <= report.residual && report.residual <= report.high);
        free(y), free(c), free(X.data);
        bench_close(&b);
        problem_free(&p);
    }
}

/* Fewer equations than unknowns, up to condition numbers of 1e6, and ridge for them; and what no Gram matrix can show.
 */
static void wide_and_hard_problems_are_lapacks(void **state)
{
    (void)state;
    for (int which = 0; which < 14; which++) {
        const int f64 = which % 2, hard = which >= 12;
        const double condition = hard ? (f64 ? 1e10 : 1e6) : which < 4 ? 1 : which < 8 ? 1e3 : 1e6;
        const int64_t n = 40, k = hard ? 160 : 15, rhs = 2;
        const double lambda = which % 4 >= 2 && !hard ? 1 : 0;
        problem p = problem_make(400, n, rhs, f64 ? FS_F64 : FS_F32, condition, hard ? 0 : 0.1, 31);
        bench b = bench_open(&p, k, 2, 0);
        fs_matrix Y, C, X = fs_row_major(room(n * rhs, 8), n, rhs, FS_F64);
        fs_fit_report report = FS_FIT_REPORT_INIT;
        MUST(fs_task_sketch(b.w, b.S, &p.A, &p.B));
        MUST(lambda > 0 ? fs_ridge(b.w, lambda, &X, &report) : fs_solve(b.w, 0.0, &X, &report));
        MUST(fs_workspace_views(b.w, &Y, &C));
        double *y = doubles_of(&Y), *c = doubles_of(&C), *want = room(n * rhs, 8), *s = room(n, 8);
        if (lambda > 0) lapack_ridge(k, n, rhs, y, c, lambda, want);
        else assert_int_equal(lapack_solve(k, n, rhs, y, c, 1e-15, want), report.rank);
        lapack_singular_values(k, n, y, s);
        const double of_Y = s[0] / s[(k < n ? k : n) - 1];
        const int svd = hard && f64;
        assert_int_equal(report.method, svd ? FS_METHOD_SVD : FS_METHOD_CHOLESKY);
        const double bound = lambda > 0 ? 1e-11 : svd || f64 ? 1e-13 * of_Y : 1e-15 * of_Y * of_Y;
        if (!(distance(&X, want) <= fmax(bound, 1e-12)))
            fail_msg("case %d: condition %g of Y, error %g", which, of_Y, distance(&X, want));
        if (k < n && lambda == 0) assert_true(isnan(report.residual) && isinf(report.high));
        if (k < n && lambda > 0) assert_true(report.low <= report.residual && report.residual <= report.high);
        free(y), free(c), free(want), free(s), free(X.data);
        bench_close(&b);
        problem_free(&p);
    }
}

/* rcond cuts at its value. */
static void rcond_decides_the_rank(void **state)
{
    (void)state;
    problem p = problem_make(500, 9, 1, FS_F64, 1e4, 0.1, 21);
    bench b = bench_open(&p, 200, 1, 0);
    fs_matrix Y, C, X = fs_row_major(room(9, 8), 9, 1, FS_F64);
    MUST(fs_task_sketch(b.w, b.S, &p.A, &p.B));
    MUST(fs_workspace_views(b.w, &Y, &C));
    double *y = doubles_of(&Y), *c = doubles_of(&C), want[9];
    for (double rcond = 1e-5; rcond < 0.5; rcond *= 10) {
        fs_fit_report report = FS_FIT_REPORT_INIT;
        MUST(fs_solve(b.w, rcond, &X, &report));
        assert_int_equal(report.rank, lapack_solve(200, 9, 1, y, c, rcond, want));
        assert_true(distance(&X, want) <= 1e-11);
    }
    REFUSED(fs_solve(b.w, -1.0, &X, NULL), FS_EINVAL, "rcond", "-1");
    REFUSED(fs_ridge(b.w, 0.0, &X, NULL), FS_EINVAL, "lambda");
    REFUSED(fs_ridge(b.w, NAN, &X, NULL), FS_EINVAL, "lambda");
    free(y), free(c), free(X.data);
    bench_close(&b);
    problem_free(&p);
}

/* Half types, other layouts and outputs of every type are the same solution. */
static void layouts_and_types_agree(void **state)
{
    (void)state;
    problem p = problem_make(300, 10, 2, FS_F32, 10, 0.1, 4);
    bench b = bench_open(&p, 80, 2, 0);
    double *a = doubles_of(&p.A), *r = doubles_of(&p.B);
    for (int half = 0; half < 2; half++)
        for (int how = 0; how < OUTPUT_LAYOUTS; how++) {
            view A = view_make((layout)how, 300, 10, half ? FS_F16 : FS_F32),
                 B = view_make((layout)how, 300, 2, FS_F32);
            for (int64_t i = 0; i < 300; i++) {
                for (int64_t j = 0; j < 10; j++) put(&A.m, i, j, a[i * 10 + j]);
                for (int64_t j = 0; j < 2; j++) put(&B.m, i, j, r[i * 2 + j]);
            }
            MUST(fs_task_sketch(b.w, b.S, &A.m, &B.m));
            fs_matrix Y, C;
            double want[20];
            MUST(fs_workspace_views(b.w, &Y, &C));
            double *y = doubles_of(&Y), *c = doubles_of(&C);
            lapack_solve(80, 10, 2, y, c, 1e-9, want);
            for (int out = FS_F32; out <= FS_BF16; out++) {
                view X = view_make((layout)how, 10, 2, (fs_dtype)out);
                view_seal(&X);
                MUST(fs_solve(b.w, 0.0, &X.m, NULL));
                expect_padding_untouched("X", &X);
                const double unit = out == FS_F64 ? 1e-9 : out == FS_F32 ? 1e-7 : out == FS_F16 ? 1e-3 : 8e-3;
                if (!(distance(&X.m, want) <= unit)) fail_msg("type %d layout %d: %g", out, how, distance(&X.m, want));
                view_free(&X);
            }
            free(y), free(c);
            view_free(&A), view_free(&B);
        }
    free(a), free(r);
    bench_close(&b);
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solve_is_lapacks),
        cmocka_unit_test(ridge_is_lapacks),
        cmocka_unit_test(shortest_solution_is_lapacks),
        cmocka_unit_test(rcond_decides_the_rank),
        cmocka_unit_test(wide_and_hard_problems_are_lapacks),
        cmocka_unit_test(layouts_and_types_agree),
    };
    return RUN_TASK_TESTS(tests);
}
