/* progress.c - one line that is drawn over itself. */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { WIDTH = 32 };
static const double patience = 1, between = 0.1; /* seconds until the bar appears, and from one drawing to the next */

progress progress_start(int steps, int quiet)
{
    const char *terminal = getenv("TERM");
    const int person = !quiet && isatty(STDERR_FILENO) && (!terminal || strcmp(terminal, "dumb") != 0);
    const progress bar = {person, 0, steps, cli_seconds() + patience};
    return bar;
}

static void draw(progress *bar, double done, const char *format, va_list arguments)
{
    const double now = bar->visible ? cli_seconds() : 0;
    if (!bar->visible || now < bar->next) return;
    bar->next = now + between;
    if (done > 1) done = 1;
    fputs("\r[", stderr);
    for (int i = 0; i < WIDTH; i++) fputc(i < (int)(done * WIDTH) ? '#' : '.', stderr);
    if (done < 0) fputs("]        ", stderr);
    else fprintf(stderr, "] %3d %%  ", (int)(100 * done));
    vfprintf(stderr, format, arguments);
    fputs("\033[K", stderr);
    fflush(stderr);
}

void progress_step(progress *bar, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    draw(bar, (double)bar->done++ / bar->steps, format, arguments);
    va_end(arguments);
}

void progress_at(progress *bar, double done, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    draw(bar, done, format, arguments);
    va_end(arguments);
}

void progress_end(progress *bar)
{
    if (bar->visible) fputs("\r\033[K", stderr);
    bar->visible = 0;
}
