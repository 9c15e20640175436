/* def.h - the whole definition of S: a spec becomes constants, and the constants give every entry.
 *
 * fsi_def_defaults fills in what a spec leaves open, fsi_def_make turns a full and legal spec into the constants that
 * CPU and GPU code use, fsi_def_visit enumerates the nonzeros of a range of columns (the
 * reference for all kernels), fsi_def_digest sums them into 64 bits: the fingerprint in the test vectors.
 *
 * FSI_DEFINITION_VERSION changes whenever any spec gives another S; it is not the library's version. */
#ifndef FSI_DEF_DEF_H
#define FSI_DEF_DEF_H

#include "def/blockperm.h"
#include "def/blockrow.h"
#include "def/gauss.h"
#include "def/srht.h"

#define FSI_DEFINITION_VERSION 3

/* Limits of the addresses in rng.h. */
#define FSI_MAX_D ((int64_t)1 << 48)
#define FSI_MAX_K ((int64_t)0x7FFFFFFF)

enum fsi_def_family { FSI_DEF_BLOCKPERM = 1, FSI_DEF_SJLT, FSI_DEF_BLOCKROW, FSI_DEF_SRHT, FSI_DEF_GAUSS };
enum fsi_def_quality { FSI_DEF_FAST = 1, FSI_DEF_DEFAULT, FSI_DEF_HIGH, FSI_DEF_GAUSSIAN };

/* A user's spec.  0: chosen by fsi_def_defaults. */
typedef struct fsi_def_spec {
    int64_t d, k, M, kappa, s, interleave;
    uint64_t seed;
    int32_t family, shuffle;
    int32_t quality; /* enum fsi_def_quality: the rung that chooses kappa and s; nothing where both are given */
} fsi_def_spec;

typedef struct fsi_def {
    int32_t family;
    double scale; /* 1/sqrt(kappa s), or 1/sqrt k; FlashBlockRow weighs by block instead */
    union {
        fsi_blockperm blockperm; /* SJLT too */
        fsi_blockrow blockrow;
        fsi_srht srht;
        fsi_gauss gauss;
    } u;
} fsi_def;

FSI_DEF int64_t fsi_min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* The rungs; docs/definition.md, "Which sketch", has the cost and the error of each. */
FSI_DEF int64_t fsi_def_rung_kappa(int32_t quality)
{
    return quality == FSI_DEF_GAUSSIAN ? 4 : quality == FSI_DEF_HIGH ? 2 : 1;
}
FSI_DEF int64_t fsi_def_rung_nonzeros(int32_t quality) /* kappa s */
{
    return quality == FSI_DEF_GAUSSIAN ? 32 : quality == FSI_DEF_HIGH ? 16 : quality == FSI_DEF_FAST ? 4 : 8;
}

/* The rows of a block at most, where M is open: two bands; one where a column has a single nonzero in a block, of row
 * groups, several blocks of which share a read already, and of blockrow, which has no bands. */
FSI_DEF int64_t fsi_def_block_rows(const fsi_def_spec *p, int64_t nonzeros)
{
    const int64_t kappa = p->kappa ? p->kappa : fsi_def_rung_kappa(p->quality), s = p->s ? p->s : nonzeros / kappa;
    const int one = p->family == FSI_DEF_BLOCKROW || p->shuffle == FSI_DEF_GROUPS || s < 2;
    return one ? FSI_BAND_ROWS : 2 * FSI_BAND_ROWS;
}

/* Fills every field that is 0: blocks of at most 128 rows, rows shuffled, kappa and s by the rung; row groups spread over
 * up to 16 blocks. */
FSI_DEF void fsi_def_defaults(fsi_def_spec *p)
{
    const int sparse = p->family == FSI_DEF_BLOCKPERM || p->family == FSI_DEF_SJLT || p->family == FSI_DEF_BLOCKROW;
    if (!p->family) {
        p->family = FSI_DEF_BLOCKPERM;
        fsi_def_defaults(p);
        return;
    }
    if (!p->shuffle) p->shuffle = p->family == FSI_DEF_BLOCKPERM ? FSI_DEF_ROWS : FSI_DEF_NONE;
    if (!p->quality) p->quality = FSI_DEF_DEFAULT;
    const int64_t nonzeros = fsi_def_rung_nonzeros(p->quality), rows = fsi_def_block_rows(p, nonzeros);
    const int chosen_M = !p->M, blocks = p->family == FSI_DEF_BLOCKPERM || p->family == FSI_DEF_BLOCKROW;
    if (chosen_M) p->M = blocks ? (p->k + rows - 1) / rows : 1;
    if (p->family == FSI_DEF_BLOCKROW && chosen_M) p->M = fsi_min64(p->M, p->d);
    if (!p->interleave) {
        p->interleave = 1;
        if (p->shuffle == FSI_DEF_GROUPS)
            while (p->interleave < 16 && (chosen_M ? 2 * p->interleave <= p->M : p->M % (2 * p->interleave) == 0))
                p->interleave *= 2;
    }
    if (chosen_M && p->interleave > 1) p->M = (p->M + p->interleave - 1) / p->interleave * p->interleave;
    if (!p->kappa)
        p->kappa = p->family == FSI_DEF_BLOCKROW    ? fsi_min64(2, p->M)
                   : p->family == FSI_DEF_BLOCKPERM ? fsi_min64(fsi_def_rung_kappa(p->quality), p->M)
                                                    : 1;
    if (!p->s)
        p->s = !sparse                         ? 1
               : p->family == FSI_DEF_BLOCKROW ? 2
                                               : fsi_min64(nonzeros > p->kappa ? nonzeros / p->kappa : 1, p->k / p->M);
    if (p->s < 1) p->s = 1;
}

FSI_DEF fsi_def fsi_def_make(const fsi_def_spec *p)
{
    fsi_def S;
    S.family = p->family;
    S.scale = 1.0;
    switch (p->family) {
    case FSI_DEF_BLOCKPERM:
    case FSI_DEF_SJLT:
        S.u.blockperm = fsi_blockperm_make(p->seed, p->d, p->k, p->M, p->kappa, p->s, p->shuffle, p->interleave);
        S.scale = 1.0 / __builtin_sqrt((double)(p->kappa * p->s));
        break;
    case FSI_DEF_BLOCKROW: S.u.blockrow = fsi_blockrow_make(p->seed, p->d, p->k, p->M, p->kappa, p->s); break;
    case FSI_DEF_SRHT:
        S.u.srht = fsi_srht_make(p->seed, p->d, p->k);
        S.scale = 1.0 / __builtin_sqrt((double)p->k);
        break;
    default: S.u.gauss = fsi_gauss_make(p->seed, p->d, p->k); S.scale = 1.0 / __builtin_sqrt((double)p->k);
    }
    return S;
}

/* Called for every nonzero: row i, column j, value.  FlashBlockRow may name the same (i, j) several times;
 * its entry is the sum. */
typedef void (*fsi_visitor)(void *user, int64_t i, int64_t j, double value);

FSI_DEF void fsi_visit_blockperm(const fsi_blockperm *B, double scale, int64_t j, fsi_visitor visit, void *user)
{
    const fsi_local at = fsi_blockperm_local(B, j);
    uint32_t g = (uint32_t)at.h, code[FSI_MAX_PER_BAND];
    for (int64_t l = 1; l <= B->kappa; l++) {
        g = fsi_wiring_back(&B->wiring, g);
        const int64_t start = fsi_split_start(&B->out, g), rows = fsi_split_size(&B->out, g);
        for (int64_t q = 0; q < B->bands; q++) {
            const int count = fsi_blockperm_nonzeros(B, at.h, at.u, l, q, rows, code, 1);
            for (int c = 0; c < count; c++) visit(user, start + (code[c] >> 1), j, code[c] & 1 ? -scale : scale);
        }
    }
}
FSI_DEF void fsi_visit_blockrow(const fsi_blockrow *R, int64_t g, int64_t j0, int64_t j1, fsi_visitor visit, void *user)
{
    const fsi_neighbours neighbours = fsi_blockrow_neighbours(R, g);
    const int64_t start = fsi_split_start(&R->out, g), rows = fsi_split_size(&R->out, g);
    for (int64_t l = 0; l < R->kappa; l++) {
        const int64_t h = fsi_blockrow_neighbour(&neighbours, l);
        const double weight = __builtin_sqrt(fsi_blockrow_weight2(R, h));
        for (int64_t i = start; i < start + rows; i++)
            for (int64_t t = 0; t < R->s; t++) {
                int minus;
                const int64_t j = fsi_blockrow_draw(R, i, h, l * R->s + t, &minus);
                if (j >= j0 && j < j1) visit(user, i, j, minus ? -weight : weight);
            }
    }
}

/* Visits the nonzeros of columns j0 ... j1 - 1: column by column, FlashBlockRow by block rows. */
FSI_DEF void fsi_def_visit(const fsi_def *S, int64_t j0, int64_t j1, fsi_visitor visit, void *user)
{
    if (S->family == FSI_DEF_BLOCKROW) {
        for (int64_t g = 0; g < S->u.blockrow.M; g++) fsi_visit_blockrow(&S->u.blockrow, g, j0, j1, visit, user);
        return;
    }
    for (int64_t j = j0; j < j1; j++) {
        if (S->family == FSI_DEF_SRHT) {
            const uint32_t flip = fsi_srht_flip(&S->u.srht, j);
            for (int64_t i = 0; i < S->u.srht.k; i++) {
                const uint32_t minus = flip ^ fsi_hadamard_minus(fsi_srht_row(&S->u.srht, i), (uint64_t)j);
                visit(user, i, j, minus ? -S->scale : S->scale);
            }
        } else if (S->family == FSI_DEF_GAUSS) {
            for (int64_t i = 0; i < S->u.gauss.k; i++) {
                float z[4];
                fsi_gauss_four(&S->u.gauss, i >> 2, j, z);
                visit(user, i, j, z[i & 3] * S->scale);
            }
        } else {
            fsi_visit_blockperm(&S->u.blockperm, S->scale, j, visit, user);
        }
    }
}

/* One nonzero's share of the digest: a hash of row, column and the value's bits. */
FSI_DEF uint64_t fsi_digest_term(int64_t i, int64_t j, double value)
{
    union {
        double f;
        uint64_t u;
    } bits;
    bits.f = value;
    uint64_t x = (uint64_t)i * 0x9E3779B97F4A7C15u + (uint64_t)j * 0xC2B2AE3D27D4EB4Fu + bits.u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}
FSI_DEF void fsi_digest_visit(void *user, int64_t i, int64_t j, double value)
{
    *(uint64_t *)user += fsi_digest_term(i, j, value);
}
/* The sum of the terms of columns j0 ... j1 - 1, modulo 2^64: any order and any split gives the same. */
FSI_DEF uint64_t fsi_def_digest(const fsi_def *S, int64_t j0, int64_t j1)
{
    uint64_t sum = 0;
    fsi_def_visit(S, j0, j1, fsi_digest_visit, &sum);
    return sum;
}

#endif
