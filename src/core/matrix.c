#include "core/matrix.h"

#include <inttypes.h>

#include "base/dtype.h"
#include "base/error.h"

static fs_matrix packed(void *data, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, fs_dtype dtype)
{
    const fs_matrix m = {data, rows, cols, row_stride, col_stride, 0, 0, dtype, FS_MEMORY_HOST};
    return m;
}
fs_matrix fs_row_major(void *data, int64_t rows, int64_t cols, fs_dtype dtype)
{
    return packed(data, rows, cols, cols, 1, dtype);
}
fs_matrix fs_col_major(void *data, int64_t rows, int64_t cols, fs_dtype dtype)
{
    return packed(data, rows, cols, 1, rows, dtype);
}
fs_matrix fs_batch_major(void *data, int64_t samples, int64_t coordinates, fs_dtype dtype)
{
    return packed(data, coordinates, samples, 1, coordinates, dtype);
}

/* The first and the last element a view touches, as indices into its buffer; 0 if that overflows. */
static int extent(const fs_matrix *m, int64_t *first, int64_t *last)
{
    int64_t down, across;
    *first = *last = m->offset;
    if (__builtin_mul_overflow(m->rows - 1, m->row_stride, &down)) return 0;
    if (__builtin_mul_overflow(m->cols - 1, m->col_stride, &across)) return 0;
    if (__builtin_add_overflow(*first, down < 0 ? down : 0, first)) return 0;
    if (__builtin_add_overflow(*first, across < 0 ? across : 0, first)) return 0;
    if (__builtin_add_overflow(*last, down > 0 ? down : 0, last)) return 0;
    return !__builtin_add_overflow(*last, across > 0 ? across : 0, last);
}

fs_result fs_matrix_check(const char *who, const char *name, const fs_matrix *m)
{
    FSI_REQUIRE(m, "%s: %s is NULL", who, name);
    FSI_REQUIRE(fsi_dtype_known(m->dtype), "%s: %s has dtype %d, which does not exist; it must be one of fs_dtype", who,
                name, (int)m->dtype);
    FSI_REQUIRE(m->memory == FS_MEMORY_HOST || m->memory == FS_MEMORY_CUDA,
                "%s: %s has memory space %d, which does not exist; it must be FS_MEMORY_HOST or FS_MEMORY_CUDA", who,
                name, (int)m->memory);
    FSI_REQUIRE(m->rows >= 0 && m->cols >= 0, "%s: %s is %" PRId64 " x %" PRId64 ", a size cannot be negative", who,
                name, m->rows, m->cols);
    FSI_REQUIRE(m->size >= 0, "%s: %s.size is %" PRId64 " elements, it must be at least 0 (0: unknown)", who, name,
                m->size);
    if (m->rows == 0 || m->cols == 0) return FS_OK;

    const int64_t bytes = fsi_dtype_size(m->dtype);
    int64_t first, last, end;
    FSI_REQUIRE(m->data, "%s: %s is %" PRId64 " x %" PRId64 " but its data is NULL", who, name, m->rows, m->cols);
    FSI_REQUIRE((uintptr_t)m->data % (uintptr_t)bytes == 0, "%s: %s's data is not aligned to its %d-byte elements", who,
                name, (int)bytes);
    FSI_REQUIRE(extent(m, &first, &last) && !__builtin_mul_overflow(last, bytes, &end),
                "%s: %s is %" PRId64 " x %" PRId64 " with strides %" PRId64 " and %" PRId64
                ": its addresses do not fit 64 bits",
                who, name, m->rows, m->cols, m->row_stride, m->col_stride);
    FSI_REQUIRE(first >= 0,
                "%s: %s starts at element %" PRId64 " with strides %" PRId64 " and %" PRId64
                " and leaves its buffer: it reaches element %" PRId64,
                who, name, m->offset, m->row_stride, m->col_stride, first);
    FSI_REQUIRE(m->size == 0 || last < m->size, "%s: %s reaches element %" PRId64 " of a buffer of %" PRId64, who, name,
                last, m->size);
    return FS_OK;
}

/* |x|; for INT64_MIN, whose absolute value is not representable, INT64_MAX. */
static int64_t magnitude(int64_t x) { return x == INT64_MIN ? INT64_MAX : x < 0 ? -x : x; }

fs_result fs_matrix_check_output(const char *who, const char *name, const fs_matrix *m)
{
    FSI_TRY(fs_matrix_check(who, name, m));
    if (m->rows == 0 || m->cols == 0) return FS_OK;
    int64_t inner = magnitude(m->row_stride), outer = magnitude(m->col_stride), count = m->rows;
    if (m->rows <= 1 || m->cols <= 1) {
        const int64_t stride = m->rows > 1 ? inner : outer;
        FSI_REQUIRE((m->rows <= 1 && m->cols <= 1) || stride > 0,
                    "%s: the elements of %s lie on each other, its stride is 0", who, name);
        return FS_OK;
    }
    if (inner > outer) {
        const int64_t swap = inner;
        inner = outer;
        outer = swap;
        count = m->cols;
    }
    FSI_REQUIRE(inner > 0 && (count - 1) <= (outer - 1) / inner,
                "%s: elements of %s lie on each other: %" PRId64 " x %" PRId64 " with strides %" PRId64 " and %" PRId64,
                who, name, m->rows, m->cols, m->row_stride, m->col_stride);
    return FS_OK;
}

/* Lines of `width` bytes every `pitch` bytes: does the line of a avoid the line of b everywhere? */
static int interleave_apart(uintptr_t a, uintptr_t a_width, uintptr_t b, uintptr_t b_width, uintptr_t pitch)
{
    if (pitch == 0 || a_width > pitch || b_width > pitch) return 0;
    const uintptr_t gap = b >= a ? (b - a) % pitch : (pitch - (a - b) % pitch) % pitch;
    return gap >= a_width && gap + b_width <= pitch;
}

/* |stride| in bytes; the stride of a dimension with one element is never taken and counts as 0. */
static uintptr_t pitch_of(int64_t stride, int64_t count, int64_t bytes)
{
    return count > 1 ? (uintptr_t)magnitude(stride) * (uintptr_t)bytes : 0;
}

int fs_matrix_overlap(const fs_matrix *a, const fs_matrix *b)
{
    if (a->rows == 0 || a->cols == 0 || b->rows == 0 || b->cols == 0 || a->memory != b->memory) return 0;
    const int64_t a_bytes = fsi_dtype_size(a->dtype), b_bytes = fsi_dtype_size(b->dtype);
    int64_t a_first, a_last, b_first, b_last;
    extent(a, &a_first, &a_last);
    extent(b, &b_first, &b_last);
    const uintptr_t a0 = (uintptr_t)a->data + (uintptr_t)(a_first * a_bytes);
    const uintptr_t a1 = (uintptr_t)a->data + (uintptr_t)(a_last * a_bytes) + (uintptr_t)a_bytes;
    const uintptr_t b0 = (uintptr_t)b->data + (uintptr_t)(b_first * b_bytes);
    const uintptr_t b1 = (uintptr_t)b->data + (uintptr_t)(b_last * b_bytes) + (uintptr_t)b_bytes;
    if (a1 <= b0 || b1 <= a0) return 0;

    const uintptr_t a_row = pitch_of(a->row_stride, a->rows, a_bytes),
                    a_col = pitch_of(a->col_stride, a->cols, a_bytes);
    const uintptr_t b_row = pitch_of(b->row_stride, b->rows, b_bytes),
                    b_col = pitch_of(b->col_stride, b->cols, b_bytes);
    const uintptr_t a_wide = (uintptr_t)(a->cols - 1) * a_col + (uintptr_t)a_bytes;
    const uintptr_t b_wide = (uintptr_t)(b->cols - 1) * b_col + (uintptr_t)b_bytes;
    const uintptr_t a_tall = (uintptr_t)(a->rows - 1) * a_row + (uintptr_t)a_bytes;
    const uintptr_t b_tall = (uintptr_t)(b->rows - 1) * b_row + (uintptr_t)b_bytes;
    if (a_row == b_row && interleave_apart(a0, a_wide, b0, b_wide, a_row)) return 0;
    return !(a_col == b_col && interleave_apart(a0, a_tall, b0, b_tall, a_col));
}

fs_result fsi_sparse_check(const char *who, const char *name, const fs_sparse *A)
{
    FSI_REQUIRE(A, "%s: %s is NULL", who, name);
    FSI_REQUIRE(A->format == FS_CSR || A->format == FS_CSC,
                "%s: %s.format %d does not exist; it must be FS_CSR or FS_CSC", who, name, (int)A->format);
    FSI_REQUIRE(A->index_type == FS_INDEX32 || A->index_type == FS_INDEX64,
                "%s: %s.index_type %d does not exist; it must be FS_INDEX32 or FS_INDEX64", who, name,
                (int)A->index_type);
    FSI_REQUIRE(fsi_dtype_known(A->dtype), "%s: %s.dtype %d does not exist; it must be one of fs_dtype", who, name,
                (int)A->dtype);
    FSI_REQUIRE(A->memory == FS_MEMORY_HOST || A->memory == FS_MEMORY_CUDA,
                "%s: %s.memory %d does not exist; it must be FS_MEMORY_HOST or FS_MEMORY_CUDA", who, name,
                (int)A->memory);
    FSI_REQUIRE(A->rows >= 0 && A->cols >= 0 && A->nnz >= 0,
                "%s: %s is %" PRId64 " x %" PRId64 " with %" PRId64 " nonzeros, none may be negative", who, name,
                A->rows, A->cols, A->nnz);
    FSI_REQUIRE(A->ptr && (A->nnz == 0 || (A->index && A->value)), "%s: an array of %s is NULL", who, name);
    const uintptr_t index_bytes = A->index_type == FS_INDEX32 ? 4 : 8,
                    value_bytes = (uintptr_t)fsi_dtype_size(A->dtype);
    FSI_REQUIRE((uintptr_t)A->ptr % index_bytes == 0 && (uintptr_t)A->index % index_bytes == 0 &&
                    (uintptr_t)A->value % value_bytes == 0,
                "%s: an array of %s is not aligned to its elements (ptr and index %d "
                "bytes, value %d)",
                who, name, (int)index_bytes, (int)value_bytes);
    return FS_OK;
}

int fsi_sparse_overlap(const fs_sparse *A, const fs_matrix *Y)
{
    const fs_dtype index = A->index_type == FS_INDEX32 ? FS_F32 : FS_F64; /* types of the right size */
    const int64_t lines = A->format == FS_CSR ? A->rows : A->cols;
    fs_matrix arrays[3] = {fs_row_major(A->ptr, 1, lines + 1, index), fs_row_major(A->index, 1, A->nnz, index),
                           fs_row_major(A->value, 1, A->nnz, A->dtype)};
    for (int i = 0; i < 3; i++) {
        arrays[i].memory = A->memory;
        if (fs_matrix_overlap(&arrays[i], Y)) return 1;
    }
    return 0;
}

fs_matrix fsi_matrix_at_origin(const fs_matrix *m)
{
    fs_matrix moved = *m;
    if (m->data) moved.data = (char *)m->data + m->offset * fsi_dtype_size(m->dtype);
    moved.offset = 0;
    return moved;
}

fs_matrix fsi_matrix_at_lowest(const fs_matrix *m)
{
    fs_matrix moved = fsi_matrix_at_origin(m);
    const int64_t down = m->rows > 0 ? (m->rows - 1) * m->row_stride : 0,
                  across = m->cols > 0 ? (m->cols - 1) * m->col_stride : 0;
    moved.offset = -((down < 0 ? down : 0) + (across < 0 ? across : 0));
    moved.size = 0;
    if (m->data) moved.data = (char *)moved.data - moved.offset * fsi_dtype_size(m->dtype);
    return moved;
}

fs_result fsi_sparse_check_arrays(const char *who, const fs_sparse *A)
{
    const int64_t lines = A->format == FS_CSR ? A->rows : A->cols, limit = A->format == FS_CSR ? A->cols : A->rows;
    FSI_REQUIRE(fsi_index_load(A->ptr, A->index_type, 0) == 0,
                "%s: A.ptr starts with %" PRId64 ", it must start with 0", who,
                fsi_index_load(A->ptr, A->index_type, 0));
    for (int64_t i = 0; i < lines; i++) {
        const int64_t from = fsi_index_load(A->ptr, A->index_type, i),
                      to = fsi_index_load(A->ptr, A->index_type, i + 1);
        FSI_REQUIRE(from <= to && to <= A->nnz,
                    "%s: A.ptr[%" PRId64 "] is %" PRId64 ", it must be from %" PRId64 " to nnz = %" PRId64, who, i + 1,
                    to, from, A->nnz);
    }
    FSI_REQUIRE(fsi_index_load(A->ptr, A->index_type, lines) == A->nnz,
                "%s: A.ptr ends with %" PRId64 ", nnz is %" PRId64, who, fsi_index_load(A->ptr, A->index_type, lines),
                A->nnz);
    for (int64_t e = 0; e < A->nnz; e++) {
        const int64_t at = fsi_index_load(A->index, A->index_type, e);
        FSI_REQUIRE(at >= 0 && at < limit, "%s: A.index[%" PRId64 "] is %" PRId64 ", it must be from 0 to %" PRId64,
                    who, e, at, limit - 1);
    }
    return FS_OK;
}
