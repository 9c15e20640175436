/* cmocka.c - see cmocka.h. */
#include "cmocka.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { RETURNED = 0, FAILED = 1, SKIPPED = 2 };

/* Where a failure of this thread goes: the attempt it is in, otherwise its test. */
static _Thread_local jmp_buf *way_out;

void stand_in_fail(const char *file, int line, const char *format, ...)
{
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    /* One call: threads that fail at once do not mix their messages. */
    printf("    %s:%d: %s\n", file, line, message);
    fflush(stdout);
    longjmp(*way_out, FAILED);
}

void stand_in_skip(void) { longjmp(*way_out, SKIPPED); }

int stand_in_attempt(void (*work)(void *argument), void *argument)
{
    jmp_buf here;
    jmp_buf *const before = way_out;
    way_out = &here;
    int done = 0;
    if (setjmp(here) == 0) {
        work(argument);
        done = 1;
    }
    way_out = before;
    return done;
}

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* RETURNED, FAILED or SKIPPED. */
static int outcome_of(void (*function)(void **), void **state)
{
    jmp_buf here;
    way_out = &here;
    int outcome = RETURNED;
    switch (setjmp(here)) {
    case RETURNED: function(state); break;
    case FAILED: outcome = FAILED; break;
    default: outcome = SKIPPED;
    }
    way_out = NULL;
    return outcome;
}

/* A group function as a test: what it returns other than 0 is a failure. */
static int (*group_function)(void **);
static void call_group_function(void **state)
{
    if (group_function && group_function(state) != 0) longjmp(*way_out, FAILED);
}

int stand_in_run(const struct CMUnitTest *tests, size_t count, int (*setup)(void **), int (*teardown)(void **))
{
    static const char *const words[] = {"passed", "failed", "skipped"};
    void *state = NULL;
    int failures = 0;
    group_function = setup;
    if (outcome_of(call_group_function, &state) != RETURNED) {
        printf("failed      0.00 s  setup\n");
        return 1;
    }
    for (size_t t = 0; t < count; t++) {
        printf("started             %s\n", tests[t].name);
        fflush(stdout);
        const double start = seconds();
        const int outcome = outcome_of(tests[t].test, &state);
        printf("%-7s %8.2f s  %s\n", words[outcome], seconds() - start, tests[t].name);
        fflush(stdout);
        failures += outcome == FAILED;
    }
    group_function = teardown;
    failures += outcome_of(call_group_function, &state) != RETURNED;
    return failures != 0;
}
