/* record.c - the file of results: read back, so that a run continues where another ended; written a line at a time. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "randnla.h"

/* reading ---------------------------------------------------------------------------------------------------- */

/* A line is a flat JSON object: strings without escapes, numbers, null, and lists of those.  Scanners return where the
 * value ends, NULL where there is none. */
static const char *scan_string(const char *p)
{
    if (*p++ != '"') return NULL;
    while (*p && *p != '"' && *p != '\\' && (unsigned char)*p >= ' ') p++;
    return *p == '"' ? p + 1 : NULL;
}
static const char *scan_scalar(const char *p)
{
    if (*p == '"') return scan_string(p);
    if (!strncmp(p, "null", 4)) return p + 4;
    char *end;
    const double value = strtod(p, &end);
    return end != p && isfinite(value) ? end : NULL;
}
static const char *scan_value(const char *p)
{
    if (*p != '[') return scan_scalar(p);
    do {
        p = scan_scalar(p + (p[1] == ' ' ? 2 : 1));
        if (!p) return NULL;
    } while (*p == ',');
    return *p == ']' ? p + 1 : NULL;
}

/* Whether a line is such an object; *cell and *seeds become where the values of those names are, or NULL. */
static int scan_line(const char *p, const char **cell, const char **seeds)
{
    *cell = *seeds = NULL;
    if (*p++ != '{') return 0;
    for (;;) {
        const char *name = p;
        p = scan_string(p);
        if (!p || p[0] != ':' || p[1] != ' ') return 0;
        p += 2;
        if (!strncmp(name, "\"cell\"", 6) && *p == '"') *cell = p + 1;
        if (!strncmp(name, "\"seeds\"", 7) && *p == '[') *seeds = p + 1;
        p = scan_value(p);
        if (!p) return 0;
        if (*p == '}') return p[1] == 0 && *cell;
        if (p[0] != ',' || p[1] != ' ') return 0;
        p += 2;
    }
}

static int remember(nla_record *r, const char *cell, int length, int seed)
{
    if (r->count == r->room) {
        const int64_t room = r->room ? 2 * r->room : 1024;
        char **more = realloc(r->done, sizeof *more * (size_t)room);
        if (!more) return 1;
        r->done = more, r->room = room;
    }
    const size_t bytes = (size_t)length + 16;
    char *name = malloc(bytes);
    if (!name) return 1;
    if (seed < 0) snprintf(name, bytes, "%.*s", length, cell);
    else snprintf(name, bytes, "%.*s#%d", length, cell, seed);
    r->done[r->count++] = name;
    return 0;
}

static int remember_line(nla_record *r, const char *cell, const char *seeds)
{
    const int length = (int)strcspn(cell, "\"");
    if (!seeds) return remember(r, cell, length, -1);
    for (char *end; *seeds != ']'; seeds = *end == ',' ? end + 1 : end)
        if (remember(r, cell, length, (int)strtol(seeds, &end, 10))) return 1;
    return 0;
}

static int ascending(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Reads all lines; *whole becomes the length of those that are finished. */
static int read_lines(nla_record *r, FILE *f, const char *path, const char *command, long *whole)
{
    char *line = NULL;
    size_t room = 0;
    int number = 0, bad = 0;
    *whole = 0;
    for (ssize_t length; !bad && (length = getline(&line, &room, f)) > 0;) {
        const char *cell, *seeds;
        number++;
        if (line[length - 1] != '\n') {
            fprintf(stderr, "fsbench: %s: line %d was not finished; it is measured again\n", path, number);
            break;
        }
        line[length - 1] = 0;
        *whole += length;
        if (!scan_line(line, &cell, &seeds)) {
            fprintf(stderr, "fsbench: %s: line %d is not a line of 'fsbench %s'; take it away and start again\n", path,
                    number, command);
            bad = 1;
        } else if (remember_line(r, cell, seeds)) {
            fprintf(stderr, "fsbench: no memory for the %d lines of %s\n", number, path);
            bad = 1;
        }
    }
    free(line);
    return bad;
}

int nla_record_open(nla_record *r, const char *path, const char *command)
{
    memset(r, 0, sizeof *r);
    if (!path) {
        r->file = stdout;
        return 0;
    }
    long whole = 0;
    FILE *before = fopen(path, "r");
    if (!before && errno != ENOENT) {
        fprintf(stderr, "fsbench: %s cannot be read: %s\n", path, strerror(errno));
        return 1;
    }
    if (before) {
        const int bad = read_lines(r, before, path, command, &whole);
        fclose(before);
        if (bad) return 1;
    }
    r->file = fopen(path, "a");
    if (!r->file || ftruncate(fileno(r->file), whole)) {
        fprintf(stderr, "fsbench: %s cannot be written: %s\n", path, strerror(errno));
        return 1;
    }
    if (r->count) qsort(r->done, (size_t)r->count, sizeof *r->done, ascending);
    return 0;
}

int nla_record_close(nla_record *r)
{
    int bad = 0;
    for (int64_t i = 0; i < r->count; i++) free(r->done[i]);
    free(r->done);
    if (r->file) bad = r->file == stdout ? fflush(stdout) : fclose(r->file);
    if (bad) fprintf(stderr, "fsbench: the record could not be written to its end: %s\n", strerror(errno));
    return bad != 0;
}

int nla_record_has(const nla_record *r, const char *cell, int seed)
{
    char name[512];
    const char *key = name;
    if (seed < 0) snprintf(name, sizeof name, "%s", cell);
    else snprintf(name, sizeof name, "%s#%d", cell, seed);
    return r->count && bsearch(&key, r->done, (size_t)r->count, sizeof *r->done, ascending);
}

/* writing ---------------------------------------------------------------------------------------------------- */

static void add(nla_line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(nla_line *l, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int more = vsnprintf(l->text + l->length, sizeof l->text - l->length, format, arguments);
    va_end(arguments);
    if (more < 0 || (size_t)more >= sizeof l->text - l->length) l->full = 1;
    else l->length += (size_t)more;
}
static void add_number(nla_line *l, double value)
{
    if (isfinite(value)) add(l, "%.6g", value);
    else add(l, "null");
}

void nla_line_start(nla_line *l, const char *cell)
{
    l->length = 0, l->full = 0;
    add(l, "{\"cell\": \"%s\"", cell);
}
void nla_line_word(nla_line *l, const char *name, const char *value)
{
    char clean[256];
    snprintf(clean, sizeof clean, "%s", value);
    for (char *c = clean; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = '_';
    add(l, ", \"%s\": \"%s\"", name, clean);
}
void nla_line_whole(nla_line *l, const char *name, int64_t value) { add(l, ", \"%s\": %" PRId64, name, value); }
void nla_line_number(nla_line *l, const char *name, double value)
{
    add(l, ", \"%s\": ", name);
    add_number(l, value);
}
void nla_line_numbers(nla_line *l, const char *name, const double *values, int count)
{
    add(l, ", \"%s\": [", name);
    for (int i = 0; i < count; i++) {
        if (i) add(l, ", ");
        add_number(l, values[i]);
    }
    add(l, "]");
}

/* One call for the whole line, so that an interruption leaves at most one unfinished line. */
int nla_record_write(nla_record *r, nla_line *l)
{
    add(l, "}\n");
    if (l->full) {
        fprintf(stderr, "fsbench: a line is longer than %zu bytes\n", sizeof l->text);
        return 1;
    }
    if (fwrite(l->text, 1, l->length, r->file) == l->length && !fflush(r->file)) return 0;
    fprintf(stderr, "fsbench: the record cannot be written: %s\n", strerror(errno));
    return 1;
}
