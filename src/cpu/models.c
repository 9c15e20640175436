/* models.c - the table of models.h on a CPU. */
#include <string.h>

#include "cpu/cpu.h"

static fs_result models_gather(void *state, int64_t rows, int64_t width, const float *x, const uint8_t *label,
                               const int64_t *which, float *to, uint8_t *to_label)
{
    (void)state;
    for (int64_t r = 0; r < rows; r++) {
        memcpy(to + r * width, x + which[r] * width, (size_t)width * sizeof *to);
        to_label[r] = label[which[r]];
    }
    return FS_OK;
}

static void relu_and_drop(float *a, int64_t width, const fsi_dropout *d, uint64_t seed, int64_t i)
{
    for (int64_t u = 0; u < width; u++) a[u] = a[u] > 0 ? a[u] : 0;
    for (int64_t u = 0; u < width && d->limit; u += 4) {
        const fsi_quad words = fsi_dropout_words(d, seed, i, u / 4);
        for (int64_t c = u; c < width && c < u + 4; c++) a[c] = words.w[c - u] < d->limit ? 0 : d->scale * a[c];
    }
}
static fs_result models_activate(void *state, int64_t models, int64_t rows, int64_t width, const float *bias,
                                 int64_t apart, const fsi_dropout *dropout, float *a)
{
    (void)state;
    for (int64_t m = 0; m < models; m++)
        for (int64_t i = 0; i < rows; i++, a += width) {
            for (int64_t u = 0; u < width; u++) a[u] += bias[m * apart + u];
            if (dropout) relu_and_drop(a, width, dropout, dropout->seed[m], i);
        }
    return FS_OK;
}

static fs_result models_objective(void *state, fsi_objective what, int64_t models, int64_t rows, int64_t classes,
                                  const float *z, const uint8_t *label, float *slope, double *value)
{
    (void)state;
    for (int64_t r = 0; r < models * rows; r++)
        value[r] = fsi_objective_at(what, classes, z + r * classes, label[r], rows, slope + r * classes);
    return FS_OK;
}

static fs_result models_back(void *state, int64_t count, float scale, const float *a, float *delta)
{
    (void)state;
    for (int64_t i = 0; i < count; i++) delta[i] = a[i] > 0 ? scale * delta[i] : 0;
    return FS_OK;
}

static fs_result models_row_sums(void *state, int64_t models, int64_t rows, int64_t width, const float *delta,
                                 float *sums, int64_t apart)
{
    (void)state;
    for (int64_t m = 0; m < models; m++, sums += apart) {
        memset(sums, 0, (size_t)width * sizeof *sums);
        for (int64_t i = 0; i < rows; i++, delta += width)
            for (int64_t u = 0; u < width; u++) sums[u] += delta[u];
    }
    return FS_OK;
}

static fs_result models_outer(void *state, int64_t rows, int64_t in, int64_t out, const float *a, const float *delta,
                              float *G, int64_t ld)
{
    const fsi_cpu *cpu = fsi_cpu_begin(state);
#pragma omp parallel for num_threads(cpu->threads) schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        float *W = G + r * ld;
        const float *from = a + r * in, *slope = delta + r * out;
        for (int64_t u = 0; u < out; u++)
            for (int64_t v = 0; v < in; v++) W[u * in + v] = slope[u] * from[v];
        memcpy(W + in * out, slope, (size_t)out * sizeof *slope);
    }
    return FS_OK;
}

static fs_result models_step(void *state, int64_t count, float rate, float momentum, const float *g, float *v,
                             float *theta)
{
    (void)state;
    for (int64_t i = 0; i < count; i++) {
        v[i] = momentum * v[i] + g[i];
        theta[i] -= rate * v[i];
    }
    return FS_OK;
}

/* One model at a time: its parameters, velocity and gradient stay in a core's own cache. */
const fsi_models fsi_cpu_models = {1,           models_gather,   models_activate, models_objective,
                                   models_back, models_row_sums, models_outer,    models_step};
