/* cmd_fit.c - flashsketch solve and flashsketch ridge: least squares for matrices in files, by their sketches. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "exact.h"
#include "task.h"

typedef struct fit_options {
    task_options task;
    double lambda, rcond;
} fit_options;

enum { RHS = INPUT_OTHER, EXACT, LAMBDA, RCOND };

static int fit_take(const char *command, void *options, int code, const char *value)
{
    fit_options *o = options;
    const int taken = task_option(command, code, value, &o->task);
    if (taken >= 0) return taken;
    switch (code) {
    case RHS: o->task.rhs[o->task.rhs_files++] = value; return 0;
    case EXACT: o->task.exact = 1; return 0;
    case LAMBDA: return cli_real(command, "--lambda", value, 0, INFINITY, &o->lambda);
    case RCOND: return cli_real(command, "--rcond", value, 0, 1, &o->rcond);
    default: o->task.output = value; return 0;
    }
}
static int take_solve(void *options, int code, const char *value)
{
    return fit_take(solve_command.name, options, code, value);
}
static int take_ridge(void *options, int code, const char *value)
{
    return fit_take(ridge_command.name, options, code, value);
}

static void fit_print(const task *t, const fs_fit_report *r, double lambda, double exact)
{
    task_print_head(t);
    printf("X         %" PRId64 " x %" PRId64 ", by %s; ", t->in.n, t->B.cols,
           r->method == FS_METHOD_CHOLESKY ? "Cholesky's factor" : "singular values");
    if (lambda > 0) printf("lambda %g\n", lambda);
    else if (r->rank < t->in.n)
        printf("the rank of S A is %" PRId64 ", so X is the shortest of many solutions\n", r->rank);
    else printf("rank %" PRId64 ", condition about %.3g\n", r->rank, r->condition);
    if (isnan(r->residual)) {
        printf("residual  not known: the %" PRId64
               " equations of the sketch are all satisfied; give a larger -k, or --exact\n",
               t->spec.k);
    } else {
        const int known = r->confidence > 0;
        printf("residual  |A X - B| is %s %.4g, ", known ? "about" : "estimated as", r->residual);
        if (known) printf("from %.4g to %.4g in %.0f of 100 cases", r->low, r->high, 100 * r->confidence);
        else printf("accuracy not known");
        printf("; |B| about %.4g\n", r->rhs);
        if (lambda == 0 && known)
            printf("          the smallest possible: about %.4g; a larger -k comes closer to it\n", r->smallest);
        if (r->note[0]) printf("note      %s\n", r->note);
    }
    if (t->o->exact) printf("exact     |A X - B| = %.6g\n", exact);
    task_print_times(t->sketch_seconds, r->solve_seconds);
}

static int print_json(const task *t, const fs_fit_report *r, double lambda, double exact)
{
    cJSON *out = task_json(t, t->sketch_seconds, r->solve_seconds);
    json_whole(out, "rhs", t->B.cols);
    if (lambda > 0) json_real(out, "lambda", lambda);
    cJSON_AddStringToObject(out, "method", r->method == FS_METHOD_CHOLESKY ? "cholesky" : "svd");
    json_whole(out, "rank", r->rank);
    json_real(out, "condition", r->condition);
    json_real(out, "rhs_norm", r->rhs);
    json_real(out, "sketched", r->sketched);
    json_real(out, "residual", r->residual);
    json_real(out, "low", r->low);
    json_real(out, "high", r->high);
    json_real(out, "confidence", r->confidence);
    cJSON_AddStringToObject(out, "note", r->note);
    if (lambda == 0) json_real(out, "smallest", r->smallest);
    if (t->o->exact) json_real(out, "exact", exact);
    return json_print(out);
}

static int fit_solve(task *t, const fit_options *o)
{
    const int64_t n = t->in.n, rhs = t->B.cols;
    double *x = cli_array(n, rhs, sizeof *x), exact = NAN;
    if (!x) return cli_fail("no memory for X, %" PRId64 " x %" PRId64, n, rhs);
    fs_matrix X = fs_row_major(x, n, rhs, FS_F64);
    fs_fit_report report = FS_FIT_REPORT_INIT;
    int code = 0;
    if (o->lambda > 0 ? fs_ridge(t->w, o->lambda, &X, &report) : fs_solve(t->w, o->rcond, &X, &report))
        code = cli_library_fail();
    if (!code && t->o->exact) code = exact_residual(t, &X, &exact);
    if (!code) code = task_write(t, x, n, rhs);
    if (code || task_is_piped(t)) {
        free(x);
        return code;
    }
    if (t->o->json) code = print_json(t, &report, o->lambda, exact);
    else fit_print(t, &report, o->lambda, exact);
    free(x);
    return code;
}

static int fit(const cli_command *command, fit_options *o, int argc, char **argv)
{
    int code = task_arguments(command, &o->task, 1, argc, argv);
    if (code) return code;
    if (command == &ridge_command && !(o->lambda > 0)) return cli_usage(command->name, "give lambda, with --lambda X");
    task t;
    code = task_open(&t, &o->task, 0);
    if (!code) code = fit_solve(&t, o);
    task_close(&t);
    return code;
}

static int fit_run(const cli_command *command, int argc, char **argv, int (*takes)(void *, int, const char *))
{
    fit_options o = {.task = TASK_OPTIONS_INIT};
    o.task.rhs = cli_array(argc, 1, sizeof *o.task.rhs); /* there are at most as many files as arguments */
    if (!o.task.rhs) return cli_fail("no memory for the names of %d files", argc);
    int code = cli_parse(command, &argc, argv, takes, &o);
    if (!code) code = fit(command, &o, argc, argv);
    free(o.task.rhs);
    return code;
}
static int run_solve(int argc, char **argv) { return fit_run(&solve_command, argc, argv, take_solve); }
static int run_ridge(int argc, char **argv) { return fit_run(&ridge_command, argc, argv, take_ridge); }

#define FIT_OPTIONS \
    {RHS, "rhs", "FILE", \
     "B, d x anything: a right-hand side in each column; any format that says its own shape.\n" \
     "Given several times, the files are one matrix, joined as those of A are", \
     CLI_FILES}, \
        {EXACT, "exact", NULL, "print |A X - B| itself: A is read again, and B is held in memory", NULL}, \
        {'o', "output", "FILE", "file for X, n x anything, npy (default: none)", CLI_FILES}, \
        TASK_FROM_OPTION("the FILEs are S A and S B, which 'flashsketch sketch' or 'add' wrote")
#define FIT_NOTES \
    "The residual is estimated from the sketch alone.  Its interval is printed where it is known to hold: gaussian,\n" \
    "sjlt and blockperm (shuffle rows) with 4 nonzeros in a column and k at least twice the rank, 4 times where few\n" \
    "rows of A dominate.  --exact prints the residual itself."
static const cli_option solve_options[] = {
    FIT_OPTIONS,
    {RCOND, "rcond", "X", "singular values of S A below X times the largest count as 0", NULL},
    TASK_OPTIONS(WHERE_OPTIONS),
    SKETCHING_OPTIONS,
    {0}};
const cli_command solve_command = {
    "solve",
    "-k N --rhs FILE [OPTION]... FILE...\n       flashsketch solve --from [OPTION]... FILE FILE",
    "least squares by a sketch: X that minimises |S A X - S B|",
    "Solves A X = B in the sense of least squares with the k equations of S A X = S B in place of the d ones of A.\n"
    "Where those have many solutions, X is the shortest.\n" INPUT_TEXT "\n" TASK_TEXT,
    solve_options,
    FIT_NOTES,
    run_solve};
static const cli_option ridge_options[] = {FIT_OPTIONS,
                                           {LAMBDA, "lambda", "X", "how much to regularize", NULL},
                                           TASK_OPTIONS(WHERE_OPTIONS),
                                           SKETCHING_OPTIONS,
                                           {0}};
const cli_command ridge_command = {
    "ridge",
    "-k N --lambda X --rhs FILE [OPTION]... FILE...\n"
    "       flashsketch ridge --from --lambda X [OPTION]... FILE FILE",
    "ridge regression by a sketch",
    "X minimises |S A X - S B|^2 + lambda |X|^2 in place of |A X - B|^2 + lambda |X|^2.\n" INPUT_TEXT "\n" TASK_TEXT,
    ridge_options,
    FIT_NOTES,
    run_ridge};
