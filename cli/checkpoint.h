/* checkpoint.h - the state of a run that can be resumed: Y so far, and how much of the input is in it.
 *
 * The state is a safetensors file beside the output, OUTPUT.state, with the description of identity.h in its metadata.
 * It is replaced atomically: a run that is killed continues from the last state.  Panels depend on the input and
 * --memory alone, so the resumed run makes the same calls, and Y has the same bits. */
#ifndef FSI_CLI_CHECKPOINT_H
#define FSI_CLI_CHECKPOINT_H

#include <limits.h>

#include "identity.h"

typedef struct checkpoint {
    char path[PATH_MAX];
    double every, next; /* seconds between two, and when the next one is due, in cli_seconds */
} checkpoint;

/* Returns 0, or EXIT_FAILURE after printing why OUTPUT.state cannot be written: its name is too long, or it is an
 * input. */
int checkpoint_start(checkpoint *c, const char *output, double every);

/* Reads the state, if there is one, into Y. *run describes this run: its `done` becomes the number of panels in Y.
 * Returns 0, or EXIT_FAILURE after printing why the state is not one of this run. */
int checkpoint_load(const checkpoint *c, identity *run, const fs_stream *stream, fs_matrix *Y);

/* Writes the state, if it is due.  Where that fails, the reason is printed on stderr, the last state is kept, and the
 * run continues. */
void checkpoint_save(checkpoint *c, const identity *run, const fs_matrix *Y);

/* Removes the state at the end of the run. */
void checkpoint_end(const checkpoint *c);

#endif
