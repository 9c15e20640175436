/* plugin.c - backends that a test can load in place of the CUDA plugin; which one, macros decide.
 *
 *     PLUGIN_NO_ENTRY   a library that is no backend
 *     PLUGIN_ABI=n      a backend of another build
 *     PLUGIN_NO_DEVICE  a backend whose device is not there
 * and without a macro one that refuses every product with a sentence that repeats the arguments it got. */
#include <inttypes.h>
#include <stdio.h>

#include "core/backend.h"

#ifndef PLUGIN_ABI
#define PLUGIN_ABI FSI_BACKEND_ABI
#endif

#ifdef PLUGIN_NO_ENTRY
FS_API int some_other_symbol(void);
int some_other_symbol(void) { return PLUGIN_ABI; }
#else
static fsi_host lent;

static fs_result plugin_open(void **state, const fsi_host *host, const fs_context_options *options)
{
#ifdef PLUGIN_NO_DEVICE
    (void)state;
    return host->fail(FS_EBACKEND, "device %d is not there", options->device);
#else
    (void)options;
    lent = *host;
    *state = host->allocator.alloc(host->allocator.user, 1);
    return *state ? FS_OK : host->fail(FS_ENOMEM, "no memory for the plugin");
#endif
}
static void plugin_close(void *state) { lent.allocator.release(lent.allocator.user, state); }
static int plugin_describe(const void *state, char *text, size_t bytes)
{
    (void)state;
    return snprintf(text, bytes, "the test's backend");
}
static size_t plugin_scratch(const void *state)
{
    (void)state;
    return 12345;
}
static fs_result product(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *from, double beta,
                         const fs_matrix *to)
{
    (void)state, (void)S;
    return lent.fail(FS_EUNSUPPORTED, "row0 %" PRId64 ", alpha %g, beta %g, from %p + %" PRId64 ", to %p + %" PRId64,
                     row0, alpha, beta, from->data, from->offset, to->data, to->offset);
}
static fs_result sparse(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *from, double beta,
                        const fs_matrix *to)
{
    (void)state, (void)S, (void)to;
    return lent.fail(FS_EUNSUPPORTED, "row0 %" PRId64 ", alpha %g, beta %g, nnz %" PRId64, row0, alpha, beta,
                     from->nnz);
}

static fs_result plugin_set_stream(void *state, void *stream)
{
    (void)state;
    return lent.fail(FS_EUNSUPPORTED, "stream %p", stream);
}
static fs_result plugin_synchronize(void *state)
{
    (void)state;
    return lent.fail(FS_EBACKEND, "the device failed before");
}

FS_API const fsi_backend *fsi_backend_entry_point(void) __asm__(FSI_BACKEND_ENTRY);
const fsi_backend *fsi_backend_entry_point(void)
{
    static const fsi_backend backend = {PLUGIN_ABI,
                                        FS_MEMORY_CUDA,
                                        plugin_open,
                                        plugin_close,
                                        plugin_describe,
                                        plugin_scratch,
                                        product,
                                        product,
                                        sparse,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        plugin_set_stream,
                                        plugin_synchronize};
    return &backend;
}
#endif
