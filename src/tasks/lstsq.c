/* lstsq.c - fs_lstsq: arguments, memory, the choice of the method, the report. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/dtype.h"
#include "core/matrix.h"
#include "core/sketch.h"
#include "tasks/lstsq.h"

enum { DEFAULT_ITERATIONS = 200 };

double fsi_lstsq_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* arguments -------------------------------------------------------------------------------------------------- */

static fs_result check_options(const fs_lstsq_options *o)
{
    FSI_REQUIRE(o->lambda >= 0 && isfinite(o->lambda), "fs_lstsq: lambda = %g, it must be at least 0 and finite",
                o->lambda);
    FSI_REQUIRE(o->rcond >= 0 && o->rcond < 1, "fs_lstsq: rcond = %g, it must be at least 0 and below 1", o->rcond);
    FSI_REQUIRE(o->tolerance >= 0 && o->tolerance < 1, "fs_lstsq: tolerance = %g, it must be at least 0 and below 1",
                o->tolerance);
    FSI_REQUIRE(o->max_iterations >= 0, "fs_lstsq: max_iterations = %" PRId64 ", it must be at least 0",
                o->max_iterations);
    FSI_REQUIRE(o->measure_error == 0 || o->measure_error == 1, "fs_lstsq: measure_error is %d, it must be 0 or 1",
                o->measure_error);
    FSI_REQUIRE(o->method >= FS_LSTSQ_AUTO && o->method <= FS_LSTSQ_DIRECT,
                "fs_lstsq: method is %d, it must be 0 to %d", (int)o->method, (int)FS_LSTSQ_DIRECT);
    return FS_OK;
}

static fs_result check_side(const fsi_lstsq *l, const char *name, const fs_matrix *M, int64_t rows, int64_t cols)
{
    FSI_REQUIRE(M->rows == rows && M->cols == cols,
                "fs_lstsq: %s is %" PRId64 " x %" PRId64 ", it must be %" PRId64 " x %" PRId64, name, M->rows, M->cols,
                rows, cols);
    FSI_REQUIRE(M->memory == FS_MEMORY_HOST || M->memory == l->A.ctx->backend->memory,
                "fs_lstsq: %s is in %s memory, which this context does not accept", name, fs_memory_name(M->memory));
    return FS_OK;
}

static fs_result lstsq_check(fsi_lstsq *l, const fs_matrix *B, const fs_matrix *X, const fs_lstsq_report *report)
{
    FSI_TRY(check_options(&l->o));
    FSI_TRY(fs_matrix_check("fs_lstsq", "B", B));
    FSI_TRY(fs_matrix_check_output("fs_lstsq", "X", X));
    if (report) FSI_TRY(fs_struct_check("fs_lstsq", "report", report, sizeof *report));
    FSI_TRY(check_side(l, "B", B, l->A.d, B->cols));
    FSI_REQUIRE(B->cols >= 1, "fs_lstsq: B has no columns");
    FSI_TRY(check_side(l, "X", X, l->A.n, B->cols));
    FSI_REQUIRE(!fs_matrix_overlap(B, X), "fs_lstsq: X overlaps B");
    FSI_REQUIRE(!l->A.matrix.data || !fs_matrix_overlap(&l->A.matrix, X), "fs_lstsq: X overlaps A");
    l->n = l->A.n;
    l->m = B->cols;
    /* An f32 A is solved a little beyond its own rounding, since x is not computed in f32 but rounded to it once. */
    if (l->o.tolerance == 0) l->o.tolerance = l->A.dtype == FS_F64 ? 0x1p-52 : 0x1p-27;
    l->o.rcond = fsi_operand_rcond(&l->A, l->o.rcond);
    if (!l->o.max_iterations) l->o.max_iterations = DEFAULT_ITERATIONS;
    const fsi_choice choices[] = {
        {"right-hand sides", (double)l->m},
        {"options.lambda", l->o.lambda},
        {"options.rcond", l->o.rcond},
        {"options.tolerance", l->o.tolerance},
        {"options.max_iterations", (double)l->o.max_iterations},
        {"options.method", (double)l->o.method},
        {"options.measure_error", (double)l->o.measure_error},
    };
    return fsi_operand_agree(&l->A, l->o.sketch, l->o.seed, choices, sizeof choices / sizeof choices[0]);
}

/* memory ----------------------------------------------------------------------------------------------------- */

/* B where products with A take it: the caller's own, or a packed copy in the backend's memory, of the same type and with
 * the same neighbours, so that kernels do the same with it. */
static fs_result place_right_hand_sides(fsi_lstsq *l, const fs_matrix *B)
{
    l->B = fsi_matrix_at_origin(B);
    if (B->memory == l->A.ctx->backend->memory) return FS_OK;
    const size_t each = (size_t)fs_dtype_size(B->dtype), bytes = (size_t)(B->rows * B->cols) * each;
    const fs_allocator *memory = &l->A.ctx->allocator;
    const int down = llabs(B->row_stride) < llabs(B->col_stride);
    const int64_t across = down ? B->rows : 1, along = down ? 1 : B->cols;
    char *packed = memory->alloc(memory->user, bytes ? bytes : 1);
    if (!packed) return fs_fail(FS_ENOMEM, "fs_lstsq: no memory for %zu bytes of B", bytes);
    for (int64_t i = 0; i < B->rows; i++)
        for (int64_t c = 0; c < B->cols; c++)
            memcpy(packed + (size_t)(i * along + c * across) * each,
                   (const char *)l->B.data + (i * l->B.row_stride + c * l->B.col_stride) * (int64_t)each, each);
    fs_result result = l->A.dense->alloc(l->A.handle, bytes ? bytes : 1, &l->B_copy);
    if (result == FS_OK) result = l->A.dense->send(l->A.handle, packed, bytes, l->B_copy);
    memory->release(memory->user, packed);
    l->B = down ? fs_col_major(l->B_copy, B->rows, B->cols, B->dtype)
                : fs_row_major(l->B_copy, B->rows, B->cols, B->dtype);
    l->B.memory = l->A.ctx->backend->memory;
    return result;
}

static fs_result take_memory(fsi_lstsq *l)
{
    const int64_t n = l->n, m = l->m;
    FSI_REQUIRE(n <= INT32_MAX / 8 && m <= INT32_MAX / n / 8,
                "fs_lstsq: %" PRId64 " columns and %" PRId64 " right-hand sides are too many", n, m);
    FSI_TRY(fsi_operand_open(&l->A, n + m, n, l->A.rows < n ? l->A.rows : n)); /* qr of [Y C] has n + m columns */
    FSI_TRY(fsi_operand_alloc(&l->A, n * n, &l->L));
    FSI_TRY(fsi_operand_alloc(&l->A, n * m, &l->P));
    FSI_TRY(fsi_operand_alloc(&l->A, n * m, &l->S));
    FSI_TRY(fsi_operand_alloc(&l->A, n * m + m, &l->W));
    l->squares = l->W + n * m;
    const int64_t vectors = 8 * n * m + 5 * m + 2 * n;
    const fs_allocator *memory = &l->A.ctx->allocator;
    l->host = memory->alloc(memory->user, (size_t)vectors * sizeof *l->host);
    if (!l->host) return fs_fail(FS_ENOMEM, "fs_lstsq: no memory for %" PRId64 " numbers in host memory", vectors);
    l->values = l->host;
    l->x = l->values + n;
    l->g = l->x + n * m;
    l->z = l->g + n * m;
    l->s = l->z + n * m;
    l->p = l->s + n * m;
    l->q = l->p + n * m;
    l->residuals = l->q + n * m;
    l->b_norms = l->residuals + m;
    l->errors = l->b_norms + m;
    l->scratch = l->errors + m;
    return FS_OK;
}

static void release_memory(fsi_lstsq *l)
{
    double *const all[] = {l->L, l->N, l->inverse, l->normal, l->P, l->S, l->W};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) fsi_operand_free(&l->A, all[i]);
    fsi_operand_free(&l->A, l->B_copy);
    if (l->host) l->A.ctx->allocator.release(l->A.ctx->allocator.user, l->host);
}

/* the result --------------------------------------------------------------------------------------------------- */

static fs_result write_solution(fsi_lstsq *l, const fs_matrix *X)
{
    const int64_t n = l->n, m = l->m;
    const fs_matrix to = fsi_matrix_at_origin(X);
    if (X->memory == FS_MEMORY_HOST) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < m; c++)
                fsi_store(to.data, to.dtype, i * to.row_stride + c * to.col_stride, l->x[c * n + i]);
        return FS_OK;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < m; c++) l->scratch[i * m + c] = l->x[c * n + i];
    DENSE(&l->A, send, l->scratch, (size_t)(n * m) * sizeof(double), l->P);
    DENSE(&l->A, narrow, l->P, m, 0, &to);
    return l->A.dense->wait(l->A.handle, NULL);
}

static void explain(fsi_lstsq *l)
{
    fs_lstsq_report *t = &l->told;
    const int64_t most = l->A.rows < l->n ? l->A.rows : l->n;
    if (!t->converged)
        snprintf(t->note, sizeof t->note, "the backward error is %.2g, above the tolerance of %.2g: %s",
                 t->backward_error, l->o.tolerance,
                 t->iterations >= l->o.max_iterations ? "max_iterations was reached" : "rounding allows no less");
    else if (t->rank < most)
        snprintf(t->note, sizeof t->note,
                 "A has rank %" PRId64 " of %" PRId64 " by rcond = %.6g: X is the shortest of many solutions", t->rank,
                 most, l->o.rcond);
}

static fs_result lstsq_solve(fsi_lstsq *l, const fs_matrix *B, const fs_matrix *X)
{
    FSI_TRY(take_memory(l));
    FSI_TRY(place_right_hand_sides(l, B));
    FSI_TRY(l->A.rows < l->n ? fsi_lstsq_factor_wide(l) : fsi_lstsq_factor(l));
    FSI_TRY(fsi_lstsq_iterate(l));
    l->told.rank = l->rank;
    l->told.reads = l->A.reads;
    for (int64_t i = 0; i < l->n * l->m; i++) l->told.solution = hypot(l->told.solution, l->x[i]);
    explain(l);
    return write_solution(l, X);
}

fs_result fs_lstsq(fs_context *ctx, const fs_operand *A, const fs_matrix *B, const fs_lstsq_options *options,
                   const fs_matrix *X, fs_lstsq_report *report)
{
    const fs_lstsq_options start = FS_LSTSQ_INIT;
    fsi_lstsq l;
    memset(&l, 0, sizeof l);
    l.o = start;
    const double began = fsi_lstsq_clock();
    if (options) FSI_TRY(fs_struct_read("fs_lstsq", "options", options, &l.o, sizeof l.o));
    FSI_TRY(fsi_operand_init(&l.A, "fs_lstsq", ctx, A, l.o.ranks, l.o.progress));
    l.told.true_backward_error = NAN;
    fs_result result = lstsq_check(&l, B, X, report);
    if (result == FS_OK) result = lstsq_solve(&l, B, X);
    release_memory(&l);
    result = fsi_operand_close(&l.A, result);
    if (result != FS_OK) return result;
    l.told.seconds = fsi_lstsq_clock() - began;
    if (report) fs_struct_write(report, &l.told, sizeof l.told);
    return FS_OK;
}
