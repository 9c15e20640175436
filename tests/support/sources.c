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

fs_matrix rows_of(const fs_matrix *A, int64_t row0, int64_t rows)
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
    const int64_t left = s->A->rows - s->at, number = s->at / s->most + 1;
    if (s->reads == s->fail_read && (s->fail_slice ? number == s->fail_slice : left <= s->most))
        return fs_fail(FS_EFILE, "row %d cannot be read", (int)s->at);
    const fs_matrix part = rows_of(s->A, s->at, left < s->most ? left : s->most);
    s->at += part.rows;
    let_go(s);
    if (s->sparse_every && number % s->sparse_every == 0) {
        const fs_sparse_format format = number / s->sparse_every % 2 ? FS_CSR : FS_CSC;
        s->held = sparse_of(&part, (uint64_t)number, format, FS_INDEX32);
        *sparse = &s->held;
    } else {
        *dense = part;
    }
    return FS_OK;
}

fs_operand slicer_open(slicer *s, const fs_matrix *A, int64_t most, int sparse_every)
{
    const fs_slices start = FS_SLICES_INIT;
    memset(s, 0, sizeof *s);
    s->A = A, s->most = most, s->sparse_every = sparse_every;
    s->slices = start;
    s->slices.rows = A->rows, s->slices.cols = A->cols, s->slices.dtype = A->dtype;
    s->slices.rewind = slicer_rewind, s->slices.next = slicer_next, s->slices.user = s;
    fs_operand o = FS_OPERAND_INIT;
    o.slices = &s->slices;
    return o;
}
void slicer_close(slicer *s) { let_go(s); }

/* ranks ---------------------------------------------------------------------------------------------------------- */

/* One call of run_ranks; a slot is written by its rank before all meet, and read by all before they meet again. */
typedef struct rank_run {
    pthread_barrier_t barrier;
    int count;
    struct {
        const double *values;
        int64_t count;
        int failed;
        char message[512];
        int unlike; /* whether this rank once saw different counts; for the caller, at the end */
    } slots[MOST_RANKS];
    rank_work work;
    void *user;
} rank_run;

static fs_result sum_of_ranks(void *user, double *values, int64_t count, int failed)
{
    rank_thread *r = user;
    rank_run *run = r->run;
    if (++r->sums == r->fail_sum && !failed) failed = fs_fail(FS_EBACKEND, "sum %d fails", r->sums);
    run->slots[r->number].values = values;
    run->slots[r->number].count = count;
    run->slots[r->number].failed = failed;
    if (failed) snprintf(run->slots[r->number].message, sizeof run->slots[0].message, "%s", fs_error_message());
    pthread_barrier_wait(&run->barrier);
    fs_result result = FS_OK;
    for (int i = 0; i < run->count && result == FS_OK; i++)
        if (run->slots[i].failed)
            result = fs_fail((fs_result)run->slots[i].failed, "rank %d: %s", i, run->slots[i].message);
    for (int i = 0; i < run->count && result == FS_OK; i++)
        if (run->slots[i].count != count)
            run->slots[r->number].unlike = 1, result = fs_fail(FS_EBACKEND, "ranks sum different counts");
    double *sums = room(count + 1, sizeof *sums);
    for (int64_t j = 0; j < count && result == FS_OK; j++) {
        sums[j] = 0;
        for (int i = 0; i < run->count; i++) sums[j] += run->slots[i].values[j];
    }
    pthread_barrier_wait(&run->barrier);
    if (result == FS_OK && count) memcpy(values, sums, (size_t)count * sizeof *values);
    free(sums);
    return result;
}

static void *rank_main(void *user)
{
    rank_thread *r = user;
    r->result = r->run->work(r, r->run->user);
    if (r->result != FS_OK) snprintf(r->message, sizeof r->message, "%s", fs_error_message());
    return NULL;
}

void run_ranks(rank_thread *ranks, int count, const int64_t *begin, const fs_matrix *A, int must, rank_work work,
               void *user)
{
    const fs_ranks start = FS_RANKS_INIT;
    rank_run run = {.count = count, .work = work, .user = user};
    pthread_t threads[MOST_RANKS];
    assert_true(count <= MOST_RANKS);
    assert_int_equal(pthread_barrier_init(&run.barrier, NULL, (unsigned)count), 0);
    for (int i = 0; i < count; i++) {
        rank_thread *r = &ranks[i];
        memset(r, 0, sizeof *r);
        r->number = i, r->count = count, r->run = &run;
        r->A = rows_of(A, begin[i], begin[i + 1] - begin[i]);
        r->ranks = start;
        r->ranks.row0 = begin[i], r->ranks.rows = A->rows, r->ranks.sum = sum_of_ranks, r->ranks.user = r;
        r->ctx = context_of(NULL, 1);
    }
    for (int i = 0; i < count; i++) assert_int_equal(pthread_create(&threads[i], NULL, rank_main, &ranks[i]), 0);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&run.barrier);
    for (int i = 0; i < count; i++) fs_context_destroy(ranks[i].ctx), ranks[i].run = NULL;
    for (int i = 0; i < count; i++)
        if (run.slots[i].unlike) fail_msg("%d ranks summed different counts of numbers", count);
    for (int i = 0; i < count && must; i++)
        if (ranks[i].result != FS_OK) fail_msg("rank %d of %d: %s", i, count, ranks[i].message);
}
