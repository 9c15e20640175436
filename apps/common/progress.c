/* progress.c - one line, drawn over itself. */
#include "apps/common/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/clock.h"

enum { WIDTH = 32 };
static const double patience = 1, between = 0.1; /* seconds until the bar appears, and from one drawing to the next */

progress progress_start(int steps, int quiet)
{
    const char *terminal = getenv("TERM");
    const int visible = !quiet && isatty(STDERR_FILENO) && (!terminal || strcmp(terminal, "dumb") != 0);
    const progress bar = {visible, 0, steps, clock_seconds() + patience, 0, 2, 2};
    return bar;
}

/* "2 min left": in the unit that leaves one or two digits. */
static void draw_left(double seconds)
{
    if (seconds < 99.5) fprintf(stderr, ", %.0f s left", seconds);
    else if (seconds < 99.5 * 60) fprintf(stderr, ", %.0f min left", seconds / 60);
    else fprintf(stderr, ", %.0f h left", seconds / 3600);
}

/* left: seconds; negative: unknown. */
static void draw(progress *bar, double done, double left, const char *format, va_list arguments)
{
    const double now = bar->visible ? clock_seconds() : 0;
    if (!bar->visible || now < bar->next) return;
    bar->next = now + between;
    if (done > 1) done = 1;
    fputs("\r[", stderr);
    for (int i = 0; i < WIDTH; i++) fputc(i < (int)(done * WIDTH) ? '#' : '.', stderr);
    if (done < 0) fputs("]        ", stderr);
    else fprintf(stderr, "] %3d %%  ", (int)(100 * done));
    vfprintf(stderr, format, arguments);
    if (left >= 0) draw_left(left);
    fputs("\033[K", stderr);
    fflush(stderr);
}

void progress_step(progress *bar, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    draw(bar, (double)bar->done++ / bar->steps, -1, format, arguments);
    va_end(arguments);
}

void progress_at(progress *bar, double done, const char *format, ...)
{
    const double now = bar->visible ? clock_seconds() : 0;
    va_list arguments;
    va_start(arguments, format);
    if (done >= 0 && done < bar->last) bar->from = done, bar->began = now;
    if (done >= 0) bar->last = done;
    draw(bar, done, done > bar->from ? (now - bar->began) * (1 - done) / (done - bar->from) : -1, format, arguments);
    va_end(arguments);
}

void progress_end(progress *bar)
{
    if (bar->visible) fputs("\r\033[K", stderr);
    bar->visible = 0;
}
