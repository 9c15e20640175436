/* context.c - where a sketch is applied: one backend, opened once. */
#include "core/context.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

static fs_result open_cpu(fs_context *ctx, const fsi_host *host, const fs_context_options *options)
{
    ctx->backend = fsi_cpu_backend();
    ctx->kind = FS_BACKEND_CPU;
    ctx->device = -1;
    return ctx->backend->open(&ctx->state, host, options);
}

static fs_result open_cuda(fs_context *ctx, const fsi_host *host, const fs_context_options *options, int *absent)
{
    FSI_TRY(fsi_backend_load(&ctx->backend, &ctx->plugin, absent));
    ctx->kind = FS_BACKEND_CUDA;
    ctx->device = options->device;
    const fs_result result = ctx->backend->open(&ctx->state, host, options);
    if (result != FS_OK) {
        dlclose(ctx->plugin);
        ctx->plugin = NULL;
    }
    return result;
}

static fs_result open_backend(fs_context *ctx, const fsi_host *host, const fs_context_options *options)
{
    if (options->backend == FS_BACKEND_CPU) {
        snprintf(ctx->why, sizeof ctx->why, "asked for");
        return open_cpu(ctx, host, options);
    }
    int absent;
    const fs_result cuda = open_cuda(ctx, host, options, &absent);
    if (options->backend == FS_BACKEND_CUDA || cuda == FS_OK) {
        snprintf(ctx->why, sizeof ctx->why, "%s", options->backend == FS_BACKEND_CUDA ? "asked for" : "auto");
        return cuda;
    }
    snprintf(ctx->why, sizeof ctx->why, "auto: %.200s", absent ? "no CUDA plugin" : fs_error_message());
    fs_fail(FS_OK, "%s", ""); /* choosing the CPU is not an error */
    return open_cpu(ctx, host, options);
}

fs_result fs_context_create(fs_context **out, const fs_context_options *options)
{
    FSI_REQUIRE(out, "fs_context_create: out is NULL");
    *out = NULL;
    fs_context_options full = FS_CONTEXT_INIT;
    if (options) FSI_TRY(fs_struct_read("fs_context_create", "options", options, &full, sizeof full));
    FSI_REQUIRE(full.backend >= FS_BACKEND_AUTO && full.backend <= FS_BACKEND_CUDA,
                "fs_context_create: backend %d does not exist; it must be one of fs_backend_kind", (int)full.backend);
    FSI_REQUIRE(full.threads >= 0, "fs_context_create: threads = %d, it cannot be negative", full.threads);
    FSI_REQUIRE(full.threads <= FS_THREADS_MAX,
                "fs_context_create: threads = %d, it can be at most %d; 0 takes OpenMP's "
                "own number",
                full.threads, FS_THREADS_MAX);
    FSI_REQUIRE(full.device >= 0, "fs_context_create: device = %d, it cannot be negative", full.device);
    FSI_REQUIRE(full.precision == FS_PRECISION_FULL || full.precision == FS_PRECISION_FAST,
                "fs_context_create: precision %d does not exist; it must be FS_PRECISION_FULL or FS_PRECISION_FAST",
                (int)full.precision);
    FSI_REQUIRE(!full.allocator.alloc == !full.allocator.release,
                "fs_context_create: the allocator needs both alloc and release");

    const fsi_host host = {fs_fail, fs_allocator_or_malloc(&full.allocator)};
    fs_context *ctx = host.allocator.alloc(host.allocator.user, sizeof *ctx);
    if (!ctx) return fs_fail(FS_ENOMEM, "fs_context_create: no memory for the %zu bytes of a context", sizeof *ctx);
    memset(ctx, 0, sizeof *ctx);
    ctx->allocator = host.allocator;
    ctx->threads = full.threads;
    const fs_result result = open_backend(ctx, &host, &full);
    if (result != FS_OK) {
        host.allocator.release(host.allocator.user, ctx);
        return result;
    }
    *out = ctx;
    return FS_OK;
}

void fs_context_destroy(fs_context *ctx)
{
    if (!ctx) return;
    ctx->backend->close(ctx->state);
    if (ctx->plugin) dlclose(ctx->plugin);
    ctx->allocator.release(ctx->allocator.user, ctx);
}

int fs_context_describe(const fs_context *ctx, char *text, size_t bytes)
{
    if (!ctx) return snprintf(text, bytes, "no context");
    char backend[256];
    ctx->backend->describe(ctx->state, backend, sizeof backend);
    return snprintf(text, bytes, "%s (%s)", backend, ctx->why);
}

size_t fs_context_memory_bytes(const fs_context *ctx) { return ctx ? ctx->backend->scratch(ctx->state) : 0; }

fs_backend_kind fs_context_backend(const fs_context *ctx) { return ctx ? ctx->kind : FS_BACKEND_AUTO; }
int fs_context_device(const fs_context *ctx) { return ctx ? ctx->device : -1; }
fs_memory fs_context_memory(const fs_context *ctx) { return ctx ? ctx->backend->memory : FS_MEMORY_HOST; }
int fs_context_threads(const fs_context *ctx) { return ctx ? fs_thread_count(ctx->threads) : 0; }

int fs_context_accepts(const fs_context *ctx, fs_memory memory)
{
    return ctx && (memory == FS_MEMORY_HOST || memory == ctx->backend->memory);
}

const char *fs_context_isa(const fs_context *ctx)
{
    return ctx && ctx->backend->isa ? ctx->backend->isa(ctx->state) : "";
}

fs_result fs_context_set_stream(fs_context *ctx, void *stream)
{
    FSI_REQUIRE(ctx, "fs_context_set_stream: ctx is NULL");
    return ctx->backend->set_stream ? ctx->backend->set_stream(ctx->state, stream) : FS_OK;
}

fs_result fs_context_synchronize(fs_context *ctx)
{
    FSI_REQUIRE(ctx, "fs_context_synchronize: ctx is NULL");
    return ctx->backend->synchronize ? ctx->backend->synchronize(ctx->state) : FS_OK;
}
