/* raw.c - raw files: their length is the only thing that can be wrong. */
#include "tests/support/files.h"

static void every_type_and_order_is_read(void **state)
{
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
        for (int by_columns = 0; by_columns < 2; by_columns++) {
            const file_options options = {
                .format = FILE_RAW, .rows = 5, .cols = 3, .dtype = (fs_dtype)dtype, .by_columns = by_columns};
            bytes b = {.count = 0};
            for (int64_t p = 0; p < 15; p++)
                put_double(&b, by_columns ? element(p % 5, p / 5) : element(p / 3, p % 3), (fs_dtype)dtype);
            save(&b, "A.bin");
            file_matrix file = opened("A.bin", &options);
            expect_dense(&file, 5, 3, (fs_dtype)dtype);
            assert_ptr_equal(file.dense.data, file.map);
            file_close(&file);
            refused_wherever_cut(&b, "A.bin", &options);
        }
}

static void shapes_that_do_not_fit_are_refused_with_the_numbers(void **state)
{
    (void)state;
    bytes b = {.count = 0};
    put_text(&b, "%060d", 0);
    save(&b, "A.bin");
    file_options options = {.format = FILE_RAW, .rows = 5, .cols = 4, .dtype = FS_F32};
    REFUSED("A.bin", &options, "5 x 4 float32 needs 80 bytes, but the file has 60");
    options.cols = 2;
    REFUSED("A.bin", &options, "5 x 2 float32 needs 40 bytes, but the file has 60");
    options.rows = INT64_MAX;
    REFUSED("A.bin", &options, "9223372036854775807 x 2", "more bytes than can be counted");
    options.rows = (int64_t)1 << 61; /* times 2 times 4 is 2^64 */
    REFUSED("A.bin", &options, "more bytes than can be counted");
    options.rows = -5;
    REFUSED("A.bin", &options, "not -5 x 2");
    options.rows = 0;
    REFUSED("A.bin", &options, "not 0 x 2");
    options.rows = 5, options.cols = 3, options.dtype = (fs_dtype)0;
    REFUSED("A.bin", &options, "needs a type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_order_is_read),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused_with_the_numbers),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
