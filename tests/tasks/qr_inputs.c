/* qr_inputs.c - fs_qr of a sparse A, slices and ranks, with any sketch; what it refuses, and memory that runs out. */
#include "tests/support/scarce.h"
#include "tests/tasks/qr.h"

/* sources --------------------------------------------------------------------------------------------------------- */

/* Integers, mostly 0; the first rows are those of I, so that it has full rank. */
static view whole_matrix(int64_t d, int64_t n, fs_dtype dtype)
{
    view A = view_make(ROWS, d, n, dtype);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++)
            put(&A.m, i, j, i < n ? i == j : bits_at(9, i * n + j) % 4 ? 0 : whole_at(2, i * n + j, 9));
    return A;
}

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
            const fs_operand operand = slicer_open(&s, &A.m, 37, sparse ? 2 : 0);
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

/* the caller's sketch ---------------------------------------------------------------------------------------------- */

/* Any S that keeps the rank gives the same factors; one that loses it is detected. */
static void any_sketch_will_do(void **state)
{
    (void)state;
    enum { D = 500, N = 10 };
    view A = matrix_of(ROWS, D, N, FS_F64, 1e10);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m);
    answer a = answer_make(D, N, FS_F64);
    for (int family = FS_BLOCKPERM; family <= FS_GAUSSIAN; family++)
        for (int64_t k = N; k <= 64; k += 54) {
            fs_spec spec = FS_SPEC_INIT;
            spec.family = (fs_family)family, spec.d = D, spec.k = k, spec.seed = 4;
            fs_sketch *S = sketch_of(&spec);
            fs_qr_options o = options_of(0);
            o.sketch = S;
            if (k > N || family == FS_GAUSSIAN) {
                MUST(factor(ctx, &operand, &o, &a));
                expect_factors(fs_family_name((fs_family)family), &A.m, &a, 0);
                assert_int_equal(a.report.k, k);
            } else if (factor(ctx, &operand, &o, &a) == FS_OK) { /* k = n: S A may be singular */
                expect_factors(fs_family_name((fs_family)family), &A.m, &a, 0);
            }
            fs_sketch_destroy(S);
        }
    static const int64_t wrong[][2] = {{D + 1, 40}, {D, N - 1}};
    for (int i = 0; i < 2; i++) {
        fs_spec spec = FS_SPEC_INIT;
        spec.d = wrong[i][0], spec.k = wrong[i][1];
        fs_sketch *S = sketch_of(&spec);
        fs_qr_options o = options_of(0);
        o.sketch = S;
        REFUSED(factor(ctx, &operand, &o, &a), FS_EINVAL, i ? "k = 9" : "d = 501", "500", "10 columns");
        fs_sketch_destroy(S);
    }
    answer_free(&a);
    view_free(&A);
    fs_context_destroy(ctx);
}

/* A sketch of only n rows leaves A R^-1 ill-conditioned: then another read improves it. */
static void a_poor_sketch_takes_more_reads(void **state)
{
    (void)state;
    enum { D = 400, N = 30 };
    view A = matrix_of(ROWS, D, N, FS_F64, 1e12);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m);
    int more = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        fs_spec spec = FS_SPEC_INIT;
        spec.family = FS_GAUSSIAN, spec.d = D, spec.k = N, spec.seed = seed;
        fs_sketch *S = sketch_of(&spec);
        fs_qr_options o = options_of(0);
        o.sketch = S;
        answer a = answer_make(D, N, FS_F64);
        MUST(factor(ctx, &operand, &o, &a));
        expect_factors("a poor sketch", &A.m, &a, 0);
        more += a.report.reads > 3;
        answer_free(&a);
        fs_sketch_destroy(S);
    }
    assert_true(more > 0);
    view_free(&A);
    fs_context_destroy(ctx);
}

/* failures --------------------------------------------------------------------------------------------------------- */

static void bad_arguments_have_messages(void **state)
{
    (void)state;
    view A = matrix_of(ROWS, 50, 5, FS_F64, 3), R = view_make(ROWS, 5, 5, FS_F64), Q = view_make(ROWS, 50, 5, FS_F64);
    view wide = view_make(ROWS, 5, 50, FS_F64);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m), wide_operand = dense_operand(&wide.m);
    fs_operand both = operand, none = FS_OPERAND_INIT;
    fs_sparse sparse = {0};
    both.sparse = &sparse;
    int64_t pivots[5];
    fs_qr_options o = FS_QR_INIT;
    REFUSED(fs_qr(NULL, &operand, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "ctx is NULL");
    REFUSED(fs_qr(ctx, NULL, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "A is NULL");
    REFUSED(fs_qr(ctx, &both, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "2 of A.dense");
    REFUSED(fs_qr(ctx, &none, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "0 of A.dense");
    REFUSED(fs_qr(ctx, &wide_operand, NULL, NULL, &R.m, NULL, NULL), FS_EINVAL, "5 x 50");
    REFUSED(fs_qr(ctx, &operand, NULL, NULL, NULL, NULL, NULL), FS_EINVAL, "R is NULL");
    REFUSED(fs_qr(ctx, &operand, NULL, NULL, &Q.m, NULL, NULL), FS_EINVAL, "R is 50 x 5", "5 x 5");
    REFUSED(fs_qr(ctx, &operand, NULL, &R.m, &R.m, NULL, NULL), FS_EINVAL, "Q is 5 x 5", "50 x 5");
    REFUSED(fs_qr(ctx, &operand, NULL, NULL, &R.m, pivots, NULL), FS_EINVAL, "pivots is given");
    o.pivot = 2;
    REFUSED(fs_qr(ctx, &operand, &o, NULL, &R.m, pivots, NULL), FS_EINVAL, "pivot is 2");
    o.pivot = 1;
    REFUSED(fs_qr(ctx, &operand, &o, NULL, &R.m, NULL, NULL), FS_EINVAL, "pivots is NULL");
    static const double rconds[] = {1, -1e-9, NAN};
    for (int i = 0; i < 3; i++) {
        o.rcond = rconds[i];
        REFUSED(fs_qr(ctx, &operand, &o, NULL, &R.m, pivots, NULL), FS_EINVAL, "rcond is");
    }
    fs_matrix first = A.m, shifted = A.m, within = Q.m;
    first.rows = 5;
    REFUSED(fs_qr(ctx, &operand, NULL, NULL, &first, NULL, NULL), FS_EINVAL, "R overlaps A");
    shifted.rows = 49;
    const fs_operand short_operand = dense_operand(&shifted);
    fs_matrix moved = shifted;
    moved.offset += moved.row_stride;
    REFUSED(fs_qr(ctx, &short_operand, NULL, &moved, &R.m, NULL, NULL), FS_EINVAL, "Q overlaps A", "same view");
    within.rows = 5;
    REFUSED(fs_qr(ctx, &operand, NULL, &Q.m, &within, NULL, NULL), FS_EINVAL, "Q overlaps R");
    fs_qr_options longer = FS_QR_INIT;
    longer.size = 1;
    REFUSED(fs_qr(ctx, &operand, &longer, NULL, &R.m, NULL, NULL), FS_EINVAL, "options");
    view_free(&A), view_free(&R), view_free(&Q), view_free(&wide);
    fs_context_destroy(ctx);
}

static void elements_that_are_not_finite(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    fs_context *ctx = context_of(NULL, 0);
    for (int b = 0; b < 3; b++)
        for (int pivot = 0; pivot < 2; pivot++)
            for (int dtype = FS_F32; dtype <= FS_BF16; dtype++)
                for (int family = FS_BLOCKPERM; family <= FS_BLOCKROW; family += 2) {
                    view A = matrix_of(ROWS, 300, 5, (fs_dtype)dtype, 3);
                    put(&A.m, 20, 3, bad[b]);
                    fs_spec spec = FS_SPEC_INIT;
                    spec.family = (fs_family)family, spec.d = 300, spec.k = 64;
                    fs_sketch *S = sketch_of(&spec);
                    const fs_operand operand = dense_operand(&A.m);
                    fs_qr_options o = options_of(pivot);
                    o.sketch = S; /* FlashBlockRow samples rows: the element may not be in S A */
                    answer a = answer_make(300, 5, FS_F32);
                    REFUSED(factor(ctx, &operand, &o, &a), FS_EINVAL, "not finite");
                    answer_free(&a);
                    view_free(&A);
                    fs_sketch_destroy(S);
                }
    fs_context_destroy(ctx);
}

static void runs_give_the_same_bits(void **state)
{
    (void)state;
    view A = matrix_of(ROWS, 6000, 24, FS_F32, 1e4);
    const fs_operand operand = dense_operand(&A.m);
    answer first = answer_make(6000, 24, FS_F32), again = answer_make(6000, 24, FS_F32);
    for (int pivot = 0; pivot < 2; pivot++)
        for (int run = 0; run < 21; run += 1 + 4 * (THIN - 1)) {
            const fs_qr_options o = options_of(pivot);
            fs_context *ctx = context_of(NULL, 1 + run % 4);
            answer *a = run ? &again : &first;
            MUST(factor(ctx, &operand, &o, a));
            fs_context_destroy(ctx);
            if (!run) continue;
            expect_same_bits("Q", &again.Q, &first.Q);
            expect_same_bits("R", &again.R, &first.R);
            assert_memory_equal(again.pivots, first.pivots, pivot ? 24 * sizeof(int64_t) : 0);
        }
    answer_free(&first), answer_free(&again);
    view_free(&A);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    view A = whole_matrix(120, 6, FS_F32);
    for (int64_t i = 0; i < 120; i++) put(&A.m, i, 5, at(&A.m, i, 0)); /* W of the basis too */
    fs_sparse sparse = sparse_of(&A.m, 4, FS_CSC, FS_INDEX32);
    for (int kind = 0; kind < 2; kind++) {
        int allocations = 0;
        for (fs_result result = FS_ENOMEM; result != FS_OK; allocations++) {
            assert_true(allocations < 200);
            scarce s = {1000, 0};
            fs_context_options where = FS_CONTEXT_INIT;
            where.backend = FS_BACKEND_CPU;
            where.allocator = scarce_allocator(&s);
            fs_context *ctx;
            MUST(fs_context_create(&ctx, &where));
            answer a = answer_make(120, 6, FS_F32);
            const fs_operand operand = kind ? sparse_operand(&sparse) : dense_operand(&A.m);
            const fs_qr_options o = options_of(1);
            s.left = allocations;
            result = factor(ctx, &operand, &o, &a);
            if (result != FS_OK) REFUSED(result, FS_ENOMEM, "no memory");
            answer_free(&a);
            fs_context_destroy(ctx);
            assert_int_equal(s.live, 0);
        }
        assert_true(allocations > 12);
    }
    sparse_free(&sparse);
    view_free(&A);
}

typedef struct shares {
    double last;
    int calls;
} shares;
static void note_share(void *user, double share, const char *doing)
{
    shares *s = user;
    assert_true(share >= s->last && share <= 1 && doing && *doing);
    s->last = share;
    s->calls++;
}
static void progress_grows_to_one(void **state)
{
    (void)state;
    view A = matrix_of(ROWS, 5000, 9, FS_F64, 1e9);
    fs_context *ctx = context_of(NULL, 0);
    const fs_operand operand = dense_operand(&A.m);
    for (int pivot = 0; pivot < 2; pivot++) {
        shares s = {0, 0};
        const fs_progress progress = {note_share, &s};
        fs_qr_options o = options_of(pivot);
        o.progress = &progress;
        answer a = answer_make(5000, 9, FS_F64);
        MUST(factor(ctx, &operand, &o, &a));
        assert_true(s.last == 1 && s.calls >= 3);
        answer_free(&a);
    }
    view_free(&A);
    fs_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_is_dense),
        cmocka_unit_test(slices_are_whole),
        cmocka_unit_test(ranks_are_whole),
        cmocka_unit_test(any_sketch_will_do),
        cmocka_unit_test(a_poor_sketch_takes_more_reads),
        cmocka_unit_test(bad_arguments_have_messages),
        cmocka_unit_test(elements_that_are_not_finite),
        cmocka_unit_test(runs_give_the_same_bits),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(progress_grows_to_one),
    };
    return RUN_TASK_TESTS(tests);
}
