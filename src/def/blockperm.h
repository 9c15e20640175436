/* blockperm.h - BlockPerm-SJLT: column j of S, for every legal (d, k, M, kappa, s).
 *
 * The rows of Y are split into M output blocks, the rows of A into M input blocks h.  Column j belongs to one
 * input block h(j), which the shuffle decides:
 *     none   h(j) = the block of j when [d] is split                  the paper's contiguous blocks
 *     rows   columns are assigned round-robin with a random rotation: the M columns of round q go to M different
 *            blocks, the first to block b_q, the next to b_q + 1, ... modulo M, b_q uniform and independent for each q
 *     groups row groups of 32 columns are assigned, M / c a round, to super-blocks H of c neighbouring blocks; within H
 *            column j goes to block ((j ^ x_l) mod c), x_l a random mask of its row group l.
 * Two columns of one round never share a block, all other pairs do with probability 1/M: at every x at most the
 * variance of the full SJLT.  A random permutation of [d] has nearly the same pair probabilities, but neighbours may
 * share a block, so that 64 consecutive large rows load the blocks unevenly; round-robin assignment loads them evenly.
 * A permutation also costs more: it needs a network (permute.h) in each direction, where the assignment needs one word
 * a round: local row u of block h is column u M + ((h - b_u) mod M).
 *
 * Input block h feeds the kappa output blocks g with pi_l(g) = h.  In each of them column j has s nonzeros
 * +-1 / sqrt(kappa s), one in each of the s strata that the block's rows are split into (the row-partitioned
 * SJLT of the paper's proofs; Kane and Nelson's block construction): s distinct rows with no rejection, and
 * the same second moment as s uniform distinct rows.  So every column has exactly kappa s nonzeros.
 *
 * Rows and signs depend on (seed, l, j) alone, not on the block or the local row index: one 32-bit word mostly
 * holds them all (s = 4 in 64 rows: 20 bits), and four neighbouring columns share one Philox call.
 * SJLT is the case M = 1, kappa = 1; CountSketch has s = 1 besides. */
#ifndef FSI_DEF_BLOCKPERM_H
#define FSI_DEF_BLOCKPERM_H

#include "def/split.h"
#include "def/wiring.h"

enum { FSI_GROUP_ROWS = 32, FSI_MAX_PER_WORD = 32 };
enum fsi_def_shuffle { FSI_DEF_NONE = 1, FSI_DEF_ROWS = 2, FSI_DEF_GROUPS = 3 };

typedef struct fsi_blockperm {
    uint64_t seed;
    int64_t d, k, M, kappa, s;
    int64_t interleave;  /* c; 1 unless shuffle is groups */
    int32_t shuffle;     /* enum fsi_def_shuffle */
    int32_t per_word;    /* nonzeros that one random word holds, at most FSI_MAX_PER_WORD */
    int64_t words;       /* words of a column for one permutation: ceil(s / per_word) */
    int32_t accepts[2];  /* whether no word is rejected, for blocks of out.small and out.small + 1 rows */
    fsi_split out;       /* [k] into M output blocks */
    fsi_split in;        /* shuffle none: [d] into M input blocks */
    int64_t units, ways; /* units assigned: d rows to M blocks, or ceil(d / 32) row groups to M / c super-blocks */
    fsi_split strata[2]; /* a block of out.small, or of out.small + 1, rows into s strata */
    fsi_wiring wiring;
} fsi_blockperm;

/* How many nonzeros one random word holds when the largest stratum has `part` rows: the largest digit base is twice
 * that, and so many bases multiply to at most 2^32. */
FSI_DEF int32_t fsi_blockperm_per_word(int64_t part)
{
    int32_t width = 1;
    while (((int64_t)1 << width) < 2 * part) width++;
    return 32 / width;
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
    B.strata[0] = fsi_split_make(B.out.small, s);
    B.strata[1] = fsi_split_make(B.out.small + 1, s);
    B.wiring = fsi_wiring_make(seed, (uint32_t)M);
    B.per_word = fsi_blockperm_per_word(fsi_split_size(&B.strata[B.out.larger > 0], 0));
    B.words = (s + B.per_word - 1) / B.per_word;
    for (int tall = 0; tall < 2; tall++) {
        /* The strata have at most two sizes; no word is rejected where both are powers of two. */
        const int64_t part = B.strata[tall].small, next = part + (B.strata[tall].larger > 0);
        B.accepts[tall] = (part & (part - 1)) == 0 && (next & (next - 1)) == 0;
    }
    return B;
}

/* b_q: the rotation of round q. */
FSI_DEF int64_t fsi_blockperm_rotation(const fsi_blockperm *B, int64_t q)
{
    return fsi_random_below(B->seed, FSI_TAG_SHUFFLE, (uint64_t)q, 0, (uint32_t)B->ways);
}
/* b_q of rounds 4 i ... 4 i + 3, which share a Philox call unless a word may have to be drawn again. */
FSI_DEF void fsi_blockperm_rotations(const fsi_blockperm *B, int64_t i, uint32_t *turn)
{
    const fsi_quad quad = fsi_random_quad(B->seed, FSI_TAG_SHUFFLE, (uint64_t)i, 0, 0);
    int doubtful = 0;
    for (int j = 0; j < 4; j++) {
        uint32_t rest = quad.w[j];
        turn[j] = fsi_digit(&rest, (uint32_t)B->ways);
        doubtful |= rest < (uint32_t)B->ways;
    }
    for (int j = 0; j < 4 && doubtful; j++) turn[j] = (uint32_t)fsi_blockperm_rotation(B, 4 * i + j);
}
/* The block (or super-block) of unit i of a round with rotation b. */
FSI_DEF int64_t fsi_blockperm_assign(const fsi_blockperm *B, int64_t i, int64_t b)
{
    return i + b < B->ways ? i + b : i + b - B->ways;
}
/* The inverse: the unit of round u, with rotation b, that block or super-block h gets.  In an incomplete last round the
 * result may be B->units or more: h gets none. */
FSI_DEF int64_t fsi_blockperm_assigned_from(const fsi_blockperm *B, int64_t h, int64_t u, int64_t b)
{
    return u * B->ways + (h >= b ? h - b : h - b + B->ways);
}
FSI_DEF int64_t fsi_blockperm_assigned(const fsi_blockperm *B, int64_t h, int64_t u)
{
    return fsi_blockperm_assigned_from(B, h, u, fsi_blockperm_rotation(B, u));
}

/* The same by fewer instructions (fsi_random_quad_rolled). */
FSI_DEF int64_t fsi_blockperm_assigned_rolled(const fsi_blockperm *B, int64_t h, int64_t u)
{
    uint32_t rest = fsi_quad_word(fsi_random_quad_rolled(B->seed, FSI_TAG_SHUFFLE, (uint64_t)u >> 2, 0), (uint64_t)u);
    const uint32_t turn = fsi_digit(&rest, (uint32_t)B->ways);
    return rest < (uint32_t)B->ways ? fsi_blockperm_assigned(B, h, u) : fsi_blockperm_assigned_from(B, h, u, turn);
}

/* Shuffle groups: x_l, and the block within its super-block that column j goes to. */
FSI_DEF uint32_t fsi_blockperm_mask(const fsi_blockperm *B, int64_t line)
{
    return fsi_random_word(B->seed, FSI_TAG_GROUP, (uint64_t)line, 0, 0) >> 27;
}
FSI_DEF uint32_t fsi_blockperm_mask_rolled(const fsi_blockperm *B, int64_t line)
{
    return fsi_quad_word(fsi_random_quad_rolled(B->seed, FSI_TAG_GROUP, (uint64_t)line >> 2, 0), (uint64_t)line) >> 27;
}
FSI_DEF int64_t fsi_blockperm_class(const fsi_blockperm *B, int64_t j, uint32_t mask)
{
    return (int64_t)(((uint64_t)j ^ mask) & (uint64_t)(B->interleave - 1));
}

/* h(j), the input block of column j. */
FSI_DEF int64_t fsi_blockperm_input_block(const fsi_blockperm *B, int64_t j)
{
    if (B->shuffle == FSI_DEF_NONE) return fsi_split_index(&B->in, j);
    const int64_t unit = B->shuffle == FSI_DEF_GROUPS ? j / FSI_GROUP_ROWS : j;
    const int64_t h = fsi_blockperm_assign(B, unit % B->ways, fsi_blockperm_rotation(B, unit / B->ways));
    if (B->shuffle == FSI_DEF_ROWS) return h;
    return h * B->interleave + fsi_blockperm_class(B, j, fsi_blockperm_mask(B, unit));
}

/* The address e of word q of a column under permutation l = 1 ... kappa. */
FSI_DEF uint32_t fsi_blockperm_address(const fsi_blockperm *B, int64_t l, int64_t q)
{
    return (uint32_t)((l - 1) * B->words + q);
}

/* How many of the s nonzeros word q holds: nonzeros q per_word, q per_word + 1, ... */
FSI_DEF int fsi_blockperm_count(const fsi_blockperm *B, int64_t q)
{
    const int64_t left = B->s - q * B->per_word;
    return (int)(left < B->per_word ? left : B->per_word);
}

/* Nonzero t of a column whose block of rows is split into the strata `parts`, from its word, which becomes its rest:
 * 2 (row in the block) + (1 if the sign is minus).  A word holds nonzeros q per_word, q per_word + 1, ... in order. */
FSI_DEF uint32_t fsi_blockperm_next(const fsi_split *parts, int64_t t, uint32_t *word)
{
    /* fsi_split_start and fsi_split_size in 32 bits, which is what GPUs compute with; a block has
     * fewer than 2^31 rows. */
    const uint32_t small = (uint32_t)parts->small, larger = (uint32_t)parts->larger, u = (uint32_t)t;
    return 2 * (u * small + (u < larger ? u : larger)) + fsi_digit(word, 2 * (small + (u < larger)));
}

/* Decodes word q of n columns in a block of `rows` rows: code[c stride + i] is nonzero q per_word + c of column i, as
 * 2 (row in the block) + (1 if the sign is minus).  The words become their rests; a column whose rest fsi_rejects with
 * the product returned must draw its word again. */
FSI_DEF uint64_t fsi_blockperm_decode(const fsi_blockperm *B, uint32_t *word, int n, int64_t q, int64_t rows,
                                      uint32_t *code, int64_t stride)
{
    const fsi_split *parts = &B->strata[rows - B->out.small];
    const int count = fsi_blockperm_count(B, q);
    uint64_t product = 1;
    for (int c = 0; c < count; c++) {
        const int64_t t = q * B->per_word + c;
        uint32_t *to = code + c * stride;
        for (int i = 0; i < n; i++) to[i] = fsi_blockperm_next(parts, t, &word[i]);
        product *= 2 * (uint64_t)fsi_split_size(parts, t);
    }
    return product;
}

/* The first draw of word q of column j under permutation l: the word itself where B->accepts. */
FSI_DEF uint32_t fsi_blockperm_word_once(const fsi_blockperm *B, int64_t j, int64_t l, int64_t q)
{
    return fsi_random_word(B->seed, FSI_TAG_COLUMN, (uint64_t)j, fsi_blockperm_address(B, l, q), 0);
}
/* The same of four columns. */
FSI_DEF void fsi_blockperm_words_once(const fsi_blockperm *B, const int64_t *j, int64_t l, int64_t q, uint32_t *word)
{
    fsi_random_words(B->seed, FSI_TAG_COLUMN, j, fsi_blockperm_address(B, l, q), word);
}
/* Word q of column j under permutation l for a block of `rows` rows, from its first draw: drawn
 * until it is accepted. */
FSI_DEF uint32_t fsi_blockperm_accepted(const fsi_blockperm *B, uint32_t word, int64_t j, int64_t l, int64_t q,
                                        int64_t rows)
{
    const int tall = rows > B->out.small;
    if (B->accepts[tall]) return word;
    for (uint32_t attempt = 1;; attempt++) {
        uint32_t rest = word;
        uint64_t product = 1;
        for (int c = 0; c < fsi_blockperm_count(B, q); c++) {
            const int64_t t = q * B->per_word + c;
            fsi_blockperm_next(&B->strata[tall], t, &rest);
            product *= 2 * (uint64_t)fsi_split_size(&B->strata[tall], t);
        }
        if (!fsi_rejects(rest, product)) return word;
        word = fsi_random_word(B->seed, FSI_TAG_COLUMN, (uint64_t)j, fsi_blockperm_address(B, l, q), attempt);
    }
}
FSI_DEF uint32_t fsi_blockperm_word(const fsi_blockperm *B, int64_t j, int64_t l, int64_t q, int64_t rows)
{
    return fsi_blockperm_accepted(B, fsi_blockperm_word_once(B, j, l, q), j, l, q, rows);
}

/* Word q of columns 4 i ... 4 i + 3 before any is drawn again, which none is where B->accepts says so. */
FSI_DEF fsi_quad fsi_blockperm_quad(const fsi_blockperm *B, int64_t i, int64_t l, int64_t q)
{
    return fsi_random_quad(B->seed, FSI_TAG_COLUMN, (uint64_t)i, fsi_blockperm_address(B, l, q), 0);
}

/* Those of the only word under the only permutation, by keys of B->seed. */
FSI_DEF fsi_quad fsi_blockperm_only_quad(const fsi_philox_keys *keys, int64_t i)
{
    return fsi_philox_by(keys, fsi_random_counter(FSI_TAG_COLUMN, (uint64_t)i, 0, 0));
}

FSI_DEF fsi_quad fsi_blockperm_quad_rolled(const fsi_blockperm *B, int64_t i, int64_t l, int64_t q)
{
    return fsi_random_quad_rolled(B->seed, FSI_TAG_COLUMN, (uint64_t)i, fsi_blockperm_address(B, l, q));
}

/* The nonzeros of column j that word q of permutation l holds, in an output block of `rows` rows, `stride`
 * apart in code; returns how many. */
FSI_DEF int fsi_blockperm_nonzeros(const fsi_blockperm *B, int64_t j, int64_t l, int64_t q, int64_t rows,
                                   uint32_t *code, int64_t stride)
{
    uint32_t word = fsi_blockperm_word(B, j, l, q, rows);
    fsi_blockperm_decode(B, &word, 1, q, rows, code, stride);
    return fsi_blockperm_count(B, q);
}

#endif
