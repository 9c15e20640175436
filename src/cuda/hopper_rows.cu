/* hopper_rows.cu - BlockPerm-SJLT on the tensor cores of sm_90, rows of A contiguous: a sketch at the speed of reading A.
 *
 * Formulation: tensor.cuh.  Two warpgroups prepare, two multiply.  Of the first, four warps copy rows of A into a ring of
 * shared memory, 32 rows a stage, and four warps make sets of panels of S, 128 slots each.  The other two take fragments from
 * the ring, cut them into pieces and multiply.  A is read once for OUTS = 1, 2 or 4 permutations:
 *
 *   OUTS   columns of a tile   a warpgroup has
 *     1          256           128 columns (two tiles of the tensor cores' M axis), one block of Y
 *     2          128           64 columns, both blocks side by side on the N axis
 *     4           64           the same 64 columns as the other, two blocks
 *
 * mbarriers tell the sides what is full and what is empty, so that no warp that multiplies waits for a random number or an
 * address.
 * Accuracy: the tensor cores' sums are truncated, so they are promoted, added to rounded ones, every 64 rows: the error is at
 * most twice that of plain summation (tests/device/accuracy.c).  Inf and NaN: as in tensor_rows.cu.
 *
 * grid     (kappa / OUTS) x M x column tiles x parts, in this order, in x
 * threads  512; registers move from the warpgroups that prepare to those that multiply
 * shared   a ring of SETS sets of panels, a ring of STAGES stages of A, mbarriers
 * needs    sm_90; blocks of at most 64 rows; columns of A contiguous, rows 16-byte aligned and whole 16 bytes long */
#include "instances.h"
#include "tensor.cuh"

namespace {

enum { THREADS = 512, PREPARE = 256, MULTIPLY = 256, MAKERS = 4, COPIERS = 4, STAGE = 32, SET = 128 };

/* Rows of the ring are 32 bytes longer than they need be: then the fragment reads, 32 bytes of four rows, hit all banks. */
template <class T, int OUTS> struct shape {
    enum {
        TILES = OUTS == 1 ? 2 : 1,   /* a warpgroup's: 64 columns each */
        BLOCKS = OUTS == 1 ? 1 : 2,  /* a warpgroup's blocks of Y */
        WIDTH = 256 / OUTS,
        ROW_BYTES = WIDTH * (int)sizeof(T) + 32,
        STAGE_BYTES = STAGE * ROW_BYTES,
        HALF_SET = OUTS * PANEL_BYTES,  /* 64 slots: a panel for each block, one after the other */
        SET_BYTES = 2 * HALF_SET
    };
};

/* Shared memory: sets of panels, stages, then four groups of mbarriers. */
template <class T, int OUTS, int STAGES, int SETS> struct memory {
    uint32_t sets, stages, barriers;
    __device__ __forceinline__ explicit memory(const void *shared)
    {
        sets = fs_shared_address(shared);
        stages = sets + SETS * shape<T, OUTS>::SET_BYTES;
        barriers = stages + STAGES * shape<T, OUTS>::STAGE_BYTES;
    }
    __device__ __forceinline__ uint32_t stage_full(int i) const { return barriers + 8 * i; }
    __device__ __forceinline__ uint32_t stage_empty(int i) const { return barriers + 8 * (STAGES + i); }
    __device__ __forceinline__ uint32_t set_full(int i) const { return barriers + 8 * (2 * STAGES + i); }
    __device__ __forceinline__ uint32_t set_empty(int i) const { return barriers + 8 * (2 * STAGES + SETS + i); }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* A warp that copies: of the four, warp w has rows 8 w ... 8 w + 7 of every stage.  Each lane works out one row, of four
 * stages, and copies it in bulk.  (H200: a bulk copy takes a warp some 75 clocks to issue, so four warps issue 1 KiB in 19,
 * where memory delivers it in 52.  16 bytes a lane by cp.async took the same warps 34 and held the kernel to 1.15 times the
 * read.)
 * An empty slot copies the first row, which its column of S, all zero, leaves without effect. */
template <class T, int OUTS, int STAGES, int SETS>
__device__ void copy_rows(const fs_tile_args &a, const fs_part &p, int lead, const memory<T, OUTS, STAGES, SETS> &m, int stage_count)
{
    typedef shape<T, OUTS> sh;
    const int lane = threadIdx.x & 31, row_of_stage = (threadIdx.x >> 5 & (COPIERS - 1)) * 8 + (lane & 7);
    const int64_t left = a.n - p.column;
    const int bytes = (int)(left < sh::WIDTH ? left : sh::WIDTH) * (int)sizeof(T);
    const char *data = (const char *)a.data + p.column * (int64_t)sizeof(T);
    const uint32_t to = m.stages + row_of_stage * sh::ROW_BYTES;
    int stage = 0, parity = 1;
    for (int t = 0; t < stage_count; t += 4) {
        const int64_t slot = (int64_t)(t + (lane >> 3)) * STAGE + row_of_stage;
        const int64_t row = slot >= lead && slot < p.count ? fs_slot_row(&a.B, p.h, p.first + slot, a.row0, a.rows) : -1;
        const char *from = data + (row < 0 ? 0 : row * a.row_stride * (int64_t)sizeof(T));
#pragma unroll 1
        for (int k = 0; k < 4 && t + k < stage_count; k++) {
            fs_mbarrier_wait(m.stage_empty(stage), parity);
            if (lane == 0) fs_mbarrier_arrive_expect(m.stage_full(stage), 8 * bytes);
            __syncwarp();
            if (lane >> 3 == k) fs_copy_bulk(to + stage * sh::STAGE_BYTES, from, bytes, m.stage_full(stage));
            __syncwarp();
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
    }
}

/* A warp that makes panels of S, those of one permutation, of every set or of every second or fourth; every lane four slots.
 * Rows and words are known before the place of the set is empty. */
template <class T, int OUTS, int STAGES, int SETS>
__device__ void make_panels(const fs_tile_args &a, fs_part p, int lead, const memory<T, OUTS, STAGES, SETS> &m, uint8_t *sets,
                            int set_count)
{
    typedef shape<T, OUTS> sh;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & (MAKERS - 1), out = warp % OUTS;
    if (OUTS > 1) p = fs_part_for(a, p, p.l + out);
    for (int t = warp / OUTS; t < set_count; t += MAKERS / OUTS) {
        int64_t column[4];
        uint32_t word[4];
        number_slots(a, p, (int64_t)t * SET + 4 * lane, lead, column, word);
        fs_mbarrier_wait(m.set_empty(t % SETS), t / SETS & 1 ^ 1);
        uint8_t *panels = sets + t % SETS * sh::SET_BYTES + out * PANEL_BYTES;
#pragma unroll
        for (int i = 0; i < 2 * PANEL_BYTES / 512; i++)
            ((uint4 *)(panels + i / (PANEL_BYTES / 512) * sh::HALF_SET))[i % (PANEL_BYTES / 512) * 32 + lane] = make_uint4(0, 0, 0, 0);
        __syncwarp();
        put_slots<is_half<T>::value>(a, p, panels, sh::HALF_SET, 4 * lane, column, word);
        fs_proxy_fence();
        fs_mbarrier_arrive(m.set_full(t % SETS));
    }
}

/* sums = the products of one step's pieces, the smallest first, plus sums if `keep`; queued.  `panel` holds the K positions of
 * the step. */
template <class T, int PASSES, int OUTS>
__device__ __forceinline__ void multiply(float (&sums)[64], const pieces<T, PASSES, shape<T, OUTS>::TILES, shape<T, OUTS>::ROW_BYTES> &x,
                                         uint32_t panel, int keep)
{
    typedef shape<T, OUTS> sh;
    const uint64_t b = fs_wgmma_operand(panel);
#pragma unroll
    for (int p = PASSES - 1; p >= 0; p--)
#pragma unroll
        for (int i = 0; i < sh::TILES; i++)
            fs_wgmma<is_half<T>::value, 64 * sh::BLOCKS>(sums + 32 * i, x.of[p].tile[i], b, keep || p < PASSES - 1);
}

/* A warpgroup that multiplies: total = its part of S A.  While the products of a step are made the next one's pieces are cut,
 * in other registers: wgmma reads its registers until it is waited for. */
template <class T, int PASSES, int OUTS, int STAGES, int SETS>
__device__ __forceinline__ void multiply_panels(const memory<T, OUTS, STAGES, SETS> &m, int panel_count, int column, int out,
                                                float (&total)[64])
{
    typedef shape<T, OUTS> sh;
    const int lane = threadIdx.x & 31, q = lane & 3;
    const uint32_t from = m.stages + q * sh::ROW_BYTES + column * (int)sizeof(T);
    float sums[64];
    int stage = 0, parity = 0;
#pragma unroll
    for (int i = 0; i < 64; i++) total[i] = 0.0f;
#pragma unroll 1
    for (int t = 0; t < panel_count; t++) {
        const int at = (t >> 1) % SETS;
        const uint32_t panel = m.sets + at * sh::SET_BYTES + (t & 1) * sh::HALF_SET + out * PANEL_BYTES;
        pieces<T, PASSES, sh::TILES, sh::ROW_BYTES> x[2];
#pragma unroll
        for (int half = 0; half < PANEL / STAGE; half++) {
            fs_mbarrier_wait(m.stage_full(stage), parity);
#pragma unroll
            for (int k = 0; k < 2; k++) {
                x[k].load(from + stage * sh::STAGE_BYTES + k * STEP * sh::ROW_BYTES);
                if (half == 0 && k == 0 && (t & 1) == 0) fs_mbarrier_wait(m.set_full(at), (t >> 1) / SETS & 1);
                fs_wgmma_fence();
                multiply<T, PASSES, OUTS>(sums, x[k], panel + (2 * half + k) * 32, half + k > 0);
                fs_wgmma_commit();
                if (half + k < 2) fs_wgmma_wait<1>();
            }
            __syncwarp();
            if (lane == 0) fs_mbarrier_arrive(m.stage_empty(stage));
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
        fs_wgmma_wait<0>();
        /* The compiler does not know that sums change until here; telling it that they are written keeps their uses behind. */
#pragma unroll
        for (int i = 0; i < 64; i++) asm volatile("" : "+f"(sums[i])::"memory");
        if (lane == 0 && (t & 1 || t == panel_count - 1)) fs_mbarrier_arrive(m.set_empty(at));
#pragma unroll
        for (int i = 0; i < 64; i++) total[i] += sums[i];
    }
}
#endif

template <class T, int PASSES, int OUTS, int STAGES, int SETS>
__global__ void __launch_bounds__(THREADS, 1) hopper_rows(const __grid_constant__ fs_tile_args a)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef shape<T, OUTS> sh;
    extern __shared__ __align__(1024) uint8_t shared[];
    const memory<T, OUTS, STAGES, SETS> m(shared);
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
        if (tid < 32 * MAKERS) make_panels<T, OUTS, STAGES, SETS>(a, aligned, lead, m, shared, (panel_count + 1) / 2);
        else copy_rows<T, OUTS, STAGES, SETS>(a, aligned, lead, m, panel_count * (PANEL / STAGE));
        fs_barrier_or(1, THREADS, false);
    } else {
        fs_more_registers<192>();
        const int thread = tid - PREPARE, group = thread >> 7;
        const int column = (OUTS == 4 ? 0 : group * sh::TILES * 64) + (thread >> 5 & 3) * sh::TILES * 16 + (thread >> 2 & 7) * sh::TILES * 2;
        const int out = OUTS == 4 ? group * 2 : 0;
        float total[64];
        multiply_panels<T, PASSES, OUTS, STAGES, SETS>(m, panel_count, column, out, total);

        /* 3. all finite: scale once, store once */
        float zero = 0.0f;
#pragma unroll
        for (int i = 0; i < 64; i++) zero = fmaf(total[i], 0.0f, zero);
        if (fs_barrier_or(1, THREADS, zero != 0.0f)) {
            const fs_part mine = OUTS > 1 ? fs_part_for(a, p, p.l + thread / sh::WIDTH) : p;
            make_again<T>(a, mine, p.column + thread % sh::WIDTH, (float *)shared + thread, MULTIPLY);
        } else {
#pragma unroll
            for (int i = 0; i < sh::BLOCKS; i++)
                store_tile<sh::TILES>(a, OUTS > 1 ? fs_part_for(a, p, p.l + out + i) : p, total + 32 * i, p.column + column);
        }
    }
#endif
}

}  // namespace

/* choose.c knows how much shared memory an instance takes. */
#define SHARED(T, dtype, passes, outs, stages, sets) \
    static_assert(FS_HOPPER_ROWS_SHARED(sizeof(T), outs, stages, sets) == \
                  sets * shape<T, outs>::SET_BYTES + stages * shape<T, outs>::STAGE_BYTES + 16 * (stages + sets), \
                  "instances.h disagrees");
FS_HOPPER_ROWS(SHARED)
#define KERNEL(T, dtype, passes, outs, stages, sets) (const void *)hopper_rows<T, passes, outs, stages, sets>,
extern "C" const void *const fs_hopper_rows_kernels[] = {FS_HOPPER_ROWS(KERNEL)};
