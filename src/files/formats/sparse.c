/* sparse.c - see sparse.h. */
#include "files/formats/sparse.h"

#include <stdlib.h>
#include <string.h>

enum { FREE_ROWS = 1 << 22, ROWS_PER_ENTRY = 64 }; /* rows that are always read, and rows for each entry */

fs_result sparse_check_rows(const reader_source *in, int64_t rows, int64_t entries)
{
    if (rows <= FREE_ROWS || rows / ROWS_PER_ENTRY <= entries) return 0;
    return bad_file("%s: the header gives %" PRId64 " rows and only %" PRId64 " entries; more than %d rows are read "
                    "only where there are at most %d to an entry",
                    in->path, rows, entries, FREE_ROWS, ROWS_PER_ENTRY);
}

void sparse_located(int64_t rows, int64_t cols, file_matrix *out)
{
    out->is_sparse = 1;
    out->sparse = (fs_sparse){.format = FS_CSR, .rows = rows, .cols = cols, .dtype = FS_F64, .memory = FS_MEMORY_HOST};
}

fs_result sparse_entries_allocate(const reader_source *in, int64_t count, sparse_entries *e)
{
    memset(e, 0, sizeof *e);
    e->count = count;
    e->row = reader_array(in, &e->held, 0, count, sizeof *e->row);
    e->col = e->row ? reader_array(in, &e->held, 1, count, sizeof *e->col) : NULL;
    e->value = e->col ? reader_array(in, &e->held, 2, count, sizeof *e->value) : NULL;
    return e->value ? FS_OK : FS_ENOMEM;
}

void sparse_entries_free(sparse_entries *e) { file_close(&e->held); }

/* Adds to ptr[i]; returns what it was. */
static int64_t sparse_advance(fs_sparse *A, int64_t i, int64_t by)
{
    const int64_t was = fsi_index_load(A->ptr, A->index_type, i);
    fsi_index_store(A->ptr, A->index_type, i, was + by);
    return was;
}

/* Puts an entry into its row: ptr[row + 1] is where it goes, and moves on. */
static void place(fs_sparse *A, int64_t row, int64_t col, double value)
{
    const int64_t to = sparse_advance(A, row + 1, 1);
    fsi_index_store(A->index, A->index_type, to, col);
    ((double *)A->value)[to] = value;
}

/* ptr[i + 1] first counts row i - 1, then is the start of row i, and after the placing its end: what it must be. */
fs_result sparse_csr(const reader_source *in, int64_t rows, int64_t cols, int mirror, const sparse_entries *e,
                     file_matrix *out)
{
    fs_sparse *A = &out->sparse;
    int64_t nnz = e->count;
    for (int64_t i = 0; i < e->count && mirror; i++) nnz += e->row[i] != e->col[i];
    const int small = rows < INT32_MAX && cols <= INT32_MAX && nnz <= INT32_MAX;
    const int64_t bytes = small ? 4 : 8;
    *A = (fs_sparse){.format = FS_CSR,
                     .index_type = small ? FS_INDEX32 : FS_INDEX64,
                     .rows = rows,
                     .cols = cols,
                     .nnz = nnz,
                     .dtype = FS_F64,
                     .memory = FS_MEMORY_HOST};
    if (!(A->ptr = reader_array(in, out, 0, rows + 2, bytes)) || !(A->index = reader_array(in, out, 1, nnz, bytes)) ||
        !(A->value = reader_array(in, out, 2, nnz, sizeof(double))))
        return FS_ENOMEM;
    memset(A->ptr, 0, (size_t)((rows + 2) * bytes));
    for (int64_t i = 0; i < e->count; i++) {
        sparse_advance(A, e->row[i] + 2, 1);
        if (mirror && e->row[i] != e->col[i]) sparse_advance(A, e->col[i] + 2, 1);
    }
    for (int64_t i = 1; i <= rows; i++) sparse_advance(A, i + 1, fsi_index_load(A->ptr, A->index_type, i));
    for (int64_t i = 0; i < e->count; i++) {
        place(A, e->row[i], e->col[i], e->value[i]);
        if (mirror && e->row[i] != e->col[i]) place(A, e->col[i], e->row[i], mirror * e->value[i]);
    }
    out->is_sparse = 1;
    return 0;
}
