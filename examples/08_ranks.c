/* 08_ranks.c - a matrix whose rows are spread over MPI ranks.
 *
 * Each rank has its own rows, generated here, and sketches them where they are; only Y = S A, 256 x 8, is communicated.
 * The last lines check that Y keeps the lengths of A's columns, for which the ranks sum squares by MPI_Allreduce.
 *
 *     mpicc 08_ranks.c $(pkg-config --cflags --libs flashsketch_mpi) -lm && mpirun -n 4 ./a.out */
#include <flashsketch_mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { D = 100000, N = 8, K = 256 };

/* Element (i, j) of the whole A. */
static float element(long i, long j) { return (float)(sin(0.7 * (double)i + (double)j) / (1.0 + (double)(i % 100))); }

static int run(int rank, int size)
{
    const long row0 = (long)D * rank / size, rows = (long)D * (rank + 1) / size - row0;
    static float y[K * N];
    float *a = malloc(sizeof *a * (size_t)(rows * N + 1));
    if (!a) MPI_Abort(MPI_COMM_WORLD, 1);
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < N; j++) a[i * N + j] = element(row0 + i, j);

    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K, spec.seed = 7;
    fs_sketch *S = NULL;
    fs_context *ctx = NULL;
    fs_mpi *ranks = NULL;
    fs_matrix A = fs_row_major(a, rows, N, FS_F32), Y = fs_row_major(y, K, N, FS_F32);
    /* A failure on one rank is returned on all, so that all ranks leave here or none. */
    if (fs_sketch_create(&S, &spec) || fs_mpi_agree(MPI_COMM_WORLD, fs_context_create(&ctx, NULL)) ||
        fs_mpi_create(&ranks, MPI_COMM_WORLD, ctx, NULL) || fs_mpi_apply(ranks, S, row0, 1.0, &A, 0.0, &Y)) {
        if (rank == 0) fprintf(stderr, "%s\n", fs_error_message());
        return 1;
    }

    double mine[N] = {0}, exact[N], worst = 0;
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < N; j++) mine[j] += (double)a[i * N + j] * a[i * N + j];
    MPI_Allreduce(mine, exact, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int j = 0; j < N; j++) {
        double sketched = 0;
        for (int i = 0; i < K; i++) sketched += (double)y[i * N + j] * y[i * N + j];
        const double error = fabs(sketched / exact[j] - 1);
        worst = error > worst ? error : worst;
    }
    if (rank == 0) printf("%d ranks: squared lengths of %d columns are kept within %.1f %%\n", size, N, 100 * worst);
    fs_mpi_destroy(ranks);
    fs_context_destroy(ctx);
    fs_sketch_destroy(S);
    free(a);
    return worst < 0.5 ? 0 : 1;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int failed = run(rank, size);
    MPI_Finalize();
    return failed;
}
