/* permute.h - a keyed bijection of [n], forward and inverse, for every n up to 2^48, without tables.
 *
 * x is split as (L, R): R the low r bits, L = x >> r below `high`, so the pairs number high * 2^r, at least n
 * and less than n + 2^r with 2^r about sqrt(n).  A pass is six Feistel half-rounds that alternate
 *     R ^= the top r bits of mix(L, key),    L = (L + floor(high * mix(R, key) / 2^32)) mod high;
 * below n = 256, where so few rounds leave pairs correlated, there are three passes with keys of their own.  Results
 * outside [n] are cycle-walked; this affects at most a fraction 2^r / n of the inputs.  Both halves fit 32 bits at
 * every n, and adding modulo `high` instead of rounding n up to a power of two keeps cycle walking rare, so the lanes
 * of a vector or a warp rarely diverge.  The bijection picks the rows of the SRHT and the neighbours of FlashBlockRow.
 *
 * Measured over 60000 seeds, on the number of pairs of 1024 consecutive inputs that fall into one of 64 blocks: six
 * rounds are at the kurtosis of a random map (3.2) from n = 4096 on; so are four, but pairs are correlated up to
 * n = 300.  A cheaper mix, one product by a random odd multiplier, has rare bad seeds (kurtosis 15 at n = 65536). */
#ifndef FSI_DEF_PERMUTE_H
#define FSI_DEF_PERMUTE_H

#include "def/rng.h"

enum { FSI_ROUNDS = 6, FSI_PASSES = 3, FSI_KEYS = FSI_ROUNDS * FSI_PASSES };

typedef struct fsi_bijection {
    uint64_t n;
    uint32_t high;   /* number of values of L */
    uint32_t bits;   /* r */
    uint32_t passes; /* 1, or FSI_PASSES for n < 256 */
    uint32_t key[FSI_KEYS];
} fsi_bijection;

/* The bijection of [n] whose keys stand at addresses (tag, 0 ... 17, e). */
FSI_DEF fsi_bijection fsi_bijection_make(uint64_t seed, uint32_t tag, uint32_t e, uint64_t n)
{
    fsi_bijection P;
    uint32_t width = 0;
    while (((uint64_t)1 << width) < n) width++;
    P.n = n;
    P.bits = (width + 1) / 2;
    P.high = (uint32_t)((n + ((uint64_t)1 << P.bits) - 1) >> P.bits);
    P.passes = n < 256 ? FSI_PASSES : 1;
    for (uint32_t i = 0; i < FSI_KEYS; i++) P.key[i] = fsi_random_word(seed, tag, i, e, 0);
    return P;
}

/* A keyed hash of x, good in its high bits; two multiplications. */
FSI_DEF uint32_t fsi_mix(uint32_t x, uint32_t key)
{
    x = x * 0x9E3779B1u + key;
    x ^= x >> 15;
    return x * 0x85EBCA77u;
}
/* floor(b x / 2^32): x's high bits as a number below b. */
FSI_DEF uint32_t fsi_scale32(uint32_t x, uint32_t b) { return (uint32_t)((uint64_t)x * b >> 32); }

/* One pass, a bijection of [high 2^r]; key points to its FSI_ROUNDS keys. */
FSI_DEF uint64_t fsi_permute_pass(const fsi_bijection *P, const uint32_t *key, uint64_t x)
{
    const uint32_t side = (uint32_t)1 << P->bits;
    uint32_t L = (uint32_t)(x >> P->bits), R = (uint32_t)x & (side - 1);
    for (int i = 0; i < FSI_ROUNDS; i += 2) {
        R ^= fsi_scale32(fsi_mix(L, key[i]), side);
        const uint32_t sum = L + fsi_scale32(fsi_mix(R, key[i + 1]), P->high);
        L = sum >= P->high ? sum - P->high : sum;
    }
    return (uint64_t)L << P->bits | R;
}
FSI_DEF uint64_t fsi_permute(const fsi_bijection *P, uint64_t x)
{
    do {
        for (uint32_t p = 0; p < P->passes; p++) x = fsi_permute_pass(P, P->key + p * FSI_ROUNDS, x);
    } while (x >= P->n);
    return x;
}

FSI_DEF uint64_t fsi_permute_pass_inverse(const fsi_bijection *P, const uint32_t *key, uint64_t x)
{
    const uint32_t side = (uint32_t)1 << P->bits;
    uint32_t L = (uint32_t)(x >> P->bits), R = (uint32_t)x & (side - 1);
    for (int i = FSI_ROUNDS - 2; i >= 0; i -= 2) {
        const uint32_t step = fsi_scale32(fsi_mix(R, key[i + 1]), P->high);
        L = L >= step ? L - step : L + (P->high - step);
        R ^= fsi_scale32(fsi_mix(L, key[i]), side);
    }
    return (uint64_t)L << P->bits | R;
}
FSI_DEF uint64_t fsi_permute_inverse(const fsi_bijection *P, uint64_t x)
{
    do {
        for (uint32_t p = P->passes; p-- > 0;) x = fsi_permute_pass_inverse(P, P->key + p * FSI_ROUNDS, x);
    } while (x >= P->n);
    return x;
}

#endif
