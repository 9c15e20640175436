/* exact.h - --exact: a task's result is compared with A itself, which is read again. */
#ifndef FSI_CLI_EXACT_H
#define FSI_CLI_EXACT_H

#include "task.h"

/* A panel as a dense matrix: a view; a sparse one is written out into *copy, which the caller frees.  Returns 0, or
 * EXIT_FAILURE after printing that there is no memory. */
int exact_dense(const char *name, const fs_panel *panel, fs_matrix *dense, void **copy);

/* rows x cols zeros in f64 for the matrix of this name, which the caller frees; NULL after printing that there is no
 * memory. */
double *exact_zeros(const char *name, int64_t rows, int64_t cols);

/* All of a matrix in files, d x n packed rows of f64, added to `to`, which holds zeros.  Returns as exact_dense. */
int exact_gather(sketching *s, fs_context *ctx, double *to);

/* Checks before the work whether the comparison is possible: residuals are summed over panels of whole rows, all else
 * needs A at once.  Returns 0, or EXIT_FAILURE after printing why not. */
int exact_possible(task *t);

/* |A X - B| over all right-hand sides; B is held in memory as f64.  Returns 0, or EXIT_FAILURE after printing why not. */
int exact_residual(task *t, const fs_matrix *X, double *residual);

#endif
