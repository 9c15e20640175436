/* solver_faults.c - an error of a solver on one rank is returned on all ranks, with one code and one message, and no
 * rank waits; afterwards the solvers work.
 *
 * usage: solver_faults [dies]: the rank in the middle is killed in a read of A (death.sh). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "tests/support/scarce.h"

enum { D = 240, N = 6 };
static fs_context *ctx;
static double a[D * N], b[D], x[N], r[N * N], u[D * N], s[N], v[N * N], scores[D];
static int64_t row0, rows, pivots[N];
static fs_mpi *mpi;
static fs_ranks spread;

/* The rank that fails, one in the middle if there is one, and the beginning of its error message. */
static int bad;
static char named[32];
static const char *all_named; /* where all fail alike */

typedef enum solver {
    LSTSQ,
    LSTSQ_ITERATED,
    LSTSQ_DIRECT,
    QR,
    QR_PIVOTED,
    SVD,
    SVD_RANGE,
    PCA_ONE_READ,
    LEVERAGE,
    LEVERAGE_EXACT,
    SOLVERS
} solver;

/* Any solver with all its outputs on this rank's rows; n columns of A. */
static fs_result run(solver which, fs_context *with, const fs_operand *A, const fs_ranks *over, int64_t n,
                     double lambda)
{
    const fs_matrix B = fs_row_major(b + row0, rows, 1, FS_F64), X = fs_row_major(x, n, 1, FS_F64);
    const fs_matrix Q = fs_row_major(u, rows, n, FS_F64), R = fs_row_major(r, n, n, FS_F64);
    const int64_t k = which == SVD ? n : 2;
    const fs_matrix U = fs_row_major(u, rows, k, FS_F64), V = fs_row_major(v, n, k, FS_F64);
    fs_lstsq_options lstsq = FS_LSTSQ_INIT;
    fs_qr_options qr = FS_QR_INIT;
    fs_svd_options svd = FS_SVD_INIT;
    fs_leverage_options leverage = FS_LEVERAGE_INIT;
    lstsq.ranks = qr.ranks = svd.ranks = leverage.ranks = over;
    lstsq.lambda = lambda;
    lstsq.method = which == LSTSQ_ITERATED ? FS_LSTSQ_ITERATE : which == LSTSQ_DIRECT ? FS_LSTSQ_DIRECT : FS_LSTSQ_AUTO;
    qr.pivot = which == QR_PIVOTED;
    svd.rank = which == SVD ? 0 : 2;
    svd.oversampling = 2;
    if (which == SVD_RANGE) svd.power_steps = 5;
    svd.one_read = which == PCA_ONE_READ;
    leverage.exact = which == LEVERAGE_EXACT;
    switch (which) {
    case LSTSQ:
    case LSTSQ_ITERATED:
    case LSTSQ_DIRECT: return fs_lstsq(with, A, &B, &lstsq, &X, NULL);
    case QR: return fs_qr(with, A, &qr, &Q, &R, NULL, NULL);
    case QR_PIVOTED: return fs_qr(with, A, &qr, &Q, &R, pivots, NULL);
    case SVD:
    case SVD_RANGE: return fs_svd(with, A, &svd, &U, s, &V, NULL);
    case PCA_ONE_READ: return fs_pca(with, A, &svd, NULL, &U, s, &V, NULL);
    default: return fs_leverage(with, A, &leverage, scores, NULL);
    }
}

static fs_operand my_rows(fs_matrix *to)
{
    fs_operand A = FS_OPERAND_INIT;
    *to = fs_row_major(a + row0 * N, rows, N, FS_F64);
    A.dense = to;
    return A;
}

static void works_again(solver which)
{
    fs_matrix dense;
    const fs_operand A = my_rows(&dense);
    MUST(run(which, ctx, &A, &spread, N, 0));
}

static void a_wrong_argument_on_one_rank(void)
{
    for (int which = 0; which < SOLVERS; which++) {
        fs_matrix dense;
        fs_operand A = my_rows(&dense), none = FS_OPERAND_INIT;
        const int is_bad = rank == bad;
        REFUSED(run((solver)which, ctx, is_bad ? NULL : &A, &spread, N, 0), FS_EINVAL, named, "A is NULL");
        REFUSED(run((solver)which, ctx, is_bad ? &none : &A, &spread, N, 0), FS_EINVAL, named, "it must be one");
        REFUSED(run((solver)which, is_bad ? NULL : ctx, &A, &spread, N, 0), FS_EINVAL, named, "ctx is NULL");
        fs_ranks late = spread;
        if (is_bad) late.row0 = D - rows + 1;
        REFUSED(run((solver)which, ctx, &A, &late, N, 0), FS_EINVAL, named, "do not fit ranks.rows = 240");
        if (is_bad) dense.data = NULL;
        REFUSED(run((solver)which, ctx, &A, &spread, N, 0), FS_EINVAL, named, "its data is NULL");
        A = my_rows(&dense);
        if (which <= LSTSQ_DIRECT)
            REFUSED(run((solver)which, ctx, &A, &spread, N, is_bad ? -1 : 0), FS_EINVAL, named, "lambda = -1");
        if (which == LEVERAGE) continue;
        /* Outputs have the wrong size where one rank has another A. */
        if (is_bad) dense.cols = N - 1, dense.col_stride = 1, dense.row_stride = N;
        if (which < LEVERAGE) REFUSED(run((solver)which, ctx, &A, &spread, N, 0), FS_EINVAL, named, "it must be");
        works_again((solver)which);
    }
}

static void ranks_that_ask_for_different_things(void)
{
    if (ranks == 1) return;
    char words[80];
    fs_matrix dense;
    fs_operand A = my_rows(&dense);
    const int is_bad = rank == bad;
    snprintf(words, sizeof words, "columns of A is %d here and %d where row 0 of A is", N - 1, N);
    for (int which = 0; which < SOLVERS; which++) {
        if (which == SVD) continue; /* another rank of all, too */
        if (is_bad) dense.cols = N - 1;
        REFUSED(run((solver)which, ctx, &A, &spread, is_bad ? N - 1 : N, 0), FS_EINVAL, named, words);
        dense.cols = N;
    }
    REFUSED(run(LSTSQ, ctx, &A, &spread, N, is_bad ? 0.5 : 0.25), FS_EINVAL, named,
            "options.lambda is 0.5 here and 0.25");
    REFUSED(run(is_bad ? LSTSQ_ITERATED : LSTSQ, ctx, &A, &spread, N, 0), FS_EINVAL, named, "options.method is 1");
    REFUSED(run(is_bad ? QR_PIVOTED : QR, ctx, &A, &spread, N, 0), FS_EINVAL, named, "options.pivot is 1 here and 0");
    REFUSED(run(is_bad ? SVD : SVD_RANGE, ctx, &A, &spread, N, 0), FS_EINVAL, named, "options.rank is 0 here and 2");
    REFUSED(run(is_bad ? LEVERAGE_EXACT : LEVERAGE, ctx, &A, &spread, N, 0), FS_EINVAL, named, "options.exact is 1");
    REFUSED(run(is_bad ? LEVERAGE : QR, ctx, &A, &spread, N, 0), FS_EINVAL, named, "the function");
    REFUSED(run(is_bad ? PCA_ONE_READ : SVD_RANGE, ctx, &A, &spread, N, 0), FS_EINVAL, named, "the function");
    static float single[D * N];
    if (is_bad) dense = fs_row_major(single, rows, N, FS_F32);
    REFUSED(run(QR, ctx, &A, &spread, N, 0), FS_EINVAL, named, "the type of A is 1 here and 2");
    part sparse;
    const fs_matrix all = fs_row_major(a, D, N, FS_F64);
    part_make(&sparse, SPARSE_ROWS, &all, row0, rows);
    A = my_rows(&dense);
    REFUSED(run(LSTSQ, ctx, is_bad ? &sparse.operand : &A, &spread, N, 0), FS_EINVAL, named, "the kind of A");
    part_free(&sparse);
    /* Rows that fs_mpi_ranks has not seen. */
    fs_ranks fewer = spread;
    dense.rows = is_bad ? rows - 1 : rows;
    const int64_t kept = rows;
    rows = dense.rows;
    REFUSED(run(LEVERAGE, ctx, &A, &fewer, N, 0), FS_EINVAL, all_named, "239 rows together", "ranks.rows is 240");
    rows = kept;
    dense.rows = rows;
    fewer.row0 = 0;
    REFUSED(run(LEVERAGE, ctx, &A, &fewer, N, 0), FS_EINVAL, all_named, "row 0 of A is in");
    /* A sum of another length: the only symptom when the program of one caller takes another path. */
    double numbers[2] = {1, 2};
    REFUSED(spread.sum(spread.user, numbers, is_bad ? 2 : 1, 0), FS_EINVAL, "ranks sum 1 and 2 numbers");
    works_again(LSTSQ);
}

static void rows_that_are_not_one_ranks_each(void)
{
    fs_ranks made = FS_RANKS_INIT;
    char words[80];
    REFUSED(fs_mpi_ranks(mpi, row0, rows, rank == bad ? NULL : &made), FS_EINVAL, named, "out is NULL");
    REFUSED(fs_mpi_ranks(mpi, rank == bad ? -1 : row0, rows, &made), FS_EINVAL, named, "rows from row -1 on");
    REFUSED(fs_mpi_ranks(mpi, row0, rank == bad ? -1 : rows, &made), FS_EINVAL, named, "-1 rows");
    REFUSED(fs_mpi_ranks(mpi, 5, 0, &made), FS_EINVAL, "no rank has a row");
    REFUSED(fs_mpi_ranks(mpi, row0 + 3, rows, &made), FS_EINVAL, "rows 0 to 2 of A are on no rank, and rank 0");
    if (ranks > 1) {
        const int64_t first = (int64_t)D * bad / ranks;
        snprintf(words, sizeof words, "rows %d to %d of A are on no rank, and rank %d", (int)first, (int)first, bad);
        REFUSED(fs_mpi_ranks(mpi, rank == bad ? row0 + 1 : row0, rank == bad ? rows - 1 : rows, &made), FS_EINVAL,
                words);
        REFUSED(fs_mpi_ranks(mpi, rank == bad ? row0 - 1 : row0, rows, &made), FS_EINVAL, "no row may be on two ranks");
        fs_spec spec = FS_SPEC_INIT;
        spec.d = D, spec.k = 64;
        fs_sketch *S = sketch(&spec);
        fs_matrix dense, Y = fs_row_major(r, 64, N, FS_F64);
        my_rows(&dense);
        Y.data = room(64 * N, 8);
        const fs_result result = rank == bad ? fs_mpi_apply(mpi, S, row0, 1.0, &dense, 0.0, &Y)
                                             : fs_mpi_ranks(mpi, row0, rows, &made);
        EXPECT(result == FS_EINVAL && strstr(fs_error_message(), "has family = "), "%s", fs_error_message());
        free(Y.data);
        fs_sketch_destroy(S);
    }
    EXPECT(made.rows == 0 && !made.sum, "a call that failed wrote to *out");
    MUST(fs_mpi_ranks(mpi, row0, rows, &made));
}

static void elements_that_are_not_finite_on_one_rank(void)
{
    const double was = a[(D / 2) * N + 1], side = b[D / 2];
    for (int which = 0; which < SOLVERS; which++) {
        a[(D / 2) * N + 1] = which % 2 ? INFINITY : NAN;
        fs_matrix dense;
        const fs_operand A = my_rows(&dense);
        for (int j = 0; j < N; j++) x[j] = 7;
        REFUSED(run((solver)which, ctx, &A, &spread, N, 0), FS_EINVAL, all_named, "finite");
        for (int j = 0; j < N; j++) EXPECT(x[j] == 7, "X was written by a call that failed");
        a[(D / 2) * N + 1] = was;
        if (which <= LSTSQ_DIRECT) {
            b[D / 2] = NAN;
            REFUSED(run((solver)which, ctx, &A, &spread, N, 0), FS_EINVAL, all_named, "finite");
            b[D / 2] = side;
        }
        works_again((solver)which);
    }
}

/* The n-th allocation of one rank fails, for every n. */
static void memory_that_one_rank_cannot_have(void)
{
    const int stride = ranks > 2 ? 5 : 1;
    for (int which = 0; which < SOLVERS; which++) {
        int done = 0, refusals = 0;
        for (int left = which % stride; !done; left += stride) {
            scarce memory = {1 << 20, 0};
            fs_context_options where = FS_CONTEXT_INIT;
            fs_context *poor = NULL;
            where.backend = FS_BACKEND_CPU, where.threads = 1;
            if (rank == bad) where.allocator = scarce_allocator(&memory);
            MUST(fs_context_create(&poor, &where));
            memory.left = left;
            fs_matrix dense;
            const fs_operand A = my_rows(&dense);
            const fs_result result = run((solver)which, poor, &A, &spread, N, 0);
            done = result == FS_OK;
            if (!done) REFUSED(result, FS_ENOMEM, named, "memory");
            refusals += !done;
            fs_context_destroy(poor);
            EXPECT(memory.live == 0, "solver %d: %d pieces of memory were not released", which, memory.live);
            EXPECT(left < 200, "solver %d fails with memory for %d pieces", which, left);
        }
        EXPECT(refusals > 1, "solver %d takes no memory", which);
    }
    /* The memory of the sums. */
    scarce memory = {2, 0};
    fs_mpi_options options = FS_MPI_INIT;
    fs_mpi *made = NULL;
    fs_ranks over = FS_RANKS_INIT;
    if (rank == bad) options.allocator = scarce_allocator(&memory);
    MUST(fs_mpi_create(&made, MPI_COMM_WORLD, ctx, &options));
    MUST(fs_mpi_ranks(made, row0, rows, &over));
    fs_matrix dense;
    const fs_operand A = my_rows(&dense);
    if (ranks > 1) REFUSED(run(LSTSQ, ctx, &A, &over, N, 0), FS_ENOMEM, named, "parts of a sum");
    memory.left = 100;
    MUST(run(LSTSQ, ctx, &A, &over, N, 0));
    fs_mpi_destroy(made);
    EXPECT(memory.live == 0, "%d pieces of memory were not released", memory.live);
}

/* A file that ends early in read `at` on one rank: each read of each solver. */
static void slices_that_fail_in_a_later_read(void)
{
    const fs_matrix all = fs_row_major(a, D, N, FS_F64);
    int latest = 0;
    for (int which = 0; which < SOLVERS; which++)
        for (int at = 1;; at++) {
            part mine;
            part_make(&mine, SLICES, &all, row0, rows);
            if (rank == bad) mine.fails_at = at;
            const fs_result result = run((solver)which, ctx, &mine.operand, &spread, N, 0);
            int ended = result == FS_OK;
            char words[64];
            snprintf(words, sizeof words, "rows.npy ends at row 37 in read %d", at);
            if (!ended) REFUSED(result, FS_EFILE, named, words);
            part_free(&mine);
            if (ended) break;
            latest = at > latest ? at : latest;
        }
    EXPECT(latest >= 7, "the latest read that failed is %d", latest);
    works_again(LSTSQ_ITERATED);
}

static void a_rank_that_dies(void)
{
    const fs_matrix all = fs_row_major(a, D, N, FS_F64);
    part mine;
    part_make(&mine, SLICES, &all, row0, rows);
    if (rank == bad) mine.dies_at = 4;
    fs_result result = run(LSTSQ_ITERATED, ctx, &mine.operand, &spread, N, 0);
    (void)result;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    bad = ranks / 2;
    snprintf(named, sizeof named, "rank %d: ", bad);
    all_named = ranks > 1 ? "all ranks: " : "rank 0: ";
    row0 = (int64_t)D * rank / ranks, rows = (int64_t)D * (rank + 1) / ranks - row0;
    for (int i = 0; i < D * N; i++) a[i] = real_at(1, i) * pow(0.1, i % N);
    for (int i = 0; i < D; i++) b[i] = real_at(2, i);
    ctx = cpu();
    double one = 2, got;
    fs_matrix M = fs_row_major(&one, 1, 1, FS_F64), X = fs_row_major(&got, 1, 1, FS_F64);
    fs_operand A = FS_OPERAND_INIT;
    A.dense = &M;
    const int here = fs_mpi_agree(MPI_COMM_WORLD, fs_lstsq(ctx, &A, &M, NULL, &X, NULL)) == FS_OK;
    mpi = make_ranks(ctx, FS_MPI_ALL, 0, 1, 0);
    spread = (fs_ranks)FS_RANKS_INIT;
    MUST(fs_mpi_ranks(mpi, row0, rows, &spread));
    if (!here) {
        if (rank == 0) printf("skipped: %s\n", fs_error_message());
    } else if (argc > 1) {
        a_rank_that_dies();
    } else {
        a_wrong_argument_on_one_rank();
        ranks_that_ask_for_different_things();
        rows_that_are_not_one_ranks_each();
        elements_that_are_not_finite_on_one_rank();
        memory_that_one_rank_cannot_have();
        slices_that_fail_in_a_later_read();
    }
    fs_mpi_destroy(mpi);
    fs_context_destroy(ctx);
    end("solver_faults");
    return here ? 0 : 77;
}
