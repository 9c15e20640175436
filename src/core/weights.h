/* weights.h - the weights of S: S = weight[0] T_0 + weight[1] T_1, the T with entries +-1 (normals for the Gaussian).
 *
 * Only FlashBlockRow with blocks of two sizes has two: weight[1] is that of its larger input blocks. */
#ifndef FSI_CORE_WEIGHTS_H
#define FSI_CORE_WEIGHTS_H

#include "def/def.h"

typedef struct fsi_weights {
    double weight[2];
} fsi_weights;

static inline fsi_weights fsi_weights_of(const fsi_def *S)
{
    fsi_weights w = {{S->scale, 0.0}};
    if (S->family == FSI_DEF_BLOCKROW) {
        const fsi_blockrow *R = &S->u.blockrow;
        w.weight[0] = __builtin_sqrt(fsi_blockrow_weight2(R, R->M - 1));
        if (R->in.larger) w.weight[1] = __builtin_sqrt(fsi_blockrow_weight2(R, 0));
    }
    return w;
}

#endif
