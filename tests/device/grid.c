/* grid.c - on the device every product equals the reference's: all sketches, types, layouts, odd shapes, scalars and
 * row slices.
 *
 * Matrices are small, because ref is slow and because kernels fail at edges; large.c has the large ones. */
#include <stdio.h>

#include "base/math.h"
#include "call.h"

static const int64_t widths[] = {1, 2, 3, 7, 16, 31, 33, 64, 100, 127, 128, 129, 200, 257, 260, 512};
static const int64_t depths[] = {1, 2, 3, 31, 127, 128, 129, 500, 1000, 4099};
static const int64_t heights[] = {1, 2, 5, 63, 64, 65, 100, 257, 1000};

/* Fewer rows, then fewer columns, until neither the terms of the product nor the elements of Y are too many for ref. */
static void shrink(call *c, int64_t per_row, int64_t k)
{
    const int64_t work = small_set ? 30000 : 300000;
    while (c->rows * c->n * per_row > work && c->rows > 129) c->rows = (c->rows + 1) / 2;
    while ((c->rows * c->n * per_row > work || k * c->n > work) && c->n > 17) c->n = (c->n + 1) / 2;
}

/* Half of all calls take a row slice, some of them not up to the last row. */
static int64_t draw_piece(call *c, uint64_t stream, int64_t draw)
{
    c->row0 = bits_at(stream, draw) % 2 ? (int64_t)(bits_at(stream, draw + 1) % 300) : 0;
    return c->row0 + c->rows + (bits_at(stream, draw + 2) % 2 ? 37 : 0);
}

/* the recipes ----------------------------------------------------------------------------------------------- */

/* The digits of `number` are recipe, types, input layout and width; the rest is drawn. */
static call recipe_call(int64_t number, int adjoint)
{
    const uint64_t stream = adjoint ? 201 : 200;
    const int64_t draw = number * 16;
    const recipe *R = &recipes[number % recipe_count];
    number /= recipe_count;
    call c = {.adjoint = adjoint, .in = type_pairs[number % TYPE_PAIRS].in, .out = type_pairs[number % TYPE_PAIRS].out};
    number /= TYPE_PAIRS;
    c.from = (layout)(number % INPUT_LAYOUTS);
    c.n = widths[number / INPUT_LAYOUTS % COUNT(widths)];
    c.to = (layout)(bits_at(stream, draw) % OUTPUT_LAYOUTS);
    c.rows = depths[bits_at(stream, draw + 1) % (uint64_t)COUNT(depths)];
    const int64_t k = heights[bits_at(stream, draw + 2) % (uint64_t)COUNT(heights)];
    const int dense = R->family == FS_SRHT || R->family == FS_GAUSSIAN;
    shrink(&c, dense ? k : R->s * R->kappa > 4 ? R->s * R->kappa : 4, k);
    const int64_t d = draw_piece(&c, stream, draw + 3);
    c.spec = spec_at(R, d, k, bits_at(stream, draw + 6));
    draw_scalars(&c, bits_at(stream, draw + 7));
    call_name(&c, R->name);
    return c;
}
static int64_t recipe_calls(void) { return (int64_t)recipe_count * TYPE_PAIRS * INPUT_LAYOUTS * COUNT(widths); }

static void check_recipe(const lane *l, int64_t number, const void *adjoint)
{
    const call c = recipe_call(number, *(const int *)adjoint);
    call_check(l, &c);
}
static void apply_equals_ref_on_whole_numbers(void **state)
{
    (void)state;
    const int adjoint = 0;
    for_each_case(recipe_calls(), 200, check_recipe, &adjoint);
}
static void adjoint_equals_ref_on_whole_numbers(void **state)
{
    (void)state;
    const int adjoint = 1;
    for_each_case(recipe_calls(), 150, check_recipe, &adjoint);
}

/* the blocks ------------------------------------------------------------------------------------------------ */

static const int64_t block_heights[] = {64, 63, 17, 1, 100, 257};
static const int64_t block_counts[] = {1, 2, 7, 8, 32};
static const int64_t kappas[] = {1, 2, 3, 4, 7, 32};
static const int64_t nonzeros[] = {1, 2, 3, 4, 5, 8, 11, 16, 257};
/* Shuffle none, shuffle rows, and shuffle groups by its interleave. */
static const int64_t shuffles[] = {-1, 0, 1, 2, 4, 8, 16, 32};

/* The digits are block height, blocks, kappa, s and shuffle; kappa is lowered to M and s to the height.  Half of the
 * sketches have blocks of two heights. */
static call block_call(int64_t number)
{
    const uint64_t stream = 202;
    const int64_t draw = number * 16;
    const int64_t height = block_heights[number % COUNT(block_heights)];
    number /= COUNT(block_heights);
    int64_t M = block_counts[number % COUNT(block_counts)];
    number /= COUNT(block_counts);
    fs_spec spec = FS_SPEC_INIT;
    spec.family = FS_BLOCKPERM;
    const int64_t shuffle = shuffles[number % COUNT(shuffles)];
    number /= COUNT(shuffles);
    spec.shuffle = shuffle < 0 ? FS_SHUFFLE_NONE : shuffle == 0 ? FS_SHUFFLE_ROWS : FS_SHUFFLE_GROUPS;
    spec.interleave = shuffle > 0 ? shuffle : 0;
    if (shuffle > 1) M = (M + shuffle - 1) / shuffle * shuffle;
    spec.M = M;
    spec.k = M * height + (bits_at(stream, draw) % 2 ? (int64_t)(bits_at(stream, draw + 1) % (uint64_t)M) : 0);
    spec.kappa = fsi_min(kappas[number % COUNT(kappas)], M);
    number /= COUNT(kappas);
    spec.s = fsi_min(nonzeros[number % COUNT(nonzeros)], height);
    spec.seed = bits_at(stream, draw + 2);
    const type_pair types = type_pairs[bits_at(stream, draw + 3) % TYPE_PAIRS];
    call c = {.adjoint = bits_at(stream, draw + 4) % 3 == 0, .in = types.in, .out = types.out};
    const uint64_t lay = bits_at(stream, draw + 5);
    c.from = lay % 3 == 0 ? ROWS : lay % 3 == 1 ? COLUMNS : (layout)(lay / 3 % INPUT_LAYOUTS);
    c.to = lay >> 32 & 1 ? (layout)(c.from % OUTPUT_LAYOUTS) : (layout)((lay >> 33) % OUTPUT_LAYOUTS);
    c.n = widths[bits_at(stream, draw + 6) % (uint64_t)COUNT(widths)];
    c.rows = depths[bits_at(stream, draw + 7) % (uint64_t)COUNT(depths)];
    shrink(&c, spec.s * spec.kappa, spec.k);
    spec.d = draw_piece(&c, stream, draw + 8);
    c.spec = spec;
    draw_scalars(&c, bits_at(stream, draw + 12));
    char kind[64];
    if (shuffle > 0) snprintf(kind, sizeof kind, "blockperm groups interleave %d", (int)shuffle);
    else snprintf(kind, sizeof kind, "blockperm %s", shuffle < 0 ? "none" : "rows");
    call_name(&c, kind);
    return c;
}
static void check_block(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const call c = block_call(number);
    call_check(l, &c);
}
static void blocks_of_every_height_equal_ref(void **state)
{
    (void)state;
    const int64_t shapes = COUNT(block_heights) * COUNT(block_counts) * COUNT(shuffles);
    for_each_case(shapes * COUNT(kappas) * COUNT(nonzeros), 250, check_block, NULL);
}

/* the batches ----------------------------------------------------------------------------------------------- */

/* Samples whose coordinates are contiguous and whole 16 bytes, which tensor cores take: the digits are interleave,
 * samples, block height and s; slices begin and end at any multiple of 16 bytes. */
static call batch_call(int64_t number)
{
    static const int64_t interleaves[] = {1, 4, 8, 16}, samples[] = {16, 17, 63, 64, 65, 100, 128, 129, 200};
    static const int64_t tall[] = {64, 63, 61, 17, 1};
    static const int64_t counts[] = {4, 1, 3, 16, 64};
    const uint64_t stream = 203;
    const int64_t draw = number * 16;
    fs_spec spec = FS_SPEC_INIT;
    spec.family = FS_BLOCKPERM;
    spec.shuffle = FS_SHUFFLE_GROUPS;
    spec.kappa = 1;
    spec.interleave = interleaves[number % COUNT(interleaves)];
    number /= COUNT(interleaves);
    static const fs_dtype types[] = {FS_F32, FS_F32, FS_F16, FS_BF16};
    const fs_dtype type = types[bits_at(stream, draw + 11) % COUNT(types)];
    const int64_t chunk = type == FS_F32 ? 4 : 8; /* coordinates of 16 bytes */
    call c = {.in = type,
              .out = bits_at(stream, draw + 12) % 2 ? type : FS_F32,
              .from = COLUMNS,
              .n = samples[number % COUNT(samples)],
              .large = 1};
    number /= COUNT(samples);
    const int64_t height = tall[number % COUNT(tall)];
    number /= COUNT(tall);
    spec.s = fsi_min(counts[number % COUNT(counts)], height);
    spec.M = spec.interleave * (1 + (int64_t)(bits_at(stream, draw) % 3));
    spec.k = spec.M * height + (height < 64 ? (int64_t)(bits_at(stream, draw + 1) % (uint64_t)spec.M) : 0);
    spec.seed = bits_at(stream, draw + 2);
    c.to = bits_at(stream, draw + 4) % 2 ? COLUMNS : (layout)(bits_at(stream, draw + 5) % OUTPUT_LAYOUTS);
    c.rows = chunk * (1 + (int64_t)(bits_at(stream, draw + 6) % (small_set ? 100 : 1500)));
    c.row0 = bits_at(stream, draw + 7) % 2 ? chunk * (int64_t)(bits_at(stream, draw + 8) % 100) : 0;
    spec.d = c.row0 + c.rows + (int64_t)(bits_at(stream, draw + 9) % 50);
    c.spec = spec;
    draw_scalars(&c, bits_at(stream, draw + 10));
    call_name(&c, "blockperm batch");
    return c;
}
static void check_batch(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const call c = batch_call(number);
    call_check(l, &c);
}
static void batches_of_dealt_lines_equal_ref(void **state)
{
    (void)state;
    for_each_case(4 * 9 * 5 * 5, 150, check_batch, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(apply_equals_ref_on_whole_numbers),
        cmocka_unit_test(adjoint_equals_ref_on_whole_numbers),
        cmocka_unit_test(blocks_of_every_height_equal_ref),
        cmocka_unit_test(batches_of_dealt_lines_equal_ref),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
