/* data.c - IDX files to normalised images and checked labels. */
#include "data.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "flashsketch_files.h"

static fs_result allocate_images(grass_images *out, int64_t count, int64_t pixels)
{
    out->count = count;
    out->pixels = pixels;
    out->x = malloc((size_t)(count * pixels) * sizeof *out->x);
    out->label = malloc((size_t)count);
    if (out->x && out->label) return FS_OK;
    return fs_fail(FS_ENOMEM, "no memory for %" PRId64 " images of %" PRId64 " pixels", count, pixels);
}

/* An IDX file of bytes, as f32 in packed rows. */
typedef struct byte_file {
    const char *path;
    fs_file *file;
    int64_t rows, cols;
    const float *byte;
} byte_file;

static fs_result take_bytes(byte_file *f, const char *what)
{
    fs_file_info info = FS_FILE_INFO_INIT;
    fs_matrix m;
    GRASS_TRY(fs_file_get_info(f->file, &info));
    if (strcmp(info.stored, "uint8"))
        return fs_fail(FS_EFILE, "%s: the file holds %s; %s are bytes (uint8)", f->path, info.stored, what);
    GRASS_TRY(fs_file_matrix(f->file, &m));
    f->rows = m.rows;
    f->cols = m.cols;
    f->byte = (const float *)m.data + m.offset;
    return FS_OK;
}

static fs_result open_bytes(byte_file *f, const char *path, const char *what)
{
    fs_file_options options = FS_FILE_INIT;
    options.format = FS_FILE_IDX;
    *f = (byte_file){.path = path};
    GRASS_TRY(fs_file_open(&f->file, path, &options));
    const fs_result result = take_bytes(f, what);
    if (result != FS_OK) fs_file_close(f->file);
    return result;
}

/* Mean and deviation of all bytes / 255, to four decimals; integer sums, so they do not depend on an order. */
static fs_result take_statistics(const byte_file *f, double *mean, double *deviation)
{
    const int64_t count = f->rows * f->cols;
    uint64_t sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t x = (uint64_t)f->byte[i];
        sum += x;
        squares += x * x;
    }
    const double m = (double)sum / (double)count, variance = (double)squares / (double)count - m * m;
    *mean = round(m / 255.0 * 1e4) / 1e4;
    *deviation = round(sqrt(variance > 0 ? variance : 0) / 255.0 * 1e4) / 1e4;
    if (*deviation > 0) return FS_OK;
    return fs_fail(FS_EFILE,
                   "%s: all pixels are alike (their mean is %.4f, their deviation %.4f): no model can learn from it",
                   f->path, *mean, *deviation);
}

static fs_result take_images(grass_images *out, const byte_file *f, int64_t count, double mean, double deviation)
{
    if (f->rows < count)
        return fs_fail(FS_EFILE, "%s: the file holds %" PRId64 " images, the experiment takes %" PRId64, f->path,
                       f->rows, count);
    GRASS_TRY(allocate_images(out, count, f->cols));
    for (int64_t i = 0; i < count * f->cols; i++) out->x[i] = (float)((f->byte[i] / 255.0 - mean) / deviation);
    return FS_OK;
}

static fs_result take_labels(grass_images *out, const byte_file *f, int64_t images, const char *images_path)
{
    if (f->cols != 1)
        return fs_fail(FS_EFILE, "%s: the file holds %" PRId64 " x %" PRId64 " values, labels are one for each image",
                       f->path, f->rows, f->cols);
    if (f->rows != images)
        return fs_fail(FS_EFILE, "%s: the file holds %" PRId64 " labels, but '%s' holds %" PRId64 " images", f->path,
                       f->rows, images_path, images);
    for (int64_t i = 0; i < out->count; i++) {
        if (f->byte[i] >= GRASS_CLASSES)
            return fs_fail(FS_EFILE, "%s: label %" PRId64 " is %d, labels are 0 to %d", f->path, i, (int)f->byte[i],
                           GRASS_CLASSES - 1);
        out->label[i] = (uint8_t)f->byte[i];
    }
    return FS_OK;
}

static fs_result read_labels(grass_images *out, const char *path, int64_t images, const char *images_path)
{
    byte_file f;
    GRASS_TRY(open_bytes(&f, path, "labels"));
    const fs_result result = take_labels(out, &f, images, images_path);
    fs_file_close(f.file);
    return result;
}

static fs_result read_train(grass_data *out, const grass_paths *paths, int64_t count)
{
    byte_file f;
    GRASS_TRY(open_bytes(&f, paths->train_images, "images"));
    fs_result result = take_statistics(&f, &out->mean, &out->deviation);
    if (result == FS_OK) result = take_images(&out->train, &f, count, out->mean, out->deviation);
    fs_file_close(f.file);
    return result == FS_OK ? read_labels(&out->train, paths->train_labels, f.rows, paths->train_images) : result;
}

static fs_result read_test(grass_data *out, const grass_paths *paths, int64_t count)
{
    byte_file f;
    GRASS_TRY(open_bytes(&f, paths->test_images, "images"));
    fs_result result = FS_OK;
    if (f.cols != out->train.pixels)
        result = fs_fail(FS_EFILE, "%s: images of %" PRId64 " pixels, but those of '%s' have %" PRId64,
                         paths->test_images, f.cols, paths->train_images, out->train.pixels);
    if (result == FS_OK) result = take_images(&out->test, &f, count, out->mean, out->deviation);
    fs_file_close(f.file);
    return result == FS_OK ? read_labels(&out->test, paths->test_labels, f.rows, paths->test_images) : result;
}

fs_result grass_data_read(grass_data *out, const grass_paths *paths, int64_t train, int64_t test)
{
    memset(out, 0, sizeof *out);
    GRASS_REQUIRE(train >= 1 && test >= 1,
                  "%" PRId64 " training and %" PRId64 " test images were asked for; at least 1 of each is needed",
                  train, test);
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
