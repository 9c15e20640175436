/* exact.c - see exact.h. */
#include "exact.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static int64_t index_at(const void *array, fs_index_type type, int64_t i)
{
    return type == FS_INDEX32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}

/* A sparse matrix of f64, added to packed rows. */
static void write_out(const fs_sparse *A, double *to)
{
    const int64_t lines = A->format == FS_CSR ? A->rows : A->cols;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t e = index_at(A->ptr, A->index_type, line); e < index_at(A->ptr, A->index_type, line + 1); e++) {
            const int64_t other = index_at(A->index, A->index_type, e);
            const int64_t i = A->format == FS_CSR ? line : other, j = A->format == FS_CSR ? other : line;
            to[i * A->cols + j] += ((const double *)A->value)[e];
        }
}

double *exact_zeros(const char *name, int64_t rows, int64_t cols)
{
    double *data = cli_array(rows, cols, sizeof *data);
    if (data) memset(data, 0, (size_t)(rows * cols) * sizeof *data);
    else cli_fail("no memory for %s as a dense matrix, %" PRId64 " x %" PRId64 " float64", name, rows, cols);
    return data;
}

int exact_dense(const char *name, const fs_panel *panel, fs_matrix *dense, void **copy)
{
    const fs_sparse *A = &panel->sparse;
    *dense = panel->A;
    if (!panel->is_sparse) return 0;
    double *data = exact_zeros(name, A->rows, A->cols);
    if (!data) return EXIT_FAILURE;
    write_out(A, data);
    *copy = data;
    *dense = fs_row_major(data, A->rows, A->cols, FS_F64);
    return 0;
}

int exact_possible(task *t)
{
    fs_matrix shape;
    fs_panel first = FS_PANEL_INIT;
    if (t->A.whole) return 0;
    if (!t->rhs_name)
        return cli_fail("the error of a Gram matrix takes all of A at once: --exact goes with one file, without "
                        "--memory and --resume");
    if (fs_stream_shape(t->A.stream, &shape)) return cli_library_fail();
    if (shape.col_stride != 1 || (t->A.is_sparse && t->A.batch_major))
        return cli_fail("--exact adds up over whole rows of A, and %s is stored by columns; give one file, without "
                        "--memory and --resume",
                        t->in.name);
    if (fs_stream_next(t->A.stream, &first) || fs_stream_seek(t->A.stream, 0)) return cli_library_fail();
    if (first.A.cols == t->in.n) return 0;
    return cli_fail("--exact adds up over whole rows of A, and --memory has room for %" PRId64 " of %" PRId64
                    " elements of a row; give a larger --memory",
                    first.A.cols, t->in.n);
}

int exact_gather(sketching *s, fs_context *ctx, double *to)
{
    fs_panel p = FS_PANEL_INIT;
    if (fs_stream_seek(s->stream, 0)) return cli_library_fail();
    for (;;) {
        if (fs_stream_next(s->stream, &p)) return cli_library_fail();
        if (!p.A.rows) return 0;
        double *at = to + p.row0 * s->n + p.col0;
        if (p.is_sparse) write_out(&p.sparse, at); /* whole rows */
        if (p.is_sparse) continue;
        fs_matrix part = fs_row_major(at, p.A.rows, p.A.cols, FS_F64);
        part.row_stride = s->n;
        part.size = 0;
        if (fs_add(ctx, &p.A, 1, 0.0, &part)) return cli_library_fail();
    }
}

/* Rows row0 ... of A and B: their part of the sum of squares, in *square. */
static int add_rows(task *t, const fs_matrix *A, double *b, int64_t row0, const fs_matrix *X, double *norms,
                    double *square)
{
    const fs_matrix B = fs_row_major(b + row0 * X->cols, A->rows, X->cols, FS_F64);
    if (fs_residual(t->w, A, &B, X, norms)) return cli_library_fail();
    for (int64_t j = 0; j < X->cols; j++) *square += norms[j] * norms[j];
    return 0;
}

static int add_panels(task *t, double *b, const fs_matrix *X, double *norms, double *square)
{
    const int64_t panels = fs_stream_panels(t->A.stream);
    int code = fs_stream_seek(t->A.stream, 0) ? cli_library_fail() : 0;
    for (int64_t i = 0; i < panels && !code; i++) {
        fs_panel p = FS_PANEL_INIT;
        fs_matrix A;
        void *copy = NULL;
        progress_at(&t->bar, (double)i / (double)panels, "comparing with %s", t->in.name);
        if (fs_stream_next(t->A.stream, &p)) return cli_library_fail();
        code = exact_dense(t->in.name, &p, &A, &copy);
        if (!code) code = add_rows(t, &A, b, p.row0, X, norms, square);
        free(copy);
    }
    progress_end(&t->bar);
    return code;
}

int exact_residual(task *t, const fs_matrix *X, double *residual)
{
    double *b = exact_zeros(t->rhs_name, t->B.rows, t->B.cols), *norms = cli_array(t->B.cols, 1, sizeof *norms),
           square = 0;
    int code = b ? 0 : EXIT_FAILURE;
    if (b && !norms) code = cli_fail("no memory for %" PRId64 " residuals", t->B.cols);
    if (!code) code = exact_gather(&t->rhs, t->ctx, b);
    if (!code && !t->A.whole) code = add_panels(t, b, X, norms, &square);
    else if (!code && !(code = task_dense(t))) code = add_rows(t, &t->dense, b, 0, X, norms, &square);
    *residual = sqrt(square);
    free(b);
    free(norms);
    return code;
}
