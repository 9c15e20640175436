/* choose.c - see plan.h: the first kernel of the registry that fits and that its rules take. */
#include <string.h>

#include "base/math.h"
#include "cuda/plan/kernel.h"
#include "cuda/plan/tuning.h"

fsi_plan fsi_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_tuning *table)
{
    fsi_plan plan;
    if (table && fsi_tuning_find(table, p, &plan) && plan.shared <= gpu->shared &&
        fsi_kernel_fits(fsi_kernel_of(plan.kernel), p, gpu))
        return plan;
    for (int i = 0; i < FSI_KERNEL_COUNT; i++)
        if (fsi_kernel_fits(fsi_kernels[i], p, gpu) && fsi_kernels[i]->choose(p, gpu, &plan)) return plan;
    memset(&plan, 0, sizeof plan);
    return plan;
}

int64_t fsi_plan_width(const fsi_plan *plan) { return fsi_kernel_of(plan->kernel)->width(plan); }

int fsi_plan_is_persistent(const fsi_plan *plan)
{
    const fsi_kernel *kernel = fsi_kernel_of(plan->kernel);
    return kernel->persistent && kernel->persistent(plan);
}

int fsi_plan_box(const fsi_problem *p, const fsi_plan *plan)
{
    const fsi_kernel *kernel = fsi_kernel_of(plan->kernel);
    return kernel->box && p->shuffle == FSI_DEF_NONE ? kernel->box(plan) : 1;
}

int64_t fsi_plan_blocks(const fsi_problem *p, const fsi_plan *plan)
{
    const fsi_kernel *kernel = fsi_kernel_of(plan->kernel);
    const int64_t outputs = kernel->whole_blocks ? p->kappa : fsi_outputs_of(p);
    return kernel->blocks ? kernel->blocks(p, plan) : p->M * fsi_div_up(outputs, plan->group);
}

int fsi_plan_cluster(const fsi_plan *plan)
{
    const fsi_kernel *kernel = fsi_kernel_of(plan->kernel);
    return kernel->cluster ? kernel->cluster(plan) : plan->cluster;
}

int64_t fsi_plan_partials(const fsi_problem *p, const fsi_plan *plan)
{
    const int64_t partials = plan->slices / plan->cluster * p->kappa;
    return partials > 1 ? partials : 0;
}

int fsi_plan_sound(const fsi_problem *p, const fsi_plan *plan)
{
    const fsi_kernel *kernel = fsi_kernel_of(plan->kernel);
    if (!kernel || plan->instance < 0 || plan->instance >= kernel->instances || plan->length < 1 || plan->cluster < 1)
        return 0;
    const fsi_gpu_traits any = {kernel->least_arch, 1, INT64_MAX, INT64_MAX, 0};
    const fsi_knobs knobs = {.instance = plan->instance + 1,
                             .threads = plan->threads,
                             .group = plan->group,
                             .chunk = plan->chunk,
                             .cluster = plan->cluster,
                             .length = plan->length};
    fsi_plan again;
    return fsi_kernel_fits(kernel, p, &any) && kernel->plan(p, &any, &knobs, &again) &&
           again.instance == plan->instance && again.slices == plan->slices && again.length == plan->length &&
           again.threads == plan->threads && again.team == plan->team && again.chunk == plan->chunk &&
           again.group == plan->group && again.shared == plan->shared && again.cluster == plan->cluster;
}
