/* svd.c - fs_svd and fs_pca against matrices of known spectra and LAPACK in double; U and V are orthonormal, their
 * product is A up to the reported error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"
#include "tests/support/scarce.h"

/* matrices ---------------------------------------------------------------------------------------------------- */

/* Orthonormal columns, rows x cols, row-major: Gram and Schmidt twice of normals. */
static double *orthonormal(int64_t rows, int64_t cols, uint64_t seed)
{
    double *Q = room(rows * cols, 8);
    for (int64_t j = 0; j < cols; j++) {
        for (int64_t i = 0; i < rows; i++) Q[i * cols + j] = normal_at(seed, i * cols + j);
        for (int twice = 0; twice < 2; twice++) {
            for (int64_t c = 0; c < j; c++) {
                double dot = 0;
                for (int64_t i = 0; i < rows; i++) dot += Q[i * cols + c] * Q[i * cols + j];
                for (int64_t i = 0; i < rows; i++) Q[i * cols + j] -= dot * Q[i * cols + c];
            }
            double square = 0;
            for (int64_t i = 0; i < rows; i++) square += Q[i * cols + j] * Q[i * cols + j];
            for (int64_t i = 0; i < rows; i++) Q[i * cols + j] /= sqrt(square);
        }
    }
    return Q;
}

typedef enum spectrum { HARMONIC, EXPONENTIAL, GRADED, LOW_RANK } spectrum;
static double value_of(spectrum kind, int64_t j)
{
    if (kind == HARMONIC) return 1 / (double)(j + 1);
    if (kind == EXPONENTIAL) return pow(0.5, (double)j);
    if (kind == GRADED) return pow(10, -0.5 * (double)j);
    return j < 5 ? 3.0 - 0.5 * (double)j : 0;
}

/* A with the singular values of a spectrum, of any type and layout. */
static view matrix_of(spectrum kind, layout how, int64_t d, int64_t n, fs_dtype dtype, uint64_t seed)
{
    const int64_t m = d < n ? d : n;
    double *U = orthonormal(d, m, seed), *V = orthonormal(n, m, seed + 1);
    view A = view_make(how, d, n, dtype);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t c = 0; c < m; c++) sum += U[i * m + c] * value_of(kind, c) * V[j * m + c];
            put(&A.m, i, j, sum);
        }
    free(U), free(V);
    return A;
}

/* answers ------------------------------------------------------------------------------------------------------ */

typedef struct answer {
    fs_matrix U, V;
    double *s;
    fs_svd_report report;
} answer;

static answer answer_make(int64_t d, int64_t n, int64_t r)
{
    const fs_svd_report start = FS_SVD_REPORT_INIT;
    answer a = {fs_row_major(room(d * r, 8), d, r, FS_F64), fs_col_major(room(n * r, 8), n, r, FS_F64), room(r, 8),
                start};
    return a;
}
static void answer_free(answer *a) { free(a->U.data), free(a->V.data), free(a->s); }

/* |Q'Q - I|, columns whose singular value is 0 being 0. */
static double unorthogonality(const fs_matrix *Q, const double *s)
{
    double worst = 0;
    for (int64_t a = 0; a < Q->cols; a++)
        for (int64_t b = 0; b <= a; b++) {
            double dot = 0;
            for (int64_t i = 0; i < Q->rows; i++) dot += at(Q, i, a) * at(Q, i, b);
            worst = fmax(worst, fabs(dot - (a == b && (!s || s[a] > 0))));
        }
    return worst;
}

/* |A - mean - U diag(s) V'|_F */
static double error_of(const fs_matrix *A, const double *mean, const answer *a)
{
    double square = 0;
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t j = 0; j < A->cols; j++) {
            double x = at(A, i, j) - (mean ? mean[j] : 0);
            for (int64_t c = 0; c < a->U.cols; c++) x -= at(&a->U, i, c) * a->s[c] * at(&a->V, j, c);
            square += x * x;
        }
    return sqrt(square);
}

static void expect_signs(const fs_matrix *V)
{
    for (int64_t j = 0; j < V->cols; j++) {
        double largest = 0;
        for (int64_t i = 0; i < V->rows; i++)
            if (fabs(at(V, i, j)) > fabs(largest)) largest = at(V, i, j);
        assert_true(largest > 0);
    }
}

static void expect_below(const char *what, double value, double bound)
{
    if (!(value <= bound)) fail_msg("%s: %g, at most %g expected", what, value, bound);
}

static fs_svd_options options_of(int64_t rank, int power_steps, int one_read)
{
    fs_svd_options o = FS_SVD_INIT;
    o.rank = rank, o.power_steps = power_steps, o.one_read = one_read, o.seed = 3;
    return o;
}

static fs_operand operand_of(const fs_matrix *A)
{
    fs_operand o = FS_OPERAND_INIT;
    o.dense = A;
    return o;
}

/* all singular values ------------------------------------------------------------------------------------------ */

static void check_all(const char *what, const fs_matrix *A, double unit)
{
    const int64_t d = A->rows, n = A->cols, m = d < n ? d : n;
    fs_context *ctx = context_of(NULL, 0);
    answer a = answer_make(d, n, m);
    const fs_operand operand = operand_of(A);
    double *dense = doubles_of(A), *want = room(m, 8);
    lapack_singular_values(d, n, dense, want);
    MUST(fs_svd(ctx, &operand, NULL, &a.U, a.s, &a.V, &a.report));
    for (int64_t j = 0; j < m; j++) {
        expect_below(what, fabs(a.s[j] - want[j]), unit * want[0] + 1e-300);
        assert_true(j == 0 || a.s[j] <= a.s[j - 1]);
    }
    expect_below(what, unorthogonality(&a.U, a.s), 1e-12);
    expect_below(what, unorthogonality(&a.V, NULL), 1e-12);
    expect_below(what, error_of(A, NULL, &a), 1e-13 * norm_of(A) + 1e-300);
    expect_signs(&a.V);
    assert_int_equal(a.report.rank, m);
    assert_int_equal(a.report.sketch, 0);
    assert_true(a.report.error == 0 && a.report.low == 0 && a.report.high == 0);
    expect_below(what, fabs(a.report.norm - norm_of(A)), 1e-13 * norm_of(A));
    answer_free(&a);
    free(dense), free(want);
    fs_context_destroy(ctx);
}

static void all_singular_values_are_lapacks(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{400, 30}, {90, 30}, {30, 30}, {12, 50}, {300, 1}, {1, 7}, {1, 1}};
    for (int kind = HARMONIC; kind <= LOW_RANK; kind++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            view A = matrix_of((spectrum)kind, ROWS, shapes[s][0], shapes[s][1], FS_F64, 7);
            char what[80];
            snprintf(what, sizeof what, "spectrum %d, %d x %d", kind, (int)shapes[s][0], (int)shapes[s][1]);
            check_all(what, &A.m, 4e-15);
            view_free(&A);
        }
}

static void types_and_layouts_are_lapacks(void **state)
{
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
        for (int how = 0; how < INPUT_LAYOUTS; how += THIN) {
            view A = matrix_of(HARMONIC, (layout)how, 150, 12, (fs_dtype)dtype, 5);
            check_all(layout_names[how], &A.m, 4e-15);
            view_free(&A);
        }
}

/* Columns that are 0 or repeated, and condition numbers beyond the accuracy of sums in f32. */
static void dependent_columns_have_zero_vectors(void **state)
{
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_F64; dtype++) {
        view A = matrix_of(HARMONIC, ROWS, 300, 12, (fs_dtype)dtype, 5);
        for (int64_t i = 0; i < 300; i++) {
            put(&A.m, i, 4, 0);
            put(&A.m, i, 7, at(&A.m, i, 2));
            put(&A.m, i, 9, at(&A.m, i, 2) * 0x1p-30);
        }
        check_all("dependent", &A.m, 4e-15);
        for (int64_t i = 0; i < 300; i++) put(&A.m, i, 9, 0x1p-33 * (i % 7 == 0)); /* s of 1e-9 */
        check_all("nearly dependent", &A.m, 4e-15);
        for (int64_t i = 0; i < 300; i++)
            for (int64_t j = 0; j < 12; j++) put(&A.m, i, j, 0);
        check_all("zero", &A.m, 4e-15);
        view_free(&A);
    }
}

/* a few singular values ---------------------------------------------------------------------------------------- */

static double best_error(spectrum kind, int64_t r, int64_t m)
{
    double square = 0;
    for (int64_t j = r; j < m; j++) square += value_of(kind, j) * value_of(kind, j);
    return sqrt(square);
}

static void check_rank(const char *what, spectrum kind, const fs_matrix *A, int64_t r, int power, int one,
                       double factor, double rounding)
{
    const int64_t d = A->rows, n = A->cols, m = d < n ? d : n;
    fs_context *ctx = context_of(NULL, 0);
    answer a = answer_make(d, n, r);
    const fs_operand operand = operand_of(A);
    const fs_svd_options o = options_of(r, power, one);
    MUST(fs_svd(ctx, &operand, &o, &a.U, a.s, &a.V, &a.report));
    const double error = error_of(A, NULL, &a), best = best_error(kind, r, m), size = norm_of(A);
    expect_below(what, error, factor * best + rounding * size);
    for (int64_t j = 0; j < r; j++)
        expect_below(what, fabs(a.s[j] - value_of(kind, j)), (factor - 1) * 2 * best + 4 * rounding * size);
    expect_below(what, unorthogonality(&a.U, a.s), 1e-12);
    expect_below(what, unorthogonality(&a.V, NULL), 1e-12);
    expect_signs(&a.V);
    expect_below(what, fabs(a.report.norm - size), 1e-13 * size);
    assert_int_equal(a.report.reads, one ? 1 : 2 + power);
    const int64_t beyond = one ? 2 * r : r / 2;
    assert_int_equal(a.report.sketch, r + (beyond > 10 ? beyond : 10));
    if (!(a.report.low <= error * (1 + 1e-6) + 1e-15 * size && error * (1 - 1e-6) <= a.report.high + 1e-15 * size))
        fail_msg("%s: error %g, reported %g in [%g, %g]", what, error, a.report.error, a.report.low, a.report.high);
    /* Without U and V: the same values. */
    double *s = room(r, 8);
    MUST(fs_svd(ctx, &operand, &o, NULL, s, NULL, NULL));
    for (int64_t j = 0; j < r; j++)
        if (s[j] > 1e-6 * s[0]) expect_below(what, fabs(s[j] - a.s[j]), (one ? 1e-6 : 1e-13) * a.s[0]);
    free(s);
    answer_free(&a);
    fs_context_destroy(ctx);
}

static void a_few_are_near_the_best(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{900, 60}, {60, 300}, {150, 150}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int kind = HARMONIC; kind <= LOW_RANK; kind++) {
            view A = matrix_of((spectrum)kind, ROWS, shapes[s][0], shapes[s][1], FS_F64, 9);
            char what[80];
            snprintf(what, sizeof what, "spectrum %d, %d x %d", kind, (int)shapes[s][0], (int)shapes[s][1]);
            check_rank(what, (spectrum)kind, &A.m, 8, 0, 0, 1.5, 1e-14);
            check_rank(what, (spectrum)kind, &A.m, 8, 2, 0, 1.05, 1e-14);
            check_rank(what, (spectrum)kind, &A.m, 8, 0, 1, 2.5, 1e-14);
            view_free(&A);
        }
}

static void a_few_of_every_type(void **state)
{
    (void)state;
    static const double unit[] = {0, 6e-8, 1e-14, 1e-3, 8e-3};
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
        for (int how = 0; how < OUTPUT_LAYOUTS; how += 1 + THIN) {
            view A = matrix_of(HARMONIC, (layout)how, 300, 40, (fs_dtype)dtype, 5);
            check_rank(layout_names[how], HARMONIC, &A.m, 6, 2, 0, 1.05, unit[dtype]);
            check_rank(layout_names[how], HARMONIC, &A.m, 6, 0, 1, 2.5, unit[dtype]);
            view_free(&A);
        }
}

/* sources ------------------------------------------------------------------------------------------------------ */

typedef struct cutter {
    const fs_matrix *A;
    int64_t at;
    int sparse;
    fs_sparse held;
} cutter;
static fs_result cut_rewind(void *user)
{
    ((cutter *)user)->at = 0;
    return FS_OK;
}
static fs_result cut_next(void *user, fs_matrix *dense, const fs_sparse **sparse)
{
    cutter *c = user;
    const int64_t left = c->A->rows - c->at, rows = left < 70 ? left : 70;
    fs_matrix part = *c->A;
    part.offset += c->at * part.row_stride;
    part.rows = rows;
    c->at += rows;
    if (c->held.ptr) sparse_free(&c->held);
    c->held.ptr = NULL;
    if (c->sparse && (c->at / 70) % 2) {
        c->held = sparse_of(&part, (uint64_t)c->at, c->at % 3 ? FS_CSR : FS_CSC, FS_INDEX32);
        *sparse = &c->held;
    } else {
        *dense = part;
    }
    return FS_OK;
}

/* Sparse, in slices and dense, A has the same singular values, vectors and means. */
static void sources_agree(void **state)
{
    (void)state;
    enum { D = 300, N = 24, R = 5 };
    view A = view_make(ROWS, D, N, FS_F64);
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < N; j++)
            put(&A.m, i, j,
                bits_at(3, i * N + j) % 4 ? 0 : whole_at(4, i * N + j, 9) * (j < R ? 40 : 1) + (j == 2) * 9);
    fs_context *ctx = context_of(NULL, 0);
    for (int kind = 0; kind < 4; kind++) /* all, range, one read, range with power steps */
        for (int centred = 0; centred < 2; centred++) {
            const fs_svd_options o = options_of(kind ? R : 0, kind == 3 ? 3 : kind ? 0 : -1, kind == 2);
            const int64_t r = kind ? R : N;
            double want[N], mean[N];
            fs_operand whole = operand_of(&A.m);
            answer first = answer_make(D, N, r);
            MUST(centred ? fs_pca(ctx, &whole, &o, mean, &first.U, first.s, &first.V, &first.report)
                         : fs_svd(ctx, &whole, &o, &first.U, first.s, &first.V, &first.report));
            memcpy(want, first.s, (size_t)r * 8);
            for (int source = 0; source < 4; source++) {
                fs_sparse sparse = {0};
                cutter cut = {&A.m, 0, source == 3, {0}};
                fs_slices slices = FS_SLICES_INIT;
                slices.rows = D, slices.cols = N, slices.dtype = FS_F64;
                slices.rewind = cut_rewind, slices.next = cut_next, slices.user = &cut;
                fs_operand operand = FS_OPERAND_INIT;
                if (source < 2) {
                    sparse = sparse_of(&A.m, 5, source ? FS_CSC : FS_CSR, FS_INDEX64);
                    operand.sparse = &sparse;
                } else {
                    operand.slices = &slices;
                }
                answer a = answer_make(D, N, r);
                double means[N];
                char what[80];
                snprintf(what, sizeof what, "method %d, centred %d, source %d", kind, centred, source);
                MUST(centred ? fs_pca(ctx, &operand, &o, means, &a.U, a.s, &a.V, &a.report)
                             : fs_svd(ctx, &operand, &o, &a.U, a.s, &a.V, &a.report));
                for (int64_t j = 0; j < r; j++) expect_below(what, fabs(a.s[j] - want[j]), 1e-11 * want[0]);
                for (int64_t j = 0; j < N && centred; j++) expect_below("mean", fabs(means[j] - mean[j]), 1e-13 * 40);
                expect_below("norm", fabs(a.report.norm - first.report.norm), 1e-12 * first.report.norm);
                expect_below("U", unorthogonality(&a.U, a.s), 1e-12);
                expect_below("V", unorthogonality(&a.V, NULL), 1e-12);
                const double e = error_of(&A.m, centred ? mean : NULL, &a),
                             f = error_of(&A.m, centred ? mean : NULL, &first);
                expect_below("error", fabs(e - f), 1e-10 * first.report.norm);
                answer_free(&a);
                if (sparse.ptr) sparse_free(&sparse);
                if (cut.held.ptr) sparse_free(&cut.held);
            }
            answer_free(&first);
        }
    fs_context_destroy(ctx);
    view_free(&A);
}

/* principal components ------------------------------------------------------------------------------------------ */

static void components_are_of_the_centred_matrix(void **state)
{
    (void)state;
    enum { D = 400, N = 30, R = 6 };
    for (int kind = 0; kind < 3; kind++)
        for (int large = 0; large < 2; large++) {
            view A = matrix_of(HARMONIC, ROWS, D, N, FS_F64, 12), C = view_make(ROWS, D, N, FS_F64);
            const int64_t r = kind ? R : N;
            double mean[N], want[N];
            for (int64_t j = 0; j < N; j++) {
                double sum = 0;
                for (int64_t i = 0; i < D; i++) {
                    put(&A.m, i, j, at(&A.m, i, j) + (large ? 5e4 : 0.1) * (1 + (double)j)); /* deviations are 0.05 */
                    sum += at(&A.m, i, j) - at(&A.m, 0, j);
                }
                mean[j] = at(&A.m, 0, j) + sum / D;
                for (int64_t i = 0; i < D; i++) put(&C.m, i, j, at(&A.m, i, j) - mean[j]);
            }
            double *dense = doubles_of(&C.m), got[N];
            lapack_singular_values(D, N, dense, want);
            fs_context *ctx = context_of(NULL, 0);
            answer a = answer_make(D, N, r);
            const fs_operand operand = operand_of(&A.m);
            const fs_svd_options o = options_of(kind ? R : 0, kind == 2 ? 0 : 2, kind == 2);
            MUST(fs_pca(ctx, &operand, &o, got, &a.U, a.s, &a.V, &a.report));
            const double slack = large ? 2e-8 : 1e-13;
            for (int64_t j = 0; j < N; j++) expect_below("mean", fabs(got[j] - mean[j]), 1e-15 * fabs(mean[j]));
            double best = 0;
            for (int64_t j = r; j < N; j++) best += want[j] * want[j];
            const double error = error_of(&C.m, NULL, &a), factor = kind == 2 ? 2.5 : 1.05;
            expect_below("error", error, factor * sqrt(best) + slack * want[0]);
            for (int64_t j = 0; j < r && kind < 2; j++)
                expect_below("value", fabs(a.s[j] - want[j]), (kind ? 0.02 : 0) * want[0] + slack * want[0]);
            expect_below("U", unorthogonality(&a.U, a.s), 1e-12);
            expect_below("V", unorthogonality(&a.V, NULL), 1e-12);
            expect_below("norm", fabs(a.report.norm - norm_of(&C.m)), 1e-9 * norm_of(&C.m));
            if (kind) assert_true(a.report.low <= error * (1 + 1e-6) && error * (1 - 1e-6) <= a.report.high);
            answer_free(&a);
            free(dense);
            fs_context_destroy(ctx);
            view_free(&A), view_free(&C);
        }
}

/* ranks --------------------------------------------------------------------------------------------------------- */

/* One caller that has all rows: sums are the identity. */
static fs_result sum_alone(void *user, double *values, int64_t count, int failed)
{
    (void)values, (void)count;
    ++*(int *)user;
    return failed ? FS_EINVAL : FS_OK;
}

static void ranks_are_summed(void **state)
{
    (void)state;
    view A = matrix_of(HARMONIC, ROWS, 300, 20, FS_F64, 12);
    fs_context *ctx = context_of(NULL, 0);
    for (int kind = 0; kind < 3; kind++) {
        int calls = 0;
        fs_ranks ranks = FS_RANKS_INIT;
        ranks.rows = 300, ranks.sum = sum_alone, ranks.user = &calls;
        fs_svd_options o = options_of(kind ? 4 : 0, kind == 1 ? 2 : -1, kind == 2);
        const int64_t r = kind ? 4 : 20;
        answer a = answer_make(300, 20, r), b = answer_make(300, 20, r);
        const fs_operand operand = operand_of(&A.m);
        MUST(fs_pca(ctx, &operand, &o, NULL, &a.U, a.s, &a.V, NULL));
        o.ranks = &ranks;
        MUST(fs_pca(ctx, &operand, &o, NULL, &b.U, b.s, &b.V, NULL));
        assert_true(calls > 3);
        for (int64_t j = 0; j < r; j++) expect_below("value", fabs(a.s[j] - b.s[j]), 1e-13);
        answer_free(&a), answer_free(&b);
    }
    fs_context_destroy(ctx);
    view_free(&A);
}

/* errors, bits, memory ------------------------------------------------------------------------------------------- */

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    view A = matrix_of(HARMONIC, ROWS, 120, 20, FS_F64, 12);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = operand_of(&A.m);
    answer a = answer_make(120, 20, 20);
    fs_svd_options o = options_of(21, -1, 0);
    REFUSED(fs_svd(ctx, &operand, &o, NULL, a.s, NULL, NULL), FS_EINVAL, "rank = 21", "120 x 20");
    o = options_of(-1, -1, 0);
    REFUSED(fs_svd(ctx, &operand, &o, NULL, a.s, NULL, NULL), FS_EINVAL, "rank = -1");
    o = options_of(3, -2, 0);
    REFUSED(fs_svd(ctx, &operand, &o, NULL, a.s, NULL, NULL), FS_EINVAL, "power_steps = -2");
    o = options_of(3, 1, 1);
    REFUSED(fs_svd(ctx, &operand, &o, NULL, a.s, NULL, NULL), FS_EINVAL, "one_read", "power_steps = 1");
    o = options_of(0, 0, 1);
    REFUSED(fs_svd(ctx, &operand, &o, NULL, a.s, NULL, NULL), FS_EINVAL, "one_read", "rank");
    o = options_of(3, 0, 0);
    REFUSED(fs_svd(ctx, &operand, &o, &a.U, a.s, NULL, NULL), FS_EINVAL, "U is 120 x 20", "120 x 3");
    REFUSED(fs_svd(ctx, &operand, &o, NULL, NULL, NULL, NULL), FS_EINVAL, "s is NULL");
    REFUSED(fs_svd(ctx, NULL, &o, NULL, a.s, NULL, NULL), FS_EINVAL, "A is NULL");
    REFUSED(fs_svd(ctx, &operand, NULL, &A.m, a.s, NULL, NULL), FS_EINVAL, "overlaps A");
    for (int kind = 0; kind < 3; kind++)
        for (int what = 0; what < 3; what++)
            for (int centred = 0; centred < 2; centred++) {
                view B = matrix_of(HARMONIC, ROWS, 120, 20, FS_F32, 12);
                put(&B.m, 77, 5, what == 0 ? NAN : what == 1 ? INFINITY : -INFINITY);
                const fs_operand bad = operand_of(&B.m);
                o = options_of(kind ? 3 : 0, -1, kind == 2);
                REFUSED(centred ? fs_pca(ctx, &bad, &o, NULL, NULL, a.s, NULL, NULL)
                                : fs_svd(ctx, &bad, &o, NULL, a.s, NULL, NULL),
                        FS_EINVAL, "not finite");
                view_free(&B);
            }
    answer_free(&a);
    fs_context_destroy(ctx);
    view_free(&A);
}

static void threads_do_not_change_bits(void **state)
{
    (void)state;
    view A = matrix_of(HARMONIC, ROWS, 700, 30, FS_F32, 12);
    for (int kind = 0; kind < 3; kind++) {
        answer a[2];
        const int64_t r = kind ? 5 : 30;
        for (int threads = 1; threads <= 2; threads++) {
            fs_context *ctx = context_of(NULL, threads);
            const fs_operand operand = operand_of(&A.m);
            const fs_svd_options o = options_of(kind ? 5 : 0, -1, kind == 2);
            a[threads - 1] = answer_make(700, 30, r);
            answer *x = &a[threads - 1];
            MUST(fs_pca(ctx, &operand, &o, NULL, &x->U, x->s, &x->V, &x->report));
            fs_context_destroy(ctx);
        }
        assert_memory_equal(a[0].s, a[1].s, (size_t)r * 8);
        assert_memory_equal(a[0].U.data, a[1].U.data, (size_t)(700 * r) * 8);
        assert_memory_equal(a[0].V.data, a[1].V.data, (size_t)(30 * r) * 8);
        assert_true(a[0].report.error == a[1].report.error && a[0].report.high == a[1].report.high);
        answer_free(&a[0]), answer_free(&a[1]);
    }
    view_free(&A);
}

static void scarce_memory_is_reported(void **state)
{
    (void)state;
    view A = matrix_of(HARMONIC, ROWS, 200, 20, FS_F32, 12);
    for (int kind = 0; kind < 3; kind++) {
        int done = 0;
        for (int left = 0; !done && left < 200; left++) {
            scarce s = {1000, 0};
            fs_context_options options = FS_CONTEXT_INIT;
            options.backend = FS_BACKEND_CPU;
            options.allocator = scarce_allocator(&s);
            fs_context *ctx;
            MUST(fs_context_create(&ctx, &options));
            s.left = left;
            answer a = answer_make(200, 20, kind ? 3 : 20);
            const fs_operand operand = operand_of(&A.m);
            const fs_svd_options o = options_of(kind ? 3 : 0, -1, kind == 2);
            const fs_result result = fs_pca(ctx, &operand, &o, NULL, &a.U, a.s, &a.V, &a.report);
            if (result != FS_OK) assert_int_equal(result, FS_ENOMEM);
            done = result == FS_OK;
            answer_free(&a);
            fs_context_destroy(ctx);
            assert_int_equal(s.live, 0);
        }
        assert_true(done);
    }
    view_free(&A);
}

/* The error of one read lies in its interval in all but 2 % of draws. */
static void intervals_hold(void **state)
{
    (void)state;
    enum { DRAWS = 400 / THIN };
    fs_context *ctx = context_of(NULL, 1);
    for (int kind = HARMONIC; kind <= EXPONENTIAL; kind++) {
        view A = matrix_of((spectrum)kind, ROWS, 120, 40, FS_F64, 12);
        const fs_operand operand = operand_of(&A.m);
        answer a = answer_make(120, 40, 4);
        int missed = 0;
        double widest = 0;
        for (int draw = 0; draw < DRAWS; draw++) {
            fs_svd_options o = options_of(4, 0, 1);
            o.seed = (uint64_t)draw;
            MUST(fs_svd(ctx, &operand, &o, &a.U, a.s, &a.V, &a.report));
            const double error = error_of(&A.m, NULL, &a);
            missed += !(a.report.low <= error && error <= a.report.high);
            widest = fmax(widest, a.report.high / a.report.low);
        }
        if (missed > DRAWS / 50) fail_msg("spectrum %d: %d of %d intervals missed", kind, missed, DRAWS);
        expect_below("width", widest, 2.5);
        answer_free(&a);
        view_free(&A);
    }
    fs_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_singular_values_are_lapacks),
        cmocka_unit_test(types_and_layouts_are_lapacks),
        cmocka_unit_test(dependent_columns_have_zero_vectors),
        cmocka_unit_test(a_few_are_near_the_best),
        cmocka_unit_test(a_few_of_every_type),
        cmocka_unit_test(sources_agree),
        cmocka_unit_test(components_are_of_the_centred_matrix),
        cmocka_unit_test(ranks_are_summed),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(threads_do_not_change_bits),
        cmocka_unit_test(scarce_memory_is_reported),
        cmocka_unit_test(intervals_hold),
    };
    return RUN_TASK_TESTS(tests);
}
