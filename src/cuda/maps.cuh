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

/* Of a matrix of floats with contiguous columns (samples) of any alignment.  A map begins at a multiple of 16 bytes and
 * its samples are such a multiple apart; so sample i is sample i / classes of map i % classes, which begins
 * shift[i % classes] floats before that map's first sample.  Axes: coordinates, one of length 1, samples.  A box is 32
 * coordinates of `samples` / classes samples, sample by sample. */
enum { FS_LINE_CLASSES = 4 };
typedef struct fs_line_maps {
    CUtensorMap of[FS_LINE_CLASSES];
    int32_t shift[FS_LINE_CLASSES];
    int32_t classes;  /* 1, 2 or 4 */
} fs_line_maps;
fs_result fs_gpu_line_maps(fs_gpu *gpu, const fs_matrix *A, int samples, int classes, fs_line_maps *maps);

#endif
