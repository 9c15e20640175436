/* ops_cuda.cu - the operations of perceptrons on a GPU: one kernel for each, and cuBLAS, opened at run time, for products.
 *
 * No sum uses atomics, and the arithmetic of an element does not depend on the number of models.  cuBLAS's functions
 * are declared here, so that its headers are not needed to build; the numbers are those of cublas_api.h, which have not
 * changed since CUDA 8. */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum { FLAT = 256, WARPS = FLAT / 32 };
static const int64_t MOST_BLOCKS = 65535;

typedef struct gpu_state {
    grass_fail *fail;
    int device;
    cudaStream_t stream;
    char name[256]; /* of the GPU */
    void *library;  /* dlopen's handle of cuBLAS */
    void *blas;     /* cuBLAS's own */
    int (*create)(void **);
    int (*destroy)(void *);
    int (*set_stream)(void *, cudaStream_t);
    int (*sgemm)(void *, int, int, int, int, int, const float *, const float *, int, long long, const float *, int,
                 long long, const float *, float *, int, long long, int);
} gpu_state;

#define TRY(call) \
    do { \
        const fs_result result_ = (call); \
        if (result_ != FS_OK) return result_; \
    } while (0)

/* The state's device while a call lasts, the caller's afterwards. */
class on_device {
    int before;

public:
    explicit on_device(int device)
    {
        cudaGetDevice(&before);
        if (before != device) cudaSetDevice(device);
    }
    ~on_device()
    {
        int now;
        cudaGetDevice(&now);
        if (now != before) cudaSetDevice(before);
    }
};

/* FS_OK, or FS_ENOMEM or FS_EBACKEND with the action that failed and CUDA's message. */
static fs_result check_cuda(const gpu_state *gpu, cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return FS_OK;
    cudaGetLastError(); /* so that the next call does not report it again */
    return gpu->fail(error == cudaErrorMemoryAllocation ? FS_ENOMEM : FS_EBACKEND, "%s on %s: %s", what, gpu->name,
                     cudaGetErrorString(error));
}
#define LAUNCHED(gpu, what) check_cuda((gpu), cudaGetLastError(), (what))

static fs_result check_cublas(const gpu_state *gpu, int status, const char *what)
{
    return status == 0 ? FS_OK : gpu->fail(FS_EBACKEND, "%s on %s: status %d", what, gpu->name, status);
}

/* opening ---------------------------------------------------------------------------------------------------- */

static fs_result load_cublas(gpu_state *gpu)
{
    /* The names the library tries, in its order, so that a process has one cuBLAS.  It stays loaded: it is large. */
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so"};
    char why[256] = "";
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !gpu->library; i++) {
        gpu->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        const char *reason = gpu->library ? NULL : dlerror();
        if (reason && !*why) snprintf(why, sizeof why, "%s", reason);
    }
    if (!gpu->library)
        return gpu->fail(FS_EBACKEND, "perceptrons on a GPU need cuBLAS, which could not be loaded: %s", why);
    const struct {
        void *function;
        const char *name;
    } wanted[] = {
        {&gpu->create, "cublasCreate_v2"},
        {&gpu->destroy, "cublasDestroy_v2"},
        {&gpu->set_stream, "cublasSetStream_v2"},
        {&gpu->sgemm, "cublasSgemmStridedBatched"},
    };
    for (const auto &w : wanted) {
        void *found = dlsym(gpu->library, w.name);
        if (!found) return gpu->fail(FS_EBACKEND, "cuBLAS has no %s, which perceptrons need", w.name);
        memcpy(w.function, &found, sizeof found);
    }
    return FS_OK;
}

static fs_result open_gpu(gpu_state *gpu)
{
    cudaDeviceProp properties;
    TRY(check_cuda(gpu, cudaGetDeviceProperties(&properties, gpu->device), "reading the properties"));
    snprintf(gpu->name, sizeof gpu->name, "%s", properties.name);
    on_device here(gpu->device);
    TRY(load_cublas(gpu));
    TRY(check_cublas(gpu, gpu->create(&gpu->blas), "opening cuBLAS"));
    return check_cublas(gpu, gpu->set_stream(gpu->blas, gpu->stream), "setting the stream of cuBLAS");
}

static void gpu_close(void *state)
{
    gpu_state *gpu = (gpu_state *)state;
    on_device here(gpu->device);
    cudaStreamSynchronize(gpu->stream);
    if (gpu->blas) gpu->destroy(gpu->blas);
    if (gpu->library) dlclose(gpu->library);
    free(gpu);
}

static fs_result gpu_open(void **state, fs_context *ctx, const fs_context_options *options, grass_fail *fail)
{
    (void)ctx;
    gpu_state *gpu = (gpu_state *)calloc(1, sizeof *gpu);
    if (!gpu) return fail(FS_ENOMEM, "no memory for the %zu bytes of a GPU's state", sizeof *gpu);
    gpu->fail = fail;
    gpu->device = options->device;
    gpu->stream = (cudaStream_t)options->stream;
    snprintf(gpu->name, sizeof gpu->name, "device %d", gpu->device);
    const fs_result result = open_gpu(gpu);
    if (result == FS_OK) *state = gpu;
    else gpu_close(gpu);
    return result;
}

/* memory ----------------------------------------------------------------------------------------------------- */

static fs_result gpu_alloc(void *state, size_t bytes, void **memory)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    size_t free_bytes = 0, all = 0;
    const cudaError_t error = cudaMalloc(memory, bytes ? bytes : 1);
    if (error != cudaErrorMemoryAllocation) return check_cuda(gpu, error, "allocating memory of a perceptron");
    cudaGetLastError();
    cudaMemGetInfo(&free_bytes, &all);
    return gpu->fail(FS_ENOMEM, "no memory for %zu bytes of a perceptron on %s: %zu are free", bytes, gpu->name,
                     free_bytes);
}

static fs_result gpu_wait(void *state)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    return check_cuda(gpu, cudaStreamSynchronize(gpu->stream), "waiting for the stream");
}

static void gpu_release(void *state, void *memory)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    cudaStreamSynchronize(gpu->stream);
    cudaFree(memory);
}

static fs_result gpu_fetch(void *state, const void *from, size_t bytes, void *host)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    TRY(check_cuda(gpu, cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, gpu->stream),
                   "copying to the host"));
    return gpu_wait(state);
}

static fs_result gpu_send(void *state, const void *host, size_t bytes, void *to)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    TRY(check_cuda(gpu, cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, gpu->stream),
                   "copying from the host"));
    return gpu_wait(state);
}

static fs_result gpu_zero(void *state, void *x, size_t bytes)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    return check_cuda(gpu, cudaMemsetAsync(x, 0, bytes, gpu->stream), "clearing memory");
}

/* products --------------------------------------------------------------------------------------------------- */

/* cuBLAS picks its kernel by the shape and by `count`, and gives the same bits from run to run: atomics and TF32 are
 * off unless asked for, and a handle has one stream. */
static fs_result gpu_gemm(void *state, int ta, int tb, int64_t m, int64_t n, int64_t k, const float *A, int64_t lda,
                          int64_t a_stride, const float *B, int64_t ldb, int64_t b_stride, float *C, int64_t ldc,
                          int64_t c_stride, int64_t count)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    const float one = 1, none = 0;
    return check_cublas(gpu,
                        gpu->sgemm(gpu->blas, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, (int)m,
                                   (int)n, (int)k, &one, A, (int)lda, a_stride, B, (int)ldb, b_stride, &none, C,
                                   (int)ldc, c_stride, (int)count),
                        "gemm");
}

/* elements --------------------------------------------------------------------------------------------------- */

static unsigned flat_grid(int64_t count)
{
    const int64_t blocks = (count + FLAT - 1) / FLAT;
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
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
static fs_result gpu_gather(void *state, int64_t rows, int64_t width, const float *x, const uint8_t *label,
                            const int64_t *which, float *to, uint8_t *to_label)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    gather_kernel<<<flat_grid(rows * FLAT), FLAT, 0, gpu->stream>>>(rows, width, x, label, which, to, to_label);
    return LAUNCHED(gpu, "gathering examples");
}

/* A thread for four neighbouring units, whose dropout words are one draw. */
template <bool HIDDEN> static __global__ void activate_kernel(int64_t models, int64_t rows, int64_t width,
                                                              const float *bias, int64_t stride,
                                                              const __grid_constant__ grass_dropout dropout, float *a)
{
    const int64_t quads = (width + 3) / 4;
    FOR_FLAT(at, models * rows * quads)
    {
        const int64_t row = at / quads, quad = at - row * quads, model = row / rows;
        fsi_quad words = {{0, 0, 0, 0}};
        if (HIDDEN && dropout.limit)
            words = grass_dropout_words(&dropout, dropout.seed[model], row - model * rows, quad);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const int64_t u = 4 * quad + c;
            if (u >= width) break;
            float x = a[row * width + u] + bias[model * stride + u];
            if (HIDDEN) x = x > 0 ? x : 0;
            if (HIDDEN && dropout.limit) x = words.w[c] < dropout.limit ? 0 : dropout.scale * x;
            a[row * width + u] = x;
        }
    }
}
static fs_result gpu_activate(void *state, int64_t models, int64_t rows, int64_t width, const float *bias,
                              int64_t stride, const grass_dropout *dropout, float *a)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    const unsigned grid = flat_grid(models * rows * ((width + 3) / 4));
    grass_dropout none;
    memset(&none, 0, sizeof none);
    if (dropout) activate_kernel<true><<<grid, FLAT, 0, gpu->stream>>>(models, rows, width, bias, stride, *dropout, a);
    else activate_kernel<false><<<grid, FLAT, 0, gpu->stream>>>(models, rows, width, bias, stride, none, a);
    return LAUNCHED(gpu, "activating a layer");
}

/* A thread for each example, in blocks of a warp: there are few examples and many SMs. */
static __global__ void objective_kernel(grass_objective what, int64_t all, int64_t rows, int64_t classes,
                                        const float *z, const uint8_t *label, float *delta, double *value)
{
    for (int64_t r = blockIdx.x * 32LL + threadIdx.x; r < all; r += gridDim.x * 32LL)
        value[r] = grass_objective_at(what, classes, z + r * classes, label[r], rows, delta + r * classes);
}
static fs_result gpu_objective(void *state, grass_objective what, int64_t models, int64_t rows, int64_t classes,
                               const float *z, const uint8_t *label, float *delta, double *value)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    objective_kernel<<<flat_grid(models * rows * (FLAT / 32)), 32, 0, gpu->stream>>>(what, models * rows, rows, classes,
                                                                                     z, label, delta, value);
    return LAUNCHED(gpu, "differentiating the objective");
}

static __global__ void back_kernel(int64_t count, float scale, const float *a, float *delta)
{
    FOR_FLAT(i, count) delta[i] = a[i] > 0 ? scale * delta[i] : 0;
}
static fs_result gpu_back(void *state, int64_t count, float scale, const float *a, float *delta)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    back_kernel<<<flat_grid(count), FLAT, 0, gpu->stream>>>(count, scale, a, delta);
    return LAUNCHED(gpu, "differentiating a layer");
}

/* A thread for each sum, rows in their order. */
static __global__ void row_sums_kernel(int64_t models, int64_t rows, int64_t width, const float *delta, float *sums,
                                       int64_t stride)
{
    FOR_FLAT(at, models * width)
    {
        const int64_t model = at / width, u = at - model * width;
        const float *x = delta + model * rows * width + u;
        float sum = 0;
#pragma unroll 8
        for (int64_t i = 0; i < rows; i++) sum += x[i * width];
        sums[model * stride + u] = sum;
    }
}
static fs_result gpu_row_sums(void *state, int64_t models, int64_t rows, int64_t width, const float *delta, float *sums,
                              int64_t stride)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    row_sums_kernel<<<flat_grid(models * width), FLAT, 0, gpu->stream>>>(models, rows, width, delta, sums, stride);
    return LAUNCHED(gpu, "summing the gradient of a bias");
}

/* A warp for each unit of each row: a stream of stores, with no more arithmetic than the product. */
static __global__ void outer_kernel(int64_t rows, int64_t in, int64_t out, const float *a, const float *delta, float *G,
                                    int64_t ld)
{
    const int lane = threadIdx.x % 32;
    for (int64_t r = blockIdx.y; r < rows; r += gridDim.y)
        for (int64_t u = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32; u < out; u += (int64_t)gridDim.x * WARPS) {
            const float d = delta[r * out + u], *from = a + r * in;
            float *W = G + r * ld + u * in;
#pragma unroll 4
            for (int64_t v = lane; v < in; v += 32) W[v] = d * from[v];
            if (lane == 0) G[r * ld + in * out + u] = d;
        }
}
static fs_result gpu_outer(void *state, int64_t rows, int64_t in, int64_t out, const float *a, const float *delta,
                           float *G, int64_t ld)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    const dim3 grid(flat_grid(out * 32), (unsigned)(rows < MOST_BLOCKS ? rows : MOST_BLOCKS));
    outer_kernel<<<grid, FLAT, 0, gpu->stream>>>(rows, in, out, a, delta, G, ld);
    return LAUNCHED(gpu, "writing gradients");
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
static fs_result gpu_step(void *state, int64_t count, float rate, float momentum, const float *g, float *v,
                          float *theta)
{
    const gpu_state *gpu = (const gpu_state *)state;
    on_device here(gpu->device);
    step_kernel<<<flat_grid(count), FLAT, 0, gpu->stream>>>(count, rate, momentum, g, v, theta);
    return LAUNCHED(gpu, "taking a step");
}

extern "C" __attribute__((visibility("default"))) const grass_ops *grass_ops_entry_point(void) __asm__(GRASS_OPS_ENTRY);
const grass_ops *grass_ops_entry_point(void)
{
    static const grass_ops ops = {
        .abi = GRASS_OPS_ABI,
        .memory = FS_MEMORY_CUDA,
        /* A step of one small model is a few microseconds of work behind some twenty launches; side by side, models
         * share them. */
        .side_by_side = GRASS_MODELS_MOST,
        .open = gpu_open,
        .close = gpu_close,
        .alloc = gpu_alloc,
        .release = gpu_release,
        .fetch = gpu_fetch,
        .send = gpu_send,
        .zero = gpu_zero,
        .wait = gpu_wait,
        .gemm = gpu_gemm,
        .gather = gpu_gather,
        .activate = gpu_activate,
        .objective = gpu_objective,
        .back = gpu_back,
        .row_sums = gpu_row_sums,
        .outer = gpu_outer,
        .step = gpu_step,
    };
    return &ops;
}
