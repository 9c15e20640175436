/* machine_gpu.c - projections on the first GPU, measured as described in bench_gpu.h: cold batches, a busy stream,
 * events. */
#include "grass.h"
#include "reorder.h"

static int open(grass_machine *m, const grass_options *o, int64_t most_k)
{
    (void)most_k;
    m->base = nla_gpu;
    if (m->base.open(&m->base, &o->common)) return 1;
    m->A = (float *)m->base.g->from.data, m->Y = (float *)m->base.g->to.data;
    return 0;
}
static void close(grass_machine *m)
{
    if (m->base.close) m->base.close(&m->base);
}

static int gather(grass_machine *m, const float *A, int64_t n, int64_t p, const int64_t *list, int64_t count, float *to)
{
    grass_gather_device(m->base.g, A, n, p, list, count, to);
    return bench_cuda_failed(cudaGetLastError(), "gathering coordinates");
}
static int transpose(grass_machine *m, const float *from, int64_t rows, int64_t cols, float *to)
{
    grass_transpose_device(m->base.g, from, rows, cols, to);
    return bench_cuda_failed(cudaGetLastError(), "transposing");
}

static int measure(grass_machine *m, const grass_work *w, grass_times *t)
{
    const bench_work work = {FS_F32, w->from_bytes, w->to_bytes, w->read, w->written, w->queue, w->user};
    bench_times times;
    if (bench_gpu_measure(m->base.g, &work, &times)) return 1;
    *t = (grass_times){times.floor_ms, times.ms, times.ms_min, times.call_us};
    return 0;
}
static int measure_alone(grass_machine *m, int (*call)(void *user), void *user, double *ms)
{
    return bench_gpu_measure_alone(m->base.g, call, user, ms);
}

const grass_machine grass_gpu = {.open = open,
                                 .close = close,
                                 .gather = gather,
                                 .transpose = transpose,
                                 .measure = measure,
                                 .measure_alone = measure_alone};
