/* gram.c - fs_gram and fs_gram_error against loops in double and LAPACK's norms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/problems.h"

/* X'X of a row-major rows x cols matrix. */
static double *gram(const double *X, int64_t rows, int64_t cols)
{
    double *G = room(cols * cols, sizeof *G);
    for (int64_t i = 0; i < cols; i++)
        for (int64_t j = 0; j < cols; j++) {
            double sum = 0;
            for (int64_t r = 0; r < rows; r++) sum += X[r * cols + i] * X[r * cols + j];
            G[i * cols + j] = sum;
        }
    return G;
}

static void check(int64_t d, int64_t n, int64_t rhs, int64_t k, fs_dtype dtype, int how)
{
    problem p = problem_make(d, n, rhs, dtype, 5, 0.1, 1);
    bench b = bench_open(&p, k, 9, 0);
    view G = view_make((layout)how, n, n, dtype);
    fs_matrix Y;
    fs_gram_report report = FS_GRAM_REPORT_INIT;
    view_seal(&G);
    MUST(fs_task_sketch(b.w, b.S, &p.A, rhs ? &p.B : NULL));
    MUST(fs_gram(b.w, b.S, &G.m, &report));
    MUST(fs_workspace_views(b.w, &Y, NULL));
    expect_padding_untouched("G", &G);
    double *y = doubles_of(&Y), *a = doubles_of(&p.A), *H = gram(y, k, n), *want = gram(a, d, n), apart = 0, whole = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double scale = sqrt(H[i * n + i] * H[j * n + j]), off = at(&G.m, i, j) - H[i * n + j];
            if (!(fabs(off) <= (dtype == FS_F32 ? 1e-7 : 1e-14) * scale))
                fail_msg("d %d n %d k %d type %d layout %d: G(%d, %d) is off by %g", (int)d, (int)n, (int)k, (int)dtype,
                         how, (int)i, (int)j, off);
            if (at(&G.m, i, j) != at(&G.m, j, i)) fail_msg("G is not symmetric at %d, %d", (int)i, (int)j);
        }
    for (int64_t e = 0; e < n * n; e++) H[e] -= want[e], apart += H[e] * H[e], whole += want[e] * want[e];
    double frobenius, spectral, *s = room(n, 8), top;
    MUST(fs_gram_error(b.w, &p.A, &frobenius, &spectral));
    assert_true(fabs(frobenius - sqrt(apart / whole)) <= 1e-9);
    lapack_singular_values(n, n, H, s);
    top = s[0];
    lapack_singular_values(n, n, want, s);
    assert_true(fabs(spectral - top / s[0]) <= 1e-9);
    assert_true(report.low < report.error && report.error < report.high && report.effective_k <= (double)k);
    free(y), free(a), free(H), free(want), free(s);
    view_free(&G);
    bench_close(&b);
    problem_free(&p);
}

static void gram_is_what_it_says(void **state)
{
    (void)state;
    for (int how = 0; how < OUTPUT_LAYOUTS; how++) check(300, 20, 0, 65, how % 2 ? FS_F64 : FS_F32, how);
    check(5000, 7, 2, 128, FS_F32, ROWS);
    check(60, 80, 0, 40, FS_F64, COLUMNS); /* n > d */
    check(50, 1, 0, 10, FS_F32, ROWS);
}

/* Fewer rows count where one block has them all, which S shows. */
static void effective_k_sees_blocks(void **state)
{
    (void)state;
    problem p = problem_make(1024, 4, 0, FS_F32, 1, 0, 1);
    for (int64_t i = 0; i < 1024; i++)
        for (int64_t j = 0; j < 4; j++) put(&p.A, i, j, i < 100 ? normal_at(3, i * 4 + j) : 0);
    bench b = bench_open(&p, 512, 1, 0);
    fs_spec spec = FS_SPEC_INIT;
    spec.d = 1024, spec.k = 512, spec.M = 8, spec.shuffle = FS_SHUFFLE_NONE;
    fs_sketch *paper = sketch_of(&spec);
    fs_gram_report report = FS_GRAM_REPORT_INIT;
    MUST(fs_task_sketch(b.w, paper, &p.A, NULL));
    MUST(fs_gram(b.w, paper, NULL, &report));
    assert_true(fabs(report.effective_k - 64) < 1e-9); /* all 100 rows are in the first block of 128 */
    MUST(fs_gram(b.w, NULL, NULL, &report));
    assert_true(report.effective_k == 512);
    fs_sketch_destroy(paper);
    bench_close(&b);
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gram_is_what_it_says),
                                       cmocka_unit_test(effective_k_sees_blocks)};
    return RUN_TASK_TESTS(tests);
}
