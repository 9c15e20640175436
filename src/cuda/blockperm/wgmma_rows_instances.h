/* wgmma_rows_instances.h - the compiled instances of wgmma_rows.cu, one line each.
 *
 * The plan file reads the list as a table of what there is, the kernel's file turns it into a table of functions in the
 * same order: an instance is its number.  FS_FEW_INSTANCES keeps the least that works, for quick builds. */
#ifndef FSI_CUDA_BLOCKPERM_WGMMA_ROWS_INSTANCES_H
#define FSI_CUDA_BLOCKPERM_WGMMA_ROWS_INSTANCES_H

#define FSI_COUNT_ONE(...) +1

/* Element type, whether rows of any pitch and address are copied by chunks of 16 bytes instead of a tensor map, outputs
 * together, tiles of 64 columns of a warpgroup (0: warpgroups take turns at one), stages of rows, sets of S tiles,
 * whether thread blocks are persistent.  There are as many sets as generator warps that fill them in turn, so that none
 * overtakes another. */
#ifdef FS_FEW_INSTANCES
#define FSI_WGMMA_ROWS(X) \
    X(float, FS_F32, 0, 1, 1, 6, 4, 0) \
    X(float, FS_F32, 1, 1, 1, 6, 4, 0) X(float, FS_F32, 0, 2, 1, 4, 4, 0) X(float, FS_F32, 1, 2, 1, 5, 4, 1)
#else
#define FSI_WGMMA_ROWS_HALF(X, T, dtype) \
    X(T, dtype, 0, 1, 2, 6, 4, 0) \
    X(T, dtype, 0, 1, 2, 6, 4, 1) \
    X(T, dtype, 0, 1, 1, 8, 4, 0) \
    X(T, dtype, 0, 2, 1, 6, 4, 0) \
    X(T, dtype, 0, 2, 1, 6, 4, 1) \
    X(T, dtype, 0, 4, 1, 6, 2, 0) \
    X(T, dtype, 1, 1, 2, 8, 4, 1) \
    X(T, dtype, 1, 1, 1, 10, 4, 0) \
    X(T, dtype, 1, 1, 0, 12, 4, 0) \
    X(T, dtype, 1, 2, 1, 6, 4, 1) \
    X(T, dtype, 1, 2, 0, 8, 4, 0)
#define FSI_WGMMA_ROWS(X) \
    X(float, FS_F32, 0, 1, 2, 3, 4, 0) \
    X(float, FS_F32, 0, 1, 2, 3, 4, 1) \
    X(float, FS_F32, 0, 1, 1, 6, 4, 0) \
    X(float, FS_F32, 0, 2, 1, 4, 4, 0) \
    X(float, FS_F32, 0, 2, 1, 4, 4, 1) \
    X(float, FS_F32, 0, 4, 1, 6, 2, 0) \
    X(float, FS_F32, 1, 1, 2, 4, 4, 1) \
    X(float, FS_F32, 1, 1, 1, 8, 4, 0) \
    X(float, FS_F32, 1, 1, 0, 8, 4, 0) \
    X(float, FS_F32, 1, 2, 1, 5, 4, 1) \
    X(float, FS_F32, 1, 2, 0, 5, 4, 0) \
    FSI_WGMMA_ROWS_HALF(X, __half, FS_F16) FSI_WGMMA_ROWS_HALF(X, __nv_bfloat16, FS_BF16)
#endif
enum { FSI_WGMMA_ROWS_COUNT = 0 FSI_WGMMA_ROWS(FSI_COUNT_ONE) };
/* Columns of a tile.  Bytes of a row in shared memory: 2, 6, 10, ... groups of 128 of a tensor map; or the row's own, 16
 * more for its shift and 16 so that four rows hit all banks.  Rows of a stage. */
#define FSI_WGMMA_ROWS_WIDTH(outs, tiles) (!(tiles) ? 64 : (outs) > 1 ? 256 / (outs) : 128 * (tiles))
#define FSI_WGMMA_ROWS_GROUPS(size, outs, tiles) (FSI_WGMMA_ROWS_WIDTH(outs, tiles) * (int)(size) / 128)
#define FSI_WGMMA_ROWS_PITCH(size, chunked, outs, tiles) \
    (128 * FSI_WGMMA_ROWS_GROUPS(size, outs, tiles) + \
     ((chunked) ? 32 : 128 * ((2 - FSI_WGMMA_ROWS_GROUPS(size, outs, tiles)) & 3)))
#define FSI_WGMMA_ROWS_STAGE(size, chunked, outs, tiles) \
    ((tiles) && ((chunked) || FSI_WGMMA_ROWS_GROUPS(size, outs, tiles) >= 4) ? 32 : 64)
/* Rows of a tile that one copy brings: as many as a warp has of a stage where they are contiguous in both memories. */
#define FSI_WGMMA_ROWS_BOX(size, outs, tiles, contiguous) \
    ((contiguous) && FSI_WGMMA_ROWS_GROUPS(size, outs, tiles) % 4 == 2 \
         ? FSI_WGMMA_ROWS_STAGE(size, 0, outs, tiles) / 4 \
         : 1)
/* Sets of 2 `outs` S tiles, the ring, two mbarriers for each of them, where rows are chunked their shifts; and then
 * `outs` slices of 64 bytes (tile.cuh) for each of the last work items, if thread blocks are persistent.  When a warp
 * begins to generate S for a work item, all but the last 4 / outs sets before it are complete, so consumer warps have
 * finished reading all but the last 4 / outs + sets; a work item has at least one set: the slices of one more are kept. */
#define FSI_WGMMA_ROWS_AHEAD(outs, sets, many) ((many) ? 4 / (outs) + (sets) + 1 : 1)
#define FSI_WGMMA_ROWS_PARTS(size, chunked, outs, tiles, stages, sets) \
    ((sets) * (outs)*16384 + \
     (stages)*FSI_WGMMA_ROWS_STAGE(size, chunked, outs, tiles) * FSI_WGMMA_ROWS_PITCH(size, chunked, outs, tiles) + \
     16 * ((stages) + (sets)) + (chunked) * (stages)*FSI_WGMMA_ROWS_STAGE(size, chunked, outs, tiles))
#define FSI_WGMMA_ROWS_SHARED(size, chunked, outs, tiles, stages, sets, many) \
    (FSI_WGMMA_ROWS_PARTS(size, chunked, outs, tiles, stages, sets) + \
     FSI_WGMMA_ROWS_AHEAD(outs, sets, many) * 64 * (outs))

#endif
