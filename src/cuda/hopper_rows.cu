/* hopper_rows.cu - BlockPerm-SJLT on the tensor cores of sm_90, rows of A contiguous: a sketch at the speed of reading A.
 *
 * Formulation: tensor.cuh.  Two warpgroups prepare, two multiply.  Of the first, four warps copy rows of A into a ring of
 * shared memory, 16 rows a step, and four warps make panels of S, 64 slots each.  The other two take
 * fragments from the ring, cut them into pieces and multiply: with OUTS = 1 each has 128 of the tile's 256 columns, with
 * OUTS = 2 (kappa > 1) both have the same 128 columns and each makes another output block, so that A is read once for two
 * permutations.  mbarriers tell the sides what is full and what is empty, so that no warp that multiplies ever waits for a
 * random number or an address.
 * Accuracy, Inf and NaN: as in tensor_rows.cu, but sums are promoted every 128 rows: a 20th of the instructions less, and
 * the error is still at most twice that of plain summation (tests/device/accuracy.c).
 *
 * grid     (kappa / OUTS) x M x column tiles x parts, in this order, in x
 * threads  512; registers move from the warpgroups that prepare to those that multiply
 * shared   a ring of panels of S, a ring of STAGES steps of A, mbarriers
 * needs    sm_90; blocks of at most 64 rows; columns of A contiguous, rows 16-byte aligned and whole 16 bytes long */
#include "instances.h"
#include "tensor.cuh"

namespace {

/* Rows of the ring are 32 bytes longer than they need be: then the fragment reads, 32 bytes of four rows, hit all banks. */
template <class T, int OUTS> struct shape {
    enum { WIDTH = 256 / OUTS, ROW_BYTES = WIDTH * (int)sizeof(T) + 32, STEP_BYTES = STEP * ROW_BYTES };
};
enum { PANELS = 4, THREADS = 512, PREPARE = 256, MULTIPLY = 256, MAKERS = 64, COPIERS = 4 };

/* Shared memory: panels, steps, then four groups of mbarriers. */
template <class T, int OUTS, int STAGES> struct memory {
    uint32_t panels, steps, barriers;
    __device__ __forceinline__ explicit memory(const void *shared)
    {
        panels = fs_shared_address(shared);
        steps = panels + PANELS * PANEL_BYTES;
        barriers = steps + STAGES * shape<T, OUTS>::STEP_BYTES;
    }
    __device__ __forceinline__ uint32_t step_full(int i) const { return barriers + 8 * i; }
    __device__ __forceinline__ uint32_t step_empty(int i) const { return barriers + 8 * (STAGES + i); }
    __device__ __forceinline__ uint32_t panel_full(int i) const { return barriers + 8 * (2 * STAGES + i); }
    __device__ __forceinline__ uint32_t panel_empty(int i) const { return barriers + 8 * (2 * STAGES + PANELS + i); }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* A warp that copies: of the four, warp w has step w of every panel.  Each lane works out one row, lanes 16-31 for the panel
 * after that of lanes 0-15; then all lanes copy row after row, 16 bytes each.  (One bulk
 * copy a row took the same time on an H200, and is for whole rows of sm_90 alone.)
 * An empty slot copies the first row, which its column of S, all zero, leaves without effect. */
template <class T, int OUTS, int STAGES>
__device__ void copy_rows(const fs_tile_args &a, const fs_part &p, const memory<T, OUTS, STAGES> &m, int panel_count)
{
    typedef shape<T, OUTS> sh;
    enum { CHUNKS = sh::WIDTH * (int)sizeof(T) / 16, COPIES = (CHUNKS + 31) / 32 };
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & (COPIERS - 1);
    const int64_t left = (a.n - p.column) * (int64_t)sizeof(T) / 16;
    const int chunks = (int)(left < CHUNKS ? left : CHUNKS);
    const char *data = (const char *)a.data + p.column * (int64_t)sizeof(T) + lane * 16;
    for (int t = 0; t < panel_count; t += 2) {
        const int64_t slot = (int64_t)(t + (lane >> 4)) * PANEL + warp * STEP + (lane & 15);
        const int64_t row = slot < p.count ? fs_slot_row(&a.B, p.h, p.first + slot, a.row0, a.rows) : -1;
        const int64_t offset = row < 0 ? 0 : row * a.row_stride * (int64_t)sizeof(T);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            if (t + k >= panel_count) break;
            const int step = (t + k) * (PANEL / STEP) + warp, stage = step % STAGES;
            fs_mbarrier_wait(m.step_empty(stage), step / STAGES & 1 ^ 1);
            const uint32_t to = m.steps + stage * sh::STEP_BYTES + lane * 16;
#pragma unroll 4
            for (int r = 0; r < STEP; r++) {
                const char *from = data + __shfl_sync(~0u, offset, 16 * k + r);
#pragma unroll
                for (int c = 0; c < COPIES; c++)
                    if (c * 32 + lane < chunks) fs_copy16(to + r * sh::ROW_BYTES + c * 512, from + c * 512);
            }
            fs_mbarrier_arrive_copied(m.step_full(stage));
        }
    }
}

/* Two warps that make panels of S, each thread a slot: every second panel, or (OUTS = 2) those of one permutation. */
template <class T, int OUTS, int STAGES>
__device__ void make_panels(const fs_tile_args &a, fs_part p, const memory<T, OUTS, STAGES> &m, uint8_t *panels, int panel_count)
{
    const int slot = threadIdx.x & (MAKERS - 1), pair = threadIdx.x / MAKERS;
    if (OUTS == 2) p = fs_part_for(a, p, p.l + pair);
    for (int turn = OUTS == 2 ? 0 : pair; turn < panel_count; turn += OUTS == 2 ? 1 : 2) {
        const int number = OUTS == 2 ? 2 * turn + pair : turn, at = number % PANELS;
        const int64_t i = (int64_t)turn * PANEL + slot;
        const int64_t row = i < p.count ? fs_slot_row(&a.B, p.h, p.first + i, a.row0, a.rows) : -1;
        fs_mbarrier_wait(m.panel_empty(at), number / PANELS & 1 ^ 1);
        uint4 *clear = (uint4 *)(panels + at * PANEL_BYTES);
#pragma unroll
        for (int c = 0; c < PANEL_BYTES / 16; c += MAKERS) clear[c + slot] = make_uint4(0, 0, 0, 0);
        fs_barrier(2 + pair, MAKERS);
        if (row >= 0) put_slot<is_half<T>::value>(a, p, panels + at * PANEL_BYTES, slot, row + a.row0);
        fs_proxy_fence();
        fs_mbarrier_arrive(m.panel_full(at));
    }
}

/* The pieces of one step's elements, the first of them the largest. */
template <class T, int PASSES, int ROW_BYTES> struct pieces {
    fragment of[1];
    __device__ __forceinline__ void load(uint32_t at)
    {
        uint2 x[4];
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = fs_shared_uint2(at + i * 4 * ROW_BYTES);
        of[0] = pairs(x);
    }
};
template <int PASSES, int ROW_BYTES> struct pieces<float, PASSES, ROW_BYTES> {
    fragment of[PASSES];
    __device__ __forceinline__ void load(uint32_t at)
    {
        float4 x[4];
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = fs_shared_float4(at + i * 4 * ROW_BYTES);
#pragma unroll
        for (int p = 0; p < PASSES; p++) {
            if (p > 0) keep_rest(x);
            of[p] = top_pieces(x);
        }
    }
};

/* sums = f S, plus sums if `keep`; queued. */
template <int HALF>
__device__ __forceinline__ void multiply(float (&sums)[2][32], const fragment &f, uint32_t panel, int step, int keep)
{
    const uint64_t b = fs_wgmma_operand(panel + step * 32);
    fs_wgmma<HALF>(sums[0], f.tile[0], b, keep);
    fs_wgmma<HALF>(sums[1], f.tile[1], b, keep);
}
/* Waits for all that is queued.  The compiler does not know that sums change until then; telling it that they are written
 * here keeps their uses behind. */
__device__ __forceinline__ void drain(float (&sums)[2][32])
{
    fs_wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < 64; i++) asm volatile("" : "+f"(sums[i >> 5][i & 31])::"memory");
}

/* A warpgroup that multiplies: total = its 64 x 128 part of S A. */
template <class T, int PASSES, int OUTS, int STAGES>
__device__ __forceinline__ void multiply_panels(const memory<T, OUTS, STAGES> &m, int panel_count, float (&total)[2][32])
{
    typedef shape<T, OUTS> sh;
    constexpr int HALF = is_half<T>::value;
    const int thread = threadIdx.x - PREPARE, lane = thread & 31, q = lane & 3, out = OUTS == 2 ? thread >> 7 : 0;
    const int column = ((OUTS == 2 ? thread & 127 : thread) >> 5) * 32 + (lane >> 2) * 4;
    const uint32_t from = m.steps + q * sh::ROW_BYTES + column * (int)sizeof(T);
    float sums[2][32];
    int stage = 0, parity = 0;
#pragma unroll
    for (int i = 0; i < 64; i++) total[i >> 5][i & 31] = 0.0f;
#pragma unroll 1
    for (int t = 0; t < panel_count; t++) {
        const int number = OUTS == 2 ? 2 * t + out : t, at = number % PANELS;
        const uint32_t panel = m.panels + at * PANEL_BYTES;
        fragment top[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            pieces<T, PASSES, sh::ROW_BYTES> x;
            fs_mbarrier_wait(m.step_full(stage), parity);
            x.load(from + stage * sh::STEP_BYTES);
            __syncwarp();
            if (lane == 0) fs_mbarrier_arrive(m.step_empty(stage));
            if (++stage == STAGES) stage = 0, parity ^= 1;
            if (k == 0) fs_mbarrier_wait(m.panel_full(at), number / PANELS & 1);
            /* the small pieces at once; registers that wgmma reads must not change before it is done, so it is waited for,
             * while the other warpgroup loads and cuts */
            if (PASSES > 1) {
                fs_wgmma_fence();
                multiply<HALF>(sums, x.of[PASSES - 1], panel, k, k > 0 || t & 1);
                if (PASSES > 2) multiply<HALF>(sums, x.of[PASSES > 2], panel, k, 1);
                fs_wgmma_commit();
                drain(sums);
            }
            top[k] = x.of[0];
        }
        /* the large pieces of all four steps */
        fs_wgmma_fence();
        multiply<HALF>(sums, top[0], panel, 0, PASSES > 1 || t & 1);
#pragma unroll
        for (int k = 1; k < 4; k++) multiply<HALF>(sums, top[k], panel, k, 1);
        fs_wgmma_commit();
        drain(sums);
        if (lane == 0) fs_mbarrier_arrive(m.panel_empty(at));
        if (t & 1 || t == panel_count - 1)
#pragma unroll
            for (int i = 0; i < 64; i++) total[i >> 5][i & 31] += sums[i >> 5][i & 31];
    }
}
#endif

template <class T, int PASSES, int OUTS, int STAGES>
__global__ void __launch_bounds__(THREADS, 1) hopper_rows(const __grid_constant__ fs_tile_args a)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef shape<T, OUTS> sh;
    extern __shared__ __align__(1024) uint8_t shared[];
    const memory<T, OUTS, STAGES> m(shared);
    const int tid = threadIdx.x;
    const fs_part p = fs_part_of(a, OUTS, sh::WIDTH);
    const int panel_count = (int)((p.count + PANEL - 1) / PANEL);

    fs_start_next_kernel();
    /* 1. mbarriers; columns of the ring that no copy fills are zero */
    if (tid == 0) {
        for (int i = 0; i < STAGES; i++) {
            fs_mbarrier_init(m.step_full(i), 32);
            fs_mbarrier_init(m.step_empty(i), MULTIPLY / 32);
        }
        for (int i = 0; i < PANELS; i++) {
            fs_mbarrier_init(m.panel_full(i), MAKERS);
            fs_mbarrier_init(m.panel_empty(i), MULTIPLY / 32 / OUTS);
        }
    }
    if (a.n - p.column < sh::WIDTH)
        for (int i = tid; i < STAGES * sh::STEP_BYTES / 16; i += THREADS)
            ((uint4 *)(shared + PANELS * PANEL_BYTES))[i] = make_uint4(0, 0, 0, 0);
    fs_proxy_fence();
    __syncthreads();

    /* 2. two warpgroups prepare, two multiply */
    if (tid < PREPARE) {
        fs_fewer_registers<56>();
        if (tid < 2 * MAKERS) make_panels<T, OUTS, STAGES>(a, p, m, shared, panel_count);
        else copy_rows<T, OUTS, STAGES>(a, p, m, panel_count);
    } else {
        fs_more_registers<200>();
        float total[2][32];
        multiply_panels<T, PASSES, OUTS, STAGES>(m, panel_count, total);

        /* 3. all finite: scale once, store once, four neighbouring columns of a row at a time */
        float zero = 0.0f;
#pragma unroll
        for (int i = 0; i < 64; i++) zero = fmaf(total[i >> 5][i & 31], 0.0f, zero);
        const int thread = OUTS == 2 ? tid & 127 : tid - PREPARE, width = MULTIPLY / OUTS, out = OUTS == 2 ? tid >> 7 & 1 : 0;
        const fs_part mine = OUTS == 2 ? fs_part_for(a, p, p.l + out) : p;
        if (fs_barrier_or(1, MULTIPLY, zero != 0.0f))
            make_again<T>(a, mine, (float *)shared + out * HEIGHT * width, thread, width);
        else
            store_tile(a, mine, total, thread);
    }
#endif
}

}  // namespace

/* choose.c knows how much shared memory an instance takes. */
#define SHARED(T, dtype, passes, outs, stages) \
    static_assert(FS_HOPPER_ROWS_SHARED(sizeof(T), outs, stages) == \
                  PANELS * PANEL_BYTES + stages * shape<T, outs>::STEP_BYTES + 16 * (stages + PANELS), "instances.h disagrees");
FS_HOPPER_ROWS(SHARED)
#define KERNEL(T, dtype, passes, outs, stages) (const void *)hopper_rows<T, passes, outs, stages>,
extern "C" const void *const fs_hopper_rows_kernels[] = {FS_HOPPER_ROWS(KERNEL)};
