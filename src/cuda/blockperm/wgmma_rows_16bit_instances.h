/* wgmma_rows_16bit_instances.h - the compiled instances of wgmma_rows_16bit.cu, one line each.
 *
 * The plan file reads the list as a table of what there is, the kernel's file turns it into a table of functions in the
 * same order: an instance is its number.  FS_FEW_INSTANCES keeps the least that works, for quick builds. */
#ifndef FSI_CUDA_BLOCKPERM_WGMMA_ROWS_16BIT_INSTANCES_H
#define FSI_CUDA_BLOCKPERM_WGMMA_ROWS_16BIT_INSTANCES_H

#define FSI_COUNT_ONE(...) +1

/* Element type, nonzeros of a local row in an output tile, stages of a unit each, producer warps, consumer warpgroups,
 * thread blocks of a cluster, output tiles of a block.  128 KB of rows in flight are enough for an SM; where rows are not shuffled, three producer warps keep up
 * (docs/kernels/wgmma_rows_16bit.md). */
#define FSI_WGMMA_ROWS_16BIT_OF(X, T, dtype, nonzeros) \
    X(T, dtype, nonzeros, 4, 2, 1, 1, 1) \
    X(T, dtype, nonzeros, 8, 4, 2, 1, 1) \
    X(T, dtype, nonzeros, 8, 4, 2, 2, 1) \
    X(T, dtype, nonzeros, 9, 3, 2, 6, 1) \
    X(T, dtype, nonzeros, 4, 2, 1, 7, 1)
#define FSI_WGMMA_ROWS_16BIT_PAIR(X, T, dtype, nonzeros) \
    X(T, dtype, nonzeros, 8, 4, 2, 1, 2) \
    X(T, dtype, nonzeros, 8, 4, 2, 2, 2)
#ifdef FS_FEW_INSTANCES
#define FSI_WGMMA_ROWS_16BIT(X) \
    FSI_WGMMA_ROWS_16BIT_OF(X, __half, FS_F16, 4) FSI_WGMMA_ROWS_16BIT_PAIR(X, __half, FS_F16, 4)
#else
#define FSI_WGMMA_ROWS_16BIT(X) \
    FSI_WGMMA_ROWS_16BIT_OF(X, __half, FS_F16, 4) \
    FSI_WGMMA_ROWS_16BIT_OF(X, __half, FS_F16, 8) \
    FSI_WGMMA_ROWS_16BIT_OF(X, __nv_bfloat16, FS_BF16, 4) \
    FSI_WGMMA_ROWS_16BIT_OF(X, __nv_bfloat16, FS_BF16, 8) \
    FSI_WGMMA_ROWS_16BIT_PAIR(X, __half, FS_F16, 2) \
    FSI_WGMMA_ROWS_16BIT_PAIR(X, __half, FS_F16, 4) \
    FSI_WGMMA_ROWS_16BIT_PAIR(X, __nv_bfloat16, FS_BF16, 2) FSI_WGMMA_ROWS_16BIT_PAIR(X, __nv_bfloat16, FS_BF16, 4)
#endif
enum { FSI_WGMMA_ROWS_16BIT_COUNT = 0 FSI_WGMMA_ROWS_16BIT(FSI_COUNT_ONE) };
/* Columns of a tile, local rows of a unit, threads of a group. */
enum { FSI_WGMMA_ROWS_16BIT_COLUMNS = 64, FSI_WGMMA_ROWS_16BIT_UNIT = 128, FSI_WGMMA_ROWS_16BIT_GROUP = 128 };
/* Thread blocks of an SM. */
#define FSI_WGMMA_ROWS_16BIT_RESIDENT(places) ((places) <= 6 ? 2 : 1)
/* Bytes of S: elements of 32 local rows and an output tile, two bits each; those of a unit, and their numbers. */
enum { FSI_WGMMA_ROWS_16BIT_STEP = 256, FSI_WGMMA_ROWS_16BIT_CODES = 4 * FSI_WGMMA_ROWS_16BIT_STEP + 128 };
/* Rows and words of S of a stage and its three mbarriers; sums that two groups exchange; quarters of eight rows
 * of sums from every other thread block of a cluster, and eight mbarriers for them. */
#define FSI_WGMMA_ROWS_16BIT_SHARED(places, groups, cluster, tiles) \
    ((places) * \
         (FSI_WGMMA_ROWS_16BIT_UNIT * 2 * FSI_WGMMA_ROWS_16BIT_COLUMNS + (tiles)*FSI_WGMMA_ROWS_16BIT_CODES + 24) + \
     ((groups) > (tiles) ? 16384 : 0) + ((cluster)-1) * ((32 * (tiles) + (cluster)-1) / (cluster)) * 512 + \
     ((cluster) > 1 ? 64 * (tiles) : 0))

#endif
