/* layers.c - layers to features: the two rows of factors whose product is a coordinate of the gradient.
 *
 * Coordinate u in + v of a weight is output gradient u times input v, summed over tokens; coordinate u of a bias is
 * output gradient u.  So what is sketched is a list of pairs of rows (fs_apply_products): those of the mask, or of all
 * coordinates.  The list depends on widths, not on a batch, and is kept. */
#include <inttypes.h>
#include <string.h>

#include "attribution/attribution.h"

/* Memory for the list, and for the sizes that show whether it still fits. */
static fs_result layers_begin(fs_attribution *g, const char *who)
{
    if (g->pairs) return FS_OK;
    void *memory;
    if (!g->factors) g->factors = fsi_attribution_take(g->ctx, 2 * (int64_t)g->parts, sizeof *g->factors);
    if (!g->rows) g->rows = fsi_attribution_take(g->ctx, g->parts, sizeof *g->rows);
    if (!g->factors || !g->rows) return fs_fail(FS_ENOMEM, "%s: no memory for the layers of %d parts", who, g->parts);
    for (int i = 0; i < g->parts; i++) g->rows[i].width = -1;
    GRASS(g, alloc, 2 * sizeof *g->pairs * (size_t)g->begin[g->parts], &memory);
    g->pairs = memory;
    return FS_OK;
}

static int is_same(const fs_matrix *a, const fs_matrix *b)
{
    return a->data == b->data && a->offset == b->offset && a->rows == b->rows && a->row_stride == b->row_stride &&
           a->col_stride == b->col_stride && a->dtype == b->dtype;
}

/* Puts m among the factors unless it is there; returns where its rows begin among theirs. */
static int64_t stack(fs_matrix *factors, int *count, const fs_matrix *m)
{
    int64_t row = 0;
    for (int f = 0; f < *count; f++) {
        if (is_same(&factors[f], m)) return row;
        row += factors[f].rows;
    }
    factors[(*count)++] = *m;
    return row;
}

/* The pairs of a part: `count` coordinates of it, those of its mask, or (mask NULL) all. */
static void list(const fsi_attribution_rows *at, const int64_t *mask, int64_t count, int32_t *pairs)
{
    for (int64_t i = 0; i < count; i++, pairs += 2) {
        const int64_t coordinate = mask ? mask[i] : i;
        const int64_t u = at->width ? coordinate / at->width : coordinate;
        pairs[0] = (int32_t)(at->output_gradients + u);
        pairs[1] = at->width ? (int32_t)(at->inputs + coordinate - u * at->width) : -1;
    }
}

/* Recomputes the list of a part unless it is that of the last call. */
static fs_result follow(fs_attribution *g, const char *who, int part, fsi_attribution_rows at)
{
    const int64_t first = g->begin[part], count = g->begin[part + 1] - first;
    const int here = g->ctx->backend->memory == FS_MEMORY_HOST;
    const size_t bytes = 2 * sizeof *g->pairs * (size_t)count;
    if (!memcmp(&g->rows[part], &at, sizeof at)) return FS_OK;
    int32_t *pairs = here ? g->pairs + 2 * first : fsi_attribution_take(g->ctx, 2 * count, sizeof *pairs);
    if (!pairs) return fs_fail(FS_ENOMEM, "%s: no memory for %" PRId64 " pairs", who, count);
    list(&at, g->index ? g->index + first : NULL, count, pairs);
    g->rows[part].width = -1;
    const fs_result result = here ? FS_OK : g->dense->send(g->handle, pairs, bytes, g->pairs + 2 * first);
    if (!here) fsi_attribution_give(g->ctx, pairs);
    if (result == FS_OK) g->rows[part] = at;
    return result;
}

/* Parts first ... end - 1, which have the same number of tokens: their factors, stacked, and their pairs. */
static fs_result layers_prepare(fs_attribution *g, const char *who, const fs_attribution_layer *layers, int first,
                                int end, int *count)
{
    *count = 0;
    for (int i = first; i < end; i++) {
        fsi_attribution_rows at = {0, 0, 0};
        at.output_gradients = stack(g->factors, count, &layers[i].output_gradients);
        if (layers[i].inputs.data) {
            at.inputs = stack(g->factors, count, &layers[i].inputs);
            at.width = layers[i].inputs.rows;
        }
        FSI_REQUIRE(at.output_gradients <= INT32_MAX - layers[i].output_gradients.rows &&
                        at.inputs <= INT32_MAX - at.width,
                    "%s: layers %d to %d have more than 2^31 - 1 rows of output gradients and inputs", who, first, i);
        FSI_TRY(follow(g, who, i, at));
    }
    return FS_OK;
}

/* A tensor whose gradients are given directly is a factor of many rows, and all of them would be copied, also those
 * that the mask leaves out.  Sketched by itself it costs another pass over Y, of k rows. */
static int is_apart(const fs_attribution *g, const fs_attribution_layer *layers, int i)
{
    const fs_attribution_layer *l = &layers[i];
    return !l->inputs.data && l->tokens == 1 && l->output_gradients.rows > g->k &&
           (i == 0 || !is_same(&l->output_gradients, &layers[i - 1].output_gradients));
}

fs_result fsi_attribution_sketch_layers(fs_attribution *g, const char *who, const fs_attribution_layer *layers,
                                        fs_matrix *Y)
{
    FSI_TRY(layers_begin(g, who));
    for (int first = 0, end; first < g->parts; first = end) {
        const int64_t row0 = g->begin[first], tokens = layers[first].tokens;
        int count;
        end = first + 1;
        if (is_apart(g, layers, first)) {
            FSI_TRY(fsi_attribution_sketch_part(g, first, &layers[first].output_gradients, Y));
            continue;
        }
        while (end < g->parts && layers[end].tokens == tokens && !is_apart(g, layers, end)) end++;
        FSI_TRY(layers_prepare(g, who, layers, first, end, &count));
        const fs_pairs pairs = {g->begin[end] - row0, g->pairs + 2 * row0, g->ctx->backend->memory};
        const double beta = first ? 1.0 : 0.0;
        FSI_TRY(fs_apply_products(g->ctx, g->S, row0, g->scale, g->factors, count, tokens, &pairs, beta, Y));
    }
    return FS_OK;
}
