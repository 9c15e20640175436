/* device.c - see device.h: lanes, the loop over cases and the main function; memory.c has the rest. */
#include "device.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_LANES = 8, MOST_FAILURES = 6, NO_GPU = 77 };

int small_set, dry;
lane lanes[MOST_LANES];
int lane_count;

fs_memory device_place(void) { return dry ? FS_MEMORY_HOST : FS_MEMORY_CUDA; }

static long number_in_environment(const char *name, long otherwise)
{
    const char *text = getenv(name);
    const long number = text ? atol(text) : 0;
    return number > 0 ? number : otherwise;
}

void must_cuda(int error, const char *call, const char *file, int line)
{
    if (error != cudaSuccess) fail_msg("%s:%d: %s: %s", file, line, call, cudaGetErrorString((cudaError_t)error));
}

void skip_because(const char *why)
{
    printf("    skipped: %s\n", why);
    skip();
}

/* lanes ----------------------------------------------------------------------------------------------------- */

void *stream_make(void)
{
    cudaStream_t stream = NULL;
    if (!dry) CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}
void stream_free(void *stream)
{
    if (!dry) CUDA(cudaStreamDestroy((cudaStream_t)stream));
}
void stream_wait(void *stream)
{
    if (!dry) CUDA(cudaStreamSynchronize((cudaStream_t)stream));
}

fs_context *gpu_context(void *stream, fs_precision precision)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    options.backend = dry ? FS_BACKEND_CPU : FS_BACKEND_CUDA;
    options.stream = stream;
    options.threads = 2;
    options.precision = precision;
    MUST(fs_context_create(&ctx, &options));
    return ctx;
}

static fs_context *tuned_context(int threads)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    options.backend = FS_BACKEND_CPU;
    options.threads = threads;
    MUST(fs_context_create(&ctx, &options));
    return ctx;
}

static int open_lanes(void **state)
{
    (void)state;
    device_keep_memory();
    const long cores = sysconf(_SC_NPROCESSORS_ONLN) > 0 ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
    const long most = cores < MOST_LANES ? cores : MOST_LANES;
    const long wanted = small_set ? 1 : number_in_environment("FS_DEVICE_TESTS_THREADS", most);
    const int count = wanted < MOST_LANES ? (int)wanted : MOST_LANES;
    for (lane_count = 0; lane_count < count; lane_count++) {
        lane *l = &lanes[lane_count];
        l->stream = stream_make();
        l->gpu = gpu_context(l->stream, FS_PRECISION_FULL);
        l->ref = context_of("ref", 1);
        l->tuned = tuned_context(cores > count ? (int)(cores / count) : 1);
    }
    char text[512];
    fs_context_describe(lanes[0].gpu, text, sizeof text);
    printf("context: %s; %d host threads\n", text, lane_count);
    return 0;
}
static int close_lanes(void **state)
{
    (void)state;
    while (lane_count > 0) {
        lane *l = &lanes[--lane_count];
        stream_wait(l->stream);
        fs_context_destroy(l->gpu);
        fs_context_destroy(l->ref);
        fs_context_destroy(l->tuned);
        stream_free(l->stream);
    }
    return 0;
}

/* cases ----------------------------------------------------------------------------------------------------- */

typedef struct loop {
    int64_t count, step;
    case_function *check;
    const void *data;
    atomic_llong next;
    atomic_int tried, failures;
} loop;
typedef struct one_case {
    loop *all;
    const lane *l;
    int64_t number;
} one_case;

static void run_case(void *argument)
{
    const one_case *c = argument;
    c->all->check(c->l, c->number, c->all->data);
}

typedef struct helper {
    loop *all;
    const lane *l;
} helper;
static void *run_cases(void *argument)
{
    const helper *h = argument;
    while (atomic_load(&h->all->failures) < MOST_FAILURES) {
        one_case c = {h->all, h->l, atomic_fetch_add(&h->all->next, h->all->step)};
        if (c.number >= h->all->count) break;
        atomic_fetch_add(&h->all->tried, 1);
        if (!stand_in_attempt(run_case, &c)) atomic_fetch_add(&h->all->failures, 1);
    }
    return NULL;
}

/* The least prime from `least` on, at least 13.  Cases are numbered in mixed radix, and no radix has a larger factor
 * than 11: steps of a larger prime reach every value of every digit. */
static int64_t prime_from(int64_t least)
{
    for (int64_t p = least > 13 ? least : 13;; p++) {
        int64_t q = 2;
        while (q * q <= p && p % q != 0) q++;
        if (q * q > p) return p;
    }
}

void for_each_case(int64_t count, int64_t few, case_function *check, const void *data)
{
    const long thin = number_in_environment("FS_DEVICE_TESTS_THIN", 1);
    loop all = {.count = count, .step = 1, .check = check, .data = data};
    if (small_set && few < count) all.step = prime_from(count / few);
    else if (!small_set && thin > 1 && count > 4 * thin) all.step = prime_from(thin);
    pthread_t threads[MOST_LANES];
    helper helpers[MOST_LANES];
    int started = 0;
    for (int i = 1; i < lane_count; i++) {
        helpers[started] = (helper){&all, &lanes[i]};
        if (pthread_create(&threads[started], NULL, run_cases, &helpers[started]) == 0) started++;
    }
    helper own = {&all, &lanes[0]};
    run_cases(&own);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    const int failures = atomic_load(&all.failures), tried = atomic_load(&all.tried);
    if (failures > 0)
        fail_msg("%d of %d cases failed%s", failures, tried, failures < MOST_FAILURES ? "" : "; others were not tried");
    if (tried == 0) fail_msg("no case was tried");
}

/* the program ----------------------------------------------------------------------------------------------- */

static int gpu_is_there(void)
{
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error == cudaSuccess && devices > 0) return 1;
    printf("skipped: there is no GPU here (%s)\n", cudaGetErrorString(error));
    return 0;
}

int run_device_tests(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--small") != 0)) {
        fprintf(stderr, "usage: %s [--small]\n", argv[0]);
        return 2;
    }
    small_set = argc == 2;
    dry = number_in_environment("FS_DEVICE_TESTS_DRY", 0) != 0;
    if (!dry && !gpu_is_there()) return NO_GPU;
    return stand_in_run(tests, count, open_lanes, close_lanes);
}
