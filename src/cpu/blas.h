/* blas.h - OpenBLAS, opened at run time, here and nowhere else. */
#ifndef FSI_CPU_BLAS_H
#define FSI_CPU_BLAS_H

#include "flashsketch_extend.h"

/* The functions used; NULL: this OpenBLAS does not have it. */
typedef struct fsi_blas {
    void *library; /* dlopen's handle, NULL if there is none */
    void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
    void (*dgemm)(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *,
                  int);
    void (*dsyrk)(int, int, int, int, int, double, const double *, int, double, double *, int);
    void (*dtrsm)(int, int, int, int, int, int, int, double, const double *, int, double *, int);
    double (*dnrm2)(int, const double *, int);
    /* LAPACK by its Fortran names, which every build of OpenBLAS has, LAPACKE or not. */
    void (*dpotrf)(const char *, const int *, double *, const int *, int *);
    void (*dsyevd)(const char *, const char *, const int *, double *, const int *, double *, double *, const int *,
                   int *, const int *, int *);
    void (*dgesdd)(const char *, const int *, const int *, double *, const int *, double *, double *, const int *,
                   double *, const int *, double *, const int *, int *, int *);
    void (*dgeqrf)(const int *, const int *, double *, const int *, double *, double *, const int *, int *);
} fsi_blas;

/* CBLAS's constants. */
enum {
    BLAS_ROWS = 101,
    BLAS_COLUMNS = 102,
    BLAS_PLAIN = 111,
    BLAS_TRANSPOSED = 112,
    BLAS_LOWER = 122,
    BLAS_NON_UNIT = 131,
    BLAS_LEFT = 141,
    BLAS_RIGHT = 142
};

/* The OpenBLAS of this process, in *blas.  The first call that succeeds opens it.  It is never closed, because closing
 * it ends its threads, which other contexts may use.  Otherwise *blas is NULL and the message is kept by `fail`:
 * FS_EBACKEND with the loader's message, or FS_ENOMEM with the bytes or threads that OpenBLAS needs.  A later call
 * tries again. */
fs_result fsi_blas_open(const fsi_blas **blas, fs_result (*fail)(fs_result code, const char *format, ...));

#endif
