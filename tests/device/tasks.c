/* tasks.c - Gram matrices, embedding errors, ridge and least squares on a GPU, in its memory.
 *
 * The reference is what the answers must satisfy, in plain loops over the Y and C that the GPU itself made: a machine
 * with a GPU need not have a LAPACK.  (Against LAPACK tests/tasks tries the same task code on a CPU.)  Where the GPU's
 * linear algebra cannot be loaded the tests are skipped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "flashsketch_tasks.h"

/* A problem in device memory, its sketch, and host copies of what tasks start from. */
typedef struct fixture {
    int64_t d, n, rhs, k;
    view A, B, Y, C;
    mirror a, b;
    fs_sketch *S;
    fs_workspace *w;
} fixture;

static fs_workspace *workspace(const lane *l, int64_t k, int64_t n, int64_t rhs, fs_dtype dtype, int64_t basis)
{
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    shape.k = k, shape.n = n, shape.rhs = rhs, shape.dtype = dtype, shape.basis = basis;
    fs_workspace *w = NULL;
    const fs_result result = fs_workspace_create(&w, l->gpu, &shape);
    if (result == FS_EBACKEND && strstr(fs_error_message(), "could not be loaded")) skip_because(fs_error_message());
    MUST(result);
    return w;
}

/* A of normals whose columns shrink geometrically to 1 / slope, B = A ones + normals. */
static fixture fixture_make(const lane *l, int64_t d, int64_t n, int64_t rhs, int64_t k, fs_dtype in, double slope,
                            int64_t basis)
{
    fixture f = {.d = d, .n = n, .rhs = rhs, .k = k};
    const fs_dtype sum = fsi_dtype_sum(in);
    f.A = view_make(ROWS_PADDED, d, n, in), f.B = view_make(COLUMNS, d, rhs, sum);
    f.Y = view_make(ROWS, k, n, sum), f.C = view_make(ROWS, k, rhs, sum);
    for (int64_t i = 0; i < d; i++) {
        double row = 0;
        for (int64_t j = 0; j < n; j++) {
            put(&f.A.m, i, j, normal_at(1, i * n + j) * pow(slope, n > 1 ? -(double)j / (double)(n - 1) : 0));
            row += at(&f.A.m, i, j);
        }
        for (int64_t c = 0; c < rhs; c++) put(&f.B.m, i, c, row + 0.3 * normal_at(2, i * rhs + c));
    }
    f.a = mirror_make(l, &f.A), f.b = mirror_make(l, &f.B);
    fs_spec spec = FS_SPEC_INIT;
    spec.d = d, spec.k = k, spec.seed = 3;
    f.S = sketch_of(&spec);
    f.w = workspace(l, k, n, rhs, sum, basis);
    return f;
}

static void fixture_free(const lane *l, fixture *f)
{
    fs_workspace_destroy(f->w);
    fs_sketch_destroy(f->S);
    mirror_free(l, &f->a), mirror_free(l, &f->b);
    view_free(&f->A), view_free(&f->B), view_free(&f->Y), view_free(&f->C);
}

/* Sketches on the device and brings Y and C here. */
static void sketch(const lane *l, fixture *f)
{
    fs_matrix Y, C;
    const int64_t bytes = fsi_dtype_size(f->Y.m.dtype);
    MUST(fs_task_sketch(f->w, f->S, &f->a.m, f->rhs ? &f->b.m : NULL));
    MUST(fs_workspace_views(f->w, &Y, &C));
    copy_out(l->stream, f->Y.m.data, Y.data, f->k * f->n * bytes);
    if (f->rhs) copy_out(l->stream, f->C.m.data, C.data, f->k * f->rhs * bytes);
}

/* g = Y'(C - Y X) - lambda X is 0 where X is the minimum.  The largest |g_j| / (|y_j| |C|). */
static double gradient(const fixture *f, const fs_matrix *X, double lambda)
{
    double worst = 0, whole = 0;
    double *E = room(f->k * f->rhs, sizeof *E);
    for (int64_t i = 0; i < f->k; i++)
        for (int64_t c = 0; c < f->rhs; c++) {
            double sum = at(&f->C.m, i, c);
            whole += sum * sum;
            for (int64_t j = 0; j < f->n; j++) sum -= at(&f->Y.m, i, j) * at(X, j, c);
            E[i * f->rhs + c] = sum;
        }
    for (int64_t j = 0; j < f->n; j++)
        for (int64_t c = 0; c < f->rhs; c++) {
            double g = -lambda * at(X, j, c), length = 0;
            for (int64_t i = 0; i < f->k; i++) {
                const double y = at(&f->Y.m, i, j);
                g += y * E[i * f->rhs + c], length += y * y;
            }
            if (length > 0) worst = fmax(worst, fabs(g) / sqrt(length * whole));
        }
    free(E);
    return worst;
}

static const struct {
    int64_t d, n, rhs, k;
    fs_dtype in;
    double slope;
} cases[] = {
    {3000, 40, 1, 200, FS_F32, 1},    {3000, 40, 3, 200, FS_F32, 1e6}, {3001, 33, 2, 129, FS_F64, 1e6},
    {2000, 1, 1, 64, FS_F32, 1},      {2000, 20, 1, 100, FS_BF16, 10}, {5000, 130, 40, 600, FS_F32, 100},
    {2000, 300, 2, 700, FS_F32, 100},
};

/* X on the device, and into host memory: X makes the gradient 0, and the report's numbers are right. */
static void check_fit(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const int64_t count = COUNT(cases), at_case = number % count, ridge = number / count;
    const double lambda = ridge ? 0.1 : 0;
    fixture f = fixture_make(l, cases[at_case].d, cases[at_case].n, cases[at_case].rhs, cases[at_case].k,
                             cases[at_case].in, cases[at_case].slope, 0);
    sketch(l, &f);
    view X = view_make(COLUMNS_PADDED, f.n, f.rhs, FS_F64), again = view_make(ROWS, f.n, f.rhs, FS_F64);
    view_seal(&X);
    mirror x = mirror_make(l, &X);
    fs_fit_report report = FS_FIT_REPORT_INIT;
    MUST(ridge ? fs_ridge(f.w, lambda, &x.m, &report) : fs_solve(f.w, 0.0, &x.m, &report));
    mirror_fetch(l, "X", &x, &X);
    expect_padding_untouched("X", &X);
    const double off = gradient(&f, &X.m, lambda);
    if (!(off <= 1e-9)) fail_msg("case %d: the gradient is %g", (int)number, off);
    if (report.method != FS_METHOD_CHOLESKY) fail_msg("case %d: not solved by Cholesky", (int)number);
    MUST(ridge ? fs_ridge(f.w, lambda, &again.m, NULL) : fs_solve(f.w, 0.0, &again.m, NULL));
    expect_equal("X in host memory", &again.m, &X.m);
    double *norms = room(f.rhs, sizeof *norms), square = 0, truth = 0;
    MUST(fs_residual(f.w, &f.a.m, &f.b.m, &x.m, norms));
    for (int64_t c = 0; c < f.rhs; c++) {
        square += norms[c] * norms[c];
        for (int64_t i = 0; i < f.d; i++) {
            double sum = -at(&f.B.m, i, c);
            for (int64_t j = 0; j < f.n; j++) sum += at(&f.A.m, i, j) * at(&X.m, j, c);
            truth += sum * sum;
        }
    }
    if (!(fabs(sqrt(square) - sqrt(truth)) <= 1e-10 * sqrt(truth)))
        fail_msg("residual %g, truth %g", sqrt(square), sqrt(truth));
    if (!(report.low <= sqrt(truth) && sqrt(truth) <= report.high))
        fail_msg("case %d: |A X - B| = %g is not between %g and %g", (int)number, sqrt(truth), report.low, report.high);
    assert_true(report.sketch_seconds > 0 && report.solve_seconds > 0);
    free(norms);
    mirror_free(l, &x);
    view_free(&X), view_free(&again);
    fixture_free(l, &f);
}
static void fits_are_minima(void **state)
{
    (void)state;
    for_each_case(2 * COUNT(cases), 4, check_fit, NULL);
}

/* k < n, and columns that are 0 or twice there: the shortest solution, which lies in the range of Y' and, for a zero
 * column or two equal ones, has 0 and equal elements. */
static void check_shortest(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const int wide = number % 2, f64 = number / 2 % 2;
    fixture f = fixture_make(l, 900, 30, 2, wide ? 20 : 90, f64 ? FS_F64 : FS_F32, 3, 0);
    for (int64_t i = 0; i < f.d && !wide; i++) put(&f.A.m, i, 7, at(&f.A.m, i, 2)), put(&f.A.m, i, 9, 0.0);
    mirror_load(l, &f.a, &f.A);
    sketch(l, &f);
    view X = view_make(ROWS, f.n, f.rhs, FS_F64);
    fs_fit_report report = FS_FIT_REPORT_INIT;
    MUST(fs_solve(f.w, 0.0, &X.m, &report));
    if (report.method != (wide ? FS_METHOD_CHOLESKY : FS_METHOD_SVD) || report.rank != (wide ? 20 : 28))
        fail_msg("method %d, rank %d", (int)report.method, (int)report.rank);
    if (wide) {
        if (!(report.sketched <= 1e-10 * report.rhs)) fail_msg("|Y X - C| = %g", report.sketched);
    } else {
        if (!(gradient(&f, &X.m, 0) <= 1e-9)) fail_msg("the gradient is %g", gradient(&f, &X.m, 0));
        for (int64_t c = 0; c < f.rhs; c++) {
            assert_true(fabs(at(&X.m, 7, c) - at(&X.m, 2, c)) <= 1e-9 * fabs(at(&X.m, 2, c)));
            assert_true(fabs(at(&X.m, 9, c)) <= 1e-12);
        }
    }
    view_free(&X);
    fixture_free(l, &f);
}
static void shortest_solutions(void **state)
{
    (void)state;
    for_each_case(4, 4, check_shortest, NULL);
}

/* The GPU's own factorization and substitution (src/cuda/linalg/cholesky.cu) work on tiles of 64 columns and strips
 * of 16, in several thread blocks: n + 1 columns that end everywhere in a tile, that fill it, and that are many
 * tiles.  X is the minimum, and has the same bits whenever it is made. */
static const int64_t orders[] = {1, 2, 14, 15, 16, 30, 31, 32, 62, 63, 64, 65, 126, 127, 128, 199, 512, 700, 1024};
static void check_order(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const int64_t n = orders[number / 2], ridge = number % 2;
    const double lambda = ridge ? 0.1 : 0;
    fixture f = fixture_make(l, 2 * n + 40, n, 1, n + n / 2 + 20, FS_F32, 10, 0);
    sketch(l, &f);
    view X = view_make(ROWS, n, 1, FS_F64), again = view_make(ROWS, n, 1, FS_F64);
    fs_fit_report report = FS_FIT_REPORT_INIT;
    for (int64_t turn = 0; turn < 4; turn++) {
        view *to = turn ? &again : &X;
        MUST(ridge ? fs_ridge(f.w, lambda, &to->m, &report) : fs_solve(f.w, 0.0, &to->m, &report));
        if (report.method != FS_METHOD_CHOLESKY) fail_msg("n = %d: not solved by Cholesky", (int)n);
        if (turn) expect_equal("X once more", &again.m, &X.m);
    }
    const double off = gradient(&f, &X.m, lambda);
    if (!(off <= 1e-9)) fail_msg("n = %d: the gradient is %g", (int)n, off);
    view_free(&X), view_free(&again);
    fixture_free(l, &f);
}
static void factors_of_every_order(void **state)
{
    (void)state;
    for_each_case(2 * COUNT(orders), 8, check_order, NULL);
}

/* A repeated column leaves no pivot, be it among the first, in the middle or the last: singular values take over, and
 * both get the same coefficient.  Afterwards a factorization is as it was. */
static void check_broken(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const int64_t n = number / 3 ? 300 : 70, second = number % 3 == 0 ? 1 : number % 3 == 1 ? n / 2 : n - 1;
    fixture f = fixture_make(l, 2 * n + 40, n, 1, n + n / 2 + 20, FS_F32, 3, 0);
    view X = view_make(ROWS, n, 1, FS_F64), before = view_make(ROWS, n, 1, FS_F64);
    fs_fit_report report = FS_FIT_REPORT_INIT;
    sketch(l, &f);
    MUST(fs_solve(f.w, 0.0, &before.m, NULL));
    for (int64_t i = 0; i < f.d; i++) put(&f.A.m, i, second, at(&f.A.m, i, second - 1));
    mirror twice = mirror_make(l, &f.A), whole = f.a;
    f.a = twice;
    sketch(l, &f);
    MUST(fs_solve(f.w, 0.0, &X.m, &report));
    if (report.method != FS_METHOD_SVD || report.rank != n - 1)
        fail_msg("n = %d, column %d twice: method %d, rank %d", (int)n, (int)second, (int)report.method,
                 (int)report.rank);
    const double off = gradient(&f, &X.m, 0), one = at(&X.m, second - 1, 0), other = at(&X.m, second, 0);
    if (!(off <= 1e-9)) fail_msg("n = %d, column %d twice: the gradient is %g", (int)n, (int)second, off);
    if (!(fabs(one - other) <= 1e-9 * fabs(one))) fail_msg("one column has %g, its copy %g", one, other);
    f.a = whole;
    sketch(l, &f);
    MUST(fs_solve(f.w, 0.0, &X.m, NULL));
    expect_equal("X of the matrix before", &X.m, &before.m);
    mirror_free(l, &twice);
    view_free(&X), view_free(&before);
    fixture_free(l, &f);
}
static void missing_pivots(void **state)
{
    (void)state;
    for_each_case(6, 3, check_broken, NULL);
}

/* G is Y'Y, and its error that of plain loops. */
static void check_gram(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const int64_t at_case = number;
    fixture f = fixture_make(l, cases[at_case].d, cases[at_case].n, 0, cases[at_case].k, cases[at_case].in, 3, 0);
    sketch(l, &f);
    view G = view_make(COLUMNS_PADDED, f.n, f.n, FS_F64);
    view_seal(&G);
    mirror g = mirror_make(l, &G);
    fs_gram_report report = FS_GRAM_REPORT_INIT;
    double frobenius, spectral, apart = 0, whole = 0;
    MUST(fs_gram(f.w, f.S, &g.m, &report));
    MUST(fs_gram_error(f.w, &f.a.m, &frobenius, &spectral));
    mirror_fetch(l, "G", &g, &G);
    expect_padding_untouched("G", &G);
    for (int64_t i = 0; i < f.n; i++)
        for (int64_t j = 0; j < f.n; j++) {
            double y = 0, a = 0;
            for (int64_t r = 0; r < f.k; r++) y += at(&f.Y.m, r, i) * at(&f.Y.m, r, j);
            for (int64_t r = 0; r < f.d; r++) a += at(&f.A.m, r, i) * at(&f.A.m, r, j);
            if (!(fabs(at(&G.m, i, j) - y) <= 1e-10 * (double)f.d))
                fail_msg("G(%d, %d) = %g, not %g", (int)i, (int)j, at(&G.m, i, j), y);
            apart += (y - a) * (y - a), whole += a * a;
        }
    if (!(fabs(frobenius - sqrt(apart / whole)) <= 1e-9))
        fail_msg("error %g, loops say %g", frobenius, sqrt(apart / whole));
    assert_true(spectral > 0 && spectral <= frobenius * sqrt((double)f.n) * (1 + 1e-12) && report.error > 0);
    mirror_free(l, &g);
    view_free(&G);
    fixture_free(l, &f);
}
static void grams_are_products(void **state)
{
    (void)state;
    for_each_case(COUNT(cases), 3, check_gram, NULL);
}

/* The embedding error depends on the range alone: A and A T have the same, T triangular, whatever the condition number;
 * and it is the one that the CPU's sketch of the same basis has, where n = 1 and the basis is A / |A|. */
static void check_ose(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const int f64 = number % 2;
    fixture f = fixture_make(l, 2500, 24, 0, 150, f64 ? FS_F64 : FS_F32, 1, 2500);
    fs_ose_report even = FS_OSE_REPORT_INIT, mixed = FS_OSE_REPORT_INIT, one = FS_OSE_REPORT_INIT;
    MUST(fs_ose(f.w, f.S, &f.a.m, 0, &even));
    for (int64_t i = 0; i < f.d; i++)
        for (int64_t j = f.n - 1; j > 0; j--)
            put(&f.A.m, i, j, ldexp(at(&f.A.m, i, j) + at(&f.A.m, i, j - 1), -(int)j));
    mirror_load(l, &f.a, &f.A);
    MUST(fs_ose(f.w, f.S, &f.a.m, 0, &mixed));
    if (!(fabs(even.error - mixed.error) <= (f64 ? 1e-10 : 2e-4)))
        fail_msg("errors %g and %g", even.error, mixed.error);
    assert_true(even.low <= even.error && even.error <= even.high && even.sigma_min < 1 && even.sigma_max > 1);
    MUST(fs_ose(f.w, f.S, NULL, 5, &mixed));
    assert_true(mixed.error > 0.5 * mixed.expected && mixed.error < 1.5 * mixed.expected);

    fs_workspace *w = workspace(l, 150, 1, 0, f64 ? FS_F64 : FS_F32, 2500);
    double sketched = 0, whole = 0;
    MUST(fs_ose(w, f.S, &f.a.m, 0, &one));
    sketch(l, &f);
    for (int64_t i = 0; i < f.k; i++) sketched += at(&f.Y.m, i, 0) * at(&f.Y.m, i, 0);
    for (int64_t i = 0; i < f.d; i++) whole += at(&f.A.m, i, 0) * at(&f.A.m, i, 0);
    assert_true(fabs(one.error - fabs(sketched / whole - 1)) <= (f64 ? 1e-10 : 1e-5));
    fs_workspace_destroy(w);
    fixture_free(l, &f);
}
static void embedding_errors_belong_to_the_range(void **state)
{
    (void)state;
    for_each_case(2, 2, check_ose, NULL);
}

/* NaN, zeros, and matrices in the wrong place. */
static void check_degenerate(const lane *l, int64_t number, const void *data)
{
    (void)number, (void)data;
    fixture f = fixture_make(l, 400, 9, 2, 60, FS_F32, 2, 400);
    view X = view_make(ROWS, 9, 2, FS_F32);
    fs_fit_report report = FS_FIT_REPORT_INIT;
    fs_ose_report ose = FS_OSE_REPORT_INIT;
    double norms[2];
    view_seal(&X);
    mirror x = mirror_make(l, &X);
    put(&f.A.m, 30, 4, NAN);
    mirror_load(l, &f.a, &f.A);
    MUST(fs_task_sketch(f.w, f.S, &f.a.m, &f.b.m));
    REFUSED(fs_solve(f.w, 0.0, &x.m, NULL), FS_EINVAL, "A", "not finite");
    REFUSED(fs_ridge(f.w, 1.0, &x.m, NULL), FS_EINVAL, "not finite");
    REFUSED(fs_gram(f.w, f.S, NULL, NULL), FS_EINVAL, "not finite");
    REFUSED(fs_ose(f.w, f.S, &f.a.m, 0, &ose), FS_EINVAL, "not finite");
    expect_mirror_untouched(l, "X", &x, &X);
    for (int64_t i = 0; i < f.d; i++)
        for (int64_t j = 0; j < f.n; j++) put(&f.A.m, i, j, 0);
    mirror_load(l, &f.a, &f.A);
    MUST(fs_task_sketch(f.w, f.S, &f.a.m, &f.b.m));
    MUST(fs_solve(f.w, 0.0, &X.m, &report));
    for (int64_t i = 0; i < 18; i++) assert_true(at(&X.m, i / 2, i % 2) == 0);
    assert_true(report.rank == 0 && fabs(report.residual - report.rhs) <= 1e-12 * report.rhs);
    REFUSED(fs_ose(f.w, f.S, &f.a.m, 0, &ose), FS_EINVAL, "column 1", "depends");
    if (!dry) REFUSED(fs_residual(f.w, &f.A.m, &f.b.m, &x.m, norms), FS_EUNSUPPORTED, "host memory");
    mirror_free(l, &x);
    view_free(&X);
    fixture_free(l, &f);
}
static void degenerate_problems(void **state)
{
    (void)state;
    for_each_case(1, 1, check_degenerate, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_are_minima),     cmocka_unit_test(shortest_solutions),
        cmocka_unit_test(grams_are_products),  cmocka_unit_test(embedding_errors_belong_to_the_range),
        cmocka_unit_test(degenerate_problems), cmocka_unit_test(factors_of_every_order),
        cmocka_unit_test(missing_pivots),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
