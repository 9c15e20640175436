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
#include "tasks/triangle.h"

/* Condition of A L1'^-1 up to which one Cholesky step leaves errors of rounding alone; and steps at most. */
static const double GOOD_F64 = 12, GOOD_F32 = 1000;
enum { STEPS = 5 };

static int is_f64(const fsi_basis *b) { return b->A->dtype == FS_F64; }

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
    FSI_TRY(fsi_operand_share(A, b->L1, A->n * A->n));
    return A->dense->fetch(A->handle, b->L1, (size_t)(A->n * A->n) * sizeof(double), b->host);
}

/* L1 and its copy in host, unpivoted. */
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

/* The upper triangle of the pivoted QR of R, whose transpose is in host, takes its place there. */
static fs_result pivot(fsi_basis *b)
{
    const int64_t n = b->A->n;
    void *memory = NULL;
    if (!b->pivots) FSI_TRY(fsi_rows_host(b->A, n, sizeof(int64_t), &memory));
    if (memory) b->pivots = memory;
    double *R = b->host;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < j; i++) R[i + j * n] = R[j + i * n], R[j + i * n] = 0;
    fsi_triangle_pivot(n, R, b->pivots, R + n * n);
    return FS_OK;
}

fs_result fsi_basis_dependent(fsi_basis *b)
{
    const int64_t n = b->A->n;
    FSI_TRY(pivot(b));
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
    FSI_TRY(pivot(b));
    b->r = fsi_triangle_rank(n, b->host, rcond);
    double *R = b->host;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < j; i++) R[j + i * n] = j < b->r ? R[i + j * n] : 0, R[i + j * n] = 0;
    for (int64_t j = b->r; j < n; j++) R[j + j * n] = 0;
    DENSE(A, send, R, (size_t)(n * n) * sizeof(double), b->L1);
    if (b->r > 0 && b->r < n) FSI_TRY(fsi_operand_alloc(A, b->r * (n - b->r), &b->W));
    fsi_rows_close(&b->rows);
    return fsi_rows_open(&b->rows, A, b->pivots);
}

fs_result fsi_basis_sketch(fsi_basis *b, fsi_operand *A, const fsi_basis_options *o)
{
    const int64_t n = A->n;
    memset(b, 0, sizeof *b);
    b->A = A;
    b->r = n;
    void *memory = NULL;
    FSI_TRY(fsi_rows_host(A, n * n + 3 * n, sizeof(double), &memory));
    b->host = memory;
    FSI_TRY(fsi_operand_alloc(A, n * n, &b->L1));
    FSI_TRY(fsi_operand_alloc(A, n * n, &b->L2));
    FSI_TRY(fsi_operand_alloc(A, n * n, &b->G));
    FSI_TRY(fsi_rows_open(&b->rows, A, NULL));
    fsi_operand_progress(A, 0, "sketch");
    FSI_TRY(sketch_and_factor(b, o));
    if (o->pivoting == FSI_PIVOT_ALWAYS) return truncate(b, o->rcond);
    /* An f32 sketch has fewer digits than the factor of A: what rounding made of it is seen later, in R itself. */
    const double limit = o->pivoting == FSI_PIVOT_DEPENDENT || is_f64(b) ? o->rcond : 0x1p-40;
    const int dependent = !(fsi_triangle_condition(n, b->host, 1, b->host + n * n) * limit < 1);
    if (!dependent) return FS_OK;
    return o->pivoting == FSI_PIVOT_NEVER ? fsi_basis_dependent(b) : truncate(b, o->rcond);
}

/* the Gram matrix -------------------------------------------------------------------------------------------- */

static fs_result gram_panel(void *user, int64_t row0, int64_t rows)
{
    fsi_basis *b = user;
    fsi_operand *A = b->A;
    double *Z = b->rows.Z;
    const int64_t n = A->n, r = b->r;
    (void)row0;
    DENSE(A, trsm, 1, 0, r, rows, b->L1, n, Z, n);
    DENSE(A, syrk, r, rows, Z, n, 1.0, b->G, n);
    if (b->W) DENSE(A, gemm, 0, 1, r, n - r, rows, 1.0, Z, n, Z + r, n, 1.0, b->W, r);
    return FS_OK;
}

/* L2 = the Cholesky factor of G.  Where G is not positive definite to rounding, of G + a shift, which leaves a better
 * matrix for the next step (shifted Cholesky QR: Fukaya, Kannan, Nakatsukasa, Yamamoto and Yanagisawa, 2020). */
static fs_result cholesky(fsi_basis *b, int *broken)
{
    fsi_operand *A = b->A;
    const int64_t n = A->n, r = b->r;
    double size;
    DENSE(A, norm, n * n, b->G, &size);
    FSI_REQUIRE(isfinite(size), "%s: A has elements that are not finite, or so large that their sums are not", A->who);
    for (int shifted = 0; shifted < 2; shifted++) {
        DENSE(A, zero, b->L2, (size_t)(n * n) * sizeof(double));
        DENSE(A, add, n * n, 1.0, b->G, b->L2);
        if (shifted) DENSE(A, diagonal, r, b->L2, n, NULL, 12 * 0x1p-52 * (double)r * size);
        DENSE(A, potrf, r, b->L2, n);
        DENSE(A, wait, broken);
        double failed = *broken;
        FSI_TRY(fsi_operand_share_host(A, &failed, 1));
        *broken = failed != 0;
        if (!*broken) return fsi_operand_share(A, b->L2, n * n);
    }
    return FS_OK;
}

/* L = L1 L2 into G, and packed into host. */
static fs_result merge(fsi_basis *b)
{
    fsi_operand *A = b->A;
    const int64_t n = A->n, r = b->r;
    DENSE(A, zero, b->G, (size_t)(n * n) * sizeof(double));
    DENSE(A, gemm, 0, 0, r, r, r, 1.0, b->L1, n, b->L2, n, 0.0, b->G, n);
    FSI_TRY(fsi_operand_share(A, b->G, n * n));
    DENSE(A, fetch, b->G, (size_t)(n * n) * sizeof(double), b->host);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < j; i++) b->host[i + j * n] = 0;
    return FS_OK;
}

/* The condition of the leading r x r part of a matrix in the backend's memory, columns n apart. */
static fs_result condition_of(fsi_basis *b, const double *L, double *condition)
{
    const int64_t n = b->A->n, r = b->r;
    DENSE(b->A, fetch, L, (size_t)(n * n) * sizeof(double), b->host);
    for (int64_t j = 1; j < r; j++) memmove(b->host + j * r, b->host + j * n, (size_t)r * sizeof(double));
    *condition = fsi_triangle_condition(r, b->host, 0, b->host + n * n);
    return FS_OK;
}

fs_result fsi_basis_orthogonalize(fsi_basis *b)
{
    fsi_operand *A = b->A;
    const int64_t n = A->n, r = b->r;
    int broken = 0;
    double condition = INFINITY;
    if (!r) return FS_OK;
    for (int step = 0; step < STEPS; step++) {
        fsi_operand_progress(A, 0.2 + 0.05 * step, "Gram matrix");
        DENSE(A, zero, b->G, (size_t)(n * n) * sizeof(double));
        if (b->W) DENSE(A, zero, b->W, (size_t)(r * (n - r)) * sizeof(double));
        FSI_TRY(fsi_rows_visit(&b->rows, gram_panel, b));
        FSI_TRY(fsi_operand_sum(A, b->G, n * n));
        if (b->W) FSI_TRY(fsi_operand_sum(A, b->W, r * (n - r)));
        FSI_TRY(cholesky(b, &broken));
        if (broken) break;
        FSI_TRY(condition_of(b, b->L2, &condition));
        if (condition <= (is_f64(b) ? GOOD_F64 : GOOD_F32)) break;
        FSI_TRY(merge(b));
        DENSE(A, send, b->host, (size_t)(n * n) * sizeof(double), b->L1);
    }
    if (broken || condition > 1e6) {
        DENSE(A, fetch, b->L1, (size_t)(n * n) * sizeof(double), b->host);
        return fsi_basis_dependent(b);
    }
    if (!b->W) return FS_OK;
    DENSE(A, trsm, 1, 0, r, n - r, b->L2, n, b->W, r);
    return fsi_operand_share(A, b->W, r * (n - r));
}

fs_result fsi_basis_divide(fsi_basis *b, int64_t rows)
{
    const int64_t n = b->A->n;
    if (!b->r) return FS_OK;
    DENSE(b->A, trsm, 1, 0, b->r, rows, b->L1, n, b->rows.Z, n);
    DENSE(b->A, trsm, 1, 0, b->r, rows, b->L2, n, b->rows.Z, n);
    return FS_OK;
}

fs_result fsi_basis_triangle(fsi_basis *b)
{
    const int64_t n = b->A->n, r = b->r;
    memset(b->host, 0, (size_t)(n * n) * sizeof(double));
    if (!r) return FS_OK;
    FSI_TRY(merge(b));
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
    fsi_operand_free(b->A, b->L1);
    fsi_operand_free(b->A, b->L2);
    fsi_operand_free(b->A, b->G);
    fsi_operand_free(b->A, b->W);
    fsi_rows_release(b->A, b->pivots);
    fsi_rows_release(b->A, b->host);
    memset(b, 0, sizeof *b);
}
