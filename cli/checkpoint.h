/* checkpoint.h - the state of a run that can be resumed: Y so far, and how much of the input is in it.
 *
 * The state is a safetensors file beside the output, OUTPUT.state, with what identity.h says in its metadata.  It is
 * replaced in one step, so there is always a whole one: a run that is killed goes on from the last.  Panels are cut by
 * the input and --memory alone, so the run that goes on makes the same calls, and Y gets the same bits. */
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

/* Reads the state, if there is one, into Y.  *run says what this run is: its `done` becomes the panels that are in Y.
 * Returns 0, or EXIT_FAILURE after printing why the state is not one of this run. */
int checkpoint_load(const checkpoint *c, identity *run, const fs_stream *stream, fs_matrix *Y);

/* Writes the state, if it is time to.  Where that fails, the reason is printed on stderr, the last state is kept,
 * and the run goes on. */
void checkpoint_save(checkpoint *c, const identity *run, const fs_matrix *Y);

/* Removes the state: the run is over. */
void checkpoint_end(const checkpoint *c);

#endif
