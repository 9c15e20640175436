/* normal.c - products with the rows of A in one read of it: U = A P, and W += A'(A P - B).
 *
 * A step takes a few rows, multiplies them by P, subtracts B and multiplies the result by the same rows, which are
 * still in the cache.  Rows are cut into strips by the shape of A alone, each strip has sums of its own, and these are
 * added in order: the result does not depend on the number of threads. */
#include <omp.h>
#include <string.h>

#include "cpu/cpu.h"

/* Strips: enough for the threads of a large machine, as long as their sums stay small. */
enum { MOST_STRIPS = 64, STRIP_ROWS = 256, SUM_BYTES_MOST = 1 << 26 };
/* Columns of P from which on a call of the tuned loops pays. */
enum { WIDE = 8 };
/* Rows of a step; elements of a step of columns, which stay in the second cache; rows of such a step. */
enum { STEP_ROWS = 8, STEP_ELEMENTS = 1 << 16, STEP_LEAST = 32, STEP_MOST = 1024 };

/* The product at work.  W NULL: U is stored; otherwise the sums of each strip are m n + m numbers of `sums`. */
typedef struct job {
    const fsi_cpu_ops *ops;
    const fs_matrix *A, *B;
    const fs_sparse *sparse;
    int64_t rows, n, m, strips;
    const double *P;
    const double *Pt; /* m x n, of a sparse A */
    double *U;
    double *sums;    /* of a sparse A, each transposed: m x n */
    int64_t step;    /* rows of a step */
    double *scratch; /* of each thread: `per_thread` doubles */
    int64_t per_thread;
} job;

typedef enum layout { BY_ROWS, BY_COLUMNS, CONVERTED } layout;

static layout layout_of(const fs_matrix *A)
{
    const int plain = A->dtype == FS_F32 || A->dtype == FS_F64;
    if (plain && (A->col_stride == 1 || A->cols == 1)) return BY_ROWS;
    if (plain && A->row_stride == 1) return BY_COLUMNS;
    return CONVERTED;
}

int64_t fsi_cpu_strips(int64_t rows, int64_t sums)
{
    const int64_t fit = SUM_BYTES_MOST / (8 * (sums > 0 ? sums : 1));
    int64_t strips = fsi_div_up(rows, STRIP_ROWS);
    strips = fsi_min(strips, MOST_STRIPS);
    strips = fsi_min(strips, fit);
    return strips < 1 ? 1 : strips;
}

static const char *element_at(const fs_matrix *A, int64_t i, int64_t j)
{
    return (const char *)A->data + (i * A->row_stride + j * A->col_stride) * fsi_dtype_size(A->dtype);
}

/* The step after U = A P of `count` rows from row i on, u[r] of column c of P: stored, or B subtracted and counted. */
static void take_products(const job *J, int64_t c, int64_t i, int64_t count, double *u, double *squares)
{
    if (J->U) {
        for (int64_t r = 0; r < count; r++) J->U[c + (i + r) * J->m] = u[r];
        return;
    }
    double sum = 0;
    for (int64_t r = 0; r < count; r++) {
        if (J->B) u[r] -= fsi_load(J->B->data, J->B->dtype, (i + r) * J->B->row_stride + c * J->B->col_stride);
        sum += u[r] * u[r];
    }
    squares[c] += sum;
}

/* Rows i ... i + count - 1, contiguous. */
static void step_by_rows(const job *J, int64_t i, int64_t count, const void *rows, fs_dtype dtype, int64_t pitch,
                         double *u, double *W, double *squares)
{
    for (int64_t c = 0; c < J->m; c++) {
        J->ops->row_dots(count, J->n, rows, dtype, pitch, J->P + c * J->n, u);
        take_products(J, c, i, count, u, squares);
        if (W) J->ops->row_sums(count, J->n, rows, dtype, pitch, u, W + c * J->n);
    }
}

/* The same where columns are contiguous: a column is a row of the transpose. */
static void step_by_columns(const job *J, int64_t i, int64_t count, double *u, double *dots, double *W, double *squares)
{
    const void *columns = element_at(J->A, i, 0);
    for (int64_t c = 0; c < J->m; c++) {
        memset(u, 0, (size_t)count * sizeof *u);
        J->ops->row_sums(J->n, count, columns, J->A->dtype, J->A->col_stride, J->P + c * J->n, u);
        take_products(J, c, i, count, u, squares);
        if (!W) continue;
        J->ops->row_dots(J->n, count, columns, J->A->dtype, J->A->col_stride, u, dots);
        for (int64_t j = 0; j < J->n; j++) W[c * J->n + j] += dots[j];
    }
}

static void convert(const fs_matrix *A, int64_t i, int64_t count, double *to)
{
    for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < A->cols; j++)
            to[r * A->cols + j] = fsi_load(A->data, A->dtype, (i + r) * A->row_stride + j * A->col_stride);
}

static void run_strip(const job *J, int64_t strip, double *scratch)
{
    const int64_t begin = J->rows * strip / J->strips, end = J->rows * (strip + 1) / J->strips;
    double *W = J->U ? NULL : J->sums + strip * (J->m * J->n + J->m), *squares = W ? W + J->m * J->n : NULL;
    double *u = scratch, *rest = scratch + J->step;
    const layout how = layout_of(J->A);
    for (int64_t i = begin; i < end; i += J->step) {
        const int64_t count = fsi_min(J->step, end - i);
        if (how == BY_COLUMNS) {
            step_by_columns(J, i, count, u, rest, W, squares);
        } else if (how == BY_ROWS) {
            step_by_rows(J, i, count, element_at(J->A, i, 0), J->A->dtype, J->A->row_stride, u, W, squares);
        } else {
            convert(J->A, i, count, rest);
            step_by_rows(J, i, count, rest, FS_F64, J->n, u, W, squares);
        }
    }
}

/* to += x from, m numbers. */
static void add_multiple(const job *J, double x, const double *from, double *to)
{
    if (J->m < WIDE) {
        for (int64_t c = 0; c < J->m; c++) to[c] += x * from[c];
    } else {
        J->ops->row_sums(1, J->m, from, FS_F64, J->m, &x, to);
    }
}

/* A sparse matrix of compressed rows, a row at a time; with P and the sums transposed, an entry of A is multiplied by
 * contiguous numbers. */
static void run_sparse_rows(const job *J, int64_t strip, double *scratch)
{
    const fs_sparse *A = J->sparse;
    const int64_t m = J->m, begin = J->rows * strip / J->strips, end = J->rows * (strip + 1) / J->strips;
    double *W = J->U ? NULL : J->sums + strip * (m * J->n + m), *squares = W ? W + m * J->n : NULL;
    for (int64_t i = begin; i < end; i++) {
        const int64_t from = fsi_index_load(A->ptr, A->index_type, i),
                      to = fsi_index_load(A->ptr, A->index_type, i + 1);
        double *u = J->U ? J->U + i * m : scratch;
        memset(u, 0, (size_t)m * sizeof *u);
        for (int64_t e = from; e < to; e++)
            add_multiple(J, fsi_load(A->value, A->dtype, e), J->Pt + fsi_index_load(A->index, A->index_type, e) * m, u);
        if (!W) continue;
        for (int64_t c = 0; c < m; c++) {
            if (J->B) u[c] -= fsi_load(J->B->data, J->B->dtype, i * J->B->row_stride + c * J->B->col_stride);
            squares[c] += u[c] * u[c];
        }
        for (int64_t e = from; e < to; e++)
            add_multiple(J, fsi_load(A->value, A->dtype, e), u, W + fsi_index_load(A->index, A->index_type, e) * m);
    }
}

static fs_result take_memory(fsi_cpu *cpu, job *J, double *W)
{
    const int64_t sums = W ? J->strips * (J->m * J->n + J->m) : 0, threads = cpu->threads,
                  turned = J->sparse && J->m > 1 ? J->m * J->n : 0;
    double *memory = fsi_cpu_scratch(cpu, (sums + turned + threads * J->per_thread) * (int64_t)sizeof *memory);
    if (!memory) return FS_ENOMEM;
    J->sums = memory;
    J->scratch = memory + sums + turned;
    J->Pt = turned ? memory + sums : J->P;
    for (int64_t c = 0; c < J->m && turned; c++)
        for (int64_t j = 0; j < J->n; j++) memory[sums + c + j * J->m] = J->P[j + c * J->n];
    memset(J->sums, 0, (size_t)sums * sizeof *memory);
    return FS_OK;
}

static void add_strips(const job *J, double *W, double *squares)
{
    const int64_t each = J->m * J->n + J->m;
    for (int64_t strip = 0; strip < J->strips; strip++) {
        const double *from = J->sums + strip * each;
        for (int64_t i = 0; i < J->m * J->n && !J->sparse; i++) W[i] += from[i];
        for (int64_t c = 0; c < J->m && J->sparse; c++)
            for (int64_t j = 0; j < J->n; j++) W[j + c * J->n] += from[c + j * J->m];
        for (int64_t c = 0; c < J->m; c++) squares[c] += from[J->m * J->n + c];
    }
}

static fs_result normal_run(fsi_cpu *cpu, job *J, double *W, double *squares)
{
    if (!J->rows || !J->m) return FS_OK;
    const fs_result result = take_memory(cpu, J, W);
    if (result != FS_OK) return result;
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
    for (int64_t strip = 0; strip < J->strips; strip++) {
        double *scratch = J->scratch + omp_get_thread_num() * J->per_thread;
        if (J->sparse) run_sparse_rows(J, strip, scratch);
        else run_strip(J, strip, scratch);
    }
    if (W) add_strips(J, W, squares);
    return FS_OK;
}

static job dense_job(const fsi_cpu *cpu, const fs_matrix *A, int64_t m, const double *P)
{
    job J = {.ops = cpu->ops, .A = A, .rows = A->rows, .n = A->cols, .m = m, .P = P};
    const layout how = layout_of(A);
    J.step = STEP_ROWS;
    if (how == BY_COLUMNS) J.step = fsi_max(STEP_LEAST, fsi_min(STEP_MOST, STEP_ELEMENTS / fsi_max(1, J.n)));
    J.per_thread = J.step + (how == CONVERTED ? STEP_ROWS * J.n : J.n);
    J.strips = fsi_cpu_strips(J.rows, m * J.n);
    return J;
}

fs_result fsi_cpu_product(fsi_cpu *cpu, const fs_matrix *A, int64_t m, const double *P, double *U)
{
    job J = dense_job(cpu, A, m, P);
    J.U = U;
    return normal_run(cpu, &J, NULL, NULL);
}

fs_result fsi_cpu_normal(fsi_cpu *cpu, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B, double *W,
                         double *squares)
{
    if (B && A->dtype == FS_F64) return fsi_cpu_normal_twice(cpu, A, m, P, B, W, squares);
    job J = dense_job(cpu, A, m, P);
    J.B = B;
    return normal_run(cpu, &J, W, squares);
}

/* compressed columns ------------------------------------------------------------------------------------------- */

/* (A P)' of compressed columns into U, m x rows, cleared first: columns in order, right-hand sides in parallel. */
static void columns_product(const fsi_cpu *cpu, const fs_sparse *A, int64_t m, const double *P, double *U)
{
    memset(U, 0, (size_t)(A->rows * m) * sizeof *U);
#pragma omp parallel for num_threads(cpu->threads) schedule(static)
    for (int64_t c = 0; c < m; c++)
        for (int64_t j = 0; j < A->cols; j++) {
            const double p = P[c * A->cols + j];
            const int64_t end = fsi_index_load(A->ptr, A->index_type, j + 1);
            for (int64_t e = fsi_index_load(A->ptr, A->index_type, j); e < end; e++)
                U[c + fsi_index_load(A->index, A->index_type, e) * m] += fsi_load(A->value, A->dtype, e) * p;
        }
}

/* W += A'U: every column of A has sums of its own. */
static void columns_adjoint(const fsi_cpu *cpu, const fs_sparse *A, int64_t m, const double *U, double *W)
{
#pragma omp parallel for num_threads(cpu->threads) schedule(static)
    for (int64_t j = 0; j < A->cols; j++) {
        const int64_t from = fsi_index_load(A->ptr, A->index_type, j),
                      to = fsi_index_load(A->ptr, A->index_type, j + 1);
        for (int64_t c = 0; c < m; c++) {
            double sum = 0;
            for (int64_t e = from; e < to; e++)
                sum += fsi_load(A->value, A->dtype, e) * U[c + fsi_index_load(A->index, A->index_type, e) * m];
            W[c * A->cols + j] += sum;
        }
    }
}

static fs_result columns_normal(fsi_cpu *cpu, const fs_sparse *A, int64_t m, const double *P, const fs_matrix *B,
                                double *W, double *squares)
{
    double *U = fsi_cpu_scratch(cpu, A->rows * m * (int64_t)sizeof *U);
    if (!U) return FS_ENOMEM;
    columns_product(cpu, A, m, P, U);
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t c = 0; c < m; c++) {
            if (B) U[c + i * m] -= fsi_load(B->data, B->dtype, i * B->row_stride + c * B->col_stride);
            squares[c] += U[c + i * m] * U[c + i * m];
        }
    columns_adjoint(cpu, A, m, U, W);
    return FS_OK;
}

static job sparse_job(const fsi_cpu *cpu, const fs_sparse *A, int64_t m, const double *P)
{
    const job J = {.ops = cpu->ops,
                   .sparse = A,
                   .rows = A->rows,
                   .n = A->cols,
                   .m = m,
                   .P = P,
                   .per_thread = m + 8, /* a cache line apart */
                   .strips = fsi_cpu_strips(A->rows, m * A->cols)};
    return J;
}

fs_result fsi_cpu_product_sparse(fsi_cpu *cpu, const fs_sparse *A, int64_t m, const double *P, double *U)
{
    if (A->format == FS_CSC) {
        columns_product(cpu, A, m, P, U);
        return FS_OK;
    }
    job J = sparse_job(cpu, A, m, P);
    J.U = U;
    return normal_run(cpu, &J, NULL, NULL);
}

fs_result fsi_cpu_normal_sparse(fsi_cpu *cpu, const fs_sparse *A, int64_t m, const double *P, const fs_matrix *B,
                                double *W, double *squares)
{
    if (A->format == FS_CSC) return columns_normal(cpu, A, m, P, B, W, squares);
    job J = sparse_job(cpu, A, m, P);
    J.B = B;
    return normal_run(cpu, &J, W, squares);
}
