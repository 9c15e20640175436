/* srht.h - the subsampled randomized Hadamard transform, for every d.
 *
 * S = (1 / sqrt k) R H D: D random signs of the d coordinates, H the Walsh-Hadamard matrix of order N, the
 * power of two at or above d (its columns past d are simply not there: nothing is padded), R a choice of k
 * distinct rows of H, the first k values of a keyed bijection of [N].  Every entry is +-1 / sqrt k. */
#ifndef FS_DEF_SRHT_H
#define FS_DEF_SRHT_H

#include "permute.h"

typedef struct fs_srht {
    uint64_t seed;
    int64_t d, k, N;
    fs_bijection pick;
} fs_srht;

FS_DEF int64_t fs_srht_order(int64_t d)
{
    int64_t N = 1;
    while (N < d) N *= 2;
    return N;
}
FS_DEF fs_srht fs_srht_make(uint64_t seed, int64_t d, int64_t k)
{
    fs_srht H;
    H.seed = seed;
    H.d = d;
    H.k = k;
    H.N = fs_srht_order(d);
    H.pick = fs_bijection_make(seed, FS_TAG_PICK, 0, (uint64_t)H.N);
    return H;
}
/* The row of the Hadamard matrix that row i of S is. */
FS_DEF uint64_t fs_srht_row(const fs_srht *H, int64_t i) { return fs_permute(&H->pick, (uint64_t)i); }

/* 1 where column j is negated by D. */
FS_DEF uint32_t fs_srht_flip(const fs_srht *H, int64_t j)
{
    return fs_random_word(H->seed, FS_TAG_FLIP, (uint64_t)j, 0, 0) >> 31;
}
/* 1 where the Hadamard entry (row, j) is -1: the parity of the common bits. */
FS_DEF uint32_t fs_hadamard_minus(uint64_t row, uint64_t j)
{
    uint64_t x = row & j;
    x ^= x >> 32;
    x ^= x >> 16;
    x ^= x >> 8;
    x ^= x >> 4;
    return (0x6996u >> (x & 15)) & 1;
}

#endif
