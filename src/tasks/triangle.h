/* triangle.h - small triangular matrices in host memory: condition, pivots and rank. */
#ifndef FSI_TASKS_TRIANGLE_H
#define FSI_TASKS_TRIANGLE_H

#include <stdint.h>

/* The condition of a lower triangle L (n x n, column-major, packed), estimated by power iterations from a fixed start;
 * infinite where it is singular.  `scaled`: each row of L divided by its length first, so that the lengths of the
 * columns of R = L' do not count.  work: 3 n numbers. */
double fsi_triangle_condition(int64_t n, const double *L, int scaled, double *work);

/* QR with column pivots (Businger and Golub) of R, n x n, column-major, packed: R becomes the upper triangle of R(:,
 * pivots), zeros below, its diagonal not negative.  work: 3 n numbers. */
void fsi_triangle_pivot(int64_t n, double *R, int64_t *pivots, double *work);

/* How many diagonal entries of a pivoted R are above rcond times the first. */
int64_t fsi_triangle_rank(int64_t n, const double *R, double rcond);

#endif
