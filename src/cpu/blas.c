/* blas.c - see blas.h.
 *
 * OpenBLAS has no error codes for the resources it takes at first.  Its threads are created when it is loaded, and
 * where that fails it calls exit; each takes a buffer of BUFFER bytes of addresses, as does the first call of the
 * caller's thread, and where that fails it tries again without end (blas_memory_alloc).  So both are tried here before
 * it is loaded, and products by all threads follow at once, while the memory is known to be available: from then on
 * OpenBLAS keeps its buffers.  What remains: each further thread of the caller that calls OpenBLAS at the same time as
 * another takes one more buffer.
 *
 * The table is process-wide, as OpenBLAS and its threads are. */
#include "cpu/blas.h"

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/threads.h"

/* The buffer of a thread (BUFFER_SIZE of OpenBLAS 0.3 on x86-64 and arm64) and the library itself, with its data. */
static const size_t BUFFER = (size_t)128 << 20, LIBRARY = (size_t)48 << 20;

/* Threads that OpenBLAS starts: the value of the first of its variables that is set, at most one for each processor. */
static int threads_of_openblas(void)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"};
    const int all = omp_get_num_procs(), processors = all < FS_THREADS_MAX ? all : FS_THREADS_MAX;
    for (int i = 0; i < 3; i++) {
        const char *text = getenv(names[i]);
        const int said = text ? atoi(text) : 0;
        if (said > 0) return said < processors ? said : processors;
    }
    return processors;
}

/* Whether `count` buffers and the library can be mapped, and count - 1 threads created, all at once. */
static int is_possible(int count, int *threads)
{
    void *held[FS_THREADS_MAX + 1];
    int mapped = 0;
    for (; mapped <= count; mapped++) {
        const size_t bytes = mapped ? BUFFER : LIBRARY;
        held[mapped] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (held[mapped] == MAP_FAILED) break;
    }
    const int all = mapped == count + 1;
    *threads = all ? 1 + fsi_threads_possible(count - 1) : 0;
    while (mapped-- > 0) munmap(held[mapped], mapped ? BUFFER : LIBRARY);
    return all;
}

/* An OpenBLAS that uses OpenMP has the defect after fork that threads.c describes. */
static void (*set_threads)(int);
static void after_fork_in_child(void) { set_threads(1); }
static void see_to_fork(void *library)
{
    int (*parallel)(void) = NULL;
    *(void **)&parallel = dlsym(library, "openblas_get_parallel");
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    const int openmp = 2;
    if (!parallel || !set_threads || parallel() != openmp) return;
    if (fs_thread_count(0) == 1) set_threads(1);
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* Products after which every thread has its buffer, the caller's too.  0: no memory for them.  dgemm must be so large
 * that all threads have a share and that OpenBLAS does not use its kernels for small matrices, which need no buffer
 * (below 10^6 multiplications); dsyrk has no such kernels. */
static int use_once(const fsi_blas *b, int threads)
{
    enum { SIDE = 64, INNER = 256 };
    const int rows = SIDE * threads;
    double *A = calloc((size_t)(rows + SIDE) * INNER + (size_t)rows * SIDE, sizeof *A);
    if (!A) return 0;
    double *B = A + rows * INNER, *C = B + INNER * SIDE;
    if (b->dsyrk) b->dsyrk(BLAS_ROWS, BLAS_LOWER, BLAS_PLAIN, 1, 1, 1, A, 1, 0, C, 1);
    if (b->dgemm) b->dgemm(BLAS_ROWS, BLAS_PLAIN, BLAS_PLAIN, rows, SIDE, INNER, 1, A, INNER, B, SIDE, 0, C, SIDE);
    free(A);
    return 1;
}

static void look_up(fsi_blas *blas)
{
    /* POSIX's conversion of an object pointer to a function pointer; ISO C has none. */
    const struct {
        void *function;
        const char *name;
    } wanted[] = {
        {&blas->sgemm, "cblas_sgemm"}, {&blas->dgemm, "cblas_dgemm"}, {&blas->dsyrk, "cblas_dsyrk"},
        {&blas->dtrsm, "cblas_dtrsm"}, {&blas->dnrm2, "cblas_dnrm2"}, {&blas->dpotrf, "dpotrf_"},
        {&blas->dsyevd, "dsyevd_"},    {&blas->dgesdd, "dgesdd_"},    {&blas->dgeqrf, "dgeqrf_"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        *(void **)wanted[i].function = dlsym(blas->library, wanted[i].name);
}

static fs_result open_now(fsi_blas *blas, fs_result (*fail)(fs_result, const char *, ...))
{
    static const char *const names[] = {"libopenblas.so", "libopenblas.so.0"}; /* the loader's message names the last */
    const int count = threads_of_openblas();
    const size_t need = LIBRARY + (size_t)count * BUFFER;
    int threads;
    if (!is_possible(count, &threads))
        return fail(FS_ENOMEM,
                    "no memory for OpenBLAS, which takes %zu MiB of addresses for %d thread%s; allow more "
                    "(ulimit -v), or set OPENBLAS_NUM_THREADS to a smaller number",
                    need >> 20, count, count == 1 ? "" : "s");
    if (threads < count)
        return fail(FS_ENOMEM,
                    "OpenBLAS needs %d threads and the system creates %d; allow more (ulimit -u), or set "
                    "OPENBLAS_NUM_THREADS=1",
                    count, threads);
    fsi_blas found = {0};
    for (int i = 0; i < 2 && !found.library; i++) found.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!found.library)
        return fail(FS_EBACKEND, "tasks need OpenBLAS (Debian: libopenblas0), which could not be loaded: %s",
                    dlerror());
    look_up(&found);
    see_to_fork(found.library);
    if (!use_once(&found, count))
        return fail(FS_ENOMEM, "no memory for a first product by OpenBLAS with %d threads", count);
    *blas = found;
    return FS_OK;
}

fs_result fsi_blas_open(const fsi_blas **blas, fs_result (*fail)(fs_result code, const char *format, ...))
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static fsi_blas table;
    fs_result result = FS_OK;
    pthread_mutex_lock(&lock);
    if (!table.library) result = open_now(&table, fail);
    *blas = result == FS_OK ? &table : NULL;
    pthread_mutex_unlock(&lock);
    return result;
}
