/* rows.c - gathered rows of a matrix in device memory are sketched as a copy of them is on the CPU; an index outside A
 * gives NaN where its row would contribute, and nowhere else. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "call.h"

/* Where the rows are: all of A's, ascending; scattered, some of them several times; from the last one back. */
typedef enum order { ASCENDING, SCATTERED, BACKWARD, ORDERS } order;
static const char *const order_names[] = {"ascending", "scattered", "backward"};

static int64_t entry(order how, int64_t rows, int64_t count, int64_t i)
{
    if (how == ASCENDING) return i * rows / count;
    if (how == BACKWARD) return (count - 1 - i) * rows / count;
    return (int64_t)(bits_at(3, i) % (uint64_t)rows);
}

/* `count` numbers of rows, on the host and in the lane's device memory. */
typedef struct listing {
    fs_rows host, device;
    int64_t bytes;
} listing;
static listing listing_make(const lane *l, order how, int64_t rows, int64_t count, fs_index_type type)
{
    listing list = {.bytes = count * (type == FS_INDEX32 ? 4 : 8)};
    void *index = room(count + 1, 8);
    for (int64_t i = 0; i < count; i++) fsi_index_store(index, type, i, entry(how, rows, count, i));
    list.host = (fs_rows){count, type, index, FS_MEMORY_HOST};
    list.device = (fs_rows){count, type, device_alloc(l->stream, list.bytes + 8), device_place()};
    copy_in(l->stream, (void *)list.device.index, index, list.bytes);
    return list;
}
static void listing_free(const lane *l, listing *list)
{
    device_free(l->stream, (void *)list->device.index);
    free((void *)list->host.index);
}

/* c.rows are listed, of A's `all`. */
static view on_device(const lane *l, const call *c, const fs_sketch *S, const view *A, const fs_rows *list)
{
    view Y = call_output(c);
    mirror from = mirror_make(l, A), to = mirror_make(l, &Y);
    MUST(fs_apply_rows(l->gpu, S, c->row0, c->alpha, &from.m, list, c->beta, &to.m));
    stream_wait(l->stream);
    mirror_fetch(l, c->name, &to, &Y);
    expect_padding_untouched(c->name, &Y);
    expect_mirror_untouched(l, c->name, &from, A);
    mirror_free(l, &from), mirror_free(l, &to);
    return Y;
}

static void check(const lane *l, const call *c, int64_t all, order how, fs_index_type type)
{
    fs_sketch *S = sketch_of(&c->spec);
    listing list = listing_make(l, how, all, c->rows, type);
    call whole = *c;
    whole.rows = all;
    view A = call_input(&whole), want = call_output(c);
    view_seal(&A);
    view got = on_device(l, c, S, &A, &list.device);
    view again = on_device(l, c, S, &A, &list.device);
    expect_same_bits(c->name, &again, &got);
    MUST(fs_apply_rows(c->large ? l->tuned : l->ref, S, c->row0, c->alpha, &A.m, &list.host, c->beta, &want.m));
    call_compare(c, S, &got, &want);
    view_free(&A), view_free(&want), view_free(&got), view_free(&again);
    listing_free(l, &list);
    fs_sketch_destroy(S);
}

/* The digits are recipe and types; the rest is drawn. */
static void check_case(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const int64_t widths[] = {1, 3, 17, 64, 65, 130}, depths[] = {1, 40, 257, 700};
    const recipe *R = &recipes[number % recipe_count];
    const uint64_t draw = bits_at(71, number);
    const type_pair types = type_pairs[number / recipe_count % TYPE_PAIRS];
    call c = {.in = types.in, .out = types.out, .row0 = (int64_t)(draw & 63), .limit = 8};
    c.rows = depths[draw >> 8 & 3];
    c.n = widths[(draw >> 16) % 6];
    c.from = (layout)((draw >> 24) % INPUT_LAYOUTS);
    c.to = (layout)((draw >> 32) % OUTPUT_LAYOUTS);
    c.spec = spec_at(R, c.row0 + c.rows + 3, draw >> 40 & 1 ? 65 : 257, 21);
    draw_scalars(&c, bits_at(72, number));
    const order how = (order)(draw >> 44) % ORDERS;
    const fs_index_type type = draw >> 48 & 1 ? FS_INDEX32 : FS_INDEX64;
    char name[120];
    snprintf(name, sizeof name, "%s, rows %s in %d bits", R->name, order_names[how], type == FS_INDEX32 ? 32 : 64);
    call_name(&c, name);
    check(l, &c, 1 + (int64_t)((draw >> 50) % 1500), how, type);
}
static void listed_rows_are_sketched_like_a_copy_of_them(void **state)
{
    (void)state;
    for_each_case((int64_t)recipe_count * TYPE_PAIRS * 6, 100, check_case, NULL);
}

/* Masks of batches of gradients, every type and shuffle, thread blocks of every height. */
static void check_batch(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const fs_shuffle shuffles[] = {FS_SHUFFLE_ROWS, FS_SHUFFLE_NONE, FS_SHUFFLE_GROUPS};
    const recipe R = {"batch", FS_BLOCKPERM, shuffles[number % 3], 0, 1, 4, 0, 0, 0, 1};
    const type_pair types = type_pairs[number / 3 % TYPE_PAIRS];
    call c = {.in = types.in, .out = types.out, .large = 1, .alpha = 1, .from = COLUMNS, .to = COLUMNS, .limit = 8};
    c.n = number & 1 ? 100 : 512;
    const int64_t k = small_set ? 256 : 1024 << number / 18 % 3;
    c.rows = 4 * k;
    c.spec = spec_at(&R, c.rows, k, 3);
    call_name(&c, "a batch");
    check(l, &c, small_set ? 1500 : 30001, ASCENDING, FS_INDEX32);
}
static void masks_of_batches_are_sketched_like_a_copy_of_them(void **state)
{
    (void)state;
    for_each_case(54, 18, check_batch, NULL);
}

/* Entry `bad` of the list is -1 or one past the last row; the others are right. */
static void check_missing(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const recipe *R = &recipes[number % recipe_count];
    const type_pair types = type_pairs[number / recipe_count % TYPE_PAIRS];
    call c = {.in = types.in, .out = types.out, .rows = 300, .n = 37, .alpha = 1, .from = COLUMNS, .to = COLUMNS};
    const int64_t all = 900, bad = (int64_t)(bits_at(5, number) % 300);
    c.limit = 8;
    c.spec = spec_at(R, c.rows, 65, 9);
    call_name(&c, R->name);
    fs_sketch *S = sketch_of(&c.spec);
    listing list = listing_make(l, ASCENDING, all, c.rows, FS_INDEX64);
    call whole = c;
    whole.rows = all;
    view A = call_input(&whole), good = on_device(l, &c, S, &A, &list.device);
    fsi_index_store((void *)list.host.index, FS_INDEX64, bad, number & 1 ? -1 : all);
    copy_in(l->stream, (void *)list.device.index, list.host.index, list.bytes);
    view got = on_device(l, &c, S, &A, &list.device);
    signed char *reads = call_readers(S, &c, bad);
    for (int64_t i = 0; i < c.spec.k; i++)
        for (int64_t j = 0; j < c.n; j++) {
            const double y = at(&got.m, i, j), was = at(&good.m, i, j);
            if (reads[i] ? !isnan(y) : y != was)
                fail_msg("%s: entry %" PRId64 " of the list names no row, and makes %" PRId64 ", %" PRId64
                         " %g, which %s",
                         c.name, bad, i, j, y, reads[i] ? "must be NaN" : "it must not touch");
        }
    free(reads);
    view_free(&A), view_free(&good), view_free(&got);
    listing_free(l, &list);
    fs_sketch_destroy(S);
}
static void a_row_that_is_not_there_spoils_its_sums_and_no_others(void **state)
{
    (void)state;
    if (dry) skip_because("lists in host memory are checked");
    for_each_case((int64_t)recipe_count * TYPE_PAIRS, 20, check_missing, NULL);
}

/* Inf and NaN in gathered rows are the reference's; those of other rows have no effect. */
static void check_nonfinite(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const double poisons[] = {INFINITY, -INFINITY, NAN};
    const recipe *R = &recipes[number % recipe_count];
    const type_pair types = type_pairs[number / recipe_count % TYPE_PAIRS];
    call c = {.in = types.in, .out = types.out, .rows = 300, .n = 37, .alpha = 1, .from = COLUMNS, .to = COLUMNS};
    const uint64_t draw = bits_at(6, number);
    const int64_t all = 900, listed = (int64_t)(draw % 300), column = (int64_t)(draw >> 16 & 31);
    c.limit = 8;
    c.spec = spec_at(R, c.rows, 65, 9);
    call_name(&c, R->name);
    fs_sketch *S = sketch_of(&c.spec);
    listing list = listing_make(l, ASCENDING, all, c.rows, FS_INDEX64);
    call whole = c;
    whole.rows = all;
    view A = call_input(&whole), good = on_device(l, &c, S, &A, &list.device);
    for (int64_t i = 0; i < all; i++)
        if (i % 3 != 0) put(&A.m, i, (column + i) % c.n, NAN); /* entry i of the list is row 3 i */
    put(&A.m, 3 * listed, column, poisons[draw >> 32 & 1 ? 2 : draw >> 33 & 1]);
    view got = on_device(l, &c, S, &A, &list.device);
    signed char *reads = call_readers(S, &c, listed);
    for (int64_t i = 0; i < c.spec.k; i++)
        for (int64_t j = 0; j < c.n; j++) {
            const double y = at(&got.m, i, j), was = at(&good.m, i, j);
            if (j == column && reads[i] ? isfinite(y) : y != was)
                fail_msg("%s: a poison in gathered row %" PRId64 ", column %" PRId64 ", makes %" PRId64 ", %" PRId64
                         " %g",
                         c.name, listed, column, i, j, y);
        }
    free(reads);
    view_free(&A), view_free(&good), view_free(&got);
    listing_free(l, &list);
    fs_sketch_destroy(S);
}
static void a_non_finite_element_reaches_its_rows_if_it_is_listed(void **state)
{
    (void)state;
    for_each_case((int64_t)recipe_count * TYPE_PAIRS, 20, check_nonfinite, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listed_rows_are_sketched_like_a_copy_of_them),
        cmocka_unit_test(masks_of_batches_are_sketched_like_a_copy_of_them),
        cmocka_unit_test(a_row_that_is_not_there_spoils_its_sums_and_no_others),
        cmocka_unit_test(a_non_finite_element_reaches_its_rows_if_it_is_listed),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
