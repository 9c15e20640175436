/* wgmma_rows.cu - BlockPerm-SJLT on the tensor cores of sm_90, rows of A contiguous.
 *
 * Formulation: tensor.cuh, but floats are cut into two f16 split terms instead of three of bf16: see cut_pair
 * there.  Two producer warpgroups, two consumer warpgroups.  In the producer warpgroups, four producer warps fill a
 * ring of rows of A in shared memory, and four generator warps generate sets of S tiles, 128 local rows each.  The
 * consumers take fragments from the ring, cut them into split terms and multiply.  A is read once for OUTS = 1, 2 or 4
 * output tiles: those of a block that has several, and of several permutations:
 *
 *   OUTS   columns of a tile   a warpgroup has
 *     1       256 or 128       128 or 64 columns (TILES tiles of the tensor cores' M axis), one output tile
 *     2          128           64 columns, both output tiles side by side on the N axis
 *    1, 2         64           the same 64 columns as the other, every second S tile (TILES = 0)
 *     4           64           the same 64 columns as the other, two output tiles
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
 * grid     cluster x (outputs / OUTS) x M x column tiles x (slices / cluster), in this order, in x; of
 *          wgmma_rows_persistent these are the work items
 * threads  512; registers move from the producer to the consumer warpgroups
 * shared   a ring of SETS sets of S tiles, a ring of STAGES stages of A, mbarriers, the slices in flight
 * needs    sm_90; output tiles of at most 64 rows; for a tensor map a matrix of whole groups of 128 bytes or at least as
 *          wide as a tile */
#include "cuda/blockperm/wgmma_rows_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/blockperm/common/row_ring.cuh"
#include "cuda/blockperm/common/tensor.cuh"
#include "cuda/blockperm/wgmma_rows/layout.cuh"
#include "cuda/blockperm/wgmma_rows/multiply.cuh"

namespace {

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
/* A generator warp makes the S tiles of a work item, those of one output, of every set or of every second or
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
        multiply_tiles(m, tile_count, every, column, a.n - p.column - column, out, sh::APART ? group : 0, 0, at, total);

        /* 3. all finite: scale once, store once */
        const bool again = fsi_barrier_or(1, THREADS, !finite<T, CHUNKED, sh::ACROSS>(total, a.n - p.column - column));
        if (again && thread < sh::WIDTH * OUTS) {
            const fsi_slice &mine = slices[thread / sh::WIDTH];
            const int64_t own = p.column + thread % sh::WIDTH;
            float *sums = (float *)shared + thread / sh::WIDTH * HEIGHT * sh::PITCH + thread % sh::WIDTH;
            add_serial<T>(a, mine, own, sums, sh::PITCH);
            if (a.cluster == 1 && own >= owned && own < a.n)
                for (int r = 0; r < mine.tile_rows; r++)
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
        for (int r = 0; r < p.tile_rows; r++)
            fsi_output_put(fsi_partial_sums(a, p.l, p.z), p.output_row + r, column, sums[r]);
}
#endif

/* No clusters; warpgroups have columns of their own. */
template <class T, int CHUNKED, int OUTS, int TILES, int STAGES, int SETS> __global__ void __launch_bounds__(THREADS, 1)
    wgmma_rows_persistent(const __grid_constant__ fsi_tile_args a, const __grid_constant__ fsi_row_maps maps)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef shape<T, CHUNKED, OUTS, TILES> sh;
    enum { AHEAD = FSI_WGMMA_ROWS_AHEAD(OUTS, SETS, 1) };
    static_assert(OUTS <= 2 && !sh::APART, "a warpgroup has all outputs of its columns");
    extern __shared__ __align__(1024) uint8_t shared[];
    const memory<T, CHUNKED, OUTS, TILES, STAGES, SETS> m(shared);
    const int tid = threadIdx.x;
    fsi_slice *slices = (fsi_slice *)(shared + FSI_WGMMA_ROWS_PARTS(sizeof(T), CHUNKED, OUTS, TILES, STAGES, SETS));

    fsi_start_next_kernel();
    /* 1. mbarriers */
    if (!CHUNKED && tid == 32) fsi_fetch_map(&maps.all);
    if (tid == 64) make_mbarriers(m);
    fsi_proxy_fence();
    __syncthreads();

    /* 2. producer and consumer warpgroups; the warps that generate the first set of a work item leave its slices for the
     * consumers */
    if (tid < PREPARE) {
        fsi_fewer_registers<sh::PREPARING>();
        if (tid < 32 * MAKERS) {
            const int out = (tid >> 5) % OUTS;
            int before = 0;
            each_item(a, [&](uint32_t item, int number) {
                const fsi_slice p = fsi_slice_of(a, OUTS, sh::WIDTH, item, out);
                if (first_set<OUTS>(before) == 0 && (tid & 31) == 0) slices[number % AHEAD * OUTS + out] = p;
                const int set_count = (s_tiles_of(p) + 1) / 2;
                make_s_tiles(a, p, m, shared, set_count, before);
                before += set_count;
            });
        } else {
            ring_place at = {0, 1};
            each_item(a, [&](uint32_t item, int) {
                fsi_slice p = fsi_slice_of(a, OUTS, sh::WIDTH, item);
                const int64_t owned = CHUNKED ? p.column : place_columns<T, sh::WIDTH>(a, p);
                const int stage_count = s_tiles_of(p) * S_TILE / sh::STAGE, lead = align_local_rows(p);
                if constexpr (CHUNKED) copy_chunks(a, p, lead, m.ring, m.shifts, stage_count, at);
                else
                    copy_rows(a, maps, p, owned, lead, m.ring,
                              FSI_WGMMA_ROWS_BOX(sizeof(T), OUTS, TILES, a.B.shuffle == FSI_DEF_NONE) > 1, stage_count,
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
        fsi_mbarrier_wait(m.set_full(before % SETS), before / SETS & 1); /* then the slices are there too */
        const fsi_slice *slice = slices + number % AHEAD * OUTS;
        const int tile_count = s_tiles_of(*slice);
        const int every = is_float<T>::value ? promotion((int)a.B.s, slice->block_rows) : 4;
        float total[sh::SUMS];
        multiply_tiles(m, tile_count, every, column, a.n - slice->column - column, 0, 0, before, at, total);
        before += (tile_count + 1) / 2;
        if ((tid & 31) == 0) fsi_mbarrier_arrive(m.set_empty((before - 1) % SETS));

        /* 3. all finite: scale once, store once */
        fsi_slice p = *slice;
        const bool again = fsi_barrier_or(1, MULTIPLY, !finite<T, CHUNKED, sh::ACROSS>(total, a.n - p.column - column));
        const int64_t owned = CHUNKED ? p.column : place_columns<T, sh::WIDTH>(a, p);
        if (again) {
            if (thread < sh::WIDTH * OUTS)
                put_again<T>(a, slice[thread / sh::WIDTH], p.column + thread % sh::WIDTH, owned);
        } else {
            const int64_t own = p.column + column + column_at<T, CHUNKED, sh::ACROSS>(0);
            if (own < owned) return;
#pragma unroll
            for (int i = 0; i < OUTS; i++) store_block<T, CHUNKED, sh::ACROSS>(a, slice[i], total + 32 * i, own);
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
    (const void *)wgmma_rows_persistent<T, chunked, outs, tiles, stages, sets>,
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
