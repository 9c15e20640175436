/* files.h - what the tests of the readers share: files made byte by byte, messages caught, contents compared.
 *
 * Every program works in an empty folder of its own, so that messages start with a short name. */
#ifndef FSI_TESTS_SUPPORT_FILES_H
#define FSI_TESTS_SUPPORT_FILES_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "files/file.h"

/* cmocka's setup and teardown of a group: the folder, and its removal. */
int enter_folder(void **state);
int leave_folder(void **state);

/* bytes ------------------------------------------------------------------------------------------------------ */

typedef struct bytes {
    unsigned char at[1 << 16];
    size_t count;
} bytes;

void put(bytes *b, const void *data, size_t count);
void put_text(bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void put_little(bytes *b, uint64_t value, int count);
void put_big(bytes *b, uint64_t value, int count);
void put_double(bytes *b, double value, fs_dtype dtype); /* little-endian */

void put_gzip(bytes *b, const bytes *content); /* as a gzip member */

/* Writes the first `count` bytes to a file; and packed by gzip. */
void save_some(const bytes *b, const char *path, size_t count);
void save(const bytes *b, const char *path);
void save_gzip(const bytes *b, const char *path);

/* contents --------------------------------------------------------------------------------------------------- */

/* The element (i, j) of every matrix that is made here: integers and halves that all types hold. */
double element(int64_t i, int64_t j);

/* That the file opens; what is wrong with it otherwise is printed. */
file_matrix opened(const char *path, const file_options *options);

/* That an open file is the dense rows x cols matrix of element() in this type. */
void expect_dense(const file_matrix *file, int64_t rows, int64_t cols, fs_dtype dtype);

/* That it is the sparse matrix whose row-major dense form is this. */
void expect_sparse(const file_matrix *file, int64_t rows, int64_t cols, const double *dense);

/* That the file is refused with one message that starts with its name and has all these words. */
#define REFUSED(path, options, ...) \
    refused((path), (options), __FILE__, __LINE__, (const char *const[]){__VA_ARGS__, NULL})
void refused(const char *path, const file_options *options, const char *file, int line, const char *const *words);

/* That every file made of the first bytes of this one, fewer than all, is refused. */
void refused_wherever_cut(const bytes *b, const char *path, const file_options *options);

#endif
