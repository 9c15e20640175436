/* candidates.h - what `fsbench tune` and the tests need besides the choice: plans to try, and tables to write.
 *
 * Not part of the plugin. */
#ifndef FSI_CUDA_PLAN_TUNE_CANDIDATES_H
#define FSI_CUDA_PLAN_TUNE_CANDIDATES_H

#include <stdio.h>

#include "cuda/plan/plan.h"

/* The plans worth trying for a matrix, at most `room`; returns how many. */
int fsi_choose_candidates(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plans, int room);

/* The first line of a tuning table, and an entry (tuning.h). */
void fsi_tuning_write_head(FILE *to, const char *gpu_name);
void fsi_tuning_write(FILE *to, const fsi_problem *problem, const fsi_plan *plan);

#endif
