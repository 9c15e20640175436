/* multiply.h - Y = S A for the matrix of a command.
 *
 * A dense A is a view of its file, whatever its order, and is multiplied a panel at a time: rows, added to Y, or
 * columns where those are contiguous.  A panel's pages are used while they are fresh: A may be larger than memory. */
#ifndef FSI_CLI_MULTIPLY_H
#define FSI_CLI_MULTIPLY_H

#include "input.h"

/* Y = S[:, row0 : row0 + d] A, Y being k x n wherever fs_apply takes it.  spec is S's full one.  Returns 0, or
 * EXIT_FAILURE after saying why not. */
int multiply(fs_context *ctx, const fs_sketch *S, const fs_spec *spec, const input *in, int64_t row0,
             const fs_matrix *Y, progress *bar);

/* A context to multiply `in` with: the CPU's for a sparse matrix.  Returns as multiply. */
int multiply_context(const input *in, const fs_context_options *where, fs_context **ctx);

#endif
