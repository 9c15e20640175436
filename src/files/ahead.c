/* ahead.c - see ahead.h. */
#include "files/ahead.h"

#include <signal.h>
#include <unistd.h>

enum { AHEAD = 2 };

static void *work(void *argument)
{
    ahead *a = argument;
    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        if (a->at >= a->limit) {
            pthread_cond_wait(&a->moved, &a->lock);
            continue;
        }
        const int64_t panel = a->at;
        pthread_mutex_unlock(&a->lock);
        a->bring(a->user, panel, &a->stop);
        pthread_mutex_lock(&a->lock);
        if (a->at == panel) a->at++; /* unless a seek has moved it meanwhile */
        pthread_cond_broadcast(&a->moved);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

int ahead_start(ahead *a)
{
    sigset_t all, before;
    a->at = a->limit = 0;
    a->stop = 0;
    a->owner = getpid();
    int code = pthread_mutex_init(&a->lock, NULL);
    if (code) return code;
    if ((code = pthread_cond_init(&a->moved, NULL)) == 0) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        code = pthread_create(&a->thread, NULL, work, a);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (!code) return 0;
        pthread_cond_destroy(&a->moved);
    }
    pthread_mutex_destroy(&a->lock);
    return code;
}

void ahead_stop(ahead *a)
{
    if (getpid() != a->owner) return;
    pthread_mutex_lock(&a->lock);
    a->stop = 1;
    pthread_cond_broadcast(&a->moved);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->moved);
    pthread_mutex_destroy(&a->lock);
}

void ahead_wait(ahead *a, int64_t panel)
{
    if (getpid() != a->owner) return;
    pthread_mutex_lock(&a->lock);
    if (a->at < panel || a->at > panel + 1 + AHEAD) a->at = panel;
    a->limit = panel + 1 + AHEAD < a->count ? panel + 1 + AHEAD : a->count;
    pthread_cond_broadcast(&a->moved);
    while (a->at <= panel) pthread_cond_wait(&a->moved, &a->lock);
    pthread_mutex_unlock(&a->lock);
}
