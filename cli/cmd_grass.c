/* cmd_grass.c - flashsketch grass: the paper's data-attribution experiment on images in IDX files. */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "command.h"
#include "experiment.h"
#include "grass_grid.h"
#include "grass_picture.h"
#include "json.h"
#include "output.h"
#include "progress.h"
#include "spec_options.h"
#include "where.h"

static const char fashion[] = "/usr/share/datasets/fashion-mnist";

enum { OPTION_DATA = SPEC_OTHER, OPTION_MASK, OPTION_SEEDS, OPTION_TRAIN, OPTION_TEST, OPTION_MODELS,
       OPTION_CHECKPOINTS, OPTION_EPOCHS, OPTION_MODEL_SEED, OPTION_DAMPING, OPTION_RECORD, OPTION_FORGET,
       OPTION_COMMIT, OPTION_JSON };
enum { MOST_QUERIES = 64, MOST_SEEDS = 1000 };
typedef enum grass_task { RUN, FEATURES, LDS, QUERY } grass_task;
static const char *const tasks[] = {"run", "features", "lds", "query"};

typedef struct grass_options {
    grass_task task;
    const char *data;    /* the folder of the four files */
    const char *folder;  /* where models and features are kept */
    grass_ask ask;       /* the sketches */
    fs_context_options where;
    int64_t train, test;
    experiment_recipe recipe;
    double damping;      /* 0: chosen */
    const char *record, *commit; /* NULL: none */
    int64_t each;        /* query: images that are told of each kind */
    const char *output;  /* query: the picture; NULL: none */
    FILE *picture;       /* that file, opened before the work */
    int query_count;
    int64_t query[MOST_QUERIES];
    int forget, json, quiet;
} grass_options;

/* options ---------------------------------------------------------------------------------------------------- */

/* Calls take(o, word) for every word of "a,b,c". */
static int each_word(grass_options *o, const char *option, const char *text, int (*take)(grass_options *, const char *))
{
    char word[32];
    int code = 0;
    for (; !code; text++) {
        const size_t length = strcspn(text, ",");
        if (length == 0 || length >= sizeof word)
            return cli_usage(grass_command.name, "%s takes words with commas between them, not '%s'", option, text);
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        code = take(o, word);
        text += length;
        if (!*text) break;
    }
    return code;
}

static int take_size(grass_options *o, const char *word)
{
    int64_t k;
    const int code = cli_number(grass_command.name, "-k", word, 1, INT32_MAX, &k);
    if (code) return code;
    for (int i = 0; i < o->ask.sizes; i++)
        if (o->ask.k[i] == k) return 0;
    if (o->ask.sizes == GRASS_SIZES)
        return cli_usage(grass_command.name, "-k takes at most %d numbers", GRASS_SIZES);
    o->ask.k[o->ask.sizes++] = k;
    return 0;
}

static int take_family(grass_options *o, const char *word)
{
    const fs_family one = spec_family_of(word), last = one ? one : FS_GAUSSIAN;
    if (!one && strcmp(word, "all"))
        return cli_usage(grass_command.name, "--family is blockperm, sjlt, blockrow, srht, gaussian or all, not '%s'",
                         word);
    for (int family = one ? (int)one : FS_BLOCKPERM; family <= (int)last; family++) {
        int known = 0;
        for (int i = 0; i < o->ask.families; i++) known |= o->ask.family[i] == (fs_family)family;
        if (!known) o->ask.family[o->ask.families++] = (fs_family)family;
    }
    return 0;
}

static int take(void *options, int code, const char *value)
{
    grass_options *o = options;
    const char *name = grass_command.name;
    if (code == 'k') return o->ask.sizes = 0, each_word(o, "-k", value, take_size);
    if (code == SPEC_FAMILY) return o->ask.families = 0, each_word(o, "--family", value, take_family);
    if (spec_is_option(code)) return spec_option(name, code, value, &o->ask.sketch);
    if (where_is_option(code)) return where_option(name, code, value, &o->where);
    switch (code) {
    case OPTION_DATA: o->data = value; return 0;
    case OPTION_MASK: return cli_number(name, "--mask", value, 0, INT64_MAX, &o->ask.mask);
    case OPTION_SEEDS: return cli_number(name, "--seeds", value, 1, MOST_SEEDS, &o->ask.seeds);
    case OPTION_TRAIN: return cli_number(name, "--train", value, 2, INT32_MAX, &o->train);
    case OPTION_TEST: return cli_number(name, "--test", value, 2, INT32_MAX, &o->test);
    case OPTION_MODELS: return cli_number(name, "--models", value, 2, 100000, &o->recipe.models);
    case OPTION_CHECKPOINTS: return cli_number(name, "--checkpoints", value, 1, 100000, &o->recipe.ensemble);
    case OPTION_EPOCHS: return cli_number(name, "--epochs", value, 1, 100000, &o->recipe.train.epochs);
    case OPTION_MODEL_SEED: return cli_seed(name, value, &o->recipe.seed);
    case OPTION_DAMPING: return cli_real(name, "--damping", value, 0, INFINITY, &o->damping);
    case OPTION_RECORD: o->record = value; return 0;
    case OPTION_FORGET: o->forget = 1; return 0;
    case OPTION_COMMIT: o->commit = value; return 0;
    case 'm': return cli_number(name, "-m", value, 1, 100, &o->each);
    case 'o': o->output = value; return 0;
    case 'q': o->quiet = 1; return 0;
    default: o->json = 1; return 0;
    }
}

/* Options that another task has. */
static int check_task(const grass_options *o)
{
    const char *name = grass_command.name;
    const int64_t sketches = o->ask.sizes * o->ask.families * o->ask.seeds;
    const int results = o->task == RUN || o->task == LDS;
    if (o->task == QUERY && o->json) return cli_usage(name, "--json is not for 'grass query'");
    if (o->task == QUERY && sketches > 1)
        return cli_usage(name, "'grass query' takes one sketch, these are %" PRId64, sketches);
    if (o->task != QUERY && o->output) return cli_usage(name, "-o is for 'grass query'");
    if (!results && o->record) return cli_usage(name, "--record is for 'grass run' and 'grass lds'");
    if (o->task != RUN && o->forget) return cli_usage(name, "--forget is for 'grass run'");
    if (o->task == FEATURES && o->damping > 0)
        return cli_usage(name, "features have no damping: --damping is for 'grass run', 'lds' and 'query'");
    if (o->task == QUERY && o->each > o->train)
        return cli_usage(name, "-m is %" PRId64 ", but there are %" PRId64 " training images", o->each, o->train);
    return 0;
}

/* "run FOLDER", or "query FOLDER IMAGE..." */
static int take_words(grass_options *o, int count, char **words)
{
    const char *name = grass_command.name;
    int task = 0;
    while (task <= QUERY && (count < 1 || strcmp(words[0], tasks[task]))) task++;
    if (task > QUERY || (task == QUERY ? count < 3 : count != 2))
        return cli_usage(name, "say what to do: 'flashsketch grass run FOLDER', 'features FOLDER', 'lds FOLDER' or "
                               "'query FOLDER IMAGE...'");
    if (count - 2 > MOST_QUERIES)
        return cli_usage(name, "%d images are asked for, at most %d can be", count - 2, MOST_QUERIES);
    o->task = (grass_task)task;
    o->folder = words[1];
    int code = check_task(o);
    for (; 2 + o->query_count < count && !code; o->query_count++)
        code = cli_number(name, "IMAGE", words[2 + o->query_count], 0, o->test - 1, &o->query[o->query_count]);
    return code;
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

/* What a task works with. */
typedef struct session {
    const grass_options *o;
    const grass_data *data;
    fs_context *ctx;
    experiment e;
    grass_grid grid;
    grass_record *record;
    double model_seconds;
    progress bar;
    const grass_cell *now; /* the sketch at hand; NULL: models */
    double done, step, all; /* work before it, its own, and all there is */
} session;

/* progress --------------------------------------------------------------------------------------------------- */

static const double model_work = 64; /* of training a model, in grass_work's unit */

static void at(void *user, double share, const char *doing)
{
    session *s = user;
    const double all = s->all > 0 ? (s->done + share * s->step) / s->all : share;
    if (!s->now) progress_at(&s->bar, all, "%s", doing);
    else
        progress_at(&s->bar, all, "%s, k = %" PRId64 ", seed %" PRIu64 ": %s", spec_family_name(s->now->spec.family),
                    s->now->spec.k, s->now->spec.seed, doing);
}

/* Begins the next piece of the work. */
static void next(session *s, const grass_cell *cell, double work)
{
    s->done += s->step;
    s->step = work;
    s->now = cell;
}

/* results ---------------------------------------------------------------------------------------------------- */

static void print_models(const session *s)
{
    const grass_options *o = s->o;
    const experiment_recipe *recipe = &o->recipe;
    printf("images    %s: %" PRId64 " for training, %" PRId64 " for tests; mean %.4f, deviation %.4f\n",
           o->data ? o->data : fashion, o->train, o->test, s->data->mean, s->data->deviation);
    printf("models    %" PRId64 " perceptrons of %" PRId64 " parameters, each trained on %" PRId64
           " images for %" PRId64 " epochs;\n          gradients are those of the first %" PRId64 "\n",
           recipe->models, s->e.parameters, recipe->half, recipe->train.epochs, recipe->ensemble);
}

static double member(const cJSON *line, const char *name)
{
    const cJSON *value = cJSON_GetObjectItem(line, name);
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

/* One sketch. */
static void print_one(const session *s, const grass_cell *cell)
{
    const cJSON *line = grass_record_find(s->record, cell->name)->json;
    if (cell->mask) printf("mask      %" PRId64 " of %" PRId64 " coordinates\n", cell->mask, s->e.parameters);
    printf("S         %s\n", cell->text);
    printf("damping   %g, %s", member(line, "damping"), s->o->damping > 0 ? "given\n" : "chosen by ");
    if (s->o->damping == 0) printf("%" PRId64 " test images\n", s->o->recipe.validation);
    printf("LDS       %.4f, from %.4f to %.4f with 95 %%; deviation %.3f over %.0f test images\n", member(line, "lds"),
           member(line, "lds_low"), member(line, "lds_high"), member(line, "lds_deviation"), member(line, "lds_count"));
    printf("time      models %.1f s, features and scores %.1f s, of which projecting %.2f s\n",
           member(line, "model_seconds"), member(line, "score_seconds"), member(line, "project_seconds"));
}

/* Numbers with as many digits as mean something; null for NaN. */
static void add_number(cJSON *out, const char *name, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", value);
    cJSON_AddRawToObject(out, name, isnan(value) ? "null" : text);
}
static void add_correlations(cJSON *out, const char *name, const double *values, int64_t count)
{
    enum { LONGEST = 8 }; /* ",-1.0000" */
    char *text = cli_array(count + 1, LONGEST, 1);
    size_t end = 0;
    for (int64_t i = 0; text && i < count; i++) {
        text[end++] = i ? ',' : '[';
        if (isnan(values[i])) end += (size_t)sprintf(text + end, "null");
        else end += (size_t)sprintf(text + end, "%.4f", values[i]);
    }
    if (text) strcpy(text + end, "]");
    cJSON_AddRawToObject(out, name, text);
    free(text);
}

static cJSON *make_line(const session *s, const grass_cell *cell, const experiment_result *result, double seconds)
{
    const grass_options *o = s->o;
    cJSON *out = cJSON_CreateObject(), *spec = cJSON_CreateObject();
    cJSON_AddStringToObject(out, "cell", cell->name);
    json_versions(out);
    json_spec(spec, &cell->full);
    cJSON_AddItemToObject(out, "spec", spec);
    json_whole(out, "mask", cell->mask);
    cJSON_AddStringToObject(out, "data", o->data ? o->data : fashion);
    add_number(out, "mean", s->data->mean);
    add_number(out, "deviation", s->data->deviation);
    json_whole(out, "parameters", s->e.parameters);
    json_whole(out, "train", o->train);
    json_whole(out, "test", o->test);
    json_whole(out, "models", o->recipe.models);
    json_whole(out, "checkpoints", o->recipe.ensemble);
    json_whole(out, "epochs", o->recipe.train.epochs);
    add_number(out, "damping", result->damping);
    add_correlations(out, "damping_lds", result->validation, EXPERIMENT_DAMPINGS);
    add_number(out, "lds", result->lds.mean);
    add_number(out, "lds_low", result->lds.low);
    add_number(out, "lds_high", result->lds.high);
    add_number(out, "lds_deviation", result->lds.deviation);
    json_whole(out, "lds_count", result->lds.count);
    add_correlations(out, "lds_each", s->e.lds, o->test);
    add_number(out, "model_seconds", s->model_seconds);
    add_number(out, "score_seconds", seconds);
    add_number(out, "project_seconds", result->project_seconds);
    json_whole(out, "project_batches", result->project_batches);
    json_provenance(out, s->ctx, o->commit);
    return out;
}

/* tasks ------------------------------------------------------------------------------------------------------ */

static int train(session *s)
{
    experiment_kept kept;
    if (experiment_look(&s->e, NULL, 0, &kept)) return cli_library_fail();
    const double start = cli_seconds(), work = model_work * (double)kept.missing;
    s->all += work;
    next(s, NULL, work);
    if (experiment_models(&s->e)) return cli_library_fail();
    s->model_seconds = cli_seconds() - start;
    return 0;
}

static int measure(session *s, const grass_cell *cell)
{
    experiment_result result;
    const double start = cli_seconds();
    if (experiment_lds(&s->e, &cell->spec, cell->mask, s->o->damping, NULL, &result)) return cli_library_fail();
    const int code = grass_record_add(s->record, make_line(s, cell, &result, cli_seconds() - start));
    if (!code && s->o->forget && experiment_forget(&s->e, &cell->spec, cell->mask)) return cli_library_fail();
    return code;
}

/* 'lds' makes nothing: what it needs must be there. */
static int look(session *s)
{
    static const char makes[] = "'flashsketch grass run' and 'grass features' make what is missing";
    experiment_kept kept;
    if (experiment_look(&s->e, NULL, 0, &kept)) return cli_library_fail();
    if (kept.missing)
        return cli_fail("%s: %" PRId64 " of %" PRId64 " models are missing; %s", kept.folder, kept.missing, kept.files,
                        makes);
    for (int64_t i = 0; i < s->grid.count; i++) {
        const grass_cell *cell = &s->grid.cells[i];
        if (grass_record_find(s->record, cell->name)) continue;
        if (experiment_look(&s->e, &cell->spec, cell->mask, &kept)) return cli_library_fail();
        if (kept.missing)
            return cli_fail("%s: %" PRId64 " of %" PRId64 " files with features of %s are missing; %s", kept.folder,
                            kept.missing, kept.files, cell->text, makes);
    }
    return 0;
}

static int print_results(session *s)
{
    const grass_options *o = s->o;
    const int single = s->grid.count == 1;
    grass_summary *summaries = cli_array(o->ask.sizes, o->ask.families, sizeof *summaries);
    int code = summaries ? grass_summarise(&s->grid, s->record, o->test, o->recipe.seed, summaries)
                         : cli_fail("there is no memory for a table");
    if (!code && o->json) code = grass_print_summaries(&s->grid, summaries);
    else if (!code) {
        print_models(s);
        if (single) print_one(s, s->grid.cells);
        else grass_print_table(&s->grid, summaries);
    }
    free(summaries);
    return code;
}

/* 'run' and 'lds': what the record does not have is made, one sketch after the other. */
static int results(session *s)
{
    for (int64_t i = 0; i < s->grid.count; i++)
        if (!grass_record_find(s->record, s->grid.cells[i].name)) s->all += grass_work(&s->grid.cells[i].spec);
    int code = s->all > 0 && s->o->task == LDS ? look(s) : 0;
    if (!code && s->all > 0) code = train(s);
    for (int64_t i = 0; i < s->grid.count && !code; i++) {
        const grass_cell *cell = &s->grid.cells[i];
        if (!grass_record_find(s->record, cell->name)) {
            next(s, cell, grass_work(&cell->spec));
            code = measure(s, cell);
        }
        if (!code && s->o->json && (puts(grass_record_find(s->record, cell->name)->text) < 0 || fflush(stdout)))
            return 0; /* main tells that standard output could not be written */
    }
    progress_end(&s->bar);
    return code ? code : print_results(s);
}

static void print_kept(const session *s, const grass_cell *cell, const experiment_kept *kept)
{
    const int64_t last = s->o->recipe.ensemble - 1;
    printf("S         %s", cell->text);
    if (cell->mask) printf("; of %" PRId64 " coordinates", s->e.parameters);
    printf("\nfeatures  %s\n"
           "          train-000.npy to train-%03" PRId64 ".npy, each %" PRId64 " x %" PRId64 " float32\n"
           "          test-000.npy to test-%03" PRId64 ".npy, each %" PRId64 " x %" PRId64 "\n", kept->folder, last,
           s->o->train, cell->spec.k, last, s->o->test, cell->spec.k);
}

static int print_kept_json(const session *s, const grass_cell *cell, const experiment_kept *kept,
                           const experiment_result *result)
{
    cJSON *out = cJSON_CreateObject(), *spec = cJSON_CreateObject();
    json_versions(out);
    json_spec(spec, &cell->full);
    cJSON_AddItemToObject(out, "spec", spec);
    json_whole(out, "mask", cell->mask);
    cJSON_AddStringToObject(out, "folder", kept->folder);
    json_whole(out, "checkpoints", s->o->recipe.ensemble);
    json_whole(out, "train", s->o->train);
    json_whole(out, "test", s->o->test);
    add_number(out, "project_seconds", result->project_seconds);
    json_whole(out, "project_batches", result->project_batches);
    return json_print_line(out);
}

static int print_features(const session *s, const experiment_result *made)
{
    int code = 0;
    if (!s->o->json) print_models(s);
    for (int64_t i = 0; i < s->grid.count && !code; i++) {
        const grass_cell *cell = &s->grid.cells[i];
        experiment_kept kept;
        if (experiment_look(&s->e, &cell->spec, cell->mask, &kept)) code = cli_library_fail();
        else if (s->o->json) code = print_kept_json(s, cell, &kept, &made[i]);
        else print_kept(s, cell, &kept);
    }
    return code;
}

static int features(session *s)
{
    experiment_result *made = cli_array(s->grid.count, 1, sizeof *made);
    int code = made ? 0 : cli_fail("there is no memory for %" PRId64 " results", s->grid.count);
    for (int64_t i = 0; i < s->grid.count; i++) s->all += grass_work(&s->grid.cells[i].spec);
    if (!code) code = train(s);
    for (int64_t i = 0; i < s->grid.count && !code; i++) {
        const grass_cell *cell = &s->grid.cells[i];
        next(s, cell, grass_work(&cell->spec));
        if (experiment_features(&s->e, &cell->spec, cell->mask, &made[i])) code = cli_library_fail();
    }
    progress_end(&s->bar);
    if (!code) code = print_features(s, made);
    free(made);
    return code;
}

static void print_some(const session *s, const char *kind, const int64_t *images, const double *scores, int64_t count)
{
    printf("  %s ", kind);
    for (int64_t i = 0; i < count; i++)
        printf("%s%" PRId64 " (%d, %.3g)", i ? ", " : "", images[i], s->data->train.label[images[i]], scores[i]);
    printf("\n");
}

/* The most helpful and the most harmful training images of each query. */
static int print_queries(const session *s, double *scores)
{
    const grass_options *o = s->o;
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
        printf("test image %" PRId64 " (label %d)\n", o->query[q], s->data->test.label[o->query[q]]);
        print_some(s, "helpful", up, values[0], o->each);
        print_some(s, "harmful", down, values[1], o->each);
    }
    const grass_rows rows = {o->query_count, o->each, o->query, best, worst};
    if (!code && o->picture) code = grass_picture(o->picture, s->data, &rows);
    free(best);
    free(worst);
    return code;
}

static int query(session *s)
{
    const grass_options *o = s->o;
    const grass_cell *cell = s->grid.cells;
    experiment_result result;
    s->all = grass_work(&cell->spec);
    int code = train(s);
    double *scores = code ? NULL : cli_array(o->test, o->train, sizeof *scores);
    if (!code && !scores)
        code = cli_fail("there is no memory for %" PRId64 " x %" PRId64 " scores", o->test, o->train);
    next(s, cell, grass_work(&cell->spec));
    if (!code && experiment_lds(&s->e, &cell->spec, cell->mask, o->damping, scores, &result)) code = cli_library_fail();
    progress_end(&s->bar);
    if (!code) code = print_queries(s, scores);
    free(scores);
    return code;
}

static int work(session *s)
{
    char id[96], damping[32] = "chosen";
    if (s->o->damping > 0) snprintf(damping, sizeof damping, "%.17g", s->o->damping);
    snprintf(id, sizeof id, "damping %s; experiment %08" PRIx32, damping, experiment_crc(&s->e));
    int code = grass_grid_make(&s->grid, &s->o->ask, s->e.parameters, id); /* before anything is trained */
    if (code) return code;
    code = s->o->task == QUERY ? query(s) : s->o->task == FEATURES ? features(s) : results(s);
    progress_end(&s->bar);
    grass_grid_free(&s->grid);
    return code;
}

static int run_with(const grass_options *o, const grass_data *data, grass_record *record)
{
    session s = {.o = o, .data = data, .record = record, .bar = progress_start(1, o->quiet)};
    const fs_progress watch = {at, &s};
    char identity[PATH_MAX + 16];
    snprintf(identity, sizeof identity, "%s/identity", o->folder);
    if (o->task == LDS && access(identity, F_OK))
        return cli_fail("%s: nothing is kept there; 'flashsketch grass run' and 'grass features' make it", o->folder);
    int code = fs_context_create(&s.ctx, &o->where) || experiment_open(&s.e, s.ctx, &o->recipe, data, o->folder, &watch)
                   ? cli_library_fail() : 0;
    if (!code) {
        code = work(&s);
        experiment_close(&s.e);
    }
    fs_context_destroy(s.ctx);
    return code;
}

static int with_data(const grass_options *o)
{
    grass_record record;
    grass_data data;
    int code = grass_record_open(&record, o->record);
    if (code) return code;
    code = read_data(o, &data);
    if (!code) {
        code = run_with(o, &data, &record);
        grass_data_free(&data);
    }
    grass_record_close(&record);
    return code;
}

static int run(int argc, char **argv)
{
    grass_options o = {.ask = {.sketch = FS_SPEC_INIT, .k = {4096}, .family = {FS_BLOCKPERM}, .sizes = 1, .families = 1,
                               .seeds = 1, .mask = -1},
                       .where = FS_CONTEXT_INIT, .train = 5000, .test = 500, .recipe = EXPERIMENT_RECIPE_INIT,
                       .each = 8};
    o.ask.sketch.seed = 42;
    o.where.backend = FS_BACKEND_CPU;
    int code = cli_parse(&grass_command, argc, argv, take, &o);
    if (!code) code = take_words(&o, argc - optind, argv + optind);
    if (code) return code;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a write that fails, and gets its sentence */
    o.recipe.half = o.train / 2;
    o.recipe.validation = o.test / 10 > 0 ? o.test / 10 : 1;
    if (o.recipe.ensemble > o.recipe.models) o.recipe.ensemble = o.recipe.models;
    if (o.output && !(o.picture = output_open(o.output))) return EXIT_FAILURE;
    code = with_data(&o);
    if (!o.output) return code;
    if (code) output_abandon();
    return code ? code : output_close();
}

static const cli_option options[] = {
    {'k', NULL, "LIST", "values of a feature: rows of S; 1024,4096 (default 4096)", NULL},
    {OPTION_MASK, "mask", "N", "coordinates of a gradient that are kept, at random (default 4 k; 0: all)", NULL},
    {SPEC_FAMILY, "family", "LIST", "of blockperm (default), sjlt, blockrow, srht and gaussian, or all",
     SPEC_FAMILIES " all"},
    {'M', "blocks", "N", "blocks", NULL},
    {SPEC_KAPPA, "kappa", "N", "input blocks of each output block", NULL},
    {'s', NULL, "N", "nonzeros of a column in each block", NULL},
    {SPEC_SHUFFLE, "shuffle", "NAME", "none, rows or lines", "none rows lines"},
    {SPEC_SEED, "seed", "N", "of mask and S (default 42; checkpoint c has 100000 c more)", NULL},
    {OPTION_SEEDS, "seeds", "N", "N sketches of each kind, with seeds from --seed on (default 1)", NULL},
    {OPTION_DATA, "data", "FOLDER", "the four IDX files of MNIST's names, with gzip or without\n"
     "(default: Fashion-MNIST of Debian's package dataset-fashion-mnist)", CLI_FILES},
    {OPTION_TRAIN, "train", "N", "the first N training images (default 5000)", NULL},
    {OPTION_TEST, "test", "N", "the first N test images (default 500); a tenth chooses the damping", NULL},
    {OPTION_MODELS, "models", "N", "models, each trained on a half of the images (default 50)", NULL},
    {OPTION_CHECKPOINTS, "checkpoints", "N", "models whose gradients are taken, the first ones (default 10)", NULL},
    {OPTION_EPOCHS, "epochs", "N", "passes over a model's images (default 50)", NULL},
    {OPTION_MODEL_SEED, "model-seed", "N", "of halves and models (default 0)", NULL},
    {OPTION_DAMPING, "damping", "X", "of the scores (default: the best of 1e-7, 1e-6, ..., 100)", NULL},
    {OPTION_RECORD, "record", "FILE", "run, lds: add each result to FILE, a JSON object a line;\n"
     "what is there already is taken from it", CLI_FILES},
    {OPTION_FORGET, "forget", NULL, "run: remove a sketch's features when its result is there\n"
     "(they have 0.9 GB at k = 4096)", NULL},
    {OPTION_COMMIT, "commit", "TEXT", "what to write down as the commit", NULL},
    {'m', NULL, "N", "query: the N most helpful and the N most harmful images (default 8)", NULL},
    {'o', "output", "FILE", "query: a picture of them, PNG", CLI_FILES},
    {WHERE_DEVICE, "device", "WHERE", "cpu (default), cuda, cuda:N or auto", "cpu cuda auto"},
    {WHERE_THREADS, "threads", "N", "CPU threads of the sketch (default: all)", NULL},
    {OPTION_JSON, "json", NULL, "print JSON, an object a line: one for each sketch, then the summaries", NULL},
    {'q', "quiet", NULL, "no progress bar", NULL},
    {0}};
const cli_command grass_command = {
    "grass",
    "run [OPTION]... FOLDER\n       flashsketch grass features [OPTION]... FOLDER\n"
    "       flashsketch grass lds [OPTION]... FOLDER\n       flashsketch grass query [OPTION]... FOLDER IMAGE...",
    "data attribution: do sketched gradients predict what models learn?",
    "Trains models on halves of the images, sketches the gradients of some of them, scores every training image for\n"
    "every test image, and tells how well sums of scores predict what the models say: the linear datamodeling score,\n"
    "LDS. Models and features are kept in FOLDER; a run that was stopped goes on there, and another sketch takes its\n"
    "models. With several families, sizes or seeds it prints a table, and compares each with the dense Gaussian.\n\n"
    "  run       all of it; makes what is missing\n"
    "  features  trains models and makes features, and says in which .npy files they are\n"
    "  lds       LDS from the models and features that are kept; makes nothing, and names what is missing\n"
    "  query     tells for test images, by number from 0, which training images helped and which harmed",
    options,
    "It needs OpenBLAS.  The network is 784-128-64-10 with ReLU and dropout 0.1, trained by SGD with momentum.", run};
