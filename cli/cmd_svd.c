/* cmd_svd.c - flashsketch svd and flashsketch pca: the largest singular values of a matrix in files, of itself or with
 * the means of its columns subtracted. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "solver.h"

enum { U, VALUES, V, MEAN, VARIANCES, OUTPUTS };
typedef struct svd_options {
    solver_options solver;
    solver_output outputs[OUTPUTS];
    fs_svd_options how;
    int64_t power; /* -1: not given */
    int all, pca;
} svd_options;

enum { ALL = INPUT_OTHER, OVERSAMPLING, POWER, ONE_READ, MEAN_FILE, VARIANCES_FILE, SHOWN = 10 };

static int svd_take(const char *command, void *options, int code, const char *value)
{
    svd_options *o = options;
    const int taken = solver_option(command, code, value, &o->solver);
    if (taken >= 0) return taken;
    switch (code) {
    case 'r': return cli_number(command, "-r", value, 1, INT32_MAX, &o->how.rank);
    case ALL: return o->all = 1, 0;
    case OVERSAMPLING: return cli_number(command, "--oversampling", value, 1, INT32_MAX, &o->how.oversampling);
    case POWER: return cli_number(command, "--power", value, 0, 1000, &o->power);
    case ONE_READ: return o->how.one_read = 1, 0;
    case 'U': return o->outputs[U].path = value, 0;
    case 'S': return o->outputs[VALUES].path = value, 0;
    case 'V': return o->outputs[V].path = value, 0;
    case VARIANCES_FILE: return o->outputs[VARIANCES].path = value, 0;
    default: return o->outputs[MEAN].path = value, 0;
    }
}
static int take_svd(void *options, int code, const char *value)
{
    return svd_take(svd_command.name, options, code, value);
}
static int take_pca(void *options, int code, const char *value)
{
    return svd_take(pca_command.name, options, code, value);
}

static int svd_check(const cli_command *command, svd_options *o)
{
    const char *name = command->name;
    if (!o->how.rank && !o->all)
        return cli_usage(name, "give the number of %s to compute, with -r N, or --all",
                         o->pca ? "components" : "singular values");
    if (o->how.rank && o->all) return cli_usage(name, "-r gives a number, and --all means all; leave one of them out");
    if (o->all && (o->how.one_read || o->power >= 0 || o->how.oversampling))
        return cli_usage(name, "--all is by QR; --one-read, --power and --oversampling go with -r N");
    if (o->how.one_read && o->power > 0)
        return cli_usage(name, "a power step reads A again, so --power %" PRId64 " does not go with --one-read",
                         o->power);
    o->how.power_steps = (int)o->power;
    return 0;
}

/* printing --------------------------------------------------------------------------------------------------- */

/* s[i]^2 / (d - 1), and its share of all variance. */
static double variance(const solver *s, double value) { return s->d > 1 ? value * value / (double)(s->d - 1) : NAN; }
static double share(const fs_svd_report *t, double value)
{
    return t->norm > 0 ? value / t->norm * (value / t->norm) : NAN;
}

static void print_pca(const solver *s, const fs_svd_report *t, const double *values)
{
    double sum = 0;
    printf("component           variance   explained    together\n");
    for (int64_t i = 0; i < t->rank; i++) {
        sum += share(t, values[i]);
        if (i < SHOWN)
            printf("%9" PRId64 "  %17.6g  %8.3g %%  %8.3g %%\n", i + 1, variance(s, values[i]),
                   100 * share(t, values[i]), 100 * sum);
    }
    if (t->rank > SHOWN) printf("all %5" PRId64 "%42.3g %%\n", t->rank, 100 * sum);
}

static void print_values(const fs_svd_report *t, const double *values)
{
    printf("values    ");
    for (int64_t i = 0; i < t->rank && i < SHOWN; i++) printf("%s%.6g", i ? " " : "", values[i]);
    if (t->rank > SHOWN) printf(" ... %.6g", values[t->rank - 1]);
    printf("\n");
}

/* A is what was decomposed. */
static void print_error(const char *A, const fs_svd_report *t)
{
    printf("error     |%s - U diag(s) V'|_F = %.4g, ", A, t->error);
    if (t->norm > 0) printf("%.3g of |%s|_F = %.6g\n", t->error / t->norm, A, t->norm);
    else printf("|%s|_F = 0\n", A);
    if (t->high - t->low > 1e-3 * t->error) /* otherwise it is known to all digits that are printed */
        printf("          from %.4g to %.4g in %.0f of 100 cases\n", t->low, t->high, 100 * t->confidence);
}

static void svd_print(const solver *s, const svd_options *o, const fs_svd_report *t)
{
    const double *values = o->outputs[VALUES].data;
    const char *A = o->pca ? "A - 1 mean'" : "A";
    solver_print_head(s);
    printf("rank      %" PRId64 ", ", t->rank);
    if (!t->sketch) printf("by QR\n");
    else printf("from %" PRId64 " columns of the range\n", t->sketch);
    if (o->pca) print_pca(s, t, values);
    else print_values(t, values);
    if (t->rank == (s->d < s->n ? s->d : s->n)) printf("norm      |%s|_F = %.6g\n", A, t->norm);
    else print_error(A, t);
    printf("reads     %" PRId64 " of A\ntime      %.3g ms\n", t->reads, 1e3 * t->seconds);
}

static int print_json(const solver *s, const svd_options *o, const fs_svd_report *t)
{
    const double *values = o->outputs[VALUES].data;
    cJSON *out = solver_json(s);
    json_whole(out, "rank", t->rank);
    json_whole(out, "sketch", t->sketch);
    cJSON_AddItemToObject(out, "values", cJSON_CreateDoubleArray(values, (int)t->rank));
    cJSON *variances = o->pca ? cJSON_AddArrayToObject(out, "variances") : NULL;
    cJSON *shares = o->pca ? cJSON_AddArrayToObject(out, "explained") : NULL;
    for (int64_t i = 0; o->pca && i < t->rank; i++) {
        cJSON_AddItemToArray(variances, cJSON_CreateNumber(variance(s, values[i])));
        cJSON_AddItemToArray(shares, cJSON_CreateNumber(share(t, values[i])));
    }
    json_real(out, "norm", t->norm);
    json_real(out, "error", t->error);
    json_real(out, "low", t->low);
    json_real(out, "high", t->high);
    json_real(out, "confidence", t->confidence);
    json_whole(out, "reads", t->reads);
    json_real(out, "seconds", t->seconds);
    return json_print(out);
}

/* running ---------------------------------------------------------------------------------------------------- */

/* U becomes U diag(s), the scores. */
static void scale(const solver_output *u, const double *values)
{
    for (int64_t i = 0; i < u->rows * u->cols; i++)
        if (u->bytes == 8) ((double *)u->data)[i] *= values[i % u->cols];
        else ((float *)u->data)[i] = (float)(((float *)u->data)[i] * values[i % u->cols]);
}

static int svd_decompose(solver *s, svd_options *o)
{
    fs_svd_options how = o->how;
    fs_svd_report report = FS_SVD_REPORT_INIT;
    solver_output *out = o->outputs;
    const int64_t all = s->d < s->n ? s->d : s->n, rank = o->all ? all : how.rank;
    const int bytes = (int)fs_dtype_size(s->sum);
    int code = 0;
    how.seed = o->solver.seed;
    how.progress = &s->progress;
    if (rank > all)
        return cli_fail("%s is %" PRId64 " x %" PRId64 " and has %" PRId64 " singular values, but -r is %" PRId64,
                        s->files.name, s->d, s->n, all, rank);
    if (out[U].path) code = solver_room(&out[U], "U", s->d, rank, 'f', bytes);
    if (!code) code = solver_room(&out[VALUES], "singular values", rank, 0, 'f', sizeof(double));
    if (!code && out[V].path) code = solver_room(&out[V], "V", s->n, rank, 'f', bytes);
    if (!code && out[MEAN].path) code = solver_room(&out[MEAN], "the mean", s->n, 0, 'f', sizeof(double));
    if (!code && out[VARIANCES].path) code = solver_room(&out[VARIANCES], "variances", rank, 0, 'f', sizeof(double));
    if (code) return code;
    const fs_matrix u = solver_matrix(&out[U]), v = solver_matrix(&out[V]);
    const fs_matrix *left = out[U].path ? &u : NULL, *right = out[V].path ? &v : NULL;
    double *values = out[VALUES].data;
    const fs_result result = o->pca ? fs_pca(s->ctx, &s->A, &how, out[MEAN].data, left, values, right, &report)
                                    : fs_svd(s->ctx, &s->A, &how, left, values, right, &report);
    if (result) return solver_fail(s, result);
    if (o->pca && left) scale(&out[U], values);
    for (int64_t i = 0; i < rank && out[VARIANCES].path; i++)
        ((double *)out[VARIANCES].data)[i] = variance(s, values[i]);
    code = solver_write(s);
    if (code || solver_is_piped(s)) return code;
    if (o->solver.json) return print_json(s, o, &report);
    svd_print(s, o, &report);
    return 0;
}

static int svd_run(const cli_command *command, int argc, char **argv, int (*takes)(void *, int, const char *))
{
    const fs_svd_options start = FS_SVD_INIT;
    svd_options o = {.solver = SOLVER_OPTIONS_INIT, .how = start, .power = -1, .pca = command == &pca_command};
    int code = cli_parse(command, &argc, argv, takes, &o);
    if (!code) code = svd_check(command, &o);
    if (!code) code = solver_arguments(&o.solver, argc, argv);
    if (code) return code;
    solver s;
    code = solver_open(&s, &o.solver, o.outputs, OUTPUTS);
    if (!code) code = svd_decompose(&s, &o);
    solver_close(&s);
    return code;
}
static int run_svd(int argc, char **argv) { return svd_run(&svd_command, argc, argv, take_svd); }
static int run_pca(int argc, char **argv) { return svd_run(&pca_command, argc, argv, take_pca); }

#define SVD_OPTIONS(what) \
    {'r', NULL, "N", "how many " what, NULL}, \
        {ALL, "all", NULL, "all singular values, by QR: A must be tall, or small", NULL}, \
        {POWER, "power", "N", "power steps (default 2): each reads A once more, for spectra that fall slowly", NULL}, \
        {ONE_READ, "one-read", NULL, "read A once (generalised Nystrom), for files that take long to read", NULL}, \
    { \
        OVERSAMPLING, "oversampling", "N", \
            "columns of the range beyond those of -r (default: half as many, at least 10)", NULL \
    }
#define SVD_NOTES \
    "The error is known from |A|_F and the values, or estimated by a small sketch of its own with an interval; where\n" \
    "it is larger than wanted give a larger -r, --oversampling or --power."
static const cli_option svd_options_table[] = {
    SVD_OPTIONS("singular values"),
    {'U', NULL, "FILE", "file for U, d x r, npy (default: none)", CLI_FILES},
    {'S', NULL, "FILE", "file for the singular values, r numbers in f64, npy (default: none)", CLI_FILES},
    {'V', NULL, "FILE", "file for V, n x r, npy (default: none)", CLI_FILES},
    SOLVER_OPTIONS,
    {0}};
const cli_command svd_command = {
    "svd",
    "-r N [OPTION]... FILE...",
    "the largest singular values and their vectors",
    "A is about U diag(s) V': the r largest singular values, descending, and the orthonormal columns of U and V; and\n"
    "how far from A that is.\n" INPUT_TEXT "\n" SOLVER_TEXT,
    svd_options_table,
    SVD_NOTES,
    run_svd};
static const cli_option pca_options_table[] = {
    SVD_OPTIONS("components"),
    {'U', "scores", "FILE", "file for the scores, d x r: A - 1 mean' times the components, npy (default: none)",
     CLI_FILES},
    {'S', "values", "FILE", "file for the singular values of A - 1 mean', r numbers in f64, npy (default: none)",
     CLI_FILES},
    {'V', "components", "FILE", "file for the components, n x r, one in each column, npy (default: none)", CLI_FILES},
    {VARIANCES_FILE, "variances", "FILE", "file for the variances, r numbers in f64, npy (default: none)", CLI_FILES},
    {MEAN_FILE, "mean", "FILE", "file for the means of the columns, n numbers in f64, npy (default: none)", CLI_FILES},
    SOLVER_OPTIONS,
    {0}};
const cli_command pca_command = {
    "pca",
    "-r N [OPTION]... FILE...",
    "principal components: svd with the means of columns subtracted",
    "The principal components of the rows of A, with the variance that each explains; A is not copied.\n" INPUT_TEXT
    "\n" SOLVER_TEXT,
    pca_options_table,
    SVD_NOTES,
    run_pca};
