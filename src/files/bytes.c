/* bytes.c - the bytes of a file, of a part of one or of a pipe, in order, decompressed where they are compressed. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/reader.h"

/* The buffer holds every header that may have to be copied from a pipe to a temporary file (npy.c: 65547 bytes). */
enum { BUFFER = READER_BUFFER, STEP = 1 << 20 };
static const int64_t RATIO = 1032; /* deflate's largest ratio (zlib.net, "Maximum Compression Factor") */

void reader_watch(const reader_source *in, int64_t bytes, int64_t all)
{
    if (in->options->watch) in->options->watch(in->options->user, bytes, all);
}

/* One read of up to `bytes` bytes from the position of the stream.  Returns how many were read, 0 at the end, or minus
 * the code. */
static int64_t get(reader_stream *s, void *to, int64_t bytes)
{
    const int64_t left = s->end - s->at, most = bytes < left ? bytes : left;
    ssize_t got;
    for (;;) {
        got = s->is_pipe ? read(s->fd, to, (size_t)most) : pread(s->fd, to, (size_t)most, (off_t)s->at);
        if (got >= 0) break;
        if (errno == EAGAIN && s->is_pipe) { /* the other end of the pipe may have set O_NONBLOCK for both */
            struct pollfd wait = {s->fd, POLLIN, 0};
            if (poll(&wait, 1, -1) >= 0) continue;
        }
        if (errno != EINTR) {
            return -(int64_t)bad_file("%s: the file could not be read (%s)", s->in->path, strerror(errno));
        }
    }
    s->at += got;
    return got;
}

int64_t reader_fill(reader_stream *s)
{
    while (s->filled < s->room) {
        const int64_t got = get(s, s->buffer + s->filled, s->room - s->filled);
        if (got < 0) return got;
        if (!got) break;
        s->filled += got;
    }
    return s->filled;
}

/* Fills the buffer, which is empty; returns as get. */
static int64_t refill(reader_stream *s)
{
    const int64_t got = get(s, s->buffer, s->room);
    s->taken = 0;
    s->filled = got > 0 ? got : 0;
    return got;
}

fs_result reader_start_at(const reader_source *in, reader_packing packing, int64_t at, int64_t end, reader_stream *s)
{
    memset(s, 0, sizeof *s);
    s->in = in;
    s->fd = in->fd;
    s->at = at;
    s->end = end;
    s->packing = packing;
    s->most = end - at;
    if (packing != READER_PLAIN) s->most = reader_times(end - at, RATIO);
    if (s->most < 0) s->most = INT64_MAX;
    s->room = end - at < BUFFER ? end - at + 1 : BUFFER; /* at least one */
    s->buffer = malloc((size_t)s->room);
    if (!s->buffer) return out_of_memory("%s: no memory for %" PRId64 " bytes", in->path, s->room);
    return 0;
}

fs_result reader_start(const reader_source *in, reader_stream *s)
{
    unsigned char magic[2];
    FSI_TRY(reader_start_at(in, READER_PLAIN, 0, in->bytes, s));
    const int64_t got = in->bytes < 2 ? 0 : pread(in->fd, magic, 2, 0);
    if (got < 0) {
        reader_stop(s);
        return bad_file("%s: the file cannot be read (%s)", in->path, strerror(errno));
    }
    s->gzip = got == 2 && magic[0] == 0x1F && magic[1] == 0x8B;
    if (!s->gzip) return 0;
    s->packing = READER_GZIP;
    s->most = reader_times(in->bytes, RATIO);
    if (s->most < 0) s->most = INT64_MAX;
    return 0;
}

void reader_stop(reader_stream *s)
{
    if (s->inflating) inflateEnd(&s->z);
    free(s->buffer);
    memset(s, 0, sizeof *s);
}

/* uncompressed bytes ------------------------------------------------------------------------------------------ */

static int64_t plain_more(reader_stream *s, char *to, int64_t bytes)
{
    int64_t got = 0;
    while (got < bytes) {
        const int64_t there = s->filled - s->taken, want = bytes - got, n = there < want ? there : want;
        if (n) memcpy(to + got, s->buffer + s->taken, (size_t)n);
        s->taken += n;
        got += n;
        if (got == bytes) break;
        const int direct = bytes - got >= s->room; /* reads larger than the buffer bypass it */
        const int64_t step = bytes - got < STEP ? bytes - got : STEP;
        const int64_t came = direct ? get(s, to + got, step) : refill(s);
        if (came < 0) return came;
        if (!came) break;
        if (direct) got += came;
        if (!s->is_pipe) reader_watch(s->in, s->at, s->in->bytes);
    }
    return got;
}

/* compressed bytes ----------------------------------------------------------------------------------------------- */

static int64_t damaged(const reader_stream *s, const char *why)
{
    return -(int64_t)bad_file("%s: %s; the file is damaged, get it again", s->in->path, why);
}

static int64_t junk(const reader_stream *s)
{
    const int64_t at = s->at - (s->filled - s->taken);
    return -(int64_t)bad_file("%s: the gzip data end at byte %" PRId64 " of %" PRId64
                              ", and what follows is not gzip; get the file "
                              "again, or cut it there (head -c %" PRId64 ")",
                              s->in->path, at, s->end, at);
}

/* Opens the next gzip member, or the only deflate stream; at its first byte.  Returns 0, or minus the code. */
static int64_t open_member(reader_stream *s)
{
    if (s->packing == READER_GZIP && s->members && s->buffer[s->taken] != 0x1F) return junk(s);
    const int code = s->inflating ? inflateReset(&s->z)
                                  : inflateInit2(&s->z, s->packing == READER_GZIP ? MAX_WBITS + 16 : -MAX_WBITS);
    if (code != Z_OK) { return -(int64_t)out_of_memory("%s: no memory to decompress it", s->in->path); }
    s->inflating = s->open = 1;
    return 0;
}

/* Decompresses up to `bytes` bytes from the buffer, which is not empty.  Returns how many, or minus the code. */
static int64_t unpack(reader_stream *s, char *to, int64_t bytes)
{
    const unsigned step = (unsigned)(bytes < STEP ? bytes : STEP);
    s->z.next_in = s->buffer + s->taken;
    s->z.avail_in = (unsigned)(s->filled - s->taken);
    s->z.next_out = (unsigned char *)to;
    s->z.avail_out = step;
    const int code = inflate(&s->z, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) { return -(int64_t)out_of_memory("%s: no memory to decompress it", s->in->path); }
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
        if (s->members && !s->z.total_out) return junk(s);
        return damaged(s, s->z.msg ? s->z.msg : "it cannot be decompressed");
    }
    s->taken = s->filled - s->z.avail_in;
    if (code == Z_STREAM_END) {
        s->open = 0;
        s->members++;
    }
    return step - s->z.avail_out;
}

static int64_t packed_more(reader_stream *s, char *to, int64_t bytes)
{
    int64_t got = 0;
    while (got < bytes) {
        if (!s->open && s->members && s->packing == READER_DEFLATE) break;
        if (s->taken == s->filled) {
            const int64_t came = refill(s);
            if (came < 0) return came;
            if (!came && (s->open || !s->members)) {
                return -(int64_t)bad_file("%s: the %s data end in the middle; get the file again", s->in->path,
                                          s->packing == READER_GZIP ? "gzip" : "packed");
            }
            if (!came) break;
            reader_watch(s->in, s->at, s->in->bytes);
        }
        const int64_t opened = s->open ? 0 : open_member(s);
        if (opened < 0) return opened;
        const int64_t came = unpack(s, to + got, bytes - got);
        if (came < 0) return came;
        got += came;
    }
    return got;
}

int64_t reader_more(reader_stream *s, void *to, int64_t bytes)
{
    const int64_t got = s->packing == READER_PLAIN ? plain_more(s, to, bytes) : packed_more(s, to, bytes);
    if (s->counts && got > 0) {
        s->crc = crc32_z(s->crc, to, (z_size_t)got);
        s->given += got;
    }
    return got;
}
