/* device.c - the context, and the table of operations that fits it. */
#include "device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "flashsketch_tasks.h"

fs_result grass_open_algebra(fs_context *ctx)
{
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    fs_workspace *workspace;
    shape.k = shape.n = 1;
    GRASS_TRY(fs_workspace_create(&workspace, ctx, &shape));
    fs_workspace_destroy(workspace);
    return FS_OK;
}

static fs_result load_plugin(grass_device *device)
{
    const char *set = getenv("FLASHSKETCH_GRASS_CUDA_PLUGIN");
    const char *path = set && *set ? set : "libflashsketch_grass_cuda.so";
    device->plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!device->plugin)
        return fs_fail(FS_EBACKEND, "the experiment's operations on a GPU could not be loaded: %s", dlerror());
    grass_ops_entry entry;
    *(void **)&entry = dlsym(device->plugin, GRASS_OPS_ENTRY); /* POSIX's conversion to a function pointer */
    if (!entry) return fs_fail(FS_EBACKEND, "%s has no symbol " GRASS_OPS_ENTRY, path);
    const grass_ops *ops = entry();
    if (ops->abi != GRASS_OPS_ABI)
        return fs_fail(FS_EBACKEND, "%s has operations of version %d, this program needs %d", path, ops->abi,
                       GRASS_OPS_ABI);
    device->ops = ops;
    return FS_OK;
}

static fs_result open_ops(grass_device *device, const fs_context_options *options)
{
    if (fs_context_backend(device->ctx) == FS_BACKEND_CUDA) GRASS_TRY(load_plugin(device));
    else device->ops = &grass_cpu_ops;
    return device->ops->open(&device->state, device->ctx, options, fs_fail);
}

fs_result grass_device_open(grass_device *device, const fs_context_options *options)
{
    memset(device, 0, sizeof *device);
    GRASS_TRY(fs_context_create(&device->ctx, options));
    const fs_result result = open_ops(device, options);
    if (result != FS_OK) grass_device_close(device);
    return result;
}

void grass_device_close(grass_device *device)
{
    if (device->state) device->ops->close(device->state);
    if (device->plugin) dlclose(device->plugin);
    fs_context_destroy(device->ctx);
    memset(device, 0, sizeof *device);
}
