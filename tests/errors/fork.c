/* fork.c - a child of a process that has used the library multiplies and solves, with its parent's contexts and with
 * its own: it ends, and its results are the parent's. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include <flashsketch_tasks.h>

#include "tests/support/support.h"
#include "children.h"

enum { D = 3000, K = 200, N = 40, FAMILIES = FS_GAUSSIAN };

/* A problem, and what the parent found. */
typedef struct work {
    fs_matrix A, B, Y[FAMILIES + 1], X, again;
    fs_sketch *S[FAMILIES + 1];
    fs_context *ctx;
    fs_workspace *w; /* NULL: there is no OpenBLAS */
    int threads, fresh;
} work;

static fs_workspace *workspace_of(fs_context *ctx)
{
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    fs_workspace *w = NULL;
    shape.k = K, shape.n = N, shape.rhs = 1;
    const fs_result result = fs_workspace_create(&w, ctx, &shape);
    if (result != FS_EBACKEND) MUST(result);
    return w;
}

static fs_matrix matrix(int64_t rows, int64_t cols, uint64_t seed)
{
    fs_matrix m = fs_row_major(room(rows * cols, 4), rows, cols, FS_F32);
    fill_normal(&m, seed);
    return m;
}

static work work_make(void)
{
    work w = {.A = matrix(D, N, 1), .B = matrix(D, 1, 2), .X = matrix(N, 1, 3), .again = matrix(K, N, 4)};
    for (int f = FS_BLOCKPERM; f <= FAMILIES; f++) {
        fs_spec spec = FS_SPEC_INIT;
        spec.family = (fs_family)f, spec.d = D, spec.k = K;
        w.S[f] = sketch_of(&spec);
        w.Y[f] = matrix(K, N, 5);
    }
    return w;
}
static void work_free(work *w)
{
    free(w->A.data), free(w->B.data), free(w->X.data), free(w->again.data);
    for (int f = FS_BLOCKPERM; f <= FAMILIES; f++) {
        fs_sketch_destroy(w->S[f]);
        free(w->Y[f].data);
    }
}

/* What the child does; returns the step that was wrong.  OpenBLAS may add in another order with other threads, so what
 * it makes is compared within the rounding of its sums. */
static int differs(const fs_matrix *a, const fs_matrix *b, double slack)
{
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++)
            if (!(fabs(at(a, i, j) - at(b, i, j)) <= slack)) return 1;
    return 0;
}
static int in_child(void *argument)
{
    const work *w = argument;
    fs_context *ctx = w->fresh ? context_of("base", w->threads) : w->ctx;
    fs_workspace *space = w->fresh && w->w ? workspace_of(ctx) : w->w;
    fs_matrix Y = w->again, X = fs_row_major(room(N, 4), N, 1, FS_F32);
    for (int f = FS_BLOCKPERM; f <= FAMILIES; f++) {
        if (fs_apply(ctx, w->S[f], 0, 1.0, &w->A, 0.0, &Y)) return f;
        if (differs(&Y, &w->Y[f], f == FS_GAUSSIAN ? 1e-4 : 0)) return 10 + f;
    }
    if (space) {
        if (fs_task_sketch(space, w->S[1], &w->A, &w->B) || fs_solve(space, 0.0, &X, NULL)) return 20;
        if (differs(&X, &w->X, 1e-5)) return 21;
    }
    fs_coherence_report report = FS_COHERENCE_REPORT_INIT;
    if (fs_coherence(ctx, w->S[1], &w->A, NULL, &report)) return 22;
    free(X.data);
    if (!w->fresh) return 0;
    fs_workspace_destroy(space);
    fs_context_destroy(ctx);
    return 0;
}

static void children_finish_with_the_parents_results(void **state)
{
    (void)state;
    work w = work_make();
    for (w.threads = 0; w.threads <= 2; w.threads++) {
        w.ctx = context_of("base", w.threads);
        w.w = workspace_of(w.ctx);
        for (int f = FS_BLOCKPERM; f <= FAMILIES; f++) MUST(fs_apply(w.ctx, w.S[f], 0, 1.0, &w.A, 0.0, &w.Y[f]));
        if (w.w) MUST(fs_task_sketch(w.w, w.S[1], &w.A, &w.B));
        if (w.w) MUST(fs_solve(w.w, 0.0, &w.X, NULL));
        for (w.fresh = 0; w.fresh < 2; w.fresh++) {
            char what[80];
            snprintf(what, sizeof what, "threads %d, a %s context", w.threads, w.fresh ? "fresh" : "parent's");
            run_in_child(what, in_child, &w);
        }
        /* The parent continues as before. */
        MUST(fs_apply(w.ctx, w.S[1], 0, 1.0, &w.A, 0.0, &w.again));
        assert_int_equal(differs(&w.again, &w.Y[1], 0), 0);
        fs_workspace_destroy(w.w);
        fs_context_destroy(w.ctx);
    }
    work_free(&w);
}

/* The thread that called fork has one thread; one that the child creates has as many as it requests. */
static void *count_threads(void *count)
{
    *(int *)count = fs_thread_count(2);
    return NULL;
}
static int counts_in_child(void *unused)
{
    (void)unused;
    pthread_t thread;
    int count = 0;
    if (fs_thread_count(2) != 1 || fs_thread_count(0) != 1) return 1;
    if (pthread_create(&thread, NULL, count_threads, &count) || pthread_join(thread, NULL)) return 2;
    return count == 2 ? 0 : 3;
}
static void only_the_thread_that_called_fork_is_limited(void **state)
{
    (void)state;
    assert_int_equal(fs_thread_count(2), 2);
    run_in_child("counting threads", counts_in_child, NULL);
    assert_int_equal(fs_thread_count(2), 2);
}

int main(void)
{
    need_children();
    const struct CMUnitTest tests[] = {cmocka_unit_test(children_finish_with_the_parents_results),
                                       cmocka_unit_test(only_the_thread_that_called_fork_is_limited)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
