/* instances.h - the compiled instances of the kernels, one line each.
 *
 * choose.c reads the lists as tables of what there is, the kernels' files turn them into tables of
 * functions in the same order; an instance is its number.  FS_FEW_INSTANCES keeps the least that works for
 * every matrix, for quick builds. */
#ifndef FS_CUDA_INSTANCES_H
#define FS_CUDA_INSTANCES_H

#ifdef __cplusplus
extern "C" {
#endif

#define FS_COUNT_ONE(...) +1

/* tensor_rows.cu: element type, pieces of an element, groups of a thread block, steps in flight.  Seven
 * steps of f32 fit the 99 KiB of shared memory that sm_86, sm_89 and sm_120 give a thread block, and
 * two groups of them an A100's 163. */
#ifdef FS_FEW_INSTANCES
#define FS_TENSOR_ROWS(X) X(float, FS_F32, 3, 1, 7)
#else
#define FS_TENSOR_ROWS(X) \
    X(float, FS_F32, 3, 1, 7) \
    X(float, FS_F32, 3, 2, 7) \
    X(float, FS_F32, 2, 1, 7) \
    X(float, FS_F32, 2, 2, 7) \
    X(__half, FS_F16, 1, 1, 8) \
    X(__half, FS_F16, 1, 2, 8) \
    X(__nv_bfloat16, FS_BF16, 1, 1, 8) \
    X(__nv_bfloat16, FS_BF16, 1, 2, 8)
#endif
enum { FS_TENSOR_ROWS_COUNT = 0 FS_TENSOR_ROWS(FS_COUNT_ONE) };
/* Two chunks of S, four chunks of offsets, the rings. */
#define FS_TENSOR_ROWS_SHARED(size, groups, stages) \
    (2 * 16384 + 4 * 128 * 8 + (groups) * (stages) * 16 * 128 * (int)(size))

/* hopper_rows.cu: element type, permutations together, tiles of 64 columns of a warpgroup, stages of rows, sets of
 * panels of S, whether thread blocks take many pieces.  As many sets as warps that make them in turn, so that none
 * laps. */
#ifdef FS_FEW_INSTANCES
#define FS_HOPPER_ROWS(X) X(float, FS_F32, 1, 1, 6, 4, 0)
#else
#define FS_HOPPER_ROWS_HALF(X, T, dtype) \
    X(T, dtype, 1, 2, 6, 4, 0) \
    X(T, dtype, 1, 2, 6, 4, 1) \
    X(T, dtype, 1, 1, 8, 4, 0) \
    X(T, dtype, 2, 1, 6, 4, 0) \
    X(T, dtype, 4, 1, 6, 2, 0)
#define FS_HOPPER_ROWS(X) \
    X(float, FS_F32, 1, 2, 3, 4, 0) \
    X(float, FS_F32, 1, 2, 3, 4, 1) \
    X(float, FS_F32, 1, 1, 6, 4, 0) \
    X(float, FS_F32, 2, 1, 4, 4, 0) \
    X(float, FS_F32, 4, 1, 6, 2, 0) \
    FS_HOPPER_ROWS_HALF(X, __half, FS_F16) FS_HOPPER_ROWS_HALF(X, __nv_bfloat16, FS_BF16)
#endif
enum { FS_HOPPER_ROWS_COUNT = 0 FS_HOPPER_ROWS(FS_COUNT_ONE) };
/* Columns of a tile, and the groups of 128 bytes of its rows; bytes of a row in shared memory, 2, 6, 10, ... groups;
 * rows of a stage. */
#define FS_HOPPER_ROWS_WIDTH(outs, tiles) ((outs) == 1 ? 128 * (tiles) : 256 / (outs))
#define FS_HOPPER_ROWS_GROUPS(size, outs, tiles) (FS_HOPPER_ROWS_WIDTH(outs, tiles) * (int)(size) / 128)
#define FS_HOPPER_ROWS_PITCH(size, outs, tiles) \
    (128 * (FS_HOPPER_ROWS_GROUPS(size, outs, tiles) + ((2 - FS_HOPPER_ROWS_GROUPS(size, outs, tiles)) & 3)))
#define FS_HOPPER_ROWS_STAGE(size, outs, tiles) (FS_HOPPER_ROWS_GROUPS(size, outs, tiles) >= 4 ? 32 : 64)
/* Rows of a tile that one copy brings: as many as a warp has of a stage where they follow each other in both
 * memories. */
#define FS_HOPPER_ROWS_BOX(size, outs, tiles, contiguous) \
    ((contiguous) && FS_HOPPER_ROWS_GROUPS(size, outs, tiles) % 4 == 2 \
         ? FS_HOPPER_ROWS_STAGE(size, outs, tiles) / 4 : 1)
/* Sets of 2 `outs` panels, the ring, two mbarriers for each of them; and then `outs` parts of 48 bytes (tile.cuh) for
 * each of the last pieces, if there are many.  A warp that begins to make S for a piece has made the last but 4 / outs
 * sets before it, so those who multiply have read the last but 4 / outs + sets, and a piece has at least one set: the
 * parts of one more are kept. */
#define FS_HOPPER_ROWS_AHEAD(outs, sets, many) ((many) ? 4 / (outs) + (sets) + 1 : 1)
#define FS_HOPPER_ROWS_PARTS(size, outs, tiles, stages, sets) \
    ((sets) * (outs) * 16384 + \
     (stages) * FS_HOPPER_ROWS_STAGE(size, outs, tiles) * FS_HOPPER_ROWS_PITCH(size, outs, tiles) + \
     16 * ((stages) + (sets)))
#define FS_HOPPER_ROWS_SHARED(size, outs, tiles, stages, sets, many) \
    (FS_HOPPER_ROWS_PARTS(size, outs, tiles, stages, sets) + FS_HOPPER_ROWS_AHEAD(outs, sets, many) * 48 * (outs))

/* half_rows.cu: element type, nonzeros of a slot, places of units, warps that prepare, groups that multiply, thread
 * blocks of a cluster.  H200, f16, 16384 x 1024, 2026-11-16, on top of 4d6ab92, in us, by places and warps that
 * prepare: k = 1024 4,2 14.6, 6,2 15.1, 6,3 15.9, 6,1 17.4; k = 512 8,4 13.5, 12,4 13.9, 10,5 14.0, 9,3 14.6, 12,3 and
 * 12,6 14.7; k = 256 8,4 14.1, 10,5 14.8, 9,3 and 8,8 15.1, 10,2 17.8; k = 64 9,3 14.4, 8,4 14.6, 10,5 15.2, 8,2 16.4,
 * 10,2 17.0.  So 128 KB of rows on their way to a processor are enough, and where rows are not dealt (k = 64) three
 * warps keep up. */
#define FS_HALF_ROWS_OF(X, T, dtype, nonzeros) \
    X(T, dtype, nonzeros, 4, 2, 1, 1) \
    X(T, dtype, nonzeros, 8, 4, 2, 1) \
    X(T, dtype, nonzeros, 8, 4, 2, 2) \
    X(T, dtype, nonzeros, 9, 3, 2, 6) \
    X(T, dtype, nonzeros, 4, 2, 1, 7)
#ifdef FS_FEW_INSTANCES
#define FS_HALF_ROWS(X) FS_HALF_ROWS_OF(X, __half, FS_F16, 4)
#else
#define FS_HALF_ROWS(X) FS_HALF_ROWS_OF(X, __half, FS_F16, 4) FS_HALF_ROWS_OF(X, __nv_bfloat16, FS_BF16, 4)
#endif
enum { FS_HALF_ROWS_COUNT = 0 FS_HALF_ROWS(FS_COUNT_ONE) };
/* Columns of a tile, slots of a unit, threads of a group. */
enum { FS_HALF_ROWS_COLUMNS = 64, FS_HALF_ROWS_UNIT = 128, FS_HALF_ROWS_GROUP = 128 };
/* Thread blocks of a processor. */
#define FS_HALF_ROWS_RESIDENT(places) ((places) <= 6 ? 2 : 1)
/* Rows and codes of a place and its three mbarriers; sums that two groups leave for each other; quarters of eight rows
 * of sums from every other thread block of a cluster, and eight mbarriers for them. */
#define FS_HALF_ROWS_SHARED(nonzeros, places, groups, cluster) \
    ((places) * (FS_HALF_ROWS_UNIT * 2 * (FS_HALF_ROWS_COLUMNS + (nonzeros)) + 24) + ((groups) > 1 ? 16384 : 0) + \
     ((cluster) - 1) * ((32 + (cluster) - 1) / (cluster)) * 512 + ((cluster) > 1 ? 64 : 0))

/* listed_rows.cu: element type, permutations together. */
#ifdef FS_FEW_INSTANCES
#define FS_LISTED_ROWS(X) X(float, FS_F32, 1)
#else
#define FS_LISTED_ROWS(X) X(float, FS_F32, 1) X(float, FS_F32, 2) X(float, FS_F32, 4)
#endif
enum { FS_LISTED_ROWS_COUNT = 0 FS_LISTED_ROWS(FS_COUNT_ONE) };
/* Warps that add, and that list; rows of a stage, bytes of each, and rows that one copy brings where they follow each
 * other.  (H200, kappa 4: eight warps that list make no difference.) */
enum {
    FS_LISTED_ROWS_ADDERS = 16, FS_LISTED_ROWS_LISTERS = 4,
    FS_LISTED_ROWS_THREADS = 32 * (4 + FS_LISTED_ROWS_LISTERS + FS_LISTED_ROWS_ADDERS),
    FS_LISTED_ROWS_STAGE = 128, FS_LISTED_ROWS_STAGES = 3, FS_LISTED_ROWS_BYTES = 512,
    FS_LISTED_ROWS_BOX = FS_LISTED_ROWS_STAGE / 4
};
/* Bytes of a stage's lists, at most four nonzeros a row and one entry more; of the numbers where a block's lists begin;
 * of both of them; and of everything: stages, lists, a mask for each row of a block of every warp that lists, four
 * parts of 48 bytes (tile.cuh), two mbarriers a stage. */
enum {
    FS_LISTED_ROWS_ENTRIES = 2 * 4 * FS_LISTED_ROWS_STAGE + 16, FS_LISTED_ROWS_BEGINS = 2 * 64 + 16,
    FS_LISTED_ROWS_LISTS = FS_LISTED_ROWS_ENTRIES + 4 * FS_LISTED_ROWS_BEGINS,
    FS_LISTED_ROWS_SHARED =
        FS_LISTED_ROWS_STAGES * (FS_LISTED_ROWS_STAGE * FS_LISTED_ROWS_BYTES + FS_LISTED_ROWS_LISTS + 16) +
        FS_LISTED_ROWS_LISTERS * 64 * 16 + 4 * 48
};

/* hopper_lines.cu: element type, interleave, samples of a thread block, steps in flight, panels of S. */
#ifdef FS_FEW_INSTANCES
#define FS_HOPPER_LINES(X) X(float, FS_F32, 1, 128, 6, 4) X(float, FS_F32, 16, 64, 3, 4)
#else
#define FS_HOPPER_LINES_OF(X, T, dtype, stages, spread, panels) \
    X(T, dtype, 1, 128, stages, panels) \
    X(T, dtype, 1, 64, stages, panels) \
    X(T, dtype, 4, 128, stages, panels) \
    X(T, dtype, 4, 64, stages, panels) \
    X(T, dtype, 8, 64, stages, panels) \
    X(T, dtype, 16, 64, spread, panels)
#define FS_HOPPER_LINES(X) \
    FS_HOPPER_LINES_OF(X, float, FS_F32, 6, 3, 4) FS_HOPPER_LINES_OF(X, __half, FS_F16, 10, 10, 8) \
    FS_HOPPER_LINES_OF(X, __nv_bfloat16, FS_BF16, 10, 10, 8)
#endif
enum { FS_HOPPER_LINES_COUNT = 0 FS_HOPPER_LINES(FS_COUNT_ONE) };
/* Whether lines come by a tensor map: those of 128 bytes. */
#define FS_HOPPER_LINES_BOXES(size) ((size) == 4)
/* Thread blocks that are a cluster and get the same lines: those that make the halves of 16 blocks. */
#define FS_HOPPER_LINES_CLUSTER(size, c) (FS_HOPPER_LINES_BOXES(size) && (c) == 16 ? 2 : 1)
/* Two warpgroups multiply.  One more prepares, or two where they copy 16 bytes at a time.  On an H200 (2026-11-15,
 * between 93f2913 and 2a3de1a, f32 copied so, k = 1024) 512 samples of 131072 took 80 to 82 us with six warps that
 * copy and 81 with two; but 64 samples of 1048576 took 87 against 79, and interleave 16 took 131 against 113, where the
 * warps that make S have too few registers then. */
#define FS_HOPPER_LINES_THREADS(size, c, samples) \
    (!FS_HOPPER_LINES_BOXES(size) && (c) == 1 && (samples) == 128 ? 512 : 384)
/* Panels of S, the ring, two mbarriers for each of them and one more, masks. */
#define FS_HOPPER_LINES_SHARED(size, c, stages, panels) \
    ((panels) * 8192 + (stages) * FS_HOPPER_LINES_CLUSTER(size, c) * 8192 * (int)(size) + \
     16 * ((stages) + (panels)) + 8 + 8 * (stages))

/* direct.cu: element type. */
#ifdef FS_FEW_INSTANCES
#define FS_DIRECT(X) X(float, FS_F32)
#else
#define FS_DIRECT(X) X(float, FS_F32) X(__half, FS_F16) X(__nv_bfloat16, FS_BF16)
#endif
enum { FS_DIRECT_COUNT = 0 FS_DIRECT(FS_COUNT_ONE) };
/* Threads, each of which makes a slot of a chunk; samples of a thread block; panels of S (64 slots) and where the rows
 * are.  (H200, 7338b99, batches of 512, masks of 4 k, k = 1024 to 4096: 32 and 128 samples made no difference beyond
 * 5 %.  Two chunks of S, made while the elements of the first 32 slots are on their way, took 1.03 to 1.06 times as
 * long.) */
enum {
    FS_DIRECT_THREADS = 256, FS_DIRECT_SAMPLES = 64,
    FS_DIRECT_SHARED = FS_DIRECT_THREADS / 64 * 8192 + 8 * FS_DIRECT_THREADS
};

/* direct.cu, products of rows: element type, samples of a thread block. */
#define FS_DIRECT_PRODUCTS(X) X(float, FS_DIRECT_SAMPLES) X(float, FS_DIRECT_SAMPLES / 2)
enum { FS_DIRECT_PRODUCTS_COUNT = 0 FS_DIRECT_PRODUCTS(FS_COUNT_ONE) };

/* columns.cu: element type, neighbouring columns of a thread, nonzeros of a slot (0: any number). */
#ifdef FS_FEW_INSTANCES
#define FS_COLUMNS_OF(X, T, dtype) X(T, dtype, 1, 0)
#define FS_COLUMNS_WIDE(X, T, dtype)
#else
#define FS_COLUMNS_OF(X, T, dtype) X(T, dtype, 1, 0) X(T, dtype, 1, 4) X(T, dtype, 2, 0) X(T, dtype, 2, 4)
#define FS_COLUMNS_WIDE(X, T, dtype) X(T, dtype, 4, 0) X(T, dtype, 4, 4)
#endif
#define FS_COLUMNS(X) \
    FS_COLUMNS_OF(X, float, FS_F32) FS_COLUMNS_WIDE(X, float, FS_F32) \
    FS_COLUMNS_OF(X, double, FS_F64) \
    FS_COLUMNS_OF(X, __half, FS_F16) FS_COLUMNS_WIDE(X, __half, FS_F16) \
    FS_COLUMNS_OF(X, __nv_bfloat16, FS_BF16) FS_COLUMNS_WIDE(X, __nv_bfloat16, FS_BF16)
enum { FS_COLUMNS_COUNT = 0 FS_COLUMNS(FS_COUNT_ONE) };
/* Bytes before the tables of a chunk; at most so many permutations together, loads in flight. */
enum { FS_COLUMNS_HEAD = 16, FS_COLUMNS_GROUP = 16, FS_COLUMNS_UNROLL = 8 };

/* narrow.cu: element type, nonzeros of a slot (4: in four parts of a power of two of rows,
 * alike in all blocks; 0: any). */
#ifdef FS_FEW_INSTANCES
#define FS_NARROW_OF(X, T, dtype) X(T, dtype, 0)
#else
#define FS_NARROW_OF(X, T, dtype) X(T, dtype, 0) X(T, dtype, 4)
#endif
#define FS_NARROW(X) \
    FS_NARROW_OF(X, float, FS_F32) FS_NARROW_OF(X, double, FS_F64) FS_NARROW_OF(X, __half, FS_F16) \
    FS_NARROW_OF(X, __nv_bfloat16, FS_BF16)
enum { FS_NARROW_COUNT = 0 FS_NARROW(FS_COUNT_ONE) };
/* At most so many warps, rows of a block, columns and blocks; slots of a lane at a time. */
enum {
    FS_NARROW_WARPS = 16, FS_NARROW_HEIGHT = 64, FS_NARROW_COLUMNS = 32, FS_NARROW_BLOCKS = 1 << 20,
    FS_NARROW_UNROLL = 4
};
/* The sums of every warp, bytes of a sum each; two chunks of rounds: `pitch` slots of a row
 * of A and its words, and a turn. */
#define FS_NARROW_SHARED(warps, sum, rounds, pitch, row, words) \
    ((int64_t)(warps) * FS_NARROW_HEIGHT * 32 * (sum) + 2 * (int64_t)(rounds) * ((pitch) * ((row) + 4 * (words)) + 4))

/* tall.cu: element type, neighbouring columns of a thread, nonzeros of a slot, chunks of the ring, warps. */
#ifdef FS_FEW_INSTANCES
#define FS_TALL(X) X(float, FS_F32, 2, 4, 2, 16)
#else
/* H200, 2026-11-16, on top of 9c3528b, 16777216 rows, k = 1024, s = 4: 16 columns take 458 us with a ring of two
 * chunks, 515 with four, and two tiles of one column a thread 653; four columns a thread, 8 warps, make 32 columns in
 * 983. */
#define FS_TALL_FLOAT(X, nonzeros) X(float, FS_F32, 1, nonzeros, 2, 16) X(float, FS_F32, 2, nonzeros, 2, 16)
#define FS_TALL(X) \
    FS_TALL_FLOAT(X, 1) FS_TALL_FLOAT(X, 2) FS_TALL_FLOAT(X, 4) FS_TALL_FLOAT(X, 8) \
    X(__half, FS_F16, 2, 4, 4, 16) X(__nv_bfloat16, FS_BF16, 2, 4, 4, 16)
#endif
enum { FS_TALL_COUNT = 0 FS_TALL(FS_COUNT_ONE) };
/* Rounds of a span, and of the spans whose turns and words are kept; words from block to block; rows of a block; most
 * columns and blocks. */
enum {
    FS_TALL_SPAN = 256, FS_TALL_KEPT = 4 * FS_TALL_SPAN, FS_TALL_PITCH = FS_TALL_KEPT + 4, FS_TALL_HEIGHT = 64,
    FS_TALL_COLUMNS = 48, FS_TALL_BLOCKS = 1 << 20
};
/* Bytes of a warp's ring of chunks of 32 slots, where its sums are in the end; and of everything: turns, and of every
 * warp its ring, words, places of 32 slots, and a part (tile.cuh). */
#define FS_TALL_RING(size, vector, stages) \
    ((stages) * (int)(size) < 8 ? 2048 * (vector) : 256 * (stages) * (vector) * (int)(size))
#define FS_TALL_SHARED(size, vector, stages, warps) \
    (4 * FS_TALL_KEPT + (warps) * (FS_TALL_RING(size, vector, stages) + 4 * FS_TALL_PITCH + 128 + 48))

extern const void *const fs_hopper_rows_kernels[], *const fs_hopper_lines_kernels[], *const fs_tensor_rows_kernels[],
    *const fs_columns_kernels[], *const fs_narrow_kernels[], *const fs_listed_rows_kernels[],
    *const fs_direct_kernels[], *const fs_half_rows_kernels[], *const fs_direct_products_kernels[],
    *const fs_tall_kernels[];

#ifdef __cplusplus
}
#endif

#endif
