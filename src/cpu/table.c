/* table.c - the CPU backend: which variant this machine runs, its threads and its scratch memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"

/* The variants, best last; supported() says whether this processor runs one. */
static int always(void) { return 1; }
#ifdef FS_CPU_X86
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif
static const struct variant {
    const fsi_cpu_ops *ops;
    int (*supported)(void);
    int chosen; /* chosen by default; ref only on request */
} variants[] = {
    {&fsi_cpu_reference, always, 0},
    {&fsi_cpu_base, always, 1},
#ifdef FS_CPU_X86
    {&fsi_cpu_avx2, has_avx2, 1},
    {&fsi_cpu_avx512, has_avx512, 1},
#endif
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static fs_result choose_variant(fsi_cpu *cpu, const char *option)
{
    const char *variable = getenv("FLASHSKETCH_ISA"), *asked = variable && *variable ? variable : option;
    const char *name = asked == option ? "fs_context_create: options.isa" : "FLASHSKETCH_ISA";
    for (int i = 0; i < VARIANTS; i++) {
        if (asked && strcmp(asked, variants[i].ops->name) == 0) {
            if (variants[i].supported()) {
                cpu->ops = variants[i].ops;
                return FS_OK;
            }
            return cpu->host.fail(FS_EBACKEND, "%s is %s, which this processor does not run", name, asked);
        }
        if (variants[i].chosen && variants[i].supported()) cpu->ops = variants[i].ops;
    }
    if (asked) return cpu->host.fail(FS_EINVAL, "%s is '%.100s'; it can be ref, base, avx2 or avx512", name, asked);
    return FS_OK;
}

static fs_result cpu_open(void **state, const fsi_host *host, const fs_context_options *options)
{
    fsi_cpu *cpu = host->allocator.alloc(host->allocator.user, sizeof *cpu);
    if (!cpu)
        return host->fail(FS_ENOMEM, "fs_context_create: no memory for the %zu bytes of the CPU backend", sizeof *cpu);
    memset(cpu, 0, sizeof *cpu);
    cpu->host = *host;
    cpu->asked = options->threads;
    const fs_result result = choose_variant(cpu, options->isa);
    if (result != FS_OK) {
        host->allocator.release(host->allocator.user, cpu);
        return result;
    }
    *state = cpu;
    return FS_OK;
}

static void cpu_close(void *state)
{
    fsi_cpu *cpu = state;
    const fs_allocator memory = cpu->host.allocator;
    if (cpu->scratch.memory) memory.release(memory.user, cpu->scratch.memory);
    if (cpu->panels.memory) memory.release(memory.user, cpu->panels.memory);
    memory.release(memory.user, cpu);
}

static int cpu_describe(const void *state, char *text, size_t bytes)
{
    const fsi_cpu *cpu = state;
    const int threads = fs_thread_count(cpu->asked);
    return snprintf(text, bytes, "cpu, variant %s, %d thread%s", cpu->ops->name, threads, threads == 1 ? "" : "s");
}

fsi_cpu *fsi_cpu_begin(void *state)
{
    fsi_cpu *cpu = state;
    cpu->threads = fs_thread_count(cpu->asked);
    return cpu;
}

/* About how many numbers are added. */
static int64_t additions(const fsi_def *S, int64_t rows, int64_t cols)
{
    switch (S->family) {
    case FSI_DEF_BLOCKROW: return S->u.blockrow.k * S->u.blockrow.kappa * S->u.blockrow.s * cols;
    case FSI_DEF_SRHT: return (rows + S->u.srht.k) * 16 * cols;
    case FSI_DEF_GAUSS: return rows * S->u.gauss.k * cols;
    default: return (rows * S->u.blockperm.kappa * S->u.blockperm.s + S->u.blockperm.k) * cols;
    }
}
fsi_cpu *fsi_cpu_begin_product(void *state, const fsi_def *S, int64_t rows, int64_t cols)
{
    enum { WORTH = 1 << 14, AT_ONCE = 16 }; /* additions; of the columns of a row, so many take the time of one */
    fsi_cpu *cpu = state;
    if (additions(S, rows, (cols + AT_ONCE - 1) / AT_ONCE) >= WORTH) return fsi_cpu_begin(state);
    cpu->threads = 1;
    return cpu;
}

static size_t cpu_scratch(const void *state)
{
    const fsi_cpu *cpu = state;
    return cpu->scratch.bytes + cpu->panels.bytes;
}

void *fsi_cpu_take(fsi_cpu *cpu, fsi_cpu_pool *pool, int64_t bytes)
{
    const size_t needed = (size_t)bytes + 64;
    const fs_allocator memory = cpu->host.allocator;
    if (needed > pool->bytes) {
        if (pool->memory) memory.release(memory.user, pool->memory);
        pool->memory = memory.alloc(memory.user, needed);
        pool->bytes = pool->memory ? needed : 0;
        if (!pool->memory) {
            cpu->host.fail(FS_ENOMEM, "no memory for %zu bytes of scratch", needed);
            return NULL;
        }
    }
    return (void *)(((uintptr_t)pool->memory + 63) & ~(uintptr_t)63);
}
void *fsi_cpu_scratch(fsi_cpu *cpu, int64_t bytes) { return fsi_cpu_take(cpu, &cpu->scratch, bytes); }

static fs_result stay_silent(fs_result code, const char *format, ...)
{
    (void)format;
    return code;
}
void fsi_cpu_find_blas(fsi_cpu *cpu)
{
    if (!cpu->has_no_blas) cpu->has_no_blas = fsi_blas_open(&cpu->blas, stay_silent) == FS_EBACKEND;
}

static fs_result cpu_apply(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A, double beta,
                           const fs_matrix *Y)
{
    fsi_cpu *cpu = fsi_cpu_begin_product(state, S, A->rows, A->cols);
    return cpu->ops->apply(cpu, S, row0, alpha, A, NULL, beta, Y);
}
static fs_result cpu_apply_rows(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                                const fs_rows *rows, double beta, const fs_matrix *Y)
{
    fsi_cpu *cpu = fsi_cpu_begin_product(state, S, rows->count, A->cols);
    fs_matrix listed = *A;
    listed.rows = rows->count;
    return cpu->ops->apply(cpu, S, row0, alpha, &listed, rows, beta, Y);
}
static fs_result cpu_apply_products(void *state, const fsi_def *S, int64_t row0, double alpha,
                                    const fsi_products *products, double beta, const fs_matrix *Y)
{
    return fsi_cpu_products(fsi_cpu_begin(state), S, row0, alpha, products, beta, Y);
}
static fs_result cpu_adjoint(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *Y, double beta,
                             const fs_matrix *X)
{
    fsi_cpu *cpu = fsi_cpu_begin_product(state, S, X->rows, X->cols);
    return cpu->ops->adjoint(cpu, S, row0, alpha, Y, beta, X);
}
static fs_result cpu_sparse(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A, double beta,
                            const fs_matrix *Y)
{
    fsi_cpu *cpu = fsi_cpu_begin(state);
    return cpu->ops->sparse(cpu, S, row0, alpha, A, beta, Y);
}

static const char *cpu_isa(const void *state) { return ((const fsi_cpu *)state)->ops->name; }

const fsi_backend *fsi_cpu_backend(void)
{
    static const fsi_backend backend = {
        .abi = FSI_BACKEND_ABI,
        .memory = FS_MEMORY_HOST,
        .open = cpu_open,
        .close = cpu_close,
        .describe = cpu_describe,
        .scratch = cpu_scratch,
        .apply = cpu_apply,
        .adjoint = cpu_adjoint,
        .sparse = cpu_sparse,
        .dense = &fsi_cpu_dense,
        .apply_rows = cpu_apply_rows,
        .apply_products = cpu_apply_products,
        .isa = cpu_isa,
    };
    return &backend;
}
