/* gram.h - Gram matrices, the yardstick of a sketch: S is good when (SA)'(SA) is close to A'A. */
#ifndef FSI_CLI_GRAM_H
#define FSI_CLI_GRAM_H

#include <stdint.h>

/* G = X'X for a row-major rows x cols X, in the upper triangle of the cols x cols G; what is below is undefined.
 * Sums of 128 rows are made in f32, their sums in f64: the relative error is below 1e-5.  Uses all OpenMP threads.
 * Returns 0, or -1 when there is no memory for its 512 cols bytes. */
int gram(const float *X, int64_t rows, int64_t cols, double *G);

/* |H - G|_F / |G|_F of two symmetric n x n matrices given by their upper triangles. */
double gram_error(const double *H, const double *G, int64_t n);

#endif
