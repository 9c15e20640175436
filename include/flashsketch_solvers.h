/* flashsketch_solvers.h - answers to full accuracy: least squares, QR, SVD, PCA and leverage scores of a tall matrix.
 *
 * A sketch alone gives an approximate answer.  These functions use it as a preconditioner: with R of the sketch S A, A
 * R^-1 is nearly orthonormal whatever the condition of A, so that a few reads of A give the accuracy of LAPACK.
 * flashsketch_tasks.h includes this header.
 *
 *     fs_operand A = FS_OPERAND_INIT;                    A.dense = &matrix;
 *     fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
 *     fs_lstsq(ctx, &A, &b, NULL, &x, &report);          x minimises |A x - b|, as LAPACK's gelsd
 *
 * A is d x n, B is d x rhs, X is n x rhs.  All sums and factorizations are in f64, whatever the type of A. Every
 * function waits: its results are ready on return.  The same call, threads and devices give the same bits.  Options may
 * be NULL, which means their INIT macro; reports may be NULL.  The linear algebra is opened as flashsketch_tasks.h
 * describes, with the same failures. */
#ifndef FLASHSKETCH_SOLVERS_H
#define FLASHSKETCH_SOLVERS_H

#include "flashsketch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* progress --------------------------------------------------------------------------------------------------- */

/* Called from time to time by long operations, with the share that is done; NULL: not called. */
typedef struct fs_progress {
    void (*at)(void *user, double share, const char *doing);
    void *user;
} fs_progress;

/* the matrix ------------------------------------------------------------------------------------------------- */

/* A matrix that arrives in slices of rows, in order, once for each read of A.  Start from FS_SLICES_INIT. */
typedef struct fs_slices {
    size_t size;                     /* sizeof(fs_slices): set by FS_SLICES_INIT */
    int64_t rows, cols;              /* of A */
    fs_dtype dtype;                  /* of A */
    fs_result (*rewind)(void *user); /* begins a read of A at its first row; called before each read, including the
                                      * first */
    fs_result (*next)(void *user, fs_matrix *dense, const fs_sparse **sparse);
    /* the next rows of A: writes a view (host memory, or the context's) of at least one row that stays valid until the
     * next call of either function; or, for sparse rows, sets *sparse to a CSR or CSC matrix in host memory and leaves
     * *dense unchanged.  A failure ends the solver, which returns it; fs_fail keeps the message */
    void *user; /* passed to both */
} fs_slices;
#define FS_SLICES_INIT \
    { \
        sizeof(fs_slices), 0, 0, FS_UNSET(fs_dtype), NULL, NULL, NULL \
    }

/* The matrix A of a solver: exactly one of its pointers is set.  Start from FS_OPERAND_INIT. */
typedef struct fs_operand {
    size_t size;             /* sizeof(fs_operand): set by FS_OPERAND_INIT */
    const fs_matrix *dense;  /* any type, layout and memory space that fs_apply accepts */
    const fs_sparse *sparse; /* CSR or CSC, f32 or f64, in the context's memory */
    const fs_slices *slices;
} fs_operand;
#define FS_OPERAND_INIT \
    { \
        sizeof(fs_operand), NULL, NULL, NULL \
    }

/* One matrix whose rows are spread over several callers (MPI ranks, one thread for each GPU), each of which makes the
 * same call with its own rows, or none, and gets the same result, to the bit, on any processor.  Every row belongs to
 * one caller. fs_mpi_ranks (flashsketch_mpi.h) and fs_multi_run fill it in.  Start from FS_RANKS_INIT. */
typedef struct fs_ranks {
    size_t size;  /* sizeof(fs_ranks): set by FS_RANKS_INIT */
    int64_t row0; /* the number of this caller's first row in A */
    int64_t rows; /* of all of A */
    fs_result (*sum)(void *user, double *values, int64_t count, int failed);
    /* replaces values[i] by its sum over all callers, the same bits for each; host memory.  All callers make the same
     * calls, the last with count 0.  failed: 0, or the fs_result of this caller's failure, which fs_error_message()
     * explains, with values NULL and count 0.  Where any has failed, or counts differ, every caller's call returns a
     * failure, which the solver returns */
    void *user;
} fs_ranks;
#define FS_RANKS_INIT \
    { \
        sizeof(fs_ranks), 0, 0, NULL, NULL \
    }

/* Calls `call` once for each context of `multi` (fs_multi_create), all at the same time, each in a thread of its own, the
 * first in the caller's, with the fs_ranks that its solvers get: solvers on a matrix whose rows are spread over several
 * GPUs or CPU contexts of one process.  row0[i] and rows[i] are the rows of A that contexts[i] has; each row is in one of
 * them, and a context may have none.
 *
 *     static fs_result solve(void *user, int i, fs_context *ctx, const fs_ranks *ranks)
 *     {
 *         struct work *w = user;                               each call has an X of its own
 *         fs_lstsq_options options = FS_LSTSQ_INIT;
 *         options.ranks = ranks;
 *         return fs_lstsq(ctx, &w->A[i], &w->B[i], &options, &w->X[i], NULL);
 *     }
 *     fs_multi_run(multi, row0, rows, solve, &work);
 *
 * Sums are in the order of contexts, so every run gives the same bits.  All calls must make the same solver calls in
 * the same order.  Where one fails, in a solver or in the function itself, all that wait for it fail with its code and
 * message, and so does fs_multi_run: "contexts[2]: ...". FS_ENOMEM: the system cannot create a thread for each context;
 * then nothing was called.  An fs_multi runs one call at a time. */
FS_API FS_NODISCARD fs_result fs_multi_run(fs_multi *multi, const int64_t *row0, const int64_t *rows,
                                           fs_result (*call)(void *user, int index, fs_context *ctx,
                                                             const fs_ranks *ranks),
                                           void *user);

/* least squares ---------------------------------------------------------------------------------------------- */

/* How fs_lstsq solves. */
typedef enum fs_lstsq_method {
    FS_LSTSQ_AUTO = 0,    /* chosen by shape and condition; the report names it */
    FS_LSTSQ_ITERATE = 1, /* preconditioned conjugate gradients: one read of A an iteration */
    FS_LSTSQ_NORMAL = 2,  /* A'A by BLAS-3 and its Cholesky factor as preconditioner; for dense A of a condition up to
                           * 1e6, beyond which ITERATE takes over */
    FS_LSTSQ_DIRECT = 3   /* a copy of A in f64 and its own factor, no sketch: small A, d < n */
} fs_lstsq_method;

/* Options of fs_lstsq.  Start from FS_LSTSQ_INIT. */
typedef struct fs_lstsq_options {
    size_t size;             /* sizeof(fs_lstsq_options): set by FS_LSTSQ_INIT */
    double lambda;           /* minimise |A X - B|^2 + lambda |X|^2; at least 0 */
    double rcond;            /* singular values up to rcond times the largest count as 0, as in LAPACK's gelsd; 0:
                               max(8, sqrt(n)) times the machine precision of A's type (2^-23, 2^-52) */
    double tolerance;        /* stop at this backward error; 0: 2^-52 for f64, 2^-27 for other types */
    int64_t max_iterations;  /* 0: 200 */
    fs_lstsq_method method;  /* 0: chosen */
    const fs_sketch *sketch; /* S of d columns and at least n rows; NULL: the solver's own (docs/solvers.md) */
    uint64_t seed;           /* of the solver's own S */
    int measure_error;       /* 1: also the backward error by singular values of A itself: one or two more reads of A */
    const fs_ranks *ranks;   /* NULL: A is whole */
    const fs_progress *progress;
} fs_lstsq_options;
#define FS_LSTSQ_INIT \
    { \
        sizeof(fs_lstsq_options), 0, 0, 0, 0, FS_LSTSQ_AUTO, NULL, 0, 0, NULL, NULL \
    }

/* The report of fs_lstsq; norms are Frobenius norms over all right-hand sides. */
typedef struct fs_lstsq_report {
    size_t size;
    fs_lstsq_method method;
    int64_t k;                  /* rows of S; 0: no sketch */
    int64_t rank;               /* of A, by rcond */
    double condition;           /* largest over smallest singular value that counts, estimated by the factor */
    int64_t iterations;         /* of the slowest right-hand side */
    int64_t reads;              /* of A, the sketch included */
    int converged;              /* 1: the tolerance was reached; 0: rounding or max_iterations ended the iteration
                                 * before */
    double backward_error;      /* the largest of all right-hand sides, estimated by the factor (see fs_lstsq) */
    double true_backward_error; /* the same by singular values of A (options.measure_error); NaN: not requested, or A's
                                 * singular values are below rounding */
    double residual;            /* |A X - B| */
    double solution;            /* |X| */
    double seconds, sketch_seconds;
    char note[320]; /* a warning about this solution; "": none */
} fs_lstsq_report;
#define FS_LSTSQ_REPORT_INIT \
    { \
        sizeof(fs_lstsq_report), FS_UNSET(fs_lstsq_method), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "" \
    }

/* X minimises |A X - B|^2 + lambda |X|^2, to the accuracy that LAPACK gives in A's type (f32 for f16 and bf16).  Where
 * that has many solutions, as with dependent columns or d < n, X is the shortest.
 *
 * B is d x rhs in the memory of the context or the host's, of any type; with ranks, this caller's rows.  X is n x rhs,
 * of any type and layout, in the context's memory or the host's.  Sketches A once, factors the sketch, and then reads A
 * once in each iteration, for all right-hand sides together; docs/solvers.md has the method.
 *
 * The backward error is the least change of A and b that makes X exact: of each column relative to its length, of b
 * relative to |b|, together relative to the square root of n (Karlson and Walden's estimate).  Where columns are
 * dependent, changes of A are relative to |A|_F.
 *
 * FS_EINVAL: an element of A or B is not finite, or an option is invalid; X is unchanged.  The same where |A|_F or a
 * column of B is not 0 and not between 1e-140 and 1e140, since squares then over- or underflow: scale it.  FS_ENOMEM:
 * with the bytes.  A tolerance that cannot be reached is not an error: the report shows it. */
FS_API FS_NODISCARD fs_result fs_lstsq(fs_context *ctx, const fs_operand *A, const fs_matrix *B,
                                       const fs_lstsq_options *options, const fs_matrix *X, fs_lstsq_report *report);

/* QR --------------------------------------------------------------------------------------------------------- */

/* Options of fs_qr.  Start from FS_QR_INIT. */
typedef struct fs_qr_options {
    size_t size;             /* sizeof(fs_qr_options): set by FS_QR_INIT */
    int pivot;               /* 1: column pivots and a numerical rank (CQRRPT) */
    double rcond;            /* pivot: |R_ii| up to rcond |R_00| counts as 0; 0: as in fs_lstsq_options */
    const fs_sketch *sketch; /* as in fs_lstsq_options */
    uint64_t seed;
    const fs_ranks *ranks;
    const fs_progress *progress;
} fs_qr_options;
#define FS_QR_INIT \
    { \
        sizeof(fs_qr_options), 0, 0, NULL, 0, NULL, NULL \
    }

/* The report of fs_qr. */
typedef struct fs_qr_report {
    size_t size;
    int64_t k;            /* rows of S; 0: no sketch */
    int64_t rank;         /* by rcond; without pivots n, or less where columns are dependent to rounding */
    double condition;     /* of A, estimated from R */
    double orthogonality; /* |Q'Q - I|_F, measured in f64 before Q is rounded */
    int64_t reads;        /* of A or Q */
    double seconds;
} fs_qr_report;
#define FS_QR_REPORT_INIT \
    { \
        sizeof(fs_qr_report), 0, 0, 0, 0, 0, 0 \
    }

/* A = Q R, or A(:, pivots) = Q R: Q is d x n with orthonormal columns, R n x n, upper triangular, its diagonal not
 * negative.  Orthogonal to rounding for condition numbers up to 1 / u, u the rounding unit of A's type.
 *
 * Q NULL: R alone.  Q may be A's own memory, the same view: A is replaced.  With ranks Q has this caller's rows.
 * pivots: n numbers in host memory, a permutation of 0 ... n - 1; NULL if and only if options.pivot is 0.  With pivots
 * and rank r < n the first r columns of Q are the basis, the others 0, and rows of R from r on 0.
 *
 * d >= n.  FS_EINVAL: an element is not finite; without pivots, A's columns are dependent to rounding: the message
 * gives their rank and advises pivots.  After a failure Q is undefined. */
FS_API FS_NODISCARD fs_result fs_qr(fs_context *ctx, const fs_operand *A, const fs_qr_options *options,
                                    const fs_matrix *Q, const fs_matrix *R, int64_t *pivots, fs_qr_report *report);

/* singular values and principal components ---------------------------------------------------------------------- */

/* Options of fs_svd and fs_pca.  Start from FS_SVD_INIT. */
typedef struct fs_svd_options {
    size_t size;          /* sizeof(fs_svd_options): set by FS_SVD_INIT */
    int64_t rank;         /* singular values wanted, r; 0: all min(d, n), by QR */
    int64_t oversampling; /* columns of the range beyond r; 0: max(10, r / 2), with one_read max(10, 2 r) */
    int power_steps;      /* 0, 1, 2, ...: each reads A once more and improves the result for slowly falling spectra;
                           * -1: 2 */
    int one_read;         /* 1: a single read of A (generalised Nystrom); power_steps must be 0 or -1 */
    uint64_t seed;
    const fs_ranks *ranks;
    const fs_progress *progress;
} fs_svd_options;
#define FS_SVD_INIT \
    { \
        sizeof(fs_svd_options), 0, 0, -1, 0, 0, NULL, NULL \
    }

/* The report of fs_svd and fs_pca. */
typedef struct fs_svd_report {
    size_t size;
    int64_t rank;     /* r, of s, U and V */
    int64_t sketch;   /* columns of the range: r + oversampling; 0: all singular values, by QR */
    int64_t reads;    /* of A */
    double norm;      /* |A|_F (of the centred A for fs_pca) */
    double error;     /* |A - U diag(s) V'|_F, an estimate by a small sketch of its own; exact where all singular values
                       are requested */
    double low, high; /* the error lies between them in `confidence` of all draws */
    double confidence; /* 0.99 */
    double seconds;
} fs_svd_report;
#define FS_SVD_REPORT_INIT \
    { \
        sizeof(fs_svd_report), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* A ~ U diag(s) V': the r largest singular values, descending, in s (host memory, r of them), U d x r and V n x r with
 * orthonormal columns, of any type, in the context's memory or the host's; U, V may be NULL.  With ranks U has this
 * caller's rows.  A may be wide or tall.  The sign of a pair of vectors is fixed: the entry of V of largest magnitude is
 * positive.
 *
 * A singular value that is 0 to rounding, up to max(n, 16) 2^-52 times the largest, is 0, and its column of U is 0; V
 * is still orthonormal.  With one_read and U NULL the limit is 1e-7 times the largest, because the Gram matrix of A's
 * products loses smaller values.  With a rank and U, (r + oversampling) d numbers in f64 are kept; where
 * r + oversampling reaches min(d, n), all singular values are computed.  Where the error is not small beside |A|_F, it
 * is computed from |A|_F and s, with low and high close to it; otherwise, and with one_read, it is estimated.
 *
 * FS_EINVAL: an element is not finite, or above 1e150; rank above min(d, n).  After a failure U, s and V are
 * undefined. */
FS_API FS_NODISCARD fs_result fs_svd(fs_context *ctx, const fs_operand *A, const fs_svd_options *options,
                                     const fs_matrix *U, double *s, const fs_matrix *V, fs_svd_report *report);

/* The same of A with the mean of each column subtracted, without a copy of A: mean (host memory, n numbers, may be
 * NULL), U diag(s) the scores, V the components, s[i]^2 / (d - 1) the explained variances. */
FS_API FS_NODISCARD fs_result fs_pca(fs_context *ctx, const fs_operand *A, const fs_svd_options *options, double *mean,
                                     const fs_matrix *U, double *s, const fs_matrix *V, fs_svd_report *report);

/* leverage scores ----------------------------------------------------------------------------------------------- */

/* Options of fs_leverage.  Start from FS_LEVERAGE_INIT. */
typedef struct fs_leverage_options {
    size_t size;             /* sizeof(fs_leverage_options): set by FS_LEVERAGE_INIT */
    int exact;               /* 1: row norms of an orthonormal basis; 0: estimated, by two reads of A */
    double error;            /* estimated: the relative standard deviation wanted; 0: 0.1 */
    double rcond;            /* as in fs_qr_options */
    const fs_sketch *sketch; /* as in fs_lstsq_options */
    uint64_t seed;
    const fs_ranks *ranks;
    const fs_progress *progress;
} fs_leverage_options;
#define FS_LEVERAGE_INIT \
    { \
        sizeof(fs_leverage_options), 0, 0, 0, NULL, 0, NULL, NULL \
    }

/* The report of fs_leverage. */
typedef struct fs_leverage_report {
    size_t size;
    int64_t rank;   /* of A, the sum of exact scores */
    double sum;     /* of the scores */
    double largest; /* score, the coherence of A, from rank / d to 1 */
    int64_t row;    /* of the first row with that score */
    double error;   /* relative standard deviation of a score; 0: exact */
    int64_t reads;
    double seconds;
} fs_leverage_report;
#define FS_LEVERAGE_REPORT_INIT \
    { \
        sizeof(fs_leverage_report), 0, 0, 0, 0, 0, 0, 0 \
    }

/* scores[i] = |Q_i|^2, Q an orthonormal basis of A's columns, dependent ones too: d numbers in host memory (with ranks,
 * of this caller's rows).  Estimated scores are unbiased up to the error of the sketch and can exceed 1 by it.  d >= n.
 *
 * FS_EINVAL: an element of A is not finite.  After a failure scores are undefined. */
FS_API FS_NODISCARD fs_result fs_leverage(fs_context *ctx, const fs_operand *A, const fs_leverage_options *options,
                                          double *scores, fs_leverage_report *report);

/* a sketch for a wanted error ------------------------------------------------------------------------------------ */

/* The error that a sketch is planned for.  Start from FS_PLAN_INIT. */
typedef struct fs_plan_options {
    size_t size;        /* sizeof(fs_plan_options): set by FS_PLAN_INIT */
    int64_t d;          /* rows of A; 0: not known */
    int64_t n;          /* columns of A, or the rank that counts */
    double error;       /* wanted: all squared lengths in A's range are kept within it (fs_ose_report.error) */
    double probability; /* that the error is larger; 0: 0.05 */
    int coherent;       /* 1: a few rows of A may outweigh all others */
} fs_plan_options;
#define FS_PLAN_INIT \
    { \
        sizeof(fs_plan_options), 0, 0, 0, 0, 0 \
    }

/* A spec that has that error.  Start from FS_PLAN_REPORT_INIT. */
typedef struct fs_plan_report {
    size_t size;
    int64_t k, kappa, s;
    double typical;   /* error, the mean of draws */
    double exceeded;  /* error, exceeded with options.probability */
    char reason[320]; /* which rule gave k, kappa and s, with its numbers */
} fs_plan_report;
#define FS_PLAN_REPORT_INIT \
    { \
        sizeof(fs_plan_report), 0, 0, 0, 0, 0, "" \
    }

/* Chooses k, kappa and s of a BlockPerm-SJLT with shuffled rows.  FS_EINVAL: no k <= d (or 2^31 - 1) reaches the error;
 * the message gives the smallest possible one. */
FS_API FS_NODISCARD fs_result fs_plan(const fs_plan_options *options, fs_plan_report *report);

#ifdef __cplusplus
}
#endif

#endif
