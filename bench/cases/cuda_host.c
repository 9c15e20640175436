/* cuda_host.c - cases of `fsbench cuda` where A is in host memory and streams through the GPU.
 *
 * The lower bound is a plain copy of A's bytes from pinned memory to the GPU; copy_share is the rate at which the
 * sketch takes A in over the rate of that copy.  Times are wall-clock times, because a host Y is ready on return. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu/bench_gpu.h"

enum { D = 2097152, N = 1024, K = 1024, HOST_REPETITIONS = 5, PAGE = 4096 };
#define A_BYTES ((size_t)D * N * sizeof(float))
#define Y_BYTES ((size_t)K * N * sizeof(float))

/* One A and Y in memory of one kind, and the pinned A that the lower bound copies. */
typedef struct host_case {
    const char *name;
    float *A, *Y;
    const float *pinned;
} host_case;

static int copy(bench_gpu *g, const float *A)
{
    const cudaError_t queued = cudaMemcpyAsync(g->from.data, A, A_BYTES, cudaMemcpyHostToDevice, g->stream);
    return bench_cuda_failed(queued, "copying A") || bench_cuda_failed(cudaStreamSynchronize(g->stream), "copying A");
}
static int stream(bench_gpu *g, const host_case *c, const fs_sketch *S)
{
    const fs_matrix A = fs_row_major(c->A, D, N, FS_F32);
    fs_matrix Y = fs_row_major(c->Y, K, N, FS_F32);
    const fs_result applied = fs_apply(g->context[FS_PRECISION_FULL], S, 0, 1.0, &A, 0.0, &Y);
    return bench_fs_failed(applied, "sketching a host matrix") ||
           bench_cuda_failed(cudaStreamSynchronize(g->stream), "sketching a host matrix");
}

/* Against the copy of A that the lower bound left on the GPU, sketched in double. */
static int check(bench_gpu *g, const host_case *c, const fs_sketch *S, double *error)
{
    bench_sketch reference = {g->context[FS_PRECISION_FULL], S, 0};
    const fs_matrix from = bench_gpu_view(g->from.data, D, N, 0, FS_F32);
    const fs_matrix to = bench_gpu_view(g->to.data, K, N, 0, FS_F32);
    if (bench_cuda_failed(cudaMemcpy(g->to.data, c->Y, Y_BYTES, cudaMemcpyHostToDevice), "copying Y")) return 1;
    return bench_gpu_error(g, bench_sketch_apply, &reference, &from, &to, error);
}

static int measure(bench_gpu *g, const host_case *c, const fs_sketch *S, const fs_spec *spec)
{
    double floor_ms[HOST_REPETITIONS], ms[HOST_REPETITIONS];
    bench_record record = bench_record_of(c->name, "apply", spec, N, FS_F32);
    for (int i = -1; i < HOST_REPETITIONS; i++) {
        const int at = i < 0 ? 0 : i;
        const double t0 = bench_now();
        if (copy(g, c->pinned)) return 1;
        const double t1 = bench_now();
        if (stream(g, c, S)) return 1;
        floor_ms[at] = 1e3 * (t1 - t0), ms[at] = 1e3 * (bench_now() - t1);
    }
    record.times.floor_ms = bench_median(floor_ms, HOST_REPETITIONS), record.times.floor_min = floor_ms[0];
    record.times.ms = bench_median(ms, HOST_REPETITIONS), record.times.ms_min = ms[0];
    record.times.call_us = 1e3 * record.times.ms;
    record.copy_share = record.times.floor_ms / record.times.ms;
    record.bytes = (int64_t)A_BYTES;
    if (check(g, c, S, &record.error)) return 1;
    bench_gpu_report(g, &record);
    return 0;
}

/* The pageable A is allocated only where a case needs it: 8 GiB take a second to fill. */
static int run(bench_gpu *g, float *pinned_A, float *pinned_Y, const fs_sketch *S, const fs_spec *spec)
{
    const host_case pinned = {"host-pinned", pinned_A, pinned_Y, pinned_A};
    int failed = 0;
    bench_fill(pinned_A, (int64_t)D * N, 1);
    if (bench_wanted(g->options, pinned.name)) failed = measure(g, &pinned, S, spec);
    host_case pageable = {"host-pageable", NULL, NULL, pinned_A};
    if (!bench_wanted(g->options, pageable.name)) return failed;
    pageable.A = aligned_alloc(PAGE, A_BYTES), pageable.Y = aligned_alloc(PAGE, Y_BYTES);
    if (pageable.A && pageable.Y) {
        bench_fill(pageable.A, (int64_t)D * N, 1);
        memset(pageable.Y, 0, Y_BYTES);
        failed |= measure(g, &pageable, S, spec);
    } else {
        fprintf(stderr, "fsbench: no memory for a pageable matrix of %zu bytes\n", A_BYTES);
        failed = 1;
    }
    free(pageable.A);
    free(pageable.Y);
    return failed;
}

int bench_cuda_host(bench_gpu *g)
{
    if (!bench_wanted(g->options, "host-pinned") && !bench_wanted(g->options, "host-pageable")) return 0;
    fs_spec spec = FS_SPEC_INIT;
    fs_sketch *S = NULL;
    float *A = NULL, *Y = NULL;
    spec.d = D, spec.k = K, spec.seed = 7;
    int failed = bench_fs_failed(fs_sketch_create(&S, &spec), "making a sketch") ||
                 bench_fs_failed(fs_sketch_spec(S, &spec), "reading a sketch's spec") ||
                 bench_cuda_failed(cudaMallocHost((void **)&A, A_BYTES), "reserving 8 GiB of pinned memory") ||
                 bench_cuda_failed(cudaMallocHost((void **)&Y, Y_BYTES), "reserving pinned memory for Y");
    if (!failed) failed = run(g, A, Y, S, &spec);
    cudaFreeHost(A);
    cudaFreeHost(Y);
    fs_sketch_destroy(S);
    return failed;
}
