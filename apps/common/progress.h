/* progress.h - a bar on stderr while work goes on, for people only: nothing is printed when stderr is not a terminal,
 * and nothing in the first second. */
#ifndef FSI_APPS_COMMON_PROGRESS_H
#define FSI_APPS_COMMON_PROGRESS_H

typedef struct progress {
    int visible, done, steps;
    double next;        /* when the bar may be drawn again, in cli_seconds */
    double began, from; /* progress_at: when it was first told how much is done, and how much that was */
} progress;

/* steps: how many there will be, for progress_step. */
progress progress_start(int steps, int quiet);

/* Says what the next step is.  The step counts as done when the next one starts. */
void progress_step(progress *bar, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says how much of the work is done, from 0 to 1, negative if nobody knows; for work that has no steps.  The bar tells
 * how long the rest will take.  Less than before is the beginning of other work. */
void progress_at(progress *bar, double done, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Wipes the bar away; call it before anything else is printed. */
void progress_end(progress *bar);

#endif
