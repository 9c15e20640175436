/* mlp.h - multilayer perceptrons with ReLU: a batch forward, and gradients backward, summed or one for each example.
 *
 * Parameters are one array theta of floats, layer by layer W (out x in, row-major), then b (out).  A net holds theta
 * and the memory of a batch, for one model or for several of a shape that take their steps side by side.  Arguments and
 * results are in the memory of the net's device, for all its models one after the other, except for mlp_set and
 * mlp_get; the arithmetic is that of the device's operations (ops.h).  For a batch x (models x rows x width[0]):
 *
 *     mlp_forward(net, x, rows, dropout);             activations of all layers, logits last
 *     mlp_margin(net, rows, label, f);                or mlp_cross_entropy: values, and their derivatives there
 *     mlp_layers(net, rows, layers);                  the factors of each row's gradient; or mlp_gradients, all of them
 *                                                     written out, or mlp_gradient_sum, their sum */
#ifndef FSI_APPS_GRASS_MLP_H
#define FSI_APPS_GRASS_MLP_H

#include "device.h"
#include "flashsketch_attribution.h"

enum { MLP_LAYERS = 8, MLP_MODELS = GRASS_MODELS_MOST };

/* Layer l maps width[l] values to width[l + 1]. */
typedef struct mlp_shape {
    int layers;
    int64_t width[MLP_LAYERS + 1];
} mlp_shape;

/* Parameters of a shape, and where those of layer l begin. */
int64_t mlp_parameters(const mlp_shape *shape);
int64_t mlp_layer_at(const mlp_shape *shape, int layer);

typedef struct mlp {
    mlp_shape shape;
    int64_t models, parameters; /* of one model */
    int64_t batch;              /* rows of a model at a time, at most */
    const grass_device *device;
    float *theta;                      /* models x parameters */
    const float *input;                /* of the last mlp_forward */
    float *activation[MLP_LAYERS + 1]; /* of layer l at [l]: models x rows x width[l]; [0] is not used */
    float *delta[MLP_LAYERS + 1];      /* derivatives there: output gradients */
    float kept_scale;                  /* of the last mlp_forward: 1 / (1 - rate) */
} mlp;

/* Drops a unit behind a hidden layer with probability `rate` and scales the others by 1 / (1 - rate).  The dropped
 * units of a model are drawn at (seed, step), with a seed of its own. */
typedef struct mlp_dropout {
    double rate;
    uint32_t step;
    uint64_t seed[MLP_MODELS];
} mlp_dropout;

/* Whether unit u of the activations at [layer] of row i of a model is dropped. */
int mlp_drops(const mlp_dropout *dropout, int64_t model, int layer, int64_t i, int64_t u);

/* Creates a net of `models` models, up to MLP_MODELS; the device must outlive it.  FS_EINVAL: an invalid shape.
 * FS_ENOMEM. */
FS_NODISCARD fs_result mlp_open(mlp *net, const grass_device *device, const mlp_shape *shape, int64_t batch,
                                int64_t models);
void mlp_close(mlp *net);

/* theta as PyTorch's nn.Linear begins, in host memory: W and b uniform on (-1, 1) / sqrt(in). */
void mlp_init(const mlp_shape *shape, uint64_t seed, float *theta);

/* Parameters of a model from host memory, and into it. */
FS_NODISCARD fs_result mlp_set(mlp *net, int64_t model, const float *theta);
FS_NODISCARD fs_result mlp_get(mlp *net, int64_t model, float *theta);

/* x must stay until the gradients are taken.  dropout NULL: none. */
FS_NODISCARD fs_result mlp_forward(mlp *net, const float *x, int64_t rows, const mlp_dropout *dropout);

/* f[i] = z_y - log sum over j != y of exp z_j: the logit of the probability p_y of the right class.  Derivatives
 * are 1 at y and -p_j / (1 - p_y) elsewhere, computed from the other classes alone: finite also where p_y rounds to 1. */
FS_NODISCARD fs_result mlp_margin(mlp *net, int64_t rows, const uint8_t *label, double *f);

/* loss[i] = -log p_y; derivatives are those of the mean over the rows of a model. */
FS_NODISCARD fs_result mlp_cross_entropy(mlp *net, int64_t rows, const uint8_t *label, double *loss);

/* g (models x parameters) = the sums over the rows of their gradients. */
FS_NODISCARD fs_result mlp_gradient_sum(mlp *net, int64_t rows, float *g);

/* The gradients of all rows as layers[2 l], W of layer l, and layers[2 l + 1], its b: views of the net's memory and of
 * x, until the next mlp_forward. */
FS_NODISCARD fs_result mlp_layers(mlp *net, int64_t rows, fs_attribution_layer *layers);

/* Row i of G = the gradient of row i; rows begin ld >= parameters numbers apart. */
FS_NODISCARD fs_result mlp_gradients(mlp *net, int64_t rows, float *G, int64_t ld);

#endif
