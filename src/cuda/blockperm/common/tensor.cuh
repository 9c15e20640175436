/* tensor.cuh - what the kernels that multiply by S on the tensor cores share (mma_rows.cu, mma_gather.cu,
 * wgmma_rows.cu, wgmma_rows_16bit.cu, wgmma_groups.cu, mma_skinny.cu); gather_rows_simt.cu, which adds, uses the local
 * rows and the stores.
 *
 * A block of S is a matrix of 0 and +-1, exact in 16 bits.  Columns of A are the M axis of the tensor cores, rows of A
 * the K axis, the at most 64 rows of an output tile the N axis, so the cost does not depend on s.  A float is cut into three
 * bf16 split terms, exactly, or into two f16 split terms; bf16 and f16 elements are used as they are. */
#ifndef FSI_CUDA_BLOCKPERM_COMMON_TENSOR_CUH
#define FSI_CUDA_BLOCKPERM_COMMON_TENSOR_CUH

#include "cuda/runtime/ptx.cuh"
#include "cuda/blockperm/common/tile.cuh"

namespace {

enum { HEIGHT = 64, STEP = 16, S_TILE = 64, S_TILE_BYTES = HEIGHT * 128 };

template <class T> struct is_half {
    enum { value = 0 };
};
template <> struct is_half<__half> {
    enum { value = 1 };
};
template <class T> struct is_float {
    enum { value = 0 };
};
template <> struct is_float<float> {
    enum { value = 1 };
};

/* A thread's elements of a step: rows q, q + 4, q + 8, q + 12 of 16, 2 TILES neighbouring columns; and their fragments:
 * pairs of rows, two columns for each tile. */
template <int TILES> struct fragment {
    uint32_t tile[TILES][4];
};

template <int TILES> __device__ __forceinline__ fragment<TILES> top_terms(const float (&x)[4][2 * TILES])
{
    fragment<TILES> f;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int c = 0; c < 2; c++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                f.tile[t][2 * half + c] = fsi_bytes<0x7632>(__float_as_uint(x[2 * half][2 * t + c]),
                                                            __float_as_uint(x[2 * half + 1][2 * t + c]));
    return f;
}
/* What remains of two floats below their top 16 bits, which are the halves of `tops`; exact.  (The low half is shifted
 * up, by the multiplier, and the high half masked: two pipes share the work.) */
__device__ __forceinline__ void keep_rest(float &low, float &high, uint32_t tops)
{
    low -= __uint_as_float(tops << 16);
    high -= __uint_as_float(tops & 0xFFFF0000u);
}
/* The kernels of sm_90 multiply floats as f16, S with them. */
template <class T> struct in_halves {
    enum { value = is_half<T>::value || is_float<T>::value };
};

/* Two floats, times a power of two `up`, are rounded to f16, and what remains is rounded to f16 again.  `up` belongs to
 * a column of A and is lowered when it must be.  The split terms hold 11 bits and a sign each: an element at least
 * 2^-14 times as large as the largest so far in its column loses at most the last of its 24 bits (one in four does); a
 * smaller one loses at most 2^-38 times that largest.  (Three bf16 split terms would be exact, at 1.5
 * times the work of the tensor cores.) */
__device__ __forceinline__ void cut_pair(float low, float high, float up, uint32_t &top, uint32_t &rest)
{
    low *= up;
    high *= up;
    const __half2 first = __floats2half2_rn(low, high);
    const __half2 second = __floats2half2_rn(low - __low2float(first), high - __high2float(first));
    top = *(const uint32_t *)&first;
    rest = *(const uint32_t *)&second;
}
/* The scale to begin with, and the least that is rounded to an infinite f16. */
#define FIRST_SCALE 0x1p126f
#define ROUNDS_TO_INF 65520.0f
/* The scale of a column whose next elements are as large as `most`, which becomes 2^13 to 2^14 if it would not be
 * finite otherwise.  For a column that holds Inf it becomes NaN, and so do its sums. */
__device__ __forceinline__ float lowered(float up, float most)
{
    const int exponent = (int)(__float_as_uint(most) >> 23), lower = 2 * 127 + 13 - exponent;
    if (!(most * up >= ROUNDS_TO_INF)) return up;
    return __uint_as_float(exponent == 255 ? 0x7FC00000u : (uint32_t)(lower < 253 ? lower : 253) << 23);
}
/* Whether one of two f16, which are not negative, is infinite in any lane. */
__device__ __forceinline__ bool any_infinite(__half2 x)
{
    const uint32_t bits = *(const uint32_t *)&x;
    return __any_sync(~0u, (bits & 0xFFFF) == 0x7C00 || bits >> 16 == 0x7C00);
}
/* 1 / x of a power of two. */
__device__ __forceinline__ float inverse(float x) { return __uint_as_float(0x7F000000u - __float_as_uint(x)); }

/* Two-byte elements: two columns in a word. */
template <int TILES> __device__ __forceinline__ fragment<TILES> pairs(const uint32_t (&x)[4][TILES])
{
    fragment<TILES> f;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            f.tile[t][2 * half] = fsi_bytes<0x5410>(x[2 * half][t], x[2 * half + 1][t]);
            f.tile[t][2 * half + 1] = fsi_bytes<0x7632>(x[2 * half][t], x[2 * half + 1][t]);
        }
    return f;
}

/* Neighbouring columns of a row in shared memory. */
__device__ __forceinline__ void load_row(float (&x)[4], uint32_t at)
{
    const float4 y = fsi_shared_float4(at);
    x[0] = y.x, x[1] = y.y, x[2] = y.z, x[3] = y.w;
}
__device__ __forceinline__ void load_row(float (&x)[2], uint32_t at)
{
    const float2 y = fsi_shared_float2(at);
    x[0] = y.x, x[1] = y.y;
}
__device__ __forceinline__ void load_row(uint32_t (&x)[2], uint32_t at)
{
    const uint2 y = fsi_shared_uint2(at);
    x[0] = y.x, x[1] = y.y;
}
__device__ __forceinline__ void load_row(uint32_t (&x)[1], uint32_t at) { x[0] = fsi_shared_uint(at); }

/* The split terms of one step's elements, the first of them the largest; `at` is where the thread's first row and
 * columns are, rows of the step are ROW_BYTES apart. */
template <class T, int PASSES, int TILES, int ROW_BYTES> struct split_terms {
    fragment<TILES> of[1];
    __device__ __forceinline__ void load(uint32_t at)
    {
        uint32_t x[4][TILES];
#pragma unroll
        for (int i = 0; i < 4; i++) load_row(x[i], at + i * 4 * ROW_BYTES);
        of[0] = pairs<TILES>(x);
    }
};
template <int PASSES, int TILES, int ROW_BYTES> struct split_terms<float, PASSES, TILES, ROW_BYTES> {
    fragment<TILES> of[PASSES];
    __device__ __forceinline__ void load(uint32_t at)
    {
        float x[4][2 * TILES];
#pragma unroll
        for (int i = 0; i < 4; i++) load_row(x[i], at + i * 4 * ROW_BYTES);
        cut(x);
    }
    __device__ __forceinline__ void cut(float (&x)[4][2 * TILES])
    {
#pragma unroll
        for (int p = 0; p < PASSES; p++) {
            of[p] = top_terms<TILES>(x);
            if (p + 1 == PASSES) break;
#pragma unroll
            for (int i = 0; i < 4 * TILES; i++)
                keep_rest(x[i & 2][i >> 2 << 1 | (i & 1)], x[(i & 2) + 1][i >> 2 << 1 | (i & 1)],
                          of[p].tile[i >> 2][i & 3]);
        }
    }
};

/* sums = KEEP sums + f S by mma.sync, for the 16 local rows that start 32 `step` bytes into an S tile. */
template <int HALF, int KEEP, int TILES>
__device__ __forceinline__ void multiply(float (&sums)[32 * TILES], const fragment<TILES> &f, uint32_t s_tile, int step)
{
    const uint32_t lane = threadIdx.x & 31, row = lane & 7, chunk = 2 * step + (lane >> 3 & 1);
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
        uint32_t s[4];
        fsi_load_matrices(s, s_tile + (16 * pair + (lane >> 4) * 8 + row) * 128 + ((chunk ^ row) << 4));
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int side = 0; side < 2; side++) {
                float *d = sums + 32 * t + 8 * pair + 4 * side;
                if (!KEEP) d[0] = d[1] = d[2] = d[3] = 0.0f;
                fsi_mma<HALF>(d, f.tile[t], s[2 * side], s[2 * side + 1]);
            }
    }
}

/* The slice with its first local row moved down to a multiple of `of`, a power of two, by as many local rows as are
 * returned. */
__device__ __forceinline__ int align_local_rows(fsi_slice &p, int of = 4)
{
    const int lead = p.count > 0 ? (int)p.first & (of - 1) : 0;
    p.first -= lead;
    p.count += lead;
    return lead;
}

/* +1 as bf16 and as f16; an S tile holds one of them, with signs. */
enum { NOTHING = 0, BF16_ONE = 0x3F80, F16_ONE = 0x3C00 };

/* The K position of a local row of an S tile: a thread's four rows of a step, q + 4 i, are those of its fragment. */
__device__ __forceinline__ uint32_t k_position(int local_row)
{
    const int o = local_row & 15;
    return (local_row & 48) + 2 * (o & 3) + (o >> 2 & 1) + 8 * (o >> 3);
}
/* A +-1, or NOTHING, of a local row in an S tile, 64 local rows: row r at 128 r, K positions, the 128-byte swizzle. */
template <int ONE> __device__ __forceinline__ void put_one(uint8_t *s_tile, int local_row, uint32_t code)
{
    const uint32_t at = (code >> 1) * 128 + k_position(local_row) * 2;
    *(uint16_t *)(s_tile + (at ^ (at >> 3 & 0x70))) = (uint16_t)(ONE ? ONE | code << 15 : 0);
}
/* Calls f(code) for every nonzero that local row u of the slice's block has in its output tile, in order: 2 (row of the
 * tile) + (1 if the sign is minus). */
template <class F>
__device__ __forceinline__ void each_nonzero_of(const fsi_tile_args &a, const fsi_slice &p, int64_t u, F f)
{
    const fsi_split strata = a.B.strata[p.block_rows > a.B.out.small];
    for (int q = p.band, t = q * a.B.per_band; q < p.bands_end; q++) {
        fsi_draw draw = fsi_blockperm_draw(&a.B, p.h, u, p.l, q, p.block_rows);
        for (int c = fsi_blockperm_count(&a.B, q); c > 0; c--, t++)
            f(fsi_blockperm_code(&a.B, &strata, t, &draw) - 2 * p.tile_start);
    }
}
/* The nonzeros of local row `local_row` of the slice, of any sketch, in an S tile. */
template <int ONE> __device__ __forceinline__ void put_nonzeros(const fsi_tile_args &a, const fsi_slice &p,
                                                                uint8_t *s_tile, int64_t local_row)
{
    each_nonzero_of(a, p, p.first + local_row, [&](uint32_t code) { put_one<ONE>(s_tile, (int)local_row & 63, code); });
}
template <int ONE> __device__ __forceinline__ void put_local_row(const fsi_tile_args &a, const fsi_slice &p,
                                                                 uint8_t *s_tile, int64_t local_row)
{
    if (local_row < p.count && fsi_local_row_source(&a.B, p.h, p.first + local_row, a.row0, a.rows) >= 0)
        put_nonzeros<ONE>(a, p, s_tile, local_row);
}

/* Bits of a row in one of NONZEROS slices of a block of 64 rows. */
template <int NONZEROS> struct row_bits {
    enum { value = NONZEROS == 1 ? 6 : NONZEROS == 2 ? 5 : NONZEROS == 4 ? 4 : 3 };
    static_assert(NONZEROS << value == HEIGHT, "NONZEROS must be 1, 2, 4 or 8");
};

/* Four neighbouring local rows of sketches with packed words are generated together, where a tile is one band: they share
 * a Philox call, and their chains of instructions overlap. */
__device__ __forceinline__ bool made_by_fours(const fsi_tile_args &a)
{
    return a.B.shuffle != FSI_DEF_GROUPS && fsi_output_tiles_packed(&a.B, a.outputs);
}
/* Which of local rows local_row ... local_row + 3, the first `lead` of the slice left out, hold a row, as bits. */
__device__ __forceinline__ int local_rows_there(const fsi_tile_args &a, const fsi_slice &p, int64_t local_row, int lead,
                                                const int64_t (&column)[4])
{
    int valid = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (local_row + i >= lead && local_row + i < p.count && column[i] >= a.row0 && column[i] - a.row0 < a.rows)
            valid |= 1 << i;
    return valid;
}
/* Which of them the slice may hold, as bits.  Where the copies of other local rows are zeros, that is enough. */
__device__ __forceinline__ int local_rows_within(const fsi_slice &p, int64_t local_row, int lead)
{
    int valid = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (local_row + i >= lead && local_row + i < p.count) valid |= 1 << i;
    return valid;
}
/* Columns of local rows first ... first + 3 of block h, first a multiple of 4; no shuffle of groups. */
__device__ __forceinline__ void columns_of_four(const fsi_blockperm &B, uint32_t h, int64_t first, int64_t (&column)[4])
{
    if (B.shuffle == FSI_DEF_NONE) {
        const int64_t start = fsi_split_start(&B.in, h);
#pragma unroll
        for (int i = 0; i < 4; i++) column[i] = start + first + i;
    } else {
        fsi_round round[4];
        fsi_blockperm_rounds(&B, first >> 2, round);
#pragma unroll
        for (int i = 0; i < 4; i++) column[i] = fsi_blockperm_assigned_from(&B, h, first + i, round[i]);
    }
}
/* Words of local rows local_row ... local_row + 3, p.first + local_row a multiple of 4. */
__device__ __forceinline__ void words_of_four(const fsi_tile_args &a, const fsi_slice &p, int64_t local_row,
                                              uint32_t (&word)[4])
{
    const fsi_quad quad = fsi_blockperm_quad(&a.B, p.h, p.first + local_row, fsi_blockperm_band(&a.B, p.l, p.band));
#pragma unroll
    for (int i = 0; i < 4; i++) word[i] = quad.w[i];
}
/* Columns and words of local rows local_row ... local_row + 3, p.first + local_row a multiple of 4; returns which of
 * them hold a row, as bits. */
__device__ __forceinline__ int number_local_rows(const fsi_tile_args &a, const fsi_slice &p, int64_t local_row,
                                                 int lead, int64_t (&column)[4], uint32_t (&word)[4])
{
    words_of_four(a, p, local_row, word);
    columns_of_four(a.B, p.h, p.first + local_row, column);
    return local_rows_there(a, p, local_row, lead, column);
}
/* Their nonzeros, or NOTHING instead: put_one of every fsi_packed_code, by few instructions.  A field of a word is the
 * row in a stratum and the sign. */
template <int ONE> __device__ __forceinline__ void put_local_rows(const fsi_tile_args &a, const fsi_slice &p,
                                                                  uint8_t *s_tile, int local_row, int valid,
                                                                  uint32_t (&word)[4])
{
    const int field = a.B.field, size = 1 << (field - 1), last = size * a.B.per_band;
    const uint32_t to = fsi_shared_address(s_tile);
    uint32_t k2[4];
#pragma unroll
    for (int i = 0; i < 4; i++) k2[i] = 2 * k_position((local_row & 63) + i);
#pragma unroll 2
    for (int stratum = 0; stratum < last; stratum += size)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t row = stratum + (word[i] >> (33 - field)), sign = word[i] << (field - 1);
            if (valid >> i & 1)
                fsi_shared_put16(to + (row << 7) + ((row << 4 & 0x70) ^ k2[i]), ONE ? ONE | (sign >> 16 & 0x8000) : 0);
            word[i] <<= field;
        }
}

/* Any output; not inlined, so that the plain stores stay a few instructions. */
__device__ __noinline__ void put_anywhere(const fsi_output &to, int64_t row, int64_t column, float4 sum, int valid)
{
    fsi_output_put4(to, row, column, sum, valid);
}

__device__ __noinline__ void put_one_anywhere(const fsi_output &to, int64_t row, int64_t column, float sum)
{
    fsi_output_put(to, row, column, sum);
}

/* A thread's sums of a block: for a row of Y it has 2 TILES neighbouring columns from `column` on, side by side in its
 * tiles.  Where a row is one plain store it is a few instructions. */
template <int TILES> __device__ __forceinline__ void store_tile(const fsi_tile_args &a, const fsi_slice &p,
                                                                const float *total, int64_t column)
{
    const fsi_output to = fsi_partial_sums(a, p.l, p.z);
    const int q = threadIdx.x & 3, size = to.dtype == FS_F32 ? 4 : 2;
    const int valid = (int)(a.n - column < 2 * TILES ? a.n - column : 2 * TILES);
    const int64_t pitch = to.row_stride * size;
    char *first = (char *)to.data + (p.output_row + 2 * q) * pitch + column * size;
    const bool plain = valid == 2 * TILES && to.col_stride == 1 && to.beta == 0.0 && to.row_stride % (2 * TILES) == 0 &&
                       ((uintptr_t)first & (2 * TILES * size - 1)) == 0;
    const float f = (float)to.factor;
    const auto each_row = [&](auto put) {
#pragma unroll
        for (int b = 0; b < 8; b++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float *sum = total + 4 * b + i, *more = sum + (TILES - 1) * 32;
                if (8 * b + 2 * q + i < p.tile_rows) put(8 * b + i, make_float4(sum[0], sum[2], more[0], more[2]));
            }
    };
    if (plain && size == 4)
        each_row([=](int row, float4 x) {
            if (TILES == 2) *(float4 *)(first + row * pitch) = make_float4(f * x.x, f * x.y, f * x.z, f * x.w);
            else *(float2 *)(first + row * pitch) = make_float2(f * x.x, f * x.y);
        });
    else if (plain)
        each_row([=](int row, float4 x) {
            const uint32_t left = fsi_two_halves(to.dtype, f * x.x, f * x.y);
            const uint32_t right = fsi_two_halves(to.dtype, f * x.z, f * x.w);
            if (TILES == 2) *(uint2 *)(first + row * pitch) = make_uint2(left, right);
            else *(uint32_t *)(first + row * pitch) = left;
        });
    else each_row([=](int row, float4 x) { put_anywhere(to, p.output_row + 2 * q + row, column, x, valid); });
}

/* The same for columns at(c), c = 0 ... 2 TILES - 1, from `column` on, that are no neighbours. */
template <int TILES, class F> __device__ __forceinline__ void store_scattered(const fsi_tile_args &a,
                                                                              const fsi_slice &p, const float *total,
                                                                              int64_t column, F at)
{
    const fsi_output to = fsi_partial_sums(a, p.l, p.z);
    const int q = threadIdx.x & 3;
    const bool plain = to.col_stride == 1 && to.beta == 0.0 && to.dtype == FS_F32;
    const float f = (float)to.factor;
#pragma unroll
    for (int c = 0; c < 2 * TILES; c++) {
        if (column + at(c) >= a.n) continue;
        float *first = (float *)to.data + (p.output_row + 2 * q) * to.row_stride + column + at(c);
#pragma unroll
        for (int b = 0; b < 8; b++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float sum = total[(c >> 1) * 32 + 4 * b + 2 * (c & 1) + i];
                if (8 * b + 2 * q + i >= p.tile_rows) continue;
                if (plain) first[(8 * b + i) * to.row_stride] = __fmul_rn(f, sum);
                else put_one_anywhere(to, p.output_row + 2 * q + 8 * b + i, column + at(c), sum);
            }
    }
}

/* Two neighbouring rows of Y, of any type; not inlined, so that the plain stores stay a few instructions. */
__device__ __noinline__ void put_rows(const fsi_output &to, int64_t row, int64_t sample, float2 sum, int valid)
{
    if (valid > 0) fsi_output_put(to, row, sample, sum.x);
    if (valid > 1) fsi_output_put(to, row + 1, sample, sum.y);
}

/* A thread's sums of a block, rows 8 b + 2 q + i of samples `sample` and sample + APART, as fsi_output_put would leave
 * them; floats two rows at a time where rows are contiguous. */
template <class T, int APART = 8>
__device__ __forceinline__ void store_samples(const fsi_tile_args &a, const fsi_slice &p, const fsi_output &to,
                                              const float *total, int64_t sample)
{
    const int q = threadIdx.x & 3;
    const float factor = (float)to.factor, beta = (float)to.beta;
    const auto put = [=](float *at, float sum) {
        const float y = __fmul_rn(factor, sum);
        *at = to.beta != 0.0 ? __fadd_rn(__fmul_rn(beta, *at), y) : y;
    };
#pragma unroll
    for (int v = 0; v < 2; v++) {
        if (sample + APART * v >= a.n) continue;
        float *first = (float *)to.data + (sample + APART * v) * to.col_stride + (p.output_row + 2 * q) * to.row_stride;
        const bool pairs = to.row_stride == 1 && to.beta == 0.0 && ((uintptr_t)first & 7) == 0;
#pragma unroll
        for (int b = 0; b < 8; b++) {
            const int row = 8 * b + 2 * q;
            const float *sums = total + 4 * b + 2 * v;
            float *at = first + 8 * b * to.row_stride;
            if (sizeof(T) == 2 && to.dtype != FS_F32) {
                put_rows(to, p.output_row + row, sample + APART * v, make_float2(sums[0], sums[1]), p.tile_rows - row);
            } else if (pairs && row + 1 < p.tile_rows) {
                *(float2 *)at = make_float2(__fmul_rn(factor, sums[0]), __fmul_rn(factor, sums[1]));
            } else {
                if (row < p.tile_rows) put(at, sums[0]);
                if (row + 1 < p.tile_rows) put(at + to.row_stride, sums[1]);
            }
        }
    }
}
/* Recomputes a slice by plain additions, for data that are not finite: a thread owns a column, and every `width`-th sum
 * from sum `mine` on. */
template <class T, bool PRODUCTS = false> __device__ __noinline__ void add_serial(const fsi_tile_args &a,
                                                                                  const fsi_slice &p, int64_t column,
                                                                                  float *mine, int width)
{
    for (int r = 0; r < HEIGHT; r++) mine[r * width] = 0.0f;
    for (int64_t i = 0; i < p.count; i++) {
        const int64_t row = fsi_local_row_source(&a.B, p.h, p.first + i, a.row0, a.rows);
        if (row < 0 || column >= a.n) continue;
        float x;
        if constexpr (PRODUCTS) {
            const int2 pair = fsi_pair_at(a.factors, row);
            x = pair.x < 0 ? fsi_no_row() : fsi_product_at(a.factors, pair, column);
        } else {
            const int64_t from = fsi_source_row(a, row);
            x = from < 0 ? fsi_no_row() : fsi_widen(((const T *)a.data)[from * a.row_stride + column * a.col_stride]);
        }
        each_nonzero_of(a, p, p.first + i, [&](uint32_t code) { mine[(code >> 1) * width] += code & 1 ? -x : x; });
    }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* Stores what THREADS threads of each thread block have left in `tiles`, OUTS blocks of Y, WIDTH columns from `first`
 * on, rows PITCH apart; columns before `owned` belong to another tile.  Where slices are a cluster their sums are added
 * on the way, in order, and each of them stores HEIGHT / cluster rows of every block.  All threads that have not exited
 * call this. */
template <int OUTS, int WIDTH, int PITCH, int THREADS>
__device__ __forceinline__ void add_cluster_sums(const fsi_tile_args &a, const fsi_slice *slices, int64_t first,
                                                 int64_t owned, float *tiles, int thread)
{
    const int rank = fsi_cluster_rank(), rows = HEIGHT / a.cluster;
    __syncwarp();
    fsi_cluster_barrier();
#pragma unroll 1
    for (int out = 0; out < OUTS; out++) {
        const fsi_slice &mine = slices[out];
        const fsi_output to = fsi_partial_sums(a, mine.l, mine.z);
#pragma unroll 1
        for (int i = thread; i < rows * WIDTH / 4; i += THREADS) {
            const int row = rank * rows + i / (WIDTH / 4), place = i % (WIDTH / 4) * 4;
            const int64_t column = first + place, left = a.n - column;
            if (row >= mine.tile_rows || column < owned || left <= 0) continue;
            const uint32_t at = fsi_shared_address(tiles + (out * HEIGHT + row) * PITCH + place);
            float4 sum = fsi_cluster_float4(at, 0);
#pragma unroll 1
            for (int c = 1; c < a.cluster; c++) {
                const float4 next = fsi_cluster_float4(at, c);
                sum = make_float4(sum.x + next.x, sum.y + next.y, sum.z + next.z, sum.w + next.w);
            }
            fsi_output_put4(to, mine.output_row + row, column, sum, (int)(left < 4 ? left : 4));
        }
    }
    /* Keep this block's shared memory alive until all cluster peers have read it; every value read has been stored. */
    __syncwarp();
    fsi_cluster_meet();
}
#endif

}  // namespace

#endif
