/* wgmma_rows.c - plans of wgmma_rows.cu: rows of A contiguous, wgmma.
 *
 * tile: 1 for 64 columns that both warpgroups have, 2 for 64 columns each, 3 for 128 each; only 2 for several permutations
 * together.
 * group: outputs together. */
#include "base/math.h"
#include "cuda/blockperm/wgmma_rows_instances.h"
#include "cuda/plan/kernel.h"

static const struct wgmma_rows_instance {
    fs_dtype dtype;
    int chunked, outs, tiles, persistent, box;
    int64_t width, multiple, shared; /* multiple: columns of 128 bytes */
} table[] = {
#define LINE(T, dtype, chunked, outs, tiles, stages, sets, persistent) \
    {dtype, \
     chunked, \
     outs, \
     tiles, \
     persistent, \
     FSI_WGMMA_ROWS_BOX(dtype == FS_F32 ? 4 : 2, outs, tiles, 1), \
     FSI_WGMMA_ROWS_WIDTH(outs, tiles), \
     dtype == FS_F32 ? 32 : 64, \
     FSI_WGMMA_ROWS_SHARED(dtype == FS_F32 ? 4 : 2, chunked, outs, tiles, stages, sets, persistent)},
    FSI_WGMMA_ROWS(LINE)
#undef LINE
};

static int wgmma_rows_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    (void)gpu;
    return p->across && p->tile_rows <= 64 && p->dtype != FS_F64 && fsi_two_terms_suffice(p);
}

/* The instance with such tiles that a problem can use, or -1.  A tensor map, where the matrix has one, is faster than
 * copies by chunks. */
static int instance_of(const fsi_problem *p, const fsi_gpu_traits *gpu, int chunked, int tiles, int persistent)
{
    const int together = fsi_outputs_together(p), outs = chunked && together > 2 ? 2 : together;
    for (int i = 0; i < FSI_WGMMA_ROWS_COUNT; i++)
        if (table[i].dtype == p->dtype && table[i].chunked == chunked && table[i].outs == outs &&
            table[i].tiles == tiles && table[i].persistent == persistent && table[i].shared <= gpu->shared &&
            (chunked || (p->mapped && (p->n % table[i].multiple == 0 || p->n >= table[i].width))))
            return i;
    return -1;
}

/* More work items than SMs: a persistent thread block loads the next one while it stores its sums (measured:
 * docs/kernels/wgmma_rows.md). */
static int persistent_instance(const fsi_problem *p, const fsi_gpu_traits *gpu, int chunked, int tiles, int64_t items)
{
    return items > gpu->processors ? instance_of(p, gpu, chunked, tiles, 1) : -1;
}

static int plan_with(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, int chunked,
                     fsi_plan *plan)
{
    const struct wgmma_rows_instance *named = knobs->instance ? &table[knobs->instance - 1] : NULL;
    const int tiles = named ? named->tiles : knobs->tile - 1;
    int found = instance_of(p, gpu, chunked, tiles, 0);
    if (found < 0) found = instance_of(p, gpu, chunked, tiles, 1);
    if (found < 0) return 0;
    *plan = fsi_plan_of(FSI_KERNEL_WGMMA_ROWS, found, 512, table[found].shared);
    plan->group = table[found].outs;
    const int64_t columns = fsi_div_up(p->n, table[found].width);
    const fsi_split_rule rule = {.blocks = p->M * (fsi_outputs_of(p) / plan->group) * columns,
                                 .height = plan->group * p->tile_rows,
                                 .per_processor = 1,
                                 .shortest = 256,
                                 .unit = 64,
                                 .whole = 64};
    if (!fsi_plan_split(p, gpu, knobs, &rule, plan)) return 0;
    /* Two slices are added in a cluster, without a partial-sum buffer.  Pairs of more slices gain nothing over
     * partial-sum buffers, and 132 SMs hold 66 clusters of two, but only 120 thread blocks in clusters of four or eight
     * (docs/kernels/wgmma_rows.md). */
    plan->cluster = plan->slices == 2 && !chunked ? 2 : 1;
    if (knobs->cluster) {
        if (plan->cluster % knobs->cluster) return 0;
        plan->cluster = knobs->cluster;
    }
    if (named) {
        if (named->dtype != p->dtype || named->outs != plan->group || (named->persistent && plan->cluster > 1))
            return 0;
        plan->instance = knobs->instance - 1;
    } else if (plan->cluster == 1) {
        const int persistent = persistent_instance(p, gpu, chunked, tiles, rule.blocks * plan->slices);
        if (persistent >= 0) plan->instance = persistent;
    }
    plan->shared = table[plan->instance].shared;
    return 1;
}

static int wgmma_rows_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, fsi_plan *plan)
{
    if (knobs->instance) return plan_with(p, gpu, knobs, table[knobs->instance - 1].chunked, plan);
    return plan_with(p, gpu, knobs, 0, plan) || plan_with(p, gpu, knobs, 1, plan);
}

/* Fewer than 17 columns are left to kernels with narrower tiles.  Wide tiles are faster, but for small matrices of floats
 * not by as much as the reduction of more slices costs (docs/kernels/wgmma_rows.md, tile width). */
static int wgmma_rows_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    const fsi_knobs narrow_tiles = {.tile = 2}, wide_tiles = {.tile = 3}, half_tiles = {.tile = 1};
    const int small = p->dtype == FS_F32 && p->rows <= ((int64_t)1 << 25) / p->n;
    fsi_plan narrow;
    if (p->n < 17) return 0;
    if (p->n <= 64 && wgmma_rows_plan(p, gpu, &half_tiles, plan)) return 1;
    const int one = wgmma_rows_plan(p, gpu, &narrow_tiles, &narrow);
    const int two = p->n > 128 && wgmma_rows_plan(p, gpu, &wide_tiles, plan);
    if (one && (!two || (small && narrow.slices < plan->slices))) *plan = narrow;
    return one || two;
}

static int wgmma_rows_candidate(const fsi_problem *p, int i, fsi_knobs *knobs)
{
    (void)p;
    knobs->tile = 3 - i;
    return i < 3;
}

static int64_t wgmma_rows_width(const fsi_plan *plan) { return table[plan->instance].width; }
static int wgmma_rows_persistent(const fsi_plan *plan) { return table[plan->instance].persistent; }
static int wgmma_rows_box(const fsi_plan *plan) { return table[plan->instance].box; }

const fsi_kernel fsi_kernel_wgmma_rows = {.name = "wgmma_rows",
                                          .least_arch = 90,
                                          .most_arch = 90,
                                          .inputs = 1u << FSI_INPUT_MATRIX,
                                          .instances = FSI_WGMMA_ROWS_COUNT,
                                          .splits = 5,
                                          .fits = wgmma_rows_fits,
                                          .choose = wgmma_rows_choose,
                                          .plan = wgmma_rows_plan,
                                          .candidate = wgmma_rows_candidate,
                                          .width = wgmma_rows_width,
                                          .persistent = wgmma_rows_persistent,
                                          .box = wgmma_rows_box};
