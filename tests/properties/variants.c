/* variants.c - every variant computes the same as the reference: the tuned kernels against "ref" on every shape, layout
 * and type.
 *
 * On integers the sums are exact in any order and then scaled by one formula, so results must be ==; only the
 * Gaussian's entries are not integers, and there, as on normal data, slack_of bounds the difference. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

/* One call.  rows is A's (or X's) share of the d rows of S, from row0 on. */
typedef struct call {
    char name[320];
    fs_spec spec;
    int adjoint;
    int64_t row0, rows, n;
    layout from, to;
    fs_dtype in, out;
    double alpha, beta;
} call;

static int64_t in_rows(const call *c) { return c->adjoint ? c->spec.k : c->rows; }
static int64_t out_rows(const call *c) { return c->adjoint ? c->rows : c->spec.k; }

static void name_call(call *c, const recipe *R)
{
    snprintf(c->name, sizeof c->name,
             "%s, k %" PRId64 ", d %" PRId64 ", rows %" PRId64 " + %" PRId64 ", n %" PRId64
             ", %s from %s %s to %s %s, alpha %g, beta %g",
             R->name, c->spec.k, c->spec.d, c->row0, c->rows, c->n, c->adjoint ? "adjoint" : "apply",
             layout_names[c->from], fs_dtype_name(c->in), layout_names[c->to], fs_dtype_name(c->out), c->alpha,
             c->beta);
}

/* The result of one variant: Y starts as NaN when beta is 0, as integers otherwise. */
static view run(const call *c, const fs_sketch *S, fs_context *ctx, const fs_matrix *A, const char *variant)
{
    char what[400];
    view Y = view_make(c->to, out_rows(c), c->n, c->out);
    if (c->beta != 0.0) fill_whole(&Y.m, 2, 8);
    view_seal(&Y);
    if (c->adjoint) MUST(fs_apply_adjoint(ctx, S, c->row0, c->alpha, A, c->beta, &Y.m));
    else MUST(fs_apply(ctx, S, c->row0, c->alpha, A, c->beta, &Y.m));
    snprintf(what, sizeof what, "%s: %s", variant, c->name);
    expect_padding_untouched(what, &Y);
    return Y;
}

/* Half the distance between neighbours of type t at x, relative to x. */
static double unit_of(fs_dtype t)
{
    return t == FS_F64 ? 0x1p-53 : t == FS_F32 ? 0x1p-24 : t == FS_F16 ? 0x1p-11 : 0x1p-8;
}

/* Every variant, the reference too, against sums made here in double of the exported columns: sums may be off by
 * slack_of, the result by one rounding to its type, and to f16's smallest number. */
static void within_bound(const call *c, const fs_sketch *S, const fs_matrix *A)
{
    const int64_t count = out_rows(c) * c->n;
    double *T = columns_of(S, c->row0, c->rows), *want = room(count, 8), *slack = room(count, 8);
    product(T, out_rows(c), in_rows(c), c->adjoint, A, want, slack);
    for (int64_t e = 0; e < count; e++) {
        const double old = c->beta != 0.0 ? whole_at(2, e, 8) : 0.0;
        want[e] = c->beta * old + c->alpha * want[e];
        slack[e] = slack_of(c->in, in_rows(c), fabs(c->beta * old) + fabs(c->alpha) * slack[e]) +
                   unit_of(c->out) * fabs(want[e]) + (c->out == FS_F16 ? 0x1p-25 : 0.0);
    }
    for (int v = 0; v < context_count; v++) {
        char what[400];
        snprintf(what, sizeof what, "%s: %s", contexts[v].name, c->name);
        view Y = run(c, S, contexts[v].ctx, A, contexts[v].name);
        expect_close(what, &Y.m, want, slack);
        view_free(&Y);
    }
    free(T), free(want), free(slack);
}

static void equal_to_judge(const call *c, const fs_sketch *S, const fs_matrix *A)
{
    view reference = run(c, S, contexts[0].ctx, A, contexts[0].name);
    for (int v = 1; v < context_count; v++) {
        char what[400];
        snprintf(what, sizeof what, "%s: %s", contexts[v].name, c->name);
        view Y = run(c, S, contexts[v].ctx, A, contexts[v].name);
        expect_equal(what, &Y.m, &reference.m);
        view_free(&Y);
    }
    view_free(&reference);
}

/* Integers up to 8: sums of 8192 of them, and a hundred times as many, are exact in f32. */
static void try_call(const call *c, int normal)
{
    fs_sketch *S = sketch_of(&c->spec);
    view A = view_make(c->from, in_rows(c), c->n, c->in);
    if (normal) fill_normal(&A.m, 1);
    else fill_whole(&A.m, 1, 8);
    if (normal || c->spec.family == FS_GAUSSIAN) within_bound(c, S, &A.m);
    else equal_to_judge(c, S, &A.m);
    view_free(&A);
    fs_sketch_destroy(S);
}

/* the grid -------------------------------------------------------------------------------------------------- */

static const int64_t widths[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 200, 513};
static const int64_t depths[] = {1, 2, 31, 127, 128, 129, 1000, 4099};
static const int64_t heights[] = {1, 2, 63, 64, 65, 100, 257};
static const struct {
    double alpha, beta;
} scalars[] = {{1, 0}, {1, 1}, {-2, 0.5}, {0.75, -1}, {0, 1}, {3, 0}};
#define COUNT(array) ((int64_t)(sizeof array / sizeof array[0]))

/* Case `number` of a recipe: width and input layout run through all pairs, the rest is drawn.  Products are kept
 * below `work` terms by taking fewer rows, then fewer columns: the reference is slow. */
static call call_at(const recipe *R, int64_t number, int64_t work)
{
    const uint64_t stream = (uint64_t)(R - recipes) + 100;
    const int64_t draw = number * 16;
    call c;
    memset(&c, 0, sizeof c);
    c.n = widths[number % COUNT(widths)];
    c.from = (layout)(number / COUNT(widths) % INPUT_LAYOUTS);
    c.to = (layout)(bits_at(stream, draw) % OUTPUT_LAYOUTS);
    c.rows = depths[bits_at(stream, draw + 1) % (uint64_t)COUNT(depths)];
    const int64_t k = heights[bits_at(stream, draw + 2) % (uint64_t)COUNT(heights)];
    const int dense = R->family == FS_SRHT || R->family == FS_GAUSSIAN;
    const int64_t per_row = dense ? k : R->s * R->kappa > 4 ? R->s * R->kappa : 4;
    while (c.rows * c.n * per_row > work && c.rows > 129) c.rows = (c.rows + 1) / 2;
    while (c.rows * c.n * per_row > work && c.n > 17) c.n = (c.n + 1) / 2;
    c.row0 = bits_at(stream, draw + 3) % 2 ? (int64_t)(bits_at(stream, draw + 4) % 300) : 0;
    c.spec = spec_at(R, c.row0 + c.rows + (bits_at(stream, draw + 5) % 2 ? 37 : 0), k, bits_at(stream, draw + 6));
    c.in = (fs_dtype)(1 + bits_at(stream, draw + 7) % 4);
    c.out = bits_at(stream, draw + 8) % 2 ? c.in : fsi_dtype_sum(c.in);
    c.adjoint = bits_at(stream, draw + 9) % 3 == 0;
    const int64_t scalar = (int64_t)(bits_at(stream, draw + 10) % (uint64_t)COUNT(scalars));
    c.alpha = scalars[scalar].alpha;
    c.beta = scalars[scalar].beta;
    name_call(&c, R);
    return c;
}

static void every_variant_equals_the_judge_on_whole_numbers(void **state)
{
    (void)state;
    for (int r = 0; r < recipe_count; r++)
        for (int64_t number = r % THIN; number < COUNT(widths) * INPUT_LAYOUTS; number += THIN) {
            const call c = call_at(&recipes[r], number, 400000);
            try_call(&c, 0);
        }
}

static void every_variant_is_within_the_bound_on_normal_data(void **state)
{
    (void)state;
    for (int r = 0; r < recipe_count; r++)
        for (int64_t number = r % (5 * THIN); number < COUNT(widths) * INPUT_LAYOUTS; number += 5 * THIN) {
            call c = call_at(&recipes[r], number + COUNT(widths) * INPUT_LAYOUTS, 200000);
            try_call(&c, 1);
        }
}

/* Wide, as a matrix of many samples is: several panels of columns for every kernel, both layouts, all types. */
static void wide_matrices_equal_the_judge(void **state)
{
    (void)state;
    for (int r = 0; r < recipe_count; r += THIN)
        for (int t = 0; t < 8; t++) {
            const fs_dtype in = (fs_dtype)(1 + t % 4);
            call c = {.rows = 70,
                      .n = 2500 + t,
                      .from = t & 1 ? COLUMNS : ROWS,
                      .to = t & 2 ? COLUMNS_PADDED : ROWS,
                      .in = in,
                      .out = fsi_dtype_sum(in),
                      .alpha = 1,
                      .adjoint = t & 4};
            c.spec = spec_at(&recipes[r], 70, 33, 9);
            name_call(&c, &recipes[r]);
            try_call(&c, 0);
        }
}

/* Many rows of Y: blocks that no cache holds, windows that are cut, and Hadamard segments at their largest. */
static void tall_sketches_equal_the_judge(void **state)
{
    (void)state;
    static const int64_t n[] = {3, 20, 70, 3};
    for (int r = 0; r < recipe_count; r += THIN)
        for (int t = 0; t < 4; t++) {
            const int64_t k = recipes[r].family == FS_SJLT && t == 0 ? 70001 : 4099;
            call c = {.rows = recipes[r].family == FS_SRHT ? 2500 : 300,
                      .row0 = t,
                      .n = n[t],
                      .from = t & 1 ? COLUMNS : ROWS,
                      .to = ROWS,
                      .in = FS_F32,
                      .out = FS_F32,
                      .alpha = 1,
                      .adjoint = t & 2};
            c.spec = spec_at(&recipes[r], c.rows + 5, k, 10);
            name_call(&c, &recipes[r]);
            try_call(&c, 0);
        }
}

/* Kernels take the rows of A in panels of at most 2^20; two panels and a little of a third. */
static void many_rows_equal_the_judge(void **state)
{
    (void)state;
    static const struct {
        layout how;
        int64_t n;
        fs_dtype in;
        int adjoint;
        fs_shuffle shuffle;
    } cases[] = {
        {ROWS, 3, FS_F32, 0, FS_SHUFFLE_ROWS},
        {COLUMNS, 2, FS_F32, 0, FS_SHUFFLE_GROUPS},
        {COLUMNS, 1, FS_BF16, 0, FS_SHUFFLE_ROWS},
        {ROWS, 2, FS_F64, 1, FS_SHUFFLE_ROWS},
    };
    const int64_t rows = THIN > 1 ? ((int64_t)1 << 20) + 77 : ((int64_t)1 << 21) + 77;
    for (int64_t i = 0; i < COUNT(cases); i++) {
        const recipe R = {"blockperm", FS_BLOCKPERM, cases[i].shuffle, 4, 1, 4, 0, 0, 0, 1};
        call c = {.rows = rows,
                  .row0 = 5,
                  .n = cases[i].n,
                  .from = cases[i].how,
                  .to = ROWS,
                  .in = cases[i].in,
                  .out = fsi_dtype_sum(cases[i].in),
                  .alpha = 1,
                  .beta = 1,
                  .adjoint = cases[i].adjoint};
        c.spec = spec_at(&R, rows + 9, 250, 3);
        name_call(&c, &R);
        try_call(&c, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_equals_the_judge_on_whole_numbers),
        cmocka_unit_test(every_variant_is_within_the_bound_on_normal_data),
        cmocka_unit_test(wide_matrices_equal_the_judge),
        cmocka_unit_test(tall_sketches_equal_the_judge),
        cmocka_unit_test(many_rows_equal_the_judge),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
