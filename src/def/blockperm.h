/* blockperm.h - BlockPerm-SJLT: column j of S, for every legal (d, k, M, kappa, s).
 *
 * The rows of Y are split into M output blocks, the rows of A into M input blocks h.  Column j belongs to one
 * input block h(j), which the shuffle decides:
 *     none   h(j) = the block of j                                    the paper's contiguous blocks
 *     rows   h(j) = the block of P(j)                                 P a keyed bijection of [d]
 *     lines  lines of 32 coordinates stay together: line l = floor(j / 32) goes to the super-block H of P(l), and
 *            within H, which is c neighbouring blocks, to block ((j ^ x_l) mod c), x_l a random mask of the line.
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

#include "permute.h"
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
    fs_split out;          /* [k] into M output blocks */
    fs_split in;           /* [d] into M input blocks; for lines [ceil(d / 32)] into M / c super-blocks */
    fs_split parts[2];     /* a block of out.small, or of out.small + 1, rows into s parts */
    fs_bijection P;        /* of [d], or of the lines */
    fs_wiring wiring;
} fs_blockperm;

FS_DEF fs_blockperm fs_blockperm_make(uint64_t seed, int64_t d, int64_t k, int64_t M, int64_t kappa, int64_t s,
                                      int32_t shuffle, int64_t interleave)
{
    fs_blockperm B;
    const int64_t units = shuffle == FS_DEF_LINES ? (d + FS_LINE - 1) / FS_LINE : d;
    B.seed = seed;
    B.d = d;
    B.k = k;
    B.M = M;
    B.kappa = kappa;
    B.s = s;
    B.interleave = interleave;
    B.shuffle = shuffle;
    B.out = fs_split_make(k, M);
    B.in = fs_split_make(units, M / interleave);
    B.parts[0] = fs_split_make(B.out.small, s);
    B.parts[1] = fs_split_make(B.out.small + 1, s);
    B.P = fs_bijection_make(seed, FS_TAG_SHUFFLE, 0, (uint64_t)units);
    B.wiring = fs_wiring_make(seed, (uint32_t)M);
    /* The largest digit base is twice the largest part; so many bases multiply to at most 2^32. */
    const int64_t base = 2 * fs_split_size(&B.parts[B.out.larger > 0], 0);
    int32_t width = 1;
    while (((int64_t)1 << width) < base) width++;
    B.per_word = 32 / width;
    B.words = (s + B.per_word - 1) / B.per_word;
    return B;
}

/* h(j), the input block of column j. */
FS_DEF int64_t fs_blockperm_input_block(const fs_blockperm *B, int64_t j)
{
    if (B->shuffle == FS_DEF_NONE) return fs_split_part(&B->in, j);
    if (B->shuffle == FS_DEF_ROWS) return fs_split_part(&B->in, (int64_t)fs_permute(&B->P, (uint64_t)j));
    const uint64_t line = (uint64_t)j / FS_LINE;
    const uint32_t mask = fs_random_word(B->seed, FS_TAG_LINE, line, 0, 0) >> 27;
    const int64_t super = fs_split_part(&B->in, (int64_t)fs_permute(&B->P, line));
    return super * B->interleave + (int64_t)(((uint64_t)j ^ mask) & (uint64_t)(B->interleave - 1));
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

/* Decodes one word of a column in a block of `rows` rows into code[0 .. count): each code is
 * 2 (row in the block) + (1 if the sign is minus).  Returns 0 if the word must be drawn again. */
FS_DEF int fs_blockperm_decode(const fs_blockperm *B, uint32_t word, int64_t q, int64_t rows, uint32_t *code)
{
    const fs_split *parts = &B->parts[rows - B->out.small];
    const int count = fs_blockperm_count(B, q);
    uint64_t product = 1;
    for (int i = 0; i < count; i++) {
        const int64_t t = q * B->per_word + i;
        const uint64_t base = 2 * (uint64_t)fs_split_size(parts, t);
        code[i] = 2 * (uint32_t)fs_split_start(parts, t) + fs_digit(&word, base);
        product *= base;
    }
    return !fs_rejects(word, product);
}

/* The nonzeros of column j that word q of permutation l holds, in an output block of `rows` rows. */
FS_DEF int fs_blockperm_nonzeros(const fs_blockperm *B, int64_t j, int64_t l, int64_t q, int64_t rows, uint32_t *code)
{
    for (uint32_t attempt = 0;; attempt++) {
        const uint32_t e = fs_blockperm_address(B, l, q);
        const uint32_t word = fs_random_word(B->seed, FS_TAG_COLUMN, (uint64_t)j, e, attempt);
        if (fs_blockperm_decode(B, word, q, rows, code)) return fs_blockperm_count(B, q);
    }
}

#endif
