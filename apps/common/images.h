/* images.h - an IDX file of images as a matrix to sketch: an image in each row, values / 255, columns of mean 0. */
#ifndef FSI_APPS_COMMON_IMAGES_H
#define FSI_APPS_COMMON_IMAGES_H

#include <flashsketch.h>

typedef struct image_rows {
    float *data; /* row-major; free it */
    int64_t rows, cols;
} image_rows;

/* The first max_rows rows of an IDX file of bytes, which may have at most max_cols columns; 0: all of them.  The mean
 * row is subtracted, so that A'A is the covariance: pixels are nonnegative, so the mean would dominate A'A, which would
 * be almost of rank one, and its error a single random number.
 * FS_EFILE, FS_ENOMEM: *out holds nothing. */
fs_result images_read(const char *path, int64_t max_rows, int64_t max_cols, image_rows *out);

#endif
