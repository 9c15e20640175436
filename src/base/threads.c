/* threads.c - how many threads a parallel region may use.
 *
 * GNU's OpenMP (libgomp) keeps a pool of threads for every thread that has entered a parallel region.  Two properties
 * of that pool are hidden here, in the one function that every parallel region takes its number of threads from:
 *
 * - A thread that cannot be created ends the process: libgomp prints a message and calls exit.  Before a pool grows,
 *   as many threads are created here, by pthread_create, whose failure is an error code; the number that was possible
 *   is the limit.  What remains: limits that other processes or threads of this one use up between that moment and the
 *   region, and stacks larger than the default (OMP_STACKSIZE).  The pool then grows at once, while there is memory for
 *   it: the next region may come after much has been allocated.  (Not with clang, for LLVM's runtime: ThreadSanitizer
 *   reports races of its own in it, and a program that only asks for the number of threads would have them.)
 * - In a child process the pool of the thread that called fork is memory without threads, and a region with two or
 *   more threads waits for them without end.  A region with one thread does not touch the pool.
 *
 * State is kept for each thread, as the pools are; the only global is the registration of the fork handler, which POSIX
 * has no way to undo or repeat. */
#include "base/threads.h"

#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

static _Thread_local int pool = 1; /* threads that this thread's pool may have, this thread included */
static _Thread_local int pool_is_dead;

/* Runs in the thread that called fork, the only one of the child. */
static void after_fork_in_child(void) { pool_is_dead = pool > 1; }
static void register_handler(void) { pthread_atfork(NULL, NULL, after_fork_in_child); }

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    int is_open;
} gate;

static void *wait_at_gate(void *argument)
{
    gate *g = argument;
    pthread_mutex_lock(&g->lock);
    while (!g->is_open) pthread_cond_wait(&g->opened, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* Starts a thread on a stack of its own, which is unmapped later: the C library caches stacks that it has allocated,
 * and the cached memory is missing where a runtime needs stacks of another size. 0: the system does not create it. */
static int start(pthread_t *thread, pthread_attr_t *attributes, void **stack, size_t bytes, gate *g)
{
    *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*stack == MAP_FAILED) return 0;
    if (pthread_attr_setstack(attributes, *stack, bytes) == 0 &&
        pthread_create(thread, attributes, wait_at_gate, g) == 0)
        return 1;
    munmap(*stack, bytes);
    return 0;
}

int fsi_threads_possible(int count)
{
    enum { MORE = 1 << 17 }; /* than a default stack: guards, and the offsets that LLVM's OpenMP adds to stacks */
    gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    pthread_t threads[FS_THREADS_MAX];
    void *stacks[FS_THREADS_MAX];
    pthread_attr_t attributes;
    sigset_t all, before;
    size_t bytes = 0;
    int created = 0;
    if (pthread_attr_init(&attributes) || pthread_attr_getstacksize(&attributes, &bytes)) return 0;
    bytes += MORE;
    /* Signals are blocked, so that the caller's handlers run in the caller's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (created < count && start(&threads[created], &attributes, &stacks[created], bytes, &g)) created++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_lock(&g.lock);
    g.is_open = 1;
    pthread_cond_broadcast(&g.opened);
    pthread_mutex_unlock(&g.lock);
    for (int i = 0; i < created; i++) {
        pthread_join(threads[i], NULL);
        munmap(stacks[i], bytes);
    }
    pthread_attr_destroy(&attributes);
    pthread_mutex_destroy(&g.lock);
    pthread_cond_destroy(&g.opened);
    return created;
}

/* Makes a pool of so many threads, by a region in which they do nothing. */
static void grow(int threads)
{
#ifndef __clang__
#pragma omp parallel num_threads(threads)
    (void)omp_get_num_threads();
#endif
    pool = threads;
}

int fs_thread_count(int threads)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (threads <= 0) threads = omp_get_max_threads();
    if (threads > FS_THREADS_MAX) threads = FS_THREADS_MAX;
    if (pool_is_dead || threads <= 1) return 1;
    if (threads > pool) {
        pthread_once(&once, register_handler);
        const int possible = fsi_threads_possible(threads); /* one more than are used: room for libgomp's own memory */
        if (possible > pool) grow(possible);
    }
    return threads < pool ? threads : pool;
}
