/* solve.c - the solvers of flashsketch_solvers.h on a matrix whose rows are spread over ranks: sums for fs_ranks.
 *
 * A sum begins with an all-reduce of four numbers: the lowest rank that has failed, the smallest and the largest count,
 * and whether all have failed, as they do where a sum is not finite.  So no rank waits for one that has failed, or that
 * sums other numbers.  The numbers then are added
 *     in the order of ranks, few: an all-gather, and every rank adds all of them;
 *     in the order of ranks, many: Alltoallv, each rank adds its share, Allgatherv; as reduce.c does with tiles;
 *     in MPI's order: MPI_Reduce to rank 0 and MPI_Bcast.
 * MPI_Allreduce is not used: solvers need the same bits on every rank, which MPI recommends for it and does not
 * guarantee. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "ranks.h"

/* Numbers that are summed together, whose counts fit an int, and that a rank has room for; numbers up to which an
 * all-gather, of 8 P bytes a number in log2 P messages, is chosen before 16 bytes in 2 P messages: a network of
 * 12.5 GB/s and 2 us a message takes as long for both at 6000 numbers, whatever P is, one of 5 GB/s and 0.5 us at 600. */
enum { PIECE = 1 << 22, GATHERED = 1 << 11 };

/* One failure for all ranks, or FS_OK: all sum `count` numbers. */
static fs_result agree_on_sum(fs_mpi *m, int64_t count, fs_result mine)
{
    const int64_t ask[4] = {mine == FS_OK ? INT64_MAX : m->rank, count, -count, mine != FS_OK};
    int64_t all[4];
    FSI_TRY_MPI(MPI_Allreduce(ask, all, 4, MPI_INT64_T, MPI_MIN, m->comm), "agreeing on a sum");
    if (all[0] != INT64_MAX) return fsi_ranks_broadcast_error(m->comm, (int)all[0], all[3] && m->size > 1, mine);
    FSI_REQUIRE(all[1] == -all[2],
                "ranks sum %" PRId64 " and %" PRId64 " numbers at a time: they do not solve the same problem", all[1],
                -all[2]);
    return FS_OK;
}

static int is_gathered(const fs_mpi *m, int64_t count) { return count <= GATHERED && count * m->size <= PIECE; }

/* The first number of rank r's share of `count`. */
static int share(const fs_mpi *m, int64_t count, int r) { return (int)(count * r / m->size); }

/* Room for what comes from the other ranks, in numbers. */
static int64_t room_for(const fs_mpi *m, int64_t count)
{
    if (!m->options.ordered || m->size == 1) return 0;
    if (is_gathered(m, count)) return count * m->size;
    const int64_t piece = count < PIECE ? count : PIECE;
    return (piece / m->size + 1) * m->size;
}

/* to[i] = the sum over ranks of from[i + r count], in the order of ranks; from == to is allowed. */
static void add_in_order(const double *from, int ranks, int64_t count, double *to)
{
    for (int64_t i = 0; i < count; i++) {
        double sum = from[i];
        for (int r = 1; r < ranks; r++) sum += from[i + r * count];
        to[i] = sum;
    }
}

static fs_result sum_in_order(fs_mpi *m, double *values, int count)
{
    double *other = (double *)(void *)m->scratch;
    if (is_gathered(m, count)) {
        FSI_TRY_MPI(MPI_Allgather(values, count, MPI_DOUBLE, other, count, MPI_DOUBLE, m->comm), "gathering numbers");
        add_in_order(other, m->size, count, values);
        return FS_OK;
    }
    const fsi_ranks_slot *slot = &m->slots[0];
    const int first = share(m, count, m->rank), own = share(m, count, m->rank + 1) - first;
    for (int r = 0; r < m->size; r++) {
        slot->starts[0][r] = share(m, count, r);
        slot->counts[0][r] = share(m, count, r + 1) - slot->starts[0][r];
        slot->counts[1][r] = own;
        slot->starts[1][r] = r * own;
    }
    FSI_TRY_MPI(MPI_Alltoallv(values, slot->counts[0], slot->starts[0], MPI_DOUBLE, other, slot->counts[1],
                              slot->starts[1], MPI_DOUBLE, m->comm),
                "exchanging numbers");
    add_in_order(other, m->size, own, values + first);
    return fsi_ranks_check(
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DOUBLE, values, slot->counts[0], slot->starts[0], MPI_DOUBLE, m->comm),
        "distributing sums");
}

static fs_result sum_in_mpis_order(fs_mpi *m, double *values, int count)
{
    FSI_TRY_MPI(m->rank == 0 ? MPI_Reduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, 0, m->comm)
                             : MPI_Reduce(values, NULL, count, MPI_DOUBLE, MPI_SUM, 0, m->comm),
                "summing numbers");
    return fsi_ranks_check(MPI_Bcast(values, count, MPI_DOUBLE, 0, m->comm), "distributing sums");
}

/* fs_ranks.sum */
static fs_result sum_over_ranks(void *user, double *values, int64_t count, int failed)
{
    fs_mpi *m = user;
    fs_result mine = (fs_result)failed;
    const int64_t room = room_for(m, count);
    if (mine == FS_OK && room && !fsi_ranks_scratch(m, "fs_mpi_ranks", (size_t)room * sizeof *values)) mine = FS_ENOMEM;
    FSI_TRY(agree_on_sum(m, count, mine));
    if (m->size == 1) return FS_OK;
    for (int64_t at = 0; at < count; at += PIECE) {
        const int piece = (int)(count - at < PIECE ? count - at : PIECE);
        FSI_TRY(m->options.ordered ? sum_in_order(m, values + at, piece) : sum_in_mpis_order(m, values + at, piece));
    }
    return FS_OK;
}

fs_result fs_mpi_ranks(fs_mpi *ranks, int64_t row0, int64_t rows, fs_ranks *out)
{
    const char *who = "fs_mpi_ranks";
    FSI_REQUIRE(ranks, "%s: ranks is NULL", who);
    fs_result mine = FS_OK;
    fs_ranks made = FS_RANKS_INIT;
    if (!out) mine = fs_fail(FS_EINVAL, "%s: out is NULL", who);
    else if (row0 < 0 || rows < 0 || row0 > INT64_MAX - rows)
        mine = fs_fail(FS_EINVAL, "%s: %" PRId64 " rows from row %" PRId64 " on are no rows of a matrix", who, rows,
                       row0);
    else mine = fs_struct_check(who, "out", out, sizeof *out);
    /* A request that no product makes, so that a rank that calls another function is detected. */
    const fsi_ranks_ask ask = {{[FSI_ASK_VERSION] = fs_definition_version(), [FSI_ASK_COLS] = -1}};
    FSI_TRY(fsi_ranks_agree(ranks, who, mine, &ask, row0, rows, &made.rows));
    made.row0 = rows ? row0 : 0;
    made.sum = sum_over_ranks;
    made.user = ranks;
    fs_struct_write(out, &made, sizeof made);
    return FS_OK;
}
