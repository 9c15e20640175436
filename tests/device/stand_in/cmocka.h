/* cmocka.h - a stand-in for the few names of cmocka that the tests of this folder and tests/support/support.c use.
 *
 * GPU machines often have no cmocka, and these tests need two things that cmocka lacks: a failure in a host thread
 * ends that thread's case and no more, and every test reports its time.  One line per test is printed,
 * "passed", "failed" or "skipped", the seconds, the name; tests/device/run makes its record of them. */
#ifndef FSI_TESTS_DEVICE_STAND_IN_CMOCKA_H
#define FSI_TESTS_DEVICE_STAND_IN_CMOCKA_H

#include <stddef.h>

struct CMUnitTest {
    const char *name;
    void (*test)(void **state);
};
#define cmocka_unit_test(function) \
    { \
#function, function \
    }

/* Runs the tests one after the other; 0 if none failed, 1 otherwise. */
#define cmocka_run_group_tests(tests, setup, teardown) \
    stand_in_run((tests), sizeof(tests) / sizeof(tests)[0], (setup), (teardown))
int stand_in_run(const struct CMUnitTest *tests, size_t count, int (*setup)(void **), int (*teardown)(void **));

/* Prints the message and ends the attempt, or the test, that this thread is in. */
#define fail_msg(...) stand_in_fail(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void stand_in_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define assert_true(condition) ((condition) ? (void)0 : fail_msg("%s is false", #condition))

/* Ends the test as skipped; from the test's own thread only. */
#define skip() stand_in_skip()
_Noreturn void stand_in_skip(void);

/* Calls work(argument) in this thread; 1 if it returned, 0 if it failed.  The caller decides what that means for the
 * test.  Attempts do not nest. */
int stand_in_attempt(void (*work)(void *argument), void *argument);

#endif
