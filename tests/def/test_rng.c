/* test_rng.c - Philox is the published one, and every address has words of its own. */
#include "property.h"

/* Random123's kat_vectors, philox4x32 with 10 rounds: zeros, ones, and the digits of pi. */
static void philox_gives_the_published_answers(void **state)
{
    static const uint32_t vectors[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8},
        {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x408F276D, 0x41C83B0E, 0xA20BC7C6,
         0x6D5451FD},
        {0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0, 0xD16CFE09, 0x94FDCCEB, 0x5001E420,
         0x24126EA1},
    };
    (void)state;
    for (int v = 0; v < 3; v++) {
        const fsi_quad counter = {{vectors[v][0], vectors[v][1], vectors[v][2], vectors[v][3]}};
        const fsi_quad out = fsi_philox(counter, vectors[v][4], vectors[v][5]);
        for (int i = 0; i < 4; i++)
            HOLDS(out.w[i] == vectors[v][6 + i], "vector %d, word %d is %08" PRIx32 ", published is %08" PRIx32, v, i,
                  out.w[i], vectors[v][6 + i]);
    }
}

/* The key is the seed, low half first; the counter is item, attempt and item, e, tag. */
static void an_address_is_a_counter_and_the_seed_is_the_key(void **state)
{
    const fsi_quad counter = {{0x89ABCDEF, 0x01230000 | 0x4567, 0x76543210, FSI_TAG_GROUP}};
    const fsi_quad expected = fsi_philox(counter, 0x55667788, 0x11223344);
    const fsi_quad out = fsi_random_quad(0x1122334455667788u, FSI_TAG_GROUP, 0x456789ABCDEFu, 0x76543210, 0x0123);
    (void)state;
    for (int i = 0; i < 4; i++)
        HOLDS(out.w[i] == expected.w[i], "word %d is %08" PRIx32 ", expected %08" PRIx32, i, out.w[i], expected.w[i]);
}

static void four_neighbouring_items_share_a_quad(void **state)
{
    (void)state;
    for (uint64_t item = 0; item < 400; item++) {
        const fsi_quad q = fsi_random_quad(9, FSI_TAG_COLUMN, item / 4, 7, 1);
        const uint32_t word = fsi_random_word(9, FSI_TAG_COLUMN, item, 7, 1);
        HOLDS(word == q.w[item % 4], "word of item " U64 " is %08" PRIx32 ", word %d of its quad is %08" PRIx32, item,
              word, (int)(item % 4), q.w[item % 4]);
    }
}

static fsi_quad words_at(const uint64_t address[5])
{
    return fsi_random_quad(address[0], (uint32_t)address[1], address[2], (uint32_t)address[3], (uint32_t)address[4]);
}

/* One bit changed anywhere in seed, tag, item, e or attempt changes half of the 128 bits on average. */
static void every_bit_of_an_address_changes_half_of_the_words(void **state)
{
    static const int width[5] = {64, 4, 48, 32, 16};
    enum { SAMPLES = 256 };
    (void)state;
    for (int field = 0; field < 5; field++)
        for (int bit = 0; bit < width[field]; bit++) {
            int64_t changed = 0;
            for (uint64_t n = 0; n < SAMPLES; n++) {
                const uint64_t x = n * 0x9E3779B97F4A7C15u;
                uint64_t address[5] = {x, n % 16, x >> 16, (uint32_t)(x >> 5), x >> 48};
                const fsi_quad p = words_at(address);
                address[field] ^= (uint64_t)1 << bit;
                const fsi_quad q = words_at(address);
                for (int i = 0; i < 4; i++)
                    for (uint32_t differ = p.w[i] ^ q.w[i]; differ; differ &= differ - 1) changed++;
            }
            check_mean((double)changed / (SAMPLES * 128), 0.5, 0.5 / sqrt(SAMPLES * 128),
                       "share of bits that bit %d of field %d changes", bit, field);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_answers),
        cmocka_unit_test(an_address_is_a_counter_and_the_seed_is_the_key),
        cmocka_unit_test(four_neighbouring_items_share_a_quad),
        cmocka_unit_test(every_bit_of_an_address_changes_half_of_the_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
