/* mma_gather_instances.h - the compiled instances of mma_gather.cu, one line each.
 *
 * The plan file reads the list as a table of what there is, the kernel's file turns it into a table of functions in the
 * same order: an instance is its number.  FS_FEW_INSTANCES keeps the least that works, for quick builds. */
#ifndef FSI_CUDA_BLOCKPERM_MMA_GATHER_INSTANCES_H
#define FSI_CUDA_BLOCKPERM_MMA_GATHER_INSTANCES_H

#define FSI_COUNT_ONE(...) +1

/* Element type. */
#ifdef FS_FEW_INSTANCES
#define FSI_MMA_GATHER(X) X(float, FS_F32)
#else
#define FSI_MMA_GATHER(X) X(float, FS_F32) X(__half, FS_F16) X(__nv_bfloat16, FS_BF16)
#endif
enum { FSI_MMA_GATHER_COUNT = 0 FSI_MMA_GATHER(FSI_COUNT_ONE) };
/* Threads, each of which generates a local row of a chunk; samples of a thread block; S tiles (64 local rows) and row
 * offsets.  (Other numbers of samples and of chunks: docs/kernels/mma_gather.md.) */
enum {
    FSI_MMA_GATHER_THREADS = 256,
    FSI_MMA_GATHER_SAMPLES = 64,
    FSI_MMA_GATHER_SHARED = FSI_MMA_GATHER_THREADS / 64 * 8192 + 8 * FSI_MMA_GATHER_THREADS
};

/* Factored input: element type, samples of a thread block. */
#define FSI_MMA_FACTORED(X) X(float, FSI_MMA_GATHER_SAMPLES) X(float, FSI_MMA_GATHER_SAMPLES / 2)
enum { FSI_MMA_FACTORED_COUNT = 0 FSI_MMA_FACTORED(FSI_COUNT_ONE) };

#endif
