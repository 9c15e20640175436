/* progress.h - a progress bar on stderr: nothing is printed where stderr is not a terminal, and nothing in the first
 * second. */
#ifndef FSI_APPS_COMMON_PROGRESS_H
#define FSI_APPS_COMMON_PROGRESS_H

typedef struct progress {
    int visible, done, steps;
    double next;        /* when the bar may be drawn again, by clock_seconds */
    double began, from; /* progress_at: the time of the first call of this work, and its share done; ... */
    double last;        /* ... and that of the last call */
} progress;

/* steps: their number, for progress_step. */
progress progress_start(int steps, int quiet);

/* Begins a step, described like printf.  It counts as done when the next one begins. */
void progress_step(progress *bar, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The share of the work that is done, from 0 to 1; negative: unknown.  For work without steps.  The bar shows the
 * remaining time.  A smaller share than before begins new work. */
void progress_at(progress *bar, double done, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Erases the bar; call it before anything else is printed. */
void progress_end(progress *bar);

#endif
