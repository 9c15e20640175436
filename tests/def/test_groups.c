/* test_groups.c - shuffle = lines: whole lines of 32 coordinates go to a super-block and spread over its c blocks. */
#include "property.h"

static fsi_blockperm lines_of(int64_t d, int64_t M, int64_t c, uint64_t seed)
{
    return fsi_blockperm_make(seed, d, 64 * M, M, 1, 4, FSI_DEF_GROUPS, c);
}

/* Coordinates of a line are in one super-block; c neighbours from a multiple of c on are in its c different blocks;
 * i and i + c are in the same one. */
static void a_line_stays_in_one_super_block_and_spreads_evenly(void **state)
{
    (void)state;
    for (int64_t c = 1; c <= FSI_GROUP_ROWS; c *= 2)
        for (int64_t d = 3199; d <= 3201; d++) {
            const fsi_blockperm B = lines_of(d, 3 * c, c, (uint64_t)(c + d));
            int64_t lines_in[3] = {0};
            for (int64_t j = 0; j < d; j++) {
                const int64_t first = j / FSI_GROUP_ROWS * FSI_GROUP_ROWS, h = fsi_blockperm_input_block(&B, j);
                HOLDS(h >= 0 && h < 3 * c, "c = " I64 ": coordinate " I64 " in block " I64, c, j, h);
                const int64_t super = fsi_blockperm_input_block(&B, first) / c;
                HOLDS(h / c == super, "c = " I64 ": coordinate " I64 " in super-block " I64 ", its line in " I64, c, j,
                      h / c, super);
                for (int64_t i = first; i < j; i++)
                    HOLDS((fsi_blockperm_input_block(&B, i) == h) == ((j - i) % c == 0),
                          "c = " I64 ": coordinates " I64 " and " I64 " of a line in blocks " I64 " and " I64, c, i, j,
                          fsi_blockperm_input_block(&B, i), h);
                if (j == first) lines_in[super]++;
            }
            for (int64_t H = 0; H < 3; H++)
                HOLDS(lines_in[H] - B.units / 3 == 0 || lines_in[H] - B.units / 3 == 1,
                      "d = " I64 ": " I64 " of " I64 " lines in super-block " I64, d, lines_in[H], B.units, H);
        }
}

/* The mask differs from line to line: one coordinate of every line (a hot channel) falls into every class, whatever
 * super-blocks the lines are in, and so into every block, equally often; neighbouring lines do not repeat it. */
static void coordinates_at_a_stride_of_32_reach_every_block(void **state)
{
    enum { LINES = 40000 };
    (void)state;
    for (int64_t c = 2; c <= FSI_GROUP_ROWS; c *= 2)
        for (int64_t supers = 1; supers <= 4; supers += 3) {
            const fsi_blockperm B = lines_of(FSI_GROUP_ROWS * LINES, supers * c, c, 23);
            int64_t block[4 * FSI_GROUP_ROWS] = {0}, pair[FSI_GROUP_ROWS * FSI_GROUP_ROWS] = {0}, before = 0;
            for (int64_t line = 0; line < LINES; line++) {
                const int64_t h = fsi_blockperm_input_block(&B, FSI_GROUP_ROWS * line + 5);
                block[h]++;
                if (line) pair[before % c * c + h % c]++;
                before = h;
            }
            check_uniform(block, supers * c, "c = " I64 ", M = " I64 ": blocks of channel 5", c, supers * c);
            check_uniform(pair, c * c, "c = " I64 ": classes of neighbouring lines", c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_stays_in_one_super_block_and_spreads_evenly),
        cmocka_unit_test(coordinates_at_a_stride_of_32_reach_every_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
