/* mlp.c - forward, slopes at the logits, backward.
 *
 * Row-major matrices are the transposes of dense.h's column-major ones: a batch of activations, rows x width, is
 * width x rows there, and W, out x in, is in x out. */
#include "mlp.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "error.h"
#include "random.h"

/* Labels are bytes.  Rows and units have places in the address of a dropout's word. */
enum { MOST_CLASSES = 256, MOST_ROWS = 1 << 24, MOST_UNITS = 1 << 22 };

int64_t mlp_layer_at(const mlp_shape *shape, int layer)
{
    int64_t at = 0;
    for (int l = 0; l < layer; l++) at += (shape->width[l] + 1) * shape->width[l + 1];
    return at;
}
int64_t mlp_parameters(const mlp_shape *shape) { return mlp_layer_at(shape, shape->layers); }

/* making one ------------------------------------------------------------------------------------------------- */

static fs_result fill(mlp *net)
{
    const fs_host host = {fs_fail, net->ctx->allocator};
    const fs_dense *dense = net->ctx->backend->dense;
    int64_t floats = 0;
    FS_TRY(dense->open(&net->handle, net->ctx->state, &host, 1, 1, 1));
    for (int l = 1; l <= net->shape.layers; l++) floats += 2 * net->batch * net->shape.width[l];
    FS_TRY(dense->alloc(net->handle, (size_t)floats * sizeof(float), &net->memory));
    float *at = net->memory;
    for (int l = 1; l <= net->shape.layers; l++) {
        const int64_t each = net->batch * net->shape.width[l];
        net->activation[l] = at;
        net->delta[l] = at + each;
        at += 2 * each;
    }
    return FS_OK;
}

fs_result mlp_open(mlp *net, fs_context *ctx, const mlp_shape *shape, int64_t batch)
{
    memset(net, 0, sizeof *net);
    FS_REQUIRE(shape->layers >= 1 && shape->layers <= MLP_LAYERS && batch >= 1 && batch <= MOST_ROWS,
               "a perceptron of %d layers with batches of %" PRId64 ": it has 1 to %d layers, and batches of 1 to %d",
               shape->layers, batch, MLP_LAYERS, MOST_ROWS);
    for (int l = 0; l <= shape->layers; l++) {
        const int most = l < shape->layers ? MOST_UNITS : MOST_CLASSES;
        FS_REQUIRE(shape->width[l] >= 1 && shape->width[l] <= most,
                   "layer %d of a perceptron is %" PRId64 " wide; it can be 1 to %d", l, shape->width[l], most);
    }
    if (ctx->backend->place != FS_HOST)
        return fs_fail(FS_EUNSUPPORTED, "perceptrons are trained on a CPU context");
    net->shape = *shape;
    net->batch = batch;
    net->ctx = ctx;
    const fs_result result = fill(net);
    if (result != FS_OK) mlp_close(net);
    return result;
}

void mlp_close(mlp *net)
{
    if (net->handle) {
        const fs_dense *dense = net->ctx->backend->dense;
        if (net->memory) dense->release(net->handle, net->memory);
        dense->close(net->handle);
    }
    memset(net, 0, sizeof *net);
}

void mlp_init(const mlp_shape *shape, uint64_t seed, float *theta)
{
    for (int l = 0; l < shape->layers; l++) {
        const int64_t first = mlp_layer_at(shape, l), last = mlp_layer_at(shape, l + 1);
        const float bound = (float)(1.0 / sqrt((double)shape->width[l]));
        for (int64_t i = first; i < last; i++)
            theta[i] = bound * grass_uniform(fs_random_word(seed, GRASS_TAG_INIT, (uint64_t)i, 0, 0));
    }
}

/* forward ---------------------------------------------------------------------------------------------------- */

/* Words of four neighbouring units of a row share a quad. */
static fs_quad dropout_words(const mlp_dropout *dropout, int layer, int64_t i, int64_t unit)
{
    const uint64_t item = (uint64_t)layer << 44 | (uint64_t)i << 20 | (uint64_t)unit >> 2;
    return fs_random_quad(dropout->seed, GRASS_TAG_DROPOUT, item, dropout->step, 0);
}
static uint32_t dropout_limit(const mlp_dropout *dropout) { return (uint32_t)(dropout->rate * 0x1p32); }

int mlp_drops(const mlp_dropout *dropout, int layer, int64_t i, int64_t u)
{
    return fs_quad_word(dropout_words(dropout, layer, i, u), (uint64_t)u) < dropout_limit(dropout);
}

static void add_bias(float *a, int64_t rows, int64_t width, const float *bias)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t u = 0; u < width; u++) a[i * width + u] += bias[u];
}
static void relu(float *a, int64_t count)
{
    for (int64_t i = 0; i < count; i++) a[i] = a[i] > 0 ? a[i] : 0;
}
static void drop(float *a, int64_t rows, int64_t width, int layer, const mlp_dropout *dropout, float scale)
{
    const uint32_t limit = dropout_limit(dropout);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t u = 0; u < width; u += 4) {
            const fs_quad words = dropout_words(dropout, layer, i, u);
            for (int64_t c = u; c < width && c < u + 4; c++)
                a[i * width + c] = words.w[c - u] < limit ? 0 : scale * a[i * width + c];
        }
}

fs_result mlp_forward(mlp *net, const float *theta, const float *x, int64_t rows, const mlp_dropout *dropout)
{
    const fs_dense *dense = net->ctx->backend->dense;
    const int drops = dropout && dropout->rate > 0;
    net->input = x;
    net->kept_scale = drops ? (float)(1.0 / (1.0 - dropout->rate)) : 1;
    for (int l = 0; l < net->shape.layers; l++) {
        const int64_t in = net->shape.width[l], out = net->shape.width[l + 1];
        const float *W = theta + mlp_layer_at(&net->shape, l), *from = l ? net->activation[l] : x;
        float *to = net->activation[l + 1];
        FS_TRY(dense->gemm_f32(net->handle, 1, 0, out, rows, in, 1, W, in, from, in, 0, to, out));
        add_bias(to, rows, out, W + in * out);
        if (l + 1 == net->shape.layers) break;
        relu(to, rows * out);
        if (drops) drop(to, rows, out, l + 1, dropout, net->kept_scale);
    }
    return FS_OK;
}

/* slopes at the logits --------------------------------------------------------------------------------------- */

/* log sum of exp z_j over all j but `except` (-1: none); share[j] = exp z_j / that sum. */
static double log_sum(const float *z, int64_t classes, int64_t except, double *share)
{
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < classes; j++)
        if (j != except && !(z[j] <= top)) top = z[j]; /* a NaN stays */
    for (int64_t j = 0; j < classes; j++) sum += share[j] = j == except ? 0 : exp(z[j] - top);
    for (int64_t j = 0; j < classes; j++) share[j] /= sum;
    return top + log(sum);
}

void mlp_margin(mlp *net, int64_t rows, const uint8_t *label, double *f)
{
    const int64_t classes = net->shape.width[net->shape.layers];
    double share[MOST_CLASSES];
    for (int64_t i = 0; i < rows; i++) {
        const float *z = net->activation[net->shape.layers] + i * classes;
        float *slope = net->delta[net->shape.layers] + i * classes;
        f[i] = z[label[i]] - log_sum(z, classes, label[i], share);
        for (int64_t j = 0; j < classes; j++) slope[j] = j == label[i] ? 1.0f : (float)-share[j];
    }
}

void mlp_cross_entropy(mlp *net, int64_t rows, const uint8_t *label, double *loss)
{
    const int64_t classes = net->shape.width[net->shape.layers];
    double share[MOST_CLASSES];
    for (int64_t i = 0; i < rows; i++) {
        const float *z = net->activation[net->shape.layers] + i * classes;
        float *slope = net->delta[net->shape.layers] + i * classes;
        loss[i] = log_sum(z, classes, -1, share) - z[label[i]];
        for (int64_t j = 0; j < classes; j++) slope[j] = (float)((share[j] - (j == label[i])) / (double)rows);
    }
}

/* backward --------------------------------------------------------------------------------------------------- */

/* delta of all hidden layers from that of the logits.  An activation is positive exactly where ReLU and dropout have
 * let it pass, so it tells both. */
static fs_result backward(mlp *net, const float *theta, int64_t rows)
{
    const fs_dense *dense = net->ctx->backend->dense;
    for (int l = net->shape.layers - 1; l > 0; l--) {
        const int64_t in = net->shape.width[l], out = net->shape.width[l + 1];
        const float *W = theta + mlp_layer_at(&net->shape, l), *a = net->activation[l];
        float *delta = net->delta[l];
        FS_TRY(dense->gemm_f32(net->handle, 0, 0, in, rows, out, 1, W, in, net->delta[l + 1], out, 0, delta, in));
        for (int64_t i = 0; i < rows * in; i++) delta[i] = a[i] > 0 ? net->kept_scale * delta[i] : 0;
    }
    return FS_OK;
}

fs_result mlp_gradient_sum(mlp *net, const float *theta, int64_t rows, float *g)
{
    const fs_dense *dense = net->ctx->backend->dense;
    FS_TRY(backward(net, theta, rows));
    for (int l = 0; l < net->shape.layers; l++) {
        const int64_t in = net->shape.width[l], out = net->shape.width[l + 1];
        const float *a = l ? net->activation[l] : net->input, *delta = net->delta[l + 1];
        float *W = g + mlp_layer_at(&net->shape, l), *b = W + in * out;
        FS_TRY(dense->gemm_f32(net->handle, 0, 1, in, out, rows, 1, a, in, delta, out, 0, W, in));
        memset(b, 0, (size_t)out * sizeof *b);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t u = 0; u < out; u++) b[u] += delta[i * out + u];
    }
    return FS_OK;
}

/* One example's share: the outer product of its slopes and its activations. */
static void outer(const mlp *net, int64_t i, float *g)
{
    for (int l = 0; l < net->shape.layers; l++) {
        const int64_t in = net->shape.width[l], out = net->shape.width[l + 1];
        const float *a = (l ? net->activation[l] : net->input) + i * in, *delta = net->delta[l + 1] + i * out;
        float *W = g + mlp_layer_at(&net->shape, l);
        for (int64_t u = 0; u < out; u++)
            for (int64_t v = 0; v < in; v++) W[u * in + v] = delta[u] * a[v];
        memcpy(W + in * out, delta, (size_t)out * sizeof *delta);
    }
}

fs_result mlp_gradients(mlp *net, const float *theta, int64_t rows, float *G)
{
    const int64_t p = mlp_parameters(&net->shape);
    FS_TRY(backward(net, theta, rows));
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; i++) outer(net, i, G + i * p);
    return FS_OK;
}
