/* passes.h - the state of a solver's run: the sums of its reads of A so far (fs_checkpoint).
 *
 * What lies between two reads is computed again from their sums, to the same bits, so the sums are all that a run needs
 * to continue.  The state is a safetensors file beside the first output, OUTPUT.state, written as checkpoint.h says: the
 * tensor "sums", and in the metadata a JSON text with the run's description, pairs of a name and a value, and for each
 * read that has sums its number, bytes, rows of A and panels.  docs/sketches.md describes it. */
#ifndef FSI_CLI_PASSES_H
#define FSI_CLI_PASSES_H

#include <flashsketch_solvers.h>

#include "checkpoint.h"
#include "sketching.h"

/* A read of A, its sums at `at` of passes.sums. */
typedef struct passes_read {
    int64_t number, bytes, rows, panels;
    int64_t at;
} passes_read;

/* Something that the sums depend on.  `file`: the file that it is a property of, or NULL. */
typedef struct passes_pair {
    char name[64], value[64];
    const char *file;
} passes_pair;

typedef struct passes {
    checkpoint state;
    int is_kept; /* passes_start was called */
    passes_read *reads;
    int64_t count, room; /* of reads */
    char *sums;
    int64_t bytes; /* of sums in use, a multiple of 8 */
    passes_pair *pairs;
    int pair_count, failed; /* failed: no memory for a pair */
} passes;

/* Begins to keep a state beside `output`.  Returns 0, or EXIT_FAILURE after printing why that is not possible. */
int passes_start(passes *p, const char *output, double every);
void passes_free(passes *p);

/* Add to the description of the run. */
void passes_text(passes *p, const char *name, const char *value);
void passes_whole(passes *p, const char *name, int64_t value);
void passes_exact(passes *p, const char *name, uint64_t value);
void passes_real(passes *p, const char *name, double value);
/* Length, time and offset of each file of a matrix; `matrix` is its letter. */
void passes_files(passes *p, const char *matrix, const sketching *files);

/* Reads the state, if there is one.  Returns 0, or EXIT_FAILURE after printing why it is not one of this run. */
int passes_load(passes *p);

/* The sums of a read; NULL: there are none. */
const passes_read *passes_find(const passes *p, int64_t number);

/* Keeps the sums of a read, the last so far or one after it, and writes the state if it is due.  FS_ENOMEM. */
fs_result passes_save(passes *p, const passes_read *read, const void *sums);

/* Removes the state at the end of the run. */
void passes_end(const passes *p);

#endif
