/* images.c - see images.h. */
#include "apps/common/images.h"

#include <flashsketch_extend.h>
#include <flashsketch_files.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static fs_result subtract_mean(const image_rows *A)
{
    double *mean = calloc((size_t)A->cols, sizeof *mean);
    if (!mean) return fs_fail(FS_ENOMEM, "no memory for a row of %" PRId64 " values", A->cols);
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t j = 0; j < A->cols; j++) mean[j] += A->data[i * A->cols + j];
    for (int64_t j = 0; j < A->cols; j++) mean[j] /= (double)A->rows;
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t j = 0; j < A->cols; j++) A->data[i * A->cols + j] -= (float)mean[j];
    free(mean);
    return FS_OK;
}

static fs_result scale_bytes(const char *path, fs_file *file, image_rows *out)
{
    fs_file_info info = FS_FILE_INFO_INIT;
    fs_matrix m;
    fs_result result = fs_file_get_info(file, &info);
    if (!result) result = fs_file_matrix(file, &m);
    if (result) return result;
    if (strcmp(info.stored, "uint8"))
        return fs_fail(FS_EFILE, "%s: the file holds %s; images are bytes (uint8)", path, info.stored);
    out->rows = info.rows;
    out->cols = info.cols;
    out->data = malloc(sizeof *out->data * (size_t)(out->rows * out->cols + 1));
    if (!out->data)
        return fs_fail(FS_ENOMEM, "no memory for %" PRId64 " x %" PRId64 " values of '%s'", out->rows, out->cols, path);
    const float *bytes = m.data;
    for (int64_t i = 0; i < out->rows * out->cols; i++) out->data[i] = bytes[i] / 255.0f;
    return subtract_mean(out);
}

fs_result images_read(const char *path, int64_t max_rows, int64_t max_cols, image_rows *out)
{
    fs_file_options options = FS_FILE_INIT;
    fs_file *file;
    memset(out, 0, sizeof *out);
    options.format = FS_FILE_IDX;
    options.max_rows = max_rows;
    options.max_cols = max_cols;
    fs_result result = fs_file_open(&file, path, &options);
    if (result) return result;
    result = scale_bytes(path, file, out);
    fs_file_close(file);
    if (result) {
        free(out->data);
        memset(out, 0, sizeof *out);
    }
    return result;
}
