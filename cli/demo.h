/* demo.h - the parts of flashsketch demo: the matrix, the sketches that are compared, the measurement of one, the
 * results. */
#ifndef FSI_CLI_DEMO_H
#define FSI_CLI_DEMO_H

#include <flashsketch_tasks.h>
#include <stdint.h>
#include <stdio.h>

#include "apps/common/progress.h"

enum {
    DEMO_MIN_ROWS = 1024,
    DEMO_MAX_COLS = 4096, /* the Gram matrices are cols x cols, in f64 */
    DEMO_SIZES = 3,       /* how many k, at most */
    DEMO_HEAVY = 64,      /* large rows of the second comparison, */
    DEMO_WEIGHT = 100     /* and their factor */
};

typedef struct demo_matrix {
    char name[512]; /* for the tables */
    int stand_in;   /* synthetic, because Fashion-MNIST is not installed */
    float *data;    /* row-major */
    int64_t rows, cols;
    double *gram; /* the exact A'A */
} demo_matrix;

/* Reads an IDX file; path NULL: Fashion-MNIST where Debian puts it, or a synthetic matrix of the same shape when it
 * is not there; "synthetic": that one.  At most `rows` rows.  Returns 0, or an exit code after printing why. */
int demo_load(demo_matrix *A, const char *path, int64_t rows);
void demo_free(demo_matrix *A);

/* The time of reading A once with all threads, in milliseconds: a lower bound for every method that reads all of A. */
double demo_read_ms(const demo_matrix *A);

/* Multiplies DEMO_HEAVY consecutive rows by DEMO_WEIGHT: a matrix with a few large neighbouring rows. */
void demo_make_heavy(demo_matrix *A);

/* A sketch of the comparison: the fields of its spec. */
typedef struct demo_sketch {
    const char *name;
    fs_family family;
    int64_t kappa, s;
    fs_shuffle shuffle;
} demo_sketch;
enum { DEMO_SKETCHES = 9 };
extern const demo_sketch demo_sketches[DEMO_SKETCHES];

/* Over the draws: */
typedef struct demo_result {
    double ms;    /* median; 0: not measured */
    double read;  /* median of the time to read A, measured before each draw, because the load of the machine may
                   * change */
    double error; /* mean of the Gram error */
} demo_result;

typedef struct demo_race {
    const demo_matrix *A;
    fs_context *ctx;
    uint64_t seed;
    fs_workspace *w; /* for demo_gram */
    float *Y;        /* room for the largest k */
    double *gram;    /* room for Y'Y */
    double *part;    /* and for one summand */
} demo_race;

/* Creates the workspace and its matrices, for `cols` columns; race->ctx is set.  Returns 0, or an exit code. */
int demo_gram_open(demo_race *race, int64_t cols);
void demo_gram_close(demo_race *race);

/* G = X'X in f64 for a row-major rows x cols X.  Returns 0, or an exit code. */
int demo_gram(const demo_race *race, const float *X, int64_t rows, int64_t cols, double *G);

/* Draws the sketch up to `draws` times with new seeds, fewer when it is slow.  Returns 0, or an exit code. */
int demo_measure(const demo_race *race, const demo_sketch *sketch, int64_t k, int draws, demo_result *result);

/* The results that are printed and drawn: result[which][size] for k[size].  A sketch that is too slow for a k has no
 * results from there on. */
typedef struct demo_table {
    const demo_matrix *A;
    double read; /* median over the results */
    int sizes;
    int64_t k[DEMO_SIZES];
    demo_result result[DEMO_SKETCHES][DEMO_SIZES];
} demo_table;

/* The quality-speed picture, as SVG. */
void demo_picture(FILE *out, const demo_table *table);

#endif
