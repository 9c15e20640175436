/* sketching.h - Y = S A for a matrix A in files: in panels, so that A may be larger than memory, and resumable.
 *
 * A is a stream (flashsketch_files.h), whatever the format of its files; a file that must be read whole is held in
 * memory.  The command sketch and the tasks compute Y by the same calls: the same options give the same bits, and the
 * same state. */
#ifndef FSI_CLI_SKETCHING_H
#define FSI_CLI_SKETCHING_H

#include "checkpoint.h"
#include "identity.h"
#include "input.h"

/* A command puts these in its table of options. */
#define SKETCHING_OPTIONS \
    {SKETCHING_MEMORY, "memory", "SIZE", \
     "bytes of A in memory at a time, like 64M or 2G; Y comes on top (default:\n" \
     "four times Y, but 64M to 192M; 192M for a GPU)", \
     NULL}, \
        {SKETCHING_RESUME, "resume", NULL, "keep a state beside the output, and continue from one that exists", NULL}, \
    { \
        SKETCHING_EVERY, "every", "N", "write the state every N seconds (default 30; 0: after each panel)", NULL \
    }
enum { SKETCHING_MEMORY = 1024, SKETCHING_RESUME, SKETCHING_EVERY };

typedef struct sketching_options {
    int64_t memory; /* 0: not given */
    int64_t every;  /* seconds between two states; negative: not given */
    int resume;
} sketching_options;
#define SKETCHING_INIT \
    { \
        .every = -1 \
    }

/* Is this the code of one of these options? */
int sketching_is_option(int code);

/* Puts the value of such an option into *o.  Returns 0, or EXIT_USAGE after printing what is wrong. */
int sketching_option(const char *command, int code, const char *value, sketching_options *o);

/* Checks that the options are consistent with each other and with the output; NULL: there is none.  Returns as
 * sketching_option. */
int sketching_check(const char *command, const sketching_options *o, const char *output);

typedef struct sketching {
    const sketching_options *o;
    int batch_major;
    int64_t files;
    int whole;        /* one file, without --memory and --resume: all of A is available at once (input_whole) */
    input_watch file; /* the first file, for messages and the bar */
    char name[320];   /* of A: the first file and how many more */
    int64_t d, n;     /* of A */
    fs_dtype dtype;
    int is_sparse;
    fs_stream *stream;
    identity id; /* the description of Y, and its progress */
    checkpoint state;
    void *converted; /* a panel in another type; owned */
    size_t converted_bytes;
} sketching;

/* Opens the files of A.  `threads` copy panels; 0: OpenMP's number.  reread: A is read again after sketching_run.  *s
 * keeps the pointers o and bar, and must not move.  Returns 0, or EXIT_FAILURE after printing why not; close it in both
 * cases. */
int sketching_open(sketching *s, const char *const *paths, int64_t files, const input_options *how,
                   const sketching_options *o, int threads, int reread, progress *bar);
void sketching_close(sketching *s);

/* A context to multiply A, and B where it is not NULL: the CPU's for a sparse one.  Returns as sketching_open. */
int sketching_context(const sketching *A, const sketching *B, const fs_context_options *where, fs_context **ctx);

/* Cuts A into panels, to be multiplied in ctx by a sketch of k rows.  Returns as sketching_open. */
int sketching_begin(sketching *s, const fs_context *ctx, int64_t k);

/* Where --resume keeps the state: beside `output`.  A no-op without --resume.  Returns as sketching_open. */
int sketching_keep(sketching *s, const char *output);

/* Y = S[:, row0 : row0 + d] A for the S of the full spec; with --resume from the state on, if there is one.  Y is k x n
 * in ctx's memory, or with --resume in the host's: packed rows, or packed columns (batch-major), in the type of sums
 * of A or another, to which the panels are converted.  s->id describes Y; the caller sets its batch_major.  Returns as
 * sketching_open. */
int sketching_run(sketching *s, fs_context *ctx, const fs_sketch *S, const fs_spec *spec, int64_t row0, fs_matrix *Y);

/* Writes the state of a run that is done, because others must end before its Y is written.  sketching_end removes
 * it. */
void sketching_save(sketching *s, const fs_matrix *Y);
void sketching_end(sketching *s);

#endif
