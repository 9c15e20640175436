/* qr.c - fs_qr: A = Q R with Q orthonormal, whatever A's condition, type, layout and storage; pivots and rank. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"
#include "tests/support/scarce.h"
#include "tests/support/sources.h"

typedef struct answer {
    view Q, R;
    int64_t *pivots;
    fs_qr_report report;
} answer;

static answer answer_make(int64_t d, int64_t n, fs_dtype dtype)
{
    const fs_qr_report start = FS_QR_REPORT_INIT;
    answer a = {view_make(ROWS, d, n, dtype), view_make(COLUMNS, n, n, FS_F64), room(n, sizeof(int64_t)), start};
    return a;
}
static void answer_free(answer *a) { view_free(&a->Q), view_free(&a->R), free(a->pivots); }

static fs_qr_options options_of(int pivot)
{
    fs_qr_options o = FS_QR_INIT;
    o.pivot = pivot, o.seed = 5;
    return o;
}

static fs_result factor(fs_context *ctx, const fs_operand *A, const fs_qr_options *o, answer *a)
{
    return fs_qr(ctx, A, o, &a->Q.m, &a->R.m, o->pivot ? a->pivots : NULL, &a->report);
}

/* |Q'Q - I|_F, columns from `rank` on being 0; the rounding of its own sums does not count. */
static double unorthogonality(const fs_matrix *Q, int64_t rank)
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
static double misfit(const fs_matrix *A, const answer *a, int pivoted)
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

static void expect_triangle(const fs_matrix *R, int64_t rank)
{
    for (int64_t j = 0; j < R->cols; j++) {
        assert_true(j < rank ? at(R, j, j) > 0 : at(R, j, j) == 0);
        for (int64_t i = 0; i < R->rows; i++)
            if (i > j || i >= rank) assert_true(at(R, i, j) == 0);
    }
}

static void expect_permutation(const int64_t *pivots, int64_t n)
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
static view matrix_of(layout how, int64_t d, int64_t n, fs_dtype dtype, double condition)
{
    problem p = problem_make(d, n, 1, FS_F64, condition, 0, 11);
    view A = view_make(how, d, n, dtype);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++) put(&A.m, i, j, at(&p.A, i, j));
    problem_free(&p);
    return A;
}

static double unit_of(fs_dtype dtype)
{
    return dtype == FS_F64 ? 0x1p-53 : dtype == FS_F32 ? 0x1p-24 : dtype == FS_F16 ? 0x1p-11 : 0x1p-8;
}
/* Of the sums of a type: f32 for 16-bit elements. */
static double sum_unit_of(fs_dtype dtype) { return dtype == FS_F64 ? 0x1p-53 : 0x1p-24; }

/* Everything that a factorization is.  `what` begins every message. */
static void expect_factors(const char *what, const fs_matrix *A, const answer *a, int pivot)
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
static int64_t check_qr(const char *what, const fs_matrix *A, int pivot, fs_dtype dtype)
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
    } else { /* sin^i on the diagonal, -cos sin^i right of it: R's diagonal says little of its smallest singular value */
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

/* sources --------------------------------------------------------------------------------------------------------- */

/* Whole numbers, mostly 0; the first rows are those of I, so that it has full rank. */
static view whole_matrix(int64_t d, int64_t n, fs_dtype dtype)
{
    view A = view_make(ROWS, d, n, dtype);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++)
            put(&A.m, i, j, i < n ? i == j : bits_at(9, i * n + j) % 4 ? 0 : whole_at(2, i * n + j, 9));
    return A;
}

static void sparse_is_dense(void **state)
{
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_F64; dtype++)
        for (int64_t d = 20; d <= 260; d += 240) { /* fewer rows than the sketch's, and more */
            view A = whole_matrix(d, 14, (fs_dtype)dtype);
            fs_context *ctx = context_of(NULL, 0);
            for (int variant = 0; variant < 8; variant++) {
                const int pivot = variant & 1;
                fs_sparse sparse = sparse_of(&A.m, 4, variant & 2 ? FS_CSR : FS_CSC,
                                             variant & 4 ? FS_INDEX64 : FS_INDEX32);
                const fs_operand operand = sparse_operand(&sparse);
                answer a = answer_make(d, 14, FS_F64);
                const fs_qr_options o = options_of(pivot);
                MUST(factor(ctx, &operand, &o, &a));
                expect_factors("sparse", &A.m, &a, pivot);
                assert_int_equal(a.report.rank, 14);
                assert_int_equal(a.report.k, d == 20 ? 0 : 4 * 14 + 16);
                answer_free(&a);
                sparse_free(&sparse);
            }
            view_free(&A);
            fs_context_destroy(ctx);
        }
}

static void slices_are_whole(void **state)
{
    (void)state;
    for (int sparse = 0; sparse < 2; sparse++)
        for (int pivot = 0; pivot < 2; pivot++) {
            view A = sparse ? whole_matrix(500, 16, FS_F64) : matrix_of(COLUMNS_PADDED, 500, 16, FS_F64, 1e8);
            fs_context *ctx = context_of(NULL, 0);
            slicer s;
            const fs_operand operand = slicer_open(&s, &A.m, 37, sparse);
            const fs_qr_options o = options_of(pivot);
            answer a = answer_make(500, 16, FS_F64);
            MUST(factor(ctx, &operand, &o, &a));
            expect_factors("slices", &A.m, &a, pivot);
            assert_int_equal(s.reads, a.report.reads);
            assert_int_equal(s.reads, 3);
            for (s.fail_read = 1; s.fail_read <= 3; s.fail_read++) {
                s.reads = 0;
                REFUSED(factor(ctx, &operand, &o, &a), FS_EFILE, "cannot be read");
                assert_int_equal(s.reads, s.fail_read);
            }
            s.fail_read = 0;
            s.slices.rows = 499; /* the last slice is longer than what is left */
            const fs_matrix Q = {.data = a.Q.m.data,
                                 .rows = 499,
                                 .cols = 16,
                                 .row_stride = 16,
                                 .col_stride = 1,
                                 .dtype = FS_F64,
                                 .memory = a.Q.m.memory};
            REFUSED(fs_qr(ctx, &operand, &o, &Q, &a.R.m, pivot ? a.pivots : NULL, NULL), FS_EINVAL, "slice at row 481",
                    "19 x 16", "499 x 16");
            slicer_close(&s);
            answer_free(&a);
            view_free(&A);
            fs_context_destroy(ctx);
        }
}

typedef struct shared {
    answer *whole; /* Q of all rows */
    answer part[MOST_RANKS];
    int pivot, failing; /* a rank whose rows hold a NaN, or -1 */
} shared;
static fs_result factor_rank(rank_thread *r, void *user)
{
    shared *s = user;
    fs_matrix Q = s->whole->Q.m;
    Q.offset += r->ranks.row0 * Q.row_stride;
    Q.rows = r->A.rows;
    const fs_operand operand = dense_operand(&r->A);
    fs_qr_options o = options_of(s->pivot);
    o.ranks = &r->ranks;
    if (r->number == s->failing) o.rcond = 2; /* found before the first sum, by this rank alone */
    answer *a = &s->part[r->number];
    return fs_qr(r->ctx, &operand, &o, &Q, &a->R.m, s->pivot ? a->pivots : NULL, &a->report);
}

static void ranks_are_whole(void **state)
{
    (void)state;
    static const int64_t cuts[MOST_RANKS][MOST_RANKS + 1] = {
        {0, 200}, {0, 3, 200}, {0, 61, 61, 200}, {0, 50, 100, 150, 200}, {0, 199, 199, 199, 200, 200}};
    view A = matrix_of(ROWS_PADDED, 200, 8, FS_F64, 1e5);
    for (int64_t j = 0; j < 8; j++) put(&A.m, 150, j, 100 + (double)(j * j));
    for (int count = 1; count <= MOST_RANKS; count++)
        for (int pivot = 0; pivot < 2; pivot++) {
            answer a = answer_make(200, 8, FS_F64);
            shared s = {.whole = &a, .pivot = pivot, .failing = -1};
            rank_thread ranks[MOST_RANKS];
            for (int i = 0; i < count; i++) s.part[i] = answer_make(1, 8, FS_F64);
            run_ranks(ranks, count, cuts[count - 1], &A.m, 1, factor_rank, &s);
            for (int i = 0; i < count; i++) {
                expect_same_bits("R of a rank", &s.part[i].R, &s.part[0].R);
                assert_memory_equal(s.part[i].pivots, s.part[0].pivots, pivot ? 8 * sizeof(int64_t) : 0);
                assert_true(s.part[i].report.orthogonality == s.part[0].report.orthogonality);
                assert_int_equal(s.part[i].report.reads, 3);
            }
            memcpy(a.R.m.data, s.part[0].R.m.data, 64 * 8);
            memcpy(a.pivots, s.part[0].pivots, 8 * sizeof(int64_t));
            a.report = s.part[0].report;
            expect_factors("ranks", &A.m, &a, pivot);
            for (s.failing = 0; s.failing < count; s.failing++) {
                run_ranks(ranks, count, cuts[count - 1], &A.m, 0, factor_rank, &s);
                for (int i = 0; i < count; i++) {
                    assert_int_equal(ranks[i].result, FS_EINVAL);
                    assert_non_null(strstr(ranks[i].message, "rcond is 2"));
                }
            }
            for (int i = 0; i < count; i++) answer_free(&s.part[i]);
            answer_free(&a);
        }
    view_free(&A);
}

/* the caller's sketch ---------------------------------------------------------------------------------------------- */

/* Any S that keeps the rank gives the same factors; one that does not is seen. */
static void any_sketch_will_do(void **state)
{
    (void)state;
    enum { D = 500, N = 10 };
    view A = matrix_of(ROWS, D, N, FS_F64, 1e10);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m);
    answer a = answer_make(D, N, FS_F64);
    for (int family = FS_BLOCKPERM; family <= FS_GAUSSIAN; family++)
        for (int64_t k = N; k <= 64; k += 54) {
            fs_spec spec = FS_SPEC_INIT;
            spec.family = (fs_family)family, spec.d = D, spec.k = k, spec.seed = 4;
            fs_sketch *S = sketch_of(&spec);
            fs_qr_options o = options_of(0);
            o.sketch = S;
            if (k > N || family == FS_GAUSSIAN) {
                MUST(factor(ctx, &operand, &o, &a));
                expect_factors(fs_family_name((fs_family)family), &A.m, &a, 0);
                assert_int_equal(a.report.k, k);
            } else if (factor(ctx, &operand, &o, &a) == FS_OK) { /* k = n: S A may be singular */
                expect_factors(fs_family_name((fs_family)family), &A.m, &a, 0);
            }
            fs_sketch_destroy(S);
        }
    static const int64_t wrong[][2] = {{D + 1, 40}, {D, N - 1}};
    for (int i = 0; i < 2; i++) {
        fs_spec spec = FS_SPEC_INIT;
        spec.d = wrong[i][0], spec.k = wrong[i][1];
        fs_sketch *S = sketch_of(&spec);
        fs_qr_options o = options_of(0);
        o.sketch = S;
        REFUSED(factor(ctx, &operand, &o, &a), FS_EINVAL, i ? "k = 9" : "d = 501", "500", "10 columns");
        fs_sketch_destroy(S);
    }
    answer_free(&a);
    view_free(&A);
    fs_context_destroy(ctx);
}

/* A sketch of only n rows leaves A R^-1 ill-conditioned: then another read improves it. */
static void a_poor_sketch_takes_more_reads(void **state)
{
    (void)state;
    enum { D = 400, N = 30 };
    view A = matrix_of(ROWS, D, N, FS_F64, 1e12);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m);
    int more = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        fs_spec spec = FS_SPEC_INIT;
        spec.family = FS_GAUSSIAN, spec.d = D, spec.k = N, spec.seed = seed;
        fs_sketch *S = sketch_of(&spec);
        fs_qr_options o = options_of(0);
        o.sketch = S;
        answer a = answer_make(D, N, FS_F64);
        MUST(factor(ctx, &operand, &o, &a));
        expect_factors("a poor sketch", &A.m, &a, 0);
        more += a.report.reads > 3;
        answer_free(&a);
        fs_sketch_destroy(S);
    }
    assert_true(more > 0);
    view_free(&A);
    fs_context_destroy(ctx);
}

/* failures --------------------------------------------------------------------------------------------------------- */

static void bad_arguments_have_messages(void **state)
{
    (void)state;
    view A = matrix_of(ROWS, 50, 5, FS_F64, 3), R = view_make(ROWS, 5, 5, FS_F64), Q = view_make(ROWS, 50, 5, FS_F64);
    view wide = view_make(ROWS, 5, 50, FS_F64);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m), wide_operand = dense_operand(&wide.m);
    fs_operand both = operand, none = FS_OPERAND_INIT;
    fs_sparse sparse = {0};
    both.sparse = &sparse;
    int64_t pivots[5];
    fs_qr_options o = FS_QR_INIT;
    REFUSED(fs_qr(NULL, &operand, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "ctx is NULL");
    REFUSED(fs_qr(ctx, NULL, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "A is NULL");
    REFUSED(fs_qr(ctx, &both, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "2 of A.dense");
    REFUSED(fs_qr(ctx, &none, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "0 of A.dense");
    REFUSED(fs_qr(ctx, &wide_operand, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "5 x 50");
    REFUSED(fs_qr(ctx, &operand, NULL, NULL, NULL, NULL, NULL), FS_EINVAL, "R is NULL");
    REFUSED(fs_qr(ctx, &operand, NULL, NULL, &Q.m, NULL, NULL), FS_EINVAL, "R is 50 x 5", "5 x 5");
    REFUSED(fs_qr(ctx, &operand, NULL, &R.m, &R.m, NULL, NULL), FS_EINVAL, "Q is 5 x 5", "50 x 5");
    REFUSED(fs_qr(ctx, &operand, NULL, NULL, &R.m, pivots, NULL), FS_EINVAL, "pivots is given");
    o.pivot = 2;
    REFUSED(fs_qr(ctx, &operand, &o, NULL, &R.m, pivots, NULL), FS_EINVAL, "pivot is 2");
    o.pivot = 1;
    REFUSED(fs_qr(ctx, &operand, &o, NULL, &R.m, NULL, NULL), FS_EINVAL, "pivots is NULL");
    static const double rconds[] = {1, -1e-9, NAN};
    for (int i = 0; i < 3; i++) {
        o.rcond = rconds[i];
        REFUSED(fs_qr(ctx, &operand, &o, NULL, &R.m, pivots, NULL), FS_EINVAL, "rcond is");
    }
    fs_matrix first = A.m, shifted = A.m, within = Q.m;
    first.rows = 5;
    REFUSED(fs_qr(ctx, &operand, NULL, NULL, &first, NULL, NULL), FS_EINVAL, "R overlaps A");
    shifted.rows = 49;
    const fs_operand short_operand = dense_operand(&shifted);
    fs_matrix moved = shifted;
    moved.offset += moved.row_stride;
    REFUSED(fs_qr(ctx, &short_operand, NULL, &moved, &R.m, NULL, NULL), FS_EINVAL, "Q overlaps A", "same view");
    within.rows = 5;
    REFUSED(fs_qr(ctx, &operand, NULL, &Q.m, &within, NULL, NULL), FS_EINVAL, "Q overlaps R");
    fs_qr_options longer = FS_QR_INIT;
    longer.size = 1;
    REFUSED(fs_qr(ctx, &operand, &longer, NULL, &R.m, NULL, NULL), FS_EINVAL, "options");
    view_free(&A), view_free(&R), view_free(&Q), view_free(&wide);
    fs_context_destroy(ctx);
}

static void elements_that_are_not_finite(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    fs_context *ctx = context_of(NULL, 0);
    for (int b = 0; b < 3; b++)
        for (int pivot = 0; pivot < 2; pivot++)
            for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
                for (int family = FS_BLOCKPERM; family <= FS_BLOCKROW; family += 2) {
                    view A = matrix_of(ROWS, 300, 5, (fs_dtype)dtype, 3);
                    put(&A.m, 20, 3, bad[b]);
                    fs_spec spec = FS_SPEC_INIT;
                    spec.family = (fs_family)family, spec.d = 300, spec.k = 64;
                    fs_sketch *S = sketch_of(&spec);
                    const fs_operand operand = dense_operand(&A.m);
                    fs_qr_options o = options_of(pivot);
                    o.sketch = S; /* FlashBlockRow samples rows: the element may not be in S A */
                    answer a = answer_make(300, 5, FS_F32);
                    REFUSED(factor(ctx, &operand, &o, &a), FS_EINVAL, "not finite");
                    answer_free(&a);
                    view_free(&A);
                    fs_sketch_destroy(S);
                }
    fs_context_destroy(ctx);
}

static void runs_give_the_same_bits(void **state)
{
    (void)state;
    view A = matrix_of(ROWS, 6000, 24, FS_F32, 1e4);
    const fs_operand operand = dense_operand(&A.m);
    answer first = answer_make(6000, 24, FS_F32), again = answer_make(6000, 24, FS_F32);
    for (int pivot = 0; pivot < 2; pivot++)
        for (int run = 0; run < 21; run += 1 + 4 * (THIN - 1)) {
            const fs_qr_options o = options_of(pivot);
            fs_context *ctx = context_of(NULL, 1 + run % 4);
            answer *a = run ? &again : &first;
            MUST(factor(ctx, &operand, &o, a));
            fs_context_destroy(ctx);
            if (!run) continue;
            expect_same_bits("Q", &again.Q, &first.Q);
            expect_same_bits("R", &again.R, &first.R);
            assert_memory_equal(again.pivots, first.pivots, pivot ? 24 * sizeof(int64_t) : 0);
        }
    answer_free(&first), answer_free(&again);
    view_free(&A);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    view A = whole_matrix(120, 6, FS_F32);
    for (int64_t i = 0; i < 120; i++) put(&A.m, i, 5, at(&A.m, i, 0)); /* W of the basis too */
    fs_sparse sparse = sparse_of(&A.m, 4, FS_CSC, FS_INDEX32);
    for (int kind = 0; kind < 2; kind++) {
        int allocations = 0;
        for (fs_result result = FS_ENOMEM; result != FS_OK; allocations++) {
            assert_true(allocations < 200);
            scarce s = {1000, 0};
            fs_context_options where = FS_CONTEXT_INIT;
            where.backend = FS_BACKEND_CPU;
            where.allocator = scarce_allocator(&s);
            fs_context *ctx;
            MUST(fs_context_create(&ctx, &where));
            answer a = answer_make(120, 6, FS_F32);
            const fs_operand operand = kind ? sparse_operand(&sparse) : dense_operand(&A.m);
            const fs_qr_options o = options_of(1);
            s.left = allocations;
            result = factor(ctx, &operand, &o, &a);
            if (result != FS_OK) REFUSED(result, FS_ENOMEM, "no memory");
            answer_free(&a);
            fs_context_destroy(ctx);
            assert_int_equal(s.live, 0);
        }
        assert_true(allocations > 12);
    }
    sparse_free(&sparse);
    view_free(&A);
}

typedef struct shares {
    double last;
    int calls;
} shares;
static void note_share(void *user, double share, const char *doing)
{
    shares *s = user;
    assert_true(share >= s->last && share <= 1 && doing && *doing);
    s->last = share;
    s->calls++;
}
static void progress_grows_to_one(void **state)
{
    (void)state;
    view A = matrix_of(ROWS, 5000, 9, FS_F64, 1e9);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m);
    for (int pivot = 0; pivot < 2; pivot++) {
        shares s = {0, 0};
        const fs_progress progress = {note_share, &s};
        fs_qr_options o = options_of(pivot);
        o.progress = &progress;
        answer a = answer_make(5000, 9, FS_F64);
        MUST(factor(ctx, &operand, &o, &a));
        assert_true(s.last == 1 && s.calls >= 3);
        answer_free(&a);
    }
    view_free(&A);
    fs_context_destroy(ctx);
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
        cmocka_unit_test(sparse_is_dense),
        cmocka_unit_test(slices_are_whole),
        cmocka_unit_test(ranks_are_whole),
        cmocka_unit_test(any_sketch_will_do),
        cmocka_unit_test(a_poor_sketch_takes_more_reads),
        cmocka_unit_test(bad_arguments_have_messages),
        cmocka_unit_test(elements_that_are_not_finite),
        cmocka_unit_test(runs_give_the_same_bits),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(progress_grows_to_one),
    };
    return RUN_TASK_TESTS(tests);
}
