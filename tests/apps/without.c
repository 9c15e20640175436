/* without.c - where no OpenBLAS can be loaded (the environment of this test hides it): perceptrons compute by plain
 * loops, and an experiment, whose scores need the library's linear algebra, is refused before it creates its folder. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/grass/experiment.h"
#include "tests/support/support.h"

static grass_device device;

static int set_up(void **state)
{
    fs_context_options options = FS_CONTEXT_INIT;
    (void)state;
    options.backend = FS_BACKEND_CPU;
    MUST(grass_device_open(&device, &options));
    return 0;
}
static int tear_down(void **state)
{
    (void)state;
    grass_device_close(&device);
    return 0;
}

static void openblas_is_hidden_and_that_is_no_failure(void **state)
{
    (void)state;
    assert_string_equal(fs_error_message(), ""); /* of grass_device_open */
    REFUSED(grass_open_algebra(device.ctx), FS_EBACKEND, "OpenBLAS");
}

/* A linear layer of integers: logits W x + b, and their gradient. */
static void perceptrons_compute(void **state)
{
    static const mlp_shape linear = {1, {3, 2}};
    static const float theta[] = {1, 2, 3, -1, 0, 4, 10, 20}, x[] = {1, -1, 2, 0, 5, 1};
    static const float logits[] = {15, 27, 23, 24};
    static const uint8_t label[] = {0, 1};
    float got[4], g[8];
    double margin[2];
    mlp net;
    (void)state;
    MUST(mlp_open(&net, &device, &linear, 2, 1));
    MUST(mlp_set(&net, 0, theta));
    MUST(mlp_forward(&net, x, 2, NULL));
    MUST(device.ops->fetch(device.state, net.activation[1], sizeof got, got));
    assert_memory_equal(got, logits, sizeof got);
    MUST(mlp_margin(&net, 2, label, margin)); /* of two classes: the difference of their logits */
    assert_true(margin[0] == 15 - 27 && margin[1] == 24 - 23);
    MUST(mlp_gradient_sum(&net, 2, g)); /* derivatives are (1, -1) and (-1, 1) */
    static const float want[] = {1, -6, 1, -1, 6, -1, 0, 0};
    assert_memory_equal(g, want, sizeof g);
    mlp_close(&net);
}

static void experiments_are_refused_before_they_begin(void **state)
{
    static const experiment_recipe smallest = {{2, {4, 3, 10}}, {0.05, 0.9, 0.1, 4, 1}, 3, 2, 4, 2, 3, 1, 1};
    float x[8 * 4] = {0};
    uint8_t label[8] = {0};
    const grass_data data = {.train = {8, 4, x, label}, .test = {6, 4, x, label}};
    experiment e;
    (void)state;
    REFUSED(experiment_open(&e, &device, &smallest, &data, "without-openblas", NULL), FS_EBACKEND, "OpenBLAS");
    assert_int_not_equal(access("without-openblas", F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openblas_is_hidden_and_that_is_no_failure),
        cmocka_unit_test(perceptrons_compute),
        cmocka_unit_test(experiments_are_refused_before_they_begin),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
