/* methods.c - the table of methods, and the run of a case. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solve.h"

const char *const solve_task_names[SOLVE_TASKS] = {"lstsq", "qr", "pivoted", "svd"};

#define LSTSQ 1u << SOLVE_LSTSQ
#define FACTORS 1u << SOLVE_QR | 1u << SOLVE_PIVOTED
#define SVD 1u << SOLVE_SVD

/* name, tasks, on a CPU, on a GPU, by a peer, run, parameter */
const solve_method solve_methods[] = {
    {"flashsketch", LSTSQ, 1, 1, 0, solve_ours_lstsq, FS_LSTSQ_AUTO},
    {"flashsketch-iterate", LSTSQ, 1, 1, 0, solve_ours_lstsq, FS_LSTSQ_ITERATE},
    {"flashsketch-normal", LSTSQ, 1, 1, 0, solve_ours_lstsq, FS_LSTSQ_NORMAL},
    {"flashsketch-1e-4", LSTSQ, 1, 1, 0, solve_ours_until, 1e-4},
    {"flashsketch-1e-8", LSTSQ, 1, 1, 0, solve_ours_until, 1e-8},
    {"flashsketch-1e-12", LSTSQ, 1, 1, 0, solve_ours_until, 1e-12},
    {"sketch-and-solve-2", LSTSQ, 1, 1, 0, solve_ours_sketch, 2},
    {"sketch-and-solve-4", LSTSQ, 1, 1, 0, solve_ours_sketch, 4},
    {"sketch-and-solve-16", LSTSQ, 1, 1, 0, solve_ours_sketch, 16},
    {"flashsketch", FACTORS, 1, 1, 0, solve_ours_qr, 0},
    {"flashsketch", SVD, 1, 1, 0, solve_ours_svd, 0},
    {"gelsd", LSTSQ, 1, 0, 1, solve_lapack_gelsd, 0},
    {"gelsy", LSTSQ, 1, 0, 1, solve_lapack_gelsy, 0},
    {"gels", LSTSQ, 1, 0, 1, solve_lapack_gels, 0},
    {"normal", LSTSQ, 1, 0, 1, solve_lapack_normal, 0},
    {"geqrf", 1u << SOLVE_QR, 1, 0, 1, solve_lapack_qr, 0},
    {"geqp3", 1u << SOLVE_PIVOTED, 1, 0, 1, solve_lapack_qr, 0},
    {"gesdd", SVD, 1, 0, 1, solve_lapack_svd, 0},
#ifdef FS_BENCH_CUDA
    {"gels", LSTSQ, 0, 1, 1, solve_cusolver_gels, 0},
    {"normal", LSTSQ, 0, 1, 1, solve_cusolver_normal, 0},
    {"geqrf", FACTORS, 0, 1, 1, solve_cusolver_qr, 0},
    {"gesvda", SVD, 0, 1, 1, solve_cusolver_svd, 0},
#endif
};
const int solve_method_count = sizeof solve_methods / sizeof solve_methods[0];

/* a case ----------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const solve_case *c, int64_t count) { return (size_t)count * fs_dtype_size(c->p->dtype); }
static int copy(const solve_case *c, void *to, const void *from, int64_t count)
{
    const size_t bytes = bytes_of(c, count);
    return c->m->copy(c->m, to, bytes, from, bytes, bytes, 1);
}

int solve_case_open(solve_case *c, nla_machine *m, const lapack *l, const solve_problem *p, enum solve_task task)
{
    const int64_t d = p->d, n = p->n, all = d * n;
    *c = (solve_case){.m = m, .l = l, .p = p, .task = task};
    void **const places[] = {&c->A, &c->b, &c->columns, &c->work, &c->right, &c->R, &c->values, &c->Q};
    const int64_t counts[] = {all, d, all, all, d, n * n, n, task == SOLVE_LSTSQ ? 0 : all};
    int bad = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !bad; i++)
        if (counts[i]) bad = !(*places[i] = m->alloc(bytes_of(c, counts[i])));
    c->x = malloc(sizeof *c->x * (size_t)n);
    c->s = malloc(sizeof *c->s * (size_t)n);
    c->pivots = malloc(sizeof *c->pivots * (size_t)n);
    if (bad || !c->x || !c->s || !c->pivots || copy(c, c->A, p->A, all) || copy(c, c->columns, p->columns, all) ||
        copy(c, c->b, p->b, d))
        return 1;
#ifdef FS_BENCH_CUDA
    if (m->g) return solve_cusolver_open(c);
#endif
    return 0;
}

void solve_case_close(solve_case *c)
{
#ifdef FS_BENCH_CUDA
    solve_cusolver_close(c);
#endif
    void *const places[] = {c->A, c->b, c->columns, c->work, c->right, c->Q, c->R, c->values};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (places[i]) c->m->release(places[i]);
    free(c->x);
    free(c->s);
    free(c->pivots);
    memset(c, 0, sizeof *c);
}

int solve_case_refresh(solve_case *c)
{
    return copy(c, c->work, c->columns, c->p->d * c->p->n) || copy(c, c->right, c->b, c->p->d);
}

int solve_case_read(solve_case *c)
{
#ifdef FS_BENCH_CUDA
    if (c->m->g) return solve_cusolver_read(c);
#endif
    bench_floor(c->A, (int64_t)bytes_of(c, c->p->d * c->p->n), c->right, 64, c->m->options->threads);
    return 0;
}

/* A matrix of the machine, rows x cols, its element (i, j) at i * down + j * across, as packed rows in double. */
static double *widened(solve_case *c, const void *from, int64_t rows, int64_t cols, int64_t down, int64_t across)
{
    double *wide = malloc(sizeof *wide * (size_t)(rows * cols));
    void *host = malloc(bytes_of(c, rows * cols));
    if (wide && host && !copy(c, host, from, rows * cols)) {
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++) {
                const int64_t at = i * down + j * across;
                wide[i * cols + j] = c->p->dtype == FS_F32 ? ((float *)host)[at] : ((double *)host)[at];
            }
    } else {
        fprintf(stderr, "fsbench: no memory for a result of %lld x %lld\n", (long long)rows, (long long)cols);
        free(wide);
        wide = NULL;
    }
    free(host);
    return wide;
}

/* diag(s) V' in place of V or V', n x n by columns. */
static void multiply_v(const solve_case *c, double *V)
{
    const int64_t n = c->p->n;
    for (int64_t j = 0; j < n && !c->V_turned; j++)
        for (int64_t i = 0; i < j; i++) {
            const double above = V[i + j * n];
            V[i + j * n] = V[j + i * n], V[j + i * n] = above;
        }
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) V[i + j * n] *= c->s[i];
}

int solve_case_errors(solve_case *c, solve_errors *errors)
{
    const solve_problem *p = c->p;
    const int64_t d = p->d, n = p->n;
    if (c->task == SOLVE_LSTSQ) return solve_errors_of_x(p, c->x, errors);
    double *Q = c->by_rows ? widened(c, c->Q, d, n, n, 1) : widened(c, c->Q_in_work ? c->work : c->Q, d, n, 1, d);
    double *R = widened(c, c->R, n, n, n, 1); /* columns stay columns */
    int bad = !Q || !R;
    if (!bad && c->task == SOLVE_SVD) multiply_v(c, R);
    for (int64_t j = 0; j < n && !bad && c->task != SOLVE_SVD; j++)
        for (int64_t i = j + 1; i < n; i++) R[i + j * n] = 0;
    if (!bad) bad = solve_errors_of_factors(c->l, p, Q, R, c->task == SOLVE_PIVOTED ? c->pivots : NULL, errors);
    if (!bad && c->task == SOLVE_SVD) errors->values = solve_error_of_values(p, c->s);
    free(Q);
    free(R);
    return bad;
}
