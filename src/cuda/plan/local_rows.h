/* local_rows.h - the local rows of input block h (def/blockperm.h) that a row slice of A may hold.
 *
 * A kernel that computes one block of Y iterates over the block's local rows: neighbours for contiguous blocks, one row of
 * every round for shuffled rows, 32 / c rows of every row group of the block for shuffled row groups.
 * Local rows are numbered over all of A, so a row slice (rows row0 ... row0 + rows - 1) is a range of them; a local row of
 * that range whose row is not in the slice is empty. */
#ifndef FSI_CUDA_PLAN_LOCAL_ROWS_H
#define FSI_CUDA_PLAN_LOCAL_ROWS_H

#include "def/blockperm.h"

typedef struct fsi_local_rows {
    int64_t first, count;
} fsi_local_rows;

/* The local rows of block h that may hold rows of the slice. */
FSI_DEF fsi_local_rows fsi_local_rows_of(const fsi_blockperm *B, int64_t h, int64_t row0, int64_t rows)
{
    fsi_local_rows s = {0, 0};
    if (rows <= 0) return s;
    const int64_t last_row = row0 + rows - 1;
    int64_t last;
    if (B->shuffle == FSI_DEF_NONE) {
        const int64_t start = fsi_split_start(&B->in, h), end = start + fsi_split_size(&B->in, h) - 1;
        s.first = start > row0 ? 0 : row0 - start;
        last = (end < last_row ? end : last_row) - start;
    } else if (B->shuffle == FSI_DEF_ROWS) {
        s.first = row0 / B->ways;
        last = last_row / B->ways;
    } else {
        const int64_t each = FSI_GROUP_ROWS / B->interleave;
        s.first = row0 / FSI_GROUP_ROWS / B->ways * each;
        last = (last_row / FSI_GROUP_ROWS / B->ways + 1) * each - 1;
    }
    s.count = last >= s.first ? last - s.first + 1 : 0;
    return s;
}

/* The row of the slice that a local row of block h is, or -1. */
FSI_DEF int64_t fsi_local_row_source(const fsi_blockperm *B, int64_t h, int64_t local_row, int64_t row0, int64_t rows)
{
    const int64_t row = fsi_blockperm_column(B, h, local_row) - row0;
    return row >= 0 && row < rows ? row : -1;
}

#endif
