/* experiment.c - models, features, scores, LDS, one after the other. */
#include "experiment.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zlib.h>

#include "base/error.h"
#include "attribution/random.h"

static void tell(const experiment *e, double share, const char *doing)
{
    if (e->progress.at) e->progress.at(e->progress.user, share, doing);
}

/* opening ---------------------------------------------------------------------------------------------------- */

static uint32_t crc_of(const grass_images *images)
{
    const z_size_t bytes = (z_size_t)(images->count * images->pixels) * sizeof *images->x;
    const uLong x = crc32_z(0, (const Bytef *)images->x, bytes);
    return (uint32_t)crc32_z(x, images->label, (z_size_t)images->count);
}

/* What models depend on.  How many there are is no part of it: more can be trained later. */
static void describe(const experiment *e, char *text, size_t bytes)
{
    const experiment_recipe *r = &e->recipe;
    int at = snprintf(text, bytes,
                      "flashsketch-grass models 1\ntraining-images %" PRId64 " crc %08" PRIx32 "\nhalf %" PRId64
                      "\nseed %" PRIu64 "\nrate %.17g\nmomentum %.17g\ndropout %.17g\nbatch %" PRId64
                      "\nepochs %" PRId64 "\nwidths",
                      e->data->train.count, crc_of(&e->data->train), r->half, r->seed, r->train.rate, r->train.momentum,
                      r->train.dropout, r->train.batch, r->train.epochs);
    for (int l = 0; l <= r->shape.layers; l++)
        at += snprintf(text + at, bytes - (size_t)at, " %" PRId64, r->shape.width[l]);
    snprintf(text + at, bytes - (size_t)at, "\n");
}

uint32_t experiment_crc(const experiment *e)
{
    const experiment_recipe *r = &e->recipe;
    char text[1280];
    describe(e, text, 1024);
    const size_t at = strlen(text);
    snprintf(text + at, sizeof text - at,
             "models %" PRId64 "\nensemble %" PRId64 "\nvalidation %" PRId64 "\ntest-images %" PRId64 " crc %08" PRIx32
             "\n",
             r->models, r->ensemble, r->validation, e->data->test.count, crc_of(&e->data->test));
    return (uint32_t)crc32_z(0, (const Bytef *)text, strlen(text));
}

static fs_result check(const experiment_recipe *r, const grass_data *data)
{
    FSI_REQUIRE(r->models >= 2 && r->ensemble >= 1 && r->ensemble <= r->models,
                "%" PRId64 " models, of which %" PRId64 " give gradients: at least 2 and 1 are needed, and not more of "
                "the second",
                r->models, r->ensemble);
    FSI_REQUIRE(r->half >= 1 && r->half <= data->train.count, "models of %" PRId64 " of %" PRId64 " training images",
                r->half, data->train.count);
    FSI_REQUIRE(r->validation >= 1 && r->validation < data->test.count,
                "%" PRId64 " of %" PRId64 " test images choose the damping: at least 1, and not all", r->validation,
                data->test.count);
    FSI_REQUIRE(r->shape.layers >= 1 && r->shape.layers <= MLP_LAYERS, "a perceptron of %d layers: it has 1 to %d",
                r->shape.layers, MLP_LAYERS);
    const int64_t in = r->shape.width[0], out = r->shape.width[r->shape.layers];
    FSI_REQUIRE(r->batch >= 1 && in == data->train.pixels && out >= GRASS_CLASSES,
                "batches of %" PRId64 ", a perceptron from %" PRId64 " to %" PRId64 " values; images have %" PRId64
                " pixels and %d classes",
                r->batch, in, out, data->train.pixels, GRASS_CLASSES);
    return FS_OK;
}

static fs_result fill(experiment *e, const char *folder)
{
    const experiment_recipe *r = &e->recipe;
    char identity[1024];
    describe(e, identity, sizeof identity);
    const int64_t most = e->data->train.count > e->data->test.count ? e->data->train.count : e->data->test.count;
    void *losses = NULL;
    FSI_TRY(mlp_open(&e->net, e->ctx, &r->shape, r->batch, 1));
    FSI_TRY(train_place(&e->net, &e->data->train, &e->train));
    FSI_TRY(train_place(&e->net, &e->data->test, &e->test));
    FSI_TRY(e->net.dense->alloc(e->net.handle, (size_t)most * sizeof *e->losses, &losses));
    e->losses = losses;
    e->parameters = mlp_parameters(&r->shape);
    e->theta = malloc((size_t)(r->models * e->parameters) * sizeof *e->theta);
    e->chosen = malloc((size_t)(r->models * r->half) * sizeof *e->chosen);
    e->y = malloc((size_t)(r->models * e->data->test.count) * sizeof *e->y);
    e->Q = calloc((size_t)e->data->train.count, sizeof *e->Q);
    e->lds = malloc((size_t)e->data->test.count * sizeof *e->lds);
    if (!e->theta || !e->chosen || !e->y || !e->Q || !e->lds)
        return fs_fail(FS_ENOMEM, "there is no memory for %" PRId64 " models of %" PRId64 " parameters", r->models,
                       e->parameters);
    return cache_open(&e->kept, folder, identity);
}

fs_result experiment_open(experiment *e, fs_context *ctx, const experiment_recipe *recipe, const grass_data *data,
                          const char *folder, const fs_progress *progress)
{
    memset(e, 0, sizeof *e);
    e->kept.lock = -1;
    FSI_TRY(check(recipe, data));
    e->recipe = *recipe;
    e->ctx = ctx;
    e->data = data;
    if (progress) e->progress = *progress;
    const fs_result result = fill(e, folder);
    if (result != FS_OK) experiment_close(e);
    return result;
}

void experiment_close(experiment *e)
{
    train_displace(&e->net, &e->train);
    train_displace(&e->net, &e->test);
    if (e->losses) e->net.dense->release(e->net.handle, e->losses);
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

/* models ----------------------------------------------------------------------------------------------------- */

typedef char file_name[32]; /* without .npy */

static void name_of(const char *kind, int64_t i, file_name name) { snprintf(name, 32, "%s-%03" PRId64, kind, i); }

static fs_matrix model_at(const experiment *e, int64_t i)
{
    return fs_row_major(e->theta + i * e->parameters, 1, e->parameters, FS_F32);
}

/* Takes the models that are kept; missing[0 .. *count) are the others. */
static fs_result get_models(experiment *e, int64_t *missing, int64_t *count)
{
    const experiment_recipe *r = &e->recipe;
    *count = 0;
    for (int64_t i = 0; i < r->models; i++) {
        const fs_matrix theta = model_at(e, i);
        file_name name;
        int found;
        name_of("model", i, name);
        grass_choose(r->seed, GRASS_TAG_SUBSET, (uint32_t)i, e->data->train.count, r->half, e->chosen + i * r->half);
        FSI_TRY(cache_get(&e->kept, name, &theta, &found));
        if (!found) missing[(*count)++] = i;
    }
    return FS_OK;
}

/* Trains models which[0 .. count), as many at a time as the trainer takes, and keeps them. */
static fs_result train_missing(experiment *e, trainer *t, const int64_t *which, int64_t count)
{
    const experiment_recipe *r = &e->recipe;
    for (int64_t first = 0, some; first < count; first += some) {
        train_job jobs[MLP_MODELS];
        some = count - first < t->net.models ? count - first : t->net.models;
        for (int64_t j = 0; j < some; j++) {
            const int64_t i = which[first + j];
            jobs[j] = (train_job){e->chosen + i * r->half, r->seed + (uint64_t)i, e->theta + i * e->parameters, 0};
        }
        tell(e, (double)(r->models - count + first) / (double)r->models, "models");
        FSI_TRY(trainer_run(t, jobs, some));
        for (int64_t j = 0; j < some; j++) {
            const fs_matrix theta = model_at(e, which[first + j]);
            file_name name;
            name_of("model", which[first + j], name);
            FSI_TRY(cache_put(&e->kept, name, &theta));
        }
    }
    return FS_OK;
}

static fs_result make_models(experiment *e)
{
    const experiment_recipe *r = &e->recipe;
    trainer t;
    int64_t count, *missing = malloc((size_t)r->models * sizeof *missing);
    if (!missing) return fs_fail(FS_ENOMEM, "there is no memory for %" PRId64 " numbers of models", r->models);
    fs_result result = get_models(e, missing, &count);
    if (result == FS_OK && count) {
        result = trainer_open(&t, e->ctx, &r->shape, &r->train, &e->train, r->half, 0);
        if (result == FS_OK) {
            result = train_missing(e, &t, missing, count);
            trainer_close(&t);
        }
    }
    free(missing);
    return result;
}

/* y of every model, and Q from the first ones; `loss` holds one for each training image. */
static fs_result take_losses(experiment *e, double *loss)
{
    const experiment_recipe *r = &e->recipe;
    const int64_t tests = e->data->test.count, N = e->data->train.count;
    memset(e->Q, 0, (size_t)N * sizeof *e->Q);
    for (int64_t i = 0; i < r->models; i++) {
        FSI_TRY(mlp_set(&e->net, 0, e->theta + i * e->parameters));
        FSI_TRY(train_losses(&e->net, &e->test, e->losses, e->y + i * tests));
        for (int64_t t = 0; t < tests; t++) e->y[i * tests + t] = -e->y[i * tests + t];
        if (i >= r->ensemble) continue;
        FSI_TRY(train_losses(&e->net, &e->train, e->losses, loss));
        for (int64_t n = 0; n < N; n++) e->Q[n] -= expm1(-loss[n]) / (double)r->ensemble; /* 1 - p */
    }
    return FS_OK;
}

fs_result experiment_models(experiment *e)
{
    double *loss = malloc((size_t)e->data->train.count * sizeof *loss);
    fs_result result = loss ? FS_OK
                            : fs_fail(FS_ENOMEM, "there is no memory for %" PRId64 " losses", e->data->train.count);
    tell(e, 0, "models");
    if (result == FS_OK) result = make_models(e);
    if (result == FS_OK) result = take_losses(e, loss);
    free(loss);
    if (result == FS_OK) tell(e, 1, "models");
    return result;
}

/* features --------------------------------------------------------------------------------------------------- */

/* What scoring takes with it. */
typedef struct scoring {
    experiment *e;
    cache kept; /* of the features of this sketch */
    fs_spec sketch;
    int64_t mask, k, N, tests;
    int parts; /* of a gradient: W and b of each layer; one, the whole of it, where they are formed */
    int64_t parameters[2 * MLP_LAYERS];
    float *gradients; /* batch x ld, in the context's memory (NULL: features are made from layers), ... */
    int64_t ld;
    double *margins; /* ... as are margins (batch), ... */
    float *phi;      /* ... features of the test images (tests x k), of the checkpoint at hand, ... */
    float *some_phi; /* ... and of those that choose the damping */
    float *host;     /* N x k or tests x k numbers on their way between files and the context's memory */
    double *scores[EXPERIMENT_DAMPINGS]; /* validation x N */
    double *all;                         /* tests x N; `given`: the caller's */
    int given;
    double *y, *lds, *work;
    int64_t *validation, *others;
    double damping, seconds;
    int64_t batches;
} scoring;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether features are made from layers, without gradients being formed.  With a mask few products are made: at
 * k = 1024 a batch takes 7 ms from layers, and 11 + 14 where gradients are formed and then sketched; without a mask it
 * takes 53 from layers, and 12 + 30 (one thread of an AMD EPYC, on top of a1a851d, 2026-11-16).  On an H200 (on top of
 * 9c3528b, the same day) layers take 27 us, and 159 + 52 is the other way; without a mask 140, and 159 + 76. */
static int from_layers(const experiment *e, int64_t mask)
{
    return e->ctx->backend->apply_products && (mask > 0 || e->ctx->backend->memory != FS_MEMORY_HOST);
}

/* A batch of gradients: what they are made of, or they themselves. */
typedef struct batch {
    int64_t rows;
    fs_attribution_layer layers[2 * MLP_LAYERS];
    fs_matrix gradients;
} batch;

static fs_result make_batch(scoring *s, const grass_images *images, int64_t first, batch *b)
{
    experiment *e = s->e;
    const int64_t left = images->count - first;
    b->rows = left < e->recipe.batch ? left : e->recipe.batch;
    FSI_TRY(mlp_forward(&e->net, images->x + first * images->pixels, b->rows, NULL));
    FSI_TRY(mlp_margin(&e->net, b->rows, images->label + first, s->margins));
    if (!s->gradients) return mlp_layers(&e->net, b->rows, b->layers);
    b->gradients = fs_batch_major(s->gradients, b->rows, e->parameters, FS_F32);
    b->gradients.col_stride = s->ld;
    b->gradients.memory = e->ctx->backend->memory;
    return mlp_gradients(&e->net, b->rows, s->gradients, s->ld);
}

/* Calls take(s, g, first, batch) for every batch of images, which are in the context's memory. */
static fs_result each_batch(scoring *s, const float *theta, const grass_images *images, fs_attribution *g,
                            fs_result (*take)(scoring *, fs_attribution *, int64_t, const batch *))
{
    FSI_TRY(mlp_set(&s->e->net, 0, theta));
    for (int64_t first = 0; first < images->count; first += s->e->recipe.batch) {
        batch b;
        FSI_TRY(make_batch(s, images, first, &b));
        FSI_TRY(take(s, g, first, &b));
    }
    return FS_OK;
}
/* Rows of features in the context's memory. */
static fs_matrix placed(const scoring *s, float *features, int64_t rows)
{
    fs_matrix phi = fs_row_major(features, rows, s->k, FS_F32);
    phi.memory = s->e->ctx->backend->memory;
    return phi;
}

static fs_result take_train(scoring *s, fs_attribution *g, int64_t first, const batch *b)
{
    FSI_TRY(s->e->net.dense->wait(s->e->net.handle, NULL)); /* what made the batch is not to be timed */
    const double start = now();
    const fs_result result = s->gradients ? fs_attribution_add(g, first, &b->gradients) /* both wait themselves */
                                          : fs_attribution_add_layers(g, first, b->layers);
    s->seconds += now() - start;
    s->batches++;
    return result;
}
static fs_result take_test(scoring *s, fs_attribution *g, int64_t first, const batch *b)
{
    fs_matrix phi = placed(s, s->phi + first * s->k, b->rows);
    return s->gradients ? fs_attribution_project(g, &b->gradients, &phi)
                        : fs_attribution_project_layers(g, b->layers, &phi);
}

/* Features in the context's memory from the cache, and into it. */
static fs_result get_kept(const scoring *s, const char *name, const fs_matrix *features, int *found)
{
    const mlp *net = &s->e->net;
    fs_matrix host = *features;
    host.data = s->host;
    FSI_TRY(cache_get(&s->kept, name, &host, found));
    if (!*found) return FS_OK;
    return net->dense->send(net->handle, s->host, (size_t)(host.rows * host.cols) * sizeof *s->host, features->data);
}
static fs_result keep(const scoring *s, const char *name, const fs_matrix *features)
{
    const mlp *net = &s->e->net;
    fs_matrix host = *features;
    host.data = s->host;
    host.memory = FS_MEMORY_HOST;
    FSI_TRY(net->dense->fetch(net->handle, features->data, (size_t)(host.rows * host.cols) * sizeof *s->host, s->host));
    return cache_put(&s->kept, name, &host);
}

/* The features of checkpoint c, kept or made: those of training images in g, those of test images in s->phi. */
static fs_result get_features(scoring *s, fs_attribution *g, int64_t c)
{
    experiment *e = s->e;
    const float *theta = e->theta + c * e->parameters;
    const fs_matrix phi = placed(s, s->phi, s->tests);
    fs_matrix Phi;
    file_name train, test;
    int found_train, found_test;
    name_of("train", c, train);
    name_of("test", c, test);
    FSI_TRY(fs_attribution_features(g, &Phi));
    FSI_TRY(get_kept(s, test, &phi, &found_test));
    FSI_TRY(get_kept(s, train, &Phi, &found_train));
    if (!found_test) {
        FSI_TRY(each_batch(s, theta, &e->test, g, take_test));
        FSI_TRY(keep(s, test, &phi));
    }
    if (found_train) return fs_attribution_restore(g, 0, s->N);
    FSI_TRY(each_batch(s, theta, &e->train, g, take_train));
    return keep(s, train, &Phi);
}

static fs_result begin(scoring *s, int64_t c, fs_attribution **g)
{
    fs_attribution_options o = FS_ATTRIBUTION_INIT;
    o.examples = s->N;
    o.parts = s->parts;
    o.parameters = s->parameters;
    o.mask = s->mask;
    o.run = s->e->recipe.run;
    fs_spec spec = s->sketch;
    spec.seed += 100000 * (uint64_t)c;
    o.sketch = &spec;
    return fs_attribution_create(g, s->e->ctx, &o);
}

/* scores ----------------------------------------------------------------------------------------------------- */

static double damping_at(int i) { return pow(10, i - 7); }

/* Adds checkpoint c's scores of the validation images, for all dampings.  Scores of a damping at which K is singular
 * are NaN from then on. */
static fs_result validate(scoring *s, fs_attribution *g, int64_t c)
{
    const int64_t V = s->e->recipe.validation;
    const mlp *net = &s->e->net;
    const fs_matrix from = placed(s, s->some_phi, V);
    fs_result result = FS_OK;
    FSI_TRY(net->dense->fetch(net->handle, s->phi, (size_t)(s->tests * s->k) * sizeof *s->host, s->host));
    for (int64_t v = 0; v < V; v++) /* in place: validation[] ascends */
        memmove(s->host + v * s->k, s->host + s->validation[v] * s->k, (size_t)s->k * sizeof *s->host);
    FSI_TRY(net->dense->send(net->handle, s->host, (size_t)(V * s->k) * sizeof *s->host, s->some_phi));
    for (int i = 0; i < EXPERIMENT_DAMPINGS && result == FS_OK; i++) {
        fs_matrix to = fs_row_major(s->scores[i], V, s->N, FS_F64);
        const fs_result factored = fs_attribution_factor(g, damping_at(i));
        if (factored == FS_OK)
            result = fs_attribution_scores(g, &from, s->e->Q, 1.0 / (double)s->e->recipe.ensemble, c ? 1.0 : 0.0, &to);
        else if (factored == FS_EINVAL)
            for (int64_t j = 0; j < V * s->N; j++) s->scores[i][j] = NAN;
        else result = factored;
    }
    return result;
}

static fs_result score_tests(scoring *s, fs_attribution *g, int64_t c)
{
    const fs_matrix from = placed(s, s->phi, s->tests);
    fs_matrix to = fs_row_major(s->all, s->tests, s->N, FS_F64);
    FSI_TRY(fs_attribution_factor(g, s->damping));
    return fs_attribution_scores(g, &from, s->e->Q, 1.0 / (double)s->e->recipe.ensemble, c ? 1.0 : 0.0, &to);
}

/* One pass over the checkpoints: the features of each, and what `score` makes of them (NULL: nothing).  The pass is
 * the work from share `from` to share `to`. */
static fs_result pass(scoring *s, const char *doing, double from, double to,
                      fs_result (*score)(scoring *, fs_attribution *, int64_t))
{
    const int64_t E = s->e->recipe.ensemble;
    fs_result result = FS_OK;
    for (int64_t c = 0; c < E && result == FS_OK; c++) {
        fs_attribution *g = NULL;
        tell(s->e, from + (to - from) * (double)c / (double)E, doing);
        result = begin(s, c, &g);
        if (result == FS_OK) result = get_features(s, g, c);
        if (result == FS_OK && score) result = score(s, g, c);
        fs_attribution_destroy(g);
    }
    if (result == FS_OK) tell(s->e, to, doing);
    return result;
}

/* LDS of the images which[0 .. count), whose scores are the rows of `scores`, or rows which[] of it. */
static void lds_some(scoring *s, const double *scores, int by_number, const int64_t *which, int64_t count)
{
    const experiment *e = s->e;
    for (int64_t t = 0; t < count; t++) {
        for (int64_t i = 0; i < e->recipe.models; i++) s->y[i] = e->y[i * s->tests + which[t]];
        lds_of(1, s->N, e->recipe.models, e->recipe.half, scores + (by_number ? which[t] : t) * s->N, e->chosen, s->y,
               s->lds + t, s->work);
    }
}

static fs_result choose_damping(scoring *s, experiment_result *out)
{
    int best = -1;
    for (int i = 0; i < EXPERIMENT_DAMPINGS; i++) {
        const int64_t V = s->e->recipe.validation;
        lds_some(s, s->scores[i], 0, s->validation, V);
        out->validation[i] = lds_summarise(V, 1, s->lds, 0, s->work).mean;
        if (!isnan(out->validation[i]) && (best < 0 || out->validation[i] > out->validation[best])) best = i;
    }
    if (best < 0) return fs_fail(FS_EBACKEND, "no damping from %g to %g gives scores", damping_at(0), damping_at(9));
    out->damping = damping_at(best);
    return FS_OK;
}

static const double first_pass = 0.8; /* its share: ten Cholesky factors, not one, of each checkpoint */

static fs_result run(scoring *s, double damping, experiment_result *out)
{
    experiment *e = s->e;
    out->damping = damping;
    for (int i = 0; i < EXPERIMENT_DAMPINGS; i++) out->validation[i] = NAN;
    if (damping == 0) {
        FSI_TRY(pass(s, "features and dampings", 0, first_pass, validate));
        FSI_TRY(choose_damping(s, out));
    }
    s->damping = out->damping;
    FSI_TRY(pass(s, "scores", damping == 0 ? first_pass : 0, 1, score_tests));
    const int64_t others = s->tests - e->recipe.validation;
    lds_some(s, s->all, 1, s->others, others);
    out->lds = lds_summarise(others, 1, s->lds, e->recipe.seed, s->work);
    for (int64_t t = 0; t < s->tests; t++) e->lds[t] = NAN;
    for (int64_t t = 0; t < others; t++) e->lds[s->others[t]] = s->lds[t];
    return FS_OK;
}

/* The test images that choose the damping, and the others. */
static void split(scoring *s)
{
    const int64_t V = s->e->recipe.validation;
    grass_choose(s->e->recipe.seed, GRASS_TAG_SPLIT, 0, s->tests, V, s->validation);
    for (int64_t t = 0, v = 0, o = 0; t < s->tests; t++)
        if (v < V && s->validation[v] == t) v++;
        else s->others[o++] = t;
}

static fs_result allocate(scoring *s)
{
    const experiment_recipe *r = &s->e->recipe;
    const size_t rows = (size_t)s->N * sizeof(double), longest = (size_t)(2 * s->tests + 5 * r->models + LDS_SAMPLES);
    int ok = 1;
    for (int i = 0; i < EXPERIMENT_DAMPINGS; i++) ok &= !!(s->scores[i] = malloc((size_t)r->validation * rows));
    if (!s->given) ok &= !!(s->all = malloc((size_t)s->tests * rows));
    ok &= !!(s->host = malloc((size_t)((s->N > s->tests ? s->N : s->tests) * s->k) * sizeof(float)));
    ok &= !!(s->y = malloc((size_t)r->models * sizeof(double)));
    ok &= !!(s->lds = malloc((size_t)s->tests * sizeof(double)));
    ok &= !!(s->work = malloc(longest * sizeof(double)));
    ok &= !!(s->validation = malloc((size_t)s->tests * sizeof(int64_t)));
    ok &= !!(s->others = malloc((size_t)s->tests * sizeof(int64_t)));
    return ok ? FS_OK : fs_fail(FS_ENOMEM, "there is no memory for %" PRId64 " x %" PRId64 " scores", s->tests, s->N);
}

/* What is in the context's memory.  Gradients begin where lines of memory do. */
static fs_result allocate_placed(scoring *s)
{
    const experiment_recipe *r = &s->e->recipe;
    const mlp *net = &s->e->net;
    s->ld = (s->e->parameters + 31) / 32 * 32;
    const size_t bytes[] = {(size_t)r->batch * sizeof(double), (size_t)(s->tests * s->k) * sizeof(float),
                            (size_t)(r->validation * s->k) * sizeof(float), (size_t)(r->batch * s->ld) * sizeof(float)};
    const int count = from_layers(s->e, s->mask) ? 3 : 4;
    void *memory[4] = {NULL};
    fs_result result = FS_OK;
    for (int i = 0; i < count && result == FS_OK; i++) result = net->dense->alloc(net->handle, bytes[i], &memory[i]);
    s->margins = memory[0];
    s->phi = memory[1];
    s->some_phi = memory[2];
    s->gradients = memory[3];
    return result;
}
static void release(scoring *s)
{
    const mlp *net = &s->e->net;
    void *const memory[] = {s->gradients, s->margins, s->phi, s->some_phi};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        if (memory[i]) net->dense->release(net->handle, memory[i]);
    for (int i = 0; i < EXPERIMENT_DAMPINGS; i++) free(s->scores[i]);
    if (!s->given) free(s->all);
    free(s->host);
    free(s->y);
    free(s->lds);
    free(s->work);
    free(s->validation);
    free(s->others);
    cache_close(&s->kept);
}

/* What scoring a sketch begins with: the sketch is checked when its folder is named. */
static scoring scoring_of(experiment *e, const fs_spec *sketch, int64_t mask)
{
    scoring s = {.e = e,
                 .sketch = *sketch,
                 .mask = mask,
                 .k = sketch->k,
                 .N = e->data->train.count,
                 .tests = e->data->test.count,
                 .parts = 1,
                 .parameters = {e->parameters}};
    const mlp_shape *shape = &e->recipe.shape;
    s.kept.lock = -1;
    s.sketch.d = mask ? mask : e->parameters;
    if (!from_layers(e, mask)) return s;
    s.parts = 2 * shape->layers;
    for (int l = 0; l < shape->layers; l++) {
        s.parameters[2 * l] = shape->width[l] * shape->width[l + 1];
        s.parameters[2 * l + 1] = shape->width[l + 1];
    }
    return s;
}

enum { IDENTITY = 1024 };

/* Features are kept in a folder of their own for each sketch, in that of the models.  Its name has the digest of S, and
 * the family too, because two families may have the same S: blockperm with one block is an sjlt.  Features 2 are those
 * made from layers: a run goes on to the same bytes, and a GPU rounds them otherwise than those of formed gradients. */
static fs_result name_features(const experiment *e, const fs_spec *sketch, int64_t mask, char *identity,
                               experiment_kept *kept)
{
    fs_sketch *S;
    uint64_t digest;
    char text[512], run[32] = "";
    FSI_REQUIRE(mask >= 0 && mask <= e->parameters, "a mask of %" PRId64 " coordinates, gradients have %" PRId64, mask,
                e->parameters);
    FSI_TRY(fs_sketch_create(&S, sketch));
    fs_sketch_describe(S, text, sizeof text);
    const fs_result result = fs_sketch_digest(NULL, S, 0, sketch->d < 4096 ? sketch->d : 4096, &digest);
    fs_sketch_destroy(S);
    FSI_TRY(result);
    if (mask && e->recipe.run > 1) snprintf(run, sizeof run, "-runs-of-%" PRId64, e->recipe.run);
    snprintf(identity, IDENTITY,
             "flashsketch-grass features %d\ndefinition %d\nsketch %s\nmask %" PRId64 "%s\nparameters %" PRId64
             "\ntest-images %" PRId64 " crc %08" PRIx32 "\n",
             from_layers(e, mask) ? 2 : 1, fs_definition_version(), text, mask, run, e->parameters, e->data->test.count,
             crc_of(&e->data->test));
    snprintf(kept->folder, sizeof kept->folder, "%s/features-%.*s-%" PRId64 "-%016" PRIx64 "-%" PRId64 "%s",
             e->kept.folder, (int)strcspn(text, " "), text, sketch->k, digest, mask, run);
    return FS_OK;
}

static fs_result start(scoring *s)
{
    char identity[IDENTITY];
    experiment_kept kept;
    FSI_TRY(name_features(s->e, &s->sketch, s->mask, identity, &kept));
    FSI_TRY(cache_open(&s->kept, kept.folder, identity));
    FSI_TRY(allocate(s));
    FSI_TRY(allocate_placed(s));
    split(s);
    return FS_OK;
}

/* Counts the files of a kind, which it removes if that is wanted. */
static void count_files(experiment_kept *kept, const char *kind, int64_t count, int remove_them)
{
    file_name name;
    for (int64_t i = 0; i < count; i++) {
        name_of(kind, i, name);
        kept->missing += !(remove_them ? cache_remove(kept->folder, name) : cache_has(kept->folder, name));
    }
    kept->files += count;
}

static fs_result count_features(const experiment *e, const fs_spec *sketch, int64_t mask, int remove_them,
                                experiment_kept *kept)
{
    fs_spec spec = *sketch;
    char identity[IDENTITY];
    spec.d = mask ? mask : e->parameters;
    FSI_TRY(name_features(e, &spec, mask, identity, kept));
    count_files(kept, "train", e->recipe.ensemble, remove_them);
    count_files(kept, "test", e->recipe.ensemble, remove_them);
    return FS_OK;
}

fs_result experiment_look(const experiment *e, const fs_spec *sketch, int64_t mask, experiment_kept *kept)
{
    memset(kept, 0, sizeof *kept);
    if (sketch) return count_features(e, sketch, mask, 0, kept);
    snprintf(kept->folder, sizeof kept->folder, "%s", e->kept.folder);
    count_files(kept, "model", e->recipe.models, 0);
    return FS_OK;
}

fs_result experiment_forget(experiment *e, const fs_spec *sketch, int64_t mask)
{
    experiment_kept kept = {.files = 0};
    char path[sizeof kept.folder + 64];
    FSI_TRY(count_features(e, sketch, mask, 1, &kept));
    snprintf(path, sizeof path, "%s/identity", kept.folder);
    unlink(path);
    if (rmdir(kept.folder) == 0 || errno == ENOENT) return FS_OK;
    return fs_fail(FS_EFILE, "%s: the folder cannot be removed: %s", kept.folder, strerror(errno));
}

static fs_result end(scoring *s, fs_result code, experiment_result *result)
{
    result->project_seconds = s->seconds;
    result->project_batches = s->batches;
    release(s);
    return code;
}

fs_result experiment_features(experiment *e, const fs_spec *sketch, int64_t mask, experiment_result *result)
{
    scoring s = scoring_of(e, sketch, mask);
    memset(result, 0, sizeof *result);
    fs_result code = start(&s);
    if (code == FS_OK) code = pass(&s, "features", 0, 1, NULL);
    return end(&s, code, result);
}

fs_result experiment_lds(experiment *e, const fs_spec *sketch, int64_t mask, double damping, double *scores,
                         experiment_result *result)
{
    scoring s = scoring_of(e, sketch, mask);
    s.all = scores;
    s.given = scores != NULL;
    memset(result, 0, sizeof *result);
    FSI_REQUIRE(isfinite(damping) && damping >= 0, "a damping of %g: it must be positive, or 0 for the best", damping);
    fs_result code = start(&s);
    if (code == FS_OK) code = run(&s, damping, result);
    return end(&s, code, result);
}
