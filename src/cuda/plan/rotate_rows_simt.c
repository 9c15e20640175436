/* rotate_rows_simt.c - plans of rotate_rows_simt.cu: rows of A contiguous, plain additions, sums in registers.
 *
 * tile: groups of 512 bytes of a row, 1 or 2.
 * group: outputs together. */
#include "base/dtype.h"
#include "base/math.h"
#include "cuda/blockperm/rotate_rows_simt_instances.h"
#include "cuda/plan/kernel.h"

static const struct {
    fs_dtype dtype;
    int chunked, groups, window;
    int64_t width, shared;
} table[] = {
#define LINE(T, dtype, chunked, groups, window) \
    {dtype, \
     chunked, \
     groups, \
     window, \
     FSI_ROTATE_ROWS_SIMT_WIDTH(dtype == FS_F64 ? 8 : 4, groups), \
     FSI_ROTATE_ROWS_SIMT_SHARED(chunked, groups, window)},
    FSI_ROTATE_ROWS_SIMT(LINE)
#undef LINE
};

/* Whether instance i can compute a problem: a tensor map brings whole groups of 128 bytes, or tiles no wider than A. */
static int instance_fits(const fsi_problem *p, int i)
{
    return table[i].dtype == p->dtype && table[i].window * p->tile_nonzeros == p->tile_rows &&
           (table[i].chunked || (p->mapped && (p->n * fsi_dtype_size(p->dtype) % 128 == 0 || p->n >= table[i].width)));
}
/* The instance with tiles of so many groups, or -1.  A tensor map takes less time than copies by chunks. */
static int instance_of(const fsi_problem *p, int groups)
{
    int found = -1;
    for (int i = 0; i < FSI_ROTATE_ROWS_SIMT_COUNT; i++)
        if (table[i].groups == groups && instance_fits(p, i) && (found < 0 || !table[i].chunked)) found = i;
    return found;
}

static int rotate_rows_simt_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    const int found = instance_of(p, 2);
    return p->across && p->packed && p->tile_rows == 64 && p->shuffle != FSI_DEF_GROUPS && found >= 0 &&
           gpu->shared >= table[found].shared;
}

static int rotate_rows_simt_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs,
                                 fsi_plan *plan)
{
    const int found = knobs->instance ? knobs->instance - 1 : instance_of(p, knobs->tile);
    if (found < 0 || !instance_fits(p, found) || table[found].shared > gpu->shared) return 0;
    *plan = fsi_plan_of(FSI_KERNEL_ROTATE_ROWS_SIMT, found, FSI_ROTATE_ROWS_SIMT_THREADS, table[found].shared);
    plan->group = (int)fsi_min(fsi_outputs_together(p), FSI_ROTATE_ROWS_SIMT_OUTS);
    const fsi_split_rule rule = {.blocks = p->M * (fsi_outputs_of(p) / plan->group) *
                                           fsi_div_up(p->n, table[found].width),
                                 .height = plan->group * p->tile_rows,
                                 .per_processor = 1,
                                 .shortest = 256,
                                 .unit = 64,
                                 .whole = 64};
    return fsi_plan_split(p, gpu, knobs, &rule, plan);
}

/* Fewer than 17 columns are left to kernels with narrower tiles.  Of floats, tensor cores take the time of fewer
 * slices in small matrices, and have narrower tiles (docs/kernels/rotate_rows_simt.md). */
static int rotate_rows_simt_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    const int64_t size = fsi_dtype_size(p->dtype), wide_columns = FSI_ROTATE_ROWS_SIMT_WIDTH(size, 2);
    const fsi_knobs narrow = {.tile = 1}, wide = {.tile = 2};
    if (p->n < 17) return 0;
    if (p->dtype == FS_F32 && (p->rows <= ((int64_t)1 << 25) / p->n || 4 * p->n < 3 * fsi_round_up(p->n, wide_columns)))
        return 0;
    if (2 * p->n <= wide_columns && rotate_rows_simt_plan(p, gpu, &narrow, plan)) return 1;
    return rotate_rows_simt_plan(p, gpu, &wide, plan);
}

static int rotate_rows_simt_candidate(const fsi_problem *p, int i, fsi_knobs *knobs)
{
    (void)p;
    knobs->tile = 2 - i;
    return i < 2;
}

static int64_t rotate_rows_simt_width(const fsi_plan *plan) { return table[plan->instance].width; }

const fsi_kernel fsi_kernel_rotate_rows_simt = {.name = "rotate_rows_simt",
                                                .least_arch = 90,
                                                .most_arch = 90,
                                                .inputs = 1u << FSI_INPUT_MATRIX,
                                                .instances = FSI_ROTATE_ROWS_SIMT_COUNT,
                                                .splits = 5,
                                                .fits = rotate_rows_simt_fits,
                                                .choose = rotate_rows_simt_choose,
                                                .plan = rotate_rows_simt_plan,
                                                .candidate = rotate_rows_simt_candidate,
                                                .width = rotate_rows_simt_width};
