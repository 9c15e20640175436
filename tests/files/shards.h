/* shards.h - what the tests of streams share: one matrix of integers, cut into files of every format. */
#ifndef FSI_TESTS_FILES_SHARDS_H
#define FSI_TESTS_FILES_SHARDS_H

#include "flashsketch_files.h"
#include "tests/support/files.h"

enum { ROWS = 211, COLS = 13, MOST_SHARDS = 8, CUTS = 4 };

/* Element (i, j) of all files together, exact in every type. */
double value(int64_t i, int64_t j);

/* Rows first ... end - 1 as an npy file; and as one of integers: "<i2", ">u8", ... */
void save_npy(const char *path, int64_t first, int64_t end, fs_dtype dtype, int fortran);
void save_integers(const char *path, int64_t first, int64_t end, const char *descr, int fortran);

/* The same in a format that is read whole: IDX of float32, a Matrix Market array, CSV, or Matrix Market entries, of
 * which those that are 0 are left out; with gzip where `packed`. */
typedef enum whole_format { IDX, ARRAY, TABLE, ENTRIES, WHOLE_FORMATS } whole_format;
void save_whole(const char *path, int64_t first, int64_t end, whole_format format, int packed);

/* All rows as npy files cut at these rows, one of cuts[], named as in names[]; returns how many. */
extern const char *const names[MOST_SHARDS];
extern const int64_t cuts[CUTS][MOST_SHARDS];
int64_t save_shards(const int64_t *at, fs_dtype dtype, int fortran);

/* That files open as a stream. */
fs_stream *opened_stream(const char *const *paths, int64_t count, const fs_stream_options *options);

/* That a call failed so, with a message that has both words. */
void expect_words(fs_result result, fs_result wanted, const char *a, const char *b);

#endif
