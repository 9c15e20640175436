/* handle.c - fs_file, an open file (flashsketch_files.h): the readers' result, and copies of their lists. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/reader.h"
#include "flashsketch_files.h"

typedef struct note {
    char *key, *text;
} note;

typedef struct listed_tensor {
    char *name, *dtype;
    int dimensions;
    int64_t shape[FILE_MAX_DIMENSIONS];
} listed_tensor;

struct fs_file {
    char *path; /* for messages */
    file_matrix matrix;
    int64_t tensors, notes, tensor_room, note_room;
    listed_tensor *tensor;
    note *note;
    int no_memory; /* a tensor or a note could not be kept */
    void (*progress)(void *user, int64_t bytes, int64_t all);
    void *user;
};

const char *fs_file_format_name(fs_file_format format) { return file_format_name((file_format)format); }

const char *fs_file_dtype_name(fs_dtype dtype) { return file_dtype_name(dtype); }

const char *fs_file_printable(char *out, size_t bytes, const char *text)
{
    return file_printable(out, bytes, text, strlen(text));
}

/* opening ---------------------------------------------------------------------------------------------------- */

/* Room for one more item in an array of `count` items of `bytes` bytes.  Returns 0 where there is no memory. */
static int grow_array(void **array, int64_t count, int64_t *room, size_t bytes)
{
    if (count < *room) return 1;
    const int64_t more = *room ? 2 * *room : 8;
    void *larger = realloc(*array, (size_t)more * bytes);
    if (!larger) return 0;
    *array = larger;
    *room = more;
    return 1;
}

static void keep_tensor(void *user, const file_tensor *seen)
{
    fs_file *file = user;
    if (!grow_array((void **)&file->tensor, file->tensors, &file->tensor_room, sizeof *file->tensor)) {
        file->no_memory = 1;
        return;
    }
    listed_tensor *t = &file->tensor[file->tensors++];
    *t = (listed_tensor){.name = strdup(seen->name), .dtype = strdup(seen->dtype), .dimensions = seen->dimensions};
    memcpy(t->shape, seen->shape, sizeof t->shape);
    if (!t->name || !t->dtype) file->no_memory = 1;
}

static void keep_note(void *user, const char *key, const char *text)
{
    fs_file *file = user;
    if (!grow_array((void **)&file->note, file->notes, &file->note_room, sizeof *file->note)) {
        file->no_memory = 1;
        return;
    }
    note *n = &file->note[file->notes++];
    *n = (note){strdup(key), strdup(text)};
    if (!n->key || !n->text) file->no_memory = 1;
}

static void report_progress(void *user, int64_t bytes, int64_t all)
{
    const fs_file *file = user;
    if (file->progress) file->progress(file->user, bytes, all);
}

static fs_result open_file(fs_file *file, const char *path, const fs_file_options *o)
{
    const file_options options = {.format = (file_format)o->format,
                                  .tensor = o->tensor,
                                  .list = o->tensor ? NULL : keep_tensor,
                                  .note = keep_note,
                                  .describe = o->describe,
                                  .rows = o->rows,
                                  .cols = o->cols,
                                  .dtype = o->dtype,
                                  .by_columns = o->by_columns,
                                  .max_rows = o->max_rows,
                                  .max_cols = o->max_cols,
                                  .locate = o->header_only != 0,
                                  .spool = 1,
                                  .keep = o->header_only != 0,
                                  .watch = report_progress,
                                  .user = file};
    file->progress = o->progress;
    file->user = o->user;
    file->path = strdup(strcmp(path, "-") ? path : "standard input");
    if (!file->path) return out_of_memory("%s: no memory for its name", path);
    FSI_TRY(file_open(path, &options, &file->matrix));
    file->progress = NULL;
    return file->no_memory ? out_of_memory("%s: no memory for the names of its tensors", path) : FS_OK;
}

fs_result fs_file_open(fs_file **out, const char *path, const fs_file_options *options)
{
    fs_file_options full = FS_FILE_INIT;
    FSI_REQUIRE(out && path, "fs_file_open: a pointer is NULL");
    *out = NULL;
    if (options) FSI_TRY(fs_struct_read("fs_file_open", "options", options, &full, sizeof full));
    FSI_REQUIRE((int)full.format >= 0 && full.format <= FS_FILE_RAW,
                "fs_file_open: options.format is %d, it must be from 0 to %d", (int)full.format, FS_FILE_RAW);
    FSI_REQUIRE(full.max_rows >= 0 && full.max_cols >= 0,
                "fs_file_open: options.max_rows is %" PRId64 ", max_cols is %" PRId64 "; they must be >= 0",
                full.max_rows, full.max_cols);
    fs_file *file = calloc(1, sizeof *file);
    if (!file) return out_of_memory("fs_file_open: no memory for %zu bytes", sizeof *file);
    const fs_result result = open_file(file, path, &full);
    if (result == FS_OK) *out = file;
    else fs_file_close(file);
    return result;
}

void fs_file_close(fs_file *file)
{
    if (!file) return;
    file_close(&file->matrix);
    for (int64_t i = 0; i < file->tensors; i++) {
        free(file->tensor[i].name);
        free(file->tensor[i].dtype);
    }
    for (int64_t i = 0; i < file->notes; i++) {
        free(file->note[i].key);
        free(file->note[i].text);
    }
    free(file->tensor);
    free(file->note);
    free(file->path);
    free(file);
}

/* contents ---------------------------------------------------------------------------------------------- */

fs_result fs_file_get_info(const fs_file *file, fs_file_info *info)
{
    FSI_REQUIRE(file && info, "fs_file_get_info: a pointer is NULL");
    const file_matrix *m = &file->matrix;
    const int has_matrix = !*m->why;
    fs_file_info full = FS_FILE_INFO_INIT;
    full.format = (fs_file_format)m->format;
    full.gzip = m->gzip;
    full.is_sparse = m->is_sparse;
    full.by_columns = !m->is_sparse && m->dense.col_stride != 1;
    full.stored = m->stored;
    full.why = m->why;
    full.dimensions = m->has_shape ? m->dimensions : -1;
    full.shape = m->shape;
    full.tensors = file->tensors;
    if (has_matrix) {
        full.dtype = m->is_sparse ? m->sparse.dtype : m->dense.dtype;
        full.rows = m->is_sparse ? m->sparse.rows : m->dense.rows;
        full.cols = m->is_sparse ? m->sparse.cols : m->dense.cols;
        full.entries = m->sparse.nnz;
    }
    FSI_TRY(fs_struct_check("fs_file_get_info", "info", info, sizeof full));
    fs_struct_write(info, &full, sizeof full);
    return FS_OK;
}

fs_result fs_file_get_tensor(const fs_file *file, int64_t i, fs_file_tensor *tensor)
{
    FSI_REQUIRE(file && tensor, "fs_file_get_tensor: a pointer is NULL");
    FSI_REQUIRE(i >= 0 && i < file->tensors, "fs_file_get_tensor: %s has %" PRId64 " tensors, and none is %" PRId64,
                file->path, file->tensors, i);
    const listed_tensor *t = &file->tensor[i];
    const fs_file_tensor full = {sizeof full, t->name, t->dtype, t->dimensions, t->shape};
    FSI_TRY(fs_struct_check("fs_file_get_tensor", "tensor", tensor, sizeof full));
    fs_struct_write(tensor, &full, sizeof full);
    return FS_OK;
}

const char *fs_file_metadata(const fs_file *file, const char *key)
{
    for (int64_t i = 0; file && i < file->notes; i++)
        if (!strcmp(file->note[i].key, key)) return file->note[i].text;
    return NULL;
}

/* FS_EINVAL unless the file has a matrix of this kind. */
static fs_result check_kind(const fs_file *file, const char *who, int sparse)
{
    const file_matrix *m = &file->matrix;
    FSI_REQUIRE(!*m->why, "%s: %s has no matrix: %s", who, file->path, m->why);
    FSI_REQUIRE(m->is_sparse == sparse, "%s: the matrix of %s is %s", who, file->path, sparse ? "dense" : "sparse");
    return FS_OK;
}

fs_result fs_file_matrix(fs_file *file, fs_matrix *A)
{
    FSI_REQUIRE(file && A, "fs_file_matrix: a pointer is NULL");
    FSI_TRY(check_kind(file, "fs_file_matrix", 0));
    if (!file->matrix.dense.data) FSI_TRY(file_load(file->path, &file->matrix));
    *A = file->matrix.dense;
    return FS_OK;
}

fs_result fs_file_sparse(fs_file *file, fs_sparse *A)
{
    FSI_REQUIRE(file && A, "fs_file_sparse: a pointer is NULL");
    FSI_TRY(check_kind(file, "fs_file_sparse", 1));
    *A = file->matrix.sparse;
    return FS_OK;
}

/* writing ---------------------------------------------------------------------------------------------------- */

static fs_result check_packed(const char *who, const fs_matrix *m)
{
    FSI_REQUIRE(m, "%s: the matrix is NULL", who);
    FSI_TRY(fs_matrix_check(who, "m", m));
    FSI_REQUIRE(m->memory == FS_MEMORY_HOST, "%s: the matrix is not in host memory", who);
    FSI_REQUIRE(m->offset == 0 && m->col_stride == 1 && (m->rows == 1 || m->row_stride == m->cols),
                "%s: the strides are %" PRId64 " and %" PRId64 " and the offset is %" PRId64
                "; packed rows have %" PRId64 ", 1 and 0",
                who, m->row_stride, m->col_stride, m->offset, m->cols);
    return FS_OK;
}

uint32_t fs_file_crc32(const fs_matrix *m) { return file_crc(m); }

fs_result fs_file_write_npy(FILE *out, const fs_matrix *m, fs_dtype dtype, uint32_t *crc)
{
    FSI_REQUIRE(out, "fs_file_write_npy: the stream is NULL");
    FSI_TRY(check_packed("fs_file_write_npy", m));
    FSI_REQUIRE(dtype == FS_F16 || dtype == FS_F32 || dtype == FS_F64,
                "fs_file_write_npy: npy has no type %s; give f16, f32 or f64", fs_dtype_name(dtype));
    const uint32_t sum = file_write_npy(out, m, dtype);
    if (crc) *crc = sum;
    return FS_OK;
}

fs_result fs_file_write_safetensors(FILE *out, const fs_matrix *m, const char *tensor, const char *key,
                                    const char *text)
{
    FSI_REQUIRE(out && tensor && key && text, "fs_file_write_safetensors: a pointer is NULL");
    FSI_TRY(check_packed("fs_file_write_safetensors", m));
    return file_write_safetensors(out, m, tensor, key, text);
}
