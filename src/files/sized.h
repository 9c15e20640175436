/* sized.h - public structs that begin with their size: callers of an older header pass a smaller one, callers of a newer
 * one a larger one. */
#ifndef FSI_FILES_SIZED_H
#define FSI_FILES_SIZED_H

#include <string.h>

#include "base/error.h"

/* Copies a caller's options over the defaults in *full, a struct of `known` bytes.  A larger struct is accepted where
 * the members that this library does not know are 0.  `who` and `init` are for the message. */
static inline fs_result sized_read(const char *who, const char *init, const void *given, void *full, size_t known)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    FSI_REQUIRE(size >= sizeof size, "%s: size is %zu; start from %s", who, size, init);
    for (size_t i = known; i < size; i++)
        FSI_REQUIRE(!((const char *)given)[i],
                    "%s: size is %zu, and byte %zu is not 0; this library knows %zu bytes: start from %s", who, size, i,
                    known, init);
    memcpy(full, given, size < known ? size : known);
    return FS_OK;
}

/* Copies what a call returns, `known` bytes, to a caller's struct, as far as that goes.  Its size stays. */
static inline fs_result sized_write(const char *who, const char *init, void *given, const void *full, size_t known)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    FSI_REQUIRE(size >= sizeof size, "%s: size is %zu; start from %s", who, size, init);
    memcpy((char *)given + sizeof size, (const char *)full + sizeof size,
           (size < known ? size : known) - sizeof size);
    return FS_OK;
}

#endif
