#include "sources.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void expect_below(const char *what, double value, double bound)
{
    if (!(value <= bound)) fail_msg("%s: %g, at most %g expected", what, value, bound);
}

fs_operand dense_operand(const fs_matrix *A)
{
    fs_operand o = FS_OPERAND_INIT;
    o.dense = A;
    return o;
}
fs_operand sparse_operand(const fs_sparse *A)
{
    fs_operand o = FS_OPERAND_INIT;
    o.sparse = A;
    return o;
}

static fs_matrix rows_of(const fs_matrix *A, int64_t row0, int64_t rows)
{
    fs_matrix part = *A;
    part.offset += row0 * part.row_stride;
    part.rows = rows;
    return part;
}

/* slices --------------------------------------------------------------------------------------------------------- */

static void let_go(slicer *s)
{
    if (s->held.ptr) sparse_free(&s->held);
    s->held.ptr = NULL;
}
static fs_result slicer_rewind(void *user)
{
    slicer *s = user;
    s->at = 0;
    s->reads++;
    return FS_OK;
}
static fs_result slicer_next(void *user, fs_matrix *dense, const fs_sparse **sparse)
{
    slicer *s = user;
    const int64_t left = s->A->rows - s->at, number = s->at / s->most;
    if (s->reads == s->fail_read && s->at + s->most >= s->A->rows)
        return fs_fail(FS_EFILE, "row %d cannot be read", (int)s->at);
    const fs_matrix part = rows_of(s->A, s->at, left < s->most ? left : s->most);
    s->at += part.rows;
    let_go(s);
    if (s->sparse && number % 2) {
        s->held = sparse_of(&part, (uint64_t)number, number % 4 == 1 ? FS_CSR : FS_CSC, FS_INDEX32);
        *sparse = &s->held;
    } else {
        *dense = part;
    }
    return FS_OK;
}

fs_operand slicer_open(slicer *s, const fs_matrix *A, int64_t most, int sparse)
{
    const fs_slices start = FS_SLICES_INIT;
    memset(s, 0, sizeof *s);
    s->A = A, s->most = most, s->sparse = sparse;
    s->slices = start;
    s->slices.rows = A->rows, s->slices.cols = A->cols, s->slices.dtype = A->dtype;
    s->slices.rewind = slicer_rewind, s->slices.next = slicer_next, s->slices.user = s;
    fs_operand o = FS_OPERAND_INIT;
    o.slices = &s->slices;
    return o;
}
void slicer_close(slicer *s) { let_go(s); }

/* ranks ---------------------------------------------------------------------------------------------------------- */

typedef struct team {
    pthread_barrier_t barrier;
    rank_thread *ranks;
    int count;
    int64_t wanted[MOST_RANKS];
    int unlike; /* whether ranks once summed different counts */
    rank_work work;
    void *user;
} team;

/* Where ranks have failed, all get the failure of the first of them. */
static fs_result team_sum(void *user, double *values, int64_t count, int failed)
{
    rank_thread *r = user;
    team *t = r->team;
    r->sent = values;
    r->failed = failed;
    t->wanted[r->number] = count;
    if (failed) snprintf(r->message, sizeof r->message, "%s", fs_error_message());
    pthread_barrier_wait(&t->barrier);
    fs_result result = FS_OK;
    for (int i = t->count - 1; i >= 0; i--)
        if (t->ranks[i].failed) result = fs_fail((fs_result)t->ranks[i].failed, "rank %d: %s", i, t->ranks[i].message);
    for (int i = 0; i < t->count && result == FS_OK; i++)
        if (t->wanted[i] != count) t->unlike = 1, result = fs_fail(FS_EBACKEND, "ranks sum different counts");
    double *sums = room(count + 1, sizeof *sums);
    for (int64_t j = 0; j < count && result == FS_OK; j++) {
        sums[j] = 0;
        for (int i = 0; i < t->count; i++) sums[j] += t->ranks[i].sent[j];
    }
    pthread_barrier_wait(&t->barrier); /* all have read what was sent */
    if (result == FS_OK && count) memcpy(values, sums, (size_t)count * sizeof *values);
    free(sums);
    return result;
}

static void *rank_main(void *user)
{
    rank_thread *r = user;
    r->result = r->team->work(r, r->team->user);
    if (r->result != FS_OK) snprintf(r->message, sizeof r->message, "%s", fs_error_message());
    return NULL;
}

void run_ranks(rank_thread *ranks, int count, const int64_t *begin, const fs_matrix *A, int must, rank_work work,
               void *user)
{
    const fs_ranks start = FS_RANKS_INIT;
    team t = {.ranks = ranks, .count = count, .work = work, .user = user};
    pthread_t threads[MOST_RANKS];
    assert_true(count <= MOST_RANKS);
    assert_int_equal(pthread_barrier_init(&t.barrier, NULL, (unsigned)count), 0);
    for (int i = 0; i < count; i++) {
        rank_thread *r = &ranks[i];
        memset(r, 0, sizeof *r);
        r->number = i, r->count = count, r->team = &t;
        r->A = rows_of(A, begin[i], begin[i + 1] - begin[i]);
        r->ranks = start;
        r->ranks.row0 = begin[i], r->ranks.rows = A->rows, r->ranks.sum = team_sum, r->ranks.user = r;
        r->ctx = context_of(NULL, 1);
    }
    for (int i = 0; i < count; i++) assert_int_equal(pthread_create(&threads[i], NULL, rank_main, &ranks[i]), 0);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&t.barrier);
    for (int i = 0; i < count; i++) fs_context_destroy(ranks[i].ctx);
    if (t.unlike) fail_msg("%d ranks summed different counts of numbers", count);
    for (int i = 0; i < count && must; i++)
        if (ranks[i].result != FS_OK) fail_msg("rank %d of %d: %s", i, count, ranks[i].message);
}
