/* rotate_rows_simt_instances.h - the compiled instances of rotate_rows_simt.cu, one line each.
 *
 * The plan file reads the list as a table of what there is, the kernel's file turns it into a table of functions in the
 * same order: an instance is its number.  FS_FEW_INSTANCES keeps the least that works, for quick builds. */
#ifndef FSI_CUDA_BLOCKPERM_ROTATE_ROWS_SIMT_INSTANCES_H
#define FSI_CUDA_BLOCKPERM_ROTATE_ROWS_SIMT_INSTANCES_H

#define FSI_COUNT_ONE(...) +1

/* Element type, whether rows of any pitch and address are copied by chunks of 16 bytes instead of a tensor map, groups
 * of 512 bytes of a row, rows of a stratum. */
#ifdef FS_FEW_INSTANCES
#define FSI_ROTATE_ROWS_SIMT(X) X(double, FS_F64, 0, 2, 16) X(double, FS_F64, 1, 1, 16) X(double, FS_F64, 1, 2, 16)
#else
#define FSI_ROTATE_ROWS_SIMT_OF(X, T, dtype, window) \
    X(T, dtype, 0, 2, window) X(T, dtype, 1, 1, window) X(T, dtype, 1, 2, window)
#define FSI_ROTATE_ROWS_SIMT(X) \
    FSI_ROTATE_ROWS_SIMT_OF(X, double, FS_F64, 8) \
    FSI_ROTATE_ROWS_SIMT_OF(X, double, FS_F64, 16) \
    FSI_ROTATE_ROWS_SIMT_OF(X, double, FS_F64, 32) \
    FSI_ROTATE_ROWS_SIMT_OF(X, double, FS_F64, 64) X(float, FS_F32, 0, 2, 32)
#endif
enum { FSI_ROTATE_ROWS_SIMT_COUNT = 0 FSI_ROTATE_ROWS_SIMT(FSI_COUNT_ONE) };

/* A thread block: producer warps that copy rows, producer warps that write recipes, consumer warps, which have 32 rows
 * of Y each. */
enum {
    FSI_ROTATE_ROWS_SIMT_COPIERS = 2,
    FSI_ROTATE_ROWS_SIMT_WRITERS = 2,
    FSI_ROTATE_ROWS_SIMT_ADDERS = 8,
    FSI_ROTATE_ROWS_SIMT_THREADS = 32 * (FSI_ROTATE_ROWS_SIMT_COPIERS + FSI_ROTATE_ROWS_SIMT_WRITERS +
                                         FSI_ROTATE_ROWS_SIMT_ADDERS),
    FSI_ROTATE_ROWS_SIMT_ROWS = 32,
    FSI_ROTATE_ROWS_SIMT_OUTS = 2,         /* output tiles of a thread block, at most */
    FSI_ROTATE_ROWS_SIMT_LANE = 16,        /* bytes of a row of A, of a lane */
    FSI_ROTATE_ROWS_SIMT_RING = 192 * 1024 /* bytes of rows in flight */
};
/* Columns of a tile.  Rows of a stage: whole windows.  Bytes of a row in shared memory, with room for its shift.
 * Stages. */
#define FSI_ROTATE_ROWS_SIMT_WIDTH(size, groups) (32 * (groups)*FSI_ROTATE_ROWS_SIMT_LANE / (int)(size))
#define FSI_ROTATE_ROWS_SIMT_STAGE(groups, window) ((window) > 32 || (groups) < 2 ? 64 : 32)
#define FSI_ROTATE_ROWS_SIMT_PITCH(chunked, groups) (32 * (groups)*FSI_ROTATE_ROWS_SIMT_LANE + 32 * (chunked))
#define FSI_ROTATE_ROWS_SIMT_STAGES(groups, window) \
    (FSI_ROTATE_ROWS_SIMT_RING / (FSI_ROTATE_ROWS_SIMT_STAGE(groups, window) * FSI_ROTATE_ROWS_SIMT_PITCH(0, groups)))
/* Bytes that say what a consumer warp does with a window: 16 of rotations, then the signs of its rows.  Those of a
 * stage: for each window those of two output tiles. */
#define FSI_ROTATE_ROWS_SIMT_RECIPE (16 + FSI_ROTATE_ROWS_SIMT_ROWS)
#define FSI_ROTATE_ROWS_SIMT_RECIPES(groups, window) \
    (FSI_ROTATE_ROWS_SIMT_STAGE(groups, window) / (window)*64 * FSI_ROTATE_ROWS_SIMT_OUTS / \
     FSI_ROTATE_ROWS_SIMT_ROWS * FSI_ROTATE_ROWS_SIMT_RECIPE)
/* A stage: rows, recipes, shifts of rows that are copied by chunks, two mbarriers; and two slices of 64 bytes
 * (tile.cuh). */
#define FSI_ROTATE_ROWS_SIMT_SHARED(chunked, groups, window) \
    (FSI_ROTATE_ROWS_SIMT_STAGES(groups, window) * \
         (FSI_ROTATE_ROWS_SIMT_STAGE(groups, window) * (FSI_ROTATE_ROWS_SIMT_PITCH(chunked, groups) + (chunked)) + \
          FSI_ROTATE_ROWS_SIMT_RECIPES(groups, window) + 16) + \
     FSI_ROTATE_ROWS_SIMT_OUTS * 64)

#endif
