/* adjoint.cu - X = S' Y for a BlockPerm-SJLT: every row of X is a sum of kappa s rows of Y, with signs.
 *
 * Two formulations.  Where rows of X are contiguous, `blocks` takes an input block h, keeps the kappa blocks of Y that
 * it feeds in shared memory and writes the block's rows of X one after the other: Y is read once per column tile, X
 * written once, in whole segments.  Where columns of X are contiguous (batches of gradients), or the blocks are too
 * tall for shared memory, `coordinates` gives each thread a row of X in memory order: it generates that row's nonzeros
 * once and loops over the columns, reading Y through the caches. */
#include "cuda/plan/adjoint.h"
#include "cuda/runtime/gpu.h"
#include "cuda/runtime/vector_load.cuh"
#include "cuda/runtime/ptx.cuh"
#include "cuda/blockperm/common/tile.cuh"

namespace {

/* Threads of a block; local rows of a warp's batch; blocks of an SM. */
enum { THREADS = FSI_ADJOINT_THREADS, WARPS = THREADS / 32, BATCH = 32, RESIDENT = FSI_ADJOINT_RESIDENT };

/* The arguments of both kernels: `in` is Y, X has rows row0 ... row0 + rows - 1 of the result. */
template <class T> struct adjoint_args {
    fsi_blockperm B;
    int64_t row0, rows, n;
    fsi_input<T> in;
    fsi_output out;
    int64_t tiles, length;
    int slices;
    int wide_bits; /* a tile has 2^wide_bits columns ... */
    int team;      /* ... and so many lanes along them */
    int copies;    /* whether it may be read 16 bytes at a time */
    int plain;     /* whether X has the type of sums, neighbouring columns, and beta is 0 */
};

__device__ __forceinline__ void put(const fsi_output &to, int64_t row, int64_t column, const pack<float, 4> &x)
{
    fsi_output_put4(to, row, column, make_float4(x.x[0], x.x[1], x.x[2], x.x[3]), 4);
}
template <class S>
__device__ __forceinline__ void put(const fsi_output &to, int64_t row, int64_t column, const pack<S, 1> &x)
{
    fsi_output_put(to, row, column, x.x[0]);
}

/* sum += +- the row of the tile that a code names, at VECTOR columns `apart` bytes apart, or neighbours where that is 0. */
template <class S, int VECTOR>
__device__ __forceinline__ void add(const char *mine, uint32_t code, int apart, pack<S, VECTOR> &sum)
{
    const char *from = mine + (code & 0x7FFFFFFFu);
    pack<S, VECTOR> y;
    if (apart == 0) y = *(const pack<S, VECTOR> *)from;
    else
#pragma unroll
        for (int v = 0; v < VECTOR; v++) y.x[v] = *(const S *)(from + v * apart);
    const S sign = (S)__uint_as_float((code & 0x80000000u) | 0x3F800000u);
#pragma unroll
    for (int v = 0; v < VECTOR; v++) sum.x[v] = sign * y.x[v] + sum.x[v];
}
/* One row of X at this thread's columns; codes lie on 16 bytes.  COUNT: how many, a multiple of 4, or 0 where `count` says
 * it. */
template <class S, int VECTOR, int COUNT>
__device__ __forceinline__ pack<S, VECTOR> gather(const char *mine, const uint32_t *code, int count, int apart)
{
    pack<S, VECTOR> sum = {};
    if constexpr (COUNT > 0) {
#pragma unroll
        for (int t = 0; t < COUNT; t += 4) {
            const uint4 c = *(const uint4 *)(code + t);
            add(mine, c.x, apart, sum);
            add(mine, c.y, apart, sum);
            add(mine, c.z, apart, sum);
            add(mine, c.w, apart, sum);
        }
    } else {
#pragma unroll 4
        for (int t = 0; t < count; t++) add(mine, code[t], apart, sum);
    }
    return sum;
}

/* Block g of Y at the columns of a tile, to shared memory. */
template <class T>
__device__ __forceinline__ void load_block(const adjoint_args<T> &a, uint32_t g, int64_t column, char *to)
{
    typedef typename fsi_sum<T>::type S;
    const int64_t start = fsi_split_start(&a.B.out, g);
    const int bits = a.wide_bits, block = (int)fsi_split_size(&a.B.out, g);
    if (a.copies) {
        const int64_t left = a.n - column;
        const T *from = a.in.data + start * a.in.row_stride + column;
        for (int i = threadIdx.x; i < block << (bits - 2); i += THREADS) {
            const int r = i >> (bits - 2), j = (i & ((1 << (bits - 2)) - 1)) * 4;
            if (j >= left) continue;
#if __CUDA_ARCH__ >= 800
            fsi_copy16(fsi_shared_address(to + i * 16), from + r * a.in.row_stride + j);
#else
            *(float4 *)(to + i * 16) = *(const float4 *)(from + r * a.in.row_stride + j);
#endif
        }
        return;
    }
#pragma unroll 4
    for (int i = threadIdx.x; i < block << bits; i += THREADS) {
        const int r = i >> bits, j = i & ((1 << bits) - 1);
        ((S *)to)[i] = column + j < a.n ? a.in.at(start + r, column + j) : 0;
    }
}

/* grid: M x column tiles x slices in x.  shared: for every warp the row numbers and codes of a batch; kappa blocks of Y.
 * Warps synchronise only once, when the tile is loaded: while some generate a batch's codes, others write.
 * STRAIGHT: X is f32, its columns are neighbours and aligned, and beta is 0, so that a row is one store of 16 bytes.
 * SPREAD: rows of X begin anywhere: a lane's columns are `team` apart, so that each store of a warp is contiguous.
 * COUNT: kappa s, or 0 for any. */
template <class T, int VECTOR, int STRAIGHT, int SPREAD, int COUNT> __global__ void __launch_bounds__(THREADS, RESIDENT)
    blocks(const __grid_constant__ adjoint_args<T> a)
{
    typedef typename fsi_sum<T>::type S;
    extern __shared__ __align__(16) char shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, kappa = (int)a.B.kappa;
    uint32_t id = blockIdx.x;
    const uint32_t h = id % (uint32_t)a.B.M;
    id /= (uint32_t)a.B.M;
    const int64_t tile_column = (int64_t)(id % (uint32_t)a.tiles) << a.wide_bits;
    const fsi_local_rows local_rows = fsi_local_rows_of(&a.B, h, a.row0, a.rows);
    const int64_t from = id / (uint32_t)a.tiles * a.length, left = local_rows.count - from,
                  first = local_rows.first + from;
    const int64_t count = left < 0 ? 0 : left < a.length ? left : a.length;
    if (count == 0) return;
    const int64_t height = a.B.out.small + (a.B.out.larger > 0);
    const int per_slot = COUNT ? COUNT : (int)(kappa * a.B.s), code_pitch = (per_slot + 3) & ~3;
    const uint32_t pitch = (uint32_t)sizeof(S) << a.wide_bits;

    uint8_t *tall = (uint8_t *)shared;
    int64_t *rows = (int64_t *)(shared + ((kappa + 15) & ~15));
    uint32_t *codes = (uint32_t *)(rows + THREADS);
    char *tile = (char *)(codes + THREADS * code_pitch);
    rows += warp * BATCH;
    codes += warp * BATCH * code_pitch;
    /* 1. the blocks of Y that h feeds */
    fsi_tall_blocks(a.B, h, 1, kappa, tall);
    for (int l = 1; l <= kappa; l++)
        load_block(a, fsi_output_block(a.B, h, l), tile_column, tile + (l - 1) * height * pitch);
    fsi_copy_commit();
    fsi_copy_wait<0>();
    __syncthreads();
    const int step = a.team * VECTOR, own = lane % a.team * (SPREAD ? 1 : VECTOR), phase = lane / a.team,
              phases = 32 / a.team;
    const int ends = (int)min((int64_t)1 << a.wide_bits, a.n - tile_column);
    const S factor = (S)a.out.factor;
    /* Neighbouring local rows are in different warps, so that the rows written at one time lie near each other. */
    for (int64_t local_row = warp; local_row < count; local_row += BATCH * WARPS) {
        /* 2. rows and codes of a batch of local rows, one for each lane */
        const int64_t at = local_row + lane * WARPS;
        const int64_t row = at < count ? fsi_local_row_source(&a.B, h, first + at, a.row0, a.rows) : -1;
        rows[lane] = row;
        if (row >= 0)
            fsi_local_row_codes(a.B, 1, kappa, tall, 0, (int)a.B.bands, h, first + at, pitch, (uint32_t)height,
                                codes + lane * code_pitch);
        __syncwarp();
        /* 3. each row of X: gather, scale once, store once */
#pragma unroll 2
        for (int i = phase; i < BATCH; i += phases) {
            const int64_t to = rows[i];
            if (to < 0) continue;
            for (int j = own; j < ends; j += step) {
                pack<S, VECTOR> sum = gather<S, VECTOR, COUNT>(tile + j * sizeof(S), codes + i * code_pitch, per_slot,
                                                               SPREAD ? a.team * (int)sizeof(S) : 0);
                if constexpr (SPREAD) {
#pragma unroll
                    for (int v = 0; v < VECTOR; v++) {
                        const int own_column = j + v * a.team;
                        if (own_column >= ends) continue;
                        if (a.plain)
                            ((S *)a.out.data)[to * a.out.row_stride + tile_column + own_column] = factor * sum.x[v];
                        else fsi_output_put(a.out, to, tile_column + own_column, sum.x[v]);
                    }
                } else if (STRAIGHT) {
#pragma unroll
                    for (int v = 0; v < VECTOR; v++) sum.x[v] *= factor;
                    *(pack<S, VECTOR> *)((S *)a.out.data + to * a.out.row_stride + tile_column + j) = sum;
                } else {
                    put(a.out, to, tile_column + j, sum);
                }
            }
        }
        __syncwarp();
    }
}

/* grid: THREADS rows of X in x, ranges of columns in y.  Codes are recomputed for every range, which is long enough for
 * that. */
template <class T> __global__ void __launch_bounds__(THREADS) coordinates(const __grid_constant__ adjoint_args<T> a)
{
    typedef typename fsi_sum<T>::type S;
    const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x, j = row + a.row0;
    if (row >= a.rows) return;
    const int64_t first = blockIdx.y * a.length, last = first + a.length < a.n ? first + a.length : a.n;
    const fsi_local local = fsi_blockperm_local(&a.B, j);
    enum { AT_ONCE = 8 }; /* columns whose sums are computed together, so that a draw is decoded once for all of them */
    for (int64_t c = first; c < last; c += AT_ONCE) {
        S sum[AT_ONCE] = {};
        uint32_t g = (uint32_t)local.h;
        for (int l = 1; l <= a.B.kappa; l++) {
            g = fsi_wiring_back(&a.B.wiring, g);
            const int64_t start = fsi_split_start(&a.B.out, g), block = fsi_split_size(&a.B.out, g);
            const fsi_split strata = a.B.strata[block > a.B.out.small];
            for (int64_t q = 0, t = 0; q < a.B.bands; q++) {
                fsi_draw draw = fsi_blockperm_draw(&a.B, local.h, local.u, l, q, block);
                for (int i = fsi_blockperm_count(&a.B, q); i > 0; i--, t++) {
                    const uint32_t code = fsi_blockperm_code(&a.B, &strata, t, &draw);
#pragma unroll
                    for (int v = 0; v < AT_ONCE; v++)
                        if (c + v < last) {
                            const S y = a.in.at(start + (code >> 1), c + v);
                            sum[v] += code & 1 ? -y : y;
                        }
                }
            }
        }
#pragma unroll
        for (int v = 0; v < AT_ONCE; v++)
            if (c + v < last) fsi_output_put(a.out, row, c + v, sum[v]);
    }
}

template <class T> fs_result launch(fsi_gpu *gpu, const fsi_blockperm *B, int64_t row0, double factor,
                                    const fs_matrix *Y, double beta, const fs_matrix *X)
{
    typedef typename fsi_sum<T>::type S;
    adjoint_args<T> a;
    a.B = *B;
    a.row0 = row0;
    a.rows = X->rows;
    a.n = X->cols;
    a.in = fsi_input_of<T>(Y);
    a.out = fsi_output_of(X, factor, beta);
    const fsi_adjoint_plan plan = fsi_choose_adjoint(B, row0, (int64_t)sizeof(S), X, beta, &gpu->traits);
    a.length = plan.length;
    if (!plan.by_blocks) {
        coordinates<T><<<dim3((unsigned)plan.tiles, (unsigned)plan.slices), THREADS, 0, gpu->stream>>>(a);
        return FSI_LAUNCHED(gpu, "the adjoint");
    }
    enum { WIDE = sizeof(S) == 4 ? 4 : 1 };
    const int64_t nonzeros = B->kappa * B->s;
    void (*kernel)(const adjoint_args<T>) = plan.straight && nonzeros == 8   ? blocks<T, WIDE, 1, 0, 8>
                                            : plan.straight && nonzeros == 4 ? blocks<T, WIDE, 1, 0, 4>
                                            : plan.straight                  ? blocks<T, WIDE, 1, 0, 0>
                                            : plan.spread && nonzeros == 8   ? blocks<T, 4, 0, 1, 8>
                                            : plan.spread && nonzeros == 4   ? blocks<T, 4, 0, 1, 4>
                                            : plan.spread                    ? blocks<T, 4, 0, 1, 0>
                                                                             : blocks<T, 1, 0, 0, 0>;
    a.plain = X->dtype == (sizeof(S) == 4 ? FS_F32 : FS_F64) && X->col_stride == 1 && beta == 0.0;
    a.team = plan.team;
    for (a.wide_bits = 0; 1 << a.wide_bits < plan.wide; a.wide_bits++) {}
    a.copies = Y->dtype == FS_F32 && X->cols % 4 == 0 && plan.wide % 4 == 0 && fsi_wide(Y);
    a.tiles = plan.tiles;
    a.slices = (int)plan.slices;
    FSI_TRY(fsi_gpu_check(gpu,
                          cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               (int)gpu->traits.shared),
                          "preparing the adjoint"));
    kernel<<<(unsigned)(B->M * a.tiles * a.slices), THREADS, (size_t)plan.shared, gpu->stream>>>(a);
    return FSI_LAUNCHED(gpu, "the adjoint");
}

}  // namespace

FSI_GPU_OP(fsi_gpu_blockperm_adjoint, fsi_blockperm)
{
#define RUN(T) launch<T>(gpu, S, row0, alpha * scale, from, beta, to)
    return FSI_BY_DTYPE(from->dtype, RUN);
#undef RUN
}
