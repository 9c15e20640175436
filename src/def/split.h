/* split.h - [n] cut into contiguous parts whose sizes differ by at most one, the larger ones first.
 *
 * Used for the rows of Y (M blocks), the rows of A (M blocks) and the rows of a block (s strata): nothing is
 * padded and nothing is cut off, for every n and every number of parts (parts of size 0 when parts > n). */
#ifndef FSI_DEF_SPLIT_H
#define FSI_DEF_SPLIT_H

#include "def/port.h"

typedef struct fsi_split {
    int64_t small;  /* size of a small part: floor(n / parts) */
    int64_t larger; /* how many parts have one more */
} fsi_split;

FSI_DEF fsi_split fsi_split_make(int64_t n, int64_t parts)
{
    fsi_split p;
    p.small = n / parts;
    p.larger = n % parts;
    return p;
}
FSI_DEF int64_t fsi_split_size(const fsi_split *p, int64_t i) { return p->small + (i < p->larger); }
FSI_DEF int64_t fsi_split_start(const fsi_split *p, int64_t i)
{
    return i * p->small + (i < p->larger ? i : p->larger);
}
/* The part that x is in. */
FSI_DEF int64_t fsi_split_index(const fsi_split *p, int64_t x)
{
    const int64_t edge = p->larger * (p->small + 1);
    return x < edge ? x / (p->small + 1) : p->larger + (x - edge) / p->small;
}

#endif
