/* lstsq.h - what the steps of fs_lstsq share: the problem, its preconditioner, vectors of n x rhs numbers.
 *
 * The preconditioner N makes A N nearly orthonormal.  It is R^-1 (R the triangular factor of S A, of A itself, or of
 * A'A) or, where columns are dependent, V diag(1 / s) of the r singular values that count, n x r.  Vectors are packed
 * columns in host memory: they are small beside A, and every read of A waits for the last one anyway. */
#ifndef FSI_TASKS_LSTSQ_H
#define FSI_TASKS_LSTSQ_H

#include "tasks/operand.h"

typedef struct fsi_lstsq {
    fsi_operand A;
    fs_lstsq_options o;    /* defaults resolved */
    fs_lstsq_report told;  /* the report so far */
    fs_matrix B;           /* this caller's rows, in the backend's memory */
    void *B_copy;          /* a copy of B in the backend's memory; NULL: B is the caller's */
    int64_t n, m;          /* columns of A, right-hand sides */
    int64_t rank;          /* columns of N */
    double *L;             /* R', n x n; in the backend's memory, as all fields until `host` */
    double *N;             /* V, n x rank; NULL: N = R^-1 */
    double *inverse;       /* L^-1, n x n, where N = R^-1 and products with it are as good as substitutions; or NULL */
    double *normal;        /* D^-1 L L'D^-1, n x n, lower, and n numbers: 1 / D; made with D = diag(values) */
    double *P, *W;         /* n x m: arguments and results of a read of A */
    double *S;             /* n x m: N p */
    double *squares;       /* m, behind W */
    double *host;          /* all vectors below, in host memory */
    double *values;        /* n: s, the singular values of R, where V is used; otherwise the lengths of A's columns */
    double *x, *g;         /* n x m: the solution and A'(b - A x) - lambda x */
    double *z, *s, *p, *q; /* n x m: the correction in the coordinates of N, conjugate gradients' vectors */
    double *residuals, *b_norms, *errors; /* m each */
    double *scratch;                      /* 2 n m + 2 m + n */
    double norm;                          /* |A|_F, estimated by the sketch until the factor is refined */
    int has_start;                        /* x is the solution of the sketched problem */
    int is_refined;                       /* the factor is that of A itself, not of a sketch */
    double contraction;                   /* the factor of the error that an iteration is expected to leave */
} fsi_lstsq;

/* |A|_F and |b| are 0 or between this and its reciprocal: their squares are f64 numbers, with room for factors. */
#define FSI_LSTSQ_LARGEST 1e140

/* lstsq_factor.c: the preconditioner.  Sets L, N, rank, norm, contraction and told.condition. */
fs_result fsi_lstsq_factor(fsi_lstsq *l);
/* y = N v, and v = N'y: m columns of n (y) and rank (v) packed numbers in host memory; y and v may be the same. */
fs_result fsi_lstsq_from_coordinates(fsi_lstsq *l, const double *v, double *y);
fs_result fsi_lstsq_to_coordinates(fsi_lstsq *l, const double *y, double *v);
/* q = N'(A'A + lambda) N p: m columns of rank packed numbers in host memory.  One read. */
fs_result fsi_lstsq_normal(fsi_lstsq *l, const double *p, double *q);
/* Whether |A|_F is finite and its square an f64 number. */
fs_result fsi_lstsq_check_norm(const fsi_lstsq *l);

/* lstsq_error.c */
/* |(A'A + shift_c^2 D^2)^-1/2 g_c| for each right-hand side, A's singular values being the factor's; at most twice that
 * where several right-hand sides share a factorization.  D = diag(values), or where V is used I.  An infinite shift
 * gives 0; spoils shifts. */
fs_result fsi_lstsq_shifted_norms(fsi_lstsq *l, double *shifts, const double *g, double *norms);
/* values = the lengths of A's columns, from the factor, and `normal`.  Only where V is not used. */
fs_result fsi_lstsq_measure_columns(fsi_lstsq *l);

/* lstsq_refine.c: replaces the factor by that of A itself, unless A N is singular to rounding.  One read. */
fs_result fsi_lstsq_refine(fsi_lstsq *l);

/* lstsq_iterate.c: X by conjugate gradients with restarts, in l->x. */
fs_result fsi_lstsq_iterate(fsi_lstsq *l);

/* lstsq_direct.c: the preconditioner where A has fewer rows than columns. */
fs_result fsi_lstsq_factor_wide(fsi_lstsq *l);
/* All rows of A, `rows` x n, in f64 and in every rank: columns of A' `ld` apart, to[j + i ld].  One read. */
fs_result fsi_lstsq_whole(fsi_lstsq *l, double *to, int64_t ld);

/* Seconds of a clock that never goes back. */
double fsi_lstsq_clock(void);

#endif
