/* device_group.cu - one product on several GPUs, or streams of one: each computes partial sums of Y from its rows of A.
 *
 *     1. every member queues its product on its own stream, into a packed partial Y in its device's memory;
 *     2. the first member's stream waits for the others' (events); then either
 *          copies: they are copied to the first member's device, unless they are there, and added in order (add.cu), or
 *          NCCL:   one ncclReduce to the first member, and its sum is added to Y;
 *     3. the others' streams wait for that, so that the next call does not overwrite a partial Y that is still read.
 * Nothing waits on the host once the memory of partial sums is allocated.
 *
 * NCCL is opened at run time; its few types and numbers below are those of nccl.h, which are the same since NCCL 2.0. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/gpu.h"

namespace {

enum { NCCL_FLOAT = 7, NCCL_DOUBLE = 8, NCCL_SUM = 0 };

struct nccl {
    void *library;
    int (*init)(void **comms, int count, const int *devices);                                  /* ncclCommInitAll */
    int (*reduce)(const void *, void *, size_t, int, int, int root, void *comm, cudaStream_t); /* ncclReduce */
    int (*begin)(void), (*end)(void);                                                          /* ncclGroupStart, End */
    int (*destroy)(void *comm);                                                                /* ncclCommDestroy */
    const char *(*text)(int);                                                                  /* ncclGetErrorString */
};

struct member {
    fsi_gpu *gpu;
    cudaEvent_t done;
    void *partial; /* on its own device */
    void *arrived; /* on the first member's, where that is another */
    void *comm;
};

struct device_group {
    fsi_host host;
    int count;
    member *members;
    fs_matrix *views; /* of the partial results, to be added */
    int64_t bytes;    /* of a partial Y */
    bool by_nccl;
    nccl api;
};

fs_result load_nccl(const fsi_host *host, nccl *api)
{
    const char *path = getenv("FLASHSKETCH_NCCL");
    if (!path || !*path) path = "libnccl.so.2";
    api->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!api->library) return host->fail(FS_EBACKEND, "NCCL could not be loaded: %s", dlerror());
    *(void **)&api->init = dlsym(api->library, "ncclCommInitAll");
    *(void **)&api->reduce = dlsym(api->library, "ncclReduce");
    *(void **)&api->begin = dlsym(api->library, "ncclGroupStart");
    *(void **)&api->end = dlsym(api->library, "ncclGroupEnd");
    *(void **)&api->destroy = dlsym(api->library, "ncclCommDestroy");
    *(void **)&api->text = dlsym(api->library, "ncclGetErrorString");
    if (api->init && api->reduce && api->begin && api->end && api->destroy && api->text) return FS_OK;
    dlclose(api->library);
    api->library = NULL;
    return host->fail(FS_EBACKEND, "NCCL could not be loaded: %s lacks one of its functions", path);
}

fs_result check_nccl(const device_group *t, int result, const char *what)
{
    return result == 0 ? FS_OK : t->host.fail(FS_EBACKEND, "%s: NCCL: %s", what, t->api.text(result));
}

bool one_device_each(const device_group *t)
{
    for (int i = 0; i < t->count; i++)
        for (int j = 0; j < i; j++)
            if (t->members[i].gpu->device == t->members[j].gpu->device) return false;
    return true;
}

fs_result open_nccl(device_group *t)
{
    if (!one_device_each(t))
        return t->host.fail(FS_EUNSUPPORTED,
                            "fs_multi_create: NCCL needs a GPU for every context, and two contexts share one");
    FSI_TRY(load_nccl(&t->host, &t->api));
    const size_t count = (size_t)t->count;
    void **comms = (void **)t->host.allocator.alloc(t->host.allocator.user, count * (sizeof(void *) + sizeof(int)));
    if (!comms) return t->host.fail(FS_ENOMEM, "fs_multi_create: no memory for %d communicators", t->count);
    int *devices = (int *)(comms + count);
    for (int i = 0; i < t->count; i++) devices[i] = t->members[i].gpu->device;
    const fs_result result = check_nccl(t, t->api.init(comms, t->count, devices), "connecting GPUs");
    for (int i = 0; i < t->count && result == FS_OK; i++) t->members[i].comm = comms[i];
    t->host.allocator.release(t->host.allocator.user, comms);
    t->by_nccl = result == FS_OK;
    return result;
}

/* Copies between two GPUs go directly where the machine can; where not, through the host, and nothing else changes. */
void connect_peers(const device_group *t)
{
    for (int i = 1; i < t->count; i++) {
        const int a = t->members[0].gpu->device, b = t->members[i].gpu->device;
        int can = 0;
        if (a == b || cudaDeviceCanAccessPeer(&can, a, b) != cudaSuccess || !can) continue;
        on_device here(a);
        cudaDeviceEnablePeerAccess(b, 0);
        cudaGetLastError(); /* it may have been enabled before */
    }
}

void release_partials(device_group *t)
{
    for (int i = 0; i < t->count; i++) {
        member *m = &t->members[i];
        {
            on_device here(m->gpu->device);
            cudaFree(m->partial);
        }
        on_device there(t->members[0].gpu->device);
        cudaFree(m->arrived);
        m->partial = m->arrived = NULL;
    }
    t->bytes = 0;
}

fs_result reserve_on(device_group *t, fsi_gpu *gpu, int64_t bytes, void **memory)
{
    on_device here(gpu->device);
    if (cudaMalloc(memory, (size_t)bytes) == cudaSuccess) return FS_OK;
    cudaGetLastError();
    *memory = NULL;
    return t->host.fail(FS_ENOMEM, "fs_multi_apply: no %lld bytes for partial sums of Y on %s", (long long)bytes,
                        gpu->name);
}

/* cudaFree waits for its device, so buffers in use are not released early. */
fs_result reserve_partials(device_group *t, int64_t bytes)
{
    if (bytes <= t->bytes) return FS_OK;
    release_partials(t);
    fs_result result = FS_OK;
    for (int i = 0; i < t->count && result == FS_OK; i++) {
        member *m = &t->members[i];
        result = reserve_on(t, m->gpu, bytes, &m->partial);
        const bool elsewhere = m->gpu->device != t->members[0].gpu->device;
        if (result == FS_OK && elsewhere && !t->by_nccl) result = reserve_on(t, t->members[0].gpu, bytes, &m->arrived);
    }
    if (result != FS_OK) release_partials(t);
    else t->bytes = bytes;
    return result;
}

fs_result record_event(member *m)
{
    on_device here(m->gpu->device);
    return fsi_gpu_check(m->gpu, cudaEventRecord(m->done, m->gpu->stream), "recording an event");
}
fs_result await_event(member *waiting, const member *other)
{
    on_device here(waiting->gpu->device);
    return fsi_gpu_check(waiting->gpu, cudaStreamWaitEvent(waiting->gpu->stream, other->done, 0),
                         "waiting for another stream");
}

fs_result reduce_by_nccl(device_group *t, int64_t elements, fs_dtype sum)
{
    const int type = sum == FS_F64 ? NCCL_DOUBLE : NCCL_FLOAT;
    FSI_TRY(check_nccl(t, t->api.begin(), "adding partial sums of Y"));
    int result = 0;
    for (int i = 0; i < t->count && result == 0; i++) {
        const member *m = &t->members[i];
        result = t->api.reduce(m->partial, m->partial, (size_t)elements, type, NCCL_SUM, 0, m->comm, m->gpu->stream);
    }
    const int ended = t->api.end();
    return check_nccl(t, result ? result : ended, "adding partial sums of Y");
}

fs_result gather_partials(device_group *t, int64_t bytes)
{
    member *first = &t->members[0];
    for (int i = 1; i < t->count; i++) {
        member *m = &t->members[i];
        FSI_TRY(record_event(m));
        FSI_TRY(await_event(first, m));
        if (!m->arrived) continue;
        on_device here(first->gpu->device);
        FSI_TRY(fsi_gpu_check(first->gpu,
                              cudaMemcpyPeerAsync(m->arrived, first->gpu->device, m->partial, m->gpu->device,
                                                  (size_t)bytes, first->gpu->stream),
                              "copying partial sums between GPUs"));
    }
    return FS_OK;
}

}  // namespace

/* the table ------------------------------------------------------------------------------------------------- */

static void group_close(void *state)
{
    device_group *t = (device_group *)state;
    release_partials(t);
    for (int i = 0; i < t->count; i++) {
        member *m = &t->members[i];
        on_device here(m->gpu->device);
        if (m->done) cudaEventDestroy(m->done);
        if (m->comm) t->api.destroy(m->comm);
    }
    if (t->api.library) dlclose(t->api.library);
    t->host.allocator.release(t->host.allocator.user, t);
}

static fs_result group_open(void **out, const fsi_host *host, void *const *states, int count, fs_multi_sum sum)
{
    const size_t bytes = sizeof(device_group) + (size_t)count * (sizeof(member) + sizeof(fs_matrix));
    device_group *t = (device_group *)host->allocator.alloc(host->allocator.user, bytes);
    if (!t) return host->fail(FS_ENOMEM, "fs_multi_create: no memory for %zu bytes", bytes);
    memset((void *)t, 0, bytes);
    t->host = *host;
    t->count = count;
    t->members = (member *)(t + 1);
    t->views = (fs_matrix *)(t->members + count);
    for (int i = 0; i < count; i++) t->members[i].gpu = (fsi_gpu *)states[i];
    fs_result result = FS_OK;
    for (int i = 0; i < count && result == FS_OK; i++) {
        member *m = &t->members[i];
        on_device here(m->gpu->device);
        result = fsi_gpu_check(m->gpu, cudaEventCreateWithFlags(&m->done, cudaEventDisableTiming), "creating an event");
    }
    if (result == FS_OK && sum == FS_MULTI_NCCL) result = open_nccl(t);
    if (result == FS_OK && sum == FS_MULTI_AUTO && count > 1 && one_device_each(t) && open_nccl(t) != FS_OK)
        host->fail(FS_OK, "%s", ""); /* copies serve too: not an error */
    if (result == FS_OK && !t->by_nccl) connect_peers(t);
    if (result != FS_OK) group_close(t);
    else *out = t;
    return result;
}

static int group_describe(const void *state, char *text, size_t bytes)
{
    const device_group *t = (const device_group *)state;
    return snprintf(text, bytes, "%s",
                    t->by_nccl ? "summed by NCCL" : "partial sums copied to the first and added in order");
}

static fs_result group_apply(void *state, const fsi_def *S, const int64_t *row0, double alpha, const fs_matrix *A,
                             double beta, const fs_matrix *Y)
{
    device_group *t = (device_group *)state;
    if (Y->rows == 0 || Y->cols == 0) return FS_OK;
    const fs_dtype sum = fsi_dtype_sum(A[0].dtype);
    const int64_t elements = Y->rows * Y->cols, bytes = elements * fsi_dtype_size(sum);
    const bool down = !fsi_view_is_row_major(Y);
    FSI_TRY(reserve_partials(t, bytes));
    fs_matrix partial = *Y;
    partial.dtype = sum;
    partial.row_stride = down ? 1 : Y->cols;
    partial.col_stride = down ? Y->rows : 1;
    for (int i = 0; i < t->count; i++) {
        member *m = &t->members[i];
        on_device here(m->gpu->device);
        partial.data = m->partial;
        FSI_TRY(fsi_gpu_product(m->gpu, S, 0, row0[i], alpha, &A[i], 0.0, &partial));
    }
    member *first = &t->members[0];
    FSI_TRY(t->by_nccl ? reduce_by_nccl(t, elements, sum) : gather_partials(t, bytes));
    {
        on_device here(first->gpu->device);
        for (int i = 0; i < t->count; i++) {
            t->views[i] = partial;
            t->views[i].data = t->members[i].arrived ? t->members[i].arrived : t->members[i].partial;
        }
        /* Summed by NCCL, the first partial Y is the sum. */
        FSI_TRY(fsi_gpu_add(first->gpu, t->views, t->by_nccl ? 1 : t->count, beta, Y));
    }
    FSI_TRY(record_event(first));
    for (int i = 1; i < t->count; i++) FSI_TRY(await_event(&t->members[i], first));
    return FS_OK;
}

const fsi_device_group fsi_gpu_device_group = {group_open, group_close, group_describe, group_apply};
