/* svd.h - what the files of fs_svd and fs_pca share: their memory, and the reads of A.
 *
 * A_c is A, or for fs_pca A with the means of its columns subtracted: A_c = A - 1 mean'.  Small matrices are
 * column-major and packed; a row-major Y (k x n) is Yt (n x k) here.  The methods are in docs/solvers.md. */
#ifndef FSI_TASKS_SVD_H
#define FSI_TASKS_SVD_H

#include "tasks/operand.h"

enum { FSI_SVD_PROBES = 20, FSI_SVD_PARTS = 40 };

typedef struct fsi_svd {
    fsi_operand A;
    fs_svd_options options;
    const fs_matrix *U, *V; /* outputs; NULL: not wanted */
    double *s;
    int centred;
    int all;         /* all singular values: the basis has min(rows, n) columns and the error is known */
    int64_t r, l, k; /* singular values wanted, columns of the basis, rows of Y */
    int64_t panel;   /* rows of A that are widened at a time */
    fs_sketch *S;    /* k x rows; NULL: Y is A itself, k = rows */
    fs_sketch *T;    /* the probes, PROBES x rows, independent of S; NULL where all are asked for */

    /* the backend's memory */
    double *Yt, *Tt;            /* (S A_c)' n x k, (T A_c)' n x PROBES */
    double *Ct;                 /* one read: (S A_c Omega)', l x k */
    double *P, *Q;              /* n x l: the basis (one read: Omega), and room for another */
    double *W, *Vt;             /* room for max(k, PROBES) x n, and for min(n, k) x min(n, k) */
    double *G, *E, *M, *R, *Vr; /* l x l */
    double *mean, *at, *sums;   /* n: means; the row that is subtracted in the first read; sums of A - 1 at' */
    double *ones;               /* max(panel, 1) */
    double *S1, *T1;            /* S 1, T 1 of this caller's rows */
    double *small;              /* 2 l, and PROBES x PROBES */
    double *rows;               /* n x panel */
    double *X, *O;              /* l x x_rows each */
    int64_t x_rows;
    double *kept; /* l x d: (A_c P)'; NULL: not kept */

    /* the host's */
    double *D;            /* min(n, k): singular values of Y, then of Y P */
    double *host;         /* room for 2 l (l + 1), 2 n, and PROBES x PROBES */
    double *V_host;       /* n x r */
    double *O_host;       /* outputs that are copied to the host: r x o_rows */
    double *total;        /* n: sums of columns of sparse slices */
    int64_t sparse_rows;  /* of this caller */
    double sparse_square; /* of sparse slices */
    int64_t o_rows;
    double square;         /* |A - 1 at'|_F^2 of this caller's dense rows */
    int64_t t;             /* directions of the basis that are not 0 */
    double norm, raw_norm; /* |A_c|_F, |A|_F */
    double error, low, high;

    void *parts[FSI_SVD_PARTS], *host_parts[FSI_SVD_PARTS];
    int part_count, host_part_count;
} fsi_svd;

/* Memory that fsi_svd_end frees. */
fs_result fsi_svd_take(fsi_svd *t, int64_t count, double **memory);
fs_result fsi_svd_take_host(fsi_svd *t, int64_t count, double **memory);

/* svd_reads.c ------------------------------------------------------------------------------------------------- */

/* The first read: Yt, Tt, mean, norm; where `Omega` (l columns) is given also Ct, and (A_c Omega)' in kept or, where
 * that is NULL, its Gram matrix in G. */
fs_result fsi_svd_first_read(fsi_svd *t, const double *Omega);

/* The function that a pass calls with X = (A_c B)', m x rows, of some rows of A in order; row0 counts from this
 * caller's first. */
typedef fs_result (*fsi_svd_use)(fsi_svd *t, int64_t m, int64_t row0, int64_t rows, double *X);

/* One read of A: uses (A_c B)' slice by slice, B n x m with m <= l. */
fs_result fsi_svd_product(fsi_svd *t, int64_t m, const double *B, fsi_svd_use use);

/* The same of kept in place of A: uses B' kept, B l x m. */
fs_result fsi_svd_kept(fsi_svd *t, int64_t m, const double *B, fsi_svd_use use);

/* Q = A_c'(A_c P), n x l.  One read. */
fs_result fsi_svd_normal(fsi_svd *t);

/* C -= x y', C m x n packed columns. */
fs_result fsi_svd_rank_one(fsi_svd *t, int64_t m, int64_t n, const double *x, const double *y, double *C);

/* svd_range.c, svd_nystrom.c, svd_error.c --------------------------------------------------------------------- */

/* The methods: s, U and V. */
fs_result fsi_svd_range(fsi_svd *t);
fs_result fsi_svd_nystrom(fsi_svd *t);

/* V, n x r in W, gets the header's signs there and in V_host, and goes to the caller; sign[j] is what column j was
 * multiplied by. */
fs_result fsi_svd_put_v(fsi_svd *t, double *sign);

/* Rows of U: U' = Z X, Z r x m in M; for fsi_svd_product and fsi_svd_kept. */
fs_result fsi_svd_put_u(fsi_svd *t, int64_t m, int64_t row0, int64_t rows, double *X);
/* U = 0. */
fs_result fsi_svd_zero_u(fsi_svd *t);

/* G += X X'; for fsi_svd_product and fsi_svd_kept. */
fs_result fsi_svd_gram(fsi_svd *t, int64_t m, int64_t row0, int64_t rows, double *X);

/* The error and its interval, where U diag(s) V' = A_c V V'; V is in W. */
fs_result fsi_svd_range_error(fsi_svd *t);
/* The same from (T (A_c - U diag(s) V'))', n x PROBES, in Tt. */
fs_result fsi_svd_probe_error(fsi_svd *t);

#endif
