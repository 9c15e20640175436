/* progress.h - a bar on stderr while work goes on, for people only: nothing is printed when it is not a terminal. */
#ifndef FLASHSKETCH_CLI_PROGRESS_H
#define FLASHSKETCH_CLI_PROGRESS_H

typedef struct progress {
    int visible, done, steps;
} progress;

progress progress_start(int steps);

/* Says what the next step is.  The step counts as done when the next one starts. */
void progress_step(progress *bar, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Wipes the bar away; call it before anything else is printed. */
void progress_end(progress *bar);

#endif
