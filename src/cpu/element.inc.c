/* element.inc.c - the kernels for one element type: TYPE, its storage ELEM, the type of its sums SUM (SUM_BYTES wide).
 *
 * TO_SUM converts a stored element where it is not one of C's own types.  Which kernel an operation takes depends on
 * the family and, for BlockPerm-SJLT, on the length of contiguous rows of A; that is decided here and nowhere else.  An
 * operation without a kernel goes to the reference implementation: slow, never wrong. */
#include "cpu/tile.inc.c"
#include "cpu/multiply.inc.c"
#include "cpu/flat.inc.c"
#include "cpu/gather.inc.c"
#include "cpu/stream.inc.c"
#include "cpu/adjoint.inc.c"
#include "cpu/sparse.inc.c"
#include "cpu/blockrow.inc.c"
#include "cpu/srht.inc.c"
#include "cpu/gaussian.inc.c"

static fs_result NAME(sjlt_apply)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                                  const fs_rows *list, double beta, const fs_matrix *Y)
{
    NAME(product) P;
    memset(&P, 0, sizeof P);
    P.B = &S->u.blockperm, P.A = A, P.Y = Y, P.list = list, P.row0 = row0;
    P.scale = (SUM)(alpha * S->scale), P.beta = (SUM)beta;
    if (A->cols == 0) return FS_OK;
    const int64_t narrow = LANES * fsi_min64(NAME(stream_vectors)(P.B), GATHER_VECTORS - 1);
    return A->col_stride == 1 && A->cols > narrow ? NAME(gather_apply)(cpu, &P) : NAME(stream_apply)(cpu, &P);
}

static fs_result NAME(apply)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                             const fs_rows *list, double beta, const fs_matrix *Y)
{
    switch (S->family) {
    case FSI_DEF_BLOCKROW: return NAME(blockrow_apply)(cpu, S, row0, alpha, A, list, beta, Y);
    case FSI_DEF_SRHT: return NAME(hadamard_apply)(cpu, S, row0, alpha, A, list, beta, Y);
    case FSI_DEF_GAUSS: return NAME(normal_apply)(cpu, S, row0, alpha, A, list, beta, Y);
    default: return NAME(sjlt_apply)(cpu, S, row0, alpha, A, list, beta, Y);
    }
}

static fs_result NAME(adjoint)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *Y,
                               double beta, const fs_matrix *X)
{
    switch (S->family) {
    case FSI_DEF_BLOCKROW: return fsi_cpu_reference.adjoint(cpu, S, row0, alpha, Y, beta, X);
    case FSI_DEF_SRHT: return NAME(hadamard_adjoint)(cpu, S, row0, alpha, Y, beta, X);
    case FSI_DEF_GAUSS: return NAME(normal_adjoint)(cpu, S, row0, alpha, Y, beta, X);
    default: return NAME(sjlt_adjoint)(cpu, S, row0, alpha, Y, beta, X);
    }
}

static fs_result NAME(sparse)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A,
                              double beta, const fs_matrix *Y)
{
    const int sjlt = S->family == FSI_DEF_BLOCKPERM || S->family == FSI_DEF_SJLT;
    if (sjlt && A->format == FS_CSR) return NAME(sparse_rows)(cpu, S, row0, alpha, A, beta, Y);
    if (sjlt) return NAME(sparse_columns)(cpu, S, row0, alpha, A, beta, Y);
    if (S->family == FSI_DEF_BLOCKROW && A->format == FS_CSR)
        return NAME(blockrow_sparse)(cpu, S, row0, alpha, A, beta, Y);
    return fsi_cpu_reference.sparse(cpu, S, row0, alpha, A, beta, Y);
}

#undef TYPE
#undef ELEM
#undef SUM
#undef SUM_BYTES
#undef TO_SUM
#undef IS_F16
#undef LANES
#undef VEC
#undef TILE
