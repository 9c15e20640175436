/* gram.c - X'X by tiles: 128 rows of X at a time are repacked into strips of 16 columns, and every pair of strips
 * gives a 16 x 16 tile of G.  Two strips are 16 kB and stay in the first-level cache; a part of 4 x 8 sums stays in
 * registers.  Padding with zeros removes the edges. */
#include "gram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STRIP = 16, TALL = 128, HIGH = 4, WIDE = 8, LANES = 4 };
/* What every processor we know has; a wider one would be split by gcc through memory, ten times slower. */
typedef float lane __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float))));

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* panel[strip][row][column in the strip] = X[row0 + row][STRIP strip + column]; `panel` was zeroed once. */
static void pack(const float *X, int64_t row0, int64_t rows, int64_t cols, float *panel)
{
#pragma omp for
    for (int64_t strip = 0; strip < (cols + STRIP - 1) / STRIP; strip++) {
        const int64_t width = least(STRIP, cols - strip * STRIP);
        for (int64_t r = 0; r < rows; r++)
            memcpy(panel + (strip * TALL + r) * STRIP, X + (row0 + r) * cols + strip * STRIP,
                   (size_t)width * sizeof *X);
    }
}

/* G[i0 + p][j0 + q] += sum over r of a[r][p] b[r][q], for the part of the tile inside the matrix. */
static void tile(const float *a, const float *b, int64_t rows, double *G, int64_t i0, int64_t j0, int64_t n)
{
    for (int64_t p0 = 0; p0 < STRIP && i0 + p0 < n; p0 += HIGH)
        for (int64_t q0 = 0; q0 < STRIP && j0 + q0 < n; q0 += WIDE) {
            lane sum[HIGH][WIDE / LANES] = {{{0}}};
            for (int64_t r = 0; r < rows; r++)
                for (int p = 0; p < HIGH; p++)
                    for (int v = 0; v < WIDE / LANES; v++)
                        sum[p][v] += a[r * STRIP + p0 + p] * *(const lane *)(b + r * STRIP + q0 + v * LANES);
            float total[HIGH][WIDE];
            memcpy(total, sum, sizeof total);
            for (int64_t p = 0; p < least(HIGH, n - i0 - p0); p++)
                for (int64_t q = 0; q < least(WIDE, n - j0 - q0); q++)
                    G[(i0 + p0 + p) * n + j0 + q0 + q] += (double)total[p][q];
        }
}

int gram(const float *X, int64_t rows, int64_t cols, double *G)
{
    const int64_t strips = (cols + STRIP - 1) / STRIP;
    float *panel = calloc((size_t)strips, TALL * STRIP * sizeof *panel);
    if (!panel) return -1;
    memset(G, 0, (size_t)(cols * cols) * sizeof *G);
#pragma omp parallel
    for (int64_t row0 = 0; row0 < rows; row0 += TALL) {
        const int64_t now = least(TALL, rows - row0);
        pack(X, row0, now, cols, panel);
#pragma omp for schedule(dynamic)
        for (int64_t j = 0; j < strips; j++)
            for (int64_t i = 0; i <= j; i++)
                tile(panel + i * TALL * STRIP, panel + j * TALL * STRIP, now, G, i * STRIP, j * STRIP, cols);
    }
    free(panel);
    return 0;
}

double gram_error(const double *H, const double *G, int64_t n)
{
    double apart = 0, whole = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) {
            const double weight = i == j ? 1 : 2, gap = H[i * n + j] - G[i * n + j];
            apart += weight * gap * gap;
            whole += weight * G[i * n + j] * G[i * n + j];
        }
    return sqrt(apart / whole);
}
