/* reference.c - the reference implementation: plain loops over the nonzeros of S, in the order src/def visits them.
 *
 * Sums have the type of the contract (f32, or f64 for f64) and are scaled once at the end, as in every other variant,
 * so that on integers all of them agree exactly.  Columns are taken 64 at a time. */
#include <math.h>

#include "cpu/cpu.h"

enum { WIDTH = 64, TALL = 4096 };

/* A block of sums: rows x WIDTH for each of the two weights, kept in double and rounded to float after every
 * addition when sums are f32. */
typedef struct sums {
    double *of[2];
    int single;
    double threshold; /* entries at least this large carry weight[1] */
} sums;

static double add(const sums *t, double sum, double x) { return t->single ? (float)sum + (float)x : sum + x; }

/* sum[at][c] += unit x[c]; value is what src/def gave, unit its sign (the value itself for the Gaussian). */
static void accumulate(const sums *t, int gaussian, double scale, int64_t at, double value, const double *x,
                       int64_t cols)
{
    const int heavy = !gaussian && (value < 0 ? -value : value) >= t->threshold;
    const double unit = gaussian ? (t->single ? (float)(value / scale) : value / scale) : value < 0 ? -1.0 : 1.0;
    double *sum = t->of[heavy] + at * WIDTH;
    for (int64_t c = 0; c < cols; c++) sum[c] = add(t, sum[c], t->single ? (float)(unit * x[c]) : unit * x[c]);
}

/* to = beta to + alpha (weight[0] sum_0 + weight[1] sum_1) */
static void reference_finish(const sums *t, const fsi_weights *w, double alpha, double beta, const fs_matrix *to,
                             int64_t row, int64_t at, int64_t col, int64_t cols)
{
    for (int64_t c = 0; c < cols; c++) {
        const int64_t where = row * to->row_stride + (col + c) * to->col_stride;
        double y = 0.0;
        if (t->single) {
            y = (float)(alpha * w->weight[0]) * (float)t->of[0][at * WIDTH + c];
            if (w->weight[1] != 0.0) y = (float)y + (float)(alpha * w->weight[1]) * (float)t->of[1][at * WIDTH + c];
            if (beta != 0.0) y = (float)beta * (float)fsi_load(to->data, to->dtype, where) + (float)y;
        } else {
            y = alpha * w->weight[0] * t->of[0][at * WIDTH + c];
            if (w->weight[1] != 0.0) y += alpha * w->weight[1] * t->of[1][at * WIDTH + c];
            if (beta != 0.0) y = beta * fsi_load(to->data, to->dtype, where) + y;
        }
        fsi_store(to->data, to->dtype, where, y);
    }
}

static fs_result open_sums(fsi_cpu *cpu, sums *t, const fsi_weights *w, fs_dtype from, int64_t rows)
{
    double *memory = fsi_cpu_scratch(cpu, rows * WIDTH * 2 * (int64_t)sizeof *memory);
    if (!memory) return FS_ENOMEM;
    t->of[0] = memory;
    t->of[1] = memory + rows * WIDTH;
    t->single = from != FS_F64;
    t->threshold = w->weight[1] != 0.0 ? w->weight[1] : w->weight[0] * 2.0;
    return FS_OK;
}
static void clear(const sums *t, int64_t rows)
{
    for (int64_t i = 0; i < rows * WIDTH; i++) t->of[0][i] = t->of[1][i] = 0.0;
}

/* The state of the visitors below. */
typedef struct walk {
    sums t;
    const fsi_def *S;
    int64_t row0, col, cols;
    const fs_matrix *from;
    const fs_rows *list; /* rows of A; NULL: all */
    const fs_sparse *sparse;
    int64_t line; /* sparse: the stored row (CSR), or the stored entry (CSC), being visited */
} walk;

static void reference_load(const fs_matrix *from, int64_t row, int64_t col, int64_t cols, double *x)
{
    for (int64_t c = 0; c < cols; c++)
        x[c] = fsi_load(from->data, from->dtype, row * from->row_stride + (col + c) * from->col_stride);
}
static void visit_apply(void *user, int64_t i, int64_t j, double value)
{
    const walk *w = user;
    double x[WIDTH];
    reference_load(w->from, fsi_row_at(w->list, j - w->row0), w->col, w->cols, x);
    accumulate(&w->t, w->S->family == FSI_DEF_GAUSS, w->S->scale, i, value, x, w->cols);
}
static void visit_adjoint(void *user, int64_t i, int64_t j, double value)
{
    const walk *w = user;
    double y[WIDTH];
    reference_load(w->from, i, w->col, w->cols, y);
    accumulate(&w->t, w->S->family == FSI_DEF_GAUSS, w->S->scale, j - w->row0, value, y, w->cols);
}

static fs_result ref_apply(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                           const fs_rows *list, double beta, const fs_matrix *Y)
{
    const fsi_weights weights = fsi_weights_of(S);
    walk w = {.S = S, .row0 = row0, .from = A, .list = list};
    const fs_result result = open_sums(cpu, &w.t, &weights, A->dtype, Y->rows);
    if (result != FS_OK) return result;
    for (w.col = 0; w.col < Y->cols; w.col += WIDTH) {
        w.cols = fsi_min64(WIDTH, Y->cols - w.col);
        clear(&w.t, Y->rows);
        fsi_def_visit(S, row0, row0 + A->rows, visit_apply, &w);
        for (int64_t i = 0; i < Y->rows; i++) reference_finish(&w.t, &weights, alpha, beta, Y, i, i, w.col, w.cols);
    }
    return FS_OK;
}

static fs_result ref_adjoint(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *Y,
                             double beta, const fs_matrix *X)
{
    const fsi_weights weights = fsi_weights_of(S);
    walk w = {.S = S, .from = Y};
    const fs_result result = open_sums(cpu, &w.t, &weights, Y->dtype, fsi_min64(TALL, X->rows));
    if (result != FS_OK) return result;
    for (int64_t j = 0; j < X->rows; j += TALL) {
        const int64_t rows = fsi_min64(TALL, X->rows - j);
        w.row0 = row0 + j;
        for (w.col = 0; w.col < X->cols; w.col += WIDTH) {
            w.cols = fsi_min64(WIDTH, X->cols - w.col);
            clear(&w.t, rows);
            fsi_def_visit(S, w.row0, w.row0 + rows, visit_adjoint, &w);
            for (int64_t r = 0; r < rows; r++)
                reference_finish(&w.t, &weights, alpha, beta, X, j + r, r, w.col, w.cols);
        }
    }
    return FS_OK;
}

/* One stored entry of a sparse A reaches row i of Y, if its column is in the present block of columns. */
static void sparse_entry(const walk *w, int64_t i, double value, int64_t column, int64_t entry)
{
    if (column < w->col || column >= w->col + w->cols) return;
    const double x = fsi_load(w->sparse->value, w->sparse->dtype, entry);
    sums at = w->t;
    at.of[0] += column - w->col;
    at.of[1] += column - w->col;
    accumulate(&at, w->S->family == FSI_DEF_GAUSS, w->S->scale, i, value, &x, 1);
}
static void visit_csr(void *user, int64_t i, int64_t j, double value)
{
    const walk *w = user;
    const fs_sparse *A = w->sparse;
    (void)j;
    const int64_t end = fsi_index_load(A->ptr, A->index_type, w->line + 1);
    for (int64_t e = fsi_index_load(A->ptr, A->index_type, w->line); e < end; e++)
        sparse_entry(w, i, value, fsi_index_load(A->index, A->index_type, e), e);
}

typedef struct csc_walk {
    walk w;
    int64_t column;
} csc_walk;
static void visit_csc(void *user, int64_t i, int64_t j, double value)
{
    const csc_walk *c = user;
    (void)j;
    sparse_entry(&c->w, i, value, c->column, c->w.line);
}

static fs_result ref_sparse(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A, double beta,
                            const fs_matrix *Y)
{
    const fsi_weights weights = fsi_weights_of(S);
    csc_walk c = {.w = {.S = S, .sparse = A}};
    walk *w = &c.w;
    const fs_result result = open_sums(cpu, &w->t, &weights, A->dtype, Y->rows);
    if (result != FS_OK) return result;
    for (w->col = 0; w->col < Y->cols; w->col += WIDTH) {
        w->cols = fsi_min64(WIDTH, Y->cols - w->col);
        clear(&w->t, Y->rows);
        if (A->format == FS_CSR)
            for (w->line = 0; w->line < A->rows; w->line++)
                fsi_def_visit(S, row0 + w->line, row0 + w->line + 1, visit_csr, w);
        else
            for (c.column = w->col; c.column < w->col + w->cols; c.column++)
                for (w->line = fsi_index_load(A->ptr, A->index_type, c.column);
                     w->line < fsi_index_load(A->ptr, A->index_type, c.column + 1); w->line++) {
                    const int64_t j = row0 + fsi_index_load(A->index, A->index_type, w->line);
                    fsi_def_visit(S, j, j + 1, visit_csc, &c);
                }
        for (int64_t i = 0; i < Y->rows; i++) reference_finish(&w->t, &weights, alpha, beta, Y, i, i, w->col, w->cols);
    }
    return FS_OK;
}

static void ref_multiply(int64_t n, int64_t tokens, int more, const float *a, const float *b, float *x)
{
    for (int64_t c = 0; c < n; c++)
        for (int64_t t = 0; t < tokens; t++) {
            const float p = a[t * n + c], q = b ? b[t * n + c] : 1.0f;
            x[c] = t > 0 || more ? fmaf(p, q, x[c]) : p * q;
        }
}

static void ref_row_dots(int64_t count, int64_t n, const void *a, fs_dtype dtype, int64_t pitch, const double *p,
                         double *u)
{
    for (int64_t i = 0; i < count; i++) {
        u[i] = 0;
        for (int64_t j = 0; j < n; j++) u[i] += fsi_load(a, dtype, i * pitch + j) * p[j];
    }
}
static void ref_row_sums(int64_t count, int64_t n, const void *a, fs_dtype dtype, int64_t pitch, const double *u,
                         double *w)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < n; j++) w[j] += fsi_load(a, dtype, i * pitch + j) * u[i];
}

static void ref_row_dots_twice(int64_t count, int64_t n, const double *a, int64_t pitch, const double *xh,
                               const double *xl, double *uh, double *ul)
{
    for (int64_t i = 0; i < count; i++) {
        long double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += (long double)a[i * pitch + j] * ((long double)xh[j] + xl[j]);
        uh[i] = (double)sum;
        ul[i] = (double)(sum - uh[i]);
    }
}
static void ref_row_sums_twice(int64_t count, int64_t n, const double *a, int64_t pitch, const double *uh,
                               const double *ul, double *wh, double *wl)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < n; j++) {
            const long double sum = (long double)a[i * pitch + j] * ((long double)uh[i] + ul[i]) +
                                    ((long double)wh[j] + wl[j]);
            wh[j] = (double)sum;
            wl[j] = (double)(sum - wh[j]);
        }
}

const fsi_cpu_ops fsi_cpu_reference = {
    .name = "ref",
    .apply = ref_apply,
    .adjoint = ref_adjoint,
    .sparse = ref_sparse,
    .multiply = ref_multiply,
    .row_dots = ref_row_dots,
    .row_sums = ref_row_sums,
    .row_dots_twice = ref_row_dots_twice,
    .row_sums_twice = ref_row_sums_twice,
};
