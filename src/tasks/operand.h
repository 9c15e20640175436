/* operand.h - the matrix A of a solver, whatever it is: dense, sparse, slices from a callback, rows spread over ranks.
 *
 * A solver sees A through four operations, each of which reads A once: the sketch, the normal product A'(A P - B), a
 * visit of all slices, and a sum over ranks of what a visit computed.  Everything else is dense.h's. */
#ifndef FSI_TASKS_OPERAND_H
#define FSI_TASKS_OPERAND_H

#include "base/error.h"
#include "core/context.h"
#include "flashsketch_tasks.h"

typedef struct fsi_operand {
    const char *who; /* the public function, for messages */
    fs_context *ctx;
    const fsi_dense *dense;
    void *handle;             /* of dense; NULL until fsi_operand_open */
    fs_matrix matrix;         /* one of these three is A: matrix.data set ... */
    fs_sparse sparse;         /* ... or is_sparse ... */
    fs_slices slices;         /* ... or slices.next set */
    fs_checkpoint checkpoint; /* of the slices; load NULL: there is none */
    int is_sparse;
    fs_ranks ranks; /* sum NULL: A is whole */
    const fs_progress *progress;
    int64_t d, n;       /* rows of this caller, columns */
    int64_t row0, rows; /* number of the first of them in all of A, rows of all of A */
    fs_dtype dtype;
    int64_t reads;          /* of A so far */
    int has_agreed;         /* the ranks have agreed on a failure or on the end */
    void *staging, *packed; /* host slices that are copied to a GPU: there, and packed in host memory */
    size_t staging_bytes;
} fsi_operand;

/* Calls a function of the operand's table: DENSE(A, syrk, n, k, ...). */
#define DENSE(A, function, ...) FSI_TRY((A)->dense->function((A)->handle, __VA_ARGS__))

/* Checks the arguments that all solvers share and fills *A; takes no memory.  `ranks` and `progress` may be NULL.
 * `ranks` is checked first, so that all ranks get a failure, which closes A. */
fs_result fsi_operand_init(fsi_operand *A, const char *who, fs_context *ctx, const fs_operand *given,
                           const fs_ranks *ranks, const fs_progress *progress);

/* Opens the linear algebra, with room for potrf and eigen of n x n matrices and svd of m x p ones, p <= m. */
fs_result fsi_operand_open(fsi_operand *A, int64_t n, int64_t m, int64_t p);

/* Ends a solver: closes the linear algebra, returns `result`, or with ranks that of all: FS_OK or one failure. */
fs_result fsi_operand_close(fsi_operand *A, fs_result result);

/* Memory of the backend, of `count` doubles, released by fsi_operand_free (NULL is a no-op). */
fs_result fsi_operand_alloc(fsi_operand *A, int64_t count, double **memory);
void fsi_operand_free(fsi_operand *A, void *memory);

/* Visits A in slices of at most `most` rows (0: any number; sparse slices as they come), in order: one read.  Either `dense` (in the backend's
 * memory, offset folded) or `sparse` is set.  row0 counts from this caller's first row. */
typedef fs_result (*fsi_visit_slice)(void *user, int64_t row0, const fs_matrix *dense, const fs_sparse *sparse);
fs_result fsi_operand_visit(fsi_operand *A, int64_t most, fsi_visit_slice visit, void *user);

/* The same for a read whose only results are sums over rows, `count` spans of memory that hold those of the rows so far
 * (0 before the first): slices with a checkpoint load and save them. */
typedef struct fsi_sums {
    void *data;
    size_t bytes;
    int in_host; /* in host memory, otherwise in the backend's */
} fsi_sums;
fs_result fsi_operand_accumulate(fsi_operand *A, int64_t most, fsi_visit_slice visit, void *user, const fsi_sums *sums,
                                 int count);

/* Y = S A, summed over ranks: k x n, f64, packed rows in the backend's memory.  One read. */
fs_result fsi_operand_sketch(fsi_operand *A, const fs_sketch *S, double *Y);

/* W = A'(A P - B) and squares[c] = |A P_c - B_c|^2, summed over ranks; P and W n x m packed columns, squares m numbers,
 * all in the backend's memory.  B is this caller's rows, d x m, in the backend's memory; NULL: 0.  One
 * read, and with ranks one sum where squares lie behind W, two otherwise. */
fs_result fsi_operand_normal(fsi_operand *A, int64_t m, const double *P, const fs_matrix *B, double *W,
                             double *squares);

/* operand_ranks.c: values (in the backend's memory) += those of all other ranks; nothing where A is whole. */
fs_result fsi_operand_sum(fsi_operand *A, double *values, int64_t count);
/* The same in host memory. */
fs_result fsi_operand_sum_host(fsi_operand *A, double *values, int64_t count);

/* values become those of the caller that has row 0: what linear algebra computed from equal numbers, which may differ
 * by rounding.  In the backend's memory, and in host memory. */
fs_result fsi_operand_share(fsi_operand *A, double *values, int64_t count);
fs_result fsi_operand_share_host(fsi_operand *A, double *values, int64_t count);

/* FS_EINVAL unless all callers make the same request: the function, A's columns, type and kind, S, the seed, and at
 * most 16 choices of the solver's; and unless they have all rows.  The first sum of a solver. */
typedef struct fsi_choice {
    const char *name;
    double value;
} fsi_choice;
fs_result fsi_operand_agree(fsi_operand *A, const fs_sketch *S, uint64_t seed, const fsi_choice *choices, int count);

/* Calls the caller's progress function, if there is one. */
void fsi_operand_progress(const fsi_operand *A, double share, const char *doing);

/* The solver's own S for an A of n columns: the rung high, from times = 8 on the default, and k = `times` n + 16.  *S is
 * the caller's to destroy.  `given`: the caller's own sketch, checked and used instead; *own is then 0. */
fs_result fsi_operand_solver_sketch(const fsi_operand *A, const fs_sketch *given, double times, uint64_t seed,
                                    const fs_sketch **S, int *own);

/* Omega, n x l packed columns: random signs over sqrt(l).  `work` has room for l x l numbers; both in the backend's
 * memory. */
fs_result fsi_operand_signs(fsi_operand *A, int64_t n, int64_t l, uint64_t seed, double *work, double *Omega);

/* The rounding unit of A's type: 2^-24 for f32, f16 and bf16, 2^-53 for f64. */
double fsi_operand_unit(const fsi_operand *A);

/* rcond, or where that is 0 the default: max(8, sqrt(n)) times the machine precision of A's type, 2^-23 or 2^-52.  That
 * is a few times what rounding leaves of the singular values of dependent columns, in A and in S A. */
double fsi_operand_rcond(const fsi_operand *A, double rcond);

#endif
