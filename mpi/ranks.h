/* ranks.h - what the files of libflashsketch_mpi share. */
#ifndef FS_MPI_RANKS_H
#define FS_MPI_RANKS_H

#include "error.h"
#include "flashsketch_mpi.h"

/* Tiles at work: one is made, one is being summed, one is being handed out or stored. */
enum { FS_RANKS_SLOTS = 3 };

/* What every rank tells every other at the beginning of a call. */
typedef struct fs_ranks_share {
    int64_t row0, rows; /* its rows of A */
    uint64_t call;      /* a hash of what it asks for */
    int32_t rank, code;
} fs_ranks_share;

/* A tile of columns of Y on its way.  `part` is this rank's, k x cols, packed rows; `other` is what comes from the
 * others.  The counts are MPI's until a request has ended, so each slot has its own. */
typedef struct fs_ranks_slot {
    int64_t col0, cols;
    char *part, *other;
    int *counts[2], *starts[2]; /* of all ranks, for what is sent and what is received */
    MPI_Request request;
} fs_ranks_slot;

struct fs_mpi {
    fs_allocator allocator;
    fs_mpi_options options;
    MPI_Comm comm;
    int rank, size;
    fs_context *ctx;
    char *scratch;
    size_t scratch_bytes;
    fs_ranks_share *shares; /* size of them */
    fs_matrix *planes;      /* views of what came from each rank */
    int64_t *first;         /* size + 1: where the rows of Y begin that a rank sums, or gets */
    int *numbers;           /* the slots' counts */
    fs_ranks_slot slots[FS_RANKS_SLOTS];
};

/* FS_OK, or FS_EBACKEND with what was being done and MPI's sentence. */
fs_result fs_ranks_check(int error, const char *what);
#define FS_TRY_MPI(call, what) FS_TRY(fs_ranks_check((call), (what)))

/* What a rank asks for; all ranks must ask for the same. */
enum {
    FS_ASK_VERSION, FS_ASK_FAMILY, FS_ASK_D, FS_ASK_K, FS_ASK_SEED, FS_ASK_M, FS_ASK_KAPPA, FS_ASK_S, FS_ASK_SHUFFLE,
    FS_ASK_INTERLEAVE, FS_ASK_COLS, FS_ASK_SUMS, FS_ASK_ALPHA, FS_ASK_BETA, FS_ASK_OUTPUT, FS_ASK_ROOT, FS_ASK_ORDERED,
    FS_ASK_TILE, FS_ASKED
};
typedef struct fs_ranks_ask { int64_t field[FS_ASKED]; } fs_ranks_ask;

/* The beginning of a call: FS_OK on all ranks if `mine` is on all, they ask for the same and no row of A is on two. */
fs_result fs_ranks_agree(fs_mpi *ranks, const char *who, fs_result mine, const fs_ranks_ask *ask, int64_t row0,
                         int64_t rows);

/* The scratch of ranks, at least this long; NULL and the sentence where there is none. */
char *fs_ranks_scratch(fs_mpi *ranks, const char *who, size_t bytes);

/* How the rows of Y are divided, into `first`: by blocks where Y is scattered, otherwise evenly. */
void fs_ranks_divide(fs_mpi *ranks, const fs_spec *spec);

/* The rows of Y that this rank gets; what it receives of a tile, in values; what a count of MPI's must hold. */
int64_t fs_ranks_rows(const fs_mpi *ranks, int64_t k);
int64_t fs_ranks_received(const fs_mpi *ranks, int64_t k, int64_t cols);
int64_t fs_ranks_largest(const fs_mpi *ranks, int64_t k);

/* The sum of a tile, in sums of type `sum`: begun, handed out, ended.  Each step waits for the one before, and all
 * ranks take the steps of all tiles in the same order.  *rows then is where this rank's rows of the tile are. */
fs_result fs_ranks_begin(fs_mpi *ranks, fs_ranks_slot *slot, fs_dtype sum);
fs_result fs_ranks_hand_out(fs_mpi *ranks, fs_ranks_slot *slot, fs_dtype sum);
fs_result fs_ranks_end(fs_mpi *ranks, fs_ranks_slot *slot, fs_dtype sum, void **rows);

#endif
