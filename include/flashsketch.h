/* flashsketch.h - random sketches Y = S A, the same S on every machine.
 *
 * Two objects and one operation.  A sketch is the k x d random matrix S that a spec and a seed define; it takes a few
 * hundred bytes and holds no table of S.  A context is where products are computed: a backend, its threads and its
 * scratch memory.  fs_apply multiplies.  S is addressed by global row index, so a matrix that arrives in row slices
 * (files, ranks, batches) gives the same Y as the whole.
 *
 *     fs_spec spec = FS_SPEC_INIT;            spec.d = rows of A;  spec.k = rows of Y;  spec.seed = 7;
 *     fs_sketch *S;   fs_sketch_create(&S, &spec);
 *     fs_context *c;  fs_context_create(&c, NULL);
 *     fs_matrix A = fs_row_major(a, d, n, FS_F32), Y = fs_row_major(y, k, n, FS_F32);
 *     fs_apply(c, S, 0, 1.0, &A, 0.0, &Y);
 *
 * Letters, as in the paper: A is d x n, S is k x d, Y is k x n; M blocks, kappa blocks read by each block row,
 * s nonzeros of a column in each.  Every function that can fail returns an fs_result; after a failure
 * fs_error_message() returns the error message, with the numbers.  A sketch never changes and may be shared by threads;
 * a context is for one thread at a time.  The library neither aborts nor prints.  State outside these objects: the last
 * error message of each thread, and OpenBLAS, which stays loaded once a task or a Gaussian product has needed it.
 *
 * Threads are OpenMP's: at most FS_THREADS_MAX of them, and fewer where the system creates no more.
 *
 * After fork, sketches, CPU contexts, their workspaces and streams work in both processes, and products have the same
 * bits.  GNU's OpenMP leaves its threads in the parent: in the child, the thread that called fork uses one thread if it
 * used several before; threads that the child creates are not limited.  Where the program itself has used OpenMP before
 * fork, it sets options.threads = 1 in the child.  CUDA contexts do not work in a child.
 *
 * Structs.  Views, fs_matrix to fs_pairs, are frozen: they never get another member.  All other structs that a program
 * shares with the library begin with their size and may grow at the end; start them from their INIT macro.  A library
 * accepts the structs of programs that were compiled with an older header, and of a newer one as long as no field is
 * set that it does not know.  A pointer to a const view names a matrix that is read (A) or written (Y, X, G); the view
 * itself is written only where its pointer is not const.
 *
 * Further headers: flashsketch_tasks.h (least squares, Gram matrices), flashsketch_attribution.h, flashsketch_files.h,
 * flashsketch_mpi.h, and flashsketch_extend.h for libraries built on this one. */
#ifndef FLASHSKETCH_H
#define FLASHSKETCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FS_API __attribute__((visibility("default")))
#define FS_NODISCARD __attribute__((warn_unused_result))
#else
#define FS_API
#define FS_NODISCARD
#endif

#ifdef __cplusplus
#define FS_UNSET(type) type() /* 0 without a cast, so that -Wold-style-cast does not warn; for the INIT macros */
#else
#define FS_UNSET(type) (type)0
#endif

/* results --------------------------------------------------------------------------------------------------- */

/* Return codes. */
typedef enum fs_result {
    FS_OK = 0,           /* success */
    FS_EINVAL = 1,       /* an argument is invalid; outputs are unchanged */
    FS_ENOMEM = 2,       /* out of memory; outputs are unchanged */
    FS_EUNSUPPORTED = 3, /* valid, but not supported by this backend */
    FS_EBACKEND = 4,     /* the backend could not be loaded, or its device failed */
    FS_EFILE = 5         /* a file cannot be read or written, or is malformed */
} fs_result;

/* The error message of the last failure in this thread; "" if there was none.  Valid until the next failure. */
FS_API const char *fs_error_message(void);

/* The name of a result: "FS_EINVAL". */
FS_API const char *fs_result_name(fs_result result);

/* versions -------------------------------------------------------------------------------------------------- */

/* The version of this header. */
#define FS_VERSION_MAJOR 0
#define FS_VERSION_MINOR 1
#define FS_VERSION_PATCH 0

/* The same as one number that grows with the version: 0.1.0 is 100, 1.2.3 is 10203. */
#define FS_VERSION (FS_VERSION_MAJOR * 10000 + FS_VERSION_MINOR * 100 + FS_VERSION_PATCH)

/* The version of the library that is loaded: "0.1.0", and as the number that FS_VERSION is. */
FS_API const char *fs_version(void);
FS_API int fs_version_number(void);

/* The version of the definition of S.  Two libraries with the same number have the same S for every spec. */
FS_API int fs_definition_version(void);

/* sketches -------------------------------------------------------------------------------------------------- */

/* Families of sketches.  docs/definition.md defines them and explains which to choose. */
typedef enum fs_family {
    FS_BLOCKPERM = 1, /* BlockPerm-SJLT, the default */
    FS_SJLT = 2,      /* s nonzeros a column in distinct rows of all k; s = 1 is CountSketch */
    FS_BLOCKROW = 3,  /* FlashBlockRow: samples rows of A; fast, and fragile on coherent inputs */
    FS_SRHT = 4,      /* subsampled randomized Hadamard transform; k at most d rounded up to a power of two */
    FS_GAUSSIAN = 5   /* dense Gaussian */
} fs_family;

/* Which rows of A are an input block of blockperm. */
typedef enum fs_shuffle {
    FS_SHUFFLE_NONE = 1, /* input blocks are contiguous rows of A: the paper's sketch */
    FS_SHUFFLE_ROWS = 2, /* M successive rows go to M different blocks, with another random shift in each round, so that
                          * large rows side by side or at a stride fall into different blocks; the default */
    FS_SHUFFLE_GROUPS = 3 /* groups of 32 consecutive rows are assigned instead, each group spread over `interleave`
                           * blocks: for A whose columns are contiguous in memory (a batch of gradients, n x d) */
} fs_shuffle;

/* Rungs, from fast to as good as a Gaussian: each chooses kappa and s of blockperm, and s of sjlt; other families have
 * none.  Prices and errors: docs/definition.md; the errors for given k and n: fs_ose_errors. */
typedef enum fs_quality {
    FS_QUALITY_FAST = 1,    /* kappa 1, s 4 */
    FS_QUALITY_DEFAULT = 2, /* kappa 1, s 8 */
    FS_QUALITY_HIGH = 3,    /* kappa 2, s 8 */
    FS_QUALITY_GAUSSIAN = 4 /* kappa 8, s 4: nearly the errors of a dense Gaussian, on every input */
} fs_quality;

/* The names of families and shuffles: "blockperm", "sjlt", "blockrow", "srht", "gaussian"; "none", "rows", "groups".
 * "unknown" for any other value.  From a name to its value: FS_EINVAL, with a message that lists the names, for a
 * name that does not exist. */
FS_API const char *fs_family_name(fs_family family);
FS_API const char *fs_shuffle_name(fs_shuffle shuffle);
FS_API FS_NODISCARD fs_result fs_family_from_name(const char *name, fs_family *family);
FS_API FS_NODISCARD fs_result fs_shuffle_from_name(const char *name, fs_shuffle *shuffle);

/* "fast", "default", "high", "gaussian"; as fs_family_name. */
FS_API const char *fs_quality_name(fs_quality quality);
FS_API FS_NODISCARD fs_result fs_quality_from_name(const char *name, fs_quality *quality);

/* Functions to use in place of malloc and free.  alloc returns NULL where there is no memory; release frees what alloc
 * returned.  Both are called from the thread that calls the library, except that fs_multi_apply runs contexts[1],
 * contexts[2], ... in threads of its own, which call their allocators. */
typedef struct fs_allocator {
    void *(*alloc)(void *user, size_t bytes); /* aligned as malloc's is */
    void (*release)(void *user, void *memory);
    void *user; /* passed to both */
} fs_allocator;

/* The parameters of S.  Start from FS_SPEC_INIT, set d and k; a field that is 0 gets its default (docs/definition.md):
 * blockperm, M = ceil(k / 128), kappa = 1, s = 8, rows shuffled.  k is at least twice the rank of A, and four times that
 * where few rows of A dominate: below, S A may lose directions of A. */
typedef struct fs_spec {
    size_t size;        /* sizeof(fs_spec): set by FS_SPEC_INIT, so that the struct can grow */
    fs_family family;   /* 0: blockperm */
    int64_t d;          /* rows of A, columns of S; at most 2^48 */
    int64_t k;          /* rows of Y, rows of S; at most 2^31 - 1 */
    uint64_t seed;      /* all 64 bits count */
    int64_t M;          /* blocks */
    int64_t kappa;      /* input blocks of each output block, at most M */
    int64_t s;          /* nonzeros of a column in each block, at most floor(k / M) */
    fs_shuffle shuffle; /* blockperm only; 0: rows */
    int64_t interleave; /* shuffle groups only: blocks of a row group; 1, 2, 4, 8, 16 or 32, dividing M */
    fs_quality quality; /* chooses kappa and s where they are 0; 0: default */
} fs_spec;
#define FS_SPEC_INIT \
    { \
        sizeof(fs_spec), FS_UNSET(fs_family), 0, 0, 0, 0, 0, 0, FS_UNSET(fs_shuffle), 0, FS_UNSET(fs_quality) \
    }

/* A sketch: S, as a few hundred bytes. */
typedef struct fs_sketch fs_sketch;

/* Creates the sketch of a spec.  FS_EINVAL: the spec is invalid. */
FS_API FS_NODISCARD fs_result fs_sketch_create(fs_sketch **out, const fs_spec *spec);

/* The same with the caller's allocator, which is copied; NULL: malloc. */
FS_API FS_NODISCARD fs_result fs_sketch_create_with(fs_sketch **out, const fs_spec *spec,
                                                    const fs_allocator *allocator);

/* Frees a sketch; NULL is a no-op. */
FS_API void fs_sketch_destroy(fs_sketch *S);

/* Writes the full spec of S, defaults resolved, into *spec, whose size field must be set. */
FS_API FS_NODISCARD fs_result fs_sketch_spec(const fs_sketch *S, fs_spec *spec);

/* Writes one line of text that describes S, truncated to `bytes` with its final 0; returns the length of the whole
 * line, as snprintf does. */
FS_API int fs_sketch_describe(const fs_sketch *S, char *text, size_t bytes);

/* contexts -------------------------------------------------------------------------------------------------- */

/* Backends of a context. */
typedef enum fs_backend_kind {
    FS_BACKEND_AUTO = 0, /* CUDA if the plugin and a GPU are found, otherwise the CPU; see fs_context_backend */
    FS_BACKEND_CPU = 1,  /* always available */
    FS_BACKEND_CUDA = 2  /* an error if it is not available */
} fs_backend_kind;

/* "auto", "cpu", "cuda"; as fs_family_name. */
FS_API const char *fs_backend_name(fs_backend_kind backend);
FS_API FS_NODISCARD fs_result fs_backend_from_name(const char *name, fs_backend_kind *backend);

/* The precision of sums of f32 matrices on a GPU.  CPUs, and all other types, always use full precision. */
typedef enum fs_precision {
    FS_PRECISION_FULL = 0, /* at most twice the error of plain f32 summation */
    FS_PRECISION_FAST = 1  /* may drop the last 8 of an element's 24 bits: a relative error of about 1e-5 */
} fs_precision;

/* The largest number of threads of a call. */
#define FS_THREADS_MAX 1024

/* Options of a context.  Start from FS_CONTEXT_INIT. */
typedef struct fs_context_options {
    size_t size;             /* sizeof(fs_context_options): set by FS_CONTEXT_INIT */
    fs_backend_kind backend; /* 0: auto */
    int threads;             /* CPU threads of a call, at most FS_THREADS_MAX; 0: OpenMP's own number, within that
                              * limit.  With CUDA they add and copy host matrices; 0: at most 10 threads copy */
    int device;              /* CUDA device number */
    void *stream;            /* the caller's cudaStream_t; NULL: the default stream */
    fs_allocator allocator;  /* alloc NULL: malloc */
    fs_precision precision;  /* of f32 sums on a GPU */
    const char *isa;         /* the CPU variant: "base", "avx2", "avx512", or "ref", the reference implementation; NULL:
                              * the best that this processor runs.  Only read during fs_context_create */
} fs_context_options;
#define FS_CONTEXT_INIT \
    { \
        sizeof(fs_context_options), FS_BACKEND_AUTO, 0, 0, NULL, {NULL, NULL, NULL}, FS_PRECISION_FULL, NULL \
    }

/* A context: a backend with its threads and scratch memory. */
typedef struct fs_context fs_context;

/* Creates a context; options NULL means FS_CONTEXT_INIT.  The environment variable FLASHSKETCH_ISA
 * overrides options.isa, FLASHSKETCH_CUDA_PLUGIN the path of the CUDA plugin, FLASHSKETCH_TUNING names a table of
 * measured kernel choices for a GPU (`fsbench tune` writes one).
 * FS_EBACKEND: the backend is not available; the message contains the loader's.  FS_EINVAL: an option has no such
 * value. */
FS_API FS_NODISCARD fs_result fs_context_create(fs_context **out, const fs_context_options *options);

/* Frees a context and its scratch; NULL is a no-op. */
FS_API void fs_context_destroy(fs_context *ctx);

/* One line of text: the backend, the variant, the threads, and the reason for the choice.  As fs_sketch_describe. */
FS_API int fs_context_describe(const fs_context *ctx, char *text, size_t bytes);

/* The backend that a context has: FS_BACKEND_CPU or FS_BACKEND_CUDA, never auto. */
FS_API fs_backend_kind fs_context_backend(const fs_context *ctx);

/* The number of the CUDA device; -1 for a CPU context. */
FS_API int fs_context_device(const fs_context *ctx);

/* The CPU variant, "avx2"; "" for a CUDA context. */
FS_API const char *fs_context_isa(const fs_context *ctx);

/* The number of CPU threads that a call from the calling thread uses now; with CUDA, for sums of host matrices. */
FS_API int fs_context_threads(const fs_context *ctx);

/* Uses `stream`, a cudaStream_t, from the next call on; NULL is the default stream.  Work on the new stream waits for
 * what the context has queued on the old one, which must still exist.  Neither may be in capture: FS_EUNSUPPORTED.
 * A CPU context has no stream and ignores it, as it ignores options.stream. */
FS_API FS_NODISCARD fs_result fs_context_set_stream(fs_context *ctx, void *stream);

/* Waits until all work that the context has queued on its stream is done.  FS_EBACKEND: some of that work failed. */
FS_API FS_NODISCARD fs_result fs_context_synchronize(fs_context *ctx);

/* Bytes of scratch memory that the context holds now.  It grows to what the largest call needs and is reused. */
FS_API size_t fs_context_memory_bytes(const fs_context *ctx);

/* matrices -------------------------------------------------------------------------------------------------- */

/* Element types: IEEE single, double and half precision, and bfloat16. */
typedef enum fs_dtype { FS_F32 = 1, FS_F64 = 2, FS_F16 = 3, FS_BF16 = 4 } fs_dtype;

/* "f32", "f64", "f16", "bf16"; as fs_family_name.  fs_dtype_from_name also accepts NumPy's "float32", "float64",
 * "float16" and "bfloat16". */
FS_API const char *fs_dtype_name(fs_dtype dtype);
FS_API FS_NODISCARD fs_result fs_dtype_from_name(const char *name, fs_dtype *dtype);

/* Bytes of an element; 0 for a value that is not a dtype. */
FS_API size_t fs_dtype_size(fs_dtype dtype);

/* Memory spaces: the host's, and that of the context's CUDA device. */
typedef enum fs_memory { FS_MEMORY_HOST = 0, FS_MEMORY_CUDA = 1 } fs_memory;

/* "host", "cuda"; as fs_family_name. */
FS_API const char *fs_memory_name(fs_memory memory);

/* The memory space of a context, in which every call accepts matrices. fs_context_accepts returns whether fs_apply,
 * fs_apply_adjoint and fs_add accept a dense matrix in `memory`; a CUDA context accepts host memory too. */
FS_API fs_memory fs_context_memory(const fs_context *ctx);
FS_API int fs_context_accepts(const fs_context *ctx, fs_memory memory);

/* A view of a matrix: element (i, j) is data[offset + i row_stride + j col_stride]; strides count elements and may be
 * negative.  Row-major, column-major, leading dimensions and batch-major (n x d) are strides, never copies. */
typedef struct fs_matrix {
    void *data; /* start of the buffer; aligned to its element */
    int64_t rows, cols;
    int64_t row_stride, col_stride;
    int64_t offset; /* of element (0, 0) */
    int64_t size;   /* buffer length in elements for bounds checking; 0: unknown, no check */
    fs_dtype dtype;
    fs_memory memory;
} fs_matrix;

/* Views of packed buffers.  fs_batch_major: the buffer is cols x rows (samples x coordinates), each sample's
 * coordinates contiguous; the view is still the rows x cols matrix A. */
FS_API fs_matrix fs_row_major(void *data, int64_t rows, int64_t cols, fs_dtype dtype);
FS_API fs_matrix fs_col_major(void *data, int64_t rows, int64_t cols, fs_dtype dtype);
FS_API fs_matrix fs_batch_major(void *data, int64_t samples, int64_t coordinates, fs_dtype dtype);

/* Compressed rows or compressed columns. */
typedef enum fs_sparse_format { FS_CSR = 1, FS_CSC = 2 } fs_sparse_format;

/* The integers of a sparse matrix: int32_t or int64_t. */
typedef enum fs_index_type { FS_INDEX32 = 1, FS_INDEX64 = 2 } fs_index_type;

/* A sparse matrix.  CSR: ptr has rows + 1 entries, index the columns; CSC: cols + 1, index the rows.  Indices count
 * from 0, in any order; repeated ones add. */
typedef struct fs_sparse {
    fs_sparse_format format;
    fs_index_type index_type; /* of ptr and index */
    int64_t rows, cols, nnz;
    void *ptr, *index, *value; /* nnz entries in index and value */
    fs_dtype dtype;
    fs_memory memory;
} fs_sparse;

/* A list of rows of a matrix: their indices from 0, in any order; an index may be repeated. */
typedef struct fs_rows {
    int64_t count;
    fs_index_type index_type;
    const void *index; /* count of them */
    fs_memory memory;  /* where `index` is */
} fs_rows;

/* Pairs of rows of a matrix, each given by two indices from 0; where the second is -1 the pair is the first row
 * alone. */
typedef struct fs_pairs {
    int64_t count;
    const int32_t *index; /* 2 count of them: a_0, b_0, a_1, b_1, ...; factors have at most 2^31 - 1 rows in all */
    fs_memory memory;     /* where `index` is */
} fs_pairs;

/* products -------------------------------------------------------------------------------------------------- */

/* Y = beta Y + alpha S[:, row0 : row0 + A.rows] A
 *
 * row0 is the index of A's first row in the full d-row input, so a matrix that arrives in row slices is sketched slice
 * by slice with beta = 1.  beta = 0 does not read Y.  Y must not overlap A.
 *
 * Y is k x A.cols, in A's type, or f32 (f64 when A is f64).  Sums are computed in f32 (f64 for f64), whatever Y's type,
 * and rounded to it once; the bits do not depend on the number of threads.  A non-finite element of A reaches the rows of
 * Y where its column of S is not zero.
 *
 * A CUDA context accepts matrices in device memory, for which the call is queued on ctx's stream, and in host memory,
 * which it streams through the GPU; results in host memory are ready on return.
 *
 * FS_EINVAL: a shape does not fit S.  FS_ENOMEM: no scratch.  FS_EUNSUPPORTED: not in this memory space. */
FS_API FS_NODISCARD fs_result fs_apply(fs_context *ctx, const fs_sketch *S, int64_t row0, double alpha,
                                       const fs_matrix *A, double beta, const fs_matrix *Y);

/* Y = beta Y + alpha S[:, row0 : row0 + rows.count] A[rows, :]
 *
 * fs_apply to the gathered rows of A, without a copy of them: row rows.index[i] of A is multiplied by column row0 + i of
 * S.  So a mask and a sketch are one pass: A is a batch of gradients (fs_batch_major), the list is the mask, ascending for
 * the best speed, and S has as many columns as the mask has entries.  Otherwise as fs_apply.
 *
 * A CUDA context accepts A, the list and Y in device memory only and does not check the list: an out-of-range index
 * yields NaN in every output entry it would contribute to.  It reads A through the list for BlockPerm-SJLT
 * whose strata have at most 64 rows in f32, f16 and bf16, and copies the gathered rows into memory of ctx otherwise.
 *
 * FS_EINVAL: an index of a list in host memory is out of range; Y is unchanged. */
FS_API FS_NODISCARD fs_result fs_apply_rows(fs_context *ctx, const fs_sketch *S, int64_t row0, double alpha,
                                            const fs_matrix *A, const fs_rows *rows, double beta, const fs_matrix *Y);

/* Y = beta Y + alpha S[:, row0 : row0 + pairs.count] X, with X[i][j] = sum over t of F[a_i][j T + t] F[b_i][j T + t]
 *
 * fs_apply to a matrix X of row products that is never materialized (factored input).  T is `tokens`.  F is the factors, `factor_count` matrices,
 * stacked: its rows are counted over all of them.  Column j of Y has T neighbouring columns of F, so factors[f] is
 * w_f x (Y.cols T); row i of X comes from pair i, and is F[a_i] summed over the tokens where b_i is -1.
 *
 * So gradients of linear layers are sketched from their factors: that of a weight is output gradient times input, summed
 * over the tokens of a sequence.  A tensor of n x T x width is the factor fs_batch_major(data, n T, width); weight (u, v) is
 * the pair (row of output gradient u, row of input v), bias u is (row of output gradient u, -1), and a mask is a list of
 * some of them.
 * Instead of 4 bytes a parameter, 4 bytes a neuron and token of an example are read.
 *
 * Factors are f32, f16 or bf16, each in a type and layout of its own, Y is f32.  Elements are widened to f32 first;
 * X[i][j] is the rounded product of token 0, to which the others are added in the order of t by fused multiply-adds.
 * Otherwise as fs_apply: every family, the same bits for any number of threads, a non-finite element of X reaches the
 * rows of Y where its column of S is not zero.  A context makes copies of the factors in its own memory, in f32 with
 * examples side by side.
 *
 * A CUDA context accepts factors, pairs and Y in device memory only and does not check the list: an out-of-range index
 * yields NaN in every output entry it would contribute to.  For BlockPerm-SJLT whose strata have at most 64 rows the kernel
 * computes the row products itself; otherwise X is formed in memory of ctx.
 *
 * FS_EINVAL: an index of a list in host memory is out of range; Y is unchanged. */
FS_API FS_NODISCARD fs_result fs_apply_products(fs_context *ctx, const fs_sketch *S, int64_t row0, double alpha,
                                                const fs_matrix *factors, int factor_count, int64_t tokens,
                                                const fs_pairs *pairs, double beta, const fs_matrix *Y);

/* X = beta X + alpha S[:, row0 : row0 + X.rows]' Y
 *
 * The adjoint, for rows row0 ... of the d-row result.  X is X.rows x Y.cols, in Y's type, or f32 (f64 when Y is f64).
 * Otherwise as fs_apply. */
FS_API FS_NODISCARD fs_result fs_apply_adjoint(fs_context *ctx, const fs_sketch *S, int64_t row0, double alpha,
                                               const fs_matrix *Y, double beta, const fs_matrix *X);

/* fs_apply for a sparse A, in CSR or CSC.  An out-of-range index is FS_EINVAL, and Y is unchanged. */
FS_API FS_NODISCARD fs_result fs_apply_sparse(fs_context *ctx, const fs_sketch *S, int64_t row0, double alpha,
                                              const fs_sparse *A, double beta, const fs_matrix *Y);

/* Y = beta Y + P[0] + P[1] + ... + P[count - 1]
 *
 * The sum of partial results, in this order.  All have Y's shape, in any of the four types and any layout; sums are
 * computed in f64 and rounded once, to Y's type.  beta = 0 does not read Y.  No P may overlap Y.
 *
 * Each matrix is in host memory or in ctx's.  Where one is in a GPU's memory, those in host memory must have packed
 * rows or columns; where all are, the call is queued on ctx's stream. */
FS_API FS_NODISCARD fs_result fs_add(fs_context *ctx, const fs_matrix *P, int count, double beta, const fs_matrix *Y);

/* S itself -------------------------------------------------------------------------------------------------- */

/* The 64-bit digest of columns col0 ... col0 + cols - 1 of S: equal on every machine for equal specs.  The digest of a
 * range is the sum of the digests of its parts modulo 2^64.  Costs a pass over those nonzeros.
 *
 * ctx may be NULL: the digest is computed by one CPU thread.  A CUDA context computes it on the GPU, by the code that
 * its kernels use, and so checks that code; it is ready on return. */
FS_API FS_NODISCARD fs_result fs_sketch_digest(fs_context *ctx, const fs_sketch *S, int64_t col0, int64_t cols,
                                               uint64_t *digest);

/* The number of stored entries that fs_sketch_to_csr writes for columns col0 ... col0 + cols - 1. */
FS_API FS_NODISCARD fs_result fs_sketch_nnz(const fs_sketch *S, int64_t col0, int64_t cols, int64_t *nnz);

/* Writes columns col0 ... col0 + out->cols - 1 of S as a k x out->cols CSR matrix into the arrays of *out, whose
 * format, types, rows, cols and nnz (from fs_sketch_nnz) are set; column indices are sorted and distinct.  The arrays
 * are in ctx's memory space; ctx NULL: in host memory. */
FS_API FS_NODISCARD fs_result fs_sketch_to_csr(fs_context *ctx, const fs_sketch *S, int64_t col0, const fs_sparse *out);

/* several devices ------------------------------------------------------------------------------------------- */

/* How the partial results of several GPUs are summed. */
typedef enum fs_multi_sum {
    FS_MULTI_AUTO = 0, /* by NCCL where it is installed and every context has a GPU of its own, otherwise by copies */
    FS_MULTI_COPY = 1, /* copied to the first context's GPU and added there in order: always the same bits */
    FS_MULTI_NCCL = 2  /* an error if it is not available.  NCCL adds in an order of its own */
} fs_multi_sum;

/* Options of a group of contexts.  Start from FS_MULTI_INIT. */
typedef struct fs_multi_options {
    size_t size;            /* sizeof(fs_multi_options): set by FS_MULTI_INIT */
    fs_multi_sum sum;       /* 0: auto */
    fs_allocator allocator; /* of host memory; alloc NULL: malloc */
} fs_multi_options;
#define FS_MULTI_INIT \
    { \
        sizeof(fs_multi_options), FS_MULTI_AUTO, { NULL, NULL, NULL } \
    }

/* Several contexts as one: GPUs, or streams of one, or CPU contexts, in any mixture. */
typedef struct fs_multi fs_multi;

/* Creates a group of `count` different contexts, which must outlive it.  options NULL means FS_MULTI_INIT.  The
 * environment variable FLASHSKETCH_NCCL names the NCCL library to open in place of libnccl.so.2. */
FS_API FS_NODISCARD fs_result fs_multi_create(fs_multi **out, fs_context *const *contexts, int count,
                                              const fs_multi_options *options);

/* Frees it and its memory, not the contexts; NULL is a no-op. */
FS_API void fs_multi_destroy(fs_multi *multi);

/* One line of text: the contexts, and how they are summed.  As fs_sketch_describe. */
FS_API int fs_multi_describe(const fs_multi *multi, char *text, size_t bytes);

/* Y = beta Y + alpha sum over i of S[:, row0[i] : row0[i] + A[i].rows] A[i]
 *
 * The rows of A are spread over the contexts: A[i], which may have no rows, is in memory that contexts[i] accepts.  No
 * row may be in two of them.  Y is k x n, in host memory or in that of contexts[0], of the types that fs_apply allows.
 *
 * The contexts compute their partial results, k n sums in f32 (f64 for f64) each, at the same time; partial results are
 * added in the order of contexts, in f64, and rounded once, unless NCCL adds them.  Where all matrices are in GPUs'
 * memory the work is queued: on the contexts' streams, and the sum on that of contexts[0].  Otherwise every other
 * context gets a thread of its own for the duration of the call, partial results pass through host memory, and Y is
 * ready on return.
 *
 * FS_EINVAL: as fs_apply, before anything is written.  A failure of a device leaves Y undefined. */
FS_API FS_NODISCARD fs_result fs_multi_apply(fs_multi *multi, const fs_sketch *S, const int64_t *row0, double alpha,
                                             const fs_matrix *A, double beta, const fs_matrix *Y);

#ifdef __cplusplus
}
#endif

#endif
