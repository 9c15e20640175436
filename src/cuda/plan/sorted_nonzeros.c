/* sorted_nonzeros.c - the plan of sorted_nonzeros.cu, the last resort for any matrix: the kernel sizes its own launches. */
#include "cuda/plan/kernel.h"

static int sorted_nonzeros_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    (void)p;
    (void)gpu;
    return 1;
}

static int sorted_nonzeros_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    (void)p;
    (void)gpu;
    const fsi_plan whole = {.kernel = FSI_KERNEL_SORTED_NONZEROS, .slices = 1, .cluster = 1};
    *plan = whole;
    return 1;
}

/* Without instances no table can record it. */
const fsi_kernel fsi_kernel_sorted_nonzeros = {.name = "sorted_nonzeros",
                                               .least_arch = 75,
                                               .most_arch = INT32_MAX,
                                               .inputs = 1u << FSI_INPUT_MATRIX,
                                               .whole_blocks = 1,
                                               .fits = sorted_nonzeros_fits,
                                               .choose = sorted_nonzeros_choose};
