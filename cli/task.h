/* task.h - what the commands of tasks share (gram, ose, ridge, solve): their common options, and the way from files to
 * a filled workspace.
 *
 * A command owns a task, opens it, runs the library's function on task.w, prints, and closes it. */
#ifndef FLASHSKETCH_CLI_TASK_H
#define FLASHSKETCH_CLI_TASK_H

#include <flashsketch_tasks.h>
#include <stdio.h>

#include "command.h"
#include "input.h"
#include "json.h"
#include "spec_options.h"
#include "where.h"

#define TASK_OPTIONS                                                                                            \
    SPEC_OPTIONS, INPUT_OPTIONS(INPUT_TRANSPOSED), WHERE_OPTIONS,                                                                 \
    {TASK_JSON, "json", NULL, "print a JSON object", NULL}, {'q', "quiet", NULL, "no progress bar", NULL}
enum { TASK_JSON = INPUT_OTHER + 100 };

typedef struct task_options {
    const char *path;
    const char *rhs;      /* the file of B; NULL: there is none */
    const char *output;   /* NULL: nothing is written */
    input_options input;
    fs_spec spec;
    fs_context_options where;
    int exact, json, quiet;
} task_options;
#define TASK_OPTIONS_INIT { .spec = FS_SPEC_INIT, .where = FS_CONTEXT_INIT }

typedef struct task {
    const task_options *o;
    progress bar;
    input in;
    fs_matrix dense;      /* A as a dense matrix: a view of the file, or `copy` */
    fs_matrix B;          /* d x rhs of the workspace's type; its data is owned, as is copy */
    void *copy;
    fs_spec spec;         /* full */
    fs_sketch *S;
    fs_context *ctx;
    fs_workspace *w;
    FILE *out;             /* o->output, open since before the work; NULL: there is none */
    double sketch_seconds; /* on the wall's clock, the reading of the file too */
} task;

/* Takes one of TASK_OPTIONS; returns -1 where the code is not one of them, otherwise as cli_number. */
int task_option(const char *command, int code, const char *value, task_options *o);

/* Opens A and, where o->rhs says so, B; the sketch, the context and the workspace, with room for an orthonormal basis
 * of `basis` columns where that is not 0; A and B are sketched unless it is for a basis.  Returns 0, or the exit code
 * after saying what is wrong; close it in both cases. */
int task_open(task *t, const cli_command *command, const task_options *o, int64_t basis);
void task_close(task *t);

/* A as a dense matrix in host memory, in t->dense; a sparse one is written out.  Returns 0, or EXIT_FAILURE after
 * saying that there is no memory. */
int task_dense(task *t);

/* Writes rows x cols doubles, packed rows, into the npy file o->output, in the workspace's type; nothing where it is
 * NULL. */
int task_write(task *t, double *data, int64_t rows, int64_t cols);

/* Whether standard output is the result's alone. */
int task_is_piped(const task *t);

/* "A", "B" and "S" lines; the line of times; members of JSON. */
void task_print_head(const task *t);
void task_print_times(double sketch, double solve);
cJSON *task_json(const task *t, double sketch, double solve);

/* A number that JSON has, or null. */
void json_real(cJSON *object, const char *name, double value);

#endif
