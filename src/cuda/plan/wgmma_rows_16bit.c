/* wgmma_rows_16bit.c - plans of wgmma_rows_16bit.cu: rows of A contiguous, f16 and bf16, wgmma, S in registers.
 *
 * All slices of a block are one cluster, so that no partial-sum buffer is left. */
#include "base/math.h"
#include "cuda/blockperm/wgmma_rows_16bit_instances.h"
#include "cuda/plan/kernel.h"

static const struct wgmma_rows_16bit_instance {
    fs_dtype dtype;
    int nonzeros, threads, resident, cluster, tiles;
    int64_t shared;
} table[] = {
#define LINE(T, dtype, nonzeros, places, preparers, groups, cluster, tiles) \
    {dtype, \
     nonzeros, \
     32 * preparers + FSI_WGMMA_ROWS_16BIT_GROUP * groups, \
     FSI_WGMMA_ROWS_16BIT_RESIDENT(places), \
     cluster, \
     tiles, \
     FSI_WGMMA_ROWS_16BIT_SHARED(places, groups, cluster, tiles)},
    FSI_WGMMA_ROWS_16BIT(LINE)
#undef LINE
};

/* Output tiles of 64 rows, strata of a power of two of rows; rows of whole 16 bytes, numbers of rows and strides that a tensor
 * map would take, although there is none.  The instances decide about nonzeros, tiles and the type. */
static int wgmma_rows_16bit_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    (void)gpu;
    return p->across && p->mapped && p->kappa == 1 && p->packed && p->tile_rows == 64 && p->k == p->M * p->tiles * 64 &&
           p->shuffle != FSI_DEF_GROUPS && p->n <= 65535 * (int64_t)FSI_WGMMA_ROWS_16BIT_COLUMNS;
}

static int wgmma_rows_16bit_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs,
                                 fsi_plan *plan)
{
    if (!knobs->instance) return 0;
    const struct wgmma_rows_16bit_instance *t = &table[knobs->instance - 1];
    if (t->dtype != p->dtype || t->nonzeros != p->tile_nonzeros || t->tiles != p->tiles || t->shared > gpu->shared)
        return 0;
    *plan = fsi_plan_of(FSI_KERNEL_WGMMA_ROWS_16BIT, knobs->instance - 1, t->threads, t->shared);
    plan->cluster = t->cluster;
    const fsi_knobs slices = {.slices = t->cluster, .length = knobs->length};
    const fsi_split_rule rule = {.unit = FSI_WGMMA_ROWS_16BIT_UNIT, .whole = FSI_WGMMA_ROWS_16BIT_UNIT};
    return fsi_plan_split(p, gpu, &slices, &rule, plan) && plan->slices == t->cluster;
}

/* The instance of which `resident` thread blocks run on an SM, in clusters of this size. */
static int plan_of_form(const fsi_problem *p, const fsi_gpu_traits *gpu, int resident, int cluster, fsi_plan *plan)
{
    for (int i = 0; i < FSI_WGMMA_ROWS_16BIT_COUNT; i++) {
        const fsi_knobs knobs = {.instance = i + 1};
        if (table[i].resident == resident && table[i].cluster == cluster && wgmma_rows_16bit_plan(p, gpu, &knobs, plan))
            return 1;
    }
    return 0;
}

/* Where all thread blocks run at once and fill seven tenths of the GPU, or, of blocks of two output tiles, which wgmma_rows.cu
 * computes in more time, in large matrices where waves are nearly full; docs/kernels/wgmma_rows_16bit.md has the times
 * beside those of wgmma_rows.cu.  With three slices 96 SMs would run, which do not generate S for shuffled rows as fast
 * as they read them. */
static int wgmma_rows_16bit_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    static const struct {
        int resident, cluster;
        int fit;      /* thread blocks of such clusters on 132 SMs (cudaOccupancyMaxActiveClusters) */
        int64_t most; /* elements of A */
    } forms[] = {{1, 1, 132, INT64_MAX},
                 {1, 2, 132, INT64_MAX},
                 {1, 6, 102, INT64_MAX},
                 {2, 1, 264, INT64_MAX},
                 {2, 7, 224, (int64_t)1 << 26}};
    if (p->n < 48) return 0;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const int resident = forms[i].resident, cluster = forms[i].cluster;
        const int64_t blocks = p->M * fsi_div_up(p->n, FSI_WGMMA_ROWS_16BIT_COLUMNS) * cluster;
        if (132 * blocks <= (int64_t)forms[i].fit * gpu->processors &&
            10 * blocks >= 7 * (int64_t)gpu->processors * resident && p->rows <= forms[i].most / p->n &&
            p->local_rows >= 256 * cluster && plan_of_form(p, gpu, resident, cluster, plan))
            return 1;
    }
    const int64_t blocks = p->M * fsi_div_up(p->n, FSI_WGMMA_ROWS_16BIT_COLUMNS);
    const int64_t waves = fsi_div_up(blocks, gpu->processors);
    return p->tiles > 1 && p->rows > ((int64_t)1 << 25) / p->n && 100 * blocks >= 85 * waves * gpu->processors &&
           p->local_rows >= 256 && plan_of_form(p, gpu, 1, 1, plan);
}

static int wgmma_rows_16bit_candidate(const fsi_problem *p, int i, fsi_knobs *knobs)
{
    (void)p;
    knobs->instance = i + 1;
    return i < FSI_WGMMA_ROWS_16BIT_COUNT;
}

static int64_t wgmma_rows_16bit_width(const fsi_plan *plan)
{
    (void)plan;
    return FSI_WGMMA_ROWS_16BIT_COLUMNS;
}

const fsi_kernel fsi_kernel_wgmma_rows_16bit = {.name = "wgmma_rows_16bit",
                                                .least_arch = 90,
                                                .most_arch = 90,
                                                .inputs = 1u << FSI_INPUT_MATRIX,
                                                .instances = FSI_WGMMA_ROWS_16BIT_COUNT,
                                                .splits = 1,
                                                .fits = wgmma_rows_16bit_fits,
                                                .choose = wgmma_rows_16bit_choose,
                                                .plan = wgmma_rows_16bit_plan,
                                                .candidate = wgmma_rows_16bit_candidate,
                                                .width = wgmma_rows_16bit_width};
