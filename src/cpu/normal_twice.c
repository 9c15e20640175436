/* normal_twice.c - W += A'(A P - B) of a dense f64 A in one read, with sums of twice the precision.
 *
 * In its last steps a solver corrects x by the gradient A'(b - A x).  In f64 sums the gradient errs by about
 * |A| |r| u / 10, u = 2^-53, which the correction multiplies by A's condition and spreads over all directions: backward
 * errors then stay near 1e-15 for conditions of 1e9 to 1e11, where LAPACK's are 2e-16 (docs/solvers.md).  Twice the
 * precision costs ten operations an element instead of two, in the few reads that compute a true residual.
 *
 * Strips and steps are those of normal.c: the result does not depend on the number of threads. */
#include <omp.h>
#include <string.h>

#include "cpu/cpu.h"

enum { ROWS = 8 }; /* of a step */

typedef struct pass {
    const fsi_cpu_ops *ops;
    const fs_matrix *A, *B;
    int64_t n, m, strips;
    const double *P, *zeros; /* the low parts of P */
    double *sums;            /* of each strip: m x n high parts, m x n low parts, m squares */
    double *scratch;         /* of each thread: per_thread doubles */
    int64_t per_thread;
} pass;

static const double *element_at(const fs_matrix *A, int64_t i, int64_t j)
{
    return (const double *)A->data + i * A->row_stride + j * A->col_stride;
}

/* hi + lo += x */
static void add(double x, double *hi, double *lo)
{
    const double sum = *hi + x, added = sum - *hi;
    *lo += (*hi - (sum - added)) + (x - added);
    *hi = sum;
}

/* u = A P_c - B_c of `count` rows from row i on becomes exact, and its square is added. */
static void subtract(const pass *p, int64_t c, int64_t i, int64_t count, double *uh, double *ul, double *square)
{
    const fs_matrix *B = p->B;
    for (int64_t r = 0; r < count; r++) {
        add(-fsi_load(B->data, B->dtype, (i + r) * B->row_stride + c * B->col_stride), &uh[r], &ul[r]);
        const double u = uh[r] + ul[r];
        ul[r] -= u - uh[r];
        uh[r] = u;
        *square += u * u;
    }
}

/* A step of rows that are contiguous; A's own, or copied to `copy`. */
static void step_by_rows(const pass *p, int64_t i, int64_t count, double *strip, double *scratch)
{
    const fs_matrix *A = p->A;
    const int64_t n = p->n, m = p->m;
    double *uh = scratch, *ul = uh + ROWS, *copy = ul + ROWS;
    const double *rows = element_at(A, i, 0);
    int64_t pitch = A->row_stride;
    if (A->col_stride != 1 && n > 1) {
        for (int64_t r = 0; r < count; r++)
            for (int64_t j = 0; j < n; j++) copy[r * n + j] = *element_at(A, i + r, j);
        rows = copy, pitch = n;
    }
    for (int64_t c = 0; c < m; c++) {
        double *hi = strip + c * n, *lo = hi + m * n;
        p->ops->row_dots_twice(count, n, rows, pitch, p->P + c * n, p->zeros, uh, ul);
        subtract(p, c, i, count, uh, ul, strip + 2 * m * n + c);
        p->ops->row_sums_twice(count, n, rows, pitch, uh, ul, hi, lo);
    }
}

static void run_strip(const pass *p, int64_t number, double *scratch)
{
    const int64_t rows = p->A->rows, begin = rows * number / p->strips, end = rows * (number + 1) / p->strips;
    double *strip = p->sums + number * (2 * p->m * p->n + p->m);
    for (int64_t i = begin; i < end; i += ROWS) step_by_rows(p, i, fsi_min(ROWS, end - i), strip, scratch);
}

static void add_strips(const pass *p, double *W, double *squares)
{
    const int64_t count = p->m * p->n, each = 2 * count + p->m;
    for (int64_t i = 0; i < count; i++) {
        double hi = 0, lo = 0;
        for (int64_t s = 0; s < p->strips; s++) {
            add(p->sums[s * each + i], &hi, &lo);
            lo += p->sums[s * each + count + i];
        }
        W[i] += hi + lo;
    }
    for (int64_t s = 0; s < p->strips; s++)
        for (int64_t c = 0; c < p->m; c++) squares[c] += p->sums[s * each + 2 * count + c];
}

fs_result fsi_cpu_normal_twice(fsi_cpu *cpu, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B,
                               double *W, double *squares)
{
    const int64_t n = A->cols, threads = cpu->threads, strips = fsi_cpu_strips(A->rows, 2 * m * n);
    const int64_t sums = strips * (2 * m * n + m);
    pass p = {.ops = cpu->ops, .A = A, .B = B, .n = n, .m = m, .strips = strips, .P = P};
    p.per_thread = 2 * ROWS + ROWS * n;
    if (!A->rows || !m) return FS_OK;
    double *memory = fsi_cpu_scratch(cpu, (sums + n + threads * p.per_thread) * (int64_t)sizeof *memory);
    if (!memory) return FS_ENOMEM;
    p.sums = memory;
    p.zeros = memory + sums;
    p.scratch = memory + sums + n;
    memset(memory, 0, (size_t)(sums + n) * sizeof *memory);
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
    for (int64_t s = 0; s < strips; s++) run_strip(&p, s, p.scratch + omp_get_thread_num() * p.per_thread);
    add_strips(&p, W, squares);
    return FS_OK;
}
