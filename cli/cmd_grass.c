/* cmd_grass.c - flashsketch grass: the paper's data-attribution experiment on images in IDX files. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "command.h"
#include "grass_tasks.h"
#include "output.h"
#include "spec_options.h"
#include "where.h"

enum {
    OPTION_DATA = SPEC_OTHER,
    OPTION_MASK,
    OPTION_RUN,
    OPTION_SEEDS,
    OPTION_TRAIN,
    OPTION_TEST,
    OPTION_MODELS,
    OPTION_CHECKPOINTS,
    OPTION_EPOCHS,
    OPTION_MODEL_SEED,
    OPTION_DAMPING,
    OPTION_RECORD,
    OPTION_FORGET,
    OPTION_COMMIT,
    OPTION_JSON
};
enum { MOST_SEEDS = 1000 };
static const char *const tasks[] = {"run", "features", "lds", "query"}; /* in the order of grass_task */

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
    if (o->ask.sizes == GRASS_SIZES) return cli_usage(grass_command.name, "-k takes at most %d numbers", GRASS_SIZES);
    o->ask.k[o->ask.sizes++] = k;
    return 0;
}

static int take_family(grass_options *o, const char *word)
{
    fs_family one = (fs_family)0;
    if (fs_family_from_name(word, &one)) one = (fs_family)0;
    const fs_family last = one ? one : FS_GAUSSIAN;
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

static int grass_option(void *options, int code, const char *value)
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
    case OPTION_RUN: return cli_number(name, "--run", value, 1, 1 << 20, &o->ask.run);
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
    const int results = o->task == GRASS_RUN || o->task == GRASS_LDS;
    if (o->task == GRASS_QUERY && o->json) return cli_usage(name, "--json is not for 'grass query'");
    if (o->task == GRASS_QUERY && sketches > 1)
        return cli_usage(name, "'grass query' takes one sketch, but got %" PRId64, sketches);
    if (o->task != GRASS_QUERY && o->output) return cli_usage(name, "-o is for 'grass query'");
    if (o->output && !cli_ends_with(o->output, ".png"))
        return cli_usage(name, "the picture is PNG: -o names a file that ends in .png, not '%s'", o->output);
    if (!results && o->record) return cli_usage(name, "--record is for 'grass run' and 'grass lds'");
    if (o->task != GRASS_RUN && o->forget) return cli_usage(name, "--forget is for 'grass run'");
    if (o->task == GRASS_FEATURES && o->damping > 0)
        return cli_usage(name, "features have no damping: --damping is for 'grass run', 'lds' and 'query'");
    if (o->task == GRASS_QUERY && o->each > o->train)
        return cli_usage(name, "-m is %" PRId64 ", but there are %" PRId64 " training images", o->each, o->train);
    return 0;
}

/* "run FOLDER", or "query FOLDER IMAGE..." */
static int take_words(grass_options *o, int count, char **words)
{
    const char *name = grass_command.name;
    int task = 0;
    while (task <= GRASS_QUERY && (count < 1 || strcmp(words[0], tasks[task]))) task++;
    if (task > GRASS_QUERY || (task == GRASS_QUERY ? count < 3 : count != 2))
        return cli_usage(name, "a task is missing: 'flashsketch grass run FOLDER', 'features FOLDER', 'lds FOLDER' or "
                               "'query FOLDER IMAGE...'");
    if (count - 2 > GRASS_QUERIES)
        return cli_usage(name, "%d images are given, at most %d are possible", count - 2, GRASS_QUERIES);
    o->task = (grass_task)task;
    o->folder = words[1];
    int code = check_task(o);
    for (; 2 + o->query_count < count && !code; o->query_count++)
        code = cli_number(name, "IMAGE", words[2 + o->query_count], 0, o->test - 1, &o->query[o->query_count]);
    return code;
}

static int grass_run(int argc, char **argv)
{
    grass_options o = {.ask = {.sketch = FS_SPEC_INIT,
                               .k = {4096},
                               .family = {FS_BLOCKPERM},
                               .sizes = 1,
                               .families = 1,
                               .seeds = 1,
                               .mask = -1,
                               .run = 1},
                       .where = FS_CONTEXT_INIT,
                       .train = 5000,
                       .test = 500,
                       .recipe = EXPERIMENT_RECIPE_INIT,
                       .each = 8};
    o.ask.sketch.seed = 42;
    o.where.backend = FS_BACKEND_CPU;
    int code = cli_parse(&grass_command, &argc, argv, grass_option, &o);
    if (!code) code = take_words(&o, argc - 1, argv + 1);
    if (code) return code;
    signal(SIGXFSZ, SIG_IGN); /* a file that reaches its size limit is a write that fails, with a message */
    o.recipe.half = o.train / 2;
    o.recipe.run = o.ask.run;
    o.recipe.validation = o.test / 10 > 0 ? o.test / 10 : 1;
    if (o.recipe.ensemble > o.recipe.models) o.recipe.ensemble = o.recipe.models;
    if (o.output && !(o.picture = output_open(o.output))) return EXIT_FAILURE;
    code = grass_do(&o);
    if (!o.output) return code;
    if (code) output_abandon();
    return code ? code : output_close();
}

static const cli_option options[] = {
    {'k', NULL, "LIST", "values of a feature: rows of S; 1024,4096 (default 4096)", NULL},
    {OPTION_MASK, "mask", "N", "coordinates of a gradient that are kept, at random (default 4 k; 0: all)", NULL},
    {OPTION_RUN, "run", "N", "length of the runs that a mask keeps (default 1); a GPU reads at least 8", NULL},
    {SPEC_FAMILY, "family", "LIST", "of blockperm (default), sjlt, blockrow, srht and gaussian, or all",
     SPEC_FAMILIES " all"},
    SPEC_QUALITY_OPTION,
    {'M', "blocks", "N", "blocks", NULL},
    {SPEC_KAPPA, "kappa", "N", "input blocks of each output block", NULL},
    {'s', NULL, "N", "nonzeros of a column in each block", NULL},
    {SPEC_SHUFFLE, "shuffle", "NAME", "none, rows or groups", "none rows groups"},
    {SPEC_SEED, "seed", "N", "of mask and S (default 42; checkpoint c has 100000 c more)", NULL},
    {OPTION_SEEDS, "seeds", "N", "N sketches of each kind, with seeds from --seed on (default 1)", NULL},
    {OPTION_DATA, "data", "FOLDER",
     "a folder with the four IDX files, named as MNIST's, with gzip or not\n"
     "(default: Fashion-MNIST of Debian's package dataset-fashion-mnist)",
     CLI_FILES},
    {OPTION_TRAIN, "train", "N", "the first N training images (default 5000)", NULL},
    {OPTION_TEST, "test", "N", "the first N test images (default 500); a tenth chooses the damping", NULL},
    {OPTION_MODELS, "models", "N", "models, each trained on a half of the images (default 50)", NULL},
    {OPTION_CHECKPOINTS, "checkpoints", "N", "models whose gradients are taken, the first ones (default 10)", NULL},
    {OPTION_EPOCHS, "epochs", "N", "passes over a model's images (default 50)", NULL},
    {OPTION_MODEL_SEED, "model-seed", "N", "of halves and models (default 0)", NULL},
    {OPTION_DAMPING, "damping", "X", "of the scores (default: the best of 1e-7, 1e-6, ..., 100)", NULL},
    {OPTION_RECORD, "record", "FILE",
     "run, lds: add each result to FILE, a JSON object a line;\n"
     "results in it are not computed again",
     CLI_FILES},
    {OPTION_FORGET, "forget", NULL,
     "run: remove a sketch's features when its result is recorded\n"
     "(they have 0.9 GB at k = 4096)",
     NULL},
    {OPTION_COMMIT, "commit", "TEXT", "the commit to record", NULL},
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
    "data attribution: how well sketched gradients predict retrained models",
    "Trains models on halves of the images, sketches the gradients of some of them, scores every training image for\n"
    "every test image, and prints how well sums of scores predict the models' outputs: the linear datamodeling score,\n"
    "LDS. Models and features are kept in FOLDER; a run that was stopped continues there, and another sketch uses its\n"
    "models. With several families, sizes or seeds it prints a table, and compares each with the dense Gaussian.\n\n"
    "  run       everything; computes what is missing\n"
    "  features  trains models, computes features and prints the names of their .npy files\n"
    "  lds       LDS from the models and features that are kept; computes neither, and names what is missing\n"
    "  query     prints for test images, by number from 0, which training images helped and which harmed",
    options,
    "It needs OpenBLAS, on a GPU cuBLAS and cuSOLVER.  The network is 784-128-64-10 with ReLU and dropout 0.1, trained\n"
    "by SGD with momentum.",
    grass_run};
