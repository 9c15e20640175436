/* backend.h - the contract between the core and a backend: a table of functions.
 *
 * The core checks every argument before it calls; a backend trusts what it gets.  Views arrive with their offset
 * folded into data.  A backend that lives in a plugin (libflashsketch_cuda.so) exports one symbol,
 * FSI_BACKEND_ENTRY, and is refused when its abi differs from FSI_BACKEND_ABI. */
#ifndef FSI_CORE_BACKEND_H
#define FSI_CORE_BACKEND_H

#include "def/def.h"
#include "core/dense.h"
#include "flashsketch.h"

#define FSI_BACKEND_ABI 9
#define FSI_BACKEND_ENTRY "fsi_backend_entry"

/* The services of the core for a backend: its function to fail with an error message, and memory. */
typedef struct fsi_host {
    fs_result (*fail)(fs_result code, const char *format, ...);
    fs_allocator allocator;
} fsi_host;

/* Several states of one backend that compute one product, their matrices all in the backend's memory
 * (fs_multi_apply). */
typedef struct fsi_device_group {
    fs_result (*open)(void **group, const fsi_host *host, void *const *states, int count, fs_multi_sum sum);
    void (*close)(void *group);
    int (*describe)(const void *group, char *text, size_t bytes);
    fs_result (*apply)(void *group, const fsi_def *S, const int64_t *row0, double alpha, const fs_matrix *A,
                       double beta, const fs_matrix *Y);
} fsi_device_group;

/* The matrix that fs_apply_products multiplies by S.  The offsets of the factors are not folded. */
typedef struct fsi_products {
    const fs_matrix *factors;
    int factor_count;
    int64_t tokens;
    int64_t width;         /* rows of all factors */
    const fs_pairs *pairs; /* in the backend's memory; what a list in host memory holds has been checked */
} fsi_products;

typedef struct fsi_backend {
    int abi;
    fs_memory memory; /* where its own memory is; dense matrices of a CUDA backend may be in host memory too */
    fs_result (*open)(void **state, const fsi_host *host, const fs_context_options *options);
    void (*close)(void *state);
    int (*describe)(const void *state, char *text, size_t bytes);
    size_t (*scratch)(const void *state);
    fs_result (*apply)(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A, double beta,
                       const fs_matrix *Y);
    fs_result (*adjoint)(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *Y, double beta,
                         const fs_matrix *X);
    fs_result (*sparse)(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A, double beta,
                        const fs_matrix *Y);
    /* S written out by the backend's own code; NULL: the core's. */
    fs_result (*digest)(void *state, const fsi_def *S, int64_t col0, int64_t cols, uint64_t *digest);
    fs_result (*csr)(void *state, const fsi_def *S, int64_t col0, const fs_sparse *out);
    const fsi_dense *dense; /* the linear algebra of tasks in this backend's memory; NULL: it has none */
    /* fs_add, where a matrix is in the backend's own memory; the offsets of these views are not folded.  NULL: it has no
     * sums of its own. */
    fs_result (*add)(void *state, const fs_matrix *P, int count, double beta, const fs_matrix *Y);
    const fsi_device_group *device_group; /* NULL: partial results go through host memory */
    /* fs_apply_rows; the list is in the backend's memory, and what one in host memory holds has been checked.  NULL: it
     * has none. */
    fs_result (*apply_rows)(void *state, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                            const fs_rows *rows, double beta, const fs_matrix *Y);
    /* fs_apply_products; NULL: it has none. */
    fs_result (*apply_products)(void *state, const fsi_def *S, int64_t row0, double alpha, const fsi_products *products,
                                double beta, const fs_matrix *Y);
    const char *(*isa)(const void *state);              /* the instruction set; NULL: not a CPU */
    fs_result (*set_stream)(void *state, void *stream); /* fs_context_set_stream; NULL: it has no streams */
    fs_result (*synchronize)(void *state);              /* NULL: calls return when they are done */
} fsi_backend;

typedef const fsi_backend *(*fsi_backend_entry)(void);

/* The CPU backend, always there (src/cpu/table.c). */
const fsi_backend *fsi_cpu_backend(void);

/* fs_add in host memory (src/cpu/add.c); threads as fs_thread_count takes them. */
void fsi_cpu_add(int threads, const fs_matrix *P, int count, double beta, const fs_matrix *Y);

#endif
