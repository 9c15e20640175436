/* ranks_repeat.c - fs_lstsq, fs_qr and fs_svd on 1 to 5 ranks: each of 20 runs gives all ranks the bits of the first run,
 * whatever the order in which threads arrive. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"
#include "tests/support/sources.h"

enum { D = 400, N = 12, RUNS = 20 };
enum { LSTSQ, QR, SVD, SOLVERS };

typedef struct shared {
    const problem *p;
    int solver;
    double rows[D * N];                  /* Q or U: each rank's own rows */
    double small[MOST_RANKS][2 * N * N]; /* x; R; singular values and V */
} shared;

static fs_result repeat_work(rank_thread *r, void *user)
{
    shared *t = user;
    const fs_operand A = dense_operand(&r->A);
    double *small = t->small[r->number];
    const fs_matrix rows = fs_row_major(t->rows + r->ranks.row0 * N, r->A.rows, N, FS_F64);
    memset(small, 0, sizeof t->small[0]);
    if (t->solver == LSTSQ) {
        fs_lstsq_options o = FS_LSTSQ_INIT;
        const fs_matrix b = rows_of(&t->p->B, r->ranks.row0, r->A.rows), x = fs_col_major(small, N, 1, FS_F64);
        o.method = FS_LSTSQ_ITERATE, o.measure_error = 1, o.ranks = &r->ranks;
        return fs_lstsq(r->ctx, &A, &b, &o, &x, NULL);
    }
    if (t->solver == QR) {
        fs_qr_options o = FS_QR_INIT;
        const fs_matrix R = fs_row_major(small, N, N, FS_F64);
        o.ranks = &r->ranks;
        return fs_qr(r->ctx, &A, &o, &rows, &R, NULL, NULL);
    }
    fs_svd_options o = FS_SVD_INIT;
    const fs_matrix V = fs_col_major(small + N, N, N, FS_F64);
    o.ranks = &r->ranks;
    return fs_svd(r->ctx, &A, &o, &rows, small, &V, NULL);
}

static void twenty_runs_on_ranks_give_the_same_bits(void **state)
{
    (void)state;
    static const int64_t cuts[MOST_RANKS][MOST_RANKS + 1] = {
        {0, 400}, {0, 3, 400}, {0, 161, 161, 400}, {0, 50, 100, 250, 400}, {0, 80, 160, 240, 320, 400}};
    problem p = problem_make(D, N, 1, FS_F64, 1e8, 0.1, 3);
    shared *t = room(1, sizeof *t), *first = room(1, sizeof *first);
    rank_thread ranks[MOST_RANKS];
    for (int solver = 0; solver < SOLVERS; solver++)
        for (int count = 1; count <= MOST_RANKS; count++)
            for (int run = 0; run < RUNS; run++) {
                memset(t, 0, sizeof *t);
                t->p = &p, t->solver = solver;
                run_ranks(ranks, count, cuts[count - 1], &p.A, 1, repeat_work, t);
                if (!run) *first = *t;
                if (memcmp(t->rows, first->rows, sizeof t->rows))
                    fail_msg("solver %d, %d ranks: run %d gives other rows than run 0", solver, count, run);
                for (int i = 0; i < count; i++)
                    if (memcmp(t->small[i], first->small[0], sizeof t->small[0]))
                        fail_msg("solver %d: rank %d of %d in run %d has other bits than rank 0 in run 0", solver, i,
                                 count, run);
            }
    free(t);
    free(first);
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(twenty_runs_on_ranks_give_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
