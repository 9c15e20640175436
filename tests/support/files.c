/* files.c - see files.h. */
#include "files.h"

#include <dirent.h>
#include <unistd.h>
#include <zlib.h>

#include "base/dtype.h"
#include "flashsketch_extend.h"

static char folder[] = "/tmp/fs-files-XXXXXX";

int enter_folder(void **state)
{
    (void)state;
    return !mkdtemp(folder) || chdir(folder);
}

int leave_folder(void **state)
{
    (void)state;
    DIR *all = opendir(".");
    for (struct dirent *one; all && (one = readdir(all));)
        if (one->d_name[0] != '.' && unlink(one->d_name)) rmdir(one->d_name);
    if (all) closedir(all);
    return chdir("/") || rmdir(folder);
}

void put(bytes *b, const void *data, size_t count)
{
    assert_true(b->count + count <= sizeof b->at);
    memcpy(b->at + b->count, data, count);
    b->count += count;
}

void put_text(bytes *b, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int count = vsnprintf((char *)b->at + b->count, sizeof b->at - b->count, format, arguments);
    va_end(arguments);
    assert_true(count >= 0 && b->count + (size_t)count < sizeof b->at);
    b->count += (size_t)count;
}

void put_little(bytes *b, uint64_t value, int count)
{
    for (int i = 0; i < count; i++) put(b, &(unsigned char){(unsigned char)(value >> 8 * i)}, 1);
}
void put_big(bytes *b, uint64_t value, int count)
{
    for (int i = count - 1; i >= 0; i--) put(b, &(unsigned char){(unsigned char)(value >> 8 * i)}, 1);
}

void put_double(bytes *b, double value, fs_dtype dtype)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    switch (dtype) {
    case FS_F64: put_little(b, bits, 8); break;
    case FS_F32: put_little(b, fsi_bits_of_float((float)value), 4); break;
    case FS_F16: put_little(b, fsi_f16_of_float((float)value), 2); break;
    default: put_little(b, fsi_bf16_of_float((float)value), 2); break;
    }
}

void put_gzip(bytes *b, const bytes *content)
{
    z_stream z = {.next_in = (unsigned char *)content->at,
                  .avail_in = (unsigned)content->count,
                  .next_out = b->at + b->count,
                  .avail_out = (unsigned)(sizeof b->at - b->count)};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    b->count += z.total_out;
    deflateEnd(&z);
}

void save_some(const bytes *b, const char *path, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(b->at, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}
void save(const bytes *b, const char *path) { save_some(b, path, b->count); }
void save_gzip(const bytes *b, const char *path)
{
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, b->at, (unsigned)b->count), (int)b->count);
    assert_int_equal(gzclose(file), Z_OK);
}

double element(int64_t i, int64_t j) { return (double)((7 * i + 3 * j) % 11 - 5) / 2; }

file_matrix opened(const char *path, const file_options *options)
{
    file_matrix file;
    if (file_open(path, options, &file)) {
        print_error("%s\n", fs_error_message());
        fail();
    }
    return file;
}

void expect_dense(const file_matrix *file, int64_t rows, int64_t cols, fs_dtype dtype)
{
    const fs_matrix *m = &file->dense;
    assert_false(file->is_sparse);
    if (m->rows != rows || m->cols != cols || m->dtype != dtype) {
        print_error("%" PRId64 " x %" PRId64 " of type %d, not %" PRId64 " x %" PRId64 " of type %d\n", m->rows,
                    m->cols, (int)m->dtype, rows, cols, (int)dtype);
        fail();
    }
    assert_int_equal((uintptr_t)m->data % (uintptr_t)fsi_dtype_size(dtype), 0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            const double found = fsi_load(m->data, dtype, m->offset + i * m->row_stride + j * m->col_stride);
            if (found != element(i, j)) {
                print_error("(%" PRId64 ", %" PRId64 ") is %g, not %g\n", i, j, found, element(i, j));
                fail();
            }
        }
}

void expect_sparse(const file_matrix *file, int64_t rows, int64_t cols, const double *dense)
{
    const fs_sparse *A = &file->sparse;
    assert_true(file->is_sparse);
    assert_int_equal(A->format, FS_CSR);
    assert_int_equal(A->dtype, FS_F64);
    assert_true(A->rows == rows && A->cols == cols);
    assert_int_equal(fsi_index_load(A->ptr, A->index_type, 0), 0);
    assert_int_equal(fsi_index_load(A->ptr, A->index_type, rows), A->nnz);
    double *found = calloc((size_t)(rows * cols), sizeof *found);
    assert_non_null(found);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = fsi_index_load(A->ptr, A->index_type, i); p < fsi_index_load(A->ptr, A->index_type, i + 1);
             p++)
            found[i * cols + fsi_index_load(A->index, A->index_type, p)] += ((const double *)A->value)[p];
    int wrong = 0;
    for (int64_t i = 0; i < rows * cols; i++)
        if (found[i] != dense[i]) {
            print_error("(%" PRId64 ", %" PRId64 ") is %g, not %g\n", i / cols, i % cols, found[i], dense[i]);
            wrong = 1;
        }
    free(found);
    assert_false(wrong);
}

void refused(const char *path, const file_options *options, const char *file, int line, const char *const *words)
{
    static const file_matrix empty;
    file_matrix found;
    (void)fs_fail(FS_OK, "%s", "");
    const fs_result code = file_open(path, options, &found);
    const char *message = fs_error_message();
    int right = code == FS_EFILE && strncmp(message, path, strlen(path)) == 0;
    for (int i = 0; words[i]; i++) right = right && strstr(message, words[i]);
    for (const char *c = message; *c; c++) right = right && *c >= 0x20 && *c < 0x7F;
    if (!right) {
        print_error("%s:%d: %s gave %s and \"%s\"; missing may be:", file, line, path, fs_result_name(code), message);
        for (int i = 0; words[i]; i++) print_error(" \"%s\"", words[i]);
        print_error("\n");
        fail();
    }
    assert_memory_equal(&found, &empty, sizeof found);
}

void refused_wherever_cut(const bytes *b, const char *path, const file_options *options)
{
    for (size_t count = 0; count < b->count; count++) {
        save_some(b, path, count);
        REFUSED(path, options, path);
    }
}
