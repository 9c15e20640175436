/* leverage.c - fs_leverage: exact scores are the squared row lengths of LAPACK's Q; estimated ones have the error of
 * the report. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"
#include "tests/support/scarce.h"
#include "tests/support/sources.h"

static fs_leverage_options options_of(int exact, double error)
{
    fs_leverage_options o = FS_LEVERAGE_INIT;
    o.exact = exact, o.error = error, o.seed = 3;
    return o;
}

/* Squared row lengths of LAPACK's Q of the columns `list` (count of them; NULL: all), which are independent. */
static double *true_scores(const fs_matrix *A, const int64_t *list, int64_t count)
{
    const int64_t d = A->rows, n = list ? count : A->cols;
    double *columns = room(d * n, 8), *Q = room(d * n, 8), *R = room(n * n, 8), *scores = room(d, 8);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++) columns[i * n + j] = at(A, i, list ? list[j] : j);
    lapack_qr(d, n, columns, NULL, Q, R);
    for (int64_t i = 0; i < d; i++) {
        scores[i] = 0;
        for (int64_t j = 0; j < n; j++) scores[i] += Q[i * n + j] * Q[i * n + j];
    }
    free(columns), free(Q), free(R);
    return scores;
}

static void expect_scores(const char *what, int64_t d, const double *got, const double *want, double slack)
{
    for (int64_t i = 0; i < d; i++)
        if (!(fabs(got[i] - want[i]) <= slack))
            fail_msg("%s: score %d is %.17g, it must be %.17g; off by %g, allowed %g", what, (int)i, got[i], want[i],
                     got[i] - want[i], slack);
}

/* The report's numbers against the scores. */
static void expect_report(const char *what, int64_t d, const double *scores, const fs_leverage_report *report)
{
    double sum = 0;
    int64_t largest = 0;
    for (int64_t i = 0; i < d; i++) {
        sum += scores[i];
        if (scores[i] > scores[largest]) largest = i;
    }
    expect_below(what, fabs(report->sum - sum), 1e-13 * (1 + sum));
    assert_int_equal(report->row, largest);
    assert_true(report->largest == scores[largest]);
    assert_true(report->seconds > 0);
}

/* A of singular values from 1 to 1 / condition; row d / 3 is large, rows from d - 5 on are 0 where `tall`. */
static view matrix_of(layout how, int64_t d, int64_t n, fs_dtype dtype, double condition)
{
    problem p = problem_make(d, n, 1, FS_F64, condition, 0, 11);
    view A = view_make(how, d, n, dtype);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++)
            put(&A.m, i, j, (d > n + 10 && i == d / 3 ? 5 : d > n + 10 && i >= d - 5 ? 0 : 1) * at(&p.A, i, j));
    problem_free(&p);
    return A;
}

/* exact ------------------------------------------------------------------------------------------------------------ */

static void exact_scores_are_row_lengths_of_q(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{500, 30}, {17000, 4}, {90, 30}, {30, 30}, {300, 1}, {1, 1}};
    static const double conditions[] = {2, 1e5, 1e12};
    fs_context *ctx = context_of(NULL, 0);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s += THIN)
        for (int c = 0; c < 3; c++)
            for (int dtype = FS_F32; dtype <= FS_F64; dtype++) {
                if (dtype == FS_F32 && c == 2) continue;
                const int64_t d = shapes[s][0], n = shapes[s][1];
                view A = matrix_of(ROWS, d, n, (fs_dtype)dtype, conditions[c]);
                char what[80];
                snprintf(what, sizeof what, "%d x %d, condition %g, type %d", (int)d, (int)n, conditions[c], dtype);
                double *want = true_scores(&A.m, NULL, 0), *got = room(d, 8);
                const fs_operand operand = dense_operand(&A.m);
                const fs_leverage_options o = options_of(1, 0);
                fs_leverage_report report = FS_LEVERAGE_REPORT_INIT;
                MUST(fs_leverage(ctx, &operand, &o, got, &report));
                /* Q's range moves by rounding times the condition. */
                expect_scores(what, d, got, want, 1e-14 + 20 * conditions[c] * 0x1p-53);
                expect_report(what, d, got, &report);
                expect_below(what, fabs(report.sum - (double)n), 1e-12);
                assert_int_equal(report.rank, n);
                assert_int_equal(report.reads, 3);
                assert_true(report.error == 0);
                free(want), free(got);
                view_free(&A);
            }
    fs_context_destroy(ctx);
}

static void every_type_and_layout(void **state)
{
    (void)state;
    fs_context *ctx = context_of(NULL, 0);
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
        for (int how = 0; how < OUTPUT_LAYOUTS; how += THIN) {
            view A = matrix_of((layout)how, 150, 9, (fs_dtype)dtype, 20);
            double *want = true_scores(&A.m, NULL, 0), got[150];
            const fs_operand operand = dense_operand(&A.m);
            for (int exact = 0; exact < 2; exact++) {
                const fs_leverage_options o = options_of(exact, 0.05);
                MUST(fs_leverage(ctx, &operand, &o, got, NULL));
                expect_scores(layout_names[how], 150, got, want, exact ? 1e-13 : 0.25);
            }
            free(want);
            view_free(&A);
        }
    fs_context_destroy(ctx);
}

/* Dependent columns add nothing: the scores are those of a basis.  A zero matrix has none. */
static void dependent_columns_do_not_count(void **state)
{
    (void)state;
    enum { D = 300, N = 9 };
    static const int64_t independent[] = {0, 1, 3, 4, 6, 7};
    fs_context *ctx = context_of(NULL, 0);
    for (int dtype = FS_F32; dtype <= FS_F64; dtype++)
        for (int exact = 0; exact < 2; exact++) {
            view A = matrix_of(ROWS, D, N, (fs_dtype)dtype, 10);
            for (int64_t i = 0; i < D; i++) {
                put(&A.m, i, 2, 0);
                put(&A.m, i, 5, at(&A.m, i, 1));
                put(&A.m, i, 8, 2 * at(&A.m, i, 7));
            }
            double *want = true_scores(&A.m, independent, 6), got[D];
            const fs_operand operand = dense_operand(&A.m);
            const fs_leverage_options o = options_of(exact, 0.05);
            fs_leverage_report report = FS_LEVERAGE_REPORT_INIT;
            MUST(fs_leverage(ctx, &operand, &o, got, &report));
            assert_int_equal(report.rank, 6);
            expect_scores("dependent", D, got, want, exact ? 1e-5 : 0.25);
            expect_report("dependent", D, got, &report);
            expect_below("sum", fabs(report.sum - 6), exact ? 1e-12 : 0.3);
            for (int64_t i = 0; i < D; i++)
                for (int64_t j = 0; j < N; j++) put(&A.m, i, j, 0);
            MUST(fs_leverage(ctx, &operand, &o, got, &report));
            for (int64_t i = 0; i < D; i++) assert_true(got[i] == 0);
            assert_true(report.rank == 0 && report.sum == 0 && report.largest == 0 && report.row == 0);
            free(want);
            view_free(&A);
        }
    fs_context_destroy(ctx);
}

/* A that is I above zeros has scores of 1 and 0: its coherence is 1. */
static void rows_of_the_identity_have_score_1(void **state)
{
    (void)state;
    enum { D = 800, N = 20 };
    view A = view_make(ROWS, D, N, FS_F64);
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < N; j++) put(&A.m, i, j, i == 40 * j + 7 ? pow(0.5, (double)j) : 0);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m);
    for (int exact = 0; exact < 2; exact++) {
        const fs_leverage_options o = options_of(exact, 0.1);
        fs_leverage_report report = FS_LEVERAGE_REPORT_INIT;
        double got[D];
        MUST(fs_leverage(ctx, &operand, &o, got, &report));
        for (int64_t i = 0; i < D; i++)
            expect_below("score", fabs(got[i] - (i % 40 == 7)), exact ? 1e-14 : i % 40 == 7 ? 0.4 : 0);
        expect_report("identity", D, got, &report);
        if (exact) expect_below("coherence", fabs(report.largest - 1), 1e-14);
        assert_int_equal(report.rank, N);
    }
    view_free(&A);
    fs_context_destroy(ctx);
}

/* estimated -------------------------------------------------------------------------------------------------------- */

/* Over seeds and rows, the relative error has the spread that is reported, and no bias; few columns of signs (n > p) and
 * none. */
static void estimates_have_the_error_that_is_reported(void **state)
{
    (void)state;
    enum { D = 400, N = 40, DRAWS = 60 / THIN };
    static const double errors[] = {0.1, 0.25, 0.5, 1};
    fs_context *ctx = context_of(NULL, 1);
    for (int kind = 0; kind < 2; kind++) { /* even rows; a few of high leverage */
        view A = view_make(ROWS, D, N, FS_F64);
        for (int64_t i = 0; i < D; i++)
            for (int64_t j = 0; j < N; j++)
                put(&A.m, i, j, normal_at(6, i * N + j) * (kind ? pow(10, -2.0 * (double)(i % 10) / 9) : 1));
        double *want = true_scores(&A.m, NULL, 0), got[D];
        for (int e = 0; e < 4; e++)
            for (int own = 0; own < 2; own++) { /* the caller's, a Gaussian, of which the theory is; the solver's */
                double square = 0, bias = 0, reported = 0;
                for (int draw = 0; draw < DRAWS; draw++) {
                    fs_leverage_options o = options_of(0, errors[e]);
                    fs_spec spec = FS_SPEC_INIT;
                    spec.family = FS_GAUSSIAN, spec.d = D, spec.k = 3 * N, spec.seed = (uint64_t)draw;
                    fs_sketch *S = own ? NULL : sketch_of(&spec);
                    o.sketch = S;
                    o.seed = (uint64_t)draw + 1000;
                    const fs_operand operand = dense_operand(&A.m);
                    fs_leverage_report report = FS_LEVERAGE_REPORT_INIT;
                    MUST(fs_leverage(ctx, &operand, &o, got, &report));
                    fs_sketch_destroy(S);
                    assert_int_equal(report.reads, 2);
                    reported = report.error;
                    if (own) expect_below("error that was asked for", report.error, errors[e] * 1.0000001);
                    for (int64_t i = 0; i < D; i++) {
                        const double off = got[i] / want[i] - 1;
                        square += off * off, bias += off;
                    }
                }
                const double count = (double)D * DRAWS, spread = sqrt(square / count);
                char what[80];
                snprintf(what, sizeof what, "kind %d, error %g, own %d: spread over %g", kind, errors[e], own,
                         reported);
                if (reported == 0) expect_below(what, spread, 1e-12); /* A itself was factored */
                else expect_below(what, fabs(log(spread / reported)), 0.25);
                /* Rows of a draw err together: the mean is as good as the number of draws. */
                expect_below("bias", fabs(bias / count), 0.1 * sqrt((double)THIN) * reported + 1e-12);
            }
        free(want);
        view_free(&A);
    }
    fs_context_destroy(ctx);
}

/* sources ---------------------------------------------------------------------------------------------------------- */

/* Integers, mostly 0. */
static view whole_matrix(int64_t d, int64_t n, fs_dtype dtype)
{
    view A = view_make(ROWS, d, n, dtype);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++)
            put(&A.m, i, j, i < n ? i == j : bits_at(9, i * n + j) % 4 ? 0 : whole_at(2, i * n + j, 9));
    return A;
}

static void sparse_and_slices_are_dense(void **state)
{
    (void)state;
    enum { D = 420, N = 12 };
    fs_context *ctx = context_of(NULL, 0);
    for (int dtype = FS_F32; dtype <= FS_F64; dtype++) {
        view A = whole_matrix(D, N, (fs_dtype)dtype);
        double *want = true_scores(&A.m, NULL, 0), first[D], got[D];
        for (int kind = 0; kind < 3; kind++) { /* exact; sketched; signs too */
            static const double errors[] = {0, 0.2, 0.7};
            const fs_leverage_options o = options_of(kind == 0, errors[kind]);
            fs_leverage_report report = FS_LEVERAGE_REPORT_INIT;
            const fs_operand dense = dense_operand(&A.m);
            MUST(fs_leverage(ctx, &dense, &o, first, &report));
            if (!kind) expect_scores("dense", D, first, want, 1e-13);
            for (int source = 0; source < 4; source++) {
                fs_sparse sparse = {0};
                slicer s;
                fs_operand operand = slicer_open(&s, &A.m, 37, source == 3 ? 2 : 0);
                if (source < 2) {
                    sparse = sparse_of(&A.m, 5, source ? FS_CSC : FS_CSR, source ? FS_INDEX64 : FS_INDEX32);
                    operand = sparse_operand(&sparse);
                }
                char what[60];
                snprintf(what, sizeof what, "type %d, kind %d, source %d", dtype, kind, source);
                MUST(fs_leverage(ctx, &operand, &o, got, &report));
                expect_scores(what, D, got, first, dtype == FS_F32 && kind ? 1e-4 : 1e-12);
                expect_report(what, D, got, &report);
                assert_int_equal(report.reads, kind ? 2 : 3);
                if (source >= 2) assert_int_equal(s.reads, report.reads);
                for (s.fail_read = 1; source >= 2 && s.fail_read <= report.reads; s.fail_read++) {
                    s.reads = 0;
                    REFUSED(fs_leverage(ctx, &operand, &o, got, NULL), FS_EFILE, "cannot be read");
                }
                if (sparse.ptr) sparse_free(&sparse);
                slicer_close(&s);
            }
        }
        free(want);
        view_free(&A);
    }
    fs_context_destroy(ctx);
}

typedef struct shared {
    double scores[200];
    fs_leverage_report reports[MOST_RANKS];
    int exact, failing;
} shared;
static fs_result score_rank(rank_thread *r, void *user)
{
    shared *s = user;
    const fs_operand operand = dense_operand(&r->A);
    fs_leverage_options o = options_of(s->exact, 0.3);
    o.ranks = &r->ranks;
    if (r->number == s->failing) o.rcond = 2;
    const fs_leverage_report start = FS_LEVERAGE_REPORT_INIT;
    s->reports[r->number] = start;
    return fs_leverage(r->ctx, &operand, &o, s->scores + r->ranks.row0, &s->reports[r->number]);
}

static void ranks_are_whole(void **state)
{
    (void)state;
    static const int64_t cuts[MOST_RANKS][MOST_RANKS + 1] = {
        {0, 200}, {0, 3, 200}, {0, 61, 61, 200}, {0, 50, 100, 150, 200}, {0, 199, 199, 199, 200, 200}};
    view A = matrix_of(ROWS_PADDED, 200, 8, FS_F64, 1e3);
    for (int64_t j = 0; j < 8; j++) put(&A.m, 150, j, 100 + (double)(j * j));
    fs_context *ctx = context_of(NULL, 1);
    for (int exact = 0; exact < 2; exact++) {
        double whole[200];
        fs_leverage_report report = FS_LEVERAGE_REPORT_INIT;
        const fs_operand operand = dense_operand(&A.m);
        const fs_leverage_options o = options_of(exact, 0.3);
        MUST(fs_leverage(ctx, &operand, &o, whole, &report));
        assert_int_equal(report.row, 150);
        for (int count = 1; count <= MOST_RANKS; count++) {
            shared s = {.exact = exact, .failing = -1};
            rank_thread ranks[MOST_RANKS];
            run_ranks(ranks, count, cuts[count - 1], &A.m, 1, score_rank, &s);
            expect_scores("ranks", 200, s.scores, whole, 1e-10);
            for (int i = 0; i < count; i++) {
                assert_int_equal(s.reports[i].rank, 8);
                assert_true(s.reports[i].largest == s.reports[0].largest && s.reports[i].row == s.reports[0].row);
                assert_true(s.reports[i].sum == s.reports[0].sum && s.reports[i].error == report.error);
            }
            expect_report("ranks", 200, s.scores, &s.reports[0]);
            for (s.failing = 0; s.failing < count; s.failing++) {
                run_ranks(ranks, count, cuts[count - 1], &A.m, 0, score_rank, &s);
                for (int i = 0; i < count; i++) assert_non_null(strstr(ranks[i].message, "rcond is 2"));
            }
        }
    }
    view_free(&A);
    fs_context_destroy(ctx);
}

/* failures --------------------------------------------------------------------------------------------------------- */

static void bad_arguments_have_messages(void **state)
{
    (void)state;
    view A = matrix_of(ROWS, 50, 5, FS_F64, 3), wide = view_make(ROWS, 5, 50, FS_F64);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m), wide_operand = dense_operand(&wide.m);
    const fs_operand none = FS_OPERAND_INIT;
    double scores[50];
    REFUSED(fs_leverage(NULL, &operand, NULL, scores, NULL), FS_EINVAL, "ctx is NULL");
    REFUSED(fs_leverage(ctx, NULL, NULL, scores, NULL), FS_EINVAL, "A is NULL");
    REFUSED(fs_leverage(ctx, &none, NULL, scores, NULL), FS_EINVAL, "0 of A.dense");
    REFUSED(fs_leverage(ctx, &operand, NULL, NULL, NULL), FS_EINVAL, "scores is NULL");
    REFUSED(fs_leverage(ctx, &wide_operand, NULL, scores, NULL), FS_EINVAL, "5 x 50");
    fs_leverage_options o = options_of(2, 0);
    REFUSED(fs_leverage(ctx, &operand, &o, scores, NULL), FS_EINVAL, "exact is 2");
    static const double errors[] = {-0.1, 1e-4, 1.5, NAN, INFINITY}, rconds[] = {1, -1e-9, NAN};
    for (int i = 0; i < 5; i++) {
        o = options_of(0, errors[i]);
        REFUSED(fs_leverage(ctx, &operand, &o, scores, NULL), FS_EINVAL, "error is", "0.001 to 1");
    }
    for (int i = 0; i < 3; i++) {
        o = options_of(0, 0);
        o.rcond = rconds[i];
        REFUSED(fs_leverage(ctx, &operand, &o, scores, NULL), FS_EINVAL, "rcond is");
    }
    fs_spec spec = FS_SPEC_INIT;
    spec.d = 51, spec.k = 20;
    fs_sketch *S = sketch_of(&spec);
    o = options_of(0, 0);
    o.sketch = S;
    REFUSED(fs_leverage(ctx, &operand, &o, scores, NULL), FS_EINVAL, "d = 51", "50 rows");
    fs_sketch_destroy(S);
    view_free(&A), view_free(&wide);
    fs_context_destroy(ctx);
}

static void elements_that_are_not_finite(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    fs_context *ctx = context_of(NULL, 0);
    for (int b = 0; b < 3; b++)
        for (int exact = 0; exact < 2; exact++)
            for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
                for (int64_t row = 0; row < 300; row += 20) {
                    view A = matrix_of(ROWS, 300, 5, (fs_dtype)dtype, 3);
                    put(&A.m, row, 3, bad[b]);
                    fs_spec spec = FS_SPEC_INIT;
                    spec.family = FS_BLOCKROW, spec.d = 300, spec.k = 64;
                    fs_sketch *S = sketch_of(&spec);
                    const fs_operand operand = dense_operand(&A.m);
                    fs_leverage_options o = options_of(exact, 0);
                    o.sketch = row % 40 ? S : NULL; /* FlashBlockRow samples rows: the element may not be in S A */
                    double scores[300];
                    REFUSED(fs_leverage(ctx, &operand, &o, scores, NULL), FS_EINVAL, "not finite");
                    view_free(&A);
                    fs_sketch_destroy(S);
                }
    fs_context_destroy(ctx);
}

static void runs_give_the_same_bits(void **state)
{
    (void)state;
    enum { D = 6000, N = 24 };
    view A = matrix_of(ROWS, D, N, FS_F32, 1e3);
    const fs_operand operand = dense_operand(&A.m);
    double *first = room(D, 8), *again = room(D, 8);
    static const double errors[] = {0.1, 0.5, 0};
    for (int kind = 0; kind < 3; kind++)
        for (int run = 0; run < 21; run += 1 + 4 * (THIN - 1)) {
            const fs_leverage_options o = options_of(kind == 2, errors[kind]);
            fs_context *ctx = context_of(NULL, 1 + run % 4);
            MUST(fs_leverage(ctx, &operand, &o, run ? again : first, NULL));
            fs_context_destroy(ctx);
            if (run) assert_memory_equal(again, first, D * 8);
        }
    free(first), free(again);
    view_free(&A);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    view A = whole_matrix(300, 20, FS_F32);
    for (int64_t i = 0; i < 300; i++) put(&A.m, i, 19, at(&A.m, i, 0));
    fs_sparse sparse = sparse_of(&A.m, 4, FS_CSC, FS_INDEX32);
    for (int kind = 0; kind < 4; kind++) {
        int allocations = 0;
        for (fs_result result = FS_ENOMEM; result != FS_OK; allocations++) {
            assert_true(allocations < 200);
            scarce s = {1000, 0};
            fs_context_options where = FS_CONTEXT_INIT;
            where.backend = FS_BACKEND_CPU;
            where.allocator = scarce_allocator(&s);
            fs_context *ctx;
            MUST(fs_context_create(&ctx, &where));
            const fs_operand operand = kind % 2 ? sparse_operand(&sparse) : dense_operand(&A.m);
            const fs_leverage_options o = options_of(kind / 2, 0.7);
            double scores[300];
            s.left = allocations;
            result = fs_leverage(ctx, &operand, &o, scores, NULL);
            if (result != FS_OK) REFUSED(result, FS_ENOMEM, "no memory");
            fs_context_destroy(ctx);
            assert_int_equal(s.live, 0);
        }
        assert_true(allocations > 12);
    }
    sparse_free(&sparse);
    view_free(&A);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_scores_are_row_lengths_of_q),
        cmocka_unit_test(every_type_and_layout),
        cmocka_unit_test(dependent_columns_do_not_count),
        cmocka_unit_test(rows_of_the_identity_have_score_1),
        cmocka_unit_test(estimates_have_the_error_that_is_reported),
        cmocka_unit_test(sparse_and_slices_are_dense),
        cmocka_unit_test(ranks_are_whole),
        cmocka_unit_test(bad_arguments_have_messages),
        cmocka_unit_test(elements_that_are_not_finite),
        cmocka_unit_test(runs_give_the_same_bits),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return RUN_TASK_TESTS(tests);
}
