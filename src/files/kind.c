/* kind.c - conversion of a file's elements to those of the library.
 *
 * Integers of 8 and 16 bits and booleans become f32, integers of 32 and 64 bits f64: all exact but integers of 64 bits
 * beyond 2^53, which are rounded to nearest. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/reader.h"

enum { CHUNK = 1 << 15 }; /* elements that are converted at a time */

file_kind reader_kind(char letter, int bytes, int big)
{
    file_kind kind = {letter, bytes, big && bytes > 1, bytes > 2 ? FS_F64 : FS_F32};
    if (letter == 'f') kind.dtype = bytes == 2 ? FS_F16 : bytes == 4 ? FS_F32 : FS_F64;
    return kind;
}

file_kind reader_kind_of(fs_dtype dtype) { return (file_kind){'f', (int)fsi_dtype_size(dtype), 0, dtype}; }

const char *reader_kind_name(const file_kind *kind, char *name, size_t bytes)
{
    const char *word = kind->letter == 'i' ? "int" : kind->letter == 'u' ? "uint" : "float";
    if (kind->letter == 'b') snprintf(name, bytes, "bool");
    else if (kind->dtype == FS_BF16) snprintf(name, bytes, "bfloat16");
    else snprintf(name, bytes, "%s%d%s", word, 8 * kind->bytes, kind->big ? ", big-endian" : "");
    return name;
}

int reader_is_native(const file_kind *kind) { return kind->letter == 'f' && kind->big != reader_is_little(); }

static inline uint64_t bits_at(const unsigned char *at, int bytes, int swap)
{
    uint16_t half;
    uint32_t word;
    uint64_t all;
    switch (bytes) {
    case 1: return *at;
    case 2: memcpy(&half, at, 2); return swap ? __builtin_bswap16(half) : half;
    case 4: memcpy(&word, at, 4); return swap ? __builtin_bswap32(word) : word;
    default: memcpy(&all, at, 8); return swap ? __builtin_bswap64(all) : all;
    }
}

/* `value` is computed from the bits of each element; element i is written after it was read, and no unread element lies
 * before it. */
#define EACH(bytes, type, value) \
    for (int64_t i = 0; i < count; i++) { \
        const uint64_t bits = bits_at(from + i * (bytes), bytes, swap); \
        const type x = (type)(value); \
        memcpy(to + i * (int64_t)sizeof x, &x, sizeof x); \
    } \
    break
void reader_convert(const file_kind *kind, const void *data, int64_t count, void *out)
{
    const unsigned char *from = data;
    unsigned char *to = out;
    const int swap = kind->big == reader_is_little();
    switch (kind->letter << 4 | kind->bytes) {
    case 'b' << 4 | 1: EACH(1, float, bits != 0);
    case 'u' << 4 | 1: EACH(1, float, bits);
    case 'u' << 4 | 2: EACH(2, float, bits);
    case 'u' << 4 | 4: EACH(4, double, bits);
    case 'u' << 4 | 8: EACH(8, double, bits);
    case 'i' << 4 | 1: EACH(1, float, (int8_t)bits);
    case 'i' << 4 | 2: EACH(2, float, (int16_t)bits);
    case 'i' << 4 | 4: EACH(4, double, (int32_t)bits);
    case 'i' << 4 | 8: EACH(8, double, (int64_t)bits);
    case 'f' << 4 | 2: EACH(2, uint16_t, bits);
    case 'f' << 4 | 4: EACH(4, uint32_t, bits);
    default: EACH(8, uint64_t, bits);
    }
}
#undef EACH

/* Elements in the file are no longer than those in memory: they are read to the end of their room and spread from
 * there. */
int reader_pread(int fd, int64_t offset, int64_t count, const file_kind *kind, void *to)
{
    const int64_t size = fsi_dtype_size(kind->dtype);
    char *at = (char *)to + count * (size - kind->bytes);
    for (int64_t left = count * kind->bytes; left > 0;) {
        const ssize_t got = pread(fd, at, (size_t)left, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got ? errno : -1;
        at += got, left -= got, offset += got;
    }
    if (!reader_is_native(kind)) reader_convert(kind, at - count * kind->bytes, count, to);
    return 0;
}

int64_t reader_values(reader_stream *stream, const file_kind *kind, int64_t count, int64_t kept, void *to)
{
    const int64_t size = fsi_dtype_size(kind->dtype);
    int64_t bytes = 0;
    unsigned char *chunk = malloc(CHUNK * 8);
    if (!chunk) { return -(int64_t)out_of_memory("%s: no memory for %d bytes", stream->in->path, CHUNK * 8); }
    for (int64_t i = 0; i < count; i += CHUNK) {
        const int64_t n = count - i < CHUNK ? count - i : CHUNK, got = reader_more(stream, chunk, n * kind->bytes);
        const int64_t keep = i + n < kept ? n : kept > i ? kept - i : 0;
        bytes = got < 0 ? got : bytes + got;
        if (got < n * kind->bytes) break;
        reader_convert(kind, chunk, keep, (char *)to + i * size);
    }
    free(chunk);
    return bytes;
}
