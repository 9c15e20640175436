/* variant.c - see variant.h. */
#include "variant.h"

const char *const variant_names[] = {"ref", "base", "avx2", "avx512", NULL};

fs_context *variant_context(const char *name)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    options.backend = FS_BACKEND_CPU;
    options.isa = name;
    return fs_context_create(&ctx, &options) ? NULL : ctx;
}
