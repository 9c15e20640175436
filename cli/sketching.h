/* sketching.h - Y = S A for a matrix A in files: in panels, so that A may be larger than memory, and resumable.
 *
 * A is a stream of panels (flashsketch_files.h) where its files can be one, and where --memory, --resume or several
 * files ask for it; a single file that must be read whole (Matrix Market, IDX) is in memory otherwise.  The command
 * sketch and the tasks make Y by the same calls: the same options give the same bits, and the same state. */
#ifndef FSI_CLI_SKETCHING_H
#define FSI_CLI_SKETCHING_H

#include "checkpoint.h"
#include "identity.h"
#include "input.h"
#include "files/stream.h"

/* A command puts these in its table of options. */
#define SKETCHING_OPTIONS \
    {SKETCHING_MEMORY, "memory", "SIZE", \
     "bytes of A in memory at a time, like 64M or 2G; Y comes on top (default:\n" \
     "four times Y, but 64M to 192M; 192M for a GPU)", \
     NULL}, \
        {SKETCHING_RESUME, "resume", NULL, "keep a state beside the output, and go on from it if it is there", NULL}, \
    { \
        SKETCHING_EVERY, "every", "N", "write the state every N seconds (default 30; 0: after each panel)", NULL \
    }
enum { SKETCHING_MEMORY = 1024, SKETCHING_RESUME, SKETCHING_EVERY };

typedef struct sketching_options {
    int64_t memory; /* 0: not said */
    int64_t every;  /* seconds between two states; negative: not said */
    int resume;
} sketching_options;
#define SKETCHING_INIT \
    { \
        .every = -1 \
    }

/* Is this the code of one of these options? */
int sketching_is_option(int code);

/* Puts the value of such an option into *o.  Returns 0, or EXIT_USAGE after saying what was wrong. */
int sketching_option(const char *command, int code, const char *value, sketching_options *o);

/* That the options go together, and with the output; NULL is none.  Returns as sketching_option. */
int sketching_check(const char *command, const sketching_options *o, const char *output);

typedef struct sketching {
    const sketching_options *o;
    const input_options *how;
    const char *const *paths;
    int64_t files;
    int panels; /* A is a stream, whatever the format */
    progress *bar;
    input in;       /* the first file */
    char name[320]; /* of A, for texts: the first file and how many more */
    int64_t d, n;   /* of A: of the first file until sketching_begin, then of all */
    fs_dtype dtype;
    fs_stream *stream; /* NULL: A is in memory, in `in` */
    identity id;       /* what Y is, and how far it is */
    checkpoint state;
    void *converted; /* a panel in another type; owned */
    size_t converted_bytes;
} sketching;

/* Opens the first file of A.  Without several files, --memory and --resume, how->locate says how: 0, A is in memory or
 * mapped; 1, it is a stream where the file can be one; 2, it is always a stream.  *s keeps the pointers.  Returns 0, or
 * EXIT_FAILURE after saying why not; close it in both cases. */
int sketching_open(sketching *s, const char *const *paths, int64_t files, const input_options *how,
                   const sketching_options *o, progress *bar);
void sketching_close(sketching *s);

/* Opens the rest of A, to be multiplied in ctx by a sketch of k rows: from here on d and n are known.  `threads` copy
 * panels; 0 is OpenMP's number.  Returns as sketching_open. */
int sketching_begin(sketching *s, const fs_context *ctx, int64_t k, int threads);

/* Where --resume keeps the state: beside `output`.  Nothing without --resume.  Returns as sketching_open. */
int sketching_keep(sketching *s, const char *output);

/* Y = S[:, row0 : row0 + d] A for the S of the full spec; with --resume from the state on, if there is one.  Y is k x n
 * in ctx's memory, or with --resume in the host's: packed rows, or packed columns (batch-major), in the type of sums
 * of A or another, to which the panels of a stream are converted.  s->id says what Y is; its batch_major is the
 * caller's to set.  Returns as sketching_open. */
int sketching_run(sketching *s, fs_context *ctx, const fs_sketch *S, const fs_spec *spec, int64_t row0, fs_matrix *Y);

/* Writes the state of a run that is over, because others must end before its Y is written.  sketching_end removes it.
 */
void sketching_save(sketching *s, const fs_matrix *Y);
void sketching_end(sketching *s);

#endif
