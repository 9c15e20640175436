/* cholesky.cu - Cholesky's factorization in f64 for matrices of a few thousand columns, and a substitution with its
 * factor, each in one launch.
 *
 * At such sizes the time of a factorization is a chain of waits and not of products: column after column of the
 * diagonal blocks.  So thread blocks stay resident for all of it and publish finished tiles by flags in global memory
 * (all must run at the same time: a cooperative launch).  G is cut into tiles of 64 x 64; tile (i, j) of the factor is
 *
 *     L(i,j) = (G(i,j) - sum over k < j of L(i,k) L(j,k)') L(j,j)^-T
 *
 * and there are two kinds of thread blocks:
 *
 *     helpers   compute R(i,j) = G(i,j) - sum over k < j - 1, every term as soon as its tiles are published
 *     rows      one for each row i of tiles, column after column: subtract the last term, whose L(i,j-1) the block has
 *     just computed, from R(i,j) and, all of them the same, from R(j,j); then eliminate both together
 *
 * so that only one tile, L(j,j-1), is exchanged between blocks in a column's time, and no tile is divided by a triangle
 * of another block.  Sums have a fixed order: the same bits from run to run.
 *
 * On an H200 it takes half of cuSOLVER's time (docs/kernels/cholesky.md).
 *
 * Waits have no cycle.  A helper's tiles are in the order of columns, and a tile needs tiles of earlier columns alone;
 * a row's tiles are in that order too. */
#include "cuda/linalg/cholesky.h"
#include "cuda/linalg/libraries.h"
#include "cuda/runtime/ptx.cuh"

namespace {

enum {
    TILE = 64,
    PITCH = TILE + 4, /* of a tile in shared memory, where fragments of tensor cores are read without conflicts */
    STRIP = 16,       /* columns that are eliminated in registers */
    WARPS = 8,
    THREADS = 32 * WARPS,
    PLACE = TILE * PITCH,
    PLACES = 4,              /* tiles in shared memory */
    SHARES = THREADS / TILE, /* of a row or column, in a substitution */
    ELEMENTS = TILE * TILE,
    MOST_TILES = 40 /* in a column: above that cuSOLVER is used */
};
const int64_t SHARED_BYTES = (PLACES * PLACE + 4 * 2 * STRIP) * (int64_t)sizeof(double);

/* The state that thread blocks share.  Flags are 0 before and after a factorization. */
struct board {
    double *tiles; /* R(i,j) and then L(i,j), column-major and full: ELEMENTS each, see local row() */
    int *made;     /* R(i,j) is published */
    int *done;     /* L(i,j) is published */
    int *broken;   /* of every column of tiles: 0, or the first column without a pivot, from 1 on */
    int *gone;     /* thread blocks that have finished */
    int *info;
};

static __host__ __device__ __forceinline__ int local_row(int i, int j) { return i * (i + 1) / 2 + j; }

/* flags ------------------------------------------------------------------------------------------------------ */

static __device__ __forceinline__ void await(const int *flag)
{
    while (fsi_load_acquire(flag) == 0) {}
}
/* All threads of the block have written the tile that `flag` publishes. */
static __device__ __forceinline__ void raise(int *flag)
{
    __syncthreads();
    if (threadIdx.x == 0) fsi_store_release(flag, 1);
}

/* Whether all other thread blocks have called this too, as their last action; *gone is then 0 again. */
static __device__ __forceinline__ bool last_to_leave(int *gone)
{
    __shared__ int last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(gone, 1) == (int)gridDim.x - 1;
        if (last) *gone = 0;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* tiles ------------------------------------------------------------------------------------------------------ */

/* Begins to copy columns first ... end - 1 of a tile to shared memory; this is thread `rank` of `ranks` that do. */
static __device__ __forceinline__ void fetch(double *to, const double *tile, int first, int end, int rank, int ranks)
{
    for (int e = first * TILE / 2 + rank; e < end * TILE / 2; e += ranks)
        fsi_copy16(fsi_shared_address(to + e / (TILE / 2) * PITCH + e % (TILE / 2) * 2), tile + 2 * e);
}
static __device__ __forceinline__ void arrive(void)
{
    fsi_copy_commit();
    fsi_copy_wait<0>();
    __syncthreads();
}

/* sums (16 x 8 UNITS, as tensor cores have them) += A B', A 16 x K and B 8 UNITS x K, in shared memory. */
template <int K, int UNITS>
static __device__ __forceinline__ void multiply(double (&sums)[UNITS][4], const double *A, const double *B)
{
    const int lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
#pragma unroll
    for (int k = 0; k < K; k += 16) {
        double a[8], b[4];
#pragma unroll
        for (int q = 0; q < 8; q++) a[q] = A[(k + member + q / 2 * 4) * PITCH + group + q % 2 * 8];
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
#pragma unroll
            for (int q = 0; q < 4; q++) b[q] = B[(k + member + q * 4) * PITCH + 8 * u + group];
            fsi_mma_f64(sums[u], a, b);
        }
    }
}
/* Where element q of sums[u] is, from the top left on. */
static __device__ __forceinline__ int row_of(int q) { return threadIdx.x % 32 / 4 + q / 2 * 8; }
static __device__ __forceinline__ int column_of(int u, int q) { return 8 * u + threadIdx.x % 4 * 2 + q % 2; }

/* C -= A B', C 16 x 8 UNITS, all in shared memory. */
template <int K, int UNITS>
static __device__ __forceinline__ void subtract_product(double *C, const double *A, const double *B)
{
    double sums[UNITS][4] = {};
    multiply<K, UNITS>(sums, A, B);
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int q = 0; q < 4; q++) C[column_of(u, q) * PITCH + row_of(q)] -= sums[u][q];
}

/* The slice of a tile that is in G: of L(j,j) its lower triangle. */
static __device__ __forceinline__ void write_out(const double *tile, int i, int j, int n, double *G, int64_t ld)
{
    for (int e = threadIdx.x; e < ELEMENTS; e += THREADS) {
        const int r = TILE * i + e % TILE, c = TILE * j + e / TILE;
        if (r < n && c <= r) G[r + c * ld] = tile[e / TILE * PITCH + e % TILE];
    }
}

/* elimination ------------------------------------------------------------------------------------------------ */

/* 1 / x and 1 / sqrt(x), from the 20 bits of the hardware's by a step of third order. */
static __device__ __forceinline__ double reciprocal(double x)
{
    const double y = fsi_reciprocal_guess(x), e = fma(-x, y, 1.0);
    return fma(y, fma(e, e, e), y);
}
static __device__ __forceinline__ double reciprocal_root(double x)
{
    const double y = fsi_reciprocal_root_guess(x), e = fma(-x * y, y, 1.0);
    return fma(y * e, fma(0.375, e, 0.5), y);
}

/* Eliminates columns first ... first + 15 of the rows of D and, where it is there, T; returns which of the 16 had no
 * pivot, as bits.  Four warps do it, or two, 32 rows each, and every one of them has the 16 rows on the diagonal too,
 * in `d`: what a column needs from other rows is in the warp.
 *
 * A column waits for its pivot, and the pivot for the column before.  So pivots are made first of all, by every lane,
 * from two elements that were computed earlier; a column is divided by its root when all is done. */
static __device__ __forceinline__ unsigned eliminate(double *D, double *T, int first, double *column)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp % 2 * 32 + lane;
    const unsigned all = 0xffffffffu;
    const double *diagonal = D + first * PITCH + first + lane % STRIP;
    double *own = (warp < 2 ? D : T) + first * PITCH + row;
    double a[STRIP], d[STRIP];
    unsigned bad = 0;
#pragma unroll
    for (int c = 0; c < STRIP; c++) a[c] = own[c * PITCH], d[c] = diagonal[c * PITCH];
    fsi_barrier(1, T ? 128 : 64); /* now all have the rows on the diagonal, and they may change */
    double pivot = __shfl_sync(all, d[0], 0);
#pragma unroll
    for (int c = 0; c < STRIP; c++) {
        double *v = column + c % 2 * STRIP; /* this column of the 16 rows; the one before may still be read */
        const double below = c + 1 < STRIP ? __shfl_sync(all, d[c + 1 < STRIP ? c + 1 : c], c + 1) : 0.0;
        if (lane < STRIP) v[lane] = d[c];
        __syncwarp();
        const double over = reciprocal(pivot), root = reciprocal_root(pivot), fa = a[c] * over, fd = d[c] * over;
        /* Counts as no pivot: below 1e-300 there are no reciprocals, and Inf has none in LAPACK either. */
        if (!(pivot > 1e-300 && pivot <= 1.7e308)) bad |= 1u << c;
        if (c + 1 < STRIP) pivot = fma(-(v[c + 1] * over), v[c + 1], below);
#pragma unroll
        for (int j = c + 1; j < STRIP; j++) {
            a[j] = fma(-fa, v[j], a[j]);
            d[j] = fma(-fd, v[j], d[j]);
        }
        a[c] *= root;
    }
    if (warp >= 2 || row >= first)
#pragma unroll
        for (int c = 0; c < STRIP; c++) own[c * PITCH] = a[c];
    return bad;
}

/* Columns first ... end - 1 of D -= P P', below its diagonal, and of T -= Q P', P and Q having K columns; this is warp
 * `rank` of `ranks` that do.  A block of 16 x 16 is always the same warp's. */
template <int K> static __device__ __forceinline__ void subtract(double *D, double *T, const double *P, const double *Q,
                                                                 int first, int end, int rank, int ranks)
{
#pragma unroll 1
    for (int c = first; c < end; c += STRIP)
#pragma unroll 1
        for (int r = STRIP * rank; r < (T ? 2 : 1) * TILE; r += STRIP * ranks) { /* rows of T follow those of D */
            double *C = (r < TILE ? D : T) + c * PITCH + r % TILE;
            if (r >= c) subtract_product<K, STRIP / 8>(C, (r < TILE ? P : Q) + r % TILE, P + c);
        }
}

/* The tiles of a row that is being computed, in shared memory. */
struct row_state {
    int i;
    double *D, *T;   /* R(j,j) and R(i,j), to become L(j,j) and L(i,j) */
    double *before;  /* L(i,j-1), then R(i,j+1) */
    double *V;       /* L(j,j-1) */
    double *columns; /* for eliminate() */
};

/* Publishes columns first ... end - 1 of L(i,j). */
static __device__ __forceinline__ void publish(const row_state &w, int j, const board &b, int first, int end, int rank,
                                               int ranks)
{
    double2 *tile = (double2 *)(b.tiles + local_row(w.i, j) * (int64_t)ELEMENTS);
    for (int e = first * TILE / 2 + rank; e < end * TILE / 2; e += ranks)
        tile[e] = *(const double2 *)(w.T + e / (TILE / 2) * PITCH + e % (TILE / 2) * 2);
}

/* Begins to copy R(j,j), less its last STRIP columns, and R(i,j).  The warps that do not eliminate copy while the last
 * columns of D are eliminated. */
static __device__ __forceinline__ void ask(const row_state &w, int j, const board &b)
{
    const int rank = threadIdx.x - THREADS / 2;
    if (threadIdx.x % 32 == 0) {
        await(b.made + local_row(j, j));
        await(b.made + local_row(w.i, j));
    }
    __syncwarp();
    fetch(w.D, b.tiles + local_row(j, j) * (int64_t)ELEMENTS, 0, TILE - STRIP, rank, THREADS / 2);
    if (j < w.i) fetch(w.before, b.tiles + local_row(w.i, j) * (int64_t)ELEMENTS, 0, TILE, rank, THREADS / 2);
}

/* Subtracts the last term from D and T and makes L(j,j) and L(i,j) of them (where i = j, the first alone), of which the
 * last STRIP columns are left to publish.  Returns 0, or the first of the columns without a pivot, from 1 on.
 *
 * Strip after strip: all warps subtract from a strip the product of the strip before it, or the last term; then half of
 * them eliminate it.  The others subtract the same from the following strips (the last term from the last strip one
 * step later, because it is the most work), publish the strip before, and begin to copy the next tiles. */
static __device__ __forceinline__ int factor(const row_state &w, int j, int width, const board &b)
{
    const int warp = threadIdx.x / 32, rank = warp - WARPS / 2, ranks = WARPS / 2;
    double *T = j < w.i ? w.T : NULL;
    int broken = 0;
#pragma unroll 1
    for (int first = 0; first < width; first += STRIP) {
        const int next = first + STRIP, last = first - STRIP;
        const double *P = w.D + last * PITCH, *Q = w.T + last * PITCH; /* after the first strip */
        if (first > 0) subtract<STRIP>(w.D, T, P, Q, first, next, warp, WARPS);
        else if (j > 0) subtract<TILE>(w.D, T, w.V, w.before, first, next, warp, WARPS);
        __syncthreads();
        if (warp < WARPS / 2) {
            if (warp < 2 || T) {
                const unsigned bad = eliminate(w.D, T, first, w.columns + warp * 2 * STRIP);
                if (bad && !broken) broken = first + __ffs((int)bad);
            }
        } else {
            if (first > 0) subtract<STRIP>(w.D, T, P, Q, next, TILE, rank, ranks);
            if (first <= STRIP && j > 0)
                subtract<TILE>(w.D, T, w.V, w.before, first ? TILE - STRIP : next, first ? TILE : TILE - STRIP, rank,
                               ranks);
            if (first > 0 && T) publish(w, j, b, last, first, threadIdx.x - THREADS / 2, THREADS / 2);
            if (next == TILE && j < w.i) ask(w, j + 1, b);
        }
        __syncthreads();
    }
    return broken;
}

/* the two kinds of thread blocks ----------------------------------------------------------------------------- */

/* Row i of tiles. */
static __device__ void make_row(int i, int n, double *G, int64_t ld, const board &b, double *shared)
{
    row_state w = {i, shared, shared + PLACE, shared + 2 * PLACE, shared + 3 * PLACE, shared + 4 * PLACE};
    int broken = 0;
    if (threadIdx.x >= THREADS / 2) ask(w, 0, b);
    __syncthreads();
#pragma unroll 1
    for (int j = 0; j <= i; j++) {
        if (0 < j && j < i) {
            if (threadIdx.x == 32) await(b.done + local_row(j, j - 1)); /* thread 0 is still raising a flag */
            __syncthreads();
            fetch(w.V, b.tiles + local_row(j, j - 1) * (int64_t)ELEMENTS, 0, TILE, threadIdx.x, THREADS);
        }
        fetch(w.D, b.tiles + local_row(j, j) * (int64_t)ELEMENTS, TILE - STRIP, TILE, threadIdx.x, THREADS);
        if (j > 0) write_out(w.T, i, j - 1, n, G, ld); /* meanwhile */
        arrive();
        double *made = w.T;
        w.T = w.before;
        w.before = made;
        if (j == i) w.V = made;
        broken = factor(w, j, min((int)TILE, n - TILE * j), b);
        if (j == i) break;
        publish(w, j, b, TILE - STRIP, TILE, threadIdx.x, THREADS);
        raise(b.done + local_row(i, j));
    }
    write_out(w.D, i, i, n, G, ld);
    if (threadIdx.x == 0) b.broken[i] = broken ? TILE * i + broken : 0;
}

/* R(i,j).  Outside G are rows and columns of the unit matrix. */
static __device__ void make_rest(int i, int j, int n, const double *G, int64_t ld, const board &b, double *shared)
{
    const int warp = threadIdx.x / 32, top = warp / 2 * 16, left = warp % 2 * 32;
    double *tile = b.tiles + local_row(i, j) * (int64_t)ELEMENTS;
    double sums[4][4]; /* -R */
#pragma unroll
    for (int u = 0; u < 4; u++)
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const int r = TILE * i + top + row_of(q), c = TILE * j + left + column_of(u, q);
            sums[u][q] = r < n && c < n ? -G[max(r, c) + min(r, c) * ld] : -(double)(r == c);
        }
    /* Two of the threads look at flags: for the term that is next to be fetched, here k or k + 1. */
    const int *flags = threadIdx.x == 0    ? b.done + local_row(i, 0)
                       : threadIdx.x == 32 ? b.done + local_row(j, 0)
                                           : NULL;
    auto fetch_term = [&](int k) {
        double *A = shared + k % 2 * 2 * PLACE;
        fetch(A, b.tiles + local_row(i, k) * (int64_t)ELEMENTS, 0, TILE, threadIdx.x, THREADS);
        if (i != j) fetch(A + PLACE, b.tiles + local_row(j, k) * (int64_t)ELEMENTS, 0, TILE, threadIdx.x, THREADS);
        fsi_copy_commit();
    };
    bool fetched = false;
#pragma unroll 1
    for (int k = 0; k < j - 1; k++) {
        if (!fetched) {
            if (flags) await(flags + k);
            __syncthreads();
            fetch_term(k);
        }
        fetched = __syncthreads_and(k + 2 < j && (!flags || fsi_load_acquire(flags + k + 1)));
        if (fetched) fetch_term(k + 1), fsi_copy_wait<1>();
        else fsi_copy_wait<0>();
        __syncthreads();
        const double *A = shared + k % 2 * 2 * PLACE, *B = i == j ? A : A + PLACE;
        multiply<TILE, 4>(sums, A + top, B + left);
    }
#pragma unroll
    for (int u = 0; u < 4; u++)
#pragma unroll
        for (int q = 0; q < 4; q++) tile[(left + column_of(u, q)) * TILE + top + row_of(q)] = -sums[u][q];
    raise(b.made + local_row(i, j));
}

/* Clears all flags and writes *info. */
static __device__ void clean_up(int tiles, const board &b)
{
    for (int t = threadIdx.x; t < local_row(tiles, 0); t += THREADS) b.made[t] = b.done[t] = 0;
    if (threadIdx.x > 0) return;
    int first = 0;
    for (int j = tiles - 1; j >= 0; j--) {
        const int broken = __ldcg(b.broken + j);
        if (broken) first = broken;
    }
    *b.info = first;
}

static __global__ void __launch_bounds__(THREADS, 1) cholesky(int n, double *G, int64_t ld, board b)
{
    extern __shared__ __align__(16) double shared[];
    const int tiles = (n + TILE - 1) / TILE, helpers = (int)gridDim.x - tiles;
    if ((int)blockIdx.x < tiles) make_row((int)blockIdx.x, n, G, ld, b, shared);
    else {
        int j = 0, i = (int)blockIdx.x - tiles; /* tiles are counted down columns */
        while (true) {
            while (j < tiles && i >= tiles) i += ++j - tiles;
            if (j >= tiles) break;
            make_rest(i, j, n, G, ld, b, shared);
            i += helpers;
        }
    }
    if (last_to_leave(b.gone)) clean_up(tiles, b);
}

/* substitution ----------------------------------------------------------------------------------------------- */

/* W = L^-1 for a lower triangle, both TILE x TILE in shared memory; what is above the diagonal of L is spoilt.
 *
 * The inverses of the blocks of 16 on the diagonal, a column to a lane; then, for blocks twice as large each time,
 *     (P 0; Q R)^-1 = (P^-1 0; -R^-1 Q P^-1 R^-1).
 * The error of a solution is then cond(L) roundings, though that of its residual is smaller; L, a factor of normal
 * equations, has the square root of their condition number. */
static __device__ __forceinline__ void invert(double *L, double *W)
{
    const int lane = threadIdx.x % 32, at = threadIdx.x / 32 * STRIP;
    for (int e = threadIdx.x; e < PLACE; e += THREADS) W[e] = 0;
    __syncthreads();
    if (at < TILE && lane < STRIP) {
        double w[STRIP];
#pragma unroll
        for (int r = 0; r < STRIP; r++) w[r] = r == lane;
#pragma unroll
        for (int c = 0; c < STRIP; c++) {
            w[c] *= reciprocal(L[(at + c) * PITCH + at + c]);
#pragma unroll
            for (int r = c + 1; r < STRIP; r++) w[r] = fma(-L[(at + c) * PITCH + at + r], w[c], w[r]);
        }
#pragma unroll
        for (int r = 0; r < STRIP; r++) W[(at + lane) * PITCH + at + r] = w[r];
    }
    __syncthreads();
#pragma unroll
    for (int half = STRIP; half < TILE; half *= 2)
#pragma unroll
        for (int step = 0; step < 2; step++) { /* Q P^-1 above the diagonal of L, then its product with R^-1 */
            for (int e = threadIdx.x; e < TILE / 2 * half; e += THREADS) {
                const int r = e % half, c = e / half % half, low = e / (half * half) * 2 * half, high = low + half;
                double sum = 0;
                for (int k = 0; k < half; k++)
                    sum += step == 0 ? L[(low + k) * PITCH + high + r] * W[(low + c) * PITCH + low + k]
                                     : W[(high + k) * PITCH + high + r] * L[(high + c) * PITCH + low + k];
                if (step == 0) L[(high + c) * PITCH + low + r] = sum;
                else W[(low + c) * PITCH + high + r] = -sum;
            }
            __syncthreads();
        }
}

/* The sum over the SHARES neighbours of a column. */
static __device__ __forceinline__ double together(double x)
{
    for (int offset = 1; offset < SHARES; offset *= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
    return x;
}

/* x = L^-T x, elements of x being `stride` apart; thread block b has those of the b-th last column of tiles.  It
 * publishes its elements in `said`, which holds SILENT before and after: a number is its own flag. */
const unsigned long long SILENT = 0xffffffffffffffffull; /* a NaN that no operation makes */
static __global__ void __launch_bounds__(THREADS, 1)
    substitute(int n, const double *L, int64_t ld, double *x, int64_t stride, unsigned long long *said, int *gone)
{
    extern __shared__ __align__(16) double shared[];
    __shared__ double heard[2][TILE], rest[TILE];
    double *D = shared, *W = D + PLACE;
    const int tiles = (n + TILE - 1) / TILE, j = tiles - 1 - (int)blockIdx.x;
    const int c = threadIdx.x / SHARES, share = threadIdx.x % SHARES, at = TILE * j + c;
    for (int e = threadIdx.x; e < ELEMENTS; e += THREADS) {
        const int r = e % TILE, column = e / TILE, row = TILE * j + r;
        D[column * PITCH + r] = row < n && column <= r ? L[row + (TILE * j + column) * ld] : column == r;
    }
    __syncthreads();
    invert(D, W);

    double tile[TILE / SHARES], sum = 0;
#pragma unroll 1
    for (int i = tiles - 1; i > j; i--) {
#pragma unroll
        for (int s = 0; s < TILE / SHARES; s++) { /* before x(i) is known */
            const int row = TILE * i + s * SHARES + share;
            tile[s] = row < n ? L[row + at * ld] : 0.0;
        }
        if (threadIdx.x < TILE) {
            const volatile unsigned long long *from = said + TILE * i + threadIdx.x;
            unsigned long long word;
            do word = *from;
            while (word == SILENT);
            heard[i % 2][threadIdx.x] = __longlong_as_double((long long)word);
        }
        __syncthreads();
        double slices[4] = {};
#pragma unroll
        for (int s = 0; s < TILE / SHARES; s++)
            slices[s % 4] = fma(tile[s], heard[i % 2][s * SHARES + share], slices[s % 4]);
        sum += (slices[0] + slices[1]) + (slices[2] + slices[3]);
    }
    sum = together(sum);
    if (share == 0) rest[c] = at < n ? x[at * stride] - sum : 0.0;
    __syncthreads();
    double slices[4] = {};
#pragma unroll
    for (int s = 0; s < TILE / SHARES; s++)
        slices[s % 4] = fma(W[c * PITCH + s * SHARES + share], rest[s * SHARES + share], slices[s % 4]);
    const double result = together((slices[0] + slices[1]) + (slices[2] + slices[3]));
    if (share == 0) {
        *(volatile unsigned long long *)(said + at) = result == result
                                                          ? (unsigned long long)__double_as_longlong(result)
                                                          : 0x7ff8000000000000ull;
        if (at < n) x[at * stride] = result;
    }
    if (last_to_leave(gone))
        for (int e = threadIdx.x; e < tiles * TILE; e += THREADS) said[e] = SILENT;
}

/* the host's side -------------------------------------------------------------------------------------------- */

const int64_t SUBSTITUTE_BYTES = 2 * PLACE * (int64_t)sizeof(double);

static int tiles_of(int64_t n) { return (int)fsi_div_up(n, TILE); }

/* Cuts the memory into its slices and returns how many bytes they are: tiles, then a solution, then flags. */
static size_t lay_out(const fsi_cholesky *c, board *b, unsigned long long **said)
{
    const size_t tiles = (size_t)tiles_of(c->most), local_rows = (size_t)local_row((int)tiles, 0);
    b->tiles = (double *)c->memory;
    *said = (unsigned long long *)(b->tiles + local_rows * ELEMENTS);
    b->made = (int *)(*said + tiles * TILE);
    b->done = b->made + local_rows;
    b->broken = b->done + local_rows;
    b->gone = b->broken + tiles;
    b->info = NULL;
    return (size_t)((char *)(b->gone + 1) - c->memory);
}

/* Whether all thread blocks of both kernels can run at the same time, on a GPU whose f64 has half the rate of f32:
 * those have tensor cores for f64. */
static bool suits(const fsi_gpu *gpu, int64_t n)
{
    int launch = 0, ratio = 0, factors = 0, substitutes = 0;
    if (gpu->traits.arch < 80 || gpu->traits.shared < SHARED_BYTES || n > MOST_TILES * TILE ||
        gpu->traits.processors < 2 * tiles_of(n))
        return false;
    const bool known =
        cudaDeviceGetAttribute(&launch, cudaDevAttrCooperativeLaunch, gpu->device) == cudaSuccess &&
        cudaDeviceGetAttribute(&ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio, gpu->device) == cudaSuccess &&
        cudaFuncSetAttribute(cholesky, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SHARED_BYTES) == cudaSuccess &&
        cudaFuncSetAttribute(substitute, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SUBSTITUTE_BYTES) ==
            cudaSuccess &&
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&factors, cholesky, THREADS, SHARED_BYTES) == cudaSuccess &&
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&substitutes, substitute, THREADS, SUBSTITUTE_BYTES) ==
            cudaSuccess;
    if (!known) cudaGetLastError();
    return known && launch && ratio <= 2 && factors > 0 && substitutes > 0;
}

}  // namespace

fs_result fsi_cholesky_open(fsi_gpu *gpu, int64_t n, fsi_cholesky *c)
{
    board b;
    unsigned long long *said;
    c->memory = NULL, c->bytes = 0, c->most = n;
    if (!suits(gpu, n)) return FS_OK;
    c->bytes = lay_out(c, &b, &said);
    FSI_TRY(fsi_gpu_check(gpu, fsi_linalg_alloc(gpu, c->bytes, (void **)&c->memory),
                          "taking memory for Cholesky's factor"));
    lay_out(c, &b, &said);
    const size_t before = (size_t)((char *)said - c->memory), solution = (size_t)((char *)b.made - (char *)said);
    FSI_TRY(fsi_gpu_check(gpu, cudaMemsetAsync(said, SILENT & 0xff, solution, gpu->stream), "clearing a solution"));
    return fsi_gpu_check(gpu, cudaMemsetAsync(b.made, 0, c->bytes - before - solution, gpu->stream), "clearing flags");
}

fs_result fsi_cholesky_factor(fsi_gpu *gpu, const fsi_cholesky *c, int64_t n, double *G, int64_t ld, int *info)
{
    board b;
    unsigned long long *said;
    lay_out(c, &b, &said);
    b.info = info;
    int order = (int)n;
    const int tiles = tiles_of(n), all = tiles + local_row(tiles, 0);
    const int blocks = all < gpu->traits.processors ? all : gpu->traits.processors;
    void *with[] = {&order, &G, &ld, &b};
    return fsi_gpu_check(gpu,
                         cudaLaunchCooperativeKernel((const void *)cholesky, dim3((unsigned)blocks), dim3(THREADS),
                                                     with, SHARED_BYTES, gpu->stream),
                         "Cholesky's factorization");
}

fs_result fsi_cholesky_substitute(fsi_gpu *gpu, const fsi_cholesky *c, int64_t n, const double *L, int64_t ld,
                                  double *x, int64_t stride)
{
    board b;
    unsigned long long *said;
    lay_out(c, &b, &said);
    int order = (int)n;
    void *with[] = {&order, &L, &ld, &x, &stride, &said, &b.gone};
    return fsi_gpu_check(gpu,
                         cudaLaunchCooperativeKernel((const void *)substitute, dim3((unsigned)tiles_of(n)),
                                                     dim3(THREADS), with, SUBSTITUTE_BYTES, gpu->stream),
                         "a substitution");
}
