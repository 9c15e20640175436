/* simt_skinny.c - plans of simt_skinny.cu: few columns, all in one tile; plain additions, a warp owns the sums of an output tile.
 *
 * team: lanes of a round, a power of two of at least n.
 * chunk: rounds whose rows and random words are prepared together. */
#include "base/dtype.h"
#include "base/math.h"
#include "cuda/blockperm/simt_skinny_instances.h"
#include "cuda/plan/kernel.h"

static const struct {
    fs_dtype dtype;
    int nonzeros;
} table[] = {
#define LINE(T, dtype, nonzeros) {dtype, nonzeros},
    FSI_SIMT_SKINNY(LINE)
#undef LINE
};

static int simt_skinny_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    (void)gpu;
    return p->n <= FSI_SIMT_SKINNY_COLUMNS && p->kappa == 1 && p->tile_rows <= FSI_SIMT_SKINNY_HEIGHT &&
           p->tiles <= 4 && p->M <= FSI_SIMT_SKINNY_BLOCKS && p->shuffle != FSI_DEF_GROUPS;
}

static int instance_of(const fsi_problem *p)
{
    int found = 0;
    for (int i = 0; i < FSI_SIMT_SKINNY_COUNT; i++)
        if (table[i].dtype == p->dtype &&
            (table[i].nonzeros == 0 || (p->packed && table[i].nonzeros == p->tile_nonzeros)))
            found = i;
    return found;
}

/* Shared memory of `warps` warps and `rounds` rounds; `each`: blocks of a thread block. */
static int64_t shared_of(const fsi_problem *p, int64_t warps, int64_t each, int64_t rounds)
{
    const int64_t sum_bytes = p->dtype == FS_F64 ? 8 : 4;
    const int64_t bands = fsi_div_up(p->s, fsi_blockperm_per_band(p->s, fsi_div_up(p->block_rows, p->s)));
    const int64_t words = (p->packed ? 1 : FSI_SIMT_SKINNY_DRAW) * bands;
    return FSI_SIMT_SKINNY_SHARED(warps, sum_bytes, rounds, each | 1, p->n * fsi_dtype_size(p->dtype), words);
}

static int simt_skinny_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, fsi_plan *plan)
{
    const int threads = knobs->threads, warps = threads / 32;
    if (threads < 128 || threads > 32 * FSI_SIMT_SKINNY_WARPS || (threads & (threads - 1)) != 0) return 0;
    const int64_t groups = fsi_div_up(p->M, warps / p->tiles), each = fsi_div_up(p->M, groups);
    *plan = fsi_plan_of(FSI_KERNEL_SIMT_SKINNY, instance_of(p), threads, 0);
    plan->team = 1;
    while (plan->team < p->n) plan->team *= 2;
    /* As many rounds as the tables have room for, but not more than a thread block's share of an SM. */
    const int64_t least = FSI_SIMT_SKINNY_UNROLL * (32 / plan->team), step = least * (warps / (each * p->tiles));
    int64_t chunk = knobs->chunk;
    if (chunk == 0) {
        const int64_t room = fsi_min(gpu->shared - shared_of(p, warps, each, 0), 5120 * warps) /
                             shared_of(p, 0, each, 1);
        chunk = fsi_min(room, fsi_div_up(p->local_rows, fsi_max(1, gpu->processors / groups))) / step * step;
        chunk = fsi_max(chunk, room < step ? least : step);
    }
    if (chunk < least || chunk % least || chunk > 1 << 16) return 0;
    plan->chunk = (int)chunk;
    plan->shared = shared_of(p, warps, each, chunk);
    if (plan->shared > gpu->shared) return 0;
    const int64_t resident = fsi_max(1, fsi_min(1024 / threads, gpu->shared_per_processor / (plan->shared + 1024)));
    const fsi_split_rule rule = {.blocks = groups,
                                 .height = p->tile_rows,
                                 .per_processor = (int)resident,
                                 .shortest = chunk,
                                 .unit = chunk,
                                 .whole = chunk};
    return fsi_plan_split(p, gpu, knobs, &rule, plan);
}

static int simt_skinny_candidate(const fsi_problem *p, int i, fsi_knobs *knobs)
{
    (void)p;
    knobs->threads = 32 * FSI_SIMT_SKINNY_WARPS >> i;
    return knobs->threads >= 128;
}

/* Short inputs are left to simt_generic.cu: a slice costs a partial-sum buffer, however short it is. */
static int simt_skinny_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    fsi_knobs knobs = {0};
    if (p->rows < 32768 || p->local_rows < 256) return 0;
    for (int i = 0; simt_skinny_candidate(p, i, &knobs); i++)
        if (simt_skinny_plan(p, gpu, &knobs, plan)) return 1;
    return 0;
}

static int64_t simt_skinny_width(const fsi_plan *plan)
{
    (void)plan;
    return FSI_SIMT_SKINNY_COLUMNS;
}
static int64_t simt_skinny_blocks(const fsi_problem *p, const fsi_plan *plan)
{
    return fsi_div_up(p->M, plan->threads / 32 / p->tiles);
}

const fsi_kernel fsi_kernel_simt_skinny = {.name = "simt_skinny",
                                           .least_arch = 75,
                                           .most_arch = INT32_MAX,
                                           .inputs = 1u << FSI_INPUT_MATRIX,
                                           .instances = FSI_SIMT_SKINNY_COUNT,
                                           .splits = 5,
                                           .fits = simt_skinny_fits,
                                           .choose = simt_skinny_choose,
                                           .plan = simt_skinny_plan,
                                           .candidate = simt_skinny_candidate,
                                           .width = simt_skinny_width,
                                           .blocks = simt_skinny_blocks};
