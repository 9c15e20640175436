/* npy_write.c - a matrix written as an npy file, version 1.0 (npy.c describes the format). */
#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "files/reader.h"

/* Magic, version, length, dictionary, filled up so that the elements start at a multiple of 64, as NumPy does it. */
static void write_header(FILE *out, int64_t rows, int64_t cols, fs_dtype dtype)
{
    enum { HEADER = 128, BEFORE = 10 };
    const char order = reader_is_little() ? '<' : '>';
    char header[HEADER + 1];
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = HEADER - BEFORE;
    header[9] = 0;
    const int length = snprintf(header + BEFORE, HEADER - BEFORE,
                                "{'descr': '%cf%d', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }",
                                order, (int)fsi_dtype_size(dtype), rows, cols);
    header[BEFORE + length] = ' ';
    header[HEADER - 1] = '\n';
    fwrite(header, 1, HEADER, out);
}

uint32_t file_crc(const fs_matrix *m)
{
    return (uint32_t)crc32_z(0, m->data, (z_size_t)(m->rows * m->cols * fsi_dtype_size(m->dtype)));
}

uint32_t file_write_npy(FILE *out, const fs_matrix *m, fs_dtype dtype)
{
    enum { CHUNK = 4096 };
    double chunk[CHUNK]; /* room for elements of every type */
    const int64_t count = m->rows * m->cols;
    write_header(out, m->rows, m->cols, dtype);
    if (dtype == m->dtype) {
        fwrite(m->data, (size_t)fsi_dtype_size(dtype), (size_t)count, out);
        return file_crc(m);
    }
    uLong crc = 0;
    for (int64_t i = 0; i < count; i += CHUNK) {
        const int64_t n = count - i < CHUNK ? count - i : CHUNK;
        for (int64_t j = 0; j < n; j++) fsi_store(chunk, dtype, j, fsi_load(m->data, m->dtype, i + j));
        fwrite(chunk, (size_t)fsi_dtype_size(dtype), (size_t)n, out);
        crc = crc32_z(crc, (const Bytef *)chunk, (z_size_t)(n * fsi_dtype_size(dtype)));
    }
    return (uint32_t)crc;
}
