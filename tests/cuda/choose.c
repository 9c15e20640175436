/* choose.c - laws of the CUDA backend's choice: which kernel runs, that its plan fits the GPU, and that tables of
 * measured plans are read as written and refused when they are not what they should be.
 *
 * No GPU is needed: GPUs are rows of a table here, and matrices are views of memory that nobody looks into. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "choose.h"
#include "def.h"
#include "slots.h"
#include "support.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
enum { ROOM = 256 };

/* problems --------------------------------------------------------------------------------------------------- */

static const struct gpu {
    const char *name;
    fs_gpu_traits traits;
} gpus[] = {
    {"T4", {75, 40, 65536, 65536, 4194304}},
    {"A100", {80, 108, 166912, 167936, 41943040}},
    {"H200", {90, 132, 232448, 233472, 62914560}},
    {"B200", {100, 148, 232448, 233472, 132644864}},
    {"RTX 5090", {120, 170, 101376, 102400, 100663296}},
};
enum { T4, A100, H200, B200, RTX_5090, GPUS };

/* Views that differ in what kernels can do with them: which neighbours are contiguous, what is aligned. */
typedef enum memory {
    PACKED,          /* row-major */
    PADDED,          /* row-major, rows 16 bytes longer than their length rounded up to 16 bytes */
    ODD,             /* row-major, rows one element longer */
    SHIFTED,         /* row-major, one element into the buffer */
    BACKWARD,        /* row-major, last row first */
    REPEATED,        /* every row is the same memory */
    BATCH,           /* columns contiguous */
    BATCH_SHIFTED,
    SPREAD,          /* nothing contiguous */
    MEMORIES
} memory;
static const char *const memory_names[] = {"packed",   "padded", "odd",           "shifted", "backward",
                                           "repeated", "batch",  "batch shifted", "spread"};

typedef struct call {
    int64_t d, k, M, kappa, s; /* M = 0 and s = 0: the default */
    fs_shuffle shuffle;
    int64_t interleave;
    int64_t row0, rows, n; /* the piece of A */
    fs_dtype dtype;
    fs_precision precision;
    memory memory;
} call;

static fs_blockperm sketch_of_call(const call *c)
{
    fs_def_spec spec = {c->d, c->k, c->M, c->kappa, c->s, c->interleave, 7, FS_DEF_BLOCKPERM, (int32_t)c->shuffle};
    fs_def_defaults(&spec);
    return fs_def_make(&spec).u.blockperm;
}

static fs_matrix matrix_of_call(const call *c)
{
    static _Alignas(256) char buffer[512];
    const int64_t size = fs_dtype_size(c->dtype), n = c->n;
    fs_matrix A = fs_row_major(buffer, c->rows, n, c->dtype);
    switch (c->memory) {
    case PADDED: A.row_stride = ((n * size + 15) / 16 * 16 + 16) / size; break;
    case ODD: A.row_stride = n + 1; break;
    case SHIFTED: A.data = buffer + size; break;
    case BACKWARD: A.row_stride = -n; break;
    case REPEATED: A.row_stride = 0; break;
    case BATCH:
    case BATCH_SHIFTED:
        A = fs_batch_major(c->memory == BATCH ? buffer : buffer + size, n, c->rows, c->dtype);
        break;
    case SPREAD: A.row_stride = 2 * n, A.col_stride = 2; break;
    default: break;
    }
    return A;
}

static fs_problem problem_of_call(const call *c)
{
    const fs_blockperm S = sketch_of_call(c);
    const fs_matrix A = matrix_of_call(c);
    return fs_problem_of(&S, c->row0, &A, c->precision);
}

/* The fields of a plan, in one list for comparing, printing and editing them. */
#define PLAN_FIELDS(X) \
    X(kernel) X(instance) X(parts) X(length) X(threads) X(team) X(chunk) X(group) X(shared)

static int same_plan(const fs_plan *a, const fs_plan *b)
{
#define SAME(field) &&a->field == b->field
    return 1 PLAN_FIELDS(SAME);
#undef SAME
}

/* Sentences, in buffers that the next call of the same function overwrites. */
static const char *say_plan(const fs_plan *plan)
{
    static char text[512];
    char *end = text;
#define SAY(field) end += snprintf(end, sizeof text / 16, " " #field " %" PRId64, (int64_t)plan->field);
    PLAN_FIELDS(SAY)
#undef SAY
    return text + 1;
}
static const char *say_call(const call *c, const struct gpu *gpu)
{
    static char text[512];
    const fs_blockperm S = sketch_of_call(c);
    snprintf(text, sizeof text,
             "%s%srows %" PRId64 "... + %" PRId64 " of d = %" PRId64 ", n = %" PRId64 ", k = %" PRId64 ", M = %" PRId64
             ", kappa = %" PRId64 ", s = %" PRId64 ", shuffle %d, interleave %" PRId64 ", %s, precision %d, %s",
             gpu ? gpu->name : "", gpu ? ": " : "", c->row0, c->rows, c->d, c->n, c->k, S.M, S.kappa, S.s, S.shuffle,
             S.interleave, fs_dtype_name(c->dtype), (int)c->precision, memory_names[c->memory]);
    return text;
}

/* the sweep -------------------------------------------------------------------------------------------------- */

#define NONE FS_SHUFFLE_NONE
#define DEALT FS_SHUFFLE_ROWS
#define LINES FS_SHUFFLE_LINES
#define FULL FS_PRECISION_FULL
#define FAST FS_PRECISION_FAST

static const struct { int64_t k, M, kappa, s; fs_shuffle shuffle; int64_t interleave; } sketches[] = {
    {1, 1, 1, 1, DEALT, 1},         {64, 1, 1, 4, NONE, 1},          {65, 1, 1, 2, DEALT, 1},
    {64, 1, 1, 64, LINES, 1},       {256, 4, 1, 1, DEALT, 1},        {256, 4, 2, 2, NONE, 1},
    {256, 4, 4, 1, DEALT, 1},       {256, 4, 3, 2, LINES, 4},        {250, 4, 1, 2, LINES, 4},
    {512, 8, 1, 4, LINES, 8},        {1000, 16, 1, 4, DEALT, 1},
    {1000, 16, 2, 4, LINES, 16},    {1024, 16, 16, 4, NONE, 1},      {1024, 16, 5, 8, DEALT, 1},
    {4096, 64, 1, 8, LINES, 16},    {4096, 64, 6, 1, DEALT, 1},      {4096, 64, 64, 64, DEALT, 1},
    {512, 2, 2, 16, DEALT, 1},      {512, 1, 1, 512, NONE, 1},       {700, 1, 1, 4, NONE, 1},
    {4096, 1, 1, 4, NONE, 1},       {100000, 1000, 1, 7, DEALT, 1},  {100000, 2000, 2, 50, LINES, 8},
    {FS_MAX_K, (int64_t)1 << 25, 2, 1, DEALT, 1},
};
static const int64_t heights[] = {1, 2, 31, 33, 1000, 4096, 65536, 1 << 20, (1 << 24) + 5, (int64_t)1 << 40, FS_MAX_D};
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
static int sweep(int64_t number, call *c, const struct gpu **gpu)
{
    const int sketch = digit(&number, COUNT(sketches)), piece = digit(&number, 2);
    c->k = sketches[sketch].k, c->M = sketches[sketch].M;
    c->kappa = sketches[sketch].kappa, c->s = sketches[sketch].s;
    c->shuffle = sketches[sketch].shuffle, c->interleave = sketches[sketch].interleave;
    c->d = heights[digit(&number, COUNT(heights))];
    c->n = widths[digit(&number, COUNT(widths))];
    c->dtype = dtypes[digit(&number, COUNT(dtypes))];
    c->precision = digit(&number, 2) ? FS_PRECISION_FAST : FS_PRECISION_FULL;
    c->memory = (memory)digit(&number, MEMORIES);
    c->row0 = piece ? c->d / 3 : 0;
    c->rows = piece ? c->d / 2 : c->d;
    *gpu = &gpus[digit(&number, GPUS)];
    return number == 0;
}
/* Every STEP-th call is tried, and for what takes longer every WIDE_STEP-th: primes that divide the length of no list,
 * so that every value of one list still meets every value of another. */
enum { STEP = THIN == 1 ? 31 : 97, WIDE_STEP = THIN == 1 ? 307 : 1009 };

/* laws of a plan --------------------------------------------------------------------------------------------- */

/* What is wrong with a plan, or NULL. */
static const char *fault_of_numbers(const fs_problem *p, const fs_plan *plan, const fs_gpu_traits *gpu)
{
    if (plan->parts < 1 || plan->length < 1) return "it has no parts";
    if (plan->length < (p->slots + plan->parts - 1) / plan->parts) return "its parts do not hold all slots";
    if (plan->parts > 1 && plan->length > (p->slots - 1) / (plan->parts - 1)) return "its last part is empty";
    if (plan->shared < 0 || plan->shared > gpu->shared) return "it has more shared memory than a thread block can have";
    if (plan->threads < 32 || plan->threads > 1024 || plan->threads % 32) return "its threads are not whole warps";
    if (plan->team < 0 || (plan->team && plan->threads % plan->team)) return "its teams do not divide its threads";
    if (plan->group < 1 || plan->group > p->kappa) return "it takes more permutations together than there are";
    if (fs_plan_width(plan) < 1) return "it makes no columns";
    const int64_t planes = fs_plan_planes(p, plan);
    if (planes != plan->parts * p->kappa && planes != 0) return "it leaves another number of planes than it makes sums";
    if (planes == 0 && plan->parts > 1) return "its parts are never added";
    return NULL;
}

/* Whether a kernel can run: the lines `needs` in the kernels' files. */
static const char *fault_of_kernel(const fs_problem *p, const fs_plan *plan, const fs_gpu_traits *gpu)
{
    switch (plan->kernel) {
    case FS_KERNEL_COLUMNS: {
        if (plan->instance < 0 || plan->instance >= FS_COLUMNS_COUNT) return "there is no such instance";
        if (plan->team < 1 || plan->chunk < 1) return "it has no team or no chunk";
        if (plan->group > FS_COLUMNS_GROUP) return "it takes too many permutations together";
        const int64_t vector = fs_plan_width(plan) / plan->team;
        if (vector > 1 && (!p->across || !p->aligned || p->n % vector)) return "its vectors are not aligned";
        return NULL;
    }
    case FS_KERNEL_NARROW:
        if (plan->instance < 0 || plan->instance >= FS_NARROW_COUNT) return "there is no such instance";
        if (p->n > 32 || p->kappa > 1 || p->block_rows > 64 || p->shuffle == LINES)
            return "it cannot take this problem";
        if (plan->threads > 512) return "it has more than 16 warps";
        if (plan->team < p->n || plan->team > 32 || 32 % plan->team) return "its lanes are not those of whole rounds";
        if (plan->chunk < 1 || plan->chunk % (4 * (32 / plan->team)))
            return "its chunks are not whole steps of its lanes";
        if (plan->length % plan->chunk) return "its parts are not whole chunks";
        return NULL;
    case FS_KERNEL_TENSOR_ROWS:
        if (plan->instance < 0 || plan->instance >= FS_TENSOR_ROWS_COUNT) return "there is no such instance";
        if (gpu->arch < 80) return "the GPU cannot run it";
        if (!p->across || !p->aligned || p->block_rows > 64 || p->dtype == FS_F64) return "it cannot take this matrix";
        return NULL;
    case FS_KERNEL_HOPPER_ROWS:
        if (plan->instance < 0 || plan->instance >= FS_HOPPER_ROWS_COUNT) return "there is no such instance";
        if (gpu->arch != 90) return "the GPU cannot run it";
        if (!p->across || !p->whole || p->block_rows > 64 || p->dtype == FS_F64) return "it cannot take this matrix";
        if (p->kappa % plan->group) return "its permutations do not divide kappa";
        return NULL;
    case FS_KERNEL_HOPPER_LINES:
        if (plan->instance < 0 || plan->instance >= FS_HOPPER_LINES_COUNT) return "there is no such instance";
        if (gpu->arch != 90) return "the GPU cannot run it";
        if (!p->down || p->across || !p->aligned || !p->whole || p->block_rows > 64 || p->dtype != FS_F32)
            return "it cannot take this matrix";
        if (p->shuffle != FS_DEF_LINES || p->kappa != 1 || p->interleave > 16 || p->interleave == 2)
            return "it cannot take this sketch";
        if (plan->length % (FS_LINE / p->interleave)) return "its parts cut lines";
        if (fs_plan_blocks(p, plan) * 8 < p->M) return "its thread blocks do not make all of Y";
        return NULL;
    default: return "no kernel has this number";
    }
}

static const char *fault_of(const fs_problem *p, const fs_plan *plan, const fs_gpu_traits *gpu)
{
    /* sorted.cu plans for itself. */
    if (plan->kernel == FS_KERNEL_SORTED) return plan->parts == 1 ? NULL : "it has parts";
    const char *fault = fault_of_kernel(p, plan, gpu);
    return fault ? fault : fault_of_numbers(p, plan, gpu);
}

static void expect_fits(const char *what, const call *c, const struct gpu *gpu, const fs_problem *p,
                        const fs_plan *plan)
{
    const char *fault = fault_of(p, plan, &gpu->traits);
    if (fault)
        fail_msg("%s: %s, %" PRId64 " slots: %s: %s", what, say_call(c, gpu), p->slots, fault, say_plan(plan));
}

/* which kernel ----------------------------------------------------------------------------------------------- */

#ifndef FS_FEW_INSTANCES
typedef struct shape { int64_t d, n; } shape;
static const shape matrices[] = {{16384, 1024}, {65536, 1024}, {131072, 512}, {262144, 512}, {65536, 256}, {0, 0}};
static const shape odd_widths[] = {{65536, 1001}, {65536, 258}, {0, 0}};
static const shape samples[] = {{131072, 512}, {1048576, 64}, {0, 0}};
static const shape few_samples[] = {{16777216, 2}, {1048576, 15}, {0, 0}};
static const shape narrow[] = {{16777216, 1}, {16777216, 2}, {16777216, 4}, {16777216, 16}, {16777216, 32}, {0, 0}};
static const shape narrow_and_short[] = {{1024, 1}, {16384, 4}, {8000, 32}, {0, 0}};
static const shape one_tile[] = {{16777216, 64}, {65536, 128}, {0, 0}};
static const int64_t usual[] = {64, 256, 512, 1024, 2048, 4096, 0}, with_kappa[] = {256, 1024, 4096, 0};
static const int64_t tall[] = {4096, 0};

/* One line: a GPU, matrices, a sketch, and the kernel that is meant for them. */
static const struct bar {
    int gpu;
    memory memory;
    fs_dtype dtype;
    fs_precision precision;
    int64_t M, kappa, s; /* M = 0: blocks of 64 rows */
    fs_shuffle shuffle;
    int64_t interleave; /* 0: the default */
    const shape *shapes;
    const int64_t *k;
    fs_kernel kernel;
} bars[] = {
    {H200, PACKED, FS_F32, FULL, 0, 1, 1, NONE, 0, matrices, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 1, DEALT, 0, matrices, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, NONE, 0, matrices, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 8, DEALT, 0, matrices, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F32, FAST, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, LINES, 0, matrices, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F16, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, PADDED, FS_F32, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, BACKWARD, FS_BF16, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 4, 8, DEALT, 0, matrices, with_kappa, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 3, 4, DEALT, 0, matrices, with_kappa, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 2, 2, NONE, 0, matrices, with_kappa, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 4, 1, NONE, 0, matrices, with_kappa, FS_KERNEL_HOPPER_ROWS},
    /* Rows that end within 16 bytes, then rows that are not aligned at all. */
    {H200, PADDED, FS_F32, FULL, 0, 1, 4, DEALT, 0, odd_widths, usual, FS_KERNEL_COLUMNS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, odd_widths, usual, FS_KERNEL_COLUMNS},
    {H200, SHIFTED, FS_F32, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_COLUMNS},
    {H200, SHIFTED, FS_BF16, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_COLUMNS},
    {H200, ODD, FS_F32, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_COLUMNS},
    {H200, SPREAD, FS_F32, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_COLUMNS},
    {H200, PACKED, FS_F64, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_COLUMNS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, one_tile, usual, FS_KERNEL_HOPPER_ROWS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, narrow, usual, FS_KERNEL_NARROW},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, NONE, 0, narrow, usual, FS_KERNEL_NARROW},
    {H200, PACKED, FS_F32, FULL, 0, 1, 8, DEALT, 0, narrow, usual, FS_KERNEL_NARROW},
    {H200, PACKED, FS_F64, FULL, 0, 1, 4, DEALT, 0, narrow, usual, FS_KERNEL_NARROW},
    {H200, PACKED, FS_BF16, FULL, 0, 1, 4, DEALT, 0, narrow, usual, FS_KERNEL_NARROW},
    {H200, SHIFTED, FS_F16, FULL, 0, 1, 4, DEALT, 0, narrow, usual, FS_KERNEL_NARROW},
    {H200, SPREAD, FS_F32, FULL, 0, 1, 4, DEALT, 0, narrow, usual, FS_KERNEL_NARROW},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, DEALT, 0, narrow, usual, FS_KERNEL_NARROW},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, LINES, 0, narrow, with_kappa, FS_KERNEL_COLUMNS},
    {H200, PACKED, FS_F32, FULL, 0, 2, 2, DEALT, 0, narrow, with_kappa, FS_KERNEL_COLUMNS},
    {H200, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, narrow_and_short, usual, FS_KERNEL_COLUMNS},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, LINES, 1, samples, with_kappa, FS_KERNEL_HOPPER_LINES},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, LINES, 4, samples, with_kappa, FS_KERNEL_HOPPER_LINES},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, LINES, 0, samples, with_kappa, FS_KERNEL_HOPPER_LINES},
    {H200, BATCH, FS_F32, FAST, 0, 1, 4, LINES, 0, samples, with_kappa, FS_KERNEL_HOPPER_LINES},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, LINES, 0, few_samples, with_kappa, FS_KERNEL_COLUMNS},
    {H200, BATCH, FS_F32, FULL, 0, 2, 4, LINES, 0, samples, with_kappa, FS_KERNEL_COLUMNS},
    {H200, BATCH, FS_F32, FULL, 0, 1, 4, DEALT, 0, samples, with_kappa, FS_KERNEL_COLUMNS},
    {B200, BATCH, FS_F32, FULL, 0, 1, 4, LINES, 0, samples, with_kappa, FS_KERNEL_COLUMNS},
    {H200, BATCH_SHIFTED, FS_F32, FULL, 0, 1, 4, LINES, 0, samples, with_kappa, FS_KERNEL_COLUMNS},
    {H200, PACKED, FS_F32, FULL, 1, 1, 4, NONE, 0, matrices, tall, FS_KERNEL_SORTED},
    {H200, PACKED, FS_F32, FULL, 1, 1, 1, NONE, 0, matrices, tall, FS_KERNEL_SORTED},
    {H200, PACKED, FS_F64, FULL, 1, 1, 4, NONE, 0, matrices, tall, FS_KERNEL_SORTED},
    {A100, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_TENSOR_ROWS},
    {A100, PACKED, FS_F32, FAST, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_TENSOR_ROWS},
    {A100, PACKED, FS_BF16, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_TENSOR_ROWS},
    {A100, PACKED, FS_F16, FULL, 0, 1, 4, NONE, 0, matrices, usual, FS_KERNEL_TENSOR_ROWS},
    {A100, SHIFTED, FS_F32, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_COLUMNS},
    {A100, PACKED, FS_F64, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_COLUMNS},
    {A100, PACKED, FS_F32, FULL, 1, 1, 4, NONE, 0, matrices, tall, FS_KERNEL_SORTED},
    {B200, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_TENSOR_ROWS},
    {B200, PACKED, FS_BF16, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_TENSOR_ROWS},
    {RTX_5090, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_TENSOR_ROWS},
    {RTX_5090, PACKED, FS_F16, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_TENSOR_ROWS},
    {T4, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_COLUMNS},
    {T4, PACKED, FS_F16, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_COLUMNS},
    {T4, PACKED, FS_F64, FULL, 0, 1, 4, DEALT, 0, matrices, usual, FS_KERNEL_COLUMNS},
    {A100, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, narrow, usual, FS_KERNEL_NARROW},
    {RTX_5090, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, narrow, usual, FS_KERNEL_NARROW},
    {T4, PACKED, FS_F32, FULL, 0, 1, 4, DEALT, 0, narrow, usual, FS_KERNEL_NARROW},
    {T4, BATCH, FS_F32, FULL, 0, 1, 4, LINES, 0, samples, with_kappa, FS_KERNEL_COLUMNS},
    {T4, PACKED, FS_F32, FULL, 1, 1, 4, NONE, 0, matrices, tall, FS_KERNEL_SORTED},
};

static void every_bar_gets_the_kernel_meant_for_it(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(bars); i++)
        for (const shape *A = bars[i].shapes; A->d; A++)
            for (const int64_t *k = bars[i].k; *k; k++) {
                const struct bar *b = &bars[i];
                const call c = {A->d, *k, b->M, b->kappa, b->s, b->shuffle, b->interleave, 0, A->d, A->n, b->dtype,
                                b->precision, b->memory};
                const fs_problem p = problem_of_call(&c);
                const fs_plan plan = fs_choose(&p, &gpus[b->gpu].traits, NULL);
                if (plan.kernel != b->kernel)
                    fail_msg("line %d of the bars: %s: kernel %d is meant for it, chosen is %s", i + 1,
                             say_call(&c, &gpus[b->gpu]), (int)b->kernel, say_plan(&plan));
                expect_fits("chosen", &c, &gpus[b->gpu], &p, &plan);
            }
}

/* Cutting a matrix into parts costs a second pass over their sums: a small matrix of floats is cut into narrower tiles
 * instead, a large one is not. */
static void a_small_matrix_has_narrow_tiles_rather_than_parts(void **state)
{
    (void)state;
    const struct { int64_t d, n; fs_dtype dtype; int64_t width, parts; } cases[] = {
        {16384, 1024, FS_F32, 128, 1}, {65536, 1024, FS_F32, 256, 2}, {16384, 1024, FS_BF16, 256, 2}};
    for (int i = 0; i < COUNT(cases); i++) {
        const call c = {cases[i].d, 1024, 0, 1, 4, DEALT, 0, 0, cases[i].d, cases[i].n, cases[i].dtype, FULL, PACKED};
        const fs_problem p = problem_of_call(&c);
        const fs_plan plan = fs_choose(&p, &gpus[H200].traits, NULL);
        if (fs_plan_width(&plan) != cases[i].width || plan.parts != cases[i].parts)
            fail_msg("%s: tiles of %lld columns and %lld parts are meant for it, chosen is %s",
                     say_call(&c, &gpus[H200]), (long long)cases[i].width, (long long)cases[i].parts, say_plan(&plan));
    }
}
#endif

/* what is chosen ---------------------------------------------------------------------------------------------- */

static void no_block_has_more_slots_than_its_problem_says(void **state)
{
    (void)state;
    call c;
    const struct gpu *gpu;
    for (int64_t i = 0; sweep(i, &c, &gpu); i += STEP) {
        const fs_blockperm S = sketch_of_call(&c);
        const fs_problem p = problem_of_call(&c);
        const int64_t step = S.M / 61 + 1;
        for (int64_t h = 0; h < S.M; h += step) {
            const int64_t slots = fs_slots_of(&S, h, c.row0, c.rows).count;
            if (slots > p.slots)
                fail_msg("%s: block %" PRId64 " has %" PRId64 " slots, the problem says %" PRId64, say_call(&c, NULL),
                         h, slots, p.slots);
        }
    }
}

static void every_plan_fits(void **state)
{
    (void)state;
    call c;
    const struct gpu *gpu;
    for (int64_t i = 0; sweep(i, &c, &gpu); i += STEP) {
        const fs_problem p = problem_of_call(&c);
        const fs_plan plan = fs_choose(&p, &gpu->traits, NULL);
        expect_fits("chosen", &c, gpu, &p, &plan);
    }
}

/* The plan of the rules is one of them, unless it is sorted.cu's, which has no other. */
static void every_candidate_fits_and_the_chosen_plan_is_one(void **state)
{
    (void)state;
    call c;
    const struct gpu *gpu;
    for (int64_t i = 0; sweep(i, &c, &gpu); i += WIDE_STEP) {
        fs_plan plans[ROOM];
        const fs_problem p = problem_of_call(&c);
        const fs_plan chosen = fs_choose(&p, &gpu->traits, NULL);
        const int count = fs_choose_candidates(&p, &gpu->traits, plans, ROOM);
        int found = chosen.kernel == FS_KERNEL_SORTED;
        if (count >= ROOM) fail_msg("%s: %d candidates, there is no room for more", say_call(&c, gpu), count);
        for (int j = 0; j < count; j++) {
            expect_fits("a candidate", &c, gpu, &p, &plans[j]);
            found |= same_plan(&plans[j], &chosen);
        }
        if (!found)
            fail_msg("%s: none of %d candidates is the plan chosen: %s", say_call(&c, gpu), count, say_plan(&chosen));
    }
}

static void candidates_stay_within_their_room(void **state)
{
    (void)state;
    const call c = {65536, 1024, 0, 4, 8, DEALT, 0, 0, 65536, 1024, FS_F32, FULL, PACKED};
    const fs_problem p = problem_of_call(&c);
    fs_plan all[ROOM], some[ROOM];
    const int count = fs_choose_candidates(&p, &gpus[H200].traits, all, ROOM);
    for (int room = 0; room <= count; room++) {
        memset(some, 0xFF, sizeof some);
        const int given = fs_choose_candidates(&p, &gpus[H200].traits, some, room);
        if (given != room) fail_msg("%d of %d candidates in a room for %d", given, count, room);
        for (int i = 0; i < given; i++) assert_true(same_plan(&some[i], &all[i]));
        if (some[given].parts != -1) fail_msg("a candidate was written past a room for %d", room);
    }
}

/* tables ------------------------------------------------------------------------------------------------------ */

/* A table being written; it is removed when it has been read. */
typedef struct draft {
    char path[40];
    FILE *file;
} draft;

static draft draft_open(void)
{
    draft t = {"/tmp/flashsketch-choose-XXXXXX", NULL};
    const int descriptor = mkstemp(t.path);
    if (descriptor < 0 || !(t.file = fdopen(descriptor, "w"))) fail_msg("no temporary file");
    return t;
}
static fs_tuning *draft_read(draft *t, char *why, size_t bytes)
{
    assert_int_equal(fclose(t->file), 0);
    fs_tuning *table = fs_tuning_read(t->path, why, bytes);
    unlink(t->path);
    return table;
}
static fs_tuning *table_of(const fs_problem *p, const fs_plan *plan, char *why, size_t bytes)
{
    draft t = draft_open();
    fs_tuning_write_head(t.file, "some GPU");
    fs_tuning_write(t.file, p, plan);
    return draft_read(&t, why, bytes);
}

/* Plans and problems that the laws of tables are tried on, one of each kernel and GPU at least. */
static const call table_calls[] = {
    {65536, 1024, 0, 1, 4, DEALT, 0, 0, 65536, 1024, FS_F32, FULL, PACKED},
    {65536, 4096, 0, 4, 8, DEALT, 0, 0, 65536, 512, FS_BF16, FULL, PACKED},
    {262144, 1024, 0, 2, 2, NONE, 0, 0, 262144, 64, FS_F32, FAST, PACKED},
    {262144, 1024, 0, 1, 4, LINES, 0, 100, 200000, 300, FS_F16, FULL, BATCH},
    {262144, 1024, 0, 1, 4, LINES, 16, 100, 200000, 300, FS_F32, FULL, BATCH},
    {16777216, 1024, 0, 1, 4, DEALT, 0, 0, 16777216, 1, FS_F32, FULL, PACKED},
    {16777216, 4096, 0, 1, 4, NONE, 0, 0, 16777216, 16, FS_BF16, FULL, PACKED},
    {100, 200, 0, 3, 1, DEALT, 0, 0, 100, 7, FS_F64, FULL, ODD},
};

static void a_table_takes_every_candidate(void **state)
{
    (void)state;
    call c;
    const struct gpu *gpu;
    char why[512] = "";
    for (int64_t i = 0; sweep(i, &c, &gpu); i += 3 * WIDE_STEP) {
        fs_plan plans[ROOM];
        const fs_problem p = problem_of_call(&c);
        const int count = fs_choose_candidates(&p, &gpu->traits, plans, ROOM);
        for (int j = 0; j < count; j++) {
            fs_tuning *table = table_of(&p, &plans[j], why, sizeof why);
            if (!table) fail_msg("%s: %s: %s", say_call(&c, gpu), say_plan(&plans[j]), why);
            const fs_plan chosen = fs_choose(&p, &gpu->traits, table);
            free(table);
            if (!same_plan(&chosen, &plans[j])) {
                print_error("%s: written was %s\n", say_call(&c, gpu), say_plan(&plans[j]));
                fail_msg("chosen is %s", say_plan(&chosen));
            }
        }
    }
}

/* A candidate that the rules do not choose. */
static fs_plan other_plan(const call *c, const fs_problem *p, const struct gpu *gpu)
{
    fs_plan plans[ROOM];
    const fs_plan own = fs_choose(p, &gpu->traits, NULL);
    const int count = fs_choose_candidates(p, &gpu->traits, plans, ROOM);
    for (int i = count - 1; i >= 0; i--)
        if (!same_plan(&plans[i], &own)) return plans[i];
    fail_msg("%s: there is only one plan", say_call(c, gpu));
    return own;
}

static void expect_rules(const char *field, const fs_problem *p, const struct gpu *gpu, const fs_tuning *table)
{
    const fs_plan chosen = fs_choose(p, &gpu->traits, table), own = fs_choose(p, &gpu->traits, NULL);
    if (!same_plan(&chosen, &own))
        fail_msg("%s: an entry was chosen for a problem with another %s: %s", gpu->name, field, say_plan(&chosen));
}

static void an_entry_is_chosen_for_its_problem_and_no_other(void **state)
{
    (void)state;
    char why[512] = "";
    for (int i = 0; i < COUNT(table_calls); i++)
        for (int g = 0; g < GPUS; g++) {
            const call *c = &table_calls[i];
            const fs_problem p = problem_of_call(c);
            const fs_plan plan = other_plan(c, &p, &gpus[g]);
            fs_tuning *table = table_of(&p, &plan, why, sizeof why);
            if (!table) fail_msg("%s: %s: %s", say_call(c, &gpus[g]), say_plan(&plan), why);
            const fs_plan chosen = fs_choose(&p, &gpus[g].traits, table);
            if (!same_plan(&chosen, &plan)) fail_msg("%s: not chosen: %s", say_call(c, &gpus[g]), say_plan(&plan));
#define WITH_ANOTHER(field, value) \
    do { \
        fs_problem other = p; \
        other.field = (value); \
        expect_rules(#field, &other, &gpus[g], table); \
    } while (0)
            WITH_ANOTHER(rows, p.rows + 32);
            WITH_ANOTHER(n, p.n + 16);
            WITH_ANOTHER(k, p.k + 1);
            WITH_ANOTHER(M, p.M + 1);
            WITH_ANOTHER(kappa, p.kappa + 2);
            WITH_ANOTHER(s, p.s + 1);
            WITH_ANOTHER(interleave, 2 * p.interleave);
            WITH_ANOTHER(block_rows, p.block_rows - 1);
            WITH_ANOTHER(slots, p.slots + 1);
            WITH_ANOTHER(shuffle, p.shuffle % FS_DEF_LINES + 1);
            WITH_ANOTHER(dtype, p.dtype == FS_F32 ? FS_F16 : FS_F32);
            WITH_ANOTHER(precision, p.precision == FS_PRECISION_FAST ? FS_PRECISION_FULL : FS_PRECISION_FAST);
            WITH_ANOTHER(across, !p.across);
            WITH_ANOTHER(down, !p.down);
            WITH_ANOTHER(aligned, !p.aligned);
            WITH_ANOTHER(whole, !p.whole);
#undef WITH_ANOTHER
            free(table);
        }
}

/* Each entry is found, whatever comments and empty lines lie between them. */
static void a_table_may_have_many_entries_and_comments(void **state)
{
    (void)state;
    char why[512] = "";
    fs_plan plans[COUNT(table_calls)];
    draft t = draft_open();
    fs_tuning_write_head(t.file, "some GPU");
    for (int i = 0; i < COUNT(table_calls); i++) {
        const fs_problem p = problem_of_call(&table_calls[i]);
        plans[i] = other_plan(&table_calls[i], &p, &gpus[H200]);
        fprintf(t.file, "# entry %d\n\n", i);
        fs_tuning_write(t.file, &p, &plans[i]);
    }
    fs_tuning *table = draft_read(&t, why, sizeof why);
    if (!table) fail_msg("%s", why);
    for (int i = 0; i < COUNT(table_calls); i++) {
        const fs_problem p = problem_of_call(&table_calls[i]);
        const fs_plan chosen = fs_choose(&p, &gpus[H200].traits, table);
        if (!same_plan(&chosen, &plans[i])) fail_msg("entry %d is not chosen", i);
    }
    free(table);
}

/* A table may come from another machine. */
static void an_entry_that_this_gpu_cannot_run_is_not_chosen(void **state)
{
    (void)state;
    char why[512] = "";
    for (int i = 0; i < COUNT(table_calls); i++)
        for (int from = 0; from < GPUS; from++) {
            fs_plan plans[ROOM];
            const call *c = &table_calls[i];
            const fs_problem p = problem_of_call(c);
            const int count = fs_choose_candidates(&p, &gpus[from].traits, plans, ROOM);
            for (int j = 0; j < count; j++) {
                fs_tuning *table = table_of(&p, &plans[j], why, sizeof why);
                if (!table) fail_msg("%s: %s: %s", say_call(c, &gpus[from]), say_plan(&plans[j]), why);
                for (int to = 0; to < GPUS; to++) {
                    const fs_plan chosen = fs_choose(&p, &gpus[to].traits, table);
                    expect_fits("chosen from a table of another GPU", c, &gpus[to], &p, &chosen);
                }
                free(table);
            }
        }
}

/* damaged tables ---------------------------------------------------------------------------------------------- */

typedef enum plan_field {
#define NAME(field) FIELD_##field,
    PLAN_FIELDS(NAME)
#undef NAME
    PLAN_FIELD_COUNT
} plan_field;
static const char *const plan_field_names[] = {
#define NAME(field) #field,
    PLAN_FIELDS(NAME)
#undef NAME
};
static int64_t get_field(const fs_plan *plan, plan_field which)
{
#define GET(field) if (which == FIELD_##field) return (int64_t)plan->field;
    PLAN_FIELDS(GET)
#undef GET
    return 0;
}
static void set_field(fs_plan *plan, plan_field which, int64_t value)
{
#define SET(field) if (which == FIELD_##field) plan->field = value;
    PLAN_FIELDS(SET)
#undef SET
}

/* How a block's slots are cut into parts may be edited, within what fits; nothing else may, because everything else
 * follows from the kernel's instance and the problem. */
static int may_be_edited(plan_field which) { return which == FIELD_parts || which == FIELD_length; }

static void an_edited_plan_is_refused_or_still_fits(void **state)
{
    (void)state;
    char why[512] = "";
    for (int i = 0; i < COUNT(table_calls); i++)
        for (int g = 0; g < GPUS; g++) {
            fs_plan plans[ROOM];
            const call *c = &table_calls[i];
            const fs_problem p = problem_of_call(c);
            const int count = fs_choose_candidates(&p, &gpus[g].traits, plans, ROOM);
            for (int j = 0; j < count; j++)
                for (plan_field which = 0; which < PLAN_FIELD_COUNT; which++) {
                    const int64_t old = get_field(&plans[j], which);
                    const int64_t values[] = {-old,    0,       1,       2,       3,        old - 1,    old + 1,
                                              old + 8, 2 * old, 4 * old, old / 2, old + 32, 0x7FFFFFFF, INT64_MAX};
                    for (int v = 0; v < COUNT(values); v++) {
                        fs_plan edited = plans[j];
                        set_field(&edited, which, values[v]);
                        if (same_plan(&edited, &plans[j])) continue;
                        fs_tuning *table = table_of(&p, &edited, why, sizeof why);
                        const int taken = table != NULL;
                        free(table);
                        if (!taken) continue;
                        const char *fault = may_be_edited(which) ? fault_of(&p, &edited, &gpus[g].traits)
                                                                  : "it follows from the others";
                        if (fault)
                            fail_msg("%s: %s edited from %" PRId64 " was taken: %s: %s", say_call(c, &gpus[g]),
                                     plan_field_names[which], old, fault, say_plan(&edited));
                    }
                }
        }
}

/* Of columns.cu every number of a plan follows from its threads, so all may be edited together and agree: between two
 * plans that differ in their threads alone, shared memory grows evenly with them. */
static void threads_that_make_no_teams_are_refused(void **state)
{
    (void)state;
    char why[512] = "";
    const call *c = &table_calls[0];
    const fs_problem p = problem_of_call(c);
    fs_plan plans[ROOM], few = {0}, many = {0};
    const int count = fs_choose_candidates(&p, &gpus[H200].traits, plans, ROOM);
    for (int i = 0; i < count; i++) {
        if (plans[i].kernel != FS_KERNEL_COLUMNS || fs_plan_width(&plans[i]) != plans[i].team) continue;
        if (plans[i].threads == 64) few = plans[i];
        if (plans[i].threads == 128) many = plans[i];
    }
    assert_true(few.threads == 64 && many.threads == 128 && few.chunk == many.chunk && few.group == many.group);
    for (int threads = 65; threads < 128; threads++)
        for (int team = 1; team <= 128; team *= 2) {
            fs_plan edited = few;
            edited.threads = threads;
            edited.team = team;
            edited.shared += (many.shared - few.shared) * (threads - 64) / 64;
            fs_tuning *table = table_of(&p, &edited, why, sizeof why);
            const int taken = table != NULL;
            free(table);
            if (taken) expect_fits("taken from a table", c, &gpus[H200], &p, &edited);
        }
}

/* Fails the test unless a file was refused with a sentence that names it and, unless it is 0, the line. */
static void expect_refused(const char *what, fs_tuning *table, const char *path, int line, const char *why)
{
    char named[32];
    const int taken = table != NULL;
    free(table);
    if (taken) fail_msg("%s: taken for a table", what);
    if (!strstr(why, path)) fail_msg("%s: \"%s\" does not name the file %s", what, why, path);
    snprintf(named, sizeof named, "line %d ", line);
    if (line && !strstr(why, named)) fail_msg("%s: \"%s\" does not name line %d", what, why, line);
}
static void expect_path_refused(const char *what, const char *path)
{
    char why[512] = "";
    fs_tuning *table = fs_tuning_read(path, why, sizeof why);
    expect_refused(what, table, path, 0, why);
}
static void expect_draft_refused(const char *what, draft *t, int line)
{
    char why[512] = "";
    fs_tuning *table = draft_read(t, why, sizeof why);
    expect_refused(what, table, t->path, line, why);
}
static void expect_text_refused(const char *what, const char *text, int line)
{
    draft t = draft_open();
    fputs(text, t.file);
    expect_draft_refused(what, &t, line);
}

/* A good table: head, comment, entry; its entry is line 3. */
static char *good_text(void)
{
    const fs_problem p = problem_of_call(&table_calls[0]);
    const fs_plan plan = fs_choose(&p, &gpus[H200].traits, NULL);
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    fs_tuning_write_head(f, "some GPU");
    fputs("# a comment\n", f);
    fs_tuning_write(f, &p, &plan);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void what_is_no_table_is_refused(void **state)
{
    (void)state;
    expect_path_refused("a missing file", "/nonexistent/flashsketch-tuning.txt");
    expect_path_refused("a directory", "/tmp");
    expect_text_refused("an empty file", "", 1);
    expect_text_refused("an empty line", "\n", 1);
    expect_text_refused("another kind of file", "{\"this\": \"is no table\"}\n", 1);
    expect_text_refused("half a head", "flashsketch-tun", 1);
}

static void another_head_is_refused(void **state)
{
    (void)state;
    char *good = good_text(), *text = room((int64_t)strlen(good) + 100, 1);
    const char *entries = strchr(good, '\n');
    static const char *const heads[] = {"", " flashsketch-tuning 1 GPU", "flashsketch-tuning 2 GPU",
                                        "flashsketch-tuning 10 GPU", "flashsketch-tuning", "FLASHSKETCH-TUNING 1 GPU"};
    for (int i = 0; i < COUNT(heads); i++) {
        sprintf(text, "%s%s", heads[i], entries);
        char what[80];
        snprintf(what, sizeof what, "the head '%s'", heads[i]);
        expect_text_refused(what, text, 1);
    }
    free(text);
    free(good);
}

/* Cut anywhere, also within its last number. */
static void a_truncated_entry_is_refused(void **state)
{
    (void)state;
    char *good = good_text();
    const char *entry = strchr(strchr(good, '\n') + 1, '\n') + 1;
    const size_t start = (size_t)(entry - good), end = strlen(good) - 1;
    for (size_t length = start + 1; length < end; length++) {
        char *text = room((int64_t)length + 1, 1), what[64];
        memcpy(text, good, length);
        text[length] = 0;
        snprintf(what, sizeof what, "an entry cut after %zu of %zu characters", length - start, end - start);
        expect_text_refused(what, text, 3);
        free(text);
    }
    free(good);
}

static void a_spoilt_line_is_refused_and_named(void **state)
{
    (void)state;
    static const struct { const char *what, *before, *after; int line; } spoilt[] = {
        {"more behind an entry", "", " and more\n", 3},
        {"another number behind an entry", "", " parts=7\n", 3},
        {"more before an entry", "x", "\n", 3},
        {"a line after a good entry", "", "\nmore\n", 4},
        {"an empty line, then another that is no entry", "\n", "\nmore\n", 5},
        {"a binary line", "\x7f\x45\x4c\x46\x02\x01\n", "\n", 3},
    };
    char *good = good_text(), *text = room((int64_t)strlen(good) + 100, 1);
    char *entry = strchr(strchr(good, '\n') + 1, '\n') + 1;
    entry[strlen(entry) - 1] = 0;
    for (int i = 0; i < COUNT(spoilt); i++) {
        sprintf(text, "%.*s%s%s%s", (int)(entry - good), good, spoilt[i].before, entry, spoilt[i].after);
        expect_text_refused(spoilt[i].what, text, spoilt[i].line);
    }
    free(text);
    free(good);
}

/* The first plan of a kernel that an H200 could try. */
static fs_plan candidate_of(const fs_problem *p, fs_kernel kernel)
{
    fs_plan plans[ROOM];
    const int count = fs_choose_candidates(p, &gpus[H200].traits, plans, ROOM);
    for (int i = 0; i < count; i++)
        if (plans[i].kernel == kernel) return plans[i];
    fail_msg("kernel %d is no candidate", (int)kernel);
    return plans[0];
}

/* Whole entries whose plan the problem or the kernels cannot have. */
static void an_impossible_plan_is_refused_and_named(void **state)
{
    (void)state;
    const call f64 = {65536, 1024, 0, 1, 4, DEALT, 0, 0, 65536, 1024, FS_F64, FULL, PACKED};
    const call shifted = {65536, 1024, 0, 1, 4, DEALT, 0, 0, 65536, 1024, FS_F32, FULL, SHIFTED};
    const call batch = {262144, 1024, 0, 1, 4, LINES, 16, 100, 200000, 300, FS_F32, FULL, BATCH};
    const fs_problem rows = problem_of_call(&table_calls[0]), lines = problem_of_call(&batch),
                     p64 = problem_of_call(&f64),
                     unaligned = problem_of_call(&shifted);
    const fs_kernel kernels[] = {FS_KERNEL_HOPPER_ROWS, FS_KERNEL_HOPPER_LINES, FS_KERNEL_TENSOR_ROWS,
                                 FS_KERNEL_COLUMNS};
    const fs_plan columns = candidate_of(&rows, FS_KERNEL_COLUMNS);
    struct { const char *what; fs_problem p; fs_plan plan; } wrong[64];
    int count = 0;
#define WRONG(problem, base, field, value) \
    do { \
        wrong[count].what = #field " = " #value " of " #base; \
        wrong[count].p = problem; \
        wrong[count].plan = base; \
        wrong[count++].plan.field = value; \
    } while (0)
    for (int i = 0; i < COUNT(kernels); i++) {
        const fs_problem p = kernels[i] == FS_KERNEL_HOPPER_LINES ? lines : rows;
        const fs_plan plan = candidate_of(&p, kernels[i]);
        WRONG(p, plan, parts, 0);
        WRONG(p, plan, parts, -plan.parts);
        WRONG(p, plan, length, 0);
        WRONG(p, plan, instance, -1);
        WRONG(p, plan, instance, 1000);
        WRONG(p, plan, shared, plan.shared + 16);
        WRONG(p, plan, shared, 0);
        WRONG(p, plan, kernel, (fs_kernel)0);
        WRONG(p, plan, kernel, (fs_kernel)99);
        WRONG(p, plan, kernel, FS_KERNEL_SORTED);
        /* Kernels, instances and vectors that another problem has. */
        WRONG(p64, plan, kernel, plan.kernel);
        const int vectors = plan.kernel != FS_KERNEL_COLUMNS || fs_plan_width(&plan) > plan.team;
        if (vectors) WRONG(unaligned, plan, kernel, plan.kernel);
    }
#undef WRONG
    assert_true(count <= COUNT(wrong));
    for (int i = 0; i < count; i++) {
        draft t = draft_open();
        fs_tuning_write_head(t.file, "some GPU");
        fs_tuning_write(t.file, &rows, &columns);
        fs_tuning_write(t.file, &wrong[i].p, &wrong[i].plan);
        char what[600];
        snprintf(what, sizeof what, "%s: %s", wrong[i].what, say_plan(&wrong[i].plan));
        expect_draft_refused(what, &t, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifndef FS_FEW_INSTANCES
        cmocka_unit_test(every_bar_gets_the_kernel_meant_for_it),
        cmocka_unit_test(a_small_matrix_has_narrow_tiles_rather_than_parts),
#endif
        cmocka_unit_test(no_block_has_more_slots_than_its_problem_says),
        cmocka_unit_test(every_plan_fits),
        cmocka_unit_test(every_candidate_fits_and_the_chosen_plan_is_one),
        cmocka_unit_test(candidates_stay_within_their_room),
        cmocka_unit_test(a_table_takes_every_candidate),
        cmocka_unit_test(an_entry_is_chosen_for_its_problem_and_no_other),
        cmocka_unit_test(a_table_may_have_many_entries_and_comments),
        cmocka_unit_test(an_entry_that_this_gpu_cannot_run_is_not_chosen),
        cmocka_unit_test(an_edited_plan_is_refused_or_still_fits),
        cmocka_unit_test(threads_that_make_no_teams_are_refused),
        cmocka_unit_test(what_is_no_table_is_refused),
        cmocka_unit_test(another_head_is_refused),
        cmocka_unit_test(a_truncated_entry_is_refused),
        cmocka_unit_test(a_spoilt_line_is_refused_and_named),
        cmocka_unit_test(an_impossible_plan_is_refused_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
