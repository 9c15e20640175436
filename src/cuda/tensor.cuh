/* tensor.cuh - what the two kernels that multiply by S on the tensor cores share (tensor_rows.cu, hopper_rows.cu).
 *
 * A block of S is a matrix of 0 and +-1, exact in 16 bits.  Columns of A are the M axis of the tensor cores, rows of A the
 * K axis, the at most 64 rows of the block the N axis, so the cost does not depend on s.  A float is cut into three bf16
 * pieces, exactly; bf16 and f16 elements are used as they are. */
#ifndef FS_CUDA_TENSOR_CUH
#define FS_CUDA_TENSOR_CUH

#include "ptx.cuh"
#include "tile.cuh"

namespace {

enum { HEIGHT = 64, STEP = 16, PANEL = 64, PANEL_BYTES = HEIGHT * 128 };

template <class T> struct is_half { enum { value = 0 }; };
template <> struct is_half<__half> { enum { value = 1 }; };

/* A thread's elements of a step: rows q, q + 4, q + 8, q + 12 of 16, 2 TILES neighbouring columns; and their fragments: pairs
 * of rows, two columns for each tile. */
template <int TILES> struct fragment { uint32_t tile[TILES][4]; };

template <int TILES> __device__ __forceinline__ fragment<TILES> top_pieces(const float (&x)[4][2 * TILES])
{
    fragment<TILES> f;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int c = 0; c < 2; c++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                f.tile[t][2 * half + c] = fs_bytes<0x7632>(__float_as_uint(x[2 * half][2 * t + c]),
                                                           __float_as_uint(x[2 * half + 1][2 * t + c]));
    return f;
}
/* What remains of two floats below their top 16 bits, which are the halves of `tops`; exact.  (The low half is shifted up,
 * by the multiplier, and the high half masked: two pipes share the work.) */
__device__ __forceinline__ void keep_rest(float &low, float &high, uint32_t tops)
{
    low -= __uint_as_float(tops << 16);
    high -= __uint_as_float(tops & 0xFFFF0000u);
}
/* Two-byte elements, two columns in a word. */
template <int TILES> __device__ __forceinline__ fragment<TILES> pairs(const uint32_t (&x)[4][TILES])
{
    fragment<TILES> f;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            f.tile[t][2 * half] = fs_bytes<0x5410>(x[2 * half][t], x[2 * half + 1][t]);
            f.tile[t][2 * half + 1] = fs_bytes<0x7632>(x[2 * half][t], x[2 * half + 1][t]);
        }
    return f;
}

/* Neighbouring columns of a row in shared memory. */
__device__ __forceinline__ void load_row(float (&x)[4], uint32_t at)
{
    const float4 y = fs_shared_float4(at);
    x[0] = y.x, x[1] = y.y, x[2] = y.z, x[3] = y.w;
}
__device__ __forceinline__ void load_row(float (&x)[2], uint32_t at)
{
    const float2 y = fs_shared_float2(at);
    x[0] = y.x, x[1] = y.y;
}
__device__ __forceinline__ void load_row(uint32_t (&x)[2], uint32_t at)
{
    const uint2 y = fs_shared_uint2(at);
    x[0] = y.x, x[1] = y.y;
}
__device__ __forceinline__ void load_row(uint32_t (&x)[1], uint32_t at) { x[0] = fs_shared_uint(at); }

/* The pieces of one step's elements, the first of them the largest; rows of the step are ROW_BYTES apart. */
template <class T, int PASSES, int TILES, int ROW_BYTES> struct pieces {
    fragment<TILES> of[1];
    __device__ __forceinline__ void load(uint32_t at)
    {
        uint32_t x[4][TILES];
#pragma unroll
        for (int i = 0; i < 4; i++) load_row(x[i], at + i * 4 * ROW_BYTES);
        of[0] = pairs<TILES>(x);
    }
};
template <int PASSES, int TILES, int ROW_BYTES> struct pieces<float, PASSES, TILES, ROW_BYTES> {
    fragment<TILES> of[PASSES];
    __device__ __forceinline__ void load(uint32_t at)
    {
        float x[4][2 * TILES];
#pragma unroll
        for (int i = 0; i < 4; i++) load_row(x[i], at + i * 4 * ROW_BYTES);
#pragma unroll
        for (int p = 0; p < PASSES; p++) {
            of[p] = top_pieces<TILES>(x);
            if (p + 1 == PASSES) break;
#pragma unroll
            for (int i = 0; i < 4 * TILES; i++)
                keep_rest(x[i & 2][i >> 2 << 1 | (i & 1)], x[(i & 2) + 1][i >> 2 << 1 | (i & 1)], of[p].tile[i >> 2][i & 3]);
        }
    }
};

/* The part with its first slot moved down to a multiple of 4, by as many slots as are returned. */
__device__ __forceinline__ int align_slots(fs_part &p)
{
    const int lead = p.count > 0 ? (int)(p.first & 3) : 0;
    p.first -= lead;
    p.count += lead;
    return lead;
}

/* Columns (-1: none) and first words of four neighbouring slots, slot ... slot + 3, of which those from `lead` on belong to the
 * part; p.first + slot is a multiple of 4.  Made together: random words come four at a time, and chains of instructions
 * overlap. */
__device__ __forceinline__ void number_slots(const fs_tile_args &a, const fs_part &p, int64_t slot, int lead, int64_t (&column)[4],
                                             uint32_t (&word)[4])
{
    const int64_t first = p.first + slot;
    const bool accepts = a.B.accepts[p.block_rows > a.B.out.small];
    if (a.B.shuffle == FS_DEF_ROWS) {
        uint32_t turn[4];
        fs_blockperm_turns(&a.B, first >> 2, turn);
#pragma unroll
        for (int i = 0; i < 4; i++) column[i] = fs_blockperm_dealt_from(&a.B, p.h, first + i, turn[i]);
    } else {
#pragma unroll 1
        for (int i = 0; i < 4; i++) column[i] = fs_slot_column(&a.B, p.h, first + i);
    }
    if (a.B.shuffle == FS_DEF_NONE) {
        const fs_quad quad = fs_blockperm_quad(&a.B, first >> 2, p.l, 0);
#pragma unroll
        for (int i = 0; i < 4; i++) word[i] = quad.w[i];
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) word[i] = fs_blockperm_word_once(&a.B, column[i], p.l, 0);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (slot + i < lead || slot + i >= p.count || column[i] < a.row0 || column[i] - a.row0 >= a.rows) column[i] = -1;
    if (accepts) return;
#pragma unroll 1
    for (int i = 0; i < 4; i++)
        if (column[i] >= 0) word[i] = fs_blockperm_word(&a.B, column[i], p.l, 0, p.block_rows);
}

/* The nonzeros of those slots as 16-bit +-1 in panels of S, 64 slots each and `apart` bytes from each other: row r at 128 r, K
 * positions permuted so that a thread's four rows of a step, q + 4 i, are the K positions of its fragment, and the 128-byte
 * swizzle.  `slot` is the first's. */
template <int HALF>
__device__ __forceinline__ void put_slots(const fs_tile_args &a, const fs_part &p, uint8_t *panels, int apart, int slot,
                                          const int64_t (&column)[4], uint32_t (&word)[4])
{
    const uint16_t one = HALF ? 0x3C00 : 0x3F80;
    const int o = slot & 15, k = (slot & 48) + (o >> 2 & 1) + 8 * (o >> 3);
    uint8_t *panel = panels + (slot >> 6) * apart;
    const fs_split parts = a.B.parts[p.block_rows > a.B.out.small];
    for (int q = 0, t = 0;;) {
        for (int c = fs_blockperm_count(&a.B, q); c > 0; c--, t++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const uint32_t code = fs_blockperm_next(&parts, t, &word[i]), at = (code >> 1) * 128 + (k + 2 * i) * 2;
                if (column[i] >= 0) *(uint16_t *)(panel + (at ^ (at >> 3 & 0x70))) = (uint16_t)(one | code << 15);
            }
        if (++q == (int)a.B.words) break;
#pragma unroll 1
        for (int i = 0; i < 4; i++)
            if (column[i] >= 0) word[i] = fs_blockperm_word(&a.B, column[i], p.l, q, p.block_rows);
    }
}

/* Any output; out of the way, so that the plain stores stay a few instructions. */
__device__ __noinline__ void put_anywhere(const fs_output &to, int64_t row, int64_t column, float4 sum, int valid)
{
    fs_output_put4(to, row, column, sum, valid);
}

/* A thread's sums of a block: for a row of Y it has 2 TILES neighbouring columns from `column` on, side by side in its tiles. */
template <int TILES>
__device__ __forceinline__ void store_tile(const fs_tile_args &a, const fs_part &p, const float *total, int64_t column)
{
    const fs_output to = fs_plane(a, p.l, p.z);
    const int q = threadIdx.x & 3;
    const int valid = (int)(a.n - column < 2 * TILES ? a.n - column : 2 * TILES);
    float *first = (float *)to.data + (p.output_row + 2 * q) * to.row_stride + column;
    const bool plain = valid == 2 * TILES && to.dtype == FS_F32 && to.col_stride == 1 && to.beta == 0.0 &&
                       to.row_stride % (2 * TILES) == 0 && ((uintptr_t)first & (8 * TILES - 1)) == 0;
    const float f = (float)to.factor;
    if (plain) {
#pragma unroll
        for (int b = 0; b < 8; b++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float *at = first + (8 * b + i) * to.row_stride;
                const float *sum = total + 4 * b + i;
                if (8 * b + 2 * q + i >= p.block_rows) continue;
                if (TILES == 2) *(float4 *)at = make_float4(f * sum[0], f * sum[2], f * sum[(TILES - 1) * 32], f * sum[(TILES - 1) * 32 + 2]);
                else *(float2 *)at = make_float2(f * sum[0], f * sum[2]);
            }
    } else {
#pragma unroll
        for (int b = 0; b < 8; b++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float *sum = total + 4 * b + i, *more = sum + (TILES - 1) * 32;
                const int row = 8 * b + 2 * q + i;
                if (row < p.block_rows)
                    put_anywhere(to, p.output_row + row, column, make_float4(sum[0], sum[2], more[0], more[2]), valid);
            }
    }
}

/* A part by plain additions, for data that are not finite: a thread owns a column, and every `width`-th sum from mine on. */
template <class T> __device__ __noinline__ void make_again(const fs_tile_args &a, const fs_part &p, int64_t column, float *mine, int width)
{
    const fs_split parts = a.B.parts[p.block_rows > a.B.out.small];
    for (int r = 0; r < HEIGHT; r++) mine[r * width] = 0.0f;
    for (int64_t i = 0; i < p.count; i++) {
        const int64_t row = fs_slot_row(&a.B, p.h, p.first + i, a.row0, a.rows);
        if (row < 0 || column >= a.n) continue;
        const float x = fs_widen(((const T *)a.data)[row * a.row_stride + column]);
        for (int q = 0, t = 0; q < (int)a.B.words; q++) {
            uint32_t word = fs_blockperm_word(&a.B, row + a.row0, p.l, q, p.block_rows);
            for (int c = fs_blockperm_count(&a.B, q); c > 0; c--, t++) {
                const uint32_t code = fs_blockperm_next(&parts, t, &word);
                mine[(code >> 1) * width] += code & 1 ? -x : x;
            }
        }
    }
    const fs_output out = fs_plane(a, p.l, p.z);
    if (column < a.n)
        for (int64_t r = 0; r < p.block_rows; r++) fs_output_put(out, p.output_row + r, column, mine[r * width]);
}

}  // namespace

#endif
