/* simt_skinny.cu - BlockPerm-SJLT of few columns: thread blocks traverse the rounds of the row assignment, a warp keeps
 * the sums of an output block.
 *
 * Formulation.  With few columns a row of A is short and an input block's rows lie far apart, but the M rows of a
 * round are neighbours and are assigned to M different blocks.  A thread block therefore takes `group_size`
 * neighbouring blocks, a warp for each of their output tiles, and reads the rows that all of them get in a chunk of
 * rounds: units of rows go to shared memory, ordered by round and block.  Four neighbouring local rows of a block
 * share a Philox call; their words are stored in the same order, those of one output tile after those of the other.
 * While the next chunk is prepared, a warp adds the rows of its block to its output tile.  Each lane has a tile of
 * sums of its own, so no atomics are needed and no two lanes conflict in a bank; `lanes` of them, one for each column,
 * take a round, and 32 / lanes rounds are taken at once.  Lanes and warps that share a column and a block are added in
 * a fixed order at the end.  Without shuffle, a round is the next row of every block.
 *
 * grid     groups of `group_size` blocks x slices, in this order, in x
 * threads  at most 16 warps: `replicas` sets of a warp for each output tile of each block of the group
 * shared   sums: warps x 64 rows x 32 lanes; of two chunks of rounds: rows of A, their words, shifts of rounds
 * needs    kappa = 1, n <= lanes <= 32, output tiles of at most 64 rows, shuffled rows or no shuffle, M <= 2^20; rounds a
 *          multiple of 4 x 32 / lanes, slices of whole chunks */
#include "cuda/blockperm/simt_skinny_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/runtime/ptx.cuh"
#include "cuda/blockperm/common/tile.cuh"

namespace {

enum { HEIGHT = FSI_SIMT_SKINNY_HEIGHT, UNROLL = FSI_SIMT_SKINNY_UNROLL };

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
enum { ASYNC = 1 };
#else
enum { ASYNC = 0 };
#endif

/* A unit of a row into shared memory, zeros if it does not exist; by cp.async where there is one for its size. */
template <int BYTES> __device__ __forceinline__ void copy_unit(char *to, const char *from, bool there)
{
    if constexpr (ASYNC && BYTES == 16) fsi_copy16_part(fsi_shared_address(to), from, there ? 16 : 0);
    else if constexpr (ASYNC && BYTES >= 4) fsi_copy_small<BYTES>(fsi_shared_address(to), from, there);
    else {
        typename raw<BYTES>::type x = {};
        if (there) x = __ldg((const typename raw<BYTES>::type *)from);
        *(typename raw<BYTES>::type *)to = x;
    }
}

__device__ __forceinline__ int clamped(int64_t x) { return x < 0 ? 0 : x > 0x7FFFFFFF ? 0x7FFFFFFF : (int)x; }

/* The blocks h0 ... h0 + blocks - 1 of a thread block, and its slice z of their local rows. */
struct block_group {
    int M, n, tiles, groups, size, h0, z, blocks, replicas, pitch;
    bool shuffled;
    int per_round; /* columns of S */
    int64_t begin, first_round;
};
__device__ __forceinline__ block_group group_of(const fsi_tile_args &a, int warps)
{
    block_group G;
    G.M = (int)a.B.M, G.n = (int)a.n, G.tiles = a.outputs.tiles;
    const int most = warps / G.tiles;
    G.groups = (G.M + most - 1) / most, G.size = (G.M + G.groups - 1) / G.groups;
    G.h0 = (int)(blockIdx.x % G.groups) * G.size, G.z = (int)(blockIdx.x / G.groups);
    G.blocks = G.M - G.h0 < G.size ? G.M - G.h0 : G.size, G.replicas = warps / (G.size * G.tiles), G.pitch = G.size | 1;
    G.shuffled = a.B.shuffle == FSI_DEF_ROWS;
    G.per_round = G.shuffled ? G.M : 1;
    G.begin = G.z * a.length, G.first_round = a.local_rows.first + G.begin;
    return G;
}

/* Columns low ... high - 1 of S may be assigned to a block; `column` is the first of the slice's first round. */
struct column_range {
    int64_t low, high, column;
};
__device__ __forceinline__ column_range range_of(const fsi_tile_args &a, const block_group &G, int block)
{
    column_range k = {a.row0, a.row0 + a.rows, G.first_round * G.M};
    if (G.shuffled) return k;
    const int64_t start = fsi_split_start(&a.B.in, G.h0 + block), end = start + fsi_split_size(&a.B.in, G.h0 + block);
    k.low = k.low > start ? k.low : start;
    k.high = k.high < end ? k.high : end;
    k.column = k.low + G.begin;
    return k;
}

/* Chunks of the slice: of its longest block, without shuffle. */
__device__ __forceinline__ int64_t count_chunks(const fsi_tile_args &a, const block_group &G, int rounds)
{
    int64_t count = a.local_rows.count - G.begin;
    if (!G.shuffled) {
        count = 0;
        for (int w = 0; w < G.blocks; w++) {
            const column_range k = range_of(a, G, w);
            count = k.high - k.column > count ? k.high - k.column : count;
        }
    }
    return ((count < a.length ? count : a.length) + rounds - 1) / rounds;
}

/* Whether block number `block` of the group feeds one of the taller output blocks. */
__device__ __forceinline__ bool feeds_taller(const fsi_tile_args &a, const block_group &G, int block)
{
    return a.B.out.larger && fsi_split_size(&a.B.out, fsi_output_block(a.B, G.h0 + block, 1)) > a.B.out.small;
}

/* Shared memory.  A chunk's rows and words are tables of rounds x pitch entries, words one table for each word of a
 * column; there are two of each, for even and odd chunks. */
template <class S> struct memory {
    int row_bytes, word_count, table;
    bool packed; /* a word for each output tile */
    S *sums;
    char *rows;
    uint32_t *words;
    fsi_round *rounds;
};
template <class S, class T, int NONZEROS>
__device__ __forceinline__ memory<S> memory_of(const fsi_tile_args &a, const block_group &G, int warps, int rounds,
                                               char *shared)
{
    memory<S> m;
    m.row_bytes = G.n * (int)sizeof(T), m.table = rounds * G.pitch;
    m.packed = fsi_output_tiles_packed(&a.B, a.outputs);
    m.word_count = (m.packed ? 1 : FSI_SIMT_SKINNY_DRAW) * (int)a.B.bands;
    m.sums = (S *)shared;
    m.rows = (char *)(m.sums + warps * HEIGHT * 32);
    m.words = (uint32_t *)(m.rows + 2 * m.table * m.row_bytes);
    m.rounds = (fsi_round *)(((uintptr_t)(m.words + 2 * m.table * m.word_count) + 7) & ~(uintptr_t)7);
    return m;
}

/* The units of rows that a thread copies: the same block and unit in every row_step-th round. */
struct row_share {
    int64_t row_stride;
    int unit_bytes, unit, step, block, start;
    int64_t unit_at; /* bytes from the first column */
    column_range range;
};
template <class T> __device__ __forceinline__ row_share row_share_of(const fsi_tile_args &a, const block_group &G,
                                                                     int row_bytes, int rounds)
{
    const int tid = threadIdx.x, threads = blockDim.x;
    row_share k;
    k.row_stride = a.row_stride * (int64_t)sizeof(T);
    const bool across = a.col_stride == 1 || G.n == 1;
    const uint64_t grain = across ? (uint64_t)a.data | (uint64_t)k.row_stride | (uint64_t)row_bytes : sizeof(T);
    k.unit_bytes = grain & 2 ? 2 : grain & 4 ? 4 : grain & 8 ? 8 : 16;
    const int units = row_bytes / k.unit_bytes;
    k.step = threads / (units * G.size);
    const int at_once = k.step * G.size;
    k.unit = across ? tid % units : tid / at_once;
    const int row = across ? tid / units : tid % at_once;
    k.block = G.shuffled ? row % G.size : row / k.step;
    k.start = tid >= at_once * units || k.block >= G.blocks ? rounds : G.shuffled ? row / G.size : row % k.step;
    k.unit_at = across ? k.unit * k.unit_bytes : k.unit * a.col_stride * (int64_t)sizeof(T);
    k.range = range_of(a, G, k.block < G.blocks ? k.block : 0);
    return k;
}

/* Where the thread's units of the next chunk are: the one of its first round, and that round's first column. */
struct row_cursor {
    uint64_t data;
    int64_t column, data_step;
};
__device__ __forceinline__ row_cursor first_rows(const fsi_tile_args &a, const block_group &G, const row_share &k,
                                                 int rounds)
{
    row_cursor next;
    next.data = (uint64_t)a.data + (uint64_t)((k.range.column - a.row0) * k.row_stride + k.unit_at);
    next.column = k.range.column;
    next.data_step = (int64_t)rounds * G.per_round * k.row_stride;
    return next;
}

/* The words that a thread draws: those of one block, for every step-th round, or for every step-th four rounds where
 * four share a Philox call.  `u` is the local row of the slice's first round. */
struct word_share {
    int item, step, start;
    int64_t u, block_rows;
};
__device__ __forceinline__ word_share word_share_of(const fsi_tile_args &a, const block_group &G)
{
    const int tid = threadIdx.x, threads = blockDim.x;
    word_share k;
    k.item = tid % G.size, k.step = threads / G.size, k.start = tid / G.size;
    if (k.item >= G.blocks || tid >= k.step * G.size) k.start = -1;
    const int block = k.start < 0 ? 0 : k.item;
    k.u = G.shuffled ? G.first_round : range_of(a, G, block).column - fsi_split_start(&a.B.in, G.h0 + block);
    k.block_rows = a.B.out.small + feeds_taller(a, G, block);
    return k;
}

/* The rounds of chunk c. */
__device__ __forceinline__ void make_rounds(const fsi_tile_args &a, const block_group &G, int rounds, fsi_round *to,
                                            int64_t c)
{
    const int tid = threadIdx.x, threads = blockDim.x;
    const int64_t round = G.first_round + c * rounds;
    to += (int)(c & 1) * rounds;
    for (int r = 4 * tid - (int)(round & 3); r < rounds; r += 4 * threads) {
        fsi_round four[4];
        fsi_blockperm_rounds(&a.B, (round + r) >> 2, four);
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (r + j >= 0 && r + j < rounds) to[r + j] = four[j];
    }
}

/* COUNT rows of a chunk, in rounds r, r + step, ...; all addresses before the first copy. */
template <int BYTES, int COUNT> __device__ __forceinline__ void copy_some(const fsi_blockperm &B, const block_group &G,
                                                                          const row_share &k, uint64_t data,
                                                                          const fsi_round *rounds, uint32_t from,
                                                                          uint32_t there, int next, int &r, char *&at)
{
    uint32_t column[COUNT];
#pragma unroll
    for (int u = 0; u < COUNT; u++)
        column[u] = (r + u * k.step) * G.per_round +
                    (G.shuffled ? fsi_blockperm_place(&B, G.h0 + k.block, rounds[r + u * k.step]) : 0);
#pragma unroll
    for (int u = 0; u < COUNT; u++, at += next)
        copy_unit<BYTES>(at, (const char *)(data + (uint64_t)k.row_stride * column[u]), column[u] - from < there);
    r += COUNT * k.step;
}
/* The rows of chunk c, the one after the last that was copied, in units of BYTES. */
template <int BYTES, class S> __device__ __forceinline__ void copy_rows(const fsi_blockperm &B, const block_group &G,
                                                                        const memory<S> &m, int rounds,
                                                                        const row_share &k, row_cursor &rows, int64_t c)
{
    const uint32_t from = clamped(k.range.low - rows.column), there = clamped(k.range.high - rows.column) - from;
    const fsi_round *its = m.rounds + (int)(c & 1) * rounds;
    const int entry = (int)(c & 1) * m.table + k.start * G.pitch + k.block;
    char *at = m.rows + entry * m.row_bytes + k.unit * BYTES;
    const int next = k.step * G.pitch * m.row_bytes;
    int r = k.start;
    while (r + (UNROLL - 1) * k.step < rounds)
        copy_some<BYTES, UNROLL>(B, G, k, rows.data, its, from, there, next, r, at);
    while (r < rounds) copy_some<BYTES, 1>(B, G, k, rows.data, its, from, there, next, r, at);
    rows.data += rows.data_step;
    rows.column += (int64_t)rounds * G.per_round;
}

/* The random words of chunk c. */
template <class S> __device__ __forceinline__ void draw_words(const fsi_tile_args &a, const block_group &G,
                                                              const memory<S> &m, int rounds, const word_share &k,
                                                              int64_t c)
{
    if (k.start < 0) return;
    const int pitch = G.pitch, item = k.item, h = G.h0 + item;
    const int64_t u = k.u + c * rounds;
    uint32_t *list = m.words + (int)(c & 1) * m.word_count * m.table + item;
    if (m.packed) {
        for (int r = 4 * k.start - (int)(u & 3); r < rounds; r += 4 * k.step)
            for (int q = 0; q < G.tiles; q++) {
                const fsi_quad quad = fsi_blockperm_quad(&a.B, h, u + r, q);
#pragma unroll
                for (int j = 0; j < 4; j++)
                    if (r + j >= 0 && r + j < rounds) list[q * m.table + (r + j) * pitch] = quad.w[j];
            }
        return;
    }
    for (int r = k.start; r < rounds; r += k.step)
        for (int q = 0; q < (int)a.B.bands; q++) {
            const fsi_draw draw = fsi_blockperm_draw(&a.B, h, u + r, 1, q, k.block_rows);
            uint32_t *to = list + FSI_SIMT_SKINNY_DRAW * q * m.table + r * pitch;
            to[0] = draw.digits, to[m.table] = draw.signs, to[2 * m.table] = draw.turn;
        }
}

/* Rows and words of chunk c. */
template <class T, class S> __device__ __forceinline__ void produce_chunk(const fsi_tile_args &a, const block_group &G,
                                                                          const memory<S> &m, int rounds,
                                                                          const row_share &r, row_cursor &rows,
                                                                          const word_share &w, int64_t c)
{
    if (sizeof(T) == 2 && r.unit_bytes == 2) copy_rows<2>(a.B, G, m, rounds, r, rows, c);
    else if (sizeof(T) <= 4 && r.unit_bytes == 4) copy_rows<4>(a.B, G, m, rounds, r, rows, c);
    else if (r.unit_bytes == 8) copy_rows<8>(a.B, G, m, rounds, r, rows, c);
    else copy_rows<16>(a.B, G, m, rounds, r, rows, c);
    fsi_copy_commit();
    draw_words(a, G, m, rounds, w, c);
}

/* The sums of a warp's output tile of a block; a lane adds one of every `lane_groups` rounds. */
template <int NONZEROS> struct sum_share {
    int replica, block, tile, lane_groups;
    int first_word, band, bands_end,
        tile_start; /* of the tile: of a local row's words, bands, first row in the block */
    bool adds;
    fsi_split strata;
    int bits, low_bits; /* of a row in a stratum, if NONZEROS */
    int lane_entry, lane_column;
    uint32_t mine; /* the lane's sums */
    uint32_t stratum[NONZEROS + 1];
};
template <int NONZEROS, class S>
__device__ __forceinline__ sum_share<NONZEROS> sum_share_of(const fsi_tile_args &a, const block_group &G, const S *sums,
                                                            int lanes, int warp, int lane)
{
    const uint32_t pitch_bytes = 32 * sizeof(S);
    sum_share<NONZEROS> k;
    k.replica = warp / (G.size * G.tiles), k.block = warp / G.tiles % G.size, k.tile = warp % G.tiles;
    k.lane_groups = 32 / lanes;
    k.adds = k.replica < G.replicas && k.block < G.blocks;
    k.strata = a.B.strata[k.adds && feeds_taller(a, G, k.block)];
    k.band = k.tile * a.outputs.bands, k.bands_end = min(k.band + a.outputs.bands, (int)a.B.bands);
    k.tile_start = (int)fsi_split_start(&k.strata, k.band * a.B.per_band);
    k.first_word = k.band * (fsi_output_tiles_packed(&a.B, a.outputs) ? 1 : FSI_SIMT_SKINNY_DRAW);
    k.bits = 31 - __clz((int)k.strata.small), k.low_bits = (int)k.strata.small - 1;
    k.lane_entry = lane / lanes * G.pitch + k.block, k.lane_column = lane % lanes < G.n ? lane % lanes : G.n - 1;
    k.mine = fsi_shared_address(sums + warp * HEIGHT * 32 + lane);
#pragma unroll
    for (int t = 0; t < NONZEROS; t++) k.stratum[t] = k.mine + (t << k.bits) * pitch_bytes;
    return k;
}

/* Adds a row by its packed word: the next bits of each nonzero are its row, then its sign.  The rows are distinct: all
 * loads before the first store. */
template <int NONZEROS, class S>
__device__ __forceinline__ void add_by_bits(const sum_share<NONZEROS> &k, S x, uint32_t word)
{
    const uint32_t pitch_bytes = 32 * sizeof(S);
    const int bits = k.bits, low_bits = k.low_bits;
    uint32_t at[NONZEROS + 1];
    S y[NONZEROS + 1];
#pragma unroll
    for (int t = 0; t < NONZEROS; t++) {
        word = __funnelshift_l(word, word, bits + (t > 0));
        at[t] = k.stratum[t] + (word & low_bits) * pitch_bytes;
        fsi_shared_get(at[t], &y[t]);
        y[t] += fsi_turned(x, word);
    }
#pragma unroll
    for (int t = 0; t < NONZEROS; t++) fsi_shared_put(at[t], y[t]);
}
/* The same for any number of nonzeros and any strata. */
template <int NONZEROS, class S> __device__ __forceinline__ void add_by_words(const fsi_tile_args &a,
                                                                              const sum_share<NONZEROS> &k, bool packed,
                                                                              int table, S x, const uint32_t *list)
{
    const uint32_t mine = k.mine, pitch_bytes = 32 * sizeof(S);
    for (int q = k.band, t = q * a.B.per_band; q < k.bands_end; q++, list += FSI_SIMT_SKINNY_DRAW * table) {
        uint32_t word = list[0];
        fsi_draw draw;
        if (!packed) draw.digits = word, draw.signs = list[table], draw.turn = list[2 * table];
        for (int i = 0; i < fsi_blockperm_count(&a.B, q); i++, t++) {
            const uint32_t next = packed ? fsi_packed_code(&a.B, i, &word)
                                         : fsi_blockperm_code(&a.B, &k.strata, t, &draw) - 2 * k.tile_start;
            const uint32_t at = mine + (next >> 1) * pitch_bytes;
            S y;
            fsi_shared_get(at, &y);
            fsi_shared_put(at, y + fsi_turned(x, next << 31));
        }
    }
}
/* A warp adds the rows of its block of chunk c to its output tile. */
template <class T, int NONZEROS, class S>
__device__ __forceinline__ void add_rows(const fsi_tile_args &a, const block_group &G, const memory<S> &m, int rounds,
                                         const sum_share<NONZEROS> &k, int64_t c)
{
    const int pitch = G.pitch, replicas = G.replicas, row_bytes = m.row_bytes, lane_groups = k.lane_groups;
    const int step = UNROLL * lane_groups;
    const int entry = (int)(c & 1) * m.table + k.replica * step * pitch + k.lane_entry;
    const char *row_at = m.rows + entry * row_bytes + k.lane_column * (int)sizeof(T);
    const uint32_t *list = m.words + entry + ((int)(c & 1) * (m.word_count - 1) + k.first_word) * m.table;
    for (int r = k.replica * step; r < rounds; r += replicas * step) {
        S x[UNROLL];
        uint32_t word[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            x[u] = fsi_widen(*(const T *)(row_at + u * lane_groups * pitch * row_bytes));
            word[u] = list[u * lane_groups * pitch];
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (NONZEROS) add_by_bits(k, x[u], word[u]);
            else add_by_words(a, k, m.packed, m.table, x[u], list + u * lane_groups * pitch);
        row_at += replicas * step * pitch * row_bytes;
        list += replicas * step * pitch;
    }
}

/* The sums of a column and block added in an order that depends on the row alone, scaled once, stored once. */
template <class S>
__device__ __forceinline__ void store_sums(const fsi_tile_args &a, const block_group &G, const S *sums, int lanes)
{
    const int n = G.n, outputs = G.blocks * G.tiles, replicas = G.replicas, lane_groups = 32 / lanes;
    const int tid = threadIdx.x, threads = blockDim.x;
    const fsi_output to = fsi_partial_sums(a, 1, G.z);
    const bool down = to.row_stride == 1 && to.col_stride != 1; /* neighbours in memory are rows of Y */
    for (int i = tid; i < outputs * HEIGHT * n; i += threads) {
        const int b = i / (HEIGHT * n), rest = i - b * HEIGHT * n;
        const int r = down ? rest % HEIGHT : rest / n, j = down ? rest / HEIGHT : rest % n;
        fsi_slice p = {};
        p.h = (uint32_t)(G.h0 + b / G.tiles);
        p = fsi_slice_for(a, p, b % G.tiles);
        if (r >= p.tile_rows) continue;
        const S *at = sums + (b * HEIGHT + r) * 32 + j;
        S sum = 0;
        for (int f = 0; f < replicas; f++, at += G.size * G.tiles * HEIGHT * 32)
#pragma unroll 4
            for (int e = 0; e < lane_groups; e++)
                sum += at[((e + r) & (lane_groups - 1)) * lanes]; /* rows in different banks */
        fsi_output_put(to, p.output_row + r, j, sum);
    }
}

template <class T, int NONZEROS> __global__ void __launch_bounds__(512, 1)
    simt_skinny(const __grid_constant__ fsi_tile_args a, int lanes, int rounds)
{
    typedef typename fsi_sum<T>::type S;
    extern __shared__ __align__(16) char shared[];
    const int tid = threadIdx.x, threads = blockDim.x, warps = threads >> 5, warp = tid >> 5, lane = tid & 31;
    fsi_start_next_kernel();
    /* 1. the group's blocks and this slice's share of their local rows; sums cleared */
    const block_group G = group_of(a, warps);
    const int64_t chunks = count_chunks(a, G, rounds);
    const memory<S> m = memory_of<S, T, NONZEROS>(a, G, warps, rounds, shared);
    for (int i = tid; i < warps * HEIGHT * 32; i += threads) m.sums[i] = 0;

    /* 2. what this thread copies and draws, and what it adds */
    const row_share row = row_share_of<T>(a, G, m.row_bytes, rounds);
    const word_share word = word_share_of(a, G);
    row_cursor rows = first_rows(a, G, row, rounds);
    const sum_share<NONZEROS> sum = sum_share_of<NONZEROS>(a, G, m.sums, lanes, warp, lane);

    /* 3. while a chunk is added, the next is produced, and the shifts of the one after that */
    for (int64_t c = -2; c < chunks; c++) {
        if (c >= -1 && c + 1 < chunks) produce_chunk<T>(a, G, m, rounds, row, rows, word, c + 1);
        if (G.shuffled && c + 2 < chunks) make_rounds(a, G, rounds, m.rounds, c + 2);
        if (sum.adds && c >= 0) add_rows<T>(a, G, m, rounds, sum, c);
        fsi_copy_wait<0>();
        __syncthreads();
    }

    /* 4. sums of lanes and replicas added and stored */
    store_sums(a, G, m.sums, lanes);
}

}  // namespace

#define KERNEL(T, dtype, nonzeros) (const void *)simt_skinny<T, nonzeros>,
static const void *const simt_skinny_instances[] = {FSI_SIMT_SKINNY(KERNEL)};

static fs_result launch_simt_skinny(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                    const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    int lanes = plan->team, rounds = plan->chunk;
    void *arguments[] = {&l.args, &lanes, &rounds};
    return fsi_tile_launch_run(&l, simt_skinny_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_simt_skinny_code = {launch_simt_skinny, simt_skinny_instances};
