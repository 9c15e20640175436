/* cmd_qr.c - flashsketch qr: A = Q R for a tall matrix in files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "solver.h"

enum { Q, R, PIVOTS, OUTPUTS };
typedef struct qr_options {
    solver_options solver;
    solver_output outputs[OUTPUTS];
    fs_qr_options how;
} qr_options;

enum { PIVOT = INPUT_OTHER, PIVOTS_FILE, RCOND };

static int qr_take(void *options, int code, const char *value)
{
    qr_options *o = options;
    const int taken = solver_option(qr_command.name, code, value, &o->solver);
    if (taken >= 0) return taken;
    switch (code) {
    case PIVOT: o->how.pivot = 1; return 0;
    case RCOND: return cli_real(qr_command.name, "--rcond", value, 0, 1, &o->how.rcond);
    case PIVOTS_FILE: o->outputs[PIVOTS].path = value; return 0;
    case 'R': o->outputs[R].path = value; return 0;
    default: o->outputs[Q].path = value; return 0;
    }
}

static void qr_print(const solver *s, const qr_options *o, const fs_qr_report *t)
{
    solver_print_head(s);
    if (o->outputs[Q].path)
        printf("Q         %" PRId64 " x %" PRId64 ", |Q'Q - I|_F = %.2g before it is rounded to %s\n", s->d, s->n,
               t->orthogonality, fs_file_dtype_name(s->sum));
    printf("R         %" PRId64 " x %" PRId64 "%s\n", s->n, s->n, o->how.pivot ? ", of A(:, pivots)" : "");
    printf("rank      %" PRId64 ", condition about %.3g\n", t->rank, t->condition);
    printf("reads     %" PRId64 " of A", t->reads);
    if (t->k) printf("; the sketch has %" PRId64 " rows\n", t->k);
    else printf("; no sketch\n");
    printf("time      %.3g ms\n", 1e3 * t->seconds);
}

static int print_json(const solver *s, const qr_options *o, const fs_qr_report *t, const int64_t *pivots)
{
    cJSON *out = solver_json(s);
    cJSON_AddBoolToObject(out, "pivot", o->how.pivot);
    json_whole(out, "k", t->k);
    json_whole(out, "rank", t->rank);
    json_real(out, "condition", t->condition);
    if (o->outputs[Q].path) json_real(out, "orthogonality", t->orthogonality);
    json_whole(out, "reads", t->reads);
    json_real(out, "seconds", t->seconds);
    cJSON *list = pivots ? cJSON_AddArrayToObject(out, "pivots") : NULL;
    for (int64_t i = 0; pivots && i < s->n; i++) cJSON_AddItemToArray(list, cJSON_CreateNumber((double)pivots[i]));
    return json_print(out);
}

static int factor(solver *s, qr_options *o)
{
    fs_qr_options how = o->how;
    fs_qr_report report = FS_QR_REPORT_INIT;
    const int bytes = (int)fs_dtype_size(s->sum);
    int code = 0;
    how.seed = o->solver.seed;
    how.progress = &s->progress;
    if (s->d < s->n)
        return cli_fail("%s has %" PRId64 " rows and %" PRId64 " columns; QR takes at least as many rows as columns",
                        s->files.name, s->d, s->n);
    if (o->outputs[Q].path) code = solver_room(&o->outputs[Q], "Q", s->d, s->n, 'f', bytes);
    if (!code) code = solver_room(&o->outputs[R], "R", s->n, s->n, 'f', bytes);
    if (!code && how.pivot) code = solver_room(&o->outputs[PIVOTS], "the pivots", s->n, 0, 'i', sizeof(int64_t));
    if (code) return code;
    int64_t *pivots = how.pivot ? o->outputs[PIVOTS].data : NULL;
    const fs_matrix r = solver_matrix(&o->outputs[R]), q = o->outputs[Q].path ? solver_matrix(&o->outputs[Q]) : r;
    const fs_result result = fs_qr(s->ctx, &s->A, &how, o->outputs[Q].path ? &q : NULL, &r, pivots, &report);
    if (result) return solver_fail(s, result);
    code = solver_write(s);
    if (code || solver_is_piped(s)) return code;
    if (o->solver.json) return print_json(s, o, &report, pivots);
    qr_print(s, o, &report);
    return 0;
}

static int qr_run(int argc, char **argv)
{
    const fs_qr_options start = FS_QR_INIT;
    qr_options o = {.solver = SOLVER_OPTIONS_INIT, .how = start};
    int code = cli_parse(&qr_command, &argc, argv, qr_take, &o);
    if (!code) code = solver_arguments(&o.solver, argc, argv);
    if (code) return code;
    if (o.outputs[PIVOTS].path && !o.how.pivot)
        return cli_usage(argv[0], "--pivots names the file of the pivots, which --pivot makes; give both");
    solver s;
    code = solver_open(&s, &o.solver, o.outputs, OUTPUTS);
    if (!code) code = factor(&s, &o);
    solver_close(&s);
    return code;
}

static const cli_option options[] = {
    {'o', "output", "FILE", "file for Q, d x n, npy (default: R alone is computed)", CLI_FILES},
    {'R', NULL, "FILE", "file for R, n x n, npy (default: none)", CLI_FILES},
    {PIVOT, "pivot", NULL, "A(:, pivots) = Q R, with a numerical rank", NULL},
    {PIVOTS_FILE, "pivots", "FILE", "file for the pivots, n integers from 0 on, npy (default: none)", CLI_FILES},
    {RCOND, "rcond", "X",
     "with --pivot: |R_ii| up to X |R_00| counts as 0 (default: max(8, sqrt(n)) times the machine\n"
     "precision of A's type)",
     NULL},
    SOLVER_OPTIONS,
    {0}};
const cli_command qr_command = {
    "qr",
    "[OPTION]... FILE...",
    "QR factorization of a tall matrix: A = Q R",
    "Q has orthonormal columns, R is upper triangular with a diagonal that is not negative.  Q is orthogonal to\n"
    "rounding for condition numbers up to 1 / u, u the rounding unit of A's type.\n" INPUT_TEXT "\n" SOLVER_TEXT,
    options,
    "Q is computed in its file, so that it may be larger than memory.  Dependent columns need --pivot; with rank r\n"
    "the first r columns of Q are the basis, the others are 0.",
    qr_run};
