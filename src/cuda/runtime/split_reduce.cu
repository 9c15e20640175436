/* split_reduce.cu - the split-K reduction: partial-sum buffers are added in a fixed order, scaled once and stored once.
 *
 * A partial-sum buffer is a packed k x n matrix of sums, contiguous along Y's contiguous direction: its columns, or `down`
 * its rows.  The launch overlaps the end of the kernel that fills the buffers.  VECTOR neighbours in that direction are
 * loaded together.  Where there are many buffers of few elements, threads of a thread block share an element: each adds
 * a run of the buffers in order, and the sums of the runs are added in order. */
#include "cuda/runtime/split_reduce.cuh"
#include "cuda/runtime/ptx.cuh"
#include "cuda/blockperm/common/tile.cuh"

namespace {

__device__ __forceinline__ void put(const fsi_output &to, int64_t row, int64_t column, int, const float (&x)[1])
{
    fsi_output_put(to, row, column, x[0]);
}
__device__ __forceinline__ void put(const fsi_output &to, int64_t row, int64_t column, int, const double (&x)[1])
{
    fsi_output_put(to, row, column, x[0]);
}
__device__ __forceinline__ void put(const fsi_output &to, int64_t row, int64_t column, int down, const float (&x)[4])
{
    if (!down) {
        fsi_output_put4(to, row, column, make_float4(x[0], x[1], x[2], x[3]), 4);
        return;
    }
#pragma unroll
    for (int v = 0; v < 4; v++) fsi_output_put(to, row + v, column, x[v]);
}

enum { THREADS = 256, MOST_RUNS = 8 };

/* grid: vectors of a partial-sum buffer in x; threads: vectors x runs of partial-sum buffers. */
template <class S, int VECTOR> __global__ void __launch_bounds__(THREADS)
    combine(const S *partials, int64_t partial, int count, int64_t across, int down,
            const __grid_constant__ fsi_output to)
{
    typedef pack<S, VECTOR> sums_of;
    __shared__ sums_of sums[THREADS];
    const int wide = blockDim.x, runs = blockDim.y, run = threadIdx.y;
    const int first = count * run / runs, last = count * (run + 1) / runs;
    const int64_t at = ((int64_t)blockIdx.x * wide + threadIdx.x) * VECTOR;
    const bool inside = at < partial;
    sums_of sum = {};
    fsi_await_last_kernel();
    /* 1. a run of the partial-sum buffers */
    if (inside) {
        const S *from = partials + at + first * partial;
        sum = *(const sums_of *)from;
#pragma unroll 8
        for (int p = first + 1; p < last; p++) {
            from += partial;
            const sums_of next = *(const sums_of *)from;
#pragma unroll
            for (int v = 0; v < VECTOR; v++) sum.x[v] += next.x[v];
        }
    }
    /* 2. the runs */
    if (runs > 1) {
        sums[run * wide + threadIdx.x] = sum;
        __syncthreads();
        if (run > 0) return;
        for (int r = 1; r < runs; r++)
#pragma unroll
            for (int v = 0; v < VECTOR; v++) sum.x[v] += sums[r * wide + threadIdx.x].x[v];
    }
    if (!inside) return;
    const int64_t line = at / across, place = at - line * across;
    put(to, down ? place : line, down ? line : place, down, sum.x);
}

template <class S, int VECTOR> fs_result launch(fsi_gpu *gpu, const void *partials, int count, int64_t rows,
                                                int64_t cols, int down, const fsi_output *to)
{
    const int64_t vectors = fsi_div_up(rows * cols, VECTOR);
    int runs = 1;
    while (runs < MOST_RUNS && 4 * runs <= count && vectors * runs < 1024 * (int64_t)gpu->traits.processors) runs *= 2;
    const int64_t blocks = fsi_div_up(vectors, THREADS / runs);
    if (blocks > 0x7FFFFFFF)
        return gpu->host.fail(FS_EUNSUPPORTED,
                              "adding partial sums of %lld x %lld needs %lld thread blocks, a GPU has at most "
                              "2^31 - 1",
                              (long long)rows, (long long)cols, (long long)blocks);
    cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3(THREADS / runs, runs);
    config.stream = gpu->stream;
    config.attrs = &early;
    config.numAttrs = gpu->traits.arch >= 90;
    return fsi_gpu_check(gpu,
                         cudaLaunchKernelEx(&config, combine<S, VECTOR>, (const S *)partials, rows * cols, count,
                                            down ? rows : cols, down, *to),
                         "adding partial sums");
}

}  // namespace

fs_result fsi_gpu_split_reduce(fsi_gpu *gpu, const void *partials, int count, int64_t rows, int64_t cols, int down,
                               fs_dtype sum, const fsi_output *to)
{
    const int vector = (down ? rows : cols) % 4 == 0;
    if (sum == FS_F64) return launch<double, 1>(gpu, partials, count, rows, cols, down, to);
    return vector ? launch<float, 4>(gpu, partials, count, rows, cols, down, to)
                  : launch<float, 1>(gpu, partials, count, rows, cols, down, to);
}

/* The kernels before it fill an SM's memory with shared memory; asking for the same division
 * saves the SM from changing it. */
fs_result fsi_gpu_split_reduce_prepare(fsi_gpu *gpu)
{
    const void *const kernels[] = {(const void *)combine<double, 1>, (const void *)combine<float, 1>,
                                   (const void *)combine<float, 4>};
    for (const void *kernel : kernels)
        FSI_TRY(fsi_gpu_check(gpu,
                              cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                                   cudaSharedmemCarveoutMaxShared),
                              "preparing kernels"));
    return FS_OK;
}
