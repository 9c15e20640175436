/* add.c - fs_add: sums of partial results. */
#include <inttypes.h>

#include "core/context.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/matrix.h"

static fs_result check_part(const fs_context *ctx, const fs_matrix *P, int i, const fs_matrix *Y)
{
    const char *who = "fs_add";
    FSI_TRY(fs_matrix_check(who, "a matrix of P", P));
    FSI_REQUIRE(P->rows == Y->rows && P->cols == Y->cols,
                "%s: P[%d] is %" PRId64 " x %" PRId64 ", and Y is %" PRId64 " x %" PRId64, who, i, P->rows, P->cols,
                Y->rows, Y->cols);
    FSI_REQUIRE(!fs_matrix_overlap(P, Y), "%s: P[%d] and Y overlap in memory", who, i);
    return P->memory == FS_MEMORY_HOST ? FS_OK : fsi_context_check_memory(who, "a matrix of P", ctx, P->memory);
}

fs_result fs_add(fs_context *ctx, const fs_matrix *P, int count, double beta, const fs_matrix *Y)
{
    const char *who = "fs_add";
    FSI_REQUIRE(ctx, "%s: ctx is NULL", who);
    FSI_REQUIRE(count >= 0, "%s: count is %d, it must be at least 0", who, count);
    FSI_REQUIRE(P || count == 0, "%s: P is NULL and count is %d", who, count);
    FSI_TRY(fs_matrix_check_output(who, "Y", Y));
    int on_host = Y->memory == FS_MEMORY_HOST;
    if (!on_host) FSI_TRY(fsi_context_check_memory(who, "Y", ctx, Y->memory));
    for (int i = 0; i < count; i++) {
        FSI_TRY(check_part(ctx, &P[i], i, Y));
        on_host = on_host && P[i].memory == FS_MEMORY_HOST;
    }
    if (Y->rows == 0 || Y->cols == 0) return FS_OK;
    if (on_host) {
        fsi_cpu_add(ctx->threads, P, count, beta, Y);
        return FS_OK;
    }
    if (!ctx->backend->add) return fs_fail(FS_EUNSUPPORTED, "%s: this backend sums in host memory only", who);
    return ctx->backend->add(ctx->state, P, count, beta, Y);
}
