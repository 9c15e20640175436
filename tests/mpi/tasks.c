/* tasks.c - tasks of a matrix that is spread over ranks are those of the whole: on integers the sums are the same
 * bits, so the results are too, on every rank; and failures reach all ranks.  Skipped with a message where there is no
 * OpenBLAS. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { D = 600, N = 6, RHS = 2, K = 64 };
static fs_context *ctx;
static fs_sketch *S;
static float a[D * N], b[D * RHS];
static int64_t row0, rows;

static fs_workspace *workspace(fs_result *result)
{
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    fs_workspace *w = NULL;
    shape.k = K, shape.n = N, shape.rhs = RHS;
    *result = fs_workspace_create(&w, ctx, &shape);
    return w;
}

static void expect_bits(const char *what, const double *got, const double *want, int count)
{
    for (int i = 0; i < count; i++)
        EXPECT(got[i] == want[i], "%s: element %d is %.17g, not %.17g", what, i, got[i], want[i]);
}

static void results_are_those_of_the_whole_matrix(void)
{
    fs_result made;
    fs_workspace *w = workspace(&made);
    MUST(made);
    fs_matrix whole_A = fs_row_major(a, D, N, FS_F32), whole_B = fs_row_major(b, D, RHS, FS_F32);
    fs_matrix A = fs_row_major(a + row0 * N, rows, N, FS_F32), B = fs_row_major(b + row0 * RHS, rows, RHS, FS_F32);
    double g[N * N], x[N * RHS], r[N * RHS], got[N * N];
    fs_matrix G = fs_row_major(g, N, N, FS_F64), X = fs_row_major(x, N, RHS, FS_F64);
    fs_matrix R = fs_row_major(r, N, RHS, FS_F64);
    fs_fit_report fit = FS_FIT_REPORT_INIT, told;
    MUST(fs_task_sketch(w, S, &whole_A, &whole_B));
    MUST(fs_gram(w, S, &G, NULL));
    MUST(fs_solve(w, 0.0, &X, &fit));
    MUST(fs_ridge(w, 2.5, &R, NULL));
    for (int output = FS_MPI_ALL; output <= FS_MPI_ROOT; output++)
        for (int ordered = 0; ordered < 2; ordered++) {
            const int root = (ordered + 1) % ranks, have = output == FS_MPI_ALL || rank == root;
            fs_mpi *made_ranks = make_ranks(ctx, (fs_mpi_output)output, root, ordered, 0);
            fs_workspace *own = rank == root ? w : NULL;
            fs_matrix out = fs_row_major(got, N, N, FS_F64), *to = have ? &out : NULL;
            fs_gram_report gram = FS_GRAM_REPORT_INIT;
            MUST(fs_mpi_gram(made_ranks, own, S, row0, &A, to, have ? &gram : NULL));
            if (have) {
                expect_bits("gram", got, g, N * N);
                EXPECT(gram.error > 0 && gram.sketch_seconds > 0, "error %g, %g s", gram.error, gram.sketch_seconds);
            }
            out = fs_row_major(got, N, RHS, FS_F64);
            told = (fs_fit_report)FS_FIT_REPORT_INIT;
            MUST(fs_mpi_solve(made_ranks, own, S, row0, &A, &B, 0.0, to, &told));
            if (have) expect_bits("solve", got, x, N * RHS);
            if (have) EXPECT(told.rank == N && told.residual == fit.residual, "rank %lld", (long long)told.rank);
            if (have)
                EXPECT(told.confidence == fit.confidence && told.high == fit.high, "confidence %g", told.confidence);
            MUST(fs_mpi_ridge(made_ranks, own, S, row0, &A, &B, 2.5, to, NULL));
            if (have) expect_bits("ridge", got, r, N * RHS);
            fs_mpi_destroy(made_ranks);
        }
    fs_workspace_destroy(w);
}

static void failures_are_everybodys(void)
{
    fs_result made;
    fs_workspace *w = workspace(&made);
    MUST(made);
    const int bad = ranks / 2;
    char named[32];
    snprintf(named, sizeof named, "rank %d: ", bad);
    fs_matrix A = fs_row_major(a + row0 * N, rows, N, FS_F32), B = fs_row_major(b + row0 * RHS, rows, RHS, FS_F32);
    double x[N * RHS], kept = -7;
    fs_matrix X = fs_row_major(x, N, RHS, FS_F64);
    for (int i = 0; i < N * RHS; i++) x[i] = kept;
    fs_mpi *all = make_ranks(ctx, FS_MPI_ALL, 0, 0, 0), *scattered = make_ranks(ctx, FS_MPI_SCATTER, 0, 0, 0);
    REFUSED(fs_mpi_solve(scattered, w, S, row0, &A, &B, 0.0, &X, NULL), FS_EUNSUPPORTED, "cannot be scattered");
    REFUSED(fs_mpi_solve(all, NULL, S, row0, &A, &B, 0.0, &X, NULL), FS_EINVAL, "rank 0: ", "w is NULL");
    REFUSED(fs_mpi_ridge(all, w, S, row0, &A, &B, -1.0, &X, NULL), FS_EINVAL, "rank 0: ", "lambda");
    if (rank == bad) B.rows++;
    REFUSED(fs_mpi_solve(all, w, S, row0, &A, &B, 0.0, &X, NULL), FS_EINVAL, named, "rows and B");
    B.rows = rows;
    if (rank == bad) X.rows--;
    REFUSED(fs_mpi_solve(all, w, S, row0, &A, &B, 0.0, &X, NULL), FS_EINVAL, named, "X is 5 x 2");
    X.rows = N;
    const float was = a[0];
    if (rank == 0) a[0] = NAN;
    REFUSED(fs_mpi_solve(all, w, S, row0, &A, &B, 0.0, &X, NULL), FS_EINVAL, "rank 0: ", "finite");
    a[0] = was;
    for (int i = 0; i < N * RHS; i++) EXPECT(x[i] == kept, "X was written by a call that failed");
    MUST(fs_mpi_solve(all, w, S, row0, &A, &B, 0.0, &X, NULL));
    fs_mpi_destroy(all), fs_mpi_destroy(scattered);
    fs_workspace_destroy(w);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    row0 = (int64_t)D * rank / ranks, rows = (int64_t)D * (rank + 1) / ranks - row0;
    for (int i = 0; i < D * N; i++) a[i] = (float)whole_at(1, i);
    for (int i = 0; i < D * RHS; i++) b[i] = (float)whole_at(2, i);
    ctx = cpu();
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K, spec.s = 4, spec.seed = 7; /* sums of integers are exact */
    S = sketch(&spec);
    fs_result made;
    fs_workspace_destroy(workspace(&made));
    const int here = fs_mpi_agree(MPI_COMM_WORLD, made) == FS_OK;
    if (here) {
        results_are_those_of_the_whole_matrix();
        failures_are_everybodys();
    } else if (rank == 0) {
        printf("skipped: %s\n", fs_error_message());
    }
    fs_sketch_destroy(S);
    fs_context_destroy(ctx);
    end("tasks");
    return here ? 0 : 77;
}
