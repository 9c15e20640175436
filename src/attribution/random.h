/* random.h - where the experiment's random numbers come from: Philox of src/def, each word at an address.
 *
 * Tags begin far above those of S, so that an experiment and its sketches may share a seed. */
#ifndef FSI_ATTRIBUTION_RANDOM_H
#define FSI_ATTRIBUTION_RANDOM_H

#include <stdlib.h>

#include "def/permute.h"

enum grass_tag {
    GRASS_TAG_INIT = 0x6000,  /* parameters before training */
    GRASS_TAG_ORDER,          /* the order of the examples in an epoch */
    GRASS_TAG_DROPOUT,        /* which units are dropped in a step */
    GRASS_TAG_SUBSET,         /* the training examples of a model */
    GRASS_TAG_MASK,           /* the coordinates of a gradient that are kept */
    GRASS_TAG_SPLIT,          /* which test examples choose the damping */
    GRASS_TAG_BOOTSTRAP,      /* the test examples of a bootstrap sample, ... */
    GRASS_TAG_BOOTSTRAP_SEEDS /* ... and its seeds */
};

/* Uniform on (-1, 1), 24 bits, the same distance to both ends. */
static inline float grass_uniform(uint32_t word)
{
    return (float)((int32_t)(word >> 8) * 2 - (1 << 24) + 1) * 0x1p-24f;
}

static inline int grass_ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The first `count` of a random permutation of [n], ascending; number `which` of a seed. */
static inline void grass_choose(uint64_t seed, uint32_t tag, uint32_t which, int64_t n, int64_t count, int64_t *chosen)
{
    const fsi_bijection P = fsi_bijection_make(seed, tag, which, (uint64_t)n);
    for (int64_t i = 0; i < count; i++) chosen[i] = (int64_t)fsi_permute(&P, (uint64_t)i);
    qsort(chosen, (size_t)count, sizeof *chosen, grass_ascending);
}

/* `mask` of `all` coordinates, ascending, in runs of `run` neighbours that begin at multiples of it.  The mask is whole
 * runs; coordinates at the end of all that make none are not kept. */
static inline void grass_choose_mask(uint64_t seed, int64_t all, int64_t mask, int64_t run, int64_t *chosen)
{
    grass_choose(seed, GRASS_TAG_MASK, 0, all / run, mask / run, chosen);
    for (int64_t i = mask - 1; i >= 0; i--) chosen[i] = chosen[i / run] * run + i % run;
}

#endif
