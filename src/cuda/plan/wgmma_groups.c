/* wgmma_groups.c - plans of wgmma_groups.cu: columns of A contiguous (batches), row groups shuffled, wgmma.
 *
 * tile: samples (columns) of a thread block, 64 or 128. */
#include "base/math.h"
#include "cuda/blockperm/wgmma_groups_instances.h"
#include "cuda/plan/kernel.h"

static const struct wgmma_groups_instance {
    fs_dtype dtype;
    int interleave, samples, boxes, cluster, threads;
    int64_t shared;
} table[] = {
#define LINE(T, dtype, interleave, samples, stages, panels) \
    {dtype, \
     interleave, \
     samples, \
     FSI_WGMMA_GROUPS_BOXES(dtype == FS_F32 ? 4 : 2), \
     FSI_WGMMA_GROUPS_CLUSTER(dtype == FS_F32 ? 4 : 2, interleave), \
     FSI_WGMMA_GROUPS_THREADS(dtype == FS_F32 ? 4 : 2, interleave, samples), \
     FSI_WGMMA_GROUPS_SHARED(dtype == FS_F32 ? 4 : 2, interleave, stages, panels)},
    FSI_WGMMA_GROUPS(LINE)
#undef LINE
};

static int wgmma_groups_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    (void)gpu;
    return p->down && !p->across && p->aligned && p->shuffle == FSI_DEF_GROUPS && p->kappa == 1 && p->tiles == 1 &&
           p->tile_rows <= 64 && fsi_two_terms_suffice(p);
}

static int64_t wgmma_groups_blocks(const fsi_problem *p, const fsi_plan *plan)
{
    (void)plan;
    return p->M / p->interleave * fsi_div_up(p->interleave, 8);
}

static int wgmma_groups_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, fsi_plan *plan)
{
    const int samples = knobs->instance ? table[knobs->instance - 1].samples : knobs->tile;
    for (int i = 0; i < FSI_WGMMA_GROUPS_COUNT; i++) {
        const struct wgmma_groups_instance *t = &table[i];
        if (t->dtype != p->dtype || t->interleave != p->interleave || t->samples != samples ||
            !(t->boxes ? p->mapped : p->whole) || t->shared > gpu->shared)
            continue;
        *plan = fsi_plan_of(FSI_KERNEL_WGMMA_GROUPS, i, t->threads, t->shared);
        /* Local rows of a step: a warpgroup takes 64 of one block or 16 of each of four; two may take different ones. */
        const int apart = p->interleave < 8 && samples == 64;
        const int64_t step = (p->interleave == 1 ? 64 : 16) * (apart ? 2 : 1);
        const fsi_split_rule rule = {.blocks = wgmma_groups_blocks(p, plan) * fsi_div_up(p->n, samples),
                                     .height = p->tile_rows,
                                     .per_processor = 1,
                                     .shortest = 8 * step,
                                     .unit = step,
                                     .whole = FSI_GROUP_ROWS / p->interleave};
        return fsi_plan_split(p, gpu, knobs, &rule, plan);
    }
    return 0;
}

/* Fewer samples than a quarter of a tile are left to plain additions. */
static int wgmma_groups_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    const fsi_knobs suited = {.tile = p->n > 64 ? 128 : 64}, other = {.tile = p->n > 64 ? 64 : 128};
    return p->n >= 16 && (wgmma_groups_plan(p, gpu, &suited, plan) || wgmma_groups_plan(p, gpu, &other, plan));
}

static int wgmma_groups_candidate(const fsi_problem *p, int i, fsi_knobs *knobs)
{
    (void)p;
    knobs->tile = 64 << i;
    return i < 2;
}

static int64_t wgmma_groups_width(const fsi_plan *plan) { return table[plan->instance].samples; }
static int wgmma_groups_cluster(const fsi_plan *plan) { return table[plan->instance].cluster; }

const fsi_kernel fsi_kernel_wgmma_groups = {.name = "wgmma_groups",
                                            .least_arch = 90,
                                            .most_arch = 90,
                                            .inputs = 1u << FSI_INPUT_MATRIX,
                                            .instances = FSI_WGMMA_GROUPS_COUNT,
                                            .splits = 5,
                                            .fits = wgmma_groups_fits,
                                            .choose = wgmma_groups_choose,
                                            .plan = wgmma_groups_plan,
                                            .candidate = wgmma_groups_candidate,
                                            .width = wgmma_groups_width,
                                            .blocks = wgmma_groups_blocks,
                                            .cluster = wgmma_groups_cluster};
