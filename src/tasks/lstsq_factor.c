/* lstsq_factor.c - the preconditioner of least squares: R of S A, of A itself or of A'A, or its singular values. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "core/matrix.h"
#include "core/sketch.h"
#include "tasks/condition.h"
#include "tasks/lstsq.h"

/* Up to this condition the Cholesky factor of A'A in f64 is a preconditioner that needs three or four iterations: it is
 * off by u cond^2 n, 1e-4 n. */
#define NORMAL_CONDITION 1e6
/* Where the estimated condition times rcond is above this, singular values decide on the rank: the estimate is low by a
 * third, and that of a sketch by a factor of three more. */
#define NEAR_RCOND 0.5
#define NEAR_RCOND_OF_SKETCH 0.1
/* Elements of a panel of A that is widened to f64 at a time, for the caches of a CPU and to keep a GPU busy; rows of a
 * panel that needs no widening. */
enum { PANEL_HOST = 1 << 21, PANEL_DEVICE = 1 << 23, PANEL_ROWS = 1 << 16 };
/* With this many rows for each column, or fewer, A itself is factored in place of a sketch. */
enum { WHOLE_ROWS = 8 };
/* Rows for each column of a sketch whose factor is refined: A N has a condition number of three. */
enum { REFINED_SKETCH_ROWS = 4 };
/* Columns up to which A'A is made where A is read from slices: reading costs more than products there. */
enum { SLICES_NORMAL_COLUMNS = 2048 };

fs_result fsi_lstsq_check_norm(const fsi_lstsq *l)
{
    FSI_REQUIRE(isfinite(l->norm) && l->norm <= FSI_LSTSQ_LARGEST,
                "%s: |A| is %.3g: A has an element that is not finite, or too large for sums of squares; scale it",
                l->A.who, l->norm);
    FSI_REQUIRE(l->norm == 0 || l->norm >= 1 / FSI_LSTSQ_LARGEST,
                "%s: |A| is %.3g, too small for sums of squares: scale A", l->A.who, l->norm);
    return FS_OK;
}

/* the condition of the factor ------------------------------------------------------------------------------------ */

/* Up to this condition of R, products with its inverse are taken in place of substitutions: what they lose beside those,
 * u times the condition of a correction, a restart makes good. */
#define INVERSE_CONDITION 1e8

/* told.condition from L, and its inverse where that is accurate enough. */
static fs_result estimate_condition(fsi_lstsq *l)
{
    FSI_TRY(fsi_condition(&l->A, l->n, l->L, l->n, 0, &l->told.condition, &l->inverse));
    if (l->told.condition <= INVERSE_CONDITION) return fsi_operand_share(&l->A, l->inverse, l->n * l->n);
    fsi_operand_free(&l->A, l->inverse);
    l->inverse = NULL;
    return FS_OK;
}

/* How many of the first `count` singular values are above rcond times the largest. */
static int64_t rank_of(const fsi_lstsq *l, int64_t count)
{
    int64_t rank = 0;
    while (rank < count && l->values[rank] > l->o.rcond * l->values[0]) rank++;
    return rank;
}

/* N from the singular values of L: R = L' = V s U' has the right singular vectors U.  C = Q'(S B), n x m in the
 * backend's memory, gives the start, x = U s^-1 V'C.
 *
 * Where values above rounding errors count as 0, X depends on the vectors themselves: those of the sketch are refined
 * to those of A, and the iteration begins with 0. */
static fs_result lstsq_factor_decompose(fsi_lstsq *l, double *Vt, const double *C)
{
    const int64_t n = l->n, m = l->m;
    DENSE(&l->A, zero, l->N, (size_t)(n * n) * sizeof(double));
    DENSE(&l->A, add, n * n, 1.0, l->L, l->N);
    DENSE(&l->A, svd, n, n, l->N, n, l->values, Vt);
    FSI_TRY(fsi_operand_share(&l->A, l->N, n * n));
    FSI_TRY(fsi_operand_share_host(&l->A, l->values, n));
    const double noise = fsi_operand_rcond(&l->A, 0) / 8;
    int64_t above_noise = 0;
    int keeps_vectors = 1;
    while (above_noise < n && l->values[above_noise] > noise * l->values[0]) above_noise++;
    l->rank = rank_of(l, n);
    if (l->rank < above_noise && !l->is_refined) {
        l->rank = above_noise;
        FSI_TRY(fsi_lstsq_refine(l));
        keeps_vectors = 0;
        l->rank = rank_of(l, above_noise);
    }
    l->told.condition = l->rank ? l->values[0] / l->values[l->rank - 1] : 1;
    l->has_start = l->rank && keeps_vectors;
    if (!l->has_start) return FS_OK;
    DENSE(&l->A, gemm, 0, 0, l->rank, m, n, 1.0, Vt, n, C, n, 0.0, l->W, l->rank);
    DENSE(&l->A, fetch, l->W, (size_t)(l->rank * m) * sizeof(double), l->z);
    return fsi_lstsq_from_coordinates(l, l->z, l->x);
}

/* decompose, after which V stays only where it leaves columns out. */
static fs_result look_at_values(fsi_lstsq *l, const double *C)
{
    const int64_t n = l->n;
    double *Vt;
    FSI_TRY(fsi_operand_alloc(&l->A, n * n, &l->N));
    FSI_TRY(fsi_operand_alloc(&l->A, n * n, &Vt));
    const fs_result result = lstsq_factor_decompose(l, Vt, C);
    fsi_operand_free(&l->A, Vt);
    if (result == FS_OK && l->rank == n) {
        fsi_operand_free(&l->A, l->N);
        l->N = NULL;
    }
    return result;
}

/* The rank, and the solution of the sketched problem as the start. */
static fs_result look_at_rank(fsi_lstsq *l, double *C)
{
    const int64_t n = l->n, m = l->m;
    l->rank = n;
    FSI_TRY(estimate_condition(l));
    const double near_rcond = l->is_refined ? NEAR_RCOND : NEAR_RCOND_OF_SKETCH;
    if (l->told.condition * l->o.rcond > near_rcond || l->o.method == FS_LSTSQ_DIRECT) {
        FSI_TRY(look_at_values(l, C));
    } else {
        l->has_start = 1;
        DENSE(&l->A, trsm, 1, 1, n, m, l->L, n, C, n);
        DENSE(&l->A, fetch, C, (size_t)(n * m) * sizeof(double), l->x);
    }
    return l->has_start ? fsi_operand_share_host(&l->A, l->x, n * m) : FS_OK;
}

/* R of a matrix of rows --------------------------------------------------------------------------------------------- */

/* Two parts of the triangular factor of [Y C], F F' with F (n + m) x (n + m): L is the first n rows and columns, and
 * the rows below them are (Q'C)', which goes to C. */
static fs_result split_factor(fsi_lstsq *l, double *F, double *C)
{
    const int64_t n = l->n, m = l->m, N = n + m;
    const fs_memory memory = l->A.ctx->backend->memory;
    const fs_matrix top = {F, n, n, N, 1, 0, 0, FS_F64, memory};       /* (i, j) is F[j + i N]: column i of L */
    const fs_matrix below = {F + n, m, n, 1, N, 0, 0, FS_F64, memory}; /* (c, j) is F[n + c + j N] */
    DENSE(&l->A, widen, &top, l->L, n);
    DENSE(&l->A, widen, &below, C, n);
    return FS_OK;
}

/* The factor of the k rows of [Y C] with sqrt(lambda) I below Y, and m rows of zeros so that there are enough. */
static fs_result factor_augmented(fsi_lstsq *l, const double *Y, const double *C, int64_t k, double *X, double *F)
{
    const int64_t n = l->n, m = l->m, rows = k + m + (l->o.lambda > 0 ? n : 0);
    const fs_memory memory = l->A.ctx->backend->memory;
    const fs_matrix left = {(void *)Y, n, k, 1, n, 0, 0, FS_F64, memory},
                    right = {(void *)C, m, k, 1, m, 0, 0, FS_F64, memory};
    DENSE(&l->A, zero, X, (size_t)(rows * (n + m)) * sizeof *X);
    DENSE(&l->A, widen, &left, X, rows);
    DENSE(&l->A, widen, &right, X + n * rows, rows);
    if (l->o.lambda > 0) DENSE(&l->A, diagonal, n, X + k, rows, NULL, sqrt(l->o.lambda));
    DENSE(&l->A, qr, rows, n + m, X, rows, F);
    return FS_OK;
}

/* L and the start from the rows of Y (k x n, packed) and C (k x m, packed); norm = |Y|_F. */
static fs_result factor_rows(fsi_lstsq *l, const double *Y, const double *C, int64_t k)
{
    const int64_t n = l->n, m = l->m, rows = k + m + (l->o.lambda > 0 ? n : 0);
    double *X = NULL, *F = NULL, *start = NULL;
    DENSE(&l->A, norm, k * n, Y, &l->norm);
    FSI_TRY(fsi_lstsq_check_norm(l));
    fs_result result = fsi_operand_alloc(&l->A, rows * (n + m), &X);
    if (result == FS_OK) result = fsi_operand_alloc(&l->A, (n + m) * (n + m), &F);
    if (result == FS_OK) result = fsi_operand_alloc(&l->A, n * m, &start);
    if (result == FS_OK) result = factor_augmented(l, Y, C, k, X, F);
    if (result == FS_OK) result = split_factor(l, F, start);
    if (result == FS_OK) result = l->A.dense->wait(l->A.handle, NULL);
    if (result == FS_OK) result = fsi_operand_share(&l->A, l->L, n * n);
    if (result == FS_OK) result = look_at_rank(l, start);
    fsi_operand_free(&l->A, X);
    fsi_operand_free(&l->A, F);
    fsi_operand_free(&l->A, start);
    return result;
}

/* All rows of B, in f64 and in every rank, packed rows. */
static fs_result whole_right_hand_sides(fsi_lstsq *l, double *to)
{
    DENSE(&l->A, zero, to, (size_t)(l->A.rows * l->m) * sizeof *to);
    DENSE(&l->A, widen, &l->B, to + l->A.row0 * l->m, l->m);
    return fsi_operand_sum(&l->A, to, l->A.rows * l->m);
}

static fs_result factor_whole(fsi_lstsq *l)
{
    double *Y = NULL, *C = NULL;
    l->is_refined = 1;
    fs_result result = fsi_operand_alloc(&l->A, l->A.rows * l->n, &Y);
    if (result == FS_OK) result = fsi_operand_alloc(&l->A, l->A.rows * l->m, &C);
    if (result == FS_OK) result = fsi_lstsq_whole(l, Y, l->n);
    if (result == FS_OK) result = whole_right_hand_sides(l, C);
    if (result == FS_OK) result = factor_rows(l, Y, C, l->A.rows);
    fsi_operand_free(&l->A, Y);
    fsi_operand_free(&l->A, C);
    l->contraction = 0.02;
    return result;
}

/* Rows of the solver's own S for each column of A: the least of 2 t n^3 operations for R and of 2 bits(A) / log2(t) reads
 * of A, both in bytes that memory delivers meanwhile. */
static double sketch_rows(const fsi_lstsq *l)
{
    const double n = (double)l->n, d = (double)l->A.rows, digits = -log2(l->o.tolerance);
    double best = 4, least = INFINITY;
    for (double t = 4; t <= 32 && t * n <= 0.25 * d; t *= 2) {
        const double cost = 2 * t * n * n + 2 * digits / log2(t) * 8 * d;
        if (cost < least) least = cost, best = t;
    }
    return best;
}

/* C = S B, k x m, packed rows. */
static fs_result sketch_right_hand_sides(fsi_lstsq *l, const fs_sketch *S, double *C)
{
    const int64_t k = S->spec.k;
    const fs_dtype sum = l->B.dtype == FS_F64 ? FS_F64 : FS_F32;
    const size_t bytes = (size_t)(k * l->m) * fs_dtype_size(sum);
    void *own = NULL;
    if (sum != FS_F64) FSI_TRY(l->A.dense->alloc(l->A.handle, bytes, &own));
    fs_matrix to = fs_row_major(own ? own : C, k, l->m, sum);
    to.memory = l->A.ctx->backend->memory;
    fs_result result = l->A.dense->zero(l->A.handle, to.data, bytes);
    const fs_matrix B = fsi_matrix_at_lowest(&l->B);
    if (result == FS_OK && B.rows) result = fs_apply(l->A.ctx, S, l->A.row0, 1.0, &B, 0.0, &to);
    if (result == FS_OK && own) result = l->A.dense->widen(l->A.handle, &to, C, l->m);
    if (result == FS_OK) result = fsi_operand_sum(&l->A, C, k * l->m);
    if (result == FS_OK) result = l->A.dense->wait(l->A.handle, NULL);
    fsi_operand_free(&l->A, own);
    return result;
}

static fs_result factor_sketched(fsi_lstsq *l, const fs_sketch *S)
{
    const int64_t k = S->spec.k;
    const double began = fsi_lstsq_clock();
    double *Y = NULL, *C = NULL;
    fsi_operand_progress(&l->A, 0, "sketch");
    fs_result result = fsi_operand_alloc(&l->A, k * l->n, &Y);
    if (result == FS_OK) result = fsi_operand_alloc(&l->A, k * l->m, &C);
    if (result == FS_OK) result = fsi_operand_sketch(&l->A, S, Y);
    if (result == FS_OK) result = sketch_right_hand_sides(l, S, C);
    l->told.sketch_seconds = fsi_lstsq_clock() - began;
    if (result == FS_OK) result = factor_rows(l, Y, C, k);
    fsi_operand_free(&l->A, Y);
    fsi_operand_free(&l->A, C);
    return result;
}

/* Reads of A by an iteration with a sketch of `times` n rows: each leaves the share 1 / sqrt(times) of the error. */
static double reads_of_iteration(const fsi_lstsq *l, double times)
{
    return -2 * log2(l->o.tolerance) / log2(fmax(1.2, times));
}

/* Whether `operations` for each element of A take less time than reading it `reads` times. */
static int is_cheaper(const fsi_lstsq *l, double operations, double reads)
{
    const double balance = l->A.ctx->backend->memory == FS_MEMORY_HOST ? 0.25 : 0.2; /* bytes read for an operation */
    return balance * operations < reads * (double)fs_dtype_size(l->A.dtype);
}

/* Whether the factor of the sketch is refined to that of A, which leaves two or three iterations: 2 n operations for an
 * element, which a CPU makes no faster than it reads the element 15 times, but files give it once. */
static int prefers_refinement(const fsi_lstsq *l) { return l->A.slices.next && l->n <= SLICES_NORMAL_COLUMNS; }

static fs_result factor_sketch(fsi_lstsq *l)
{
    const fs_sketch *S;
    int own;
    const double times = prefers_refinement(l) ? REFINED_SKETCH_ROWS : sketch_rows(l);
    FSI_TRY(fsi_operand_solver_sketch(&l->A, l->o.sketch, times, l->o.seed, &S, &own));
    l->told.k = S->spec.k;
    l->contraction = fmin(0.9, fmax(0.1, sqrt((double)l->n / (double)S->spec.k)));
    fs_result result = factor_sketched(l, S);
    if (own) fs_sketch_destroy((fs_sketch *)S);
    if (result == FS_OK && !l->N && prefers_refinement(l)) result = fsi_lstsq_refine(l);
    if (l->is_refined) l->contraction = fmin(l->contraction, fmax(0.02, 0x1p-46 * l->told.condition));
    return result;
}

/* R of A'A ----------------------------------------------------------------------------------------------------------- */

typedef struct gram_pass {
    fsi_lstsq *l;
    int64_t most; /* rows of Z */
    double *Z;
    int saw_sparse;
} gram_pass;

static fs_result add_gram(void *user, int64_t row0, const fs_matrix *dense, const fs_sparse *sparse)
{
    gram_pass *p = user;
    fsi_lstsq *l = p->l;
    (void)row0;
    if (sparse) {
        p->saw_sparse = 1;
        return fs_fail(FS_EUNSUPPORTED, "%s: the method NORMAL is for dense A: A'A of a sparse A is dense", l->A.who);
    }
    if (dense->dtype == FS_F64 && dense->col_stride == 1 && dense->row_stride >= l->n &&
        dense->row_stride < INT32_MAX) {
        DENSE(&l->A, syrk, l->n, dense->rows, dense->data, dense->row_stride, 1.0, l->L, l->n);
        return FS_OK;
    }
    for (int64_t i = 0; i < dense->rows; i += p->most) {
        fs_matrix part = *dense;
        part.data = (char *)part.data + i * part.row_stride * (int64_t)fs_dtype_size(part.dtype);
        part.rows = fsi_min(p->most, dense->rows - i);
        DENSE(&l->A, widen, &part, p->Z, l->n);
        DENSE(&l->A, syrk, l->n, part.rows, p->Z, l->n, 1.0, l->L, l->n);
    }
    return FS_OK;
}

/* L from A'A + lambda I; *fits: whether it is good enough. */
static fs_result factor_normal(fsi_lstsq *l, int *fits)
{
    const int64_t n = l->n;
    const int in_host = l->A.ctx->backend->memory == FS_MEMORY_HOST;
    gram_pass p = {l, fsi_max(64, (in_host ? PANEL_HOST : PANEL_DEVICE) / n), NULL, 0};
    int broken;
    *fits = 0;
    FSI_TRY(fsi_operand_alloc(&l->A, n * p.most, &p.Z));
    fs_result result = l->A.dense->zero(l->A.handle, l->L, (size_t)(n * n) * sizeof(double));
    fsi_operand_progress(&l->A, 0, "A'A");
    if (result == FS_OK) result = fsi_operand_visit(&l->A, in_host ? PANEL_ROWS : 0, add_gram, &p);
    fsi_operand_free(&l->A, p.Z);
    if (result != FS_OK && !p.saw_sparse) return result;
    double sparse = p.saw_sparse;
    FSI_TRY(fsi_operand_sum_host(&l->A, &sparse, 1));
    if (sparse > 0 && l->o.method == FS_LSTSQ_AUTO) return FS_OK;
    FSI_TRY(result);
    FSI_TRY(fsi_operand_sum(&l->A, l->L, n * n));
    DENSE(&l->A, diagonal, n, l->L, n, l->W, l->o.lambda);
    DENSE(&l->A, fetch, l->W, (size_t)n * sizeof(double), l->scratch);
    l->norm = 0;
    for (int64_t j = 0; j < n; j++) l->norm += l->scratch[j];
    l->norm = sqrt(l->norm);
    if (l->norm < 1 / FSI_LSTSQ_LARGEST) return FS_OK; /* squares underflow; the sketch shows whether A is 0 */
    FSI_TRY(fsi_lstsq_check_norm(l));
    DENSE(&l->A, potrf, n, l->L, n);
    DENSE(&l->A, wait, &broken);
    double failed = broken;
    FSI_TRY(fsi_operand_share_host(&l->A, &failed, 1));
    if (failed != 0) return FS_OK;
    FSI_TRY(fsi_operand_share(&l->A, l->L, n * n));
    FSI_TRY(estimate_condition(l));
    l->rank = n;
    l->contraction = 0.02;
    *fits = l->told.condition <= NORMAL_CONDITION && l->told.condition * l->o.rcond <= NEAR_RCOND;
    if (*fits) return FS_OK;
    fsi_operand_free(&l->A, l->inverse);
    l->inverse = NULL;
    return FS_OK;
}

/* Whether A'A, n operations for an element, costs less than the reads of A it saves. */
static int prefers_normal(const fsi_lstsq *l)
{
    if (l->o.method != FS_LSTSQ_AUTO) return l->o.method == FS_LSTSQ_NORMAL;
    if (l->A.is_sparse || l->o.sketch) return 0;
    if (l->A.slices.next) return l->n <= SLICES_NORMAL_COLUMNS;
    return is_cheaper(l, (double)l->n, reads_of_iteration(l, sketch_rows(l)) - 5);
}

fs_result fsi_lstsq_factor(fsi_lstsq *l)
{
    const int small = (l->A.rows <= WHOLE_ROWS * l->n && !l->o.sketch) || l->o.method == FS_LSTSQ_DIRECT;
    int done = 0;
    l->told.method = FS_LSTSQ_NORMAL;
    if (!small && prefers_normal(l)) FSI_TRY(factor_normal(l, &done));
    if (done) return FS_OK;
    l->told.method = small ? FS_LSTSQ_DIRECT : FS_LSTSQ_ITERATE;
    return small ? factor_whole(l) : factor_sketch(l);
}

/* the preconditioner at work ---------------------------------------------------------------------------------------- */

/* y = N v and v = N'y, in the backend's memory: packed columns, n of y and rank of v, `from` may be spoilt.  Where V is
 * used, without the scales 1 / values, which are in host memory. */
static fs_result lstsq_factor_multiply(fsi_lstsq *l, double *from, double *to)
{
    const int64_t n = l->n, m = l->m;
    if (l->N) {
        DENSE(&l->A, gemm, 0, 0, n, m, l->rank, 1.0, l->N, n, from, l->rank, 0.0, to, n);
    } else if (l->inverse) {
        DENSE(&l->A, gemm, 1, 0, n, m, n, 1.0, l->inverse, n, from, n, 0.0, to, n);
    } else {
        DENSE(&l->A, zero, to, (size_t)(n * m) * sizeof *to);
        DENSE(&l->A, add, n * m, 1.0, from, to);
        DENSE(&l->A, trsm, 1, 1, n, m, l->L, n, to, n);
    }
    return FS_OK;
}
static fs_result multiply_transposed(fsi_lstsq *l, double *from, double *to)
{
    const int64_t n = l->n, m = l->m;
    if (l->N) {
        DENSE(&l->A, gemm, 1, 0, l->rank, m, n, 1.0, l->N, n, from, n, 0.0, to, l->rank);
    } else if (l->inverse) {
        DENSE(&l->A, gemm, 0, 0, n, m, n, 1.0, l->inverse, n, from, n, 0.0, to, n);
    } else {
        DENSE(&l->A, zero, to, (size_t)(n * m) * sizeof *to);
        DENSE(&l->A, add, n * m, 1.0, from, to);
        DENSE(&l->A, trsm, 1, 0, n, m, l->L, n, to, n);
    }
    return FS_OK;
}

/* to = v / values, where V is used. */
static void scale_coordinates(const fsi_lstsq *l, const double *v, double *to)
{
    const int64_t r = l->rank;
    for (int64_t c = 0; c < l->m && l->N; c++)
        for (int64_t i = 0; i < r; i++) to[c * r + i] = v[c * r + i] / l->values[i];
}

/* All use P, S and W of the backend's memory, which no read of A needs meanwhile. */
fs_result fsi_lstsq_from_coordinates(fsi_lstsq *l, const double *v, double *y)
{
    const size_t coordinates = (size_t)(l->rank * l->m) * sizeof *v, whole = (size_t)(l->n * l->m) * sizeof *v;
    scale_coordinates(l, v, y);
    DENSE(&l->A, send, l->N ? y : v, coordinates, l->P);
    FSI_TRY(lstsq_factor_multiply(l, l->P, l->S));
    DENSE(&l->A, fetch, l->S, whole, y);
    return FS_OK;
}

fs_result fsi_lstsq_to_coordinates(fsi_lstsq *l, const double *y, double *v)
{
    const size_t coordinates = (size_t)(l->rank * l->m) * sizeof *v, whole = (size_t)(l->n * l->m) * sizeof *v;
    DENSE(&l->A, send, y, whole, l->P);
    FSI_TRY(multiply_transposed(l, l->P, l->S));
    DENSE(&l->A, fetch, l->S, coordinates, v);
    scale_coordinates(l, v, v);
    return fsi_operand_share_host(&l->A, v, l->rank * l->m);
}

fs_result fsi_lstsq_normal(fsi_lstsq *l, const double *p, double *q)
{
    const int64_t count = l->n * l->m;
    const size_t coordinates = (size_t)(l->rank * l->m) * sizeof *p;
    scale_coordinates(l, p, q);
    DENSE(&l->A, send, l->N ? q : p, coordinates, l->P);
    FSI_TRY(lstsq_factor_multiply(l, l->P, l->S));
    FSI_TRY(fsi_operand_normal(&l->A, l->m, l->S, NULL, l->W, l->squares));
    if (l->o.lambda > 0) DENSE(&l->A, add, count, l->o.lambda, l->S, l->W);
    FSI_TRY(multiply_transposed(l, l->W, l->P));
    DENSE(&l->A, fetch, l->P, coordinates, q);
    scale_coordinates(l, q, q);
    return fsi_operand_share_host(&l->A, q, l->rank * l->m);
}
