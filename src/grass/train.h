/* train.h - SGD with momentum on the mean cross-entropy, deterministic from a seed. */
#ifndef FS_GRASS_TRAIN_H
#define FS_GRASS_TRAIN_H

#include "data.h"
#include "mlp.h"

/* v = momentum v + g, theta = theta - rate v, over `epochs` passes in batches; the last, smaller batch is kept.
 * An epoch's order is a bijection of its own, at (GRASS_TAG_ORDER, epoch) of the seed. */
typedef struct train_recipe {
    double rate, momentum, dropout;
    int64_t batch, epochs;
} train_recipe;
#define TRAIN_RECIPE_INIT { 0.01, 0.9, 0.1, 64, 50 }

/* Trains theta, which mlp_init of the same seed begins, on the images chosen[0 .. count).  *loss: the mean over the
 * last epoch, dropout on; NULL: not wanted.  FS_EBACKEND: the loss is no number any more; the sentence says when. */
FS_CHECK fs_result train_model(mlp *net, const train_recipe *recipe, const grass_images *images, const int64_t *chosen,
                               int64_t count, uint64_t seed, float *theta, double *loss);

/* loss[i] = -log p_y of every image, p_y the probability of its label, dropout off. */
FS_CHECK fs_result train_losses(mlp *net, const float *theta, const grass_images *images, double *loss);

#endif
