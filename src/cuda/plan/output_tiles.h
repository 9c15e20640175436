/* output_tiles.h - the rows of an output block that a thread block computes: neighbouring bands, 64 rows at most.
 *
 * A block whose strata have more rows than a tile is one tile, which is taller; the kernels with tiles refuse it. */
#ifndef FSI_CUDA_PLAN_OUTPUT_TILES_H
#define FSI_CUDA_PLAN_OUTPUT_TILES_H

#include "def/blockperm.h"

typedef struct fsi_output_tiles {
    int32_t tiles; /* of an output block */
    int32_t bands; /* of a tile, of the last one perhaps fewer */
} fsi_output_tiles;

/* A block as a whole. */
FSI_DEF fsi_output_tiles fsi_output_tiles_whole(const fsi_blockperm *B)
{
    const fsi_output_tiles whole = {1, (int32_t)B->bands};
    return whole;
}
/* The rows of the tallest tile of so many bands. */
FSI_DEF int64_t fsi_output_tiles_rows(const fsi_blockperm *B, fsi_output_tiles of)
{
    const fsi_split *strata = &B->strata[B->out.larger > 0];
    const int64_t last = (int64_t)of.bands * B->per_band;
    return fsi_split_start(strata, last < B->s ? last : B->s);
}
FSI_DEF fsi_output_tiles fsi_output_tiles_of(const fsi_blockperm *B)
{
    fsi_output_tiles of = {(int32_t)B->bands, 1};
    const int64_t rows = fsi_output_tiles_rows(B, of);
    if (rows > FSI_BAND_ROWS) return fsi_output_tiles_whole(B);
    of.bands = (int32_t)(FSI_BAND_ROWS / rows);
    if (of.bands > B->bands) of.bands = (int32_t)B->bands;
    of.tiles = (int32_t)((B->bands + of.bands - 1) / of.bands);
    return of;
}

/* Whether the nonzeros that a column has in a tile are one packed word: those of its only band. */
FSI_DEF int fsi_output_tiles_packed(const fsi_blockperm *B, fsi_output_tiles of) { return B->packed && of.bands == 1; }

#endif
