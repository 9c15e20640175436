/* lstsq_inputs.c - fs_lstsq has the same answer for A in every type and layout, sparse, in slices from a callback, and
 * with its rows spread over ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"
#include "tests/support/spread.h"

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

static fs_operand dense_operand(const fs_matrix *A)
{
    fs_operand operand = FS_OPERAND_INIT;
    operand.dense = A;
    return operand;
}

/* Well-conditioned whole numbers, small enough for f16: every type has the same A. */
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
                    fs_operand operand = FS_OPERAND_INIT;
                    operand.sparse = &sparse;
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
                    sliced s = {.A = &A.m, .most = most[size], .sparse_every = every};
                    const fs_slices slices = slices_of(&s);
                    fs_operand operand = FS_OPERAND_INIT;
                    operand.slices = &slices;
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
                        /* What the report says was read is what was read. */
                        if (report.reads != s.reads)
                            fail_msg("%s: %d reads, reported %d", what, s.reads, (int)report.reads);
                    }
                    sliced_free(&s);
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
        sliced s = {.A = &p.A, .most = 100, .fail_at = read};
        const fs_slices slices = slices_of(&s);
        fs_operand operand = FS_OPERAND_INIT;
        operand.slices = &slices;
        view X = view_make(ROWS, N, RHS, FS_F64);
        view_seal(&X);
        REFUSED(fs_lstsq(ctx, &operand, &B.m, &options, &X.m, NULL), FS_EFILE, "disk 7 is gone");
        assert_int_equal(s.reads, read);
        expect_untouched("X after a failure", &X);
        view_free(&X);
    }
    problem_free(&p);
    view_free(&B);
}

/* ranks --------------------------------------------------------------------------------------------------------- */

/* What can go wrong on one rank. */
typedef enum trouble { NONE, NAN_IN_A, NULL_A, WRONG_B, FAILING_SLICE, FAILING_SUM } trouble;

/* One call of fs_lstsq on several ranks. */
typedef struct spread {
    const fs_matrix *A, *B;
    fs_lstsq_method method;
    int count, in_slices;
    trouble trouble; /* on the last rank */
    int at_sum;
    team team;
    double x[MOST_RANKS][COUNT];
    fs_lstsq_report reports[MOST_RANKS];
    fs_result results[MOST_RANKS];
    char messages[MOST_RANKS][200];
    int sums; /* of the last rank */
} spread;

/* The first row of a rank; with four ranks or more, the second has none. */
static int64_t first_row(const spread *s, int rank)
{
    if (s->count >= 4 && rank == 2) rank = 1;
    return s->A->rows * rank / s->count;
}

static fs_matrix rows_of(const fs_matrix *m, int64_t from, int64_t to)
{
    fs_matrix part = *m;
    part.data = (double *)part.data + from * part.row_stride;
    part.rows = to - from;
    return part;
}

static void solve_on_rank(void *user, int rank)
{
    spread *s = user;
    const int last = rank == s->count - 1;
    const int64_t from = first_row(s, rank), to = last ? s->A->rows : first_row(s, rank + 1);
    const trouble mine_is = last ? s->trouble : NONE;
    fs_matrix A = rows_of(s->A, from, to), B = rows_of(s->B, from, to);
    const fs_matrix X = fs_row_major(s->x[rank], s->A->cols, B.cols, FS_F64);
    fs_context_options where = FS_CONTEXT_INIT;
    fs_context *mine = NULL;
    where.backend = FS_BACKEND_CPU, where.threads = 1;
    if (fs_context_create(&mine, &where) != FS_OK) abort();
    member m;
    member_make(&m, &s->team, rank, from, s->A->rows);
    if (mine_is == FAILING_SUM) m.fail_at = s->at_sum;
    if (mine_is == NULL_A) A.data = NULL;
    if (mine_is == WRONG_B) B.rows--;
    sliced pieces = {.A = &A, .most = 50, .fail_at = mine_is == FAILING_SLICE ? 3 : 0};
    const fs_slices slices = slices_of(&pieces);
    fs_operand operand = dense_operand(&A);
    if (s->in_slices) operand.dense = NULL, operand.slices = &slices;
    fs_lstsq_options options = FS_LSTSQ_INIT;
    const fs_lstsq_report start = FS_LSTSQ_REPORT_INIT;
    s->reports[rank] = start;
    options.ranks = &m.ranks, options.method = s->method, options.measure_error = 1;
    s->results[rank] = fs_lstsq(mine, &operand, &B, &options, &X, &s->reports[rank]);
    snprintf(s->messages[rank], sizeof s->messages[rank], "%s", fs_error_message());
    if (last) s->sums = m.sums;
    fs_context_destroy(mine);
}

static void run_spread(spread *s)
{
    team_make(&s->team, s->count);
    run_ranks(s->count, solve_on_rank, s);
    team_free(&s->team);
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
                    spread *s = room(1, sizeof *s);
                    memset(s, 0, sizeof *s);
                    s->A = &p.A, s->B = &p.B, s->method = (fs_lstsq_method)method, s->count = count;
                    s->in_slices = in_slices;
                    double want[COUNT];
                    char what[80];
                    snprintf(what, sizeof what, "%d ranks, %d rows, method %d", count, (int)rows[shape], method);
                    run_spread(s);
                    reference(&p.A, &p.B, want);
                    for (int r = 0; r < count; r++) {
                        if (s->results[r] != FS_OK) fail_msg("%s: rank %d: %s", what, r, s->messages[r]);
                        assert_memory_equal(s->x[r], s->x[0], sizeof s->x[0]);
                        assert_int_equal(s->reports[r].reads, s->reports[0].reads);
                        assert_true(s->reports[r].residual == s->reports[0].residual);
                    }
                    expect_answer(what, s->x[0], want, 1e-10);
                    expect_at_most(what, s->reports[0].true_backward_error, 0x1p-51);
                    free(s);
                    problem_free(&p);
                }
}

/* A failure on one rank is one on all: at once, with its own message there; none waits for ever. */
static void a_rank_that_fails_ends_all(void **state)
{
    (void)state;
    static const struct {
        trouble trouble;
        const char *own;
    } troubles[] = {{NAN_IN_A, "not finite"}, {NULL_A, "data is NULL"}, {WRONG_B, "B is"}, {FAILING_SLICE, "disk 7"}};
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++)
        for (int count = 1; count <= 3; count++) {
            problem p = problem_make(D, N, RHS, FS_F64, 1e4, 0.1, 3);
            spread *s = room(1, sizeof *s);
            memset(s, 0, sizeof *s);
            s->A = &p.A, s->B = &p.B, s->count = count, s->trouble = troubles[i].trouble;
            s->in_slices = s->trouble == FAILING_SLICE;
            if (s->trouble == NAN_IN_A) put(&p.A, D - 1, 2, NAN);
            run_spread(s);
            for (int r = 0; r < count; r++) assert_int_not_equal(s->results[r], FS_OK);
            assert_non_null(strstr(s->messages[count - 1], troubles[i].own));
            free(s);
            problem_free(&p);
        }
    problem p = problem_make(D, N, RHS, FS_F64, 1e4, 0.1, 3);
    int sums = 1;
    for (int at = 0; at <= sums; at++) {
        spread *s = room(1, sizeof *s);
        memset(s, 0, sizeof *s);
        s->A = &p.A, s->B = &p.B, s->count = 3, s->trouble = at ? FAILING_SUM : NONE, s->at_sum = at;
        run_spread(s);
        if (!at) sums = s->sums;
        for (int r = 0; r < 3; r++) assert_int_equal(s->results[r], at ? FS_EBACKEND : FS_OK);
        free(s);
    }
    assert_true(sums > 6);
    problem_free(&p);
}

static void wrong_ranks_are_refused(void **state)
{
    (void)state;
    view A = view_make(ROWS, D, N, FS_F64), B = view_make(ROWS, D, RHS, FS_F64);
    double x[COUNT];
    fill(&A.m, &B.m);
    const fs_operand operand = dense_operand(&A.m);
    const fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
    team t;
    member m;
    team_make(&t, 1);
    static const int64_t bad[][2] = {{-1, D}, {1, D}, {0, D - 1}, {5, D + 4}, {0, 0}, {INT64_MAX, INT64_MAX}};
    fs_lstsq_options options = FS_LSTSQ_INIT;
    for (int i = 0; i < 6; i++) {
        member_make(&m, &t, 0, bad[i][0], bad[i][1]);
        options.ranks = &m.ranks;
        REFUSED(fs_lstsq(ctx, &operand, &B.m, &options, &X, NULL), FS_EINVAL, "row0", "700 rows");
        assert_int_equal(m.sums, 1);
    }
    m.ranks.sum = NULL;
    REFUSED(fs_lstsq(ctx, &operand, &B.m, &options, &X, NULL), FS_EINVAL, "sum is NULL");
    team_free(&t);
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
