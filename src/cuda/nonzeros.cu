/* nonzeros.cu - windows of S listed, sorted, summed into a digest and written out as CSR.
 *
 * A BlockPerm-SJLT is walked column by column, with the definition's own visitor; FlashBlockRow by rows, a thread
 * for the s draws of one row in one block; the dense families element by element.  Counts and digests are whole
 * numbers, so the order of atomic additions does not matter.
 *
 * CSR of BlockPerm-SJLT: count the nonzeros of each row, add up, then fill panel of columns by panel: within a
 * panel's sorted list a nonzero is as far from its row's next free place as from the start of its row.  CSR of
 * FlashBlockRow: panels of rows, whose draws are sorted by row and column, so that repeated draws are neighbours and
 * are added.  CSR of a dense family needs no list. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <math.h>

#include "element.cuh"
#include "nonzeros.cuh"

enum { LIST = 1 << 22 };  /* nonzeros of a panel that is written as CSR: 64 MiB of words */

/* words ------------------------------------------------------------------------------------------------------ */

fs_result fs_words_plan(fs_gpu *gpu, int64_t capacity, fs_words *words, int64_t *bytes)
{
    cub::DoubleBuffer<uint64_t> none(NULL, NULL);
    words->work_bytes = 0;
    const cudaError_t error =
        cub::DeviceRadixSort::SortKeys(NULL, words->work_bytes, none, capacity, 0, 64, gpu->stream);
    FS_TRY_GPU(fs_gpu_check(gpu, error, "asking what a sort needs"));
    words->now_at = fs_take(bytes, capacity * (int64_t)sizeof(uint64_t));
    words->other_at = fs_take(bytes, capacity * (int64_t)sizeof(uint64_t));
    words->work_at = fs_take(bytes, (int64_t)words->work_bytes);
    return FS_OK;
}

void fs_words_place(fs_words *words, void *scratch)
{
    words->now = (uint64_t *)((char *)scratch + words->now_at);
    words->other = (uint64_t *)((char *)scratch + words->other_at);
    words->work = (char *)scratch + words->work_at;
}

fs_result fs_words_sort(fs_gpu *gpu, fs_words *words, int64_t count, int from, int to)
{
    if (count < 2) return FS_OK;
    cub::DoubleBuffer<uint64_t> keys(words->now, words->other);
    size_t work_bytes = words->work_bytes;
    const cudaError_t error =
        cub::DeviceRadixSort::SortKeys(words->work, work_bytes, keys, count, from, to, gpu->stream);
    FS_TRY_GPU(fs_gpu_check(gpu, error, "sorting"));
    words->now = keys.Current();
    words->other = keys.Alternate();
    return FS_OK;
}

/* lists ------------------------------------------------------------------------------------------------------ */

fs_gpu_weights fs_gpu_weights_of(const fs_def *S)
{
    fs_gpu_weights w = {{S->scale, 0.0}, 0};
    if (S->family == FS_DEF_BLOCKROW) {
        const fs_blockrow *R = &S->u.blockrow;
        w.weight[0] = sqrt(fs_blockrow_weight2(R, R->M - 1));
        if (R->in.larger) w.weight[1] = sqrt(fs_blockrow_weight2(R, 0));
        w.heavy = fs_split_start(&R->in, R->in.larger);
    }
    return w;
}

int64_t fs_nonzeros_count(const fs_def *S, fs_window window)
{
    if (S->family == FS_DEF_BLOCKROW) return window.rows * S->u.blockrow.kappa * S->u.blockrow.s;
    return window.cols * S->u.blockperm.kappa * S->u.blockperm.s;
}

fs_result fs_nonzeros_plan(fs_gpu *gpu, const fs_def *S, fs_window largest, fs_order order, int with_start,
                           fs_nonzeros *list, int64_t *bytes)
{
    const int64_t majors = order == FS_BY_ROW ? largest.rows : largest.cols;
    const int64_t minors = order == FS_BY_ROW ? largest.cols : largest.rows;
    list->order = order;
    list->minor_bits = fs_bits(minors > 0 ? (uint64_t)minors - 1 : 0);
    list->start_at = with_start ? fs_take(bytes, (majors + 1) * (int64_t)sizeof(int64_t)) : -1;
    return fs_words_plan(gpu, fs_nonzeros_count(S, largest), &list->words, bytes);
}

void fs_nonzeros_place(fs_nonzeros *list, void *scratch)
{
    fs_words_place(&list->words, scratch);
    list->start = list->start_at < 0 ? NULL : (int64_t *)((char *)scratch + list->start_at);
}

/* The visitor of a column: its nonzeros one after the other. */
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

static __global__ void list_columns(const __grid_constant__ fs_def S, int64_t col0, int64_t cols, int shift,
                                    uint64_t *word)
{
    const fs_blockperm *B = &S.u.blockperm;
    for (int64_t c = fs_first_item(); c < cols; c += fs_item_step()) {
        word_cursor at = {word + c * B->kappa * B->s, col0, shift};
        fs_visit_blockperm(B, S.scale, col0 + c, put_word, &at);
    }
}

/* Item row kappa + l: the s draws of a row in its l-th block. */
static __global__ void list_draws(const __grid_constant__ fs_blockrow R, fs_window window, int by_column, int shift,
                                  uint64_t *word)
{
    const uint64_t outside = (uint64_t)(by_column ? window.cols : window.rows) << shift;
    for (int64_t item = fs_first_item(); item < window.rows * R.kappa; item += fs_item_step()) {
        const int64_t r = item / R.kappa, l = item % R.kappa, i = window.row0 + r;
        const fs_neighbours near = fs_blockrow_neighbours(&R, fs_split_part(&R.out, i));
        const int64_t h = fs_blockrow_neighbour(&near, l);
        for (int64_t t = 0; t < R.s; t++) {
            int minus;
            const int64_t c = fs_blockrow_draw(&R, i, h, l * R.s + t, &minus) - window.col0;
            const uint64_t major = (uint64_t)(by_column ? c : r), minor = (uint64_t)(by_column ? r : c);
            word[item * R.s + t] = c < 0 || c >= window.cols ? outside : major << shift | minor << 1 | (uint64_t)minus;
        }
    }
}

static __global__ void find_starts(const uint64_t *word, int64_t count, int64_t majors, int shift, int64_t *start)
{
    for (int64_t m = fs_first_item(); m <= majors; m += fs_item_step())
        start[m] = fs_lower_bound(word, count, (uint64_t)m << shift);
}

fs_result fs_nonzeros_fill(fs_gpu *gpu, const fs_def *S, fs_window window, fs_nonzeros *list)
{
    const int shift = list->minor_bits + 1, draws = S->family == FS_DEF_BLOCKROW;
    list->majors = list->order == FS_BY_ROW ? window.rows : window.cols;
    list->count = fs_nonzeros_count(S, window);
    if (list->count > 0) {
        if (draws)
            FS_LOOP(gpu, list_draws, window.rows * S->u.blockrow.kappa)
            (S->u.blockrow, window, list->order == FS_BY_COLUMN, shift, list->words.now);
        else
            FS_LOOP(gpu, list_columns, window.cols)(*S, window.col0, window.cols, shift, list->words.now);
        FS_TRY_GPU(FS_LAUNCHED(gpu, "listing nonzeros"));
    }
    /* Columns, and rows of draws, are listed in order; only the columns of draws have to be sorted within a row. */
    const int from = draws && list->order == FS_BY_ROW ? 1 : shift;
    const uint64_t largest = draws || list->majors == 0 ? (uint64_t)list->majors : (uint64_t)list->majors - 1;
    FS_TRY_GPU(fs_words_sort(gpu, &list->words, list->count, from, shift + fs_bits(largest)));
    if (!list->start) return FS_OK;
    FS_LOOP(gpu, find_starts, list->majors + 1)(list->words.now, list->count, list->majors, shift, list->start);
    return FS_LAUNCHED(gpu, "finding where rows start");
}

/* digest ----------------------------------------------------------------------------------------------------- */

static __device__ void add_to_digest(unsigned long long *digest, uint64_t sum)
{
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xFFFFFFFFu, sum, step);
    if (threadIdx.x % 32 == 0) atomicAdd(digest, (unsigned long long)sum);
}

static __global__ void digest_columns(const __grid_constant__ fs_def S, int64_t col0, int64_t cols,
                                      unsigned long long *digest)
{
    uint64_t sum = 0;
    for (int64_t c = fs_first_item(); c < cols; c += fs_item_step())
        fs_visit_blockperm(&S.u.blockperm, S.scale, col0 + c, fs_digest_visit, &sum);
    add_to_digest(digest, sum);
}

static __global__ void digest_draws(const __grid_constant__ fs_blockrow R, fs_gpu_weights w, int64_t col0, int64_t cols,
                                    unsigned long long *digest)
{
    uint64_t sum = 0;
    for (int64_t item = fs_first_item(); item < R.k * R.kappa; item += fs_item_step()) {
        const int64_t i = item / R.kappa, l = item % R.kappa;
        const fs_neighbours near = fs_blockrow_neighbours(&R, fs_split_part(&R.out, i));
        const int64_t h = fs_blockrow_neighbour(&near, l);
        for (int64_t t = 0; t < R.s; t++) {
            int minus;
            const int64_t j = fs_blockrow_draw(&R, i, h, l * R.s + t, &minus);
            const double weight = w.weight[j < w.heavy];
            if (j >= col0 && j < col0 + cols) sum += fs_digest_term(i, j, minus ? -weight : weight);
        }
    }
    add_to_digest(digest, sum);
}

/* Entries of rows 4 p ... 4 p + 3 of a dense family in column j; rows from k on are made up. */
static __device__ void dense_four(const fs_def *S, int64_t p, int64_t j, double value[4])
{
    if (S->family == FS_DEF_GAUSS) {
        float z[4];
        fs_gauss_four(&S->u.gauss, p, j, z);
        for (int q = 0; q < 4; q++) value[q] = __dmul_rn((double)z[q], S->scale);
        return;
    }
    const fs_srht *H = &S->u.srht;
    const uint32_t flip = fs_srht_flip(H, j);
    for (int q = 0; q < 4; q++) {
        const int64_t i = fs_min64(4 * p + q, H->k - 1);
        value[q] = flip ^ fs_hadamard_minus(fs_srht_row(H, i), (uint64_t)j) ? -S->scale : S->scale;
    }
}

static __global__ void digest_dense(const __grid_constant__ fs_def S, int64_t k, int64_t col0, int64_t cols,
                                    unsigned long long *digest)
{
    uint64_t sum = 0;
    for (int64_t item = fs_first_item(); item < (k + 3) / 4 * cols; item += fs_item_step()) {
        const int64_t p = item / cols, j = col0 + item % cols;
        double value[4];
        dense_four(&S, p, j, value);
        for (int q = 0; q < 4; q++)
            if (4 * p + q < k) sum += fs_digest_term(4 * p + q, j, value[q]);
    }
    add_to_digest(digest, sum);
}

static int64_t rows_of(const fs_def *S)
{
    switch (S->family) {
    case FS_DEF_BLOCKROW: return S->u.blockrow.k;
    case FS_DEF_SRHT: return S->u.srht.k;
    case FS_DEF_GAUSS: return S->u.gauss.k;
    default: return S->u.blockperm.k;
    }
}
static int is_dense(const fs_def *S) { return S->family == FS_DEF_SRHT || S->family == FS_DEF_GAUSS; }

fs_result fs_gpu_digest(fs_gpu *gpu, const fs_def *S, int64_t col0, int64_t cols, uint64_t *digest)
{
    void *scratch;
    const int64_t k = rows_of(S);
    FS_TRY_GPU(fs_gpu_scratch(gpu, sizeof *digest, &scratch));
    unsigned long long *sum = (unsigned long long *)scratch;
    FS_TRY_GPU(fs_gpu_check(gpu, cudaMemsetAsync(sum, 0, sizeof *sum, gpu->stream), "clearing a digest"));
    if (S->family == FS_DEF_BLOCKROW)
        FS_LOOP(gpu, digest_draws, k * S->u.blockrow.kappa)(S->u.blockrow, fs_gpu_weights_of(S), col0, cols, sum);
    else if (is_dense(S))
        FS_LOOP(gpu, digest_dense, fs_div_up(k, 4) * cols)(*S, k, col0, cols, sum);
    else
        FS_LOOP(gpu, digest_columns, cols)(*S, col0, cols, sum);
    FS_TRY_GPU(FS_LAUNCHED(gpu, "summing a digest"));
    FS_TRY_GPU(fs_gpu_check(gpu, cudaMemcpyAsync(digest, sum, sizeof *digest, cudaMemcpyDeviceToHost, gpu->stream),
                            "fetching a digest"));
    return fs_gpu_check(gpu, cudaStreamSynchronize(gpu->stream), "waiting for a digest");
}

/* CSR -------------------------------------------------------------------------------------------------------- */

typedef struct csr_arrays {
    void *ptr, *index, *value;
    fs_index_type index_type;
    fs_dtype dtype;
} csr_arrays;

static __device__ void put_entry(const csr_arrays &out, int64_t at, int64_t column, double value)
{
    fs_index_put(out.index, out.index_type, at, column);
    if (out.dtype == FS_F64) ((double *)out.value)[at] = value;
    else if (out.dtype == FS_F32) ((float *)out.value)[at] = (float)value;
    else if (out.dtype == FS_F16) ((__half *)out.value)[at] = __float2half_rn((float)value);
    else ((__nv_bfloat16 *)out.value)[at] = __float2bfloat16_rn((float)value);
}

static __global__ void write_dense(const __grid_constant__ fs_def S, int64_t k, int64_t col0, int64_t cols,
                                   csr_arrays out)
{
    for (int64_t item = fs_first_item(); item < (k + 3) / 4 * cols; item += fs_item_step()) {
        const int64_t p = item / cols, c = item % cols;
        double value[4];
        dense_four(&S, p, col0 + c, value);
        for (int q = 0; q < 4; q++)
            if (4 * p + q < k) put_entry(out, (4 * p + q) * cols + c, c, value[q]);
    }
    for (int64_t i = fs_first_item(); i <= k; i += fs_item_step()) fs_index_put(out.ptr, out.index_type, i, i * cols);
}

static __device__ void count_nonzero(void *user, int64_t i, int64_t, double)
{
    atomicAdd((unsigned long long *)user + i, 1ull);
}
static __global__ void count_rows(const __grid_constant__ fs_def S, int64_t col0, int64_t cols, int64_t *count)
{
    for (int64_t c = fs_first_item(); c < cols; c += fs_item_step())
        fs_visit_blockperm(&S.u.blockperm, S.scale, col0 + c, count_nonzero, count);
}
static __global__ void write_pointers(const int64_t *next, int64_t k, csr_arrays out)
{
    for (int64_t i = fs_first_item(); i <= k; i += fs_item_step()) fs_index_put(out.ptr, out.index_type, i, next[i]);
}
/* next[i] is where row i's first entry of this panel goes. */
static __global__ void write_panel(const uint64_t *word, int64_t count, const int64_t *start, const int64_t *next,
                                   int shift, int64_t left_of_panel, double scale, csr_arrays out)
{
    for (int64_t t = fs_first_item(); t < count; t += fs_item_step()) {
        const uint64_t w = word[t], i = w >> shift, c = (w & (((uint64_t)1 << shift) - 1)) >> 1;
        put_entry(out, next[i] + t - start[i], left_of_panel + (int64_t)c, w & 1 ? -scale : scale);
    }
}
static __global__ void advance(const int64_t *start, int64_t k, int64_t *next)
{
    for (int64_t i = fs_first_item(); i < k; i += fs_item_step()) next[i] += start[i + 1] - start[i];
}

/* next[0 ... rows] from counts to places: in place, what stands before each. */
static fs_result add_up(fs_gpu *gpu, int64_t *next, int64_t rows, void *work, size_t work_bytes)
{
    return fs_gpu_check(gpu, cub::DeviceScan::ExclusiveSum(work, work_bytes, next, next, rows + 1, gpu->stream),
                        "adding up rows");
}
static fs_result add_up_bytes(fs_gpu *gpu, int64_t rows, size_t *work_bytes)
{
    int64_t *none = NULL;
    *work_bytes = 0;
    return fs_gpu_check(gpu, cub::DeviceScan::ExclusiveSum(NULL, *work_bytes, none, none, rows + 1, gpu->stream),
                        "asking what adding up needs");
}

static fs_result blockperm_csr(fs_gpu *gpu, const fs_def *S, int64_t col0, int64_t cols, csr_arrays out)
{
    const int64_t k = S->u.blockperm.k, each = S->u.blockperm.kappa * S->u.blockperm.s;
    const int64_t panel = fs_min64(cols, each < LIST ? LIST / each : 1);
    fs_nonzeros list;
    size_t work_bytes;
    void *scratch;
    int64_t bytes = 0;
    FS_TRY_GPU(fs_nonzeros_plan(gpu, S, {0, k, col0, panel}, FS_BY_ROW, 1, &list, &bytes));
    FS_TRY_GPU(add_up_bytes(gpu, k, &work_bytes));
    const int64_t next_at = fs_take(&bytes, (k + 1) * (int64_t)sizeof(int64_t));
    const int64_t work_at = fs_take(&bytes, (int64_t)work_bytes);
    FS_TRY_GPU(fs_gpu_scratch(gpu, bytes, &scratch));
    fs_nonzeros_place(&list, scratch);
    int64_t *next = (int64_t *)((char *)scratch + next_at);

    /* 1. How many nonzeros each row has, and so where it starts. */
    FS_TRY_GPU(fs_gpu_check(gpu, cudaMemsetAsync(next, 0, (size_t)(k + 1) * sizeof *next, gpu->stream),
                            "clearing counts"));
    FS_LOOP(gpu, count_rows, cols)(*S, col0, cols, next);
    FS_TRY_GPU(FS_LAUNCHED(gpu, "counting nonzeros"));
    FS_TRY_GPU(add_up(gpu, next, k, (char *)scratch + work_at, work_bytes));
    FS_LOOP(gpu, write_pointers, k + 1)(next, k, out);
    FS_TRY_GPU(FS_LAUNCHED(gpu, "writing row pointers"));

    /* 2. The panels, each behind what the ones before put into its rows. */
    for (int64_t c = 0; c < cols; c += panel) {
        FS_TRY_GPU(fs_nonzeros_fill(gpu, S, {0, k, col0 + c, fs_min64(panel, cols - c)}, &list));
        FS_LOOP(gpu, write_panel, list.count)
        (list.words.now, list.count, list.start, next, list.minor_bits + 1, c, S->scale, out);
        FS_TRY_GPU(FS_LAUNCHED(gpu, "writing entries"));
        FS_LOOP(gpu, advance, k)(list.start, k, next);
        FS_TRY_GPU(FS_LAUNCHED(gpu, "advancing rows"));
    }
    return FS_OK;
}

/* The words of one row, sign apart, are equal where a draw repeats an element. */
static __global__ void count_distinct(const uint64_t *word, const int64_t *start, int64_t rows, int64_t *count)
{
    for (int64_t r = fs_first_item(); r <= rows; r += fs_item_step()) {
        int64_t distinct = 0;
        if (r < rows)
            for (int64_t t = start[r]; t < start[r + 1]; t++)
                distinct += t == start[r] || word[t] >> 1 != word[t - 1] >> 1;
        count[r] = distinct;
    }
}
/* next[r] is where row r starts, from where this panel's rows begin on: out.ptr[row0]. */
static __global__ void write_rows(const uint64_t *word, const int64_t *start, const int64_t *next, int64_t row0,
                                  int64_t rows, int shift, int64_t col0, fs_gpu_weights w, csr_arrays out)
{
    const int64_t base = fs_index_at(out.ptr, out.index_type, row0);
    for (int64_t r = fs_first_item(); r < rows; r += fs_item_step()) {
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
        fs_index_put(out.ptr, out.index_type, row0 + r + 1, base + next[r + 1]);
    }
}

static fs_result blockrow_csr(fs_gpu *gpu, const fs_def *S, int64_t col0, int64_t cols, csr_arrays out)
{
    const int64_t k = S->u.blockrow.k, each = S->u.blockrow.kappa * S->u.blockrow.s;
    const int row_bits = 63 - fs_bits(cols > 0 ? (uint64_t)cols - 1 : 0);
    int64_t panel = fs_min64(k, each < LIST ? LIST / each : 1);
    if (row_bits < 32) panel = fs_min64(panel, ((int64_t)1 << row_bits) - 1);
    fs_nonzeros list;
    size_t work_bytes;
    void *scratch;
    int64_t bytes = 0;
    FS_TRY_GPU(fs_nonzeros_plan(gpu, S, {0, panel, col0, cols}, FS_BY_ROW, 1, &list, &bytes));
    FS_TRY_GPU(add_up_bytes(gpu, panel, &work_bytes));
    const int64_t next_at = fs_take(&bytes, (panel + 1) * (int64_t)sizeof(int64_t));
    const int64_t work_at = fs_take(&bytes, (int64_t)work_bytes);
    FS_TRY_GPU(fs_gpu_scratch(gpu, bytes, &scratch));
    fs_nonzeros_place(&list, scratch);
    int64_t *next = (int64_t *)((char *)scratch + next_at);

    FS_TRY_GPU(fs_gpu_check(gpu, cudaMemsetAsync(out.ptr, 0, out.index_type == FS_INDEX32 ? 4 : 8, gpu->stream),
                            "starting row pointers"));
    for (int64_t row0 = 0; row0 < k; row0 += panel) {
        const int64_t rows = fs_min64(panel, k - row0);
        FS_TRY_GPU(fs_nonzeros_fill(gpu, S, {row0, rows, col0, cols}, &list));
        FS_LOOP(gpu, count_distinct, rows + 1)(list.words.now, list.start, rows, next);
        FS_TRY_GPU(FS_LAUNCHED(gpu, "counting entries"));
        FS_TRY_GPU(add_up(gpu, next, rows, (char *)scratch + work_at, work_bytes));
        FS_LOOP(gpu, write_rows, rows)
        (list.words.now, list.start, next, row0, rows, list.minor_bits + 1, col0, fs_gpu_weights_of(S), out);
        FS_TRY_GPU(FS_LAUNCHED(gpu, "writing rows"));
    }
    return FS_OK;
}

fs_result fs_gpu_csr(fs_gpu *gpu, const fs_def *S, int64_t col0, const fs_sparse *out)
{
    const csr_arrays arrays = {out->ptr, out->index, out->value, out->index_type, out->dtype};
    const int64_t k = rows_of(S);
    if (S->family == FS_DEF_BLOCKROW) return blockrow_csr(gpu, S, col0, out->cols, arrays);
    if (!is_dense(S)) return blockperm_csr(gpu, S, col0, out->cols, arrays);
    const int64_t items = fs_div_up(k, 4) * out->cols;
    FS_LOOP(gpu, write_dense, items > k ? items : k + 1)(*S, k, col0, out->cols, arrays);
    return FS_LAUNCHED(gpu, "writing a dense sketch");
}
