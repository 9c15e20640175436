/* sparse.cu - a sparse A: every stored element goes to the rows of Y that its row of A goes to.
 *
 * One warp computes a column of Y from one column of A, with sums in shared memory: a slice of the k rows at a time,
 * entries in the order they are stored, so no two threads add to one sum at once and the order of sums is fixed.  A CSR
 * matrix is first brought into column order by a stable sort of its entries' numbers.  A warp takes 32 entries, one a
 * lane, and
 *     BlockPerm-SJLT   lanes find the nonzeros of one random word each; then word by word, whose rows are distinct, the
 *                      lanes add one nonzero each
 *     FlashBlockRow    lanes search the list of draws by column; then entry by entry the lanes add one draw each
 *     SRHT, Gaussian   entry by entry, lanes along the rows of Y.
 *
 * Long columns are cut: the entries, in column order, are cut at every multiple of `chunk`, and the entries behind a
 * cut in a column that extends across it are summed by a warp of their own, as a piece.  The column's warp adds the
 * pieces in order. */
#include <inttypes.h>

#include "cuda/runtime/element.cuh"
#include "cuda/runtime/gpu.h"
#include "cuda/families/nonzeros.cuh"

enum { WARPS = 8, THREADS = 32 * WARPS };
enum { SUMS_BYTES = 4096 }; /* sums of a warp */
enum { STAGE = 256 };       /* codes of nonzeros that a warp stages */
enum { PAD = 4 };           /* sums between warps' slices: 8 columns x 4 rows are on 32 banks */
enum { MAX_PIECES = 1024, MIN_CHUNK = 1024 };
static const int64_t PIECES_BYTES = 1 << 26;
#define ALL_LANES 0xFFFFFFFFu

typedef struct sparse_call {
    fsi_def S;
    int64_t row0, k, cols;
    const int64_t *column;       /* column c's entries are column[c] ... column[c + 1] - 1 in column order */
    const uint64_t *order, *row; /* CSR: the entries in column order, in their words' low bits; their rows */
    uint64_t entry_mask;
    const void *index, *value; /* A's */
    fs_index_type index_type;
    fs_dtype dtype;
    int weights;           /* sums for each row: 2 for FlashBlockRow with two weights */
    int64_t slice, slices; /* rows of Y at a time */
    int64_t chunk, piece_count;
    void *piece;          /* piece m = 1 ... piece_count: weights x k sums */
    const uint64_t *draw; /* FlashBlockRow: the draws by column of S, from row0 on */
    int64_t draw_count, heavy;
    int draw_bits; /* of a draw's row */
    double factor[2];
    fsi_output to;
} sparse_call;

/* entries ---------------------------------------------------------------------------------------------------- */

/* The row of A of the entry at position t in column order, and its value. */
static __device__ __forceinline__ int64_t row_at(const sparse_call &C, int64_t t)
{
    return C.order ? (int64_t)C.row[t] : fsi_index_at(C.index, C.index_type, t);
}
template <class Sum> static __device__ __forceinline__ Sum value_at(const sparse_call &C, int64_t t)
{
    const int64_t e = C.order ? (int64_t)(C.order[t] & C.entry_mask) : t;
    if (C.dtype == FS_F64) return (Sum)((const double *)C.value)[e];
    if (C.dtype == FS_F32) return (Sum)((const float *)C.value)[e];
    if (C.dtype == FS_F16) return (Sum)fsi_widen(((const __half *)C.value)[e]);
    return (Sum)fsi_widen(((const __nv_bfloat16 *)C.value)[e]);
}

/* The sums of a warp: rows first ... first + rows - 1 of Y; sums[weight slice + row - first]. */
template <class Sum> struct slice_sums {
    Sum *sums;
    int64_t first;
    int rows;
    uint32_t *stage;      /* of the warp: STAGE codes */
    const uint64_t *pick; /* SRHT: the Hadamard rows of these rows */
};

/* The functions below add `count` entries, at most 32: lane e holds the column j of S and the value x of entry e. */

template <class Sum>
static __device__ void add_blockperm(const sparse_call &C, const slice_sums<Sum> &Y, int count, int64_t j, Sum x)
{
    const fsi_blockperm *B = &C.S.u.blockperm;
    const int lane = threadIdx.x % 32, at_once = (int)fsi_min(32, STAGE / B->per_band);
    const int64_t each = B->kappa * B->bands, words = count * each;
    for (int64_t base = 0; base < words; base += at_once) {
        /* 1. A lane decodes one word: word q of permutation l of an entry, if its block touches the slice. */
        const int64_t w = base + lane;
        const bool mine = lane < at_once && w < words;
        const int entry = mine ? (int)(w / each) : 0;
        const int64_t column = __shfl_sync(ALL_LANES, j, entry);
        const Sum value = __shfl_sync(ALL_LANES, x, entry);
        int64_t start = 0;
        int nonzeros = 0;
        if (mine) {
            const int64_t l = w % each / B->bands + 1, q = w % each % B->bands;
            const fsi_local local = fsi_blockperm_local(B, column);
            uint32_t g = (uint32_t)local.h;
            for (int64_t step = 0; step < l; step++) g = fsi_wiring_back(&B->wiring, g);
            const int64_t rows = fsi_split_size(&B->out, g);
            start = fsi_split_start(&B->out, g) - Y.first;
            if (start < Y.rows && start + rows > 0)
                nonzeros = fsi_blockperm_nonzeros(B, local.h, local.u, l, q, rows, Y.stage + lane * B->per_band, 1);
        }
        __syncwarp();
        /* 2. Word by word, a lane for each nonzero. */
        for (uint32_t left = __ballot_sync(ALL_LANES, nonzeros > 0); left; left &= left - 1) {
            const int from = __ffs((int)left) - 1, width = __shfl_sync(ALL_LANES, nonzeros, from);
            const int64_t corner = __shfl_sync(ALL_LANES, start, from);
            const Sum term = __shfl_sync(ALL_LANES, value, from);
            if (lane < width) {
                const uint32_t code = Y.stage[from * B->per_band + lane];
                const int64_t r = corner + (code >> 1);
                if (r >= 0 && r < Y.rows) Y.sums[r] += code & 1 ? -term : term;
            }
            __syncwarp();
        }
    }
}

/* Draws of one column are sorted by row; where a row drew it several times its first draw's lane adds them all. */
template <class Sum>
static __device__ void add_blockrow(const sparse_call &C, const slice_sums<Sum> &Y, int count, int64_t j, Sum x)
{
    const int lane = threadIdx.x % 32, shift = C.draw_bits + 1;
    const uint64_t mask = ((uint64_t)1 << C.draw_bits) - 1;
    int64_t begin = 0, end = 0;
    if (lane < count) {
        begin = fsi_lower_bound(C.draw, C.draw_count, (uint64_t)(j - C.row0) << shift);
        end = begin + fsi_lower_bound(C.draw + begin, C.draw_count - begin, (uint64_t)(j - C.row0 + 1) << shift);
    }
    for (uint32_t left = __ballot_sync(ALL_LANES, begin < end); left; left &= left - 1) {
        const int from = __ffs((int)left) - 1;
        const int64_t first = __shfl_sync(ALL_LANES, begin, from), last = __shfl_sync(ALL_LANES, end, from);
        const Sum term = __shfl_sync(ALL_LANES, x, from);
        Sum *sums = Y.sums + (__shfl_sync(ALL_LANES, j, from) < C.heavy ? C.slice : 0);
        for (int64_t t = first + lane; t < last; t += 32) {
            const uint64_t i = C.draw[t] >> 1 & mask;
            const int64_t r = (int64_t)i - Y.first;
            if (r < 0 || r >= Y.rows || (t > first && (C.draw[t - 1] >> 1 & mask) == i)) continue;
            for (int64_t u = t; u < last && (C.draw[u] >> 1 & mask) == i; u++) sums[r] += C.draw[u] & 1 ? -term : term;
        }
        __syncwarp();
    }
}

template <class Sum>
static __device__ void add_srht(const sparse_call &C, const slice_sums<Sum> &Y, int count, int64_t j, Sum x)
{
    const int lane = threadIdx.x % 32;
    if (lane < count && fsi_srht_flip(&C.S.u.srht, j)) x = -x;
    for (int e = 0; e < count; e++) {
        const uint64_t column = (uint64_t)__shfl_sync(ALL_LANES, j, e);
        const Sum term = __shfl_sync(ALL_LANES, x, e);
        for (int r = lane; r < Y.rows; r += 32) Y.sums[r] += fsi_hadamard_minus(Y.pick[r], column) ? -term : term;
    }
}

/* Slices start at multiples of four, as the quadruples of normals do. */
template <class Sum>
static __device__ void add_gauss(const sparse_call &C, const slice_sums<Sum> &Y, int count, int64_t j, Sum x)
{
    const int lane = threadIdx.x % 32;
    for (int e = 0; e < count; e++) {
        const int64_t column = __shfl_sync(ALL_LANES, j, e);
        const Sum term = __shfl_sync(ALL_LANES, x, e);
        for (int r = 4 * lane; r < Y.rows; r += 128) {
            float z[4];
            fsi_gauss_four(&C.S.u.gauss, (Y.first + r) / 4, column, z);
#pragma unroll
            for (int q = 0; q < 4; q++)
                if (r + q < Y.rows) Y.sums[r + q] += (Sum)z[q] * term;
        }
    }
}

/* Entries from ... to - 1 in column order. */
template <class Sum>
static __device__ void add_entries(const sparse_call &C, const slice_sums<Sum> &Y, int64_t from, int64_t to)
{
    const int lane = threadIdx.x % 32;
    for (int64_t t = from; t < to; t += 32) {
        const int count = (int)fsi_min(32, to - t);
        int64_t j = 0;
        Sum x = 0;
        if (lane < count) {
            j = C.row0 + row_at(C, t + lane);
            x = value_at<Sum>(C, t + lane);
        }
        switch (C.S.family) {
        case FSI_DEF_BLOCKROW: add_blockrow(C, Y, count, j, x); break;
        case FSI_DEF_SRHT: add_srht(C, Y, count, j, x); break;
        case FSI_DEF_GAUSS: add_gauss(C, Y, count, j, x); break;
        default: add_blockperm(C, Y, count, j, x);
        }
    }
    __syncwarp();
}

/* columns of Y ----------------------------------------------------------------------------------------------- */

extern __shared__ double sparse_shared[];

template <class Sum> static __device__ __forceinline__ Sum *warp_sums(const sparse_call &C, int warp)
{
    return (Sum *)sparse_shared + warp * (C.weights * C.slice + PAD);
}

/* The slice of a thread block, cleared; `table` is its stages, or for the SRHT its Hadamard rows. */
template <class Sum> static __device__ slice_sums<Sum> open_slice(const sparse_call &C, uint64_t *table)
{
    const int warp = threadIdx.x / 32;
    slice_sums<Sum> Y;
    Y.sums = warp_sums<Sum>(C, warp);
    Y.first = blockIdx.x % C.slices * C.slice;
    Y.rows = (int)fsi_min(C.slice, C.k - Y.first);
    Y.stage = (uint32_t *)table + warp * STAGE;
    Y.pick = table;
    for (int x = threadIdx.x; x < WARPS * (C.weights * C.slice + PAD); x += THREADS) ((Sum *)sparse_shared)[x] = 0;
    if (C.S.family == FSI_DEF_SRHT)
        for (int r = threadIdx.x; r < Y.rows; r += THREADS) table[r] = fsi_srht_row(&C.S.u.srht, Y.first + r);
    __syncthreads();
    return Y;
}

template <class Sum> static __device__ __forceinline__ Sum *piece_sums(const sparse_call &C, int64_t m, int weight)
{
    return (Sum *)C.piece + ((m - 1) * C.weights + weight) * C.k;
}

/* Piece m: the entries from position m chunk on, of the column that begins before. */
template <class Sum> static __global__ void __launch_bounds__(THREADS, 3)
    sum_pieces(const __grid_constant__ sparse_call C)
{
    __shared__ uint64_t table[WARPS * STAGE / 2];
    const slice_sums<Sum> Y = open_slice<Sum>(C, table);
    const int64_t m = blockIdx.x / C.slices * WARPS + threadIdx.x / 32 + 1, begin = m * C.chunk;
    if (m > C.piece_count) return;
    const int64_t c = fsi_lower_bound((const uint64_t *)C.column, C.cols + 1, (uint64_t)begin + 1) - 1;
    if (C.column[c] == begin) return;
    add_entries(C, Y, begin, fsi_min(begin + C.chunk, C.column[c + 1]));
    for (int weight = 0; weight < C.weights; weight++)
        for (int r = threadIdx.x % 32; r < Y.rows; r += 32)
            piece_sums<Sum>(C, m, weight)[Y.first + r] = Y.sums[weight * C.slice + r];
}

template <class Sum> static __global__ void __launch_bounds__(THREADS, 3)
    make_columns(const __grid_constant__ sparse_call C)
{
    __shared__ uint64_t table[WARPS * STAGE / 2];
    const slice_sums<Sum> Y = open_slice<Sum>(C, table);
    const int64_t col = blockIdx.x / C.slices * WARPS, c = col + threadIdx.x / 32;
    if (c < C.cols) {
        /* 1. The column's entries up to the first cut behind its start. */
        const int64_t begin = C.column[c], end = C.column[c + 1], cut = begin / C.chunk + 1;
        add_entries(C, Y, begin, fsi_min(end, cut * C.chunk));
        /* 2. Its pieces, one for each cut it goes across. */
        for (int weight = 0; weight < C.weights && cut * C.chunk < end; weight++)
            for (int r = threadIdx.x % 32; r < Y.rows; r += 32) {
                Sum sum = Y.sums[weight * C.slice + r];
                for (int64_t m = cut; m * C.chunk < end; m++) sum += piece_sums<Sum>(C, m, weight)[Y.first + r];
                Y.sums[weight * C.slice + r] = sum;
            }
    }
    __syncthreads();
    /* 3.  Stored, lanes along the direction in which Y is closer packed. */
    const int cols = (int)fsi_min(WARPS, C.cols - col);
    const bool along_columns = llabs(C.to.col_stride) < llabs(C.to.row_stride);
    for (int x = threadIdx.x; x < cols * Y.rows; x += THREADS) {
        const int r = along_columns ? x / cols : x % Y.rows, warp = along_columns ? x % cols : x / Y.rows;
        const Sum *sums = warp_sums<Sum>(C, warp) + r;
        const Sum sum = C.weights == 2 ? fsi_weigh(C.factor, sums[0], sums[C.slice]) : sums[0];
        fsi_output_put(C.to, Y.first + r, col + warp, sum);
    }
}

/* column order ----------------------------------------------------------------------------------------------- */

static __global__ void copy_pointers(const void *ptr, fs_index_type type, int64_t cols, int64_t *column)
{
    for (int64_t c = fsi_first_item(); c <= cols; c += fsi_item_step()) column[c] = fsi_index_at(ptr, type, c);
}
static __global__ void number_entries(const void *index, fs_index_type type, int64_t nnz, int entry_bits,
                                      uint64_t *word)
{
    for (int64_t e = fsi_first_item(); e < nnz; e += fsi_item_step())
        word[e] = (uint64_t)fsi_index_at(index, type, e) << entry_bits | (uint64_t)e;
}
static __global__ void find_columns(const uint64_t *word, int64_t nnz, int entry_bits, int64_t cols, int64_t *column)
{
    for (int64_t c = fsi_first_item(); c <= cols; c += fsi_item_step())
        column[c] = c < cols ? fsi_lower_bound(word, nnz, (uint64_t)c << entry_bits) : nnz;
}
/* The row of an entry e is the last i with ptr[i] <= e. */
static __global__ void find_rows(const uint64_t *word, uint64_t mask, int64_t nnz, const void *ptr, fs_index_type type,
                                 int64_t rows, uint64_t *row)
{
    for (int64_t t = fsi_first_item(); t < nnz; t += fsi_item_step()) {
        const int64_t e = (int64_t)(word[t] & mask);
        int64_t low = 0, high = rows - 1;
        while (low < high) {
            const int64_t middle = low + (high - low + 1) / 2;
            if (fsi_index_at(ptr, type, middle) <= e) low = middle;
            else high = middle - 1;
        }
        row[t] = (uint64_t)low;
    }
}

/* Brings A into column order: C->column, and for CSR C->order and C->row, in the buffers that words has. */
static fs_result order_columns(fsi_gpu *gpu, const fs_sparse *A, fsi_words *words, int64_t *column, sparse_call *C)
{
    const int entry_bits = fsi_bits((uint64_t)A->nnz);
    C->column = column;
    if (A->format == FS_CSC) {
        FSI_LOOP(gpu, copy_pointers, A->cols + 1)(A->ptr, A->index_type, A->cols, column);
        return FSI_LAUNCHED(gpu, "copying column pointers");
    }
    FSI_LOOP(gpu, number_entries, A->nnz)(A->index, A->index_type, A->nnz, entry_bits, words->now);
    FSI_TRY(FSI_LAUNCHED(gpu, "numbering entries"));
    FSI_TRY(fsi_words_sort(gpu, words, A->nnz, entry_bits, entry_bits + fsi_bits((uint64_t)A->cols)));
    C->entry_mask = ((uint64_t)1 << entry_bits) - 1;
    C->order = words->now;
    C->row = words->other;
    FSI_LOOP(gpu, find_columns, A->cols + 1)(words->now, A->nnz, entry_bits, A->cols, column);
    FSI_TRY(FSI_LAUNCHED(gpu, "finding columns"));
    FSI_LOOP(gpu, find_rows, A->nnz)
    (words->now, C->entry_mask, A->nnz, A->ptr, A->index_type, A->rows, words->other);
    return FSI_LAUNCHED(gpu, "finding rows");
}

/* bad arrays ------------------------------------------------------------------------------------------------- */

/* bad[0], bad[1]: the first position where ptr, index is wrong; they start with all bits set.  ptr[lines] must be
 * nnz. */
static __global__ void find_bad(const void *ptr, const void *index, fs_index_type type, int64_t lines, int64_t nnz,
                                int64_t limit, unsigned long long *bad)
{
    for (int64_t i = fsi_first_item(); i <= lines; i += fsi_item_step()) {
        const int64_t from = i > 0 ? fsi_index_at(ptr, type, i - 1) : 0, to = fsi_index_at(ptr, type, i);
        if (to < from || to > nnz || (i == 0 && to != 0) || (i == lines && to != nnz))
            atomicMin(bad, (unsigned long long)i);
    }
    for (int64_t e = fsi_first_item(); e < nnz; e += fsi_item_step()) {
        const int64_t at = fsi_index_at(index, type, e);
        if (at < 0 || at >= limit) atomicMin(bad + 1, (unsigned long long)e);
    }
}

static fs_result fetch_index(fsi_gpu *gpu, const void *array, fs_index_type type, int64_t i, int64_t *value)
{
    const int64_t bytes = type == FS_INDEX32 ? 4 : 8;
    int64_t wide = 0;
    const cudaError_t error = cudaMemcpyAsync(&wide, (const char *)array + i * bytes, (size_t)bytes,
                                              cudaMemcpyDeviceToHost, gpu->stream);
    FSI_TRY(fsi_gpu_check(gpu, error, "fetching an index"));
    FSI_TRY(fsi_gpu_check(gpu, cudaStreamSynchronize(gpu->stream), "waiting for an index"));
    *value = type == FS_INDEX32 ? (int64_t)(int32_t)wide : wide;
    return FS_OK;
}

/* FS_EINVAL with the first bad number.  Waits for the stream; while it is being captured the arrays cannot be checked,
 * and are used as they are. */
static fs_result check_arrays(fsi_gpu *gpu, const fs_sparse *A, unsigned long long *bad)
{
    const int64_t lines = A->format == FS_CSR ? A->rows : A->cols, limit = A->format == FS_CSR ? A->cols : A->rows;
    const char *who = "fs_apply_sparse";
    cudaStreamCaptureStatus capture;
    FSI_TRY(fsi_gpu_check(gpu, cudaStreamIsCapturing(gpu->stream, &capture), "asking about a capture"));
    if (capture != cudaStreamCaptureStatusNone) return FS_OK;
    unsigned long long first[2];
    FSI_TRY(fsi_gpu_check(gpu, cudaMemsetAsync(bad, 0xFF, sizeof first, gpu->stream), "starting a check"));
    FSI_LOOP(gpu, find_bad, lines < A->nnz ? A->nnz : lines + 1)
    (A->ptr, A->index, A->index_type, lines, A->nnz, limit, bad);
    FSI_TRY(FSI_LAUNCHED(gpu, "checking indices"));
    FSI_TRY(fsi_gpu_check(gpu, cudaMemcpyAsync(first, bad, sizeof first, cudaMemcpyDeviceToHost, gpu->stream),
                          "fetching a check"));
    FSI_TRY(fsi_gpu_check(gpu, cudaStreamSynchronize(gpu->stream), "waiting for a check"));
    if (first[0] != ~0ull) {
        const int64_t i = (int64_t)first[0];
        int64_t from = 0, to = 0;
        FSI_TRY(fetch_index(gpu, A->ptr, A->index_type, i, &to));
        if (i == 0 && to != 0)
            return gpu->host.fail(FS_EINVAL, "%s: A.ptr starts with %" PRId64 ", it must start with 0", who, to);
        if (i > 0) FSI_TRY(fetch_index(gpu, A->ptr, A->index_type, i - 1, &from));
        if (from <= to && to <= A->nnz)
            return gpu->host.fail(FS_EINVAL, "%s: A.ptr ends with %" PRId64 ", nnz is %" PRId64, who, to, A->nnz);
        return gpu->host.fail(FS_EINVAL,
                              "%s: A.ptr[%" PRId64 "] is %" PRId64 ", it must be from %" PRId64 " to nnz = %" PRId64,
                              who, i, to, from, A->nnz);
    }
    if (first[1] != ~0ull) {
        int64_t at;
        FSI_TRY(fetch_index(gpu, A->index, A->index_type, (int64_t)first[1], &at));
        return gpu->host.fail(FS_EINVAL, "%s: A.index[%" PRId64 "] is %" PRId64 ", it must be from 0 to %" PRId64, who,
                              (int64_t)first[1], at, limit - 1);
    }
    return FS_OK;
}

/* the product ------------------------------------------------------------------------------------------------ */

/* Slices, and where columns are cut: few enough pieces for their scratch, and for one warp to add. */
static void cut_work(const fs_sparse *A, int64_t sum_bytes, sparse_call *C)
{
    const int64_t most = SUMS_BYTES / (sum_bytes * C->weights), piece_bytes = C->weights * C->k * sum_bytes;
    const int64_t pieces = fsi_min(MAX_PIECES, PIECES_BYTES / piece_bytes);
    C->slice = fsi_min(most, fsi_round_up(C->k, 4));
    C->slices = fsi_div_up(C->k, C->slice);
    C->chunk = pieces > 0 ? fsi_div_up(A->nnz, pieces) : A->nnz + 1;
    if (C->chunk < MIN_CHUNK) C->chunk = MIN_CHUNK;
    C->piece_count = A->nnz > 0 ? (A->nnz - 1) / C->chunk : 0;
}

template <class Sum> static fs_result launch(fsi_gpu *gpu, const sparse_call &C)
{
    const size_t shared = (size_t)(WARPS * (C.weights * C.slice + PAD)) * sizeof(Sum);
    const int64_t piece_blocks = fsi_div_up(C.piece_count, WARPS) * C.slices;
    const int64_t blocks = fsi_div_up(C.cols, WARPS) * C.slices;
    if (blocks > INT32_MAX || piece_blocks > INT32_MAX)
        return gpu->host.fail(FS_EUNSUPPORTED, "a product of %lld x %lld needs more thread blocks than CUDA launches",
                              (long long)C.k, (long long)C.cols);
    if (C.piece_count > 0) {
        sum_pieces<Sum><<<(unsigned)piece_blocks, THREADS, shared, gpu->stream>>>(C);
        FSI_TRY(FSI_LAUNCHED(gpu, "summing pieces of columns"));
    }
    make_columns<Sum><<<(unsigned)blocks, THREADS, shared, gpu->stream>>>(C);
    return FSI_LAUNCHED(gpu, "making columns");
}

/* The fields that do not depend on scratch. */
static sparse_call open_call(const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A, double beta,
                             const fs_matrix *Y)
{
    const fsi_gpu_weights w = fsi_gpu_weights_of(S);
    sparse_call C = {};
    C.S = *S;
    C.row0 = row0;
    C.k = Y->rows;
    C.cols = A->cols;
    C.index = A->index;
    C.value = A->value;
    C.index_type = A->index_type;
    C.dtype = A->dtype;
    C.weights = w.heavy != 0 ? 2 : 1;
    C.heavy = w.heavy;
    C.factor[0] = alpha * w.weight[0];
    C.factor[1] = alpha * w.weight[1];
    C.to = fsi_output_of(Y, C.weights == 2 ? 1.0 : C.factor[0], beta);
    cut_work(A, fsi_dtype_size(fsi_dtype_sum(A->dtype)), &C);
    return C;
}

fs_result fsi_gpu_sparse_apply(fsi_gpu *gpu, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A,
                               double beta, const fs_matrix *Y)
{
    const int draws = S->family == FSI_DEF_BLOCKROW;
    const fsi_window window = {0, Y->rows, row0, A->rows};
    sparse_call C = open_call(S, row0, alpha, A, beta, Y);
    if (fsi_bits((uint64_t)A->nnz) + fsi_bits((uint64_t)A->cols) > 64 ||
        (draws && fsi_bits((uint64_t)A->rows) + fsi_bits((uint64_t)Y->rows) > 63))
        return gpu->host.fail(FS_EUNSUPPORTED,
                              "fs_apply_sparse: A is %lld x %lld with %lld entries, too large to be "
                              "sorted",
                              (long long)A->rows, (long long)A->cols, (long long)A->nnz);

    fsi_words words;
    fsi_nonzeros list;
    void *scratch;
    int64_t bytes = 0;
    const int64_t bad_at = fsi_take(&bytes, 2 * sizeof(unsigned long long));
    const int64_t column_at = fsi_take(&bytes, (A->cols + 1) * (int64_t)sizeof(int64_t));
    const int64_t piece_at = fsi_take(&bytes,
                                      C.piece_count * C.weights * C.k * fsi_dtype_size(fsi_dtype_sum(A->dtype)));
    FSI_TRY(fsi_words_plan(gpu, A->format == FS_CSR ? A->nnz : 0, &words, &bytes));
    if (draws) FSI_TRY(fsi_nonzeros_plan(gpu, S, window, FSI_BY_COLUMN, 0, &list, &bytes));
    FSI_TRY(fsi_gpu_scratch(gpu, bytes, &scratch));
    C.piece = (char *)scratch + piece_at;

    FSI_TRY(check_arrays(gpu, A, (unsigned long long *)((char *)scratch + bad_at)));
    if (A->cols == 0) return FS_OK;
    fsi_words_place(&words, scratch);
    FSI_TRY(order_columns(gpu, A, &words, (int64_t *)((char *)scratch + column_at), &C));
    if (draws) {
        fsi_nonzeros_place(&list, scratch);
        FSI_TRY(fsi_nonzeros_fill(gpu, S, window, &list));
        C.draw = list.words.now;
        C.draw_count = list.count;
        C.draw_bits = list.minor_bits;
    }
    return A->dtype == FS_F64 ? launch<double>(gpu, C) : launch<float>(gpu, C);
}
