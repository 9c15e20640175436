/* multi.h - the contexts of an fs_multi, for what is built on several of them. */
#ifndef FSI_CORE_MULTI_H
#define FSI_CORE_MULTI_H

#include "flashsketch.h"

/* Their number; *contexts are they, *allocator is of the options. */
int fsi_multi_contexts(const fs_multi *multi, fs_context *const **contexts, fs_allocator *allocator);

#endif
