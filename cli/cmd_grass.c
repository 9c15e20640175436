/* cmd_grass.c - flashsketch grass: the paper's data-attribution experiment on images in IDX files. */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "command.h"
#include "experiment.h"
#include "grass_picture.h"
#include "json.h"
#include "output.h"
#include "progress.h"
#include "spec_options.h"

static const char fashion[] = "/usr/share/datasets/fashion-mnist";

enum { OPTION_DATA = SPEC_OTHER, OPTION_MASK, OPTION_TRAIN, OPTION_TEST, OPTION_MODELS, OPTION_CHECKPOINTS,
       OPTION_EPOCHS, OPTION_MODEL_SEED, OPTION_DAMPING, OPTION_THREADS, OPTION_JSON };
enum { MOST_QUERIES = 64 };

typedef struct grass_options {
    const char *data;    /* the folder of the four files */
    const char *folder;  /* where models and features are kept */
    fs_spec sketch;
    int64_t mask;        /* -1: 4 k */
    int64_t train, test, threads;
    experiment_recipe recipe;
    double damping;      /* 0: chosen */
    int64_t each;        /* query: images that are told of each kind */
    const char *output;  /* query: the picture; NULL: none */
    FILE *picture;       /* that file, opened before the work */
    int query_count;     /* 0: run */
    int64_t query[MOST_QUERIES];
    int json, quiet;
} grass_options;

static int take(void *options, int code, const char *value)
{
    grass_options *o = options;
    const char *name = grass_command.name;
    if (spec_is_option(code)) return spec_option(name, code, value, &o->sketch);
    switch (code) {
    case OPTION_DATA: o->data = value; return 0;
    case OPTION_MASK: return cli_number(name, "--mask", value, 0, INT64_MAX, &o->mask);
    case OPTION_TRAIN: return cli_number(name, "--train", value, 2, INT32_MAX, &o->train);
    case OPTION_TEST: return cli_number(name, "--test", value, 2, INT32_MAX, &o->test);
    case OPTION_MODELS: return cli_number(name, "--models", value, 2, 100000, &o->recipe.models);
    case OPTION_CHECKPOINTS: return cli_number(name, "--checkpoints", value, 1, 100000, &o->recipe.ensemble);
    case OPTION_EPOCHS: return cli_number(name, "--epochs", value, 1, 100000, &o->recipe.train.epochs);
    case OPTION_MODEL_SEED: return cli_seed(name, value, &o->recipe.seed);
    case OPTION_THREADS: return cli_number(name, "--threads", value, 1, 4096, &o->threads);
    case OPTION_DAMPING: return cli_real(name, "--damping", value, 0, INFINITY, &o->damping);
    case 'm': return cli_number(name, "-m", value, 1, 100, &o->each);
    case 'o': o->output = value; return 0;
    case 'q': o->quiet = 1; return 0;
    default: o->json = 1; return 0;
    }
}

/* FOLDER/NAME.gz, or FOLDER/NAME where there is no such file. */
static void path_of(const char *folder, const char *name, char *path)
{
    snprintf(path, PATH_MAX, "%s/%s.gz", folder, name);
    if (access(path, F_OK) != 0) snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

static int read_data(const grass_options *o, grass_data *data)
{
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                        "t10k-labels-idx1-ubyte"};
    char path[4][PATH_MAX];
    if (!o->data && access(fashion, R_OK) != 0)
        return cli_fail("Fashion-MNIST is not here; 'apt-get install dataset-fashion-mnist' brings it, or name a "
                        "folder of IDX files with --data");
    for (int i = 0; i < 4; i++) path_of(o->data ? o->data : fashion, names[i], path[i]);
    const grass_paths paths = {path[0], path[1], path[2], path[3]};
    return grass_data_read(data, &paths, o->train, o->test) ? cli_library_fail() : 0;
}

/* What is printed. */
typedef struct report {
    const grass_data *data;
    const experiment *e;
    const fs_spec *sketch;  /* with every chosen value */
    int64_t mask;
    experiment_result result;
    double model_seconds, score_seconds;
} report;

static void print(const grass_options *o, const report *r, const fs_sketch *S)
{
    const experiment_recipe *recipe = &o->recipe;
    const lds_summary *lds = &r->result.lds;
    char text[256];
    fs_sketch_describe(S, text, sizeof text);
    printf("images    %s: %" PRId64 " for training, %" PRId64 " for tests; mean %.4f, deviation %.4f\n",
           o->data ? o->data : fashion, o->train, o->test, r->data->mean, r->data->deviation);
    printf("models    %" PRId64 " perceptrons of %" PRId64 " parameters, each trained on %" PRId64
           " images for %" PRId64 " epochs;\n          gradients are those of the first %" PRId64 "\n",
           recipe->models, r->e->parameters, recipe->half, recipe->train.epochs, recipe->ensemble);
    if (r->mask) printf("mask      %" PRId64 " of %" PRId64 " coordinates\n", r->mask, r->e->parameters);
    printf("S         %s\n", text);
    printf("damping   %g, chosen by %" PRId64 " test images\n", r->result.damping, recipe->validation);
    printf("LDS       %.4f, from %.4f to %.4f with 95 %%; deviation %.3f over %" PRId64 " test images\n", lds->mean,
           lds->low, lds->high, lds->deviation, lds->count);
    printf("time      models %.1f s, features and scores %.1f s, of which projecting %.2f s\n", r->model_seconds,
           r->score_seconds, r->result.project_seconds);
}

static int print_json(const grass_options *o, const report *r)
{
    const lds_summary *lds = &r->result.lds;
    cJSON *out = cJSON_CreateObject(), *spec = cJSON_CreateObject();
    json_versions(out);
    json_spec(spec, r->sketch);
    cJSON_AddItemToObject(out, "spec", spec);
    json_whole(out, "mask", r->mask);
    json_whole(out, "parameters", r->e->parameters);
    json_whole(out, "train", o->train);
    json_whole(out, "test", o->test);
    json_whole(out, "models", o->recipe.models);
    json_whole(out, "checkpoints", o->recipe.ensemble);
    json_whole(out, "epochs", o->recipe.train.epochs);
    cJSON_AddNumberToObject(out, "mean", r->data->mean);
    cJSON_AddNumberToObject(out, "deviation", r->data->deviation);
    cJSON_AddNumberToObject(out, "damping", r->result.damping);
    cJSON_AddNumberToObject(out, "lds", lds->mean);
    cJSON_AddNumberToObject(out, "lds_low", lds->low);
    cJSON_AddNumberToObject(out, "lds_high", lds->high);
    cJSON_AddNumberToObject(out, "lds_deviation", lds->deviation);
    json_whole(out, "lds_count", lds->count);
    cJSON_AddNumberToObject(out, "model_seconds", r->model_seconds);
    cJSON_AddNumberToObject(out, "score_seconds", r->score_seconds);
    cJSON_AddNumberToObject(out, "project_seconds", r->result.project_seconds);
    return json_print(out);
}

/* queries ---------------------------------------------------------------------------------------------------- */

static void print_some(const report *r, const char *kind, const int64_t *images, const double *scores, int64_t count)
{
    printf("  %s ", kind);
    for (int64_t i = 0; i < count; i++)
        printf("%s%" PRId64 " (%d, %.3g)", i ? ", " : "", images[i], r->data->train.label[images[i]], scores[i]);
    printf("\n");
}

/* The most helpful and the most harmful training images of each query. */
static int print_queries(const grass_options *o, const report *r, double *scores)
{
    fs_matrix all = fs_row_major(scores, o->test, o->train, FS_F64);
    int64_t *best = cli_array(o->query_count, o->each, sizeof *best);
    int64_t *worst = cli_array(o->query_count, o->each, sizeof *worst);
    double values[2][100];
    int code = best && worst ? 0 : cli_fail("there is no memory for %d queries", o->query_count);
    for (int q = 0; q < o->query_count && !code; q++) {
        int64_t *up = best + q * o->each, *down = worst + q * o->each;
        if (fs_grass_top(&all, o->query[q], o->each, 0, up, values[0]) ||
            fs_grass_top(&all, o->query[q], o->each, 1, down, values[1])) {
            code = cli_library_fail();
            break;
        }
        printf("test image %" PRId64 " (label %d)\n", o->query[q], r->data->test.label[o->query[q]]);
        print_some(r, "helpful", up, values[0], o->each);
        print_some(r, "harmful", down, values[1], o->each);
    }
    const grass_rows rows = {o->query_count, o->each, o->query, best, worst};
    if (!code && o->picture) code = grass_picture(o->picture, r->data, &rows);
    free(best);
    free(worst);
    return code;
}

static void at(void *bar, double share, const char *doing) { progress_at(bar, share, "%s", doing); }

static int measure(const grass_options *o, experiment *e, const grass_data *data, progress *bar)
{
    report r = {.data = data, .e = e, .mask = o->mask < 0 ? 4 * o->sketch.k : o->mask};
    if (o->mask < 0 && r.mask > e->parameters) r.mask = e->parameters;
    fs_spec spec = o->sketch, full = FS_SPEC_INIT;
    fs_sketch *S = NULL;
    spec.d = r.mask ? r.mask : e->parameters;
    int code = spec_sketch(&spec, &S, &full); /* a wrong spec is told before anything is trained */
    r.sketch = &full;
    const double start = cli_seconds();
    if (!code && experiment_models(e)) code = cli_library_fail();
    const double trained = cli_seconds();
    double *scores = o->query_count && !code ? cli_array(o->test, o->train, sizeof *scores) : NULL;
    if (o->query_count && !code && !scores)
        code = cli_fail("there is no memory for %" PRId64 " x %" PRId64 " scores", o->test, o->train);
    if (!code && experiment_lds(e, &spec, r.mask, o->damping, scores, &r.result)) code = cli_library_fail();
    r.model_seconds = trained - start;
    r.score_seconds = cli_seconds() - trained;
    progress_end(bar);
    if (!code && o->query_count) code = print_queries(o, &r, scores);
    else if (!code && o->json) code = print_json(o, &r);
    else if (!code) print(o, &r, S);
    free(scores);
    fs_sketch_destroy(S);
    return code;
}

static int run_with(const grass_options *o, const grass_data *data)
{
    fs_context_options where = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    experiment e;
    progress bar = progress_start(1, o->quiet);
    const fs_progress watch = {at, &bar};
    where.backend = FS_BACKEND_CPU;
    where.threads = (int)o->threads;
    int code = fs_context_create(&ctx, &where) || experiment_open(&e, ctx, &o->recipe, data, o->folder, &watch)
                   ? cli_library_fail() : 0;
    if (!code) {
        code = measure(o, &e, data, &bar);
        experiment_close(&e);
    }
    fs_context_destroy(ctx);
    return code;
}

/* "run FOLDER", or "query FOLDER IMAGE..." */
static int take_words(grass_options *o, int count, char **words)
{
    const char *name = grass_command.name;
    const int query = count >= 1 && !strcmp(words[0], "query");
    if (count < 2 || (!query && (strcmp(words[0], "run") || count != 2)) || (query && count < 3))
        return cli_usage(name, "say what to do: 'flashsketch grass run FOLDER' or "
                               "'flashsketch grass query FOLDER IMAGE...'");
    if (count - 2 > MOST_QUERIES)
        return cli_usage(name, "%d images are asked for, at most %d can be", count - 2, MOST_QUERIES);
    if (query && o->json) return cli_usage(name, "--json is for 'grass run'");
    if (!query && o->output) return cli_usage(name, "-o is for 'grass query'");
    if (query && o->each > o->train)
        return cli_usage(name, "-m is %" PRId64 ", but there are %" PRId64 " training images", o->each, o->train);
    o->folder = words[1];
    int code = 0;
    for (; 2 + o->query_count < count && !code; o->query_count++)
        code = cli_number(name, "IMAGE", words[2 + o->query_count], 0, o->test - 1, &o->query[o->query_count]);
    return code;
}

static int run(int argc, char **argv)
{
    grass_options o = {.sketch = FS_SPEC_INIT, .mask = -1, .train = 5000, .test = 500, .recipe = EXPERIMENT_RECIPE_INIT,
                       .each = 8};
    o.sketch.k = 4096;
    o.sketch.seed = 42;
    int code = cli_parse(&grass_command, argc, argv, take, &o);
    if (!code) code = take_words(&o, argc - optind, argv + optind);
    if (code) return code;
    o.recipe.half = o.train / 2;
    o.recipe.validation = o.test / 10 > 0 ? o.test / 10 : 1;
    if (o.recipe.ensemble > o.recipe.models) o.recipe.ensemble = o.recipe.models;
    if (o.output && !(o.picture = output_open(o.output))) return EXIT_FAILURE;
    grass_data data;
    code = read_data(&o, &data);
    if (!code) {
        code = run_with(&o, &data);
        grass_data_free(&data);
    }
    if (!o.output) return code;
    if (code) output_abandon();
    return code ? code : output_close();
}

static const cli_option options[] = {
    {'k', NULL, "N", "values of a feature: rows of S (default 4096)", NULL},
    {OPTION_MASK, "mask", "N", "coordinates of a gradient that are kept, at random (default 4 k; 0: all)", NULL},
    {SPEC_FAMILY, "family", "NAME", "blockperm (default), sjlt, blockrow, srht or gaussian", SPEC_FAMILIES},
    {'M', "blocks", "N", "blocks", NULL},
    {SPEC_KAPPA, "kappa", "N", "input blocks of each output block", NULL},
    {'s', NULL, "N", "nonzeros of a column in each block", NULL},
    {SPEC_SHUFFLE, "shuffle", "NAME", "none, rows or lines", "none rows lines"},
    {SPEC_SEED, "seed", "N", "of mask and S (default 42; checkpoint c has 100000 c more)", NULL},
    {OPTION_DATA, "data", "FOLDER", "the four IDX files of MNIST's names, with gzip or without\n"
     "(default: Fashion-MNIST of Debian's package dataset-fashion-mnist)", CLI_FILES},
    {OPTION_TRAIN, "train", "N", "the first N training images (default 5000)", NULL},
    {OPTION_TEST, "test", "N", "the first N test images (default 500); a tenth chooses the damping", NULL},
    {OPTION_MODELS, "models", "N", "models, each trained on a half of the images (default 50)", NULL},
    {OPTION_CHECKPOINTS, "checkpoints", "N", "models whose gradients are taken, the first ones (default 10)", NULL},
    {OPTION_EPOCHS, "epochs", "N", "passes over a model's images (default 50)", NULL},
    {OPTION_MODEL_SEED, "model-seed", "N", "of halves and models (default 0)", NULL},
    {OPTION_DAMPING, "damping", "X", "of the scores (default: the best of 1e-7, 1e-6, ..., 100)", NULL},
    {'m', NULL, "N", "query: the N most helpful and the N most harmful images (default 8)", NULL},
    {'o', "output", "FILE", "query: a picture of them, PNG", CLI_FILES},
    {OPTION_THREADS, "threads", "N", "CPU threads of the sketch (default: all)", NULL},
    {OPTION_JSON, "json", NULL, "print a JSON object", NULL},
    {'q', "quiet", NULL, "no progress bar", NULL},
    {0}};
const cli_command grass_command = {
    "grass",
    "run [OPTION]... FOLDER\n       flashsketch grass query [OPTION]... FOLDER IMAGE...",
    "data attribution: do sketched gradients predict what models learn?",
    "Trains models on halves of the images, sketches the gradients of some of them, scores every training image for\n"
    "every test image, and tells how well sums of scores predict what the models say: the linear datamodeling score,\n"
    "LDS. Models and features are kept in FOLDER; a run that was stopped goes on there, and another sketch takes its\n"
    "models. 'query' tells for test images, by number from 0, which training images helped and which harmed.",
    options,
    "It needs OpenBLAS.  The network is 784-128-64-10 with ReLU and dropout 0.1, trained by SGD with momentum.", run};
