/* problem.c - matrices of known singular values, and right-hand sides of a known solution. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solve.h"

/* |b - A x*| over |A x*| */
#define NOISE 0.1

static const double one = 1, zero = 0, minus_one = -1;
static const int step = 1;

static double norm_of(int64_t count, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

/* Independent, uniform from -1 to 1. */
static double *uniform(int64_t count, uint64_t seed)
{
    double *x = malloc(sizeof *x * (size_t)count);
    float *single = malloc(sizeof *single * (size_t)count);
    if (x && single) {
        bench_fill(single, count, seed);
        for (int64_t i = 0; i < count; i++) x[i] = single[i];
    } else {
        fprintf(stderr, "fsbench: no memory for %lld random numbers\n", (long long)count);
        free(x);
        x = NULL;
    }
    free(single);
    return x;
}

/* The columns of U, d x n in packed rows, made orthonormal: Cholesky QR twice, for U is random and well conditioned. */
static int orthonormalize(const lapack_functions *l, int d, int n, double *U)
{
    double *G = malloc(sizeof *G * (size_t)n * (size_t)n);
    int info = 0;
    if (!G) return 1;
    for (int round = 0; round < 2 && !info; round++) {
        l->syrk("L", "N", &n, &d, &one, U, &n, &zero, G, &n);
        l->potrf("L", &n, G, &n, &info);
        if (!info) l->trsm("L", "L", "N", "N", &n, &d, &one, G, &n, U, &n);
    }
    free(G);
    if (info) fprintf(stderr, "fsbench: a random %d x %d matrix has no Cholesky factor\n", d, n);
    return info != 0;
}

/* Q of a square matrix, by columns. */
static int make_orthogonal(const lapack_functions *l, int n, double *V)
{
    const int room = 64 * n;
    double *work = malloc(sizeof *work * (size_t)(room + n)), *tau = work + room;
    int info = 1;
    if (work) l->geqrf(&n, &n, V, &n, tau, work, &room, &info);
    if (!info) l->orgqr(&n, &n, &n, V, &n, tau, work, &room, &info);
    free(work);
    return info != 0;
}

/* e becomes a unit vector without a part in U's range. */
static int take_away(const lapack_functions *l, int d, int n, const double *U, double *e)
{
    double *part = malloc(sizeof *part * (size_t)n);
    if (!part) return 1;
    for (int round = 0; round < 2; round++) {
        l->gemv("N", &n, &d, &one, U, &n, e, &step, &zero, part, &step);
        l->gemv("T", &n, &d, &minus_one, U, &n, part, &step, &one, e, &step);
        const double length = norm_of(d, e);
        for (int i = 0; i < d; i++) e[i] /= length;
    }
    free(part);
    return 0;
}

int solve_base_make(const lapack *l, int64_t d, int64_t n, solve_base *base)
{
    *base = (solve_base){d, n, uniform(d * n, 1), uniform(n * n, 2), uniform(d, 3), uniform(n, 4)};
    if (!base->U || !base->V || !base->e || !base->y) return 1;
    const double length = norm_of(n, base->y);
    for (int64_t i = 0; i < n; i++) base->y[i] /= length;
    return orthonormalize(&l->f64, (int)d, (int)n, base->U) || make_orthogonal(&l->f64, (int)n, base->V) ||
           take_away(&l->f64, (int)d, (int)n, base->U, base->e);
}
void solve_base_free(solve_base *base)
{
    free(base->U);
    free(base->V);
    free(base->e);
    free(base->y);
    memset(base, 0, sizeof *base);
}

/* A in double, packed rows; b into a new array. */
static double *make_in_double(const lapack_functions *l, solve_problem *p, double *A)
{
    const solve_base *base = p->base;
    const int d = (int)p->d, n = (int)p->n;
    double *Vs = malloc(sizeof *Vs * (size_t)n * (size_t)n), *b = malloc(sizeof *b * (size_t)d),
           *sy = malloc(sizeof *sy * (size_t)n);
    if (Vs && b && sy) {
        for (int j = 0; j < n; j++) {
            p->s[j] = n > 1 ? pow(p->condition, -(double)j / (n - 1)) : 1;
            sy[j] = p->s[j] * base->y[j];
            for (int i = 0; i < n; i++) Vs[i + (int64_t)j * n] = base->V[i + (int64_t)j * n] * p->s[j];
        }
        l->gemm("N", "N", &n, &d, &n, &one, Vs, &n, base->U, &n, &zero, A, &n);
        l->gemv("N", &n, &n, &one, base->V, &n, base->y, &step, &zero, p->x, &step);
        l->gemv("T", &n, &d, &one, base->U, &n, sy, &step, &zero, b, &step);
        const double noise = NOISE * norm_of(n, sy);
        for (int i = 0; i < d; i++) b[i] += noise * base->e[i];
    } else {
        free(b);
        b = NULL;
    }
    free(Vs);
    free(sy);
    return b;
}

/* x* of A and b as they were rounded to f32: LAPACK's in f64. */
static int solve_exactly(const lapack_functions *l, solve_problem *p)
{
    const int d = (int)p->d, n = (int)p->n, rhs = 1, room = 64 * (d + n);
    const size_t count = (size_t)d * (size_t)n;
    double *A = malloc(sizeof *A * (count + (size_t)d + (size_t)room)), *b = A + count, *work = b + d;
    int info = 1;
    if (A) {
        for (size_t i = 0; i < count; i++) A[i] = ((const float *)p->A)[i];
        for (int i = 0; i < d; i++) b[i] = ((const float *)p->b)[i];
        l->gels("T", &n, &d, &rhs, A, &n, b, &d, work, &room, &info);
        memcpy(p->x, b, sizeof *b * (size_t)n);
    }
    free(A);
    return info != 0;
}

/* A and b in their type, |A|_F and |b|. */
static void round_to_type(solve_problem *p, const double *A, const double *b)
{
    const int64_t d = p->d, n = p->n;
    double sum = 0, b_sum = 0;
    for (int64_t i = 0; i < n; i++) sum += p->s[i] * p->s[i];
    for (int64_t i = 0; i < d; i++) b_sum += b[i] * b[i];
    p->norm = sqrt(sum), p->b_norm = sqrt(b_sum);
    if (p->dtype == FS_F32) {
        for (int64_t i = 0; i < d * n; i++) ((float *)p->A)[i] = (float)A[i];
        for (int64_t i = 0; i < d; i++) ((float *)p->b)[i] = (float)b[i];
    } else {
        memcpy(p->A, A, sizeof *A * (size_t)(d * n));
        memcpy(p->b, b, sizeof *b * (size_t)d);
    }
#pragma omp parallel for schedule(static)
    for (int64_t i0 = 0; i0 < d; i0 += 64)
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = i0; i < d && i < i0 + 64; i++)
                if (p->dtype == FS_F32) ((float *)p->columns)[i + j * d] = (float)A[i * n + j];
                else ((double *)p->columns)[i + j * d] = A[i * n + j];
}

int solve_problem_make(const lapack *l, const solve_base *base, fs_dtype dtype, double condition, solve_problem *p)
{
    const int64_t d = base->d, n = base->n;
    const size_t element = fs_dtype_size(dtype);
    *p = (solve_problem){.d = d, .n = n, .dtype = dtype, .condition = condition, .base = base};
    double *A = malloc(sizeof *A * (size_t)(d * n));
    p->A = malloc(element * (size_t)(d * n));
    p->columns = malloc(element * (size_t)(d * n));
    p->b = malloc(element * (size_t)d);
    p->x = malloc(sizeof *p->x * (size_t)n);
    p->s = malloc(sizeof *p->s * (size_t)n);
    double *b = A && p->A && p->columns && p->b && p->x && p->s ? make_in_double(&l->f64, p, A) : NULL;
    long double *residual = malloc(sizeof *residual * (size_t)d);
    int bad = !b || !residual;
    if (bad) fprintf(stderr, "fsbench: no memory for a problem of %lld x %lld\n", (long long)d, (long long)n);
    if (!bad) round_to_type(p, A, b);
    free(A);
    if (!bad && dtype == FS_F32) bad = solve_exactly(&l->f64, p);
    if (!bad) bad = solve_residual(p, p->x, residual, NULL);
    long double best = 0;
    for (int64_t i = 0; i < d && !bad; i++) best += residual[i] * residual[i];
    p->best = (double)sqrtl(best);
    free(residual);
    free(b);
    return bad;
}

void solve_problem_free(solve_problem *p)
{
    free(p->A);
    free(p->columns);
    free(p->b);
    free(p->x);
    free(p->s);
    memset(p, 0, sizeof *p);
}
