#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rank, ranks;
static long refusals;

/* Memory that the library has not released. */
static long live;
static void *counted(void *user, size_t bytes)
{
    (void)user;
    void *memory = malloc(bytes);
    live += memory != NULL;
    return memory;
}
static void uncounted(void *user, void *memory)
{
    (void)user;
    live--;
    free(memory);
}
static const fs_allocator counting = {counted, uncounted, NULL};

void give_up(const char *file, int line, const char *what, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: rank %d of %d: %s does not hold: ", file, line, rank, ranks, what);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void refused(fs_result result, fs_result code, const char *file, int line, const char *call, const char *const *words)
{
    char message[512], first[512];
    snprintf(message, sizeof message, "%s", fs_error_message());
    if (result != code)
        give_up(file, line, call, "%s (%s) is not %s", fs_result_name(result), message, fs_result_name(code));
    for (int i = 0; words[i]; i++)
        if (!strstr(message, words[i])) give_up(file, line, call, "'%s' is not in '%s'", words[i], message);
    memcpy(first, message, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (strcmp(first, message) != 0) give_up(file, line, call, "rank 0 says '%s', this rank '%s'", first, message);
    refusals++;
}

void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}
int end(const char *name)
{
    EXPECT(live == 0, "%ld pieces of memory were not released", live);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%s: all properties hold on %d ranks, %ld refusals\n", name, ranks, refusals);
    MPI_Finalize();
    return 0;
}

fs_context *cpu(void)
{
    fs_context_options where = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    where.backend = FS_BACKEND_CPU;
    where.threads = 1;
    where.allocator = counting;
    MUST(fs_context_create(&ctx, &where));
    return ctx;
}
fs_sketch *sketch(const fs_spec *spec)
{
    fs_sketch *S = NULL;
    MUST(fs_sketch_create_with(&S, spec, &counting));
    return S;
}
fs_mpi *make_ranks(fs_context *ctx, fs_mpi_output output, int root, int ordered, int64_t tile)
{
    fs_mpi_options options = FS_MPI_INIT;
    fs_mpi *made = NULL;
    options.allocator = counting;
    options.output = output, options.root = root, options.ordered = ordered, options.tile = tile;
    MUST(fs_mpi_create(&made, MPI_COMM_WORLD, ctx, &options));
    return made;
}

void *room(int64_t count, size_t bytes)
{
    void *memory = calloc((size_t)(count > 0 ? count : 1), bytes);
    EXPECT(memory, "no %lld items of %zu bytes", (long long)count, bytes);
    return memory;
}

static uint64_t bits_at(uint64_t seed, int64_t i)
{
    uint64_t z = ((uint64_t)i + seed * 1000003u) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
double whole_at(uint64_t seed, int64_t i) { return (double)(bits_at(seed, i) % 17) - 8; }
double real_at(uint64_t seed, int64_t i) { return (double)(bits_at(seed, i) >> 11) * 0x1p-52 - 1; }
