/* pivot.cu - column pivots of a triangle of up to about a thousand columns, in one launch.
 *
 * A QR factorization with column pivots is a chain of n steps: the longest column of what is left becomes q, and all
 * others lose their part along it,
 *
 *     R(s, j) = q'a_j,   a_j -= R(s, j) q          (Gram and Schmidt's, modified)
 *
 * of which R is as good as by reflectors.  Every column lives in the registers of a warp for the whole of it, so that a
 * step costs no memory but that of one column: its warp writes it to global memory, and all thread blocks read it there.
 *
 * A step has one exchange.  Each block publishes the longest of its own columns, before it is known whose is the longest
 * of all, and a word with length, column and step; when a block has seen the words of all for this step, it takes the
 * longest.  Buffers alternate: a block that publishes for step s + 2 has seen all words of step s + 1, and so all others
 * have read what was published for step s.  Lengths are summed anew in each step.  Those that agree in the 20 bits after
 * the first count as equal, of which the column with the lowest number is taken: the same bits from run to run. */
#include <string.h>

#include "cuda/linalg/products.h"

namespace {

enum { WARPS = 8, THREADS = 32 * WARPS, MOST_ROWS = 32 * 32 };
typedef unsigned long long word;

struct exchange {
    word *words;     /* 2 x grid: the upper 20 bits and exponent of a squared length, 0xffff - column, step + 1 */
    double *columns; /* 2 x grid x (n + 1): a column, and its squared length */
    int64_t *order;  /* n: pivots */
    int *count;      /* steps until what is left was 0 */
};

static __device__ __forceinline__ word load_word(const word *at)
{
    word x;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(at) : "memory");
    return x;
}
static __device__ __forceinline__ void release_word(word *at, word x)
{
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(x) : "memory");
}

static __device__ __forceinline__ double sum_of_lanes(double x)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
    return x;
}
static __device__ __forceinline__ word largest_of_lanes(word x)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const word other = __shfl_xor_sync(0xffffffffu, x, offset);
        x = other > x ? other : x;
    }
    return x;
}
static __device__ __forceinline__ word largest_of(const word (&words)[WARPS])
{
    word x = words[0];
#pragma unroll
    for (int w = 1; w < WARPS; w++) x = words[w] > x ? words[w] : x;
    return x;
}

/* Warp w of block b has column WARPS b + w of scale R, R = L': elements lane + 32 q, q < K.  To (i, s), n x n, gets
 * R(s, i) / scale of the pivoted R, column i being that of the given R. */
template <int K> static __global__ void __launch_bounds__(THREADS, 1)
    pivot(int n, const double *L, double scale, double *to, exchange x)
{
    __shared__ double v[32 * K + 1];
    __shared__ word own[WARPS], all[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, grid = (int)gridDim.x;
    const int column = WARPS * (int)blockIdx.x + warp;
    const double over = 1 / scale;
    bool is_left = column < n;
    double a[K], square = 0;
#pragma unroll
    for (int q = 0; q < K; q++) {
        const int k = lane + 32 * q;
        a[q] = is_left && k <= column ? scale * L[column + (int64_t)k * n] : 0.0;
        square = fma(a[q], a[q], square);
    }
    square = sum_of_lanes(square);

#pragma unroll 1
    for (int step = 0; step < n; step++) {
        word *words = x.words + step % 2 * grid;
        double *columns = x.columns + (int64_t)(step % 2) * grid * (n + 1);
        const word tag = (word)(step + 1);
        /* 1. publish the longest column of this block */
        if (lane == 0)
            own[warp] = is_left ? (word)(unsigned)__double2hiint(square) << 32 | (word)(0xffff - column) << 16 : 0;
        __syncthreads();
        const word mine = largest_of(own);
        if (mine ? own[warp] == mine : warp == 0) {
            double *column_there = columns + (int64_t)blockIdx.x * (n + 1);
#pragma unroll
            for (int q = 0; q < K; q++)
                if (lane + 32 * q < n) column_there[lane + 32 * q] = a[q];
            if (lane == 0) column_there[n] = square;
            __syncwarp();
            if (lane == 0) release_word(words + blockIdx.x, mine | tag);
        }
        /* 2. the longest of all */
        word best = 0;
        for (int b = threadIdx.x; b < grid; b += THREADS) {
            word there;
            do there = load_word(words + b);
            while ((there & 0xffff) != tag);
            best = there > best ? there : best;
        }
        __threadfence();
        best = largest_of_lanes(best);
        if (lane == 0) all[warp] = best;
        __syncthreads();
        best = largest_of(all);
        if (best >> 32 == 0) { /* all that is left is 0 */
            if (blockIdx.x == 0 && threadIdx.x == 0) *x.count = step;
            return;
        }
        const int chosen = 0xffff - (int)(best >> 16 & 0xffff);
        const double *from = columns + (int64_t)(chosen / WARPS) * (n + 1);
        for (int k = threadIdx.x; k <= n; k += THREADS) v[k < n ? k : 32 * K] = __ldcg(from + k);
        for (int k = n + threadIdx.x; k < 32 * K; k += THREADS) v[k] = 0;
        __syncthreads();
        /* 3. subtract its part from the columns of this block */
        const double length = sqrt(v[32 * K]);
        if (chosen == column) {
            is_left = false;
            if (lane == 0) to[column + (int64_t)step * n] = length * over, x.order[step] = column;
        } else if (is_left) {
            double dot = 0;
#pragma unroll
            for (int q = 0; q < K; q++) dot = fma(v[lane + 32 * q], a[q], dot);
            dot = sum_of_lanes(dot) / length;
            const double share = dot / length;
            square = 0;
#pragma unroll
            for (int q = 0; q < K; q++) {
                a[q] = fma(-share, v[lane + 32 * q], a[q]);
                square = fma(a[q], a[q], square);
            }
            square = sum_of_lanes(square);
            if (lane == 0) to[column + (int64_t)step * n] = dot * over;
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) *x.count = n;
}

/* What a launch takes: words and the number of steps, which begin as 0; columns; pivots; R. */
struct memory {
    char *at;
    size_t cleared, bytes;
    exchange x;
    double *R;
};
memory lay_out(int64_t n, int64_t grid)
{
    memory m = {};
    m.cleared = (size_t)(2 * grid + 1) * sizeof(word);
    m.bytes = m.cleared + (size_t)(2 * grid * (n + 1) + n + n * n) * sizeof(double);
    return m;
}
void point(memory *m, int64_t n, int64_t grid)
{
    m->x.words = (word *)m->at;
    m->x.count = (int *)(m->x.words + 2 * grid);
    m->x.columns = (double *)(m->at + m->cleared);
    m->x.order = (int64_t *)(m->x.columns + 2 * grid * (n + 1));
    m->R = (double *)(m->x.order + n);
}

const void *kernel_for(int64_t n)
{
    return n <= 256 ? (const void *)pivot<8> : n <= 512 ? (const void *)pivot<16> : (const void *)pivot<32>;
}

/* Whether all thread blocks can run at the same time. */
bool suits(const fsi_gpu *gpu, int64_t n)
{
    int launch = 0;
    if (gpu->traits.arch < 70 || n > MOST_ROWS || fsi_div_up(n, WARPS) > gpu->traits.processors) return false;
    if (cudaDeviceGetAttribute(&launch, cudaDevAttrCooperativeLaunch, gpu->device) == cudaSuccess) return launch != 0;
    cudaGetLastError();
    return false;
}

/* The numbers that are not among the first `count` of order follow them, ascending; false: those are no pivots. */
bool complete(int64_t n, int64_t count, int64_t *order, char *taken)
{
    memset(taken, 0, (size_t)n);
    for (int64_t s = 0; s < count; s++) {
        if (order[s] < 0 || order[s] >= n || taken[order[s]]) return false;
        taken[order[s]] = 1;
    }
    for (int64_t j = 0; j < n; j++)
        if (!taken[j]) order[count++] = j;
    return count == n;
}

fs_result run(void *handle, const memory *m, int64_t n, int64_t grid, double size, double *L, int64_t *pivots)
{
    const fsi_dense *dense = &fsi_gpu_dense;
    fsi_gpu *gpu = ((fsi_gpu_handle *)handle)->gpu;
    int order_of = (int)n, count = 0;
    double scale = 1 / size;
    exchange x = m->x;
    double *R = m->R;
    void *with[] = {&order_of, &L, &scale, &R, &x};
    FSI_TRY(dense->zero(handle, m->at, m->cleared));
    FSI_TRY(dense->zero(handle, R, (size_t)(n * n) * sizeof *R));
    FSI_TRY(fsi_gpu_check(
        gpu, cudaLaunchCooperativeKernel(kernel_for(n), dim3((unsigned)grid), dim3(THREADS), with, 0, gpu->stream),
        "choosing pivots"));
    FSI_TRY(dense->fetch(handle, x.count, sizeof count, &count));
    FSI_TRY(dense->fetch(handle, x.order, (size_t)n * sizeof *pivots, pivots));
    const fs_allocator *host = &gpu->host.allocator;
    char *taken = (char *)host->alloc(host->user, (size_t)n);
    if (!taken) return gpu->host.fail(FS_ENOMEM, "no memory for %lld pivots", (long long)n);
    const bool whole = complete(n, count, pivots, taken);
    host->release(host->user, taken);
    if (!whole)
        return gpu->host.fail(FS_EBACKEND, "pivots of a %lld x %lld triangle are wrong", (long long)n, (long long)n);
    FSI_TRY(dense->send(handle, pivots, (size_t)n * sizeof *pivots, x.order));
    const fs_matrix rows = {R, n, n, n, 1, 0, 0, FS_F64, FS_MEMORY_CUDA}; /* (s, i) is R[i + s n] */
    return dense->widen_columns(handle, &rows, x.order, L, n);
}

}  // namespace

fs_result fsi_gpu_dense_pivot(void *handle, int64_t n, double *L, int64_t *pivots, int *done)
{
    const fsi_dense *dense = &fsi_gpu_dense;
    fsi_gpu *gpu = ((fsi_gpu_handle *)handle)->gpu;
    on_device here(gpu->device);
    const int64_t grid = fsi_div_up(n, WARPS);
    double size;
    void *at = NULL;
    *done = 0;
    if (!suits(gpu, n)) return FS_OK;
    FSI_TRY(dense->norm(handle, n * n, L, &size));
    if (!(size > 1e-280 && size < 1e280)) return FS_OK; /* 0, or lengths that have no squares */
    memory m = lay_out(n, grid);
    FSI_TRY(dense->alloc(handle, m.bytes, &at));
    m.at = (char *)at;
    point(&m, n, grid);
    const fs_result result = run(handle, &m, n, grid, size, L, pivots);
    dense->release(handle, at);
    *done = result == FS_OK;
    return result;
}
