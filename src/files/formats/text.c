/* text.c - see text.h. */
#include "files/formats/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 1 << 16 };

fs_result text_start(const reader_source *in, int64_t longest, text *t)
{
    memset(t, 0, sizeof *t);
    t->path = in->path;
    t->room = FIRST;
    t->longest = longest;
    t->buffer = malloc(FIRST + 1);
    if (!t->buffer) return out_of_memory("%s: no memory for %d bytes", in->path, FIRST);
    const fs_result code = reader_start(in, &t->stream);
    if (code) free(t->buffer);
    return code;
}

void text_stop(text *t)
{
    reader_stop(&t->stream);
    free(t->buffer);
}

/* A buffer for a longer line.  Returns 0, or FS_EFILE or FS_ENOMEM. */
static fs_result grow(text *t)
{
    const int64_t room = 2 * t->room;
    if (room > t->longest)
        return bad_file("%s: line %" PRId64 " is longer than %" PRId64 " bytes", t->path, t->line + 1, t->longest);
    char *buffer = realloc(t->buffer, (size_t)room + 1);
    if (!buffer) return out_of_memory("%s: no memory for a line of %" PRId64 " bytes", t->path, room);
    t->buffer = buffer;
    t->room = room;
    return 0;
}

int text_line(text *t, char **line, char **end)
{
    char *newline;
    while (!(newline = memchr(t->buffer + t->at, '\n', (size_t)(t->filled - t->at))) && !t->ended) {
        const fs_result grown = t->at == 0 && t->filled == t->room ? grow(t) : FS_OK;
        if (grown) return -(int)grown;
        memmove(t->buffer, t->buffer + t->at, (size_t)(t->filled - t->at));
        t->filled -= t->at;
        t->at = 0;
        const int64_t got = reader_more(&t->stream, t->buffer + t->filled, t->room - t->filled);
        if (got < 0) return (int)got;
        t->ended = t->filled + got < t->room;
        t->filled += got;
    }
    if (t->at == t->filled) return 0;
    *line = t->buffer + t->at;
    *end = newline ? newline : t->buffer + t->filled;
    t->at = newline ? t->at + (*end - *line) + 1 : t->filled;
    **end = 0;
    t->line++;
    return 1;
}

/* An integer below 2^53 over a power of ten up to 10^22 is a quotient of two exact doubles, rounded once (Clinger
 * 1990); everything else is for strtod. */
char *text_real(char *p, double *value)
{
    static const double ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char *start = p;
    const int negative = *p == '-';
    uint64_t mantissa = 0;
    int digits = 0, point = 0, behind = 0;
    if (*p == ' ' || (*p >= '\t' && *p <= '\r')) return NULL; /* strtod would skip them */
    if (*p == '-' || *p == '+') p++;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) return NULL; /* strtod would read it */
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = 1;
            continue;
        }
        digits += digits || *p != '0';
        if (digits <= 19) mantissa = 10 * mantissa + (uint64_t)(*p - '0');
        behind += point && behind < 1000;
    }
    const int ends = *p != '.' && !(*p >= '0' && *p <= '9') && !((*p | 32) >= 'a' && (*p | 32) <= 'z');
    if (ends && digits <= 15 && behind <= 22 && p - start > point + (*start == '-' || *start == '+')) {
        *value = (negative ? -1.0 : 1.0) * (double)mantissa / ten[behind];
        return p;
    }
    char *end;
    errno = 0;
    *value = strtod(start, &end);
    if (end == start || (errno == ERANGE && fabs(*value) > 1)) return NULL;
    return end;
}
