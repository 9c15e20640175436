/* output.c - write into temporaries, then rename. */
#define _GNU_SOURCE /* fopencookie */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "claims.h"
#include "cli.h"
#include "temporary.h"

enum { MOST = OUTPUT_MOST, LINKS = 40, BUFFER = 1 << 16 };
typedef struct output {
    char name[PATH_MAX];  /* as on the command line, for messages */
    char final[PATH_MAX]; /* the file that is replaced: no symbolic link */
    char part[PATH_MAX];
    FILE *stream;
    int fd;    /* holds the lock of `part` until the rename */
    int error; /* errno of the first write that failed; 0: none */
    char *map; /* the part written through memory, output_map; NULL: none */
    size_t map_bytes;
    atomic_int open; /* `part` exists; read by signal handlers */
} output;
static output outputs[MOST];

/* signals ---------------------------------------------------------------------------------------------------- */

/* Signals are blocked while temporaries are created and renamed; they end the program afterwards. */
enum { IDLE, HELD, ENDING };
static atomic_int phase = IDLE, pending;

void output_remove(void)
{
    for (int i = 0; i < MOST; i++)
        if (outputs[i].open) unlink(outputs[i].part);
}

static void end_by(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

static void remove_and_end(int number)
{
    int idle = IDLE;
    pending = number;
    if (!atomic_compare_exchange_strong(&phase, &idle, ENDING)) return;
    output_remove();
    end_by(number);
}

static void catch_signals(void)
{
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (signal(numbers[i], remove_and_end) == SIG_IGN) signal(numbers[i], SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* then a write beyond the size limit fails, with a message */
}

static void hold_signals(void)
{
    int idle = IDLE;
    if (!atomic_compare_exchange_strong(&phase, &idle, HELD))
        for (;;) pause(); /* the handler, in another thread, ends the program */
}

static void release_signals(void)
{
    phase = IDLE;
    if (!pending) return;
    output_remove();
    end_by(pending);
}

/* streams ---------------------------------------------------------------------------------------------------- */

/* stdio records that a write has failed, but not errno: the stream writes through this, which keeps it. */
static ssize_t write_all(void *cookie, const char *bytes, size_t count)
{
    output *o = cookie;
    for (size_t done = 0; done < count;) {
        const ssize_t wrote = write(o->fd, bytes + done, count - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) {
            if (!o->error) o->error = wrote ? errno : EIO;
            return 0;
        }
        done += (size_t)wrote;
    }
    return (ssize_t)count;
}

static int make_stream(output *o)
{
    o->error = 0;
    o->stream = fopencookie(o, "wb", (cookie_io_functions_t){.write = write_all});
    if (!o->stream) return -1;
    setvbuf(o->stream, NULL, _IOFBF, BUFFER);
    return 0;
}

static FILE *standard_output(void)
{
    output *o = &outputs[0];
    struct stat there;
    strcpy(o->name, "standard output");
    o->fd = STDOUT_FILENO;
    if (isatty(STDOUT_FILENO))
        return cli_fail("standard output is a terminal; send it to a file or a pipe, or name a file with -o"), NULL;
    if (!fstat(STDOUT_FILENO, &there) && claims_output(o->name, &there)) return NULL;
    if (make_stream(o)) cli_fail("no memory for the stream of standard output");
    return o->stream;
}

/* names ------------------------------------------------------------------------------------------------------ */

static int cannot(const char *name, int why)
{
    char folder[PATH_MAX];
    if (strlen(name) >= PATH_MAX)
        return cli_fail("the name of the output has %zu bytes, and a name has at most %d; give a shorter one",
                        strlen(name), PATH_MAX - 1);
    const char *last = temporary_folder(name, folder);
    const long most = pathconf(folder, _PC_NAME_MAX);
    if (why == ENAMETOOLONG && most > 0 && strlen(last) > (size_t)most)
        return cli_fail("'%s' cannot be written: its name has %zu bytes, and this folder allows %ld; name an output "
                        "that is shorter by %zu",
                        name, strlen(last), most, strlen(last) - (size_t)most);
    return cli_fail("'%s' cannot be written (%s); name a file in a folder that exists and is yours", name,
                    strerror(why));
}

/* As output_check; *there is the file's stat, whose st_nlink is 0 where there is none. */
static int check(const char *name, struct stat *there)
{
    const size_t length = strlen(name);
    memset(there, 0, sizeof *there);
    if (!length) return cli_fail("the name of the output is empty; name a file");
    if (length >= PATH_MAX) return cannot(name, ENAMETOOLONG);
    if (stat(name, there)) {
        memset(there, 0, sizeof *there);
        if (errno != ENOENT) return cannot(name, errno);
        if (name[length - 1] == '/') return cli_fail("'%s' names a folder; name a file to write", name);
        return 0;
    }
    if (!S_ISREG(there->st_mode)) return cli_fail("'%s' exists and is not a file; name a file to write", name);
    return claims_output(name, there);
}

int output_check(const char *path)
{
    struct stat there;
    return strcmp(path, "-") ? check(path, &there) : 0;
}

/* Writes the file that a name stands for, symbolic links followed, into final.  It need not be there.  Returns 0, or an
 * errno. */
static int follow(const char *name, char *final)
{
    char link[PATH_MAX];
    snprintf(final, PATH_MAX, "%s", name);
    for (int i = 0; i < LINKS; i++) {
        const ssize_t length = readlink(final, link, sizeof link);
        if (length < 0) return 0;
        const char *slash = link[0] == '/' ? NULL : strrchr(final, '/');
        const size_t folder = slash ? (size_t)(slash - final) + 1 : 0;
        if (folder + (size_t)length >= PATH_MAX) return ENAMETOOLONG;
        memcpy(final + folder, link, (size_t)length);
        final[folder + (size_t)length] = 0;
    }
    return ELOOP;
}

/* Gives a temporary owner, group and mode of the file that it replaces.  Where the group cannot be kept, its members
 * get only the permissions of all others. */
static int keep_rights(int fd, const struct stat *there)
{
    mode_t mode = there->st_mode & 07777;
    struct stat its;
    if (fstat(fd, &its)) return -1;
    if ((its.st_uid != there->st_uid || its.st_gid != there->st_gid) && fchown(fd, there->st_uid, there->st_gid) &&
        fchown(fd, (uid_t)-1, there->st_gid))
        mode = (mode & ~(mode_t)070) | (mode & 07) << 3;
    return (its.st_mode & 07777) == mode ? 0 : fchmod(fd, mode); /* file systems without modes refuse every fchmod */
}

/* opening ---------------------------------------------------------------------------------------------------- */

static void sweep(const char *path)
{
    static const char *const suffixes[] = {"", OUTPUT_IDENTITY, OUTPUT_STATE, OUTPUT_RHS OUTPUT_STATE};
    char name[PATH_MAX], final[PATH_MAX];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        const int length = snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        if (length > 0 && (size_t)length < sizeof name && !follow(name, final)) temporary_sweep(final);
    }
}

static void sweep_once(const char *path)
{
    static int swept;
    if (!swept) sweep(path);
    swept = 1;
}

/* Checks that a file can be created beside `name`, which need not exist. */
static int check_folder(const char *name)
{
    char final[PATH_MAX], folder[PATH_MAX];
    const int why = follow(name, final);
    if (why) return cannot(name, why);
    temporary_folder(final, folder);
    return access(folder, W_OK | X_OK) ? cannot(name, errno) : 0;
}

int output_check_two(const char *path, const char *suffix)
{
    char name[PATH_MAX];
    const int length = snprintf(name, sizeof name, "%s%s", path, suffix ? suffix : "");
    if (length < 0 || length >= PATH_MAX) return cannot(path, ENAMETOOLONG);
    sweep_once(path);
    if (output_check(path) || check_folder(path)) return EXIT_FAILURE;
    return suffix && (output_check(name) || check_folder(name)) ? EXIT_FAILURE : 0;
}

static void discard(output *o)
{
    if (o->stream) fclose(o->stream);
    o->stream = NULL;
    if (o->map) munmap(o->map, o->map_bytes);
    o->map = NULL;
    if (!o->open) return;
    unlink(o->part);
    o->open = 0;
    close(o->fd);
}

/* o->name is set. */
static int output_begin(output *o)
{
    struct stat there;
    if (check(o->name, &there)) return EXIT_FAILURE;
    const int why = follow(o->name, o->final);
    if (why) return cannot(o->name, why);
    o->fd = temporary_create(o->final, o->part);
    if (o->fd < 0) return cannot(o->name, errno);
    o->open = 1;
    if ((there.st_nlink && keep_rights(o->fd, &there)) || make_stream(o)) {
        const int failure = errno;
        discard(o);
        return cannot(o->name, failure);
    }
    return 0;
}

static FILE *open_all(const char *path, const char *suffix)
{
    if (!strcmp(path, "-")) return standard_output();
    const int length = snprintf(outputs[0].name, PATH_MAX, "%s", path);
    const int both = snprintf(outputs[1].name, PATH_MAX, "%s%s", path, suffix ? suffix : "");
    if (length < 0 || both >= PATH_MAX) return cannot(path, ENAMETOOLONG), NULL;
    sweep_once(path);
    catch_signals();
    hold_signals();
    if (output_begin(&outputs[0]) || (suffix && output_begin(&outputs[1]))) output_abandon();
    release_signals();
    return outputs[0].stream;
}

FILE *output_open(const char *path) { return open_all(path, NULL); }

FILE *output_open_two(const char *path, const char *suffix) { return open_all(path, suffix); }

FILE *output_second(void) { return outputs[1].stream; }

/* Whether two outputs would replace one file: of the same last name in the same folder. */
static int is_same(const output *a, const output *b)
{
    char first[PATH_MAX], second[PATH_MAX];
    struct stat x, y;
    if (strcmp(temporary_folder(a->final, first), temporary_folder(b->final, second))) return 0;
    return !strcmp(first, second) ||
           (!stat(first, &x) && !stat(second, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

static int begin_several(const char *const *paths, int count)
{
    for (int i = 0; i < count; i++) {
        if (output_begin(&outputs[i])) return EXIT_FAILURE;
        for (int j = 0; j < i; j++)
            if (is_same(&outputs[i], &outputs[j]))
                return cli_fail("'%s' and '%s' are one file; name another one for one of them", paths[j], paths[i]);
    }
    return 0;
}

int output_open_several(const char *const *paths, int count)
{
    if (count == 1) return output_open(paths[0]) ? 0 : EXIT_FAILURE;
    for (int i = 0; i < count; i++) {
        if (!strcmp(paths[i], "-"))
            return cli_fail("standard output can be the only output, and there are %d; name files", count);
        if (snprintf(outputs[i].name, PATH_MAX, "%s", paths[i]) >= PATH_MAX) return cannot(paths[i], ENAMETOOLONG);
        sweep(paths[i]);
    }
    catch_signals();
    hold_signals();
    const int code = begin_several(paths, count);
    if (code) output_abandon();
    release_signals();
    return code;
}

FILE *output_stream(int i) { return outputs[i].stream; }

static int failed(const output *o, int why)
{
    output_abandon();
    return cli_fail("'%s' could not be written (%s); make room or name another file", o->name, strerror(why));
}

int output_map(int i, int64_t bytes, void **memory)
{
    output *o = &outputs[i];
    *memory = NULL;
    if (!o->open) return 0;
    if (fflush(o->stream)) return failed(o, o->error ? o->error : EIO);
    const off_t at = lseek(o->fd, 0, SEEK_CUR);
    if (at < 0) return failed(o, errno);
    const int why = posix_fallocate(o->fd, 0, at + bytes); /* a full disk is an error now: later it would be a SIGBUS */
    if (why) return failed(o, why);
    char *map = mmap(NULL, (size_t)(at + bytes), PROT_READ | PROT_WRITE, MAP_SHARED, o->fd, 0);
    if (map == MAP_FAILED) return failed(o, errno);
    o->map = map;
    o->map_bytes = (size_t)(at + bytes);
    *memory = o->map + at;
    return 0;
}

void output_abandon(void)
{
    for (int i = 0; i < MOST; i++) discard(&outputs[i]);
}

/* closing ---------------------------------------------------------------------------------------------------- */

/* Flushes the stream; the file stays open, and so locked.  Returns 0, or an errno. */
static int output_finish(output *o)
{
    const int failed = fflush(o->stream) || ferror(o->stream);
    fclose(o->stream);
    o->stream = NULL;
    if (o->error || failed) return o->error ? o->error : EIO;
    return o->open && fsync(o->fd) && errno != EINVAL ? errno : 0;
}

/* Opens the folder of an output and locks it for as long as two renames take, so that no other process puts a pair of
 * the same names in place between them.  Waits at most two seconds for a process that holds the lock: the CRC-32
 * detects a pair that does not belong together, and the lock may never be released.  Returns the file descriptor, or -1
 * where the folder cannot be opened. */
static int lock_folder(const output *o)
{
    const struct timespec pause_time = {0, 10000000};
    char folder[PATH_MAX];
    temporary_folder(o->final, folder);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < 200 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK; i++)
        nanosleep(&pause_time, NULL);
    return fd;
}

/* Returns 0, or an errno. */
static int place(output *o)
{
    if (rename(o->part, o->final)) return errno;
    o->open = 0;
    close(o->fd);
    return 0;
}

/* The files that the outputs replace, until all are renamed. */
typedef struct kept {
    char name[PATH_MAX];
    int fd, is_there, placed;
} kept;

static int keep_and_place(output *o, kept *k)
{
    k->is_there = temporary_keep(o->final, k->name, &k->fd) == 0;
    if (!k->is_there && errno != ENOENT) return errno;
    const int why = place(o);
    k->placed = !why;
    return why;
}

/* Ends keep_and_place; undo: the old files are restored. rename does nothing where both names are links to one file, so
 * the kept name is removed in any case. */
static void settle(const output *o, const kept *k, int undo)
{
    if (undo && k->placed && !k->is_there) unlink(o->final);
    if (!k->is_there) return;
    if (!undo || !rename(k->name, o->final)) unlink(k->name);
    if (k->fd >= 0) close(k->fd);
}

/* The first file last, because other programs wait for it. *which is the one that failed.  Returns 0, or an errno: then
 * all names are unchanged. */
static int place_all(output **which)
{
    kept all[MOST] = {{.fd = -1}};
    int count = 0, why = 0, i;
    while (count < MOST && outputs[count].open) count++;
    for (i = count; i > 1 && !why; i--) why = keep_and_place(*which = &outputs[i - 1], &all[i - 1]);
    if (!why) why = place(*which = &outputs[0]);
    for (; i < count; i++) settle(&outputs[i], &all[i], why != 0);
    return why;
}

int output_close(void)
{
    output *o = &outputs[0];
    const int is_file = o->open;
    int why;
    for (int i = 0; i < MOST; i++)
        if (outputs[i].stream && (why = output_finish(&outputs[i])) != 0) return failed(&outputs[i], why);
    if (claims_check()) return output_abandon(), EXIT_FAILURE;
    if (!is_file) return 0;
    const int folder = lock_folder(o);
    hold_signals();
    why = place_all(&o);
    release_signals();
    if (folder >= 0) {
        (void)flock(folder, LOCK_UN);
        (void)fsync(folder); /* EINVAL: this file system cannot flush folders on request */
        close(folder);
    }
    return why ? failed(o, why) : 0;
}
