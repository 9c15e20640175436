/* srht.c - see srht.h. */
#include "cuda/plan/srht.h"

#include "base/math.h"

int fsi_srht_is_sampled(const fsi_srht *S, fs_dtype dtype)
{
    const int64_t most = 2 * FSI_SRHT_SAMPLES(dtype == FS_F64 ? 8 : 4);
    return S->k <= most && S->N >= FSI_SRHT_SEGMENT && S->N / FSI_SRHT_SEGMENT <= (int64_t)1 << 32;
}

/* A slice costs as much as three segments besides its own: selecting rows, filling and draining the pipeline, adding its
 * partial-sum buffer.  Partial-sum buffers are at most 1 GiB. */
int64_t fsi_srht_slice_length(const fsi_gpu_traits *gpu, int64_t segments, int64_t blocks, int per_processor,
                              int64_t partial)
{
    const int64_t room = (int64_t)per_processor * gpu->processors;
    int64_t least = INT64_MAX, best = segments;
    for (int64_t slices = 1; slices <= segments && (slices - 1) * blocks < 4 * room; slices++) {
        if (slices > 1 && slices * partial > (int64_t)1 << 30) break;
        const int64_t length = fsi_div_up(segments, slices), cost = fsi_div_up(blocks * slices, room) * (length + 3);
        if (cost < least) least = cost, best = length;
    }
    return best;
}

/* The width of a panel and the number of buffers.  A ring of panels, one for each pass, gets two thirds of L2 if they can
 * be 32 columns wide; otherwise one panel gets that much, or 32 columns, or what 1 GiB holds, but always a column.  One
 * pass needs no panel: there the width only bounds the grid. */
static void cut_panels(fsi_srht_plan *plan, int64_t N, int64_t cols, int64_t sum_bytes, int64_t l2)
{
    const int64_t unit = 32, column = N * sum_bytes;
    const int64_t cache = (l2 > 0 ? l2 : (int64_t)32 << 20) / 3 * 2, least = fsi_min(cols, unit);
    const int ring = plan->passes > 1 && cache / (plan->passes * column) >= least;
    int64_t width = (int64_t)1 << 24;
    if (plan->passes > 1) {
        width = cache / (ring ? plan->passes * column : column);
        if (width < least) width = fsi_min(least, ((int64_t)1 << 30) / column);
        if (width > unit) width -= width % unit;
        if (width < 1) width = 1;
    }
    plan->panels = fsi_div_up(cols, width);
    if (width >= unit) width = fsi_round_up(fsi_div_up(cols, plan->panels), unit);
    plan->width = fsi_min(width, cols);
    plan->buffers = ring ? (int)fsi_min(plan->passes, plan->panels) : 1;
}

/* The large tile where it saves a pass and fits. */
fsi_srht_plan fsi_choose_srht(const fsi_srht *S, int64_t cols, int64_t sum_bytes, const fsi_gpu_traits *gpu)
{
    fsi_srht_plan plan = {.tile_bits = FSI_SRHT_SMALL_BITS};
    while ((int64_t)1 << plan.bits < S->N) plan.bits++;
    if (gpu->shared >= FSI_SRHT_LARGE_BYTES &&
        fsi_div_up(plan.bits, FSI_SRHT_LARGE_BITS) < fsi_div_up(plan.bits, FSI_SRHT_SMALL_BITS))
        plan.tile_bits = FSI_SRHT_LARGE_BITS;
    plan.passes = plan.bits ? (int)fsi_div_up(plan.bits, plan.tile_bits) : 1;
    cut_panels(&plan, S->N, cols, sum_bytes, gpu->l2);
    return plan;
}
