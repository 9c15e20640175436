/* choices.h - what is chosen for gradients where a sketch leaves it open. */
#ifndef FSI_ATTRIBUTION_CHOICES_H
#define FSI_ATTRIBUTION_CHOICES_H

#include "flashsketch.h"

/* Coordinates are shuffled in whole lines of 32: gradients come sample by sample, and a GPU reads lines at the speed of
 * its memory (H200, batches of 512, masks of 4 k: two thirds to four fifths of the time of dealt rows). */
static inline void grass_choose_shuffle(fs_spec *sketch)
{
    if ((sketch->family != 0 && sketch->family != FS_BLOCKPERM) || sketch->shuffle != 0) return;
    sketch->shuffle = FS_SHUFFLE_GROUPS;
    if (sketch->interleave == 0) sketch->interleave = 1;
}

#endif
