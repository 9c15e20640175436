/* products.h - products with the rows of A, for the table of dense.cu. */
#ifndef FSI_CUDA_LINALG_PRODUCTS_H
#define FSI_CUDA_LINALG_PRODUCTS_H

#include "cuda/runtime/gpu.h"

/* The beginning of the handle of fsi_gpu_dense, the only part that files other than dense.cu use. */
typedef struct fsi_gpu_handle {
    fsi_gpu *gpu;
} fsi_gpu_handle;

/* Entries of the table, with the contract of dense.h: normal.cu ... */
fs_result fsi_gpu_dense_product(void *handle, const fs_matrix *A, int64_t m, const double *P, double *U);
fs_result fsi_gpu_dense_normal(void *handle, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B,
                               double *W, double *squares);
/* ... and sparse_products.cu */
fs_result fsi_gpu_dense_product_sparse(void *handle, const fs_sparse *A, int64_t m, const double *P, double *U);
fs_result fsi_gpu_dense_normal_sparse(void *handle, const fs_sparse *A, int64_t m, const double *P, const fs_matrix *B,
                                      double *W, double *squares);

/* products.cu: the same as product and normal by panels of A in f64 and cuBLAS.  W NULL: U = (A P)' is stored. */
fs_result fsi_gpu_panel_products(void *handle, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B,
                                 double *U, double *W, double *squares);

/* U[c + i m] -= B(i, c); B NULL: nothing. */
fs_result fsi_gpu_subtract(fsi_gpu *gpu, int64_t rows, int64_t m, const fs_matrix *B, double *U);
/* squares[c] += sum of U[c + i m]^2 over i < rows, in a fixed order. */
fs_result fsi_gpu_add_squares(fsi_gpu *gpu, int64_t rows, int64_t m, const double *U, double *squares);
/* products.cu: the lower triangle of G = X X' + beta G, X n x k, or (`transposed`) of X'X, X k x n. */
fs_result fsi_gpu_gram(void *handle, int transposed, int64_t n, int64_t k, const double *X, int64_t ldx, double beta,
                       double *G, int64_t ldg);
/* tall_qr.cu: L (p x p, packed, zeros above) = the product of *factors triangles such that X = (what becomes of X) L'.
 * *done: X is orthonormal then, and L the factor of its QR; otherwise what is left of X has still to be factored.  `room`
 * has 2 p (p + 1) numbers, `host` 2 p in host memory; p is at most what potrf is open for. */
fs_result fsi_gpu_tall_qr(void *handle, int64_t m, int64_t p, double *X, int64_t ld, double *L, double *room,
                          double *host, int *factors, int *done);
/* L = L C, all p x p and packed. */
fs_result fsi_gpu_append_triangle(void *handle, int64_t p, double *L, double *C, double *work);
/* L (p x p, packed) = R', R the upper triangle of X, rows of it with a negative diagonal negated; zeros above. */
fs_result fsi_gpu_lower_of(fsi_gpu *gpu, int64_t p, const double *X, int64_t ld, double *L);

#endif
