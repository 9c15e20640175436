/* staging.cu - matrices in host memory: streamed through the GPU in panels, copies and kernels at the same time.
 *
 * The d-row matrix (A of a sketch, X of an adjoint) is cut into panels along whichever direction its memory runs, so
 * that a panel is a few long runs.  Two buffers on the device alternate: while a kernel works on one panel the next is
 * copied.  Memory that CUDA has pinned is copied directly.  Other memory cannot be copied at full speed: host threads
 * fill chunks of pinned memory with it, one being filled while others are copied.  Panels cut along the rows are terms
 * of one sum: each adds to sums of full precision, and Y is finished once.  The k-row matrix is small and is copied
 * whole. */
#include "cuda/runtime/staging.h"

#include <omp.h>
#include <string.h>

#include "cuda/runtime/split_reduce.cuh"

enum { BUFFERS = 2, CHUNKS = 3 };

struct fsi_staging {
    cudaStream_t copier; /* copies run here, kernels on the context's stream */
    cudaEvent_t filled[BUFFERS], used[BUFFERS];
    char *device; /* panels, then the narrow matrix, then sums */
    char *pinned[CHUNKS];
    cudaEvent_t copied[CHUNKS];
    size_t device_bytes, chunk_bytes;
    int next; /* the chunk to be used next */
    int threads;
};

/* 10 threads and chunks of 16 MiB copy at 0.98 of the rate of pinned memory on a quiet machine; docs/kernels/staging.md
 * has other sizes and schemes. */
enum { ENOUGH_THREADS = 10 }; /* unless the options give a number */
static const int64_t PANEL_BYTES = (int64_t)64 << 20, CHUNK_BYTES = (int64_t)16 << 20, PIECE_BYTES = (int64_t)512 << 10;

size_t fsi_staging_bytes(const fsi_gpu *gpu) { return gpu->staging ? gpu->staging->device_bytes : 0; }

void fsi_staging_close(fsi_gpu *gpu)
{
    fsi_staging *s = gpu->staging;
    if (!s) return;
    for (int i = 0; i < BUFFERS; i++) {
        if (s->filled[i]) cudaEventDestroy(s->filled[i]);
        if (s->used[i]) cudaEventDestroy(s->used[i]);
    }
    for (int i = 0; i < CHUNKS; i++) {
        if (s->copied[i]) cudaEventDestroy(s->copied[i]);
        if (s->pinned[i]) cudaFreeHost(s->pinned[i]);
    }
    if (s->copier) cudaStreamDestroy(s->copier);
    if (s->device) cudaFree(s->device);
    gpu->host.allocator.release(gpu->host.allocator.user, s);
    gpu->staging = NULL;
}

static fs_result make_event(fsi_gpu *gpu, cudaEvent_t *event)
{
    return fsi_gpu_check(gpu, cudaEventCreateWithFlags(event, cudaEventDisableTiming), "creating an event");
}
static fs_result open_staging(fsi_gpu *gpu)
{
    if (gpu->staging) return FS_OK;
    fsi_staging *s = (fsi_staging *)gpu->host.allocator.alloc(gpu->host.allocator.user, sizeof *s);
    if (!s) return gpu->host.fail(FS_ENOMEM, "no memory for the %zu bytes of staging", sizeof *s);
    memset(s, 0, sizeof *s);
    gpu->staging = s;
    s->threads = omp_get_max_threads() < ENOUGH_THREADS ? omp_get_max_threads() : ENOUGH_THREADS;
    if (gpu->threads > 0) s->threads = gpu->threads;
    FSI_TRY(fsi_gpu_check(gpu, cudaStreamCreateWithFlags(&s->copier, cudaStreamNonBlocking),
                          "creating a stream for copies"));
    for (int i = 0; i < BUFFERS; i++) {
        FSI_TRY(make_event(gpu, &s->filled[i]));
        FSI_TRY(make_event(gpu, &s->used[i]));
    }
    for (int i = 0; i < CHUNKS; i++) FSI_TRY(make_event(gpu, &s->copied[i]));
    return FS_OK;
}

static fs_result need_device(fsi_gpu *gpu, int64_t bytes)
{
    fsi_staging *s = gpu->staging;
    if (s->device_bytes >= (size_t)bytes) return FS_OK;
    if (s->device) cudaFree(s->device);
    s->device = NULL;
    s->device_bytes = 0;
    if (cudaMalloc((void **)&s->device, (size_t)bytes) != cudaSuccess) {
        cudaGetLastError();
        return gpu->host.fail(FS_ENOMEM, "no %lld bytes on %s to stage a host matrix", (long long)bytes, gpu->name);
    }
    s->device_bytes = (size_t)bytes;
    return FS_OK;
}
static fs_result need_pinned(fsi_gpu *gpu, int64_t bytes)
{
    fsi_staging *s = gpu->staging;
    if (s->chunk_bytes >= (size_t)bytes) return FS_OK;
    for (int i = 0; i < CHUNKS; i++) {
        if (s->pinned[i]) {
            FSI_TRY(fsi_gpu_check(gpu, cudaEventSynchronize(s->copied[i]), "waiting for a copy"));
            cudaFreeHost(s->pinned[i]);
        }
        s->pinned[i] = NULL;
    }
    s->chunk_bytes = 0;
    for (int i = 0; i < CHUNKS; i++)
        if (cudaHostAlloc((void **)&s->pinned[i], (size_t)bytes, cudaHostAllocDefault) != cudaSuccess) {
            cudaGetLastError();
            return gpu->host.fail(FS_ENOMEM, "no %lld bytes of pinned host memory to stage a matrix", (long long)bytes);
        }
    s->chunk_bytes = (size_t)bytes;
    return FS_OK;
}

/* A matrix as `count` runs of `length` neighbours in memory, `pitch` elements from run to run; runs are its rows, or
 * its columns when `down`.  Strided matrices have runs of one element each way and are packed element by element. */
typedef struct layout {
    int down, packed_runs; /* whether neighbours of a run are neighbours in memory */
    int64_t count, length, pitch, step, size;
} layout;
static layout layout_of(const fs_matrix *m)
{
    const int64_t rs = fsi_view_row_distance(m), cs = fsi_view_col_distance(m);
    layout l;
    l.down = rs < cs || (rs == cs && m->rows > m->cols);
    l.count = l.down ? m->cols : m->rows;
    l.length = l.down ? m->rows : m->cols;
    l.pitch = l.down ? m->col_stride : m->row_stride;
    l.step = l.down ? m->row_stride : m->col_stride;
    l.packed_runs = l.step == 1;
    l.size = fsi_dtype_size(m->dtype);
    return l;
}
/* Element numbers of a packed copy of the same matrix. */
static fs_matrix packed(const fs_matrix *m, const layout *l, void *data)
{
    fs_matrix p = *m;
    p.data = data;
    p.row_stride = l->down ? 1 : m->cols;
    p.col_stride = l->down ? m->rows : 1;
    p.memory = FS_MEMORY_CUDA;
    return p;
}

static bool is_pinned(const void *data)
{
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    return attributes.type == cudaMemoryTypeHost;
}

/* Runs cut into pieces of about the given number of elements: whole runs, or slices of one. */
typedef struct pieces {
    int64_t runs, length;            /* of all */
    int64_t together, slice, slices; /* runs and elements of a piece; pieces of a run */
    int64_t count;
} pieces;
static pieces cut_runs(int64_t runs, int64_t length, int64_t elements)
{
    pieces p = {runs, length, 1, length, 1, 0};
    if (length > elements) p.slice = elements;
    else p.together = elements / length < runs ? elements / length : runs;
    p.slices = fsi_div_up(p.length, p.slice);
    p.count = fsi_div_up(runs, p.together) * p.slices;
    return p;
}
typedef struct piece {
    int64_t run, from, runs, length;
} piece; /* elements from ... from + length - 1 of some runs */
static piece piece_at(const pieces *p, int64_t i)
{
    const int64_t run = i / p->slices * p->together, from = i % p->slices * p->slice;
    const int64_t runs = p->runs - run, length = p->length - from;
    const piece at = {run, from, runs < p->together ? runs : p->together, length < p->slice ? length : p->slice};
    return at;
}
static char *in_host(const layout *l, char *host, const piece *p)
{
    return host + (p->run * l->pitch + p->from * l->step) * l->size;
}
static int64_t in_packed(const layout *l, int64_t length, const piece *p)
{
    return (p->run * length + p->from) * l->size;
}

/* Packs host runs into contiguous memory, `pitch` elements from run to run, or spreads them from it. */
static void move_runs(const layout *l, char *host, char *buffer, int64_t runs, int64_t length, int64_t pitch,
                      int to_buffer)
{
    int64_t bytes = length * l->size;
    if (l->packed_runs && l->pitch == length && pitch == length) bytes *= runs, runs = 1; /* one long run */
    for (int64_t r = 0; r < runs; r++) {
        char *there = host + r * l->pitch * l->size, *here = buffer + r * pitch * l->size;
        if (l->packed_runs) memcpy(to_buffer ? here : there, to_buffer ? there : here, (size_t)bytes);
        else
            for (int64_t i = 0; i < length; i++, there += l->step * l->size, here += l->size)
                memcpy(to_buffer ? here : there, to_buffer ? there : here, (size_t)l->size);
    }
}
/* A chunk, by all host threads; in small units, so that a thread that waits for its core causes little delay. */
static void move_chunk(const fsi_staging *s, const layout *l, char *host, char *pinned, const piece *chunk,
                       int to_pinned)
{
    const pieces all = cut_runs(chunk->runs, chunk->length, PIECE_BYTES / l->size);
    host = in_host(l, host, chunk);
#pragma omp parallel for num_threads(s->threads) schedule(dynamic) if (all.count > 1)
    for (int64_t i = 0; i < all.count; i++) {
        const piece p = piece_at(&all, i);
        move_runs(l, in_host(l, host, &p), pinned + in_packed(l, chunk->length, &p), p.runs, p.length, chunk->length,
                  to_pinned);
    }
}
/* Runs of a host matrix, from `host` on, to packed ones on the device, or back.  Copies to the device are queued on
 * return, and the host's memory is free again; those from it are done. */
static fs_result copy_runs(fsi_gpu *gpu, cudaStream_t stream, const layout *l, char *host, char *device, int64_t runs,
                           int to_device)
{
    fsi_staging *s = gpu->staging;
    const pieces chunks = cut_runs(runs, l->length, CHUNK_BYTES / l->size);
    FSI_TRY(need_pinned(gpu, chunks.together * chunks.slice * l->size));
    const int behind = to_device ? 0 : CHUNKS - 1; /* chunks from the device are unpacked while others are copied */
    for (int64_t i = 0; i < chunks.count + behind; i++) {
        if (i < chunks.count) {
            const piece chunk = piece_at(&chunks, i);
            const int b = (s->next + i) % CHUNKS;
            char *there = device + in_packed(l, l->length, &chunk);
            const size_t bytes = (size_t)(chunk.runs * chunk.length * l->size);
            FSI_TRY(fsi_gpu_check(gpu, cudaEventSynchronize(s->copied[b]), "waiting for a copy"));
            if (to_device) move_chunk(s, l, host, s->pinned[b], &chunk, 1);
            FSI_TRY(fsi_gpu_check(gpu,
                                  to_device
                                      ? cudaMemcpyAsync(there, s->pinned[b], bytes, cudaMemcpyHostToDevice, stream)
                                      : cudaMemcpyAsync(s->pinned[b], there, bytes, cudaMemcpyDeviceToHost, stream),
                                  "copying a host matrix"));
            FSI_TRY(fsi_gpu_check(gpu, cudaEventRecord(s->copied[b], stream), "marking a copy"));
        }
        if (!to_device && i >= behind) {
            const piece chunk = piece_at(&chunks, i - behind);
            const int b = (s->next + i - behind) % CHUNKS;
            FSI_TRY(fsi_gpu_check(gpu, cudaEventSynchronize(s->copied[b]), "waiting for a copy"));
            move_chunk(s, l, host, s->pinned[b], &chunk, 0);
        }
    }
    s->next = (int)((s->next + chunks.count) % CHUNKS);
    return FS_OK;
}
/* The whole of a small host matrix to the device, packed, or back. */
static fs_result copy_whole(fsi_gpu *gpu, const fs_matrix *host, const layout *l, void *device, int to_device)
{
    FSI_TRY(copy_runs(gpu, gpu->stream, l, (char *)host->data, (char *)device, l->count, to_device));
    return fsi_gpu_check(gpu, cudaStreamSynchronize(gpu->stream), "copying a host matrix");
}

/* A panel of the wide matrix: runs first ... first + runs - 1 of its layout. */
typedef struct stream_call {
    const fsi_def *S;
    int adjoint;
    int64_t row0;
    double alpha, beta;
    const fs_matrix *wide; /* on the host */
    fs_matrix narrow;      /* on the device: Y, or sums of Y */
    layout l;
    int64_t runs; /* of a panel */
    int pinned;
} stream_call;

static fs_matrix panel_view(const stream_call *c, void *data, int64_t runs)
{
    fs_matrix p = *c->wide;
    p.data = data;
    p.memory = FS_MEMORY_CUDA;
    p.rows = c->l.down ? c->wide->rows : runs;
    p.cols = c->l.down ? runs : c->wide->cols;
    p.row_stride = c->l.down ? 1 : p.cols;
    p.col_stride = c->l.down ? p.rows : 1;
    return p;
}
/* The narrow matrix of a panel: the same columns when panels are cut along
 * columns, otherwise all of it. */
static fs_matrix narrow_part(const stream_call *c, int64_t first, int64_t runs)
{
    fs_matrix y = c->narrow;
    if (!c->l.down) return y;
    y.data = (char *)y.data + first * y.col_stride * fsi_dtype_size(y.dtype);
    y.cols = runs;
    return y;
}

/* Runs first ... first + runs - 1 to a panel on the device, or back. */
static fs_result copy_panel(fsi_gpu *gpu, const stream_call *c, char *device, int64_t first, int64_t runs,
                            int to_device)
{
    const cudaStream_t copier = gpu->staging->copier;
    const layout *l = &c->l;
    char *host = (char *)c->wide->data + first * l->pitch * l->size;
    const size_t run = (size_t)(l->length * l->size), pitch = (size_t)(l->pitch * l->size);
    if (!c->pinned || !l->packed_runs || l->pitch < l->length)
        return copy_runs(gpu, copier, l, host, device, runs, to_device);
    return fsi_gpu_check(
        gpu,
        to_device ? cudaMemcpy2DAsync(device, run, host, pitch, run, (size_t)runs, cudaMemcpyHostToDevice, copier)
                  : cudaMemcpy2DAsync(host, pitch, device, run, run, (size_t)runs, cudaMemcpyDeviceToHost, copier),
        "copying a panel");
}

/* Y from panels of A.  Panels cut along rows are summed: the first replaces (beta of the call), the others add. */
static fs_result stream_apply(fsi_gpu *gpu, const stream_call *c, char *panels[BUFFERS])
{
    fsi_staging *s = gpu->staging;
    for (int64_t first = 0, i = 0; first < c->l.count; first += c->runs, i++) {
        const int b = (int)(i % BUFFERS);
        const int64_t runs = c->runs < c->l.count - first ? c->runs : c->l.count - first;
        if (i >= BUFFERS)
            FSI_TRY(fsi_gpu_check(gpu, cudaStreamWaitEvent(s->copier, s->used[b], 0), "waiting for a kernel"));
        FSI_TRY(copy_panel(gpu, c, panels[b], first, runs, 1));
        FSI_TRY(fsi_gpu_check(gpu, cudaEventRecord(s->filled[b], s->copier), "marking a copy"));
        FSI_TRY(fsi_gpu_check(gpu, cudaStreamWaitEvent(gpu->stream, s->filled[b], 0), "waiting for a copy"));
        const fs_matrix A = panel_view(c, panels[b], runs), Y = narrow_part(c, first, runs);
        const int64_t row0 = c->l.down ? c->row0 : c->row0 + first;
        FSI_TRY(fsi_gpu_product(gpu, c->S, 0, row0, c->alpha, &A, i == 0 || c->l.down ? c->beta : 1.0, &Y));
        FSI_TRY(fsi_gpu_check(gpu, cudaEventRecord(s->used[b], gpu->stream), "marking a kernel"));
    }
    /* the caller may reuse host buffers on return */
    return fsi_gpu_check(gpu, cudaStreamSynchronize(s->copier), "waiting for the last copy");
}

/* Panels of X from Y. */
static fs_result stream_adjoint(fsi_gpu *gpu, const stream_call *c, char *panels[BUFFERS])
{
    fsi_staging *s = gpu->staging;
    for (int64_t first = 0, i = 0; first < c->l.count; first += c->runs, i++) {
        const int b = (int)(i % BUFFERS);
        const int64_t runs = c->runs < c->l.count - first ? c->runs : c->l.count - first;
        if (i >= BUFFERS)
            FSI_TRY(fsi_gpu_check(gpu, cudaStreamWaitEvent(gpu->stream, s->filled[b], 0), "waiting for a copy"));
        if (c->beta != 0.0) {
            FSI_TRY(fsi_gpu_check(gpu, cudaStreamSynchronize(s->copier), "waiting for a copy"));
            FSI_TRY(copy_panel(gpu, c, panels[b], first, runs, 1));
            FSI_TRY(fsi_gpu_check(gpu, cudaEventRecord(s->filled[b], s->copier), "marking a copy"));
            FSI_TRY(fsi_gpu_check(gpu, cudaStreamWaitEvent(gpu->stream, s->filled[b], 0), "waiting for a copy"));
        }
        const fs_matrix X = panel_view(c, panels[b], runs), Y = narrow_part(c, first, runs);
        const int64_t row0 = c->l.down ? c->row0 : c->row0 + first;
        FSI_TRY(fsi_gpu_product(gpu, c->S, 1, row0, c->alpha, &Y, c->beta, &X));
        FSI_TRY(fsi_gpu_check(gpu, cudaEventRecord(s->used[b], gpu->stream), "marking a kernel"));
        FSI_TRY(fsi_gpu_check(gpu, cudaStreamWaitEvent(s->copier, s->used[b], 0), "waiting for a kernel"));
        FSI_TRY(copy_panel(gpu, c, panels[b], first, runs, 0));
        FSI_TRY(fsi_gpu_check(gpu, cudaEventRecord(s->filled[b], s->copier), "marking a copy"));
    }
    return fsi_gpu_check(gpu, cudaStreamSynchronize(s->copier), "waiting for the last copy");
}

/* A row-major matrix of float sums, as large as m. */
static fs_matrix sums_of(const fs_matrix *m, void *data)
{
    const fs_matrix sums = {data, m->rows, m->cols, m->cols, 1, 0, 0, FS_F32, FS_MEMORY_CUDA};
    return sums;
}
static int64_t aligned(int64_t bytes) { return (bytes + 255) & ~(int64_t)255; }

fs_result fsi_staged_product(fsi_gpu *gpu, const fsi_def *S, int adjoint, int64_t row0, double alpha,
                             const fs_matrix *from, double beta, const fs_matrix *to)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    FSI_TRY(
        fsi_gpu_check(gpu, cudaStreamIsCapturing(gpu->stream, &capture), "querying whether the stream is captured"));
    if (capture != cudaStreamCaptureStatusNone)
        return gpu->host.fail(FS_EUNSUPPORTED,
                              "a matrix in host memory cannot be streamed while the stream is captured");
    if (to->rows == 0 || to->cols == 0) return FS_OK;
    FSI_TRY(open_staging(gpu));
    const fs_matrix *wide = adjoint ? to : from, *narrow = adjoint ? from : to;
    const layout nl = layout_of(narrow);
    const int narrow_host = narrow->memory == FS_MEMORY_HOST, wide_host = wide->memory == FS_MEMORY_HOST;

    /* 1. room on the device: two panels of the wide matrix, the narrow one, sums when panels along rows must add up */
    stream_call c = {S, adjoint, row0, alpha, beta, wide, *narrow, layout_of(wide), 0, 0};
    const int64_t run_bytes = c.l.length * c.l.size;
    c.runs = run_bytes > 0 ? PANEL_BYTES / run_bytes : 1;
    if (c.runs < 1) c.runs = 1;
    if (c.runs > c.l.count) c.runs = c.l.count > 0 ? c.l.count : 1;
    const int adds = wide_host && !adjoint && !c.l.down && c.runs < c.l.count &&
                     fsi_dtype_sum(narrow->dtype) != narrow->dtype;
    const int64_t panel = wide_host ? aligned(c.runs * run_bytes) : 0;
    const int64_t whole = narrow_host ? aligned(nl.count * nl.length * nl.size) : 0;
    const int64_t sums = adds ? aligned(narrow->rows * narrow->cols * 4) : 0;
    FSI_TRY(fsi_gpu_check(gpu, cudaStreamSynchronize(gpu->stream), "waiting for the GPU"));
    FSI_TRY(need_device(gpu, BUFFERS * panel + whole + sums + 256));
    char *device = gpu->staging->device, *panels[BUFFERS] = {device, device + panel};
    c.pinned = wide_host && is_pinned(wide->data);

    /* 2. the narrow matrix, if it is read and not on the device */
    fs_matrix Y = narrow_host ? packed(narrow, &nl, device + BUFFERS * panel) : *narrow;
    if (narrow_host && (adjoint || beta != 0.0)) FSI_TRY(copy_whole(gpu, narrow, &nl, Y.data, 1));

    /* 3. the product; the sums of many panels of narrow elements are finished at the end */
    c.narrow = Y;
    if (!wide_host) {
        FSI_TRY(adjoint ? fsi_gpu_product(gpu, S, 1, row0, alpha, &Y, beta, to)
                        : fsi_gpu_product(gpu, S, 0, row0, alpha, from, beta, &Y));
    } else if (c.l.count == 0 || c.l.length == 0) {
        fs_matrix none = *wide;
        none.data = device;
        none.memory = FS_MEMORY_CUDA;
        if (!adjoint) FSI_TRY(fsi_gpu_product(gpu, S, 0, row0, alpha, &none, beta, &Y));
    } else if (adds) {
        c.narrow = sums_of(narrow, device + BUFFERS * panel + whole);
        c.alpha = 1.0;
        c.beta = 0.0;
        FSI_TRY(stream_apply(gpu, &c, panels));
        const fsi_output out = fsi_output_of(&Y, alpha, beta);
        FSI_TRY(fsi_gpu_split_reduce(gpu, c.narrow.data, 1, narrow->rows, narrow->cols, 0, FS_F32, &out));
    } else {
        FSI_TRY(adjoint ? stream_adjoint(gpu, &c, panels) : stream_apply(gpu, &c, panels));
    }

    /* 4. the narrow matrix back, if it was written and is the caller's */
    if (narrow_host && !adjoint) return copy_whole(gpu, narrow, &nl, Y.data, 0);
    return FS_OK;
}
