/* mma_gather.c - plans of mma_gather.cu: gathered rows, batches that no other tensor-core kernel takes, and, as
 * mma_factored, factored input. */
#include "base/math.h"
#include "cuda/blockperm/mma_gather_instances.h"
#include "cuda/plan/kernel.h"

static const fs_dtype types[] = {
#define LINE(T, dtype) dtype,
    FSI_MMA_GATHER(LINE)
#undef LINE
};
static const int factored_samples[] = {
#define LINE(T, samples) samples,
    FSI_MMA_FACTORED(LINE)
#undef LINE
};

static int mma_gather_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    (void)gpu;
    return p->tile_rows <= 64 && p->dtype != FS_F64;
}

static int64_t blocks_of(const fsi_problem *p, int64_t samples)
{
    return p->M * fsi_outputs_of(p) * fsi_div_up(p->n, samples);
}

static int plan_instance(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, fsi_kernel_id kernel,
                         int instance, int64_t samples, fsi_plan *plan)
{
    *plan = fsi_plan_of(kernel, instance, FSI_MMA_GATHER_THREADS, FSI_MMA_GATHER_SHARED);
    const fsi_split_rule rule = {.blocks = blocks_of(p, samples),
                                 .height = p->tile_rows,
                                 .per_processor = 2,
                                 .shortest = 256,
                                 .unit = FSI_MMA_GATHER_THREADS,
                                 .whole = FSI_MMA_GATHER_THREADS};
    return fsi_plan_split(p, gpu, knobs, &rule, plan);
}

static int mma_gather_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, fsi_plan *plan)
{
    for (int i = 0; i < FSI_MMA_GATHER_COUNT; i++)
        if (types[i] == p->dtype)
            return plan_instance(p, gpu, knobs, FSI_KERNEL_MMA_GATHER, i, FSI_MMA_GATHER_SAMPLES, plan);
    return 0;
}

/* Gathered rows always; batches where they are wide enough to be faster than plain additions
 * (docs/kernels/mma_gather.md). */
static int mma_gather_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    const fsi_knobs knobs = {0};
    const int batch = p->down && !p->across && p->n >= 48 && p->kappa <= 4;
    return (p->input == FSI_INPUT_GATHERED || batch) && mma_gather_plan(p, gpu, &knobs, plan);
}

static int mma_gather_candidate(const fsi_problem *p, int i, fsi_knobs *knobs)
{
    (void)knobs;
    return i < 1 && p->down && !p->across;
}

static int64_t mma_gather_width(const fsi_plan *plan)
{
    (void)plan;
    return FSI_MMA_GATHER_SAMPLES;
}

const fsi_kernel fsi_kernel_mma_gather = {.name = "mma_gather",
                                          .least_arch = 80,
                                          .most_arch = INT32_MAX,
                                          .inputs = 1u << FSI_INPUT_MATRIX | 1u << FSI_INPUT_GATHERED,
                                          .instances = FSI_MMA_GATHER_COUNT,
                                          .splits = 5,
                                          .fits = mma_gather_fits,
                                          .choose = mma_gather_choose,
                                          .plan = mma_gather_plan,
                                          .candidate = mma_gather_candidate,
                                          .width = mma_gather_width};

static int mma_factored_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    return mma_gather_fits(p, gpu) && p->dtype == FS_F32;
}

static int mma_factored_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, fsi_plan *plan)
{
    const int i = knobs->instance - 1;
    return i >= 0 && plan_instance(p, gpu, knobs, FSI_KERNEL_MMA_FACTORED, i, factored_samples[i], plan);
}

/* The widest tiles of which every SM gets its two thread blocks, or nearly. */
static int mma_factored_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    for (int i = 0; i < FSI_MMA_FACTORED_COUNT; i++) {
        const fsi_knobs knobs = {.instance = i + 1};
        if (!mma_factored_plan(p, gpu, &knobs, plan)) return 0;
        if (blocks_of(p, factored_samples[i]) * plan->slices > gpu->processors) break;
    }
    return 1;
}

static int64_t mma_factored_width(const fsi_plan *plan) { return factored_samples[plan->instance]; }

const fsi_kernel fsi_kernel_mma_factored = {.name = "mma_factored",
                                            .least_arch = 80,
                                            .most_arch = INT32_MAX,
                                            .inputs = 1u << FSI_INPUT_FACTORED,
                                            .instances = FSI_MMA_FACTORED_COUNT,
                                            .fits = mma_factored_fits,
                                            .choose = mma_factored_choose,
                                            .plan = mma_factored_plan,
                                            .width = mma_factored_width};
