/* gaussian.cuh - what the two files of the dense Gaussian share. */
#ifndef FSI_CUDA_FAMILIES_GAUSSIAN_CUH
#define FSI_CUDA_FAMILIES_GAUSSIAN_CUH

#include "cuda/runtime/gpu.h"

/* gaussian_wgmma.cu: whether this product is one for the tensor cores, and it: to = beta to + factor z from, z the unit
 * entries of S, or (`adjoint`) z'. */
int fsi_gpu_gaussian_has_tiles(const fsi_gpu *gpu, const fs_matrix *from, const fs_matrix *to);
fs_result fsi_gpu_gaussian_tiles(fsi_gpu *gpu, const fsi_gauss *S, int adjoint, double factor, int64_t row0,
                                 const fs_matrix *from, double beta, const fs_matrix *to);

#endif
