/* gpu.h - what the files of the CUDA backend share on the host side: its state, memory, launches.
 *
 * One context is one GPU, one stream and one scratch buffer.  Every call is queued on the stream and returns; nothing
 * synchronises, and nothing allocates once the scratch has grown to what the largest call needs.  A call can be captured
 * into a CUDA graph: scratch that it needs is allocated while it is captured.  Buffers that scratch has outgrown are kept
 * until the context closes, because kernels in flight and captured graphs may still use them. */
#ifndef FSI_CUDA_RUNTIME_GPU_H
#define FSI_CUDA_RUNTIME_GPU_H

#include <cuda_runtime.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/math.h"
#include "base/view.h"
#include "core/backend.h"
#include "cuda/plan/traits.h"

/* Device memory that grows; the last buffer is the one in use. */
typedef struct fsi_gpu_pool {
    void *memory[32];
    size_t bytes[32];
    int count;
} fsi_gpu_pool;

typedef struct fsi_gpu {
    fsi_host host;
    int device;
    cudaStream_t stream;
    int capability;        /* compute capability: 90 for 9.0 */
    fsi_gpu_traits traits; /* what plans depend on */
    fs_precision precision;
    int threads;               /* host threads that fill pinned buffers */
    struct fsi_tuning *tuning; /* measured choices ($FLASHSKETCH_TUNING); NULL: the rules */
    char name[256];
    fsi_gpu_pool scratch; /* of one product */
    fsi_gpu_pool copies;  /* gathered rows, where they are copied before the product (gathered_rows.cu); factors */
    void *encode_map;     /* the driver's function, found by the first call that needs it */
    struct fsi_staging *staging; /* pinned buffers, made by the first call with a host matrix */
    struct fsi_linalg *linalg;   /* cuBLAS and cuSOLVER (linalg/libraries.h), opened by the first workspace */
} fsi_gpu;

/* `bytes` of device scratch, 256-byte aligned, contents undefined, valid for work queued by this call; memory from
 * earlier requests of the same call is lost when it grows, so request everything at once.  FS_ENOMEM with the
 * numbers. */
fs_result fsi_gpu_scratch(fsi_gpu *gpu, int64_t bytes, void **memory);
/* The same of another pool of the context. */
fs_result fsi_gpu_take(fsi_gpu *gpu, fsi_gpu_pool *pool, int64_t bytes, void **memory);

/* The context's device while a call lasts, the caller's afterwards. */
class on_device {
    int before;

public:
    explicit on_device(int device)
    {
        cudaGetDevice(&before);
        if (before != device) cudaSetDevice(device);
    }
    ~on_device()
    {
        int now;
        cudaGetDevice(&now);
        if (now != before) cudaSetDevice(before);
    }
};

/* While it lives, this thread may allocate device memory although a stream is being captured: memory is no work on a
 * stream, so the graph does not hold it and every replay finds it. */
class allocations_while_capturing {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

public:
    allocations_while_capturing() { cudaThreadExchangeStreamCaptureMode(&mode); }
    ~allocations_while_capturing() { cudaThreadExchangeStreamCaptureMode(&mode); }
};

/* FS_OK, or FS_EBACKEND with the action that failed and CUDA's error message. */
fs_result fsi_gpu_check(fsi_gpu *gpu, cudaError_t error, const char *what);

/* After a launch: fsi_gpu_check of the last error. */
#define FSI_LAUNCHED(gpu, what) fsi_gpu_check((gpu), cudaGetLastError(), (what))

/* Whether neighbours in memory are in a column. */
static inline int fsi_runs_down(const fs_matrix *m) { return m->row_stride == 1 && m->cols > 1; }

/* The operations, by family.  All have the contract of backend.h; matrices are in device memory. */
#define FSI_GPU_OP(name, family) \
    fs_result name(fsi_gpu *gpu, const family *S, double scale, int64_t row0, double alpha, const fs_matrix *from, \
                   double beta, const fs_matrix *to)

FSI_GPU_OP(fsi_gpu_blockperm_apply, fsi_blockperm);
FSI_GPU_OP(fsi_gpu_blockperm_adjoint, fsi_blockperm);
FSI_GPU_OP(fsi_gpu_blockrow_apply, fsi_blockrow);
FSI_GPU_OP(fsi_gpu_blockrow_adjoint, fsi_blockrow);
FSI_GPU_OP(fsi_gpu_srht_apply, fsi_srht);
FSI_GPU_OP(fsi_gpu_srht_adjoint, fsi_srht);
FSI_GPU_OP(fsi_gpu_srht_sampled_apply, fsi_srht); /* few rows of Y */
FSI_GPU_OP(fsi_gpu_gaussian_apply, fsi_gauss);
FSI_GPU_OP(fsi_gpu_gaussian_adjoint, fsi_gauss);

/* S or its transpose times `from`, by the family of S; both matrices in device memory. */
fs_result fsi_gpu_product(fsi_gpu *gpu, const fsi_def *S, int adjoint, int64_t row0, double alpha,
                          const fs_matrix *from, double beta, const fs_matrix *to);

/* Once for every context, whose traits are known: sets the kernels' limits of shared memory, and finds out which were
 * compiled. */
fs_result fsi_gpu_blockperm_prepare(fsi_gpu *gpu);

/* S times the gathered rows of `from`; the list is in device memory too. */
fs_result fsi_gpu_rows_apply(fsi_gpu *gpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *from,
                             const fs_rows *rows, double beta, const fs_matrix *to);
/* S times factored input; factors and pairs are in device memory. */
fs_result fsi_gpu_products_apply(fsi_gpu *gpu, const fsi_def *S, int64_t row0, double alpha,
                                 const fsi_products *products, double beta, const fs_matrix *to);
fs_result fsi_gpu_sparse_apply(fsi_gpu *gpu, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A,
                               double beta, const fs_matrix *Y);
fs_result fsi_gpu_digest(fsi_gpu *gpu, const fsi_def *S, int64_t col0, int64_t cols, uint64_t *digest);
extern const fsi_dense fsi_gpu_dense; /* dense.cu */
/* Releases gpu->linalg, once every workspace is closed; NULL is a no-op. */
void fsi_linalg_close(fsi_gpu *gpu);
/* fs_add where a matrix is in device memory; those in host memory have packed rows or columns. */
fs_result fsi_gpu_add(fsi_gpu *gpu, const fs_matrix *P, int count, double beta, const fs_matrix *Y);
extern const fsi_device_group fsi_gpu_device_group; /* device_group.cu */
fs_result fsi_gpu_csr(fsi_gpu *gpu, const fsi_def *S, int64_t col0, const fs_sparse *out);

#endif
