/* images.c - bytes of an IDX file to centred floats. */
#include "images.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "files/reader.h"

static int centre(const file_image_rows *A)
{
    double *mean = calloc((size_t)A->cols, sizeof *mean);
    if (!mean) return bad_file("there is no memory for a row of %" PRId64 " values", A->cols);
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t j = 0; j < A->cols; j++) mean[j] += A->data[i * A->cols + j];
    for (int64_t j = 0; j < A->cols; j++) mean[j] /= (double)A->rows;
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t j = 0; j < A->cols; j++) A->data[i * A->cols + j] -= (float)mean[j];
    free(mean);
    return 0;
}

int file_images(const char *path, int64_t max_rows, int64_t max_cols, file_image_rows *out)
{
    const file_options options = {.format = FILE_IDX, .max_rows = max_rows, .max_cols = max_cols};
    file_matrix file;
    memset(out, 0, sizeof *out);
    if (file_open(path, &options, &file)) return EXIT_FAILURE;
    out->rows = file.dense.rows;
    out->cols = file.dense.cols;
    int code = 0;
    if (strcmp(file.stored, "uint8"))
        code = bad_file("%s: the file holds %s; images are bytes (uint8)", path, file.stored);
    else if (!(out->data = malloc(sizeof *out->data * (size_t)(out->rows * out->cols + 1))))
        code = bad_file("there is no memory for %" PRId64 " x %" PRId64 " values of '%s'", out->rows, out->cols, path);
    const float *bytes = file.dense.data;
    for (int64_t i = 0; i < out->rows * out->cols && !code; i++) out->data[i] = bytes[i] / 255.0f;
    file_close(&file);
    if (!code) code = centre(out);
    if (code) {
        free(out->data);
        memset(out, 0, sizeof *out);
    }
    return code;
}
