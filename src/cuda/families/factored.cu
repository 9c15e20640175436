/* factored.cu - the sketch of factored input.
 *
 *     widen      the factors, whatever their types and layouts -> f32, examples side by side (factored.cuh); they are
 *     small, and the reads of a product are then contiguous and from L2
 *     mma_gather.cu  forms products in the registers that multiply them, for BlockPerm-SJLTs with blocks of at most 64
 *     rows; starts while widen runs multiply   materializes X for all other sketches, whose products take longer than
 *     writing and reading it
 *
 * Examples are taken in panels where a copy of all factors would be over 1 GiB, pairs where X would be. */
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/families/factored.cuh"
#include "cuda/families/nonzeros.cuh"
#include "cuda/runtime/ptx.cuh"

namespace {

/* A tile of the copy, and its threads: few, each with many loads in flight, so that mma_gather.cu has room beside them. */
enum { ROWS = 32, EXAMPLES = 64, THREADS = 128, LINES = THREADS / 32, TOGETHER = 32 };
const int64_t most_floats = (int64_t)1 << 28;

/* A factor, or (data NULL) a row of ones. */
typedef struct factor {
    const void *data;
    int64_t row_stride, col_stride;
    int64_t rows, to; /* to: its first row among all of them */
    int64_t tile;     /* its first tile of rows among those of this launch */
    fs_dtype dtype;
} factor;
typedef struct some_factors {
    factor of[TOGETHER];
    int count;
} some_factors;

/* tile[row][example] = a tile of the factor at one token; lanes run along its rows, or along examples. */
template <class T, bool ALONG_ROWS>
__device__ __forceinline__ void read_tile(const factor &f, int64_t row, int64_t example, int64_t examples,
                                          int64_t tokens, int64_t token, float (&tile)[ROWS][EXAMPLES + 1])
{
    enum { COUNT = ROWS * EXAMPLES / THREADS };
    const int lane = threadIdx.x % 32, line = threadIdx.x / 32;
    float x[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int r = ALONG_ROWS ? lane : line + i / 2 * LINES, e = ALONG_ROWS ? line + i * LINES : lane + i % 2 * 32;
        const T *at = (const T *)f.data + (row + r) * f.row_stride + ((example + e) * tokens + token) * f.col_stride;
        x[i] = row + r < f.rows && example + e < examples ? (float)fsi_widen(*at) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int r = ALONG_ROWS ? lane : line + i / 2 * LINES, e = ALONG_ROWS ? line + i * LINES : lane + i % 2 * 32;
        tile[r][e] = x[i];
    }
}
/* Along what is closer in memory. */
template <class T> __device__ __forceinline__ void read_either(const factor &f, int64_t row, int64_t example,
                                                               int64_t examples, int64_t tokens, int64_t token,
                                                               float (&tile)[ROWS][EXAMPLES + 1])
{
    if (llabs(f.row_stride) < llabs(f.col_stride)) read_tile<T, true>(f, row, example, examples, tokens, token, tile);
    else read_tile<T, false>(f, row, example, examples, tokens, token, tile);
}

/* grid: tiles of examples x tokens x tiles of rows, in this order. */
__global__ void __launch_bounds__(THREADS) widen(const __grid_constant__ some_factors from, int64_t tiles,
                                                 int64_t examples, int64_t pitch, int64_t tokens, float *to)
{
    __shared__ float tile[ROWS][EXAMPLES + 1];
    const int lane = threadIdx.x % 32, line = threadIdx.x / 32;
    fsi_start_next_kernel();
    for (int64_t id = blockIdx.x; id < tiles; id += gridDim.x) {
        const int64_t example = id % (pitch / EXAMPLES) * EXAMPLES, next = id / (pitch / EXAMPLES);
        const int64_t token = next % tokens, tile_row = next / tokens;
        int which = 0;
        while (which + 1 < from.count && tile_row >= from.of[which + 1].tile) which++;
        const factor &f = from.of[which];
        const int64_t row = (tile_row - f.tile) * ROWS;
        if (!f.data) tile[0][threadIdx.x % EXAMPLES] = 1.0f;
        else if (f.dtype == FS_F32) read_either<float>(f, row, example, examples, tokens, token, tile);
        else if (f.dtype == FS_F16) read_either<__half>(f, row, example, examples, tokens, token, tile);
        else read_either<__nv_bfloat16>(f, row, example, examples, tokens, token, tile);
        __syncthreads();
#pragma unroll
        for (int i = line; i < ROWS; i += LINES) {
            float *at = to + ((f.to + row + i) * tokens + token) * pitch + example + lane;
            if (row + i >= f.rows) break;
            at[0] = tile[i][lane];
            at[32] = tile[i][lane + 32];
        }
        __syncthreads();
    }
}

fs_result launch(fsi_gpu *gpu, const some_factors *some, int64_t row_tiles, int64_t examples, int64_t pitch,
                 int64_t tokens, float *to)
{
    const int64_t tiles = row_tiles * tokens * (pitch / EXAMPLES);
    widen<<<(unsigned)(tiles < 1 << 20 ? tiles : 1 << 20), THREADS, 0, gpu->stream>>>(*some, tiles, examples, pitch,
                                                                                      tokens, to);
    return FSI_LAUNCHED(gpu, "copying factors");
}

/* All factors, and the row of ones behind them, of `examples` columns of Y from `first` on; TOGETHER of them in a
 * launch. */
fs_result widen_all(fsi_gpu *gpu, const fsi_products *p, int64_t first, int64_t examples, int64_t pitch, float *to)
{
    some_factors some = {};
    int64_t row = 0, row_tiles = 0;
    for (int f = 0; f <= p->factor_count; f++) {
        factor one = {NULL, 1, 1, 1, row, row_tiles, FS_F32};
        if (f < p->factor_count) {
            const fs_matrix *F = &p->factors[f];
            const int64_t at = F->offset + first * p->tokens * F->col_stride;
            one = {(const char *)F->data + at * fsi_dtype_size(F->dtype),
                   F->row_stride,
                   F->col_stride,
                   F->rows,
                   row,
                   row_tiles,
                   F->dtype};
        }
        some.of[some.count++] = one;
        row += one.rows;
        row_tiles += fsi_div_up(one.rows, ROWS);
        if (some.count < TOGETHER && f < p->factor_count) continue;
        if (row_tiles > 0) FSI_TRY(launch(gpu, &some, row_tiles, examples, pitch, p->tokens, to));
        some.count = 0;
        row_tiles = 0;
    }
    return FS_OK;
}

/* X, `pitch` floats a row, of `count` pairs; four examples a thread. */
__global__ void multiply(const __grid_constant__ fsi_factors F, int64_t count, int64_t pitch, float *X)
{
    const int64_t across = pitch / 4;
    for (int64_t e = fsi_first_item(); e < count * across; e += fsi_item_step()) {
        const int64_t i = e / across, example = e % across * 4;
        const int2 pair = fsi_pair_at(F, i);
        const float none = fsi_no_row();
        float4 sum = make_float4(none, none, none, none);
        if (pair.x >= 0) {
            const char *a = fsi_factor_at(F, pair.x, example), *b = fsi_factor_at(F, pair.y, example);
            float4 x = *(const float4 *)a, y = *(const float4 *)b;
            sum = make_float4(__fmul_rn(x.x, y.x), __fmul_rn(x.y, y.y), __fmul_rn(x.z, y.z), __fmul_rn(x.w, y.w));
            for (int t = 1; t < F.tokens; t++) {
                a += F.token, b += F.token;
                x = *(const float4 *)a, y = *(const float4 *)b;
                sum = make_float4(__fmaf_rn(x.x, y.x, sum.x), __fmaf_rn(x.y, y.y, sum.y), __fmaf_rn(x.z, y.z, sum.z),
                                  __fmaf_rn(x.w, y.w, sum.w));
            }
        }
        *(float4 *)(X + i * pitch + example) = sum;
    }
}

/* X is formed and multiplied by S, `most` pairs at a time. */
fs_result by_way_of_X(fsi_gpu *gpu, const fsi_def *S, int64_t row0, double alpha, fsi_factors F, int64_t count,
                      int64_t most, int64_t pitch, float *X, double beta, const fs_matrix *to)
{
    int64_t first = 0;
    do {
        fs_matrix from = {X, fsi_min(count - first, most), to->cols, pitch, 1, 0, 0, FS_F32, FS_MEMORY_CUDA};
        if (from.rows > 0) {
            FSI_LOOP(gpu, multiply, from.rows * pitch / 4)(F, from.rows, pitch, X);
            FSI_TRY(FSI_LAUNCHED(gpu, "multiplying factors"));
        }
        FSI_TRY(fsi_gpu_product(gpu, S, 0, row0 + first, alpha, &from, first ? 1.0 : beta, to));
        F.pairs += 2 * from.rows;
        first += from.rows;
    } while (first < count);
    return FS_OK;
}

/* The product of `n` examples by a kernel that multiplies factors itself; .plan.kernel is FSI_KERNEL_NONE where there is
 * none.  `X` is the shape of the products. */
typedef struct direct_product {
    fs_matrix X;
    fsi_problem problem;
    fsi_plan plan;
} direct_product;

direct_product plan_direct(const fsi_gpu *gpu, const fsi_def *S, int64_t row0, int64_t count, int64_t n)
{
    direct_product d = {{NULL, count, n, n, 1, 0, 0, FS_F32, FS_MEMORY_CUDA}, {}, {}};
    if ((S->family != FSI_DEF_BLOCKPERM && S->family != FSI_DEF_SJLT) || count == 0) return d;
    d.problem = fsi_problem_of(&S->u.blockperm, row0, &d.X, gpu->precision);
    d.problem.input = FSI_INPUT_FACTORED;
    d.plan = fsi_choose(&d.problem, &gpu->traits, gpu->tuning);
    return d;
}

}  // namespace

fs_result fsi_gpu_products_apply(fsi_gpu *gpu, const fsi_def *S, int64_t row0, double alpha, const fsi_products *p,
                                 double beta, const fs_matrix *to)
{
    if (to->rows == 0 || to->cols == 0) return FS_OK;
    const int64_t count = p->pairs->count, rows = p->width + 1, most_tokens = ((int64_t)1 << 30) / EXAMPLES - 1;
    if (p->tokens > most_tokens)
        return gpu->host.fail(FS_EUNSUPPORTED, "fs_apply_products: %lld tokens, a GPU takes at most %lld",
                              (long long)p->tokens, (long long)most_tokens);
    const int64_t fit = most_floats / (rows * p->tokens) / EXAMPLES * EXAMPLES;
    const int64_t all = fsi_round_up(to->cols, EXAMPLES), pitch = fit < all ? fsi_max(fit, EXAMPLES) : all;
    direct_product direct = plan_direct(gpu, S, row0, count, fsi_min(to->cols, pitch));
    const int is_direct = direct.plan.kernel != FSI_KERNEL_NONE;
    const int64_t pairs = is_direct ? 0 : fsi_min(count, fsi_max(most_floats / pitch, 1));
    void *memory;
    FSI_TRY(fsi_gpu_take(gpu, &gpu->copies, 4 * pitch * (rows * p->tokens + pairs), &memory));
    float *F = (float *)memory, *X = F + rows * p->tokens * pitch;
    const fsi_factors factors = {F,
                                 p->pairs->index,
                                 (uint32_t)(4 * pitch * p->tokens),
                                 (uint32_t)(4 * pitch),
                                 (int32_t)p->width,
                                 (int32_t)p->tokens};
    for (int64_t first = 0; first < to->cols; first += pitch) {
        fs_matrix some = *to;
        some.data = (float *)to->data + first * to->col_stride;
        some.cols = fsi_min(to->cols - first, pitch);
        FSI_TRY(widen_all(gpu, p, first, some.cols, pitch, F));
        if (is_direct) {
            if (some.cols != direct.X.cols) direct = plan_direct(gpu, S, row0, count, some.cols);
            const fsi_operands operands = {&S->u.blockperm, S->scale, row0, alpha, &direct.X, NULL,
                                           &factors,        beta,     &some};
            FSI_TRY(fsi_gpu_blockperm_run(gpu, &direct.problem, &direct.plan, &operands));
        } else FSI_TRY(by_way_of_X(gpu, S, row0, alpha, factors, count, pairs, pitch, X, beta, &some));
    }
    return FS_OK;
}
