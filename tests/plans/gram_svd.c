/* gram_svd.c - the singular value decomposition that GPUs use (src/cuda/linalg/gram_svd.c), over the CPU's table: U and V
 * are orthonormal and U diag(s) V' is X to rounding for spectra of all conditions, or the function reports that it is
 * not done and leaves X as it was. */
#include "cuda/linalg/gram_svd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "core/context.h"
#include "tests/support/problems.h"

typedef enum spectrum { EVEN, GEOMETRIC, CLUSTERS, ONE_SMALL, HALF_ROUNDING, SPECTRA } spectrum;
static double value_of(spectrum kind, int64_t j, int64_t p, double cond)
{
    const double at = p > 1 ? (double)j / (double)(p - 1) : 0;
    if (kind == EVEN) return 1;
    if (kind == GEOMETRIC) return pow(cond, -at);
    if (kind == CLUSTERS) return pow(cond, -floor(4 * at) / 4);
    if (kind == ONE_SMALL) return j + 1 < p ? 1 : 1 / cond;
    return 2 * j < p ? pow(cond, -2 * at) : 1e-17 / cond;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

typedef struct algebra {
    fs_context *ctx;
    const fsi_dense *dense;
    void *handle;
} algebra;

/* |Q'Q - I|_F, Q m x p in columns. */
static double departure(const double *Q, int64_t m, int64_t p)
{
    double sum = 0;
    for (int64_t a = 0; a < p; a++)
        for (int64_t b = 0; b <= a; b++) {
            double dot = a == b ? -1 : 0;
            for (int64_t i = 0; i < m; i++) dot += Q[i + a * m] * Q[i + b * m];
            sum += (a == b ? 1 : 2) * dot * dot;
        }
    return sqrt(sum);
}

/* Orthonormal columns by Gram and Schmidt twice. */
static void orthonormal(uint64_t seed, int64_t m, int64_t p, double *Q)
{
    for (int64_t j = 0; j < p; j++) {
        double *q = Q + j * m, square = 0;
        for (int64_t i = 0; i < m; i++) q[i] = normal_at(seed, i + j * m);
        for (int64_t c = 0; c < 2 * j; c++) {
            const double *other = Q + c % j * m;
            double dot = 0;
            for (int64_t i = 0; i < m; i++) dot += other[i] * q[i];
            for (int64_t i = 0; i < m; i++) q[i] -= dot * other[i];
        }
        for (int64_t i = 0; i < m; i++) square += q[i] * q[i];
        for (int64_t i = 0; i < m; i++) q[i] /= sqrt(square);
    }
}

static void check(const algebra *b, int64_t m, int64_t p, spectrum kind, double cond, double scale, double error)
{
    double *left = room(m * p, 8), *right = room(p * p, 8), *X = room(m * p, 8), *A = room(m * p, 8),
           *Vt = room(p * p, 8), *V = room(p * p, 8), *s = room(p, 8), *host = room(2 * p, 8);
    int done;
    orthonormal(3, m, p, left);
    orthonormal(4, p, p, right);
    memset(A, 0, (size_t)(m * p) * sizeof *A);
    for (int64_t c = 0; c < p; c++)
        for (int64_t j = 0; j < p; j++)
            for (int64_t i = 0; i < m; i++)
                A[i + j * m] += scale * value_of(kind, c, p, cond) * left[i + c * m] * right[j + c * p];
    memcpy(X, A, (size_t)(m * p) * sizeof *A);
    const fs_result result = fsi_gram_svd(b->dense, b->handle, host, m, p, X, m, error, s, Vt, &done);
    if (result != FS_OK) fail_msg("fsi_gram_svd: %s", fs_error_message());
    if (!done) fail_msg("spectrum %d, condition %g, %d x %d: not done", (int)kind, cond, (int)m, (int)p);
    double apart = 0, worst = 0;
    for (int64_t j = 0; j < p; j++)
        for (int64_t i = 0; i < m; i++) {
            double x = A[i + j * m];
            for (int64_t c = 0; c < p; c++) x -= X[i + c * m] * s[c] * Vt[c + j * p];
            apart += x * x;
        }
    for (int64_t j = 0; j < p; j++)
        for (int64_t i = 0; i < p; i++) V[i + j * p] = Vt[j + i * p];
    for (int64_t c = 0; c < p; c++) {
        worst = fmax(worst, fabs(s[c] - scale * value_of(kind, c, p, cond)));
        if (c > 0 && !(s[c] <= s[c - 1])) fail_msg("s[%d] = %g after %g", (int)c, s[c], s[c - 1]);
    }
    const double u = departure(X, m, p), v = departure(V, p, p), unit = 0x1p-53,
                 most = scale * fmax(error, 32 * (double)p * unit);
    if (!(u <= 64 * (double)p * unit && v <= 64 * (double)p * unit && sqrt(apart) <= 4 * most && worst <= most))
        fail_msg("spectrum %d, condition %g, %d x %d, error %g: |U'U - I| = %g, |V'V - I| = %g, |X - U s V'| = %g, "
                 "s off by %g, bound %g",
                 (int)kind, cond, (int)m, (int)p, error, u, v, sqrt(apart), worst, most);
    double *const all[] = {left, right, X, A, Vt, V, s, host};
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
}

static void open_bench(algebra *b, int64_t n)
{
    assert_int_equal(fs_context_create(&b->ctx, NULL), FS_OK);
    const fsi_host host = {fs_fail, b->ctx->allocator};
    b->dense = b->ctx->backend->dense;
    const fs_result result = b->dense->open(&b->handle, b->ctx->state, &host, n, n, n);
    if (result != FS_OK) fail_msg("%s", fs_error_message());
}

static void all_spectra(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {9, 2}, {40, 40}, {90, 37}, {120, 120}};
    static const double conditions[] = {1, 30, 1e3, 1e6, 1e10, 1e14, 1e16};
    algebra b;
    open_bench(&b, 128);
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int kind = 0; kind < SPECTRA; kind++)
            for (size_t c = 0; c < COUNT(conditions); c++)
                for (int f32 = 0; f32 < 2; f32++)
                    check(&b, sizes[i][0], sizes[i][1], (spectrum)kind, conditions[c], c % 2 ? 1e-100 : 1e90,
                          f32 ? 0x1p-24 * sqrt((double)sizes[i][1]) : 0);
    b.dense->close(b.handle);
    fs_context_destroy(b.ctx);
}

/* Of zeros, and with a column of zeros: not done, and nothing written. */
static void zeros_are_left(void **state)
{
    (void)state;
    enum { M = 12, P = 5 };
    algebra b;
    open_bench(&b, M);
    for (int whole = 0; whole < 2; whole++) {
        double X[M * P], before[M * P], s[P], Vt[P * P], host[2 * P];
        int done = 1;
        for (int64_t i = 0; i < M * P; i++) before[i] = X[i] = whole || i / M == 3 ? 0 : normal_at(5, i);
        assert_int_equal(fsi_gram_svd(b.dense, b.handle, host, M, P, X, M, 0, s, Vt, &done), FS_OK);
        assert_false(done);
        assert_memory_equal(X, before, sizeof X);
    }
    b.dense->close(b.handle);
    fs_context_destroy(b.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_spectra), cmocka_unit_test(zeros_are_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
