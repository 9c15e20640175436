/* cmd_leverage.c - flashsketch leverage: leverage scores of the rows of a tall matrix in files, and its coherence. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "solver.h"

typedef struct leverage_options {
    solver_options solver;
    solver_output scores;
    fs_leverage_options how;
} leverage_options;

enum { EXACT = INPUT_OTHER, ERROR, RCOND, TOP = 10 };

static int leverage_take(void *options, int code, const char *value)
{
    leverage_options *o = options;
    const int taken = solver_option(leverage_command.name, code, value, &o->solver);
    if (taken >= 0) return taken;
    switch (code) {
    case EXACT: o->how.exact = 1; return 0;
    case ERROR: return cli_real(leverage_command.name, "--error", value, 0, 1, &o->how.error);
    case RCOND: return cli_real(leverage_command.name, "--rcond", value, 0, 1, &o->how.rcond);
    default: o->scores.path = value; return 0;
    }
}

/* The rows of the largest scores, descending, the first of equal ones first; returns how many. */
static int find_top(const double *scores, int64_t d, int64_t *top)
{
    int count = 0;
    for (int64_t i = 0; i < d; i++) {
        int at = count;
        while (at > 0 && scores[i] > scores[top[at - 1]]) at--;
        if (at == TOP) continue;
        if (count < TOP) count++;
        for (int j = count - 1; j > at; j--) top[j] = top[j - 1];
        top[at] = i;
    }
    return count;
}

static void leverage_print(const solver *s, const double *scores, const fs_leverage_report *t)
{
    int64_t top[TOP];
    const int count = find_top(scores, s->d, top);
    const double least = (double)t->rank / (double)s->d;
    solver_print_head(s);
    printf("rank      %" PRId64 ", the sum of exact scores; the sum is %.6g\n", t->rank, t->sum);
    printf("coherence %.4g, the largest score; %.3g times the mean of %.4g\n", t->largest,
           least > 0 ? t->largest / least : 0, least);
    if (t->error > 0) printf("error     a score is known to %.2g %% (standard deviation)\n", 100 * t->error);
    else printf("error     the scores are exact\n");
    printf("\n%12s  score\n", "row");
    for (int i = 0; i < count; i++) printf("%12" PRId64 "  %.6g\n", top[i], scores[top[i]]);
    printf("\nreads     %" PRId64 " of A\ntime      %.3g ms\n", t->reads, 1e3 * t->seconds);
}

static int print_json(const solver *s, const double *scores, const fs_leverage_report *t)
{
    int64_t top[TOP];
    const int count = find_top(scores, s->d, top);
    cJSON *out = solver_json(s);
    json_whole(out, "rank", t->rank);
    json_real(out, "sum", t->sum);
    json_real(out, "largest", t->largest);
    json_whole(out, "row", t->row);
    json_real(out, "error", t->error);
    cJSON *list = cJSON_AddArrayToObject(out, "top");
    for (int i = 0; i < count; i++) {
        cJSON *one = cJSON_CreateObject();
        json_whole(one, "row", top[i]);
        json_real(one, "score", scores[top[i]]);
        cJSON_AddItemToArray(list, one);
    }
    json_whole(out, "reads", t->reads);
    json_real(out, "seconds", t->seconds);
    return json_print(out);
}

static int leverage_measure(solver *s, leverage_options *o)
{
    fs_leverage_options how = o->how;
    fs_leverage_report report = FS_LEVERAGE_REPORT_INIT;
    how.seed = o->solver.seed;
    how.progress = &s->progress;
    if (s->d < s->n)
        return cli_fail("%s has %" PRId64 " rows and %" PRId64
                        " columns; leverage scores are of at least as many rows as columns",
                        s->files.name, s->d, s->n);
    int code = solver_room(&o->scores, "the scores", s->d, 0, 'f', sizeof(double));
    if (code) return code;
    const double *scores = o->scores.data;
    const fs_result result = fs_leverage(s->ctx, &s->A, &how, o->scores.data, &report);
    if (result) return solver_fail(s, result);
    code = solver_write(s);
    if (code || solver_is_piped(s)) return code;
    if (o->solver.json) return print_json(s, scores, &report);
    leverage_print(s, scores, &report);
    return 0;
}

static int leverage_run(int argc, char **argv)
{
    const fs_leverage_options start = FS_LEVERAGE_INIT;
    leverage_options o = {.solver = SOLVER_OPTIONS_INIT, .how = start};
    int code = cli_parse(&leverage_command, &argc, argv, leverage_take, &o);
    if (!code) code = solver_arguments(&o.solver, argc, argv);
    if (code) return code;
    if (o.how.exact && o.how.error > 0)
        return cli_usage(argv[0], "--error is of estimated scores, and --exact has none; leave one of them out");
    solver s;
    code = solver_open(&s, &o.solver, &o.scores, 1);
    if (!code) code = leverage_measure(&s, &o);
    solver_close(&s);
    return code;
}

static const cli_option options[] = {
    {'o', "output", "FILE", "file for the scores, d numbers in f64, npy (default: none)", CLI_FILES},
    {EXACT, "exact", NULL, "row norms of an orthonormal basis: more reads and operations", NULL},
    {ERROR, "error", "X", "the relative standard deviation of an estimated score (default 0.1)", NULL},
    {RCOND, "rcond", "X",
     "columns that depend on others to X count as dependent (default: max(8, sqrt(n)) times the\n"
     "machine precision of A's type)",
     NULL},
    SOLVER_OPTIONS,
    {0}};
const cli_command leverage_command = {
    "leverage",
    "[OPTION]... FILE...",
    "leverage scores of rows, and the coherence",
    "The score of a row is the squared norm of that row of an orthonormal basis of A's columns, from 0 to 1: how much\n"
    "the range of A depends on it.  Prints the coherence, which is the largest, and the rows that have the largest,\n"
    "counted from 0.\n" INPUT_TEXT "\n" SOLVER_TEXT,
    options,
    "Estimated scores take two reads of A and are unbiased up to the error of the sketch, so they can exceed 1 by it.",
    leverage_run};
