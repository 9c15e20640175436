/* gaussian.cu - the dense Gaussian: a matrix product whose left factor is generated while it is multiplied.  Every type
 * and shape on every GPU; gaussian_wgmma.cu takes what it can.
 *
 * S is never in memory.  A thread block generates a tile of its unit entries z in shared memory, four rows to a Philox
 * call, loads a tile of A (or Y), and adds their product to sums in registers: 8 x 8 a thread, or 4 x 4 doubles.  While
 * some warps multiply a pair of tiles, others produce the next.  An entry costs some 50 instructions and is used once
 * for every column of the tile, so tiles are as wide as registers allow.  The adjoint is the same product with tiles of
 * S'.
 *
 * Where the result has fewer tiles than the GPU has room for, the inner dimension is cut into slices; their sums go to
 * scratch and a second kernel adds them in order.  The cut depends on the shapes and the GPU alone, so the same call
 * gives the same bits. */
#include "cuda/families/gaussian.cuh"
#include "cuda/runtime/element.cuh"
#include "cuda/runtime/gpu.h"

/* A kind of kernel: the type of the matrix that is read, the direction, and the tile of the result: 16 x 16 threads,
 * each with runs of 16 bytes (VECTOR sums) down and across.  The narrow tile is for few columns. */
template <class Element, bool IS_ADJOINT, bool IS_WIDE> struct normal_kind {
    typedef Element T;
    typedef typename fsi_sum<T>::type Sum;
    enum {
        ADJOINT = IS_ADJOINT,
        SIDE = 16,
        THREADS = SIDE * SIDE,
        VECTOR = 16 / (int)sizeof(Sum),
        SPAN = SIDE * VECTOR, /* rows or columns that one run of every thread covers */
        RUNS_DOWN = 2,
        RUNS_ACROSS = IS_WIDE ? 2 : 1,
        ROWS = RUNS_DOWN * SPAN,
        COLS = RUNS_ACROSS * SPAN,
        INNER = 16,                   /* of a pair of tiles */
        EACH = INNER * COLS / THREADS /* elements that a thread loads for the right tile */
    };
};

template <class Sum, int VECTOR> struct __align__(16) normal_vector { Sum v[VECTOR]; };

/* Two pairs of tiles, one being multiplied, one being produced; then SPAN rows of finished sums at a time.  Padding is
 * for lanes along rows. */
template <class Kind> union __align__(16) normal_shared
{
    struct {
        typename Kind::Sum left[2][Kind::INNER][Kind::ROWS];
        typename Kind::Sum right[2][Kind::INNER][Kind::COLS + Kind::VECTOR];
    } factor;
    typename Kind::Sum finished[Kind::SPAN][Kind::COLS + 1];
};

/* A call: result = L R with L = z or z', rows x inner, and R = `from`, inner x cols. */
template <class Kind> struct normal_call {
    fsi_gauss G;
    fsi_input<typename Kind::T> from;
    fsi_output to; /* with several slices: scratch, slice p in rows p rows ... (p + 1) rows - 1 */
    int64_t row0;
    int64_t rows, inner, cols;
    int64_t row_tiles, col_tiles;
    int64_t piece; /* inner length of a slice, a multiple of INNER */
    int along_rows_in, along_rows_out;
};

/* The left tile from (row, inner) on: z of S's row i, column row0 + j is in [j][i], the adjoint's in [i][j].  Rows of S
 * past k and columns past its last are generated too; they are multiplied by zeros, or their sums are dropped. */
template <class Kind> static __device__ __forceinline__ void normal_make(const normal_call<Kind> &C, int64_t row,
                                                                         int64_t inner,
                                                                         typename Kind::Sum (*left)[Kind::ROWS])
{
    typedef normal_vector<typename Kind::Sum, Kind::VECTOR> vector;
#pragma unroll 1
    for (int q = threadIdx.x; q < Kind::ROWS * Kind::INNER / 4; q += Kind::THREADS) {
        float z[4];
        if (Kind::ADJOINT) {
            const int m = q % Kind::ROWS, i = q / Kind::ROWS * 4;
            fsi_gauss_four(&C.G, (inner + i) >> 2, C.row0 + row + m, z);
#pragma unroll
            for (int r = 0; r < 4; r++) left[i + r][m] = z[r];
        } else {
            const int m = q % (Kind::ROWS / 4) * 4, j = q / (Kind::ROWS / 4);
            fsi_gauss_four(&C.G, (row + m) >> 2, C.row0 + inner + j, z);
#pragma unroll
            for (int r = 0; r < 4; r += Kind::VECTOR) {
                vector slice;
#pragma unroll
                for (int v = 0; v < Kind::VECTOR; v++) slice.v[v] = z[r + v];
                *(vector *)&left[j][m + r] = slice;
            }
        }
    }
}

/* Where element e of this thread's share of the right tile is: lanes along the direction that is contiguous. */
template <class Kind>
static __device__ __forceinline__ void normal_share(const normal_call<Kind> &C, int e, int *inner, int *col)
{
    const int at = threadIdx.x + e * Kind::THREADS;
    *inner = C.along_rows_in ? at % Kind::INNER : at / Kind::COLS;
    *col = C.along_rows_in ? at / Kind::INNER : at % Kind::COLS;
}
template <class Kind> static __device__ __forceinline__ void normal_load(const normal_call<Kind> &C, int64_t inner,
                                                                         int64_t col,
                                                                         typename Kind::Sum (&share)[Kind::EACH])
{
#pragma unroll
    for (int e = 0; e < Kind::EACH; e++) {
        int j, c;
        normal_share(C, e, &j, &c);
        share[e] = inner + j < C.inner && col + c < C.cols ? C.from.at(inner + j, col + c) : 0;
    }
}
template <class Kind>
static __device__ __forceinline__ void normal_keep(const normal_call<Kind> &C,
                                                   const typename Kind::Sum (&share)[Kind::EACH],
                                                   typename Kind::Sum (*right)[Kind::COLS + Kind::VECTOR])
{
#pragma unroll
    for (int e = 0; e < Kind::EACH; e++) {
        int j, c;
        normal_share(C, e, &j, &c);
        right[j][c] = share[e];
    }
}

/* sum += left' right; this thread's rows and columns are its runs.  Unrolled further, the loop needs more than the 128
 * registers that let two blocks share an SM. */
template <class Kind> static __device__ __forceinline__ void normal_multiply(
    const typename Kind::Sum (*left)[Kind::ROWS], const typename Kind::Sum (*right)[Kind::COLS + Kind::VECTOR],
    typename Kind::Sum (&sum)[Kind::RUNS_DOWN * Kind::VECTOR][Kind::RUNS_ACROSS * Kind::VECTOR])
{
    typedef normal_vector<typename Kind::Sum, Kind::VECTOR> vector;
    const int down = threadIdx.x / Kind::SIDE * Kind::VECTOR, across = threadIdx.x % Kind::SIDE * Kind::VECTOR;
#pragma unroll 2
    for (int j = 0; j < Kind::INNER; j++) {
        vector a[Kind::RUNS_DOWN], b[Kind::RUNS_ACROSS];
#pragma unroll
        for (int r = 0; r < Kind::RUNS_DOWN; r++) a[r] = *(const vector *)&left[j][r * Kind::SPAN + down];
#pragma unroll
        for (int r = 0; r < Kind::RUNS_ACROSS; r++) b[r] = *(const vector *)&right[j][r * Kind::SPAN + across];
#pragma unroll
        for (int m = 0; m < Kind::RUNS_DOWN * Kind::VECTOR; m++)
#pragma unroll
            for (int c = 0; c < Kind::RUNS_ACROSS * Kind::VECTOR; c++)
                sum[m][c] += a[m / Kind::VECTOR].v[m % Kind::VECTOR] * b[c / Kind::VECTOR].v[c % Kind::VECTOR];
    }
}

/* Stores SPAN rows of finished sums from row `row`, column `col` of the result on; the slice's rows begin at
 * `below`. */
template <class Kind>
static __device__ __forceinline__ void normal_write(const normal_call<Kind> &C, int64_t below, int64_t row, int64_t col,
                                                    const typename Kind::Sum (*finished)[Kind::COLS + 1])
{
    for (int e = threadIdx.x; e < Kind::SPAN * Kind::COLS; e += Kind::THREADS) {
        const int m = C.along_rows_out ? e % Kind::SPAN : e / Kind::COLS;
        const int c = C.along_rows_out ? e / Kind::SPAN : e % Kind::COLS;
        if (row + m < C.rows && col + c < C.cols) fsi_output_put(C.to, below + row + m, col + c, finished[m][c]);
    }
}

template <class Kind> static __global__ void __launch_bounds__(Kind::THREADS, 2)
    normal_product(const __grid_constant__ normal_call<Kind> C)
{
    __shared__ normal_shared<Kind> shared;

    /* 1.  Which tile of the result, and which slice of the inner dimension. */
    const int64_t tiles = C.row_tiles * C.col_tiles, piece = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    const int64_t row = tile % C.row_tiles * Kind::ROWS, col = tile / C.row_tiles * Kind::COLS;
    const int64_t begin = piece * C.piece, end = min(begin + C.piece, C.inner);

    /* 2. Sums, a pair of tiles at a time. */
    typename Kind::Sum sum[Kind::RUNS_DOWN * Kind::VECTOR][Kind::RUNS_ACROSS * Kind::VECTOR] = {}, share[Kind::EACH];
    normal_load(C, begin, col, share);
    normal_make(C, row, begin, shared.factor.left[0]);
    normal_keep(C, share, shared.factor.right[0]);
    __syncthreads();
    int now = 0;
    for (int64_t inner = begin; inner < end; inner += Kind::INNER, now ^= 1) {
        if (inner + Kind::INNER < end) {
            normal_load(C, inner + Kind::INNER, col, share);
            normal_make(C, row, inner + Kind::INNER, shared.factor.left[now ^ 1]);
            normal_keep(C, share, shared.factor.right[now ^ 1]);
        }
        normal_multiply<Kind>(shared.factor.left[now], shared.factor.right[now], sum);
        __syncthreads();
    }

    /* 3. Through shared memory to the result, so that lanes may run along its contiguous direction. */
    const int down = threadIdx.x / Kind::SIDE * Kind::VECTOR, across = threadIdx.x % Kind::SIDE * Kind::VECTOR;
#pragma unroll
    for (int r = 0; r < Kind::RUNS_DOWN; r++) {
#pragma unroll
        for (int m = 0; m < Kind::VECTOR; m++)
#pragma unroll
            for (int c = 0; c < Kind::RUNS_ACROSS * Kind::VECTOR; c++)
                shared.finished[down + m][c / Kind::VECTOR * Kind::SPAN + across + c % Kind::VECTOR] =
                    sum[r * Kind::VECTOR + m][c];
        __syncthreads();
        normal_write(C, piece * C.rows, row + r * Kind::SPAN, col, shared.finished);
        __syncthreads();
    }
}

/* to = beta to + factor (slices 0 + 1 + ... in this order); each slice is rows x cols, row-major.  split_reduce.cu adds
 * runs of slices first where there are many, which rounds differently. */
template <class Sum> static __global__ void __launch_bounds__(256)
    normal_add(const Sum *slices, int64_t pieces, int64_t rows, int64_t cols, const __grid_constant__ fsi_output to)
{
    const int64_t size = rows * cols, stride = gridDim.x * (int64_t)blockDim.x;
    for (int64_t at = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; at < size; at += stride) {
        Sum sum = slices[at];
        for (int64_t p = 1; p < pieces; p++) sum += slices[p * size + at];
        fsi_output_put(to, at / cols, at % cols, sum);
    }
}

/* The number of slices: enough to fill every SM with two blocks, but none shorter than 128 and sums of at most 256
 * MiB. */
static int64_t normal_pieces(const fsi_gpu *gpu, int64_t tiles, int64_t inner, int64_t sum_bytes)
{
    const int64_t room = 2 * gpu->traits.processors / tiles, memory = ((int64_t)1 << 28) / sum_bytes;
    const int64_t pieces = fsi_min(room, fsi_min(inner / 128, memory));
    return fsi_max(pieces, 1);
}

static int normal_along_rows(const fs_matrix *m) { return m->cols == 1 || !fsi_view_is_row_major(m); }

/* Scratch: the sums of the slices, if there are several.  The grid is in bounds: a result that needs 2^31 blocks is
 * larger than any memory. */
template <class Kind> static fs_result normal_run(fsi_gpu *gpu, const fsi_gauss *S, double factor, int64_t row0,
                                                  const fs_matrix *from, double beta, const fs_matrix *to)
{
    typedef typename Kind::Sum Sum;
    const fsi_output out = fsi_output_of(to, factor, beta);
    normal_call<Kind> C = {};
    C.G = *S;
    C.from = fsi_input_of<typename Kind::T>(from);
    C.to = out;
    C.row0 = row0;
    C.rows = to->rows;
    C.inner = from->rows;
    C.cols = to->cols;
    C.row_tiles = fsi_div_up(C.rows, Kind::ROWS);
    C.col_tiles = fsi_div_up(C.cols, Kind::COLS);
    C.along_rows_in = normal_along_rows(from);
    C.along_rows_out = normal_along_rows(to);
    const int64_t tiles = C.row_tiles * C.col_tiles, size = C.rows * C.cols;
    int64_t pieces = normal_pieces(gpu, tiles, C.inner, size * (int64_t)sizeof(Sum));
    C.piece = fsi_round_up(fsi_div_up(C.inner, pieces), Kind::INNER);
    if (C.inner) pieces = fsi_div_up(C.inner, C.piece);
    void *slices = NULL;
    if (pieces > 1) {
        FSI_TRY(fsi_gpu_scratch(gpu, pieces * size * (int64_t)sizeof(Sum), &slices));
        const fsi_output scratch = {slices, C.cols, 1, 1.0, 0.0, fsi_dtype_sum(from->dtype)};
        C.to = scratch;
        C.along_rows_out = 0;
    }
    normal_product<Kind><<<(unsigned)(tiles * pieces), Kind::THREADS, 0, gpu->stream>>>(C);
    FSI_TRY(FSI_LAUNCHED(gpu, "the product with a Gaussian"));
    if (pieces == 1) return FS_OK;
    const unsigned blocks = (unsigned)fsi_min(fsi_div_up(size, 256), 1 << 20);
    normal_add<Sum><<<blocks, 256, 0, gpu->stream>>>((const Sum *)slices, pieces, C.rows, C.cols, out);
    return FSI_LAUNCHED(gpu, "adding the slices of the product with a Gaussian");
}

template <class T, bool ADJOINT> static fs_result normal(fsi_gpu *gpu, const fsi_gauss *S, double factor, int64_t row0,
                                                         const fs_matrix *from, double beta, const fs_matrix *to)
{
    typedef normal_kind<T, ADJOINT, false> Narrow;
    typedef normal_kind<T, ADJOINT, true> Wide;
    if (to->rows == 0 || to->cols == 0) return FS_OK;
    return to->cols <= Narrow::COLS ? normal_run<Narrow>(gpu, S, factor, row0, from, beta, to)
                                    : normal_run<Wide>(gpu, S, factor, row0, from, beta, to);
}

FSI_GPU_OP(fsi_gpu_gaussian_apply, fsi_gauss)
{
    if (fsi_gpu_gaussian_has_tiles(gpu, from, to))
        return fsi_gpu_gaussian_tiles(gpu, S, 0, alpha * scale, row0, from, beta, to);
#define RUN(T) normal<T, false>(gpu, S, alpha * scale, row0, from, beta, to)
    return FSI_BY_DTYPE(from->dtype, RUN);
#undef RUN
}
FSI_GPU_OP(fsi_gpu_gaussian_adjoint, fsi_gauss)
{
    if (fsi_gpu_gaussian_has_tiles(gpu, from, to))
        return fsi_gpu_gaussian_tiles(gpu, S, 1, alpha * scale, row0, from, beta, to);
#define RUN(T) normal<T, true>(gpu, S, alpha * scale, row0, from, beta, to)
    return FSI_BY_DTYPE(from->dtype, RUN);
#undef RUN
}
