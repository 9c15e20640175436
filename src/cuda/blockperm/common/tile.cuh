/* tile.cuh - what the kernels that compute a block of Y share: their arguments, and which slice of the work a thread
 * block has.
 *
 * The work is cut into (input block h, columns, slice z of the block's local rows), and by output: an input block feeds
 * kappa output blocks, one for each permutation l, and these are cut into output tiles (plan/output_tiles.h).  A slice stores its sums in Y when there is nothing to add to them, and otherwise in partial-sum
 * buffer z kappa + l - 1 of scratch, a k x n matrix.  Slices that form a cluster of thread blocks add their sums first,
 * and store one partial-sum buffer.  For every l the blocks g with
 * pi_l(g) = h are all of [M], so each partial-sum buffer is written completely and none is ever cleared;
 * split_reduce.cu adds them in a fixed order. */
#ifndef FSI_CUDA_BLOCKPERM_COMMON_TILE_CUH
#define FSI_CUDA_BLOCKPERM_COMMON_TILE_CUH

#include "cuda/runtime/element.cuh"
#include "cuda/families/factored.cuh"
#include "cuda/plan/local_rows.h"
#include "cuda/plan/output_tiles.h"

typedef struct fsi_tile_args {
    fsi_blockperm B;
    int64_t row0, rows, n; /* the row slice of A */
    const void *data;      /* A */
    int64_t row_stride, col_stride;
    const void *list; /* mma_gather.cu: row i of the slice is row list[i] of `all_rows`; NULL elsewhere */
    int64_t all_rows;
    fs_index_type list_type;
    fsi_output out;            /* Y, or partial-sum buffer 0 with factor 1 */
    int64_t partial;           /* bytes from partial-sum buffer to partial-sum buffer; 0: straight to Y */
    fsi_local_rows local_rows; /* of every input block, when shuffled */
    fsi_output_tiles outputs;  /* of an output block */
    int64_t tiles;             /* thread blocks along the columns */
    int64_t blocks;            /* thread blocks in all, or where there are fewer, work items for them */
    int64_t length;            /* local rows of a slice */
    int32_t slices;            /* z = 0 ... slices - 1 */
    int32_t cluster;           /* so many neighbouring slices add their sums among themselves */
    fsi_factors factors;       /* mma_gather.cu: row i of the slice is the product of pair i; elsewhere no pairs */
} fsi_tile_args;

/* Where row i of the row slice is; -1 if the list names a row that does not exist. */
static __device__ __forceinline__ int64_t fsi_source_row(const fsi_tile_args &a, int64_t i)
{
    if (!a.list) return i;
    const int64_t row = fsi_index_at(a.list, a.list_type, i);
    return row >= 0 && row < a.all_rows ? row : -1;
}
/* The value read for such a row: NaN, which reaches the sums that the row would go to. */
static __device__ __forceinline__ float fsi_no_row(void) { return __uint_as_float(0x7FC00000u); }

/* The output block that permutation l = 1 ... kappa sends input block h to. */
static __device__ __forceinline__ uint32_t fsi_output_block(const fsi_blockperm &B, uint32_t h, int l)
{
    uint32_t g = h;
#pragma unroll 1
    for (int i = 0; i < l; i++) g = fsi_wiring_back(&B.wiring, g);
    return g;
}

/* What a thread block works on: columns from `column` on of input block h, local rows first ... first + count - 1, which
 * are slice z, for an output tile: bands band ... bands_end - 1 of the output block of permutation l, which has
 * block_rows rows.  The tile's rows are rows tile_start ... tile_start + tile_rows - 1 of the block and begin at row
 * output_row of Y. */
typedef struct fsi_slice {
    uint32_t h;
    int l, z, block_rows, tile_start, tile_rows;
    int64_t column, first, count, output_row;
    int band, bands_end;
} fsi_slice;

/* The same slice for output tile number `output` of all that its input block feeds: those of permutation 1 first. */
static __device__ __forceinline__ fsi_slice fsi_slice_for(const fsi_tile_args &a, fsi_slice p, int output)
{
    const int tile = output % a.outputs.tiles;
    p.l = 1 + output / a.outputs.tiles;
    const uint32_t g = fsi_output_block(a.B, p.h, p.l);
    p.block_rows = (int)fsi_split_size(&a.B.out, g);
    p.band = tile * a.outputs.bands;
    p.bands_end = min(p.band + a.outputs.bands, (int)a.B.bands);
    const fsi_split *strata = &a.B.strata[p.block_rows > a.B.out.small];
    p.tile_start = (int)fsi_split_start(strata, p.band * a.B.per_band);
    p.tile_rows = p.bands_end == (int)a.B.bands
                      ? p.block_rows - p.tile_start
                      : (int)fsi_split_start(strata, p.bands_end * a.B.per_band) - p.tile_start;
    p.output_row = fsi_split_start(&a.B.out, g) + p.tile_start;
    return p;
}
/* Slice z of block h, columns from `column` on; where it goes is left open. */
static __device__ __forceinline__ fsi_slice fsi_slice_input_at(const fsi_tile_args &a, uint32_t h, int64_t column,
                                                               int z)
{
    fsi_slice p;
    p.h = h;
    p.z = z;
    p.column = column;
    fsi_local_rows all = a.local_rows;
    if (a.B.shuffle == FSI_DEF_NONE) all = fsi_local_rows_of(&a.B, h, a.row0, a.rows);
    const int64_t from = z * a.length, left = all.count - from;
    p.first = all.first + from;
    p.count = left < 0 ? 0 : left < a.length ? left : a.length;
    return p;
}
/* The same with the output tile that it goes to. */
static __device__ __forceinline__ fsi_slice fsi_slice_at(const fsi_tile_args &a, uint32_t h, int output, int64_t column,
                                                         int z)
{
    return fsi_slice_for(a, fsi_slice_input_at(a, h, column, z), output);
}
/* Slice `id`, that of this thread block, for the first of `group` outputs and `ahead` more, in a grid of cluster x
 * ceil(outputs / group) x M x column tiles x (slices / cluster), in this order. */
static __device__ __forceinline__ fsi_slice fsi_slice_of(const fsi_tile_args &a, int group, int width,
                                                         uint32_t id = blockIdx.x, int ahead = 0)
{
    const uint32_t outputs = (uint32_t)a.B.kappa * (uint32_t)a.outputs.tiles, groups = (outputs + group - 1) / group;
    const uint32_t M = (uint32_t)a.B.M, tiles = (uint32_t)a.tiles, rank = id % (uint32_t)a.cluster;
    id /= (uint32_t)a.cluster;
    const int output = (int)(id % groups) * group + ahead;
    id /= groups;
    const uint32_t h = id % M;
    id /= M;
    return fsi_slice_at(a, h, output, (int64_t)(id % tiles) * width, (int)(id / tiles * (uint32_t)a.cluster + rank));
}

/* The same in shared memory, for each of the `group` outputs that the thread block computes together.  One warp
 * computes each: it takes hundreds of instructions, which the other warps are spared.  The caller synchronises. */
static __device__ __forceinline__ void fsi_slices_once(const fsi_tile_args &a, int group, int width, fsi_slice *slices)
{
    const int warp = (int)threadIdx.x >> 5;
    if (warp >= group) return;
    const fsi_slice p = fsi_slice_of(a, group, width, blockIdx.x, warp);
    if ((threadIdx.x & 31) == 0) slices[warp] = p;
}

/* Where the sums of permutation l and slice z, or of its cluster, go. */
static __device__ __forceinline__ fsi_output fsi_partial_sums(const fsi_tile_args &a, int l, int z)
{
    fsi_output out = a.out;
    out.data = (char *)out.data + ((int64_t)(z / a.cluster) * a.B.kappa + l - 1) * a.partial;
    return out;
}

/* The nonzeros of local row u of block h in bands `band` ... `bands_end` - 1, as codes: pitch (row in a stack of `ls` output
 * blocks of `height` rows, counted from the first of the bands), sign in bit 31.  tall[l] says whether block l of the stack
 * is one of the taller ones.  Returns how many. */
static __device__ __forceinline__ int fsi_local_row_codes(const fsi_blockperm &B, int first_l, int ls,
                                                          const uint8_t *tall, int band, int bands_end, uint32_t h,
                                                          int64_t u, uint32_t pitch, uint32_t height, uint32_t *code)
{
    const uint32_t *first = code;
    for (int l = 0; l < ls; l++) {
        const fsi_split strata = B.strata[tall[l]];
        const uint32_t start = (uint32_t)fsi_split_start(&strata, band * B.per_band);
        for (int q = band, t = q * B.per_band; q < bands_end; q++) {
            fsi_draw draw = fsi_blockperm_draw(&B, h, u, first_l + l, q, B.out.small + tall[l]);
            for (int c = fsi_blockperm_count(&B, q); c > 0; c--, t++) {
                const uint32_t next = fsi_blockperm_code(&B, &strata, t, &draw);
                *code++ = (l * height + (next >> 1) - start) * pitch | next << 31;
            }
        }
    }
    return (int)(code - first);
}
/* That table, for the blocks that h feeds by permutations first_l ... first_l + ls - 1; the caller synchronises. */
static __device__ __forceinline__ void fsi_tall_blocks(const fsi_blockperm &B, uint32_t h, int first_l, int ls,
                                                       uint8_t *tall)
{
    for (int l = threadIdx.x; l < ls; l += blockDim.x)
        tall[l] = fsi_split_size(&B.out, fsi_output_block(B, h, first_l + l)) > B.out.small;
}

/* Two neighbours in two bytes each. */
static __device__ __forceinline__ uint32_t fsi_two_halves(fs_dtype dtype, float x, float y)
{
    if (dtype == FS_F16)
        return __half_as_ushort(__float2half_rn(x)) | (uint32_t)__half_as_ushort(__float2half_rn(y)) << 16;
    return __bfloat16_as_ushort(__float2bfloat16_rn(x)) | (uint32_t)__bfloat16_as_ushort(__float2bfloat16_rn(y)) << 16;
}

/* Four neighbouring columns of one row at once where memory allows it; `valid` of them exist. */
static __device__ __forceinline__ void fsi_output_put4(const fsi_output &to, int64_t i, int64_t j, float4 sum,
                                                       int valid)
{
    float *p = (float *)to.data + i * to.row_stride + j;
    if (valid >= 4 && to.dtype == FS_F32 && to.col_stride == 1 && ((uintptr_t)p & 15) == 0) {
        const float f = (float)to.factor;
        float4 y = make_float4(__fmul_rn(f, sum.x), __fmul_rn(f, sum.y), __fmul_rn(f, sum.z), __fmul_rn(f, sum.w));
        if (to.beta != 0.0) {
            const float b = (float)to.beta;
            const float4 old = *(const float4 *)p;
            y.x = __fadd_rn(__fmul_rn(b, old.x), y.x);
            y.y = __fadd_rn(__fmul_rn(b, old.y), y.y);
            y.z = __fadd_rn(__fmul_rn(b, old.z), y.z);
            y.w = __fadd_rn(__fmul_rn(b, old.w), y.w);
        }
        *(float4 *)p = y;
        return;
    }
    uint16_t *h = (uint16_t *)to.data + i * to.row_stride + j;
    if (valid >= 4 && to.dtype != FS_F32 && to.col_stride == 1 && to.beta == 0.0 && ((uintptr_t)h & 7) == 0) {
        const float f = (float)to.factor;
        *(uint2 *)h = make_uint2(fsi_two_halves(to.dtype, __fmul_rn(f, sum.x), __fmul_rn(f, sum.y)),
                                 fsi_two_halves(to.dtype, __fmul_rn(f, sum.z), __fmul_rn(f, sum.w)));
        return;
    }
    if (valid > 0) fsi_output_put(to, i, j, sum.x);
    if (valid > 1) fsi_output_put(to, i, j + 1, sum.y);
    if (valid > 2) fsi_output_put(to, i, j + 2, sum.z);
    if (valid > 3) fsi_output_put(to, i, j + 3, sum.w);
}

#endif
