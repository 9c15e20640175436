/* cpu.h - what the files of the CPU backend share: its state, and the table of operations of one variant.
 *
 * A variant is a complete set of operations.  "ref" is plain loops over src/def and judges the others; base, avx2
 * and avx512 are one source (kernels.inc.c) compiled for three instruction sets. */
#ifndef FS_CPU_CPU_H
#define FS_CPU_CPU_H

#include "backend.h"
#include "blas.h"
#include "dtype.h"

typedef struct fs_cpu fs_cpu;

typedef struct fs_cpu_ops {
    const char *name;
    /* list NULL: all of A.  Otherwise A->rows is the length of the list, and row i of A is where fs_row_at says. */
    fs_result (*apply)(fs_cpu *cpu, const fs_def *S, int64_t row0, double alpha, const fs_matrix *A,
                       const fs_rows *list, double beta, const fs_matrix *Y);
    fs_result (*adjoint)(fs_cpu *cpu, const fs_def *S, int64_t row0, double alpha, const fs_matrix *Y, double beta,
                         const fs_matrix *X);
    fs_result (*sparse)(fs_cpu *cpu, const fs_def *S, int64_t row0, double alpha, const fs_sparse *A, double beta,
                        const fs_matrix *Y);
    /* A row of products: x[c] = sum over t of a[t n + c] b[t n + c], c < n, t < tokens, in the order of t by fused
     * multiply-adds, begun by `x` if `more`, otherwise by the product of t = 0; b NULL: 1. */
    void (*multiply)(int64_t n, int64_t tokens, int more, const float *a, const float *b, float *x);
} fs_cpu_ops;

/* Memory that grows. */
typedef struct fs_cpu_pool {
    void *memory;
    size_t bytes;
} fs_cpu_pool;

struct fs_cpu {
    fs_host host;
    const fs_cpu_ops *ops;
    int asked;            /* for this many threads, 0: OpenMP's own number */
    int threads;          /* of the call at work, set at its beginning (fs_cpu_begin) */
    fs_cpu_pool scratch;  /* of one product */
    fs_cpu_pool panels;   /* of matrices that are made before it (products.c) */
    const fs_blas *blas;  /* of the Gaussian product at work; NULL: the plain loop */
    int has_no_blas;      /* OpenBLAS could not be loaded */
};

extern const fs_dense fs_cpu_dense; /* dense.c */
extern const fs_models fs_cpu_models; /* models.c */
extern const fs_cpu_ops fs_cpu_ref, fs_cpu_base;
#ifdef FS_CPU_X86
extern const fs_cpu_ops fs_cpu_avx2, fs_cpu_avx512;
#endif

/* Where the i-th row that is multiplied is in A, counted in rows. */
static inline int64_t fs_row_at(const fs_rows *list, int64_t i)
{
    return list ? fs_index_load(list->index, list->index_type, i) : i;
}

/* The state of a backend at the beginning of a call: its number of threads is what this thread may use now. */
fs_cpu *fs_cpu_begin(void *state);

/* Looks for OpenBLAS, for cpu->blas.  Where it is not installed, or memory for it is short, that stays NULL and is no
 * failure. */
void fs_cpu_find_blas(fs_cpu *cpu);

/* At least `bytes` of scratch, aligned to 64 bytes, contents undefined; NULL and the sentence when there is none.
 * What an earlier call got is gone. */
void *fs_cpu_scratch(fs_cpu *cpu, int64_t bytes);
/* The same of another pool of the context. */
void *fs_cpu_take(fs_cpu *cpu, fs_cpu_pool *pool, int64_t bytes);

/* fs_apply_products, by the apply of cpu's variant (products.c). */
fs_result fs_cpu_products(fs_cpu *cpu, const fs_def *S, int64_t row0, double alpha, const fs_products *products,
                          double beta, const fs_matrix *Y);

/* The weights that S's unit entries carry: S = weight[0] T_0 + weight[1] T_1, the T with entries +-1 (normals for the
 * Gaussian).  Only FlashBlockRow with uneven blocks has two. */
typedef struct fs_weights { double weight[2]; } fs_weights;
fs_weights fs_cpu_weights(const fs_def *S);

#endif
