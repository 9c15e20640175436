/* features.c - features of images: gradients at the checkpoints, masked and sketched; kept in files for later runs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "stages.h"

/* Whether features are computed from layers, without forming gradients: always with a mask, and on a GPU. Without a
 * mask a CPU is faster with formed gradients (docs/attribution.md, From layers). */
static int from_layers(const experiment *e, int64_t mask)
{
    return mask > 0 || e->device->ops->memory != FS_MEMORY_HOST;
}

/* batches ---------------------------------------------------------------------------------------------------- */

/* A batch of gradients: their factors, or the gradients themselves. */
typedef struct batch {
    int64_t rows;
    fs_attribution_layer layers[2 * MLP_LAYERS];
    fs_matrix gradients;
} batch;

static fs_result make_batch(features *f, const grass_images *images, int64_t first, batch *b)
{
    experiment *e = f->e;
    const int64_t left = images->count - first;
    b->rows = left < e->recipe.batch ? left : e->recipe.batch;
    GRASS_TRY(mlp_forward(&e->net, images->x + first * images->pixels, b->rows, NULL));
    GRASS_TRY(mlp_margin(&e->net, b->rows, images->label + first, f->margins));
    if (!f->gradients) return mlp_layers(&e->net, b->rows, b->layers);
    b->gradients = fs_batch_major(f->gradients, b->rows, e->parameters, FS_F32);
    b->gradients.col_stride = f->ld;
    b->gradients.memory = e->device->ops->memory;
    return mlp_gradients(&e->net, b->rows, f->gradients, f->ld);
}

/* Calls take(f, g, first, batch) for every batch of images, which are in the device's memory. */
static fs_result each_batch(features *f, const float *theta, const grass_images *images, fs_attribution *g,
                            fs_result (*take)(features *, fs_attribution *, int64_t, const batch *))
{
    GRASS_TRY(mlp_set(&f->e->net, 0, theta));
    for (int64_t first = 0; first < images->count; first += f->e->recipe.batch) {
        batch b;
        GRASS_TRY(make_batch(f, images, first, &b));
        GRASS_TRY(take(f, g, first, &b));
    }
    return FS_OK;
}

fs_matrix features_view(const features *f, float *phi, int64_t rows)
{
    fs_matrix view = fs_row_major(phi, rows, f->k, FS_F32);
    view.memory = f->e->device->ops->memory;
    return view;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fs_result take_train(features *f, fs_attribution *g, int64_t first, const batch *b)
{
    const grass_device *device = f->e->device;
    GRASS_TRY(device->ops->wait(device->state)); /* the time of making the batch is not measured */
    const double start = seconds_now();
    const fs_result result = f->gradients ? fs_attribution_add(g, first, &b->gradients) /* both wait themselves */
                                          : fs_attribution_add_layers(g, first, b->layers);
    f->seconds += seconds_now() - start;
    f->batches++;
    return result;
}
static fs_result take_test(features *f, fs_attribution *g, int64_t first, const batch *b)
{
    fs_matrix phi = features_view(f, f->phi + first * f->k, b->rows);
    return f->gradients ? fs_attribution_project(g, &b->gradients, &phi)
                        : fs_attribution_project_layers(g, b->layers, &phi);
}

/* features of a checkpoint ----------------------------------------------------------------------------------- */

/* Features in the device's memory from the cache, and into it. */
static fs_result get_kept(const features *f, const char *name, const fs_matrix *phi, int *found)
{
    const grass_device *device = f->e->device;
    fs_matrix host = *phi;
    host.data = f->host;
    GRASS_TRY(cache_get(&f->kept, name, &host, found));
    if (!*found) return FS_OK;
    return device->ops->send(device->state, f->host, (size_t)(host.rows * host.cols) * sizeof *f->host, phi->data);
}
static fs_result put_kept(const features *f, const char *name, const fs_matrix *phi)
{
    const grass_device *device = f->e->device;
    fs_matrix host = *phi;
    host.data = f->host;
    host.memory = FS_MEMORY_HOST;
    GRASS_TRY(device->ops->fetch(device->state, phi->data, (size_t)(host.rows * host.cols) * sizeof *f->host, f->host));
    return cache_put(&f->kept, name, &host);
}

/* The features of checkpoint c, read or computed: those of training images in g, those of test images in f->phi. */
static fs_result get_features(features *f, fs_attribution *g, int64_t c)
{
    experiment *e = f->e;
    const float *theta = e->theta + c * e->parameters;
    const fs_matrix phi = features_view(f, f->phi, f->tests);
    fs_matrix Phi;
    experiment_file train, test;
    int found_train, found_test;
    experiment_name("train", c, train);
    experiment_name("test", c, test);
    GRASS_TRY(fs_attribution_features(g, &Phi));
    GRASS_TRY(get_kept(f, test, &phi, &found_test));
    GRASS_TRY(get_kept(f, train, &Phi, &found_train));
    if (!found_test) {
        GRASS_TRY(each_batch(f, theta, &e->test, g, take_test));
        GRASS_TRY(put_kept(f, test, &phi));
    }
    if (found_train) return fs_attribution_restore(g, 0, f->N);
    GRASS_TRY(each_batch(f, theta, &e->train, g, take_train));
    return put_kept(f, train, &Phi);
}

static fs_result create_attribution(features *f, int64_t c, fs_attribution **g)
{
    fs_spec sketch = f->sketch;
    fs_attribution_options o = FS_ATTRIBUTION_INIT;
    sketch.seed += 100000 * (uint64_t)c;
    o.examples = f->N;
    o.parts = f->parts;
    o.parameters = f->parameters;
    o.mask = f->mask;
    o.run = f->e->recipe.run;
    o.sketch = &sketch;
    return fs_attribution_create(g, f->e->device->ctx, &o);
}

fs_result features_pass(features *f, const char *doing, double from, double to, features_use *use, void *user)
{
    const int64_t E = f->e->recipe.ensemble;
    fs_result result = FS_OK;
    for (int64_t c = 0; c < E && result == FS_OK; c++) {
        fs_attribution *g = NULL;
        experiment_report(f->e, from + (to - from) * (double)c / (double)E, doing);
        result = create_attribution(f, c, &g);
        if (result == FS_OK) result = get_features(f, g, c);
        if (result == FS_OK && use) result = use(user, g, c);
        fs_attribution_destroy(g);
    }
    if (result == FS_OK) experiment_report(f->e, to, doing);
    return result;
}

/* the folder of a sketch ------------------------------------------------------------------------------------- */

enum { IDENTITY = 1024 };

/* Features are kept in a folder of their own for each sketch, in that of the models.  Its name has the digest of S, and
 * the family too, because two families may have the same S: blockperm with one block is an sjlt.  Features 2 are those
 * from layers: a run that continues writes the same bytes, and a GPU rounds them differently from those of formed
 * gradients. */
static fs_result name_features(const experiment *e, const fs_spec *sketch, int64_t mask, char *identity,
                               experiment_kept *kept)
{
    fs_sketch *S;
    uint64_t digest;
    char text[512], run[32] = "";
    GRASS_REQUIRE(mask >= 0 && mask <= e->parameters, "a mask of %" PRId64 " coordinates, gradients have %" PRId64,
                  mask, e->parameters);
    GRASS_TRY(fs_sketch_create(&S, sketch));
    fs_sketch_describe(S, text, sizeof text);
    const fs_result result = fs_sketch_digest(NULL, S, 0, sketch->d < 4096 ? sketch->d : 4096, &digest);
    fs_sketch_destroy(S);
    GRASS_TRY(result);
    if (mask && e->recipe.run > 1) snprintf(run, sizeof run, "-runs-of-%" PRId64, e->recipe.run);
    snprintf(identity, IDENTITY,
             "flashsketch-grass features %d\ndefinition %d\nsketch %s\nmask %" PRId64 "%s\nparameters %" PRId64
             "\ntest-images %" PRId64 " crc %08" PRIx32 "\n",
             from_layers(e, mask) ? 2 : 1, fs_definition_version(), text, mask, run, e->parameters, e->data->test.count,
             experiment_images_crc(&e->data->test));
    snprintf(kept->folder, sizeof kept->folder, "%s/features-%.*s-%" PRId64 "-%016" PRIx64 "-%" PRId64 "%s",
             e->kept.folder, (int)strcspn(text, " "), text, sketch->k, digest, mask, run);
    return FS_OK;
}

static fs_result count_features(const experiment *e, const fs_spec *sketch, int64_t mask, int remove_them,
                                experiment_kept *kept)
{
    fs_spec spec = *sketch;
    char identity[IDENTITY];
    spec.d = mask ? mask : e->parameters;
    GRASS_TRY(name_features(e, &spec, mask, identity, kept));
    experiment_count_files(kept, "train", e->recipe.ensemble, remove_them);
    experiment_count_files(kept, "test", e->recipe.ensemble, remove_them);
    return FS_OK;
}

fs_result experiment_look(const experiment *e, const fs_spec *sketch, int64_t mask, experiment_kept *kept)
{
    memset(kept, 0, sizeof *kept);
    if (sketch) return count_features(e, sketch, mask, 0, kept);
    snprintf(kept->folder, sizeof kept->folder, "%s", e->kept.folder);
    experiment_count_files(kept, "model", e->recipe.models, 0);
    return FS_OK;
}

fs_result experiment_forget(experiment *e, const fs_spec *sketch, int64_t mask)
{
    experiment_kept kept = {.files = 0};
    char path[sizeof kept.folder + 64];
    GRASS_TRY(count_features(e, sketch, mask, 1, &kept));
    snprintf(path, sizeof path, "%s/identity", kept.folder);
    unlink(path);
    if (rmdir(kept.folder) == 0 || errno == ENOENT) return FS_OK;
    return fs_fail(FS_EFILE, "%s: the folder cannot be removed: %s", kept.folder, strerror(errno));
}

/* opening ---------------------------------------------------------------------------------------------------- */

/* Gradients begin at multiples of 128 bytes. */
static fs_result allocate_features(features *f)
{
    const grass_device *device = f->e->device;
    const int64_t batch_rows = f->e->recipe.batch, most = f->N > f->tests ? f->N : f->tests;
    f->ld = (f->e->parameters + 31) / 32 * 32;
    const size_t bytes[] = {(size_t)batch_rows * sizeof(double), (size_t)(f->tests * f->k) * sizeof(float),
                            (size_t)(batch_rows * f->ld) * sizeof(float)};
    const int count = from_layers(f->e, f->mask) ? 2 : 3;
    void *memory[3] = {NULL};
    fs_result result = FS_OK;
    for (int i = 0; i < count && result == FS_OK; i++) result = device->ops->alloc(device->state, bytes[i], &memory[i]);
    f->margins = memory[0];
    f->phi = memory[1];
    f->gradients = memory[2];
    GRASS_TRY(result);
    f->host = malloc((size_t)(most * f->k) * sizeof *f->host);
    return f->host ? FS_OK : fs_fail(FS_ENOMEM, "no memory for %" PRId64 " x %" PRId64 " features", most, f->k);
}

static fs_result open_parts(features *f)
{
    char identity[IDENTITY];
    experiment_kept kept;
    GRASS_TRY(name_features(f->e, &f->sketch, f->mask, identity, &kept)); /* this checks the sketch */
    GRASS_TRY(cache_open(&f->kept, kept.folder, identity));
    return allocate_features(f);
}

fs_result features_open(features *f, experiment *e, const fs_spec *sketch, int64_t mask)
{
    const mlp_shape *shape = &e->recipe.shape;
    *f = (features){.e = e,
                    .kept = {.lock = -1},
                    .sketch = *sketch,
                    .mask = mask,
                    .k = sketch->k,
                    .N = e->data->train.count,
                    .tests = e->data->test.count,
                    .parts = 1,
                    .parameters = {e->parameters}};
    f->sketch.d = mask ? mask : e->parameters;
    if (from_layers(e, mask)) f->parts = 2 * shape->layers;
    for (int l = 0; 2 * l < f->parts && f->parts > 1; l++) {
        f->parameters[2 * l] = shape->width[l] * shape->width[l + 1];
        f->parameters[2 * l + 1] = shape->width[l + 1];
    }
    const fs_result result = open_parts(f);
    if (result != FS_OK) features_close(f);
    return result;
}

void features_close(features *f)
{
    const grass_device *device = f->e->device;
    void *const memory[] = {f->gradients, f->margins, f->phi};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        if (memory[i]) device->ops->release(device->state, memory[i]);
    free(f->host);
    cache_close(&f->kept);
}

fs_result experiment_features(experiment *e, const fs_spec *sketch, int64_t mask, experiment_result *result)
{
    features f;
    memset(result, 0, sizeof *result);
    GRASS_TRY(features_open(&f, e, sketch, mask));
    const fs_result code = features_pass(&f, "features", 0, 1, NULL, NULL);
    result->project_seconds = f.seconds;
    result->project_batches = f.batches;
    features_close(&f);
    return code;
}
