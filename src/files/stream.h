/* stream.h - what the command asks of a stream and programs need not: which files it is made of. */
#ifndef FSI_FILES_STREAM_H
#define FSI_FILES_STREAM_H

#include "files/file.h"
#include "flashsketch_files.h"

/* A file of a stream, as it was when the stream was opened. */
typedef struct stream_file {
    const char *path;       /* "standard input" where that is what it is */
    int64_t bytes, changed; /* its length, and when it was last written to, in ns */
    int64_t start;          /* how many bytes into it its elements begin */
} stream_file;

/* fs_stream_create for a first file that has been located already (file.h; NULL: it has not), which it takes over. */
fs_result stream_open(fs_stream **out, const char *const *paths, int64_t count, const fs_stream_options *options,
                      file_matrix *first);

/* How options name a file. */
file_options stream_how(const fs_stream_options *options);

int64_t stream_files(const fs_stream *stream);
stream_file stream_file_at(const fs_stream *stream, int64_t file);

#endif
