/* basis.h - an orthonormal basis of the range of A as triangular factors: Q = A(:, J) L1'^-1 L2'^-1.
 *
 * L1 is the factor of the sketch, L2 the Cholesky factor of the Gram matrix of A(:, J) L1'^-1, which is well conditioned
 * whatever A is.  Q itself is not stored. */
#ifndef FSI_TASKS_BASIS_H
#define FSI_TASKS_BASIS_H

#include "tasks/rows.h"

/* The reaction to columns of A that are dependent to rounding. */
typedef enum fsi_pivoting {
    FSI_PIVOT_NEVER,     /* fail with the rank */
    FSI_PIVOT_DEPENDENT, /* pivot */
    FSI_PIVOT_ALWAYS
} fsi_pivoting;

typedef struct fsi_basis {
    fsi_operand *A;
    fsi_rows rows;
    int64_t k;        /* rows of S; 0: A itself was factored */
    int64_t r;        /* the rank: columns of Q */
    int64_t *pivots;  /* n numbers in host memory; NULL: no pivots, r = n */
    double *L1, *L2;  /* r x r, columns n apart, in the backend's memory; zeros above */
    double *G;        /* n x n: room; L1 L2 after fsi_basis_orthogonalize */
    double *N;        /* n x n: the inverse by which panels are divided; NULL: by substitutions */
    double *spare;    /* as large as rows.Z: the panel times N */
    double scaled;    /* the condition of L1 with rows of length 1: that of A with columns of length 1 */
    double condition; /* of L1 L2 */
    int is_final;     /* A L1'^-1 is orthonormal to the rounding of A's type, L2 = I */
    double *host;     /* room for n x n and 3 n in host memory */
    double *W;        /* r x (n - r): Q' times the other columns of A; NULL: there are none */
} fsi_basis;

typedef struct fsi_basis_options {
    fsi_pivoting pivoting;
    double rcond;
    const fs_sketch *sketch; /* NULL: own, of `times` n + 16 rows */
    double times;
    uint64_t seed;
    int may_square; /* L1 may be the factor of A'A in f64, which is exact enough for an f32 A of moderate condition */
} fsi_basis_options;

/* L1, pivots and rank: one read of A, or two of a sparse one whose rows are fewer than S's.  To be closed, also after a
 * failure. */
fs_result fsi_basis_sketch(fsi_basis *b, fsi_operand *A, const fsi_basis_options *options);

/* L2, W, G and the condition: one read of A, and another for each time that the sketch was not good enough; none where
 * L1 is final. */
fs_result fsi_basis_orthogonalize(fsi_basis *b);

/* The panel of rows.Z becomes rows of Q, r of its n numbers in each column; rows.Z may be other memory afterwards. */
fs_result fsi_basis_divide(fsi_basis *b, int64_t rows);

/* R' of A(:, J) = Q R into host, n x n packed: rows of R from r on 0. */
fs_result fsi_basis_triangle(fsi_basis *b);

/* Fails with the rank that A has by the triangle T, n x n in the backend's memory. */
fs_result fsi_basis_dependent(fsi_basis *b, const double *T);

void fsi_basis_close(fsi_basis *b);

#endif
