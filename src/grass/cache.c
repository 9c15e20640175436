/* cache.c - write beside, flush to the disk, rename. */
#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "file.h"

enum { IDENTITY_MOST = 4096 };

int cache_is_file(const char *name)
{
    const char *dot = strrchr(name, '.');
    return !strcmp(name, "identity") || (dot && !strcmp(dot, ".npy"));
}

static fs_result path_of(const cache *c, const char *name, const char *suffix, char *path)
{
    const int length = snprintf(path, PATH_MAX, "%s/%s%s", c->folder, name, suffix);
    return length < PATH_MAX ? FS_OK : fs_fail(FS_EFILE, "%s/%s%s: the name is too long", c->folder, name, suffix);
}

/* Closes a stream that was written to PATH.part and puts it in place, or removes it. */
static fs_result put_in_place(FILE *out, const char *part, const char *path)
{
    int failed = fflush(out) != 0 || ferror(out) || fsync(fileno(out)) != 0, why = errno;
    if (fclose(out) != 0 && !failed) failed = 1, why = errno;
    if (!failed && rename(part, path) != 0) failed = 1, why = errno;
    if (!failed) return FS_OK;
    unlink(part);
    return fs_fail(FS_EFILE, "%s: it cannot be written: %s", path, strerror(why ? why : EIO));
}

static fs_result begin(const cache *c, const char *name, const char *suffix, char *path, char *part, FILE **out)
{
    char ending[32];
    snprintf(ending, sizeof ending, "%s.part", suffix);
    FS_TRY(path_of(c, name, suffix, path));
    FS_TRY(path_of(c, name, ending, part));
    *out = fopen(part, "wb");
    return *out ? FS_OK : fs_fail(FS_EFILE, "%s: it cannot be written: %s", part, strerror(errno));
}

/* The first line in which two texts differ. */
static fs_result differs(const cache *c, const char *there, const char *here)
{
    while (*there && *here) {
        const size_t a = strcspn(there, "\n"), b = strcspn(here, "\n");
        if (a != b || memcmp(there, here, a)) break;
        there += a + (there[a] != 0);
        here += b + (here[b] != 0);
    }
    char what[128];
    file_printable(what, sizeof what, there, strcspn(there, "\n"));
    return fs_fail(FS_EFILE, "%s: what is kept there was made with '%s', and this is '%.*s'; take another folder",
                   c->folder, what, (int)strcspn(here, "\n"), here);
}

static fs_result write_identity(const cache *c, const char *identity)
{
    char path[PATH_MAX], part[PATH_MAX];
    FILE *out;
    FS_TRY(begin(c, "identity", "", path, part, &out));
    fputs(identity, out);
    return put_in_place(out, part, path);
}

/* Compares the text in the folder; where there is none nothing has been kept yet, and it is written. */
static fs_result compare(const cache *c, const char *identity)
{
    char path[PATH_MAX], there[IDENTITY_MOST + 1];
    FS_TRY(path_of(c, "identity", "", path));
    FILE *in = fopen(path, "rb");
    if (!in && errno == ENOENT) return write_identity(c, identity);
    if (!in) return fs_fail(FS_EFILE, "%s: it cannot be read: %s", path, strerror(errno));
    const size_t length = fread(there, 1, IDENTITY_MOST, in);
    const int failed = ferror(in);
    fclose(in);
    if (failed) return fs_fail(FS_EFILE, "%s: it cannot be read", path);
    there[length] = 0;
    return strcmp(there, identity) ? differs(c, there, identity) : FS_OK;
}

static fs_result lock(cache *c)
{
    c->lock = open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->lock < 0) return fs_fail(FS_EFILE, "%s: the folder cannot be read: %s", c->folder, strerror(errno));
    if (flock(c->lock, LOCK_EX | LOCK_NB) == 0) return FS_OK;
    return fs_fail(FS_EFILE, "%s: the folder is in use by another process", c->folder);
}

fs_result cache_open(cache *c, const char *folder, const char *identity)
{
    c->lock = -1;
    FS_REQUIRE(strlen(identity) < IDENTITY_MOST, "%s: an identity of %zu bytes; at most %d are kept", folder,
               strlen(identity), IDENTITY_MOST - 1);
    if (snprintf(c->folder, sizeof c->folder, "%s", folder) >= (int)sizeof c->folder)
        return fs_fail(FS_EFILE, "%s: the name is too long", folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return fs_fail(FS_EFILE, "%s: the folder cannot be made: %s", folder, strerror(errno));
    fs_result result = lock(c);
    if (result == FS_OK) result = compare(c, identity);
    if (result != FS_OK) cache_close(c);
    return result;
}

void cache_close(cache *c)
{
    if (c->lock >= 0) close(c->lock);
    c->lock = -1;
}

fs_result cache_get(const cache *c, const char *name, const fs_matrix *m, int *found)
{
    char path[PATH_MAX];
    const file_options options = {.format = FILE_NPY};
    file_matrix file;
    FS_TRY(path_of(c, name, ".npy", path));
    *found = access(path, F_OK) == 0;
    if (!*found) return FS_OK;
    FS_TRY(file_open(path, &options, &file));
    fs_result result = FS_OK;
    const fs_matrix *f = &file.dense;
    if (f->rows != m->rows || f->cols != m->cols || f->dtype != m->dtype || (f->cols > 1 && f->col_stride != 1))
        result = fs_fail(FS_EFILE, "%s: the file holds %" PRId64 " x %" PRId64 " %s%s, it should be %" PRId64
                         " x %" PRId64 " %s by rows", path, f->rows, f->cols, file.stored,
                         f->col_stride == 1 ? " by rows" : "", m->rows, m->cols, file_dtype_name(m->dtype));
    else
        memcpy(m->data, (const char *)f->data + f->offset * 4, (size_t)(m->rows * m->cols) * 4);
    file_close(&file);
    return result;
}

fs_result cache_put(const cache *c, const char *name, const fs_matrix *m)
{
    char path[PATH_MAX], part[PATH_MAX];
    FILE *out;
    FS_TRY(begin(c, name, ".npy", path, part, &out));
    errno = 0;
    file_write_npy(out, m, m->dtype);
    return put_in_place(out, part, path);
}
