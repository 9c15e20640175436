/* algorithm1.h - the S of the FlashSketch paper's Algorithm 1 as its authors hash it, for the CPU and the GPU.
 *
 * BlockPerm-SJLT with contiguous blocks of BR output rows.  Row u of input block h, seen from output block g, gets one
 * word; its s rows are shift + i scale modulo BR with scale odd, hence distinct (the affine walk of the paper's
 * appendix), and its signs are bits of the same word.  That is not the library's S. */
#ifndef FSI_BENCH_BASELINES_ALGORITHM1_H
#define FSI_BENCH_BASELINES_ALGORITHM1_H

#include <flashsketch.h>

#include "def/permute.h"
#include "def/wiring.h"

enum { ALGORITHM1_BR = 64, ALGORITHM1_TK = 128, ALGORITHM1_TN = 32 }; /* rows of a block, rows and columns of a tile */

/* M of the paper's sketch, whose blocks are contiguous and of BR rows; 0, which leaves it open, for other shuffles. */
FSI_DEF int64_t algorithm1_blocks(fs_shuffle shuffle, int64_t k)
{
    return shuffle == FS_SHUFFLE_NONE ? (k + ALGORITHM1_BR - 1) / ALGORITHM1_BR : 0;
}

/* The word of row u of input block h for output block g. */
FSI_DEF uint32_t algorithm1_word(uint32_t seed, uint32_t g, uint32_t h, uint32_t u)
{
    const uint32_t x = fsi_mix(u, seed ^ g * 0x9E3779B1u ^ h * 0x85EBCA77u);
    return x ^ x >> 16;
}
/* Nonzero i of a row: its row in the block, and whether its sign is minus. */
FSI_DEF int algorithm1_row(uint32_t w, int i) { return (int)((w >> 26) + i * ((w >> 20) | 1)) & (ALGORITHM1_BR - 1); }
FSI_DEF int algorithm1_minus(uint32_t w, int i) { return w >> i & 1; }

#endif
