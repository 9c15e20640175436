/* slices.c - a stream as the matrix A of a solver (fs_slices): each read of A is a pass over the panels.
 *
 * A solver takes whole rows in their order.  Contiguous rows come in that order; where columns are contiguous, a panel
 * has some rows of every column.  Sparse files are slices as they are. */
#include "base/error.h"
#include "files/panels.h"
#include "flashsketch_files.h"

static fs_result rewind_stream(void *user) { return fs_stream_seek(user, 0); }

static fs_result next_slice(void *user, fs_matrix *dense, const fs_sparse **sparse)
{
    fs_stream *s = user;
    const fs_panel start = FS_PANEL_INIT;
    s->slice = start;
    FSI_TRY(fs_stream_next(s, &s->slice));
    if (s->slice.is_sparse) *sparse = &s->slice.sparse;
    else *dense = s->slice.A;
    return FS_OK;
}

fs_result fs_stream_slices(fs_stream *s, fs_slices *A)
{
    const fs_slices full = {
        sizeof full, s ? s->rows : 0, s ? s->cols : 0, s ? s->dtype : 0, rewind_stream, next_slice, s};
    FSI_REQUIRE(s && A, "fs_stream_slices: a pointer is NULL");
    FSI_TRY(fs_struct_check("fs_stream_slices", "A", A, sizeof full));
    const int apart = s->is_sparse ? s->count > 1 : s->segment_count > 1; /* files whose lines are not continued in the
                                                                           * next */
    FSI_REQUIRE(!s->batch_major || !apart,
                "%s: a solver takes whole rows of A, and each of the %" PRId64
                " files, which are %s, holds some of its "
                "columns; join them to one file",
                s->shards[0].path, s->count, s->is_sparse ? "sparse" : "in Fortran order");
    for (int64_t i = 0; i < s->count; i++)
        FSI_REQUIRE(!s->shards[i].pipe,
                    "fs_stream_slices: a solver reads A several times, and %s once; give "
                    "options.reread",
                    s->shards[i].path);
    s->whole_rows = 1;
    FSI_TRY(fs_stream_set_memory(s, s->memory));
    fs_struct_write(A, &full, sizeof full);
    return FS_OK;
}
