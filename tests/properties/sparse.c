/* sparse.c - a sparse A and the dense matrix it stands for give the same Y. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/support.h"

/* Three quarters of the entries, the whole first row, and every fifth row are 0. */
static void fill_sparse(const fs_matrix *m, uint64_t seed)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) {
            const int zero = i % 5 == 0 || bits_at(seed, i * m->cols + j) % 4 != 0;
            put(m, i, j, zero ? 0.0 : whole_at(seed + 1, i * m->cols + j, 8));
        }
}

typedef struct sparse_case {
    fs_sparse_format format;
    fs_index_type index;
    fs_dtype in, out;
    layout to;
    int64_t row0, rows, n;
    double alpha, beta;
} sparse_case;

/* The reference's dense product, or a sum in double for the Gaussian, whose products with integers are not exact.
 * */
static void try_case(const recipe *R, const sparse_case *c)
{
    const fs_spec spec = spec_at(R, c->row0 + c->rows + 3, 65, 21);
    fs_sketch *S = sketch_of(&spec);
    view A = view_make(ROWS, c->rows, c->n, c->in), want = view_make(c->to, spec.k, c->n, c->out);
    fill_sparse(&A.m, 31);
    fs_sparse sparse = sparse_of(&A.m, 41, c->format, c->index);
    if (c->beta != 0.0) fill_whole(&want.m, 2, 8);
    MUST(fs_apply(contexts[0].ctx, S, c->row0, c->alpha, &A.m, c->beta, &want.m));
    double *T = columns_of(S, c->row0, c->rows), *value = room(spec.k * c->n, 8), *slack = room(spec.k * c->n, 8);
    product(T, spec.k, c->rows, 0, &A.m, value, slack);
    for (int64_t e = 0; e < spec.k * c->n; e++) {
        /* |x - 1| + 1 <= 3 |x|; the f32 and f64 outputs of the Gaussian are rounded a few times more. */
        slack[e] = R->family == FS_GAUSSIAN ? slack_of(c->in, 2 * c->rows, 6 * slack[e] + 16) : 0.0;
        value[e] = at(&want.m, e / c->n, e % c->n);
    }
    for (int v = 0; v < context_count; v++) {
        char what[320];
        snprintf(what, sizeof what,
                 "%s: %s, %s %d-bit, %s to %s %s, rows %" PRId64 " + %" PRId64 ", n %" PRId64 ", alpha %g, beta %g",
                 contexts[v].name, R->name, c->format == FS_CSR ? "CSR" : "CSC", c->index == FS_INDEX32 ? 32 : 64,
                 fs_dtype_name(c->in), layout_names[c->to], fs_dtype_name(c->out), c->row0, c->rows, c->n, c->alpha,
                 c->beta);
        view Y = view_make(c->to, spec.k, c->n, c->out);
        if (c->beta != 0.0) fill_whole(&Y.m, 2, 8);
        view_seal(&Y);
        MUST(fs_apply_sparse(contexts[v].ctx, S, c->row0, c->alpha, &sparse, c->beta, &Y.m));
        expect_padding_untouched(what, &Y);
        expect_close(what, &Y.m, value, slack);
        view_free(&Y);
    }
    free(T), free(value), free(slack);
    sparse_free(&sparse);
    view_free(&A), view_free(&want);
    fs_sketch_destroy(S);
}

static void a_sparse_matrix_gives_what_its_dense_form_gives(void **state)
{
    (void)state;
    static const int64_t widths[] = {1, 3, 17, 64, 65, 130}, depths[] = {1, 40, 129, 333};
    for (int r = 0; r < recipe_count; r++)
        for (int number = r % THIN; number < 48; number += THIN) {
            const uint64_t draw = bits_at(51, r * 64 + number);
            sparse_case c = {number & 1 ? FS_CSR : FS_CSC,    number & 2 ? FS_INDEX32 : FS_INDEX64,
                             (fs_dtype)(1 + number / 4 % 4),  FS_F32,
                             (layout)(draw % OUTPUT_LAYOUTS), (int64_t)(draw >> 8 & 63),
                             depths[draw >> 16 & 3],          widths[(draw >> 24) % 6],
                             draw >> 32 & 1 ? 1.0 : -2.0,     draw >> 33 & 1 ? 1.0 : 0.0};
            /* The Gaussian's bound is for sums; rounding to 16 bits is not in it. */
            c.out = draw >> 34 & 1 && recipes[r].family != FS_GAUSSIAN ? c.in : fsi_dtype_sum(c.in);
            try_case(&recipes[r], &c);
        }
}

/* More rows than a panel of a dense A has, almost all of them empty. */
static void a_sparse_matrix_of_many_rows_gives_what_its_dense_form_gives(void **state)
{
    (void)state;
    const recipe R = {"blockperm", FS_BLOCKPERM, FS_SHUFFLE_ROWS, 4, 1, 4, 0, 0, 0, 1};
    const int64_t rows = ((int64_t)1 << 20) + 77;
    const fs_spec spec = spec_at(&R, rows, 250, 3);
    fs_sketch *S = sketch_of(&spec);
    view A = view_make(ROWS, rows, 2, FS_F32), want = view_make(ROWS, spec.k, 2, FS_F32);
    for (int64_t e = 0; e < 2 * rows; e++) put(&A.m, e / 2, e % 2, e % 101 ? 0.0 : whole_at(1, e, 8));
    MUST(fs_apply(contexts[0].ctx, S, 0, 1.0, &A.m, 0.0, &want.m));
    for (fs_sparse_format format = FS_CSR; format <= FS_CSC; format++) {
        fs_sparse sparse = sparse_of(&A.m, 2, format, FS_INDEX32);
        for (int v = 0; v < context_count; v++) {
            view Y = view_make(COLUMNS, spec.k, 2, FS_F32);
            MUST(fs_apply_sparse(contexts[v].ctx, S, 0, 1.0, &sparse, 0.0, &Y.m));
            expect_equal(contexts[v].name, &Y.m, &want.m);
            view_free(&Y);
        }
        sparse_free(&sparse);
    }
    view_free(&A), view_free(&want);
    fs_sketch_destroy(S);
}

/* Nothing stored, no rows, no columns: Y = beta Y. */
static void an_empty_sparse_matrix_adds_nothing(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, n;
    } shapes[] = {{30, 4}, {0, 4}, {30, 0}};
    for (int r = 0; r < recipe_count; r++) {
        const fs_spec spec = spec_at(&recipes[r], 30, 20, 1);
        fs_sketch *S = sketch_of(&spec);
        for (int c = 0; c < 6; c++) {
            int64_t ptr[31] = {0};
            fs_sparse A = {
                c % 2 ? FS_CSR : FS_CSC, FS_INDEX64, shapes[c / 2].rows, shapes[c / 2].n, 0, ptr, NULL, NULL, FS_F32,
                FS_MEMORY_HOST};
            view Y = view_make(ROWS, spec.k, A.cols, FS_F32), twice = view_make(ROWS, spec.k, A.cols, FS_F32);
            for (int v = 0; v < context_count; v++) {
                fill_whole(&Y.m, 3, 8);
                for (int64_t e = 0; e < spec.k * A.cols; e++)
                    put(&twice.m, e / A.cols, e % A.cols, 2 * at(&Y.m, e / A.cols, e % A.cols));
                MUST(fs_apply_sparse(contexts[v].ctx, S, 0, 1.0, &A, 2.0, &Y.m));
                expect_equal(recipes[r].name, &Y.m, &twice.m);
            }
            view_free(&Y), view_free(&twice);
        }
        fs_sketch_destroy(S);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sparse_matrix_gives_what_its_dense_form_gives),
        cmocka_unit_test(a_sparse_matrix_of_many_rows_gives_what_its_dense_form_gives),
        cmocka_unit_test(an_empty_sparse_matrix_adds_nothing),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
