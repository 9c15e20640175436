/* ose.c - how well S keeps lengths in one subspace: |(SQ)'SQ - I|_2 for an orthonormal basis Q.
 *
 * Q is made by Cholesky's factor of A'A, twice, in f64 (CholeskyQR2: Yamamoto, Nakatsukasa, Yanagisawa and Fukaya,
 * 2015), a panel of rows at a time: the first leaves columns that are nearly orthonormal however A is scaled, the
 * second makes them so to rounding. */
#include <inttypes.h>
#include <math.h>

#include "base/dtype.h"
#include "core/matrix.h"
#include "core/sketch.h"
#include "tasks/workspace.h"

static fs_matrix basis(const fs_workspace *w)
{
    fs_matrix Q = fs_row_major(w->Q, w->shape.basis, w->shape.n, w->shape.dtype);
    Q.memory = w->ctx->backend->memory;
    return Q;
}

/* A random d x n matrix of normals in w->Q: the transpose of a Gaussian sketch, which is its adjoint times I. */
static fs_result draw(fs_workspace *w, uint64_t seed)
{
    const int64_t n = w->shape.n;
    fs_spec spec = FS_SPEC_INIT;
    spec.family = FS_GAUSSIAN, spec.d = w->shape.basis, spec.k = n, spec.seed = seed;
    fs_matrix I = fs_row_major(w->G, n, n, w->shape.dtype), Q = basis(w);
    I.memory = Q.memory;
    CALL(w, zero, w->H, (size_t)(n * n) * sizeof(double));
    CALL(w, diagonal, n, w->H, n, NULL, 1.0);
    CALL(w, narrow, w->H, n, 0, &I);
    fs_sketch *normal;
    FSI_TRY(fs_sketch_create_with(&normal, &spec, &w->ctx->allocator));
    const fs_result result = fs_apply_adjoint(w->ctx, normal, 0, 1.0, &I, 0.0, &Q);
    fs_sketch_destroy(normal);
    return result;
}

/* The lower factor of the Gram matrix of A's rows, each multiplied by the inverse of w->H where `factored`, into `L`.
 */
static fs_result factor(fs_workspace *w, const fs_matrix *A, int factored, double *L)
{
    const int64_t n = w->shape.n;
    int broken;
    CALL(w, zero, L, (size_t)(n * n) * sizeof(double));
    for (int64_t at = 0; at < A->rows; at += w->panel) {
        const int64_t rows = A->rows - at < w->panel ? A->rows - at : w->panel;
        FSI_TRY(fsi_workspace_panel(w, A, at, rows));
        if (factored) CALL(w, trsm, 1, 0, n, rows, w->H, n, w->Z, w->pitch);
        CALL(w, syrk, n, rows, w->Z, w->pitch, 1.0, L, n);
    }
    CALL(w, diagonal, n, L, n, w->d, 0.0);
    CALL(w, potrf, n, L, n);
    CALL(w, diagonal, n, L, n, w->d + n, 0.0);
    CALL(w, fetch, w->d, (size_t)(2 * n) * sizeof(double), w->host);
    CALL(w, wait, &broken);
    for (int64_t j = 0; j < n; j++) {
        FSI_REQUIRE(isfinite(w->host[j]),
                    "fs_ose: column %" PRId64 " of A has elements that are not finite, or above 1e150", j + 1);
        FSI_REQUIRE(!(broken == j + 1) && w->host[n + j] > SMALLEST_PIVOT * sqrt(w->host[j]),
                    "fs_ose: column %" PRId64
                    " of A depends on those before it, or nearly so: they have no basis of %" PRId64 " columns",
                    j + 1, n);
    }
    return FS_OK;
}

/* Q = A L^-T M^-T, L in w->H and M in w->G. */
static fs_result write_basis(fs_workspace *w, const fs_matrix *A)
{
    const int64_t n = w->shape.n;
    const fs_matrix Q = basis(w);
    for (int64_t at = 0; at < A->rows; at += w->panel) {
        const int64_t rows = A->rows - at < w->panel ? A->rows - at : w->panel;
        fs_matrix part = Q;
        part.data = (char *)Q.data + at * n * fsi_dtype_size(Q.dtype);
        part.rows = rows;
        FSI_TRY(fsi_workspace_panel(w, A, at, rows));
        CALL(w, trsm, 1, 0, n, rows, w->H, n, w->Z, w->pitch);
        CALL(w, trsm, 1, 0, n, rows, w->G, n, w->Z, w->pitch);
        CALL(w, narrow, w->Z, w->pitch, 0, &part);
    }
    return FS_OK;
}

/* The error of a Gaussian S.  Its largest singular value, squared, is at (sqrt(k - 1) + sqrt(n))^2 / k, with deviations
 * of the distribution of Tracy and Widom (Johnstone, 2001); -4.5 and 2.9 leave less than 1 in 100 outside. */
static void expect(const fs_workspace *w, fs_ose_report *report)
{
    const double k = (double)w->shape.k, n = (double)w->shape.n, below = sqrt(fmax(k - 1, 1));
    const double middle = (below + sqrt(n)) * (below + sqrt(n));
    const double deviation = (below + sqrt(n)) * cbrt(1 / below + 1 / sqrt(n));
    report->expected = fs_ose_expected(w->shape.k, w->shape.n);
    report->low = fmax(0.0, (middle - 4.5 * deviation) / k - 1);
    report->high = (middle + 2.9 * deviation) / k - 1;
}

fs_result fs_ose(fs_workspace *w, const fs_sketch *S, const fs_matrix *A, uint64_t seed, fs_ose_report *report)
{
    FSI_REQUIRE(w && S && report, "fs_ose: %s is NULL", !w ? "w" : !S ? "S" : "report");
    FSI_TRY(fs_struct_check("fs_ose", "report", report, sizeof *report));
    const int64_t n = w->shape.n;
    FSI_REQUIRE(w->shape.basis == S->spec.d && w->shape.k == S->spec.k,
                "fs_ose: S is %" PRId64 " x %" PRId64 ", the workspace is for k = %" PRId64 " and a basis of %" PRId64
                " rows",
                S->spec.k, S->spec.d, w->shape.k, w->shape.basis);
    fs_matrix Q = basis(w), Y;
    fs_matrix from = Q;
    if (A) {
        FSI_REQUIRE(A->cols >= n, "fs_ose: A has %" PRId64 " columns, the workspace is for a basis of %" PRId64,
                    A->cols, n);
        from = *A;
        from.cols = n;
        FSI_TRY(fsi_workspace_check(w, "fs_ose", "A", &from, S->spec.d, n, 0));
    } else {
        FSI_TRY(draw(w, seed));
    }
    FSI_TRY(factor(w, &from, 0, w->H));
    FSI_TRY(factor(w, &from, 1, w->G));
    FSI_TRY(write_basis(w, &from));

    fsi_workspace_parts(w, &Y, NULL);
    w->made_by.size = 0;
    CALL(w, mark, MARK_SKETCH);
    FSI_TRY(fs_apply(w->ctx, S, 0, 1.0, &Q, 0.0, &Y));
    CALL(w, mark, MARK_SKETCHED);
    w->sketched = 1;
    double trace;
    CALL(w, mark, MARK_TASK);
    FSI_TRY(fsi_workspace_load(w, 0));
    FSI_TRY(fsi_workspace_gram(w, &trace));
    CALL(w, eigen, n, w->G, n, 0, w->host);
    CALL(w, mark, MARK_DONE);
    fs_ose_report full = FS_OSE_REPORT_INIT;
    FSI_TRY(fsi_workspace_times(w, &full.sketch_seconds, &full.solve_seconds, &full.total_seconds));
    double square = 0;
    for (int64_t j = 0; j < n; j++) square += (w->host[j] - 1) * (w->host[j] - 1);
    full.frobenius = sqrt(square);
    full.sigma_min = sqrt(fmax(0.0, w->host[0]));
    full.sigma_max = sqrt(fmax(0.0, w->host[n - 1]));
    full.error = fmax(fabs(w->host[0] - 1), fabs(w->host[n - 1] - 1));
    expect(w, &full);
    fs_struct_write(report, &full, sizeof full);
    return FS_OK;
}
