/* flashsketch.c - what R calls by .Call.  An operand is a list: dim, values, row indices and column starts, the last two
 * NULL for a dense matrix.  R's error() does not return, so everything of the library is freed before it. */
#include <R.h>
#include <R_ext/Rdynload.h>
#include <Rinternals.h>
#include <flashsketch_solvers.h>
#include <stdint.h>

typedef struct source {
    fs_operand operand;
    fs_matrix dense;
    fs_sparse sparse;
    int64_t rows, cols;
} source;

static void read_operand(source *from, SEXP list)
{
    const int *dim = INTEGER(VECTOR_ELT(list, 0));
    SEXP values = VECTOR_ELT(list, 1), index = VECTOR_ELT(list, 2), starts = VECTOR_ELT(list, 3);
    from->operand = (fs_operand)FS_OPERAND_INIT;
    from->rows = dim[0], from->cols = dim[1];
    if (isNull(index)) {
        from->dense = fs_col_major(REAL(values), dim[0], dim[1], FS_F64);
        from->operand.dense = &from->dense;
        return;
    }
    from->sparse = (fs_sparse){FS_CSC,          FS_INDEX32,     dim[0],       dim[1], XLENGTH(values),
                               INTEGER(starts), INTEGER(index), REAL(values), FS_F64, FS_MEMORY_HOST};
    from->operand.sparse = &from->sparse;
}

static fs_context *context(void)
{
    fs_context_options options = FS_CONTEXT_INIT;
    options.backend = FS_BACKEND_CPU; /* a sparse matrix is in the context's memory */
    fs_context *ctx = NULL;
    if (fs_context_create(&ctx, &options)) error("%s", fs_error_message());
    return ctx;
}

static SEXP sketch(SEXP A, SEXP k, SEXP seed)
{
    source from;
    read_operand(&from, A);
    fs_spec spec = FS_SPEC_INIT;
    spec.d = from.rows, spec.k = (int64_t)asReal(k), spec.seed = (uint64_t)asReal(seed);
    SEXP result = PROTECT(allocMatrix(REALSXP, (int)spec.k, (int)from.cols));
    fs_matrix Y = fs_col_major(REAL(result), spec.k, from.cols, FS_F64);
    fs_context *ctx = context();
    fs_sketch *S = NULL;
    fs_result failed = fs_sketch_create(&S, &spec);
    if (!failed)
        failed = from.operand.dense ? fs_apply(ctx, S, 0, 1.0, &from.dense, 0.0, &Y)
                                    : fs_apply_sparse(ctx, S, 0, 1.0, &from.sparse, 0.0, &Y);
    fs_sketch_destroy(S);
    fs_context_destroy(ctx);
    if (failed) error("%s", fs_error_message());
    UNPROTECT(1);
    return result;
}

static SEXP leverage(SEXP A, SEXP exact)
{
    source from;
    read_operand(&from, A);
    fs_leverage_options options = FS_LEVERAGE_INIT;
    options.exact = asLogical(exact) == TRUE;
    SEXP scores = PROTECT(allocVector(REALSXP, from.rows));
    fs_context *ctx = context();
    const fs_result failed = fs_leverage(ctx, &from.operand, &options, REAL(scores), NULL);
    fs_context_destroy(ctx);
    if (failed) error("%s", fs_error_message());
    UNPROTECT(1);
    return scores;
}

void R_init_flashsketch(DllInfo *library)
{
    static const R_CallMethodDef calls[] = {
        {"C_fs_sketch", (DL_FUNC)&sketch, 3}, {"C_fs_leverage", (DL_FUNC)&leverage, 2}, {NULL, NULL, 0}};
    R_registerRoutines(library, NULL, calls, NULL, NULL);
    R_useDynamicSymbols(library, FALSE);
}
