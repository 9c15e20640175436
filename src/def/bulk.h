/* bulk.h - BlockPerm-SJLT for many local rows of a block at once, as arrays: the rounds and the windows of blockperm.h
 * with loops that compilers vectorize.
 *
 * What comes out is what blockperm.h gives for one column at a time; tests/def compares the two. */
#ifndef FSI_DEF_BULK_H
#define FSI_DEF_BULK_H

#include "def/blockperm.h"

enum { FSI_BULK = 16 }; /* addresses, and so windows, at a time */

/* Four words at each of FSI_BULK addresses (tag, item0 + i step, e, attempt 0): x[n][i]. */
FSI_DEF void fsi_bulk_quads(uint64_t seed, uint32_t tag, uint64_t item0, uint64_t step, uint32_t e,
                            uint32_t x[4][FSI_BULK])
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int i = 0; i < FSI_BULK; i++) {
        const uint64_t item = item0 + (uint64_t)i * step;
        x[0][i] = (uint32_t)item;
        x[1][i] = (uint32_t)(item >> 32);
        x[2][i] = e;
        x[3][i] = tag;
    }
    for (int round = 0; round < 10; round++) {
        /* High and low halves apart: gcc vectorizes the loop only so. */
        uint32_t high0[FSI_BULK], high2[FSI_BULK];
        for (int i = 0; i < FSI_BULK; i++) high0[i] = (uint32_t)(fsi_mul_wide(0xD2511F53u, x[0][i]) >> 32);
        for (int i = 0; i < FSI_BULK; i++) high2[i] = (uint32_t)(fsi_mul_wide(0xCD9E8D57u, x[2][i]) >> 32);
        for (int i = 0; i < FSI_BULK; i++) {
            const uint32_t low0 = 0xD2511F53u * x[0][i], low2 = 0xCD9E8D57u * x[2][i];
            x[0][i] = high2[i] ^ x[1][i] ^ key0;
            x[2][i] = high0[i] ^ x[3][i] ^ key1;
            x[1][i] = low2;
            x[3][i] = low0;
        }
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

/* Rounds q ... q + count - 1. */
FSI_DEF void fsi_bulk_rounds(const fsi_blockperm *B, int64_t q, int64_t count, fsi_round *round)
{
    const uint32_t ways = (uint32_t)B->ways;
    int64_t i = 0;
    while (B->way_bits && i < count) {
        uint32_t first;
        const uint64_t cycle = fsi_blockperm_cycle(B, q + i, &first);
        const fsi_quad keys = fsi_random_quad(B->seed, FSI_TAG_SHUFFLE, cycle, 1, 0);
        const uint32_t mask = B->run_bits ? keys.w[3] >> (32 - B->run_bits) << 2 : 0;
        const int64_t left = count - i, here = left < (int64_t)(ways - first) ? left : (int64_t)(ways - first);
        for (int64_t n = 0; n < here; n++) {
            round[i + n].shift = fsi_blockperm_mix(B, &keys, first + (uint32_t)n);
            round[i + n].mask = mask;
        }
        for (int64_t n = 0; n < here && (ways & (ways - 1)); n++)
            while (round[i + n].shift >= ways) round[i + n].shift = fsi_blockperm_mix(B, &keys, round[i + n].shift);
        i += here;
    }
    while (i < count) {
        uint32_t x[4][FSI_BULK];
        const int64_t item = (q + i) >> 2;
        if (ways > 1) fsi_bulk_quads(B->seed, FSI_TAG_SHUFFLE, (uint64_t)item, 1, 0, x);
        for (; i < count && (q + i) >> 2 < item + FSI_BULK; i++) {
            uint32_t rest = ways > 1 ? x[(q + i) & 3][((q + i) >> 2) - item] : 0;
            round[i].shift = fsi_digit(&rest, ways);
            round[i].mask = 0;
            if (ways > 1 && rest < ways) round[i] = fsi_blockperm_lone_round(B, q + i);
        }
    }
}

/* Words of 32 columns that hold the signs of a nonzero in `columns` columns of a window. */
FSI_DEF int64_t fsi_bulk_sign_words(int64_t columns) { return (columns + 31) / 32; }

/* Adds the signs that sign word number m of band q holds: x[i] is that word of window i.  Columns v0 ... of the window,
 * v0 a multiple of 32, are in `each` words for each nonzero. */
FSI_DEF void fsi_bulk_add_signs(const fsi_blockperm *B, int64_t q, int64_t m, const uint32_t *x, int64_t v0,
                                int64_t each, uint32_t *minus)
{
    const int count = fsi_blockperm_count(B, q), lanes = B->lanes;
    const int64_t at = m * lanes - v0; /* of the word's first column; below 0: some of its columns are not wanted */
    const uint32_t top = 0xFFFFFFFFu << (32 - lanes);
    uint32_t word[FSI_BULK];
    for (int i = 0; i < FSI_BULK; i++) word[i] = x[i];
    for (int c = 0; c < count; c++) {
        uint32_t bits[FSI_BULK];
        for (int i = 0; i < FSI_BULK; i++) bits[i] = word[i] & top;
        for (int i = 0; i < FSI_BULK && lanes < 32; i++) word[i] <<= lanes;
        for (int part = 0; part < 2; part++) {
            const int64_t b = (at < 0 ? -1 : at / 32) + part, from = at - 32 * b; /* bits to the right, or left */
            uint32_t *to = minus + ((q * B->per_band + c) * each + b) * FSI_BULK;
            if (b < 0 || b >= each || from >= 32 || from <= -lanes) continue;
            if (from >= 0)
                for (int i = 0; i < FSI_BULK; i++) to[i] ^= bits[i] >> from;
            else
                for (int i = 0; i < FSI_BULK; i++) to[i] ^= bits[i] << -from;
        }
    }
}

/* The digits of band q, words random[i] of windows w0 + i of block h under permutation l, as fsi_bulk_windows wants
 * them. */
FSI_DEF void fsi_bulk_digits(const fsi_blockperm *B, int64_t h, uint64_t w0, int n, int64_t l, int64_t q, int64_t rows,
                             uint32_t *random, int64_t each, uint32_t *row, uint32_t *minus)
{
    const fsi_split *parts = &B->strata[rows - B->out.small];
    for (int i = 0; i < n && !B->packed; i++)
        for (uint32_t attempt = 1; fsi_blockperm_redraws(B, random[i], q, rows); attempt++)
            random[i] = fsi_blockperm_window_word(B, h, w0 + (uint64_t)i, fsi_blockperm_band(B, l, q), 0, attempt);
    for (int c = 0; c < fsi_blockperm_count(B, q); c++) {
        const int64_t t = q * B->per_band + c;
        const uint32_t size = (uint32_t)fsi_split_size(parts, t);
        uint32_t *flip = minus + t * each * FSI_BULK;
        uint32_t digit[FSI_BULK];
        for (int i = 0; i < FSI_BULK; i++) digit[i] = (uint32_t)(fsi_mul_wide(random[i], 2 * size) >> 32);
        for (int i = 0; i < FSI_BULK; i++) random[i] *= 2 * size;
        for (int i = 0; i < FSI_BULK; i++) row[t * FSI_BULK + i] = digit[i] >> 1;
        for (int i = 0; i < FSI_BULK; i++) flip[i] = 0u - (digit[i] & 1);
        for (int64_t b = 1; b < each; b++)
            for (int i = 0; i < FSI_BULK; i++) flip[b * FSI_BULK + i] = flip[i];
    }
}

/* Windows w0 ... w0 + FSI_BULK - 1 of block h under permutation l in output blocks of `rows` rows, of them the first n
 * without rejected digits (the others' may be).  row[t FSI_BULK + i]: row of column 0 of window i in stratum t.
 * minus[(t each + b) FSI_BULK + i]: signs of nonzero t of columns v0 + 32 b ... of window i, 1 for minus, the first
 * column in the highest bit; v0 is a multiple of 32 and each = fsi_bulk_sign_words(columns). */
FSI_DEF void fsi_bulk_windows(const fsi_blockperm *B, int64_t h, uint64_t w0, int n, int64_t l, int64_t rows,
                              int64_t v0, int64_t columns, uint32_t *row, uint32_t *minus)
{
    const int64_t each = fsi_bulk_sign_words(columns);
    uint32_t x[4][FSI_BULK];
    for (int64_t q = 0; q < B->bands; q++)
        for (int64_t e = 0; e < (int64_t)B->quads; e++) {
            int made = 0;
            for (int64_t word = 4 * e; word < 4 * e + 4 && word <= B->sign_words; word++) {
                const int64_t m = word - 1; /* sign word; below 0: the digits */
                if (m >= 0 && (m * B->lanes >= v0 + columns || (m + 1) * B->lanes <= v0)) continue;
                if (!made)
                    fsi_bulk_quads(B->seed, FSI_TAG_COLUMN, w0 * (uint64_t)B->M + (uint64_t)h, (uint64_t)B->M,
                                   fsi_blockperm_band(B, l, q) + (uint32_t)e, x);
                made = 1;
                if (m < 0) fsi_bulk_digits(B, h, w0, n, l, q, rows, x[word & 3], each, row, minus);
                else fsi_bulk_add_signs(B, q, m, x[word & 3], v0, each, minus);
            }
        }
}

#endif
