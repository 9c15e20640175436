/* blockrow.h - FlashBlockRow: each row of S samples s coordinates from each of kappa input blocks.
 *
 * Block row g of Y reads kappa distinct input blocks, kappa successive values of a keyed bijection of [M] of its
 * own; row i of it draws, from each of them, s coordinates uniformly (with replacement) and s signs.  A draw
 * weighs sqrt(M B_c(h) / (k kappa s)), which is the paper's sqrt(d / (k kappa s)) where M divides d and
 * keeps E |S x|^2 = |x|^2 where it does not.  Columns that no row draws are zero: fast and fragile
 * (the paper's appendix); a coherent input can lose its heavy rows altogether. */
#ifndef FS_DEF_BLOCKROW_H
#define FS_DEF_BLOCKROW_H

#include "permute.h"
#include "split.h"
#include "uniform.h"

typedef struct fs_blockrow {
    uint64_t seed;
    int64_t d, k, M, kappa, s;
    fs_split out, in;  /* [k] and [d] into M blocks each */
} fs_blockrow;

FS_DEF fs_blockrow fs_blockrow_make(uint64_t seed, int64_t d, int64_t k, int64_t M, int64_t kappa, int64_t s)
{
    fs_blockrow R;
    R.seed = seed;
    R.d = d;
    R.k = k;
    R.M = M;
    R.kappa = kappa;
    R.s = s;
    R.out = fs_split_make(k, M);
    R.in = fs_split_make(d, M);
    return R;
}

/* The neighbourhood of block row g: a bijection of [M], read from a uniform place on.  A keyed bijection of few
 * elements is not uniform by itself; its value at a uniform place is, and E |S x|^2 needs no more. */
typedef struct fs_neighbours {
    fs_bijection P;
    uint64_t first;
} fs_neighbours;

FS_DEF fs_neighbours fs_blockrow_neighbours(const fs_blockrow *R, int64_t g)
{
    fs_neighbours N;
    N.P = fs_bijection_make(R->seed, FS_TAG_NEIGHBOUR, (uint32_t)g, (uint64_t)R->M);
    N.first = fs_random_below(R->seed, FS_TAG_NEIGHBOUR, FS_KEYS, (uint32_t)g, (uint32_t)R->M);
    return N;
}
/* Its input block l = 0 ... kappa - 1. */
FS_DEF int64_t fs_blockrow_neighbour(const fs_neighbours *N, int64_t l)
{
    return (int64_t)fs_permute(&N->P, (N->first + (uint64_t)l) % N->P.n);
}

/* Draw e = l s + t of row i, in input block h: the coordinate; *minus says its sign. */
FS_DEF int64_t fs_blockrow_draw(const fs_blockrow *R, int64_t i, int64_t h, int64_t e, int *minus)
{
    const uint32_t size = (uint32_t)fs_split_size(&R->in, h);
    const uint32_t code = fs_random_below(R->seed, FS_TAG_SAMPLE, (uint64_t)i, (uint32_t)e, 2 * size);
    *minus = (int)(code & 1);
    return fs_split_start(&R->in, h) + (int64_t)(code >> 1);
}

/* The square of a draw's weight in block h. */
FS_DEF double fs_blockrow_weight2(const fs_blockrow *R, int64_t h)
{
    return (double)(R->M * fs_split_size(&R->in, h)) / (double)(R->k * R->kappa * R->s);
}

#endif
