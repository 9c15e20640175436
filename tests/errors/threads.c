/* threads.c - numbers of threads that are too large or that the system does not create: refused where they were
 * requested, lowered where they are OpenMP's own, and never the end of the process.
 *
 * usage: threads CASE; each case is a process of its own, because OpenMP's threads stay. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <flashsketch_tasks.h>

#include "tests/support/support.h"

enum { D = 10000, K = 400, N = 50 };

static fs_matrix matrix(int64_t rows, int fill)
{
    fs_matrix m = fs_row_major(room(rows * N, 4), rows, N, FS_F32);
    for (int64_t i = 0; fill && i < rows; i++)
        for (int64_t j = 0; j < N; j++) put(&m, i, j, whole_at(1, i * N + j, 8));
    return m;
}

/* It has parallel regions of its own. */
static void measure_coherence(fs_context *ctx)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.d = 100, spec.k = 64;
    fs_sketch *S = sketch_of(&spec);
    fs_matrix A = matrix(100, 1);
    fs_coherence_report report = FS_COHERENCE_REPORT_INIT;
    MUST(fs_coherence(ctx, S, &A, NULL, &report));
    fs_sketch_destroy(S);
    free(A.data);
}

/* A product with so many threads, compared with one thread's. */
static void multiply(int threads, int expected)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K;
    fs_sketch *S = sketch_of(&spec);
    fs_context *one = context_of("base", 1), *many = context_of("base", threads);
    fs_matrix A = matrix(D, 1), Y = matrix(K, 0), Z = matrix(K, 0);
    char text[300], want[40];
    MUST(fs_apply(many, S, 0, 1.0, &A, 0.0, &Z));
    MUST(fs_apply(one, S, 0, 1.0, &A, 0.0, &Y));
    assert_memory_equal(Y.data, Z.data, K * N * 4);
    measure_coherence(many);
    fs_context_describe(many, text, sizeof text);
    print_message("%s\n", text);
    snprintf(want, sizeof want, ", %d threads", expected);
    if (expected) assert_non_null(strstr(text, want));
    fs_context_destroy(one), fs_context_destroy(many);
    fs_sketch_destroy(S);
    free(A.data), free(Y.data), free(Z.data);
}

static void options_above_the_limit_are_refused(void **state)
{
    (void)state;
    static const int counts[] = {FS_THREADS_MAX + 1, 40000, 100000, 0x7FFFFFFF};
    for (int i = 0; i < 4; i++) {
        fs_context_options options = FS_CONTEXT_INIT;
        fs_context *ctx = NULL;
        char number[32];
        options.backend = FS_BACKEND_CPU;
        options.threads = counts[i];
        snprintf(number, sizeof number, "threads = %d", counts[i]);
        REFUSED(fs_context_create(&ctx, &options), FS_EINVAL, number, "at most 1024");
        assert_null(ctx);
    }
}

/* OMP_NUM_THREADS is 100000 (CMakeLists.txt). */
static void openmps_own_number_is_lowered(void **state)
{
    (void)state;
    multiply(0, FS_THREADS_MAX);
}
static void the_limit_itself_works(void **state)
{
    (void)state;
    multiply(FS_THREADS_MAX, FS_THREADS_MAX);
}

/* Room for a few of 64 stacks only: libgomp would end the process. */
static void threads_that_the_system_does_not_create_are_left_out(void **state)
{
    (void)state;
    long pages = 0;
    fs_context_destroy(context_of("base", 1)); /* what a first context opens is mapped */
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld", &pages) != 1) exit(77);
    fclose(f);
    const rlim_t most = (rlim_t)pages * 4096 + ((rlim_t)48 << 20);
    const struct rlimit addresses = {most, most};
    assert_int_equal(setrlimit(RLIMIT_AS, &addresses), 0);
    multiply(64, 0);
    assert_true(fs_thread_count(64) < 64);
}

static int threads_of_process(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    if (!folder) exit(77);
    for (const struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* The process has `count` threads.  A thread that was joined may stay in /proc for a moment: it is waited for. */
static void expect_threads(int count)
{
    const struct timespec moment = {0, 10 * 1000 * 1000};
    for (int i = 0; i < 100 && threads_of_process() > count; i++) nanosleep(&moment, NULL);
    assert_int_equal(threads_of_process(), count);
}

/* Each step, host-only sums of a CUDA context included, creates no thread where options.threads is 1, and threads where
 * it is 2: OpenMP's own number is 2 (CMakeLists.txt), and its threads stay. */
static void every_step_uses_the_threads_of_its_context(void **state)
{
    (void)state;
    setenv("FLASHSKETCH_CUDA_PLUGIN", PLUGIN_GOOD, 1);
    fs_matrix A = matrix(D, 1), B = matrix(D, 0), Y = matrix(K, 0);
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K;
    fs_sketch *S = sketch_of(&spec);
    for (int threads = 1; threads <= 2; threads++) {
        fs_context *cpu = context_of("base", threads), *cuda = NULL;
        fs_context_options options = FS_CONTEXT_INIT;
        options.backend = FS_BACKEND_CUDA, options.threads = threads;
        MUST(fs_context_create(&cuda, &options));
        MUST(fs_add(cuda, &A, 1, 0.0, &B));
        expect_threads(threads);
        MUST(fs_add(cpu, &A, 1, 0.0, &B));
        expect_threads(threads);
        measure_coherence(cpu);
        expect_threads(threads);
        measure_coherence(cuda);
        expect_threads(threads);
        MUST(fs_apply(cpu, S, 0, 1.0, &A, 0.0, &Y));
        expect_threads(threads);
        fs_context_destroy(cpu), fs_context_destroy(cuda);
    }
    fs_sketch_destroy(S);
    free(A.data), free(B.data), free(Y.data);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        struct CMUnitTest test;
    } cases[] = {
        {"options", cmocka_unit_test(options_above_the_limit_are_refused)},
        {"environment", cmocka_unit_test(openmps_own_number_is_lowered)},
        {"limit", cmocka_unit_test(the_limit_itself_works)},
        {"steps", cmocka_unit_test(every_step_uses_the_threads_of_its_context)},
        {"system", cmocka_unit_test(threads_that_the_system_does_not_create_are_left_out)},
    };
    for (int i = 0; i < 5 && argc == 2; i++)
        if (!strcmp(argv[1], cases[i].name)) {
            const struct CMUnitTest tests[] = {cases[i].test};
            return cmocka_run_group_tests(tests, NULL, NULL);
        }
    return 2;
}
