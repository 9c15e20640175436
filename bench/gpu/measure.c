/* measure.c - one measurement: lower bound and work in turns, cold buffers, a busy stream (reasons: bench_gpu.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_gpu.h"

/* Bytes that must pass before a buffer is used again: ten times the largest L2 of today. */
#define RECENT ((int64_t)600 * 1000 * 1000)
enum { WARM_UP = 3, FLOOR_TRIES = 3, ALONE_REPETITIONS = 5 };

/* The arenas divided into buffers of one case, used in turns. */
typedef struct rotation {
    const bench_gpu *g;
    const bench_work *work;
    int64_t slots, next;
} rotation;

static int rotation_make(rotation *r, const bench_gpu *g, const bench_work *w)
{
    const int64_t needed = (RECENT + w->read + w->written - 1) / (w->read + w->written);
    const int64_t inputs = g->from.bytes / w->from_bytes, outputs = g->to.bytes / w->to_bytes;
    const int64_t room = inputs < outputs ? inputs : outputs;
    if (room < 1 || room * (w->read + w->written) < RECENT) {
        fprintf(stderr, "fsbench: %" PRId64 " buffers of %" PRId64 " and %" PRId64 " bytes are too few for a cold L2\n",
                room, w->from_bytes, w->to_bytes);
        return 1;
    }
    *r = (rotation){g, w, needed, 0};
    return 0;
}
/* The next input and output. */
static void rotation_next(rotation *r, void **from, void **to)
{
    *from = r->g->from.data + r->next * r->work->from_bytes;
    *to = r->g->to.data + r->next * r->work->to_bytes;
    r->next = (r->next + 1) % r->slots;
}

static void queue_floor(rotation *r, int shape)
{
    void *from, *to;
    rotation_next(r, &from, &to);
    bench_gpu_floor(r->g, shape, from, r->work->read, to, r->work->written);
}

/* Waits for the work; a failure of any launch before it is reported here. */
static int finish(const bench_gpu *g, int event, const char *doing)
{
    return bench_cuda_failed(cudaGetLastError(), doing) ||
           bench_cuda_failed(cudaEventSynchronize(g->turn[event]), doing);
}
static int mark(const bench_gpu *g, int event)
{
    return bench_cuda_failed(cudaEventRecord(g->turn[event], g->stream), "recording an event");
}
static int between(const bench_gpu *g, int event, double *ms)
{
    float elapsed;
    const cudaError_t error = cudaEventElapsedTime(&elapsed, g->turn[event], g->turn[event + 1]);
    if (bench_cuda_failed(error, "reading two events")) return 1;
    *ms = elapsed;
    return 0;
}

/* The fastest launch shape for this lower bound, or -1. */
static int fastest_floor(rotation *r)
{
    const bench_gpu *g = r->g;
    double best = 0;
    int fastest = -1;
    for (int shape = 0; shape < BENCH_FLOOR_SHAPES; shape++) {
        double ms[FLOOR_TRIES];
        for (int i = -1; i < FLOOR_TRIES; i++) {
            double unused;
            bench_gpu_hold(g);
            if (mark(g, 0)) return -1;
            queue_floor(r, shape);
            if (mark(g, 1) || finish(g, 1, "running the floor") || between(g, 0, i < 0 ? &unused : &ms[i])) return -1;
        }
        const double median = bench_median(ms, FLOOR_TRIES);
        if (fastest < 0 || median < best) best = median, fastest = shape;
    }
    return fastest;
}

/* One turn of lower bound and work. */
static int turn(rotation *r, int shape, double *floor_ms, double *ms, double *call_us)
{
    const bench_gpu *g = r->g;
    void *from, *to;
    bench_gpu_hold(g);
    if (mark(g, 0)) return 1;
    queue_floor(r, shape);
    if (mark(g, 1)) return 1;
    rotation_next(r, &from, &to);
    const double start = bench_now();
    if (r->work->queue(r->work->user, from, to)) return 1;
    *call_us = 1e6 * (bench_now() - start);
    return mark(g, 2) || finish(g, 2, "running the work") || between(g, 0, floor_ms) || between(g, 1, ms);
}

int bench_gpu_measure(bench_gpu *g, const bench_work *w, bench_times *times)
{
    const int repetitions = g->options->repetitions;
    rotation r;
    if (rotation_make(&r, g, w)) return 1;
    bench_gpu_fill(g, g->from.data, r.slots * w->from_bytes, w->dtype);
    const int shape = fastest_floor(&r);
    double *floor_ms = malloc(sizeof *floor_ms * (size_t)repetitions * 3);
    double *ms = floor_ms + repetitions, *call_us = ms + repetitions;
    int failed = shape < 0 || !floor_ms;
    for (int i = -WARM_UP; i < repetitions && !failed; i++) {
        const int at = i < 0 ? 0 : i;
        failed = turn(&r, shape, &floor_ms[at], &ms[at], &call_us[at]);
    }
    if (!failed) {
        times->floor_ms = bench_median(floor_ms, repetitions), times->floor_min = floor_ms[0];
        times->ms = bench_median(ms, repetitions), times->ms_min = ms[0];
        times->call_us = bench_median(call_us, repetitions);
        /* An element that the work does not write must not pass for a result: all ones is NaN in every element
         * type. */
        const cudaError_t cleared = cudaMemsetAsync(g->to.data, 0xFF, (size_t)w->to_bytes, g->stream);
        failed = bench_cuda_failed(cleared, "clearing the output") || w->queue(w->user, g->from.data, g->to.data) ||
                 bench_cuda_failed(cudaStreamSynchronize(g->stream), "running the work once more");
    }
    free(floor_ms);
    return failed;
}

int bench_gpu_measure_alone(bench_gpu *g, int (*queue)(void *user), void *user, double *ms)
{
    double each[ALONE_REPETITIONS];
    for (int i = -1; i < ALONE_REPETITIONS; i++) {
        bench_gpu_hold(g);
        if (mark(g, 0) || queue(user) || mark(g, 1) || finish(g, 1, "making S")) return 1;
        if (between(g, 0, &each[i < 0 ? 0 : i])) return 1;
    }
    *ms = bench_median(each, ALONE_REPETITIONS);
    return 0;
}
