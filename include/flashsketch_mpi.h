/* flashsketch_mpi.h - Y = S A where the rows of A are spread over the ranks of an MPI communicator.
 *
 * S is addressed by global row index, so a rank sketches its own rows, wherever they begin, and only Y is communicated:
 * every rank computes a partial result, and the sum of these is S A, as on one machine.
 *
 *     fs_mpi *ranks = NULL;
 *     if (fs_mpi_agree(comm, fs_context_create(&ctx, &where)) || fs_mpi_create(&ranks, comm, ctx, NULL) ||
 *         fs_mpi_apply(ranks, S, row0, 1.0, &A, 0.0, &Y))     A is rows row0 ... of the whole; Y is k x n on every rank
 *         ...                                                 the same error on all ranks, or none
 *
 * Every function but fs_mpi_rows, fs_mpi_memory_bytes and fs_mpi_describe is collective: all ranks of the communicator call
 * it, in the same order.  When one of them fails, all ranks return its code, and fs_error_message() returns that
 * rank's message prefixed with its rank; no rank deadlocks.  (Where MPI itself fails, the ranks on which MPI reports it
 * return FS_EBACKEND with MPI's message.)  MPI is called from the calling thread alone, so
 * MPI_THREAD_FUNNELED is enough.
 *
 * Each rank has a context of its own: CPU and CUDA ranks may be mixed.  A and Y may be in a GPU's memory, but partial
 * results are sent from host memory, also where MPI could reach the GPU's: Y is small beside A.
 *
 * Link with libflashsketch_mpi and libflashsketch, both built for one MPI library. */
#ifndef FLASHSKETCH_MPI_H
#define FLASHSKETCH_MPI_H

#include <mpi.h>

#include "flashsketch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* agreement of ranks ----------------------------------------------------------------------------------------------- */

/* FS_OK if every rank of comm passes FS_OK; otherwise, on all ranks, the code of the lowest rank that does not and its
 * message, "rank 3: ...".  For steps of your own that may fail on one rank: opening a file or a GPU. */
FS_API FS_NODISCARD fs_result fs_mpi_agree(MPI_Comm comm, fs_result mine);

/* ranks ----------------------------------------------------------------------------------------------------- */

/* Where the sum of all partial results is stored. */
typedef enum fs_mpi_output {
    FS_MPI_ALL = 1,    /* on every rank */
    FS_MPI_ROOT = 2,   /* on rank `root` */
    FS_MPI_SCATTER = 3 /* on every rank some of Y's rows: whole blocks, see fs_mpi_rows */
} fs_mpi_output;

/* Options of ranks; the same on all of them, except the allocator.  Start from FS_MPI_INIT. */
typedef struct fs_mpi_options {
    size_t size;            /* sizeof(fs_mpi_options): set by FS_MPI_INIT */
    fs_mpi_output output;   /* 0: all */
    int root;               /* FS_MPI_ROOT only: the rank that gets Y */
    int ordered;            /* 1, the default: partial results are added in the order of ranks; 0: in MPI's order */
    int64_t tile;           /* columns of Y that are summed together; 0: chosen, from 512 on */
    fs_allocator allocator; /* alloc NULL: malloc */
} fs_mpi_options;
#define FS_MPI_INIT \
    { \
        sizeof(fs_mpi_options), FS_MPI_ALL, 0, 1, 0, { NULL, NULL, NULL } \
    }

/* The ranks of a communicator, each with its context, and buffers for the partial results. */
typedef struct fs_mpi fs_mpi;

/* Creates ranks of comm, which is duplicated: messages do not mix with the caller's. ctx is this rank's and must
 * outlive them; options NULL means FS_MPI_INIT. */
FS_API FS_NODISCARD fs_result fs_mpi_create(fs_mpi **out, MPI_Comm comm, fs_context *ctx,
                                            const fs_mpi_options *options);

/* Frees ranks and their buffers; NULL is a no-op.  Before MPI_Finalize. */
FS_API void fs_mpi_destroy(fs_mpi *ranks);

/* The rows of Y that this rank gets with FS_MPI_SCATTER: *rows from *row0 on, whole blocks of S, M divided by the
 * number of ranks; of families without blocks, of k.  If there are more ranks than blocks, the last
 * ranks get no rows. */
FS_API FS_NODISCARD fs_result fs_mpi_rows(const fs_mpi *ranks, const fs_sketch *S, int64_t *row0, int64_t *rows);

/* One line of text: the rank, its context, the MPI library.  As fs_sketch_describe. */
FS_API int fs_mpi_describe(const fs_mpi *ranks, char *text, size_t bytes);

/* Bytes of buffers that this rank holds now.  They grow to what the largest call needed and are reused. */
FS_API size_t fs_mpi_memory_bytes(const fs_mpi *ranks);

/* products on ranks ------------------------------------------------------------------------------------------------ */

/* Y = beta Y + alpha sum over ranks of S[:, row0 : row0 + A.rows] A
 *
 * row0 is where this rank's A begins in the d rows of the whole.  Ranks may have any rows, in any order, or none (A has
 * 0 rows and all n columns), as long as no row is on two of them; rows that no rank has count as 0.  Y is k x n on the
 * ranks that get all of it, fs_mpi_rows x n with FS_MPI_SCATTER, and ignored (may be NULL) elsewhere.  Its type is A's
 * on that rank, or f32 (f64 when A is f64).
 *
 * Partial results are computed and sent in f32 (f64 for f64), for 16-bit matrices too, and the sum is rounded to Y's
 * type once.  With `ordered` they are added in the order of ranks, in f64, and rounded to f32 (f64) once: the bits
 * depend on which rank has which rows and on the ranks' contexts, not on the MPI library, tiles or messages (for CUDA
 * ranks also on the tile, because kernels are chosen by the number of columns).  It moves as many bytes as the best
 * all-reduce, in P messages to and from each rank, of 1/P of a tile.  Without `ordered`, one collective of MPI adds
 * them in an order and a precision of its own, in few messages: faster on thousands of ranks, but the last bits of Y
 * may differ between MPI libraries, numbers of ranks and tiles. docs/scaling.md has the cost of both.
 *
 * While a tile of columns is summed the next one is computed.  Each rank has buffers for three tiles, 6 k t values at
 * most.
 *
 * FS_EINVAL: an argument is wrong on a rank, ranks request different products, or a row is on two ranks.  A failure
 * before all ranks have their first tile leaves Y unchanged; a device that fails later leaves Y undefined. */
FS_API FS_NODISCARD fs_result fs_mpi_apply(fs_mpi *ranks, const fs_sketch *S, int64_t row0, double alpha,
                                           const fs_matrix *A, double beta, const fs_matrix *Y);

/* The same for a sparse A, in a memory space that fs_apply_sparse accepts with a Y in host memory: a CPU context.  The
 * rank's partial result is computed as a whole, k n values, before it is summed. */
FS_API FS_NODISCARD fs_result fs_mpi_apply_sparse(fs_mpi *ranks, const fs_sketch *S, int64_t row0, double alpha,
                                                  const fs_sparse *A, double beta, const fs_matrix *Y);

/* Y = beta Y + sum over ranks of part * The sum alone, for partial results that ranks have computed themselves: slice
 * by slice, or on several GPUs (fs_multi_apply).  part is k x n on every rank, in host memory or in the context's, and
 * must not overlap Y; S gives k and its blocks.  The rows of A in a partial result are not known and not checked.
 * Otherwise as fs_mpi_apply. */
FS_API FS_NODISCARD fs_result fs_mpi_sum(fs_mpi *ranks, const fs_sketch *S, const fs_matrix *part, double beta,
                                         const fs_matrix *Y);

/* tasks on ranks -------------------------------------------------------------------------------------------- */

struct fs_workspace;
struct fs_gram_report;
struct fs_fit_report;

/* fs_gram, fs_solve and fs_ridge (flashsketch_tasks.h) of an A whose rows are spread over ranks.  A and B are this rank's rows, from row0 on;
 * G is n x n, X is n x rhs.
 *
 * [A B] is sketched on all ranks and summed to the rank `root` of the options, whose workspace w the task uses (w is
 * ignored elsewhere and may be NULL; only the root needs OpenBLAS, or cuSOLVER).  The result and the report, which may
 * be NULL, are then on every rank with FS_MPI_ALL, the same bits on each, and on the root alone with FS_MPI_ROOT.
 * FS_MPI_SCATTER is FS_EUNSUPPORTED.  sketch_seconds is the time until the root has all sums. */
FS_API FS_NODISCARD fs_result fs_mpi_gram(fs_mpi *ranks, struct fs_workspace *w, const fs_sketch *S, int64_t row0,
                                          const fs_matrix *A, const fs_matrix *G, struct fs_gram_report *report);
FS_API FS_NODISCARD fs_result fs_mpi_solve(fs_mpi *ranks, struct fs_workspace *w, const fs_sketch *S, int64_t row0,
                                           const fs_matrix *A, const fs_matrix *B, double rcond, const fs_matrix *X,
                                           struct fs_fit_report *report);
FS_API FS_NODISCARD fs_result fs_mpi_ridge(fs_mpi *ranks, struct fs_workspace *w, const fs_sketch *S, int64_t row0,
                                           const fs_matrix *A, const fs_matrix *B, double lambda, const fs_matrix *X,
                                           struct fs_fit_report *report);

/* solvers on ranks ------------------------------------------------------------------------------------------------- */

struct fs_ranks;

/* The `ranks` of a solver's options (flashsketch_solvers.h) for an A of which this rank has `rows` rows from row0 on;
 * start *out from FS_RANKS_INIT.  Then all ranks call the solver, with the same options, on their rows:
 *
 *     fs_ranks spread = FS_RANKS_INIT;
 *     if (fs_mpi_ranks(ranks, row0, A.rows, &spread)) ...
 *     options.ranks = &spread;
 *     if (fs_lstsq(ctx, &operand, &B, &options, &X, &report)) ...     X on every rank, to the bit; or the same error
 *
 * Every row of A must be on one rank, ranks may have none (and then any row0).  *out serves any number of calls on
 * matrices of these rows, as long as `ranks` lives; its sums use the buffers of `ranks`.  They are in the order of ranks or, with ordered = 0,
 * in MPI's; the other options have no effect. docs/scaling.md lists what a solver sums.
 *
 * When one rank fails in a solver, all fail with its code and message; where every rank fails on its own, as when a sum
 * is not finite, the message begins with "all ranks: ".  A solver that cannot read its options (their size is wrong)
 * does not know its ranks, and the other ranks wait. */
FS_API FS_NODISCARD fs_result fs_mpi_ranks(fs_mpi *ranks, int64_t row0, int64_t rows, struct fs_ranks *out);

#ifdef __cplusplus
}
#endif

#endif
