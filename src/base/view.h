/* view.h - questions about the strides of a matrix view. */
#ifndef FSI_BASE_VIEW_H
#define FSI_BASE_VIEW_H

#include "flashsketch.h"

/* The distance in memory, in elements, between neighbours in a column, and in a row.  Strides may be negative. */
static inline int64_t fsi_view_row_distance(const fs_matrix *m)
{
    return m->row_stride < 0 ? -m->row_stride : m->row_stride;
}
static inline int64_t fsi_view_col_distance(const fs_matrix *m)
{
    return m->col_stride < 0 ? -m->col_stride : m->col_stride;
}

/* Whether neighbours in a row are at least as close in memory as neighbours in a column: a loop over the elements takes
 * columns innermost. */
static inline int fsi_view_is_row_major(const fs_matrix *m)
{
    return fsi_view_col_distance(m) <= fsi_view_row_distance(m);
}

#endif
