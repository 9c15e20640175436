/* peers_cpu.c - LAPACK on a case, with OpenBLAS. */
#include <stdlib.h>
#include <string.h>

#include "solve.h"

/* A number of A's type. */
typedef union scalar {
    float f32;
    double f64;
} scalar;
static scalar scalar_of(const solve_case *c, double value)
{
    scalar s;
    if (c->p->dtype == FS_F32) s.f32 = (float)value;
    else s.f64 = value;
    return s;
}
static double number(const solve_case *c, const void *of, int64_t i)
{
    return c->p->dtype == FS_F32 ? ((const float *)of)[i] : ((const double *)of)[i];
}

/* A case as LAPACK takes it. */
typedef struct call {
    const lapack_functions *l;
    int d, n, rhs, room, info, rank;
    size_t element;
    char *work, *tau; /* room and 4 n numbers */
    int *whole;       /* integers: gelsd's and gesdd's */
} call;

/* room and whole: numbers of work, reals and integers. */
static int call_open(solve_case *c, int64_t room, int64_t whole, call *k)
{
    const int64_t n = c->p->n;
    *k = (call){c->p->dtype == FS_F32 ? &c->l->f32 : &c->l->f64,
                (int)c->p->d,
                (int)n,
                1,
                (int)room,
                1,
                0,
                fs_dtype_size(c->p->dtype),
                NULL,
                NULL,
                NULL};
    k->work = malloc(k->element * (size_t)(room + 4 * n));
    k->tau = k->work + k->element * (size_t)room;
    k->whole = calloc((size_t)whole, sizeof *k->whole);
    if (k->work && k->whole) return 0;
    fprintf(stderr, "fsbench: no memory for LAPACK's %lld numbers of work\n", (long long)room);
    return 1;
}
/* Enough for a block of 128 columns, which is more than OpenBLAS takes. */
static int64_t blocked_room(const solve_case *c) { return 256 * c->p->n + 4096; }
static int call_close(solve_case *c, call *k, int failed)
{
    c->k = c->iterations = c->reads = 0;
    c->note[0] = 0;
    c->by_rows = 0, c->Q_in_work = 1, c->V_turned = 1;
    free(k->work);
    free(k->whole);
    return failed ? 1 : k->info ? SOLVE_NO_ANSWER : 0;
}
static void take_x(solve_case *c, const void *from)
{
    for (int64_t j = 0; j < c->p->n; j++) c->x[j] = number(c, from, j);
}

int solve_lapack_gelsd(solve_case *c, double unused)
{
    call k;
    const scalar rcond = scalar_of(c, -1); /* the rounding unit */
    const int query = -1;
    scalar room = {0};
    int whole = 0;
    (void)unused;
    int failed = call_open(c, 1, 1, &k);
    if (!failed)
        k.l->gelsd(&k.d, &k.n, &k.rhs, c->work, &k.d, c->right, &k.d, k.tau, &rcond, &k.rank, &room, &query, &whole,
                   &k.info);
    call_close(c, &k, failed);
    failed = failed || call_open(c, (int64_t)number(c, &room, 0), whole, &k);
    if (!failed) {
        k.l->gelsd(&k.d, &k.n, &k.rhs, c->work, &k.d, c->right, &k.d, k.tau, &rcond, &k.rank, k.work, &k.room, k.whole,
                   &k.info);
        take_x(c, c->right);
    }
    return call_close(c, &k, failed);
}

int solve_lapack_gelsy(solve_case *c, double unused)
{
    call k;
    const scalar rcond = scalar_of(c, c->p->dtype == FS_F32 ? 0x1p-23 : 0x1p-52);
    (void)unused;
    const int failed = call_open(c, blocked_room(c), c->p->n, &k);
    if (!failed) {
        k.l->gelsy(&k.d, &k.n, &k.rhs, c->work, &k.d, c->right, &k.d, k.whole, &rcond, &k.rank, k.work, &k.room,
                   &k.info);
        take_x(c, c->right);
    }
    return call_close(c, &k, failed);
}

int solve_lapack_gels(solve_case *c, double unused)
{
    call k;
    (void)unused;
    const int failed = call_open(c, blocked_room(c), c->p->n, &k);
    if (!failed) {
        k.l->gels("N", &k.d, &k.n, &k.rhs, c->work, &k.d, c->right, &k.d, k.work, &k.room, &k.info);
        take_x(c, c->right);
    }
    return call_close(c, &k, failed);
}

/* A'A x = A'b by Cholesky's factor; A and b stay. */
int solve_lapack_normal(solve_case *c, double unused)
{
    call k;
    const scalar one = scalar_of(c, 1), zero = scalar_of(c, 0);
    const int step = 1;
    (void)unused;
    const int failed = call_open(c, c->p->n * c->p->n, 1, &k);
    if (!failed) {
        k.l->syrk("L", "T", &k.n, &k.d, &one, c->work, &k.d, &zero, k.work, &k.n);
        k.l->gemv("T", &k.d, &k.n, &one, c->work, &k.d, c->right, &step, &zero, k.tau, &step);
        k.l->potrf("L", &k.n, k.work, &k.n, &k.info);
        if (!k.info) k.l->potrs("L", &k.n, &k.rhs, k.work, &k.n, k.tau, &k.n, &k.info);
        take_x(c, k.tau);
    }
    return call_close(c, &k, failed);
}

/* R is taken from the upper triangle before Q takes its place. */
static void take_r(solve_case *c, size_t element)
{
    const size_t d = (size_t)c->p->d, n = (size_t)c->p->n;
    for (size_t j = 0; j < n; j++)
        memcpy((char *)c->R + j * n * element, (char *)c->work + j * d * element, n * element);
}

int solve_lapack_qr(solve_case *c, double unused)
{
    call k;
    (void)unused;
    const int failed = call_open(c, blocked_room(c), c->p->n, &k);
    if (!failed) {
        if (c->task == SOLVE_PIVOTED) k.l->geqp3(&k.d, &k.n, c->work, &k.d, k.whole, k.tau, k.work, &k.room, &k.info);
        else k.l->geqrf(&k.d, &k.n, c->work, &k.d, k.tau, k.work, &k.room, &k.info);
        take_r(c, k.element);
        if (!k.info) k.l->orgqr(&k.d, &k.n, &k.n, c->work, &k.d, k.tau, k.work, &k.room, &k.info);
        for (int64_t j = 0; j < c->p->n; j++) c->pivots[j] = k.whole[j] - 1;
    }
    return call_close(c, &k, failed);
}

int solve_lapack_svd(solve_case *c, double unused)
{
    call k;
    (void)unused;
    const int failed = call_open(c, 8 * c->p->n * c->p->n + blocked_room(c), 8 * c->p->n, &k);
    if (!failed) {
        k.l->gesdd("S", &k.d, &k.n, c->work, &k.d, k.tau, c->Q, &k.d, c->R, &k.n, k.work, &k.room, k.whole, &k.info);
        for (int64_t j = 0; j < c->p->n; j++) c->s[j] = number(c, k.tau, j);
    }
    const int code = call_close(c, &k, failed);
    c->Q_in_work = 0;
    return code;
}
