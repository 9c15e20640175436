/* test_shuffle.c - rounds, cycles and local rows: which block gets which column. */
#include "property.h"

static fsi_blockperm rows_of(uint64_t seed, int64_t d, int64_t ways)
{
    return fsi_blockperm_make(seed, d, ways, ways, 1, 1, FSI_DEF_ROWS, 1);
}

static const struct {
    int64_t d, M, interleave;
} sizes[] = {
    {1, 1, 1},      {1, 4, 1},   {5, 10, 1},    {100, 7, 1},   {1003, 6, 1},   {4096, 64, 1},
    {9999, 100, 1}, {9, 100, 1}, {4097, 16, 2}, {4097, 32, 2}, {9999, 152, 8}, {33, 64, 4},
};

/* A block has floor(d / M) or one more columns; contiguous blocks are in order. */
static void input_blocks_differ_in_size_by_at_most_one(void **state)
{
    (void)state;
    for (int n = 0; n < COUNT(sizes); n++)
        for (int32_t shuffle = FSI_DEF_NONE; shuffle <= FSI_DEF_ROWS; shuffle++) {
            const fsi_blockperm B = fsi_blockperm_make(17, sizes[n].d, 1000, sizes[n].M, 1, 1, shuffle, 1);
            int64_t size[200] = {0}, last = 0;
            for (int64_t j = 0; j < sizes[n].d; j++) {
                const int64_t h = fsi_blockperm_local(&B, j).h;
                HOLDS(h >= 0 && h < sizes[n].M, "column " I64 " in block " I64, j, h);
                HOLDS(shuffle == FSI_DEF_ROWS || h >= last, "column " I64 " in block " I64 " after " I64, j, h, last);
                last = h;
                size[h]++;
            }
            for (int64_t h = 0; h < sizes[n].M; h++)
                HOLDS(shuffle == FSI_DEF_NONE
                          ? size[h] == fsi_split_size(&B.in, h)
                          : size[h] - sizes[n].d / sizes[n].M == 0 || size[h] - sizes[n].d / sizes[n].M == 1,
                      "d = " I64 ", shuffle %d: block " I64 " has " I64 " columns", sizes[n].d, shuffle, h, size[h]);
        }
}

/* Block and local row of a column lead back to the column, and every local row of every block is at most one column. */
static void columns_and_local_rows_are_inverse(void **state)
{
    (void)state;
    for (int n = 0; n < COUNT(sizes); n++)
        for (int32_t shuffle = FSI_DEF_NONE; shuffle <= FSI_DEF_GROUPS; shuffle++) {
            const int64_t d = sizes[n].d, M = sizes[n].M, c = shuffle == FSI_DEF_GROUPS ? sizes[n].interleave : 1;
            const fsi_blockperm B = fsi_blockperm_make(18, d, 1000, M, 1, 1, shuffle, c);
            int64_t last = 0, found = 0;
            for (int64_t j = 0; j < d; j++) {
                const fsi_local at = fsi_blockperm_local(&B, j);
                const int64_t back = fsi_blockperm_column(&B, at.h, at.u);
                HOLDS(at.h >= 0 && at.h < M && at.u >= 0, "column " I64 " in block " I64, j, at.h);
                HOLDS(back == j,
                      "shuffle %d: column " I64 " is local row " I64 " of block " I64 ", which is column " I64, shuffle,
                      j, at.u, at.h, back);
                if (at.u > last) last = at.u;
            }
            for (int64_t h = 0; h < M; h++)
                for (int64_t u = 0; u <= last; u++) found += fsi_blockperm_column(&B, h, u) < d;
            HOLDS(found == d, "shuffle %d, d = " I64 ": local rows are " I64 " columns", shuffle, d, found);
        }
}

/* Numbers of ways that have cycles: powers of two, multiples of 4, others. */
static const int64_t cyclic[] = {16, 17, 18, 19, 20, 31, 32, 33, 50, 63, 64, 65, 100, 127, 1000};

/* In a cycle all shifts are different and all masks are equal: in it every place meets every block once. */
static void a_place_meets_every_block_once_in_a_cycle(void **state)
{
    (void)state;
    for (int n = 0; n < COUNT(cyclic); n++)
        for (uint64_t seed = 0; seed < 4; seed++)
            for (int64_t cycle = 0; cycle < 3000000000; cycle = 3 * cycle + 1) {
                const int64_t ways = cyclic[n], first = cycle * ways;
                const fsi_blockperm B = rows_of(seed, FSI_MAX_D, ways);
                const uint32_t mask = fsi_blockperm_round(&B, first).mask;
                unsigned char taken[1000] = {0}, met[1000] = {0};
                HOLDS(mask % 4 == 0 && mask + 4 <= ways, "mask " U32 " of " I64 " ways", mask, ways);
                for (int64_t q = first; q < first + ways; q++) {
                    const fsi_round r = fsi_blockperm_round(&B, q);
                    HOLDS(r.mask == mask, "round " I64 " has mask " U32 ", its cycle " U32, q, r.mask, mask);
                    HOLDS(r.shift < ways && !taken[r.shift], "round " I64 ": shift " U32 " comes twice", q, r.shift);
                    const int64_t h = fsi_blockperm_assign(&B, ways / 3, r);
                    HOLDS(!met[h], "place " I64 " meets block " I64 " twice", ways / 3, h);
                    taken[r.shift] = met[h] = 1;
                }
            }
}

/* Places of a round go to different blocks, a run of 4 to 4 neighbours, and fsi_blockperm_place leads back. */
static void a_round_is_a_permutation_of_its_places(void **state)
{
    static const int64_t few[] = {1, 2, 3, 7, 15};
    (void)state;
    for (int n = 0; n < COUNT(cyclic) + COUNT(few); n++) {
        const int64_t ways = n < COUNT(cyclic) ? cyclic[n] : few[n - COUNT(cyclic)];
        const fsi_blockperm B = rows_of(7, FSI_MAX_D, ways);
        for (int64_t q = 0; q < 200; q++) {
            const fsi_round r = fsi_blockperm_round(&B, q * q * 37);
            unsigned char taken[1000] = {0};
            for (int64_t i = 0; i < ways; i++) {
                const int64_t h = fsi_blockperm_assign(&B, i, r), back = fsi_blockperm_place(&B, (uint32_t)h, r);
                HOLDS(h >= 0 && h < ways && !taken[h], "place " I64 " goes to block " I64 ", which is taken", i, h);
                HOLDS(back == i, "place " I64 " goes to block " I64 ", which has place " I64, i, h, back);
                const int64_t begin = fsi_blockperm_assign(&B, i / 4 * 4, r);
                HOLDS(h == (begin + i % 4) % ways, "place " I64 " goes to block " I64 ", its run begins at " I64, i, h,
                      begin);
                taken[h] = 1;
            }
        }
    }
}

/* Over cycles, shifts of every round and masks are uniform; shifts of neighbouring cycles are independent. */
static void shifts_of_cycles_are_uniform(void **state)
{
    enum { CYCLES = 60000 };
    static int64_t shift[4][1000], mask[256], pair[1000];
    static const int64_t ways[] = {16, 18, 31, 64, 100, 1000};
    (void)state;
    for (int n = 0; n < COUNT(ways); n++) {
        const int64_t W = ways[n], round[] = {0, 1, W / 2, W - 1};
        const fsi_blockperm B = rows_of(29, FSI_MAX_D, W);
        fsi_round before[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
        memset(shift, 0, sizeof shift);
        memset(mask, 0, sizeof mask);
        memset(pair, 0, sizeof pair);
        for (int64_t cycle = 0; cycle < CYCLES; cycle++) {
            for (int i = 0; i < 4; i++) {
                const fsi_round r = fsi_blockperm_round(&B, cycle * W + round[i]);
                shift[i][r.shift]++;
                if (cycle) pair[(r.shift + (int64_t)W - before[i].shift) % W] += i == 0;
                if (i == 0) mask[r.mask / 4]++;
                before[i] = r;
            }
        }
        for (int i = 0; i < 4; i++)
            check_uniform(shift[i], W, "shifts of round " I64 " of cycles of " I64, round[i], W);
        check_uniform(pair, W, "shifts of neighbouring cycles of " I64 ", their difference", W);
        check_uniform(mask, (int64_t)1 << B.run_bits, "masks of cycles of " I64, W);
    }
}

/* Two rounds of a cycle: no difference of their shifts is more frequent than twice its share, 0 never occurs.  (Two
 * rounds half a cycle of 64 apart have some differences twice as often and others never.) */
static void differences_in_a_cycle_have_at_most_twice_their_share(void **state)
{
    enum { CYCLES = 20000 };
    static uint16_t shift[100][CYCLES];
    static const int64_t ways[] = {16, 18, 32, 64, 100};
    (void)state;
    for (int n = 0; n < COUNT(ways); n++) {
        const int64_t W = ways[n];
        const fsi_blockperm B = rows_of(31, FSI_MAX_D, W);
        const double share = 2.0 * CYCLES / (double)(W - 1), limit = share + 5.5 * sqrt(share);
        for (int64_t cycle = 0; cycle < CYCLES; cycle++) {
            const fsi_quad keys = fsi_random_quad(B.seed, FSI_TAG_SHUFFLE, (uint64_t)cycle, 1, 0);
            for (int64_t x = 0; x < W; x++)
                shift[x][cycle] = (uint16_t)fsi_blockperm_round_of(&B, &keys, (uint32_t)x).shift;
        }
        for (int64_t x = 0; x < W; x++)
            for (int64_t y = 0; y < x; y++) {
                int64_t count[100] = {0};
                for (int64_t cycle = 0; cycle < CYCLES; cycle++) count[(shift[x][cycle] + W - shift[y][cycle]) % W]++;
                HOLDS(count[0] == 0, "rounds " I64 " and " I64 " of a cycle have the same shift", y, x);
                for (int64_t v = 1; v < W; v++)
                    HOLDS((double)count[v] <= limit,
                          I64 " ways, rounds " I64 " and " I64 ": difference " I64 " comes " I64
                              " times, its share is %.1f",
                          W, y, x, v, count[v], share / 2.0);
            }
    }
}

/* With fewer than FSI_CYCLE ways, shifts of all rounds are uniform and independent. */
static void shifts_without_cycles_are_uniform_and_independent(void **state)
{
    enum { ROUNDS = 60000 };
    (void)state;
    for (int64_t M = 2; M < FSI_CYCLE; M++) {
        const fsi_blockperm B = rows_of(19, M * ROUNDS, M);
        int64_t shift[FSI_CYCLE] = {0}, next[FSI_CYCLE * FSI_CYCLE] = {0}, later[FSI_CYCLE * FSI_CYCLE] = {0};
        for (int64_t q = 0; q < ROUNDS; q++) {
            const fsi_round r = fsi_blockperm_round(&B, q);
            HOLDS(r.mask == 0, "mask " U32 " of " I64 " ways", r.mask, M);
            shift[r.shift]++;
            next[fsi_blockperm_round(&B, q + 1).shift * M + r.shift]++;
            later[fsi_blockperm_round(&B, q + M).shift * M + r.shift]++;
        }
        check_uniform(shift, M, "shifts of rounds of " I64, M);
        check_uniform(next, M * M, "shifts of neighbouring rounds of " I64, M);
        check_uniform(later, M * M, "shifts of rounds " I64 " apart", M);
    }
}

static void check_forms(const fsi_blockperm *B, int64_t i)
{
    fsi_round round[4];
    fsi_blockperm_rounds(B, i, round);
    for (int j = 0; j < 4; j++) {
        const fsi_round alone = fsi_blockperm_round(B, 4 * i + j), rolled = fsi_blockperm_round_rolled(B, 4 * i + j);
        HOLDS(round[j].shift == alone.shift && round[j].mask == alone.mask && rolled.shift == alone.shift &&
                  rolled.mask == alone.mask,
              I64 " ways, round " I64 ": shifts " U32 ", " U32 " of four, " U32 " rolled", B->ways, 4 * i + j,
              alone.shift, round[j].shift, rolled.shift);
        const int64_t h = (4 * i + j) % B->ways;
        assert_int_equal(fsi_blockperm_assigned(B, h, 4 * i + j), fsi_blockperm_assigned_rolled(B, h, 4 * i + j));
    }
}

/* Four rounds together, one alone and the short forms that GPUs run are the same, across the ends of cycles, and where
 * words are drawn again: without cycles, of 3 2^29 + 1 ways, often. */
static void four_rounds_and_rolled_forms_give_the_same(void **state)
{
    static const int64_t ways[] = {1, 2, 3, 13, 15, 16, 17, 18, 19, 64, 100, 1000003, FSI_MAX_K};
    (void)state;
    for (int n = 0; n < COUNT(ways); n++) {
        const fsi_blockperm B = rows_of(0xFEDCBA9876543213u, FSI_MAX_D, ways[n]);
        for (int64_t i = 0; i < 300; i++) {
            check_forms(&B, i);
            check_forms(&B, i * i * 1000003 % (FSI_MAX_D / ways[n] / 4 + 1));
        }
    }
    fsi_blockperm B = rows_of(5, FSI_MAX_D, 3);
    B.ways = ((int64_t)3 << 29) + 1;
    for (int64_t i = 0; i < 300; i++) check_forms(&B, 77 * i);
}

static void the_word_of_a_row_group_has_two_forms(void **state)
{
    const fsi_blockperm B = fsi_blockperm_make(0xFEDCBA9876543213u, FSI_MAX_D, 1024, 16, 1, 4, FSI_DEF_GROUPS, 4);
    (void)state;
    for (int64_t i = 0; i < 2000; i++)
        assert_int_equal(fsi_blockperm_group_word(&B, i * i * i), fsi_blockperm_group_word_rolled(&B, i * i * i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(input_blocks_differ_in_size_by_at_most_one),
        cmocka_unit_test(columns_and_local_rows_are_inverse),
        cmocka_unit_test(a_place_meets_every_block_once_in_a_cycle),
        cmocka_unit_test(a_round_is_a_permutation_of_its_places),
        cmocka_unit_test(shifts_of_cycles_are_uniform),
        cmocka_unit_test(differences_in_a_cycle_have_at_most_twice_their_share),
        cmocka_unit_test(shifts_without_cycles_are_uniform_and_independent),
        cmocka_unit_test(four_rounds_and_rolled_forms_give_the_same),
        cmocka_unit_test(the_word_of_a_row_group_has_two_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
