/* adjoint.cu - X = S' Y for a BlockPerm-SJLT: every row of X is a sum of kappa s rows of Y, with signs.
 *
 * Two formulations.  Where rows of X are contiguous, `blocks` takes an input block h, keeps the kappa blocks of Y that it
 * feeds in shared memory and writes the block's rows of X one after the other: Y is read once per column tile, X written
 * once, in whole segments.  Where columns of X are contiguous (batches of gradients), or the blocks are too tall for shared
 * memory, `coordinates` gives each thread a row of X in memory order: it makes that row's nonzeros once and walks over the
 * columns, reading Y through the caches. */
#include "gpu.h"
#include "tile.cuh"

namespace {

enum { CHUNK = 256, THREADS = 256 };

/* What both kernels need: `in` is Y, X has rows row0 ... row0 + rows - 1 of the result. */
template <class T> struct adjoint_args {
    fs_blockperm B;
    int64_t row0, rows, n;
    fs_input<T> in;
    fs_output out;
    int64_t tiles, length;
    int parts, team;  /* threads along the columns of a tile */
};

template <class S, int VECTOR> struct __align__(sizeof(S) * VECTOR > 16 ? 16 : sizeof(S) * VECTOR) pack { S x[VECTOR]; };

__device__ __forceinline__ void put(const fs_output &to, int64_t row, int64_t column, const pack<float, 4> &x)
{
    fs_output_put4(to, row, column, make_float4(x.x[0], x.x[1], x.x[2], x.x[3]), 4);
}
template <class S> __device__ __forceinline__ void put(const fs_output &to, int64_t row, int64_t column, const pack<S, 1> &x)
{
    fs_output_put(to, row, column, x.x[0]);
}

/* One row of X at this thread's columns: the sum of the rows of the tile that the codes name. */
template <class S, int VECTOR>
__device__ __forceinline__ pack<S, VECTOR> gather(const char *mine, const uint32_t *code, int count)
{
    pack<S, VECTOR> sum = {};
#pragma unroll 4
    for (int t = 0; t < count; t++) {
        const uint32_t c = code[t];
        const pack<S, VECTOR> y = *(const pack<S, VECTOR> *)(mine + (c & 0x7FFFFFFFu));
        const S sign = (S)__uint_as_float((c & 0x80000000u) | 0x3F800000u);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) sum.x[v] = sign * y.x[v] + sum.x[v];
    }
    return sum;
}

/* grid: M x column tiles x parts in x.  shared: row numbers and codes of a chunk; kappa blocks of Y, team VECTOR columns.
 * STRAIGHT: X is f32, its columns are neighbours and aligned, and beta is 0, so that a row is one store of 16 bytes. */
template <class T, int VECTOR, int STRAIGHT>
__global__ void __launch_bounds__(THREADS, 3) blocks(const __grid_constant__ adjoint_args<T> a)
{
    typedef typename fs_sum<T>::type S;
    extern __shared__ __align__(16) char shared[];
    const int tid = threadIdx.x, phases = THREADS / a.team, phase = tid / a.team, kappa = (int)a.B.kappa;
    uint32_t id = blockIdx.x;
    const uint32_t h = id % (uint32_t)a.B.M;
    id /= (uint32_t)a.B.M;
    const int wide = a.team * VECTOR;
    const int64_t tile_column = (int64_t)(id % (uint32_t)a.tiles) * wide, column = tile_column + tid % a.team * VECTOR;
    const fs_slots slots = fs_slots_of(&a.B, h, a.row0, a.rows);
    const int64_t from = id / (uint32_t)a.tiles * a.length, left = slots.count - from, first = slots.first + from;
    const int64_t count = left < 0 ? 0 : left < a.length ? left : a.length;
    if (count == 0) return;
    const int64_t height = a.B.out.small + (a.B.out.larger > 0);
    const int per_slot = (int)(kappa * a.B.s);
    const uint32_t pitch = (uint32_t)(wide * sizeof(S));

    uint8_t *tall = (uint8_t *)shared;
    int64_t *rows = (int64_t *)(shared + ((kappa + 15) & ~15));
    uint32_t *codes = (uint32_t *)(rows + CHUNK);
    char *tile = (char *)codes + (CHUNK * per_slot * 4);
    fs_tall_blocks(a.B, h, 1, kappa, tall);
    /* 1. the blocks of Y that h feeds */
    for (int l = 1; l <= kappa; l++) {
        const uint32_t g = fs_output_block(a.B, h, l);
        const int64_t start = fs_split_start(&a.B.out, g);
        const int block = (int)fs_split_size(&a.B.out, g);
        for (int i = tid; i < block * wide; i += THREADS) {
            const int r = i / wide, j = i % wide;
            *(S *)(tile + ((l - 1) * height + r) * pitch + j * sizeof(S)) =
                tile_column + j < a.n ? a.in.at(start + r, tile_column + j) : 0;
        }
    }
    const char *mine = tile + tid % a.team * VECTOR * sizeof(S);
    S *straight = (S *)a.out.data + column;
    const S factor = (S)a.out.factor;
    for (int64_t c = 0; c < count; c += CHUNK) {
        /* 2. rows and codes of a chunk of slots */
        __syncthreads();
        rows[tid] = c + tid < count ? fs_slot_row(&a.B, h, first + c + tid, a.row0, a.rows) : -1;
        if (rows[tid] >= 0)
            fs_slot_codes(a.B, 1, kappa, tall, rows[tid] + a.row0, pitch, (uint32_t)height, codes + tid * per_slot);
        __syncthreads();
        /* 3. each row of X: gather, scale once, store once */
        if (column >= a.n) continue;
#pragma unroll 2
        for (int i = phase; i < CHUNK; i += phases) {
            const int64_t row = rows[i];
            if (row < 0) continue;
            pack<S, VECTOR> sum = gather<S, VECTOR>(mine, codes + i * per_slot, per_slot);
            if (STRAIGHT) {
#pragma unroll
                for (int v = 0; v < VECTOR; v++) sum.x[v] *= factor;
                *(pack<S, VECTOR> *)(straight + row * a.out.row_stride) = sum;
            } else {
                put(a.out, row, column, sum);
            }
        }
    }
}

/* grid: THREADS rows of X in x, ranges of columns in y.  Codes are made again for every range; it is long enough. */
template <class T> __global__ void __launch_bounds__(THREADS) coordinates(const __grid_constant__ adjoint_args<T> a)
{
    typedef typename fs_sum<T>::type S;
    const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x, j = row + a.row0;
    if (row >= a.rows) return;
    const int64_t first = blockIdx.y * a.length, last = first + a.length < a.n ? first + a.length : a.n;
    uint32_t h = (uint32_t)fs_blockperm_input_block(&a.B, j);
    enum { AT_ONCE = 8 };  /* columns whose sums are made together, so that a word is decoded once for all of them */
    for (int64_t c = first; c < last; c += AT_ONCE) {
        S sum[AT_ONCE] = {};
        uint32_t g = h;
        for (int l = 1; l <= a.B.kappa; l++) {
            g = fs_wiring_back(&a.B.wiring, g);
            const int64_t start = fs_split_start(&a.B.out, g), block = fs_split_size(&a.B.out, g);
            const fs_split parts = a.B.parts[block > a.B.out.small];
            for (int64_t q = 0, t = 0; q < a.B.words; q++) {
                uint32_t word = fs_blockperm_word(&a.B, j, l, q, block);
                for (int i = fs_blockperm_count(&a.B, q); i > 0; i--, t++) {
                    const uint32_t code = fs_blockperm_next(&parts, t, &word);
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
            if (c + v < last) fs_output_put(a.out, row, c + v, sum[v]);
    }
}

template <class T> fs_result launch(fs_gpu *gpu, const fs_blockperm *B, int64_t row0, double factor, const fs_matrix *Y,
                                    double beta, const fs_matrix *X)
{
    typedef typename fs_sum<T>::type S;
    adjoint_args<T> a;
    a.B = *B;
    a.row0 = row0;
    a.rows = X->rows;
    a.n = X->cols;
    a.in = fs_input_of<T>(Y);
    a.out = fs_output_of(X, factor, beta);
    const int64_t height = B->kappa * (B->out.small + (B->out.larger > 0)), per_slot = B->kappa * B->s;
    const int64_t head = ((B->kappa + 15) & ~(int64_t)15) + CHUNK * 8 + CHUNK * per_slot * 4;
    const int vector = sizeof(S) == 4 && X->cols % 4 == 0 ? 4 : 1;
    /* A third of a processor's shared memory for a tile: three thread blocks hide each other's loads. */
    a.team = THREADS;
    while (a.team > 1 && (head + height * a.team * vector * (int64_t)sizeof(S) > gpu->traits.shared_per_processor / 3 - 1024 ||
                          (a.team / 2) * vector >= X->cols))
        a.team /= 2;
    const int64_t bytes = head + height * a.team * vector * (int64_t)sizeof(S);
    const bool along = X->col_stride == 1 || X->cols == 1;
    if (along && bytes <= gpu->traits.shared && (a.team * vector >= 32 || a.team * vector >= X->cols)) {
        enum { WIDE = sizeof(S) == 4 ? 4 : 1 };
        const bool straight = vector == WIDE && X->dtype == fs_dtype_sum(X->dtype) && beta == 0.0 && X->col_stride == 1 &&
                              X->row_stride % WIDE == 0 && (uintptr_t)X->data % (WIDE * sizeof(S)) == 0;
        void (*kernel)(const adjoint_args<T>) = straight ? blocks<T, WIDE, 1> : vector == WIDE ? blocks<T, WIDE, 0> : blocks<T, 1, 0>;
        const int64_t slots = B->shuffle == FS_DEF_NONE ? B->in.small + 1 : fs_slots_of(B, 0, row0, X->rows).count;
        a.tiles = fs_div_up(X->cols, a.team * vector);
        /* Eight thread blocks to a processor even out the ends; parts that are tall hide the reading of Y. */
        const int64_t wanted = fs_div_up(8 * (int64_t)gpu->traits.processors, B->M * a.tiles);
        a.length = fs_div_up(fs_div_up(slots, wanted), CHUNK) * CHUNK;
        if (a.length < 4 * height && slots > 4 * height) a.length = fs_div_up(4 * height, CHUNK) * CHUNK;
        a.parts = (int)fs_div_up(slots, a.length);
        FS_TRY_GPU(fs_gpu_check(gpu, cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                          (int)gpu->traits.shared), "preparing the adjoint"));
        kernel<<<(unsigned)(B->M * a.tiles * a.parts), THREADS, (size_t)bytes, gpu->stream>>>(a);
        return FS_LAUNCHED(gpu, "the adjoint");
    }
    const int64_t blocks_down = fs_div_up(X->rows, THREADS), wanted = fs_div_up(8 * (int64_t)gpu->traits.processors, blocks_down);
    a.length = fs_div_up(fs_div_up(X->cols, wanted), 64) * 64;
    if (fs_div_up(X->cols, a.length) > 65535) a.length = fs_div_up(X->cols, 65535);
    coordinates<T><<<dim3((unsigned)blocks_down, (unsigned)fs_div_up(X->cols, a.length)), THREADS, 0, gpu->stream>>>(a);
    return FS_LAUNCHED(gpu, "the adjoint");
}

}  // namespace

FS_GPU_OP(fs_gpu_blockperm_adjoint, fs_blockperm)
{
#define RUN(T) launch<T>(gpu, S, row0, alpha * scale, from, beta, to)
    return FS_BY_DTYPE(from->dtype, RUN);
#undef RUN
}
