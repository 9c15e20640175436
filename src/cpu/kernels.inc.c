/* kernels.inc.c - the tuned CPU kernels, one source for every instruction set and element type.
 *
 * A variant's file defines VARIANT and VARIANT_BYTES (its vector width) and includes this one.  The kernels are written
 * with the compilers' vector types, so the same source becomes SSE, AVX2, AVX-512 or, as base on aarch64, NEON code by
 * its compiler flags alone. */
#if VARIANT_BYTES > 16
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#include <omp.h>
#include <string.h>

#include "cpu/cpu.h"
#include "def/bulk.h"

#define PASTE2(a, b) a##_##b
#define PASTE(a, b) PASTE2(a, b)
#define NAME(x) PASTE(x, TYPE)
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define TILE_VECTORS (VARIANT_BYTES == 64 ? 4 : 8)

#include "cpu/plan.inc.c"

#define TYPE f32
#define ELEM float
#define SUM float
#define SUM_BYTES 4
#include "cpu/element.inc.c"

#define TYPE f64
#define ELEM double
#define SUM double
#define SUM_BYTES 8
#include "cpu/element.inc.c"

#define TYPE f16
#define ELEM uint16_t
#define SUM float
#define SUM_BYTES 4
#define TO_SUM fsi_float_of_f16
#define IS_F16 1
#include "cpu/element.inc.c"

#define TYPE bf16
#define ELEM uint16_t
#define SUM float
#define SUM_BYTES 4
#define TO_SUM fsi_float_of_bf16
#define IS_F16 0
#include "cpu/element.inc.c"

/* The three operations, by element type. */
#define BY_TYPE(dtype, operation, ...) \
    switch (dtype) { \
    case FS_F32: return PASTE(operation, f32)(__VA_ARGS__); \
    case FS_F64: return PASTE(operation, f64)(__VA_ARGS__); \
    case FS_F16: return PASTE(operation, f16)(__VA_ARGS__); \
    default: return PASTE(operation, bf16)(__VA_ARGS__); \
    }

static fs_result apply(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                       const fs_rows *list, double beta, const fs_matrix *Y)
{
    BY_TYPE(A->dtype, apply, cpu, S, row0, alpha, A, list, beta, Y)
}
static fs_result adjoint(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *Y, double beta,
                         const fs_matrix *X)
{
    BY_TYPE(Y->dtype, adjoint, cpu, S, row0, alpha, Y, beta, X)
}
static fs_result sparse(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A, double beta,
                        const fs_matrix *Y)
{
    BY_TYPE(A->dtype, sparse, cpu, S, row0, alpha, A, beta, Y)
}

/* Rows of factored input. */
static void multiply_one(int64_t n, const float *restrict a, const float *restrict b, float *restrict x)
{
    if (b)
        for (int64_t c = 0; c < n; c++) x[c] = a[c] * b[c];
    else memcpy(x, a, (size_t)n * sizeof *x);
}
static void multiply_add(int64_t n, const float *restrict a, const float *restrict b, float *restrict x)
{
    if (b)
        for (int64_t c = 0; c < n; c++) x[c] = __builtin_fmaf(a[c], b[c], x[c]);
    else
        for (int64_t c = 0; c < n; c++) x[c] += a[c];
}
static void multiply(int64_t n, int64_t tokens, int more, const float *a, const float *b, float *x)
{
    for (int64_t t = 0; t < tokens; t++)
        (t > 0 || more ? multiply_add : multiply_one)(n, a + t * n, b ? b + t * n : NULL, x);
}

#include "cpu/rows.inc.c"
#include "cpu/rows_twice.inc.c"

const fsi_cpu_ops PASTE(fsi_cpu, VARIANT) = {
    .name = TEXT(VARIANT),
    .apply = apply,
    .adjoint = adjoint,
    .sparse = sparse,
    .multiply = multiply,
    .row_dots = row_dots,
    .row_sums = row_sums,
    .row_dots_twice = row_dots_twice,
    .row_sums_twice = row_sums_twice,
};
