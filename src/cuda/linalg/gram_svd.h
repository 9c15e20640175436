/* gram_svd.h - singular values and vectors by eigenvectors of Gram matrices, over the table of dense.h. */
#ifndef FSI_CUDA_LINALG_GRAM_SVD_H
#define FSI_CUDA_LINALG_GRAM_SVD_H

#include "core/dense.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The contract of `svd` in dense.h; `host` has 2 p numbers in host memory.  *done is 0, and X what it was, where U and V
 * are not orthonormal to rounding: of an X with columns that are exactly 0, for example. */
fs_result fsi_gram_svd(const fsi_dense *dense, void *handle, double *host, int64_t m, int64_t p, double *X, int64_t ld,
                       double error, double *s, double *Vt, int *done);

#ifdef __cplusplus
}
#endif

#endif
