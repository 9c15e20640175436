/* measure_baseline.c - the times of a baseline: the product with S ready, making S, and both in one call. */
#include "bench/baselines/baselines.h"
#include "bench_gpu.h"

/* The state of a baseline while it is measured. */
typedef struct at_work {
    const baseline *baseline;
    void *state;
} at_work;

static int make(void *user)
{
    const at_work *w = user;
    return w->baseline->prepare(w->state);
}
static int multiply(void *user, void *A, void *Y)
{
    const at_work *w = user;
    return w->baseline->run(w->state, A, Y);
}
static int make_and_multiply(void *user, void *A, void *Y) { return make(user) || multiply(user, A, Y); }

int bench_gpu_measure_baseline(bench_gpu *g, const baseline *b, void *state, const baseline_problem *p,
                               bench_times *times, double *prep_ms, double *full_ms)
{
    at_work w = {b, state};
    const int64_t from = p->spec.d * p->n * (int64_t)fs_dtype_size(p->dtype),
                  to = p->spec.k * p->n * (int64_t)fs_dtype_size(FS_F32);
    bench_work work = {p->dtype, from, to, from, to, multiply, &w};
    *prep_ms = *full_ms = -1;
    if (b->prepare) {
        bench_times full;
        work.queue = make_and_multiply;
        if (bench_gpu_measure_alone(g, make, &w, prep_ms) || bench_gpu_measure(g, &work, &full)) return 1;
        *full_ms = full.ms;
        work.queue = multiply;
    }
    return bench_gpu_measure(g, &work, times);
}
