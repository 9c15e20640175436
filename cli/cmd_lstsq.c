/* cmd_lstsq.c - flashsketch lstsq: least squares to full accuracy, for matrices in files. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "cli.h"
#include "exact.h"
#include "solver.h"

typedef struct lstsq_options {
    solver_options solver;
    const char **rhs; /* the files of B, rhs_files of them */
    int64_t rhs_files;
    const char *output;
    fs_lstsq_options how;
} lstsq_options;

enum { RHS = INPUT_OTHER, LAMBDA, RCOND, TOLERANCE, ITERATIONS, METHOD, MEASURE };

static const char *const methods[] = {"auto", "iterate", "normal", "direct"};

static int take_method(const char *text, fs_lstsq_method *method)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (!strcmp(text, methods[i])) return *method = (fs_lstsq_method)i, 0;
    return cli_usage(lstsq_command.name, "--method is auto, iterate, normal or direct, not '%s'", text);
}

static int lstsq_take(void *options, int code, const char *value)
{
    lstsq_options *o = options;
    const char *command = lstsq_command.name;
    const int taken = solver_option(command, code, value, &o->solver);
    if (taken >= 0) return taken;
    switch (code) {
    case RHS: o->rhs[o->rhs_files++] = value; return 0;
    case LAMBDA: return cli_real(command, "--lambda", value, 0, INFINITY, &o->how.lambda);
    case RCOND: return cli_real(command, "--rcond", value, 0, 1, &o->how.rcond);
    case TOLERANCE: return cli_real(command, "--tolerance", value, 0, 1, &o->how.tolerance);
    case ITERATIONS: return cli_number(command, "--max-iterations", value, 1, INT32_MAX, &o->how.max_iterations);
    case METHOD: return take_method(value, &o->how.method);
    case MEASURE: return o->how.measure_error = 1, 0;
    default: o->output = value; return 0;
    }
}

/* A right-hand side in files, in memory or mapped. */
typedef struct rhs {
    sketching files;
    fs_matrix B;
    double *copy; /* owned */
} rhs;

static int open_rhs(rhs *r, solver *s, const lstsq_options *o)
{
    static const input_options plain = INPUT_INIT;
    static const sketching_options stream = SKETCHING_INIT;
    sketching *f = &r->files;
    int code = sketching_open(f, o->rhs, o->rhs_files, &plain, &stream, o->solver.where.threads, 1, &s->bar);
    if (code) return code;
    if (f->d != s->d)
        return cli_fail("%s has %" PRId64 " rows, but %s has %" PRId64 "; B has a row for each row of A", f->name, f->d,
                        s->files.name, s->d);
    if (o->rhs_files == 1 && !f->is_sparse) {
        fs_panel all = FS_PANEL_INIT;
        code = input_whole(f->stream, &all);
        r->B = all.A;
        return code;
    }
    r->copy = exact_zeros(f->name, f->d, f->n);
    if (!r->copy) return EXIT_FAILURE;
    r->B = fs_row_major(r->copy, f->d, f->n, FS_F64);
    return exact_gather(f, s->ctx, r->copy);
}

/* printing --------------------------------------------------------------------------------------------------- */

static const char *method_text(fs_lstsq_method method)
{
    switch (method) {
    case FS_LSTSQ_ITERATE: return "by iterations with the sketch as preconditioner";
    case FS_LSTSQ_NORMAL: return "by the normal equations, refined";
    default: return "by singular values of A";
    }
}

static void lstsq_print(const solver *s, const rhs *r, const lstsq_options *o, const fs_lstsq_report *t)
{
    solver_print_head(s);
    printf("B         %s, %" PRId64 " x %" PRId64 "\n", r->files.name, r->B.rows, r->B.cols);
    printf("X         %" PRId64 " x %" PRId64 ", %s", s->n, r->B.cols, method_text(t->method));
    if (o->how.lambda > 0) printf("; lambda %g\n", o->how.lambda);
    else printf("\n");
    printf("rank      %" PRId64 "%s, condition about %.3g\n", t->rank,
           t->rank < s->n && !(o->how.lambda > 0) ? ", so X is the shortest of many solutions" : "", t->condition);
    printf("reads     %" PRId64 " of A, %" PRId64 " iteration%s", t->reads, t->iterations,
           t->iterations == 1 ? "" : "s");
    if (t->k) printf("; the sketch has %" PRId64 " rows\n", t->k);
    else printf("; no sketch\n");
    printf("error     backward error about %.2g |A|_F%s", t->backward_error,
           t->converged ? "" : "; the tolerance was not reached");
    if (o->how.measure_error && !isnan(t->true_backward_error)) printf("; measured %.2g |A|_F", t->true_backward_error);
    printf("\nresidual  |A X - B| = %.6g, |X| = %.6g\n", t->residual, t->solution);
    if (t->note[0]) printf("note      %s\n", t->note);
    printf("time      sketch %.3g ms, total %.3g ms\n", 1e3 * t->sketch_seconds, 1e3 * t->seconds);
}

static int print_json(const solver *s, const rhs *r, const lstsq_options *o, const fs_lstsq_report *t)
{
    cJSON *out = solver_json(s);
    json_whole(out, "rhs", r->B.cols);
    json_real(out, "lambda", o->how.lambda);
    cJSON_AddStringToObject(out, "method", methods[t->method]);
    json_whole(out, "k", t->k);
    json_whole(out, "rank", t->rank);
    json_real(out, "condition", t->condition);
    json_whole(out, "iterations", t->iterations);
    json_whole(out, "reads", t->reads);
    cJSON_AddBoolToObject(out, "converged", t->converged);
    json_real(out, "backward_error", t->backward_error);
    if (o->how.measure_error) json_real(out, "true_backward_error", t->true_backward_error);
    json_real(out, "residual", t->residual);
    json_real(out, "solution", t->solution);
    cJSON_AddStringToObject(out, "note", t->note);
    json_real(out, "sketch_seconds", t->sketch_seconds);
    json_real(out, "seconds", t->seconds);
    return json_print(out);
}

/* running ---------------------------------------------------------------------------------------------------- */

static int lstsq_solve(solver *s, rhs *r, const lstsq_options *o, solver_output *X)
{
    fs_lstsq_options how = o->how;
    fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
    how.seed = o->solver.seed;
    how.progress = &s->progress;
    int code = open_rhs(r, s, o);
    if (!code) code = solver_room(X, "X", s->n, r->B.cols, 'f', (int)fs_dtype_size(s->sum));
    if (code) return code;
    const fs_matrix x = solver_matrix(X);
    if (fs_lstsq(s->ctx, &s->A, &r->B, &how, &x, &report)) return cli_library_fail();
    code = solver_write(s);
    if (code || solver_is_piped(s)) return code;
    if (o->solver.json) return print_json(s, r, o, &report);
    lstsq_print(s, r, o, &report);
    return 0;
}

static int lstsq(lstsq_options *o, int argc, char **argv)
{
    int code = solver_arguments(&o->solver, argc, argv);
    if (code) return code;
    if (!o->rhs_files) return cli_usage(argv[0], "name the file of B, with --rhs FILE");
    for (int64_t i = 0; i < o->rhs_files; i++)
        if (claims_input(o->rhs[i])) return EXIT_FAILURE;
    solver s;
    rhs r = {.copy = NULL};
    solver_output X = {.path = o->output};
    code = solver_open(&s, &o->solver, &X, 1);
    if (!code) code = lstsq_solve(&s, &r, o, &X);
    sketching_close(&r.files);
    free(r.copy);
    solver_close(&s);
    return code;
}

static int lstsq_run(int argc, char **argv)
{
    const fs_lstsq_options start = FS_LSTSQ_INIT;
    lstsq_options o = {.solver = SOLVER_OPTIONS_INIT, .how = start};
    o.rhs = cli_array(argc, 1, sizeof *o.rhs); /* there are at most as many files as arguments */
    if (!o.rhs) return cli_fail("no memory for the names of %d files", argc);
    int code = cli_parse(&lstsq_command, &argc, argv, lstsq_take, &o);
    if (!code) code = lstsq(&o, argc, argv);
    free(o.rhs);
    return code;
}

static const cli_option options[] = {
    {RHS, "rhs", "FILE",
     "B, d x anything: a right-hand side in each column; any format that says its own shape; it\n"
     "is held in memory.  Given several times, the files are one matrix, joined as those of A are",
     CLI_FILES},
    {'o', "output", "FILE", "file for X, n x anything, npy (default: none)", CLI_FILES},
    {LAMBDA, "lambda", "L", "minimise |A X - B|^2 + L |X|^2, ridge regression", NULL},
    {RCOND, "rcond", "X",
     "singular values of A up to X times the largest count as 0 (default: max(8, sqrt(n)) times\n"
     "the machine precision of A's type)",
     NULL},
    {TOLERANCE, "tolerance", "X", "stop at this backward error, relative to |A|_F (default: the rounding of A's type)",
     NULL},
    {ITERATIONS, "max-iterations", "N", "stop after N iterations (default 200)", NULL},
    {METHOD, "method", "NAME", "auto (default), iterate, normal or direct", "auto iterate normal direct"},
    {MEASURE, "measure-error", NULL, "print the backward error itself too, by singular values of A: one more read",
     NULL},
    SOLVER_OPTIONS,
    {0}};
const cli_command lstsq_command = {
    "lstsq",
    "--rhs FILE [OPTION]... FILE...",
    "least squares to full accuracy: X that minimises |A X - B|",
    "Solves A X = B in the sense of least squares, to the accuracy that LAPACK gives in A's type.  Where there are\n"
    "many solutions, as with dependent columns or d < n, X is the shortest.\n" INPUT_TEXT "\n" SOLVER_TEXT,
    options,
    "The sketch of A, a single read, is the preconditioner of conjugate gradients, which read A once in each\n"
    "iteration.  'flashsketch solve' reads A only once; its residual is some percent above the smallest.",
    lstsq_run};
