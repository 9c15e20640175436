/* pipeline.c - the time from A and b to x, sketch and solver together: the library's way and a textbook's. */
#include <stdlib.h>

#include "randnla.h"

static const size_t f32 = sizeof(float);

typedef struct pipeline {
    nla_machine *m;
    enum nla_task task;
    int64_t k, n;
    float *A, *b, *Y, *C, *X; /* packed */
    fs_sketch *S;
    /* The library's. */
    fs_workspace *w;
    fs_matrix view_A, view_b, view_X;
    /* The textbook's: S for A and for b, and the solver. */
    const baseline *sketch;
    void *of_A, *of_b, *solver;
} pipeline;

static int library(void *user)
{
    pipeline *p = user;
    if (bench_fs_failed(fs_task_sketch(p->w, p->S, &p->view_A, &p->view_b), "sketching A and b")) return 1;
    return p->task == TASK_RIDGE ? bench_fs_failed(fs_ridge(p->w, NLA_LAMBDA, &p->view_X, NULL), "sketch-and-ridge")
                                 : bench_fs_failed(fs_solve(p->w, 0.0, &p->view_X, NULL), "sketch-and-solve");
}

/* A and b are sketched apart, as the paper does. */
static int by_textbook(void *user)
{
    pipeline *p = user;
    if (p->sketch->run(p->of_A, p->A, p->Y) || p->sketch->run(p->of_b, p->b, p->C)) return 1;
    return p->task == TASK_RIDGE ? p->m->textbook->ridge(p->solver, p->Y, p->C, (float)NLA_LAMBDA, p->X)
                                 : p->m->textbook->solve(p->solver, p->Y, p->C, p->X);
}

static int open_library(pipeline *p, int64_t d)
{
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    shape.k = p->k, shape.n = p->n, shape.rhs = 1;
    p->view_A = nla_view(p->m, p->A, d, p->n, p->n);
    p->view_b = nla_view(p->m, p->b, d, 1, 1);
    p->view_X = nla_view(p->m, p->X, p->n, 1, 1);
    return bench_fs_failed(fs_workspace_create(&p->w, p->m->context, &shape), "making a workspace");
}

static int open_textbook(pipeline *p, const fs_spec *spec)
{
    baseline_problem problem = {p->m->g, p->m->context, *spec, p->S, p->n, 0, FS_F32, PRODUCT_F32};
    if (p->sketch->open(&p->of_A, &problem) || (p->sketch->prepare && p->sketch->prepare(p->of_A))) return 1;
    problem.n = 1;
    if (p->sketch->open(&p->of_b, &problem) || (p->sketch->prepare && p->sketch->prepare(p->of_b))) return 1;
    return p->m->textbook->open(&p->solver, p->m->g, p->k, p->n, 1);
}

int nla_measure_fit(nla_machine *m, const nla_method *method, const nla_matrix *a, int64_t k, enum nla_task task,
                    nla_times *times)
{
    const int64_t d = a->set.d, n = a->set.n;
    pipeline p = {.m = m, .task = task, .k = k, .n = n, .sketch = nla_baseline(m, method)};
    fs_spec spec;
    const fs_matrix b = nla_matrix_b(m, a);
    const size_t pitch = f32 * (size_t)a->wide, row = f32 * (size_t)n;
    if (nla_sketch(method, d, k, 0, &spec, &p.S)) return bench_fs_failed(FS_EINVAL, "making a sketch");
    p.A = m->alloc(row * (size_t)d), p.b = m->alloc(f32 * (size_t)d), p.Y = m->alloc(row * (size_t)k);
    p.C = m->alloc(f32 * (size_t)k), p.X = m->alloc(row);
    /* The right-hand side with noise, as in practice. */
    int bad = !p.A || !p.b || !p.Y || !p.C || !p.X || m->copy(m, p.A, row, a->W, pitch, row, (size_t)d) ||
              m->copy(m, p.b, f32, (float *)b.data + 1, pitch, f32, (size_t)d);
    if (!bad) bad = method->textbook ? open_textbook(&p, &spec) : open_library(&p, d);
    if (!bad) bad = m->measure_call(m, method->textbook ? by_textbook : library, &p, times);
    fs_workspace_destroy(p.w);
    m->textbook->close(p.solver);
    p.sketch->close(p.of_A);
    p.sketch->close(p.of_b);
    fs_sketch_destroy(p.S);
    m->release(p.A);
    m->release(p.b);
    m->release(p.Y);
    m->release(p.C);
    m->release(p.X);
    return bad;
}
