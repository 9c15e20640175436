/* test_blockperm.c - the columns of BlockPerm-SJLT and SJLT: how many nonzeros, where, and of which sign. */
#include "property.h"

enum { MOST = 4096 };

/* The nonzeros of one column in the order they are visited. */
typedef struct column {
    int64_t count, row[MOST];
    double value[MOST];
} column;

static void collect(void *user, int64_t i, int64_t j, double value)
{
    column *c = (column *)user;
    (void)j;
    c->row[c->count] = i;
    c->value[c->count++] = value;
}

/* In each of the kappa output blocks that read the input block of column j there is one nonzero +-1 / sqrt(kappa s) in
 * each of s parts, and there is none elsewhere. */
static void check_column(const fsi_def_spec *p, const fsi_blockperm *B, int64_t j)
{
    static column c;
    static unsigned char taken[MOST];
    const fsi_def S = fsi_def_make(p);
    const double scale = 1.0 / sqrt((double)(p->kappa * p->s));
    const int64_t home = fsi_blockperm_input_block(B, j);
    c.count = 0;
    fsi_def_visit(&S, j, j + 1, collect, &c);
    HOLDS(c.count == p->kappa * p->s, "column " I64 " of d = " I64 ", k = " I64 " has " I64 " nonzeros", j, p->d, p->k,
          c.count);
    memset(taken, 0, sizeof taken);
    for (int64_t n = 0; n < c.count; n++) {
        const int64_t i = c.row[n], g = fsi_split_index(&B->out, i), l = n / p->s + 1;
        HOLDS(i >= 0 && i < p->k, "column " I64 ": row " I64 " of " I64, j, i, p->k);
        uint32_t h = (uint32_t)g;
        for (int64_t step = 0; step < l; step++) h = fsi_wiring_next(&B->wiring, h);
        HOLDS(h == home,
              "column " I64 " is in input block " I64 ", its row " I64 " in output block " I64
              ", whose neighbour number " I64 " is " U32,
              j, home, i, g, l, h);
        const fsi_split parts = fsi_split_make(fsi_split_size(&B->out, g), p->s);
        const int64_t t = fsi_split_index(&parts, i - fsi_split_start(&B->out, g)), slot = (l - 1) * p->s + t;
        HOLDS(!taken[slot], "column " I64 ": two nonzeros in part " I64 " of output block " I64, j, t, g);
        taken[slot] = 1;
        HOLDS(c.value[n] == scale || c.value[n] == -scale, "column " I64 ": %g, not +-%g", j, c.value[n], scale);
    }
}

static void every_column_has_kappa_s_nonzeros_one_in_each_part(void **state)
{
    static const struct {
        int64_t d, k, M, kappa, s, interleave;
        int32_t shuffle;
    } specs[] = {
        {1, 1, 1, 1, 1, 1, FSI_DEF_ROWS},           {100, 1, 1, 1, 1, 1, FSI_DEF_NONE},
        {1, 64, 4, 4, 4, 1, FSI_DEF_ROWS},          {1003, 107, 6, 3, 5, 1, FSI_DEF_NONE},
        {1003, 107, 6, 6, 5, 1, FSI_DEF_ROWS},      {300, 50, 7, 2, 7, 1, FSI_DEF_ROWS},
        {777, 64, 64, 9, 1, 1, FSI_DEF_ROWS},       {500, 1000, 3, 3, 333, 1, FSI_DEF_NONE},
        {200, 769, 3, 2, 32, 1, FSI_DEF_ROWS},      {5, 640, 10, 2, 4, 1, FSI_DEF_ROWS},
        {1001, 999, 1, 1, 17, 1, FSI_DEF_NONE},     {333, 1024, 16, 16, 3, 1, FSI_DEF_ROWS},
        {4099, 1000, 16, 2, 2, 1, FSI_DEF_GROUPS},  {4099, 1000, 24, 3, 4, 8, FSI_DEF_GROUPS},
        {1057, 2100, 32, 1, 4, 32, FSI_DEF_GROUPS}, {70, 300, 64, 3, 3, 8, FSI_DEF_GROUPS},
        {31, 128, 2, 2, 4, 2, FSI_DEF_GROUPS},
    };
    (void)state;
    for (int n = 0; n < COUNT(specs); n++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            const fsi_def_spec p = blockperm_spec(specs[n].d, specs[n].k, specs[n].M, specs[n].kappa, specs[n].s,
                                                  specs[n].shuffle, specs[n].interleave, seed << 63 | (uint64_t)n);
            const fsi_def S = fsi_def_make(&p);
            for (int64_t j = 0; j < p.d; j += 1 + p.d / 400) check_column(&p, &S.u.blockperm, j);
            check_column(&p, &S.u.blockperm, p.d - 1);
        }
}

/* 2 (row in its part) + sign of nonzero t of column j under permutation l, and the number of such codes. */
static int64_t code_of(const fsi_blockperm *B, int64_t j, int64_t l, int64_t t, int64_t rows, int64_t *codes)
{
    uint32_t code[FSI_MAX_PER_WORD];
    const fsi_split parts = fsi_split_make(rows, B->s);
    fsi_blockperm_nonzeros(B, j, l, t / B->per_word, rows, code, 1);
    *codes = 2 * fsi_split_size(&parts, t);
    return (int64_t)code[t % B->per_word] - 2 * fsi_split_start(&parts, t);
}

/* Which of the pairs of nonzeros is looked at together: (t, l, j) and (t, l, j) plus this. */
typedef struct neighbour {
    int64_t t, l, j;
} neighbour;

/* Rows and signs are uniform together (all codes of a part equally likely), and independent of those of another
 * nonzero: all pairs of codes equally likely. */
static void check_codes(const fsi_blockperm *B, int64_t t, int64_t rows, neighbour by)
{
    enum { COLUMNS = 40000 };
    static int64_t one[MOST], both[MOST];
    int64_t codes = 0, others = 0;
    memset(one, 0, sizeof one);
    memset(both, 0, sizeof both);
    for (int64_t j = 0; j < COLUMNS; j++) {
        const int64_t a = code_of(B, j, 1, t, rows, &codes);
        const int64_t b = code_of(B, j + by.j, 1 + by.l, t + by.t, rows, &others);
        HOLDS(a >= 0 && a < codes && b >= 0 && b < others, "codes " I64 " and " I64, a, b);
        one[a]++;
        both[a * others + b]++;
    }
    check_uniform(one, codes, "rows and signs of part " I64 " in " I64 " rows", t, rows);
    check_uniform(both, codes * others,
                  "rows and signs of part " I64 " in " I64 " rows with those " I64 " parts, " I64
                  " permutations and " I64 " columns on",
                  t, rows, by.t, by.l, by.j);
}

static void rows_and_signs_are_uniform_and_independent(void **state)
{
    static const struct {
        int64_t k, M, s;
    } specs[] = {{64, 1, 4}, {64, 4, 4}, {107, 6, 5}, {769, 3, 32}, {55, 5, 1}, {90, 1, 9}, {33, 1, 33}, {111, 3, 7}};
    static const neighbour by[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 2}, {0, 0, 4}, {2, 1, 3}};
    (void)state;
    for (int n = 0; n < COUNT(specs); n++) {
        const int64_t M = specs[n].M, s = specs[n].s, most = (specs[n].k + M - 1) / M, kappa = M < 2 ? M : 2;
        const fsi_blockperm B = fsi_blockperm_make(11 + (uint64_t)n, 50000, specs[n].k, M, kappa, s, FSI_DEF_NONE, 1);
        for (int i = 0; i < COUNT(by); i++) {
            if (by[i].t >= s || (by[i].l && M == 1)) continue;
            check_codes(&B, 0, most, by[i]);
            if (specs[n].k % M) check_codes(&B, s - 1 - by[i].t, most - 1, by[i]);
        }
    }
}

/* Each whole row of S: the nonzeros in it and their signs, for blocks and parts of equal size. */
static void rows_of_S_are_equally_full_and_signs_balance(void **state)
{
    enum { D = 20000, K = 240 };
    static int64_t count[2 * K];
    static const int32_t shuffles[] = {FSI_DEF_NONE, FSI_DEF_ROWS, FSI_DEF_GROUPS};
    (void)state;
    for (int n = 0; n < COUNT(shuffles); n++) {
        const fsi_blockperm B = fsi_blockperm_make(3, D, K, 8, 2, 5, shuffles[n], 1);
        memset(count, 0, sizeof count);
        for (int64_t j = 0; j < D; j++) {
            uint32_t g = (uint32_t)fsi_blockperm_input_block(&B, j), code[FSI_MAX_PER_WORD];
            for (int64_t l = 1; l <= 2; l++) {
                g = fsi_wiring_back(&B.wiring, g);
                const int c = fsi_blockperm_nonzeros(&B, j, l, 0, 30, code, 1);
                HOLDS(c == 5, "%d nonzeros in one word, not 5", c);
                for (int t = 0; t < c; t++) count[60 * g + code[t]]++;
            }
        }
        check_uniform(count, 2 * K, "shuffle %d: rows and signs of S", shuffles[n]);
    }
}

static const struct {
    int64_t d, M;
} sizes[] = {{1, 1}, {1, 4}, {5, 10}, {100, 7}, {1003, 6}, {4096, 64}, {9999, 100}};

static void input_blocks_differ_in_size_by_at_most_one(void **state)
{
    (void)state;
    for (int n = 0; n < COUNT(sizes); n++)
        for (int32_t shuffle = FSI_DEF_NONE; shuffle <= FSI_DEF_ROWS; shuffle++) {
            const fsi_blockperm B = fsi_blockperm_make(17, sizes[n].d, 1000, sizes[n].M, 1, 1, shuffle, 1);
            int64_t size[100] = {0}, last = 0;
            for (int64_t j = 0; j < sizes[n].d; j++) {
                const int64_t h = fsi_blockperm_input_block(&B, j);
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

/* A round of M neighbours goes to M different blocks, rounds begin at every block equally often and independently, and
 * fsi_blockperm_assigned finds back who went where. */
static void columns_are_dealt_in_rounds(void **state)
{
    (void)state;
    for (int n = 0; n < COUNT(sizes); n++) {
        const fsi_blockperm B = fsi_blockperm_make(18, sizes[n].d, 1000, sizes[n].M, 1, 1, FSI_DEF_ROWS, 1);
        for (int64_t j = 0; j < sizes[n].d; j++) {
            const int64_t h = fsi_blockperm_input_block(&B, j), back = fsi_blockperm_assigned(&B, h, j / sizes[n].M);
            HOLDS(back == j, "column " I64 " goes to block " I64 ", which says it got " I64, j, h, back);
        }
    }
    enum { M = 12, ROUNDS = 60000 };
    const fsi_blockperm B = fsi_blockperm_make(19, (int64_t)M * ROUNDS, 1000, M, 1, 1, FSI_DEF_ROWS, 1);
    int64_t begin[M] = {0}, pair[M * M] = {0};
    for (int64_t q = 0; q < ROUNDS; q++) {
        begin[fsi_blockperm_rotation(&B, q)]++;
        if (q) pair[fsi_blockperm_rotation(&B, q - 1) * M + fsi_blockperm_rotation(&B, q)]++;
    }
    check_uniform(begin, M, "begin of a round of %d", M);
    check_uniform(pair, M * M, "begins of neighbouring rounds of %d", M);
}

/* What is made four at a time is what is made alone, also where words are drawn again: of 3 2^29 + 1 ways often. */
static void four_rounds_and_four_columns_share_a_call(void **state)
{
    (void)state;
    static const int64_t ways[] = {1, 2, 3, 16, 1000, 65537, ((int64_t)3 << 29) + 1};
    fsi_blockperm B = fsi_blockperm_make(11, 1 << 20, 1024, 16, 2, 4, FSI_DEF_ROWS, 1);
    for (int64_t i = 0; i < 500; i++) {
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            uint32_t turn[4];
            B.ways = ways[w];
            fsi_blockperm_rotations(&B, i, turn);
            for (int j = 0; j < 4; j++) assert_int_equal(turn[j], fsi_blockperm_rotation(&B, 4 * i + j));
        }
        const fsi_quad quad = fsi_blockperm_quad(&B, i, 2, 0);
        for (int j = 0; j < 4; j++) assert_int_equal(quad.w[j], fsi_blockperm_word(&B, 4 * i + j, 2, 0, 64));
    }
}

/* The short forms that GPUs run give the same bits, also where a turn is drawn again. */
static void rolled_forms_give_the_same_bits(void **state)
{
    (void)state;
    static const int64_t ways[] = {1, 3, 1000, ((int64_t)3 << 29) + 1};
    fsi_blockperm B = fsi_blockperm_make(0xFEDCBA9876543213u, 1 << 20, 1024, 16, 2, 4, FSI_DEF_GROUPS, 1);
    const fsi_philox_keys keys = fsi_philox_keys_of(B.seed);
    for (int64_t i = 0; i < 500; i++) {
        const int64_t columns[] = {i, 77 * i + 1, ((int64_t)1 << 47) + 3 * i, i * i + 2};
        uint32_t words[4];
        for (int w = 0; w < COUNT(ways); w++) {
            B.ways = ways[w];
            assert_int_equal(fsi_blockperm_assigned_rolled(&B, 0, i), fsi_blockperm_assigned(&B, 0, i));
        }
        assert_int_equal(fsi_blockperm_mask_rolled(&B, i), fsi_blockperm_mask(&B, i));
        const fsi_quad plain = fsi_blockperm_quad(&B, i, 2, 0), rolled = fsi_blockperm_quad_rolled(&B, i, 2, 0);
        assert_memory_equal(&plain, &rolled, sizeof plain);
        const fsi_quad first = fsi_blockperm_quad(&B, i, 1, 0), only = fsi_blockperm_only_quad(&keys, i);
        assert_memory_equal(&first, &only, sizeof first);
        fsi_blockperm_words_once(&B, columns, 2, 0, words);
        for (int j = 0; j < 4; j++) assert_int_equal(words[j], fsi_blockperm_word_once(&B, columns[j], 2, 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_column_has_kappa_s_nonzeros_one_in_each_part),
        cmocka_unit_test(rows_and_signs_are_uniform_and_independent),
        cmocka_unit_test(rows_of_S_are_equally_full_and_signs_balance),
        cmocka_unit_test(input_blocks_differ_in_size_by_at_most_one),
        cmocka_unit_test(columns_are_dealt_in_rounds),
        cmocka_unit_test(four_rounds_and_four_columns_share_a_call),
        cmocka_unit_test(rolled_forms_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
