/* degenerate.c - degenerate problems have the answer that the header names, or an error message, and then nothing is
 * written. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"

static void fill_with(const fs_matrix *m, double x)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) put(m, i, j, x);
}

/* NaN or Inf in A or B: a message, and X and G stay. */
static void not_finite_is_refused(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int which = 0; which < 3; which++)
        for (int in_A = 0; in_A < 2; in_A++) {
            problem p = problem_make(100, 8, 2, FS_F32, 2, 0.1, 1);
            bench b = bench_open(&p, 40, 1, 0);
            view X = view_make(ROWS, 8, 2, FS_F32), G = view_make(ROWS, 8, 8, FS_F32);
            view_seal(&X), view_seal(&G);
            put(in_A ? &p.A : &p.B, 50, 1, bad[which]);
            MUST(fs_task_sketch(b.w, b.S, &p.A, &p.B));
            REFUSED(fs_solve(b.w, 0.0, &X.m, NULL), FS_EINVAL, in_A ? "A" : "B", "not finite");
            REFUSED(fs_solve(b.w, 1e-3, &X.m, NULL), FS_EINVAL, "not finite");
            REFUSED(fs_ridge(b.w, 1.0, &X.m, NULL), FS_EINVAL, "not finite");
            if (in_A) REFUSED(fs_gram(b.w, b.S, &G.m, NULL), FS_EINVAL, "not finite");
            else MUST(fs_gram(b.w, b.S, NULL, NULL));
            expect_untouched("X", &X), expect_untouched("G", &G);
            view_free(&X), view_free(&G);
            bench_close(&b);
            problem_free(&p);
        }
}

static void zero_matrix_and_zero_right_hand_side(void **state)
{
    (void)state;
    for (int64_t k = 5; k <= 40; k += 35)
        for (int f64 = 0; f64 < 2; f64++) {
            problem p = problem_make(100, 8, 2, f64 ? FS_F64 : FS_F32, 2, 0.1, 1);
            bench b = bench_open(&p, k, 1, 0);
            fs_matrix X = fs_row_major(room(16, 8), 8, 2, FS_F64), G = fs_row_major(room(64, 8), 8, 8, FS_F64),
                      keep = p.B;
            fs_fit_report report = FS_FIT_REPORT_INIT;
            fs_gram_report gram = FS_GRAM_REPORT_INIT;
            /* B = 0 */
            p.B.data = room(200, 8);
            fill_with(&p.B, 0);
            MUST(fs_task_sketch(b.w, b.S, &p.A, &p.B));
            MUST(fs_solve(b.w, 0.0, &X, &report));
            assert_true(norm_of(&X) == 0 && report.sketched == 0 && report.rhs == 0 && report.rank == (k < 8 ? k : 8));
            if (k > 8) assert_true(report.residual == 0 && report.low == 0 && report.high == 0);
            MUST(fs_ridge(b.w, 2.0, &X, &report));
            assert_true(norm_of(&X) == 0 && report.residual == 0);
            /* A = 0: the residual is all of B, and known within the interval */
            fill_with(&p.A, 0);
            MUST(fs_task_sketch(b.w, b.S, &p.A, &keep));
            MUST(fs_solve(b.w, 0.0, &X, &report));
            assert_true(norm_of(&X) == 0 && report.rank == 0);
            assert_true(fabs(report.residual - report.rhs) <= 1e-12 * report.rhs);
            assert_true(report.low <= norm_of(&keep) && norm_of(&keep) <= report.high);
            MUST(fs_ridge(b.w, 2.0, &X, &report));
            assert_true(norm_of(&X) == 0 && fabs(report.residual - report.rhs) <= 1e-12 * report.rhs);
            double frobenius = 7, spectral = 7;
            MUST(fs_gram(b.w, b.S, &G, &gram));
            MUST(fs_gram_error(b.w, &p.A, &frobenius, &spectral));
            assert_true(norm_of(&G) == 0 && gram.error == 0 && gram.high == 0 && frobenius == 0 && spectral == 0);
            free(p.B.data), free(X.data), free(G.data);
            p.B = keep;
            bench_close(&b);
            problem_free(&p);
        }
}

/* n > d: the shortest solution satisfies all d equations, which the sketch cannot show. */
static void more_unknowns_than_equations(void **state)
{
    (void)state;
    problem p = problem_make(40, 40, 1, FS_F64, 3, 0.1, 1);
    p.d = 20, p.A.rows = 20, p.B.rows = 20;
    bench b = bench_open(&p, 32, 1, 0);
    fs_matrix X = fs_row_major(room(40, 8), 40, 1, FS_F64);
    fs_fit_report report = FS_FIT_REPORT_INIT;
    MUST(fs_task_sketch(b.w, b.S, &p.A, &p.B));
    MUST(fs_solve(b.w, 0.0, &X, &report));
    assert_true(report.rank <= 20);
    assert_true(residual_norm(&p.A, &X, &p.B) <= 1e-8 * norm_of(&p.B) || report.rank < 20);
    assert_true(report.sketched <= 1e-8 * report.rhs);
    bench_close(&b);
    free(X.data);
    problem_free(&p);
}

/* Ridge with fewer rows than unknowns is an ordinary problem. */
static void ridge_needs_no_rank(void **state)
{
    (void)state;
    problem p = problem_make(300, 50, 2, FS_F32, 10, 0.1, 1);
    bench b = bench_open(&p, 30, 1, 0);
    fs_matrix Y, C, X = fs_row_major(room(100, 8), 50, 2, FS_F64);
    fs_fit_report report = FS_FIT_REPORT_INIT;
    MUST(fs_task_sketch(b.w, b.S, &p.A, &p.B));
    MUST(fs_workspace_views(b.w, &Y, &C));
    double *y = doubles_of(&Y), *c = doubles_of(&C), want[100];
    /* 1e-14 is far below what the Gram matrix can show: those go by singular values */
    for (double lambda = 1e-14; lambda < 1e3; lambda *= 1e4) {
        MUST(fs_ridge(b.w, lambda, &X, &report));
        lapack_ridge(30, 50, 2, y, c, lambda, want);
        double apart = 0, whole = 0;
        for (int i = 0; i < 100; i++) {
            const double off = at(&X, i / 2, i % 2) - want[i];
            apart += off * off, whole += want[i] * want[i];
        }
        /* Cholesky's error grows with |Y|^2 / lambda, about 1 / lambda here. */
        const double bound = report.method == FS_METHOD_SVD ? 1e-9 : 1e-12 + 2e-15 / lambda;
        if (!(sqrt(apart / whole) <= bound)) fail_msg("lambda %g: error %g", lambda, sqrt(apart / whole));
        assert_true(isnan(report.smallest));
    }
    free(y), free(c), free(X.data);
    bench_close(&b);
    problem_free(&p);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    problem p = problem_make(60, 5, 1, FS_F32, 2, 0.1, 1);
    bench b = bench_open(&p, 20, 1, 0);
    fs_workspace *w = NULL;
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    REFUSED(fs_workspace_create(NULL, b.ctx, &shape), FS_EINVAL, "out");
    REFUSED(fs_workspace_create(&w, NULL, &shape), FS_EINVAL, "ctx");
    REFUSED(fs_workspace_create(&w, b.ctx, &shape), FS_EINVAL, "k = 0");
    shape.k = 5, shape.n = 5, shape.dtype = FS_F16;
    REFUSED(fs_workspace_create(&w, b.ctx, &shape), FS_EINVAL, "dtype is 3");
    shape.dtype = (fs_dtype)0, shape.n = INT64_MAX;
    REFUSED(fs_workspace_create(&w, b.ctx, &shape), FS_EINVAL, "n = 9223372036854775807");
    shape.n = 5, shape.size = 5000;
    REFUSED(fs_workspace_create(&w, b.ctx, &shape), FS_EINVAL, "shape.size is 5000");
    assert_null(w);
    shape.size = sizeof shape;
    MUST(fs_workspace_create(&w, b.ctx, &shape));
    assert_true(fs_workspace_memory_bytes(w) > 5 * 5 * 8 && fs_workspace_memory_bytes(NULL) == 0);
    REFUSED(fs_task_sketch(w, b.S, &p.A, NULL), FS_EINVAL, "20 rows", "k = 5");
    fs_matrix X = fs_row_major(room(5, 8), 5, 1, FS_F32), Y;
    REFUSED(fs_solve(w, 0.0, &X, NULL), FS_EINVAL, "rhs = 0");
    fs_workspace_destroy(w);
    fs_workspace_destroy(NULL);
    REFUSED(fs_task_sketch(b.w, b.S, &p.A, NULL), FS_EINVAL, "B is NULL", "1 right-hand");
    REFUSED(fs_task_sketch(b.w, b.S, &p.B, &p.B), FS_EINVAL, "A is 60 x 1", "60 x 5");
    fs_matrix A = p.A;
    A.dtype = FS_F64, A.cols = 5, A.rows = 60;
    double *wide = room(300, 8);
    A.data = wide;
    REFUSED(fs_task_sketch(b.w, b.S, &A, &p.B), FS_EINVAL, "f64");
    free(wide);
    fs_matrix wrong = X;
    wrong.rows = 4;
    REFUSED(fs_solve(b.w, 0.0, &wrong, NULL), FS_EINVAL, "X is 4 x 1", "5 x 1");
    wrong = X, wrong.memory = FS_MEMORY_CUDA;
    REFUSED(fs_solve(b.w, 0.0, &wrong, NULL), FS_EUNSUPPORTED, "cuda memory");
    fs_fit_report report = FS_FIT_REPORT_INIT;
    report.size = 7;
    REFUSED(fs_solve(b.w, 0.0, &X, &report), FS_EINVAL, "report.size is 7");
    REFUSED(fs_workspace_views(NULL, &Y, NULL), FS_EINVAL, "NULL");
    REFUSED(fs_workspace_set_sketch(NULL, b.S), FS_EINVAL, "w is NULL");
    fs_spec other = FS_SPEC_INIT;
    other.d = 60, other.k = 21;
    fs_sketch *S = sketch_of(&other);
    REFUSED(fs_workspace_set_sketch(b.w, S), FS_EINVAL, "21 rows", "k = 20");
    fs_sketch_destroy(S);
    REFUSED(fs_gram_error(b.w, NULL, NULL, NULL), FS_EINVAL, "A is NULL");
    free(X.data);
    bench_close(&b);
    problem_free(&p);
}

/* A caller may compute Y and C by other calls: of A in row slices, of a sparse A. */
static void pieces_are_the_whole(void **state)
{
    (void)state;
    problem p = problem_make(500, 9, 2, FS_F64, 5, 0.1, 1);
    bench b = bench_open(&p, 90, 1, 0);
    fs_matrix Y, C, whole = fs_row_major(room(18, 8), 9, 2, FS_F64), parts = fs_row_major(room(18, 8), 9, 2, FS_F64);
    fs_fit_report known = FS_FIT_REPORT_INIT, report = FS_FIT_REPORT_INIT;
    fs_gram_report gram = FS_GRAM_REPORT_INIT;
    MUST(fs_task_sketch(b.w, b.S, &p.A, &p.B));
    MUST(fs_solve(b.w, 0.0, &whole, &known));
    assert_true(known.confidence == 0.99 && known.low > 0 && known.note[0] == 0);
    MUST(fs_workspace_views(b.w, &Y, &C));
    fill_with(&Y, NAN), fill_with(&C, NAN);
    for (int64_t row = 0; row < 500; row += 130) {
        fs_matrix A = p.A, B = p.B;
        A.offset = row * 9, B.offset = row * 2, A.rows = B.rows = 500 - row < 130 ? 500 - row : 130;
        MUST(fs_apply(b.ctx, b.S, row, 1.0, &A, row > 0, &Y));
        MUST(fs_apply(b.ctx, b.S, row, 1.0, &B, row > 0, &C));
    }
    MUST(fs_solve(b.w, 0.0, &parts, &report));
    /* The S of the sketches must be stated. */
    assert_true(report.confidence == 0 && report.low == 0 && isinf(report.high) && report.residual > 0);
    assert_non_null(strstr(report.note, "fs_workspace_set_sketch"));
    MUST(fs_gram(b.w, NULL, NULL, &gram));
    assert_true(gram.confidence == 0 && isinf(gram.high) && gram.error > 0 && strstr(gram.note, "S was not given"));
    MUST(fs_workspace_set_sketch(b.w, b.S));
    MUST(fs_solve(b.w, 0.0, &parts, &report));
    assert_true(report.confidence == 0.99 && fabs(report.high - known.high) <= 1e-9 * known.high);
    MUST(fs_workspace_set_sketch(b.w, NULL));
    MUST(fs_ridge(b.w, 1.0, &parts, &report));
    assert_true(report.confidence == 0);
    MUST(fs_solve(b.w, 0.0, &parts, NULL));
    for (int i = 0; i < 18; i++) assert_true(fabs(at(&whole, i / 2, i % 2) - at(&parts, i / 2, i % 2)) <= 1e-12);
    free(whole.data), free(parts.data);
    bench_close(&b);
    problem_free(&p);
}

/* An identity in 64 scattered rows of 2000: the full rank of A is lost by many S with two blocks of 36 rows, by none here
 * with k = 256; a copy of a column has the same note but for the remedy. */
static void a_lost_rank_has_its_causes_and_remedy_named(void **state)
{
    (void)state;
    enum { N = 64 };
    int lost = 0;
    for (int64_t k = 72; k <= 256; k += 184) {
        problem p = problem_make(2000, N, 1, FS_F64, 2, 0.1, 1);
        bench b = bench_open(&p, k, 1, 0);
        fs_matrix X = fs_row_major(room(N, 8), N, 1, FS_F64);
        fs_fit_report report = FS_FIT_REPORT_INIT;
        for (int64_t i = 0; i < 2000; i++)
            for (int64_t j = 0; j < N; j++) put(&p.A, i, j, i == 31 * j + (int64_t)(bits_at(1, j) % 31));
        for (uint64_t seed = 0; seed < 20; seed++) {
            fs_spec spec = FS_SPEC_INIT;
            spec.d = 2000, spec.k = k, spec.M = 2, spec.seed = seed;
            fs_sketch *S = sketch_of(&spec);
            MUST(fs_task_sketch(b.w, S, &p.A, &p.B));
            MUST(fs_solve(b.w, 0.0, &X, &report));
            if (k == 256) assert_true(report.rank == N && report.confidence == 0.99 && report.note[0] == 0);
            lost += report.rank < N;
            if (report.rank < N) {
                const char *const words[] = {"< n = 64", "k = 72 is too small", "k >= 128", "dependent columns"};
                for (int i = 0; i < 4; i++)
                    if (!strstr(report.note, words[i])) fail_msg("\"%s\" has no %s", report.note, words[i]);
                assert_true(report.confidence == 0);
            }
            fs_sketch_destroy(S);
        }
        /* rcond is the caller's own cause. */
        MUST(fs_solve(b.w, 0.9, &X, &report));
        assert_null(strstr(report.note, "S A has rank"));
        if (k == 256) {
            for (int64_t i = 0; i < 2000; i++) put(&p.A, i, 0, at(&p.A, i, 1));
            MUST(fs_task_sketch(b.w, b.S, &p.A, &p.B));
            MUST(fs_solve(b.w, 0.0, &X, &report));
            assert_true(report.rank == N - 1 && report.confidence == 0.99);
            assert_non_null(strstr(report.note, "S A has rank 63 < n = 64: A has dependent columns"));
        }
        free(X.data);
        bench_close(&b);
        problem_free(&p);
    }
    assert_true(lost > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_finite_is_refused),
        cmocka_unit_test(zero_matrix_and_zero_right_hand_side),
        cmocka_unit_test(more_unknowns_than_equations),
        cmocka_unit_test(ridge_needs_no_rank),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(pieces_are_the_whole),
        cmocka_unit_test(a_lost_rank_has_its_causes_and_remedy_named),
    };
    return RUN_TASK_TESTS(tests);
}
