/* cmd_coherence.c - flashsketch coherence: how well the blocks of a sketch suit a matrix, by the paper's section 6. */
#include <flashsketch_tasks.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli.h"
#include "command.h"
#include "input.h"
#include "json.h"
#include "spec_options.h"

typedef struct coherence_options {
    const char *path;
    input_options input;
    fs_spec spec;
    double delta;
    int json, quiet;
} coherence_options;

enum { DELTA = INPUT_OTHER, JSON };

static int coherence_take(void *options, int code, const char *value)
{
    coherence_options *o = options;
    if (spec_is_option(code)) return spec_option(coherence_command.name, code, value, &o->spec);
    if (input_is_option(code)) return input_option(coherence_command.name, code, value, &o->input);
    if (code == DELTA) return cli_real(coherence_command.name, "--delta", value, 0, 1, &o->delta);
    if (code == 'q') o->quiet = 1;
    else o->json = 1;
    return 0;
}

/* The bounds of section 6, each with its absolute constant C taken as 1. */
typedef struct bounds {
    double smoothing; /* sqrt(mu_blk L / kappa) + mu_blk L / kappa, L = log(M r / delta) */
    double L, t;      /* t = r + log(1 / delta) */
    double by_k;      /* the smallest eps with k >= mu_nbr t / eps^2 */
    double by_s;      /* and with kappa s >= t / eps */
} bounds;

static bounds bounds_of(const fs_coherence_report *c, const fs_spec *p, double delta)
{
    bounds b;
    b.L = log((double)p->M * (double)c->rank / delta);
    b.t = (double)c->rank + log(1 / delta);
    b.smoothing = sqrt(c->mu_blk * b.L / (double)p->kappa) + c->mu_blk * b.L / (double)p->kappa;
    b.by_k = sqrt(c->mu_nbr * b.t / (double)p->k);
    b.by_s = b.t / (double)(p->kappa * p->s);
    return b;
}

static void coherence_print(const input *in, const fs_sketch *S, const fs_spec *p, const fs_coherence_report *c,
                            double delta)
{
    const bounds b = bounds_of(c, p, delta);
    const double M = (double)p->M, kappa = (double)p->kappa;
    char text[256];
    fs_sketch_describe(S, text, sizeof text);
    printf("A       %s, %" PRId64 " x %" PRId64 ", rank %" PRId64 "\nS       %s\n\n", in->name, in->d, in->n, c->rank,
           text);
    printf("mu_blk  %-9.4g M max |U_h|^2, from 1 (even) to M = %g; the largest is input block h = %" PRId64 "\n",
           c->mu_blk, M, c->block);
    printf("mu_nbr  %-9.4g (M / kappa) max |U_N(g)|^2, from 1 (even) to %.4g; the largest is output block g = %" PRId64
           "\n\n",
           c->mu_nbr, M / kappa, c->neighbourhood);
    printf("Bounds of the paper's section 6; C is an absolute constant that it does not name:\n"
           "  any permutations      mu_blk / kappa = %.4g <= mu_nbr <= mu_blk = %.4g\n",
           c->mu_blk / kappa, c->mu_blk);
    printf("  random permutations   mu_nbr <= 1 + %.4g C with probability %g\n", b.smoothing, 1 - delta);
    printf("  embedding             error <= eps with probability %g for eps >= %.4g sqrt(C) and eps >= %.4g C\n",
           1 - delta, b.by_k, b.by_s);
}

static int print_json(const input *in, const fs_spec *p, const fs_coherence_report *c, double delta)
{
    const bounds b = bounds_of(c, p, delta);
    cJSON *out = cJSON_CreateObject(), *spec = cJSON_CreateObject();
    json_spec(spec, p);
    cJSON_AddItemToObject(out, "spec", spec);
    json_whole(out, "rows", in->d);
    json_whole(out, "cols", in->n);
    json_whole(out, "rank", c->rank);
    cJSON_AddNumberToObject(out, "mu_blk", c->mu_blk);
    json_whole(out, "block", c->block);
    cJSON_AddNumberToObject(out, "mu_nbr", c->mu_nbr);
    json_whole(out, "neighbourhood", c->neighbourhood);
    cJSON_AddNumberToObject(out, "delta", delta);
    cJSON_AddNumberToObject(out, "nbr_at_least", c->mu_blk / (double)p->kappa);
    cJSON_AddNumberToObject(out, "nbr_at_most", c->mu_blk);
    cJSON_AddNumberToObject(out, "smoothing", b.smoothing);
    cJSON_AddNumberToObject(out, "eps_of_k", b.by_k);
    cJSON_AddNumberToObject(out, "eps_of_kappa_s", b.by_s);
    return json_print(out);
}

static void coherence_show(void *bar, double share, const char *doing) { progress_at(bar, share, "%s", doing); }

static int coherence_measure(const coherence_options *o, const input *in, progress *bar)
{
    fs_spec spec = o->spec, p;
    fs_context_options where = FS_CONTEXT_INIT;
    fs_sketch *S = NULL;
    fs_context *ctx = NULL;
    where.backend = FS_BACKEND_CPU;
    if (!spec.d) spec.d = in->d;
    if (spec.d != in->d)
        return cli_fail("%s has %" PRId64 " rows, but -d is %" PRId64 "; leave -d out", in->name, in->d, spec.d);
    int code = spec_sketch(&spec, &S, &p);
    if (!code && p.family != FS_BLOCKPERM)
        code = cli_fail("coherence is defined for --family blockperm, not for %s", fs_family_name(p.family));
    if (!code && fs_context_create(&ctx, &where)) code = cli_library_fail();
    if (!code) {
        fs_coherence_report c = FS_COHERENCE_REPORT_INIT;
        const fs_progress watch = {coherence_show, bar};
        const fs_result result = in->is_sparse ? fs_coherence_sparse(ctx, S, &in->sparse, &watch, &c)
                                               : fs_coherence(ctx, S, &in->A, &watch, &c);
        if (result) code = cli_input_fail(in->name);
        progress_end(bar);
        if (!code && o->json) code = print_json(in, &p, &c, o->delta);
        else if (!code) coherence_print(in, S, &p, &c, o->delta);
    }
    fs_context_destroy(ctx);
    fs_sketch_destroy(S);
    return code;
}

static int coherence_run(int argc, char **argv)
{
    coherence_options o = {.input = INPUT_INIT, .spec = FS_SPEC_INIT, .delta = 0.05};
    int code = cli_parse(&coherence_command, &argc, argv, coherence_take, &o);
    if (!code) code = input_path(&o.input, argc, argv, &o.path);
    if (code) return code;
    if (!o.spec.k) return cli_usage(argv[0], "give the number of rows of S, with -k N");
    input in;
    progress bar = progress_start(1, o.quiet);
    code = input_open(o.path, &o.input, &bar, &in);
    if (!code) code = coherence_measure(&o, &in, &bar);
    progress_end(&bar);
    input_close(&in);
    return code;
}

static const cli_option options[] = {
    SPEC_OPTIONS_OF("blockperm, the only family whose coherence is defined", "blockperm"),
    INPUT_OPTIONS("the file holds n x d, a sample in each row; A is its transpose"),
    {DELTA, "delta", "P", "the bounds hold with probability 1 - P (default 0.05)", NULL},
    {JSON, "json", NULL, "print a JSON object", NULL},
    {'q', "quiet", NULL, "no progress bar", NULL},
    {0}};
const cli_command coherence_command = {
    "coherence",
    "-k N [OPTION]... FILE",
    "measure how evenly A lies on the blocks of S",
    "Prints mu_blk and mu_nbr of the range of A under a BlockPerm-SJLT, and the bounds of the paper's section 6.\n" INPUT_TEXT,
    options,
    "--shuffle none is the paper's sketch, with contiguous blocks.  Both numbers are worst cases: one row of A that\n"
    "has a direction for itself makes mu_blk M, whatever the shuffle, and the sketch may be good all the same.",
    coherence_run};
