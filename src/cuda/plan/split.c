/* split.c - split-K: how many slices a block's local rows are cut into; and what else plan files share (kernel.h). */
#include "base/math.h"
#include "cuda/plan/kernel.h"

fsi_plan fsi_plan_of(fsi_kernel_id kernel, int instance, int threads, int64_t shared)
{
    const fsi_plan plan = {
        .kernel = kernel, .instance = instance, .threads = threads, .group = 1, .shared = shared, .cluster = 1};
    return plan;
}

/* Enough slices to fill the GPU, none shorter than rule->shortest.  Fewer, longer slices are better as long as the last
 * wave is nearly full: every slice writes and reads a partial-sum buffer. */
static int fastest_slices(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_split_rule *rule)
{
    const int64_t at_once = (int64_t)gpu->processors * rule->per_processor;
    const int64_t limit = fsi_min(fsi_max(1, p->local_rows / rule->shortest), 1024);
    int best = 1;
    double least_time = 1e300;
    for (int64_t slices = 1; slices <= limit; slices++) {
        const double waves = (double)fsi_div_up(rule->blocks * slices, at_once);
        /* the time of the busiest SM, in rows of A read, and the time that the partial-sum buffers cost all of them */
        const double work = waves * (double)p->local_rows / (double)slices * (double)at_once;
        const double partials = slices * p->kappa > 1 ? 2.0 * (double)(slices * rule->height) * (double)rule->blocks
                                                      : 0.0;
        const double time = work + 0.5 * partials;
        if (time < 0.98 * least_time) {
            least_time = time;
            best = (int)slices;
        }
        if (rule->blocks * slices >= 8 * at_once) break;
    }
    return best;
}

int fsi_plan_split(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, const fsi_split_rule *rule,
                   fsi_plan *plan)
{
    plan->length = knobs->length;
    if (knobs->length == 0) {
        const int slices = knobs->slices ? knobs->slices : fastest_slices(p, gpu, rule);
        plan->length = fsi_max(rule->unit, fsi_round_up(fsi_div_up(p->local_rows, slices), rule->unit));
    } else if (knobs->length < 0 || knobs->length % rule->whole != 0) {
        return 0;
    }
    const int64_t slices = plan->length < p->local_rows ? fsi_div_up(p->local_rows, plan->length) : 1;
    plan->slices = (int)slices;
    return slices <= INT32_MAX;
}

int fsi_rows_suit_mma(const fsi_problem *p)
{
    return p->across && p->whole && p->tile_rows <= 64 && p->dtype != FS_F64;
}

int fsi_two_terms_suffice(const fsi_problem *p)
{
    return p->dtype != FS_F32 || (double)p->rows * (double)(p->s * p->kappa) >= 4 * (double)p->k;
}

int64_t fsi_outputs_of(const fsi_problem *p) { return p->kappa * p->tiles; }

int fsi_outputs_together(const fsi_problem *p)
{
    const int64_t outputs = fsi_outputs_of(p);
    return outputs % 4 == 0 ? 4 : outputs % 2 == 0 ? 2 : 1;
}
