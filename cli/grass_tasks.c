/* grass_tasks.c - data, models, then a task: features, results of every sketch, or the scores of training images. */
#include "grass_tasks.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "claims.h"
#include "cli.h"
#include "grass_picture.h"
#include "json.h"
#include "apps/common/progress.h"
#include "spec_options.h"

static const char fashion[] = "/usr/share/datasets/fashion-mnist";

/* FOLDER/NAME.gz, or FOLDER/NAME where there is no such file. */
static void path_of(const char *folder, const char *name, char *path)
{
    snprintf(path, PATH_MAX, "%s/%s.gz", folder, name);
    if (access(path, F_OK) != 0) snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

enum { DATA_FILES = 4 };
static void name_data(const grass_options *o, char path[DATA_FILES][PATH_MAX])
{
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                        "t10k-labels-idx1-ubyte"};
    for (int i = 0; i < DATA_FILES; i++) path_of(o->data ? o->data : fashion, names[i], path[i]);
}

/* Claims the data, and what is kept in the folder. */
static int claim_inputs(const grass_options *o)
{
    char path[DATA_FILES][PATH_MAX];
    name_data(o, path);
    for (int i = 0; i < DATA_FILES; i++)
        if (claims_input(path[i])) return EXIT_FAILURE;
    return claims_input_folder(o->folder, cache_is_file);
}

static int read_data(const grass_options *o, grass_data *data)
{
    char path[DATA_FILES][PATH_MAX];
    if (!o->data && access(fashion, R_OK) != 0)
        return cli_fail("Fashion-MNIST is not installed; run 'apt-get install dataset-fashion-mnist', or name a "
                        "folder of IDX files with --data");
    name_data(o, path);
    const grass_paths paths = {path[0], path[1], path[2], path[3]};
    return grass_data_read(data, &paths, o->train, o->test) ? cli_library_fail() : 0;
}

/* The state of a task. */
typedef struct session {
    const grass_options *o;
    const grass_data *data;
    grass_device device;
    experiment e;
    grass_grid grid;
    grass_record *record;
    double model_seconds;
    progress bar;
    const grass_cell *now;  /* the sketch at hand; NULL: models */
    double done, step, all; /* work before it, its own, and the total */
} session;

/* progress --------------------------------------------------------------------------------------------------- */

static const double model_work = 64; /* of training a model, in grass_work's unit */

static void at(void *user, double share, const char *doing)
{
    session *s = user;
    const double all = s->all > 0 ? (s->done + share * s->step) / s->all : share;
    if (!s->now) progress_at(&s->bar, all, "%s", doing);
    else
        progress_at(&s->bar, all, "%s, k = %" PRId64 ", seed %" PRIu64 ": %s", fs_family_name(s->now->spec.family),
                    s->now->spec.k, s->now->spec.seed, doing);
}

/* Begins the next step of the work. */
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

/* One sketch. */
static void print_one(const session *s, const grass_cell *cell)
{
    const cJSON *line = grass_record_find(s->record, cell->name)->json;
    if (cell->mask) {
        printf("mask      %" PRId64 " of %" PRId64 " coordinates", cell->mask, s->e.parameters);
        if (s->o->ask.run > 1) printf(", in runs of %" PRId64, s->o->ask.run);
        printf("\n");
    }
    printf("S         %s\n", cell->text);
    printf("damping   %g, ", grass_number(line, "damping"));
    if (s->o->damping > 0) printf("given\n");
    else printf("chosen by %" PRId64 " test images\n", s->o->recipe.validation);
    printf("LDS       %.4f, from %.4f to %.4f with 95 %%; deviation %.3f over %.0f test images\n",
           grass_number(line, "lds"), grass_number(line, "lds_low"), grass_number(line, "lds_high"),
           grass_number(line, "lds_deviation"), grass_number(line, "lds_count"));
    printf("time      models %.1f s, features and scores %.1f s, of which projecting %.2f s\n",
           grass_number(line, "model_seconds"), grass_number(line, "score_seconds"),
           grass_number(line, "project_seconds"));
}

/* Numbers with their significant digits; null for NaN. */
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
    if (cell->mask && s->o->ask.run > 1) json_whole(out, "run", s->o->ask.run);
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
    json_provenance(out, s->device.ctx, o->commit);
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

static int grass_tasks_measure(session *s, const grass_cell *cell)
{
    experiment_result result;
    const double start = cli_seconds();
    if (experiment_lds(&s->e, &cell->spec, cell->mask, s->o->damping, NULL, &result)) return cli_library_fail();
    const int code = grass_record_add(s->record, make_line(s, cell, &result, cli_seconds() - start));
    if (!code && s->o->forget && experiment_forget(&s->e, &cell->spec, cell->mask)) return cli_library_fail();
    return code;
}

/* 'lds' computes no models or features: they must exist. */
static int look(session *s)
{
    static const char makes[] = "'flashsketch grass run' and 'grass features' compute what is missing";
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
                         : cli_fail("no memory for a table");
    if (!code && o->json) code = grass_print_summaries(&s->grid, summaries);
    else if (!code) {
        print_models(s);
        if (single) print_one(s, s->grid.cells);
        else grass_print_table(&s->grid, summaries);
    }
    free(summaries);
    return code;
}

/* 'run' and 'lds': results that are not in the record are computed, one sketch after the other. */
static int results(session *s)
{
    for (int64_t i = 0; i < s->grid.count; i++)
        if (!grass_record_find(s->record, s->grid.cells[i].name)) s->all += grass_work(&s->grid.cells[i].spec);
    int code = s->all > 0 && s->o->task == GRASS_LDS ? look(s) : 0;
    if (!code && s->all > 0) code = train(s);
    for (int64_t i = 0; i < s->grid.count && !code; i++) {
        const grass_cell *cell = &s->grid.cells[i];
        if (!grass_record_find(s->record, cell->name)) {
            next(s, cell, grass_work(&cell->spec));
            code = grass_tasks_measure(s, cell);
        }
        if (!code && s->o->json && (puts(grass_record_find(s->record, cell->name)->text) < 0 || fflush(stdout)))
            return 0; /* main reports that standard output could not be written */
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
           "          test-000.npy to test-%03" PRId64 ".npy, each %" PRId64 " x %" PRId64 "\n",
           kept->folder, last, s->o->train, cell->spec.k, last, s->o->test, cell->spec.k);
}

static int print_kept_json(const session *s, const grass_cell *cell, const experiment_kept *kept,
                           const experiment_result *result)
{
    cJSON *out = cJSON_CreateObject(), *spec = cJSON_CreateObject();
    json_versions(out);
    json_spec(spec, &cell->full);
    cJSON_AddItemToObject(out, "spec", spec);
    json_whole(out, "mask", cell->mask);
    if (cell->mask && s->o->ask.run > 1) json_whole(out, "run", s->o->ask.run);
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
    int code = made ? 0 : cli_fail("no memory for %" PRId64 " results", s->grid.count);
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
    int code = best && worst ? 0 : cli_fail("no memory for %d queries", o->query_count);
    for (int q = 0; q < o->query_count && !code; q++) {
        int64_t *up = best + q * o->each, *down = worst + q * o->each;
        if (fs_attribution_top(&all, o->query[q], o->each, 0, up, values[0]) ||
            fs_attribution_top(&all, o->query[q], o->each, 1, down, values[1])) {
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
    if (!code && !scores) code = cli_fail("no memory for %" PRId64 " x %" PRId64 " scores", o->test, o->train);
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
    code = s->o->task == GRASS_QUERY ? query(s) : s->o->task == GRASS_FEATURES ? features(s) : results(s);
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
    if (o->task == GRASS_LDS && access(identity, F_OK))
        return cli_fail("%s: it has no models or features; 'flashsketch grass run' and 'grass features' compute them",
                        o->folder);
    int code = grass_device_open(&s.device, &o->where) ||
                       experiment_open(&s.e, &s.device, &o->recipe, data, o->folder, &watch)
                   ? cli_library_fail()
                   : 0;
    if (!code) {
        code = work(&s);
        experiment_close(&s.e);
    }
    grass_device_close(&s.device);
    return code;
}

int grass_do(const grass_options *o)
{
    grass_record record;
    grass_data data;
    int code = claim_inputs(o);
    if (!code) code = grass_record_open(&record, o->record);
    if (code) return code;
    code = read_data(o, &data);
    if (!code) {
        code = run_with(o, &data, &record);
        grass_data_free(&data);
    }
    grass_record_close(&record);
    return code;
}
