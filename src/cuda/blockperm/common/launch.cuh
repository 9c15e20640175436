/* launch.cuh - the launch half of a BlockPerm kernel: what blockperm/name.cu exports, and how kernels with tiles are
 * launched.  The plan half is plan/kernel.h. */
#ifndef FSI_CUDA_BLOCKPERM_COMMON_LAUNCH_CUH
#define FSI_CUDA_BLOCKPERM_COMMON_LAUNCH_CUH

#include "cuda/blockperm/common/tile.cuh"
#include "cuda/plan/plan.h"
#include "cuda/runtime/gpu.h"

/* to = beta to + alpha scale S[:, row0 ...] X, where X is `from`; the rows of `from` that `rows` names; or the products
 * of factors, whose shape is `from`. */
typedef struct fsi_operands {
    const fsi_blockperm *S;
    double scale;
    int64_t row0;
    double alpha;
    const fs_matrix *from;
    const fs_rows *rows;        /* NULL: all */
    const fsi_factors *factors; /* NULL: none */
    double beta;
    const fs_matrix *to;
} fsi_operands;

typedef struct fsi_kernel_code {
    fs_result (*launch)(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan, const fsi_operands *operands);
    const void *const *instances; /* for the opt-in to more than 48 KiB of shared memory; NULL: none needs it */
} fsi_kernel_code;
#define FSI_DECLARE_CODE(NAME, name) extern const fsi_kernel_code fsi_kernel_##name##_code;
FSI_KERNELS(FSI_DECLARE_CODE)
#undef FSI_DECLARE_CODE

/* A product by the kernel of its plan. */
fs_result fsi_gpu_blockperm_run(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                const fsi_operands *operands);

/* A launch of thread blocks that own tiles: fsi_tile_launch_open prepares it (arguments, output or partial-sum buffers,
 * grid, cluster), the kernel's launch function changes what is different, fsi_tile_launch_run starts it and the split-K
 * reduction after it. */
typedef struct fsi_tile_launch {
    fsi_gpu *gpu;
    const fsi_problem *problem;
    const fsi_plan *plan;
    const fsi_operands *operands;
    fsi_tile_args args;
    cudaLaunchConfig_t config;
    cudaLaunchAttribute attribute; /* of `config`; the cluster, unless numAttrs is 0 */
} fsi_tile_launch;

fs_result fsi_tile_launch_open(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                               const fsi_operands *operands, fsi_tile_launch *launch);
fs_result fsi_tile_launch_run(fsi_tile_launch *launch, const void *kernel, void **arguments);

#endif
