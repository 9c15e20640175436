/* rotate_rows_simt.cu - BlockPerm-SJLT by plain additions on sm_90, rows of A contiguous: f64, and f32 where columns
 * have few nonzeros.
 *
 * Formulation: in a window of W local rows a stratum of S is a signed rotation (def/blockperm.h): its row r receives
 * one of these local rows, number (r - x) mod W, x the same for all columns of A.  So a warp owns 32 rows of Y, of one
 * stratum or of several, and its sums stay in registers; for every window it loads the rows of A in the order in which
 * its rows of Y receive them, from rotated addresses in shared memory, and adds each times its sign.  An element of A
 * costs one addition and one load from shared memory for each of its nonzeros, whatever the height of a block.
 * Nothing is multiplied by 0 or split into terms: the error is that of plain summation, and an Inf or NaN reaches the
 * rows of its nonzeros and no other.
 *
 * A lane has 16 bytes of a row: of one group of 512 bytes, or of one of two.
 *
 * A recipe tells a warp what to do with a window: where the first row of A begins, for each stratum, and for each row
 * of Y the sign, as the top byte of +-1.  Producer warps write recipes into the stage of the rows that they are for.
 *
 * grid     (outputs / OUTS) x M x column tiles x slices, in this order, in x
 * threads  2 warps that copy rows, 2 that write recipes, 8 that add; registers move to the last.  Where the rows of all
 *          output tiles and groups take fewer of them, the others have the same rows and take windows in turn
 * shared   a ring of stages: rows of A, recipes, shifts (row_ring.cuh)
 * needs    sm_90; rows contiguous or shuffled; output tiles of 64 rows with packed words; strata of 8 to 64 rows */
#include "cuda/blockperm/rotate_rows_simt_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/blockperm/common/row_ring.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

enum {
    COPY_WARPS = FSI_ROTATE_ROWS_SIMT_COPIERS,
    WRITERS = FSI_ROTATE_ROWS_SIMT_WRITERS,
    ADDERS = FSI_ROTATE_ROWS_SIMT_ADDERS,
    PREPARE = 32 * (COPY_WARPS + WRITERS),
    THREADS = FSI_ROTATE_ROWS_SIMT_THREADS,
    ROWS = FSI_ROTATE_ROWS_SIMT_ROWS, /* of Y, of an adder */
    MOST_OUTS = FSI_ROTATE_ROWS_SIMT_OUTS,
    RECIPE = FSI_ROTATE_ROWS_SIMT_RECIPE,
    PREPARING = 88, /* registers of a thread that prepares, and of one that adds */
    ADDING = 208
};
static_assert(PREPARE + 32 * ADDERS == THREADS && sizeof(fsi_slice) == 64, "the instance list disagrees");
static_assert(PREPARE * PREPARING + 32 * ADDERS * ADDING <= 65536 / THREADS / 8 * 8 * THREADS,
              "the registers that the thread block starts with");

/* GROUPS groups of 512 bytes of a row; W is the number of rows of a stratum, and of a window. */
template <class T, int IN_CHUNKS, int GROUPS, int W> struct shape {
    enum {
        CHUNKED = IN_CHUNKS,
        WINDOW = W,
        SHARING = ADDERS / GROUPS,                            /* adders of a group */
        COLUMNS = FSI_ROTATE_ROWS_SIMT_LANE / (int)sizeof(T), /* of a lane */
        WIDTH = FSI_ROTATE_ROWS_SIMT_WIDTH(sizeof(T), GROUPS),
        RUN = W < ROWS ? W : (int)ROWS, /* rows of a warp in one stratum */
        STRATA = ROWS / RUN,
        PITCH = FSI_ROTATE_ROWS_SIMT_PITCH(CHUNKED, GROUPS),
        STAGE = FSI_ROTATE_ROWS_SIMT_STAGE(GROUPS, W),
        STAGES = FSI_ROTATE_ROWS_SIMT_STAGES(GROUPS, W),
        WINDOWS = STAGE / W, /* of a stage */
        RECIPES = FSI_ROTATE_ROWS_SIMT_RECIPES(GROUPS, W)
    };
    static_assert(CHUNKED || PITCH == 1024, "chunks of all rows are exchanged in the same way (row_ring.cuh)");
    typedef row_ring<T, WIDTH, STAGE, PITCH, STAGES, COPY_WARPS, 1> ring_t;
    typedef T sums_t[ROWS][COLUMNS];
    /* The lane's columns of the tile: neighbours, or one in 32 where rows are shifted. */
    static __device__ __forceinline__ int column(int c)
    {
        const int lane = threadIdx.x & 31, first = (threadIdx.x >> 5) / SHARING % GROUPS * (WIDTH / GROUPS);
        return first + (CHUNKED ? lane + 32 * c : lane * COLUMNS + c);
    }
    /* The byte of a row from which on the lane loads. */
    static __device__ __forceinline__ uint32_t place(void)
    {
        const uint32_t at = (uint32_t)column(0) * (uint32_t)sizeof(T);
        return CHUNKED ? at : at ^ (at / 128 % 8) << 4;
    }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* Shared memory: stages of rows, recipes, shifts, mbarriers; then slices. */
template <class sh> struct memory {
    typename sh::ring_t ring;
    uint32_t recipes, shifts;
    int roles; /* warps that have all rows of the thread block's output tiles */
    __device__ __forceinline__ memory(const void *shared, int outs)
    {
        ring.stages = fsi_shared_address(shared);
        recipes = ring.stages + sh::STAGES * sh::ring_t::STAGE_BYTES;
        shifts = recipes + sh::STAGES * sh::RECIPES;
        ring.barriers = shifts + sh::CHUNKED * sh::STAGES * sh::STAGE;
        roles = outs * (HEIGHT / ROWS);
    }
    /* What warp `role` does with a window of a stage. */
    __device__ __forceinline__ uint32_t recipe(int stage, int window, int role) const
    {
        return recipes + stage * sh::RECIPES + (window * roles + role) * RECIPE;
    }
};

/* The slice with its first local row moved down to the first of a window, by as many local rows as are returned. */
template <int W> __device__ __forceinline__ int align_to_window(fsi_slice &p)
{
    const int lead = p.count > 0 ? (int)(p.first & (W - 1)) : 0;
    p.first -= lead;
    p.count += lead;
    return lead;
}
template <class sh> __device__ __forceinline__ int stages_of(const fsi_slice &aligned)
{
    return (int)((aligned.count + sh::STAGE - 1) / sh::STAGE);
}

/* The share in recipes of local rows v ... v + 3 of a window, for output tile `out`; `word` are their packed words. */
template <class sh> __device__ __forceinline__ void write_recipe(const memory<sh> &m, int stage, int window, int v,
                                                                 int out, int field, uint32_t (&word)[4])
{
    enum { W = sh::WINDOW };
#pragma unroll 1
    for (int first = out * HEIGHT; first < (out + 1) * HEIGHT; first += W)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = (int)(word[i] >> (33 - field)), row = first + at;
            const uint32_t top = 0x3F | (word[i] >> (32 - field) & 1) << 7;
            word[i] <<= field;
            fsi_shared_put8(m.recipe(stage, window, row / ROWS) + 16 + row % ROWS, top);
            if (v + i == 0)
                for (int part = 0; part < W; part += sh::RUN)
                    fsi_shared_put32(m.recipe(stage, window, (first + part) / ROWS) + first % ROWS / W * 4,
                                     (uint32_t)((part - at) & (W - 1)) * sh::PITCH);
        }
}

/* A warp that writes the recipes of every WRITERS-th stage.  A lane has four local rows. */
template <class sh> __device__ __forceinline__ void write_recipes(const fsi_tile_args &a, const fsi_slice &p,
                                                                  const fsi_slice *slices, int outs,
                                                                  const memory<sh> &m, int warp, int stage_count)
{
    enum { QUADS = sh::STAGE / 4 };
    const int lane = threadIdx.x & 31, quad = lane % QUADS, v = 4 * quad % sh::WINDOW, window = 4 * quad / sh::WINDOW;
#pragma unroll 1
    for (int t = warp; t < stage_count; t += WRITERS) {
        const int stage = t % sh::STAGES;
        const int64_t first = p.first + (int64_t)t * sh::STAGE + 4 * quad;
        fsi_mbarrier_wait(m.ring.empty(stage), t / sh::STAGES & 1 ^ 1);
#pragma unroll 1
        for (int out = lane / QUADS; out < outs; out += 32 / QUADS) {
            fsi_quad words = fsi_blockperm_quad(&a.B, p.h, first,
                                                fsi_blockperm_band(&a.B, slices[out].l, slices[out].band));
            write_recipe(m, stage, window, v, out, a.B.field, words.w);
        }
        __syncwarp();
        if (lane == 0) fsi_mbarrier_arrive(m.ring.full(stage));
    }
}

/* A lane's elements of a row. */
template <class sh, class T> __device__ __forceinline__ void load_lane(T (&x)[sh::COLUMNS], uint32_t at)
{
    if constexpr (sh::CHUNKED) {
#pragma unroll
        for (int c = 0; c < sh::COLUMNS; c++) fsi_shared_get(at + 32 * c * (int)sizeof(T), &x[c]);
    } else fsi_shared_words<16>((uint32_t *)x, at);
}
/* +-1, its top byte being byte I of `tops`. */
template <int I, class T> __device__ __forceinline__ T sign_of(uint32_t tops)
{
    if constexpr (sizeof(T) == 8) return __hiloint2double((int)fsi_bytes<0x0455 | I << 12>(tops, 0xF0), 0);
    else return __uint_as_float(fsi_bytes<0x0455 | I << 12>(tops, 0x80));
}

/* Adds a window to the sums of the warp's rows of one stratum.  The window's rows of A are at `rows`, the lane's
 * columns added to that, their shifts at `shifts`; the row for the first sum begins `begin` bytes behind the first. */
template <class sh, class T> __device__ __forceinline__ void add_window(uint32_t rows, uint32_t shifts, uint32_t begin,
                                                                        uint32_t tops_at, T (*sums)[sh::COLUMNS])
{
    enum { W = sh::WINDOW, ALL = W * sh::PITCH, RUN = sh::RUN };
    uint32_t from[RUN], tops[RUN / 4];
    T x[RUN][sh::COLUMNS];
#pragma unroll
    for (int i = 0; i < RUN / 4; i += 2) fsi_shared_words<8>(tops + i, tops_at + 4 * i);
#pragma unroll
    for (int i = 0; i < RUN; i++) {
        const uint32_t far = begin + i * sh::PITCH;
        from[i] = rows + min(far, far - ALL);
        if (sh::CHUNKED) from[i] += fsi_shared_byte(shifts + (begin / sh::PITCH + i) % W);
    }
#pragma unroll
    for (int i = 0; i < RUN; i++) load_lane<sh>(x[i], from[i]);
#pragma unroll
    for (int i = 0; i < RUN; i += 4) {
        const T sign[4] = {sign_of<0, T>(tops[i / 4]), sign_of<1, T>(tops[i / 4]), sign_of<2, T>(tops[i / 4]),
                           sign_of<3, T>(tops[i / 4])};
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int c = 0; c < sh::COLUMNS; c++) sums[i + j][c] = fma(sign[j], x[i + j][c], sums[i + j][c]);
    }
}

/* A consumer warp: its rows' sums of the slice, of the windows that it takes. */
template <class sh, class T>
__device__ __forceinline__ void add_slice(const memory<sh> &m, int warp, int stage_count, T (&sums)[ROWS][sh::COLUMNS])
{
    const int lane = threadIdx.x & 31, role = warp % m.roles, sharers = sh::SHARING / m.roles;
    const uint32_t own = sh::place();
    int stage = 0, parity = 0, window = warp % sh::SHARING / m.roles; /* from the stage's first to the warp's next */
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int c = 0; c < sh::COLUMNS; c++) sums[r][c] = 0;
#pragma unroll 1
    for (int t = 0; t < stage_count; t++) {
        fsi_mbarrier_wait(m.ring.full(stage), parity);
#pragma unroll 1
        for (; window < sh::WINDOWS; window += sharers) {
            const uint32_t rows = m.ring.stages + stage * sh::ring_t::STAGE_BYTES + window * sh::WINDOW * sh::PITCH +
                                  own;
            const uint32_t shifts = m.shifts + stage * sh::STAGE + window * sh::WINDOW;
            const uint32_t recipe = m.recipe(stage, window, role);
#pragma unroll
            for (int c = 0; c < sh::STRATA; c++)
                add_window<sh>(rows, shifts, fsi_shared_uint(recipe + 4 * c), recipe + 16 + c * sh::RUN,
                               sums + c * sh::RUN);
        }
        window -= sh::WINDOWS;
        __syncwarp();
        if (lane == 0) fsi_mbarrier_arrive(m.ring.empty(stage));
        if (++stage == sh::STAGES) stage = 0, parity ^= 1;
    }
}

/* Adds the sums of warps that have the same rows and columns, in their order, to those of the first of them; the ring
 * is not used any more. */
template <class sh, class T>
__device__ __forceinline__ void gather_sums(const memory<sh> &m, int warp, T (&sums)[ROWS][sh::COLUMNS])
{
    enum { SIZE = (int)sizeof(T), BYTES = 32 * ROWS * sh::COLUMNS * SIZE /* of a warp */ };
    const uint32_t lane = m.ring.stages + (threadIdx.x & 31) * SIZE +
                          warp / sh::SHARING * (sh::SHARING - m.roles) * BYTES;
    warp %= sh::SHARING;
    fsi_barrier(1, 32 * ADDERS);
    if (warp >= m.roles)
#pragma unroll
        for (int i = 0; i < ROWS * sh::COLUMNS; i++)
            fsi_shared_put(lane + (warp - m.roles) * BYTES + 32 * i * SIZE, sums[i / sh::COLUMNS][i % sh::COLUMNS]);
    fsi_barrier(1, 32 * ADDERS);
    if (warp >= m.roles) return;
#pragma unroll 1
    for (int other = warp; other < sh::SHARING - m.roles; other += m.roles)
#pragma unroll
        for (int i = 0; i < ROWS * sh::COLUMNS; i++) {
            T more;
            fsi_shared_get(lane + other * BYTES + 32 * i * SIZE, &more);
            sums[i / sh::COLUMNS][i % sh::COLUMNS] += more;
        }
}

/* Any output; not inlined, so that the plain stores stay a few instructions. */
template <class T> __device__ __noinline__ void put_one(const fsi_output &to, int64_t row, int64_t column, T sum)
{
    fsi_output_put(to, row, column, sum);
}
/* Stores the sums of a warp, rows first_row ... of output tile p; `column` is the tile's first, columns before `owned`
 * belong to another. */
template <class sh, class T> __device__ __forceinline__ void store_sums(const fsi_tile_args &a, const fsi_slice &p,
                                                                        int first_row, int64_t owned, int64_t column,
                                                                        const T (&sums)[ROWS][sh::COLUMNS])
{
    const fsi_output to = fsi_partial_sums(a, p.l, p.z);
    const int64_t own = column + sh::column(0), row = p.output_row + first_row;
    if (own < owned) return;
    T *there = (T *)to.data + row * to.row_stride + own;
    const bool plain = to.dtype == (sizeof(T) == 8 ? FS_F64 : FS_F32) && to.col_stride == 1 && to.beta == 0.0;
    const bool wide = plain && !sh::CHUNKED && own + sh::COLUMNS <= a.n && to.row_stride % sh::COLUMNS == 0 &&
                      (uintptr_t)there % 16 == 0;
    const T factor = (T)to.factor;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (wide) {
            pack<T, sh::COLUMNS> y;
#pragma unroll
            for (int c = 0; c < sh::COLUMNS; c++) y.x[c] = factor * sums[r][c];
            *(pack<T, sh::COLUMNS> *)(there + r * to.row_stride) = y;
            continue;
        }
#pragma unroll
        for (int c = 0; c < sh::COLUMNS; c++) {
            const int far = sh::column(c) - sh::column(0);
            if (own + far >= a.n) continue;
            if (plain) there[r * to.row_stride + far] = factor * sums[r][c];
            else put_one(to, row + r, own + far, sums[r][c]);
        }
    }
}
#endif

template <class T, int CHUNKED, int GROUPS, int W> __global__ void __launch_bounds__(THREADS, 1)
    rotate_rows_simt(const __grid_constant__ fsi_tile_args a, const __grid_constant__ fsi_row_maps maps, int outs)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef shape<T, CHUNKED, GROUPS, W> sh;
    extern __shared__ __align__(1024) uint8_t shared[];
    const int tid = threadIdx.x, warp = tid >> 5;
    const memory<sh> m(shared, outs);
    fsi_slice *slices = (fsi_slice *)(shared + FSI_ROTATE_ROWS_SIMT_SHARED(CHUNKED, GROUPS, W) -
                                      MOST_OUTS * sizeof(fsi_slice));

    fsi_start_next_kernel();
    /* 1. what to do; mbarriers: a stage is full when its rows, their shifts and the recipes are there */
    fsi_slices_once(a, outs, sh::WIDTH, slices);
    if (!CHUNKED && tid == 96) fsi_fetch_map(&maps.all);
    if (tid == 128)
        for (int i = 0; i < sh::STAGES; i++) {
            fsi_mbarrier_init(m.ring.full(i), 1 + (CHUNKED ? COPY_WARPS * 33 : COPY_WARPS));
            fsi_mbarrier_init(m.ring.empty(i), ADDERS);
        }
    fsi_proxy_fence();
    __syncthreads();

    if (tid < PREPARE) {
        /* 2. rows and recipes */
        fsi_fewer_registers<PREPARING>();
        fsi_slice p = slices[0];
        const int64_t owned = CHUNKED ? p.column : place_columns<T, sh::WIDTH>(a, p);
        const int lead = align_to_window<W>(p), stage_count = stages_of<sh>(p);
        ring_place at = {0, 1};
        if (warp >= COPY_WARPS) write_recipes(a, p, slices, outs, m, warp - COPY_WARPS, stage_count);
        else if constexpr (CHUNKED) copy_chunks(a, p, lead, m.ring, m.shifts, stage_count, at);
        else copy_rows(a, maps, p, owned, lead, m.ring, false, stage_count, at);
        return;
    }
    /* 3. sums */
    fsi_more_registers<ADDING>();
    const int adder = warp - PREPARE / 32;
    fsi_slice aligned = slices[0];
    align_to_window<W>(aligned);
    typename sh::sums_t sums;
    add_slice<sh>(m, adder, stages_of<sh>(aligned), sums);
    if (m.roles < sh::SHARING) gather_sums<sh>(m, adder, sums);
    const int role = adder % sh::SHARING;
    if (role >= m.roles) return;
    /* 4. scale once, store once */
    fsi_slice p = slices[0];
    const int64_t owned = CHUNKED ? p.column : place_columns<T, sh::WIDTH>(a, p);
    store_sums<sh>(a, slices[role * ROWS / HEIGHT], role * ROWS % HEIGHT, owned, p.column, sums);
#endif
}

}  // namespace

/* The plan file knows how much shared memory an instance takes. */
#define SHARED(T, dtype, chunked, groups, window) \
    static_assert(FSI_ROTATE_ROWS_SIMT_SHARED(chunked, groups, window) == \
                      (int)shape<T, chunked, groups, window>::STAGES * \
                              ((int)shape<T, chunked, groups, window>::ring_t::STAGE_BYTES + \
                               (int)shape<T, chunked, groups, window>::RECIPES + \
                               chunked * (int)shape<T, chunked, groups, window>::STAGE + 16) + \
                          (int)(MOST_OUTS * sizeof(fsi_slice)), \
                  "the instance list disagrees");
FSI_ROTATE_ROWS_SIMT(SHARED)
#define KERNEL(T, dtype, chunked, groups, window) (const void *)rotate_rows_simt<T, chunked, groups, window>,
static const void *const rotate_rows_simt_instances[] = {FSI_ROTATE_ROWS_SIMT(KERNEL)};
#define MAPPED(T, dtype, chunked, groups, window) !(chunked),
static const bool rotate_rows_simt_mapped[] = {FSI_ROTATE_ROWS_SIMT(MAPPED)};

static fs_result launch_rotate_rows_simt(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                         const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    fsi_row_maps maps = {};
    if (rotate_rows_simt_mapped[plan->instance])
        FSI_TRY(fsi_gpu_row_maps(gpu, operands->from, fsi_plan_width(plan), 1, &maps));
    int outs = plan->group;
    void *arguments[] = {&l.args, &maps, &outs};
    return fsi_tile_launch_run(&l, rotate_rows_simt_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_rotate_rows_simt_code = {launch_rotate_rows_simt, rotate_rows_simt_instances};
