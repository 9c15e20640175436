#include "spread.h"

#include <stdlib.h>
#include <string.h>

/* slices ------------------------------------------------------------------------------------------------------ */

static fs_result rewind_slices(void *user)
{
    sliced *s = user;
    s->reads++;
    s->at = s->slices = 0;
    return FS_OK;
}

static fs_result next_slice(void *user, fs_matrix *dense, const fs_sparse **sparse)
{
    sliced *s = user;
    const int64_t left = s->A->rows - s->at;
    if (s->fail_at == s->reads && s->slices == 1) return fs_fail(FS_EFILE, "disk 7 is gone");
    fs_matrix part = *s->A;
    part.data = (char *)part.data + (s->at * part.row_stride) * (int64_t)fs_dtype_size(part.dtype);
    part.rows = left < s->most ? left : s->most;
    part.size = 0;
    s->at += part.rows;
    s->slices++;
    if (s->sparse_every && s->slices % s->sparse_every == 0) {
        sliced_free(s);
        s->slice = sparse_of(&part, 5, s->slices % 2 ? FS_CSR : FS_CSC, FS_INDEX32);
        *sparse = &s->slice;
    } else {
        *dense = part;
    }
    return FS_OK;
}

fs_slices slices_of(sliced *s)
{
    fs_slices slices = FS_SLICES_INIT;
    slices.rows = s->A->rows, slices.cols = s->A->cols, slices.dtype = s->A->dtype;
    slices.rewind = rewind_slices, slices.next = next_slice, slices.user = s;
    return slices;
}

void sliced_free(sliced *s)
{
    if (s->slice.rows) sparse_free(&s->slice);
    memset(&s->slice, 0, sizeof s->slice);
}

/* ranks ------------------------------------------------------------------------------------------------------- */

/* All ranks meet, look at all slots, meet again: none has changed its values before all have read them. */
static fs_result sum_of_team(void *user, double *values, int64_t count, int failed)
{
    member *m = user;
    team *t = m->team;
    const fs_result own = (fs_result)failed; /* with its message */
    if (++m->sums == m->fail_at) failed = 1;
    t->slots[m->rank].values = values;
    t->slots[m->rank].count = count;
    t->slots[m->rank].failed = failed;
    pthread_barrier_wait(&t->barrier);
    fs_result result = FS_OK;
    for (int r = 0; r < t->count; r++)
        if (t->slots[r].failed) result = own != FS_OK ? own : fs_fail(FS_EBACKEND, "rank %d failed", r);
    double *sums = room(count + 1, sizeof *sums);
    for (int64_t i = 0; i < count && result == FS_OK; i++) {
        sums[i] = 0;
        for (int r = 0; r < t->count; r++) sums[i] += t->slots[r].values[i];
    }
    pthread_barrier_wait(&t->barrier);
    if (result == FS_OK && count) memcpy(values, sums, (size_t)count * sizeof *sums);
    free(sums);
    return result;
}

void team_make(team *t, int count)
{
    memset(t, 0, sizeof *t);
    t->count = count;
    pthread_barrier_init(&t->barrier, NULL, (unsigned)count);
}

void team_free(team *t) { pthread_barrier_destroy(&t->barrier); }

void member_make(member *m, team *t, int rank, int64_t row0, int64_t rows_of_all)
{
    const fs_ranks start = FS_RANKS_INIT;
    memset(m, 0, sizeof *m);
    m->team = t, m->rank = rank, m->ranks = start;
    m->ranks.row0 = row0, m->ranks.rows = rows_of_all, m->ranks.sum = sum_of_team, m->ranks.user = m;
}

typedef struct start {
    void (*body)(void *user, int rank);
    void *user;
    int rank;
} start;
static void *run_rank(void *given)
{
    const start *s = given;
    s->body(s->user, s->rank);
    return NULL;
}

void run_ranks(int count, void (*body)(void *user, int rank), void *user)
{
    pthread_t threads[MOST_RANKS];
    start starts[MOST_RANKS];
    for (int r = 0; r < count; r++) {
        starts[r] = (start){body, user, r};
        if (pthread_create(&threads[r], NULL, run_rank, &starts[r])) abort();
    }
    for (int r = 0; r < count; r++) pthread_join(threads[r], NULL);
}
