/* variant.c - see variant.h. */
#include "variant.h"

#include <stdlib.h>
#include <string.h>

const char *const variant_names[] = {"ref", "base", "avx2", "avx512", NULL};

fs_context *variant_context(const char *name)
{
    static const char variable[] = "FLASHSKETCH_ISA";
    const char *set = getenv(variable);
    char *before = set ? strdup(set) : NULL;
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    options.backend = FS_BACKEND_CPU;
    setenv(variable, name, 1);
    if (fs_context_create(&ctx, &options)) ctx = NULL;
    if (before) setenv(variable, before, 1);
    else unsetenv(variable);
    free(before);
    return ctx;
}
