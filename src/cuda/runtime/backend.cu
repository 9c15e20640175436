/* backend.cu - the CUDA backend's table: opening a GPU, its scratch memory, and the file for each product. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/gpu.h"
#include "cuda/runtime/staging.h"
#include "cuda/plan/tuning.h"

fs_result fsi_gpu_check(fsi_gpu *gpu, cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return FS_OK;
    cudaGetLastError(); /* so that the next call does not report it */
    if (error == cudaErrorMemoryAllocation)
        return gpu->host.fail(FS_ENOMEM, "%s on %s: %s", what, gpu->name, cudaGetErrorString(error));
    return gpu->host.fail(FS_EBACKEND, "%s on %s: %s", what, gpu->name, cudaGetErrorString(error));
}

fs_result fsi_gpu_take(fsi_gpu *gpu, fsi_gpu_pool *pool, int64_t bytes, void **memory)
{
    const int used = pool->count;
    if (used > 0 && pool->bytes[used - 1] >= (size_t)bytes) {
        *memory = pool->memory[used - 1];
        return FS_OK;
    }
    /* Doubling keeps the number of outgrown buffers, and what they hold, small. */
    size_t want = (size_t)fsi_max(used > 0 ? 2 * (int64_t)pool->bytes[used - 1] : 0, bytes);
    void *grown = NULL;
    cudaError_t error;
    {
        allocations_while_capturing allowed;
        error = cudaMalloc(&grown, want);
        if (error != cudaSuccess && want > (size_t)bytes) error = cudaMalloc(&grown, want = (size_t)bytes);
    }
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return gpu->host.fail(FS_ENOMEM, "no %lld bytes of scratch on %s", (long long)bytes, gpu->name);
    }
    FSI_TRY(fsi_gpu_check(gpu, error, "allocating scratch"));
    /* Beyond 31 buffers the one before last is old enough to wait for. */
    if (used == (int)(sizeof pool->memory / sizeof pool->memory[0])) {
        const fs_result waited = fsi_gpu_check(gpu, cudaStreamSynchronize(gpu->stream), "waiting for outgrown scratch");
        if (waited != FS_OK) {
            cudaFree(grown);
            return waited;
        }
        cudaFree(pool->memory[--pool->count]);
    }
    pool->memory[pool->count] = grown;
    pool->bytes[pool->count++] = want;
    *memory = grown;
    return FS_OK;
}
fs_result fsi_gpu_scratch(fsi_gpu *gpu, int64_t bytes, void **memory)
{
    return fsi_gpu_take(gpu, &gpu->scratch, bytes, memory);
}

static fs_result open_device(fsi_gpu *gpu, const fs_context_options *options)
{
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0)
        return gpu->host.fail(FS_EBACKEND, "the CUDA backend found no GPU: %s",
                              error == cudaSuccess ? "the driver lists none" : cudaGetErrorString(error));
    if (options->device >= count)
        return gpu->host.fail(FS_EBACKEND, "device %d was requested, there %s %d", options->device,
                              count == 1 ? "is" : "are", count);
    cudaDeviceProp prop;
    FSI_TRY(fsi_gpu_check(gpu, cudaGetDeviceProperties(&prop, options->device), "reading the GPU's properties"));
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
    return fsi_gpu_blockperm_prepare(gpu);
}

static fs_result open_tuning(fsi_gpu *gpu)
{
    const char *path = getenv("FLASHSKETCH_TUNING");
    if (!path || !*path) return FS_OK;
    char why[512];
    gpu->tuning = fsi_tuning_read(path, why, sizeof why);
    return gpu->tuning ? FS_OK : gpu->host.fail(FS_EINVAL, "FLASHSKETCH_TUNING: %s", why);
}

static void gpu_close(void *state)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    fsi_staging_close(gpu);
    fsi_linalg_close(gpu);
    for (int i = 0; i < gpu->scratch.count; i++) cudaFree(gpu->scratch.memory[i]);
    for (int i = 0; i < gpu->copies.count; i++) cudaFree(gpu->copies.memory[i]);
    free(gpu->tuning);
    gpu->host.allocator.release(gpu->host.allocator.user, gpu);
}

static fs_result gpu_open(void **state, const fsi_host *host, const fs_context_options *options)
{
    fsi_gpu *gpu = (fsi_gpu *)host->allocator.alloc(host->allocator.user, sizeof *gpu);
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
    const fsi_gpu *gpu = (const fsi_gpu *)state;
    return snprintf(text, bytes, "cuda, device %d: %s, compute capability %d.%d, %d SMs%s%s", gpu->device, gpu->name,
                    gpu->capability / 10, gpu->capability % 10, gpu->traits.processors,
                    gpu->precision == FS_PRECISION_FAST ? ", fast precision" : "", gpu->tuning ? ", tuned" : "");
}

static size_t gpu_scratch(const void *state)
{
    const fsi_gpu *gpu = (const fsi_gpu *)state;
    size_t bytes = fsi_staging_bytes(gpu);
    for (int i = 0; i < gpu->scratch.count; i++) bytes += gpu->scratch.bytes[i];
    for (int i = 0; i < gpu->copies.count; i++) bytes += gpu->copies.bytes[i];
    return bytes;
}

fs_result fsi_gpu_product(fsi_gpu *gpu, const fsi_def *S, int adjoint, int64_t row0, double alpha,
                          const fs_matrix *from, double beta, const fs_matrix *to)
{
    if (to->rows == 0 || to->cols == 0) return FS_OK;
#define RUN(operation, family) operation(gpu, &S->u.family, S->scale, row0, alpha, from, beta, to)
    switch (S->family) {
    case FSI_DEF_BLOCKROW:
        return adjoint ? RUN(fsi_gpu_blockrow_adjoint, blockrow) : RUN(fsi_gpu_blockrow_apply, blockrow);
    case FSI_DEF_SRHT: return adjoint ? RUN(fsi_gpu_srht_adjoint, srht) : RUN(fsi_gpu_srht_apply, srht);
    case FSI_DEF_GAUSS: return adjoint ? RUN(fsi_gpu_gaussian_adjoint, gauss) : RUN(fsi_gpu_gaussian_apply, gauss);
    default: return adjoint ? RUN(fsi_gpu_blockperm_adjoint, blockperm) : RUN(fsi_gpu_blockperm_apply, blockperm);
    }
#undef RUN
}

static fs_result gpu_apply(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A, double beta,
                           const fs_matrix *Y)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    if (A->memory == FS_MEMORY_HOST || Y->memory == FS_MEMORY_HOST)
        return fsi_staged_product(gpu, S, 0, row0, alpha, A, beta, Y);
    return fsi_gpu_product(gpu, S, 0, row0, alpha, A, beta, Y);
}
static fs_result gpu_adjoint(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *Y, double beta,
                             const fs_matrix *X)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    if (X->memory == FS_MEMORY_HOST || Y->memory == FS_MEMORY_HOST)
        return fsi_staged_product(gpu, S, 1, row0, alpha, Y, beta, X);
    return fsi_gpu_product(gpu, S, 1, row0, alpha, Y, beta, X);
}
static fs_result gpu_sparse(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A, double beta,
                            const fs_matrix *Y)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    if (Y->rows == 0 || Y->cols == 0) return FS_OK;
    return fsi_gpu_sparse_apply(gpu, S, row0, alpha, A, beta, Y);
}
static fs_result gpu_digest(void *state, const fsi_def *S, int64_t col0, int64_t cols, uint64_t *digest)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    return fsi_gpu_digest(gpu, S, col0, cols, digest);
}
static fs_result gpu_csr(void *state, const fsi_def *S, int64_t col0, const fs_sparse *out)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    return fsi_gpu_csr(gpu, S, col0, out);
}

static fs_result gpu_add(void *state, const fs_matrix *P, int count, double beta, const fs_matrix *Y)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    return fsi_gpu_add(gpu, P, count, beta, Y);
}

static fs_result gpu_apply_rows(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                                const fs_rows *rows, double beta, const fs_matrix *Y)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    return fsi_gpu_rows_apply(gpu, S, row0, alpha, A, rows, beta, Y);
}

static fs_result gpu_apply_products(void *state, const fsi_def *S, int64_t row0, double alpha,
                                    const fsi_products *products, double beta, const fs_matrix *Y)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    return fsi_gpu_products_apply(gpu, S, row0, alpha, products, beta, Y);
}

static fs_result refuse_captured(fsi_gpu *gpu, cudaStream_t stream, const char *which)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    FSI_TRY(fsi_gpu_check(gpu, cudaStreamIsCapturing(stream, &capture), "querying whether a stream is captured"));
    if (capture == cudaStreamCaptureStatusNone) return FS_OK;
    return gpu->host.fail(
        FS_EUNSUPPORTED, "fs_context_set_stream: the %s stream is in capture; set the stream before the capture begins",
        which);
}

/* Scratch is reused in the order of the stream, so the new stream waits for the work on the old one. */
static fs_result gpu_set_stream(void *state, void *stream)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    const cudaStream_t next = (cudaStream_t)stream;
    if (next == gpu->stream) return FS_OK;
    on_device here(gpu->device);
    FSI_TRY(refuse_captured(gpu, gpu->stream, "old"));
    FSI_TRY(refuse_captured(gpu, next, "new"));
    cudaEvent_t done;
    FSI_TRY(fsi_gpu_check(gpu, cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "creating an event"));
    fs_result result = fsi_gpu_check(gpu, cudaEventRecord(done, gpu->stream), "marking the old stream");
    if (result == FS_OK) result = fsi_gpu_check(gpu, cudaStreamWaitEvent(next, done, 0), "waiting for the old stream");
    cudaEventDestroy(done); /* freed once it has happened */
    if (result == FS_OK) gpu->stream = next;
    return result;
}

static fs_result gpu_synchronize(void *state)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    return fsi_gpu_check(gpu, cudaStreamSynchronize(gpu->stream), "waiting for the stream");
}

extern "C" __attribute__((visibility("default"))) const fsi_backend *fsi_backend_entry_point(void) __asm__(
    FSI_BACKEND_ENTRY);
const fsi_backend *fsi_backend_entry_point(void)
{
    static const fsi_backend backend = {
        .abi = FSI_BACKEND_ABI,
        .memory = FS_MEMORY_CUDA,
        .open = gpu_open,
        .close = gpu_close,
        .describe = gpu_describe,
        .scratch = gpu_scratch,
        .apply = gpu_apply,
        .adjoint = gpu_adjoint,
        .sparse = gpu_sparse,
        .digest = gpu_digest,
        .csr = gpu_csr,
        .dense = &fsi_gpu_dense,
        .add = gpu_add,
        .device_group = &fsi_gpu_device_group,
        .apply_rows = gpu_apply_rows,
        .apply_products = gpu_apply_products,
        .isa = NULL,
        .set_stream = gpu_set_stream,
        .synchronize = gpu_synchronize,
    };
    return &backend;
}
