/* ours.c - this library's solvers on a case. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solve.h"

static fs_matrix in_rows(const solve_case *c, void *data, int64_t rows, int64_t cols)
{
    fs_matrix view = fs_row_major(data, rows, cols, c->p->dtype);
    view.memory = c->m->memory;
    return view;
}

static int lstsq(solve_case *c, const fs_lstsq_options *options)
{
    static const char *const names[] = {"auto", "iterate", "normal", "direct"};
    const int64_t d = c->p->d, n = c->p->n;
    const fs_matrix A = in_rows(c, c->A, d, n), b = in_rows(c, c->b, d, 1), x = fs_row_major(c->x, n, 1, FS_F64);
    fs_operand operand = FS_OPERAND_INIT;
    fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
    operand.dense = &A;
    if (bench_fs_failed(fs_lstsq(c->m->context, &operand, &b, options, &x, &report), "solving least squares")) return 1;
    c->iterations = report.iterations, c->reads = report.reads, c->k = report.k;
    snprintf(c->note, sizeof c->note, "%s%s", names[report.method], report.converged ? "" : ", tolerance not reached");
    return 0;
}
int solve_ours_lstsq(solve_case *c, double method)
{
    fs_lstsq_options options = FS_LSTSQ_INIT;
    options.method = (fs_lstsq_method)method;
    return lstsq(c, &options);
}
int solve_ours_until(solve_case *c, double tolerance)
{
    fs_lstsq_options options = FS_LSTSQ_INIT;
    options.method = FS_LSTSQ_ITERATE;
    options.tolerance = tolerance;
    return lstsq(c, &options);
}

int solve_ours_sketch(solve_case *c, double rows)
{
    const int64_t d = c->p->d, n = c->p->n;
    const fs_matrix A = in_rows(c, c->A, d, n), b = in_rows(c, c->b, d, 1), x = fs_row_major(c->x, n, 1, FS_F64);
    fs_spec spec = FS_SPEC_INIT;
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    fs_sketch *S = NULL;
    fs_workspace *w = NULL;
    spec.d = d, spec.k = shape.k = c->k = (int64_t)(rows * (double)n);
    shape.n = n, shape.rhs = 1, shape.dtype = c->p->dtype;
    if (spec.k > d) return SOLVE_NO_ANSWER;
    const int bad = bench_fs_failed(fs_sketch_create(&S, &spec), "making a sketch") ||
                    bench_fs_failed(fs_workspace_create(&w, c->m->context, &shape), "making a workspace") ||
                    bench_fs_failed(fs_task_sketch(w, S, &A, &b), "sketching") ||
                    bench_fs_failed(fs_solve(w, 0.0, &x, NULL), "sketch-and-solve");
    fs_workspace_destroy(w);
    fs_sketch_destroy(S);
    c->reads = 1;
    return bad;
}

int solve_ours_qr(solve_case *c, double unused)
{
    const int64_t d = c->p->d, n = c->p->n;
    const fs_matrix A = in_rows(c, c->A, d, n), Q = in_rows(c, c->Q, d, n);
    fs_matrix R = fs_col_major(c->R, n, n, c->p->dtype);
    fs_operand operand = FS_OPERAND_INIT;
    fs_qr_options options = FS_QR_INIT;
    fs_qr_report report = FS_QR_REPORT_INIT;
    (void)unused;
    operand.dense = &A;
    options.pivot = c->task == SOLVE_PIVOTED;
    R.memory = c->m->memory;
    c->by_rows = 1, c->Q_in_work = 0;
    if (bench_fs_failed(fs_qr(c->m->context, &operand, &options, &Q, &R, options.pivot ? c->pivots : NULL, &report),
                        "making a QR factorization"))
        return 1;
    c->reads = report.reads, c->k = report.k;
    snprintf(c->note, sizeof c->note, "rank %" PRId64, report.rank);
    return 0;
}

int solve_ours_svd(solve_case *c, double unused)
{
    const int64_t d = c->p->d, n = c->p->n;
    const fs_matrix A = in_rows(c, c->A, d, n), U = in_rows(c, c->Q, d, n);
    fs_matrix V = fs_col_major(c->R, n, n, c->p->dtype);
    fs_operand operand = FS_OPERAND_INIT;
    fs_svd_report report = FS_SVD_REPORT_INIT;
    (void)unused;
    operand.dense = &A;
    V.memory = c->m->memory;
    c->by_rows = 1, c->Q_in_work = 0, c->V_turned = 0;
    if (bench_fs_failed(fs_svd(c->m->context, &operand, NULL, &U, c->s, &V, &report), "making singular values"))
        return 1;
    c->reads = report.reads;
    return 0;
}
