/* tuning.h - tables of measured choices, which fs_choose asks before its rules.
 *
 * A table is a text file: a line that says of which GPU it is, then a line for each entry, the problem and the plan
 * that was best for it.  `fsbench tune` writes it, a context reads it ($FLASHSKETCH_TUNING).  A table that was edited
 * by hand may be slow, never wrong: an entry whose plan is not sound (choose.h) is refused. */
#ifndef FS_CUDA_TUNING_H
#define FS_CUDA_TUNING_H

#include <stddef.h>
#include <stdio.h>

#include "choose.h"

#ifdef __cplusplus
extern "C" {
#endif

void fs_tuning_write_head(FILE *to, const char *gpu_name);
void fs_tuning_write(FILE *to, const fs_problem *problem, const fs_plan *plan);

/* Reads a table; NULL, with what is wrong in `why`, if the file cannot be read or is none.  free() releases it. */
fs_tuning *fs_tuning_read(const char *path, char *why, size_t bytes);

/* The plan of a problem; 0 if the table has none. */
int fs_tuning_find(const fs_tuning *table, const fs_problem *p, fs_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
