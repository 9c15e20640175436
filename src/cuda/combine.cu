/* combine.cu - the ordered second pass: planes of partial sums are added in their order, scaled once and stored once.
 *
 * A plane is a packed k x n matrix of sums whose contiguous direction is that of Y: along columns, or `down` its rows.
 * VECTOR neighbours in that direction belong to a thread; all planes of an element are loaded by the same thread. */
#include "combine.cuh"

namespace {

template <class S, int VECTOR>
__global__ void __launch_bounds__(256) combine(const S *planes, int64_t plane, int count, int64_t across, int64_t total,
                                               int down, const __grid_constant__ fs_output to)
{
    struct __align__(sizeof(S) * VECTOR > 16 ? 16 : sizeof(S) * VECTOR) pack { S x[VECTOR]; };
    const int64_t step = (int64_t)gridDim.x * blockDim.x * VECTOR;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * VECTOR; i < total; i += step) {
        pack sum = *(const pack *)(planes + i);
#pragma unroll 4
        for (int p = 1; p < count; p++) {
            const pack next = *(const pack *)(planes + p * plane + i);
#pragma unroll
            for (int v = 0; v < VECTOR; v++) sum.x[v] += next.x[v];
        }
        const int64_t line = i / across, at = i % across;
#pragma unroll
        for (int v = 0; v < VECTOR; v++)
            fs_output_put(to, down ? at + v : line, down ? line : at + v, sum.x[v]);
    }
}

template <class S, int VECTOR>
fs_result launch(fs_gpu *gpu, const void *planes, int count, int64_t rows, int64_t cols, int down, const fs_output *to)
{
    const int64_t total = rows * cols, blocks = fs_div_up(total, 256 * VECTOR), most = 16 * (int64_t)gpu->traits.processors;
    combine<S, VECTOR><<<(unsigned)(blocks < most ? blocks : most), 256, 0, gpu->stream>>>(
        (const S *)planes, total, count, down ? rows : cols, total, down, *to);
    return FS_LAUNCHED(gpu, "adding partial sums");
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
