/* data.c - files of images and labels: checked, the first ones kept, normalised. */
#include "data.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "file.h"

static fs_result allocate_images(grass_images *out, int64_t count, int64_t pixels)
{
    out->count = count;
    out->pixels = pixels;
    out->x = malloc((size_t)(count * pixels) * sizeof *out->x);
    out->label = malloc((size_t)count);
    if (out->x && out->label) return FS_OK;
    return fs_fail(FS_ENOMEM, "no memory for %" PRId64 " images of %" PRId64 " pixels", count, pixels);
}

/* images ----------------------------------------------------------------------------------------------------- */

/* A file of images being read: the first ones go to `out` as they are, and all of them into the sums. */
typedef struct image_reader {
    const char *path;
    grass_images *out;
    uint64_t sum, squares; /* of the pixels: integers, which do not depend on an order */
} image_reader;

static fs_result take_pixels(void *user, int64_t i, int64_t j, int64_t count, const float *x, int64_t stride)
{
    image_reader *reader = user;
    float *to = i < reader->out->count ? reader->out->x + i * reader->out->pixels + j : NULL;
    for (int64_t c = 0; c < count; c++) {
        const float pixel = x[c * stride];
        if (!(pixel >= 0 && pixel <= 255 && pixel == floorf(pixel)))
            return fs_fail(FS_EFILE, "%s: pixel %" PRId64 " of image %" PRId64 " is %g; pixels are bytes, 0 to 255",
                           reader->path, j + c, i, pixel);
        const uint64_t byte = (uint64_t)pixel;
        reader->sum += byte;
        reader->squares += byte * byte;
        if (to) to[c] = pixel;
    }
    return FS_OK;
}

static fs_result read_pixels(image_reader *reader, const grass_file *file, int64_t count)
{
    if (file->rows < count)
        return fs_fail(FS_EFILE, "%s: the file holds %" PRId64 " images, the experiment takes %" PRId64, file->path,
                       file->rows, count);
    GRASS_TRY(allocate_images(reader->out, count, file->cols));
    return grass_file_each(file, take_pixels, reader);
}

/* Mean and deviation of all bytes / 255, to four decimals. */
static fs_result take_statistics(const image_reader *reader, int64_t pixels, double *mean, double *deviation)
{
    const double count = (double)pixels, m = (double)reader->sum / count;
    const double variance = (double)reader->squares / count - m * m;
    *mean = round(m / 255.0 * 1e4) / 1e4;
    *deviation = round(sqrt(variance > 0 ? variance : 0) / 255.0 * 1e4) / 1e4;
    if (*deviation > 0) return FS_OK;
    return fs_fail(FS_EFILE,
                   "%s: all pixels are alike (their mean is %.4f, their deviation %.4f): no model can learn from it",
                   reader->path, *mean, *deviation);
}

static void normalise(grass_images *images, double mean, double deviation)
{
    for (int64_t i = 0; i < images->count * images->pixels; i++)
        images->x[i] = (float)((images->x[i] / 255.0 - mean) / deviation);
}

/* labels ----------------------------------------------------------------------------------------------------- */

typedef struct label_reader {
    const char *path;
    grass_images *out;
} label_reader;

static fs_result take_labels(void *user, int64_t i, int64_t j, int64_t count, const float *x, int64_t stride)
{
    const label_reader *reader = user;
    (void)j, (void)count, (void)stride; /* a label is the one element of its row */
    if (i >= reader->out->count) return FS_OK;
    if (!(*x >= 0 && *x < GRASS_CLASSES && *x == floorf(*x)))
        return fs_fail(FS_EFILE, "%s: label %" PRId64 " is %g, labels are 0 to %d", reader->path, i, *x,
                       GRASS_CLASSES - 1);
    reader->out->label[i] = (uint8_t)*x;
    return FS_OK;
}

static fs_result check_labels(const grass_file *file, int64_t images, const char *images_path)
{
    if (file->cols != 1)
        return fs_fail(FS_EFILE, "%s: the file holds %" PRId64 " x %" PRId64 " values, labels are one for each image",
                       file->path, file->rows, file->cols);
    if (file->rows != images)
        return fs_fail(FS_EFILE, "%s: the file holds %" PRId64 " labels, but '%s' holds %" PRId64 " images", file->path,
                       file->rows, images_path, images);
    return FS_OK;
}

static fs_result read_labels(grass_images *out, const char *path, int64_t images, const char *images_path)
{
    label_reader reader = {path, out};
    grass_file file;
    GRASS_TRY(grass_file_open(&file, path));
    fs_result result = check_labels(&file, images, images_path);
    if (result == FS_OK) result = grass_file_each(&file, take_labels, &reader);
    grass_file_close(&file);
    return result;
}

/* both ------------------------------------------------------------------------------------------------------- */

static fs_result read_train(grass_data *out, const grass_paths *paths, int64_t count)
{
    image_reader reader = {paths->train_images, &out->train, 0, 0};
    grass_file file;
    GRASS_TRY(grass_file_open(&file, paths->train_images));
    fs_result result = read_pixels(&reader, &file, count);
    if (result == FS_OK) result = take_statistics(&reader, file.rows * file.cols, &out->mean, &out->deviation);
    grass_file_close(&file);
    GRASS_TRY(result);
    normalise(&out->train, out->mean, out->deviation);
    return read_labels(&out->train, paths->train_labels, file.rows, paths->train_images);
}

static fs_result read_test(grass_data *out, const grass_paths *paths, int64_t count)
{
    image_reader reader = {paths->test_images, &out->test, 0, 0};
    grass_file file;
    GRASS_TRY(grass_file_open(&file, paths->test_images));
    fs_result result = FS_OK;
    if (file.cols != out->train.pixels)
        result = fs_fail(FS_EFILE, "%s: images of %" PRId64 " pixels, but those of '%s' have %" PRId64,
                         paths->test_images, file.cols, paths->train_images, out->train.pixels);
    if (result == FS_OK) result = read_pixels(&reader, &file, count);
    grass_file_close(&file);
    GRASS_TRY(result);
    normalise(&out->test, out->mean, out->deviation);
    return read_labels(&out->test, paths->test_labels, file.rows, paths->test_images);
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
