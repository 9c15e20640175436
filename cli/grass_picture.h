/* grass_picture.h - a picture of an attribution: test images, each with the most helpful and the most harmful training
 * images. */
#ifndef FSI_CLI_GRASS_PICTURE_H
#define FSI_CLI_GRASS_PICTURE_H

#include <stdio.h>

#include "apps/grass/data.h"

/* Rows of a picture: the test image, then `each` training images in green frames and `each` in red ones. */
typedef struct grass_rows {
    int64_t count, each;
    const int64_t *query;             /* count test images */
    const int64_t *helpful, *harmful; /* count x each training images */
} grass_rows;

/* Writes a PNG.  Images that are not square are drawn as one line of pixels.  Returns 0, or EXIT_FAILURE after printing
 * why; a failed write shows when the stream is closed. */
int grass_picture(FILE *out, const grass_data *data, const grass_rows *rows);

#endif
