/* flashsketch_files.h - a matrix in files, read a panel at a time: for a matrix that is larger than memory.
 *
 * A stream is a matrix A that lies in one file or in several, one after the other (shards).  It gives A in panels that
 * are as large as the memory it was allowed, and a thread of its own reads ahead while the caller works on a panel:
 *
 *     const char *paths[] = {"part1.npy", "part2.npy"};
 *     fs_stream *stream;  fs_stream_create(&stream, paths, 2, NULL);
 *     fs_panel p;
 *     while (fs_stream_next(stream, &p) == FS_OK && p.A.rows) {
 *         fs_matrix y = Y;                   the columns of Y that the panel belongs to
 *         y.cols = p.A.cols;  y.offset += p.col0 * Y.col_stride;
 *         fs_apply(ctx, S, p.row0, 1.0, &p.A, p.row0 ? 1.0 : 0.0, &y);
 *     }
 *     fs_stream_destroy(stream);
 *
 * Link with libflashsketch_files and libflashsketch (pkg-config: flashsketch_files).  Errors are reported as in
 * flashsketch.h, by messages that begin with the name of the file. */
#ifndef FLASHSKETCH_FILES_H
#define FLASHSKETCH_FILES_H

#include "flashsketch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* streams --------------------------------------------------------------------------------------------------- */

/* How files are read.  Start from FS_STREAM_INIT. */
typedef struct fs_stream_options {
    size_t size;        /* sizeof(fs_stream_options): set by FS_STREAM_INIT */
    int64_t memory;     /* bytes of A in memory at a time; 0: 64 MiB */
    int threads;        /* that copy a panel, at most FS_THREADS_MAX; 0: OpenMP's own number */
    int batch_major;    /* the files hold n x d, a sample in each row; A is d x n all the same */
    const char *tensor; /* safetensors, npz: which one; NULL: the only one there is */
    int64_t rows, cols; /* of each file that is nothing but elements; 0: the files have headers */
    fs_dtype dtype;     /* its type ... */
    int by_columns;     /* ... and order: 0 rows one after the other, 1 columns */
} fs_stream_options;
#define FS_STREAM_INIT \
    { \
        sizeof(fs_stream_options), 0, 0, 0, NULL, 0, 0, FS_UNSET(fs_dtype), 0 \
    }

/* A panel: rows row0 ... row0 + A.rows - 1 and columns col0 ... col0 + A.cols - 1 of the whole.  Start from
 * FS_PANEL_INIT; one panel serves all calls of fs_stream_next. */
typedef struct fs_panel {
    size_t size; /* sizeof(fs_panel): set by FS_PANEL_INIT */
    fs_matrix A; /* packed, in the stream's memory, until the next call with the stream; rows 0: the end */
    int64_t row0, col0;
    int is_sparse;    /* then A is a shape without data, and the panel is `sparse`, for fs_apply_sparse */
    fs_sparse sparse; /* in the same memory */
} fs_panel;
#define FS_PANEL_INIT \
    { \
        sizeof(fs_panel), {NULL, 0, 0, 0, 0, 0, 0, FS_UNSET(fs_dtype), FS_MEMORY_HOST}, 0, 0, 0, \
        { \
            FS_UNSET(fs_sparse_format), FS_UNSET(fs_index_type), 0, 0, 0, NULL, NULL, NULL, FS_UNSET(fs_dtype), \
                FS_MEMORY_HOST \
        } \
    }

/* A matrix in files; for one thread at a time. */
typedef struct fs_stream fs_stream;

/* Opens files as one matrix; options NULL means FS_STREAM_INIT.  Files are joined along the first dimension of their
 * arrays, in the order given: their rows, or samples where they are batch-major.  They may be of different formats, but
 * of one type and order.  The same file may come twice.  "-" is standard input, which can be one of them.
 *
 * npy, safetensors and raw files are read a panel at a time.  Matrix Market, IDX and CSV files, with or without gzip,
 * and npz archives must be read whole: one of them is in memory at a time, beside the panel, so a large matrix needs
 * many files.  Sparse ones (coordinate Matrix Market, csr, csc and coo in npz) are a panel each, whatever `memory` is.
 *
 * Elements are f16, bf16, f32 or f64 as they are in the files.  Integers of 8 and 16 bits and booleans (npy, npz, IDX)
 * become f32; integers of 32 and 64 bits become f64, where those beyond 2^53 are rounded to nearest; numbers in text
 * and sparse matrices are f64.  An array of more than two dimensions is the matrix of its first one by all the others:
 * 10 x 4 x 5 is read as 10 x 20; one of a single dimension is a column.
 *
 * A pipe on standard input is read as it comes where its panels follow one another in it (npy and raw; not where many
 * long samples are cut into pieces).  Otherwise it is copied to a temporary file in the folder TMPDIR, or /tmp.
 *
 * Panels are whole rows of A where those are contiguous in the files, otherwise whole columns, as many as fit; where a
 * single one does not fit, or so few columns that making S would cost more than reading them, pieces.  They are cut by
 * the shape of A and `memory` alone, wherever files end, so the same calls give the same bits every time.
 *
 * Reads the headers of all files and checks them against each other and against the files' lengths; of files that are
 * read whole and of a pipe, what a header cannot tell shows when they are read.
 * FS_EFILE: a file cannot be read, is not what it says, or does not fit the others.  FS_EINVAL: an option is wrong.
 * FS_ENOMEM: no memory, or no thread.  Free it with fs_stream_destroy. */
FS_API FS_NODISCARD fs_result fs_stream_create(fs_stream **out, const char *const *paths, int64_t count,
                                               const fs_stream_options *options);

/* Stops reading ahead and frees a stream; NULL is a no-op. */
FS_API void fs_stream_destroy(fs_stream *stream);

/* Writes rows, columns and type of A into *A, which has no data. */
FS_API FS_NODISCARD fs_result fs_stream_shape(const fs_stream *stream, fs_matrix *A);

/* How many panels there are. */
FS_API int64_t fs_stream_panels(const fs_stream *stream);

/* Makes `panel` (0 to fs_stream_panels) the next one, to go on where another run has stopped.  A panel of a pipe that
 * has gone by does not come again: fs_stream_next is FS_EFILE then. */
FS_API FS_NODISCARD fs_result fs_stream_seek(fs_stream *stream, int64_t panel);

/* Brings the next panel into memory, where it is not to be written; after the last one, panel->A.rows is 0.
 * FS_EFILE: a file cannot be read, or has changed since the stream was opened; the panel is then still the next one.
 * (A file that is cut short while a panel of it is in use ends the program with SIGBUS: the panel may be mapped.) */
FS_API FS_NODISCARD fs_result fs_stream_next(fs_stream *stream, fs_panel *panel);

#ifdef __cplusplus
}
#endif

#endif
