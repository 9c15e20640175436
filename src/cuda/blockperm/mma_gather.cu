/* mma_gather.cu - BlockPerm-SJLT on the tensor cores by mma.sync, elements of A straight from global memory: the rows
 * that a list names (a mask and a sketch in one pass), products of rows (factored.cu), and batches, columns of A
 * contiguous, that wgmma_groups.cu does not take.
 *
 * Formulation.  As in tensor.cuh, but nothing is staged: a gathered row of a batch of gradients is one element of every
 * sample, and memory delivers 32 bytes for its four in any case.  So the elements of a fragment go straight from global
 * memory into the registers of the thread that multiplies them.  A thread has the 16 elements of 32 local rows in
 * flight at once, in 16 warps of an SM.  Warps that share samples take 32 local rows in turn; their sums are added in
 * order.
 * Factored input is multiplied out on the way: the examples of a factor's row are contiguous and in L2, and a thread
 * reads two neighbours of each; for 32 examples a local row is 64 bytes of two factors.  Neighbouring local rows often
 * have one factor in common, which is then in L1.  Accuracy, Inf and NaN: as in mma_rows.cu.  An element of a row that
 * does not exist counts as NaN.
 *
 * grid     outputs x M x tiles of samples x slices, in this order, in x
 * threads  8 warps: two for each 16 of 64 samples; four of 32, where factored input would leave SMs idle
 * shared   a chunk of S (256 local rows, four S tiles) and where in A its rows are; then the sums of all but the first
 *          warp of a group, or the tile of sums by plain additions
 * needs    output tiles of at most 64 rows; any strides */
#include "cuda/blockperm/mma_gather_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

enum {
    THREADS = FSI_MMA_GATHER_THREADS,
    CHUNK = THREADS,
    S_TILES = CHUNK / 64,
    UNIT = 32,
    STEPS = UNIT / STEP,
    UNITS = CHUNK / UNIT
};
static_assert(FSI_MMA_GATHER_SHARED == S_TILES * S_TILE_BYTES + 8 * CHUNK, "the instance list disagrees");

/* What an element is kept as: a float, or two bytes as they are. */
template <class T> struct kept {
    typedef uint16_t type;
};
template <> struct kept<float> {
    typedef float type;
};

/* The 32 local rows of a unit, as fragments: rows q + 4 i of a step of 16, samples `first` and first + 8 (factored
 * input: `first` and first + 1). */
template <class T> struct elements {
    enum { PASSES = is_float<T>::value ? 3 : 1 };
    typedef typename kept<T>::type element;
    element x[STEPS][4][2];
    __device__ __forceinline__ void take(int step, int i, int v, const T *at) { x[step][i][v] = *(const element *)at; }
    __device__ __forceinline__ void cut(int step, fragment<1> (&of)[PASSES])
    {
        if constexpr (is_float<T>::value) {
            split_terms<float, PASSES, 1, 0> p;
            p.cut(x[step]);
#pragma unroll
            for (int i = 0; i < PASSES; i++) of[i] = p.of[i];
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                of[0].tile[0][i] = x[step][i & 2][i & 1] | (uint32_t)x[step][(i & 2) + 1][i & 1] << 16;
        }
    }
};

/* total += the products of a unit, which begins at step `first` of its S tile: the small split terms of all steps
 * first, then the large ones. */
template <class T>
__device__ __forceinline__ void multiply_unit(elements<T> &e, uint32_t s_tile, int first, float (&total)[32])
{
    enum { HALF = is_half<T>::value, PASSES = elements<T>::PASSES };
    float sums[32];
    fragment<1> top[STEPS];
#pragma unroll
    for (int i = 0; i < 32; i++) sums[i] = 0.0f;
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        fragment<1> of[PASSES];
        e.cut(step, of);
#pragma unroll
        for (int i = PASSES - 1; i > 0; i--) multiply<HALF, 1, 1>(sums, of[i], s_tile, first + step);
        top[step] = of[0];
    }
#pragma unroll
    for (int step = 0; step < STEPS; step++) multiply<HALF, 1, 1>(sums, top[step], s_tile, first + step);
#pragma unroll
    for (int i = 0; i < 32; i++) total[i] += sums[i];
}

/* The elements of a unit as products of its local rows' pairs, two neighbouring examples from column on. */
template <class T> __device__ __forceinline__ void multiply_factors(const fsi_factors &F, const int2 *pairs,
                                                                    int64_t column, elements<T> &e)
{
    const char *base = fsi_factor_at(F, 0, column);
#pragma unroll 1
    for (int t = 0; t < F.tokens; t++, base += F.token) {
        float2 x[UNIT / 4], y[UNIT / 4];
#pragma unroll
        for (int i = 0; i < UNIT / 4; i++) {
            const int2 pair = pairs[4 * i];
            x[i] = *(const float2 *)(base + (uint64_t)(uint32_t)pair.x * F.row);
            y[i] = *(const float2 *)(base + (uint64_t)(uint32_t)pair.y * F.row);
        }
#pragma unroll
        for (int i = 0; i < UNIT / 4; i++) {
            float(&sum)[2] = e.x[i >> 2][i & 3];
            sum[0] = t == 0 ? __fmul_rn(x[i].x, y[i].x) : __fmaf_rn(x[i].x, y[i].x, sum[0]);
            sum[1] = t == 0 ? __fmul_rn(x[i].y, y[i].y) : __fmaf_rn(x[i].y, y[i].y, sum[1]);
        }
    }
}

#if __CUDA_ARCH__ >= 800
/* The sums of a group's warps added in order, scaled once, stored once. */
template <class T, bool PRODUCTS, int GROUPS, int SHARES>
__device__ __forceinline__ void store_shares(const fsi_tile_args &a, const fsi_slice &p, const fsi_output &to,
                                             int group, int share, int lane, int first, float *tile, float (&total)[32])
{
    if (share > 0)
#pragma unroll
        for (int i = 0; i < 32; i++) tile[((share - 1) * 32 + i) * (32 * GROUPS) + group * 32 + lane] = total[i];
    if (SHARES > 1) __syncthreads();
    if (share > 0) return;
#pragma unroll
    for (int other = 0; other < SHARES - 1; other++)
#pragma unroll
        for (int i = 0; i < 32; i++) total[i] += tile[(other * 32 + i) * (32 * GROUPS) + group * 32 + lane];
    store_samples<T, PRODUCTS ? 1 : 8>(a, p, to, total, p.column + first);
}
#endif

template <class T, bool PRODUCTS, int SAMPLES> __global__ void __launch_bounds__(THREADS, 2)
    mma_gather(const __grid_constant__ fsi_tile_args a)
{
#if __CUDA_ARCH__ >= 800
    constexpr int ONE = is_half<T>::value ? F16_ONE : BF16_ONE, GROUPS = SAMPLES / 16, SHARES = THREADS / 32 / GROUPS;
    extern __shared__ __align__(1024) uint8_t shared[];
    int64_t *offsets = (int64_t *)(shared + S_TILES * S_TILE_BYTES);
    int2 *pairs = (int2 *)offsets; /* of products, in their place */
    const int tid = threadIdx.x, warp = tid >> 5, group = warp % GROUPS, share = warp / GROUPS;
    const int lane = tid & 31, q = lane & 3, first = group * 16 + (PRODUCTS ? 2 : 1) * (lane >> 2);
    const fsi_slice p = fsi_slice_of(a, 1, SAMPLES);
    /* Samples behind the last repeat the last and are not stored.  Empty local rows read row 0, or in factored input
     * two rows of ones, and have no nonzeros. */
    const T *sample[2];
#pragma unroll
    for (int v = 0; v < 2; v++) sample[v] = (const T *)a.data + min(p.column + first + 8 * v, a.n - 1) * a.col_stride;
    bool missing = false; /* whether the list names a row that does not exist */
    float total[32];
#pragma unroll
    for (int i = 0; i < 32; i++) total[i] = 0.0f;

    fsi_start_next_kernel();
    for (int64_t c = 0; c < p.count; c += CHUNK) {
        /* 1. a local row for each thread: where its row is, and its nonzeros */
        const int64_t row = c + tid < p.count ? fsi_local_row_source(&a.B, p.h, p.first + c + tid, a.row0, a.rows) : -1;
        int64_t from = 0;
        int2 pair = make_int2(a.factors.width, a.factors.width);
        if (PRODUCTS && row >= 0) pair = fsi_pair_at(a.factors, row);
        if (!PRODUCTS) from = row < 0 ? 0 : fsi_source_row(a, row);
        missing |= PRODUCTS ? pair.x < 0 : from < 0;
        uint4 *s_tiles = (uint4 *)shared;
        __syncthreads();
        if (PRODUCTS) pairs[tid] = make_int2(pair.x < 0 ? a.factors.width : pair.x, pair.y);
        else offsets[tid] = from < 0 ? 0 : from * a.row_stride;
#pragma unroll
        for (int i = 0; i < S_TILES * S_TILE_BYTES / 16; i += THREADS) s_tiles[i + tid] = make_uint4(0, 0, 0, 0);
        __syncthreads();
        if (row >= 0) put_nonzeros<ONE>(a, p, shared + (tid >> 6) * S_TILE_BYTES, c + tid);
        if (PRODUCTS) fsi_await_last_kernel();
        __syncthreads();
#pragma unroll 1
        for (int unit = share; unit < UNITS && c + UNIT * unit < p.count; unit += SHARES) {
            /* 2. elements */
            elements<T> e;
            if constexpr (PRODUCTS) multiply_factors(a.factors, pairs + UNIT * unit + q, p.column + first, e);
            else
#pragma unroll
                for (int i = 0; i < UNIT / 4; i++) {
                    const int64_t offset = offsets[UNIT * unit + 4 * i + q];
#pragma unroll
                    for (int v = 0; v < 2; v++) e.take(i >> 2, i & 3, v, sample[v] + offset);
                }
            /* 3. products */
            multiply_unit<T>(e, fsi_shared_address(shared) + (unit >> 1) * S_TILE_BYTES, (unit & 1) * STEPS, total);
        }
    }

    /* 4. all finite, and all rows exist: sums of a group's warps are added, scaled once, stored once */
    float zero = 0.0f, *tile = (float *)shared;
    const fsi_output to = fsi_partial_sums(a, p.l, p.z);
#pragma unroll
    for (int i = 0; i < 32; i++) zero = fmaf(total[i], 0.0f, zero);
    if (__syncthreads_or(missing || zero != 0.0f)) {
        const int64_t column = p.column + tid;
        if (tid >= SAMPLES || column >= a.n) return;
        add_serial<T, PRODUCTS>(a, p, column, tile + tid, SAMPLES);
        for (int r = 0; r < p.tile_rows; r++) fsi_output_put(to, p.output_row + r, column, tile[r * SAMPLES + tid]);
        return;
    }
    store_shares<T, PRODUCTS, GROUPS, SHARES>(a, p, to, group, share, lane, first, tile, total);
#endif
}

}  // namespace

#define KERNEL(T, dtype) (const void *)mma_gather<T, false, FSI_MMA_GATHER_SAMPLES>,
#define PRODUCT(T, samples) (const void *)mma_gather<T, true, samples>,
static const void *const mma_gather_instances[] = {FSI_MMA_GATHER(KERNEL)};

static fs_result launch_mma_gather(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                   const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    void *arguments[] = {&l.args};
    return fsi_tile_launch_run(&l, mma_gather_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_mma_gather_code = {launch_mma_gather, NULL};

static const void *const mma_factored_instances[] = {FSI_MMA_FACTORED(PRODUCT)};

static fs_result launch_mma_factored(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                     const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    /* The factors are copied before, and that kernel ends while this one generates its first tiles of S. */
    l.attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    l.attribute.val.programmaticStreamSerializationAllowed = 1;
    l.config.numAttrs = gpu->traits.arch >= 90;
    void *arguments[] = {&l.args};
    return fsi_tile_launch_run(&l, mma_factored_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_mma_factored_code = {launch_mma_factored, NULL};
