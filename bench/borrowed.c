/* borrowed.c - what the progress bar and the readers of files, which belong to the command, ask of the program that
 * they are in. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "cli.h"

int cli_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("fsbench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return EXIT_FAILURE;
}

double cli_seconds(void) { return bench_now(); }
