/* ops_cpu.c - the operations of perceptrons on a CPU.
 *
 * Products are OpenBLAS's.  The library opens it when the first workspace is created, after checking its threads and
 * buffers (OpenBLAS has no error codes for missing memory); here it is only looked up among the loaded libraries.
 * Without OpenBLAS the products are plain loops. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device.h"

enum { BLAS_COLUMNS = 102, BLAS_PLAIN = 111, BLAS_TRANSPOSED = 112 }; /* CBLAS's numbers */

typedef struct cpu_state {
    grass_fail *fail;
    int threads; /* that the options ask for; 0: OpenMP's own number */
    void *openblas;
    void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
} cpu_state;

/* opening ---------------------------------------------------------------------------------------------------- */

static void find_openblas(cpu_state *cpu)
{
    static const char *const names[] = {"libopenblas.so", "libopenblas.so.0"};
    for (int i = 0; i < 2 && !cpu->openblas; i++) cpu->openblas = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    if (cpu->openblas) *(void **)&cpu->sgemm = dlsym(cpu->openblas, "cblas_sgemm");
}

static fs_result cpu_open(void **state, fs_context *ctx, const fs_context_options *options, grass_fail *fail)
{
    const fs_result algebra = grass_open_algebra(ctx);
    if (algebra != FS_OK && algebra != FS_EBACKEND) return algebra;
    cpu_state *cpu = calloc(1, sizeof *cpu);
    if (!cpu) return fail(FS_ENOMEM, "no memory for the %zu bytes of a CPU's state", sizeof *cpu);
    cpu->fail = fail;
    cpu->threads = options->threads;
    if (algebra == FS_OK) find_openblas(cpu);
    else fail(FS_OK, "%s", ""); /* a missing OpenBLAS is not an error */
    *state = cpu;
    return FS_OK;
}

static void cpu_close(void *state)
{
    cpu_state *cpu = state;
    if (cpu->openblas) dlclose(cpu->openblas); /* the library keeps it loaded */
    free(cpu);
}

/* memory ----------------------------------------------------------------------------------------------------- */

static fs_result cpu_alloc(void *state, size_t bytes, void **memory)
{
    const cpu_state *cpu = state;
    *memory = malloc(bytes ? bytes : 1);
    return *memory ? FS_OK : cpu->fail(FS_ENOMEM, "no memory for %zu bytes of a perceptron", bytes);
}

static void cpu_release(void *state, void *memory)
{
    (void)state;
    free(memory);
}

static fs_result cpu_copy(void *state, const void *from, size_t bytes, void *to)
{
    (void)state;
    memcpy(to, from, bytes);
    return FS_OK;
}

static fs_result cpu_zero(void *state, void *x, size_t bytes)
{
    (void)state;
    memset(x, 0, bytes);
    return FS_OK;
}

static fs_result cpu_wait(void *state)
{
    (void)state;
    return FS_OK;
}

/* products --------------------------------------------------------------------------------------------------- */

void grass_plain_gemm(int threads, int ta, int tb, int64_t m, int64_t n, int64_t k, const float *A, int64_t lda,
                      const float *B, int64_t ldb, float *C, int64_t ldc)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t j = 0; j < n; j++) {
        float *c = C + j * ldc;
        memset(c, 0, (size_t)m * sizeof *c);
        for (int64_t i = 0; i < m && ta; i++)
            for (int64_t l = 0; l < k; l++) c[i] += A[l + i * lda] * B[tb ? j + l * ldb : l + j * ldb];
        for (int64_t l = 0; l < k && !ta; l++) {
            const float b = B[tb ? j + l * ldb : l + j * ldb];
            for (int64_t i = 0; i < m; i++) c[i] += A[i + l * lda] * b;
        }
    }
}

static fs_result cpu_gemm(void *state, int ta, int tb, int64_t m, int64_t n, int64_t k, const float *A, int64_t lda,
                          int64_t a_stride, const float *B, int64_t ldb, int64_t b_stride, float *C, int64_t ldc,
                          int64_t c_stride, int64_t count)
{
    const cpu_state *cpu = state;
    for (int64_t i = 0; i < count; i++, A += a_stride, B += b_stride, C += c_stride)
        if (cpu->sgemm)
            cpu->sgemm(BLAS_COLUMNS, ta ? BLAS_TRANSPOSED : BLAS_PLAIN, tb ? BLAS_TRANSPOSED : BLAS_PLAIN, (int)m,
                       (int)n, (int)k, 1, A, (int)lda, B, (int)ldb, 0, C, (int)ldc);
        else grass_plain_gemm(fs_thread_count(cpu->threads), ta, tb, m, n, k, A, lda, B, ldb, C, ldc);
    return FS_OK;
}

/* elements --------------------------------------------------------------------------------------------------- */

static fs_result cpu_gather(void *state, int64_t rows, int64_t width, const float *x, const uint8_t *label,
                            const int64_t *which, float *to, uint8_t *to_label)
{
    (void)state;
    for (int64_t r = 0; r < rows; r++) {
        memcpy(to + r * width, x + which[r] * width, (size_t)width * sizeof *to);
        to_label[r] = label[which[r]];
    }
    return FS_OK;
}

static void relu_and_drop(float *a, int64_t width, const grass_dropout *d, uint64_t seed, int64_t i)
{
    for (int64_t u = 0; u < width; u++) a[u] = a[u] > 0 ? a[u] : 0;
    for (int64_t u = 0; u < width && d->limit; u += 4) {
        const fsi_quad words = grass_dropout_words(d, seed, i, u / 4);
        for (int64_t c = u; c < width && c < u + 4; c++) a[c] = words.w[c - u] < d->limit ? 0 : d->scale * a[c];
    }
}
static fs_result cpu_activate(void *state, int64_t models, int64_t rows, int64_t width, const float *bias,
                              int64_t stride, const grass_dropout *dropout, float *a)
{
    (void)state;
    for (int64_t m = 0; m < models; m++)
        for (int64_t i = 0; i < rows; i++, a += width) {
            for (int64_t u = 0; u < width; u++) a[u] += bias[m * stride + u];
            if (dropout) relu_and_drop(a, width, dropout, dropout->seed[m], i);
        }
    return FS_OK;
}

static fs_result cpu_objective(void *state, grass_objective what, int64_t models, int64_t rows, int64_t classes,
                               const float *z, const uint8_t *label, float *delta, double *value)
{
    (void)state;
    for (int64_t r = 0; r < models * rows; r++)
        value[r] = grass_objective_at(what, classes, z + r * classes, label[r], rows, delta + r * classes);
    return FS_OK;
}

static fs_result cpu_back(void *state, int64_t count, float scale, const float *a, float *delta)
{
    (void)state;
    for (int64_t i = 0; i < count; i++) delta[i] = a[i] > 0 ? scale * delta[i] : 0;
    return FS_OK;
}

static fs_result cpu_row_sums(void *state, int64_t models, int64_t rows, int64_t width, const float *delta, float *sums,
                              int64_t stride)
{
    (void)state;
    for (int64_t m = 0; m < models; m++, sums += stride) {
        memset(sums, 0, (size_t)width * sizeof *sums);
        for (int64_t i = 0; i < rows; i++, delta += width)
            for (int64_t u = 0; u < width; u++) sums[u] += delta[u];
    }
    return FS_OK;
}

static fs_result cpu_outer(void *state, int64_t rows, int64_t in, int64_t out, const float *a, const float *delta,
                           float *G, int64_t ld)
{
    const cpu_state *cpu = state;
#pragma omp parallel for num_threads(fs_thread_count(cpu->threads)) schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        float *W = G + r * ld;
        const float *from = a + r * in, *d = delta + r * out;
        for (int64_t u = 0; u < out; u++)
            for (int64_t v = 0; v < in; v++) W[u * in + v] = d[u] * from[v];
        memcpy(W + in * out, d, (size_t)out * sizeof *d);
    }
    return FS_OK;
}

static fs_result cpu_step(void *state, int64_t count, float rate, float momentum, const float *g, float *v,
                          float *theta)
{
    (void)state;
    for (int64_t i = 0; i < count; i++) {
        v[i] = momentum * v[i] + g[i];
        theta[i] -= rate * v[i];
    }
    return FS_OK;
}

const grass_ops grass_cpu_ops = {
    .abi = GRASS_OPS_ABI,
    .memory = FS_MEMORY_HOST,
    .side_by_side = 1, /* a model's parameters, velocity and gradient stay in a core's own cache */
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .fetch = cpu_copy,
    .send = cpu_copy,
    .zero = cpu_zero,
    .wait = cpu_wait,
    .gemm = cpu_gemm,
    .gather = cpu_gather,
    .activate = cpu_activate,
    .objective = cpu_objective,
    .back = cpu_back,
    .row_sums = cpu_row_sums,
    .outer = cpu_outer,
    .step = cpu_step,
};
