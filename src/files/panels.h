/* panels.h - the parts of a stream (stream.c), and the loading of a panel (panels.c). */
#ifndef FSI_FILES_PANELS_H
#define FSI_FILES_PANELS_H

#include "files/ahead.h"
#include "files/reader.h"
#include "flashsketch_files.h"

typedef struct shard {
    char *path;
    int kept, fd;      /* standard input stays open, in fd ... */
    reader_pipe *pipe; /* ... or here, and is read once, in order */
    int whole;         /* it is read whole, and `start` is 0 ... */
    int loaded;        /* ... and has been when the stream was created: it is in the stream's `file` from then on */
    file_kind kind;    /* of its elements, unless it is read whole */
    int64_t bytes, changed;
    int64_t start;        /* of its elements in the file */
    int64_t rows, cols;   /* of its array */
    int64_t first, lines; /* its lines in its segment; of a sparse one its rows in all files */
} shard;

typedef struct segment {
    int64_t shard, shards;    /* the first, and how many */
    int64_t lines, width;     /* width: elements of a line */
    int64_t base;             /* where its elements (not its lines) begin in A */
    int64_t step_lines, step; /* lines of a panel, and elements of each */
    int64_t panels;
} segment;

struct fs_stream {
    shard *shards;
    segment *segments;
    int64_t count, segment_count;
    char *tensor;     /* of files that hold several; NULL: not given */
    file_options how; /* of files that are read whole */
    int is_sparse;    /* every file is, and there are no segments */
    int batch_major;
    int by_columns; /* lines are columns of A */
    int whole_rows; /* every panel has all columns of A (slices.c) */
    int64_t rows, cols, element;
    fs_dtype dtype;
    int threads; /* as fs_thread_count takes them */
    int64_t panels, next, memory;
    char *buffer;        /* for panels that are copied; NULL until one is */
    const shard *mapped; /* whose file is at `map`, whole; NULL: none */
    char *map, *used;    /* used: the pages of the last panel, if it was mapped */
    int64_t used_bytes;
    const shard *held; /* which of those that are read whole is in `file`; NULL: none */
    file_matrix file;
    int started;     /* a panel has been requested: pipes are set up */
    int reads_ahead; /* the thread runs */
    ahead ahead;
    fs_panel slice; /* the last one that a solver was given (slices.c) */
};

/* A panel of a segment. */
typedef struct place {
    const segment *in;
    int64_t line, lines, element, elements; /* of the segment */
} place;
place place_of(const fs_stream *s, int64_t panel);

/* Loads a panel into the page cache, for `ahead`.  Errors are ignored here: copying the panel reports them. */
void panel_bring(void *stream, int64_t panel, const atomic_int *stop);

/* The elements of a panel: where they are mapped or held, or copied. */
fs_result panel_fetch(fs_stream *s, const place *at, char **data);

/* Reads a shard that is read whole into s->file, unless it is held.  FS_EFILE: it is damaged, or has changed. */
fs_result panel_hold(fs_stream *s, const shard *in);

/* Releases the mapping, if there is one. */
void panel_unmap(fs_stream *s);

#endif
