/* device.c - opens the GPU of a benchmark: stream, contexts, memory, name. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_gpu.h"

/* What the largest cases need: 29 buffers of 256 MiB (FlashBlockRow at k = 1024 reads 16 MiB of each) or 8 GiB of a
 * host matrix; three outputs of 256 MiB (the adjoint); 16 columns of 2^24 rows in double, and their sketch. */
#define FROM_BYTES ((int64_t)8 << 30)
#define TO_BYTES ((int64_t)1 << 30)
#define CHECK_BYTES ((int64_t)3 << 30)

int bench_cuda_failed(cudaError_t error, const char *doing)
{
    if (error == cudaSuccess) return 0;
    fprintf(stderr, "fsbench: %s: %s\n", doing, cudaGetErrorString(error));
    return 1;
}

int bench_wanted(const bench_options *options, const char *name)
{
    return !options->filter || strstr(name, options->filter) != NULL;
}

void bench_no_result(const char *name, int64_t d, int64_t n, int64_t k)
{
    fprintf(stderr, "fsbench: case %s, d = %" PRId64 ", n = %" PRId64 ", k = %" PRId64 " has no result\n", name, d, n,
            k);
}

/* The kernel driver's version: the first word with a digit and a dot in its description. */
static void driver_version(char *text, size_t bytes)
{
    char line[256] = "";
    FILE *f = fopen("/proc/driver/nvidia/version", "r");
    if (f && !fgets(line, sizeof line, f)) line[0] = 0;
    if (f) fclose(f);
    snprintf(text, bytes, "unknown");
    for (char *word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n"))
        if (isdigit((unsigned char)word[0]) && strchr(word, '.')) {
            snprintf(text, bytes, "%s", word);
            return;
        }
}

static int describe(bench_gpu *g)
{
    struct cudaDeviceProp properties;
    int version;
    if (bench_cuda_failed(cudaGetDeviceProperties(&properties, 0), "asking for the GPU's properties")) return 1;
    if (bench_cuda_failed(cudaRuntimeGetVersion(&version), "asking for CUDA's version")) return 1;
    snprintf(g->name, sizeof g->name, "%s", properties.name);
    snprintf(g->cuda, sizeof g->cuda, "%d.%d", version / 1000, version % 1000 / 10);
    driver_version(g->driver, sizeof g->driver);
    g->processors = properties.multiProcessorCount;
    return 0;
}

static int reserve(bench_arena *arena, int64_t bytes)
{
    char doing[80];
    snprintf(doing, sizeof doing, "reserving %.1f GiB of GPU memory", (double)bytes / (1 << 30));
    if (bench_cuda_failed(cudaMalloc((void **)&arena->data, (size_t)bytes), doing)) return 1;
    arena->bytes = bytes;
    return 0;
}

/* Clocks rise under load: read for a third of a second before the first number counts. */
static int run_warm(bench_gpu *g)
{
    bench_gpu_fill(g, g->from.data, g->from.bytes, FS_F32);
    for (const double start = bench_now(); bench_now() - start < 0.3;) {
        bench_gpu_floor(g, 0, g->from.data, g->from.bytes / 8, g->to.data, 16);
        if (bench_cuda_failed(cudaStreamSynchronize(g->stream), "running the GPU warm")) return 1;
    }
    return 0;
}

int bench_gpu_open(bench_gpu *g, const bench_options *options)
{
    memset(g, 0, sizeof *g);
    g->options = options;
    if (describe(g)) return 1;
    if (bench_cuda_failed(cudaStreamCreate(&g->stream), "making a stream")) return 1;
    for (int i = 0; i < 3; i++)
        if (bench_cuda_failed(cudaEventCreate(&g->turn[i]), "making an event")) return 1;
    for (int precision = FS_PRECISION_FULL; precision <= FS_PRECISION_FAST; precision++) {
        fs_context_options where = FS_CONTEXT_INIT;
        where.backend = FS_BACKEND_CUDA;
        where.threads = options->threads;
        where.stream = g->stream;
        where.precision = (fs_precision)precision;
        if (bench_fs_failed(fs_context_create(&g->context[precision], &where), "opening a CUDA context")) return 1;
    }
    return reserve(&g->from, FROM_BYTES) || reserve(&g->to, TO_BYTES) || reserve(&g->check, CHECK_BYTES) || run_warm(g);
}

void bench_gpu_close(bench_gpu *g)
{
    for (int i = 0; i < 2; i++) fs_context_destroy(g->context[i]);
    cudaFree(g->from.data);
    cudaFree(g->to.data);
    cudaFree(g->check.data);
    for (int i = 0; i < 3; i++)
        if (g->turn[i]) cudaEventDestroy(g->turn[i]);
    if (g->stream) cudaStreamDestroy(g->stream);
}
