#include "rows.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flashsketch_extend.h"

void rows_of(distribution how, int64_t d, int64_t *row0, int64_t *rows)
{
    const int64_t all = (int64_t)ranks * (ranks + 1) / 2;
    const int only = ranks == 2 ? 1 : ranks / 2;
    const int place = how == BACKWARDS ? ranks - 1 - rank : rank;
    int64_t end = d * (place + 1) / ranks;
    *row0 = d * place / ranks;
    if (how == UNEVEN) {
        *row0 = d * ((int64_t)rank * (rank + 1) / 2) / all;
        end = d * ((int64_t)(rank + 1) * (rank + 2) / 2) / all;
    }
    if (how == EMPTY) {
        *row0 = rank == only ? 0 : d;
        end = d;
    }
    *rows = end - *row0;
}

/* Compressed rows or columns of a row-major f64 matrix, every element stored. */
static fs_sparse compress(fs_sparse_format format, const double *a, int64_t rows, int64_t n)
{
    const int64_t lines = format == FS_CSR ? rows : n, length = format == FS_CSR ? n : rows;
    int32_t *ptr = room(lines + 1, sizeof *ptr), *index = room(rows * n, sizeof *index);
    double *value = room(rows * n, sizeof *value);
    for (int64_t l = 0; l < lines; l++) {
        ptr[l + 1] = (int32_t)((l + 1) * length);
        for (int64_t e = 0; e < length; e++) {
            index[l * length + e] = (int32_t)e;
            value[l * length + e] = format == FS_CSR ? a[l * n + e] : a[e * n + l];
        }
    }
    const fs_sparse made = {format, FS_INDEX32, rows, n, rows * n, ptr, index, value, FS_F64, FS_MEMORY_HOST};
    return made;
}
static void release(fs_sparse *s)
{
    free(s->ptr), free(s->index), free(s->value);
    memset(s, 0, sizeof *s);
}

static fs_result rewind_part(void *user)
{
    part *p = user;
    p->at = 0;
    p->reads++;
    return FS_OK;
}

static fs_result next_slice(void *user, fs_matrix *dense, const fs_sparse **sparse)
{
    enum { SLICE = 37 };
    part *p = user;
    if (p->reads == p->dies_at) kill(getpid(), SIGKILL);
    if (p->reads == p->fails_at && p->at > 0)
        return fs_fail(FS_EFILE, "rows.npy ends at row %d in read %d", (int)p->at, (int)p->reads);
    const int64_t left = p->dense.rows - p->at, n = p->dense.cols;
    fs_matrix rows = p->dense;
    rows.data = (char *)rows.data + p->at * n * (int64_t)fs_dtype_size(rows.dtype);
    rows.rows = left < SLICE ? left : SLICE;
    p->at += rows.rows;
    *dense = rows;
    if (!p->sparse_slices) return FS_OK;
    release(&p->slice);
    p->slice = compress(FS_CSR, rows.data, rows.rows, n);
    *sparse = &p->slice;
    return FS_OK;
}

void part_make(part *p, form how, const fs_matrix *whole, int64_t row0, int64_t rows)
{
    const fs_operand operand = FS_OPERAND_INIT;
    const fs_slices slices = FS_SLICES_INIT;
    const int64_t n = whole->cols;
    memset(p, 0, sizeof *p);
    p->operand = operand, p->slices = slices;
    p->dense = *whole;
    p->dense.data = (char *)whole->data + row0 * n * (int64_t)fs_dtype_size(whole->dtype);
    p->dense.rows = rows;
    if (how == SPARSE_ROWS || how == SPARSE_COLUMNS) {
        p->sparse = compress(how == SPARSE_ROWS ? FS_CSR : FS_CSC, p->dense.data, rows, n);
        p->operand.sparse = &p->sparse;
    } else if (how == SLICES || how == SPARSE_SLICES) {
        p->sparse_slices = how == SPARSE_SLICES;
        p->slices.rows = rows, p->slices.cols = n, p->slices.dtype = whole->dtype;
        p->slices.rewind = rewind_part, p->slices.next = next_slice, p->slices.user = p;
        p->operand.slices = &p->slices;
    } else {
        p->operand.dense = &p->dense;
    }
    if (how != DENSE_COLUMNS) return;
    double *copy = p->copy = room(rows * n, sizeof *copy);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) copy[i + j * rows] = ((const double *)p->dense.data)[i * n + j];
    p->dense = fs_col_major(copy, rows, n, FS_F64);
}

void part_free(part *p)
{
    release(&p->sparse), release(&p->slice);
    free(p->copy);
}

void expect_same(const char *what, const void *data, size_t bytes)
{
    void *first = room((int64_t)bytes, 1);
    memcpy(first, data, bytes);
    MPI_Bcast(first, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    EXPECT(memcmp(first, data, bytes) == 0, "%s: other bits than rank 0's", what);
    free(first);
}

void expect_near(const char *what, const double *got, const double *want, int64_t count, double bound)
{
    double size = 0;
    for (int64_t i = 0; i < count; i++) size = fmax(size, fabs(want[i]));
    for (int64_t i = 0; i < count; i++)
        EXPECT(fabs(got[i] - want[i]) <= bound * size || (isnan(got[i]) && isnan(want[i])),
               "%s: number %d is %.17g, not %.17g", what, (int)i, got[i], want[i]);
}
