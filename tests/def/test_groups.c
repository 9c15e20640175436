/* test_groups.c - shuffle groups: row groups of 32 coordinates go to a super-block and spread over its c blocks. */
#include "property.h"

static fsi_blockperm groups_of(int64_t d, int64_t M, int64_t c, uint64_t seed)
{
    return fsi_blockperm_make(seed, d, 64 * M, M, 1, 4, FSI_DEF_GROUPS, c);
}
static int64_t block_of(const fsi_blockperm *B, int64_t j) { return fsi_blockperm_local(B, j).h; }

/* Coordinates of a row group are in one super-block; in each run of c of them one is in each of its c blocks, and their
 * local rows there are the run's. */
static void a_row_group_stays_in_one_super_block_and_spreads_evenly(void **state)
{
    static const int64_t supers[] = {3, 16, 21};
    (void)state;
    for (int n = 0; n < COUNT(supers); n++)
        for (int64_t c = 1; c <= FSI_GROUP_ROWS; c *= 2)
            for (int64_t d = 3199; d <= 3201; d++) {
                const int64_t ways = supers[n];
                const fsi_blockperm B = groups_of(d, ways * c, c, (uint64_t)(c + d));
                int64_t groups_in[21] = {0};
                for (int64_t first = 0; first < d; first += FSI_GROUP_ROWS) {
                    const int64_t super = block_of(&B, first) / c;
                    unsigned char taken[FSI_GROUP_ROWS * FSI_GROUP_ROWS] = {0};
                    groups_in[super]++;
                    for (int64_t j = first; j < first + FSI_GROUP_ROWS && j < d; j++) {
                        const fsi_local at = fsi_blockperm_local(&B, j);
                        const int64_t run = (j - first) / c;
                        HOLDS(at.h >= 0 && at.h / c == super,
                              "c = " I64 ": coordinate " I64 " in block " I64 ", its row group in super-block " I64, c,
                              j, at.h, super);
                        HOLDS(!taken[run * c + at.h % c], "c = " I64 ": run " I64 " has class " I64 " twice", c, run,
                              at.h % c);
                        HOLDS(at.u == first / FSI_GROUP_ROWS / ways * (FSI_GROUP_ROWS / c) + run,
                              "c = " I64 ": coordinate " I64 " is local row " I64, c, j, at.u);
                        taken[run * c + at.h % c] = 1;
                    }
                }
                for (int64_t H = 0; H < ways; H++)
                    HOLDS(groups_in[H] - B.units / ways == 0 || groups_in[H] - B.units / ways == 1,
                          "d = " I64 ": " I64 " of " I64 " row groups in super-block " I64, d, groups_in[H], B.units,
                          H);
            }
}

/* Two coordinates of a row group in different runs are in one block with probability exactly 1 / c, whatever their
 * distance: over row groups, the classes of both are uniform and independent. */
static void classes_of_different_runs_are_independent(void **state)
{
    enum { GROUPS = 30000 };
    (void)state;
    for (int64_t c = 2; c < FSI_GROUP_ROWS; c *= 2) {
        const fsi_blockperm B = groups_of(FSI_GROUP_ROWS * GROUPS, 2 * c, c, 37);
        for (int64_t stride = 1; stride < FSI_GROUP_ROWS; stride++)
            for (int64_t a = stride % 3; a + stride < FSI_GROUP_ROWS; a += 1 + 32 / c) {
                int64_t pair[FSI_GROUP_ROWS * FSI_GROUP_ROWS] = {0};
                if (a / c == (a + stride) / c) continue;
                for (int64_t group = 0; group < GROUPS; group++) {
                    const uint32_t word = fsi_blockperm_group_word(&B, group);
                    const uint32_t one = fsi_blockperm_class(&B, (uint32_t)a, word);
                    pair[one * c + fsi_blockperm_class(&B, (uint32_t)(a + stride), word)]++;
                }
                check_uniform(pair, c * c, "c = " I64 ": classes of coordinates " I64 " and " I64, c, a, a + stride);
            }
    }
}

/* Coordinates at every stride that is a power of two (large channels) reach all blocks equally often, those at a
 * multiple of 32 independently from one row group to the next. */
static void coordinates_at_a_stride_reach_every_block(void **state)
{
    enum { GROUPS = 40000 };
    (void)state;
    for (int64_t c = 2; c <= FSI_GROUP_ROWS; c *= 2)
        for (int64_t supers = 1; supers <= 4; supers += 3) {
            const fsi_blockperm B = groups_of(FSI_GROUP_ROWS * GROUPS, supers * c, c, 23);
            for (int64_t stride = 1; stride <= 32; stride *= 2) {
                int64_t block[4 * FSI_GROUP_ROWS] = {0}, pair[FSI_GROUP_ROWS * FSI_GROUP_ROWS] = {0}, before = 0;
                for (int64_t n = 0; n < GROUPS; n++) {
                    const int64_t h = block_of(&B, 5 + stride * n);
                    block[h]++;
                    if (n) pair[before % c * c + h % c]++;
                    before = h;
                }
                for (int64_t h = 0; h < supers * c && stride < 32; h++) { /* more even than by chance, or about so */
                    const double mean = (double)GROUPS / (double)(supers * c), off = fabs((double)block[h] - mean);
                    HOLDS(off <= FOUR_SIGMA * sqrt(32.0 / (double)stride * mean),
                          "c = " I64 ", stride " I64 ": block " I64 " has " I64 ", the mean is %g", c, stride, h,
                          block[h], mean);
                }
                if (stride < 32) continue;
                check_uniform(block, supers * c, "c = " I64 ", M = " I64 ": blocks of channel 5", c, supers * c);
                check_uniform(pair, c * c, "c = " I64 ": classes of neighbouring row groups", c);
            }
        }
}

/* Strides below 32: of two coordinates of a row group that are in different runs, over many row groups, 1 / c are in
 * one block; in one run none are. */
static void a_row_group_spreads_every_stride(void **state)
{
    enum { GROUPS = 20000 };
    (void)state;
    for (int64_t c = 2; c <= 16; c *= 2) {
        const fsi_blockperm B = groups_of(FSI_GROUP_ROWS * GROUPS, 16 * c, c, 41);
        for (int64_t stride = 1; stride <= 16; stride *= 2) {
            int64_t together = 0, runs_differ = 0;
            for (int64_t first = 0; first < B.d; first += FSI_GROUP_ROWS) {
                const int64_t a = first + first / 32 % (32 - stride), b = a + stride;
                const int same_run = (a - first) / c == (b - first) / c, same = block_of(&B, a) == block_of(&B, b);
                HOLDS(!same_run || !same, "c = " I64 ": coordinates " I64 " and " I64 " of a run in one block", c, a,
                      b);
                together += same;
                runs_differ += !same_run;
            }
            const double share = 1.0 / (double)c;
            check_mean((double)together, share * (double)runs_differ,
                       sqrt(share * (1 - share) * (double)runs_differ) + 1e-9, "c = " I64 ", stride " I64, c, stride);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_group_stays_in_one_super_block_and_spreads_evenly),
        cmocka_unit_test(classes_of_different_runs_are_independent),
        cmocka_unit_test(coordinates_at_a_stride_reach_every_block),
        cmocka_unit_test(a_row_group_spreads_every_stride),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
