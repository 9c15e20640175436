/* blockrow.cu - FlashBlockRow: a row of Y is a signed sum of the kappa s rows of A that it samples.
 *
 * Apply gathers.  A thread block computes a few rows of one block row g, so that it finds the neighbours of g once; a
 * thread for each draw stores its coordinate and sign in a table in shared memory, then all threads read the rows of A
 * in the table, LOADS of them in flight together, and keep the sums in registers.  Only sampled rows are read, with an
 * evict-first hint, so that Y stays in L2.
 *
 * The adjoint adds row i of Y to every row of X that i drew: the draws are sorted by column, and a row of X is
 * gathered from its list (nonzeros.cuh).  Columns that no thread drew have an empty list and become beta X.
 *
 * Blocks of A may have two sizes and so two weights (fsi_gpu_weights).  In apply each weight has sums of its own, which
 * are weighted and added at the end; in the adjoint a row of X has one weight. */
#include "cuda/runtime/gpu.h"
#include "cuda/families/nonzeros.cuh"
#include "cuda/runtime/vector_load.cuh"

enum { THREADS = 256 };
enum { LOADS = 4 };              /* default draws of a row: kappa s = 4 */
enum { TABLE = 2048 };           /* draws in shared memory, a multiple of LOADS for each row at once */
enum { ROWS = 4 };               /* rows that a thread block computes at least, if g has as many */
enum { LIST = 1 << 23 };         /* draws in a list of the adjoint: 128 MiB of words */
enum { ADJOINT_ROWS = 1 << 22 }; /* rows of X with one list: 32 MiB of pointers */

/* A draw in the table: row of A << 3 | 4 | (2 if heavy) | (1 if minus); NONE for a draw outside A and past the last. */
enum { MINUS = 1, HEAVY = 2, HERE = 4, NONE = 0 };

template <class T> struct sample_call {
    fsi_blockrow R;
    int64_t row0, rows, cols; /* of A */
    int64_t groups, tiles;    /* thread blocks of a block row, and of a row */
    int lanes;                /* threads along a row, a power of two: THREADS / lanes rows at once */
    int passes;               /* times so many rows; 1 where the table cannot hold all draws of all rows */
    int64_t heavy;            /* columns below it have weight 1; 0: there is one weight */
    double factor[2];         /* alpha times the weights */
    fsi_input<T> from;
    fsi_output to;
    int wide; /* fsi_wide of Y */
};

template <class T>
static __device__ uint64_t sample_draw(const sample_call<T> &C, const fsi_neighbours *near, int64_t i, uint32_t e)
{
    int minus;
    const int64_t h = fsi_blockrow_neighbour(near, e / (uint32_t)C.R.s);
    const int64_t j = fsi_blockrow_draw(&C.R, i, h, e, &minus), at = j - C.row0;
    if (at < 0 || at >= C.rows) return NONE;
    return (uint64_t)at << 3 | HERE | (j < C.heavy ? HEAVY : 0) | (minus ? MINUS : 0);
}

/* Adds `width` draws of one row, a multiple of LOADS, to the sums of their weights: `count` columns from col on; WHOLE:
 * count is V. */
template <class T, int V, bool WHOLE>
static __device__ __forceinline__ void sample_add(const sample_call<T> &C, const uint64_t *draw, int width, int64_t col,
                                                  int count, typename fsi_sum<T>::type *light,
                                                  typename fsi_sum<T>::type *heavy)
{
    const T *from = C.from.data + col * C.from.col_stride;
    for (int e = 0; e < width; e += LOADS) {
        fsi_vector<T, V> x[LOADS];
#pragma unroll
        for (int u = 0; u < LOADS; u++)
            x[u] = fsi_vector_load<T, V, WHOLE, true>(from + (int64_t)(draw[e + u] >> 3) * C.from.row_stride,
                                                      draw[e + u] & HERE ? count : 0);
#pragma unroll
        for (int u = 0; u < LOADS; u++) {
            const int word = (int)draw[e + u];
            if (word & HEAVY) fsi_vector_add<T, V>(x[u], word & MINUS, heavy);
            else fsi_vector_add<T, V>(x[u], word & MINUS, light);
        }
    }
}

template <class T, int V> static __global__ void __launch_bounds__(THREADS, 3)
    sample_rows(const __grid_constant__ sample_call<T> C)
{
    typedef typename fsi_sum<T>::type Sum;
    __shared__ fsi_neighbours near;
    __shared__ uint64_t table[TABLE];
    const int at_once = THREADS / C.lanes;
    const int64_t tile = blockIdx.x % C.tiles, group = blockIdx.x / C.tiles % C.groups;
    const int64_t g = blockIdx.x / C.tiles / C.groups;
    const int64_t col = (tile * C.lanes + threadIdx.x % C.lanes) * V;
    const int64_t begin = fsi_split_start(&C.R.out, g) + group * at_once * C.passes;
    const int64_t end = fsi_min(begin + at_once * C.passes, fsi_split_start(&C.R.out, g) + fsi_split_size(&C.R.out, g));
    const int64_t draws = C.R.kappa * C.R.s, chunk = TABLE / (at_once * C.passes);

    /* 1. The neighbours of g. */
    if (begin >= end) return;
    if (threadIdx.x == 0) near = fsi_blockrow_neighbours(&C.R, g);
    for (int64_t first = begin; first < end; first += at_once) {
        const int64_t i = first + threadIdx.x / C.lanes;
        const int count = i < end && col < C.cols ? (int)fsi_min(V, C.cols - col) : 0;
        Sum light[V] = {}, heavy[V] = {};
        for (int64_t e = 0; e < draws; e += chunk) {
            /* 2. The draws of all rows: in the first pass, because there is one chunk, or one pass. */
            const int width = (int)fsi_round_up(fsi_min(chunk, draws - e), LOADS);
            if (first == begin) {
                __syncthreads();
                for (int x = threadIdx.x; x < (int)(end - begin) * width; x += THREADS) {
                    const int64_t number = e + x % width;
                    table[x] = number < draws ? sample_draw(C, &near, begin + x / width, (uint32_t)number) : NONE;
                }
                __syncthreads();
            }
            /* 3. The rows of A in them. */
            const uint64_t *draw = table + (i - begin) * width;
            if (count == V) sample_add<T, V, true>(C, draw, width, col, V, light, heavy);
            else if (count > 0) sample_add<T, V, false>(C, draw, width, col, count, light, heavy);
        }
        /* 4.  Weighted, if there are two weights, and stored. */
        if (C.heavy != 0) {
#pragma unroll
            for (int v = 0; v < V; v++) light[v] = fsi_weigh(C.factor, light[v], heavy[v]);
        }
        fsi_vector_store<V>(C.to, C.wide, i, col, light, count);
    }
}

template <class T, int V> static fs_result sample_launch(fsi_gpu *gpu, const fsi_blockrow *R, int64_t row0,
                                                         double alpha, const fsi_gpu_weights *w, const fs_matrix *A,
                                                         double beta, const fs_matrix *Y)
{
    const int64_t pieces = fsi_div_up(Y->cols, V), tallest = fsi_split_size(&R->out, 0);
    sample_call<T> C = {};
    C.R = *R;
    C.row0 = row0;
    C.rows = A->rows;
    C.cols = Y->cols;
    C.lanes = 1;
    while (C.lanes < THREADS && C.lanes < pieces) C.lanes *= 2;
    C.passes = THREADS / C.lanes < ROWS && R->kappa * R->s <= TABLE / ROWS ? ROWS * C.lanes / THREADS : 1;
    C.groups = fsi_div_up(tallest, THREADS / C.lanes * C.passes);
    C.tiles = fsi_div_up(pieces, C.lanes);
    C.heavy = w->heavy;
    C.factor[0] = alpha * w->weight[0];
    C.factor[1] = alpha * w->weight[1];
    C.from = fsi_input_of<T>(A);
    C.to = fsi_output_of(Y, C.heavy != 0 ? 1.0 : C.factor[0], beta);
    C.wide = fsi_wide(Y);
    const int64_t blocks = R->M * C.groups * C.tiles;
    if (blocks > INT32_MAX)
        return gpu->host.fail(FS_EUNSUPPORTED, "a product of %lld x %lld needs more thread blocks than CUDA launches",
                              (long long)Y->rows, (long long)Y->cols);
    sample_rows<T, V><<<(unsigned)blocks, THREADS, 0, gpu->stream>>>(C);
    return FSI_LAUNCHED(gpu, "sampling rows");
}

static fsi_def def_of(const fsi_blockrow *R, double scale)
{
    fsi_def S;
    S.family = FSI_DEF_BLOCKROW;
    S.scale = scale;
    S.u.blockrow = *R;
    return S;
}

fs_result fsi_gpu_blockrow_apply(fsi_gpu *gpu, const fsi_blockrow *R, double scale, int64_t row0, double alpha,
                                 const fs_matrix *A, double beta, const fs_matrix *Y)
{
    const fsi_def S = def_of(R, scale);
    const fsi_gpu_weights w = fsi_gpu_weights_of(&S);
    if (Y->cols == 0) return FS_OK;
#define SAMPLE(T, V) sample_launch<T, V>(gpu, R, row0, alpha, &w, A, beta, Y)
    return FSI_BY_PIECE(A, SAMPLE);
#undef SAMPLE
}

fs_result fsi_gpu_blockrow_adjoint(fsi_gpu *gpu, const fsi_blockrow *R, double scale, int64_t row0, double alpha,
                                   const fs_matrix *Y, double beta, const fs_matrix *X)
{
    const fsi_def S = def_of(R, scale);
    const fsi_gpu_weights w = fsi_gpu_weights_of(&S);
    const fs_dtype sum = fsi_dtype_sum(Y->dtype);
    const int64_t each = R->kappa * R->s, tall = fsi_min(X->rows, ADJOINT_ROWS);
    const int64_t panel = fsi_min(R->k, each < LIST ? LIST / each : 1);
    if (X->rows == 0 || X->cols == 0) return FS_OK;

    fsi_nonzeros list;
    void *scratch;
    int64_t bytes = 0;
    FSI_TRY(fsi_nonzeros_plan(gpu, &S, {0, panel, row0, tall}, FSI_BY_COLUMN, 1, &list, &bytes));
    const int64_t sums_at = fsi_sums_plan(X, tall, X->cols, beta, sum, panel < R->k ? 2 : 1, &bytes);
    FSI_TRY(fsi_gpu_scratch(gpu, bytes, &scratch));
    fsi_nonzeros_place(&list, scratch);

    for (int64_t j = 0; j < X->rows; j += tall)
        for (int64_t i = 0; i < R->k; i += panel) {
            const int64_t rows = fsi_min(panel, R->k - i);
            FSI_TRY(fsi_nonzeros_fill(gpu, &S, {i, rows, row0 + j, fsi_min(tall, X->rows - j)}, &list));
            fsi_gather g = {};
            g.list = &list;
            g.from = fsi_matrix_from(Y, i, 0);
            g.to = fsi_matrix_from(X, j, 0);
            g.sums = fsi_sums_at(&g.to, X->cols, sum, sums_at, scratch);
            g.first = i == 0;
            g.last = i + rows == R->k;
            g.beta = beta;
            g.factor = alpha * w.weight[0];
            g.heavy = w.heavy - (row0 + j);
            g.heavy_factor = alpha * w.weight[1];
            FSI_TRY(fsi_gpu_gather(gpu, &g));
        }
    return FS_OK;
}
