/* cache.h - a folder of matrices that are expensive to compute, and the text that identifies them.
 *
 * The text, lines of "key value", is in the file `identity` of the folder, after a line with the version of this
 * format, "cache 2"; a folder with another text is refused with the line that differs.  (Version 1 had no such line and
 * no checksums; its folders are refused.)
 *
 * A matrix is a file NAME.npy and its checksum in NAME.npy.crc32, "crc32 NUMBER": the CRC-32 of the elements, as that
 * of a sketch (docs/sketches.md).  Both are written beside and renamed, the checksum last; without it the matrix counts
 * as absent.  An open cache is locked, so that no two processes fill it at once. */
#ifndef FSI_APPS_GRASS_CACHE_H
#define FSI_APPS_GRASS_CACHE_H

#include <limits.h>

#include "flashsketch.h"

typedef struct cache {
    char folder[PATH_MAX];
    int lock; /* the open folder; -1: the cache is closed */
} cache;

/* Opens the folder, which is created if it does not exist (its parent must).  FS_EFILE: it cannot be created or read,
 * has another identity, or is in use; the message begins with its name. */
FS_NODISCARD fs_result cache_open(cache *c, const char *folder, const char *identity);
void cache_close(cache *c);

/* Fills m, packed rows in f32, from NAME.npy; *found is 0 where there is no such matrix.  FS_EFILE: it is not a matrix
 * of this shape and type, or its elements are not those that were written. */
FS_NODISCARD fs_result cache_get(const cache *c, const char *name, const fs_matrix *m, int *found);

/* Whether a file name, the last of a path, is like those of a cache's files. */
int cache_is_file(const char *name);

/* Writes m.  FS_EFILE: it cannot be written; then an old one is unchanged or, where a rename failed, removed. */
FS_NODISCARD fs_result cache_put(const cache *c, const char *name, const fs_matrix *m);

/* Whether a matrix is in a folder; removes it, and returns whether it existed.  The cache need not be open. */
int cache_has(const char *folder, const char *name);
int cache_remove(const char *folder, const char *name);

#endif
