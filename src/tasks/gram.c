/* gram.c - Y'Y in place of A'A: the matrix, what to expect of its error, and the error itself. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/matrix.h"
#include "core/sketch.h"
#include "def/split.h"
#include "tasks/workspace.h"

/* The quantile at z standard deviations of a chi-square variable with v degrees of freedom, divided by v (Wilson and
 * Hilferty, 1931). */
static double chi_square_over(double v, double z)
{
    const double root = fmax(0.0, 1 - 2 / (9 * v) + z * sqrt(2 / (9 * v)));
    return root * root * root;
}

/* The k of a Gaussian sketch with the same variance.  Blocks of rows of Y err independently, each with the variance of
 * a sketch of its own height: 1 / k_eff = sum over blocks of share^2 / height, share being the block's part of |Y|^2.
 */
static double effective_k(const fs_workspace *w, const fs_sketch *S, const double *squares, double whole)
{
    const int64_t k = w->shape.k;
    const int blocks = S && (S->spec.family == FS_BLOCKPERM || S->spec.family == FS_BLOCKROW);
    const fsi_split split = fsi_split_make(k, blocks ? S->spec.M : 1);
    double inverse = 0;
    for (int64_t g = 0; g < (blocks ? S->spec.M : 1); g++) {
        const int64_t height = fsi_split_size(&split, g), start = fsi_split_start(&split, g);
        double part = 0;
        for (int64_t i = start; i < start + height; i++) part += squares[i];
        if (height) inverse += part / whole * (part / whole) / (double)height;
    }
    return fmin((double)k, 1 / inverse);
}

/* The degrees of freedom of |G - H|_F^2 as a chi-square variable.  A Gaussian S has about (r^2 + r) / 2, r = tr(H)^2 /
 * |H|_F^2.  A sparse one has fewer where few rows of A outweigh all others, because the error is then made by the few
 * pairs of them that meet: with x the excess of the fourth moment of the rows of Y over a Gaussian's, 1 + 2 / r, the
 * squared relative deviation of |G - H|_F^2 is larger by 2 x^2 / k.  (n dominant rows and s nonzeros a column: x = k /
 * (n s), and n^2 / 2 pairs meet in s^2 / k rows each.) */
static double degrees_of_freedom(double r, double fourth, double k)
{
    const double parts = fmax(1.0, (r * r + r) / 2), x = fmax(0.0, fourth - 1 - 2 / r);
    return fmax(0.25, 1 / (1 / parts + x * x / k));
}

/* G is in w->G.  For a Gaussian S with k rows, H = A'A: E|G - H|_F^2 = (tr(H)^2 + |H|_F^2) / k, and E|G|_F^2 is |H|_F^2
 * more than that, which gives |H|_F. */
static fs_result estimate_error(fs_workspace *w, const fs_sketch *S, double trace, fs_gram_report *report)
{
    const int known = fsi_confidence_in_gram(S, report->note, sizeof report->note);
    report->confidence = known ? FSI_CONFIDENCE : 0;
    report->error = report->low = report->high = 0;
    report->effective_k = (double)w->shape.k;
    if (trace == 0) return FS_OK;
    double square;
    FSI_TRY(fsi_workspace_symmetric_square(w, w->G, &square));
    CALL(w, squares, w->shape.n, w->shape.k, w->Z, w->pitch, w->squares);
    CALL(w, fetch, w->squares, (size_t)w->shape.k * sizeof(double), w->host);
    const double z = 2.576, k = effective_k(w, S, w->host, trace); /* 99 of 100 normal variables are within z */
    const double H = fmax((square - trace * trace / k) / (1 + 1 / k), trace * trace / (double)w->shape.n);
    const double r = trace * trace / H, spread = 1 + z / sqrt(2 * k);
    const double freedom = degrees_of_freedom(r, fsi_relative_fourth(w->host, w->shape.k), (double)w->shape.k);
    report->effective_k = k;
    report->error = sqrt((r + 1) / k);
    report->high = known ? report->error * sqrt(chi_square_over(freedom, z)) * spread : INFINITY;
    if (known && S->spec.family == FS_GAUSSIAN)
        report->low = report->error * sqrt(chi_square_over(freedom, -z)) / spread;
    return FS_OK;
}

fs_result fs_gram(fs_workspace *w, const fs_sketch *S, const fs_matrix *G, fs_gram_report *report)
{
    FSI_REQUIRE(w, "fs_gram: w is NULL");
    const int64_t n = w->shape.n;
    FSI_REQUIRE(!S || S->spec.k == w->shape.k, "fs_gram: S has %" PRId64 " rows, the workspace is for k = %" PRId64,
                S->spec.k, w->shape.k);
    if (report) FSI_TRY(fs_struct_check("fs_gram", "report", report, sizeof *report));
    if (G) {
        FSI_TRY(fs_matrix_check_output("fs_gram", "G", G));
        FSI_TRY(fsi_workspace_check(w, "fs_gram", "G", G, n, n, 1));
    }
    double trace;
    CALL(w, mark, MARK_TASK);
    FSI_TRY(fsi_workspace_load(w, 0));
    FSI_TRY(fsi_workspace_gram(w, &trace));
    FSI_REQUIRE(isfinite(trace), "fs_gram: Y has elements that are not finite, or above 1e150: so does A");
    if (G) FSI_TRY(fsi_workspace_put(w, w->G, n, 1, G));
    CALL(w, mark, MARK_DONE);
    if (!report) return w->dense->wait(w->handle, NULL);
    fs_gram_report full = FS_GRAM_REPORT_INIT;
    FSI_TRY(fsi_workspace_times(w, &full.sketch_seconds, &full.solve_seconds, &full.total_seconds));
    FSI_TRY(estimate_error(w, S, trace, &full));
    fs_struct_write(report, &full, sizeof full);
    return FS_OK;
}

/* The largest |eigenvalue| of the symmetric matrix in G, which it spoils. */
static fs_result spectral_norm(fs_workspace *w, double *G, double *norm)
{
    const int64_t n = w->shape.n;
    CALL(w, eigen, n, G, n, 0, w->host);
    *norm = fmax(fabs(w->host[0]), fabs(w->host[n - 1]));
    return FS_OK;
}

fs_result fs_gram_error(fs_workspace *w, const fs_matrix *A, double *frobenius, double *spectral)
{
    FSI_REQUIRE(w && A, "fs_gram_error: %s is NULL", w ? "A" : "w");
    const int64_t n = w->shape.n;
    double trace, apart, whole;
    FSI_TRY(fsi_workspace_check(w, "fs_gram_error", "A", A, A->rows, n, 0));
    FSI_TRY(fsi_workspace_load(w, 0));
    FSI_TRY(fsi_workspace_gram(w, &trace));
    CALL(w, zero, w->H, (size_t)(n * n) * sizeof(double));
    for (int64_t at = 0; at < A->rows; at += w->panel) {
        const int64_t rows = A->rows - at < w->panel ? A->rows - at : w->panel;
        FSI_TRY(fsi_workspace_panel(w, A, at, rows));
        CALL(w, syrk, n, rows, w->Z, w->pitch, 1.0, w->H, n);
    }
    CALL(w, add, n * n, -1.0, w->H, w->G);
    FSI_TRY(fsi_workspace_symmetric_square(w, w->G, &apart));
    FSI_TRY(fsi_workspace_symmetric_square(w, w->H, &whole));
    FSI_REQUIRE(isfinite(apart) && isfinite(whole), "fs_gram_error: A or Y has elements that are not finite");
    if (frobenius) *frobenius = whole > 0 ? sqrt(apart / whole) : 0;
    if (!spectral) return FS_OK;
    FSI_TRY(spectral_norm(w, w->G, &apart));
    FSI_TRY(spectral_norm(w, w->H, &whole));
    *spectral = whole > 0 ? apart / whole : 0;
    return FS_OK;
}
