/* coherence.h - how unevenly the range of A lies on the blocks of a BlockPerm-SJLT (the paper, section 6).
 *
 * U is an orthonormal basis of the range, U_h its rows in input block h:
 *     mu_blk = M max_h |U_h|_2^2,    mu_nbr = (M / kappa) max_g |U_N(g)|_2^2,
 * N(g) the kappa input blocks that output block g reads.  Both are 1 where the range lies evenly; mu_blk is at most M,
 * mu_nbr at most M / kappa and between mu_blk / kappa and mu_blk. */
#ifndef FLASHSKETCH_CLI_COHERENCE_H
#define FLASHSKETCH_CLI_COHERENCE_H

#include "def.h"
#include "input.h"

enum { COHERENCE_MAX_COLS = 4096 }; /* the work is about 4 d n^2 */

typedef struct coherence {
    int64_t rank;
    double blk, nbr;
    int64_t block, neighbourhood; /* h and g of the largest ones */
} coherence;

/* Measures A, d x n, n at most COHERENCE_MAX_COLS, under the sketch B of kappa permutations.  Columns that are within
 * about 1e-6 of the span of others count as dependent.  Norms are right to a relative 1e-6 or better.  Takes 8 d n
 * bytes.  Returns 0, or EXIT_FAILURE after saying why not. */
int coherence_measure(const input *in, const fs_blockperm *B, int64_t kappa, progress *bar, coherence *out);

#endif
