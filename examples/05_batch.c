/* 05_batch.c - a batch of gradients: n samples of d contiguous coordinates each, sketched to n x k.
 *
 * This is the layout that machine learning has: the memory is n x d, so A (d x n) has contiguous columns.
 * fs_batch_major is that view, nothing is copied, and the sketch with shuffle groups is the one that is fast there.
 * Inner products of gradients, which measure how alike two samples are, are those of the sketches within about |g| |h|
 * / sqrt(k). */
#include <flashsketch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 32, D = 100000, K = 1024 };

/* Uniform in [-1, 1): enough for an example (a linear congruential generator, Knuth's MMIX). */
static float next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 40) / (double)(1 << 23) - 1);
}

/* Samples 2 i and 2 i + 1 are alike: their gradients have half of themselves in common. */
static void make_gradients(float *g)
{
    uint64_t state = 1;
    for (int i = 0; i < SAMPLES; i += 2)
        for (int j = 0; j < D; j++) {
            const float common = next(&state);
            g[(size_t)i * D + j] = common + next(&state);
            g[(size_t)(i + 1) * D + j] = common + next(&state);
        }
}

static double cosine(const float *x, const float *y, int n)
{
    double xy = 0, xx = 0, yy = 0;
    for (int i = 0; i < n; i++) xy += x[i] * y[i], xx += x[i] * x[i], yy += y[i] * y[i];
    return xy / sqrt(xx * yy);
}

int main(void)
{
    static float projected[SAMPLES * K];
    float *gradients = malloc(sizeof(float) * SAMPLES * D);
    if (!gradients) return 1;
    make_gradients(gradients);

    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K, spec.seed = 7;
    spec.shuffle = FS_SHUFFLE_GROUPS;
    fs_sketch *S = NULL;
    fs_context *ctx = NULL;
    fs_matrix G = fs_batch_major(gradients, SAMPLES, D, FS_F32); /* the d x n view of n x d memory */
    fs_matrix P = fs_batch_major(projected, SAMPLES, K, FS_F32);
    if (fs_sketch_create(&S, &spec) || fs_context_create(&ctx, NULL) || fs_apply(ctx, S, 0, 1.0, &G, 0.0, &P)) {
        fprintf(stderr, "%s\n", fs_error_message());
        return 1;
    }
    double sum = 0, worst = 0;
    int pairs = 0;
    for (int i = 0; i < SAMPLES; i++)
        for (int j = 0; j < i; j++, pairs++) {
            const double off = cosine(&projected[i * K], &projected[j * K], K) -
                               cosine(&gradients[(size_t)i * D], &gradients[(size_t)j * D], D);
            sum += off * off;
            if (fabs(off) > worst) worst = fabs(off);
        }
    const double error = sqrt(sum / pairs), expected = 1 / sqrt(K);
    printf("%d gradients of %d numbers became %d numbers each\n", SAMPLES, D, K);
    printf("samples 0 and 1, which are alike: cosine %.3f, of the sketches %.3f\n",
           cosine(&gradients[0], &gradients[D], D), cosine(&projected[0], &projected[K], K));
    printf("samples 0 and 2, which are not:   cosine %.3f, of the sketches %.3f\n",
           cosine(&gradients[0], &gradients[2 * (size_t)D], D), cosine(&projected[0], &projected[2 * K], K));
    printf("over all %d pairs off by %.3f, root mean square, expected %.3f; at most by %.3f\n", pairs, error, expected,
           worst);
    fs_context_destroy(ctx);
    fs_sketch_destroy(S);
    free(gradients);
    return !(error < 1.2 * expected && worst < 5 * expected);
}
