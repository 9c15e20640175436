/* grass.c - perceptrons, their training and gradients, features and scores on a GPU, in its memory.
 *
 * The judge is plain loops in double: a machine with a GPU need not have an OpenBLAS, without which a CPU context has
 * no perceptrons.  (tests/grass tries the same code on a CPU against finite differences.)  Where the GPU's linear algebra
 * cannot be loaded the tests are skipped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "flashsketch_attribution.h"
#include "apps/grass/lds.h"
#include "attribution/random.h"
#include "apps/grass/train.h"

static const mlp_shape uneven = {3, {37, 26, 17, 10}}; /* no width is a multiple of 4 ... */
static const mlp_shape recipe_shape = {3, {784, 128, 64, 10}};
static const mlp_shape linear = {1, {20, 3}}; /* ... and no layer is hidden */

/* Ends the test as skipped where the libraries are missing. */
static const lane *lane_with_algebra(void)
{
    const lane *l = &lanes[0];
    mlp net;
    const fs_result result = mlp_open(&net, l->gpu, &linear, 1, 1);
    if (result == FS_EBACKEND && strstr(fs_error_message(), "could not be loaded")) skip_because(fs_error_message());
    MUST(result);
    mlp_close(&net);
    return l;
}

static void *sent(const lane *l, const void *host, int64_t bytes)
{
    void *device = device_alloc(l->stream, bytes);
    copy_in(l->stream, device, host, bytes);
    return device;
}

/* plain loops ------------------------------------------------------------------------------------------------ */

/* Adds scale times the gradient of one example's margin or cross-entropy to g; returns its value.  dropout NULL: none;
 * `row` is the example's in its batch, of model `model`. */
static double judge(const mlp_shape *shape, const double *theta, const float *x, int y, fsi_objective what,
                    const mlp_dropout *dropout, int64_t model, int64_t row, double scale, double *g)
{
    double *a[MLP_LAYERS + 1], *delta[MLP_LAYERS + 1];
    const int last = shape->layers;
    const int64_t classes = shape->width[last];
    for (int l = 0; l <= last; l++)
        a[l] = room(shape->width[l], sizeof(double)), delta[l] = room(shape->width[l], sizeof(double));
    for (int64_t v = 0; v < shape->width[0]; v++) a[0][v] = x[v];
    for (int l = 0; l < last; l++) {
        const double *W = theta + mlp_layer_at(shape, l), *b = W + shape->width[l] * shape->width[l + 1];
        for (int64_t u = 0; u < shape->width[l + 1]; u++) {
            double z = b[u];
            for (int64_t v = 0; v < shape->width[l]; v++) z += W[u * shape->width[l] + v] * a[l][v];
            if (l + 1 < last) {
                if (z < 0 || (dropout && mlp_drops(dropout, model, l + 1, row, u))) z = 0;
                if (dropout) z /= 1 - dropout->rate;
            }
            a[l + 1][u] = z;
        }
    }
    double all = 0, others = 0;
    for (int64_t j = 0; j < classes; j++) all += exp(a[last][j]), others += j == y ? 0 : exp(a[last][j]);
    for (int64_t j = 0; j < classes; j++) {
        const double p = exp(a[last][j]);
        delta[last][j] = scale * (what == FSI_MARGIN ? (j == y ? 1 : -p / others) : p / all - (j == y));
    }
    for (int l = last - 1; l >= 0; l--) {
        const int64_t in = shape->width[l], out = shape->width[l + 1], at_layer = mlp_layer_at(shape, l);
        for (int64_t u = 0; u < out; u++) {
            for (int64_t v = 0; v < in; v++) g[at_layer + u * in + v] += delta[l + 1][u] * a[l][v];
            g[at_layer + in * out + u] += delta[l + 1][u];
        }
        for (int64_t v = 0; v < in && l; v++) {
            delta[l][v] = 0;
            for (int64_t u = 0; u < out; u++) delta[l][v] += theta[at_layer + u * in + v] * delta[l + 1][u];
            delta[l][v] = a[l][v] > 0 ? delta[l][v] / (dropout ? 1 - dropout->rate : 1) : 0;
        }
    }
    const double value = what == FSI_MARGIN ? a[last][y] - log(others) : log(all) - a[last][y];
    for (int l = 0; l <= last; l++) free(a[l]), free(delta[l]);
    return value;
}

static void expect_near(const char *what, int64_t count, const float *got, const double *want, double slack)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(want[i]));
    assert_true(most > 0);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= slack * most))
            fail_msg("%s: number %lld is %.9g, not %.9g; the largest is %.3g", what, (long long)i, (double)got[i],
                     want[i], most);
}

/* images of three classes around three points */
static grass_images clusters(int64_t count, int64_t pixels)
{
    grass_images d = {count, pixels, room(count * pixels, sizeof(float)), room(count, 1)};
    for (int64_t i = 0; i < count; i++) {
        d.label[i] = (uint8_t)(i % 3);
        for (int64_t u = 0; u < pixels; u++)
            d.x[pixels * i + u] = (float)(0.7 * normal_at(100 + (uint64_t)(i % 3), u) +
                                          0.5 * normal_at(7, pixels * i + u));
    }
    return d;
}
static grass_images images_sent(const lane *l, const grass_images *host)
{
    return (grass_images){host->count, host->pixels,
                          sent(l, host->x, host->count * host->pixels * (int64_t)sizeof *host->x),
                          sent(l, host->label, host->count)};
}
static void images_free(const lane *l, grass_images *host, grass_images *placed)
{
    device_free(l->stream, placed->x), device_free(l->stream, placed->label);
    free(host->x), free(host->label);
}

/* gradients -------------------------------------------------------------------------------------------------- */

/* Every example's gradient of the margin, rows of G further apart than they are long; what is between is untouched. */
static void check_gradients(const lane *l, const mlp_shape *shape, int64_t rows)
{
    const int64_t p = mlp_parameters(shape), ld = p + 13;
    float *theta = room(p, sizeof *theta), *G = memset(room(rows * ld, sizeof *G), 0xFF, (size_t)(rows * ld) * 4);
    double *exact = room(p, sizeof *exact), *want = room(p, sizeof *want), *f = room(rows, sizeof *f);
    grass_images host = clusters(rows, shape->width[0]), placed = images_sent(l, &host);
    float *device = sent(l, G, rows * ld * (int64_t)sizeof *G);
    double *margins = device_alloc(l->stream, rows * (int64_t)sizeof *f);
    mlp net;
    mlp_init(shape, 8, theta);
    for (int64_t j = 0; j < p; j++) exact[j] = theta[j] *= 2;
    MUST(mlp_open(&net, l->gpu, shape, rows + 5, 1));
    MUST(mlp_set(&net, 0, theta));
    MUST(mlp_forward(&net, placed.x, rows, NULL));
    MUST(mlp_margin(&net, rows, placed.label, margins));
    MUST(mlp_gradients(&net, rows, device, ld));
    stream_wait(l->stream);
    copy_out(l->stream, G, device, rows * ld * (int64_t)sizeof *G);
    copy_out(l->stream, f, margins, rows * (int64_t)sizeof *f);
    for (int64_t i = 0; i < rows; i++) {
        memset(want, 0, (size_t)p * sizeof *want);
        const double value = judge(shape, exact, host.x + i * host.pixels, host.label[i], FSI_MARGIN, NULL, 0, i, 1,
                                   want);
        if (!(fabs(f[i] - value) <= 1e-5 * (1 + fabs(value)))) fail_msg("margin %d: %g, not %g", (int)i, f[i], value);
        expect_near("a gradient", p, G + i * ld, want, 2e-5);
        for (int64_t j = p; j < ld; j++) assert_true(isnan(G[i * ld + j]));
    }
    mlp_close(&net);
    images_free(l, &host, &placed);
    device_free(l->stream, device), device_free(l->stream, margins);
    free(theta), free(G), free(exact), free(want), free(f);
}
static void gradients_are_those_of_plain_loops(void **state)
{
    (void)state;
    const lane *l = lane_with_algebra();
    check_gradients(l, &uneven, 33);
    check_gradients(l, &linear, 1);
    check_gradients(l, &recipe_shape, small_set ? 3 : 70);
}

/* training --------------------------------------------------------------------------------------------------- */

enum { IMAGES = 30, COUNT_ = 21, BATCH = 8, EPOCHS = 2, MODELS = 3 };
static const train_recipe how = {0.05, 0.9, 0.25, BATCH, EPOCHS};

/* The subset of model j: 21 of 30 images. */
static void choose(int64_t j, int64_t *chosen)
{
    for (int64_t i = 0; i < COUNT_; i++) chosen[i] = (i + 5 * j) % IMAGES;
}

/* Two epochs of batches of 8, 8 and 5, step by step. */
static double judge_training(const grass_images *images, const int64_t *chosen, uint64_t seed, double *theta)
{
    const int64_t p = mlp_parameters(&uneven);
    float *start = room(p, sizeof *start);
    double *v = room(p, sizeof *v), *g = room(p, sizeof *g), loss = 0;
    mlp_init(&uneven, seed, start);
    for (int64_t j = 0; j < p; j++) theta[j] = start[j], v[j] = 0;
    for (int64_t e = 0, step = 0; e < EPOCHS; e++) {
        const fsi_bijection order = fsi_bijection_make(seed, GRASS_TAG_ORDER, (uint32_t)e, COUNT_);
        loss = 0;
        for (int64_t first = 0; first < COUNT_; first += BATCH, step++) {
            const int64_t rows = COUNT_ - first < BATCH ? COUNT_ - first : BATCH;
            const mlp_dropout dropout = {how.dropout, (uint32_t)step, {seed}};
            memset(g, 0, (size_t)p * sizeof *g);
            for (int64_t i = 0; i < rows; i++) {
                const int64_t image = chosen[fsi_permute(&order, (uint64_t)(first + i))];
                loss += judge(&uneven, theta, images->x + image * images->pixels, images->label[image],
                              FSI_CROSS_ENTROPY, &dropout, 0, i, 1.0 / (double)rows, g);
            }
            for (int64_t j = 0; j < p; j++) v[j] = how.momentum * v[j] + g[j], theta[j] -= how.rate * v[j];
        }
    }
    free(start), free(v), free(g);
    return loss / COUNT_;
}

/* Trains `count` models from number `first` on. */
static void train(const lane *l, const grass_images *images, int64_t slots, int64_t first, int64_t count, float *theta,
                  double *loss)
{
    const int64_t p = mlp_parameters(&uneven);
    int64_t chosen[MODELS][COUNT_];
    train_job jobs[MODELS];
    trainer t;
    for (int64_t j = 0; j < count; j++) {
        choose(first + j, chosen[j]);
        jobs[j] = (train_job){chosen[j], 40 + (uint64_t)(first + j), theta + j * p, 0};
    }
    MUST(trainer_open(&t, l->gpu, &uneven, &how, images, COUNT_, slots));
    MUST(trainer_run(&t, jobs, count));
    trainer_close(&t);
    for (int64_t j = 0; j < count; j++) loss[j] = jobs[j].loss;
}

/* Three models side by side are those of plain loops, which drop the same units; they have the same bits another time,
 * and each of them when the others are not wanted. */
static void training_is_that_of_plain_loops_and_the_same_bits_again(void **state)
{
    (void)state;
    const lane *l = lane_with_algebra();
    const int64_t p = mlp_parameters(&uneven), slots = dry ? 4 : 0; /* 0: as many as suit the GPU */
    grass_images host = clusters(IMAGES, uneven.width[0]), placed = images_sent(l, &host);
    float *theta = room(MODELS * p, sizeof *theta), *again = room(MODELS * p, sizeof *again);
    double *want = room(p, sizeof *want), loss[MODELS], same[MODELS];
    train(l, &placed, slots, 0, MODELS, theta, loss);
    for (int64_t j = 0; j < MODELS; j++) {
        int64_t chosen[COUNT_];
        choose(j, chosen);
        const double mean = judge_training(&host, chosen, 40 + (uint64_t)j, want);
        if (!(fabs(loss[j] - mean) <= 1e-5 * mean)) fail_msg("loss of model %d: %g, not %g", (int)j, loss[j], mean);
        expect_near("parameters", p, theta + j * p, want, 2e-5);
    }
    train(l, &placed, slots, 0, MODELS, again, same);
    if (memcmp(theta, again, (size_t)(MODELS * p) * sizeof *theta)) fail_msg("other bits another time");
    for (int64_t j = 0; j < MODELS; j++) {
        train(l, &placed, slots, j, 1, again, same);
        if (memcmp(theta + j * p, again, (size_t)p * sizeof *theta)) fail_msg("model %d has other bits alone", (int)j);
    }
    images_free(l, &host, &placed);
    free(theta), free(again), free(want);
}

/* features and scores ---------------------------------------------------------------------------------------- */

/* x = K^-1 x by elimination, K symmetric positive definite, spoilt. */
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
    float *output_gradients, *inputs, *other_slopes, *other_inputs, *tensor; /* batch-major, in the lane's memory */
    fs_attribution_layer layers[LAYERS];
    double *gradients; /* N x ALL, on the host */
} layered;

static float *send_normals(const lane *l, int64_t count, uint64_t seed, float **host)
{
    *host = room(count, sizeof **host);
    for (int64_t i = 0; i < count; i++) (*host)[i] = (float)normal_at(seed, i);
    return sent(l, *host, count * (int64_t)sizeof **host);
}
static fs_matrix placed_batch(float *data, int64_t rows, int64_t width)
{
    fs_matrix m = fs_batch_major(data, rows, width, FS_F32);
    m.memory = device_place();
    return m;
}
static layered layered_open(const lane *l, int64_t N)
{
    layered b = {.gradients = room(N * ALL, sizeof(double))};
    float *s, *x, *t, *y, *z;
    b.output_gradients = send_normals(l, N * TOKENS * OUT, 1, &s), b.inputs = send_normals(l, N * TOKENS * IN, 2, &x);
    b.other_slopes = send_normals(l, N * OTHER_OUT, 3, &t), b.other_inputs = send_normals(l, N * OTHER_IN, 4, &y);
    b.tensor = send_normals(l, N * TENSOR, 5, &z);
    const fs_matrix slopes = placed_batch(b.output_gradients, N * TOKENS, OUT), none = {.data = NULL};
    b.layers[0] = (fs_attribution_layer){slopes, placed_batch(b.inputs, N * TOKENS, IN), TOKENS};
    b.layers[1] = (fs_attribution_layer){slopes, none, TOKENS};
    b.layers[2].output_gradients = placed_batch(b.other_slopes, N, OTHER_OUT);
    b.layers[2].inputs = placed_batch(b.other_inputs, N, OTHER_IN);
    b.layers[2].tokens = 1;
    b.layers[3] = (fs_attribution_layer){placed_batch(b.tensor, N, TENSOR), none, 1};
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
    device_free(l->stream, b->output_gradients), device_free(l->stream, b->inputs);
    device_free(l->stream, b->other_slopes), device_free(l->stream, b->other_inputs);
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

/* the experiment --------------------------------------------------------------------------------------------- */

enum { PIXELS = 36, TRAIN = 200, TESTS = 60, HALF = TRAIN / 2, SUBSETS = 40, ENSEMBLE = 5, FEATURES = 96 };
static const mlp_shape blob_shape = {3, {PIXELS, 16, 12, 10}};

static grass_images blobs(int64_t count, uint64_t seed)
{
    grass_images d = {count, PIXELS, room(count * PIXELS, sizeof(float)), room(count, 1)};
    for (int64_t i = 0; i < count; i++) {
        d.label[i] = (uint8_t)(bits_at(seed, i) % 4);
        for (int64_t u = 0; u < PIXELS; u++)
            d.x[i * PIXELS + u] = (float)(0.35 * normal_at(90 + d.label[i], u) + normal_at(seed + 1, i * PIXELS + u));
    }
    return d;
}

/* Adds a model's scores of the test images: by layers with a mask, by formed gradients without one, as the experiment
 * does. */
static void score(const lane *l, mlp *net, const grass_images *train_images, const grass_images *test_images,
                  int64_t mask, int64_t model, double *scores)
{
    const int64_t p = net->parameters, *w = blob_shape.width;
    const int64_t counts[] = {w[0] * w[1], w[1], w[1] * w[2], w[2], w[2] * w[3], w[3]};
    fs_attribution_options o = FS_ATTRIBUTION_INIT;
    o.examples = TRAIN, o.parts = mask ? 6 : 1, o.parameters = mask ? counts : &p, o.mask = mask;
    fs_spec spec = FS_SPEC_INIT;
    spec.k = FEATURES, spec.seed = 42 + 100000 * (uint64_t)model;
    o.sketch = &spec;
    float *gradients = device_alloc(l->stream, TRAIN * p * (int64_t)sizeof *gradients);
    float *features = device_alloc(l->stream, TESTS * FEATURES * (int64_t)sizeof *features);
    double *margins = device_alloc(l->stream, TRAIN * (int64_t)sizeof *margins);
    fs_matrix phi = fs_row_major(features, TESTS, FEATURES, FS_F32), to = fs_row_major(scores, TESTS, TRAIN, FS_F64);
    phi.memory = device_place();
    fs_attribution *g;
    MUST(fs_attribution_create(&g, l->gpu, &o));
    for (int test = 0; test < 2; test++) {
        const grass_images *images = test ? test_images : train_images;
        const fs_matrix G = placed_batch(gradients, images->count, p);
        fs_attribution_layer layers[6];
        MUST(mlp_forward(net, images->x, images->count, NULL));
        MUST(mlp_margin(net, images->count, images->label, margins));
        if (mask) {
            MUST(mlp_layers(net, images->count, layers));
            MUST(test ? fs_attribution_project_layers(g, layers, &phi) : fs_attribution_add_layers(g, 0, layers));
            continue;
        }
        MUST(mlp_gradients(net, images->count, gradients, p));
        MUST(test ? fs_attribution_project(g, &G, &phi) : fs_attribution_add(g, 0, &G));
    }
    MUST(fs_attribution_factor(g, 0.1));
    MUST(fs_attribution_scores(g, &phi, NULL, 1.0 / ENSEMBLE, model ? 1.0 : 0.0, &to));
    fs_attribution_destroy(g);
    device_free(l->stream, gradients), device_free(l->stream, features), device_free(l->stream, margins);
}

/* Trains models on halves of images whose classes are blobs, scores training images by gradients of the first ones, and
 * asks whether sums of scores predict what all of them say. */
static void check_lds(int64_t mask)
{
    const lane *l = lane_with_algebra();
    const train_recipe steps = {0.05, 0.9, 0.1, 16, small_set ? 1 : 15};
    const int64_t p = mlp_parameters(&blob_shape);
    grass_images train_host = blobs(TRAIN, 1), train_there = images_sent(l, &train_host);
    grass_images test_host = blobs(TESTS, 3), test_there = images_sent(l, &test_host);
    int64_t *chosen = room(SUBSETS * HALF, sizeof *chosen);
    float *theta = room(SUBSETS * p, sizeof *theta);
    double *y = room(SUBSETS * TESTS, 8), *scores = room(TESTS * TRAIN, 8);
    double *losses = device_alloc(l->stream, TESTS * (int64_t)sizeof *losses);
    double lds[TESTS], work[5 * SUBSETS + 2 * TESTS + LDS_SAMPLES];
    trainer t;
    mlp net;
    MUST(trainer_open(&t, l->gpu, &blob_shape, &steps, &train_there, HALF, 0));
    for (int64_t first = 0; first < SUBSETS; first += t.net.models) {
        train_job jobs[MLP_MODELS];
        const int64_t some = SUBSETS - first < t.net.models ? SUBSETS - first : t.net.models;
        for (int64_t i = first; i < first + some; i++) {
            grass_choose(7, GRASS_TAG_SUBSET, (uint32_t)i, TRAIN, HALF, chosen + i * HALF);
            jobs[i - first] = (train_job){chosen + i * HALF, 7 + (uint64_t)i, theta + i * p, 0};
        }
        MUST(trainer_run(&t, jobs, some));
    }
    trainer_close(&t);
    MUST(mlp_open(&net, l->gpu, &blob_shape, TRAIN, 1));
    for (int64_t i = 0; i < SUBSETS; i++) {
        MUST(mlp_set(&net, 0, theta + i * p));
        MUST(train_losses(&net, &test_there, losses, y + i * TESTS));
        for (int64_t j = 0; j < TESTS; j++) y[i * TESTS + j] = -y[i * TESTS + j];
        if (i < ENSEMBLE) score(l, &net, &train_there, &test_there, mask, i, scores);
    }
    mlp_close(&net);
    lds_of(TESTS, TRAIN, SUBSETS, HALF, scores, chosen, y, lds, work);
    const lds_summary sum = lds_summarise(TESTS, 1, lds, 1, work);
    printf("    mask %d: LDS %.3f [%.3f, %.3f]\n", (int)mask, sum.mean, sum.low, sum.high);
    assert_true(sum.count == TESTS);
    if (!small_set && !(sum.mean > 0.1 && sum.low > 0.05))
        fail_msg("mask %d: LDS %.3f [%.3f, %.3f]", (int)mask, sum.mean, sum.low, sum.high);
    images_free(l, &train_host, &train_there), images_free(l, &test_host, &test_there);
    device_free(l->stream, losses);
    free(chosen), free(theta), free(y), free(scores);
}
static void sketched_gradients_predict_what_models_say(void **state)
{
    (void)state;
    check_lds(0);
}
static void masked_gradients_predict_what_models_say(void **state)
{
    (void)state;
    check_lds(4 * FEATURES);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_plain_loops),
        cmocka_unit_test(training_is_that_of_plain_loops_and_the_same_bits_again),
        cmocka_unit_test(features_and_scores_are_those_of_plain_loops),
        cmocka_unit_test(masked_features_and_scores_are_those_of_plain_loops),
        cmocka_unit_test(features_from_layers_are_those_of_plain_loops),
        cmocka_unit_test(sketched_gradients_predict_what_models_say),
        cmocka_unit_test(masked_gradients_predict_what_models_say),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
