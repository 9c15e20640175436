/* lean.c - OpenBLAS is opened by what needs it and by nothing else; where memory for it is short a workspace is refused
 * with the numbers, a Gaussian product does without, and both use it once there is memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <flashsketch_tasks.h>

#include "tests/support/support.h"

enum { D = 300, K = 40, N = 6 };

static int openblas_is_loaded(void)
{
    char line[1024];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps) exit(77);
    while (fgets(line, sizeof line, maps)) found |= strstr(line, "openblas") != NULL;
    fclose(maps);
    return found;
}

/* Allows so many bytes of addresses beside those in use; 0: any number. */
static void limit_addresses(int64_t more)
{
    struct rlimit limit;
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld", &pages) != 1) exit(77);
    fclose(f);
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = more ? (rlim_t)(pages * 4096 + more) : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

static fs_result make_workspace(fs_context *ctx)
{
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    fs_workspace *w = NULL;
    shape.k = K, shape.n = N;
    const fs_result result = fs_workspace_create(&w, ctx, &shape);
    fs_workspace_destroy(w);
    return result;
}

/* OpenBLAS has all its memory when the first workspace is made: tasks then run with hardly more. */
static void run_tasks(fs_context *ctx, const fs_matrix *A)
{
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    fs_workspace *w = NULL;
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K;
    fs_sketch *S = sketch_of(&spec);
    fs_matrix B = *A, X = fs_row_major(room(N - 1, 8), N - 1, 1, FS_F64), first = *A;
    first.cols = N - 1, B.cols = 1, B.offset = N - 1;
    fs_gram_report gram = FS_GRAM_REPORT_INIT;
    fs_ose_report ose = FS_OSE_REPORT_INIT;
    fs_fit_report fit = FS_FIT_REPORT_INIT;
    shape.k = K, shape.n = N - 1, shape.rhs = 1, shape.dtype = FS_F64, shape.basis = D;
    MUST(fs_workspace_create(&w, ctx, &shape));
    limit_addresses((int64_t)24 << 20);
    alarm(60);
    MUST(fs_task_sketch(w, S, &first, &B));
    MUST(fs_solve(w, 0.0, &X, &fit));
    MUST(fs_solve(w, 1e-3, &X, &fit));
    MUST(fs_ridge(w, 1.0, &X, &fit));
    MUST(fs_gram(w, S, NULL, &gram));
    MUST(fs_ose(w, S, &first, 0, &ose));
    alarm(0);
    limit_addresses(0);
    fs_workspace_destroy(w);
    fs_sketch_destroy(S);
    free(X.data);
}

static void only_what_needs_openblas_opens_it(void **state)
{
    (void)state;
    fs_context *ctx = context_of("base", 0);
    fs_matrix A = fs_row_major(room(D * N, 8), D, N, FS_F64), Y = fs_row_major(room(K * N, 8), K, N, FS_F64);
    double *plain = room(K * N, 8), *bound = room(K * N, 8);
    fill_normal(&A, 1);
    char text[300];
    for (int family = FS_BLOCKPERM; family <= FS_SRHT; family++) {
        fs_spec spec = FS_SPEC_INIT;
        spec.family = (fs_family)family, spec.d = D, spec.k = K;
        fs_sketch *S = sketch_of(&spec);
        MUST(fs_apply(ctx, S, 0, 1.0, &A, 0.0, &Y));
        fs_sketch_destroy(S);
    }
    fs_context_describe(ctx, text, sizeof text);
    assert_int_equal(openblas_is_loaded(), 0);

    fs_spec spec = FS_SPEC_INIT;
    spec.family = FS_GAUSSIAN, spec.d = D, spec.k = K;
    fs_sketch *S = sketch_of(&spec);
    limit_addresses((int64_t)90 << 20);
    REFUSED(make_workspace(ctx), FS_ENOMEM, "no memory for OpenBLAS", "MiB", "OPENBLAS_NUM_THREADS");
    MUST(fs_apply(ctx, S, 0, 1.0, &A, 0.0, &Y));
    assert_int_equal(openblas_is_loaded(), 0);
    memcpy(plain, Y.data, K * N * 8);

    limit_addresses(0);
    MUST(fs_apply(ctx, S, 0, 1.0, &A, 0.0, &Y));
    assert_int_equal(openblas_is_loaded(), 1);
    for (int i = 0; i < K * N; i++) bound[i] = 1e-12;
    expect_close("OpenBLAS and the plain loop", &Y, plain, bound);
    run_tasks(ctx, &A);
    fs_context_destroy(ctx);
    assert_int_equal(openblas_is_loaded(), 1);
    fs_sketch_destroy(S);
    free(A.data), free(Y.data), free(plain), free(bound);
}

/* Whether OpenBLAS is installed; a child looks, so that this process has not opened it. */
static int openblas_is_there(void)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        fs_context *ctx = context_of("base", 1);
        _exit(make_workspace(ctx) == FS_OK ? 0 : 1);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    if (!openblas_is_there()) {
        fprintf(stderr, "skipped: there is no OpenBLAS\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_needs_openblas_opens_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
