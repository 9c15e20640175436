/* scarce.h - an allocator that fails after a number of allocations and counts what is live.  Without cmocka, so that the
 * programs of tests/mpi can use it. */
#ifndef FSI_TESTS_SUPPORT_SCARCE_H
#define FSI_TESTS_SUPPORT_SCARCE_H

#include <stdlib.h>

#include <flashsketch.h>

typedef struct scarce {
    int left; /* allocations that still succeed */
    int live; /* allocations that were not released */
} scarce;

static inline void *scarce_alloc(void *user, size_t bytes)
{
    scarce *s = user;
    if (s->left-- <= 0) return NULL;
    s->live++;
    return malloc(bytes);
}

static inline void scarce_release(void *user, void *memory)
{
    ((scarce *)user)->live--;
    free(memory);
}

/* For the options of a context, a group of contexts or ranks; s must outlive them. */
static inline fs_allocator scarce_allocator(scarce *s) { return (fs_allocator){scarce_alloc, scarce_release, s}; }

#endif
