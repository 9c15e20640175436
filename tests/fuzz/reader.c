/* reader.c - any bytes to one reader, or to the choice of one: FUZZ_FORMAT says which.  The reader may open or refuse
 * them; whatever it opens is read to its last element, so that a view which reaches outside its memory cannot stay
 * unseen.
 *
 * The bytes are a file in memory; a reader sees no difference. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli.h"
#include "dtype.h"
#include "file.h"

static int sentences;

int cli_fail(const char *format, ...)
{
    char sentence[2048];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    sentences++;
    for (int i = 0; i < length; i++)
        if (sentence[i] < 0x20 || sentence[i] > 0x7E) abort(); /* what stands in a file talks to the terminal */
    return EXIT_FAILURE;
}

static void touch(const void *data, int64_t bytes)
{
    static volatile unsigned char sum;
    for (int64_t i = 0; i < bytes; i++) sum = (unsigned char)(sum + ((const unsigned char *)data)[i]);
}

static void check_dense(const fs_matrix *m)
{
    if (m->rows < 1 || m->cols < 1 || m->offset || !fs_dtype_known(m->dtype)) abort();
    if ((uintptr_t)m->data % (uintptr_t)fs_dtype_size(m->dtype)) abort();
    touch(m->data, m->rows * m->cols * fs_dtype_size(m->dtype));
}

static void check_sparse(const fs_sparse *A)
{
    int64_t last = 0;
    if (fs_index_load(A->ptr, A->index_type, 0)) abort();
    for (int64_t i = 0; i < A->rows; i++) {
        const int64_t next = fs_index_load(A->ptr, A->index_type, i + 1);
        if (next < last || next > A->nnz) abort();
        last = next;
    }
    if (last != A->nnz) abort();
    for (int64_t p = 0; p < A->nnz; p++) {
        const int64_t col = fs_index_load(A->index, A->index_type, p);
        if (col < 0 || col >= A->cols) abort();
    }
    touch(A->value, A->nnz * 8);
}

static void open_one(const char *path, const file_options *options)
{
    file_matrix file;
    sentences = 0;
    const int code = file_open(path, options, &file);
    if (code ? code != EXIT_FAILURE || sentences != 1 : sentences != 0) abort();
    if (code) return;
    if (file.is_sparse) check_sparse(&file.sparse);
    else check_dense(&file.dense);
    file_close(&file);
}

static void open_tensor(void *user, const file_tensor *tensor)
{
    const file_options options = {.format = FILE_SAFETENSORS, .tensor = tensor->name};
    open_one(user, &options);
}

static void open_all(char *path)
{
    const file_options options = {.format = FILE_SAFETENSORS, .list = open_tensor, .user = path};
    file_matrix file;
    if (!file_open(path, &options, &file)) file_close(&file);
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
    open_one(path, &options);
    if (FUZZ_FORMAT == FILE_SAFETENSORS) open_all(path);
    close(file);
    return 0;
}
