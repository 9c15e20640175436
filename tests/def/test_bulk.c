/* test_bulk.c - many rounds and windows at once are those of one column at a time. */
#include "def/bulk.h"

#include "property.h"

static const struct size {
    int64_t d, k, M, kappa, s;
    int32_t shuffle;
    int64_t interleave;
} sizes[] = {
    {65536, 1024, 8, 1, 8, FSI_DEF_ROWS, 1},   {65536, 1024, 16, 1, 8, FSI_DEF_ROWS, 1},
    {65536, 1024, 16, 2, 4, FSI_DEF_ROWS, 1},  {60000, 1000, 16, 1, 8, FSI_DEF_ROWS, 1},
    {5000, 257, 5, 3, 3, FSI_DEF_ROWS, 1},     {5000, 100, 1, 1, 7, FSI_DEF_NONE, 1},
    {70000, 4096, 1, 1, 1, FSI_DEF_NONE, 1},   {70000, 4096, 1, 1, 4, FSI_DEF_NONE, 1},
    {5000, 640, 64, 4, 1, FSI_DEF_GROUPS, 32}, {9999, 1003, 17, 2, 5, FSI_DEF_ROWS, 1},
    {9999, 130, 2, 1, 65, FSI_DEF_ROWS, 1},    {9999, 230, 2, 1, 19, FSI_DEF_ROWS, 1},
    {9999, 231, 3, 1, 19, FSI_DEF_GROUPS, 1},
};

static fsi_blockperm blockperm_of(int i)
{
    const struct size *z = &sizes[i];
    return fsi_blockperm_make((uint64_t)(99 + i), z->d, z->k, z->M, z->kappa, z->s, z->shuffle, z->interleave);
}

static void rounds_are_those_of_single_rounds(void **state)
{
    enum { COUNT_ROUNDS = 700 };
    (void)state;
    for (int i = 0; i < COUNT(sizes); i++) {
        const fsi_blockperm B = blockperm_of(i);
        fsi_round round[COUNT_ROUNDS];
        for (int64_t q = 0; q < 40; q += 13) {
            fsi_bulk_rounds(&B, q, COUNT_ROUNDS, round);
            for (int64_t n = 0; n < COUNT_ROUNDS; n++) {
                const fsi_round one = fsi_blockperm_round(&B, q + n);
                HOLDS(one.shift == round[n].shift && one.mask == round[n].mask,
                      "size %d, round " I64 ": shift " U32 ", mask " U32 ", alone " U32 " and " U32, i, q + n,
                      round[n].shift, round[n].mask, one.shift, one.mask);
            }
        }
    }
}

/* Columns v0 ... v0 + columns - 1 of FSI_BULK windows. */
static void check_windows(int i, const fsi_blockperm *B, int64_t h, int64_t l, int64_t rows, int64_t v0,
                          int64_t columns)
{
    const uint64_t w0 = 3;
    const int64_t each = fsi_bulk_sign_words(columns);
    const fsi_split *parts = &B->strata[rows - B->out.small];
    uint32_t *row = malloc((size_t)(B->s * FSI_BULK) * 4), *minus = malloc((size_t)(B->s * each * FSI_BULK) * 4);
    uint32_t code[FSI_MAX_PER_BAND];
    fsi_bulk_windows(B, h, w0, FSI_BULK, l, rows, v0, columns, row, minus);
    for (int w = 0; w < FSI_BULK; w++)
        for (int64_t v = 0; v < columns; v++)
            for (int64_t q = 0; q < B->bands; q++) {
                const int64_t u = ((int64_t)w0 + w) * B->window + v0 + v;
                const int count = fsi_blockperm_nonzeros(B, h, u, l, q, rows, code, 1);
                for (int c = 0; c < count; c++) {
                    const int64_t t = q * B->per_band + c, size = fsi_split_size(parts, t);
                    const int64_t r = fsi_split_start(parts, t) + (row[t * FSI_BULK + w] + v0 + v) % size;
                    const uint32_t sign = minus[(t * each + v / 32) * FSI_BULK + w] >> (31 - v % 32) & 1;
                    HOLDS(code[c] == 2 * (uint32_t)r + sign,
                          "size %d, block " I64 ", permutation " I64 ", window %d, column " I64 ", nonzero " I64
                          ": row " I64 ", sign " U32 ", alone " U32 " and " U32,
                          i, h, l, w, v0 + v, t, r, sign, code[c] >> 1, code[c] & 1);
                }
            }
    free(row);
    free(minus);
}

static void windows_are_those_of_single_columns(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(sizes); i++) {
        const fsi_blockperm B = blockperm_of(i);
        for (int64_t h = 0; h < B.M; h += 1 + B.M / 3)
            for (int64_t l = 1; l <= B.kappa; l++)
                for (int64_t larger = 0; larger <= (B.out.larger > 0); larger++)
                    for (int64_t v0 = 0; v0 < B.window; v0 += 96)
                        check_windows(i, &B, h, l, B.out.small + larger, v0, B.window - v0 < 96 ? B.window - v0 : 96);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_are_those_of_single_rounds),
        cmocka_unit_test(windows_are_those_of_single_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
