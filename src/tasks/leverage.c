/* leverage.c - leverage scores: squared row norms of an orthonormal basis of A's columns.
 *
 * Exact: rows of Q = A(:, J) L1'^-1 L2'^-1 (basis.h).  Estimated: rows of A P, P = L1'^-1 Omega with p columns of random
 * signs over sqrt(p) (Drineas, Magdon-Ismail, Mahoney and Woodruff, 2012); where n <= p, P = L1'^-1.
 *
 * With a Gaussian S of k rows and an A of rank r, |A_i L1'^-1|^2 is the score times k / chi^2 with k - r + 1 degrees of
 * freedom: its mean k / (k - r - 1) is divided out, its relative variance is 2 / (k - r - 3).  That of the signs is at
 * most 2 / p, the p that k leaves of the wanted variance. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "tasks/basis.h"

static const double ERROR = 0.1;

typedef struct leverage {
    fsi_operand A;
    fsi_basis basis;
    fsi_rows products; /* rows of A P */
    fs_leverage_options options;
    int64_t p;    /* columns of Omega; 0: none */
    double *P;    /* n x p, or n x r */
    double *work; /* a panel's scores in the backend's memory; before, p x p */
    double scale; /* of the squared norms */
    double *scores;
    fs_leverage_report report;
} leverage;

static fs_result leverage_check(leverage *t, const fs_leverage_report *report)
{
    const fs_leverage_options *o = &t->options;
    if (report) FSI_TRY(fs_struct_check("fs_leverage", "report", report, sizeof *report));
    FSI_REQUIRE(t->scores || !t->A.d, "fs_leverage: scores is NULL");
    FSI_REQUIRE(t->A.rows >= t->A.n,
                "fs_leverage: A is %" PRId64 " x %" PRId64 "; it must have at least as many rows as columns", t->A.rows,
                t->A.n);
    FSI_REQUIRE(o->exact == 0 || o->exact == 1, "fs_leverage: options.exact is %d, it must be 0 or 1", o->exact);
    FSI_REQUIRE(o->error == 0 || (o->error >= 1e-3 && o->error <= 1),
                "fs_leverage: options.error is %g, it must be from 0.001 to 1, or 0 for %g", o->error, ERROR);
    FSI_REQUIRE(o->rcond >= 0 && o->rcond < 1, "fs_leverage: options.rcond is %g, it must be from 0 to below 1",
                o->rcond);
    return FS_OK;
}

static double wanted_variance(const leverage *t)
{
    const double error = t->options.error > 0 ? t->options.error : ERROR;
    return error * error;
}

/* Rows of S over n: half of the variance at most where columns of signs can be few, otherwise all of it. */
static double rows_of_sketch(const leverage *t)
{
    const double n = (double)t->A.n, all = 2 / wanted_variance(t);
    return t->options.exact ? 4 : fmax(4, (n + 3 + (4 * all <= n ? 2 * all : all)) / n);
}

/* Chooses p, scale and the error to report for the given S. */
static void plan_estimate(leverage *t)
{
    const double k = (double)t->basis.k, r = (double)t->basis.r, wanted = wanted_variance(t);
    double variance = k > 0 ? INFINITY : 0;
    t->scale = 1;
    if (k > r + 3) {
        t->scale = (k - r - 1) / k;
        variance = 2 / (k - r - 3);
    }
    const double p = ceil(2 / fmax(wanted - variance, wanted / 2));
    t->p = 2 * p <= r ? (int64_t)p : 0;
    if (t->p) variance += 2 / p;
    t->report.error = sqrt(variance);
}

/* P = L1'^-1 Omega with its rows where the pivots are, zeros elsewhere. */
static fs_result make_products(leverage *t)
{
    fsi_operand *A = &t->A;
    const fsi_basis *b = &t->basis;
    const int64_t n = A->n, r = b->r, m = t->p ? t->p : r;
    void *host = NULL;
    double *small = NULL;
    FSI_TRY(fsi_operand_alloc(A, n * m, &t->P));
    FSI_TRY(fsi_operand_alloc(A, fsi_max(t->p * t->p, 1), &t->work));
    FSI_TRY(fsi_operand_alloc(A, r * m, &small));
    fs_result result = fsi_rows_host(A, (n + r) * m, sizeof(double), &host);
    if (result == FS_OK && t->p)
        result = fsi_operand_signs(A, r, m, t->options.seed + UINT64_C(0x9E3779B97F4A7C15), t->work, small);
    if (result == FS_OK && !t->p) {
        result = A->dense->zero(A->handle, small, (size_t)(r * m) * sizeof(double));
        if (result == FS_OK) result = A->dense->diagonal(A->handle, r, small, r, NULL, 1.0);
    }
    if (result == FS_OK) result = A->dense->trsm(A->handle, 1, 1, r, m, b->L1, n, small, r);
    if (result == FS_OK) result = A->dense->fetch(A->handle, small, (size_t)(r * m) * sizeof(double), host);
    if (result == FS_OK) {
        const double *from = host;
        double *P = (double *)host + r * m;
        memset(P, 0, (size_t)(n * m) * sizeof *P);
        for (int64_t c = 0; c < m; c++)
            for (int64_t i = 0; i < r; i++) P[(b->pivots ? b->pivots[i] : i) + c * n] = from[i + c * r];
        result = A->dense->send(A->handle, P, (size_t)(n * m) * sizeof *P, t->P);
    }
    fsi_rows_release(A, host);
    fsi_operand_free(A, small);
    FSI_TRY(result);
    fsi_operand_free(A, t->work);
    t->work = NULL;
    return fsi_rows_open_product(&t->products, A, m, t->P);
}

/* Squared norms of the panel's columns, m numbers each, ld apart. */
static fs_result take_panel(leverage *t, int64_t row0, int64_t rows, int64_t m, const double *Z, int64_t ld)
{
    fsi_operand *A = &t->A;
    DENSE(A, squares, m, rows, Z, ld, t->work);
    DENSE(A, fetch, t->work, (size_t)rows * sizeof(double), t->scores + row0);
    for (int64_t i = row0; i < row0 + rows; i++) t->scores[i] *= t->scale;
    fsi_operand_progress(A, 0.5 + 0.5 * (double)(row0 + rows) / (double)A->d, "scores");
    return FS_OK;
}
static fs_result take_basis(void *user, int64_t row0, int64_t rows)
{
    leverage *t = user;
    FSI_TRY(fsi_basis_divide(&t->basis, rows));
    return take_panel(t, row0, rows, t->basis.r, t->basis.rows.Z, t->A.n);
}
static fs_result take_products(void *user, int64_t row0, int64_t rows)
{
    leverage *t = user;
    return take_panel(t, row0, rows, t->products.m, t->products.Z, t->products.m);
}

static fs_result exact_scores(leverage *t)
{
    FSI_TRY(fsi_basis_orthogonalize(&t->basis));
    t->scale = 1;
    FSI_TRY(fsi_operand_alloc(&t->A, t->basis.rows.most, &t->work));
    return fsi_rows_visit(&t->basis.rows, take_basis, t);
}

static fs_result estimated_scores(leverage *t)
{
    plan_estimate(t);
    FSI_TRY(make_products(t));
    FSI_TRY(fsi_operand_alloc(&t->A, t->products.most, &t->work));
    return fsi_rows_visit(&t->products, take_products, t);
}

/* the report ------------------------------------------------------------------------------------------------- */

/* *key becomes the largest of all ranks', by sums alone: eight rounds, each of which finds one byte. */
static fs_result largest_key(fsi_operand *A, uint64_t *key)
{
    if (!A->ranks.sum) return FS_OK;
    double counts[256];
    int mine = 1;
    uint64_t found = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        memset(counts, 0, sizeof counts);
        if (mine) counts[*key >> shift & 255] = 1;
        FSI_TRY(fsi_operand_sum_host(A, counts, 256));
        int byte = 255;
        while (byte > 0 && !(counts[byte] > 0)) byte--;
        mine = mine && (int)(*key >> shift & 255) == byte;
        found |= (uint64_t)byte << shift;
    }
    *key = found;
    return FS_OK;
}

/* Sum, largest score and its row, the first of them. */
static fs_result summarise(leverage *t)
{
    fsi_operand *A = &t->A;
    double sum = 0, largest = 0;
    int64_t row = INT64_MAX;
    for (int64_t i = 0; i < A->d; i++) {
        sum += t->scores[i];
        if (row == INT64_MAX || t->scores[i] > largest) largest = t->scores[i], row = A->row0 + i;
    }
    /* A sketch that samples rows may miss an element that is not finite. */
    FSI_TRY(fsi_operand_sum_host(A, &sum, 1));
    FSI_REQUIRE(isfinite(sum), "%s: A has elements that are not finite, or so large that their sums are not", A->who);
    /* Doubles from 0 on are in the order of their bits. */
    uint64_t mine, most;
    memcpy(&mine, &largest, sizeof mine);
    most = mine;
    FSI_TRY(largest_key(A, &most));
    uint64_t before = most == mine ? (uint64_t)(INT64_MAX - row) : 0;
    FSI_TRY(largest_key(A, &before));
    t->report.sum = sum;
    memcpy(&t->report.largest, &most, sizeof most);
    t->report.row = INT64_MAX - (int64_t)before;
    return FS_OK;
}

static fs_result leverage_agree(leverage *t)
{
    const fs_leverage_options *o = &t->options;
    const fsi_choice choices[] = {
        {"options.exact", (double)o->exact},
        {"options.error", o->error},
        {"options.rcond", o->rcond},
    };
    return fsi_operand_agree(&t->A, o->sketch, o->seed, choices, sizeof choices / sizeof choices[0]);
}

static fs_result leverage_run(leverage *t)
{
    fsi_operand *A = &t->A;
    const fsi_basis_options how = {FSI_PIVOT_DEPENDENT, fsi_operand_rcond(A, t->options.rcond),
                                   t->options.sketch,   rows_of_sketch(t),
                                   t->options.seed,     t->options.exact};
    FSI_TRY(fsi_operand_open(A, A->n, 1, 1));
    DENSE(A, mark, 0);
    FSI_TRY(fsi_basis_sketch(&t->basis, A, &how));
    if (!t->basis.r)
        for (int64_t i = 0; i < A->d; i++) t->scores[i] = 0;
    else if (t->options.exact) FSI_TRY(exact_scores(t));
    else FSI_TRY(estimated_scores(t));
    DENSE(A, mark, 1);
    DENSE(A, wait, NULL);
    t->report.rank = t->basis.r;
    t->report.reads = A->reads;
    t->report.seconds = A->dense->seconds(A->handle, 0, 1);
    return summarise(t);
}

fs_result fs_leverage(fs_context *ctx, const fs_operand *A, const fs_leverage_options *options, double *scores,
                      fs_leverage_report *report)
{
    const fs_leverage_options start = FS_LEVERAGE_INIT;
    const fs_leverage_report empty = FS_LEVERAGE_REPORT_INIT;
    leverage t = {.options = start, .scores = scores, .report = empty};
    if (options) FSI_TRY(fs_struct_read("fs_leverage", "options", options, &t.options, sizeof t.options));
    FSI_TRY(fsi_operand_init(&t.A, "fs_leverage", ctx, A, t.options.ranks, t.options.progress));
    fs_result result = leverage_check(&t, report);
    if (result == FS_OK) result = leverage_agree(&t);
    if (result == FS_OK) result = leverage_run(&t);
    fsi_rows_close(&t.products);
    fsi_basis_close(&t.basis);
    fsi_operand_free(&t.A, t.P);
    fsi_operand_free(&t.A, t.work);
    result = fsi_operand_close(&t.A, result);
    if (result == FS_OK && report) fs_struct_write(report, &t.report, sizeof t.report);
    return result;
}
