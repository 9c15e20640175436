/* memory.h - the caller's allocator, or malloc. */
#ifndef FS_CORE_MEMORY_H
#define FS_CORE_MEMORY_H

#include "flashsketch.h"

/* The allocator to use: *given, or malloc and free when given is NULL or empty. */
fs_allocator fs_allocator_or_malloc(const fs_allocator *given);

#endif
