/* linalg.c - the linear algebra of tasks (core/dense.h) on a GPU, function by function: divisions by triangles, column
 * pivots, singular values and gradients against what they must satisfy, in plain loops on the host.
 *
 * Sizes are those at which a GPU's own code changes: blocks of 64, registers of pivots, rounds of eigenvectors, and the
 * sizes that are left to cuBLAS, cuSOLVER and the host. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "core/context.h"
#include "device.h"

static const double UNIT = 0x1p-53;

typedef struct algebra {
    const lane *l;
    const fsi_dense *dense;
    void *handle;
} algebra;

static void solved(fs_result result, const char *what)
{
    if (result == FS_EBACKEND && strstr(fs_error_message(), "could not be loaded")) skip_because(fs_error_message());
    if (result != FS_OK) fail_msg("%s: %s", what, fs_error_message());
}

static algebra algebra_open(const lane *l, int64_t n)
{
    const fsi_host host = {fs_fail, l->gpu->allocator};
    algebra a = {l, l->gpu->backend->dense, NULL};
    solved(a.dense->open(&a.handle, l->gpu->state, &host, n, n, n), "open");
    return a;
}

/* A copy of numbers in the backend's memory, and back. */
static double *give(const algebra *a, const double *x, int64_t count)
{
    void *there = NULL;
    solved(a->dense->alloc(a->handle, (size_t)count * sizeof *x, &there), "alloc");
    solved(a->dense->send(a->handle, x, (size_t)count * sizeof *x, there), "send");
    return there;
}
static void take(const algebra *a, double *there, double *x, int64_t count)
{
    solved(a->dense->fetch(a->handle, there, (size_t)count * sizeof *x, x), "fetch");
    a->dense->release(a->handle, there);
}

/* divisions -------------------------------------------------------------------------------------------------- */

typedef struct division {
    int64_t order, wide;
    double slope; /* rows of L shrink to 1 / slope */
    double small; /* the diagonal entry in the middle: 1 is none */
} division;
static const division divisions[] = {
    {1, 1500, 1, 1},        {63, 1300, 1, 1},      {64, 1024, 1e10, 1},    {65, 2000, 1, 1e-5},
    {130, 1100, 1e8, 1e-7}, {130, 1100, 1, 1e-12}, {200, 1400, 1e14, 1},   {200, 300, 1, 1},
    {333, 1200, 1e5, 1e-3}, {64, 9, 1, 1},         {577, 600, 1e12, 1e-9},
};

/* |op(L) X - B| (left) or |X op(L) - B| is at most a few roundings of |op(L)| |X|, element by element. */
static void check_division(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const division *d = &divisions[number / 4];
    const int left = number & 1, transposed = number >> 1 & 1;
    const int64_t n = d->order, m = left ? n : d->wide, c = left ? d->wide : n, ldl = n + 3, ldb = m + 2;
    double *L = room(ldl * n, 8), *B = room(ldb * c, 8), *X = room(ldb * c, 8), worst = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < ldl; i++) {
            const double scale = pow(d->slope, n > 1 ? -(double)i / (double)(n - 1) : 0);
            L[i + j * ldl] = i >= n || i < j ? 1e200
                                             : scale * (i == j ? 1 : 0.3 * normal_at(1, i + j * n) / sqrt((double)n));
        }
    L[n / 2 + n / 2 * ldl] *= d->small;
    for (int64_t e = 0; e < ldb * c; e++) B[e] = normal_at(2, e);
    algebra a = algebra_open(l, n);
    double *L_there = give(&a, L, ldl * n), *B_there = give(&a, B, ldb * c);
    solved(a.dense->trsm(a.handle, left, transposed, m, c, L_there, ldl, B_there, ldb), "trsm");
    take(&a, B_there, X, ldb * c);
    a.dense->release(a.handle, L_there);
    a.dense->close(a.handle);
    for (int64_t j = 0; j < c; j++)
        for (int64_t i = 0; i < m; i++) {
            const int64_t at = left ? i : j;
            double rest = -B[i + j * ldb], size = fabs(rest);
            for (int64_t k = 0; k < n; k++) {
                const int64_t row = left == transposed ? k : at, column = left == transposed ? at : k;
                if (row < column) continue;
                const double x = left ? X[k + j * ldb] : X[i + k * ldb];
                rest += L[row + column * ldl] * x, size += fabs(L[row + column * ldl] * x);
            }
            worst = fmax(worst, fabs(rest) / size);
        }
    if (!(worst <= 16 * (double)(n + 8) * UNIT))
        fail_msg("order %d, wide %d, left %d, transposed %d: a residual of %g, above %g", (int)n, (int)d->wide, left,
                 transposed, worst, 16 * (double)(n + 8) * UNIT);
    for (int64_t j = 0; j < c; j++)
        for (int64_t i = m; i < ldb; i++)
            if (X[i + j * ldb] != B[i + j * ldb]) fail_msg("padding of B was written");
    free(L), free(B), free(X);
}
static void divisions_leave_no_residual(void **state)
{
    (void)state;
    for_each_case(4 * COUNT(divisions), 12, check_division, NULL);
}

/* pivots ----------------------------------------------------------------------------------------------------- */

typedef struct triangle {
    int64_t n;
    double slope;
    int64_t equal; /* columns of R that repeat the one before */
} triangle;
static const triangle triangles[] = {{1, 1, 0},   {2, 1, 1},     {7, 1e3, 2},  {64, 1, 0},    {100, 1e12, 9},
                                     {256, 1, 0}, {257, 1e6, 3}, {300, 1, 40}, {513, 1e9, 1}, {1000, 1, 5}};

/* R(:, pivots) = Q T, T an upper triangle whose rows are not longer, column by column, than their diagonal entry. */
static void check_pivots(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const triangle *t = &triangles[number];
    const int64_t n = t->n;
    double *L = room(n * n, 8), *T = room(n * n, 8), *again = room(n * n, 8), norm = 0, worst = 0;
    int64_t *pivots = room(n, 8), *others = room(n, 8);
    char *taken = room(n, 1);
    int done = 0, repeated = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            const double scale = pow(t->slope, n > 1 ? -(double)j / (double)(n - 1) : 0);
            L[i + j * n] = i < j ? 0 : scale * (i == j ? 1.5 : normal_at(1, i + j * n) / sqrt((double)n));
        }
    for (int64_t e = 1; e <= t->equal; e++) /* column n - e of R, which is row n - e of L */
        for (int64_t k = 0; k < n; k++) L[n - e + k * n] = k < n - t->equal ? L[n - t->equal - 1 + k * n] : 0;
    for (int64_t e = 0; e < n * n; e++) norm = fma(L[e], L[e], norm);
    norm = sqrt(norm);
    algebra a = algebra_open(l, n);
    if (a.dense->pivot) {
        double *there = give(&a, L, n * n), *other = give(&a, L, n * n);
        solved(a.dense->pivot(a.handle, n, there, pivots, &done), "pivot");
        solved(a.dense->pivot(a.handle, n, other, others, &repeated), "pivot again");
        take(&a, there, T, n * n);
        take(&a, other, again, n * n);
    }
    a.dense->close(a.handle);
    if (done != repeated) fail_msg("n %d: done %d, then %d", (int)n, done, repeated);
    if (done && (memcmp(T, again, (size_t)(n * n) * 8) || memcmp(pivots, others, (size_t)n * 8)))
        fail_msg("n %d: other bits the second time", (int)n);
    memset(taken, 0, (size_t)n);
    for (int64_t s = 0; s < n && done; s++) {
        if (pivots[s] < 0 || pivots[s] >= n || taken[pivots[s]]++) fail_msg("n %d: no permutation", (int)n);
        for (int64_t r = 0; r < s; r++)
            if (T[r + s * n] != 0) fail_msg("n %d: T(%d, %d) is %g", (int)n, (int)s, (int)r, T[r + s * n]);
        if (!(T[s + s * n] >= 0)) fail_msg("n %d: a diagonal entry of %g", (int)n, T[s + s * n]);
    }
    const int64_t step = n > 300 ? 7 : 1; /* plain loops of n^3 */
    for (int64_t i = 0; i < n && done; i += step)
        for (int64_t j = 0; j <= i; j++) {
            double dot = 0, rest = 0;
            for (int64_t k = 0; k < n; k++)
                dot += L[pivots[i] + k * n] * L[pivots[j] + k * n] - T[i + k * n] * T[j + k * n];
            worst = fmax(worst, fabs(dot));
            for (int64_t k = j; k < n; k++) rest += T[i + k * n] * T[i + k * n];
            if (!(sqrt(rest) <= T[j + j * n] * (1 + 1e-5) + 64 * (double)n * UNIT * norm))
                fail_msg("n %d: column %d is %g long at step %d, whose pivot is %g", (int)n, (int)i, sqrt(rest), (int)j,
                         T[j + j * n]);
        }
    if (!(worst <= 64 * (double)n * UNIT * norm * norm)) fail_msg("n %d: R'R and T'T differ by %g", (int)n, worst);
    free(L), free(T), free(again), free(pivots), free(others), free(taken);
}
static void pivots_are_the_longest(void **state)
{
    (void)state;
    for_each_case(COUNT(triangles), 4, check_pivots, NULL);
}

/* singular values -------------------------------------------------------------------------------------------- */

typedef struct decomposition {
    int64_t m, p;
    double slope; /* columns shrink to 1 / slope */
    int zeros;    /* columns of zeros */
    double error;
} decomposition;
static const decomposition decompositions[] = {
    {5, 1, 1, 0, 0},        {40, 40, 1, 0, 0},     {200, 64, 1e3, 0, 0},       {130, 100, 1e8, 0, 0},
    {150, 150, 1e14, 0, 0}, {130, 90, 1e17, 0, 0}, {120, 64, 1e5, 0, 0x1p-24}, {300, 130, 1, 0, 0x1p-24},
    {60, 40, 10, 3, 0},     {20, 20, 1, 20, 0},
};

/* |Q'Q - I|_F, columns `across` apart and their elements `along`. */
static double departure(const double *Q, int64_t m, int64_t p, int64_t along, int64_t across)
{
    double sum = 0;
    for (int64_t a = 0; a < p; a++)
        for (int64_t b = 0; b <= a; b++) {
            double dot = a == b ? -1 : 0;
            for (int64_t i = 0; i < m; i++) dot += Q[i * along + a * across] * Q[i * along + b * across];
            sum += (a == b ? 1 : 2) * dot * dot;
        }
    return sqrt(sum);
}

static void check_decomposition(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const decomposition *d = &decompositions[number];
    const int64_t m = d->m, p = d->p, ld = m + 1;
    double *X = room(ld * p, 8), *U = room(ld * p, 8), *Vt = room(p * p, 8), *s = room(p, 8), apart = 0, norm = 0;
    for (int64_t j = 0; j < p; j++)
        for (int64_t i = 0; i < ld; i++)
            X[i + j * ld] = j < d->zeros
                                ? 0
                                : normal_at(6, i + j * ld) * pow(d->slope, p > 1 ? -(double)j / (double)(p - 1) : 0);
    algebra a = algebra_open(l, fsi_max(m, p));
    double *there = give(&a, X, ld * p), *Vt_there = give(&a, Vt, p * p);
    solved(a.dense->svd(a.handle, m, p, there, ld, d->error, s, Vt_there), "svd");
    take(&a, there, U, ld * p);
    take(&a, Vt_there, Vt, p * p);
    a.dense->close(a.handle);
    for (int64_t j = 0; j < p; j++)
        for (int64_t i = 0; i < m; i++) {
            double rest = X[i + j * ld];
            norm += rest * rest;
            for (int64_t c = 0; c < p; c++) rest -= U[i + c * ld] * s[c] * Vt[c + j * p];
            apart += rest * rest;
        }
    const double bound = 256 * (double)p * UNIT, u = departure(U, m, p, 1, ld), v = departure(Vt, p, p, p, 1);
    if (!(u <= bound && v <= bound && sqrt(apart) <= (bound + 4 * d->error * sqrt((double)p)) * sqrt(norm)))
        fail_msg("%d x %d, slope %g: |U'U - I| = %g, |V'V - I| = %g, |X - U s V'| = %g of %g", (int)m, (int)p, d->slope,
                 u, v, sqrt(apart), sqrt(norm));
    for (int64_t c = 1; c < p; c++)
        if (!(s[c] <= s[c - 1] && s[c] >= 0)) fail_msg("s[%d] = %g after %g", (int)c, s[c], s[c - 1]);
    free(X), free(U), free(Vt), free(s);
}
static void decompositions_multiply_to_X(void **state)
{
    (void)state;
    for_each_case(COUNT(decompositions), 4, check_decomposition, NULL);
}

/* gradients -------------------------------------------------------------------------------------------------- */

typedef struct gradient {
    int64_t d, n, m;
    int down;       /* columns of A are contiguous */
    fs_dtype right; /* of B */
} gradient;
static const gradient gradients[] = {
    {1, 1, 1, 0, FS_F64},      {700, 1, 2, 0, FS_F32},    {5000, 5, 1, 1, FS_F64},
    {3000, 64, 3, 0, FS_F64},  {2000, 255, 1, 0, FS_F32}, {900, 300, 8, 1, FS_F64},
    {900, 1024, 1, 0, FS_F64}, {300, 5000, 1, 0, FS_F64}, {400, 30, 9, 0, FS_F64},
};

/* W += A'(A P - B) and squares, B near A P so that digits cancel: as exact as sums of twice the precision leave it where
 * the backend has such, otherwise (above eight right-hand sides, rows that do not fit) as in f64. */
static void check_gradient(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const gradient *g = &gradients[number];
    const int64_t d = g->d, n = g->n, m = g->m;
    const int exact = m <= 8 && n <= 4000;
    double *A = room(d * n, 8), *P = room(n * m, 8), *W = room(n * m + m, 8);
    long double *u = room(d, sizeof *u);
    view B = view_make(ROWS, d, m, g->right);
    const int64_t down = g->down ? 1 : n, along = g->down ? d : 1;
    for (int64_t e = 0; e < d * n; e++) A[e] = normal_at(1, e);
    for (int64_t e = 0; e < n * m; e++) P[e] = normal_at(2, e);
    for (int64_t i = 0; i < d; i++)
        for (int64_t c = 0; c < m; c++) {
            double sum = 1e-6 * normal_at(3, i * m + c);
            for (int64_t j = 0; j < n; j++) sum += A[i * down + j * along] * P[j + c * n];
            put(&B.m, i, c, sum);
        }
    for (int64_t e = 0; e < n * m + m; e++) W[e] = 0.25;
    algebra a = algebra_open(l, n + m);
    double *A_there = give(&a, A, d * n), *P_there = give(&a, P, n * m), *W_there = give(&a, W, n * m + m);
    mirror b = mirror_make(l, &B);
    const fs_matrix view_of_A = {A_there, d, n, down, along, 0, 0, FS_F64, device_place()};
    solved(a.dense->normal(a.handle, &view_of_A, m, P_there, &b.m, W_there, W_there + n * m), "normal");
    solved(a.dense->wait(a.handle, NULL), "wait");
    take(&a, W_there, W, n * m + m);
    a.dense->release(a.handle, A_there), a.dense->release(a.handle, P_there);
    a.dense->close(a.handle);
    for (int64_t c = 0; c < m; c++) {
        long double square = 0.25L, lengths = 0, size = 0;
        for (int64_t i = 0; i < d; i++) {
            u[i] = -(long double)at(&B.m, i, c);
            for (int64_t j = 0; j < n; j++) u[i] += (long double)A[i * down + j * along] * P[j + c * n];
            square += u[i] * u[i];
            lengths += fabsl(u[i]);
        }
        for (int64_t j = 0; j < n; j++) size = fmaxl(size, fabsl((long double)P[j + c * n]));
        for (int64_t j = 0; j < n; j++) {
            long double sum = 0.25L;
            for (int64_t i = 0; i < d; i++) sum += (long double)A[i * down + j * along] * u[i];
            const double off = (double)fabsl(sum - W[j + c * n]),
                         bound = (double)(2 * UNIT * fabsl(sum)) + (exact ? 0x1p-58 : UNIT) * 64 * (double)(n + d) *
                                                                       (double)(lengths + size * sqrtl((long double)d));
            if (!(off <= bound))
                fail_msg("%d x %d: element %d of gradient %d is off by %g, above %g", (int)d, (int)n, (int)j, (int)c,
                         off, bound);
        }
        if (!(fabs((double)(square - W[n * m + c])) <= 1e-6 * (double)square)) fail_msg("a square of %g", W[n * m + c]);
    }
    mirror_free(l, &b);
    view_free(&B);
    free(A), free(P), free(W), free(u);
}
static void gradients_are_exact(void **state)
{
    (void)state;
    for_each_case(COUNT(gradients), 4, check_gradient, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divisions_leave_no_residual),
        cmocka_unit_test(pivots_are_the_longest),
        cmocka_unit_test(decompositions_multiply_to_X),
        cmocka_unit_test(gradients_are_exact),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
