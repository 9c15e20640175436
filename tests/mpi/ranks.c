/* ranks.c - the properties of a matrix spread over ranks:
 *     - on integers, S A has the same bits on any number of ranks as on one, however rows, tiles and outputs are;
 *     - in the order of ranks, Y is the sum of the ranks' partial results in that order, in f64, rounded once: to the
 *       bit;
 *     - in MPI's order it is so within the rounding of the sums. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static fs_context *ctx;

/* How d rows are spread over ranks: row0 and rows of rank r. */
typedef enum deal { EVEN, NONE_ON_SOME, BACKWARD, ALL_ON_ONE, GAPS, DEALS } deal;
static int64_t border(deal how, int64_t d, int r)
{
    if (how == ALL_ON_ONE) return r > ranks / 2 ? d : 0;
    if (how == NONE_ON_SOME) r = r / 2 * 2;
    return d * r / ranks;
}
static void rows_of(deal how, int64_t d, int r, int64_t *row0, int64_t *rows)
{
    if (how == BACKWARD) r = ranks - 1 - r;
    *row0 = border(how, d, r);
    *rows = (r == ranks - 1 ? d : border(how, d, r + 1)) - *row0;
    if (how == GAPS && *rows > 3) *row0 += 1, *rows -= 3;
}

/* One case: a sketch, types and layouts. */
typedef struct shape {
    fs_family family;
    int64_t d, k, M, kappa, s, n;
    fs_dtype in, out;
    int columns; /* A and Y column-major */
} shape;
static const shape shapes[] = {
    {FS_BLOCKPERM, 400, 128, 8, 1, 4, 37, FS_F32, FS_F32, 0}, {FS_BLOCKPERM, 1000, 96, 3, 2, 2, 20, FS_F64, FS_F64, 1},
    {FS_BLOCKPERM, 301, 64, 2, 1, 4, 9, FS_F16, FS_F16, 0},   {FS_BLOCKPERM, 301, 64, 1, 1, 4, 9, FS_BF16, FS_F32, 1},
    {FS_SJLT, 500, 50, 0, 0, 4, 11, FS_F32, FS_F32, 0},       {FS_SRHT, 256, 64, 0, 0, 0, 5, FS_F32, FS_F32, 0},
    {FS_BLOCKPERM, 6, 3, 1, 1, 1, 4, FS_F32, FS_F32, 0}, /* fewer rows than ranks, of A and of Y */
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static fs_sketch *sketch_of(const shape *s)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.family = s->family, spec.d = s->d, spec.k = s->k, spec.M = s->M, spec.kappa = s->kappa, spec.s = s->s;
    spec.seed = 11;
    return sketch(&spec);
}
static fs_matrix matrix(const shape *s, int64_t rows, fs_dtype dtype)
{
    void *data = room(rows * s->n, (size_t)fsi_dtype_size(dtype));
    return s->columns ? fs_col_major(data, rows, s->n, dtype) : fs_row_major(data, rows, s->n, dtype);
}
static int64_t at(const fs_matrix *m, int64_t i, int64_t j) { return i * m->row_stride + j * m->col_stride; }
static double get(const fs_matrix *m, int64_t i, int64_t j) { return fsi_load(m->data, m->dtype, at(m, i, j)); }

/* Rows row0 ... of the whole A. */
static fs_matrix rows_of_A(const shape *s, int64_t row0, int64_t rows, double (*value)(uint64_t, int64_t))
{
    fs_matrix A = matrix(s, rows, s->in);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < s->n; j++) fsi_store(A.data, s->in, at(&A, i, j), value(3, (row0 + i) * s->n + j));
    return A;
}

/* What Y must be: the sum in the order of ranks of their parts, in f64, rounded once to the sum's type, then to Y's
 * after beta Y was added; and, in *size, of their absolute values. */
static fs_matrix expected(const shape *s, const fs_sketch *S, deal how, double (*value)(uint64_t, int64_t),
                          double alpha, double beta, double *size)
{
    const fs_dtype sum = fsi_dtype_sum(s->in);
    double *total = room(s->k * s->n, sizeof *total);
    fs_matrix part = matrix(s, s->k, sum), Y = matrix(s, s->k, s->out);
    *size = 0;
    for (int r = 0; r < ranks; r++) {
        int64_t row0, rows;
        rows_of(how, s->d, r, &row0, &rows);
        fs_matrix A = rows_of_A(s, row0, rows, value);
        MUST(fs_apply(ctx, S, row0, alpha, &A, 0.0, &part));
        for (int64_t i = 0; i < s->k; i++)
            for (int64_t j = 0; j < s->n; j++) {
                total[i * s->n + j] = r ? total[i * s->n + j] + get(&part, i, j) : get(&part, i, j);
                *size += fabs(get(&part, i, j));
            }
        free(A.data);
    }
    for (int64_t i = 0; i < s->k; i++)
        for (int64_t j = 0; j < s->n; j++) {
            fsi_store(part.data, sum, at(&part, i, j), total[i * s->n + j]);
            fsi_store(Y.data, s->out, at(&Y, i, j), get(&part, i, j) + beta * whole_at(5, i * s->n + j));
        }
    free(total), free(part.data);
    return Y;
}

static const char *const outputs[] = {"?", "all", "root", "scatter"};

/* One product of `made`, whose Y is compared with `want`, to the bit or within `slack`. */
static void compare(const shape *s, const fs_sketch *S, fs_mpi *made, fs_mpi_output output, int root, deal how,
                    double (*value)(uint64_t, int64_t), double alpha, double beta, const fs_matrix *want, double slack)
{
    int64_t row0, rows, first = 0, have = s->k;
    rows_of(how, s->d, rank, &row0, &rows);
    fs_matrix A = rows_of_A(s, row0, rows, value);
    if (output == FS_MPI_SCATTER) MUST(fs_mpi_rows(made, S, &first, &have));
    if (output == FS_MPI_ROOT && rank != root) have = 0;
    fs_matrix Y = matrix(s, have, s->out);
    for (int64_t i = 0; i < have; i++)
        for (int64_t j = 0; j < s->n; j++)
            fsi_store(Y.data, s->out, at(&Y, i, j), beta == 0 ? NAN : whole_at(5, (first + i) * s->n + j));
    MUST(fs_mpi_apply(made, S, row0, alpha, &A, beta, output == FS_MPI_ROOT && rank != root ? NULL : &Y));
    for (int64_t i = 0; i < have; i++)
        for (int64_t j = 0; j < s->n; j++) {
            const double got = get(&Y, i, j), wanted = get(want, first + i, j);
            EXPECT(fabs(got - wanted) <= slack, "k %lld, n %lld, deal %d, output %s: Y(%lld, %lld) is %.17g, not %.17g",
                   (long long)s->k, (long long)s->n, (int)how, outputs[output], (long long)(first + i), (long long)j,
                   got, wanted);
        }
    free(A.data), free(Y.data);
}

/* All outputs, both orders, tiles from one column to all, on integers, against one machine with all rows. */
static void whole_numbers_have_the_same_bits_however_they_are_spread(void)
{
    for (int i = 0; i < SHAPES; i++) {
        const shape *s = &shapes[i];
        fs_sketch *S = sketch_of(s);
        const double alpha = i % 2 ? 0.5 : 1, beta = i % 3 == 0 ? 0 : 2;
        for (int how = 0; how < DEALS; how++) {
            if (ranks > 3 && (i + how) % 3 != 0) continue; /* every shape and every spread, but not all pairs */
            double size;
            const fs_matrix want = expected(s, S, (deal)how, whole_at, alpha, beta, &size);
            for (int output = FS_MPI_ALL; output <= FS_MPI_SCATTER; output++)
                for (int ordered = 0; ordered < 2; ordered++) {
                    const int64_t tile = (int64_t[]){0, 1, 4, 7, 1000}[(i + how + output + ordered) % 5];
                    const int root = (i + how) % ranks;
                    fs_mpi *made = make_ranks(ctx, (fs_mpi_output)output, root, ordered, tile);
                    for (int again = 0; again < 2; again++)
                        compare(s, S, made, (fs_mpi_output)output, root, (deal)how, whole_at, alpha, beta, &want, 0);
                    fs_mpi_destroy(made);
                }
            /* And without gaps it is what one machine makes of all rows. */
            if (how != GAPS && beta == 0) {
                fs_matrix A = rows_of_A(s, 0, s->d, whole_at), Y = matrix(s, s->k, s->out);
                MUST(fs_apply(ctx, S, 0, alpha, &A, 0.0, &Y));
                EXPECT(memcmp(Y.data, want.data, (size_t)(s->k * s->n * fsi_dtype_size(s->out))) == 0,
                       "shape %d, deal %d: ranks and one machine differ", i, how);
                free(A.data), free(Y.data);
            }
            free(want.data);
        }
        fs_sketch_destroy(S);
    }
}

static void the_order_of_ranks_gives_the_same_bits_for_every_tile_and_output(void)
{
    for (int i = 0; i < 2; i++) {
        const shape *s = &shapes[i];
        fs_sketch *S = sketch_of(s);
        double size;
        const fs_matrix want = expected(s, S, EVEN, real_at, 1, 0, &size);
        for (int output = FS_MPI_ALL; output <= FS_MPI_SCATTER; output++)
            for (int64_t tile = 0; tile <= s->n; tile += 6)
                for (int ordered = 0; ordered < 2; ordered++) {
                    fs_mpi *made = make_ranks(ctx, (fs_mpi_output)output, 0, ordered, tile);
                    const double eps = fsi_dtype_sum(s->in) == FS_F64 ? DBL_EPSILON : FLT_EPSILON;
                    compare(s, S, made, (fs_mpi_output)output, 0, EVEN, real_at, 1, 0, &want, ordered ? 0 : eps * size);
                    fs_mpi_destroy(made);
                }
        free(want.data);
        fs_sketch_destroy(S);
    }
}

/* Every third entry of A as CSR; the reference is the dense product. */
static void a_sparse_matrix_on_ranks_is_the_dense_one(void)
{
    const shape *s = &shapes[0];
    fs_sketch *S = sketch_of(s);
    int64_t row0, rows;
    rows_of(EVEN, s->d, rank, &row0, &rows);
    fs_matrix A = rows_of_A(s, row0, rows, whole_at);
    int64_t *ptr = room(rows + 1, sizeof *ptr), *index = room(rows * s->n, sizeof *index), nnz = 0;
    float *value = room(rows * s->n, sizeof *value);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < s->n; j++) {
            if ((row0 + i + j) % 3 == 0) index[nnz] = j, value[nnz++] = (float)get(&A, i, j);
            else fsi_store(A.data, s->in, at(&A, i, j), 0);
        }
        ptr[i + 1] = nnz;
    }
    const fs_sparse sparse = {FS_CSR, FS_INDEX64, rows, s->n, nnz, ptr, index, value, FS_F32, FS_MEMORY_HOST};
    for (int ordered = 0; ordered < 2; ordered++) {
        fs_mpi *made = make_ranks(ctx, FS_MPI_ALL, 0, ordered, 5);
        fs_matrix Y = matrix(s, s->k, FS_F32), Z = matrix(s, s->k, FS_F32);
        MUST(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y));
        MUST(fs_mpi_apply_sparse(made, S, row0, 1.0, &sparse, 0.0, &Z));
        EXPECT(memcmp(Y.data, Z.data, (size_t)(s->k * s->n) * 4) == 0, "ordered %d: the products differ", ordered);
        free(Y.data), free(Z.data);
        fs_mpi_destroy(made);
    }
    free(A.data), free(ptr), free(index), free(value);
    fs_sketch_destroy(S);
}

/* A rank's rows in three slices, sketched one after the other, and one sum at the end. */
static void parts_that_ranks_have_made_are_summed(void)
{
    for (int i = 0; i < 4; i++) {
        const shape *s = &shapes[i];
        fs_sketch *S = sketch_of(s);
        double size;
        const fs_matrix want = expected(s, S, EVEN, whole_at, 1, 2, &size);
        int64_t row0, rows;
        rows_of(EVEN, s->d, rank, &row0, &rows);
        fs_matrix A = rows_of_A(s, row0, rows, whole_at), part = matrix(s, s->k, fsi_dtype_sum(s->in));
        for (int p = 0; p < 3; p++) {
            fs_matrix piece = A;
            const int64_t from = rows * p / 3;
            piece.rows = rows * (p + 1) / 3 - from, piece.offset = from * A.row_stride;
            MUST(fs_apply(ctx, S, row0 + from, 1.0, &piece, p > 0, &part));
        }
        for (int output = FS_MPI_ALL; output <= FS_MPI_SCATTER; output += 2) {
            fs_mpi *made = make_ranks(ctx, (fs_mpi_output)output, 0, i % 2, 5);
            int64_t first = 0, have = s->k;
            if (output == FS_MPI_SCATTER) MUST(fs_mpi_rows(made, S, &first, &have));
            fs_matrix Y = matrix(s, have, fsi_dtype_sum(s->in));
            for (int64_t r = 0; r < have; r++)
                for (int64_t j = 0; j < s->n; j++)
                    fsi_store(Y.data, Y.dtype, at(&Y, r, j), whole_at(5, (first + r) * s->n + j));
            MUST(fs_mpi_sum(made, S, &part, 2.0, &Y));
            for (int64_t r = 0; r < have; r++)
                for (int64_t j = 0; j < s->n; j++)
                    EXPECT(get(&Y, r, j) == get(&want, first + r, j),
                           "shape %d, output %s: Y(%lld, %lld) is %g, not %g", i, outputs[output],
                           (long long)(first + r), (long long)j, get(&Y, r, j), get(&want, first + r, j));
            fs_mpi_destroy(made);
            free(Y.data);
        }
        free(want.data), free(A.data), free(part.data);
        fs_sketch_destroy(S);
    }
}

static void scattered_rows_are_whole_blocks_and_all_of_them(void)
{
    const shape *s = &shapes[0];
    fs_sketch *S = sketch_of(s);
    fs_mpi *made = make_ranks(ctx, FS_MPI_SCATTER, 0, 0, 0);
    int64_t mine[2];
    MUST(fs_mpi_rows(made, S, &mine[0], &mine[1]));
    int64_t *all = room(ranks, sizeof mine), next = 0;
    MPI_Allgather(mine, 2, MPI_INT64_T, all, 2, MPI_INT64_T, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++) {
        EXPECT(all[2 * r] == next && next % (s->k / s->M) == 0, "rank %d begins at row %lld, not at %lld", r,
               (long long)all[2 * r], (long long)next);
        next += all[2 * r + 1];
    }
    EXPECT(next == s->k, "the ranks have %lld of %lld rows", (long long)next, (long long)s->k);
    char text[512];
    EXPECT(fs_mpi_describe(made, text, sizeof text) > 0 && strstr(text, "scattered"), "%s", text);
    if (rank == 0) puts(text);
    free(all);
    fs_mpi_destroy(made);
    fs_sketch_destroy(S);
}

/* An empty matrix, and buffers that are reused: the second call allocates no more memory than the first. */
static void no_columns_and_repeated_calls(void)
{
    const shape *s = &shapes[0];
    fs_sketch *S = sketch_of(s);
    fs_mpi *made = make_ranks(ctx, FS_MPI_ALL, 0, 0, 0);
    int64_t row0, rows;
    rows_of(EVEN, s->d, rank, &row0, &rows);
    fs_matrix none = fs_row_major(NULL, rows, 0, FS_F32), Y0 = fs_row_major(NULL, s->k, 0, FS_F32);
    MUST(fs_mpi_apply(made, S, row0, 1.0, &none, 0.0, &Y0));
    fs_matrix A = rows_of_A(s, row0, rows, whole_at), Y = matrix(s, s->k, FS_F32);
    MUST(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y));
    const size_t held = fs_mpi_memory_bytes(made);
    for (int i = 0; i < 20; i++) MUST(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y));
    EXPECT(fs_mpi_memory_bytes(made) == held, "buffers grew from %zu to %zu bytes", held, fs_mpi_memory_bytes(made));
    free(A.data), free(Y.data);
    fs_mpi_destroy(made);
    fs_sketch_destroy(S);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    ctx = cpu();
    whole_numbers_have_the_same_bits_however_they_are_spread();
    the_order_of_ranks_gives_the_same_bits_for_every_tile_and_output();
    a_sparse_matrix_on_ranks_is_the_dense_one();
    parts_that_ranks_have_made_are_summed();
    scattered_rows_are_whole_blocks_and_all_of_them();
    no_columns_and_repeated_calls();
    fs_context_destroy(ctx);
    return end("ranks");
}
