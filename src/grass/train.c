/* train.c - epochs, batches, steps. */
#include "train.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "random.h"

/* What a training run holds. */
typedef struct run {
    mlp *net;
    const train_recipe *recipe;
    const grass_images *images;
    float *g, *v, *x;  /* gradient, velocity, a batch of images */
    uint8_t *label;
    double *loss;
} run;

static fs_result step(const run *r, uint64_t seed, int64_t step_number, int64_t rows, float *theta, double *sum)
{
    const int64_t p = mlp_parameters(&r->net->shape);
    const mlp_dropout dropout = {r->recipe->dropout, seed, (uint32_t)step_number};
    const float rate = (float)r->recipe->rate, momentum = (float)r->recipe->momentum;
    FS_TRY(mlp_forward(r->net, theta, r->x, rows, &dropout));
    mlp_cross_entropy(r->net, rows, r->label, r->loss);
    FS_TRY(mlp_gradient_sum(r->net, theta, rows, r->g));
    for (int64_t i = 0; i < p; i++) {
        r->v[i] = momentum * r->v[i] + r->g[i];
        theta[i] -= rate * r->v[i];
    }
    for (int64_t i = 0; i < rows; i++) *sum += r->loss[i];
    return FS_OK;
}

static fs_result epoch(const run *r, const int64_t *chosen, int64_t count, uint64_t seed, int64_t number, float *theta,
                       double *loss)
{
    const int64_t pixels = r->images->pixels, batch = r->recipe->batch, steps = (count - 1) / batch + 1;
    const fs_bijection P = fs_bijection_make(seed, GRASS_TAG_ORDER, (uint32_t)number, (uint64_t)count);
    double sum = 0;
    for (int64_t s = 0; s < steps; s++) {
        const int64_t rows = count - s * batch < batch ? count - s * batch : batch;
        for (int64_t i = 0; i < rows; i++) {
            const int64_t image = chosen[fs_permute(&P, (uint64_t)(s * batch + i))];
            memcpy(r->x + i * pixels, r->images->x + image * pixels, (size_t)pixels * sizeof *r->x);
            r->label[i] = r->images->label[image];
        }
        FS_TRY(step(r, seed, number * steps + s, rows, theta, &sum));
    }
    *loss = sum / (double)count;
    if (isfinite(*loss)) return FS_OK;
    return fs_fail(FS_EBACKEND,
                   "training does not converge: in epoch %" PRId64 " the loss is %g (rate %g, momentum %g)", number + 1,
                   *loss, r->recipe->rate, r->recipe->momentum);
}

fs_result train_model(mlp *net, const train_recipe *recipe, const grass_images *images, const int64_t *chosen,
                      int64_t count, uint64_t seed, float *theta, double *loss)
{
    const int64_t p = mlp_parameters(&net->shape), batch = recipe->batch;
    FS_REQUIRE(count >= 1 && batch >= 1 && batch <= net->batch && images->pixels == net->shape.width[0],
               "training on %" PRId64 " images of %" PRId64 " pixels in batches of %" PRId64
               ", by a perceptron of %" PRId64 " inputs and batches of at most %" PRId64,
               count, images->pixels, batch, net->shape.width[0], net->batch);
    run r = {net, recipe, images, malloc((size_t)p * sizeof(float)), calloc((size_t)p, sizeof(float)),
             malloc((size_t)(batch * images->pixels) * sizeof(float)), malloc((size_t)batch),
             malloc((size_t)batch * sizeof(double))};
    double last = 0;
    fs_result result = FS_OK;
    if (!r.g || !r.v || !r.x || !r.label || !r.loss)
        result = fs_fail(FS_ENOMEM, "there is no memory to train %" PRId64 " parameters", p);
    else
        mlp_init(&net->shape, seed, theta);
    for (int64_t e = 0; e < recipe->epochs && result == FS_OK; e++)
        result = epoch(&r, chosen, count, seed, e, theta, &last);
    if (loss) *loss = last;
    free(r.g);
    free(r.v);
    free(r.x);
    free(r.label);
    free(r.loss);
    return result;
}

fs_result train_losses(mlp *net, const float *theta, const grass_images *images, double *loss)
{
    for (int64_t first = 0; first < images->count; first += net->batch) {
        const int64_t rows = images->count - first < net->batch ? images->count - first : net->batch;
        FS_TRY(mlp_forward(net, theta, images->x + first * images->pixels, rows, NULL));
        mlp_cross_entropy(net, rows, images->label + first, loss + first);
    }
    return FS_OK;
}
