/* late.c - a backend whose device goes away: the first product is zeros, the second fails. */
#include <stdlib.h>

#include "core/backend.h"
#include "base/dtype.h"

typedef struct late {
    fsi_host host;
    int products;
} late;

static fs_result late_open(void **state, const fsi_host *host, const fs_context_options *options)
{
    (void)options;
    late *made = host->allocator.alloc(host->allocator.user, sizeof *made);
    if (!made) return host->fail(FS_ENOMEM, "no memory for the plugin");
    made->host = *host, made->products = 0;
    *state = made;
    return FS_OK;
}
static void late_close(void *state)
{
    const fs_allocator memory = ((late *)state)->host.allocator;
    memory.release(memory.user, state);
}
static int late_describe(const void *state, char *text, size_t bytes)
{
    (void)state;
    if (bytes) *text = 0;
    return 0;
}
static size_t late_scratch(const void *state)
{
    (void)state;
    return 0;
}
static fs_result late_apply(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A, double beta,
                            const fs_matrix *Y)
{
    (void)S, (void)row0, (void)alpha, (void)A, (void)beta;
    late *self = state;
    if (++self->products > 1) return self->host.fail(FS_EBACKEND, "the device fell off the bus");
    for (int64_t i = 0; i < Y->rows; i++)
        for (int64_t j = 0; j < Y->cols; j++) fsi_store(Y->data, Y->dtype, i * Y->row_stride + j * Y->col_stride, 0);
    return FS_OK;
}

FS_API const fsi_backend *fsi_backend_entry_point(void) __asm__(FSI_BACKEND_ENTRY);
const fsi_backend *fsi_backend_entry_point(void)
{
    static const fsi_backend backend = {FSI_BACKEND_ABI,
                                        FS_MEMORY_CUDA,
                                        late_open,
                                        late_close,
                                        late_describe,
                                        late_scratch,
                                        late_apply,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};
    return &backend;
}
