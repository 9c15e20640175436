/* threads.h - whether the system can create threads; fs_thread_count is public, in flashsketch.h. */
#ifndef FS_CORE_THREADS_H
#define FS_CORE_THREADS_H

#include "flashsketch.h"

/* How many of `count` threads with default stacks, at most FS_THREADS_MAX, the system creates beside the calling
 * one, all alive at once.  They do nothing and have ended on return. */
int fs_threads_possible(int count);

#endif
