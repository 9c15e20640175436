/* algebra.c - relations between products on the device: S' is the transpose of S, row slices sum to the whole, an
 * empty slice adds nothing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "call.h"

enum { N = 5 };

/* The sum of the products of two views' elements, and of their absolute values. */
static double inner(const fs_matrix *a, const fs_matrix *b, double *size)
{
    double sum = 0.0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            sum += at(a, i, j) * at(b, i, j);
            *size += fabs(at(a, i, j) * at(b, i, j));
        }
    return sum;
}

/* In f64 with integers up to 100, in f32 with integers up to 8: both sides are exact. */
static void check_transpose(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const recipe *R = &recipes[number % recipe_count];
    const int64_t variant = number / recipe_count;
    const fs_dtype type = variant % 2 ? FS_F32 : FS_F64;
    const int64_t limit = variant % 2 ? 8 : 100;
    call c = {.in = type, .out = type, .alpha = 1, .rows = R->d, .n = N};
    c.from = variant / 2 % 2 ? COLUMNS_PADDED : ROWS_PADDED;
    c.to = variant / 4 % 2 ? COLUMNS : ROWS;
    c.spec = spec_at(R, R->d, R->k, 5 + (uint64_t)variant);
    view x = view_make(c.from, c.rows, N, type), y = view_make(c.from, c.spec.k, N, type);
    fill_whole(&x.m, 6, limit);
    fill_whole(&y.m, 7, limit);
    call_name(&c, R->name);
    view Sx = call_on_device(l, &c, l->gpu, &x);
    c.adjoint = 1;
    call_name(&c, R->name);
    view Sty = call_on_device(l, &c, l->gpu, &y);
    double size = 0.0;
    const double left = inner(&Sx.m, &y.m, &size), right = inner(&x.m, &Sty.m, &size);
    /* Generous: sums of k d terms, each of which is itself a sum. */
    const double slack = R->exact ? 0.0 : 100 * slack_of(type, c.spec.k + c.rows, size);
    if (!(fabs(left - right) <= slack))
        fail_msg("%s: <S x, y> = %.17g, <x, S' y> = %.17g, allowed %.3g", c.name, left, right, slack);
    view_free(&x), view_free(&y), view_free(&Sx), view_free(&Sty);
}
static void the_adjoint_is_the_transpose(void **state)
{
    (void)state;
    for_each_case(8 * recipe_count, 8 * recipe_count, check_transpose, NULL);
}

/* The slices are passed last first, one of them empty, each added with beta = 1 in Y's own type: integers up to 1
 * keep every partial sum exact even in bf16, which has 8 bits. */
static void check_pieces(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const recipe *R = &recipes[number % recipe_count];
    const int64_t variant = number / recipe_count, d = R->d, cuts[] = {0, 1, 32, d / 3, d / 3, d / 2 + 1, d - 1, d};
    if (!R->exact) return;
    const fs_dtype type = (fs_dtype)(1 + variant % 4);
    const layout how = variant / 4 ? COLUMNS_PADDED : ROWS_PADDED;
    const fs_spec spec = spec_at(R, d, R->k, 5);
    char name[160];
    snprintf(name, sizeof name, "%s in pieces, %s, %s", R->name, fs_dtype_name(type), layout_names[how]);
    fs_sketch *S = sketch_of(&spec);
    view A = view_make(how, d, N, type), whole = view_make(how, spec.k, N, type), sum = view_make(how, spec.k, N, type);
    fill_whole(&A.m, 3, 1);
    mirror from = mirror_make(l, &A), to = mirror_make(l, &sum);
    for (int p = 6; p >= 0; p--) {
        fs_matrix piece = from.m;
        piece.offset += cuts[p] * piece.row_stride;
        piece.rows = cuts[p + 1] - cuts[p];
        MUST(fs_apply(l->gpu, S, cuts[p], 1.0, &piece, p == 6 ? 0.0 : 1.0, &to.m));
    }
    stream_wait(l->stream);
    mirror_fetch(l, name, &to, &sum);
    MUST(fs_apply(l->ref, S, 0, 1.0, &A.m, 0.0, &whole.m));
    expect_equal(name, &sum.m, &whole.m);
    mirror_free(l, &from), mirror_free(l, &to);
    view_free(&A), view_free(&whole), view_free(&sum);
    fs_sketch_destroy(S);
}
static void pieces_with_row0_sum_to_the_whole(void **state)
{
    (void)state;
    for_each_case(8 * recipe_count, 8 * recipe_count, check_pieces, NULL);
}

/* S of no rows is 0: Y = beta Y, and 0 where Y was NaN and beta is 0.  No columns: nothing to do. */
static void check_empty(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const recipe *R = &recipes[number % recipe_count];
    const int64_t variant = number / recipe_count;
    call c = {.in = FS_F32, .out = FS_F32, .alpha = 1, .beta = variant & 1 ? 2 : 0, .row0 = R->d / 2};
    c.from = c.to = variant & 2 ? COLUMNS : ROWS;
    c.n = variant & 4 ? 0 : N;
    c.rows = variant & 4 ? 10 : 0;
    c.adjoint = variant >> 3 & 1;
    c.spec = spec_at(R, R->d, R->k, 5);
    call_name(&c, R->name);
    call_check(l, &c);
}
static void an_empty_matrix_adds_nothing(void **state)
{
    (void)state;
    for_each_case(16 * recipe_count, 16 * recipe_count, check_empty, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_adjoint_is_the_transpose),
        cmocka_unit_test(pieces_with_row0_sum_to_the_whole),
        cmocka_unit_test(an_empty_matrix_adds_nothing),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
