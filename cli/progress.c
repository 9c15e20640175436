/* progress.c - one line that is drawn over itself. */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 32 };

progress progress_start(int steps)
{
    const char *terminal = getenv("TERM");
    const progress bar = {isatty(STDERR_FILENO) && (!terminal || strcmp(terminal, "dumb") != 0), 0, steps};
    return bar;
}

void progress_step(progress *bar, const char *format, ...)
{
    const int done = bar->done++;
    if (!bar->visible) return;
    va_list arguments;
    va_start(arguments, format);
    fputs("\r[", stderr);
    for (int i = 0; i < WIDTH; i++) fputc(i < done * WIDTH / bar->steps ? '#' : '.', stderr);
    fprintf(stderr, "] %3d %%  ", 100 * done / bar->steps);
    vfprintf(stderr, format, arguments);
    fputs("\033[K", stderr);
    fflush(stderr);
    va_end(arguments);
}

void progress_end(progress *bar)
{
    if (bar->visible) fputs("\r\033[K", stderr);
    bar->visible = 0;
}
