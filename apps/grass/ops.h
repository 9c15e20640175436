/* ops.h - the operations of perceptrons, as a table of functions over host or device memory.
 *
 * Everything is f32, packed, and holds several models of one shape side by side: a batch of activations is models x
 * rows x width, so that row r of all models * rows belongs to model r / rows.  Matrix products are column-major.  Calls
 * are queued on the context's stream; fetch, send, release and wait wait for it.  The arithmetic of one element is
 * defined here, once for every table; sums have a fixed order: the same bits from run to run.
 *
 * ops_cpu.c is the table of a CPU.  That of a GPU is a plugin of its own (ops_cuda.cu), which exports one symbol,
 * GRASS_OPS_ENTRY, and is refused when its abi differs from GRASS_OPS_ABI. */
#ifndef FSI_APPS_GRASS_OPS_H
#define FSI_APPS_GRASS_OPS_H

#include <math.h>

#include "def/rng.h"
#include "flashsketch.h"

#define GRASS_OPS_ABI 1
#define GRASS_OPS_ENTRY "grass_ops_entry"

enum { GRASS_MODELS_MOST = 16 }; /* models side by side, at most */

/* Units behind a layer that are dropped: those whose word, drawn at (seed of the model, tag, step), is below `limit`.
 * The others are scaled. */
typedef struct grass_dropout {
    uint32_t limit; /* 0: none */
    float scale;
    uint32_t tag, layer, step;
    uint64_t seed[GRASS_MODELS_MOST];
} grass_dropout;

/* The words of units 4 quad ... 4 quad + 3 of row i (its number within the model).  i < 2^24, quad < 2^20. */
FSI_DEF fsi_quad grass_dropout_words(const grass_dropout *d, uint64_t seed, int64_t i, int64_t quad)
{
    return fsi_random_quad(seed, d->tag, (uint64_t)d->layer << 44 | (uint64_t)i << 20 | (uint64_t)quad, d->step, 0);
}

/* Values at the logits z of one example: its margin, the log of p_y / (1 - p_y), or its cross-entropy -log p_y, whose
 * derivatives are divided by `rows`, those of a mean.  A margin is computed from the other classes alone, and is finite
 * also where p_y rounds to 1.  A NaN among the logits is one in the value. */
typedef enum grass_objective { GRASS_MARGIN, GRASS_CROSS_ENTROPY } grass_objective;

/* The value; delta gets its derivatives. */
FSI_DEF double grass_objective_at(grass_objective what, int64_t classes, const float *z, int64_t y, int64_t rows,
                                  float *delta)
{
    const int64_t except = what == GRASS_MARGIN ? y : -1;
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < classes; j++)
        if (j != except && !(z[j] <= top)) top = z[j];
    for (int64_t j = 0; j < classes; j++)
        if (j != except) sum += exp(z[j] - top);
    for (int64_t j = 0; j < classes; j++) {
        const double share = j == except ? 0 : exp(z[j] - top) / sum;
        delta[j] = what == GRASS_CROSS_ENTROPY ? (float)((share - (j == y)) / (double)rows)
                   : j == y                    ? 1.0f
                                               : (float)-share;
    }
    const double log_sum = top + log(sum);
    return what == GRASS_MARGIN ? z[y] - log_sum : log_sum - z[y];
}

/* fs_fail, which a plugin calls through this pointer. */
typedef fs_result grass_fail(fs_result code, const char *format, ...);

typedef struct grass_ops {
    int abi;
    fs_memory memory; /* where its memory is */
    int side_by_side; /* how many models are best trained together here, up to GRASS_MODELS_MOST */

    /* The state of a table for the backend, device and stream of ctx, which was created with these options. */
    fs_result (*open)(void **state, fs_context *ctx, const fs_context_options *options, grass_fail *fail);
    void (*close)(void *state);
    fs_result (*alloc)(void *state, size_t bytes, void **memory);
    void (*release)(void *state, void *memory);
    fs_result (*fetch)(void *state, const void *from, size_t bytes, void *host);
    fs_result (*send)(void *state, const void *host, size_t bytes, void *to);
    fs_result (*zero)(void *state, void *x, size_t bytes);
    fs_result (*wait)(void *state);

    /* C = op(A) op(B) for `count` models, C m x n, the sum over k; ta, tb: transposed?  Matrices of the next model begin
     * a_stride, b_stride and c_stride numbers after those of the model before.  Sizes are at most 2^31 - 1. */
    fs_result (*gemm)(void *state, int ta, int tb, int64_t m, int64_t n, int64_t k, const float *A, int64_t lda,
                      int64_t a_stride, const float *B, int64_t ldb, int64_t b_stride, float *C, int64_t ldc,
                      int64_t c_stride, int64_t count);
    /* Row r of `to` = row which[r] of x, and its label. */
    fs_result (*gather)(void *state, int64_t rows, int64_t width, const float *x, const uint8_t *label,
                        const int64_t *which, float *to, uint8_t *to_label);
    /* a += the bias of its model, `stride` numbers after that of the model before.  dropout NULL: no more; otherwise
     * a hidden layer: ReLU, then dropout. */
    fs_result (*activate)(void *state, int64_t models, int64_t rows, int64_t width, const float *bias, int64_t stride,
                          const grass_dropout *dropout, float *a);
    /* grass_objective_at of every row of all models. */
    fs_result (*objective)(void *state, grass_objective what, int64_t models, int64_t rows, int64_t classes,
                           const float *z, const uint8_t *label, float *delta, double *value);
    /* Back through ReLU and dropout: delta = scale delta where a is positive, and 0 elsewhere. */
    fs_result (*back)(void *state, int64_t count, float scale, const float *a, float *delta);
    /* The gradient of a bias: the sum of a model's rows of delta, `stride` numbers after that of the model before. */
    fs_result (*row_sums)(void *state, int64_t models, int64_t rows, int64_t width, const float *delta, float *sums,
                          int64_t stride);
    /* Row r of G, `ld` numbers after the row before, = the outer product of row r of delta and row r of a (out x in),
     * then row r of delta: a layer's share of an example's gradient. */
    fs_result (*outer)(void *state, int64_t rows, int64_t in, int64_t out, const float *a, const float *delta, float *G,
                       int64_t ld);
    /* SGD with momentum: v = momentum v + g, theta = theta - rate v. */
    fs_result (*step)(void *state, int64_t count, float rate, float momentum, const float *g, float *v, float *theta);
} grass_ops;

typedef const grass_ops *(*grass_ops_entry)(void);

/* The table of a CPU (ops_cpu.c).  Products are OpenBLAS's where the library finds one, otherwise plain loops. */
extern const grass_ops grass_cpu_ops;

/* Those loops: gemm of one model by `threads` threads.  Each sum is in the order of k. */
void grass_plain_gemm(int threads, int ta, int tb, int64_t m, int64_t n, int64_t k, const float *A, int64_t lda,
                      const float *B, int64_t ldb, float *C, int64_t ldc);

#endif
