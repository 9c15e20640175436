/* 16_ranks_least_squares.c - least squares to full accuracy where the rows of A and b are spread over MPI ranks.
 *
 * Each rank has its own samples of a sum of cosines, generated here, and gets all coefficients.  The ranks sum S A once
 * and a few dozen numbers in each iteration; A and b stay where they are.
 *
 *     mpicc 16_ranks_least_squares.c $(pkg-config --cflags --libs flashsketch_mpi) -lm && mpirun -n 4 ./a.out */
#include <flashsketch_mpi.h>
#include <flashsketch_tasks.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { D = 100000, N = 20 };

/* Samples row0 ... row0 + rows - 1 of sum_j cos(j t) / (j + 1) with a small error. */
static void make_rows(long row0, long rows, double *a, double *b)
{
    for (long i = 0; i < rows; i++) {
        const double t = 3.14159265358979 * ((double)(row0 + i) + 0.5) / D;
        b[i] = 1e-3 * sin(1e6 * t);
        for (int j = 0; j < N; j++) {
            a[i * N + j] = cos(j * t);
            b[i] += a[i * N + j] / (j + 1);
        }
    }
}

static int run(int rank, int size)
{
    const long row0 = (long)D * rank / size, rows = (long)D * (rank + 1) / size - row0;
    double *a = malloc(sizeof *a * (size_t)(rows * (N + 1) + 1)), x[N];
    if (!a) MPI_Abort(MPI_COMM_WORLD, 1);
    double *b = a + rows * N;
    make_rows(row0, rows, a, b);

    fs_context *ctx = NULL;
    fs_mpi *ranks = NULL;
    fs_ranks spread = FS_RANKS_INIT;
    fs_lstsq_options options = FS_LSTSQ_INIT;
    fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
    const fs_matrix A = fs_row_major(a, rows, N, FS_F64), B = fs_row_major(b, rows, 1, FS_F64);
    const fs_matrix X = fs_row_major(x, N, 1, FS_F64);
    fs_operand operand = FS_OPERAND_INIT;
    operand.dense = &A;
    options.ranks = &spread;
    /* A failure on one rank is returned on all, so that all ranks leave here or none. */
    if (fs_mpi_agree(MPI_COMM_WORLD, fs_context_create(&ctx, NULL)) ||
        fs_mpi_create(&ranks, MPI_COMM_WORLD, ctx, NULL) || fs_mpi_ranks(ranks, row0, rows, &spread) ||
        fs_lstsq(ctx, &operand, &B, &options, &X, &report)) {
        if (rank == 0) fprintf(stderr, "%s\n", fs_error_message());
        return 1;
    }

    double worst = 0;
    for (int j = 0; j < N; j++) worst = fmax(worst, fabs(x[j] - 1.0 / (j + 1)));
    if (rank == 0)
        printf("%d ranks: coefficients within %.1g after %d reads of A; backward error %.1g\n", size, worst,
               (int)report.reads, report.backward_error);
    fs_mpi_destroy(ranks);
    fs_context_destroy(ctx);
    free(a);
    return worst < 1e-4 && report.converged ? 0 : 1;
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
