/* plan.h - which kernel and tile compute Y = S A for a BlockPerm-SJLT: shape, types, strides and GPU in, a plan out.
 *
 * Plain C without CUDA, so that the choice is tested on machines without a GPU (tests/plans).  fsi_choose has the rules;
 * `fsbench tune` measures the candidates (tune/candidates.h) and writes the best to a table that a context loads
 * ($FLASHSKETCH_TUNING) and that has precedence over the rules. */
#ifndef FSI_CUDA_PLAN_PLAN_H
#define FSI_CUDA_PLAN_PLAN_H

#include <stdint.h>

#include "cuda/plan/kernels.h"
#include "cuda/plan/traits.h"
#include "def/blockperm.h"
#include "flashsketch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the rows of a problem are. */
typedef enum fsi_input_kind {
    FSI_INPUT_MATRIX,   /* those of a matrix */
    FSI_INPUT_GATHERED, /* those of a matrix that a list names */
    FSI_INPUT_FACTORED  /* products of rows of factors, in f32; the matrix is a shape without data */
} fsi_input_kind;

/* What the choice depends on. */
typedef struct fsi_problem {
    int64_t rows, n, k, M, kappa, s, interleave, block_rows; /* rows: of A; block_rows: of the tallest output block */
    int64_t tiles, tile_rows; /* output tiles of an output block, rows of the tallest of them (output_tiles.h) */
    int64_t tile_nonzeros;    /* of a local row in an output tile, at most */
    int64_t local_rows;       /* of an input block, at most */
    int32_t shuffle;
    fs_dtype dtype;
    fs_precision precision;
    int across, down; /* neighbours in memory are columns, or rows, of A */
    int aligned;      /* every row (or column) of it starts at a multiple of 16 bytes */
    int whole;        /* and is a multiple of 16 bytes long */
    int mapped;       /* a tensor map of sm_90 can describe it (tensor_maps.cuh) */
    int packed;       /* the nonzeros of a column in an output tile are a packed word (def/blockperm.h) */
    fsi_input_kind input;
} fsi_problem;

/* team, chunk and group: see the kernel's plan file. */
typedef struct fsi_plan {
    fsi_kernel_id kernel;
    int instance;   /* which line of the kernel's list of instances */
    int slices;     /* split-K slices of a block's local rows */
    int64_t length; /* local rows of a slice */
    int threads, team, chunk, group;
    int64_t shared; /* bytes of shared memory */
    int cluster;    /* slices that are a cluster of thread blocks and add their sums in shared memory; 1: none */
} fsi_plan;

/* `input` is FSI_INPUT_MATRIX; A has the rows of the problem, gathered or not. */
fsi_problem fsi_problem_of(const fsi_blockperm *S, int64_t row0, const fs_matrix *A, fs_precision precision);

typedef struct fsi_tuning fsi_tuning;

/* The plan of a problem: the table's, if there is a table with an entry that this GPU can run, otherwise the rules'.  A
 * matrix always has a plan; for gathered rows and factored input .kernel may be FSI_KERNEL_NONE, and the input is then
 * materialized first. */
fsi_plan fsi_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_tuning *table);

/* Columns of A of a thread block's tile. */
int64_t fsi_plan_width(const fsi_plan *plan);

/* Whether at most one thread block per SM is started, which loops over work items. */
int fsi_plan_is_persistent(const fsi_plan *plan);

/* Rows of A that one copy through a tensor map brings; 1 for kernels without maps. */
int fsi_plan_box(const fsi_problem *p, const fsi_plan *plan);

/* Thread blocks of a plan for one column tile and one slice. */
int64_t fsi_plan_blocks(const fsi_problem *p, const fsi_plan *plan);

/* Thread blocks of a cluster: slices that add their sums, or thread blocks of wgmma_groups.cu that receive the same row
 * groups; 1: no clusters. */
int fsi_plan_cluster(const fsi_plan *plan);

/* Partial-sum buffers that a plan leaves to split_reduce.cu; 0 when it writes Y itself. */
int64_t fsi_plan_partials(const fsi_problem *p, const fsi_plan *plan);

/* Whether some GPU's rules of the kernel produce this plan: planning again with the recorded knobs yields it. */
int fsi_plan_sound(const fsi_problem *p, const fsi_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
