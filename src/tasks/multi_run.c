/* multi_run.c - fs_multi_run: one thread for each context, and sums over them for the solvers.
 *
 * A sum has two barriers of all callers.  At the first, the last caller to arrive checks for all that their requests
 * agree.  Then each adds a share of the numbers over all callers, in the order of contexts, and writes it to all of
 * them; the second barrier ends when all shares are written.  No memory is allocated.
 *
 * A caller whose call has returned reaches no further barrier; the callers that reach one fail with that message. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "core/multi.h"
#include "flashsketch_solvers.h"

typedef struct group group;

typedef struct caller {
    group *all;
    int index;
    fs_context *ctx;
    fs_ranks ranks;
    pthread_t thread;
    /* The request of a caller at a barrier. */
    double *values;
    int64_t count;
    fs_result failure;
    int has_returned;
    fs_result result; /* the result of its call, or the failure that it reports, and the message */
    char message[400];
} caller;

/* Whether the threads that have been created may begin. */
typedef enum gate { WAITING, OPEN, CANCELLED } gate;

struct group {
    pthread_mutex_t lock;
    pthread_cond_t change;
    gate gate;
    int count, returned;
    int here;        /* callers at the barrier */
    int64_t meeting; /* barriers that have ended */
    fs_result verdict;
    char message[440]; /* of the last result that was a failure */
    fs_result (*call)(void *user, int index, fs_context *ctx, const fs_ranks *ranks);
    void *user;
    caller callers[];
};

/* barriers --------------------------------------------------------------------------------------------------- */

/* The result of this barrier; the lock is held. */
static void decide(group *g)
{
    const caller *worst = NULL, *absent = NULL;
    int failures = 0;
    int64_t least = INT64_MAX, most = 0;
    for (int i = g->count - 1; i >= 0; i--) {
        const caller *c = &g->callers[i];
        if (c->has_returned) absent = c;
        if (c->has_returned ? c->result != FS_OK : c->failure != FS_OK) worst = c, failures++;
        if (c->has_returned) continue;
        least = c->count < least ? c->count : least;
        most = c->count > most ? c->count : most;
    }
    g->verdict = FS_OK;
    if (worst) {
        g->verdict = worst->result;
        if (failures == g->count && g->count > 1) /* as for a sum that is not finite */
            snprintf(g->message, sizeof g->message, "all contexts: %s", worst->message);
        else snprintf(g->message, sizeof g->message, "contexts[%d]: %s", worst->index, worst->message);
    } else if (absent) {
        g->verdict = FS_EINVAL;
        snprintf(
            g->message, sizeof g->message,
            "fs_multi_run: the call for contexts[%d] has returned while others wait for its sum; all must call the same solvers",
            absent->index);
    } else if (least != most) {
        g->verdict = FS_EINVAL;
        snprintf(g->message, sizeof g->message,
                 "fs_multi_run: callers sum %" PRId64 " and %" PRId64
                 " numbers at a time: they do not solve the same problem",
                 least, most);
    }
}

/* Ends a barrier that all remaining callers have reached; the lock is held. */
static void end_if_complete(group *g)
{
    if (!g->here || g->here + g->returned < g->count) return;
    decide(g);
    g->here = 0;
    g->meeting++;
    pthread_cond_broadcast(&g->change);
}

static fs_result meet(caller *c)
{
    group *g = c->all;
    pthread_mutex_lock(&g->lock);
    const int64_t meeting = g->meeting;
    g->here++;
    end_if_complete(g);
    while (g->meeting == meeting) pthread_cond_wait(&g->change, &g->lock);
    /* The next result waits for this caller. */
    const fs_result verdict = g->verdict;
    if (verdict != FS_OK) fs_fail(verdict, "%s", g->message);
    pthread_mutex_unlock(&g->lock);
    return verdict;
}

/* fs_ranks.sum */
static fs_result sum_over_callers(void *user, double *values, int64_t count, int failed)
{
    caller *c = user;
    const group *g = c->all;
    c->values = values;
    c->count = count;
    c->failure = c->result = (fs_result)failed;
    if (failed) snprintf(c->message, sizeof c->message, "%s", fs_error_message());
    FSI_TRY(meet(c));
    if (!count) return FS_OK;
    const int64_t each = count / g->count, first = c->index * each;
    const int64_t end = c->index == g->count - 1 ? count : first + each;
    for (int64_t i = first; i < end; i++) {
        double sum = g->callers[0].values[i];
        for (int r = 1; r < g->count; r++) sum += g->callers[r].values[i];
        for (int r = 0; r < g->count; r++) g->callers[r].values[i] = sum;
    }
    return meet(c);
}

/* threads ---------------------------------------------------------------------------------------------------- */

static void run_caller(caller *c)
{
    group *g = c->all;
    const fs_result result = g->call(g->user, c->index, c->ctx, &c->ranks);
    pthread_mutex_lock(&g->lock);
    c->result = result;
    if (result != FS_OK) snprintf(c->message, sizeof c->message, "%s", fs_error_message());
    c->has_returned = 1;
    g->returned++;
    end_if_complete(g);
    pthread_mutex_unlock(&g->lock);
}

static void *begin_thread(void *argument)
{
    caller *c = argument;
    group *g = c->all;
    pthread_mutex_lock(&g->lock);
    while (g->gate == WAITING) pthread_cond_wait(&g->change, &g->lock);
    const int runs = g->gate == OPEN;
    pthread_mutex_unlock(&g->lock);
    if (runs) run_caller(c);
    return NULL;
}

/* All calls, or none where a thread cannot be created. */
static fs_result run_all(group *g)
{
    int created = 1;
    while (created < g->count &&
           pthread_create(&g->callers[created].thread, NULL, begin_thread, &g->callers[created]) == 0)
        created++;
    pthread_mutex_lock(&g->lock);
    g->gate = created == g->count ? OPEN : CANCELLED;
    pthread_cond_broadcast(&g->change);
    pthread_mutex_unlock(&g->lock);
    if (created == g->count) run_caller(&g->callers[0]);
    for (int i = 1; i < created; i++) pthread_join(g->callers[i].thread, NULL);
    if (created < g->count)
        return fs_fail(FS_ENOMEM, "fs_multi_run: the system could not create a thread for contexts[%d] of %d", created,
                       g->count);
    for (int i = 0; i < g->count; i++) {
        const caller *c = &g->callers[i];
        if (c->result == FS_OK) continue;
        /* A failure that is returned to all names the context that it comes from. */
        if (strncmp(c->message, g->message, sizeof c->message - 1) == 0) return fs_fail(c->result, "%s", c->message);
        return fs_fail(c->result, "contexts[%d]: %s", i, c->message);
    }
    return FS_OK;
}

/* the call --------------------------------------------------------------------------------------------------- */

/* *all: the rows of A, if each is in exactly one context. */
static fs_result check_rows(int count, const int64_t *row0, const int64_t *rows, int64_t *all)
{
    const char *who = "fs_multi_run";
    *all = 0;
    for (int i = 0; i < count; i++) {
        FSI_REQUIRE(row0[i] >= 0 && rows[i] >= 0 && rows[i] <= INT64_MAX - row0[i] && rows[i] <= INT64_MAX - *all,
                    "%s: contexts[%d] has %" PRId64 " rows from row %" PRId64 " on, which are no rows of a matrix", who,
                    i, rows[i], row0[i]);
        *all += rows[i];
        for (int j = 0; j < i; j++)
            FSI_REQUIRE(!rows[i] || !rows[j] || row0[i] + rows[i] <= row0[j] || row0[j] + rows[j] <= row0[i],
                        "%s: contexts[%d] has rows %" PRId64 " to %" PRId64 " of A and contexts[%d] rows %" PRId64
                        " to %" PRId64 ": no row may be in two of them",
                        who, j, row0[j], row0[j] + rows[j] - 1, i, row0[i], row0[i] + rows[i] - 1);
    }
    FSI_REQUIRE(*all, "%s: no context has a row of A", who);
    for (int i = 0; i < count; i++)
        FSI_REQUIRE(!rows[i] || row0[i] + rows[i] <= *all,
                    "%s: contexts[%d] has rows %" PRId64 " to %" PRId64 " of A, and all contexts have %" PRId64
                    " rows: all rows are needed",
                    who, i, row0[i], row0[i] + rows[i] - 1, *all);
    return FS_OK;
}

fs_result fs_multi_run(fs_multi *multi, const int64_t *row0, const int64_t *rows,
                       fs_result (*call)(void *user, int index, fs_context *ctx, const fs_ranks *ranks), void *user)
{
    FSI_REQUIRE(multi && row0 && rows && call, "fs_multi_run: %s is NULL",
                !multi  ? "multi"
                : !row0 ? "row0"
                : !rows ? "rows"
                        : "call");
    fs_context *const *contexts;
    fs_allocator memory;
    int64_t all;
    const int count = fsi_multi_contexts(multi, &contexts, &memory);
    FSI_TRY(check_rows(count, row0, rows, &all));
    const size_t bytes = sizeof(group) + (size_t)count * sizeof(caller);
    group *g = memory.alloc(memory.user, bytes);
    if (!g) return fs_fail(FS_ENOMEM, "fs_multi_run: no memory for %zu bytes", bytes);
    memset(g, 0, bytes);
    g->count = count, g->call = call, g->user = user;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->change, NULL);
    for (int i = 0; i < count; i++) {
        caller *c = &g->callers[i];
        const fs_ranks start = FS_RANKS_INIT;
        c->all = g, c->index = i, c->ctx = contexts[i];
        c->ranks = start;
        c->ranks.row0 = rows[i] ? row0[i] : 0, c->ranks.rows = all;
        c->ranks.sum = sum_over_callers, c->ranks.user = c;
    }
    const fs_result result = run_all(g);
    pthread_cond_destroy(&g->change);
    pthread_mutex_destroy(&g->lock);
    memory.release(memory.user, g);
    return result;
}
