/* failing_malloc.h - malloc and calloc that fail after a number of calls, for code that takes no allocator.
 *
 * For one file of a program that is linked with -Wl,--wrap=malloc -Wl,--wrap=calloc; libraries that are linked
 * dynamically keep their own.  Further functions (realloc, strdup ...) are wrapped in that file, over is_out(). */
#ifndef FSI_TESTS_SUPPORT_FAILING_MALLOC_H
#define FSI_TESTS_SUPPORT_FAILING_MALLOC_H

#include <stdatomic.h>
#include <stddef.h>

static atomic_int left = -1; /* calls that still succeed; negative: all.  Atomic: a stream's thread allocates too */

/* Counts a call; whether it fails. */
static int is_out(void)
{
    int now = left;
    while (now > 0 && !atomic_compare_exchange_weak(&left, &now, now - 1)) continue;
    return now == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size) { return is_out() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return is_out() ? NULL : __real_calloc(count, size); }

#endif
