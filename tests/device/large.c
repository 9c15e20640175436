/* large.c - products of large matrices equal the CPU's: many rows, wide enough for tensor cores, aligned and not.
 *
 * The reference is the tuned CPU variant.  Under --small the matrices are small, but wide enough for the same kernels.
 * */
#include <stdio.h>

#include "base/math.h"
#include "call.h"

/* Packed, one element off, and leading dimensions that keep or break the alignment of every row. */
static const struct {
    int64_t pad, lead;
} alignments[] = {{0, 0}, {0, 1}, {4, 0}, {1, 0}};
static const int64_t heights[] = {64, 256, 1000, 1024, 4096};
static const int64_t widths[] = {128, 256, 384, 130, 520};
static const int64_t depths[] = {5000, 8192, 12345, 20000};
static const struct {
    fs_shuffle shuffle;
    int64_t interleave;
} shuffles[] = {
    {FS_SHUFFLE_ROWS, 0}, {FS_SHUFFLE_GROUPS, 1}, {FS_SHUFFLE_ROWS, 0},    {FS_SHUFFLE_GROUPS, 4},
    {FS_SHUFFLE_NONE, 0}, {FS_SHUFFLE_ROWS, 0},   {FS_SHUFFLE_GROUPS, 16},
};
static const struct {
    int64_t kappa, s;
} weights[] = {{1, 4}, {1, 1}, {2, 2}, {4, 4}, {4, 1}, {1, 16}, {2, 8}, {2, 3}};
enum { DRAWS = 3 };

/* Small enough for a sanitizer, still several tiles of anything. */
static int64_t depth_at(uint64_t draw) { return small_set ? 700 + (int64_t)(draw % 3) : depths[draw % 4]; }
static int64_t height_at(int64_t number) { return fsi_min(heights[number % COUNT(heights)], small_set ? 256 : 4096); }
static int64_t width_at(int64_t number)
{
    const int64_t width = widths[number % COUNT(widths)];
    return !small_set ? width : width % 128 == 0 ? 128 : 130;
}

/* The digits are alignment, width and height, then draws of everything else: two thirds f32 and bf16, both orders. */
static call block_call(int64_t number)
{
    static const int types[] = {0, 4, 5, 0, 2, 3, 0, 1};
    const uint64_t stream = 210;
    const int64_t draw = number * 16;
    const int64_t align = number % COUNT(alignments);
    number /= COUNT(alignments);
    const type_pair pair = type_pairs[types[bits_at(stream, draw) % 8]];
    call c = {.in = pair.in, .out = pair.out, .large = 1, .pad = alignments[align].pad, .lead = alignments[align].lead};
    c.n = width_at(number);
    number /= COUNT(widths);
    fs_spec spec = FS_SPEC_INIT;
    spec.family = FS_BLOCKPERM;
    spec.k = height_at(number);
    spec.M = bits_at(stream, draw + 1) % 2 ? (spec.k + 63) / 64 : (spec.k + 127) / 128;
    const uint64_t how = bits_at(stream, draw + 2) % (uint64_t)COUNT(shuffles);
    spec.shuffle = shuffles[how].shuffle;
    spec.interleave = shuffles[how].interleave;
    while (spec.interleave > 1 && spec.M % spec.interleave != 0) spec.interleave /= 2;
    const uint64_t weight = bits_at(stream, draw + 3) % (uint64_t)COUNT(weights);
    spec.kappa = fsi_min(weights[weight].kappa, spec.M);
    spec.s = weights[weight].s;
    spec.seed = bits_at(stream, draw + 4);
    c.rows = depth_at(bits_at(stream, draw + 5));
    c.row0 = bits_at(stream, draw + 6) % 4 == 0 ? 1001 : 0;
    spec.d = c.row0 + c.rows + (bits_at(stream, draw + 7) % 4 == 0 ? 555 : 0);
    c.spec = spec;
    c.adjoint = bits_at(stream, draw + 8) % 4 == 0;
    const int by_columns = spec.shuffle == FS_SHUFFLE_GROUPS || bits_at(stream, draw + 9) % 5 == 0;
    c.from = by_columns ? COLUMNS : ROWS;
    c.to = bits_at(stream, draw + 10) % 4 == 0 ? (by_columns ? ROWS : COLUMNS) : c.from;
    draw_scalars(&c, bits_at(stream, draw + 11) % 3 ? 0 : bits_at(stream, draw + 12));
    call_name(&c, spec.shuffle == FS_SHUFFLE_NONE ? "none" : spec.shuffle == FS_SHUFFLE_ROWS ? "rows" : "groups");
    return c;
}
static void check_block(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const call c = block_call(number);
    call_check(l, &c);
}
static void large_blockperm_products_equal_the_cpu(void **state)
{
    (void)state;
    const int64_t count = COUNT(alignments) * COUNT(widths) * COUNT(heights) * (small_set ? 1 : DRAWS);
    for_each_case(count, count, check_block, NULL);
}

/* Few blocks, so that a block's rows must be split over many SMs and their sums added in one order. */
static void check_split(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const struct {
        int64_t k, M, n;
        fs_dtype in;
        layout how;
        fs_shuffle shuffle;
    } cases[] = {
        {64, 1, 128, FS_F32, ROWS, FS_SHUFFLE_ROWS},     {64, 1, 3, FS_F32, ROWS, FS_SHUFFLE_ROWS},
        {128, 2, 64, FS_BF16, ROWS, FS_SHUFFLE_ROWS},    {100, 2, 17, FS_F32, COLUMNS, FS_SHUFFLE_GROUPS},
        {64, 1, 16, FS_F16, COLUMNS, FS_SHUFFLE_GROUPS}, {17, 1, 130, FS_F32, ROWS, FS_SHUFFLE_NONE},
        {256, 4, 1, FS_F32, COLUMNS, FS_SHUFFLE_GROUPS}, {256, 4, 1, FS_F32, ROWS, FS_SHUFFLE_ROWS},
        {64, 1, 130, FS_F64, ROWS, FS_SHUFFLE_ROWS},     {257, 1, 32, FS_BF16, COLUMNS, FS_SHUFFLE_ROWS},
    };
    call c = {.in = cases[number].in,
              .out = fsi_dtype_sum(cases[number].in),
              .large = 1,
              .n = cases[number].n,
              .rows = small_set ? 3001 : 120001,
              .from = cases[number].how,
              .to = cases[number].how,
              .alpha = 1};
    const recipe R = {"few blocks", FS_BLOCKPERM, cases[number].shuffle, cases[number].M, 1, 4, 0, 0, 0, 1};
    c.spec = spec_at(&R, c.rows, cases[number].k, 77);
    call_name(&c, R.name);
    call_check(l, &c);
}
static void few_blocks_of_many_rows_equal_the_cpu(void **state)
{
    (void)state;
    for_each_case(10, 10, check_split, NULL);
}

/* More work items than SMs, which process several each: items of one panel and of many, uneven blocks, tiles that are
 * moved, row slices, both outputs. */
static void check_pieces(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const struct {
        int64_t k, n, rows, row0;
        fs_dtype in, out;
        fs_shuffle shuffle;
        int64_t s;
    } cases[] = {
        {4096, 1024, 9000, 0, FS_F32, FS_F32, FS_SHUFFLE_ROWS, 4},
        {4096, 1024, 16384, 0, FS_F16, FS_F16, FS_SHUFFLE_ROWS, 4},
        {4100, 772, 8192, 0, FS_F32, FS_F32, FS_SHUFFLE_NONE, 8},
        {8192, 520, 12345, 777, FS_BF16, FS_F32, FS_SHUFFLE_ROWS, 1},
        {2048, 2048, 5000, 0, FS_BF16, FS_BF16, FS_SHUFFLE_NONE, 4},
        {1000, 3000, 20000, 5, FS_F32, FS_F32, FS_SHUFFLE_ROWS, 7},
        {5000, 1040, 9001, 0, FS_F16, FS_F32, FS_SHUFFLE_GROUPS, 4},
        {4096, 1024, 65536, 0, FS_F32, FS_F32, FS_SHUFFLE_ROWS, 4},
    };
    call c = {.in = cases[number].in,
              .out = cases[number].out,
              .large = 1,
              .n = cases[number].n,
              .rows = small_set ? 700 : cases[number].rows,
              .row0 = cases[number].row0,
              .from = ROWS,
              .to = ROWS,
              .alpha = 1};
    const int64_t k = cases[number].k;
    const recipe R = {
        "many pieces", FS_BLOCKPERM, cases[number].shuffle, (k + 63) / 64, 1, cases[number].s, 0, 0, 0, 1};
    c.spec = spec_at(&R, c.row0 + c.rows + 100, k, 78);
    call_name(&c, R.name);
    call_check(l, &c);
}
static void more_pieces_than_processors_equal_the_cpu(void **state)
{
    (void)state;
    for_each_case(8, 8, check_pieces, NULL);
}

/* Narrow tiles of two-byte elements: one slice, two, six, seven, two thread blocks for an SM; blocks of one output tile
 * and of two, windows of every length; row slices, last rounds that are not whole, a last tile of few columns, every
 * kind of output. */
static void check_halves(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const struct {
        int64_t k, n, rows, row0;
        fs_dtype in, out;
        fs_shuffle shuffle;
        layout to;
        int64_t lead, s, block;
    } cases[] = {
        {512, 1024, 2100, 0, FS_F16, FS_F16, FS_SHUFFLE_ROWS, ROWS, 0, 4, 64},
        {512, 1024, 16384, 0, FS_BF16, FS_BF16, FS_SHUFFLE_NONE, ROWS, 0, 4, 64},
        {512, 1000, 9001, 777, FS_F16, FS_F32, FS_SHUFFLE_ROWS, ROWS, 0, 4, 64},
        {256, 1024, 2100, 3, FS_BF16, FS_BF16, FS_SHUFFLE_ROWS, ROWS, 0, 4, 64},
        {256, 1024, 16384, 0, FS_F16, FS_F16, FS_SHUFFLE_ROWS, ROWS, 0, 4, 64},
        {256, 1000, 12345, 1001, FS_F16, FS_F16, FS_SHUFFLE_NONE, ROWS, 0, 4, 64},
        {1024, 1024, 4200, 0, FS_BF16, FS_BF16, FS_SHUFFLE_ROWS, ROWS, 0, 4, 64},
        {1024, 968, 16384, 5, FS_F16, FS_F16, FS_SHUFFLE_ROWS, COLUMNS, 0, 4, 64},
        {64, 1024, 1700, 0, FS_F16, FS_F16, FS_SHUFFLE_ROWS, ROWS, 0, 4, 64},
        {64, 1000, 16384, 9, FS_BF16, FS_F32, FS_SHUFFLE_NONE, ROWS, 8, 4, 64},
        {128, 4032, 20000, 0, FS_F16, FS_F16, FS_SHUFFLE_ROWS, ROWS, 8, 4, 64},
        {2048, 256, 40000, 1, FS_BF16, FS_BF16, FS_SHUFFLE_ROWS, COLUMNS, 8, 4, 64},
        {256, 512, 7300, 0, FS_F16, FS_F16, FS_SHUFFLE_ROWS, ROWS, 0, 4, 64},
        {128, 1000, 12345, 1001, FS_BF16, FS_F32, FS_SHUFFLE_NONE, ROWS, 0, 4, 64},
        {64, 1088, 33000, 0, FS_BF16, FS_BF16, FS_SHUFFLE_ROWS, ROWS, 0, 4, 64},
        {1024, 1024, 16384, 0, FS_F16, FS_F16, FS_SHUFFLE_ROWS, ROWS, 0, 8, 128},
        {1024, 1000, 12345, 1001, FS_BF16, FS_BF16, FS_SHUFFLE_ROWS, ROWS, 8, 8, 128},
        {512, 1024, 9001, 77, FS_F16, FS_F32, FS_SHUFFLE_NONE, ROWS, 0, 8, 128},
        {1024, 968, 9001, 5, FS_BF16, FS_F32, FS_SHUFFLE_ROWS, COLUMNS, 0, 4, 128},
        {512, 1024, 12345, 1019, FS_F16, FS_F16, FS_SHUFFLE_ROWS, ROWS, 0, 4, 128},
        {512, 1024, 9001, 777, FS_F16, FS_F16, FS_SHUFFLE_ROWS, ROWS, 0, 8, 64},
        {256, 1024, 12345, 3, FS_BF16, FS_BF16, FS_SHUFFLE_NONE, ROWS, 0, 8, 64},
        {4096, 512, 66001, 13, FS_F16, FS_F16, FS_SHUFFLE_ROWS, ROWS, 0, 8, 128},
    };
    const int64_t M = cases[number].k / cases[number].block;
    call c = {.in = cases[number].in,
              .out = cases[number].out,
              .large = 1,
              .n = cases[number].n,
              .rows = small_set ? fsi_min(cases[number].rows, 4200) : cases[number].rows,
              .row0 = cases[number].row0,
              .from = ROWS,
              .to = cases[number].to,
              .lead = cases[number].lead};
    draw_scalars(&c, number % 3 == 2 ? bits_at(79, number) : 0);
    const recipe R = {"narrow tiles", FS_BLOCKPERM, cases[number].shuffle, M, 1, cases[number].s, 0, 0, 0, 1};
    c.spec = spec_at(&R, c.row0 + c.rows + (number % 2 ? 0 : 77), cases[number].k, 79);
    call_name(&c, R.name);
    call_check(l, &c);
}
static void narrow_tiles_of_two_byte_elements_equal_the_cpu(void **state)
{
    (void)state;
    for_each_case(23, 23, check_halves, NULL);
}

/* Few columns and many rows, where a warp has the sums of a block: both orders, both shuffles, row slices, blocks
 * that are uneven, draw words again or need two. */
static void check_narrow(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const int64_t columns[] = {1, 2, 3, 5, 7, 8, 16, 17, 31, 32};
    static const struct {
        int64_t k, s;
    } sketches[] = {{1024, 4}, {64, 1}, {1000, 4}, {100, 3}, {4096, 4}, {257, 8}, {1023, 2}, {640, 7}};
    const type_pair types = type_pairs[number % TYPE_PAIRS];
    const int64_t n = columns[number % COUNT(columns)], sketch = number / 3 % COUNT(sketches);
    call c = {.in = types.in,
              .out = types.out,
              .large = 1,
              .n = small_set ? 1 + n % 3 : n,
              .rows = 33001 + 1013 * (number % 5),
              .row0 = number % 4 == 3 ? 1237 : 0,
              .from = number % 5 == 4   ? COLUMNS
                      : number % 7 == 6 ? ROWS_SPREAD
                                        : ROWS,
              .to = number % 3 == 2 ? COLUMNS : ROWS};
    const fs_shuffle shuffle = number % 11 % 4 == 3 ? FS_SHUFFLE_NONE : FS_SHUFFLE_ROWS;
    const recipe R = {"few columns", FS_BLOCKPERM, shuffle, 0, 1, sketches[sketch].s, 0, 0, 0, 1};
    c.spec = spec_at(&R, c.row0 + c.rows + (number % 2 ? 99 : 0), sketches[sketch].k, 31 + (uint64_t)number);
    draw_scalars(&c, (uint64_t)number);
    call_name(&c, R.name);
    call_check(l, &c);
}
static void few_columns_of_many_rows_equal_the_cpu(void **state)
{
    (void)state;
    const int64_t count = small_set ? 4 : 240;
    for_each_case(count, count, check_narrow, NULL);
}

/* Up to 64 columns and blocks of 64 rows, whose S is made in registers: every number of nonzeros that has such a
 * kernel, few blocks and many, rows of every alignment, row slices. */
static void check_tall(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const int64_t columns[] = {16, 9, 32, 12, 64, 10, 24, 31, 40, 20, 33}, blocks[] = {16, 1, 5, 17, 64, 2};
    const type_pair types = type_pairs[number % TYPE_PAIRS];
    const int64_t align = number / 5 % COUNT(alignments), s = (int64_t)1 << number / 2 % 4;
    call c = {.in = types.in,
              .out = types.out,
              .large = 1,
              .n = columns[number % COUNT(columns)],
              .rows = 33001 + 10013 * (number % 7),
              .row0 = number % 4 == 3 ? 1237 : 0,
              .pad = alignments[align].pad,
              .lead = alignments[align].lead,
              .to = number % 3 == 2 ? COLUMNS : ROWS};
    const fs_shuffle shuffle = number % 5 == 4 ? FS_SHUFFLE_NONE : FS_SHUFFLE_ROWS;
    const recipe R = {"blocks of 64", FS_BLOCKPERM, shuffle, blocks[number % COUNT(blocks)], 1, s, 0, 0, 0, 1};
    c.spec = spec_at(&R, c.row0 + c.rows + (number % 2 ? 99 : 0), 64 * R.M, 51 + (uint64_t)number);
    draw_scalars(&c, (uint64_t)number);
    call_name(&c, R.name);
    call_check(l, &c);
}
static void blocks_of_64_rows_and_few_columns_equal_the_cpu(void **state)
{
    (void)state;
    const int64_t count = small_set ? 3 : 240;
    for_each_case(count, count, check_tall, NULL);
}

/* The other families at sizes where their kernels have several tiles in every direction. */
static void check_family(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const recipe kinds[] = {
        {"sjlt s 4", FS_SJLT, (fs_shuffle)0, 0, 0, 4, 0, 9000, 1000, 1},
        {"sjlt s 16", FS_SJLT, (fs_shuffle)0, 0, 0, 16, 0, 5000, 4096, 1},
        {"CountSketch", FS_SJLT, (fs_shuffle)0, 0, 0, 1, 0, 20000, 4096, 1},
        {"blockrow", FS_BLOCKROW, (fs_shuffle)0, 16, 4, 4, 0, 16384, 1024, 1},
        {"srht k 1024", FS_SRHT, (fs_shuffle)0, 0, 0, 0, 0, 10000, 1024, 1},
        {"srht k 4096", FS_SRHT, (fs_shuffle)0, 0, 0, 0, 0, 4096, 4096, 1},
        {"srht k 300", FS_SRHT, (fs_shuffle)0, 0, 0, 0, 0, 5001, 300, 0},
        {"gaussian", FS_GAUSSIAN, (fs_shuffle)0, 0, 0, 0, 0, 3000, 256, 0},
        {"gaussian k 1000", FS_GAUSSIAN, (fs_shuffle)0, 0, 0, 0, 0, 10001, 1000, 0},
    };
    const recipe *R = &kinds[number % COUNT(kinds)];
    const int64_t variant = number / COUNT(kinds), align = variant % COUNT(alignments);
    const type_pair types = type_pairs[variant % TYPE_PAIRS];
    call c = {.in = types.in,
              .out = types.out,
              .large = 1,
              .rows = small_set ? 300 : R->d,
              .adjoint = variant % 3 == 2,
              .pad = alignments[align].pad,
              .lead = alignments[align].lead};
    c.n = width_at(number + variant);
    c.from = variant / 2 % 2 ? COLUMNS : ROWS;
    c.to = variant / 3 % 2 ? COLUMNS : ROWS;
    c.row0 = R->family == FS_GAUSSIAN && variant % 2 ? 137 : 0;
    c.spec = spec_at(R, c.row0 + c.rows, small_set ? 64 : R->k, 5 + (uint64_t)variant);
    draw_scalars(&c, (uint64_t)variant);
    call_name(&c, R->name);
    call_check(l, &c);
}
static void other_large_families_equal_the_cpu(void **state)
{
    (void)state;
    for_each_case(9 * 12, 9 * 12, check_family, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_blockperm_products_equal_the_cpu),
        cmocka_unit_test(few_blocks_of_many_rows_equal_the_cpu),
        cmocka_unit_test(more_pieces_than_processors_equal_the_cpu),
        cmocka_unit_test(narrow_tiles_of_two_byte_elements_equal_the_cpu),
        cmocka_unit_test(few_columns_of_many_rows_equal_the_cpu),
        cmocka_unit_test(blocks_of_64_rows_and_few_columns_equal_the_cpu),
        cmocka_unit_test(other_large_families_equal_the_cpu),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
