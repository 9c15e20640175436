/* embedding.h - the embedding error to expect of a sketch: fs_ose_report.error before there is a matrix. */
#ifndef FSI_TASKS_EMBEDDING_H
#define FSI_TASKS_EMBEDDING_H

#include <stdint.h>

#include "def/def.h"

/* Errors of one kappa, s and height of blocks where n scattered rows of A outweigh all others: a line of the table in
 * embedding.c. */
typedef struct fsi_concentrated fsi_concentrated;

/* The line for a full spec of blockperm or sjlt: the best that it is at least as good as.  NULL: it has fewer than four
 * nonzeros in a column, or more than ceil(k / 64) blocks. */
const fsi_concentrated *fsi_concentrated_line(const fsi_def_spec *p);

/* The factor on the error of a Gaussian S; tail: 0 for the mean, 1 for the error exceeded with probability 0.05, in
 * between and beyond in proportion to the logarithm of the probability. */
double fsi_concentrated_factor(const fsi_concentrated *line, double k, double n, double tail);

/* W of Tracy and Widom's distribution of real matrices: its mean, and w with P(W > w) = p. */
static const double FSI_TRACY_WIDOM_MEAN = -1.2065;
double fsi_tracy_widom_quantile(double p);

/* The error where W is w, with n rows that outweigh all others (a line of the table, and `tail`) or none (NULL).  It falls
 * with k and does not fall with n. */
double fsi_embedding_error(int64_t k, int64_t n, double w, double tail, const fsi_concentrated *line);

#endif
