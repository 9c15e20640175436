/* solvers.c - least squares, QR, singular values and leverage scores on a GPU, of matrices in its memory.
 *
 * The reference is what the answers must satisfy, in plain loops on the host: a machine with a GPU need not have a
 * LAPACK.  (Against LAPACK tests/tasks tries the same solvers on a CPU.)  Where the GPU's linear algebra cannot be
 * loaded the tests are skipped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "device.h"
#include "flashsketch_tasks.h"

/* FS_OK, or the test ends: skipped where cuBLAS or cuSOLVER are missing. */
static void solved(fs_result result, const char *who)
{
    if (result == FS_EBACKEND && strstr(fs_error_message(), "could not be loaded")) skip_because(fs_error_message());
    if (result != FS_OK) fail_msg("%s: %s", who, fs_error_message());
}

/* problems --------------------------------------------------------------------------------------------------- */

/* A shape, and how A is given. */
typedef enum kind { DENSE, CSR, CSC, SLICES, HOST_SLICES } kind;
typedef struct problem {
    int64_t d, n, rhs;
    fs_dtype dtype;
    layout how;
    kind given;
    double slope; /* columns shrink geometrically to 1 / slope */
} problem;

/* Widths that end in every place of a tile, that fill it and that do not fit: the kernel of normal.cu, and the panels
 * of products.cu for the widest and for many right-hand sides. */
static const problem problems[] = {
    {300, 1, 1, FS_F32, ROWS, DENSE, 1},
    {1000, 2, 3, FS_F64, ROWS, DENSE, 10},
    {2000, 7, 1, FS_F32, ROWS_SHIFTED, DENSE, 10},
    {3001, 33, 5, FS_F64, ROWS_PADDED, DENSE, 1e6},
    {3000, 40, 4, FS_F32, COLUMNS, DENSE, 100},
    {2500, 64, 1, FS_F32, ROWS, DENSE, 1e3},
    {2500, 65, 17, FS_F32, ROWS, DENSE, 10},
    {4000, 130, 1, FS_F64, COLUMNS_PADDED, DENSE, 1e8},
    {2000, 100, 2, FS_BF16, ROWS, DENSE, 3},
    {2000, 101, 2, FS_F16, ROWS_BACKWARD, DENSE, 3},
    {1500, 50, 1, FS_F32, ROWS_SPREAD, DENSE, 10},
    {9000, 1000, 1, FS_F32, ROWS, DENSE, 10},
    {9000, 999, 1, FS_F64, ROWS, DENSE, 10},
    {2000, 30, 2, FS_F64, ROWS, CSR, 10},
    {2000, 30, 2, FS_F32, ROWS, CSC, 10},
    {2000, 31, 1, FS_F32, ROWS_PADDED, SLICES, 10},
    {2000, 31, 3, FS_F64, COLUMNS, HOST_SLICES, 10},
};

/* Slices of 700 rows, and what is left. */
typedef struct slicer {
    fs_matrix A;
    int64_t at;
} slicer;
static fs_result begin_read(void *user)
{
    ((slicer *)user)->at = 0;
    return FS_OK;
}
static fs_result next_slice(void *user, fs_matrix *dense, const fs_sparse **sparse)
{
    enum { ROWS_OF_A_SLICE = 700 };
    slicer *s = user;
    (void)sparse;
    *dense = s->A;
    dense->rows = fsi_min(ROWS_OF_A_SLICE, s->A.rows - s->at);
    dense->data = (char *)s->A.data + s->at * s->A.row_stride * fsi_dtype_size(s->A.dtype);
    s->at += dense->rows;
    return FS_OK;
}

typedef struct fixture {
    const problem *p;
    view A, B;
    mirror a, b;
    fs_sparse sparse, on_device;
    slicer slices;
    fs_slices callbacks;
    fs_operand operand;
} fixture;

/* Normals, or for a sparse A small integers a quarter of which are not 0; B = A ones + normals. */
static void fill(fixture *f)
{
    const problem *p = f->p;
    const int sparse = p->given == CSR || p->given == CSC;
    for (int64_t i = 0; i < p->d; i++) {
        double row = 0;
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t e = i * p->n + j;
            const double scale = pow(p->slope, p->n > 1 ? -(double)j / (double)(p->n - 1) : 0);
            const double x = sparse ? (bits_at(7, e) % 4 ? 0 : whole_at(1, e, 5)) : normal_at(1, e) * scale;
            put(&f->A.m, i, j, x);
            row += at(&f->A.m, i, j);
        }
        for (int64_t c = 0; c < p->rhs; c++) put(&f->B.m, i, c, row + 0.3 * normal_at(2, i * p->rhs + c));
    }
}

static void give(const lane *l, fixture *f)
{
    const fs_operand start = FS_OPERAND_INIT;
    const fs_slices empty = FS_SLICES_INIT;
    const problem *p = f->p;
    f->operand = start;
    f->callbacks = empty;
    if (p->given == CSR || p->given == CSC) {
        f->sparse = sparse_of(&f->A.m, 3, p->given == CSR ? FS_CSR : FS_CSC, FS_INDEX32);
        f->on_device = sparse_mirror(l, &f->sparse);
        f->operand.sparse = &f->on_device;
    } else if (p->given == DENSE) {
        f->operand.dense = &f->a.m;
    } else {
        f->slices.A = p->given == SLICES ? f->a.m : f->A.m;
        f->callbacks.rows = p->d, f->callbacks.cols = p->n, f->callbacks.dtype = p->dtype;
        f->callbacks.rewind = begin_read, f->callbacks.next = next_slice, f->callbacks.user = &f->slices;
        f->operand.slices = &f->callbacks;
    }
}

/* Fills f in place: its operand points into it. */
static void fixture_make(const lane *l, fixture *f, const problem *p)
{
    memset(f, 0, sizeof *f);
    f->p = p;
    f->A = view_make(p->how, p->d, p->n, p->dtype);
    f->B = view_make(COLUMNS, p->d, p->rhs, p->dtype == FS_F64 ? FS_F64 : FS_F32);
    fill(f);
    f->a = mirror_make(l, &f->A), f->b = mirror_make(l, &f->B);
    give(l, f);
}
static void fixture_free(const lane *l, fixture *f)
{
    if (f->operand.sparse) {
        sparse_mirror_free(l, &f->on_device);
        sparse_free(&f->sparse);
    }
    mirror_free(l, &f->a), mirror_free(l, &f->b);
    view_free(&f->A), view_free(&f->B);
}

static double unit_of(fs_dtype dtype) { return dtype == FS_F64 ? 0x1p-53 : 0x1p-24; }

/* least squares ---------------------------------------------------------------------------------------------- */

/* The largest of |A'r| / (|A| (|r| + |A| |x|)) over right-hand sides, r = B - A x: at most about the backward error. */
static double gradient(const fixture *f, const fs_matrix *X)
{
    const int64_t d = f->p->d, n = f->p->n;
    double worst = 0, norm = 0, *g = room(n, sizeof *g);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++) norm = fma(at(&f->A.m, i, j), at(&f->A.m, i, j), norm);
    norm = sqrt(norm);
    for (int64_t c = 0; c < f->p->rhs; c++) {
        double rest = 0, size = 0, length = 0;
        memset(g, 0, (size_t)n * sizeof *g);
        for (int64_t i = 0; i < d; i++) {
            double r = at(&f->B.m, i, c);
            for (int64_t j = 0; j < n; j++) r -= at(&f->A.m, i, j) * at(X, j, c);
            for (int64_t j = 0; j < n; j++) g[j] += at(&f->A.m, i, j) * r;
            rest += r * r;
        }
        for (int64_t j = 0; j < n; j++) length += g[j] * g[j], size += at(X, j, c) * at(X, j, c);
        worst = fmax(worst, sqrt(length) / (norm * (sqrt(rest) + norm * sqrt(size))));
    }
    free(g);
    return worst;
}

static const fs_lstsq_method methods[] = {FS_LSTSQ_AUTO, FS_LSTSQ_ITERATE, FS_LSTSQ_NORMAL};
static void check_lstsq(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const problem *p = &problems[number % COUNT(problems)];
    fs_lstsq_options options = FS_LSTSQ_INIT;
    options.method = methods[number / COUNT(problems)];
    if (options.method == FS_LSTSQ_NORMAL && (p->given == CSR || p->given == CSC || p->slope > 1e6)) return;
    fixture f;
    fixture_make(l, &f, p);
    view X = view_make(COLUMNS_PADDED, p->n, p->rhs, FS_F64), again = view_make(ROWS, p->n, p->rhs, FS_F64);
    view_seal(&X);
    mirror x = mirror_make(l, &X);
    fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
    solved(fs_lstsq(l->gpu, &f.operand, &f.b.m, &options, &x.m, &report), "fs_lstsq");
    mirror_fetch(l, "X", &x, &X);
    expect_padding_untouched("X", &X);
    const double off = gradient(&f, &X.m), bound = 16 * unit_of(p->dtype);
    if (!(off <= bound))
        fail_msg("case %d: the gradient is %g, above %g; %d iterations, backward error %g", (int)number, off, bound,
                 (int)report.iterations, report.backward_error);
    if (report.rank != p->n || !report.converged)
        fail_msg("case %d: rank %d of %d, converged %d: %s", (int)number, (int)report.rank, (int)p->n, report.converged,
                 report.note);
    solved(fs_lstsq(l->gpu, &f.operand, &f.B.m, &options, &again.m, NULL), "fs_lstsq once more");
    expect_equal("X of host matrices", &again.m, &X.m);
    mirror_free(l, &x);
    view_free(&X), view_free(&again);
    fixture_free(l, &f);
}
static void solutions_are_minima(void **state)
{
    (void)state;
    for_each_case(COUNT(methods) * COUNT(problems), 12, check_lstsq, NULL);
}

/* Two equal columns and one of zeros: the shortest solution has equal elements and a 0 there. */
static void check_shortest(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const problem of[] = {{2000, 30, 2, FS_F32, ROWS, DENSE, 3}, {2000, 30, 2, FS_F64, ROWS, DENSE, 3}};
    const problem *p = &of[number];
    fixture f;
    fixture_make(l, &f, p);
    for (int64_t i = 0; i < p->d; i++) put(&f.A.m, i, 7, at(&f.A.m, i, 2)), put(&f.A.m, i, 9, 0.0);
    mirror_load(l, &f.a, &f.A);
    view X = view_make(ROWS, p->n, p->rhs, FS_F64);
    fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
    solved(fs_lstsq(l->gpu, &f.operand, &f.b.m, NULL, &X.m, &report), "fs_lstsq");
    if (report.rank != 28) fail_msg("rank %d, it is 28", (int)report.rank);
    const double bound = 64 * unit_of(p->dtype);
    if (!(gradient(&f, &X.m) <= bound)) fail_msg("the gradient is %g, above %g", gradient(&f, &X.m), bound);
    for (int64_t c = 0; c < p->rhs; c++) {
        const double one = at(&X.m, 2, c), other = at(&X.m, 7, c), zero = at(&X.m, 9, c);
        if (!(fabs(one - other) <= 1e-4 * fabs(one) && fabs(zero) <= 1e-6))
            fail_msg("equal columns have %g and %g, a column of zeros has %g", one, other, zero);
    }
    view_free(&X);
    fixture_free(l, &f);
}
static void solutions_are_shortest(void **state)
{
    (void)state;
    for_each_case(2, 2, check_shortest, NULL);
}

/* QR --------------------------------------------------------------------------------------------------------- */

/* |Q'Q - I|_F of the first r columns. */
static double orthogonality(const fs_matrix *Q, int64_t r)
{
    double sum = 0;
    for (int64_t a = 0; a < r; a++)
        for (int64_t b = 0; b <= a; b++) {
            double dot = a == b ? -1 : 0;
            for (int64_t i = 0; i < Q->rows; i++) dot += at(Q, i, a) * at(Q, i, b);
            sum += (a == b ? 1 : 2) * dot * dot;
        }
    return sqrt(sum);
}
/* |A(:, pivots) - Q R|_F / |A|_F */
static double distance(const fs_matrix *A, const int64_t *pivots, const fs_matrix *Q, const fs_matrix *R)
{
    double apart = 0, whole = 0;
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t j = 0; j < A->cols; j++) {
            const double a = at(A, i, pivots ? pivots[j] : j);
            double rest = a;
            for (int64_t t = 0; t <= j; t++) rest -= at(Q, i, t) * at(R, t, j);
            apart += rest * rest, whole += a * a;
        }
    return sqrt(apart / whole);
}

static void check_qr(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const problem *p = &problems[number / 2];
    const int pivot = number % 2;
    if (p->n > 200) return; /* plain loops of d n^2 */
    fixture f;
    fixture_make(l, &f, p);
    fs_qr_options options = FS_QR_INIT;
    options.pivot = pivot;
    fs_qr_report report = FS_QR_REPORT_INIT;
    const fs_dtype out = p->dtype == FS_F64 ? FS_F64 : FS_F32;
    view Q = view_make(p->how, p->d, p->n, out), R = view_make(ROWS, p->n, p->n, FS_F64);
    view_seal(&Q);
    mirror q = mirror_make(l, &Q);
    int64_t *pivots = room(p->n, sizeof *pivots);
    solved(fs_qr(l->gpu, &f.operand, &options, &q.m, &R.m, pivot ? pivots : NULL, &report), "fs_qr");
    mirror_fetch(l, "Q", &q, &Q);
    expect_padding_untouched("Q", &Q);
    const double bound = 10 * (double)p->n * unit_of(out), off = orthogonality(&Q.m, p->n),
                 apart = distance(&f.A.m, pivot ? pivots : NULL, &Q.m, &R.m);
    if (!(off <= bound) || !(apart <= bound) || report.rank != p->n)
        fail_msg("case %d: |Q'Q - I| = %g, |A - Q R| / |A| = %g, above %g; rank %d of %d", (int)number, off, apart,
                 bound, (int)report.rank, (int)p->n);
    free(pivots);
    mirror_free(l, &q);
    view_free(&Q), view_free(&R);
    fixture_free(l, &f);
}
static void factors_multiply_to_A(void **state)
{
    (void)state;
    for_each_case(2 * COUNT(problems), 8, check_qr, NULL);
}

/* Q in the memory of A. */
static void check_in_place(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const problem of[] = {{1500, 37, 1, FS_F32, ROWS_PADDED, DENSE, 10},
                                 {1500, 37, 1, FS_F64, COLUMNS, DENSE, 1e6}};
    fixture f;
    fixture_make(l, &f, &of[number]);
    view Q = view_copy(&f.A), R = view_make(COLUMNS, 37, 37, FS_F64);
    solved(fs_qr(l->gpu, &f.operand, NULL, &f.a.m, &R.m, NULL, NULL), "fs_qr");
    mirror_fetch(l, "Q", &f.a, &Q);
    const double bound = 370 * unit_of(of[number].dtype), off = orthogonality(&Q.m, 37),
                 apart = distance(&f.A.m, NULL, &Q.m, &R.m);
    if (!(off <= bound && apart <= bound))
        fail_msg("|Q'Q - I| = %g, |A - Q R| / |A| = %g, above %g", off, apart, bound);
    view_free(&Q), view_free(&R);
    fixture_free(l, &f);
}
static void factors_in_place(void **state)
{
    (void)state;
    for_each_case(2, 2, check_in_place, NULL);
}

/* singular values -------------------------------------------------------------------------------------------- */

static double approximation_error(const fs_matrix *A, const double *mean, const fs_matrix *U, const double *s,
                                  const fs_matrix *V)
{
    double sum = 0;
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t j = 0; j < A->cols; j++) {
            double rest = at(A, i, j) - (mean ? mean[j] : 0);
            for (int64_t t = 0; t < U->cols; t++) rest -= at(U, i, t) * s[t] * at(V, j, t);
            sum += rest * rest;
        }
    return sqrt(sum);
}

/* All singular values, a few by power steps, a few by one read; of A, or of the centred A. */
static void check_svd(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const problem *p = &problems[number / 4];
    const int way = number % 4, centred = way == 3;
    if (p->n > 200 || p->n < 7) return;
    fixture f;
    fixture_make(l, &f, p);
    fs_svd_options options = FS_SVD_INIT;
    options.rank = way == 0 ? 0 : 5;
    options.one_read = way == 2;
    const int64_t r = options.rank ? options.rank : p->n;
    fs_svd_report report = FS_SVD_REPORT_INIT;
    view U = view_make(ROWS_PADDED, p->d, r, FS_F64), V = view_make(ROWS, p->n, r, FS_F64);
    view_seal(&U);
    mirror u = mirror_make(l, &U);
    double *s = room(r, sizeof *s), *mean = room(p->n, sizeof *mean);
    solved(centred ? fs_pca(l->gpu, &f.operand, &options, mean, &u.m, s, &V.m, &report)
                   : fs_svd(l->gpu, &f.operand, &options, &u.m, s, &V.m, &report),
           "fs_svd");
    mirror_fetch(l, "U", &u, &U);
    expect_padding_untouched("U", &U);
    const double off = fmax(orthogonality(&U.m, r), orthogonality(&V.m, r)),
                 error = approximation_error(&f.A.m, centred ? mean : NULL, &U.m, s, &V.m);
    if (!(off <= 1e-11 * (double)p->n)) fail_msg("case %d: orthonormal but for %g", (int)number, off);
    if (way == 0 ? !(error <= 1e-11 * report.norm)
                 : !(report.low <= error * (1 + 1e-9) && error <= report.high * (1 + 1e-9)))
        fail_msg("case %d: |A - U s V'| = %g of |A| = %g is not from %g to %g", (int)number, error, report.norm,
                 report.low, report.high);
    for (int64_t t = 1; t < r; t++)
        if (!(s[t] <= s[t - 1] && s[t] >= 0)) fail_msg("s[%d] = %g after %g", (int)t, s[t], s[t - 1]);
    free(s), free(mean);
    mirror_free(l, &u);
    view_free(&U), view_free(&V);
    fixture_free(l, &f);
}
static void singular_values_approximate_A(void **state)
{
    (void)state;
    for_each_case(4 * COUNT(problems), 8, check_svd, NULL);
}

/* leverage scores -------------------------------------------------------------------------------------------- */

/* Exact scores are the row norms of Q, estimated ones are near them. */
static void check_leverage(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const problem *p = &problems[number];
    if (p->n > 200) return;
    fixture f;
    fixture_make(l, &f, p);
    view Q = view_make(ROWS, p->d, p->n, FS_F64), R = view_make(ROWS, p->n, p->n, FS_F64);
    double *scores = room(p->d, sizeof *scores), *estimates = room(p->d, sizeof *estimates), worst = 0, square = 0;
    fs_leverage_options options = FS_LEVERAGE_INIT;
    fs_leverage_report report = FS_LEVERAGE_REPORT_INIT;
    solved(fs_qr(l->gpu, &f.operand, NULL, &Q.m, &R.m, NULL, NULL), "fs_qr");
    solved(fs_leverage(l->gpu, &f.operand, &options, estimates, &report), "fs_leverage");
    options.exact = 1;
    solved(fs_leverage(l->gpu, &f.operand, &options, scores, NULL), "fs_leverage, exact");
    for (int64_t i = 0; i < p->d; i++) {
        double norm = 0;
        for (int64_t j = 0; j < p->n; j++) norm += at(&Q.m, i, j) * at(&Q.m, i, j);
        worst = fmax(worst, fabs(norm - scores[i]) / fmax(norm, 1e-3));
        const double off = norm > 0 ? estimates[i] / norm - 1 : 0;
        square += off * off / (double)p->d;
    }
    if (!(worst <= 1e-6)) fail_msg("case %d: scores differ from row norms of Q by %g", (int)number, worst);
    if (!(sqrt(square) <= 3 * report.error + 1e-6))
        fail_msg("case %d: estimates err by %g, reported %g", (int)number, sqrt(square), report.error);
    free(scores), free(estimates);
    view_free(&Q), view_free(&R);
    fixture_free(l, &f);
}
static void leverage_scores_are_row_norms(void **state)
{
    (void)state;
    for_each_case(COUNT(problems), 4, check_leverage, NULL);
}

/* NaN -------------------------------------------------------------------------------------------------------- */

static void check_nonfinite(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const problem of = {900, 20, 1, FS_F32, ROWS, DENSE, 3};
    fixture f;
    fixture_make(l, &f, &of);
    view X = view_make(ROWS, 20, 1, FS_F32), R = view_make(ROWS, 20, 20, FS_F32);
    double scores[900], s[20];
    put(&f.A.m, 33, 4, number ? INFINITY : NAN);
    mirror_load(l, &f.a, &f.A);
    view_seal(&X);
    mirror x = mirror_make(l, &X);
    const fs_result first = fs_lstsq(l->gpu, &f.operand, &f.b.m, NULL, &x.m, NULL);
    if (first == FS_EBACKEND) solved(first, "fs_lstsq");
    REFUSED(first, FS_EINVAL, "A", "not finite");
    REFUSED(fs_qr(l->gpu, &f.operand, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "not finite");
    REFUSED(fs_svd(l->gpu, &f.operand, NULL, NULL, s, NULL, NULL), FS_EINVAL, "not finite");
    REFUSED(fs_leverage(l->gpu, &f.operand, NULL, scores, NULL), FS_EINVAL, "not finite");
    expect_mirror_untouched(l, "X", &x, &X);
    mirror_free(l, &x);
    view_free(&X), view_free(&R);
    fixture_free(l, &f);
}
static void elements_that_are_not_finite(void **state)
{
    (void)state;
    for_each_case(2, 2, check_nonfinite, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solutions_are_minima),          cmocka_unit_test(solutions_are_shortest),
        cmocka_unit_test(factors_multiply_to_A),         cmocka_unit_test(factors_in_place),
        cmocka_unit_test(singular_values_approximate_A), cmocka_unit_test(leverage_scores_are_row_norms),
        cmocka_unit_test(elements_that_are_not_finite),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
