/* wgmma_groups_instances.h - the compiled instances of wgmma_groups.cu, one line each.
 *
 * The plan file reads the list as a table of what there is, the kernel's file turns it into a table of functions in the
 * same order: an instance is its number.  FS_FEW_INSTANCES keeps the least that works, for quick builds. */
#ifndef FSI_CUDA_BLOCKPERM_WGMMA_GROUPS_INSTANCES_H
#define FSI_CUDA_BLOCKPERM_WGMMA_GROUPS_INSTANCES_H

#define FSI_COUNT_ONE(...) +1

/* Element type, interleave, samples of a thread block, steps in flight, S tiles. */
#ifdef FS_FEW_INSTANCES
#define FSI_WGMMA_GROUPS(X) X(float, FS_F32, 1, 128, 6, 4) X(float, FS_F32, 16, 64, 3, 4)
#else
#define FSI_WGMMA_GROUPS_OF(X, T, dtype, stages, spread, panels) \
    X(T, dtype, 1, 128, stages, panels) \
    X(T, dtype, 1, 64, stages, panels) \
    X(T, dtype, 4, 128, stages, panels) \
    X(T, dtype, 4, 64, stages, panels) \
    X(T, dtype, 8, 64, stages, panels) \
    X(T, dtype, 16, 64, spread, panels)
#define FSI_WGMMA_GROUPS(X) \
    FSI_WGMMA_GROUPS_OF(X, float, FS_F32, 6, 3, 4) \
    FSI_WGMMA_GROUPS_OF(X, __half, FS_F16, 10, 10, 8) FSI_WGMMA_GROUPS_OF(X, __nv_bfloat16, FS_BF16, 10, 10, 8)
#endif
enum { FSI_WGMMA_GROUPS_COUNT = 0 FSI_WGMMA_GROUPS(FSI_COUNT_ONE) };
/* Whether row groups come by a tensor map: those of 128 bytes. */
#define FSI_WGMMA_GROUPS_BOXES(size) ((size) == 4)
/* Thread blocks that are a cluster and receive the same row groups: those that compute the halves of 16 blocks. */
#define FSI_WGMMA_GROUPS_CLUSTER(size, c) (FSI_WGMMA_GROUPS_BOXES(size) && (c) == 16 ? 2 : 1)
/* Two consumer warpgroups and one producer warpgroup, or two where they copy 16 bytes at a time (measured:
 * docs/kernels/wgmma_groups.md).  With more producer warps, generator warps have too few registers. */
#define FSI_WGMMA_GROUPS_THREADS(size, c, samples) \
    (!FSI_WGMMA_GROUPS_BOXES(size) && (c) == 1 && (samples) == 128 ? 512 : 384)
/* Bytes of the masks of a step. */
#define FSI_WGMMA_GROUPS_MASKS 32
/* S tiles, the ring, two mbarriers for each of them and one more, masks. */
#define FSI_WGMMA_GROUPS_SHARED(size, c, stages, panels) \
    ((panels)*8192 + (stages)*FSI_WGMMA_GROUPS_CLUSTER(size, c) * 8192 * (int)(size) + 16 * ((stages) + (panels)) + \
     8 + FSI_WGMMA_GROUPS_MASKS * (stages))

#endif
