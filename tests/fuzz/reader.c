/* reader.c - any bytes to one reader, or to the choice of one: FUZZ_FORMAT says which.  The reader may open or refuse
 * them; whatever it opens is read to its last element, so that a view which reaches outside its memory is detected.
 *
 * The bytes are a file in memory; a reader sees no difference. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/dtype.h"
#include "files/file.h"
#include "flashsketch_extend.h"

/* A failure has a message, and text of a file does not control the terminal. */
static void check_failure(fs_result result)
{
    const char *message = fs_error_message();
    if (result != FS_EFILE || !*message) abort();
    for (; *message; message++)
        if (*message < 0x20 || *message > 0x7E) abort();
}

static void touch(const void *data, int64_t bytes)
{
    static volatile unsigned char sum;
    for (int64_t i = 0; i < bytes; i++) sum = (unsigned char)(sum + ((const unsigned char *)data)[i]);
}

static void check_dense(const fs_matrix *m)
{
    if (m->rows < 1 || m->cols < 1 || m->offset || !fsi_dtype_known(m->dtype)) abort();
    if ((uintptr_t)m->data % (uintptr_t)fsi_dtype_size(m->dtype)) abort();
    touch(m->data, m->rows * m->cols * fsi_dtype_size(m->dtype));
}

/* What a stream will read is in the file. */
static void check_located(const file_matrix *file)
{
    const fs_matrix *m = &file->dense;
    if (m->rows < 1 || m->cols < 1 || !fsi_dtype_known(m->dtype) || file->start < 0) abort();
    if (file->whole) return; /* what follows the header is not looked at */
    if (file->kind.dtype != m->dtype || file->kind.bytes < 1 || file->kind.bytes > fsi_dtype_size(m->dtype)) abort();
    if (file->start + m->rows * m->cols * file->kind.bytes > file->bytes) abort();
}

static void check_sparse(const file_matrix *file)
{
    const fs_sparse *A = &file->sparse;
    int64_t last = 0;
    if (A->rows < 1 || A->cols < 1 || (A->ptr == NULL) != file->whole) abort();
    if (file->whole) return;
    if (fsi_index_load(A->ptr, A->index_type, 0)) abort();
    for (int64_t i = 0; i < A->rows; i++) {
        const int64_t next = fsi_index_load(A->ptr, A->index_type, i + 1);
        if (next < last || next > A->nnz) abort();
        last = next;
    }
    if (last != A->nnz) abort();
    for (int64_t p = 0; p < A->nnz; p++) {
        const int64_t col = fsi_index_load(A->index, A->index_type, p);
        if (col < 0 || col >= A->cols) abort();
    }
    touch(A->value, A->nnz * fsi_dtype_size(A->dtype));
}

static void open_one(const char *path, const file_options *options)
{
    file_matrix file;
    (void)fs_fail(FS_OK, "%s", "");
    const fs_result result = file_open(path, options, &file);
    if (result) {
        check_failure(result);
        return;
    }
    if (*file.why) { /* described only */
        if (!options->describe || file.dense.data || file.sparse.ptr) abort();
        file_close(&file);
        return;
    }
    if (file.is_sparse) check_sparse(&file);
    else if (file.dense.data) check_dense(&file.dense);
    else check_located(&file);
    file_close(&file);
}

/* As they are, and only located, in both ways. */
static void open_all_ways(const char *path, const file_options *options)
{
    file_options how = *options;
    for (how.locate = 0; how.locate <= 2; how.locate++) open_one(path, &how);
    how.locate = how.describe = 1;
    open_one(path, &how);
}

static void open_tensor(void *user, const file_tensor *tensor)
{
    const file_options options = {.format = FUZZ_FORMAT, .tensor = tensor->name};
    open_all_ways(user, &options);
}

static void open_all(char *path)
{
    const file_options options = {.format = FUZZ_FORMAT, .list = open_tensor, .user = path};
    open_one(path, &options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char path[64];
    file_options options = {.format = FUZZ_FORMAT};
    if (FUZZ_FORMAT == FILE_RAW) { /* the first bytes are the options */
        if (bytes < 18) return 0;
        memcpy(&options.rows, data, 8);
        memcpy(&options.cols, data + 8, 8);
        options.dtype = (fs_dtype)(data[16] % 6);
        options.by_columns = data[17] % 2;
        data += 18, bytes -= 18;
    }
    const int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, data, bytes) != (ssize_t)bytes) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    open_all_ways(path, &options);
    if (FUZZ_FORMAT == FILE_SAFETENSORS || FUZZ_FORMAT == FILE_NPZ) open_all(path);
    close(file);
    return 0;
}
