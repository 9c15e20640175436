/* zip.c - see zip.h. */
#include "files/formats/zip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    END = 22,
    LOCATOR = 20,
    END64 = 56,
    ENTRY = 46,
    LOCAL = 30, /* bytes of the records without their variable parts */
    COMMENT = 65535,
    MAX_DIRECTORY = 16 << 20, /* np.savez needs about 100 bytes for an array */
    SHORT = 0xFFFF
};
static const int64_t LONG = 0xFFFFFFFF; /* "see the zip64 field" */
static const int64_t RATIO = 1032;      /* deflate's largest ratio */

typedef char shown_name[80];

static fs_result damaged(const reader_source *in, const char *what)
{
    return bad_file("%s: this is a zip archive that is damaged: %s; get it again", in->path, what);
}

/* Bytes at an offset.  Returns 0, or FS_EFILE or FS_ENOMEM. */
static fs_result read_at(const reader_source *in, int64_t offset, void *to, int64_t bytes)
{
    for (int64_t got = 0; got < bytes;) {
        const ssize_t n = pread(in->fd, (char *)to + got, (size_t)(bytes - got), (off_t)(offset + got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return bad_file("%s: the file could not be read (%s)", in->path, strerror(errno));
        if (!n) return damaged(in, "it ends in the middle");
        got += n;
    }
    return 0;
}

/* A 64-bit number that is to count bytes of the file, or of a member; -1 if it cannot. */
static int64_t count_at(const unsigned char *at)
{
    const uint64_t value = reader_little(at, 8);
    return value > INT64_MAX ? -1 : (int64_t)value;
}

/* the end of the archive ------------------------------------------------------------------------------------- */

typedef struct end_record {
    int64_t entries, bytes, start; /* of the directory */
    int64_t limit;                 /* where it ends */
} end_record;

/* The same from the record of zip64, whose locator stands before the end record at `at`. */
static fs_result read_end64(const reader_source *in, int64_t at, end_record *end)
{
    unsigned char locator[LOCATOR], record[END64];
    if (at < LOCATOR + END64) return damaged(in, "its zip64 record is missing");
    FSI_TRY(read_at(in, at - LOCATOR, locator, LOCATOR));
    const int64_t offset = count_at(locator + 8);
    if (memcmp(locator, "PK\6\7", 4) || reader_little(locator + 4, 4) || offset < 0 || offset > at - LOCATOR - END64)
        return damaged(in, "its zip64 record is missing");
    FSI_TRY(read_at(in, offset, record, END64));
    if (memcmp(record, "PK\6\6", 4) || reader_little(record + 16, 8)) return damaged(in, "its zip64 record is wrong");
    end->entries = count_at(record + 32);
    end->bytes = count_at(record + 40);
    end->start = count_at(record + 48);
    end->limit = offset;
    return 0;
}

/* Whether `left` bytes at the end of a file are the record and its comment. */
static int is_end(const unsigned char *at, int64_t left)
{
    return !memcmp(at, "PK\5\6", 4) && END + (int64_t)reader_little(at + 20, 2) == left;
}

static fs_result read_end(const reader_source *in, end_record *end)
{
    const int64_t bytes = in->bytes < END + COMMENT ? in->bytes : END + COMMENT;
    unsigned char *tail = malloc((size_t)bytes);
    if (!tail) return out_of_memory("%s: no memory for %" PRId64 " bytes", in->path, bytes);
    fs_result code = read_at(in, in->bytes - bytes, tail, bytes);
    int64_t at = bytes - END;
    while (!code && at >= 0 && !is_end(tail + at, bytes - at)) at--;
    if (!code && at < 0) code = damaged(in, "the record at its end is missing");
    if (!code) {
        const unsigned char *record = tail + at;
        end->entries = (int64_t)reader_little(record + 10, 2);
        end->bytes = (int64_t)reader_little(record + 12, 4);
        end->start = (int64_t)reader_little(record + 16, 4);
        end->limit = in->bytes - bytes + at;
        if (reader_little(record + 4, 4) || reader_little(record + 8, 2) != (uint64_t)end->entries)
            code = bad_file("%s: this is a part of a zip archive in several parts; put it together", in->path);
        else if (end->entries == SHORT || end->bytes == LONG || end->start == LONG)
            code = read_end64(in, end->limit, end);
    }
    free(tail);
    if (code) return code;
    if (end->entries < 0 || end->bytes < 0 || end->start < 0 || end->start > end->limit ||
        end->bytes != end->limit - end->start || end->entries > end->bytes / ENTRY)
        return damaged(in, "its directory is not where its last record says");
    if (end->bytes > MAX_DIRECTORY)
        return bad_file("%s: the directory of this zip archive has %" PRId64 " bytes; at most %d are read", in->path,
                        end->bytes, MAX_DIRECTORY);
    return 0;
}

/* members ---------------------------------------------------------------------------------------------------- */

/* The zip64 numbers in an extra field that stand for those that are LONG, in their order.  Returns whether all are
 * there. */
static int read_extra(const unsigned char *extra, int64_t bytes, int64_t *const *numbers, int count)
{
    int wanted = 0;
    for (int i = 0; i < count; i++) wanted += *numbers[i] == LONG;
    while (wanted && bytes >= 4) {
        const int64_t id = (int64_t)reader_little(extra, 2), length = (int64_t)reader_little(extra + 2, 2);
        if (length > bytes - 4) return 0;
        if (id == 1 && length >= 8 * wanted) {
            const unsigned char *at = extra + 4;
            for (int i = 0; i < count; i++)
                if (*numbers[i] == LONG) *numbers[i] = count_at(at), at += 8;
            return 1;
        }
        extra += 4 + length, bytes -= 4 + length;
    }
    return !wanted;
}

/* Compares the local header with the entry of the directory, and finds the member's bytes. */
static fs_result read_local(const reader_source *in, zip_member *m, int64_t offset, int64_t limit)
{
    unsigned char local[LOCAL];
    if (offset < 0 || offset > limit - LOCAL) return damaged(in, "a member is outside the archive");
    FSI_TRY(read_at(in, offset, local, LOCAL));
    const int64_t name = (int64_t)reader_little(local + 26, 2), extra = (int64_t)reader_little(local + 28, 2);
    if (memcmp(local, "PK\3\4", 4) || name != (int64_t)strlen(m->name) || name + extra > limit - offset - LOCAL)
        return damaged(in, "a member is not where its directory says");
    unsigned char *rest = malloc((size_t)(name + extra + 1));
    if (!rest) return out_of_memory("%s: no memory for %" PRId64 " bytes", in->path, name + extra);
    int64_t packed = (int64_t)reader_little(local + 18, 4), bytes = (int64_t)reader_little(local + 22, 4);
    int64_t *const numbers[] = {&bytes, &packed};
    fs_result code = read_at(in, offset + LOCAL, rest, name + extra);
    const int streamed = m->flags & 8; /* sizes and CRC were written behind the bytes */
    if (!code &&
        (memcmp(rest, m->name, (size_t)name) || (int)reader_little(local + 6, 2) != m->flags ||
         (int)reader_little(local + 8, 2) != m->method || !read_extra(rest + name, extra, numbers, 2) ||
         (!streamed && (packed != m->packed || bytes != m->bytes || (uint32_t)reader_little(local + 14, 4) != m->crc))))
        code = damaged(in, "a member's header is not what its directory says");
    free(rest);
    m->start = offset + LOCAL + name + extra;
    if (!code && m->packed > limit - m->start) code = damaged(in, "a member reaches into its directory");
    return code;
}

static fs_result check_member(const reader_source *in, const zip_member *m)
{
    shown_name shown;
    file_printable(shown, sizeof shown, m->name, strlen(m->name));
    if (m->flags & 1) return bad_file("%s: '%s' is encrypted; save the archive without a password", in->path, shown);
    if (m->method != 0 && m->method != 8)
        return bad_file("%s: '%s' is compressed by method %d; deflate (8) and none (0) are read: numpy.savez and "
                        "savez_compressed write these",
                        in->path, shown, m->method);
    const int64_t most = m->method ? reader_times(m->packed, RATIO) : m->packed;
    if (m->packed < 0 || m->bytes < 0 || (most >= 0 && m->bytes > most) || (!m->method && m->bytes != m->packed))
        return bad_file("%s: '%s' should have %" PRId64 " bytes, but %" PRId64 " packed ones hold no more than "
                        "%" PRId64,
                        in->path, shown, m->bytes, m->packed, most);
    return 0;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Checks that names are distinct.  Returns as zip_open. */
static fs_result check_names(const reader_source *in, const zip_archive *zip)
{
    shown_name shown;
    const char **names = malloc((size_t)(zip->count + 1) * sizeof *names);
    const char *twice = NULL;
    if (!names) return out_of_memory("%s: no memory for %" PRId64 " names", in->path, zip->count);
    for (int64_t i = 0; i < zip->count; i++) names[i] = zip->members[i].name;
    qsort(names, (size_t)zip->count, sizeof *names, by_name);
    for (int64_t i = 1; i < zip->count && !twice; i++)
        if (!strcmp(names[i - 1], names[i])) twice = names[i];
    free(names);
    if (!twice) return 0;
    return bad_file("%s: '%s' occurs twice", in->path, file_printable(shown, sizeof shown, twice, strlen(twice)));
}

/* The entries of the directory; names go to zip->names. */
static fs_result read_entries(const reader_source *in, const end_record *end, const unsigned char *at, zip_archive *zip)
{
    const unsigned char *last = at + end->bytes;
    char *name = zip->names;
    for (; zip->count < end->entries; zip->count++) {
        zip_member *m = &zip->members[zip->count];
        if (last - at < ENTRY || memcmp(at, "PK\1\2", 4)) return damaged(in, "an entry of its directory is missing");
        const int64_t length = (int64_t)reader_little(at + 28, 2), extra = (int64_t)reader_little(at + 30, 2);
        const int64_t comment = (int64_t)reader_little(at + 32, 2);
        int64_t offset = (int64_t)reader_little(at + 42, 4);
        *m = (zip_member){.name = name,
                          .flags = (int)reader_little(at + 8, 2),
                          .method = (int)reader_little(at + 10, 2),
                          .crc = (uint32_t)reader_little(at + 16, 4),
                          .packed = (int64_t)reader_little(at + 20, 4),
                          .bytes = (int64_t)reader_little(at + 24, 4)};
        int64_t *const numbers[] = {&m->bytes, &m->packed, &offset};
        if (last - at - ENTRY < length + extra + comment) return damaged(in, "an entry of its directory is cut");
        if (memchr(at + ENTRY, 0, (size_t)length)) return damaged(in, "the name of a member has a byte 0");
        if (!read_extra(at + ENTRY + length, extra, numbers, 3)) return damaged(in, "a zip64 field is missing");
        memcpy(name, at + ENTRY, (size_t)length);
        name[length] = 0;
        name += length + 1;
        at += ENTRY + length + extra + comment;
        FSI_TRY(check_member(in, m));
        FSI_TRY(read_local(in, m, offset, end->start));
    }
    return at == last ? check_names(in, zip) : damaged(in, "its directory has more than its last record says");
}

fs_result zip_open(const reader_source *in, zip_archive *zip)
{
    end_record end = {0};
    memset(zip, 0, sizeof *zip);
    FSI_TRY(read_end(in, &end));
    unsigned char *directory = malloc((size_t)end.bytes + 1);
    zip->members = calloc((size_t)end.entries + 1, sizeof *zip->members);
    zip->names = malloc((size_t)(end.bytes + end.entries) + 1);
    fs_result code = directory && zip->members && zip->names
                         ? 0
                         : out_of_memory("%s: no memory for a directory of %" PRId64 " bytes", in->path, end.bytes);
    if (!code) code = read_at(in, end.start, directory, end.bytes);
    if (!code) code = read_entries(in, &end, directory, zip);
    free(directory);
    return code;
}

void zip_close(zip_archive *zip)
{
    free(zip->members);
    free(zip->names);
    memset(zip, 0, sizeof *zip);
}

const zip_member *zip_find(const zip_archive *zip, const char *name)
{
    for (int64_t i = 0; i < zip->count; i++)
        if (!strcmp(zip->members[i].name, name)) return &zip->members[i];
    return NULL;
}

fs_result zip_start(const reader_source *in, const zip_member *m, reader_stream *stream)
{
    const reader_packing packing = m->method ? READER_DEFLATE : READER_PLAIN;
    FSI_TRY(reader_start_at(in, packing, m->start, m->start + m->packed, stream));
    stream->most = m->bytes;
    stream->counts = 1;
    return 0;
}

fs_result zip_finish(const zip_member *m, reader_stream *s)
{
    char more;
    const int64_t given = s->given, rest = reader_more(s, &more, 1);
    if (rest < 0) return reader_failure(rest);
    if (rest || given != m->bytes)
        return bad_file("%s: it should have %" PRId64 " bytes, but %s%" PRId64 " came; get the archive again",
                        s->in->path, m->bytes, rest ? "more than " : "", given);
    if (s->at - (s->filled - s->taken) != s->end)
        return bad_file("%s: its compressed data end before their last byte; get the archive again", s->in->path);
    if ((uint32_t)s->crc == m->crc) return 0;
    return bad_file("%s: its bytes differ from those that were saved (CRC-32 %08" PRIx32 ", not %08" PRIx32
                    "); get the "
                    "archive again",
                    s->in->path, (uint32_t)s->crc, m->crc);
}
