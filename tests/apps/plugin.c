/* plugin.c - operations that a test loads in place of those of a GPU.  PLUGIN_ABI is their version; opening them
 * fails with a message that repeats the arguments. */
#include "apps/grass/ops.h"

#ifndef PLUGIN_ABI
#define PLUGIN_ABI GRASS_OPS_ABI
#endif

static fs_result plugin_open(void **state, fs_context *ctx, const fs_context_options *options, grass_fail *fail)
{
    (void)state;
    return fail(FS_EUNSUPPORTED, "%s, device %d", ctx ? "a context" : "no context", options->device);
}

FS_API const grass_ops *plugin_entry(void) __asm__(GRASS_OPS_ENTRY);
const grass_ops *plugin_entry(void)
{
    static const grass_ops ops = {.abi = PLUGIN_ABI, .memory = FS_MEMORY_CUDA, .open = plugin_open};
    return &ops;
}
