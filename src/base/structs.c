/* structs.c - structs that begin with their size, read from and written for programs of older and newer headers. */
#include <string.h>

#include "base/error.h"

/* A larger size is not one of a newer header but memory that was not set. */
enum { MOST_BYTES = 4096 };

fs_result fs_struct_check(const char *who, const char *name, const void *given, size_t known)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    FSI_REQUIRE(size >= sizeof size && size <= MOST_BYTES,
                "%s: %s.size is %zu, it must be from %zu to %d; start from the INIT macro", who, name, size,
                sizeof size, MOST_BYTES);
    for (size_t i = known; i < size; i++)
        FSI_REQUIRE(
            ((const unsigned char *)given)[i] == 0,
            "%s: %s has %zu bytes, and its byte %zu is set: this library knows %zu bytes, a newer one is needed", who,
            name, size, i, known);
    return FS_OK;
}

fs_result fs_struct_read(const char *who, const char *name, const void *given, void *full, size_t known)
{
    size_t size;
    FSI_TRY(fs_struct_check(who, name, given, known));
    memcpy(&size, given, sizeof size);
    memcpy((char *)full + sizeof size, (const char *)given + sizeof size, (size < known ? size : known) - sizeof size);
    return FS_OK;
}

void fs_struct_write(void *given, const void *full, size_t known)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    memcpy((char *)given + sizeof size, (const char *)full + sizeof size, (size < known ? size : known) - sizeof size);
}
