/* cpu.h - what the files of the CPU backend share: its state, and the table of operations of one variant.
 *
 * A variant is a complete set of operations.  "ref" is the reference implementation, plain loops over src/def; base,
 * avx2 and avx512 are one source (kernels.inc.c) compiled for three instruction sets. */
#ifndef FSI_CPU_CPU_H
#define FSI_CPU_CPU_H

#include "base/dtype.h"
#include "base/math.h"
#include "base/view.h"
#include "core/backend.h"
#include "core/weights.h"
#include "cpu/blas.h"
#include "flashsketch_extend.h"

typedef struct fsi_cpu fsi_cpu;

typedef struct fsi_cpu_ops {
    const char *name;
    /* list NULL: all of A.  Otherwise A->rows is the length of the list, and row i of A is where fsi_row_at says. */
    fs_result (*apply)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                       const fs_rows *list, double beta, const fs_matrix *Y);
    fs_result (*adjoint)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *Y, double beta,
                         const fs_matrix *X);
    fs_result (*sparse)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A, double beta,
                        const fs_matrix *Y);
    /* A row of products: x[c] = sum over t of a[t n + c] b[t n + c], c < n, t < tokens, in the order of t by fused
     * multiply-adds, begun by `x` if `more`, otherwise by the product of t = 0; b NULL: 1. */
    void (*multiply)(int64_t n, int64_t tokens, int more, const float *a, const float *b, float *x);
    /* Of `count` rows of n contiguous elements, FS_F32 or FS_F64, `pitch` elements apart, with sums in f64:
     * u[i] = sum over j of a(i, j) p[j]; w[j] += sum over i of a(i, j) u[i]. */
    void (*row_dots)(int64_t count, int64_t n, const void *a, fs_dtype dtype, int64_t pitch, const double *p,
                     double *u);
    void (*row_sums)(int64_t count, int64_t n, const void *a, fs_dtype dtype, int64_t pitch, const double *u,
                     double *w);
    /* The same of f64 rows with numbers h + l, whose sums have twice the precision. */
    void (*row_dots_twice)(int64_t count, int64_t n, const double *a, int64_t pitch, const double *xh, const double *xl,
                           double *uh, double *ul);
    void (*row_sums_twice)(int64_t count, int64_t n, const double *a, int64_t pitch, const double *uh, const double *ul,
                           double *wh, double *wl);
} fsi_cpu_ops;

/* Memory that grows. */
typedef struct fsi_cpu_pool {
    void *memory;
    size_t bytes;
} fsi_cpu_pool;

struct fsi_cpu {
    fsi_host host;
    const fsi_cpu_ops *ops;
    int asked;            /* for this many threads, 0: OpenMP's own number */
    int threads;          /* of the call at work, set at its beginning (fsi_cpu_begin) */
    fsi_cpu_pool scratch; /* of one product */
    fsi_cpu_pool panels;  /* of matrices that are computed before it (products.c) */
    const fsi_blas *blas; /* of the Gaussian product at work; NULL: the plain loop */
    int has_no_blas;      /* OpenBLAS could not be loaded */
};

extern const fsi_dense fsi_cpu_dense; /* dense.c */
extern const fsi_cpu_ops fsi_cpu_reference, fsi_cpu_base;
#ifdef FS_CPU_X86
extern const fsi_cpu_ops fsi_cpu_avx2, fsi_cpu_avx512;
#endif

/* Where the i-th row that is multiplied is in A, counted in rows. */
static inline int64_t fsi_row_at(const fs_rows *list, int64_t i)
{
    return list ? fsi_index_load(list->index, list->index_type, i) : i;
}

/* The state of a backend at the beginning of a call; sets its number of threads to what this thread may use now. */
fsi_cpu *fsi_cpu_begin(void *state);
/* The same of a product of S with a matrix of so many rows and columns: one thread where waking others takes longer. */
fsi_cpu *fsi_cpu_begin_product(void *state, const fsi_def *S, int64_t rows, int64_t cols);

/* Opens OpenBLAS for cpu->blas.  Where it is not installed, or memory for it is short, cpu->blas stays NULL, which is
 * not an error. */
void fsi_cpu_find_blas(fsi_cpu *cpu);

/* At least `bytes` of scratch, aligned to 64 bytes, contents undefined; NULL and an error message when there is none.
 * Memory from an earlier call becomes invalid. */
void *fsi_cpu_scratch(fsi_cpu *cpu, int64_t bytes);
/* The same of another pool of the context. */
void *fsi_cpu_take(fsi_cpu *cpu, fsi_cpu_pool *pool, int64_t bytes);

/* fs_apply_products, by the apply of cpu's variant (products.c). */
fs_result fsi_cpu_products(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fsi_products *products,
                           double beta, const fs_matrix *Y);

/* Strips that the rows of a product with A are cut into, each with `sums` doubles of its own: the number depends on
 * these alone. */
int64_t fsi_cpu_strips(int64_t rows, int64_t sums);

/* W += A'(A P - B) of an f64 A with sums of twice the precision (normal_twice.c); otherwise as fsi_cpu_normal. */
fs_result fsi_cpu_normal_twice(fsi_cpu *cpu, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B,
                               double *W, double *squares);

/* The products of dense.h with rows of A (normal.c). */
fs_result fsi_cpu_product(fsi_cpu *cpu, const fs_matrix *A, int64_t m, const double *P, double *U);
fs_result fsi_cpu_normal(fsi_cpu *cpu, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B, double *W,
                         double *squares);
fs_result fsi_cpu_product_sparse(fsi_cpu *cpu, const fs_sparse *A, int64_t m, const double *P, double *U);
fs_result fsi_cpu_normal_sparse(fsi_cpu *cpu, const fs_sparse *A, int64_t m, const double *P, const fs_matrix *B,
                                double *W, double *squares);

#endif
