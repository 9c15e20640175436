/* gpu.h - what the files of the CUDA backend share on the host side: its state, memory, launches.
 *
 * One context is one GPU, one stream and one scratch buffer.  Every call is queued on the stream and returns; nothing
 * synchronises, and nothing allocates once the scratch has grown to what the largest call needs, so a call that has run
 * once can be captured into a CUDA graph.  Buffers that scratch has outgrown are kept until the context closes, because
 * kernels in flight and captured graphs may still use them. */
#ifndef FS_CUDA_GPU_H
#define FS_CUDA_GPU_H

#include <cuda_runtime.h>

#include "backend.h"
#include "choose.h"
#include "dtype.h"

/* Device memory that grows; the last buffer is the one in use. */
typedef struct fs_gpu_pool {
    void *memory[32];
    size_t bytes[32];
    int count;
} fs_gpu_pool;

typedef struct fs_gpu {
    fs_host host;
    int device;
    cudaStream_t stream;
    int capability;           /* compute capability: 90 for 9.0 */
    fs_gpu_traits traits;     /* what choose.c asks about this GPU */
    fs_precision precision;
    int threads;              /* host threads that fill pinned buffers */
    fs_tuning *tuning;        /* measured choices ($FLASHSKETCH_TUNING), NULL: choose.c's own */
    char name[256];
    fs_gpu_pool scratch;      /* of one product */
    fs_gpu_pool copies;       /* rows that a list names, where they are copied before the product (rows.cu); factors */
    void *encode_map;         /* the driver's function, found by the first call that needs it */
    struct fs_staging *staging;  /* pinned buffers, made by the first call with a host matrix */
} fs_gpu;

/* `bytes` of device scratch, 256-byte aligned, contents undefined, valid for work queued by this call; what earlier
 * requests of the same call got is gone when it grows, so ask once for everything.  FS_ENOMEM with the numbers; while
 * the stream is being captured, growing is FS_EUNSUPPORTED. */
fs_result fs_gpu_scratch(fs_gpu *gpu, int64_t bytes, void **memory);
/* The same of another pool of the context. */
fs_result fs_gpu_take(fs_gpu *gpu, fs_gpu_pool *pool, int64_t bytes, void **memory);

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

/* FS_OK, or FS_EBACKEND with what was being done and CUDA's sentence. */
fs_result fs_gpu_check(fs_gpu *gpu, cudaError_t error, const char *what);

/* After a launch: fs_gpu_check of the last error. */
#define FS_LAUNCHED(gpu, what) fs_gpu_check((gpu), cudaGetLastError(), (what))

#define FS_TRY_GPU(call) do { const fs_result tried_ = (call); if (tried_ != FS_OK) return tried_; } while (0)

FS_DEF int64_t fs_div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* The operations, by family.  All have the contract of backend.h; matrices are in device memory. */
#define FS_GPU_OP(name, family) \
    fs_result name(fs_gpu *gpu, const family *S, double scale, int64_t row0, double alpha, const fs_matrix *from, \
                   double beta, const fs_matrix *to)

FS_GPU_OP(fs_gpu_blockperm_apply, fs_blockperm);
FS_GPU_OP(fs_gpu_blockperm_adjoint, fs_blockperm);
FS_GPU_OP(fs_gpu_sorted_apply, fs_blockperm);   /* blocks too tall for a tile: SJLT */
/* Of listed rows; *done is 0, and nothing has been done, where this sketch is none for direct.cu. */
fs_result fs_gpu_blockperm_listed(fs_gpu *gpu, const fs_blockperm *S, double scale, int64_t row0, double alpha,
                                  const fs_matrix *from, const fs_rows *rows, double beta, const fs_matrix *to,
                                  int *done);
/* Whether this sketch is one for direct.cu to multiply products of rows by, `count` of them; and the product, if so. */
int fs_gpu_blockperm_multiplies(const fs_gpu *gpu, const fs_blockperm *S, int64_t row0, int64_t count, int64_t n);
fs_result fs_gpu_blockperm_products(fs_gpu *gpu, const fs_blockperm *S, double scale, int64_t row0, double alpha,
                                    const struct fs_factors *factors, int64_t count, double beta, const fs_matrix *to);
FS_GPU_OP(fs_gpu_blockrow_apply, fs_blockrow);
FS_GPU_OP(fs_gpu_blockrow_adjoint, fs_blockrow);
FS_GPU_OP(fs_gpu_hadamard_apply, fs_srht);
FS_GPU_OP(fs_gpu_hadamard_adjoint, fs_srht);
FS_GPU_OP(fs_gpu_sampled_apply, fs_srht);       /* few rows of Y */
int fs_gpu_sampled_suits(const fs_srht *S, fs_dtype dtype);
FS_GPU_OP(fs_gpu_normal_apply, fs_gauss);
FS_GPU_OP(fs_gpu_normal_adjoint, fs_gauss);

/* S or its transpose times `from`, by the family of S; both matrices in device memory. */
fs_result fs_gpu_product(fs_gpu *gpu, const fs_def *S, int adjoint, int64_t row0, double alpha, const fs_matrix *from,
                         double beta, const fs_matrix *to);

/* S times the rows of `from` that are listed; the list is in device memory too. */
fs_result fs_gpu_rows_apply(fs_gpu *gpu, const fs_def *S, int64_t row0, double alpha, const fs_matrix *from,
                            const fs_rows *rows, double beta, const fs_matrix *to);
/* S times products of rows; factors and pairs are in device memory. */
fs_result fs_gpu_products_apply(fs_gpu *gpu, const fs_def *S, int64_t row0, double alpha, const fs_products *products,
                                double beta, const fs_matrix *to);
fs_result fs_gpu_sparse_apply(fs_gpu *gpu, const fs_def *S, int64_t row0, double alpha, const fs_sparse *A, double beta,
                              const fs_matrix *Y);
fs_result fs_gpu_digest(fs_gpu *gpu, const fs_def *S, int64_t col0, int64_t cols, uint64_t *digest);
extern const fs_dense fs_gpu_dense; /* dense.cu */
extern const fs_models fs_gpu_models; /* models.cu */
/* fs_add where a matrix is in device memory; those in host memory have packed rows or columns. */
fs_result fs_gpu_add(fs_gpu *gpu, const fs_matrix *P, int count, double beta, const fs_matrix *Y);
extern const fs_team fs_gpu_team; /* team.cu */
fs_result fs_gpu_csr(fs_gpu *gpu, const fs_def *S, int64_t col0, const fs_sparse *out);

#endif
