/* choose.h - which kernel and tile make Y = S A for a BlockPerm-SJLT: shape, types, strides and GPU in, a plan out.
 *
 * Plain C without CUDA, so that the choice is tested on machines without a GPU (tests/cuda).  fs_choose has
 * the rules, fs_choose_candidates the plans that are worth trying for a problem; `fsbench tune` measures them and
 * writes the best into a table that a context loads ($FLASHSKETCH_TUNING) and asks before the rules. */
#ifndef FS_CUDA_CHOOSE_H
#define FS_CUDA_CHOOSE_H

#include <stdint.h>

#include "blockperm.h"
#include "flashsketch.h"
#include "instances.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fs_gpu_traits {
    int arch;             /* compute capability: 75, 80, 90, 100, ... */
    int processors;       /* multiprocessors */
    int64_t shared;       /* bytes of shared memory that a thread block may have */
    int64_t shared_per_processor;
    int64_t l2;           /* bytes of L2 */
} fs_gpu_traits;

typedef enum fs_kernel {
    FS_KERNEL_COLUMNS = 1,   /* columns.cu: plain additions, a thread owns columns */
    FS_KERNEL_TENSOR_ROWS,   /* tensor_rows.cu: rows of A contiguous, mma.sync */
    FS_KERNEL_HOPPER_ROWS,   /* hopper_rows.cu: rows of A contiguous, wgmma */
    FS_KERNEL_HOPPER_LINES,  /* hopper_lines.cu: columns of A contiguous, lines dealt, wgmma */
    FS_KERNEL_SORTED,        /* sorted.cu: blocks too tall for a tile */
    FS_KERNEL_NARROW,        /* narrow.cu: few columns, a warp owns a block's sums */
    FS_KERNEL_LISTED_ROWS,   /* listed_rows.cu: rows of A contiguous, few nonzeros, sums in registers */
    FS_KERNEL_DIRECT,        /* direct.cu: rows of A that a list names, batches that no other kernel takes */
    FS_KERNEL_PRODUCTS,      /* direct.cu: products of rows */
    FS_KERNEL_TALL,          /* tall.cu: few columns, blocks of 64 rows, mma.sync, S in registers */
    FS_KERNEL_HALF_ROWS      /* half_rows.cu: rows of A contiguous, two-byte elements, wgmma, S in registers */
} fs_kernel;

/* What the choice depends on. */
typedef struct fs_problem {
    int64_t rows, n, k, M, kappa, s, interleave, block_rows;  /* rows: of A; block_rows: of the tallest output block */
    int64_t slots;         /* of an input block, at most */
    int32_t shuffle;
    fs_dtype dtype;
    fs_precision precision;
    int across, down;      /* neighbours in memory are columns, or rows, of A */
    int aligned;           /* every row (or column) of it starts at a multiple of 16 bytes */
    int whole;             /* and is a multiple of 16 bytes long */
    int mapped;            /* a tensor map of sm_90 can describe it (maps.cuh) */
    int once;              /* the nonzeros of a column under a permutation are one random word, never drawn again */
} fs_problem;

typedef struct fs_plan {
    fs_kernel kernel;
    int instance;       /* which line of the kernel's table in instances.h */
    int parts;          /* how many parts a block's slots are cut into */
    int64_t length;     /* slots of a part */
    int threads, team, chunk, group;  /* columns.cu: threads, threads of a team, slots of a chunk,
                                       * permutations together;
                                       * narrow.cu: team is the lanes of a round, chunk its rounds */
    int64_t shared;     /* bytes of shared memory */
    int cluster;        /* hopper_rows.cu, half_rows.cu: parts that are a cluster of thread blocks and add their sums
                         * themselves; 1 elsewhere */
} fs_plan;

fs_problem fs_problem_of(const fs_blockperm *S, int64_t row0, const fs_matrix *A, fs_precision precision);

typedef struct fs_tuning fs_tuning;

/* The plan of a problem: the table's if there is a table and it has one, otherwise the rules'. */
fs_plan fs_choose(const fs_problem *p, const fs_gpu_traits *gpu, const fs_tuning *table);

/* The plan of direct.cu for a problem whose rows are those of a list; 0 where it has none, and the listed rows are
 * copied first. */
int fs_choose_listed(const fs_problem *p, const fs_gpu_traits *gpu, fs_plan *plan);

/* The plan of direct.cu for products of rows, a problem in f32 of which there is nothing but the shape; 0 where it has
 * none, and a matrix of them is made first. */
int fs_choose_products(const fs_problem *p, const fs_gpu_traits *gpu, fs_plan *plan);

/* The plans worth trying, at most `room`; returns how many. */
int fs_choose_candidates(const fs_problem *p, const fs_gpu_traits *gpu, fs_plan *plans, int room);

/* Columns of A that one thread block of a plan makes. */
int64_t fs_plan_width(const fs_plan *plan);

/* Whether there are no more thread blocks than processors, and each takes piece after piece. */
int fs_plan_takes_many(const fs_plan *plan);

/* Rows of A that one copy of hopper_rows.cu or listed_rows.cu brings. */
int fs_plan_box(const fs_problem *p, const fs_plan *plan);

/* Thread blocks of a plan for one column tile and one part. */
int64_t fs_plan_blocks(const fs_problem *p, const fs_plan *plan);

/* Thread blocks of a plan that run together, a cluster: parts that add their sums, or those of hopper_lines.cu that get
 * the same lines; 1 elsewhere. */
int fs_plan_cluster(const fs_plan *plan);

/* Planes of partial sums that a plan leaves to combine.cu; 0 when it writes Y itself. */
int64_t fs_plan_planes(const fs_problem *p, const fs_plan *plan);

/* Whether a plan is one that the candidates could have held on some GPU. */
int fs_plan_sound(const fs_problem *p, const fs_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
