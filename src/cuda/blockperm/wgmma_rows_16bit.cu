/* wgmma_rows_16bit.cu - BlockPerm-SJLT of two-byte elements on the tensor cores of sm_90, rows of A contiguous, where
 * one wave of thread blocks computes all of Y, or where a block has two output tiles.
 *
 * Formulation.  The 64 rows of an output tile are the M axis of the tensor cores, 16 local rows the K axis, 64 columns
 * of A the N axis.  Rows of A are 128 bytes of such a tile, and the tensor cores take them from where they were copied
 * to.  The tiles of S are their other operand, in registers: where strata of a block are powers of two, a thread
 * generates its elements by comparing rows of nonzeros with the row that it has, two local rows at once. So tiles can
 * be narrow: a buffer in shared memory is rows of A and little else, and few sums have to be added between thread
 * blocks, which would dominate where reading A takes microseconds.  (S is generated once for every 64 columns instead
 * of 256; wgmma_rows.cu generates it in fewer instructions and has persistent thread blocks.)
 *
 * Producer warps take units of 128 local rows in turn: they compute the rows, copy them, and store codes of the
 * nonzeros.  Groups of four consumer warps multiply.  Where a block has one output tile they take units in turn, too,
 * and two groups of a thread block add their sums in shared memory; where it has two, TILES = 2, each group has one of
 * them for all units.  Thread blocks of a cluster then have slices of the same sums: each sends the others the shares
 * that they add, and waits only for data addressed to it.  Because transfers between SMs are slow, groups add theirs
 * first, and all thread blocks reduce equal shares.
 * Producer warps execute the epilogue predicated off, to prefetch its instructions into the instruction cache.
 * Accuracy, Inf and NaN: as in wgmma_rows.cu; sums are promoted every 256 local rows.
 *
 * grid     x: CLUSTER x M, y: column tiles, z: slices / CLUSTER
 * threads  GROUPS x 128 of consumer warps, PREPARERS x 32 of producer warps
 * shared   PLACES stages of a unit: its rows, then its codes; sums for the other group; sums received from the cluster;
 *          mbarriers
 * needs    sm_90; kappa = 1, blocks of TILES output tiles of 64 rows, with NONZEROS of 1, 2, 4, 8 each, shuffled rows or
 *          no shuffle; rows of whole 16 bytes at multiples of 16, fewer than 2^32 of them */
#include "cuda/blockperm/wgmma_rows_16bit_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

enum {
    COLUMNS = FSI_WGMMA_ROWS_16BIT_COLUMNS,
    UNIT = FSI_WGMMA_ROWS_16BIT_UNIT,
    STEPS = UNIT / STEP,
    GROUP = FSI_WGMMA_ROWS_16BIT_GROUP,
    ROW_BYTES = 2 * COLUMNS,
    UNIT_BYTES = UNIT * ROW_BYTES,
    CODES_BYTES = 2 * UNIT,
    EIGHTS = HEIGHT / 8,           /* of an output tile */
    EIGHT_BYTES = 8 * COLUMNS * 4, /* eight rows of sums */
    QUARTER_BYTES = 512,           /* 16 columns of them */
    PITCH = COLUMNS + 8            /* floats of a row of recomputed sums */
};

template <int NONZEROS, int PLACES, int GROUPS, int CLUSTER, int TILES> struct memory {
    enum {
        IN_TURN = GROUPS / TILES,               /* groups that share the units of an output tile */
        CODES = TILES * NONZEROS * CODES_BYTES, /* of a unit */
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

/* The codes of nonzero t of two local rows: the sign at bit 15 of a half, the row of its stratum from bit 8 on.  A word
 * holds a column's nonzeros in order from its top, row and sign, as fsi_packed_code takes them out of it. */
template <int NONZEROS> __device__ __forceinline__ uint32_t code_pair(uint32_t low, uint32_t high, int t)
{
    enum { BITS = row_bits<NONZEROS>::value, ROW = ((1 << BITS) - 1) << 8 };
    const uint32_t two = fsi_bytes<0x7632>(low << t * (BITS + 1), high << t * (BITS + 1));
    return (two >> (8 - BITS) & ROW * 0x10001u) | (two << BITS & 0x80008000u);
}

/* A producer warp.  A lane has four neighbouring local rows 4 q ... 4 q + 3 of 16; they are K positions 2 q, 2 q + 1,
 * 2 q + 8 and 2 q + 9, as in the registers of a thread that multiplies, and so are their rows in shared memory, whose
 * 16-byte chunks are swizzled as the tensor cores expect: chunk c of row r is at c ^ (r % 8).  Eight lanes copy a row.
 * Empty local rows read rows of zeros; columns behind the last are zero.  The first copies do not wait until all
 * threads know of the mbarriers: `begun` waits. */
template <int PREPARERS, int NONZEROS, int PLACES, int GROUPS, int CLUSTER, int TILES, class F>
__device__ __forceinline__ void prepare_units(const fsi_tile_args &a, const fsi_philox_keys &keys, fsi_slice p,
                                              const memory<NONZEROS, PLACES, GROUPS, CLUSTER, TILES> &m, int warp,
                                              F begun)
{
    static_assert(PLACES % PREPARERS == 0, "a stage is always the same warp's");
    const int lane = threadIdx.x & 31, q = lane >> 3, chunk = lane & 7;
    const int lead = align_local_rows(p), unit_count = (int)((p.count + UNIT - 1) / UNIT);
    const uint64_t from = (uint64_t)a.data + (p.column + 8 * chunk) * 2, stride = 2 * a.row_stride;
    const int bytes = p.column + 8 * chunk < a.n ? 16 : 0;
    const uint32_t even = 2 * q * ROW_BYTES + ((chunk ^ (2 * q)) << 4);
    const uint32_t odd = (2 * q + 1) * ROW_BYTES + ((chunk ^ (2 * q + 1)) << 4);
    const int64_t ways = in_order(a.B) ? 1 : a.B.ways;
    const int64_t start = a.B.shuffle == FSI_DEF_NONE ? fsi_split_start(&a.B.in, p.h) : 0; /* column of local row 0 */
    /* codes of four local rows for a thread in two steps, side by side */
    const uint32_t to_codes = (lane >> 3) * 64 + (lane & 3) * 16 + (lane >> 2 & 1) * 8;
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
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            const fsi_quad quad = fsi_blockperm_quad_by(&a.B, &keys, p.h, p.first + local_row, tile);
            const uint32_t codes = m.codes + place * m.CODES + tile * NONZEROS * CODES_BYTES + to_codes;
#pragma unroll
            for (int i = 0; i < NONZEROS; i++)
                fsi_shared_put2(codes + i * CODES_BYTES, code_pair<NONZEROS>(quad.w[0], quad.w[1], i),
                                code_pair<NONZEROS>(quad.w[2], quad.w[3], i));
        }
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
/* A group of consumer warps: total = the sums of its units.  Its warps have 16 rows of an output tile each, which are rows
 * of one or two nonzeros.  S is made in halves of a unit, while the half before is multiplied; two units are added on
 * the tensor cores.  A stage is released when its unit is done, at the latest before the warp waits for the next
 * one. */
template <class T, int NONZEROS, int PLACES, int GROUPS, int CLUSTER, int TILES>
__device__ __forceinline__ void multiply_units(const memory<NONZEROS, PLACES, GROUPS, CLUSTER, TILES> &m, int group,
                                               int unit_count, float (&total)[32])
{
    enum {
        HALF = is_half<T>::value,
        ROWS = HEIGHT / NONZEROS,
        FIRST = 0,
        SECOND = STEPS / 2,
        IN_TURN = GROUPS / TILES
    };
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3;
    const uint32_t number = ((lane >> 2) + 16 * warp % ROWS) * 0x1000100u; /* as in a code, twice */
    const uint32_t number8 = number + (ROWS > 8 ? 0x8000800u : 0);         /* of the eighth row behind it */
    const uint32_t codes = m.codes + (TILES > 1 ? group * NONZEROS * CODES_BYTES : 0) + 16 * warp / ROWS * CODES_BYTES +
                           16 * (lane & 3);
    const int begin = TILES > 1 ? 0 : group;
    float sums[32];
    uint32_t x[STEPS][4];
    const auto make = [&](int t, int half) {
        const uint32_t from = codes + t % PLACES * m.CODES;
        if (half == FIRST) fsi_mbarrier_wait(m.drawn(t % PLACES), t / PLACES & 1);
        uint32_t of[2][4]; /* two steps at a time */
#pragma unroll
        for (int k = half; k < half + STEPS / 2; k++) {
            if (k % 2 == 0) fsi_shared_words<16>(of[0], from + k * 32);
            if (k % 2 == 0 && ROWS == 8) fsi_shared_words<16>(of[1], from + CODES_BYTES + k * 32);
            const uint32_t *c = of[0] + k % 2 * 2, *c8 = of[ROWS == 8] + k % 2 * 2;
            x[k][0] = fsi_turned_halves(fsi_equal_sizes<HALF>(c[0], number), c[0]);
            x[k][1] = fsi_turned_halves(fsi_equal_sizes<HALF>(c8[0], number8), c8[0]);
            x[k][2] = fsi_turned_halves(fsi_equal_sizes<HALF>(c[1], number), c[1]);
            x[k][3] = fsi_turned_halves(fsi_equal_sizes<HALF>(c8[1], number8), c8[1]);
        }
    };
    const auto multiply = [&](int t, int half, bool more) {
        const uint64_t rows = fsi_wgmma_operand(m.rows + t % PLACES * UNIT_BYTES);
        fsi_wgmma_fence();
#pragma unroll
        for (int k = half; k < half + STEPS / 2; k++)
            fsi_wgmma_across<HALF>(sums, x[k], rows + k * (STEP * ROW_BYTES >> 4), more || k > half);
        fsi_wgmma_commit();
    };
    /* Registers that wgmma reads keep their values until here. */
    const auto keep = [&](int half) {
#pragma unroll
        for (int i = 0; i < 2 * STEPS; i++) asm volatile("" ::"r"(x[half + i / 4][i % 4]));
    };
#pragma unroll
    for (int i = 0; i < 32; i++) total[i] = 0.0f;
    if (begin < unit_count) make(begin, FIRST);
#pragma unroll 1
    for (int t = begin; t < unit_count; t += 2 * IN_TURN) {
        fsi_mbarrier_wait(m.copied(t % PLACES), t / PLACES & 1);
        fsi_proxy_fence();
        multiply(t, FIRST, false);
        make(t, SECOND);
        multiply(t, SECOND, true);
        fsi_wgmma_wait<1>();
        keep(FIRST);
        const int u = t + IN_TURN;
        if (u < unit_count) {
            make(u, FIRST);
            const bool there = fsi_mbarrier_test(m.copied(u % PLACES), u / PLACES & 1);
            if (!there) {
                fsi_wgmma_wait<0>();
                release_unit(m, t);
                fsi_mbarrier_wait(m.copied(u % PLACES), u / PLACES & 1);
            }
            fsi_proxy_fence();
            multiply(u, FIRST, true);
            fsi_wgmma_wait<1>();
            keep(SECOND);
            if (there) release_unit(m, t);
            make(u, SECOND);
            multiply(u, SECOND, true);
            fsi_wgmma_wait<1>();
            keep(FIRST);
            if (u + IN_TURN < unit_count) make(u + IN_TURN, FIRST);
        }
        fsi_wgmma_wait<0>();
        keep(SECOND);
        release_unit(m, u < unit_count ? u : t);
        /* The compiler does not know that sums change until wgmma is waited for. */
#pragma unroll
        for (int i = 0; i < 32; i++) asm volatile("" : "+f"(sums[i])::"memory");
#pragma unroll
        for (int i = 0; i < 32; i++) total[i] += sums[i];
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
        /* 2. rows and codes */
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
        align_local_rows(aligned);
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
    static_assert(FSI_WGMMA_ROWS_16BIT_SHARED(nonzeros, places, groups, cluster, tiles) == \
                      places * (UNIT_BYTES + tiles * nonzeros * CODES_BYTES + 3 * 8) + \
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
