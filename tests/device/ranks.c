/* ranks.c - ranks of which some work on a GPU: all of them share device 0 here, and others are CPU ranks.
 *
 *     mpiexec -n P device.ranks
 *
 * The properties are those of tests/mpi, with matrices in device memory and in the host's, and the CPU as the
 * reference.  MPI gets host memory only, so no MPI library needs CUDA support.  In a dry run (device.h) all are CPU
 * ranks. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/mpi/check.h"

enum { NO_GPU = 77 };
static int dry, skipped;
static fs_context *reference, *device; /* on every rank: a CPU context, and one on the GPU */

/* Which ranks work on the GPU. */
typedef enum cast { ALL, EVEN, ODD, CASTS } cast;
static int is_gpu(cast who) { return who == ALL || (rank % 2 == 0) == (who == EVEN); }
static fs_context *own(cast who) { return is_gpu(who) ? device : reference; }

static void cuda(cudaError_t error, const char *what)
{
    EXPECT(error == cudaSuccess, "%s: %s", what, cudaGetErrorString(error));
}

/* matrices -------------------------------------------------------------------------------------------------- */

/* A packed matrix with a copy in device memory; `m` is the one that a call gets. */
typedef struct twin {
    fs_matrix host, m;
    size_t bytes;
} twin;
static twin twin_of(int64_t rows, int64_t cols, fs_dtype dtype, int columns)
{
    twin t = {.bytes = (size_t)(rows * cols * fsi_dtype_size(dtype))};
    void *data = room(rows * cols, (size_t)fsi_dtype_size(dtype));
    t.host = t.m = columns ? fs_col_major(data, rows, cols, dtype) : fs_row_major(data, rows, cols, dtype);
    return t;
}
/* Puts what the host's has into device memory, where `there` is. */
static void twin_place(twin *t, int there)
{
    if (!there || dry) return;
    cuda(cudaMalloc(&t->m.data, t->bytes + 1), "cudaMalloc");
    cuda(cudaMemcpy(t->m.data, t->host.data, t->bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    t->m.memory = FS_MEMORY_CUDA;
}
static void twin_fetch(twin *t)
{
    if (t->m.memory == FS_MEMORY_HOST) return;
    cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); /* the context's stream too */
    cuda(cudaMemcpy(t->host.data, t->m.data, t->bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}
static void twin_free(twin *t)
{
    if (t->m.memory != FS_MEMORY_HOST) cuda(cudaFree(t->m.data), "cudaFree");
    free(t->host.data);
}
static int64_t at(const fs_matrix *m, int64_t i, int64_t j) { return i * m->row_stride + j * m->col_stride; }
static double get(const fs_matrix *m, int64_t i, int64_t j) { return fsi_load(m->data, m->dtype, at(m, i, j)); }
static void fill(fs_matrix *m, uint64_t seed, int64_t row0, double (*value)(uint64_t, int64_t))
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++)
            fsi_store(m->data, m->dtype, at(m, i, j), value ? value(seed, (row0 + i) * m->cols + j) : NAN);
}

static int64_t first_row(int64_t d, int r) { return d * r / ranks; }
static int64_t row_count(int64_t d, int r) { return first_row(d, r + 1) - first_row(d, r); }

/* This rank's rows of A, in the memory of its context or in the host's. */
static twin rows_of_A(int64_t d, int64_t n, fs_dtype dtype, int columns, double (*value)(uint64_t, int64_t), int there)
{
    twin A = twin_of(row_count(d, rank), n, dtype, columns);
    fill(&A.host, 3, first_row(d, rank), value);
    twin_place(&A, there);
    return A;
}

/* properties ------------------------------------------------------------------------------------------------------ */

typedef struct shape {
    fs_family family;
    int64_t d, k, n;
    fs_dtype in, out;
    int columns;
} shape;
static const shape shapes[] = {
    {FS_BLOCKPERM, 4000, 256, 70, FS_F32, FS_F32, 0}, {FS_BLOCKPERM, 1001, 64, 24, FS_F64, FS_F64, 1},
    {FS_BLOCKPERM, 900, 128, 40, FS_F16, FS_F16, 0},  {FS_SJLT, 1500, 100, 16, FS_BF16, FS_F32, 1},
    {FS_BLOCKPERM, 4, 3, 5, FS_F32, FS_F32, 0}, /* ranks without rows of A, and of Y */
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };
static fs_sketch *sketch_of(const shape *s)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.family = s->family, spec.d = s->d, spec.k = s->k, spec.seed = 11;
    spec.s = s->k < 4 ? 1 : 4; /* weights that are powers of two */
    if (s->family == FS_BLOCKPERM) spec.kappa = 1;
    return sketch(&spec);
}

/* Y of `made` against `want`, all of it, to the bit. */
static void expect_rows(const char *what, const twin *Y, int64_t first, const fs_matrix *want)
{
    for (int64_t i = 0; i < Y->host.rows; i++)
        for (int64_t j = 0; j < Y->host.cols; j++) {
            const double got = get(&Y->host, i, j), wanted = get(want, first + i, j);
            EXPECT(got == wanted, "%s: Y(%lld, %lld) is %.17g, not %.17g", what, (long long)(first + i), (long long)j,
                   got, wanted);
        }
}

/* Room for this rank's part of Y, as it is before a call: NaN, or, where beta is not 0, stream 5. */
static twin output_of(fs_mpi *made, const fs_sketch *S, const shape *s, fs_mpi_output output, int root, double beta,
                      int there, int64_t *first)
{
    int64_t have = s->k;
    *first = 0;
    if (output == FS_MPI_SCATTER) MUST(fs_mpi_rows(made, S, first, &have));
    if (output == FS_MPI_ROOT && rank != root) have = 0;
    twin Y = twin_of(have, s->n, s->out, s->columns);
    fill(&Y.host, 5, *first, beta != 0 ? whole_at : NULL);
    twin_place(&Y, there);
    return Y;
}

static void whole_numbers_have_the_bits_of_one_process(void)
{
    for (int i = 0; i < SHAPES; i++) {
        const shape *s = &shapes[i];
        const double alpha = i % 2 ? 0.5 : 1, beta = i % 2 ? 2 : 0;
        fs_sketch *S = sketch_of(s);
        twin whole = twin_of(s->d, s->n, s->in, s->columns), want = twin_of(s->k, s->n, s->out, s->columns);
        fill(&whole.host, 3, 0, whole_at);
        fill(&want.host, 5, 0, whole_at);
        MUST(fs_apply(reference, S, 0, alpha, &whole.host, beta, &want.host));
        for (int who = 0; who < CASTS; who++)
            for (int output = FS_MPI_ALL; output <= FS_MPI_SCATTER; output++)
                for (int ordered = 0; ordered < 2; ordered++)
                    for (int places = 0; places < 4; places++) { /* A and Y: in host memory, or where the rank works */
                        const int64_t tile = (int64_t[]){0, 7, 1, 1000}[(i + who + output + places) % 4];
                        const int root = (i + who) % ranks;
                        int64_t first;
                        fs_mpi *made = make_ranks(own((cast)who), (fs_mpi_output)output, root, ordered, tile);
                        twin A = rows_of_A(s->d, s->n, s->in, s->columns, whole_at, (places & 1) && is_gpu((cast)who));
                        twin Y = output_of(made, S, s, (fs_mpi_output)output, root, beta,
                                           (places & 2) && is_gpu((cast)who), &first);
                        MUST(fs_mpi_apply(made, S, first_row(s->d, rank), alpha, &A.m, beta,
                                          output == FS_MPI_ROOT && rank != root ? NULL : &Y.m));
                        twin_fetch(&Y);
                        expect_rows("ranks on a GPU", &Y, first, &want.host);
                        twin_free(&A), twin_free(&Y);
                        fs_mpi_destroy(made);
                    }
        twin_free(&whole), twin_free(&want);
        fs_sketch_destroy(S);
    }
}

/* On numbers that round: the partial results of single ranks, tile by tile, added in their order in f64, rounded
 * once. */
static void parts_are_added_in_the_order_of_ranks(void)
{
    const shape *s = &shapes[0];
    fs_sketch *S = sketch_of(s);
    for (int who = 0; who < CASTS; who++)
        for (int64_t tile = 13; tile <= s->n; tile += s->n - 13) {
            twin A = rows_of_A(s->d, s->n, s->in, 0, real_at, is_gpu((cast)who));
            twin part = twin_of(s->k, s->n, FS_F32, 0), want = twin_of(s->k, s->n, FS_F32, 0);
            double *sums = room(s->k * s->n, sizeof *sums);
            const int64_t step = ranks == 1 ? s->n : tile; /* one rank makes all of Y at once */
            for (int64_t col = 0; col < s->n; col += step) {
                fs_matrix a = A.m, y = part.host;
                a.cols = y.cols = s->n - col < step ? s->n - col : step;
                a.offset = y.offset = col;
                MUST(fs_apply(own((cast)who), S, first_row(s->d, rank), 1.0, &a, 0.0, &y));
            }
            for (int r = 0; r < ranks; r++) {
                twin its = twin_of(s->k, s->n, FS_F32, 0);
                memcpy(its.host.data, part.host.data, its.bytes);
                MPI_Bcast(its.host.data, (int)its.bytes, MPI_BYTE, r, MPI_COMM_WORLD);
                for (int64_t i = 0; i < s->k * s->n; i++)
                    sums[i] = r ? sums[i] + ((float *)its.host.data)[i] : ((float *)its.host.data)[i];
                twin_free(&its);
            }
            for (int64_t i = 0; i < s->k * s->n; i++) ((float *)want.host.data)[i] = (float)sums[i];
            for (int output = FS_MPI_ALL; output <= FS_MPI_SCATTER; output++)
                for (int again = 0; again < 3; again++) {
                    int64_t first;
                    fs_mpi *made = make_ranks(own((cast)who), (fs_mpi_output)output, 0, 1, tile);
                    twin Y = output_of(made, S, s, (fs_mpi_output)output, 0, 0, again == 1 && is_gpu((cast)who),
                                       &first);
                    MUST(fs_mpi_apply(made, S, first_row(s->d, rank), 1.0, &A.m, 0.0,
                                      output == FS_MPI_ROOT && rank ? NULL : &Y.m));
                    twin_fetch(&Y);
                    expect_rows("in the order of ranks", &Y, first, &want.host);
                    twin_free(&Y);
                    fs_mpi_destroy(made);
                }
            twin_free(&A), twin_free(&part), twin_free(&want);
            free(sums);
        }
    fs_sketch_destroy(S);
}

/* A rank's rows in three slices, sketched one after the other into a partial result that stays on the GPU, and summed
 * once. */
static void parts_in_device_memory_are_summed(void)
{
    const shape *s = &shapes[0];
    fs_sketch *S = sketch_of(s);
    twin whole = twin_of(s->d, s->n, s->in, 0), want = twin_of(s->k, s->n, s->out, 0);
    fill(&whole.host, 3, 0, whole_at);
    fill(&want.host, 5, 0, whole_at);
    MUST(fs_apply(reference, S, 0, 1.0, &whole.host, 2.0, &want.host));
    for (int who = 0; who < CASTS; who++)
        for (int output = FS_MPI_ALL; output <= FS_MPI_SCATTER; output++)
            for (int there = 0; there < 2; there++) {
                const int ordered = (who + output) % 2, on_gpu = is_gpu((cast)who);
                const int64_t row0 = first_row(s->d, rank), rows = row_count(s->d, rank);
                int64_t first;
                fs_mpi *made = make_ranks(own((cast)who), (fs_mpi_output)output, 0, ordered, 30);
                twin A = rows_of_A(s->d, s->n, s->in, 0, whole_at, on_gpu), part = twin_of(s->k, s->n, FS_F32, 0);
                twin Y = output_of(made, S, s, (fs_mpi_output)output, 0, 2, there && on_gpu, &first);
                twin_place(&part, on_gpu);
                for (int p = 0; p < 3; p++) {
                    fs_matrix piece = A.m;
                    const int64_t from = rows * p / 3;
                    piece.rows = rows * (p + 1) / 3 - from, piece.offset = from * s->n;
                    MUST(fs_apply(own((cast)who), S, row0 + from, 1.0, &piece, p > 0, &part.m));
                }
                MUST(fs_mpi_sum(made, S, &part.m, 2.0, output == FS_MPI_ROOT && rank ? NULL : &Y.m));
                twin_fetch(&Y);
                expect_rows("a part on a GPU", &Y, first, &want.host);
                twin_free(&A), twin_free(&part), twin_free(&Y);
                fs_mpi_destroy(made);
            }
    twin_free(&whole), twin_free(&want);
    fs_sketch_destroy(S);
}

/* tasks ----------------------------------------------------------------------------------------------------- */

enum { D = 3000, N = 9, RHS = 2, K = 128 };
typedef enum kind { GRAM, SOLVE, RIDGE, KINDS } kind;

/* As good as the same bits: sums are, and then f64 arithmetic on a matrix that is well conditioned. */
static void expect_result(const twin *got, const twin *want)
{
    double all[N * N];
    const int count = (int)(got->host.rows * got->host.cols);
    for (int i = 0; i < count; i++) {
        const double x = ((double *)got->host.data)[i], y = ((double *)want->host.data)[i];
        EXPECT(fabs(x - y) <= 1e-10 * (1 + fabs(y)), "element %d is %.17g, not %.17g", i, x, y);
        all[i] = x;
    }
    MPI_Bcast(all, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    EXPECT(memcmp(all, got->host.data, got->bytes) == 0, "rank 0 has other bits");
}

static fs_result run_task(kind what, fs_mpi *made, fs_workspace *w, const fs_sketch *S, const twin *A, const twin *B,
                          fs_matrix *out)
{
    const int64_t row0 = first_row(D, rank);
    switch (what) {
    case GRAM: return fs_mpi_gram(made, w, S, row0, &A->m, out, NULL);
    case SOLVE: return fs_mpi_solve(made, w, S, row0, &A->m, &B->m, 0.0, out, NULL);
    default: return fs_mpi_ridge(made, w, S, row0, &A->m, &B->m, 2.5, out, NULL);
    }
}

/* Every rank's GPU does the whole task alone; the ranks together, one of them the root, on a GPU, must agree. */
static void tasks_on_a_gpu_are_those_of_the_whole_matrix(void)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K, spec.s = 4, spec.seed = 7; /* a scale that is a power of two: partial results add up
    exactly */
    fs_sketch *S = sketch(&spec);
    fs_task_shape room_for = FS_TASK_SHAPE_INIT;
    room_for.k = K, room_for.n = N, room_for.rhs = RHS;
    fs_workspace *w = NULL;
    if (fs_mpi_agree(MPI_COMM_WORLD, fs_workspace_create(&w, device, &room_for)) != FS_OK) {
        if (rank == 0) printf("    skipped: %s\n", fs_error_message());
        skipped = 1;
        fs_workspace_destroy(w);
        fs_sketch_destroy(S);
        return;
    }
    twin whole_A = twin_of(D, N, FS_F32, 0), whole_B = twin_of(D, RHS, FS_F32, 0), want[KINDS];
    fill(&whole_A.host, 3, 0, whole_at), fill(&whole_B.host, 3, 0, whole_at);
    MUST(fs_task_sketch(w, S, &whole_A.host, &whole_B.host));
    for (int what = 0; what < KINDS; what++) want[what] = twin_of(N, what == GRAM ? N : RHS, FS_F64, 0);
    MUST(fs_gram(w, S, &want[GRAM].m, NULL));
    MUST(fs_solve(w, 0.0, &want[SOLVE].m, NULL));
    MUST(fs_ridge(w, 2.5, &want[RIDGE].m, NULL));
    for (int who = 0; who < CASTS; who++)
        for (int what = 0; what < KINDS; what++)
            for (int there = 0; there < 2; there++) {
                int root = who == ODD ? 1 : 0; /* a rank on the GPU, where there is one */
                if (root >= ranks) root = 0;
                fs_workspace *task = NULL;
                if (rank == root && is_gpu((cast)who)) task = w;
                if (ranks == 1 && who == ODD) continue; /* no rank is on the GPU */
                const int on_gpu = is_gpu((cast)who);
                fs_mpi *made = make_ranks(own((cast)who), FS_MPI_ALL, root, 1, 0);
                twin A = rows_of_A(D, N, FS_F32, 0, whole_at, on_gpu && !there);
                twin B = rows_of_A(D, RHS, FS_F32, 0, whole_at, on_gpu);
                twin out = twin_of(N, what == GRAM ? N : RHS, FS_F64, 0);
                twin_place(&out, there && on_gpu);
                MUST(run_task((kind)what, made, task, S, &A, &B, &out.m));
                twin_fetch(&out);
                expect_result(&out, &want[what]);
                twin_free(&A), twin_free(&B), twin_free(&out);
                fs_mpi_destroy(made);
            }
    for (int what = 0; what < KINDS; what++) twin_free(&want[what]);
    twin_free(&whole_A), twin_free(&whole_B);
    fs_workspace_destroy(w);
    fs_sketch_destroy(S);
}

/* failures -------------------------------------------------------------------------------------------------- */

static void what_fails_on_one_rank_fails_on_all(void)
{
    const shape *s = &shapes[0];
    const int bad = ranks / 2 / 2 * 2, odd = ranks / 2 / 2 * 2 + 1; /* of EVEN: on the GPU, and on the CPU */
    char named[32];
    fs_sketch *S = sketch_of(s);
    const int64_t row0 = first_row(s->d, rank);
    fs_mpi *made = make_ranks(own(EVEN), FS_MPI_ALL, 0, 1, 16);
    twin A = rows_of_A(s->d, s->n, s->in, 0, whole_at, is_gpu(EVEN)), Y = twin_of(s->k, s->n, s->out, 0);
    fill(&Y.host, 5, 0, whole_at);
    twin kept = twin_of(s->k, s->n, s->out, 0);
    memcpy(kept.host.data, Y.host.data, kept.bytes);
    twin_place(&Y, is_gpu(EVEN));

    snprintf(named, sizeof named, "rank %d: ", bad);
    if (rank == bad) Y.m.rows--;
    REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A.m, 0.0, &Y.m), FS_EINVAL, named, "255 x 70");
    if (rank == bad) Y.m.rows++;
    REFUSED(fs_mpi_apply(made, S, rank == bad ? s->d : row0, 1.0, &A.m, 0.0, &Y.m), FS_EINVAL, named, "d = 4000");
    if (odd < ranks) { /* a CPU rank cannot reach a GPU's memory */
        snprintf(named, sizeof named, "rank %d: ", odd);
        fs_matrix elsewhere = A.m;
        if (rank == odd) elsewhere.memory = FS_MEMORY_CUDA;
        REFUSED(fs_mpi_apply(made, S, row0, 1.0, &elsewhere, 0.0, &Y.m), FS_EUNSUPPORTED, named, "cuda memory");
    }
    if (!dry) { /* and a sparse matrix in host memory is for a CPU rank */
        int64_t *ptr = room(row_count(s->d, rank) + 1, sizeof *ptr);
        const fs_sparse none = {FS_CSR, FS_INDEX64, row_count(s->d, rank), s->n, 0, ptr, ptr,
                                ptr,    FS_F32,     FS_MEMORY_HOST};
        REFUSED(fs_mpi_apply_sparse(made, S, row0, 1.0, &none, 0.0, &Y.m), FS_EUNSUPPORTED, "rank 0: ", "cuda memory");
        free(ptr);
    }
    twin_fetch(&Y);
    EXPECT(memcmp(Y.host.data, kept.host.data, kept.bytes) == 0, "a call that failed wrote to Y");

    fs_context_options where = FS_CONTEXT_INIT; /* a GPU that is not there, as a step of the caller's own */
    fs_context *none = NULL;
    where.backend = dry ? FS_BACKEND_CPU : FS_BACKEND_CUDA;
    if (rank == bad) *(dry ? &where.threads : &where.device) = dry ? -3 : 4711;
    snprintf(named, sizeof named, "rank %d: ", bad);
    const fs_result mine = fs_context_create(&none, &where);
    REFUSED(fs_mpi_agree(MPI_COMM_WORLD, mine), dry ? FS_EINVAL : FS_EBACKEND, named, dry ? "-3" : "4711");
    fs_context_destroy(none);

    MUST(fs_mpi_apply(made, S, row0, 1.0, &A.m, 0.0, &Y.m)); /* and it keeps working */
    twin_free(&A), twin_free(&Y), twin_free(&kept);
    fs_mpi_destroy(made);
    fs_sketch_destroy(S);
}

/* the program ----------------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A line for each property, as tests/device/run reads them; a property that is broken ends all ranks. */
static void run(const char *name, void (*property)(void))
{
    const double start = now();
    skipped = 0;
    if (rank == 0) printf("started             %s\n", name), fflush(stdout);
    property();
    if (rank == 0) printf("%-7s %8.2f s  %s\n", skipped ? "skipped" : "passed", now() - start, name), fflush(stdout);
}
#define PROPERTY(property) run(#property, property)

int main(int argc, char **argv)
{
    int gpus = 0;
    const char *asked = getenv("FS_DEVICE_TESTS_DRY");
    dry = asked && atoi(asked) > 0;
    begin(&argc, &argv);
    if (!dry && (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0)) {
        if (rank == 0) printf("skipped: there is no GPU here\n");
        MPI_Finalize();
        return NO_GPU;
    }
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = dry ? FS_BACKEND_CPU : FS_BACKEND_CUDA;
    MUST(fs_context_create(&device, &where));
    reference = cpu();
    fs_mpi *made = make_ranks(device, FS_MPI_ALL, 0, 1, 0);
    char text[512];
    fs_mpi_describe(made, text, sizeof text);
    if (rank == 0) printf("%s\n", text);
    fs_mpi_destroy(made);
    PROPERTY(whole_numbers_have_the_bits_of_one_process);
    PROPERTY(parts_are_added_in_the_order_of_ranks);
    PROPERTY(parts_in_device_memory_are_summed);
    PROPERTY(tasks_on_a_gpu_are_those_of_the_whole_matrix);
    PROPERTY(what_fails_on_one_rank_fails_on_all);
    fs_context_destroy(reference);
    fs_context_destroy(device);
    return end("device.ranks");
}
