/* attribution.h - the object of flashsketch_attribution.h: features (features.c, and layers.c for layers) and scores of
 * them (scores.c).
 *
 * Everything is a sequence of calls of fs_apply and dense.h, the same in every memory space.  Phi is widened to f64 a
 * panel at a time: `panel` examples, k x panel, column-major, a column for each; or, where there are fewer examples
 * than features, `panel` features, N x panel.  Then K is the N x N matrix Phi Phi' + damping I, because
 * (Phi'Phi + damping I)^-1 Phi' = Phi' (Phi Phi' + damping I)^-1. */
#ifndef FSI_ATTRIBUTION_ATTRIBUTION_H
#define FSI_ATTRIBUTION_ATTRIBUTION_H

#include "core/context.h"
#include "base/error.h"
#include "flashsketch_attribution.h"

/* Where a part's factors are among the rows of all factors of its fs_apply_products: output gradient u at output_gradients + u, input v at
 * inputs + v; width, how many inputs there are: 0 for none, -1 where nothing is known yet. */
typedef struct fsi_attribution_rows {
    int64_t output_gradients, inputs, width;
} fsi_attribution_rows;

struct fs_attribution {
    fs_context *ctx;
    const fsi_dense *dense;
    void *handle;
    fs_sketch *S;
    int64_t N, k, mask, panel;
    int64_t order; /* of K: the smaller of N and k */
    double scale;
    int parts;
    int64_t *parameters;   /* of each part, ... */
    int64_t *begin;        /* ... the row of S at which it begins (parts + 1 of them), ... */
    int64_t *index;        /* ... and the mask, counted from the start of its part; NULL: none */
    int64_t *list;         /* the mask in the backend's memory; NULL: index is */
    uint8_t *there;        /* whether example i has been added */
    double *host;          /* panel x panel, and at least N */
    float *Phi;            /* N x k, in the backend's memory, as are the rest: */
    double *gram, *factor; /* order x order: lower triangles of K without damping and of K's factor */
    double *Z, *X;         /* k x panel each */
    double *C;             /* panel x panel */
    int gram_ready, finished;
    fs_matrix *factors;         /* of layers, allocated by the first call with layers: up to 2 for each part, ... */
    fsi_attribution_rows *rows; /* ... where they were for each part when pairs were made, ... */
    int32_t *pairs;             /* ... and the two rows of each coordinate that is sketched, in the backend's memory */
};

/* Calls a function of the object's table: GRASS(g, syrk, n, k, ...). */
#define GRASS(g, function, ...) FSI_TRY((g)->dense->function((g)->handle, __VA_ARGS__))

/* Zeroed host memory, NULL where there is none, and its release. */
void *fsi_attribution_take(fs_context *ctx, int64_t count, size_t bytes);
void fsi_attribution_give(fs_context *ctx, void *memory);

/* Y += scale S g[mask], the share of one part, the first of which Y begins with: Y is features transposed, k x n. */
fs_result fsi_attribution_sketch_part(fs_attribution *g, int part, const fs_matrix *gradients, fs_matrix *Y);

/* Y = scale S g[mask] for layers that have been checked; `who` fails. */
fs_result fsi_attribution_sketch_layers(fs_attribution *g, const char *who, const fs_attribution_layer *layers,
                                        fs_matrix *Y);

/* Examples first ... first + count - 1 of Phi, at most `panel` of them, as columns of Z. */
fs_result fsi_attribution_widen(fs_attribution *g, int64_t first, int64_t count);

#endif
