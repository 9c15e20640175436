/* random.h - the experiment's random numbers: Philox of src/def, each word at an address.
 *
 * Tags begin far above those of S, so that an experiment and its sketches may share a seed.  0x6004 is the library's:
 * the mask of fs_attribution. */
#ifndef FSI_APPS_GRASS_RANDOM_H
#define FSI_APPS_GRASS_RANDOM_H

#include <stdlib.h>

#include "def/permute.h"

enum grass_tag {
    GRASS_TAG_INIT = 0x6000,           /* parameters before training */
    GRASS_TAG_ORDER = 0x6001,          /* the order of the examples in an epoch */
    GRASS_TAG_DROPOUT = 0x6002,        /* which units are dropped in a step */
    GRASS_TAG_SUBSET = 0x6003,         /* the training examples of a model */
    GRASS_TAG_SPLIT = 0x6005,          /* which test examples choose the damping */
    GRASS_TAG_BOOTSTRAP = 0x6006,      /* the test examples of a bootstrap sample, ... */
    GRASS_TAG_BOOTSTRAP_SEEDS = 0x6007 /* ... and its seeds */
};

/* Uniform on (-1, 1), 24 bits, symmetric about 0. */
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

#endif
