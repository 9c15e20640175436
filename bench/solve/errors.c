/* errors.c - the errors of a solution or a factorization. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solve.h"

static double element(const solve_problem *p, const void *of, int64_t i)
{
    return p->dtype == FS_F32 ? ((const float *)of)[i] : ((const double *)of)[i];
}

int solve_residual(const solve_problem *p, const double *x, long double *residual, long double *gradient)
{
    const int64_t d = p->d, n = p->n;
    int bad = 0;
    if (gradient) memset(gradient, 0, sizeof *gradient * (size_t)n);
#pragma omp parallel
    {
        long double *part = calloc((size_t)n, sizeof *part);
        if (!part)
#pragma omp atomic write
            bad = 1;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < d; i++) {
            long double sum = element(p, p->b, i);
            for (int64_t j = 0; j < n; j++) sum -= (long double)element(p, p->A, i * n + j) * x[j];
            residual[i] = sum;
            for (int64_t j = 0; j < n && gradient && part; j++) part[j] += element(p, p->A, i * n + j) * sum;
        }
        if (gradient && part)
#pragma omp critical
            for (int64_t j = 0; j < n; j++) gradient[j] += part[j];
        free(part);
    }
    return bad;
}

int solve_errors_of_x(const solve_problem *p, const double *x, solve_errors *errors)
{
    const int64_t d = p->d, n = p->n;
    long double *residual = malloc(sizeof *residual * (size_t)(d + n)), *gradient = residual + d;
    int bad = !residual || solve_residual(p, x, residual, gradient);
    *errors = (solve_errors){NAN, NAN, NAN, NAN, NAN, NAN};
    if (!bad) {
        long double r2 = 0, x2 = 0, gap2 = 0, star2 = 0, sum = 0;
        for (int64_t i = 0; i < d; i++) r2 += residual[i] * residual[i];
        for (int64_t j = 0; j < n; j++) {
            const long double gap = (long double)x[j] - p->x[j];
            x2 += (long double)x[j] * x[j], gap2 += gap * gap, star2 += (long double)p->x[j] * p->x[j];
        }
        const long double theta = p->norm / p->b_norm, h2 = 1 + theta * theta * x2, shift2 = theta * theta * r2 / h2;
        for (int64_t j = 0; j < n; j++) { /* coordinate j of V'A'r */
            long double along = 0;
            for (int64_t i = 0; i < n; i++) along += p->base->V[i + j * n] * gradient[i];
            sum += along * along / ((long double)p->s[j] * p->s[j] + shift2);
        }
        errors->backward = (double)(theta * sqrtl(sum / h2) / p->norm);
        errors->forward = (double)sqrtl(gap2 / star2);
        errors->excess = (double)(r2 / ((long double)p->best * p->best) - 1);
    }
    free(residual);
    return bad;
}

int solve_errors_of_factors(const lapack *l, const solve_problem *p, double *Q, const double *R, const int64_t *pivots,
                            solve_errors *errors)
{
    const double one = 1, zero = 0;
    const int d = (int)p->d, n = (int)p->n;
    double *G = malloc(sizeof *G * (size_t)n * (size_t)n), *P = malloc(sizeof *P * (size_t)d * (size_t)n);
    *errors = (solve_errors){NAN, NAN, NAN, NAN, NAN, NAN};
    if (!G || !P) {
        free(G);
        free(P);
        fprintf(stderr, "fsbench: no memory for the errors of a factorization of %d x %d\n", d, n);
        return 1;
    }
    l->f64.syrk("L", "N", &n, &d, &one, Q, &n, &zero, G, &n);
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) {
            const double gap = G[i + j * n] - (i == j);
            sum += (i == j ? 1 : 2) * gap * gap;
        }
    errors->orthogonality = sqrt(sum);
    l->f64.gemm("T", "N", &n, &d, &n, &one, R, &n, Q, &n, &zero, P, &n); /* (Q R)' */
    sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++) {
            const double gap = P[i * n + j] - element(p, p->A, i * n + (pivots ? pivots[j] : j));
            sum += gap * gap;
        }
    errors->product = sqrt(sum) / p->norm;
    free(G);
    free(P);
    return 0;
}

double solve_error_of_values(const solve_problem *p, const double *s)
{
    double largest = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double gap = fabs(s[i] - p->s[i]) / p->s[0];
        if (!(gap <= largest)) largest = gap;
    }
    return largest;
}
