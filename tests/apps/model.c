/* model.c - the perceptron against plain loops in double and finite differences; training against its recipe.
 *
 * The reference is value(): the network of a single example in double, which shares no code but the choice of the units
 * that are dropped.  Its differences over 2e-4 are exact to 1e-8 or so; the network itself is f32. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/grass/random.h"
#include "apps/grass/train.h"
#include "tests/support/problems.h"

static const mlp_shape tiny = {3, {5, 7, 4, 3}};
static const mlp_shape recipe_shape = {3, {784, 128, 64, 10}};
enum { ROWS_ = 6 };

typedef enum what { MARGIN, LOSS } what;

/* The margin or the cross-entropy of one example. */
static double value(const mlp_shape *shape, const double *theta, const float *x, int label, what w,
                    const mlp_dropout *dropout, int64_t row)
{
    double a[16], z[16];
    for (int64_t u = 0; u < shape->width[0]; u++) a[u] = x[u];
    for (int l = 0; l < shape->layers; l++) {
        const double *W = theta + mlp_layer_at(shape, l), *b = W + shape->width[l] * shape->width[l + 1];
        for (int64_t u = 0; u < shape->width[l + 1]; u++) {
            z[u] = b[u];
            for (int64_t v = 0; v < shape->width[l]; v++) z[u] += W[u * shape->width[l] + v] * a[v];
        }
        for (int64_t u = 0; u < shape->width[l + 1]; u++) {
            const int hidden = l + 1 < shape->layers;
            const int dropped = hidden && dropout && mlp_drops(dropout, 0, l + 1, row, u);
            a[u] = !hidden ? z[u] : z[u] <= 0 || dropped ? 0 : dropout ? z[u] / (1 - dropout->rate) : z[u];
        }
    }
    double all = 0;
    for (int64_t j = 0; j < shape->width[shape->layers]; j++) all += exp(a[j]);
    const double p = exp(a[label]) / all;
    return w == LOSS ? -log(p) : log(p) - log(1 - p);
}

typedef struct example {
    float x[ROWS_ * 5];
    uint8_t label[ROWS_];
} example;
static example example_make(void)
{
    example e;
    for (int i = 0; i < ROWS_ * 5; i++) e.x[i] = (float)normal_at(11, i);
    for (int i = 0; i < ROWS_; i++) e.label[i] = (uint8_t)(i % 3);
    return e;
}

static grass_device cpu(void)
{
    fs_context_options options = FS_CONTEXT_INIT;
    grass_device device;
    options.backend = FS_BACKEND_CPU;
    MUST(grass_device_open(&device, &options));
    return device;
}

/* Derivative j of example i by differences. */
static double derivative(double *theta, int64_t j, const example *e, int64_t i, what w, const mlp_dropout *dropout)
{
    const double h = 1e-4, at = theta[j];
    theta[j] = at + h;
    const double up = value(&tiny, theta, e->x + 5 * i, e->label[i], w, dropout, i);
    theta[j] = at - h;
    const double down = value(&tiny, theta, e->x + 5 * i, e->label[i], w, dropout, i);
    theta[j] = at;
    return (up - down) / (2 * h);
}

static void parameters_are_counted_and_laid_out_as_the_recipe_says(void **state)
{
    (void)state;
    assert_int_equal(mlp_parameters(&recipe_shape), 109386);
    assert_int_equal(mlp_layer_at(&recipe_shape, 1), 100352 + 128);
    assert_int_equal(mlp_layer_at(&recipe_shape, 2), 100352 + 128 + 8192 + 64);
}

static void initial_parameters_fill_their_intervals_evenly(void **state)
{
    (void)state;
    const int64_t p = mlp_parameters(&recipe_shape);
    float *theta = room(p, sizeof *theta), *other = room(p, sizeof *other);
    mlp_init(&recipe_shape, 5, theta);
    mlp_init(&recipe_shape, 6, other);
    for (int l = 0; l < 3; l++) {
        const int64_t first = mlp_layer_at(&recipe_shape, l), last = mlp_layer_at(&recipe_shape, l + 1);
        const double bound = 1 / sqrt((double)recipe_shape.width[l]), n = (double)(last - first);
        double sum = 0, squares = 0, both = 0, most = 0;
        for (int64_t i = first; i < last; i++) {
            sum += theta[i] / bound;
            squares += theta[i] / bound * (theta[i] / bound);
            both += theta[i] / bound * (other[i] / bound);
            most = fmax(most, fabs(theta[i]));
        }
        assert_true(most < bound && most > bound * (1 - 10 / n));
        assert_true(fabs(sum / n) < 5 / sqrt(3 * n)); /* deviation of the mean: sqrt(1/3 / n) */
        assert_true(fabs(squares / n - 1.0 / 3) < 5 * sqrt(4.0 / 45 / n));
        assert_true(fabs(both / n) < 5 / (3 * sqrt(n)));
    }
    free(theta);
    free(other);
}

static void margins_and_their_gradients_are_those_of_finite_differences(void **state)
{
    (void)state;
    grass_device device = cpu();
    mlp net;
    const example e = example_make();
    const int64_t p = mlp_parameters(&tiny);
    float *theta = room(p, sizeof *theta), *G = room(ROWS_ * (p + 3), sizeof *G);
    double *exact = room(p, sizeof *exact), f[ROWS_];
    mlp_init(&tiny, 8, theta);
    for (int64_t j = 0; j < p; j++) exact[j] = theta[j] *= 3; /* so that units are on and off, and margins large */
    MUST(mlp_open(&net, &device, &tiny, ROWS_, 1));
    MUST(mlp_set(&net, 0, theta));
    MUST(mlp_forward(&net, e.x, ROWS_, NULL));
    MUST(mlp_margin(&net, ROWS_, e.label, f));
    MUST(mlp_gradients(&net, ROWS_, G, p + 3));
    int nonzero = 0;
    for (int64_t i = 0; i < ROWS_; i++) {
        const double want = value(&tiny, exact, e.x + 5 * i, e.label[i], MARGIN, NULL, i);
        if (!(fabs(f[i] - want) < 1e-5 * (1 + fabs(want)))) fail_msg("margin %d is %.9g, not %.9g", (int)i, f[i], want);
        for (int64_t j = 0; j < p; j++) {
            const double got = G[i * (p + 3) + j], s = derivative(exact, j, &e, i, MARGIN, NULL);
            nonzero += got != 0;
            if (!(fabs(got - s) < 1e-5 * (1 + fabs(s))))
                fail_msg("example %d, parameter %d: %.9g, by differences %.9g", (int)i, (int)j, got, s);
        }
    }
    if (nonzero < ROWS_ * p / 4) fail_msg("only %d of %d derivatives are not 0", nonzero, (int)(ROWS_ * p));
    mlp_close(&net);
    grass_device_close(&device);
    free(theta);
    free(G);
    free(exact);
}

static void gradients_of_the_loss_with_dropout_are_those_of_finite_differences(void **state)
{
    (void)state;
    grass_device device = cpu();
    mlp net;
    const example e = example_make();
    const mlp_dropout dropout = {0.3, 4, {17}};
    const int64_t p = mlp_parameters(&tiny);
    float *theta = room(p, sizeof *theta), *g = room(p, sizeof *g);
    double *exact = room(p, sizeof *exact), loss[ROWS_];
    mlp_init(&tiny, 3, theta);
    for (int64_t j = 0; j < p; j++) exact[j] = theta[j] *= 3;
    MUST(mlp_open(&net, &device, &tiny, ROWS_, 1));
    MUST(mlp_set(&net, 0, theta));
    MUST(mlp_forward(&net, e.x, ROWS_, &dropout));
    MUST(mlp_cross_entropy(&net, ROWS_, e.label, loss));
    MUST(mlp_gradient_sum(&net, ROWS_, g));
    for (int64_t i = 0; i < ROWS_; i++) {
        const double want = value(&tiny, exact, e.x + 5 * i, e.label[i], LOSS, &dropout, i);
        if (!(fabs(loss[i] - want) < 1e-5 * (1 + want))) fail_msg("loss %d is %.9g, not %.9g", (int)i, loss[i], want);
    }
    for (int64_t j = 0; j < p; j++) {
        double s = 0;
        for (int64_t i = 0; i < ROWS_; i++) s += derivative(exact, j, &e, i, LOSS, &dropout) / ROWS_;
        if (!(fabs(g[j] - s) < 1e-5 * (1 + fabs(s))))
            fail_msg("parameter %d: %.9g, by differences %.9g", (int)j, (double)g[j], s);
    }
    mlp_close(&net);
    grass_device_close(&device);
    free(theta);
    free(g);
    free(exact);
}

static void dropout_drops_its_share_and_differs_from_step_to_step(void **state)
{
    (void)state;
    const mlp_dropout first = {0.1, 0, {9}}, second = {0.1, 1, {9}};
    const int n = 64 * 128;
    int dropped = 0, both = 0;
    for (int i = 0; i < 64; i++)
        for (int u = 0; u < 128; u++) {
            dropped += mlp_drops(&first, 0, 1, i, u);
            both += mlp_drops(&first, 0, 1, i, u) && mlp_drops(&second, 0, 1, i, u);
        }
    assert_true(fabs(dropped - 0.1 * n) < 5 * sqrt(0.09 * n));
    assert_true(fabs(both - 0.01 * n) < 5 * sqrt(0.01 * n));
}

/* A certain prediction: p_y rounds to 1 in f32, and log p - log(1 - p) would be infinite. */
static void margins_of_sure_models_are_finite(void **state)
{
    (void)state;
    static const mlp_shape linear = {1, {1, 3}};
    static const float theta[] = {200, 0, -100, 0, 0, 0}, x[] = {1};
    static const uint8_t label[] = {0};
    grass_device device = cpu();
    mlp net;
    float G[6];
    double f;
    MUST(mlp_open(&net, &device, &linear, 1, 1));
    MUST(mlp_set(&net, 0, theta));
    MUST(mlp_forward(&net, x, 1, NULL));
    MUST(mlp_margin(&net, 1, label, &f));
    MUST(mlp_gradients(&net, 1, G, 6));
    assert_true(f == 200.0 && G[0] == 1 && G[1] == -1 && G[2] <= 0 && G[2] > -1e-30f);
    mlp_close(&net);
    grass_device_close(&device);
}

/* images of three classes around three points */
static grass_images clusters(int64_t count)
{
    grass_images d = {count, 5, room(count * 5, sizeof(float)), room(count, 1)};
    for (int64_t i = 0; i < count; i++) {
        d.label[i] = (uint8_t)(i % 3);
        for (int64_t u = 0; u < 5; u++)
            d.x[5 * i + u] = (float)(1.5 * normal_at(100 + (uint64_t)(i % 3), u) + 0.5 * normal_at(7, 5 * i + u));
    }
    return d;
}

/* Two epochs of batches of 4, 4 and 2 made here, step by step. */
static void training_takes_the_steps_of_the_recipe(void **state)
{
    (void)state;
    grass_device device = cpu();
    mlp net;
    enum { N = 10, B = 4 };
    const train_recipe how = {0.05, 0.9, 0.0, B, 2};
    const grass_images all = clusters(2 * N);
    const int64_t p = mlp_parameters(&tiny);
    const uint64_t seed = 23;
    int64_t chosen[N];
    float *theta = room(p, sizeof *theta), *mine = room(p, sizeof *mine), *g = room(p, sizeof *g);
    double *v = room(p, sizeof *v), loss[B], sum = 0;
    for (int i = 0; i < N; i++) chosen[i] = 2 * i + i % 2;
    memset(v, 0, (size_t)p * sizeof *v);
    mlp_init(&tiny, seed, mine);
    MUST(mlp_open(&net, &device, &tiny, B, 1));
    for (uint32_t e = 0; e < 2; e++) {
        const fsi_bijection order = fsi_bijection_make(seed, GRASS_TAG_ORDER, e, N);
        sum = 0;
        for (int first = 0; first < N; first += B) {
            const int rows = N - first < B ? N - first : B;
            float x[B * 5];
            uint8_t label[B];
            for (int i = 0; i < rows; i++) {
                const int64_t image = chosen[fsi_permute(&order, (uint64_t)(first + i))];
                memcpy(x + 5 * i, all.x + 5 * image, 5 * sizeof *x);
                label[i] = all.label[image];
            }
            MUST(mlp_set(&net, 0, mine));
            MUST(mlp_forward(&net, x, rows, NULL));
            MUST(mlp_cross_entropy(&net, rows, label, loss));
            for (int i = 0; i < rows; i++) sum += loss[i];
            MUST(mlp_gradient_sum(&net, rows, g));
            for (int64_t j = 0; j < p; j++) {
                v[j] = 0.9 * v[j] + g[j];
                mine[j] = (float)(mine[j] - 0.05 * v[j]);
            }
        }
    }
    train_job job = {chosen, seed, theta, 0};
    trainer t;
    MUST(trainer_open(&t, &device, &tiny, &how, &all, N, 1));
    MUST(trainer_run(&t, &job, 1));
    trainer_close(&t);
    assert_true(fabs(job.loss - sum / N) < 1e-5);
    for (int64_t j = 0; j < p; j++)
        if (!(fabs(theta[j] - mine[j]) < 1e-6)) fail_msg("parameter %d: %.9g, not %.9g", (int)j, theta[j], mine[j]);
    mlp_close(&net);
    grass_device_close(&device);
    free(all.x);
    free(all.label);
    free(theta);
    free(mine);
    free(g);
    free(v);
}

/* Trains the models of these seeds, `slots` side by side. */
static fs_result train(const grass_device *device, const train_recipe *how, const grass_images *all, int64_t slots,
                       int64_t count, const uint64_t *seed, float *theta)
{
    const int64_t p = mlp_parameters(&tiny);
    int64_t *chosen = room(all->count, sizeof *chosen);
    train_job jobs[MLP_MODELS];
    trainer t;
    for (int64_t i = 0; i < all->count; i++) chosen[i] = i;
    for (int64_t j = 0; j < count && j < MLP_MODELS; j++) jobs[j] = (train_job){chosen, seed[j], theta + j * p, 0};
    fs_result result = trainer_open(&t, device, &tiny, how, all, all->count, slots);
    if (result == FS_OK) {
        result = trainer_run(&t, jobs, count);
        trainer_close(&t);
    }
    free(chosen);
    return result;
}

static void a_trained_model_tells_classes_apart_and_is_its_seeds_to_the_bit(void **state)
{
    (void)state;
    grass_device device = cpu();
    mlp net;
    enum { N = 60 };
    const train_recipe how = {0.05, 0.9, 0.1, 16, 40};
    const grass_images all = clusters(N);
    const int64_t p = mlp_parameters(&tiny);
    const uint64_t seed[] = {1, 2};
    float *theta = room(p, sizeof *theta), *again = room(p, sizeof *again);
    double loss[N], work[N];
    int right = 0;
    MUST(train(&device, &how, &all, 0, 1, seed, theta));
    MUST(train(&device, &how, &all, 0, 1, seed, again));
    assert_memory_equal(theta, again, (size_t)p * sizeof *theta);
    MUST(train(&device, &how, &all, 0, 1, seed + 1, again));
    assert_memory_not_equal(theta, again, (size_t)p * sizeof *theta);
    MUST(mlp_open(&net, &device, &tiny, 16, 1));
    MUST(mlp_set(&net, 0, theta));
    MUST(train_losses(&net, &all, work, loss)); /* 60 rows in batches of 16 */
    mlp_close(&net);
    for (int i = 0; i < N; i++) right += loss[i] < log(2);
    if (right < N * 9 / 10) fail_msg("%d of %d examples have more than half of the probability", right, N);

    const train_recipe wild = {1e20, 0.9, 0.0, 16, 3};
    REFUSED(train(&device, &wild, &all, 0, 1, seed, theta), FS_EBACKEND, "does not converge", "epoch");
    const train_recipe none = {0.05, 0.9, 0.0, 0, 3};
    REFUSED(train(&device, &none, &all, 0, 1, seed, theta), FS_EINVAL, "batches of 0");
    grass_device_close(&device);
    free(all.x);
    free(all.label);
    free(theta);
    free(again);
}

/* Three side by side, in four slots, are the same three alone; the last batches are smaller. */
static void models_side_by_side_are_those_trained_alone(void **state)
{
    (void)state;
    grass_device device = cpu();
    const train_recipe how = {0.05, 0.9, 0.2, 16, 5};
    const grass_images all = clusters(42);
    const int64_t p = mlp_parameters(&tiny);
    const uint64_t seed[] = {5, 6, 7};
    float *together = room(3 * p, sizeof *together), *alone = room(3 * p, sizeof *alone);
    MUST(train(&device, &how, &all, 4, 3, seed, together));
    for (int j = 0; j < 3; j++) MUST(train(&device, &how, &all, 1, 1, seed + j, alone + j * p));
    assert_memory_equal(together, alone, (size_t)(3 * p) * sizeof *alone);
    REFUSED(train(&device, &how, &all, 2, 3, seed, together), FS_EINVAL, "3 models", "1 to 2");
    REFUSED(train(&device, &how, &all, MLP_MODELS + 1, 1, seed, together), FS_EINVAL, "17 models", "1 to 16");
    grass_device_close(&device);
    free(all.x);
    free(all.label);
    free(together);
    free(alone);
}

static void shapes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    grass_device device = cpu();
    mlp net;
    mlp_shape shape = tiny;
    REFUSED(mlp_open(&net, &device, &shape, 0, 1), FS_EINVAL, "batches of 0");
    shape.layers = MLP_LAYERS + 1;
    REFUSED(mlp_open(&net, &device, &shape, 4, 1), FS_EINVAL, "of 9 layers");
    shape = tiny, shape.width[1] = 0;
    REFUSED(mlp_open(&net, &device, &shape, 4, 1), FS_EINVAL, "layer 1", "0 wide");
    shape = tiny, shape.width[3] = 257;
    REFUSED(mlp_open(&net, &device, &shape, 4, 1), FS_EINVAL, "layer 3", "257 wide", "1 to 256");
    grass_device_close(&device);
}

static void choices_are_ascending_distinct_and_even(void **state)
{
    (void)state;
    enum { N = 50, HALF = 25, DRAWS = 400 };
    int64_t chosen[HALF];
    int often[N] = {0};
    for (uint32_t which = 0; which < DRAWS; which++) {
        grass_choose(3, GRASS_TAG_SUBSET, which, N, HALF, chosen);
        for (int i = 0; i < HALF; i++) {
            assert_true(chosen[i] >= 0 && chosen[i] < N && (i == 0 || chosen[i] > chosen[i - 1]));
            often[chosen[i]]++;
        }
    }
    for (int i = 0; i < N; i++) assert_true(fabs(often[i] - DRAWS / 2.0) < 5 * sqrt(DRAWS / 4.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_counted_and_laid_out_as_the_recipe_says),
        cmocka_unit_test(initial_parameters_fill_their_intervals_evenly),
        cmocka_unit_test(margins_and_their_gradients_are_those_of_finite_differences),
        cmocka_unit_test(gradients_of_the_loss_with_dropout_are_those_of_finite_differences),
        cmocka_unit_test(dropout_drops_its_share_and_differs_from_step_to_step),
        cmocka_unit_test(margins_of_sure_models_are_finite),
        cmocka_unit_test(training_takes_the_steps_of_the_recipe),
        cmocka_unit_test(a_trained_model_tells_classes_apart_and_is_its_seeds_to_the_bit),
        cmocka_unit_test(models_side_by_side_are_those_trained_alone),
        cmocka_unit_test(shapes_that_cannot_be_are_refused),
        cmocka_unit_test(choices_are_ascending_distinct_and_even),
    };
    return RUN_TASK_TESTS(tests);
}
