/* workspace.c - the memory of tasks, the sketch they begin with, and the steps they share. */
#include "tasks/workspace.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/math.h"
#include "core/matrix.h"
#include "core/sketch.h"

/* creation ------------------------------------------------------------------------------------------------- */

static fs_result check_shape(const fs_task_shape *given, fs_task_shape *shape)
{
    const fs_task_shape start = FS_TASK_SHAPE_INIT;
    *shape = start;
    FSI_REQUIRE(given, "fs_workspace_create: shape is NULL");
    FSI_TRY(fs_struct_read("fs_workspace_create", "shape", given, shape, sizeof *shape));
    if (!shape->dtype) shape->dtype = FS_F32;
    FSI_REQUIRE(shape->dtype == FS_F32 || shape->dtype == FS_F64,
                "fs_workspace_create: dtype is %d, it must be FS_F32 or FS_F64 (half types are sketched to f32)",
                (int)shape->dtype);
    FSI_REQUIRE(shape->k >= 1 && shape->k <= INT_MAX - 8 && shape->n >= 1 && shape->rhs >= 0 && shape->n <= INT_MAX &&
                    shape->rhs <= INT_MAX && shape->n + shape->rhs <= INT_MAX - 8,
                "fs_workspace_create: k = %" PRId64 ", n = %" PRId64 ", rhs = %" PRId64
                "; k and n must be at least 1, rhs 0, "
                "and k and n + rhs at most %d",
                shape->k, shape->n, shape->rhs, INT_MAX - 8);
    FSI_REQUIRE(shape->basis == 0 || shape->basis >= shape->n,
                "fs_workspace_create: basis = %" PRId64 ", but %" PRId64 " orthonormal columns need as many rows",
                shape->basis, shape->n);
    return FS_OK;
}

/* Cuts w->memory into its parts; with w->memory NULL only counts.  Returns the bytes, 0 where they cannot be counted.
 */
typedef struct cutter {
    char *at;
    size_t bytes;
    int overflow;
} cutter;
static void *cut(cutter *c, int64_t rows, int64_t cols, size_t element)
{
    size_t bytes, end;
    void *part = c->at ? c->at + c->bytes : NULL;
    if (__builtin_mul_overflow((size_t)rows, (size_t)cols, &bytes) || __builtin_mul_overflow(bytes, element, &bytes) ||
        __builtin_add_overflow(bytes, 255, &bytes) || __builtin_add_overflow(c->bytes, bytes & ~(size_t)255, &end)) {
        c->overflow = 1;
        return NULL;
    }
    c->bytes = end;
    return part;
}
static size_t lay_out(fs_workspace *w)
{
    const fs_task_shape *s = &w->shape;
    cutter c = {w->memory, 0, 0};
    const size_t element = (size_t)fsi_dtype_size(s->dtype);
    w->Y = cut(&c, s->k, s->n, element);
    w->C = cut(&c, s->k, s->rhs, element);
    w->Q = cut(&c, s->basis, s->n, element);
    w->Z = cut(&c, w->pitch, w->panel, sizeof(double));
    w->G = cut(&c, w->pitch, w->N, sizeof(double));
    w->H = cut(&c, s->n, s->n, sizeof(double));
    w->X = cut(&c, s->rhs, s->n, sizeof(double));
    w->W = cut(&c, s->rhs, s->n, sizeof(double));
    w->E = cut(&c, s->rhs, w->panel, sizeof(double));
    w->F = cut(&c, s->rhs, w->panel, sizeof(double));
    w->d = cut(&c, 2, w->N, sizeof(double));
    w->squares = cut(&c, w->panel, 1, sizeof(double));
    return c.overflow ? 0 : c.bytes;
}

static fs_result workspace_fill(fs_workspace *w)
{
    const fs_task_shape *s = &w->shape;
    const fsi_host host = {fs_fail, w->ctx->allocator};
    const int64_t small = s->k < s->n ? s->k : s->n, tall = s->k < s->n ? s->n : s->k;
    w->N = s->n + s->rhs;
    w->pitch = (w->N + 7) / 8 * 8;
    /* At least 2048 rows of A at a time where A itself is read, so that a panel pays for its calls. */
    w->panel = fsi_max(fsi_max(s->k, s->n), 2048);
    w->bytes = lay_out(w);
    size_t result = 0;
    cutter c = {NULL, 0, 0};
    cut(&c, s->n, w->ctx->backend->memory == FS_MEMORY_HOST ? 1 : fsi_max(s->n, s->rhs), sizeof(double));
    result = c.bytes + (size_t)fsi_max(2 * w->N, w->panel) * sizeof(double);
    FSI_REQUIRE(w->bytes && !c.overflow,
                "fs_workspace_create: k = %" PRId64 ", n = %" PRId64 ", rhs = %" PRId64
                ": the bytes of a workspace do not fit 64 bits",
                s->k, s->n, s->rhs);
    FSI_TRY(w->dense->open(&w->handle, w->ctx->state, &host, w->N, tall, small));
    CALL(w, alloc, w->bytes, &w->memory);
    lay_out(w);
    w->host = w->ctx->allocator.alloc(w->ctx->allocator.user, result);
    if (!w->host) return fs_fail(FS_ENOMEM, "no memory for %zu bytes of a workspace in host memory", result);
    w->bytes += result + w->dense->bytes(w->handle);
    return FS_OK;
}

fs_result fs_workspace_create(fs_workspace **out, fs_context *ctx, const fs_task_shape *shape)
{
    FSI_REQUIRE(out && ctx, "fs_workspace_create: %s is NULL", out ? "ctx" : "out");
    *out = NULL;
    fs_task_shape full;
    FSI_TRY(check_shape(shape, &full));
    if (!ctx->backend->dense)
        return fs_fail(FS_EUNSUPPORTED, "fs_workspace_create: this backend has no linear algebra");
    fs_workspace *w = ctx->allocator.alloc(ctx->allocator.user, sizeof *w);
    if (!w) return fs_fail(FS_ENOMEM, "fs_workspace_create: no memory for the %zu bytes of a workspace", sizeof *w);
    memset(w, 0, sizeof *w);
    w->ctx = ctx;
    w->dense = ctx->backend->dense;
    w->shape = full;
    const fs_result result = workspace_fill(w);
    if (result != FS_OK) fs_workspace_destroy(w);
    else *out = w;
    return result;
}

void fs_workspace_destroy(fs_workspace *w)
{
    if (!w) return;
    const fs_allocator memory = w->ctx->allocator;
    if (w->memory) w->dense->release(w->handle, w->memory);
    if (w->handle) w->dense->close(w->handle);
    if (w->host) memory.release(memory.user, w->host);
    memory.release(memory.user, w);
}

size_t fs_workspace_memory_bytes(const fs_workspace *w) { return w ? w->bytes : 0; }

/* the sketch ------------------------------------------------------------------------------------------------- */

static fs_matrix packed(const fs_workspace *w, void *data, int64_t rows, int64_t cols)
{
    fs_matrix m = fs_row_major(data, rows, cols, w->shape.dtype);
    m.memory = w->ctx->backend->memory;
    return m;
}

void fsi_workspace_parts(const fs_workspace *w, fs_matrix *Y, fs_matrix *C)
{
    if (Y) *Y = packed(w, w->Y, w->shape.k, w->shape.n);
    if (C) *C = packed(w, w->C, w->shape.k, w->shape.rhs);
}

fs_result fs_workspace_views(fs_workspace *w, fs_matrix *Y, fs_matrix *C)
{
    FSI_REQUIRE(w, "fs_workspace_views: w is NULL");
    fsi_workspace_parts(w, Y, C);
    w->made_by.size = 0;
    return FS_OK;
}

fs_result fs_workspace_set_sketch(fs_workspace *w, const fs_sketch *S)
{
    FSI_REQUIRE(w, "fs_workspace_set_sketch: w is NULL");
    FSI_REQUIRE(!S || S->spec.k == w->shape.k,
                "fs_workspace_set_sketch: S has %" PRId64 " rows, the workspace is for k = %" PRId64, S->spec.k,
                w->shape.k);
    w->made_by.size = S ? sizeof w->made_by : 0;
    return S ? fs_sketch_spec(S, &w->made_by) : FS_OK;
}

static fs_result check_input(const fs_workspace *w, const char *name, const fs_sketch *S, const fs_matrix *m,
                             int64_t cols)
{
    const char *who = "fs_task_sketch";
    FSI_TRY(fs_matrix_check(who, name, m));
    FSI_REQUIRE(m->rows == S->spec.d && m->cols == cols,
                "%s: %s is %" PRId64 " x %" PRId64 ", it must be %" PRId64 " x %" PRId64, who, name, m->rows, m->cols,
                S->spec.d, cols);
    FSI_REQUIRE(fsi_dtype_sum(m->dtype) == w->shape.dtype, "%s: %s is %s, whose sketch is %s; this workspace's is %s",
                who, name, fs_dtype_name(m->dtype), fs_dtype_name(fsi_dtype_sum(m->dtype)),
                fs_dtype_name(w->shape.dtype));
    return FS_OK;
}

fs_result fs_task_sketch(fs_workspace *w, const fs_sketch *S, const fs_matrix *A, const fs_matrix *B)
{
    FSI_REQUIRE(w && S, "fs_task_sketch: %s is NULL", w ? "S" : "w");
    FSI_REQUIRE(S->spec.k == w->shape.k, "fs_task_sketch: S has %" PRId64 " rows, the workspace is for k = %" PRId64,
                S->spec.k, w->shape.k);
    FSI_REQUIRE(!B == !w->shape.rhs, "fs_task_sketch: B is %s, but the workspace is for %" PRId64 " right-hand sides",
                B ? "given" : "NULL", w->shape.rhs);
    FSI_TRY(check_input(w, "A", S, A, w->shape.n));
    if (B) FSI_TRY(check_input(w, "B", S, B, w->shape.rhs));
    fs_matrix Y, C;
    fsi_workspace_parts(w, &Y, &C);
    w->sketched = 0;
    w->made_by.size = 0;
    CALL(w, mark, MARK_SKETCH);
    FSI_TRY(fs_apply(w->ctx, S, 0, 1.0, A, 0.0, &Y));
    if (B) FSI_TRY(fs_apply(w->ctx, S, 0, 1.0, B, 0.0, &C));
    CALL(w, mark, MARK_SKETCHED);
    w->sketched = 1;
    return fs_workspace_set_sketch(w, S);
}

/* steps ------------------------------------------------------------------------------------------------------ */

fs_result fsi_workspace_load(fs_workspace *w, int with_rhs)
{
    fs_matrix Y, C;
    fsi_workspace_parts(w, &Y, &C);
    CALL(w, widen, &Y, w->Z, w->pitch);
    if (with_rhs) CALL(w, widen, &C, w->Z + w->shape.n, w->pitch);
    return FS_OK;
}

fs_result fsi_workspace_gram(fs_workspace *w, double *trace)
{
    const int64_t n = w->shape.n;
    CALL(w, zero, w->G, (size_t)(n * n) * sizeof(double));
    CALL(w, syrk, n, w->shape.k, w->Z, w->pitch, 0.0, w->G, n);
    CALL(w, diagonal, n, w->G, n, w->d, 0.0);
    CALL(w, fetch, w->d, (size_t)n * sizeof(double), w->host);
    *trace = 0;
    for (int64_t j = 0; j < n; j++) *trace += w->host[j];
    return FS_OK;
}

fs_result fsi_workspace_panel(fs_workspace *w, const fs_matrix *A, int64_t row0, int64_t rows)
{
    fs_matrix part = fsi_matrix_at_origin(A);
    part.data = (char *)part.data + row0 * A->row_stride * fsi_dtype_size(A->dtype);
    part.rows = rows;
    part.cols = w->shape.n;
    CALL(w, widen, &part, w->Z, w->pitch);
    return FS_OK;
}

fs_result fsi_workspace_put(fs_workspace *w, const double *from, int64_t ld, int symmetric, const fs_matrix *to)
{
    const fs_matrix m = fsi_matrix_at_origin(to);
    if (to->memory == w->ctx->backend->memory) {
        CALL(w, narrow, from, ld, symmetric, &m);
        return FS_OK;
    }
    /* From a GPU to the host: one copy of all of `from`, then the layout; a packed column at a time would take many
     * copies. */
    CALL(w, fetch, from, (size_t)((m.rows - 1) * ld + m.cols) * sizeof(double), w->host);
    for (int64_t i = 0; i < m.rows; i++)
        for (int64_t j = 0; j < m.cols; j++)
            fsi_store(m.data, m.dtype, i * m.row_stride + j * m.col_stride,
                      w->host[symmetric && j < i ? i + j * ld : j + i * ld]);
    return FS_OK;
}

fs_result fsi_workspace_times(fs_workspace *w, double *sketch, double *solve, double *total)
{
    CALL(w, wait, NULL);
    if (w->sketched) w->sketch_seconds = w->dense->seconds(w->handle, MARK_SKETCH, MARK_SKETCHED);
    w->sketched = 0;
    *sketch = w->sketch_seconds;
    *solve = w->dense->seconds(w->handle, MARK_TASK, MARK_DONE);
    *total = *sketch + *solve;
    return FS_OK;
}

fs_result fsi_workspace_check(const fs_workspace *w, const char *who, const char *name, const fs_matrix *m,
                              int64_t rows, int64_t cols, int host)
{
    FSI_TRY(fs_matrix_check(who, name, m));
    FSI_REQUIRE(m->rows == rows && m->cols == cols,
                "%s: %s is %" PRId64 " x %" PRId64 ", it must be %" PRId64 " x %" PRId64, who, name, m->rows, m->cols,
                rows, cols);
    return host && m->memory == FS_MEMORY_HOST ? FS_OK : fsi_context_check_memory(who, name, w->ctx, m->memory);
}

fs_result fsi_workspace_symmetric_square(fs_workspace *w, double *G, double *square)
{
    const int64_t n = w->shape.n;
    double norm, diagonal = 0;
    CALL(w, norm, n * n, G, &norm);
    CALL(w, diagonal, n, G, n, w->d, 0.0);
    CALL(w, fetch, w->d, (size_t)n * sizeof(double), w->host);
    for (int64_t j = 0; j < n; j++) diagonal += w->host[j] * w->host[j];
    *square = 2 * norm * norm - diagonal;
    return FS_OK;
}

double fsi_unit(fs_dtype dtype)
{
    return dtype == FS_F64 ? 0x1p-53 : dtype == FS_F32 ? 0x1p-24 : dtype == FS_F16 ? 0x1p-11 : 0x1p-8;
}
