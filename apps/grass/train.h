/* train.h - SGD with momentum on the mean cross-entropy, deterministic from a seed.
 *
 * Several models take their steps side by side where that is faster (ops.h).  A trainer always runs the same number of
 * them, of which some may be spare: a library chooses kernels by that number too, and a model's bits must not depend on
 * which others are trained. */
#ifndef FSI_APPS_GRASS_TRAIN_H
#define FSI_APPS_GRASS_TRAIN_H

#include "data.h"
#include "mlp.h"

/* v = momentum v + g, theta = theta - rate v, over `epochs` passes in batches; the last, smaller batch is kept.
 * An epoch's order is a bijection of its own, at (GRASS_TAG_ORDER, epoch) of the seed. */
typedef struct train_recipe {
    double rate, momentum, dropout;
    int64_t batch, epochs;
} train_recipe;
#define TRAIN_RECIPE_INIT \
    { \
        0.01, 0.9, 0.1, 64, 50 \
    }

/* A copy of host images in the memory of a device, and its release; one that is zero is a no-op. */
FS_NODISCARD fs_result train_copy_images(const grass_device *device, const grass_images *host, grass_images *copy);
void train_release_images(const grass_device *device, grass_images *copy);

typedef struct trainer {
    mlp net; /* net.models at a time */
    train_recipe recipe;
    const grass_images *images; /* in the device's memory */
    int64_t count;              /* images that each model is trained on */
    float *g, *v, *x;           /* of all models, in the device's memory: gradient, velocity, a batch of images, ... */
    uint8_t *label;
    int64_t *order; /* ... and of an epoch: its images, step by step and there model by model, ... */
    double *loss;   /* ... and their losses */
    int64_t *host_order;
    double *host_loss;
    float *host_theta; /* one model's */
} trainer;

/* The training of one model: it begins as mlp_init(seed) sets it and is trained on the images chosen[0 .. count).
 * theta, in host memory, and the mean loss over the last epoch, dropout on, are written. */
typedef struct train_job {
    const int64_t *chosen;
    uint64_t seed;
    float *theta;
    double loss;
} train_job;

/* models 0: as many at a time as suit the device.  The device and the images must live as long. */
FS_NODISCARD fs_result trainer_open(trainer *t, const grass_device *device, const mlp_shape *shape,
                                    const train_recipe *recipe, const grass_images *images, int64_t count,
                                    int64_t models);
void trainer_close(trainer *t);

/* Trains 1 to t->net.models models.  FS_EBACKEND: a loss is not finite; the message names the epoch. */
FS_NODISCARD fs_result trainer_run(trainer *t, train_job *jobs, int64_t count);

/* loss[i] = -log p_y of every image, p_y the probability of its label, dropout off.  images are in the device's
 * memory, loss in the host's; `work` holds as many numbers as images, in the device's memory.  The net has one
 * model. */
FS_NODISCARD fs_result train_losses(mlp *net, const grass_images *images, double *work, double *loss);

#endif
