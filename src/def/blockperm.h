/* blockperm.h - BlockPerm-SJLT: column j of S, for every legal (d, k, M, kappa, s).
 *
 * The rows of Y are split into M output blocks, the rows of A into M input blocks h.  Column j belongs to one
 * input block h(j), which the shuffle decides:
 *     none   h(j) = the block of j when [d] is split                  the paper's contiguous blocks
 *     rows   columns are dealt like cards: each round of M neighbours goes to M different blocks, the first of them
 *            to block b_q, the next to b_q + 1, ... modulo M, with b_q uniform and independent for every round q
 *     lines  lines of 32 coordinates stay together and are dealt, M / c a round, to super-blocks H of c neighbouring
 *            blocks; within H column j goes to block ((j ^ x_l) mod c), x_l a random mask of its line l.
 * Dealt rows of one round never share a block, all other pairs do with probability 1/M: at every x at most the variance
 * of the full SJLT.  A random permutation of [d] has nearly the same pairs, but lets neighbours meet, so that 64 hot
 * rows in a run load the blocks unevenly; dealt, they load them evenly.  It also costs more, and its inverse needs a
 * network (permute.h) where a deal needs one word a round: row u of block h is u M + ((h - b_u) mod M).
 *
 * Input block h feeds the kappa output blocks g with pi_l(g) = h.  In each of them column j has s nonzeros
 * +-1 / sqrt(kappa s), one in each of the s parts that the block's rows are split into (the row-partitioned
 * SJLT of the paper's proofs; Kane and Nelson's block construction): s distinct rows with no rejection, and
 * the same second moment as s uniform distinct rows.  So every column has exactly kappa s nonzeros.
 *
 * Rows and signs depend on (seed, l, j) alone, not on the block or the slot in it: one 32-bit word mostly holds
 * them all (s = 4 in 64 rows: 20 bits), and four neighbouring columns share one Philox call.
 * SJLT is the case M = 1, kappa = 1; CountSketch has s = 1 besides. */
#ifndef FS_DEF_BLOCKPERM_H
#define FS_DEF_BLOCKPERM_H

#include "split.h"
#include "wiring.h"

enum { FS_LINE = 32, FS_MAX_PER_WORD = 32 };
enum fs_def_shuffle { FS_DEF_NONE = 1, FS_DEF_ROWS = 2, FS_DEF_LINES = 3 };

typedef struct fs_blockperm {
    uint64_t seed;
    int64_t d, k, M, kappa, s;
    int64_t interleave;    /* c; 1 unless shuffle is lines */
    int32_t shuffle;       /* enum fs_def_shuffle */
    int32_t per_word;      /* nonzeros that one random word holds, at most FS_MAX_PER_WORD */
    int64_t words;         /* words of a column for one permutation: ceil(s / per_word) */
    int32_t accepts[2];    /* whether every word is good, for blocks of out.small and out.small + 1 rows */
    fs_split out;          /* [k] into M output blocks */
    fs_split in;           /* shuffle none: [d] into M input blocks */
    int64_t units, ways;   /* what is dealt: d rows to M blocks, or ceil(d / 32) lines to M / c super-blocks */
    fs_split parts[2];     /* a block of out.small, or of out.small + 1, rows into s parts */
    fs_wiring wiring;
} fs_blockperm;

/* How many nonzeros one random word holds when the largest part has `part` rows: the largest digit base is twice that,
 * and so many bases multiply to at most 2^32. */
FS_DEF int32_t fs_blockperm_per_word(int64_t part)
{
    int32_t width = 1;
    while (((int64_t)1 << width) < 2 * part) width++;
    return 32 / width;
}

FS_DEF fs_blockperm fs_blockperm_make(uint64_t seed, int64_t d, int64_t k, int64_t M, int64_t kappa, int64_t s,
                                      int32_t shuffle, int64_t interleave)
{
    fs_blockperm B;
    B.seed = seed;
    B.d = d;
    B.k = k;
    B.M = M;
    B.kappa = kappa;
    B.s = s;
    B.interleave = interleave;
    B.shuffle = shuffle;
    B.out = fs_split_make(k, M);
    B.in = fs_split_make(d, M);
    B.units = shuffle == FS_DEF_LINES ? (d + FS_LINE - 1) / FS_LINE : d;
    B.ways = M / interleave;
    B.parts[0] = fs_split_make(B.out.small, s);
    B.parts[1] = fs_split_make(B.out.small + 1, s);
    B.wiring = fs_wiring_make(seed, (uint32_t)M);
    B.per_word = fs_blockperm_per_word(fs_split_size(&B.parts[B.out.larger > 0], 0));
    B.words = (s + B.per_word - 1) / B.per_word;
    for (int tall = 0; tall < 2; tall++) {
        /* The parts have at most two sizes; no word is rejected where both are powers of two. */
        const int64_t part = B.parts[tall].small, next = part + (B.parts[tall].larger > 0);
        B.accepts[tall] = (part & (part - 1)) == 0 && (next & (next - 1)) == 0;
    }
    return B;
}

/* b_q: where round q of the deal begins. */
FS_DEF int64_t fs_blockperm_turn(const fs_blockperm *B, int64_t q)
{
    return fs_random_below(B->seed, FS_TAG_SHUFFLE, (uint64_t)q, 0, (uint32_t)B->ways);
}
/* b_q of rounds 4 i ... 4 i + 3, which share a Philox call unless a word may have to be drawn again. */
FS_DEF void fs_blockperm_turns(const fs_blockperm *B, int64_t i, uint32_t *turn)
{
    const fs_quad quad = fs_random_quad(B->seed, FS_TAG_SHUFFLE, (uint64_t)i, 0, 0);
    int doubtful = 0;
    for (int j = 0; j < 4; j++) {
        uint32_t rest = quad.w[j];
        turn[j] = fs_digit(&rest, (uint32_t)B->ways);
        doubtful |= rest < (uint32_t)B->ways;
    }
    for (int j = 0; j < 4 && doubtful; j++) turn[j] = (uint32_t)fs_blockperm_turn(B, 4 * i + j);
}
/* Where a unit goes: member i of a round that begins at b. */
FS_DEF int64_t fs_blockperm_deal(const fs_blockperm *B, int64_t i, int64_t b)
{
    return i + b < B->ways ? i + b : i + b - B->ways;
}
/* The inverse: which unit of round u, which begins at b, block or super-block h gets.  In an incomplete last round it
 * may be B->units or more, which is none. */
FS_DEF int64_t fs_blockperm_dealt_from(const fs_blockperm *B, int64_t h, int64_t u, int64_t b)
{
    return u * B->ways + (h >= b ? h - b : h - b + B->ways);
}
FS_DEF int64_t fs_blockperm_dealt(const fs_blockperm *B, int64_t h, int64_t u)
{
    return fs_blockperm_dealt_from(B, h, u, fs_blockperm_turn(B, u));
}

/* The same by fewer instructions (fs_random_quad_rolled). */
FS_DEF int64_t fs_blockperm_dealt_rolled(const fs_blockperm *B, int64_t h, int64_t u)
{
    uint32_t rest = fs_quad_word(fs_random_quad_rolled(B->seed, FS_TAG_SHUFFLE, (uint64_t)u >> 2, 0), (uint64_t)u);
    const uint32_t turn = fs_digit(&rest, (uint32_t)B->ways);
    return rest < (uint32_t)B->ways ? fs_blockperm_dealt(B, h, u) : fs_blockperm_dealt_from(B, h, u, turn);
}

/* Shuffle lines: x_l, and which block of its super-block column j goes to. */
FS_DEF uint32_t fs_blockperm_mask(const fs_blockperm *B, int64_t line)
{
    return fs_random_word(B->seed, FS_TAG_LINE, (uint64_t)line, 0, 0) >> 27;
}
FS_DEF uint32_t fs_blockperm_mask_rolled(const fs_blockperm *B, int64_t line)
{
    return fs_quad_word(fs_random_quad_rolled(B->seed, FS_TAG_LINE, (uint64_t)line >> 2, 0), (uint64_t)line) >> 27;
}
FS_DEF int64_t fs_blockperm_class(const fs_blockperm *B, int64_t j, uint32_t mask)
{
    return (int64_t)(((uint64_t)j ^ mask) & (uint64_t)(B->interleave - 1));
}

/* h(j), the input block of column j. */
FS_DEF int64_t fs_blockperm_input_block(const fs_blockperm *B, int64_t j)
{
    if (B->shuffle == FS_DEF_NONE) return fs_split_part(&B->in, j);
    const int64_t unit = B->shuffle == FS_DEF_LINES ? j / FS_LINE : j;
    const int64_t h = fs_blockperm_deal(B, unit % B->ways, fs_blockperm_turn(B, unit / B->ways));
    if (B->shuffle == FS_DEF_ROWS) return h;
    return h * B->interleave + fs_blockperm_class(B, j, fs_blockperm_mask(B, unit));
}

/* The address e of word q of a column under permutation l = 1 ... kappa. */
FS_DEF uint32_t fs_blockperm_address(const fs_blockperm *B, int64_t l, int64_t q)
{
    return (uint32_t)((l - 1) * B->words + q);
}

/* How many of the s nonzeros word q holds: nonzeros q per_word, q per_word + 1, ... */
FS_DEF int fs_blockperm_count(const fs_blockperm *B, int64_t q)
{
    const int64_t left = B->s - q * B->per_word;
    return (int)(left < B->per_word ? left : B->per_word);
}

/* Nonzero t of a column whose block of rows is split into `parts`, from its word, which becomes its rest:
 * 2 (row in the block) + (1 if the sign is minus).  A word holds nonzeros q per_word, q per_word + 1, ... in turn. */
FS_DEF uint32_t fs_blockperm_next(const fs_split *parts, int64_t t, uint32_t *word)
{
    /* fs_split_start and fs_split_size in 32 bits, which is what GPUs compute with; a block has
     * fewer than 2^31 rows. */
    const uint32_t small = (uint32_t)parts->small, larger = (uint32_t)parts->larger, u = (uint32_t)t;
    return 2 * (u * small + (u < larger ? u : larger)) + fs_digit(word, 2 * (small + (u < larger)));
}

/* Decodes word q of n columns in a block of `rows` rows: code[c stride + i] is nonzero q per_word + c of column i, as
 * 2 (row in the block) + (1 if the sign is minus).  The words become their rests; a column whose rest fs_rejects with
 * the product returned must draw its word again. */
FS_DEF uint64_t fs_blockperm_decode(const fs_blockperm *B, uint32_t *word, int n, int64_t q, int64_t rows,
                                    uint32_t *code, int64_t stride)
{
    const fs_split *parts = &B->parts[rows - B->out.small];
    const int count = fs_blockperm_count(B, q);
    uint64_t product = 1;
    for (int c = 0; c < count; c++) {
        const int64_t t = q * B->per_word + c;
        uint32_t *to = code + c * stride;
        for (int i = 0; i < n; i++) to[i] = fs_blockperm_next(parts, t, &word[i]);
        product *= 2 * (uint64_t)fs_split_size(parts, t);
    }
    return product;
}

/* The first draw of word q of column j under permutation l: the word itself where B->accepts. */
FS_DEF uint32_t fs_blockperm_word_once(const fs_blockperm *B, int64_t j, int64_t l, int64_t q)
{
    return fs_random_word(B->seed, FS_TAG_COLUMN, (uint64_t)j, fs_blockperm_address(B, l, q), 0);
}
/* The same of four columns. */
FS_DEF void fs_blockperm_words_once(const fs_blockperm *B, const int64_t *j, int64_t l, int64_t q, uint32_t *word)
{
    fs_random_words(B->seed, FS_TAG_COLUMN, j, fs_blockperm_address(B, l, q), word);
}
/* Word q of column j under permutation l for a block of `rows` rows, from its first draw: drawn
 * until it is accepted. */
FS_DEF uint32_t fs_blockperm_accepted(const fs_blockperm *B, uint32_t word, int64_t j, int64_t l, int64_t q,
                                      int64_t rows)
{
    const int tall = rows > B->out.small;
    if (B->accepts[tall]) return word;
    for (uint32_t attempt = 1;; attempt++) {
        uint32_t rest = word;
        uint64_t product = 1;
        for (int c = 0; c < fs_blockperm_count(B, q); c++) {
            const int64_t t = q * B->per_word + c;
            fs_blockperm_next(&B->parts[tall], t, &rest);
            product *= 2 * (uint64_t)fs_split_size(&B->parts[tall], t);
        }
        if (!fs_rejects(rest, product)) return word;
        word = fs_random_word(B->seed, FS_TAG_COLUMN, (uint64_t)j, fs_blockperm_address(B, l, q), attempt);
    }
}
FS_DEF uint32_t fs_blockperm_word(const fs_blockperm *B, int64_t j, int64_t l, int64_t q, int64_t rows)
{
    return fs_blockperm_accepted(B, fs_blockperm_word_once(B, j, l, q), j, l, q, rows);
}

/* Word q of columns 4 i ... 4 i + 3 before any is drawn again, which none is where B->accepts says so. */
FS_DEF fs_quad fs_blockperm_quad(const fs_blockperm *B, int64_t i, int64_t l, int64_t q)
{
    return fs_random_quad(B->seed, FS_TAG_COLUMN, (uint64_t)i, fs_blockperm_address(B, l, q), 0);
}

/* Those of the only word under the only permutation, by keys of B->seed. */
FS_DEF fs_quad fs_blockperm_only_quad(const fs_philox_keys *keys, int64_t i)
{
    return fs_philox_by(keys, fs_random_counter(FS_TAG_COLUMN, (uint64_t)i, 0, 0));
}

FS_DEF fs_quad fs_blockperm_quad_rolled(const fs_blockperm *B, int64_t i, int64_t l, int64_t q)
{
    return fs_random_quad_rolled(B->seed, FS_TAG_COLUMN, (uint64_t)i, fs_blockperm_address(B, l, q));
}

/* The nonzeros of column j that word q of permutation l holds, in an output block of `rows` rows, `stride`
 * apart in code; returns how many. */
FS_DEF int fs_blockperm_nonzeros(const fs_blockperm *B, int64_t j, int64_t l, int64_t q, int64_t rows, uint32_t *code,
                                 int64_t stride)
{
    uint32_t word = fs_blockperm_word(B, j, l, q, rows);
    fs_blockperm_decode(B, &word, 1, q, rows, code, stride);
    return fs_blockperm_count(B, q);
}

#endif
