/* combine.cu - the ordered second pass: planes of partial sums are added in a fixed order, scaled once and stored once.
 *
 * A plane is a packed k x n matrix of sums whose contiguous direction is that of Y: along columns, or `down` its rows.
 * Its launch overlaps the end of the kernel that makes the planes.  VECTOR neighbours in that direction belong
 * together.  Where there are many planes of few elements, threads of a thread block share an element: each adds a run
 * of the planes in order, and the sums of the runs are added in order. */
#include "combine.cuh"
#include "ptx.cuh"
#include "tile.cuh"

namespace {

__device__ __forceinline__ void put(const fs_output &to, int64_t row, int64_t column, int, const float (&x)[1])
{
    fs_output_put(to, row, column, x[0]);
}
__device__ __forceinline__ void put(const fs_output &to, int64_t row, int64_t column, int, const double (&x)[1])
{
    fs_output_put(to, row, column, x[0]);
}
__device__ __forceinline__ void put(const fs_output &to, int64_t row, int64_t column, int down, const float (&x)[4])
{
    if (!down) {
        fs_output_put4(to, row, column, make_float4(x[0], x[1], x[2], x[3]), 4);
        return;
    }
#pragma unroll
    for (int v = 0; v < 4; v++) fs_output_put(to, row + v, column, x[v]);
}

enum { THREADS = 256, MOST_RUNS = 8 };

/* grid: vectors of a plane in x; threads: vectors x runs of planes. */
template <class S, int VECTOR>
__global__ void __launch_bounds__(THREADS) combine(const S *planes, int64_t plane, int count, int64_t across, int down,
                                                   const __grid_constant__ fs_output to)
{
    struct __align__(sizeof(S) * VECTOR > 16 ? 16 : sizeof(S) * VECTOR) pack { S x[VECTOR]; };
    __shared__ pack sums[THREADS];
    const int wide = blockDim.x, runs = blockDim.y, run = threadIdx.y;
    const int first = count * run / runs, last = count * (run + 1) / runs;
    const int64_t at = ((int64_t)blockIdx.x * wide + threadIdx.x) * VECTOR;
    const bool inside = at < plane;
    pack sum = {};
    fs_await_last_kernel();
    /* 1. a run of the planes */
    if (inside) {
        const S *from = planes + at + first * plane;
        sum = *(const pack *)from;
#pragma unroll 8
        for (int p = first + 1; p < last; p++) {
            from += plane;
            const pack next = *(const pack *)from;
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

template <class S, int VECTOR>
fs_result launch(fs_gpu *gpu, const void *planes, int count, int64_t rows, int64_t cols, int down, const fs_output *to)
{
    const int64_t vectors = fs_div_up(rows * cols, VECTOR);
    int runs = 1;
    while (runs < MOST_RUNS && 4 * runs <= count && vectors * runs < 1024 * (int64_t)gpu->traits.processors) runs *= 2;
    const int64_t blocks = fs_div_up(vectors, THREADS / runs);
    if (blocks > 0x7FFFFFFF)
        return gpu->host.fail(FS_EUNSUPPORTED,
                              "adding partial sums of %lld x %lld needs %lld thread blocks, a GPU has at most "
                              "2^31 - 1", (long long)rows, (long long)cols, (long long)blocks);
    cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3(THREADS / runs, runs);
    config.stream = gpu->stream;
    config.attrs = &early;
    config.numAttrs = gpu->traits.arch >= 90;
    return fs_gpu_check(gpu, cudaLaunchKernelEx(&config, combine<S, VECTOR>, (const S *)planes, rows * cols, count,
                                                down ? rows : cols, down, *to), "adding partial sums");
}

}  // namespace

fs_result fs_gpu_combine(fs_gpu *gpu, const void *planes, int count, int64_t rows, int64_t cols, int down, fs_dtype sum,
                         const fs_output *to)
{
    const int vector = (down ? rows : cols) % 4 == 0;
    if (sum == FS_F64) return launch<double, 1>(gpu, planes, count, rows, cols, down, to);
    return vector ? launch<float, 4>(gpu, planes, count, rows, cols, down, to)
                  : launch<float, 1>(gpu, planes, count, rows, cols, down, to);
}

/* The kernels before it fill an SM's memory with shared memory; asking for the same division
 * saves the SM from changing it. */
fs_result fs_gpu_combine_prepare(fs_gpu *gpu)
{
    const void *const kernels[] = {(const void *)combine<double, 1>, (const void *)combine<float, 1>,
                                   (const void *)combine<float, 4>};
    for (const void *kernel : kernels)
        FS_TRY_GPU(fs_gpu_check(gpu, cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                                          cudaSharedmemCarveoutMaxShared), "preparing kernels"));
    return FS_OK;
}
