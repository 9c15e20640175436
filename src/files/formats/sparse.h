/* sparse.h - from entries of a sparse matrix, in any order, to CSR (mtx.c, npz.c). */
#ifndef FSI_FILES_FORMATS_SPARSE_H
#define FSI_FILES_FORMATS_SPARSE_H

#include "files/reader.h"

/* Entries as a file has them, indices from 0. */
typedef struct sparse_entries {
    int64_t count;
    int64_t *row, *col;
    double *value;
    file_matrix held; /* their memory */
} sparse_entries;

/* Rows cost memory that the size of a file of entries does not bound: checks that there are not too many.  Returns
 * FS_OK, FS_EFILE or FS_ENOMEM. */
fs_result sparse_check_rows(const reader_source *in, int64_t rows, int64_t entries);

/* Makes out a sparse matrix of which only the shape is known. */
void sparse_located(int64_t rows, int64_t cols, file_matrix *out);

/* Room for entries.  Returns FS_OK, FS_EFILE or FS_ENOMEM; sparse_entries_free is for both. */
fs_result sparse_entries_allocate(const reader_source *in, int64_t count, sparse_entries *e);
void sparse_entries_free(sparse_entries *e);

/* Makes out the CSR matrix of entries that are inside it, those of a row in their order.  mirror 1: each entry off the
 * diagonal stands for its transposed one too, -1: which has the other sign.  Returns FS_OK, FS_EFILE or FS_ENOMEM. */
fs_result sparse_csr(const reader_source *in, int64_t rows, int64_t cols, int mirror, const sparse_entries *e,
                     file_matrix *out);

#endif
