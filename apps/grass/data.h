/* data.h - labelled images as the experiment takes them: the first ones of IDX files, normalised.
 *
 * x = (byte / 255 - mean) / deviation, where mean and deviation are those of all pixels of all training images in the
 * file, rounded to four decimals: for MNIST that gives the usual constants 0.1307 and 0.3081.  Test
 * images are normalised by the numbers of the training images. */
#ifndef FSI_APPS_GRASS_DATA_H
#define FSI_APPS_GRASS_DATA_H

#include "flashsketch.h"

enum { GRASS_CLASSES = 10 };

/* Images in the order of their file, a row of `pixels` values each, and their labels, 0 to GRASS_CLASSES - 1. */
typedef struct grass_images {
    int64_t count, pixels;
    float *x;
    uint8_t *label;
} grass_images;

typedef struct grass_data {
    grass_images train, test;
    double mean, deviation;
} grass_data;

/* The four files, with or without gzip. */
typedef struct grass_paths {
    const char *train_images, *train_labels, *test_images, *test_labels;
} grass_paths;

/* Reads the first `train` and `test` images and their labels.  FS_EFILE: a file cannot be read, is malformed, holds too
 * few images, does not fit the others, or a label is out of range; the message names the file and the numbers.
 * FS_ENOMEM.  After a failure *out holds nothing.  Free it with grass_data_free. */
FS_NODISCARD fs_result grass_data_read(grass_data *out, const grass_paths *paths, int64_t train, int64_t test);
void grass_data_free(grass_data *data);

#endif
