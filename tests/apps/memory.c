/* memory.c - memory that runs out at any moment of an experiment: one error message, and all allocations are freed
 * (the sanitizer checks it); afterwards the same call, with memory, succeeds.  The linker sends malloc and calloc of
 * the experiment here, and the context's allocator is in this file too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/grass/experiment.h"
#include "tests/support/problems.h"

#include "tests/support/failing_malloc.h"
#include "tests/support/folders.h"

static const experiment_recipe smallest = {{2, {4, 3, 10}}, {0.05, 0.9, 0.1, 4, 1}, 3, 2, 4, 2, 3, 1, 1};
static char folder[] = "grass-XXXXXX";
static grass_device device;
static grass_data data;

static void *take(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}
static void give(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static int set_up(void **state)
{
    fs_context_options options = FS_CONTEXT_INIT;
    (void)state;
    options.backend = FS_BACKEND_CPU;
    options.allocator = (fs_allocator){take, give, NULL};
    data.train = (grass_images){8, 4, room(32, sizeof(float)), room(8, 1)};
    data.test = (grass_images){6, 4, room(24, sizeof(float)), room(6, 1)};
    for (int i = 0; i < 32; i++) data.train.x[i] = (float)normal_at(1, i);
    for (int i = 0; i < 24; i++) data.test.x[i] = (float)normal_at(2, i);
    for (int i = 0; i < 8; i++) data.train.label[i] = (uint8_t)(i % 3);
    for (int i = 0; i < 6; i++) data.test.label[i] = (uint8_t)(i % 3);
    MUST(grass_device_open(&device, &options));
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    grass_data_free(&data);
    grass_device_close(&device);
    remove_tree(folder);
    return 0;
}

/* All of an experiment, with memory `times` times. */
static fs_result all_of_it(int times, double *lds)
{
    const fs_spec spec = {.size = sizeof spec, .k = 4, .seed = 3};
    experiment e;
    experiment_result result;
    left = times;
    fs_result code = experiment_open(&e, &device, &smallest, &data, folder, NULL);
    if (code == FS_OK) {
        code = experiment_models(&e);
        if (code == FS_OK) code = experiment_lds(&e, &spec, 16, 0, NULL, &result);
        experiment_close(&e);
    }
    left = -1;
    *lds = code == FS_OK ? result.lds.mean : 0;
    return code;
}

static void an_experiment_out_of_memory_says_so_and_goes_on_later(void **state)
{
    double lds, again;
    int times = 0;
    (void)state;
    for (; all_of_it(times, &lds) != FS_OK; times++) {
        if (!strstr(fs_error_message(), "no memory")) fail_msg("with memory %d times: %s", times, fs_error_message());
        assert_true(times < 1000);
    }
    assert_true(times >
                60); /* nine of the experiment, ten of a training, 22 of scoring, 14 of each fs_attribution ... */
    MUST(all_of_it(-1, &again));
    assert_memory_equal(&lds, &again, sizeof lds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_experiment_out_of_memory_says_so_and_goes_on_later)};
    need_openblas();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
