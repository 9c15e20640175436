/* callers.c - fs_multi_run: the solvers on one matrix whose rows several contexts have, each in a thread of its own, give
 * what one context gives, the same bits to all and in every run; and a failure of one is one of all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"
#include "tests/support/scarce.h"

enum { MOST = 4, D = 300, N = 8, RANK = 3 };
static double a[D * N], b[D];

/* How rows are spread over `count` contexts: 0 evenly, 1 backwards, 2 all in the last. */
static void cut(int count, int how, int64_t *row0, int64_t *rows)
{
    for (int i = 0; i < count; i++) {
        const int place = how == 1 ? count - 1 - i : i;
        row0[i] = how == 2 ? 0 : (int64_t)D * place / count;
        rows[i] = how == 2 ? (i == count - 1 ? D : 0) : (int64_t)D * (place + 1) / count - row0[i];
    }
}

/* What all calls write; Q, U and scores are all rows of theirs. */
typedef struct results {
    double x[MOST][N], r[MOST][N * N], s[MOST][N], v[MOST][N * RANK], q[D * N], u[D * RANK], scores[D];
} results;
typedef struct work {
    const int64_t *row0, *rows;
    results *to;
    int fails, comes_late; /* the caller that fails on its own, and the one that makes fewer calls; -1: none */
    int twice;             /* after a failure that all get, solves again */
} work;

static fs_result solve_all(void *user, int i, fs_context *ctx, const fs_ranks *ranks)
{
    const work *w = user;
    results *to = w->to;
    const int64_t row0 = w->row0[i], rows = w->rows[i];
    const fs_matrix A = fs_row_major(a + row0 * N, rows, N, FS_F64), B = fs_row_major(b + row0, rows, 1, FS_F64);
    const fs_matrix X = fs_row_major(to->x[i], N, 1, FS_F64), R = fs_row_major(to->r[i], N, N, FS_F64);
    const fs_matrix Q = fs_row_major(to->q + row0 * N, rows, N, FS_F64);
    const fs_matrix U = fs_row_major(to->u + row0 * RANK, rows, RANK, FS_F64);
    const fs_matrix V = fs_row_major(to->v[i], N, RANK, FS_F64);
    fs_operand operand = FS_OPERAND_INIT;
    operand.dense = &A;
    fs_lstsq_options lstsq = FS_LSTSQ_INIT;
    fs_qr_options qr = FS_QR_INIT;
    fs_svd_options svd = FS_SVD_INIT;
    fs_leverage_options leverage = FS_LEVERAGE_INIT;
    lstsq.ranks = qr.ranks = svd.ranks = leverage.ranks = ranks;
    lstsq.method = FS_LSTSQ_ITERATE;
    svd.rank = RANK, svd.oversampling = 2, svd.one_read = 1;
    fs_result result = fs_lstsq(ctx, &operand, &B, &lstsq, &X, NULL);
    if (result != FS_OK && w->twice) result = fs_qr(ctx, &operand, &qr, &Q, &R, NULL, NULL);
    if (result != FS_OK) return result;
    if (w->fails == i) return FS_EFILE;
    if (w->comes_late == i) return FS_OK;
    result = fs_qr(ctx, &operand, &qr, &Q, &R, NULL, NULL);
    if (result == FS_OK) result = fs_pca(ctx, &operand, &svd, NULL, &U, to->s[i], &V, NULL);
    if (result == FS_OK) result = fs_leverage(ctx, &operand, &leverage, to->scores + row0, NULL);
    return result;
}

static void expect_near(const char *what, const double *got, const double *want, int64_t count)
{
    double size = 0;
    for (int64_t i = 0; i < count; i++) size = fmax(size, fabs(want[i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-10 * size))
            fail_msg("%s: number %d is %.17g, not %.17g", what, (int)i, got[i], want[i]);
}

static void solvers_give_what_one_context_gives(void **state)
{
    (void)state;
    static results one, got, again;
    fs_context *contexts_[MOST];
    for (int i = 0; i < MOST; i++) contexts_[i] = context_of(i % 2 ? "base" : NULL, 1 + i % 2);
    for (int count = 1; count <= MOST; count++) {
        fs_multi *multi = NULL;
        MUST(fs_multi_create(&multi, contexts_, count, NULL));
        for (int how = 0; how < (count == 1 ? 1 : 3); how++) {
            int64_t row0[MOST], rows[MOST];
            cut(count, how, row0, rows);
            results *to = count == 1 ? &one : &got;
            work w = {row0, rows, to, -1, -1, 0};
            memset(&got, 0, sizeof got), memset(&again, 0, sizeof again);
            MUST(fs_multi_run(multi, row0, rows, solve_all, &w));
            for (int run = 0; run < 2; run++) {
                w.to = &again;
                MUST(fs_multi_run(multi, row0, rows, solve_all, &w));
                assert_memory_equal(&again, to, sizeof again);
            }
            for (int i = 0; i < count; i++) {
                assert_memory_equal(to->x[i], to->x[0], sizeof to->x[0]);
                assert_memory_equal(to->r[i], to->r[0], sizeof to->r[0]);
                assert_memory_equal(to->s[i], to->s[0], sizeof to->s[0]);
                assert_memory_equal(to->v[i], to->v[0], sizeof to->v[0]);
            }
            expect_near("X", to->x[0], one.x[0], N), expect_near("R", to->r[0], one.r[0], N * N);
            expect_near("s", to->s[0], one.s[0], RANK), expect_near("V", to->v[0], one.v[0], N * RANK);
            expect_near("Q", to->q, one.q, D * N), expect_near("U", to->u, one.u, D * RANK);
            expect_near("scores", to->scores, one.scores, D);
        }
        fs_multi_destroy(multi);
    }
    /* One context has no other to sum with; tests/tasks checks that its answers are right. */
    double gradient[N] = {0};
    for (int i = 0; i < D; i++) {
        double residual = b[i];
        for (int j = 0; j < N; j++) residual -= a[i * N + j] * one.x[0][j];
        for (int j = 0; j < N; j++) gradient[j] += a[i * N + j] * residual;
    }
    for (int j = 0; j < N; j++) assert_true(fabs(gradient[j]) < 1e-11);
    for (int i = 0; i < MOST; i++) fs_context_destroy(contexts_[i]);
}

/* Rounds of sums of many lengths, some of which one caller fails: a caller that is late in one round is not late in
 * the next. */
typedef struct rounds {
    int count;
    int64_t met[MOST];
} rounds;
static fs_result sum_many(void *user, int index, fs_context *ctx, const fs_ranks *ranks)
{
    enum { ROUNDS = 300, LONGEST = 70 };
    rounds *r = user;
    double values[LONGEST];
    (void)ctx;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t count = round % LONGEST;
        const int fails = round % 7 == 3 && index == round % r->count;
        for (int64_t i = 0; i < count; i++) values[i] = (double)((index + 1) * (i + round));
        if (fails && fs_fail(FS_EFILE, "round %d", round) != FS_EFILE) return FS_EBACKEND;
        const fs_result result = ranks->sum(ranks->user, values, fails ? 0 : count, fails ? FS_EFILE : 0);
        char words[40];
        snprintf(words, sizeof words, "contexts[%d]: round %d", round % r->count, round);
        if (round % 7 == 3) {
            if (result != FS_EFILE || strcmp(fs_error_message(), words) != 0)
                return fs_fail(FS_EBACKEND, "round %d is %s: %s", round, fs_result_name(result), fs_error_message());
            continue;
        }
        if (result != FS_OK) return result;
        for (int64_t i = 0; i < count; i++)
            if (values[i] != (double)(r->count * (r->count + 1) / 2 * (i + round)))
                return fs_fail(FS_EBACKEND, "round %d: sum %d is %g", round, (int)i, values[i]);
        r->met[index]++;
    }
    return FS_OK;
}

static void sums_and_failures_in_turns(void **state)
{
    (void)state;
    fs_context *contexts_[MOST];
    for (int i = 0; i < MOST; i++) contexts_[i] = context_of("base", 1);
    for (int count = 1; count <= MOST; count++) {
        fs_multi *multi = NULL;
        int64_t row0[MOST], rows[MOST];
        rounds r = {count, {0}};
        cut(count, 0, row0, rows);
        MUST(fs_multi_create(&multi, contexts_, count, NULL));
        MUST(fs_multi_run(multi, row0, rows, sum_many, &r));
        for (int i = 0; i < count; i++) assert_int_equal(r.met[i], 257);
        fs_multi_destroy(multi);
    }
    for (int i = 0; i < MOST; i++) fs_context_destroy(contexts_[i]);
}

/* Callers that sum numbers of other lengths. */
static fs_result sum_unequally(void *user, int index, fs_context *ctx, const fs_ranks *ranks)
{
    double values[MOST + 1] = {0};
    (void)user, (void)ctx;
    return ranks->sum(ranks->user, values, index + 1, 0);
}

static void a_failure_of_one_ends_all(void **state)
{
    (void)state;
    static results to;
    fs_context *contexts_[3];
    scarce memory = {1 << 20, 0}, own = {1 << 20, 0};
    fs_context_options poor = FS_CONTEXT_INIT;
    poor.backend = FS_BACKEND_CPU, poor.threads = 1, poor.allocator = scarce_allocator(&memory);
    contexts_[0] = context_of("base", 1), contexts_[1] = context_of("base", 1);
    MUST(fs_context_create(&contexts_[2], &poor));
    fs_multi_options options = FS_MULTI_INIT;
    options.allocator = scarce_allocator(&own);
    fs_multi *multi = NULL;
    MUST(fs_multi_create(&multi, contexts_, 3, &options));
    int64_t row0[3], rows[3];
    cut(3, 0, row0, rows);
    work w = {row0, rows, &to, -1, -1, 0};
    /* The n-th allocation of one of them. */
    int refusals = 0, done = 0;
    for (int left = 0; !done; left += 1 + left / 8) {
        memory.left = left;
        const fs_result result = fs_multi_run(multi, row0, rows, solve_all, &w);
        done = result == FS_OK;
        if (!done) REFUSED(result, FS_ENOMEM, "contexts[2]: ", "memory");
        refusals += !done;
        assert_true(left < 1000);
    }
    assert_true(refusals > 10);
    memory.left = 1 << 20;
    own.left = 0;
    REFUSED(fs_multi_run(multi, row0, rows, solve_all, &w), FS_ENOMEM, "fs_multi_run", "bytes");
    own.left = 1 << 20;
    /* A bad element, a call that fails, or one that ends while others continue. */
    const double was = a[(D - 1) * N];
    a[(D - 1) * N] = NAN;
    REFUSED(fs_multi_run(multi, row0, rows, solve_all, &w), FS_EINVAL, "all contexts: fs_lstsq", "finite");
    w.twice = 1;
    REFUSED(fs_multi_run(multi, row0, rows, solve_all, &w), FS_EINVAL, "all contexts: fs_qr", "finite");
    w.twice = 0;
    a[(D - 1) * N] = was;
    for (int i = 0; i < 3; i++) {
        char words[60];
        w.fails = i;
        snprintf(words, sizeof words, "contexts[%d]: ", i);
        REFUSED(fs_multi_run(multi, row0, rows, solve_all, &w), FS_EFILE, words);
        w.fails = -1, w.comes_late = i;
        snprintf(words, sizeof words, "contexts[%d] has returned while others wait for its sum", i);
        REFUSED(fs_multi_run(multi, row0, rows, solve_all, &w), FS_EINVAL, words);
        w.comes_late = -1;
    }
    REFUSED(fs_multi_run(multi, row0, rows, sum_unequally, NULL), FS_EINVAL, "sum 1 and 3 numbers at a time");
    /* Rows. */
    rows[1]--;
    REFUSED(fs_multi_run(multi, row0, rows, solve_all, &w), FS_EINVAL, "contexts[2]", "200 to 299", "have 299 rows");
    rows[1] += 2;
    REFUSED(fs_multi_run(multi, row0, rows, solve_all, &w), FS_EINVAL, "contexts[1] has rows 100 to 200",
            "contexts[2]");
    rows[1] = -1;
    REFUSED(fs_multi_run(multi, row0, rows, solve_all, &w), FS_EINVAL, "contexts[1] has -1 rows");
    const int64_t none[3] = {0, 0, 0};
    REFUSED(fs_multi_run(multi, row0, none, solve_all, &w), FS_EINVAL, "no context has a row");
    cut(3, 0, row0, rows);
    REFUSED(fs_multi_run(NULL, row0, rows, solve_all, &w), FS_EINVAL, "multi is NULL");
    REFUSED(fs_multi_run(multi, NULL, rows, solve_all, &w), FS_EINVAL, "row0 is NULL");
    REFUSED(fs_multi_run(multi, row0, NULL, solve_all, &w), FS_EINVAL, "rows is NULL");
    REFUSED(fs_multi_run(multi, row0, rows, NULL, &w), FS_EINVAL, "call is NULL");
    MUST(fs_multi_run(multi, row0, rows, solve_all, &w));
    fs_multi_destroy(multi);
    for (int i = 0; i < 3; i++) fs_context_destroy(contexts_[i]);
    assert_int_equal(memory.live, 0);
    assert_int_equal(own.live, 0);
}

int main(void)
{
    for (int i = 0; i < D; i++) {
        for (int j = 0; j < N; j++)
            a[i * N + j] = (double)((i * 131 + j * 71 + i * i * (j + 3)) % 97 - 48) / 48 / (1 + j);
        b[i] = (double)(i * 37 % 53 - 26) / 26;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solvers_give_what_one_context_gives),
        cmocka_unit_test(sums_and_failures_in_turns),
        cmocka_unit_test(a_failure_of_one_ends_all),
    };
    return RUN_TASK_TESTS(tests);
}
