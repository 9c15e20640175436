/* test_uniform.c - digits from one word are exactly uniform, and numbers below b are unbiased. */
#include "property.h"

typedef struct bases {
    int count;
    uint32_t b[6];
} bases;

static uint64_t product_of(const bases *set)
{
    uint64_t product = 1;
    for (int t = 0; t < set->count; t++) product *= set->b[t];
    return product;
}

/* The digits of a word as one number, the first the most significant; *rejects is not 0 if the word is drawn again. */
static uint64_t value_of(const bases *set, uint32_t word, int *rejects)
{
    uint64_t value = 0;
    for (int t = 0; t < set->count; t++) {
        const uint32_t digit = fsi_digit(&word, set->b[t]);
        HOLDS(digit < set->b[t], "digit " U32 " in base " U32, digit, set->b[t]);
        value = value * set->b[t] + digit;
    }
    *rejects = fsi_rejects(word, product_of(set));
    return value;
}

/* The value v = floor(w B / 2^32) grows with w, so the words of v are an interval [lo, hi), and the rest grows by B
 * from one word to the next, so only lo can be rejected.  Looking at both ends of the interval therefore counts
 * the accepted words of v exactly, and each v must have floor(2^32 / B) of them.  Large B: every (B / 3000)-th v. */
static void check_exactly_uniform(const bases *set)
{
    const uint64_t B = product_of(set), words = (uint64_t)1 << 32, stride = B / 3000 + 1;
    for (uint64_t v = 0; v < B; v = v + stride < B || v == B - 1 ? v + stride : B - 1) {
        const uint64_t lo = (v * words + B - 1) / B, hi = v + 1 == B ? words : ((v + 1) * words + B - 1) / B;
        int first, second = 0, last;
        const uint64_t at_lo = value_of(set, (uint32_t)lo, &first), at_hi = value_of(set, (uint32_t)(hi - 1), &last);
        if (hi - lo > 1) value_of(set, (uint32_t)(lo + 1), &second);
        HOLDS(at_lo == v && at_hi == v, "B = " U64 ": the words " U64 " and " U64 " give " U64 " and " U64 ", not " U64,
              B, lo, hi - 1, at_lo, at_hi, v);
        HOLDS(!second && (hi - lo == 1 || !last), "B = " U64 ": a word of " U64 " after the first is rejected", B, v);
        HOLDS(hi - lo - (uint64_t)first == words / B, "B = " U64 ": " U64 " has " U64 " accepted words, not " U64, B, v,
              hi - lo - (uint64_t)first, words / B);
    }
}

static void every_tuple_of_digits_has_the_same_number_of_words(void **state)
{
    static const bases sets[] = {
        {1, {1}},
        {1, {2}},
        {1, {3}},
        {1, {10}},
        {1, {1000}},
        {1, {4294967295u}},
        {1, {2147483650u}},
        {1, {3221225472u}},
        {2, {65536, 65536}},
        {2, {65535, 65537}},
        {3, {6, 10, 14}},
        {4, {32, 32, 32, 32}},
        {4, {34, 34, 32, 32}},
        {5, {62, 62, 62, 60, 60}},
        {6, {18, 18, 16, 16, 16, 16}},
        {6, {2, 3, 5, 7, 11, 13}},
    };
    (void)state;
    for (int i = 0; i < COUNT(sets); i++) check_exactly_uniform(&sets[i]);
}

/* Powers of two never reject, so their digits are the bits of the word. */
static void powers_of_two_read_bits_and_never_reject(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 10000; n++) {
        const uint32_t word = (uint32_t)(n * 0x9E3779B1u);
        uint32_t rest = word;
        const uint32_t high = fsi_digit(&rest, 8), low = fsi_digit(&rest, 128);
        HOLDS(high == word >> 29 && low == ((word >> 22) & 127), "%08" PRIx32 " gives " U32 " and " U32, word, high,
              low);
        HOLDS(!fsi_rejects(rest, 1024), "%08" PRIx32 " is rejected", word);
    }
}

/* b = 3 x 2^30 and 2^31 + 2 would be far from uniform modulo 3 without the second draw. */
static void numbers_below_b_are_unbiased(void **state)
{
    static const uint32_t below[] = {2, 3, 5, 6, 7, 10, 31, 48, 64, 100, 1000, 2147483650u, 3221225472u, 4294967295u};
    enum { DRAWS = 60000 };
    (void)state;
    for (int i = 0; i < COUNT(below); i++) {
        const uint32_t b = below[i];
        const int64_t cells = b <= 1000 ? b : 48;
        int64_t by_place[1000] = {0}, by_remainder[3] = {0};
        for (uint64_t n = 0; n < DRAWS; n++) {
            const uint64_t x = fsi_random_below(5, FSI_TAG_SAMPLE, n, (uint32_t)i, b);
            HOLDS(x < b, U64 " is not below " U32, x, b);
            by_place[x * (uint64_t)cells / b]++;
            by_remainder[x % 3]++;
        }
        check_uniform(by_place, cells, "numbers below " U32, b);
        if (b % 3 == 0 || b > 1000) check_uniform(by_remainder, 3, "numbers below " U32 ", modulo 3", b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tuple_of_digits_has_the_same_number_of_words),
        cmocka_unit_test(powers_of_two_read_bits_and_never_reject),
        cmocka_unit_test(numbers_below_b_are_unbiased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
