/* gaussian_wgmma.cu - the dense Gaussian on the tensor cores of sm_90, f32 and two-byte elements; adjoint too.
 *
 * The result is L R with L = z or z', R = A or Y.  Two kernels for every panel of the inner dimension:
 *
 *   make      the panel of L, once: entries times 2^13 are cut into two f16 split terms, hi and lo, and stored as the
 *             images of shared memory that wgmma reads, 128 rows x 64 inner places each
 *   multiply  a thread block has 128 columns of R and 128 rows of the result.  A producer thread copies images into a
 *             ring; two warpgroups of 64 columns each load their elements of R straight into the registers in which
 *             wgmma takes its first operand, cut them there, and multiply
 *
 * Split terms: |z| < 6.77, so hi + lo has 22 of its 24 bits, and one more in the sign of lo.  In every chunk of 64 rows
 * of R, a column of floats is multiplied by the power of two that brings its largest element to [2^14, 2^15), and cut
 * likewise.  The products lo hi, hi lo and hi hi are summed; lo lo is less than a rounding.  bf16 is one term after the
 * same scaling, f16 as it is: two products.
 * Accuracy: the tensor cores truncate, so the small products of a chunk come first, and after each chunk the sums are
 * promoted: multiplied by the power of two and added to rounded ones (tests/device/accuracy.c).
 * Inf and NaN: a column of R is a row of wgmma's M axis, which no other column meets; all entries of S count.
 * Order: slices and panels depend on the shapes and the GPU alone.  Slices leave sums in partial-sum buffers, which
 * later panels add to, and split_reduce.cu adds in order.
 *
 * Neighbouring column tiles are a cluster where their number is even: each thread block copies one of the two terms, to
 * both.
 *
 * K positions: a thread's four inner places of a step of 16 are neighbours in R, 4 q ... 4 q + 3, so that they may be
 * one load; `place_of` is this order. */
#include "cuda/families/gaussian.cuh"
#include "cuda/runtime/element.cuh"
#include "cuda/runtime/ptx.cuh"
#include "cuda/runtime/split_reduce.cuh"

#include "def/gauss.h"

namespace {

enum {
    ROWS = 128,                   /* of the result in a tile: wgmma's N axis */
    COLS = 128,                   /* two warpgroups' M axis */
    CHUNK = 64,                   /* inner places of an image */
    TERM_BYTES = ROWS * 128,      /* an image of one split term: rows of 128 bytes, 128-byte swizzle */
    IMAGE_BYTES = 2 * TERM_BYTES, /* hi, lo */
    STAGES = 4,
    SHARED_BYTES = STAGES * (IMAGE_BYTES + 16),
    PRODUCERS = 128,
    CONSUMERS = 256,
    SINGLES = 0, /* how elements of R are loaded: one by one, */
    PAIRS = 1,   /* two neighbours of a row, */
    FOURS = 2    /* four neighbours of a column */
};
const int64_t MOST_BYTES = (int64_t)1 << 27; /* of images, and of sums */
const int64_t MOST_ROWS = 32768;             /* of the result that have images at the same time */

/* What panel, rows and columns a launch multiplies. */
struct panel_call {
    const uint8_t *images; /* row tile t, chunk c: number t chunks + c */
    const void *from;      /* the panel's first row, the first column */
    int64_t row_stride, col_stride;
    int64_t inner, cols;
    int64_t chunks, piece; /* all of the panel; of a slice */
    unsigned row_tiles, col_tiles;
    float *sums; /* slice s from s rows cols on */
    int64_t rows, sum_row_stride, sum_col_stride;
    int add; /* to what earlier panels left */
    int loads;
    int cluster;
};

/* make --------------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ uint32_t bits_of(__half2 x) { return *(const uint32_t *)&x; }

/* x and y in two split terms, whose sums they are but for at most their last bit, or 2^-25. */
__device__ __forceinline__ void cut_two(float x, float y, uint32_t &hi, uint32_t &lo)
{
    const __half2 first = __floats2half2_rn(x, y);
    const float2 there = __half22float2(first);
    hi = bits_of(first);
    lo = bits_of(__floats2half2_rn(x - there.x, y - there.y));
}

/* Eight entries of a row, K positions 8 unit ... 8 unit + 7 of an image. */
__device__ __forceinline__ void put_unit(uint8_t *image, int row, int unit, const float (&z)[8])
{
    uint32_t hi[4], lo[4];
#pragma unroll
    for (int i = 0; i < 4; i++) cut_two(z[2 * i] * 8192.0f, z[2 * i + 1] * 8192.0f, hi[i], lo[i]);
    uint8_t *to = image + row * 128 + (unit ^ (row & 7)) * 16;
    *(uint4 *)to = make_uint4(hi[0], hi[1], hi[2], hi[3]);
    *(uint4 *)(to + TERM_BYTES) = make_uint4(lo[0], lo[1], lo[2], lo[3]);
}

/* The inner place of K position 8 unit + e. */
__device__ __forceinline__ constexpr int place_of(int unit, int e)
{
    return 16 * (unit >> 1) + 4 * (e >> 1) + 2 * (unit & 1) + (e & 1);
}

/* A thread block makes an image.  Rows and inner places outside of S are made too: they meet zeros, or their sums are
 * dropped.  Row i of S, column row0 + j: in apply i is the image's row and j its inner place. */
template <bool ADJOINT> __global__ void __launch_bounds__(256)
    make(const __grid_constant__ fsi_gauss G, int64_t row, int64_t inner, int64_t row0, int64_t chunks, uint8_t *images)
{
    uint8_t *image = images + blockIdx.x * (int64_t)IMAGE_BYTES;
    row += blockIdx.x / chunks * ROWS;
    inner += blockIdx.x % chunks * CHUNK;
    if (ADJOINT) {
#pragma unroll 1
        for (int i = threadIdx.x; i < ROWS * CHUNK / 16; i += 256) {
            const int step = i & 3, j = i >> 2;
            float z[4][4];
#pragma unroll
            for (int q = 0; q < 4; q++) fsi_gauss_four(&G, (inner + 16 * step + 4 * q) >> 2, row0 + row + j, z[q]);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float unit[8];
#pragma unroll
                for (int e = 0; e < 8; e++) unit[e] = z[e >> 1][2 * half + (e & 1)];
                put_unit(image, j, 2 * step + half, unit);
            }
        }
    } else {
        const int unit = threadIdx.x & 7, first = threadIdx.x >> 3 << 2;
        float z[8][4];
#pragma unroll
        for (int e = 0; e < 8; e++) fsi_gauss_four(&G, (row + first) >> 2, row0 + inner + place_of(unit, e), z[e]);
#pragma unroll
        for (int r = 0; r < 4; r++) {
            float of_row[8];
#pragma unroll
            for (int e = 0; e < 8; e++) of_row[e] = z[e][r];
            put_unit(image, first + r, unit, of_row);
        }
    }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* multiply ----------------------------------------------------------------------------------------------------- */

/* A thread's elements of a chunk: step s, place r, its column c. */
template <class T> struct elements {
    T x[4][4][2];
};

/* `first` is the thread's first column, `own` that of its warp.  What is outside of R is 0, and not read. */
template <class T>
__device__ __forceinline__ void load(const panel_call &C, int64_t chunk, int64_t first, int64_t own, elements<T> &e)
{
    const int64_t row = chunk * CHUNK + 4 * (threadIdx.x & 3), stride = C.row_stride, across = C.col_stride;
    const T *from = (const T *)C.from + row * stride + first * across;
    const bool whole = chunk * CHUNK + CHUNK <= C.inner && own + 16 <= C.cols;
    if (!whole) {
        const int rows = (int)min(C.inner - row, (int64_t)CHUNK), cols = (int)min(C.cols - first, (int64_t)2);
#pragma unroll
        for (int i = 0; i < 32; i++) {
            const int s = i >> 3, r = i >> 1 & 3, c = i & 1;
            e.x[s][r][c] = T(0.0f);
            if (16 * s + r < rows && c < cols) e.x[s][r][c] = from[(16 * s + r) * stride + c * across];
        }
    } else if (C.loads == PAIRS) {
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const int s = i >> 2, r = i & 3;
            const pack<T, 2> two = *(const pack<T, 2> *)(from + (16 * s + r) * stride);
            e.x[s][r][0] = two.x[0], e.x[s][r][1] = two.x[1];
        }
    } else if (C.loads == FOURS) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int s = i >> 1, c = i & 1;
            const pack<T, 4> four = *(const pack<T, 4> *)(from + 16 * s + c * across);
#pragma unroll
            for (int r = 0; r < 4; r++) e.x[s][r][c] = four.x[r];
        }
    } else {
#pragma unroll
        for (int i = 0; i < 32; i++) {
            const int s = i >> 3, r = i >> 1 & 3, c = i & 1;
            e.x[s][r][c] = from[(16 * s + r) * stride + c * across];
        }
    }
}

/* Split terms of a chunk as wgmma takes them, and the powers of two that undo the scaling of a column and of z. */
template <class T> struct fragments {
    enum { TERMS = sizeof(T) == 4 ? 2 : 1 };
    uint32_t of[TERMS][4][4];
    float down[2];
    /* Registers that wgmma reads keep their values until here. */
    __device__ __forceinline__ void keep() const
    {
#pragma unroll
        for (int i = 0; i < 16 * TERMS; i++) asm volatile("" ::"r"(of[i >> 4][i >> 2 & 3][i & 3]));
    }
};
template <class T> __device__ __forceinline__ void cut(const elements<T> &e, fragments<T> &f)
{
    float up[2];
#pragma unroll
    for (int c = 0; c < 2; c++) {
        float most = 0.0f;
#pragma unroll
        for (int i = 0; i < 16; i++) most = fmaxf(most, fabsf(fsi_widen(e.x[i >> 2][i & 3][c])));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
        const int exponent = (int)(__float_as_uint(most) >> 23);
        up[c] = __uint_as_float((uint32_t)min(268 - exponent, 253) << 23);
        f.down[c] = __uint_as_float((uint32_t)max(exponent - 14, 1) << 23) * 0x1p-13f;
    }
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int c = i & 1, r = i & 2;
            const float x = fsi_widen(e.x[s][r][c]) * up[c], y = fsi_widen(e.x[s][r + 1][c]) * up[c];
            if constexpr (fragments<T>::TERMS == 2) cut_two(x, y, f.of[0][s][i], f.of[1][s][i]);
            else f.of[0][s][i] = bits_of(__floats2half2_rn(x, y));
        }
}
__device__ __forceinline__ void cut(const elements<__half> &e, fragments<__half> &f)
{
    f.down[0] = f.down[1] = 0x1p-13f;
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            f.of[0][s][i] = bits_of(__halves2half2(e.x[s][i & 2][i & 1], e.x[s][(i & 2) + 1][i & 1]));
}

/* sum = L R of a chunk, the smallest products first; queued. */
template <class T> __device__ __forceinline__ void multiply_chunk(float (&sum)[64], const fragments<T> &f, uint32_t hi)
{
    const uint32_t lo = hi + TERM_BYTES;
#pragma unroll
    for (int s = 0; s < 4; s++) fsi_wgmma<1, ROWS>(sum, f.of[0][s], fsi_wgmma_operand(lo + 32 * s), s > 0);
    if constexpr (fragments<T>::TERMS == 2)
#pragma unroll
        for (int s = 0; s < 4; s++) fsi_wgmma<1, ROWS>(sum, f.of[1][s], fsi_wgmma_operand(hi + 32 * s), 1);
#pragma unroll
    for (int s = 0; s < 4; s++) fsi_wgmma<1, ROWS>(sum, f.of[0][s], fsi_wgmma_operand(hi + 32 * s), 1);
}

/* The ring of images: stage number i has been used i / STAGES times before. */
struct ring_of {
    uint32_t images, mbarriers;
    __device__ __forceinline__ uint32_t image(int stage) const { return images + stage * IMAGE_BYTES; }
    __device__ __forceinline__ uint32_t full(int stage) const { return mbarriers + 16 * stage; }
    __device__ __forceinline__ uint32_t empty(int stage) const { return mbarriers + 16 * stage + 8; }
};

/* One thread: in a cluster the term of this thread block's rank to both, otherwise both terms. */
__device__ __forceinline__ void fill(const panel_call &C, const ring_of &ring, const uint8_t *image, int count)
{
    const int rank = fsi_cluster_rank();
#pragma unroll 1
    for (int i = 0; i < count; i++, image += IMAGE_BYTES) {
        const int stage = i % STAGES;
        fsi_mbarrier_wait(ring.empty(stage), i / STAGES & 1 ^ 1);
        fsi_mbarrier_arrive_expect(ring.full(stage), IMAGE_BYTES);
        if (C.cluster == 1) fsi_copy_bytes(ring.image(stage), image, IMAGE_BYTES, ring.full(stage));
        else
            fsi_copy_bytes_to_both(ring.image(stage) + rank * TERM_BYTES, image + rank * TERM_BYTES, TERM_BYTES,
                                   ring.full(stage));
    }
}
/* A warp has read a stage, which the producers of all thread blocks of the cluster write. */
__device__ __forceinline__ void release(const panel_call &C, const ring_of &ring, int stage)
{
    const int lane = threadIdx.x & 31;
    if (lane < C.cluster) fsi_mbarrier_arrive_in(lane, ring.empty(stage));
}

/* A warpgroup: total = its slice of the product, from chunk `begin` on. */
template <class T> __device__ __forceinline__ void multiply_chunks(const panel_call &C, const ring_of &ring,
                                                                   int64_t begin, int count, int64_t first, int64_t own,
                                                                   float (&total)[64])
{
    elements<T> next;
    if (count > 0) load(C, begin, first, own, next);
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const int stage = i % STAGES;
        fragments<T> f;
        float sum[64];
        cut(next, f);
        if (i + 1 < count) load(C, begin + i + 1, first, own, next);
        fsi_mbarrier_wait(ring.full(stage), i / STAGES & 1);
        fsi_wgmma_fence();
        multiply_chunk(sum, f, ring.image(stage));
        fsi_wgmma_commit();
        fsi_wgmma_wait<0>();
        f.keep();
        release(C, ring, stage);
#pragma unroll
        for (int j = 0; j < 64; j++) total[j] = fmaf(sum[j], f.down[j >> 1 & 1], total[j]);
    }
}
#endif

template <class T> __global__ void __launch_bounds__(PRODUCERS + CONSUMERS, 1)
    multiply(const __grid_constant__ panel_call C)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ __align__(1024) uint8_t shared[];
    const uint32_t memory = fsi_shared_address(shared);
    const ring_of ring = {memory, memory + STAGES * IMAGE_BYTES};
    const int tid = threadIdx.x;

    /* 1. which tile, and which slice; mbarriers */
    const unsigned tiles = C.row_tiles * C.col_tiles, slice = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    const unsigned pair = tile / (C.row_tiles * C.cluster), in_pair = tile % (C.row_tiles * C.cluster);
    const int64_t row_tile = in_pair / C.cluster, col_tile = pair * C.cluster + in_pair % C.cluster;
    const int64_t begin = min(slice * C.piece, C.chunks);
    const int count = (int)(min(begin + C.piece, C.chunks) - begin);
    if (tid == 0) {
        for (int i = 0; i < STAGES; i++) {
            fsi_mbarrier_init(ring.full(i), 1);
            fsi_mbarrier_init(ring.empty(i), CONSUMERS / 32 * C.cluster);
        }
    }
    fsi_proxy_fence();
    __syncthreads();
    fsi_cluster_begin();

    /* 2. a producer and two consumer warpgroups */
    if (tid < PRODUCERS) {
        fsi_fewer_registers<24>();
        if (tid == 0) fill(C, ring, C.images + (row_tile * C.chunks + begin) * IMAGE_BYTES, count);
    } else {
        fsi_more_registers<240>();
        const int group = (tid - PRODUCERS) >> 7, lane = tid & 31;
        const int64_t own = col_tile * COLS + group * 64 + (tid >> 5 & 3) * 16, first = own + (lane >> 2) * 2;
        if (col_tile * COLS + group * 64 < C.cols) {
            float total[64] = {};
            multiply_chunks<T>(C, ring, begin, count, first, own, total);
            float *sums = C.sums + slice * (C.rows * C.cols);
#pragma unroll
            for (int j = 0; j < 64; j++) {
                const int64_t row = row_tile * ROWS + 8 * (j >> 2) + 2 * (lane & 3) + (j & 1);
                const int64_t col = first + (j >> 1 & 1);
                if (row >= C.rows || col >= C.cols) continue;
                float *to = sums + row * C.sum_row_stride + col * C.sum_col_stride;
                *to = C.add ? *to + total[j] : total[j];
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < count; i++) {
                fsi_mbarrier_wait(ring.full(i % STAGES), i / STAGES & 1);
                release(C, ring, i % STAGES);
            }
        }
    }
    /* Shared memory lives until the other thread block has copied the last image and reported the last stage. */
    __syncwarp();
    fsi_cluster_meet();
#endif
}

/* launch ------------------------------------------------------------------------------------------------------- */

/* Some rows and columns of the result, and the panels they are made of. */
struct band {
    int64_t rows, cols, row_tiles, col_tiles;
    int64_t chunks; /* of a panel */
    int slices;
};

/* Slices with which the SMs finish first, if all work as fast: as many rounds of thread blocks as there are, each as
 * long as a slice's chunks and about four more to begin and end. */
int slices_of(const fsi_gpu *gpu, const band &b)
{
    const int64_t tiles = b.row_tiles * b.col_tiles, bytes = b.rows * b.cols * (int64_t)sizeof(float);
    int best = 1;
    int64_t least = INT64_MAX;
    for (int s = 1; s <= 64 && (s == 1 || (4 * s <= b.chunks && s * bytes <= MOST_BYTES)); s++) {
        const int64_t time = fsi_div_up(tiles * s, gpu->traits.processors) * (fsi_div_up(b.chunks, s) + 4);
        if (time < least) least = time, best = s;
    }
    return best;
}

template <class T> int loads_of(const fs_matrix *from)
{
    const uintptr_t at = (uintptr_t)from->data;
    if (from->col_stride == 1 && from->row_stride % 2 == 0 && at % (2 * sizeof(T)) == 0) return PAIRS;
    if (from->row_stride == 1 && from->col_stride % 4 == 0 && at % (4 * sizeof(T)) == 0) return FOURS;
    return SINGLES;
}

template <class T> fs_result launch_multiply(fsi_gpu *gpu, const panel_call &C, int slices)
{
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)C.cluster;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(C.row_tiles * C.col_tiles * (unsigned)slices);
    config.blockDim = dim3(PRODUCERS + CONSUMERS);
    config.dynamicSmemBytes = SHARED_BYTES;
    config.stream = gpu->stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    return fsi_gpu_check(gpu, cudaLaunchKernelEx(&config, multiply<T>, C), "the product with a Gaussian");
}

/* The band of the result at (row, col). */
template <class T> fs_result run_band(fsi_gpu *gpu, const fsi_gauss *S, int adjoint, double factor, int64_t row0,
                                      const fs_matrix *from, double beta, const fs_matrix *to, int64_t row, int64_t col,
                                      const band &b)
{
    const int64_t size = fsi_dtype_size(to->dtype), sums = b.rows * b.cols * (int64_t)sizeof(float);
    const int64_t images = b.row_tiles * b.chunks * IMAGE_BYTES, chunks = fsi_div_up(from->rows, CHUNK);
    void *scratch;
    FSI_TRY(fsi_gpu_scratch(gpu, images + sums * b.slices, &scratch));
    const int down = fsi_runs_down(to);
    panel_call C = {};
    C.images = (const uint8_t *)scratch;
    C.row_stride = from->row_stride;
    C.col_stride = from->col_stride;
    C.cols = b.cols;
    C.row_tiles = (unsigned)b.row_tiles;
    C.col_tiles = (unsigned)b.col_tiles;
    C.sums = (float *)((char *)scratch + images);
    C.rows = b.rows;
    C.sum_row_stride = down ? 1 : b.cols;
    C.sum_col_stride = down ? b.rows : 1;
    C.loads = loads_of<T>(from);
    C.cluster = b.col_tiles % 2 == 0 ? 2 : 1;
    for (int64_t chunk = 0; chunk < chunks; chunk += b.chunks) {
        const int64_t inner = chunk * CHUNK;
        C.chunks = fsi_min(b.chunks, chunks - chunk);
        C.piece = fsi_div_up(C.chunks, b.slices);
        C.inner = fsi_min(C.chunks * CHUNK, from->rows - inner);
        C.from = (const T *)from->data + inner * from->row_stride + col * from->col_stride;
        C.add = chunk > 0;
        const unsigned blocks = (unsigned)(b.row_tiles * C.chunks);
        if (adjoint) make<true><<<blocks, 256, 0, gpu->stream>>>(*S, row, inner, row0, C.chunks, (uint8_t *)scratch);
        else make<false><<<blocks, 256, 0, gpu->stream>>>(*S, row, inner, row0, C.chunks, (uint8_t *)scratch);
        FSI_TRY(FSI_LAUNCHED(gpu, "making a Gaussian"));
        FSI_TRY(launch_multiply<T>(gpu, C, b.slices));
    }
    fsi_output out = fsi_output_of(to, factor, beta);
    out.data = (char *)to->data + (row * to->row_stride + col * to->col_stride) * size;
    return fsi_gpu_split_reduce(gpu, C.sums, b.slices, b.rows, b.cols, down, FS_F32, &out);
}

/* Scratch: the images of a panel and the sums of a band's slices, each at most MOST_BYTES. */
template <class T> fs_result run(fsi_gpu *gpu, const fsi_gauss *S, int adjoint, double factor, int64_t row0,
                                 const fs_matrix *from, double beta, const fs_matrix *to)
{
    FSI_TRY(fsi_gpu_check(gpu,
                          cudaFuncSetAttribute(multiply<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES),
                          "preparing the product with a Gaussian"));
    /* The rest of an SM's 256 KiB is the L1 through which elements come. */
    FSI_TRY(fsi_gpu_check(gpu, cudaFuncSetAttribute(multiply<T>, cudaFuncAttributePreferredSharedMemoryCarveout, 58),
                          "preparing the product with a Gaussian"));
    const int64_t rows = fsi_min(to->rows, MOST_ROWS);
    const int64_t row_tiles = fsi_div_up(rows, ROWS), chunks = fsi_div_up(from->rows, CHUNK);
    const int64_t panels = fsi_div_up(chunks, MOST_BYTES / (row_tiles * IMAGE_BYTES));
    const int64_t cols = fsi_min(to->cols, MOST_BYTES / (row_tiles * ROWS * (int64_t)sizeof(float)) / COLS * COLS);
    for (int64_t row = 0; row < to->rows; row += rows)
        for (int64_t col = 0; col < to->cols; col += cols) {
            band b;
            b.rows = fsi_min(rows, to->rows - row);
            b.cols = fsi_min(cols, to->cols - col);
            b.row_tiles = fsi_div_up(b.rows, ROWS);
            b.col_tiles = fsi_div_up(b.cols, COLS);
            b.chunks = fsi_div_up(chunks, panels);
            b.slices = slices_of(gpu, b);
            FSI_TRY(run_band<T>(gpu, S, adjoint, factor, row0, from, beta, to, row, col, b));
        }
    return FS_OK;
}

}  // namespace

int fsi_gpu_gaussian_has_tiles(const fsi_gpu *gpu, const fs_matrix *from, const fs_matrix *to)
{
    return gpu->traits.arch == 90 && from->dtype != FS_F64 && from->rows >= 128 && to->rows >= 64 && to->cols >= 32;
}

fs_result fsi_gpu_gaussian_tiles(fsi_gpu *gpu, const fsi_gauss *S, int adjoint, double factor, int64_t row0,
                                 const fs_matrix *from, double beta, const fs_matrix *to)
{
    if (from->dtype == FS_F32) return run<float>(gpu, S, adjoint, factor, row0, from, beta, to);
    if (from->dtype == FS_F16) return run<__half>(gpu, S, adjoint, factor, row0, from, beta, to);
    return run<__nv_bfloat16>(gpu, S, adjoint, factor, row0, from, beta, to);
}
