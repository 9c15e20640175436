/* rotate_skinny_simt.cu - BlockPerm-SJLT of few columns, rows contiguous: a thread keeps the sums of an output row of
 * every stratum and adds what rotations of a window bring there.
 *
 * Formulation.  In a window of W local rows of a block, row r of stratum t receives column (r - x_t) mod W of the
 * window, and no other (fsi_blockperm_rotations).  A lane has row r of every stratum of an output tile, and VECTOR
 * neighbouring columns of A: for each window and stratum it loads those columns of one local row from shared memory
 * and adds them to its sums, which are in registers, times +-1.  So nothing is atomic or split, and a non-finite
 * element reaches only its own rows.  A thread block takes `group` neighbouring blocks and reads the rows that they
 * get in its slice's rounds, which are neighbours: a ring of stages in shared memory, a stage being so many windows of
 * every block.  A slab is a window of a block and VECTOR columns: its local rows lie side by side, in an order that
 * makes neither the copies of a round nor the loads of a stratum meet in a bank.  With four strata and few columns a
 * lane has ROWS = 2 neighbouring rows of a stratum, and a slab is kept twice, so that it loads both local rows at
 * once.  Rotations are drawn for a span of windows at once, a Philox call for each window and output tile, and so are
 * rounds of the row assignment, four for a call.
 *
 * grid     groups of `group` blocks x slices, in this order, in x
 * threads  512: W / ROWS lanes are a slot; task (block, chunk of VECTOR columns, output tile) is that of one slot, or
 *          of `replicas` slots, which take a window in turn; a slot is one of the TASKS of its lanes
 * shared   STAGES stages of rows, two spans of rotations, SPANS spans of rounds, what every thread copies and draws,
 *          four rows of each (copy.cuh, quads); in the end all sums, and where they go
 * needs    packed words, output tiles of 64 rows with STRATA nonzeros, shuffled rows or no shuffle, columns of A side
 *          by side, any pitch; less than 2^31 rows of A for a slice, which is whole windows */
#include "cuda/blockperm/rotate_skinny_simt_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/runtime/ptx.cuh"
#include "cuda/blockperm/common/tile.cuh"
#include "cuda/blockperm/rotate_skinny_simt/layout.cuh"
#include "cuda/blockperm/rotate_skinny_simt/copy.cuh"

namespace {

/* rounds and rotations ---------------------------------------------------------------------------------------------- */

/* The rounds of span p; the last warps compute them, as the first ones draw.  Called, because in place it takes
 * registers from the sums. */
template <class K>
__device__ __noinline__ void make_rounds(const fsi_tile_args &a, const layout &l, const work &w, uint32_t shared, int p)
{
    const int rounds = l.span * K::W, i = THREADS - 1 - (int)threadIdx.x;
    if (!is_shuffled(a) || p * l.span >= w.windows || 4 * i >= rounds) return;
    fsi_round four[4];
    fsi_blockperm_rounds(&a.B, ((first_local_row<K>(a, w.h0, w.z) + (int64_t)p * rounds) >> 2) + i, four);
#pragma unroll
    for (int j = 0; j < 4; j++)
        fsi_shared_put2(shared + l.rounds + ((p & (SPANS - 1)) * rounds + 4 * i + j) * (uint32_t)sizeof(fsi_round),
                        four[j].shift, four[j].mask);
}

/* What a thread draws: the rotations of one window of every span, for one output of one block, from that number of the
 * slice's windows on; < 0: none. */
struct draw_share {
    uint32_t counter[3]; /* of its first window, but for the tag */
    int number;
};
template <class K>
__device__ __forceinline__ draw_share draw_share_of(const fsi_tile_args &a, const layout &l, const work &w)
{
    const int each = l.group * l.outputs, number = (int)threadIdx.x / each, item = (int)threadIdx.x % each;
    const int b = item / l.outputs, output = item % l.outputs;
    const bool draws = number < l.span && b < w.blocks;
    const int h = draws ? w.h0 + b : w.h0;
    const uint32_t band = fsi_blockperm_band(&a.B, 1, output); /* a tile is a band: outputs are numbered as bands */
    const fsi_quad c = fsi_blockperm_packed_counter(&a.B, h, first_local_row<K>(a, h, w.z) + (int64_t)number * K::W,
                                                    band);
    const draw_share k = {{c.w[0], c.w[1], c.w[2]}, draws ? number : -1};
    return k;
}
/* Rotations of span p.  An entry has two halves, for the lanes of the lower and of the upper rows: for every stratum
 * the bytes that its rows are turned by, then the signs. */
template <class K> __device__ __forceinline__ void draw_span(const fsi_blockperm &B, const fsi_philox_keys &keys,
                                                             const layout &l, const work &w, uint32_t shared,
                                                             const draw_share &mine, int p)
{
    const draw_share k = mine;
    if (k.number < 0 || p * l.span + k.number >= w.windows) return;
    const uint64_t item = ((uint64_t)k.counter[1] << 32 | k.counter[0]) +
                          (uint64_t)(uint32_t)(p * l.span) * (uint32_t)B.M;
    const fsi_quad counter = {{(uint32_t)item, (uint32_t)(item >> 32), k.counter[2], FSI_TAG_COLUMN}};
    const fsi_quad random = fsi_philox_by(&keys, counter);
    const fsi_rotations turns = fsi_blockperm_rotations(random, K::STRATA);
    uint32_t turned[2] = {0, 0};
#pragma unroll
    for (int t = 0; t < K::STRATA; t++) turned[t / K::FIELDS] |= turns.turn[t] << K::FIELD * (t % K::FIELDS);
#pragma unroll
    for (int i = 0; i < K::WORDS; i++) {
        const uint32_t back = (K::W * K::EVERY - turned[i]) & (K::W - 1) * K::EVERY;
        const uint32_t copy = back & (K::ROWS - 1) * K::EVERY; /* the one where it is a multiple of ROWS */
        turned[i] = ((back + copy) & (K::W - K::ROWS) * K::EVERY) * (K::STEP / K::ROWS) + copy * K::LOAD;
    }
    const uint32_t to = shared + l.words + (p & 1) * l.span * l.entries + threadIdx.x * K::ENTRY;
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (K::WORDS == 1) put_raw(to + 8 * half, make_uint2(turned[0], turns.minus[half]));
        else put_raw(to + 16 * half, make_uint4(turned[0], turned[1], turns.minus[half], 0));
}

/* What a thread copies and draws is kept in shared memory, for its registers hold sums. */
struct share {
    copy_share copy;
    draw_share draw;
};

/* additions ------------------------------------------------------------------------------------------------------- */

/* Task u of a lane: its slot has a window of every `replicas`, from window `replica` on. */
struct task {
    bool has_work;
    int replica, block, chunk, output;
};
template <class K> __device__ __forceinline__ task task_of(const layout &l, const work &w, int u)
{
    const int slot = (int)threadIdx.x / K::LANES + u * (THREADS / K::LANES), tasks = l.slabs * l.outputs;
    const int number = slot % tasks, slab = number / l.outputs;
    task k;
    k.replica = slot / tasks, k.output = number % l.outputs, k.block = slab / l.chunks, k.chunk = slab % l.chunks;
    k.has_work = k.replica < l.replicas && k.block < w.blocks;
    if (!k.has_work) k.replica = 0;
    return k;
}
/* Where it finds what it adds: the slab of a stage, without bits of its address that `places` has; what every field is
 * combined with by exclusive or; the entry of a span, the half of the lane's row. */
struct task_places {
    uint32_t slab, places, entry;
};
template <class K> __device__ __forceinline__ task_places places_of(const layout &l, uint32_t shared, const task &k)
{
    const int slab = k.block * l.chunks + k.chunk, half = (int)threadIdx.x % K::LANES / (K::LANES / 2);
    const uint32_t at = shared + k.replica * l.window_bytes + slab * K::SLAB;
    const uint32_t low = K::FIELD == 8 ? at & 255 : 0;
    task_places f;
    f.slab = at - low;
    f.places = (low | order_of<K>(l, slab)) * K::EVERY;
    f.entry = shared + l.words + k.replica * l.entries + (k.block * l.outputs + k.output) * K::ENTRY +
              half * (K::ENTRY / 2);
    return f;
}

template <int BYTES> __device__ __forceinline__ void load_unit(uint32_t *x, uint32_t at)
{
    if constexpr (BYTES >= 8) fsi_shared_words<BYTES>(x, at);
    else if constexpr (BYTES == 4) x[0] = fsi_shared_uint(at);
    else x[0] = fsi_shared_short(at);
}
/* Constants in registers of a thread: an instruction has at most one itself, so the compiler must neither know these
 * nor that all threads have the same.  The signs of four bytes; what 1 has behind its first byte. */
struct constants {
    uint32_t signs, rest;
};
template <class S> __device__ __forceinline__ constants constants_of(const layout &l)
{
    const uint32_t zero = l.zero & threadIdx.x;
    const constants c = {0x80808080u + zero, (sizeof(S) == 8 ? 0x00F00000u : 0x00800000u) + zero};
    return c;
}
/* +-1, the sign in the byte `from` of `tops`, whose bytes are the first of 1 and of -1. */
template <class S, int FROM> __device__ __forceinline__ S one_of(uint32_t tops, const constants &c)
{
    const uint32_t top = fsi_bytes<FROM << 12 | 0x644>(tops, c.rest);
    if constexpr (sizeof(S) == 8) return __hiloint2double((int)top, 0);
    else return __uint_as_float(top);
}
/* The address of the local row that stratum t of the lane has. */
template <class K, int t> __device__ __forceinline__ uint32_t unit_at(uint32_t slab, const uint32_t *places)
{
    if constexpr (K::FIELD == 8) return fsi_bytes<0x7650 | t % K::FIELDS>(places[t / K::FIELDS], slab);
    else return slab + (t ? places[0] >> 16 : places[0] & 0xFFFF);
}
template <class K, int t> struct each_stratum {
    static __device__ __forceinline__ void load(uint32_t slab, const uint32_t *places, uint32_t (&x)[K::STRATA][4])
    {
        if constexpr (t < K::STRATA) {
            load_unit<K::LOAD>(x[t], unit_at<K, t>(slab, places));
            each_stratum<K, t + 1>::load(slab, places, x);
        }
    }
    /* Signs of the strata are at bits 31, 31 - W / 2, ... of `signs`, those of the lane's next row a bit lower. */
    static __device__ __forceinline__ void add(const uint32_t (&tops)[K::ROWS][2], const constants &c,
                                               const uint32_t (&x)[K::STRATA][4],
                                               typename K::S (&sums)[K::STRATA][K::ROWS * K::VECTOR])
    {
        if constexpr (t < K::STRATA) {
            constexpr int BIT = 31 - t * (K::W / 2), LOW = BIT % 8 != 7;
            typename K::S y[K::ROWS * K::VECTOR];
            widen<typename K::P, K::ROWS * K::VECTOR>(x[t], y);
#pragma unroll
            for (int i = 0; i < K::ROWS; i++) {
                const typename K::S one = one_of<typename K::S, (BIT + (LOW ? 4 : 0)) / 8>(tops[i][LOW], c);
#pragma unroll
                for (int v = i * K::VECTOR; v < (i + 1) * K::VECTOR; v++) sums[t][v] += one * y[v]; /* exact products */
            }
            each_stratum<K, t + 1>::add(tops, c, x, sums);
        }
    }
};

/* A window of each of COUNT tasks, whose slabs and entries are at these addresses.  `turn` is the lane's place in every
 * field, its sign is `shift` bits below that of the first row. */
template <class K, int COUNT>
__device__ __forceinline__ void add_windows(const task_places *k, const uint32_t *slab, const uint32_t *entry,
                                            uint32_t turn, uint32_t shift, const constants &c,
                                            typename K::S (*sums)[K::STRATA][K::ROWS * K::VECTOR])
{
    uint32_t its[COUNT][4];
#pragma unroll
    for (int u = 0; u < COUNT; u++) fsi_shared_words<K::ENTRY / 2>(its[u], entry[u]);
#pragma unroll
    for (int u = 0; u < COUNT; u++) {
        uint32_t places[K::WORDS], x[K::STRATA][4];
#pragma unroll
        for (int i = 0; i < K::WORDS; i++)
            places[i] = ((its[u][i] + turn) & ((K::LANES - 1) * K::STEP | (K::ROWS - 1) * K::LOAD) * K::EVERY) ^
                        k[u].places;
        each_stratum<K, 0>::load(slab[u], places, x);
        const uint32_t signs = its[u][K::WORDS] << shift;
        uint32_t tops[K::ROWS][2];
#pragma unroll
        for (int i = 0; i < 2 * K::ROWS; i++)
            tops[i / 2][i % 2] = ((signs << (i / 2 + i % 2 * 4)) & c.signs) | 0x3F3F3F3Fu;
        each_stratum<K, 0>::add(tops, c, x, sums[u]);
    }
}

/* The windows of stage number c, for the first COUNT tasks of the lane. */
template <class K, int COUNT>
__device__ __forceinline__ void add_stage(const layout &l, const work &w, const task_places (&k)[K::TASKS], int c,
                                          typename K::S (&sums)[K::TASKS][K::STRATA][K::ROWS * K::VECTOR])
{
    const int first = c * l.stage, windows = min(l.stage, w.windows - first), left = windows & (l.replicas - 1);
    const uint32_t lane = threadIdx.x % K::LANES, shift = lane % (K::LANES / 2) * K::ROWS;
    const uint32_t turn = lane * K::STEP * K::EVERY; /* what a field carries is below the bits of the next one */
    const constants constant = constants_of<typename K::S>(l);
    uint32_t slab[COUNT], entry[COUNT];
#pragma unroll
    for (int u = 0; u < COUNT; u++) {
        slab[u] = k[u].slab + c % STAGES * l.stage_bytes;
        entry[u] = k[u].entry + (first & (2 * l.span - 1)) * l.entries;
    }
    const uint32_t end = slab[0] + (windows - left) * l.window_bytes;
#pragma unroll 1
    while (slab[0] != end) {
        add_windows<K, COUNT>(k, slab, entry, turn, shift, constant, sums);
#pragma unroll
        for (int u = 0; u < COUNT; u++) slab[u] += l.next_rows, entry[u] += l.next_words;
    }
    /* the last ones of the slice, fewer than replicas */
    if (left > 0)
#pragma unroll
        for (int u = 0; u < COUNT; u++)
            if (task_of<K>(l, w, u).replica < left)
                add_windows<K, 1>(k + u, slab + u, entry + u, turn, shift, constant, sums + u);
}

/* stores ------------------------------------------------------------------------------------------------------------ */

/* Where an output tile goes: to rows `row` and on. */
struct destination {
    fsi_output to;
    int64_t row;
};
/* Sums of every slot go to shared memory, by replica, block, output tile and row; those of replicas are added in order,
 * scaled once, stored once. */
template <class K>
__device__ __forceinline__ void store_sums(const fsi_tile_args &a, const layout &l, const work &w, char *shared,
                                           typename K::S (&sums)[K::TASKS][K::STRATA][K::ROWS * K::VECTOR])
{
    typedef typename K::S S;
    const int tid = threadIdx.x, n = (int)a.n, pitch = l.chunks * K::VECTOR, tiles = w.blocks * l.outputs;
    const int replica_sums = l.group * l.outputs * HEIGHT * pitch;
    S *all = (S *)shared;
    destination *to = (destination *)(all + l.replicas * replica_sums);
    fsi_copy_wait<0>();
    __syncthreads();
#pragma unroll
    for (int u = 0; u < K::TASKS; u++) {
        const task k = task_of<K>(l, w, u);
        const int row = (k.block * l.outputs + k.output) * HEIGHT + tid % K::LANES * K::ROWS;
        S *mine = all + k.replica * replica_sums + row * pitch + k.chunk * K::VECTOR;
        if (!k.has_work) continue;
#pragma unroll
        for (int t = 0; t < K::STRATA; t++)
#pragma unroll
            for (int v = 0; v < K::ROWS * K::VECTOR; v++)
                mine[(t * K::W + v / K::VECTOR) * pitch + v % K::VECTOR] = sums[u][t][v];
    }
    if (tid < tiles) {
        fsi_slice p = {};
        p.h = (uint32_t)(w.h0 + tid / l.outputs);
        p = fsi_slice_for(a, p, tid % l.outputs);
        to[tid].to = fsi_partial_sums(a, p.l, w.z);
        to[tid].row = p.output_row;
    }
    __syncthreads();
    /* neighbours in memory, which are rows of Y or its columns, are stored by neighbours */
    const bool down = a.out.row_stride == 1 && a.out.col_stride != 1;
    const int across = down ? HEIGHT : n, along = down ? n : HEIGHT, together = THREADS / across, place = tid % across;
    const int total = tid < across * together ? tiles * along : 0;
#pragma unroll 1
    for (int i = tid / across; i < total; i += together) {
        const int tile = i / along, r = down ? place : i - tile * along, j = down ? i - tile * along : place;
        const S *at = all + (tile * HEIGHT + r) * pitch + j;
        S sum = at[0];
        for (int f = 1; f < l.replicas; f++) sum += at[f * replica_sums];
        fsi_output_put(to[tile].to, to[tile].row + r, j, sum);
    }
}
static_assert(sizeof(destination) == FSI_ROTATE_SKINNY_SIMT_DESTINATION &&
                  sizeof(share) == FSI_ROTATE_SKINNY_SIMT_SHARE,
              "the instance list disagrees");

template <class K> __global__ void __launch_bounds__(THREADS, 2)
    rotate_skinny_simt(const __grid_constant__ fsi_tile_args a, const __grid_constant__ fsi_philox_keys keys,
                       const __grid_constant__ layout l)
{
    extern __shared__ __align__(1024) char shared[];
    fsi_start_next_kernel();
    /* 1. blocks and slice; what this thread copies, draws and adds, its warp for no task, the first ones or all */
    const work w = work_of<K>(a, l);
    const uint32_t at = fsi_shared_address(shared);
    share &mine = ((share *)(shared + l.shares))[threadIdx.x];
    mine.copy = K::QUAD > 0 && l.quads > 0 ? quad_share_of<K>(a, l, w) : copy_share_of<K>(a, l, w),
    mine.draw = draw_share_of<K>(a, l, w);
    task_places k[K::TASKS];
    int count = 0;
#pragma unroll
    for (int u = 0; u < K::TASKS; u++) {
        const task its = task_of<K>(l, w, u);
        k[u] = places_of<K>(l, at, its);
        if (__any_sync(~0u, its.has_work)) count = u + 1;
    }
    typename K::S sums[K::TASKS][K::STRATA][K::ROWS * K::VECTOR] = {};

    /* 2. a stage after the other: the copies of a later one begin, its windows are added; the first stage of a span
     * prepares later spans, as do those before the first */
    static_assert(SPANS == STAGES + 1, "rounds are made when there is no stage yet, a stage before they are used");
#pragma unroll 1
    for (int c = -STAGES; c * l.stage < w.windows; c++) {
        if (K::QUAD > 0 && l.quads > 0) fsi_copy_wait<0>();
        else fsi_copy_wait<STAGES - 2>();
        __syncthreads();
        if (K::QUAD > 0 && l.quads > 0) {
            if constexpr (K::QUAD > 0) {
                put_quad<K>(a.B, l, w, at, mine.copy, c + STAGES - 2);
                load_quad<K>(a.B, l, w, at, mine.copy, c + STAGES - 1);
                fsi_copy_commit();
            }
        } else if (c > -STAGES) {
            copy_stage<K>(a.B, l, w, at, mine.copy, c + STAGES - 1);
        }
        if (c < 0 || (c * l.stage & (l.span - 1)) == 0) {
            const int p = c < 0 ? c : c * l.stage >> l.span_bits;
            if (p >= -1) draw_span<K>(a.B, keys, l, w, at, mine.draw, p + 1);
            make_rounds<K>(a, l, w, at, p + STAGES);
        }
        if (c < 0) continue;
        if (count == K::TASKS) add_stage<K, K::TASKS>(l, w, k, c, sums);
        else if (count == 1) add_stage<K, 1>(l, w, k, c, sums);
    }

    /* 3. sums of replicas added and stored */
    store_sums<K>(a, l, w, shared, sums);
}

}  // namespace

#define KERNEL(T, dtype, vector, strata) (const void *)rotate_skinny_simt<shape<T, vector, strata>>,
static const void *const rotate_skinny_simt_instances[] = {FSI_ROTATE_SKINNY_SIMT(KERNEL)};
#define LAYOUT(T, dtype, vector, strata) layout_of<shape<T, vector, strata>>,
static layout (*const layouts[])(const fsi_tile_args &a, int64_t groups, int stage) = {FSI_ROTATE_SKINNY_SIMT(LAYOUT)};

static fs_result launch_rotate_skinny_simt(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                           const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    fsi_philox_keys keys = fsi_philox_keys_of(l.args.B.seed);
    layout its = layouts[plan->instance](l.args, fsi_plan_blocks(problem, plan), plan->chunk);
    void *arguments[] = {&l.args, &keys, &its};
    return fsi_tile_launch_run(&l, rotate_skinny_simt_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_rotate_skinny_simt_code = {launch_rotate_skinny_simt, rotate_skinny_simt_instances};
