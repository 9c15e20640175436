/* cholesky.h - Cholesky's factorization of matrices of a few thousand columns, and a substitution with its factor, for
 * dense.cu. */
#ifndef FS_CUDA_CHOLESKY_H
#define FS_CUDA_CHOLESKY_H

#include "gpu.h"

typedef struct fs_cholesky {
    char *memory;   /* on the GPU; NULL: this GPU, or matrices of this size, are left to cuSOLVER */
    size_t bytes;
    int64_t most;   /* columns of the largest matrix */
} fs_cholesky;

/* Takes the memory for matrices of up to n columns; cudaFree(c->memory) gives it back, when all work is done. */
fs_result fs_cholesky_open(fs_gpu *gpu, int64_t n, fs_cholesky *c);

/* Lower factor in place, of the lower triangle alone.  *info, which the GPU can write, becomes 0 or the first column
 * without a pivot, from 1 on; what stands in G from there on is undefined. */
fs_result fs_cholesky_factor(fs_gpu *gpu, const fs_cholesky *c, int64_t n, double *G, int64_t ld, int *info);

/* x = L^-T x, elements of x being `stride` apart. */
fs_result fs_cholesky_substitute(fs_gpu *gpu, const fs_cholesky *c, int64_t n, const double *L, int64_t ld, double *x,
                                 int64_t stride);

#endif
