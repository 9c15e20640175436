/* solvers.c - a solver on rows that are spread over ranks gives what one process gives: to rounding, and on every rank
 * and in every repetition to the bit.  Every second rank uses the linear algebra of another processor, so that equal
 * bits follow from the sums that ranks exchange, not from equal code. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

enum { D = 400, N = 10, MOST = 3 };
static fs_context *ctx;
static double a[D * N], b[D * MOST];
static float a32[D * N], b32[D * MOST];

/* A whose singular values fall over four decades, rank r where columns from r on depend on others. */
static void fill(int64_t r)
{
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < N; j++)
            a[i * N + j] = j < r ? pow(10, -0.4 * (double)j) * real_at(1, i * N + j)
                                 : 0.5 * a[i * N + j - r] + 0.3 * a[i * N + 1];
    for (int64_t i = 0; i < D * MOST; i++) b[i] = real_at(2, i);
    for (int64_t i = 0; i < D * N; i++) a32[i] = (float)a[i];
    for (int64_t i = 0; i < D * MOST; i++) b32[i] = (float)b[i];
}

/* Rows of d as an fs_ranks. */
static fs_ranks spread_rows(fs_mpi *m, distribution how, int64_t d, int64_t *row0, int64_t *rows)
{
    fs_ranks made = FS_RANKS_INIT;
    rows_of(how, d, row0, rows);
    MUST(fs_mpi_ranks(m, *row0, *rows, &made));
    EXPECT(made.rows == d && made.row0 == (*rows ? *row0 : 0), "rows %d", (int)made.rows);
    return made;
}

/* Ways to spread rows: two of them for a case on two ranks, one on others, and the next ones for the next case. */
static int first_of(void)
{
    static int turn;
    return ranks == 2 ? turn++ % 2 : turn++ % DISTRIBUTIONS;
}
static int step(void) { return ranks == 2 ? 2 : DISTRIBUTIONS; }

/* least squares -------------------------------------------------------------------------------------------------- */

typedef struct problem {
    int64_t d, m;
    fs_dtype dtype;
    double lambda;
    fs_lstsq_method method;
    int64_t rank;
} problem;

static void solve(const problem *p, const fs_ranks *spread, const fs_operand *A, int64_t row0, int64_t rows, double *x,
                  fs_lstsq_report *report)
{
    const int f64 = p->dtype == FS_F64;
    fs_matrix B = fs_row_major(f64 ? (void *)(b + row0 * p->m) : (void *)(b32 + row0 * p->m), rows, p->m, p->dtype);
    fs_matrix X = fs_row_major(x, N, p->m, FS_F64);
    fs_lstsq_options options = FS_LSTSQ_INIT;
    options.lambda = p->lambda, options.method = p->method, options.ranks = spread, options.seed = 3;
    *report = (fs_lstsq_report)FS_LSTSQ_REPORT_INIT;
    MUST(fs_lstsq(ctx, A, &B, &options, &X, report));
    report->seconds = report->sketch_seconds = 0;
}

static void least_squares_of(const problem *p, fs_mpi *m, distribution how, form of)
{
    double want[N * MOST], x[N * MOST], again[N * MOST];
    fs_lstsq_report whole, told, second;
    char what[120];
    snprintf(what, sizeof what, "lstsq: %d rows, %d sides, %s, lambda %g, method %d, rank %d, spread %d, form %d",
             (int)p->d, (int)p->m, fs_dtype_name(p->dtype), p->lambda, (int)p->method, (int)p->rank, (int)how, (int)of);
    const fs_matrix all = fs_row_major(p->dtype == FS_F64 ? (void *)a : (void *)a32, p->d, N, p->dtype);
    int64_t row0, rows;
    part one, mine;
    part_make(&one, of, &all, 0, p->d);
    solve(p, NULL, &one.operand, 0, p->d, want, &whole);
    fs_ranks spread = spread_rows(m, how, p->d, &row0, &rows);
    part_make(&mine, of, &all, row0, rows);
    solve(p, &spread, &mine.operand, row0, rows, x, &told);
    solve(p, &spread, &mine.operand, row0, rows, again, &second);
    const size_t bytes = (size_t)(N * p->m) * sizeof *x;
    expect_same(what, x, bytes);
    expect_same(what, &told, sizeof told);
    EXPECT(memcmp(x, again, bytes) == 0, "%s: other bits when repeated", what);
    EXPECT(memcmp(&told, &second, sizeof told) == 0, "%s: another report when repeated", what);
    EXPECT(told.converged && told.rank == p->rank && told.rank == whole.rank && told.k == whole.k &&
               told.method == whole.method,
           "%s: rank %d, %d, method %d, %d, error %g", what, (int)told.rank, (int)whole.rank, (int)told.method,
           (int)whole.method, told.backward_error);
    expect_near(what, x, want, N * p->m, p->dtype == FS_F64 ? 1e-9 : 2e-4);
    part_free(&one), part_free(&mine);
}

static void least_squares(void)
{
    const problem problems[] = {
        {D, 1, FS_F64, 0, FS_LSTSQ_AUTO, N},     {D, 3, FS_F64, 0.5, FS_LSTSQ_AUTO, N},
        {D, 3, FS_F64, 0, FS_LSTSQ_ITERATE, N},  {D, 1, FS_F64, 0.5, FS_LSTSQ_ITERATE, N},
        {D, 1, FS_F64, 0, FS_LSTSQ_NORMAL, N},   {D, 2, FS_F64, 0, FS_LSTSQ_DIRECT, N},
        {D, 2, FS_F32, 0, FS_LSTSQ_AUTO, N},     {D, 2, FS_F32, 0, FS_LSTSQ_ITERATE, N},
        {D, 1, FS_F64, 0, FS_LSTSQ_ITERATE, 7},  {D, 1, FS_F64, 0, FS_LSTSQ_AUTO, 7},
        {5 * N, 1, FS_F64, 0, FS_LSTSQ_AUTO, N}, {5 * N, 2, FS_F64, 0, FS_LSTSQ_AUTO, 7},
        {N - 3, 1, FS_F64, 0, FS_LSTSQ_AUTO, 7},
    };
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        fs_mpi *m = make_ranks(ctx, FS_MPI_ALL, 0, i % 2 == 0, 0);
        fill(problems[i].d < N ? N : problems[i].rank);
        for (int how = first_of(); how < DISTRIBUTIONS; how += step())
            least_squares_of(&problems[i], m, (distribution)how, DENSE_ROWS);
        fs_mpi_destroy(m);
    }
    fill(N);
    fs_mpi *m = make_ranks(ctx, FS_MPI_ALL, 0, 1, 0);
    for (int of = DENSE_COLUMNS; of < FORMS; of++)
        for (int how = first_of(); how < DISTRIBUTIONS; how += step())
            least_squares_of(&problems[0], m, (distribution)how, (form)of);
    fs_mpi_destroy(m);
}

/* Slices of one rank are sparse, those of the others dense: all take the way that a sparse A has. */
static void one_rank_has_sparse_slices(void)
{
    fill(N);
    const problem p = {D, 1, FS_F64, 0, FS_LSTSQ_AUTO, N};
    fs_mpi *m = make_ranks(ctx, FS_MPI_ALL, 0, 1, 0);
    int64_t row0, rows;
    double want[N], x[N];
    fs_lstsq_report told;
    const fs_matrix all = fs_row_major(a, D, N, FS_F64);
    part one, mine;
    part_make(&one, SPARSE_SLICES, &all, 0, D);
    solve(&p, NULL, &one.operand, 0, D, want, &told);
    fs_ranks spread = spread_rows(m, EVEN, D, &row0, &rows);
    part_make(&mine, rank == ranks - 1 ? SPARSE_SLICES : SLICES, &all, row0, rows);
    solve(&p, &spread, &mine.operand, row0, rows, x, &told);
    expect_same("mixed slices", x, sizeof x);
    expect_near("mixed slices", x, want, N, 1e-9);
    EXPECT(told.method == FS_LSTSQ_ITERATE, "method %d", (int)told.method);
    part_free(&one), part_free(&mine);
    fs_mpi_destroy(m);
}

/* QR --------------------------------------------------------------------------------------------------------------- */

static void factor(int pivot, const fs_ranks *spread, const fs_operand *A, int64_t rows, double *q, double *r,
                   int64_t *pivots, fs_qr_report *report)
{
    fs_matrix Q = fs_row_major(q, rows, N, FS_F64), R = fs_row_major(r, N, N, FS_F64);
    fs_qr_options options = FS_QR_INIT;
    options.pivot = pivot, options.ranks = spread;
    *report = (fs_qr_report)FS_QR_REPORT_INIT;
    MUST(fs_qr(ctx, A, &options, q ? &Q : NULL, &R, pivot ? pivots : NULL, report));
    report->seconds = 0;
}

static void factors_of(int pivot, int64_t d, int64_t r, fs_mpi *m, distribution how, form of)
{
    static double q[D * N], want_q[D * N], other_q[D * N];
    double R[N * N], want[N * N], again[N * N];
    int64_t pivots[N] = {0}, want_pivots[N] = {0}, row0, rows;
    fs_qr_report whole, told, second;
    char what[80];
    snprintf(what, sizeof what, "qr: pivot %d, %d rows, rank %d, spread %d, form %d", pivot, (int)d, (int)r, (int)how,
             (int)of);
    const fs_matrix all = fs_row_major(a, d, N, FS_F64);
    part one, mine;
    part_make(&one, of, &all, 0, d);
    factor(pivot, NULL, &one.operand, d, want_q, want, want_pivots, &whole);
    fs_ranks spread = spread_rows(m, how, d, &row0, &rows);
    part_make(&mine, of, &all, row0, rows);
    factor(pivot, &spread, &mine.operand, rows, q, R, pivots, &told);
    factor(pivot, &spread, &mine.operand, rows, other_q, again, pivots, &second);
    expect_same(what, R, sizeof R), expect_same(what, pivots, sizeof pivots), expect_same(what, &told, sizeof told);
    EXPECT(memcmp(R, again, sizeof R) == 0 && memcmp(q, other_q, (size_t)(rows * N) * sizeof *q) == 0 &&
               memcmp(&told, &second, sizeof told) == 0,
           "%s: other bits when repeated", what);
    EXPECT(told.rank == r && told.rank == whole.rank && told.k == whole.k && told.orthogonality < 1e-13,
           "%s: rank %d, orthogonality %g", what, (int)told.rank, told.orthogonality);
    /* Beyond the rank, the order of pivots is one of rounding errors. */
    for (int64_t i = 0; i < N; i++) expect_near(what, R + i * N, want + i * N, r, 1e-10);
    expect_near(what, q, want_q + row0 * N, rows * N, 1e-10);
    EXPECT(memcmp(pivots, want_pivots, (size_t)r * sizeof *pivots) == 0, "%s: other pivots", what);
    factor(pivot, &spread, &mine.operand, rows, NULL, again, pivots, &second);
    EXPECT(memcmp(R, again, sizeof R) == 0, "%s: another R without Q", what);
    part_free(&one), part_free(&mine);
}

static void factors(void)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        fs_mpi *m = make_ranks(ctx, FS_MPI_ALL, 0, ordered, 0);
        for (int pivot = 0; pivot < 2; pivot++)
            for (int how = first_of(); how < DISTRIBUTIONS; how += step()) {
                fill(N);
                factors_of(pivot, D, N, m, (distribution)how, DENSE_ROWS);
                factors_of(pivot, N, N, m, (distribution)how, DENSE_ROWS);
                factors_of(pivot, D, N, m, (distribution)how, (form)(DENSE_COLUMNS + how));
                factors_of(pivot, D, N, m, (distribution)how, SPARSE_SLICES);
                if (!pivot) continue;
                fill(6);
                factors_of(pivot, D, 6, m, (distribution)how, DENSE_ROWS);
            }
        fs_mpi_destroy(m);
    }
}

/* singular values ---------------------------------------------------------------------------------------------------- */

typedef struct values {
    double s[N], v[N * N], mean[N], u[D * N];
    fs_svd_report report;
} values;

static void decompose(fs_svd_options options, int centred, const fs_ranks *spread, const fs_operand *A, int64_t rows,
                      int with_u, values *to)
{
    const int64_t r = options.rank ? options.rank : N;
    memset(to, 0, sizeof *to);
    fs_matrix U = fs_row_major(to->u, rows, r, FS_F64), V = fs_row_major(to->v, N, r, FS_F64);
    options.ranks = spread;
    to->report = (fs_svd_report)FS_SVD_REPORT_INIT;
    MUST(centred ? fs_pca(ctx, A, &options, to->mean, with_u ? &U : NULL, to->s, &V, &to->report)
                 : fs_svd(ctx, A, &options, with_u ? &U : NULL, to->s, &V, &to->report));
    to->report.seconds = 0;
}

static void values_of(int kind, int centred, int with_u, fs_mpi *m, distribution how, form of)
{
    static values want, got, again;
    fs_svd_options options = FS_SVD_INIT;
    options.rank = kind ? 3 : 0, options.oversampling = 3, options.power_steps = kind == 1 ? 1 : -1;
    options.one_read = kind == 2;
    const int64_t r = kind ? 3 : N;
    int64_t row0, rows;
    char what[80];
    snprintf(what, sizeof what, "svd: kind %d, centred %d, U %d, spread %d, form %d", kind, centred, with_u, (int)how,
             (int)of);
    const fs_matrix all = fs_row_major(a, D, N, FS_F64);
    part one, mine;
    part_make(&one, of, &all, 0, D);
    decompose(options, centred, NULL, &one.operand, D, with_u, &want);
    fs_ranks spread = spread_rows(m, how, D, &row0, &rows);
    part_make(&mine, of, &all, row0, rows);
    decompose(options, centred, &spread, &mine.operand, rows, with_u, &got);
    decompose(options, centred, &spread, &mine.operand, rows, with_u, &again);
    EXPECT(memcmp(&got, &again, sizeof got) == 0, "%s: other bits when repeated", what);
    expect_same(what, got.s, sizeof got.s), expect_same(what, got.v, sizeof got.v);
    expect_same(what, got.mean, sizeof got.mean), expect_same(what, &got.report, sizeof got.report);
    expect_near(what, got.s, want.s, r, 1e-10);
    expect_near(what, got.v, want.v, N * r, 1e-7);
    expect_near(what, got.mean, want.mean, N, 1e-13);
    expect_near(what, got.u, want.u + row0 * r, rows * r, 1e-7);
    expect_near(what, &got.report.norm, &want.report.norm, 1, 1e-12);
    expect_near(what, &got.report.error, &want.report.error, 1, 1e-6);
    EXPECT(got.report.reads == want.report.reads && (kind != 2 || got.report.reads == 1), "%s: %d reads", what,
           (int)got.report.reads);
    part_free(&one), part_free(&mine);
}

static void singular_values(void)
{
    fill(N);
    for (int ordered = 0; ordered < 2; ordered++) {
        fs_mpi *m = make_ranks(ctx, FS_MPI_ALL, 0, ordered, 0);
        for (int kind = 0; kind < 3; kind++)
            for (int centred = 0; centred < 2; centred++)
                for (int how = first_of(); how < DISTRIBUTIONS; how += step()) {
                    values_of(kind, centred, 1, m, (distribution)how, DENSE_ROWS);
                    values_of(kind, centred, 0, m, (distribution)how, ordered ? SPARSE_ROWS : SLICES);
                }
        fs_mpi_destroy(m);
    }
}

/* leverage scores ------------------------------------------------------------------------------------------------------ */

static void scores_of(int exact, int64_t r, fs_mpi *m, distribution how, form of)
{
    static double want[D], got[D], again[D];
    int64_t row0, rows;
    fs_leverage_report whole = FS_LEVERAGE_REPORT_INIT, told = whole, second = whole;
    fs_leverage_options options = FS_LEVERAGE_INIT;
    char what[80];
    snprintf(what, sizeof what, "leverage: exact %d, rank %d, spread %d, form %d", exact, (int)r, (int)how, (int)of);
    const fs_matrix all = fs_row_major(a, D, N, FS_F64);
    part one, mine;
    part_make(&one, of, &all, 0, D);
    options.exact = exact, options.error = 0.3;
    MUST(fs_leverage(ctx, &one.operand, &options, want, &whole));
    fs_ranks spread = spread_rows(m, how, D, &row0, &rows);
    options.ranks = &spread;
    part_make(&mine, of, &all, row0, rows);
    MUST(fs_leverage(ctx, &mine.operand, &options, got, &told));
    MUST(fs_leverage(ctx, &mine.operand, &options, again, &second));
    told.seconds = second.seconds = 0;
    expect_same(what, &told, sizeof told);
    EXPECT(memcmp(got, again, (size_t)rows * sizeof *got) == 0 && memcmp(&told, &second, sizeof told) == 0,
           "%s: other bits when repeated", what);
    expect_near(what, got, want + row0, rows, 1e-9);
    expect_near(what, &told.sum, &whole.sum, 1, 1e-9), expect_near(what, &told.largest, &whole.largest, 1, 1e-9);
    EXPECT(told.row == whole.row && told.rank == r && (!exact || fabs(told.sum - (double)r) < 1e-9),
           "%s: row %d, not %d; rank %d, sum %.17g", what, (int)told.row, (int)whole.row, (int)told.rank, told.sum);
    part_free(&one), part_free(&mine);
}

static void leverage_scores(void)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        fs_mpi *m = make_ranks(ctx, FS_MPI_ALL, 0, ordered, 0);
        for (int exact = 0; exact < 2; exact++)
            for (int how = first_of(); how < DISTRIBUTIONS; how += step()) {
                fill(N);
                scores_of(exact, N, m, (distribution)how, DENSE_ROWS);
                scores_of(exact, N, m, (distribution)how, (form)(DENSE_COLUMNS + how));
                fill(6);
                scores_of(exact, 6, m, (distribution)how, DENSE_ROWS);
            }
        fs_mpi_destroy(m);
    }
}

/* sums --------------------------------------------------------------------------------------------------------------- */

/* Numbers that an f64 sum does not round, and numbers that it does; around the lengths at which the algorithm
 * changes. */
static void sums_are_right_and_the_same(void)
{
    const int64_t gathered = 1 << 11, piece = 1 << 22;
    const int64_t counts[] = {0, 1, gathered, gathered + 1, 3 * gathered, piece + 5};
    double *numbers = room(piece + 5, sizeof *numbers), *second = room(piece + 5, sizeof *second);
    for (int ordered = 0; ordered < 2; ordered++) {
        fs_mpi *m = make_ranks(ctx, FS_MPI_ALL, 0, ordered, 0);
        fs_ranks spread = FS_RANKS_INIT;
        MUST(fs_mpi_ranks(m, rank, 1, &spread));
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            const int64_t count = counts[c];
            for (int64_t i = 0; i < count; i++) numbers[i] = whole_at(5, i) + (double)(rank * i % 1009);
            MUST(spread.sum(spread.user, numbers, count, 0));
            for (int64_t i = 0; i<count; i += count> piece ? 101 : 1) {
                double want = ranks * whole_at(5, i);
                for (int r = 0; r < ranks; r++) want += (double)(r * i % 1009);
                EXPECT(numbers[i] == want, "number %d of %d is %g, not %g", (int)i, (int)count, numbers[i], want);
            }
            for (int64_t i = 0; i < count; i++) numbers[i] = second[i] = real_at(6 + (uint64_t)rank, i);
            MUST(spread.sum(spread.user, numbers, count, 0));
            MUST(spread.sum(spread.user, second, count, 0));
            EXPECT(memcmp(numbers, second, (size_t)count * sizeof *numbers) == 0, "other bits when repeated");
            expect_same("a sum", numbers, (size_t)count * sizeof *numbers);
            if (!ordered) continue;
            for (int64_t i = count % 101; i < count; i += 101) {
                double want = real_at(6, i);
                for (int r = 1; r < ranks; r++) want += real_at(6 + (uint64_t)r, i);
                EXPECT(numbers[i] == want, "number %d of %d is not in the order of ranks", (int)i, (int)count);
            }
        }
        fs_mpi_destroy(m);
    }
    free(numbers), free(second);
}

int main(int argc, char **argv)
{
    /* Before OpenBLAS is loaded. */
    begin(&argc, &argv);
    if (rank % 2) setenv("OPENBLAS_CORETYPE", "Nehalem", 1);
    ctx = cpu();
    double x;
    fs_matrix one = fs_row_major(&(double){2}, 1, 1, FS_F64), X = fs_row_major(&x, 1, 1, FS_F64);
    fs_operand A = FS_OPERAND_INIT;
    A.dense = &one;
    const int here = fs_mpi_agree(MPI_COMM_WORLD, fs_lstsq(ctx, &A, &one, NULL, &X, NULL)) == FS_OK;
    if (here) {
        sums_are_right_and_the_same();
        least_squares();
        one_rank_has_sparse_slices();
        factors();
        singular_values();
        leverage_scores();
    } else if (rank == 0) {
        printf("skipped: %s\n", fs_error_message());
    }
    fs_context_destroy(ctx);
    end("solvers");
    return here ? 0 : 77;
}
