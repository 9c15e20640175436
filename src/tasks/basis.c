/* basis.c - see basis.h.
 *
 * Randomized Householder-Cholesky QR (Balabanov, 2022) and, with pivots, CQRRPT (Melnichenko, Balabanov, Murray,
 * Demmel, Mahoney and Luszczek, 2023).  Sums and factors are in f64: for an f32 A the condition of A(:, J) L1'^-1 may
 * reach 1e7, which its Gram matrix in f64 resolves; the factor is then improved until it is small. */
#include "tasks/basis.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "core/sketch.h"
#include "tasks/condition.h"
#include "tasks/triangle.h"

/* Condition of A L1'^-1 up to which one Cholesky step leaves errors of rounding alone; and steps at most. */
static const double GOOD_F64 = 12, GOOD_F32 = 1000;
enum { STEPS = 5 };

static int is_f64(const fsi_basis *b) { return b->A->dtype == FS_F64; }
static int in_host(const fsi_basis *b) { return b->A->ctx->backend->memory == FS_MEMORY_HOST; }

/* division ---------------------------------------------------------------------------------------------------- */

/* Whether a product with the inverse of a triangle may take the place of a substitution: its residual is u times the
 * condition, which is far below the rounding of an f32 A.  On a CPU a substitution is as fast. */
static int may_invert(const fsi_basis *b)
{
    return !in_host(b) && b->r == b->A->n && b->scaled <= (is_f64(b) ? 16 : 0x1p23);
}

/* N = T^-1 where that may be used, T n x n. */
static fs_result prepare_division(fsi_basis *b, const double *T)
{
    fsi_operand_free(b->A, b->N);
    b->N = NULL;
    return may_invert(b) ? fsi_invert(b->A, b->A->n, T, b->A->n, &b->N) : FS_OK;
}

/* The panel times N, whose zeros are skipped in steps of BLOCK rows. */
static fs_result basis_multiply(fsi_basis *b, int64_t rows)
{
    enum { BLOCK = 256 };
    const int64_t n = b->A->n;
    double *Z = b->rows.Z;
    if (!b->spare) FSI_TRY(fsi_operand_alloc(b->A, n * b->rows.most, &b->spare));
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t height = fsi_min(BLOCK, n - i);
        DENSE(b->A, gemm, 0, 0, height, rows, i + height, 1.0, b->N + i, n, Z, n, 0.0, b->spare + i, n);
    }
    b->rows.Z = b->spare;
    b->spare = Z;
    return FS_OK;
}

static fs_result divide(fsi_basis *b, int64_t rows, const double *T)
{
    if (b->N) return basis_multiply(b, rows);
    DENSE(b->A, trsm, 1, 0, b->r, rows, T, b->A->n, b->rows.Z, b->A->n);
    return FS_OK;
}

/* the sketch ------------------------------------------------------------------------------------------------- */

typedef struct copier {
    fsi_basis *b;
    double *to;
} copier;
static fs_result copy_panel(void *user, int64_t row0, int64_t rows)
{
    copier *c = user;
    const fsi_operand *A = c->b->A;
    DENSE(A, add, A->n * rows, 1.0, c->b->rows.Z, c->to + (A->row0 + row0) * A->n);
    return FS_OK;
}

/* Y = A, the rows of all ranks. */
static fs_result copy_all(fsi_basis *b, double *Y)
{
    copier c = {b, Y};
    FSI_TRY(b->A->dense->zero(b->A->handle, Y, (size_t)(b->A->rows * b->A->n) * sizeof *Y));
    FSI_TRY(fsi_rows_visit(&b->rows, copy_panel, &c));
    return fsi_operand_sum(b->A, Y, b->A->rows * b->A->n);
}

/* L1 = R' of the QR of Y, which is m x n, packed rows. */
static fs_result factor(fsi_basis *b, int64_t m, double *Y)
{
    fsi_operand *A = b->A;
    double norm, *X;
    DENSE(A, norm, m * A->n, Y, &norm);
    FSI_REQUIRE(isfinite(norm), "%s: A has elements that are not finite, or so large that their sums are not", A->who);
    fs_matrix transposed = fs_col_major(Y, A->n, m, FS_F64);
    transposed.memory = A->ctx->backend->memory;
    FSI_TRY(fsi_operand_alloc(A, m * A->n, &X));
    fs_result result = A->dense->widen(A->handle, &transposed, X, m);
    if (result == FS_OK) result = A->dense->qr(A->handle, m, A->n, X, m, b->L1);
    if (result == FS_OK) result = A->dense->wait(A->handle, NULL);
    fsi_operand_free(A, X);
    FSI_TRY(result);
    return fsi_operand_share(A, b->L1, A->n * A->n);
}

/* L1, unpivoted. */
static fs_result sketch_and_factor(fsi_basis *b, const fsi_basis_options *o)
{
    fsi_operand *A = b->A;
    const fs_sketch *S;
    int own;
    FSI_TRY(fsi_operand_solver_sketch(A, o->sketch, o->times, o->seed, &S, &own));
    b->k = own && A->rows <= S->spec.k ? 0 : S->spec.k;
    const int64_t m = b->k ? b->k : A->rows;
    double *Y = NULL;
    fs_result result = fsi_operand_alloc(A, m * A->n, &Y);
    if (result == FS_OK) result = b->k ? fsi_operand_sketch(A, S, Y) : copy_all(b, Y);
    if (result == FS_OK) result = factor(b, m, Y);
    fsi_operand_free(A, Y);
    if (own) fs_sketch_destroy((fs_sketch *)S);
    return result;
}

/* host = the upper triangle of the pivoted QR of R = T', T n x n in the backend's memory. */
static fs_result pivot(fsi_basis *b, const double *T)
{
    const int64_t n = b->A->n;
    void *memory = NULL;
    DENSE(b->A, fetch, T, (size_t)(n * n) * sizeof(double), b->host);
    if (!b->pivots) FSI_TRY(fsi_rows_host(b->A, n, sizeof(int64_t), &memory));
    if (memory) b->pivots = memory;
    double *R = b->host;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < j; i++) R[i + j * n] = R[j + i * n], R[j + i * n] = 0;
    fsi_triangle_pivot(n, R, b->pivots, R + n * n);
    return FS_OK;
}

fs_result fsi_basis_dependent(fsi_basis *b, const double *T)
{
    const int64_t n = b->A->n;
    FSI_TRY(pivot(b, T));
    const int64_t rank = fsi_min(n - 1, fsi_triangle_rank(n, b->host, fsi_operand_rcond(b->A, 0)));
    return fs_fail(FS_EINVAL,
                   "%s: the columns of A are dependent to rounding: %" PRId64 " of %" PRId64
                   " are independent; pivot for a basis of them",
                   b->A->who, rank, n);
}

/* L1 = R11' of a pivoted R of rank r. */
static fs_result truncate(fsi_basis *b, double rcond)
{
    fsi_operand *A = b->A;
    const int64_t n = A->n;
    FSI_TRY(pivot(b, b->L1));
    b->r = fsi_triangle_rank(n, b->host, rcond);
    double *R = b->host;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < j; i++) R[j + i * n] = j < b->r ? R[i + j * n] : 0, R[i + j * n] = 0;
    for (int64_t j = b->r; j < n; j++) R[j + j * n] = 0;
    DENSE(A, send, R, (size_t)(n * n) * sizeof(double), b->L1);
    if (b->r > 0 && b->r < n) FSI_TRY(fsi_operand_alloc(A, b->r * (n - b->r), &b->W));
    b->is_final = b->is_final && b->r == n;
    fsi_rows_close(&b->rows);
    return fsi_rows_open(&b->rows, A, b->pivots);
}

/* the factor of A'A ------------------------------------------------------------------------------------------- */

static fs_result square_panel(void *user, int64_t row0, int64_t rows)
{
    fsi_basis *b = user;
    (void)row0;
    DENSE(b->A, syrk, b->A->n, rows, b->rows.Z, b->A->n, 1.0, b->G, b->A->n);
    return FS_OK;
}

/* T = the Cholesky factor of G with `shift` on its first r diagonal entries; *broken: it has none. */
static fs_result factor_gram(fsi_basis *b, double shift, double *T, int *broken)
{
    fsi_operand *A = b->A;
    const int64_t n = A->n, r = b->r;
    DENSE(A, zero, T, (size_t)(n * n) * sizeof(double));
    DENSE(A, add, n * n, 1.0, b->G, T);
    if (shift > 0) DENSE(A, diagonal, r, T, n, NULL, shift);
    DENSE(A, potrf, r, T, n);
    DENSE(A, wait, broken);
    double failed = *broken;
    FSI_TRY(fsi_operand_share_host(A, &failed, 1));
    *broken = failed != 0;
    return *broken ? FS_OK : fsi_operand_share(A, T, n * n);
}

static fs_result size_of_gram(fsi_basis *b, double *size)
{
    DENSE(b->A, norm, b->A->n * b->A->n, b->G, size);
    FSI_REQUIRE(isfinite(*size), "%s: A has elements that are not finite, or so large that their sums are not",
                b->A->who);
    return FS_OK;
}

/* L1 from A'A where A L1'^-1 is then orthonormal to the rounding of f32: is_final. */
static fs_result square_and_factor(fsi_basis *b)
{
    fsi_operand *A = b->A;
    const int64_t n = A->n;
    int broken;
    double size;
    DENSE(A, zero, b->G, (size_t)(n * n) * sizeof(double));
    FSI_TRY(fsi_rows_visit(&b->rows, square_panel, b));
    FSI_TRY(fsi_operand_sum(A, b->G, n * n));
    FSI_TRY(size_of_gram(b, &size));
    FSI_TRY(factor_gram(b, 0, b->L1, &broken));
    if (broken) return FS_OK;
    FSI_TRY(fsi_condition(A, n, b->L1, n, 1, &b->scaled, NULL));
    b->is_final = b->scaled * b->scaled * 0x1p-53 <= 0x1p-24 * sqrt((double)n);
    if (!b->is_final) return FS_OK;
    DENSE(A, zero, b->L2, (size_t)(n * n) * sizeof(double));
    DENSE(A, diagonal, n, b->L2, n, NULL, 1.0);
    return FS_OK;
}

static fs_result take_memory(fsi_basis *b)
{
    fsi_operand *A = b->A;
    const int64_t n = A->n;
    void *memory = NULL;
    FSI_TRY(fsi_rows_host(A, n * n + 3 * n, sizeof(double), &memory));
    b->host = memory;
    FSI_TRY(fsi_operand_alloc(A, n * n, &b->L1));
    FSI_TRY(fsi_operand_alloc(A, n * n, &b->L2));
    FSI_TRY(fsi_operand_alloc(A, n * n, &b->G));
    return fsi_rows_open(&b->rows, A, NULL);
}

fs_result fsi_basis_sketch(fsi_basis *b, fsi_operand *A, const fsi_basis_options *o)
{
    const int64_t n = A->n;
    memset(b, 0, sizeof *b);
    b->A = A;
    b->r = n;
    FSI_TRY(take_memory(b));
    fsi_operand_progress(A, 0, "sketch");
    if (o->may_square && !is_f64(b) && !in_host(b) && !A->is_sparse && !o->sketch) FSI_TRY(square_and_factor(b));
    if (!b->is_final) FSI_TRY(sketch_and_factor(b, o));
    if (o->pivoting == FSI_PIVOT_ALWAYS) {
        FSI_TRY(truncate(b, o->rcond));
        return b->is_final || b->r < n ? FS_OK : fsi_condition(A, n, b->L1, n, 1, &b->scaled, NULL);
    }
    if (b->is_final) return FS_OK;
    /* An f32 sketch has fewer digits than the factor of A: the effect of its rounding shows later, in R itself. */
    const double limit = o->pivoting == FSI_PIVOT_DEPENDENT || is_f64(b) ? o->rcond : 0x1p-40;
    FSI_TRY(fsi_condition(A, n, b->L1, n, 1, &b->scaled, NULL));
    if (b->scaled * limit < 1) return FS_OK;
    return o->pivoting == FSI_PIVOT_NEVER ? fsi_basis_dependent(b, b->L1) : truncate(b, o->rcond);
}

/* the Gram matrix -------------------------------------------------------------------------------------------- */

static fs_result gram_panel(void *user, int64_t row0, int64_t rows)
{
    fsi_basis *b = user;
    fsi_operand *A = b->A;
    const int64_t n = A->n, r = b->r;
    (void)row0;
    FSI_TRY(divide(b, rows, b->L1));
    const double *Z = b->rows.Z;
    DENSE(A, syrk, r, rows, Z, n, 1.0, b->G, n);
    if (b->W) DENSE(A, gemm, 0, 1, r, n - r, rows, 1.0, Z, n, Z + r, n, 1.0, b->W, r);
    return FS_OK;
}

/* L2 = the Cholesky factor of G.  Where G is not positive definite to rounding, of G + a shift, which leaves a better
 * matrix for the next step (shifted Cholesky QR: Fukaya, Kannan, Nakatsukasa, Yamamoto and Yanagisawa, 2020). */
static fs_result cholesky(fsi_basis *b, int *broken)
{
    double size;
    FSI_TRY(size_of_gram(b, &size));
    FSI_TRY(factor_gram(b, 0, b->L2, broken));
    return *broken ? factor_gram(b, 12 * 0x1p-52 * (double)b->r * size, b->L2, broken) : FS_OK;
}

/* G = L1 L2. */
static fs_result merge(fsi_basis *b)
{
    fsi_operand *A = b->A;
    const int64_t n = A->n, r = b->r;
    DENSE(A, zero, b->G, (size_t)(n * n) * sizeof(double));
    DENSE(A, gemm, 0, 0, r, r, r, 1.0, b->L1, n, b->L2, n, 0.0, b->G, n);
    return fsi_operand_share(A, b->G, n * n);
}

/* L2, until it is good; *condition is that of the last one. */
static fs_result improve(fsi_basis *b, int *broken, double *condition)
{
    fsi_operand *A = b->A;
    const int64_t n = A->n, r = b->r;
    const fs_matrix merged = {b->G, n, n, n, 1, 0, 0, FS_F64, A->ctx->backend->memory};
    for (int step = 0; step < STEPS; step++) {
        fsi_operand_progress(A, 0.2 + 0.05 * step, "Gram matrix");
        FSI_TRY(prepare_division(b, b->L1));
        DENSE(A, zero, b->G, (size_t)(n * n) * sizeof(double));
        if (b->W) DENSE(A, zero, b->W, (size_t)(r * (n - r)) * sizeof(double));
        FSI_TRY(fsi_rows_visit(&b->rows, gram_panel, b));
        FSI_TRY(fsi_operand_sum(A, b->G, n * n));
        if (b->W) FSI_TRY(fsi_operand_sum(A, b->W, r * (n - r)));
        FSI_TRY(cholesky(b, broken));
        if (*broken) return FS_OK;
        FSI_TRY(fsi_condition(A, r, b->L2, n, 0, condition, NULL));
        if (*condition <= (is_f64(b) ? GOOD_F64 : GOOD_F32)) return FS_OK;
        FSI_TRY(merge(b));
        DENSE(A, widen, &merged, b->L1, n);
    }
    return FS_OK;
}

fs_result fsi_basis_orthogonalize(fsi_basis *b)
{
    fsi_operand *A = b->A;
    const int64_t n = A->n, r = b->r;
    int broken = 0;
    double condition = INFINITY;
    if (!r) return FS_OK;
    if (!b->is_final) {
        FSI_TRY(improve(b, &broken, &condition));
        if (broken || condition > 1e6) return fsi_basis_dependent(b, b->L1);
    }
    if (b->W) {
        DENSE(A, trsm, 1, 0, r, n - r, b->L2, n, b->W, r);
        FSI_TRY(fsi_operand_share(A, b->W, r * (n - r)));
    }
    FSI_TRY(merge(b));
    fsi_operand_free(A, b->N);
    b->N = NULL;
    return fsi_condition(A, r, b->G, n, 0, &b->condition, may_invert(b) ? &b->N : NULL);
}

fs_result fsi_basis_divide(fsi_basis *b, int64_t rows)
{
    if (!b->r) return FS_OK;
    FSI_TRY(divide(b, rows, b->L1)); /* by both at once, where N is used */
    return b->N ? FS_OK : divide(b, rows, b->L2);
}

fs_result fsi_basis_triangle(fsi_basis *b)
{
    const int64_t n = b->A->n, r = b->r;
    memset(b->host, 0, (size_t)(n * n) * sizeof(double));
    if (!r) return FS_OK;
    DENSE(b->A, fetch, b->G, (size_t)(n * n) * sizeof(double), b->host);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < j; i++) b->host[i + j * n] = 0;
    if (!b->W) return FS_OK;
    void *memory = NULL;
    FSI_TRY(fsi_rows_host(b->A, r * (n - r), sizeof(double), &memory));
    const double *W = memory;
    const fs_result result = b->A->dense->fetch(b->A->handle, b->W, (size_t)(r * (n - r)) * sizeof(double), memory);
    for (int64_t j = r; j < n && result == FS_OK; j++)
        for (int64_t i = 0; i < r; i++) b->host[j + i * n] = W[i + (j - r) * r];
    fsi_rows_release(b->A, memory);
    return result;
}

void fsi_basis_close(fsi_basis *b)
{
    if (!b->A) return;
    fsi_rows_close(&b->rows);
    double *const all[] = {b->L1, b->L2, b->G, b->N, b->spare, b->W};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) fsi_operand_free(b->A, all[i]);
    fsi_rows_release(b->A, b->pivots);
    fsi_rows_release(b->A, b->host);
    memset(b, 0, sizeof *b);
}
