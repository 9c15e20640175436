/* plan.h - which kernel and tile make Y = S A for a BlockPerm-SJLT: shape, types, strides and GPU in, a plan out.
 *
 * Plain C without CUDA, so that the choice is tested on machines without a GPU (tests/plans).  fsi_choose has
 * the rules, fsi_choose_candidates the plans that are worth trying for a problem; `fsbench tune` measures them and
 * writes the best into a table that a context loads ($FLASHSKETCH_TUNING) and asks before the rules. */
#ifndef FSI_CUDA_PLAN_PLAN_H
#define FSI_CUDA_PLAN_PLAN_H

#include <stdint.h>

#include "def/blockperm.h"
#include "flashsketch.h"
#include "cuda/plan/instances.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fsi_gpu_traits {
    int arch;       /* compute capability: 75, 80, 90, 100, ... */
    int processors; /* multiprocessors */
    int64_t shared; /* bytes of shared memory that a thread block may have */
    int64_t shared_per_processor;
    int64_t l2; /* bytes of L2 */
} fsi_gpu_traits;

typedef enum fsi_kernel {
    FSI_KERNEL_SIMT_GENERIC = 1, /* simt_generic.cu: plain additions, a thread owns columns */
    FSI_KERNEL_MMA_ROWS,         /* mma_rows.cu: rows of A contiguous, mma.sync */
    FSI_KERNEL_WGMMA_ROWS,       /* wgmma_rows.cu: rows of A contiguous, wgmma */
    FSI_KERNEL_WGMMA_GROUPS,     /* wgmma_groups.cu: columns of A contiguous, lines dealt, wgmma */
    FSI_KERNEL_SORTED_NONZEROS,  /* sorted_nonzeros.cu: blocks too tall for a tile */
    FSI_KERNEL_SIMT_SKINNY,      /* simt_skinny.cu: few columns, a warp owns a block's sums */
    FSI_KERNEL_GATHER_ROWS_SIMT, /* gather_rows_simt.cu: rows of A contiguous, few nonzeros, sums in registers */
    FSI_KERNEL_MMA_GATHER,       /* mma_gather.cu: rows of A that a list names, batches that no other kernel takes */
    FSI_KERNEL_MMA_FACTORED,     /* mma_gather.cu: products of rows */
    FSI_KERNEL_MMA_SKINNY,       /* mma_skinny.cu: few columns, blocks of 64 rows, mma.sync, S in registers */
    FSI_KERNEL_WGMMA_ROWS_16BIT /* wgmma_rows_16bit.cu: rows of A contiguous, two-byte elements, wgmma, S in registers */
} fsi_kernel;

/* What the choice depends on. */
typedef struct fsi_problem {
    int64_t rows, n, k, M, kappa, s, interleave, block_rows; /* rows: of A; block_rows: of the tallest output block */
    int64_t local_rows;                                      /* of an input block, at most */
    int32_t shuffle;
    fs_dtype dtype;
    fs_precision precision;
    int across, down; /* neighbours in memory are columns, or rows, of A */
    int aligned;      /* every row (or column) of it starts at a multiple of 16 bytes */
    int whole;        /* and is a multiple of 16 bytes long */
    int mapped;       /* a tensor map of sm_90 can describe it (tensor_maps.cuh) */
    int once;         /* the nonzeros of a column under a permutation are one random word, never drawn again */
} fsi_problem;

typedef struct fsi_plan {
    fsi_kernel kernel;
    int instance;                    /* which line of the kernel's table in instances.h */
    int slices;                      /* how many slices a block's local rows are cut into */
    int64_t length;                  /* local rows of a slice */
    int threads, team, chunk, group; /* simt_generic.cu: threads, threads of a team, local rows of a chunk,
                                       * permutations together;
                                       * simt_skinny.cu: team is the lanes of a round, chunk its rounds */
    int64_t shared;                  /* bytes of shared memory */
    int cluster; /* wgmma_rows.cu, wgmma_rows_16bit.cu: slices that are a cluster of thread blocks and add their sums
                         * themselves; 1 elsewhere */
} fsi_plan;

fsi_problem fsi_problem_of(const fsi_blockperm *S, int64_t row0, const fs_matrix *A, fs_precision precision);

typedef struct fsi_tuning fsi_tuning;

/* The plan of a problem: the table's if there is a table and it has one, otherwise the rules'. */
fsi_plan fsi_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_tuning *table);

/* The plan of mma_gather.cu for a problem whose rows are those of a list; 0 where it has none, and the listed rows are
 * copied first. */
int fsi_choose_listed(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan);

/* The plan of mma_gather.cu for products of rows, a problem in f32 of which there is nothing but the shape; 0 where it has
 * none, and a matrix of them is made first. */
int fsi_choose_products(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan);

/* The plans worth trying, at most `room`; returns how many. */
int fsi_choose_candidates(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plans, int room);

/* Columns of A that one thread block of a plan makes. */
int64_t fsi_plan_width(const fsi_plan *plan);

/* Whether there are no more thread blocks than processors, and each takes piece after piece. */
int fsi_plan_takes_many(const fsi_plan *plan);

/* Rows of A that one copy of wgmma_rows.cu or gather_rows_simt.cu brings. */
int fsi_plan_box(const fsi_problem *p, const fsi_plan *plan);

/* Thread blocks of a plan for one column tile and one slice. */
int64_t fsi_plan_blocks(const fsi_problem *p, const fsi_plan *plan);

/* Thread blocks of a plan that run together, a cluster: slices that add their sums, or those of wgmma_groups.cu that get
 * the same lines; 1 elsewhere. */
int fsi_plan_cluster(const fsi_plan *plan);

/* Partial-sum buffers of partial sums that a plan leaves to split_reduce.cu; 0 when it writes Y itself. */
int64_t fsi_plan_partials(const fsi_problem *p, const fsi_plan *plan);

/* Whether a plan is one that the candidates could have held on some GPU. */
int fsi_plan_sound(const fsi_problem *p, const fsi_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
