/* features.c - gradients to features: the mask and the sketch in one pass over a batch, of which nothing else is kept.
 * A batch is gradients, or the layers whose products they are. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/attribution.h"
#include "attribution/shuffle.h"
#include "base/dtype.h"
#include "core/matrix.h"
#include "attribution/mask.h"

enum { PANEL = 1024 }; /* examples or features at a time: products of this width run at full speed */

/* creation -------------------------------------------------------------------------------------------------- */

void *fsi_attribution_take(fs_context *ctx, int64_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow((size_t)count, bytes, &all)) return NULL;
    void *memory = ctx->allocator.alloc(ctx->allocator.user, all ? all : 1);
    if (memory) memset(memory, 0, all);
    return memory;
}
void fsi_attribution_give(fs_context *ctx, void *memory)
{
    if (memory) ctx->allocator.release(ctx->allocator.user, memory);
}

static fs_result check_options(const fs_attribution_options *given, fs_attribution_options *o, fs_spec *spec,
                               int64_t *all)
{
    const char *who = "fs_attribution_create";
    const fs_attribution_options start = FS_ATTRIBUTION_INIT;
    *o = start;
    FSI_REQUIRE(given, "%s: options is NULL", who);
    FSI_TRY(fs_struct_read(who, "options", given, o, sizeof *o));
    FSI_REQUIRE(o->examples >= 1, "%s: examples = %" PRId64 ", there must be at least 1", who, o->examples);
    FSI_REQUIRE(o->parts >= 1 && o->parameters, "%s: parts = %d, parameters is %s", who, o->parts,
                o->parameters ? "there" : "NULL");
    *all = 0;
    for (int i = 0; i < o->parts; i++)
        FSI_REQUIRE(o->parameters[i] >= 0 && !__builtin_add_overflow(*all, o->parameters[i], all),
                    "%s: parameters[%d] = %" PRId64 " cannot be negative, nor the sum of all be over 2^63", who, i,
                    o->parameters[i]);
    FSI_REQUIRE(*all >= 1, "%s: all %d parts together have no parameter", who, o->parts);
    FSI_REQUIRE(o->mask >= 0 && o->mask <= *all, "%s: mask = %" PRId64 ", gradients have %" PRId64 " coordinates", who,
                o->mask, *all);
    if (o->run == 0) o->run = 1;
    FSI_REQUIRE(o->run >= 1 && o->mask % o->run == 0 && o->mask / o->run <= *all / o->run,
                "%s: a mask of %" PRId64 " coordinates is not a number of whole runs of %" PRId64 " of %" PRId64
                " coordinates",
                who, o->mask, o->run, *all);
    FSI_REQUIRE(isfinite(o->scale) && o->scale >= 0, "%s: scale = %g, it must be positive, or 0 for the usual one", who,
                o->scale);
    const int64_t d = o->mask ? o->mask : *all;
    FSI_REQUIRE(o->sketch, "%s: sketch is NULL, it must have k", who);
    const fs_spec start_spec = FS_SPEC_INIT;
    *spec = start_spec;
    FSI_TRY(fs_struct_read(who, "sketch", o->sketch, spec, sizeof *spec));
    FSI_REQUIRE(spec->d == 0 || spec->d == d,
                "%s: sketch.d = %" PRId64 ", but %" PRId64 " coordinates are sketched; leave it 0", who, spec->d, d);
    spec->d = d;
    fsi_choose_shuffle(spec);
    return FS_OK;
}

/* Draws the mask, and where the rows of S of each part begin. */
static fs_result draw_mask(fs_attribution *g, uint64_t seed, int64_t run, int64_t all)
{
    for (int i = 0; i < g->parts; i++) g->begin[i + 1] = g->begin[i] + g->parameters[i];
    if (!g->mask) return FS_OK;
    g->index = fsi_attribution_take(g->ctx, g->mask, sizeof *g->index);
    if (!g->index)
        return fs_fail(FS_ENOMEM, "fs_attribution_create: no memory for a mask of %" PRId64 " coordinates", g->mask);
    fsi_mask_choose(seed, all, g->mask, run, g->index);
    int64_t start = 0, next = 0;
    for (int i = 0; i < g->parts; i++) {
        const int64_t end = start + g->parameters[i];
        g->begin[i] = next;
        for (; next < g->mask && g->index[next] < end; next++) g->index[next] -= start;
        start = end;
    }
    g->begin[g->parts] = next;
    return FS_OK;
}

/* The mask where the sketch reads it. */
static fs_result place_mask(fs_attribution *g)
{
    const size_t bytes = (size_t)g->mask * sizeof *g->list;
    void *memory;
    if (g->ctx->backend->memory == FS_MEMORY_HOST) return FS_OK;
    GRASS(g, alloc, bytes, &memory);
    g->list = memory;
    return g->dense->send(g->handle, g->index, bytes, g->list);
}

/* Memory in the backend's memory space. */
static fs_result features_allocate(fs_attribution *g)
{
    const fsi_host host = {fs_fail, g->ctx->allocator};
    const size_t k = (size_t)g->k, panel = (size_t)g->panel, order = (size_t)g->order;
    size_t features, square;
    FSI_REQUIRE(g->N <= INT_MAX && g->k <= INT_MAX && !__builtin_mul_overflow((size_t)g->N, 4 * k, &features) &&
                    !__builtin_mul_overflow(order, 8 * order, &square),
                "fs_attribution_create: %" PRId64 " examples by k = %" PRId64 " is more than the linear algebra counts",
                g->N, g->k);
    FSI_TRY(g->dense->open(&g->handle, g->ctx->state, &host, g->order, 1, 1));
    void *memory[6] = {NULL};
    const size_t bytes[6] = {features, square, square, 8 * k * panel, 8 * k * panel, 8 * panel * panel};
    fs_result result = FS_OK;
    for (int i = 0; i < 6 && result == FS_OK; i++) result = g->dense->alloc(g->handle, bytes[i], &memory[i]);
    g->Phi = memory[0];
    g->gram = memory[1];
    g->factor = memory[2];
    g->Z = memory[3];
    g->X = memory[4];
    g->C = memory[5];
    return result == FS_OK && g->mask ? place_mask(g) : result;
}

static fs_result features_fill(fs_attribution *g, const fs_attribution_options *o, const fs_spec *spec, int64_t all)
{
    g->N = o->examples;
    g->mask = o->mask;
    g->parts = o->parts;
    g->scale = o->scale > 0 ? o->scale : 1.0 / sqrt((double)all);
    FSI_TRY(fs_sketch_create_with(&g->S, spec, &g->ctx->allocator));
    g->k = spec->k;
    g->order = fsi_min64(g->N, g->k);
    g->panel = fsi_min64(PANEL, g->N > g->k ? g->N : g->k);
    g->parameters = fsi_attribution_take(g->ctx, g->parts, sizeof *g->parameters);
    g->begin = fsi_attribution_take(g->ctx, g->parts + 1, sizeof *g->begin);
    g->there = fsi_attribution_take(g->ctx, g->N, 1);
    g->host = fsi_attribution_take(g->ctx, g->panel * g->panel > g->N ? g->panel * g->panel : g->N, sizeof *g->host);
    if (!g->parameters || !g->begin || !g->there || !g->host)
        return fs_fail(FS_ENOMEM, "fs_attribution_create: no memory for %" PRId64 " examples", g->N);
    memcpy(g->parameters, o->parameters, (size_t)g->parts * sizeof *g->parameters);
    FSI_TRY(draw_mask(g, spec->seed, o->run, all));
    return features_allocate(g);
}

fs_result fs_attribution_create(fs_attribution **out, fs_context *ctx, const fs_attribution_options *options)
{
    FSI_REQUIRE(out && ctx, "fs_attribution_create: %s is NULL", out ? "ctx" : "out");
    *out = NULL;
    fs_attribution_options full;
    fs_spec spec;
    int64_t all = 0;
    FSI_TRY(check_options(options, &full, &spec, &all));
    if (!ctx->backend->dense)
        return fs_fail(FS_EUNSUPPORTED, "fs_attribution_create: this backend has no linear algebra");
    fs_attribution *g = fsi_attribution_take(ctx, 1, sizeof *g);
    if (!g) return fs_fail(FS_ENOMEM, "fs_attribution_create: no memory for %zu bytes", sizeof *g);
    g->ctx = ctx;
    g->dense = ctx->backend->dense;
    const fs_result result = features_fill(g, &full, &spec, all);
    if (result != FS_OK) fs_attribution_destroy(g);
    else *out = g;
    return result;
}

void fs_attribution_destroy(fs_attribution *g)
{
    if (!g) return;
    fs_context *ctx = g->ctx;
    void *const memory[] = {g->Phi, g->gram, g->factor, g->Z, g->X, g->C, g->list, g->pairs};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        if (memory[i]) g->dense->release(g->handle, memory[i]);
    if (g->handle) g->dense->close(g->handle);
    fs_sketch_destroy(g->S);
    fsi_attribution_give(ctx, g->parameters);
    fsi_attribution_give(ctx, g->begin);
    fsi_attribution_give(ctx, g->index);
    fsi_attribution_give(ctx, g->there);
    fsi_attribution_give(ctx, g->host);
    fsi_attribution_give(ctx, g->factors);
    fsi_attribution_give(ctx, g->rows);
    fsi_attribution_give(ctx, g);
}

fs_result fs_attribution_mask(const fs_attribution *g, int64_t *coordinates)
{
    FSI_REQUIRE(g && (coordinates || !g->mask), "fs_attribution_mask: %s is NULL", g ? "coordinates" : "g");
    int64_t start = 0;
    for (int i = 0; g->mask && i < g->parts; i++) {
        for (int64_t j = g->begin[i]; j < g->begin[i + 1]; j++) coordinates[j] = start + g->index[j];
        start += g->parameters[i];
    }
    return FS_OK;
}

/* features ------------------------------------------------------------------------------------------------- */

static fs_result check_gradients(const char *who, const fs_attribution *g, const fs_matrix *gradients)
{
    FSI_REQUIRE(gradients, "%s: gradients is NULL", who);
    for (int i = 0; i < g->parts; i++) {
        FSI_TRY(fs_matrix_check(who, "a part of the gradients", &gradients[i]));
        FSI_REQUIRE(gradients[i].rows == g->parameters[i] && gradients[i].cols == gradients[0].cols,
                    "%s: gradients[%d] is %" PRId64 " x %" PRId64 ", it must be %" PRId64 " x %" PRId64, who, i,
                    gradients[i].rows, gradients[i].cols, g->parameters[i], gradients[0].cols);
        FSI_REQUIRE(gradients[i].dtype != FS_F64, "%s: gradients[%d] is f64; features are f32, of f32, f16 or bf16",
                    who, i);
    }
    return FS_OK;
}

/* A matrix of a layer, called `name`, is sound, where ctx's memory is, and of n examples. */
static fs_result check_factor(const char *who, const fs_attribution *g, int part, const char *name, const fs_matrix *m,
                              int64_t n, int64_t tokens)
{
    char whole[40];
    snprintf(whole, sizeof whole, "layers[%d].%s", part, name);
    FSI_TRY(fs_matrix_check(who, whole, m));
    FSI_REQUIRE(m->cols % tokens == 0 && m->cols / tokens == n,
                "%s: %s has %" PRId64 " columns, it must have %" PRId64 " examples of %" PRId64 " tokens", who, whole,
                m->cols, n, tokens);
    FSI_REQUIRE(m->dtype != FS_F64, "%s: %s is f64; features are f32, of f32, f16 or bf16", who, whole);
    return fsi_context_check_memory(who, whole, g->ctx, m->memory);
}

/* *n: the examples of the layers. */
static fs_result check_layers(const char *who, const fs_attribution *g, const fs_attribution_layer *layers, int64_t *n)
{
    FSI_REQUIRE(layers, "%s: layers is NULL", who);
    for (int i = 0; i < g->parts; i++) {
        const fs_attribution_layer *l = &layers[i];
        const int64_t out = l->output_gradients.rows, in = l->inputs.data ? l->inputs.rows : 1;
        int64_t made;
        FSI_REQUIRE(l->tokens >= 1, "%s: layers[%d].tokens = %" PRId64 ", there must be at least 1", who, i, l->tokens);
        if (i == 0) *n = l->output_gradients.cols / l->tokens;
        FSI_TRY(check_factor(who, g, i, "output_gradients", &l->output_gradients, *n, l->tokens));
        if (l->inputs.data) FSI_TRY(check_factor(who, g, i, "inputs", &l->inputs, *n, l->tokens));
        FSI_REQUIRE(!__builtin_mul_overflow(out, in, &made) && made == g->parameters[i],
                    "%s: layers[%d] is a %s of %" PRId64 " x %" PRId64 ", but parameters[%d] = %" PRId64, who, i,
                    l->inputs.data ? "weight" : "bias", out, in, i, g->parameters[i]);
    }
    return FS_OK;
}

fs_result fsi_attribution_sketch_part(fs_attribution *g, int part, const fs_matrix *gradients, fs_matrix *Y)
{
    const int64_t row0 = g->begin[part];
    const double beta = part ? 1.0 : 0.0;
    if (!g->mask) return fs_apply(g->ctx, g->S, row0, g->scale, gradients, beta, Y);
    const int64_t *mask = g->list ? g->list : g->index;
    const fs_rows list = {g->begin[part + 1] - row0, FS_INDEX64, mask + row0, g->ctx->backend->memory};
    return fs_apply_rows(g->ctx, g->S, row0, g->scale, gradients, &list, beta, Y);
}

static fs_result sketch(fs_attribution *g, const fs_matrix *gradients, fs_matrix *Y)
{
    for (int i = 0; i < g->parts; i++) FSI_TRY(fsi_attribution_sketch_part(g, i, &gradients[i], Y));
    return FS_OK;
}

/* Y is phi, n x k in f32, transposed. */
static fs_result transpose(const char *who, const fs_attribution *g, int64_t n, const fs_matrix *phi, fs_matrix *Y)
{
    FSI_TRY(fs_matrix_check_output(who, "phi", phi));
    FSI_REQUIRE(phi->rows == n && phi->cols == g->k && phi->dtype == FS_F32,
                "%s: phi is %" PRId64 " x %" PRId64 " in %s, it must be %" PRId64 " x %" PRId64 " in f32", who,
                phi->rows, phi->cols, fs_dtype_name(phi->dtype), n, g->k);
    *Y = *phi;
    Y->rows = phi->cols;
    Y->cols = phi->rows;
    Y->row_stride = phi->col_stride;
    Y->col_stride = phi->row_stride;
    return FS_OK;
}

fs_result fs_attribution_project(fs_attribution *g, const fs_matrix *gradients, const fs_matrix *phi)
{
    const char *who = "fs_attribution_project";
    fs_matrix Y;
    FSI_REQUIRE(g, "%s: g is NULL", who);
    FSI_TRY(check_gradients(who, g, gradients));
    FSI_TRY(transpose(who, g, gradients[0].cols, phi, &Y));
    return sketch(g, gradients, &Y);
}

fs_result fs_attribution_project_layers(fs_attribution *g, const fs_attribution_layer *layers, const fs_matrix *phi)
{
    const char *who = "fs_attribution_project_layers";
    int64_t n;
    fs_matrix Y;
    FSI_REQUIRE(g, "%s: g is NULL", who);
    FSI_TRY(check_layers(who, g, layers, &n));
    FSI_TRY(transpose(who, g, n, phi, &Y));
    return fsi_attribution_sketch_layers(g, who, layers, &Y);
}

fs_result fs_attribution_features(fs_attribution *g, fs_matrix *Phi)
{
    FSI_REQUIRE(g && Phi, "fs_attribution_features: %s is NULL", g ? "Phi" : "g");
    *Phi = fs_row_major(g->Phi, g->N, g->k, FS_F32);
    Phi->memory = g->ctx->backend->memory;
    return FS_OK;
}

fs_result fsi_attribution_widen(fs_attribution *g, int64_t first, int64_t count)
{
    fs_matrix some = fs_row_major(g->Phi + first * g->k, count, g->k, FS_F32);
    some.memory = g->ctx->backend->memory;
    return g->dense->widen(g->handle, &some, g->Z, g->k);
}

static void forget(fs_attribution *g, int64_t first, int64_t count)
{
    memset(g->there + first, 0, (size_t)count);
    g->gram_ready = g->finished = 0;
}

/* Examples first ... count as added if their features are finite. */
static fs_result accept(fs_attribution *g, const char *who, int64_t first, int64_t count)
{
    forget(g, first, count);
    for (int64_t at = first; at < first + count; at += g->panel) {
        const int64_t some = fsi_min64(g->panel, first + count - at);
        FSI_TRY(fsi_attribution_widen(g, at, some));
        GRASS(g, squares, g->k, some, g->Z, g->k, g->C);
        GRASS(g, fetch, g->C, (size_t)some * sizeof *g->host, g->host);
        for (int64_t i = 0; i < some; i++)
            FSI_REQUIRE(isfinite(g->host[i]), "%s: the gradient of example %" PRId64 " is not finite", who, at + i);
    }
    memset(g->there + first, 1, (size_t)count);
    return FS_OK;
}

static fs_result check_range(const char *who, const fs_attribution *g, int64_t first, int64_t count)
{
    FSI_REQUIRE(first >= 0 && count >= 0 && first <= g->N - count,
                "%s: examples %" PRId64 " to %" PRId64 " + %" PRId64 " are not all among the %" PRId64, who, first,
                first, count, g->N);
    return FS_OK;
}

/* Where the features of examples first ... are computed, transposed: k x count.  They count as missing until then. */
static fs_result make_room(const char *who, fs_attribution *g, int64_t first, int64_t count, fs_matrix *Y)
{
    FSI_TRY(check_range(who, g, first, count));
    *Y = fs_batch_major(g->Phi + first * g->k, count, g->k, FS_F32);
    Y->memory = g->ctx->backend->memory;
    forget(g, first, count);
    return FS_OK;
}

fs_result fs_attribution_add(fs_attribution *g, int64_t first, const fs_matrix *gradients)
{
    const char *who = "fs_attribution_add";
    fs_matrix Y;
    FSI_REQUIRE(g, "%s: g is NULL", who);
    FSI_TRY(check_gradients(who, g, gradients));
    FSI_TRY(make_room(who, g, first, gradients[0].cols, &Y));
    FSI_TRY(sketch(g, gradients, &Y));
    return accept(g, who, first, Y.cols);
}

fs_result fs_attribution_add_layers(fs_attribution *g, int64_t first, const fs_attribution_layer *layers)
{
    const char *who = "fs_attribution_add_layers";
    int64_t n;
    fs_matrix Y;
    FSI_REQUIRE(g, "%s: g is NULL", who);
    FSI_TRY(check_layers(who, g, layers, &n));
    FSI_TRY(make_room(who, g, first, n, &Y));
    FSI_TRY(fsi_attribution_sketch_layers(g, who, layers, &Y));
    return accept(g, who, first, n);
}

fs_result fs_attribution_restore(fs_attribution *g, int64_t first, int64_t count)
{
    const char *who = "fs_attribution_restore";
    FSI_REQUIRE(g, "%s: g is NULL", who);
    FSI_TRY(check_range(who, g, first, count));
    return accept(g, who, first, count);
}

fs_result fs_attribution_added(const fs_attribution *g, uint8_t *added)
{
    FSI_REQUIRE(g && added, "fs_attribution_added: %s is NULL", g ? "added" : "g");
    memcpy(added, g->there, (size_t)g->N);
    return FS_OK;
}
