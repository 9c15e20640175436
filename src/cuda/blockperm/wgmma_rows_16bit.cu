/* wgmma_rows_16bit.cu - BlockPerm-SJLT of two-byte elements on the tensor cores of sm_90, rows of A contiguous, where
 * one wave of thread blocks computes all of Y, or where a block has two output tiles.
 *
 * Formulation.  The 64 rows of an output tile are the M axis of the tensor cores, 32 local rows the K axis, 64 columns
 * of A the N axis.  Rows of A are 128 bytes of such a tile, and the tensor cores take them from where they were copied
 * to.  The tiles of S are their other operand, in registers, and sparse: no two columns of a window share a row, so a
 * row of S has at most two nonzeros in suitable fours of local rows, and wgmma.sp multiplies two elements of each four
 * neighbours along K, in half the time of all four.  Tiles can be narrow: a buffer in shared memory is rows of A and
 * little else, and few sums have to be added between thread blocks, which would dominate where reading A takes
 * microseconds.  (S is generated once for every 64 columns instead of 256; wgmma_rows.cu has persistent thread blocks.)
 *
 * Fours.  Local row u of 16 is element u / 4 of four u % 4, so that a row of S has elements of the same numbers in all
 * fours of the 16.  Where windows are 16 or 32 local rows it has one nonzero at most, at u, and its elements are 0 and
 * 1 where u < 8, otherwise 2 and 3.  Where they are 8 it has two, one among elements 0 and 1 and one among 2 and
 * 3.  An element is 0 or +-2, whose sign and highest bit of the exponent are stored as two bits; sums are halved when
 * they are promoted.  A word of S is a four and 8 rows, two elements of each row, from which the lanes with these rows
 * take theirs by a shift.
 *
 * Producer warps take units of 128 local rows in turn: they compute the rows, copy them, and store these words, made
 * of the digits and signs of whole windows.  Groups of four consumer warps multiply.  Where a block has one output
 * tile they take units in turn, too, and two groups of a thread block add their sums in shared memory; where it has
 * two, TILES = 2, each group has one of them for all units.  Thread blocks of a cluster then have slices of the same
 * sums: each sends the others the shares that they add, and waits only for data addressed to it.  Because transfers
 * between SMs are slow, groups add theirs first, and all thread blocks reduce equal shares.
 * Producer warps execute the epilogue predicated off, to prefetch its instructions into the instruction cache.
 * Accuracy, Inf and NaN: as in wgmma_rows.cu; sums are promoted every 256 local rows.
 *
 * grid     x: CLUSTER x M, y: column tiles, z: slices / CLUSTER
 * threads  GROUPS x 128 of consumer warps, PREPARERS x 32 of producer warps
 * shared   PLACES stages of a unit: its rows, then its words of S; sums for the other group; sums received from the
 *          cluster; mbarriers
 * needs    sm_90; kappa = 1, blocks of TILES output tiles of 64 rows, with NONZEROS of 2, 4, 8 each, packed words,
 *          shuffled rows or no shuffle; rows of whole 16 bytes at multiples of 16, fewer than 2^32 of them */
#include "cuda/blockperm/wgmma_rows_16bit_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

enum {
    COLUMNS = FSI_WGMMA_ROWS_16BIT_COLUMNS,
    UNIT = FSI_WGMMA_ROWS_16BIT_UNIT,
    DEPTH = 2 * STEP, /* local rows that the tensor cores multiply at a time */
    STEPS = UNIT / DEPTH,
    GROUP = FSI_WGMMA_ROWS_16BIT_GROUP,
    ROW_BYTES = 2 * COLUMNS,
    UNIT_BYTES = UNIT * ROW_BYTES,
    STEP_BYTES = FSI_WGMMA_ROWS_16BIT_STEP, /* words of S of a step and an output tile, ... */
    WARP_BYTES = STEP_BYTES / 4,            /* ... of the 16 rows of a warp, ... */
    FOUR_BYTES = WARP_BYTES / 4,            /* ... of its fours that a lane has, for both halves of a step */
    CODES_BYTES = FSI_WGMMA_ROWS_16BIT_CODES,
    EIGHTS = HEIGHT / 8,           /* of an output tile */
    EIGHT_BYTES = 8 * COLUMNS * 4, /* eight rows of sums */
    QUARTER_BYTES = 512,           /* 16 columns of them */
    PITCH = COLUMNS + 8            /* floats of a row of recomputed sums */
};

template <int NONZEROS, int PLACES, int GROUPS, int CLUSTER, int TILES> struct memory {
    enum {
        IN_TURN = GROUPS / TILES,    /* groups that share the units of an output tile */
        CODES = TILES * CODES_BYTES, /* of a unit */
        QUARTERS = 4 * EIGHTS * TILES,
        TWICE = IN_TURN > 1 ? EIGHTS *EIGHT_BYTES : 0, /* sums that groups have for each other */
        OWNED = (QUARTERS + CLUSTER - 1) / CLUSTER,    /* quarters that a thread block adds, at most */
        SENT = (CLUSTER - 1) * OWNED * QUARTER_BYTES   /* sums of other thread blocks */
    };
    uint32_t rows, codes, sums, barriers;
    __device__ __forceinline__ explicit memory(const void *shared)
    {
        rows = fsi_shared_address(shared);
        codes = rows + PLACES * UNIT_BYTES;
        sums = codes + PLACES * CODES;
        barriers = sums + TWICE + SENT;
    }
    __device__ __forceinline__ uint32_t copied(int i) const { return barriers + 8 * i; }
    __device__ __forceinline__ uint32_t drawn(int i) const { return barriers + 8 * (PLACES + i); }
    __device__ __forceinline__ uint32_t empty(int i) const { return barriers + 8 * (2 * PLACES + i); }
    __device__ __forceinline__ uint32_t received(int eight) const { return barriers + 8 * (3 * PLACES + eight); }
    /* Sums that one group leaves for the other. */
    __device__ __forceinline__ uint32_t left(int eight) const { return sums + eight * EIGHT_BYTES; }
    /* A quarter from another thread block, number i of the others, in the thread block that adds it. */
    __device__ __forceinline__ uint32_t sent(int quarter, int i) const
    {
        return sums + TWICE + (quarter / CLUSTER * (CLUSTER - 1) + i) * QUARTER_BYTES;
    }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <int NONZEROS, int PLACES, int GROUPS, int CLUSTER, int TILES>
__device__ __forceinline__ void make_mbarriers(const memory<NONZEROS, PLACES, GROUPS, CLUSTER, TILES> &m)
{
    for (int i = 0; i < PLACES; i++) {
        fsi_mbarrier_init(m.copied(i), 32);
        fsi_mbarrier_init(m.drawn(i), 1);
        fsi_mbarrier_init(m.empty(i), TILES * GROUP / 32);
    }
    if (CLUSTER > 1)
        for (int eight = 0; eight < EIGHTS * TILES; eight++) {
            int owned = 0;
            for (int i = 0; i < 4; i++) owned += (4 * eight + i) % CLUSTER == fsi_cluster_rank();
            fsi_mbarrier_init(m.received(eight), 1);
            fsi_mbarrier_arrive_expect(m.received(eight), owned * (CLUSTER - 1) * QUARTER_BYTES);
        }
}

/* Whether neighbouring local rows are neighbouring columns, as they also are where one block gets all rows of a
 * round. */
__device__ __forceinline__ bool in_order(const fsi_blockperm &B) { return B.shuffle == FSI_DEF_NONE || B.ways == 1; }

/* The low 16 bits of x as the upper ones of 16 pairs of bits. */
__device__ __forceinline__ uint32_t upper_of_pairs(uint32_t x)
{
    x = (x | x << 8) & 0x00FF00FFu;
    x = (x | x << 4) & 0x0F0F0F0Fu;
    x = (x | x << 2) & 0x33333333u;
    return (x << 1 | x << 2) & 0xAAAAAAAAu;
}
__device__ __forceinline__ uint32_t rotated(uint32_t x, uint32_t by) { return __funnelshift_r(x, x, by); }

/* Words of S of a window: those for the 16 rows of warp `sixteen`.  `random` are the window's random words, `number` is
 * its number in the unit, `codes` where the words of the output tile begin.  For every half of a step there are
 *     at STEP_BYTES step + WARP_BYTES sixteen + FOUR_BYTES j + 8 half + 4 i: four j, rows 8 i ... 8 i + 7, from the top
 *         of a half word on; in the upper half word the second of the two elements, in the lower the first
 *     at STEPS STEP_BYTES + 32 sixteen + 16 half + 4 step: 16 rows from bit 15 on, whether their elements are 2 and 3;
 *         where windows are 8, whether the first is 1, and from bit 31 on, whether the second is 3
 * A stratum's row r has column v = (r - x) mod ROWS of the window.  Patterns of columns, column 0 at the top of ROWS
 * bits, become patterns of rows when they are rotated by x; those of fewer than 32 bits are repeated. */
template <int ROWS>
__device__ __forceinline__ void put_window(const fsi_quad &random, uint32_t number, uint32_t sixteen, uint32_t codes)
{
    enum { FIELD = ROWS == 8 ? 4 : ROWS == 16 ? 5 : 6, LANES = ROWS / 2 };
    const uint32_t step = number * ROWS / DEPTH, half = number * ROWS / STEP & 1;
    const uint32_t to = codes + step * STEP_BYTES + sixteen * WARP_BYTES + 8 * half;
    const uint32_t to_places = codes + STEPS * STEP_BYTES + sixteen * 32 + half * 16 + step * 4;
#pragma unroll
    for (int i = 0; i < (ROWS == 8 ? 2 : 1); i++) {
        const uint32_t stratum = ROWS == 8 ? 2 * sixteen + i : ROWS == 16 ? sixteen : sixteen >> 1;
        const uint32_t digit = random.w[0] << stratum * FIELD >> (32 - FIELD), x = digit >> 1;
        uint32_t minus = random.w[1] << stratum * LANES >> (32 - LANES) << LANES |
                         random.w[2] << stratum * LANES >> (32 - LANES);
        if (ROWS == 8) minus *= 0x01010101u;
        if (ROWS == 16) minus *= 0x00010001u;
        minus = rotated(minus, x) ^ (0u - (digit & 1));
        if (ROWS == 8) {
            const uint32_t rows = upper_of_pairs(minus >> 24) | 0x5555u, places = rotated(0x0F0F0F0Fu, x);
            fsi_shared_put8(to_places + 2 * (number & 1) + 1 - i, places);
#pragma unroll
            for (uint32_t j = 0; j < 4; j++)
                fsi_shared_put16(to + j * FOUR_BYTES + 4 * i + 2 * (number & 1), rows & 0xC0C0u >> 2 * (x + j & 3));
        } else {
            const uint32_t lower = ROWS == 32 ? 16 * (sixteen & 1) : 0; /* the lower half of the stratum's rows */
            const uint32_t rows = upper_of_pairs(minus << lower >> 16) | 0x55555555u;
            const uint32_t places = rotated(0x00FF00FFu, x);
            uint32_t first = rows, last = 0; /* columns 0 ... 15, 16 ... 31 */
            if (ROWS == 32) {
                const uint32_t there = upper_of_pairs(rotated(0xFFFF0000u, x) << lower >> 16);
                first = rows & (there | there >> 1), last = rows & ~first;
                fsi_shared_put32(to_places + 16, places);
            }
            fsi_shared_put32(to_places, places);
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) {
                /* the order of fours keeps lanes on different banks */
                const uint32_t j = k + step & 3, y = x + j, at = to + j * FOUR_BYTES;
                const uint32_t four = rotated(0x00C0C000u >> 2 * (y & 3), (y & 4) << 2);
                const uint32_t a = fsi_bytes<0x3232>(first, 0) & four, b = fsi_bytes<0x1010>(first, 0) & four;
                if (ROWS == 32)
                    fsi_shared_put4(at, a, b, fsi_bytes<0x3232>(last, 0) & four, fsi_bytes<0x1010>(last, 0) & four);
                else fsi_shared_put2(at, a, b);
            }
        }
    }
}

/* A producer warp.  A lane has four neighbouring local rows 4 q ... 4 q + 3 of 16; they are element q of the fours, K
 * positions q, q + 4, q + 8 and q + 12, and so are their rows in shared memory, whose 16-byte chunks are swizzled as
 * the tensor cores expect: chunk c of row r is at c ^ (r % 8).  Eight lanes copy a row.  Empty local rows read rows of
 * zeros; columns behind the last are zero.  The first copies do not wait until all threads know of the mbarriers:
 * `begun` waits. */
template <int PREPARERS, int NONZEROS, int PLACES, int GROUPS, int CLUSTER, int TILES, class F>
__device__ __forceinline__ void prepare_units(const fsi_tile_args &a, const fsi_philox_keys &keys, fsi_slice p,
                                              const memory<NONZEROS, PLACES, GROUPS, CLUSTER, TILES> &m, int warp,
                                              F begun)
{
    static_assert(PLACES % PREPARERS == 0, "a stage is always the same warp's");
    const int lane = threadIdx.x & 31, q = lane >> 3, chunk = lane & 7;
    enum {
        ROWS = HEIGHT / NONZEROS,
        WINDOWS = UNIT / ROWS,
        SHARERS = 32 / (WINDOWS * TILES) /* lanes that store the words of a window */
    };
    static_assert(SHARERS >= 1 && SHARERS <= 4, "a lane stores whole sixteens of rows");
    const int lead = align_local_rows(p, DEPTH), unit_count = (int)((p.count + UNIT - 1) / UNIT);
    const uint64_t from = (uint64_t)a.data + (p.column + 8 * chunk) * 2, stride = 2 * a.row_stride;
    const int bytes = p.column + 8 * chunk < a.n ? 16 : 0;
    const uint32_t even = q * ROW_BYTES + ((chunk ^ q) << 4);
    const uint32_t odd = (q + 4) * ROW_BYTES + ((chunk ^ (q + 4)) << 4);
    const int64_t ways = in_order(a.B) ? 1 : a.B.ways;
    const int64_t start = a.B.shuffle == FSI_DEF_NONE ? fsi_split_start(&a.B.in, p.h) : 0; /* column of local row 0 */
    const int window = lane % WINDOWS, tile = lane / WINDOWS % TILES, share = lane / (WINDOWS * TILES);
    const auto offset = [=](int i) { /* of local row 4 q + i % 4 of 16 number i / 4 */
                                     return (i & 1 ? odd : even) + (i >> 1 & 1) * 8 * ROW_BYTES +
                                            (i >> 2) * STEP * ROW_BYTES;
    };
#pragma unroll 1
    for (int t = warp; t < unit_count; t += PREPARERS) {
        const int64_t local_row = (int64_t)t * UNIT + 4 * lane;
        const int place = t % PLACES;
        int64_t column[4];
        uint32_t row[4];
        if (in_order(a.B))
#pragma unroll
            for (int i = 0; i < 4; i++) column[i] = start + p.first + local_row + i;
        else columns_of_four(a.B, p.h, p.first + local_row, column);
        /* most units have a row in every local row */
        const int64_t begin = start + (p.first + t * UNIT) * ways - a.row0, end = begin + UNIT * ways;
        const bool whole = t * UNIT >= lead && (t + 1) * UNIT <= p.count && begin >= 0 && end <= a.rows;
        const int valid = whole ? 15 : local_rows_there(a, p, local_row, lead, column);
#pragma unroll
        for (int i = 0; i < 4; i++) row[i] = valid >> i & 1 ? (uint32_t)(column[i] - a.row0) : ~0u;
        if (t >= PLACES) fsi_mbarrier_wait(m.empty(place), t / PLACES & 1 ^ 1);
        const uint32_t to = m.rows + place * UNIT_BYTES;
        if (whole && stride >> 32 == 0)
#pragma unroll
            for (int i = 0; i < UNIT / 4; i++) {
                const uint32_t r = __shfl_sync(~0u, row[i & 3], (i & ~3) + q);
                fsi_copy16_once(to + offset(i), (const void *)fsi_mad_wide(r, (uint32_t)stride, from), bytes);
            }
        else
#pragma unroll 1
            for (int i = 0; i < UNIT / 4; i++) {
                const uint32_t mine = i & 2 ? (i & 1 ? row[3] : row[2]) : (i & 1 ? row[1] : row[0]);
                const uint32_t r = __shfl_sync(~0u, mine, (i & ~3) + q);
                fsi_copy16_once(to + offset(i), (const void *)(from + (r == ~0u ? 0 : r) * stride),
                                r == ~0u ? 0 : bytes);
            }
        if (t == warp) begun();
        fsi_mbarrier_arrive_copied(m.copied(place));
        /* words are drawn while rows are in flight, from precomputed round keys */
        const fsi_quad random = fsi_philox_by(
            &keys, fsi_blockperm_packed_counter(&a.B, p.h, p.first + (int64_t)t * UNIT + window * ROWS, tile));
#pragma unroll
        for (int i = 0; i < 4 / SHARERS; i++)
            put_window<ROWS>(random, window, i * SHARERS + share, m.codes + place * m.CODES + tile * CODES_BYTES);
        __syncwarp();
        if (lane == 0) fsi_mbarrier_arrive(m.drawn(place));
    }
    if (warp >= unit_count) begun();
}

/* A warp has read unit t: its stage may be filled again. */
template <int NONZEROS, int PLACES, int GROUPS, int CLUSTER, int TILES>
__device__ __forceinline__ void release_unit(const memory<NONZEROS, PLACES, GROUPS, CLUSTER, TILES> &m, int t)
{
    __syncwarp();
    if ((threadIdx.x & 31) == 0) fsi_mbarrier_arrive(m.empty(t % PLACES));
}

/* The numbers of elements of two rows, as fsi_wgmma_sparse takes them, from a word of put_window with these rows' bits
 * at the top of bytes. */
template <int ROWS> __device__ __forceinline__ uint32_t places_of(uint32_t word)
{
    const uint32_t first = fsi_bytes<0x8899>(word, 0); /* each bit 16 times */
    if (ROWS > 8) return 0x44444444u ^ (first & 0xAAAAAAAAu);
    return 0x88888888u | (first & 0x11111111u) | (fsi_bytes<0xAABB>(word, 0) & 0x44444444u);
}
/* A group of consumer warps: total = the sums of its units.  Its warps have 16 rows of an output tile each.  The
 * elements of S are made for a unit while the one before is multiplied; two units are added on the tensor cores.  A
 * stage is released when its unit is done, at the latest before the warp waits for the next one. */
template <class T, int NONZEROS, int PLACES, int GROUPS, int CLUSTER, int TILES>
__device__ __forceinline__ void multiply_units(const memory<NONZEROS, PLACES, GROUPS, CLUSTER, TILES> &m, int group,
                                               int unit_count, float (&total)[32])
{
    enum { HALF = is_half<T>::value, ROWS = HEIGHT / NONZEROS, IN_TURN = GROUPS / TILES };
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3, r = lane >> 2;
    const uint32_t codes = m.codes + (TILES > 1 ? group * CODES_BYTES : 0);
    const uint32_t elements = codes + warp * WARP_BYTES + (lane & 3) * FOUR_BYTES;
    const uint32_t places = codes + STEPS * STEP_BYTES + warp * 32 + (lane & 1) * 16;
    const uint32_t up = 1u << 2 * r; /* to the top of half words, by the multiplier, which has less to do */
    const int begin = TILES > 1 ? 0 : group;
    float sums[32];
    uint32_t x[2][STEPS][4], where[2][STEPS];
    const auto make = [&](int t, int set) {
        const uint32_t behind = t % PLACES * m.CODES;
        fsi_mbarrier_wait(m.drawn(t % PLACES), t / PLACES & 1);
        fsi_shared_words<16>(where[set], places + behind);
#pragma unroll
        for (int k = 0; k < STEPS; k++) fsi_shared_words<16>(x[set][k], elements + behind + k * STEP_BYTES);
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            where[set][k] = places_of<ROWS>(where[set][k] << r);
#pragma unroll
            for (int i = 0; i < 4; i++) x[set][k][i] = x[set][k][i] * up & 0xC000C000u;
        }
    };
    const auto multiply = [&](int t, int set) {
        const uint64_t rows = fsi_wgmma_operand(m.rows + t % PLACES * UNIT_BYTES);
        fsi_wgmma_fence();
#pragma unroll
        for (int k = 0; k < STEPS; k++)
            fsi_wgmma_sparse<HALF>(sums, x[set][k], where[set][k], rows + k * (DEPTH * ROW_BYTES >> 4), set || k);
        fsi_wgmma_commit();
    };
    /* Registers that wgmma reads keep their values until here. */
    const auto keep = [&](int set) {
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            asm volatile("" ::"r"(where[set][k]));
#pragma unroll
            for (int i = 0; i < 4; i++) asm volatile("" ::"r"(x[set][k][i]));
        }
    };
#pragma unroll
    for (int i = 0; i < 32; i++) total[i] = 0.0f;
    if (begin < unit_count) make(begin, 0);
#pragma unroll 1
    for (int t = begin; t < unit_count; t += 2 * IN_TURN) {
        fsi_mbarrier_wait(m.copied(t % PLACES), t / PLACES & 1);
        fsi_proxy_fence();
        multiply(t, 0);
        const int u = t + IN_TURN;
        if (u < unit_count) {
            make(u, 1);
            const bool there = fsi_mbarrier_test(m.copied(u % PLACES), u / PLACES & 1);
            if (!there) {
                fsi_wgmma_wait<0>();
                release_unit(m, t);
                fsi_mbarrier_wait(m.copied(u % PLACES), u / PLACES & 1);
            }
            fsi_proxy_fence();
            multiply(u, 1);
            fsi_wgmma_wait<1>();
            keep(0);
            if (there) release_unit(m, t);
            if (u + IN_TURN < unit_count) make(u + IN_TURN, 0);
            fsi_wgmma_wait<0>();
            keep(1);
            release_unit(m, u);
        } else {
            fsi_wgmma_wait<0>();
            keep(0);
            release_unit(m, t);
        }
        /* The compiler does not know that sums change until wgmma is waited for. */
#pragma unroll
        for (int i = 0; i < 32; i++) asm volatile("" : "+f"(sums[i])::"memory");
#pragma unroll
        for (int i = 0; i < 32; i++) total[i] = fmaf(sums[i], 0.5f, total[i]);
    }
}

/* A thread's sums, total[4 b + 2 v + i]: row 8 (2 warp + v) + lane / 4, column 8 b + 2 (lane % 4) + i of the tile.
 * Of eight rows, those of one v, columns from 16 q on are quarter q. */
__device__ __forceinline__ float4 quarter_of(const float (&total)[32], int v, int q)
{
    return make_float4(total[8 * q + 2 * v], total[8 * q + 2 * v + 1], total[8 * q + 2 * v + 4],
                       total[8 * q + 2 * v + 5]);
}
__device__ __forceinline__ void add_to(float4 &sum, const float4 &x)
{
    sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
}
/* Each of two groups that take units in turn continues with four eights, those of v = group: it stores the others for the
 * other group ... */
template <int NONZEROS, int PLACES, int GROUPS, int CLUSTER, int TILES>
__device__ __forceinline__ void leave_sums(const memory<NONZEROS, PLACES, GROUPS, CLUSTER, TILES> &m, bool live,
                                           int group, const float (&total)[32])
{
    if (m.IN_TURN == 1) return;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3;
    const uint32_t at = m.left(2 * warp + 1 - group) + 16 * lane;
#pragma unroll
    for (int q = 0; q < 4; q++)
        fsi_shared_put4(live, at + q * QUARTER_BYTES, group ? quarter_of(total, 0, q) : quarter_of(total, 1, q));
}
/* ... and adds, behind a barrier, those that the other has stored. */
template <int NONZEROS, int PLACES, int GROUPS, int CLUSTER, int TILES>
__device__ __forceinline__ void take_sums(const memory<NONZEROS, PLACES, GROUPS, CLUSTER, TILES> &m, bool live,
                                          int group, const float (&total)[32], float4 (&mine)[2 * TILES / GROUPS][4])
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3;
#pragma unroll
    for (int q = 0; q < 4; q++)
        if (m.IN_TURN == 1) {
            mine[0][q] = quarter_of(total, 0, q), mine[2 * TILES / GROUPS - 1][q] = quarter_of(total, 1, q);
        } else {
            float4 other = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            mine[0][q] = group ? quarter_of(total, 1, q) : quarter_of(total, 0, q);
            fsi_shared_get4(live, m.left(2 * warp + group) + 16 * lane + q * QUARTER_BYTES, &other);
            add_to(mine[0][q], other);
        }
}
/* mine: sums of eight rows of this thread block, then of all of the cluster: thread block `quarter % CLUSTER` gets a
 * quarter from all others, and adds them to its own in their order.  The result has a bit for each quarter of this
 * thread block. */
template <int NONZEROS, int PLACES, int GROUPS, int CLUSTER, int TILES>
__device__ __forceinline__ int add_sums(const memory<NONZEROS, PLACES, GROUPS, CLUSTER, TILES> &m, bool live, int eight,
                                        float4 (&mine)[4])
{
    if (CLUSTER == 1) return live ? 15 : 0;
    const int lane = threadIdx.x & 31, rank = fsi_cluster_rank();
    int owned = 0;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const int quarter = 4 * eight + q, to = quarter % CLUSTER;
        owned |= (live && to == rank) << q;
        const uint32_t at = m.sent(quarter, rank - (rank > to)) + 16 * lane;
        fsi_cluster_send4(live && to != rank, fsi_cluster_address(at, to), mine[q],
                          fsi_cluster_address(m.received(eight), to));
    }
    if (owned) fsi_mbarrier_wait(m.received(eight), 0);
#pragma unroll
    for (int q = 0; q < 4; q++) {
        if (live && !(owned >> q & 1)) continue;
        const uint32_t at = m.sent(4 * eight + q, 0) + 16 * lane;
#pragma unroll
        for (int i = 0; i < CLUSTER - 1; i++) {
            float4 next = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            fsi_shared_get4(live, at + i * QUARTER_BYTES, &next);
            add_to(mine[q], next);
        }
    }
    return owned;
}

/* Where a thread's sums go if all of the tile is in Y, a plain matrix of A's type: its first; else NULL. */
template <class T> struct target {
    char *first;
    int64_t eight; /* bytes from a row to the eighth behind it */
    float factor;
    target() = default;
    __device__ __forceinline__ target(const fsi_tile_args &a, const fsi_slice &p, int row, int64_t column)
    {
        const fsi_output to = fsi_partial_sums(a, p.l, p.z);
        first = (char *)to.data + ((p.output_row + row) * to.row_stride + column) * 2;
        eight = to.row_stride * 16;
        factor = (float)to.factor;
        if (to.dtype != (is_half<T>::value ? FS_F16 : FS_BF16) || to.col_stride != 1 || to.beta != 0.0 ||
            to.row_stride % 2 != 0 || ((uintptr_t)first & 3) != 0 || p.column + COLUMNS > a.n)
            first = NULL;
    }
};
/* Two neighbouring columns of any output; not inlined.  (p is a copy, so that the caller's can be in registers.) */
__device__ __noinline__ void put_pair(const fsi_tile_args &a, fsi_slice p, int row, int64_t column, float2 sum)
{
    const int valid = (int)(a.n - column < 2 ? a.n - column : 2);
    fsi_output_put4(fsi_partial_sums(a, p.l, p.z), p.output_row + row, column, make_float4(sum.x, sum.y, 0.0f, 0.0f),
                    valid);
}
/* The quarters of eight rows that `owned` names, `behind` bytes behind the first. */
template <class T> __device__ __forceinline__ void store_sums(const fsi_tile_args &a, const fsi_slice &p,
                                                              const target<T> &to, int64_t behind, int owned, int row,
                                                              int64_t column, const float4 (&mine)[4])
{
    const fs_dtype dtype = is_half<T>::value ? FS_F16 : FS_BF16;
    const auto pair = [&](int i) {
        return i % 2 ? make_float2(mine[i / 2].z, mine[i / 2].w) : make_float2(mine[i / 2].x, mine[i / 2].y);
    };
    if (to.first) {
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (owned >> i / 2 & 1)
                *(uint32_t *)(to.first + behind + 16 * i) = fsi_two_halves(dtype, __fmul_rn(to.factor, pair(i).x),
                                                                           __fmul_rn(to.factor, pair(i).y));
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (owned >> i / 2 & 1) put_pair(a, p, row, column + 8 * i, pair(i));
    }
}
#endif

template <class T, int NONZEROS, int PLACES, int PREPARERS, int GROUPS, int CLUSTER, int TILES>
__global__ void __launch_bounds__(32 * PREPARERS + GROUP * GROUPS, FSI_WGMMA_ROWS_16BIT_RESIDENT(PLACES))
    wgmma_rows_16bit(const __grid_constant__ fsi_tile_args a, const __grid_constant__ fsi_philox_keys keys)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    enum {
        MULTIPLY = GROUP * GROUPS,
        THREADS = MULTIPLY + 32 * PREPARERS,
        HELD = 2 * TILES / GROUPS /* eights of a warp, when groups have added theirs */
    };
    extern __shared__ __align__(1024) uint8_t shared[];
    const memory<NONZEROS, PLACES, GROUPS, CLUSTER, TILES> m(shared);
    const int tid = threadIdx.x;
    /* That these come from __shfl_sync tells the compiler that they are the same for a warp. */
    const int warp = __shfl_sync(~0u, tid >> 5, 0), group = GROUPS > 1 ? warp / (GROUP / 32) : 0;
    const int tile = TILES > 1 ? group : 0, eight = EIGHTS * tile + 2 * (warp & 3) + (TILES > 1 ? 0 : group),
              row = 8 * eight + (tid >> 2 & 7), column = 2 * (tid & 3);
    const bool live = warp < MULTIPLY / 32; /* warps that multiply; for the others nothing below step 3 has an effect */
    target<T> to;
    float total[32];
    float4 mine[HELD][4];
    int owned = 0;

    fsi_start_next_kernel();
    /* 1. what to do; mbarriers */
    fsi_slice p = fsi_slice_input_at(a, blockIdx.x / CLUSTER, (int64_t)blockIdx.y * COLUMNS,
                                     (int)(blockIdx.z * CLUSTER + blockIdx.x % CLUSTER));
    if (tid == 0) make_mbarriers(m);
    __syncwarp();
    if (!live) {
        /* 2. rows of A, words of S */
        prepare_units<PREPARERS>(a, keys, p, m, warp - MULTIPLY / 32, [&]() {
            if (CLUSTER > 1) fsi_cluster_arrive();
            fsi_barrier(0, THREADS);
        });
        if (CLUSTER > 1) fsi_cluster_await();
        to.first = (char *)a.data, to.eight = 0, to.factor = 0.0f; /* the path of plain stores, with all of them
                                                                    * disabled */
#pragma unroll
        for (int i = 0; i < 32; i++) total[i] = 0.0f;
    } else {
        if (CLUSTER > 1) fsi_cluster_arrive();
        p = fsi_slice_for(a, p, 0);
        to = target<T>(a, p, row, p.column + column);
        fsi_slice aligned = p;
        align_local_rows(aligned, DEPTH);
        fsi_barrier(0, THREADS);
        if (CLUSTER > 1) fsi_cluster_await();
        /* 3. products */
        multiply_units<T>(m, group, (int)((aligned.count + UNIT - 1) / UNIT), total);
    }
    /* 4. sums of the thread block; if they are not finite, the first group recomputes all of them */
    leave_sums(m, live, group, total);
    float zero[4] = {};
#pragma unroll
    for (int i = 0; i < 32; i++) zero[i & 3] = fmaf(total[i], 0.0f, zero[i & 3]);
    if (live && fsi_barrier_or(1, MULTIPLY, zero[0] + zero[1] + zero[2] + zero[3] != 0.0f)) {
        /* the address of p itself would keep it in memory from the start */
        const fsi_slice again = fsi_slice_for(a, p, tid / COLUMNS % TILES);
        float *sums = (float *)shared;
        if (tid < COLUMNS * TILES)
            add_serial<T>(a, again, p.column + tid % COLUMNS, sums + tid / COLUMNS * HEIGHT * PITCH + tid % COLUMNS,
                          PITCH);
        fsi_barrier(1, MULTIPLY);
#pragma unroll
        for (int i = 0; i < 4 * HELD; i++) {
            const float *at = sums + (row + i / 4 * 8) * PITCH + column + i % 4 * 16;
            mine[i / 4][i % 4] = make_float4(at[0], at[1], at[8], at[9]);
        }
    } else {
        take_sums(m, live, group, total, mine);
    }
    /* 5. sums of the cluster */
#pragma unroll
    for (int i = 0; i < HELD; i++) owned |= add_sums(m, live, eight + i, mine[i]) << 4 * i;
        /* 6. scale once, store once */
#pragma unroll
    for (int i = 0; i < HELD; i++)
        store_sums(a, p, to, i * to.eight, owned >> 4 * i & 15, row + 8 * i, p.column + column, mine[i]);
#endif
}

}  // namespace

/* The plan file knows how much shared memory an instance takes. */
#define SHARED(T, dtype, nonzeros, places, preparers, groups, cluster, tiles) \
    static_assert(FSI_WGMMA_ROWS_16BIT_SHARED(places, groups, cluster, tiles) == \
                      places * (UNIT_BYTES + tiles * CODES_BYTES + 3 * 8) + \
                          memory<nonzeros, places, groups, cluster, tiles>::TWICE + \
                          memory<nonzeros, places, groups, cluster, tiles>::SENT + \
                          (cluster > 1 ? 8 * EIGHTS * tiles : 0), \
                  "the instance list disagrees");
FSI_WGMMA_ROWS_16BIT(SHARED)
#define KERNEL(T, dtype, nonzeros, places, preparers, groups, cluster, tiles) \
    (const void *)wgmma_rows_16bit<T, nonzeros, places, preparers, groups, cluster, tiles>,
static const void *const wgmma_rows_16bit_instances[] = {FSI_WGMMA_ROWS_16BIT(KERNEL)};

static fs_result launch_wgmma_rows_16bit(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                         const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    /* A grid of three dimensions: no division precedes the first copy. */
    l.config.gridDim = dim3((unsigned)(plan->cluster * problem->M), (unsigned)l.args.tiles,
                            (unsigned)(plan->slices / plan->cluster));
    fsi_philox_keys keys = fsi_philox_keys_of(l.args.B.seed);
    void *arguments[] = {&l.args, &keys};
    return fsi_tile_launch_run(&l, wgmma_rows_16bit_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_wgmma_rows_16bit_code = {launch_wgmma_rows_16bit, wgmma_rows_16bit_instances};
