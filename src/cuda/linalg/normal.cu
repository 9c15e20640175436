/* normal.cu - U = A P, and W += A'(A P - B) in one read of A, for tall A with few right-hand sides.
 *
 * A thread block takes tiles of R whole rows of A, a fixed set of them: tile t belongs to block t mod grid.  A tile is
 * loaded to shared memory once, in A's type, and read there twice:
 *
 *     1. U = A P - B     `lanes` lanes of a warp share a row, Q rows at once so that P is loaded for all of them
 *     2. W += A'U        a thread has two neighbouring columns and a part of the tile's rows
 *
 * Both are FMAs in f64, whatever the type of A: the sums of one element of U err by at most (n / lanes + 7) u
 * relative to |A| |P|, u = 2^-53, those of W by at most (rows / grid / parts + parts + grid) u relative to |A'| |U|.  M
 * right-hand sides are processed at once; the tile stays in shared memory for the following ones.
 *
 * Every block has sums of its own, in shared memory where they fit; split_reduce.cu adds them in a fixed order.  The
 * order of sums depends on the shape and type of A, m and the GPU, not on strides or on time.
 *
 * Where eight rows do not fit shared memory, and above MOST_RHS right-hand sides, products.cu takes over. */
#include "cuda/linalg/products.h"
#include "cuda/runtime/element.cuh"
#include "cuda/runtime/ptx.cuh"
#include "cuda/runtime/split_reduce.cuh"
#include "cuda/runtime/vector_load.cuh"

namespace {

enum { WARPS = 8, THREADS = 32 * WARPS, BATCH = 8 };
enum { MOST_RHS = 16, LEAST_ROWS = 8, MOST_ROWS = 256, MOST_PARTS = 32, AT_ONCE = 4 };
const int64_t PARTIAL_BYTES = 1 << 27; /* of all blocks' sums */
#define ALL_LANES 0xFFFFFFFFu

/* How a tile is loaded: 16 bytes at a time (cp.async), or by elements with neighbouring threads along columns of A or
 * down its rows. */
typedef enum load_mode { WIDE, ACROSS, DOWN } load_mode;

typedef struct normal_call {
    const void *A;
    int64_t row_stride, col_stride, rows;
    int n, even;        /* columns; rounded up to an even number, the last one of zeros */
    int pitch;          /* elements from row to row of a tile */
    int tile_rows;      /* R */
    int lanes;          /* that share a row in step 1: a power of two */
    int load_shift;     /* log2 of the threads that load a row together */
    int parts;          /* of a tile's rows in step 2 */
    int sums_in_shared; /* sums of W: parts x M x even numbers there, or the block's partial sums themselves */
    load_mode mode;
    int m;
    const double *P;
    const void *B; /* NULL: 0 */
    int64_t b_row_stride, b_col_stride;
    fs_dtype b_dtype;
    double *U;                         /* product: m x rows; NULL: normal */
    double *partial, *partial_squares; /* of each block: m x n (n contiguous), m */
} normal_call;

__device__ __forceinline__ double element_of(const void *data, fs_dtype dtype, int64_t at)
{
    if (dtype == FS_F64) return ((const double *)data)[at];
    if (dtype == FS_F32) return (double)((const float *)data)[at];
    if (dtype == FS_F16) return (double)fsi_widen(((const __half *)data)[at]);
    return (double)fsi_widen(((const __nv_bfloat16 *)data)[at]);
}

/* loads ------------------------------------------------------------------------------------------------------ */

/* 16 aligned bytes: the first `count` elements, the others zero. */
template <class T> __device__ __forceinline__ void copy_chunk(T *to, const T *from, int count)
{
#if __CUDA_ARCH__ >= 800
    fsi_copy16_part(fsi_shared_address(to), from, count * (int)sizeof(T));
#else
    for (int v = 0; v < 16 / (int)sizeof(T); v++) to[v] = v < count ? from[v] : (T)0.0f;
#endif
}

/* Rows row0 ... row0 + count - 1 of A, columns from n to `even` - 1 zero.  Loaded only after load_end and a barrier. */
template <class T> __device__ __forceinline__ void load_tile(const normal_call &C, int64_t row0, int count, T *tile)
{
    const T *from = (const T *)C.A + row0 * C.row_stride;
    if (C.mode == WIDE) {
        const int each = 16 / (int)sizeof(T), chunks = (C.n + each - 1) / each, threads = 1 << C.load_shift;
        for (int r = threadIdx.x >> C.load_shift; r < count; r += THREADS >> C.load_shift)
            for (int c = threadIdx.x & (threads - 1); c < chunks; c += threads) {
                const int left = C.n - c * each;
                copy_chunk(tile + r * C.pitch + c * each, from + r * C.row_stride + c * each,
                           left < each ? left : each);
            }
        return;
    }
    /* Neighbouring threads differ in `fast`; each has up to BATCH loads in flight, which differ in `slow`. */
    const bool down = C.mode == DOWN;
    const int shift = down ? 5 : C.load_shift, step = THREADS >> shift;
    const int fasts = down ? count : C.even, slows = down ? C.even : count;
    for (int fast = threadIdx.x & ((1 << shift) - 1); fast < fasts; fast += 1 << shift)
        for (int slow = threadIdx.x >> shift; slow < slows; slow += BATCH * step) {
            T x[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                const int s = slow + k * step, i = down ? fast : s, j = down ? s : fast;
                x[k] = s < slows && j < C.n ? from[i * C.row_stride + j * C.col_stride] : (T)0.0f;
            }
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                const int s = slow + k * step, i = down ? fast : s, j = down ? s : fast;
                if (s < slows) tile[i * C.pitch + j] = x[k];
            }
        }
}
__device__ __forceinline__ void load_end(void)
{
    fsi_copy_commit();
    fsi_copy_wait<0>();
}

/* Columns c0 ... c0 + M - 1 of P; columns that do not exist and elements from n on are zero. */
template <int M> __device__ __forceinline__ void load_P(const normal_call &C, int c0, double *P)
{
    for (int e = threadIdx.x; e < M * C.even; e += THREADS) {
        const int c = e / C.even, j = e - c * C.even;
        P[e] = c0 + c < C.m && j < C.n ? C.P[(int64_t)(c0 + c) * C.n + j] : 0.0;
    }
}
/* U = B, for step 1 to subtract. */
template <int M>
__device__ __forceinline__ void load_B(const normal_call &C, int c0, int64_t row0, int count, double *U)
{
    for (int e = threadIdx.x; e < M * C.tile_rows; e += THREADS) {
        const int c = e / C.tile_rows, r = e - c * C.tile_rows;
        U[e] = C.B && c0 + c < C.m && r < count
                   ? element_of(C.B, C.b_dtype, (row0 + r) * C.b_row_stride + (c0 + c) * C.b_col_stride)
                   : 0.0;
    }
}

/* products --------------------------------------------------------------------------------------------------- */

/* Step 1: U = A P - U for `count` rows. */
template <class T, int Q, int M>
__device__ __forceinline__ void multiply(const normal_call &C, int count, const T *tile, const double *P, double *U)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int groups = 32 / C.lanes, sub = lane & (C.lanes - 1), step = WARPS * groups;
    for (int base = warp * groups + lane / C.lanes; base - (warp * groups + lane / C.lanes) < count; base += Q * step) {
        double sum[Q][M] = {};
        const T *row[Q];
#pragma unroll
        for (int q = 0; q < Q; q++) {
            const int r = base + q * step;
            row[q] = tile + (r < count ? r : count - 1) * C.pitch; /* a row too many is not stored */
        }
        for (int j = 2 * sub; j < C.even; j += 2 * C.lanes) {
            double2 p[M];
#pragma unroll
            for (int c = 0; c < M; c++) p[c] = *(const double2 *)(P + c * C.even + j);
#pragma unroll
            for (int q = 0; q < Q; q++) {
                const pack<T, 2> x = *(const pack<T, 2> *)(row[q] + j);
                const double x0 = (double)fsi_widen(x.x[0]), x1 = (double)fsi_widen(x.x[1]);
#pragma unroll
                for (int c = 0; c < M; c++) sum[q][c] = fma(x1, p[c].y, fma(x0, p[c].x, sum[q][c]));
            }
        }
        for (int offset = C.lanes / 2; offset > 0; offset /= 2)
#pragma unroll
            for (int q = 0; q < Q; q++)
#pragma unroll
                for (int c = 0; c < M; c++) sum[q][c] += __shfl_xor_sync(ALL_LANES, sum[q][c], offset);
        if (sub == 0)
#pragma unroll
            for (int q = 0; q < Q; q++)
#pragma unroll
                for (int c = 0; c < M; c++)
                    if (base + q * step < count)
                        U[c * C.tile_rows + base + q * step] = sum[q][c] - U[c * C.tile_rows + base + q * step];
    }
}

/* Step 2: sums += A'U.  An element of `sums` belongs to one thread for the whole of the kernel. */
template <class T, int M> __device__ __forceinline__ void multiply_back(const normal_call &C, int c0, int count,
                                                                        const T *tile, const double *U, double *sums)
{
    const int pairs = C.even / 2;
    for (int item = threadIdx.x; item < C.parts * pairs; item += THREADS) {
        const int part = item / pairs, j = 2 * (item - part * pairs);
        const int first = count * part / C.parts, last = count * (part + 1) / C.parts;
        const T *at = tile + first * C.pitch + j;
        double sum[M][2] = {};
#pragma unroll 4
        for (int r = first; r < last; r++, at += C.pitch) {
            const pack<T, 2> x = *(const pack<T, 2> *)at;
            const double x0 = (double)fsi_widen(x.x[0]), x1 = (double)fsi_widen(x.x[1]);
#pragma unroll
            for (int c = 0; c < M; c++) {
                const double u = U[c * C.tile_rows + r];
                sum[c][0] = fma(x0, u, sum[c][0]);
                sum[c][1] = fma(x1, u, sum[c][1]);
            }
        }
#pragma unroll
        for (int c = 0; c < M; c++) {
            if (C.sums_in_shared) {
                double2 *to = (double2 *)(sums + (part * M + c) * C.even + j);
                *to = make_double2(to->x + sum[c][0], to->y + sum[c][1]);
            } else if (c0 + c < C.m) {
                double *to = sums + (int64_t)(c0 + c) * C.n + j;
                to[0] += sum[c][0];
                if (j + 1 < C.n) to[1] += sum[c][1];
            }
        }
    }
}

/* squares[c0 + c] += |U_c|^2, warp c. */
template <int M>
__device__ __forceinline__ void add_squares(const normal_call &C, int c0, int count, const double *U, double *squares)
{
    const int lane = threadIdx.x % 32, c = threadIdx.x / 32;
    if (c >= M || c0 + c >= C.m) return;
    double sum = 0;
    for (int r = lane; r < count; r += 32) sum = fma(U[c * C.tile_rows + r], U[c * C.tile_rows + r], sum);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, offset);
    if (lane == 0) squares[c0 + c] += sum;
}

template <int M>
__device__ __forceinline__ void store(const normal_call &C, int c0, int64_t row0, int count, const double *U)
{
    for (int e = threadIdx.x; e < M * count; e += THREADS) {
        const int r = e / M, c = e - r * M;
        if (c0 + c < C.m) C.U[c0 + c + (row0 + r) * C.m] = U[c * C.tile_rows + r];
    }
}

/* the kernel ------------------------------------------------------------------------------------------------- */

extern __shared__ double2 normal_shared[]; /* for its alignment, 16 bytes */

/* Q rows at once and M right-hand sides at once; m <= M: P is loaded once. */
template <class T, int Q, int M> __global__ void __launch_bounds__(THREADS, M == 1 ? 3 : 2)
    multiply_rows(const __grid_constant__ normal_call C)
{
    const int R = C.tile_rows;
    double *P = (double *)normal_shared, *U = P + M * C.even, *shared_sums = U + M * R;
    T *tile = (T *)(shared_sums + (C.sums_in_shared ? C.parts * M * C.even : 0));
    double *partial = C.partial + (int64_t)blockIdx.x * C.m * C.n;
    double *squares = C.partial_squares + (int64_t)blockIdx.x * C.m;
    double *sums = C.sums_in_shared ? shared_sums : partial;
    if (!C.U) {
        const int count = C.sums_in_shared ? C.parts * M * C.even : C.m * C.n;
        for (int e = threadIdx.x; e < count; e += THREADS) sums[e] = 0;
        for (int c = threadIdx.x; c < C.m; c += THREADS) squares[c] = 0;
    }
    const bool once = C.m <= M;
    if (once) load_P<M>(C, 0, P);
    const int64_t tiles = (C.rows + R - 1) / R;
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row0 = t * R;
        const int count = (int)(C.rows - row0 < R ? C.rows - row0 : R);
        load_tile(C, row0, count, tile);
        for (int c0 = 0; c0 < C.m; c0 += M) {
            if (!once) load_P<M>(C, c0, P);
            load_B<M>(C, c0, row0, count, U);
            load_end();
            __syncthreads();
            multiply<T, Q, M>(C, count, tile, P, U);
            __syncthreads();
            if (C.U) {
                store<M>(C, c0, row0, count, U);
            } else {
                add_squares<M>(C, c0, count, U, squares);
                multiply_back<T, M>(C, c0, count, tile, U, sums);
            }
            __syncthreads(); /* before the next writes to P, U and the tile */
        }
    }
    if (C.U || !C.sums_in_shared) return;
    for (int e = threadIdx.x; e < C.m * C.n; e += THREADS) {
        const int c = e / C.n, j = e - c * C.n;
        double sum = 0;
        for (int part = 0; part < C.parts; part++) sum += sums[(part * M + c) * C.even + j];
        partial[e] = sum;
    }
}

/* the plan --------------------------------------------------------------------------------------------------- */

typedef struct normal_plan {
    int rows_at_once, rhs_at_once; /* Q, M */
    int grid;
    int64_t shared; /* bytes */
} normal_plan;

/* Fills the rest of C for M right-hand sides at once and `blocks` thread blocks on an SM; 0: no room. */
int plan_for(const fsi_gpu *gpu, int64_t row_bytes, int M, int sums_in_shared, int blocks, normal_call *C,
             normal_plan *plan)
{
    const fsi_gpu_traits *traits = &gpu->traits;
    const int64_t budget = fsi_min(traits->shared, traits->shared_per_processor / blocks - 1024);
    const int pairs = C->even / 2;
    int64_t parts = sums_in_shared ? fsi_min(MOST_PARTS, (M == 1 ? 1024 : 256) / pairs) : 1;
    if (parts < 1) parts = 1;
    const int64_t fixed = 8 * M * (int64_t)C->even * (1 + (sums_in_shared ? parts : 0));
    int64_t rows = (budget - fixed) / (row_bytes + 8 * M) / 8 * 8;
    if (rows < (blocks > 2 ? 32 : LEAST_ROWS)) return 0;
    rows = fsi_min(rows, MOST_ROWS);
    /* As many tiles as blocks, where A is short. */
    const int64_t most_blocks = (int64_t)traits->processors * blocks;
    rows = fsi_min(rows, fsi_round_up(fsi_div_up(C->rows, most_blocks), 8));
    C->tile_rows = (int)rows;
    C->parts = (int)fsi_max(1, fsi_min(parts, rows / 4));
    C->sums_in_shared = sums_in_shared;
    int64_t grid = fsi_min(fsi_div_up(C->rows, rows), most_blocks);
    if (!C->U) grid = fsi_min(grid, fsi_max(1, PARTIAL_BYTES / (8 * (int64_t)C->m * C->n)));
    const int step = WARPS * 32 / C->lanes;
    plan->rows_at_once = rows >= 4 * step ? 4 : rows >= 2 * step ? 2 : 1;
    plan->rhs_at_once = M;
    plan->grid = (int)grid;
    plan->shared = fixed + rows * (row_bytes + 8 * M);
    return 1;
}

/* Whether this kernel can do it: C and *plan.  Neither depends on strides, except for the way a tile is loaded. */
int plan_call(const fsi_gpu *gpu, const fs_matrix *A, normal_call *C, normal_plan *plan)
{
    const int64_t element = fsi_dtype_size(A->dtype);
    if (C->m > MOST_RHS || A->cols > 65536) return 0;
    C->n = (int)A->cols;
    C->even = (int)fsi_round_up(A->cols, 2);
    /* From row to row 16 bytes beyond a multiple of 128: rows begin in other banks. */
    int64_t row_bytes = fsi_round_up(A->cols * element, 16);
    if (row_bytes % 128 == 0) row_bytes += 16;
    C->pitch = (int)(row_bytes / element);
    for (C->lanes = 4; C->lanes < 32 && 8 * C->lanes < C->even;) C->lanes *= 2;
    C->mode = fsi_wide(A) ? WIDE : llabs(A->row_stride) < llabs(A->col_stride) ? DOWN : ACROSS;
    const int64_t loads = C->mode == WIDE ? row_bytes / 16 : C->even;
    for (C->load_shift = 0; C->load_shift < 5 && 1 << C->load_shift < loads;) C->load_shift++;
    for (int blocks = 3; blocks >= 1; blocks--)
        for (int M = C->m > 1 ? AT_ONCE : 1; M >= 1; M = M > 1 ? 1 : 0)
            for (int sums_in_shared = C->m <= M && !C->U; sums_in_shared >= 0; sums_in_shared--)
                if (plan_for(gpu, row_bytes, M, sums_in_shared, blocks, C, plan)) return 1;
    return 0;
}

template <class T, int Q, int M> fs_result launch(fsi_gpu *gpu, const normal_call &C, const normal_plan &plan)
{
    /* The maximum, not the size of this plan: contexts of other threads launch the same kernel with other plans. */
    FSI_TRY(fsi_gpu_check(gpu,
                          cudaFuncSetAttribute(multiply_rows<T, Q, M>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               (int)gpu->traits.shared),
                          "preparing a product with A"));
    FSI_TRY(fsi_gpu_check(gpu,
                          cudaFuncSetAttribute(multiply_rows<T, Q, M>, cudaFuncAttributePreferredSharedMemoryCarveout,
                                               cudaSharedmemCarveoutMaxShared),
                          "preparing a product with A"));
    multiply_rows<T, Q, M><<<(unsigned)plan.grid, THREADS, (size_t)plan.shared, gpu->stream>>>(C);
    return FSI_LAUNCHED(gpu, "multiplying by A");
}
template <class T> fs_result launch_of(fsi_gpu *gpu, const normal_call &C, const normal_plan &plan)
{
    const int Q = plan.rows_at_once;
    if (plan.rhs_at_once == 1)
        return Q == 4   ? launch<T, 4, 1>(gpu, C, plan)
               : Q == 2 ? launch<T, 2, 1>(gpu, C, plan)
                        : launch<T, 1, 1>(gpu, C, plan);
    return Q == 4   ? launch<T, 4, AT_ONCE>(gpu, C, plan)
           : Q == 2 ? launch<T, 2, AT_ONCE>(gpu, C, plan)
                    : launch<T, 1, AT_ONCE>(gpu, C, plan);
}

/* W += the blocks' sums. */
fs_result reduce(fsi_gpu *gpu, const normal_call &C, int blocks, double *W, double *squares)
{
    const fsi_output to_W = {W, C.n, 1, 1.0, 1.0, FS_F64}, to_squares = {squares, C.m, 1, 1.0, 1.0, FS_F64};
    FSI_TRY(fsi_gpu_split_reduce(gpu, C.partial, blocks, C.m, C.n, 0, FS_F64, &to_W));
    return fsi_gpu_split_reduce(gpu, C.partial_squares, blocks, 1, C.m, 0, FS_F64, &to_squares);
}

/* product (W NULL) or normal. */
fs_result run(void *handle, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B, double *U, double *W,
              double *squares)
{
    fsi_gpu *gpu = ((fsi_gpu_handle *)handle)->gpu;
    on_device here(gpu->device);
    if (A->rows == 0 || A->cols == 0 || m == 0) return fsi_gpu_panel_products(handle, A, m, P, B, U, W, squares);
    normal_call C = {};
    normal_plan plan;
    C.A = A->data, C.row_stride = A->row_stride, C.col_stride = A->col_stride, C.rows = A->rows;
    C.m = (int)m, C.P = P, C.U = U;
    if (B) C.B = B->data, C.b_row_stride = B->row_stride, C.b_col_stride = B->col_stride, C.b_dtype = B->dtype;
    if (!plan_call(gpu, A, &C, &plan)) return fsi_gpu_panel_products(handle, A, m, P, B, U, W, squares);
    if (!U) {
        void *scratch;
        const int64_t count = (int64_t)plan.grid * m * A->cols;
        FSI_TRY(fsi_gpu_scratch(gpu, (count + plan.grid * m) * (int64_t)sizeof(double), &scratch));
        C.partial = (double *)scratch;
        C.partial_squares = C.partial + count;
    }
#define LAUNCH(T) launch_of<T>(gpu, C, plan)
    FSI_TRY(FSI_BY_DTYPE(A->dtype, LAUNCH));
#undef LAUNCH
    return U ? FS_OK : reduce(gpu, C, plan.grid, W, squares);
}

}  // namespace

fs_result fsi_gpu_dense_product(void *handle, const fs_matrix *A, int64_t m, const double *P, double *U)
{
    return run(handle, A, m, P, NULL, U, NULL, NULL);
}
fs_result fsi_gpu_dense_normal(void *handle, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B,
                               double *W, double *squares)
{
    return run(handle, A, m, P, B, NULL, W, squares);
}
