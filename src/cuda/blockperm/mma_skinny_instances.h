/* mma_skinny_instances.h - the compiled instances of mma_skinny.cu, one line each.
 *
 * The plan file reads the list as a table of what there is, the kernel's file turns it into a table of functions in the
 * same order: an instance is its number.  FS_FEW_INSTANCES keeps the least that works, for quick builds. */
#ifndef FSI_CUDA_BLOCKPERM_MMA_SKINNY_INSTANCES_H
#define FSI_CUDA_BLOCKPERM_MMA_SKINNY_INSTANCES_H

#define FSI_COUNT_ONE(...) +1

/* Element type, neighbouring columns of a thread, nonzeros of a local row in a tile, chunks of the ring, warps. */
#ifdef FS_FEW_INSTANCES
#define FSI_MMA_SKINNY(X) X(float, FS_F32, 2, 4, 2, 16)
#else
/* Rings and tiles that were tried: docs/kernels/mma_skinny.md. */
#define FSI_MMA_SKINNY_FLOAT(X, nonzeros) X(float, FS_F32, 1, nonzeros, 2, 16) X(float, FS_F32, 2, nonzeros, 2, 16)
#define FSI_MMA_SKINNY(X) \
    FSI_MMA_SKINNY_FLOAT(X, 1) \
    FSI_MMA_SKINNY_FLOAT(X, 2) \
    FSI_MMA_SKINNY_FLOAT(X, 4) \
    FSI_MMA_SKINNY_FLOAT(X, 8) \
    X(__half, FS_F16, 2, 4, 4, 16) \
    X(__half, FS_F16, 2, 8, 4, 16) X(__nv_bfloat16, FS_BF16, 2, 4, 4, 16) X(__nv_bfloat16, FS_BF16, 2, 8, 4, 16)
#endif
enum { FSI_MMA_SKINNY_COUNT = 0 FSI_MMA_SKINNY(FSI_COUNT_ONE) };
/* Rounds of a span, and of the spans whose shifts and words are kept; words from output to output; rows of a tile;
 * most columns and outputs. */
enum {
    FSI_MMA_SKINNY_SPAN = 256,
    FSI_MMA_SKINNY_KEPT = 4 * FSI_MMA_SKINNY_SPAN,
    FSI_MMA_SKINNY_PITCH = FSI_MMA_SKINNY_KEPT + 4,
    FSI_MMA_SKINNY_HEIGHT = 64,
    FSI_MMA_SKINNY_COLUMNS = 48,
    FSI_MMA_SKINNY_BLOCKS = 1 << 20
};
/* Bytes of a warp's ring of chunks of 32 local rows, which holds its sums at the end; and of everything: rounds, and of every
 * warp its ring, words, positions of 32 local rows, and a slice (tile.cuh). */
#define FSI_MMA_SKINNY_RING(size, vector, stages) \
    ((stages) * (int)(size) < 8 ? 2048 * (vector) : 256 * (stages) * (vector) * (int)(size))
#define FSI_MMA_SKINNY_SHARED(size, vector, stages, warps) \
    (8 * FSI_MMA_SKINNY_KEPT + \
     (warps) * (FSI_MMA_SKINNY_RING(size, vector, stages) + 4 * FSI_MMA_SKINNY_PITCH + 128 + 64))

#endif
