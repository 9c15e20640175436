/* scores.c - features to scores: K by Cholesky, and phi K^-1 Phi', or phi Phi' K^-1, a block at a time. */
#include <inttypes.h>
#include <math.h>

#include "attribution/attribution.h"
#include "base/dtype.h"
#include "core/matrix.h"
#include "def/port.h"

/* Features first ... first + count - 1 of all examples as columns of Z, N x count. */
static fs_result widen_features(fs_attribution *g, int64_t first, int64_t count)
{
    fs_matrix some = fs_batch_major(g->Phi + first, g->N, count, FS_F32);
    some.col_stride = g->k;
    some.memory = g->ctx->backend->memory;
    return g->dense->widen(g->handle, &some, g->Z, g->N);
}

/* Sums over what K has not: over examples, or over features. */
static fs_result make_gram(fs_attribution *g)
{
    const int by_features = g->N < g->k;
    const int64_t all = by_features ? g->k : g->N;
    for (int64_t first = 0; first < all; first += g->panel) {
        const int64_t count = fsi_min64(g->panel, all - first);
        FSI_TRY(by_features ? widen_features(g, first, count) : fsi_attribution_widen(g, first, count));
        GRASS(g, syrk, g->order, count, g->Z, g->order, first ? 1.0 : 0.0, g->gram, g->order);
    }
    g->gram_ready = 1;
    return FS_OK;
}

fs_result fs_attribution_factor(fs_attribution *g, double damping)
{
    const char *who = "fs_attribution_factor";
    FSI_REQUIRE(g, "%s: g is NULL", who);
    FSI_REQUIRE(isfinite(damping) && damping > 0, "%s: damping = %g, it must be positive", who, damping);
    int64_t missing = 0, first = -1;
    for (int64_t i = g->N - 1; i >= 0; i--)
        if (!g->there[i]) missing++, first = i;
    FSI_REQUIRE(!missing, "%s: %" PRId64 " of %" PRId64 " examples have not been added, the first is number %" PRId64,
                who, missing, g->N, first);
    g->finished = 0;
    if (!g->gram_ready) FSI_TRY(make_gram(g));
    const int64_t n = g->order;
    GRASS(g, zero, g->factor, (size_t)(n * n) * sizeof *g->factor);
    GRASS(g, add, n * n, 1.0, g->gram, g->factor);
    GRASS(g, diagonal, n, g->factor, n, NULL, damping);
    GRASS(g, potrf, n, g->factor, n);
    int info = 0;
    GRASS(g, wait, &info);
    FSI_REQUIRE(info == 0,
                "%s: with a damping of %g, %s + damping I is singular in f64 (at column %d of %" PRId64
                "); a larger damping is needed",
                who, damping, g->N < g->k ? "Phi Phi'" : "Phi'Phi", info, n);
    g->finished = 1;
    return FS_OK;
}

/* scores(row + q, first + i) = beta scores + alpha weight C[i + q count] */
static void put_block(const fs_matrix *scores, const double *C, int64_t row, int64_t rows, int64_t first, int64_t count,
                      const double *weights, double alpha, double beta)
{
    for (int64_t q = 0; q < rows; q++)
        for (int64_t i = 0; i < count; i++) {
            const int64_t at = (row + q) * scores->row_stride + (first + i) * scores->col_stride;
            double x = alpha * C[i + q * count] * (weights ? weights[first + i] : 1.0);
            if (beta != 0) x += beta * fsi_load(scores->data, scores->dtype, at);
            fsi_store(scores->data, scores->dtype, at, x);
        }
}

/* rows x cols of phi from (row, col) on, as columns of `to`: cols x rows. */
static fs_result widen_some(fs_attribution *g, const fs_matrix *phi, int64_t row, int64_t rows, int64_t col,
                            int64_t cols, double *to)
{
    fs_matrix some = *phi;
    some.rows = rows;
    some.cols = cols;
    some.offset += row * phi->row_stride + col * phi->col_stride;
    some = fsi_matrix_at_origin(&some);
    return g->dense->widen(g->handle, &some, to, cols);
}

/* X = K^-1 X, order x cols. */
static fs_result scores_solve(fs_attribution *g, int64_t cols)
{
    GRASS(g, trsm, 1, 0, g->order, cols, g->factor, g->order, g->X, g->order);
    GRASS(g, trsm, 1, 1, g->order, cols, g->factor, g->order, g->X, g->order);
    return FS_OK;
}

/* score_panel where N < k: X = K^-1 Phi phi', N x rows, is all. */
static fs_result score_few(fs_attribution *g, const fs_matrix *phi, int64_t row, int64_t rows, const double *weights,
                           double alpha, double beta, const fs_matrix *scores)
{
    const int64_t N = g->N, most = g->panel * g->panel / N > 0 ? g->panel * g->panel / N : 1;
    for (int64_t first = 0; first < g->k; first += g->panel) {
        const int64_t count = fsi_min64(g->panel, g->k - first);
        FSI_TRY(widen_features(g, first, count));
        FSI_TRY(widen_some(g, phi, row, rows, first, count, g->C));
        GRASS(g, gemm, 0, 0, N, rows, count, 1.0, g->Z, N, g->C, count, first ? 1.0 : 0.0, g->X, N);
    }
    FSI_TRY(scores_solve(g, rows));
    for (int64_t q = 0, some; q < rows; q += some) {
        some = fsi_min64(most, rows - q);
        GRASS(g, fetch, g->X + q * N, (size_t)(N * some) * sizeof *g->host, g->host);
        put_block(scores, g->host, row + q, some, 0, N, weights, alpha, beta);
    }
    return FS_OK;
}

/* Rows row ... row + rows - 1 of phi and of scores, at most `panel` of them. */
static fs_result score_panel(fs_attribution *g, const fs_matrix *phi, int64_t row, int64_t rows, const double *weights,
                             double alpha, double beta, const fs_matrix *scores)
{
    if (g->N < g->k) return score_few(g, phi, row, rows, weights, alpha, beta, scores);
    FSI_TRY(widen_some(g, phi, row, rows, 0, g->k, g->X));
    FSI_TRY(scores_solve(g, rows));
    for (int64_t first = 0; first < g->N; first += g->panel) {
        const int64_t count = fsi_min64(g->panel, g->N - first);
        FSI_TRY(fsi_attribution_widen(g, first, count));
        GRASS(g, gemm, 1, 0, count, rows, g->k, 1.0, g->Z, g->k, g->X, g->k, 0.0, g->C, count);
        GRASS(g, fetch, g->C, (size_t)(count * rows) * sizeof *g->host, g->host);
        put_block(scores, g->host, row, rows, first, count, weights, alpha, beta);
    }
    return FS_OK;
}

fs_result fs_attribution_scores(fs_attribution *g, const fs_matrix *phi, const double *weights, double alpha,
                                double beta, const fs_matrix *scores)
{
    const char *who = "fs_attribution_scores";
    FSI_REQUIRE(g, "%s: g is NULL", who);
    FSI_REQUIRE(g->finished, "%s: fs_attribution_factor comes first, and again after examples were added", who);
    FSI_TRY(fs_matrix_check(who, "phi", phi));
    FSI_TRY(fs_matrix_check_output(who, "scores", scores));
    FSI_REQUIRE(phi->cols == g->k && scores->rows == phi->rows && scores->cols == g->N,
                "%s: phi is %" PRId64 " x %" PRId64 " and scores %" PRId64 " x %" PRId64
                ", they must be queries x %" PRId64 " and queries x %" PRId64,
                who, phi->rows, phi->cols, scores->rows, scores->cols, g->k, g->N);
    FSI_REQUIRE(!fs_matrix_overlap(phi, scores), "%s: phi and scores overlap in memory", who);
    FSI_TRY(fsi_context_check_memory(who, "phi", g->ctx, phi->memory));
    if (scores->memory != FS_MEMORY_HOST) return fs_fail(FS_EUNSUPPORTED, "%s: scores must be in host memory", who);
    const fs_matrix to = fsi_matrix_at_origin(scores);
    for (int64_t row = 0; row < phi->rows; row += g->panel)
        FSI_TRY(score_panel(g, phi, row, fsi_min64(g->panel, phi->rows - row), weights, alpha, beta, &to));
    return FS_OK;
}

fs_result fs_attribution_top(const fs_matrix *scores, int64_t row, int64_t m, int lowest, int64_t *examples,
                             double *values)
{
    const char *who = "fs_attribution_top";
    FSI_TRY(fs_matrix_check(who, "scores", scores));
    if (scores->memory != FS_MEMORY_HOST) return fs_fail(FS_EUNSUPPORTED, "%s: scores must be in host memory", who);
    FSI_REQUIRE(row >= 0 && row < scores->rows, "%s: row %" PRId64 " of scores, which have %" PRId64, who, row,
                scores->rows);
    FSI_REQUIRE(m >= 0 && m <= scores->cols && (examples || m == 0),
                "%s: m = %" PRId64 ", it must be from 0 to %" PRId64 " and examples not NULL", who, m, scores->cols);
    const fs_matrix from = fsi_matrix_at_origin(scores);
    int64_t held = 0;
    for (int64_t j = 0; j < from.cols && m; j++) { /* examples[0 .. held) are the best so far, in order */
        const double x = fsi_load(from.data, from.dtype, row * from.row_stride + j * from.col_stride);
        int64_t at = held;
        while (at > 0) {
            const double y = fsi_load(from.data, from.dtype,
                                      row * from.row_stride + examples[at - 1] * from.col_stride);
            if (lowest ? !(x < y) : !(x > y)) break;
            at--;
        }
        if (at == m) continue;
        if (held < m) held++;
        for (int64_t i = held - 1; i > at; i--) examples[i] = examples[i - 1];
        examples[at] = j;
    }
    for (int64_t i = 0; i < m && values; i++)
        values[i] = fsi_load(from.data, from.dtype, row * from.row_stride + examples[i] * from.col_stride);
    return FS_OK;
}
