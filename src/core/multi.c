/* multi.c - several contexts on one product: each has its rows of A and computes a partial Y; these are added.
 *
 * Where every matrix is in the memory of one backend's devices, the device group of that backend queues all of it.
 * Otherwise each context but the first has a thread for the duration of the call, because a product with a host matrix
 * returns when it is done; partial results are computed in host memory and added by fs_add. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/view.h"
#include "core/matrix.h"
#include "core/multi.h"
#include "core/sketch.h"

/* The work of one thread, and its result. */
typedef struct part {
    fs_context *ctx;
    const fs_sketch *S;
    int64_t row0;
    double alpha;
    const fs_matrix *A;
    fs_matrix *made;
    pthread_t thread;
    int started;
    fs_result result;
    char message[400];
} part;

struct fs_multi {
    fs_allocator allocator;
    fs_multi_options options;
    int count;
    fs_context **contexts;
    void **states;
    fs_matrix *views; /* of A with offsets folded, then of partial results */
    part *parts;
    void *group;  /* of the backend, NULL where it has none */
    void *memory; /* partial results in host memory */
    size_t bytes;
};

/* creation ------------------------------------------------------------------------------------------------ */

static fs_result check_contexts(fs_context *const *contexts, int count)
{
    const char *who = "fs_multi_create";
    FSI_REQUIRE(contexts && count >= 1, "%s: contexts is %s, count is %d; at least one is needed", who,
                contexts ? "there" : "NULL", count);
    for (int i = 0; i < count; i++) {
        FSI_REQUIRE(contexts[i], "%s: contexts[%d] is NULL", who, i);
        for (int j = 0; j < i; j++)
            FSI_REQUIRE(contexts[j] != contexts[i],
                        "%s: contexts[%d] and contexts[%d] are one; a context does one "
                        "thing at a time",
                        who, j, i);
    }
    return FS_OK;
}

static fs_result read_options(fs_multi_options *full, const fs_multi_options *given)
{
    const char *who = "fs_multi_create";
    const fs_multi_options start = FS_MULTI_INIT;
    *full = start;
    if (given) FSI_TRY(fs_struct_read(who, "options", given, full, sizeof *full));
    FSI_REQUIRE(full->sum >= FS_MULTI_AUTO && full->sum <= FS_MULTI_NCCL,
                "%s: sum %d does not exist; it must be one of fs_multi_sum", who, (int)full->sum);
    FSI_REQUIRE(!full->allocator.alloc == !full->allocator.release, "%s: the allocator needs both alloc and release",
                who);
    return FS_OK;
}

/* A device group, if all contexts have one backend that creates them. */
static fs_result open_team(fs_multi *m)
{
    const fsi_device_group *group = m->contexts[0]->backend->device_group;
    for (int i = 0; i < m->count; i++) {
        m->states[i] = m->contexts[i]->state;
        if (m->contexts[i]->backend->device_group != group) group = NULL;
    }
    const fsi_host host = {fs_fail, m->allocator};
    if (group) return group->open(&m->group, &host, m->states, m->count, m->options.sum);
    if (m->options.sum == FS_MULTI_NCCL)
        return fs_fail(FS_EUNSUPPORTED, "fs_multi_create: NCCL sums between GPUs, and not all contexts are CUDA's");
    return FS_OK;
}

fs_result fs_multi_create(fs_multi **out, fs_context *const *contexts, int count, const fs_multi_options *options)
{
    FSI_REQUIRE(out, "fs_multi_create: out is NULL");
    *out = NULL;
    fs_multi_options full;
    FSI_TRY(check_contexts(contexts, count));
    FSI_TRY(read_options(&full, options));
    const fs_allocator allocator = fs_allocator_or_malloc(&full.allocator);
    const size_t each = sizeof(fs_context *) + sizeof(void *) + sizeof(fs_matrix) + sizeof(part);
    const size_t bytes = sizeof(fs_multi) + (size_t)count * each;
    fs_multi *m = allocator.alloc(allocator.user, bytes);
    if (!m) return fs_fail(FS_ENOMEM, "fs_multi_create: no memory for %zu bytes", bytes);
    memset(m, 0, bytes);
    m->allocator = allocator, m->options = full, m->count = count;
    m->views = (fs_matrix *)(m + 1);
    m->parts = (part *)(m->views + count);
    m->contexts = (fs_context **)(m->parts + count);
    m->states = (void **)(m->contexts + count);
    memcpy(m->contexts, contexts, sizeof *contexts * (size_t)count);
    const fs_result result = open_team(m);
    if (result != FS_OK) {
        allocator.release(allocator.user, m);
        return result;
    }
    *out = m;
    return FS_OK;
}

void fs_multi_destroy(fs_multi *m)
{
    if (!m) return;
    const fs_allocator memory = m->allocator;
    if (m->group) m->contexts[0]->backend->device_group->close(m->group);
    if (m->memory) memory.release(memory.user, m->memory);
    memory.release(memory.user, m);
}

int fsi_multi_contexts(const fs_multi *m, fs_context *const **contexts, fs_allocator *allocator)
{
    *contexts = m->contexts;
    *allocator = m->allocator;
    return m->count;
}

int fs_multi_describe(const fs_multi *m, char *text, size_t bytes)
{
    if (!m) return snprintf(text, bytes, "no contexts");
    char first[256], how[256] = "partial results added in host memory";
    fs_context_describe(m->contexts[0], first, sizeof first);
    if (m->group) m->contexts[0]->backend->device_group->describe(m->group, how, sizeof how);
    return snprintf(text, bytes, "%d context%s, %s; the first: %s", m->count, m->count == 1 ? "" : "s", how, first);
}

/* the product ----------------------------------------------------------------------------------------------- */

static fs_result check_product(const fs_multi *m, const fs_sketch *S, const int64_t *row0, const fs_matrix *A,
                               const fs_matrix *Y)
{
    const char *who = "fs_multi_apply";
    FSI_REQUIRE(m && S && row0 && A, "%s: %s is NULL", who, !m ? "multi" : !S ? "S" : !row0 ? "row0" : "A");
    for (int i = 0; i < m->count; i++) {
        FSI_TRY(fsi_apply_check(who, m->contexts[i], S, row0[i], &A[i], Y));
        FSI_REQUIRE(fsi_dtype_sum(A[i].dtype) == fsi_dtype_sum(A[0].dtype), "%s: A[0] is %s and A[%d] is %s", who,
                    fs_dtype_name(A[0].dtype), i, fs_dtype_name(A[i].dtype));
        for (int j = 0; j < i; j++)
            FSI_REQUIRE(row0[i] + A[i].rows <= row0[j] || row0[j] + A[j].rows <= row0[i] || !A[i].rows || !A[j].rows,
                        "%s: A[%d] has rows %" PRId64 " to %" PRId64 " and A[%d] rows %" PRId64 " to %" PRId64
                        ": no row may be in two of them",
                        who, j, row0[j], row0[j] + A[j].rows - 1, i, row0[i], row0[i] + A[i].rows - 1);
    }
    return Y->memory == FS_MEMORY_HOST ? FS_OK : fsi_context_check_memory(who, "Y", m->contexts[0], Y->memory);
}

static void *run_part(void *argument)
{
    part *p = argument;
    p->result = fs_apply(p->ctx, p->S, p->row0, p->alpha, p->A, 0.0, p->made);
    if (p->result != FS_OK) snprintf(p->message, sizeof p->message, "%s", fs_error_message());
    return NULL;
}

/* Products 1, 2, ... in threads, product 0 in this one; where a thread cannot be created, this one computes its product
 * too. */
static fs_result run_parts(fs_multi *m)
{
    part *parts = m->parts;
    for (int i = 1; i < m->count; i++)
        parts[i].started = pthread_create(&parts[i].thread, NULL, run_part, &parts[i]) == 0;
    for (int i = 0; i < m->count; i++)
        if (!parts[i].started) run_part(&parts[i]);
    for (int i = 1; i < m->count; i++)
        if (parts[i].started) pthread_join(parts[i].thread, NULL);
    for (int i = 0; i < m->count; i++)
        if (parts[i].result != FS_OK) return fs_fail(parts[i].result, "contexts[%d]: %s", i, parts[i].message);
    return FS_OK;
}

/* Packed in the direction in which Y is, so that they are copied and added line by line. */
static fs_result lay_out_parts(fs_multi *m, const fs_matrix *Y, fs_dtype sum)
{
    int64_t bytes;
    if (__builtin_mul_overflow(Y->rows, Y->cols, &bytes) ||
        __builtin_mul_overflow(bytes, fsi_dtype_size(sum) * m->count, &bytes))
        return fs_fail(FS_ENOMEM, "fs_multi_apply: %d parts of %" PRId64 " x %" PRId64 " do not fit 64 bits", m->count,
                       Y->rows, Y->cols);
    if ((size_t)bytes > m->bytes) {
        if (m->memory) m->allocator.release(m->allocator.user, m->memory);
        m->memory = m->allocator.alloc(m->allocator.user, (size_t)bytes);
        m->bytes = m->memory ? (size_t)bytes : 0;
        if (!m->memory)
            return fs_fail(FS_ENOMEM, "fs_multi_apply: no memory for %" PRId64 " bytes of %d parts of Y", bytes,
                           m->count);
    }
    for (int i = 0; i < m->count; i++) {
        char *at = (char *)m->memory + bytes / m->count * i;
        m->views[i] = (fsi_view_is_row_major(Y) ? fs_row_major : fs_col_major)(at, Y->rows, Y->cols, sum);
    }
    return FS_OK;
}

fs_result fs_multi_apply(fs_multi *m, const fs_sketch *S, const int64_t *row0, double alpha, const fs_matrix *A,
                         double beta, const fs_matrix *Y)
{
    FSI_TRY(check_product(m, S, row0, A, Y));
    int resident = m->group && Y->memory != FS_MEMORY_HOST;
    for (int i = 0; i < m->count; i++) resident = resident && A[i].memory != FS_MEMORY_HOST;
    if (resident) {
        for (int i = 0; i < m->count; i++) m->views[i] = fsi_matrix_at_origin(&A[i]);
        const fs_matrix to = fsi_matrix_at_origin(Y);
        return m->contexts[0]->backend->device_group->apply(m->group, &S->def, row0, alpha, m->views, beta, &to);
    }
    FSI_TRY(lay_out_parts(m, Y, fsi_dtype_sum(A[0].dtype)));
    for (int i = 0; i < m->count; i++) {
        const part p = {
            .ctx = m->contexts[i], .S = S, .row0 = row0[i], .alpha = alpha, .A = &A[i], .made = &m->views[i]};
        m->parts[i] = p;
    }
    FSI_TRY(run_parts(m));
    return fs_add(m->contexts[0], m->views, m->count, beta, Y);
}
