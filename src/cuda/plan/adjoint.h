/* adjoint.h - plans of X = S' Y for a BlockPerm-SJLT (families/adjoint.cu). */
#ifndef FSI_CUDA_PLAN_ADJOINT_H
#define FSI_CUDA_PLAN_ADJOINT_H

#include "cuda/plan/traits.h"
#include "def/blockperm.h"
#include "flashsketch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Threads of a thread block; thread blocks of an SM and columns of a tile, at most. */
enum { FSI_ADJOINT_THREADS = 256, FSI_ADJOINT_RESIDENT = 4, FSI_ADJOINT_WIDEST = 128 };

typedef struct fsi_adjoint_plan {
    int by_blocks;         /* the kernel `blocks`: tiles of Y in shared memory; otherwise `coordinates` */
    int64_t length;        /* by blocks: local rows of a slice; otherwise columns of a thread block */
    int64_t tiles, slices; /* by blocks: M tiles slices thread blocks; otherwise `tiles` along rows x `slices` along
                            * columns */
    /* by blocks: */
    int vector;   /* columns of a thread ... */
    int straight; /* ... that are neighbours: rows of X are whole vectors, written without beta or rounding */
    int spread;   /* ... or `team` apart, for rows of X of any length and address */
    int wide;     /* columns of a tile, a power of two ... */
    int team;     /* ... and lanes along them */
    int64_t shared;
} fsi_adjoint_plan;

/* `sum_bytes`: of a sum of elements of Y. */
fsi_adjoint_plan fsi_choose_adjoint(const fsi_blockperm *B, int64_t row0, int64_t sum_bytes, const fs_matrix *X,
                                    double beta, const fsi_gpu_traits *gpu);

#ifdef __cplusplus
}
#endif

#endif
