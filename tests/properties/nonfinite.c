/* nonfinite.c - one Inf or NaN in A reaches exactly the rows of Y where its column of S is stored, and nothing else. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/support.h"

enum { N = 19, D = 333, K = 65 };

/* hit[i]: whether row i of column j of S is stored; of row j when `adjoint`. */
static void stored(const fs_sketch *S, const fs_spec *spec, int64_t j, int adjoint, char *hit)
{
    fs_sparse c = export_columns(S, 0, spec->d, FS_INDEX64, FS_F64);
    const int64_t *ptr = c.ptr, *index = c.index;
    for (int64_t i = 0; i < (adjoint ? spec->d : spec->k); i++) hit[i] = 0;
    for (int64_t i = 0; i < spec->k; i++)
        for (int64_t e = ptr[i]; e < ptr[i + 1]; e++) {
            if (!adjoint && index[e] == j) hit[i] = 1;
            if (adjoint && i == j) hit[index[e]] = 1;
        }
    sparse_free(&c);
}

typedef enum verb { APPLY, ADJOINT, SPARSE, VERBS } verb;
static void multiply(verb how, fs_context *ctx, const fs_sketch *S, const fs_matrix *A, fs_matrix *Y)
{
    if (how == APPLY) MUST(fs_apply(ctx, S, 0, 1.0, A, 0.0, Y));
    else if (how == ADJOINT) MUST(fs_apply_adjoint(ctx, S, 0, 1.0, A, 0.0, Y));
    else {
        fs_sparse sparse = sparse_of(A, 1, FS_CSR, FS_INDEX32);
        MUST(fs_apply_sparse(ctx, S, 0, 1.0, &sparse, 0.0, Y));
        sparse_free(&sparse);
    }
}

static void try_case(const char *name, const fs_sketch *S, const fs_spec *spec, fs_context *ctx, verb how, layout lay,
                     fs_dtype type, uint64_t draw)
{
    const int64_t from = how == ADJOINT ? spec->k : spec->d, to = how == ADJOINT ? spec->d : spec->k;
    const int64_t row = (int64_t)(draw % (uint64_t)from), col = (int64_t)(draw >> 32) % N;
    const double poison = draw >> 40 & 1 ? (draw >> 41 & 1 ? INFINITY : -INFINITY) : NAN;
    view A = view_make(lay, from, N, type), clean = view_make(lay, to, N, fsi_dtype_sum(type));
    view Y = view_make(lay, to, N, fsi_dtype_sum(type));
    char *hit = room(to, 1);
    stored(S, spec, row, how == ADJOINT, hit);
    fill_whole(&A.m, 8, 8);
    put(&A.m, row, col, 5.0);
    multiply(how, ctx, S, &A.m, &clean.m);
    put(&A.m, row, col, poison);
    multiply(how, ctx, S, &A.m, &Y.m);
    for (int64_t i = 0; i < to; i++)
        for (int64_t j = 0; j < N; j++) {
            const double y = at(&Y.m, i, j), good = at(&clean.m, i, j);
            if (j == col && hit[i] ? isfinite(y) : y != good)
                fail_msg("%s: %g at %" PRId64 ", %" PRId64 " makes %" PRId64 ", %" PRId64 " %g, not %g", name, poison,
                         row, col, i, j, y, good);
        }
    free(hit);
    view_free(&A), view_free(&clean), view_free(&Y);
}

static void a_non_finite_element_reaches_its_rows_and_no_others(void **state)
{
    (void)state;
    static const layout layouts[] = {ROWS, COLUMNS, ROWS_SPREAD};
    for (int r = 0; r < recipe_count; r++) {
        const fs_spec spec = spec_at(&recipes[r], D, K, 13);
        fs_sketch *S = sketch_of(&spec);
        for (int v = 0; v < context_count; v++)
            for (int number = (r + v) % THIN; number < 36; number += THIN) {
                char name[160];
                const verb how = (verb)(number % VERBS);
                const fs_dtype type = (fs_dtype)(1 + number / 9);
                const layout lay = layouts[number / VERBS % 3];
                snprintf(name, sizeof name, "%s: %s, verb %d, %s, %s", contexts[v].name, recipes[r].name, (int)how,
                         layout_names[lay], fs_dtype_name(type));
                try_case(name, S, &spec, contexts[v].ctx, how, lay, type, bits_at(3, r * 64 + number));
            }
        fs_sketch_destroy(S);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_non_finite_element_reaches_its_rows_and_no_others)};
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
