/* divided.c - the same bits however the columns of A are divided, in which layout they are, and with any number of
 * threads.
 *
 * Data are normal, so that any other order of a sum shows in its last bits.  Kernels are chosen by the number of columns
 * and cut them into panels and tiles; their additions must not show it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

/* `count` columns of m from column j on. */
static fs_matrix columns_from(const fs_matrix *m, int64_t j, int64_t count)
{
    fs_matrix some = *m;
    some.data = (char *)m->data + j * m->col_stride * (int64_t)fs_dtype_size(m->dtype);
    some.cols = count;
    return some;
}

static void multiply(fs_context *ctx, const fs_sketch *S, int adjoint, const fs_matrix *A, const fs_matrix *Y)
{
    if (adjoint) MUST(fs_apply_adjoint(ctx, S, 0, 1.25, A, 0.0, Y));
    else MUST(fs_apply(ctx, S, 0, 1.25, A, 0.0, Y));
}

/* Every element, bit for bit; the views may have different layouts. */
static void expect_same_numbers(const char *what, const fs_matrix *got, const fs_matrix *want)
{
    for (int64_t i = 0; i < want->rows; i++)
        for (int64_t j = 0; j < want->cols; j++)
            if (at(got, i, j) != at(want, i, j))
                fail_msg("%s: (%" PRId64 ", %" PRId64 ") is %.17g, not %.17g", what, i, j, at(got, i, j),
                         at(want, i, j));
}

/* What a case is tried with: one thread and three. */
typedef struct pair {
    const char *name;
    fs_context *ctx[2];
} pair;

/* The whole product of a row-major A by one thread; then in each layout, whole and in parts, by three. */
static void try_divisions(const pair *by, const char *name, const fs_spec *spec, int adjoint, fs_dtype type, int64_t n)
{
    static const layout layouts[] = {ROWS, COLUMNS, ROWS_SPREAD, COLUMNS_PADDED};
    static const int64_t parts[] = {1, 3, 8, 17, 6, 2, 33, 12, 5, 64, 100, 16, 7};
    fs_sketch *S = sketch_of(spec);
    const int64_t from = adjoint ? spec->k : spec->d, to = adjoint ? spec->d : spec->k;
    view first = view_make(ROWS, to, n, fsi_dtype_sum(type));
    for (int l = 0; l < 4; l++) {
        char what[200];
        view A = view_make(layouts[l], from, n, type), Y = view_make(ROWS, to, n, fsi_dtype_sum(type));
        fill_normal(&A.m, 4);
        snprintf(what, sizeof what, "%s, %s, k %" PRId64 ", d %" PRId64 ", %s %s, %s of %" PRId64 " columns", by->name,
                 name, spec->k, spec->d, layout_names[layouts[l]], fs_dtype_name(type), adjoint ? "adjoint" : "apply",
                 n);
        if (l == 0) multiply(by->ctx[0], S, adjoint, &A.m, &first.m);
        multiply(by->ctx[1], S, adjoint, &A.m, &Y.m);
        expect_same_numbers(what, &Y.m, &first.m);
        view_free(&Y);
        Y = view_make(l % 2 ? COLUMNS : ROWS, to, n, fsi_dtype_sum(type));
        for (int64_t j = 0, p = l, count; j < n; j += count, p++) {
            count = parts[p % 13] < n - j ? parts[p % 13] : n - j;
            const fs_matrix some = columns_from(&A.m, j, count), made = columns_from(&Y.m, j, count);
            multiply(by->ctx[p % 2], S, adjoint, &some, &made);
        }
        snprintf(what + strlen(what), sizeof what - strlen(what), " in parts");
        expect_same_numbers(what, &Y.m, &first.m);
        view_free(&A), view_free(&Y);
    }
    view_free(&first);
    fs_sketch_destroy(S);
}

static void for_all_variants(void (*property)(const pair *by))
{
    for (int v = 1; v < context_count; v++) {
        const pair by = {contexts[v].name, {context_of(contexts[v].name, 1), context_of(contexts[v].name, 3)}};
        property(&by);
        fs_context_destroy(by.ctx[0]);
        fs_context_destroy(by.ctx[1]);
    }
}

/* Every recipe; the Gaussian's product is OpenBLAS's where that is installed, which makes no such promise. */
static void every_recipe(const pair *by)
{
    for (int r = 0; r < recipe_count; r += THIN) {
        if (recipes[r].family == FS_GAUSSIAN) continue;
        const fs_spec small = spec_at(&recipes[r], 900, 130, 3), deep = spec_at(&recipes[r], 9000, 100, 5);
        try_divisions(by, recipes[r].name, &small, r % 3 == 0, (fs_dtype)(1 + r % 4), 40 + r % 50);
        try_divisions(by, recipes[r].name, &deep, 0, (fs_dtype)(1 + (r + 1) % 4), r % 2 ? 23 : 70);
    }
}
static void parts_of_the_columns_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    for_all_variants(every_recipe);
}

/* Sketches as users ask for them, with so many rows of A that they are cut into pieces. */
static void usual_sketches(const pair *by)
{
    static const int64_t heights[] = {64, 100, 256, 1024, 4096}, kappa[] = {0, 1, 2, 4}, widths[] = {300, 130, 57, 9};
    for (int i = 0; i < 5; i++)
        for (int sketch = i % THIN; sketch < 4; sketch += THIN) {
            fs_spec spec = FS_SPEC_INIT;
            spec.k = heights[i], spec.d = 24 * spec.k + 77, spec.seed = 9;
            if (heights[i] <= 256 && kappa[sketch] > 1) spec.M = 4;
            spec.kappa = kappa[sketch], spec.s = sketch == 1 ? 1 : sketch ? 4 : 0;
            const int64_t n = i == 4 ? widths[sketch] / 2 + 1 : widths[(sketch + i) % 4];
            try_divisions(by, "blockperm", &spec, 0, (fs_dtype)(1 + (i + sketch) % 4), n);
        }
}
static void pieces_of_the_rows_are_the_same_for_all_columns(void **state)
{
    (void)state;
    for_all_variants(usual_sketches);
}

/* Results larger than a cache are written past it; their row slices are not so large. */
static void large_results(const pair *by)
{
    enum { D = 1 << 18, N = 32, K = 100, PARTS = 8 };
    fs_spec spec = FS_SPEC_INIT;
    spec.k = K, spec.d = D, spec.seed = 3;
    fs_sketch *S = sketch_of(&spec);
    view Y = view_make(ROWS, K, N, FS_F32);
    fill_normal(&Y.m, 8);
    float *whole = aligned_alloc(64, (size_t)D * N * 4), *parts = room((int64_t)D * N, 4);
    assert_non_null(whole);
    for (int batch = 0; batch < 2; batch++) {
        const fs_matrix X = batch ? fs_batch_major(whole, N, D, FS_F32) : fs_row_major(whole, D, N, FS_F32);
        fs_matrix P = X;
        P.data = parts, P.rows = D / PARTS;
        multiply(by->ctx[1], S, 1, &Y.m, &X);
        for (int64_t p = 0; p < PARTS; p++, P.data = (char *)P.data + P.rows * P.row_stride * 4)
            MUST(fs_apply_adjoint(by->ctx[p % 2], S, p * P.rows, 1.25, &Y.m, 0.0, &P));
        if (memcmp(whole, parts, (size_t)D * N * 4)) fail_msg("%s, batch %d: slices differ", by->name, batch);
    }
    view_free(&Y);
    free(whole), free(parts);
    fs_sketch_destroy(S);
}
static void large_results_have_the_bits_of_their_slices(void **state)
{
    (void)state;
    for_all_variants(large_results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_of_the_columns_have_the_bits_of_the_whole),
                                       cmocka_unit_test(pieces_of_the_rows_are_the_same_for_all_columns),
                                       cmocka_unit_test(large_results_have_the_bits_of_their_slices)};
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
