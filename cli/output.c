/* output.c - write beside, then rename. */
#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

#define PART ".part-" /* and the number of the process */
enum { MOST = 2 };
static struct {
    FILE *stream;
    char final[PATH_MAX], part[PATH_MAX];
    volatile sig_atomic_t open; /* part exists: what the signal handler looks at */
} outputs[MOST];

static void remove_and_die(int number)
{
    for (int i = 0; i < MOST; i++)
        if (outputs[i].open) unlink(outputs[i].part);
    signal(number, SIG_DFL);
    raise(number);
}

static FILE *standard_output(void)
{
    outputs[0].stream = isatty(STDOUT_FILENO) ? NULL : stdout;
    if (!outputs[0].stream)
        cli_fail("standard output is a terminal; send it to a file or a pipe, or name a file with -o");
    strcpy(outputs[0].final, "standard output");
    return outputs[0].stream;
}

static FILE *begin(int i, const char *path, const char *suffix)
{
    struct stat there;
    const int length =
        snprintf(outputs[i].part, sizeof outputs[i].part, "%s%s" PART "%ld", path, suffix, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof outputs[i].part) {
        cli_fail("the name of the output is too long (%zu bytes); give a shorter one", strlen(path));
        return NULL;
    }
    snprintf(outputs[i].final, sizeof outputs[i].final, "%s%s", path, suffix);
    if (stat(outputs[i].final, &there) == 0 && !S_ISREG(there.st_mode)) {
        cli_fail("'%s' is there and is not a file; name a file to write", outputs[i].final);
        return NULL;
    }
    const int file = open(outputs[i].part, O_WRONLY | O_CREAT | O_EXCL, 0666);
    outputs[i].stream = file < 0 ? NULL : fdopen(file, "wb");
    if (!outputs[i].stream) {
        cli_fail("'%s' cannot be written (%s); name a file in a folder that exists and is yours", outputs[i].final,
                 strerror(errno));
        return NULL;
    }
    outputs[i].open = 1;
    return outputs[i].stream;
}

FILE *output_open(const char *path)
{
    if (!strcmp(path, "-")) return standard_output();
    if (!begin(0, path, "")) return NULL;
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++)
        if (signal(numbers[i], remove_and_die) == SIG_IGN) signal(numbers[i], SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a write that fails, and gets its sentence */
    return outputs[0].stream;
}

FILE *output_beside(const char *suffix)
{
    return begin(1, outputs[0].final, suffix);
}

void output_sweep(const char *path)
{
    char folder[PATH_MAX], prefix[PATH_MAX], left[2 * PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 2, slash ? path : "./");
    const int length = snprintf(prefix, sizeof prefix, "%s" PART, name);
    DIR *all = opendir(folder);
    for (struct dirent *one; all && (one = readdir(all));) {
        char *end;
        if (strncmp(one->d_name, prefix, (size_t)length)) continue;
        const long process = strtol(one->d_name + length, &end, 10);
        if (*end || process < 1 || kill((pid_t)process, 0) == 0 || errno != ESRCH) continue;
        snprintf(left, sizeof left, "%s%s", folder, one->d_name);
        unlink(left);
    }
    if (all) closedir(all);
}

void output_abandon(void)
{
    for (int i = 0; i < MOST; i++) {
        if (!outputs[i].open) continue;
        if (outputs[i].stream) fclose(outputs[i].stream);
        unlink(outputs[i].part);
        outputs[i].stream = NULL;
        outputs[i].open = 0;
    }
}

/* Writes out what the stream still holds.  Returns 0, or an errno. */
static int finish(int i)
{
    FILE *stream = outputs[i].stream;
    const int is_file = stream != stdout;
    errno = 0;
    int wrong = ferror(stream) || fflush(stream) || (is_file && fsync(fileno(stream)) && errno != EINVAL);
    int why = errno;
    if (is_file && fclose(stream) && !wrong) wrong = 1, why = errno;
    outputs[i].stream = NULL;
    return wrong ? (why ? why : EIO) : 0;
}

static int failed(int i, int why)
{
    output_abandon();
    return cli_fail("'%s' could not be written (%s); make room or name another file", outputs[i].final, strerror(why));
}

int output_close(void)
{
    int why;
    for (int i = 0; i < MOST; i++)
        if (outputs[i].stream && (why = finish(i)) != 0) return failed(i, why);
    for (int i = MOST - 1; i >= 0; i--) { /* the first last: it is the one that is waited for */
        if (!outputs[i].open) continue;
        if (rename(outputs[i].part, outputs[i].final)) return failed(i, errno);
        outputs[i].open = 0;
    }
    return 0;
}
