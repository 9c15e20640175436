/* wgmma_groups.cu - BlockPerm-SJLT on the tensor cores of sm_90, columns of A contiguous (batches), row groups
 * assigned.
 *
 * Formulation.  Samples (columns of A) are the M axis of the tensor cores, coordinates (rows of A) the K axis, the at
 * most 64 rows of a block the N axis.  A quad is four neighbouring coordinates at a multiple of four: of floats 16 bytes,
 * of two-byte elements half of that.  Where row groups stay whole (C = 1) a quad is four K positions of one block; where
 * a row group is spread over C blocks it is one K position of each of four blocks, in an order that the mask of its run
 * decides.  Four neighbouring local rows of a block share a Philox call.  An S tile is 16 quads.  In a step a warpgroup
 * multiplies 64 samples by an S tile, for one block (C = 1: four K steps of 16) or for four (a K step each):
 *
 *   C = 1, 4     the warpgroups take the halves of 128 samples and share an S tile (SAMPLES = 128), or have an S tile
 *                each for 64 samples, and their sums are added at the end (SAMPLES = 64)
 *   C = 8, 16    the warpgroups take four blocks each of the same 64 samples, so that a thread block computes eight.
 *                With C = 16 two thread blocks compute the halves of a super-block from the same row groups.
 *
 * Row groups of floats are copied by a tensor map, for all samples at once.  Those two thread blocks are a cluster, and
 * each copies half of the row groups to both, because copies of every second 32 bytes exceed the request rate of L2.
 * Two-byte elements are copied 16 bytes at a time; with C = 16 that is half a sector of memory, and L2 delivers
 * everything twice.  Floats are cut into two f16 split terms, with a scale for every sample: see cut_pair in
 * tensor.cuh. Four blocks are 128 registers of sums a thread.  So a block's products of one step, 16 local rows, are
 * multiplied into 32 other registers and promoted, added to its sums at once; sums of 16 local rows also keep the
 * truncation error of the tensor cores, which round towards zero, small.  C = 1 does the same after 64 local rows, or
 * 256 of two-byte elements.
 * Inf and NaN: as in mma_rows.cu.
 *
 * grid     halves of a super-block (C = 16: two, else one) x super-blocks x sample tiles x slices, in this order, in x
 * cluster  floats with C = 16: the two halves
 * threads  384 or 512: two generator warps, two or six producer warps, two consumer warpgroups, to which registers move
 * shared   a ring of S_TILES S tiles, a ring of STAGES steps of 32 KiB (floats with C = 16: 64, two-byte elements: 16),
 *          mbarriers, masks
 * needs    sm_90; row groups, interleave 1, 4, 8 or 16; kappa = 1; f32, f16, bf16; blocks of one output tile;
 *          coordinates contiguous, samples 16-byte aligned, row0 whole 16 bytes; of floats a matrix that tensor_maps.cu
 *          can describe, otherwise rows that are whole 16 bytes */
#include "cuda/blockperm/wgmma_groups_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/runtime/tensor_maps.cuh"
#include "cuda/blockperm/common/tensor.cuh"
#include "cuda/blockperm/wgmma_groups/copy.cuh"
#include "cuda/blockperm/wgmma_groups/generate.cuh"
#include "cuda/blockperm/wgmma_groups/multiply.cuh"

namespace {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* The same sums by plain additions, for data that are not finite: a thread owns a sample of a block. */
template <class T, int C, int SAMPLES>
__device__ __noinline__ void add_serial(const fsi_tile_args &a, const work &j, float *tile, int thread)
{
    enum { ITEMS = shape<T, C, SAMPLES>::ALL_BLOCKS * SAMPLES };
    const fsi_output to = fsi_partial_sums(a, 1, j.z);
    float *mine = tile + thread;
    for (int item = thread; item < ITEMS; item += CONSUMER_THREADS) {
        const int64_t sample = j.sample + item % SAMPLES;
        const fsi_slice p = block_of_number(a, j, item / SAMPLES);
        if (sample >= a.n) continue;
        for (int r = 0; r < HEIGHT; r++) mine[r * CONSUMER_THREADS] = 0.0f;
        for (int64_t i = j.lead * (FSI_GROUP_ROWS / C); i < j.rounds * (FSI_GROUP_ROWS / C); i++) {
            const int64_t u = j.first * (FSI_GROUP_ROWS / C) + i;
            const int64_t row = fsi_local_row_source(&a.B, p.h, u, a.row0, a.rows);
            if (row < 0) continue;
            const float x = fsi_widen(((const T *)a.data)[sample * a.col_stride + row]);
            each_nonzero_of(a, p, u, [&](uint32_t code) { mine[(code >> 1) * CONSUMER_THREADS] += code & 1 ? -x : x; });
        }
        for (int r = 0; r < p.tile_rows; r++) fsi_output_put(to, p.output_row + r, sample, mine[r * CONSUMER_THREADS]);
    }
}
#endif

template <class T, int C, int SAMPLES, int STAGES, int S_TILES>
__global__ void __launch_bounds__(FSI_WGMMA_GROUPS_THREADS(sizeof(T), C, SAMPLES), 1)
    wgmma_groups(const __grid_constant__ fsi_tile_args a, const __grid_constant__ CUtensorMap map)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef shape<T, C, SAMPLES> sh;
    extern __shared__ __align__(1024) uint8_t shared[];
    const memory<STAGES, S_TILES, sh::STEP_BYTES> m(shared);
    const int tid = threadIdx.x;
    const work j = work_of<C, SAMPLES>(a);
    const int step_count = (int)((j.rounds + sh::GROUPS - 1) / sh::GROUPS);

    fsi_start_next_kernel();
    /* 1. mbarriers */
    if (tid == 0) {
        if (sh::BOXES) fsi_fetch_map(&map);
        for (int i = 0; i < STAGES; i++) {
            fsi_mbarrier_init(m.step_full(i), sh::BOXES ? 1 : 32 + (C > 1));
            fsi_mbarrier_init(m.step_empty(i), CONSUMER_THREADS / 32 * sh::CLUSTER);
        }
        for (int i = 0; i < S_TILES; i++) {
            fsi_mbarrier_init(m.tile_full(i), 1);
            fsi_mbarrier_init(m.tile_empty(i), CONSUMER_THREADS / 32 / sh::STEP_TILES);
        }
        fsi_mbarrier_init(m.begun(), 1);
    }
    fsi_proxy_fence();
    if (sh::CLUSTER > 1) fsi_cluster_begin();
    else __syncthreads();

    /* 2. producer and consumer warps */
    if (tid < sh::PRODUCER_THREADS) {
        fsi_fewer_registers<sh::PRODUCER_REGISTERS>();
        if (tid < 32 * GENERATOR_WARPS) make_s_tiles<T, C, SAMPLES>(a, j, m, shared, step_count * sh::STEP_TILES);
        else if (sh::BOXES) copy_boxes<T, C, SAMPLES>(a, map, j, m, step_count);
        else copy_groups<T, C, SAMPLES>(a, j, m, step_count);
        fsi_barrier_or(1, sh::THREADS, false);
    } else {
        fsi_more_registers<sh::CONSUMER_REGISTERS>();
        const int side = (tid - sh::PRODUCER_THREADS) >> 7, thread = tid & 127;
        float total[sh::BLOCKS][32], zero = 0.0f;
        multiply_steps(position<T, C, SAMPLES, STAGES, S_TILES>(m, j.half), step_count, total);
#pragma unroll
        for (int i = 0; i < 32 * sh::BLOCKS; i++) zero = fmaf(total[i >> 5][i & 31], 0.0f, zero);
        float *tile = (float *)shared;
        if (fsi_barrier_or(1, sh::THREADS, zero != 0.0f)) {
            add_serial<T, C, SAMPLES>(a, j, tile, tid - sh::PRODUCER_THREADS);
            return;
        }

        /* 3. all finite: sums of different row groups are added */
        if (sh::APART) {
            if (side == 1)
#pragma unroll
                for (int i = 0; i < 32 * sh::BLOCKS; i++) tile[i * 128 + thread] = total[i >> 5][i & 31];
            fsi_barrier(2, CONSUMER_THREADS);
            if (side == 1) return;
#pragma unroll
            for (int i = 0; i < 32 * sh::BLOCKS; i++) total[i >> 5][i & 31] += tile[i * 128 + thread];
        }

        /* 4. scale once, store once */
        const fsi_output to = fsi_partial_sums(a, 1, j.z);
        const int64_t sample = j.sample + sample_of<T, C, SAMPLES>(side);
        const int block = C < 8 ? 0 : 4 * side;
#pragma unroll
        for (int t = 0; t < sh::BLOCKS; t++)
            store_samples<T>(a, block_of_number(a, j, block + t), to, total[t], sample);
    }
#endif
}

}  // namespace

/* The plan file knows how much shared memory an instance takes. */
#define SHARED(T, dtype, c, samples, stages, panels) \
    static_assert(FSI_WGMMA_GROUPS_SHARED(sizeof(T), c, stages, panels) == \
                      panels * S_TILE_BYTES + stages * shape<T, c, samples>::STEP_BYTES + 16 * (stages + panels) + 8 + \
                          MASK_BYTES * stages, \
                  "the instance list disagrees");
FSI_WGMMA_GROUPS(SHARED)
#define KERNEL(T, dtype, c, samples, stages, panels) (const void *)wgmma_groups<T, c, samples, stages, panels>,
static const void *const wgmma_groups_instances[] = {FSI_WGMMA_GROUPS(KERNEL)};

static fs_result launch_wgmma_groups(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                     const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    CUtensorMap map;
    if (FSI_WGMMA_GROUPS_BOXES(fsi_dtype_size(operands->from->dtype)))
        FSI_TRY(fsi_gpu_group_map(gpu, operands->from, (int)fsi_plan_width(plan), &map));
    void *arguments[] = {&l.args, &map};
    return fsi_tile_launch_run(&l, wgmma_groups_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_wgmma_groups_code = {launch_wgmma_groups, wgmma_groups_instances};
