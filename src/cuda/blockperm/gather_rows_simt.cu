/* gather_rows_simt.cu - BlockPerm-SJLT by plain additions on sm_90: floats, rows of A contiguous, few nonzeros a
 * column.
 *
 * Formulation: sums stay in registers.  A thread block computes OUTS blocks of Y, 512 bytes wide.  Each of 16 warps has
 * some of their rows, each lane 16 bytes of every row.  Rows of A come 128 at a time into shared memory (row_ring.cuh),
 * and with them comes a list of the nonzeros of S in those 128 columns, sorted by the row of Y: a warp goes through the
 * list of each of its rows and adds the rows of A in it.  So an element of A is written to shared memory once and read
 * OUTS s times, and sums stay out of it: for OUTS s = 4 this takes less time than reading A.  Every sum is rounded to
 * nearest as in plain summation, and an Inf or NaN reaches the rows of its nonzeros and no other.
 *
 * Lists need no sort: one bit for every nonzero is set in the mask of its row, the masks are counted, and the position
 * of a nonzero is where its row begins plus the number of bits before its own.  The order within a row is that of the
 * bits, so it is fixed.
 *
 * grid     (outputs / OUTS) x M x column tiles x slices, in this order, in x; no clusters (they are slower)
 * threads  4 warps that copy rows, 4 that produce lists, 16 that add; registers move to the last
 * shared   a ring of STAGES stages: 128 rows of A, their lists, and where those begin; masks of the warps that list
 * needs    sm_90; rows contiguous or shuffled; output tiles of at most 64 rows; at most four nonzeros of a local row in
 *          OUTS of them; one word per column, without rejection; a matrix that tensor_maps.cu can describe, of whole
 *          groups of 128 bytes or at least as wide as a tile */
#include "cuda/blockperm/gather_rows_simt_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/blockperm/common/row_ring.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

enum {
    ADDERS = FSI_GATHER_ROWS_SIMT_ADDERS,
    LISTERS = FSI_GATHER_ROWS_SIMT_LISTERS,
    PREPARE = 32 * (COPIERS + LISTERS),
    THREADS = FSI_GATHER_ROWS_SIMT_THREADS,
    STAGE = FSI_GATHER_ROWS_SIMT_STAGE,
    STAGES = FSI_GATHER_ROWS_SIMT_STAGES,
    ROW_BYTES = FSI_GATHER_ROWS_SIMT_BYTES
};
static_assert(PREPARE + 32 * ADDERS == THREADS && sizeof(fsi_slice) == 64, "the instance list disagrees");

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <int OUTS> struct shape {
    enum {
        COLUMNS = 16 / (int)sizeof(float), /* of a lane */
        WIDTH = ROW_BYTES / (int)sizeof(float),
        SHARE = ADDERS / OUTS, /* warps that share a block of Y */
        ROWS = HEIGHT / SHARE  /* of Y, of a warp */
    };
    typedef row_ring<float, WIDTH, STAGE, ROW_BYTES, STAGES> ring;
};

/* Where the lists of a stage are, and where those of its output block `out` begin: HEIGHT + 1 numbers, which count
 * bytes from the first list of the stage on. */
struct list_places {
    uint8_t *first;
    __device__ __forceinline__ uint16_t *lists(int stage) const
    {
        return (uint16_t *)(first + stage * FSI_GATHER_ROWS_SIMT_LISTS);
    }
    __device__ __forceinline__ uint16_t *begins(int stage, int out) const
    {
        return lists(stage) + (FSI_GATHER_ROWS_SIMT_ENTRIES + out * FSI_GATHER_ROWS_SIMT_BEGINS) / 2;
    }
};

/* Calls f(i, code) for every nonzero of four local rows, those of `valid`. */
template <class F>
__device__ __forceinline__ void each_nonzero(const fsi_tile_args &a, int valid, const uint32_t (&words)[4], F f)
{
    uint32_t word[4] = {words[0], words[1], words[2], words[3]};
#pragma unroll 1
    for (int t = 0; t < a.B.per_band; t++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t code = fsi_packed_code(&a.B, t, &word[i]);
            if (valid >> i & 1) f(i, code);
        }
}

/* The number of bits of a mask, and of those before bit `lane` of word i. */
__device__ __forceinline__ int bits_of(const uint4 &m) { return __popc(m.x) + __popc(m.y) + __popc(m.z) + __popc(m.w); }
__device__ __forceinline__ int bits_before(const uint4 &m, int i, int lane)
{
    const uint32_t lower = (1u << lane) - 1;
    return __popc(i > 0 ? m.x : m.x & lower) + (i > 0 ? __popc(i > 1 ? m.y : m.y & lower) : 0) +
           (i > 1 ? __popc(i > 2 ? m.z : m.z & lower) : 0) + (i > 2 ? __popc(m.w & lower) : 0);
}

/* A warp that lists the nonzeros of one permutation, of every stage or every second or third, so that none is more than
 * one ring ahead, which the parity of an mbarrier cannot show.  A lane has four local rows.  `masks` are the warp's
 * own, one for each row of the block, bit `lane` of word i for local row 4 lane + i. */
template <int OUTS> __device__ void list_nonzeros(const fsi_tile_args &a, fsi_slice p, int lead,
                                                  const typename shape<OUTS>::ring &ring, const list_places &places,
                                                  uint4 *masks, int warp, int stage_count)
{
    enum { LIST_GROUPS = LISTERS / OUTS < STAGES ? LISTERS / OUTS : STAGES };
    const int lane = threadIdx.x & 31, out = warp % OUTS;
    if (warp / OUTS >= LIST_GROUPS) return;
    masks[lane] = masks[lane + 32] = make_uint4(0, 0, 0, 0);
    __syncwarp();
#pragma unroll 1
    for (int t = warp / OUTS; t < stage_count; t += LIST_GROUPS) {
        const int64_t local_row = (int64_t)t * STAGE + 4 * lane;
        const int stage = t % STAGES;
        /* 1. a bit for every nonzero */
        int64_t column[4];
        uint32_t word[4];
        const int valid = number_local_rows(a, p, local_row, lead, column, word);
        each_nonzero(a, valid, word,
                     [&](int i, uint32_t code) { atomicOr((uint32_t *)(masks + (code >> 1)) + i, 1u << lane); });
        __syncwarp();
        /* 2. where the lists of the lane's two rows begin */
        const int first = bits_of(masks[2 * lane]), both = first + bits_of(masks[2 * lane + 1]);
        int end = both;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int before = __shfl_up_sync(~0u, end, step);
            if (lane >= step) end += before;
        }
        const uint32_t begin = 2 * (out * a.B.per_band * STAGE + end - both);
        fsi_mbarrier_wait(ring.empty(stage), t / STAGES & 1 ^ 1);
        uint16_t *begins = places.begins(stage, out), *lists = places.lists(stage);
        ((uint32_t *)begins)[lane] = begin | (begin + 2 * first) << 16;
        if (lane == 31) begins[HEIGHT] = (uint16_t)(begin + 2 * both);
        __syncwarp();
        /* 3. every nonzero at its position: the address of its row of A, and its sign */
        each_nonzero(a, valid, word, [&](int i, uint32_t code) {
            const int at = begins[code >> 1] / 2 + bits_before(masks[code >> 1], i, lane);
            lists[at] = (uint16_t)((4 * lane + i) * ROW_BYTES | (i & 1) << 6 | (code & 1));
        });
        __syncwarp();
        masks[lane] = masks[lane + 32] = make_uint4(0, 0, 0, 0);
        __syncwarp();
        if (lane == 0) fsi_mbarrier_arrive(ring.full(stage));
    }
}

/* sum += sign x, 16 bytes of x at an address in shared memory. */
__device__ __forceinline__ void add(float (&sum)[4], float sign, uint32_t at)
{
    const float4 x = fsi_shared_float4(at);
    sum[0] = fmaf(sign, x.x, sum[0]);
    sum[1] = fmaf(sign, x.y, sum[1]);
    sum[2] = fmaf(sign, x.z, sum[2]);
    sum[3] = fmaf(sign, x.w, sum[3]);
}

/* A warp that adds: rows first_row ... of output block `out`. */
template <int OUTS> __device__ __forceinline__ void add_listed(const typename shape<OUTS>::ring &ring,
                                                               const list_places &places, int out, int first_row,
                                                               int stage_count,
                                                               float (&sums)[shape<OUTS>::ROWS][shape<OUTS>::COLUMNS])
{
    typedef shape<OUTS> sh;
    const int lane = threadIdx.x & 31;
    const uint32_t place = 16 * lane ^ (lane & 0x18) << 1; /* in an even row, chunks exchanged */
    int stage = 0, parity = 0;
#pragma unroll
    for (int r = 0; r < sh::ROWS; r++)
#pragma unroll
        for (int c = 0; c < sh::COLUMNS; c++) sums[r][c] = 0.0f;
#pragma unroll 1
    for (int t = 0; t < stage_count; t++) {
        const uint32_t rows = ring.stages + stage * sh::ring::STAGE_BYTES;
        const uint32_t from = fsi_shared_address(places.begins(stage, out) + first_row);
        const uint32_t lists = fsi_shared_address(places.lists(stage));
        fsi_mbarrier_wait(ring.full(stage), parity);
        uint32_t begins[sh::ROWS / 2]; /* of two rows each */
#pragma unroll
        for (int i = 0; i < sh::ROWS / 4; i++) {
            const uint2 two = fsi_shared_uint2(from + 8 * i);
            begins[2 * i] = two.x, begins[2 * i + 1] = two.y;
        }
        uint32_t at = lists + (begins[0] & 0xFFFF), entry = fsi_shared_short(at);
        const uint32_t last = fsi_shared_short(from + 2 * sh::ROWS);
#pragma unroll
        for (int r = 0; r < sh::ROWS; r++) {
            const uint32_t next = r + 1 == sh::ROWS ? last : begins[(r + 1) / 2 % (sh::ROWS / 2)];
            const uint32_t end = lists + (r + 1 == sh::ROWS ? next : r & 1 ? next & 0xFFFF : next >> 16);
#pragma unroll 1
            while (at != end) {
                const float sign = __uint_as_float(0x3F800000u + (entry << 31));
                const uint32_t row = rows + ((entry & 0xFFFE) ^ place);
                at += 2;
                entry = fsi_shared_short(at);
                add(sums[r], sign, row);
            }
        }
        __syncwarp();
        if (lane == 0) fsi_mbarrier_arrive(ring.empty(stage));
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
}
#endif

template <int OUTS> __global__ void __launch_bounds__(THREADS, 1)
    gather_rows_simt(const __grid_constant__ fsi_tile_args a, const __grid_constant__ fsi_row_maps maps)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef shape<OUTS> sh;
    extern __shared__ __align__(1024) uint8_t shared[];
    const int tid = threadIdx.x;
    const list_places places = {shared + STAGES * sh::ring::STAGE_BYTES};
    uint8_t *masks = places.first + STAGES * FSI_GATHER_ROWS_SIMT_LISTS;
    fsi_slice *slices = (fsi_slice *)(masks + LISTERS * HEIGHT * 16);
    const typename sh::ring ring = {fsi_shared_address(shared), fsi_shared_address(slices + 4)};

    fsi_start_next_kernel();
    /* 1. what to do; mbarriers: a stage is full when its rows and the lists of its blocks are there */
    fsi_slices_once(a, OUTS, sh::WIDTH, slices);
    if (tid == 32 * OUTS) fsi_fetch_map(&maps.all);
    if (tid == 32 * OUTS + 32)
        for (int i = 0; i < STAGES; i++) {
            fsi_mbarrier_init(ring.full(i), COPIERS + OUTS);
            fsi_mbarrier_init(ring.empty(i), ADDERS);
        }
    fsi_proxy_fence();
    __syncthreads();
    fsi_slice whole = slices[0];
    align_local_rows(whole);
    const int stage_count = (int)((whole.count + STAGE - 1) / STAGE);

    if (tid < PREPARE) {
        /* 2. rows and lists */
        fsi_fewer_registers<64>();
        fsi_slice p = slices[tid < 32 * COPIERS ? 0 : (tid >> 5) % OUTS];
        const int64_t owned = place_columns<float, sh::WIDTH>(a, p);
        const int lead = align_local_rows(p);
        if (tid < 32 * COPIERS) {
            ring_place first = {0, 1};
            copy_rows(a, maps, p, owned, lead, ring, a.B.shuffle == FSI_DEF_NONE, stage_count, first);
        } else {
            const int warp = (tid >> 5) - COPIERS;
            list_nonzeros<OUTS>(a, p, lead, ring, places, (uint4 *)masks + warp * HEIGHT, warp, stage_count);
        }
        return;
    }
    /* 3. sums */
    fsi_more_registers<88>();
    const int warp = (tid - PREPARE) >> 5, out = warp / sh::SHARE, first_row = warp % sh::SHARE * sh::ROWS;
    float sums[sh::ROWS][sh::COLUMNS];
    add_listed<OUTS>(ring, places, out, first_row, stage_count, sums);
    /* 4. scale once, store once */
    fsi_slice p = slices[out];
    const int64_t owned = place_columns<float, sh::WIDTH>(a, p), column = p.column + (tid & 31) * sh::COLUMNS;
    const fsi_output to = fsi_partial_sums(a, p.l, p.z);
    if (to.dtype == FS_F32 && to.col_stride == 1 && to.beta == 0.0 && to.row_stride % 4 == 0 &&
        (uintptr_t)to.data % 16 == 0) {
        const float f = (float)to.factor;
        float *there = (float *)to.data + (p.output_row + first_row) * to.row_stride + column;
        if (column < owned || column >= a.n) return;
#pragma unroll
        for (int r = 0; r < sh::ROWS; r++)
            if (first_row + r < p.tile_rows)
                *(float4 *)(there + r * to.row_stride) = make_float4(f * sums[r][0], f * sums[r][1], f * sums[r][2],
                                                                     f * sums[r][3]);
        return;
    }
    fsi_barrier(1, 32 * ADDERS); /* no thread reads the ring any more */
    float *tiles = (float *)shared, *mine = tiles + (out * HEIGHT + first_row) * sh::WIDTH + (tid & 31) * sh::COLUMNS;
#pragma unroll
    for (int r = 0; r < sh::ROWS; r++)
        *(float4 *)(mine + r * sh::WIDTH) = make_float4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
    add_cluster_sums<OUTS, sh::WIDTH, sh::WIDTH, 32 * ADDERS>(a, slices, p.column, owned, tiles, tid - PREPARE);
#endif
}

}  // namespace

#define KERNEL(T, dtype, outs) (const void *)gather_rows_simt<outs>,
static const void *const gather_rows_simt_instances[] = {FSI_GATHER_ROWS_SIMT(KERNEL)};

static fs_result launch_gather_rows_simt(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                         const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    fsi_row_maps maps;
    FSI_TRY(fsi_gpu_row_maps(gpu, operands->from, fsi_plan_width(plan), fsi_plan_box(problem, plan), &maps));
    void *arguments[] = {&l.args, &maps};
    return fsi_tile_launch_run(&l, gather_rows_simt_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_gather_rows_simt_code = {launch_gather_rows_simt, gather_rows_simt_instances};
