/* libraries.h - cuBLAS and cuSOLVER, opened at run time, and the handles that a context keeps from task to task.
 *
 * Both libraries are opened when the first workspace is made, and never linked: the plugin loads where neither is
 * installed.  Their functions are declared here, by the few that are used, so that neither's headers are needed to
 * build; the numbers are those of cublas_api.h and cusolver_common.h, which have not changed since CUDA 8. */
#ifndef FSI_CUDA_LINALG_LIBRARIES_H
#define FSI_CUDA_LINALG_LIBRARIES_H

#include "cuda/runtime/gpu.h"

enum { OP_N = 0, OP_T = 1, LOWER = 0, LEFT = 0, RIGHT = 1, NON_UNIT = 0, NO_VECTORS = 0 };

/* Through which a workspace gets results. */
typedef struct fsi_linalg_answers {
    int *info; /* the result code of potrf, then those of eigen and svd: host memory that the GPU writes, so that no
                * copy is waited for */
    cudaEvent_t mark[FSI_DENSE_MARKS];
} fsi_linalg_answers;

/* One for each context, made with its first workspace.  Handles of the libraries, pinned memory and memory of the GPU
 * take milliseconds to allocate and release, as long as a task may take. */
typedef struct fsi_linalg {
    void *cublas, *cusolver;  /* dlopen's handles */
    void *blas, *solver;      /* the libraries' */
    cudaStream_t stream;      /* their streams */
    cudaMemPool_t pool;       /* of tasks' memory, which stays there up to a limit; NULL: this GPU has none */
    fsi_linalg_answers spare; /* those of a closed workspace; info NULL: none */
    int (*cublasCreate)(void **);
    int (*cublasDestroy)(void *);
    int (*cublasSetStream)(void *, cudaStream_t);
    int (*dgemm)(void *, int, int, int, int, int, const double *, const double *, int, const double *, int,
                 const double *, double *, int);
    int (*dgemv)(void *, int, int, int, const double *, const double *, int, const double *, int, const double *,
                 double *, int);
    int (*dsyrk)(void *, int, int, int, int, const double *, const double *, int, const double *, double *, int);
    int (*dtrsm)(void *, int, int, int, int, int, int, const double *, const double *, int, double *, int);
    int (*dtrsv)(void *, int, int, int, int, const double *, int, double *, int);
    int (*ddgmm)(void *, int, int, int, const double *, int, const double *, int, double *, int);
    int (*dnrm2)(void *, int, const double *, int, double *);
    int (*cusolverCreate)(void **);
    int (*cusolverDestroy)(void *);
    int (*cusolverSetStream)(void *, cudaStream_t);
    int (*potrf_size)(void *, int, int, double *, int, int *);
    int (*potrf)(void *, int, int, double *, int, double *, int, int *);
    int (*syevd_size)(void *, int, int, int, const double *, int, const double *, int *);
    int (*syevd)(void *, int, int, int, double *, int, double *, double *, int, int *);
    int (*gesvd_size)(void *, int, int, int *);
    int (*gesvd)(void *, signed char, signed char, int, int, double *, int, double *, double *, int, double *, int,
                 double *, int, double *, int *);
    int (*geqrf_size)(void *, int, int, double *, int, int *);
    int (*geqrf)(void *, int, int, double *, int, double *, double *, int, int *);
} fsi_linalg;

/* gpu->linalg, on the context's device: opened by the first call. */
fs_result fsi_linalg_open(fsi_gpu *gpu);

/* FS_OK, or FS_EBACKEND with the status of cuBLAS or cuSOLVER. */
fs_result fsi_linalg_check(fsi_gpu *gpu, int status, const char *what);

/* The context's stream may have changed (fs_context_set_stream): the libraries follow it before they queue work. */
fs_result fsi_linalg_follow(fsi_gpu *gpu);

/* Memory of the GPU in the order of the context's stream: queued work may still use memory that is released. */
cudaError_t fsi_linalg_alloc(fsi_gpu *gpu, size_t bytes, void **memory);
void fsi_linalg_free(fsi_gpu *gpu, void *memory);

fs_result fsi_linalg_take_answers(fsi_gpu *gpu, fsi_linalg_answers *answers);
void fsi_linalg_give_answers(fsi_gpu *gpu, fsi_linalg_answers *answers);

#endif
