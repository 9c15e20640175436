/* cmd_plan.c - flashsketch plan: k, kappa and s of a sketch that has a wanted error. */
#include <flashsketch_solvers.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "command.h"
#include "json.h"

typedef struct plan_options {
    fs_plan_options plan;
    int json;
} plan_options;

enum { ERROR = 256, PROBABILITY, COHERENT, JSON };

static int plan_take(void *options, int code, const char *value)
{
    plan_options *o = options;
    const char *command = plan_command.name;
    switch (code) {
    case 'n': return cli_number(command, "-n", value, 1, INT32_MAX, &o->plan.n);
    case 'd': return cli_number(command, "-d", value, 1, (int64_t)1 << 48, &o->plan.d);
    case ERROR: return cli_real(command, "--error", value, 0, 1, &o->plan.error);
    case PROBABILITY: return cli_real(command, "--probability", value, 0, 1, &o->plan.probability);
    case COHERENT: o->plan.coherent = 1; return 0;
    default: o->json = 1; return 0;
    }
}

static void plan_print(const plan_options *o, const fs_plan_report *t)
{
    const double p = o->plan.probability > 0 ? o->plan.probability : 0.05;
    printf("k = %" PRId64 ", kappa = %" PRId64 ", s = %" PRId64 "\n", t->k, t->kappa, t->s);
    printf("error     %.4g typically, above %.4g in %g of 100 draws\n", t->typical, t->exceeded, 100 * p);
    printf("reason    %s\n", t->reason);
    printf("next      flashsketch sketch -k %" PRId64 " --kappa %" PRId64 " -s %" PRId64 " A.npy -o Y.npy\n", t->k,
           t->kappa, t->s);
}

static int print_json(const plan_options *o, const fs_plan_report *t)
{
    cJSON *out = cJSON_CreateObject();
    json_whole(out, "n", o->plan.n);
    if (o->plan.d) json_whole(out, "d", o->plan.d);
    json_real(out, "error", o->plan.error);
    json_real(out, "probability", o->plan.probability > 0 ? o->plan.probability : 0.05);
    cJSON_AddBoolToObject(out, "coherent", o->plan.coherent);
    json_whole(out, "k", t->k);
    json_whole(out, "kappa", t->kappa);
    json_whole(out, "s", t->s);
    json_real(out, "typical", t->typical);
    json_real(out, "exceeded", t->exceeded);
    cJSON_AddStringToObject(out, "reason", t->reason);
    return json_print(out);
}

static int plan_run(int argc, char **argv)
{
    const fs_plan_options start = FS_PLAN_INIT;
    plan_options o = {.plan = start};
    fs_plan_report report = FS_PLAN_REPORT_INIT;
    const int code = cli_parse(&plan_command, &argc, argv, plan_take, &o);
    if (code) return code;
    if (argc > 1) return cli_usage(argv[0], "it takes no arguments, but got '%s'", argv[1]);
    if (!o.plan.n) return cli_usage(argv[0], "give the number of columns of A, with -n N");
    if (!(o.plan.error > 0)) return cli_usage(argv[0], "give the wanted error, with --error X");
    if (fs_plan(&o.plan, &report)) return cli_library_fail();
    if (o.json) return print_json(&o, &report);
    plan_print(&o, &report);
    return 0;
}

static const cli_option options[] = {
    {'n', NULL, "N", "columns of A, or the rank that counts", NULL},
    {ERROR, "error", "X", "all squared lengths in the range of A are kept within it", NULL},
    {PROBABILITY, "probability", "X", "that the error is larger (default 0.05)", NULL},
    {'d', NULL, "N", "rows of A: k is not larger (default: not known)", NULL},
    {COHERENT, "coherent", NULL, "a few rows of A may outweigh all others", NULL},
    {JSON, "json", NULL, "print a JSON object", NULL},
    {0}};
const cli_command plan_command = {
    "plan",
    "-n N --error X [OPTION]...",
    "choose a sketch for a wanted error",
    "Prints k, kappa and s of a BlockPerm-SJLT with shuffled rows whose error is as wanted, the error that 'flashsketch\n"
    "ose' measures: |(SQ)'SQ - I|_2 for an orthonormal basis Q of the range of A.",
    options,
    "'flashsketch sketch', 'solve', 'ridge', 'gram' and 'ose' take the same --error in place of -k.",
    plan_run};
