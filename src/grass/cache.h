/* cache.h - a folder of matrices that were costly to make, and the text that says what they are of.
 *
 * The text, lines of "key value", lies in the folder as `identity`; a folder with another text is refused with the line
 * that differs.  A matrix is a file NAME.npy that is whole or not there: it is written beside and renamed.  An open
 * cache is locked, so that no two processes fill it at once. */
#ifndef FS_GRASS_CACHE_H
#define FS_GRASS_CACHE_H

#include <limits.h>

#include "flashsketch.h"

typedef struct cache {
    char folder[PATH_MAX];
    int lock; /* the open folder; -1: the cache is closed */
} cache;

/* Opens the folder, which is made if it is not there (its parent must be).  FS_EFILE: it cannot be made or read, is of
 * something else, or is in use; the sentence begins with its name. */
FS_CHECK fs_result cache_open(cache *c, const char *folder, const char *identity);
void cache_close(cache *c);

/* Fills m, packed rows in f32, from NAME.npy; *found is 0 where there is no such file.  FS_EFILE: it is not a matrix of
 * this shape and type. */
FS_CHECK fs_result cache_get(const cache *c, const char *name, const fs_matrix *m, int *found);

/* Whether a cache gives its files names like this one, the last of a path. */
int cache_is_file(const char *name);

/* Keeps m.  FS_EFILE: it cannot be written; then there is no new file, and an old one is as it was. */
FS_CHECK fs_result cache_put(const cache *c, const char *name, const fs_matrix *m);

#endif
