/* spread.h - a matrix that a solver does not have as a whole: row slices from a callback, rows of several ranks, which
 * are threads of this process. */
#ifndef FSI_TESTS_SUPPORT_SPREAD_H
#define FSI_TESTS_SUPPORT_SPREAD_H

#include <pthread.h>

#include <flashsketch_tasks.h>

#include "support.h"

/* slices ------------------------------------------------------------------------------------------------------ */

/* Slices of `most` rows of a dense A, every `sparse_every`-th (0: none) as CSR and CSC in turn.  A is also in `dense`. */
typedef struct sliced {
    const fs_matrix *A;
    int64_t most, at;
    int sparse_every;
    int reads, slices; /* calls of rewind; calls of next since the last */
    int fail_at;       /* the read whose second slice fails with the message "disk 7 is gone"; 0: none */
    fs_sparse slice;   /* the last sparse one */
} sliced;

/* The slices of *s, which must live as long; sliced_free frees the last one. */
fs_slices slices_of(sliced *s);
void sliced_free(sliced *s);

/* ranks ------------------------------------------------------------------------------------------------------- */

enum { MOST_RANKS = 8 };

/* `count` threads that call fs_ranks.sum together; made by team_make, sums are in the order of ranks. */
typedef struct team {
    int count;
    pthread_barrier_t barrier;
    struct {
        double *values;
        int64_t count;
        int failed;
    } slots[MOST_RANKS];
} team;

/* What one rank knows. */
typedef struct member {
    team *team;
    int rank, sums; /* sums so far */
    int fail_at;    /* the sum at which this rank's memory fails: it tells the others; 0: none */
    fs_ranks ranks; /* for the options of a solver */
} member;

void team_make(team *t, int count);
void team_free(team *t);

/* A member with `rows` of `all` rows from row0 on. */
void member_make(member *m, team *t, int rank, int64_t row0, int64_t rows_of_all);

/* Runs `body(user, rank)` in `count` threads and waits for them. */
void run_ranks(int count, void (*body)(void *user, int rank), void *user);

#endif
