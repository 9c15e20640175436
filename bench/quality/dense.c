/* dense.c - inputs with all d = 8192 rows stored, of which few, or only some, have more leverage than the rest. */
#include <stdlib.h>

#include "quality.h"
#include "random.h"

enum { D = 8192 };
static const double pi = 3.14159265358979323846;

static int all_rows(quality_matrix *m) { return quality_matrix_rows(m, D, D); }
static double *entry(quality_matrix *m, int64_t i, int64_t j) { return &m->A[j * m->count + i]; }
static void add_normals(quality_matrix *m, double scale)
{
    for (int64_t e = 0; e < m->count * m->n; e++) m->A[e] += scale * random_normal(&m->seed);
}

int quality_make_gaussian(quality_matrix *m, double unused)
{
    (void)unused;
    if (all_rows(m)) return 1;
    add_normals(m, 1);
    return 0;
}

/* Of rank n times `rank`, and noise of a thousandth. */
int quality_make_low_rank(quality_matrix *m, double rank)
{
    const int64_t inner = (int64_t)(rank * (double)m->n);
    double *U = malloc(sizeof *U * D);
    if (!U || all_rows(m)) {
        free(U);
        return 1;
    }
    for (int64_t t = 0; t < inner; t++) {
        for (int64_t i = 0; i < D; i++) U[i] = random_normal(&m->seed);
        for (int64_t j = 0; j < m->n; j++) {
            const double v = random_normal(&m->seed);
            for (int64_t i = 0; i < D; i++) *entry(m, i, j) += U[i] * v;
        }
    }
    add_normals(m, 1e-3);
    free(U);
    return 0;
}

/* Columns of the Hadamard matrix: the first, or drawn. */
int quality_make_hadamard(quality_matrix *m, double drawn)
{
    if (all_rows(m)) return 1;
    for (int64_t j = 0; j < m->n; j++) {
        const int64_t column = drawn > 0 ? j * (D / m->n) + random_below(&m->seed, D / m->n) : j;
        for (int64_t i = 0; i < D; i++)
            *entry(m, i, j) = (__builtin_parityll((unsigned long long)(i & column)) ? -1 : 1) / sqrt((double)D);
    }
    m->orthonormal = 1;
    return 0;
}

int quality_make_dct(quality_matrix *m, double unused)
{
    (void)unused;
    if (all_rows(m)) return 1;
    for (int64_t j = 0; j < m->n; j++)
        for (int64_t i = 0; i < D; i++)
            *entry(m, i, j) = sqrt((j ? 2.0 : 1.0) / D) * cos(pi * ((double)i + 0.5) * (double)j / D);
    m->orthonormal = 1;
    return 0;
}

/* Chebyshev's polynomials at points evenly apart: what they span are all polynomials of degree below n. */
int quality_make_polynomial(quality_matrix *m, double unused)
{
    (void)unused;
    if (all_rows(m)) return 1;
    for (int64_t j = 0; j < m->n; j++)
        for (int64_t i = 0; i < D; i++) *entry(m, i, j) = cos((double)j * acos((2.0 * (double)i + 1 - D) / D));
    return 0;
}

int quality_make_huge_row(quality_matrix *m, double factor)
{
    if (quality_make_gaussian(m, 0)) return 1;
    for (int64_t j = 0; j < m->n; j++) *entry(m, D / 3, j) *= factor;
    return 0;
}

/* Normal blocks of some columns on the diagonal. */
int quality_make_block_diagonal(quality_matrix *m, double width)
{
    const int64_t blocks = m->n / (int64_t)width, high = D / blocks;
    if (all_rows(m)) return 1;
    for (int64_t j = 0; j < m->n; j++)
        for (int64_t i = 0; i < high; i++) *entry(m, j / (int64_t)width * high + i, j) = random_normal(&m->seed);
    return 0;
}

/* A normal entry in column i mod n of row i, a dense last column, a dense first row as large as a column. */
int quality_make_arrowhead(quality_matrix *m, double unused)
{
    (void)unused;
    if (all_rows(m)) return 1;
    for (int64_t i = 0; i < D; i++) *entry(m, i, i % m->n) = random_normal(&m->seed);
    for (int64_t i = 0; i < D; i++) *entry(m, i, m->n - 1) += random_normal(&m->seed);
    for (int64_t j = 0; j < m->n; j++) *entry(m, 0, j) += sqrt((double)D / (double)m->n);
    return 0;
}

/* Every row so many times, far apart. */
int quality_make_copies(quality_matrix *m, double count)
{
    const int64_t different = D / (int64_t)count;
    if (all_rows(m)) return 1;
    for (int64_t j = 0; j < m->n; j++)
        for (int64_t i = 0; i < D; i++)
            *entry(m, i, j) = i < different ? random_normal(&m->seed) : *entry(m, i - different, j);
    return 0;
}

/* Two normal entries a row, in n times `rows` of d rows; 0: in all. */
int quality_make_two_nonzeros(quality_matrix *m, double rows)
{
    const int64_t count = rows > 0 ? (int64_t)(rows * (double)m->n) : D;
    if (quality_matrix_rows(m, rows > 0 ? 4 * D : D, count)) return 1;
    const int64_t apart = m->d / count;
    for (int64_t i = 0; i < count; i++) {
        m->rows[i] = i * apart + random_below(&m->seed, apart);
        const int64_t first = i % m->n, second = (first + 1 + random_below(&m->seed, m->n - 1)) % m->n;
        *entry(m, i, first) = random_normal(&m->seed);
        *entry(m, i, second) = random_normal(&m->seed);
    }
    return 0;
}

/* A category a row: the frequency of the j-th falls with 1 / j, or steeply, with 2^-j, so that most have one row. */
int quality_make_one_hot(quality_matrix *m, double steep)
{
    if (all_rows(m)) return 1;
    double sum = 0;
    for (int64_t j = 0; j < m->n; j++) sum += 1.0 / (double)(j + 1);
    int64_t *order = malloc(sizeof *order * D), at = 0;
    if (!order) return 1;
    for (int64_t i = 0; i < D; i++) order[i] = i;
    for (int64_t i = D - 1; i > 0; i--) {
        const int64_t other = random_below(&m->seed, i + 1), kept = order[i];
        order[i] = order[other], order[other] = kept;
    }
    for (int64_t j = m->n - 1; j >= 0; j--) {
        const double share = steep > 0 ? ldexp(1, -(int)(j < 60 ? j : 60) - 1) : 1.0 / ((double)(j + 1) * sum);
        const int64_t wanted = (int64_t)(share * D), all = D - at - j;
        const int64_t count = j == 0 || wanted > all ? all : wanted < 1 ? 1 : wanted;
        for (int64_t t = 0; t < count; t++) *entry(m, order[at++], j) = 1 / sqrt((double)count);
    }
    free(order);
    m->orthonormal = 1;
    return 0;
}

/* Counts of words whose frequencies fall with 1 / rank: rows are documents of 30 words and columns the n most frequent
 * terms, or rows are terms and columns documents of 500 words. */
int quality_make_words(quality_matrix *m, double by_term)
{
    const int64_t terms = by_term > 0 ? D : m->n;
    double sum = 0;
    if (all_rows(m)) return 1;
    for (int64_t t = 0; t < terms; t++) sum += 1.0 / (double)(t + 1);
    for (int64_t i = 0; i < D; i++) {
        const double length = by_term > 0 ? 500 : 30 * exp(0.5 * random_normal(&m->seed));
        for (int64_t j = 0; j < m->n; j++)
            *entry(m, i, j) = random_poisson(&m->seed, length / ((double)((by_term > 0 ? i : j) + 1) * sum));
    }
    return 0;
}

int quality_make_student(quality_matrix *m, double freedom)
{
    if (all_rows(m)) return 1;
    for (int64_t e = 0; e < D * m->n; e++) m->A[e] = random_student(&m->seed, freedom);
    return 0;
}

/* Normal rows whose sizes fall with a power of their rank, in random order. */
int quality_make_power_rows(quality_matrix *m, double exponent)
{
    if (quality_make_gaussian(m, 0)) return 1;
    for (int64_t i = 0; i < D; i++) {
        const double size = pow((double)D * random_uniform(&m->seed), -exponent);
        for (int64_t j = 0; j < m->n; j++) *entry(m, i, j) *= size;
    }
    return 0;
}

/* Half the columns normal, half unit rows, anywhere. */
int quality_make_mixed(quality_matrix *m, double unused)
{
    (void)unused;
    const int64_t half = m->n / 2, apart = D / half;
    if (all_rows(m)) return 1;
    for (int64_t e = 0; e < D * half; e++) m->A[e] = random_normal(&m->seed) / sqrt((double)D);
    for (int64_t j = half; j < m->n; j++) *entry(m, (j - half) * apart + random_below(&m->seed, apart), j) = 1;
    return 0;
}
