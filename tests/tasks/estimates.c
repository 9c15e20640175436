/* estimates.c - what a task says of its own error is so: in at least 95 of 100 seeded runs the true error lies between
 * low and high, for several kinds of matrices, and the interval is no wider than it has to be. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "problems.h"

enum { RUNS = 100, ENOUGH = 95 };

typedef enum kind { FLAT, SLOPED, HOT, CONSISTENT, KINDS } kind;
static const char *const kind_names[] = {"flat spectrum", "singular values from 1 to 1e-3", "64 hot rows", "no noise"};

static problem problem_of(kind what, int64_t d, int64_t n, int64_t rhs, fs_dtype dtype)
{
    problem p = problem_make(d, n, rhs, dtype,
                             what == FLAT         ? 1
                             : what == CONSISTENT ? 10
                                                  : 1e3,
                             what == CONSISTENT ? 0 : 0.3, 5);
    if (what == HOT)
        for (int64_t i = 100; i < 164; i++)
            for (int64_t j = 0; j < n; j++) put(&p.A, i, j, at(&p.A, i, j) * 30);
    return p;
}

static void residuals_are_bracketed(void **state)
{
    (void)state;
    static const struct { int64_t n, rhs, k; } shapes[] = {{32, 1, 64}, {32, 1, 512}, {20, 3, 200}, {60, 1, 64}};
    for (int what = 0; what < KINDS; what++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int ridge = 0; ridge < 2; ridge++) {
                const int64_t n = shapes[s].n, rhs = shapes[s].rhs, k = shapes[s].k;
                problem p = problem_of((kind)what, 2000, n, rhs, FS_F32);
                bench b = bench_open(&p, k, 0, 0);
                fs_matrix X = fs_row_major(room(n * rhs, 4), n, rhs, FS_F32);
                int inside = 0;
                double width = 0;
                for (uint64_t seed = 0; seed < RUNS; seed++) {
                    fs_spec spec = FS_SPEC_INIT;
                    spec.d = p.d, spec.k = k, spec.seed = seed;
                    fs_sketch *S = sketch_of(&spec);
                    fs_fit_report report = FS_FIT_REPORT_INIT;
                    MUST(fs_task_sketch(b.w, S, &p.A, &p.B));
                    MUST(ridge ? fs_ridge(b.w, 0.01, &X, &report) : fs_solve(b.w, 0.0, &X, &report));
                    const double truth = residual_norm(&p.A, &X, &p.B);
                    inside += report.low <= truth && truth <= report.high;
                    width += log(report.high / report.low) / RUNS;
                    fs_sketch_destroy(S);
                }
                printf("%s, n %d, rhs %d, k %d, %s: %d of %d, high / low %.2f\n", kind_names[what], (int)n, (int)rhs,
                       (int)k, ridge ? "ridge" : "solve", inside, RUNS, exp(width));
                assert_true(inside >= ENOUGH);
                /* three deviations to either side, and a little for rounding */
                const double least = exp(3 * sqrt(2 * (1 + (double)n / (double)k) / (double)(k - n)));
                if (what != CONSISTENT) assert_true(exp(width) <= least * 1.05);
                free(X.data);
                bench_close(&b);
                problem_free(&p);
            }
}

static void gram_errors_are_bracketed(void **state)
{
    (void)state;
    static const struct { int64_t n, k; } shapes[] = {{1, 100}, {32, 64}, {32, 512}};
    for (int what = FLAT; what <= SLOPED; what++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int family = FS_BLOCKPERM; family <= FS_GAUSSIAN; family++) {
                if (family == FS_BLOCKROW || (family != FS_BLOCKPERM && s != 1)) continue;
                problem p = problem_of((kind)what, 2000, shapes[s].n, 0, FS_F32);
                bench b = bench_open(&p, shapes[s].k, 0, 0);
                int inside = 0;
                fs_gram_report report = FS_GRAM_REPORT_INIT;
                for (uint64_t seed = 0; seed < RUNS; seed++) {
                    fs_spec spec = FS_SPEC_INIT;
                    double truth;
                    spec.family = (fs_family)family, spec.d = p.d, spec.k = shapes[s].k, spec.seed = seed;
                    fs_sketch *S = sketch_of(&spec);
                    MUST(fs_task_sketch(b.w, S, &p.A, NULL));
                    MUST(fs_gram(b.w, S, NULL, &report));
                    MUST(fs_gram_error(b.w, &p.A, &truth, NULL));
                    inside += report.low <= truth && truth <= report.high;
                    fs_sketch_destroy(S);
                }
                printf("Gram, %s, n %d, k %d, family %d: %d of %d, last %.3g to %.3g\n", kind_names[what],
                       (int)shapes[s].n, (int)shapes[s].k, family, inside, RUNS, report.low, report.high);
                assert_true(inside >= ENOUGH);
                if (what == FLAT && shapes[s].n > 1) assert_true(report.high <= 2.1 * report.low);
                bench_close(&b);
                problem_free(&p);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(residuals_are_bracketed),
                                       cmocka_unit_test(gram_errors_are_bracketed)};
    return RUN_TASK_TESTS(tests);
}
