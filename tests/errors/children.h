/* children.h - a child process for tests of fork: what it returns, or that it did not end. */
#ifndef FSI_TESTS_ERRORS_CHILDREN_H
#define FSI_TESTS_ERRORS_CHILDREN_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ThreadSanitizer does not support threads after fork. */
#if defined(__SANITIZE_THREAD__)
#define CHILDREN_UNSUPPORTED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHILDREN_UNSUPPORTED 1
#endif
#endif

static inline void need_children(void)
{
#ifdef CHILDREN_UNSUPPORTED
    fprintf(stderr, "skipped: ThreadSanitizer does not support threads after fork\n");
    exit(77);
#endif
}

/* Runs `work` in a child, which a clock ends after a minute, and fails the test unless it returns 0: the number of the
 * step that was wrong. */
static inline void run_in_child(const char *what, int (*work)(void *), void *argument)
{
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        const int wrong = work(argument);
        if (wrong) fprintf(stderr, "%s: step %d: %s\n", what, wrong, fs_error_message());
        _exit(wrong ? 1 : 0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        fail_msg("%s: the child %s (signal %d)", what, WTERMSIG(status) == SIGALRM ? "hangs" : "crashed",
                 WTERMSIG(status));
    if (WEXITSTATUS(status)) fail_msg("%s: the child's results are wrong", what);
}

#endif
