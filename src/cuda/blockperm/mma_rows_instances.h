/* mma_rows_instances.h - the compiled instances of mma_rows.cu, one line each.
 *
 * The plan file reads the list as a table of what there is, the kernel's file turns it into a table of functions in the
 * same order: an instance is its number.  FS_FEW_INSTANCES keeps the least that works, for quick builds. */
#ifndef FSI_CUDA_BLOCKPERM_MMA_ROWS_INSTANCES_H
#define FSI_CUDA_BLOCKPERM_MMA_ROWS_INSTANCES_H

#define FSI_COUNT_ONE(...) +1

/* Element type, split terms of an element, warpgroups of a thread block, steps in flight.  Seven
 * steps of f32 fit the 99 KiB of shared memory that sm_86, sm_89 and sm_120 give a thread block, and
 * two groups of them an A100's 163. */
#ifdef FS_FEW_INSTANCES
#define FSI_MMA_ROWS(X) X(float, FS_F32, 3, 1, 7)
#else
#define FSI_MMA_ROWS(X) \
    X(float, FS_F32, 3, 1, 7) \
    X(float, FS_F32, 3, 2, 7) \
    X(float, FS_F32, 2, 1, 7) \
    X(float, FS_F32, 2, 2, 7) \
    X(__half, FS_F16, 1, 1, 8) \
    X(__half, FS_F16, 1, 2, 8) \
    X(__nv_bfloat16, FS_BF16, 1, 1, 8) \
    X(__nv_bfloat16, FS_BF16, 1, 2, 8)
#endif
enum { FSI_MMA_ROWS_COUNT = 0 FSI_MMA_ROWS(FSI_COUNT_ONE) };
/* Two chunks of S, four chunks of offsets, the rings. */
#define FSI_MMA_ROWS_SHARED(size, groups, stages) (2 * 16384 + 4 * 128 * 8 + (groups) * (stages)*16 * 128 * (int)(size))

#endif
