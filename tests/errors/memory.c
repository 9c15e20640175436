/* memory.c - when memory runs out, at whichever request, every call returns FS_ENOMEM with a message, writes nothing,
 * and releases all its memory; with memory again it works.  Memory is requested from the thread that calls the
 * library. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

/* Memory whose request number `left` (from 0) fails, once; negative: none does.  It records whether a thread other than
 * `caller` requested memory; fs_multi_apply creates threads, so there is a lock. */
typedef struct meter {
    int64_t left, live;
    int failed, foreign;
    pthread_t caller;
    pthread_mutex_t lock;
} meter;

static meter meter_make(int64_t left)
{
    return (meter){.left = left, .caller = pthread_self(), .lock = PTHREAD_MUTEX_INITIALIZER};
}
static void *meter_alloc(void *user, size_t bytes)
{
    meter *m = user;
    pthread_mutex_lock(&m->lock);
    const int fails = m->left-- == 0;
    m->failed |= fails;
    m->live += !fails;
    m->foreign |= !pthread_equal(pthread_self(), m->caller);
    pthread_mutex_unlock(&m->lock);
    return fails ? NULL : memset(room((int64_t)bytes, 1), 0xFF, bytes);
}
static void meter_release(void *user, void *memory)
{
    meter *m = user;
    pthread_mutex_lock(&m->lock);
    m->live--;
    m->foreign |= !pthread_equal(pthread_self(), m->caller);
    pthread_mutex_unlock(&m->lock);
    free(memory);
}
static fs_context_options metered(meter *m)
{
    fs_context_options options = FS_CONTEXT_INIT;
    options.backend = FS_BACKEND_CPU;
    options.threads = 2;
    options.allocator = (fs_allocator){meter_alloc, meter_release, m};
    return options;
}

typedef enum verb {
    APPLY,
    LISTED,
    PRODUCTS,
    ADJOINT,
    ADD,
    BY_ROWS,
    BY_COLUMNS,
    COUNT_NONZEROS,
    EXPORT,
    MULTI,
    VERBS
} verb;
static const char *const verb_names[] = {
    "fs_apply",         "fs_apply_rows",        "fs_apply_products",    "fs_apply_adjoint",
    "fs_add",           "fs_apply_sparse, CSR", "fs_apply_sparse, CSC", "fs_sketch_nnz",
    "fs_sketch_to_csr", "fs_multi_apply"};

enum { D = 150, N = 70 };

/* What a verb reads and writes. */
typedef struct work {
    view A, Y, X, part; /* part: of Y, for fs_add */
    fs_sparse rows, columns, S;
    view ptr, index, value; /* the arrays of S, 64 bits each, as views to be sealed */
    int64_t nnz;
} work;

static work work_make(const fs_spec *spec)
{
    work w = {.A = view_make(ROWS, D, N, FS_F32),
              .Y = view_make(ROWS_PADDED, spec->k, N, FS_F32),
              .X = view_make(COLUMNS_PADDED, D, N, FS_F32),
              .part = view_make(COLUMNS, spec->k, N, FS_F16)};
    fill_whole(&w.A.m, 1, 1);
    fill_whole(&w.part.m, 2, 8);
    w.rows = sparse_of(&w.A.m, 2, FS_CSR, FS_INDEX32);
    w.columns = sparse_of(&w.A.m, 2, FS_CSC, FS_INDEX64);
    fs_sketch *S = sketch_of(spec);
    int64_t nnz;
    MUST(fs_sketch_nnz(S, 0, D, &nnz));
    fs_sketch_destroy(S);
    w.ptr = view_make(ROWS, 1, spec->k + 1, FS_F64);
    w.index = view_make(ROWS, 1, nnz, FS_F64);
    w.value = view_make(ROWS, 1, nnz, FS_F64);
    w.S = (fs_sparse){FS_CSR,       FS_INDEX64,     spec->k,        D,      nnz,
                      w.ptr.m.data, w.index.m.data, w.value.m.data, FS_F64, FS_MEMORY_HOST};
    return w;
}
static void work_free(work *w)
{
    view *views[] = {&w->A, &w->Y, &w->X, &w->part, &w->ptr, &w->index, &w->value};
    for (int i = 0; i < 7; i++) view_free(views[i]);
    sparse_free(&w->rows), sparse_free(&w->columns);
}

/* Outputs as no call has seen them: Y integers, the rest NaN. */
static void reset(work *w)
{
    view *outputs[] = {&w->Y, &w->X, &w->ptr, &w->index, &w->value};
    fill_whole(&w->Y.m, 3, 8);
    for (int i = 0; i < 5; i++) view_seal(outputs[i]);
    w->nnz = -7;
}
static void expect_nothing_written(const char *what, const work *w)
{
    const view *outputs[] = {&w->Y, &w->X, &w->ptr, &w->index, &w->value};
    for (int i = 0; i < 5; i++) expect_untouched(what, outputs[i]);
    if (w->nnz != -7) fail_msg("%s: nnz was written: %" PRId64, what, w->nnz);
}

/* Rows of A times the row behind them. */
static fs_result products(fs_context *ctx, const fs_sketch *S, work *w)
{
    int32_t index[2 * (D - 1)];
    for (int32_t i = 0; i < 2 * (D - 1); i++) index[i] = i / 2 + i % 2;
    const fs_pairs pairs = {D - 1, index, FS_MEMORY_HOST};
    return fs_apply_products(ctx, S, 0, 1.0, &w->A.m, 1, 1, &pairs, 0.0, &w->Y.m);
}

/* The rows of A backwards. */
static fs_result listed(fs_context *ctx, const fs_sketch *S, work *w)
{
    int32_t index[D];
    for (int32_t i = 0; i < D; i++) index[i] = D - 1 - i;
    const fs_rows rows = {D, FS_INDEX32, index, FS_MEMORY_HOST};
    return fs_apply_rows(ctx, S, 0, 1.0, &w->A.m, &rows, 0.0, &w->Y.m);
}

/* Two contexts, the upper and the lower rows of A; the second one and their group live during the call. */
static fs_result multi(fs_context *ctx, meter *m, const fs_sketch *S, work *w)
{
    const fs_context_options options = metered(m);
    fs_multi_options how = FS_MULTI_INIT;
    how.allocator = options.allocator;
    fs_context *two[2] = {ctx, NULL};
    fs_multi *both = NULL;
    fs_matrix A[2] = {w->A.m, w->A.m};
    const int64_t row0[2] = {0, 100};
    A[0].rows = 100, A[1].rows = D - 100, A[1].offset += 100 * A[1].row_stride;
    fs_result result = fs_context_create(&two[1], &options);
    if (result == FS_OK) result = fs_multi_create(&both, two, 2, &how);
    if (result == FS_OK) result = fs_multi_apply(both, S, row0, 1.0, A, 0.0, &w->Y.m);
    fs_multi_destroy(both);
    fs_context_destroy(two[1]);
    return result;
}

static fs_result run(verb how, fs_context *ctx, meter *m, const fs_sketch *S, work *w)
{
    switch (how) {
    case APPLY: return fs_apply(ctx, S, 0, 1.0, &w->A.m, 0.0, &w->Y.m);
    case LISTED: return listed(ctx, S, w);
    case ADD: return fs_add(ctx, &w->part.m, 1, 1.0, &w->Y.m);
    case MULTI: return multi(ctx, m, S, w);
    case PRODUCTS: return products(ctx, S, w);
    case ADJOINT: return fs_apply_adjoint(ctx, S, 0, 1.0, &w->Y.m, 0.0, &w->X.m);
    case BY_ROWS: return fs_apply_sparse(ctx, S, 0, 1.0, &w->rows, 0.0, &w->Y.m);
    case BY_COLUMNS: return fs_apply_sparse(ctx, S, 0, 1.0, &w->columns, 0.0, &w->Y.m);
    case COUNT_NONZEROS: return fs_sketch_nnz(S, 0, D, &w->nnz);
    default: return fs_sketch_to_csr(NULL, S, 0, &w->S);
    }
}

/* Creates, runs, destroys with a meter whose request `fail` fails; FS_OK when none of them was that request. */
static fs_result scenario(const char *what, verb how, const fs_spec *spec, int64_t fail, work *w)
{
    meter m = meter_make(fail);
    const fs_context_options options = metered(&m);
    fs_sketch *S = NULL;
    fs_context *ctx = NULL;
    reset(w);
    fs_result result = fs_sketch_create_with(&S, spec, &options.allocator);
    if (result == FS_OK) result = fs_context_create(&ctx, &options);
    if (result == FS_OK) result = run(how, ctx, &m, S, w);
    if (result == FS_OK && m.failed) fail_msg("%s: FS_OK all the same", what);
    if (result != FS_OK) {
        if (!strstr(fs_error_message(), "memory")) fail_msg("%s: the message is \"%s\"", what, fs_error_message());
        expect_nothing_written(what, w);
        m.left = -1;
        if (ctx) MUST(run(how, ctx, &m, S, w));
    }
    fs_context_destroy(ctx);
    fs_sketch_destroy(S);
    if (m.live != 0) fail_msg("%s: %" PRId64 " pieces of memory were not released", what, m.live);
    if (m.foreign && how != MULTI) fail_msg("%s: memory was requested or released from another thread", what);
    return result;
}

static void every_failed_request_for_memory_is_reported_and_undone(void **state)
{
    (void)state;
    for (int v = 0; v < context_count; v++) {
        setenv("FLASHSKETCH_ISA", contexts[v].name, 1);
        for (int r = 0; r < recipe_count; r++) {
            const fs_spec spec = spec_at(&recipes[r], D, 65, 1);
            work w = work_make(&spec);
            for (verb how = APPLY; how < VERBS; how++)
                for (int64_t fail = 0;; fail++) {
                    char what[200];
                    snprintf(what, sizeof what, "%s: %s, %s, request %" PRId64 " failed", contexts[v].name,
                             recipes[r].name, verb_names[how], fail);
                    const fs_result result = scenario(what, how, &spec, fail, &w);
                    if (result == FS_OK) break;
                    if (result != FS_ENOMEM) fail_msg("%s: %s", what, fs_result_name(result));
                    if (fail > 50) fail_msg("%s: there is no end to its requests", what);
                }
            work_free(&w);
        }
        unsetenv("FLASHSKETCH_ISA");
    }
}

/* Scratch grows to the need of the largest call and no call releases it; the second time nothing is requested. */
static void a_repeated_call_requests_no_memory(void **state)
{
    (void)state;
    for (int v = 0; v < context_count; v++)
        for (int r = 0; r < recipe_count; r++) {
            meter m = meter_make(-1);
            const fs_spec spec = spec_at(&recipes[r], D, 65, 1);
            const fs_context_options options = metered(&m);
            fs_context *ctx = NULL;
            fs_sketch *S = sketch_of(&spec);
            work w = work_make(&spec);
            setenv("FLASHSKETCH_ISA", contexts[v].name, 1);
            MUST(fs_context_create(&ctx, &options));
            unsetenv("FLASHSKETCH_ISA");
            fill_whole(&w.Y.m, 3, 8);
            for (verb how = APPLY; how <= BY_COLUMNS; how++) MUST(run(how, ctx, &m, S, &w));
            const size_t scratch = fs_context_memory_bytes(ctx);
            m.left = 0;
            for (verb how = APPLY; how <= BY_COLUMNS; how++) MUST(run(how, ctx, &m, S, &w));
            assert_int_equal(fs_context_memory_bytes(ctx), scratch);
            fs_context_destroy(ctx);
            fs_sketch_destroy(S);
            assert_int_equal(m.live, 0);
            work_free(&w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_request_for_memory_is_reported_and_undone),
        cmocka_unit_test(a_repeated_call_requests_no_memory),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
