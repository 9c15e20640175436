/* train.c - epochs, batches, steps. */
#include "train.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "random.h"

/* images in the memory of a device -------------------------------------------------------------------------- */

void train_release_images(const grass_device *device, grass_images *copy)
{
    if (copy->x) device->ops->release(device->state, copy->x);
    if (copy->label) device->ops->release(device->state, copy->label);
    memset(copy, 0, sizeof *copy);
}

static fs_result copy_bytes(const grass_device *device, const void *host, size_t bytes, void **copy)
{
    GRASS_TRY(device->ops->alloc(device->state, bytes, copy));
    return device->ops->send(device->state, host, bytes, *copy);
}

fs_result train_copy_images(const grass_device *device, const grass_images *host, grass_images *copy)
{
    void *x = NULL, *label = NULL;
    fs_result result = copy_bytes(device, host->x, (size_t)(host->count * host->pixels) * sizeof *host->x, &x);
    if (result == FS_OK) result = copy_bytes(device, host->label, (size_t)host->count, &label);
    *copy = (grass_images){host->count, host->pixels, x, label};
    if (result != FS_OK) train_release_images(device, copy);
    return result;
}

/* a trainer -------------------------------------------------------------------------------------------------- */

static fs_result trainer_allocate(trainer *t)
{
    const mlp *net = &t->net;
    const grass_device *device = net->device;
    const int64_t models = net->models, epoch = models * t->count, rows = models * t->recipe.batch;
    const size_t bytes[] = {(size_t)(models * net->parameters) * sizeof(float),
                            (size_t)(models * net->parameters) * sizeof(float),
                            (size_t)(rows * net->shape.width[0]) * sizeof(float),
                            (size_t)rows,
                            (size_t)epoch * sizeof(int64_t),
                            (size_t)epoch * sizeof(double)};
    void *memory[6] = {NULL};
    fs_result result = FS_OK;
    for (int i = 0; i < 6 && result == FS_OK; i++) result = device->ops->alloc(device->state, bytes[i], &memory[i]);
    t->g = memory[0];
    t->v = memory[1];
    t->x = memory[2];
    t->label = memory[3];
    t->order = memory[4];
    t->loss = memory[5];
    t->host_order = malloc(bytes[4]);
    t->host_loss = malloc(bytes[5]);
    t->host_theta = malloc((size_t)net->parameters * sizeof(float));
    if (result == FS_OK && (!t->host_order || !t->host_loss || !t->host_theta))
        return fs_fail(FS_ENOMEM, "no memory to train %" PRId64 " parameters on %" PRId64 " images", net->parameters,
                       t->count);
    return result;
}

fs_result trainer_open(trainer *t, const grass_device *device, const mlp_shape *shape, const train_recipe *recipe,
                       const grass_images *images, int64_t count, int64_t models)
{
    memset(t, 0, sizeof *t);
    GRASS_REQUIRE(count >= 1 && recipe->batch >= 1 && images->pixels == shape->width[0],
                  "training on %" PRId64 " images of %" PRId64 " pixels in batches of %" PRId64
                  ", by a perceptron of %" PRId64 " inputs",
                  count, images->pixels, recipe->batch, shape->width[0]);
    GRASS_TRY(mlp_open(&t->net, device, shape, recipe->batch, models ? models : device->ops->side_by_side));
    t->recipe = *recipe;
    t->images = images;
    t->count = count;
    const fs_result result = trainer_allocate(t);
    if (result != FS_OK) trainer_close(t);
    return result;
}

void trainer_close(trainer *t)
{
    void *const memory[] = {t->g, t->v, t->x, t->label, t->order, t->loss};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        if (memory[i]) t->net.device->ops->release(t->net.device->state, memory[i]);
    free(t->host_order);
    free(t->host_loss);
    free(t->host_theta);
    mlp_close(&t->net);
    memset(t, 0, sizeof *t);
}

/* The job of a slot.  Slots beyond the jobs repeat the first. */
static const train_job *job_at(const train_job *jobs, int64_t count, int64_t slot)
{
    return &jobs[slot < count ? slot : 0];
}

static int64_t rows_at(const trainer *t, int64_t step)
{
    const int64_t left = t->count - step * t->recipe.batch;
    return left < t->recipe.batch ? left : t->recipe.batch;
}

static fs_result train_step(trainer *t, int64_t number, int64_t first, int64_t rows, mlp_dropout *dropout)
{
    mlp *net = &t->net;
    const grass_device *device = net->device;
    const int64_t models = net->models;
    dropout->step = (uint32_t)number;
    GRASS_TRY(device->ops->gather(device->state, models * rows, t->images->pixels, t->images->x, t->images->label,
                                  t->order + first, t->x, t->label));
    GRASS_TRY(mlp_forward(net, t->x, rows, dropout));
    GRASS_TRY(mlp_cross_entropy(net, rows, t->label, t->loss + first));
    GRASS_TRY(mlp_gradient_sum(net, rows, t->g));
    return device->ops->step(device->state, models * net->parameters, (float)t->recipe.rate, (float)t->recipe.momentum,
                             t->g, t->v, net->theta);
}

/* Writes an epoch's images of a model among those of all models; and the mean of its losses there. */
static void put_order(trainer *t, const train_job *job, int64_t slot, int64_t epoch)
{
    const fsi_bijection P = fsi_bijection_make(job->seed, GRASS_TAG_ORDER, (uint32_t)epoch, (uint64_t)t->count);
    for (int64_t s = 0, at = 0; at < t->count; s++) {
        int64_t *to = t->host_order + at * t->net.models + slot * rows_at(t, s);
        for (int64_t end = at + rows_at(t, s); at < end; at++) *to++ = job->chosen[fsi_permute(&P, (uint64_t)at)];
    }
}
static double mean_loss(const trainer *t, int64_t slot)
{
    double sum = 0;
    for (int64_t s = 0, at = 0; at < t->count; s++) {
        const int64_t rows = rows_at(t, s);
        const double *from = t->host_loss + at * t->net.models + slot * rows;
        for (int64_t i = 0; i < rows; i++) sum += from[i];
        at += rows;
    }
    return sum / (double)t->count;
}

static fs_result train_epoch(trainer *t, train_job *jobs, int64_t count, int64_t number, mlp_dropout *dropout)
{
    const mlp *net = &t->net;
    const grass_device *device = net->device;
    const int64_t models = net->models, steps = (t->count - 1) / t->recipe.batch + 1, all = models * t->count;
    for (int64_t slot = 0; slot < models; slot++) put_order(t, job_at(jobs, count, slot), slot, number);
    GRASS_TRY(device->ops->send(device->state, t->host_order, (size_t)all * sizeof *t->order, t->order));
    for (int64_t s = 0; s < steps; s++)
        GRASS_TRY(train_step(t, number * steps + s, s * t->recipe.batch * models, rows_at(t, s), dropout));
    GRASS_TRY(device->ops->fetch(device->state, t->loss, (size_t)all * sizeof *t->loss, t->host_loss));
    for (int64_t slot = 0; slot < count; slot++) {
        jobs[slot].loss = mean_loss(t, slot);
        if (!isfinite(jobs[slot].loss))
            return fs_fail(FS_EBACKEND,
                           "training does not converge: in epoch %" PRId64 " the loss is %g (rate %g, momentum %g)",
                           number + 1, jobs[slot].loss, t->recipe.rate, t->recipe.momentum);
    }
    return FS_OK;
}

fs_result trainer_run(trainer *t, train_job *jobs, int64_t count)
{
    mlp *net = &t->net;
    mlp_dropout dropout = {.rate = t->recipe.dropout};
    GRASS_REQUIRE(count >= 1 && count <= net->models, "%" PRId64 " models to train, this trainer takes 1 to %" PRId64,
                  count, net->models);
    for (int64_t slot = 0; slot < net->models; slot++) {
        dropout.seed[slot] = job_at(jobs, count, slot)->seed;
        mlp_init(&net->shape, dropout.seed[slot], t->host_theta);
        GRASS_TRY(mlp_set(net, slot, t->host_theta));
    }
    GRASS_TRY(net->device->ops->zero(net->device->state, t->v, (size_t)(net->models * net->parameters) * sizeof *t->v));
    for (int64_t e = 0; e < t->recipe.epochs; e++) GRASS_TRY(train_epoch(t, jobs, count, e, &dropout));
    for (int64_t slot = 0; slot < count; slot++) GRASS_TRY(mlp_get(net, slot, jobs[slot].theta));
    return FS_OK;
}

fs_result train_losses(mlp *net, const grass_images *images, double *work, double *loss)
{
    for (int64_t first = 0; first < images->count; first += net->batch) {
        const int64_t rows = images->count - first < net->batch ? images->count - first : net->batch;
        GRASS_TRY(mlp_forward(net, images->x + first * images->pixels, rows, NULL));
        GRASS_TRY(mlp_cross_entropy(net, rows, images->label + first, work + first));
    }
    return net->device->ops->fetch(net->device->state, work, (size_t)images->count * sizeof *loss, loss);
}
