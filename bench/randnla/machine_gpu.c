/* machine_gpu.c - the experiment on the first GPU, measured as described in bench_gpu.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu/bench_gpu.h"
#include "randnla.h"

enum { MOST = 64 };

/* A GPU and the options that it points to. */
typedef struct gpu_state {
    bench_gpu g;
    bench_options options;
} gpu_state;

static int open(nla_machine *m, const nla_options *o)
{
    gpu_state *s = calloc(1, sizeof *s);
    if (!s) return 1;
    s->options = (bench_options){NULL, o->commit, NULL, o->threads, o->repetitions};
    m->options = o;
    m->g = &s->g;
    if (bench_gpu_open(&s->g, &s->options)) return 1;
    m->context = s->g.context[FS_PRECISION_FULL];
    m->name = s->g.name, m->driver = s->g.driver, m->cuda = s->g.cuda;
    return 0;
}
static void close(nla_machine *m)
{
    if (!m->g) return;
    bench_gpu_close(m->g);
    free((gpu_state *)m->g);
}

static void *alloc(size_t bytes)
{
    void *memory = NULL;
    return bench_cuda_failed(cudaMalloc(&memory, bytes ? bytes : 1), "reserving GPU memory") ? NULL : memory;
}
static void release(void *memory) { cudaFree(memory); }

static int wait(const nla_machine *m, const char *doing)
{
    return bench_cuda_failed(cudaGetLastError(), doing) ||
           bench_cuda_failed(cudaStreamSynchronize(m->g->stream), doing);
}

static int copy(nla_machine *m, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                size_t rows)
{
    const cudaError_t queued = cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, cudaMemcpyDefault,
                                                 m->g->stream);
    return bench_cuda_failed(queued, "copying a matrix") || wait(m, "copying a matrix");
}

static int make(nla_machine *m, const data_set *set, float *A) { return data_make_device(set, A, m->g->stream); }

static int times(nla_machine *m, const float *A, int64_t d, int64_t n, const float *x, double *Ax)
{
    float *device_x = alloc(sizeof *x * (size_t)n);
    double *device_Ax = alloc(sizeof *Ax * (size_t)d);
    const size_t x_bytes = sizeof *x * (size_t)n, bytes = sizeof *Ax * (size_t)d;
    const int bad = !device_x || !device_Ax || copy(m, device_x, x_bytes, x, x_bytes, x_bytes, 1) ||
                    data_times_device(A, d, n, device_x, device_Ax, m->g->stream) ||
                    copy(m, Ax, bytes, device_Ax, bytes, bytes, 1);
    release(device_x);
    release(device_Ax);
    return bad;
}

/* Milliseconds of a call by events and by the host's clock; medians. */
static int measure_call(nla_machine *m, int (*call)(void *user), void *user, nla_times *t)
{
    bench_gpu *g = m->g;
    double ms[MOST], wall[MOST];
    const int count = m->options->repetitions < MOST ? m->options->repetitions : MOST;
    *t = (nla_times){NAN, NAN, NAN, NAN, NAN, NAN};
    for (int i = -2; i < count; i++) {
        float elapsed;
        if (wait(m, "waiting for the GPU")) return 1;
        const double start = bench_now();
        if (bench_cuda_failed(cudaEventRecord(g->turn[0], g->stream), "recording an event") || call(user) ||
            bench_cuda_failed(cudaEventRecord(g->turn[1], g->stream), "recording an event") ||
            wait(m, "running the work"))
            return 1;
        const double stop = bench_now();
        if (bench_cuda_failed(cudaEventElapsedTime(&elapsed, g->turn[0], g->turn[1]), "reading two events")) return 1;
        if (i >= 0) ms[i] = elapsed, wall[i] = 1e3 * (stop - start);
    }
    t->ms = bench_median(ms, count), t->wall_ms = bench_median(wall, count);
    return 0;
}

/* A method on the buffers that the measurement left. */
typedef struct once {
    const baseline *b;
    void *state, *A, *Y;
} once;
static int multiply(void *user)
{
    const once *w = user;
    return w->b->run(w->state, w->A, w->Y);
}

static int measure(nla_machine *m, const baseline *b, void *state, const baseline_problem *p, nla_times *t)
{
    bench_times busy;
    double prep = -1, full = -1;
    once w = {b, state, m->g->from.data, m->g->to.data};
    if (bench_gpu_measure_baseline(m->g, b, state, p, &busy, &prep, &full)) return 1;
    if (measure_call(m, multiply, &w, t)) return 1;
    t->ms = busy.ms, t->floor_ms = busy.floor_ms, t->call_us = busy.call_us;
    t->prep_ms = prep < 0 ? NAN : prep, t->full_ms = full < 0 ? NAN : full;
    return 0;
}

const nla_machine nla_gpu = {.open = open,
                             .close = close,
                             .alloc = alloc,
                             .release = release,
                             .copy = copy,
                             .make = make,
                             .times = times,
                             .measure = measure,
                             .measure_call = measure_call,
                             .textbook = &textbook_gpu,
                             .memory = FS_MEMORY_CUDA};
