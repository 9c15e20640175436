/* ose.c - fs_ose gives LAPACK's singular values of S Q, for every basis of the same subspace and condition numbers of
 * 1e6. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/problems.h"

/* |(SU)'SU - I| for the U of a problem whose A = U V': S written out, times an orthonormal A. */
static double embedding_error(const fs_sketch *S, const fs_matrix *U, double *smallest, double *largest)
{
    double *T = columns_of(S, 0, U->rows), *s = room(U->cols, 8);
    fs_spec spec = FS_SPEC_INIT;
    MUST(fs_sketch_spec(S, &spec));
    double *SU = room(spec.k * U->cols, 8), *size = room(spec.k * U->cols, 8);
    product(T, spec.k, U->rows, 0, U, SU, size);
    lapack_singular_values(spec.k, U->cols, SU, s);
    *largest = s[0];
    *smallest = spec.k < U->cols ? 0 : s[U->cols - 1];
    free(T), free(SU), free(s), free(size);
    return fmax(fabs(*largest * *largest - 1), fabs(*smallest * *smallest - 1));
}

/* The range of a problem does not depend on its condition number, only its seed. */
static void errors_are_lapacks(void **state)
{
    (void)state;
    static const struct {
        int64_t d, n, k;
    } shapes[] = {{300, 1, 20}, {500, 16, 64}, {2500, 33, 100}, {200, 40, 30}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int f64 = 0; f64 < 2; f64++)
            for (double condition = 1; condition < 2e6; condition *= 1e3) {
                const int64_t n = shapes[s].n, k = shapes[s].k, d = shapes[s].d;
                problem p = problem_make(d, n, 0, f64 ? FS_F64 : FS_F32, condition, 0, 6),
                        even = problem_make(d, n, 0, FS_F64, 1, 0, 6);
                bench b = bench_open(&p, k, 3, d);
                fs_ose_report report = FS_OSE_REPORT_INIT;
                double smallest, largest;
                const double want = embedding_error(b.S, &even.A, &smallest, &largest);
                MUST(fs_ose(b.w, b.S, &p.A, 0, &report));
                /* Storing A in f32 moves its range by 2^-24 times the condition number. */
                const double slack = f64 ? 1e-9 : 1e-5 + 2e-7 * condition;
                if (!(fabs(report.error - want) <= slack))
                    fail_msg("d %d n %d k %d condition %g: error %g, LAPACK %g", (int)d, (int)n, (int)k, condition,
                             report.error, want);
                assert_true(fabs(report.sigma_max - largest) <= slack);
                assert_true(fabs(report.sigma_min - smallest) <= slack + (smallest == 0 ? 1e-4 : 0));
                assert_true(report.error <= report.frobenius * (1 + 1e-12));
                assert_true(report.sketch_seconds > 0 && report.solve_seconds > 0);
                bench_close(&b);
                problem_free(&p), problem_free(&even);
            }
}

/* A random subspace: another seed is another one, the same seed the same, and its error that of a Gaussian sketch. */
static void random_subspaces(void **state)
{
    (void)state;
    problem p = problem_make(3000, 32, 0, FS_F32, 1, 0, 1);
    bench b = bench_open(&p, 512, 3, 3000);
    fs_ose_report first = FS_OSE_REPORT_INIT, again = FS_OSE_REPORT_INIT;
    MUST(fs_ose(b.w, b.S, NULL, 7, &first));
    MUST(fs_ose(b.w, b.S, NULL, 7, &again));
    assert_true(first.error == again.error);
    MUST(fs_ose(b.w, b.S, NULL, 8, &again));
    assert_true(first.error != again.error);
    int inside = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        MUST(fs_ose(b.w, b.S, NULL, seed, &again));
        inside += again.low <= again.error && again.error <= again.high;
    }
    printf("%d of 100 random subspaces have an error between %.3g and %.3g\n", inside, again.low, again.high);
    assert_true(inside >= 95);
    bench_close(&b);
    problem_free(&p);
}

static void what_has_no_basis_is_refused(void **state)
{
    (void)state;
    problem p = problem_make(100, 5, 0, FS_F32, 1, 0, 1);
    bench b = bench_open(&p, 30, 3, 100), none = bench_open(&p, 30, 3, 0);
    fs_ose_report report = FS_OSE_REPORT_INIT;
    REFUSED(fs_ose(none.w, none.S, &p.A, 0, &report), FS_EINVAL, "basis", "0 rows");
    for (int64_t i = 0; i < 100; i++) put(&p.A, i, 3, at(&p.A, i, 0) + at(&p.A, i, 1));
    REFUSED(fs_ose(b.w, b.S, &p.A, 0, &report), FS_EINVAL, "column 4", "depends");
    put(&p.A, 17, 2, NAN);
    REFUSED(fs_ose(b.w, b.S, &p.A, 0, &report), FS_EINVAL, "not finite");
    for (int64_t i = 0; i < 100; i++)
        for (int64_t j = 0; j < 5; j++) put(&p.A, i, j, 0);
    REFUSED(fs_ose(b.w, b.S, &p.A, 0, &report), FS_EINVAL, "column 1", "depends");
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    shape.k = 4, shape.n = 9, shape.basis = 8;
    fs_workspace *w;
    REFUSED(fs_workspace_create(&w, b.ctx, &shape), FS_EINVAL, "basis = 8", "9");
    bench_close(&b), bench_close(&none);
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(errors_are_lapacks), cmocka_unit_test(random_subspaces),
                                       cmocka_unit_test(what_has_no_basis_is_refused)};
    return RUN_TASK_TESTS(tests);
}
