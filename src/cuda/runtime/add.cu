/* add.cu - Y = beta Y + P[0] + P[1] + ... in device memory: sums in f64, in this order, rounded once, as the CPU's.
 *
 * grid: elements of Y in x, neighbours along Y's contiguous direction; threads: one to an element; shared: none.
 * Reads every element of every P once, MOST of them in a launch; where there are more, a packed matrix of f64 sums
 * goes from launch to launch as the first P of the next.  Matrices in host memory, packed, are copied to scratch, and Y
 * from there. */
#include <stdio.h>

#include "cuda/runtime/element.cuh"
#include "cuda/runtime/gpu.h"

namespace {

enum { THREADS = 256, MOST = 16 };

struct partial {
    const void *data;
    int64_t row_stride, col_stride;
    fs_dtype dtype;
};
struct partials {
    partial p[MOST];
    int count;
};

__device__ __forceinline__ double load(const partial &p, int64_t i, int64_t j)
{
    const int64_t at = i * p.row_stride + j * p.col_stride;
    switch (p.dtype) {
    case FS_F64: return ((const double *)p.data)[at];
    case FS_F32: return ((const float *)p.data)[at];
    case FS_F16: return __half2float(((const __half *)p.data)[at]);
    default: return __bfloat162float(((const __nv_bfloat16 *)p.data)[at]);
    }
}

__device__ __forceinline__ void store(const partial &y, int64_t i, int64_t j, double sum)
{
    const int64_t at = i * y.row_stride + j * y.col_stride;
    void *data = const_cast<void *>(y.data);
    switch (y.dtype) {
    case FS_F64: ((double *)data)[at] = sum; break;
    case FS_F32: ((float *)data)[at] = __double2float_rn(sum); break;
    case FS_F16: ((__half *)data)[at] = __float2half_rn(__double2float_rn(sum)); break;
    default: ((__nv_bfloat16 *)data)[at] = __float2bfloat16_rn(__double2float_rn(sum));
    }
}

__global__ void __launch_bounds__(THREADS)
    add(const __grid_constant__ partials from, const __grid_constant__ partial to, double beta, int64_t elements,
        int64_t length, int down)
{
    const int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (e >= elements) return;
    const int64_t line = e / length, place = e - line * length, i = down ? place : line, j = down ? line : place;
    double sum = from.count > 0 ? load(from.p[0], i, j) : 0.0;
    for (int p = 1; p < from.count; p++) sum = __dadd_rn(sum, load(from.p[p], i, j));
    if (beta != 0.0) sum = __dadd_rn(sum, __dmul_rn(beta, load(to, i, j)));
    store(to, i, j, sum);
}

partial partial_of(const fs_matrix *m)
{
    const partial p = {(const char *)m->data + m->offset * fsi_dtype_size(m->dtype), m->row_stride, m->col_stride,
                       m->dtype};
    return p;
}

bool packed(const fs_matrix *m)
{
    const bool rows = (m->col_stride == 1 || m->cols == 1) && (m->row_stride == m->cols || m->rows == 1);
    const bool cols = (m->row_stride == 1 || m->rows == 1) && (m->col_stride == m->rows || m->cols == 1);
    return rows || cols;
}

int64_t room_for(int64_t bytes) { return fsi_round_up(bytes, 256); }

}  // namespace

/* Scratch for a matrix in host memory, which must be packed; none for others. */
static fs_result host_room(fsi_gpu *gpu, const char *name, const fs_matrix *m, int64_t *bytes)
{
    if (m->memory != FS_MEMORY_HOST) return FS_OK;
    if (!packed(m))
        return gpu->host.fail(FS_EUNSUPPORTED,
                              "fs_add: %s is in host memory and others in a GPU's: then its rows or columns must be "
                              "packed, its strides are %lld and %lld",
                              name, (long long)m->row_stride, (long long)m->col_stride);
    *bytes += room_for(m->rows * m->cols * fsi_dtype_size(m->dtype));
    return FS_OK;
}

/* Scratch: the f64 sums between launches, if there are several, then the host's matrices, Y first. */
static fs_result take_scratch(fsi_gpu *gpu, const fs_matrix *P, int count, const fs_matrix *Y, char **memory)
{
    int64_t bytes = count > MOST ? room_for(Y->rows * Y->cols * 8) : 0;
    FSI_TRY(host_room(gpu, "Y", Y, &bytes));
    for (int p = 0; p < count; p++) {
        char name[32];
        snprintf(name, sizeof name, "P[%d]", p);
        FSI_TRY(host_room(gpu, name, &P[p], &bytes));
    }
    *memory = NULL;
    return bytes > 0 ? fsi_gpu_scratch(gpu, bytes, (void **)memory) : FS_OK;
}

/* A host's matrix to scratch, or, `back`, from there; in the order of the stream. */
static fs_result copy(fsi_gpu *gpu, const partial *host, char *scratch, int64_t elements, int back)
{
    const size_t bytes = (size_t)(elements * fsi_dtype_size(host->dtype));
    return fsi_gpu_check(
        gpu,
        back ? cudaMemcpyAsync(const_cast<void *>(host->data), scratch, bytes, cudaMemcpyDeviceToHost, gpu->stream)
             : cudaMemcpyAsync(scratch, host->data, bytes, cudaMemcpyHostToDevice, gpu->stream),
        "copying partial sums");
}

fs_result fsi_gpu_add(fsi_gpu *gpu, const fs_matrix *P, int count, double beta, const fs_matrix *Y)
{
    const int64_t elements = Y->rows * Y->cols, blocks = fsi_div_up(elements, THREADS);
    if (blocks > 0x7FFFFFFF)
        return gpu->host.fail(FS_EUNSUPPORTED,
                              "fs_add: a Y of %lld x %lld needs %lld thread blocks, a GPU has at most "
                              "2^31 - 1",
                              (long long)Y->rows, (long long)Y->cols, (long long)blocks);
    const int down = !fsi_view_is_row_major(Y);
    char *at;
    FSI_TRY(take_scratch(gpu, P, count, Y, &at));
    double *sums = (double *)at;
    if (count > MOST) at += room_for(elements * 8);
    const partial caller = partial_of(Y), between = {sums, down ? 1 : Y->cols, down ? Y->rows : 1, FS_F64};
    partial to = caller;
    char *const fetched = Y->memory == FS_MEMORY_HOST ? at : NULL;
    bool waits = fetched != NULL;
    if (fetched) {
        to.data = fetched;
        at += room_for(elements * fsi_dtype_size(to.dtype));
        if (beta != 0.0) FSI_TRY(copy(gpu, &caller, fetched, elements, 0));
    }
    int p = 0;
    do {
        partials from;
        from.count = 0;
        if (p > 0) from.p[from.count++] = between;
        for (; p < count && from.count < MOST; p++) {
            partial one = partial_of(&P[p]);
            if (P[p].memory == FS_MEMORY_HOST) {
                FSI_TRY(copy(gpu, &one, at, elements, 0));
                one.data = at;
                at += room_for(elements * fsi_dtype_size(one.dtype));
                waits = true;
            }
            from.p[from.count++] = one;
        }
        const bool last = p == count;
        add<<<(unsigned)blocks, THREADS, 0, gpu->stream>>>(from, last ? to : between, last ? beta : 0.0, elements,
                                                           down ? Y->rows : Y->cols, down);
        FSI_TRY(FSI_LAUNCHED(gpu, "adding partial results"));
    } while (p < count);
    if (fetched) FSI_TRY(copy(gpu, &caller, fetched, elements, 1));
    /* Matrices in host memory belong to the caller again when the call returns. */
    return waits ? fsi_gpu_check(gpu, cudaStreamSynchronize(gpu->stream), "adding partial results") : FS_OK;
}
