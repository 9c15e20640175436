/* wgmma_rows.cu - BlockPerm-SJLT on the tensor cores of sm_90, rows of A contiguous.
 *
 * Formulation: tensor.cuh, but floats are cut into two f16 split terms instead of three of bf16: see cut_pair
 * there.  Two producer warpgroups, two consumer warpgroups.  In the producer warpgroups, four producer warps fill a
 * ring of rows of A in shared memory, and four generator warps generate sets of S tiles, 128 local rows each.  The
 * consumers take fragments from the ring, cut them into split terms and multiply.  A is read once for OUTS = 1, 2 or 4
 * permutations:
 *
 *   OUTS   columns of a tile   a warpgroup has
 *     1       256 or 128       128 or 64 columns (TILES tiles of the tensor cores' M axis), one block of Y
 *     1           64           the same 64 columns as the other, every second S tile (TILES = 0)
 *     2          128           64 columns, both blocks side by side on the N axis
 *     4           64           the same 64 columns as the other, two blocks
 *
 * Rows come by a tensor map where one can describe A.  Rows of any other pitch, address or width are CHUNKED: copied as
 * the 16-byte chunks that hold them, and read at the shift that they have there (copy_chunks).
 *
 * mbarriers signal full and empty buffers, so that consumer warps never wait for a random number or an address.  Where
 * there are more work items than SMs, wgmma_rows_persistent has a thread block for each SM, which takes one work item
 * after the other: producer warps work on the next one while sums are stored.
 * Slices of a block that form a cluster of thread blocks leave their sums in shared memory; each thread block adds some
 * rows of all of them, in order.
 * Accuracy: the tensor cores' sums are truncated, so they are promoted, added to rounded ones, every 64 to 256 rows:
 * the error is at most twice that of plain summation (tests/device/accuracy.c).  Inf and NaN: as in mma_rows.cu.
 *
 * grid     cluster x (kappa / OUTS) x M x column tiles x (slices / cluster), in this order, in x; of
 *          wgmma_rows_persistent these are the work items
 * threads  512; registers move from the producer to the consumer warpgroups
 * shared   a ring of SETS sets of S tiles, a ring of STAGES stages of A, mbarriers, the slices in flight
 * needs    sm_90; blocks of at most 64 rows; for a tensor map a matrix of whole groups of 128 bytes or at least as wide
 *          as a tile */
#include "cuda/blockperm/wgmma_rows_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/blockperm/common/row_ring.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

enum { THREADS = 512, PREPARE = 256, MULTIPLY = 256, MAKERS = 4, SET = 128 };

/* A row of the ring that a map copies takes 2, 6, 10, ... groups of 128 bytes: then the fragment reads, 32 bytes of four
 * neighbouring rows, hit all banks.  (Other ways that were tried: docs/kernels/wgmma_rows.md.) */
template <class T, int CHUNKED, int OUTS, int TILES> struct shape {
    enum {
        APART = TILES == 0,          /* the warpgroups take S tiles in turn, for the same columns */
        ACROSS = APART ? 1 : TILES,  /* tiles of a warpgroup */
        BLOCKS = OUTS == 1 ? 1 : 2,  /* a warpgroup's blocks of Y */
        SUMS = 32 * ACROSS * BLOCKS, /* of a thread */
        COLUMNS = 2 * ACROSS,        /* of A, of a thread */
        WIDTH = FSI_WGMMA_ROWS_WIDTH(OUTS, TILES),
        ROW_BYTES = FSI_WGMMA_ROWS_PITCH(sizeof(T), CHUNKED, OUTS, TILES),
        STAGE = FSI_WGMMA_ROWS_STAGE(sizeof(T), CHUNKED, OUTS, TILES), /* rows */
        STAGE_BYTES = STAGE * ROW_BYTES,
        HALF_SET = OUTS * S_TILE_BYTES, /* 64 local rows: an S tile for each block,
                                                                * one after the other */
        SET_BYTES = 2 * HALF_SET,
        PITCH = WIDTH + 4,               /* floats of a row of sums in shared memory */
        PREPARING = TILES == 2 ? 72 : 80 /* registers of a thread that prepares */
    };
};

/* Shared memory: sets of S tiles, stages, the mbarriers of stages and of sets; then slices, OUTS for each of the last
 * work items. */
template <class T, int CHUNKED, int OUTS, int TILES, int STAGES, int SETS> struct memory {
    typedef shape<T, CHUNKED, OUTS, TILES> sh;
    uint32_t sets, barriers, shifts; /* shifts: of rows that are copied by chunks */
    row_ring<T, sh::WIDTH, sh::STAGE, sh::ROW_BYTES, STAGES> ring;
    __device__ __forceinline__ explicit memory(const void *shared)
    {
        sets = fsi_shared_address(shared);
        ring.stages = sets + SETS * sh::SET_BYTES;
        ring.barriers = ring.stages + STAGES * sh::STAGE_BYTES;
        barriers = ring.barriers + 16 * STAGES;
        shifts = barriers + 16 * SETS;
    }
    __device__ __forceinline__ uint32_t set_full(int i) const { return barriers + 8 * i; }
    __device__ __forceinline__ uint32_t set_empty(int i) const { return barriers + 8 * (SETS + i); }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* The thread block's mbarriers; the caller synchronises. */
template <class T, int CHUNKED, int OUTS, int TILES, int STAGES, int SETS>
__device__ __forceinline__ void make_mbarriers(const memory<T, CHUNKED, OUTS, TILES, STAGES, SETS> &m)
{
    for (int i = 0; i < STAGES; i++) {
        /* copies of chunks report each thread's, and each warp its shifts */
        fsi_mbarrier_init(m.ring.full(i), CHUNKED ? COPIERS * 33 : COPIERS);
        fsi_mbarrier_init(m.ring.empty(i), MULTIPLY / 32 / (shape<T, CHUNKED, OUTS, TILES>::APART ? 2 : 1));
    }
    for (int i = 0; i < SETS; i++) {
        fsi_mbarrier_init(m.set_full(i), OUTS);
        fsi_mbarrier_init(m.set_empty(i), MULTIPLY / 32);
    }
}

/* The number of S tiles, 64 local rows each, of a slice, whose first local row is generated with its group of four; at
 * least one. */
[[maybe_unused]] __device__ __forceinline__ int s_tiles_of(fsi_slice p)
{
    align_local_rows(p);
    return p.count > 0 ? (int)((p.count + S_TILE - 1) / S_TILE) : 1;
}
/* Which of the sets of a work item, behind `before` of earlier ones, is the first that this warp makes. */
template <int OUTS> __device__ __forceinline__ int first_set(int before)
{
    return ((int)(threadIdx.x >> 5 & (MAKERS - 1)) / OUTS - before) & (MAKERS / OUTS - 1);
}
/* A generator warp makes the S tiles of a work item, those of one permutation, of every set or of every second or
 * fourth; every lane four local rows.  Words, where columns have them (FOURS), are known before the buffer of the set is
 * empty. */
template <bool FOURS, class T, int CHUNKED, int OUTS, int TILES, int STAGES, int SETS>
__device__ __forceinline__ void make_sets(const fsi_tile_args &a, fsi_slice p,
                                          const memory<T, CHUNKED, OUTS, TILES, STAGES, SETS> &m, uint8_t *sets,
                                          int set_count, int before)
{
    typedef shape<T, CHUNKED, OUTS, TILES> sh;
    enum { ONE = in_halves<T>::value ? F16_ONE : BF16_ONE };
    const int lane = threadIdx.x & 31, out = (threadIdx.x >> 5 & (MAKERS - 1)) % OUTS;
    const int lead = align_local_rows(p);
#pragma unroll 1
    for (int t = first_set<OUTS>(before); t < set_count; t += MAKERS / OUTS) {
        const int64_t local_row = (int64_t)t * SET + 4 * lane;
        const int number = before + t, place = number % SETS;
        uint32_t word[4];
        const int valid = local_rows_within(p, local_row, lead);
        if (FOURS) words_of_four(a, p, local_row, word);
        fsi_mbarrier_wait(m.set_empty(place), number / SETS & 1 ^ 1);
        uint8_t *s_tiles = sets + place * sh::SET_BYTES + out * S_TILE_BYTES,
                *mine = s_tiles + (lane >> 4) * sh::HALF_SET;
#pragma unroll
        for (int i = 0; i < 2 * S_TILE_BYTES / 512; i++)
            ((uint4 *)(s_tiles + i / (S_TILE_BYTES / 512) * sh::HALF_SET))[i % (S_TILE_BYTES / 512) * 32 + lane] =
                make_uint4(0, 0, 0, 0);
        __syncwarp();
        if (FOURS) put_local_rows<ONE>(a, p, mine, (int)local_row, valid, word);
        else
#pragma unroll 1
            for (int i = local_row < lead ? lead : 0; i < 4; i++) put_local_row<ONE>(a, p, mine, local_row + i);
        fsi_proxy_fence();
        __syncwarp();
        if (lane == 0) fsi_mbarrier_arrive(m.set_full(place));
    }
}
template <class T, int CHUNKED, int OUTS, int TILES, int STAGES, int SETS>
__device__ __forceinline__ void make_s_tiles(const fsi_tile_args &a, const fsi_slice &p,
                                             const memory<T, CHUNKED, OUTS, TILES, STAGES, SETS> &m, uint8_t *sets,
                                             int set_count, int before)
{
    if (made_by_fours(a)) make_sets<true>(a, p, m, sets, set_count, before);
    else make_sets<false>(a, p, m, sets, set_count, before);
}

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
 * that may be cut off; where they are fewer than four, it takes more rows for as many.  (Two-byte elements, whose
 * products have 11 or 8 bits, are promoted every 256 rows.) */
__device__ __forceinline__ int promotion(int s, int block_rows)
{
    return 16 * s >= block_rows ? 1 : 32 * s >= block_rows ? 2 : 4;
}

/* A consumer warpgroup: total = its slice of S A, `column` the first of the warp's columns, `out` the first of
 * its blocks.  A unit is loaded and cut while the one before it is multiplied; sums are promoted `every` so many
 * S tiles, a power of two, when the next unit is ready.  Where warpgroups take S tiles in turn, `side` says which.
 * `before` sets were for earlier work items; `at` continues from item to item. */
template <class T, int CHUNKED, int OUTS, int TILES, int STAGES, int SETS>
__device__ __forceinline__ void multiply_tiles(const memory<T, CHUNKED, OUTS, TILES, STAGES, SETS> &m, int tile_count,
                                               int every, int column, int out, int side, int before, ring_place &at,
                                               float (&total)[shape<T, CHUNKED, OUTS, TILES>::SUMS])
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
    for (int i = 0; i < sh::COLUMNS; i++) up[i] = FIRST_SCALE;
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

/* A thread's sums of a block, `own` its first column. */
template <class T, int CHUNKED, int TILES>
__device__ __forceinline__ void store_block(const fsi_tile_args &a, const fsi_slice &p, const float *total, int64_t own)
{
    if constexpr (!CHUNKED) store_tile<TILES>(a, p, total, own);
    else {
        const int first = column_at<T, CHUNKED, TILES>(0);
        store_scattered<TILES>(a, p, total, own - first, [](int c) { return column_at<T, CHUNKED, TILES>(c); });
    }
}

/* A thread's sums of a block in shared memory, from the warp's first column on; PITCH makes neighbouring rows of a warp
 * hit other banks. */
template <int TILES, int PITCH> __device__ __forceinline__ void keep_tile(float *tile, const float *total)
{
    const int lane = threadIdx.x & 31;
    float *first = tile + 2 * (lane & 3) * PITCH + (lane >> 2) * 2 * TILES;
#pragma unroll
    for (int b = 0; b < 8; b++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float *sum = total + 4 * b + i, *more = sum + (TILES - 1) * 32;
            float *row = first + (8 * b + i) * PITCH;
            if (TILES == 2) *(float4 *)row = make_float4(sum[0], sum[2], more[0], more[2]);
            else *(float2 *)row = make_float2(sum[0], sum[2]);
        }
}
#endif

template <class T, int CHUNKED, int OUTS, int TILES, int STAGES, int SETS> __global__ void __launch_bounds__(THREADS, 1)
    wgmma_rows(const __grid_constant__ fsi_tile_args a, const __grid_constant__ fsi_row_maps maps)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef shape<T, CHUNKED, OUTS, TILES> sh;
    extern __shared__ __align__(1024) uint8_t shared[];
    const memory<T, CHUNKED, OUTS, TILES, STAGES, SETS> m(shared);
    const int tid = threadIdx.x;
    fsi_slice *slices = (fsi_slice *)(shared + FSI_WGMMA_ROWS_PARTS(sizeof(T), CHUNKED, OUTS, TILES, STAGES, SETS));

    fsi_start_next_kernel();
    /* 1. what to do; mbarriers */
    fsi_slices_once(a, OUTS, sh::WIDTH, slices);
    if (!CHUNKED && tid == 32 * OUTS) fsi_fetch_map(&maps.all);
    if (tid == 32 * OUTS + 32) make_mbarriers(m);
    fsi_proxy_fence();
    __syncthreads();
    fsi_slice p = slices[0];
    const int64_t owned = CHUNKED ? p.column : place_columns<T, sh::WIDTH>(a, p);
    fsi_slice aligned = p;
    const int lead = align_local_rows(aligned), tile_count = (int)((aligned.count + S_TILE - 1) / S_TILE);

    /* 2. producer and consumer warpgroups */
    if (tid < PREPARE) {
        fsi_fewer_registers<sh::PREPARING>();
        if (tid < 32 * MAKERS) make_s_tiles(a, slices[(tid >> 5) % OUTS], m, shared, (tile_count + 1) / 2, 0);
        else {
            ring_place at = {0, 1};
            const int stage_count = tile_count * S_TILE / sh::STAGE;
            if constexpr (CHUNKED) copy_chunks(a, aligned, lead, m.ring, m.shifts, stage_count, at);
            else
                copy_rows(a, maps, aligned, owned, lead, m.ring,
                          FSI_WGMMA_ROWS_BOX(sizeof(T), OUTS, TILES, a.B.shuffle == FSI_DEF_NONE) > 1, stage_count, at);
        }
        fsi_barrier_or(1, THREADS, false);
        if (!CHUNKED && a.cluster > 1)
            add_cluster_sums<OUTS, sh::WIDTH, sh::PITCH, THREADS>(a, slices, p.column, owned, (float *)shared, tid);
    } else {
        fsi_more_registers<256 - sh::PREPARING>();
        const int thread = tid - PREPARE, group = thread >> 7, out = OUTS == 4 ? group * 2 : 0;
        const int column = (OUTS == 4 ? 0 : group * TILES * 64) +
                           (thread >> 5 & 3) * sh::ACROSS * 16; /* the warp's first */
        float total[sh::SUMS];
        const int every = is_float<T>::value ? promotion((int)a.B.s, p.block_rows) : 4;
        ring_place at = {0, 0};
        multiply_tiles(m, tile_count, every, column, out, sh::APART ? group : 0, 0, at, total);

        /* 3. all finite: scale once, store once */
        const bool again = fsi_barrier_or(1, THREADS, !finite<T, CHUNKED, sh::ACROSS>(total, a.n - p.column - column));
        if (again && thread < sh::WIDTH * OUTS) {
            const fsi_slice &mine = slices[thread / sh::WIDTH];
            const int64_t own = p.column + thread % sh::WIDTH;
            float *sums = (float *)shared + thread / sh::WIDTH * HEIGHT * sh::PITCH + thread % sh::WIDTH;
            add_serial<T>(a, mine, own, sums, sh::PITCH);
            if (a.cluster == 1 && own >= owned && own < a.n)
                for (int r = 0; r < mine.block_rows; r++)
                    fsi_output_put(fsi_partial_sums(a, mine.l, mine.z), mine.output_row + r, own, sums[r * sh::PITCH]);
        }
        if (sh::APART && !again) {
            float *left = (float *)shared + (thread & 127);
            if (group == 1)
#pragma unroll
                for (int i = 0; i < sh::SUMS; i++) left[128 * i] = total[i];
            fsi_barrier(2, MULTIPLY);
            if (group == 1) return;
#pragma unroll
            for (int i = 0; i < sh::SUMS; i++) total[i] += left[128 * i];
        }
        if (!CHUNKED && a.cluster > 1) {
            if (!again)
                for (int i = 0; i < sh::BLOCKS; i++)
                    keep_tile<sh::ACROSS, sh::PITCH>((float *)shared + (out + i) * HEIGHT * sh::PITCH + column,
                                                     total + 32 * i);
            add_cluster_sums<OUTS, sh::WIDTH, sh::PITCH, THREADS>(a, slices, p.column, owned, (float *)shared, tid);
        } else if (!again) {
            const int64_t own = p.column + column + column_at<T, CHUNKED, sh::ACROSS>(0);
            if (own < owned) return;
#pragma unroll
            for (int i = 0; i < sh::BLOCKS; i++)
                store_block<T, CHUNKED, sh::ACROSS>(a, slices[out + i], total + 32 * i, own);
        }
    }
#endif
}

/* Calls with_item(item, number) for every work item of a thread block. */
template <class F> __device__ __forceinline__ void each_item(const fsi_tile_args &a, F with_item)
{
    int number = 0;
    uint32_t item = blockIdx.x;
#pragma unroll 1
    do with_item(item, number++);
    while ((item += gridDim.x) < a.blocks);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* A column of a slice recomputed by plain additions: see add_serial. */
template <class T>
__device__ __noinline__ void put_again(const fsi_tile_args &a, const fsi_slice &p, int64_t column, int64_t owned)
{
    float sums[HEIGHT];
    add_serial<T>(a, p, column, sums, 1);
    if (column >= owned && column < a.n)
        for (int r = 0; r < p.block_rows; r++)
            fsi_output_put(fsi_partial_sums(a, p.l, p.z), p.output_row + r, column, sums[r]);
}
#endif

/* One block of Y for a work item, no clusters. */
template <class T, int CHUNKED, int TILES, int STAGES, int SETS> __global__ void __launch_bounds__(THREADS, 1)
    wgmma_rows_persistent(const __grid_constant__ fsi_tile_args a, const __grid_constant__ fsi_row_maps maps)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef shape<T, CHUNKED, 1, TILES> sh;
    extern __shared__ __align__(1024) uint8_t shared[];
    const memory<T, CHUNKED, 1, TILES, STAGES, SETS> m(shared);
    const int tid = threadIdx.x;
    fsi_slice *slices = (fsi_slice *)(shared + FSI_WGMMA_ROWS_PARTS(sizeof(T), CHUNKED, 1, TILES, STAGES, SETS));

    fsi_start_next_kernel();
    /* 1. mbarriers */
    if (!CHUNKED && tid == 32) fsi_fetch_map(&maps.all);
    if (tid == 64) make_mbarriers(m);
    fsi_proxy_fence();
    __syncthreads();

    /* 2. producer and consumer warpgroups; the warp that generates the first set of a work item leaves its slice for
     * the consumers */
    if (tid < PREPARE) {
        fsi_fewer_registers<sh::PREPARING>();
        if (tid < 32 * MAKERS) {
            int before = 0;
            each_item(a, [&](uint32_t item, int number) {
                const fsi_slice p = fsi_slice_of(a, 1, sh::WIDTH, item);
                if (first_set<1>(before) == 0 && (tid & 31) == 0) slices[number % FSI_WGMMA_ROWS_AHEAD(1, SETS, 1)] = p;
                const int set_count = (s_tiles_of(p) + 1) / 2;
                make_s_tiles(a, p, m, shared, set_count, before);
                before += set_count;
            });
        } else {
            ring_place at = {0, 1};
            each_item(a, [&](uint32_t item, int) {
                fsi_slice p = fsi_slice_of(a, 1, sh::WIDTH, item);
                const int64_t owned = CHUNKED ? p.column : place_columns<T, sh::WIDTH>(a, p);
                const int stage_count = s_tiles_of(p) * S_TILE / sh::STAGE, lead = align_local_rows(p);
                if constexpr (CHUNKED) copy_chunks(a, p, lead, m.ring, m.shifts, stage_count, at);
                else
                    copy_rows(a, maps, p, owned, lead, m.ring,
                              FSI_WGMMA_ROWS_BOX(sizeof(T), 1, TILES, a.B.shuffle == FSI_DEF_NONE) > 1, stage_count,
                              at);
            });
        }
        return;
    }
    fsi_more_registers<256 - sh::PREPARING>();
    const int thread = tid - PREPARE, column = (thread >> 7) * TILES * 64 + (thread >> 5 & 3) * TILES * 16;
    ring_place at = {0, 0};
    int before = 0;
    each_item(a, [&](uint32_t, int number) {
        fsi_mbarrier_wait(m.set_full(before % SETS), before / SETS & 1); /* then the slice is there too */
        const fsi_slice *slice = slices + number % FSI_WGMMA_ROWS_AHEAD(1, SETS, 1);
        const int tile_count = s_tiles_of(*slice);
        const int every = is_float<T>::value ? promotion((int)a.B.s, slice->block_rows) : 4;
        float total[sh::SUMS];
        multiply_tiles(m, tile_count, every, column, 0, 0, before, at, total);
        before += (tile_count + 1) / 2;
        if ((tid & 31) == 0) fsi_mbarrier_arrive(m.set_empty((before - 1) % SETS));

        /* 3. all finite: scale once, store once */
        fsi_slice p = *slice;
        const bool again = fsi_barrier_or(1, MULTIPLY, !finite<T, CHUNKED, sh::ACROSS>(total, a.n - p.column - column));
        const int64_t owned = CHUNKED ? p.column : place_columns<T, sh::WIDTH>(a, p);
        if (again) {
            if (thread < sh::WIDTH) put_again<T>(a, *slice, p.column + thread, owned);
        } else {
            const int64_t own = p.column + column + column_at<T, CHUNKED, sh::ACROSS>(0);
            if (own >= owned) store_block<T, CHUNKED, sh::ACROSS>(a, p, total, own);
        }
    });
#endif
}

}  // namespace

/* The plan file knows how much shared memory an instance takes. */
#define SHARED(T, dtype, chunked, outs, tiles, stages, sets, many) \
    static_assert(FSI_WGMMA_ROWS_SHARED(sizeof(T), chunked, outs, tiles, stages, sets, many) == \
                      sets * shape<T, chunked, outs, tiles>::SET_BYTES + \
                          stages * shape<T, chunked, outs, tiles>::STAGE_BYTES + 16 * (stages + sets) + \
                          chunked * stages * shape<T, chunked, outs, tiles>::STAGE + \
                          FSI_WGMMA_ROWS_AHEAD(outs, sets, many) * outs * sizeof(fsi_slice), \
                  "the instance list disagrees");
FSI_WGMMA_ROWS(SHARED)
#define KERNEL_0(T, chunked, outs, tiles, stages, sets) (const void *)wgmma_rows<T, chunked, outs, tiles, stages, sets>,
#define KERNEL_1(T, chunked, outs, tiles, stages, sets) \
    (const void *)wgmma_rows_persistent<T, chunked, tiles, stages, sets>,
#define KERNEL(T, dtype, chunked, outs, tiles, stages, sets, many) KERNEL_##many(T, chunked, outs, tiles, stages, sets)
static const void *const wgmma_rows_instances[] = {FSI_WGMMA_ROWS(KERNEL)};
#define MAPPED(T, dtype, chunked, outs, tiles, stages, sets, many) !(chunked),
static const bool wgmma_rows_mapped[] = {FSI_WGMMA_ROWS(MAPPED)};

static fs_result launch_wgmma_rows(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                   const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    fsi_row_maps maps = {};
    if (wgmma_rows_mapped[plan->instance])
        FSI_TRY(fsi_gpu_row_maps(gpu, operands->from, fsi_plan_width(plan), fsi_plan_box(problem, plan), &maps));
    if (fsi_plan_is_persistent(plan) && l.args.blocks > gpu->traits.processors)
        l.config.gridDim = dim3((unsigned)gpu->traits.processors);
    void *arguments[] = {&l.args, &maps};
    return fsi_tile_launch_run(&l, wgmma_rows_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_wgmma_rows_code = {launch_wgmma_rows, wgmma_rows_instances};
