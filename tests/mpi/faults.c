/* faults.c - an error on one rank is returned on all ranks, with one code and one message, and no rank waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/scarce.h"
#include "check.h"
#include "flashsketch_extend.h"

enum { D = 400, K = 64, N = 24 };
static fs_context *ctx;
static fs_sketch *S;
static float a[D * N], y[K * N], kept[K * N];
static int64_t row0, rows;
static fs_matrix A, Y;

/* The rank that fails, one in the middle if there is one, and the beginning of its error message. */
static int bad;
static char named[32];

static void fresh(void)
{
    A = fs_row_major(a, rows, N, FS_F32), Y = fs_row_major(y, K, N, FS_F32);
    for (int i = 0; i < K * N; i++) y[i] = kept[i] = (float)i;
}
static void expect_untouched(void) { EXPECT(memcmp(y, kept, sizeof y) == 0, "a call that failed wrote to Y"); }

static void a_wrong_argument_on_one_rank_is_everybodys_error(void)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        fs_mpi *made = make_ranks(ctx, FS_MPI_ALL, 0, ordered, 5);
        fresh();
        if (rank == bad) Y.rows = K - 1;
        REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y), FS_EINVAL, named, "63 x 24", "64 x 24");
        fresh();
        if (rank == bad) A.data = NULL;
        if (rows > 0) REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y), FS_EINVAL, named, "NULL");
        fresh();
        const int64_t late = rank == bad ? D - rows + 1 : row0;
        REFUSED(fs_mpi_apply(made, S, late, 1.0, &A, 0.0, &Y), FS_EINVAL, named, "d = 400");
        REFUSED(fs_mpi_apply(made, rank == bad ? NULL : S, row0, 1.0, &A, 0.0, &Y), FS_EINVAL, named, "S is NULL");
        REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, rank == bad ? NULL : &Y), FS_EINVAL, named, "Y is NULL");
        REFUSED(fs_mpi_apply(made, S, row0, 1.0, rank == bad ? NULL : &A, 0.0, &Y), FS_EINVAL, named, "A is NULL");
        if (rank == bad) Y.dtype = FS_F16;
        REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y), FS_EINVAL, named, "f16");
        fresh();
        if (rank == bad) Y.memory = FS_MEMORY_CUDA;
        REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y), FS_EUNSUPPORTED, named, "host memory");
        fresh();
        if (rank == bad) A = fs_row_major(y, rows < K ? rows : K, N, FS_F32);
        if (rows > 0) REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y), FS_EINVAL, named, "overlap");
        fresh();
        fs_matrix part = fs_row_major(a, rank == bad ? K - 1 : K, N, FS_F32);
        REFUSED(fs_mpi_sum(made, S, &part, 0.0, &Y), FS_EINVAL, named, "part has 63 rows", "k = 64");
        expect_untouched();
        fresh();
        MUST(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y)); /* and it keeps working */
        fs_mpi_destroy(made);
    }
}

static void ranks_that_ask_for_different_products_are_told(void)
{
    if (ranks == 1) return;
    fs_mpi *made = make_ranks(ctx, FS_MPI_ALL, 0, 0, 0);
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K, spec.seed = rank == bad ? 8 : 7;
    fs_sketch *other = sketch(&spec);
    char message[64];
    snprintf(message, sizeof message, "rank %d has seed = 8, and rank 0 has 7", bad);
    fresh();
    REFUSED(fs_mpi_apply(made, other, row0, 1.0, &A, 0.0, &Y), FS_EINVAL, message);
    snprintf(message, sizeof message, "rank %d has alpha = 0.5, and rank 0 has 1", bad);
    REFUSED(fs_mpi_apply(made, S, row0, rank == bad ? 0.5 : 1.0, &A, 0.0, &Y), FS_EINVAL, message);
    if (rank == bad) A.cols = Y.cols = N - 1;
    snprintf(message, sizeof message, "rank %d has columns of A = 23, and rank 0 has 24", bad);
    REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y), FS_EINVAL, message);
    fresh();
    expect_untouched();
    fs_mpi_destroy(made);
    fs_sketch_destroy(other);
    fs_mpi_options options = FS_MPI_INIT;
    options.ordered = rank == bad;
    MUST(fs_mpi_create(&made, MPI_COMM_WORLD, ctx, &options));
    snprintf(message, sizeof message, "rank %d has ordered = 1, and rank 0 has 0", bad);
    REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y), FS_EINVAL, message);
    fs_mpi_destroy(made);
}

static void a_row_on_two_ranks_is_refused(void)
{
    if (ranks == 1) return;
    fs_mpi *made = make_ranks(ctx, FS_MPI_ALL, 0, 0, 0);
    fresh();
    /* The common mistake: all rows begin at 0. */
    REFUSED(fs_mpi_apply(made, S, 0, 1.0, &A, 0.0, &Y), FS_EINVAL, "no row may be on two ranks",
            "rank 0 has rows 0 to");
    /* One row too early, and ranks in the opposite order. */
    const int64_t back = (int64_t)D * (ranks - 1 - rank) / ranks, early = rank == 0 ? back - 1 : back;
    A.rows = (int64_t)D * (ranks - rank) / ranks - back;
    REFUSED(fs_mpi_apply(made, S, early, 1.0, &A, 0.0, &Y), FS_EINVAL, "no row may be on two ranks");
    expect_untouched();
    MUST(fs_mpi_apply(made, S, back, 1.0, &A, 0.0, &Y));
    fs_mpi_destroy(made);
}

static scarce memory;

static void memory_that_one_rank_cannot_have(void)
{
    for (int gives = 0; gives < 5; gives++) {
        fs_mpi_options options = FS_MPI_INIT;
        fs_mpi *made = NULL;
        if (rank == bad) options.allocator = scarce_allocator(&memory);
        memory.left = gives;
        if (gives < 2) {
            REFUSED(fs_mpi_create(&made, MPI_COMM_WORLD, ctx, &options), FS_ENOMEM, named, "no memory", "bytes");
            EXPECT(!made, "an object was made on rank %d", rank);
            continue;
        }
        MUST(fs_mpi_create(&made, MPI_COMM_WORLD, ctx, &options));
        fresh();
        if (gives == 2) {
            REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y), FS_ENOMEM, named, "no memory", "parts of a sum");
            expect_untouched();
            memory.left = 1;
        }
        MUST(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y));
        fs_mpi_destroy(made);
    }
    /* The context's own memory. */
    fs_context_options where = FS_CONTEXT_INIT;
    fs_context *poor = NULL;
    where.backend = FS_BACKEND_CPU, where.threads = 1;
    if (rank == bad) where.allocator = scarce_allocator(&memory);
    memory.left = 2;
    MUST(fs_context_create(&poor, &where));
    fs_mpi *made = make_ranks(poor, FS_MPI_ALL, 0, 0, 5);
    fresh();
    if (ranks < 8) {
        REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y), FS_ENOMEM, named, "scratch");
        expect_untouched();
    }
    fs_mpi_destroy(made);
    fs_context_destroy(poor);
}

/* A backend that fails at the second tile, while other ranks compute (late.c). */
static void a_device_that_fails_in_the_middle(void)
{
    for (int ordered = 0; ordered < 2; ordered++)
        for (int output = FS_MPI_ALL; output <= FS_MPI_SCATTER; output++) {
            fs_context_options where = FS_CONTEXT_INIT;
            fs_context *mixed = NULL;
            where.backend = rank == bad ? FS_BACKEND_CUDA : FS_BACKEND_CPU;
            where.threads = 1;
            MUST(fs_mpi_agree(MPI_COMM_WORLD, fs_context_create(&mixed, &where)));
            fs_mpi *made = make_ranks(mixed, (fs_mpi_output)output, 0, ordered, 5);
            fresh();
            if (output == FS_MPI_SCATTER) {
                int64_t first;
                MUST(fs_mpi_rows(made, S, &first, &Y.rows));
            }
            if (ranks > 1)
                REFUSED(fs_mpi_apply(made, S, row0, 1.0, &A, 0.0, &Y), FS_EBACKEND, named, "fell off the bus");
            fs_mpi_destroy(made);
            fs_context_destroy(mixed);
        }
}

static void a_step_of_the_callers_own_that_fails(void)
{
    MUST(fs_mpi_agree(MPI_COMM_WORLD, FS_OK));
    fs_context *none = NULL;
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = FS_BACKEND_CPU;
    if (rank == bad) where.threads = -3;
    const fs_result mine = fs_context_create(&none, &where);
    REFUSED(fs_mpi_agree(MPI_COMM_WORLD, mine), FS_EINVAL, named, "threads = -3");
    fs_context_destroy(none);
    /* Two at once: the message is the lower rank's. */
    fs_result both = FS_OK;
    if (rank == 0 || rank == ranks - 1) both = fs_fail(FS_EUNSUPPORTED, "the reason of rank %d", rank);
    REFUSED(fs_mpi_agree(MPI_COMM_WORLD, both), FS_EUNSUPPORTED, "rank 0: the reason of rank 0");
}

static void options_that_do_not_exist(void)
{
    fs_mpi *made = NULL;
    fs_mpi_options options = FS_MPI_INIT;
    REFUSED(fs_mpi_create(&made, MPI_COMM_WORLD, rank == bad ? NULL : ctx, NULL), FS_EINVAL, named, "ctx is NULL");
    REFUSED(fs_mpi_create(rank == bad ? NULL : &made, MPI_COMM_WORLD, ctx, NULL), FS_EINVAL, named, "out is NULL");
    options.output = FS_MPI_ROOT, options.root = ranks;
    REFUSED(fs_mpi_create(&made, MPI_COMM_WORLD, ctx, &options), FS_EINVAL, "rank 0: ", "root is");
    options = (fs_mpi_options)FS_MPI_INIT, options.output = (fs_mpi_output)4;
    REFUSED(fs_mpi_create(&made, MPI_COMM_WORLD, ctx, &options), FS_EINVAL, "output 4 does not exist");
    options = (fs_mpi_options)FS_MPI_INIT, options.ordered = 2;
    REFUSED(fs_mpi_create(&made, MPI_COMM_WORLD, ctx, &options), FS_EINVAL, "ordered is 2");
    options = (fs_mpi_options)FS_MPI_INIT, options.tile = -1;
    REFUSED(fs_mpi_create(&made, MPI_COMM_WORLD, ctx, &options), FS_EINVAL, "tile is -1");
    options = (fs_mpi_options)FS_MPI_INIT, options.size = 4711;
    REFUSED(fs_mpi_create(&made, MPI_COMM_WORLD, ctx, &options), FS_EINVAL, "options.size is 4711");
    EXPECT(fs_mpi_create(&made, MPI_COMM_NULL, ctx, NULL) == FS_EINVAL && strstr(fs_error_message(), "MPI_COMM_NULL"),
           "%s", fs_error_message());
    fs_mpi_destroy(NULL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    bad = ranks / 2;
    snprintf(named, sizeof named, "rank %d: ", bad);
    row0 = (int64_t)D * rank / ranks, rows = (int64_t)D * (rank + 1) / ranks - row0;
    for (int i = 0; i < D * N; i++) a[i] = (float)(i % 7 - 3);
    ctx = cpu();
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K, spec.seed = 7;
    S = sketch(&spec);
    a_wrong_argument_on_one_rank_is_everybodys_error();
    ranks_that_ask_for_different_products_are_told();
    a_row_on_two_ranks_is_refused();
    memory_that_one_rank_cannot_have();
    a_device_that_fails_in_the_middle();
    a_step_of_the_callers_own_that_fails();
    options_that_do_not_exist();
    fs_sketch_destroy(S);
    fs_context_destroy(ctx);
    return end("faults");
}
