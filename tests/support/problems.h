/* problems.h - shared by the tests of tasks: problems with a known condition number, and LAPACK in double as the
 * reference. */
#ifndef FSI_TESTS_SUPPORT_PROBLEMS_H
#define FSI_TESTS_SUPPORT_PROBLEMS_H

#include <flashsketch_tasks.h>

#include "support.h"

/* A X ~ B.  A = U diag(s) V' with s from 1 down to 1 / condition and B = A X0 + noise |A X0| e, |e| = 1: f32 or f64,
 * packed rows, in host memory. */
typedef struct problem {
    int64_t d, n, rhs;
    fs_matrix A, B;
} problem;
problem problem_make(int64_t d, int64_t n, int64_t rhs, fs_dtype dtype, double condition, double noise, uint64_t seed);
/* The same in f64 with noise orthogonal to A's range, so that X does not grow with the condition. */
problem problem_make_orthogonal(int64_t d, int64_t n, double condition, double noise, uint64_t seed);
void problem_free(problem *p);

/* The context, workspace and sketch of a test; rows k, dtype that of the problem's sums. */
typedef struct bench {
    fs_context *ctx;
    fs_workspace *w;
    fs_sketch *S;
} bench;
bench bench_open(const problem *p, int64_t k, uint64_t seed, int64_t basis);
void bench_close(bench *b);

/* A packed, row-major copy in double. */
double *doubles_of(const fs_matrix *m);

/* |A X - B|_F in double. */
double residual_norm(const fs_matrix *A, const fs_matrix *X, const fs_matrix *B);
double norm_of(const fs_matrix *m);

/* LAPACK's answers in double, of row-major matrices.  X (n x rhs) minimises |Y X - C|, the shortest where there are
 * many, singular values below rcond times the largest taken as 0; returns the rank. */
int64_t lapack_solve(int64_t k, int64_t n, int64_t rhs, const double *Y, const double *C, double rcond, double *X);
/* X minimises |Y X - C|^2 + lambda |X|^2. */
void lapack_ridge(int64_t k, int64_t n, int64_t rhs, const double *Y, const double *C, double lambda, double *X);
/* Singular values of a rows x cols matrix, descending; values has room for the smaller number. */
void lapack_singular_values(int64_t rows, int64_t cols, const double *A, double *values);
/* A = Q R (dgeqrf), or A(:, pivots) = Q R (dgeqp3) where pivots is not NULL; R's diagonal is not negative.  d x n, n x n. */
void lapack_qr(int64_t d, int64_t n, const double *A, int64_t *pivots, double *Q, double *R);

/* The values, and the right singular vectors as the columns of V: cols x min(rows, cols), row-major. */
void lapack_singular_vectors(int64_t rows, int64_t cols, const double *A, double *values, double *V);
/* lapack_solve in f32: its matrices rounded, then sgelsd. */
void lapack_solve_f32(int64_t k, int64_t n, int64_t rhs, const double *Y, const double *C, double rcond, double *X);

/* The backward error of x (n numbers) for min |A x - b|: the least |[dA, theta db]|_F, theta = |A|_F / |b|, over |A|_F,
 * such that x is the answer for A + dA and b + db, by LAPACK's singular values of A.  Residuals are in long double. */
double backward_error(int64_t d, int64_t n, const double *A, const double *b, const double *x);

/* Fails the test unless value <= bound. */
void expect_at_most(const char *what, double value, double bound);

/* Ends the program as skipped where there is no OpenBLAS; otherwise with cmocka's result. */
#define RUN_TASK_TESTS(tests) (need_openblas(), cmocka_run_group_tests((tests), NULL, NULL))
void need_openblas(void);

#endif
