/* checkpoint.c - solvers of slices with a checkpoint: a run that is ended after any slice and called again, however
 * often, gives the bits of an uninterrupted one; a checkpoint that is wrong or fails is an error. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"
#include "tests/support/sources.h"

enum { D = 300, N = 6, SLICE = 70, MOST_READS = 40, MOST_TRIES = 400, ERRORS = D + 62, RESULTS = D + 64 };

/* The sums of all reads so far; `left` more are kept before the process "ends". */
typedef struct keeper {
    slicer source;
    fs_checkpoint checkpoint;
    struct {
        void *sums;
        size_t bytes;
        int64_t rows;
    } reads[MOST_READS];
    int left;          /* negative: no end */
    int within, whole; /* loads of some rows, of all rows */
    int64_t false_rows;
} keeper;

static fs_result keeper_load(void *user, int64_t read, void *sums, size_t bytes, int64_t *rows)
{
    keeper *k = user;
    assert_in_range(read, 1, MOST_READS - 1);
    *rows = k->false_rows;
    if (k->false_rows || !k->reads[read].sums) return FS_OK;
    assert_int_equal(bytes, k->reads[read].bytes);
    memcpy(sums, k->reads[read].sums, bytes);
    *rows = k->source.at = k->reads[read].rows;
    k->within += *rows < D;
    k->whole += *rows == D;
    return FS_OK;
}

static int keeper_due(void *user, int64_t read, int64_t rows)
{
    (void)user;
    return read != 2 || rows == D; /* of one read only the end */
}

static fs_result keeper_save(void *user, int64_t read, const void *sums, size_t bytes, int64_t rows)
{
    keeper *k = user;
    if (!k->left--) return fs_fail(FS_EFILE, "the process ends in read %d", (int)read);
    free(k->reads[read].sums);
    k->reads[read].sums = room(1, (int64_t)bytes);
    memcpy(k->reads[read].sums, sums, bytes);
    k->reads[read].bytes = bytes;
    k->reads[read].rows = rows;
    return FS_OK;
}

static fs_operand keeper_open(keeper *k, const fs_matrix *A, int sparse_every)
{
    const fs_checkpoint all = {sizeof all, keeper_load, keeper_due, keeper_save, k};
    memset(k, 0, sizeof *k);
    const fs_operand operand = slicer_open(&k->source, A, SLICE, sparse_every);
    k->checkpoint = all;
    k->source.slices.checkpoint = &k->checkpoint;
    k->left = -1;
    return operand;
}

static void keeper_close(keeper *k)
{
    for (int i = 0; i < MOST_READS; i++) free(k->reads[i].sums);
    slicer_close(&k->source);
}

/* solvers: results are numbers, with two of the report from ERRORS on, and the reads that it counts ------------------------------------------- */

enum { ITERATE, NORMAL, QR, PIVOTS, SCORES, EXACT_SCORES, VALUES, POWER, COMPONENTS, ONE_READ, KINDS };

static fs_result decompose(fs_context *ctx, const fs_operand *A, int kind, double *results, int64_t *reads)
{
    fs_svd_options o = FS_SVD_INIT;
    fs_svd_report report = FS_SVD_REPORT_INIT;
    o.rank = kind == VALUES ? 0 : 2, o.power_steps = kind == POWER ? 2 : -1, o.one_read = kind == ONE_READ;
    const int64_t count = kind == VALUES ? N : 2;
    const fs_matrix V = fs_col_major(results + N, N, count, FS_F64);
    const fs_result result = kind == COMPONENTS ? fs_pca(ctx, A, &o, NULL, NULL, results, &V, &report)
                                                : fs_svd(ctx, A, &o, NULL, results, &V, &report);
    *reads = report.reads;
    results[ERRORS] = report.norm, results[ERRORS + 1] = report.error;
    return result;
}

static fs_result solve(fs_context *ctx, const fs_operand *A, const fs_matrix *b, int kind, double *results,
                       int64_t *reads)
{
    fs_result result;
    memset(results, 0, RESULTS * sizeof *results);
    if (kind == ITERATE || kind == NORMAL) {
        fs_lstsq_options o = FS_LSTSQ_INIT;
        fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
        o.method = kind == ITERATE ? FS_LSTSQ_ITERATE : FS_LSTSQ_NORMAL;
        o.measure_error = kind == ITERATE;
        const fs_matrix x = fs_col_major(results, N, 1, FS_F64);
        result = fs_lstsq(ctx, A, b, &o, &x, &report);
        *reads = report.reads;
        results[ERRORS] = report.residual, results[ERRORS + 1] = report.backward_error;
    } else if (kind == QR || kind == PIVOTS) {
        fs_qr_options o = FS_QR_INIT;
        fs_qr_report report = FS_QR_REPORT_INIT;
        int64_t pivots[N];
        o.pivot = kind == PIVOTS;
        const fs_matrix R = fs_row_major(results, N, N, FS_F64);
        result = fs_qr(ctx, A, &o, NULL, &R, o.pivot ? pivots : NULL, &report);
        *reads = report.reads;
    } else if (kind == SCORES || kind == EXACT_SCORES) {
        fs_leverage_options o = FS_LEVERAGE_INIT;
        fs_leverage_report report = FS_LEVERAGE_REPORT_INIT;
        o.exact = kind == EXACT_SCORES, o.error = 0.5;
        result = fs_leverage(ctx, A, &o, results, &report);
        *reads = report.reads;
    } else {
        result = decompose(ctx, A, kind, results, reads);
    }
    return result;
}

/* Ends when `step` more sums are kept, again and again; at last there are those of all reads. */
static void end_again_and_again(fs_context *ctx, const problem *p, int kind, int sparse_every, int step)
{
    double wanted[RESULTS], results[RESULTS];
    int64_t reads, all;
    int ends = 0;
    slicer plain;
    keeper k;
    const fs_operand whole = slicer_open(&plain, &p->A, SLICE, sparse_every),
                     resumed = keeper_open(&k, &p->A, sparse_every);
    assert_int_equal(solve(ctx, &whole, &p->B, kind, wanted, &all), FS_OK);
    for (int done = 0; done < 2;) {
        k.left = step;
        const fs_result result = solve(ctx, &resumed, &p->B, kind, results, &reads);
        done += result == FS_OK;
        if (result == FS_OK && (memcmp(results, wanted, sizeof wanted) || reads != all))
            fail_msg("kind %d, sparse %d: other bits after %d ends, or %d reads in place of %d", kind, sparse_every,
                     ends, (int)reads, (int)all);
        if (result == FS_OK) continue;
        assert_int_equal(result, FS_EFILE);
        assert_non_null(strstr(fs_error_message(), "the process ends in read"));
        assert_in_range(ends++, 0, MOST_TRIES);
    }
    assert_true(ends > 0 && k.within + k.whole > 0);
    slicer_close(&plain);
    keeper_close(&k);
}

static void a_solver_that_was_ended_gives_the_same_bits(void **state)
{
    (void)state;
    fs_context *ctx = context_of(NULL, 2);
    problem f64 = problem_make(D, N, 1, FS_F64, 1e4, 0, 5), f32 = problem_make(D, N, 1, FS_F32, 1e2, 0, 6),
            sparse = problem_make(D, N, 1, FS_F64, 1e2, 0, 7);
    const int64_t down = sparse.A.row_stride, across = sparse.A.col_stride;
    double *a = sparse.A.data; /* integers, which slicer_open needs */
    for (int64_t i = 0; i < D * N; i++) a[i] = (double)((i * i + i / 7) % 11 - 5);
    for (int kind = 0; kind < KINDS; kind++)
        for (int step = 1; step <= 3; step += 2) {
            end_again_and_again(ctx, &f64, kind, 0, step);
            end_again_and_again(ctx, &f32, kind, 0, step);
            if (kind != NORMAL) end_again_and_again(ctx, &sparse, kind, 2, step);
        }
    for (int64_t i = 0; i < D; i++) a[i * down + (N - 1) * across] = a[i * down];
    end_again_and_again(ctx, &sparse, PIVOTS, 0, 1);
    end_again_and_again(ctx, &sparse, ITERATE, 0, 1);
    end_again_and_again(ctx, &sparse, EXACT_SCORES, 0, 1);
    problem_free(&f64);
    problem_free(&f32);
    problem_free(&sparse);
    fs_context_destroy(ctx);
}

static void a_wrong_checkpoint_is_an_error(void **state)
{
    (void)state;
    fs_context *ctx = context_of(NULL, 2);
    problem p = problem_make(D, N, 1, FS_F64, 1e4, 0, 5);
    double results[RESULTS];
    int64_t reads;
    keeper k;
    const fs_operand A = keeper_open(&k, &p.A, 0);
    for (k.false_rows = -1; k.false_rows <= D + 1; k.false_rows += D + 2) {
        assert_int_equal(solve(ctx, &A, &p.B, ITERATE, results, &reads), FS_EINVAL);
        assert_non_null(strstr(fs_error_message(), k.false_rows < 0 ? "sums of -1 rows for read 1, and A has 300"
                                                                    : "sums of 301 rows for read 1, and A has 300"));
    }
    k.false_rows = 0;
    k.checkpoint.due = NULL;
    assert_int_equal(solve(ctx, &A, &p.B, QR, results, &reads), FS_EINVAL);
    assert_non_null(strstr(fs_error_message(), "a function of A.slices.checkpoint is NULL"));
    keeper_close(&k);
    problem_free(&p);
    fs_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_solver_that_was_ended_gives_the_same_bits),
        cmocka_unit_test(a_wrong_checkpoint_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
