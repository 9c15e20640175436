/* mma_skinny.cu - BlockPerm-SJLT of tall matrices with few columns, on the tensor cores by mma.sync: a warp has a block of S,
 * which it makes in registers.
 *
 * Formulation.  The 64 rows of a block of S are the M axis of the tensor cores, 16 of its local rows the K axis, 8 columns
 * of A the N axis.  Where the slices of a block are powers of two, a nonzero is some bits of its local row's random word
 * (fsi_blockperm_next), so a thread makes its elements of S by comparing those bits with the row it has, two local rows at
 * once: S goes through no memory.  Elements of A are copied by the thread that multiplies them, VECTOR neighbouring
 * columns for VECTOR tiles of 8 columns, into a ring of its own in shared memory, so that no thread waits for another.
 * Warps of a thread block have neighbouring blocks and walk over the same rounds of the deal, of which they read all
 * rows together; they meet once in a span of rounds, whose turns all of them make, and words, four neighbours' at once.
 * Accuracy, Inf and NaN: as in mma_rows.cu; floats are cut into three pieces of bf16, 32 local rows are added on the
 * tensor cores, small pieces first, and those sums in float.
 *
 * grid     groups of `each` blocks x tiles of 8 VECTOR columns x slices, in this order, in x
 * threads  WARPS warps: teams of a warp for each block of the group, which take 32 local rows in turn
 * shared   of every warp: its ring of elements, and then its sums; turns of four spans; of every block their words; of
 *          every warp: places of local rows, its slice
 * needs    kappa = 1, s = NONZEROS of 1, 2, 4, 8 in blocks of 64 rows, dealt rows or no shuffle, M <= 2^20, less than
 *          2^31 rows of A for a slice; any strides, fast where a thread's columns are one copy */
#include "cuda/blockperm/mma_skinny_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

/* Local rows of a chunk, whose elements are copied together; rounds of a span, whose turns and words are made together; and
 * of all spans that are kept, from one to another block's words. */
enum {
    CHUNK = 32,
    UNITS = CHUNK / STEP,
    SPAN = FSI_MMA_SKINNY_SPAN,
    KEPT = FSI_MMA_SKINNY_KEPT,
    PITCH = FSI_MMA_SKINNY_PITCH
};

/* A column's nonzeros, t = 0 ... s - 1, are in order the next bits of its word: row in slice t, then the sign.  Here
 * they are laid out in two halves of 16 bits, so that a row's bits in a half, the others cleared, are a number, f16 or
 * bf16, that is finite and not negative: rows are equal where these are.  The first nonzero of a half begins at bit
 * TOP; the sign of the last, which there may be no place left for below it, is at bit 15 then. */
template <int NONZEROS> struct digits {
    enum {
        ROWS = HEIGHT / NONZEROS,
        BITS = row_bits<NONZEROS>::value,
        EACH = NONZEROS > 1 ? NONZEROS / 2 : 1,
        USED = EACH * (BITS + 1),
        TOP = USED == 16 ? 14 : 13
    };
    static_assert(USED <= 16, "there is no place for all nonzeros");
    static __device__ __forceinline__ uint32_t laid_out(uint32_t word)
    {
        if (USED == 16) return (word >> 1 & 0x7FFF7FFFu) | (word << 15 & 0x80008000u);
        return fsi_bytes<0x7610>(word >> (15 - TOP + 16 - USED), word >> (15 - TOP));
    }
    /* Halves `high` and `low` of two local rows: +-1 where a local row has a nonzero in row `first` + g, +-0 elsewhere; `first`,
     * a multiple of 8, is known at compile time. */
    template <int HALF>
    static __device__ __forceinline__ uint32_t ones(uint32_t high, uint32_t low, int first, uint32_t g_twice)
    {
        const int t = first / ROWS, shift = TOP + 1 - BITS - t % EACH * (BITS + 1), to_sign = (16 - shift) & 15;
        const uint32_t two = t < EACH ? high : low, mask = ((ROWS - 1) << shift) * 0x10001u;
        const uint32_t row = (g_twice << shift) + (first % ROWS << shift) * 0x10001u;
        return fsi_turned_halves(fsi_equal_ones<HALF>(two & mask, row), two << to_sign);
    }
};

/* A thread's elements of a unit of 16 local rows: its local rows 4 q ... 4 q + 3 are K positions 2 q, 2 q + 1, 2 q + 8 and
 * 2 q + 9 of the fragments, its columns VECTOR g ... of the tile are column g of VECTOR fragments.  cut() makes these,
 * of large pieces first. */
template <class T, int VECTOR> struct elements {
    enum { PASSES = 1, WORDS = VECTOR / 2 };
    uint32_t x[4 * WORDS];
    __device__ __forceinline__ void cut(uint32_t (&of)[PASSES][VECTOR][2])
    {
#pragma unroll
        for (int v = 0; v < VECTOR; v++)
#pragma unroll
            for (int pair = 0; pair < 2; pair++) {
                const uint32_t first = x[2 * pair * WORDS + v / 2], second = x[(2 * pair + 1) * WORDS + v / 2];
                of[0][v][pair] = v % 2 ? fsi_bytes<0x7632>(first, second) : fsi_bytes<0x5410>(first, second);
            }
    }
};
template <int VECTOR> struct elements<float, VECTOR> {
    enum { PASSES = 3, WORDS = VECTOR };
    uint32_t x[4 * WORDS];
    __device__ __forceinline__ void cut(uint32_t (&of)[PASSES][VECTOR][2])
    {
#pragma unroll
        for (int v = 0; v < VECTOR; v++)
#pragma unroll
            for (int pair = 0; pair < 2; pair++) {
                float first = __uint_as_float(x[2 * pair * WORDS + v]);
                float second = __uint_as_float(x[(2 * pair + 1) * WORDS + v]);
#pragma unroll
                for (int i = 0; i < PASSES; i++) {
                    of[i][v][pair] = fsi_bytes<0x7632>(__float_as_uint(first), __float_as_uint(second));
                    if (i + 1 < PASSES) keep_rest(first, second, of[i][v][pair]);
                }
            }
    }
};
/* Where they are in a stage of a lane's ring: 16 bytes, or all of them if they are fewer, at a time, those of all lanes
 * side by side.  `at` is the lane's first; byte `offset` of its elements is that far behind it. */
template <int BYTES> __device__ __forceinline__ int stage_offset(int offset)
{
    enum { LINE = 4 * BYTES < 16 ? 4 * BYTES : 16 };
    return offset / LINE * (32 * LINE) + offset % LINE;
}

/* Slot 0 of a warp's local rows: the first of its slice, moved down to a multiple of 4 where four rounds share a call. */
__device__ __forceinline__ int64_t first_slot(const fsi_blockperm &B, const fsi_slice &p)
{
    return B.shuffle == FSI_DEF_ROWS ? p.first & ~(int64_t)3 : p.first;
}
/* Its column of S; places of other local rows are counted from there. */
[[maybe_unused]] __device__ __forceinline__ int64_t first_place(const fsi_blockperm &B, const fsi_slice &p)
{
    return first_slot(B, p) * (B.shuffle == FSI_DEF_ROWS ? B.M : 1);
}

/* Out of the way, so that the loop has its registers to itself: turns of the span of rounds that begins at `local row`; */
[[maybe_unused]] __device__ __noinline__ void make_turns(const fsi_blockperm &B, const fsi_slice &p, unsigned local_row,
                                                         uint32_t *turns)
{
    uint32_t turn[4];
    if (threadIdx.x >= SPAN / 4) return;
    fsi_blockperm_rotations(&B, ((first_slot(B, p) + local_row) >> 2) + threadIdx.x, turn);
    *(uint4 *)(turns + local_row % KEPT + 4 * threadIdx.x) = make_uint4(turn[0], turn[1], turn[2], turn[3]);
}
/* its words, for blocks h0 ... h0 + blocks - 1, of four neighbouring columns at once, M being a multiple of 4; */
template <int NONZEROS> __device__ __noinline__ void make_words(const fsi_blockperm &B, const fsi_slice &p,
                                                                const fsi_philox_keys &keys, uint32_t h0,
                                                                uint32_t blocks, unsigned local_row,
                                                                const uint32_t *turns, uint32_t *words)
{
    const uint32_t M = (uint32_t)B.M;
    const unsigned quads = min(M / 4, (blocks + 6) / 4), item = threadIdx.x % quads, step = blockDim.x / quads;
    if (threadIdx.x >= step * quads) return;
    for (unsigned r = threadIdx.x / quads; r < SPAN; r += step) {
        const uint32_t member = wrapped(h0 - turns[local_row % KEPT + r], M), lead = member & 3; /* h0's */
        const uint32_t place = wrapped(member - lead + 4 * item, 0u - M);
        const fsi_quad quad = fsi_blockperm_only_quad(&keys, ((first_slot(B, p) + local_row + r) * M + place) >> 2);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const uint32_t block = wrapped(4 * item + j - lead, M);
            if (block < blocks) words[block * PITCH + local_row % KEPT + r] = digits<NONZEROS>::laid_out(quad.w[j]);
        }
    }
}
/* the word of one local row, where they are not made so; */
template <int NONZEROS> __device__ __noinline__ uint32_t make_word(const fsi_blockperm &B, const fsi_slice &p,
                                                                   const fsi_philox_keys &keys, uint32_t place)
{
    const int64_t column = first_place(B, p) + place;
    return digits<NONZEROS>::laid_out(fsi_quad_word(fsi_blockperm_only_quad(&keys, column >> 2), (uint64_t)column));
}
/* and this lane's elements of any chunk, of any strides, zeros of empty local rows; `first` is the chunk's first local row. */
template <class T, int VECTOR> __device__ __noinline__ void copy_slowly(const fsi_tile_args &a, const fsi_slice &p,
                                                                        unsigned first, const uint32_t *places,
                                                                        char *to)
{
    const int lane = threadIdx.x & 31;
#pragma unroll 1
    for (int i = 0; i < UNITS * 4; i++) {
        const int number = i / 4 * STEP + 4 * (lane & 3) + i % 4;
        const int64_t local_row = first_slot(a.B, p) + first + number,
                      row = first_place(a.B, p) + places[number] - a.row0;
        const bool there = local_row >= p.first && local_row < p.first + p.count && row >= 0 && row < a.rows;
#pragma unroll
        for (int v = 0; v < VECTOR; v++) {
            const int64_t j = min(p.column + VECTOR * (lane >> 2) + v, a.n - 1);
            T x = T();
            if (there) x = ((const T *)a.data)[row * a.row_stride + j * a.col_stride];
            *(T *)(to + stage_offset<VECTOR * sizeof(T)>((i * VECTOR + v) * (int)sizeof(T))) = x;
        }
    }
}

/* A ring of STAGES chunks. */
template <class T, int VECTOR, int NONZEROS, int STAGES, int WARPS> __global__ void __launch_bounds__(32 * WARPS, 1)
    tall(const __grid_constant__ fsi_tile_args a, const __grid_constant__ fsi_philox_keys keys)
{
#if __CUDA_ARCH__ >= 800
    constexpr int HALF = is_half<T>::value, WIDTH = 8 * VECTOR, BYTES = VECTOR * sizeof(T);
    constexpr int STAGE_BYTES = CHUNK * WIDTH * (int)sizeof(T),
                  RING_BYTES = FSI_MMA_SKINNY_RING(sizeof(T), VECTOR, STAGES);
    enum { PASSES = elements<T, VECTOR>::PASSES, LINE = 4 * BYTES < 16 ? 4 * BYTES : 16 };
    static_assert(SPAN / 128 <= WARPS && KEPT == 4 * SPAN && (STAGES - 1) * (WARPS / 4) * CHUNK <= 2 * SPAN,
                  "see begin_span");
    static_assert((STAGES & (STAGES - 1)) == 0 && RING_BYTES >= STAGES * STAGE_BYTES &&
                      RING_BYTES >= HEIGHT * WIDTH * 4,
                  "the instance list disagrees");
    extern __shared__ __align__(16) char shared[];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    char *ring = shared + warp * RING_BYTES;
    uint32_t *turns = (uint32_t *)(shared + WARPS * RING_BYTES);
    uint32_t *all_words = turns + KEPT, *places = all_words + WARPS * PITCH + warp * CHUNK;
    fsi_slice *slices = (fsi_slice *)(all_words + WARPS * PITCH + WARPS * CHUNK);
    fsi_start_next_kernel();

    /* 1. this warp's block and slice; warps behind the last block or team have none */
    const int M = (int)a.B.M, groups = (M + WARPS - 1) / WARPS, each = (M + groups - 1) / groups, teams = WARPS / each;
    const int block = warp % each, team = warp / each, h0 = (int)(blockIdx.x % groups) * each, h = h0 + block;
    const int64_t first_column = (int64_t)(blockIdx.x / groups % a.tiles) * WIDTH;
    const bool dealt = a.B.shuffle == FSI_DEF_ROWS, mine = block < each && h < M && team < teams;
    const int z = (int)(blockIdx.x / groups / a.tiles);
    const fsi_slice p = fsi_slice_at(a, h < M ? h : 0, 1, first_column, z);
    fsi_slice *slice = slices + warp;
    if (lane == 0) *slice = p;
    const unsigned count = (unsigned)(p.first + p.count - first_slot(a.B, p)), per_round = dealt ? M : 1;
    const bool together = dealt && M % 4 == 0; /* words are made by all warps */
    uint32_t *words = all_words + (together ? block : warp) * PITCH;
    __syncwarp();

    /* 2. Elements are copied fast where they can be: VECTOR columns of a row at once, of chunks without an empty local row,
     * which begin at local rows `inside` ... inside + insides - 1.  A lane's columns that are behind the last are the last
     * again.  Local rows are counted from the first of the slice, and so are places, which are columns of S. */
    const int64_t row_stride = a.row_stride * (int64_t)sizeof(T);
    const bool fast = a.col_stride == 1 && a.n % VECTOR == 0 && row_stride == (uint32_t)row_stride &&
                      (((uint64_t)a.data | (uint64_t)row_stride) & (BYTES - 1)) == 0;
    int64_t from = p.first, to = p.first + p.count;
    if (dealt) {
        from = max(from, (a.row0 + M - 1) / M);
        to = min(to, (a.row0 + a.rows) / M);
    }
    const unsigned inside = (unsigned)(from - first_slot(a.B, p));
    const unsigned insides = fast && to - CHUNK >= from ? (unsigned)(to - CHUNK - from) + 1 : 0;
    const uint64_t row = (uint64_t)a.data + (uint64_t)((first_place(a.B, p) - a.row0) * row_stride) +
                         (uint64_t)min(first_column + VECTOR * g, a.n - VECTOR) * sizeof(T);

    /* The next span of rounds begins: its turns and words are there, those of the next are made, and turns of the one
     * after that.  A chunk is multiplied at most two spans after it was made, so four are kept. */
    auto make_span = [&](unsigned local_row) {
        if (together && local_row < count)
            make_words<NONZEROS>(a.B, *slice, keys, h0, M - h0 < each ? M - h0 : each, local_row, turns, all_words);
    };
    unsigned begun = 0;
    auto begin_span = [&]() {
        __syncthreads();
        begun += SPAN;
        make_span(begun);
        if (begun + SPAN < count) make_turns(a.B, *slice, begun + SPAN, turns);
    };
    /* Places and words of the local rows of the chunk that begins at local row `first`, and copies of its elements. */
    auto make = [&](unsigned first, unsigned stage) {
        while (dealt && first >= begun) begin_span();
        const uint32_t turn = dealt ? turns[(first + lane) % KEPT] : h;
        const uint32_t place = (first + lane) * per_round + wrapped(h - turn, M);
        __syncwarp();
        places[lane] = place;
        if (!together) words[stage * CHUNK + lane] = make_word<NONZEROS>(a.B, *slice, keys, place);
        __syncwarp();
        char *to = ring + stage * STAGE_BYTES + lane * LINE;
        if (first - inside < insides)
#pragma unroll
            for (int u = 0; u < UNITS; u++) {
                const uint4 four = *(const uint4 *)(places + STEP * u + 4 * q);
                const uint32_t its[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int i = 0; i < 4; i++)
                    fsi_copy_there<BYTES>(fsi_shared_address(to) + stage_offset<BYTES>((4 * u + i) * BYTES),
                                          (const void *)fsi_mad_wide(its[i], (uint32_t)row_stride, row));
            }
        else copy_slowly<T, VECTOR>(a, *slice, first, places, to);
    };
    float total[4][VECTOR][4];
#pragma unroll
    for (int i = 0; i < 16 * VECTOR; i++) total[i / (4 * VECTOR)][i / 4 % VECTOR][i % 4] = 0.0f;
    /* total += the products of a chunk: the small pieces of all units first, then the large ones. */
    auto multiply = [&](unsigned first, unsigned stage) {
        const unsigned at = together ? first % KEPT : stage * CHUNK;
        uint32_t of[UNITS][PASSES][VECTOR][2], high[UNITS][2], low[UNITS][2];
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            const char *mine = ring + stage * STAGE_BYTES + lane * LINE;
            elements<T, VECTOR> e;
#pragma unroll
            for (int i = 0; i < 4 * BYTES; i += LINE)
                fsi_shared_words<LINE>(e.x + i / 4, fsi_shared_address(mine) + stage_offset<BYTES>(4 * u * BYTES + i));
            e.cut(of[u]);
            const uint4 four = *(const uint4 *)(words + at + STEP * u + 4 * q);
            high[u][0] = fsi_bytes<0x7632>(four.x, four.y), high[u][1] = fsi_bytes<0x7632>(four.z, four.w);
            low[u][0] = fsi_bytes<0x5410>(four.x, four.y), low[u][1] = fsi_bytes<0x5410>(four.z, four.w);
        }
#pragma unroll
        for (int m = 0; m < 4; m++) {
            uint32_t s[UNITS][4];
            float d[VECTOR][4];
#pragma unroll
            for (int i = 0; i < UNITS * 4; i++)
                s[i / 4][i % 4] = digits<NONZEROS>::template ones<HALF>(high[i / 4][i / 2 % 2], low[i / 4][i / 2 % 2],
                                                                        16 * m + 8 * (i % 2), g * 0x10001u);
#pragma unroll
            for (int i = 0; i < 4 * VECTOR; i++) d[i / 4][i % 4] = 0.0f;
#pragma unroll
            for (int i = PASSES - 1; i >= 0; i--)
#pragma unroll
                for (int u = 0; u < UNITS; u++)
#pragma unroll
                    for (int v = 0; v < VECTOR; v++) fsi_mma<HALF>(d[v], s[u], of[u][i][v][0], of[u][i][v][1]);
#pragma unroll
            for (int i = 0; i < 4 * VECTOR; i++) total[m][i / 4][i % 4] += d[i / 4][i % 4];
        }
    };

    /* 3. while a chunk is multiplied, the elements of the next STAGES - 1 are on their way */
    const unsigned step = teams * CHUNK;
    if (dealt) {
        make_turns(a.B, *slice, 0, turns);
        if (SPAN < count) make_turns(a.B, *slice, SPAN, turns);
        __syncthreads();
        make_span(0);
    }
    if (mine) {
        unsigned next = team * CHUNK, stage = 0;
#pragma unroll 1
        for (unsigned i = 0; i < STAGES - 1; i++, next += step) {
            if (next < count) make(next, i);
            fsi_copy_commit();
        }
#pragma unroll 1
        for (unsigned c = team * CHUNK; c < count; c += step, next += step, stage = (stage + 1) % STAGES) {
            if (next < count) make(next, (stage + STAGES - 1) % STAGES);
            fsi_copy_commit();
            fsi_copy_wait<STAGES - 1>();
            multiply(c, stage);
        }
    }
    while (dealt && begun < count) begin_span();

    /* 4. sums of all teams, if they are finite, or by plain additions; added in order, scaled once, stored once */
    float *sums = (float *)ring, zero = 0.0f;
    fsi_copy_wait<0>();
    __syncwarp();
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int v = 0; v < VECTOR; v++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                sums[(16 * m + 8 * (i / 2) + g) * WIDTH + VECTOR * (2 * q + i % 2) + v] = total[m][v][i];
                zero = fmaf(total[m][v][i], 0.0f, zero);
            }
    const bool all = __all_sync(~0u, zero == 0.0f);
    if (lane == 0) *places = all;
    __syncthreads();
    bool finite = mine;
    for (int f = 0; f < teams && mine; f++) finite = finite && places[(f - team) * each * CHUNK];
    if (mine && team == 0 && !finite && lane < WIDTH)
        make_again<T>(a, *slice, slice->column + lane, sums + lane, WIDTH);
    __syncthreads();
    if (!mine) return;
    const fsi_output out = fsi_partial_sums(a, 1, slice->z);
    const bool down = out.row_stride == 1 && out.col_stride != 1; /* neighbours in memory are rows of Y */
    const int width = (int)min(a.n - slice->column, (int64_t)WIDTH);
    const int apart = each * (RING_BYTES / 4); /* sums of a team from the last one's */
    for (int i = team * 32 + lane; i < HEIGHT * width; i += teams * 32) {
        const int r = down ? i % HEIGHT : i / width, j = down ? i / HEIGHT : i % width;
        const float *at = sums - team * apart + r * WIDTH + j;
        float sum = at[0];
        for (int f = 1; f < teams && finite; f++) sum += at[f * apart];
        fsi_output_put(out, slice->output_row + r, slice->column + j, sum);
    }
#endif
}

}  // namespace

#define KERNEL(T, dtype, vector, nonzeros, stages, warps) (const void *)tall<T, vector, nonzeros, stages, warps>,
static const void *const mma_skinny_instances[] = {FSI_MMA_SKINNY(KERNEL)};

static fs_result launch_mma_skinny(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                   const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    fsi_philox_keys keys = fsi_philox_keys_of(l.args.B.seed);
    void *arguments[] = {&l.args, &keys};
    return fsi_tile_launch_run(&l, mma_skinny_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_mma_skinny_code = {launch_mma_skinny, mma_skinny_instances};
