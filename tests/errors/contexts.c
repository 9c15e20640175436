/* contexts.c - fs_context_create refuses: options, the environment, unusable plugins, and which error message a
 * failure has. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

static void refuse(fs_context_options options, fs_result code, const char *first, const char *second)
{
    fs_context *ctx = (fs_context *)&options;
    REFUSED(fs_context_create(&ctx, &options), code, first, second);
    assert_null(ctx);
}
#define OPTIONS(kind, ...) \
    (fs_context_options) { .size = sizeof(fs_context_options), .backend = (kind), __VA_ARGS__ }

static void *give(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}
static void take(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    REFUSED(fs_context_create(NULL, NULL), FS_EINVAL, "out is NULL");
    refuse((fs_context_options){.size = 0}, FS_EINVAL, "options.size is 0", "INIT macro");
    refuse((fs_context_options){.size = 4097}, FS_EINVAL, "options.size is 4097", "to 4096");
    refuse(OPTIONS((fs_backend_kind)3, .threads = 1), FS_EINVAL, "backend 3", "not exist");
    refuse(OPTIONS((fs_backend_kind)-1, .threads = 1), FS_EINVAL, "backend -1", "not exist");
    refuse(OPTIONS(FS_BACKEND_CPU, .threads = -2), FS_EINVAL, "threads = -2", "negative");
    refuse(OPTIONS(FS_BACKEND_CPU, .device = -1), FS_EINVAL, "device = -1", "negative");
    refuse(OPTIONS(FS_BACKEND_CPU, .allocator = {give, NULL, NULL}), FS_EINVAL, "alloc", "release");
    refuse(OPTIONS(FS_BACKEND_CPU, .allocator = {NULL, take, NULL}), FS_EINVAL, "alloc", "release");
}

static void options_of_an_older_caller_are_accepted(void **state)
{
    (void)state;
    fs_context_options options = OPTIONS(FS_BACKEND_CPU, .threads = 7);
    options.size = offsetof(fs_context_options, threads);
    fs_context *ctx = NULL;
    char text[300];
    MUST(fs_context_create(&ctx, &options));
    fs_context_describe(ctx, text, sizeof text);
    assert_null(strstr(text, "7 threads"));
    fs_context_destroy(ctx);
}

static void an_instruction_set_that_does_not_exist_is_refused(void **state)
{
    (void)state;
    setenv("FLASHSKETCH_ISA", "nonsense", 1);
    refuse(OPTIONS(FS_BACKEND_CPU, .threads = 1), FS_EINVAL, "FLASHSKETCH_ISA", "nonsense");
    setenv("FLASHSKETCH_ISA", "avx", 1);
    refuse(OPTIONS(FS_BACKEND_CPU, .threads = 1), FS_EINVAL, "FLASHSKETCH_ISA", "'avx'");
    setenv("FLASHSKETCH_ISA", "", 1);
    fs_context *ctx = NULL;
    MUST(fs_context_create(&ctx, &OPTIONS(FS_BACKEND_CPU, .threads = 1)));
    fs_context_destroy(ctx);
    unsetenv("FLASHSKETCH_ISA");
}

/* options.isa and the variable choose one of the same variants; the variable wins. */
static void the_instruction_set_is_an_option(void **state)
{
    (void)state;
    refuse(OPTIONS(FS_BACKEND_CPU, .isa = "nonsense"), FS_EINVAL, "options.isa", "'nonsense'");
    refuse(OPTIONS(FS_BACKEND_CPU, .isa = ""), FS_EINVAL, "options.isa", "''");
    for (int v = 0; v < variant_count; v++) {
        fs_context *ctx = NULL;
        const fs_result result = fs_context_create(&ctx, &OPTIONS(FS_BACKEND_CPU, .isa = variants[v]));
        if (result == FS_EBACKEND) {
            REFUSED(result, FS_EBACKEND, "options.isa", variants[v]);
            continue;
        }
        MUST(result);
        assert_string_equal(fs_context_isa(ctx), variants[v]);
        fs_context_destroy(ctx);
        setenv("FLASHSKETCH_ISA", variants[v], 1);
        MUST(fs_context_create(&ctx, &OPTIONS(FS_BACKEND_CPU, .isa = "ref")));
        unsetenv("FLASHSKETCH_ISA");
        assert_string_equal(fs_context_isa(ctx), variants[v]);
        fs_context_destroy(ctx);
    }
}

static void a_cpu_context_reports_what_it_is(void **state)
{
    (void)state;
    fs_context *ctx = NULL;
    MUST(fs_context_create(&ctx, &OPTIONS(FS_BACKEND_CPU, .threads = 2, .device = 5)));
    assert_int_equal(fs_context_backend(ctx), FS_BACKEND_CPU);
    assert_int_equal(fs_context_device(ctx), -1);
    assert_int_equal(fs_context_memory(ctx), FS_MEMORY_HOST);
    assert_int_equal(fs_context_threads(ctx), 2);
    assert_true(fs_context_accepts(ctx, FS_MEMORY_HOST));
    assert_false(fs_context_accepts(ctx, FS_MEMORY_CUDA));
    MUST(fs_context_set_stream(ctx, &ctx));
    MUST(fs_context_synchronize(ctx));
    fs_context_destroy(ctx);
    assert_int_equal(fs_context_backend(NULL), FS_BACKEND_AUTO);
    assert_int_equal(fs_context_device(NULL), -1);
    assert_int_equal(fs_context_threads(NULL), 0);
    assert_string_equal(fs_context_isa(NULL), "");
    assert_false(fs_context_accepts(NULL, FS_MEMORY_HOST));
    REFUSED(fs_context_set_stream(NULL, NULL), FS_EINVAL, "ctx is NULL");
    REFUSED(fs_context_synchronize(NULL), FS_EINVAL, "ctx is NULL");
}

static void a_cuda_context_reports_what_it_is(void **state)
{
    (void)state;
    fs_context *ctx = NULL;
    char stream[32];
    setenv("FLASHSKETCH_CUDA_PLUGIN", PLUGIN_GOOD, 1);
    MUST(fs_context_create(&ctx, &OPTIONS(FS_BACKEND_CUDA, .device = 3, .threads = 1)));
    unsetenv("FLASHSKETCH_CUDA_PLUGIN");
    assert_int_equal(fs_context_backend(ctx), FS_BACKEND_CUDA);
    assert_int_equal(fs_context_device(ctx), 3);
    assert_int_equal(fs_context_memory(ctx), FS_MEMORY_CUDA);
    assert_int_equal(fs_context_threads(ctx), 1);
    assert_string_equal(fs_context_isa(ctx), "");
    assert_true(fs_context_accepts(ctx, FS_MEMORY_HOST));
    assert_true(fs_context_accepts(ctx, FS_MEMORY_CUDA));
    snprintf(stream, sizeof stream, "stream %p", (void *)&ctx);
    REFUSED(fs_context_set_stream(ctx, &ctx), FS_EUNSUPPORTED, stream);
    REFUSED(fs_context_synchronize(ctx), FS_EBACKEND, "the device failed before");
    fs_context_destroy(ctx);
}

/* A description names the variant, the threads and the reason, and is cut as snprintf cuts. */
static void descriptions_say_what_was_chosen_and_why(void **state)
{
    (void)state;
    for (int v = 0; v < variant_count; v++) {
        fs_context *ctx = context_of(variants[v], 3);
        if (!ctx) continue;
        char text[300], part[8];
        const int length = fs_context_describe(ctx, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_non_null(strstr(text, variants[v]));
        assert_non_null(strstr(text, "3 threads"));
        assert_non_null(strstr(text, "asked for"));
        assert_int_equal(fs_context_describe(ctx, part, sizeof part), length);
        assert_int_equal(strlen(part), sizeof part - 1);
        fs_context_destroy(ctx);
    }
    assert_true(fs_context_describe(NULL, NULL, 0) > 0);
    assert_int_equal(fs_context_memory_bytes(NULL), 0);
    fs_context_destroy(NULL);
}

static void every_result_has_its_name(void **state)
{
    (void)state;
    static const char *const names[] = {"FS_OK",           "FS_EINVAL",   "FS_ENOMEM",
                                        "FS_EUNSUPPORTED", "FS_EBACKEND", "FS_EFILE"};
    for (int i = 0; i <= FS_EFILE; i++) assert_string_equal(fs_result_name((fs_result)i), names[i]);
    /* The results end there: a new one needs its name here. */
    assert_string_equal(fs_result_name((fs_result)(FS_EFILE + 1)), "not an fs_result");
    assert_string_equal(fs_result_name((fs_result)-1), "not an fs_result");
}

/* plugins --------------------------------------------------------------------------------------------------- */

static void a_plugin_that_is_not_there_is_an_error_with_the_loaders_words(void **state)
{
    (void)state;
    setenv("FLASHSKETCH_CUDA_PLUGIN", "/nowhere/libnothing.so", 1);
    refuse(OPTIONS(FS_BACKEND_CUDA, .device = 0), FS_EBACKEND, "/nowhere/libnothing.so", "No such file");
    setenv("FLASHSKETCH_CUDA_PLUGIN", PLUGIN_NO_ENTRY, 1);
    refuse(OPTIONS(FS_BACKEND_CUDA, .device = 0), FS_EBACKEND, PLUGIN_NO_ENTRY, "fsi_backend_entry");
    setenv("FLASHSKETCH_CUDA_PLUGIN", PLUGIN_OTHER_ABI, 1);
    refuse(OPTIONS(FS_BACKEND_CUDA, .device = 0), FS_EBACKEND, PLUGIN_OTHER_ABI, "ABI 4711");
    setenv("FLASHSKETCH_CUDA_PLUGIN", PLUGIN_NO_DEVICE, 1);
    refuse(OPTIONS(FS_BACKEND_CUDA, .device = 6), FS_EBACKEND, "device 6", "not there");
    unsetenv("FLASHSKETCH_CUDA_PLUGIN");
}

/* Only auto may choose the CPU instead, and reports the reason. */
static void auto_takes_the_cpu_and_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *plugin, *why;
    } cases[] = {{"/nowhere/libnothing.so", "libnothing"},
                 {PLUGIN_NO_ENTRY, "fsi_backend_entry"},
                 {PLUGIN_OTHER_ABI, "ABI"},
                 {PLUGIN_NO_DEVICE, "device 0 is not there"}};
    for (int i = 0; i < 4; i++) {
        fs_context *ctx = NULL;
        char text[600];
        setenv("FLASHSKETCH_CUDA_PLUGIN", cases[i].plugin, 1);
        MUST(fs_context_create(&ctx, NULL));
        fs_context_describe(ctx, text, sizeof text);
        if (!strstr(text, "cpu") || !strstr(text, "auto") || !strstr(text, cases[i].why))
            fail_msg("\"%s\" does not say cpu, auto and %s", text, cases[i].why);
        fs_context_destroy(ctx);
    }
    unsetenv("FLASHSKETCH_CUDA_PLUGIN");
}

/* Where there is no plugin, the message says what to do; auto's reason has three words. */
static void no_plugin_is_no_failure_of_the_loader(void **state)
{
    (void)state;
    static const char name[] = "libflashsketch_cuda.so";
    fs_context *ctx = NULL;
    char text[600];
#ifdef BUILT_PLUGIN /* beside the library, where this program would not find it */
    skip();
#endif
    void *plugin = dlopen(name, RTLD_LAZY);
    if (plugin || strncmp(dlerror(), name, strlen(name))) { /* there is one, or a library that it needs is not */
        if (plugin) dlclose(plugin);
        skip();
    }
    unsetenv("FLASHSKETCH_CUDA_PLUGIN");
    refuse(OPTIONS(FS_BACKEND_CUDA, .device = 0), FS_EBACKEND, "the CUDA plugin is not installed",
           "'make cuda' builds it");
    assert_null(strstr(fs_error_message(), "shared object"));
    MUST(fs_context_create(&ctx, NULL));
    fs_context_describe(ctx, text, sizeof text);
    assert_string_equal(text + strlen(text) - strlen(" (auto: no CUDA plugin)"), " (auto: no CUDA plugin)");
    fs_context_destroy(ctx);
}

/* A backend gets what the caller gave, with offsets folded into data, and its message comes out. */
static void a_plugins_backend_gets_the_arguments(void **state)
{
    (void)state;
    fs_context *ctx = NULL;
    fs_spec spec = FS_SPEC_INIT;
    spec.d = 10, spec.k = 4;
    fs_sketch *S = sketch_of(&spec);
    float a[64], y[64];
    int64_t ptr[9] = {0};
    char text[300], from[64], to[64];
    fs_matrix A = {a, 8, 2, 2, 1, 5, 0, FS_F32, FS_MEMORY_CUDA}, Y = {y, 4, 2, -2, 1, 6, 0, FS_F32, FS_MEMORY_CUDA};
    fs_sparse sparse = {FS_CSR, FS_INDEX64, 8, 2, 3, ptr, ptr, a, FS_F32, FS_MEMORY_CUDA};
    snprintf(from, sizeof from, "from %p + 0", (void *)(a + 5));
    snprintf(to, sizeof to, "to %p + 0", (void *)(y + 6));
    setenv("FLASHSKETCH_CUDA_PLUGIN", PLUGIN_GOOD, 1);
    MUST(fs_context_create(&ctx, NULL));
    unsetenv("FLASHSKETCH_CUDA_PLUGIN");
    fs_context_describe(ctx, text, sizeof text);
    assert_string_equal(text, "the test's backend (auto)");
    assert_int_equal(fs_context_memory_bytes(ctx), 12345);
    REFUSED(fs_apply(ctx, S, 2, 3.0, &A, 0.5, &Y), FS_EUNSUPPORTED, "row0 2, alpha 3, beta 0.5", from, to);
    REFUSED(fs_apply_sparse(ctx, S, 1, 2.0, &sparse, 1.0, &Y), FS_EUNSUPPORTED, "row0 1, alpha 2, beta 1, nnz 3");
    snprintf(from, sizeof from, "from %p + 0", (void *)(y + 6));
    snprintf(to, sizeof to, "to %p + 0", (void *)(a + 5));
    REFUSED(fs_apply_adjoint(ctx, S, 0, -1.0, &Y, 0.0, &A), FS_EUNSUPPORTED, "row0 0, alpha -1, beta 0", from, to);
    A.memory = FS_MEMORY_HOST;
    snprintf(from, sizeof from, "from %p + 0", (void *)(a + 5));
    REFUSED(fs_apply(ctx, S, 2, 3.0, &A, 0.5, &Y), FS_EUNSUPPORTED, "row0 2, alpha 3, beta 0.5", from);
    sparse.memory = FS_MEMORY_HOST, sparse.nnz = 0;
    REFUSED(fs_apply_sparse(ctx, S, 1, 2.0, &sparse, 1.0, &Y), FS_EUNSUPPORTED, "A is in host memory", "cuda memory");
    fs_context_destroy(ctx);
    fs_sketch_destroy(S);
}

/* messages ------------------------------------------------------------------------------------------------- */

typedef struct failing {
    pthread_barrier_t *both;
    int64_t d;
    char before[64], after[512];
} failing;

static void *fail_in_thread(void *user)
{
    failing *f = user;
    fs_spec spec = FS_SPEC_INIT;
    fs_sketch *S = NULL;
    spec.d = f->d, spec.k = 1;
    snprintf(f->before, sizeof f->before, "%s", fs_error_message());
    const fs_result result = fs_sketch_create(&S, &spec);
    pthread_barrier_wait(f->both);
    snprintf(f->after, sizeof f->after, "%s: %s", fs_result_name(result), fs_error_message());
    return NULL;
}

static void each_thread_has_its_own_sentence(void **state)
{
    (void)state;
    pthread_barrier_t both;
    pthread_t threads[2];
    failing f[2] = {{.both = &both, .d = -11}, {.both = &both, .d = -22}};
    REFUSED(fs_context_create(NULL, NULL), FS_EINVAL, "out is NULL");
    pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, fail_in_thread, &f[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&both);
    assert_string_equal(f[0].before, "");
    assert_string_equal(f[1].before, "");
    if (!strstr(f[0].after, "FS_EINVAL") || !strstr(f[0].after, "d = -11") || !strstr(f[1].after, "d = -22"))
        fail_msg("the threads saw \"%s\" and \"%s\"", f[0].after, f[1].after);
    assert_non_null(strstr(fs_error_message(), "out is NULL"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(options_of_an_older_caller_are_accepted),
        cmocka_unit_test(an_instruction_set_that_does_not_exist_is_refused),
        cmocka_unit_test(the_instruction_set_is_an_option),
        cmocka_unit_test(a_cpu_context_reports_what_it_is),
        cmocka_unit_test(a_cuda_context_reports_what_it_is),
        cmocka_unit_test(descriptions_say_what_was_chosen_and_why),
        cmocka_unit_test(every_result_has_its_name),
        cmocka_unit_test(a_plugin_that_is_not_there_is_an_error_with_the_loaders_words),
        cmocka_unit_test(auto_takes_the_cpu_and_says_why),
        cmocka_unit_test(no_plugin_is_no_failure_of_the_loader),
        cmocka_unit_test(a_plugins_backend_gets_the_arguments),
        cmocka_unit_test(each_thread_has_its_own_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
