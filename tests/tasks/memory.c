/* memory.c - when the n-th allocation fails, making a workspace or measuring a coherence is FS_ENOMEM with the bytes,
 * and nothing is lost; once created, a workspace takes no more.  All memory is requested by the calling thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/problems.h"

/* foreign: whether a thread other than `caller` has requested memory. */
typedef struct limited {
    int left, live, taken;
    pthread_t caller;
    atomic_int foreign;
} limited;
static void *take(void *user, size_t bytes)
{
    limited *m = user;
    if (!pthread_equal(pthread_self(), m->caller)) m->foreign = 1;
    if (m->left-- == 0) return NULL;
    m->live++, m->taken++;
    return malloc(bytes);
}
static void give(void *user, void *memory)
{
    limited *m = user;
    if (!pthread_equal(pthread_self(), m->caller)) m->foreign = 1;
    m->live--;
    free(memory);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    limited memory = {.left = -1, .caller = pthread_self()};
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = FS_BACKEND_CPU;
    where.allocator = (fs_allocator){take, give, &memory};
    fs_context *ctx;
    MUST(fs_context_create(&ctx, &where));
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    shape.k = 40, shape.n = 6, shape.rhs = 2, shape.basis = 100;
    problem p = problem_make(100, 6, 2, FS_F32, 2, 0.1, 1);
    fs_spec spec = FS_SPEC_INIT;
    spec.d = 100, spec.k = 40;
    fs_sketch *S = sketch_of(&spec);
    fs_workspace *w = NULL;
    int needed = 0;
    const int before = memory.live;
    for (;; needed++) {
        memory.left = needed;
        const fs_result result = fs_workspace_create(&w, ctx, &shape);
        if (result == FS_OK) break;
        REFUSED(result, FS_ENOMEM, "no memory", "bytes");
        assert_null(w);
        assert_int_equal(memory.live, before);
    }
    assert_true(needed >= 4);
    memory.left = -1;
    fs_coherence_report report = FS_COHERENCE_REPORT_INIT;
    for (needed = 0;; needed++) {
        const int live = memory.live;
        memory.left = needed;
        const fs_result result = fs_coherence(ctx, S, &p.A, NULL, &report);
        if (result == FS_OK) break;
        REFUSED(result, FS_ENOMEM, "no memory");
        assert_int_equal(memory.live, live);
    }
    assert_true(needed >= 6);
    memory.left = -1;

    /* fs_apply's scratch grows once; then nothing is taken. */
    fs_matrix X = fs_row_major(room(12, 4), 6, 2, FS_F32), G = fs_row_major(room(36, 4), 6, 6, FS_F32);
    double norms[2];
    for (int run = 0; run < 2; run++) {
        fs_fit_report fit = FS_FIT_REPORT_INIT;
        fs_gram_report gram = FS_GRAM_REPORT_INIT;
        memory.taken = 0;
        MUST(fs_task_sketch(w, S, &p.A, &p.B));
        MUST(fs_solve(w, 0.0, &X, &fit));
        MUST(fs_solve(w, 0.5, &X, &fit));
        MUST(fs_ridge(w, 1.0, &X, &fit));
        MUST(fs_residual(w, &p.A, &p.B, &X, norms));
        MUST(fs_gram(w, S, &G, &gram));
        MUST(fs_gram_error(w, &p.A, norms, norms + 1));
    }
    assert_int_equal(memory.taken, 0);
    fs_workspace_destroy(w);
    fs_context_destroy(ctx);
    assert_int_equal(memory.live, 0);
    assert_int_equal(memory.foreign, 0);
    fs_sketch_destroy(S);
    free(X.data), free(G.data);
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return RUN_TASK_TESTS(tests);
}
