/* file.c - see file.h. */
#include "file.h"

#include "check.h"

fs_result grass_file_open(grass_file *file, const char *path)
{
    fs_matrix shape;
    *file = (grass_file){.path = path};
    GRASS_TRY(fs_stream_create(&file->stream, &file->path, 1, NULL));
    fs_result result = fs_stream_shape(file->stream, &shape);
    if (result == FS_OK && shape.dtype != FS_F32)
        result = fs_fail(FS_EFILE, "%s: the elements are neither f32 nor integers of 8 or 16 bits", path);
    file->rows = shape.rows;
    file->cols = shape.cols;
    if (result != FS_OK) grass_file_close(file);
    return result;
}

void grass_file_close(grass_file *file)
{
    fs_stream_destroy(file->stream);
    file->stream = NULL;
}

fs_result grass_file_each(const grass_file *file, grass_file_take *take, void *user)
{
    for (;;) {
        fs_panel panel = FS_PANEL_INIT;
        GRASS_TRY(fs_stream_next(file->stream, &panel));
        const fs_matrix *A = &panel.A;
        if (A->rows == 0) return FS_OK;
        for (int64_t i = 0; i < A->rows; i++)
            GRASS_TRY(take(user, panel.row0 + i, panel.col0, A->cols,
                           (const float *)A->data + A->offset + i * A->row_stride, A->col_stride));
    }
}
