/* tensor_maps.cuh - tensor maps of a matrix: how sm_90 copies boxes of it to shared memory by itself; see tensor_maps.cu. */
#ifndef FSI_CUDA_RUNTIME_TENSOR_MAPS_CUH
#define FSI_CUDA_RUNTIME_TENSOR_MAPS_CUH

#include <cuda.h>

#include "cuda/runtime/gpu.h"

enum { FSI_MAP_GROUP = 128 }; /* bytes of a row that stay together */

/* Of a matrix with contiguous rows.  Three axes: the bytes of a group, groups, rows.  A box is `width` columns of
 * `box_rows` rows. */
typedef struct fsi_row_maps {
    CUtensorMap all;  /* the whole groups of A */
    CUtensorMap last; /* its last `width` columns, where there are any and the columns are not whole groups */
} fsi_row_maps;

/* The maps of A, device memory, `mapped` in the sense of plan.h; FS_EBACKEND if the driver refuses. */
fs_result fsi_gpu_row_maps(fsi_gpu *gpu, const fs_matrix *A, int64_t width, int box_rows, fsi_row_maps *maps);

/* The map of A with contiguous columns, floats, otherwise the same.  Axes: coordinates, one of length 1, samples.  A
 * box is 32 coordinates of `samples` samples, sample by sample. */
fs_result fsi_gpu_group_map(fsi_gpu *gpu, const fs_matrix *A, int samples, CUtensorMap *map);

#endif
