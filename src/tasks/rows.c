/* rows.c - see rows.h.
 *
 * Rows of a sparse A become dense by a product with columns of I, in the order that is wanted; compressed columns are
 * sorted by rows first, which takes as much memory as A. */
#include "tasks/rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/dtype.h"
#include "base/math.h"
#include "core/matrix.h"

/* Numbers of a panel, large enough to pay for its calls, small enough for caches; and its rows. */
enum { PANEL_HOST = 1 << 20, PANEL_DEVICE = 1 << 23, LEAST_ROWS = 256, ROWS_HOST = 8192, ROWS_DEVICE = 1 << 17 };

fs_result fsi_rows_host(const fsi_operand *A, int64_t count, size_t element, void **memory)
{
    size_t bytes;
    *memory = NULL;
    if (__builtin_mul_overflow((size_t)count, element, &bytes))
        return fs_fail(FS_ENOMEM, "%s: %" PRId64 " numbers do not fit memory", A->who, count);
    *memory = A->ctx->allocator.alloc(A->ctx->allocator.user, bytes ? bytes : 1);
    return *memory ? FS_OK : fs_fail(FS_ENOMEM, "%s: no memory for %zu bytes", A->who, bytes);
}

void fsi_rows_release(const fsi_operand *A, void *memory)
{
    if (memory) A->ctx->allocator.release(A->ctx->allocator.user, memory);
}

/* The matrix whose column j is that of I with the number order[j]. */
static fs_result make_selection(fsi_rows *r)
{
    const int64_t n = r->A->n;
    void *host = NULL;
    FSI_TRY(fsi_operand_alloc(r->A, n * n, &r->select));
    FSI_TRY(fsi_rows_host(r->A, n * n, sizeof(double), &host));
    memset(host, 0, (size_t)(n * n) * sizeof(double));
    for (int64_t j = 0; j < n; j++) ((double *)host)[(r->order ? r->order[j] : j) + j * n] = 1;
    const fs_result result = r->A->dense->send(r->A->handle, host, (size_t)(n * n) * sizeof(double), r->select);
    fsi_rows_release(r->A, host);
    return result;
}

/* The fields that do not depend on P or an order. */
static fs_result open_panel(fsi_rows *r, fsi_operand *A, int64_t m)
{
    memset(r, 0, sizeof *r);
    r->A = A;
    r->m = m;
    const int in_host = A->ctx->backend->memory == FS_MEMORY_HOST;
    const int64_t width = A->is_sparse ? m : fsi_max(A->n, m);
    const int64_t most = fsi_min(in_host ? ROWS_HOST : ROWS_DEVICE, (in_host ? PANEL_HOST : PANEL_DEVICE) / width);
    r->most = fsi_max(LEAST_ROWS, fsi_min(most, A->d));
    FSI_TRY(fsi_operand_alloc(A, m * r->most, &r->Z));
    if (!A->is_sparse && !A->slices.next) return FS_OK;
    FSI_TRY(fsi_rows_host(A, r->most + 1, sizeof(int64_t), &r->ptr));
    return A->dense->alloc(A->handle, (size_t)(r->most + 1) * sizeof(int64_t), &r->ptr_there);
}

fs_result fsi_rows_open(fsi_rows *r, fsi_operand *A, const int64_t *order)
{
    FSI_TRY(open_panel(r, A, A->n));
    r->order = order;
    if (order) {
        const size_t bytes = (size_t)A->n * sizeof *order;
        FSI_TRY(A->dense->alloc(A->handle, bytes, &r->order_there));
        DENSE(A, send, order, bytes, r->order_there);
    }
    if (!r->ptr) return FS_OK;
    FSI_TRY(make_selection(r));
    r->P = r->select;
    return FS_OK;
}

fs_result fsi_rows_open_product(fsi_rows *r, fsi_operand *A, int64_t m, const double *P)
{
    FSI_TRY(open_panel(r, A, m));
    r->P = P;
    return A->is_sparse ? FS_OK : fsi_operand_alloc(A, A->n * r->most, &r->wide);
}

void fsi_rows_close(fsi_rows *r)
{
    if (!r->A) return;
    fsi_operand_free(r->A, r->Z);
    fsi_operand_free(r->A, r->wide);
    fsi_operand_free(r->A, r->select);
    fsi_operand_free(r->A, r->ptr_there);
    fsi_operand_free(r->A, r->order_there);
    fsi_rows_release(r->A, r->ptr);
    memset(r, 0, sizeof *r);
}

typedef struct pass {
    fsi_rows *r;
    fsi_visit_panel visit;
    void *user;
} pass;

/* dense ------------------------------------------------------------------------------------------------------ */

static fs_result visit_dense(const pass *p, int64_t row0, const fs_matrix *slice)
{
    fsi_rows *r = p->r;
    const int64_t n = r->A->n, rows = slice->rows;
    double *to = r->wide ? r->wide : r->Z;
    if (r->order_there) DENSE(r->A, widen_columns, slice, r->order_there, to, n);
    else DENSE(r->A, widen, slice, to, n);
    if (r->wide) DENSE(r->A, gemm, 1, 0, r->m, rows, n, 1.0, r->P, n, r->wide, n, 0.0, r->Z, r->m);
    return p->visit(p->user, row0, rows);
}

/* sparse ----------------------------------------------------------------------------------------------------- */

/* Compressed rows: `from` (CSR) with its pointers in host memory too. */
typedef struct compressed {
    fs_sparse from;
    const void *ptr; /* of from, in host memory */
    void *host[3], *there[2];
} compressed;

static void give_back(const fsi_operand *A, compressed *c)
{
    for (int i = 0; i < 3; i++) fsi_rows_release(A, c->host[i]);
    for (int i = 0; i < 2; i++)
        if (c->there[i]) A->dense->release(A->handle, c->there[i]);
}

/* An array of a sparse matrix in host memory: itself, or a copy that the caller releases. */
static fs_result in_host(const fsi_operand *A, const fs_sparse *m, void *array, int64_t count, size_t element,
                         void **copy, const void **out)
{
    *out = array;
    if (m->memory == FS_MEMORY_HOST) return FS_OK;
    FSI_TRY(fsi_rows_host(A, count, element, copy));
    *out = *copy;
    return A->dense->fetch(A->handle, array, (size_t)count * element, *copy);
}

/* Sorts compressed columns (arrays in host memory) by rows into ptr, index and value. */
static void sort_by_rows(const fs_sparse *m, const void *ptr, const void *index, const void *value, void *to_ptr,
                         void *to_index, void *to_value)
{
    const fs_index_type type = m->index_type;
    const size_t element = (size_t)fsi_dtype_size(m->dtype);
    for (int64_t i = 0; i <= m->rows; i++) fsi_index_store(to_ptr, type, i, 0);
    for (int64_t e = 0; e < m->nnz; e++) {
        const int64_t i = fsi_index_load(index, type, e);
        fsi_index_store(to_ptr, type, i, fsi_index_load(to_ptr, type, i) + 1);
    }
    int64_t sum = 0;
    for (int64_t i = 0; i <= m->rows; i++) { /* ends of rows: filled from the back */
        sum += i < m->rows ? fsi_index_load(to_ptr, type, i) : 0;
        fsi_index_store(to_ptr, type, i, sum);
    }
    for (int64_t j = m->cols - 1; j >= 0; j--)
        for (int64_t e = fsi_index_load(ptr, type, j + 1) - 1; e >= fsi_index_load(ptr, type, j); e--) {
            const int64_t i = fsi_index_load(index, type, e), at = fsi_index_load(to_ptr, type, i) - 1;
            fsi_index_store(to_ptr, type, i, at);
            fsi_index_store(to_index, type, at, j);
            memcpy((char *)to_value + (size_t)at * element, (const char *)value + (size_t)e * element, element);
        }
}

static fs_result columns_to_rows(const fsi_operand *A, const fs_sparse *m, compressed *c)
{
    const size_t index = m->index_type == FS_INDEX32 ? 4 : 8, value = (size_t)fsi_dtype_size(m->dtype);
    void *copies[3] = {NULL, NULL, NULL};
    const void *from[3] = {NULL, NULL, NULL};
    fs_result result = in_host(A, m, m->ptr, m->cols + 1, index, &copies[0], &from[0]);
    if (result == FS_OK) result = in_host(A, m, m->index, m->nnz, index, &copies[1], &from[1]);
    if (result == FS_OK) result = in_host(A, m, m->value, m->nnz, value, &copies[2], &from[2]);
    if (result == FS_OK) result = fsi_rows_host(A, m->rows + 1, index, &c->host[0]);
    if (result == FS_OK) result = fsi_rows_host(A, m->nnz, index, &c->host[1]);
    if (result == FS_OK) result = fsi_rows_host(A, m->nnz, value, &c->host[2]);
    if (result == FS_OK) sort_by_rows(m, from[0], from[1], from[2], c->host[0], c->host[1], c->host[2]);
    for (int i = 0; i < 3; i++) fsi_rows_release(A, copies[i]);
    FSI_TRY(result);
    c->from.format = FS_CSR;
    c->from.index = c->host[1];
    c->from.value = c->host[2];
    c->ptr = c->host[0];
    if (m->memory == FS_MEMORY_HOST) return FS_OK;
    for (int i = 0; i < 2; i++) {
        const size_t bytes = (size_t)m->nnz * (i ? value : index);
        FSI_TRY(A->dense->alloc(A->handle, bytes, &c->there[i]));
        FSI_TRY(A->dense->send(A->handle, c->host[1 + i], bytes, c->there[i]));
    }
    c->from.index = c->there[0];
    c->from.value = c->there[1];
    return FS_OK;
}

static fs_result visit_rows(const pass *p, int64_t row0, const compressed *c)
{
    fsi_rows *r = p->r;
    const fs_sparse *m = &c->from;
    const fs_index_type type = m->index_type;
    const int64_t width = type == FS_INDEX32 ? 4 : 8;
    for (int64_t at = 0; at < m->rows; at += r->most) {
        const int64_t rows = fsi_min(r->most, m->rows - at), begin = fsi_index_load(c->ptr, type, at);
        for (int64_t i = 0; i <= rows; i++)
            fsi_index_store(r->ptr, type, i, fsi_index_load(c->ptr, type, at + i) - begin);
        DENSE(r->A, send, r->ptr, (size_t)((rows + 1) * width), r->ptr_there);
        fs_sparse part = *m;
        part.rows = rows;
        part.nnz = fsi_index_load(r->ptr, type, rows);
        part.ptr = r->ptr_there;
        part.index = (char *)m->index + begin * width;
        part.value = (char *)m->value + begin * fsi_dtype_size(m->dtype);
        DENSE(r->A, product_sparse, &part, r->m, r->P, r->Z);
        FSI_TRY(p->visit(p->user, row0 + at, rows));
    }
    return FS_OK;
}

static fs_result visit_sparse(const pass *p, int64_t row0, const fs_sparse *slice)
{
    const fsi_operand *A = p->r->A;
    compressed c = {.from = *slice};
    const size_t index = slice->index_type == FS_INDEX32 ? 4 : 8;
    fs_result result = slice->format == FS_CSR
                           ? in_host(A, slice, slice->ptr, slice->rows + 1, index, &c.host[0], &c.ptr)
                           : columns_to_rows(A, slice, &c);
    if (result == FS_OK) result = visit_rows(p, row0, &c);
    give_back(A, &c);
    return result;
}

static fs_result visit_slice(void *user, int64_t row0, const fs_matrix *dense, const fs_sparse *sparse)
{
    return sparse ? visit_sparse(user, row0, sparse) : visit_dense(user, row0, dense);
}

fs_result fsi_rows_visit(fsi_rows *r, fsi_visit_panel visit, void *user)
{
    pass p = {r, visit, user};
    return fsi_operand_visit(r->A, r->most, visit_slice, &p);
}
