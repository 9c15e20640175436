/* gather_rows_simt_instances.h - the compiled instances of gather_rows_simt.cu, one line each.
 *
 * The plan file reads the list as a table of what there is, the kernel's file turns it into a table of functions in the
 * same order: an instance is its number.  FS_FEW_INSTANCES keeps the least that works, for quick builds. */
#ifndef FSI_CUDA_BLOCKPERM_GATHER_ROWS_SIMT_INSTANCES_H
#define FSI_CUDA_BLOCKPERM_GATHER_ROWS_SIMT_INSTANCES_H

#define FSI_COUNT_ONE(...) +1

/* Element type, outputs together. */
#ifdef FS_FEW_INSTANCES
#define FSI_GATHER_ROWS_SIMT(X) X(float, FS_F32, 1)
#else
#define FSI_GATHER_ROWS_SIMT(X) X(float, FS_F32, 1) X(float, FS_F32, 2) X(float, FS_F32, 4)
#endif
enum { FSI_GATHER_ROWS_SIMT_COUNT = 0 FSI_GATHER_ROWS_SIMT(FSI_COUNT_ONE) };
/* Consumer warps, which add, and producer warps that list nonzeros; rows of a stage, bytes of each, and rows that one copy
 * brings where they are contiguous.  (Eight listing warps make no difference: docs/kernels/gather_rows_simt.md.) */
enum {
    FSI_GATHER_ROWS_SIMT_ADDERS = 16,
    FSI_GATHER_ROWS_SIMT_LISTERS = 4,
    FSI_GATHER_ROWS_SIMT_THREADS = 32 * (4 + FSI_GATHER_ROWS_SIMT_LISTERS + FSI_GATHER_ROWS_SIMT_ADDERS),
    FSI_GATHER_ROWS_SIMT_STAGE = 128,
    FSI_GATHER_ROWS_SIMT_STAGES = 3,
    FSI_GATHER_ROWS_SIMT_BYTES = 512,
    FSI_GATHER_ROWS_SIMT_BOX = FSI_GATHER_ROWS_SIMT_STAGE / 4
};
/* Bytes of a stage's lists, at most four nonzeros a row and one entry more; of the numbers where a block's lists begin;
 * of both of them; and of everything: stages, lists, a mask for each row of a block of every listing warp, four
 * slices of 64 bytes (tile.cuh), two mbarriers a stage. */
enum {
    FSI_GATHER_ROWS_SIMT_ENTRIES = 2 * 4 * FSI_GATHER_ROWS_SIMT_STAGE + 16,
    FSI_GATHER_ROWS_SIMT_BEGINS = 2 * 64 + 16,
    FSI_GATHER_ROWS_SIMT_LISTS = FSI_GATHER_ROWS_SIMT_ENTRIES + 4 * FSI_GATHER_ROWS_SIMT_BEGINS,
    FSI_GATHER_ROWS_SIMT_SHARED = FSI_GATHER_ROWS_SIMT_STAGES *
                                      (FSI_GATHER_ROWS_SIMT_STAGE * FSI_GATHER_ROWS_SIMT_BYTES +
                                       FSI_GATHER_ROWS_SIMT_LISTS + 16) +
                                  FSI_GATHER_ROWS_SIMT_LISTERS * 64 * 16 + 4 * 64
};

#endif
