/* patient.c - makes MPICH's waiting ranks yield the processor.
 *
 * Waiting, MPICH 4.0 asks UCX for progress without end and never yields: three ranks on two cores take a hundred times
 * as long as two.  Its call of ucp_worker_progress finds this one first, which yields where nothing has happened. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>

unsigned ucp_worker_progress(void *worker);
unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*next)(void *);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "ucp_worker_progress");
    const unsigned done = next(worker);
    if (!done) sched_yield();
    return done;
}
