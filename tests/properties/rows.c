/* rows.c - the sketch of gathered rows is the sketch of a copy of them, to the bit, for every family, variant, type and
 * layout: the same kernels add the same numbers in the same order, read from other addresses. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

/* The lists of a matrix with `rows` rows: `count` of them, in the order of the name. */
typedef enum order { ASCENDING, BACKWARD, REPEATED, ORDERS } order;
static const char *const order_names[] = {"ascending", "backward", "repeated"};

static int64_t entry(order how, int64_t rows, int64_t count, int64_t i)
{
    if (how == ASCENDING) return i * rows / count;
    if (how == BACKWARD) return (count - 1 - i) * rows / count;
    return (int64_t)(bits_at(3, i) % (uint64_t)rows);
}

static fs_rows rows_make(order how, int64_t rows, int64_t count, fs_index_type type)
{
    void *index = room(count + 1, type == FS_INDEX32 ? 4 : 8);
    for (int64_t i = 0; i < count; i++) fsi_index_store(index, type, i, entry(how, rows, count, i));
    const fs_rows list = {count, type, index, FS_MEMORY_HOST};
    return list;
}

/* One property: p rows, of which `count` are gathered, by columns row0 ... of S. */
static void same_as_a_copy(const recipe *R, int64_t d, int64_t row0, int64_t count, int64_t p, int64_t n, layout how,
                           fs_dtype dtype, order in, fs_index_type type, double beta)
{
    char what[300];
    const fs_spec spec = spec_at(R, d, R->k, 77);
    fs_sketch *S = sketch_of(&spec);
    const fs_rows list = rows_make(in, p, count, type);
    view A = view_make(how, p, n, dtype), copy = view_make(how, count, n, dtype);
    fill_normal(&A.m, 5);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < n; j++) put(&copy.m, i, j, at(&A.m, entry(in, p, count, i), j));
    view_seal(&A);
    for (int v = 0; v < context_count; v++) {
        view got = view_make(COLUMNS, spec.k, n, dtype), want = view_make(COLUMNS, spec.k, n, dtype);
        if (beta != 0) fill_whole(&got.m, 2, 8), fill_whole(&want.m, 2, 8);
        MUST(fs_apply(contexts[v].ctx, S, row0, 0.5, &copy.m, beta, &want.m));
        MUST(fs_apply_rows(contexts[v].ctx, S, row0, 0.5, &A.m, &list, beta, &got.m));
        snprintf(what, sizeof what, "%s, %s, d %" PRId64 ", %" PRId64 " of %" PRId64 " rows %s, n %" PRId64 ", %s %s",
                 contexts[v].name, R->name, d, count, p, order_names[in], n, layout_names[how], fs_dtype_name(dtype));
        expect_same_bits(what, &got, &want);
        expect_untouched(what, &A);
        view_free(&got);
        view_free(&want);
    }
    free((void *)list.index);
    view_free(&A);
    view_free(&copy);
    fs_sketch_destroy(S);
}

static void listed_rows_are_sketched_like_a_copy_of_them(void **state)
{
    static const layout layouts[] = {ROWS, COLUMNS, ROWS_PADDED, COLUMNS_SHIFTED, COLUMNS_BACKWARD, ROWS_SPREAD};
    int turn = 0;
    (void)state;
    for (int r = 0; r < recipe_count; r++)
        for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++)
            for (int n = 1; n <= 70; n = n * 3 + 2, turn++) {
                if (turn % THIN) continue;
                const recipe *R = &recipes[r];
                const fs_dtype dtype = (fs_dtype)(FS_F32 + turn % 4);
                same_as_a_copy(R, R->d, 0, R->d, 3 * R->d, n, layouts[l], dtype, (order)(turn % ORDERS),
                               turn % 2 ? FS_INDEX32 : FS_INDEX64, turn % 3 ? 0.0 : 1.0);
            }
}

/* A slice of a mask: fewer entries than S has columns, from row0 on; none at all; more than a table of nonzeros. */
static void pieces_of_a_list_take_their_own_columns(void **state)
{
    (void)state;
    for (int r = 0; r < recipe_count; r++) {
        same_as_a_copy(&recipes[r], recipes[r].d, 3, recipes[r].d - 7, 2 * recipes[r].d, 20, COLUMNS, FS_F32, ASCENDING,
                       FS_INDEX64, 1.0);
        same_as_a_copy(&recipes[r], recipes[r].d, 5, 0, 10, 20, COLUMNS, FS_F32, ASCENDING, FS_INDEX64, 0.5);
    }
    const recipe long_table = {"lines, many nonzeros", FS_BLOCKPERM, FS_SHUFFLE_GROUPS, 8, 8, 16, 8, 0, 128, 0};
    same_as_a_copy(&long_table, 20000, 0, 20000, 30000, 18, COLUMNS, FS_F32, ASCENDING, FS_INDEX32, 0.0);
}

static void wrong_lists_are_refused_and_y_is_left_alone(void **state)
{
    (void)state;
    const fs_spec spec = spec_at(&recipes[0], 40, 16, 1);
    fs_sketch *S = sketch_of(&spec);
    fs_context *ctx = contexts[0].ctx;
    int64_t index[50];
    fs_rows list = {40, FS_INDEX64, index, FS_MEMORY_HOST};
    for (int i = 0; i < 50; i++) index[i] = 2 * i;
    view A = view_make(COLUMNS, 100, 4, FS_F32), Y = view_make(ROWS, 16, 4, FS_F32);
    fill_whole(&A.m, 1, 9);
    fill_whole(&Y.m, 2, 9);
    view_seal(&Y);
    index[7] = 100;
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EINVAL, "rows.index[7] is 100", "100 rows");
    index[7] = -1;
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EINVAL, "rows.index[7] is -1");
    index[7] = 14;
    REFUSED(fs_apply_rows(ctx, S, 1, 1, &A.m, &list, 0, &Y.m), FS_EINVAL, "1 + 40", "d = 40");
    list.count = 41;
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EINVAL, "0 + 41", "d = 40");
    list.count = -1;
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EINVAL, "rows.count is -1");
    list.count = 40;
    list.index_type = (fs_index_type)9;
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EINVAL, "index_type 9");
    list.index_type = FS_INDEX64;
    list.index = (char *)index + 4;
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EINVAL, "aligned");
    list.index = NULL;
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EINVAL, "rows.index is NULL");
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, NULL, 0, &Y.m), FS_EINVAL, "rows is NULL");
    list.index = Y.m.data;
    list.index_type = FS_INDEX32;
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EINVAL, "rows.index and Y overlap");
    list.index = index;
    list.index_type = FS_INDEX64;
    list.memory = (fs_memory)7;
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EINVAL, "rows.memory 7");
    list.memory = FS_MEMORY_CUDA;
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EUNSUPPORTED, "rows is in cuda memory");
    list.memory = FS_MEMORY_HOST;
    REFUSED(fs_apply_rows(NULL, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EINVAL, "ctx is NULL");
    REFUSED(fs_apply_rows(ctx, S, 0, 1, &A.m, &list, 0, &A.m), FS_EINVAL, "16 x 4");
    expect_untouched("Y", &Y);

    fs_context_options options = FS_CONTEXT_INIT; /* the tests' plugin, a backend without this operation */
    fs_context *other;
    options.backend = FS_BACKEND_CUDA;
    MUST(fs_context_create(&other, &options));
    REFUSED(fs_apply_rows(other, S, 0, 1, &A.m, &list, 0, &Y.m), FS_EUNSUPPORTED, "cannot sketch gathered rows");
    fs_context_destroy(other);
    view_free(&A);
    view_free(&Y);
    fs_sketch_destroy(S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listed_rows_are_sketched_like_a_copy_of_them),
        cmocka_unit_test(pieces_of_a_list_take_their_own_columns),
        cmocka_unit_test(wrong_lists_are_refused_and_y_is_left_alone),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
