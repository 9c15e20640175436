/* srht.h - plans of products with an SRHT (families/srht.cu, families/srht_sampled.cu). */
#ifndef FSI_CUDA_PLAN_SRHT_H
#define FSI_CUDA_PLAN_SRHT_H

#include "cuda/plan/traits.h"
#include "def/srht.h"
#include "flashsketch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* srht_sampled.cu: rows of a segment, which a thread block transforms at once; bits of the tile rows of srht.cu, half of
 * them in each of two rounds, and bytes of its large tile. */
enum { FSI_SRHT_SEGMENT = 1024, FSI_SRHT_SMALL_BITS = 8, FSI_SRHT_LARGE_BITS = 10 };
enum { FSI_SRHT_LARGE_BYTES = (1 << FSI_SRHT_LARGE_BITS) * (64 + 2 * 4) };
/* Rows of Y of a thread block of srht_sampled.cu, by the bytes of a sum. */
#define FSI_SRHT_SAMPLES(sum_bytes) (32 * ((sum_bytes) == 8 ? 16 : 32))

/* Whether S A is left to srht_sampled.cu: few rows of Y. Every FSI_SRHT_SAMPLES rows of Y read and transform A once
 * more; below one segment srht.cu has a single pass. */
int fsi_srht_is_sampled(const fsi_srht *S, fs_dtype dtype);

/* Segments of a slice of srht_sampled.cu: `segments` in all, `blocks` thread blocks of a slice, `per_processor` of them
 * on an SM, partial-sum buffers of `partial` bytes. */
int64_t fsi_srht_slice_length(const fsi_gpu_traits *gpu, int64_t segments, int64_t blocks, int per_processor,
                              int64_t partial);

/* srht.cu: passes over bits of the row number, tiles of 2^tile_bits rows, and panels of columns between the passes. */
typedef struct fsi_srht_plan {
    int bits, tile_bits, passes;
    int buffers;           /* panels in memory at once: a ring of one for each pass, or 1 */
    int64_t width, panels; /* columns of a panel, and how many panels */
} fsi_srht_plan;
fsi_srht_plan fsi_choose_srht(const fsi_srht *S, int64_t cols, int64_t sum_bytes, const fsi_gpu_traits *gpu);

#ifdef __cplusplus
}
#endif

#endif
