/* multi.h - the contexts of an fs_multi, for what is built on several of them. */
#ifndef FSI_CORE_MULTI_H
#define FSI_CORE_MULTI_H

#include "flashsketch.h"

/* Returns their number and sets *contexts to them, *allocator to that of the options. */
int fsi_multi_contexts(const fs_multi *multi, fs_context *const **contexts, fs_allocator *allocator);

#endif
