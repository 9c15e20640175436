/* gaussian.c - the distribution of a dense Gaussian S, k x d, on n orthonormal columns.
 *
 * S Q is k x n of i.i.d. N(0, 1 / k), whatever Q.  k (S Q)'S Q has the eigenvalues of B B', B lower bidiagonal of
 * independent chi's: k, k - 1, ..., k - n + 1 degrees of freedom on the diagonal, n - 1, ..., 1 below it (Dumitriu and
 * Edelman, "Matrix models for beta ensembles", 2002): n^2 operations a draw.  S r is independent of S Q, so that |y|^2
 * is the sum of g_i^2 / (k lambda_i) over the eigenvalues, g normal. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "quality.h"
#include "random.h"

/* One draw; diagonal and beside have n entries. */
static int draw_one(const lapack *l, int64_t n, int64_t k, uint64_t seed, double *diagonal, double *beside,
                    quality_draw *draw)
{
    const int order = (int)n;
    uint64_t state = seed * 0xD1342543DE82EF95u + (uint64_t)(n << 32 ^ k);
    double above = 0, left = 0, sum = 0;
    int info;
    for (int64_t i = 0; i < n; i++) {
        const double on = random_chi(&state, (double)(k - i));
        diagonal[i] = (on * on + left * left) / (double)k;
        if (i) beside[i - 1] = left * above / (double)k;
        above = on, left = i + 1 < n ? random_chi(&state, (double)(n - 1 - i)) : 0;
    }
    l->f64.sterf(&order, diagonal, beside, &info);
    for (int64_t i = 0; i < n; i++) {
        const double g = random_normal(&state);
        sum += g * g / ((double)k * diagonal[i]);
    }
    const double low = 1 - diagonal[0], high = diagonal[n - 1] - 1;
    *draw = (quality_draw){low > high ? low : high, diagonal[0], sqrt(1 + sum)};
    return info != 0;
}

int quality_gaussian(const lapack *l, int64_t n, int64_t k, int64_t draws, int threads, quality_summary *out)
{
    double *values = malloc(sizeof *values * (size_t)(3 * draws));
    double *memory = malloc(sizeof *memory * (size_t)(2 * n * threads));
    double *smallest = values + draws, *residual = smallest + draws;
    int failed = !values || !memory;
    *out = (quality_summary){.draws = draws};
    if (!failed) {
#pragma omp parallel for num_threads(threads) schedule(static) reduction(| : failed)
        for (int64_t i = 0; i < draws; i++) {
            double *mine = memory + 2 * n * omp_get_thread_num();
            quality_draw draw = {0};
            failed |= draw_one(l, n, k, (uint64_t)i, mine, mine + n, &draw);
            values[i] = draw.error, smallest[i] = draw.smallest, residual[i] = draw.residual;
        }
        double squares = 0;
        for (int64_t i = 0; i < draws; i++)
            out->mean += values[i] / (double)draws, out->residual += residual[i] / (double)draws;
        for (int64_t i = 0; i < draws; i++) squares += (values[i] - out->mean) * (values[i] - out->mean);
        out->deviation = sqrt(squares / (double)(draws - 1));
        out->p95 = quality_quantile(values, draws, 0.95);
        out->smallest = quality_quantile(smallest, draws, 0.5);
        out->residual_p95 = quality_quantile(residual, draws, 0.95);
    }
    if (failed) fprintf(stderr, "fsbench: the Gaussian's distribution cannot be drawn\n");
    free(values);
    free(memory);
    return failed;
}
