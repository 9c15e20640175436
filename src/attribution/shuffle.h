/* shuffle.h - the shuffle of a sketch of gradients, where the spec leaves it open. */
#ifndef FSI_ATTRIBUTION_SHUFFLE_H
#define FSI_ATTRIBUTION_SHUFFLE_H

#include "flashsketch.h"

/* Coordinates are shuffled in whole row groups of 32: gradients come sample by sample, and a GPU reads groups at the
 * bandwidth of its memory, in less time than shuffled rows (docs/attribution.md). */
static inline void fsi_choose_shuffle(fs_spec *sketch)
{
    if ((sketch->family != 0 && sketch->family != FS_BLOCKPERM) || sketch->shuffle != 0) return;
    sketch->shuffle = FS_SHUFFLE_GROUPS;
    if (sketch->interleave == 0) sketch->interleave = 1;
}

#endif
