/* add.c - sums of partial results: Y is beta Y + P[0] + P[1] + ..., summed in this order in f64 and rounded once,
 * for every type, layout, number of threads, and nothing beside Y is written. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/support.h"

static const fs_dtype dtypes[] = {FS_F32, FS_F64, FS_F16, FS_BF16};

/* The reference: one element after the other. */
static void sum_plainly(const view *P, int count, double beta, const fs_matrix *Y)
{
    for (int64_t i = 0; i < Y->rows; i++)
        for (int64_t j = 0; j < Y->cols; j++) {
            double sum = 0;
            for (int p = 0; p < count; p++) sum = p ? sum + at(&P[p].m, i, j) : at(&P[p].m, i, j);
            put(Y, i, j, beta == 0 ? sum : sum + beta * at(Y, i, j));
        }
}

static void try(fs_context *ctx, layout how, fs_dtype out, int count, int64_t rows, int64_t cols, double beta)
{
    char what[128];
    snprintf(what, sizeof what, "%s, %s, %d parts, %lld x %lld, beta %g", layout_names[how], fs_dtype_name(out), count,
             (long long)rows, (long long)cols, beta);
    view P[4], Y = view_make(how, rows, cols, out), want = view_make(how, rows, cols, out);
    fs_matrix parts[4];
    for (int p = 0; p < count; p++) {
        P[p] = view_make((layout)((how + p) % INPUT_LAYOUTS), rows, cols, dtypes[(p + (int)out) % 4]);
        fill_normal(&P[p].m, 10 + (uint64_t)p);
        parts[p] = P[p].m;
    }
    if (beta != 0) fill_normal(&Y.m, 99), fill_normal(&want.m, 99);
    view_seal(&Y);
    sum_plainly(P, count, beta, &want.m);
    MUST(fs_add(ctx, parts, count, beta, &Y.m));
    expect_equal(what, &Y.m, &want.m);
    expect_padding_untouched(what, &Y);
    for (int p = 0; p < count; p++) view_free(&P[p]);
    view_free(&Y), view_free(&want);
}

static void every_type_and_layout_is_summed_in_order(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads += 2) {
        fs_context *ctx = context_of("base", threads);
        for (int how = 0; how < OUTPUT_LAYOUTS; how++)
            for (int out = 0; out < 4; out++)
                for (int count = 0; count <= 4; count++)
                    try(ctx, (layout)how, dtypes[out], count, 13, 7, count % 2 ? 0 : -0.75);
        try(ctx, ROWS, FS_F32, 3, 70, 1030, 0); /* several runs of a line, several threads */
        try(ctx, COLUMNS, FS_F32, 3, 1030, 70, 1);
        fs_context_destroy(ctx);
    }
}

/* 2^24 and a hundred ones: f32 sums would stay at 2^24. */
static void sums_are_made_in_f64(void **state)
{
    (void)state;
    fs_context *ctx = context_of("base", 1);
    float big = 0x1p24f, one = 1, y = NAN;
    fs_matrix parts[101], Y = fs_row_major(&y, 1, 1, FS_F32);
    for (int p = 0; p < 101; p++) parts[p] = fs_row_major(p ? &one : &big, 1, 1, FS_F32);
    MUST(fs_add(ctx, parts, 101, 0.0, &Y));
    if (y != 0x1p24f + 100) fail_msg("2^24 + 100 is %.9g", (double)y);
    fs_context_destroy(ctx);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    fs_context *ctx = context_of("base", 1);
    float data[40] = {0};
    fs_matrix P = fs_row_major(data, 4, 5, FS_F32), Y = fs_row_major(data + 20, 4, 5, FS_F32);
    MUST(fs_add(ctx, &P, 1, 0.0, &Y));
    REFUSED(fs_add(NULL, &P, 1, 0.0, &Y), FS_EINVAL, "ctx is NULL");
    REFUSED(fs_add(ctx, NULL, 1, 0.0, &Y), FS_EINVAL, "P is NULL", "count is 1");
    REFUSED(fs_add(ctx, &P, -1, 0.0, &Y), FS_EINVAL, "count is -1");
    REFUSED(fs_add(ctx, &P, 1, 0.0, NULL), FS_EINVAL, "Y is NULL");
    Y.cols = 4;
    REFUSED(fs_add(ctx, &P, 1, 0.0, &Y), FS_EINVAL, "P[0] is 4 x 5", "Y is 4 x 4");
    Y = fs_row_major(data + 19, 4, 5, FS_F32);
    REFUSED(fs_add(ctx, &P, 1, 0.0, &Y), FS_EINVAL, "P[0] and Y overlap");
    Y = fs_row_major(data + 20, 4, 5, FS_F32), P.memory = FS_MEMORY_CUDA;
    REFUSED(fs_add(ctx, &P, 1, 0.0, &Y), FS_EUNSUPPORTED, "cuda memory");
    fs_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_layout_is_summed_in_order),
        cmocka_unit_test(sums_are_made_in_f64),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
