/* backend.cu - the CUDA backend's table: opening a GPU, its scratch memory, and which file makes which product. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "combine.cuh"
#include "gpu.h"
#include "instances.h"
#include "staging.h"
#include "tuning.h"

fs_result fs_gpu_check(fs_gpu *gpu, cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return FS_OK;
    cudaGetLastError();  /* so that the next call is not blamed for it */
    if (error == cudaErrorMemoryAllocation)
        return gpu->host.fail(FS_ENOMEM, "%s on %s: %s", what, gpu->name, cudaGetErrorString(error));
    return gpu->host.fail(FS_EBACKEND, "%s on %s: %s", what, gpu->name, cudaGetErrorString(error));
}

fs_result fs_gpu_take(fs_gpu *gpu, fs_gpu_pool *pool, int64_t bytes, void **memory)
{
    const int used = pool->count;
    if (used > 0 && pool->bytes[used - 1] >= (size_t)bytes) {
        *memory = pool->memory[used - 1];
        return FS_OK;
    }
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    FS_TRY_GPU(fs_gpu_check(gpu, cudaStreamIsCapturing(gpu->stream, &capture),
                            "asking whether the stream is captured"));
    if (capture != cudaStreamCaptureStatusNone)
        return gpu->host.fail(FS_EUNSUPPORTED,
                              "this call needs %lld bytes of scratch and the context has %lld: memory cannot "
                              "be allocated while the stream is captured, make the call once before", (long long)bytes,
                              (long long)(used ? pool->bytes[used - 1] : 0));
    /* Doubling keeps the number of outgrown buffers, and what they hold, small. */
    size_t want = used > 0 ? 2 * pool->bytes[used - 1] : 0;
    if (want < (size_t)bytes) want = (size_t)bytes;
    void *grown = NULL;
    cudaError_t error = cudaMalloc(&grown, want);
    if (error != cudaSuccess && want > (size_t)bytes) error = cudaMalloc(&grown, want = (size_t)bytes);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return gpu->host.fail(FS_ENOMEM, "no %lld bytes of scratch on %s", (long long)bytes, gpu->name);
    }
    FS_TRY_GPU(fs_gpu_check(gpu, error, "allocating scratch"));
    /* Beyond 31 buffers the one before last is old enough to wait for. */
    if (used == (int)(sizeof pool->memory / sizeof pool->memory[0])) {
        cudaStreamSynchronize(gpu->stream);
        cudaFree(pool->memory[--pool->count]);
    }
    pool->memory[pool->count] = grown;
    pool->bytes[pool->count++] = want;
    *memory = grown;
    return FS_OK;
}
fs_result fs_gpu_scratch(fs_gpu *gpu, int64_t bytes, void **memory)
{
    return fs_gpu_take(gpu, &gpu->scratch, bytes, memory);
}

/* Every kernel that wants more than 48 KiB of shared memory says so once. */
static fs_result allow_shared_memory(fs_gpu *gpu)
{
    const struct { const void *const *kernels; int count, least_arch; } tables[] = {
        {fs_columns_kernels, FS_COLUMNS_COUNT, 75},
        {fs_narrow_kernels, FS_NARROW_COUNT, 75},
        {fs_tall_kernels, FS_TALL_COUNT, 80},
        {fs_tensor_rows_kernels, FS_TENSOR_ROWS_COUNT, 80},
        {fs_hopper_rows_kernels, FS_HOPPER_ROWS_COUNT, 90},
        {fs_half_rows_kernels, FS_HALF_ROWS_COUNT, 90},
        {fs_listed_rows_kernels, FS_LISTED_ROWS_COUNT, 90},
        {fs_hopper_lines_kernels, FS_HOPPER_LINES_COUNT, 90},
    };
    for (const auto &table : tables)
        for (int i = 0; i < table.count && gpu->traits.arch >= table.least_arch; i++)
            FS_TRY_GPU(fs_gpu_check(gpu,
                                    cudaFuncSetAttribute(table.kernels[i], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                         (int)gpu->traits.shared),
                                    "preparing kernels"));
    return fs_gpu_combine_prepare(gpu);
}

static fs_result open_device(fs_gpu *gpu, const fs_context_options *options)
{
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0)
        return gpu->host.fail(FS_EBACKEND, "the CUDA backend found no GPU: %s",
                              error == cudaSuccess ? "the driver lists none" : cudaGetErrorString(error));
    if (options->device >= count)
        return gpu->host.fail(FS_EBACKEND, "device %d was asked for, there %s %d", options->device,
                              count == 1 ? "is" : "are", count);
    cudaDeviceProp prop;
    FS_TRY_GPU(fs_gpu_check(gpu, cudaGetDeviceProperties(&prop, options->device), "reading the GPU's properties"));
    gpu->device = options->device;
    gpu->stream = (cudaStream_t)options->stream;
    gpu->precision = options->precision;
    gpu->threads = options->threads;
    snprintf(gpu->name, sizeof gpu->name, "%s", prop.name);
    gpu->capability = gpu->traits.arch = prop.major * 10 + prop.minor;
    gpu->traits.processors = prop.multiProcessorCount;
    gpu->traits.shared = (int64_t)prop.sharedMemPerBlockOptin;
    gpu->traits.shared_per_processor = (int64_t)prop.sharedMemPerMultiprocessor;
    gpu->traits.l2 = prop.l2CacheSize;
    if (gpu->traits.arch < 75)
        return gpu->host.fail(FS_EBACKEND, "%s has compute capability %d.%d, the least is 7.5", prop.name, prop.major,
                              prop.minor);
    on_device here(gpu->device);
    FS_TRY_GPU(allow_shared_memory(gpu));
    /* Built without sm_90a the kernels of hopper_rows.cu are empty, which few registers show: then the GPU is taken for
     * its predecessor, whose instructions it has. */
    cudaFuncAttributes hopper;
    FS_TRY_GPU(fs_gpu_check(gpu, cudaFuncGetAttributes(&hopper, fs_hopper_rows_kernels[0]), "looking at a kernel"));
    if (gpu->capability == 90 && hopper.numRegs < 64) gpu->traits.arch = 89;
    return FS_OK;
}

static fs_result open_tuning(fs_gpu *gpu)
{
    const char *path = getenv("FLASHSKETCH_TUNING");
    if (!path || !*path) return FS_OK;
    char why[512];
    gpu->tuning = fs_tuning_read(path, why, sizeof why);
    return gpu->tuning ? FS_OK : gpu->host.fail(FS_EINVAL, "FLASHSKETCH_TUNING: %s", why);
}

static void gpu_close(void *state)
{
    fs_gpu *gpu = (fs_gpu *)state;
    on_device here(gpu->device);
    fs_staging_close(gpu);
    for (int i = 0; i < gpu->scratch.count; i++) cudaFree(gpu->scratch.memory[i]);
    for (int i = 0; i < gpu->copies.count; i++) cudaFree(gpu->copies.memory[i]);
    free(gpu->tuning);
    gpu->host.allocator.release(gpu->host.allocator.user, gpu);
}

static fs_result gpu_open(void **state, const fs_host *host, const fs_context_options *options)
{
    fs_gpu *gpu = (fs_gpu *)host->allocator.alloc(host->allocator.user, sizeof *gpu);
    if (!gpu) return host->fail(FS_ENOMEM, "no memory for the %zu bytes of a CUDA context", sizeof *gpu);
    memset(gpu, 0, sizeof *gpu);
    gpu->host = *host;
    fs_result result = open_tuning(gpu);
    if (result == FS_OK) result = open_device(gpu, options);
    if (result != FS_OK) {
        free(gpu->tuning);
        host->allocator.release(host->allocator.user, gpu);
        return result;
    }
    *state = gpu;
    return FS_OK;
}

static int gpu_describe(const void *state, char *text, size_t bytes)
{
    const fs_gpu *gpu = (const fs_gpu *)state;
    return snprintf(text, bytes, "cuda, device %d: %s, compute capability %d.%d, %d multiprocessors%s%s", gpu->device,
                    gpu->name, gpu->capability / 10, gpu->capability % 10, gpu->traits.processors,
                    gpu->precision == FS_PRECISION_FAST ? ", fast precision" : "", gpu->tuning ? ", tuned" : "");
}

static size_t gpu_scratch(const void *state)
{
    const fs_gpu *gpu = (const fs_gpu *)state;
    size_t bytes = fs_staging_bytes(gpu);
    for (int i = 0; i < gpu->scratch.count; i++) bytes += gpu->scratch.bytes[i];
    for (int i = 0; i < gpu->copies.count; i++) bytes += gpu->copies.bytes[i];
    return bytes;
}

fs_result fs_gpu_product(fs_gpu *gpu, const fs_def *S, int adjoint, int64_t row0, double alpha, const fs_matrix *from,
                         double beta, const fs_matrix *to)
{
    if (to->rows == 0 || to->cols == 0) return FS_OK;
#define RUN(operation, family) operation(gpu, &S->u.family, S->scale, row0, alpha, from, beta, to)
    switch (S->family) {
    case FS_DEF_BLOCKROW:
        return adjoint ? RUN(fs_gpu_blockrow_adjoint, blockrow) : RUN(fs_gpu_blockrow_apply, blockrow);
    case FS_DEF_SRHT: return adjoint ? RUN(fs_gpu_hadamard_adjoint, srht) : RUN(fs_gpu_hadamard_apply, srht);
    case FS_DEF_GAUSS: return adjoint ? RUN(fs_gpu_normal_adjoint, gauss) : RUN(fs_gpu_normal_apply, gauss);
    default: return adjoint ? RUN(fs_gpu_blockperm_adjoint, blockperm) : RUN(fs_gpu_blockperm_apply, blockperm);
    }
#undef RUN
}

static fs_result gpu_apply(void *state, const fs_def *S, int64_t row0, double alpha, const fs_matrix *A, double beta,
                           const fs_matrix *Y)
{
    fs_gpu *gpu = (fs_gpu *)state;
    on_device here(gpu->device);
    if (A->place == FS_HOST || Y->place == FS_HOST) return fs_staged_product(gpu, S, 0, row0, alpha, A, beta, Y);
    return fs_gpu_product(gpu, S, 0, row0, alpha, A, beta, Y);
}
static fs_result gpu_adjoint(void *state, const fs_def *S, int64_t row0, double alpha, const fs_matrix *Y, double beta,
                             const fs_matrix *X)
{
    fs_gpu *gpu = (fs_gpu *)state;
    on_device here(gpu->device);
    if (X->place == FS_HOST || Y->place == FS_HOST) return fs_staged_product(gpu, S, 1, row0, alpha, Y, beta, X);
    return fs_gpu_product(gpu, S, 1, row0, alpha, Y, beta, X);
}
static fs_result gpu_sparse(void *state, const fs_def *S, int64_t row0, double alpha, const fs_sparse *A, double beta,
                            const fs_matrix *Y)
{
    fs_gpu *gpu = (fs_gpu *)state;
    on_device here(gpu->device);
    if (Y->rows == 0 || Y->cols == 0) return FS_OK;
    return fs_gpu_sparse_apply(gpu, S, row0, alpha, A, beta, Y);
}
static fs_result gpu_digest(void *state, const fs_def *S, int64_t col0, int64_t cols, uint64_t *digest)
{
    fs_gpu *gpu = (fs_gpu *)state;
    on_device here(gpu->device);
    return fs_gpu_digest(gpu, S, col0, cols, digest);
}
static fs_result gpu_csr(void *state, const fs_def *S, int64_t col0, const fs_sparse *out)
{
    fs_gpu *gpu = (fs_gpu *)state;
    on_device here(gpu->device);
    return fs_gpu_csr(gpu, S, col0, out);
}

static fs_result gpu_add(void *state, const fs_matrix *P, int count, double beta, const fs_matrix *Y)
{
    fs_gpu *gpu = (fs_gpu *)state;
    on_device here(gpu->device);
    return fs_gpu_add(gpu, P, count, beta, Y);
}

static fs_result gpu_apply_rows(void *state, const fs_def *S, int64_t row0, double alpha, const fs_matrix *A,
                                const fs_rows *rows, double beta, const fs_matrix *Y)
{
    fs_gpu *gpu = (fs_gpu *)state;
    on_device here(gpu->device);
    return fs_gpu_rows_apply(gpu, S, row0, alpha, A, rows, beta, Y);
}

static fs_result gpu_apply_products(void *state, const fs_def *S, int64_t row0, double alpha,
                                    const fs_products *products, double beta, const fs_matrix *Y)
{
    fs_gpu *gpu = (fs_gpu *)state;
    on_device here(gpu->device);
    return fs_gpu_products_apply(gpu, S, row0, alpha, products, beta, Y);
}

extern "C" __attribute__((visibility("default"))) const fs_backend *fs_backend_entry_point(void)
    __asm__(FS_BACKEND_ENTRY);
const fs_backend *fs_backend_entry_point(void)
{
    static const fs_backend backend = {FS_BACKEND_ABI, FS_CUDA,     gpu_open,   gpu_close,  gpu_describe, gpu_scratch,
                                       gpu_apply,      gpu_adjoint, gpu_sparse, gpu_digest, gpu_csr,
                                       &fs_gpu_dense,  gpu_add,     &fs_gpu_team, gpu_apply_rows,
                                       &fs_gpu_models, gpu_apply_products};
    return &backend;
}
