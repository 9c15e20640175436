/* slots.h - the rows of A that belong to input block h, in a numbered order: the inverse of the shuffle.
 *
 * A kernel that makes one block of Y walks over the block's slots and asks for the row of each: neighbours for the
 * contiguous sketch, one row of every round of the deal for dealt rows, 32 / c rows of every dealt line for lines.
 * Slots are numbered over all of A, so a piece (rows row0 ... row0 + rows - 1) is a range of them; a slot of that range
 * whose row is not in the piece is an empty one. */
#ifndef FS_CUDA_SLOTS_H
#define FS_CUDA_SLOTS_H

#include "blockperm.h"

typedef struct fs_slots { int64_t first, count; } fs_slots;

/* The slots of block h that may hold rows of the piece. */
FS_DEF fs_slots fs_slots_of(const fs_blockperm *B, int64_t h, int64_t row0, int64_t rows)
{
    fs_slots s = {0, 0};
    if (rows <= 0) return s;
    const int64_t last_row = row0 + rows - 1;
    int64_t last;
    if (B->shuffle == FS_DEF_NONE) {
        const int64_t start = fs_split_start(&B->in, h), end = start + fs_split_size(&B->in, h) - 1;
        s.first = start > row0 ? start : row0;
        last = end < last_row ? end : last_row;
    } else if (B->shuffle == FS_DEF_ROWS) {
        s.first = row0 / B->ways;
        last = last_row / B->ways;
    } else {
        const int64_t per_line = FS_LINE / B->interleave;
        s.first = row0 / FS_LINE / B->ways * per_line;
        last = (last_row / FS_LINE / B->ways + 1) * per_line - 1;
    }
    s.count = last >= s.first ? last - s.first + 1 : 0;
    return s;
}

/* The column of S that slot `slot` of block h holds; one past the end of S (or more) if none. */
FS_DEF int64_t fs_slot_column(const fs_blockperm *B, int64_t h, int64_t slot)
{
    if (B->shuffle == FS_DEF_NONE) return slot;
    if (B->shuffle == FS_DEF_ROWS) return fs_blockperm_dealt(B, h, slot);
    const int64_t c = B->interleave, per_line = FS_LINE / c;
    const int64_t line = fs_blockperm_dealt(B, h / c, slot / per_line);
    return line * FS_LINE + fs_blockperm_class(B, h % c, fs_blockperm_mask(B, line)) + c * (slot % per_line);
}

/* Its row in the piece, or -1. */
FS_DEF int64_t fs_slot_row(const fs_blockperm *B, int64_t h, int64_t slot, int64_t row0, int64_t rows)
{
    const int64_t row = fs_slot_column(B, h, slot) - row0;
    return row >= 0 && row < rows ? row : -1;
}

#endif
