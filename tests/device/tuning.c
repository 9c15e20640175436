/* tuning.c - FLASHSKETCH_TUNING that names a missing or damaged table is an error when the context is created, not
 * ignored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"

/* Fails the test unless a context with this table is refused and the message names the file. */
static void expect_refused(const char *what, const char *path)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    options.backend = FS_BACKEND_CUDA;
    setenv("FLASHSKETCH_TUNING", path, 1);
    const fs_result result = fs_context_create(&ctx, &options);
    unsetenv("FLASHSKETCH_TUNING");
    if (result == FS_OK) {
        fs_context_destroy(ctx);
        fail_msg("%s: %s was taken for a table of choices", what, path);
    }
    if (!strstr(fs_error_message(), path)) fail_msg("%s: \"%s\" does not name %s", what, fs_error_message(), path);
}

static void skip_dry(void)
{
    if (dry) skip_because("CPU contexts have no table of choices");
}

static void a_missing_table_is_refused(void **state)
{
    (void)state;
    skip_dry();
    expect_refused("missing", "/nonexistent/flashsketch-tuning.txt");
}

static void a_malformed_table_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"this is no table {{{\n", "\x7f\x45\x4c\x46\x02\x01\x01",
                                        "-1 -1 -1 -1 -1 -1 nan\n"};
    skip_dry();
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        char path[] = "/tmp/flashsketch-tuning-XXXXXX";
        const int descriptor = mkstemp(path);
        if (descriptor < 0) fail_msg("no temporary file");
        const ssize_t written = write(descriptor, texts[t], strlen(texts[t]));
        close(descriptor);
        assert_true(written == (ssize_t)strlen(texts[t]));
        expect_refused("malformed", path);
        unlink(path);
    }
}

static void without_a_table_contexts_are_made(void **state)
{
    (void)state;
    unsetenv("FLASHSKETCH_TUNING");
    fs_context_destroy(gpu_context(NULL, FS_PRECISION_FULL));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_table_is_refused),
        cmocka_unit_test(a_malformed_table_is_refused),
        cmocka_unit_test(without_a_table_contexts_are_made),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
