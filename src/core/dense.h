/* dense.h - the linear algebra that tasks need, as a table of functions over a backend's memory.
 *
 * All of it is in f64 and column-major, so that a task is written once for every memory space.  A row-major Y (k x n) is
 * its transpose here: n x k, whose column i is row i of Y.  Calls are queued on the context's stream, and what they
 * compute is ready after `wait`; fetch, send, norm, eigen, svd and wait wait themselves.  Sizes are at most 2^31 - 1 (the
 * libraries' int), which the API layer checks.  The libraries behind it are opened when the first workspace is
 * created. */
#ifndef FSI_CORE_DENSE_H
#define FSI_CORE_DENSE_H

#include "flashsketch.h"

struct fsi_host; /* backend.h */

enum { FSI_DENSE_MARKS = 4 };

typedef struct fsi_dense {
    /* Opens the libraries, with room for potrf and eigen of n x n matrices and svd of m x p ones, p <= m.  `backend` is
     * the backend's own state. */
    fs_result (*open)(void **handle, void *backend, const struct fsi_host *host, int64_t n, int64_t m, int64_t p);
    void (*close)(void *handle);
    size_t (*bytes)(const void *handle); /* what open took */
    fs_result (*alloc)(void *handle, size_t bytes, void **memory);
    void (*release)(void *handle, void *memory);

    /* to[j + i ld] = from(i, j); `from` is a view in the backend's memory, of any type, its offset folded in. */
    fs_result (*widen)(void *handle, const fs_matrix *from, double *to, int64_t ld);
    /* to[j + i ld] = from(i, order[j]); order is in the backend's memory, a number for each column of `from`. */
    fs_result (*widen_columns)(void *handle, const fs_matrix *from, const int64_t *order, double *to, int64_t ld);
    /* to(i, j) = from[j + i ld]; where `symmetric`, from's lower triangle is all there is. */
    fs_result (*narrow)(void *handle, const double *from, int64_t ld, int symmetric, const fs_matrix *to);
    fs_result (*fetch)(void *handle, const void *from, size_t bytes, void *host);
    fs_result (*send)(void *handle, const void *host, size_t bytes, void *to);

    fs_result (*zero)(void *handle, void *x, size_t bytes);
    /* Writes the diagonal of G into d (d NULL: nowhere), then adds `shift` to it. */
    fs_result (*diagonal)(void *handle, int64_t n, double *G, int64_t ld, double *d, double shift);
    /* Zeros on the diagonal of G become 1. */
    fs_result (*ones)(void *handle, int64_t n, double *G, int64_t ld);
    /* squares[i] = sum of x[j + i ld]^2 over j < n, for i < count. */
    fs_result (*squares)(void *handle, int64_t n, int64_t count, const double *x, int64_t ld, double *squares);
    /* B's row i times f[i]. */
    fs_result (*scale_rows)(void *handle, int64_t m, int64_t n, double *B, int64_t ld, const double *f);
    fs_result (*add)(void *handle, int64_t count, double a, const double *x, double *y); /* y += a x */
    fs_result (*norm)(void *handle, int64_t count, const double *x, double *norm);

    /* Lower triangle of G = X X' + beta G, X n x k. */
    fs_result (*syrk)(void *handle, int64_t n, int64_t k, const double *X, int64_t ldx, double beta, double *G,
                      int64_t ldg);
    /* C = alpha op(A) op(B) + beta C, C m x n, the sum over k; ta, tb: transposed? */
    fs_result (*gemm)(void *handle, int ta, int tb, int64_t m, int64_t n, int64_t k, double alpha, const double *A,
                      int64_t lda, const double *B, int64_t ldb, double beta, double *C, int64_t ldc);
    /* B = B op(L)^-1, B m x n, or (left) B = op(L)^-1 B with L m x m; L is a lower triangle. */
    fs_result (*trsm)(void *handle, int left, int transposed, int64_t m, int64_t n, const double *L, int64_t ldl,
                      double *B, int64_t ldb);
    /* Lower Cholesky factor in place; the next wait returns its result. */
    fs_result (*potrf)(void *handle, int64_t n, double *G, int64_t ld);
    /* All eigenvalues of a symmetric matrix given by its lower triangle, ascending, into host memory; spoils G. */
    fs_result (*eigen)(void *handle, int64_t n, double *G, int64_t ld, double *values);
    /* X = U diag(s) V', m x p with p <= m: X becomes U, Vt gets V' (p x p, packed), s (descending) goes to the host. */
    fs_result (*svd)(void *handle, int64_t m, int64_t p, double *X, int64_t ld, double *s, double *Vt);

    /* X = Q R, m x p with p <= m: L (p x p, lower, packed, zeros above) gets R', its diagonal not negative; spoils X. */
    fs_result (*qr)(void *handle, int64_t m, int64_t p, double *X, int64_t ld, double *L);

    /* Products with rows of A, a view in the backend's memory of any type and layout, its offset folded in, or a sparse
     * matrix.  P is n x m, W n x m, both column-major and packed; U is m x rows, packed: U[c + i m].  B is rows x m, of
     * any type, in the backend's memory, its offset folded in; NULL: 0.
     * product: U = (A P)'.  normal: with U = A P - B, W += A'U and squares[c] += |column c of U|^2, in one read of A;
     * the order of sums depends on A's shape alone, not on threads.  With B, a backend may make the sums of an f64 A in
     * more than f64: they are the gradient that a solver ends with. */
    fs_result (*product)(void *handle, const fs_matrix *A, int64_t m, const double *P, double *U);
    fs_result (*normal)(void *handle, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B, double *W,
                        double *squares);
    fs_result (*product_sparse)(void *handle, const fs_sparse *A, int64_t m, const double *P, double *U);
    fs_result (*normal_sparse)(void *handle, const fs_sparse *A, int64_t m, const double *P, const fs_matrix *B,
                               double *W, double *squares);

    fs_result (*mark)(void *handle, int mark); /* notes the time, in the stream's order */
    /* Waits; *info is 0, or the column at which the last potrf broke down, from 1 on. */
    fs_result (*wait)(void *handle, int *info);
    double (*seconds)(void *handle, int from, int to); /* between two marks that a wait has passed */
} fsi_dense;

#endif
