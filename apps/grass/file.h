/* file.h - a file whose elements become f32, read a panel at a time (flashsketch_files.h). */
#ifndef FSI_APPS_GRASS_FILE_H
#define FSI_APPS_GRASS_FILE_H

#include "flashsketch_files.h"

typedef struct grass_file {
    const char *path;
    fs_stream *stream;
    int64_t rows, cols;
} grass_file;

/* Opens a file of any format that fs_stream_create reads.  FS_EFILE: it cannot be read, or its elements are not f32 or
 * integers of 8 or 16 bits; the message begins with its name. */
FS_NODISCARD fs_result grass_file_open(grass_file *file, const char *path);
void grass_file_close(grass_file *file);

/* Calls take(user, i, j, count, x, stride) for elements j ... j + count - 1 of row i, x[0], x[stride], ..., until every
 * element was there once or it fails; its failure is returned. */
typedef fs_result grass_file_take(void *user, int64_t i, int64_t j, int64_t count, const float *x, int64_t stride);
FS_NODISCARD fs_result grass_file_each(const grass_file *file, grass_file_take *take, void *user);

#endif
