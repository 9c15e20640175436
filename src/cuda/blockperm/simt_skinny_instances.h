/* simt_skinny_instances.h - the compiled instances of simt_skinny.cu, one line each.
 *
 * The plan file reads the list as a table of what there is, the kernel's file turns it into a table of functions in the
 * same order: an instance is its number.  FS_FEW_INSTANCES keeps the least that works, for quick builds. */
#ifndef FSI_CUDA_BLOCKPERM_SIMT_SKINNY_INSTANCES_H
#define FSI_CUDA_BLOCKPERM_SIMT_SKINNY_INSTANCES_H

#define FSI_COUNT_ONE(...) +1

/* Element type, nonzeros of a local row in an output tile (2, 4, 8: of packed words; 0: any). */
#ifdef FS_FEW_INSTANCES
#define FSI_SIMT_SKINNY_OF(X, T, dtype) X(T, dtype, 0)
#else
#define FSI_SIMT_SKINNY_OF(X, T, dtype) X(T, dtype, 0) X(T, dtype, 2) X(T, dtype, 4) X(T, dtype, 8)
#endif
#define FSI_SIMT_SKINNY(X) \
    FSI_SIMT_SKINNY_OF(X, float, FS_F32) \
    FSI_SIMT_SKINNY_OF(X, double, FS_F64) \
    FSI_SIMT_SKINNY_OF(X, __half, FS_F16) FSI_SIMT_SKINNY_OF(X, __nv_bfloat16, FS_BF16)
enum { FSI_SIMT_SKINNY_COUNT = 0 FSI_SIMT_SKINNY(FSI_COUNT_ONE) };
/* At most so many warps, rows of a block, columns and blocks; local rows of a lane at a time. */
enum {
    FSI_SIMT_SKINNY_WARPS = 16,
    FSI_SIMT_SKINNY_HEIGHT = 64,
    FSI_SIMT_SKINNY_COLUMNS = 32,
    FSI_SIMT_SKINNY_BLOCKS = 1 << 20,
    FSI_SIMT_SKINNY_UNROLL = 4,
    FSI_SIMT_SKINNY_DRAW = 3 /* words of a draw: of a packed word, one */
};
/* The sums of every warp, bytes of a sum each; two chunks of rounds: `pitch` local rows of a row
 * of A and its random words, and a shift; 8 bytes to align them. */
#define FSI_SIMT_SKINNY_SHARED(warps, sum, rounds, pitch, row, words) \
    ((int64_t)(warps)*FSI_SIMT_SKINNY_HEIGHT * 32 * (sum) + \
     2 * (int64_t)(rounds) * ((pitch) * ((row) + 4 * (words)) + 8) + 8)

#endif
