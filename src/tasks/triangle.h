/* triangle.h - small triangular matrices in host memory: pivots and rank. */
#ifndef FSI_TASKS_TRIANGLE_H
#define FSI_TASKS_TRIANGLE_H

#include <stdint.h>

/* QR with column pivots (Businger and Golub) of R, n x n, column-major, packed: R becomes the upper triangle of R(:,
 * pivots), zeros below, its diagonal not negative.  work: 3 n numbers. */
void fsi_triangle_pivot(int64_t n, double *R, int64_t *pivots, double *work);

/* How many diagonal entries of a pivoted R are above rcond times the first. */
int64_t fsi_triangle_rank(int64_t n, const double *R, double rcond);

#endif
