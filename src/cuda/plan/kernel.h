/* kernel.h - the descriptor of a BlockPerm kernel's plan half, and what plan files share.
 *
 * A kernel is a line of kernels.h, a plan file (plan/name.c, plain C) that defines its descriptor, and a device file
 * (blockperm/name.cu) with its code, instances and launch.  Choosing, tuning, checking of tables and launching are loops
 * over the descriptors. */
#ifndef FSI_CUDA_PLAN_KERNEL_H
#define FSI_CUDA_PLAN_KERNEL_H

#include "cuda/plan/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings of a plan that tuning varies and tables record; 0: the kernel's own.  A kernel ignores settings that it does
 * not have. */
typedef struct fsi_knobs {
    int instance; /* 1 + an instance that the plan must have */
    int tile;     /* the width of a tile, in the kernel's own unit */
    int threads, group, chunk, cluster;
    int slices;     /* so many slices, or as many as lengths in the kernel's unit allow */
    int64_t length; /* of a slice; goes before `slices` */
} fsi_knobs;

typedef struct fsi_kernel {
    const char *name; /* in tuning tables, tests and error messages */
    int least_arch, most_arch;
    unsigned inputs;  /* bits 1 << fsi_input_kind */
    int instances;    /* lines of its list */
    int splits;       /* how many numbers of slices tuning tries: p, p/2, 2p, p+1, p-1 around the kernel's own p */
    int whole_blocks; /* output blocks are not cut into tiles (output_tiles.h) */

    /* Whether the kernel can compute a problem; the architecture and the kind of input have been checked. */
    int (*fits)(const fsi_problem *p, const fsi_gpu_traits *gpu);
    /* The rules: the plan of a problem that fits; 0 where kernels further down the list are faster. */
    int (*choose)(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan);
    /* The plan of a problem that fits, with knobs; 0 where there is none.  Like width, NULL for a kernel without instances,
     * which sizes its own launches. */
    int (*plan)(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, fsi_plan *plan);
    /* Knobs i = 0, 1, ... that tuning tries, without slices; 0 past the last.  NULL: none. */
    int (*candidate)(const fsi_problem *p, int i, fsi_knobs *knobs);

    /* See the functions fsi_plan_... in plan.h.  NULL: M ceil(outputs / group) blocks, the plan's cluster, not
     * persistent, boxes of one row. */
    int64_t (*width)(const fsi_plan *plan);
    int64_t (*blocks)(const fsi_problem *p, const fsi_plan *plan);
    int (*cluster)(const fsi_plan *plan);
    int (*persistent)(const fsi_plan *plan);
    int (*box)(const fsi_plan *plan); /* of contiguous rows */
} fsi_kernel;

/* The descriptors, and all of them in order of preference: FSI_KERNEL_NAME is entry FSI_KERNEL_NAME - 1. */
#define FSI_DECLARE_KERNEL(NAME, name) extern const fsi_kernel fsi_kernel_##name;
FSI_KERNELS(FSI_DECLARE_KERNEL)
#undef FSI_DECLARE_KERNEL
enum { FSI_KERNEL_COUNT = FSI_KERNEL_END - 1 };
extern const fsi_kernel *const fsi_kernels[FSI_KERNEL_COUNT];

/* NULL if there is none. */
const fsi_kernel *fsi_kernel_of(fsi_kernel_id id);
/* FSI_KERNEL_NONE if no kernel has the name. */
fsi_kernel_id fsi_kernel_named(const char *name);

/* Architecture, kind of input, and the kernel's own conditions. */
int fsi_kernel_fits(const fsi_kernel *kernel, const fsi_problem *p, const fsi_gpu_traits *gpu);

/* A plan with everything but slices and their length; one output at a time, no team, no chunk. */
fsi_plan fsi_plan_of(fsi_kernel_id kernel, int instance, int threads, int64_t shared);

/* How a kernel splits a block's local rows. */
typedef struct fsi_split_rule {
    int64_t blocks;    /* thread blocks of one slice */
    int64_t height;    /* rows of sums that a thread block has for each row of A that it reads at a time */
    int per_processor; /* thread blocks that run on an SM at once */
    int64_t shortest;  /* local rows of a slice that the rules make, at least */
    int64_t unit;      /* lengths that the rules make are multiples of it */
    int64_t whole;     /* lengths that the kernel takes are */
} fsi_split_rule;

/* Sets slices and length: those of the knobs, or as many slices as take least time.  0: the kernel does not take the
 * length of the knobs. */
int fsi_plan_split(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, const fsi_split_rule *rule,
                   fsi_plan *plan);

/* Whether the tensor-core kernels can read rows of A in place: contiguous, whole 16 bytes; output tiles of at most 64
 * rows; not f64. */
int fsi_rows_suit_mma(const fsi_problem *p);
/* Whether two f16 terms are enough of a float.  One float in four loses its last bit, which the roundings of a sum of
 * four terms hide.  Sums of fewer terms are left to kernels that split or add exactly. */
int fsi_two_terms_suffice(const fsi_problem *p);
/* Output tiles that an input block feeds: those of kappa output blocks. */
int64_t fsi_outputs_of(const fsi_problem *p);
/* Of them, those of one pass over A: as many as an instance takes together, none left over. */
int fsi_outputs_together(const fsi_problem *p);

#ifdef __cplusplus
}
#endif

#endif
