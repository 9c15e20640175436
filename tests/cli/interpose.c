/* interpose.c - system calls of a program, which a test watches or lets fail at a point of its choice; for LD_PRELOAD.
 *
 * INTERPOSE is a list of rules "CALL N ACTION [NUMBER]", with ';' between them: what happens at the Nth call (0: at all
 * of them), before the system sees it.
 *
 *     fail ERRNO      the call fails
 *     kill            the program ends by SIGKILL
 *     stop            the program stops until it gets SIGCONT
 *     truncate BYTES  after the call INTERPOSE_FILE is made so short
 *     return NUMBER   getpid alone
 *
 * CALL is rename, link, fsync, flock, getpid, madvise, or mmap, of which only mappings of INTERPOSE_FILE count: LLVM's
 * OpenMP maps files of its own.  INTERPOSE_LOG is a file to which every call of rename, fsync and flock adds a line.
 * With INTERPOSE_CLOCK the clock CLOCK_MONOTONIC advances by 0.1 s whenever it is read and by 1 s with every fsync of a
 * file, and lines of the log begin with it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The functions of the library behind this one.  They are looked up before main: a thread that looks one up while
 * another closes a library, and waits for that thread to end, would deadlock. */
static struct {
    __typeof__(&rename) rename;
    __typeof__(&link) link;
    __typeof__(&fsync) fsync;
    __typeof__(&flock) flock;
    __typeof__(&getpid) getpid;
    __typeof__(&madvise) madvise;
    __typeof__(&mmap) mmap;
    __typeof__(&clock_gettime) clock_gettime;
} next;
#define LOOK_UP(name) next.name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void look_up(void)
{
    LOOK_UP(rename), LOOK_UP(link), LOOK_UP(fsync), LOOK_UP(flock), LOOK_UP(getpid), LOOK_UP(madvise), LOOK_UP(mmap);
    LOOK_UP(clock_gettime);
}

/* Constructors of other libraries may run before the one above. */
#define NEXT(name) (next.name ? next.name : (look_up(), next.name))

static double now = 1000;

static void put(const char *format, ...)
{
    char line[9000];
    const char *path = getenv("INTERPOSE_LOG");
    const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (file < 0) return;
    int length = getenv("INTERPOSE_CLOCK") ? snprintf(line, sizeof line, "%.1f ", now) : 0;
    va_list arguments;
    va_start(arguments, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
    va_end(arguments);
    line[length++] = '\n';
    if (write(file, line, (size_t)length) != length) abort();
    close(file);
}

static const char *kind(int file)
{
    struct stat about;
    return fstat(file, &about) == 0 && S_ISDIR(about.st_mode) ? "folder" : "file";
}

/* What is to happen at this call, whose number is *count; "" is nothing. */
static const char *action(const char *call, int *count, int *number)
{
    static char what[16];
    char name[16];
    int at;
    ++*count;
    for (const char *rule = getenv("INTERPOSE"); rule && *rule; rule += strcspn(rule, ";"), rule += *rule == ';') {
        *number = 0;
        if (sscanf(rule, "%15s %d %15[a-z] %d", name, &at, what, number) >= 3 && !strcmp(name, call) &&
            (at == 0 || at == *count))
            return what;
    }
    return "";
}

/* Whether the call fails, with errno. */
static int acts(const char *call, int *count, int *number, const char **what)
{
    *what = action(call, count, number);
    if (!strcmp(*what, "kill")) raise(SIGKILL);
    if (!strcmp(*what, "stop")) raise(SIGSTOP);
    if (strcmp(*what, "fail")) return 0;
    errno = *number;
    return 1;
}

static void after(const char *what, int number)
{
    if (!strcmp(what, "truncate") && truncate(getenv("INTERPOSE_FILE"), number)) abort();
}

int rename(const char *from, const char *to)
{
    static int count;
    int number;
    const char *what;
    put("rename %s %s", from, to);
    return acts("rename", &count, &number, &what) ? -1 : NEXT(rename)(from, to);
}

int link(const char *from, const char *to)
{
    static int count;
    int number;
    const char *what;
    return acts("link", &count, &number, &what) ? -1 : NEXT(link)(from, to);
}

int fsync(int file)
{
    static int count;
    int number;
    const char *what;
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(name, path, sizeof path);
    put("fsync %s %.*s", kind(file), length > 0 ? (int)length : 0, path);
    if (!strcmp(kind(file), "file")) now += 1;
    return acts("fsync", &count, &number, &what) ? -1 : NEXT(fsync)(file);
}

int flock(int file, int how)
{
    static int count;
    int number;
    const char *what;
    const int code = acts("flock", &count, &number, &what) ? -1 : NEXT(flock)(file, how);
    const int why = errno;
    put("flock %s %d", kind(file), code);
    errno = why;
    return code;
}

pid_t getpid(void)
{
    static int count;
    int number;
    const char *what = action("getpid", &count, &number);
    return strcmp(what, "return") ? NEXT(getpid)() : number;
}

int madvise(void *at, size_t bytes, int how)
{
    static int count;
    int number;
    const char *what;
    if (acts("madvise", &count, &number, &what)) return -1;
    const int code = NEXT(madvise)(at, bytes, how);
    after(what, number);
    return code;
}

static int is_file(int file)
{
    struct stat open, named;
    const char *path = getenv("INTERPOSE_FILE");
    return file >= 0 && path && !fstat(file, &open) && !stat(path, &named) && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
}

void *mmap(void *at, size_t bytes, int rights, int how, int file, off_t offset)
{
    static int count;
    int number = 0;
    const char *what = "";
    if (is_file(file) && acts("mmap", &count, &number, &what)) return MAP_FAILED;
    void *map = NEXT(mmap)(at, bytes, rights, how, file, offset);
    after(what, number);
    return map;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock != CLOCK_MONOTONIC || !getenv("INTERPOSE_CLOCK")) return NEXT(clock_gettime)(clock, time);
    now += 0.1;
    time->tv_sec = (time_t)now;
    time->tv_nsec = (long)(1e9 * (now - (double)time->tv_sec));
    return 0;
}
