/* matrix.c - W = [A  Q  b  b'] of a data set, and what is exact about it, by the library's own tasks.
 *
 * With A itself in a workspace of k = d rows, fs_gram gives A'A and fs_solve the least-squares solution.  Q is
 * computed by fs_ose with an isometric S: an SRHT with all its rows, whose adjoint restores Q. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "randnla.h"

static const size_t f32 = sizeof(float);

fs_matrix nla_matrix_A(const nla_machine *m, const nla_matrix *a)
{
    return nla_view(m, a->W, a->set.d, a->set.n, a->wide);
}
fs_matrix nla_matrix_b(const nla_machine *m, const nla_matrix *a)
{
    return nla_view(m, a->W + a->wide - NLA_PAD, a->set.d, NLA_RHS, a->wide);
}

/* A goes from packed rows to W; right-hand sides are made on the host. */
static int fill(nla_machine *m, nla_matrix *a, float *packed)
{
    const int64_t d = a->set.d, n = a->set.n;
    float *x = malloc(f32 * (size_t)n), *b = malloc(f32 * (size_t)(d * NLA_PAD)), *one = malloc(f32 * (size_t)d);
    double *Ax = malloc(sizeof *Ax * (size_t)d);
    /* b is copied at once: copies from host memory row by row are slow. */
    float *there = m->alloc(f32 * (size_t)(d * NLA_PAD));
    int bad = !x || !b || !one || !Ax || !there;
    if (bad) fprintf(stderr, "fsbench: no memory for right-hand sides\n");
    if (!bad) data_solution(&a->set, x);
    if (!bad) bad = m->make(m, &a->set, packed) || m->times(m, packed, d, n, x, Ax);
    if (!bad) {
        memset(b, 0, f32 * (size_t)(d * NLA_PAD));
        for (int side = 0; side < NLA_RHS; side++) {
            double squares = 0;
            data_right_side(&a->set, Ax, side ? NLA_NOISE : 0, one);
            for (int64_t i = 0; i < d; i++) b[i * NLA_PAD + side] = one[i], squares += (double)one[i] * one[i];
            a->b_norm[side] = sqrt(squares);
        }
        const size_t pitch = f32 * (size_t)a->wide, sides = f32 * NLA_PAD, whole = sides * (size_t)d;
        bad = m->copy(m, a->W, pitch, packed, f32 * (size_t)n, f32 * (size_t)n, (size_t)d) ||
              m->copy(m, there, whole, b, whole, whole, 1) ||
              m->copy(m, a->W + a->wide - NLA_PAD, pitch, there, sides, sides, (size_t)d);
    }
    m->release(there);
    free(x);
    free(b);
    free(one);
    free(Ax);
    return bad;
}

/* A'A, and the smallest residuals. */
static int make_exact(nla_machine *m, nla_matrix *a, float *packed, unsigned tasks)
{
    const int64_t d = a->set.d, n = a->set.n;
    const int fits = (tasks & (1u << TASK_RIDGE | 1u << TASK_SOLVE)) != 0;
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    fs_workspace *w = NULL;
    fs_matrix Y, C, A = nla_matrix_A(m, a), B = nla_matrix_b(m, a);
    fs_matrix G = fs_row_major(a->gram, n, n, FS_F64);
    shape.k = d, shape.n = n, shape.rhs = NLA_RHS;
    float *X = m->alloc(f32 * (size_t)(n * NLA_RHS));
    int bad = !X || bench_fs_failed(fs_workspace_create(&w, m->context, &shape), "making room for the exact answers") ||
              bench_fs_failed(fs_workspace_views(w, &Y, &C), "looking into a workspace") ||
              m->copy(m, Y.data, f32 * (size_t)n, packed, f32 * (size_t)n, f32 * (size_t)n, (size_t)d) ||
              m->copy(m, C.data, f32 * NLA_RHS, B.data, f32 * (size_t)a->wide, f32 * NLA_RHS, (size_t)d) ||
              bench_fs_failed(fs_gram(w, NULL, &G, NULL), "making A'A");
    if (!bad && fits) {
        fs_matrix x = fs_col_major(X, n, NLA_RHS, FS_F32);
        x.memory = m->memory;
        bad = bench_fs_failed(fs_solve(w, 0.0, &x, NULL), "solving the least-squares problem") ||
              bench_fs_failed(fs_residual(w, &A, &B, &x, a->best), "making residuals");
    }
    fs_workspace_destroy(w);
    m->release(X);
    double squares = 0;
    for (int64_t i = 0; i < n * n && !bad; i++) squares += a->gram[i] * a->gram[i];
    a->gram_norm = sqrt(squares);
    return bad;
}

/* Q into W.  Where A's columns are dependent there is no such Q, and the task ose has no answer. */
static int make_basis(nla_machine *m, nla_matrix *a)
{
    const int64_t d = a->set.d, r = a->basis;
    int64_t rows = 1;
    while (rows < d) rows *= 2;
    fs_spec spec = FS_SPEC_INIT;
    fs_sketch *S = NULL;
    fs_workspace *w = NULL;
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    fs_ose_report report = FS_OSE_REPORT_INIT;
    fs_matrix Y, A = nla_view(m, a->W, d, r, a->wide), Q = nla_view(m, a->W + a->set.n, d, r, a->wide);
    spec.family = FS_SRHT, spec.d = d, spec.k = rows;
    shape.k = rows, shape.n = r, shape.basis = d;
    int bad = bench_fs_failed(fs_sketch_create(&S, &spec), "making an isometry") ||
              bench_fs_failed(fs_workspace_create(&w, m->context, &shape), "making room for a basis") ||
              bench_fs_failed(fs_workspace_views(w, &Y, NULL), "looking into a workspace");
    const fs_result made = bad ? FS_OK : fs_ose(w, S, &A, 0, &report);
    if (made == FS_EINVAL) {
        fprintf(stderr, "fsbench: %s has no basis for the task ose: %s\n", a->set.source->name, fs_error_message());
        a->basis = 0;
    } else if (!bad)
        bad = bench_fs_failed(made, "making a basis") ||
              bench_fs_failed(fs_apply_adjoint(m->context, S, 0, 1.0, &Y, 0.0, &Q), "taking the isometry back");
    fs_workspace_destroy(w);
    fs_sketch_destroy(S);
    return bad;
}

int nla_matrix_make(nla_machine *m, const data_set *set, unsigned tasks, nla_matrix *a)
{
    const int64_t d = set->d, n = set->n, r = n < NLA_BASIS ? n : NLA_BASIS;
    *a = (nla_matrix){.set = *set, .basis = r, .wide = n + r + NLA_PAD};
    float *packed = m->alloc(f32 * (size_t)(d * n));
    a->W = m->alloc(f32 * (size_t)(d * a->wide));
    a->gram = malloc(sizeof *a->gram * (size_t)(n * n));
    if (!a->gram) fprintf(stderr, "fsbench: no memory for a Gram matrix of %lld columns\n", (long long)n);
    int bad = !packed || !a->W || !a->gram || fill(m, a, packed);
    if (!bad) bad = make_exact(m, a, packed, tasks);
    m->release(packed);
    if (!bad && tasks & 1u << TASK_OSE) bad = make_basis(m, a);
    else a->basis = 0;
    return bad;
}

void nla_matrix_free(nla_machine *m, nla_matrix *a)
{
    m->release(a->W);
    free(a->gram);
    memset(a, 0, sizeof *a);
}
