/* check.c - the error of a result: some of its columns against the same columns computed in double, or all of it
 * against a result that was kept. */
#include <math.h>
#include <stdio.h>

#include "bench_gpu.h"

enum { CHECKED = 64 };

fs_matrix bench_gpu_view(void *data, int64_t rows, int64_t cols, int batch_major, fs_dtype dtype)
{
    fs_matrix m = batch_major ? fs_batch_major(data, cols, rows, dtype) : fs_row_major(data, rows, cols, dtype);
    m.memory = FS_MEMORY_CUDA;
    return m;
}

int bench_sketch_apply(void *sketch, const fs_matrix *from, fs_matrix *to)
{
    const bench_sketch *s = sketch;
    const fs_result result = s->adjoint ? fs_apply_adjoint(s->context, s->S, 0, 1.0, from, 0.0, to)
                                        : fs_apply(s->context, s->S, 0, 1.0, from, 0.0, to);
    return bench_fs_failed(result, "applying a sketch");
}

/* sqrt(sums[0] / sums[1]) once `to` is compared with a reference in double, by columns `step` apart. */
static int compare(bench_gpu *g, const fs_matrix *to, int64_t step, int64_t cols, const double *reference, double *sums,
                   double *error)
{
    double result[2];
    if (bench_cuda_failed(cudaMemsetAsync(sums, 0, 2 * sizeof *sums, g->stream), "clearing two sums")) return 1;
    bench_gpu_compare(g, to, step, cols, reference, sums);
    if (bench_cuda_failed(cudaGetLastError(), "comparing with the reference")) return 1;
    if (bench_cuda_failed(cudaStreamSynchronize(g->stream), "comparing with the reference")) return 1;
    const cudaError_t read = cudaMemcpy(result, sums, sizeof result, cudaMemcpyDeviceToHost);
    if (bench_cuda_failed(read, "reading two sums")) return 1;
    *error = sqrt(result[0] / result[1]);
    return 0;
}

int bench_gpu_error(bench_gpu *g, bench_reference reference, void *user, const fs_matrix *from, const fs_matrix *to,
                    double *error)
{
    /* Input, output and two sums share the check's memory. */
    const int64_t room = g->check.bytes / (int64_t)sizeof(double) - 2;
    int64_t cols = from->cols < CHECKED ? from->cols : CHECKED;
    while (cols > 1 && (from->rows + to->rows) * cols > room) cols /= 2;
    if ((from->rows + to->rows) * cols > room) {
        fprintf(stderr, "fsbench: a column is too long to be checked\n");
        return 1;
    }
    const int64_t step = from->cols / cols;
    double *sums = (double *)g->check.data, *in = sums + 2, *out = in + from->rows * cols;
    const fs_matrix exact_from = bench_gpu_view(in, from->rows, cols, 0, FS_F64);
    fs_matrix exact_to = bench_gpu_view(out, to->rows, cols, 0, FS_F64);
    bench_gpu_widen(g, from, step, cols, in);
    return reference(user, &exact_from, &exact_to) || compare(g, to, step, cols, out, sums, error);
}

int bench_gpu_keep(bench_gpu *g, const fs_matrix *m)
{
    if (m->rows * m->cols > g->check.bytes / (int64_t)sizeof(double) - 2) {
        fprintf(stderr, "fsbench: a result is too large to be kept\n");
        return 1;
    }
    bench_gpu_widen(g, m, 1, m->cols, (double *)g->check.data + 2);
    return bench_cuda_failed(cudaStreamSynchronize(g->stream), "keeping a result");
}

int bench_gpu_difference(bench_gpu *g, const fs_matrix *m, double *difference)
{
    double *sums = (double *)g->check.data;
    return compare(g, m, 1, m->cols, sums + 2, sums, difference);
}
