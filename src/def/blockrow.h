/* blockrow.h - FlashBlockRow: each row of S samples s coordinates from each of kappa input blocks.
 *
 * Block row g of Y reads kappa distinct input blocks, kappa successive values of a keyed bijection of [M] of its
 * own; row i of it draws, from each of them, s coordinates uniformly (with replacement) and s signs.  A draw
 * weighs sqrt(M B_c(h) / (k kappa s)), which is the paper's sqrt(d / (k kappa s)) where M divides d and
 * keeps E |S x|^2 = |x|^2 where it does not.  Columns that no row draws are zero: fast and fragile
 * (the paper's appendix); a coherent input can lose its rows of high leverage altogether. */
#ifndef FSI_DEF_BLOCKROW_H
#define FSI_DEF_BLOCKROW_H

#include "def/permute.h"
#include "def/split.h"
#include "def/uniform.h"

typedef struct fsi_blockrow {
    uint64_t seed;
    int64_t d, k, M, kappa, s;
    fsi_split out, in; /* [k] and [d] into M blocks each */
} fsi_blockrow;

FSI_DEF fsi_blockrow fsi_blockrow_make(uint64_t seed, int64_t d, int64_t k, int64_t M, int64_t kappa, int64_t s)
{
    fsi_blockrow R;
    R.seed = seed;
    R.d = d;
    R.k = k;
    R.M = M;
    R.kappa = kappa;
    R.s = s;
    R.out = fsi_split_make(k, M);
    R.in = fsi_split_make(d, M);
    return R;
}

/* The neighbourhood of block row g: a bijection of [M], read from a uniform position on.  A keyed bijection of few
 * elements is not uniform by itself; its value at a uniform position is, and E |S x|^2 needs no more. */
typedef struct fsi_neighbours {
    fsi_bijection P;
    uint64_t first;
} fsi_neighbours;

FSI_DEF fsi_neighbours fsi_blockrow_neighbours(const fsi_blockrow *R, int64_t g)
{
    fsi_neighbours N;
    N.P = fsi_bijection_make(R->seed, FSI_TAG_NEIGHBOUR, (uint32_t)g, (uint64_t)R->M);
    N.first = fsi_random_below(R->seed, FSI_TAG_NEIGHBOUR, FSI_KEYS, (uint32_t)g, (uint32_t)R->M);
    return N;
}
/* Its input block l = 0 ... kappa - 1. */
FSI_DEF int64_t fsi_blockrow_neighbour(const fsi_neighbours *N, int64_t l)
{
    return (int64_t)fsi_permute(&N->P, (N->first + (uint64_t)l) % N->P.n);
}

/* Draw e = l s + t of row i, in input block h: the coordinate; *minus is 1 if its sign is minus. */
FSI_DEF int64_t fsi_blockrow_draw(const fsi_blockrow *R, int64_t i, int64_t h, int64_t e, int *minus)
{
    const uint32_t size = (uint32_t)fsi_split_size(&R->in, h);
    const uint32_t code = fsi_random_below(R->seed, FSI_TAG_SAMPLE, (uint64_t)i, (uint32_t)e, 2 * size);
    *minus = (int)(code & 1);
    return fsi_split_start(&R->in, h) + (int64_t)(code >> 1);
}

/* The square of a draw's weight in block h. */
FSI_DEF double fsi_blockrow_weight2(const fsi_blockrow *R, int64_t h)
{
    return (double)(R->M * fsi_split_size(&R->in, h)) / (double)(R->k * R->kappa * R->s);
}

#endif
