/* lapack.c - see lapack.h. */
#include "lapack.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static const struct {
    size_t at;
    const char *name; /* without the letter of its type */
} functions[] = {
    {offsetof(lapack_functions, gemm), "gemm_"},   {offsetof(lapack_functions, gemv), "gemv_"},
    {offsetof(lapack_functions, syrk), "syrk_"},   {offsetof(lapack_functions, trsm), "trsm_"},
    {offsetof(lapack_functions, potrf), "potrf_"}, {offsetof(lapack_functions, potrs), "potrs_"},
    {offsetof(lapack_functions, geqrf), "geqrf_"}, {offsetof(lapack_functions, orgqr), "orgqr_"},
    {offsetof(lapack_functions, geqp3), "geqp3_"}, {offsetof(lapack_functions, gels), "gels_"},
    {offsetof(lapack_functions, gelsd), "gelsd_"}, {offsetof(lapack_functions, gelsy), "gelsy_"},
    {offsetof(lapack_functions, gesdd), "gesdd_"}, {offsetof(lapack_functions, syevd), "syevd_"},
    {offsetof(lapack_functions, sterf), "sterf_"},
};

static int look_up(lapack *l, char letter, lapack_functions *to)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        char name[16];
        snprintf(name, sizeof name, "%c%s", letter, functions[i].name);
        /* POSIX lets an object pointer become a function pointer this way; ISO C has no conversion. */
        void **function = (void **)((char *)to + functions[i].at);
        *function = dlsym(l->library, name);
        if (*function) continue;
        fprintf(stderr, "fsbench: OpenBLAS has no %s\n", name);
        return 1;
    }
    return 0;
}

int lapack_open(lapack *l, int threads)
{
    void (*set_threads)(int) = NULL;
    *l = (lapack){0};
    l->library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!l->library) {
        fprintf(stderr, "fsbench: OpenBLAS is not installed (Debian: libopenblas0): %s\n", dlerror());
        return 1;
    }
    *(void **)&set_threads = dlsym(l->library, "openblas_set_num_threads");
    if (set_threads) set_threads(threads);
    return look_up(l, 's', &l->f32) || look_up(l, 'd', &l->f64);
}

void lapack_close(lapack *l)
{
    if (l->library) dlclose(l->library);
    l->library = NULL;
}
