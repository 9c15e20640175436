/* cli.c - failures, numbers, memory and time for every command. */
#include "cli.h"

#include <errno.h>
#include <flashsketch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/clock.h"

static void complain(const char *command, const char *format, va_list arguments)
{
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr); /* a progress bar may be on the line */
    fprintf(stderr, "flashsketch%s%s: ", command ? " " : "", command ? command : "");
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

int cli_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    complain(NULL, format, arguments);
    va_end(arguments);
    return EXIT_FAILURE;
}

static const char *library_sentence(void)
{
    const char *message = fs_error_message(), *colon = strstr(message, ": ");
    return !strncmp(message, "fs_", 3) && colon ? colon + 2 : message;
}

int cli_library_fail(void) { return cli_fail("%s", library_sentence()); }

int cli_input_fail(const char *name) { return cli_fail("%s: %s", name, library_sentence()); }

int cli_usage(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    complain(command, format, arguments);
    va_end(arguments);
    fprintf(stderr, "Try 'flashsketch %s%s--help'.\n", command ? command : "", command ? " " : "");
    return EXIT_USAGE;
}

int cli_number(const char *command, const char *option, const char *text, int64_t low, int64_t high, int64_t *number)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < low || value > high)
        return cli_usage(command, "%s takes an integer from %" PRId64 " to %" PRId64 ", not '%s'", option, low, high,
                         text);
    *number = value;
    return 0;
}

int cli_real(const char *command, const char *option, const char *text, double low, double high, double *number)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value > low && value < high))
        return cli_usage(command, "%s takes a number between %g and %g, not '%s'", option, low, high, text);
    *number = value;
    return 0;
}

int cli_size(const char *command, const char *option, const char *text, int64_t low, int64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (errno || end == text || (unit ? end[1] : *end) || value < 0 || value > INT64_MAX >> shift ||
        value << shift < low)
        return cli_usage(command, "%s takes a number of bytes, at least %" PRId64 ", like 65536, 512M or 2G, not '%s'",
                         option, low, text);
    *bytes = (int64_t)value << shift;
    return 0;
}

int cli_seed(const char *command, const char *text, uint64_t *seed)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    if (errno || end == text || *end || strchr(text, '-'))
        return cli_usage(command, "--seed takes an integer of at most 64 bits, not '%s'", text);
    *seed = value;
    return 0;
}

int cli_ends_with(const char *name, const char *ending)
{
    const size_t length = strlen(name), last = strlen(ending);
    return length > last && !strcmp(name + length - last, ending);
}

void *cli_array(int64_t rows, int64_t cols, size_t bytes)
{
    if (rows < 0 || cols < 0 || (cols && rows > INT64_MAX / cols)) return NULL;
    if ((uint64_t)(rows * cols) > PTRDIFF_MAX / bytes) return NULL;
    return malloc(rows && cols ? (size_t)(rows * cols) * bytes : 1);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
double cli_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[(count - 1) / 2];
}

double cli_seconds(void) { return clock_seconds(); }
