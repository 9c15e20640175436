/* mlp.c - forward, derivatives at the logits, backward.
 *
 * Row-major matrices are the transposes of gemm's column-major ones: a batch of activations, rows x width, is
 * width x rows there, and W, out x in, is in x out. */
#include "mlp.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "random.h"

/* Labels are bytes.  Rows and units are numbers in the address of a dropout's word. */
enum { MOST_CLASSES = 256, MOST_ROWS = 1 << 24, MOST_UNITS = 1 << 22 };

int64_t mlp_layer_at(const mlp_shape *shape, int layer)
{
    int64_t at = 0;
    for (int l = 0; l < layer; l++) at += (shape->width[l] + 1) * shape->width[l + 1];
    return at;
}
int64_t mlp_parameters(const mlp_shape *shape) { return mlp_layer_at(shape, shape->layers); }

/* Calls an operation of the net's device, and returns where it fails: OPS(net, back, ...). */
#define OPS(net, function, ...) GRASS_TRY((net)->device->ops->function((net)->device->state, __VA_ARGS__))

/* opening ---------------------------------------------------------------------------------------------------- */

static fs_result mlp_allocate(mlp *net)
{
    int64_t floats = net->models * net->parameters;
    void *memory;
    for (int l = 1; l <= net->shape.layers; l++) floats += 2 * net->models * net->batch * net->shape.width[l];
    OPS(net, alloc, (size_t)floats * sizeof(float), &memory);
    float *at = net->theta = memory;
    at += net->models * net->parameters;
    for (int l = 1; l <= net->shape.layers; l++) {
        const int64_t each = net->models * net->batch * net->shape.width[l];
        net->activation[l] = at;
        net->delta[l] = at + each;
        at += 2 * each;
    }
    return FS_OK;
}

fs_result mlp_open(mlp *net, const grass_device *device, const mlp_shape *shape, int64_t batch, int64_t models)
{
    memset(net, 0, sizeof *net);
    GRASS_REQUIRE(shape->layers >= 1 && shape->layers <= MLP_LAYERS && batch >= 1 && batch <= MOST_ROWS,
                  "a perceptron of %d layers with batches of %" PRId64
                  ": it has 1 to %d layers, and batches of 1 to %d",
                  shape->layers, batch, MLP_LAYERS, MOST_ROWS);
    GRASS_REQUIRE(models >= 1 && models <= MLP_MODELS, "%" PRId64 " models side by side: it can be 1 to %d", models,
                  MLP_MODELS);
    for (int l = 0; l <= shape->layers; l++) {
        const int most = l < shape->layers ? MOST_UNITS : MOST_CLASSES;
        GRASS_REQUIRE(shape->width[l] >= 1 && shape->width[l] <= most,
                      "layer %d of a perceptron is %" PRId64 " wide; it can be 1 to %d", l, shape->width[l], most);
    }
    net->shape = *shape;
    net->parameters = mlp_parameters(shape);
    net->batch = batch;
    net->models = models;
    net->device = device;
    return mlp_allocate(net);
}

void mlp_close(mlp *net)
{
    if (net->theta) net->device->ops->release(net->device->state, net->theta);
    memset(net, 0, sizeof *net);
}

void mlp_init(const mlp_shape *shape, uint64_t seed, float *theta)
{
    for (int l = 0; l < shape->layers; l++) {
        const int64_t first = mlp_layer_at(shape, l), last = mlp_layer_at(shape, l + 1);
        const float bound = (float)(1.0 / sqrt((double)shape->width[l]));
        fsi_quad words;
        for (int64_t i = first; i < last; i++) {
            if (i == first || i % 4 == 0) words = fsi_random_quad(seed, GRASS_TAG_INIT, (uint64_t)i >> 2, 0, 0);
            theta[i] = bound * grass_uniform(fsi_quad_word(words, (uint64_t)i));
        }
    }
}

fs_result mlp_set(mlp *net, int64_t model, const float *theta)
{
    const size_t bytes = (size_t)net->parameters * sizeof *theta;
    return net->device->ops->send(net->device->state, theta, bytes, net->theta + model * net->parameters);
}
fs_result mlp_get(mlp *net, int64_t model, float *theta)
{
    const size_t bytes = (size_t)net->parameters * sizeof *theta;
    return net->device->ops->fetch(net->device->state, net->theta + model * net->parameters, bytes, theta);
}

/* forward ---------------------------------------------------------------------------------------------------- */

/* Dropout behind a layer, as ops.h has it; dropout NULL: none. */
static grass_dropout dropout_at(const mlp_dropout *dropout, int layer)
{
    grass_dropout d = {.scale = 1, .tag = GRASS_TAG_DROPOUT, .layer = (uint32_t)layer};
    if (!dropout || !(dropout->rate > 0)) return d;
    d.limit = (uint32_t)(dropout->rate * 0x1p32);
    d.scale = (float)(1.0 / (1.0 - dropout->rate));
    d.step = dropout->step;
    memcpy(d.seed, dropout->seed, sizeof d.seed);
    return d;
}

int mlp_drops(const mlp_dropout *dropout, int64_t model, int layer, int64_t i, int64_t u)
{
    const grass_dropout d = dropout_at(dropout, layer);
    return fsi_quad_word(grass_dropout_words(&d, d.seed[model], i, u >> 2), (uint64_t)u) < d.limit;
}

/* A layer's W is at theta + mlp_layer_at; its bias follows. */
fs_result mlp_forward(mlp *net, const float *x, int64_t rows, const mlp_dropout *dropout)
{
    const int64_t models = net->models, p = net->parameters;
    net->input = x;
    for (int l = 0; l < net->shape.layers; l++) {
        const int64_t in = net->shape.width[l], out = net->shape.width[l + 1];
        const float *W = net->theta + mlp_layer_at(&net->shape, l), *from = l ? net->activation[l] : x;
        const int hidden = l + 1 < net->shape.layers;
        const grass_dropout behind = dropout_at(dropout, l + 1);
        float *to = net->activation[l + 1];
        OPS(net, gemm, 1, 0, out, rows, in, W, in, p, from, in, rows * in, to, out, rows * out, models);
        OPS(net, activate, models, rows, out, W + in * out, p, hidden ? &behind : NULL, to);
        net->kept_scale = behind.scale;
    }
    return FS_OK;
}

/* derivatives at the logits ------------------------------------------------------------------------------------ */

static fs_result objective(mlp *net, grass_objective what, int64_t rows, const uint8_t *label, double *value)
{
    const int last = net->shape.layers;
    OPS(net, objective, what, net->models, rows, net->shape.width[last], net->activation[last], label, net->delta[last],
        value);
    return FS_OK;
}
fs_result mlp_margin(mlp *net, int64_t rows, const uint8_t *label, double *f)
{
    return objective(net, GRASS_MARGIN, rows, label, f);
}
fs_result mlp_cross_entropy(mlp *net, int64_t rows, const uint8_t *label, double *loss)
{
    return objective(net, GRASS_CROSS_ENTROPY, rows, label, loss);
}

/* backward --------------------------------------------------------------------------------------------------- */

/* delta of all hidden layers from that of the logits.  An activation is positive exactly where ReLU and dropout have
 * let it pass, so its sign is enough for both. */
static fs_result backward(mlp *net, int64_t rows)
{
    const int64_t models = net->models;
    for (int l = net->shape.layers - 1; l > 0; l--) {
        const int64_t in = net->shape.width[l], out = net->shape.width[l + 1];
        const float *W = net->theta + mlp_layer_at(&net->shape, l);
        OPS(net, gemm, 0, 0, in, rows, out, W, in, net->parameters, net->delta[l + 1], out, rows * out, net->delta[l],
            in, rows * in, models);
        OPS(net, back, models * rows * in, net->kept_scale, net->activation[l], net->delta[l]);
    }
    return FS_OK;
}

fs_result mlp_gradient_sum(mlp *net, int64_t rows, float *g)
{
    const int64_t models = net->models, p = net->parameters;
    GRASS_TRY(backward(net, rows));
    for (int l = 0; l < net->shape.layers; l++) {
        const int64_t in = net->shape.width[l], out = net->shape.width[l + 1];
        const float *a = l ? net->activation[l] : net->input, *delta = net->delta[l + 1];
        float *W = g + mlp_layer_at(&net->shape, l);
        OPS(net, gemm, 0, 1, in, out, rows, a, in, rows * in, delta, out, rows * out, W, in, p, models);
        OPS(net, row_sums, models, rows, out, delta, W + in * out, p);
    }
    return FS_OK;
}

/* Rows of a batch as columns of a matrix. */
static fs_matrix columns(const mlp *net, const float *x, int64_t rows, int64_t width)
{
    fs_matrix m = fs_batch_major((void *)x, net->models * rows, width, FS_F32);
    m.memory = net->device->ops->memory;
    return m;
}
fs_result mlp_layers(mlp *net, int64_t rows, fs_attribution_layer *layers)
{
    GRASS_TRY(backward(net, rows));
    for (int l = 0; l < net->shape.layers; l++) {
        const fs_matrix outputs = columns(net, net->delta[l + 1], rows, net->shape.width[l + 1]);
        const float *a = l ? net->activation[l] : net->input;
        layers[2 * l] = (fs_attribution_layer){outputs, columns(net, a, rows, net->shape.width[l]), 1};
        layers[2 * l + 1] = (fs_attribution_layer){outputs, {.data = NULL}, 1};
    }
    return FS_OK;
}

fs_result mlp_gradients(mlp *net, int64_t rows, float *G, int64_t ld)
{
    GRASS_TRY(backward(net, rows));
    for (int l = 0; l < net->shape.layers; l++)
        OPS(net, outer, net->models * rows, net->shape.width[l], net->shape.width[l + 1],
            l ? net->activation[l] : net->input, net->delta[l + 1], G + mlp_layer_at(&net->shape, l), ld);
    return FS_OK;
}
