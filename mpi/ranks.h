/* ranks.h - what the files of libflashsketch_mpi share. */
#ifndef FSI_MPI_RANKS_H
#define FSI_MPI_RANKS_H

#include "flashsketch_extend.h"
#include "flashsketch_mpi.h"
#include "flashsketch_tasks.h"

/* The check of one argument of a public function. */
#define FSI_REQUIRE(condition, ...) \
    do { \
        if (!(condition)) return fs_fail(FS_EINVAL, __VA_ARGS__); \
    } while (0)

/* Returns an error of `call`. */
#define FSI_TRY(call) \
    do { \
        const fs_result result_ = (call); \
        if (result_ != FS_OK) return result_; \
    } while (0)

/* Tiles in progress: one is computed, one is summed, one is distributed or stored. */
enum { FSI_RANKS_SLOTS = 3 };

/* The message of every rank to every other at the beginning of a call. */
typedef struct fsi_ranks_share {
    int64_t row0, rows; /* its rows of A */
    uint64_t call;      /* a hash of its request */
    int32_t rank, code;
} fsi_ranks_share;

/* A tile of columns of Y in progress.  `part` is this rank's, k x cols, packed rows; `other` is received from the
 * others.  The counts are MPI's until a request has ended, so each slot has its own. */
typedef struct fsi_ranks_slot {
    int64_t col0, cols;
    char *part, *other;
    int *counts[2], *starts[2]; /* of all ranks, for what is sent and what is received */
    MPI_Request request;
} fsi_ranks_slot;

struct fs_mpi {
    fs_allocator allocator;
    fs_mpi_options options;
    fs_mpi_output output; /* of the present call: that of the options; a task sums to the root */
    MPI_Comm comm;
    int rank, size;
    fs_context *ctx;
    char *scratch;
    size_t scratch_bytes;
    fsi_ranks_share *shares; /* size of them */
    fs_matrix *planes;       /* views of the data received from each rank */
    int64_t *first;          /* size + 1: where the rows of Y begin that a rank sums, or gets */
    int *numbers;            /* the slots' counts */
    fsi_ranks_slot slots[FSI_RANKS_SLOTS];
};

/* FS_OK, or FS_EBACKEND with the action that failed and MPI's message. */
fs_result fsi_ranks_check(int error, const char *what);
#define FSI_TRY_MPI(call, what) FSI_TRY(fsi_ranks_check((call), (what)))

/* The request of a rank; all ranks must make the same one. */
enum {
    FSI_ASK_VERSION,
    FSI_ASK_FAMILY,
    FSI_ASK_D,
    FSI_ASK_K,
    FSI_ASK_SEED,
    FSI_ASK_M,
    FSI_ASK_KAPPA,
    FSI_ASK_S,
    FSI_ASK_SHUFFLE,
    FSI_ASK_INTERLEAVE,
    FSI_ASK_COLS,
    FSI_ASK_SUMS,
    FSI_ASK_ALPHA,
    FSI_ASK_BETA,
    FSI_ASK_OUTPUT,
    FSI_ASK_ROOT,
    FSI_ASK_ORDERED,
    FSI_ASK_TILE,
    FSI_ASKED
};
typedef struct fsi_ranks_ask {
    int64_t field[FSI_ASKED];
} fsi_ranks_ask;

/* The beginning of a call: FS_OK on all ranks if `mine` is on all, their requests agree and no row of A is on two; with
 * all_rows, if every row from 0 on is on one, and *all_rows is their number. */
fs_result fsi_ranks_agree(fs_mpi *ranks, const char *who, fs_result mine, const fsi_ranks_ask *ask, int64_t row0,
                          int64_t rows, int64_t *all_rows);

/* Broadcasts the error of rank `first`, which has `mine` and a message, to all ranks, and returns it on all.  `all`: they
 * all have failed, and the message has that in place of the rank. */
fs_result fsi_ranks_broadcast_error(MPI_Comm comm, int first, int all, fs_result mine);

/* The scratch of ranks, at least this long; NULL with the message where there is none. */
char *fsi_ranks_scratch(fs_mpi *ranks, const char *who, size_t bytes);

/* The type in which partial results are computed, sent and added. */
static inline fs_dtype fsi_ranks_sum_type(fs_dtype dtype) { return dtype == FS_F64 ? FS_F64 : FS_F32; }

/* fs_mpi_apply with another output than that of the options. */
fs_result fsi_ranks_apply(fs_mpi *ranks, fs_mpi_output output, const fs_sketch *S, int64_t row0, const fs_matrix *A,
                          const fs_matrix *Y);

/* How the rows of Y are divided, into `first`: by blocks where Y is scattered, otherwise evenly. */
void fsi_ranks_divide(fs_mpi *ranks, const fs_spec *spec);

/* The rows of Y that this rank gets; the values of a tile that it receives; the largest count passed to MPI. */
int64_t fsi_ranks_rows(const fs_mpi *ranks, int64_t k);
int64_t fsi_ranks_received(const fs_mpi *ranks, int64_t k, int64_t cols);
int64_t fsi_ranks_largest(const fs_mpi *ranks, int64_t k);

/* The sum of a tile, in sums of type `sum`: begun, distributed, ended.  Each step waits for the one before, and all
 * ranks take the steps of all tiles in the same order.  *rows then is where this rank's rows of the tile are. */
fs_result fsi_ranks_begin(fs_mpi *ranks, fsi_ranks_slot *slot, fs_dtype sum);
fs_result fsi_ranks_hand_out(fs_mpi *ranks, fsi_ranks_slot *slot, fs_dtype sum);
fs_result fsi_ranks_end(fs_mpi *ranks, fsi_ranks_slot *slot, fs_dtype sum, void **rows);

#endif
