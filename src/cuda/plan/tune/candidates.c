/* candidates.c - see candidates.h. */
#include "cuda/plan/tune/candidates.h"

#include "base/math.h"
#include "cuda/plan/kernel.h"
#include "cuda/plan/tuning_format.h"

/* The plans with `knobs` and the kernel's own number of slices p, then p/2, 2p, p+1, p-1. */
static int split_candidates(const fsi_kernel *kernel, const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_knobs knobs,
                            fsi_plan *plans, int room)
{
    fsi_plan plan;
    int count = 0;
    if (!kernel->plan(p, gpu, &knobs, &plan)) return 0;
    const int own = plan.slices, slices[] = {own, own / 2, own * 2, own + 1, own - 1};
    for (int i = 0; i < kernel->splits; i++) {
        knobs.slices = slices[i];
        if (slices[i] > 0 && count < room && kernel->plan(p, gpu, &knobs, &plan)) plans[count++] = plan;
    }
    return count;
}

int fsi_choose_candidates(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plans, int room)
{
    int count = 0;
    for (int k = 0; k < FSI_KERNEL_COUNT; k++) {
        const fsi_kernel *kernel = fsi_kernels[k];
        fsi_knobs knobs = {0};
        if (!kernel->candidate || !fsi_kernel_fits(kernel, p, gpu)) continue;
        for (int i = 0; kernel->candidate(p, i, &knobs); i++)
            count += split_candidates(kernel, p, gpu, knobs, plans + count, room - count);
    }
    return count;
}

void fsi_tuning_write_head(FILE *to, const char *gpu_name) { fprintf(to, FSI_TUNING_HEAD " %s\n", gpu_name); }

void fsi_tuning_write(FILE *to, const fsi_problem *p, const fsi_plan *plan)
{
    const fsi_kernel *kernel = fsi_kernel_of(plan->kernel);
    fprintf(to, FSI_TUNING_PROBLEM ": " FSI_TUNING_PLAN("s") "\n", p->rows, p->n, p->k, p->M, p->kappa, p->s,
            p->interleave, p->block_rows, p->tiles, p->tile_rows, p->tile_nonzeros, p->local_rows, (int)p->shuffle,
            (int)p->dtype, (int)p->precision, p->across, p->down, p->aligned, p->whole, p->mapped, p->packed,
            kernel ? kernel->name : "none", plan->instance, plan->slices, plan->length, plan->threads, plan->team,
            plan->chunk, plan->group, plan->shared, plan->cluster);
}
