/* flashsketch_attribution.h - data attribution: how much each training example contributed to a model's answer, by
 * sketched gradients.
 *
 * The method is TRAK's (Park et al., 2023) with the mask and the sketch of GraSS (Hu et al., 2025).  An example's
 * feature is phi = scale S g[mask], g its gradient; Phi (N x k) holds those of the training examples; the score of
 * training example i for a query is phi (Phi'Phi + damping I)^-1 Phi_i' times a weight of its own.  Gradients are
 * passed in batches and never kept:
 *
 *     fs_attribution_options o = FS_ATTRIBUTION_INIT;   o.examples = N;  o.parameters = counts;  o.parts = 6;
 *     fs_spec spec = FS_SPEC_INIT;   spec.k = 4096;         o.mask = 4 * 4096;  o.sketch = &spec;
 *     fs_attribution *g;  fs_attribution_create(&g, ctx, &o);
 *     for each batch:  fs_attribution_add(g, first, gradients);      a matrix for each part: count x examples of the batch
 *     fs_attribution_factor(g, damping);
 *     fs_attribution_project(g, gradients_of_queries, &phi);
 *     fs_attribution_scores(g, &phi, weights, 1.0, 0.0, &scores);    queries x N
 *     fs_attribution_top(&scores, 0, 10, 0, examples, values);       the most helpful ones for query 0
 *
 * The gradient of a linear layer need not be formed: it is an outer product, and features are computed from its two
 * factors (fs_attribution_add_layers), which have a number for each neuron instead of each weight.
 *
 * A model is one object; for several (an ensemble of checkpoints) create one object after the other, with different
 * seeds, and add their scores: alpha = 1 / models, beta = 1.
 *
 * Any context (CPU or CUDA) is accepted.  With a mask, gradients are in ctx's memory, as fs_apply_rows requires;
 * without one a CUDA context accepts host memory too.  An fs_attribution is for one thread at a time and must be
 * destroyed before its context. */
#ifndef FLASHSKETCH_ATTRIBUTION_H
#define FLASHSKETCH_ATTRIBUTION_H

#include "flashsketch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* features -------------------------------------------------------------------------------------------------- */

/* Options of an attribution.  Start from FS_ATTRIBUTION_INIT. */
typedef struct fs_attribution_options {
    size_t size;               /* sizeof(fs_attribution_options): set by FS_ATTRIBUTION_INIT */
    int64_t examples;          /* N, training examples */
    int parts;                 /* tensors of a gradient, at least 1 */
    const int64_t *parameters; /* elements of each; their order is that of the coordinates */
    int64_t mask;              /* coordinates that are kept, drawn at random from sketch->seed; 0: all of them */
    int64_t run;               /* the length of the runs of neighbours that a mask keeps, which begin at multiples of
                                * `run`; 0: 1.  A GPU's memory delivers eight floats at once */
    double scale;              /* of the features; 0: 1 / sqrt(all parameters) */
    const fs_spec *sketch;     /* k, seed, family ...; d is the mask, or all parameters: leave it 0; shuffle 0 is groups
                                * here, with interleave 1 where that is 0 too.  Copied by fs_attribution_create */
} fs_attribution_options;
#define FS_ATTRIBUTION_INIT \
    { \
        sizeof(fs_attribution_options), 0, 0, NULL, 0, 0, 0.0, NULL \
    }

/* The features of a model's training examples, and the factor that scores are computed with. */
typedef struct fs_attribution fs_attribution;

/* Allocates N x k features in f32 and two n x n matrices in f64, n the smaller of N and k, in ctx's memory; later calls
 * allocate only scratch of ctx and, in the first call with layers, the list described below.  FS_EINVAL: an option is
 * wrong.  FS_EBACKEND: no linear algebra (OpenBLAS; cuBLAS and cuSOLVER).  FS_ENOMEM. */
FS_API FS_NODISCARD fs_result fs_attribution_create(fs_attribution **out, fs_context *ctx,
                                                    const fs_attribution_options *options);

/* Frees it; NULL is a no-op. */
FS_API void fs_attribution_destroy(fs_attribution *g);

/* The coordinates of the mask, ascending, counted over all parts, into coordinates[0 ... mask); none without a mask. */
FS_API FS_NODISCARD fs_result fs_attribution_mask(const fs_attribution *g, int64_t *coordinates);

/* phi = scale S g[mask] for the examples of a batch: row i of phi, a view of n x k in f32, is that of column i of the
 * gradients, `parts` matrices of parameters[part] x n (fs_batch_major) in f32, f16 or bf16, any layout. */
FS_API FS_NODISCARD fs_result fs_attribution_project(fs_attribution *g, const fs_matrix *gradients,
                                                     const fs_matrix *phi);

/* The features of training examples first, first + 1, ...: as many as the gradients have columns, in any order of
 * batches; examples that were added before are replaced.  FS_EINVAL: a gradient is not finite in a coordinate that S
 * reads; the message names the first example, and the examples of this batch count as not added. */
FS_API FS_NODISCARD fs_result fs_attribution_add(fs_attribution *g, int64_t first, const fs_matrix *gradients);

/* A part of a gradient as the factors of a linear layer y = W x + b.  An example passes the layer at `tokens` positions
 * t; the gradient of W is the sum over them of output_gradients(t) inputs(t)', that of b the sum of
 * output_gradients(t).  The struct is frozen: arrays of it are passed.
 *
 * output_gradients: d objective / d y, out x (n tokens) for n examples, the tokens of an example being neighbours: a
 * tensor of n x tokens x out is fs_batch_major(data, n tokens, out).  inputs: x, in x (n tokens), alike; the part is a
 * weight of out x in, W(u, v) being its coordinate u in + v.  inputs.data NULL: the part is a bias of `out` parameters,
 * or, with one token, any other tensor, whose gradients these then are.  f32, f16 or bf16, any layout, in ctx's memory. */
typedef struct fs_attribution_layer {
    fs_matrix output_gradients;
    fs_matrix inputs;
    int64_t tokens; /* at least 1 */
} fs_attribution_layer;

/* fs_attribution_project and fs_attribution_add of `parts` layers, in the order of options.parameters, without forming
 * their gradients: the features are the same up to rounding, and exactly on integers.  An example with fewer tokens
 * than the others has output gradients of 0 at those that it lacks.
 *
 * Parts that follow each other with the same number of tokens are one fs_apply_products, and a matrix that several of
 * them name, as a weight and its bias do the output gradients, is one of its factors; a tensor of more than k
 * parameters whose gradients are given goes through fs_apply, or fs_apply_rows with a mask.
 *
 * The first call allocates a list of 8 bytes for each coordinate that is sketched, in ctx's memory, and some 200 bytes
 * for each part on the host; on a GPU the list is built from temporary copies on the host.  A later call with other
 * widths, or in which other matrices coincide, rebuilds it.
 *
 * FS_EINVAL: widths do not make parameters[part], numbers of examples or tokens do not fit, or a gradient is not
 * finite, as for fs_attribution_add. */
FS_API FS_NODISCARD fs_result fs_attribution_project_layers(fs_attribution *g, const fs_attribution_layer *layers,
                                                            const fs_matrix *phi);
FS_API FS_NODISCARD fs_result fs_attribution_add_layers(fs_attribution *g, int64_t first,
                                                        const fs_attribution_layer *layers);

/* A view of the N x k features, packed rows, in ctx's memory: to be stored in a file, or filled from one and then
 * declared by fs_attribution_restore, which adds them as fs_attribution_add does. */
FS_API FS_NODISCARD fs_result fs_attribution_features(fs_attribution *g, fs_matrix *Phi);
FS_API FS_NODISCARD fs_result fs_attribution_restore(fs_attribution *g, int64_t first, int64_t count);

/* Which examples have been added: added[i] is 1 if example i has, otherwise 0, for all N of them. */
FS_API FS_NODISCARD fs_result fs_attribution_added(const fs_attribution *g, uint8_t *added);

/* scores ---------------------------------------------------------------------------------------------------- */

/* K = Phi'Phi + damping I, or Phi Phi' + damping I where there are fewer examples than features, which gives the same
 * scores; factored by Cholesky in f64.  The product is computed by the first call after examples were added; another
 * damping is another call.  FS_EINVAL: damping is not positive, an example is missing, or K is singular in f64 at this
 * damping; the message names the reason. */
FS_API FS_NODISCARD fs_result fs_attribution_factor(fs_attribution *g, double damping);

/* scores = beta scores + alpha phi K^-1 Phi' diag(weights): queries x N, in host memory, of any type and layout;
 * beta = 0 does not read scores.  phi: queries x k in ctx's memory, of any type.  weights: N of them, NULL: 1. */
FS_API FS_NODISCARD fs_result fs_attribution_scores(fs_attribution *g, const fs_matrix *phi, const double *weights,
                                                    double alpha, double beta, const fs_matrix *scores);

/* The m highest scores of a row, descending, or (lowest) the m lowest, ascending; of equal ones the earlier example
 * first.  values may be NULL.  m is at most scores.cols. */
FS_API FS_NODISCARD fs_result fs_attribution_top(const fs_matrix *scores, int64_t row, int64_t m, int lowest,
                                                 int64_t *examples, double *values);

#ifdef __cplusplus
}
#endif

#endif
