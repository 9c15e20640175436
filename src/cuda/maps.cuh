/* maps.cuh - tensor maps of a matrix: how sm_90 copies boxes of it to shared memory by itself; see maps.cu. */
#ifndef FS_CUDA_MAPS_CUH
#define FS_CUDA_MAPS_CUH

#include <cuda.h>

#include "gpu.h"

enum { FS_MAP_GROUP = 128 };  /* bytes of a row that stay together */

/* Of a matrix with contiguous rows.  Three axes: the bytes of a group, groups, rows.  A box is `width` columns of
 * `box_rows` rows. */
typedef struct fs_row_maps {
    CUtensorMap all;   /* the whole groups of A */
    CUtensorMap last;  /* its last `width` columns, where there are any and the columns are not whole groups */
} fs_row_maps;

/* The maps of A, device memory, `mapped` in the sense of choose.h; FS_EBACKEND if the driver refuses. */
fs_result fs_gpu_row_maps(fs_gpu *gpu, const fs_matrix *A, int64_t width, int box_rows, fs_row_maps *maps);

/* The map of A with contiguous columns, floats, otherwise the same.  Axes: coordinates, one of length 1, samples.  A
 * box is 32 coordinates of `samples` samples, sample by sample. */
fs_result fs_gpu_line_map(fs_gpu *gpu, const fs_matrix *A, int samples, CUtensorMap *map);

#endif
