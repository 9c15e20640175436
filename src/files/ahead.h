/* ahead.h - the read-ahead thread, which loads the panels of a stream into memory before they are used. */
#ifndef FSI_FILES_AHEAD_H
#define FSI_FILES_AHEAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/* The thread works on one panel at a time, in order, and is at most two ahead of the one that is in use. */
typedef struct ahead {
    /* Loads one panel, or returns soon after *stop is set. */
    void (*bring)(void *user, int64_t panel, const atomic_int *stop);
    void *user;
    int64_t count; /* of all panels */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int64_t at, limit; /* it loads `at` next, and none from `limit` on */
    atomic_int stop;
    pid_t owner; /* the process in which the thread runs */
} ahead;

/* bring, user and count are set; signals go to other threads.  Returns 0, or an errno. */
int ahead_start(ahead *a);
void ahead_stop(ahead *a);

/* Waits until `panel` has been loaded, and lets the thread continue with the next ones.  In a child process, which has
 * no such thread, both return at once: panels are then loaded where they are used. */
void ahead_wait(ahead *a, int64_t panel);

#endif
