/* coherence.c - mu_blk and mu_nbr against LAPACK, and the paper's theorems on them: the energy identity, the bounds
 * of its lemma on mu_nbr, and the values of the extreme cases. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "def/def.h"
#include "tests/support/problems.h"

enum { D = 240, N = 6 };

/* The orthonormal columns of a problem with condition 1, unchanged and with large rows. */
static problem orthonormal_problem(int hot)
{
    problem p = problem_make(D, N, 0, FS_F64, 1, 0, 12);
    if (!hot) return p;
    for (int64_t i = 0; i < D; i++) /* U is I on top: N rows have a direction each */
        for (int64_t j = 0; j < N; j++) put(&p.A, i, j, i == j);
    return p;
}

static fs_spec spec_with(int64_t M, int64_t kappa, int shuffle, uint64_t seed)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = 8 * M, spec.M = M, spec.kappa = kappa, spec.s = 2, spec.seed = seed;
    spec.shuffle = (fs_shuffle)shuffle;
    return spec;
}

/* |rows of U in these input blocks|_2^2 by LAPACK, and the square of their Frobenius norm. */
static double block_norm(const fsi_blockperm *B, const fs_matrix *U, const int64_t *blocks, int64_t count,
                         double *energy)
{
    double *rows = room(D * N, 8), s[N];
    int64_t have = 0;
    *energy = 0;
    for (int64_t i = 0; i < D; i++)
        for (int64_t c = 0; c < count; c++)
            if (fsi_blockperm_local(B, i).h == blocks[c]) {
                for (int64_t j = 0; j < N; j++) {
                    rows[have * N + j] = at(U, i, j);
                    *energy += rows[have * N + j] * rows[have * N + j];
                }
                have++;
            }
    s[0] = 0;
    if (have) lapack_singular_values(have, N, rows, s);
    free(rows);
    return s[0] * s[0];
}

static void check(int hot, int64_t M, int64_t kappa, int shuffle, uint64_t seed)
{
    problem p = orthonormal_problem(hot);
    bench b = bench_open(&p, 8 * M, seed, 0);
    fs_spec spec = spec_with(M, kappa, shuffle, seed);
    fs_sketch *S = sketch_of(&spec);
    MUST(fs_sketch_spec(S, &spec)); /* with the interleave that was chosen */
    const fsi_blockperm B = fsi_blockperm_make(seed, D, 8 * M, M, kappa, 2, shuffle, spec.interleave);
    fs_coherence_report report = FS_COHERENCE_REPORT_INIT;
    MUST(fs_coherence(b.ctx, S, &p.A, NULL, &report));
    double blk = 0, nbr = 0, energy = 0, part;
    for (int64_t g = 0; g < M; g++) {
        int64_t blocks[64];
        uint32_t h = (uint32_t)g;
        blk = fmax(blk, block_norm(&B, &p.A, &g, 1, &part));
        for (int64_t l = 0; l < kappa; l++) blocks[l] = h = fsi_wiring_next(&B.wiring, h);
        nbr = fmax(nbr, block_norm(&B, &p.A, blocks, kappa, &part));
        energy += part;
    }
    /* Every input block is in kappa neighbourhoods: sum over g of |U_N(g)|_F^2 = kappa |U|_F^2 = kappa r. */
    assert_true(fabs(energy - (double)(kappa * N)) <= 1e-10);
    assert_int_equal(report.rank, N);
    if (!(fabs(report.mu_blk - (double)M * blk) <= 1e-6 * report.mu_blk) ||
        !(fabs(report.mu_nbr - (double)M / (double)kappa * nbr) <= 1e-6 * report.mu_nbr))
        fail_msg("M %d kappa %d: mu_blk %g, LAPACK %g; mu_nbr %g, LAPACK %g", (int)M, (int)kappa, report.mu_blk,
                 (double)M * blk, report.mu_nbr, (double)M / (double)kappa * nbr);
    const double loose = 1 + 1e-6;
    assert_true(report.mu_blk / (double)kappa <= report.mu_nbr * loose && report.mu_nbr <= report.mu_blk * loose);
    assert_true(report.mu_blk >= 1 / loose && report.mu_blk <= (double)M * loose);
    assert_true(report.mu_nbr >= 1 / loose && report.mu_nbr <= (double)M / (double)kappa * loose);
    if (kappa == 1) assert_true(fabs(report.mu_nbr - report.mu_blk) <= 1e-9 * report.mu_blk);
    if (kappa == M) assert_true(fabs(report.mu_nbr - 1) <= 1e-9);
    if (hot) assert_true(fabs(report.mu_blk - (double)M) <= 1e-6 * (double)M);
    fs_sketch_destroy(S);
    bench_close(&b);
    problem_free(&p);
}

static void the_papers_bounds_hold(void **state)
{
    (void)state;
    for (int hot = 0; hot < 2; hot++)
        for (int shuffle = FS_SHUFFLE_NONE; shuffle <= FS_SHUFFLE_GROUPS; shuffle++)
            for (uint64_t seed = 0; seed < 3; seed++) {
                check(hot, 8, 1, shuffle, seed);
                check(hot, 8, 2, shuffle, seed);
                check(hot, 12, 3, shuffle, seed);
                check(hot, 8, 8, shuffle, seed);
            }
}

/* The same from a sparse A, and with progress; A by its columns' scale does not matter. */
static void sparse_and_scaled_are_the_same(void **state)
{
    (void)state;
    problem p = orthonormal_problem(0);
    bench b = bench_open(&p, 64, 1, 0);
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < N; j++) put(&p.A, i, j, whole_at(5, i * N + j, 3) * (i % 3 == 0));
    const fs_spec spec = spec_with(8, 2, FS_SHUFFLE_ROWS, 4);
    fs_sketch *S = sketch_of(&spec);
    fs_sparse sparse = sparse_of(&p.A, 2, FS_CSR, FS_INDEX32);
    fs_coherence_report dense = FS_COHERENCE_REPORT_INIT, other = FS_COHERENCE_REPORT_INIT;
    MUST(fs_coherence(b.ctx, S, &p.A, NULL, &dense));
    MUST(fs_coherence_sparse(b.ctx, S, &sparse, NULL, &other));
    assert_memory_equal(&dense, &other, sizeof dense);
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < N; j++) put(&p.A, i, j, ldexp(at(&p.A, i, j), 10 * (int)j));
    MUST(fs_coherence(b.ctx, S, &p.A, NULL, &other));
    assert_true(fabs(other.mu_blk - dense.mu_blk) <= 1e-9 * dense.mu_blk &&
                fabs(other.mu_nbr - dense.mu_nbr) <= 1e-9 * dense.mu_nbr);
    ((int32_t *)sparse.index)[0] = 77;
    REFUSED(fs_coherence_sparse(b.ctx, S, &sparse, NULL, &other), FS_EINVAL, "index[0]", "77");
    sparse_free(&sparse);
    put(&p.A, 3, 2, INFINITY);
    REFUSED(fs_coherence(b.ctx, S, &p.A, NULL, &other), FS_EINVAL, "column 3", "not finite");
    fs_sketch_destroy(S);
    fs_spec gaussian = FS_SPEC_INIT;
    gaussian.d = D, gaussian.k = 9, gaussian.family = FS_GAUSSIAN;
    S = sketch_of(&gaussian);
    REFUSED(fs_coherence(b.ctx, S, &p.A, NULL, &other), FS_EINVAL, "blockperm");
    fs_sketch_destroy(S);
    bench_close(&b);
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_papers_bounds_hold),
                                       cmocka_unit_test(sparse_and_scaled_are_the_same)};
    return RUN_TASK_TESTS(tests);
}
