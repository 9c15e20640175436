/* sorted_nonzeros.cu - products with a sorted list of nonzeros, and the SJLT.
 *
 * Where a block of output rows is too tall for a tile of sums in shared memory, Y is gathered row by row.  The nonzeros
 * of a panel of columns of S are sorted by row, and a thread group owns a row of Y and a tile of its columns: it reads
 * the rows of A in its list and keeps the sums in registers.  A is read s times for each kappa, from L2 where a panel
 * fits there.
 *
 * A thread group is column_lanes x entry_lanes threads: neighbouring threads read neighbouring columns, and where a row
 * is narrow or a list long the entries are spread over several subgroups, whose sums are added pairwise in fixed order.
 *  Its shape depends on the shape of the product alone, not on the GPU: so do the bits of Y.
 *
 * Rows whose elements lie far apart (batch-major A) would waste most of each memory transaction: their panels are
 * transposed to contiguous rows first, a tile of columns at a time. */
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/families/nonzeros.cuh"
#include "cuda/runtime/vector_load.cuh"

enum { THREADS = 256 };
enum { LIST = 1 << 23 };                       /* nonzeros of a panel: 128 MiB of words */
enum { TURNED_ROWS = 1 << 18 };                /* rows of a panel that is transposed */
static const int64_t TURNED_BYTES = 1 << 25;   /* a transposed tile: what L2 keeps */
static const int64_t ENOUGH_THREADS = 1 << 18; /* about what a large GPU runs at once */

template <class T> struct gather_call {
    typedef typename fsi_sum<T>::type Sum;
    const uint64_t *word;
    const int64_t *start;
    uint64_t minor_mask;
    int64_t rows, cols, tiles;     /* of `to`; a tile is column_lanes V columns */
    int column_lanes, entry_lanes; /* powers of two, together at most THREADS */
    fsi_input<T> from;
    Sum *sums;
    int64_t sums_row, sums_col; /* strides */
    int first, last, wide;      /* wide: fsi_wide of `to` */
    fsi_output to;
    int64_t heavy;
    double heavy_factor;
};

/* sum += the entries slice, slice + entry_lanes, ... of a row's list, `count` columns from col on; WHOLE: count is V.
 * Words are read before the rows they point to, so that LOADS rows are in flight together. */
template <class T, int V, bool WHOLE>
static __device__ __forceinline__ void gather_add(const gather_call<T> &C, int64_t row, int slice, int64_t col,
                                                  int count, typename fsi_sum<T>::type *sum)
{
    enum { LOADS = V == 1 ? 8 : 4 };
    const int64_t end = C.start[row + 1];
    const T *from = C.from.data + col * C.from.col_stride;
    for (int64_t t = C.start[row] + slice; t < end; t += LOADS * C.entry_lanes) {
        uint64_t word[LOADS];
        fsi_vector<T, V> x[LOADS];
#pragma unroll
        for (int u = 0; u < LOADS; u++) word[u] = t + u * C.entry_lanes < end ? C.word[t + u * C.entry_lanes] : 0;
#pragma unroll
        for (int u = 0; u < LOADS; u++)
            x[u] = fsi_vector_load<T, V, WHOLE, false>(from +
                                                           (int64_t)(word[u] >> 1 & C.minor_mask) * C.from.row_stride,
                                                       t + u * C.entry_lanes < end ? count : 0);
#pragma unroll
        for (int u = 0; u < LOADS; u++) fsi_vector_add<T, V>(x[u], word[u] & 1, sum);
    }
}

template <class T, int V> static __global__ void __launch_bounds__(THREADS)
    gather_rows(const __grid_constant__ gather_call<T> C)
{
    typedef typename fsi_sum<T>::type Sum;
    __shared__ Sum shared[V * THREADS];
    const int team = C.column_lanes * C.entry_lanes, lane = threadIdx.x & (team - 1), slice = lane / C.column_lanes;
    const int64_t task = (int64_t)blockIdx.x * (THREADS / team) + threadIdx.x / team, row = task / C.tiles;
    const int64_t col = (task % C.tiles * C.column_lanes + (lane & (C.column_lanes - 1))) * V;
    const int count = row < C.rows && col < C.cols ? (int)fsi_min(V, C.cols - col) : 0;

    /* 1. Sums of this thread's entries. */
    Sum sum[V] = {};
    if (count == V) gather_add<T, V, true>(C, row, slice, col, V, sum);
    else if (count > 0) gather_add<T, V, false>(C, row, slice, col, count, sum);
    /* 2. The sums of a thread group's slices, the upper half added to the lower. */
    for (int half = C.entry_lanes / 2; half > 0; half /= 2) {
        __syncthreads();
#pragma unroll
        for (int v = 0; v < V; v++) shared[v * THREADS + threadIdx.x] = sum[v];
        __syncthreads();
        if (slice >= half) continue;
#pragma unroll
        for (int v = 0; v < V; v++) sum[v] += shared[v * THREADS + threadIdx.x + half * C.column_lanes];
    }
    if (slice > 0 || count == 0) return;
    /* 3.  Added to the sums of earlier lists, and stored. */
    Sum *kept = C.sums + row * C.sums_row + col * C.sums_col;
#pragma unroll
    for (int v = 0; v < V; v++) {
        if (v < count && !C.first) sum[v] = kept[v * C.sums_col] + sum[v];
        if (v < count && !C.last) kept[v * C.sums_col] = sum[v];
    }
    if (!C.last) return;
    fsi_output to = C.to;
    if (row < C.heavy) to.factor = C.heavy_factor;
    fsi_vector_store<V>(to, C.wide, row, col, sum, count);
}

/* Lanes along columns up to a warp, then along entries while lists are long and either a warp is not full or the GPU
 * is not. */
template <class T, int V> static void shape_team(const fsi_gather *g, gather_call<T> *C)
{
    const int64_t pieces = fsi_div_up(C->cols, V), length = g->list->count / (C->rows > 0 ? C->rows : 1);
    C->column_lanes = 1;
    while (C->column_lanes < 32 && C->column_lanes < pieces) C->column_lanes *= 2;
    C->tiles = fsi_div_up(pieces, C->column_lanes);
    C->entry_lanes = 1;
    for (;;) {
        const int team = C->column_lanes * C->entry_lanes;
        if (team == THREADS || length < 8 * C->entry_lanes) return;
        if (team >= 32 && C->rows * C->tiles * team >= ENOUGH_THREADS) return;
        C->entry_lanes *= 2;
    }
}

template <class T, int V> static fs_result gather_launch(fsi_gpu *gpu, const fsi_gather *g)
{
    typedef typename fsi_sum<T>::type Sum;
    gather_call<T> C = {};
    C.word = g->list->words.now;
    C.start = g->list->start;
    C.minor_mask = ((uint64_t)1 << g->list->minor_bits) - 1;
    C.rows = g->list->majors;
    C.cols = g->to.cols;
    C.from = fsi_input_of<T>(&g->from);
    C.sums = (Sum *)g->sums.data;
    C.sums_row = g->sums.row_stride;
    C.sums_col = g->sums.col_stride;
    C.first = g->first;
    C.last = g->last;
    C.wide = fsi_wide(&g->to);
    C.to = fsi_output_of(&g->to, g->factor, g->beta);
    C.heavy = g->heavy;
    C.heavy_factor = g->heavy_factor;
    shape_team<T, V>(g, &C);
    const int64_t teams = THREADS / (C.column_lanes * C.entry_lanes), blocks = fsi_div_up(C.rows * C.tiles, teams);
    if (blocks > INT32_MAX)
        return gpu->host.fail(FS_EUNSUPPORTED, "a product of %lld x %lld needs more thread blocks than CUDA launches",
                              (long long)C.rows, (long long)C.cols);
    gather_rows<T, V><<<(unsigned)blocks, THREADS, 0, gpu->stream>>>(C);
    return FSI_LAUNCHED(gpu, "gathering rows");
}

fs_result fsi_gpu_gather(fsi_gpu *gpu, const fsi_gather *g)
{
    if (g->list->majors == 0 || g->to.cols == 0) return FS_OK;
#define GATHER(T, V) gather_launch<T, V>(gpu, g)
    return FSI_BY_PIECE(&g->from, GATHER);
#undef GATHER
}

/* turning ---------------------------------------------------------------------------------------------------- */

/* to[i pitch + j] = from(i, j): squares of 32 x 32 through shared memory, lanes along rows' numbers in, columns
 * out.  U is any type of the element's size. */
template <class U> static __global__ void __launch_bounds__(THREADS)
    turn(const U *from, int64_t row_stride, int64_t col_stride, int64_t rows, int64_t cols, U *to, int64_t pitch)
{
    __shared__ U square[32][33];
    const int64_t across = fsi_div_up(cols, 32), i0 = blockIdx.x / across * 32, j0 = blockIdx.x % across * 32;
    const int x = threadIdx.x % 32;
    for (int y = threadIdx.x / 32; y < 32; y += THREADS / 32)
        if (i0 + x < rows && j0 + y < cols) square[y][x] = from[(i0 + x) * row_stride + (j0 + y) * col_stride];
    __syncthreads();
    for (int y = threadIdx.x / 32; y < 32; y += THREADS / 32)
        if (i0 + y < rows && j0 + x < cols) to[(i0 + y) * pitch + j0 + x] = square[x][y];
}

static fs_result turn_tile(fsi_gpu *gpu, const fs_matrix *from, const fs_matrix *to)
{
    const int64_t blocks = fsi_div_up(to->rows, 32) * fsi_div_up(to->cols, 32);
    if (blocks == 0) return FS_OK;
#define TURN(U) \
    turn<U><<<(unsigned)blocks, THREADS, 0, gpu->stream>>>((const U *)from->data, from->row_stride, from->col_stride, \
                                                           to->rows, to->cols, (U *)to->data, to->row_stride)
    if (fsi_dtype_size(from->dtype) == 8) TURN(uint64_t);
    else if (fsi_dtype_size(from->dtype) == 4) TURN(uint32_t);
    else TURN(uint16_t);
#undef TURN
    return FSI_LAUNCHED(gpu, "turning a panel");
}

/* the SJLT --------------------------------------------------------------------------------------------------- */

/* How A is cut: panels of rows with a list each, and tiles of columns if panels are transposed. */
typedef struct sorted_plan {
    int turned;
    int64_t panel, tile, pitch;
    int lists;
} sorted_plan;

static sorted_plan plan_panels(const fsi_blockperm *B, const fs_matrix *A)
{
    const int64_t each = B->kappa * B->s, bytes = fsi_dtype_size(A->dtype), rows = fsi_max(A->rows, 1);
    sorted_plan p;
    p.turned = A->cols > 1 && !fsi_view_is_row_major(A);
    p.panel = fsi_min(rows, each < LIST ? LIST / each : 1);
    if (p.turned) p.panel = fsi_min(p.panel, TURNED_ROWS);
    p.tile = A->cols;
    if (p.turned) p.tile = fsi_min(A->cols, fsi_round_up(TURNED_BYTES / (p.panel * bytes), 32));
    p.pitch = fsi_round_up(p.tile, 16 / bytes);
    p.lists = (int)fsi_min(fsi_div_up(rows, p.panel), INT32_MAX);
    return p;
}

/* One panel: g has everything but the columns.  Where the panel is transposed, `from` is the transposed tile. */
static fs_result multiply_panel(fsi_gpu *gpu, const sorted_plan *p, const fsi_gather *g, int64_t rows, void *turned)
{
    for (int64_t c = 0; c < g->to.cols; c += p->tile) {
        fsi_gather slice = *g;
        slice.from = fsi_matrix_from(&g->from, 0, c);
        slice.to = fsi_matrix_from(&g->to, 0, c);
        slice.sums = fsi_matrix_from(&g->sums, 0, c);
        slice.to.cols = fsi_min(p->tile, slice.to.cols);
        if (p->turned) {
            const fs_matrix tile = {turned, rows, slice.to.cols, p->pitch, 1, 0, 0, g->from.dtype, FS_MEMORY_CUDA};
            FSI_TRY(turn_tile(gpu, &slice.from, &tile));
            slice.from = tile;
        }
        FSI_TRY(fsi_gpu_gather(gpu, &slice));
    }
    return FS_OK;
}

static fs_result launch_sorted_nonzeros(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                        const fsi_operands *o)
{
    const fsi_blockperm *B = o->S;
    const fs_matrix *A = o->from, *Y = o->to;
    const sorted_plan p = plan_panels(B, A);
    const fs_dtype sum = fsi_dtype_sum(A->dtype);
    fsi_def S;
    S.family = FSI_DEF_BLOCKPERM;
    S.scale = o->scale;
    S.u.blockperm = *B;
    if (Y->cols == 0) return FS_OK;

    fsi_nonzeros list;
    void *scratch;
    int64_t bytes = 0;
    FSI_TRY(fsi_nonzeros_plan(gpu, &S, {0, B->k, o->row0, p.panel}, FSI_BY_ROW, 1, &list, &bytes));
    const int64_t sums_at = fsi_sums_plan(Y, B->k, Y->cols, o->beta, sum, p.lists, &bytes);
    const int64_t turned_at = p.turned ? fsi_take(&bytes, p.panel * p.pitch * fsi_dtype_size(A->dtype)) : 0;
    FSI_TRY(fsi_gpu_scratch(gpu, bytes, &scratch));
    fsi_nonzeros_place(&list, scratch);

    for (int64_t i = 0; i == 0 || i < A->rows; i += p.panel) {
        const int64_t rows = fsi_min(p.panel, A->rows - i);
        FSI_TRY(fsi_nonzeros_fill(gpu, &S, {0, B->k, o->row0 + i, rows}, &list));
        fsi_gather g = {};
        g.list = &list;
        g.from = fsi_matrix_from(A, i, 0);
        g.to = *Y;
        g.sums = fsi_sums_at(Y, Y->cols, sum, sums_at, scratch);
        g.first = i == 0;
        g.last = i + rows >= A->rows;
        g.beta = o->beta;
        g.factor = o->alpha * o->scale;
        FSI_TRY(multiply_panel(gpu, &p, &g, rows, (char *)scratch + turned_at));
    }
    return FS_OK;
}

const fsi_kernel_code fsi_kernel_sorted_nonzeros_code = {launch_sorted_nonzeros, NULL};
