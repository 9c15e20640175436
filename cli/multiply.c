/* multiply.c - see multiply.h. */
#include "multiply.h"

#include "cli.h"

/* How many rows (of `bytes` bytes each) a panel has.  64 MiB, so that the bar moves and calls are few; at least 32 k
 * rows, because every panel reads and writes Y's k rows again, but only 2 k of the Gaussian's, whose rows cost k
 * products each. */
static int64_t panel_rows(const fs_spec *spec, int64_t bytes)
{
    const int64_t enough = ((int64_t)64 << 20) / bytes + 1, least = (spec->family == FS_GAUSSIAN ? 2 : 32) * spec->k;
    return enough > least ? enough : least;
}

/* And columns: at least 512, because every panel makes S again. */
static int64_t panel_cols(int64_t bytes)
{
    const int64_t enough = ((int64_t)64 << 20) / bytes + 1;
    return enough > 512 ? enough : 512;
}

int multiply(fs_context *ctx, const fs_sketch *S, const fs_spec *spec, const input *in, int64_t row0,
             const fs_matrix *Y, progress *bar)
{
    fs_matrix to = *Y;
    if (in->is_sparse) return fs_apply_sparse(ctx, S, row0, 1.0, &in->sparse, 0.0, &to) ? cli_library_fail() : 0;
    const fs_matrix *A = &in->A;
    const int64_t element = A->dtype == FS_F64 ? 8 : A->dtype == FS_F32 ? 4 : 2;
    const int by_rows = A->col_stride == 1;
    const int64_t all = by_rows ? A->rows : A->cols;
    const int64_t step = by_rows ? panel_rows(spec, A->cols * element) : panel_cols(A->rows * element);
    for (int64_t at = 0; at < all; at += step) {
        const int64_t count = all - at < step ? all - at : step;
        fs_matrix part = *A;
        to = *Y;
        *(by_rows ? &part.rows : &part.cols) = count;
        part.offset += at * (by_rows ? A->row_stride : A->col_stride);
        if (!by_rows) to.cols = count, to.offset += at * to.col_stride;
        progress_at(bar, (double)at / (double)all, "sketching %s", in->name);
        if (fs_apply(ctx, S, row0 + (by_rows ? at : 0), 1.0, &part, by_rows && at ? 1.0 : 0.0, &to))
            return cli_library_fail();
    }
    return 0;
}

int multiply_context(const input *in, const fs_context_options *where, fs_context **ctx)
{
    fs_context_options options = *where;
    if (in->is_sparse && options.backend == FS_BACKEND_CUDA)
        return cli_fail("%s is sparse, and a sparse matrix in a file is sketched by the CPU only; use --device cpu or "
                        "auto",
                        in->name);
    if (in->is_sparse) options.backend = FS_BACKEND_CPU;
    return fs_context_create(ctx, &options) ? cli_library_fail() : 0;
}
