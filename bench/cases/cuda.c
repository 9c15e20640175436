/* cuda.c - `fsbench cuda`: every case of groups.c against its lower bound, then matrices in host memory, then
 * third-party baselines. */
#include "bench/gpu/bench_gpu.h"
#include "groups.h"

static int measure(bench_gpu *g, bench_case *c, void *unused)
{
    (void)unused;
    const bench_group *group = c->group;
    const bench_work work = bench_case_work(c);
    const char *op = group->adjoint ? "adjoint" : "apply";
    bench_record record = bench_record_of(group->name, op, &c->spec, c->n, group->dtype);
    record.batch_major = group->batch_major;
    record.precision = group->precision;
    record.bytes = work.read + work.written;
    if (bench_gpu_measure(g, &work, &record.times)) return 1;
    /* The reference sums in double, so its context is the one of full precision. */
    bench_sketch reference = {g->context[FS_PRECISION_FULL], c->S, group->adjoint};
    const fs_matrix from = bench_case_from(c, g->from.data), to = bench_case_to(c, g->to.data);
    if (bench_gpu_error(g, bench_sketch_apply, &reference, &from, &to, &record.error)) return 1;
    bench_gpu_report(g, &record);
    return 0;
}

int bench_cuda(const bench_options *options)
{
    bench_gpu g;
    int failed = bench_gpu_open(&g, options);
    if (!failed) {
        failed = bench_for_cases(&g, 0, measure, NULL);
        failed |= bench_cuda_host(&g);
        failed |= bench_cuda_baselines(&g);
    }
    bench_gpu_close(&g);
    return failed;
}
