/* csv.c - tables of numbers as text: CSV, TSV and columns with spaces between them, with or without gzip.
 *
 * Lines that begin with # are comments.  The first line that is not one is a header where none of its fields is a
 * number; every other line is a row.  Its first ; , or tab (in this order; otherwise spaces) is what separates fields.
 * A field is a number, quoted or not; spaces around it do not count.  Blank lines may stand before the first row and
 * after the last.  Numbers become f64. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/formats/text.h"

enum { LONGEST = 1 << 26, ROWS_AT_FIRST = 64 };

typedef struct table {
    text t;
    const file_options *options;
    file_matrix *out;
    char separator;
    int64_t names, names_line; /* of the header; 0: there is none */
    int64_t rows, cols, first; /* first: the line of the first row */
    int64_t room;              /* rows that there is memory for */
    double *data;
} table;

/* Reports an error in the present line.  Before the first row of a file whose format was guessed, the message also
 * adds that it may not be CSV. */
static fs_result refuse(const table *c, const char *what)
{
    if (c->rows || c->options->format != FILE_GUESS) return bad_file("%s: %s", c->t.path, what);
    return bad_file("%s: this is not the beginning of an " READER_FORMATS
                    " file, and as CSV %s; for a raw file give --shape and --dtype",
                    c->t.path, what);
}

/* fields ----------------------------------------------------------------------------------------------------- */

static char separator_of(const char *line)
{
    static const char known[] = ";,\t";
    for (const char *k = known; *k; k++) {
        int quoted = 0;
        for (const char *p = line; *p; p++) {
            if (*p == '"') quoted = !quoted;
            if (*p == *k && !quoted) return *k;
        }
    }
    return ' ';
}

static char *skip_spaces(const table *c, char *at)
{
    while (*at == ' ' || (*at == '\t' && c->separator != '\t')) at++;
    return at;
}

/* Whether another field follows the one that ends at *at, which then moves to its start. */
static int next_field(const table *c, char **at, const char *end)
{
    if (*at == end) return 0;
    if (c->separator != ' ') ++*at;
    return 1;
}

/* The field that begins at *at, which moves to its end.  Returns whether it is a number. */
static int read_number(const table *c, char **at, const char *end, double *value)
{
    char *p = skip_spaces(c, *at);
    const int quoted = *p == '"';
    p = text_real(p + quoted, value);
    if (!p || (quoted && *p++ != '"')) return 0;
    char *after = skip_spaces(c, p);
    if (after != end && *after != c->separator && !(c->separator == ' ' && after > p)) return 0;
    *at = after;
    return 1;
}

/* The same for a field that may be anything. */
static void skip_field(const table *c, char **at, const char *end)
{
    int quoted = 0;
    char *p = skip_spaces(c, *at);
    for (; p < end && (quoted || *p != c->separator); p++)
        if (*p == '"') quoted = !quoted;
    *at = skip_spaces(c, p);
}

static fs_result not_a_number(const table *c, char *at, const char *end, int64_t column)
{
    char *first = skip_spaces(c, at), *last = at, shown[40], what[200];
    skip_field(c, &last, end);
    const int64_t length = last - first;
    file_printable(shown, sizeof shown, first, length < 0 ? 0 : (size_t)length);
    const int comma = c->separator == ';' && strchr(shown, ',');
    if (*shown)
        snprintf(what, sizeof what, "line %" PRId64 ", column %" PRId64 ": '%s' is not a number%s", c->t.line, column,
                 shown, comma ? " (a decimal comma is not read: write a point)" : "");
    else
        snprintf(what, sizeof what,
                 "line %" PRId64 ", column %" PRId64 ": the field is empty; fill it in, or leave "
                 "out the row or the column",
                 c->t.line, column);
    return refuse(c, what);
}

/* lines ------------------------------------------------------------------------------------------------------ */

/* The next line that is neither a comment nor blank.  Returns as text_line. */
static int next_line(table *c, char **at, char **end)
{
    int64_t blank = 0;
    int more;
    while ((more = text_line(&c->t, at, end)) == 1) {
        if (c->t.line == 1 && !strncmp(*at, "\xEF\xBB\xBF", 3)) *at += 3; /* the byte order mark of UTF-8 */
        if (*end > *at && (*end)[-1] == '\r') *--*end = 0;
        char *p = *at;
        while (*p == ' ' || *p == '\t') p++;
        if (*p == '#') continue;
        if (p != *end) break;
        if (!blank) blank = c->t.line;
    }
    if (more != 1 || !c->rows || !blank) return more;
    return -(int)bad_file("%s: line %" PRId64 " is blank, but rows follow it; remove it", c->t.path, blank);
}

/* Whether the first line is a header: its fields are counted, and those that are numbers.  Returns as text_line. */
static int read_header(table *c, char *at, const char *end)
{
    int64_t fields = 0, numbers = 0, other = 0;
    for (int more = 1; more; more = next_field(c, &at, end)) {
        double value;
        char *here = at;
        fields++;
        if (read_number(c, &at, end, &value)) numbers++;
        else {
            if (!other) other = fields;
            at = here;
            skip_field(c, &at, end);
        }
    }
    if (numbers == fields) return 0;
    c->names = fields;
    c->names_line = c->t.line;
    if (!numbers) return 1;
    char what[200];
    snprintf(what, sizeof what,
             "line %" PRId64 " has %" PRId64 " fields, of which %" PRId64 " are numbers and column "
             "%" PRId64 " is not; a row has numbers only, a header line none",
             c->t.line, fields, numbers, other);
    return -(int)refuse(c, what);
}

/* Room for one more row.  Returns 0, or FS_EFILE or FS_ENOMEM. */
static fs_result make_room(table *c)
{
    if (c->out->whole || c->rows < c->room) return 0;
    const int64_t rows = c->room ? 2 * c->room : ROWS_AT_FIRST;
    const int64_t bytes = reader_times(rows, c->cols * (int64_t)sizeof(double));
    void *data = bytes < 0 ? NULL : realloc(c->out->memory[0], (size_t)bytes);
    if (!data)
        return out_of_memory("%s: no memory for %" PRId64 " rows of %" PRId64 " numbers; allow more (ulimit -v), "
                             "or cut the matrix into several files",
                             c->t.path, rows, c->cols);
    c->out->memory[0] = c->data = data;
    c->room = rows;
    return 0;
}

static fs_result count_fields(table *c, char *at, const char *end)
{
    char what[200];
    for (int more = 1; more; more = next_field(c, &at, end)) {
        double value;
        c->cols++;
        if (!read_number(c, &at, end, &value)) return not_a_number(c, at, end, c->cols);
    }
    c->first = c->t.line;
    if (!c->names || c->names == c->cols || c->separator == ' ') return 0;
    snprintf(what, sizeof what, "line %" PRId64 " has %" PRId64 " names, but line %" PRId64 " has %" PRId64 " numbers",
             c->names_line, c->names, c->first, c->cols);
    return refuse(c, what);
}

static fs_result read_row(table *c, char *at, const char *end)
{
    int64_t column = 0;
    if (!c->rows) FSI_TRY(count_fields(c, at, end));
    FSI_TRY(make_room(c));
    double *to = c->out->whole ? NULL : c->data + c->rows * c->cols;
    for (int more = 1; more && to; more = next_field(c, &at, end)) {
        double value;
        column++;
        if (!read_number(c, &at, end, &value)) return not_a_number(c, at, end, column);
        if (column <= c->cols) *to++ = value;
    }
    if (to && column != c->cols)
        return bad_file("%s: line %" PRId64 " has %" PRId64 " numbers, but line %" PRId64 " has %" PRId64, c->t.path,
                        c->t.line, column, c->first, c->cols);
    c->rows++;
    return 0;
}

/* the file --------------------------------------------------------------------------------------------------- */

static void csv_describe(const table *c)
{
    const char *between = c->cols == 1           ? ""
                          : c->separator == ';'  ? ", semicolons"
                          : c->separator == ','  ? ", commas"
                          : c->separator == '\t' ? ", tabs"
                                                 : ", spaces";
    snprintf(c->out->stored, sizeof c->out->stored, "numbers%s%s", between, c->names ? ", header line" : "");
}

static fs_result read_all(table *c)
{
    char *at, *end;
    int more = next_line(c, &at, &end);
    if (more < 0) return reader_failure(more);
    if (more) {
        c->separator = separator_of(at);
        const int header = read_header(c, at, end);
        if (header < 0) return reader_failure(header);
        if (header && (more = next_line(c, &at, &end)) < 0) return reader_failure(more);
        if (header && more && c->separator == ' ') c->separator = separator_of(at); /* names may contain spaces */
    }
    for (; more; more = next_line(c, &at, &end)) {
        if (more < 0) return reader_failure(more);
        FSI_TRY(read_row(c, at, end));
    }
    if (!c->rows) return refuse(c, "it has no row of numbers");
    const reader_shape shape = {2, {c->rows, c->cols}};
    reader_keep_shape(&shape, c->out);
    csv_describe(c);
    c->out->dense = fs_row_major(c->data, c->rows, c->cols, FS_F64);
    return 0;
}

fs_result csv_read(const reader_source *in, const file_options *options, file_matrix *out)
{
    table c = {.options = options, .out = out};
    FSI_TRY(text_start(in, LONGEST, &c.t));
    out->gzip = c.t.stream.gzip;
    out->whole = options->locate == 2;
    const fs_result code = read_all(&c);
    text_stop(&c.t);
    return code;
}
