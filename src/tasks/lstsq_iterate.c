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
 * larger than |A|_F^2, errors of the size of sqrt(lambda) do not bound those of x: the gradient must be small beside
 * |A| |b| too. */
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

static void announce(const fsi_lstsq *l)
{
    char doing[64];
    snprintf(doing, sizeof doing, "iteration %d, read %d of A", (int)l->told.iterations, (int)l->A.reads + 1);
    fsi_operand_progress(&l->A, fmin(1, (double)l->told.iterations / (double)l->o.max_iterations), doing);
}

/* g = A'(b - A x) - lambda x, residuals = |A x - b|. */
static fs_result true_gradient(fsi_lstsq *l)
{
    const int64_t count = l->n * l->m;
    announce(l);
    DENSE(&l->A, send, l->x, (size_t)count * sizeof(double), l->P);
    FSI_TRY(fsi_operand_normal(&l->A, l->m, l->P, &l->B, l->W, l->squares));
    DENSE(&l->A, fetch, l->W, (size_t)count * sizeof(double), l->g);
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
    announce(l);
    FSI_TRY(fsi_lstsq_normal(l, l->p, l->q));
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
    /* Somewhat more than twice the expected number: more is a sign of rounding errors, which a restart removes. */
    const int64_t most = 8 + (int64_t)ceil(2 * log(reduction) / log(l->contraction));
    for (int64_t i = 0; i < most && active && l->told.iterations < l->o.max_iterations; i++) {
        l->told.iterations++;
        FSI_TRY(step(l, gamma, goal, &active));
    }
    FSI_TRY(fsi_lstsq_from_coordinates(l, l->z, l->scratch));
    for (int64_t i = 0; i < count; i++) l->x[i] += l->scratch[i];
    return fsi_operand_share_host(&l->A, l->x, count);
}

/* By how much a correction may reduce the residual before its rounding errors, u cond(A), outweigh it. */
static double reduction_for(const fsi_lstsq *l, double error)
{
    const double rounding = 16 * 0x1p-53 * l->told.condition, wanted = fmin(1e-4, 0.25 * l->o.tolerance / error);
    return fmin(0.1, fmax(fmax(wanted, 0x1p-27), rounding));
}

/* A panel of B: each column in pieces of CHUNK rows, the last one filled up with zeros. */
enum { CHUNK = 1024, PANEL = 1 << 22 };
typedef struct right_panel {
    int64_t rows, padded; /* padded: rows rounded up to CHUNK */
    double *columns;      /* padded x m, in the backend's memory */
    double *sums;         /* padded / CHUNK x m, there too */
    double *host;         /* room for the sums, and for a column */
} right_panel;

/* squares[c] += |column c|^2.  A column with a sum of 0 has its elements looked at: nonzeros[c] += those that are not 0. */
static fs_result add_panel(fsi_lstsq *l, const right_panel *p, double *squares, double *nonzeros)
{
    const int64_t m = l->m, chunks = p->padded / CHUNK;
    DENSE(&l->A, squares, CHUNK, chunks * m, p->columns, CHUNK, p->sums);
    DENSE(&l->A, fetch, p->sums, (size_t)(chunks * m) * sizeof(double), p->host);
    for (int64_t c = 0; c < m; c++) {
        double sum = 0;
        for (int64_t i = 0; i < chunks; i++) sum += p->host[i + c * chunks];
        squares[c] += sum;
        nonzeros[c] += sum != 0;
    }
    for (int64_t c = 0; c < m; c++) {
        if (nonzeros[c] > 0) continue;
        DENSE(&l->A, fetch, p->columns + c * p->padded, (size_t)p->rows * sizeof(double), p->host);
        for (int64_t i = 0; i < p->rows; i++) nonzeros[c] += p->host[i] != 0;
    }
    return FS_OK;
}

static fs_result visit_panels(fsi_lstsq *l, const fs_matrix *B, right_panel *p, double *squares, double *nonzeros)
{
    const int64_t most = p->rows, m = l->m;
    for (int64_t i = 0; i < B->rows; i += most) {
        fs_matrix part = *B; /* its transpose: columns are packed */
        part.data = (char *)part.data + i * B->row_stride * (int64_t)fs_dtype_size(B->dtype);
        p->rows = fsi_min(most, B->rows - i);
        p->padded = fsi_round_up(p->rows, CHUNK);
        part.rows = m, part.cols = p->rows;
        part.row_stride = B->col_stride, part.col_stride = B->row_stride;
        DENSE(&l->A, zero, p->columns, (size_t)(p->padded * m) * sizeof(double));
        DENSE(&l->A, widen, &part, p->columns, p->padded);
        FSI_TRY(add_panel(l, p, squares, nonzeros));
    }
    return FS_OK;
}

/* squares[c] = |B_c|^2 of this caller's rows, nonzeros[c]: not 0 where one of its elements is not. */
static fs_result squares_of_columns(fsi_lstsq *l, const fs_matrix *B, double *squares, double *nonzeros)
{
    const int64_t m = l->m, most = fsi_max(CHUNK, PANEL / m / CHUNK * CHUNK);
    right_panel p = {fsi_min(most, fsi_round_up(fsi_max(B->rows, 1), CHUNK)), 0, NULL, NULL, NULL};
    const int64_t numbers = p.rows * m, sums = numbers / CHUNK;
    const fs_allocator *memory = &l->A.ctx->allocator;
    memset(squares, 0, (size_t)m * sizeof *squares);
    memset(nonzeros, 0, (size_t)m * sizeof *nonzeros);
    p.host = memory->alloc(memory->user, (size_t)fsi_max(sums, p.rows) * sizeof(double));
    if (!p.host) return fs_fail(FS_ENOMEM, "%s: no memory for a column of B", l->A.who);
    fs_result result = fsi_operand_alloc(&l->A, numbers + sums, &p.columns);
    p.sums = p.columns + numbers;
    if (result == FS_OK) result = visit_panels(l, B, &p, squares, nonzeros);
    fsi_operand_free(&l->A, p.columns);
    memory->release(memory->user, p.host);
    return result;
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
static fs_result lstsq_iterate_measure(fsi_lstsq *l, int has_gradient)
{
    if (!has_gradient) FSI_TRY(true_gradient(l));
    if (!l->is_refined) FSI_TRY(fsi_lstsq_refine(l));
    if (!l->N) FSI_TRY(fsi_lstsq_measure_columns(l));
    return l->is_refined ? backward_errors(l, &l->told.true_backward_error) : FS_OK;
}

/* Whether x can be a solution: not where it is 0, there was no iteration, and b is not 0. */
static int may_be_near(const fsi_lstsq *l)
{
    if (l->has_start || !l->rank || l->told.iterations > 0) return 1;
    for (int64_t c = 0; c < l->m; c++)
        if (!(l->b_norms[c] > 0)) return 1;
    return 0;
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
        if (may_be_near(l)) FSI_TRY(backward_errors(l, &error));
        else error = 1; /* no solution is worse than 0 */
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
    return l->o.measure_error ? lstsq_iterate_measure(l, better) : FS_OK;
}
