/* rotate_skinny_simt_instances.h - the compiled instances of rotate_skinny_simt.cu, one line each.
 *
 * The plan file reads the list as a table of what there is, the kernel's file turns it into a table of functions in the
 * same order: an instance is its number.  FS_FEW_INSTANCES keeps the least that works, for quick builds. */
#ifndef FSI_CUDA_BLOCKPERM_ROTATE_SKINNY_SIMT_INSTANCES_H
#define FSI_CUDA_BLOCKPERM_ROTATE_SKINNY_SIMT_INSTANCES_H

#define FSI_COUNT_ONE(...) +1

/* Element type, neighbouring columns of a thread, strata of an output tile; for a type and strata, fewer columns
 * first. */
#ifdef FS_FEW_INSTANCES
#define FSI_ROTATE_SKINNY_SIMT(X) X(float, FS_F32, 4, 4)
#else
#define FSI_ROTATE_SKINNY_SIMT_HALF(X, T, dtype) X(T, dtype, 1, 4) X(T, dtype, 2, 4) X(T, dtype, 8, 4) X(T, dtype, 8, 2)
#define FSI_ROTATE_SKINNY_SIMT(X) \
    X(float, FS_F32, 1, 2) \
    X(float, FS_F32, 4, 2) \
    X(float, FS_F32, 1, 4) \
    X(float, FS_F32, 2, 4) \
    X(float, FS_F32, 4, 4) \
    X(float, FS_F32, 1, 8) \
    X(float, FS_F32, 4, 8) \
    X(double, FS_F64, 1, 4) \
    X(double, FS_F64, 2, 4) \
    FSI_ROTATE_SKINNY_SIMT_HALF(X, __half, FS_F16) FSI_ROTATE_SKINNY_SIMT_HALF(X, __nv_bfloat16, FS_BF16)
#endif
enum { FSI_ROTATE_SKINNY_SIMT_COUNT = 0 FSI_ROTATE_SKINNY_SIMT(FSI_COUNT_ONE) };
/* Threads of a thread block; rows of an output tile; columns and blocks, at most; stages of the ring of rows, spans of
 * the ring of rounds; rounds of a span, at most; bytes that say where an output tile goes, and what a
 * thread copies and draws. */
enum {
    FSI_ROTATE_SKINNY_SIMT_THREADS = 512,
    FSI_ROTATE_SKINNY_SIMT_HEIGHT = 64,
    FSI_ROTATE_SKINNY_SIMT_COLUMNS = 128,
    FSI_ROTATE_SKINNY_SIMT_BLOCKS = 1 << 20,
    FSI_ROTATE_SKINNY_SIMT_STAGES = 3,
    FSI_ROTATE_SKINNY_SIMT_SPANS = 4,
    FSI_ROTATE_SKINNY_SIMT_SPAN = 256,
    FSI_ROTATE_SKINNY_SIMT_DESTINATION = 56,
    FSI_ROTATE_SKINNY_SIMT_SHARE = 48
};
/* Bytes of a local row in shared memory: of few columns, elements of two bytes become f32. */
#define FSI_ROTATE_SKINNY_SIMT_UNIT(size, vector) ((vector) * ((size) == 2 && (vector) <= 2 ? 4 : (size)))
/* Rows of a lane in a stratum, neighbours; as often are local rows in shared memory. */
#define FSI_ROTATE_SKINNY_SIMT_ROWS(strata, unit) ((strata) == 4 && (unit) <= 4 ? 2 : 1)
/* Sums of a thread, bytes of a sum each, are of one output tile, or of two where it has few columns. */
#define FSI_ROTATE_SKINNY_SIMT_TASKS(sum, vector, strata, rows) ((sum) * (vector) * (strata) * (rows) <= 32 ? 2 : 1)
/* Bytes of four rows, where a thread can copy so many at once; 0: it cannot. */
#define FSI_ROTATE_SKINNY_SIMT_QUAD(size, vector, strata) \
    ((strata) == 4 && (size) <= 4 && (vector) == 1 ? 4 * (size) : 0)
/* Bytes of the rotations of a window of an output tile; of a window of the rows of `slabs` chunks of columns, a local
 * row having so many bytes. */
#define FSI_ROTATE_SKINNY_SIMT_ENTRY(strata) ((strata) == 8 ? 32 : 16)
#define FSI_ROTATE_SKINNY_SIMT_WINDOW(slabs, bytes, strata) \
    (((slabs) * (bytes) * (FSI_ROTATE_SKINNY_SIMT_HEIGHT / (strata)) + 255) / 256 * 256)

#endif
