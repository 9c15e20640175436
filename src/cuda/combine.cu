/* combine.cu - the ordered second pass: planes of partial sums are added in their order, scaled once and stored once.
 *
 * A plane is a packed k x n matrix of sums whose contiguous direction is that of Y: along columns, or `down` its rows.
 * Its launch overlaps the end of the kernel that makes the planes.  VECTOR neighbours in that direction belong to a thread; all planes of an element are loaded by the same thread. */
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

/* grid: chunks of a line in x, lines in y; a line is a row of the planes, or a column when `down`. */
template <class S, int VECTOR>
__global__ void __launch_bounds__(256) combine(const S *planes, int64_t plane, int count, int64_t across, int64_t lines,
                                               int down, const __grid_constant__ fs_output to)
{
    struct __align__(sizeof(S) * VECTOR > 16 ? 16 : sizeof(S) * VECTOR) pack { S x[VECTOR]; };
    const int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * VECTOR;
    fs_await_last_kernel();
    for (int64_t line = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; line < lines && at < across;
         line += (int64_t)gridDim.y * blockDim.y) {
        const S *from = planes + line * across + at;
        pack sum = *(const pack *)from;
#pragma unroll 4
        for (int p = 1; p < count; p++) {
            const pack next = *(const pack *)(from + p * plane);
#pragma unroll
            for (int v = 0; v < VECTOR; v++) sum.x[v] += next.x[v];
        }
        put(to, down ? at : line, down ? line : at, down, sum.x);
    }
}

template <class S, int VECTOR>
fs_result launch(fs_gpu *gpu, const void *planes, int count, int64_t rows, int64_t cols, int down, const fs_output *to)
{
    const int64_t across = down ? rows : cols, lines = down ? cols : rows;
    unsigned wide = 1;
    while (wide < 256 && wide * VECTOR < across) wide *= 2;
    const int64_t down_blocks = fs_div_up(lines, 256 / wide);
    cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)fs_div_up(across, wide * VECTOR), (unsigned)(down_blocks < 65535 ? down_blocks : 65535));
    config.blockDim = dim3(wide, 256 / wide);
    config.stream = gpu->stream;
    config.attrs = &early;
    config.numAttrs = gpu->traits.arch >= 90;
    return fs_gpu_check(gpu, cudaLaunchKernelEx(&config, combine<S, VECTOR>, (const S *)planes, rows * cols, count, across,
                                                lines, down, *to), "adding partial sums");
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

/* The kernels before it fill an SM's memory with shared memory; asking for the same division saves the SM from changing it. */
fs_result fs_gpu_combine_prepare(fs_gpu *gpu)
{
    const void *const kernels[] = {(const void *)combine<double, 1>, (const void *)combine<float, 1>, (const void *)combine<float, 4>};
    for (const void *kernel : kernels)
        FS_TRY_GPU(fs_gpu_check(gpu, cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                                          cudaSharedmemCarveoutMaxShared), "preparing kernels"));
    return FS_OK;
}
