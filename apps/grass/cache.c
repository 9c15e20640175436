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

#include "check.h"
#include "flashsketch_files.h"

#define MATRIX ".npy"
#define SUM ".npy.crc32"
static const char version[] = "cache 2\n";
enum { IDENTITY_MOST = 4096, PATHS = PATH_MAX + 128 };

int cache_is_file(const char *name)
{
    const char *dot = strchr(name, '.');
    return !strcmp(name, "identity") || (dot && (!strcmp(dot, MATRIX) || !strcmp(dot, SUM)));
}

int cache_has(const char *folder, const char *name)
{
    char matrix[PATHS], sum[PATHS];
    snprintf(matrix, sizeof matrix, "%s/%s" MATRIX, folder, name);
    snprintf(sum, sizeof sum, "%s/%s" SUM, folder, name);
    return access(matrix, F_OK) == 0 && access(sum, F_OK) == 0;
}

int cache_remove(const char *folder, const char *name)
{
    static const char *const suffixes[] = {MATRIX, SUM, MATRIX ".part", SUM ".part"};
    const int there = cache_has(folder, name);
    char path[PATHS];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(path, sizeof path, "%s/%s%s", folder, name, suffixes[i]);
        unlink(path);
    }
    return there;
}

static fs_result path_of(const cache *c, const char *name, const char *suffix, char *path)
{
    const int length = snprintf(path, PATH_MAX, "%s/%s%s", c->folder, name, suffix);
    return length < PATH_MAX ? FS_OK : fs_fail(FS_EFILE, "%s/%s%s: the name is too long", c->folder, name, suffix);
}

/* A file that is being written, as PATH.part. */
typedef struct part {
    char path[PATH_MAX], part[PATH_MAX];
    FILE *out;
} part;

static fs_result part_open(const cache *c, const char *name, const char *suffix, part *p)
{
    char ending[32];
    snprintf(ending, sizeof ending, "%s.part", suffix);
    GRASS_TRY(path_of(c, name, suffix, p->path));
    GRASS_TRY(path_of(c, name, ending, p->part));
    p->out = fopen(p->part, "wb");
    if (!p->out) return fs_fail(FS_EFILE, "%s: it cannot be written: %s", p->part, strerror(errno));
    errno = 0; /* errno after a failed write is the reason */
    return FS_OK;
}

static fs_result part_failed(const part *p, int why)
{
    unlink(p->part);
    return fs_fail(FS_EFILE, "%s: it cannot be written: %s", p->path, strerror(why ? why : EIO));
}

/* Closes the file, on the disk, or removes it. */
static fs_result part_close(part *p)
{
    int wrong = fflush(p->out) != 0 || ferror(p->out) || fsync(fileno(p->out)) != 0, why = errno;
    if (fclose(p->out) != 0 && !wrong) wrong = 1, why = errno;
    return wrong ? part_failed(p, why) : FS_OK;
}

static fs_result part_rename(const part *p) { return rename(p->part, p->path) ? part_failed(p, errno) : FS_OK; }

/* Fails with the first line in which two texts differ. */
static fs_result refuse_identity(const cache *c, const char *there, const char *here)
{
    while (*there && *here) {
        const size_t a = strcspn(there, "\n"), b = strcspn(here, "\n");
        if (a != b || memcmp(there, here, a)) break;
        there += a + (there[a] != 0);
        here += b + (here[b] != 0);
    }
    char line[IDENTITY_MOST + 1], what[128];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(there, "\n"), there);
    fs_file_printable(what, sizeof what, line);
    return fs_fail(FS_EFILE, "%s: its contents were computed with '%s', and this is '%.*s'; use another folder",
                   c->folder, what, (int)strcspn(here, "\n"), here);
}

static fs_result write_text(const cache *c, const char *name, const char *suffix, const char *text, part *p)
{
    GRASS_TRY(part_open(c, name, suffix, p));
    fputs(text, p->out);
    return part_close(p);
}

/* The beginning of a file as a text; *found is 0 where there is none. */
static fs_result read_text(const char *path, char *text, size_t bytes, int *found)
{
    FILE *in = fopen(path, "rb");
    *found = in || errno != ENOENT;
    if (!*found) return FS_OK;
    if (!in) return fs_fail(FS_EFILE, "%s: it cannot be read: %s", path, strerror(errno));
    text[fread(text, 1, bytes - 1, in)] = 0;
    const int wrong = ferror(in);
    fclose(in);
    return wrong ? fs_fail(FS_EFILE, "%s: it cannot be read", path) : FS_OK;
}

/* Compares the text in the folder; where there is none the folder is new, and the text is written. */
static fs_result check_identity(const cache *c, const char *identity)
{
    char path[PATH_MAX], here[IDENTITY_MOST], there[IDENTITY_MOST + 1] = "";
    int found;
    snprintf(here, sizeof here, "%s%s", version, identity);
    GRASS_TRY(path_of(c, "identity", "", path));
    GRASS_TRY(read_text(path, there, sizeof there, &found));
    if (!found) {
        part p;
        GRASS_TRY(write_text(c, "identity", "", here, &p));
        return part_rename(&p);
    }
    if (strncmp(there, "cache ", 6))
        return fs_fail(FS_EFILE,
                       "%s: its contents have no checksums: an earlier flashsketch has written it; use "
                       "another folder, or remove this one",
                       c->folder);
    return strcmp(there, here) ? refuse_identity(c, there, here) : FS_OK;
}

static fs_result lock_folder(cache *c)
{
    c->lock = open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->lock < 0) return fs_fail(FS_EFILE, "%s: the folder cannot be read: %s", c->folder, strerror(errno));
    if (flock(c->lock, LOCK_EX | LOCK_NB) == 0) return FS_OK;
    return fs_fail(FS_EFILE, "%s: the folder is in use by another process", c->folder);
}

fs_result cache_open(cache *c, const char *folder, const char *identity)
{
    c->lock = -1;
    const size_t most = IDENTITY_MOST - sizeof version;
    GRASS_REQUIRE(strlen(identity) <= most, "%s: an identity of %zu bytes; at most %zu are kept", folder,
                  strlen(identity), most);
    if (snprintf(c->folder, sizeof c->folder, "%s", folder) >= (int)sizeof c->folder)
        return fs_fail(FS_EFILE, "%s: the name is too long", folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return fs_fail(FS_EFILE, "%s: the folder cannot be created: %s", folder, strerror(errno));
    fs_result result = lock_folder(c);
    if (result == FS_OK) result = check_identity(c, identity);
    if (result != FS_OK) cache_close(c);
    return result;
}

void cache_close(cache *c)
{
    if (c->lock >= 0) close(c->lock);
    c->lock = -1;
}

/* matrices --------------------------------------------------------------------------------------------------- */

/* Compares the elements with their checksum, which is in the file `path`. */
static fs_result check_sum(const char *path, const char *text, const char *matrix, const fs_matrix *m)
{
    uint32_t wanted;
    int end = 0;
    if (sscanf(text, "crc32 %" SCNu32 "\n%n", &wanted, &end) != 1 || !end || text[end])
        return fs_fail(FS_EFILE, "%s: this is not a checksum; remove it, and the next run recreates %s", path, matrix);
    const uint32_t crc = fs_file_crc32(m);
    if (crc == wanted) return FS_OK;
    return fs_fail(FS_EFILE,
                   "%s: its elements have CRC-32 %" PRIu32 ", but those that were written had %" PRIu32
                   "; remove it, and the next run recreates it",
                   matrix, crc, wanted);
}

static fs_result copy_matrix(const char *path, fs_file *file, const fs_matrix *m)
{
    fs_file_info info = FS_FILE_INFO_INIT;
    fs_matrix f;
    GRASS_TRY(fs_file_get_info(file, &info));
    GRASS_TRY(fs_file_matrix(file, &f));
    if (f.rows != m->rows || f.cols != m->cols || f.dtype != m->dtype || (f.cols > 1 && f.col_stride != 1))
        return fs_fail(FS_EFILE,
                       "%s: the file holds %" PRId64 " x %" PRId64 " %s%s, it should be %" PRId64 " x %" PRId64
                       " %s by rows",
                       path, f.rows, f.cols, info.stored, info.by_columns ? "" : " by rows", m->rows, m->cols,
                       fs_file_dtype_name(m->dtype));
    memcpy(m->data, (const float *)f.data + f.offset, (size_t)(m->rows * m->cols) * sizeof(float));
    return FS_OK;
}

static fs_result read_matrix(const char *path, const fs_matrix *m)
{
    fs_file_options options = FS_FILE_INIT;
    fs_file *file;
    options.format = FS_FILE_NPY;
    GRASS_TRY(fs_file_open(&file, path, &options));
    const fs_result result = copy_matrix(path, file, m);
    fs_file_close(file);
    return result;
}

fs_result cache_get(const cache *c, const char *name, const fs_matrix *m, int *found)
{
    char path[PATH_MAX], sum[PATH_MAX], text[64];
    GRASS_TRY(path_of(c, name, MATRIX, path));
    GRASS_TRY(path_of(c, name, SUM, sum));
    *found = access(path, F_OK) == 0;
    if (*found) GRASS_TRY(read_text(sum, text, sizeof text, found));
    if (!*found) return FS_OK;
    GRASS_TRY(read_matrix(path, m));
    return check_sum(sum, text, path, m);
}

fs_result cache_put(const cache *c, const char *name, const fs_matrix *m)
{
    part matrix, sum;
    char text[32];
    uint32_t crc;
    GRASS_TRY(part_open(c, name, MATRIX, &matrix));
    fs_result result = fs_file_write_npy(matrix.out, m, m->dtype, &crc);
    if (result != FS_OK) {
        fclose(matrix.out);
        unlink(matrix.part);
        return result;
    }
    GRASS_TRY(part_close(&matrix));
    snprintf(text, sizeof text, "crc32 %" PRIu32 "\n", crc);
    result = write_text(c, name, SUM, text, &sum);
    if (result != FS_OK) {
        unlink(matrix.part);
        return result;
    }
    unlink(sum.path); /* the checksum of the old matrix is removed first */
    result = part_rename(&matrix);
    if (result == FS_OK) result = part_rename(&sum);
    else unlink(sum.part);
    return result;
}
