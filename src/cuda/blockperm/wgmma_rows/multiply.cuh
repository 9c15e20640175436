/* multiply.cuh - wgmma_rows.cu: consumer warpgroups, which take rows from the ring, cut them into split terms and multiply
 * them by S tiles. */
#ifndef FSI_CUDA_BLOCKPERM_WGMMA_ROWS_MULTIPLY_CUH
#define FSI_CUDA_BLOCKPERM_WGMMA_ROWS_MULTIPLY_CUH

#include "cuda/blockperm/wgmma_rows/layout.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
namespace {

/* Which of a thread's columns its sum number i belongs to. */
template <int TILES> __device__ __forceinline__ constexpr int column_of(int i)
{
    return (TILES == 2 ? i >> 5 << 1 : 0) | (i >> 1 & 1);
}

/* A thread's columns c = 0 ... 2 TILES - 1 of its warp's: neighbours where a row is read by one load; where rows are
 * shifted, so that eight threads read a line of a row without conflicts. */
template <class T, int CHUNKED, int TILES> __device__ __forceinline__ int column_at(int c)
{
    const int eighth = threadIdx.x >> 2 & 7;
    return !CHUNKED             ? eighth * 2 * TILES + c
           : is_float<T>::value ? 8 * c + eighth
                                : 16 * (c >> 1) + 2 * eighth + (c & 1);
}

/* Where a thread's elements of some rows are, the first row's, and the shifts of every fourth row as bytes. */
struct source {
    uint32_t at;
    uint64_t shifts;
    __device__ __forceinline__ source later(int rows, int row_bytes) const
    {
        return {at + rows * row_bytes, shifts >> 2 * rows};
    }
    __device__ __forceinline__ uint32_t shift(int i) const { return (uint32_t)(shifts >> 8 * i) & 255; }
};
/* Its elements of every fourth row, the row number i of them. */
template <int CHUNKED, int ROW_BYTES, int COLUMNS>
__device__ __forceinline__ void load_elements(float (&x)[COLUMNS], const source &from, int i)
{
    const uint32_t at = from.at + i * 4 * ROW_BYTES;
    if constexpr (!CHUNKED) load_row(x, at);
    else
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) x[c] = __uint_as_float(fsi_shared_uint(at + from.shift(i) + 32 * c));
}
template <int CHUNKED, int ROW_BYTES, int TILES>
__device__ __forceinline__ void load_elements(uint32_t (&x)[TILES], const source &from, int i)
{
    const uint32_t at = from.at + i * 4 * ROW_BYTES;
    if constexpr (!CHUNKED) load_row(x, at);
    else {
        const uint32_t begin = at + from.shift(i), pick = begin & 2 ? 0x5432 : 0x3210;
#pragma unroll
        for (int t = 0; t < TILES; t++)
            x[t] = __byte_perm(fsi_shared_uint((begin & ~3u) + 32 * t), fsi_shared_uint((begin & ~3u) + 32 * t + 4),
                               pick);
    }
}

/* A thread's elements of a step as the tensor cores take them: two-byte ones as they are. */
template <class T, int CHUNKED, int TILES, int ROW_BYTES> struct scaled {
    enum { PASSES = 1 };
    fragment<TILES> of[PASSES];
    __device__ __forceinline__ void load(const source &from, const float *)
    {
        uint32_t x[4][TILES];
#pragma unroll
        for (int i = 0; i < 4; i++) load_elements<CHUNKED, ROW_BYTES>(x[i], from, i);
        of[0] = pairs<TILES>(x);
    }
};
/* Floats are scaled by the power of two `up` of their column. */
template <int CHUNKED, int TILES, int ROW_BYTES> struct scaled<float, CHUNKED, TILES, ROW_BYTES> {
    enum { PASSES = 2 };
    fragment<TILES> of[PASSES];
    __device__ __forceinline__ void load(const source &from, const float *up)
    {
        float x[4][2 * TILES];
#pragma unroll
        for (int i = 0; i < 4; i++) load_elements<CHUNKED, ROW_BYTES>(x[i], from, i);
#pragma unroll
        for (int i = 0; i < 4 * TILES; i++) {
            const int column = i >> 2 << 1 | (i & 1), pair = i & 2;
            cut_pair(x[pair][column], x[pair + 1][column], up[column], of[0].tile[i >> 2][i & 3],
                     of[1].tile[i >> 2][i & 3]);
        }
    }
    /* The largest first split terms, two of them. */
    __device__ __forceinline__ __half2 largest() const
    {
        __half2 most = __half2();
#pragma unroll
        for (int i = 0; i < 4 * TILES; i++) most = __hmax2(most, __habs2(*(const __half2 *)&of[0].tile[i >> 2][i & 3]));
        return most;
    }
};

/* What is multiplied at a time: 16 rows of two tiles of floats, 32 of everything else; at most 16 registers. */
template <class T, int CHUNKED, int TILES, int ROW_BYTES> struct unit {
    typedef scaled<T, CHUNKED, TILES, ROW_BYTES> step_t;
    enum { PASSES = step_t::PASSES, STEPS = PASSES * TILES == 4 ? 1 : 2, ROWS = STEP * STEPS };
    step_t step[STEPS];
    __device__ __forceinline__ void load(const source &from, const float *up)
    {
#pragma unroll
        for (int k = 0; k < STEPS; k++) step[k].load(from.later(k * STEP, ROW_BYTES), up);
    }
    /* Registers that wgmma reads keep their values until here. */
    __device__ __forceinline__ void keep() const
    {
#pragma unroll
        for (int i = 0; i < STEPS * PASSES * TILES * 4; i++) {
            const fragment<TILES> &f = step[i / (PASSES * TILES * 4)].of[i / (TILES * 4) % PASSES];
            asm volatile("" ::"r"(f.tile[i / 4 % TILES][i % 4]));
        }
    }
};

/* Whether a split term of the warp's columns has become infinite. */
template <class T, int CHUNKED, int TILES, int ROW_BYTES>
__device__ __forceinline__ bool overflown(const unit<T, CHUNKED, TILES, ROW_BYTES> &)
{
    return false;
}
template <int CHUNKED, int TILES, int ROW_BYTES>
__device__ __forceinline__ bool overflown(const unit<float, CHUNKED, TILES, ROW_BYTES> &x)
{
    __half2 most = __half2();
#pragma unroll
    for (int k = 0; k < unit<float, CHUNKED, TILES, ROW_BYTES>::STEPS; k++) most = __hmax2(most, x.step[k].largest());
    return any_infinite(most);
}

/* Lowers `up` of the columns whose largest element of a unit would not be finite. */
template <int CHUNKED, int TILES, int ROW_BYTES, int ROWS>
__device__ __forceinline__ void lower_scales(const source &from, float (&up)[2 * TILES])
{
    float most[2 * TILES] = {};
#pragma unroll
    for (int i = 0; i < ROWS / 4; i++) {
        float x[2 * TILES];
        load_elements<CHUNKED, ROW_BYTES>(x, from, i);
#pragma unroll
        for (int j = 0; j < 2 * TILES; j++) most[j] = fmaxf(most[j], fabsf(x[j]));
    }
#pragma unroll
    for (int j = 0; j < 2 * TILES; j++) {
        most[j] = fmaxf(most[j], __shfl_xor_sync(~0u, most[j], 1));
        most[j] = fmaxf(most[j], __shfl_xor_sync(~0u, most[j], 2));
        up[j] = lowered(up[j], most[j]);
    }
}

/* sums = the products of a unit, of every step the smallest split terms first, plus sums if `keep`; queued.  `s_tile`
 * holds the K positions of the unit. */
template <int BLOCKS, class T, int CHUNKED, int TILES, int ROW_BYTES>
__device__ __forceinline__ void multiply(float *sums, const unit<T, CHUNKED, TILES, ROW_BYTES> &x, uint32_t s_tile,
                                         int keep)
{
    typedef unit<T, CHUNKED, TILES, ROW_BYTES> unit_t;
#pragma unroll
    for (int k = 0; k < unit_t::STEPS; k++)
#pragma unroll
        for (int p = unit_t::PASSES - 1; p >= 0; p--)
#pragma unroll
            for (int i = 0; i < TILES; i++)
                fsi_wgmma<in_halves<T>::value, 64 * BLOCKS>(sums + 32 * i, x.step[k].of[p].tile[i],
                                                            fsi_wgmma_operand(s_tile + k * 2 * STEP),
                                                            keep || k > 0 || p < unit_t::PASSES - 1);
}

/* total += sums, as they were before they were scaled. */
template <class T, int TILES, int SUMS>
__device__ __forceinline__ void promote(float (&total)[SUMS], const float (&sums)[SUMS], const float (&up)[2 * TILES])
{
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        total[i] = is_float<T>::value ? fmaf(sums[i], inverse(up[column_of<TILES>(i)]), total[i]) : total[i] + sums[i];
}

/* Whether all sums of the first `columns` of the warp's columns are finite; what is behind them counts only where it is
 * zero anyway. */
template <class T, int CHUNKED, int TILES, int SUMS>
__device__ __forceinline__ bool finite(const float (&total)[SUMS], int64_t columns)
{
    float zero[2 * TILES] = {};
    bool all = true;
#pragma unroll
    for (int i = 0; i < SUMS; i++) zero[column_of<TILES>(i)] = fmaf(total[i], 0.0f, zero[column_of<TILES>(i)]);
#pragma unroll
    for (int c = 0; c < 2 * TILES; c++)
        all &= zero[c] == 0.0f || (CHUNKED && column_at<T, CHUNKED, TILES>(c) >= columns);
    return all;
}

/* S tiles between promotions of sums of floats: 64 rows of A add 64 s / block_rows terms to a sum, in two split terms
 * that may be cut off; where they are fewer than four, or eight where s is at least eight and plain sums have more terms
 * to round, too, it takes more rows for as many.  (Two-byte elements, whose products have 11 or 8 bits, are promoted every
 * 256 rows.) */
__device__ __forceinline__ int promotion(int s, int block_rows)
{
    const int terms = 64 * s / (s >= 8 ? 2 : 1);
    return terms >= 4 * block_rows ? 1 : 2 * terms >= 4 * block_rows ? 2 : 4;
}

/* A consumer warpgroup: total = its slice of S A, `column` the first of the warp's columns, `out` the first of
 * its blocks.  A unit is loaded and cut while the one before it is multiplied; sums are promoted `every` so many
 * S tiles, a power of two, when the next unit is ready.  Where warpgroups take S tiles in turn, `side` says which.
 * `before` sets were for earlier work items; `at` continues from item to item.  `columns` of the warp's columns exist:
 * what chunks bring of others has the scale 0, so that it does not decide when sums are promoted. */
template <class T, int CHUNKED, int OUTS, int TILES, int STAGES, int SETS>
__device__ __forceinline__ void multiply_tiles(const memory<T, CHUNKED, OUTS, TILES, STAGES, SETS> &m, int tile_count,
                                               int every, int column, int64_t columns, int out, int side, int before,
                                               ring_place &at, float (&total)[shape<T, CHUNKED, OUTS, TILES>::SUMS])
{
    typedef shape<T, CHUNKED, OUTS, TILES> sh;
    typedef unit<T, CHUNKED, sh::ACROSS, sh::ROW_BYTES> unit_t;
    enum { UNITS = S_TILE / unit_t::ROWS, TURN = sh::APART ? 2 : 1, TILE_STAGES = S_TILE / sh::STAGE };
    const int lane = threadIdx.x & 31;
    const uint32_t start = (lane & 3) * sh::ROW_BYTES +
                           (column + column_at<T, CHUNKED, sh::ACROSS>(0)) * (int)sizeof(T);
    const uint32_t from = m.ring.stages + (CHUNKED ? start : start ^ (start >> 3 & 0x70));
    uint64_t shifts = 0;
    float sums[sh::SUMS], up[sh::COLUMNS];
    /* The compiler does not know that sums change until wgmma is waited for; declaring them written at that point keeps
     * their uses behind it. */
    const auto promote_sums = [&]() {
        fsi_wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < sh::SUMS; i++) asm volatile("" : "+f"(sums[i])::"memory");
        promote<T, sh::ACROSS>(total, sums, up);
    };
    unit_t x[2] = {};
    int stage = at.stage + side * TILE_STAGES, parity = at.parity;
#pragma unroll
    for (int i = 0; i < sh::SUMS; i++) total[i] = sums[i] = 0.0f;
#pragma unroll
    for (int c = 0; c < sh::COLUMNS; c++)
        up[c] = CHUNKED && column_at<T, CHUNKED, sh::ACROSS>(c) >= columns ? 0.0f : FIRST_SCALE;
#pragma unroll 1
    for (int t = side; t < tile_count; t += TURN) {
        const int number = before + (t >> 1), place = number % SETS;
        const uint32_t s_tile = m.sets + place * sh::SET_BYTES + (t & 1) * sh::HALF_SET + out * S_TILE_BYTES;
        const bool anew = (t / TURN & (every - 1)) == 0, new_set = sh::APART || (t & 1) == 0;
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            unit_t &now = x[u & 1];
            const int row = u * unit_t::ROWS % sh::STAGE;
            if (row == 0) fsi_mbarrier_wait(m.ring.full(stage), parity);
            if (CHUNKED && row % 32 == 0) {
                uint32_t half[2];
                fsi_shared_words<8>(half, m.shifts + sh::STAGE * stage + sh::STAGE / 4 * (lane & 3) + row / 4);
                shifts = (uint64_t)half[1] << 32 | half[0];
            }
            const source rows = {from + stage * sh::STAGE_BYTES + row * sh::ROW_BYTES, shifts >> 2 * (row % 32)};
            for (;;) {
                now.load(rows, up);
                if (!overflown(now)) break;
                promote_sums();
#pragma unroll
                for (int i = 0; i < sh::SUMS; i++) sums[i] = 0.0f;
                lower_scales<CHUNKED, sh::ACROSS, sh::ROW_BYTES, unit_t::ROWS>(rows, up);
            }
            if (row + unit_t::ROWS == sh::STAGE) {
                __syncwarp();
                if (lane == 0) fsi_mbarrier_arrive(m.ring.empty(stage));
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
            if (u == 0 && new_set) fsi_mbarrier_wait(m.set_full(place), number / SETS & 1);
            if (u == 0 && anew && t > side) promote_sums();
            fsi_wgmma_fence();
            multiply<sh::BLOCKS>(sums, now, s_tile + u * 2 * unit_t::ROWS, u > 0 || !anew);
            fsi_wgmma_commit();
            fsi_wgmma_wait<1>();
            x[(u + 1) & 1].keep();
            /* the set before this one was read to its end */
            if (u == 0 && new_set && t > side && lane == 0) fsi_mbarrier_arrive(m.set_empty((place + SETS - 1) % SETS));
        }
        if (sh::APART && (stage += TILE_STAGES) >= STAGES) stage -= STAGES, parity ^= 1;
    }
    promote_sums();
    at.stage = stage, at.parity = parity;
}

}  // namespace
#endif

#endif
