/* plan.c - fs_plan against draws: sketches of its k, kappa and s exceed its error with the stated probability, and have
 * its typical error; impossible errors are refused with the numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/problems.h"

static fs_plan_report plan_of(int64_t d, int64_t n, double error, double probability, int coherent)
{
    fs_plan_options options = FS_PLAN_INIT;
    fs_plan_report report = FS_PLAN_REPORT_INIT;
    options.d = d, options.n = n, options.error = error, options.probability = probability, options.coherent = coherent;
    MUST(fs_plan(&options, &report));
    return report;
}

/* draws ---------------------------------------------------------------------------------------------------------- */

typedef struct drawn {
    double mean;
    int above; /* of the errors, how many exceed the plan's */
} drawn;

/* Embedding errors of `draws` sketches of the plan.  coherent: n rows outweigh all others by far. */
static drawn draw(const fs_plan_report *plan, int64_t d, int64_t n, int coherent, int draws)
{
    fs_context *ctx = context_of(NULL, 1);
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    fs_workspace *w = NULL;
    view A = view_make(ROWS, d, n, FS_F64);
    drawn found = {0, 0};
    fill_normal(&A.m, 5);
    for (int64_t j = 0; j < n && coherent; j++) put(&A.m, (j * (d / n) + 3) % d, j, 1e4 * (double)d);
    shape.k = plan->k, shape.n = n, shape.basis = d, shape.dtype = FS_F64;
    MUST(fs_workspace_create(&w, ctx, &shape));
    for (int i = 0; i < draws; i++) {
        fs_spec spec = FS_SPEC_INIT;
        fs_ose_report report = FS_OSE_REPORT_INIT;
        spec.d = d, spec.k = plan->k, spec.kappa = plan->kappa, spec.s = plan->s, spec.seed = (uint64_t)i + 1;
        fs_sketch *S = sketch_of(&spec);
        MUST(fs_ose(w, S, &A.m, i > 0, &report));
        found.mean += report.error / draws;
        found.above += report.error > plan->exceeded;
        fs_sketch_destroy(S);
    }
    view_free(&A);
    fs_workspace_destroy(w);
    fs_context_destroy(ctx);
    return found;
}

/* A count that a binomial of this probability exceeds about once in 16 000 times: the mean and four deviations, and one
 * for the few draws of small probabilities. */
static double most_of(int draws, double p) { return draws * p + 4 * sqrt(draws * p * (1 - p)) + 1; }

static void errors_are_as_planned(void **state)
{
    (void)state;
    enum { DRAWS = 150 };
    static const struct {
        int64_t n;
        double error, probability;
    } cases[] = {{1, 0.5, 0.05},  {10, 0.5, 0.05}, {10, 0.9, 0.2},
                 {24, 0.6, 0.05}, {40, 0.8, 0.01}, {4, 0.24, 0.05}}; /* the last of rung gaussian for dominant rows */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int coherent = 0; coherent < 2; coherent++) {
            const int64_t n = cases[i].n, d = 4096;
            const fs_plan_report plan = plan_of(d, n, cases[i].error, cases[i].probability, coherent);
            const drawn found = draw(&plan, d, n, coherent, DRAWS);
            char what[160];
            snprintf(what, sizeof what,
                     "n %d, error %g, probability %g, coherent %d: k %d, typical %.3f, drawn %.3f, above %d", (int)n,
                     cases[i].error, cases[i].probability, coherent, (int)plan.k, plan.typical, found.mean,
                     found.above);
            expect_at_most(what, found.above, most_of(DRAWS, cases[i].probability));
            /* A Gaussian's mean is 9 % above that of the formula at n = 4, k = 512. */
            expect_at_most(what, found.mean, 1.15 * plan.typical);
            /* Where rows outweigh all others, the error is smaller by any factor: 0 for a single one. */
            if (!coherent) expect_at_most(what, 0.8 * plan.typical, found.mean);
        }
}

/* monotony ------------------------------------------------------------------------------------------------------- */

static void k_grows_with_what_is_wanted(void **state)
{
    (void)state;
    static const double errors[] = {0.99, 0.8, 0.5, 0.3, 0.1, 0.03}, probabilities[] = {0.5, 0.1, 0.05, 1e-3, 1e-6};
    static const int64_t columns[] = {1, 2, 7, 40, 500, 10000};
    for (int c = 0; c < 2; c++)
        for (int e = 0; e < 6; e++)
            for (int p = 0; p < 5; p++)
                for (int n = 0; n < (c ? 4 : 6); n++) { /* many dominant rows have no small error */
                    if (c && errors[e] < 0.1) continue;
                    const fs_plan_report plan = plan_of(0, columns[n], errors[e], probabilities[p], c);
                    assert_true(plan.k >= columns[n] && plan.kappa >= 1 && plan.s >= 1);
                    assert_true(plan.exceeded <= errors[e]);
                    if (p) assert_true(plan.typical <= plan.exceeded); /* with 0.5 it is the median */
                    assert_true(plan.reason[0] != 0);
                    if (e) assert_true(plan.k >= plan_of(0, columns[n], errors[e - 1], probabilities[p], c).k);
                    if (p) assert_true(plan.k >= plan_of(0, columns[n], errors[e], probabilities[p - 1], c).k);
                    if (n && plan.k < plan_of(0, columns[n - 1], errors[e], probabilities[p], c).k)
                        fail_msg("n %d, error %g, probability %g, coherent %d: k %d, for fewer columns more",
                                 (int)columns[n], errors[e], probabilities[p], c, (int)plan.k);
                    if (c) assert_true(plan.k >= plan_of(0, columns[n], errors[e], probabilities[p], 0).k);
                    /* It is a legal sketch. */
                    fs_spec spec = FS_SPEC_INIT;
                    spec.d = plan.k, spec.k = plan.k, spec.kappa = plan.kappa, spec.s = plan.s;
                    fs_sketch_destroy(sketch_of(&spec));
                }
    assert_int_equal(plan_of(0, 10, 0.5, 0, 0).k, plan_of(0, 10, 0.5, 0.05, 0).k);
}

/* errors --------------------------------------------------------------------------------------------------------- */

static void what_cannot_be_had_is_refused(void **state)
{
    (void)state;
    fs_plan_options options = FS_PLAN_INIT;
    fs_plan_report report = FS_PLAN_REPORT_INIT;
    REFUSED(fs_plan(NULL, &report), FS_EINVAL, "options is NULL");
    options.n = 100, options.error = 0.1;
    REFUSED(fs_plan(&options, NULL), FS_EINVAL, "report is NULL");
    /* Refused with the smallest error that d rows allow, which is then accepted. */
    options.d = 1000;
    REFUSED(fs_plan(&options, &report), FS_EINVAL, "d = 1000", "0.1 for n = 100", "smallest possible error");
    const fs_plan_report all = plan_of(1000, 100, 0.99, 0, 0);
    assert_true(all.k <= 1000);
    options.d = 0, options.error = 1e-5, options.n = 1000000;
    REFUSED(fs_plan(&options, &report), FS_EINVAL, "2147483647", "1e-05");
    static const double bad[] = {0, 1, -0.5, NAN, INFINITY};
    for (int i = 0; i < 5; i++) {
        const fs_plan_options start = FS_PLAN_INIT;
        options = start, options.n = 10, options.error = bad[i];
        REFUSED(fs_plan(&options, &report), FS_EINVAL, "error is", "above 0 and below 1");
        options.error = 0.5, options.probability = i ? bad[i] : 1e-7;
        REFUSED(fs_plan(&options, &report), FS_EINVAL, "probability is", "1e-6 to 0.5");
    }
    const fs_plan_options start = FS_PLAN_INIT;
    options = start, options.error = 0.5;
    REFUSED(fs_plan(&options, &report), FS_EINVAL, "n is 0");
    options.n = INT64_MAX;
    REFUSED(fs_plan(&options, &report), FS_EINVAL, "n is 9223372036854775807");
    options.n = 10, options.d = 9;
    REFUSED(fs_plan(&options, &report), FS_EINVAL, "d is 9", "n = 10");
    options.d = -1;
    REFUSED(fs_plan(&options, &report), FS_EINVAL, "d is -1");
    options.d = 0, options.coherent = 2;
    REFUSED(fs_plan(&options, &report), FS_EINVAL, "coherent is 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_as_planned),
        cmocka_unit_test(k_grows_with_what_is_wanted),
        cmocka_unit_test(what_cannot_be_had_is_refused),
    };
    return RUN_TASK_TESTS(tests);
}
