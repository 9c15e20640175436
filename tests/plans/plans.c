/* plans.c - see plans.h. */
#include "plans.h"

#include <inttypes.h>
#include <stdio.h>

#include "cuda/blockperm/gather_rows_simt_instances.h"
#include "cuda/blockperm/mma_gather_instances.h"
#include "cuda/blockperm/mma_rows_instances.h"
#include "cuda/blockperm/mma_skinny_instances.h"
#include "cuda/blockperm/rotate_rows_simt_instances.h"
#include "cuda/blockperm/rotate_skinny_simt_instances.h"
#include "cuda/blockperm/simt_generic_instances.h"
#include "cuda/blockperm/simt_skinny_instances.h"
#include "cuda/blockperm/wgmma_groups_instances.h"
#include "cuda/blockperm/wgmma_rows_instances.h"
#include "cuda/blockperm/wgmma_rows_16bit_instances.h"
#include "def/def.h"

/* problems --------------------------------------------------------------------------------------------------- */

const gpu_kind gpus[] = {
    {"T4", {75, 40, 65536, 65536, 4194304}},
    {"A100", {80, 108, 166912, 167936, 41943040}},
    {"H200", {90, 132, 232448, 233472, 62914560}},
    {"B200", {100, 148, 232448, 233472, 132644864}},
    {"RTX 5090", {120, 170, 101376, 102400, 100663296}},
};
static const char *const memory_names[] = {"packed",   "padded", "odd",           "shifted",      "backward",
                                           "repeated", "batch",  "batch shifted", "batch padded", "spread"};

fsi_blockperm sketch_of_call(const call *c)
{
    fsi_def_spec spec = {c->d, c->k, c->M, c->kappa, c->s, c->interleave, 7, FSI_DEF_BLOCKPERM, (int32_t)c->shuffle, 0};
    fsi_def_defaults(&spec);
    return fsi_def_make(&spec).u.blockperm;
}

fs_matrix matrix_of_call(const call *c)
{
    static _Alignas(256) char buffer[512];
    const int64_t size = fsi_dtype_size(c->dtype), n = c->n;
    fs_matrix A = fs_row_major(buffer, c->rows, n, c->dtype);
    switch (c->memory) {
    case PADDED: A.row_stride = ((n * size + 15) / 16 * 16 + 16) / size; break;
    case ODD: A.row_stride = n + 1; break;
    case SHIFTED: A.data = buffer + size; break;
    case BACKWARD: A.row_stride = -n; break;
    case REPEATED: A.row_stride = 0; break;
    case BATCH:
    case BATCH_SHIFTED: A = fs_batch_major(c->memory == BATCH ? buffer : buffer + size, n, c->rows, c->dtype); break;
    case BATCH_PADDED:
        A = fs_batch_major(buffer, n, c->rows, c->dtype);
        A.col_stride = (c->rows * size + 15) / 16 * 16 / size;
        break;
    case SPREAD: A.row_stride = 2 * n, A.col_stride = 2; break;
    default: break;
    }
    return A;
}

fsi_problem problem_of_call(const call *c)
{
    const fsi_blockperm S = sketch_of_call(c);
    const fs_matrix A = matrix_of_call(c);
    return fsi_problem_of(&S, c->row0, &A, c->precision);
}

int same_plan(const fsi_plan *a, const fsi_plan *b)
{
#define SAME(field) &&a->field == b->field
    return 1 PLAN_FIELDS(SAME);
#undef SAME
}

const char *say_plan(const fsi_plan *plan)
{
    static char text[512];
    const fsi_kernel *kernel = fsi_kernel_of(plan->kernel);
    char *end = text + snprintf(text, 32, "%s:", kernel ? kernel->name : "no kernel");
#define SAY(field) end += snprintf(end, sizeof text / 16, " " #field " %" PRId64, (int64_t)plan->field);
    PLAN_FIELDS(SAY)
#undef SAY
    return text;
}
const char *say_call(const call *c, const gpu_kind *gpu)
{
    static char text[512];
    const fsi_blockperm S = sketch_of_call(c);
    snprintf(text, sizeof text,
             "%s%srows %" PRId64 "... + %" PRId64 " of d = %" PRId64 ", n = %" PRId64 ", k = %" PRId64 ", M = %" PRId64
             ", kappa = %" PRId64 ", s = %" PRId64 ", shuffle %d, interleave %" PRId64 ", %s, precision %d, %s",
             gpu ? gpu->name : "", gpu ? ": " : "", c->row0, c->rows, c->d, c->n, c->k, S.M, S.kappa, S.s, S.shuffle,
             S.interleave, fs_dtype_name(c->dtype), (int)c->precision, memory_names[c->memory]);
    return text;
}

/* the sweep -------------------------------------------------------------------------------------------------- */

static const struct {
    int64_t k, M, kappa, s;
    fs_shuffle shuffle;
    int64_t interleave;
} sketches[] = {
    {1, 1, 1, 1, SHUFFLED, 1},         {64, 1, 1, 4, NONE, 1},
    {65, 1, 1, 2, SHUFFLED, 1},        {64, 1, 1, 64, GROUPED, 1},
    {256, 4, 1, 1, SHUFFLED, 1},       {256, 4, 2, 2, NONE, 1},
    {256, 4, 4, 1, SHUFFLED, 1},       {256, 4, 3, 2, GROUPED, 4},
    {250, 4, 1, 2, GROUPED, 4},        {512, 8, 1, 4, GROUPED, 8},
    {1000, 16, 1, 4, SHUFFLED, 1},     {1000, 16, 2, 4, GROUPED, 16},
    {1024, 16, 16, 4, NONE, 1},        {1024, 16, 5, 8, SHUFFLED, 1},
    {4096, 64, 1, 8, GROUPED, 16},     {4096, 64, 6, 1, SHUFFLED, 1},
    {4096, 64, 64, 64, SHUFFLED, 1},   {512, 2, 2, 16, SHUFFLED, 1},
    {256, 2, 1, 8, SHUFFLED, 1},       {1024, 8, 1, 4, NONE, 1},
    {1000, 8, 1, 8, SHUFFLED, 1},      {2048, 16, 2, 8, SHUFFLED, 1},
    {2048, 16, 1, 16, SHUFFLED, 1},    {1024, 4, 1, 8, SHUFFLED, 1},
    {512, 1, 1, 512, NONE, 1},         {700, 1, 1, 4, NONE, 1},
    {4096, 1, 1, 4, NONE, 1},          {100000, 1000, 1, 7, SHUFFLED, 1},
    {100000, 2000, 2, 50, GROUPED, 8}, {FSI_MAX_K, (int64_t)1 << 25, 2, 1, SHUFFLED, 1},
};
static const int64_t heights[] = {1, 2, 31, 33, 1000, 4096, 65536, 1 << 20, (1 << 24) + 5, (int64_t)1 << 40, FSI_MAX_D};
static const int64_t widths[] = {1,  2,  3,   4,   7,   8,   16,  31,  32,  33,   47,   48,   63,
                                 64, 65, 128, 129, 136, 255, 256, 257, 512, 1000, 1024, 4097, (int64_t)1 << 31};
static const fs_dtype dtypes[] = {FS_F32, FS_F64, FS_F16, FS_BF16};

/* Takes the next digit of a number whose bases are the lengths of the lists. */
static int digit(int64_t *number, int base)
{
    const int value = (int)(*number % base);
    *number /= base;
    return value;
}

/* Call `number` of the product of all lists; 0 past the last. */
int sweep(int64_t number, call *c, const gpu_kind **gpu)
{
    const int sketch = digit(&number, COUNT(sketches)), slice = digit(&number, 2);
    c->k = sketches[sketch].k, c->M = sketches[sketch].M;
    c->kappa = sketches[sketch].kappa, c->s = sketches[sketch].s;
    c->shuffle = sketches[sketch].shuffle, c->interleave = sketches[sketch].interleave;
    c->d = heights[digit(&number, COUNT(heights))];
    c->n = widths[digit(&number, COUNT(widths))];
    c->dtype = dtypes[digit(&number, COUNT(dtypes))];
    c->precision = digit(&number, 2) ? FS_PRECISION_FAST : FS_PRECISION_FULL;
    c->memory = (memory)digit(&number, MEMORIES);
    c->row0 = slice ? c->d / 3 : 0;
    c->rows = slice ? c->d / 2 : c->d;
    *gpu = &gpus[digit(&number, GPUS)];
    return number == 0;
}

/* properties of a plan ---------------------------------------------------------------------------------------- */

static const char *fault_of_numbers(const fsi_problem *p, const fsi_plan *plan, const fsi_gpu_traits *gpu)
{
    if (plan->slices < 1 || plan->length < 1) return "it has no slices";
    if (plan->length < (p->local_rows + plan->slices - 1) / plan->slices)
        return "its slices do not hold all local rows";
    if (plan->slices > 1 && plan->length > (p->local_rows - 1) / (plan->slices - 1)) return "its last slice is empty";
    if (plan->shared < 0 || plan->shared > gpu->shared) return "it has more shared memory than a thread block can have";
    if (plan->threads < 32 || plan->threads > 1024 || plan->threads % 32) return "its threads are not whole warps";
    if (plan->team < 0 || (plan->team && plan->threads % plan->team)) return "its teams do not divide its threads";
    const int64_t outputs = fsi_kernel_of(plan->kernel)->whole_blocks ? p->kappa : p->kappa * p->tiles;
    if (plan->group < 1 || plan->group > outputs) return "it takes more outputs together than there are";
    if (fsi_plan_width(plan) < 1) return "its tiles have no columns";
    const int64_t partials = fsi_plan_partials(p, plan);
    if (plan->cluster < 1 || plan->slices % plan->cluster != 0) return "its slices are not whole clusters";
    if (plan->cluster > 1 && plan->kernel != FSI_KERNEL_WGMMA_ROWS && plan->kernel != FSI_KERNEL_WGMMA_ROWS_16BIT)
        return "its kernel does not add slices in a cluster";
    const int64_t sums = plan->slices / plan->cluster * p->kappa;
    if (partials != sums && partials != 0) return "it leaves another number of partial-sum buffers than it has sums";
    if (partials == 0 && sums > 1) return "its slices are never added";
    return NULL;
}

/* What the kernels' files demand, by kernel; the instance and the architecture have been checked. */
static const char *fault_of_simt_generic(const fsi_problem *p, const fsi_plan *plan)
{
    if (plan->team < 1 || plan->chunk < 1) return "it has no team or no chunk";
    if (plan->group > FSI_SIMT_GENERIC_GROUP) return "it takes too many permutations together";
    const int64_t vector = fsi_plan_width(plan) / plan->team;
    if (vector > 1 && (!p->across || !p->aligned || p->n % vector)) return "its vectors are not aligned";
    return NULL;
}
static const char *fault_of_simt_skinny(const fsi_problem *p, const fsi_plan *plan)
{
    if (p->n > 32 || p->kappa > 1 || p->tile_rows > 64 || p->shuffle == GROUPED) return "it cannot take this problem";
    if (plan->threads / 32 < p->tiles) return "it has fewer warps than a block has output tiles";
    if (plan->threads > 512) return "it has more than 16 warps";
    if (plan->team < p->n || plan->team > 32 || 32 % plan->team) return "its lanes are not those of whole rounds";
    if (plan->chunk < 1 || plan->chunk % (4 * (32 / plan->team))) return "its chunks are not whole steps of its lanes";
    if (plan->length % plan->chunk) return "its slices are not whole chunks";
    return NULL;
}
static const char *fault_of_rotate_skinny_simt(const fsi_problem *p, const fsi_plan *plan)
{
    const int64_t strata = p->tile_nonzeros, window = 64 / strata, outputs = p->kappa * p->tiles;
    if (p->n > 128 || !p->across || !p->packed || p->tile_rows != 64 || p->shuffle == GROUPED ||
        (strata != 2 && strata != 4 && strata != 8))
        return "it cannot take this problem";
    if (plan->threads != FSI_ROTATE_SKINNY_SIMT_THREADS) return "it has another number of threads";
    const int64_t group = (p->M + fsi_plan_blocks(p, plan) - 1) / fsi_plan_blocks(p, plan);
    /* two tasks of a lane at most, of two rows */
    if (group * outputs > plan->threads / window * 4) return "it has more tasks than lanes";
    if (group * p->n > plan->threads) return "it has more elements of a round than threads";
    if (plan->chunk < 1 || plan->chunk * window > FSI_ROTATE_SKINNY_SIMT_SPAN)
        return "its stages are no part of a span";
    if (plan->chunk * group * outputs > plan->threads) return "a thread draws more than a window of a stage";
    if (plan->length % window) return "its slices are not whole windows";
    if (plan->length > INT32_MAX / p->M) return "its slices have too many rows";
    return NULL;
}
static const char *fault_of_mma_skinny(const fsi_problem *p, const fsi_plan *plan)
{
    const int64_t nonzeros = p->tile_nonzeros;
    if (p->n > 64 || p->kappa > 1 || p->tile_rows != 64 || p->k != 64 * p->M * p->tiles || p->shuffle == GROUPED ||
        (nonzeros != 1 && nonzeros != 2 && nonzeros != 4 && nonzeros != 8) || p->dtype == FS_F64)
        return "it cannot take this problem";
    if (plan->length > INT32_MAX / p->M) return "its slices have too many rows";
    return NULL;
}
static const char *fault_of_mma_rows(const fsi_problem *p, const fsi_plan *plan)
{
    (void)plan;
    if (!p->across || !p->aligned || p->tile_rows > 64 || p->dtype == FS_F64) return "it cannot take this matrix";
    return NULL;
}
static const char *fault_of_wgmma_rows(const fsi_problem *p, const fsi_plan *plan)
{
    static const int chunked[] = {
#define CHUNKED(T, dtype, chunked, ...) chunked,
        FSI_WGMMA_ROWS(CHUNKED)
#undef CHUNKED
    };
    if (!p->across || p->tile_rows > 64 || p->dtype == FS_F64) return "it cannot take this matrix";
    if (!chunked[plan->instance] && !p->mapped) return "no tensor map describes this matrix";
    if (chunked[plan->instance] && plan->cluster != 1) return "rows copied by chunks have no clusters";
    if (p->kappa * p->tiles % plan->group) return "its outputs do not divide all outputs";
    if (fsi_plan_is_persistent(plan) && (plan->cluster != 1 || plan->group > 2))
        return "persistent thread blocks compute two outputs at most and are no cluster";
    return NULL;
}
static const char *fault_of_wgmma_rows_16bit(const fsi_problem *p, const fsi_plan *plan)
{
    if (!p->across || !p->whole || p->rows > INT32_MAX || (p->dtype != FS_F16 && p->dtype != FS_BF16))
        return "it cannot take this matrix";
    if (p->kappa > 1 || p->tile_rows != 64 || p->k != 64 * p->M * p->tiles || p->shuffle == GROUPED || p->tiles > 2 ||
        (p->tile_nonzeros != 4 && p->tile_nonzeros != (p->tiles > 1 ? 2 : 8)))
        return "it cannot take this sketch";
    if (plan->slices != plan->cluster) return "its slices are not one cluster";
    if (plan->length % FSI_WGMMA_ROWS_16BIT_UNIT) return "its slices are not whole units";
    if ((p->n + 63) / 64 > 65535) return "it has too many tiles";
    return NULL;
}
static const char *fault_of_gather_rows_simt(const fsi_problem *p, const fsi_plan *plan)
{
    if (!p->across || !p->mapped || p->tile_rows > 64 || p->dtype != FS_F32) return "it cannot take this matrix";
    if (p->n < 128 && p->n % 32) return "no tile of it has whole groups of 128 bytes";
    if (!p->packed || p->shuffle == FSI_DEF_GROUPS || plan->group * p->tile_nonzeros > 4)
        return "it cannot take this sketch";
    if (p->kappa * p->tiles % plan->group) return "its outputs do not divide all outputs";
    if (plan->length % 128) return "its slices are not whole stages";
    return NULL;
}
static const char *fault_of_rotate_rows_simt(const fsi_problem *p, const fsi_plan *plan)
{
    static const int chunked[] = {
#define CHUNKED(T, dtype, chunked, ...) chunked,
        FSI_ROTATE_ROWS_SIMT(CHUNKED)
#undef CHUNKED
    };
    if (!p->across || (p->dtype != FS_F64 && (p->dtype != FS_F32 || p->tile_nonzeros != 2)))
        return "it cannot take this matrix";
    if (!chunked[plan->instance] && !p->mapped) return "no tensor map describes this matrix";
    if (!chunked[plan->instance] && p->n < (p->dtype == FS_F64 ? 128 : 256) && p->n % (p->dtype == FS_F64 ? 16 : 32))
        return "no tile of it has whole groups of 128 bytes";
    if (!p->packed || p->tile_rows != 64 || p->tile_nonzeros > 8 || p->shuffle == FSI_DEF_GROUPS)
        return "it cannot take this sketch";
    if (plan->group > 2 || p->kappa * p->tiles % plan->group) return "its outputs do not divide all outputs";
    if (plan->length % 64) return "its slices are not whole stages";
    return NULL;
}
static const char *fault_of_wgmma_groups(const fsi_problem *p, const fsi_plan *plan)
{
    if (!p->down || p->across || p->tiles > 1 || p->tile_rows > 64 || p->dtype == FS_F64)
        return "it cannot take this matrix";
    if (!p->aligned) return "its samples are not aligned";
    if (p->dtype == FS_F32) {
        if (!p->mapped) return "no tensor map describes this matrix";
    } else if (!p->whole) return "its samples are not whole 16 bytes";
    if (p->shuffle != FSI_DEF_GROUPS || p->kappa != 1 || p->interleave > 16 || p->interleave == 2)
        return "it cannot take this sketch";
    if (plan->length % (FSI_GROUP_ROWS / p->interleave)) return "its slices cut row groups";
    if (fsi_plan_blocks(p, plan) * 8 < p->M) return "its thread blocks do not compute all of Y";
    if (fsi_plan_cluster(plan) != (p->dtype == FS_F32 && p->interleave == 16 ? 2 : 1))
        return "its clusters are not the thread blocks that receive the same row groups";
    if (fsi_plan_blocks(p, plan) % fsi_plan_cluster(plan)) return "its thread blocks are not whole clusters";
    return NULL;
}
static const char *fault_of_mma_gather(const fsi_problem *p, const fsi_plan *plan)
{
    if (p->tile_rows > 64 || p->dtype == FS_F64) return "it cannot take this problem";
    if (plan->length % plan->threads) return "its slices are not whole chunks";
    return NULL;
}
static const char *fault_of_mma_factored(const fsi_problem *p, const fsi_plan *plan)
{
    return p->dtype != FS_F32 ? "it cannot take this problem" : fault_of_mma_gather(p, plan);
}

/* Instances and architectures that each kernel has; most_arch 0: all from least_arch on. */
static const struct {
    fsi_kernel_id kernel;
    int instances, least_arch, most_arch;
    const char *(*fault)(const fsi_problem *p, const fsi_plan *plan);
} kernels[] = {
    {FSI_KERNEL_SIMT_GENERIC, FSI_SIMT_GENERIC_COUNT, 0, 0, fault_of_simt_generic},
    {FSI_KERNEL_SIMT_SKINNY, FSI_SIMT_SKINNY_COUNT, 0, 0, fault_of_simt_skinny},
    {FSI_KERNEL_ROTATE_SKINNY_SIMT, FSI_ROTATE_SKINNY_SIMT_COUNT, 0, 0, fault_of_rotate_skinny_simt},
    {FSI_KERNEL_ROTATE_ROWS_SIMT, FSI_ROTATE_ROWS_SIMT_COUNT, 90, 90, fault_of_rotate_rows_simt},
    {FSI_KERNEL_MMA_SKINNY, FSI_MMA_SKINNY_COUNT, 80, 0, fault_of_mma_skinny},
    {FSI_KERNEL_MMA_ROWS, FSI_MMA_ROWS_COUNT, 80, 0, fault_of_mma_rows},
    {FSI_KERNEL_WGMMA_ROWS, FSI_WGMMA_ROWS_COUNT, 90, 90, fault_of_wgmma_rows},
    {FSI_KERNEL_WGMMA_ROWS_16BIT, FSI_WGMMA_ROWS_16BIT_COUNT, 90, 90, fault_of_wgmma_rows_16bit},
    {FSI_KERNEL_GATHER_ROWS_SIMT, FSI_GATHER_ROWS_SIMT_COUNT, 90, 90, fault_of_gather_rows_simt},
    {FSI_KERNEL_WGMMA_GROUPS, FSI_WGMMA_GROUPS_COUNT, 90, 90, fault_of_wgmma_groups},
    {FSI_KERNEL_MMA_GATHER, FSI_MMA_GATHER_COUNT, 80, 0, fault_of_mma_gather},
    {FSI_KERNEL_MMA_FACTORED, FSI_MMA_FACTORED_COUNT, 80, 0, fault_of_mma_factored},
};

const char *fault_of(const fsi_problem *p, const fsi_plan *plan, const fsi_gpu_traits *gpu)
{
    /* sorted_nonzeros.cu sizes its own launches. */
    if (plan->kernel == FSI_KERNEL_SORTED_NONZEROS) return plan->slices == 1 ? NULL : "it has slices";
    int i = 0;
    while (i < COUNT(kernels) && kernels[i].kernel != plan->kernel) i++;
    if (i == COUNT(kernels)) return "no kernel has this number";
    if (plan->instance < 0 || plan->instance >= kernels[i].instances) return "there is no such instance";
    if (gpu->arch < kernels[i].least_arch || (kernels[i].most_arch && gpu->arch > kernels[i].most_arch))
        return "the GPU cannot run it";
    const char *fault = kernels[i].fault(p, plan);
    return fault ? fault : fault_of_numbers(p, plan, gpu);
}

void expect_fits(const char *what, const call *c, const gpu_kind *gpu, const fsi_problem *p, const fsi_plan *plan)
{
    const char *fault = fault_of(p, plan, &gpu->traits);
    if (fault)
        fail_msg("%s: %s, %" PRId64 " local rows: %s: %s", what, say_call(c, gpu), p->local_rows, fault,
                 say_plan(plan));
}
