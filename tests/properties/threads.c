/* threads.c - the same bits for any number of threads, from run to run, and whatever a context did before.
 *
 * Data are normal, so that any other order of a sum shows in its last bits. */
#include <inttypes.h>
#include <stdio.h>

#include "tests/support/support.h"

typedef enum verb { APPLY, ADJOINT, BY_ROWS, BY_COLUMNS, VERBS } verb;
static const char *const verb_names[] = {"apply", "adjoint", "CSR", "CSC"};

/* What one call gives; Y was NaN. */
static view result(fs_context *ctx, const fs_sketch *S, verb how, const view *A, const fs_sparse *sparse, layout lay,
                   int64_t rows)
{
    view Y = view_make(lay, rows, A->m.cols, fsi_dtype_sum(A->m.dtype));
    if (how == APPLY) MUST(fs_apply(ctx, S, 0, 1.25, &A->m, 0.0, &Y.m));
    else if (how == ADJOINT) MUST(fs_apply_adjoint(ctx, S, 0, 1.25, &A->m, 0.0, &Y.m));
    else MUST(fs_apply_sparse(ctx, S, 0, 1.25, sparse, 0.0, &Y.m));
    return Y;
}

/* The first context has one thread and is fresh, the others have these many and have seen all earlier cases. */
static const int threads[] = {1, 2, 3, 5, 8};
enum { COUNTS = sizeof threads / sizeof threads[0] };

static void same_bits(const char *variant, fs_context *const used[COUNTS], const recipe *R, verb how, layout lay,
                      fs_dtype type, int64_t d, int64_t n)
{
    const fs_spec spec = spec_at(R, d, 130, 3);
    const int64_t from = how == ADJOINT ? spec.k : d, to = how == ADJOINT ? d : spec.k;
    fs_sketch *S = sketch_of(&spec);
    view A = view_make(lay, from, n, type);
    fill_normal(&A.m, 4);
    for (int64_t e = 0; how >= BY_ROWS && e < from * n; e++)
        if (e % 16) put(&A.m, e / n, e % n, 0.0);
    fs_sparse sparse = sparse_of(&A.m, 5, how == BY_COLUMNS ? FS_CSC : FS_CSR, FS_INDEX64);
    fs_context *fresh = context_of(variant, 1);
    view first = result(fresh, S, how, &A, &sparse, lay, to);
    for (int i = 0; i < COUNTS; i++) {
        char what[200];
        snprintf(what, sizeof what, "%s, %d threads: %s, %s, %s %s, d %" PRId64 ", n %" PRId64, variant, threads[i],
                 R->name, verb_names[how], layout_names[lay], fs_dtype_name(type), d, n);
        view again = result(used[i], S, how, &A, &sparse, lay, to);
        expect_same_bits(what, &again, &first);
        view_free(&again);
    }
    fs_context_destroy(fresh);
    view_free(&A), view_free(&first);
    sparse_free(&sparse);
    fs_sketch_destroy(S);
}

static void threads_reruns_and_used_contexts_change_no_bit(void **state)
{
    (void)state;
    static const layout layouts[] = {ROWS, COLUMNS, ROWS_SPREAD};
    static const struct {
        int64_t d, n;
    } shapes[] = {{4999, 3}, {400, 140}, {150, 20}};
    for (int v = 1; v < context_count; v++) {
        fs_context *used[COUNTS];
        for (int i = 0; i < COUNTS; i++) used[i] = context_of(contexts[v].name, threads[i]);
        for (int r = 0; r < recipe_count; r++)
            for (int number = (r + v) % THIN; number < 3 * 3 * VERBS; number += THIN) {
                const verb how = (verb)(number % VERBS);
                const int shape = number / VERBS / 3;
                /* Sparse products by the other families go through all of S, row by row of A. */
                if (recipes[r].family > FS_SJLT && how >= BY_ROWS && shape != 2) continue;
                same_bits(contexts[v].name, used, &recipes[r], how, layouts[number / VERBS % 3],
                          (fs_dtype)(1 + bits_at(6, r * 100 + number) % 4), shapes[shape].d, shapes[shape].n);
            }
        for (int i = 0; i < COUNTS; i++) fs_context_destroy(used[i]);
    }
}

/* Many rows of A for few rows of Y are cut into pieces, whose sums are added. */
static void pieces_of_the_rows_change_no_bit(void **state)
{
    (void)state;
    for (int v = 1; v < context_count; v++) {
        fs_context *used[COUNTS];
        for (int i = 0; i < COUNTS; i++) used[i] = context_of(contexts[v].name, threads[i]);
        for (int r = 0; r < recipe_count; r++)
            if (recipes[r].family <= FS_SJLT && (r + v) % 3 == 0) {
                same_bits(contexts[v].name, used, &recipes[r], APPLY, r % 2 ? COLUMNS : ROWS, FS_F32, 9000, 70);
                same_bits(contexts[v].name, used, &recipes[r], APPLY, r % 2 ? ROWS : COLUMNS, FS_F64, 9000, 1 + r % 3);
            }
        for (int i = 0; i < COUNTS; i++) fs_context_destroy(used[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_reruns_and_used_contexts_change_no_bit),
                                       cmocka_unit_test(pieces_of_the_rows_change_no_bit)};
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
