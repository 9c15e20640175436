/* lstsq_report.c - the report of fs_lstsq and how it ends: tolerances, limits, reads, sketches of the caller, wrong
 * arguments, numbers that are not finite, memory that runs out; and the same bits in every run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"
#include "tests/support/scarce.h"
#include "tests/support/sources.h"

enum { D = 900, N = 14, RHS = 2, COUNT = N * RHS };

static fs_context *ctx;
static problem hard; /* condition 1e9, at which A'A has no factor */
static int open_problem(void **state)
{
    (void)state;
    ctx = context_of(NULL, 2);
    hard = problem_make(D, N, RHS, FS_F64, 1e9, 0.1, 3);
    return 0;
}
static int close_problem(void **state)
{
    (void)state;
    problem_free(&hard);
    fs_context_destroy(ctx);
    return 0;
}

static fs_result solve(const fs_lstsq_options *options, double *x, fs_lstsq_report *report)
{
    const fs_lstsq_report start = FS_LSTSQ_REPORT_INIT;
    const fs_operand operand = dense_operand(&hard.A);
    const fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
    *report = start;
    return fs_lstsq(ctx, &operand, &hard.B, options, &X, report);
}

/* tolerance and limits --------------------------------------------------------------------------------------------- */

/* Each tolerance is kept, with no more iterations the larger it is, and fewer in the end. */
static void tolerances_are_kept(void **state)
{
    (void)state;
    int64_t before = INT64_MAX, first = 0;
    for (int exponent = -15; exponent <= -3; exponent += 3) {
        double x[COUNT];
        fs_lstsq_options options = FS_LSTSQ_INIT;
        fs_lstsq_report report;
        options.tolerance = pow(10, exponent), options.measure_error = 1;
        MUST(solve(&options, x, &report));
        assert_int_equal(report.converged, 1);
        expect_at_most("estimate", report.backward_error, options.tolerance);
        expect_at_most("measured", report.true_backward_error, 2 * options.tolerance);
        assert_true(report.iterations <= before);
        if (before == INT64_MAX) first = report.iterations;
        before = report.iterations;
    }
    assert_true(before < first);
}

static void a_tolerance_out_of_reach_is_said(void **state)
{
    (void)state;
    for (int method = 0; method < 4; method++) {
        double x[COUNT], best[COUNT];
        fs_lstsq_options options = FS_LSTSQ_INIT;
        fs_lstsq_report report, usual;
        options.method = (fs_lstsq_method)method;
        MUST(solve(&options, best, &usual));
        options.tolerance = 1e-25;
        MUST(solve(&options, x, &report));
        assert_int_equal(report.converged, 0);
        assert_true(report.iterations < 100);
        if (!strstr(report.note, "rounding") || !strstr(report.note, "1e-25")) fail_msg("note: %s", report.note);
        expect_at_most("backward error", report.backward_error, fmax(usual.backward_error, 0x1p-53));
        expect_at_most("residual", report.residual, usual.residual + 0x1p-52 * norm_of(&hard.A) * report.solution);
    }
}

static void max_iterations_is_a_limit(void **state)
{
    (void)state;
    double errors[3];
    for (int limit = 1; limit <= 5; limit += 2) {
        double x[COUNT];
        fs_lstsq_options options = FS_LSTSQ_INIT;
        fs_lstsq_report report;
        options.method = FS_LSTSQ_ITERATE, options.max_iterations = limit;
        MUST(solve(&options, x, &report));
        assert_int_equal(report.iterations, limit);
        assert_int_equal(report.converged, 0);
        if (!strstr(report.note, "max_iterations")) fail_msg("note: %s", report.note);
        errors[limit / 2] = report.backward_error;
    }
    assert_true(errors[0] > errors[1] && errors[1] > errors[2]);
}

/* the report ------------------------------------------------------------------------------------------------------- */

static int told; /* calls of the progress function */
static double last_share;
static void hear(void *user, double share, const char *doing)
{
    assert_ptr_equal(user, &told);
    assert_true(share >= 0 && share <= 1 && strlen(doing) > 0);
    last_share = share;
    told++;
}

static void reports_are_true(void **state)
{
    (void)state;
    static const int64_t rows[] = {D, 100, 9};
    for (int exponent = 0; exponent <= 9; exponent += 3)
        for (int shape = 0; shape < 3; shape++)
            for (int method = 0; method < 4; method++) {
                problem p = problem_make(D, N, RHS, FS_F64, pow(10, exponent), 0.1, 4);
                p.A.rows = p.B.rows = rows[shape];
                double x[COUNT], values[N], *a = doubles_of(&p.A);
                slicer s;
                const fs_operand operand = slicer_open(&s, &p.A, 64, 0);
                const fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
                fs_lstsq_options options = FS_LSTSQ_INIT;
                fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
                const fs_progress progress = {hear, &told};
                told = 0;
                options.method = (fs_lstsq_method)method, options.progress = &progress;
                MUST(fs_lstsq(ctx, &operand, &p.B, &options, &X, &report));
                char what[80];
                snprintf(what, sizeof what, "cond 1e%d, %d rows, method %d", exponent, (int)rows[shape], method);
                lapack_singular_values(p.A.rows, N, a, values);
                const int64_t small = p.A.rows < N ? p.A.rows : N;
                if (report.rank != small) fail_msg("%s: rank %d", what, (int)report.rank);
                const double condition = values[0] / values[small - 1];
                /* That of S A for k = 4 n is up to 3 times A's. */
                if (report.condition > 3 * condition || report.condition < condition / 3)
                    fail_msg("%s: condition %g, reported %g", what, condition, report.condition);
                expect_at_most(what, fabs(report.residual - residual_norm(&p.A, &X, &p.B)),
                               1e-13 * norm_of(&p.B) + 0x1p-52 * norm_of(&p.A) * report.solution);
                expect_at_most(what, fabs(report.solution - norm_of(&X)), 1e-13 * report.solution);
                if (report.reads != s.reads || told < s.reads - 3)
                    fail_msg("%s: %d reads, reported %d, progress %d times", what, s.reads, (int)report.reads, told);
                assert_true(isnan(report.true_backward_error));
                const int is_iterate = report.method == FS_LSTSQ_ITERATE;
                if ((report.k > 0) != is_iterate || (is_iterate && report.k < N))
                    fail_msg("%s: method %d with k = %d", what, report.method, (int)report.k);
                if (shape == 0 && method == 2 &&
                    report.method != (exponent <= 3 ? FS_LSTSQ_NORMAL : FS_LSTSQ_ITERATE) && exponent != 6)
                    fail_msg("%s: became method %d", what, report.method);
                if (shape == 2) assert_int_equal(report.method, FS_LSTSQ_DIRECT);
                assert_true(report.seconds > 0 && report.sketch_seconds >= 0 && report.sketch_seconds < report.seconds);
                assert_true((report.sketch_seconds > 0) == (report.k > 0));
                free(a);
                slicer_close(&s);
                problem_free(&p);
            }
}

/* NORMAL continues where A'A has no factor, and leaves A to a sketch where a second one would have none either. */
static void squares_are_shifted_and_refined(void **state)
{
    (void)state;
    for (int exponent = 7; exponent <= 14; exponent++)
        for (int ridge = 0; ridge < 2; ridge++) {
            problem p = problem_make(D, N, RHS, FS_F64, pow(10, exponent), 0.1, 6);
            double x[COUNT];
            const fs_operand operand = dense_operand(&p.A);
            const fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
            fs_lstsq_options options = FS_LSTSQ_INIT;
            fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
            options.method = FS_LSTSQ_NORMAL, options.measure_error = 1;
            options.lambda = ridge ? pow(norm_of(&p.A) * pow(10, -exponent), 2) : 0;
            MUST(fs_lstsq(ctx, &operand, &p.B, &options, &X, &report));
            char what[80];
            snprintf(what, sizeof what, "condition 1e%d, lambda %g", exponent, options.lambda);
            if (report.converged != 1 || report.rank != N) fail_msg("%s: rank %d", what, (int)report.rank);
            expect_at_most(what, report.true_backward_error, 0x1p-51);
            if (exponent <= 12) {
                if (report.method != FS_LSTSQ_NORMAL) fail_msg("%s: became method %d", what, report.method);
                expect_at_most(what, (double)report.iterations, 6);
            }
            problem_free(&p);
        }
}

static void reports_and_options_may_be_absent(void **state)
{
    (void)state;
    double x[COUNT], y[COUNT];
    fs_lstsq_report report;
    const fs_operand operand = dense_operand(&hard.A);
    const fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
    MUST(fs_lstsq(ctx, &operand, &hard.B, NULL, &X, NULL));
    const fs_lstsq_options options = FS_LSTSQ_INIT;
    MUST(solve(&options, y, &report));
    assert_memory_equal(x, y, sizeof x);
}

/* sketches of the caller ---------------------------------------------------------------------------------------------- */

static void sketches_of_the_caller_are_taken(void **state)
{
    (void)state;
    double want[COUNT], *a = doubles_of(&hard.A), *b = doubles_of(&hard.B);
    lapack_solve(D, N, RHS, a, b, 1e-15, want);
    for (int i = 0; i < recipe_count; i++) {
        const fs_spec spec = spec_at(&recipes[i], D, 64, 5);
        fs_sketch *S = sketch_of(&spec);
        double x[COUNT], error = 0, size = 0;
        fs_lstsq_options options = FS_LSTSQ_INIT;
        fs_lstsq_report report;
        options.sketch = S;
        MUST(solve(&options, x, &report));
        for (int j = 0; j < COUNT; j++) error = hypot(error, x[j] - want[j]), size = hypot(size, want[j]);
        if (report.method != FS_LSTSQ_ITERATE || report.k != spec.k) fail_msg("%s: not used", recipes[i].name);
        if (!report.converged) fail_msg("%s: %s", recipes[i].name, report.note);
        expect_at_most(recipes[i].name, error / size, 1e-6);
        fs_sketch_destroy(S);
    }
    free(a), free(b);
}

/* One with barely n rows, one that loses columns of A: the solution for A, or a report that it is not. */
static void bad_sketches_are_survived(void **state)
{
    (void)state;
    view A = view_make(ROWS, D, N, FS_F64), B = view_make(ROWS, D, 1, FS_F64);
    fill_normal(&A.m, 8), fill_normal(&B.m, 9);
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < N; j++)
            put(&A.m, i, j, i == j ? 1 : 1e-9 * at(&A.m, i, j)); /* rows of I, and little else */
    for (uint64_t seed = 0; seed < 12; seed++) {
        fs_spec spec = FS_SPEC_INIT;
        spec.d = D, spec.k = N + 1, spec.seed = seed, spec.kappa = 1, spec.s = 1, spec.M = 1;
        fs_sketch *S = sketch_of(&spec);
        double x[N];
        const fs_operand operand = dense_operand(&A.m);
        const fs_matrix X = fs_row_major(x, N, 1, FS_F64);
        fs_lstsq_options options = FS_LSTSQ_INIT;
        fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
        options.sketch = S;
        MUST(fs_lstsq(ctx, &operand, &B.m, &options, &X, &report));
        double *a = doubles_of(&A.m), *b = doubles_of(&B.m);
        const double error = backward_error(D, N, a, b, x);
        if (report.converged && report.rank == N) expect_at_most("a bad sketch", error, 1e-14);
        if (!report.converged || report.rank < N) assert_true(strlen(report.note) > 0);
        assert_true(report.iterations <= 200);
        free(a), free(b);
        fs_sketch_destroy(S);
    }
    view_free(&A), view_free(&B);
}

/* what is refused ------------------------------------------------------------------------------------------------------ */

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    double x[COUNT];
    fs_lstsq_report report;
    const fs_operand operand = dense_operand(&hard.A);
    fs_matrix X = fs_row_major(x, N, RHS, FS_F64), B = hard.B;
    fs_lstsq_options options = FS_LSTSQ_INIT;
    static const double bad[] = {-1, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        const fs_lstsq_options start = FS_LSTSQ_INIT;
        options = start, options.lambda = bad[i];
        REFUSED(solve(&options, x, &report), FS_EINVAL, "lambda", "at least 0");
        options = start, options.rcond = bad[i];
        REFUSED(solve(&options, x, &report), FS_EINVAL, "rcond", "below 1");
        options = start, options.tolerance = bad[i];
        REFUSED(solve(&options, x, &report), FS_EINVAL, "tolerance", "below 1");
        options = start, options.max_iterations = -1 - i;
        REFUSED(solve(&options, x, &report), FS_EINVAL, "max_iterations = -");
        options = start, options.method = (fs_lstsq_method)(4 + i);
        REFUSED(solve(&options, x, &report), FS_EINVAL, "method is", "0 to 3");
        options = start, options.measure_error = 2 + i;
        REFUSED(solve(&options, x, &report), FS_EINVAL, "measure_error is");
    }
    REFUSED(fs_lstsq(NULL, &operand, &B, NULL, &X, NULL), FS_EINVAL, "ctx is NULL");
    REFUSED(fs_lstsq(ctx, NULL, &B, NULL, &X, NULL), FS_EINVAL, "A is NULL");
    REFUSED(fs_lstsq(ctx, &operand, NULL, NULL, &X, NULL), FS_EINVAL, "B is NULL");
    REFUSED(fs_lstsq(ctx, &operand, &B, NULL, NULL, NULL), FS_EINVAL, "X is NULL");
    fs_operand two = operand;
    const fs_sparse sparse = {.rows = 1};
    two.sparse = &sparse;
    REFUSED(fs_lstsq(ctx, &two, &B, NULL, &X, NULL), FS_EINVAL, "2 of A.dense");
    two.dense = NULL, two.sparse = NULL;
    REFUSED(fs_lstsq(ctx, &two, &B, NULL, &X, NULL), FS_EINVAL, "0 of A.dense");
    B.rows--;
    REFUSED(fs_lstsq(ctx, &operand, &B, NULL, &X, NULL), FS_EINVAL, "B is 899 x 2", "900 x 2");
    B = hard.B, B.cols = 0;
    REFUSED(fs_lstsq(ctx, &operand, &B, NULL, &X, NULL), FS_EINVAL, "B has no columns");
    X.rows--;
    REFUSED(fs_lstsq(ctx, &operand, &hard.B, NULL, &X, NULL), FS_EINVAL, "X is 13 x 2", "14 x 2");
    X.rows++, X.memory = FS_MEMORY_CUDA;
    REFUSED(fs_lstsq(ctx, &operand, &hard.B, NULL, &X, NULL), FS_EINVAL, "X is in cuda memory");
    X = hard.B, X.rows = N;
    REFUSED(fs_lstsq(ctx, &operand, &hard.B, NULL, &X, NULL), FS_EINVAL, "X overlaps B");
    X = hard.A, X.rows = N, X.cols = RHS;
    REFUSED(fs_lstsq(ctx, &operand, &hard.B, NULL, &X, NULL), FS_EINVAL, "X overlaps A");
    static const int64_t sizes[][2] = {{D - 1, 40}, {D, N - 1}};
    for (int i = 0; i < 2; i++) {
        const fs_lstsq_options start = FS_LSTSQ_INIT;
        fs_spec spec = FS_SPEC_INIT;
        spec.d = sizes[i][0], spec.k = sizes[i][1];
        options = start, options.sketch = sketch_of(&spec);
        REFUSED(solve(&options, x, &report), FS_EINVAL, "the sketch is for", "at least its 14 columns");
        fs_sketch_destroy((fs_sketch *)options.sketch);
    }
}

/* NaN and Inf in A or B, whatever A is and whichever the method: refused, X as it was. */
static void numbers_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    static const int64_t rows[] = {600, 60, 5};
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
        for (int shape = 0; shape < 3; shape++)
            for (int method = 0; method < 4; method++)
                for (int kind = 0; kind < 6; kind++) {
                    view A = view_make(ROWS, rows[shape], N, (fs_dtype)dtype),
                         B = view_make(ROWS, rows[shape], 3, FS_F64), X = view_make(ROWS, N, 3, FS_F64);
                    fill_whole(&A.m, 1, 9), fill_whole(&B.m, 2, 9);
                    if (kind % 2) put(&A.m, rows[shape] / 2, N - 1, bad[kind / 2]);
                    else put(&B.m, rows[shape] - 1, 2, bad[kind / 2]);
                    view_seal(&X);
                    fs_operand operand = dense_operand(&A.m);
                    fs_lstsq_options options = FS_LSTSQ_INIT;
                    options.method = (fs_lstsq_method)method;
                    REFUSED(fs_lstsq(ctx, &operand, &B.m, &options, &X.m, NULL), FS_EINVAL, "not finite",
                            kind % 2 ? "A has" : "column 2 of B");
                    expect_untouched("X", &X);
                    if (dtype <= FS_F64 && method != FS_LSTSQ_NORMAL) {
                        fs_sparse sparse = sparse_of(&A.m, 3, FS_CSR, FS_INDEX32);
                        operand = sparse_operand(&sparse);
                        REFUSED(fs_lstsq(ctx, &operand, &B.m, &options, &X.m, NULL), FS_EINVAL, "not finite");
                        sparse_free(&sparse);
                        expect_untouched("X", &X);
                    }
                    view_free(&A), view_free(&B), view_free(&X);
                }
}

/* bits ------------------------------------------------------------------------------------------------------------------ */

static void every_run_has_the_same_bits(void **state)
{
    (void)state;
    static const int64_t rows[] = {D, 100, 9};
    for (int shape = 0; shape < 3; shape++)
        for (int method = 0; method < 4; method++) {
            double first[COUNT], x[COUNT];
            fs_lstsq_report report;
            const fs_lstsq_report start = FS_LSTSQ_REPORT_INIT;
            fs_lstsq_report before = start;
            fs_matrix A = hard.A, B = hard.B;
            A.rows = B.rows = rows[shape];
            for (int run = 0; run < 20; run++) {
                fs_context *threads = context_of(NULL, 1 + run % 4);
                const fs_operand operand = dense_operand(&A);
                const fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
                fs_lstsq_options options = FS_LSTSQ_INIT;
                options.method = (fs_lstsq_method)method, options.measure_error = 1;
                report = start;
                MUST(fs_lstsq(threads, &operand, &B, &options, &X, &report));
                if (run) assert_memory_equal(x, first, sizeof x);
                if (run) assert_true(report.true_backward_error == before.true_backward_error);
                memcpy(first, x, sizeof x);
                before = report;
                fs_context_destroy(threads);
            }
        }
}

static void seeds_change_the_sketch_alone(void **state)
{
    (void)state;
    double first[COUNT];
    for (uint64_t seed = 0; seed < 4; seed++) {
        double x[COUNT], error = 0, size = 0;
        fs_lstsq_options options = FS_LSTSQ_INIT;
        fs_lstsq_report report;
        options.method = FS_LSTSQ_ITERATE, options.seed = seed;
        MUST(solve(&options, x, &report));
        if (!seed) memcpy(first, x, sizeof x);
        for (int i = 0; i < COUNT; i++) error = hypot(error, x[i] - first[i]), size = hypot(size, x[i]);
        assert_true(!seed || error > 0);
        expect_at_most("another seed", error / size, 1e-6);
    }
}

/* memory ---------------------------------------------------------------------------------------------------------------- */

/* The n-th allocation fails, for each n: FS_ENOMEM, X as it was, nothing lost, the context usable. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const int64_t rows[] = {D, 100, 9};
    for (int shape = 0; shape < 3; shape++)
        for (int kind = 0; kind < 4; kind++) { /* dense f32, sparse, slices, dense of rank 13 and rcond */
            view A = view_make(ROWS, rows[shape], N, kind == 0 ? FS_F32 : FS_F64),
                 B = view_make(ROWS, rows[shape], RHS, FS_F32);
            fill_whole(&A.m, 1, 9), fill_whole(&B.m, 2, 9);
            for (int64_t i = 0; i < rows[shape] && kind == 3; i++)
                put(&A.m, i, 1, at(&A.m, i, 4) + 1e-3 * at(&A.m, i, 1));
            fs_sparse sparse = sparse_of(&A.m, 3, FS_CSC, FS_INDEX32);
            slicer s;
            fs_operand operand = slicer_open(&s, &A.m, 100, 0);
            if (kind != 2) operand = kind == 1 ? sparse_operand(&sparse) : dense_operand(&A.m);
            int needed = 0;
            for (int done = 0; !done; needed++) {
                scarce memory = {1 << 20, 0};
                fs_context_options where = FS_CONTEXT_INIT;
                fs_context *little;
                where.backend = FS_BACKEND_CPU, where.threads = 1, where.allocator = scarce_allocator(&memory);
                MUST(fs_context_create(&little, &where));
                fs_lstsq_options options = FS_LSTSQ_INIT;
                options.measure_error = 1, options.rcond = kind == 3 ? 1e-2 : 0;
                view X = view_make(ROWS, N, RHS, FS_F64);
                view_seal(&X);
                memory.left = needed;
                const fs_result result = fs_lstsq(little, &operand, &B.m, &options, &X.m, NULL);
                done = result == FS_OK;
                if (!done) {
                    REFUSED(result, FS_ENOMEM, "memory");
                    expect_untouched("X", &X);
                    memory.left = 1 << 20;
                    MUST(fs_lstsq(little, &operand, &B.m, &options, &X.m, NULL));
                }
                fs_context_destroy(little);
                assert_int_equal(memory.live, 0);
                view_free(&X);
            }
            assert_true(needed > 8);
            slicer_close(&s);
            sparse_free(&sparse);
            view_free(&A), view_free(&B);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tolerances_are_kept),
        cmocka_unit_test(a_tolerance_out_of_reach_is_said),
        cmocka_unit_test(max_iterations_is_a_limit),
        cmocka_unit_test(reports_are_true),
        cmocka_unit_test(squares_are_shifted_and_refined),
        cmocka_unit_test(reports_and_options_may_be_absent),
        cmocka_unit_test(sketches_of_the_caller_are_taken),
        cmocka_unit_test(bad_sketches_are_survived),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(numbers_that_are_not_finite_are_refused),
        cmocka_unit_test(every_run_has_the_same_bits),
        cmocka_unit_test(seeds_change_the_sketch_alone),
        cmocka_unit_test(every_allocation_may_fail),
    };
    need_openblas();
    return cmocka_run_group_tests(tests, open_problem, close_problem);
}
