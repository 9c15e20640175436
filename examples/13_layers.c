/* 13_layers.c - attribution without gradients: features from what a network's layers have anyway.
 *
 * A perceptron with a hidden layer is trained on 300 examples.  Example 17 is a copy of the query with the wrong label,
 * example 18 one with the right label, and the scores name them, as in 11_attribution.c.  But no gradient is formed:
 * the gradient of a weight is (slope at its output) times (its input), so a batch hands over slopes and inputs of each
 * layer, 529 numbers for an example instead of a gradient's 25729. */
#include <flashsketch_attribution.h>
#include <math.h>
#include <stdio.h>

enum { N = 300, D = 400, H = 64, K = 64, BATCH = 64, PARTS = 4 };
static const int64_t parameters[PARTS] = {H * D, H, H, 1}; /* W (H x D), b, w (1 x H), c */
static float x[N][D], query[1][D], W[H][D], b[H], w[H], c;
static int label[N]; /* 1 or -1 */

/* What the layers have of a batch: hidden values, and the margin's slopes there and at the output. */
typedef struct batch {
    float a[BATCH][H], at_a[BATCH][H], at_z[BATCH];
} batch;

/* Uniform in [-1, 1): enough for an example (a linear congruential generator, Knuth's MMIX). */
static float next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 40) / (double)(1 << 23) - 1);
}

static void make_data(void)
{
    static float truth[D];
    uint64_t state = 5;
    for (int j = 0; j < D; j++) truth[j] = next(&state), query[0][j] = next(&state);
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int j = 0; j < D; j++) x[i][j] = next(&state), sum += truth[j] * x[i][j];
        label[i] = sum > 0 ? 1 : -1;
    }
    for (int j = 0; j < D; j++) x[17][j] = x[18][j] = query[0][j];
    label[17] = -1, label[18] = 1; /* the query's own label is 1 */
    for (int u = 0; u < H; u++) {
        w[u] = next(&state) / 8;
        for (int j = 0; j < D; j++) W[u][j] = next(&state) / 20;
    }
}

/* The margin y z of one example, z = w'ReLU(W x + b) + c, and its slopes: y at z, y w at the active hidden units. */
static double margin(const float *in, int y, float *a, float *at_a)
{
    double z = c;
    for (int u = 0; u < H; u++) {
        double sum = b[u];
        for (int j = 0; j < D; j++) sum += W[u][j] * in[j];
        a[u] = sum > 0 ? (float)sum : 0;
        at_a[u] = sum > 0 ? (float)y * w[u] : 0;
        z += w[u] * a[u];
    }
    return y * z;
}

static void train(void)
{
    float a[H], at_a[H];
    for (int step = 0; step < 3; step++)
        for (int i = 0; i < N; i++) {
            const float rate = (float)(0.02 / (1 + exp(margin(x[i], label[i], a, at_a))));
            for (int u = 0; u < H; u++) {
                for (int j = 0; j < D; j++) W[u][j] += rate * at_a[u] * x[i][j];
                b[u] += rate * at_a[u];
                w[u] += rate * (float)label[i] * a[u];
            }
            c += rate * (float)label[i];
        }
}

/* The layers of `count` examples, in the order of parameters: a weight has slopes and inputs, a bias slopes alone. */
static void layers_of(float (*in)[D], const int *y, int count, batch *of, fs_attribution_layer *layers)
{
    for (int i = 0; i < count; i++) {
        margin(in[i], y[i], of->a[i], of->at_a[i]);
        of->at_z[i] = (float)y[i];
    }
    const fs_matrix inputs = fs_batch_major(in, count, D, FS_F32), hidden = fs_batch_major(of->a, count, H, FS_F32);
    const fs_matrix slopes = fs_batch_major(of->at_a, count, H, FS_F32);
    const fs_matrix last = fs_batch_major(of->at_z, count, 1, FS_F32);
    const fs_matrix none = {.data = NULL};
    layers[0] = (fs_attribution_layer){slopes, inputs, 1}; /* one token: an example meets each layer once */
    layers[1] = (fs_attribution_layer){slopes, none, 1};
    layers[2] = (fs_attribution_layer){last, hidden, 1};
    layers[3] = (fs_attribution_layer){last, none, 1};
}

static fs_result attribute(fs_attribution *g, double *scores, int64_t *best, int64_t *worst)
{
    static batch of;
    static float features[K];
    const int right = 1;
    double weights[N]; /* TRAK's: how far an example is from being learnt, 1 - p */
    fs_attribution_layer layers[PARTS];
    fs_result result = FS_OK;
    for (int i = 0; i < N; i++) weights[i] = 1 / (1 + exp(margin(x[i], label[i], of.a[0], of.at_a[0])));
    for (int first = 0; first < N && !result; first += BATCH) {
        layers_of(x + first, label + first, N - first < BATCH ? N - first : BATCH, &of, layers);
        result = fs_attribution_add_layers(g, first, layers);
    }
    fs_matrix phi = fs_row_major(features, 1, K, FS_F32), all = fs_row_major(scores, 1, N, FS_F64);
    layers_of(query, &right, 1, &of, layers);
    if (!result) result = fs_attribution_factor(g, 0.01);
    if (!result) result = fs_attribution_project_layers(g, layers, &phi);
    if (!result) result = fs_attribution_scores(g, &phi, weights, 1.0, 0.0, &all);
    if (!result) result = fs_attribution_top(&all, 0, 3, 0, best, NULL);
    if (!result) result = fs_attribution_top(&all, 0, 3, 1, worst, NULL);
    return result;
}

int main(void)
{
    static double scores[N];
    int64_t best[3], worst[3];
    make_data();
    train();
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = FS_BACKEND_CPU; /* a GPU takes layers in its own memory */
    fs_spec spec = FS_SPEC_INIT;
    spec.k = K, spec.seed = 7;
    fs_attribution_options o = FS_ATTRIBUTION_INIT;
    o.examples = N, o.parts = PARTS, o.parameters = parameters;
    o.mask = 1024, o.sketch = &spec;
    fs_context *ctx = NULL;
    fs_attribution *g = NULL;
    if (fs_context_create(&ctx, &where) || fs_attribution_create(&g, ctx, &o) || attribute(g, scores, best, worst)) {
        fprintf(stderr, "%s\n", fs_error_message());
        return 1;
    }
    printf("most helpful:");
    for (int i = 0; i < 3; i++) printf(" %d (%.4f)", (int)best[i], scores[best[i]]);
    printf("\nmost harmful:");
    for (int i = 0; i < 3; i++) printf(" %d (%.4f)", (int)worst[i], scores[worst[i]]);
    printf("\n");
    fs_attribution_destroy(g);
    fs_context_destroy(ctx);
    return !(best[0] == 18 && worst[0] == 17);
}
