/* task.h - what the commands of tasks share (gram, ose, ridge, solve): their common options, and the way from files to
 * a filled workspace: by the sketch of A and B in files (sketching.h), or from existing sketches (--from).
 *
 * A command owns a task, opens it, runs the library's function on task.w, prints, and closes it. */
#ifndef FSI_CLI_TASK_H
#define FSI_CLI_TASK_H

#include <flashsketch_tasks.h>
#include <stdio.h>

#include "command.h"
#include "input.h"
#include "json.h"
#include "sketching.h"
#include "spec_options.h"
#include "where.h"

#define TASK_OPTIONS(where_options) \
    SPEC_ERROR_OPTION, SPEC_OPTIONS, INPUT_OPTIONS(INPUT_TRANSPOSED), where_options, \
        {TASK_JSON, "json", NULL, "print a JSON object", NULL}, \
    { \
        'q', "quiet", NULL, "no progress bar", NULL \
    }
#define TASK_FROM_OPTION(text) \
    { \
        TASK_FROM, "from", NULL, text, NULL \
    }
#define TASK_TEXT \
    "Several files are one matrix, joined along their first dimension in the order given.  A is read in panels, as\n" \
    "by 'flashsketch sketch', so that it may be larger than memory."
enum { TASK_JSON = INPUT_OTHER + 100, TASK_FROM };

typedef struct task_options {
    const char *const *paths; /* of A; with --from, of the sketches */
    int64_t files;
    const char **rhs; /* the files of B, rhs_files of them; the command's */
    int64_t rhs_files;
    const char *output; /* NULL: nothing is written */
    input_options input;
    sketching_options stream;
    fs_spec spec;
    double error; /* in place of spec.k; 0: not given */
    fs_context_options where;
    int from, exact, json, quiet;
    int about_A; /* the code of an option that --from does not go with; 0: none */
} task_options;
#define TASK_OPTIONS_INIT \
    { \
        .input = INPUT_INIT, .spec = FS_SPEC_INIT, .where = FS_CONTEXT_INIT, .stream = SKETCHING_INIT \
    }

typedef struct task {
    const task_options *o;
    progress bar;
    struct {
        const char *name;
        int64_t d, n;
    } in;                 /* A, for texts */
    const char *rhs_name; /* and B */
    sketching A, rhs;
    fs_matrix dense; /* all of A, after task_dense: a view of its only panel, or `copy` */
    void *copy;      /* owned */
    fs_matrix B;     /* the shape of B, d x rhs; no data */
    fs_dtype sum;    /* the workspace's type */
    fs_spec spec;    /* full */
    fs_sketch *S;
    fs_context *ctx;
    fs_workspace *w;
    FILE *out;             /* o->output, open since before the work; NULL: there is none, or --resume opens it later */
    double sketch_seconds; /* wall clock, reading the files included */
} task;

/* Takes one of TASK_OPTIONS; returns -1 where the code is not one of them, otherwise as cli_number. */
int task_option(const char *command, int code, const char *value, task_options *o);

/* Takes the arguments that are not options, and checks that all are consistent; `rhs`: the task needs a B.  Returns 0,
 * or EXIT_USAGE after printing what is wrong. */
int task_arguments(const cli_command *command, task_options *o, int rhs, int argc, char **argv);

/* Opens A and, where o->rhs is set, B; the sketch, the context and the workspace, with room for an orthonormal basis of
 * `basis` columns where that is not 0; A and B are sketched unless it is for a basis.  Returns 0, or the exit code
 * after printing what is wrong; close it in both cases. */
int task_open(task *t, const task_options *o, int64_t basis);
void task_close(task *t);

/* The workspace of t's shapes, as for task_open.  Returns 0, or EXIT_FAILURE after printing why not. */
int task_workspace(task *t, int64_t basis);

/* --from: the sketches in files, in a workspace.  In from.c.  Returns as task_open. */
int task_from(task *t);

/* All of A as a dense matrix in host memory, in t->dense; a sparse one is written out.  A is whole (sketching.h).
 * Returns 0, or EXIT_FAILURE after printing why not. */
int task_dense(task *t);

/* Writes rows x cols doubles, packed rows, into the npy file o->output, in the workspace's type; nothing where it is
 * NULL.  With --resume it removes the states. */
int task_write(task *t, double *data, int64_t rows, int64_t cols);

/* Whether standard output is used for the result. */
int task_is_piped(const task *t);

/* "A", "B" and "S" lines; the line of times; members of JSON. */
void task_print_head(const task *t);
void task_print_times(double sketch, double solve);
cJSON *task_json(const task *t, double sketch, double solve);

#endif
