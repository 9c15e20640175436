/* mma_skinny.cu - BlockPerm-SJLT of tall matrices with few columns, on the tensor cores by mma.sync: a warp has an output
 * tile of S, which it generates in registers.
 *
 * Formulation.  The 64 rows of an output tile are the M axis of the tensor cores, 16 of its local rows the K axis, 8
 * columns of A the N axis.  Where the strata of a block are powers of two, a nonzero is some bits of its local row's
 * packed word (fsi_packed_code), so a thread generates its elements of S by comparing those bits with the row it has,
 * two local rows at once: S goes through no memory.  Elements of A are copied by the thread that multiplies them,
 * VECTOR neighbouring columns for VECTOR tiles of 8 columns, into a ring of its own in shared memory, without
 * synchronisation. Warps of a thread block have neighbouring outputs, the tiles of a block side by side, and traverse
 * the same rounds of the row assignment, of which they read all rows together; they synchronise once per span of
 * rounds, whose shifts and random words they compute cooperatively, four neighbouring local rows of a block per Philox
 * call.
 * Accuracy, Inf and NaN: as in mma_rows.cu; floats are cut into three split terms of bf16, 32 local rows are added on
 * the tensor cores, small terms first, and those sums in float.
 *
 * grid     groups of `size` outputs x tiles of 8 VECTOR columns x slices, in this order, in x
 * threads  WARPS warps: `replicas` sets of a warp for each output of the group, which take 32 local rows in turn
 * shared   of every warp: its ring of elements, and then its sums; rounds of four spans; of every output their words;
 *          of every warp: columns of a chunk's local rows, its slice
 * needs    kappa = 1, output tiles of 64 rows with NONZEROS of 1, 2, 4, 8, shuffled rows or no shuffle, M <= 2^20, less
 *          than 2^31 rows of A for a slice; any strides, fast where a thread's columns are one copy */
#include "cuda/blockperm/mma_skinny_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

/* Local rows of a chunk, whose elements are copied together; rounds of a span, whose shifts and words are computed
 * together, and of all spans that are kept; the distance from one output's words to the next one's. */
enum {
    CHUNK = 32,
    UNITS = CHUNK / STEP,
    SPAN = FSI_MMA_SKINNY_SPAN,
    KEPT = FSI_MMA_SKINNY_KEPT,
    PITCH = FSI_MMA_SKINNY_PITCH
};

/* A column's nonzeros, t = 0 ... s - 1, are in order the next bits of its word: row in stratum t, then the sign.  Here
 * they are laid out in two halves of 16 bits, so that a row's bits in a half, the others cleared, are a number, f16 or
 * bf16, that is finite and not negative: rows are equal where these are.  The first nonzero of a half begins at bit
 * TOP; the sign of the last, for which there may be no bit left below it, is then at bit 15. */
template <int NONZEROS> struct digits {
    enum {
        ROWS = HEIGHT / NONZEROS,
        BITS = row_bits<NONZEROS>::value,
        EACH = NONZEROS > 1 ? NONZEROS / 2 : 1,
        USED = EACH * (BITS + 1),
        TOP = USED == 16 ? 14 : 13
    };
    static_assert(USED <= 16, "there are no bits for all nonzeros");
    static __device__ __forceinline__ uint32_t laid_out(uint32_t word)
    {
        if (USED == 16) return (word >> 1 & 0x7FFF7FFFu) | (word << 15 & 0x80008000u);
        return fsi_bytes<0x7610>(word >> (15 - TOP + 16 - USED), word >> (15 - TOP));
    }
    /* Halves `high` and `low` of two local rows: +-1 where a local row has a nonzero in row `first` + g, +-0 elsewhere;
     * `first`, a multiple of 8, is known at compile time. */
    template <int HALF>
    static __device__ __forceinline__ uint32_t ones(uint32_t high, uint32_t low, int first, uint32_t g_twice)
    {
        const int t = first / ROWS, shift = TOP + 1 - BITS - t % EACH * (BITS + 1), to_sign = (16 - shift) & 15;
        const uint32_t two = t < EACH ? high : low, mask = ((ROWS - 1) << shift) * 0x10001u;
        const uint32_t row = (g_twice << shift) + (first % ROWS << shift) * 0x10001u;
        return fsi_turned_halves(fsi_equal_ones<HALF>(two & mask, row), two << to_sign);
    }
};

/* A thread's elements of a unit of 16 local rows: its local rows 4 q ... 4 q + 3 are K positions 2 q, 2 q + 1, 2 q + 8
 * and
 * 2 q + 9 of the fragments, its columns VECTOR g ... of the tile are column g of VECTOR fragments.  cut() makes these,
 * of large split terms first. */
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
template <int BYTES> struct stage_line {
    enum { value = 4 * BYTES < 16 ? 4 * BYTES : 16 };
};
template <int BYTES> __device__ __forceinline__ int stage_offset(int offset)
{
    enum { LINE = stage_line<BYTES>::value };
    return offset / LINE * (32 * LINE) + offset % LINE;
}

/* Local row 0 of a warp: the first of its slice, moved down to a multiple of 4, since four share a call. */
__device__ __forceinline__ int64_t first_local_row(const fsi_slice &p) { return p.first & ~(int64_t)3; }
/* The first column of S of its round, or without shuffle its column; those of other local rows are counted from there. */
[[maybe_unused]] __device__ __forceinline__ int64_t first_column_of(const fsi_blockperm &B, const fsi_slice &p)
{
    return B.shuffle == FSI_DEF_ROWS ? first_local_row(p) * B.M : fsi_split_start(&B.in, p.h) + first_local_row(p);
}

/* Not inlined, so that the loop has its registers to itself: the rounds of the span that begins at `local_row`; */
[[maybe_unused]] __device__ __noinline__ void make_rounds(const fsi_blockperm &B, const fsi_slice &p,
                                                          unsigned local_row, fsi_round *rounds)
{
    fsi_round four[4];
    if (threadIdx.x >= SPAN / 4) return;
    fsi_blockperm_rounds(&B, ((first_local_row(p) + local_row) >> 2) + threadIdx.x, four);
#pragma unroll
    for (int i = 0; i < 4; i++) rounds[local_row % KEPT + 4 * threadIdx.x + i] = four[i];
}
/* its words, for `count` outputs from number `first` on, four neighbouring local rows at once; */
template <int NONZEROS> __device__ __noinline__ void make_words(const fsi_blockperm &B, const fsi_slice &p,
                                                                const fsi_philox_keys &keys, uint32_t tiles,
                                                                uint32_t first, uint32_t count, unsigned local_row,
                                                                uint32_t *words)
{
    for (unsigned item = threadIdx.x; item < count * (SPAN / 4); item += blockDim.x) {
        const unsigned output = item / (SPAN / 4), r = item % (SPAN / 4) * 4;
        const fsi_quad quad = fsi_blockperm_quad_by(&B, &keys, (first + output) / tiles,
                                                    first_local_row(p) + local_row + r, (first + output) % tiles);
        *(uint4 *)(words + output * PITCH + local_row % KEPT +
                   r) = make_uint4(digits<NONZEROS>::laid_out(quad.w[0]), digits<NONZEROS>::laid_out(quad.w[1]),
                                   digits<NONZEROS>::laid_out(quad.w[2]), digits<NONZEROS>::laid_out(quad.w[3]));
    }
}
/* the word of one local row, where they are not drawn together; */
template <int NONZEROS> __device__ __noinline__ uint32_t make_word(const fsi_blockperm &B, const fsi_slice &p,
                                                                   const fsi_philox_keys &keys, unsigned local_row)
{
    const int64_t u = first_local_row(p) + local_row;
    return digits<NONZEROS>::laid_out(
        fsi_quad_word(fsi_blockperm_quad_by(&B, &keys, p.h, u & ~(int64_t)3, (uint32_t)p.band), (uint64_t)u));
}
/* and this lane's elements of any chunk, of any strides, zeros of empty local rows; `first` is the chunk's first local
 * row. */
template <class T, int VECTOR> __device__ __noinline__ void copy_slowly(const fsi_tile_args &a, const fsi_slice &p,
                                                                        unsigned first, const uint32_t *columns,
                                                                        char *to)
{
    const int lane = threadIdx.x & 31;
#pragma unroll 1
    for (int i = 0; i < UNITS * 4; i++) {
        const int number = i / 4 * STEP + 4 * (lane & 3) + i % 4;
        const int64_t local_row = first_local_row(p) + first + number,
                      row = first_column_of(a.B, p) + columns[number] - a.row0;
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

#if __CUDA_ARCH__ >= 800

/* A warp's output, number first + output of all, in the group of `size`: tile `tile` of input block h.  `replicas` warps
 * share its local rows, a chunk each in turn.  Warps behind the last output or replica have no work. */
struct warp_share {
    int lane, g, q; /* g, q: of a fragment, rows and pairs of columns */
    int M, tiles, outputs, groups, size, replicas, output, replica, first, h, tile;
    int64_t first_column;
    bool shuffled, has_work;
    int z;
    unsigned per_round; /* columns of S */
};
template <int WARPS, int WIDTH>
__device__ __forceinline__ warp_share share_of(const fsi_tile_args &a, int warp, int lane, int g, int q)
{
    warp_share w;
    w.lane = lane, w.g = g, w.q = q;
    w.M = (int)a.B.M, w.tiles = a.outputs.tiles, w.outputs = w.M * w.tiles;
    w.groups = (w.outputs + WARPS - 1) / WARPS, w.size = (w.outputs + w.groups - 1) / w.groups;
    w.replicas = WARPS / w.size;
    w.output = warp % w.size, w.replica = warp / w.size;
    w.first = (int)(blockIdx.x % w.groups) * w.size;
    w.h = (w.first + w.output) / w.tiles, w.tile = (w.first + w.output) % w.tiles;
    w.first_column = (int64_t)(blockIdx.x / w.groups % a.tiles) * WIDTH;
    w.shuffled = a.B.shuffle == FSI_DEF_ROWS, w.has_work = w.h < w.M && w.replica < w.replicas;
    w.z = (int)(blockIdx.x / w.groups / a.tiles);
    return w;
}

/* Shared memory of a warp: its ring of chunks, in the end its sums; the rounds and words of the thread block, the
 * columns of a chunk's local rows, its slice. */
struct warp_memory {
    char *ring;
    fsi_round *rounds;
    uint32_t *all_words, *words, *columns;
    fsi_slice *slice;
};

/* Elements are copied fast where they can be: VECTOR columns of a row at once, of chunks without an empty local row,
 * which begin at local rows `inside` ... inside + insides - 1.  A lane's columns behind the last are the last again.
 * Local rows are counted from the first of the slice, and so are columns of S. */
struct fast_copies {
    int64_t row_stride;
    unsigned inside, insides;
    uint64_t row; /* of A: that of column 0, at the lane's columns */
};
template <class T, int VECTOR>
__device__ __forceinline__ fast_copies fast_copies_of(const fsi_tile_args &a, const warp_share &w, const fsi_slice &p)
{
    enum { BYTES = VECTOR * sizeof(T) };
    const int g = w.g;
    fast_copies f;
    f.row_stride = a.row_stride * (int64_t)sizeof(T);
    const bool fast = a.col_stride == 1 && a.n % VECTOR == 0 && f.row_stride == (uint32_t)f.row_stride &&
                      (((uint64_t)a.data | (uint64_t)f.row_stride) & (BYTES - 1)) == 0;
    int64_t from = p.first, to = p.first + p.count;
    if (w.shuffled) {
        from = max(from, (a.row0 + w.M - 1) / w.M);
        to = min(to, (a.row0 + a.rows) / w.M);
    }
    f.inside = (unsigned)(from - first_local_row(p));
    f.insides = fast && to - CHUNK >= from ? (unsigned)(to - CHUNK - from) + 1 : 0;
    f.row = (uint64_t)a.data + (uint64_t)((first_column_of(a.B, p) - a.row0) * f.row_stride) +
            (uint64_t)min(w.first_column + VECTOR * g, a.n - VECTOR) * sizeof(T);
    return f;
}

/* Words of the span of rounds that begins at `local_row`, where all warps draw them together. */
template <int NONZEROS> __device__ __forceinline__ void draw_span(const fsi_tile_args &a, const fsi_philox_keys &keys,
                                                                  const warp_share &w, const warp_memory &m,
                                                                  bool together, unsigned count, unsigned local_row)
{
    if (together && local_row < count)
        make_words<NONZEROS>(a.B, *m.slice, keys, w.tiles, w.first,
                             w.outputs - w.first < w.size ? w.outputs - w.first : w.size, local_row, m.all_words);
}
/* The next span of rounds begins: its rounds and words are ready; words of the span after it are drawn, and rounds of
 * the one after that.  A chunk is multiplied at most two spans after it was prepared, so four are kept. */
template <int NONZEROS> __device__ __forceinline__ void begin_span(const fsi_tile_args &a, const fsi_philox_keys &keys,
                                                                   const warp_share &w, const warp_memory &m,
                                                                   bool together, unsigned count, unsigned &begun)
{
    __syncthreads();
    begun += SPAN;
    draw_span<NONZEROS>(a, keys, w, m, together, count, begun);
    if (begun + SPAN < count) make_rounds(a.B, *m.slice, begun + SPAN, m.rounds);
}

/* Columns and words of the chunk that begins at local row `first`, and copies of its elements into a stage. */
template <class T, int VECTOR, int NONZEROS>
__device__ __forceinline__ void prepare_chunk(const fsi_tile_args &a, const fsi_philox_keys &keys, const warp_share &w,
                                              const warp_memory &m, const fast_copies &f, bool together, unsigned count,
                                              unsigned first, unsigned stage, unsigned &begun)
{
    enum { BYTES = VECTOR * sizeof(T), LINE = stage_line<BYTES>::value, STAGE_BYTES = CHUNK * 8 * BYTES };
    const int lane = w.lane, q = w.q;
    while (w.shuffled && first >= begun) begin_span<NONZEROS>(a, keys, w, m, together, count, begun);
    const uint32_t place = w.shuffled ? fsi_blockperm_place(&a.B, w.h, m.rounds[(first + lane) % KEPT]) : 0;
    const uint32_t column = (first + lane) * w.per_round + place;
    __syncwarp();
    m.columns[lane] = column;
    if (!together) m.words[stage * CHUNK + lane] = make_word<NONZEROS>(a.B, *m.slice, keys, first + lane);
    __syncwarp();
    char *to = m.ring + stage * STAGE_BYTES + lane * LINE;
    if (first - f.inside < f.insides)
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            const uint4 four = *(const uint4 *)(m.columns + STEP * u + 4 * q);
            const uint32_t its[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
                fsi_copy_there<BYTES>(fsi_shared_address(to) + stage_offset<BYTES>((4 * u + i) * BYTES),
                                      (const void *)fsi_mad_wide(its[i], (uint32_t)f.row_stride, f.row));
        }
    else copy_slowly<T, VECTOR>(a, *m.slice, first, m.columns, to);
}

/* A lane's operands of a chunk: split terms of its elements, halves of its local rows' words. */
template <class T, int VECTOR> struct chunk_operands {
    enum { PASSES = elements<T, VECTOR>::PASSES };
    uint32_t of[UNITS][PASSES][VECTOR][2], high[UNITS][2], low[UNITS][2];
    __device__ __forceinline__ void load(const char *mine, const uint32_t *words, int q)
    {
        enum { BYTES = VECTOR * sizeof(T), LINE = stage_line<BYTES>::value };
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            elements<T, VECTOR> e;
#pragma unroll
            for (int i = 0; i < 4 * BYTES; i += LINE)
                fsi_shared_words<LINE>(e.x + i / 4, fsi_shared_address(mine) + stage_offset<BYTES>(4 * u * BYTES + i));
            e.cut(of[u]);
            const uint4 four = *(const uint4 *)(words + STEP * u + 4 * q);
            high[u][0] = fsi_bytes<0x7632>(four.x, four.y), high[u][1] = fsi_bytes<0x7632>(four.z, four.w);
            low[u][0] = fsi_bytes<0x5410>(four.x, four.y), low[u][1] = fsi_bytes<0x5410>(four.z, four.w);
        }
    }
};
/* total += the products of a chunk: the small split terms of all units first, then the large ones. */
template <class T, int VECTOR, int NONZEROS>
__device__ __forceinline__ void multiply_chunk(const warp_share &w, const warp_memory &m, bool together, unsigned first,
                                               unsigned stage, float (&total)[4][VECTOR][4])
{
    constexpr int HALF = is_half<T>::value;
    enum { BYTES = VECTOR * sizeof(T), LINE = stage_line<BYTES>::value, STAGE_BYTES = CHUNK * 8 * BYTES };
    const unsigned at = together ? first % KEPT : stage * CHUNK;
    const int g = w.g;
    chunk_operands<T, VECTOR> x;
    x.load(m.ring + stage * STAGE_BYTES + w.lane * LINE, m.words + at, w.q);
#pragma unroll
    for (int t = 0; t < 4; t++) {
        uint32_t s[UNITS][4];
        float d[VECTOR][4];
#pragma unroll
        for (int i = 0; i < UNITS * 4; i++)
            s[i / 4][i % 4] = digits<NONZEROS>::template ones<HALF>(x.high[i / 4][i / 2 % 2], x.low[i / 4][i / 2 % 2],
                                                                    16 * t + 8 * (i % 2), g * 0x10001u);
#pragma unroll
        for (int i = 0; i < 4 * VECTOR; i++) d[i / 4][i % 4] = 0.0f;
#pragma unroll
        for (int i = x.PASSES - 1; i >= 0; i--)
#pragma unroll
            for (int u = 0; u < UNITS; u++)
#pragma unroll
                for (int v = 0; v < VECTOR; v++) fsi_mma<HALF>(d[v], s[u], x.of[u][i][v][0], x.of[u][i][v][1]);
#pragma unroll
        for (int i = 0; i < 4 * VECTOR; i++) total[t][i / 4][i % 4] += d[i / 4][i % 4];
    }
}

/* total = the products of the warp's chunks.  While a chunk is multiplied, the elements of the next STAGES - 1 are in
 * flight. */
template <class T, int VECTOR, int NONZEROS, int STAGES>
__device__ __forceinline__ void multiply_chunks(const fsi_tile_args &a, const fsi_philox_keys &keys,
                                                const warp_share &w, const warp_memory &m, const fast_copies &f,
                                                bool together, unsigned count, float (&total)[4][VECTOR][4])
{
    const unsigned step = w.replicas * CHUNK;
    unsigned begun = 0;
    if (w.shuffled) {
        make_rounds(a.B, *m.slice, 0, m.rounds);
        if (SPAN < count) make_rounds(a.B, *m.slice, SPAN, m.rounds);
        __syncthreads();
        draw_span<NONZEROS>(a, keys, w, m, together, count, 0);
    }
    if (w.has_work) {
        unsigned next = w.replica * CHUNK, stage = 0;
#pragma unroll 1
        for (unsigned i = 0; i < STAGES - 1; i++, next += step) {
            if (next < count) prepare_chunk<T, VECTOR, NONZEROS>(a, keys, w, m, f, together, count, next, i, begun);
            fsi_copy_commit();
        }
#pragma unroll 1
        for (unsigned c = w.replica * CHUNK; c < count; c += step, next += step, stage = (stage + 1) % STAGES) {
            if (next < count)
                prepare_chunk<T, VECTOR, NONZEROS>(a, keys, w, m, f, together, count, next,
                                                   (stage + STAGES - 1) % STAGES, begun);
            fsi_copy_commit();
            fsi_copy_wait<STAGES - 1>();
            multiply_chunk<T, VECTOR, NONZEROS>(w, m, together, c, stage, total);
        }
    }
    while (w.shuffled && begun < count) begin_span<NONZEROS>(a, keys, w, m, together, count, begun);
}

/* The sums of all replicas of an output, if they are finite, or recomputed by plain additions; added in order, scaled
 * once, stored once.  `columns` then holds whether a warp's sums are finite. */
template <class T, int VECTOR, int RING_BYTES>
__device__ __forceinline__ void store_sums(const fsi_tile_args &a, const warp_share &w, const warp_memory &m,
                                           const float (&total)[4][VECTOR][4])
{
    enum { WIDTH = 8 * VECTOR };
    const int lane = w.lane, g = w.g, q = w.q;
    const int size = w.size, replicas = w.replicas, replica = w.replica;
    const bool has_work = w.has_work;
    uint32_t *columns = m.columns;
    fsi_slice *slice = m.slice;
    float *sums = (float *)m.ring, zero = 0.0f;
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
    if (lane == 0) *columns = all;
    __syncthreads();
    bool finite = has_work;
    for (int f = 0; f < replicas && has_work; f++) finite = finite && columns[(f - replica) * size * CHUNK];
    if (has_work && replica == 0 && !finite && lane < WIDTH)
        add_serial<T>(a, *slice, slice->column + lane, sums + lane, WIDTH);
    __syncthreads();
    if (!has_work) return;
    const fsi_output out = fsi_partial_sums(a, 1, slice->z);
    const bool down = out.row_stride == 1 && out.col_stride != 1; /* neighbours in memory are rows of Y */
    const int width = (int)min(a.n - slice->column, (int64_t)WIDTH);
    const int apart = size * (RING_BYTES / 4); /* sums of a replica from the last one's */
    for (int i = replica * 32 + lane; i < HEIGHT * width; i += replicas * 32) {
        const int r = down ? i % HEIGHT : i / width, j = down ? i / HEIGHT : i % width;
        const float *at = sums - replica * apart + r * WIDTH + j;
        float sum = at[0];
        for (int f = 1; f < replicas && finite; f++) sum += at[f * apart];
        fsi_output_put(out, slice->output_row + r, slice->column + j, sum);
    }
}
#endif

/* A ring of STAGES chunks. */
template <class T, int VECTOR, int NONZEROS, int STAGES, int WARPS> __global__ void __launch_bounds__(32 * WARPS, 1)
    mma_skinny(const __grid_constant__ fsi_tile_args a, const __grid_constant__ fsi_philox_keys keys)
{
#if __CUDA_ARCH__ >= 800
    constexpr int WIDTH = 8 * VECTOR, RING_BYTES = FSI_MMA_SKINNY_RING(sizeof(T), VECTOR, STAGES);
    static_assert(SPAN / 128 <= WARPS && KEPT == 4 * SPAN && (STAGES - 1) * (WARPS / 4) * CHUNK <= 2 * SPAN,
                  "see begin_span");
    static_assert((STAGES & (STAGES - 1)) == 0 && RING_BYTES >= STAGES * CHUNK * WIDTH * (int)sizeof(T) &&
                      RING_BYTES >= HEIGHT * WIDTH * 4,
                  "the instance list disagrees");
    extern __shared__ __align__(16) char shared[];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    warp_memory m;
    m.ring = shared + warp * RING_BYTES;
    m.rounds = (fsi_round *)(shared + WARPS * RING_BYTES);
    m.all_words = (uint32_t *)(m.rounds + KEPT), m.columns = m.all_words + WARPS * PITCH + warp * CHUNK;
    fsi_slice *slices = (fsi_slice *)(m.all_words + WARPS * PITCH + WARPS * CHUNK);
    fsi_start_next_kernel();

    /* 1. this warp's output and slice */
    warp_share w = share_of<WARPS, WIDTH>(a, warp, lane, g, q);
    const fsi_slice p = fsi_slice_at(a, w.h < w.M ? w.h : 0, w.tile, w.first_column, w.z);
    m.slice = slices + warp;
    if (lane == 0) *m.slice = p;
    const unsigned count = (unsigned)(p.first + p.count - first_local_row(p));
    w.per_round = w.shuffled ? w.M : 1;
    const bool together = w.shuffled; /* words are drawn by all warps */
    m.words = m.all_words + (together ? w.output : warp) * PITCH;
    __syncwarp();

    /* 2. products of its chunks */
    const fast_copies f = fast_copies_of<T, VECTOR>(a, w, p);
    float total[4][VECTOR][4];
#pragma unroll
    for (int i = 0; i < 16 * VECTOR; i++) total[i / (4 * VECTOR)][i / 4 % VECTOR][i % 4] = 0.0f;
    multiply_chunks<T, VECTOR, NONZEROS, STAGES>(a, keys, w, m, f, together, count, total);

    /* 3. sums of all replicas added and stored */
    store_sums<T, VECTOR, RING_BYTES>(a, w, m, total);
#endif
}

}  // namespace

#define KERNEL(T, dtype, vector, nonzeros, stages, warps) (const void *)mma_skinny<T, vector, nonzeros, stages, warps>,
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
