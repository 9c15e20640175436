/* choose.c - see plan.h. */
#include "cuda/plan/plan.h"

#include <string.h>

#include "base/dtype.h"
#include "cuda/plan/local_rows.h"
#include "cuda/plan/tuning.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

fsi_problem fsi_problem_of(const fsi_blockperm *S, int64_t row0, const fs_matrix *A, fs_precision precision)
{
    fsi_problem p = {.rows = A->rows,
                     .n = A->cols,
                     .k = S->k,
                     .M = S->M,
                     .kappa = S->kappa,
                     .s = S->s,
                     .interleave = S->interleave,
                     .block_rows = S->out.small + (S->out.larger > 0),
                     .shuffle = S->shuffle,
                     .dtype = A->dtype,
                     .precision = precision};
    p.local_rows = S->shuffle == FSI_DEF_NONE ? least(S->in.small + (S->in.larger > 0), A->rows)
                                              : fsi_local_rows_of(S, 0, row0, A->rows).count;
    p.across = A->col_stride == 1 || A->cols == 1;
    p.down = A->row_stride == 1 && A->cols > 1;
    const int64_t pitch = (p.across ? A->row_stride : A->col_stride) * fsi_dtype_size(A->dtype);
    p.aligned = (uintptr_t)A->data % 16 == 0 && pitch % 16 == 0;
    /* Lines of 32 coordinates start at multiples of 32 of the whole input. */
    if (p.down && row0 * fsi_dtype_size(A->dtype) % 16 != 0) p.aligned = 0;
    p.whole = p.aligned && (p.across ? A->cols : A->rows) * fsi_dtype_size(A->dtype) % 16 == 0;
    /* Strides of a map are positive, its sides too, its coordinates are of 31 bits, and a slice may end behind the last
     * row. */
    const int describable = A->rows > 0 && A->rows <= INT32_MAX - (1 << 16) && A->cols <= INT32_MAX - (1 << 16);
    if (p.across) p.mapped = (A->rows == 1 || A->row_stride > 0) && p.whole && describable && pitch < (int64_t)1 << 40;
    else p.mapped = p.down && A->col_stride > 0 && p.aligned && describable && pitch < (int64_t)1 << 40;
    p.once = S->words == 1 && S->accepts[0] && (S->out.larger == 0 || S->accepts[1]);
    return p;
}

int64_t fsi_plan_partials(const fsi_problem *p, const fsi_plan *plan)
{
    const int64_t partials = plan->slices / plan->cluster * p->kappa;
    return partials > 1 ? partials : 0;
}

/* How many slices: enough thread blocks to fill the GPU `waves` times or so, none shorter than `shortest`
 * local rows.  Fewer, longer slices are better as long as the last wave is nearly full: every slice costs a
 * partial-sum buffer of sums written and read. */
static int choose_parts(const fsi_problem *p, const fsi_gpu_traits *gpu, int64_t blocks, int per_processor,
                        int64_t shortest)
{
    const int64_t slots_at_once = (int64_t)gpu->processors * per_processor;
    const int64_t limit = least(most(1, p->local_rows / shortest), 1024);
    int best = 1;
    double least_time = 1e300;
    for (int64_t slices = 1; slices <= limit; slices++) {
        const double waves = (double)div_up(blocks * slices, slots_at_once);
        /* time of the busiest processor, in rows of A read, and what the partial-sum buffers cost all of them */
        const double work = waves * (double)p->local_rows / (double)slices * (double)slots_at_once;
        const double partials = slices * p->kappa > 1
                                    ? 2.0 * (double)(slices * p->kappa * p->block_rows) * (double)blocks
                                    : 0.0;
        const double time = work + 0.5 * partials;
        if (time < 0.98 * least_time) {
            least_time = time;
            best = (int)slices;
        }
        if (blocks * slices >= 8 * slots_at_once) break;
    }
    return best;
}

static void cut(fsi_plan *plan, const fsi_problem *p, int slices, int64_t multiple)
{
    plan->length = most(multiple, div_up(div_up(p->local_rows, slices), multiple) * multiple);
    plan->slices = (int)most(1, div_up(p->local_rows, plan->length));
}

static const struct {
    fs_dtype dtype;
    int passes, groups, stages;
    int64_t shared;
} mma_rows[] = {
#define LINE(T, dtype, passes, groups, stages) \
    {dtype, passes, groups, stages, FSI_MMA_ROWS_SHARED(dtype == FS_F32 ? 4 : 2, groups, stages)},
    FSI_MMA_ROWS(LINE)
#undef LINE
};
static const struct {
    fs_dtype dtype;
    int outs, tiles, many, box;
    int64_t width, group, shared;
} wgmma_rows[] = {
#define LINE(T, dtype, outs, tiles, stages, sets, many) \
    {dtype, \
     outs, \
     tiles, \
     many, \
     FSI_WGMMA_ROWS_BOX(dtype == FS_F32 ? 4 : 2, outs, tiles, 1), \
     FSI_WGMMA_ROWS_WIDTH(outs, tiles), \
     dtype == FS_F32 ? 32 : 64, \
     FSI_WGMMA_ROWS_SHARED(dtype == FS_F32 ? 4 : 2, outs, tiles, stages, sets, many)},
    FSI_WGMMA_ROWS(LINE)
#undef LINE
};
static const struct {
    fs_dtype dtype;
    int nonzeros, threads, resident, cluster;
    int64_t shared;
} wgmma_rows_16bit[] = {
#define LINE(T, dtype, nonzeros, places, preparers, groups, cluster) \
    {dtype, \
     nonzeros, \
     32 * preparers + FSI_WGMMA_ROWS_16BIT_GROUP * groups, \
     FSI_WGMMA_ROWS_16BIT_RESIDENT(places), \
     cluster, \
     FSI_WGMMA_ROWS_16BIT_SHARED(nonzeros, places, groups, cluster)},
    FSI_WGMMA_ROWS_16BIT(LINE)
#undef LINE
};
static const struct {
    fs_dtype dtype;
    int outs;
} gather_rows_simt[] = {
#define LINE(T, dtype, outs) {dtype, outs},
    FSI_GATHER_ROWS_SIMT(LINE)
#undef LINE
};
static const struct {
    fs_dtype dtype;
    int interleave, samples, boxes, cluster, threads;
    int64_t shared;
} wgmma_groups[] = {
#define LINE(T, dtype, interleave, samples, stages, panels) \
    {dtype, \
     interleave, \
     samples, \
     FSI_WGMMA_GROUPS_BOXES(dtype == FS_F32 ? 4 : 2), \
     FSI_WGMMA_GROUPS_CLUSTER(dtype == FS_F32 ? 4 : 2, interleave), \
     FSI_WGMMA_GROUPS_THREADS(dtype == FS_F32 ? 4 : 2, interleave, samples), \
     FSI_WGMMA_GROUPS_SHARED(dtype == FS_F32 ? 4 : 2, interleave, stages, panels)},
    FSI_WGMMA_GROUPS(LINE)
#undef LINE
};
static const fs_dtype direct[] = {
#define LINE(T, dtype) dtype,
    FSI_MMA_GATHER(LINE)
#undef LINE
};
static const int products[] = {
#define LINE(T, samples) samples,
    FSI_MMA_FACTORED(LINE)
#undef LINE
};
static const struct {
    fs_dtype dtype;
    int vector, nonzeros;
} columns[] = {
#define LINE(T, dtype, vector, nonzeros) {dtype, vector, nonzeros},
    FSI_SIMT_GENERIC(LINE)
#undef LINE
};

static const struct {
    fs_dtype dtype;
    int nonzeros;
} narrow[] = {
#define LINE(T, dtype, nonzeros) {dtype, nonzeros},
    FSI_SIMT_SKINNY(LINE)
#undef LINE
};

static const struct {
    fs_dtype dtype;
    int vector, nonzeros, warps;
    int64_t shared;
} tall[] = {
#define LINE(T, dtype, vector, nonzeros, stages, warps) \
    {dtype, vector, nonzeros, warps, FSI_MMA_SKINNY_SHARED(dtype == FS_F32 ? 4 : 2, vector, stages, warps)},
    FSI_MMA_SKINNY(LINE)
#undef LINE
};

/* Columns of A that a thread block of a plan makes. */
int64_t fsi_plan_width(const fsi_plan *plan)
{
    if (plan->kernel == FSI_KERNEL_SIMT_SKINNY) return FSI_SIMT_SKINNY_COLUMNS;
    if (plan->kernel == FSI_KERNEL_MMA_SKINNY) return 8 * (int64_t)tall[plan->instance].vector;
    if (plan->kernel == FSI_KERNEL_WGMMA_ROWS) return wgmma_rows[plan->instance].width;
    if (plan->kernel == FSI_KERNEL_WGMMA_ROWS_16BIT) return FSI_WGMMA_ROWS_16BIT_COLUMNS;
    if (plan->kernel == FSI_KERNEL_GATHER_ROWS_SIMT)
        return FSI_GATHER_ROWS_SIMT_BYTES / fsi_dtype_size(gather_rows_simt[plan->instance].dtype);
    if (plan->kernel == FSI_KERNEL_WGMMA_GROUPS) return wgmma_groups[plan->instance].samples;
    if (plan->kernel == FSI_KERNEL_MMA_GATHER) return FSI_MMA_GATHER_SAMPLES;
    if (plan->kernel == FSI_KERNEL_MMA_FACTORED) return products[plan->instance];
    if (plan->kernel == FSI_KERNEL_MMA_ROWS) return 128 * (int64_t)mma_rows[plan->instance].groups;
    return (int64_t)plan->team * columns[plan->instance].vector;
}

int fsi_plan_takes_many(const fsi_plan *plan)
{
    return plan->kernel == FSI_KERNEL_WGMMA_ROWS && wgmma_rows[plan->instance].many;
}

int fsi_plan_box(const fsi_problem *p, const fsi_plan *plan)
{
    if (p->shuffle != FSI_DEF_NONE) return 1;
    return plan->kernel == FSI_KERNEL_GATHER_ROWS_SIMT ? FSI_GATHER_ROWS_SIMT_BOX : wgmma_rows[plan->instance].box;
}

int64_t fsi_plan_blocks(const fsi_problem *p, const fsi_plan *plan)
{
    if (plan->kernel == FSI_KERNEL_WGMMA_GROUPS) return p->M / p->interleave * div_up(p->interleave, 8);
    if (plan->kernel == FSI_KERNEL_SIMT_SKINNY || plan->kernel == FSI_KERNEL_MMA_SKINNY)
        return div_up(p->M, plan->threads / 32);
    return p->M * div_up(p->kappa, plan->group);
}

int fsi_plan_cluster(const fsi_plan *plan)
{
    return plan->kernel == FSI_KERNEL_WGMMA_GROUPS ? wgmma_groups[plan->instance].cluster : plan->cluster;
}

/* The tensor cores take blocks of at most 64 rows, and rows of A that are contiguous and whole 16 bytes. */
static int tensor_rows_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    return gpu->arch >= 80 && p->across && p->whole && p->block_rows <= 64 && p->dtype != FS_F64;
}
/* Pieces of bf16; the kernels of sm_90 have their own of f16. */
static int passes_of(const fsi_problem *p)
{
    return p->dtype != FS_F32 ? 1 : p->precision == FS_PRECISION_FAST ? 2 : 3;
}
static int plan_tensor_rows(const fsi_problem *p, const fsi_gpu_traits *gpu, int groups, int slices, fsi_plan *plan)
{
    for (int i = 0; i < FSI_MMA_ROWS_COUNT; i++) {
        if (mma_rows[i].dtype != p->dtype || mma_rows[i].passes != passes_of(p) || mma_rows[i].groups != groups ||
            mma_rows[i].shared > gpu->shared)
            continue;
        memset(plan, 0, sizeof *plan);
        plan->cluster = 1;
        plan->kernel = FSI_KERNEL_MMA_ROWS;
        plan->instance = i;
        plan->threads = 128 * groups;
        plan->group = 1;
        plan->shared = mma_rows[i].shared;
        const int64_t blocks = p->M * p->kappa * div_up(p->n, 128 * groups);
        const int resident = (int)most(1, least(2 / groups, gpu->shared_per_processor / (mma_rows[i].shared + 1024)));
        cut(plan, p, slices ? slices : choose_parts(p, gpu, blocks, resident, 256), 128);
        return 1;
    }
    return 0;
}

/* One float in four loses its last bit on the way into two f16 pieces.  A sum of four terms, rounded as often, hides
 * that; sums of fewer are left to kernels that cut or add exactly. */
static int halves_suffice(const fsi_problem *p)
{
    return p->dtype != FS_F32 || (double)p->rows * (double)(p->s * p->kappa) >= 4 * (double)p->k;
}
static int hopper_rows_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    return gpu->arch == 90 && tensor_rows_fits(p, gpu) && p->mapped && halves_suffice(p);
}
/* Permutations of one read of A: as many as an instance takes together, without one left over. */
static int together(const fsi_problem *p) { return p->kappa % 4 == 0 ? 4 : p->kappa % 2 == 0 ? 2 : 1; }
static int listed_rows_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    return gpu->arch == 90 && p->across && p->mapped && p->block_rows <= 64 && p->once &&
           p->shuffle != FSI_DEF_GROUPS && together(p) * p->s <= 4 && gpu->shared >= FSI_GATHER_ROWS_SIMT_SHARED;
}
static int plan_listed_rows(const fsi_problem *p, const fsi_gpu_traits *gpu, int slices, fsi_plan *plan)
{
    const int64_t size = fsi_dtype_size(p->dtype), width = FSI_GATHER_ROWS_SIMT_BYTES / size;
    if (p->n < width && p->n * size % 128 != 0) return 0;
    for (int i = 0; i < FSI_GATHER_ROWS_SIMT_COUNT; i++) {
        if (gather_rows_simt[i].dtype != p->dtype || gather_rows_simt[i].outs != together(p)) continue;
        memset(plan, 0, sizeof *plan);
        plan->cluster = 1;
        plan->kernel = FSI_KERNEL_GATHER_ROWS_SIMT;
        plan->instance = i;
        plan->threads = FSI_GATHER_ROWS_SIMT_THREADS;
        plan->group = together(p);
        plan->shared = FSI_GATHER_ROWS_SIMT_SHARED;
        const int64_t blocks = p->M * (p->kappa / plan->group) * div_up(p->n, width);
        cut(plan, p, slices ? slices : choose_parts(p, gpu, blocks, 1, 256), FSI_GATHER_ROWS_SIMT_STAGE);
        return 1;
    }
    return 0;
}

/* Tiles of 64 columns that a warpgroup has: two where nothing else is said, one for kappa > 1. */
static int plan_hopper_rows(const fsi_problem *p, const fsi_gpu_traits *gpu, int tiles, int slices, fsi_plan *plan)
{
    const int outs = together(p);
    for (int i = 0; i < FSI_WGMMA_ROWS_COUNT; i++) {
        if (wgmma_rows[i].dtype != p->dtype || wgmma_rows[i].outs != outs || wgmma_rows[i].tiles != tiles ||
            wgmma_rows[i].many || (p->n % wgmma_rows[i].group != 0 && p->n < wgmma_rows[i].width) ||
            wgmma_rows[i].shared > gpu->shared)
            continue;
        memset(plan, 0, sizeof *plan);
        plan->kernel = FSI_KERNEL_WGMMA_ROWS;
        plan->instance = i;
        plan->threads = 512;
        plan->group = outs;
        plan->shared = wgmma_rows[i].shared;
        const int64_t blocks = p->M * (p->kappa / outs) * div_up(p->n, wgmma_rows[i].width);
        cut(plan, p, slices ? slices : choose_parts(p, gpu, blocks, 1, 256), 64);
        /* Two slices add up without a partial-sum buffer.  (H200, 65536 x 1024, k = 1024: 71 us instead of 74.  Pairs of more slices
         * gain nothing over partial-sum buffers, and 132 processors hold 66 clusters of two but only 120 thread blocks in clusters
         * of four or eight, which took twice as long.) */
        plan->cluster = plan->slices == 2 ? 2 : 1;
        /* More pieces than processors: a thread block takes several, and the next is on its way while sums are stored.
         * (H200, on top of 75f630d, k = 4096: 16384 x 1024 in f16 16.7 us instead of 21.6, in f32 29.1 instead of 31.4;
         * 65536 x 1024 in f16 41.2 instead of 45.) */
        for (int k = 0; k < FSI_WGMMA_ROWS_COUNT && plan->cluster == 1 && blocks * plan->slices > gpu->processors; k++)
            if (wgmma_rows[k].many && wgmma_rows[k].dtype == p->dtype && wgmma_rows[k].outs == outs &&
                wgmma_rows[k].tiles == tiles && wgmma_rows[k].shared <= gpu->shared) {
                plan->instance = k;
                plan->shared = wgmma_rows[k].shared;
            }
        return 1;
    }
    return 0;
}
/* Wide tiles are faster, but for small matrices of floats not by as much as adding up slices takes (H200, k = 1024, just
 * before 2a3de1a: 26.5 us against 31.8 for 16384 x 1024, 83.5 against 83.2 for 65536 x 1024). */
static int choose_hopper_rows(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    const int small = p->dtype == FS_F32 && p->rows <= ((int64_t)1 << 25) / p->n;
    fsi_plan thin;
    const int one = plan_hopper_rows(p, gpu, 1, 0, &thin);
    const int two = p->n > 128 && plan_hopper_rows(p, gpu, 2, 0, plan);
    if (one && (!two || (small && thin.slices < plan->slices))) *plan = thin;
    return one || two;
}

/* Blocks of 64 rows, the nonzeros of a column in slices of powers of two; rows of whole 16 bytes, numbers of rows and
 * strides that a tensor map would take, too, although there is none.  s and the type are a matter of the instances. */
static int half_rows_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    return gpu->arch == 90 && p->across && p->mapped && p->kappa == 1 && p->once && p->block_rows == 64 &&
           p->k == p->M * 64 && p->shuffle != FSI_DEF_GROUPS && p->n <= 65535 * (int64_t)FSI_WGMMA_ROWS_16BIT_COLUMNS;
}
/* The instance with `resident` thread blocks for a processor and slices that are one cluster of so many. */
static int plan_half_rows(const fsi_problem *p, const fsi_gpu_traits *gpu, int resident, int cluster, fsi_plan *plan)
{
    for (int i = 0; i < FSI_WGMMA_ROWS_16BIT_COUNT; i++) {
        if (wgmma_rows_16bit[i].dtype != p->dtype || wgmma_rows_16bit[i].nonzeros != p->s ||
            wgmma_rows_16bit[i].resident != resident || wgmma_rows_16bit[i].cluster != cluster ||
            wgmma_rows_16bit[i].shared > gpu->shared)
            continue;
        memset(plan, 0, sizeof *plan);
        plan->kernel = FSI_KERNEL_WGMMA_ROWS_16BIT;
        plan->instance = i;
        plan->threads = wgmma_rows_16bit[i].threads;
        plan->group = 1;
        plan->shared = wgmma_rows_16bit[i].shared;
        plan->cluster = cluster;
        cut(plan, p, cluster, FSI_WGMMA_ROWS_16BIT_UNIT);
        return plan->slices == cluster;
    }
    return 0;
}
/* Where all thread blocks run at once and fill seven tenths of the GPU.  H200, f16 (2026-11-16, on top of 4d6ab92), in
 * us, by wgmma_rows.cu in brackets, 16384 x 1024: k = 64 14.3 (19.3), 256 14.0 (19.6), 512 13.7 (19.7), 1024 14.7
 * (17.6); 65536 x 1024: 37.5 (41.5), 35.7 (41.1), 35.3 (41.0), 36.0 (38.5); 131072 x 512: k = 256 39.5 (42.5), 512 35.8
 * (41.3), 1024 35.7 (41.1), 2048 36.0 (38.5); 262144 x 512: 512 66.2 (70.2), 1024 66.2 (70.6), 2048 67.5 (69.4), but
 * 256, seven slices, 74 (72.5).  Three slices take 45 us where seven take 39.5: 96 processors do not prepare dealt rows
 * as fast as they are read.  Sixteen slices, two of them on a processor, take 54 us for k = 64 of 131072 x 512 (42). */
static int choose_half_rows(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    static const struct {
        int resident, cluster;
        int fit;      /* thread blocks of such clusters on 132 processors (cudaOccupancyMaxActiveClusters) */
        int64_t most; /* elements of A */
    } forms[] = {{1, 1, 132, INT64_MAX},
                 {1, 2, 132, INT64_MAX},
                 {1, 6, 102, INT64_MAX},
                 {2, 1, 264, INT64_MAX},
                 {2, 7, 224, (int64_t)1 << 26}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const int resident = forms[i].resident, cluster = forms[i].cluster;
        const int64_t blocks = p->M * div_up(p->n, FSI_WGMMA_ROWS_16BIT_COLUMNS) * cluster;
        if (132 * blocks <= (int64_t)forms[i].fit * gpu->processors &&
            10 * blocks >= 7 * (int64_t)gpu->processors * resident && p->rows <= forms[i].most / p->n &&
            p->local_rows >= 256 * cluster && plan_half_rows(p, gpu, resident, cluster, plan))
            return 1;
    }
    return 0;
}

static int hopper_lines_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    return gpu->arch == 90 && p->down && !p->across && p->aligned && p->shuffle == FSI_DEF_GROUPS && p->kappa == 1 &&
           p->block_rows <= 64 && halves_suffice(p);
}
/* `samples` of a thread block: 64 or 128; the other one where there is no such instance. */
static int plan_hopper_lines(const fsi_problem *p, const fsi_gpu_traits *gpu, int samples, int slices, fsi_plan *plan)
{
    int found = -1;
    for (int i = 0; i < FSI_WGMMA_GROUPS_COUNT; i++)
        if (wgmma_groups[i].dtype == p->dtype && wgmma_groups[i].interleave == p->interleave &&
            (wgmma_groups[i].boxes ? p->mapped : p->whole) && wgmma_groups[i].shared <= gpu->shared &&
            (found < 0 || wgmma_groups[i].samples == samples))
            found = i;
    if (found < 0) return 0;
    memset(plan, 0, sizeof *plan);
    plan->cluster = 1;
    plan->kernel = FSI_KERNEL_WGMMA_GROUPS;
    plan->instance = found;
    plan->threads = wgmma_groups[found].threads;
    plan->group = 1;
    plan->shared = wgmma_groups[found].shared;
    /* Local rows of a step: a warpgroup takes 64 of one block or 16 of each of four, and two may have different ones. */
    const int apart = p->interleave < 8 && wgmma_groups[found].samples == 64;
    const int64_t step = (p->interleave == 1 ? 64 : 16) * (apart ? 2 : 1);
    const int64_t blocks = fsi_plan_blocks(p, plan) * div_up(p->n, wgmma_groups[found].samples);
    cut(plan, p, slices ? slices : choose_parts(p, gpu, blocks, 1, 8 * step), step);
    return 1;
}

static int plan_columns(const fsi_problem *p, const fsi_gpu_traits *gpu, int vector, int threads, int group, int slices,
                        fsi_plan *plan)
{
    const int64_t sum_bytes = p->dtype == FS_F64 ? 8 : 4;
    const int nonzeros = (int)(group * p->s);
    int found = -1;
    for (int i = 0; i < FSI_SIMT_GENERIC_COUNT; i++) {
        if (columns[i].dtype != p->dtype || columns[i].vector != vector) continue;
        if (columns[i].nonzeros == 0 && found < 0) found = i;
        if (columns[i].nonzeros == nonzeros && p->kappa % group == 0) found = i;
    }
    if (found < 0 || (vector > 1 && (p->n % vector || !p->across || !p->aligned))) return 0;
    memset(plan, 0, sizeof *plan);
    plan->cluster = 1;
    plan->kernel = FSI_KERNEL_SIMT_GENERIC;
    plan->instance = found;
    plan->threads = threads;
    plan->group = group;
    plan->team = 1;
    while (plan->team < threads && plan->team * vector < p->n) plan->team *= 2;
    /* A chunk has room for the loads in flight of every team, and is long unless its codes would need much memory. */
    const int least_chunk = FSI_SIMT_GENERIC_UNROLL * threads / plan->team;
    plan->chunk = (int)most(2 * least_chunk, 128);
    while (plan->chunk > least_chunk && (int64_t)plan->chunk * nonzeros * 4 > 16384) plan->chunk /= 2;
    plan->shared = FSI_SIMT_GENERIC_HEAD + plan->chunk * 8 +
                   (((int64_t)plan->chunk * nonzeros * 4 + 15) & ~(int64_t)15) +
                   (group * p->block_rows + 1) * threads * vector * sum_bytes;
    if (plan->shared > gpu->shared) return 0;
    const int64_t blocks = p->M * div_up(p->kappa, group) * div_up(p->n, (int64_t)plan->team * vector);
    const int resident = (int)most(1, least(2048 / threads, gpu->shared_per_processor / (plan->shared + 1024)));
    cut(plan, p, slices ? slices : choose_parts(p, gpu, blocks, resident, 4 * (threads / plan->team) + 64),
        plan->chunk);
    return 1;
}

/* Few columns, all in one tile. */
static int narrow_fits(const fsi_problem *p)
{
    return p->n <= FSI_SIMT_SKINNY_COLUMNS && p->kappa == 1 && p->block_rows <= FSI_SIMT_SKINNY_HEIGHT &&
           p->M <= FSI_SIMT_SKINNY_BLOCKS && p->shuffle != FSI_DEF_GROUPS;
}
/* A chunk of 0 rounds: as many as its tables have room for, but not more than a processor's share. */
static int plan_narrow(const fsi_problem *p, const fsi_gpu_traits *gpu, int warps, int64_t chunk, int slices,
                       fsi_plan *plan)
{
    const int64_t size = fsi_dtype_size(p->dtype), sum_bytes = p->dtype == FS_F64 ? 8 : 4;
    const int64_t words = div_up(p->s, fsi_blockperm_per_word(div_up(p->block_rows, p->s)));
    const int64_t groups = div_up(p->M, warps), each = div_up(p->M, groups);
    const int four = p->s == 4 && p->k % p->M == 0 && p->block_rows % 4 == 0 &&
                     (p->block_rows & (p->block_rows - 1)) == 0;
    memset(plan, 0, sizeof *plan);
    plan->cluster = 1;
    plan->kernel = FSI_KERNEL_SIMT_SKINNY;
    for (int i = 0; i < FSI_SIMT_SKINNY_COUNT; i++)
        if (narrow[i].dtype == p->dtype && (narrow[i].nonzeros == 0 || four)) plan->instance = i;
    plan->group = 1;
    plan->team = 1;
    while (plan->team < p->n) plan->team *= 2;
    plan->threads = 32 * warps;
    const int64_t least_chunk = FSI_SIMT_SKINNY_UNROLL * (32 / plan->team), step = least_chunk * (warps / each);
    if (chunk == 0) {
        const int64_t sums = FSI_SIMT_SKINNY_SHARED(warps, sum_bytes, 0, each | 1, p->n * size, words);
        const int64_t round = FSI_SIMT_SKINNY_SHARED(0, sum_bytes, 1, each | 1, p->n * size, words);
        const int64_t room = least(gpu->shared - sums, 5120 * warps) / round;
        chunk = least(room, div_up(p->local_rows, most(1, gpu->processors / groups))) / step * step;
        chunk = most(chunk, room < step ? least_chunk : step);
    }
    if (chunk < least_chunk || chunk % least_chunk || chunk > 1 << 16) return 0;
    plan->chunk = (int)chunk;
    plan->shared = FSI_SIMT_SKINNY_SHARED(warps, sum_bytes, chunk, each | 1, p->n * size, words);
    if (plan->shared > gpu->shared) return 0;
    const int resident = (int)most(1, least(1024 / plan->threads, gpu->shared_per_processor / (plan->shared + 1024)));
    cut(plan, p, slices ? slices : choose_parts(p, gpu, groups, resident, plan->chunk), plan->chunk);
    return 1;
}

/* Few columns, blocks of 64 rows; s is a matter of the instances. */
static int tall_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    return gpu->arch >= 80 && p->n <= FSI_MMA_SKINNY_COLUMNS && p->kappa == 1 && p->once &&
           p->block_rows == FSI_MMA_SKINNY_HEIGHT && p->k == p->M * FSI_MMA_SKINNY_HEIGHT &&
           p->M <= FSI_MMA_SKINNY_BLOCKS && p->shuffle != FSI_DEF_GROUPS;
}
static int plan_tall(const fsi_problem *p, const fsi_gpu_traits *gpu, int vector, int slices, fsi_plan *plan)
{
    for (int i = 0; i < FSI_MMA_SKINNY_COUNT; i++) {
        if (tall[i].dtype != p->dtype || tall[i].vector != vector || tall[i].nonzeros != p->s ||
            tall[i].shared > gpu->shared)
            continue;
        memset(plan, 0, sizeof *plan);
        plan->cluster = 1;
        plan->kernel = FSI_KERNEL_MMA_SKINNY;
        plan->instance = i;
        plan->threads = 32 * tall[i].warps;
        plan->group = 1;
        plan->shared = tall[i].shared;
        const int64_t blocks = fsi_plan_blocks(p, plan) * div_up(p->n, 8 * vector);
        cut(plan, p, slices ? slices : choose_parts(p, gpu, blocks, 1, 512), 128);
        return plan->length < INT32_MAX / p->M;
    }
    return 0;
}
/* Two neighbouring columns of a thread where one copy brings them. */
static int choose_tall(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    if (!p->across) return 0;
    if (p->aligned && p->n % 2 == 0 && plan_tall(p, gpu, 2, 0, plan)) return 1;
    return p->dtype == FS_F32 && plan_tall(p, gpu, 1, 0, plan);
}

/* The widest loads that the matrix allows: 16 bytes, 8 for two-byte elements. */
static int widest(const fsi_problem *p)
{
    int vector = p->dtype == FS_F64 ? 2 : 4;
    while (vector > 1 && (!p->across || !p->aligned || p->n % vector)) vector /= 2;
    return vector;
}

/* Plain additions: as many permutations together, as wide and as many threads as shared memory holds. */
static int choose_columns(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    for (int group = (int)least(p->kappa, 4); group >= 1; group--)
        for (int vector = widest(p); vector >= 1; vector /= 2)
            for (int threads = 128; threads >= 32; threads /= 2) {
                const int64_t tile = group * p->block_rows * threads * vector * (p->dtype == FS_F64 ? 8 : 4);
                /* Three tiles to a processor keep its shared memory busy; the last resort may fill it. */
                const int last = vector == 1 && threads == 32 && group == 1;
                if (tile > gpu->shared_per_processor / (last ? 1 : 3)) continue;
                if (plan_columns(p, gpu, vector, threads, group, 0, plan)) return 1;
            }
    return 0;
}

/* Many rows of 32 to 64 floats, four nonzeros a column, on the GPU where that was measured. */
static int half_a_tile(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    return gpu->arch == 90 && p->dtype == FS_F32 && p->across && p->n >= 32 && p->n <= 64 && p->s == 4 &&
           p->kappa == 1 && p->block_rows <= 64 && p->rows >= 1 << 20 && p->shuffle != FSI_DEF_GROUPS;
}

static int direct_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    return gpu->arch >= 80 && p->block_rows <= 64 && p->dtype != FS_F64;
}
/* An instance of mma_gather.cu; returns its thread blocks. */
static int64_t fill_direct(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_kernel kernel, int instance, int slices,
                           fsi_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->cluster = 1;
    plan->kernel = kernel;
    plan->instance = instance;
    plan->threads = FSI_MMA_GATHER_THREADS;
    plan->group = 1;
    plan->shared = FSI_MMA_GATHER_SHARED;
    const int64_t blocks = p->M * p->kappa * div_up(p->n, fsi_plan_width(plan));
    cut(plan, p, slices ? slices : choose_parts(p, gpu, blocks, 2, 256), FSI_MMA_GATHER_THREADS);
    return blocks * plan->slices;
}
static int plan_direct(const fsi_problem *p, const fsi_gpu_traits *gpu, int slices, fsi_plan *plan)
{
    for (int i = 0; i < FSI_MMA_GATHER_COUNT; i++) {
        if (direct[i] != p->dtype) continue;
        fill_direct(p, gpu, FSI_KERNEL_MMA_GATHER, i, slices, plan);
        return 1;
    }
    return 0;
}
int fsi_choose_listed(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    return direct_fits(p, gpu) && plan_direct(p, gpu, 0, plan);
}
/* Samples of a thread block as many as leave every processor its two thread blocks, or nearly. */
int fsi_choose_products(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    if (!direct_fits(p, gpu) || p->dtype != FS_F32) return 0;
    for (int i = 0; i < FSI_MMA_FACTORED_COUNT; i++)
        if (fill_direct(p, gpu, FSI_KERNEL_MMA_FACTORED, i, 0, plan) > gpu->processors) break;
    return 1;
}

fsi_plan fsi_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_tuning *table)
{
    fsi_plan plan;
    if (table && fsi_tuning_find(table, p, &plan) && plan.shared <= gpu->shared &&
        (plan.kernel != FSI_KERNEL_WGMMA_ROWS || hopper_rows_fits(p, gpu)) &&
        (plan.kernel != FSI_KERNEL_GATHER_ROWS_SIMT || listed_rows_fits(p, gpu)) &&
        (plan.kernel != FSI_KERNEL_WGMMA_ROWS_16BIT || half_rows_fits(p, gpu)) &&
        (plan.kernel != FSI_KERNEL_WGMMA_GROUPS || hopper_lines_fits(p, gpu)) &&
        (plan.kernel != FSI_KERNEL_MMA_GATHER || direct_fits(p, gpu)) &&
        (plan.kernel != FSI_KERNEL_MMA_SKINNY || tall_fits(p, gpu)) &&
        (plan.kernel != FSI_KERNEL_MMA_ROWS || tensor_rows_fits(p, gpu)))
        return plan;
    /* Few columns.  H200, 16777216 rows, k = 1024, s = 4 (2026-11-16, on top of 9c3528b): 16 columns take 458 us, by
     * simt_skinny.cu 610; 8 take 317, there 320; 64 take 1.9 ms, by plain additions 1.78. */
    if (tall_fits(p, gpu) && p->n >= 9 && p->rows >= 32768 && p->local_rows >= 256 && choose_tall(p, gpu, &plan))
        return plan;
    /* Half a tile of columns: H200, 16777216 rows, s = 4, `fsbench tune` of 2026-11-15: 32 columns by plain additions
     * 1.07 ms, by simt_skinny.cu 1.19; 64 columns 1.78, by wgmma_rows.cu 2.04. */
    if (half_a_tile(p, gpu) && plan_columns(p, gpu, 2, 64, 1, 0, &plan)) return plan;
    /* Few nonzeros of several permutations.  H200, 262144 x 512, k = 1024 (2026-11-15, on top of c84d3a0): kappa 4, s 1
     * takes 144 us and kappa 2, s 2 136, on tensor cores 282 and 159.  With kappa 1, s 4 it is 134 both ways, and the
     * tensor cores do not mind small blocks: k = 4096 of 16384 x 1024 takes 31 there and 42 here. */
    if (together(p) > 1 && listed_rows_fits(p, gpu) && p->n >= 48 && plan_listed_rows(p, gpu, 0, &plan)) return plan;
    if (half_rows_fits(p, gpu) && p->n >= 48 && choose_half_rows(p, gpu, &plan)) return plan;
    if (hopper_rows_fits(p, gpu) && p->n >= 48 && choose_hopper_rows(p, gpu, &plan)) return plan;
    /* Fewer samples than a quarter of a tile are left to plain additions. */
    if (hopper_lines_fits(p, gpu) && p->n >= 16 && plan_hopper_lines(p, gpu, p->n > 64 ? 128 : 64, 0, &plan))
        return plan;
    /* Other batches.  H200, 512 samples of 109388, k = 1024 (2026-11-16, on top of 7411358): 265 us for rows dealt and
     * 130 for contiguous blocks, by plain additions 642 and 421. */
    if (direct_fits(p, gpu) && p->down && !p->across && p->n >= 48 && p->kappa <= 4 && plan_direct(p, gpu, 0, &plan))
        return plan;
    if (tensor_rows_fits(p, gpu) && p->n >= 48) {
        const int groups = p->n > 128 ? 2 : 1;
        if (plan_tensor_rows(p, gpu, groups, 0, &plan) || plan_tensor_rows(p, gpu, 1, 0, &plan)) return plan;
    }
    /* Short inputs are left to plain additions: a slice costs a partial-sum buffer of sums, however short it is. */
    if (narrow_fits(p) && p->rows >= 32768 && p->local_rows >= 256)
        for (int warps = FSI_SIMT_SKINNY_WARPS; warps >= 4; warps /= 2)
            if (plan_narrow(p, gpu, warps, 0, 0, &plan)) return plan;
    if (p->block_rows <= 512 && choose_columns(p, gpu, &plan)) return plan;
    memset(&plan, 0, sizeof plan);
    plan.kernel = FSI_KERNEL_SORTED_NONZEROS;
    plan.slices = 1;
    plan.cluster = 1;
    return plan;
}

int fsi_choose_candidates(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plans, int room)
{
    int count = 0;
    fsi_plan plan;
    if (half_rows_fits(p, gpu))
        for (int i = 0; i < FSI_WGMMA_ROWS_16BIT_COUNT; i++)
            if (wgmma_rows_16bit[i].dtype == p->dtype && wgmma_rows_16bit[i].nonzeros == p->s && count < room &&
                plan_half_rows(p, gpu, wgmma_rows_16bit[i].resident, wgmma_rows_16bit[i].cluster, &plan))
                plans[count++] = plan;
    if (hopper_rows_fits(p, gpu))
        for (int tiles = 2; tiles >= 1; tiles--) {
            if (!plan_hopper_rows(p, gpu, tiles, 0, &plan)) continue;
            const int around[] = {plan.slices, plan.slices / 2, plan.slices * 2, plan.slices + 1, plan.slices - 1};
            for (int i = 0; i < 5; i++)
                if (around[i] > 0 && count < room && plan_hopper_rows(p, gpu, tiles, around[i], &plan))
                    plans[count++] = plan;
        }
    if (listed_rows_fits(p, gpu) && plan_listed_rows(p, gpu, 0, &plan)) {
        const int around[] = {plan.slices, plan.slices / 2, plan.slices * 2, plan.slices + 1, plan.slices - 1};
        for (int i = 0; i < 5; i++)
            if (around[i] > 0 && count < room && plan_listed_rows(p, gpu, around[i], &plan)) plans[count++] = plan;
    }
    if (hopper_lines_fits(p, gpu))
        for (int samples = 64; samples <= 128; samples *= 2) {
            if (!plan_hopper_lines(p, gpu, samples, 0, &plan) || fsi_plan_width(&plan) != samples) continue;
            const int around[] = {plan.slices, plan.slices / 2, plan.slices * 2, plan.slices + 1, plan.slices - 1};
            for (int i = 0; i < 5; i++)
                if (around[i] > 0 && count < room && plan_hopper_lines(p, gpu, samples, around[i], &plan))
                    plans[count++] = plan;
        }
    if (tensor_rows_fits(p, gpu))
        for (int groups = 1; groups <= 2; groups++) {
            if (!plan_tensor_rows(p, gpu, groups, 0, &plan)) continue;
            const int around[] = {plan.slices, plan.slices / 2, plan.slices * 2, plan.slices + 1};
            for (int i = 0; i < 4; i++)
                if (around[i] > 0 && count < room && plan_tensor_rows(p, gpu, groups, around[i], &plan))
                    plans[count++] = plan;
        }
    if (narrow_fits(p))
        for (int warps = FSI_SIMT_SKINNY_WARPS; warps >= 4; warps /= 2) {
            if (!plan_narrow(p, gpu, warps, 0, 0, &plan)) continue;
            const fsi_plan own = plan;
            const int around[] = {own.slices, own.slices / 2, own.slices * 2, own.slices + 1, own.slices - 1};
            for (int i = 0; i < 5; i++)
                if (around[i] > 0 && count < room && plan_narrow(p, gpu, warps, own.chunk, around[i], &plan))
                    plans[count++] = plan;
        }
    if (tall_fits(p, gpu))
        for (int vector = 1; vector <= 2; vector *= 2) {
            if (!plan_tall(p, gpu, vector, 0, &plan)) continue;
            const int around[] = {plan.slices, plan.slices / 2, plan.slices * 2, plan.slices + 1, plan.slices - 1};
            for (int i = 0; i < 5; i++)
                if (around[i] > 0 && count < room && plan_tall(p, gpu, vector, around[i], &plan)) plans[count++] = plan;
        }
    if (direct_fits(p, gpu) && p->down && !p->across && plan_direct(p, gpu, 0, &plan)) {
        const int around[] = {plan.slices, plan.slices / 2, plan.slices * 2, plan.slices + 1, plan.slices - 1};
        for (int i = 0; i < 5; i++)
            if (around[i] > 0 && count < room && plan_direct(p, gpu, around[i], &plan)) plans[count++] = plan;
    }
    if (p->block_rows > 512) return count;
    for (int group = (int)least(p->kappa, 4); group >= 1; group--)
        for (int vector = widest(p); vector >= 1; vector /= 2)
            for (int threads = 256; threads >= 32; threads /= 2)
                if (count < room && plan_columns(p, gpu, vector, threads, group, 0, &plan)) plans[count++] = plan;
    return count;
}

int fsi_plan_sound(const fsi_problem *p, const fsi_plan *plan)
{
    const fsi_gpu_traits any = {1000, 1, INT64_MAX, INT64_MAX, 0}, hopper = {90, 1, INT64_MAX, INT64_MAX, 0};
    fsi_plan again;
    if (plan->slices < 1 || plan->cluster < 1 ||
        (plan->kernel != FSI_KERNEL_WGMMA_ROWS && plan->kernel != FSI_KERNEL_WGMMA_ROWS_16BIT && plan->cluster != 1) ||
        plan->length < div_up(p->local_rows, plan->slices) || plan->length < 1 ||
        (plan->slices > 1 && plan->length > (p->local_rows - 1) / (plan->slices - 1)))
        return 0;
    if (plan->kernel == FSI_KERNEL_MMA_ROWS)
        return plan->instance >= 0 && plan->instance < FSI_MMA_ROWS_COUNT && tensor_rows_fits(p, &any) &&
               plan_tensor_rows(p, &any, mma_rows[plan->instance].groups, plan->slices, &again) &&
               again.instance == plan->instance && again.shared == plan->shared && again.threads == plan->threads &&
               again.group == plan->group && plan->team == 0 && plan->chunk == 0 && plan->length % 128 == 0;
    if (plan->kernel == FSI_KERNEL_WGMMA_ROWS)
        return plan->instance >= 0 && plan->instance < FSI_WGMMA_ROWS_COUNT && hopper_rows_fits(p, &hopper) &&
               plan_hopper_rows(p, &hopper, wgmma_rows[plan->instance].tiles, plan->slices, &again) &&
               wgmma_rows[plan->instance].dtype == p->dtype && wgmma_rows[plan->instance].outs == again.group &&
               (!wgmma_rows[plan->instance].many || plan->cluster == 1) &&
               plan->shared == wgmma_rows[plan->instance].shared && again.threads == plan->threads &&
               again.group == plan->group && plan->team == 0 && plan->chunk == 0 &&
               again.cluster % plan->cluster == 0 && plan->length % 64 == 0;
    if (plan->kernel == FSI_KERNEL_WGMMA_ROWS_16BIT)
        return plan->instance >= 0 && plan->instance < FSI_WGMMA_ROWS_16BIT_COUNT && half_rows_fits(p, &hopper) &&
               plan_half_rows(p, &hopper, wgmma_rows_16bit[plan->instance].resident,
                              wgmma_rows_16bit[plan->instance].cluster, &again) &&
               again.instance == plan->instance && again.shared == plan->shared && again.threads == plan->threads &&
               again.group == plan->group && again.cluster == plan->cluster && again.slices == plan->slices &&
               plan->team == 0 && plan->chunk == 0 && plan->length % FSI_WGMMA_ROWS_16BIT_UNIT == 0;
    if (plan->kernel == FSI_KERNEL_GATHER_ROWS_SIMT)
        return plan->instance >= 0 && plan->instance < FSI_GATHER_ROWS_SIMT_COUNT && listed_rows_fits(p, &hopper) &&
               plan_listed_rows(p, &hopper, plan->slices, &again) && again.instance == plan->instance &&
               again.shared == plan->shared && again.threads == plan->threads && again.group == plan->group &&
               plan->team == 0 && plan->chunk == 0 && plan->length % FSI_GATHER_ROWS_SIMT_STAGE == 0;
    if (plan->kernel == FSI_KERNEL_MMA_GATHER)
        return direct_fits(p, &any) && plan_direct(p, &any, plan->slices, &again) && again.instance == plan->instance &&
               again.shared == plan->shared && again.threads == plan->threads && again.group == plan->group &&
               plan->team == 0 && plan->chunk == 0 && plan->length % FSI_MMA_GATHER_THREADS == 0;
    if (plan->kernel == FSI_KERNEL_SIMT_SKINNY)
        return narrow_fits(p) && plan->threads >= 128 && plan->threads <= 32 * FSI_SIMT_SKINNY_WARPS &&
               (plan->threads & (plan->threads - 1)) == 0 && plan->chunk > 0 &&
               plan_narrow(p, &any, plan->threads / 32, plan->chunk, plan->slices, &again) &&
               again.instance == plan->instance && again.shared == plan->shared && again.team == plan->team &&
               again.group == plan->group && plan->length % plan->chunk == 0;
    if (plan->kernel == FSI_KERNEL_MMA_SKINNY)
        return plan->instance >= 0 && plan->instance < FSI_MMA_SKINNY_COUNT && tall_fits(p, &any) &&
               plan_tall(p, &any, tall[plan->instance].vector, plan->slices, &again) &&
               again.instance == plan->instance && again.shared == plan->shared && again.threads == plan->threads &&
               again.group == plan->group && plan->team == 0 && plan->chunk == 0 && plan->length % 128 == 0 &&
               plan->length < INT32_MAX / p->M;
    if (plan->kernel == FSI_KERNEL_WGMMA_GROUPS)
        return plan->instance >= 0 && plan->instance < FSI_WGMMA_GROUPS_COUNT && hopper_lines_fits(p, &hopper) &&
               plan_hopper_lines(p, &hopper, wgmma_groups[plan->instance].samples, plan->slices, &again) &&
               again.instance == plan->instance && again.shared == plan->shared && again.threads == plan->threads &&
               again.group == plan->group && plan->team == 0 && plan->chunk == 0 &&
               plan->length % (FSI_GROUP_ROWS / p->interleave) == 0;
    if (plan->kernel == FSI_KERNEL_SIMT_GENERIC)
        return plan->instance >= 0 && plan->instance < FSI_SIMT_GENERIC_COUNT && plan->threads >= 32 &&
               plan->threads <= 256 && (plan->threads & (plan->threads - 1)) == 0 && plan->group >= 1 &&
               plan->group <= p->kappa &&
               plan_columns(p, &any, columns[plan->instance].vector, plan->threads, plan->group, plan->slices,
                            &again) &&
               again.instance == plan->instance && again.shared == plan->shared && again.team == plan->team &&
               again.chunk == plan->chunk;
    return 0;
}
