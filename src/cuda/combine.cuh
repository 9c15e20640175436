/* combine.cuh - adding planes of partial sums in a fixed order; see combine.cu. */
#ifndef FS_CUDA_COMBINE_CUH
#define FS_CUDA_COMBINE_CUH

#include "element.cuh"
#include "gpu.h"

/* to = beta to + factor (plane 0 + plane 1 + ...), rows x cols; planes are packed one after the other, in sums of type
 * `sum`, contiguous along columns, or along rows when `down`. */
fs_result fs_gpu_combine(fs_gpu *gpu, const void *planes, int count, int64_t rows, int64_t cols, int down, fs_dtype sum,
                         const fs_output *to);

/* Once for every context. */
fs_result fs_gpu_combine_prepare(fs_gpu *gpu);

#endif
