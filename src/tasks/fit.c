/* fit.c - X that minimises |Y X - C|^2 + lambda |X|^2: ridge regression, and with lambda = 0 least squares.
 *
 * The normal equations in f64.  For an f32 Y the Gram matrix in f64 has twice the digits that Y has, so that the factor
 * is good for condition numbers up to 2e6, where those of Y itself have no digits left (mixed-precision Cholesky QR:
 * Yamazaki, Tomov and Dongarra, 2015), and no Q is needed: one product Y'[Y C] is all that touches k rows.  For an f64
 * Y a step of corrected semi-normal equations (Bjorck, 1987) follows, which makes the error that of a QR factorization.
 * Where k < n the equations are those of Y Y', k x k, and X = Y'U is the shortest solution.  Small pivots go to the
 * singular values of Y. */
#include <inttypes.h>
#include <math.h>

#include "base/dtype.h"
#include "core/matrix.h"
#include "tasks/workspace.h"

/* Results of the methods of solution. */
typedef struct fit {
    fs_method method; /* 0: Cholesky's pivots are too small */
    int64_t rank;
    double condition;
    double freedom; /* tr(Y (Y'Y + lambda I)^-1 Y'): the rank, where lambda is 0 */
    double Y2, C2;  /* |Y|^2 and |C|^2, not finite where Y or C is not */
} fit;

static fs_matrix right_hand_side(fs_workspace *w)
{
    fs_matrix C;
    fsi_workspace_parts(w, NULL, &C);
    return C;
}

/* X (rhs x n) = X L^-1, L in w->G. */
static fs_result back_substitute(fs_workspace *w, double *X)
{
    CALL(w, trsm, 0, 0, w->shape.rhs, w->shape.n, w->G, w->pitch, X, w->shape.rhs);
    return FS_OK;
}

/* E = C' - X' Y', rhs x k; Z is loaded. */
static fs_result residual_of_sketch(fs_workspace *w)
{
    const fs_matrix C = right_hand_side(w);
    CALL(w, widen, &C, w->E, w->shape.rhs);
    CALL(w, gemm, 0, 0, w->shape.rhs, w->shape.k, w->shape.n, -1.0, w->X, w->shape.rhs, w->Z, w->pitch, 1.0, w->E,
         w->shape.rhs);
    return FS_OK;
}

/* A step of refinement: X += (C - Y X)'Y - lambda X, divided by L L'. */
static fs_result fit_refine(fs_workspace *w, double lambda)
{
    const int64_t n = w->shape.n, rhs = w->shape.rhs;
    FSI_TRY(residual_of_sketch(w));
    CALL(w, gemm, 0, 1, rhs, n, w->shape.k, 1.0, w->E, rhs, w->Z, w->pitch, 0.0, w->W, rhs);
    if (lambda > 0) CALL(w, add, rhs * n, -lambda, w->X, w->W);
    CALL(w, trsm, 0, 1, rhs, n, w->G, w->pitch, w->W, rhs);
    FSI_TRY(back_substitute(w, w->W));
    CALL(w, add, rhs * n, 1.0, w->W, w->X);
    return FS_OK;
}

/* Compares p pivots with the squared lengths of the p rows or columns that they belong to.  One of length 0 has no part
 * in the solution: with 1 on its diagonal entry the factor has 1 there and zeros elsewhere. */
static void look_at_pivots(const double *pivots, const double *squares, int64_t p, double lambda, int broken, fit *out)
{
    double least = broken ? 0 : 1;
    out->rank = 0;
    for (int64_t j = 0; j < p && !broken; j++) {
        if (squares[j] == 0) continue;
        out->rank++;
        const double pivot = pivots[j] / sqrt(squares[j] + lambda);
        if (!(pivot >= least)) least = pivot;
    }
    out->method = least >= SMALLEST_PIVOT ? FS_METHOD_CHOLESKY : (fs_method)0;
    out->condition = 1 / least;
    out->freedom = (double)out->rank;
}

/* By Cholesky's factor of Y'Y + lambda I, with X' in w->X; Z is [Y C]'.
 *
 * All of [Y C]'[Y C] is factored: below the factor L of Y'Y + lambda I stands then (L^-1 Y'C)', so that half of the
 * substitution is done.  What is last on the diagonal, C'C, is raised far above all else so that the factor exists
 * whatever C is; nothing above or left of it depends on it. */
static fs_result by_columns(fs_workspace *w, double lambda, fit *out)
{
    const double far_above = 1e300;
    const int64_t n = w->shape.n, N = w->N, rhs = w->shape.rhs;
    fs_matrix below = fs_row_major(w->G + n, n, rhs, FS_F64); /* (j, c) is G[n + c + j pitch] */
    below.row_stride = w->pitch;
    below.memory = w->ctx->backend->memory;
    int broken;
    FSI_TRY(fsi_workspace_load(w, 1));
    CALL(w, syrk, N, w->shape.k, w->Z, w->pitch, 0.0, w->G, w->pitch);
    CALL(w, diagonal, n, w->G, w->pitch, w->d, lambda);
    if (lambda == 0) CALL(w, ones, n, w->G, w->pitch);
    CALL(w, diagonal, rhs, w->G + n + n * w->pitch, w->pitch, w->d + n, far_above);
    CALL(w, potrf, N, w->G, w->pitch);
    CALL(w, diagonal, n, w->G, w->pitch, w->d + N, 0.0);
    CALL(w, widen, &below, w->X, rhs);
    FSI_TRY(back_substitute(w, w->X));
    if (w->shape.dtype == FS_F64) FSI_TRY(fit_refine(w, lambda));
    CALL(w, fetch, w->d, (size_t)(N + n) * sizeof(double), w->host);
    CALL(w, wait, &broken);
    for (int64_t j = 0; j < N; j++) *(j < n ? &out->Y2 : &out->C2) += w->host[j];
    look_at_pivots(w->host + N, w->host, n, lambda, broken > n ? 0 : broken, out);
    return FS_OK;
}

/* U (rhs x k) = U (L L')^-1, and X' = U Y. */
static fs_result substitute_rows(fs_workspace *w, double *U)
{
    const int64_t n = w->shape.n, k = w->shape.k, rhs = w->shape.rhs;
    CALL(w, trsm, 0, 1, rhs, k, w->G, w->pitch, U, rhs);
    CALL(w, trsm, 0, 0, rhs, k, w->G, w->pitch, U, rhs);
    if (U != w->F) CALL(w, add, rhs * k, 1.0, U, w->F);
    CALL(w, gemm, 0, 0, rhs, n, k, 1.0, w->F, rhs, w->Z, k, 0.0, w->X, rhs);
    return FS_OK;
}

/* For k < n: by Cholesky's factor of Y Y' + lambda I, k x k, with X' in w->X.  Z is Y itself, k x n; F is C' and then
 * U. */
static fs_result by_rows(fs_workspace *w, double lambda, fit *out)
{
    const int64_t n = w->shape.n, k = w->shape.k, rhs = w->shape.rhs;
    fs_matrix Y, C;
    fsi_workspace_parts(w, &Y, &C);
    const fs_matrix turned = {Y.data, n, k, 1, n, 0, 0, Y.dtype, Y.memory};
    double *diagonals = w->host, *squares = w->host + 2 * k;
    int broken;
    CALL(w, widen, &turned, w->Z, k);
    CALL(w, widen, &C, w->F, rhs);
    CALL(w, squares, rhs, k, w->F, rhs, w->squares);
    CALL(w, syrk, k, n, w->Z, k, 0.0, w->G, w->pitch);
    CALL(w, diagonal, k, w->G, w->pitch, w->d, lambda);
    if (lambda == 0) CALL(w, ones, k, w->G, w->pitch);
    CALL(w, potrf, k, w->G, w->pitch);
    CALL(w, diagonal, k, w->G, w->pitch, w->d + k, 0.0);
    FSI_TRY(substitute_rows(w, w->F));
    if (w->shape.dtype == FS_F64) { /* E = C' - X' Y' - lambda U, solved and added */
        CALL(w, widen, &C, w->E, rhs);
        CALL(w, gemm, 0, 1, rhs, k, n, -1.0, w->X, rhs, w->Z, k, 1.0, w->E, rhs);
        if (lambda > 0) CALL(w, add, rhs * k, -lambda, w->F, w->E);
        FSI_TRY(substitute_rows(w, w->E));
    }
    CALL(w, fetch, w->d, (size_t)(2 * k) * sizeof(double), diagonals);
    CALL(w, fetch, w->squares, (size_t)k * sizeof(double), squares);
    CALL(w, wait, &broken);
    for (int64_t i = 0; i < k; i++) out->Y2 += diagonals[i], out->C2 += squares[i];
    look_at_pivots(diagonals + k, diagonals, k, lambda, broken, out);
    return FS_OK;
}

/* tr(Y (Y'Y + lambda I)^-1 Y') = p - lambda |L^-1|_F^2, L being p x p, for either way. */
static fs_result count_freedom(fs_workspace *w, double lambda, fit *out)
{
    const int64_t p = w->shape.k < w->shape.n ? w->shape.k : w->shape.n;
    double norm;
    CALL(w, zero, w->H, (size_t)(p * p) * sizeof(double));
    CALL(w, diagonal, p, w->H, p, NULL, 1.0);
    CALL(w, trsm, 1, 0, p, p, w->G, w->pitch, w->H, p);
    CALL(w, norm, p * p, w->H, &norm);
    out->freedom = fmax(0.0, (double)p - lambda * norm * norm);
    return FS_OK;
}

/* By singular values: X = V diag(s / (s^2 + lambda)) U' C for Y = U diag(s) V'.  The taller of Y and Y' is factored. */
static fs_result by_svd(fs_workspace *w, double lambda, double rcond, fit *out)
{
    const int64_t n = w->shape.n, k = w->shape.k, rhs = w->shape.rhs;
    const int tall = k >= n;
    const int64_t p = tall ? n : k, m = tall ? k : n;
    fs_matrix Y, C = right_hand_side(w);
    fsi_workspace_parts(w, &Y, NULL);
    const fs_matrix turned = {Y.data, n, k, 1, n, 0, 0, Y.dtype, Y.memory};
    CALL(w, widen, tall ? &turned : &Y, w->Z, m);
    CALL(w, widen, &C, w->F, rhs);
    double *s = w->host, *f = w->host + p, *Vt = w->H;
    CALL(w, svd, m, p, w->Z, m, s, Vt);
    out->method = FS_METHOD_SVD;
    out->rank = 0;
    out->freedom = 0;
    out->condition = s[p - 1] > 0 ? s[0] / s[p - 1] : INFINITY;
    for (int64_t i = 0; i < p; i++) {
        const int counts = s[i] > rcond * s[0];
        out->rank += counts;
        f[i] = counts ? s[i] / (s[i] * s[i] + lambda) : 0;
        out->freedom += f[i] * s[i];
    }
    CALL(w, send, f, (size_t)p * sizeof(double), w->squares);
    /* B = U'C or V'C, p x rhs, in E; then X' = (diag(f) B)' V' or (diag(f) B)' U'. */
    if (tall) CALL(w, gemm, 1, 1, p, rhs, k, 1.0, w->Z, m, w->F, rhs, 0.0, w->E, p);
    else CALL(w, gemm, 0, 1, p, rhs, k, 1.0, Vt, p, w->F, rhs, 0.0, w->E, p);
    CALL(w, scale_rows, p, rhs, w->E, p, w->squares);
    if (tall) CALL(w, gemm, 1, 0, rhs, n, p, 1.0, w->E, p, Vt, p, 0.0, w->X, rhs);
    else CALL(w, gemm, 1, 1, rhs, n, p, 1.0, w->E, p, w->Z, m, 0.0, w->X, rhs);
    return FS_OK;
}

/* The relative variance of |r'S'S r| times k, r being the residual A X - B of all right-hand sides: 2 for a Gaussian S,
 * more for a sparse one where few rows carry r.  Such a row is s large rows of E, which the fourth moment of E's rows
 * shows, though fitting X has made it smaller by (1 - freedom / k)^2. */
static fs_result spread_of_residual(fs_workspace *w, double freedom, double *variance)
{
    const int64_t k = w->shape.k, rhs = w->shape.rhs;
    const double kept = 1 - freedom / (double)k;
    CALL(w, squares, rhs, k, w->E, rhs, w->squares);
    CALL(w, fetch, w->squares, (size_t)k * sizeof(double), w->host);
    *variance = 2 + fmax(0.0, fsi_relative_fourth(w->host, k) - 3) / (kept * kept);
    return FS_OK;
}

/* How unevenly leverage lies on the rows of Y, for fsi_confidence_in_fit; Z is Y', and becomes L^-1 Y'.  Only Cholesky's
 * factor of Y'Y has it at little cost, n^2 k operations. */
static fs_result measure_leverage(fs_workspace *w, const fit *done, double *unevenness)
{
    const int64_t k = w->shape.k, n = w->shape.n;
    *unevenness = NAN;
    if (done->method != FS_METHOD_CHOLESKY || k < n) return FS_OK;
    if (!w->made_by.size || w->made_by.family == FS_GAUSSIAN) return FS_OK; /* the interval does not depend on it */
    CALL(w, trsm, 1, 0, n, k, w->G, w->pitch, w->Z, w->pitch);
    CALL(w, squares, n, k, w->Z, w->pitch, w->squares);
    CALL(w, fetch, w->squares, (size_t)k * sizeof(double), w->host);
    *unevenness = fsi_relative_fourth(w->host, k) - 1;
    return FS_OK;
}

/* The interval of |A X - B|; `rounding` bounds what rounding adds to a residual. */
static fs_result bracket(fs_workspace *w, double freedom, double rounding, fs_fit_report *report)
{
    const double k = (double)w->shape.k;
    double variance;
    FSI_TRY(spread_of_residual(w, freedom, &variance));
    const double reach = exp(3 * sqrt(variance * (1 + freedom / k) / (k - freedom)) / 2);
    /* A residual that consists of rounding has no lower bound but 0. */
    report->low = report->residual > 16 * rounding ? report->residual / reach - rounding : 0;
    report->high = report->residual * reach + rounding;
    return FS_OK;
}

/* Generalised cross-validation, see flashsketch_tasks.h. */
static fs_result estimate_error(fs_workspace *w, const fit *done, int explain, double rounding, fs_fit_report *report)
{
    const double k = (double)w->shape.k, left = k - done->freedom;
    fsi_fit_facts facts = {done->freedom, NAN, done->rank, explain};
    FSI_TRY(fsi_workspace_load(w, 0));
    FSI_TRY(residual_of_sketch(w));
    CALL(w, norm, w->shape.rhs * w->shape.k, w->E, &report->sketched);
    FSI_TRY(measure_leverage(w, done, &facts.unevenness));
    const int known = fsi_confidence_in_fit(w, &facts, report->note, sizeof report->note);
    report->confidence = known ? FSI_CONFIDENCE : 0;
    report->residual = report->smallest = NAN;
    report->low = 0;
    report->high = INFINITY;
    if (left < 0.5) return FS_OK; /* Y X = C has a solution for every C */
    report->residual = report->sketched * k / left;
    report->smallest = report->sketched * sqrt(k / left);
    return known ? bracket(w, done->freedom, rounding, report) : FS_OK;
}

/* The scale of rounding errors of Y and X: sqrt(sum_j |y_j|^2 |x_j|^2), y_j the columns of Y and x_j the rows of X,
 * where their lengths are in w->d; otherwise the larger |Y| |X|. */
static fs_result size_of_terms(fs_workspace *w, const fit *done, double *size)
{
    const int64_t n = w->shape.n;
    double sum = 0, *lengths = w->host, *x = w->host + w->N;
    if (w->shape.k < n) {
        CALL(w, norm, w->shape.rhs * n, w->X, size);
        *size *= sqrt(done->Y2);
        return FS_OK;
    }
    CALL(w, fetch, w->d, (size_t)n * sizeof(double), lengths);
    CALL(w, squares, w->shape.rhs, n, w->X, w->shape.rhs, w->squares);
    CALL(w, fetch, w->squares, (size_t)n * sizeof(double), x);
    for (int64_t j = 0; j < n; j++) sum += lengths[j] * x[j];
    *size = sqrt(sum);
    return FS_OK;
}

static fs_result fit_check(fs_workspace *w, const char *who, const fs_matrix *X, const fs_fit_report *report)
{
    FSI_REQUIRE(w, "%s: w is NULL", who);
    FSI_REQUIRE(w->shape.rhs > 0, "%s: the workspace has no right-hand sides: its shape has rhs = 0", who);
    if (report) FSI_TRY(fs_struct_check(who, "report", report, sizeof *report));
    FSI_TRY(fs_matrix_check_output(who, "X", X));
    return fsi_workspace_check(w, who, "X", X, w->shape.n, w->shape.rhs, 1);
}

static fs_result fit_run(fs_workspace *w, const char *who, double lambda, double rcond, const fs_matrix *X,
                         fs_fit_report *report)
{
    const int f64 = w->shape.dtype == FS_F64;
    const double most = fmax((double)w->shape.n, (double)w->shape.k);
    const double tolerance = rcond > 0 ? rcond : f64 ? 0x1p-52 * most : 0x1p-21;
    fit done = {(fs_method)0, 0, 0, 0, 0, 0};
    double size;
    CALL(w, mark, MARK_TASK);
    FSI_TRY(w->shape.k < w->shape.n ? by_rows(w, lambda, &done) : by_columns(w, lambda, &done));
    FSI_REQUIRE(isfinite(done.Y2) && isfinite(done.C2), "%s: %s has elements that are not finite, or above 1e150", who,
                isfinite(done.Y2) ? "C, and so B," : "Y, and so A,");
    if (!done.method || rcond > 0) FSI_TRY(by_svd(w, lambda, tolerance, &done));
    FSI_TRY(fsi_workspace_put(w, w->X, w->shape.rhs, 0, X));
    CALL(w, mark, MARK_DONE);
    if (!report) return w->dense->wait(w->handle, NULL);

    FSI_TRY(fsi_workspace_times(w, &report->sketch_seconds, &report->solve_seconds, &report->total_seconds));
    if (lambda > 0 && done.method == FS_METHOD_CHOLESKY) FSI_TRY(count_freedom(w, lambda, &done));
    FSI_TRY(size_of_terms(w, &done, &size));
    report->method = done.method;
    report->rank = done.rank;
    report->condition = done.condition;
    report->rhs = sqrt(done.C2);
    const double unit = fmax(fsi_unit(w->shape.dtype), fsi_unit(X->dtype));
    FSI_TRY(estimate_error(w, &done, lambda == 0 && rcond == 0, 8 * unit * (size + report->rhs), report));
    if (lambda > 0) report->smallest = NAN;
    return FS_OK;
}

static fs_result run_and_report(fs_workspace *w, const char *who, double lambda, double rcond, const fs_matrix *X,
                                fs_fit_report *report)
{
    fs_fit_report full = FS_FIT_REPORT_INIT;
    FSI_TRY(fit_run(w, who, lambda, rcond, X, report ? &full : NULL));
    if (report) fs_struct_write(report, &full, sizeof full);
    return FS_OK;
}

fs_result fs_solve(fs_workspace *w, double rcond, const fs_matrix *X, fs_fit_report *report)
{
    FSI_TRY(fit_check(w, "fs_solve", X, report));
    FSI_REQUIRE(rcond >= 0 && rcond < 1, "fs_solve: rcond = %g, it must be from 0 to less than 1", rcond);
    return run_and_report(w, "fs_solve", 0.0, rcond, X, report);
}

fs_result fs_ridge(fs_workspace *w, double lambda, const fs_matrix *X, fs_fit_report *report)
{
    FSI_TRY(fit_check(w, "fs_ridge", X, report));
    FSI_REQUIRE(lambda > 0 && isfinite(lambda), "fs_ridge: lambda = %g, it must be a positive number", lambda);
    return run_and_report(w, "fs_ridge", lambda, 0.0, X, report);
}

fs_result fs_residual(fs_workspace *w, const fs_matrix *A, const fs_matrix *B, const fs_matrix *X, double *norms)
{
    const char *who = "fs_residual";
    FSI_REQUIRE(w && A && B && norms, "%s: %s is NULL", who, !w ? "w" : !A ? "A" : !B ? "B" : "norms");
    const int64_t n = w->shape.n, rhs = w->shape.rhs;
    FSI_REQUIRE(rhs > 0, "%s: the workspace has no right-hand sides: its shape has rhs = 0", who);
    FSI_TRY(fsi_workspace_check(w, who, "A", A, A->rows, n, 0));
    FSI_TRY(fsi_workspace_check(w, who, "B", B, A->rows, rhs, 0));
    FSI_TRY(fsi_workspace_check(w, who, "X", X, n, rhs, 0));
    const fs_matrix x = fsi_matrix_at_origin(X);
    CALL(w, widen, &x, w->W, rhs);
    CALL(w, zero, w->G, (size_t)(rhs * rhs) * sizeof(double));
    for (int64_t at = 0; at < A->rows; at += w->panel) {
        const int64_t rows = A->rows - at < w->panel ? A->rows - at : w->panel;
        fs_matrix part = fsi_matrix_at_origin(B);
        part.data = (char *)part.data + at * B->row_stride * fsi_dtype_size(B->dtype);
        part.rows = rows;
        FSI_TRY(fsi_workspace_panel(w, A, at, rows));
        CALL(w, widen, &part, w->F, rhs);
        CALL(w, gemm, 0, 0, rhs, rows, n, 1.0, w->W, rhs, w->Z, w->pitch, -1.0, w->F, rhs);
        CALL(w, syrk, rhs, rows, w->F, rhs, 1.0, w->G, rhs);
    }
    CALL(w, diagonal, rhs, w->G, rhs, w->d, 0.0);
    CALL(w, fetch, w->d, (size_t)rhs * sizeof(double), norms);
    for (int64_t j = 0; j < rhs; j++) norms[j] = sqrt(norms[j]);
    return FS_OK;
}
