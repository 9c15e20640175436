#include "blas.h"

#include <dlfcn.h>
#include <string.h>

const char *fs_blas_open(fs_blas *blas)
{
    static const char *const names[] = {"libopenblas.so",
                                        "libopenblas.so.0"}; /* the last is what the loader speaks of */
    memset(blas, 0, sizeof *blas);
    for (int i = 0; i < 2 && !blas->library; i++) blas->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!blas->library) return dlerror();
    /* POSIX's way from an object pointer to a function pointer, which ISO C has none for. */
    const struct { void *function; const char *name; } wanted[] = {
        {&blas->sgemm, "cblas_sgemm"}, {&blas->dgemm, "cblas_dgemm"}, {&blas->dsyrk, "cblas_dsyrk"},
        {&blas->dtrsm, "cblas_dtrsm"}, {&blas->dnrm2, "cblas_dnrm2"}, {&blas->dpotrf, "dpotrf_"},
        {&blas->dsyevd, "dsyevd_"},    {&blas->dgesdd, "dgesdd_"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        *(void **)wanted[i].function = dlsym(blas->library, wanted[i].name);
    return NULL;
}

void fs_blas_close(fs_blas *blas)
{
    if (blas->library) dlclose(blas->library);
    blas->library = NULL;
}
