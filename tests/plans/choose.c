/* choose.c - properties of the CUDA backend's choice: which kernel runs, and that its plan fits the GPU. */
#include <inttypes.h>
#include <string.h>

#include "plans.h"
#include "cuda/blockperm/mma_gather_instances.h"
#include "cuda/plan/local_rows.h"

/* which kernel ----------------------------------------------------------------------------------------------- */

#ifndef FS_FEW_INSTANCES
typedef struct shape {
    int64_t d, n;
} shape;
static const shape matrices[] = {{16384, 1024}, {65536, 1024}, {131072, 512}, {262144, 512}, {65536, 256}, {0, 0}};
static const shape odd_widths[] = {{65536, 1001}, {65536, 258}, {0, 0}};
static const shape samples[] = {{131072, 512}, {1048576, 64}, {0, 0}};
static const shape gradients[] = {{109386, 512}, {109385, 100}, {0, 0}};
static const shape few_samples[] = {{16777216, 2}, {1048576, 15}, {0, 0}};
static const shape narrow[] = {{16777216, 1}, {16777216, 2}, {16777216, 4}, {65536, 8}, {0, 0}};
static const shape few_columns[] = {{16777216, 12}, {16777216, 16}, {65536, 32}, {0, 0}};
static const shape half_a_tile_less[] = {{16777216, 48}, {0, 0}};
static const shape odd_columns[] = {{16777216, 9}, {65536, 31}, {0, 0}};
static const shape nine_columns[] = {{16777216, 9}, {0, 0}};
static const shape narrow_and_short[] = {{1024, 1}, {16384, 4}, {8000, 16}, {0, 0}};
static const shape one_tile[] = {{65536, 96}, {65536, 128}, {0, 0}};
static const shape half_a_tile[] = {{16777216, 32}, {16777216, 64}, {0, 0}};
static const shape square[] = {{8192, 512}, {12288, 1024}, {0, 0}};
static const shape ragged[] = {{65536, 1000}, {65536, 260}, {65536, 132}, {0, 0}};
static const shape ragged_tile[] = {{65536, 100}, {65536, 68}, {0, 0}};
static const int64_t usual[] = {64, 256, 512, 1024, 2048, 4096, 0}, with_kappa[] = {256, 1024, 4096, 0},
                     uneven[] = {1000, 1500, 0};
static const int64_t tall[] = {4096, 0};
static const shape small_matrix[] = {{16384, 1024}, {0, 0}}, wide_matrix[] = {{65536, 1024}, {0, 0}};
static const shape tall_matrices[] = {{131072, 512}, {262144, 512}, {0, 0}}, tall_matrix[] = {{131072, 512}, {0, 0}},
                   taller_matrix[] = {{262144, 512}, {0, 0}};
static const int64_t to_1024[] = {64, 256, 512, 1024, 0}, from_2048[] = {2048, 4096, 0},
                     to_2048[] = {512, 1024, 2048, 0}, only_256[] = {256, 0}, only_1024[] = {1024, 0},
                     from_512[] = {512, 1024, 0}, ends[] = {64, 4096, 0};

enum { OPEN = -1 };

/* One line: a GPU, matrices, a sketch, and the kernel that must be chosen for them. */
static const struct bar {
    int gpu;
    memory memory;
    fs_dtype dtype;
    fs_precision precision;
    int64_t M, kappa, s; /* M = 0: blocks of 64 rows; OPEN: the default */
    fs_shuffle shuffle;
    int64_t interleave; /* 0: the default */
    const shape *shapes;
    const int64_t *k;
    fsi_kernel_id kernel;
} bars[] = {
    {H200, PACKED, FS_F32, FULL, 0, 1, 1, NONE, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 1, SHUFFLED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, NONE, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 8, SHUFFLED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FAST, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, GROUPED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    /* Two-byte elements: narrow tiles where they are as many as SMs, or twice or half as many, or a sixth, or in
     * smaller matrices a quarter; wide ones elsewhere, and for other nonzeros and blocks of other heights. */
    {H200, PACKED, FS_F16, FULL, 0, 1, 4, SHUFFLED, 0, small_matrix, to_1024, FSI_KERNEL_WGMMA_ROWS_16BIT},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 4, NONE, 0, small_matrix, to_1024, FSI_KERNEL_WGMMA_ROWS_16BIT},
    {H200, PADDED, FS_BF16, FULL, 0, 1, 4, SHUFFLED, 0, small_matrix, to_1024, FSI_KERNEL_WGMMA_ROWS_16BIT},
    {H200, PACKED, FS_F16, FULL, 0, 1, 4, SHUFFLED, 0, small_matrix, from_2048, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F16, FULL, 0, 1, 4, SHUFFLED, 0, wide_matrix, to_1024, FSI_KERNEL_WGMMA_ROWS_16BIT},
    {H200, PACKED, FS_F16, FULL, 0, 1, 4, SHUFFLED, 0, wide_matrix, from_2048, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 4, SHUFFLED, 0, tall_matrices, to_2048, FSI_KERNEL_WGMMA_ROWS_16BIT},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 4, SHUFFLED, 0, tall_matrix, only_256, FSI_KERNEL_WGMMA_ROWS_16BIT},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 4, SHUFFLED, 0, taller_matrix, only_256, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 4, SHUFFLED, 0, tall_matrices, ends, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 4, GROUPED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 8, SHUFFLED, 0, small_matrix, to_1024, FSI_KERNEL_WGMMA_ROWS_16BIT},
    {H200, PACKED, FS_F16, FULL, 0, 1, 8, SHUFFLED, 0, wide_matrix, from_2048, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 2, SHUFFLED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F16, FULL, 0, 1, 4, SHUFFLED, 0, matrices, uneven, FSI_KERNEL_WGMMA_ROWS},
    {H200, PADDED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    /* No tensor map has a negative stride, nor groups of 128 bytes out of fewer columns than a tile has: chunks do. */
    {H200, BACKWARD, FS_BF16, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    /* Floats of short sums are cut exactly. */
    {H200, PACKED, FS_F32, FULL, 0, 1, 1, SHUFFLED, 0, square, tall, FSI_KERNEL_MMA_ROWS},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 1, SHUFFLED, 0, square, tall, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, ragged, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, ragged_tile, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 4, 8, SHUFFLED, 0, matrices, with_kappa, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 3, 4, SHUFFLED, 0, matrices, with_kappa, FSI_KERNEL_WGMMA_ROWS},
    /* At most four nonzeros of several permutations are added; more, or those of words that may be drawn again, and
     * two-byte elements, are multiplied. */
    {H200, PACKED, FS_F32, FULL, 0, 2, 2, NONE, 0, matrices, with_kappa, FSI_KERNEL_GATHER_ROWS_SIMT},
    {H200, PACKED, FS_F32, FULL, 0, 4, 1, NONE, 0, matrices, with_kappa, FSI_KERNEL_GATHER_ROWS_SIMT},
    {H200, PACKED, FS_F32, FULL, 0, 4, 1, SHUFFLED, 0, matrices, with_kappa, FSI_KERNEL_GATHER_ROWS_SIMT},
    {H200, PACKED, FS_F32, FULL, 0, 2, 1, SHUFFLED, 0, ragged, with_kappa, FSI_KERNEL_GATHER_ROWS_SIMT},
    {H200, PACKED, FS_F32, FULL, 0, 2, 3, NONE, 0, matrices, with_kappa, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 2, 2, NONE, 0, matrices, uneven, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 2, 2, GROUPED, 0, matrices, with_kappa, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_BF16, FULL, 0, 2, 2, NONE, 0, matrices, with_kappa, FSI_KERNEL_WGMMA_ROWS},
    /* Blocks of two output tiles, by default: the tiles share a read of A. */
    {H200, PACKED, FS_F32, FULL, OPEN, 1, 8, SHUFFLED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    /* Few nonzeros are added, where waves of thread blocks are many. */
    {H200, PACKED, FS_F32, FULL, OPEN, 1, 4, NONE, 0, small_matrix, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, OPEN, 1, 4, NONE, 0, tall_matrices, with_kappa, FSI_KERNEL_ROTATE_ROWS_SIMT},
    {H200, PACKED, FS_F32, FULL, OPEN, 1, 4, SHUFFLED, 0, wide_matrix, with_kappa, FSI_KERNEL_ROTATE_ROWS_SIMT},
    {H200, PACKED, FS_F32, FULL, OPEN, 2, 4, SHUFFLED, 0, tall_matrices, with_kappa, FSI_KERNEL_ROTATE_ROWS_SIMT},
    {H200, PACKED, FS_F32, FULL, OPEN, 1, 4, SHUFFLED, 0, odd_widths, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, SHIFTED, FS_F32, FULL, OPEN, 1, 8, SHUFFLED, 0, odd_widths, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, OPEN, 1, 8, SHUFFLED, 0, matrices, uneven, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F16, FULL, OPEN, 1, 8, SHUFFLED, 0, small_matrix, from_512, FSI_KERNEL_WGMMA_ROWS_16BIT},
    {H200, PACKED, FS_BF16, FULL, OPEN, 1, 4, SHUFFLED, 0, tall_matrices, only_1024, FSI_KERNEL_WGMMA_ROWS_16BIT},
    {H200, PACKED, FS_F32, FULL, OPEN, 1, 8, SHUFFLED, 0, few_columns, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, PACKED, FS_F32, FULL, OPEN, 1, 8, SHUFFLED, 0, narrow, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, PACKED, FS_F64, FULL, OPEN, 1, 8, SHUFFLED, 0, matrices, usual, FSI_KERNEL_ROTATE_ROWS_SIMT},
    {H200, SHIFTED, FS_F64, FULL, OPEN, 1, 8, SHUFFLED, 0, odd_widths, usual, FSI_KERNEL_ROTATE_ROWS_SIMT},
    {A100, PACKED, FS_F64, FULL, OPEN, 1, 8, SHUFFLED, 0, matrices, usual, FSI_KERNEL_SIMT_GENERIC},
    {H200, BATCH, FS_F32, FULL, OPEN, 1, 8, SHUFFLED, 0, samples, with_kappa, FSI_KERNEL_MMA_GATHER},
    {A100, PACKED, FS_F32, FULL, OPEN, 1, 8, SHUFFLED, 0, matrices, usual, FSI_KERNEL_MMA_ROWS},
    /* Rows that end within 16 bytes, rows that are not aligned at all, and elements that are no neighbours. */
    {H200, PADDED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, odd_widths, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, odd_widths, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, SHIFTED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, SHIFTED, FS_BF16, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, ODD, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, SPREAD, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_SIMT_GENERIC},
    {H200, PACKED, FS_F64, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_ROTATE_ROWS_SIMT},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, one_tile, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, half_a_tile, uneven, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, half_a_tile_less, usual, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 8, SHUFFLED, 0, half_a_tile + 1, uneven, FSI_KERNEL_WGMMA_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 1, NONE, 0, few_columns, usual, FSI_KERNEL_MMA_SKINNY},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, few_columns, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, PACKED, FS_F32, FULL, 0, 1, 8, SHUFFLED, 0, few_columns, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 4, SHUFFLED, 0, few_columns + 1, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 8, SHUFFLED, 0, few_columns + 1, usual, FSI_KERNEL_MMA_SKINNY},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, nine_columns, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, odd_columns + 1, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {A100, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, few_columns, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    /* Columns that are not neighbours, or not two of them one copy, nonzeros in slices of other sizes. */
    {H200, SPREAD, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, odd_columns, usual, FSI_KERNEL_SIMT_SKINNY},
    {H200, SHIFTED, FS_F16, FULL, 0, 1, 4, SHUFFLED, 0, nine_columns, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, SHIFTED, FS_F16, FULL, 0, 1, 4, SHUFFLED, 0, odd_columns + 1, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, PACKED, FS_F32, FULL, 0, 1, 3, SHUFFLED, 0, nine_columns, usual, FSI_KERNEL_SIMT_SKINNY},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, nine_columns, uneven, FSI_KERNEL_SIMT_SKINNY},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, narrow, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, NONE, 0, narrow, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, PACKED, FS_F32, FULL, 0, 1, 8, SHUFFLED, 0, narrow, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, PACKED, FS_F64, FULL, 0, 1, 4, SHUFFLED, 0, narrow, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 4, SHUFFLED, 0, narrow, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, SHIFTED, FS_F16, FULL, 0, 1, 4, SHUFFLED, 0, narrow, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {H200, SPREAD, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, narrow + 1, usual, FSI_KERNEL_SIMT_SKINNY},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, narrow + 1, usual, FSI_KERNEL_SIMT_SKINNY},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, GROUPED, 0, narrow, with_kappa, FSI_KERNEL_SIMT_GENERIC},
    {H200, PACKED, FS_F32, FULL, 0, 2, 2, SHUFFLED, 0, narrow, with_kappa, FSI_KERNEL_SIMT_GENERIC},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, narrow_and_short, usual, FSI_KERNEL_SIMT_GENERIC},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, GROUPED, 1, samples, with_kappa, FSI_KERNEL_WGMMA_GROUPS},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, GROUPED, 4, samples, with_kappa, FSI_KERNEL_WGMMA_GROUPS},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, GROUPED, 0, samples, with_kappa, FSI_KERNEL_WGMMA_GROUPS},
    {H200, BATCH, FS_F32, FAST, 0, 1, 4, GROUPED, 0, samples, with_kappa, FSI_KERNEL_WGMMA_GROUPS},
    {H200, BATCH, FS_F16, FULL, 0, 1, 4, GROUPED, 1, samples, with_kappa, FSI_KERNEL_WGMMA_GROUPS},
    {H200, BATCH, FS_BF16, FULL, 0, 1, 4, GROUPED, 4, samples, with_kappa, FSI_KERNEL_WGMMA_GROUPS},
    {H200, BATCH, FS_BF16, FULL, 0, 1, 4, GROUPED, 0, samples, with_kappa, FSI_KERNEL_WGMMA_GROUPS},
    {H200, BATCH, FS_F64, FULL, 0, 1, 4, GROUPED, 1, samples, with_kappa, FSI_KERNEL_SIMT_GENERIC},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, GROUPED, 0, few_samples, with_kappa, FSI_KERNEL_SIMT_GENERIC},
    {H200, BATCH, FS_F32, FULL, 0, 2, 4, GROUPED, 0, samples, with_kappa, FSI_KERNEL_MMA_GATHER},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, samples, with_kappa, FSI_KERNEL_MMA_GATHER},
    {B200, BATCH, FS_F32, FULL, 0, 1, 4, GROUPED, 0, samples, with_kappa, FSI_KERNEL_MMA_GATHER},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, GROUPED, 1, gradients, with_kappa, FSI_KERNEL_MMA_GATHER},
    {H200, BATCH_SHIFTED, FS_F32, FULL, 0, 1, 4, GROUPED, 0, samples, with_kappa, FSI_KERNEL_MMA_GATHER},
    {H200, BATCH_SHIFTED, FS_F16, FULL, 0, 1, 4, GROUPED, 1, samples, with_kappa, FSI_KERNEL_MMA_GATHER},
    {H200, BATCH, FS_F16, FULL, 0, 1, 4, GROUPED, 1, gradients, with_kappa, FSI_KERNEL_MMA_GATHER},
    /* Tensor maps take samples of any length; 16 bytes at a time do not. */
    {H200, BATCH_PADDED, FS_F32, FULL, 0, 1, 4, GROUPED, 1, gradients, with_kappa, FSI_KERNEL_WGMMA_GROUPS},
    {H200, BATCH_PADDED, FS_F32, FULL, 0, 1, 4, GROUPED, 16, gradients, tall, FSI_KERNEL_WGMMA_GROUPS},
    {H200, BATCH_PADDED, FS_F16, FULL, 0, 1, 4, GROUPED, 16, gradients, tall, FSI_KERNEL_MMA_GATHER},
    {H200, PACKED, FS_F32, FULL, 1, 1, 4, NONE, 0, matrices, tall, FSI_KERNEL_SORTED_NONZEROS},
    {H200, PACKED, FS_F32, FULL, 1, 1, 1, NONE, 0, matrices, tall, FSI_KERNEL_SORTED_NONZEROS},
    {H200, PACKED, FS_F64, FULL, 1, 1, 4, NONE, 0, matrices, tall, FSI_KERNEL_SORTED_NONZEROS},
    {A100, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_MMA_ROWS},
    {A100, PACKED, FS_F32, FAST, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_MMA_ROWS},
    {A100, PACKED, FS_BF16, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_MMA_ROWS},
    {A100, PACKED, FS_F16, FULL, 0, 1, 4, NONE, 0, matrices, usual, FSI_KERNEL_MMA_ROWS},
    {A100, SHIFTED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_SIMT_GENERIC},
    {A100, PACKED, FS_F64, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_SIMT_GENERIC},
    {A100, PACKED, FS_F32, FULL, 1, 1, 4, NONE, 0, matrices, tall, FSI_KERNEL_SORTED_NONZEROS},
    {B200, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_MMA_ROWS},
    {B200, PACKED, FS_BF16, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_MMA_ROWS},
    {RTX_5090, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_MMA_ROWS},
    {RTX_5090, PACKED, FS_F16, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_MMA_ROWS},
    {T4, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_SIMT_GENERIC},
    {T4, PACKED, FS_F16, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_SIMT_GENERIC},
    {T4, PACKED, FS_F64, FULL, 0, 1, 4, SHUFFLED, 0, matrices, usual, FSI_KERNEL_SIMT_GENERIC},
    {A100, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, narrow, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {A100, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, half_a_tile + 1, uneven, FSI_KERNEL_MMA_ROWS},
    {RTX_5090, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, narrow, usual, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {T4, PACKED, FS_F32, FULL, 0, 1, 4, SHUFFLED, 0, narrow + 1, only_1024, FSI_KERNEL_ROTATE_SKINNY_SIMT},
    {T4, BATCH, FS_F32, FULL, 0, 1, 4, GROUPED, 0, samples, with_kappa, FSI_KERNEL_SIMT_GENERIC},
    {T4, PACKED, FS_F32, FULL, 1, 1, 4, NONE, 0, matrices, tall, FSI_KERNEL_SORTED_NONZEROS},
};

static void every_bar_gets_the_kernel_meant_for_it(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(bars); i++)
        for (const shape *A = bars[i].shapes; A->d; A++)
            for (const int64_t *k = bars[i].k; *k; k++) {
                const struct bar *b = &bars[i];
                const int64_t M = b->M == OPEN ? 0 : b->M ? b->M : (*k + 63) / 64;
                const call c = {A->d, *k,   M,    b->kappa, b->s,         b->shuffle, b->interleave,
                                0,    A->d, A->n, b->dtype, b->precision, b->memory};
                const fsi_problem p = problem_of_call(&c);
                const fsi_plan plan = fsi_choose(&p, &gpus[b->gpu].traits, NULL);
                if (plan.kernel != b->kernel)
                    fail_msg("line %d of the bars: %s: %s is meant for it, chosen is %s", i + 1,
                             say_call(&c, &gpus[b->gpu]), fsi_kernel_of(b->kernel)->name, say_plan(&plan));
                expect_fits("chosen", &c, &gpus[b->gpu], &p, &plan);
            }
}

/* Cutting a matrix into slices costs a second pass over their sums: a small matrix, or one of two-byte elements, is cut
 * into narrower tiles instead, a large one of floats is not. */
static void narrow_tiles_are_taken_rather_than_slices(void **state)
{
    (void)state;
    const struct {
        int64_t d, n;
        fs_dtype dtype;
        int64_t width, slices;
    } cases[] = {{16384, 1024, FS_F32, 128, 1},
                 {65536, 1024, FS_F32, 256, 2},
                 {16384, 1024, FS_BF16, 64, 1},
                 {65536, 1024, FS_BF16, 64, 1}};
    for (int i = 0; i < COUNT(cases); i++) {
        const call c = {cases[i].d, 1024,           16,   1,     4, SHUFFLED, 0, 0, cases[i].d,
                        cases[i].n, cases[i].dtype, FULL, PACKED};
        const fsi_problem p = problem_of_call(&c);
        const fsi_plan plan = fsi_choose(&p, &gpus[H200].traits, NULL);
        if (fsi_plan_width(&plan) != cases[i].width || plan.slices != cases[i].slices)
            fail_msg("%s: tiles of %lld columns and %lld slices are meant for it, chosen is %s",
                     say_call(&c, &gpus[H200]), (long long)cases[i].width, (long long)cases[i].slices, say_plan(&plan));
    }
}

/* With two waves of thread blocks no memory is read while the first wave stores its sums. */
static void thread_blocks_are_persistent_where_work_items_outnumber_processors(void **state)
{
    (void)state;
    const fs_dtype types[] = {FS_F32, FS_F16, FS_BF16};
    int persistent = 0, others = 0;
    for (const shape *A = matrices; A->d; A++)
        for (const int64_t *k = usual; *k; k++)
            for (int i = 0; i < COUNT(types); i++) {
                const call c = {A->d, *k, (*k + 63) / 64, 1, 4, SHUFFLED, 0, 0, A->d, A->n, types[i], FULL, PACKED};
                const fsi_problem p = problem_of_call(&c);
                const fsi_plan plan = fsi_choose(&p, &gpus[H200].traits, NULL);
                const int64_t width = fsi_plan_width(&plan), tiles = (A->n + width - 1) / width;
                if (plan.kernel == FSI_KERNEL_WGMMA_ROWS_16BIT) continue;
                const int more = fsi_plan_blocks(&p, &plan) * tiles * plan.slices > gpus[H200].traits.processors;
                if (fsi_plan_is_persistent(&plan) != more)
                    fail_msg("%s: %lld tiles, chosen is %s, whose thread blocks are %s", say_call(&c, &gpus[H200]),
                             (long long)tiles, say_plan(&plan), more ? "not persistent" : "persistent");
                persistent += more, others += !more;
            }
    if (persistent < 6 || others < 6) fail_msg("%d matrices of many work items, %d of few", persistent, others);
}

/* Narrow tiles are faster where all of them run at once and most SMs have one; no sums are left to a second
 * kernel. */
static void narrow_tiles_are_at_work_at_once(void **state)
{
    (void)state;
    int chosen = 0;
    for (int64_t rows = 1024; rows <= 1 << 20; rows *= 2)
        for (int64_t n = 48; n <= 4096; n += 16)
            for (int64_t M = 1; M <= 64; M += M < 8 ? 1 : 4) {
                const call c = {rows, 64 * M, M, 1, 4, SHUFFLED, 0, 0, rows, n, FS_BF16, FULL, PACKED};
                const fsi_problem p = problem_of_call(&c);
                const fsi_plan plan = fsi_choose(&p, &gpus[H200].traits, NULL);
                if (plan.kernel != FSI_KERNEL_WGMMA_ROWS_16BIT) continue;
                const int64_t blocks = M * ((n + 63) / 64) * plan.slices, processors = gpus[H200].traits.processors;
                const int resident = 2 * (plan.shared + 1024) <= gpus[H200].traits.shared_per_processor ? 2 : 1;
                /* the clusters that an H200 holds, by its driver */
                const int64_t fit = plan.cluster == 6 ? 6 * 17 : plan.cluster == 7 ? 7 * 32 : resident * processors;
                if (blocks > fit || 10 * blocks < 7 * resident * processors || fsi_plan_partials(&p, &plan) != 0)
                    fail_msg("%s: %lld thread blocks, %d on a processor: %s", say_call(&c, &gpus[H200]),
                             (long long)blocks, resident, say_plan(&plan));
                chosen++;
            }
    assert_true(chosen > 100);
}
#endif

/* what is chosen ---------------------------------------------------------------------------------------------- */

static void no_block_has_more_local_rows_than_its_problem(void **state)
{
    (void)state;
    call c;
    const gpu_kind *gpu;
    for (int64_t i = 0; sweep(i, &c, &gpu); i += STEP) {
        const fsi_blockperm S = sketch_of_call(&c);
        const fsi_problem p = problem_of_call(&c);
        const int64_t step = S.M / 61 + 1;
        for (int64_t h = 0; h < S.M; h += step) {
            const int64_t local_rows = fsi_local_rows_of(&S, h, c.row0, c.rows).count;
            if (local_rows > p.local_rows)
                fail_msg("%s: block %" PRId64 " has %" PRId64 " local rows, the problem %" PRId64, say_call(&c, NULL),
                         h, local_rows, p.local_rows);
        }
    }
}

static void every_plan_fits(void **state)
{
    (void)state;
    call c;
    const gpu_kind *gpu;
    for (int64_t i = 0; sweep(i, &c, &gpu); i += STEP) {
        const fsi_problem p = problem_of_call(&c);
        const fsi_plan plan = fsi_choose(&p, &gpu->traits, NULL);
        expect_fits("chosen", &c, gpu, &p, &plan);
    }
}

/* The plan of the rules is one of them, unless it is sorted_nonzeros.cu's, which has no other. */
static void every_candidate_fits_and_the_chosen_plan_is_one(void **state)
{
    (void)state;
    call c;
    const gpu_kind *gpu;
    for (int64_t i = 0; sweep(i, &c, &gpu); i += WIDE_STEP) {
        fsi_plan plans[ROOM];
        const fsi_problem p = problem_of_call(&c);
        const fsi_plan chosen = fsi_choose(&p, &gpu->traits, NULL);
        const int count = fsi_choose_candidates(&p, &gpu->traits, plans, ROOM);
        int found = chosen.kernel == FSI_KERNEL_SORTED_NONZEROS;
        if (count >= ROOM) fail_msg("%s: %d candidates, there is no room for more", say_call(&c, gpu), count);
        for (int j = 0; j < count; j++) {
            expect_fits("a candidate", &c, gpu, &p, &plans[j]);
            found |= same_plan(&plans[j], &chosen);
        }
        if (!found)
            fail_msg("%s: none of %d candidates is the plan chosen: %s", say_call(&c, gpu), count, say_plan(&chosen));
    }
}

/* A tensor map has no side of 0: an empty row slice, which scales Y and nothing more, is left to other kernels. */
static void an_empty_row_slice_has_no_tensor_map(void **state)
{
    (void)state;
    const call c = {65536, 1024, 0, 4, 1, SHUFFLED, 0, 5, 0, 1024, FS_F32, FULL, PACKED};
    const fsi_problem p = problem_of_call(&c);
    const fsi_plan plan = fsi_choose(&p, &gpus[H200].traits, NULL);
    if (p.mapped || plan.kernel == FSI_KERNEL_WGMMA_ROWS || plan.kernel == FSI_KERNEL_GATHER_ROWS_SIMT)
        fail_msg("%s: chosen is %s", say_call(&c, &gpus[H200]), say_plan(&plan));
    expect_fits("of nothing", &c, &gpus[H200], &p, &plan);
}

/* Elsewhere gathered rows are copied first. */
static void every_plan_of_gathered_rows_fits(void **state)
{
    (void)state;
    call c;
    const gpu_kind *gpu;
    int64_t plans = 0;
    for (int64_t i = 0; sweep(i, &c, &gpu); i += STEP) {
        fsi_problem p = problem_of_call(&c);
        p.input = FSI_INPUT_GATHERED;
        const fsi_plan plan = fsi_choose(&p, &gpu->traits, NULL);
#ifdef FS_FEW_INSTANCES
        const int there = p.dtype == FS_F32;
#else
        const int there = p.dtype != FS_F64;
#endif
        const int meant = gpu->traits.arch >= 80 && p.tile_rows <= 64 && there;
        if (plan.kernel != (meant ? FSI_KERNEL_MMA_GATHER : FSI_KERNEL_NONE))
            fail_msg("%s: gathered rows: chosen is %s", say_call(&c, gpu), say_plan(&plan));
        if (!meant) continue;
        plans++;
        expect_fits("of gathered rows", &c, gpu, &p, &plan);
    }
    assert_true(plans > 100);
}

/* Factored input is f32; elsewhere the matrix is materialized first.  Tiles are narrow where wide ones would give an
 * SM one thread block at most. */
static void every_plan_of_factored_input_fits(void **state)
{
    (void)state;
    call c;
    const gpu_kind *gpu;
    int64_t plans[FSI_MMA_FACTORED_COUNT] = {0};
    for (int64_t i = 0; sweep(i, &c, &gpu); i += STEP) {
        fsi_problem p = problem_of_call(&c);
        p.input = FSI_INPUT_FACTORED;
        const fsi_plan plan = fsi_choose(&p, &gpu->traits, NULL);
        const int meant = gpu->traits.arch >= 80 && p.tile_rows <= 64 && p.dtype == FS_F32;
        if (plan.kernel != (meant ? FSI_KERNEL_MMA_FACTORED : FSI_KERNEL_NONE))
            fail_msg("%s: factored input: chosen is %s", say_call(&c, gpu), say_plan(&plan));
        if (!meant) continue;
        expect_fits("of factored input", &c, gpu, &p, &plan);
        const int64_t wide = p.M * p.kappa * ((p.n + 63) / 64);
        if (plan.instance == 1 && wide > gpu->traits.processors)
            fail_msg("%s: %s, although wide tiles are %d", say_call(&c, gpu), say_plan(&plan), (int)wide);
        plans[plan.instance]++;
    }
    assert_true(plans[0] > 100 && plans[1] > 100);
}

/* Names are in tuning tables, so they are distinct and do not change. */
static void every_kernel_is_found_by_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < FSI_KERNEL_COUNT; i++) {
        const fsi_kernel_id id = (fsi_kernel_id)(i + 1);
        assert_ptr_equal(fsi_kernel_of(id), fsi_kernels[i]);
        if (fsi_kernel_named(fsi_kernels[i]->name) != id) fail_msg("another kernel is named %s", fsi_kernels[i]->name);
    }
    assert_string_equal(fsi_kernel_of(FSI_KERNEL_WGMMA_ROWS)->name, "wgmma_rows");
    assert_string_equal(fsi_kernel_of(FSI_KERNEL_SIMT_GENERIC)->name, "simt_generic");
    assert_null(fsi_kernel_of(FSI_KERNEL_NONE));
    assert_null(fsi_kernel_of(FSI_KERNEL_END));
    assert_int_equal(fsi_kernel_named("hopper_rows"), FSI_KERNEL_NONE);
}

/* The fallback kernels take every matrix, so every product has a kernel; they refuse other input. */
static void kernels_take_only_their_kinds_of_input(void **state)
{
    (void)state;
    call c;
    const gpu_kind *gpu;
    for (int64_t i = 0; sweep(i, &c, &gpu); i += WIDE_STEP)
        for (int kind = FSI_INPUT_MATRIX; kind <= FSI_INPUT_FACTORED; kind++) {
            fsi_problem p = problem_of_call(&c);
            p.input = (fsi_input_kind)kind;
            for (int k = 0; k < FSI_KERNEL_COUNT; k++) {
                const int fits = fsi_kernel_fits(fsi_kernels[k], &p, &gpu->traits), id = k + 1;
                if (id == FSI_KERNEL_SORTED_NONZEROS || id == FSI_KERNEL_SIMT_GENERIC)
                    assert_int_equal(fits, kind == FSI_INPUT_MATRIX);
                else if (id == FSI_KERNEL_MMA_FACTORED) assert_true(!fits || kind == FSI_INPUT_FACTORED);
                else if (id != FSI_KERNEL_MMA_GATHER) assert_true(!fits || kind == FSI_INPUT_MATRIX);
            }
        }
}

static void candidates_stay_within_their_room(void **state)
{
    (void)state;
    const call c = {65536, 1024, 0, 4, 8, SHUFFLED, 0, 0, 65536, 1024, FS_F32, FULL, PACKED};
    const fsi_problem p = problem_of_call(&c);
    fsi_plan all[ROOM], some[ROOM];
    const int count = fsi_choose_candidates(&p, &gpus[H200].traits, all, ROOM);
    for (int room = 0; room <= count; room++) {
        memset(some, 0xFF, sizeof some);
        const int given = fsi_choose_candidates(&p, &gpus[H200].traits, some, room);
        if (given != room) fail_msg("%d of %d candidates in a room for %d", given, count, room);
        for (int i = 0; i < given; i++) assert_true(same_plan(&some[i], &all[i]));
        if (some[given].slices != -1) fail_msg("a candidate was written past a room for %d", room);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifndef FS_FEW_INSTANCES
        cmocka_unit_test(every_bar_gets_the_kernel_meant_for_it),
        cmocka_unit_test(narrow_tiles_are_taken_rather_than_slices),
        cmocka_unit_test(thread_blocks_are_persistent_where_work_items_outnumber_processors),
        cmocka_unit_test(narrow_tiles_are_at_work_at_once),
#endif
        cmocka_unit_test(no_block_has_more_local_rows_than_its_problem),
        cmocka_unit_test(every_plan_fits),
        cmocka_unit_test(every_candidate_fits_and_the_chosen_plan_is_one),
        cmocka_unit_test(an_empty_row_slice_has_no_tensor_map),
        cmocka_unit_test(every_plan_of_gathered_rows_fits),
        cmocka_unit_test(every_plan_of_factored_input_fits),
        cmocka_unit_test(every_kernel_is_found_by_its_name),
        cmocka_unit_test(kernels_take_only_their_kinds_of_input),
        cmocka_unit_test(candidates_stay_within_their_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
