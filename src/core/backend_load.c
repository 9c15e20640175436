/* backend_load.c - opens the CUDA plugin at run time, so that the library needs no CUDA to build or run. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "base/error.h"

static const char plugin_name[] = "libflashsketch_cuda.so";

/* Whether the loader's message means that there is no plugin at all.  The message names the file that could not be
 * opened: where the plugin exists and a library that it needs does not, that library. */
static int not_found(const char *said)
{
    const size_t length = sizeof plugin_name - 1;
    return !strncmp(said, plugin_name, length) && !strncmp(said + length, ": cannot open", 13);
}

fs_result fsi_backend_load(const fsi_backend **backend, void **plugin, int *absent)
{
    const char *set = getenv("FLASHSKETCH_CUDA_PLUGIN"), *path = set && *set ? set : plugin_name;
    *absent = 0;
    *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*plugin) {
        const char *said = dlerror();
        *absent = path == plugin_name && not_found(said);
        return *absent ? fs_fail(FS_EBACKEND, "the CUDA plugin is not installed; 'make cuda' builds it")
                       : fs_fail(FS_EBACKEND, "the CUDA backend could not be loaded: %s", said);
    }
    /* POSIX's conversion of an object pointer to a function pointer; ISO C has none. */
    fsi_backend_entry entry;
    *(void **)&entry = dlsym(*plugin, FSI_BACKEND_ENTRY);
    *backend = entry ? entry() : NULL;
    if (*backend && (*backend)->abi == FSI_BACKEND_ABI) return FS_OK;

    fs_result failure;
    if (!*backend)
        failure = fs_fail(FS_EBACKEND, "the CUDA backend could not be loaded: %s has no %s", path, FSI_BACKEND_ENTRY);
    else
        failure = fs_fail(FS_EBACKEND,
                          "the CUDA backend %s has ABI %d, this library has ABI %d; install both from one build", path,
                          (*backend)->abi, FSI_BACKEND_ABI);
    dlclose(*plugin);
    *plugin = NULL;
    return failure;
}
