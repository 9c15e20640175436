/* tuning.h - tables of measured choices, which have precedence over the rules of fsi_choose.
 *
 * A table is a text file: a line that names the GPU, then a line for each entry, the problem and the plan that was best
 * for it.  `fsbench tune` writes it (tune/candidates.h), a context reads it ($FLASHSKETCH_TUNING).  A table that was
 * edited by hand may be slow, never wrong: an entry whose plan is not sound (plan.h) is rejected. */
#ifndef FSI_CUDA_PLAN_TUNING_H
#define FSI_CUDA_PLAN_TUNING_H

#include <stddef.h>

#include "cuda/plan/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a table; NULL, with an error message in `why`, if the file cannot be read or is not a table.  free() releases
 * it. */
fsi_tuning *fsi_tuning_read(const char *path, char *why, size_t bytes);

/* The plan of a problem; 0 if the table has none. */
int fsi_tuning_find(const fsi_tuning *table, const fsi_problem *p, fsi_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
