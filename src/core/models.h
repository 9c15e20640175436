/* models.h - what perceptrons need beside products (dense.h), as a table of functions over a backend's memory.
 *
 * Everything is f32, packed, and holds several models of one shape side by side: a batch of activations is models x
 * rows x width, so that row r of all models * rows belongs to model r / rows.  Calls are queued on the context's
 * stream, as those of dense.h are.  What happens to one element is written here, once for every place; the places
 * differ in who does it.  Sums are made in a fixed order: the same bits from run to run. */
#ifndef FSI_CORE_MODELS_H
#define FSI_CORE_MODELS_H

#include <math.h>

#include "flashsketch.h"
#include "def/rng.h"

enum { FSI_MODELS_MOST = 16 }; /* models side by side, at most */

/* Units behind a layer that are dropped: those whose word, drawn at (seed of the model, tag, step), is below `limit`.
 * The others are scaled. */
typedef struct fsi_dropout {
    uint32_t limit; /* 0: none */
    float scale;
    uint32_t tag, layer, step;
    uint64_t seed[FSI_MODELS_MOST];
} fsi_dropout;

/* The words of units 4 quad ... 4 quad + 3 of row i (its number within the model).  i < 2^24, quad < 2^20. */
FSI_DEF fsi_quad fsi_dropout_words(const fsi_dropout *d, uint64_t seed, int64_t i, int64_t quad)
{
    return fsi_random_quad(seed, d->tag, (uint64_t)d->layer << 44 | (uint64_t)i << 20 | (uint64_t)quad, d->step, 0);
}

/* Values at the logits z of one example: its margin, the log of p_y / (1 - p_y), or its cross-entropy -log p_y, whose
 * slopes are divided by `rows`, those of a mean.  A margin is made from the other classes alone, and is finite however
 * sure the model is.  A NaN among the logits is one in the value. */
typedef enum fsi_objective { FSI_MARGIN, FSI_CROSS_ENTROPY } fsi_objective;

FSI_DEF double fsi_objective_at(fsi_objective what, int64_t classes, const float *z, int64_t y, int64_t rows,
                                float *slope)
{
    const int64_t except = what == FSI_MARGIN ? y : -1;
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < classes; j++)
        if (j != except && !(z[j] <= top)) top = z[j];
    for (int64_t j = 0; j < classes; j++)
        if (j != except) sum += exp(z[j] - top);
    for (int64_t j = 0; j < classes; j++) {
        const double share = j == except ? 0 : exp(z[j] - top) / sum;
        slope[j] = what == FSI_CROSS_ENTROPY ? (float)((share - (j == y)) / (double)rows)
                   : j == y                  ? 1.0f
                                             : (float)-share;
    }
    const double log_sum = top + log(sum);
    return what == FSI_MARGIN ? z[y] - log_sum : log_sum - z[y];
}

typedef struct fsi_models {
    int together; /* how many models are best trained side by side here, up to FSI_MODELS_MOST */
    /* Row r of `to` = row which[r] of x, and its label. */
    fs_result (*gather)(void *state, int64_t rows, int64_t width, const float *x, const uint8_t *label,
                        const int64_t *which, float *to, uint8_t *to_label);
    /* a += the bias of its model, `apart` numbers after that of the model before.  dropout NULL: no more; otherwise
     * a hidden layer: ReLU, then dropout. */
    fs_result (*activate)(void *state, int64_t models, int64_t rows, int64_t width, const float *bias, int64_t apart,
                          const fsi_dropout *dropout, float *a);
    /* fsi_objective_at of every row of all models. */
    fs_result (*objective)(void *state, fsi_objective what, int64_t models, int64_t rows, int64_t classes,
                           const float *z, const uint8_t *label, float *slope, double *value);
    /* Back through ReLU and dropout: delta = scale delta where a is positive, and 0 elsewhere. */
    fs_result (*back)(void *state, int64_t count, float scale, const float *a, float *delta);
    /* The bias' slope: the sum of a model's rows of delta, `apart` numbers after that of the model before. */
    fs_result (*row_sums)(void *state, int64_t models, int64_t rows, int64_t width, const float *delta, float *sums,
                          int64_t apart);
    /* Row r of G, `ld` numbers after the row before, = the outer product of row r of delta and row r of a (out x in),
     * then row r of delta: a layer's part of an example's gradient. */
    fs_result (*outer)(void *state, int64_t rows, int64_t in, int64_t out, const float *a, const float *delta, float *G,
                       int64_t ld);
    /* SGD with momentum: v = momentum v + g, theta = theta - rate v. */
    fs_result (*step)(void *state, int64_t count, float rate, float momentum, const float *g, float *v, float *theta);
} fsi_models;

#endif
