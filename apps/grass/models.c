/* models.c - the perceptrons of the experiment: those that are kept, training of the others, losses of all. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "random.h"
#include "stages.h"

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
        experiment_file name;
        int found;
        experiment_name("model", i, name);
        grass_choose(r->seed, GRASS_TAG_SUBSET, (uint32_t)i, e->data->train.count, r->half, e->chosen + i * r->half);
        GRASS_TRY(cache_get(&e->kept, name, &theta, &found));
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
        experiment_report(e, (double)(r->models - count + first) / (double)r->models, "models");
        GRASS_TRY(trainer_run(t, jobs, some));
        for (int64_t j = 0; j < some; j++) {
            const fs_matrix theta = model_at(e, which[first + j]);
            experiment_file name;
            experiment_name("model", which[first + j], name);
            GRASS_TRY(cache_put(&e->kept, name, &theta));
        }
    }
    return FS_OK;
}

static fs_result make_models(experiment *e)
{
    const experiment_recipe *r = &e->recipe;
    trainer t;
    int64_t count, *missing = malloc((size_t)r->models * sizeof *missing);
    if (!missing) return fs_fail(FS_ENOMEM, "no memory for %" PRId64 " numbers of models", r->models);
    fs_result result = get_models(e, missing, &count);
    if (result == FS_OK && count) {
        result = trainer_open(&t, e->device, &r->shape, &r->train, &e->train, r->half, 0);
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
        GRASS_TRY(mlp_set(&e->net, 0, e->theta + i * e->parameters));
        GRASS_TRY(train_losses(&e->net, &e->test, e->losses, e->y + i * tests));
        for (int64_t t = 0; t < tests; t++) e->y[i * tests + t] = -e->y[i * tests + t];
        if (i >= r->ensemble) continue;
        GRASS_TRY(train_losses(&e->net, &e->train, e->losses, loss));
        for (int64_t n = 0; n < N; n++) e->Q[n] -= expm1(-loss[n]) / (double)r->ensemble; /* 1 - p */
    }
    return FS_OK;
}

fs_result experiment_models(experiment *e)
{
    double *loss = malloc((size_t)e->data->train.count * sizeof *loss);
    fs_result result = loss ? FS_OK : fs_fail(FS_ENOMEM, "no memory for %" PRId64 " losses", e->data->train.count);
    experiment_report(e, 0, "models");
    if (result == FS_OK) result = make_models(e);
    if (result == FS_OK) result = take_losses(e, loss);
    free(loss);
    if (result == FS_OK) experiment_report(e, 1, "models");
    return result;
}
