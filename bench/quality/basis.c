/* basis.c - from a matrix to [Q r], dense or sparse. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "quality.h"
#include "random.h"

/* [Q r] is dense where this share of Q or more is not zero, and A has no zero rows. */
#define DENSE_SHARE 0.25

int quality_matrix_rows(quality_matrix *m, int64_t d, int64_t count)
{
    m->d = d, m->count = count;
    m->rows = malloc(sizeof *m->rows * (size_t)count);
    m->A = calloc((size_t)(count * m->n), sizeof *m->A);
    if (!m->rows || !m->A) {
        fprintf(stderr, "fsbench: no memory for an input of %" PRId64 " x %" PRId64 "\n", count, m->n);
        return 1;
    }
    for (int64_t i = 0; i < count; i++) m->rows[i] = i;
    return 0;
}

void quality_matrix_free(quality_matrix *m)
{
    free(m->rows);
    free(m->A);
    free(m->dense);
    free(m->ptr);
    free(m->index);
    free(m->value);
    memset(m, 0, sizeof *m);
}

/* A becomes Q of its QR factorization. */
static int orthonormalize(const lapack *l, quality_matrix *m)
{
    const int rows = (int)m->count, n = (int)m->n, room = 64 * n;
    double *work = malloc(sizeof *work * (size_t)(room + n)), *tau = work + room;
    double largest = 0, least = INFINITY;
    int info = work ? 0 : 1;
    if (!info) l->f64.geqrf(&rows, &n, m->A, &rows, tau, work, &room, &info);
    for (int j = 0; j < n && !info; j++) {
        const double at = fabs(m->A[(int64_t)j * rows + j]);
        largest = at > largest ? at : largest;
        least = at < least ? at : least;
    }
    if (!info && !(least > 1e-12 * largest)) {
        fprintf(stderr, "fsbench: the columns of an input are dependent: R's diagonal is from %g to %g\n", least,
                largest);
        info = 1;
    } else if (!info) {
        l->f64.orgqr(&rows, &n, &n, m->A, &rows, tau, work, &room, &info);
    }
    free(work);
    return info != 0;
}

/* A unit vector orthogonal to Q, in the rows of Q and NOISY_ROWS others, so that a draw needs few columns of S; "twice
 * is enough". */
static double *make_residual(const quality_matrix *m)
{
    enum { NOISY_ROWS = 1024 };
    double *r = calloc((size_t)m->d, sizeof *r), norm = 0;
    uint64_t state = m->seed ^ 0x7265736964756C73u;
    if (!r) return NULL;
    for (int64_t i = 0; i < m->count; i++) r[m->rows[i]] = random_student(&state, 1.5);
    for (int64_t i = 0; i < NOISY_ROWS && m->count < m->d; i++)
        r[random_below(&state, m->d)] = random_student(&state, 1.5);
    for (int64_t pass = 0; pass < 2 * m->n; pass++) {
        const double *q = m->A + pass % m->n * m->count;
        double dot = 0;
        for (int64_t i = 0; i < m->count; i++) dot += q[i] * r[m->rows[i]];
        for (int64_t i = 0; i < m->count; i++) r[m->rows[i]] -= dot * q[i];
    }
    for (int64_t i = 0; i < m->d; i++) norm += r[i] * r[i];
    for (int64_t i = 0; i < m->d; i++) r[i] /= sqrt(norm);
    return r;
}

static int make_dense(quality_matrix *m, const double *r)
{
    const int64_t wide = m->n + 1;
    m->dense = malloc(sizeof *m->dense * (size_t)(m->d * wide));
    if (!m->dense) return 1;
    for (int64_t i = 0; i < m->count; i++)
        for (int64_t j = 0; j < m->n; j++) m->dense[m->rows[i] * wide + j] = m->A[j * m->count + i];
    for (int64_t i = 0; i < m->d; i++) m->dense[i * wide + m->n] = r[i];
    return 0;
}

static int make_sparse(quality_matrix *m, const double *r, int64_t nonzeros)
{
    const int64_t entries = nonzeros + m->d;
    int64_t *from = malloc(sizeof *from * (size_t)m->d);
    m->ptr = malloc(sizeof *m->ptr * (size_t)(m->d + 1));
    m->index = malloc(sizeof *m->index * (size_t)entries);
    m->value = malloc(sizeof *m->value * (size_t)entries);
    if (!from || !m->ptr || !m->index || !m->value) {
        free(from);
        return 1;
    }
    for (int64_t i = 0; i < m->d; i++) from[i] = -1;
    for (int64_t i = 0; i < m->count; i++) from[m->rows[i]] = i;
    int64_t at = 0;
    for (int64_t i = 0; i < m->d; i++) {
        m->ptr[i] = (int32_t)at;
        for (int64_t j = 0; j < m->n && from[i] >= 0; j++) {
            const double x = m->A[j * m->count + from[i]];
            if (x != 0) m->index[at] = (int32_t)j, m->value[at++] = x;
        }
        if (r[i] != 0) m->index[at] = (int32_t)m->n, m->value[at++] = r[i];
    }
    m->ptr[m->d] = (int32_t)at;
    m->sparse = (fs_sparse){FS_CSR, FS_INDEX32, m->d, m->n + 1, at, m->ptr, m->index, m->value, FS_F64, FS_MEMORY_HOST};
    free(from);
    return 0;
}

int quality_matrix_finish(const lapack *l, quality_matrix *m)
{
    if (!m->orthonormal && orthonormalize(l, m)) return 1;
    int64_t nonzeros = 0;
    m->leverage = 0;
    for (int64_t i = 0; i < m->count; i++) {
        double sum = 0;
        for (int64_t j = 0; j < m->n; j++) {
            double *x = &m->A[j * m->count + i];
            if (fabs(*x) < 1e-300) *x = 0;
            nonzeros += *x != 0;
            sum += *x * *x;
        }
        m->leverage = sum > m->leverage ? sum : m->leverage;
    }
    double *r = make_residual(m);
    const int dense = m->count == m->d && (double)nonzeros >= DENSE_SHARE * (double)(m->d * m->n);
    const int bad = !r || (dense ? make_dense(m, r) : make_sparse(m, r, nonzeros));
    if (bad) fprintf(stderr, "fsbench: no memory for an input of %" PRId64 " x %" PRId64 "\n", m->d, m->n);
    free(r);
    free(m->A);
    m->A = NULL;
    return bad;
}

static uint64_t seed_of(const char *name, int64_t n)
{
    uint64_t seed = 1469598103934665603u + (uint64_t)n;
    for (const char *c = name; *c; c++) seed = (seed ^ (unsigned char)*c) * 1099511628211u;
    return seed;
}

int quality_matrix_make(const lapack *l, const quality_input *input, int64_t n, int64_t M, quality_matrix *m)
{
    *m = (quality_matrix){.n = n, .M = M, .seed = seed_of(input->name, n)};
    return input->make(m, input->parameter) || quality_matrix_finish(l, m);
}

int quality_matrix_read(const lapack *l, const data_source *source, int64_t n, quality_matrix *m)
{
    enum { WINDOW_ROWS = 8192, MOST_ROWS = 65536 };
    const data_set set = data_set_of(source, source->d ? source->d : WINDOW_ROWS, source->n ? source->n : n);
    const int64_t d = set.d < MOST_ROWS ? set.d : MOST_ROWS;
    *m = (quality_matrix){.n = n, .seed = seed_of(source->name, n)};
    if (set.n < n || d < 2 * n) return 2;
    float *A = malloc(sizeof *A * (size_t)(set.d * set.n));
    int64_t *columns = malloc(sizeof *columns * (size_t)set.n), found = 0;
    int bad = !A || !columns || data_make(&set, A) || quality_matrix_rows(m, d, d);
    for (int64_t j = 0; j < set.n && !bad; j++) {
        int zero = 1;
        for (int64_t i = 0; i < d && zero; i++) zero = A[i * set.n + j] == 0;
        if (!zero) columns[found++] = j;
    }
    for (int64_t j = 0; j < n && found >= n && !bad; j++) {
        const int64_t other = j + random_below(&m->seed, found - j), c = columns[other];
        columns[other] = columns[j];
        for (int64_t i = 0; i < d; i++) m->A[j * d + i] = (double)A[i * set.n + c];
    }
    if (!bad && found < n) bad = 2;
    free(A);
    free(columns);
    return bad ? bad : quality_matrix_finish(l, m);
}
