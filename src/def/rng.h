/* rng.h - where every random bit of S comes from: Philox-4x32-10 and one addressing rule.
 *
 * Philox is a function from a 128-bit counter and a 64-bit key to 128 bits (Salmon, Moraes, Dror, Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011).  The key is the seed, all 64 bits of it.
 * The counter is an address: the purpose of the bits (the tag), the item (a row or column of S), and the
 * word of that item.  There is no stream state, so any entry of S can be generated anywhere, in any order. */
#ifndef FSI_DEF_RNG_H
#define FSI_DEF_RNG_H

#include "def/port.h"

typedef struct fsi_quad {
    uint32_t w[4];
} fsi_quad;

enum fsi_tag {
    FSI_TAG_COLUMN = 1, /* rows and signs of a window of BlockPerm-SJLT */
    FSI_TAG_SHUFFLE,    /* shifts of the rounds of the shuffle */
    FSI_TAG_WIRING,     /* a and b of the block permutations */
    FSI_TAG_GROUP,      /* the classes of a row group */
    FSI_TAG_SAMPLE,     /* coordinates and signs of row i of FlashBlockRow */
    FSI_TAG_NEIGHBOUR,  /* round keys of the neighbourhood of block row g of FlashBlockRow */
    FSI_TAG_FLIP,       /* sign of column j of the SRHT */
    FSI_TAG_PICK,       /* round keys of the row sample of the SRHT */
    FSI_TAG_NORMAL      /* entries of the dense Gaussian */
};

FSI_DEF fsi_quad fsi_philox_round(fsi_quad x, uint32_t key0, uint32_t key1)
{
    const uint64_t p0 = fsi_mul_wide(0xD2511F53u, x.w[0]), p1 = fsi_mul_wide(0xCD9E8D57u, x.w[2]);
    const fsi_quad y = {
        {(uint32_t)(p1 >> 32) ^ x.w[1] ^ key0, (uint32_t)p1, (uint32_t)(p0 >> 32) ^ x.w[3] ^ key1, (uint32_t)p0}};
    return y;
}
FSI_DEF fsi_quad fsi_philox(fsi_quad x, uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < 10; round++) {
        x = fsi_philox_round(x, key0, key1);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return x;
}

/* The same with precomputed round keys, for a GPU, where computing them takes a third of all instructions. */
typedef struct fsi_philox_keys {
    uint32_t key[10][2];
} fsi_philox_keys;

FSI_DEF fsi_philox_keys fsi_philox_keys_of(uint64_t seed)
{
    fsi_philox_keys keys;
    for (uint32_t round = 0; round < 10; round++) {
        keys.key[round][0] = (uint32_t)seed + round * 0x9E3779B9u;
        keys.key[round][1] = (uint32_t)(seed >> 32) + round * 0xBB67AE85u;
    }
    return keys;
}
FSI_DEF fsi_quad fsi_philox_by(const fsi_philox_keys *keys, fsi_quad x)
{
    for (int round = 0; round < 10; round++) x = fsi_philox_round(x, keys->key[round][0], keys->key[round][1]);
    return x;
}

/* The counter of address (tag, item, e, attempt); item < 2^48, e < 2^32, attempt < 2^16. */
FSI_DEF fsi_quad fsi_random_counter(uint32_t tag, uint64_t item, uint32_t e, uint32_t attempt)
{
    const fsi_quad counter = {{(uint32_t)item, (uint32_t)(item >> 32) | attempt << 16, e, tag}};
    return counter;
}

/* Four words at that address. */
FSI_DEF fsi_quad fsi_random_quad(uint64_t seed, uint32_t tag, uint64_t item, uint32_t e, uint32_t attempt)
{
    return fsi_philox(fsi_random_counter(tag, item, e, attempt), (uint32_t)seed, (uint32_t)(seed >> 32));
}
/* The same with the rounds as a loop: on a GPU, code that runs once costs more in instruction fetches than in
 * execution. */
FSI_DEF fsi_quad fsi_random_quad_rolled(uint64_t seed, uint32_t tag, uint64_t item, uint32_t e)
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    fsi_quad x = fsi_random_counter(tag, item, e, 0);
    FSI_ROLLED for (int round = 0; round < 10; round++)
    {
        x = fsi_philox_round(x, key0, key1);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return x;
}
/* The word of a quad that belongs to item i. */
FSI_DEF uint32_t fsi_quad_word(fsi_quad q, uint64_t i)
{
    const uint32_t lo = i & 1 ? q.w[1] : q.w[0], hi = i & 1 ? q.w[3] : q.w[2];
    return i & 2 ? hi : lo;
}
/* Word e of item i.  Four neighbouring items share a quad, so a run of columns costs a quarter of a
 * Philox call each. */
FSI_DEF uint32_t fsi_random_word(uint64_t seed, uint32_t tag, uint64_t i, uint32_t e, uint32_t attempt)
{
    return fsi_quad_word(fsi_random_quad(seed, tag, i >> 2, e, attempt), i);
}

#endif
