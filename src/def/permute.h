/* permute.h - a keyed bijection of [n], forward and inverse, for every n up to 2^48, without tables.
 *
 * x is split as (L, R): R the low r bits, L = x >> r below `high`, so the pairs number high * 2^r, at least n
 * and less than n + 2^r with 2^r about sqrt(n).  Six Feistel half-rounds alternate
 *     R ^= the top r bits of mix(L ^ key),    L = (L + floor(high * mix(R ^ key) / 2^32)) mod high;
 * a result outside [n] is walked on, which a share of at most 2^r / n of the inputs needs.  Both halves fit
 * 32 bits at every n, and adding modulo `high` instead of rounding n up to a power of two keeps the walk rare,
 * so the lanes of a vector or a warp stay together.  The last half-round changes L, because the block of
 * a row is decided by the high part of P(x). */
#ifndef FS_DEF_PERMUTE_H
#define FS_DEF_PERMUTE_H

#include "rng.h"

enum { FS_ROUNDS = 6 };

typedef struct fs_bijection {
    uint64_t n;
    uint32_t high;  /* number of values of L */
    uint32_t bits;  /* r */
    uint32_t key[FS_ROUNDS];
} fs_bijection;

/* The bijection of [n] whose round keys stand at address (tag, 0 ... 5, e). */
FS_DEF fs_bijection fs_bijection_make(uint64_t seed, uint32_t tag, uint32_t e, uint64_t n)
{
    fs_bijection P;
    uint32_t width = 0;
    while (((uint64_t)1 << width) < n) width++;
    P.n = n;
    P.bits = (width + 1) / 2;
    P.high = (uint32_t)((n + ((uint64_t)1 << P.bits) - 1) >> P.bits);
    for (uint32_t i = 0; i < FS_ROUNDS; i++) P.key[i] = fs_random_word(seed, tag, i, e, 0);
    return P;
}

/* A hash of x for its high bits; two multiplications. */
FS_DEF uint32_t fs_mix(uint32_t x)
{
    x *= 0x9E3779B1u;
    x ^= x >> 15;
    return x * 0x85EBCA77u;
}
/* floor(b x / 2^32): x's high bits as a number below b. */
FS_DEF uint32_t fs_scale32(uint32_t x, uint64_t b) { return (uint32_t)((x * b) >> 32); }

/* One pass of the network, a bijection of [high 2^r]; fs_permute repeats it until the result is below n. */
FS_DEF uint64_t fs_permute_pass(const fs_bijection *P, uint64_t x)
{
    const uint64_t side = (uint64_t)1 << P->bits;
    uint32_t L = (uint32_t)(x >> P->bits), R = (uint32_t)(x & (side - 1));
    for (int i = 0; i < FS_ROUNDS; i += 2) {
        R ^= fs_scale32(fs_mix(L ^ P->key[i]), side);
        const uint32_t sum = L + fs_scale32(fs_mix(R ^ P->key[i + 1]), P->high);
        L = sum >= P->high ? sum - P->high : sum;
    }
    return (uint64_t)L << P->bits | R;
}
FS_DEF uint64_t fs_permute(const fs_bijection *P, uint64_t x)
{
    do x = fs_permute_pass(P, x);
    while (x >= P->n);
    return x;
}

FS_DEF uint64_t fs_permute_inverse(const fs_bijection *P, uint64_t x)
{
    const uint64_t side = (uint64_t)1 << P->bits;
    do {
        uint32_t L = (uint32_t)(x >> P->bits), R = (uint32_t)(x & (side - 1));
        for (int i = FS_ROUNDS - 2; i >= 0; i -= 2) {
            const uint32_t step = fs_scale32(fs_mix(R ^ P->key[i + 1]), P->high);
            L = L >= step ? L - step : L + (P->high - step);
            R ^= fs_scale32(fs_mix(L ^ P->key[i]), side);
        }
        x = (uint64_t)L << P->bits | R;
    } while (x >= P->n);
    return x;
}

#endif
