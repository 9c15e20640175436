/* svd_reads.c - the reads of A that fs_svd and fs_pca take.
 *
 * Dense rows are widened to f64 a panel at a time, so that means are subtracted from the elements themselves and
 * products are BLAS-3 in f64.  Means and squares of the first read are taken of A - 1 at', at' the first row: where
 * means are large beside deviations, sums of A itself would lose the digits of the deviations. */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/math.h"
#include "core/matrix.h"
#include "tasks/svd.h"

/* helpers ------------------------------------------------------------------------------------------------------ */

fs_result fsi_svd_rank_one(fsi_svd *t, int64_t m, int64_t n, const double *x, const double *y, double *C)
{
    DENSE(&t->A, gemm, 0, 0, m, n, 1, -1.0, x, m, y, 1, 1.0, C, m);
    return FS_OK;
}

static fs_matrix in_backend(const fsi_svd *t, double *data, int64_t rows, int64_t cols)
{
    fs_matrix m = fs_row_major(data, rows, cols, FS_F64);
    m.memory = t->A.ctx->backend->memory;
    return m;
}

/* Rows i ... i + count - 1 of a slice into t->rows, n x count; `minus` (n) is subtracted from each; NULL: 0. */
static fs_result widen_rows(fsi_svd *t, const fs_matrix *slice, int64_t i, int64_t count, const double *minus)
{
    fs_matrix part = *slice;
    part.data = (char *)slice->data + i * slice->row_stride * fsi_dtype_size(slice->dtype);
    part.rows = count;
    DENSE(&t->A, widen, &part, t->rows, t->A.n);
    return minus ? fsi_svd_rank_one(t, t->A.n, count, minus, t->ones, t->rows) : FS_OK;
}

/* Room in X and O for `rows` rows: more than a panel where a sparse slice, which is not cut, has more. */
static fs_result grow(fsi_svd *t, int64_t rows)
{
    if (rows <= t->x_rows) return FS_OK;
    fsi_operand_free(&t->A, t->X);
    fsi_operand_free(&t->A, t->O);
    t->X = t->O = NULL;
    t->x_rows = 0;
    FSI_TRY(fsi_operand_alloc(&t->A, t->l * rows, &t->X));
    FSI_TRY(fsi_operand_alloc(&t->A, t->l * rows, &t->O));
    t->x_rows = rows;
    return FS_OK;
}

/* X -= x 1', m x rows, a panel at a time. */
static fs_result subtract_row(fsi_svd *t, int64_t m, int64_t rows, const double *x, double *X)
{
    for (int64_t i = 0; i < rows; i += t->panel)
        FSI_TRY(fsi_svd_rank_one(t, m, fsi_min(t->panel, rows - i), x, t->ones, X + i * m));
    return FS_OK;
}

/* x = B'y, B n x m. */
static fs_result times_vector(fsi_svd *t, int64_t m, const double *B, const double *y, double *x)
{
    DENSE(&t->A, gemm, 1, 0, m, 1, t->A.n, 1.0, B, t->A.n, y, t->A.n, 0.0, x, m);
    return FS_OK;
}

fs_result fsi_svd_gram(fsi_svd *t, int64_t m, int64_t row0, int64_t rows, double *X)
{
    (void)row0;
    DENSE(&t->A, syrk, m, rows, X, m, 1.0, t->G, m);
    return FS_OK;
}

/* sparse slices ------------------------------------------------------------------------------------------------ */

static int64_t index_at(const void *from, fs_index_type type, int64_t i)
{
    return type == FS_INDEX32 ? ((const int32_t *)from)[i] : ((const int64_t *)from)[i];
}

/* Sums of columns into t->total and the sum of squares; entries of the same index add first.  `row` has room for a row
 * (CSR) or a column (CSC), all 0. */
static void sum_sparse(fsi_svd *t, const fs_sparse *A, double *row)
{
    const int64_t outer = A->format == FS_CSR ? A->rows : A->cols;
    for (int64_t i = 0; i < outer; i++) {
        const int64_t from = index_at(A->ptr, A->index_type, i), to = index_at(A->ptr, A->index_type, i + 1);
        for (int64_t e = from; e < to; e++) {
            const double x = fsi_load(A->value, A->dtype, e);
            const int64_t j = index_at(A->index, A->index_type, e);
            row[j] += x;
            t->total[A->format == FS_CSR ? j : i] += x;
        }
        for (int64_t e = from; e < to; e++) {
            double *x = row + index_at(A->index, A->index_type, e);
            t->sparse_square += *x * *x;
            *x = 0;
        }
    }
    t->sparse_rows += A->rows;
}

/* The same of a slice wherever it is; arrays in a GPU's memory are copied. */
static fs_result sum_sparse_anywhere(fsi_svd *t, const fs_sparse *A)
{
    const fs_allocator *memory = &t->A.ctx->allocator;
    const size_t index = A->index_type == FS_INDEX32 ? 4 : 8, value = (size_t)fsi_dtype_size(A->dtype),
                 inner = (size_t)(A->format == FS_CSR ? A->cols : A->rows),
                 outer = (size_t)(A->format == FS_CSR ? A->rows : A->cols);
    const int away = A->memory != FS_MEMORY_HOST;
    const size_t parts[] = {inner * 8, away ? (outer + 1) * index : 0, away ? (size_t)A->nnz * index : 0,
                            away ? (size_t)A->nnz * value : 0};
    size_t bytes = 0, begin[4];
    for (int i = 0; i < 4; i++) begin[i] = bytes, bytes += (parts[i] + 15) / 16 * 16;
    char *room = memory->alloc(memory->user, bytes + 16);
    if (!room) return fs_fail(FS_ENOMEM, "%s: no memory for %zu bytes of a sparse slice", t->A.who, bytes + 16);
    memset(room, 0, parts[0]);
    fs_sparse here = *A;
    fs_result result = FS_OK;
    if (away) {
        const void *const from[] = {A->ptr, A->index, A->value};
        for (int i = 0; i < 3 && result == FS_OK; i++)
            if (parts[i + 1]) result = t->A.dense->fetch(t->A.handle, from[i], parts[i + 1], room + begin[i + 1]);
        here.ptr = room + begin[1], here.index = room + begin[2], here.value = room + begin[3];
    }
    if (result == FS_OK) sum_sparse(t, &here, (double *)(void *)room);
    memory->release(memory->user, room);
    return result;
}

/* the first read ----------------------------------------------------------------------------------------------- */

typedef struct first_read {
    fsi_svd *t;
    const double *Omega;
    fs_matrix Y, T; /* in the type of A's sums */
    int begun;
} first_read;

/* S and T of a slice, and of a column of ones beside it. */
static fs_result sketch_slice(first_read *f, int64_t row0, const fs_matrix *dense, const fs_sparse *sparse)
{
    fsi_svd *t = f->t;
    const int64_t rows = sparse ? sparse->rows : dense->rows;
    const fs_sketch *const sketches[] = {t->S, t->T};
    const fs_matrix *const results[] = {&f->Y, &f->T};
    double *const of_ones[] = {t->S1, t->T1};
    fs_matrix one = in_backend(t, t->ones, rows, 1);
    one.row_stride = 0;
    const fs_matrix slice = dense ? fsi_matrix_at_lowest(dense) : one;
    for (int i = 0; i < 2; i++) {
        if (!sketches[i]) continue;
        fs_context *ctx = t->A.ctx;
        FSI_TRY(sparse ? fs_apply_sparse(ctx, sketches[i], row0, 1.0, sparse, 1.0, results[i])
                       : fs_apply(ctx, sketches[i], row0, 1.0, &slice, 1.0, results[i]));
        const fs_matrix sum = in_backend(t, of_ones[i], results[i]->rows, 1);
        if (t->centred) FSI_TRY(fs_apply(ctx, sketches[i], row0, 1.0, &one, 1.0, &sum));
    }
    return FS_OK;
}

/* C = (A Omega)' - (Omega'at) 1' of `rows` rows from row0 on: its sketch, and kept or its Gram matrix. */
static fs_result take_products(first_read *f, int64_t row0, int64_t rows, double *C)
{
    fsi_svd *t = f->t;
    const int64_t global = t->A.row0 + row0;
    const fs_matrix c = in_backend(t, C, rows, t->l);
    if (t->S) {
        const fs_matrix sum = in_backend(t, t->Ct, t->k, t->l);
        FSI_TRY(fs_apply(t->A.ctx, t->S, global, 1.0, &c, 1.0, &sum));
    } else {
        DENSE(&t->A, widen, &c, t->Ct + global * t->l, t->l);
    }
    return t->kept ? FS_OK : fsi_svd_gram(t, t->l, row0, rows, C);
}

static fs_result first_dense(first_read *f, int64_t row0, const fs_matrix *dense)
{
    fsi_svd *t = f->t;
    const int64_t n = t->A.n;
    for (int64_t i = 0; i < dense->rows; i += t->panel) {
        const int64_t count = fsi_min(t->panel, dense->rows - i);
        double norm;
        FSI_TRY(widen_rows(t, dense, i, count, NULL));
        if (!t->S) {
            const fs_matrix wide = in_backend(t, t->rows, count, n);
            DENSE(&t->A, widen, &wide, t->Yt + (t->A.row0 + row0 + i) * n, n);
        }
        if (t->centred) FSI_TRY(fsi_svd_rank_one(t, n, count, t->at, t->ones, t->rows));
        DENSE(&t->A, norm, count * n, t->rows, &norm);
        t->square += norm * norm;
        if (t->centred) DENSE(&t->A, gemm, 0, 0, n, 1, count, 1.0, t->rows, n, t->ones, count, 1.0, t->sums, n);
        if (!f->Omega) continue;
        double *C = t->kept ? t->kept + (row0 + i) * t->l : t->X;
        DENSE(&t->A, gemm, 1, 0, t->l, count, n, 1.0, f->Omega, n, t->rows, n, 0.0, C, t->l);
        FSI_TRY(take_products(f, row0 + i, count, C));
    }
    return FS_OK;
}

static fs_result first_sparse(first_read *f, int64_t row0, const fs_sparse *sparse)
{
    fsi_svd *t = f->t;
    FSI_TRY(sum_sparse_anywhere(t, sparse));
    if (!f->Omega) return FS_OK;
    if (!t->kept) FSI_TRY(grow(t, sparse->rows));
    double *C = t->kept ? t->kept + row0 * t->l : t->X;
    DENSE(&t->A, product_sparse, sparse, t->l, f->Omega, C);
    if (t->centred) {
        FSI_TRY(times_vector(t, t->l, f->Omega, t->at, t->small));
        FSI_TRY(subtract_row(t, t->l, sparse->rows, t->small, C));
    }
    return take_products(f, row0, sparse->rows, C);
}

static fs_result first_slice(void *user, int64_t row0, const fs_matrix *dense, const fs_sparse *sparse)
{
    first_read *f = user;
    if (!f->begun && dense && f->t->centred) {
        fs_matrix row = *dense;
        row.rows = 1;
        DENSE(&f->t->A, widen, &row, f->t->at, f->t->A.n);
    }
    f->begun = 1;
    FSI_TRY(sketch_slice(f, f->t->A.row0 + row0, dense, sparse));
    return sparse ? first_sparse(f, row0, sparse) : first_dense(f, row0, dense);
}

/* Means and norms of all rows, from sums of this caller's; host[0 .. n) gets `at`, host[n .. 2n) the sums of rows minus
 * it. */
static fs_result finish_sums(fsi_svd *t)
{
    const int64_t n = t->A.n;
    const double rows = (double)t->A.rows, mine = (double)t->A.d;
    double *at = t->host, *sums = t->host + n, squares[2] = {t->square + t->sparse_square, 0};
    if (t->centred) {
        DENSE(&t->A, fetch, t->at, (size_t)n * sizeof *at, at);
        DENSE(&t->A, fetch, t->sums, (size_t)n * sizeof *sums, sums);
        double *mean = t->V_host;
        for (int64_t j = 0; j < n; j++) {
            squares[0] += at[j] * ((double)t->sparse_rows * at[j] - 2 * t->total[j]);
            sums[j] += t->total[j] - (double)t->sparse_rows * at[j];
            mean[j] = mine * at[j] + sums[j];
        }
        FSI_TRY(fsi_operand_sum_host(&t->A, mean, n));
        for (int64_t j = 0; j < n; j++) {
            mean[j] = t->A.ranks.sum ? mean[j] / rows : at[j] + sums[j] / rows;
            const double apart = mean[j] - at[j];
            squares[0] += apart * (mine * apart - 2 * sums[j]);
            squares[1] += mine * mean[j] * mean[j];
        }
        DENSE(&t->A, send, mean, (size_t)n * sizeof *mean, t->mean);
    }
    FSI_TRY(fsi_operand_sum_host(&t->A, squares, 2));
    squares[0] = squares[0] < 0 ? 0 : squares[0];
    t->norm = sqrt(squares[0]);
    t->raw_norm = sqrt(squares[0] + squares[1]);
    FSI_REQUIRE(isfinite(t->raw_norm), "%s: A has elements that are not finite, or above 1e150", t->A.who);
    return FS_OK;
}

/* Products of the first read get the means in place of `at`: C -= x 1', x = Omega'(mean - at). */
static fs_result centre_products(fsi_svd *t, const double *Omega)
{
    const int64_t n = t->A.n, l = t->l;
    double *x = t->small, *y = t->small + l;
    DENSE(&t->A, add, n, -1.0, t->mean, t->at);
    FSI_TRY(times_vector(t, l, Omega, t->at, x));   /* - x */
    FSI_TRY(times_vector(t, l, Omega, t->sums, y)); /* the sum of C's columns */
    DENSE(&t->A, gemm, 0, 0, l, t->k, 1, 1.0, x, l, t->S1, 1, 1.0, t->Ct, l);
    if (t->kept) {
        DENSE(&t->A, zero, y, (size_t)l * sizeof *y);
        DENSE(&t->A, add, l, -1.0, x, y);
        return subtract_row(t, l, t->A.d, y, t->kept);
    }
    /* Gram: (C - x 1')(C - x 1')' = C C' - x (C 1)' - (C 1) x' + d x x' */
    DENSE(&t->A, gemm, 0, 0, l, l, 1, 1.0, x, l, y, 1, 1.0, t->G, l);
    DENSE(&t->A, gemm, 0, 0, l, l, 1, 1.0, y, l, x, 1, 1.0, t->G, l);
    DENSE(&t->A, gemm, 0, 0, l, l, 1, (double)t->A.d, x, l, x, 1, 1.0, t->G, l);
    return FS_OK;
}

/* Sums over ranks, and S A_c = S A - (S 1) mean'. */
static fs_result finish_sketches(fsi_svd *t, const double *Omega)
{
    const int64_t n = t->A.n, l = t->l;
    double norm;
    if (t->centred && !t->S) /* S 1 of these rows */
        for (int64_t i = 0; i < t->A.d; i += t->panel)
            DENSE(&t->A, add, fsi_min(t->panel, t->A.d - i), 1.0, t->ones, t->S1 + t->A.row0 + i);
    if (Omega) {
        if (t->centred) FSI_TRY(centre_products(t, Omega));
        FSI_TRY(fsi_operand_sum(&t->A, t->Ct, l * t->k));
        if (!t->kept) FSI_TRY(fsi_operand_sum(&t->A, t->G, l * l));
    }
    FSI_TRY(fsi_operand_sum(&t->A, t->Yt, n * t->k));
    if (t->T) FSI_TRY(fsi_operand_sum(&t->A, t->Tt, n * FSI_SVD_PROBES));
    if (t->centred) {
        FSI_TRY(fsi_operand_sum(&t->A, t->S1, t->k));
        FSI_TRY(fsi_operand_sum(&t->A, t->T1, FSI_SVD_PROBES));
        FSI_TRY(fsi_svd_rank_one(t, n, t->k, t->mean, t->S1, t->Yt));
        if (t->T) FSI_TRY(fsi_svd_rank_one(t, n, FSI_SVD_PROBES, t->mean, t->T1, t->Tt));
    }
    DENSE(&t->A, norm, n * t->k, t->Yt, &norm);
    FSI_REQUIRE(isfinite(norm), "%s: sums of A's elements are beyond the range of %s", t->A.who,
                fs_dtype_name(fsi_dtype_sum(t->A.dtype)));
    return FS_OK;
}

static fs_result clear(fsi_svd *t, first_read *f, size_t element)
{
    const int64_t n = t->A.n, l = t->l;
    const struct part {
        void *memory;
        int64_t count;
        size_t element;
    } parts[] = {
        {t->Yt, n * t->k, 8},
        {t->at, n, 8},
        {t->sums, n, 8},
        {t->S1, t->k, 8},
        {t->T1, FSI_SVD_PROBES, 8},
        {t->Ct, l * t->k, 8},
        {t->G, l * l, 8},
        {t->S ? f->Y.data : NULL, n * t->k, element},
        {t->T ? f->T.data : NULL, n * FSI_SVD_PROBES, element},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].memory) DENSE(&t->A, zero, parts[i].memory, (size_t)parts[i].count * parts[i].element);
    memset(t->total, 0, (size_t)n * sizeof *t->total);
    return FS_OK;
}

fs_result fsi_svd_first_read(fsi_svd *t, const double *Omega)
{
    const int64_t n = t->A.n;
    const fs_dtype sum = fsi_dtype_sum(t->A.dtype);
    /* Sums in f32 lie in W, which has room for Y in f64, and in Q or behind Y. */
    first_read f = {t, Omega, in_backend(t, t->Yt, t->k, n), in_backend(t, t->Tt, FSI_SVD_PROBES, n), 0};
    if (sum != FS_F64) {
        f.Y.data = t->W;
        f.T.data = (float *)t->W + t->k * n;
        f.Y.dtype = f.T.dtype = sum;
    }
    FSI_TRY(clear(t, &f, (size_t)fsi_dtype_size(sum)));
    fsi_operand_progress(&t->A, 0.0, "sketch");
    FSI_TRY(fsi_operand_visit(&t->A, 0, first_slice, &f));
    if (sum != FS_F64 && t->S) DENSE(&t->A, widen, &f.Y, t->Yt, n);
    if (sum != FS_F64 && t->T) DENSE(&t->A, widen, &f.T, t->Tt, n);
    FSI_TRY(finish_sums(t));
    return finish_sketches(t, Omega);
}

/* products ----------------------------------------------------------------------------------------------------- */

typedef struct product_pass {
    fsi_svd *t;
    int64_t m;
    const double *B;
    fsi_svd_use use;
} product_pass;

static fs_result product_slice(void *user, int64_t row0, const fs_matrix *dense, const fs_sparse *sparse)
{
    const product_pass *p = user;
    fsi_svd *t = p->t;
    const int64_t n = t->A.n, m = p->m;
    if (sparse) {
        FSI_TRY(grow(t, sparse->rows));
        DENSE(&t->A, product_sparse, sparse, m, p->B, t->X);
        if (t->centred) FSI_TRY(subtract_row(t, m, sparse->rows, t->small, t->X));
        return p->use(t, m, row0, sparse->rows, t->X);
    }
    for (int64_t i = 0; i < dense->rows; i += t->panel) {
        const int64_t count = fsi_min(t->panel, dense->rows - i);
        FSI_TRY(widen_rows(t, dense, i, count, t->centred ? t->mean : NULL));
        DENSE(&t->A, gemm, 1, 0, m, count, n, 1.0, p->B, n, t->rows, n, 0.0, t->X, m);
        FSI_TRY(p->use(t, m, row0 + i, count, t->X));
    }
    return FS_OK;
}

fs_result fsi_svd_product(fsi_svd *t, int64_t m, const double *B, fsi_svd_use use)
{
    product_pass p = {t, m, B, use};
    if (t->centred) FSI_TRY(times_vector(t, m, B, t->mean, t->small));
    return fsi_operand_visit(&t->A, 0, product_slice, &p);
}

fs_result fsi_svd_kept(fsi_svd *t, int64_t m, const double *B, fsi_svd_use use)
{
    for (int64_t i = 0; i < t->A.d; i += t->panel) {
        const int64_t count = fsi_min(t->panel, t->A.d - i);
        DENSE(&t->A, gemm, 1, 0, m, count, t->l, 1.0, B, t->l, t->kept + i * t->l, t->l, 0.0, t->X, m);
        FSI_TRY(use(t, m, i, count, t->X));
    }
    return FS_OK;
}

/* Sparse rows: A'(A P - 1 mean'P), which exceeds the result by mean (1'A_c P): subtract_mean_part. */
static fs_result normal_slice(void *user, int64_t row0, const fs_matrix *dense, const fs_sparse *sparse)
{
    (void)row0;
    fsi_svd *t = user;
    const int64_t n = t->A.n, l = t->l;
    if (sparse) {
        fs_matrix B = in_backend(t, t->small, sparse->rows, l);
        B.row_stride = 0;
        DENSE(&t->A, normal_sparse, sparse, l, t->P, t->centred ? &B : NULL, t->Q, t->small + l);
        return FS_OK;
    }
    for (int64_t i = 0; i < dense->rows; i += t->panel) {
        const int64_t count = fsi_min(t->panel, dense->rows - i);
        FSI_TRY(widen_rows(t, dense, i, count, t->centred ? t->mean : NULL));
        DENSE(&t->A, gemm, 1, 0, l, count, n, 1.0, t->P, n, t->rows, n, 0.0, t->X, l);
        DENSE(&t->A, gemm, 0, 1, n, l, count, 1.0, t->rows, n, t->X, l, 1.0, t->Q, n);
    }
    return FS_OK;
}

/* Q -= mean (1'A_c P) of the sparse rows, 1'A_c P = (their sums of columns - their number times mean)'P. */
static fs_result subtract_mean_part(fsi_svd *t)
{
    const int64_t n = t->A.n;
    DENSE(&t->A, send, t->total, (size_t)n * sizeof *t->total, t->sums);
    DENSE(&t->A, add, n, -(double)t->sparse_rows, t->mean, t->sums);
    FSI_TRY(times_vector(t, t->l, t->P, t->sums, t->small));
    return fsi_svd_rank_one(t, n, t->l, t->mean, t->small, t->Q);
}

fs_result fsi_svd_normal(fsi_svd *t)
{
    DENSE(&t->A, zero, t->Q, (size_t)(t->A.n * t->l) * sizeof *t->Q);
    DENSE(&t->A, zero, t->small, (size_t)(2 * t->l) * sizeof *t->small);
    if (t->centred) FSI_TRY(times_vector(t, t->l, t->P, t->mean, t->small));
    FSI_TRY(fsi_operand_visit(&t->A, 0, normal_slice, t));
    if (t->centred && t->sparse_rows) FSI_TRY(subtract_mean_part(t));
    return fsi_operand_sum(&t->A, t->Q, t->A.n * t->l);
}
