/* flashsketch_tasks.h - tasks on a sketch: Gram matrices, embeddings, ridge regression, least squares.
 *
 * A header of its own, because these functions need linear algebra, which is opened when a workspace is created
 * (OpenBLAS on a CPU; cuBLAS and cuSOLVER on a GPU): programs that only sketch need neither this header nor those
 * libraries.
 *
 * A workspace holds the sketches Y = S A and C = S B, and all memory that a task needs.  Fill it once, with
 * fs_task_sketch or by your own calls of fs_apply, then run any number of tasks on it:
 *
 *     fs_task_shape shape = FS_TASK_SHAPE_INIT;   shape.k = k;  shape.n = n;  shape.rhs = 1;
 *     fs_workspace *w;        fs_workspace_create(&w, ctx, &shape);
 *     fs_fit_report report = FS_FIT_REPORT_INIT;
 *     fs_task_sketch(w, S, &A, &b);               Y = S A, C = S b: A and b are read once
 *     fs_solve(w, 0.0, &x, &report);              x minimises |Y x - C|
 *
 * A is d x n, B is d x rhs, S is k x d; Y is k x n, C is k x rhs, X is n x rhs, G is n x n.  All factorizations are in
 * f64, whatever the type of A.  Results of a task (X, G) may be in the context's memory or the host's.  A task waits
 * for the stream: its results are ready on return.  A workspace is for one thread at a time and must be destroyed
 * before its context. */
#ifndef FLASHSKETCH_TASKS_H
#define FLASHSKETCH_TASKS_H

#include "flashsketch.h"
#include "flashsketch_solvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* workspaces ------------------------------------------------------------------------------------------------ */

/* The sizes of a workspace.  Start from FS_TASK_SHAPE_INIT. */
typedef struct fs_task_shape {
    size_t size;    /* sizeof(fs_task_shape): set by FS_TASK_SHAPE_INIT */
    int64_t k;      /* rows of Y and C */
    int64_t n;      /* columns of A and Y */
    int64_t rhs;    /* columns of B and C, right-hand sides; 0: none */
    fs_dtype dtype; /* of Y and C: FS_F32, or FS_F64 for an A in f64; 0: FS_F32 */
    int64_t basis;  /* rows of A, for fs_ose, which keeps an orthonormal basis of basis x n; 0: no fs_ose */
} fs_task_shape;
#define FS_TASK_SHAPE_INIT \
    { \
        sizeof(fs_task_shape), 0, 0, 0, FS_UNSET(fs_dtype), 0 \
    }

/* The memory of tasks, in the memory space of ctx. */
typedef struct fs_workspace fs_workspace;

/* Creates a workspace; later calls allocate only ctx's scratch for fs_apply.  k and n + rhs are at most 2^31 - 9.  It
 * takes 8 (n + rhs) max(k, n, 2048) bytes and several n x n matrices of f64: see fs_workspace_memory_bytes.
 * FS_EBACKEND: the linear algebra is not available; the message has the loader's reason.  FS_ENOMEM: with the bytes;
 * OpenBLAS takes 128 MiB of addresses for each of its threads (OPENBLAS_NUM_THREADS) when the first workspace is
 * created, and keeps them. */
FS_API FS_NODISCARD fs_result fs_workspace_create(fs_workspace **out, fs_context *ctx, const fs_task_shape *shape);

/* Frees a workspace; NULL is a no-op. */
FS_API void fs_workspace_destroy(fs_workspace *w);

/* Bytes that the workspace holds. */
FS_API size_t fs_workspace_memory_bytes(const fs_workspace *w);

/* Views of Y (k x n) and C (k x rhs), packed rows, in ctx's memory.  Tasks work on their contents: the sketch of a
 * matrix that arrives in row slices, of a sparse one (fs_apply_sparse), or a sum over ranks.  Either may be NULL.  From
 * this call on their S is not known. */
FS_API FS_NODISCARD fs_result fs_workspace_views(fs_workspace *w, fs_matrix *Y, fs_matrix *C);

/* States the S of Y and C, after they were written through their views: whether the intervals of fs_solve and fs_ridge
 * hold depends on it.  S is not kept; NULL: it is not known. fs_task_sketch calls it itself. */
FS_API FS_NODISCARD fs_result fs_workspace_set_sketch(fs_workspace *w, const fs_sketch *S);

/* Y = S A and C = S B, each matrix read once, both queued on ctx's stream.  B is NULL if and only if rhs is 0.  A and B
 * are of w's type, or of a half type where that is f32, in any layout and in any memory space that fs_apply accepts.
 * The time is in the reports of the tasks that follow. */
FS_API FS_NODISCARD fs_result fs_task_sketch(fs_workspace *w, const fs_sketch *S, const fs_matrix *A,
                                             const fs_matrix *B);

/* Gram matrices --------------------------------------------------------------------------------------------- */

/* The report of fs_gram.  Its error is |Y'Y - A'A|_F / |A'A|_F. */
typedef struct fs_gram_report {
    size_t size;
    double sketch_seconds; /* of the last fs_task_sketch */
    double solve_seconds;  /* of this task: G in f64 and its copy */
    double total_seconds;  /* both */
    double error;          /* the error to expect of such a sketch, estimated from Y alone: a root mean square */
    double low, high;      /* the error of this draw lies between them in `confidence` of all draws of S: see fs_gram */
    double effective_k;    /* k, or less where few blocks of rows of Y carry most of A: contiguous blocks, coherent A */
    double confidence;     /* 0.99; 0: not known, and then low is 0 and high infinite */
    char note[320];        /* why it is not known; "": it is */
} fs_gram_report;
#define FS_GRAM_REPORT_INIT \
    { \
        sizeof(fs_gram_report), 0, 0, 0, 0, 0, 0, 0, 0, "" \
    }

/* G = Y'Y, an estimate of A'A; n x n, symmetric to the bit, in any type and layout.  G may be NULL: only the report.
 *
 * The report's error is that of a Gaussian S with effective_k rows, sqrt((tr(H)^2 / |H|_F^2 + 1) / effective_k), where
 * H is A'A as estimated from Y; high is the quantile of a chi-square variable whose degrees of freedom are estimated
 * from H and the fourth moment of the rows of Y.  At most 1 of 100 draws of S has a larger error, for every family but
 * FS_BLOCKROW and FS_SRHT, whose confidence is 0; low is 0 except for FS_GAUSSIAN, because where a few rows of A
 * outweigh all others the error of a sparse S can be smaller by any factor.  S is the sketch of Y, for its blocks;
 * NULL: Y is taken as one block, and the confidence is 0.
 *
 * FS_EINVAL: Y has an element that is not finite; G is unchanged.  Y = 0 gives G = 0 and an error of 0. */
FS_API FS_NODISCARD fs_result fs_gram(fs_workspace *w, const fs_sketch *S, const fs_matrix *G, fs_gram_report *report);

/* The errors of Y'Y themselves, by A'A in f64: |Y'Y - A'A| / |A'A| in the Frobenius and in the spectral norm.  Reads A
 * once and takes d n^2 operations: for checks.  A is in ctx's memory.  Either result may be NULL; 0 / 0 is 0. */
FS_API FS_NODISCARD fs_result fs_gram_error(fs_workspace *w, const fs_matrix *A, double *frobenius, double *spectral);

/* subspace embeddings --------------------------------------------------------------------------------------- */

/* The report of fs_ose on S and the range of an orthonormal Q, d x n. */
typedef struct fs_ose_report {
    size_t size;
    double sketch_seconds;       /* of S Q */
    double solve_seconds;        /* of its singular values */
    double total_seconds;        /* both; the time for Q is in none */
    double error;                /* |(SQ)'SQ - I|_2: all lengths in the subspace are kept within it, squared */
    double frobenius;            /* |(SQ)'SQ - I|_F */
    double sigma_min, sigma_max; /* extreme singular values of S Q */
    double expected;             /* the error of a large Gaussian S: (1 + sqrt(n / k))^2 - 1 */
    double low, high; /* where the error of a Gaussian S lies with probability 0.99.  Above high: S is bad for this
                       * subspace; take more rows, a higher rung or a shuffle */
} fs_ose_report;
#define FS_OSE_REPORT_INIT \
    { \
        sizeof(fs_ose_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* The embedding error of S on the range of the first n columns of A, n as in w's shape, exactly: Q is an orthonormal
 * basis of them (of the QR factorization in this order), computed in f64 and sketched in w's type.  A NULL: a random
 * subspace of n dimensions, drawn from `seed` and the same on every machine.  w's shape has basis = d >= n; Y of w
 * becomes S Q.
 *
 * FS_EINVAL: an element of A is not finite, or the columns are dependent: the message names the first that is. */
FS_API FS_NODISCARD fs_result fs_ose(fs_workspace *w, const fs_sketch *S, const fs_matrix *A, uint64_t seed,
                                     fs_ose_report *report);

/* The error of a large Gaussian S of k rows on n dimensions, fs_ose_report.expected: (1 + sqrt(n / k))^2 - 1, the edge
 * of the Marchenko-Pastur distribution.  k and n are at least 1. */
FS_API double fs_ose_expected(int64_t k, int64_t n);

/* The embedding errors (fs_ose_report.error) to expect of S for an A of n columns, without A: *typical, the mean of
 * draws, and *exceeded, which 5 of 100 draws exceed.  concentrated 0: no rows of A outweigh the others; every sketch but
 * FS_BLOCKROW has the errors of a dense Gaussian then.  1: n scattered rows outweigh all others, the worst known case;
 * those errors times factors measured for each rung.  NaN where they are not known: of FS_BLOCKROW; and with 1 of
 * FS_SRHT, contiguous blocks, more than ceil(k / 64) blocks, fewer than four nonzeros in a column, and k < 2 n, where
 * S A may lose directions of A. */
FS_API FS_NODISCARD fs_result fs_ose_errors(const fs_sketch *S, int64_t n, int concentrated, double *typical,
                                            double *exceeded);

/* ridge regression and least squares -------------------------------------------------------------------------- */

/* How the normal equations were solved. */
typedef enum fs_method {
    FS_METHOD_CHOLESKY = 1, /* Cholesky's factor of Y'Y (+ lambda I), of Y Y' where k < n, in f64; for an f64 Y with a
                             * step of refinement */
    FS_METHOD_SVD = 2       /* singular values of Y in f64: where Cholesky's pivots are too small, or rcond is given */
} fs_method;

/* The report of fs_ridge and fs_solve; norms are Frobenius norms over all right-hand sides. */
typedef struct fs_fit_report {
    size_t size;
    double sketch_seconds; /* of the last fs_task_sketch */
    double solve_seconds;  /* from Y and C to X */
    double total_seconds;  /* both; the time of the estimates is in neither */
    fs_method method;
    int64_t rank;      /* of Y, as far as its rounding errors show it */
    double condition;  /* of Y, its columns (its rows where k < n) scaled to length 1, a lower bound; SVD: as it is */
    double sketched;   /* |Y X - C| */
    double rhs;        /* |C|, which is |B| within a few percent: the scale of a residual */
    double residual;   /* the estimate of |A X - B| */
    double low, high;  /* |A X - B| lies between them in `confidence` of all draws of S: see fs_solve */
    double smallest;   /* fs_solve: the estimate of the smallest possible |A X - B|; fs_ridge: NaN */
    double confidence; /* 0.99; 0: not known, and then low is 0 and high infinite */
    char note[320];    /* the meaning of a rank below n <= k, and why the interval is not known; "": neither */
} fs_fit_report;
#define FS_FIT_REPORT_INIT \
    { \
        sizeof(fs_fit_report), 0, 0, 0, FS_UNSET(fs_method), 0, 0, 0, 0, 0, 0, 0, 0, 0, "" \
    }

/* X minimises |Y X - C|, in place of |A X - B|: sketch-and-solve.  Where that has many solutions (k < n, or a rank
 * below n) X is the shortest, and the rank is reported.  rcond: singular values below rcond times the largest count as
 * 0, and the method is always FS_METHOD_SVD; 0.0: where that method is needed, 2^-21 for f32, max(k, n) 2^-52 for f64.
 *
 * The accuracy of X. The rows of [Y C] are k random equations; residual = |Y X - C| / (1 - rank / k) is their
 * generalised cross-validation (Craven and Wahba, 1979): the residual of equations that were not used.  Its square has
 * a relative deviation of sqrt(v (1 + rank / k) / (k - rank)), v = 2 for a Gaussian S; for a sparse one v grows with
 * the fourth moment of the rows of Y X - C, which shows outliers of B. low and high are three deviations and the
 * rounding of w's type away.
 *
 * That holds in 99 of 100 draws of S (confidence 0.99) for FS_GAUSSIAN where k >= rank + 8; for FS_SJLT with s >= 4 and
 * FS_BLOCKPERM with kappa s >= 4 and shuffle rows, every rung, where k >= 2 rank as well, and k >= 4 rank where few rows
 * of A dominate (with kappa s = 4 also n^2 / 197): measured on inputs of both kinds, for spread noise, outliers and spikes
 * in B.  In all other cases (FS_BLOCKROW, FS_SRHT, contiguous blocks, groups, fewer nonzeros or rows, an S that is not
 * known) confidence is 0, and the note has the reason.
 *
 * Its use: residual / smallest, about sqrt(k / (k - rank)), is the cost of sketching, and more rows bring it towards 1;
 * they also narrow the interval.  Where rank = k (within 1/2) the sketched equations are solved exactly and show
 * nothing: residual is NaN; fs_residual computes it from A.
 *
 * A rank below n where k >= n has two causes, which Y alone cannot distinguish: A has dependent columns, or S has lost a
 * direction of A, and with it any part of X.  The second happens to sparse S below k = 1.5 n or so where n rows of A
 * outweigh all others, and is rare from 2 n on; the note has the numbers.
 *
 * X is n x rhs, of any type and layout.  B = 0 gives X = 0.  A = 0 gives X = 0 and rank 0.  FS_EINVAL: Y or C has an
 * element that is not finite; X is unchanged. */
FS_API FS_NODISCARD fs_result fs_solve(fs_workspace *w, double rcond, const fs_matrix *X, fs_fit_report *report);

/* X minimises |Y X - C|^2 + lambda |X|^2, lambda > 0: sketch-and-ridge.  Any number of lambdas may follow one
 * fs_task_sketch.  The estimate and its confidence are fs_solve's with tr(Y (Y'Y + lambda I)^-1 Y') in place of the
 * rank. */
FS_API FS_NODISCARD fs_result fs_ridge(fs_workspace *w, double lambda, const fs_matrix *X, fs_fit_report *report);

/* The residuals themselves: norms[j] = |A x_j - b_j| in f64, for rhs columns, in host memory.  Reads A and B once.  All
 * three are in ctx's memory. */
FS_API FS_NODISCARD fs_result fs_residual(fs_workspace *w, const fs_matrix *A, const fs_matrix *B, const fs_matrix *X,
                                          double *norms);

/* coherence ------------------------------------------------------------------------------------------------- */

/* How unevenly the range of A lies on the blocks of a BlockPerm-SJLT (the paper, section 6).  U is an orthonormal basis
 * of the range, U_h its rows in input block h, U_N(g) those in the kappa input blocks of output block g. */
typedef struct fs_coherence_report {
    size_t size;
    int64_t rank;                 /* columns of U */
    double mu_blk;                /* M max_h |U_h|_2^2, from 1 to M */
    double mu_nbr;                /* (M / kappa) max_g |U_N(g)|_2^2, from mu_blk / kappa to mu_blk */
    int64_t block, neighbourhood; /* the h and g of the maxima, the first of equals */
} fs_coherence_report;
#define FS_COHERENCE_REPORT_INIT \
    { \
        sizeof(fs_coherence_report), 0, 0, 0, 0, 0 \
    }

/* The columns that fs_coherence takes at most. */
#define FS_COHERENCE_MAX_COLS 4096

/* Measures the coherence of A (d x n, host memory) under a sketch of family FS_BLOCKPERM, in f64: d n + n^2 doubles
 * from ctx's allocator, 2 d n^2 operations.  progress may be NULL.  FS_EINVAL: another family, more columns than
 * FS_COHERENCE_MAX_COLS, an element that is not finite, or A = 0. */
FS_API FS_NODISCARD fs_result fs_coherence(fs_context *ctx, const fs_sketch *S, const fs_matrix *A,
                                           const fs_progress *progress, fs_coherence_report *report);

/* The same for a sparse A. */
FS_API FS_NODISCARD fs_result fs_coherence_sparse(fs_context *ctx, const fs_sketch *S, const fs_sparse *A,
                                                  const fs_progress *progress, fs_coherence_report *report);

#ifdef __cplusplus
}
#endif

#endif
