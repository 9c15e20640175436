/* version.c - the header, the library and the file VERSION name one version, and the definition has one number. */
#include <stdio.h>

#include "tests/support/support.h"

static void header_library_and_file_agree(void **state)
{
    (void)state;
    char header[32];
    snprintf(header, sizeof header, "%d.%d.%d", FS_VERSION_MAJOR, FS_VERSION_MINOR, FS_VERSION_PATCH);
    assert_string_equal(header, VERSION);
    assert_string_equal(fs_version(), VERSION);
    assert_int_equal(FS_VERSION, FS_VERSION_MAJOR * 10000 + FS_VERSION_MINOR * 100 + FS_VERSION_PATCH);
    assert_int_equal(fs_version_number(), FS_VERSION);
}

/* The digests of src/def/vectors.txt are of the definition that its first lines name. */
static void the_vectors_are_of_the_same_definition(void **state)
{
    (void)state;
    FILE *file = fopen(VECTORS, "r");
    char line[512];
    int definition = -1;
    assert_non_null(file);
    while (definition < 0 && fgets(line, sizeof line, file))
        sscanf(line, "# vectors.txt - test vectors of definition version %d", &definition);
    fclose(file);
    assert_int_equal(fs_definition_version(), definition);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(header_library_and_file_agree),
                                       cmocka_unit_test(the_vectors_are_of_the_same_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
