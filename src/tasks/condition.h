/* condition.h - the condition number of a triangle in the backend's memory, and its inverse. */
#ifndef FSI_TASKS_CONDITION_H
#define FSI_TASKS_CONDITION_H

#include "tasks/operand.h"

/* *inverse = T^-1 of a lower triangle T, n x n, columns ld apart: packed, zeros above, the caller's to free. */
fs_result fsi_invert(fsi_operand *A, int64_t n, const double *T, int64_t ld, double **inverse);

/* to = T X, T a lower triangle of n x n with zeros above, X and `to` n x count, all packed. */
fs_result fsi_multiply_triangle(fsi_operand *A, int64_t n, int64_t count, const double *T, const double *X, double *to);

/* The condition of T = L, or (`scaled`) of L with each row divided by its length, so that the lengths of the columns of
 * R = L' do not count.  Of n x n, lower, columns ld apart, zeros above.  Estimated by power iterations from a fixed start
 * and shared over ranks: up to a third low, infinite where T is singular.  `inverse`, where not NULL, is
 * L^-1 already or NULL, which becomes L^-1: the caller's to free, also after a failure. */
fs_result fsi_condition(fsi_operand *A, int64_t n, double *L, int64_t ld, int scaled, double *condition,
                        double **inverse);

#endif
