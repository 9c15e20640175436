/* products.c - the sketch of factored input is the sketch of the matrix of products, to the bit, for every family,
 * variant, type and layout; where panels of it are added, exactly on integers. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/support.h"

enum { FACTORS = 3 };

/* Three factors, each in a type and layout of its own, of `rows` rows together. */
typedef struct factors {
    view of[FACTORS];
    fs_matrix m[FACTORS];
    int64_t rows, tokens;
} factors;

static factors factors_make(int64_t n, int64_t tokens, int turn, int whole)
{
    static const int64_t heights[] = {5, 1, 19};
    static const fs_dtype types[] = {FS_F32, FS_F16, FS_BF16};
    factors F = {.rows = 0, .tokens = tokens};
    for (int f = 0; f < FACTORS; f++) {
        F.of[f] = view_make((layout)((turn + 3 * f) % OUTPUT_LAYOUTS), heights[f], n * tokens, types[(turn + f) % 3]);
        F.m[f] = F.of[f].m;
        if (whole) fill_whole(&F.m[f], 5 + f, 3);
        else fill_normal(&F.m[f], 5 + f);
        view_seal(&F.of[f]);
        F.rows += heights[f];
    }
    return F;
}
static void factors_free(factors *F)
{
    for (int f = 0; f < FACTORS; f++) {
        expect_untouched("a factor", &F->of[f]);
        view_free(&F->of[f]);
    }
}
static float factor_at(const factors *F, int64_t row, int64_t col)
{
    int f = 0;
    while (row >= F->m[f].rows) row -= F->m[f++].rows;
    return (float)at(&F->m[f], row, col);
}

/* Pairs of everything: every fifth has one row, the others any two, the same row twice among them. */
static fs_pairs pairs_make(int64_t count, int64_t rows)
{
    int32_t *index = room(2 * count + 1, sizeof *index);
    for (int64_t i = 0; i < count; i++) {
        index[2 * i] = (int32_t)(bits_at(3, 2 * i) % (uint64_t)rows);
        index[2 * i + 1] = i % 5 == 2 ? -1 : (int32_t)(bits_at(3, 2 * i + 1) % (uint64_t)rows);
    }
    const fs_pairs pairs = {count, index, FS_MEMORY_HOST};
    return pairs;
}

/* X by its definition. */
static view products_of(const factors *F, const fs_pairs *pairs, int64_t n)
{
    view X = view_make(ROWS, pairs->count, n, FS_F32);
    for (int64_t i = 0; i < pairs->count; i++)
        for (int64_t j = 0; j < n; j++) {
            float x = 0;
            for (int64_t t = 0; t < F->tokens; t++) {
                const int64_t col = j * F->tokens + t;
                const int32_t b = pairs->index[2 * i + 1];
                const float p = factor_at(F, pairs->index[2 * i], col), q = b < 0 ? 1.0f : factor_at(F, b, col);
                x = t == 0 ? p * q : fmaf(p, q, x);
            }
            put(&X.m, i, j, x);
        }
    return X;
}

static void same_as_the_matrix(const recipe *R, int64_t d, int64_t row0, int64_t count, int64_t n, int64_t tokens,
                               layout out, int turn, double beta)
{
    char what[300];
    const fs_spec spec = spec_at(R, d, R->k, 77);
    fs_sketch *S = sketch_of(&spec);
    factors F = factors_make(n, tokens, turn, 0);
    const fs_pairs pairs = pairs_make(count, F.rows);
    view X = products_of(&F, &pairs, n);
    for (int v = 0; v < context_count; v++) {
        view got = view_make(out, spec.k, n, FS_F32), want = view_make(out, spec.k, n, FS_F32);
        if (beta != 0) fill_whole(&got.m, 2, 8), fill_whole(&want.m, 2, 8);
        MUST(fs_apply(contexts[v].ctx, S, row0, 0.5, &X.m, beta, &want.m));
        MUST(fs_apply_products(contexts[v].ctx, S, row0, 0.5, F.m, FACTORS, tokens, &pairs, beta, &got.m));
        snprintf(what, sizeof what,
                 "%s, %s, d %" PRId64 ", %" PRId64 " pairs from %" PRId64 ", n %" PRId64 ", %" PRId64
                 " tokens, turn %d",
                 contexts[v].name, R->name, d, count, row0, n, tokens, turn);
        expect_same_bits(what, &got, &want);
        view_free(&got);
        view_free(&want);
    }
    free((void *)pairs.index);
    factors_free(&F);
    view_free(&X);
    fs_sketch_destroy(S);
}

static void products_are_sketched_like_the_matrix_of_them(void **state)
{
    static const int64_t tokens[] = {1, 2, 7}, columns[] = {1, 5, 37};
    int turn = 0;
    (void)state;
    for (int r = 0; r < recipe_count; r++)
        for (int t = 0; t < 3; t++, turn++) {
            const recipe *R = &recipes[r];
            if (turn % THIN) continue;
            same_as_the_matrix(R, R->d, 0, R->d, columns[turn / 3 % 3], tokens[t], (layout)(turn % OUTPUT_LAYOUTS),
                               turn, turn % 2 ? 0.0 : 1.0);
        }
}

static void pieces_of_a_list_take_their_own_columns(void **state)
{
    (void)state;
    for (int r = 0; r < recipe_count; r++) {
        same_as_the_matrix(&recipes[r], recipes[r].d, 3, recipes[r].d - 7, 20, 2, COLUMNS, r, 1.0);
        same_as_the_matrix(&recipes[r], recipes[r].d, 5, 0, 20, 1, COLUMNS, r, 0.5);
    }
}

/* More pairs, columns and tokens than one panel has: an exact sketch, integers, every panel's sum is exact. */
static void panels_add_up_to_the_whole(void **state)
{
    const recipe exact = {"exact", FS_BLOCKPERM, FS_SHUFFLE_ROWS, 2, 1, 4, 0, 0, 8, 1};
    const struct {
        int64_t count, n, tokens;
    } cases[] = {{132000, 129, 1}, {3000, 530, 2}, {5, 520, 1400}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const int64_t n = cases[c].n, half = cases[c].count / 2 + 1;
        const fs_spec spec = spec_at(&exact, cases[c].count, exact.k, 7);
        fs_sketch *S = sketch_of(&spec);
        factors F = factors_make(n, cases[c].tokens, (int)c, 1);
        const fs_pairs all = pairs_make(cases[c].count, F.rows), first = {half, all.index, FS_MEMORY_HOST};
        const fs_pairs second = {cases[c].count - half, all.index + 2 * half, FS_MEMORY_HOST};
        view X = products_of(&F, &all, n);
        view want = view_make(ROWS, spec.k, n, FS_F32), got = view_make(ROWS, spec.k, n, FS_F32);
        fs_context *ctx = contexts[context_count - 1].ctx;
        MUST(fs_apply(ctx, S, 0, 1.0, &X.m, 0.0, &want.m));
        MUST(fs_apply_products(ctx, S, 0, 1.0, F.m, FACTORS, F.tokens, &all, 0.0, &got.m));
        expect_equal("the whole", &got.m, &want.m);
        MUST(fs_apply_products(ctx, S, 0, 1.0, F.m, FACTORS, F.tokens, &first, 0.0, &got.m));
        MUST(fs_apply_products(ctx, S, half, 1.0, F.m, FACTORS, F.tokens, &second, 1.0, &got.m));
        expect_equal("two pieces", &got.m, &want.m);
        free((void *)all.index);
        factors_free(&F);
        view_free(&X);
        view_free(&want);
        view_free(&got);
        fs_sketch_destroy(S);
    }
}

/* A factor's NaN is in the products of its row; those reach the rows of Y where their columns of S are not zero. */
static void a_nan_reaches_only_what_its_products_reach(void **state)
{
    enum { D = 60, K = 24, N = 19, BAD_ROW = 7, BAD_COLUMN = 11 };
    (void)state;
    for (int r = 0; r < recipe_count; r++) {
        const fs_spec spec = spec_at(&recipes[r], D, K, 3);
        fs_sketch *S = sketch_of(&spec);
        factors F = factors_make(N, 2, r, 0);
        put(&F.m[2], BAD_ROW - 6, 2 * BAD_COLUMN + 1, NAN);
        view_seal(&F.of[2]);
        fs_pairs pairs = pairs_make(D, F.rows);
        int32_t *index = (int32_t *)pairs.index;
        for (int i = 0; i < 2 * D; i++) index[i] = index[i] == BAD_ROW ? BAD_ROW + 1 : index[i];
        index[2 * 9 + 1] = BAD_ROW;
        index[2 * 31] = BAD_ROW;
        double *T = columns_of(S, 0, D);
        for (int v = 0; v < context_count; v++) {
            view Y = view_make(ROWS, spec.k, N, FS_F32);
            MUST(fs_apply_products(contexts[v].ctx, S, 0, 1.0, F.m, FACTORS, 2, &pairs, 0.0, &Y.m));
            for (int64_t i = 0; i < spec.k; i++)
                for (int64_t j = 0; j < N; j++) {
                    const int want = j == BAD_COLUMN && (T[i * D + 9] != 0 || T[i * D + 31] != 0);
                    if (isnan(at(&Y.m, i, j)) != want)
                        fail_msg("%s, %s: Y(%d, %d) is %g", contexts[v].name, recipes[r].name, (int)i, (int)j,
                                 at(&Y.m, i, j));
                }
            view_free(&Y);
        }
        free(T);
        free(index);
        factors_free(&F);
        fs_sketch_destroy(S);
    }
}

static void wrong_arguments_are_refused_and_y_is_left_alone(void **state)
{
    (void)state;
    const fs_spec spec = spec_at(&recipes[0], 40, 16, 1);
    fs_sketch *S = sketch_of(&spec);
    fs_context *ctx = contexts[0].ctx;
    factors F = factors_make(4, 2, 0, 1);
    fs_pairs pairs = pairs_make(40, F.rows);
    int32_t *index = (int32_t *)pairs.index;
    view Y = view_make(ROWS, 16, 4, FS_F32);
    fill_whole(&Y.m, 2, 9);
    view_seal(&Y);
#define CALL() fs_apply_products(ctx, S, 0, 1, F.m, FACTORS, 2, &pairs, 0, &Y.m)
    index[14] = 25;
    REFUSED(CALL(), FS_EINVAL, "pair 7 is (25, ", "25 rows");
    index[14] = -1;
    REFUSED(CALL(), FS_EINVAL, "pair 7 is (-1, ");
    index[14] = 3;
    index[15] = -2;
    REFUSED(CALL(), FS_EINVAL, "pair 7 is (3, -2)");
    index[15] = 25;
    REFUSED(CALL(), FS_EINVAL, "pair 7 is (3, 25)", "25 rows");
    index[15] = -1;
    pairs.count = -1;
    REFUSED(CALL(), FS_EINVAL, "pairs.count is -1");
    pairs.count = 40;
    pairs.index = NULL;
    REFUSED(CALL(), FS_EINVAL, "pairs.index is NULL");
    pairs.index = (const int32_t *)((const char *)index + 2);
    REFUSED(CALL(), FS_EINVAL, "aligned");
    pairs.index = Y.m.data;
    REFUSED(CALL(), FS_EINVAL, "pairs.index and Y overlap");
    pairs.index = index;
    pairs.memory = (fs_memory)7;
    REFUSED(CALL(), FS_EINVAL, "pairs.memory 7");
    pairs.memory = FS_MEMORY_CUDA;
    REFUSED(CALL(), FS_EUNSUPPORTED, "pairs is in cuda memory");
    pairs.memory = FS_MEMORY_HOST;
    REFUSED(fs_apply_products(ctx, S, 1, 1, F.m, FACTORS, 2, &pairs, 0, &Y.m), FS_EINVAL, "1 + 40", "d = 40");
    REFUSED(fs_apply_products(ctx, S, 0, 1, F.m, FACTORS, 0, &pairs, 0, &Y.m), FS_EINVAL, "tokens is 0");
    REFUSED(fs_apply_products(ctx, S, 0, 1, F.m, FACTORS, 1, &pairs, 0, &Y.m), FS_EINVAL, "factors[0] has 8 columns",
            "1 tokens of 4");
    REFUSED(fs_apply_products(ctx, S, 0, 1, F.m, 0, 2, &pairs, 0, &Y.m), FS_EINVAL, "factor_count is 0");
    REFUSED(fs_apply_products(ctx, S, 0, 1, NULL, 3, 2, &pairs, 0, &Y.m), FS_EINVAL, "factors is NULL");
    REFUSED(fs_apply_products(ctx, S, 0, 1, F.m, 3, 2, NULL, 0, &Y.m), FS_EINVAL, "pairs is NULL");
    REFUSED(fs_apply_products(NULL, S, 0, 1, F.m, 3, 2, &pairs, 0, &Y.m), FS_EINVAL, "ctx is NULL");
    REFUSED(fs_apply_products(ctx, NULL, 0, 1, F.m, 3, 2, &pairs, 0, &Y.m), FS_EINVAL, "S is NULL");
    F.m[1].memory = FS_MEMORY_CUDA;
    REFUSED(CALL(), FS_EUNSUPPORTED, "factors[1] is in cuda memory");
    F.m[1] = F.of[1].m;
    F.m[2] = fs_row_major(Y.m.data, 2, 8, FS_F32);
    REFUSED(CALL(), FS_EINVAL, "factors[2] and Y overlap");
    double wide[2 * 8] = {0};
    F.m[2] = fs_row_major(wide, 2, 8, FS_F64);
    REFUSED(CALL(), FS_EINVAL, "factors[2] is f64");
    F.m[2] = F.of[2].m;
    fs_matrix half = Y.m;
    half.dtype = FS_F16;
    REFUSED(fs_apply_products(ctx, S, 0, 1, F.m, 3, 2, &pairs, 0, &half), FS_EINVAL, "Y is f16");
    expect_untouched("Y", &Y);

    fs_context_options options = FS_CONTEXT_INIT; /* the tests' plugin, a backend without this operation */
    options.backend = FS_BACKEND_CUDA;
    MUST(fs_context_create(&ctx, &options));
    REFUSED(CALL(), FS_EUNSUPPORTED, "cannot sketch factored input");
#undef CALL
    fs_context_destroy(ctx);
    free(index);
    factors_free(&F);
    view_free(&Y);
    fs_sketch_destroy(S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_sketched_like_the_matrix_of_them),
        cmocka_unit_test(pieces_of_a_list_take_their_own_columns),
        cmocka_unit_test(panels_add_up_to_the_whole),
        cmocka_unit_test(a_nan_reaches_only_what_its_products_reach),
        cmocka_unit_test(wrong_arguments_are_refused_and_y_is_left_alone),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
