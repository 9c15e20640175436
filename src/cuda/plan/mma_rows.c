/* mma_rows.c - plans of mma_rows.cu: rows of A contiguous, mma.sync.
 *
 * tile: warpgroups of a thread block, 128 columns each. */
#include "base/math.h"
#include "cuda/blockperm/mma_rows_instances.h"
#include "cuda/plan/kernel.h"

static const struct mma_rows_instance {
    fs_dtype dtype;
    int passes, groups;
    int64_t shared;
} table[] = {
#define LINE(T, dtype, passes, groups, stages) \
    {dtype, passes, groups, FSI_MMA_ROWS_SHARED(dtype == FS_F32 ? 4 : 2, groups, stages)},
    FSI_MMA_ROWS(LINE)
#undef LINE
};

static int mma_rows_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    (void)gpu;
    return fsi_rows_suit_mma(p);
}

/* bf16 terms of an element; the kernels of sm_90 use f16 terms. */
static int passes_of(const fsi_problem *p)
{
    return p->dtype != FS_F32 ? 1 : p->precision == FS_PRECISION_FAST ? 2 : 3;
}

static int mma_rows_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, fsi_plan *plan)
{
    const int groups = knobs->instance ? table[knobs->instance - 1].groups : knobs->tile;
    for (int i = 0; i < FSI_MMA_ROWS_COUNT; i++) {
        const struct mma_rows_instance *t = &table[i];
        if (t->dtype != p->dtype || t->passes != passes_of(p) || t->groups != groups || t->shared > gpu->shared)
            continue;
        *plan = fsi_plan_of(FSI_KERNEL_MMA_ROWS, i, 128 * groups, t->shared);
        const int64_t resident = fsi_max(1, fsi_min(2 / groups, gpu->shared_per_processor / (t->shared + 1024)));
        const fsi_split_rule rule = {.blocks = p->M * fsi_outputs_of(p) * fsi_div_up(p->n, 128 * groups),
                                     .height = p->tile_rows,
                                     .per_processor = (int)resident,
                                     .shortest = 256,
                                     .unit = 128,
                                     .whole = 128};
        return fsi_plan_split(p, gpu, knobs, &rule, plan);
    }
    return 0;
}

static int mma_rows_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    const fsi_knobs one = {.tile = 1}, two = {.tile = 2};
    if (p->n < 48) return 0;
    return (p->n > 128 && mma_rows_plan(p, gpu, &two, plan)) || mma_rows_plan(p, gpu, &one, plan);
}

static int mma_rows_candidate(const fsi_problem *p, int i, fsi_knobs *knobs)
{
    (void)p;
    knobs->tile = 1 + i;
    return i < 2;
}

static int64_t mma_rows_width(const fsi_plan *plan) { return 128 * (int64_t)table[plan->instance].groups; }

const fsi_kernel fsi_kernel_mma_rows = {.name = "mma_rows",
                                        .least_arch = 80,
                                        .most_arch = INT32_MAX,
                                        .inputs = 1u << FSI_INPUT_MATRIX,
                                        .instances = FSI_MMA_ROWS_COUNT,
                                        .splits = 5,
                                        .fits = mma_rows_fits,
                                        .choose = mma_rows_choose,
                                        .plan = mma_rows_plan,
                                        .candidate = mma_rows_candidate,
                                        .width = mma_rows_width};
