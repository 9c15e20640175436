/* alloc.c - memory from the caller's allocator, or from malloc. */
#include "flashsketch_extend.h"

#include <stdlib.h>

static void *plain_alloc(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}
static void plain_release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

fs_allocator fs_allocator_or_malloc(const fs_allocator *given)
{
    if (given && given->alloc) return *given;
    const fs_allocator plain = {plain_alloc, plain_release, NULL};
    return plain;
}
