/* memory.h - the caller's allocator, or malloc. */
#ifndef FSI_BASE_ALLOC_H
#define FSI_BASE_ALLOC_H

#include "flashsketch.h"

/* The allocator to use: *given, or malloc and free when given is NULL or empty. */
fs_allocator fsi_allocator_or_malloc(const fs_allocator *given);

#endif
