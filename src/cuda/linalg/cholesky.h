/* cholesky.h - Cholesky's factorization of matrices of a few thousand columns, and a substitution with its factor, for
 * dense.cu. */
#ifndef FSI_CUDA_LINALG_CHOLESKY_H
#define FSI_CUDA_LINALG_CHOLESKY_H

#include "cuda/runtime/gpu.h"

typedef struct fsi_cholesky {
    char *memory; /* on the GPU; NULL: this GPU, or matrices of this size, are left to cuSOLVER */
    size_t bytes;
    int64_t most; /* columns of the largest matrix */
} fsi_cholesky;

/* Takes the memory for matrices of up to n columns; fsi_linalg_free(gpu, c->memory) gives it back. */
fs_result fsi_cholesky_open(fsi_gpu *gpu, int64_t n, fsi_cholesky *c);

/* Lower factor in place, of the lower triangle alone.  *info, which the GPU can write, becomes 0 or the first column
 * without a pivot, from 1 on; what stands in G from there on is undefined. */
fs_result fsi_cholesky_factor(fsi_gpu *gpu, const fsi_cholesky *c, int64_t n, double *G, int64_t ld, int *info);

/* x = L^-T x, elements of x being `stride` apart. */
fs_result fsi_cholesky_substitute(fsi_gpu *gpu, const fsi_cholesky *c, int64_t n, const double *L, int64_t ld,
                                  double *x, int64_t stride);

#endif
