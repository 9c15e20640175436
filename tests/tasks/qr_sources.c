/* qr_sources.c - fs_qr of a matrix that is sparse, comes in slices, or is spread over ranks. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "factors.h"

static void sparse_is_dense(void **state)
{
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_F64; dtype++)
        for (int64_t d = 20; d <= 260; d += 240) { /* fewer rows than the sketch's, and more */
            view A = whole_matrix(d, 14, (fs_dtype)dtype);
            fs_context *ctx = context_of(NULL, 0);
            for (int variant = 0; variant < 8; variant++) {
                const int pivot = variant & 1;
                fs_sparse sparse = sparse_of(&A.m, 4, variant & 2 ? FS_CSR : FS_CSC,
                                             variant & 4 ? FS_INDEX64 : FS_INDEX32);
                const fs_operand operand = sparse_operand(&sparse);
                answer a = answer_make(d, 14, FS_F64);
                const fs_qr_options o = options_of(pivot);
                MUST(factor(ctx, &operand, &o, &a));
                expect_factors("sparse", &A.m, &a, pivot);
                assert_int_equal(a.report.rank, 14);
                assert_int_equal(a.report.k, d == 20 ? 0 : 4 * 14 + 16);
                answer_free(&a);
                sparse_free(&sparse);
            }
            view_free(&A);
            fs_context_destroy(ctx);
        }
}

static void slices_are_whole(void **state)
{
    (void)state;
    for (int sparse = 0; sparse < 2; sparse++)
        for (int pivot = 0; pivot < 2; pivot++) {
            view A = sparse ? whole_matrix(500, 16, FS_F64) : matrix_of(COLUMNS_PADDED, 500, 16, FS_F64, 1e8);
            fs_context *ctx = context_of(NULL, 0);
            slicer s;
            const fs_operand operand = slicer_open(&s, &A.m, 37, sparse);
            const fs_qr_options o = options_of(pivot);
            answer a = answer_make(500, 16, FS_F64);
            MUST(factor(ctx, &operand, &o, &a));
            expect_factors("slices", &A.m, &a, pivot);
            assert_int_equal(s.reads, a.report.reads);
            assert_int_equal(s.reads, 3);
            for (s.fail_read = 1; s.fail_read <= 3; s.fail_read++) {
                s.reads = 0;
                REFUSED(factor(ctx, &operand, &o, &a), FS_EFILE, "cannot be read");
                assert_int_equal(s.reads, s.fail_read);
            }
            s.fail_read = 0;
            s.slices.rows = 499; /* the last slice is longer than what is left */
            const fs_matrix Q = {.data = a.Q.m.data,
                                 .rows = 499,
                                 .cols = 16,
                                 .row_stride = 16,
                                 .col_stride = 1,
                                 .dtype = FS_F64,
                                 .memory = a.Q.m.memory};
            REFUSED(fs_qr(ctx, &operand, &o, &Q, &a.R.m, pivot ? a.pivots : NULL, NULL), FS_EINVAL, "slice at row 481",
                    "19 x 16", "499 x 16");
            slicer_close(&s);
            answer_free(&a);
            view_free(&A);
            fs_context_destroy(ctx);
        }
}

typedef struct shared {
    answer *whole; /* Q of all rows */
    answer part[MOST_RANKS];
    int pivot, failing; /* a rank whose rows hold a NaN, or -1 */
} shared;
static fs_result factor_rank(rank_thread *r, void *user)
{
    shared *s = user;
    fs_matrix Q = s->whole->Q.m;
    Q.offset += r->ranks.row0 * Q.row_stride;
    Q.rows = r->A.rows;
    const fs_operand operand = dense_operand(&r->A);
    fs_qr_options o = options_of(s->pivot);
    o.ranks = &r->ranks;
    if (r->number == s->failing) o.rcond = 2; /* found before the first sum, by this rank alone */
    answer *a = &s->part[r->number];
    return fs_qr(r->ctx, &operand, &o, &Q, &a->R.m, s->pivot ? a->pivots : NULL, &a->report);
}

static void ranks_are_whole(void **state)
{
    (void)state;
    static const int64_t cuts[MOST_RANKS][MOST_RANKS + 1] = {
        {0, 200}, {0, 3, 200}, {0, 61, 61, 200}, {0, 50, 100, 150, 200}, {0, 199, 199, 199, 200, 200}};
    view A = matrix_of(ROWS_PADDED, 200, 8, FS_F64, 1e5);
    for (int64_t j = 0; j < 8; j++) put(&A.m, 150, j, 100 + (double)(j * j));
    for (int count = 1; count <= MOST_RANKS; count++)
        for (int pivot = 0; pivot < 2; pivot++) {
            answer a = answer_make(200, 8, FS_F64);
            shared s = {.whole = &a, .pivot = pivot, .failing = -1};
            rank_thread ranks[MOST_RANKS];
            for (int i = 0; i < count; i++) s.part[i] = answer_make(1, 8, FS_F64);
            run_ranks(ranks, count, cuts[count - 1], &A.m, 1, factor_rank, &s);
            for (int i = 0; i < count; i++) {
                expect_same_bits("R of a rank", &s.part[i].R, &s.part[0].R);
                assert_memory_equal(s.part[i].pivots, s.part[0].pivots, pivot ? 8 * sizeof(int64_t) : 0);
                assert_true(s.part[i].report.orthogonality == s.part[0].report.orthogonality);
                assert_int_equal(s.part[i].report.reads, 3);
            }
            memcpy(a.R.m.data, s.part[0].R.m.data, 64 * 8);
            memcpy(a.pivots, s.part[0].pivots, 8 * sizeof(int64_t));
            a.report = s.part[0].report;
            expect_factors("ranks", &A.m, &a, pivot);
            for (s.failing = 0; s.failing < count; s.failing++) {
                run_ranks(ranks, count, cuts[count - 1], &A.m, 0, factor_rank, &s);
                for (int i = 0; i < count; i++) {
                    assert_int_equal(ranks[i].result, FS_EINVAL);
                    assert_non_null(strstr(ranks[i].message, "rcond is 2"));
                }
            }
            for (int i = 0; i < count; i++) answer_free(&s.part[i]);
            answer_free(&a);
        }
    view_free(&A);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_is_dense),
        cmocka_unit_test(slices_are_whole),
        cmocka_unit_test(ranks_are_whole),
    };
    return RUN_TASK_TESTS(tests);
}
