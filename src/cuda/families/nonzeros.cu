/* nonzeros.cu - windows of S listed, sorted, summed into a digest and written out as CSR.
 *
 * A BlockPerm-SJLT is listed column by column, with the definition's own visitor; FlashBlockRow by rows, a thread
 * for the s draws of one row in one block; the dense families element by element.  Counts and digests are whole
 * numbers, so the order of atomic additions does not matter.
 *
 * CSR of BlockPerm-SJLT: count the nonzeros of each row, add up, then fill panel of columns by panel: within a
 * panel's sorted list a nonzero is as far from its row's next free position as from the start of its row.  CSR of
 * FlashBlockRow: panels of rows, whose draws are sorted by row and column, so that repeated draws are neighbours and
 * are added.  CSR of a dense family needs no list. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <math.h>

#include "core/weights.h"
#include "cuda/runtime/element.cuh"
#include "cuda/families/nonzeros.cuh"

enum { LIST = 1 << 22 }; /* nonzeros of a panel that is written as CSR: 64 MiB of words */

/* words ------------------------------------------------------------------------------------------------------ */

fs_result fsi_words_plan(fsi_gpu *gpu, int64_t capacity, fsi_words *words, int64_t *bytes)
{
    cub::DoubleBuffer<uint64_t> none(NULL, NULL);
    words->work_bytes = 0;
    const cudaError_t error = cub::DeviceRadixSort::SortKeys(NULL, words->work_bytes, none, capacity, 0, 64,
                                                             gpu->stream);
    FSI_TRY(fsi_gpu_check(gpu, error, "asking what a sort needs"));
    words->now_at = fsi_take(bytes, capacity * (int64_t)sizeof(uint64_t));
    words->other_at = fsi_take(bytes, capacity * (int64_t)sizeof(uint64_t));
    words->work_at = fsi_take(bytes, (int64_t)words->work_bytes);
    return FS_OK;
}

void fsi_words_place(fsi_words *words, void *scratch)
{
    words->now = (uint64_t *)((char *)scratch + words->now_at);
    words->other = (uint64_t *)((char *)scratch + words->other_at);
    words->work = (char *)scratch + words->work_at;
}

fs_result fsi_words_sort(fsi_gpu *gpu, fsi_words *words, int64_t count, int from, int to)
{
    if (count < 2) return FS_OK;
    cub::DoubleBuffer<uint64_t> keys(words->now, words->other);
    size_t work_bytes = words->work_bytes;
    const cudaError_t error = cub::DeviceRadixSort::SortKeys(words->work, work_bytes, keys, count, from, to,
                                                             gpu->stream);
    FSI_TRY(fsi_gpu_check(gpu, error, "sorting"));
    words->now = keys.Current();
    words->other = keys.Alternate();
    return FS_OK;
}

/* lists ------------------------------------------------------------------------------------------------------ */

fsi_gpu_weights fsi_gpu_weights_of(const fsi_def *S)
{
    const fsi_weights of = fsi_weights_of(S);
    const fsi_split *in = &S->u.blockrow.in;
    const fsi_gpu_weights w = {{of.weight[0], of.weight[1]},
                               S->family == FSI_DEF_BLOCKROW ? fsi_split_start(in, in->larger) : 0};
    return w;
}

int64_t fsi_nonzeros_count(const fsi_def *S, fsi_window window)
{
    if (S->family == FSI_DEF_BLOCKROW) return window.rows * S->u.blockrow.kappa * S->u.blockrow.s;
    return window.cols * S->u.blockperm.kappa * S->u.blockperm.s;
}

fs_result fsi_nonzeros_plan(fsi_gpu *gpu, const fsi_def *S, fsi_window largest, fsi_order order, int with_start,
                            fsi_nonzeros *list, int64_t *bytes)
{
    const int64_t majors = order == FSI_BY_ROW ? largest.rows : largest.cols;
    const int64_t minors = order == FSI_BY_ROW ? largest.cols : largest.rows;
    list->order = order;
    list->minor_bits = fsi_bits(minors > 0 ? (uint64_t)minors - 1 : 0);
    list->start_at = with_start ? fsi_take(bytes, (majors + 1) * (int64_t)sizeof(int64_t)) : -1;
    return fsi_words_plan(gpu, fsi_nonzeros_count(S, largest), &list->words, bytes);
}

void fsi_nonzeros_place(fsi_nonzeros *list, void *scratch)
{
    fsi_words_place(&list->words, scratch);
    list->start = list->start_at < 0 ? NULL : (int64_t *)((char *)scratch + list->start_at);
}

/* The visitor of a column: its nonzeros in order. */
typedef struct word_cursor {
    uint64_t *to;
    int64_t col0;
    int shift;
} word_cursor;

static __device__ void put_word(void *user, int64_t i, int64_t j, double value)
{
    word_cursor *at = (word_cursor *)user;
    *at->to++ = (uint64_t)i << at->shift | (uint64_t)(j - at->col0) << 1 | (value < 0.0);
}

static __global__ void list_columns(const __grid_constant__ fsi_def S, int64_t col0, int64_t cols, int shift,
                                    uint64_t *word)
{
    const fsi_blockperm *B = &S.u.blockperm;
    for (int64_t c = fsi_first_item(); c < cols; c += fsi_item_step()) {
        word_cursor at = {word + c * B->kappa * B->s, col0, shift};
        fsi_visit_blockperm(B, S.scale, col0 + c, put_word, &at);
    }
}

/* Item row kappa + l: the s draws of a row in its l-th block. */
static __global__ void list_draws(const __grid_constant__ fsi_blockrow R, fsi_window window, int by_column, int shift,
                                  uint64_t *word)
{
    const uint64_t outside = (uint64_t)(by_column ? window.cols : window.rows) << shift;
    for (int64_t item = fsi_first_item(); item < window.rows * R.kappa; item += fsi_item_step()) {
        const int64_t r = item / R.kappa, l = item % R.kappa, i = window.row0 + r;
        const fsi_neighbours near = fsi_blockrow_neighbours(&R, fsi_split_index(&R.out, i));
        const int64_t h = fsi_blockrow_neighbour(&near, l);
        for (int64_t t = 0; t < R.s; t++) {
            int minus;
            const int64_t c = fsi_blockrow_draw(&R, i, h, l * R.s + t, &minus) - window.col0;
            const uint64_t major = (uint64_t)(by_column ? c : r), minor = (uint64_t)(by_column ? r : c);
            word[item * R.s + t] = c < 0 || c >= window.cols ? outside : major << shift | minor << 1 | (uint64_t)minus;
        }
    }
}

static __global__ void find_starts(const uint64_t *word, int64_t count, int64_t majors, int shift, int64_t *start)
{
    for (int64_t m = fsi_first_item(); m <= majors; m += fsi_item_step())
        start[m] = fsi_lower_bound(word, count, (uint64_t)m << shift);
}

fs_result fsi_nonzeros_fill(fsi_gpu *gpu, const fsi_def *S, fsi_window window, fsi_nonzeros *list)
{
    const int shift = list->minor_bits + 1, draws = S->family == FSI_DEF_BLOCKROW;
    list->majors = list->order == FSI_BY_ROW ? window.rows : window.cols;
    list->count = fsi_nonzeros_count(S, window);
    if (list->count > 0) {
        if (draws) FSI_LOOP(gpu, list_draws, window.rows * S->u.blockrow.kappa)
        (S->u.blockrow, window, list->order == FSI_BY_COLUMN, shift, list->words.now);
        else FSI_LOOP(gpu, list_columns, window.cols)(*S, window.col0, window.cols, shift, list->words.now);
        FSI_TRY(FSI_LAUNCHED(gpu, "listing nonzeros"));
    }
    /* Columns, and rows of draws, are listed in order; only the columns of draws have to be sorted within a row. */
    const int from = draws && list->order == FSI_BY_ROW ? 1 : shift;
    const uint64_t largest = draws || list->majors == 0 ? (uint64_t)list->majors : (uint64_t)list->majors - 1;
    FSI_TRY(fsi_words_sort(gpu, &list->words, list->count, from, shift + fsi_bits(largest)));
    if (!list->start) return FS_OK;
    FSI_LOOP(gpu, find_starts, list->majors + 1)(list->words.now, list->count, list->majors, shift, list->start);
    return FSI_LAUNCHED(gpu, "finding where rows start");
}

/* digest ----------------------------------------------------------------------------------------------------- */

static __device__ void add_to_digest(unsigned long long *digest, uint64_t sum)
{
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xFFFFFFFFu, sum, step);
    if (threadIdx.x % 32 == 0) atomicAdd(digest, (unsigned long long)sum);
}

static __global__ void digest_columns(const __grid_constant__ fsi_def S, int64_t col0, int64_t cols,
                                      unsigned long long *digest)
{
    uint64_t sum = 0;
    for (int64_t c = fsi_first_item(); c < cols; c += fsi_item_step())
        fsi_visit_blockperm(&S.u.blockperm, S.scale, col0 + c, fsi_digest_visit, &sum);
    add_to_digest(digest, sum);
}

static __global__ void digest_draws(const __grid_constant__ fsi_blockrow R, fsi_gpu_weights w, int64_t col0,
                                    int64_t cols, unsigned long long *digest)
{
    uint64_t sum = 0;
    for (int64_t item = fsi_first_item(); item < R.k * R.kappa; item += fsi_item_step()) {
        const int64_t i = item / R.kappa, l = item % R.kappa;
        const fsi_neighbours near = fsi_blockrow_neighbours(&R, fsi_split_index(&R.out, i));
        const int64_t h = fsi_blockrow_neighbour(&near, l);
        for (int64_t t = 0; t < R.s; t++) {
            int minus;
            const int64_t j = fsi_blockrow_draw(&R, i, h, l * R.s + t, &minus);
            const double weight = w.weight[j < w.heavy];
            if (j >= col0 && j < col0 + cols) sum += fsi_digest_term(i, j, minus ? -weight : weight);
        }
    }
    add_to_digest(digest, sum);
}

/* Entries of rows 4 p ... 4 p + 3 of a dense family in column j; rows from k on are arbitrary. */
static __device__ void dense_four(const fsi_def *S, int64_t p, int64_t j, double value[4])
{
    if (S->family == FSI_DEF_GAUSS) {
        float z[4];
        fsi_gauss_four(&S->u.gauss, p, j, z);
        for (int q = 0; q < 4; q++) value[q] = __dmul_rn((double)z[q], S->scale);
        return;
    }
    const fsi_srht *H = &S->u.srht;
    const uint32_t flip = fsi_srht_flip(H, j);
    for (int q = 0; q < 4; q++) {
        const int64_t i = fsi_min(4 * p + q, H->k - 1);
        value[q] = flip ^ fsi_hadamard_minus(fsi_srht_row(H, i), (uint64_t)j) ? -S->scale : S->scale;
    }
}

static __global__ void digest_dense(const __grid_constant__ fsi_def S, int64_t k, int64_t col0, int64_t cols,
                                    unsigned long long *digest)
{
    uint64_t sum = 0;
    for (int64_t item = fsi_first_item(); item < (k + 3) / 4 * cols; item += fsi_item_step()) {
        const int64_t p = item / cols, j = col0 + item % cols;
        double value[4];
        dense_four(&S, p, j, value);
        for (int q = 0; q < 4; q++)
            if (4 * p + q < k) sum += fsi_digest_term(4 * p + q, j, value[q]);
    }
    add_to_digest(digest, sum);
}

static int64_t rows_of(const fsi_def *S)
{
    switch (S->family) {
    case FSI_DEF_BLOCKROW: return S->u.blockrow.k;
    case FSI_DEF_SRHT: return S->u.srht.k;
    case FSI_DEF_GAUSS: return S->u.gauss.k;
    default: return S->u.blockperm.k;
    }
}
static int is_dense(const fsi_def *S) { return S->family == FSI_DEF_SRHT || S->family == FSI_DEF_GAUSS; }

fs_result fsi_gpu_digest(fsi_gpu *gpu, const fsi_def *S, int64_t col0, int64_t cols, uint64_t *digest)
{
    void *scratch;
    const int64_t k = rows_of(S);
    FSI_TRY(fsi_gpu_scratch(gpu, sizeof *digest, &scratch));
    unsigned long long *sum = (unsigned long long *)scratch;
    FSI_TRY(fsi_gpu_check(gpu, cudaMemsetAsync(sum, 0, sizeof *sum, gpu->stream), "clearing a digest"));
    if (S->family == FSI_DEF_BLOCKROW)
        FSI_LOOP(gpu, digest_draws, k * S->u.blockrow.kappa)(S->u.blockrow, fsi_gpu_weights_of(S), col0, cols, sum);
    else if (is_dense(S)) FSI_LOOP(gpu, digest_dense, fsi_div_up(k, 4) * cols)(*S, k, col0, cols, sum);
    else FSI_LOOP(gpu, digest_columns, cols)(*S, col0, cols, sum);
    FSI_TRY(FSI_LAUNCHED(gpu, "summing a digest"));
    FSI_TRY(fsi_gpu_check(gpu, cudaMemcpyAsync(digest, sum, sizeof *digest, cudaMemcpyDeviceToHost, gpu->stream),
                          "fetching a digest"));
    return fsi_gpu_check(gpu, cudaStreamSynchronize(gpu->stream), "waiting for a digest");
}

/* CSR -------------------------------------------------------------------------------------------------------- */

typedef struct csr_arrays {
    void *ptr, *index, *value;
    fs_index_type index_type;
    fs_dtype dtype;
} csr_arrays;

static __device__ void put_entry(const csr_arrays &out, int64_t at, int64_t column, double value)
{
    fsi_index_put(out.index, out.index_type, at, column);
    if (out.dtype == FS_F64) ((double *)out.value)[at] = value;
    else if (out.dtype == FS_F32) ((float *)out.value)[at] = (float)value;
    else if (out.dtype == FS_F16) ((__half *)out.value)[at] = __float2half_rn((float)value);
    else ((__nv_bfloat16 *)out.value)[at] = __float2bfloat16_rn((float)value);
}

static __global__ void write_dense(const __grid_constant__ fsi_def S, int64_t k, int64_t col0, int64_t cols,
                                   csr_arrays out)
{
    for (int64_t item = fsi_first_item(); item < (k + 3) / 4 * cols; item += fsi_item_step()) {
        const int64_t p = item / cols, c = item % cols;
        double value[4];
        dense_four(&S, p, col0 + c, value);
        for (int q = 0; q < 4; q++)
            if (4 * p + q < k) put_entry(out, (4 * p + q) * cols + c, c, value[q]);
    }
    for (int64_t i = fsi_first_item(); i <= k; i += fsi_item_step())
        fsi_index_put(out.ptr, out.index_type, i, i * cols);
}

static __device__ void count_nonzero(void *user, int64_t i, int64_t, double)
{
    atomicAdd((unsigned long long *)user + i, 1ull);
}
static __global__ void count_rows(const __grid_constant__ fsi_def S, int64_t col0, int64_t cols, int64_t *count)
{
    for (int64_t c = fsi_first_item(); c < cols; c += fsi_item_step())
        fsi_visit_blockperm(&S.u.blockperm, S.scale, col0 + c, count_nonzero, count);
}
static __global__ void write_pointers(const int64_t *next, int64_t k, csr_arrays out)
{
    for (int64_t i = fsi_first_item(); i <= k; i += fsi_item_step()) fsi_index_put(out.ptr, out.index_type, i, next[i]);
}
/* next[i] is where row i's first entry of this panel goes. */
static __global__ void write_panel(const uint64_t *word, int64_t count, const int64_t *start, const int64_t *next,
                                   int shift, int64_t left_of_panel, double scale, csr_arrays out)
{
    for (int64_t t = fsi_first_item(); t < count; t += fsi_item_step()) {
        const uint64_t w = word[t], i = w >> shift, c = (w & (((uint64_t)1 << shift) - 1)) >> 1;
        put_entry(out, next[i] + t - start[i], left_of_panel + (int64_t)c, w & 1 ? -scale : scale);
    }
}
static __global__ void advance(const int64_t *start, int64_t k, int64_t *next)
{
    for (int64_t i = fsi_first_item(); i < k; i += fsi_item_step()) next[i] += start[i + 1] - start[i];
}

/* next[0 ... rows] from counts to positions, in place: the sum of the counts before each. */
static fs_result add_up(fsi_gpu *gpu, int64_t *next, int64_t rows, void *work, size_t work_bytes)
{
    return fsi_gpu_check(gpu, cub::DeviceScan::ExclusiveSum(work, work_bytes, next, next, rows + 1, gpu->stream),
                         "adding up rows");
}
static fs_result add_up_bytes(fsi_gpu *gpu, int64_t rows, size_t *work_bytes)
{
    int64_t *none = NULL;
    *work_bytes = 0;
    return fsi_gpu_check(gpu, cub::DeviceScan::ExclusiveSum(NULL, *work_bytes, none, none, rows + 1, gpu->stream),
                         "asking what adding up needs");
}

/* The memory for writing CSR: the list of a panel, next[0 ... rows] and the scratch of add_up. */
typedef struct csr_scratch {
    fsi_nonzeros list;
    int64_t *next;
    void *add_up;
    size_t add_up_bytes;
} csr_scratch;

static fs_result take_csr_scratch(fsi_gpu *gpu, const fsi_def *S, fsi_window largest, int64_t rows, csr_scratch *work)
{
    void *scratch;
    int64_t bytes = 0;
    FSI_TRY(fsi_nonzeros_plan(gpu, S, largest, FSI_BY_ROW, 1, &work->list, &bytes));
    FSI_TRY(add_up_bytes(gpu, rows, &work->add_up_bytes));
    const int64_t next_at = fsi_take(&bytes, (rows + 1) * (int64_t)sizeof(int64_t));
    const int64_t work_at = fsi_take(&bytes, (int64_t)work->add_up_bytes);
    FSI_TRY(fsi_gpu_scratch(gpu, bytes, &scratch));
    fsi_nonzeros_place(&work->list, scratch);
    work->next = (int64_t *)((char *)scratch + next_at);
    work->add_up = (char *)scratch + work_at;
    return FS_OK;
}

static fs_result blockperm_csr(fsi_gpu *gpu, const fsi_def *S, int64_t col0, int64_t cols, csr_arrays out)
{
    const int64_t k = S->u.blockperm.k, each = S->u.blockperm.kappa * S->u.blockperm.s;
    const int64_t panel = fsi_min(cols, each < LIST ? LIST / each : 1);
    csr_scratch work;
    FSI_TRY(take_csr_scratch(gpu, S, {0, k, col0, panel}, k, &work));

    /* 1. How many nonzeros each row has, and so where it starts. */
    FSI_TRY(fsi_gpu_check(gpu, cudaMemsetAsync(work.next, 0, (size_t)(k + 1) * sizeof *work.next, gpu->stream),
                          "clearing counts"));
    FSI_LOOP(gpu, count_rows, cols)(*S, col0, cols, work.next);
    FSI_TRY(FSI_LAUNCHED(gpu, "counting nonzeros"));
    FSI_TRY(add_up(gpu, work.next, k, work.add_up, work.add_up_bytes));
    FSI_LOOP(gpu, write_pointers, k + 1)(work.next, k, out);
    FSI_TRY(FSI_LAUNCHED(gpu, "writing row pointers"));

    /* 2. The panels, each behind what the ones before put into its rows. */
    for (int64_t c = 0; c < cols; c += panel) {
        FSI_TRY(fsi_nonzeros_fill(gpu, S, {0, k, col0 + c, fsi_min(panel, cols - c)}, &work.list));
        FSI_LOOP(gpu, write_panel, work.list.count)
        (work.list.words.now, work.list.count, work.list.start, work.next, work.list.minor_bits + 1, c, S->scale, out);
        FSI_TRY(FSI_LAUNCHED(gpu, "writing entries"));
        FSI_LOOP(gpu, advance, k)(work.list.start, k, work.next);
        FSI_TRY(FSI_LAUNCHED(gpu, "advancing rows"));
    }
    return FS_OK;
}

/* The words of one row, sign apart, are equal where a draw repeats an element. */
static __global__ void count_distinct(const uint64_t *word, const int64_t *start, int64_t rows, int64_t *count)
{
    for (int64_t r = fsi_first_item(); r <= rows; r += fsi_item_step()) {
        int64_t distinct = 0;
        if (r < rows)
            for (int64_t t = start[r]; t < start[r + 1]; t++)
                distinct += t == start[r] || word[t] >> 1 != word[t - 1] >> 1;
        count[r] = distinct;
    }
}
/* next[r] is where row r starts, from where this panel's rows begin on: out.ptr[row0]. */
static __global__ void write_rows(const uint64_t *word, const int64_t *start, const int64_t *next, int64_t row0,
                                  int64_t rows, int shift, int64_t col0, fsi_gpu_weights w, csr_arrays out)
{
    const int64_t base = fsi_index_at(out.ptr, out.index_type, row0);
    for (int64_t r = fsi_first_item(); r < rows; r += fsi_item_step()) {
        int64_t at = base + next[r], t = start[r];
        while (t < start[r + 1]) {
            const uint64_t element = word[t] >> 1;
            const int64_t c = (int64_t)(element & (((uint64_t)1 << (shift - 1)) - 1));
            const double weight = w.weight[col0 + c < w.heavy];
            double value = word[t++] & 1 ? -weight : weight;
            for (; t < start[r + 1] && word[t] >> 1 == element; t++)
                value = __dadd_rn(value, word[t] & 1 ? -weight : weight);
            put_entry(out, at++, c, value);
        }
        fsi_index_put(out.ptr, out.index_type, row0 + r + 1, base + next[r + 1]);
    }
}

static fs_result blockrow_csr(fsi_gpu *gpu, const fsi_def *S, int64_t col0, int64_t cols, csr_arrays out)
{
    const int64_t k = S->u.blockrow.k, each = S->u.blockrow.kappa * S->u.blockrow.s;
    const int row_bits = 63 - fsi_bits(cols > 0 ? (uint64_t)cols - 1 : 0);
    int64_t panel = fsi_min(k, each < LIST ? LIST / each : 1);
    if (row_bits < 32) panel = fsi_min(panel, ((int64_t)1 << row_bits) - 1);
    csr_scratch work;
    FSI_TRY(take_csr_scratch(gpu, S, {0, panel, col0, cols}, panel, &work));

    FSI_TRY(fsi_gpu_check(gpu, cudaMemsetAsync(out.ptr, 0, out.index_type == FS_INDEX32 ? 4 : 8, gpu->stream),
                          "starting row pointers"));
    for (int64_t row0 = 0; row0 < k; row0 += panel) {
        const int64_t rows = fsi_min(panel, k - row0);
        FSI_TRY(fsi_nonzeros_fill(gpu, S, {row0, rows, col0, cols}, &work.list));
        FSI_LOOP(gpu, count_distinct, rows + 1)(work.list.words.now, work.list.start, rows, work.next);
        FSI_TRY(FSI_LAUNCHED(gpu, "counting entries"));
        FSI_TRY(add_up(gpu, work.next, rows, work.add_up, work.add_up_bytes));
        FSI_LOOP(gpu, write_rows, rows)
        (work.list.words.now, work.list.start, work.next, row0, rows, work.list.minor_bits + 1, col0,
         fsi_gpu_weights_of(S), out);
        FSI_TRY(FSI_LAUNCHED(gpu, "writing rows"));
    }
    return FS_OK;
}

fs_result fsi_gpu_csr(fsi_gpu *gpu, const fsi_def *S, int64_t col0, const fs_sparse *out)
{
    const csr_arrays arrays = {out->ptr, out->index, out->value, out->index_type, out->dtype};
    const int64_t k = rows_of(S);
    if (S->family == FSI_DEF_BLOCKROW) return blockrow_csr(gpu, S, col0, out->cols, arrays);
    if (!is_dense(S)) return blockperm_csr(gpu, S, col0, out->cols, arrays);
    const int64_t items = fsi_div_up(k, 4) * out->cols;
    FSI_LOOP(gpu, write_dense, items > k ? items : k + 1)(*S, k, col0, out->cols, arrays);
    return FSI_LAUNCHED(gpu, "writing a dense sketch");
}
