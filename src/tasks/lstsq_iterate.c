/* lstsq_iterate.c - least squares by preconditioned conjugate gradients with restarts.
 *
 * With N from the sketch, cond(A N) is about (1 + e) / (1 - e), e = sqrt(n / k), and each iteration leaves the share e of
 * the error, whatever the condition of A.  Rounding errors of A (N p) grow with that condition, so the correction is
 * restarted from the true residual b - A x (iterative refinement: Epperly, Meier and Nakatsukasa, 2024), after every
 * half of the digits, and after fewer where A is ill-conditioned.
 *
 * Over ranks, vectors that decide (x, N'g, N'q, backward errors) are those of one rank; A's argument may differ by the
 * rounding of N p, as A (N p) does anyway.
 *
 * It stops by the backward error: the least |[dA D^-1, theta db]|_F, theta = |A D^-1|_F / |b|, such that x solves the
 * least-squares problem of A + dA and b + db.  D has the lengths of A's columns on its diagonal, so that each column is
 * as good as its own length allows and no scaling of columns changes the error; where V is used, D = I.  It is estimated
 * by Karlson and Walden's formula
 *     (theta / h) |(A'A + (theta |r| / h)^2 D^2)^-1/2 A'r|,   h = sqrt(1 + theta^2 |D x|^2),   r = b - A x,
 * with the singular values of the sketch for those of A; with A's own it is at most sqrt(2) above the least (Gratton,
 * Jiranek and Titley-Peloquin, 2012).  With lambda, A and b have the rows sqrt(lambda) I and 0 below.  Where lambda is
 * larger than |A|_F^2, errors of the size of sqrt(lambda) say nothing of x: the gradient is to be small beside |A| |b|
 * too. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "tasks/lstsq.h"

/* Corrections in a row that do not halve the backward error before the iteration ends. */
enum { MOST_STALLS = 4 };

static double dot(int64_t n, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* W = A'(A P - B), fetched to `to`; P is sent from `from`. */
static fs_result read_once(fsi_lstsq *l, const double *from, const fs_matrix *B, double *to)
{
    const size_t bytes = (size_t)(l->n * l->m) * sizeof(double);
    char doing[64];
    snprintf(doing, sizeof doing, "iteration %d, read %d of A", (int)l->told.iterations, (int)l->A.reads + 1);
    fsi_operand_progress(&l->A, fmin(1, (double)l->told.iterations / (double)l->o.max_iterations), doing);
    DENSE(&l->A, send, from, bytes, l->P);
    FSI_TRY(fsi_operand_normal(&l->A, l->m, l->P, B, l->W, l->squares));
    DENSE(&l->A, fetch, l->W, bytes, to);
    return FS_OK;
}

/* g = A'(b - A x) - lambda x, residuals = |A x - b|. */
static fs_result true_gradient(fsi_lstsq *l)
{
    const int64_t count = l->n * l->m;
    FSI_TRY(read_once(l, l->x, &l->B, l->g));
    for (int64_t i = 0; i < count; i++) l->g[i] = -l->g[i] - l->o.lambda * l->x[i];
    DENSE(&l->A, fetch, l->squares, (size_t)l->m * sizeof(double), l->residuals);
    for (int64_t c = 0; c < l->m; c++) l->residuals[c] = sqrt(l->residuals[c]);
    return FS_OK;
}

/* |D x| and |A D^-1|_F. */
static double scaled_norm(const fsi_lstsq *l, const double *x)
{
    double square = 0;
    for (int64_t j = 0; j < l->n; j++) {
        const double y = l->N ? x[j] : x[j] * l->values[j];
        square += y * y;
    }
    return sqrt(square);
}
static double size_of_matrix(const fsi_lstsq *l) { return l->N ? l->norm : sqrt((double)l->n); }

/* The shift and the factor in front of Karlson and Walden's formula for right-hand side c. */
static void weigh(const fsi_lstsq *l, int64_t c, double *shift, double *factor)
{
    const double *x = l->x + c * l->n, r2 = l->residuals[c] * l->residuals[c];
    const double theta = l->b_norms[c] > 0 ? size_of_matrix(l) / l->b_norms[c] : 0,
                 h = hypot(1, theta * scaled_norm(l, x));
    *shift = theta * sqrt(r2 + (l->o.lambda > 0 ? l->o.lambda * dot(l->n, x, x) : 0)) / h;
    *factor = theta / h;
}

static fs_result check_range(const fsi_lstsq *l, int64_t c, double value)
{
    FSI_REQUIRE(
        isfinite(value),
        "%s: |A| = %.3g, |b| = %.3g and lambda = %.3g give results whose squares are no f64 numbers: scale A or B",
        l->A.who, l->norm, l->b_norms[c], l->o.lambda);
    return FS_OK;
}

/* The largest backward error of all right-hand sides, over |A D^-1|_F. */
static fs_result backward_errors(fsi_lstsq *l, double *largest)
{
    double factor, *shifts = l->scratch + l->n * l->m;
    for (int64_t c = 0; c < l->m; c++) {
        weigh(l, c, &shifts[c], &factor);
        FSI_TRY(check_range(l, c, shifts[c]));
        if (!(l->b_norms[c] > 0)) shifts[c] = INFINITY;
    }
    FSI_TRY(fsi_lstsq_shifted_norms(l, shifts, l->g, l->errors));
    FSI_TRY(fsi_operand_share_host(&l->A, l->errors, l->m));
    *largest = 0;
    for (int64_t c = 0; c < l->m; c++) {
        double shift;
        weigh(l, c, &shift, &factor);
        const double *g = l->g + c * l->n, size = l->norm * l->b_norms[c];
        double error = size > 0 ? l->errors[c] * factor / size_of_matrix(l) : 0;
        if (size > 0 && l->o.lambda > l->norm * l->norm) error = fmax(error, sqrt(dot(l->n, g, g)) / size);
        FSI_TRY(check_range(l, c, error));
        *largest = fmax(*largest, error);
    }
    return FS_OK;
}

/* One step of conjugate gradients on (A N)'(A N) z = N'g for the columns whose gamma is above its goal. */
static fs_result step(fsi_lstsq *l, double *gamma, const double *goal, int64_t *active)
{
    const int64_t r = l->rank;
    FSI_TRY(fsi_lstsq_from_coordinates(l, l->p, l->scratch));
    FSI_TRY(read_once(l, l->scratch, NULL, l->q));
    for (int64_t i = 0; i < l->n * l->m && l->o.lambda > 0; i++) l->q[i] += l->o.lambda * l->scratch[i];
    FSI_TRY(fsi_lstsq_to_coordinates(l, l->q, l->q));
    *active = 0;
    for (int64_t c = 0; c < l->m; c++) {
        double *z = l->z + c * r, *s = l->s + c * r, *p = l->p + c * r, *q = l->q + c * r;
        const double curvature = dot(r, p, q);
        if (!(gamma[c] > goal[c]) || !(curvature > 0)) {
            memset(p, 0, (size_t)r * sizeof *p);
            continue;
        }
        const double alpha = gamma[c] / curvature;
        for (int64_t i = 0; i < r; i++) z[i] += alpha * p[i], s[i] -= alpha * q[i];
        const double next = dot(r, s, s), beta = next / gamma[c];
        gamma[c] = next;
        const int goes_on = next > goal[c];
        for (int64_t i = 0; i < r; i++) p[i] = goes_on ? s[i] + beta * p[i] : 0;
        *active += goes_on;
    }
    return FS_OK;
}

/* x += N z with (A N)'(A N) z = N'g solved until |residual| is `reduction` of what it was. */
static fs_result correct(fsi_lstsq *l, double reduction)
{
    const int64_t r = l->rank, count = l->n * l->m;
    double *gamma = l->scratch + count, *goal = gamma + l->m;
    int64_t active = 0;
    FSI_TRY(fsi_lstsq_to_coordinates(l, l->g, l->s));
    memset(l->z, 0, (size_t)count * sizeof *l->z);
    memcpy(l->p, l->s, (size_t)(r * l->m) * sizeof *l->p);
    for (int64_t c = 0; c < l->m; c++) {
        gamma[c] = dot(r, l->s + c * r, l->s + c * r);
        goal[c] = reduction * reduction * gamma[c];
        active += gamma[c] > goal[c];
    }
    /* Twice the expected number, and some: more is a sign of rounding errors, which a restart removes. */
    const int64_t most = 8 + (int64_t)ceil(2 * log(reduction) / log(l->contraction));
    for (int64_t i = 0; i < most && active && l->told.iterations < l->o.max_iterations; i++) {
        l->told.iterations++;
        FSI_TRY(step(l, gamma, goal, &active));
    }
    FSI_TRY(fsi_lstsq_from_coordinates(l, l->z, l->scratch));
    for (int64_t i = 0; i < count; i++) l->x[i] += l->scratch[i];
    return fsi_operand_share_host(&l->A, l->x, count);
}

/* How far a correction may go before its rounding errors, u cond(A), outweigh it. */
static double reduction_for(const fsi_lstsq *l, double error)
{
    const double rounding = 16 * 0x1p-53 * l->told.condition, wanted = fmin(1e-4, 0.25 * l->o.tolerance / error);
    return fmin(0.1, fmax(fmax(wanted, 0x1p-27), rounding));
}

/* squares[c] = |B_c|^2 of this caller's rows, nonzeros[c] how many of its elements are not 0. */
static fs_result squares_of_columns(fsi_lstsq *l, const fs_matrix *B, double *squares, double *nonzeros)
{
    enum { ROWS = 4096 };
    const int64_t m = l->m, most = fsi_max(1, fsi_min(ROWS, l->n)); /* columns of B' that fit W, n x m */
    memset(squares, 0, (size_t)m * sizeof *squares);
    memset(nonzeros, 0, (size_t)m * sizeof *nonzeros);
    for (int64_t i = 0; i < B->rows; i += most) {
        fs_matrix part = *B;
        part.data = (char *)part.data + i * part.row_stride * (int64_t)fs_dtype_size(part.dtype);
        part.rows = fsi_min(most, B->rows - i);
        DENSE(&l->A, widen, &part, l->W, m);
        DENSE(&l->A, fetch, l->W, (size_t)(part.rows * m) * sizeof(double), l->scratch);
        for (int64_t r = 0; r < part.rows; r++)
            for (int64_t c = 0; c < m; c++) {
                const double b = l->scratch[r * m + c];
                squares[c] += b * b;
                nonzeros[c] += b != 0;
            }
    }
    return FS_OK;
}

/* b_norms, all finite and in range. */
static fs_result measure_right_hand_sides(fsi_lstsq *l)
{
    const int64_t m = l->m;
    double *squares = l->scratch + l->n * m, *nonzeros = squares + m;
    FSI_TRY(squares_of_columns(l, &l->B, squares, nonzeros));
    FSI_TRY(fsi_operand_sum_host(&l->A, squares, 2 * m));
    for (int64_t c = 0; c < m; c++) {
        l->b_norms[c] = sqrt(squares[c]);
        FSI_REQUIRE(isfinite(squares[c]) && l->b_norms[c] <= FSI_LSTSQ_LARGEST,
                    "%s: column %" PRId64 " of B has an element that is not finite, or one above 1e140: scale B",
                    l->A.who, c);
        FSI_REQUIRE(nonzeros[c] == 0 || l->b_norms[c] >= 1 / FSI_LSTSQ_LARGEST,
                    "%s: column %" PRId64 " of B has elements below 1e-140 only, whose squares are lost: scale B",
                    l->A.who, c);
    }
    return FS_OK;
}

/* The backward error of x by singular values of A itself: NaN where those that count are lost in rounding errors. */
static fs_result measure(fsi_lstsq *l, int has_gradient)
{
    if (!has_gradient) FSI_TRY(true_gradient(l));
    if (!l->is_refined) FSI_TRY(fsi_lstsq_refine(l));
    if (!l->N) FSI_TRY(fsi_lstsq_measure_columns(l));
    return l->is_refined ? backward_errors(l, &l->told.true_backward_error) : FS_OK;
}

fs_result fsi_lstsq_iterate(fsi_lstsq *l)
{
    const size_t bytes = (size_t)(l->n * l->m) * sizeof(double);
    double error = INFINITY, best = INFINITY;
    int stalled = 0, better;
    double *kept = l->scratch + l->n * l->m + 2 * l->m; /* the best x so far */
    FSI_TRY(measure_right_hand_sides(l));
    if (!l->N) FSI_TRY(fsi_lstsq_measure_columns(l));
    if (!l->has_start) memset(l->x, 0, bytes);
    for (;;) {
        FSI_TRY(true_gradient(l));
        FSI_TRY(backward_errors(l, &error));
        better = error < best;
        if (better) {
            memcpy(kept, l->x, bytes);
            l->told.residual = 0;
            for (int64_t c = 0; c < l->m; c++) l->told.residual = hypot(l->told.residual, l->residuals[c]);
        }
        stalled = error < 0.5 * best ? 0 : stalled + 1;
        best = better ? error : best;
        /* A start from A's own factor is within the tolerance and has a digit less than one correction gives it. */
        const int is_start = l->is_refined && l->told.iterations == 0 && best > 0;
        if ((best <= l->o.tolerance && !is_start) || stalled == MOST_STALLS || !l->rank ||
            l->told.iterations >= l->o.max_iterations)
            break;
        FSI_TRY(correct(l, reduction_for(l, error)));
    }
    memcpy(l->x, kept, bytes);
    l->told.backward_error = best;
    l->told.converged = best <= l->o.tolerance;
    return l->o.measure_error ? measure(l, better) : FS_OK;
}
