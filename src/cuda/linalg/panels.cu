/* panels.cu - rows of A as packed columns of f64, and back, 16 bytes of the narrower type at a time.
 *
 * A solver widens each panel of A and narrows each of Q: a thread moves BATCH vectors, all loads before the stores, so
 * that memory alone limits them.  Views whose columns are not neighbours, or not aligned, are left to dense.cu. */
#include <stdint.h>

#include "cuda/linalg/products.h"
#include "cuda/runtime/element.cuh"
#include "cuda/runtime/vector_load.cuh"

namespace {

enum { THREADS = 256, BATCH = 4 };

/* Vector v of a row-major view, `across` of them in a row: row v / across. */
typedef struct vectors {
    uint32_t across, count;
} vectors;

template <class T, int V> __global__ void __launch_bounds__(THREADS)
    widen_vectors(const T *from, int64_t stride, vectors all, double *to, int64_t ld)
{
    const uint32_t first = blockIdx.x * (THREADS * BATCH) + threadIdx.x;
    pack<T, V> x[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
        const uint32_t v = first + b * THREADS, i = v / all.across, j = v - i * all.across;
        if (v < all.count) x[b] = *(const pack<T, V> *)(from + i * stride + j * V);
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
        const uint32_t v = first + b * THREADS, i = v / all.across, j = v - i * all.across;
        if (v >= all.count) return;
        double *at = to + i * ld + j * V;
#pragma unroll
        for (int e = 0; e < V; e += 2)
            *(double2 *)(at + e) = make_double2((double)fsi_widen(x[b].x[e]), (double)fsi_widen(x[b].x[e + 1]));
    }
}

template <class T, int V> __global__ void __launch_bounds__(THREADS)
    narrow_vectors(const double *from, int64_t ld, vectors all, T *to, int64_t stride)
{
    const uint32_t first = blockIdx.x * (THREADS * BATCH) + threadIdx.x;
    double2 x[BATCH][V / 2];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
        const uint32_t v = first + b * THREADS, i = v / all.across, j = v - i * all.across;
        if (v >= all.count) break;
#pragma unroll
        for (int e = 0; e < V; e += 2) x[b][e / 2] = *(const double2 *)(from + i * ld + j * V + e);
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
        const uint32_t v = first + b * THREADS, i = v / all.across, j = v - i * all.across;
        if (v >= all.count) return;
        pack<T, V> y;
#pragma unroll
        for (int e = 0; e < V; e += 2) y.x[e] = (T)x[b][e / 2].x, y.x[e + 1] = (T)x[b][e / 2].y;
        *(pack<T, V> *)(to + i * stride + j * V) = y;
    }
}

/* Whether the view and f64 columns `ld` apart are vectors of V elements and of two numbers. */
bool as_vectors(const fs_matrix *m, const double *columns, int64_t ld, vectors *all)
{
    const int64_t V = 16 / fsi_dtype_size(m->dtype), across = m->cols / V;
    if (!fsi_wide(m) || m->cols % V || ld % 2 || (uintptr_t)columns % 16 || m->rows > INT32_MAX / across - 1)
        return false;
    all->across = (uint32_t)across, all->count = (uint32_t)(m->rows * across);
    return true;
}
unsigned blocks_for(vectors all) { return (unsigned)fsi_div_up((int64_t)all.count, THREADS * BATCH); }

}  // namespace

fs_result fsi_gpu_widen_vectors(fsi_gpu *gpu, const fs_matrix *from, double *to, int64_t ld, int *done)
{
    vectors all;
    *done = as_vectors(from, to, ld, &all);
    if (!*done) return FS_OK;
#define WIDEN(T) \
    (widen_vectors<T, 16 / (int)sizeof(T)> \
     <<<blocks_for(all), THREADS, 0, gpu->stream>>>((const T *)from->data, from->row_stride, all, to, ld), \
     FSI_LAUNCHED(gpu, "widening a matrix"))
    return FSI_BY_DTYPE(from->dtype, WIDEN);
#undef WIDEN
}

fs_result fsi_gpu_narrow_vectors(fsi_gpu *gpu, const double *from, int64_t ld, const fs_matrix *to, int *done)
{
    vectors all;
    *done = (to->dtype == FS_F32 || to->dtype == FS_F64) && as_vectors(to, from, ld, &all);
    if (!*done) return FS_OK;
    if (to->dtype == FS_F32)
        narrow_vectors<float, 4>
            <<<blocks_for(all), THREADS, 0, gpu->stream>>>(from, ld, all, (float *)to->data, to->row_stride);
    else
        narrow_vectors<double, 2>
            <<<blocks_for(all), THREADS, 0, gpu->stream>>>(from, ld, all, (double *)to->data, to->row_stride);
    return FSI_LAUNCHED(gpu, "storing a result");
}
