/* exact.h - --exact: what a task's result is compared with, A itself, which is read again. */
#ifndef FSI_CLI_EXACT_H
#define FSI_CLI_EXACT_H

#include "task.h"

/* A panel as a dense matrix: a view; a sparse one is written out into *copy, which the caller frees.  Returns 0, or
 * EXIT_FAILURE after printing that there is no memory. */
int exact_dense(const char *name, const fs_panel *panel, fs_matrix *dense, void **copy);

/* Whether A can be compared with, before the work: residuals add up over panels of whole rows, and all else takes A at
 * once.  Returns 0, or EXIT_FAILURE after printing why not. */
int exact_possible(task *t);

/* |A X - B| over all right-hand sides; B is held in memory as f64.  Returns 0, or EXIT_FAILURE after printing why not. */
int exact_residual(task *t, const fs_matrix *X, double *residual);

#endif
