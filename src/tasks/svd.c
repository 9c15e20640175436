/* svd.c - fs_svd and fs_pca: arguments, memory, outputs, report. */
#include "tasks/svd.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/dtype.h"
#include "base/math.h"
#include "core/matrix.h"

/* Numbers of a panel of widened rows: what a CPU's cache holds, and what keeps a GPU busy, where a narrow basis takes
 * more rows to fill it; those of the panel times the basis are at most a quarter. */
enum { PANEL_HOST = 1 << 19, PANEL_DEVICE = 1 << 26, PANEL_LEAST = 32, PANEL_MOST = 1 << 16 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* memory ------------------------------------------------------------------------------------------------------ */

fs_result fsi_svd_take(fsi_svd *t, int64_t count, double **memory)
{
    FSI_TRY(fsi_operand_alloc(&t->A, count, memory));
    t->parts[t->part_count++] = *memory;
    return FS_OK;
}

fs_result fsi_svd_take_host(fsi_svd *t, int64_t count, double **memory)
{
    const fs_allocator *host = &t->A.ctx->allocator;
    size_t bytes;
    *memory = __builtin_mul_overflow((size_t)count, sizeof **memory, &bytes) ? NULL : host->alloc(host->user, bytes);
    if (!*memory) return fs_fail(FS_ENOMEM, "%s: no memory for %" PRId64 " numbers", t->A.who, count);
    t->host_parts[t->host_part_count++] = *memory;
    return FS_OK;
}

static fs_result end(fsi_svd *t, fs_result result)
{
    const fs_allocator *host = &t->A.ctx->allocator;
    for (int i = 0; i < t->part_count; i++) fsi_operand_free(&t->A, t->parts[i]);
    for (int i = 0; i < t->host_part_count; i++) host->release(host->user, t->host_parts[i]);
    fsi_operand_free(&t->A, t->X);
    fsi_operand_free(&t->A, t->O);
    if (t->O_host) host->release(host->user, t->O_host);
    fs_sketch_destroy(t->S);
    fs_sketch_destroy(t->T);
    return fsi_operand_close(&t->A, result);
}

static fs_result take_memory(fsi_svd *t)
{
    const int64_t n = t->A.n, l = t->l, k = t->k, p = FSI_SVD_PROBES, small = fsi_min(n, k);
    const int one = t->options.one_read;
    const int in_host = t->A.ctx->backend->memory == FS_MEMORY_HOST;
    const int64_t rows = in_host ? PANEL_HOST / n : PANEL_DEVICE / fsi_max(n, 4 * l);
    t->panel = fsi_max(PANEL_LEAST, fsi_min(fsi_min(PANEL_MOST, t->A.d), rows));
    const struct part {
        double **memory;
        int64_t count;
    } parts[] = {
        {&t->Yt, n * k},
        {&t->Tt, t->all ? 0 : n * p},
        {&t->Ct, one ? l * k : 0},
        {&t->P, n * l},
        {&t->Q, n * l},
        {&t->W, n * fsi_max(k, p)},
        {&t->Vt, small * small},
        {&t->G, l * l},
        {&t->E, l * l},
        {&t->M, l * l},
        {&t->R, l * l},
        {&t->Vr, l * l},
        {&t->mean, n},
        {&t->at, n},
        {&t->sums, n},
        {&t->ones, t->panel},
        {&t->S1, k},
        {&t->T1, p},
        {&t->small, fsi_max(2 * l, p * p)},
        {&t->rows, n * t->panel},
        {&t->kept, t->U && !t->all ? fsi_max(1, l * t->A.d) : 0},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].count) FSI_TRY(fsi_svd_take(t, parts[i].count, parts[i].memory));
    FSI_TRY(fsi_operand_alloc(&t->A, l * t->panel, &t->X));
    FSI_TRY(fsi_operand_alloc(&t->A, l * t->panel, &t->O));
    t->x_rows = t->panel;
    FSI_TRY(fsi_svd_take_host(t, small, &t->D));
    FSI_TRY(fsi_svd_take_host(t, fsi_max(fsi_max(2 * l * (l + 1), 2 * n), fsi_max(t->panel, p * p)), &t->host));
    FSI_TRY(fsi_svd_take_host(t, n * t->r, &t->V_host));
    FSI_TRY(fsi_svd_take_host(t, n, &t->total));
    for (int64_t i = 0; i < t->panel; i++) t->host[i] = 1;
    DENSE(&t->A, send, t->host, (size_t)t->panel * sizeof *t->host, t->ones);
    return FS_OK;
}

/* arguments --------------------------------------------------------------------------------------------------- */

static fs_result check_output(const fsi_svd *t, const char *name, const fs_matrix *m, int64_t rows)
{
    if (!m) return FS_OK;
    FSI_TRY(fs_matrix_check_output(t->A.who, name, m));
    FSI_REQUIRE(m->rows == rows && m->cols == t->r,
                "%s: %s is %" PRId64 " x %" PRId64 ", it must be %" PRId64 " x %" PRId64, t->A.who, name, m->rows,
                m->cols, rows, t->r);
    FSI_REQUIRE(!t->A.matrix.data || !fs_matrix_overlap(m, &t->A.matrix), "%s: %s overlaps A", t->A.who, name);
    return m->memory == FS_MEMORY_HOST ? FS_OK : fsi_context_check_memory(t->A.who, name, t->A.ctx, m->memory);
}

static fs_result check_options(fsi_svd *t)
{
    const char *who = t->A.who;
    fs_svd_options *o = &t->options;
    const int64_t most = fsi_min(t->A.rows, t->A.n);
    FSI_REQUIRE(o->rank >= 0 && o->rank <= most,
                "%s: rank = %" PRId64 "; A is %" PRId64 " x %" PRId64 ", so it must be from 0 to %" PRId64, who,
                o->rank, t->A.rows, t->A.n, most);
    FSI_REQUIRE(o->oversampling >= 0, "%s: oversampling = %" PRId64 ", it must be at least 0", who, o->oversampling);
    FSI_REQUIRE(o->power_steps >= -1 && o->power_steps <= 1000,
                "%s: power_steps = %d, it must be from 0 to 1000, or -1", who, o->power_steps);
    FSI_REQUIRE(o->one_read == 0 || o->one_read == 1, "%s: one_read = %d, it must be 0 or 1", who, o->one_read);
    FSI_REQUIRE(!o->one_read || (o->power_steps <= 0 && o->rank > 0),
                "%s: one_read with power_steps = %d and rank = %" PRId64
                "; it needs a rank, and each power step is another read",
                who, o->power_steps, o->rank);
    if (o->power_steps < 0) o->power_steps = o->one_read ? 0 : 2;
    t->r = o->rank ? o->rank : most;
    /* One read has no second product with A that would correct a narrow range. */
    const int64_t more = o->oversampling ? o->oversampling : fsi_max(10, o->one_read ? 2 * t->r : t->r / 2);
    t->l = more < most - t->r ? t->r + more : most;
    t->all = !o->one_read && t->l == most;
    FSI_REQUIRE(t->l <= (INT_MAX - 24) / 4, "%s: %" PRId64 " columns of a basis are more than %d", who, t->l,
                (INT_MAX - 24) / 4);
    t->k = 4 * t->l + 16;
    return FS_OK;
}

static fs_result make_sketches(fsi_svd *t)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.d = t->A.rows, spec.k = t->k, spec.seed = t->options.seed, spec.quality = FS_QUALITY_HIGH;
    if (t->A.matrix.data && !t->A.ranks.sum && t->A.rows <= t->k) t->k = t->A.rows;
    else FSI_TRY(fs_sketch_create_with(&t->S, &spec, &t->A.ctx->allocator));
    if (t->all) return FS_OK;
    /* Every entry of T is a sign. */
    fs_spec probes = FS_SPEC_INIT;
    probes.family = FS_SJLT, probes.d = t->A.rows, probes.k = probes.s = FSI_SVD_PROBES;
    probes.seed = t->options.seed + UINT64_C(0x9E3779B97F4A7C15);
    return fs_sketch_create_with(&t->T, &probes, &t->A.ctx->allocator);
}

/* outputs ----------------------------------------------------------------------------------------------------- */

/* to(i, j) = from[j + i ld], both in host memory. */
static void svd_store(const double *from, int64_t ld, const fs_matrix *to)
{
    for (int64_t i = 0; i < to->rows; i++)
        for (int64_t j = 0; j < to->cols; j++)
            fsi_store(to->data, to->dtype, i * to->row_stride + j * to->col_stride, from[j + i * ld]);
}

fs_result fsi_svd_put_v(fsi_svd *t, double *sign)
{
    const int64_t n = t->A.n;
    const size_t bytes = (size_t)(n * t->r) * sizeof *t->V_host;
    FSI_TRY(fsi_operand_share(&t->A, t->W, n * t->r));
    DENSE(&t->A, orient, n, t->r, t->W, t->small);
    DENSE(&t->A, fetch, t->small, (size_t)t->r * sizeof *sign, sign);
    if (!t->V) return FS_OK;
    const fs_matrix V = fsi_matrix_at_origin(t->V);
    fs_matrix columns = V; /* its transpose: to(i, j) = from[j + i ld] */
    columns.rows = V.cols, columns.cols = V.rows;
    columns.row_stride = V.col_stride, columns.col_stride = V.row_stride;
    if (V.memory == t->A.ctx->backend->memory) {
        DENSE(&t->A, narrow, t->W, n, 0, &columns);
        return FS_OK;
    }
    DENSE(&t->A, fetch, t->W, bytes, t->V_host);
    svd_store(t->V_host, n, &columns);
    return FS_OK;
}

static fs_matrix rows_of_u(const fsi_svd *t, int64_t row0, int64_t rows)
{
    fs_matrix U = fsi_matrix_at_origin(t->U);
    U.data = (char *)U.data + row0 * U.row_stride * fsi_dtype_size(U.dtype);
    U.rows = rows;
    return U;
}

fs_result fsi_svd_put_u(fsi_svd *t, int64_t m, int64_t row0, int64_t rows, double *X)
{
    const int64_t r = t->r;
    const fs_matrix U = rows_of_u(t, row0, rows);
    const fs_allocator *host = &t->A.ctx->allocator;
    DENSE(&t->A, gemm, 0, 0, r, rows, m, 1.0, t->M, r, X, m, 0.0, t->O, r);
    if (U.memory == t->A.ctx->backend->memory) {
        DENSE(&t->A, narrow, t->O, r, 0, &U);
        return FS_OK;
    }
    const size_t bytes = (size_t)(r * rows) * sizeof *t->O_host;
    if (rows > t->o_rows) {
        if (t->O_host) host->release(host->user, t->O_host);
        t->o_rows = 0;
        t->O_host = host->alloc(host->user, bytes);
        if (!t->O_host) return fs_fail(FS_ENOMEM, "%s: no memory for %zu bytes of U", t->A.who, bytes);
        t->o_rows = rows;
    }
    DENSE(&t->A, fetch, t->O, bytes, t->O_host);
    svd_store(t->O_host, r, &U);
    return FS_OK;
}

fs_result fsi_svd_zero_u(fsi_svd *t)
{
    const int64_t r = t->r, rows = fsi_min(t->x_rows, t->panel);
    DENSE(&t->A, zero, t->O, (size_t)(r * rows) * sizeof *t->O);
    memset(t->host, 0, (size_t)r * sizeof *t->host);
    for (int64_t i = 0; i < t->A.d; i += rows) {
        const fs_matrix U = rows_of_u(t, i, fsi_min(rows, t->A.d - i));
        if (U.memory == t->A.ctx->backend->memory) DENSE(&t->A, narrow, t->O, r, 0, &U);
        else svd_store(t->host, 0, &U);
    }
    return FS_OK;
}

/* the calls ---------------------------------------------------------------------------------------------------- */

static fs_result svd_run(fsi_svd *t, double *mean)
{
    FSI_TRY(fsi_operand_open(&t->A, t->l, fsi_max(t->A.n, t->k), fsi_min(t->A.n, t->k)));
    FSI_TRY(take_memory(t));
    int done = 0;
    if (t->all && !t->centred && t->A.rows >= t->A.n) FSI_TRY(fsi_svd_tall(t, &done));
    if (!done) FSI_TRY(t->options.one_read ? fsi_svd_nystrom(t) : fsi_svd_range(t));
    double error[] = {t->error, t->low, t->high};
    FSI_TRY(fsi_operand_share_host(&t->A, error, 3));
    t->error = error[0], t->low = error[1], t->high = error[2];
    if (mean) DENSE(&t->A, fetch, t->mean, (size_t)t->A.n * sizeof *mean, mean);
    DENSE(&t->A, wait, NULL);
    fsi_operand_progress(&t->A, 1.0, "done");
    return FS_OK;
}

static fs_result svd_agree(fsi_svd *t)
{
    const fs_svd_options *o = &t->options;
    const fsi_choice choices[] = {
        {"options.rank", (double)o->rank},
        {"options.oversampling", (double)o->oversampling},
        {"options.power_steps", (double)o->power_steps},
        {"options.one_read", (double)o->one_read},
        {"whether U is wanted", t->U ? 1 : 0},
    };
    return fsi_operand_agree(&t->A, NULL, o->seed, choices, sizeof choices / sizeof choices[0]);
}

static fs_result svd_check(fsi_svd *t)
{
    FSI_REQUIRE(t->s, "%s: s is NULL", t->A.who);
    FSI_TRY(check_options(t));
    FSI_TRY(check_output(t, "U", t->U, t->A.d));
    FSI_TRY(check_output(t, "V", t->V, t->A.n));
    FSI_REQUIRE(!t->U || !t->V || !fs_matrix_overlap(t->U, t->V), "%s: U overlaps V", t->A.who);
    return FS_OK;
}

static fs_result svd_solve(fsi_svd *t, const char *who, fs_context *ctx, const fs_operand *A,
                           const fs_svd_options *options, fs_svd_report *report, double *mean)
{
    const double begin = now();
    const fs_svd_options start = FS_SVD_INIT;
    t->options = start;
    if (options) FSI_TRY(fs_struct_read(who, "options", options, &t->options, sizeof t->options));
    FSI_TRY(fsi_operand_init(&t->A, who, ctx, A, t->options.ranks, t->options.progress));
    fs_result result = report ? fs_struct_check(who, "report", report, sizeof *report) : FS_OK;
    if (result == FS_OK) result = svd_check(t);
    if (result == FS_OK) result = svd_agree(t);
    if (result == FS_OK) result = make_sketches(t);
    if (result == FS_OK) result = svd_run(t, mean);
    result = end(t, result);
    if (result != FS_OK || !report) return result;
    const fs_svd_report full = {sizeof full, t->r,   t->all ? 0 : t->l, t->A.reads, t->norm,
                                t->error,    t->low, t->high,           0.99,       now() - begin};
    fs_struct_write(report, &full, sizeof full);
    return FS_OK;
}

fs_result fs_svd(fs_context *ctx, const fs_operand *A, const fs_svd_options *options, const fs_matrix *U, double *s,
                 const fs_matrix *V, fs_svd_report *report)
{
    fsi_svd t;
    memset(&t, 0, sizeof t);
    t.U = U, t.s = s, t.V = V;
    return svd_solve(&t, "fs_svd", ctx, A, options, report, NULL);
}

fs_result fs_pca(fs_context *ctx, const fs_operand *A, const fs_svd_options *options, double *mean, const fs_matrix *U,
                 double *s, const fs_matrix *V, fs_svd_report *report)
{
    fsi_svd t;
    memset(&t, 0, sizeof t);
    t.U = U, t.s = s, t.V = V, t.centred = 1;
    return svd_solve(&t, "fs_pca", ctx, A, options, report, mean);
}
