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

/* A thread's 4 x 4 elements of a step: rows q, q + 4, q + 8, q + 12 of 16, four neighbouring columns; and their fragments:
 * pairs of rows for the first two columns (tile 0) and the last two (tile 1). */
struct fragment { uint32_t tile[2][4]; };

__device__ __forceinline__ fragment top_pieces(const float4 (&x)[4])
{
    fragment f;
    const float *e[4] = {&x[0].x, &x[1].x, &x[2].x, &x[3].x};
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int c = 0; c < 2; c++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                f.tile[t][2 * half + c] = fs_bytes<0x7632>(__float_as_uint(e[2 * half][2 * t + c]),
                                                           __float_as_uint(e[2 * half + 1][2 * t + c]));
    return f;
}
/* What remains of a float below its top 16 bits; exact. */
__device__ __forceinline__ float below(float x) { return x - __uint_as_float(__float_as_uint(x) & 0xFFFF0000u); }
__device__ __forceinline__ void keep_rest(float4 (&x)[4])
{
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = make_float4(below(x[i].x), below(x[i].y), below(x[i].z), below(x[i].w));
}
__device__ __forceinline__ fragment pairs(const uint2 (&x)[4])
{
    fragment f;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        f.tile[0][2 * half] = fs_bytes<0x5410>(x[2 * half].x, x[2 * half + 1].x);
        f.tile[0][2 * half + 1] = fs_bytes<0x7632>(x[2 * half].x, x[2 * half + 1].x);
        f.tile[1][2 * half] = fs_bytes<0x5410>(x[2 * half].y, x[2 * half + 1].y);
        f.tile[1][2 * half + 1] = fs_bytes<0x7632>(x[2 * half].y, x[2 * half + 1].y);
    }
    return f;
}

/* The nonzeros of one slot as 16-bit +-1 in a panel of S, 64 slots: row r at 128 r, K positions permuted so that a
 * thread's four rows of a step, q + 4 i, are the K positions of its fragment, and the 128-byte swizzle. */
template <int HALF>
__device__ __forceinline__ void put_slot(const fs_tile_args &a, const fs_part &p, uint8_t *panel, int slot, int64_t column)
{
    const int o = slot & 15, k = (slot & 48) + 2 * (o & 3) + (o >> 2 & 1) + 8 * (o >> 3);
    const uint16_t one = HALF ? 0x3C00 : 0x3F80;
    const fs_split parts = a.B.parts[p.block_rows > a.B.out.small];
    for (int q = 0, t = 0; q < (int)a.B.words; q++) {
        uint32_t word = fs_blockperm_word(&a.B, column, p.l, q, p.block_rows);
        for (int c = fs_blockperm_count(&a.B, q); c > 0; c--, t++) {
            const uint32_t code = fs_blockperm_next(&parts, t, &word);
            const uint32_t at = (code >> 1) * 128 + k * 2;
            *(uint16_t *)(panel + (at ^ (at >> 3 & 0x70))) = (uint16_t)(one | code << 15);
        }
    }
}

/* The sums of `thread`: for a row of Y it has four neighbouring columns, side by side in the two tiles of its fragments.
 * Whether a row is one plain store of 16 bytes is asked once: asked for every row it would take as long as a panel. */
__device__ __forceinline__ void store_tile(const fs_tile_args &a, const fs_part &p, const float (&total)[2][32], int thread)
{
    const fs_output to = fs_plane(a, p.l, p.z);
    const int lane = thread & 31, q = lane & 3;
    const int64_t column = p.column + (thread >> 5) * 32 + (lane >> 2) * 4;
    const int valid = (int)(a.n - column < 4 ? a.n - column : 4);
    float *first = (float *)to.data + (p.output_row + 2 * q) * to.row_stride + column;
    const bool plain = valid == 4 && to.dtype == FS_F32 && to.col_stride == 1 && to.beta == 0.0 && to.row_stride % 4 == 0 &&
                       ((uintptr_t)first & 15) == 0;
    const float factor = (float)to.factor;
#pragma unroll
    for (int b = 0; b < 8; b++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = 8 * b + 2 * q + i;
            if (row >= p.block_rows) continue;
            const float4 sum = make_float4(total[0][4 * b + i], total[0][4 * b + 2 + i], total[1][4 * b + i],
                                           total[1][4 * b + 2 + i]);
            if (plain)
                *(float4 *)(first + (8 * b + i) * to.row_stride) =
                    make_float4(factor * sum.x, factor * sum.y, factor * sum.z, factor * sum.w);
            else fs_output_put4(to, p.output_row + row, column, sum, valid);
        }
}

/* The same part by plain additions, for data that are not finite: a thread owns a column. */
template <class T> __device__ __noinline__ void make_again(const fs_tile_args &a, const fs_part &p, float *sums, int thread, int width)
{
    const int64_t column = p.column + thread;
    float *mine = sums + thread;
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
