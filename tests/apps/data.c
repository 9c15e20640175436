/* data.c - images and labels: the first ones, normalised by the training file, and malformed files, which are
 * refused. */
#include <math.h>

#include "apps/grass/data.h"
#include "tests/support/files.h"

enum { TRAIN = 6, TEST = 4, SIDE = 3, PIXELS = SIDE * SIDE };
static const grass_paths paths = {"train.idx", "train-labels.idx", "test.idx", "test-labels.idx"};

static int pixel(int file, int i) { return (i * 37 + file * 11) % 256; }

static void put_images(bytes *b, int file, int count, int side)
{
    b->count = 0;
    put_big(b, 0x0803, 4);
    put_big(b, (uint64_t)count, 4);
    put_big(b, (uint64_t)side, 4);
    put_big(b, (uint64_t)side, 4);
    for (int i = 0; i < count * side * side; i++) put_big(b, (uint64_t)pixel(file, i), 1);
}
static void put_labels(bytes *b, int count)
{
    b->count = 0;
    put_big(b, 0x0801, 4);
    put_big(b, (uint64_t)count, 4);
    for (int i = 0; i < count; i++) put_big(b, (uint64_t)(i * 3 % 10), 1);
}

/* The four files as they should be. */
static void write_files(int gzip)
{
    bytes b;
    put_images(&b, 0, TRAIN, SIDE);
    (gzip ? save_gzip : save)(&b, paths.train_images);
    put_labels(&b, TRAIN);
    (gzip ? save_gzip : save)(&b, paths.train_labels);
    put_images(&b, 1, TEST, SIDE);
    (gzip ? save_gzip : save)(&b, paths.test_images);
    put_labels(&b, TEST);
    (gzip ? save_gzip : save)(&b, paths.test_labels);
}

static void the_first_images_are_normalised_by_all_of_the_training_file(void **state)
{
    (void)state;
    double sum = 0, squares = 0;
    for (int i = 0; i < TRAIN * PIXELS; i++) {
        sum += pixel(0, i) / 255.0;
        squares += pixel(0, i) / 255.0 * (pixel(0, i) / 255.0);
    }
    const double mean = sum / (TRAIN * PIXELS), deviation = sqrt(squares / (TRAIN * PIXELS) - mean * mean);
    for (int gzip = 0; gzip < 2; gzip++) {
        grass_data data;
        write_files(gzip);
        assert_int_equal(grass_data_read(&data, &paths, 4, 3), FS_OK);
        assert_true(data.train.count == 4 && data.test.count == 3 && data.train.pixels == PIXELS);
        assert_true(fabs(data.mean - mean) <= 0.5001e-4 && fabs(data.deviation - deviation) <= 0.5001e-4);
        assert_true(data.mean * 1e4 == round(data.mean * 1e4)); /* four decimals: MNIST's 0.1307 and 0.3081 */
        for (int i = 0; i < 4 * PIXELS; i++)
            assert_true(data.train.x[i] == (float)((pixel(0, i) / 255.0 - data.mean) / data.deviation));
        for (int i = 0; i < 3 * PIXELS; i++)
            assert_true(data.test.x[i] == (float)((pixel(1, i) / 255.0 - data.mean) / data.deviation));
        for (int i = 0; i < 4; i++) assert_int_equal(data.train.label[i], i * 3 % 10);
        for (int i = 0; i < 3; i++) assert_int_equal(data.test.label[i], i * 3 % 10);
        grass_data_free(&data);
    }
}

static void expect_message(int64_t train, int64_t test, fs_result code, const char *const *words)
{
    grass_data data;
    memset(&data, 0xFF, sizeof data);
    const fs_result result = grass_data_read(&data, &paths, train, test);
    if (result != code)
        fail_msg("%s instead of %s: %s", fs_result_name(result), fs_result_name(code), fs_error_message());
    for (; *words; words++)
        if (!strstr(fs_error_message(), *words)) fail_msg("no '%s' in: %s", *words, fs_error_message());
    assert_true(!data.train.x && !data.train.label && !data.test.x && !data.test.label);
}
#define EXPECT(train, test, code, ...) expect_message(train, test, code, (const char *const[]){__VA_ARGS__, NULL})

static void wrong_files_are_refused_with_a_message(void **state)
{
    bytes b;
    (void)state;
    write_files(0);
    EXPECT(0, 1, FS_EINVAL, "0 training and 1 test");
    EXPECT(7, 1, FS_EFILE, "train.idx: the file holds 6 images, the experiment takes 7");
    EXPECT(6, 5, FS_EFILE, "test.idx: the file holds 4 images, the experiment takes 5");

    put_labels(&b, TRAIN);
    b.at[8 + 2] = 10;
    save(&b, paths.train_labels);
    EXPECT(4, 3, FS_EFILE, "train-labels.idx: label 2 is 10, labels are 0 to 9");
    put_labels(&b, TRAIN - 1);
    save(&b, paths.train_labels);
    EXPECT(4, 3, FS_EFILE, "train-labels.idx: the file holds 5 labels, but 'train.idx' holds 6 images");
    put_labels(&b, TRAIN);
    b.at[3] = 2; /* two dimensions: the first four labels become the second size, 0 3 6 9 */
    save(&b, paths.train_labels);
    EXPECT(4, 3, FS_EFILE, "train-labels.idx");
    put_images(&b, 0, TRAIN, SIDE);
    save(&b, paths.train_labels);
    EXPECT(4, 3, FS_EFILE, "train-labels.idx: the file holds 6 x 9 values, labels are one for each image");

    write_files(0);
    put_images(&b, 1, TEST, SIDE + 1);
    save(&b, paths.test_images);
    EXPECT(4, 3, FS_EFILE, "test.idx: images of 16 pixels, but those of 'train.idx' have 9");
    put_images(&b, 0, TRAIN, SIDE);
    b.at[0] = 1;
    save(&b, paths.train_images);
    EXPECT(4, 3, FS_EFILE, "train.idx", "not an IDX file");
    b.at[0] = 0;
    b.at[2] = 9;
    save(&b, paths.train_images);
    EXPECT(4, 3, FS_EFILE, "train.idx: the file holds int8; images are bytes (uint8)");
    b.at[2] = 8;
    memset(b.at + 16, 7, TRAIN * PIXELS);
    save(&b, paths.train_images);
    EXPECT(4, 3, FS_EFILE, "train.idx: all pixels are alike", "0.0275");
    put_images(&b, 0, TRAIN, SIDE);
    save_some(&b, paths.train_images, b.count - 1);
    EXPECT(4, 3, FS_EFILE, "train.idx", "53");
    remove(paths.train_images);
    EXPECT(4, 3, FS_EFILE, "train.idx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_images_are_normalised_by_all_of_the_training_file),
        cmocka_unit_test(wrong_files_are_refused_with_a_message),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
