/* mma_skinny.c - plans of mma_skinny.cu: few columns, output tiles of 64 rows, mma.sync, S in registers.
 *
 * tile: neighbouring columns of a thread, 1 or 2; a thread block has eight times as many. */
#include "base/math.h"
#include "cuda/blockperm/mma_skinny_instances.h"
#include "cuda/plan/kernel.h"

static const struct mma_skinny_instance {
    fs_dtype dtype;
    int vector, nonzeros, warps;
    int64_t shared;
} table[] = {
#define LINE(T, dtype, vector, nonzeros, stages, warps) \
    {dtype, vector, nonzeros, warps, FSI_MMA_SKINNY_SHARED(dtype == FS_F32 ? 4 : 2, vector, stages, warps)},
    FSI_MMA_SKINNY(LINE)
#undef LINE
};

/* The instances decide about the nonzeros. */
static int mma_skinny_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    (void)gpu;
    return p->n <= FSI_MMA_SKINNY_COLUMNS && p->kappa == 1 && p->packed && p->tile_rows == FSI_MMA_SKINNY_HEIGHT &&
           p->k == p->M * p->tiles * FSI_MMA_SKINNY_HEIGHT && p->M * p->tiles <= FSI_MMA_SKINNY_BLOCKS &&
           p->shuffle != FSI_DEF_GROUPS;
}

static int64_t mma_skinny_blocks(const fsi_problem *p, const fsi_plan *plan)
{
    return fsi_div_up(p->M * p->tiles, plan->threads / 32);
}

static int mma_skinny_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, fsi_plan *plan)
{
    const int vector = knobs->instance ? table[knobs->instance - 1].vector : knobs->tile;
    for (int i = 0; i < FSI_MMA_SKINNY_COUNT; i++) {
        const struct mma_skinny_instance *t = &table[i];
        if (t->dtype != p->dtype || t->vector != vector || t->nonzeros != p->tile_nonzeros || t->shared > gpu->shared)
            continue;
        *plan = fsi_plan_of(FSI_KERNEL_MMA_SKINNY, i, 32 * t->warps, t->shared);
        const fsi_split_rule rule = {.blocks = mma_skinny_blocks(p, plan) * fsi_div_up(p->n, 8 * vector),
                                     .height = p->tile_rows,
                                     .per_processor = 1,
                                     .shortest = 512,
                                     .unit = 128,
                                     .whole = 128};
        return fsi_plan_split(p, gpu, knobs, &rule, plan) && plan->length < INT32_MAX / p->M;
    }
    return 0;
}

/* Two neighbouring columns of a thread where one copy brings them. 8 columns and 64 are as fast by simt_skinny.cu and
 * simt_generic.cu (docs/kernels/mma_skinny.md). */
static int mma_skinny_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    const fsi_knobs one = {.tile = 1}, two = {.tile = 2};
    if (!p->across || p->n < 9 || p->rows < 32768 || p->local_rows < 256) return 0;
    /* wgmma_rows.cu is faster there; its plan file has the numbers. */
    if (gpu->arch == 90 && p->n >= 17 && !(p->aligned && p->n <= 32) && fsi_two_terms_suffice(p)) return 0;
    if (p->aligned && p->n % 2 == 0 && mma_skinny_plan(p, gpu, &two, plan)) return 1;
    return p->dtype == FS_F32 && mma_skinny_plan(p, gpu, &one, plan);
}

static int mma_skinny_candidate(const fsi_problem *p, int i, fsi_knobs *knobs)
{
    (void)p;
    knobs->tile = 1 + i;
    return i < 2;
}

static int64_t mma_skinny_width(const fsi_plan *plan) { return 8 * (int64_t)table[plan->instance].vector; }

const fsi_kernel fsi_kernel_mma_skinny = {.name = "mma_skinny",
                                          .least_arch = 80,
                                          .most_arch = INT32_MAX,
                                          .inputs = 1u << FSI_INPUT_MATRIX,
                                          .instances = FSI_MMA_SKINNY_COUNT,
                                          .splits = 5,
                                          .fits = mma_skinny_fits,
                                          .choose = mma_skinny_choose,
                                          .plan = mma_skinny_plan,
                                          .candidate = mma_skinny_candidate,
                                          .width = mma_skinny_width,
                                          .blocks = mma_skinny_blocks};
