/* version.c - the header, the library and the file VERSION name one version. */
#include <stdio.h>

#include "tests/support/support.h"

static void header_library_and_file_agree(void **state)
{
    (void)state;
    char header[32];
    snprintf(header, sizeof header, "%d.%d.%d", FS_VERSION_MAJOR, FS_VERSION_MINOR, FS_VERSION_PATCH);
    assert_string_equal(header, VERSION);
    assert_string_equal(fs_version(), VERSION);
    assert_true(fs_definition_version() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(header_library_and_file_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
