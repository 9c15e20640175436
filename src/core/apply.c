/* apply.c - the public entry points of products: every argument is validated here and nowhere else. */
#include <inttypes.h>
#include <stdio.h>

#include "core/context.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/matrix.h"
#include "core/sketch.h"

fs_result fsi_context_check_memory(const char *who, const char *name, const fs_context *ctx, fs_memory memory)
{
    if (memory == ctx->backend->memory) return FS_OK;
    return fs_fail(FS_EUNSUPPORTED, "%s: %s is in %s memory, this context works on %s memory", who, name,
                   fs_memory_name(memory), fs_memory_name(ctx->backend->memory));
}
/* Dense matrices may be in host memory for every backend: CUDA streams them. */
static fs_result check_memory(const char *who, const char *name, const fs_context *ctx, fs_memory memory)
{
    return fs_context_accepts(ctx, memory) ? FS_OK : fsi_context_check_memory(who, name, ctx, memory);
}

/* The wide matrix (A or X) is rows row0 ... row0 + wide_rows - 1 of a matrix with d rows; the narrow one is Y. */
static fs_result check_shapes(const char *who, const fs_sketch *S, int64_t row0, int64_t wide_rows, int64_t wide_cols,
                              const char *wide_name, const fs_matrix *narrow)
{
    FSI_REQUIRE(row0 >= 0 && row0 <= S->spec.d - wide_rows,
                "%s: rows %" PRId64 " to %" PRId64 " + %" PRId64 " of %s are not all in S, which has d = %" PRId64, who,
                row0, row0, wide_rows, wide_name, S->spec.d);
    FSI_REQUIRE(narrow->rows == S->spec.k && narrow->cols == wide_cols,
                "%s: Y is %" PRId64 " x %" PRId64 ", it must be %" PRId64 " x %" PRId64, who, narrow->rows,
                narrow->cols, S->spec.k, wide_cols);
    return FS_OK;
}
static fs_result check_types(const char *who, const char *in_name, fs_dtype in, const char *out_name, fs_dtype out)
{
    const fs_dtype sum = fsi_dtype_sum(in);
    FSI_REQUIRE(out == in || out == sum, "%s: %s is %s, so %s must be %s%s%s, not %s", who, in_name, fs_dtype_name(in),
                out_name, fs_dtype_name(in), sum == in ? "" : " or ", sum == in ? "" : fs_dtype_name(sum),
                fs_dtype_name(out));
    return FS_OK;
}

fs_result fsi_apply_check(const char *who, const fs_context *ctx, const fs_sketch *S, int64_t row0, const fs_matrix *A,
                          const fs_matrix *Y)
{
    FSI_TRY(fs_matrix_check(who, "A", A));
    FSI_TRY(fs_matrix_check_output(who, "Y", Y));
    FSI_TRY(check_shapes(who, S, row0, A->rows, A->cols, "A", Y));
    FSI_TRY(check_types(who, "A", A->dtype, "Y", Y->dtype));
    FSI_REQUIRE(!fs_matrix_overlap(A, Y), "%s: A and Y overlap in memory", who);
    return check_memory(who, "A", ctx, A->memory);
}

fs_result fs_apply(fs_context *ctx, const fs_sketch *S, int64_t row0, double alpha, const fs_matrix *A, double beta,
                   const fs_matrix *Y)
{
    const char *who = "fs_apply";
    FSI_REQUIRE(ctx && S, "%s: %s is NULL", who, ctx ? "S" : "ctx");
    FSI_TRY(fsi_apply_check(who, ctx, S, row0, A, Y));
    FSI_TRY(check_memory(who, "Y", ctx, Y->memory));
    const fs_matrix from = fsi_matrix_at_origin(A), to = fsi_matrix_at_origin(Y);
    return ctx->backend->apply(ctx->state, &S->def, row0, alpha, &from, beta, &to);
}

static fs_result check_rows(const char *who, const fs_rows *rows, const fs_matrix *A, const fs_matrix *Y)
{
    FSI_REQUIRE(rows, "%s: rows is NULL", who);
    FSI_REQUIRE(rows->index_type == FS_INDEX32 || rows->index_type == FS_INDEX64,
                "%s: rows.index_type %d does not exist; it must be FS_INDEX32 or FS_INDEX64", who,
                (int)rows->index_type);
    FSI_REQUIRE(rows->memory == FS_MEMORY_HOST || rows->memory == FS_MEMORY_CUDA,
                "%s: rows.memory %d does not exist; it must be FS_MEMORY_HOST or FS_MEMORY_CUDA", who,
                (int)rows->memory);
    FSI_REQUIRE(rows->count >= 0, "%s: rows.count is %" PRId64 ", it cannot be negative", who, rows->count);
    FSI_REQUIRE(rows->index || rows->count == 0, "%s: rows.index is NULL", who);
    const uintptr_t bytes = rows->index_type == FS_INDEX32 ? 4 : 8;
    FSI_REQUIRE((uintptr_t)rows->index % bytes == 0, "%s: rows.index is not aligned to its elements (%d bytes)", who,
                (int)bytes);
    fs_matrix list = fs_row_major((void *)rows->index, 1, rows->count, bytes == 4 ? FS_F32 : FS_F64);
    list.memory = rows->memory;
    FSI_REQUIRE(!fs_matrix_overlap(&list, Y), "%s: rows.index and Y overlap in memory", who);
    if (rows->memory != FS_MEMORY_HOST) return FS_OK;
    for (int64_t i = 0; i < rows->count; i++) {
        const int64_t at = fsi_index_load(rows->index, rows->index_type, i);
        FSI_REQUIRE(at >= 0 && at < A->rows, "%s: rows.index[%" PRId64 "] is %" PRId64 ", but A has %" PRId64 " rows",
                    who, i, at, A->rows);
    }
    return FS_OK;
}

fs_result fs_apply_rows(fs_context *ctx, const fs_sketch *S, int64_t row0, double alpha, const fs_matrix *A,
                        const fs_rows *rows, double beta, const fs_matrix *Y)
{
    const char *who = "fs_apply_rows";
    FSI_REQUIRE(ctx && S, "%s: %s is NULL", who, ctx ? "S" : "ctx");
    FSI_TRY(fs_matrix_check(who, "A", A));
    FSI_TRY(fs_matrix_check_output(who, "Y", Y));
    FSI_TRY(check_rows(who, rows, A, Y));
    FSI_TRY(check_shapes(who, S, row0, rows->count, A->cols, "the list", Y));
    FSI_TRY(check_types(who, "A", A->dtype, "Y", Y->dtype));
    FSI_REQUIRE(!fs_matrix_overlap(A, Y), "%s: A and Y overlap in memory", who);
    if (!ctx->backend->apply_rows)
        return fs_fail(FS_EUNSUPPORTED, "%s: this backend cannot sketch gathered rows; use a CPU context", who);
    FSI_TRY(fsi_context_check_memory(who, "A", ctx, A->memory));
    FSI_TRY(fsi_context_check_memory(who, "rows", ctx, rows->memory));
    FSI_TRY(fsi_context_check_memory(who, "Y", ctx, Y->memory));
    const fs_matrix from = fsi_matrix_at_origin(A), to = fsi_matrix_at_origin(Y);
    return ctx->backend->apply_rows(ctx->state, &S->def, row0, alpha, &from, rows, beta, &to);
}

/* The factors are sound and stand side by side: *width, the rows of all of them. */
static fs_result check_factors(const char *who, const fs_context *ctx, const fs_matrix *factors, int count,
                               int64_t tokens, const fs_matrix *Y, int64_t *width)
{
    FSI_REQUIRE(factors, "%s: factors is NULL", who);
    FSI_REQUIRE(count >= 1, "%s: factor_count is %d, it must be at least 1", who, count);
    FSI_REQUIRE(tokens >= 1, "%s: tokens is %" PRId64 ", it must be at least 1", who, tokens);
    *width = 0;
    for (int f = 0; f < count; f++) {
        const fs_matrix *F = &factors[f];
        char name[32];
        snprintf(name, sizeof name, "factors[%d]", f);
        FSI_TRY(fs_matrix_check(who, name, F));
        FSI_REQUIRE(F->dtype != FS_F64, "%s: %s is f64; products are made in f32, of f32, f16 or bf16", who, name);
        FSI_REQUIRE(F->cols / tokens == Y->cols && F->cols % tokens == 0,
                    "%s: %s has %" PRId64 " columns, it must have %" PRId64 " tokens of %" PRId64 " columns of Y", who,
                    name, F->cols, tokens, Y->cols);
        FSI_REQUIRE(F->rows <= INT32_MAX - *width,
                    "%s: the factors have at least %" PRId64 " + %" PRId64 " rows, pairs can name 2^31 - 1 of them",
                    who, *width, F->rows);
        FSI_REQUIRE(!fs_matrix_overlap(F, Y), "%s: %s and Y overlap in memory", who, name);
        FSI_TRY(fsi_context_check_memory(who, name, ctx, F->memory));
        *width += F->rows;
    }
    return FS_OK;
}

static fs_result check_pairs(const char *who, const fs_pairs *pairs, int64_t width, const fs_matrix *Y)
{
    FSI_REQUIRE(pairs, "%s: pairs is NULL", who);
    FSI_REQUIRE(pairs->memory == FS_MEMORY_HOST || pairs->memory == FS_MEMORY_CUDA,
                "%s: pairs.memory %d does not exist; it must be FS_MEMORY_HOST or FS_MEMORY_CUDA", who,
                (int)pairs->memory);
    FSI_REQUIRE(pairs->count >= 0 && pairs->count <= INT64_MAX / 8,
                "%s: pairs.count is %" PRId64 ", it must be 0 to 2^60 - 1", who, pairs->count);
    FSI_REQUIRE(pairs->index || pairs->count == 0, "%s: pairs.index is NULL", who);
    FSI_REQUIRE((uintptr_t)pairs->index % 4 == 0, "%s: pairs.index is not aligned to its elements (4 bytes)", who);
    fs_matrix list = fs_row_major((void *)pairs->index, 1, 2 * pairs->count, FS_F32);
    list.memory = pairs->memory;
    FSI_REQUIRE(!fs_matrix_overlap(&list, Y), "%s: pairs.index and Y overlap in memory", who);
    if (pairs->memory != FS_MEMORY_HOST) return FS_OK;
    for (int64_t i = 0; i < 2 * pairs->count; i++)
        FSI_REQUIRE(pairs->index[i] >= -(int32_t)(i % 2) && pairs->index[i] < width,
                    "%s: pair %" PRId64 " is (%d, %d), but the factors have %" PRId64 " rows", who, i / 2,
                    (int)pairs->index[i / 2 * 2], (int)pairs->index[i / 2 * 2 + 1], width);
    return FS_OK;
}

fs_result fs_apply_products(fs_context *ctx, const fs_sketch *S, int64_t row0, double alpha, const fs_matrix *factors,
                            int factor_count, int64_t tokens, const fs_pairs *pairs, double beta, const fs_matrix *Y)
{
    const char *who = "fs_apply_products";
    fsi_products products = {factors, factor_count, tokens, 0, pairs};
    FSI_REQUIRE(ctx && S, "%s: %s is NULL", who, ctx ? "S" : "ctx");
    FSI_TRY(fs_matrix_check_output(who, "Y", Y));
    FSI_REQUIRE(Y->dtype == FS_F32, "%s: Y is %s, products are sketched into f32", who, fs_dtype_name(Y->dtype));
    if (!ctx->backend->apply_products)
        return fs_fail(FS_EUNSUPPORTED, "%s: this backend cannot sketch factored input; use a CPU context", who);
    FSI_TRY(check_factors(who, ctx, factors, factor_count, tokens, Y, &products.width));
    FSI_TRY(check_pairs(who, pairs, products.width, Y));
    FSI_TRY(check_shapes(who, S, row0, pairs->count, Y->cols, "the list", Y));
    FSI_TRY(fsi_context_check_memory(who, "pairs", ctx, pairs->memory));
    FSI_TRY(fsi_context_check_memory(who, "Y", ctx, Y->memory));
    const fs_matrix to = fsi_matrix_at_origin(Y);
    return ctx->backend->apply_products(ctx->state, &S->def, row0, alpha, &products, beta, &to);
}

fs_result fs_apply_adjoint(fs_context *ctx, const fs_sketch *S, int64_t row0, double alpha, const fs_matrix *Y,
                           double beta, const fs_matrix *X)
{
    const char *who = "fs_apply_adjoint";
    FSI_REQUIRE(ctx && S, "%s: %s is NULL", who, ctx ? "S" : "ctx");
    FSI_TRY(fs_matrix_check(who, "Y", Y));
    FSI_TRY(fs_matrix_check_output(who, "X", X));
    FSI_TRY(check_shapes(who, S, row0, X->rows, X->cols, "X", Y));
    FSI_TRY(check_types(who, "Y", Y->dtype, "X", X->dtype));
    FSI_REQUIRE(!fs_matrix_overlap(Y, X), "%s: Y and X overlap in memory", who);
    FSI_TRY(check_memory(who, "Y", ctx, Y->memory));
    FSI_TRY(check_memory(who, "X", ctx, X->memory));
    const fs_matrix from = fsi_matrix_at_origin(Y), to = fsi_matrix_at_origin(X);
    return ctx->backend->adjoint(ctx->state, &S->def, row0, alpha, &from, beta, &to);
}

fs_result fs_apply_sparse(fs_context *ctx, const fs_sketch *S, int64_t row0, double alpha, const fs_sparse *A,
                          double beta, const fs_matrix *Y)
{
    const char *who = "fs_apply_sparse";
    FSI_REQUIRE(ctx && S, "%s: %s is NULL", who, ctx ? "S" : "ctx");
    FSI_TRY(fsi_sparse_check(who, "A", A));
    if (A->memory == FS_MEMORY_HOST) FSI_TRY(fsi_sparse_check_arrays(who, A));
    FSI_TRY(fs_matrix_check_output(who, "Y", Y));
    FSI_TRY(check_shapes(who, S, row0, A->rows, A->cols, "A", Y));
    FSI_TRY(check_types(who, "A", A->dtype, "Y", Y->dtype));
    FSI_REQUIRE(!fsi_sparse_overlap(A, Y), "%s: an array of A and Y overlap in memory", who);
    FSI_TRY(fsi_context_check_memory(who, "A", ctx, A->memory));
    FSI_TRY(fsi_context_check_memory(who, "Y", ctx, Y->memory));
    const fs_matrix to = fsi_matrix_at_origin(Y);
    return ctx->backend->sparse(ctx->state, &S->def, row0, alpha, A, beta, &to);
}
