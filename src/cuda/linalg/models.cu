/* models.cu - the table of models.h on a GPU: one kernel for each function.  No sum is made by atomics, and what
 * happens to an element does not depend on how many models there are. */
#include <string.h>

#include "cuda/runtime/gpu.h"

enum { FLAT = 256, WARPS = FLAT / 32 };

static unsigned flat_grid(int64_t count)
{
    const int64_t blocks = fsi_div_up(count, FLAT);
    return (unsigned)(blocks < 65535 ? blocks : 65535);
}
#define FOR_FLAT(i, count) \
    for (int64_t i = blockIdx.x * (int64_t)FLAT + threadIdx.x; i < (count); i += (int64_t)gridDim.x * FLAT)

/* A block for each row. */
static __global__ void gather_kernel(int64_t rows, int64_t width, const float *x, const uint8_t *label,
                                     const int64_t *which, float *to, uint8_t *to_label)
{
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const int64_t from = which[r];
        for (int64_t u = threadIdx.x; u < width; u += FLAT) to[r * width + u] = x[from * width + u];
        if (threadIdx.x == 0) to_label[r] = label[from];
    }
}
static fs_result models_gather(void *state, int64_t rows, int64_t width, const float *x, const uint8_t *label,
                               const int64_t *which, float *to, uint8_t *to_label)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    gather_kernel<<<flat_grid(rows * FLAT), FLAT, 0, gpu->stream>>>(rows, width, x, label, which, to, to_label);
    return FSI_LAUNCHED(gpu, "gathering examples");
}

/* A thread for four neighbouring units, whose dropout words are one draw. */
template <bool HIDDEN> static __global__ void activate_kernel(int64_t models, int64_t rows, int64_t width,
                                                              const float *bias, int64_t apart,
                                                              const __grid_constant__ fsi_dropout dropout, float *a)
{
    const int64_t quads = fsi_div_up(width, 4);
    FOR_FLAT(at, models * rows * quads)
    {
        const int64_t row = at / quads, quad = at - row * quads, model = row / rows;
        fsi_quad words = {{0, 0, 0, 0}};
        if (HIDDEN && dropout.limit) words = fsi_dropout_words(&dropout, dropout.seed[model], row - model * rows, quad);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const int64_t u = 4 * quad + c;
            if (u >= width) break;
            float x = a[row * width + u] + bias[model * apart + u];
            if (HIDDEN) x = x > 0 ? x : 0;
            if (HIDDEN && dropout.limit) x = words.w[c] < dropout.limit ? 0 : dropout.scale * x;
            a[row * width + u] = x;
        }
    }
}
static fs_result models_activate(void *state, int64_t models, int64_t rows, int64_t width, const float *bias,
                                 int64_t apart, const fsi_dropout *dropout, float *a)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    const unsigned grid = flat_grid(models * rows * fsi_div_up(width, 4));
    fsi_dropout none;
    memset(&none, 0, sizeof none);
    if (dropout) activate_kernel<true><<<grid, FLAT, 0, gpu->stream>>>(models, rows, width, bias, apart, *dropout, a);
    else activate_kernel<false><<<grid, FLAT, 0, gpu->stream>>>(models, rows, width, bias, apart, none, a);
    return FSI_LAUNCHED(gpu, "activating a layer");
}

/* A thread for each example, in blocks of a warp: there are few examples and many multiprocessors. */
static __global__ void objective_kernel(fsi_objective what, int64_t all, int64_t rows, int64_t classes, const float *z,
                                        const uint8_t *label, float *slope, double *value)
{
    for (int64_t r = blockIdx.x * 32LL + threadIdx.x; r < all; r += gridDim.x * 32LL)
        value[r] = fsi_objective_at(what, classes, z + r * classes, label[r], rows, slope + r * classes);
}
static fs_result models_objective(void *state, fsi_objective what, int64_t models, int64_t rows, int64_t classes,
                                  const float *z, const uint8_t *label, float *slope, double *value)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    objective_kernel<<<flat_grid(models * rows * (FLAT / 32)), 32, 0, gpu->stream>>>(what, models * rows, rows, classes,
                                                                                     z, label, slope, value);
    return FSI_LAUNCHED(gpu, "taking slopes at the logits");
}

static __global__ void back_kernel(int64_t count, float scale, const float *a, float *delta)
{
    FOR_FLAT(i, count) delta[i] = a[i] > 0 ? scale * delta[i] : 0;
}
static fs_result models_back(void *state, int64_t count, float scale, const float *a, float *delta)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    back_kernel<<<flat_grid(count), FLAT, 0, gpu->stream>>>(count, scale, a, delta);
    return FSI_LAUNCHED(gpu, "going back through a layer");
}

/* A thread for each sum, rows in their order. */
static __global__ void row_sums_kernel(int64_t models, int64_t rows, int64_t width, const float *delta, float *sums,
                                       int64_t apart)
{
    FOR_FLAT(at, models * width)
    {
        const int64_t model = at / width, u = at - model * width;
        const float *x = delta + model * rows * width + u;
        float sum = 0;
#pragma unroll 8
        for (int64_t i = 0; i < rows; i++) sum += x[i * width];
        sums[model * apart + u] = sum;
    }
}
static fs_result models_row_sums(void *state, int64_t models, int64_t rows, int64_t width, const float *delta,
                                 float *sums, int64_t apart)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    row_sums_kernel<<<flat_grid(models * width), FLAT, 0, gpu->stream>>>(models, rows, width, delta, sums, apart);
    return FSI_LAUNCHED(gpu, "summing slopes");
}

/* A warp for each unit of each row: a stream of stores, with no more arithmetic than the product. */
static __global__ void outer_kernel(int64_t rows, int64_t in, int64_t out, const float *a, const float *delta, float *G,
                                    int64_t ld)
{
    const int lane = threadIdx.x % 32;
    for (int64_t r = blockIdx.y; r < rows; r += gridDim.y)
        for (int64_t u = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32; u < out; u += (int64_t)gridDim.x * WARPS) {
            const float slope = delta[r * out + u], *from = a + r * in;
            float *W = G + r * ld + u * in;
#pragma unroll 4
            for (int64_t v = lane; v < in; v += 32) W[v] = slope * from[v];
            if (lane == 0) G[r * ld + in * out + u] = slope;
        }
}
static fs_result models_outer(void *state, int64_t rows, int64_t in, int64_t out, const float *a, const float *delta,
                              float *G, int64_t ld)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    const dim3 grid(flat_grid(out * 32), (unsigned)(rows < 65535 ? rows : 65535));
    outer_kernel<<<grid, FLAT, 0, gpu->stream>>>(rows, in, out, a, delta, G, ld);
    return FSI_LAUNCHED(gpu, "writing gradients");
}

/* Roundings are named, so that a step has the CPU's bits. */
static __global__ void step_kernel(int64_t count, float rate, float momentum, const float *g, float *v, float *theta)
{
    FOR_FLAT(i, count)
    {
        const float velocity = fsi_addf(fsi_mulf(momentum, v[i]), g[i]);
        v[i] = velocity;
        theta[i] = fsi_addf(theta[i], -fsi_mulf(rate, velocity));
    }
}
static fs_result models_step(void *state, int64_t count, float rate, float momentum, const float *g, float *v,
                             float *theta)
{
    fsi_gpu *gpu = (fsi_gpu *)state;
    on_device here(gpu->device);
    step_kernel<<<flat_grid(count), FLAT, 0, gpu->stream>>>(count, rate, momentum, g, v, theta);
    return FSI_LAUNCHED(gpu, "taking a step");
}

/* A step of one small model is a few microseconds of work behind some twenty launches; side by side models share
 * them. */
const fsi_models fsi_gpu_models = {FSI_MODELS_MOST, models_gather,   models_activate, models_objective,
                                   models_back,     models_row_sums, models_outer,    models_step};
