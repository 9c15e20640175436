/* attribution.h - the object of flashsketch_grass.h: features (features.c) and what makes scores of them (scores.c).
 *
 * Everything is a sequence of fs_apply and dense.h, the same in every place.  Phi is widened to f64 a panel at a time:
 * `panel` examples, k x panel, column-major, a column for each; or, where there are fewer examples than features,
 * `panel` features, N x panel.  Then K is the N x N matrix Phi Phi' + damping I, because
 * (Phi'Phi + damping I)^-1 Phi' = Phi' (Phi Phi' + damping I)^-1. */
#ifndef FS_GRASS_ATTRIBUTION_H
#define FS_GRASS_ATTRIBUTION_H

#include "context.h"
#include "error.h"
#include "flashsketch_grass.h"

struct fs_grass {
    fs_context *ctx;
    const fs_dense *dense;
    void *handle;
    fs_sketch *S;
    int64_t N, k, mask, panel;
    int64_t order;         /* of K: the smaller of N and k */
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
};

/* Calls a function of the object's table: GRASS(g, syrk, n, k, ...). */
#define GRASS(g, function, ...) FS_TRY((g)->dense->function((g)->handle, __VA_ARGS__))

/* Examples first ... first + count - 1 of Phi, at most `panel` of them, as columns of Z. */
fs_result fs_grass_widen(fs_grass *g, int64_t first, int64_t count);

#endif
