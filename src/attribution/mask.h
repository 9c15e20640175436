/* mask.h - which coordinates of a gradient are kept: a random choice, by the Philox words of src/def. */
#ifndef FSI_ATTRIBUTION_MASK_H
#define FSI_ATTRIBUTION_MASK_H

#include <stdlib.h>

#include "def/permute.h"

enum { FSI_TAG_MASK = 0x6004 }; /* far above the tags of S, so that a mask and its sketch may share a seed */

static inline int fsi_mask_ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* `mask` of `all` coordinates, ascending, in runs of `run` neighbours that begin at multiples of it.  The mask is whole
 * runs; coordinates after the last whole run are not kept. */
static inline void fsi_mask_choose(uint64_t seed, int64_t all, int64_t mask, int64_t run, int64_t *chosen)
{
    const fsi_bijection P = fsi_bijection_make(seed, FSI_TAG_MASK, 0, (uint64_t)(all / run));
    for (int64_t i = 0; i < mask / run; i++) chosen[i] = (int64_t)fsi_permute(&P, (uint64_t)i);
    qsort(chosen, (size_t)(mask / run), sizeof *chosen, fsi_mask_ascending);
    for (int64_t i = mask - 1; i >= 0; i--) chosen[i] = chosen[i / run] * run + i % run;
}

#endif
