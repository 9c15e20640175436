/* split_reduce.cuh - adding partial-sum buffers in a fixed order; see split_reduce.cu. */
#ifndef FSI_CUDA_RUNTIME_SPLIT_REDUCE_CUH
#define FSI_CUDA_RUNTIME_SPLIT_REDUCE_CUH

#include "cuda/runtime/element.cuh"
#include "cuda/runtime/gpu.h"

/* to = beta to + factor (buffer 0 + buffer 1 + ...), rows x cols; buffers are packed one after the other, of type `sum`,
 * contiguous along columns, or along rows when `down`. */
fs_result fsi_gpu_split_reduce(fsi_gpu *gpu, const void *partials, int count, int64_t rows, int64_t cols, int down,
                               fs_dtype sum, const fsi_output *to);

/* Once for every context. */
fs_result fsi_gpu_split_reduce_prepare(fsi_gpu *gpu);

#endif
