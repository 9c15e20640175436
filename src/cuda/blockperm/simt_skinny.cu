/* simt_skinny.cu - BlockPerm-SJLT of few columns: thread blocks walk over the rounds of the deal, a warp has a block's sums.
 *
 * Formulation.  With few columns a row of A is short and an input block's rows lie far apart, but the M rows of a round
 * are neighbours and go to M different blocks.  So a thread block takes `each` neighbouring blocks, a warp for each,
 * and reads what all of them get of a chunk of rounds: pieces of rows go to shared memory, by round and block.  Four
 * neighbouring rows share a Philox call; their words go there in the same order.  While the next chunk is made, a warp
 * adds the rows of its block.  A lane has a tile of sums of its own, so nothing is atomic and no two lanes meet in a
 * bank; `lanes` of them, one for each column, take a round, and 32 / lanes rounds are taken at once.  Lanes and warps
 * that share a column and a block are added in a fixed order at the end.  Without shuffle, a round is the next row of
 * every block.
 *
 * grid     groups of `each` blocks x slices, in this order, in x
 * threads  at most 16 warps: teams of a warp for each block of the group
 * shared   sums: warps x 64 rows x 32 lanes; of two chunks of rounds: rows of A, their words, where rounds begin
 * needs    kappa = 1, n <= lanes <= 32, blocks of at most 64 rows, dealt rows or no shuffle, M <= 2^20; rounds a
 *          multiple of 4 x 32 / lanes, slices of whole chunks */
#include "cuda/blockperm/simt_skinny_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/runtime/ptx.cuh"
#include "cuda/blockperm/common/tile.cuh"

namespace {

enum { HEIGHT = FSI_SIMT_SKINNY_HEIGHT, UNROLL = FSI_SIMT_SKINNY_UNROLL };

template <int BYTES> struct raw;
template <> struct raw<2> {
    typedef uint16_t type;
};
template <> struct raw<4> {
    typedef uint32_t type;
};
template <> struct raw<8> {
    typedef uint2 type;
};
template <> struct raw<16> {
    typedef uint4 type;
};

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
enum { ASYNC = 1 };
#else
enum { ASYNC = 0 };
#endif

/* A piece of a row into shared memory, zeros if it is not there; by cp.async where there is one for its size. */
template <int BYTES> __device__ __forceinline__ void copy(char *to, const char *from, bool there)
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

template <class T, int NONZEROS> __global__ void __launch_bounds__(512, 1)
    narrow(const __grid_constant__ fsi_tile_args a, int lanes, int rounds)
{
    typedef typename fsi_sum<T>::type S;
    extern __shared__ __align__(16) char shared[];
    const int tid = threadIdx.x, threads = blockDim.x, warps = threads >> 5, warp = tid >> 5, lane = tid & 31;
    fsi_start_next_kernel();
    /* 1. the group's blocks h0 ... h0 + blocks - 1, and this slice's share of their local rows */
    const int M = (int)a.B.M, n = (int)a.n, groups = (M + warps - 1) / warps, each = (M + groups - 1) / groups;
    const int h0 = (int)(blockIdx.x % groups) * each, z = (int)(blockIdx.x / groups);
    const int blocks = M - h0 < each ? M - h0 : each, teams = warps / each, pitch = each | 1;
    const bool dealt = a.B.shuffle == FSI_DEF_ROWS;
    const int per_round = dealt ? M : 1; /* columns of S */
    const int64_t begin = z * a.length, first_round = a.local_rows.first + begin;
    /* Block h0 + w may get columns low ... high - 1 of S; `column` is the first of this slice's first round. */
    struct range {
        int64_t low, high, column;
    };
    auto range_of = [&](int w) {
        range k = {a.row0, a.row0 + a.rows, first_round * M};
        if (dealt) return k;
        const int64_t start = fsi_split_start(&a.B.in, h0 + w), end = start + fsi_split_size(&a.B.in, h0 + w);
        k.low = k.low > start ? k.low : start;
        k.high = k.high < end ? k.high : end;
        k.column = k.low + begin;
        return k;
    };
    int64_t count = a.local_rows.count - begin;
    if (!dealt) {
        count = 0;
        for (int w = 0; w < blocks; w++) {
            const range k = range_of(w);
            count = k.high - k.column > count ? k.high - k.column : count;
        }
    }
    const int64_t chunks = ((count < a.length ? count : a.length) + rounds - 1) / rounds;
    auto is_tall = [&](int w) {
        return a.B.out.larger && fsi_split_size(&a.B.out, fsi_output_block(a.B, h0 + w, 1)) > a.B.out.small;
    };
    const int row_bytes = n * (int)sizeof(T), word_count = NONZEROS ? 1 : (int)a.B.words, table = rounds * pitch;
    S *sums = (S *)shared;
    char *rows = (char *)(sums + warps * HEIGHT * 32);
    uint32_t *words = (uint32_t *)(rows + 2 * table * row_bytes);
    int *turns = (int *)(words + 2 * table * word_count); /* the member of a round that block h0 gets; or 0 */
    for (int i = tid; i < 2 * rounds && !dealt; i += threads) turns[i] = 0;
    for (int i = tid; i < warps * HEIGHT * 32; i += threads) sums[i] = 0;

    /* 2. threads and the pieces of rows that they copy: a thread has the same block and piece in every round */
    const int64_t row_stride = a.row_stride * (int64_t)sizeof(T);
    const bool across = a.col_stride == 1 || n == 1;
    const uint64_t grain = across ? (uint64_t)a.data | (uint64_t)row_stride | (uint64_t)row_bytes : sizeof(T);
    const int piece_bytes = grain & 2 ? 2 : grain & 4 ? 4 : grain & 8 ? 8 : 16, pieces = row_bytes / piece_bytes;
    const int row_step = threads / (pieces * each), at_once = row_step * each;
    const int piece = across ? tid % pieces : tid / at_once, row = across ? tid / pieces : tid % at_once;
    const int row_block = dealt ? row % each : row / row_step;
    const int row_start = tid >= at_once * pieces || row_block >= blocks ? rounds : dealt ? row / each : row % row_step;
    const int64_t piece_at = across ? piece * piece_bytes : piece * a.col_stride * (int64_t)sizeof(T);
    const range row_range = range_of(row_block < blocks ? row_block : 0);
    const int member = dealt ? row_block : 0;
    /* and the words that they make: those of four neighbours at once, or of one block */
    const bool by_quads = dealt && M % 4 == 0 && a.B.accepts[0] && (a.B.out.larger == 0 || a.B.accepts[1]);
    const int quads = M / 4 < (each + 6) / 4 ? M / 4 : (each + 6) / 4, items = by_quads ? quads : each;
    const int item = tid % items, word_step = threads / items;
    const bool has_block = !by_quads && item < blocks;
    const int word_start = tid < word_step * items && (by_quads || has_block) ? tid / items : rounds;
    const int64_t word_column = range_of(has_block ? item : 0).column;
    const int64_t block_rows = a.B.out.small + (has_block && is_tall(item));

    auto make_turns = [&](int64_t c) {
        const int64_t round = first_round + c * rounds;
        int *turn = turns + (int)(c & 1) * rounds;
        for (int r = 4 * tid - (int)(round & 3); r < rounds; r += 4 * threads) {
            uint32_t four[4];
            fsi_blockperm_rotations(&a.B, (round + r) >> 2, four);
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (r + j >= 0 && r + j < rounds) turn[r + j] = (int)wrapped(h0 - four[j], M);
        }
    };
    /* The rows of chunk c, the one after the last that was copied: `data` and `column` are of its first round. */
    uint64_t data = (uint64_t)a.data + (uint64_t)((row_range.column - a.row0) * row_stride + piece_at);
    int64_t column = row_range.column;
    const int64_t data_step = (int64_t)rounds * per_round * row_stride;
    auto copy_rows = [&](int64_t c, auto bytes) {
        const uint32_t from = clamped(row_range.low - column), there = clamped(row_range.high - column) - from;
        const int *turn = turns + (int)(c & 1) * rounds;
        const int local_row = (int)(c & 1) * table + row_start * pitch + row_block;
        char *at = rows + local_row * row_bytes + piece * (int)sizeof bytes;
        const int next = row_step * pitch * row_bytes;
        int r = row_start;
        auto copy_some = [&](auto &place) {
            enum { COUNT = sizeof place / sizeof place[0] };
#pragma unroll
            for (int u = 0; u < COUNT; u++)
                place[u] = (r + u * row_step) * per_round + wrapped(turn[r + u * row_step] + member, -M);
#pragma unroll
            for (int u = 0; u < COUNT; u++, at += next)
                copy<sizeof bytes>(at, (const char *)(data + (uint64_t)row_stride * place[u]), place[u] - from < there);
            r += COUNT * row_step;
        };
        uint32_t some[UNROLL], one[1];
        while (r + (UNROLL - 1) * row_step < rounds) copy_some(some);
        while (r < rounds) copy_some(one);
        data += data_step;
        column += (int64_t)rounds * per_round;
    };
    auto make_words = [&](int64_t c) {
        const int64_t column = word_column + c * rounds * per_round;
        const int *turn = turns + (int)(c & 1) * rounds;
        for (int q = 0; q < word_count; q++) {
            uint32_t *list = words + ((int)(c & 1) * word_count + q) * table;
            if (by_quads)
#pragma unroll 2
                for (int r = word_start; r < rounds; r += word_step) {
                    const uint32_t lead = turn[r] & 3, place = r * M + wrapped(turn[r] - lead + 4 * item, -M);
                    const fsi_quad quad = fsi_blockperm_quad(&a.B, (column >> 2) + (place >> 2), 1, q);
#pragma unroll
                    for (int j = 0; j < 4; j++) {
                        const uint32_t w = wrapped(4 * item + j - lead, M);
                        if (w < (uint32_t)blocks) list[r * pitch + w] = quad.w[j];
                    }
                }
            else
                for (int r = word_start; r < rounds; r += word_step) {
                    const uint32_t place = r * per_round + (dealt ? wrapped(turn[r] + item, -M) : 0);
                    list[r * pitch + item] = fsi_blockperm_word(&a.B, column + place, 1, q, block_rows);
                }
        }
    };
    auto produce = [&](int64_t c) {
        if (sizeof(T) == 2 && piece_bytes == 2) copy_rows(c, uint16_t());
        else if (sizeof(T) <= 4 && piece_bytes == 4) copy_rows(c, uint32_t());
        else if (piece_bytes == 8) copy_rows(c, uint2());
        else copy_rows(c, uint4());
        fsi_copy_commit();
        make_words(c);
    };

    /* 3. what a warp adds: a lane has one of every `copies` rounds */
    const int team = warp / each, block = warp % each, copies = 32 / lanes;
    const bool adds = team < teams && block < blocks;
    const fsi_split slices = a.B.strata[adds && is_tall(block)];
    const int bits = 31 - __clz((int)slices.small),
              low_bits = (int)slices.small - 1; /* of a slice's rows, if NONZEROS */
    const int lane_slot = lane / lanes * pitch + block, lane_column = lane % lanes < n ? lane % lanes : n - 1;
    const uint32_t mine = fsi_shared_address(sums + warp * HEIGHT * 32 + lane), pitch_bytes = 32 * sizeof(S);
    uint32_t slice[NONZEROS + 1];
#pragma unroll
    for (int t = 0; t < NONZEROS; t++) slice[t] = mine + (t << bits) * pitch_bytes;
    /* fsi_blockperm_next where slices are powers of two: a digit is the word's next bits, row first, sign last.  The rows
     * are distinct: all loads before the first store. */
    auto add_four = [&](S x, uint32_t word) {
        uint32_t at[NONZEROS + 1];
        S y[NONZEROS + 1];
#pragma unroll
        for (int t = 0; t < NONZEROS; t++) {
            word = __funnelshift_l(word, word, bits + (t > 0));
            at[t] = slice[t] + (word & low_bits) * pitch_bytes;
            fsi_shared_get(at[t], &y[t]);
            y[t] += fsi_turned(x, word);
        }
#pragma unroll
        for (int t = 0; t < NONZEROS; t++) fsi_shared_put(at[t], y[t]);
    };
    auto add_any = [&](S x, const uint32_t *list) {
        for (int q = 0, t = 0; q < word_count; q++) {
            uint32_t word = list[q * table];
            for (int left = fsi_blockperm_count(&a.B, q); left > 0; left--, t++) {
                const uint32_t next = fsi_blockperm_next(&slices, t, &word), at = mine + (next >> 1) * pitch_bytes;
                S y;
                fsi_shared_get(at, &y);
                fsi_shared_put(at, y + fsi_turned(x, next << 31));
            }
        }
    };
    auto add_rows = [&](int64_t c) {
        const int step = UNROLL * copies, local_row = (int)(c & 1) * table + team * step * pitch + lane_slot;
        const char *row_at = rows + local_row * row_bytes + lane_column * (int)sizeof(T);
        const uint32_t *list = words + local_row + (int)(c & 1) * (word_count - 1) * table;
        for (int r = team * step; r < rounds; r += teams * step) {
            S x[UNROLL];
            uint32_t word[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                x[u] = fsi_widen(*(const T *)(row_at + u * copies * pitch * row_bytes));
                word[u] = list[u * copies * pitch];
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                if (NONZEROS) add_four(x[u], word[u]);
                else add_any(x[u], list + u * copies * pitch);
            row_at += teams * step * pitch * row_bytes;
            list += teams * step * pitch;
        }
    };

    /* 4. while a chunk is added, the next is made, and the turns of the one after that */
    for (int64_t c = -2; c < chunks; c++) {
        if (c >= -1 && c + 1 < chunks) produce(c + 1);
        if (dealt && c + 2 < chunks) make_turns(c + 2);
        if (adds && c >= 0) add_rows(c);
        fsi_copy_wait<0>();
        __syncthreads();
    }

    /* 5. the sums of a column and block added in an order that depends on the row alone, scaled once, stored once */
    const fsi_output to = fsi_partial_sums(a, 1, z);
    const bool down = to.row_stride == 1 && to.col_stride != 1; /* neighbours in memory are rows of Y */
    for (int i = tid; i < blocks * HEIGHT * n; i += threads) {
        const int b = i / (HEIGHT * n), rest = i - b * HEIGHT * n;
        const int r = down ? rest % HEIGHT : rest / n, j = down ? rest / HEIGHT : rest % n;
        const uint32_t g = fsi_output_block(a.B, h0 + b, 1);
        if (r >= fsi_split_size(&a.B.out, g)) continue;
        const S *at = sums + (b * HEIGHT + r) * 32 + j;
        S sum = 0;
        for (int f = 0; f < teams; f++, at += each * HEIGHT * 32)
#pragma unroll 4
            for (int e = 0; e < copies; e++) sum += at[((e + r) & (copies - 1)) * lanes]; /* rows in different banks */
        fsi_output_put(to, fsi_split_start(&a.B.out, g) + r, j, sum);
    }
}

}  // namespace

#define KERNEL(T, dtype, nonzeros) (const void *)narrow<T, nonzeros>,
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
