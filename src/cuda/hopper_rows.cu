/* hopper_rows.cu - BlockPerm-SJLT on the tensor cores of sm_90, rows of A contiguous.
 *
 * Formulation: tensor.cuh.  Two warpgroups prepare, two multiply.  Of the first, four warps copy rows of A into a ring
 * of shared memory, and four warps make sets of panels of S, 128 slots each.  The other two take fragments from the
 * ring, cut them into pieces and multiply.  A is read once for OUTS = 1, 2 or 4 permutations:
 *
 *   OUTS   columns of a tile   a warpgroup has
 *     1       256 or 128       128 or 64 columns (TILES tiles of the tensor cores' M axis), one block of Y
 *     2          128           64 columns, both blocks side by side on the N axis
 *     4           64           the same 64 columns as the other, two blocks
 *
 * mbarriers tell the sides what is full and what is empty, so that no warp that multiplies waits for a random number or
 * an address.
 * Accuracy: the tensor cores' sums are truncated, so they are promoted, added to rounded ones, every 64 rows: the error
 * is at most twice that of plain summation (tests/device/accuracy.c).  Inf and NaN: as in tensor_rows.cu.
 *
 * grid     (kappa / OUTS) x M x column tiles x parts, in this order, in x
 * threads  512; registers move from the warpgroups that prepare to those that multiply
 * shared   a ring of SETS sets of panels, a ring of STAGES stages of A, mbarriers
 * needs    sm_90; blocks of at most 64 rows; columns of A contiguous, rows 16-byte aligned and whole 16 bytes long */
#include "instances.h"
#include "tensor.cuh"

namespace {

enum { THREADS = 512, PREPARE = 256, MULTIPLY = 256, MAKERS = 4, COPIERS = 4, SET = 128, HALF_PANEL = 32 };

/* Where a warp has 128 bytes of a row, rows of the ring begin at multiples of 128 bytes, as those of A mostly do, and
 * lanes read along rows and exchange what they read.  Elsewhere rows are 32 bytes longer than they need be: then the
 * fragment reads, 32 bytes of four rows, hit all banks.  (H200: bulk copies between places that differ modulo 128 bytes
 * take 1.25 times as long; but with two rows to 128 bytes the exchange costs more than that.) */
template <class T, int OUTS, int TILES> struct shape {
    enum {
        BLOCKS = OUTS == 1 ? 1 : 2,                            /* a warpgroup's blocks of Y */
        SUMS = 32 * TILES * BLOCKS,                            /* of a thread */
        WIDTH = FS_HOPPER_ROWS_WIDTH(OUTS, TILES),
        EXCHANGED = TILES * sizeof(T) == 8,
        ROW_BYTES = WIDTH * (int)sizeof(T) + (EXCHANGED ? 0 : 32),
        STAGE = FS_HOPPER_ROWS_STAGE(sizeof(T), OUTS, TILES),  /* rows */
        ROWS = STAGE / COPIERS,                                /* of a stage, for a warp that copies */
        STAGE_BYTES = STAGE * ROW_BYTES,
        HALF_SET = OUTS * PANEL_BYTES,                         /* 64 slots: a panel for each block,
                                                                * one after the other */
        SET_BYTES = 2 * HALF_SET
    };
};

/* Shared memory: sets of panels, stages, then four groups of mbarriers. */
template <class T, int OUTS, int TILES, int STAGES, int SETS> struct memory {
    uint32_t sets, stages, barriers;
    __device__ __forceinline__ explicit memory(const void *shared)
    {
        sets = fs_shared_address(shared);
        stages = sets + SETS * shape<T, OUTS, TILES>::SET_BYTES;
        barriers = stages + STAGES * shape<T, OUTS, TILES>::STAGE_BYTES;
    }
    __device__ __forceinline__ uint32_t stage_full(int i) const { return barriers + 8 * i; }
    __device__ __forceinline__ uint32_t stage_empty(int i) const { return barriers + 8 * (STAGES + i); }
    __device__ __forceinline__ uint32_t set_full(int i) const { return barriers + 8 * (2 * STAGES + i); }
    __device__ __forceinline__ uint32_t set_empty(int i) const { return barriers + 8 * (2 * STAGES + SETS + i); }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* A warp that copies: it has ROWS rows of every stage.  Each lane works out one row, of the next AHEAD stages; then one
 * lane copies row after row in bulk.  (That its operands come from __shfl_sync tells the compiler that they are the
 * same for the warp; otherwise it makes a loop over lanes: on an H200 64 clocks a copy instead of 60.  16 bytes a lane
 * by cp.async took four warps 66 clocks for 1 KiB, which memory delivers in 53: src/README.md.)
 * An empty slot copies the first row, which its column of S, all zero, leaves without effect. */
template <class T, int OUTS, int TILES, int STAGES, int SETS>
__device__ void copy_rows(const fs_tile_args &a, const fs_part &p, int lead,
                          const memory<T, OUTS, TILES, STAGES, SETS> &m, int stage_count)
{
    typedef shape<T, OUTS, TILES> sh;
    enum { ROWS = sh::ROWS, AHEAD = 32 / ROWS };
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & (COPIERS - 1);
    const int64_t left = a.n - p.column;
    const int bytes = (int)(left < sh::WIDTH ? left : sh::WIDTH) * (int)sizeof(T);
    const char *data = (const char *)a.data + p.column * (int64_t)sizeof(T);
    int stage = 0, parity = 1;
    for (int t = 0; t < stage_count; t += AHEAD) {
        const int64_t slot = (int64_t)(t + lane / ROWS) * sh::STAGE + warp * ROWS + lane % ROWS;
        const int64_t row = slot >= lead && slot < p.count
                                ? fs_slot_row(&a.B, p.h, p.first + slot, a.row0, a.rows) : -1;
        const char *from = data + (row < 0 ? 0 : row * a.row_stride * (int64_t)sizeof(T));
#pragma unroll 1
        for (int k = 0; k < AHEAD && t + k < stage_count; k++) {
            const uint32_t to = m.stages + stage * sh::STAGE_BYTES + warp * ROWS * sh::ROW_BYTES;
            fs_mbarrier_wait(m.stage_empty(stage), parity);
            if (fs_elect()) fs_mbarrier_arrive_expect(m.stage_full(stage), ROWS * bytes);
            __syncwarp();
#pragma unroll 8
            for (int r = 0; r < ROWS; r++) {
                const char *source = (const char *)__shfl_sync(~0u, (uint64_t)from, ROWS * k + r);
                if (fs_elect()) fs_copy_bulk(to + r * sh::ROW_BYTES, source, bytes, m.stage_full(stage));
            }
            __syncwarp();
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
    }
}

/* A warp that makes panels of S, those of one permutation, of every set or of every second or fourth; every lane four
 * slots.  Words are known before the place of the set is empty. */
template <class T, int OUTS, int TILES, int STAGES, int SETS>
__device__ void make_panels(const fs_tile_args &a, fs_part p, int lead, const memory<T, OUTS, TILES, STAGES, SETS> &m,
                            uint8_t *sets, int set_count)
{
    typedef shape<T, OUTS, TILES> sh;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & (MAKERS - 1), out = warp % OUTS;
    if (OUTS > 1) p = fs_part_for(a, p, p.l + out);
    const bool fours = made_by_fours(a, p);
    for (int t = warp / OUTS; t < set_count; t += MAKERS / OUTS) {
        const int64_t slot = (int64_t)t * SET + 4 * lane;
        int64_t column[4];
        uint32_t word[4];
        int valid = 0;
        if (fours) valid = number_slots(a, p, slot, lead, column, word);
        fs_mbarrier_wait(m.set_empty(t % SETS), t / SETS & 1 ^ 1);
        uint8_t *panels = sets + t % SETS * sh::SET_BYTES + out * PANEL_BYTES,
                *mine = panels + (lane >> 4) * sh::HALF_SET;
#pragma unroll
        for (int i = 0; i < 2 * PANEL_BYTES / 512; i++)
            ((uint4 *)(panels + i / (PANEL_BYTES / 512) * sh::HALF_SET))[i % (PANEL_BYTES / 512) * 32 + lane] =
                make_uint4(0, 0, 0, 0);
        __syncwarp();
        if (fours) put_slots<is_half<T>::value>(a, p, mine, (int)slot, valid, word);
        else
#pragma unroll 1
            for (int i = slot < lead ? lead : 0; i < 4; i++) put_slot<is_half<T>::value>(a, p, mine, slot + i);
        fs_proxy_fence();
        fs_mbarrier_arrive(m.set_full(t % SETS));
    }
}

/* sums = the products of one step's pieces, the smallest first, plus sums if `keep`; queued.  `panel`
 * holds the K positions of the step. */
template <class T, int PASSES, int OUTS, int TILES>
__device__ __forceinline__ void multiply(float *sums,
                                         const pieces<T, PASSES, TILES, shape<T, OUTS, TILES>::ROW_BYTES,
                                                      shape<T, OUTS, TILES>::EXCHANGED> &x,
                                         uint32_t panel, int keep)
{
    typedef shape<T, OUTS, TILES> sh;
    const uint64_t b = fs_wgmma_operand(panel);
#pragma unroll
    for (int p = PASSES - 1; p >= 0; p--)
#pragma unroll
        for (int i = 0; i < TILES; i++)
            fs_wgmma<is_half<T>::value, 64 * sh::BLOCKS>(sums + 32 * i, x.of[p].tile[i], b, keep || p < PASSES - 1);
}

/* A warpgroup that multiplies: total = its part of S A, `column` the first of the warp's columns, `out` the first of
 * its blocks.  Registers that wgmma reads must not change before it is done, so it is waited for, while the other
 * warpgroup loads and cuts. */
template <class T, int PASSES, int OUTS, int TILES, int STAGES, int SETS>
__device__ __forceinline__ void multiply_panels(const memory<T, OUTS, TILES, STAGES, SETS> &m, int panel_count,
                                                int column, int out,
                                                float (&total)[shape<T, OUTS, TILES>::SUMS])
{
    typedef shape<T, OUTS, TILES> sh;
    const int lane = threadIdx.x & 31;
    const int row = sh::EXCHANGED ? lane >> 3 : lane & 3, place = sh::EXCHANGED ? lane & 7 : lane >> 2;
    const uint32_t from = m.stages + row * sh::ROW_BYTES + (column + place * 2 * TILES) * (int)sizeof(T);
    float sums[sh::SUMS];
    int stage = 0, parity = 0;
#pragma unroll
    for (int i = 0; i < sh::SUMS; i++) total[i] = 0.0f;
#pragma unroll 1
    for (int t = 0; t < panel_count; t++) {
        const int at = (t >> 1) % SETS;
        const uint32_t panel = m.sets + at * sh::SET_BYTES + (t & 1) * sh::HALF_SET + out * PANEL_BYTES;
#pragma unroll
        for (int half = 0; half < PANEL / HALF_PANEL; half++) {
            const bool first = half * HALF_PANEL % sh::STAGE == 0, last = (half + 1) * HALF_PANEL % sh::STAGE == 0;
            pieces<T, PASSES, TILES, sh::ROW_BYTES, sh::EXCHANGED> x[2];
            if (first) fs_mbarrier_wait(m.stage_full(stage), parity);
            const uint32_t rows = from + stage * sh::STAGE_BYTES + half * HALF_PANEL % sh::STAGE * sh::ROW_BYTES;
            x[0].load(rows);
            x[1].load(rows + STEP * sh::ROW_BYTES);
            if (last) {
                __syncwarp();
                if (lane == 0) fs_mbarrier_arrive(m.stage_empty(stage));
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
            if (half == 0 && (t & 1) == 0) fs_mbarrier_wait(m.set_full(at), (t >> 1) / SETS & 1);
            fs_wgmma_fence();
            multiply<T, PASSES, OUTS, TILES>(sums, x[0], panel + half * 64, half > 0);
            multiply<T, PASSES, OUTS, TILES>(sums, x[1], panel + half * 64 + 32, 1);
            fs_wgmma_commit();
            fs_wgmma_wait<0>();
        }
        /* The compiler does not know that sums change until here; telling it that they are written keeps their uses
         * behind. */
#pragma unroll
        for (int i = 0; i < sh::SUMS; i++) asm volatile("" : "+f"(sums[i])::"memory");
        if (lane == 0 && (t & 1 || t == panel_count - 1)) fs_mbarrier_arrive(m.set_empty(at));
#pragma unroll
        for (int i = 0; i < sh::SUMS; i++) total[i] += sums[i];
    }
}
#endif

template <class T, int PASSES, int OUTS, int TILES, int STAGES, int SETS>
__global__ void __launch_bounds__(THREADS, 1) hopper_rows(const __grid_constant__ fs_tile_args a)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef shape<T, OUTS, TILES> sh;
    extern __shared__ __align__(1024) uint8_t shared[];
    const memory<T, OUTS, TILES, STAGES, SETS> m(shared);
    const int tid = threadIdx.x;
    const fs_part p = fs_part_of(a, OUTS, sh::WIDTH);
    fs_part aligned = p;
    const int lead = align_slots(aligned), panel_count = (int)((aligned.count + PANEL - 1) / PANEL);

    fs_start_next_kernel();
    /* 1. mbarriers; columns of the ring that no copy fills are zero */
    if (tid == 0) {
        for (int i = 0; i < STAGES; i++) {
            fs_mbarrier_init(m.stage_full(i), COPIERS);
            fs_mbarrier_init(m.stage_empty(i), MULTIPLY / 32);
        }
        for (int i = 0; i < SETS; i++) {
            fs_mbarrier_init(m.set_full(i), 32 * OUTS);
            fs_mbarrier_init(m.set_empty(i), MULTIPLY / 32);
        }
    }
    if (a.n - p.column < sh::WIDTH)
        for (int i = tid; i < STAGES * sh::STAGE_BYTES / 16; i += THREADS)
            ((uint4 *)(shared + SETS * sh::SET_BYTES))[i] = make_uint4(0, 0, 0, 0);
    fs_proxy_fence();
    __syncthreads();

    /* 2. two warpgroups prepare, two multiply */
    if (tid < PREPARE) {
        fs_fewer_registers<64>();
        if (tid < 32 * MAKERS)
            make_panels<T, OUTS, TILES, STAGES, SETS>(a, aligned, lead, m, shared, (panel_count + 1) / 2);
        else
            copy_rows<T, OUTS, TILES, STAGES, SETS>(a, aligned, lead, m,
                                                    (panel_count * PANEL + sh::STAGE - 1) / sh::STAGE);
        fs_barrier_or(1, THREADS, false);
    } else {
        fs_more_registers<192>();
        const int thread = tid - PREPARE, group = thread >> 7, out = OUTS == 4 ? group * 2 : 0;
        const int column = (OUTS == 4 ? 0 : group * TILES * 64) +
                           (thread >> 5 & 3) * TILES * 16;  /* the warp's first */
        float total[sh::SUMS];
        multiply_panels<T, PASSES, OUTS, TILES, STAGES, SETS>(m, panel_count, column, out, total);

        /* 3. all finite: scale once, store once */
        float zero = 0.0f;
#pragma unroll
        for (int i = 0; i < sh::SUMS; i++) zero = fmaf(total[i], 0.0f, zero);
        if (fs_barrier_or(1, THREADS, zero != 0.0f)) {
            if (thread >= sh::WIDTH * OUTS) return;
            const fs_part mine = OUTS > 1 ? fs_part_for(a, p, p.l + thread / sh::WIDTH) : p;
            make_again<T>(a, mine, p.column + thread % sh::WIDTH, (float *)shared + thread, MULTIPLY);
        } else {
#pragma unroll
            for (int i = 0; i < sh::BLOCKS; i++)
                store_tile<TILES>(a, OUTS > 1 ? fs_part_for(a, p, p.l + out + i) : p, total + 32 * i,
                                  p.column + column + (thread >> 2 & 7) * TILES * 2);
        }
    }
#endif
}

}  // namespace

/* choose.c knows how much shared memory an instance takes. */
#define SHARED(T, dtype, passes, outs, tiles, stages, sets) \
    static_assert(FS_HOPPER_ROWS_SHARED(sizeof(T), outs, tiles, stages, sets) == \
                  sets * shape<T, outs, tiles>::SET_BYTES + stages * shape<T, outs, tiles>::STAGE_BYTES + \
                      16 * (stages + sets), \
                  "instances.h disagrees");
FS_HOPPER_ROWS(SHARED)
#define KERNEL(T, dtype, passes, outs, tiles, stages, sets) \
    (const void *)hopper_rows<T, passes, outs, tiles, stages, sets>,
extern "C" const void *const fs_hopper_rows_kernels[] = {FS_HOPPER_ROWS(KERNEL)};
