/* instances.h - the compiled instances of the kernels, one line each.
 *
 * choose.c reads the lists as tables of what there is, the kernels' files turn them into tables of
 * functions in the same order; an instance is its number.  FS_FEW_INSTANCES keeps the least that works for
 * every matrix, for quick builds. */
#ifndef FSI_CUDA_PLAN_INSTANCES_H
#define FSI_CUDA_PLAN_INSTANCES_H

#ifdef __cplusplus
extern "C" {
#endif

#define FSI_COUNT_ONE(...) +1

/* mma_rows.cu: element type, pieces of an element, groups of a thread block, steps in flight.  Seven
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

/* wgmma_rows.cu: element type, permutations together, tiles of 64 columns of a warpgroup, stages of rows, sets of
 * panels of S, whether thread blocks take many pieces.  As many sets as warps that make them in turn, so that none
 * laps. */
#ifdef FS_FEW_INSTANCES
#define FSI_WGMMA_ROWS(X) X(float, FS_F32, 1, 1, 6, 4, 0)
#else
#define FSI_WGMMA_ROWS_HALF(X, T, dtype) \
    X(T, dtype, 1, 2, 6, 4, 0) \
    X(T, dtype, 1, 2, 6, 4, 1) \
    X(T, dtype, 1, 1, 8, 4, 0) \
    X(T, dtype, 2, 1, 6, 4, 0) \
    X(T, dtype, 4, 1, 6, 2, 0)
#define FSI_WGMMA_ROWS(X) \
    X(float, FS_F32, 1, 2, 3, 4, 0) \
    X(float, FS_F32, 1, 2, 3, 4, 1) \
    X(float, FS_F32, 1, 1, 6, 4, 0) \
    X(float, FS_F32, 2, 1, 4, 4, 0) \
    X(float, FS_F32, 4, 1, 6, 2, 0) \
    FSI_WGMMA_ROWS_HALF(X, __half, FS_F16) FSI_WGMMA_ROWS_HALF(X, __nv_bfloat16, FS_BF16)
#endif
enum { FSI_WGMMA_ROWS_COUNT = 0 FSI_WGMMA_ROWS(FSI_COUNT_ONE) };
/* Columns of a tile, and the groups of 128 bytes of its rows; bytes of a row in shared memory, 2, 6, 10, ... groups;
 * rows of a stage. */
#define FSI_WGMMA_ROWS_WIDTH(outs, tiles) ((outs) == 1 ? 128 * (tiles) : 256 / (outs))
#define FSI_WGMMA_ROWS_GROUPS(size, outs, tiles) (FSI_WGMMA_ROWS_WIDTH(outs, tiles) * (int)(size) / 128)
#define FSI_WGMMA_ROWS_PITCH(size, outs, tiles) \
    (128 * (FSI_WGMMA_ROWS_GROUPS(size, outs, tiles) + ((2 - FSI_WGMMA_ROWS_GROUPS(size, outs, tiles)) & 3)))
#define FSI_WGMMA_ROWS_STAGE(size, outs, tiles) (FSI_WGMMA_ROWS_GROUPS(size, outs, tiles) >= 4 ? 32 : 64)
/* Rows of a tile that one copy brings: as many as a warp has of a stage where they follow each other in both
 * memories. */
#define FSI_WGMMA_ROWS_BOX(size, outs, tiles, contiguous) \
    ((contiguous) && FSI_WGMMA_ROWS_GROUPS(size, outs, tiles) % 4 == 2 ? FSI_WGMMA_ROWS_STAGE(size, outs, tiles) / 4 \
                                                                       : 1)
/* Sets of 2 `outs` panels, the ring, two mbarriers for each of them; and then `outs` slices of 48 bytes (tile.cuh) for
 * each of the last pieces, if there are many.  A warp that begins to make S for a piece has made the last but 4 / outs
 * sets before it, so those who multiply have read the last but 4 / outs + sets, and a piece has at least one set: the
 * slices of one more are kept. */
#define FSI_WGMMA_ROWS_AHEAD(outs, sets, many) ((many) ? 4 / (outs) + (sets) + 1 : 1)
#define FSI_WGMMA_ROWS_PARTS(size, outs, tiles, stages, sets) \
    ((sets) * (outs)*16384 + \
     (stages)*FSI_WGMMA_ROWS_STAGE(size, outs, tiles) * FSI_WGMMA_ROWS_PITCH(size, outs, tiles) + \
     16 * ((stages) + (sets)))
#define FSI_WGMMA_ROWS_SHARED(size, outs, tiles, stages, sets, many) \
    (FSI_WGMMA_ROWS_PARTS(size, outs, tiles, stages, sets) + FSI_WGMMA_ROWS_AHEAD(outs, sets, many) * 48 * (outs))

/* wgmma_rows_16bit.cu: element type, nonzeros of a local row, places of units, warps that prepare, groups that multiply, thread
 * blocks of a cluster.  H200, f16, 16384 x 1024, 2026-11-16, on top of 4d6ab92, in us, by places and warps that
 * prepare: k = 1024 4,2 14.6, 6,2 15.1, 6,3 15.9, 6,1 17.4; k = 512 8,4 13.5, 12,4 13.9, 10,5 14.0, 9,3 14.6, 12,3 and
 * 12,6 14.7; k = 256 8,4 14.1, 10,5 14.8, 9,3 and 8,8 15.1, 10,2 17.8; k = 64 9,3 14.4, 8,4 14.6, 10,5 15.2, 8,2 16.4,
 * 10,2 17.0.  So 128 KB of rows on their way to a processor are enough, and where rows are not dealt (k = 64) three
 * warps keep up. */
#define FSI_WGMMA_ROWS_16BIT_OF(X, T, dtype, nonzeros) \
    X(T, dtype, nonzeros, 4, 2, 1, 1) \
    X(T, dtype, nonzeros, 8, 4, 2, 1) \
    X(T, dtype, nonzeros, 8, 4, 2, 2) \
    X(T, dtype, nonzeros, 9, 3, 2, 6) \
    X(T, dtype, nonzeros, 4, 2, 1, 7)
#ifdef FS_FEW_INSTANCES
#define FSI_WGMMA_ROWS_16BIT(X) FSI_WGMMA_ROWS_16BIT_OF(X, __half, FS_F16, 4)
#else
#define FSI_WGMMA_ROWS_16BIT(X) \
    FSI_WGMMA_ROWS_16BIT_OF(X, __half, FS_F16, 4) FSI_WGMMA_ROWS_16BIT_OF(X, __nv_bfloat16, FS_BF16, 4)
#endif
enum { FSI_WGMMA_ROWS_16BIT_COUNT = 0 FSI_WGMMA_ROWS_16BIT(FSI_COUNT_ONE) };
/* Columns of a tile, local rows of a unit, threads of a group. */
enum { FSI_WGMMA_ROWS_16BIT_COLUMNS = 64, FSI_WGMMA_ROWS_16BIT_UNIT = 128, FSI_WGMMA_ROWS_16BIT_GROUP = 128 };
/* Thread blocks of a processor. */
#define FSI_WGMMA_ROWS_16BIT_RESIDENT(places) ((places) <= 6 ? 2 : 1)
/* Rows and codes of a place and its three mbarriers; sums that two groups leave for each other; quarters of eight rows
 * of sums from every other thread block of a cluster, and eight mbarriers for them. */
#define FSI_WGMMA_ROWS_16BIT_SHARED(nonzeros, places, groups, cluster) \
    ((places) * (FSI_WGMMA_ROWS_16BIT_UNIT * 2 * (FSI_WGMMA_ROWS_16BIT_COLUMNS + (nonzeros)) + 24) + \
     ((groups) > 1 ? 16384 : 0) + ((cluster)-1) * ((32 + (cluster)-1) / (cluster)) * 512 + ((cluster) > 1 ? 64 : 0))

/* gather_rows_simt.cu: element type, permutations together. */
#ifdef FS_FEW_INSTANCES
#define FSI_GATHER_ROWS_SIMT(X) X(float, FS_F32, 1)
#else
#define FSI_GATHER_ROWS_SIMT(X) X(float, FS_F32, 1) X(float, FS_F32, 2) X(float, FS_F32, 4)
#endif
enum { FSI_GATHER_ROWS_SIMT_COUNT = 0 FSI_GATHER_ROWS_SIMT(FSI_COUNT_ONE) };
/* Warps that add, and that list; rows of a stage, bytes of each, and rows that one copy brings where they follow each
 * other.  (H200, kappa 4: eight warps that list make no difference.) */
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
 * of both of them; and of everything: stages, lists, a mask for each row of a block of every warp that lists, four
 * slices of 48 bytes (tile.cuh), two mbarriers a stage. */
enum {
    FSI_GATHER_ROWS_SIMT_ENTRIES = 2 * 4 * FSI_GATHER_ROWS_SIMT_STAGE + 16,
    FSI_GATHER_ROWS_SIMT_BEGINS = 2 * 64 + 16,
    FSI_GATHER_ROWS_SIMT_LISTS = FSI_GATHER_ROWS_SIMT_ENTRIES + 4 * FSI_GATHER_ROWS_SIMT_BEGINS,
    FSI_GATHER_ROWS_SIMT_SHARED = FSI_GATHER_ROWS_SIMT_STAGES *
                                      (FSI_GATHER_ROWS_SIMT_STAGE * FSI_GATHER_ROWS_SIMT_BYTES +
                                       FSI_GATHER_ROWS_SIMT_LISTS + 16) +
                                  FSI_GATHER_ROWS_SIMT_LISTERS * 64 * 16 + 4 * 48
};

/* wgmma_groups.cu: element type, interleave, samples of a thread block, steps in flight, panels of S. */
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
/* Whether lines come by a tensor map: those of 128 bytes. */
#define FSI_WGMMA_GROUPS_BOXES(size) ((size) == 4)
/* Thread blocks that are a cluster and get the same lines: those that make the halves of 16 blocks. */
#define FSI_WGMMA_GROUPS_CLUSTER(size, c) (FSI_WGMMA_GROUPS_BOXES(size) && (c) == 16 ? 2 : 1)
/* Two warpgroups multiply.  One more prepares, or two where they copy 16 bytes at a time.  On an H200 (2026-11-15,
 * between 93f2913 and 2a3de1a, f32 copied so, k = 1024) 512 samples of 131072 took 80 to 82 us with six warps that
 * copy and 81 with two; but 64 samples of 1048576 took 87 against 79, and interleave 16 took 131 against 113, where the
 * warps that make S have too few registers then. */
#define FSI_WGMMA_GROUPS_THREADS(size, c, samples) \
    (!FSI_WGMMA_GROUPS_BOXES(size) && (c) == 1 && (samples) == 128 ? 512 : 384)
/* Panels of S, the ring, two mbarriers for each of them and one more, masks. */
#define FSI_WGMMA_GROUPS_SHARED(size, c, stages, panels) \
    ((panels)*8192 + (stages)*FSI_WGMMA_GROUPS_CLUSTER(size, c) * 8192 * (int)(size) + 16 * ((stages) + (panels)) + \
     8 + 8 * (stages))

/* mma_gather.cu: element type. */
#ifdef FS_FEW_INSTANCES
#define FSI_MMA_GATHER(X) X(float, FS_F32)
#else
#define FSI_MMA_GATHER(X) X(float, FS_F32) X(__half, FS_F16) X(__nv_bfloat16, FS_BF16)
#endif
enum { FSI_MMA_GATHER_COUNT = 0 FSI_MMA_GATHER(FSI_COUNT_ONE) };
/* Threads, each of which makes a local row of a chunk; samples of a thread block; panels of S (64 local rows) and where the rows
 * are.  (H200, 7338b99, batches of 512, masks of 4 k, k = 1024 to 4096: 32 and 128 samples made no difference beyond
 * 5 %.  Two chunks of S, made while the elements of the first 32 local rows are on their way, took 1.03 to 1.06 times as
 * long.) */
enum {
    FSI_MMA_GATHER_THREADS = 256,
    FSI_MMA_GATHER_SAMPLES = 64,
    FSI_MMA_GATHER_SHARED = FSI_MMA_GATHER_THREADS / 64 * 8192 + 8 * FSI_MMA_GATHER_THREADS
};

/* mma_gather.cu, products of rows: element type, samples of a thread block. */
#define FSI_MMA_FACTORED(X) X(float, FSI_MMA_GATHER_SAMPLES) X(float, FSI_MMA_GATHER_SAMPLES / 2)
enum { FSI_MMA_FACTORED_COUNT = 0 FSI_MMA_FACTORED(FSI_COUNT_ONE) };

/* simt_generic.cu: element type, neighbouring columns of a thread, nonzeros of a local row (0: any number). */
#ifdef FS_FEW_INSTANCES
#define FSI_SIMT_GENERIC_OF(X, T, dtype) X(T, dtype, 1, 0)
#define FSI_SIMT_GENERIC_WIDE(X, T, dtype)
#else
#define FSI_SIMT_GENERIC_OF(X, T, dtype) X(T, dtype, 1, 0) X(T, dtype, 1, 4) X(T, dtype, 2, 0) X(T, dtype, 2, 4)
#define FSI_SIMT_GENERIC_WIDE(X, T, dtype) X(T, dtype, 4, 0) X(T, dtype, 4, 4)
#endif
#define FSI_SIMT_GENERIC(X) \
    FSI_SIMT_GENERIC_OF(X, float, FS_F32) \
    FSI_SIMT_GENERIC_WIDE(X, float, FS_F32) FSI_SIMT_GENERIC_OF(X, double, FS_F64) \
        FSI_SIMT_GENERIC_OF(X, __half, FS_F16) FSI_SIMT_GENERIC_WIDE(X, __half, FS_F16) \
            FSI_SIMT_GENERIC_OF(X, __nv_bfloat16, FS_BF16) FSI_SIMT_GENERIC_WIDE(X, __nv_bfloat16, FS_BF16)
enum { FSI_SIMT_GENERIC_COUNT = 0 FSI_SIMT_GENERIC(FSI_COUNT_ONE) };
/* Bytes before the tables of a chunk; at most so many permutations together, loads in flight. */
enum { FSI_SIMT_GENERIC_HEAD = 16, FSI_SIMT_GENERIC_GROUP = 16, FSI_SIMT_GENERIC_UNROLL = 8 };

/* simt_skinny.cu: element type, nonzeros of a local row (4: in four slices of a power of two of rows,
 * alike in all blocks; 0: any). */
#ifdef FS_FEW_INSTANCES
#define FSI_SIMT_SKINNY_OF(X, T, dtype) X(T, dtype, 0)
#else
#define FSI_SIMT_SKINNY_OF(X, T, dtype) X(T, dtype, 0) X(T, dtype, 4)
#endif
#define FSI_SIMT_SKINNY(X) \
    FSI_SIMT_SKINNY_OF(X, float, FS_F32) \
    FSI_SIMT_SKINNY_OF(X, double, FS_F64) FSI_SIMT_SKINNY_OF(X, __half, FS_F16) \
        FSI_SIMT_SKINNY_OF(X, __nv_bfloat16, FS_BF16)
enum { FSI_SIMT_SKINNY_COUNT = 0 FSI_SIMT_SKINNY(FSI_COUNT_ONE) };
/* At most so many warps, rows of a block, columns and blocks; local rows of a lane at a time. */
enum {
    FSI_SIMT_SKINNY_WARPS = 16,
    FSI_SIMT_SKINNY_HEIGHT = 64,
    FSI_SIMT_SKINNY_COLUMNS = 32,
    FSI_SIMT_SKINNY_BLOCKS = 1 << 20,
    FSI_SIMT_SKINNY_UNROLL = 4
};
/* The sums of every warp, bytes of a sum each; two chunks of rounds: `pitch` local rows of a row
 * of A and its words, and a turn. */
#define FSI_SIMT_SKINNY_SHARED(warps, sum, rounds, pitch, row, words) \
    ((int64_t)(warps)*FSI_SIMT_SKINNY_HEIGHT * 32 * (sum) + \
     2 * (int64_t)(rounds) * ((pitch) * ((row) + 4 * (words)) + 4))

/* mma_skinny.cu: element type, neighbouring columns of a thread, nonzeros of a local row, chunks of the ring, warps. */
#ifdef FS_FEW_INSTANCES
#define FSI_MMA_SKINNY(X) X(float, FS_F32, 2, 4, 2, 16)
#else
/* H200, 2026-11-16, on top of 9c3528b, 16777216 rows, k = 1024, s = 4: 16 columns take 458 us with a ring of two
 * chunks, 515 with four, and two tiles of one column a thread 653; four columns a thread, 8 warps, make 32 columns in
 * 983. */
#define FSI_MMA_SKINNY_FLOAT(X, nonzeros) X(float, FS_F32, 1, nonzeros, 2, 16) X(float, FS_F32, 2, nonzeros, 2, 16)
#define FSI_MMA_SKINNY(X) \
    FSI_MMA_SKINNY_FLOAT(X, 1) \
    FSI_MMA_SKINNY_FLOAT(X, 2) FSI_MMA_SKINNY_FLOAT(X, 4) FSI_MMA_SKINNY_FLOAT(X, 8) X(__half, FS_F16, 2, 4, 4, 16) \
        X(__nv_bfloat16, FS_BF16, 2, 4, 4, 16)
#endif
enum { FSI_MMA_SKINNY_COUNT = 0 FSI_MMA_SKINNY(FSI_COUNT_ONE) };
/* Rounds of a span, and of the spans whose turns and words are kept; words from block to block; rows of a block; most
 * columns and blocks. */
enum {
    FSI_MMA_SKINNY_SPAN = 256,
    FSI_MMA_SKINNY_KEPT = 4 * FSI_MMA_SKINNY_SPAN,
    FSI_MMA_SKINNY_PITCH = FSI_MMA_SKINNY_KEPT + 4,
    FSI_MMA_SKINNY_HEIGHT = 64,
    FSI_MMA_SKINNY_COLUMNS = 48,
    FSI_MMA_SKINNY_BLOCKS = 1 << 20
};
/* Bytes of a warp's ring of chunks of 32 local rows, where its sums are in the end; and of everything: turns, and of every
 * warp its ring, words, places of 32 local rows, and a slice (tile.cuh). */
#define FSI_MMA_SKINNY_RING(size, vector, stages) \
    ((stages) * (int)(size) < 8 ? 2048 * (vector) : 256 * (stages) * (vector) * (int)(size))
#define FSI_MMA_SKINNY_SHARED(size, vector, stages, warps) \
    (4 * FSI_MMA_SKINNY_KEPT + \
     (warps) * (FSI_MMA_SKINNY_RING(size, vector, stages) + 4 * FSI_MMA_SKINNY_PITCH + 128 + 48))

extern const void *const fsi_wgmma_rows_kernels[], *const fsi_wgmma_groups_kernels[],
                                                       *const fsi_mma_rows_kernels[],
                                                           *const fsi_simt_generic_kernels[],
                                                               *const fsi_simt_skinny_kernels[],
                                                                   *const fsi_gather_rows_simt_kernels[],
                                                                       *const fsi_mma_gather_kernels[],
                                                                           *const fsi_wgmma_rows_16bit_kernels[],
                                                                               *const fsi_mma_factored_kernels[],
                                                                                   *const fsi_mma_skinny_kernels[];

#ifdef __cplusplus
}
#endif

#endif
