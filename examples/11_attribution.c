/* 11_attribution.c - attribution with the caller's own gradients: which training examples an answer depends on.
 *
 * A logistic regression is trained on 300 examples.  Example 17 is a copy of the query with the wrong label, example 18
 * one with the right label.  The scores alone identify the first as the most harmful of all and the second as
 * the most helpful.  Gradients come in batches of 64, 4 values of each 100 are kept and sketched (GraSS). */
#include <flashsketch_attribution.h>
#include <math.h>
#include <stdio.h>

enum { N = 300, D = 5000, K = 64, BATCH = 64, QUERIES = 1 };
static float x[N][D], query[D], theta[D];
static int label[N]; /* 1 or -1 */

/* Uniform in [-1, 1): enough for an example (a linear congruential generator, Knuth's MMIX). */
static float next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 40) / (double)(1 << 23) - 1);
}

static double margin(const float *a, int y)
{
    double sum = 0;
    for (int j = 0; j < D; j++) sum += theta[j] * a[j];
    return y * sum;
}

static void make_data(void)
{
    static float truth[D];
    uint64_t state = 5;
    for (int j = 0; j < D; j++) truth[j] = next(&state), query[j] = next(&state);
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int j = 0; j < D; j++) x[i][j] = next(&state), sum += truth[j] * x[i][j];
        label[i] = sum > 0 ? 1 : -1;
    }
    for (int j = 0; j < D; j++) x[17][j] = x[18][j] = query[j];
    label[17] = -1, label[18] = 1; /* the query's own label is 1 */
}

static void train(void)
{
    for (int step = 0; step < 10; step++)
        for (int i = 0; i < N; i++) {
            const double rate = 0.0005 / (1 + exp(margin(x[i], label[i])));
            for (int j = 0; j < D; j++) theta[j] += (float)(rate * label[i] * x[i][j]);
        }
}

/* The gradient of the margin y theta'x is y x. */
static void gradients_of(int first, int count, float *to)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < D; j++) to[i * D + j] = (float)label[first + i] * x[first + i][j];
}

static fs_result attribute(fs_attribution *g, double *scores, int64_t *best, int64_t *worst)
{
    static float batch[BATCH * D], features[QUERIES * K];
    double weights[N]; /* TRAK's: how far an example is from being learnt, 1 - p */
    fs_result result = FS_OK;
    for (int i = 0; i < N; i++) weights[i] = 1 / (1 + exp(margin(x[i], label[i])));
    for (int first = 0; first < N && !result; first += BATCH) {
        const int count = N - first < BATCH ? N - first : BATCH;
        gradients_of(first, count, batch);
        const fs_matrix G = fs_batch_major(batch, count, D, FS_F32);
        result = fs_attribution_add(g, first, &G);
    }
    fs_matrix q = fs_batch_major(query, QUERIES, D, FS_F32), phi = fs_row_major(features, QUERIES, K, FS_F32);
    fs_matrix all = fs_row_major(scores, QUERIES, N, FS_F64);
    if (!result) result = fs_attribution_factor(g, 0.1);
    if (!result) result = fs_attribution_project(g, &q, &phi);
    if (!result) result = fs_attribution_scores(g, &phi, weights, 1.0, 0.0, &all);
    if (!result) result = fs_attribution_top(&all, 0, 3, 0, best, NULL);
    if (!result) result = fs_attribution_top(&all, 0, 3, 1, worst, NULL);
    return result;
}

int main(void)
{
    static double scores[N];
    const int64_t parameters[] = {D};
    int64_t best[3], worst[3];
    make_data();
    train();
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = FS_BACKEND_CPU; /* a GPU takes gradients in its own memory where there is a mask */
    fs_spec spec = FS_SPEC_INIT;
    spec.k = K, spec.seed = 7;
    fs_attribution_options o = FS_ATTRIBUTION_INIT;
    o.examples = N, o.parts = 1, o.parameters = parameters;
    o.mask = D / 25, o.sketch = &spec;
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
