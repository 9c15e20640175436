/* reduce.c - one tile of Y summed over ranks, without waiting: in MPI's order, or in the order of ranks.
 *
 * In MPI's order it is one collective: Iallreduce, Ireduce or Ireduce_scatter.
 *
 * In the order of ranks every rank sums some rows of the tile, those from first[rank] on:
 *     1. Ialltoallv      each rank sends to each the rows which that one sums;
 *     2. fs_add          P partial results added in the order of ranks, in f64, rounded once;
 *     3. Iallgatherv, or Igatherv to the root; nothing where Y is scattered: each rank then has its rows.
 * A rank sends and receives 2 (P - 1) / P of a tile, as the best all-reduce does, whatever P is.
 *
 * Steps of different tiles are begun in the same order on all ranks, as MPI requires of collectives. */
#include "ranks.h"

static MPI_Datatype type_of(fs_dtype sum) { return sum == FS_F64 ? MPI_DOUBLE : MPI_FLOAT; }
static int64_t own(const fs_mpi *m) { return m->first[m->rank + 1] - m->first[m->rank]; }
/* Rows r of the tile in slot->part. */
static char *rows_at(const fsi_ranks_slot *slot, int64_t row, fs_dtype sum)
{
    return slot->part + row * slot->cols * (int64_t)fs_dtype_size(sum);
}

int64_t fsi_ranks_rows(const fs_mpi *m, int64_t k)
{
    if (m->output == FS_MPI_SCATTER) return own(m);
    return m->output == FS_MPI_ALL || m->rank == m->options.root ? k : 0;
}
int64_t fsi_ranks_received(const fs_mpi *m, int64_t k, int64_t cols)
{
    return (m->options.ordered ? own(m) * m->size : fsi_ranks_rows(m, k)) * cols;
}
int64_t fsi_ranks_largest(const fs_mpi *m, int64_t k)
{
    const int64_t most = m->first[1] * m->size; /* rank 0 has as many rows as any */
    return m->options.ordered && most > k ? most : k;
}

/* counts and starts of all ranks' rows in a tile of the whole height. */
static void count_rows(const fs_mpi *m, const fsi_ranks_slot *slot, int which)
{
    for (int r = 0; r < m->size; r++) {
        slot->counts[which][r] = (int)((m->first[r + 1] - m->first[r]) * slot->cols);
        slot->starts[which][r] = (int)(m->first[r] * slot->cols);
    }
}

static int begin_in_mpis_order(fs_mpi *m, fsi_ranks_slot *slot, MPI_Datatype type)
{
    const int all = (int)(m->first[m->size] * slot->cols);
    switch (m->output) {
    case FS_MPI_ALL: return MPI_Iallreduce(slot->part, slot->other, all, type, MPI_SUM, m->comm, &slot->request);
    case FS_MPI_ROOT:
        return MPI_Ireduce(slot->part, slot->other, all, type, MPI_SUM, m->options.root, m->comm, &slot->request);
    default:
        count_rows(m, slot, 0);
        return MPI_Ireduce_scatter(slot->part, slot->other, slot->counts[0], type, MPI_SUM, m->comm, &slot->request);
    }
}

fs_result fsi_ranks_begin(fs_mpi *m, fsi_ranks_slot *slot, fs_dtype sum)
{
    const MPI_Datatype type = type_of(sum);
    if (!m->options.ordered) return fsi_ranks_check(begin_in_mpis_order(m, slot, type), "summing a tile of Y");
    count_rows(m, slot, 0);
    for (int r = 0; r < m->size; r++) {
        slot->counts[1][r] = (int)(own(m) * slot->cols);
        slot->starts[1][r] = r * slot->counts[1][r];
    }
    return fsi_ranks_check(MPI_Ialltoallv(slot->part, slot->counts[0], slot->starts[0], type, slot->other,
                                          slot->counts[1], slot->starts[1], type, m->comm, &slot->request),
                           "exchanging shares of a tile of Y");
}

/* The sum of the received data in the order of ranks, into this rank's rows of the tile. */
static fs_result add_planes(fs_mpi *m, const fsi_ranks_slot *slot, fs_dtype sum)
{
    const int64_t values = own(m) * slot->cols;
    for (int r = 0; r < m->size; r++)
        m->planes[r] = fs_row_major(slot->other + r * values * (int64_t)fs_dtype_size(sum), own(m), slot->cols, sum);
    fs_matrix mine = fs_row_major(rows_at(slot, m->first[m->rank], sum), own(m), slot->cols, sum);
    return fs_add(m->ctx, m->planes, m->size, 0.0, &mine);
}

fs_result fsi_ranks_hand_out(fs_mpi *m, fsi_ranks_slot *slot, fs_dtype sum)
{
    if (!m->options.ordered) return FS_OK;
    FSI_TRY_MPI(MPI_Wait(&slot->request, MPI_STATUS_IGNORE), "exchanging shares of a tile of Y");
    FSI_TRY(add_planes(m, slot, sum));
    const MPI_Datatype type = type_of(sum);
    const int at_root = m->rank == m->options.root;
    if (m->output == FS_MPI_ALL)
        FSI_TRY_MPI(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, slot->part, slot->counts[0], slot->starts[0], type, m->comm,
                                    &slot->request),
                    "distributing a tile of Y");
    if (m->output == FS_MPI_ROOT)
        FSI_TRY_MPI(MPI_Igatherv(at_root ? MPI_IN_PLACE : rows_at(slot, m->first[m->rank], sum),
                                 slot->counts[0][m->rank], type, slot->part, slot->counts[0], slot->starts[0], type,
                                 m->options.root, m->comm, &slot->request),
                    "gathering a tile of Y on the root");
    return FS_OK;
}

fs_result fsi_ranks_end(fs_mpi *m, fsi_ranks_slot *slot, fs_dtype sum, void **rows)
{
    FSI_TRY_MPI(MPI_Wait(&slot->request, MPI_STATUS_IGNORE), "summing a tile of Y");
    const int64_t first = m->output == FS_MPI_SCATTER ? m->first[m->rank] : 0;
    *rows = m->options.ordered ? rows_at(slot, first, sum) : slot->other;
    return FS_OK;
}
