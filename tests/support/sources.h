/* sources.h - a matrix as solvers take it: whole, in slices from a callback that may fail, or spread over ranks, which
 * are threads here. */
#ifndef FSI_TESTS_SUPPORT_SOURCES_H
#define FSI_TESTS_SUPPORT_SOURCES_H

#include <flashsketch_solvers.h>

#include "support.h"

fs_operand dense_operand(const fs_matrix *A);
fs_operand sparse_operand(const fs_sparse *A);

/* Rows row0 ... row0 + rows - 1 of A. */
fs_matrix rows_of(const fs_matrix *A, int64_t row0, int64_t rows);

/* A in slices of at most `most` rows; every sparse_every-th (0: none) is sparse, CSR and CSC in turn, which needs
 * integers.  The struct must stay where it is while the operand is used. */
typedef struct slicer {
    const fs_matrix *A;
    int64_t most;
    int sparse_every;
    int fail_read;  /* a slice of this read fails with FS_EFILE, "row ... cannot be read"; 0: none */
    int fail_slice; /* which, from 1; 0: the last */
    int reads;      /* so far */
    int64_t at;
    fs_slices slices;
    fs_sparse held;
} slicer;
fs_operand slicer_open(slicer *s, const fs_matrix *A, int64_t most, int sparse_every);
void slicer_close(slicer *s);

/* One of the threads that share a matrix; sums are in the order of their numbers, and all get the failure of the first
 * that fails: "rank 2: ...". */
typedef struct rank_thread {
    int number, count;
    fs_matrix A; /* its rows */
    fs_ranks ranks;
    fs_context *ctx;  /* of one thread */
    int fail_sum;     /* for `work` to set: this rank's sum of that number, from 1, fails with FS_EBACKEND; 0: none */
    int sums;         /* so far */
    fs_result result; /* of the work */
    char message[512];
    struct rank_run *run;
} rank_thread;
typedef fs_result (*rank_work)(rank_thread *r, void *user);
enum { MOST_RANKS = 5 };

/* Runs `work` on `count` threads at once, rank i with rows begin[i] ... begin[i + 1] - 1 of A, which may be none; fails
 * the test where ranks sum different counts of numbers, and unless all succeed where `must`.  `work` may change its `A`
 * and `ranks`; it must not fail the test itself. */
void run_ranks(rank_thread *ranks, int count, const int64_t *begin, const fs_matrix *A, int must, rank_work work,
               void *user);

/* Fails the test unless value <= bound. */
void expect_below(const char *what, double value, double bound);

#endif
