/* rotate_skinny_simt.c - plans of rotate_skinny_simt.cu: few columns, rows contiguous, packed words; plain additions, a
 * lane owns an output row of every stratum.
 *
 * chunk: windows of a stage, a power of two. */
#include "base/dtype.h"
#include "base/math.h"
#include "cuda/blockperm/rotate_skinny_simt_instances.h"
#include "cuda/plan/kernel.h"

static const struct {
    fs_dtype dtype;
    int vector, strata;
} table[] = {
#define LINE(T, dtype, vector, strata) {dtype, vector, strata},
    FSI_ROTATE_SKINNY_SIMT(LINE)
#undef LINE
};

/* The instances decide about type and strata. */
static int rotate_skinny_simt_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    (void)gpu;
    return p->n <= FSI_ROTATE_SKINNY_SIMT_COLUMNS && p->across && p->packed &&
           p->tile_rows == FSI_ROTATE_SKINNY_SIMT_HEIGHT && p->M <= FSI_ROTATE_SKINNY_SIMT_BLOCKS &&
           p->shuffle != FSI_DEF_GROUPS;
}

/* The instance with the fewest columns of a thread that are all, or that fill 16 bytes; -1: none. */
static int instance_of(const fsi_problem *p)
{
    int found = -1;
    for (int i = 0; i < FSI_ROTATE_SKINNY_SIMT_COUNT; i++)
        if (table[i].dtype == p->dtype && table[i].strata == p->tile_nonzeros &&
            (found < 0 || (table[found].vector < p->n && (table[i].vector <= 4 || p->n > 4))))
            found = i;
    return found;
}

static int64_t floor_power(int64_t x)
{
    int64_t power = 1;
    while (2 * power <= x) power *= 2;
    return power;
}

/* What an instance makes of a problem: tasks that a thread block has room for; outputs and chunks of columns of a
 * block; bytes of a local row in a chunk, as often as it is there; local rows of a window. */
struct layout {
    int64_t slots, outputs, chunks, bytes, strata, window, sum_bytes, vector, quad;
};
static struct layout layout_of(const fsi_problem *p, int instance)
{
    struct layout l;
    l.vector = table[instance].vector, l.strata = table[instance].strata;
    l.window = FSI_ROTATE_SKINNY_SIMT_HEIGHT / l.strata;
    l.sum_bytes = p->dtype == FS_F64 ? 8 : 4;
    const int64_t unit = FSI_ROTATE_SKINNY_SIMT_UNIT(fsi_dtype_size(p->dtype), l.vector);
    const int64_t rows = FSI_ROTATE_SKINNY_SIMT_ROWS(l.strata, unit);
    l.slots = FSI_ROTATE_SKINNY_SIMT_THREADS * rows / l.window *
              FSI_ROTATE_SKINNY_SIMT_TASKS(l.sum_bytes, l.vector, l.strata, rows);
    l.outputs = fsi_outputs_of(p);
    l.chunks = fsi_div_up(p->n, l.vector);
    l.bytes = rows * unit;
    l.quad = FSI_ROTATE_SKINNY_SIMT_QUAD(fsi_dtype_size(p->dtype), l.vector, l.strata);
    return l;
}
/* Blocks of a thread block: as many as it has room for, evenly divided; 0: not even one. */
static int64_t group_of(const fsi_problem *p, const struct layout *l)
{
    const int64_t most = l->slots / (l->outputs * l->chunks);
    return most < 1 ? 0 : fsi_div_up(p->M, fsi_div_up(p->M, most));
}
/* The windows of a span of `group` blocks. */
static int64_t span_of(const struct layout *l, int64_t group)
{
    return fsi_min(FSI_ROTATE_SKINNY_SIMT_SPAN / l->window,
                   floor_power(FSI_ROTATE_SKINNY_SIMT_THREADS / (group * l->outputs)));
}
static int64_t shared_of(const struct layout *l, int64_t group, int64_t stage)
{
    const int64_t slabs = group * l->chunks, tasks = slabs * l->outputs, span = span_of(l, group);
    const int64_t ring = FSI_ROTATE_SKINNY_SIMT_STAGES * stage *
                             FSI_ROTATE_SKINNY_SIMT_WINDOW(slabs, l->bytes, l->strata) +
                         2 * span * group * l->outputs * FSI_ROTATE_SKINNY_SIMT_ENTRY(l->strata) +
                         FSI_ROTATE_SKINNY_SIMT_SPANS * span * l->window * 8 +
                         FSI_ROTATE_SKINNY_SIMT_THREADS * (FSI_ROTATE_SKINNY_SIMT_SHARE + l->quad);
    const int64_t replicas = fsi_min(floor_power(l->slots / tasks), stage);
    const int64_t sums = replicas * tasks * FSI_ROTATE_SKINNY_SIMT_HEIGHT * l->vector * l->sum_bytes +
                         group * l->outputs * FSI_ROTATE_SKINNY_SIMT_DESTINATION;
    return fsi_max(ring, sums);
}

static int rotate_skinny_simt_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs,
                                   fsi_plan *plan)
{
    const int instance = knobs->instance ? knobs->instance - 1 : instance_of(p);
    if (instance < 0 || table[instance].dtype != p->dtype || table[instance].strata != p->tile_nonzeros) return 0;
    const struct layout l = layout_of(p, instance);
    const int64_t group = group_of(p, &l);
    if (group < 1) return 0;
    /* Stages of at most 16 KiB, or a third of what two thread blocks of an SM have. */
    int64_t stage = knobs->chunk;
    const int64_t span = span_of(&l, group);
    if (stage == 0) {
        const int64_t window = FSI_ROTATE_SKINNY_SIMT_WINDOW(group * l.chunks, l.bytes, l.strata);
        stage = fsi_min(span, floor_power(fsi_max(1, fsi_min(16384, gpu->shared_per_processor / 8) / window)));
    }
    if (stage < 1 || stage > span || (stage & (stage - 1)) != 0) return 0;
    *plan = fsi_plan_of(FSI_KERNEL_ROTATE_SKINNY_SIMT, instance, FSI_ROTATE_SKINNY_SIMT_THREADS,
                        shared_of(&l, group, stage));
    plan->chunk = (int)stage;
    if (plan->shared > gpu->shared) return 0;
    const int64_t resident = fsi_max(1, fsi_min(2, gpu->shared_per_processor / (plan->shared + 1024)));
    const fsi_split_rule rule = {.blocks = fsi_div_up(p->M, group),
                                 .height = l.outputs * FSI_ROTATE_SKINNY_SIMT_HEIGHT,
                                 .per_processor = (int)resident,
                                 .shortest = 4 * stage * l.window,
                                 .unit = stage * l.window,
                                 .whole = l.window};
    return fsi_plan_split(p, gpu, knobs, &rule, plan) && plan->length < INT32_MAX / p->M;
}

static int rotate_skinny_simt_candidate(const fsi_problem *p, int i, fsi_knobs *knobs)
{
    (void)p;
    knobs->chunk = i == 0 ? 0 : 1 << (i - 1);
    return i <= 4;
}

/* Short inputs are left to others: a slice costs a partial-sum buffer, however short it is. */
static int rotate_skinny_simt_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    const fsi_knobs knobs = {0};
    const int64_t columns = p->dtype == FS_F64 ? 16 : 32;
    if (p->rows < 32768 || p->local_rows < 256 || p->n > columns || p->kappa > 1) return 0;
    return rotate_skinny_simt_plan(p, gpu, &knobs, plan);
}

static int64_t rotate_skinny_simt_width(const fsi_plan *plan)
{
    (void)plan;
    return FSI_ROTATE_SKINNY_SIMT_COLUMNS;
}
static int64_t rotate_skinny_simt_blocks(const fsi_problem *p, const fsi_plan *plan)
{
    const struct layout l = layout_of(p, plan->instance);
    return fsi_div_up(p->M, group_of(p, &l));
}

const fsi_kernel fsi_kernel_rotate_skinny_simt = {.name = "rotate_skinny_simt",
                                                  .least_arch = 75,
                                                  .most_arch = INT32_MAX,
                                                  .inputs = 1u << FSI_INPUT_MATRIX,
                                                  .instances = FSI_ROTATE_SKINNY_SIMT_COUNT,
                                                  .splits = 5,
                                                  .fits = rotate_skinny_simt_fits,
                                                  .choose = rotate_skinny_simt_choose,
                                                  .plan = rotate_skinny_simt_plan,
                                                  .candidate = rotate_skinny_simt_candidate,
                                                  .width = rotate_skinny_simt_width,
                                                  .blocks = rotate_skinny_simt_blocks};
