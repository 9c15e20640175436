/* operand.c - the matrix A of a solver: its slices, its sketch, products with it, sums over ranks. */
#include "tasks/operand.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/math.h"
#include "core/matrix.h"
#include "core/sketch.h"

/* Rows of a slice of a dense A that is copied to a GPU at a time, in bytes. */
enum { STAGED_BYTES = 64 << 20 };

/* checks ----------------------------------------------------------------------------------------------------- */

static fs_result check_dense(fsi_operand *A, const fs_matrix *given)
{
    FSI_TRY(fs_matrix_check(A->who, "A", given));
    FSI_REQUIRE(fs_context_accepts(A->ctx, given->memory), "%s: A is in %s memory, which this context does not accept",
                A->who, fs_memory_name(given->memory));
    A->matrix = fsi_matrix_at_origin(given);
    A->d = given->rows;
    A->n = given->cols;
    A->dtype = given->dtype;
    return FS_OK;
}

static fs_result check_sparse(fsi_operand *A, const fs_sparse *given)
{
    FSI_TRY(fsi_sparse_check(A->who, "A", given));
    FSI_TRY(fsi_context_check_memory(A->who, "A", A->ctx, given->memory));
    if (given->memory == FS_MEMORY_HOST) FSI_TRY(fsi_sparse_check_arrays(A->who, given));
    A->sparse = *given;
    A->is_sparse = 1;
    A->d = given->rows;
    A->n = given->cols;
    A->dtype = given->dtype;
    return FS_OK;
}

static fs_result check_slices(fsi_operand *A, const fs_slices *given)
{
    const fs_slices start = FS_SLICES_INIT;
    A->slices = start;
    FSI_TRY(fs_struct_read(A->who, "A.slices", given, &A->slices, sizeof A->slices));
    FSI_REQUIRE(A->slices.rewind && A->slices.next, "%s: A.slices.%s is NULL", A->who,
                A->slices.rewind ? "next" : "rewind");
    if (A->slices.checkpoint) {
        FSI_TRY(
            fs_struct_read(A->who, "A.slices.checkpoint", A->slices.checkpoint, &A->checkpoint, sizeof A->checkpoint));
        FSI_REQUIRE(A->checkpoint.load && A->checkpoint.due && A->checkpoint.save,
                    "%s: a function of A.slices.checkpoint is NULL", A->who);
    }
    FSI_REQUIRE(fsi_dtype_known(A->slices.dtype), "%s: A.slices.dtype is %d, which is no type", A->who,
                (int)A->slices.dtype);
    A->d = A->slices.rows;
    A->n = A->slices.cols;
    A->dtype = A->slices.dtype;
    return FS_OK;
}

static fs_result read_ranks(fsi_operand *A, const fs_ranks *given)
{
    const fs_ranks start = FS_RANKS_INIT;
    A->ranks = start;
    if (!given) return FS_OK;
    FSI_TRY(fs_struct_read(A->who, "ranks", given, &A->ranks, sizeof A->ranks));
    FSI_REQUIRE(A->ranks.sum, "%s: ranks.sum is NULL", A->who);
    return FS_OK;
}

static fs_result check_ranks(fsi_operand *A)
{
    A->rows = A->d;
    if (!A->ranks.sum) return FS_OK;
    FSI_REQUIRE(A->ranks.row0 >= 0 && A->ranks.rows >= A->d && A->ranks.row0 <= A->ranks.rows - A->d,
                "%s: ranks.row0 = %" PRId64 " and %" PRId64 " rows here do not fit ranks.rows = %" PRId64, A->who,
                A->ranks.row0, A->d, A->ranks.rows);
    A->row0 = A->ranks.row0;
    A->rows = A->ranks.rows;
    return FS_OK;
}

static fs_result check_operand(fsi_operand *A, fs_context *ctx, const fs_operand *given)
{
    const char *who = A->who;
    fs_operand full = FS_OPERAND_INIT;
    FSI_REQUIRE(ctx && given, "%s: %s is NULL", who, ctx ? "A" : "ctx");
    FSI_TRY(fs_struct_read(who, "A", given, &full, sizeof full));
    FSI_REQUIRE(!!full.dense + !!full.sparse + !!full.slices == 1,
                "%s: %d of A.dense, A.sparse and A.slices are set, it must be one", who,
                !!full.dense + !!full.sparse + !!full.slices);
    A->ctx = ctx;
    A->dense = ctx->backend->dense;
    if (!A->dense) return fs_fail(FS_EUNSUPPORTED, "%s: this backend has no linear algebra", who);
    if (full.dense) FSI_TRY(check_dense(A, full.dense));
    else if (full.sparse) FSI_TRY(check_sparse(A, full.sparse));
    else FSI_TRY(check_slices(A, full.slices));
    FSI_REQUIRE(A->n >= 1 && A->n <= INT_MAX - 8 && A->d >= (A->ranks.sum ? 0 : 1),
                "%s: A is %" PRId64 " x %" PRId64 "; it must have at least one row and 1 to %d columns", who, A->d,
                A->n, INT_MAX - 8);
    FSI_TRY(check_ranks(A));
    FSI_REQUIRE(A->rows >= 1, "%s: A has no rows", who);
    return FS_OK;
}

fs_result fsi_operand_init(fsi_operand *A, const char *who, fs_context *ctx, const fs_operand *given,
                           const fs_ranks *ranks, const fs_progress *progress)
{
    memset(A, 0, sizeof *A);
    A->who = who;
    A->progress = progress && progress->at ? progress : NULL;
    FSI_TRY(read_ranks(A, ranks));
    const fs_result result = check_operand(A, ctx, given);
    return result == FS_OK ? FS_OK : fsi_operand_close(A, result);
}

/* resources -------------------------------------------------------------------------------------------------- */

fs_result fsi_operand_open(fsi_operand *A, int64_t n, int64_t m, int64_t p)
{
    const fsi_host host = {fs_fail, A->ctx->allocator};
    return A->dense->open(&A->handle, A->ctx->state, &host, n, m, p);
}

fs_result fsi_operand_close(fsi_operand *A, fs_result result)
{
    if (A->ranks.sum && !A->has_agreed) {
        const fs_result all = A->ranks.sum(A->ranks.user, NULL, 0, (int)result);
        if (all != FS_OK) result = all;
        A->has_agreed = 1;
    }
    fsi_operand_free(A, A->staging);
    if (A->packed) A->ctx->allocator.release(A->ctx->allocator.user, A->packed);
    A->staging = A->packed = NULL;
    if (A->handle) A->dense->close(A->handle);
    A->handle = NULL;
    return result;
}

fs_result fsi_operand_alloc(fsi_operand *A, int64_t count, double **memory)
{
    size_t bytes;
    void *at = NULL;
    *memory = NULL;
    if (count < 0 || __builtin_mul_overflow((size_t)count, sizeof **memory, &bytes))
        return fs_fail(FS_ENOMEM, "%s: %" PRId64 " numbers do not fit memory", A->who, count);
    FSI_TRY(A->dense->alloc(A->handle, bytes, &at));
    *memory = at;
    return FS_OK;
}

void fsi_operand_free(fsi_operand *A, void *memory)
{
    if (memory) A->dense->release(A->handle, memory);
}

void fsi_operand_progress(const fsi_operand *A, double share, const char *doing)
{
    if (A->progress) A->progress->at(A->progress->user, share, doing);
}

double fsi_operand_unit(const fsi_operand *A) { return A->dtype == FS_F64 ? 0x1p-53 : 0x1p-24; }

double fsi_operand_rcond(const fsi_operand *A, double rcond)
{
    return rcond > 0 ? rcond : 2 * fsi_operand_unit(A) * fmax(8, sqrt((double)A->n));
}

/* slices ----------------------------------------------------------------------------------------------------- */

typedef struct visitor {
    fsi_visit_slice visit;
    void *user;
    int64_t most;
    const fsi_sums *sums;
    int count;   /* of sums that a checkpoint keeps; 0: none */
    char *saved; /* all sums, one behind another, in host memory */
    size_t bytes;
} visitor;

/* A host slice, packed and copied to the backend's memory. */
static fs_result stage(fsi_operand *A, const fs_matrix *host, fs_matrix *there)
{
    const int64_t element = fsi_dtype_size(host->dtype);
    const size_t bytes = (size_t)(host->rows * host->cols * element);
    const fs_allocator *memory = &A->ctx->allocator;
    if (bytes > A->staging_bytes) {
        fsi_operand_free(A, A->staging);
        if (A->packed) memory->release(memory->user, A->packed);
        A->staging = NULL;
        A->staging_bytes = 0;
        A->packed = memory->alloc(memory->user, bytes);
        if (!A->packed) return fs_fail(FS_ENOMEM, "%s: no memory for %zu bytes of a slice", A->who, bytes);
        FSI_TRY(A->dense->alloc(A->handle, bytes, &A->staging));
        A->staging_bytes = bytes;
    }
    for (int64_t i = 0; i < host->rows; i++)
        for (int64_t j = 0; j < host->cols; j++)
            memcpy((char *)A->packed + (i * host->cols + j) * element,
                   (const char *)host->data + (i * host->row_stride + j * host->col_stride) * element, (size_t)element);
    DENSE(A, send, A->packed, bytes, A->staging);
    *there = fs_row_major(A->staging, host->rows, host->cols, host->dtype);
    there->memory = A->ctx->backend->memory;
    return FS_OK;
}

static fs_result visit_dense(fsi_operand *A, int64_t row0, const fs_matrix *slice, const visitor *v)
{
    const int staged = slice->memory != A->ctx->backend->memory;
    int64_t most = v->most ? v->most : slice->rows;
    if (staged) most = fsi_max(1, fsi_min(most, STAGED_BYTES / (slice->cols * fsi_dtype_size(slice->dtype))));
    for (int64_t i = 0; i < slice->rows; i += most) {
        fs_matrix part = *slice, there;
        part.data = (char *)slice->data + i * slice->row_stride * fsi_dtype_size(slice->dtype);
        part.rows = fsi_min(most, slice->rows - i);
        if (staged) FSI_TRY(stage(A, &part, &there));
        FSI_TRY(v->visit(v->user, row0 + i, staged ? &there : &part, NULL));
    }
    return FS_OK;
}

/* Sums of an earlier process become those of this read; *rows is the number of rows in them. */
static fs_result load_sums(const fsi_operand *A, const visitor *v, int64_t *rows)
{
    const char *from = v->saved;
    FSI_TRY(A->checkpoint.load(A->checkpoint.user, A->reads, v->saved, v->bytes, rows));
    FSI_REQUIRE(*rows >= 0 && *rows <= A->d,
                "%s: A.slices.checkpoint has sums of %" PRId64 " rows for read %" PRId64 ", and A has %" PRId64, A->who,
                *rows, A->reads, A->d);
    for (int i = 0; i < v->count && *rows; from += v->sums[i++].bytes)
        if (v->sums[i].in_host) memcpy(v->sums[i].data, from, v->sums[i].bytes);
        else DENSE(A, send, from, v->sums[i].bytes, v->sums[i].data);
    return FS_OK;
}

static fs_result save_sums(const fsi_operand *A, const visitor *v, int64_t rows)
{
    char *to = v->saved;
    if (!v->count || !A->checkpoint.due(A->checkpoint.user, A->reads, rows)) return FS_OK;
    for (int i = 0; i < v->count; to += v->sums[i++].bytes)
        if (v->sums[i].in_host) memcpy(to, v->sums[i].data, v->sums[i].bytes);
        else DENSE(A, fetch, v->sums[i].data, v->sums[i].bytes, to);
    return A->checkpoint.save(A->checkpoint.user, A->reads, v->saved, v->bytes, rows);
}

static fs_result visit_slices(fsi_operand *A, const visitor *v)
{
    int64_t at = 0;
    if (v->count) FSI_TRY(load_sums(A, v, &at));
    if (!at) FSI_TRY(A->slices.rewind(A->slices.user));
    while (at < A->d) {
        fs_matrix dense = {0};
        const fs_sparse *sparse = NULL;
        FSI_TRY(A->slices.next(A->slices.user, &dense, &sparse));
        const int64_t rows = sparse ? sparse->rows : dense.rows, cols = sparse ? sparse->cols : dense.cols;
        const fs_dtype dtype = sparse ? sparse->dtype : dense.dtype;
        FSI_REQUIRE(rows >= 1 && rows <= A->d - at && cols == A->n && dtype == A->dtype,
                    "%s: the slice at row %" PRId64 " is %" PRId64 " x %" PRId64 " of type %s; A is %" PRId64
                    " x %" PRId64 " of type %s",
                    A->who, at, rows, cols, fs_dtype_name(dtype), A->d, A->n, fs_dtype_name(A->dtype));
        if (sparse) {
            FSI_TRY(fsi_sparse_check(A->who, "a slice", sparse));
            FSI_TRY(fsi_context_check_memory(A->who, "a sparse slice", A->ctx, sparse->memory));
            if (sparse->memory == FS_MEMORY_HOST) FSI_TRY(fsi_sparse_check_arrays(A->who, sparse));
            FSI_TRY(v->visit(v->user, at, NULL, sparse));
        } else {
            FSI_TRY(fs_matrix_check(A->who, "a slice", &dense));
            FSI_REQUIRE(dense.memory == FS_MEMORY_HOST || dense.memory == A->ctx->backend->memory,
                        "%s: the slice at row %" PRId64 " is in %s memory, which this context does not accept", A->who,
                        at, fs_memory_name(dense.memory));
            const fs_matrix slice = fsi_matrix_at_origin(&dense);
            FSI_TRY(visit_dense(A, at, &slice, v));
        }
        at += rows;
        FSI_TRY(save_sums(A, v, at));
    }
    return FS_OK;
}

static fs_result visit_checkpointed(fsi_operand *A, visitor *v)
{
    const fs_allocator *memory = &A->ctx->allocator;
    for (int i = 0; i < v->count; i++) v->bytes += v->sums[i].bytes;
    v->saved = memory->alloc(memory->user, v->bytes);
    if (!v->saved) return fs_fail(FS_ENOMEM, "%s: no memory for %zu bytes of sums", A->who, v->bytes);
    const fs_result result = visit_slices(A, v);
    memory->release(memory->user, v->saved);
    return result;
}

fs_result fsi_operand_accumulate(fsi_operand *A, int64_t most, fsi_visit_slice visit, void *user, const fsi_sums *sums,
                                 int count)
{
    visitor v = {visit, user, most, sums, A->checkpoint.load ? count : 0, NULL, 0};
    A->reads++;
    if (v.count) return visit_checkpointed(A, &v);
    if (A->slices.next) return visit_slices(A, &v);
    if (A->is_sparse) return visit(user, 0, NULL, &A->sparse);
    return A->d ? visit_dense(A, 0, &A->matrix, &v) : FS_OK;
}

fs_result fsi_operand_visit(fsi_operand *A, int64_t most, fsi_visit_slice visit, void *user)
{
    return fsi_operand_accumulate(A, most, visit, user, NULL, 0);
}

/* the sketch ------------------------------------------------------------------------------------------------- */

typedef struct sketcher {
    const fsi_operand *A;
    const fs_sketch *S;
    fs_matrix Y; /* in the type of A's sums */
} sketcher;

static fs_result sketch_slice(void *user, int64_t row0, const fs_matrix *dense, const fs_sparse *sparse)
{
    const sketcher *s = user;
    row0 += s->A->row0;
    if (sparse) return fs_apply_sparse(s->A->ctx, s->S, row0, 1.0, sparse, 1.0, &s->Y);
    const fs_matrix slice = fsi_matrix_at_lowest(dense);
    return fs_apply(s->A->ctx, s->S, row0, 1.0, &slice, 1.0, &s->Y);
}

fs_result fsi_operand_sketch(fsi_operand *A, const fs_sketch *S, double *Y)
{
    const int64_t k = S->spec.k, n = A->n;
    const fs_dtype sum = fsi_dtype_sum(A->dtype);
    const size_t bytes = (size_t)(k * n) * (size_t)fsi_dtype_size(sum);
    void *own = NULL;
    if (sum != FS_F64) FSI_TRY(A->dense->alloc(A->handle, bytes, &own));
    sketcher s = {A, S, fs_row_major(own ? own : Y, k, n, sum)};
    s.Y.memory = A->ctx->backend->memory;
    fs_result result = A->dense->zero(A->handle, s.Y.data, bytes);
    const fsi_sums sums = {s.Y.data, bytes, 0};
    if (result == FS_OK) result = fsi_operand_accumulate(A, 0, sketch_slice, &s, &sums, 1);
    if (result == FS_OK && own) result = A->dense->widen(A->handle, &s.Y, Y, n);
    if (result == FS_OK) result = fsi_operand_sum(A, Y, k * n);
    if (result == FS_OK) result = A->dense->wait(A->handle, NULL);
    fsi_operand_free(A, own);
    return result;
}

static fs_result check_given(const fsi_operand *A, const fs_sketch *S)
{
    FSI_REQUIRE(S->spec.d == A->rows && S->spec.k >= A->n,
                "%s: the sketch is for d = %" PRId64 " and has k = %" PRId64 " rows; A has %" PRId64
                " rows, and k must be at least its %" PRId64 " columns",
                A->who, S->spec.d, S->spec.k, A->rows, A->n);
    return FS_OK;
}

fs_result fsi_operand_solver_sketch(const fsi_operand *A, const fs_sketch *given, double times, uint64_t seed,
                                    const fs_sketch **S, int *own)
{
    *S = given;
    *own = 0;
    if (given) return check_given(A, given);
    fs_spec spec = FS_SPEC_INIT;
    spec.d = A->rows;
    spec.k = (int64_t)fmin(times * (double)A->n + 16, INT_MAX - 8);
    spec.seed = seed;
    /* docs/solvers.md has the conditions of S A that this rests on. */
    spec.quality = times >= 8 ? FS_QUALITY_DEFAULT : FS_QUALITY_HIGH;
    fs_sketch *made;
    FSI_TRY(fs_sketch_create_with(&made, &spec, &A->ctx->allocator));
    *S = made;
    *own = 1;
    return FS_OK;
}

/* The adjoint of an SJLT without zero entries, times I. */
fs_result fsi_operand_signs(fsi_operand *A, int64_t n, int64_t l, uint64_t seed, double *work, double *Omega)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.family = FS_SJLT, spec.d = n, spec.k = l, spec.s = l, spec.seed = seed;
    fs_matrix I = fs_col_major(work, l, l, FS_F64), to = fs_col_major(Omega, n, l, FS_F64);
    I.memory = to.memory = A->ctx->backend->memory;
    DENSE(A, zero, work, (size_t)(l * l) * sizeof *work);
    DENSE(A, diagonal, l, work, l, NULL, 1.0);
    fs_sketch *signs;
    FSI_TRY(fs_sketch_create_with(&signs, &spec, &A->ctx->allocator));
    const fs_result result = fs_apply_adjoint(A->ctx, signs, 0, 1.0, &I, 0.0, &to);
    fs_sketch_destroy(signs);
    return result;
}

/* products --------------------------------------------------------------------------------------------------- */

typedef struct normal_pass {
    fsi_operand *A;
    const fs_matrix *B;
    const double *P;
    double *W, *squares;
    int64_t m;
} normal_pass;

static fs_result normal_slice(void *user, int64_t row0, const fs_matrix *dense, const fs_sparse *sparse)
{
    normal_pass *p = user;
    fs_matrix part, *B = NULL;
    if (p->B) {
        part = *p->B;
        part.data = (char *)part.data + row0 * part.row_stride * fsi_dtype_size(part.dtype);
        part.rows = sparse ? sparse->rows : dense->rows;
        B = &part;
    }
    if (sparse) DENSE(p->A, normal_sparse, sparse, p->m, p->P, B, p->W, p->squares);
    else DENSE(p->A, normal, dense, p->m, p->P, B, p->W, p->squares);
    return FS_OK;
}

fs_result fsi_operand_normal(fsi_operand *A, int64_t m, const double *P, const fs_matrix *B, double *W, double *squares)
{
    fs_matrix right;
    if (B) right = fsi_matrix_at_origin(B);
    normal_pass p = {A, B ? &right : NULL, P, W, squares, m};
    DENSE(A, zero, W, (size_t)(A->n * m) * sizeof *W);
    DENSE(A, zero, squares, (size_t)m * sizeof *squares);
    const fsi_sums sums[] = {{W, (size_t)(A->n * m) * sizeof *W, 0}, {squares, (size_t)m * sizeof *squares, 0}};
    FSI_TRY(fsi_operand_accumulate(A, 0, normal_slice, &p, sums, 2));
    if (squares == W + A->n * m) return fsi_operand_sum(A, W, A->n * m + m);
    FSI_TRY(fsi_operand_sum(A, W, A->n * m));
    return fsi_operand_sum(A, squares, m);
}
