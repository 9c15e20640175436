/* split.h - [n] cut into contiguous parts whose sizes differ by at most one, the larger ones first.
 *
 * Used for the rows of Y (M blocks), the rows of A (M blocks) and the rows of a block (s parts): nothing is
 * padded and nothing is cut off, for every n and every number of parts (parts of size 0 when parts > n). */
#ifndef FS_DEF_SPLIT_H
#define FS_DEF_SPLIT_H

#include "port.h"

typedef struct fs_split {
    int64_t small;  /* size of a small part: floor(n / parts) */
    int64_t larger; /* how many parts have one more */
} fs_split;

FS_DEF fs_split fs_split_make(int64_t n, int64_t parts)
{
    fs_split p;
    p.small = n / parts;
    p.larger = n % parts;
    return p;
}
FS_DEF int64_t fs_split_size(const fs_split *p, int64_t i) { return p->small + (i < p->larger); }
FS_DEF int64_t fs_split_start(const fs_split *p, int64_t i)
{
    return i * p->small + (i < p->larger ? i : p->larger);
}
/* The part that x is in. */
FS_DEF int64_t fs_split_part(const fs_split *p, int64_t x)
{
    const int64_t edge = p->larger * (p->small + 1);
    return x < edge ? x / (p->small + 1) : p->larger + (x - edge) / p->small;
}

#endif
