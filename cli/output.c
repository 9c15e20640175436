/* output.c - write beside, then rename. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static struct {
    FILE *stream;
    char final[PATH_MAX], part[PATH_MAX];
    volatile sig_atomic_t open; /* part exists: what the signal handler looks at */
} output;

static void remove_and_die(int number)
{
    if (output.open) unlink(output.part);
    signal(number, SIG_DFL);
    raise(number);
}

static FILE *standard_output(void)
{
    output.stream = isatty(STDOUT_FILENO) ? NULL : stdout;
    if (!output.stream) cli_fail("standard output is a terminal; send it to a file or a pipe, or name a file with -o");
    strcpy(output.final, "standard output");
    return output.stream;
}

FILE *output_open(const char *path)
{
    struct stat there;
    if (!strcmp(path, "-")) return standard_output();
    const int length = snprintf(output.part, sizeof output.part, "%s.part-%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof output.part) {
        cli_fail("the name of the output is too long (%zu bytes); give a shorter one", strlen(path));
        return NULL;
    }
    strcpy(output.final, path);
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        cli_fail("'%s' is there and is not a file; name a file to write", path);
        return NULL;
    }
    const int file = open(output.part, O_WRONLY | O_CREAT | O_EXCL, 0666);
    output.stream = file < 0 ? NULL : fdopen(file, "wb");
    if (!output.stream) {
        cli_fail("'%s' cannot be written (%s); name a file in a folder that exists and is yours", path,
                 strerror(errno));
        return NULL;
    }
    output.open = 1;
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++)
        if (signal(numbers[i], remove_and_die) == SIG_IGN) signal(numbers[i], SIG_IGN);
    return output.stream;
}

void output_abandon(void)
{
    if (!output.open) return;
    if (output.stream) fclose(output.stream);
    unlink(output.part);
    output.stream = NULL;
    output.open = 0;
}

int output_close(void)
{
    const int is_file = output.stream != stdout;
    const int wrong = ferror(output.stream);
    const int lost = is_file ? fclose(output.stream) : fflush(output.stream);
    output.stream = NULL;
    if (wrong || lost || (is_file && rename(output.part, output.final))) {
        const int why = errno;
        output_abandon();
        return cli_fail("'%s' could not be written (%s); make room or name another file", output.final, strerror(why));
    }
    output.open = 0;
    return 0;
}
