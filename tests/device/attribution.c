/* attribution.c - features of gradients and of layers, and scores, on a GPU, in its memory.
 *
 * The reference is plain loops in double.  Where the GPU's linear algebra cannot be loaded the tests are skipped. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "flashsketch_attribution.h"

/* The first lane.  Ends the test as skipped where the libraries are missing. */
static const lane *lane_with_algebra(void)
{
    const lane *l = &lanes[0];
    const int64_t parameters = 32;
    fs_attribution_options o = FS_ATTRIBUTION_INIT;
    fs_spec sketch = FS_SPEC_INIT;
    fs_attribution *g;
    sketch.k = 8;
    o.examples = o.parts = 1, o.parameters = &parameters, o.sketch = &sketch;
    const fs_result result = fs_attribution_create(&g, l->gpu, &o);
    if (result == FS_EBACKEND && strstr(fs_error_message(), "could not be loaded")) skip_because(fs_error_message());
    MUST(result);
    fs_attribution_destroy(g);
    return l;
}

static void *sent(const lane *l, const void *host, int64_t bytes)
{
    void *device = device_alloc(l->stream, bytes);
    copy_in(l->stream, device, host, bytes);
    return device;
}

/* features and scores ---------------------------------------------------------------------------------------- */

/* x = K^-1 x by elimination, K symmetric positive definite, overwritten. */
static void eliminate(double *K, int64_t k, double *x)
{
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = p + 1; i < k; i++) {
            const double f = K[i * k + p] / K[p * k + p];
            for (int64_t j = p; j < k; j++) K[i * k + j] -= f * K[p * k + j];
            x[i] -= f * x[p];
        }
    for (int64_t p = k - 1; p >= 0; p--) {
        for (int64_t j = p + 1; j < k; j++) x[p] -= K[p * k + j] * x[j];
        x[p] /= K[p * k + p];
    }
}

/* A batch of gradients in two parts, 900 and 148 coordinates, N of them for training and two queries. */
enum { ALL = 1048, FIRST = 900, QUERIES = 2 };
static void check_attribution(const lane *l, const recipe *R, int64_t N, int64_t mask)
{
    const int64_t counts[] = {FIRST, ALL - FIRST}, rows = N + QUERIES;
    fs_attribution_options o = FS_ATTRIBUTION_INIT;
    o.examples = N, o.parts = 2, o.parameters = counts, o.mask = mask;
    const fs_spec spec = spec_at(R, mask ? mask : ALL, 24, 9);
    o.sketch = &spec;
    const int64_t d = spec.d, k = spec.k, each = k * (int64_t)sizeof(float);
    float *gradients = room(rows * ALL, sizeof *gradients), *features = room(rows * k, sizeof *features);
    int64_t *kept = room(ALL, sizeof *kept);
    double *scores = room(QUERIES * N, 8), *x = room(k, 8), *K = room(k * k, 8);
    for (int64_t i = 0; i < rows * ALL; i++) gradients[i] = (float)normal_at(4, i);
    float *device = sent(l, gradients, rows * ALL * (int64_t)sizeof *gradients);
    float *queries = device_alloc(l->stream, QUERIES * each);
    fs_matrix parts[2], some[2], Phi, phi = fs_row_major(queries, QUERIES, k, FS_F32),
                                      to = fs_row_major(scores, QUERIES, N, FS_F64);
    phi.memory = device_place();
    for (int i = 0; i < 2; i++) {
        parts[i] = fs_batch_major(device, rows, ALL, FS_F32);
        parts[i].memory = device_place();
        parts[i].rows = counts[i];
        parts[i].offset = i * FIRST;
        some[i] = parts[i];
        parts[i].cols = N;
        some[i].offset += N * ALL;
        some[i].cols = QUERIES;
    }
    fs_attribution *g;
    MUST(fs_attribution_create(&g, l->gpu, &o));
    MUST(fs_attribution_add(g, 0, parts));
    MUST(fs_attribution_project(g, some, &phi));
    MUST(fs_attribution_factor(g, 0.1));
    MUST(fs_attribution_scores(g, &phi, NULL, 1.0, 0.0, &to));
    MUST(fs_attribution_features(g, &Phi));
    for (int64_t j = 0; j < ALL; j++) kept[j] = j;
    MUST(fs_attribution_mask(g, kept));
    copy_out(l->stream, features, Phi.data, N * each);
    copy_out(l->stream, features + N * k, queries, QUERIES * each);

    fs_sketch *S = sketch_of(&spec);
    double *T = columns_of(S, 0, d);
    for (int64_t n = 0; n < rows; n++)
        for (int64_t i = 0; i < k; i++) {
            double want = 0, size = 0;
            for (int64_t j = 0; j < d; j++) {
                const double term = T[i * d + j] * gradients[n * ALL + kept[j]] / sqrt(ALL);
                want += term, size += fabs(term);
            }
            if (!(fabs(features[n * k + i] - want) <= 1e-5 * size))
                fail_msg("%s, mask %d: feature %d of example %d is %.9g, not %.9g", R->name, (int)mask, (int)i, (int)n,
                         (double)features[n * k + i], want);
        }
    for (int64_t q = 0; q < QUERIES; q++) {
        for (int64_t i = 0; i < k * k; i++) K[i] = i / k == i % k ? 0.1 : 0;
        for (int64_t n = 0; n < N; n++)
            for (int64_t i = 0; i < k * k; i++) K[i] += (double)features[n * k + i / k] * features[n * k + i % k];
        for (int64_t i = 0; i < k; i++) x[i] = features[(N + q) * k + i];
        eliminate(K, k, x);
        double most = 0;
        for (int64_t n = 0; n < N; n++) most = fmax(most, fabs(scores[q * N + n]));
        for (int64_t n = 0; n < N; n++) {
            double want = 0;
            for (int64_t i = 0; i < k; i++) want += x[i] * features[n * k + i];
            if (!(fabs(scores[q * N + n] - want) <= 1e-9 * most))
                fail_msg("%s, mask %d: score %d is %.12g, not %.12g", R->name, (int)mask, (int)n, scores[q * N + n],
                         want);
        }
    }
    free(T);
    fs_sketch_destroy(S);
    fs_attribution_destroy(g);
    device_free(l->stream, device), device_free(l->stream, queries);
    free(gradients), free(features), free(kept), free(scores), free(x), free(K);
}
static void features_and_scores_are_those_of_plain_loops(void **state)
{
    (void)state;
    const lane *l = lane_with_algebra();
    for (int r = 0; r < recipe_count; r++) check_attribution(l, &recipes[r], 37, 0);
    check_attribution(l, &recipes[0], 1100, 0); /* more examples than are taken at a time */
    check_attribution(l, &recipes[0], 9, 0);    /* fewer than features */
}
static void masked_features_and_scores_are_those_of_plain_loops(void **state)
{
    (void)state;
    const lane *l = lane_with_algebra();
    for (int r = 0; r < recipe_count; r++) check_attribution(l, &recipes[r], 37, 400);
}

/* features from layers --------------------------------------------------------------------------------------- */

/* Parts of the same 1048 coordinates: a weight of 30 x 25 and its bias with three tokens, a weight of 8 x 16 with one,
 * and a tensor as it is, longer than a feature.  Their gradients are formed here, by plain loops. */
enum { LAYERS = 4, TOKENS = 3, OUT = 30, IN = 25, OTHER_OUT = 8, OTHER_IN = 16, TENSOR = 140 };

typedef struct layered {
    float *outputs, *inputs, *other_outputs, *other_inputs, *tensor; /* batch-major, in the lane's memory */
    fs_attribution_layer layers[LAYERS];
    double *gradients; /* N x ALL, on the host */
} layered;

static float *send_normals(const lane *l, int64_t count, uint64_t seed, float **host)
{
    *host = room(count, sizeof **host);
    for (int64_t i = 0; i < count; i++) (*host)[i] = (float)normal_at(seed, i);
    return sent(l, *host, count * (int64_t)sizeof **host);
}
static fs_matrix batch_there(float *data, int64_t rows, int64_t width)
{
    fs_matrix m = fs_batch_major(data, rows, width, FS_F32);
    m.memory = device_place();
    return m;
}
static layered layered_open(const lane *l, int64_t N)
{
    layered b = {.gradients = room(N * ALL, sizeof(double))};
    float *s, *x, *t, *y, *z;
    b.outputs = send_normals(l, N * TOKENS * OUT, 1, &s), b.inputs = send_normals(l, N * TOKENS * IN, 2, &x);
    b.other_outputs = send_normals(l, N * OTHER_OUT, 3, &t), b.other_inputs = send_normals(l, N * OTHER_IN, 4, &y);
    b.tensor = send_normals(l, N * TENSOR, 5, &z);
    const fs_matrix outputs = batch_there(b.outputs, N * TOKENS, OUT), none = {.data = NULL};
    b.layers[0] = (fs_attribution_layer){outputs, batch_there(b.inputs, N * TOKENS, IN), TOKENS};
    b.layers[1] = (fs_attribution_layer){outputs, none, TOKENS};
    b.layers[2].output_gradients = batch_there(b.other_outputs, N, OTHER_OUT);
    b.layers[2].inputs = batch_there(b.other_inputs, N, OTHER_IN);
    b.layers[2].tokens = 1;
    b.layers[3] = (fs_attribution_layer){batch_there(b.tensor, N, TENSOR), none, 1};
    memset(b.gradients, 0, (size_t)(N * ALL) * sizeof *b.gradients);
    for (int64_t n = 0; n < N; n++) {
        double *weight = b.gradients + n * ALL, *bias = weight + OUT * IN, *other = bias + OUT;
        for (int64_t at = n * TOKENS; at < (n + 1) * TOKENS; at++)
            for (int64_t u = 0; u < OUT; u++) {
                bias[u] += s[at * OUT + u];
                for (int64_t v = 0; v < IN; v++) weight[u * IN + v] += (double)s[at * OUT + u] * x[at * IN + v];
            }
        for (int64_t i = 0; i < OTHER_OUT * OTHER_IN; i++)
            other[i] = (double)t[n * OTHER_OUT + i / OTHER_IN] * y[n * OTHER_IN + i % OTHER_IN];
        for (int64_t i = 0; i < TENSOR; i++) other[OTHER_OUT * OTHER_IN + i] = z[n * TENSOR + i];
    }
    free(s), free(x), free(t), free(y), free(z);
    return b;
}
static void layered_close(const lane *l, layered *b)
{
    device_free(l->stream, b->outputs), device_free(l->stream, b->inputs);
    device_free(l->stream, b->other_outputs), device_free(l->stream, b->other_inputs);
    device_free(l->stream, b->tensor);
    free(b->gradients);
}

static void check_layers(const lane *l, const recipe *R, int64_t N, int64_t mask)
{
    const int64_t counts[LAYERS] = {OUT * IN, OUT, OTHER_OUT * OTHER_IN, TENSOR};
    fs_attribution_options o = FS_ATTRIBUTION_INIT;
    o.examples = N, o.parts = LAYERS, o.parameters = counts, o.mask = mask;
    const fs_spec spec = spec_at(R, mask ? mask : ALL, 24, 9);
    o.sketch = &spec;
    const int64_t d = spec.d, k = spec.k;
    layered b = layered_open(l, N);
    float *features = room(N * k, sizeof *features);
    int64_t *kept = room(ALL, sizeof *kept);
    fs_attribution *g;
    fs_matrix Phi;
    MUST(fs_attribution_create(&g, l->gpu, &o));
    MUST(fs_attribution_add_layers(g, 0, b.layers));
    MUST(fs_attribution_add_layers(g, 0, b.layers)); /* the list of pairs is there already */
    MUST(fs_attribution_features(g, &Phi));
    for (int64_t j = 0; j < ALL; j++) kept[j] = j;
    MUST(fs_attribution_mask(g, kept));
    copy_out(l->stream, features, Phi.data, N * k * (int64_t)sizeof *features);
    fs_sketch *S = sketch_of(&spec);
    double *T = columns_of(S, 0, d);
    for (int64_t n = 0; n < N; n++)
        for (int64_t i = 0; i < k; i++) {
            double want = 0, size = 0;
            for (int64_t j = 0; j < d; j++) {
                const double term = T[i * d + j] * b.gradients[n * ALL + kept[j]] / sqrt(ALL);
                want += term, size += fabs(term);
            }
            if (!(fabs(features[n * k + i] - want) <= 1e-5 * size))
                fail_msg("%s, mask %d, layers: feature %d of example %d is %.9g, not %.9g", R->name, (int)mask, (int)i,
                         (int)n, (double)features[n * k + i], want);
        }
    free(T);
    fs_sketch_destroy(S);
    fs_attribution_destroy(g);
    layered_close(l, &b);
    free(features), free(kept);
}
static void features_from_layers_are_those_of_plain_loops(void **state)
{
    (void)state;
    const lane *l = lane_with_algebra();
    for (int r = 0; r < recipe_count; r++) check_layers(l, &recipes[r], 37, 0), check_layers(l, &recipes[r], 37, 400);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_and_scores_are_those_of_plain_loops),
        cmocka_unit_test(masked_features_and_scores_are_those_of_plain_loops),
        cmocka_unit_test(features_from_layers_are_those_of_plain_loops),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
