/* matrix.h - checks of matrix views: the memory they touch, and whether two of them overlap; fs_matrix_check,
 * fs_matrix_check_output and fs_matrix_overlap are public, in flashsketch_extend.h. */
#ifndef FSI_CORE_MATRIX_H
#define FSI_CORE_MATRIX_H

#include "flashsketch_extend.h"

/* FS_EINVAL unless the types, sizes and arrays of *A, called `name`, are sound; what the arrays hold is not looked at.
 */
fs_result fsi_sparse_check(const char *who, const char *name, const fs_sparse *A);

/* FS_EINVAL unless what the arrays of a sound sparse matrix in host memory hold is sound: pointers ascend to nnz,
 * indices are in the matrix.  A device backend looks at its own. */
fs_result fsi_sparse_check_arrays(const char *who, const fs_sparse *A);

/* Whether a sound output shares a byte with an array of a sound sparse matrix. */
int fsi_sparse_overlap(const fs_sparse *A, const fs_matrix *Y);

/* The same view with its offset folded into data. */
fs_matrix fsi_matrix_at_origin(const fs_matrix *m);

/* The same view with data at its lowest element, as fs_matrix_check wants it where strides are negative. */
fs_matrix fsi_matrix_at_lowest(const fs_matrix *m);

#endif
