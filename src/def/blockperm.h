/* blockperm.h - BlockPerm-SJLT: column j of S, for every legal (d, k, M, kappa, s).
 *
 * The rows of Y are split into M output blocks, the rows of A into M input blocks.  The shuffle decides which input block
 * h and which local row u of it column j is:
 *     none    contiguous blocks, [d] split in M: u counts from the start of the block
 *     rows    M successive columns are a round; the column at place i of round u is a local row u of block
 *             (place_u(i) + shift_u) mod M, so the columns of a round go to M different blocks
 *     groups  the same with row groups of 32 columns for columns and super-blocks H of c neighbouring blocks for blocks;
 *             the 32 columns of row group l go to the c blocks of H by class, 32 / c columns each
 * ways successive rounds are a cycle.  The shifts of a cycle are all different: in a cycle a place meets every block
 * once, so large rows side by side or at a stride load the blocks evenly.  With fewer than FSI_CYCLE ways, where a
 * cycle would hold too little randomness, shifts are independent.
 *
 * Input block h feeds the kappa output blocks g with pi_l(g) = h.  In each of them column j has s nonzeros
 * +-1 / sqrt(kappa s), one in each of the s strata that the rows of the block are split into (the row-partitioned SJLT
 * of the paper's proofs; Kane and Nelson's block construction).  So every column has exactly kappa s nonzeros.
 *
 * W successive local rows of a block, W rows being the smallest stratum, are a window.  Within a window no two columns
 * have a row in common: stratum t holds column v = u mod W of the window in row (x_t + v) mod its size, x_t random for
 * each window, block and stratum.  So S is an isometry on the columns of a window, and for kappa = 1 on those of W
 * rounds w W ... w W + W - 1.
 *
 * Neighbouring strata form bands of at most 64 rows, where a stratum has no more: what a tensor-core tile holds.  A band
 * has its own random words, so that a tile is generated from them alone: a block of two bands is to a kernel what two
 * blocks are that read the same rows of A.  The words of a band and a window (one Philox call for 64 rows) are at
 * addresses that depend on block, band and window: column j is generated from (h, u) alone, by any thread or rank.
 *
 * SJLT is the case M = 1, kappa = 1; CountSketch has s = 1 besides. */
#ifndef FSI_DEF_BLOCKPERM_H
#define FSI_DEF_BLOCKPERM_H

#include "def/split.h"
#include "def/wiring.h"

enum { FSI_GROUP_ROWS = 32, FSI_MAX_PER_BAND = 32, FSI_BAND_ROWS = 64, FSI_CYCLE = 16 };
enum fsi_def_shuffle { FSI_DEF_NONE = 1, FSI_DEF_ROWS = 2, FSI_DEF_GROUPS = 3 };

typedef struct fsi_blockperm {
    uint64_t seed;
    int64_t d, k, M, kappa, s;
    int64_t interleave;  /* c; 1 unless shuffle is groups */
    int32_t shuffle;     /* enum fsi_def_shuffle */
    int32_t per_band;    /* strata of a band, at most FSI_MAX_PER_BAND: their digits share a random word */
    int64_t bands;       /* of a block: ceil(s / per_band) */
    int64_t window;      /* W */
    int32_t lanes;       /* columns whose signs share a word */
    int64_t sign_words;  /* of a band and a window: ceil(W / lanes) */
    uint32_t quads;      /* Philox calls that hold the words of a band and a window */
    int32_t packed;      /* whether fsi_blockperm_quad makes the columns of a band, each a word */
    uint32_t ones, tops; /* of a packed word: the lowest bit of each row, the highest bit of each row */
    int32_t field;       /* bits of a row and a sign in a packed word */
    fsi_split out;       /* [k] into M output blocks */
    fsi_split in;        /* shuffle none: [d] into M input blocks */
    int64_t units, ways; /* units assigned: d rows to M blocks, or ceil(d / 32) row groups to M / c super-blocks */
    int32_t way_bits;    /* of ways - 1; 0 with fewer than FSI_CYCLE ways */
    int32_t run_bits;    /* 2^run_bits runs of 4 places are permuted */
    fsi_split strata[2]; /* a block of out.small, or of out.small + 1, rows into s strata */
    fsi_wiring wiring;
} fsi_blockperm;

FSI_DEF int32_t fsi_bits_below(uint64_t n) /* the bits of n - 1 */
{
    int32_t bits = 0;
    while (((uint64_t)1 << bits) < n) bits++;
    return bits;
}

/* The strata of a band, of s whose largest has `rows` rows: as many as 64 rows hold, if one fits, and as one random word
 * holds digits (the largest digit base is 2 rows, and the bases multiply to at most 2^32); then evenly divided. */
FSI_DEF int64_t fsi_blockperm_per_band(int64_t s, int64_t rows)
{
    const int64_t digits = 32 / fsi_bits_below((uint64_t)(2 * rows));
    const int64_t most = rows <= FSI_BAND_ROWS && FSI_BAND_ROWS / rows < digits ? FSI_BAND_ROWS / rows : digits;
    const int64_t bands = (s + most - 1) / most;
    return (s + bands - 1) / bands;
}

/* The constants of windows. */
FSI_DEF void fsi_blockperm_set_windows(fsi_blockperm *B)
{
    const int64_t rows = B->strata[0].small;
    B->per_band = (int32_t)fsi_blockperm_per_band(B->s, fsi_split_size(&B->strata[B->out.larger > 0], 0));
    B->bands = (B->s + B->per_band - 1) / B->per_band;
    B->window = rows;
    B->lanes = 32 / B->per_band;
    B->sign_words = (rows + B->lanes - 1) / B->lanes;
    B->quads = (uint32_t)((1 + B->sign_words + 3) / 4);
    B->packed = B->out.larger == 0 && B->strata[0].larger == 0 && (rows & (rows - 1)) == 0 && rows >= 4 &&
                B->s % B->per_band == 0 && B->lanes % 4 == 0 && B->quads == 1;
    B->field = fsi_bits_below((uint64_t)(2 * rows));
    B->ones = B->tops = 0;
    for (int32_t t = 0; B->packed && t < B->per_band; t++) {
        B->ones |= 2u << (32 - B->field * (t + 1));
        B->tops |= 1u << (31 - B->field * t);
    }
}

FSI_DEF fsi_blockperm fsi_blockperm_make(uint64_t seed, int64_t d, int64_t k, int64_t M, int64_t kappa, int64_t s,
                                         int32_t shuffle, int64_t interleave)
{
    fsi_blockperm B;
    B.seed = seed;
    B.d = d;
    B.k = k;
    B.M = M;
    B.kappa = kappa;
    B.s = s;
    B.interleave = interleave;
    B.shuffle = shuffle;
    B.out = fsi_split_make(k, M);
    B.in = fsi_split_make(d, M);
    B.units = shuffle == FSI_DEF_GROUPS ? (d + FSI_GROUP_ROWS - 1) / FSI_GROUP_ROWS : d;
    B.ways = M / interleave;
    B.way_bits = B.ways >= FSI_CYCLE ? fsi_bits_below((uint64_t)B.ways) : 0;
    B.run_bits = 0;
    while (B.ways >= FSI_CYCLE && ((int64_t)8 << B.run_bits) <= B.ways) B.run_bits++;
    B.strata[0] = fsi_split_make(B.out.small, s);
    B.strata[1] = fsi_split_make(B.out.small + 1, s);
    B.wiring = fsi_wiring_make(seed, (uint32_t)M);
    fsi_blockperm_set_windows(&B);
    return B;
}

/* rounds -------------------------------------------------------------------------------------------------------- */

/* Where the places of a round go: the runs of 4 places numbered below 2^run_bits are permuted by `mask`, a multiple of
 * 4, then all places are shifted. */
typedef struct fsi_round {
    uint32_t shift, mask;
} fsi_round;

/* A quotient whose operands mostly fit 32 bits, because 64-bit division is slow on GPUs. */
FSI_DEF uint64_t fsi_quotient(uint64_t x, uint64_t y)
{
    return (x | y) >> 32 ? x / y : (uint64_t)((uint32_t)x / (uint32_t)y);
}

/* A bijection of [2^way_bits], by the random words of a cycle. */
FSI_DEF uint32_t fsi_blockperm_mix(const fsi_blockperm *B, const fsi_quad *keys, uint32_t x)
{
    const uint32_t low = ((uint32_t)1 << (B->way_bits & 31)) - 1;
    const uint32_t half = (uint32_t)(B->way_bits + 1) / 2, third = (uint32_t)(B->way_bits + 2) / 3;
    x = (x * (keys->w[0] | 1) + (keys->w[0] >> 16)) & low;
    x ^= x >> half;
    x = (x * (keys->w[1] | 1) + (keys->w[1] >> 16)) & low;
    x ^= x >> third;
    x = (x * (keys->w[2] | 1) + (keys->w[2] >> 16)) & low;
    x ^= x >> half;
    return (x * (keys->w[3] | 1) + (keys->w[3] >> 16)) & low;
}
/* Round number x of a cycle with these random words: x goes through the bijection until it is below ways.  Over all
 * words, a difference of the shifts of two rounds has at most about twice its share (tests/def/test_shuffle.c). */
FSI_DEF fsi_round fsi_blockperm_round_of(const fsi_blockperm *B, const fsi_quad *keys, uint32_t x)
{
    fsi_round r;
    do x = fsi_blockperm_mix(B, keys, x);
    while (x >= (uint32_t)B->ways);
    r.shift = x;
    r.mask = B->run_bits ? keys->w[3] >> (32 - B->run_bits) << 2 : 0;
    return r;
}

/* The cycle of round q, and which of its rounds q is. */
FSI_DEF uint64_t fsi_blockperm_cycle(const fsi_blockperm *B, int64_t q, uint32_t *number)
{
    const uint64_t cycle = fsi_quotient((uint64_t)q, (uint64_t)B->ways);
    *number = (uint32_t)((uint64_t)q - cycle * (uint64_t)B->ways);
    return cycle;
}
/* Round q where there are no cycles. */
FSI_DEF fsi_round fsi_blockperm_lone_round(const fsi_blockperm *B, int64_t q)
{
    fsi_round r;
    r.shift = fsi_random_below(B->seed, FSI_TAG_SHUFFLE, (uint64_t)q, 0, (uint32_t)B->ways);
    r.mask = 0;
    return r;
}
/* Round q. */
FSI_DEF fsi_round fsi_blockperm_round(const fsi_blockperm *B, int64_t q)
{
    uint32_t number;
    if (!B->way_bits) return fsi_blockperm_lone_round(B, q);
    const uint64_t cycle = fsi_blockperm_cycle(B, q, &number);
    const fsi_quad keys = fsi_random_quad(B->seed, FSI_TAG_SHUFFLE, cycle, 1, 0);
    return fsi_blockperm_round_of(B, &keys, number);
}
/* Rounds 4 i ... 4 i + 3, which mostly share a Philox call; their chains of instructions overlap. */
FSI_DEF void fsi_blockperm_rounds(const fsi_blockperm *B, int64_t i, fsi_round *round)
{
    const uint32_t ways = (uint32_t)B->ways;
    uint32_t first = 0, x[4];
    const uint64_t item = B->way_bits ? fsi_blockperm_cycle(B, 4 * i, &first) : (uint64_t)i;
    const fsi_quad random = fsi_random_quad(B->seed, FSI_TAG_SHUFFLE, item, B->way_bits > 0, 0);
    if (B->way_bits) {
        const uint32_t mask = B->run_bits ? random.w[3] >> (32 - B->run_bits) << 2 : 0;
        /* Rounds of the next cycle are computed below: the number that their cycle walk would begin with here may never
         * return to the range. */
        for (uint32_t j = 0; j < 4; j++) x[j] = fsi_blockperm_mix(B, &random, first + j < ways ? first + j : 0);
        for (int j = 0; j < 4; j++) {
            while (x[j] >= ways) x[j] = fsi_blockperm_mix(B, &random, x[j]);
            round[j].shift = x[j], round[j].mask = mask;
        }
        if (first + 3 < ways) return;
        const fsi_quad next = fsi_random_quad_rolled(B->seed, FSI_TAG_SHUFFLE, item + 1, 1);
        for (uint32_t j = 0; j < 4; j++)
            if (first + j >= ways) round[j] = fsi_blockperm_round_of(B, &next, first + j - ways);
        return;
    }
    int doubtful = 0;
    for (int j = 0; j < 4; j++) {
        uint32_t rest = random.w[j];
        round[j].shift = fsi_digit(&rest, ways);
        round[j].mask = 0;
        doubtful |= rest < ways;
    }
    for (int j = 0; j < 4 && doubtful; j++) round[j] = fsi_blockperm_lone_round(B, 4 * i + j);
}
/* Round q in few instructions, for code that runs once (fsi_random_quad_rolled). */
FSI_DEF fsi_round fsi_blockperm_round_rolled(const fsi_blockperm *B, int64_t q)
{
    const uint64_t cycle = B->way_bits ? fsi_quotient((uint64_t)q, (uint64_t)B->ways) : (uint64_t)q >> 2;
    const fsi_quad quad = fsi_random_quad_rolled(B->seed, FSI_TAG_SHUFFLE, cycle, B->way_bits > 0);
    if (B->way_bits) return fsi_blockperm_round_of(B, &quad, (uint32_t)((uint64_t)q - cycle * (uint64_t)B->ways));
    uint32_t rest = fsi_quad_word(quad, (uint64_t)q);
    fsi_round r;
    r.shift = fsi_digit(&rest, (uint32_t)B->ways);
    r.mask = 0;
    return rest < (uint32_t)B->ways ? fsi_blockperm_lone_round(B, q) : r;
}

FSI_DEF uint32_t fsi_blockperm_turned(const fsi_blockperm *B, uint32_t place, uint32_t mask)
{
    return place < (uint32_t)4 << B->run_bits ? place ^ mask : place;
}
/* The block (or super-block) of the unit at a place of a round. */
FSI_DEF int64_t fsi_blockperm_assign(const fsi_blockperm *B, int64_t place, fsi_round r)
{
    const uint32_t h = fsi_blockperm_turned(B, (uint32_t)place, r.mask) + r.shift;
    return h < (uint32_t)B->ways ? h : h - (uint32_t)B->ways;
}
/* The inverse: the place of a round that block (or super-block) h gets. */
FSI_DEF uint32_t fsi_blockperm_place(const fsi_blockperm *B, uint32_t h, fsi_round r)
{
    return fsi_blockperm_turned(B, h >= r.shift ? h - r.shift : h - r.shift + (uint32_t)B->ways, r.mask);
}
/* The unit of round q that block or super-block h gets.  In an incomplete last round the result may be B->units or more:
 * h gets none. */
FSI_DEF int64_t fsi_blockperm_assigned_from(const fsi_blockperm *B, int64_t h, int64_t q, fsi_round r)
{
    return q * B->ways + fsi_blockperm_place(B, (uint32_t)h, r);
}
FSI_DEF int64_t fsi_blockperm_assigned(const fsi_blockperm *B, int64_t h, int64_t q)
{
    return fsi_blockperm_assigned_from(B, h, q, fsi_blockperm_round(B, q));
}
FSI_DEF int64_t fsi_blockperm_assigned_rolled(const fsi_blockperm *B, int64_t h, int64_t q)
{
    return fsi_blockperm_assigned_from(B, h, q, fsi_blockperm_round_rolled(B, q));
}

/* columns and local rows ---------------------------------------------------------------------------------------- */

/* Shuffle groups: the random word of a row group, and the class of the column `offset` = 0 ... 31 of it: which block of
 * its super-block.  Class t has a column in each run of c columns, p = 0 ... 32 / c - 1: a random mask, of which every bit
 * of p changes random bits, so that columns at any stride are spread over the classes. */
FSI_DEF uint32_t fsi_blockperm_group_word(const fsi_blockperm *B, int64_t group)
{
    return fsi_random_word(B->seed, FSI_TAG_GROUP, (uint64_t)group, 0, 0);
}
FSI_DEF uint32_t fsi_blockperm_group_word_rolled(const fsi_blockperm *B, int64_t group)
{
    return fsi_quad_word(fsi_random_quad_rolled(B->seed, FSI_TAG_GROUP, (uint64_t)group >> 2, 0), (uint64_t)group);
}
/* The mask of run p: bits 27 ... 31 of the word, with bits 5 b ... 5 b + 4 for every bit b of p that is set. */
FSI_DEF uint32_t fsi_blockperm_mask(uint32_t word, uint32_t p)
{
    uint32_t mask = word >> 27;
    for (int b = 0; b < 5; b++) mask ^= p >> b & 1 ? word >> 5 * b : 0;
    return mask & 31;
}
FSI_DEF uint32_t fsi_blockperm_class(const fsi_blockperm *B, uint32_t offset, uint32_t word)
{
    const uint32_t c = (uint32_t)B->interleave;
    return (offset ^ fsi_blockperm_mask(word, offset / c)) & (c - 1);
}
/* The inverse: the offset of the column of class t in run p. */
FSI_DEF uint32_t fsi_blockperm_offset(const fsi_blockperm *B, uint32_t t, uint32_t p, uint32_t word)
{
    const uint32_t c = (uint32_t)B->interleave;
    return p * c + ((t ^ fsi_blockperm_mask(word, p)) & (c - 1));
}

/* The local row of column j, which is in input block h. */
FSI_DEF int64_t fsi_blockperm_local_row(const fsi_blockperm *B, int64_t h, int64_t j)
{
    if (B->shuffle == FSI_DEF_NONE) return j - fsi_split_start(&B->in, h);
    if (B->shuffle == FSI_DEF_ROWS) return (int64_t)fsi_quotient((uint64_t)j, (uint64_t)B->ways);
    const int64_t q = (int64_t)fsi_quotient((uint64_t)(j / FSI_GROUP_ROWS), (uint64_t)B->ways), c = B->interleave;
    return q * (FSI_GROUP_ROWS / c) + j % FSI_GROUP_ROWS / c;
}

/* Input block h and local row u of a column of S. */
typedef struct fsi_local {
    int64_t h, u;
} fsi_local;

FSI_DEF fsi_local fsi_blockperm_local(const fsi_blockperm *B, int64_t j)
{
    fsi_local at;
    if (B->shuffle == FSI_DEF_NONE) {
        at.h = fsi_split_index(&B->in, j);
    } else {
        const int64_t unit = B->shuffle == FSI_DEF_GROUPS ? j / FSI_GROUP_ROWS : j;
        const int64_t q = (int64_t)fsi_quotient((uint64_t)unit, (uint64_t)B->ways);
        at.h = fsi_blockperm_assign(B, unit - q * B->ways, fsi_blockperm_round(B, q)) * B->interleave;
        if (B->shuffle == FSI_DEF_GROUPS)
            at.h += fsi_blockperm_class(B, (uint32_t)(j % FSI_GROUP_ROWS), fsi_blockperm_group_word(B, unit));
    }
    at.u = fsi_blockperm_local_row(B, at.h, j);
    return at;
}
/* The inverse; past the end of S where block h has no such local row. */
FSI_DEF int64_t fsi_blockperm_column(const fsi_blockperm *B, int64_t h, int64_t u)
{
    if (B->shuffle == FSI_DEF_NONE) return u < fsi_split_size(&B->in, h) ? fsi_split_start(&B->in, h) + u : B->d;
    if (B->shuffle == FSI_DEF_ROWS) return fsi_blockperm_assigned(B, h, u);
    const int64_t c = B->interleave, each = FSI_GROUP_ROWS / c, group = fsi_blockperm_assigned(B, h / c, u / each);
    return group * FSI_GROUP_ROWS +
           fsi_blockperm_offset(B, (uint32_t)(h % c), (uint32_t)(u % each), fsi_blockperm_group_word(B, group));
}

/* nonzeros ------------------------------------------------------------------------------------------------------- */

/* How many strata band q of a block has: strata q per_band, q per_band + 1, ... */
FSI_DEF int fsi_blockperm_count(const fsi_blockperm *B, int64_t q)
{
    const int64_t left = B->s - q * B->per_band;
    return (int)(left < B->per_band ? left : B->per_band);
}

/* The Philox calls of band q under permutation l begin at this e. */
FSI_DEF uint32_t fsi_blockperm_band(const fsi_blockperm *B, int64_t l, int64_t q)
{
    return ((uint32_t)(l - 1) * (uint32_t)B->bands + (uint32_t)q) * B->quads;
}

/* Random word n of the band whose calls begin at `band`, of a window of block h. */
FSI_DEF uint32_t fsi_blockperm_window_word(const fsi_blockperm *B, int64_t h, uint64_t window, uint32_t band, int64_t n,
                                           uint32_t attempt)
{
    const uint32_t e = band + (uint32_t)(n >> 2);
    return fsi_quad_word(fsi_random_quad(B->seed, FSI_TAG_COLUMN, window * (uint64_t)B->M + (uint64_t)h, e, attempt),
                         (uint64_t)n);
}

/* What the nonzeros of a column in a band are made from, in order: digits of the window, signs of the column from the
 * top bit on, every `lanes` bits, and its number in the window. */
typedef struct fsi_draw {
    uint32_t digits, signs, turn;
} fsi_draw;

/* The sum of the digit of stratum t and of the column: 2 (row in the block) + (1 if the sign is minus). */
FSI_DEF uint32_t fsi_blockperm_code(const fsi_blockperm *B, const fsi_split *parts, int64_t t, fsi_draw *draw)
{
    /* fsi_split_start and fsi_split_size in 32 bits, which is what GPUs compute with; a block has
     * fewer than 2^31 rows. */
    const uint32_t small = (uint32_t)parts->small, larger = (uint32_t)parts->larger, u = (uint32_t)t;
    const uint32_t size = small + (u < larger), digit = fsi_digit(&draw->digits, 2 * size);
    const uint32_t sum = (digit >> 1) + draw->turn, row = sum < size ? sum : sum - size;
    const uint32_t minus = (digit & 1) ^ (draw->signs >> 31);
    draw->signs = B->lanes < 32 ? draw->signs << B->lanes : 0;
    return 2 * (u * small + (u < larger ? u : larger) + row) + minus;
}

/* Whether the digit word of band q of a window in blocks of `rows` rows must be drawn again. */
FSI_DEF int fsi_blockperm_redraws(const fsi_blockperm *B, uint32_t word, int64_t q, int64_t rows)
{
    const fsi_split *parts = &B->strata[rows - B->out.small];
    uint64_t product = 1;
    if (B->packed) return 0;
    for (int c = 0; c < fsi_blockperm_count(B, q); c++) {
        const uint32_t base = 2 * (uint32_t)fsi_split_size(parts, q * B->per_band + c);
        fsi_digit(&word, base);
        product *= base;
    }
    return fsi_rejects(word, product);
}

/* The number of the word with the signs of column `turn` of a window. */
FSI_DEF int64_t fsi_blockperm_sign_word(const fsi_blockperm *B, uint32_t turn) { return 1 + turn / (uint32_t)B->lanes; }

/* What the nonzeros of local row u of block h in band q are made from, under permutation l, in an output block of `rows`
 * rows. */
FSI_DEF fsi_draw fsi_blockperm_draw(const fsi_blockperm *B, int64_t h, int64_t u, int64_t l, int64_t q, int64_t rows)
{
    const uint64_t window = fsi_quotient((uint64_t)u, (uint64_t)B->window);
    const uint32_t band = fsi_blockperm_band(B, l, q);
    const fsi_quad quad = fsi_random_quad(B->seed, FSI_TAG_COLUMN, window * (uint64_t)B->M + (uint64_t)h, band, 0);
    fsi_draw draw;
    draw.turn = (uint32_t)((uint64_t)u - window * (uint64_t)B->window);
    draw.digits = quad.w[0];
    for (uint32_t attempt = 1; fsi_blockperm_redraws(B, draw.digits, q, rows); attempt++)
        draw.digits = fsi_blockperm_window_word(B, h, window, band, 0, attempt);
    const int64_t n = fsi_blockperm_sign_word(B, draw.turn);
    draw.signs = n < 4 ? fsi_quad_word(quad, (uint64_t)n) : fsi_blockperm_window_word(B, h, window, band, n, 0);
    draw.signs <<= draw.turn % (uint32_t)B->lanes;
    return draw;
}

/* The nonzeros of local row u of block h in band q under permutation l, `stride` apart in code, as fsi_blockperm_code
 * gives them; returns how many. */
FSI_DEF int fsi_blockperm_nonzeros(const fsi_blockperm *B, int64_t h, int64_t u, int64_t l, int64_t q, int64_t rows,
                                   uint32_t *code, int64_t stride)
{
    fsi_draw draw = fsi_blockperm_draw(B, h, u, l, q, rows);
    const int count = fsi_blockperm_count(B, q);
    for (int c = 0; c < count; c++)
        code[c * stride] = fsi_blockperm_code(B, &B->strata[rows - B->out.small], q * B->per_band + c, &draw);
    return count;
}

/* Decodes n draws of band q in blocks of `rows` rows, given as arrays: code[c stride + i] is nonzero q per_band + c of
 * draw i. */
FSI_DEF void fsi_blockperm_decode(const fsi_blockperm *B, uint32_t *digits, uint32_t *signs, const uint32_t *turn,
                                  int n, int64_t q, int64_t rows, uint32_t *code, int64_t stride)
{
    const fsi_split *parts = &B->strata[rows - B->out.small];
    const int count = fsi_blockperm_count(B, q);
    for (int c = 0; c < count; c++) {
        uint32_t *to = code + c * stride;
        for (int i = 0; i < n; i++) {
            fsi_draw draw;
            draw.digits = digits[i], draw.signs = signs[i], draw.turn = turn[i];
            to[i] = fsi_blockperm_code(B, parts, q * B->per_band + c, &draw);
            digits[i] = draw.digits, signs[i] = draw.signs;
        }
    }
}

/* packed words --------------------------------------------------------------------------------------------------- */

/* Where B->packed, a column's nonzeros in a band fit one word: from the top, for each stratum, the bits of its row and
 * the sign.  The next code of a packed word, its row counted from the first of the band: */
FSI_DEF uint32_t fsi_packed_code(const fsi_blockperm *B, uint32_t t, uint32_t *word)
{
    const uint32_t size = (uint32_t)B->window;
    return 2 * t * size + fsi_digit(word, 2 * size);
}
/* The packed word of the column with these digits, signs and number in the window: rows are added field by field. */
FSI_DEF uint32_t fsi_blockperm_packed(const fsi_blockperm *B, uint32_t digits, uint32_t signs, uint32_t turn)
{
    const uint32_t add = turn * B->ones, sum = ((digits & ~B->tops) + (add & ~B->tops)) ^ ((digits ^ add) & B->tops);
    if (B->lanes == B->field) return sum ^ (signs >> (B->field - 1) & B->ones >> 1);
    uint32_t minus = 0;
    if (B->lanes == 8 && B->field == 5) /* four strata of 16 rows */
        minus = (signs >> 4 & 1u << 27) | (signs >> 1 & 1u << 22) | (signs << 2 & 1u << 17) | (signs << 5 & 1u << 12);
    else
        for (int t = 0; t < B->per_band; t++) minus |= (signs << t * B->lanes >> 31) << (32 - B->field * (t + 1));
    return sum ^ minus;
}
/* The quad of random words that digits and signs of local rows u ... u + 3 of block h, u a multiple of 4, are in; `band`
 * as fsi_blockperm_band gives it. */
FSI_DEF fsi_quad fsi_blockperm_packed_counter(const fsi_blockperm *B, int64_t h, int64_t u, uint32_t band)
{
    const uint64_t window = (uint64_t)u >> (B->field - 1);
    return fsi_random_counter(FSI_TAG_COLUMN, window * (uint64_t)B->M + (uint64_t)h, band, 0);
}
/* The packed words of these local rows, from that quad. */
FSI_DEF fsi_quad fsi_blockperm_packed_from(const fsi_blockperm *B, fsi_quad random, int64_t u)
{
    /* lanes is a power of two, 32 / per_band */
    const uint32_t turn = (uint32_t)u & ((uint32_t)B->window - 1), lanes = (uint32_t)B->lanes;
    const uint32_t signs = fsi_quad_word(random, 1 + turn / lanes) << (turn & (lanes - 1));
    fsi_quad words;
    for (uint32_t i = 0; i < 4; i++) words.w[i] = fsi_blockperm_packed(B, random.w[0], signs << i, turn + i);
    return words;
}
FSI_DEF fsi_quad fsi_blockperm_quad(const fsi_blockperm *B, int64_t h, int64_t u, uint32_t band)
{
    const fsi_quad counter = fsi_blockperm_packed_counter(B, h, u, band);
    return fsi_blockperm_packed_from(B, fsi_philox(counter, (uint32_t)B->seed, (uint32_t)(B->seed >> 32)), u);
}
/* The same from precomputed round keys, in few instructions. */
FSI_DEF fsi_quad fsi_blockperm_quad_by(const fsi_blockperm *B, const fsi_philox_keys *keys, int64_t h, int64_t u,
                                       uint32_t band)
{
    return fsi_blockperm_packed_from(B, fsi_philox_by(keys, fsi_blockperm_packed_counter(B, h, u, band)), u);
}
FSI_DEF fsi_quad fsi_blockperm_quad_rolled(const fsi_blockperm *B, int64_t h, int64_t u, uint32_t band)
{
    const fsi_quad c = fsi_blockperm_packed_counter(B, h, u, band);
    const fsi_quad random = fsi_random_quad_rolled(B->seed, FSI_TAG_COLUMN, (uint64_t)c.w[1] << 32 | c.w[0], c.w[2]);
    return fsi_blockperm_packed_from(B, random, u);
}

/* rotations ------------------------------------------------------------------------------------------------------ */

/* Where B->packed, every row of a stratum has a nonzero in one column of a window: row r of stratum t in column (r - x_t)
 * mod W.  So a window of a band is a rotation and W signs for each stratum. */
typedef struct fsi_rotations {
    uint32_t turn[8];  /* x_t */
    uint32_t minus[2]; /* the signs by row, each in the layout of a sign word: rows below W / 2, the others */
} fsi_rotations;

/* The rotations of a band of `strata` strata and 64 rows (1 < strata <= 8, B->packed), from the window's quad of random
 * words. */
FSI_DEF fsi_rotations fsi_blockperm_rotations(fsi_quad random, uint32_t strata)
{
    const uint32_t W = FSI_BAND_ROWS / strata, lanes = W / 2, half = ((uint32_t)1 << lanes) - 1;
    const uint32_t field = strata == 8 ? 4 : strata == 4 ? 5 : 6;
    uint32_t odd = 0; /* the last bits of the digits, at the ends of the fields of a sign word */
    fsi_rotations r;
    r.minus[0] = r.minus[1] = 0;
    for (uint32_t t = 0; t < strata; t++) {
        const uint32_t up = 32 - lanes * (t + 1), digit = random.w[0] >> (32 - field * (t + 1));
        const uint32_t x = digit >> 1 & (W - 1);
        /* bit W - 1 - v of column v, and then, in the lowest W bits, of row v + x_t */
        uint32_t signs = (random.w[1] >> up & half) << lanes | (random.w[2] >> up & half);
        signs = W < 32 ? (signs << (W & 31) | signs) >> x : signs >> x | signs << ((32 - x) & 31);
        r.turn[t] = x;
        r.minus[0] |= (signs >> lanes & half) << up;
        r.minus[1] |= (signs & half) << up;
        odd |= (digit & 1) << up;
    }
    r.minus[0] ^= odd * half;
    r.minus[1] ^= odd * half;
    return r;
}

#endif
