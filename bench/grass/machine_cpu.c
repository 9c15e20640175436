/* machine_cpu.c - projections on a CPU, by the host's clock. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grass.h"

enum { LEAST = 3, MOST = 64, TILE = 16 };
static const double enough = 1.0; /* seconds; what takes longer is measured less often, but LEAST times */

static int open(grass_machine *m, const grass_options *o, int64_t most_k)
{
    m->base = nla_cpu;
    if (m->base.open(&m->base, &o->common)) return 1;
    m->A = m->base.alloc(sizeof *m->A * (size_t)(o->n * grass_pitch(o->p)));
    m->Y = m->base.alloc(sizeof *m->Y * (size_t)(o->n * most_k));
    if (!m->A || !m->Y) return 1;
    bench_fill(m->A, o->n * grass_pitch(o->p), 1);
    return 0;
}

static void close(grass_machine *m)
{
    if (!m->base.close) return;
    m->base.release(m->A);
    m->base.release(m->Y);
    m->base.close(&m->base);
}

static int gather(grass_machine *m, const float *A, int64_t n, int64_t p, const int64_t *list, int64_t count, float *to)
{
#pragma omp parallel for schedule(static) num_threads(m->base.options->threads)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < count; j++) to[i * count + j] = A[i * p + list[j]];
    return 0;
}

/* Tiles that are read and written in whole cache lines. */
static int transpose(grass_machine *m, const float *from, int64_t rows, int64_t cols, float *to)
{
#pragma omp parallel for schedule(static) num_threads(m->base.options->threads)
    for (int64_t j0 = 0; j0 < cols; j0 += TILE)
        for (int64_t i0 = 0; i0 < rows; i0 += TILE) {
            const int64_t height = rows - i0 < TILE ? rows - i0 : TILE, width = cols - j0 < TILE ? cols - j0 : TILE;
            float tile[TILE][TILE];
            for (int64_t i = 0; i < height; i++)
                for (int64_t j = 0; j < width; j++) tile[j][i] = from[(i0 + i) * cols + j0 + j];
            for (int64_t j = 0; j < width; j++)
                memcpy(to + (j0 + j) * rows + i0, tile[j], sizeof(float) * (size_t)height);
        }
    return 0;
}

/* Lower bound and work are measured in turns, under the same load of the machine. */
static int measure(grass_machine *m, const grass_work *w, grass_times *t)
{
    const nla_options *o = m->base.options;
    const int most = o->repetitions < MOST ? o->repetitions : MOST;
    double each[MOST], other[MOST];
    int count = 0;
    if (w->queue(w->user, m->A, m->Y)) return 1;
    for (const double start = bench_now(); count < most && (count < LEAST || bench_now() - start < enough); count++) {
        const double t0 = bench_now();
        bench_floor(m->A, w->read, m->Y, w->written, o->threads);
        const double t1 = bench_now();
        if (w->queue(w->user, m->A, m->Y)) return 1;
        other[count] = 1e3 * (t1 - t0), each[count] = 1e3 * (bench_now() - t1);
    }
    *t = (grass_times){bench_median(other, count), bench_median(each, count), each[0], NAN};
    /* An element that the work does not write must not pass for a result: all ones is NaN. */
    memset(m->Y, 0xFF, (size_t)w->to_bytes);
    return w->queue(w->user, m->A, m->Y);
}

static int measure_alone(grass_machine *m, int (*call)(void *user), void *user, double *ms)
{
    double each[LEAST];
    (void)m;
    for (int i = 0; i < LEAST; i++) {
        const double start = bench_now();
        if (call(user)) return 1;
        each[i] = 1e3 * (bench_now() - start);
    }
    *ms = bench_median(each, LEAST);
    return 0;
}

const grass_machine grass_cpu = {.open = open,
                                 .close = close,
                                 .gather = gather,
                                 .transpose = transpose,
                                 .measure = measure,
                                 .measure_alone = measure_alone};
