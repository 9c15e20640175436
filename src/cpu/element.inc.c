/* element.inc.c - the kernels for one element type: TYPE, its storage ELEM, the type of its sums SUM (SUM_BYTES wide).
 *
 * TO_SUM converts a stored element where it is not one of C's own types.  Which kernel an operation takes depends on
 * the family and, for BlockPerm-SJLT, on which direction of A is contiguous; that is decided here and nowhere
 * else.  What has no kernel goes to ref: slow, never wrong. */
#include "tile.inc.c"
#include "gather.inc.c"
#include "scatter.inc.c"
#include "adjoint.inc.c"
#include "sparse.inc.c"
#include "blockrow.inc.c"
#include "hadamard.inc.c"
#include "normal.inc.c"

static fs_result NAME(apply)(fs_cpu *cpu, const fs_def *S, int64_t row0, double alpha, const fs_matrix *A,
                             const fs_rows *list, double beta, const fs_matrix *Y)
{
    switch (S->family) {
    case FS_DEF_BLOCKROW: return NAME(blockrow_apply)(cpu, S, row0, alpha, A, list, beta, Y);
    case FS_DEF_SRHT: return NAME(hadamard_apply)(cpu, S, row0, alpha, A, list, beta, Y);
    case FS_DEF_GAUSS: return NAME(normal_apply)(cpu, S, row0, alpha, A, list, beta, Y);
    default:
        if (A->row_stride == 1) return NAME(scatter_apply)(cpu, S, row0, alpha, A, list, beta, Y);
        return NAME(gather_apply)(cpu, S, row0, alpha, A, list, beta, Y);
    }
}

static fs_result NAME(adjoint)(fs_cpu *cpu, const fs_def *S, int64_t row0, double alpha, const fs_matrix *Y, double beta,
                               const fs_matrix *X)
{
    switch (S->family) {
    case FS_DEF_BLOCKROW: return fs_cpu_ref.adjoint(cpu, S, row0, alpha, Y, beta, X);
    case FS_DEF_SRHT: return NAME(hadamard_adjoint)(cpu, S, row0, alpha, Y, beta, X);
    case FS_DEF_GAUSS: return NAME(normal_adjoint)(cpu, S, row0, alpha, Y, beta, X);
    default: return NAME(sjlt_adjoint)(cpu, S, row0, alpha, Y, beta, X);
    }
}

static fs_result NAME(sparse)(fs_cpu *cpu, const fs_def *S, int64_t row0, double alpha, const fs_sparse *A, double beta,
                              const fs_matrix *Y)
{
    const int sjlt = S->family == FS_DEF_BLOCKPERM || S->family == FS_DEF_SJLT;
    if (sjlt && A->format == FS_CSR) return NAME(sparse_rows)(cpu, S, row0, alpha, A, beta, Y);
    if (sjlt) return NAME(sparse_columns)(cpu, S, row0, alpha, A, beta, Y);
    if (S->family == FS_DEF_BLOCKROW && A->format == FS_CSR) return NAME(blockrow_sparse)(cpu, S, row0, alpha, A, beta, Y);
    return fs_cpu_ref.sparse(cpu, S, row0, alpha, A, beta, Y);
}

#undef TYPE
#undef ELEM
#undef SUM
#undef SUM_BYTES
#undef TO_SUM
#undef LANES
#undef VEC
#undef TILE
