/* local_rows.h - the rows of A that are assigned to input block h, numbered: the inverse of the shuffle.
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
        s.first = start > row0 ? start : row0;
        last = end < last_row ? end : last_row;
    } else if (B->shuffle == FSI_DEF_ROWS) {
        s.first = row0 / B->ways;
        last = last_row / B->ways;
    } else {
        const int64_t per_line = FSI_GROUP_ROWS / B->interleave;
        s.first = row0 / FSI_GROUP_ROWS / B->ways * per_line;
        last = (last_row / FSI_GROUP_ROWS / B->ways + 1) * per_line - 1;
    }
    s.count = last >= s.first ? last - s.first + 1 : 0;
    return s;
}

/* The column of S of a local row of block h; one past the end of S (or more) if none. */
FSI_DEF int64_t fsi_local_row_column(const fsi_blockperm *B, int64_t h, int64_t local_row)
{
    if (B->shuffle == FSI_DEF_NONE) return local_row;
    if (B->shuffle == FSI_DEF_ROWS) return fsi_blockperm_assigned(B, h, local_row);
    const int64_t c = B->interleave, per_line = FSI_GROUP_ROWS / c;
    const int64_t line = fsi_blockperm_assigned(B, h / c, local_row / per_line);
    return line * FSI_GROUP_ROWS + fsi_blockperm_class(B, h % c, fsi_blockperm_mask(B, line)) +
           c * (local_row % per_line);
}

/* Its row in the slice, or -1. */
FSI_DEF int64_t fsi_local_row_source(const fsi_blockperm *B, int64_t h, int64_t local_row, int64_t row0, int64_t rows)
{
    const int64_t row = fsi_local_row_column(B, h, local_row) - row0;
    return row >= 0 && row < rows ? row : -1;
}

#endif
