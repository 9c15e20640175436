/* machine_cpu.c - the experiment on a CPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "randnla.h"

enum { PAGE = 4096, LEAST = 3, MOST = 64 };
static const double enough = 1.0; /* seconds; what takes longer is measured less often, but LEAST times */

fs_matrix nla_view(const nla_machine *m, float *data, int64_t rows, int64_t cols, int64_t stride)
{
    fs_matrix view = fs_row_major(data, rows, cols, FS_F32);
    view.row_stride = stride;
    view.memory = m->memory;
    return view;
}

static int open(nla_machine *m, const nla_options *o)
{
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = FS_BACKEND_CPU;
    where.threads = o->threads;
    m->options = o;
    m->name = bench_machine();
    return bench_fs_failed(fs_context_create(&m->context, &where), "opening a CPU context");
}
static void close(nla_machine *m) { fs_context_destroy(m->context); }

static void *alloc(size_t bytes)
{
    void *memory = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE + PAGE);
    if (!memory) fprintf(stderr, "fsbench: no memory for %zu bytes\n", bytes);
    return memory;
}

static int copy(nla_machine *m, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                size_t rows)
{
    (void)m;
    for (size_t i = 0; i < rows; i++) memcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
    return 0;
}

static int make(nla_machine *m, const data_set *set, float *A)
{
    (void)m;
    return data_make(set, A);
}
static int times(nla_machine *m, const float *A, int64_t d, int64_t n, const float *x, double *Ax)
{
    (void)m;
    data_times(A, d, n, x, Ax);
    return 0;
}

/* A method on test data. */
typedef struct work {
    const baseline *b;
    void *state, *A, *Y;
} work;
static int prepare(void *user)
{
    const work *w = user;
    return w->b->prepare(w->state);
}
static int multiply(void *user)
{
    const work *w = user;
    return w->b->run(w->state, w->A, w->Y);
}
static int prepare_and_multiply(void *user) { return prepare(user) || multiply(user); }

/* Median milliseconds of a call, after one that does not count; `beside`, where there is one, takes turns with it. */
static int median(nla_machine *m, int (*call)(void *), void *user, void (*beside)(void *), void *floor, double *ms,
                  double *floor_ms)
{
    double each[MOST], other[MOST];
    int count = 0, most = m->options->repetitions < MOST ? m->options->repetitions : MOST;
    if (call(user)) return 1;
    for (const double start = bench_now(); count < most && (count < LEAST || bench_now() - start < enough); count++) {
        const double t0 = bench_now();
        if (beside) beside(floor);
        const double t1 = bench_now();
        if (call(user)) return 1;
        other[count] = 1e3 * (t1 - t0), each[count] = 1e3 * (bench_now() - t1);
    }
    *ms = bench_median(each, count);
    if (beside) *floor_ms = bench_median(other, count);
    return 0;
}

typedef struct floor_work {
    void *A, *Y;
    int64_t read, written;
    int threads;
} floor_work;
static void read_and_write(void *user)
{
    const floor_work *f = user;
    bench_floor(f->A, f->read, f->Y, f->written, f->threads);
}

static int measure(nla_machine *m, const baseline *b, void *state, const baseline_problem *p, nla_times *t)
{
    const int64_t read = p->spec.d * p->n * 4, written = p->spec.k * p->n * 4;
    work w = {b, state, alloc((size_t)read), alloc((size_t)written)};
    floor_work floor = {w.A, w.Y, read, written, m->options->threads};
    int bad = !w.A || !w.Y;
    *t = (nla_times){NAN, NAN, NAN, NAN, NAN, NAN};
    if (!bad) bench_fill(w.A, p->spec.d * p->n, 1);
    if (!bad && b->prepare)
        bad = median(m, prepare, &w, NULL, NULL, &t->prep_ms, NULL) ||
              median(m, prepare_and_multiply, &w, NULL, NULL, &t->full_ms, NULL);
    if (!bad) bad = median(m, multiply, &w, read_and_write, &floor, &t->wall_ms, &t->floor_ms);
    free(w.A);
    free(w.Y);
    return bad;
}

static int measure_call(nla_machine *m, int (*call)(void *user), void *user, nla_times *t)
{
    *t = (nla_times){NAN, NAN, NAN, NAN, NAN, NAN};
    return median(m, call, user, NULL, NULL, &t->wall_ms, NULL);
}

const nla_machine nla_cpu = {.open = open,
                             .close = close,
                             .alloc = alloc,
                             .release = free,
                             .copy = copy,
                             .make = make,
                             .times = times,
                             .measure = measure,
                             .measure_call = measure_call,
                             .textbook = &textbook_cpu,
                             .memory = FS_MEMORY_HOST};
