/* cmd_gram.c - flashsketch gram: (SA)'SA in place of A'A, and its error. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "task.h"

enum { EXACT = INPUT_OTHER };

static int gram_take(void *options, int code, const char *value)
{
    task_options *o = options;
    const int taken = task_option(gram_command.name, code, value, o);
    if (taken >= 0) return taken;
    if (code == EXACT) o->exact = 1;
    else o->output = value;
    return 0;
}

static void gram_print(const task *t, const fs_gram_report *r, double frobenius, double spectral)
{
    task_print_head(t);
    printf("G         %" PRId64 " x %" PRId64 "\n", t->in.n, t->in.n);
    printf("error     |G - A'A|_F / |A'A|_F is %s %.4g, ", r->confidence == 0 ? "estimated as" : "about", r->error);
    if (r->confidence == 0) printf("accuracy not known\nnote      %s\n", r->note);
    else if (r->low > 0) printf("from %.4g to %.4g in %.0f of 100 cases\n", r->low, r->high, 100 * r->confidence);
    else printf("at most %.4g in %.0f of 100 cases\n", r->high, 100 * r->confidence);
    if (r->effective_k < 0.9 * (double)t->spec.k)
        printf("          few blocks of S carry most of A: its error is that of a sketch with %.0f rows; %s\n",
               r->effective_k, t->spec.shuffle == FS_SHUFFLE_NONE ? "try --shuffle rows" : "give a larger -k");
    if (t->o->exact)
        printf("exact     |G - A'A| / |A'A| is %.6g in the Frobenius norm, %.6g in the spectral norm\n", frobenius,
               spectral);
    task_print_times(t->sketch_seconds, r->solve_seconds);
}

static int print_json(const task *t, const fs_gram_report *r, double frobenius, double spectral)
{
    cJSON *out = task_json(t, t->sketch_seconds, r->solve_seconds);
    json_real(out, "error", r->error);
    json_real(out, "low", r->low);
    json_real(out, "high", r->high);
    json_real(out, "effective_k", r->effective_k);
    json_real(out, "confidence", r->confidence);
    cJSON_AddStringToObject(out, "note", r->note);
    if (t->o->exact) {
        json_real(out, "frobenius", frobenius);
        json_real(out, "spectral", spectral);
    }
    return json_print(out);
}

static int gram_measure(task *t)
{
    const int64_t n = t->in.n;
    double *g = cli_array(n, n, sizeof *g), frobenius = NAN, spectral = NAN;
    if (!g) return cli_fail("no memory for G, %" PRId64 " x %" PRId64, n, n);
    fs_matrix G = fs_row_major(g, n, n, FS_F64);
    fs_gram_report report = FS_GRAM_REPORT_INIT;
    int code = 0;
    if (fs_gram(t->w, t->S, &G, &report)) code = cli_library_fail();
    if (!code && t->o->exact) code = task_dense(t);
    if (!code && t->o->exact && fs_gram_error(t->w, &t->dense, &frobenius, &spectral)) code = cli_library_fail();
    if (!code) code = task_write(t, g, n, n);
    if (code || task_is_piped(t)) {
        free(g);
        return code;
    }
    if (t->o->json) code = print_json(t, &report, frobenius, spectral);
    else gram_print(t, &report, frobenius, spectral);
    free(g);
    return code;
}

static int gram_run(int argc, char **argv)
{
    task_options o = TASK_OPTIONS_INIT;
    int code = cli_parse(&gram_command, &argc, argv, gram_take, &o);
    if (!code) code = task_arguments(&gram_command, &o, 0, argc, argv);
    if (code) return code;
    task t;
    code = task_open(&t, &o, 0);
    if (!code) code = gram_measure(&t);
    task_close(&t);
    return code;
}

static const cli_option options[] = {
    {EXACT, "exact", NULL, "print the error itself: A is one file, mapped or in memory", NULL},
    {'o', "output", "FILE", "file for G, n x n, npy (default: none)", CLI_FILES},
    TASK_FROM_OPTION("FILE is S A, which 'flashsketch sketch' or 'add' wrote"),
    TASK_OPTIONS(WHERE_OPTIONS),
    SKETCHING_OPTIONS,
    {0}};
const cli_command gram_command = {
    "gram",
    "-k N [OPTION]... FILE...\n       flashsketch gram --from [OPTION]... FILE",
    "(SA)'SA, an estimate of A'A, and its error",
    "Makes G = (SA)'SA, n x n, and estimates from S A alone how far it is from A'A.\n" INPUT_TEXT "\n" TASK_TEXT,
    options,
    "The bound on the error holds for every family but blockrow and srht; where a few rows of A outweigh all others\n"
    "the error may be much smaller.",
    gram_run};
