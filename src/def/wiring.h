/* wiring.h - the block permutations: kappa edge-disjoint permutations of [M], output block to input block.
 *
 * f(x) = (a x + b) mod M runs through all of [M] from any start when gcd(b, M) = 1, every prime of M divides
 * a - 1, and 4 divides a - 1 if it divides M (Hull and Dobell, 1962).  Output block g reads input blocks
 * pi_l(g) = f^l(g), l = 1 ... kappa, distinct for kappa <= M (the paper, appendix on wiring).  Here a is drawn
 * from all such multipliers and b from all units.  For square-free M and
 * four times an odd square-free M the only multiplier is 1: pi_l is then a cyclic shift by l b. */
#ifndef FSI_DEF_WIRING_H
#define FSI_DEF_WIRING_H

#include "def/uniform.h"

typedef struct fsi_wiring {
    uint32_t M, a, b, a_inverse;
} fsi_wiring;

FSI_DEF uint32_t fsi_gcd(uint32_t x, uint32_t y)
{
    while (y) {
        const uint32_t r = x % y;
        x = y;
        y = r;
    }
    return x;
}

/* The smallest step between full-period multipliers: the primes of M multiplied, twice if 4 divides M. */
FSI_DEF uint32_t fsi_wiring_step(uint32_t M)
{
    uint32_t step = M % 4 ? 1 : 2, rest = M;
    for (uint32_t p = 2; (uint64_t)p * p <= rest; p++) {
        if (rest % p) continue;
        step *= p;
        while (rest % p == 0) rest /= p;
    }
    return rest > 1 ? step * rest : step;
}

/* (a x + b) mod M for a, x, b < M; in 32 bits where that is enough, because 64-bit division is slow on GPUs. */
FSI_DEF uint32_t fsi_affine(uint32_t a, uint32_t x, uint32_t b, uint32_t M)
{
    if (M <= 0xFFFF) return (a * x + b) % M;
    return (uint32_t)(((uint64_t)a * x + b) % M);
}

/* f(x) and f^-1(x): from an output block on to the next input block, and back. */
FSI_DEF uint32_t fsi_wiring_next(const fsi_wiring *f, uint32_t x) { return fsi_affine(f->a, x, f->b, f->M); }
FSI_DEF uint32_t fsi_wiring_back(const fsi_wiring *f, uint32_t x)
{
    return fsi_affine(f->a_inverse, x >= f->b ? x - f->b : x + (f->M - f->b), 0, f->M);
}

FSI_DEF fsi_wiring fsi_wiring_make(uint64_t seed, uint32_t M)
{
    const uint32_t step = fsi_wiring_step(M);
    fsi_wiring f;
    f.M = M;
    f.a = (uint32_t)((1 + (uint64_t)step * fsi_random_below(seed, FSI_TAG_WIRING, 0, 0, M / step)) % M);
    uint32_t draw = 0;
    do f.b = fsi_random_below(seed, FSI_TAG_WIRING, 1, draw++, M);
    while (fsi_gcd(f.b, M) != 1);
    /* a = 1 + step t, and M divides some power of step t: the inverse 1 - u + u^2 - ... with u = a - 1 is
     * found by Newton's x <- x (2 - a x), which squares the error 1 - a x each time. */
    uint64_t x = 1 % M;
    for (int i = 0; i < 6; i++) x = x * ((2 + (uint64_t)M - f.a * x % M) % M) % M;
    f.a_inverse = (uint32_t)x;
    return f;
}

#endif
