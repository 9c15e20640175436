/* gather_rows_simt.c - plans of gather_rows_simt.cu: rows of A contiguous, few nonzeros, sums in registers.
 *
 * group: outputs together. */
#include "base/dtype.h"
#include "base/math.h"
#include "cuda/blockperm/gather_rows_simt_instances.h"
#include "cuda/plan/kernel.h"

static const struct {
    fs_dtype dtype;
    int outs;
} table[] = {
#define LINE(T, dtype, outs) {dtype, outs},
    FSI_GATHER_ROWS_SIMT(LINE)
#undef LINE
};

static int gather_rows_simt_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    return p->across && p->mapped && p->tile_rows <= 64 && p->packed && p->shuffle != FSI_DEF_GROUPS &&
           fsi_outputs_together(p) * p->tile_nonzeros <= 4 && gpu->shared >= FSI_GATHER_ROWS_SIMT_SHARED;
}

static int gather_rows_simt_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs,
                                 fsi_plan *plan)
{
    const int64_t size = fsi_dtype_size(p->dtype), width = FSI_GATHER_ROWS_SIMT_BYTES / size;
    if (p->n < width && p->n * size % 128 != 0) return 0;
    for (int i = 0; i < FSI_GATHER_ROWS_SIMT_COUNT; i++) {
        if (table[i].dtype != p->dtype || table[i].outs != fsi_outputs_together(p)) continue;
        *plan = fsi_plan_of(FSI_KERNEL_GATHER_ROWS_SIMT, i, FSI_GATHER_ROWS_SIMT_THREADS, FSI_GATHER_ROWS_SIMT_SHARED);
        plan->group = table[i].outs;
        const fsi_split_rule rule = {.blocks = p->M * (fsi_outputs_of(p) / plan->group) * fsi_div_up(p->n, width),
                                     .height = plan->group * p->tile_rows,
                                     .per_processor = 1,
                                     .shortest = 256,
                                     .unit = FSI_GATHER_ROWS_SIMT_STAGE,
                                     .whole = FSI_GATHER_ROWS_SIMT_STAGE};
        return fsi_plan_split(p, gpu, knobs, &rule, plan);
    }
    return 0;
}

/* Few nonzeros of several permutations, where it takes half to nine tenths of the tensor cores' time.  With kappa = 1 both
 * take the same time, and tensor cores lose nothing with small blocks (docs/kernels/gather_rows_simt.md). */
static int gather_rows_simt_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    const fsi_knobs knobs = {0};
    return p->kappa > 1 && fsi_outputs_together(p) > 1 && p->n >= 48 && gather_rows_simt_plan(p, gpu, &knobs, plan);
}

static int gather_rows_simt_candidate(const fsi_problem *p, int i, fsi_knobs *knobs)
{
    (void)p;
    (void)knobs;
    return i < 1;
}

static int64_t gather_rows_simt_width(const fsi_plan *plan)
{
    return FSI_GATHER_ROWS_SIMT_BYTES / fsi_dtype_size(table[plan->instance].dtype);
}
static int gather_rows_simt_box(const fsi_plan *plan)
{
    (void)plan;
    return FSI_GATHER_ROWS_SIMT_BOX;
}

const fsi_kernel fsi_kernel_gather_rows_simt = {.name = "gather_rows_simt",
                                                .least_arch = 90,
                                                .most_arch = 90,
                                                .inputs = 1u << FSI_INPUT_MATRIX,
                                                .instances = FSI_GATHER_ROWS_SIMT_COUNT,
                                                .splits = 5,
                                                .fits = gather_rows_simt_fits,
                                                .choose = gather_rows_simt_choose,
                                                .plan = gather_rows_simt_plan,
                                                .candidate = gather_rows_simt_candidate,
                                                .width = gather_rows_simt_width,
                                                .box = gather_rows_simt_box};
