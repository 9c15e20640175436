/* grass_grid.h - the sketches of one call of 'flashsketch grass', and the summary of their results.
 *
 * A grid is every family at every k with every seed.  At the same k and seed all families have the same mask, and all
 * have the same models and images, so a family is compared with the dense Gaussian image by image: the interval of the
 * difference is much shorter than that of either. */
#ifndef FSI_CLI_GRASS_GRID_H
#define FSI_CLI_GRASS_GRID_H

#include <flashsketch.h>

#include "grass_record.h"
#include "apps/grass/lds.h"

enum { GRASS_FAMILIES = FS_GAUSSIAN, GRASS_SIZES = 16 };

/* The request. */
typedef struct grass_ask {
    fs_spec sketch; /* fields common to all; the first seed */
    int64_t k[GRASS_SIZES];
    fs_family family[GRASS_FAMILIES];
    int sizes, families;
    int64_t seeds;
    int64_t mask; /* -1: 4 k, or all where that is more; 0: all */
    int64_t run;  /* coordinates that a mask keeps together */
} grass_ask;

typedef struct grass_cell {
    fs_spec spec, full; /* as requested, with d; and with every chosen value */
    int64_t mask;       /* coordinates, 0: all */
    char text[256];     /* of fs_sketch_describe */
    char name[384];     /* of its line: everything that the result depends on */
} grass_cell;

typedef struct grass_grid {
    const grass_ask *ask;
    grass_cell *cells; /* seeds x sizes x families: ordered by seed, so that rounds take equally long */
    int64_t count;
} grass_grid;

/* Creates the cells, and so checks all sketches. id: everything else that results depend on, for names.  Returns 0, or
 * EXIT_FAILURE after printing what is wrong. */
int grass_grid_make(grass_grid *grid, const grass_ask *ask, int64_t parameters, const char *id);
void grass_grid_free(grass_grid *grid);

/* The work of a sketch relative to others, as measured roughly on a CPU. */
double grass_work(const fs_spec *spec);

/* The results of all seeds of a family at a k. */
typedef struct grass_summary {
    const grass_cell *cell; /* of the first seed */
    lds_summary lds;        /* averaged over seeds */
    double seed_deviation;  /* of the LDS of each seed, with seeds - 1; NaN: one seed */
    double damping[2];      /* the least and the largest */
    double batch_ms;        /* to mask and sketch a batch; NaN: all features were kept */
    int compared;           /* with the Gaussian: */
    lds_summary difference; /* its LDS minus the Gaussian's */
} grass_summary;

/* Fills sizes x families summaries from the lines of all cells.  tests: images of a line; seed: of the
 * bootstrap.  Returns 0, or EXIT_FAILURE after printing why not. */
int grass_summarise(const grass_grid *grid, const grass_record *record, int64_t tests, uint64_t seed,
                    grass_summary *summaries);

/* Prints them: a table, or a JSON object a line.  The second returns the exit code. */
void grass_print_table(const grass_grid *grid, const grass_summary *summaries);
int grass_print_summaries(const grass_grid *grid, const grass_summary *summaries);

#endif
