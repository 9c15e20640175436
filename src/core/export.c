/* export.c - S written out: its digest, and its columns as a CSR matrix. */
#include <inttypes.h>
#include <string.h>

#include "core/context.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/matrix.h"
#include "core/sketch.h"

static fs_result check_columns(const char *who, const fs_sketch *S, int64_t col0, int64_t cols)
{
    FSI_REQUIRE(S, "%s: S is NULL", who);
    FSI_REQUIRE(col0 >= 0 && cols >= 0 && col0 <= S->spec.d - cols,
                "%s: columns %" PRId64 " to %" PRId64 " + %" PRId64 " are not all in S, which has d = %" PRId64, who,
                col0, col0, cols, S->spec.d);
    return FS_OK;
}

fs_result fs_sketch_digest(fs_context *ctx, const fs_sketch *S, int64_t col0, int64_t cols, uint64_t *digest)
{
    FSI_REQUIRE(digest, "fs_sketch_digest: digest is NULL");
    FSI_TRY(check_columns("fs_sketch_digest", S, col0, cols));
    if (ctx && ctx->backend->digest) return ctx->backend->digest(ctx->state, &S->def, col0, cols, digest);
    *digest = fsi_def_digest(&S->def, col0, col0 + cols);
    return FS_OK;
}

/* The draws of row i of FlashBlockRow that fall into columns j0 ... j1 - 1, sorted, equal columns added.
 * column and value hold kappa s; returns how many remain. */
static int64_t blockrow_row(const fsi_blockrow *R, int64_t i, int64_t j0, int64_t j1, int64_t *column, double *value)
{
    const fsi_neighbours neighbours = fsi_blockrow_neighbours(R, fsi_split_index(&R->out, i));
    int64_t count = 0;
    for (int64_t e = 0; e < R->kappa * R->s; e++) {
        int minus;
        const int64_t h = fsi_blockrow_neighbour(&neighbours, e / R->s);
        const int64_t j = fsi_blockrow_draw(R, i, h, e, &minus);
        if (j < j0 || j >= j1) continue;
        const double weight = __builtin_sqrt(fsi_blockrow_weight2(R, h));
        int64_t at = count;
        while (at > 0 && column[at - 1] > j) at--;
        if (at > 0 && column[at - 1] == j) {
            value[at - 1] += minus ? -weight : weight;
            continue;
        }
        memmove(column + at + 1, column + at, (size_t)(count - at) * sizeof *column);
        memmove(value + at + 1, value + at, (size_t)(count - at) * sizeof *value);
        column[at] = j;
        value[at] = minus ? -weight : weight;
        count++;
    }
    return count;
}

/* Room for the draws of one row of FlashBlockRow: columns, then values.  NULL and an error message if there is none. */
static int64_t *row_room(const fs_sketch *S, double **value)
{
    const size_t draws = (size_t)(S->spec.kappa * S->spec.s);
    int64_t *column = S->allocator.alloc(S->allocator.user, draws * (sizeof *column + sizeof **value));
    if (!column) fs_fail(FS_ENOMEM, "no memory for the %zu draws of a row of S", draws);
    *value = (double *)(column + (column ? draws : 0));
    return column;
}

fs_result fs_sketch_nnz(const fs_sketch *S, int64_t col0, int64_t cols, int64_t *nnz)
{
    FSI_REQUIRE(nnz, "fs_sketch_nnz: nnz is NULL");
    FSI_TRY(check_columns("fs_sketch_nnz", S, col0, cols));
    if (S->def.family != FSI_DEF_BLOCKROW) {
        const int dense = S->def.family == FSI_DEF_SRHT || S->def.family == FSI_DEF_GAUSS;
        const int64_t per_column = dense ? S->spec.k : S->spec.kappa * S->spec.s;
        FSI_REQUIRE(!__builtin_mul_overflow(per_column, cols, nnz),
                    "fs_sketch_nnz: %" PRId64 " columns of %" PRId64 " nonzeros are more than an int64_t counts", cols,
                    per_column);
        return FS_OK;
    }
    double *value;
    int64_t *column = row_room(S, &value);
    if (!column) return FS_ENOMEM;
    *nnz = 0;
    for (int64_t i = 0; i < S->spec.k; i++)
        *nnz += blockrow_row(&S->def.u.blockrow, i, col0, col0 + cols, column, value);
    S->allocator.release(S->allocator.user, column);
    return FS_OK;
}

/* While rows are counted, ptr[i + 2] holds the count of row i; while they are filled, ptr[i + 1] is where row
 * i's next entry goes; at the end ptr[i + 1] is where row i ends. */
typedef struct csr_fill {
    const fs_sparse *out;
    int64_t col0;
} csr_fill;

static void count_entry(void *user, int64_t i, int64_t j, double value)
{
    const csr_fill *fill = user;
    (void)j, (void)value;
    const fs_sparse *out = fill->out;
    if (i + 2 <= out->rows)
        fsi_index_store(out->ptr, out->index_type, i + 2, fsi_index_load(out->ptr, out->index_type, i + 2) + 1);
}
static void write_entry(void *user, int64_t i, int64_t j, double value)
{
    const csr_fill *fill = user;
    const fs_sparse *out = fill->out;
    const int64_t at = fsi_index_load(out->ptr, out->index_type, i + 1);
    fsi_index_store(out->ptr, out->index_type, i + 1, at + 1);
    fsi_index_store(out->index, out->index_type, at, j - fill->col0);
    fsi_store(out->value, out->dtype, at, value);
}

static fs_result blockrow_to_csr(const fs_sketch *S, int64_t col0, const fs_sparse *out)
{
    double *value;
    int64_t *column = row_room(S, &value);
    if (!column) return FS_ENOMEM;
    int64_t at = 0;
    fsi_index_store(out->ptr, out->index_type, 0, 0);
    for (int64_t i = 0; i < S->spec.k; i++) {
        const int64_t count = blockrow_row(&S->def.u.blockrow, i, col0, col0 + out->cols, column, value);
        for (int64_t c = 0; c < count; c++, at++) {
            fsi_index_store(out->index, out->index_type, at, column[c] - col0);
            fsi_store(out->value, out->dtype, at, value[c]);
        }
        fsi_index_store(out->ptr, out->index_type, i + 1, at);
    }
    S->allocator.release(S->allocator.user, column);
    return FS_OK;
}

static fs_result check_csr(const char *who, const fs_context *ctx, const fs_sketch *S, int64_t col0,
                           const fs_sparse *out)
{
    FSI_REQUIRE(out, "%s: out is NULL", who);
    FSI_TRY(check_columns(who, S, col0, out->cols));
    FSI_TRY(fsi_sparse_check(who, "out", out));
    FSI_REQUIRE(out->format == FS_CSR, "%s: out.format is %d, it must be FS_CSR", who, (int)out->format);
    FSI_REQUIRE(out->rows == S->spec.k, "%s: out has %" PRId64 " rows, S has k = %" PRId64, who, out->rows, S->spec.k);
    int64_t nnz;
    FSI_TRY(fs_sketch_nnz(S, col0, out->cols, &nnz));
    FSI_REQUIRE(out->nnz == nnz, "%s: out.nnz is %" PRId64 ", these columns have %" PRId64, who, out->nnz, nnz);
    FSI_REQUIRE(out->index_type == FS_INDEX64 || (nnz <= INT32_MAX && out->cols <= INT32_MAX),
                "%s: %" PRId64 " nonzeros and %" PRId64 " columns need 64-bit indices", who, nnz, out->cols);
    if (ctx) return fsi_context_check_memory(who, "out", ctx, out->memory);
    FSI_REQUIRE(out->memory == FS_MEMORY_HOST, "%s: out is in %s memory, without a context it must be in host memory",
                who, fs_memory_name(out->memory));
    return FS_OK;
}

fs_result fs_sketch_to_csr(fs_context *ctx, const fs_sketch *S, int64_t col0, const fs_sparse *out)
{
    FSI_TRY(check_csr("fs_sketch_to_csr", ctx, S, col0, out));
    if (ctx && ctx->backend->csr) return ctx->backend->csr(ctx->state, &S->def, col0, out);
    if (S->def.family == FSI_DEF_BLOCKROW) return blockrow_to_csr(S, col0, out);

    for (int64_t i = 0; i <= out->rows; i++) fsi_index_store(out->ptr, out->index_type, i, 0);
    csr_fill fill = {out, col0};
    fsi_def_visit(&S->def, col0, col0 + out->cols, count_entry, &fill);
    for (int64_t i = 2; i <= out->rows; i++)
        fsi_index_store(out->ptr, out->index_type, i,
                        fsi_index_load(out->ptr, out->index_type, i - 1) +
                            fsi_index_load(out->ptr, out->index_type, i));
    fsi_def_visit(&S->def, col0, col0 + out->cols, write_entry, &fill);
    return FS_OK;
}
