/* solver.h - what the commands lstsq, qr, svd, pca and leverage share: their common options, A in files as the matrix of
 * a solver, of which each read is a pass over the files, and the files that they write.
 *
 * A command owns a solver and its outputs, opens them, runs the library's function on solver.A, writes, prints, and
 * closes it. */
#ifndef FSI_CLI_SOLVER_H
#define FSI_CLI_SOLVER_H

#include <flashsketch_solvers.h>

#include "command.h"
#include "input.h"
#include "json.h"
#include "passes.h"
#include "sketching.h"
#include "spec_options.h"
#include "where.h"

#define SOLVER_OPTIONS \
    {SPEC_SEED, "seed", "N", "of the solver's own sketch: 64 bits, decimal or 0x hexadecimal", NULL}, \
        INPUT_OPTIONS("the file holds n x d, a sample in each row; A is its transpose"), \
        {SKETCHING_MEMORY, "memory", "SIZE", "bytes of A in memory at a time, like 64M or 2G (default 192M)", NULL}, \
        SKETCHING_STATE_OPTIONS, WHERE_OPTIONS, {SOLVER_JSON, "json", NULL, "print a JSON object", NULL}, \
    { \
        'q', "quiet", NULL, "no progress bar", NULL \
    }
#define SOLVER_TEXT \
    "Several files are one matrix, joined along their first dimension in the order given.  A is read several times,\n" \
    "in panels, so that it may be larger than memory; the bar shows which read it is."
#define SOLVER_RESUME_NOTE \
    "A run with --resume that was ended in any way continues when the same command is given again, within a read of A\n" \
    "too, and gives the bits of a run without interruption.  A read that writes rows of an output begins again.  The\n" \
    "state is beside the first output in the order of the options above."
enum { SOLVER_JSON = INPUT_OTHER + 100 };

typedef struct solver_options {
    const char *command; /* its name */
    const char *const *paths;
    int64_t files;
    input_options input;
    sketching_options stream;
    fs_context_options where;
    uint64_t seed;
    int json, quiet;
} solver_options;
#define SOLVER_OPTIONS_INIT \
    { \
        .input = INPUT_INIT, .stream = SKETCHING_INIT, .where = FS_CONTEXT_INIT \
    }

/* A matrix or vector that a command computes, and the npy file it goes to. */
typedef struct solver_output {
    const char *path;   /* NULL: it is not written */
    void *data;         /* its elements, packed rows, after solver_room */
    int64_t rows, cols; /* cols 0: a vector */
    int bytes;          /* of an element */
    int number;         /* of its file, for output.h */
    int is_mapped;      /* data is the file itself */
} solver_output;

typedef struct solver {
    const solver_options *o;
    solver_output *outputs;
    int count;
    progress bar;
    sketching files;          /* A's */
    fs_slices slices, passes; /* of the stream; and those that count its reads */
    fs_checkpoint checkpoint; /* with --resume */
    passes state;
    fs_operand A;
    int64_t d, n;
    fs_dtype dtype, sum; /* of A; of sums of it, which matrices are written in */
    fs_context *ctx;
    fs_progress progress; /* for the options of the library's functions */
    int64_t read, panel;  /* what the bar shows */
    char doing[48];
} solver;

/* Takes one of SOLVER_OPTIONS; returns -1 where the code is not one of them, otherwise as cli_number. */
int solver_option(const char *command, int code, const char *value, solver_options *o);

/* Takes the arguments that are no options.  Returns 0, EXIT_USAGE or EXIT_FAILURE after printing what is wrong. */
int solver_arguments(solver_options *o, int argc, char **argv);

/* Opens the outputs that have a path, the files of A, and a context.  Returns 0, or EXIT_FAILURE after printing why not;
 * close it in both cases.  *s must not move. */
int solver_open(solver *s, const solver_options *o, solver_output *outputs, int count);
void solver_close(solver *s);

/* The elements of an output, zeros: in its file, in memory otherwise.  `type` is 'f' or 'i' and `bytes` the size of an
 * element.  Returns 0, or EXIT_FAILURE after printing why not. */
int solver_room(solver_output *output, const char *what, int64_t rows, int64_t cols, char type, int bytes);

/* With --resume: continues from the state, if there is one.  Call it before the library's function, after what the run
 * depends on beside the common options was added to s->state.  Returns 0, or EXIT_FAILURE after printing why the state is
 * not one of this run. */
int solver_resume(solver *s);

/* The matrix of an output with room, of type f32 or f64. */
fs_matrix solver_matrix(const solver_output *output);

/* Prints the message of a function that failed because of A, after the name of its file unless that is there already;
 * returns EXIT_FAILURE. */
int solver_fail(const solver *s, fs_result result);

/* Writes all outputs, puts them in place and removes the state; their elements can be read until solver_close.  Returns
 * 0, or EXIT_FAILURE after printing why not. */
int solver_write(solver *s);

/* Whether standard output is an output. */
int solver_is_piped(const solver *s);

/* "A" line; members of JSON. */
void solver_print_head(const solver *s);
cJSON *solver_json(const solver *s);

#endif
