/* memory.c - device memory, and views mirrored in it; see device.h. */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

void device_keep_memory(void)
{
    if (dry) return;
    cudaMemPool_t pool;
    uint64_t keep = UINT64_MAX;
    int device;
    CUDA(cudaGetDevice(&device));
    CUDA(cudaDeviceGetDefaultMemPool(&pool, device));
    CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
}
void *device_alloc(void *stream, int64_t bytes)
{
    if (dry) return room(bytes, 1);
    void *memory = NULL;
    const size_t wanted = bytes > 0 ? (size_t)bytes : 1;
    /* For a sanitizer each buffer must be an allocation of its own, not a part of a pool's. */
    if (small_set) CUDA(cudaMalloc(&memory, wanted));
    else CUDA(cudaMallocAsync(&memory, wanted, (cudaStream_t)stream));
    CUDA(cudaStreamSynchronize((cudaStream_t)stream));
    return memory;
}
void device_free(void *stream, void *memory)
{
    if (dry) free(memory);
    else if (small_set) CUDA(cudaFree(memory));
    else CUDA(cudaFreeAsync(memory, (cudaStream_t)stream));
}

void copy_in(void *stream, void *device, const void *host, int64_t bytes)
{
    if (dry) {
        memcpy(device, host, (size_t)bytes);
        return;
    }
    CUDA(cudaMemcpyAsync(device, host, (size_t)bytes, cudaMemcpyHostToDevice, (cudaStream_t)stream));
    CUDA(cudaStreamSynchronize((cudaStream_t)stream));
}
void copy_out(void *stream, void *host, const void *device, int64_t bytes)
{
    if (dry) {
        memcpy(host, device, (size_t)bytes);
        return;
    }
    CUDA(cudaMemcpyAsync(host, device, (size_t)bytes, cudaMemcpyDeviceToHost, (cudaStream_t)stream));
    CUDA(cudaStreamSynchronize((cudaStream_t)stream));
}

void *pinned_alloc(int64_t bytes)
{
    if (dry) return room(bytes, 1);
    void *memory = NULL;
    CUDA(cudaMallocHost(&memory, (size_t)bytes));
    return memory;
}
void pinned_free(void *memory)
{
    if (dry) free(memory);
    else CUDA(cudaFreeHost(memory));
}

void device_repeat(void *stream, void *device, int64_t period, int64_t bytes)
{
    char *start = device;
    for (int64_t filled = period; filled < bytes; filled *= 2) {
        const int64_t more = filled < bytes - filled ? filled : bytes - filled;
        if (dry) memcpy(start + filled, start, (size_t)more);
        else CUDA(cudaMemcpyAsync(start + filled, start, (size_t)more, cudaMemcpyDeviceToDevice, (cudaStream_t)stream));
    }
    stream_wait(stream);
}

/* mirrors --------------------------------------------------------------------------------------------------- */

static int64_t guard(void) { return small_set ? 0 : 256; }

static int64_t bytes_of(const view *v) { return v->m.size * fsi_dtype_size(v->m.dtype); }

mirror mirror_make(const lane *l, const view *v)
{
    mirror d = {v->m, NULL, bytes_of(v)};
    const int64_t whole = d.bytes + 2 * guard();
    char *image = memset(room(whole, 1), 0xFF, (size_t)whole);
    memcpy(image + guard(), v->m.data, (size_t)d.bytes);
    d.memory = device_alloc(l->stream, whole);
    copy_in(l->stream, d.memory, image, whole);
    free(image);
    d.m.data = d.memory + guard();
    d.m.memory = device_place();
    return d;
}
void mirror_free(const lane *l, mirror *d) { device_free(l->stream, d->memory); }

void mirror_load(const lane *l, const mirror *d, const view *v)
{
    copy_in(l->stream, d->memory + guard(), v->m.data, d->bytes);
}

void mirror_fetch(const lane *l, const char *what, const mirror *d, view *into)
{
    const int64_t whole = d->bytes + 2 * guard();
    unsigned char *image = room(whole, 1);
    copy_out(l->stream, image, d->memory, whole);
    for (int64_t b = 0; b < guard(); b++)
        if (image[b] != 0xFF || image[whole - 1 - b] != 0xFF)
            fail_msg("%s: a byte was written within %" PRId64 " bytes %s the buffer", what, guard() - b,
                     image[b] != 0xFF ? "before" : "after");
    memcpy(into->m.data, image + guard(), (size_t)d->bytes);
    free(image);
}

void expect_mirror_untouched(const lane *l, const char *what, const mirror *d, const view *v)
{
    view now = view_copy(v);
    mirror_fetch(l, what, d, &now);
    const char *got = now.m.data, *want = v->m.data;
    if (memcmp(got, want, (size_t)d->bytes) != 0) {
        int64_t b = 0;
        while (got[b] == want[b]) b++;
        fail_msg("%s: element %" PRId64 " of an input's buffer was written", what, b / fsi_dtype_size(v->m.dtype));
    }
    view_free(&now);
}

static void *array_mirror(const lane *l, const void *host, int64_t count, int64_t each)
{
    void *device = device_alloc(l->stream, count * each);
    if (count > 0) copy_in(l->stream, device, host, count * each);
    return device;
}
fs_sparse sparse_mirror(const lane *l, const fs_sparse *A)
{
    const int64_t lines = A->format == FS_CSR ? A->rows : A->cols, each = A->index_type == FS_INDEX32 ? 4 : 8;
    fs_sparse d = *A;
    d.memory = device_place();
    d.ptr = array_mirror(l, A->ptr, lines + 1, each);
    d.index = array_mirror(l, A->index, A->nnz, each);
    d.value = array_mirror(l, A->value, A->nnz, fsi_dtype_size(A->dtype));
    return d;
}
void sparse_mirror_free(const lane *l, fs_sparse *A)
{
    device_free(l->stream, A->ptr);
    device_free(l->stream, A->index);
    device_free(l->stream, A->value);
}

/* views ----------------------------------------------------------------------------------------------------- */

view view_padded(layout how, int64_t rows, int64_t cols, fs_dtype dtype, int64_t pad, int64_t lead)
{
    if (pad == 0 && lead == 0) return view_make(how, rows, cols, dtype);
    const int64_t line = (how == ROWS ? cols : rows) + pad, lines = how == ROWS ? rows : cols;
    view v = {{NULL, rows, cols, how == ROWS ? line : 1, how == ROWS ? 1 : line, lead, 0, dtype, FS_MEMORY_HOST}, NULL};
    v.m.size = lead + lines * line - pad;
    v.m.data = memset(room(bytes_of(&v), 1), 0xFF, (size_t)bytes_of(&v));
    return v;
}

view view_copy(const view *v)
{
    view copy = *v;
    copy.m.data = memcpy(room(bytes_of(v), 1), v->m.data, (size_t)bytes_of(v));
    if (v->sealed) copy.sealed = memcpy(room(bytes_of(v), 1), v->sealed, (size_t)bytes_of(v));
    return copy;
}
