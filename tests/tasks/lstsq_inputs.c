/* lstsq_inputs.c - fs_lstsq has the same answer for A in every type and layout, sparse, in slices from a callback, and
 * with its rows spread over ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"
#include "tests/support/sources.h"

enum { D = 700, N = 12, RHS = 2, COUNT = N * RHS };

static fs_context *ctx;
static int open_context(void **state)
{
    (void)state;
    ctx = context_of(NULL, 2);
    return 0;
}
static int close_context(void **state)
{
    (void)state;
    fs_context_destroy(ctx);
    return 0;
}

static void reference(const fs_matrix *A, const fs_matrix *B, double *x)
{
    double *a = doubles_of(A), *b = doubles_of(B);
    lapack_solve(A->rows, A->cols, B->cols, a, b, 1e-14, x);
    free(a), free(b);
}

static void expect_answer(const char *what, const double *x, const double *want, double slack)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < COUNT; i++) error = hypot(error, x[i] - want[i]), size = hypot(size, want[i]);
    expect_at_most(what, error / size, slack);
}

/* Well-conditioned integers, small enough for f16: every type has the same A. */
static void fill(const fs_matrix *A, const fs_matrix *B)
{
    fill_whole(A, 7, 9);
    for (int64_t i = 0; i < A->rows; i += 3)
        for (int64_t j = 0; j < A->cols; j += 2) put(A, i, j, 0);
    fill_whole(B, 8, 50);
}

/* types and layouts ------------------------------------------------------------------------------------------------ */

static void types_and_layouts_of_a(void **state)
{
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
        for (int how = 0; how < OUTPUT_LAYOUTS; how += THIN)
            for (int method = 0; method < 4; method++) {
                view A = view_make((layout)how, D, N, (fs_dtype)dtype), B = view_make(ROWS, D, RHS, FS_F64);
                double x[COUNT], want[COUNT];
                char what[80];
                fill(&A.m, &B.m);
                view_seal(&A);
                const fs_operand operand = dense_operand(&A.m);
                const fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
                fs_lstsq_options options = FS_LSTSQ_INIT;
                options.method = (fs_lstsq_method)method;
                MUST(fs_lstsq(ctx, &operand, &B.m, &options, &X, NULL));
                reference(&A.m, &B.m, want);
                snprintf(what, sizeof what, "%s, %s, method %d", fs_dtype_name((fs_dtype)dtype), layout_names[how],
                         method);
                expect_answer(what, x, want, dtype == FS_F64 ? 1e-13 : 1e-6);
                expect_untouched(what, &A);
                view_free(&A), view_free(&B);
            }
}

/* Columns or rows on each other: rank 1.  Not for the method DIRECT, whose rounding errors of 700 equal rows, 11 times
 * the machine precision as in LAPACK, are above the default rcond. */
static void stride_zero_has_rank_one(void **state)
{
    (void)state;
    for (int how = ONE_COLUMN; how < INPUT_LAYOUTS; how++)
        for (int method = 0; method < FS_LSTSQ_DIRECT; method++) {
            view A = view_make((layout)how, D, N, FS_F64), B = view_make(ROWS, D, RHS, FS_F64);
            double x[COUNT], want[COUNT];
            fill_normal(&A.m, 1), fill_normal(&B.m, 2);
            const fs_operand operand = dense_operand(&A.m);
            const fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
            fs_lstsq_options options = FS_LSTSQ_INIT;
            fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
            options.method = (fs_lstsq_method)method;
            MUST(fs_lstsq(ctx, &operand, &B.m, &options, &X, &report));
            if (report.rank != 1) fail_msg("%s, method %d: rank %d", layout_names[how], method, (int)report.rank);
            reference(&A.m, &B.m, want);
            expect_answer(layout_names[how], x, want, 1e-12);
            view_free(&A), view_free(&B);
        }
}

static void types_and_layouts_of_b_and_x(void **state)
{
    (void)state;
    view A = view_make(ROWS, D, N, FS_F64);
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
        for (int how = 0; how < OUTPUT_LAYOUTS; how++)
            for (int method = 1; method <= 2; method++) {
                view B = view_make((layout)how, D, RHS, (fs_dtype)dtype),
                     X = view_make((layout)how, N, RHS, (fs_dtype)dtype);
                double want[COUNT];
                char what[80];
                fill(&A.m, &B.m);
                view_seal(&B), view_seal(&X);
                const fs_operand operand = dense_operand(&A.m);
                fs_lstsq_options options = FS_LSTSQ_INIT;
                options.method = (fs_lstsq_method)method;
                MUST(fs_lstsq(ctx, &operand, &B.m, &options, &X.m, NULL));
                reference(&A.m, &B.m, want);
                snprintf(what, sizeof what, "B and X in %s, %s", fs_dtype_name((fs_dtype)dtype), layout_names[how]);
                double *x = doubles_of(&X.m);
                static const double units[] = {0, 0x1p-24, 1e-13, 0x1p-11, 0x1p-8};
                expect_answer(what, x, want, 2 * units[dtype]);
                expect_padding_untouched(what, &X);
                expect_untouched(what, &B);
                free(x);
                view_free(&B), view_free(&X);
            }
    view_free(&A);
}

/* sparse -------------------------------------------------------------------------------------------------------- */

static void sparse_matrices(void **state)
{
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_F64; dtype++)
        for (int format = 0; format < 4; format++)
            for (int method = 0; method < 4; method++)
                for (int64_t d = 60; d <= D; d += D - 60) {
                    view A = view_make(ROWS, d, N, (fs_dtype)dtype), B = view_make(ROWS, d, RHS, FS_F64);
                    double x[COUNT], want[COUNT];
                    char what[80];
                    fill(&A.m, &B.m);
                    fs_sparse sparse = sparse_of(&A.m, 3, format % 2 ? FS_CSR : FS_CSC,
                                                 format / 2 ? FS_INDEX64 : FS_INDEX32);
                    const fs_operand operand = sparse_operand(&sparse);
                    const fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
                    fs_lstsq_options options = FS_LSTSQ_INIT;
                    fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
                    options.method = (fs_lstsq_method)method, options.measure_error = 1;
                    const fs_result result = fs_lstsq(ctx, &operand, &B.m, &options, &X, &report);
                    if (method == FS_LSTSQ_NORMAL && d > 8 * N) REFUSED(result, FS_EUNSUPPORTED, "NORMAL", "sparse");
                    else MUST(result);
                    reference(&A.m, &B.m, want);
                    snprintf(what, sizeof what, "sparse, format %d, method %d, %d rows", format, method, (int)d);
                    if (result == FS_OK) expect_answer(what, x, want, dtype == FS_F64 ? 1e-13 : 1e-6);
                    expect_at_most(what, report.true_backward_error, dtype == FS_F64 ? 0x1p-51 : 0x1p-26);
                    sparse_free(&sparse);
                    view_free(&A), view_free(&B);
                }
}

/* slices -------------------------------------------------------------------------------------------------------- */

static void slices_of_any_kind(void **state)
{
    (void)state;
    static const int64_t most[] = {1, 13, 256, D};
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
        for (int every = 0; every < (dtype <= FS_F64 ? 3 : 1); every++)
            for (int size = dtype == FS_F64 ? 0 : 1; size < 4; size++)
                for (int method = 0; method < 4; method++) {
                    view A = view_make(ROWS_PADDED, D, N, (fs_dtype)dtype), B = view_make(ROWS, D, RHS, FS_F64);
                    double x[COUNT], want[COUNT];
                    char what[80];
                    fill(&A.m, &B.m);
                    slicer s;
                    const fs_operand operand = slicer_open(&s, &A.m, most[size], every);
                    const fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
                    fs_lstsq_options options = FS_LSTSQ_INIT;
                    fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
                    options.method = (fs_lstsq_method)method;
                    options.measure_error = 1;
                    snprintf(what, sizeof what, "slices of %d rows, every %d sparse, %s, method %d", (int)most[size],
                             every, fs_dtype_name((fs_dtype)dtype), method);
                    const fs_result result = fs_lstsq(ctx, &operand, &B.m, &options, &X, &report);
                    if (method == FS_LSTSQ_NORMAL && (every == 1 || (every == 2 && most[size] < D))) {
                        REFUSED(result, FS_EUNSUPPORTED, "NORMAL", "sparse");
                    } else {
                        MUST(result);
                        reference(&A.m, &B.m, want);
                        expect_answer(what, x, want, dtype == FS_F64 ? 1e-13 : 1e-6);
                        /* The report counts the reads that were made. */
                        if (report.reads != s.reads)
                            fail_msg("%s: %d reads, reported %d", what, s.reads, (int)report.reads);
                    }
                    slicer_close(&s);
                    view_free(&A), view_free(&B);
                }
}

static fs_result rewind_nothing(void *user)
{
    (void)user;
    return FS_OK;
}
/* What a wrong slice is. */
static struct {
    int64_t rows, cols;
    fs_dtype dtype;
    fs_memory memory;
    void *data;
} wrong;
static fs_result next_wrong(void *user, fs_matrix *dense, const fs_sparse **sparse)
{
    (void)user, (void)sparse;
    *dense = fs_row_major(wrong.data, wrong.rows, wrong.cols, wrong.dtype);
    dense->memory = wrong.memory;
    return FS_OK;
}

static void wrong_slices_are_refused(void **state)
{
    (void)state;
    static double data[(D + 1) * (N + 1)], b[D], x[N];
    fs_slices slices = FS_SLICES_INIT;
    slices.rows = D, slices.cols = N, slices.dtype = FS_F64, slices.rewind = rewind_nothing, slices.next = next_wrong;
    fs_operand operand = FS_OPERAND_INIT;
    operand.slices = &slices;
    const fs_matrix B = fs_row_major(b, D, 1, FS_F64), X = fs_row_major(x, N, 1, FS_F64);
    static const struct {
        int64_t rows, cols;
        fs_dtype dtype;
        fs_memory memory;
        int has_data;
        const char *word;
    } all[] = {{0, N, FS_F64, FS_MEMORY_HOST, 1, "0 x 12"},       {D + 1, N, FS_F64, FS_MEMORY_HOST, 1, "701 x 12"},
               {10, N + 1, FS_F64, FS_MEMORY_HOST, 1, "10 x 13"}, {10, N, FS_F32, FS_MEMORY_HOST, 1, "f32"},
               {10, N, FS_F64, FS_MEMORY_CUDA, 1, "cuda memory"}, {10, N, FS_F64, FS_MEMORY_HOST, 0, "NULL"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        wrong.rows = all[i].rows, wrong.cols = all[i].cols, wrong.dtype = all[i].dtype, wrong.memory = all[i].memory;
        wrong.data = all[i].has_data ? data : NULL;
        REFUSED(fs_lstsq(ctx, &operand, &B, NULL, &X, NULL), FS_EINVAL, "slice", all[i].word);
    }
    slices.next = NULL;
    REFUSED(fs_lstsq(ctx, &operand, &B, NULL, &X, NULL), FS_EINVAL, "next is NULL");
}

static void a_slice_that_fails_ends_the_solver(void **state)
{
    (void)state;
    view B = view_make(ROWS, D, RHS, FS_F64);
    problem p = problem_make(D, N, 1, FS_F64, 1e9, 0.1, 3);
    fill_normal(&B.m, 2);
    fs_lstsq_options options = FS_LSTSQ_INIT;
    options.tolerance = 1e-25; /* many reads */
    for (int read = 1; read <= 9; read++) {
        slicer s;
        const fs_operand operand = slicer_open(&s, &p.A, 100, 0);
        s.fail_read = read, s.fail_slice = 2;
        view X = view_make(ROWS, N, RHS, FS_F64);
        view_seal(&X);
        REFUSED(fs_lstsq(ctx, &operand, &B.m, &options, &X.m, NULL), FS_EFILE, "row 100 cannot be read");
        assert_int_equal(s.reads, read);
        expect_untouched("X after a failure", &X);
        slicer_close(&s);
        view_free(&X);
    }
    problem_free(&p);
    view_free(&B);
}

/* ranks --------------------------------------------------------------------------------------------------------- */

/* What can go wrong on one rank. */
typedef enum trouble { NONE, NAN_IN_A, NULL_A, WRONG_B, FAILING_SLICE, FAILING_SUM } trouble;

/* What the ranks of one call of fs_lstsq share. */
typedef struct shared {
    const fs_matrix *B;
    fs_lstsq_method method;
    int in_slices;
    trouble trouble; /* on the last rank */
    int at_sum;
    double x[MOST_RANKS][COUNT];
    fs_lstsq_report reports[MOST_RANKS];
} shared;

static fs_result solve_on_rank(rank_thread *r, void *user)
{
    shared *s = user;
    const trouble mine = r->number == r->count - 1 ? s->trouble : NONE;
    fs_matrix A = r->A, B = rows_of(s->B, r->ranks.row0, A.rows);
    const fs_matrix X = fs_row_major(s->x[r->number], A.cols, B.cols, FS_F64);
    if (mine == FAILING_SUM) r->fail_sum = s->at_sum;
    if (mine == NULL_A) A.data = NULL;
    if (mine == WRONG_B) B.rows--;
    slicer slices;
    const fs_operand sliced = slicer_open(&slices, &A, 50, 0);
    const fs_operand operand = s->in_slices ? sliced : dense_operand(&A);
    if (mine == FAILING_SLICE) slices.fail_read = 3, slices.fail_slice = 2;
    fs_lstsq_options options = FS_LSTSQ_INIT;
    const fs_lstsq_report start = FS_LSTSQ_REPORT_INIT;
    s->reports[r->number] = start;
    options.ranks = &r->ranks, options.method = s->method, options.measure_error = 1;
    const fs_result result = fs_lstsq(r->ctx, &operand, &B, &options, &X, &s->reports[r->number]);
    slicer_close(&slices);
    return result;
}

/* Solves on `count` ranks; with four the second has no rows, with five the third neither. */
static void solve_on_ranks(rank_thread *ranks, int count, const fs_matrix *A, int must, shared *s)
{
    int64_t begin[MOST_RANKS + 1];
    for (int i = 0; i <= count; i++) {
        const int has_none_before = count >= 4 && i >= 2 && i < count - 1;
        begin[i] = A->rows * (has_none_before ? 1 : i) / count;
    }
    run_ranks(ranks, count, begin, A, must, solve_on_rank, s);
}

static void expect_failure(const rank_thread *r, fs_result code, const char *word)
{
    if (r->result != code || !strstr(r->message, word))
        fail_msg("rank %d of %d: code %d, \"%s\"; code %d, \"%s\" expected", r->number, r->count, (int)r->result,
                 r->message, (int)code, word);
}

static void ranks_have_the_same_answer(void **state)
{
    (void)state;
    static const int64_t rows[] = {D, 90, 7}; /* sketched, all rows in every rank, fewer rows than columns */
    for (int shape = 0; shape < 3; shape++)
        for (int count = 1; count <= 5; count++)
            for (int method = 0; method < 4; method++)
                for (int in_slices = 0; in_slices < 2; in_slices++) {
                    if (in_slices && count >= 4) continue; /* a rank without rows has no slices */
                    problem p = problem_make(D, N, RHS, FS_F64, 1e4, 0.1, 3);
                    p.A.rows = p.B.rows = rows[shape];
                    shared s = {.B = &p.B, .method = (fs_lstsq_method)method, .in_slices = in_slices};
                    rank_thread ranks[MOST_RANKS];
                    double want[COUNT];
                    char what[80];
                    snprintf(what, sizeof what, "%d ranks, %d rows, method %d", count, (int)rows[shape], method);
                    solve_on_ranks(ranks, count, &p.A, 0, &s);
                    reference(&p.A, &p.B, want);
                    for (int r = 0; r < count; r++) {
                        if (ranks[r].result != FS_OK) fail_msg("%s: rank %d: %s", what, r, ranks[r].message);
                        assert_memory_equal(s.x[r], s.x[0], sizeof s.x[0]);
                        assert_int_equal(s.reports[r].reads, s.reports[0].reads);
                        assert_true(s.reports[r].residual == s.reports[0].residual);
                    }
                    expect_answer(what, s.x[0], want, 1e-10);
                    expect_at_most(what, s.reports[0].true_backward_error, 0x1p-51);
                    problem_free(&p);
                }
}

/* A failure on one rank is one on all, with its code and message: at once, and without a deadlock. */
static void a_rank_that_fails_ends_all(void **state)
{
    (void)state;
    static const struct {
        trouble trouble;
        fs_result code;
        const char *word;
    } troubles[] = {{NAN_IN_A, FS_EINVAL, "not finite"},
                    {NULL_A, FS_EINVAL, "data is NULL"},
                    {WRONG_B, FS_EINVAL, "B is"},
                    {FAILING_SLICE, FS_EFILE, "row 50 cannot be read"}};
    problem p = problem_make(D, N, RHS, FS_F64, 1e4, 0.1, 3);
    rank_thread ranks[MOST_RANKS];
    const double last = at(&p.A, D - 1, 2);
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++)
        for (int count = 1; count <= 3; count++) {
            shared s = {.B = &p.B, .trouble = troubles[i].trouble, .in_slices = troubles[i].trouble == FAILING_SLICE};
            put(&p.A, D - 1, 2, s.trouble == NAN_IN_A ? NAN : last);
            solve_on_ranks(ranks, count, &p.A, 0, &s);
            for (int r = 0; r < count; r++) expect_failure(&ranks[r], troubles[i].code, troubles[i].word);
        }
    int sums = 1;
    for (int number = 0; number <= sums; number++) {
        shared s = {.B = &p.B, .trouble = number ? FAILING_SUM : NONE, .at_sum = number};
        solve_on_ranks(ranks, 3, &p.A, !number, &s);
        if (!number) sums = ranks[2].sums;
        for (int r = 0; r < 3; r++) {
            assert_int_equal(ranks[r].sums, number ? number : sums);
            if (number) expect_failure(&ranks[r], FS_EBACKEND, "rank 2: sum");
        }
    }
    assert_true(sums > 6);
    problem_free(&p);
}

/* What is wrong with the ranks of solve_wrongly. */
typedef struct wrong_ranks {
    const fs_matrix *B;
    int64_t row0, rows;
    int no_sum;
} wrong_ranks;
static fs_result solve_wrongly(rank_thread *r, void *user)
{
    const wrong_ranks *w = user;
    double x[COUNT];
    const fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
    const fs_operand operand = dense_operand(&r->A);
    fs_lstsq_options options = FS_LSTSQ_INIT;
    r->ranks.row0 = w->row0, r->ranks.rows = w->rows;
    if (w->no_sum) r->ranks.sum = NULL;
    options.ranks = &r->ranks;
    return fs_lstsq(r->ctx, &operand, w->B, &options, &X, NULL);
}

static void wrong_ranks_are_refused(void **state)
{
    (void)state;
    view A = view_make(ROWS, D, N, FS_F64), B = view_make(ROWS, D, RHS, FS_F64);
    fill(&A.m, &B.m);
    rank_thread rank;
    static const int64_t all[] = {0, D};
    static const int64_t bad[][2] = {{-1, D}, {1, D}, {0, D - 1}, {5, D + 4}, {0, 0}, {INT64_MAX, INT64_MAX}};
    for (int i = 0; i < 6; i++) {
        wrong_ranks w = {.B = &B.m, .row0 = bad[i][0], .rows = bad[i][1]};
        run_ranks(&rank, 1, all, &A.m, 0, solve_wrongly, &w);
        expect_failure(&rank, FS_EINVAL, "row0");
        expect_failure(&rank, FS_EINVAL, "700 rows");
        assert_int_equal(rank.sums, 1);
    }
    wrong_ranks w = {.B = &B.m, .rows = D, .no_sum = 1};
    run_ranks(&rank, 1, all, &A.m, 0, solve_wrongly, &w);
    expect_failure(&rank, FS_EINVAL, "sum is NULL");
    view_free(&A), view_free(&B);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_and_layouts_of_a),
        cmocka_unit_test(stride_zero_has_rank_one),
        cmocka_unit_test(types_and_layouts_of_b_and_x),
        cmocka_unit_test(sparse_matrices),
        cmocka_unit_test(slices_of_any_kind),
        cmocka_unit_test(wrong_slices_are_refused),
        cmocka_unit_test(a_slice_that_fails_ends_the_solver),
        cmocka_unit_test(ranks_have_the_same_answer),
        cmocka_unit_test(a_rank_that_fails_ends_all),
        cmocka_unit_test(wrong_ranks_are_refused),
    };
    need_openblas();
    return cmocka_run_group_tests(tests, open_context, close_context);
}
