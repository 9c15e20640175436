/* adjoint.cu - X = S' Y for a BlockPerm-SJLT: every row of X is a sum of kappa s rows of Y, with signs.
 *
 * Two formulations.  Where rows of X are contiguous, `blocks` takes an input block h, keeps the kappa blocks of Y that
 * it feeds in shared memory and writes the block's rows of X one after the other: Y is read once per column tile, X
 * written once, in whole segments.  Where columns of X are contiguous (batches of gradients), or the blocks are too
 * tall for shared memory, `coordinates` gives each thread a row of X in memory order: it makes that row's nonzeros once
 * and walks over the columns, reading Y through the caches. */
#include "cuda/runtime/gpu.h"
#include "cuda/runtime/vector_load.cuh"
#include "cuda/runtime/ptx.cuh"
#include "cuda/blockperm/common/tile.cuh"

namespace {

/* Threads of a block; local rows of a warp's batch; blocks of an SM; columns of a tile at most. */
enum { THREADS = 256, WARPS = THREADS / 32, BATCH = 32, RESIDENT = 4, WIDEST = 128 };

/* What both kernels need: `in` is Y, X has rows row0 ... row0 + rows - 1 of the result. */
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
};

template <class S, int VECTOR> struct __align__(sizeof(S) * VECTOR > 16 ? 16 : sizeof(S) * VECTOR) pack
{
    S x[VECTOR];
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

/* sum += +- the row of the tile that a code names. */
template <class S, int VECTOR>
__device__ __forceinline__ void add(const char *mine, uint32_t code, pack<S, VECTOR> &sum)
{
    const pack<S, VECTOR> y = *(const pack<S, VECTOR> *)(mine + (code & 0x7FFFFFFFu));
    const S sign = (S)__uint_as_float((code & 0x80000000u) | 0x3F800000u);
#pragma unroll
    for (int v = 0; v < VECTOR; v++) sum.x[v] = sign * y.x[v] + sum.x[v];
}
/* One row of X at this thread's columns; codes lie on 16 bytes.  COUNT: how many, or 0 where `count` says it. */
template <class S, int VECTOR, int COUNT>
__device__ __forceinline__ pack<S, VECTOR> gather(const char *mine, const uint32_t *code, int count)
{
    pack<S, VECTOR> sum = {};
    if constexpr (COUNT == 4) {
        const uint4 c = *(const uint4 *)code;
        add(mine, c.x, sum);
        add(mine, c.y, sum);
        add(mine, c.z, sum);
        add(mine, c.w, sum);
    } else {
#pragma unroll 4
        for (int t = 0; t < count; t++) add(mine, code[t], sum);
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
 * Warps meet only once, when the tile is there: while some make a batch's codes, others write.
 * STRAIGHT: X is f32, its columns are neighbours and aligned, and beta is 0, so that a row is one store of 16 bytes.
 * COUNT: kappa s, or 0 for any. */
template <class T, int VECTOR, int STRAIGHT, int COUNT> __global__ void __launch_bounds__(THREADS, RESIDENT)
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
    const int step = a.team * VECTOR, own = lane % a.team * VECTOR, phase = lane / a.team, phases = 32 / a.team;
    const int ends = (int)min((int64_t)1 << a.wide_bits, a.n - tile_column);
    const S factor = (S)a.out.factor;
    /* Neighbouring local rows are in different warps, so that the rows written at one time lie near each other. */
    for (int64_t local_row = warp; local_row < count; local_row += BATCH * WARPS) {
        /* 2. rows and codes of a batch of local rows, one for each lane */
        const int64_t at = local_row + lane * WARPS;
        const int64_t row = at < count ? fsi_local_row_source(&a.B, h, first + at, a.row0, a.rows) : -1;
        rows[lane] = row;
        if (row >= 0)
            fsi_local_row_codes(a.B, 1, kappa, tall, row + a.row0, pitch, (uint32_t)height, codes + lane * code_pitch);
        __syncwarp();
        /* 3. each row of X: gather, scale once, store once */
#pragma unroll 2
        for (int i = phase; i < BATCH; i += phases) {
            const int64_t to = rows[i];
            if (to < 0) continue;
            for (int j = own; j < ends; j += step) {
                pack<S, VECTOR> sum = gather<S, VECTOR, COUNT>(tile + j * sizeof(S), codes + i * code_pitch, per_slot);
                if (STRAIGHT) {
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

/* grid: THREADS rows of X in x, ranges of columns in y.  Codes are recomputed for every range; it is long enough. */
template <class T> __global__ void __launch_bounds__(THREADS) coordinates(const __grid_constant__ adjoint_args<T> a)
{
    typedef typename fsi_sum<T>::type S;
    const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x, j = row + a.row0;
    if (row >= a.rows) return;
    const int64_t first = blockIdx.y * a.length, last = first + a.length < a.n ? first + a.length : a.n;
    uint32_t h = (uint32_t)fsi_blockperm_input_block(&a.B, j);
    enum { AT_ONCE = 8 }; /* columns whose sums are made together, so that a word is decoded once for all of them */
    for (int64_t c = first; c < last; c += AT_ONCE) {
        S sum[AT_ONCE] = {};
        uint32_t g = h;
        for (int l = 1; l <= a.B.kappa; l++) {
            g = fsi_wiring_back(&a.B.wiring, g);
            const int64_t start = fsi_split_start(&a.B.out, g), block = fsi_split_size(&a.B.out, g);
            const fsi_split slices = a.B.strata[block > a.B.out.small];
            for (int64_t q = 0, t = 0; q < a.B.words; q++) {
                uint32_t word = fsi_blockperm_word(&a.B, j, l, q, block);
                for (int i = fsi_blockperm_count(&a.B, q); i > 0; i--, t++) {
                    const uint32_t code = fsi_blockperm_next(&slices, t, &word);
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
    const int64_t height = B->kappa * (B->out.small + (B->out.larger > 0)),
                  code_pitch = (B->kappa * B->s + 3) & ~(int64_t)3;
    const int64_t head = ((B->kappa + 15) & ~(int64_t)15) + THREADS * 8 + THREADS * code_pitch * 4;
    const int vector = sizeof(S) == 4 && X->cols % 4 == 0 ? 4 : 1;
    /* Blocks of Y that are too tall for RESIDENT tiles of 64 columns get the shared memory of fewer thread blocks. */
    int64_t wide, bytes, resident = RESIDENT;
    for (;; resident--) {
        for (wide = WIDEST; wide > vector; wide /= 2)
            if (wide / 2 < X->cols &&
                head + height * wide * (int64_t)sizeof(S) <= gpu->traits.shared_per_processor / resident - 1024)
                break;
        bytes = head + height * wide * (int64_t)sizeof(S);
        if (wide >= 64 || wide >= X->cols || resident == 3) break;
    }
    const bool along = X->col_stride == 1 || X->cols == 1;
    if (along && bytes <= gpu->traits.shared && (wide >= 32 || wide >= X->cols)) {
        enum { WIDE = sizeof(S) == 4 ? 4 : 1 };
        const bool straight = vector == WIDE && X->dtype == fsi_dtype_sum(X->dtype) && beta == 0.0 &&
                              X->col_stride == 1 && X->row_stride % WIDE == 0 &&
                              (uintptr_t)X->data % (WIDE * sizeof(S)) == 0;
        void (*kernel)(const adjoint_args<T>) = straight && B->kappa * B->s == 4 ? blocks<T, WIDE, 1, 4>
                                                : straight                       ? blocks<T, WIDE, 1, 0>
                                                : vector == WIDE                 ? blocks<T, WIDE, 0, 0>
                                                                                 : blocks<T, 1, 0, 0>;
        const int64_t local_rows = B->shuffle == FSI_DEF_NONE ? B->in.small + 1
                                                              : fsi_local_rows_of(B, 0, row0, X->rows).count;
        a.team = (int)fsi_min64(wide / vector, 32);
        for (a.wide_bits = 0; 1 << a.wide_bits < wide; a.wide_bits++) {}
        a.copies = Y->dtype == FS_F32 && vector == 4 && fsi_wide(Y);
        a.tiles = fsi_ceil_div(X->cols, wide);
        /* As many slices as make the rounds of thread blocks shortest; reading a tile takes as long as `height` rows. */
        const int64_t room = resident * gpu->traits.processors, most = fsi_ceil_div(local_rows, THREADS);
        int64_t least = INT64_MAX;
        for (int64_t slices = 1; slices <= most && (slices - 1) * B->M * a.tiles < 8 * room; slices++) {
            const int64_t length = fsi_ceil_div(local_rows, slices);
            const int64_t cost = fsi_ceil_div(B->M * a.tiles * slices, room) * (length + height);
            if (cost < least) least = cost, a.length = length;
        }
        a.slices = (int)fsi_ceil_div(local_rows, a.length);
        FSI_TRY(fsi_gpu_check(gpu,
                              cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   (int)gpu->traits.shared),
                              "preparing the adjoint"));
        kernel<<<(unsigned)(B->M * a.tiles * a.slices), THREADS, (size_t)bytes, gpu->stream>>>(a);
        return FSI_LAUNCHED(gpu, "the adjoint");
    }
    const int64_t blocks_down = fsi_ceil_div(X->rows, THREADS),
                  wanted = fsi_ceil_div(8 * (int64_t)gpu->traits.processors, blocks_down);
    a.length = fsi_ceil_div(fsi_ceil_div(X->cols, wanted), 64) * 64;
    if (fsi_ceil_div(X->cols, a.length) > 65535) a.length = fsi_ceil_div(X->cols, 65535);
    coordinates<T>
        <<<dim3((unsigned)blocks_down, (unsigned)fsi_ceil_div(X->cols, a.length)), THREADS, 0, gpu->stream>>>(a);
    return FSI_LAUNCHED(gpu, "the adjoint");
}

}  // namespace

FSI_GPU_OP(fsi_gpu_blockperm_adjoint, fsi_blockperm)
{
#define RUN(T) launch<T>(gpu, S, row0, alpha * scale, from, beta, to)
    return FSI_BY_DTYPE(from->dtype, RUN);
#undef RUN
}
