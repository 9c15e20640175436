/* srht.cu - the SRHT: a Walsh-Hadamard transform of panels that stay in L2, sampled in its last pass.  Products with
 * few rows of Y are left to srht_sampled.cu.
 *
 * H of order N = 2^m is a product of butterflies, one for each bit of the row number, in any order.  A pass takes up to
 * 8 (or 10) of those bits: a thread block holds the rows that differ in them as a tile in shared memory and transforms
 * it by two rounds of butterflies in registers, so a pass moves every element once, whatever the number of its bits.
 *
 *     apply      A, signs of D -> pass over the lowest bits -> panel ... -> pass over the highest bits -> k rows of Y
 *     adjoint    k rows of Y -> pass over the highest bits -> panel ... -> pass over the lowest bits, signs of D -> X
 *
 * Nothing is padded, scattered or gathered in memory: the pass at Y's end computes from the inverse of the row sample
 * which of its rows are among the k; the pass at the other end, whose tiles are runs of neighbouring rows, which rows
 * exist.
 *
 * A panel is all N rows of a few columns, as sums.  While the first pass over one panel waits for memory, the second
 * pass over the panel before runs in L2: a launch holds one pass of each, and panels lie in a ring of as many buffers
 * as there are passes.  Where a ring does not fit in L2, the passes follow one another in one buffer.  With P passes A
 * is read once and panels are written and read P - 1 times, in L2 in the first case. */
#include "cuda/plan/srht.h"
#include "cuda/runtime/element.cuh"
#include "cuda/runtime/gpu.h"
#include "cuda/families/srht.cuh"

/* Threads that every SM of the architecture has room for. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define HADAMARD_ROOM 1024
#else
#define HADAMARD_ROOM 1536
#endif

/* A kind of kernel: the type of the matrix that is read, the direction, and the tile: RADIX x RADIX rows, a thread for
 * every column and RADIX rows.  The large tile (RADIX_BITS = 5) is taken where it saves a pass; it is 64 bytes wide
 * instead of a line of 128. */
template <class Element, bool IS_ADJOINT, int RADIX_BITS> struct hadamard_kind {
    typedef Element T;
    typedef typename fsi_sum<T>::type Sum;
    enum {
        ADJOINT = IS_ADJOINT,
        LARGE = RADIX_BITS == 5,
        TILE_BITS = 2 * RADIX_BITS,
        RADIX = 1 << RADIX_BITS,
        ROWS = 1 << TILE_BITS,
        COLS = (LARGE ? 64 : 128) / (int)sizeof(Sum),
        PITCH = LARGE ? COLS : COLS + 1,
        BYTES = ROWS * PITCH * (int)sizeof(Sum) + 2 * ROWS * (int)sizeof(int32_t),
        THREADS = RADIX * COLS,
        /* Blocks of an SM: some load while others compute, and registers suffice for RADIX sums. */
        BLOCKS = LARGE              ? 2
                 : sizeof(Sum) == 8 ? 4
                                    : HADAMARD_ROOM / THREADS
    };
    /* Where row high 2^low_bits + low, column c of the tile is.  Lanes run along columns, in rows whose `low` or whose
     * `high` differ by one, or along rows.  The small tile's padding keeps all of these on different banks.  In the
     * large tile two rows fill the banks once: pairs of rows are exchanged where `high` is odd, so that the two rows of
     * a warp are in different halves, and columns are permuted to spread a run of rows.  There low_bits > 0. */
    static __device__ __forceinline__ int at(int high, int low, int low_bits, int c)
    {
        const int row = high << low_bits | low;
        return LARGE ? (row ^ (high & 1)) * COLS + (c ^ (low >> 1 & (COLS - 1))) : row * PITCH + c;
    }
};

/* A call: what its kernels share. */
template <class Kind> struct hadamard_call {
    fsi_srht H;
    fsi_input<typename Kind::T> from;
    fsi_output to;
    typename Kind::Sum *panels; /* `buffers` panels of N x width, row-major */
    int64_t row0, rows;         /* rows row0 ... row0 + rows - 1 of the d are in A or X */
    int64_t cols, width;        /* columns in all, and of a panel */
    int64_t panel_count;
    int passes, buffers;
    int edge[8];            /* the q-th lowest group of bits is edge[q] ... edge[q + 1] - 1; six groups at most */
    uint32_t across, tiles; /* tiles of a panel's width, and of a panel in the pass that has most */
    int along_rows;         /* lanes along the rows of A or X: it is batch-major */
};

/* The work of one block: the tile of rows base + (l << shift), l < 2^(high_bits + low_bits), from column `col` on. */
typedef struct hadamard_job {
    int first, last; /* reads the caller's matrix; writes it */
    int shift, high_bits, low_bits;
    int cols; /* of the matrix, at most those of the tile */
    int64_t base, col;
    int64_t corner; /* row 0 of the panel at the tile's first column, counted from `panels` */
} hadamard_job;

static __device__ __forceinline__ int64_t hadamard_row(const hadamard_job &J, int l)
{
    return J.base + ((int64_t)l << J.shift);
}

/* Passes take the groups of bits from the lowest on, the adjoint's from the highest.  False: there is no such tile.
 * Several panels are fewer than 2^32: their columns are in memory. */
template <class Kind> static __device__ bool hadamard_find(const hadamard_call<Kind> &C, int pass, int64_t panel,
                                                           uint32_t tile, hadamard_job *J)
{
    const int place = Kind::ADJOINT ? C.passes - 1 - pass : pass, begin = C.edge[place], end = C.edge[place + 1];
    const int64_t group = tile / C.across, c = (int64_t)(tile % C.across) * Kind::COLS;
    J->first = pass == 0;
    J->last = pass == C.passes - 1;
    J->shift = begin;
    J->low_bits = (end - begin) / 2;
    J->high_bits = end - begin - J->low_bits;
    J->base = (group >> begin << end) + (group & (((int64_t)1 << begin) - 1));
    J->col = panel * C.width + c;
    J->cols = (int)min((int64_t)Kind::COLS, min(C.width - c, C.cols - J->col));
    J->corner = (uint32_t)panel % (uint32_t)C.buffers * C.H.N * C.width + c;
    return group < C.H.N >> (end - begin) && J->cols > 0;
}

/* The meaning of row r of the transform in the caller's matrix: at Y's end its row, at the other whether D negates it;
 * -1 where it does not exist. */
template <class Kind> static __device__ int32_t hadamard_mark(const hadamard_call<Kind> &C, bool of_Y, int64_t r)
{
    if (of_Y) {
        const uint64_t i = fsi_permute_inverse(&C.H.pick, (uint64_t)r);
        return i < (uint64_t)C.H.k ? (int32_t)i : -1;
    }
    return r >= C.row0 && r < C.row0 + C.rows ? (int32_t)fsi_srht_flip(&C.H, r) : -1;
}
template <class Kind>
static __device__ void hadamard_marks(const hadamard_call<Kind> &C, const hadamard_job &J, bool of_Y, int32_t *mark)
{
    for (int l = threadIdx.x; l < 1 << (J.high_bits + J.low_bits); l += Kind::THREADS)
        mark[l] = hadamard_mark(C, of_Y, hadamard_row(J, l));
}

/* The tile, filled from a batch-major A with lanes along its rows.  A is read once, here and below, and should not
 * evict panels from L2. */
template <class Kind> static __device__ __forceinline__ void hadamard_fill(const hadamard_call<Kind> &C,
                                                                           const hadamard_job &J, const int32_t *mark,
                                                                           typename Kind::Sum *tile)
{
    const int bits = J.high_bits + J.low_bits, low_mask = (1 << J.low_bits) - 1;
#pragma unroll 4
    for (int e = threadIdx.x; e < Kind::COLS << bits; e += Kind::THREADS) {
        const int l = e & ((1 << bits) - 1), c = e >> bits;
        const int32_t m = mark[l];
        const int64_t row = hadamard_row(J, l) - C.row0;
        const typename Kind::T *const at = C.from.data + row * C.from.row_stride + (J.col + c) * C.from.col_stride;
        const typename Kind::Sum x = m < 0 || c >= J.cols ? 0 : fsi_widen(__ldcs(at));
        tile[Kind::at(l >> J.low_bits, l & low_mask, J.low_bits, c)] = m > 0 ? -x : x;
    }
}
/* x[t] = row (t, low) of A with the sign that D gives it, 0 where A has no such row.  Marks become bits first, so that
 * registers are free for RADIX loads in flight. */
template <class Kind> static __device__ __forceinline__ void hadamard_read_A(const hadamard_call<Kind> &C,
                                                                             const hadamard_job &J, const int32_t *mark,
                                                                             int low, int c,
                                                                             typename Kind::Sum (&x)[Kind::RADIX])
{
    const typename Kind::T *next = C.from.data + (hadamard_row(J, low) - C.row0) * C.from.row_stride +
                                   (J.col + c) * C.from.col_stride;
    const int64_t stride = C.from.row_stride * ((int64_t)1 << (J.low_bits + J.shift));
    uint32_t there = 0, minus = 0;
#pragma unroll
    for (int t = 0; t < Kind::RADIX; t++) {
        const int32_t m = t < 1 << J.high_bits && c < J.cols ? mark[t << J.low_bits | low] : -1;
        there |= (uint32_t)(m >= 0) << t;
        minus |= (uint32_t)(m > 0) << t;
    }
#pragma unroll
    for (int t = 0; t < Kind::RADIX; t++, next += stride) x[t] = there >> t & 1 ? fsi_widen(__ldcs(next)) : 0;
#pragma unroll
    for (int t = 0; t < Kind::RADIX; t++) x[t] = minus >> t & 1 ? -x[t] : x[t];
}
/* x[t] = row (t, low) of the transform that begins with Y: a row of Y, or 0. */
template <class Kind> static __device__ __forceinline__ void hadamard_read_Y(const hadamard_call<Kind> &C,
                                                                             const hadamard_job &J, const int32_t *mark,
                                                                             int low, int c,
                                                                             typename Kind::Sum (&x)[Kind::RADIX])
{
    const typename Kind::T *const column = C.from.data + (J.col + c) * C.from.col_stride;
#pragma unroll
    for (int t = 0; t < Kind::RADIX; t++) {
        const int32_t m = t < 1 << J.high_bits && c < J.cols ? mark[t << J.low_bits | low] : -1;
        x[t] = m >= 0 ? fsi_widen(column[m * C.from.row_stride]) : 0;
    }
}

/* The high bits: this thread has rows (t, low), from the tile if it is filled, the caller's matrix or the panel. */
template <class Kind> static __device__ __forceinline__ void hadamard_high(const hadamard_call<Kind> &C,
                                                                           const hadamard_job &J, const int32_t *mark,
                                                                           bool filled, int low, int c,
                                                                           typename Kind::Sum *tile)
{
    const int count = 1 << J.high_bits;
    typename Kind::Sum x[Kind::RADIX];
    if (filled) {
#pragma unroll
        for (int t = 0; t < Kind::RADIX; t++) x[t] = t < count ? tile[Kind::at(t, low, J.low_bits, c)] : 0;
    } else if (J.first) {
        if (Kind::ADJOINT) hadamard_read_Y(C, J, mark, low, c, x);
        else hadamard_read_A(C, J, mark, low, c, x);
    } else {
        const typename Kind::Sum *next = C.panels + J.corner + c + hadamard_row(J, low) * C.width;
        const int64_t stride = C.width << (J.low_bits + J.shift);
#pragma unroll
        for (int t = 0; t < Kind::RADIX; t++, next += stride) x[t] = t < count && c < J.cols ? *next : 0;
    }
    hadamard_butterflies(x, J.high_bits);
#pragma unroll
    for (int t = 0; t < Kind::RADIX; t++)
        if (t < count) tile[Kind::at(t, low, J.low_bits, c)] = x[t];
}

/* The low bits: this thread has rows (high, t); they go to the panel, or stay in the tile for the caller's matrix. */
template <class Kind> static __device__ __forceinline__ void hadamard_low(const hadamard_call<Kind> &C,
                                                                          const hadamard_job &J, int high, int c,
                                                                          typename Kind::Sum *tile)
{
    const int count = 1 << J.low_bits;
    typename Kind::Sum x[Kind::RADIX];
#pragma unroll
    for (int t = 0; t < Kind::RADIX; t++) x[t] = t < count ? tile[Kind::at(high, t, J.low_bits, c)] : 0;
    hadamard_butterflies(x, J.low_bits);
    if (J.last) {
#pragma unroll
        for (int t = 0; t < Kind::RADIX; t++)
            if (t < count) tile[Kind::at(high, t, J.low_bits, c)] = x[t];
    } else if (c < J.cols) {
        typename Kind::Sum *next = C.panels + J.corner + c + hadamard_row(J, high << J.low_bits) * C.width;
        const int64_t stride = C.width << J.shift;
#pragma unroll
        for (int t = 0; t < Kind::RADIX; t++, next += stride)
            if (t < count) *next = x[t];
    }
}

/* Row (high, low) of the tile, column c, to the caller's matrix.  Adding 0 makes every zero +0, as in sums from +0. */
template <class Kind> static __device__ __forceinline__ void hadamard_write(const hadamard_call<Kind> &C,
                                                                            const hadamard_job &J, const int32_t *mark,
                                                                            int high, int low, int c,
                                                                            const typename Kind::Sum *tile)
{
    const int l = high << J.low_bits | low;
    const int32_t m = mark[l];
    if (m < 0 || c >= J.cols) return;
    const typename Kind::Sum sum = tile[Kind::at(high, low, J.low_bits, c)];
    const int64_t row = Kind::ADJOINT ? hadamard_row(J, l) - C.row0 : m;
    fsi_output_put(C.to, row, J.col + c, (Kind::ADJOINT && m ? -sum : sum) + 0);
}

/* Passes first_pass ... first_pass + side_by_side - 1, pass q over panel step - q, in neighbouring blocks. */
template <class Kind> static __global__ void __launch_bounds__(Kind::THREADS, Kind::BLOCKS)
    hadamard_pass(const __grid_constant__ hadamard_call<Kind> C, int first_pass, int side_by_side, int64_t step)
{
    extern __shared__ __align__(16) unsigned char hadamard_shared[];
    typename Kind::Sum *const tile = (typename Kind::Sum *)hadamard_shared;
    int32_t *const mark_in = (int32_t *)(tile + Kind::ROWS * Kind::PITCH), *const mark_out = mark_in + Kind::ROWS;
    const int c = threadIdx.x % Kind::COLS, own = threadIdx.x / Kind::COLS;
    const int pass = first_pass + blockIdx.x % side_by_side;
    hadamard_job J;
    if (!hadamard_find(C, pass, step - pass, blockIdx.x / side_by_side, &J)) return;
    const int highs = 1 << J.high_bits, lows = 1 << J.low_bits;
    const bool fill = !Kind::ADJOINT && J.first && C.along_rows;

    /* 1.  The meaning of the rows that are read from the caller's matrix; the tile of a batch-major A. */
    if (J.first) {
        hadamard_marks(C, J, Kind::ADJOINT, mark_in);
        __syncthreads();
    }
    if (fill) {
        hadamard_fill(C, J, mark_in, tile);
        __syncthreads();
    }

    /* 2.  The high bits; the meaning of the rows that are written to the caller's matrix. */
    if (own < lows) hadamard_high(C, J, mark_in, fill, own, c, tile);
    if (J.last) hadamard_marks(C, J, !Kind::ADJOINT, mark_out);
    __syncthreads();

    /* 3.  The low bits, in the warps that have a row to store: where Y has few rows, most have none. */
    int wanted = !J.last;
    for (int t = c; J.last && own < highs && t < lows; t += Kind::COLS) wanted |= mark_out[own << J.low_bits | t] >= 0;
    wanted = __any_sync(0xFFFFFFFFu, wanted) && own < highs;
    if (wanted) hadamard_low(C, J, own, c, tile);
    if (!J.last) return;

    /* 4. The caller's matrix: every thread writes its own sums, or all of them along the rows of a batch-major X. */
    if (Kind::ADJOINT && C.along_rows) {
        __syncthreads();
        for (int e = threadIdx.x; e < Kind::COLS * highs * lows; e += Kind::THREADS)
            hadamard_write(C, J, mark_out, e >> J.low_bits & (highs - 1), e & (lows - 1),
                           e >> (J.high_bits + J.low_bits), tile);
    } else {
        for (int t = 0; wanted && t < lows; t++) hadamard_write(C, J, mark_out, own, t, c, tile);
    }
}

template <class Kind>
static fs_result hadamard_launch(fsi_gpu *gpu, const hadamard_call<Kind> *C, int64_t first, int64_t last, int64_t step)
{
    const int64_t side_by_side = last - first + 1;
    hadamard_pass<Kind><<<C->tiles *(unsigned)side_by_side, Kind::THREADS, Kind::BYTES, gpu->stream>>>(
        *C, (int)first, (int)side_by_side, step);
    return FSI_LAUNCHED(gpu, "a pass of the Hadamard transform");
}

/* Scratch: `buffers` panels; none where there is a single pass. */
template <class Kind> static fs_result hadamard_passes(fsi_gpu *gpu, const fsi_srht_plan *plan, hadamard_call<Kind> *C)
{
    if (Kind::LARGE) {
        const cudaError_t error = cudaFuncSetAttribute(hadamard_pass<Kind>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                       (int)Kind::BYTES);
        FSI_TRY(fsi_gpu_check(gpu, error, "shared memory for the Hadamard transform"));
    }
    C->passes = plan->passes;
    C->width = plan->width;
    C->panel_count = plan->panels;
    C->buffers = plan->buffers;
    for (int q = 0; q <= C->passes; q++) C->edge[q] = plan->bits * q / C->passes;
    C->across = (uint32_t)fsi_div_up(C->width, Kind::COLS);
    C->tiles = (uint32_t)(C->H.N >> plan->bits / C->passes) * C->across;
    if (C->passes > 1) {
        void *memory;
        FSI_TRY(fsi_gpu_scratch(gpu, C->buffers * C->H.N * C->width * (int64_t)sizeof *C->panels, &memory));
        C->panels = (typename Kind::Sum *)memory;
    }
    if (C->buffers > 1) {
        for (int64_t step = 0; step < C->panel_count + C->passes - 1; step++) {
            const int64_t first = step < C->panel_count ? 0 : step - C->panel_count + 1;
            FSI_TRY(hadamard_launch(gpu, C, first, fsi_min(step, C->passes - 1), step));
        }
        return FS_OK;
    }
    for (int64_t panel = 0; panel < C->panel_count; panel++)
        for (int pass = 0; pass < C->passes; pass++) FSI_TRY(hadamard_launch(gpu, C, pass, pass, panel + pass));
    return FS_OK;
}

template <class Kind> static fs_result hadamard_run(fsi_gpu *gpu, const fsi_srht *S, const fsi_srht_plan *plan,
                                                    double factor, int64_t row0, const fs_matrix *from, double beta,
                                                    const fs_matrix *to)
{
    const fs_matrix *const tall = Kind::ADJOINT ? to : from;
    hadamard_call<Kind> C = {};
    C.H = *S;
    C.from = fsi_input_of<typename Kind::T>(from);
    C.to = fsi_output_of(to, factor, beta);
    C.row0 = row0;
    C.rows = tall->rows;
    C.cols = to->cols;
    C.along_rows = C.cols == 1 || !fsi_view_is_row_major(tall);
    return hadamard_passes(gpu, plan, &C);
}

template <class T, bool ADJOINT> static fs_result hadamard(fsi_gpu *gpu, const fsi_srht *S, double factor, int64_t row0,
                                                           const fs_matrix *from, double beta, const fs_matrix *to)
{
    typedef hadamard_kind<T, ADJOINT, FSI_SRHT_SMALL_BITS / 2> Small;
    typedef hadamard_kind<T, ADJOINT, FSI_SRHT_LARGE_BITS / 2> Large;
    static_assert(Large::LARGE && (int)Large::BYTES == (int)FSI_SRHT_LARGE_BYTES, "plan/srht.h disagrees");
    const fsi_srht_plan plan = fsi_choose_srht(S, to->cols, (int64_t)sizeof(typename Small::Sum), &gpu->traits);
    return plan.tile_bits == Large::TILE_BITS ? hadamard_run<Large>(gpu, S, &plan, factor, row0, from, beta, to)
                                              : hadamard_run<Small>(gpu, S, &plan, factor, row0, from, beta, to);
}

FSI_GPU_OP(fsi_gpu_srht_apply, fsi_srht)
{
    if (to->cols == 0) return FS_OK;
    if (fsi_srht_is_sampled(S, from->dtype))
        return fsi_gpu_srht_sampled_apply(gpu, S, scale, row0, alpha, from, beta, to);
#define RUN(T) hadamard<T, false>(gpu, S, alpha * scale, row0, from, beta, to)
    return FSI_BY_DTYPE(from->dtype, RUN);
#undef RUN
}
FSI_GPU_OP(fsi_gpu_srht_adjoint, fsi_srht)
{
    if (to->cols == 0 || to->rows == 0) return FS_OK;
#define RUN(T) hadamard<T, true>(gpu, S, alpha * scale, row0, from, beta, to)
    return FSI_BY_DTYPE(from->dtype, RUN);
#undef RUN
}
