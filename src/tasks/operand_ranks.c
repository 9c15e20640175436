/* operand_ranks.c - one matrix whose rows several callers have: sums, and what makes all callers take the same steps.
 *
 * Every decision of a solver (ranks, conditions, when to stop) must be the same for all callers; otherwise they would
 * wait for each other's sums without end.  So callers compare their requests first, and the numbers that decisions
 * depend on are those of the first caller: linear algebra on another processor, with other threads or on a GPU rounds
 * differently. */
#include <inttypes.h>
#include <string.h>

#include "core/sketch.h"
#include "tasks/operand.h"

fs_result fsi_operand_sum_host(fsi_operand *A, double *values, int64_t count)
{
    if (!A->ranks.sum) return FS_OK;
    const fs_result result = A->ranks.sum(A->ranks.user, values, count, 0);
    if (result != FS_OK) A->has_agreed = 1;
    return result;
}

fs_result fsi_operand_sum(fsi_operand *A, double *values, int64_t count)
{
    if (!A->ranks.sum) return FS_OK;
    if (A->ctx->backend->memory == FS_MEMORY_HOST) return fsi_operand_sum_host(A, values, count);
    const size_t bytes = (size_t)count * sizeof *values;
    const fs_allocator *memory = &A->ctx->allocator;
    double *host = memory->alloc(memory->user, bytes);
    if (!host) return fs_fail(FS_ENOMEM, "%s: no memory for a sum of %" PRId64 " numbers", A->who, count);
    fs_result result = A->dense->fetch(A->handle, values, bytes, host);
    if (result == FS_OK) result = fsi_operand_sum_host(A, host, count);
    if (result == FS_OK) result = A->dense->send(A->handle, host, bytes, values);
    memory->release(memory->user, host);
    return result;
}

/* one caller's numbers ----------------------------------------------------------------------------------------- */

/* The caller that has row 0: each row is one caller's alone. */
static int is_first(const fsi_operand *A) { return A->row0 == 0 && A->d > 0; }

fs_result fsi_operand_share_host(fsi_operand *A, double *values, int64_t count)
{
    if (!A->ranks.sum) return FS_OK;
    if (!is_first(A)) memset(values, 0, (size_t)count * sizeof *values);
    return fsi_operand_sum_host(A, values, count);
}

fs_result fsi_operand_share(fsi_operand *A, double *values, int64_t count)
{
    if (!A->ranks.sum) return FS_OK;
    if (!is_first(A)) DENSE(A, zero, values, (size_t)count * sizeof *values);
    return fsi_operand_sum(A, values, count);
}

/* agreement ------------------------------------------------------------------------------------------------------ */

/* FNV-1a to 53 bits, which a double holds. */
static double hash(const void *data, size_t bytes)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001B3u;
    return (double)(h >> 11);
}

static double hash_of_sketch(const fs_sketch *S)
{
    if (!S) return 0;
    const fsi_def_spec *p = &S->spec;
    const int64_t fields[] = {p->family, p->d, p->k, (int64_t)p->seed, p->M, p->kappa, p->s, p->shuffle, p->interleave};
    return hash(fields, sizeof fields);
}

fs_result fsi_operand_agree(fsi_operand *A, const fs_sketch *S, uint64_t seed, const fsi_choice *choices, int count)
{
    enum { OWN = 8, MOST = 24 };
    if (!A->ranks.sum) return FS_OK;
    fsi_choice all[MOST] = {
        {"the function (a hash of its name)", hash(A->who, strlen(A->who))},
        {"ranks.rows", (double)A->rows},
        {"columns of A", (double)A->n},
        {"the type of A", (double)A->dtype},
        {"the kind of A (0 dense, 1 sparse, 2 slices)", A->is_sparse     ? 1
                                                        : A->slices.next ? 2
                                                                         : 0},
        {"options.sketch (a hash)", hash_of_sketch(S)},
        {"the low half of options.seed", (double)(seed & UINT32_MAX)},
        {"the high half of options.seed", (double)(seed >> 32)},
    };
    double values[2 + MOST] = {is_first(A), (double)A->d};
    memcpy(all + OWN, choices, (size_t)count * sizeof *choices);
    for (int i = 0; i < OWN + count && is_first(A); i++) values[2 + i] = all[i].value;
    FSI_TRY(fsi_operand_sum_host(A, values, 2 + MOST));
    FSI_REQUIRE(values[0] == 1, "%s: row 0 of A is in %.0f callers' rows, it must be in one's", A->who, values[0]);
    for (int i = 0; i < OWN + count; i++)
        FSI_REQUIRE(all[i].value == values[2 + i],
                    "%s: %s is %.17g here and %.17g where row 0 of A is; all callers must make the same request",
                    A->who, all[i].name, all[i].value, values[2 + i]);
    FSI_REQUIRE(values[1] == (double)A->rows,
                "%s: the callers have %.0f rows together, and ranks.rows is %" PRId64 ": all rows are needed", A->who,
                values[1], A->rows);
    return FS_OK;
}
