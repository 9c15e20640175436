/* experiment.c - opening: checks, the identity of models, memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "check.h"
#include "stages.h"

void experiment_report(const experiment *e, double share, const char *doing)
{
    if (e->progress.at) e->progress.at(e->progress.user, share, doing);
}

void experiment_name(const char *kind, int64_t i, experiment_file name)
{
    snprintf(name, sizeof(experiment_file), "%s-%03" PRId64, kind, i);
}

void experiment_count_files(experiment_kept *kept, const char *kind, int64_t count, int remove_them)
{
    experiment_file name;
    for (int64_t i = 0; i < count; i++) {
        experiment_name(kind, i, name);
        kept->missing += !(remove_them ? cache_remove(kept->folder, name) : cache_has(kept->folder, name));
    }
    kept->files += count;
}

uint32_t experiment_images_crc(const grass_images *images)
{
    const z_size_t bytes = (z_size_t)(images->count * images->pixels) * sizeof *images->x;
    const uLong x = crc32_z(0, (const Bytef *)images->x, bytes);
    return (uint32_t)crc32_z(x, images->label, (z_size_t)images->count);
}

/* Everything that models depend on, except their number: more can be trained later. */
static void describe_models(const experiment *e, char *text, size_t bytes)
{
    const experiment_recipe *r = &e->recipe;
    int at = snprintf(text, bytes,
                      "flashsketch-grass models 1\ntraining-images %" PRId64 " crc %08" PRIx32 "\nhalf %" PRId64
                      "\nseed %" PRIu64 "\nrate %.17g\nmomentum %.17g\ndropout %.17g\nbatch %" PRId64
                      "\nepochs %" PRId64 "\nwidths",
                      e->data->train.count, experiment_images_crc(&e->data->train), r->half, r->seed, r->train.rate,
                      r->train.momentum, r->train.dropout, r->train.batch, r->train.epochs);
    for (int l = 0; l <= r->shape.layers; l++)
        at += snprintf(text + at, bytes - (size_t)at, " %" PRId64, r->shape.width[l]);
    snprintf(text + at, bytes - (size_t)at, "\n");
}

uint32_t experiment_crc(const experiment *e)
{
    const experiment_recipe *r = &e->recipe;
    char text[1280];
    describe_models(e, text, 1024);
    const size_t at = strlen(text);
    snprintf(text + at, sizeof text - at,
             "models %" PRId64 "\nensemble %" PRId64 "\nvalidation %" PRId64 "\ntest-images %" PRId64 " crc %08" PRIx32
             "\n",
             r->models, r->ensemble, r->validation, e->data->test.count, experiment_images_crc(&e->data->test));
    return (uint32_t)crc32_z(0, (const Bytef *)text, strlen(text));
}

static fs_result check_recipe(const experiment_recipe *r, const grass_data *data)
{
    GRASS_REQUIRE(r->models >= 2 && r->ensemble >= 1 && r->ensemble <= r->models,
                  "%" PRId64 " models, of which %" PRId64
                  " give gradients: at least 2 and 1 are needed, and not more of "
                  "the second",
                  r->models, r->ensemble);
    GRASS_REQUIRE(r->half >= 1 && r->half <= data->train.count, "models of %" PRId64 " of %" PRId64 " training images",
                  r->half, data->train.count);
    GRASS_REQUIRE(r->validation >= 1 && r->validation < data->test.count,
                  "%" PRId64 " of %" PRId64 " test images choose the damping: at least 1, and not all", r->validation,
                  data->test.count);
    GRASS_REQUIRE(r->shape.layers >= 1 && r->shape.layers <= MLP_LAYERS, "a perceptron of %d layers: it has 1 to %d",
                  r->shape.layers, MLP_LAYERS);
    const int64_t in = r->shape.width[0], out = r->shape.width[r->shape.layers];
    GRASS_REQUIRE(r->batch >= 1 && in == data->train.pixels && out >= GRASS_CLASSES,
                  "batches of %" PRId64 ", a perceptron from %" PRId64 " to %" PRId64 " values; images have %" PRId64
                  " pixels and %d classes",
                  r->batch, in, out, data->train.pixels, GRASS_CLASSES);
    return FS_OK;
}

static fs_result open_parts(experiment *e, const char *folder)
{
    const experiment_recipe *r = &e->recipe;
    char identity[1024];
    describe_models(e, identity, sizeof identity);
    const int64_t most = e->data->train.count > e->data->test.count ? e->data->train.count : e->data->test.count;
    void *losses = NULL;
    GRASS_TRY(grass_open_algebra(e->device->ctx)); /* needed for scores, and checked before anything is trained */
    GRASS_TRY(mlp_open(&e->net, e->device, &r->shape, r->batch, 1));
    GRASS_TRY(train_copy_images(e->device, &e->data->train, &e->train));
    GRASS_TRY(train_copy_images(e->device, &e->data->test, &e->test));
    GRASS_TRY(e->device->ops->alloc(e->device->state, (size_t)most * sizeof *e->losses, &losses));
    e->losses = losses;
    e->parameters = mlp_parameters(&r->shape);
    e->theta = malloc((size_t)(r->models * e->parameters) * sizeof *e->theta);
    e->chosen = malloc((size_t)(r->models * r->half) * sizeof *e->chosen);
    e->y = malloc((size_t)(r->models * e->data->test.count) * sizeof *e->y);
    e->Q = calloc((size_t)e->data->train.count, sizeof *e->Q);
    e->lds = malloc((size_t)e->data->test.count * sizeof *e->lds);
    if (!e->theta || !e->chosen || !e->y || !e->Q || !e->lds)
        return fs_fail(FS_ENOMEM, "no memory for %" PRId64 " models of %" PRId64 " parameters", r->models,
                       e->parameters);
    return cache_open(&e->kept, folder, identity);
}

fs_result experiment_open(experiment *e, const grass_device *device, const experiment_recipe *recipe,
                          const grass_data *data, const char *folder, const fs_progress *progress)
{
    memset(e, 0, sizeof *e);
    e->kept.lock = -1;
    GRASS_TRY(check_recipe(recipe, data));
    e->recipe = *recipe;
    e->device = device;
    e->data = data;
    if (progress) e->progress = *progress;
    const fs_result result = open_parts(e, folder);
    if (result != FS_OK) experiment_close(e);
    return result;
}

void experiment_close(experiment *e)
{
    train_release_images(e->device, &e->train);
    train_release_images(e->device, &e->test);
    if (e->losses) e->device->ops->release(e->device->state, e->losses);
    mlp_close(&e->net);
    cache_close(&e->kept);
    free(e->theta);
    free(e->chosen);
    free(e->y);
    free(e->Q);
    free(e->lds);
    memset(e, 0, sizeof *e);
    e->kept.lock = -1;
}
