/* threads.h - whether the system can create threads; fs_thread_count is public, in flashsketch_extend.h. */
#ifndef FSI_BASE_THREADS_H
#define FSI_BASE_THREADS_H

#include "flashsketch_extend.h"

/* How many of `count` threads with default stacks, at most FS_THREADS_MAX, the system creates beside the calling
 * one, all alive at once.  They do nothing and have ended on return. */
int fsi_threads_possible(int count);

#endif
