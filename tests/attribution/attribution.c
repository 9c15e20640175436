/* attribution.c - features and scores of flashsketch_attribution.h against their definitions in double, and every refusal. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <flashsketch_attribution.h>

#include "tests/support/problems.h"
#include "tests/support/scarce.h"

enum { PARTS = 4 };
static const int64_t whole[] = {200}, cut[PARTS] = {70, 0, 127, 3};

/* Gradients of n examples, 200 coordinates each, cut into parts of `counts` coordinates: views of one batch-major
 * buffer. */
static void gradients_of(float *buffer, int64_t n, const int64_t *counts, int parts, fs_matrix *out)
{
    int64_t start = 0;
    for (int i = 0; i < parts; i++) {
        out[i] = fs_batch_major(buffer, n, 200, FS_F32);
        out[i].rows = counts[i];
        out[i].offset = counts[i] ? start : 0;
        start += counts[i];
    }
}
static float *random_gradients(int64_t n, uint64_t seed)
{
    float *buffer = room(n * 200, sizeof *buffer);
    for (int64_t i = 0; i < n * 200; i++) buffer[i] = (float)normal_at(seed, i);
    return buffer;
}

static fs_context *cpu(void)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx;
    options.backend = FS_BACKEND_CPU;
    MUST(fs_context_create(&ctx, &options));
    return ctx;
}

static fs_attribution_options options_of(const recipe *R, int64_t N, const int64_t *counts, int parts, int64_t mask,
                                         int64_t k, fs_spec *spec)
{
    fs_attribution_options o = FS_ATTRIBUTION_INIT;
    o.examples = N;
    o.parameters = counts;
    o.parts = parts;
    o.mask = mask;
    *spec = spec_at(R, mask ? mask : 200, k, 9);
    o.sketch = spec;
    return o;
}

/* Features are scale S g[mask], for every family, with a mask and without, in one part or in four. */
static void features_are_masked_and_sketched_gradients(void **state)
{
    enum { N = 37 };
    fs_context *ctx = cpu();
    float *buffer = random_gradients(N, 4);
    int64_t mask[200];
    (void)state;
    for (int r = 0; r < recipe_count; r++)
        for (int masked = 0; masked < 2; masked++)
            for (int parts = 1; parts <= PARTS; parts += PARTS - 1) {
                const int64_t *counts = parts == 1 ? whole : cut;
                fs_spec spec;
                const fs_attribution_options o = options_of(&recipes[r], N, counts, parts, masked ? 96 : 0, 16, &spec);
                const int64_t d = spec.d, k = spec.k;
                fs_attribution *g;
                fs_matrix part[PARTS], Phi;
                MUST(fs_attribution_create(&g, ctx, &o));
                gradients_of(buffer, N, o.parameters, parts, part);
                MUST(fs_attribution_add(g, 0, part));
                MUST(fs_attribution_features(g, &Phi));
                assert_true(Phi.rows == N && Phi.cols == k && Phi.dtype == FS_F32 && Phi.memory == FS_MEMORY_HOST);
                for (int64_t j = 0; j < 200; j++) mask[j] = j;
                MUST(fs_attribution_mask(g, mask));
                fs_sketch *S = sketch_of(&spec);
                double *T = columns_of(S, 0, d);
                for (int64_t n = 0; n < N; n++)
                    for (int64_t i = 0; i < k; i++) {
                        double want = 0, size = 0;
                        for (int64_t j = 0; j < d; j++) {
                            const double term = T[i * d + j] * buffer[n * 200 + mask[j]] / sqrt(200);
                            want += term;
                            size += fabs(term);
                        }
                        if (!(fabs(at(&Phi, n, i) - want) <= 1e-5 * size))
                            fail_msg("%s, %d parts, mask %d: feature %d of example %d is %.9g, not %.9g",
                                     recipes[r].name, parts, masked, (int)i, (int)n, at(&Phi, n, i), want);
                    }
                free(T);
                fs_sketch_destroy(S);
                fs_attribution_destroy(g);
            }
    free(buffer);
    fs_context_destroy(ctx);
}

static void masks_are_ascending_and_do_not_depend_on_the_parts(void **state)
{
    fs_context *ctx = cpu();
    int64_t first[50], second[50];
    (void)state;
    for (int parts = 1; parts <= PARTS; parts += PARTS - 1) {
        fs_spec spec;
        fs_attribution_options o = options_of(&recipes[0], 3, parts == 1 ? whole : cut, parts, 50, 16, &spec);
        fs_attribution *g;
        MUST(fs_attribution_create(&g, ctx, &o));
        MUST(fs_attribution_mask(g, parts == 1 ? first : second));
        fs_attribution_destroy(g);
    }
    assert_memory_equal(first, second, sizeof first);
    for (int i = 0; i < 50; i++) assert_true(first[i] >= 0 && first[i] < 200 && (i == 0 || first[i] > first[i - 1]));
    fs_spec spec;
    fs_attribution_options o = options_of(&recipes[0], 3, whole, 1, 50, 16, &spec);
    fs_attribution *g;
    spec.seed++;
    MUST(fs_attribution_create(&g, ctx, &o));
    MUST(fs_attribution_mask(g, second));
    assert_memory_not_equal(first, second, sizeof first);
    fs_attribution_destroy(g);
    fs_context_destroy(ctx);
}

/* A run begins at a multiple of its length and is kept whole; all runs are as likely as the others. */
static void masks_in_runs_keep_neighbours_together(void **state)
{
    enum { DRAWS = 400, RUN = 8, RUNS = 25, KEPT = 5 };
    fs_context *ctx = cpu();
    int64_t mask[RUN * KEPT];
    int often[RUNS] = {0};
    (void)state;
    for (int draw = 0; draw < DRAWS; draw++) {
        fs_spec spec;
        fs_attribution_options o = options_of(&recipes[0], 3, cut, PARTS, RUN * KEPT, 16, &spec);
        fs_attribution *g;
        o.run = RUN;
        spec.seed = (uint64_t)draw;
        MUST(fs_attribution_create(&g, ctx, &o));
        MUST(fs_attribution_mask(g, mask));
        for (int i = 0; i < RUN * KEPT; i++) {
            assert_true(mask[i] % RUN == i % RUN && mask[i] / RUN == mask[i / RUN * RUN] / RUN);
            assert_true(mask[i] >= 0 && mask[i] < RUN * RUNS && (i == 0 || mask[i] > mask[i - 1]));
            if (i % RUN == 0) often[mask[i] / RUN]++;
        }
        fs_attribution_destroy(g);
    }
    /* 80 of each are expected, with a deviation of 8 */
    for (int i = 0; i < RUNS; i++)
        if (often[i] < 40 || often[i] > 120) fail_msg("run %d was kept %d times of %d", i, often[i], DRAWS);
    fs_context_destroy(ctx);
}

/* X = K^-1 X by elimination, X k x cols, K symmetric positive definite, overwritten. */
static void eliminate(double *K, int64_t k, double *X, int64_t cols)
{
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = p + 1; i < k; i++) {
            const double f = K[i * k + p] / K[p * k + p];
            for (int64_t j = p; j < k; j++) K[i * k + j] -= f * K[p * k + j];
            for (int64_t c = 0; c < cols; c++) X[i * cols + c] -= f * X[p * cols + c];
        }
    for (int64_t p = k - 1; p >= 0; p--)
        for (int64_t c = 0; c < cols; c++) {
            for (int64_t j = p + 1; j < k; j++) X[p * cols + c] -= K[p * k + j] * X[j * cols + c];
            X[p * cols + c] /= K[p * k + p];
        }
}

/* phi K^-1 Phi' */
static double *scores_of(const fs_matrix *Phi, const fs_matrix *phi, double damping)
{
    const int64_t N = Phi->rows, k = Phi->cols, Q = phi->rows;
    double *scores = room(Q * N, 8), *K = room(k * k, 8), *X = room(k * Q, 8);
    for (int64_t i = 0; i < k * k; i++) K[i] = i / k == i % k ? damping : 0;
    for (int64_t n = 0; n < N; n++)
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < k; j++) K[i * k + j] += at(Phi, n, i) * at(Phi, n, j);
    for (int64_t i = 0; i < k * Q; i++) X[i] = at(phi, i % Q, i / Q);
    eliminate(K, k, X, Q);
    for (int64_t q = 0; q < Q; q++)
        for (int64_t n = 0; n < N; n++) {
            scores[q * N + n] = 0;
            for (int64_t i = 0; i < k; i++) scores[q * N + n] += at(Phi, n, i) * X[i * Q + q];
        }
    free(K);
    free(X);
    return scores;
}

static void expect_scores(const fs_matrix *scores, const double *want, const double *weights, double alpha, double beta)
{
    double most = 0;
    for (int64_t i = 0; i < scores->rows * scores->cols; i++) most = fmax(most, fabs(want[i]));
    for (int64_t q = 0; q < scores->rows; q++)
        for (int64_t n = 0; n < scores->cols; n++) {
            const double x = alpha * want[q * scores->cols + n] * (weights ? weights[n] : 1) + beta;
            if (!(fabs(at(scores, q, n) - x) <= 1e-9 * (fabs(alpha) * most + fabs(beta))))
                fail_msg("score of example %d for query %d is %.12g, not %.12g", (int)n, (int)q, at(scores, q, n), x);
        }
}

/* Batches out of order, two dampings, weights, sums over models. */
static void check_scores(int64_t N, int64_t first, int64_t mask, int64_t k)
{
    enum { Q = 3 };
    fs_context *ctx = cpu();
    float *train = random_gradients(N, 1), *test = random_gradients(Q, 2), *features = room(Q * k, sizeof *features);
    double *weights = room(N, 8);
    fs_spec spec;
    const fs_attribution_options o = options_of(&recipes[0], N, cut, PARTS, mask, k, &spec);
    fs_attribution *g;
    fs_matrix part[PARTS], Phi, phi = fs_row_major(features, Q, k, FS_F32);
    view scores = view_make(ROWS_PADDED, Q, N, FS_F64);
    for (int64_t i = 0; i < N; i++) weights[i] = 0.5 + 0.5 * whole_at(8, i, 1);
    MUST(fs_attribution_create(&g, ctx, &o));
    gradients_of(train + first * 200, N - first, cut, PARTS, part);
    MUST(fs_attribution_add(g, first, part));
    REFUSED(fs_attribution_factor(g, 0.1), FS_EINVAL, "examples have not been added", "number 0");
    gradients_of(train, first, cut, PARTS, part);
    MUST(fs_attribution_add(g, 0, part));
    gradients_of(test, Q, cut, PARTS, part);
    MUST(fs_attribution_project(g, part, &phi));
    MUST(fs_attribution_features(g, &Phi));
    for (double damping = 0.01; damping < 2; damping *= 100) {
        double *want = scores_of(&Phi, &phi, damping);
        MUST(fs_attribution_factor(g, damping));
        MUST(fs_attribution_scores(g, &phi, NULL, 1.0, 0.0, &scores.m)); /* scores are NaN before */
        expect_scores(&scores.m, want, NULL, 1, 0);
        for (int64_t q = 0; q < Q; q++)
            for (int64_t n = 0; n < N; n++) put(&scores.m, q, n, 4);
        MUST(fs_attribution_scores(g, &phi, weights, 0.25, 0.5, &scores.m));
        expect_scores(&scores.m, want, weights, 0.25, 2);
        free(want);
    }
    view_free(&scores);
    fs_attribution_destroy(g);
    free(train);
    free(test);
    free(features);
    free(weights);
    fs_context_destroy(ctx);
}

/* More examples than a panel has; fewer than features; and more features than a panel has. */
static void scores_are_those_of_their_definition(void **state)
{
    (void)state;
    check_scores(1100, 600, 96, 12);
    check_scores(40, 15, 96, 64);
    check_scores(6, 2, 0, 1030);
}

/* K of rank 1, of 20 examples by 16 features and of 12 by 16. */
static void dampings_too_small_for_f64_are_refused(void **state)
{
    fs_context *ctx = cpu();
    float *train = random_gradients(20, 1);
    (void)state;
    for (int64_t n = 1; n < 20; n++) memcpy(train + n * 200, train, 200 * sizeof *train);
    for (int64_t N = 20; N >= 12; N -= 8) {
        fs_spec spec;
        const fs_attribution_options o = options_of(&recipes[0], N, whole, 1, 96, 16, &spec);
        fs_attribution *g;
        fs_matrix part;
        MUST(fs_attribution_create(&g, ctx, &o));
        gradients_of(train, N, whole, 1, &part);
        MUST(fs_attribution_add(g, 0, &part));
        REFUSED(fs_attribution_factor(g, 1e-40), FS_EINVAL, "1e-40", N > 16 ? "Phi'Phi" : "Phi Phi'", "singular",
                N > 16 ? "of 16" : "of 12");
        MUST(fs_attribution_factor(g, 0.1));
        fs_attribution_destroy(g);
    }
    free(train);
    fs_context_destroy(ctx);
}

static void features_taken_out_and_put_back_give_the_same_scores(void **state)
{
    enum { N = 40, K_ = 16 };
    fs_context *ctx = cpu();
    float *train = random_gradients(N, 1), kept[N * K_];
    double first[N], second[N];
    fs_spec spec;
    const fs_attribution_options o = options_of(&recipes[0], N, whole, 1, 0, K_, &spec);
    fs_matrix part, Phi, phi = fs_row_major(kept, 1, K_, FS_F32), a = fs_row_major(first, 1, N, FS_F64),
                         b = fs_row_major(second, 1, N, FS_F64);
    fs_attribution *g;
    (void)state;
    gradients_of(train, N, whole, 1, &part);
    MUST(fs_attribution_create(&g, ctx, &o));
    MUST(fs_attribution_add(g, 0, &part));
    MUST(fs_attribution_features(g, &Phi));
    memcpy(kept, Phi.data, sizeof kept);
    MUST(fs_attribution_factor(g, 0.5));
    MUST(fs_attribution_scores(g, &phi, NULL, 1, 0, &a));
    fs_attribution_destroy(g);
    MUST(fs_attribution_create(&g, ctx, &o));
    MUST(fs_attribution_features(g, &Phi));
    memcpy(Phi.data, kept, sizeof kept);
    MUST(fs_attribution_restore(g, 0, N));
    MUST(fs_attribution_factor(g, 0.5));
    MUST(fs_attribution_scores(g, &phi, NULL, 1, 0, &b));
    assert_memory_equal(first, second, sizeof first);
    fs_attribution_destroy(g);
    free(train);
    fs_context_destroy(ctx);
}

static void a_gradient_that_is_not_finite_is_named_and_not_counted(void **state)
{
    enum { N = 10 };
    fs_context *ctx = cpu();
    float *train = random_gradients(N, 1);
    fs_spec spec;
    const fs_attribution_options o = options_of(&recipes[0], N, whole, 1, 0, 16, &spec);
    fs_matrix part;
    uint8_t added[N];
    fs_attribution *g;
    (void)state;
    MUST(fs_attribution_create(&g, ctx, &o));
    gradients_of(train, N, whole, 1, &part);
    MUST(fs_attribution_add(g, 0, &part));
    train[2 * 200 + 5] = NAN;
    gradients_of(train, 4, whole, 1, &part);
    REFUSED(fs_attribution_add(g, 3, &part), FS_EINVAL, "the gradient of example 5 is not finite");
    REFUSED(fs_attribution_factor(g, 0.1), FS_EINVAL, "4 of 10 examples", "number 3");
    MUST(fs_attribution_added(g, added));
    for (int i = 0; i < N; i++) assert_int_equal(added[i], i < 3 || i > 6);
    REFUSED(fs_attribution_added(g, NULL), FS_EINVAL, "added is NULL");
    train[2 * 200 + 5] = 1;
    MUST(fs_attribution_add(g, 3, &part));
    MUST(fs_attribution_factor(g, 0.1));
    fs_attribution_destroy(g);
    free(train);
    fs_context_destroy(ctx);
}

static void the_best_and_the_worst_are_found_in_order(void **state)
{
    static double x[] = {3, -1, 7, 7, 0, -1, 2};
    fs_matrix scores = fs_row_major(x, 1, 7, FS_F64);
    int64_t who[7];
    double values[7];
    (void)state;
    MUST(fs_attribution_top(&scores, 0, 4, 0, who, values));
    assert_true(who[0] == 2 && who[1] == 3 && who[2] == 0 && who[3] == 6);
    assert_true(values[0] == 7 && values[1] == 7 && values[2] == 3 && values[3] == 2);
    MUST(fs_attribution_top(&scores, 0, 3, 1, who, NULL));
    assert_true(who[0] == 1 && who[1] == 5 && who[2] == 4);
    MUST(fs_attribution_top(&scores, 0, 7, 0, who, values));
    for (int i = 1; i < 7; i++) assert_true(values[i] <= values[i - 1]);
    MUST(fs_attribution_top(&scores, 0, 0, 0, NULL, NULL));
    REFUSED(fs_attribution_top(&scores, 0, 8, 0, who, values), FS_EINVAL, "m = 8", "to 7");
    REFUSED(fs_attribution_top(&scores, 1, 2, 0, who, values), FS_EINVAL, "row 1");
}

static void wrong_arguments_are_refused_with_the_numbers(void **state)
{
    fs_context *ctx = cpu();
    float *train = random_gradients(4, 1), features[4 * 16];
    double room_for_scores[4 * 4];
    fs_spec spec;
    const fs_attribution_options good = options_of(&recipes[0], 4, whole, 1, 96, 16, &spec);
    fs_attribution_options o = good;
    fs_attribution *g;
    fs_matrix part, phi = fs_row_major(features, 4, 16, FS_F32), scores = fs_row_major(room_for_scores, 4, 4, FS_F64);
    (void)state;
    o.examples = 0;
    REFUSED(fs_attribution_create(&g, ctx, &o), FS_EINVAL, "examples = 0");
    o = good, o.parts = 0;
    REFUSED(fs_attribution_create(&g, ctx, &o), FS_EINVAL, "parts = 0");
    o = good, o.mask = 100, o.run = 8;
    REFUSED(fs_attribution_create(&g, ctx, &o), FS_EINVAL, "a mask of 100", "runs of 8");
    o = good, o.mask = 96, o.run = -1;
    REFUSED(fs_attribution_create(&g, ctx, &o), FS_EINVAL, "runs of -1");
    o = good, o.mask = 201;
    REFUSED(fs_attribution_create(&g, ctx, &o), FS_EINVAL, "mask = 201", "200 coordinates");
    o = good, spec.d = 95;
    REFUSED(fs_attribution_create(&g, ctx, &o), FS_EINVAL, "sketch.d = 95", "96 coordinates");
    spec.d = 96, o.sketch = NULL;
    REFUSED(fs_attribution_create(&g, ctx, &o), FS_EINVAL, "sketch is NULL");
    o = good, o.scale = NAN;
    REFUSED(fs_attribution_create(&g, ctx, &o), FS_EINVAL, "scale");
    o = good, o.size = 7;
    REFUSED(fs_attribution_create(&g, ctx, &o), FS_EINVAL, "options.size is 7");
    const int64_t k = spec.k;
    o = good, spec.k = 0;
    REFUSED(fs_attribution_create(&g, ctx, &o), FS_EINVAL, "k");
    spec.k = k;
    assert_null(g);
    MUST(fs_attribution_create(&g, ctx, &good));
    gradients_of(train, 4, whole, 1, &part);
    part.rows = 199;
    REFUSED(fs_attribution_add(g, 0, &part), FS_EINVAL, "gradients[0] is 199 x 4", "200 x 4");
    gradients_of(train, 4, whole, 1, &part);
    REFUSED(fs_attribution_add(g, 1, &part), FS_EINVAL, "1 + 4", "among the 4");
    part.dtype = FS_F64;
    part.cols = 2;
    REFUSED(fs_attribution_add(g, 0, &part), FS_EINVAL, "f64");
    gradients_of(train, 4, whole, 1, &part);
    MUST(fs_attribution_add(g, 0, &part));
    REFUSED(fs_attribution_scores(g, &phi, NULL, 1, 0, &scores), FS_EINVAL, "fs_attribution_factor comes first");
    REFUSED(fs_attribution_factor(g, 0), FS_EINVAL, "damping = 0");
    MUST(fs_attribution_factor(g, 0.1));
    phi.cols = 15;
    REFUSED(fs_attribution_scores(g, &phi, NULL, 1, 0, &scores), FS_EINVAL, "4 x 15");
    REFUSED(fs_attribution_project(g, &part, &phi), FS_EINVAL, "4 x 15", "4 x 16");
    phi.cols = 16;
    MUST(fs_attribution_project(g, &part, &phi));
    MUST(fs_attribution_scores(g, &phi, NULL, 1, 0, &scores));
    MUST(fs_attribution_add(g, 0, &part));
    REFUSED(fs_attribution_scores(g, &phi, NULL, 1, 0, &scores), FS_EINVAL, "fs_attribution_factor comes first");
    fs_attribution_destroy(g);
    fs_attribution_destroy(NULL);
    free(train);
    fs_context_destroy(ctx);
}

static void without_memory_nothing_is_made_and_nothing_leaks(void **state)
{
    scarce s = {1000, 0};
    fs_context_options options = FS_CONTEXT_INIT;
    fs_spec spec;
    const fs_attribution_options o = options_of(&recipes[0], 4, whole, 1, 96, 16, &spec);
    fs_context *ctx;
    (void)state;
    options.backend = FS_BACKEND_CPU;
    options.allocator = scarce_allocator(&s);
    MUST(fs_context_create(&ctx, &options));
    const int before = s.live;
    int failures = 0;
    for (int n = 0;; n++, failures++) {
        fs_attribution *g = NULL;
        s.left = n;
        const fs_result result = fs_attribution_create(&g, ctx, &o);
        if (result == FS_OK) {
            fs_attribution_destroy(g);
            assert_int_equal(s.live, before);
            break;
        }
        assert_int_equal(result, FS_ENOMEM);
        assert_null(g);
        assert_int_equal(s.live, before);
    }
    assert_true(failures >= 10);
    s.left = 1000;
    fs_context_destroy(ctx);
    assert_int_equal(s.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_are_masked_and_sketched_gradients),
        cmocka_unit_test(masks_are_ascending_and_do_not_depend_on_the_parts),
        cmocka_unit_test(masks_in_runs_keep_neighbours_together),
        cmocka_unit_test(scores_are_those_of_their_definition),
        cmocka_unit_test(dampings_too_small_for_f64_are_refused),
        cmocka_unit_test(features_taken_out_and_put_back_give_the_same_scores),
        cmocka_unit_test(a_gradient_that_is_not_finite_is_named_and_not_counted),
        cmocka_unit_test(the_best_and_the_worst_are_found_in_order),
        cmocka_unit_test(wrong_arguments_are_refused_with_the_numbers),
        cmocka_unit_test(without_memory_nothing_is_made_and_nothing_leaks),
    };
    return RUN_TASK_TESTS(tests);
}
