/* grass_tasks.h - the tasks of 'flashsketch grass': the experiment of apps/grass with the options of the command
 * line. */
#ifndef FSI_CLI_GRASS_TASKS_H
#define FSI_CLI_GRASS_TASKS_H

#include <stdio.h>

#include "apps/grass/experiment.h"
#include "grass_grid.h"

enum { GRASS_QUERIES = 64 };
typedef enum grass_task { GRASS_RUN, GRASS_FEATURES, GRASS_LDS, GRASS_QUERY } grass_task;

typedef struct grass_options {
    grass_task task;
    const char *data;   /* the folder of the four files; NULL: Debian's Fashion-MNIST */
    const char *folder; /* where models and features are kept */
    grass_ask ask;      /* the sketches */
    fs_context_options where;
    int64_t train, test;
    experiment_recipe recipe;
    double damping;              /* 0: chosen */
    const char *record, *commit; /* NULL: none */
    int64_t each;                /* query: images that are printed of each kind */
    const char *output;          /* query: the picture; NULL: none */
    FILE *picture;               /* that file, opened before the work */
    int query_count;
    int64_t query[GRASS_QUERIES];
    int forget, json, quiet;
} grass_options;

/* Runs a task.  Returns the exit code. */
int grass_do(const grass_options *options);

#endif
