/* problem.c - what the choice of a kernel depends on, of a sketch and a matrix. */
#include "base/dtype.h"
#include "base/math.h"
#include "cuda/plan/local_rows.h"
#include "cuda/plan/output_tiles.h"
#include "cuda/plan/plan.h"

fsi_problem fsi_problem_of(const fsi_blockperm *S, int64_t row0, const fs_matrix *A, fs_precision precision)
{
    fsi_problem p = {.rows = A->rows,
                     .n = A->cols,
                     .k = S->k,
                     .M = S->M,
                     .kappa = S->kappa,
                     .s = S->s,
                     .interleave = S->interleave,
                     .block_rows = S->out.small + (S->out.larger > 0),
                     .shuffle = S->shuffle,
                     .dtype = A->dtype,
                     .precision = precision};
    p.local_rows = S->shuffle == FSI_DEF_NONE ? fsi_min(S->in.small + (S->in.larger > 0), A->rows)
                                              : fsi_local_rows_of(S, 0, row0, A->rows).count;
    p.across = A->col_stride == 1 || A->cols == 1;
    p.down = A->row_stride == 1 && A->cols > 1;
    const int64_t pitch = (p.across ? A->row_stride : A->col_stride) * fsi_dtype_size(A->dtype);
    p.aligned = (uintptr_t)A->data % 16 == 0 && pitch % 16 == 0;
    /* Row groups start at multiples of 32 rows of the whole input. */
    if (p.down && row0 * fsi_dtype_size(A->dtype) % 16 != 0) p.aligned = 0;
    p.whole = p.aligned && (p.across ? A->cols : A->rows) * fsi_dtype_size(A->dtype) % 16 == 0;
    /* Strides and sides of a map are positive, its coordinates have 31 bits, and a slice may end behind the last
     * row. */
    const int describable = A->rows > 0 && A->rows <= INT32_MAX - (1 << 16) && A->cols <= INT32_MAX - (1 << 16);
    if (p.across) p.mapped = (A->rows == 1 || A->row_stride > 0) && p.whole && describable && pitch < (int64_t)1 << 40;
    else p.mapped = p.down && A->col_stride > 0 && p.aligned && describable && pitch < (int64_t)1 << 40;
    const fsi_output_tiles tiles = fsi_output_tiles_of(S);
    p.tiles = tiles.tiles;
    p.tile_rows = fsi_output_tiles_rows(S, tiles);
    p.tile_nonzeros = fsi_min(S->s, (int64_t)tiles.bands * S->per_band);
    p.packed = fsi_output_tiles_packed(S, tiles);
    return p;
}
