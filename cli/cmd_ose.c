/* cmd_ose.c - flashsketch ose: how well S keeps lengths in the range of A. */
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "task.h"

typedef struct ose_options {
    task_options task;
    int64_t columns;
} ose_options;

static int ose_take(void *options, int code, const char *value)
{
    ose_options *o = options;
    const int taken = task_option(ose_command.name, code, value, &o->task);
    return taken >= 0 ? taken : cli_number(ose_command.name, "-r", value, 1, INT32_MAX, &o->columns);
}

static void ose_print(const task *t, const fs_ose_report *r, int64_t columns)
{
    task_print_head(t);
    printf("Q         an orthonormal basis of %s%" PRId64 " columns\n", columns < t->in.n ? "the first " : "its ",
           columns);
    printf("error     |(SQ)'SQ - I|_2 = %.4g; of a Gaussian sketch it is about %.4g, from %.4g to %.4g\n", r->error,
           r->expected, r->low, r->high);
    if (r->error > r->high)
        printf(
            "          S is bad for this matrix: try a larger -k, --quality high or gaussian, or another --shuffle\n");
    printf("          |S x| is from %.4g to %.4g times |x| for every x in the range; |(SQ)'SQ - I|_F = %.4g\n",
           r->sigma_min, r->sigma_max, r->frobenius);
    task_print_times(r->sketch_seconds, r->solve_seconds);
}

static int print_json(const task *t, const fs_ose_report *r, int64_t columns)
{
    cJSON *out = task_json(t, r->sketch_seconds, r->solve_seconds);
    json_whole(out, "columns", columns);
    json_real(out, "error", r->error);
    json_real(out, "frobenius", r->frobenius);
    json_real(out, "sigma_min", r->sigma_min);
    json_real(out, "sigma_max", r->sigma_max);
    json_real(out, "expected", r->expected);
    json_real(out, "low", r->low);
    json_real(out, "high", r->high);
    return json_print(out);
}

static int ose_measure(task *t, int64_t columns)
{
    fs_ose_report report = FS_OSE_REPORT_INIT;
    int code = task_dense(t);
    if (!code && fs_ose(t->w, t->S, &t->dense, 0, &report)) code = cli_input_fail(t->in.name);
    if (!code && t->o->json) code = print_json(t, &report, columns);
    else if (!code) ose_print(t, &report, columns);
    return code;
}

static int ose_run(int argc, char **argv)
{
    ose_options o = {.task = TASK_OPTIONS_INIT, .columns = 256};
    int code = cli_parse(&ose_command, &argc, argv, ose_take, &o);
    if (!code) code = task_arguments(&ose_command, &o.task, 0, argc, argv);
    if (!code && argc > 2) code = cli_usage(argv[0], "it takes one file, but got '%s' too", argv[2]);
    if (code) return code;
    task t;
    code = task_open(&t, &o.task, o.columns);
    if (!code) code = ose_measure(&t, t.in.n < o.columns ? t.in.n : o.columns);
    task_close(&t);
    return code;
}

static const cli_option options[] = {{'r', NULL, "N", "the range of the first N columns of A (default 256)", NULL},
                                     TASK_OPTIONS(WHERE_OPTIONS_OF("auto (default) or cpu", "auto cpu")),
                                     {0}};
const cli_command ose_command = {
    "ose",
    "-k N [OPTION]... FILE",
    "how well S keeps all lengths in the range of A",
    "Prints |(SQ)'SQ - I|_2 for an orthonormal basis Q of the range of A: squared lengths in it are kept within that.\n" INPUT_TEXT,
    options,
    "The basis is made in f64 on the CPU and costs about 4 d n^2 operations.",
    ose_run};
