/* data.c - the matrices of `fsbench randnla`: the same from the same seed everywhere; files as they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/data/data.h"

/* FNV-1a over the bytes of an array. */
static uint64_t digest(const void *data, size_t bytes)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001B3u;
    return h;
}

enum { D = 1024, N = 20 };
static float A[D * N];

static void make(const char *name)
{
    data_source source;
    assert_int_equal(data_source_parse(name, &source), 0);
    const data_set set = data_set_of(&source, D, N);
    assert_int_equal(data_make(&set, A), 0);
}

static void the_same_bits_everywhere(void **state)
{
    static const uint64_t expected[RECIPES] = {0xedcd576b8ad9e4e2u, 0xb2fb450cc16b08ddu, 0xcee34d1ae8544196u,
                                               0x628525c7b9cb6992u, 0xea8c44173fd7b42au, 0x931c34e38c51025du,
                                               0xc242e39940ec753bu, 0x5c9242ccd8b5c4a6u, 0x21fc17ef1d76ecb7u};
    (void)state;
    int wrong = 0;
    for (int i = 0; i < RECIPES; i++) {
        make(data_recipe_names[i]);
        const uint64_t found = digest(A, sizeof A);
        if (found != expected[i]) {
            print_error("%s: 0x%016llxu\n", data_recipe_names[i], (unsigned long long)found);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static double energy(int64_t first, int64_t last)
{
    double sum = 0;
    for (int64_t i = first * N; i < last * N; i++) sum += (double)A[i] * A[i];
    return sum;
}

static void recipes_are_what_they_say(void **state)
{
    (void)state;
    make("gaussian");
    const double mean_square = energy(0, D) / (D * N);
    assert_true(mean_square > 0.95 && mean_square < 1.05);
    make("hot");
    assert_true(energy(64, 128) > 100 * (energy(0, 64) + energy(128, D)));
    make("decay");
    assert_true(energy(0, D / 16) > 2 * energy(D / 16, D));
    make("identity");
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) assert_true(A[i * N + j] == (i == j));
    make("sparse");
    int zeros = 0;
    for (int i = 0; i < D * N; i++) zeros += A[i] == 0;
    assert_in_range(zeros, (int)(0.98 * D * N), (int)(0.992 * D * N));
    make("diagonal");
    assert_true(A[N - 1] == 0 && A[(D - 1) * N] == 0 && A[0] != 0 && A[D * N - 1] != 0);
    make("bundles");
    assert_true(energy(0, 16) > 100 * energy(16, 51));
}

static char folder[] = "/tmp/fsbench-data-XXXXXX";
static char path[128];

static void write_file(const char *name, const void *bytes, size_t count)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
}

static void a_sparse_file_is_transposed(void **state)
{
    (void)state;
    const char text[] = "%%MatrixMarket matrix coordinate real general\n3 6 4\n1 1 5\n3 2 -1\n2 6 7\n2 6 1\n";
    write_file("a.mtx", text, strlen(text));
    char name[160];
    snprintf(name, sizeof name, "spal:%s", path);
    data_source source;
    assert_int_equal(data_source_parse(name, &source), 0);
    assert_string_equal(source.name, "spal");
    data_set set = {&source, 6, 3, 1};
    assert_int_equal(data_make(&set, A), 0);
    const float expected[6][3] = {{5, 0, 0}, {0, 0, -1}, {0}, {0}, {0}, {0, 8, 0}};
    assert_memory_equal(A, expected, sizeof expected);
    /* A window is a part of the whole, and another seed is another part. */
    int places = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        data_set part = {&source, 4, 3, seed};
        assert_int_equal(data_make(&part, A), 0);
        int at = -1;
        for (int first = 0; first <= 2; first++)
            if (!memcmp(A, expected[first], sizeof(float) * 12)) at = first;
        assert_true(at >= 0);
        places |= 1 << at;
    }
    assert_int_equal(places, 7);
    data_set large = {&source, 7, 3, 0};
    assert_int_equal(data_make(&large, A), 1);
}

/* Two layers of a model whose element (i, j) of tensor t is 1000 t + 10 i + j. */
static void write_model(void)
{
    static const struct {
        const char *name;
        int rows, cols;
    } tensors[] = {{"h.0.mlp.c_fc.weight", 3, 5},
                   {"h.0.mlp.c_proj.weight", 5, 3},
                   {"h.1.mlp.c_fc.weight", 3, 5},
                   {"h.1.mlp.c_proj.weight", 5, 3}};
    char head[1024] = "{";
    float values[60];
    int count = 0;
    for (int t = 0; t < 4; t++) {
        const int begin = 4 * count;
        for (int i = 0; i < tensors[t].rows; i++)
            for (int j = 0; j < tensors[t].cols; j++) values[count++] = (float)(1000 * t + 10 * i + j);
        snprintf(head + strlen(head), sizeof head - strlen(head),
                 "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[%d,%d]}", t ? "," : "",
                 tensors[t].name, tensors[t].rows, tensors[t].cols, begin, 4 * count);
    }
    strcat(head, "}");
    while (strlen(head) % 8) strcat(head, " ");
    char file[2048];
    const uint64_t length = strlen(head);
    memcpy(file, &length, 8);
    memcpy(file + 8, head, length);
    memcpy(file + 8 + length, values, sizeof values);
    write_file("model.safetensors", file, 8 + length + sizeof values);
}

static void a_model_is_stacked_layer_by_layer(void **state)
{
    (void)state;
    write_model();
    char name[160];
    data_source source;
    snprintf(name, sizeof name, "gpt2:%s", path);
    assert_int_equal(data_source_parse(name, &source), 0);
    data_set set = {&source, 12, 5, 0};
    assert_int_equal(data_make(&set, A), 0);
    for (int layer = 0; layer < 2; layer++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 5; j++) {
                const int t = 2 * layer;
                assert_true(A[(6 * layer + i) * 5 + j] == (float)(1000 * t + 10 * i + j));           /* c_fc */
                assert_true(A[(6 * layer + 3 + i) * 5 + j] == (float)(1000 * (t + 1) + 10 * j + i)); /* c_proj' */
            }
    data_set wide = {&source, 12, 6, 0};
    assert_int_equal(data_make(&wide, A), 1);
    snprintf(name, sizeof name, "qwen2:%s", path);
    assert_int_equal(data_source_parse(name, &source), 0);
    assert_int_equal(data_make(&set, A), 1); /* no layers of that model */
    snprintf(name, sizeof name, "gpt2-full:%s", path);
    assert_int_equal(data_source_parse(name, &source), 0);
    assert_int_equal(data_make(&set, A), 1);
}

static void right_sides_fit_the_matrix(void **state)
{
    (void)state;
    data_source source;
    float x[N], b[D];
    double Ax[D], gap = 0, whole = 0;
    assert_int_equal(data_source_parse("gaussian", &source), 0);
    const data_set set = data_set_of(&source, D, N);
    make("gaussian");
    data_solution(&set, x);
    data_times(A, D, N, x, Ax);
    data_right_side(&set, Ax, 0, b);
    for (int i = 0; i < D; i++) assert_true(b[i] == (float)Ax[i]);
    data_right_side(&set, Ax, 0.1, b);
    for (int i = 0; i < D; i++) gap += (b[i] - Ax[i]) * (b[i] - Ax[i]), whole += Ax[i] * Ax[i];
    assert_true(gap > 0.008 * whole && gap < 0.012 * whole);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}
static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"a.mtx", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits_everywhere),    cmocka_unit_test(recipes_are_what_they_say),
        cmocka_unit_test(a_sparse_file_is_transposed), cmocka_unit_test(a_model_is_stacked_layer_by_layer),
        cmocka_unit_test(right_sides_fit_the_matrix),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
