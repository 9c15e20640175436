/* algebra.c - apply multiplies by S and adjoint by its transpose: columns, linearity, row slices, inner products.
 *
 * Data are integers.  Where all weights of S are powers of two every step is exact and the properties hold with
 * ==; elsewhere within the bound of slack_of. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/support.h"

enum { N = 5 };

/* Runs property(name of the case, recipe, S, its spec, context) for every recipe at its own size and every variant. */
typedef void property_function(const char *name, const recipe *R, const fs_sketch *S, const fs_spec *spec,
                               fs_context *ctx);
static void for_all(property_function *property)
{
    for (int r = 0; r < recipe_count; r++) {
        const fs_spec spec = spec_at(&recipes[r], recipes[r].d, recipes[r].k, 5);
        fs_sketch *S = sketch_of(&spec);
        for (int v = 0; v < context_count; v++) {
            char name[160];
            snprintf(name, sizeof name, "%s, %s", recipes[r].name, contexts[v].name);
            property(name, &recipes[r], S, &spec, contexts[v].ctx);
        }
        fs_sketch_destroy(S);
    }
}

/* Sums of one term: exact but for FlashBlockRow, which may draw a column several times, and the Gaussian, whose weight
 * is a product of z and the scale. */
static double single_slack(fs_family family, fs_dtype type, double value)
{
    return family == FS_BLOCKROW || family == FS_GAUSSIAN ? slack_of(type, 4, fabs(value)) : 0.0;
}

/* S I == S and S' I == S', in every type and in row- and column-major layout. */
static void identity_gives_S(const char *name, const fs_sketch *S, const fs_spec *spec, fs_context *ctx, fs_dtype type,
                             layout how, int adjoint)
{
    const int64_t from = adjoint ? spec->k : spec->d, to = adjoint ? spec->d : spec->k;
    const fs_dtype sum = fsi_dtype_sum(type);
    double *dense = columns_of(S, 0, spec->d), *want = room(to * from, 8), *slack = room(to * from, 8);
    view I = view_make(how, from, from, type), P = view_make(how, to, from, sum);
    for (int64_t i = 0; i < from; i++)
        for (int64_t j = 0; j < from; j++) put(&I.m, i, j, i == j);
    for (int64_t e = 0; e < to * from; e++) {
        const double value = adjoint ? dense[e % from * to + e / from] : dense[e];
        want[e] = sum == FS_F32 ? (float)value : value;
        slack[e] = single_slack(spec->family, type, want[e]);
    }
    MUST(adjoint ? fs_apply_adjoint(ctx, S, 0, 1.0, &I.m, 0.0, &P.m) : fs_apply(ctx, S, 0, 1.0, &I.m, 0.0, &P.m));
    char what[256];
    snprintf(what, sizeof what, "%s, %s, %s, %s", name, adjoint ? "S' I" : "S I", fs_dtype_name(type),
             layout_names[how]);
    expect_close(what, &P.m, want, slack);
    view_free(&I);
    view_free(&P);
    free(dense);
    free(want);
    free(slack);
}
static void apply_gives_columns_and_adjoint_gives_rows(void **state)
{
    (void)state;
    int number = 0;
    for (int r = 0; r < recipe_count; r++) {
        const fs_spec spec = spec_at(&recipes[r], 161, 70, 5);
        fs_sketch *S = sketch_of(&spec);
        for (int v = 0; v < context_count; v++)
            for (int c = 0; c < 16; c++) {
                char name[160];
                if (number++ % THIN) continue;
                snprintf(name, sizeof name, "%s, %s", recipes[r].name, contexts[v].name);
                identity_gives_S(name, S, &spec, contexts[v].ctx, (fs_dtype)(1 + c % 4), c & 4 ? COLUMNS : ROWS, c & 8);
            }
        fs_sketch_destroy(S);
    }
}

/* S (3 X - 5 Z) against 3 S X - 5 S Z, made by two calls with alpha and beta, and by adding whole products. */
static void linear(const char *name, const recipe *R, const fs_sketch *S, const fs_spec *spec, fs_context *ctx)
{
    double *T = columns_of(S, 0, spec->d), *unused = room(spec->k * N, 8), *size = room(spec->k * N, 8);
    double *want = room(spec->k * N, 8);
    for (int t = 0; t < 2; t++) {
        const fs_dtype type = t ? FS_F64 : FS_F32;
        view X = view_make(ROWS, spec->d, N, type), Z = view_make(COLUMNS, spec->d, N, type);
        view U = view_make(ROWS, spec->d, N, type), SX = view_make(ROWS, spec->k, N, type);
        view SZ = view_make(COLUMNS, spec->k, N, type), SU = view_make(ROWS, spec->k, N, type);
        fill_whole(&X.m, 1, 8);
        fill_whole(&Z.m, 2, 8);
        for (int64_t i = 0; i < spec->d; i++)
            for (int64_t j = 0; j < N; j++) put(&U.m, i, j, 3 * at(&X.m, i, j) - 5 * at(&Z.m, i, j));
        MUST(fs_apply(ctx, S, 0, 1.0, &X.m, 0.0, &SX.m));
        MUST(fs_apply(ctx, S, 0, 1.0, &Z.m, 0.0, &SZ.m));
        MUST(fs_apply(ctx, S, 0, 1.0, &U.m, 0.0, &SU.m));
        /* |3 X - 5 Z| is 64 at most; a matrix of 64s bounds every sum of absolute values below. */
        for (int64_t i = 0; i < spec->d; i++)
            for (int64_t j = 0; j < N; j++) put(&U.m, i, j, 64.0);
        product(T, spec->k, spec->d, 0, &U.m, unused, size);
        for (int64_t e = 0; e < spec->k * N; e++) {
            want[e] = 3 * at(&SX.m, e / N, e % N) - 5 * at(&SZ.m, e / N, e % N);
            size[e] = R->exact ? 0.0 : 2 * slack_of(type, spec->d, size[e]);
        }
        expect_close(name, &SU.m, want, size);
        MUST(fs_apply(ctx, S, 0, -5.0, &Z.m, 3.0, &SX.m));
        expect_close(name, &SX.m, want, size);
        view_free(&X), view_free(&Z), view_free(&U), view_free(&SX), view_free(&SZ), view_free(&SU);
    }
    free(T), free(unused), free(size), free(want);
}
static void apply_is_linear(void **state)
{
    (void)state;
    for_all(linear);
}

/* Rows row0 ... row0 + rows - 1 of a view. */
static fs_matrix rows_of(const view *v, int64_t row0, int64_t rows)
{
    fs_matrix m = v->m;
    m.offset += row0 * m.row_stride;
    m.rows = rows;
    return m;
}

/* The slices are passed last first, one of them empty, each added with beta = 1 in Y's own type: integers up to 1
 * keep every partial sum exact even in bf16, which has 8 bits. */
static void in_pieces(const char *name, const recipe *R, const fs_sketch *S, const fs_spec *spec, fs_context *ctx)
{
    const int64_t d = spec->d, cuts[] = {0, 1, 32, d / 3, d / 3, d / 2 + 1, d - 1, d};
    double *T = columns_of(S, 0, d), *want = room(spec->k * N, 8), *slack = room(spec->k * N, 8);
    for (int c = 0; c < 8; c++) {
        const fs_dtype type = (fs_dtype)(1 + c % 4);
        const layout how = c & 4 ? COLUMNS_PADDED : ROWS_PADDED;
        view A = view_make(how, d, N, type), whole = view_make(how, spec->k, N, type);
        view sum = view_make(how, spec->k, N, type);
        fill_whole(&A.m, 3, 1);
        MUST(fs_apply(ctx, S, 0, 1.0, &A.m, 0.0, &whole.m));
        for (int p = 6; p >= 0; p--) {
            const fs_matrix piece = rows_of(&A, cuts[p], cuts[p + 1] - cuts[p]);
            MUST(fs_apply(ctx, S, cuts[p], 1.0, &piece, p == 6 ? 0.0 : 1.0, &sum.m));
        }
        product(T, spec->k, d, 0, &A.m, want, slack);
        for (int64_t e = 0; e < spec->k * N; e++) {
            const double own = type == FS_BF16 ? 0x1p-8 : type == FS_F16 ? 0x1p-11 : 0.0;
            want[e] = at(&whole.m, e / N, e % N);
            slack[e] = R->exact ? 0.0 : 2 * slack_of(type, d, slack[e]) + 8 * own * slack[e];
        }
        expect_close(name, &sum.m, want, slack);
        view_free(&A), view_free(&whole), view_free(&sum);
    }
    free(T), free(want), free(slack);
}
static void pieces_with_row0_sum_to_the_whole(void **state)
{
    (void)state;
    for_all(in_pieces);
}

/* S of no rows is 0: Y = beta Y.  No columns: no work, whatever the strides are. */
static void empty(const char *name, const recipe *R, const fs_sketch *S, const fs_spec *spec, fs_context *ctx)
{
    (void)R;
    for (layout how = ROWS; how <= COLUMNS; how++) {
        view none = view_make(how, 0, N, FS_F32), Y = view_make(how, spec->k, N, FS_F32);
        view twice = view_make(how, spec->k, N, FS_F32);
        MUST(fs_apply(ctx, S, spec->d / 2, 1.0, &none.m, 0.0, &Y.m));
        for (int64_t e = 0; e < spec->k * N; e++) assert_true(at(&Y.m, e / N, e % N) == 0.0);
        fill_whole(&Y.m, 4, 9);
        for (int64_t e = 0; e < spec->k * N; e++) put(&twice.m, e / N, e % N, 2 * at(&Y.m, e / N, e % N));
        MUST(fs_apply(ctx, S, spec->d, 1.0, &none.m, 2.0, &Y.m));
        expect_equal(name, &Y.m, &twice.m);
        MUST(fs_apply_adjoint(ctx, S, spec->d, 1.0, &Y.m, 0.0, &none.m));
        view_free(&none), view_free(&Y), view_free(&twice);

        view A = view_make(how, spec->d, 0, FS_F32), nothing = view_make(how, spec->k, 0, FS_F32);
        MUST(fs_apply(ctx, S, 0, 1.0, &A.m, 0.0, &nothing.m));
        MUST(fs_apply_adjoint(ctx, S, 0, 1.0, &nothing.m, 1.0, &A.m));
        view_free(&A), view_free(&nothing);
    }
}
static void an_empty_piece_adds_nothing(void **state)
{
    (void)state;
    for_all(empty);
}

/* The sum of the products of two views' elements, and of their absolute values. */
static double inner(const fs_matrix *a, const fs_matrix *b, double *size)
{
    double sum = 0.0;
    *size = 0.0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            sum += at(a, i, j) * at(b, i, j);
            *size += fabs(at(a, i, j) * at(b, i, j));
        }
    return sum;
}
static void inner_products(const char *name, const recipe *R, const fs_sketch *S, const fs_spec *spec, fs_context *ctx)
{
    const int64_t row0 = spec->d / 3, rows = spec->d / 2 + 1;
    view x = view_make(ROWS, spec->d, N, FS_F64), Sx = view_make(COLUMNS, spec->k, N, FS_F64);
    view y = view_make(ROWS_PADDED, spec->k, N, FS_F64), Sty = view_make(COLUMNS_PADDED, spec->d, N, FS_F64);
    view part = view_make(ROWS_PADDED, rows, N, FS_F64), slice = view_make(ROWS, rows, N, FS_F64);
    double left_size, right_size;
    fill_whole(&x.m, 6, 100);
    fill_whole(&y.m, 7, 100);
    MUST(fs_apply(ctx, S, 0, 1.0, &x.m, 0.0, &Sx.m));
    MUST(fs_apply_adjoint(ctx, S, 0, 1.0, &y.m, 0.0, &Sty.m));
    const double left = inner(&Sx.m, &y.m, &left_size), right = inner(&x.m, &Sty.m, &right_size);
    /* The bound's constant is generous: sums of k d terms, each of which is itself a sum. */
    const double slack = R->exact ? 0.0 : 100 * slack_of(FS_F64, spec->k + spec->d, left_size + right_size);
    if (!(fabs(left - right) <= slack))
        fail_msg("%s: <S x, y> = %.17g, <x, S' y> = %.17g, allowed %.3g", name, left, right, slack);

    fill_whole(&part.m, 8, 100);
    for (int64_t e = 0; e < rows * N; e++)
        put(&slice.m, e / N, e % N, 2 * at(&Sty.m, row0 + e / N, e % N) - at(&part.m, e / N, e % N));
    MUST(fs_apply_adjoint(ctx, S, row0, 2.0, &y.m, -1.0, &part.m));
    if (R->exact) expect_equal(name, &part.m, &slice.m);
    for (int64_t e = 0; e < rows * N; e++) {
        const double a = at(&part.m, e / N, e % N), b = at(&slice.m, e / N, e % N);
        /* |S| <= 6 entry by entry and |y| <= 100. */
        if (!(fabs(a - b) <= slack_of(FS_F64, spec->k, 4 * 600.0 * (double)spec->k)))
            fail_msg("%s: row %" PRId64 " of S' y is %.17g in a range, %.17g in the whole", name, row0 + e / N, a, b);
    }
    view_free(&x), view_free(&Sx), view_free(&y), view_free(&Sty), view_free(&part), view_free(&slice);
}
static void adjoint_is_the_transpose_and_its_ranges_are_slices(void **state)
{
    (void)state;
    for_all(inner_products);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(apply_gives_columns_and_adjoint_gives_rows),
        cmocka_unit_test(apply_is_linear),
        cmocka_unit_test(pieces_with_row0_sum_to_the_whole),
        cmocka_unit_test(an_empty_piece_adds_nothing),
        cmocka_unit_test(adjoint_is_the_transpose_and_its_ranges_are_slices),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
