/* temporary.c - see temporary.h. */
#include "temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define START "flashsketch-"
#define END ".part"
enum { DIGITS = 16, TRIES = 100 };

const char *temporary_folder(const char *path, char *folder)
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, PATH_MAX, "%.*s", slash ? (int)(slash - path + 1) : 2, slash ? path : "./");
    return slash ? slash + 1 : path;
}

static uint64_t hash_of(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash;
}

/* O_EXCL detects a name that exists. */
static uint64_t random_number(void)
{
    uint64_t number;
    struct timespec now;
    if (getentropy(&number, sizeof number) == 0) return number;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec) * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)getpid();
}

/* Writes the name of a new temporary into path.  Returns 0, or -1 with errno. */
static int make_name(const char *target, char *path)
{
    char folder[PATH_MAX];
    const char *name = temporary_folder(target, folder);
    const int length = snprintf(path, PATH_MAX, "%s" START "%016" PRIx64 "-%016" PRIx64 END, folder, hash_of(name),
                                random_number());
    if (length >= 0 && length < PATH_MAX) return 0;
    errno = ENAMETOOLONG;
    return -1;
}

static int is_at(int fd, const char *path)
{
    struct stat open, named;
    return !fstat(fd, &open) && !lstat(path, &named) && S_ISREG(open.st_mode) && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
}

/* Locks a temporary.  Returns 0 where a sweep came first: between open and flock the file belongs to no process, and
 * the sweep has removed it or holds its lock to do so. */
static int own(int fd, const char *path)
{
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) return 0;
    return is_at(fd, path);
}

int temporary_create(const char *target, char *path)
{
    for (int i = 0; i < TRIES; i++) {
        if (make_name(target, path)) return -1;
        const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd >= 0 && own(fd, path)) return fd;
        if (fd >= 0) close(fd);
    }
    errno = EAGAIN;
    return -1;
}

int temporary_keep(const char *target, char *path, int *fd)
{
    int code, tries = 0;
    *fd = open(target, O_RDONLY | O_CLOEXEC);
    if (*fd >= 0) (void)flock(*fd, LOCK_EX | LOCK_NB);
    do code = make_name(target, path) ? -1 : link(target, path);
    while (code && errno == EEXIST && tries++ < TRIES);
    if (code && errno != ENOENT && errno != EEXIST && errno != ENAMETOOLONG) code = rename(target, path);
    if (!code) return 0;
    const int why = errno;
    if (*fd >= 0) close(*fd);
    *fd = -1;
    errno = why;
    return -1;
}

/* NFS grants an exclusive lock only to files that are open for writing. */
static void remove_unowned(const char *path)
{
    const int how = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = open(path, O_RDWR | how);
    if (fd < 0) fd = open(path, O_RDONLY | how);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at(fd, path)) unlink(path);
    close(fd);
}

void temporary_sweep(const char *target)
{
    char folder[PATH_MAX], start[64], path[2 * PATH_MAX];
    const int length = snprintf(start, sizeof start, START "%016" PRIx64 "-",
                                hash_of(temporary_folder(target, folder)));
    DIR *all = opendir(folder);
    for (struct dirent *one; all && (one = readdir(all));) {
        const char *random = one->d_name + length;
        if (strncmp(one->d_name, start, (size_t)length) || strspn(random, "0123456789abcdef") != DIGITS ||
            strcmp(random + DIGITS, END))
            continue;
        snprintf(path, sizeof path, "%s%s", folder, one->d_name);
        remove_unowned(path);
    }
    if (all) closedir(all);
}
