/* svd_ranks.c - fs_svd and fs_pca of a matrix whose rows are spread over 1 to 5 ranks, or come from slices that fail. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"
#include "tests/support/sources.h"

enum { D = 300, N = 20 };

typedef struct shared {
    double U[D * N], s[MOST_RANKS][N], V[MOST_RANKS][N * N];
    fs_svd_report reports[MOST_RANKS];
    int kind, centred, failing;
} shared;

/* All singular values, a few with power steps, a few by one read. */
static fs_svd_options options_of(int kind)
{
    fs_svd_options o = FS_SVD_INIT;
    o.rank = kind ? 4 : 0, o.power_steps = kind == 1 ? 2 : -1, o.one_read = kind == 2, o.seed = 3;
    return o;
}

static fs_result decompose(rank_thread *r, void *user)
{
    shared *t = user;
    fs_svd_options o = options_of(t->kind);
    const int64_t count = t->kind ? 4 : N;
    const fs_matrix U = fs_row_major(t->U + r->ranks.row0 * count, r->A.rows, count, FS_F64),
                    V = fs_col_major(t->V[r->number], N, count, FS_F64);
    const fs_operand operand = dense_operand(&r->A);
    const fs_svd_report start = FS_SVD_REPORT_INIT;
    fs_svd_report *report = &t->reports[r->number];
    *report = start;
    o.ranks = &r->ranks;
    if (r->number == t->failing) o.rank = N + 1;
    return t->centred ? fs_pca(r->ctx, &operand, &o, NULL, &U, t->s[r->number], &V, report)
                      : fs_svd(r->ctx, &operand, &o, &U, t->s[r->number], &V, report);
}

static double unorthogonality(const double *U, int64_t count)
{
    double worst = 0;
    for (int64_t a = 0; a < count; a++)
        for (int64_t b = 0; b <= a; b++) {
            double dot = 0;
            for (int64_t i = 0; i < D; i++) dot += U[i * count + a] * U[i * count + b];
            worst = fmax(worst, fabs(dot - (a == b)));
        }
    return worst;
}

static void ranks_are_whole(void **state)
{
    (void)state;
    static const int64_t cuts[MOST_RANKS][MOST_RANKS + 1] = {
        {0, 300}, {0, 3, 300}, {0, 61, 61, 300}, {0, 50, 100, 150, 300}, {0, 299, 299, 299, 300, 300}};
    problem p = problem_make(D, N, 1, FS_F64, 1e4, 0, 11);
    shared *t = room(1, sizeof *t);
    rank_thread ranks[MOST_RANKS];
    for (int variant = 0; variant < 6; variant++) {
        double whole[N], error = 0;
        t->kind = variant / 2, t->centred = variant % 2;
        const int64_t values = t->kind ? 4 : N;
        for (int count = 1; count <= MOST_RANKS; count++) {
            char what[60];
            snprintf(what, sizeof what, "kind %d, centred %d, %d ranks", t->kind, t->centred, count);
            t->failing = -1;
            run_ranks(ranks, count, cuts[count - 1], &p.A, 1, decompose, t);
            if (count == 1) memcpy(whole, t->s[0], sizeof whole), error = t->reports[0].error;
            for (int64_t j = 0; j < values; j++) expect_below(what, fabs(t->s[0][j] - whole[j]), 1e-11 * whole[0]);
            expect_below(what, unorthogonality(t->U, values), 1e-12);
            expect_below(what, fabs(t->reports[0].error - error), 1e-9);
            for (int i = 1; i < count; i++) {
                assert_memory_equal(t->s[i], t->s[0], (size_t)values * 8);
                assert_memory_equal(t->V[i], t->V[0], (size_t)(N * values) * 8);
                assert_true(t->reports[i].error == t->reports[0].error && t->reports[i].norm == t->reports[0].norm);
            }
            t->failing = count - 1;
            run_ranks(ranks, count, cuts[count - 1], &p.A, 0, decompose, t);
            for (int i = 0; i < count; i++) assert_non_null(strstr(ranks[i].message, "rank = 21"));
        }
    }
    free(t);
    problem_free(&p);
}

/* A slice that fails in any read ends the call with its failure. */
static void slices_may_fail_in_every_read(void **state)
{
    (void)state;
    problem p = problem_make(D, N, 1, FS_F64, 1e4, 0, 11);
    fs_context *ctx = context_of(NULL, 0);
    for (int kind = 0; kind < 3; kind++) {
        slicer s;
        const fs_operand operand = slicer_open(&s, &p.A, 70, 0);
        const fs_svd_options o = options_of(kind);
        double values[N];
        fs_svd_report report = FS_SVD_REPORT_INIT;
        MUST(fs_svd(ctx, &operand, &o, NULL, values, NULL, &report));
        assert_int_equal(s.reads, report.reads);
        for (s.fail_read = 1; s.fail_read <= report.reads; s.fail_read++) {
            s.reads = 0;
            REFUSED(fs_svd(ctx, &operand, &o, NULL, values, NULL, NULL), FS_EFILE, "cannot be read");
            assert_int_equal(s.reads, s.fail_read);
        }
        slicer_close(&s);
    }
    fs_context_destroy(ctx);
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_whole),
        cmocka_unit_test(slices_may_fail_in_every_read),
    };
    return RUN_TASK_TESTS(tests);
}
