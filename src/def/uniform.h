/* uniform.h - unbiased integers from one random word.
 *
 * A word w is read as the fraction w / 2^32 and its digits in the bases b_0, b_1, ... are taken one by one:
 * multiply by b_t, the integer part is the digit, the rest is the next fraction.  Together the digits are the
 * mixed-radix
 * form of floor(w B / 2^32) with B = b_0 b_1 ..., and the last rest is (w B) mod 2^32.  That is uniform on
 * [B] once words whose rest is below 2^32 mod B are drawn again (Lemire, "Fast random integer generation in
 * an interval", ACM TOMACS 2019, for a single base).  Powers of two never reject: the digits are w's bits. */
#ifndef FSI_DEF_UNIFORM_H
#define FSI_DEF_UNIFORM_H

#include "def/rng.h"

/* The next digit of the fraction *f in base b >= 1. */
FSI_DEF uint32_t fsi_digit(uint32_t *f, uint32_t b)
{
    const uint64_t m = fsi_mul_wide(*f, b);
    *f = (uint32_t)m;
    return (uint32_t)(m >> 32);
}

/* Whether a word that left this rest must be drawn again, B = product <= 2^32. */
FSI_DEF int fsi_rejects(uint32_t rest, uint64_t product)
{
    return rest < product && rest < ((uint64_t)1 << 32) % product;
}

/* Uniform on [b], b >= 1, at address (tag, i, e). */
FSI_DEF uint32_t fsi_random_below(uint64_t seed, uint32_t tag, uint64_t i, uint32_t e, uint32_t b)
{
    for (uint32_t attempt = 0;; attempt++) {
        uint32_t rest = fsi_random_word(seed, tag, i, e, attempt);
        const uint32_t digit = fsi_digit(&rest, b);
        if (!fsi_rejects(rest, b)) return digit;
    }
}

#endif
