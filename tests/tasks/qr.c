/* qr.c - fs_qr: A = Q R with Q orthonormal, whatever A's condition, type and layout; pivots and rank. */
#include "tests/tasks/qr.h"

#include <stdio.h>

/* accuracy ------------------------------------------------------------------------------------------------------- */

static void every_condition_gives_orthonormal_columns(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{700, 40}, {17000, 5}, {90, 30}, {30, 30}, {300, 1}, {1, 1}};
    static const double conditions[] = {1, 1e3, 1e6, 1e10, 1e14};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s += THIN)
        for (int c = 0; c < 5; c++)
            for (int dtype = FS_F32; dtype <= FS_F64; dtype++) {
                if (dtype == FS_F32 && conditions[c] > 1e6) continue;
                if (shapes[s][0] > 1000 && c != 2) continue; /* several panels, once */
                view A = matrix_of(ROWS, shapes[s][0], shapes[s][1], (fs_dtype)dtype, conditions[c]);
                char what[80];
                snprintf(what, sizeof what, "%d x %d, condition %g, type %d", (int)shapes[s][0], (int)shapes[s][1],
                         conditions[c], dtype);
                assert_int_equal(check_qr(what, &A.m, 0, (fs_dtype)dtype), shapes[s][1]);
                check_qr(what, &A.m, 1, FS_F64);
                view_free(&A);
            }
}

/* Q and R of a well-conditioned A are unique to rounding: LAPACK's; R alone is the same R. */
static void factors_are_lapacks(void **state)
{
    (void)state;
    enum { D = 300, N = 12 };
    static const double conditions[] = {10, 1e8};
    for (int c = 0; c < 2; c++) {
        view A = matrix_of(COLUMNS, D, N, FS_F64, conditions[c]), R = view_make(COLUMNS, N, N, FS_F64);
        double *dense = doubles_of(&A.m), Q_want[D * N], R_want[N * N], slack[D * N];
        lapack_qr(D, N, dense, NULL, Q_want, R_want);
        for (int i = 0; i < D * N; i++) slack[i] = 20 * conditions[c] * 0x1p-53;
        fs_context *ctx = context_of(NULL, 0);
        const fs_operand operand = dense_operand(&A.m);
        const fs_qr_options o = options_of(0);
        answer a = answer_make(D, N, FS_F64);
        MUST(factor(ctx, &operand, &o, &a));
        expect_close("Q", &a.Q.m, Q_want, slack);
        expect_close("R", &a.R.m, R_want, slack);
        assert_int_equal(a.report.rank, N);
        assert_int_equal(a.report.k, 4 * N + 16);
        assert_int_equal(a.report.reads, 3);
        assert_true(a.report.seconds > 0);
        expect_below("condition", fabs(log(a.report.condition / conditions[c])), 0.3);
        expect_below("orthogonality", fabs(log10(a.report.orthogonality / unorthogonality(&a.Q.m, N))), 1);
        fs_qr_report report = FS_QR_REPORT_INIT;
        MUST(fs_qr(ctx, &operand, &o, NULL, &R.m, NULL, &report));
        expect_same_bits("R alone", &R, &a.R);
        assert_int_equal(report.reads, 2);
        assert_true(isnan(report.orthogonality));
        free(dense);
        answer_free(&a);
        view_free(&A), view_free(&R);
        fs_context_destroy(ctx);
    }
}

static void every_type_and_layout(void **state)
{
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
        for (int how = 0; how < OUTPUT_LAYOUTS; how += THIN) {
            view A = matrix_of((layout)how, 200, 12, (fs_dtype)dtype, 20);
            check_qr(layout_names[how], &A.m, how % 2, FS_F64);
            check_qr(layout_names[how], &A.m, 0, (fs_dtype)dtype);
            view_free(&A);
        }
}

/* Outputs of every layout and type get the same numbers, rounded once. */
static void outputs_of_every_layout(void **state)
{
    (void)state;
    view A = matrix_of(ROWS, 80, 7, FS_F64, 20);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m);
    const fs_qr_options o = options_of(0);
    answer a = answer_make(80, 7, FS_F64);
    MUST(factor(ctx, &operand, &o, &a));
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
        for (int how = 0; how < OUTPUT_LAYOUTS; how++) {
            view Q = view_make((layout)how, 80, 7, (fs_dtype)dtype), R = view_make((layout)how, 7, 7, (fs_dtype)dtype);
            view_seal(&Q), view_seal(&R);
            MUST(fs_qr(ctx, &operand, &o, &Q.m, &R.m, NULL, NULL));
            expect_padding_untouched(layout_names[how], &Q);
            expect_padding_untouched(layout_names[how], &R);
            view Q_want = view_make(ROWS, 80, 7, (fs_dtype)dtype), R_want = view_make(ROWS, 7, 7, (fs_dtype)dtype);
            for (int64_t j = 0; j < 7; j++) {
                for (int64_t i = 0; i < 80; i++) put(&Q_want.m, i, j, at(&a.Q.m, i, j));
                for (int64_t i = 0; i < 7; i++) put(&R_want.m, i, j, at(&a.R.m, i, j));
            }
            expect_equal(layout_names[how], &Q.m, &Q_want.m);
            expect_equal(layout_names[how], &R.m, &R_want.m);
            view_free(&Q), view_free(&R), view_free(&Q_want), view_free(&R_want);
        }
    answer_free(&a);
    view_free(&A);
    fs_context_destroy(ctx);
}

static void q_may_be_a(void **state)
{
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
        for (int how = 0; how < OUTPUT_LAYOUTS; how++)
            for (int pivot = 0; pivot < 2; pivot++) {
                view A = matrix_of((layout)how, 200, 10, (fs_dtype)dtype, 50);
                fs_context *ctx = context_of(NULL, 0);
                answer a = answer_make(200, 10, (fs_dtype)dtype), b = answer_make(200, 10, (fs_dtype)dtype);
                const fs_operand operand = dense_operand(&A.m);
                const fs_qr_options o = options_of(pivot);
                MUST(factor(ctx, &operand, &o, &a));
                view_seal(&A);
                MUST(fs_qr(ctx, &operand, &o, &A.m, &b.R.m, pivot ? b.pivots : NULL, NULL));
                expect_padding_untouched(layout_names[how], &A);
                expect_equal(layout_names[how], &A.m, &a.Q.m);
                expect_same_bits(layout_names[how], &b.R, &a.R);
                answer_free(&a), answer_free(&b);
                view_free(&A);
                fs_context_destroy(ctx);
            }
}

/* Rows of leverage 1, scattered and of very different length; A that is the identity above zeros, and shuffled. */
static void dominant_rows_are_factored(void **state)
{
    (void)state;
    enum { D = 3000, N = 24 };
    for (int kind = 0; kind < 4; kind++) {
        view A = view_make(ROWS, D, N, FS_F64);
        for (int64_t i = 0; i < D; i++)
            for (int64_t j = 0; j < N; j++)
                put(&A.m, i, j,
                    kind < 2    ? 0
                    : kind == 2 ? 1e-9 * normal_at(3, i * N + j)
                                : pow(10, -(double)i / 200) * normal_at(3, i * N + j));
        for (int64_t j = 0; j < N && kind < 3; j++)
            put(&A.m, kind ? j * 97 : j, j, kind < 2 ? 1 : pow(10, -0.25 * (double)j));
        char what[40];
        snprintf(what, sizeof what, "dominant rows of kind %d", kind);
        assert_int_equal(check_qr(what, &A.m, 0, FS_F64), N);
        assert_int_equal(check_qr(what, &A.m, 1, FS_F64), N);
        view_free(&A);
    }
}

/* Columns of lengths from 1e-200 to 1e100 are independent, though A's condition is beyond 1 / u. */
static void lengths_of_columns_do_not_matter(void **state)
{
    (void)state;
    view A = matrix_of(ROWS, 300, 7, FS_F64, 10);
    for (int64_t i = 0; i < 300; i++)
        for (int64_t j = 0; j < 7; j++) put(&A.m, i, j, at(&A.m, i, j) * pow(10, 100 - 50 * (double)j));
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m);
    const fs_qr_options o = options_of(0);
    answer a = answer_make(300, 7, FS_F64);
    MUST(factor(ctx, &operand, &o, &a));
    assert_int_equal(a.report.rank, 7);
    expect_below("Q", unorthogonality(&a.Q.m, 7), 1e-14);
    for (int64_t j = 0; j < 7; j++) { /* each column for itself */
        double square = 0, size = 0;
        for (int64_t i = 0; i < 300; i++) {
            const double scale = pow(10, 100 - 50 * (double)j);
            double x = at(&A.m, i, j) / scale;
            size += x * x;
            for (int64_t c = 0; c <= j; c++) x -= at(&a.Q.m, i, c) * (at(&a.R.m, c, j) / scale);
            square += x * x;
        }
        expect_below("column of A - Q R", sqrt(square / size), 1e-14);
    }
    answer_free(&a);
    view_free(&A);
    fs_context_destroy(ctx);
}

/* pivots and rank ------------------------------------------------------------------------------------------------- */

/* Dependent columns: the basis with pivots, the rank in the message without. */
static void dependent_columns(void **state)
{
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_F64; dtype++)
        for (int ranks = 0; ranks < 2; ranks++) {
            view A = matrix_of(ROWS, ranks ? 20 : 400, 20, (fs_dtype)dtype, 5);
            const int64_t d = A.m.rows;
            for (int64_t i = 0; i < d; i++) {
                put(&A.m, i, 3, 0);
                put(&A.m, i, 7, at(&A.m, i, 2));
                put(&A.m, i, 11, 4 * at(&A.m, i, 0));
            }
            assert_int_equal(check_qr("dependent", &A.m, 1, FS_F64), 17);
            fs_context *ctx = context_of(NULL, 0);
            view R = view_make(ROWS, 20, 20, FS_F64);
            const fs_operand operand = dense_operand(&A.m);
            REFUSED(fs_qr(ctx, &operand, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "17 of 20", "pivot");
            for (int64_t i = 0; i < d; i++)
                for (int64_t j = 0; j < 20; j++) put(&A.m, i, j, 0);
            assert_int_equal(check_qr("zero", &A.m, 1, FS_F64), 0);
            REFUSED(fs_qr(ctx, &operand, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "0 of 20");
            put(&A.m, 0, 9, 1);
            assert_int_equal(check_qr("one element", &A.m, 1, FS_F64), 1);
            view_free(&A), view_free(&R);
            fs_context_destroy(ctx);
        }
}

/* The rank is dgeqp3's, each entry of R's diagonal within a factor 10 of its: a gap in the singular values, columns of falling length, Kahan's matrix. */
static view ranked_matrix(int kind, int64_t d, int64_t n)
{
    view A = matrix_of(ROWS, d, n, FS_F64, kind ? 3 : 1e3);
    view noise = matrix_of(ROWS, d, n, FS_F64, 2);
    if (kind == 0) { /* rank n - 6 and 1e-15 beside it */
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = n - 6; j < n; j++) {
                double sum = 1e-15 * normal_at(5, i * n + j);
                for (int64_t c = 0; c < 6; c++) sum += at(&A.m, i, c) * normal_at(6, c * n + j);
                put(&A.m, i, j, sum);
            }
    } else if (kind == 1) {
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < n; j++) put(&A.m, i, j, at(&noise.m, i, j) * pow(10, -(double)((j * 7) % n)));
    } else { /* sin^i on the diagonal, -cos sin^i right of it: R's diagonal is far from its smallest singular value */
        const double s = 0.99, c = sqrt(1 - s * s);
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < n; j++)
                put(&A.m, i, j, i < n ? pow(s, (double)i) * (i == j ? 1 : i < j ? -c : 0) * (1 - 1e-3 * (double)j) : 0);
    }
    view_free(&noise);
    return A;
}

static void rank_is_that_of_geqp3(void **state)
{
    (void)state;
    enum { D = 250, N = 24 };
    for (int kind = 0; kind < 3; kind++) {
        view A = ranked_matrix(kind, D, N);
        double *dense = doubles_of(&A.m), *Q = room(D * N, 8), R[N * N];
        int64_t order[N], rank = 0;
        lapack_qr(D, N, dense, order, Q, R);
        fs_context *ctx = context_of(NULL, 0);
        const fs_operand operand = dense_operand(&A.m);
        fs_qr_options o = options_of(1);
        o.rcond = kind == 1 ? 3e-13 : 0; /* between two steps of its diagonal */
        while (rank < N && R[rank * N + rank] > (o.rcond > 0 ? o.rcond : 8 * 0x1p-52) * R[0]) rank++;
        answer a = answer_make(D, N, FS_F64);
        MUST(factor(ctx, &operand, &o, &a));
        char what[40];
        snprintf(what, sizeof what, "matrix %d", kind);
        assert_int_equal(a.report.rank, rank);
        expect_below(what, unorthogonality(&a.Q.m, rank), 10 * N * 0x1p-53);
        expect_below(what, misfit(&A.m, &a, 1), kind == 1 ? 1e-11 : 1e-13);
        expect_permutation(a.pivots, N);
        expect_triangle(&a.R.m, rank);
        for (int64_t j = 0; j < rank; j++) expect_below(what, fabs(log10(at(&a.R.m, j, j) / R[j * N + j])), 1);
        answer_free(&a);
        free(dense), free(Q);
        view_free(&A);
        fs_context_destroy(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_condition_gives_orthonormal_columns),
        cmocka_unit_test(factors_are_lapacks),
        cmocka_unit_test(every_type_and_layout),
        cmocka_unit_test(outputs_of_every_layout),
        cmocka_unit_test(q_may_be_a),
        cmocka_unit_test(dominant_rows_are_factored),
        cmocka_unit_test(lengths_of_columns_do_not_matter),
        cmocka_unit_test(dependent_columns),
        cmocka_unit_test(rank_is_that_of_geqp3),
    };
    return RUN_TASK_TESTS(tests);
}
