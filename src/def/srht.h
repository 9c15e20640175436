/* srht.h - the subsampled randomized Hadamard transform, for every d.
 *
 * S = (1 / sqrt k) R H D: D random signs of the d coordinates, H the Walsh-Hadamard matrix of order N, the
 * power of two at or above d (its columns past d are left out: nothing is padded), R a choice of k
 * distinct rows of H, the first k values of a keyed bijection of [N].  Every entry is +-1 / sqrt k. */
#ifndef FSI_DEF_SRHT_H
#define FSI_DEF_SRHT_H

#include "def/permute.h"

typedef struct fsi_srht {
    uint64_t seed;
    int64_t d, k, N;
    fsi_bijection pick;
} fsi_srht;

FSI_DEF int64_t fsi_srht_order(int64_t d)
{
    int64_t N = 1;
    while (N < d) N *= 2;
    return N;
}
FSI_DEF fsi_srht fsi_srht_make(uint64_t seed, int64_t d, int64_t k)
{
    fsi_srht H;
    H.seed = seed;
    H.d = d;
    H.k = k;
    H.N = fsi_srht_order(d);
    H.pick = fsi_bijection_make(seed, FSI_TAG_PICK, 0, (uint64_t)H.N);
    return H;
}
/* The row of the Hadamard matrix that row i of S is. */
FSI_DEF uint64_t fsi_srht_row(const fsi_srht *H, int64_t i) { return fsi_permute(&H->pick, (uint64_t)i); }

/* 1 where column j is negated by D. */
FSI_DEF uint32_t fsi_srht_flip(const fsi_srht *H, int64_t j)
{
    return fsi_random_word(H->seed, FSI_TAG_FLIP, (uint64_t)j, 0, 0) >> 31;
}
/* 1 where the Hadamard entry (row, j) is -1: the parity of the common bits. */
FSI_DEF uint32_t fsi_hadamard_minus(uint64_t row, uint64_t j)
{
    uint64_t x = row & j;
    x ^= x >> 32;
    x ^= x >> 16;
    x ^= x >> 8;
    x ^= x >> 4;
    return (0x6996u >> (x & 15)) & 1;
}

#endif
