/* data.c - IDX files to normalised images and checked labels. */
#include "data.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "files/file.h"

/* An IDX file of bytes; max_rows 0: all rows. */
static fs_result open_bytes(file_matrix *file, const char *path, const char *what, int64_t max_rows)
{
    const file_options options = {.format = FILE_IDX, .max_rows = max_rows};
    FSI_TRY(file_open(path, &options, file));
    if (!strcmp(file->stored, "uint8")) return FS_OK;
    const fs_result result = fs_fail(FS_EFILE, "%s: the file holds %s; %s are bytes (uint8)", path, file->stored, what);
    file_close(file);
    return result;
}

/* Mean and deviation of all bytes / 255, to four decimals; whole sums, so they do not depend on an order. */
static fs_result statistics(const char *path, const fs_matrix *images, double *mean, double *deviation)
{
    const float *byte = images->data;
    const int64_t count = images->rows * images->cols;
    uint64_t sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t x = (uint64_t)byte[i];
        sum += x;
        squares += x * x;
    }
    const double m = (double)sum / (double)count, variance = (double)squares / (double)count - m * m;
    *mean = round(m / 255.0 * 1e4) / 1e4;
    *deviation = round(sqrt(variance > 0 ? variance : 0) / 255.0 * 1e4) / 1e4;
    if (*deviation > 0) return FS_OK;
    return fs_fail(FS_EFILE,
                   "%s: all pixels are alike (their mean is %.4f, their deviation %.4f): no model can learn from it",
                   path, *mean, *deviation);
}

static fs_result allocate(grass_images *out, int64_t count, int64_t pixels)
{
    out->count = count;
    out->pixels = pixels;
    out->x = malloc((size_t)(count * pixels) * sizeof *out->x);
    out->label = malloc((size_t)count);
    if (out->x && out->label) return FS_OK;
    return fs_fail(FS_ENOMEM, "there is no memory for %" PRId64 " images of %" PRId64 " pixels", count, pixels);
}

static fs_result take_images(grass_images *out, const char *path, const fs_matrix *file, int64_t count, double mean,
                             double deviation)
{
    if (file->rows < count)
        return fs_fail(FS_EFILE, "%s: the file holds %" PRId64 " images, the experiment takes %" PRId64, path,
                       file->rows, count);
    FSI_TRY(allocate(out, count, file->cols));
    const float *byte = file->data;
    for (int64_t i = 0; i < count * file->cols; i++) out->x[i] = (float)((byte[i] / 255.0 - mean) / deviation);
    return FS_OK;
}

static fs_result check_labels(grass_images *out, const char *path, const fs_matrix *file, int64_t images,
                              const char *images_path)
{
    if (file->cols != 1)
        return fs_fail(FS_EFILE, "%s: the file holds %" PRId64 " x %" PRId64 " values, labels are one for each image",
                       path, file->rows, file->cols);
    if (file->rows != images)
        return fs_fail(FS_EFILE, "%s: the file holds %" PRId64 " labels, but '%s' holds %" PRId64 " images", path,
                       file->rows, images_path, images);
    const float *label = file->data;
    for (int64_t i = 0; i < out->count; i++) {
        if (label[i] >= GRASS_CLASSES)
            return fs_fail(FS_EFILE, "%s: label %" PRId64 " is %d, labels are 0 to %d", path, i, (int)label[i],
                           GRASS_CLASSES - 1);
        out->label[i] = (uint8_t)label[i];
    }
    return FS_OK;
}

static fs_result read_labels(grass_images *out, const char *path, int64_t images, const char *images_path)
{
    file_matrix file;
    FSI_TRY(open_bytes(&file, path, "labels", 0));
    const fs_result result = check_labels(out, path, &file.dense, images, images_path);
    file_close(&file);
    return result;
}

static fs_result read_train(grass_data *out, const grass_paths *paths, int64_t count)
{
    file_matrix file;
    FSI_TRY(open_bytes(&file, paths->train_images, "images", 0));
    const int64_t images = file.dense.rows;
    fs_result result = statistics(paths->train_images, &file.dense, &out->mean, &out->deviation);
    if (result == FS_OK)
        result = take_images(&out->train, paths->train_images, &file.dense, count, out->mean, out->deviation);
    file_close(&file);
    return result == FS_OK ? read_labels(&out->train, paths->train_labels, images, paths->train_images) : result;
}

static fs_result read_test(grass_data *out, const grass_paths *paths, int64_t count)
{
    file_matrix file;
    FSI_TRY(open_bytes(&file, paths->test_images, "images", 0));
    const int64_t images = file.dense.rows;
    fs_result result = FS_OK;
    if (file.dense.cols != out->train.pixels)
        result = fs_fail(FS_EFILE, "%s: images of %" PRId64 " pixels, but those of '%s' have %" PRId64,
                         paths->test_images, file.dense.cols, paths->train_images, out->train.pixels);
    if (result == FS_OK)
        result = take_images(&out->test, paths->test_images, &file.dense, count, out->mean, out->deviation);
    file_close(&file);
    return result == FS_OK ? read_labels(&out->test, paths->test_labels, images, paths->test_images) : result;
}

fs_result grass_data_read(grass_data *out, const grass_paths *paths, int64_t train, int64_t test)
{
    memset(out, 0, sizeof *out);
    FSI_REQUIRE(train >= 1 && test >= 1,
                "%" PRId64 " training and %" PRId64 " test images were asked for; at least 1 of each is needed", train,
                test);
    fs_result result = read_train(out, paths, train);
    if (result == FS_OK) result = read_test(out, paths, test);
    if (result != FS_OK) grass_data_free(out);
    return result;
}

void grass_data_free(grass_data *data)
{
    free(data->train.x);
    free(data->train.label);
    free(data->test.x);
    free(data->test.label);
    memset(data, 0, sizeof *data);
}
