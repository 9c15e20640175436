/* staging.h - matrices in host memory on a GPU; see staging.cu. */
#ifndef FSI_CUDA_RUNTIME_STAGING_H
#define FSI_CUDA_RUNTIME_STAGING_H

#include "cuda/runtime/gpu.h"

/* fsi_gpu_product when `from` or `to` (or both) are in host memory.  Results in host memory are ready on return. */
fs_result fsi_staged_product(fsi_gpu *gpu, const fsi_def *S, int adjoint, int64_t row0, double alpha,
                             const fs_matrix *from, double beta, const fs_matrix *to);

/* Bytes of device memory that staging holds, and their release. */
size_t fsi_staging_bytes(const fsi_gpu *gpu);
void fsi_staging_close(fsi_gpu *gpu);

#endif
