/* plans.h - what tests of the CUDA backend's choice share: GPUs, calls, a sweep over them, properties of a plan.
 *
 * No GPU is needed: GPUs are rows of a table here, and matrices are views of memory that is never read. */
#ifndef FSI_TESTS_PLANS_PLANS_H
#define FSI_TESTS_PLANS_PLANS_H

#include "tests/support/support.h"
#include "cuda/plan/kernel.h"
#include "cuda/plan/tune/candidates.h"
#include "cuda/plan/tuning.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
enum { ROOM = 256 };

typedef struct gpu_kind {
    const char *name;
    fsi_gpu_traits traits;
} gpu_kind;
enum { T4, A100, H200, B200, RTX_5090, GPUS };
extern const gpu_kind gpus[];

/* Views that differ in what kernels can do with them: which neighbours are contiguous, what is aligned. */
typedef enum memory {
    PACKED,   /* row-major */
    PADDED,   /* row-major, rows 16 bytes longer than their length rounded up to 16 bytes */
    ODD,      /* row-major, rows one element longer */
    SHIFTED,  /* row-major, one element into the buffer */
    BACKWARD, /* row-major, last row first */
    REPEATED, /* every row is the same memory */
    BATCH,    /* columns contiguous */
    BATCH_SHIFTED,
    BATCH_PADDED, /* samples begin at multiples of 16 bytes */
    SPREAD,       /* nothing contiguous */
    MEMORIES
} memory;
typedef struct call {
    int64_t d, k, M, kappa, s; /* M = 0 and s = 0: the default */
    fs_shuffle shuffle;
    int64_t interleave;
    int64_t row0, rows, n; /* the row slice of A */
    fs_dtype dtype;
    fs_precision precision;
    memory memory;
} call;

#define NONE FS_SHUFFLE_NONE
#define SHUFFLED FS_SHUFFLE_ROWS
#define GROUPED FS_SHUFFLE_GROUPS
#define FULL FS_PRECISION_FULL
#define FAST FS_PRECISION_FAST

fsi_blockperm sketch_of_call(const call *c);
fs_matrix matrix_of_call(const call *c);
fsi_problem problem_of_call(const call *c);

/* The fields of a plan, in one list for comparing, printing and editing them. */
#define PLAN_FIELDS(X) \
    X(kernel) X(instance) X(slices) X(length) X(threads) X(team) X(chunk) X(group) X(shared) X(cluster)

int same_plan(const fsi_plan *a, const fsi_plan *b);

/* Texts, in buffers that the next call of the same function overwrites. */
const char *say_plan(const fsi_plan *plan);
const char *say_call(const call *c, const gpu_kind *gpu);

/* Call `number` of the product of all lists; 0 past the last. */
int sweep(int64_t number, call *c, const gpu_kind **gpu);
/* Every STEP-th call is tried, and for what takes longer every WIDE_STEP-th: primes that divide the length of no list,
 * so that every value of one list is still combined with every value of another. */
enum { STEP = THIN == 1 ? 31 : 97, WIDE_STEP = THIN == 1 ? 307 : 1009 };

/* Which property a plan lacks on a GPU, or NULL; and a test that fails unless it is NULL. */
const char *fault_of(const fsi_problem *p, const fsi_plan *plan, const fsi_gpu_traits *gpu);
void expect_fits(const char *what, const call *c, const gpu_kind *gpu, const fsi_problem *p, const fsi_plan *plan);

#endif
