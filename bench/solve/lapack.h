/* lapack.h - OpenBLAS's LAPACK, opened at run time, in f32 and f64 behind one table: reals are void pointers. */
#ifndef FSI_BENCH_SOLVE_LAPACK_H
#define FSI_BENCH_SOLVE_LAPACK_H

/* Fortran's calling convention; matrices by columns. */
typedef struct lapack_functions {
    void (*gemm)(const char *ta, const char *tb, const int *m, const int *n, const int *k, const void *alpha,
                 const void *A, const int *lda, const void *B, const int *ldb, const void *beta, void *C,
                 const int *ldc);
    void (*gemv)(const char *trans, const int *m, const int *n, const void *alpha, const void *A, const int *lda,
                 const void *x, const int *incx, const void *beta, void *y, const int *incy);
    void (*syrk)(const char *uplo, const char *trans, const int *n, const int *k, const void *alpha, const void *A,
                 const int *lda, const void *beta, void *C, const int *ldc);
    void (*trsm)(const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,
                 const void *alpha, const void *A, const int *lda, void *B, const int *ldb);
    void (*potrf)(const char *uplo, const int *n, void *A, const int *lda, int *info);
    void (*potrs)(const char *uplo, const int *n, const int *rhs, const void *A, const int *lda, void *B,
                  const int *ldb, int *info);
    void (*geqrf)(const int *m, const int *n, void *A, const int *lda, void *tau, void *work, const int *lwork,
                  int *info);
    void (*orgqr)(const int *m, const int *n, const int *k, void *A, const int *lda, const void *tau, void *work,
                  const int *lwork, int *info);
    void (*geqp3)(const int *m, const int *n, void *A, const int *lda, int *pivots, void *tau, void *work,
                  const int *lwork, int *info);
    void (*gels)(const char *trans, const int *m, const int *n, const int *rhs, void *A, const int *lda, void *B,
                 const int *ldb, void *work, const int *lwork, int *info);
    void (*gelsd)(const int *m, const int *n, const int *rhs, void *A, const int *lda, void *B, const int *ldb, void *s,
                  const void *rcond, int *rank, void *work, const int *lwork, int *iwork, int *info);
    void (*gelsy)(const int *m, const int *n, const int *rhs, void *A, const int *lda, void *B, const int *ldb,
                  int *pivots, const void *rcond, int *rank, void *work, const int *lwork, int *info);
    void (*gesdd)(const char *job, const int *m, const int *n, void *A, const int *lda, void *s, void *U,
                  const int *ldu, void *Vt, const int *ldvt, void *work, const int *lwork, int *iwork, int *info);
    void (*syevd)(const char *job, const char *uplo, const int *n, void *A, const int *lda, void *values, void *work,
                  const int *lwork, int *iwork, const int *liwork, int *info);
    void (*sterf)(const int *n, void *diagonal, void *beside, int *info);
} lapack_functions;

typedef struct lapack {
    void *library; /* dlopen's handle */
    lapack_functions f32, f64;
} lapack;

/* Opens OpenBLAS with this many threads.  0, or 1 after printing an error message; close it all the same. */
int lapack_open(lapack *l, int threads);
void lapack_close(lapack *l);

#endif
