/* backend_load.c - opens the CUDA plugin at run time, so that the library needs no CUDA to build or run. */
#include <dlfcn.h>
#include <stdlib.h>

#include "context.h"
#include "error.h"

fs_result fs_backend_load(const fs_backend **backend, void **plugin)
{
    const char *path = getenv("FLASHSKETCH_CUDA_PLUGIN");
    if (!path || !*path) path = "libflashsketch_cuda.so";
    *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*plugin) return fs_fail(FS_EBACKEND, "the CUDA backend could not be loaded: %s", dlerror());
    /* POSIX's way from an object pointer to a function pointer, which ISO C has none for. */
    fs_backend_entry entry;
    *(void **)&entry = dlsym(*plugin, FS_BACKEND_ENTRY);
    *backend = entry ? entry() : NULL;
    if (*backend && (*backend)->abi == FS_BACKEND_ABI) return FS_OK;

    fs_result failure;
    if (!*backend)
        failure = fs_fail(FS_EBACKEND, "the CUDA backend could not be loaded: %s has no %s", path, FS_BACKEND_ENTRY);
    else
        failure = fs_fail(FS_EBACKEND, "the CUDA backend %s speaks ABI %d, this library ABI %d: install both from one build",
                          path, (*backend)->abi, FS_BACKEND_ABI);
    dlclose(*plugin);
    *plugin = NULL;
    return failure;
}
