/* test_blockperm.c - the columns of BlockPerm-SJLT and SJLT: how many nonzeros, where, and of which sign; windows, and
 * packed words. */
#include "property.h"

enum { MOST = 8192 };

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
 * each of s strata, and there is none elsewhere. */
static void check_column(const fsi_def_spec *p, const fsi_blockperm *B, int64_t j)
{
    static column c;
    static unsigned char taken[MOST];
    const fsi_def S = fsi_def_make(p);
    const double scale = 1.0 / sqrt((double)(p->kappa * p->s));
    const int64_t home = fsi_blockperm_local(B, j).h;
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
        const fsi_split strata = fsi_split_make(fsi_split_size(&B->out, g), p->s);
        const int64_t t = fsi_split_index(&strata, i - fsi_split_start(&B->out, g)), at = (l - 1) * p->s + t;
        HOLDS(!taken[at], "column " I64 ": two nonzeros in stratum " I64 " of output block " I64, j, t, g);
        taken[at] = 1;
        HOLDS(c.value[n] == scale || c.value[n] == -scale, "column " I64 ": %g, not +-%g", j, c.value[n], scale);
    }
}

static void every_column_has_kappa_s_nonzeros_one_in_each_stratum(void **state)
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
        {31, 128, 2, 2, 4, 2, FSI_DEF_GROUPS},      {9000, 1024, 16, 1, 8, 1, FSI_DEF_ROWS},
        {9000, 6400, 100, 2, 8, 1, FSI_DEF_ROWS},   {9000, 4096, 2, 2, 2, 1, FSI_DEF_ROWS},
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

/* One nonzero of a local row: of local row u of block h, in stratum t, under permutation l. */
typedef struct entry {
    int64_t h, u, l, t;
} entry;

/* Its code in its stratum, 2 (row in the stratum) + (1 if the sign is minus), and the number of such codes. */
static int64_t code_of(const fsi_blockperm *B, entry at, int64_t rows, int64_t *codes)
{
    uint32_t code[FSI_MAX_PER_BAND] = {0};
    const fsi_split strata = fsi_split_make(rows, B->s);
    fsi_blockperm_nonzeros(B, at.h, at.u, at.l, at.t / B->per_band, rows, code, 1);
    *codes = 2 * fsi_split_size(&strata, at.t);
    const int64_t found = (int64_t)code[at.t % B->per_band] - 2 * fsi_split_start(&strata, at.t);
    HOLDS(found >= 0 && found < *codes, "code " I64 " of " I64, found, *codes);
    return found;
}

/* Rows and signs are uniform together (all codes of a stratum equally likely), and independent of those of a nonzero
 * in another window, block, stratum or permutation: all pairs of codes equally likely.  `by` is what is added to h, l
 * and t, and in u the number of windows. */
static void check_codes(const fsi_blockperm *B, int64_t t, int64_t rows, entry by)
{
    enum { WINDOWS = 40000 };
    static int64_t one[MOST], both[MOST];
    int64_t codes = 0, others = 0;
    memset(one, 0, sizeof one);
    memset(both, 0, sizeof both);
    for (int64_t w = 0; w < WINDOWS; w++) {
        const entry at = {w % B->M, w * B->window + w * 7 % B->window, 1, t};
        const entry other = {(at.h + by.h) % B->M, at.u + by.u * B->window, at.l + by.l, at.t + by.t};
        const int64_t a = code_of(B, at, rows, &codes), b = code_of(B, other, rows, &others);
        one[a]++;
        both[a * others + b]++;
    }
    check_uniform(one, codes, "rows and signs of stratum " I64 " in " I64 " rows", t, rows);
    check_uniform(both, codes * others,
                  "rows and signs of stratum " I64 " in " I64 " rows with those " I64 " blocks, " I64 " windows, " I64
                  " permutations and " I64 " strata on",
                  t, rows, by.h, by.u, by.l, by.t);
}

/* Blocks of k / M rows, and what their strata are like. */
static const struct {
    int64_t k, M, s;
} blocks[] = {
    {64, 1, 4},  {64, 4, 4},  {107, 6, 5}, {769, 3, 32}, /* one band, unequal strata, several bands */
    {55, 5, 1},  {90, 1, 9},  {33, 1, 33}, {111, 3, 7},  /* one stratum; s = k */
    {256, 4, 8}, {150, 6, 4}, {60, 2, 3},  {128, 2, 32}, /* 64 rows; 4 columns do not divide a sign word; W = 2 */
    {512, 4, 8}, {300, 3, 8}, {330, 3, 5},               /* the default; bands of 52 and 48, of 44, 44 and 22 rows */
};

static void rows_and_signs_are_uniform_and_independent_across_windows_and_bands(void **state)
{
    static const entry by[] = {{0, 1, 0, 0}, {0, 2, 0, 0}, {1, 0, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}, {0, 0, 0, 2},
                               {0, 0, 0, 4}, {0, 2, 1, 3}, {1, 1, 0, 0}, {1, 0, 1, 0}, {0, 0, 1, 4}};
    (void)state;
    for (int n = 0; n < COUNT(blocks); n++) {
        const int64_t M = blocks[n].M, s = blocks[n].s, most = (blocks[n].k + M - 1) / M, kappa = M < 2 ? M : 2;
        const fsi_blockperm B = fsi_blockperm_make(11 + (uint64_t)n, 50000, blocks[n].k, M, kappa, s, FSI_DEF_NONE, 1);
        for (int i = 0; i < COUNT(by); i++) {
            if (by[i].t >= s || ((by[i].l || by[i].h) && M == 1)) continue;
            check_codes(&B, 0, most, by[i]);
            if (blocks[n].k % M) check_codes(&B, s - 1 - by[i].t, most - 1, by[i]);
        }
    }
}

/* Bands have at most 64 rows where a stratum has no more, their digits fit a word, and as few bands as that allows have
 * numbers of strata that are as equal as possible. */
static void bands_are_as_few_as_rows_and_digits_allow(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows <= 300; rows++)
        for (int64_t s = 1; s <= rows; s++) {
            const fsi_blockperm B = fsi_blockperm_make(0, 1000, rows, 1, 1, s, FSI_DEF_NONE, 1);
            const int64_t largest = (rows + s - 1) / s, digits = 32 / fsi_bits_below((uint64_t)(2 * largest));
            int64_t strata = 0, most = 1;
            while (most < digits && (most + 1) * largest <= 64) most++;
            if (largest > 64) most = digits;
            for (int64_t q = 0; q < B.bands; q++) {
                const int64_t count = fsi_blockperm_count(&B, q);
                HOLDS(count >= 1 && count <= most && count <= B.per_band,
                      "s = " I64 " in " I64 " rows: band " I64 " has " I64 " strata, the most are " I64, s, rows, q,
                      count, most);
                strata += count;
            }
            HOLDS(strata == s && B.bands == (s + B.per_band - 1) / B.per_band &&
                      B.per_band == (s + (s + most - 1) / most - 1) / ((s + most - 1) / most),
                  "s = " I64 " in " I64 " rows: " I64 " bands of %d strata, the most are " I64, s, rows, B.bands,
                  B.per_band, most);
        }
}

static int compare_words(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The digit words and sign words of all bands, permutations, windows and blocks have addresses of their own: 32-bit words
 * of which fewer than 600 are drawn are all different, except with a probability below 1e-4. */
static void bands_share_no_random_words(void **state)
{
    enum { LEAST = 60, WORDS = 600 };
    (void)state;
    for (int n = 0; n < COUNT(blocks); n++) {
        static uint32_t word[WORDS];
        const int64_t M = blocks[n].M, kappa = M < 3 ? M : 3;
        const fsi_blockperm B = fsi_blockperm_make(12, 50000, blocks[n].k, M, kappa, blocks[n].s, FSI_DEF_NONE, 1);
        int count = 0;
        for (uint64_t window = 0; count < LEAST; window++)
            for (int64_t h = 0; h < M; h++)
                for (int64_t l = 1; l <= kappa; l++)
                    for (int64_t q = 0; q < B.bands; q++)
                        for (int64_t i = 0; i <= B.sign_words && count < WORDS; i++)
                            word[count++] = fsi_blockperm_window_word(&B, h, window, fsi_blockperm_band(&B, l, q), i,
                                                                      0);
        qsort(word, (size_t)count, sizeof *word, compare_words);
        for (int i = 1; i < count; i++)
            HOLDS(word[i] != word[i - 1], "k / M = " I64 ", s = " I64 ": two of %d words are equal", blocks[n].k / M,
                  blocks[n].s, count);
    }
}

/* Digit words that leave a remainder are drawn again: without that, codes below 3 2^29 would have 3 : 3 : 2 words mod
 * 3, and codes below 2^31 + 2 one or two words each. */
static void large_strata_are_unbiased(void **state)
{
    enum { WINDOWS = 30000 };
    static const int64_t sizes[] = {(int64_t)3 << 28, ((int64_t)1 << 30) + 1};
    (void)state;
    for (int n = 0; n < COUNT(sizes); n++) {
        const fsi_blockperm B = fsi_blockperm_make(9, FSI_MAX_D, sizes[n], 1, 1, 1, FSI_DEF_NONE, 1);
        int64_t remainder[3] = {0}, place[16] = {0};
        for (int64_t w = 0; w < WINDOWS; w++) {
            const entry at = {0, w * B.window, 1, 0};
            int64_t codes;
            const int64_t code = code_of(&B, at, sizes[n], &codes);
            remainder[code % 3]++;
            place[code * 16 / codes]++;
        }
        check_uniform(remainder, 3, "codes of strata of " I64 " rows, modulo 3", sizes[n]);
        check_uniform(place, 16, "codes of strata of " I64 " rows", sizes[n]);
    }
}

/* In each stratum the W columns of a window have W different rows: row (x + v) mod size, x the row of column 0. */
static void columns_of_a_window_have_different_rows(void **state)
{
    (void)state;
    for (int n = 0; n < COUNT(blocks); n++) {
        const int64_t M = blocks[n].M, s = blocks[n].s;
        const fsi_blockperm B = fsi_blockperm_make(5, 50000, blocks[n].k, M, M, s, FSI_DEF_NONE, 1);
        HOLDS(B.window == blocks[n].k / M / s, "windows of " I64 " columns", B.window);
        for (int64_t w = 0; w < 60; w++)
            for (int64_t t = 0; t < s; t++) {
                unsigned char taken[128] = {0};
                const int64_t rows = blocks[n].k / M + (w & 1 && blocks[n].k % M), l = 1 + w % M;
                for (int64_t v = 0; v < B.window; v++) {
                    const entry first = {w % M, w * B.window, l, t}, at = {w % M, w * B.window + v, l, t};
                    int64_t codes;
                    const int64_t x = code_of(&B, first, rows, &codes) / 2, row = code_of(&B, at, rows, &codes) / 2;
                    HOLDS(row == (x + v) % (codes / 2), "row " I64 ", column 0 has " I64 " of " I64, row, x, codes / 2);
                    HOLDS(!taken[row], "two columns of a window in row " I64 " of stratum " I64, row, t);
                    taken[row] = 1;
                }
            }
    }
}

/* Signs of two columns of a window, in the same stratum or others, and the row of the first: all equally likely. */
static void signs_in_a_window_are_independent(void **state)
{
    enum { WINDOWS = 20000 };
    static int64_t count[MOST];
    (void)state;
    for (int n = 0; n < COUNT(blocks); n++) {
        const int64_t M = blocks[n].M, s = blocks[n].s;
        const fsi_blockperm B = fsi_blockperm_make(6, 50000, blocks[n].k, M, 1, s, FSI_DEF_NONE, 1);
        const int64_t columns[] = {1, 2, B.lanes - 1, B.lanes, B.window - 1}, strata[] = {0, 1, s - 1};
        for (int i = 0; i < COUNT(columns); i++)
            for (int j = 0; j < COUNT(strata); j++) {
                const int64_t dv = columns[i], dt = strata[j];
                int64_t codes = 0, others;
                if (dv < 1 || dv >= B.window || dt >= s) continue;
                memset(count, 0, sizeof count);
                for (int64_t w = 0; w < WINDOWS; w++) {
                    const int64_t u = w * B.window + w * 5 % (B.window - dv);
                    const entry at = {0, u, 1, 0}, other = {0, u + dv, 1, dt};
                    const int64_t a = code_of(&B, at, blocks[n].k / M, &codes);
                    count[2 * a + code_of(&B, other, blocks[n].k / M, &others) % 2]++;
                }
                check_uniform(count, 2 * codes,
                              "k / M = " I64 ", s = " I64 ": signs " I64 " columns and " I64 " strata on",
                              blocks[n].k / M, s, dv, dt);
            }
    }
}

/* All signs of a window, W columns by s strata: over enough windows these vectors of bits have full rank modulo 2, so
 * no product of signs of a window is constant. */
static void no_signs_of_a_window_are_products_of_others(void **state)
{
    enum { BITS = 320, WORDS = BITS / 64, MORE = 64 };
    (void)state;
    for (int n = 0; n < COUNT(blocks); n++) {
        const int64_t M = blocks[n].M, s = blocks[n].s;
        const fsi_blockperm B = fsi_blockperm_make(8, 50000, blocks[n].k, M, 1, s, FSI_DEF_NONE, 1);
        const int64_t bits = B.window * s;
        static uint64_t basis[BITS][WORDS];
        int64_t rank = 0;
        assert_true(bits <= BITS);
        memset(basis, 0, sizeof basis);
        for (int64_t w = 0; w < bits + MORE; w++) {
            uint64_t x[WORDS] = {0};
            for (int64_t b = 0; b < bits; b++) {
                const entry at = {w % M, w * B.window + b / s, 1, b % s};
                int64_t codes;
                x[b / 64] |= (uint64_t)(code_of(&B, at, blocks[n].k / M, &codes) & 1) << b % 64;
            }
            for (int64_t b = 0; b < bits; b++) {
                if (!(x[b / 64] >> b % 64 & 1)) continue;
                const int pivot = (int)(basis[b][b / 64] >> b % 64 & 1);
                if (!pivot) {
                    memcpy(basis[b], x, sizeof x);
                    rank++;
                    break;
                }
                for (int i = 0; i < WORDS; i++) x[i] ^= basis[b][i];
            }
        }
        HOLDS(rank == bits, "k / M = " I64 ", s = " I64 ": the " I64 " signs of a window have rank " I64,
              blocks[n].k / M, s, bits, rank);
    }
}

typedef struct support {
    int64_t count;
    unsigned char taken[MOST];
} support;

static void take(void *user, int64_t i, int64_t j, double value)
{
    support *x = (support *)user;
    (void)value;
    HOLDS(!x->taken[i], "column " I64 " has row " I64 " in common with another of its window", j, i);
    x->taken[i] = 1;
    x->count++;
}

static const struct {
    int64_t k, M, kappa, s, interleave;
    int32_t shuffle;
} shuffled[] = {
    {512, 8, 1, 8, 1, FSI_DEF_ROWS},    {107, 6, 1, 5, 1, FSI_DEF_ROWS},     {1024, 16, 1, 8, 1, FSI_DEF_ROWS},
    {2500, 100, 1, 3, 1, FSI_DEF_ROWS}, {512, 8, 3, 4, 1, FSI_DEF_ROWS},     {107, 6, 2, 5, 1, FSI_DEF_NONE},
    {300, 1, 1, 7, 1, FSI_DEF_NONE},    {2048, 32, 2, 4, 8, FSI_DEF_GROUPS}, {1000, 16, 1, 8, 4, FSI_DEF_GROUPS},
};

/* Columns of a window of a block are orthogonal with disjoint supports, for every kappa.  With kappa = 1 and shuffled
 * rows so are those of all W rounds that windows are made of, and they fill all of S where everything divides. */
static void S_is_an_isometry_on_windows(void **state)
{
    static support x;
    (void)state;
    for (int n = 0; n < COUNT(shuffled); n++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            const fsi_def_spec p = blockperm_spec(60000, shuffled[n].k, shuffled[n].M, shuffled[n].kappa, shuffled[n].s,
                                                  shuffled[n].shuffle, shuffled[n].interleave, seed);
            const fsi_def S = fsi_def_make(&p);
            const fsi_blockperm *B = &S.u.blockperm;
            const int rounds = p.kappa == 1 && p.shuffle == FSI_DEF_ROWS;
            for (int64_t w = 0; w < 12; w++) {
                memset(&x, 0, sizeof x);
                for (int64_t h = 0; h < p.M; h++) {
                    for (int64_t u = w * B->window; u < (w + 1) * B->window; u++) {
                        const int64_t j = fsi_blockperm_column(B, h, u);
                        if (j < p.d) fsi_def_visit(&S, j, j + 1, take, &x);
                    }
                    if (!rounds) memset(&x, 0, sizeof x);
                }
                HOLDS(!rounds || x.count == B->window * p.M * p.s, I64 " nonzeros in W rounds", x.count);
                HOLDS(!rounds || p.k % (p.M * p.s) || x.count == p.k, I64 " of " I64 " rows in W rounds", x.count, p.k);
            }
        }
}

/* Each whole row of S: the nonzeros in it and their signs, for blocks and strata of equal size. */
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
            const fsi_local at = fsi_blockperm_local(&B, j);
            uint32_t g = (uint32_t)at.h, code[FSI_MAX_PER_BAND];
            for (int64_t l = 1; l <= 2; l++) {
                g = fsi_wiring_back(&B.wiring, g);
                const int c = fsi_blockperm_nonzeros(&B, at.h, at.u, l, 0, 30, code, 1);
                HOLDS(c == 5, "%d nonzeros in one word, not 5", c);
                for (int t = 0; t < c; t++) count[60 * g + code[t]]++;
            }
        }
        check_uniform(count, 2 * K, "shuffle %d: rows and signs of S", shuffles[n]);
    }
}

/* The packed words of local rows u ... u + 3 in band q hold what fsi_blockperm_nonzeros gives, counted from the first row
 * of the band, and all forms are the same. */
static void check_packed(const fsi_blockperm *B, int64_t h, int64_t u, int64_t l, int64_t q)
{
    const fsi_philox_keys keys = fsi_philox_keys_of(B->seed);
    const uint32_t band = fsi_blockperm_band(B, l, q), start = 2 * (uint32_t)(q * B->per_band * B->window);
    const fsi_quad quad = fsi_blockperm_quad(B, h, u, band), rolled = fsi_blockperm_quad_rolled(B, h, u, band),
                   by = fsi_blockperm_quad_by(B, &keys, h, u, band);
    assert_memory_equal(&quad, &rolled, sizeof quad);
    assert_memory_equal(&quad, &by, sizeof quad);
    for (int i = 0; i < 4; i++) {
        uint32_t word = quad.w[i], code[FSI_MAX_PER_BAND];
        const int count = fsi_blockperm_nonzeros(B, h, u + i, l, q, B->out.small, code, 1);
        HOLDS(count == B->per_band, "%d nonzeros in a word, not %d", count, B->per_band);
        for (uint32_t t = 0; t < (uint32_t)count; t++) {
            const uint32_t packed = fsi_packed_code(B, t, &word);
            HOLDS(packed + start == code[t],
                  "k / M = " I64 ", s = " I64 ", local row " I64 " of block " I64 ", stratum " U32 " of band " I64
                  ": code " U32 " + " U32 " in the packed word, " U32 " in the nonzeros",
                  B->out.small, B->s, u + i, h, t, q, start, packed, code[t]);
        }
    }
}

/* The rotations of the window of local row u, a multiple of 4, place its nonzeros where its packed word does. */
static void check_rotations(const fsi_blockperm *B, int64_t h, int64_t u, int64_t l, int64_t q)
{
    const uint32_t band = fsi_blockperm_band(B, l, q), W = (uint32_t)B->window, strata = (uint32_t)B->per_band;
    const fsi_quad c = fsi_blockperm_packed_counter(B, h, u, band), words = fsi_blockperm_quad(B, h, u, band);
    const fsi_quad random = fsi_philox(c, (uint32_t)B->seed, (uint32_t)(B->seed >> 32));
    const fsi_rotations r = fsi_blockperm_rotations(random, strata);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t word = words.w[i];
        for (uint32_t t = 0; t < strata; t++) {
            const uint32_t v = ((uint32_t)u + i) % W, row = (r.turn[t] + v) % W, lanes = W / 2;
            const uint32_t minus = r.minus[row / lanes] << (t * lanes + row % lanes) >> 31;
            const uint32_t code = 2 * (t * W + row) + minus, packed = fsi_packed_code(B, t, &word);
            HOLDS(code == packed, U32 " strata, column " U32 ", stratum " U32 ": code " U32 ", packed " U32, strata, v,
                  t, code, packed);
        }
    }
}

static void packed_words_are_the_nonzeros(void **state)
{
    static const struct {
        int64_t rows, s;
        int packed;
    } cases[] = {
        {64, 1, 1},  {64, 2, 1},   {64, 4, 1},   {64, 8, 1},  {64, 16, 1}, {64, 32, 0}, {64, 64, 0},
        {64, 3, 0},  {48, 4, 0},   {48, 3, 0},   {80, 5, 0},  {96, 6, 0},  {32, 4, 1},  {32, 8, 1},
        {16, 4, 1},  {8, 4, 0},    {4, 1, 1},    {96, 4, 0},  {96, 3, 0},  {128, 2, 1}, {128, 4, 1},
        {128, 8, 1}, {128, 16, 1}, {128, 32, 1}, {256, 4, 1}, {256, 8, 1}, {128, 1, 0}, {65536, 1, 0},
    };
    (void)state;
    for (int n = 0; n < COUNT(cases); n++) {
        const int64_t k = 8 * cases[n].rows;
        const uint64_t seed = 0xFEDCBA9876543210u + (uint64_t)n;
        const fsi_blockperm B = fsi_blockperm_make(seed, FSI_MAX_D, k, 8, 3, cases[n].s, FSI_DEF_ROWS, 1);
        const fsi_blockperm uneven = fsi_blockperm_make(seed, FSI_MAX_D, k + 1, 8, 3, cases[n].s, FSI_DEF_ROWS, 1);
        HOLDS(B.packed == cases[n].packed && !uneven.packed,
              I64 " rows, s = " I64 ": packed is %d, %d in uneven blocks", cases[n].rows, cases[n].s, B.packed,
              uneven.packed);
        for (int64_t i = 0; B.packed && i < 600; i++) {
            check_packed(&B, i % 8, 4 * i, 1 + i % 3, i % B.bands);
            check_packed(&B, i % 8, 4 * (i * i * i * 31 + 7 * i), 1 + i % 3, i % B.bands);
            check_packed(&B, i % 8, FSI_MAX_D / 8 - 4 - 4 * i, 1, i % B.bands);
            if (B.per_band > 1 && B.per_band * B.window == FSI_BAND_ROWS)
                check_rotations(&B, i % 8, 4 * i, 1 + i % 3, i % B.bands);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_column_has_kappa_s_nonzeros_one_in_each_stratum),
        cmocka_unit_test(rows_and_signs_are_uniform_and_independent_across_windows_and_bands),
        cmocka_unit_test(bands_are_as_few_as_rows_and_digits_allow),
        cmocka_unit_test(bands_share_no_random_words),
        cmocka_unit_test(large_strata_are_unbiased),
        cmocka_unit_test(columns_of_a_window_have_different_rows),
        cmocka_unit_test(signs_in_a_window_are_independent),
        cmocka_unit_test(no_signs_of_a_window_are_products_of_others),
        cmocka_unit_test(S_is_an_isometry_on_windows),
        cmocka_unit_test(rows_of_S_are_equally_full_and_signs_balance),
        cmocka_unit_test(packed_words_are_the_nonzeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
