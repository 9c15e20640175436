/* agree.c - one result for all ranks: an error of one rank is returned by all, with the same message.
 *
 * A call begins with one all-gather of 32 bytes a rank, from which all ranks derive the same result: the first failing
 * rank, ranks whose arguments differ from rank 0's, and ranks with overlapping row ranges.  Only then is a message or a
 * list of numbers broadcast, by the one rank that has it. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

fs_result fsi_ranks_check(int error, const char *what)
{
    if (error == MPI_SUCCESS) return FS_OK;
    char message[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    MPI_Error_string(error, message, &length);
    return fs_fail(FS_EBACKEND, "MPI failed while %s: %s", what, message);
}

fs_result fsi_ranks_broadcast_error(MPI_Comm comm, int first, int all, fs_result mine)
{
    struct {
        int code;
        char message[480];
    } error = {(int)mine, ""};
    snprintf(error.message, sizeof error.message, "%s", fs_error_message());
    FSI_TRY_MPI(MPI_Bcast(&error, (int)sizeof error, MPI_BYTE, first, comm), "broadcasting an error");
    if (all) return fs_fail((fs_result)error.code, "all ranks: %s", error.message);
    return fs_fail((fs_result)error.code, "rank %d: %s", first, error.message);
}

fs_result fs_mpi_agree(MPI_Comm comm, fs_result mine)
{
    int rank, first, failed = INT_MAX;
    FSI_TRY_MPI(MPI_Comm_rank(comm, &rank), "querying the rank");
    if (mine != FS_OK) failed = rank;
    FSI_TRY_MPI(MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MIN, comm), "agreeing on errors");
    return first == INT_MAX ? FS_OK : fsi_ranks_broadcast_error(comm, first, 0, mine);
}

/* the beginning of a call ----------------------------------------------------------------------------------- */

static const char *const names[FSI_ASKED] = {"the definition's version",
                                             "family",
                                             "d",
                                             "k",
                                             "seed",
                                             "M",
                                             "kappa",
                                             "s",
                                             "shuffle",
                                             "interleave",
                                             "columns of A",
                                             "bytes of a sum",
                                             "alpha",
                                             "beta",
                                             "output",
                                             "root",
                                             "ordered",
                                             "tile"};

/* FNV-1a, by words. */
static uint64_t hash_of(const fsi_ranks_ask *ask)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (int i = 0; i < FSI_ASKED; i++) {
        hash = (hash ^ (uint64_t)ask->field[i]) * 0x100000001B3u;
        hash ^= hash >> 29;
    }
    return hash;
}

static void write_field(char *text, size_t bytes, const fsi_ranks_ask *ask, int i)
{
    double real;
    memcpy(&real, &ask->field[i], sizeof real);
    if (i == FSI_ASK_ALPHA || i == FSI_ASK_BETA) snprintf(text, bytes, "%.17g", real);
    else if (i == FSI_ASK_SEED) snprintf(text, bytes, "%" PRIu64, (uint64_t)ask->field[i]);
    else snprintf(text, bytes, "%" PRId64, ask->field[i]);
}

/* Rank `other` makes another request than rank 0; all ranks get the difference. */
static fs_result differ(fs_mpi *ranks, const char *who, const fsi_ranks_ask *ask, int other)
{
    fsi_ranks_ask zero = *ask, its = *ask;
    FSI_TRY_MPI(MPI_Bcast(zero.field, FSI_ASKED, MPI_INT64_T, 0, ranks->comm), "comparing the ranks' requests");
    FSI_TRY_MPI(MPI_Bcast(its.field, FSI_ASKED, MPI_INT64_T, other, ranks->comm), "comparing the ranks' requests");
    int i = 0;
    while (i < FSI_ASKED - 1 && zero.field[i] == its.field[i]) i++;
    char a[40], b[40];
    write_field(a, sizeof a, &zero, i);
    write_field(b, sizeof b, &its, i);
    return fs_fail(FS_EINVAL, "%s: rank %d has %s = %s, and rank 0 has %s", who, other, names[i], b, a);
}

static int by_first_row(const void *a, const void *b)
{
    const fsi_ranks_share *x = a, *y = b;
    if (x->row0 != y->row0) return x->row0 < y->row0 ? -1 : 1;
    return x->rank - y->rank;
}

/* FS_EINVAL if two ranks have a row of A.  Ranks without rows are left out; the *having others are then first in the
 * list, in the order of their rows. */
static fs_result check_disjoint(fs_mpi *ranks, const char *who, int *having)
{
    fsi_ranks_share *shares = ranks->shares;
    int count = 0, ascending = 1;
    for (int r = 0; r < ranks->size; r++)
        if (shares[r].rows > 0) shares[count++] = shares[r];
    for (int i = 1; i < count; i++) ascending = ascending && shares[i - 1].row0 < shares[i].row0;
    if (!ascending) qsort(shares, (size_t)count, sizeof *shares, by_first_row);
    for (int i = 1; i < count; i++) {
        const fsi_ranks_share *a = &shares[i - 1], *b = &shares[i];
        FSI_REQUIRE(a->row0 + a->rows <= b->row0,
                    "%s: rank %" PRId32 " has rows %" PRId64 " to %" PRId64 " of A and rank %" PRId32 " rows %" PRId64
                    " to %" PRId64 ": no row may be on two ranks",
                    who, a->rank, a->row0, a->row0 + a->rows - 1, b->rank, b->row0, b->row0 + b->rows - 1);
    }
    *having = count;
    return FS_OK;
}

/* FS_EINVAL if a row before the last one is on no rank. */
static fs_result check_complete(const fs_mpi *ranks, const char *who, int having, int64_t *rows)
{
    *rows = 0;
    for (int i = 0; i < having; i++) {
        const fsi_ranks_share *share = &ranks->shares[i];
        FSI_REQUIRE(share->row0 == *rows,
                    "%s: rows %" PRId64 " to %" PRId64 " of A are on no rank, and rank %" PRId32
                    " has those from %" PRId64 " on: all rows are needed",
                    who, *rows, share->row0 - 1, share->rank, share->row0);
        *rows += share->rows;
    }
    FSI_REQUIRE(*rows, "%s: no rank has a row of A", who);
    return FS_OK;
}

fs_result fsi_ranks_agree(fs_mpi *ranks, const char *who, fs_result mine, const fsi_ranks_ask *ask, int64_t row0,
                          int64_t rows, int64_t *all_rows)
{
    int having = 0;
    const fsi_ranks_share share = {row0, rows, hash_of(ask), ranks->rank, (int32_t)mine};
    FSI_TRY_MPI(
        MPI_Allgather(&share, (int)sizeof share, MPI_BYTE, ranks->shares, (int)sizeof share, MPI_BYTE, ranks->comm),
        "agreeing on a call");
    for (int r = 0; r < ranks->size; r++)
        if (ranks->shares[r].code != FS_OK) return fsi_ranks_broadcast_error(ranks->comm, r, 0, mine);
    for (int r = 1; r < ranks->size; r++)
        if (ranks->shares[r].call != ranks->shares[0].call) return differ(ranks, who, ask, r);
    FSI_TRY(check_disjoint(ranks, who, &having));
    return all_rows ? check_complete(ranks, who, having, all_rows) : FS_OK;
}
