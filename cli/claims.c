/* claims.c - see claims.h. */
#include "claims.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "output.h"

typedef struct claim {
    char *name; /* for messages; "-" is standard input */
    dev_t device;
    ino_t inode;
    int64_t bytes, changed;
} claim;
typedef struct claim_list {
    claim *all;
    int64_t count, room;
} claim_list;
static claim_list inputs, outputs; /* until the program ends */

static int64_t changed_at(const struct stat *about)
{
    return about->st_mtim.tv_sec * INT64_C(1000000000) + about->st_mtim.tv_nsec;
}

static const char *name_of(const claim *c) { return strcmp(c->name, "-") ? c->name : "standard input"; }

/* the lists -------------------------------------------------------------------------------------------------- */

static const claim *claims_find(const claim_list *list, const struct stat *about)
{
    for (int64_t i = 0; i < list->count; i++)
        if (list->all[i].device == about->st_dev && list->all[i].inode == about->st_ino) return &list->all[i];
    return NULL;
}

/* Writes a claim at a position of the list, at most one after the last. */
static int set(claim_list *list, int64_t at, const char *name, const struct stat *about)
{
    if (at == list->room) {
        const int64_t room = list->room ? 2 * list->room : 16;
        claim *more = realloc(list->all, (size_t)room * sizeof *more);
        if (more) list->all = more, list->room = room;
    }
    char *copy = at < list->count ? list->all[at].name : at < list->room ? strdup(name) : NULL;
    if (!copy) return cli_fail("no memory for the name of %s", name);
    list->all[at] = (claim){copy, about->st_dev, about->st_ino, about->st_size, changed_at(about)};
    if (at == list->count) list->count++;
    return 0;
}

static int is_both(const char *output, const char *input)
{
    if (!strcmp(output, input))
        return cli_fail("'%s' is read and would be replaced by the output; name another output", output);
    return cli_fail("the output '%s' would replace '%s', which is read: they are the same file; name another output",
                    output, input);
}

/* truncated files -------------------------------------------------------------------------------- */

/* Whether an input is still the file that was claimed; *about is its state now. */
static int is_there(const claim *c, struct stat *about)
{
    return !(strcmp(c->name, "-") ? stat(c->name, about) : fstat(STDIN_FILENO, about)) && about->st_dev == c->device &&
           about->st_ino == c->inode;
}

/* The input that has become shorter, or that was written to: one that was rewritten may have grown again.  Calls only
 * async-signal-safe functions. */
static const claim *find_changed(int shorter, struct stat *about)
{
    for (int64_t i = 0; i < inputs.count; i++) {
        const claim *c = &inputs.all[i];
        if (is_there(c, about) && (shorter ? about->st_size < c->bytes : changed_at(about) != c->changed)) return c;
    }
    return NULL;
}

#define CHANGED ": the file has changed while it was read: it had "
#define ADVICE "; give the command again when no other program writes the file"

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) return; /* there is no other place for the message */
}

static void say_number(int64_t number)
{
    char digits[24], *at = digits + sizeof digits - 1;
    *at = 0;
    do *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    say(at);
}

static int on_terminal; /* isatty is not for signal handlers */

static void bus_error(int number)
{
    static atomic_flag entered = ATOMIC_FLAG_INIT;
    struct stat about;
    if (atomic_flag_test_and_set(&entered))
        for (;;) pause(); /* another thread runs this handler, and ends the program */
    const claim *c = find_changed(1, &about);
    if (!c) c = find_changed(0, &about);
    output_remove();
    if (c) {
        say(on_terminal ? "\r\033[Kflashsketch: " : "flashsketch: ");
        say(name_of(c));
        say(CHANGED);
        say_number(c->bytes);
        say(" bytes and has ");
        say_number(about.st_size);
        say(ADVICE "\n");
        _exit(EXIT_FAILURE);
    }
    signal(number, SIG_DFL);
    raise(number);
}

int claims_check(void)
{
    struct stat about;
    const claim *c = find_changed(1, &about);
    if (!c) return 0;
    return cli_fail("%s" CHANGED "%" PRId64 " bytes and has %" PRId64 ADVICE, name_of(c), c->bytes,
                    (int64_t)about.st_size);
}

/* claiming --------------------------------------------------------------------------------------------------- */

int claims_input(const char *path)
{
    struct stat about;
    if (strcmp(path, "-") ? stat(path, &about) : fstat(STDIN_FILENO, &about)) return 0;
    if (!S_ISREG(about.st_mode)) return 0;
    const claim *same = claims_find(&outputs, &about);
    if (same) return is_both(same->name, strcmp(path, "-") ? path : "standard input");
    if (!inputs.count) {
        on_terminal = isatty(STDERR_FILENO);
        signal(SIGBUS, bus_error);
    }
    return set(&inputs, inputs.count, path, &about);
}

int claims_input_beside(const char *path, const char *suffix)
{
    char name[PATH_MAX];
    const int length = snprintf(name, sizeof name, "%s%s", path, suffix);
    return length > 0 && (size_t)length < sizeof name ? claims_input(name) : 0;
}

static int claim_folder(const char *path, int (*is_input)(const char *name), int depth)
{
    char name[PATH_MAX];
    int code = 0;
    DIR *all = opendir(path);
    for (struct dirent *one; all && !code && (one = readdir(all));) {
        const int length = snprintf(name, sizeof name, "%s/%s", path, one->d_name);
        if (one->d_name[0] == '.' || length < 0 || (size_t)length >= sizeof name) continue;
        if (is_input(one->d_name)) code = claims_input(name);
        else if (depth) code = claim_folder(name, is_input, depth - 1);
    }
    if (all) closedir(all);
    return code;
}

int claims_input_folder(const char *path, int (*is_input)(const char *name)) { return claim_folder(path, is_input, 1); }

int claims_output(const char *path, const struct stat *there)
{
    int64_t at = 0;
    if (!S_ISREG(there->st_mode)) return 0;
    const claim *same = claims_find(&inputs, there);
    if (same) return is_both(path, name_of(same));
    while (at < outputs.count && strcmp(outputs.all[at].name, path)) at++; /* a state is replaced again and again */
    return set(&outputs, at, path, there);
}
