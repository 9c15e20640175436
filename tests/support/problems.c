#include "problems.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void (*dgelsd)(const int *, const int *, const int *, double *, const int *, double *, const int *, double *,
                      const double *, int *, double *, const int *, int *, int *);
static void (*dgesdd)(const char *, const int *, const int *, double *, const int *, double *, double *, const int *,
                      double *, const int *, double *, const int *, int *, int *);
static void (*sgelsd)(const int *, const int *, const int *, float *, const int *, float *, const int *, float *,
                      const float *, int *, float *, const int *, int *, int *);
static void (*dgeqrf)(const int *, const int *, double *, const int *, double *, double *, const int *, int *);
static void (*dgeqp3)(const int *, const int *, double *, const int *, int *, double *, double *, const int *, int *);
static void (*dorgqr)(const int *, const int *, const int *, double *, const int *, const double *, double *,
                      const int *, int *);

void need_openblas(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? NULL : dlerror();
    if (library) *(void **)&dgelsd = dlsym(library, "dgelsd_");
    if (library) *(void **)&dgesdd = dlsym(library, "dgesdd_");
    if (library) *(void **)&sgelsd = dlsym(library, "sgelsd_");
    if (library) *(void **)&dgeqrf = dlsym(library, "dgeqrf_");
    if (library) *(void **)&dgeqp3 = dlsym(library, "dgeqp3_");
    if (library) *(void **)&dorgqr = dlsym(library, "dorgqr_");
    if (!dgelsd || !dgesdd || !sgelsd || !dgeqrf || !dgeqp3 || !dorgqr) {
        fprintf(stderr, "skipped: tasks need OpenBLAS with LAPACK (%s)\n", why ? why : "this one has none");
        exit(77);
    }
}

/* problems --------------------------------------------------------------------------------------------------- */

/* Orthonormal columns: normals, by Gram and Schmidt twice; columns are stored one after the other. */
static double *orthonormal(int64_t rows, int64_t cols, uint64_t seed)
{
    double *Q = room(rows * cols, sizeof *Q);
    for (int64_t j = 0; j < cols; j++) {
        double *q = Q + j * rows;
        for (int64_t i = 0; i < rows; i++) q[i] = normal_at(seed, j * rows + i);
        for (int twice = 0; twice < 2; twice++)
            for (int64_t l = 0; l < j; l++) {
                double dot = 0;
                for (int64_t i = 0; i < rows; i++) dot += Q[l * rows + i] * q[i];
                for (int64_t i = 0; i < rows; i++) q[i] -= dot * Q[l * rows + i];
            }
        double square = 0;
        for (int64_t i = 0; i < rows; i++) square += q[i] * q[i];
        for (int64_t i = 0; i < rows; i++) q[i] /= sqrt(square);
    }
    return Q;
}

/* Noise of column c: normals, `orthogonal`: without their part in the range of U; its square. */
static double *noise_of(int64_t d, int64_t n, const double *U, int64_t rhs, int64_t c, uint64_t seed, int orthogonal,
                        double *square)
{
    double *e = room(d, sizeof *e);
    for (int64_t i = 0; i < d; i++) e[i] = normal_at(seed, i * rhs + c);
    for (int64_t l = 0; l < n && orthogonal; l++) {
        double dot = 0;
        for (int64_t i = 0; i < d; i++) dot += U[l * d + i] * e[i];
        for (int64_t i = 0; i < d; i++) e[i] -= dot * U[l * d + i];
    }
    *square = 0;
    for (int64_t i = 0; i < d; i++) *square += e[i] * e[i];
    return e;
}

static problem make(int64_t d, int64_t n, int64_t rhs, fs_dtype dtype, double condition, double noise, uint64_t seed,
                    int orthogonal)
{
    problem p = {d, n, rhs, fs_row_major(room(d * n, 8), d, n, dtype), fs_row_major(room(d * rhs, 8), d, rhs, dtype)};
    double *U = orthonormal(d, n, seed), *V = orthonormal(n, n, seed + 1);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < n; l++)
                sum += U[l * d + i] * pow(condition, n > 1 ? -(double)l / (double)(n - 1) : 0) * V[l * n + j];
            put(&p.A, i, j, sum);
        }
    for (int64_t c = 0; c < rhs; c++) {
        double square = 0, error, *e = noise_of(d, n, U, rhs, c, seed + 3, orthogonal, &error);
        for (int twice = 0; twice < 2; twice++)
            for (int64_t i = 0; i < d; i++) {
                double sum = 0;
                for (int64_t j = 0; j < n; j++) sum += at(&p.A, i, j) * normal_at(seed + 2, j * rhs + c);
                if (twice) put(&p.B, i, c, sum + noise * sqrt(square / error) * e[i]);
                else square += sum * sum;
            }
        free(e);
    }
    free(U);
    free(V);
    return p;
}

problem problem_make(int64_t d, int64_t n, int64_t rhs, fs_dtype dtype, double condition, double noise, uint64_t seed)
{
    return make(d, n, rhs, dtype, condition, noise, seed, 0);
}

problem problem_make_orthogonal(int64_t d, int64_t n, double condition, double noise, uint64_t seed)
{
    return make(d, n, 1, FS_F64, condition, noise, seed, 1);
}

void problem_free(problem *p)
{
    free(p->A.data);
    free(p->B.data);
}

bench bench_open(const problem *p, int64_t k, uint64_t seed, int64_t basis)
{
    bench b = {NULL, NULL, NULL};
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = FS_BACKEND_CPU;
    MUST(fs_context_create(&b.ctx, &where));
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    shape.k = k, shape.n = p->n, shape.rhs = p->rhs, shape.dtype = fsi_dtype_sum(p->A.dtype), shape.basis = basis;
    MUST(fs_workspace_create(&b.w, b.ctx, &shape));
    fs_spec spec = FS_SPEC_INIT;
    spec.d = p->d, spec.k = k, spec.seed = seed;
    b.S = sketch_of(&spec);
    return b;
}

void bench_close(bench *b)
{
    fs_workspace_destroy(b->w);
    fs_context_destroy(b->ctx);
    fs_sketch_destroy(b->S);
}

double *doubles_of(const fs_matrix *m)
{
    double *out = room(m->rows * m->cols, sizeof *out);
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) out[i * m->cols + j] = at(m, i, j);
    return out;
}

double residual_norm(const fs_matrix *A, const fs_matrix *X, const fs_matrix *B)
{
    double square = 0;
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t c = 0; c < B->cols; c++) {
            double sum = -at(B, i, c);
            for (int64_t j = 0; j < A->cols; j++) sum += at(A, i, j) * at(X, j, c);
            square += sum * sum;
        }
    return sqrt(square);
}

double norm_of(const fs_matrix *m)
{
    double square = 0;
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) square += at(m, i, j) * at(m, i, j);
    return sqrt(square);
}

/* LAPACK ----------------------------------------------------------------------------------------------------- */

/* Column-major copy with `extra` rows of zeros below. */
static double *columns_with(int64_t rows, int64_t cols, int64_t pitch, const double *A)
{
    double *out = room(pitch * cols, sizeof *out);
    memset(out, 0, (size_t)(pitch * cols) * sizeof *out);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) out[i + j * pitch] = A[i * cols + j];
    return out;
}

int64_t lapack_solve(int64_t k, int64_t n, int64_t rhs, const double *Y, const double *C, double rcond, double *X)
{
    const int rows = (int)k, cols = (int)n, count = (int)rhs, tall = (int)(k > n ? k : n), ask = -1;
    double *A = columns_with(k, n, k, Y), *B = columns_with(k, rhs, tall, C), *s = room(tall, sizeof *s), want = 0;
    int rank = 0, iwant = 0, info = 0;
    dgelsd(&rows, &cols, &count, A, &rows, B, &tall, s, &rcond, &rank, &want, &ask, &iwant, &info);
    const int lwork = (int)want;
    double *work = room(lwork, sizeof *work);
    int *iwork = room(iwant, sizeof *iwork);
    dgelsd(&rows, &cols, &count, A, &rows, B, &tall, s, &rcond, &rank, work, &lwork, iwork, &info);
    assert_int_equal(info, 0);
    for (int64_t j = 0; j < n; j++)
        for (int64_t c = 0; c < rhs; c++) X[j * rhs + c] = B[j + c * tall];
    free(A), free(B), free(s), free(work), free(iwork);
    return rank;
}

void lapack_ridge(int64_t k, int64_t n, int64_t rhs, const double *Y, const double *C, double lambda, double *X)
{
    double *A = room((k + n) * n, sizeof *A), *B = room((k + n) * rhs, sizeof *B);
    memset(A, 0, (size_t)((k + n) * n) * sizeof *A);
    memset(B, 0, (size_t)((k + n) * rhs) * sizeof *B);
    memcpy(A, Y, (size_t)(k * n) * sizeof *A);
    memcpy(B, C, (size_t)(k * rhs) * sizeof *B);
    for (int64_t j = 0; j < n; j++) A[(k + j) * n + j] = sqrt(lambda);
    lapack_solve(k + n, n, rhs, A, B, 1e-15, X);
    free(A), free(B);
}

void lapack_singular_values(int64_t rows, int64_t cols, const double *A, double *values)
{
    const int m = (int)rows, n = (int)cols, small = m < n ? m : n, ask = -1, one = 1;
    double *copy = columns_with(rows, cols, rows, A), none = 0, want = 0;
    int *iwork = room(8 * (int64_t)small, sizeof *iwork), info = 0;
    dgesdd("N", &m, &n, copy, &m, values, &none, &one, &none, &one, &want, &ask, iwork, &info);
    const int lwork = (int)want + 7 * small + (m > n ? m : n);
    double *work = room(lwork, sizeof *work);
    dgesdd("N", &m, &n, copy, &m, values, &none, &one, &none, &one, work, &lwork, iwork, &info);
    assert_int_equal(info, 0);
    free(copy), free(iwork), free(work);
}

void lapack_singular_vectors(int64_t rows, int64_t cols, const double *A, double *values, double *V)
{
    const int m = (int)rows, n = (int)cols, small = m < n ? m : n, ask = -1;
    double *copy = columns_with(rows, cols, rows, A), *U = room(rows * small, sizeof *U),
           *Vt = room(cols * small, sizeof *Vt), want = 0;
    int *iwork = room(8 * (int64_t)small, sizeof *iwork), info = 0;
    dgesdd("S", &m, &n, copy, &m, values, U, &m, Vt, &small, &want, &ask, iwork, &info);
    const int lwork = (int)want + 4 * small * small + 7 * small + (m > n ? m : n);
    double *work = room(lwork, sizeof *work);
    dgesdd("S", &m, &n, copy, &m, values, U, &m, Vt, &small, work, &lwork, iwork, &info);
    assert_int_equal(info, 0);
    for (int64_t j = 0; j < cols; j++)
        for (int i = 0; i < small; i++) V[j * small + i] = Vt[i + j * small];
    free(copy), free(U), free(Vt), free(iwork), free(work);
}

void lapack_solve_f32(int64_t k, int64_t n, int64_t rhs, const double *Y, const double *C, double rcond, double *X)
{
    const int rows = (int)k, cols = (int)n, count = (int)rhs, tall = (int)(k > n ? k : n), ask = -1;
    double *wide[2] = {columns_with(k, n, k, Y), columns_with(k, rhs, tall, C)};
    const int64_t counts[2] = {k * n, tall * rhs};
    float *narrow[2], least = (float)rcond, want = 0, *s = room(tall, sizeof *s);
    for (int i = 0; i < 2; i++) {
        narrow[i] = room(counts[i], sizeof(float));
        for (int64_t e = 0; e < counts[i]; e++) narrow[i][e] = (float)wide[i][e];
    }
    int rank = 0, iwant = 0, info = 0;
    sgelsd(&rows, &cols, &count, narrow[0], &rows, narrow[1], &tall, s, &least, &rank, &want, &ask, &iwant, &info);
    const int lwork = (int)want;
    float *work = room(lwork, sizeof *work);
    int *iwork = room(iwant, sizeof *iwork);
    sgelsd(&rows, &cols, &count, narrow[0], &rows, narrow[1], &tall, s, &least, &rank, work, &lwork, iwork, &info);
    assert_int_equal(info, 0);
    for (int64_t j = 0; j < n; j++)
        for (int64_t c = 0; c < rhs; c++) X[j * rhs + c] = narrow[1][j + c * tall];
    for (int i = 0; i < 2; i++) free(wide[i]), free(narrow[i]);
    free(s), free(work), free(iwork);
}

/* backward errors -------------------------------------------------------------------------------------------- */

/* The least eigenvalue of A A' + f^2 (I - r r' / |r|^2) (Walden, Karlson and Sun, 1995), whose root the error is.  With
 * c the coordinates of r / |r| in A's left singular vectors and e = 1 - |c|^2, it is the zero below f^2 of
 *     sum c_i^2 (s_i^2 - z) / (s_i^2 + f^2 - z) - e z / (f^2 - z). */
static double least_eigenvalue(int64_t count, const double *s, const double *c, double f)
{
    double low = 0, high = f * f, e = 1;
    for (int64_t i = 0; i < count; i++) e -= c[i] * c[i];
    e = fmax(e, 0);
    for (int step = 0; step < 200; step++) {
        const double z = (low + high) / 2;
        double sum = -e * z / (f * f - z);
        for (int64_t i = 0; i < count; i++) sum += c[i] * c[i] * (s[i] * s[i] - z) / (s[i] * s[i] + f * f - z);
        if (sum > 0) low = z;
        else high = z;
    }
    return (low + high) / 2;
}

double backward_error(int64_t d, int64_t n, const double *A, const double *b, const double *x)
{
    const int64_t small = d < n ? d : n;
    double *s = room(small, sizeof *s), *V = room(n * small, sizeof *V), *c = room(small, sizeof *c);
    long double *g = room(n, sizeof *g), r2 = 0, b2 = 0, x2 = 0, a2 = 0;
    for (int64_t j = 0; j < n; j++) g[j] = 0, x2 += (long double)x[j] * x[j];
    for (int64_t i = 0; i < d; i++) {
        long double r = b[i];
        for (int64_t j = 0; j < n; j++) r -= (long double)A[i * n + j] * x[j];
        for (int64_t j = 0; j < n; j++) g[j] += r * A[i * n + j], a2 += (long double)A[i * n + j] * A[i * n + j];
        r2 += r * r, b2 += (long double)b[i] * b[i];
    }
    lapack_singular_vectors(d, n, A, s, V);
    const double theta = (double)sqrtl(a2 / b2),
                 f = theta * (double)(sqrtl(r2 / (1 + (long double)theta * theta * x2)));
    for (int64_t i = 0; i < small; i++) {
        long double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += V[j * small + i] * g[j];
        c[i] = s[i] > 0 && r2 > 0 ? (double)(sum / (s[i] * sqrtl(r2))) : 0;
    }
    const double error = f > 0 ? sqrt(least_eigenvalue(small, s, c, f)) / (double)sqrtl(a2) : 0;
    free(s), free(V), free(c), free(g);
    return error;
}

void expect_at_most(const char *what, double value, double bound)
{
    if (!(value <= bound)) fail_msg("%s: %g, at most %g expected", what, value, bound);
}

void lapack_qr(int64_t d, int64_t n, const double *A, int64_t *pivots, double *Q, double *R)
{
    const int m = (int)d, p = (int)n, lwork = 64 * (p + 1);
    double *copy = columns_with(d, n, d, A), *tau = room(n, sizeof *tau), *work = room(lwork, sizeof *work);
    int *order = room(n, sizeof *order), info = 0;
    memset(order, 0, (size_t)n * sizeof *order);
    if (pivots) dgeqp3(&m, &p, copy, &m, order, tau, work, &lwork, &info);
    else dgeqrf(&m, &p, copy, &m, tau, work, &lwork, &info);
    assert_int_equal(info, 0);
    for (int64_t j = 0; j < n && pivots; j++) pivots[j] = order[j] - 1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) R[i * n + j] = j < i ? 0 : copy[i + j * d] * (copy[i + i * d] < 0 ? -1 : 1);
    double *signs = room(n, sizeof *signs);
    for (int64_t i = 0; i < n; i++) signs[i] = copy[i + i * d] < 0 ? -1 : 1;
    dorgqr(&m, &p, &p, copy, &m, tau, work, &lwork, &info);
    assert_int_equal(info, 0);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++) Q[i * n + j] = copy[i + j * d] * signs[j];
    free(copy), free(tau), free(work), free(order), free(signs);
}
