/* images.h - an IDX file of images as a matrix to sketch: a row an image, values / 255, columns of mean 0. */
#ifndef FSI_APPS_COMMON_IMAGES_H
#define FSI_APPS_COMMON_IMAGES_H

#include <stdint.h>

typedef struct file_image_rows {
    float *data; /* row-major; free it */
    int64_t rows, cols;
} file_image_rows;

/* The first max_rows rows of an IDX file of bytes, which may have at most max_cols columns; 0: all of them.  The mean
 * row is taken away, so that A'A is the covariance: images are all positive, their mean outweighs the rest, A'A is
 * almost of rank one, and its error is a single random number that tells little in a few draws.
 * Returns 0, or EXIT_FAILURE, and fs_error_message says what is wrong; then *out holds nothing. */
int file_images(const char *path, int64_t max_rows, int64_t max_cols, file_image_rows *out);

#endif
