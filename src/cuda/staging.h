/* staging.h - matrices in host memory on a GPU; see staging.cu. */
#ifndef FS_CUDA_STAGING_H
#define FS_CUDA_STAGING_H

#include "gpu.h"

/* fs_gpu_product when `from` or `to` (or both) are in host memory.  What is in host memory is ready on return. */
fs_result fs_staged_product(fs_gpu *gpu, const fs_def *S, int adjoint, int64_t row0, double alpha,
                            const fs_matrix *from, double beta, const fs_matrix *to);

/* Bytes of device memory that staging holds, and their release. */
size_t fs_staging_bytes(const fs_gpu *gpu);
void fs_staging_close(fs_gpu *gpu);

#endif
