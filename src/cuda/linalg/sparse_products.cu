/* sparse_products.cu - U = A P, and W += A'(A P - B), of a sparse A.
 *
 * A line is a row of a CSR or a column of a CSC matrix.  One of the two products is a sum over the entries of a line,
 *     along    to[l] = sum over the entries e of line l of value[e] from[index[e]],
 * the other a sum over all entries with one index,
 *     across   to[x] = sum over the entries e with index[e] = x of value[e] from[line of e],
 * for which the entries' numbers are brought into the order of their indices by a stable sort, in each call.  A sum
 * belongs to a warp, or to a thread block where sums are long, and has a fixed order: nothing is added atomically.
 *
 * The arrays were checked when A was sketched; an index that is out of range gives NaN here, not a wrong address. */
#include "cuda/families/nonzeros.cuh"
#include "cuda/linalg/products.h"
#include "cuda/runtime/element.cuh"

namespace {

enum { THREADS = 256 };
enum { LONG = 512 }; /* entries of an average sum that a thread block shares */

/* A sum for each of `sums` lines and each c < m: to(line, c) = [to +] ..., from(x, c); both by their strides. */
typedef struct sparse_sums {
    const void *ptr, *index, *value;
    fs_index_type index_type;
    int64_t lines, nnz, sums;
    int64_t sources;       /* rows of `from` */
    const uint64_t *order; /* across: index << bits | entry, ascending; NULL: along */
    int bits;
    int64_t m;
    const double *from;
    int64_t from_row, from_col;
    double *to;
    int64_t to_row, to_col;
    int add;
} sparse_sums;

__device__ __forceinline__ int64_t clamped(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }

/* The last line l with ptr[l] <= e. */
__device__ int64_t line_of(const sparse_sums &C, int64_t e)
{
    int64_t low = 0, high = C.lines - 1;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (fsi_index_at(C.ptr, C.index_type, middle) <= e) low = middle;
        else high = middle - 1;
    }
    return low;
}

/* WIDTH threads, a warp or a thread block, for each sum. */
template <class T, int WIDTH> __global__ void __launch_bounds__(THREADS)
    sum_entries(const __grid_constant__ sparse_sums C)
{
    __shared__ double halves[THREADS];
    const int rank = threadIdx.x % WIDTH;
    const uint64_t mask = ((uint64_t)1 << C.bits) - 1;
    for (int64_t place = blockIdx.x * (int64_t)(THREADS / WIDTH) + threadIdx.x / WIDTH; place < C.sums;
         place += (int64_t)gridDim.x * (THREADS / WIDTH)) {
        int64_t first, last;
        if (C.order) {
            first = fsi_lower_bound(C.order, C.nnz, (uint64_t)place << C.bits);
            last = fsi_lower_bound(C.order, C.nnz, (uint64_t)(place + 1) << C.bits);
        } else {
            first = clamped(fsi_index_at(C.ptr, C.index_type, place), C.nnz);
            last = clamped(fsi_index_at(C.ptr, C.index_type, place + 1), C.nnz);
        }
        for (int64_t c = 0; c < C.m; c++) {
            double sum = 0;
            for (int64_t t = first + rank; t < last; t += WIDTH) {
                const int64_t e = C.order ? (int64_t)(C.order[t] & mask) : t;
                const int64_t x = C.order ? line_of(C, e) : fsi_index_at(C.index, C.index_type, e);
                const double a = (double)fsi_widen(((const T *)C.value)[e]);
                sum = fma(a, x >= 0 && x < C.sources ? C.from[x * C.from_row + c * C.from_col] : (double)NAN, sum);
            }
            if (WIDTH == 32) {
                for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
            } else { /* all threads of the block have the same line */
                halves[threadIdx.x] = sum;
                __syncthreads();
                for (int half = THREADS / 2; half > 0; half /= 2) {
                    if ((int)threadIdx.x < half) halves[threadIdx.x] += halves[threadIdx.x + half];
                    __syncthreads();
                }
                sum = halves[0];
                __syncthreads();
            }
            double *to = C.to + place * C.to_row + c * C.to_col;
            if (rank == 0) *to = C.add ? *to + sum : sum;
        }
    }
}

__global__ void number_entries(const void *index, fs_index_type type, int64_t nnz, int bits, uint64_t *word)
{
    for (int64_t e = fsi_first_item(); e < nnz; e += fsi_item_step())
        word[e] = (uint64_t)fsi_index_at(index, type, e) << bits | (uint64_t)e;
}

template <class T> fs_result launch(fsi_gpu *gpu, const sparse_sums &C)
{
    if (C.nnz / C.sums >= LONG)
        sum_entries<T, THREADS><<<(unsigned)fsi_min(C.sums, 1 << 20), THREADS, 0, gpu->stream>>>(C);
    else
        sum_entries<T, 32>
            <<<(unsigned)fsi_min(fsi_div_up(C.sums, THREADS / 32), 1 << 20), THREADS, 0, gpu->stream>>>(C);
    return FSI_LAUNCHED(gpu, "multiplying by a sparse A");
}

/* Scratch of a call: U where it is not the caller's, and the entries in the order of their indices. */
typedef struct sparse_room {
    double *U;
    int64_t U_at;
    fsi_words words;
    int bits;
} sparse_room;

fs_result sort_entries(fsi_gpu *gpu, const fs_sparse *A, sparse_room *room)
{
    const int64_t limit = A->format == FS_CSR ? A->cols : A->rows;
    room->bits = fsi_bits((uint64_t)A->nnz);
    const int bits = room->bits + fsi_bits((uint64_t)limit);
    if (bits > 64)
        return gpu->host.fail(FS_EUNSUPPORTED,
                              "a sparse A of %lld x %lld with %lld entries is too large for a GPU: copy it to host "
                              "memory and use a CPU context",
                              (long long)A->rows, (long long)A->cols, (long long)A->nnz);
    FSI_LOOP(gpu, number_entries, A->nnz)(A->index, A->index_type, A->nnz, room->bits, room->words.now);
    FSI_TRY(FSI_LAUNCHED(gpu, "numbering entries"));
    return fsi_words_sort(gpu, &room->words, A->nnz, room->bits, bits);
}

/* One product: with A (`back` 0), or with A' (1). */
fs_result multiply(fsi_gpu *gpu, const fs_sparse *A, int back, const sparse_room *room, sparse_sums C)
{
    const int along = back == (A->format == FS_CSC);
    C.ptr = A->ptr, C.index = A->index, C.value = A->value, C.index_type = A->index_type;
    C.lines = A->format == FS_CSR ? A->rows : A->cols;
    C.nnz = A->nnz;
    C.sums = back ? A->cols : A->rows;
    C.sources = back ? A->rows : A->cols;
    C.order = along ? NULL : room->words.now;
    C.bits = along ? 0 : room->bits;
#define LAUNCH(T) launch<T>(gpu, C)
    return FSI_BY_DTYPE(A->dtype, LAUNCH);
#undef LAUNCH
}

/* product (U given) or normal. */
fs_result run(void *handle, const fs_sparse *A, int64_t m, const double *P, const fs_matrix *B, double *U, double *W,
              double *squares)
{
    fsi_gpu *gpu = ((fsi_gpu_handle *)handle)->gpu;
    on_device here(gpu->device);
    if (A->rows == 0 || A->cols == 0 || m == 0) return FS_OK;
    sparse_room room = {};
    int64_t bytes = 0;
    const int sorted = A->nnz > 0 && (W || A->format == FS_CSC); /* one product of normal is across, whatever A is */
    if (W) room.U_at = fsi_take(&bytes, A->rows * m * (int64_t)sizeof(double));
    if (sorted) FSI_TRY(fsi_words_plan(gpu, A->nnz, &room.words, &bytes));
    void *scratch = NULL;
    if (bytes > 0) FSI_TRY(fsi_gpu_scratch(gpu, bytes, &scratch));
    if (sorted) {
        fsi_words_place(&room.words, scratch);
        FSI_TRY(sort_entries(gpu, A, &room));
    }
    room.U = W ? (double *)((char *)scratch + room.U_at) : U;
    if (A->nnz == 0) {
        FSI_TRY(fsi_gpu_dense.zero(handle, room.U, (size_t)(A->rows * m) * sizeof(double)));
    } else {
        sparse_sums C = {};
        C.m = m;
        C.from = P, C.from_row = 1, C.from_col = A->cols;
        C.to = room.U, C.to_row = m, C.to_col = 1;
        FSI_TRY(multiply(gpu, A, 0, &room, C));
    }
    if (!W) return FS_OK;
    FSI_TRY(fsi_gpu_subtract(gpu, A->rows, m, B, room.U));
    FSI_TRY(fsi_gpu_add_squares(gpu, A->rows, m, room.U, squares));
    if (A->nnz == 0) return FS_OK;
    sparse_sums C = {};
    C.m = m, C.add = 1;
    C.from = room.U, C.from_row = m, C.from_col = 1;
    C.to = W, C.to_row = 1, C.to_col = A->cols;
    return multiply(gpu, A, 1, &room, C);
}

}  // namespace

fs_result fsi_gpu_dense_product_sparse(void *handle, const fs_sparse *A, int64_t m, const double *P, double *U)
{
    return run(handle, A, m, P, NULL, U, NULL, NULL);
}
fs_result fsi_gpu_dense_normal_sparse(void *handle, const fs_sparse *A, int64_t m, const double *P, const fs_matrix *B,
                                      double *W, double *squares)
{
    return run(handle, A, m, P, B, NULL, W, squares);
}
