/* ops.c - the operations of perceptrons on a CPU: products by plain loops, which stand in for OpenBLAS, and by the table;
 * devices.  Data are small integers, so that sums are exact in every order. */
#include <stdlib.h>
#include <string.h>

#include "apps/grass/device.h"
#include "tests/support/problems.h"

static grass_device cpu(int threads)
{
    fs_context_options options = FS_CONTEXT_INIT;
    grass_device device;
    options.backend = FS_BACKEND_CPU;
    options.threads = threads;
    MUST(grass_device_open(&device, &options));
    return device;
}

static float *integers(int64_t count, uint64_t seed)
{
    float *x = room(count, sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = (float)((int)(bits_at(seed, i) % 15) - 7);
    return x;
}

enum { PADDING = 3, COUNT = 2 };
typedef struct gemm_case {
    int64_t m, n, k;
    int ta, tb;
} gemm_case;

/* Element (i, j) of C of model c as it must be; A, B and C have PADDING rows more than their elements need. */
static double product_at(const gemm_case *p, const float *A, const float *B, int64_t i, int64_t j)
{
    const int64_t lda = (p->ta ? p->k : p->m) + PADDING, ldb = (p->tb ? p->n : p->k) + PADDING;
    double sum = 0;
    for (int64_t l = 0; l < p->k; l++)
        sum += (double)A[p->ta ? l + i * lda : i + l * lda] * B[p->tb ? j + l * ldb : l + j * ldb];
    return sum;
}

/* By the table's gemm (device), or by the plain loops (NULL) of `threads` threads. */
static void check_product(const gemm_case *p, const grass_device *device, int threads)
{
    const int64_t lda = (p->ta ? p->k : p->m) + PADDING, ldb = (p->tb ? p->n : p->k) + PADDING, ldc = p->m + PADDING;
    const int64_t a = lda * (p->ta ? p->m : p->k), b = ldb * (p->tb ? p->k : p->n), c = ldc * p->n;
    float *A = integers(COUNT * a, 1), *B = integers(COUNT * b, 2), *C = integers(COUNT * c, 3);
    float *before = room(COUNT * c, sizeof *before);
    memcpy(before, C, (size_t)(COUNT * c) * sizeof *C);
    if (device)
        MUST(device->ops->gemm(device->state, p->ta, p->tb, p->m, p->n, p->k, A, lda, a, B, ldb, b, C, ldc, c, COUNT));
    for (int64_t t = 0; t < COUNT && !device; t++)
        grass_plain_gemm(threads, p->ta, p->tb, p->m, p->n, p->k, A + t * a, lda, B + t * b, ldb, C + t * c, ldc);
    for (int64_t at = 0; at < COUNT * c; at++) {
        const int64_t t = at / c, j = at % c / ldc, i = at % ldc;
        const double want = i < p->m ? product_at(p, A + t * a, B + t * b, i, j) : before[at];
        if (C[at] != want)
            fail_msg("%s, %d threads, %d x %d x %d, ta %d, tb %d: C(%d, %d) of model %d is %g, not %g",
                     device ? "table" : "plain", threads, (int)p->m, (int)p->n, (int)p->k, p->ta, p->tb, (int)i, (int)j,
                     (int)t, (double)C[at], want);
    }
    free(A), free(B), free(C), free(before);
}

static const int64_t shapes[][3] = {{1, 1, 1}, {17, 5, 9}, {64, 33, 128}, {3, 70, 2}};

static void plain_products_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int t = 0; t < 4; t++)
            for (int threads = 1; threads <= 3; threads += 2) {
                const gemm_case p = {shapes[i][0], shapes[i][1], shapes[i][2], t & 1, t >> 1};
                check_product(&p, NULL, threads);
            }
}

static void the_table_has_the_same_products(void **state)
{
    (void)state;
    grass_device device = cpu(2);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int t = 0; t < 4; t++) {
            const gemm_case p = {shapes[i][0], shapes[i][1], shapes[i][2], t & 1, t >> 1};
            check_product(&p, &device, 2);
        }
    grass_device_close(&device);
}

/* A device is a CPU where there is no GPU and none is requested; requested, it is an error with a reason. */
static void devices_are_those_that_are_asked_for(void **state)
{
    (void)state;
    fs_context_options options = FS_CONTEXT_INIT;
    grass_device device;
    setenv("FLASHSKETCH_CUDA_PLUGIN", "./no-such-plugin.so", 1);
    MUST(grass_device_open(&device, &options));
    assert_true(device.ops == &grass_cpu_ops && device.ops->memory == FS_MEMORY_HOST);
    grass_device_close(&device);
    assert_true(!device.ctx && !device.state);
    grass_device_close(&device);
    options.backend = FS_BACKEND_CUDA;
    REFUSED(grass_device_open(&device, &options), FS_EBACKEND, "no-such-plugin.so");
    assert_true(!device.ctx && !device.state);
    unsetenv("FLASHSKETCH_CUDA_PLUGIN");
}

/* A context of CUDA, of the plugin that tests/errors has for the library, and operations that do not fit it. */
static void refuse_plugin(const char *plugin, fs_result code, const char *word, const char *other)
{
    fs_context_options options = FS_CONTEXT_INIT;
    grass_device device;
    options.backend = FS_BACKEND_CUDA;
    options.device = 7;
    setenv("FLASHSKETCH_CUDA_PLUGIN", CUDA_PLUGIN, 1);
    setenv("FLASHSKETCH_GRASS_CUDA_PLUGIN", plugin, 1);
    REFUSED(grass_device_open(&device, &options), code, word, other);
    assert_true(!device.ctx && !device.state && !device.plugin);
    unsetenv("FLASHSKETCH_CUDA_PLUGIN");
    unsetenv("FLASHSKETCH_GRASS_CUDA_PLUGIN");
}
static void plugins_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    refuse_plugin("./no-such-plugin.so", FS_EBACKEND, "could not be loaded", "no-such-plugin.so");
    refuse_plugin(CUDA_PLUGIN, FS_EBACKEND, CUDA_PLUGIN, "no symbol grass_ops_entry");
    refuse_plugin(OTHER_PLUGIN, FS_EBACKEND, OTHER_PLUGIN, "version 99");
    refuse_plugin(REFUSING_PLUGIN, FS_EUNSUPPORTED, "a context", "device 7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_products_are_exact),
        cmocka_unit_test(the_table_has_the_same_products),
        cmocka_unit_test(devices_are_those_that_are_asked_for),
        cmocka_unit_test(plugins_that_do_not_fit_are_refused),
    };
    return RUN_TASK_TESTS(tests);
}
