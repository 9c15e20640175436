/* ranks.c - the ranks of a communicator: creation, queries, destruction. */
#include "ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A duplicate of the communicator, whose errors are returned as codes. */
static fs_result open_comm(fs_mpi *made, MPI_Comm comm)
{
    int ready = 0, inter = 0;
    FSI_TRY_MPI(MPI_Initialized(&ready), "querying whether it is initialized");
    FSI_REQUIRE(ready, "fs_mpi_create: MPI_Init has not been called");
    FSI_REQUIRE(comm != MPI_COMM_NULL, "fs_mpi_create: the communicator is MPI_COMM_NULL");
    FSI_TRY_MPI(MPI_Comm_test_inter(comm, &inter), "examining the communicator");
    FSI_REQUIRE(!inter, "fs_mpi_create: an intercommunicator has two groups of ranks; merge them first");
    FSI_TRY_MPI(MPI_Comm_dup(comm, &made->comm), "duplicating the communicator");
    FSI_TRY_MPI(MPI_Comm_set_errhandler(made->comm, MPI_ERRORS_RETURN), "setting its error handler");
    FSI_TRY_MPI(MPI_Comm_rank(made->comm, &made->rank), "querying the rank");
    FSI_TRY_MPI(MPI_Comm_size(made->comm, &made->size), "querying the number of ranks");
    return FS_OK;
}

static fs_result check_options(fs_mpi *made, fs_mpi **out, fs_context *ctx, const fs_mpi_options *options)
{
    const char *who = "fs_mpi_create";
    fs_mpi_options *full = &made->options;
    FSI_REQUIRE(out, "%s: out is NULL", who);
    FSI_REQUIRE(ctx, "%s: ctx is NULL", who);
    if (options) FSI_TRY(fs_struct_read(who, "options", options, full, sizeof *full));
    if (!full->output) full->output = FS_MPI_ALL;
    FSI_REQUIRE(full->output >= FS_MPI_ALL && full->output <= FS_MPI_SCATTER,
                "%s: output %d does not exist; it must be one of fs_mpi_output", who, (int)full->output);
    FSI_REQUIRE(full->output != FS_MPI_ROOT || (full->root >= 0 && full->root < made->size),
                "%s: root is %d, and there are ranks 0 to %d", who, full->root, made->size - 1);
    FSI_REQUIRE(full->ordered == 0 || full->ordered == 1, "%s: ordered is %d, it must be 0 or 1", who, full->ordered);
    FSI_REQUIRE(full->tile >= 0, "%s: tile is %" PRId64 " columns, it cannot be negative", who, full->tile);
    FSI_REQUIRE(!full->allocator.alloc == !full->allocator.release, "%s: the allocator needs both alloc and release",
                who);
    return FS_OK;
}

/* Memory for the arrays with one entry per rank. */
static fs_result take_tables(fs_mpi *made)
{
    const size_t ranks = (size_t)made->size, numbers = ranks * FSI_RANKS_SLOTS * 4;
    const size_t bytes = ranks * sizeof *made->shares + ranks * sizeof *made->planes +
                         (ranks + 1) * sizeof *made->first + numbers * sizeof *made->numbers;
    char *memory = made->allocator.alloc(made->allocator.user, bytes);
    if (!memory) return fs_fail(FS_ENOMEM, "fs_mpi_create: no memory for %zu bytes of tables", bytes);
    made->shares = (fsi_ranks_share *)memory;
    made->planes = (fs_matrix *)(made->shares + ranks);
    made->first = (int64_t *)(made->planes + ranks);
    made->numbers = (int *)(made->first + ranks + 1);
    for (int s = 0; s < FSI_RANKS_SLOTS; s++)
        for (int i = 0; i < 2; i++) {
            made->slots[s].counts[i] = made->numbers + (size_t)(4 * s + 2 * i) * ranks;
            made->slots[s].starts[i] = made->slots[s].counts[i] + ranks;
            made->slots[s].request = MPI_REQUEST_NULL;
        }
    return FS_OK;
}

static void release(fs_mpi *ranks)
{
    const fs_allocator memory = ranks->allocator;
    if (ranks->scratch) memory.release(memory.user, ranks->scratch);
    if (ranks->shares) memory.release(memory.user, ranks->shares);
    if (ranks->comm != MPI_COMM_NULL) MPI_Comm_free(&ranks->comm);
}

fs_result fs_mpi_create(fs_mpi **out, MPI_Comm comm, fs_context *ctx, const fs_mpi_options *options)
{
    fs_mpi made = {.comm = MPI_COMM_NULL, .options = FS_MPI_INIT, .ctx = ctx};
    if (out) *out = NULL;
    FSI_TRY(open_comm(&made, comm));
    fs_mpi *kept = NULL;
    fs_result mine = check_options(&made, out, ctx, options);
    made.allocator = fs_allocator_or_malloc(&made.options.allocator);
    if (mine == FS_OK) mine = take_tables(&made);
    if (mine == FS_OK) {
        kept = made.allocator.alloc(made.allocator.user, sizeof *kept);
        if (!kept) mine = fs_fail(FS_ENOMEM, "fs_mpi_create: no memory for %zu bytes", sizeof *kept);
    }
    const fs_result all = fs_mpi_agree(made.comm, mine);
    if (all != FS_OK) {
        release(&made);
        if (kept) made.allocator.release(made.allocator.user, kept);
        return all;
    }
    *kept = made;
    *out = kept;
    return FS_OK;
}

void fs_mpi_destroy(fs_mpi *ranks)
{
    if (!ranks) return;
    const fs_allocator memory = ranks->allocator;
    release(ranks);
    memory.release(memory.user, ranks);
}

char *fsi_ranks_scratch(fs_mpi *ranks, const char *who, size_t bytes)
{
    if (bytes <= ranks->scratch_bytes) return ranks->scratch;
    const fs_allocator memory = ranks->allocator;
    if (ranks->scratch) memory.release(memory.user, ranks->scratch);
    ranks->scratch = memory.alloc(memory.user, bytes);
    ranks->scratch_bytes = ranks->scratch ? bytes : 0;
    if (!ranks->scratch) fs_fail(FS_ENOMEM, "%s: no memory for %zu bytes of parts of a sum", who, bytes);
    return ranks->scratch;
}

/* The first of the elements [n] that are in part i, where they are cut into contiguous parts whose sizes differ by at
 * most one, the larger ones first: the blocks of S are cut so, too. */
static int64_t start_of_part(int64_t n, int64_t parts, int64_t i)
{
    const int64_t larger = n % parts;
    return i * (n / parts) + (i < larger ? i : larger);
}

/* The first of the rows of Y of rank r: whole blocks of S, or any rows where it has no blocks or they do not matter. */
static int64_t first_row_of(const fs_spec *spec, int ranks, int by_blocks, int r)
{
    const int64_t parts = by_blocks && spec->M > 1 ? spec->M : spec->k;
    return start_of_part(spec->k, parts, start_of_part(parts, ranks, r));
}

void fsi_ranks_divide(fs_mpi *ranks, const fs_spec *spec)
{
    const int by_blocks = ranks->output == FS_MPI_SCATTER;
    for (int r = 0; r <= ranks->size; r++) ranks->first[r] = first_row_of(spec, ranks->size, by_blocks, r);
}

fs_result fs_mpi_rows(const fs_mpi *ranks, const fs_sketch *S, int64_t *row0, int64_t *rows)
{
    FSI_REQUIRE(ranks && S && row0 && rows, "fs_mpi_rows: an argument is NULL");
    fs_spec spec = FS_SPEC_INIT;
    FSI_TRY(fs_sketch_spec(S, &spec));
    *row0 = first_row_of(&spec, ranks->size, 1, ranks->rank);
    *rows = first_row_of(&spec, ranks->size, 1, ranks->rank + 1) - *row0;
    return FS_OK;
}

int fs_mpi_describe(const fs_mpi *ranks, char *text, size_t bytes)
{
    if (!ranks) return snprintf(text, bytes, "no ranks");
    static const char *const outputs[] = {"?", "Y to all", "Y to one rank", "Y scattered"};
    char context[256], library[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    int length = 0;
    fs_context_describe(ranks->ctx, context, sizeof context);
    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = 0;
    return snprintf(text, bytes, "rank %d of %d: %s; %s, %s; %s", ranks->rank, ranks->size, context,
                    outputs[ranks->options.output], ranks->options.ordered ? "in the order of ranks" : "in MPI's order",
                    library);
}

size_t fs_mpi_memory_bytes(const fs_mpi *ranks) { return ranks ? ranks->scratch_bytes : 0; }
