/* simt_generic_instances.h - the compiled instances of simt_generic.cu, one line each.
 *
 * The plan file reads the list as a table of what there is, the kernel's file turns it into a table of functions in the
 * same order: an instance is its number.  FS_FEW_INSTANCES keeps the least that works, for quick builds. */
#ifndef FSI_CUDA_BLOCKPERM_SIMT_GENERIC_INSTANCES_H
#define FSI_CUDA_BLOCKPERM_SIMT_GENERIC_INSTANCES_H

#define FSI_COUNT_ONE(...) +1

/* Element type, neighbouring columns of a thread, nonzeros of a local row (0: any number). */
#ifdef FS_FEW_INSTANCES
#define FSI_SIMT_GENERIC_OF(X, T, dtype) X(T, dtype, 1, 0)
#define FSI_SIMT_GENERIC_WIDE(X, T, dtype)
#else
#define FSI_SIMT_GENERIC_OF(X, T, dtype) \
    X(T, dtype, 1, 0) X(T, dtype, 1, 4) X(T, dtype, 1, 8) X(T, dtype, 2, 0) X(T, dtype, 2, 4) X(T, dtype, 2, 8)
#define FSI_SIMT_GENERIC_WIDE(X, T, dtype) X(T, dtype, 4, 0) X(T, dtype, 4, 4) X(T, dtype, 4, 8)
#endif
#define FSI_SIMT_GENERIC(X) \
    FSI_SIMT_GENERIC_OF(X, float, FS_F32) \
    FSI_SIMT_GENERIC_WIDE(X, float, FS_F32) \
    FSI_SIMT_GENERIC_OF(X, double, FS_F64) \
    FSI_SIMT_GENERIC_OF(X, __half, FS_F16) \
    FSI_SIMT_GENERIC_WIDE(X, __half, FS_F16) \
    FSI_SIMT_GENERIC_OF(X, __nv_bfloat16, FS_BF16) FSI_SIMT_GENERIC_WIDE(X, __nv_bfloat16, FS_BF16)
enum { FSI_SIMT_GENERIC_COUNT = 0 FSI_SIMT_GENERIC(FSI_COUNT_ONE) };
/* Bytes before the tables of a chunk; at most so many permutations together, loads in flight. */
enum { FSI_SIMT_GENERIC_HEAD = 16, FSI_SIMT_GENERIC_GROUP = 16, FSI_SIMT_GENERIC_UNROLL = 8 };

#endif
