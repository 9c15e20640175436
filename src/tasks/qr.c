/* qr.c - A = Q R, or A(:, J) = Q R, by the factor of a sketch and one Cholesky step (basis.h).
 *
 * Q is not stored before it is final: the last read of A divides its rows by both factors and rounds once.  So Q may be
 * A's own memory, and rounding Q to its type does not affect R. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/math.h"
#include "core/matrix.h"
#include "tasks/basis.h"
#include "tasks/condition.h"

/* Vectors of signs by which |Q'Q - I|_F is estimated; with at most as many columns, those of I, and it is exact. */
enum { PROBES = 16 };

typedef struct qr {
    fsi_operand A;
    fsi_basis basis;
    fs_qr_options options;
    const fs_matrix *Q, *R;
    fs_matrix at;      /* Q with its offset folded */
    int64_t probes;    /* columns of P */
    double *P, *U, *W; /* r x probes: probes; probes x panel: P'Q'; r x probes: Q'Q P */
    double *mask;      /* n: 1 for the columns of Q, 0 for those beyond the rank; NULL: all are */
    double *panel, *f; /* in host memory: a panel that is copied there, probes */
    fs_qr_report report;
} qr;

static int is_same_view(const fs_matrix *a, const fs_matrix *b)
{
    return a->data == b->data && a->dtype == b->dtype && a->memory == b->memory && a->row_stride == b->row_stride &&
           a->col_stride == b->col_stride && a->rows == b->rows && a->cols == b->cols;
}

static fs_result check_output(const qr *q, const char *name, const fs_matrix *m, int64_t rows)
{
    FSI_TRY(fs_matrix_check_output("fs_qr", name, m));
    FSI_REQUIRE(m->rows == rows && m->cols == q->A.n,
                "fs_qr: %s is %" PRId64 " x %" PRId64 ", it must be %" PRId64 " x %" PRId64, name, m->rows, m->cols,
                rows, q->A.n);
    return m->memory == FS_MEMORY_HOST ? FS_OK : fsi_context_check_memory("fs_qr", name, q->A.ctx, m->memory);
}

static fs_result qr_check(qr *q, const int64_t *pivots, const fs_qr_report *report)
{
    const fsi_operand *A = &q->A;
    if (report) FSI_TRY(fs_struct_check("fs_qr", "report", report, sizeof *report));
    FSI_REQUIRE(A->rows >= A->n, "fs_qr: A is %" PRId64 " x %" PRId64 "; it must have at least as many rows as columns",
                A->rows, A->n);
    FSI_REQUIRE(q->options.pivot == 0 || q->options.pivot == 1, "fs_qr: options.pivot is %d, it must be 0 or 1",
                q->options.pivot);
    FSI_REQUIRE(q->options.rcond >= 0 && q->options.rcond < 1,
                "fs_qr: options.rcond is %g, it must be from 0 to below 1", q->options.rcond);
    FSI_REQUIRE(!pivots == !q->options.pivot, "fs_qr: pivots is %s, but options.pivot is %d", pivots ? "given" : "NULL",
                q->options.pivot);
    FSI_REQUIRE(q->R, "fs_qr: R is NULL");
    FSI_TRY(check_output(q, "R", q->R, A->n));
    FSI_REQUIRE(A->is_sparse ? !fsi_sparse_overlap(&A->sparse, q->R)
                             : A->slices.next || !fs_matrix_overlap(&A->matrix, q->R),
                "fs_qr: R overlaps A");
    if (!q->Q) return FS_OK;
    FSI_TRY(check_output(q, "Q", q->Q, A->d));
    q->at = fsi_matrix_at_origin(q->Q);
    FSI_REQUIRE(!fs_matrix_overlap(q->Q, q->R), "fs_qr: Q overlaps R");
    FSI_REQUIRE(A->is_sparse
                    ? !fsi_sparse_overlap(&A->sparse, q->Q)
                    : A->slices.next || is_same_view(&A->matrix, &q->at) || !fs_matrix_overlap(&A->matrix, q->Q),
                "fs_qr: Q overlaps A and is not the same view");
    return FS_OK;
}

/* Q ---------------------------------------------------------------------------------------------------------- */

/* Probes, and the memory that a panel needs to become rows of Q. */
static fs_result qr_prepare(qr *q)
{
    fsi_operand *A = &q->A;
    const int64_t n = A->n, r = q->basis.r, most = q->basis.rows.most, m = q->probes = fsi_min(r, PROBES);
    void *memory = NULL;
    FSI_TRY(fsi_rows_host(A, fsi_max(r * m, n), sizeof(double), &memory));
    q->f = memory;
    if (r < n) {
        FSI_TRY(fsi_operand_alloc(A, n, &q->mask));
        for (int64_t j = 0; j < n; j++) q->f[j] = j < r;
        DENSE(A, send, q->f, (size_t)n * sizeof(double), q->mask);
    }
    if (q->at.memory != A->ctx->backend->memory) {
        FSI_TRY(fsi_rows_host(A, n * most, sizeof(double), &memory));
        q->panel = memory;
    }
    if (!r) return FS_OK;
    for (int64_t i = 0; i < r; i++)
        for (int64_t c = 0; c < m; c++)
            q->f[i + c * r] = m == r ? i == c : ((uint64_t)(i * m + c + 1) * 0x9E3779B97F4A7C15u >> 40) % 2 ? 1 : -1;
    FSI_TRY(fsi_operand_alloc(A, r * m, &q->P));
    FSI_TRY(fsi_operand_alloc(A, r * m, &q->W));
    FSI_TRY(fsi_operand_alloc(A, m * most, &q->U));
    DENSE(A, send, q->f, (size_t)(r * m) * sizeof(double), q->P);
    DENSE(A, zero, q->W, (size_t)(r * m) * sizeof(double));
    return FS_OK;
}

static fs_result write_panel(void *user, int64_t row0, int64_t rows)
{
    qr *q = user;
    fsi_operand *A = &q->A;
    const int64_t n = A->n, r = q->basis.r, m = q->probes;
    fs_matrix part = q->at;
    part.data = (char *)part.data + row0 * part.row_stride * fsi_dtype_size(part.dtype);
    part.rows = rows;
    FSI_TRY(fsi_basis_divide(&q->basis, rows));
    double *Z = q->basis.rows.Z; /* after the division, which may exchange it */
    if (q->mask) DENSE(A, scale_rows, n, rows, Z, n, q->mask);
    if (r) {
        DENSE(A, gemm, 1, 0, m, rows, r, 1.0, q->P, r, Z, n, 0.0, q->U, m);
        DENSE(A, gemm, 0, 1, r, m, rows, 1.0, Z, n, q->U, m, 1.0, q->W, r);
    }
    if (!q->panel) {
        DENSE(A, narrow, Z, n, 0, &part);
    } else {
        DENSE(A, fetch, Z, (size_t)(n * rows) * sizeof(double), q->panel);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < n; j++)
                fsi_store(part.data, part.dtype, i * part.row_stride + j * part.col_stride, q->panel[j + i * n]);
    }
    fsi_operand_progress(A, 0.5 + 0.5 * (double)(row0 + rows) / (double)A->d, "Q");
    return FS_OK;
}

static fs_result write_q(qr *q)
{
    fsi_operand *A = &q->A;
    q->report.orthogonality = NAN;
    if (!q->Q) return FS_OK;
    FSI_TRY(qr_prepare(q));
    FSI_TRY(fsi_rows_visit(&q->basis.rows, write_panel, q));
    const int64_t count = q->basis.r * q->probes;
    q->report.orthogonality = 0;
    if (!count) return FS_OK;
    FSI_TRY(fsi_operand_sum(A, q->W, count));
    DENSE(A, add, count, -1.0, q->P, q->W);
    DENSE(A, norm, count, q->W, &q->report.orthogonality);
    if (q->probes < q->basis.r) q->report.orthogonality /= sqrt((double)q->probes);
    return fsi_operand_share_host(A, &q->report.orthogonality, 1);
}

/* R ---------------------------------------------------------------------------------------------------------- */

/* R into its view, from its transpose. */
static fs_result write_r(qr *q)
{
    fsi_operand *A = &q->A;
    const int64_t n = A->n;
    const fs_matrix R = fsi_matrix_at_origin(q->R);
    const double *L = q->basis.host;
    if (R.memory != FS_MEMORY_HOST && q->basis.r == n) return A->dense->narrow(A->handle, q->basis.G, n, 0, &R);
    FSI_TRY(fsi_basis_triangle(&q->basis));
    if (R.memory != FS_MEMORY_HOST) {
        DENSE(A, send, L, (size_t)(n * n) * sizeof(double), q->basis.G);
        DENSE(A, narrow, q->basis.G, n, 0, &R);
        return FS_OK;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) fsi_store(R.data, R.dtype, i * R.row_stride + j * R.col_stride, L[j + i * n]);
    return FS_OK;
}

/* The condition of the columns that count, from R; without pivots, whether they are independent. */
static fs_result look_at_triangle(qr *q)
{
    fsi_basis *b = &q->basis;
    if (!q->options.pivot && q->A.dtype != FS_F64) {
        double condition = b->scaled;
        if (!b->is_final) FSI_TRY(fsi_condition(&q->A, q->A.n, b->G, q->A.n, 1, &condition, NULL));
        if (!(condition * 4 * fsi_operand_unit(&q->A) < 1)) return fsi_basis_dependent(b, b->G);
    }
    q->report.rank = b->r;
    q->report.condition = b->r ? b->condition : 0;
    return FS_OK;
}

static fs_result qr_agree(qr *q)
{
    const fsi_choice choices[] = {
        {"options.pivot", (double)q->options.pivot},
        {"options.rcond", q->options.rcond},
        {"whether Q is wanted", q->Q ? 1 : 0},
    };
    return fsi_operand_agree(&q->A, q->options.sketch, q->options.seed, choices, sizeof choices / sizeof choices[0]);
}

static fs_result qr_run(qr *q, int64_t *pivots)
{
    fsi_operand *A = &q->A;
    const fsi_basis_options how = {q->options.pivot ? FSI_PIVOT_ALWAYS : FSI_PIVOT_NEVER,
                                   fsi_operand_rcond(A, q->options.rcond),
                                   q->options.sketch,
                                   4,
                                   q->options.seed,
                                   1};
    FSI_TRY(fsi_operand_open(A, A->n, 1, 1));
    DENSE(A, mark, 0);
    FSI_TRY(fsi_basis_sketch(&q->basis, A, &how));
    FSI_TRY(fsi_basis_orthogonalize(&q->basis));
    FSI_TRY(look_at_triangle(q));
    FSI_TRY(write_q(q));
    FSI_TRY(write_r(q));
    if (pivots) memcpy(pivots, q->basis.pivots, (size_t)A->n * sizeof *pivots);
    DENSE(A, mark, 1);
    DENSE(A, wait, NULL);
    fsi_operand_progress(A, 1, "done");
    q->report.k = q->basis.k;
    q->report.reads = A->reads;
    q->report.seconds = A->dense->seconds(A->handle, 0, 1);
    return FS_OK;
}

fs_result fs_qr(fs_context *ctx, const fs_operand *A, const fs_qr_options *options, const fs_matrix *Q,
                const fs_matrix *R, int64_t *pivots, fs_qr_report *report)
{
    const fs_qr_options start = FS_QR_INIT;
    const fs_qr_report empty = FS_QR_REPORT_INIT;
    qr q = {.options = start, .Q = Q, .R = R, .report = empty};
    if (options) FSI_TRY(fs_struct_read("fs_qr", "options", options, &q.options, sizeof q.options));
    FSI_TRY(fsi_operand_init(&q.A, "fs_qr", ctx, A, q.options.ranks, q.options.progress));
    fs_result result = qr_check(&q, pivots, report);
    if (result == FS_OK) result = qr_agree(&q);
    if (result == FS_OK) result = qr_run(&q, pivots);
    fsi_basis_close(&q.basis);
    fsi_operand_free(&q.A, q.P);
    fsi_operand_free(&q.A, q.U);
    fsi_operand_free(&q.A, q.W);
    fsi_operand_free(&q.A, q.mask);
    fsi_rows_release(&q.A, q.panel);
    fsi_rows_release(&q.A, q.f);
    result = fsi_operand_close(&q.A, result);
    if (result == FS_OK && report) fs_struct_write(report, &q.report, sizeof q.report);
    return result;
}
