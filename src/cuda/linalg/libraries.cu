/* libraries.cu - see libraries.h. */
#include "cuda/linalg/libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* opening ---------------------------------------------------------------------------------------------------- */

/* The two libraries of one release of CUDA: cuBLAS 13 with cuSOLVER 12, cuBLAS 12 with cuSOLVER 11. */
static const char *const releases[][2] = {
    {"libcublas.so.13", "libcusolver.so.12"},
    {"libcublas.so.12", "libcusolver.so.11"},
    {"/usr/local/cuda/lib64/libcublas.so", "/usr/local/cuda/lib64/libcusolver.so"},
};

static fs_result find_functions(fsi_gpu *gpu, fsi_linalg *lib)
{
    const struct {
        void *function;
        int solver;
        const char *name;
    } wanted[] = {
        {&lib->cublasCreate, 0, "cublasCreate_v2"},
        {&lib->cublasDestroy, 0, "cublasDestroy_v2"},
        {&lib->cublasSetStream, 0, "cublasSetStream_v2"},
        {&lib->dgemm, 0, "cublasDgemm_v2"},
        {&lib->dgemv, 0, "cublasDgemv_v2"},
        {&lib->dsyrk, 0, "cublasDsyrk_v2"},
        {&lib->dtrsm, 0, "cublasDtrsm_v2"},
        {&lib->dtrsv, 0, "cublasDtrsv_v2"},
        {&lib->ddgmm, 0, "cublasDdgmm"},
        {&lib->dnrm2, 0, "cublasDnrm2_v2"},
        {&lib->cusolverCreate, 1, "cusolverDnCreate"},
        {&lib->cusolverDestroy, 1, "cusolverDnDestroy"},
        {&lib->cusolverSetStream, 1, "cusolverDnSetStream"},
        {&lib->potrf_size, 1, "cusolverDnDpotrf_bufferSize"},
        {&lib->potrf, 1, "cusolverDnDpotrf"},
        {&lib->syevd_size, 1, "cusolverDnDsyevd_bufferSize"},
        {&lib->syevd, 1, "cusolverDnDsyevd"},
        {&lib->gesvd_size, 1, "cusolverDnDgesvd_bufferSize"},
        {&lib->gesvd, 1, "cusolverDnDgesvd"},
        {&lib->geqrf_size, 1, "cusolverDnDgeqrf_bufferSize"},
        {&lib->geqrf, 1, "cusolverDnDgeqrf"},
    };
    for (const auto &w : wanted) {
        void *found = dlsym(w.solver ? lib->cusolver : lib->cublas, w.name);
        if (!found)
            return gpu->host.fail(FS_EBACKEND, "%s has no %s, which tasks need", w.solver ? "cuSOLVER" : "cuBLAS",
                                  w.name);
        memcpy(w.function, &found, sizeof found);
    }
    return FS_OK;
}

static fs_result load(fsi_gpu *gpu, fsi_linalg *lib)
{
    /* They stay loaded when the last context is closed, because they are large and slow to load. */
    const int how = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    char why[256] = "";
    for (size_t i = 0; i < sizeof releases / sizeof releases[0] && !lib->cusolver; i++) {
        lib->cublas = dlopen(releases[i][0], how);
        if (lib->cublas) lib->cusolver = dlopen(releases[i][1], how);
        if (lib->cusolver) break;
        const char *said = dlerror();
        if (!*why || lib->cublas) snprintf(why, sizeof why, "%s", said ? said : "the loader reports no reason");
        if (lib->cublas) dlclose(lib->cublas);
        lib->cublas = NULL;
    }
    if (!lib->cusolver)
        return gpu->host.fail(FS_EBACKEND, "tasks on a GPU need cuBLAS and cuSOLVER, which could not be loaded: %s",
                              why);
    return find_functions(gpu, lib);
}

/* Memory that tasks release stays with the context, for the next task: up to 1 GiB, and a 32nd of the GPU's. */
static fs_result open_pool(fsi_gpu *gpu, fsi_linalg *lib)
{
    int supported = 0;
    size_t free_bytes = 0, all = 0;
    if (cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, gpu->device) != cudaSuccess || !supported) {
        cudaGetLastError();
        return FS_OK;
    }
    cudaMemPoolProps of = {};
    of.allocType = cudaMemAllocationTypePinned;
    of.location.type = cudaMemLocationTypeDevice;
    of.location.id = gpu->device;
    FSI_TRY(fsi_gpu_check(gpu, cudaMemPoolCreate(&lib->pool, &of), "creating a memory pool"));
    FSI_TRY(fsi_gpu_check(gpu, cudaMemGetInfo(&free_bytes, &all), "querying the size of memory"));
    uint64_t kept = all / 32 < (1u << 30) ? all / 32 : 1u << 30;
    return fsi_gpu_check(gpu, cudaMemPoolSetAttribute(lib->pool, cudaMemPoolAttrReleaseThreshold, &kept),
                         "setting up a memory pool");
}

static void close_answers(fsi_linalg_answers *answers)
{
    for (cudaEvent_t event : answers->mark)
        if (event) cudaEventDestroy(event);
    cudaFreeHost(answers->info);
}

fs_result fsi_linalg_open(fsi_gpu *gpu)
{
    if (gpu->linalg) return FS_OK;
    fsi_linalg *lib = (fsi_linalg *)gpu->host.allocator.alloc(gpu->host.allocator.user, sizeof *lib);
    if (!lib) return gpu->host.fail(FS_ENOMEM, "no memory for the %zu bytes of a workspace", sizeof *lib);
    memset(lib, 0, sizeof *lib);
    gpu->linalg = lib;
    fs_result result = load(gpu, lib);
    if (result == FS_OK) result = fsi_linalg_check(gpu, lib->cublasCreate(&lib->blas), "opening cuBLAS");
    if (result == FS_OK) result = fsi_linalg_check(gpu, lib->cusolverCreate(&lib->solver), "opening cuSOLVER");
    /* Reset to the default stream; the first user sets its own. */
    if (result == FS_OK) result = open_pool(gpu, lib);
    if (result != FS_OK) fsi_linalg_close(gpu);
    return result;
}

void fsi_linalg_close(fsi_gpu *gpu)
{
    fsi_linalg *lib = gpu->linalg;
    if (!lib) return;
    cudaStreamSynchronize(gpu->stream);
    if (lib->blas) lib->cublasDestroy(lib->blas);
    if (lib->solver) lib->cusolverDestroy(lib->solver);
    if (lib->spare.info) close_answers(&lib->spare);
    if (lib->pool) cudaMemPoolDestroy(lib->pool);
    if (lib->cusolver) dlclose(lib->cusolver);
    if (lib->cublas) dlclose(lib->cublas);
    gpu->host.allocator.release(gpu->host.allocator.user, lib);
    gpu->linalg = NULL;
}

/* shared by workspaces -------------------------------------------------------------------------------------- */

fs_result fsi_linalg_check(fsi_gpu *gpu, int status, const char *what)
{
    if (status == 0) return FS_OK;
    return gpu->host.fail(FS_EBACKEND, "%s on %s: status %d", what, gpu->name, status);
}

fs_result fsi_linalg_follow(fsi_gpu *gpu)
{
    fsi_linalg *lib = gpu->linalg;
    if (lib->stream == gpu->stream) return FS_OK;
    FSI_TRY(fsi_linalg_check(gpu, lib->cublasSetStream(lib->blas, gpu->stream), "setting the stream of cuBLAS"));
    FSI_TRY(fsi_linalg_check(gpu, lib->cusolverSetStream(lib->solver, gpu->stream), "setting the stream of cuSOLVER"));
    lib->stream = gpu->stream;
    return FS_OK;
}

cudaError_t fsi_linalg_alloc(fsi_gpu *gpu, size_t bytes, void **memory)
{
    if (bytes == 0) bytes = 1;
    return gpu->linalg->pool ? cudaMallocFromPoolAsync(memory, bytes, gpu->linalg->pool, gpu->stream)
                             : cudaMalloc(memory, bytes);
}

void fsi_linalg_free(fsi_gpu *gpu, void *memory)
{
    if (!memory) return;
    if (gpu->linalg->pool) {
        cudaFreeAsync(memory, gpu->stream);
        return;
    }
    cudaStreamSynchronize(gpu->stream);
    cudaFree(memory);
}

fs_result fsi_linalg_take_answers(fsi_gpu *gpu, fsi_linalg_answers *answers)
{
    fsi_linalg *lib = gpu->linalg;
    *answers = lib->spare;
    lib->spare = {};
    if (!answers->info) {
        FSI_TRY(fsi_gpu_check(gpu, cudaHostAlloc((void **)&answers->info, 2 * sizeof(int), cudaHostAllocDefault),
                              "allocating memory for a result"));
        for (cudaEvent_t &event : answers->mark)
            FSI_TRY(fsi_gpu_check(gpu, cudaEventCreate(&event), "creating an event"));
    }
    answers->info[0] = answers->info[1] = 0;
    return FS_OK;
}

void fsi_linalg_give_answers(fsi_gpu *gpu, fsi_linalg_answers *answers)
{
    int whole = answers->info != NULL;
    for (cudaEvent_t event : answers->mark) whole = whole && event;
    if (whole && !gpu->linalg->spare.info) gpu->linalg->spare = *answers;
    else close_answers(answers);
    *answers = {};
}
