/* mtx.c - Matrix Market files (math.nist.gov/MatrixMarket/formats.html), with or without gzip.
 *
 * A banner "%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric", comments, a
 * line of sizes, then a line for each entry: row, column (from 1), value; or, for array, the values column by column.
 * A symmetric file has the lower triangle, a skew-symmetric one what is below the diagonal.  Values become f64, pattern
 * entries 1; coordinates become CSR, arrays a column-major view. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/formats/sparse.h"
#include "files/formats/text.h"

enum { LONGEST = 1 << 16 }; /* bytes of a line */

typedef enum field { REAL, INTEGER, PATTERN, DOUBLE, COMPLEX } field; /* DOUBLE is read as REAL */
typedef enum symmetry { GENERAL, SYMMETRIC, SKEW, HERMITIAN } symmetry;

typedef struct banner {
    int is_array;
    field field;
    symmetry symmetry;
} banner;

/* lines ------------------------------------------------------------------------------------------------------ */

static char *skip_spaces(char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r') at++;
    return at;
}

/* The next line that is not blank, nor a comment if those may be here; *at is its first word.  Returns as text_line. */
static int next_words(text *t, int comments, char **at, char **end)
{
    int more;
    while ((more = text_line(t, at, end)) == 1) {
        if (comments && **at == '%') continue;
        *at = skip_spaces(*at);
        if (*at != *end) break;
    }
    return more;
}

static fs_result wrong(const text *t, const char *at, const char *wanted)
{
    char shown[32];
    const size_t left = strlen(at);
    return bad_file("%s: line %" PRId64 ": expected %s, found '%s'", t->path, t->line, wanted,
                    file_printable(shown, sizeof shown, at, left < 24 ? left : 24));
}

static int word_ends(const char *at) { return *at == 0 || *at == ' ' || *at == '\t' || *at == '\r'; }

/* An integer without sign; moves *at behind it and the spaces that follow. */
static fs_result read_whole(const text *t, char **at, const char *what, int64_t *number)
{
    char *p = *at;
    if (*p < '0' || *p > '9') return wrong(t, *at, what);
    for (*number = 0; *p >= '0' && *p <= '9'; p++) {
        if (*number > (INT64_MAX - (*p - '0')) / 10)
            return bad_file("%s: line %" PRId64 ": a number of more than 63 bits", t->path, t->line);
        *number = 10 * *number + (*p - '0');
    }
    if (!word_ends(p)) return wrong(t, *at, what);
    *at = skip_spaces(p);
    return 0;
}

static fs_result read_value(const text *t, const banner *b, char **at, double *value)
{
    if (b->field == PATTERN) {
        *value = 1;
        return 0;
    }
    if (b->field == REAL) {
        char *end = text_real(*at, value);
        if (!end || !word_ends(end)) return wrong(t, *at, "a number of 64 bits");
        *at = skip_spaces(end);
        return 0;
    }
    const int negative = **at == '-';
    int64_t number;
    if (**at == '-' || **at == '+') ++*at;
    FSI_TRY(read_whole(t, at, "an integer", &number));
    *value = negative ? -(double)number : (double)number;
    return 0;
}

/* the header ------------------------------------------------------------------------------------------------- */

static int same_word(const char *word, const char *known)
{
    for (; *word && *known; word++, known++)
        if ((*word >= 'A' && *word <= 'Z' ? *word - 'A' + 'a' : *word) != *known) return 0;
    return *word == *known;
}

/* The number of a word in a list, -1 if it is not in it. */
static int find_word(const char *word, const char *const *known)
{
    for (int i = 0; known[i]; i++)
        if (same_word(word, known[i])) return i;
    return -1;
}

static fs_result read_banner(text *t, banner *b, file_matrix *out)
{
    static const char *const formats[] = {"coordinate", "array", NULL};
    static const char *const fields[] = {"real", "integer", "pattern", "double", "complex", NULL};
    static const char *const symmetries[] = {"general", "symmetric", "skew-symmetric", "hermitian", NULL};
    char *at, *end, *words[5], shown[40];
    int count = 0;
    const int more = text_line(t, &at, &end);
    if (more < 0) return reader_failure(more);
    if (!more) return bad_file("%s: the file is empty", t->path);
    for (at = skip_spaces(at); *at && count < 5; at = skip_spaces(at)) {
        words[count++] = at;
        while (!word_ends(at)) at++;
        if (*at) *at++ = 0;
    }
    if (count < 5 || at != end || !same_word(words[0], "%%matrixmarket") || !same_word(words[1], "matrix"))
        return bad_file("%s: this is not a Matrix Market file: its first line is not '%%%%MatrixMarket matrix FORMAT "
                        "FIELD SYMMETRY'",
                        t->path);
    const int format = find_word(words[2], formats), kind = find_word(words[3], fields);
    const int symmetric = find_word(words[4], symmetries);
    const int bad = format < 0 ? 2 : kind < 0 ? 3 : symmetric < 0 ? 4 : 0;
    if (bad)
        return bad_file("%s: the banner is '%s'; coordinate and array, real, integer and pattern, general, symmetric "
                        "and skew-symmetric are read",
                        t->path, file_printable(shown, sizeof shown, words[bad], strlen(words[bad])));
    b->is_array = format;
    b->field = kind == DOUBLE ? REAL : (field)kind;
    b->symmetry = (symmetry)symmetric;
    if (b->field == PATTERN && (b->is_array || b->symmetry == SKEW))
        return bad_file("%s: '%s pattern %s' is not a Matrix Market type", t->path, formats[format],
                        symmetries[symmetric]);
    snprintf(out->stored, sizeof out->stored, "%s %s %s", formats[format], fields[b->field], symmetries[symmetric]);
    return 0;
}

/* Rows, columns and, in coordinate files, entries. */
static fs_result read_sizes(text *t, const banner *b, int64_t size[3], file_matrix *out)
{
    static const char *const names[] = {"the number of rows", "the number of columns", "the number of entries"};
    char *at, *end;
    const int more = next_words(t, 1, &at, &end);
    if (more < 0) return reader_failure(more);
    if (!more) return bad_file("%s: the file ends before the line with its sizes", t->path);
    for (int i = 0; i < (b->is_array ? 2 : 3); i++) FSI_TRY(read_whole(t, &at, names[i], &size[i]));
    if (at != end) return wrong(t, at, "the end of the line with the sizes");
    if (size[0] < 1 || size[1] < 1)
        return bad_file("%s: the header gives %" PRId64 " x %" PRId64 ": there is nothing to read", t->path, size[0],
                        size[1]);
    if (b->symmetry != GENERAL && size[0] != size[1])
        return bad_file("%s: the header gives %" PRId64 " x %" PRId64 " and symmetric, which only a square can be",
                        t->path, size[0], size[1]);
    const reader_shape shape = {2, {size[0], size[1]}};
    reader_keep_shape(&shape, out);
    return 0;
}

/* Complex numbers: the sizes are for the description. */
static fs_result read_complex(text *t, const banner *b, file_matrix *out)
{
    int64_t size[3];
    FSI_TRY(read_sizes(t, b, size, out));
    reader_cannot(t->stream.in, out,
                  "the banner is '%s': complex numbers are not read; write the real and the "
                  "imaginary part as matrices of their own",
                  b->field == COMPLEX ? "complex" : "hermitian");
    return reader_refused(out);
}

/* Fails unless the file can hold `count` items of at least `least` bytes each, its last newline aside. */
static fs_result can_hold(const text *t, const char *what, int64_t count, int64_t least)
{
    if (count <= (t->stream.most - 1) / least + 1) return 0;
    return bad_file(
        "%s: the header gives %" PRId64 " %s, but the file's %" PRId64 " bytes%s hold no more than %" PRId64, t->path,
        count, what, t->stream.in->bytes, t->stream.gzip ? " of gzip" : "", (t->stream.most - 1) / least + 1);
}

/* Fails unless only blank lines follow. */
static fs_result at_the_end(text *t, int64_t count, const char *what)
{
    char *at, *end;
    const int more = next_words(t, 0, &at, &end);
    if (more < 0) return reader_failure(more);
    if (!more) return 0;
    return bad_file("%s: line %" PRId64 ": the header gives %" PRId64 " %s, but more follow", t->path, t->line, count,
                    what);
}

/* arrays ----------------------------------------------------------------------------------------------------- */

static fs_result read_array(text *t, const banner *b, file_matrix *out)
{
    int64_t size[3];
    FSI_TRY(read_sizes(t, b, size, out));
    const int64_t rows = size[0], cols = size[1], all = reader_times(rows, cols);
    if (all < 0)
        return bad_file("%s: the header gives %" PRId64 " x %" PRId64 " values, more than can be counted", t->path,
                        rows, cols);
    const int64_t count = b->symmetry == GENERAL ? all : b->symmetry == SKEW ? (all - rows) / 2 : (all + rows) / 2;
    FSI_TRY(can_hold(t, "values", count, 2));
    if (out->whole) {
        out->dense = fs_col_major(NULL, rows, cols, FS_F64);
        return 0;
    }
    double *data = reader_array(t->stream.in, out, 0, all, sizeof *data);
    if (!data) return FS_ENOMEM;
    char *at = NULL, *end = NULL;
    int64_t done = 0;
    for (int64_t j = 0; j < cols; j++) {
        const int64_t first = b->symmetry == GENERAL ? 0 : b->symmetry == SKEW ? j + 1 : j;
        if (b->symmetry == SKEW) data[j * rows + j] = 0;
        for (int64_t i = first; i < rows; i++, done++) {
            const int more = at == end ? next_words(t, 0, &at, &end) : 1;
            double value;
            if (more < 0) return reader_failure(more);
            if (!more)
                return bad_file("%s: the header gives %" PRId64 " values, but the file ends after %" PRId64, t->path,
                                count, done);
            FSI_TRY(read_value(t, b, &at, &value));
            data[j * rows + i] = value;
            if (b->symmetry != GENERAL) data[i * rows + j] = b->symmetry == SKEW && i != j ? -value : value;
        }
    }
    if (at != end) return wrong(t, at, "the end of the values");
    FSI_TRY(at_the_end(t, count, "values"));
    out->dense = fs_col_major(data, rows, cols, FS_F64);
    return 0;
}

/* coordinates ------------------------------------------------------------------------------------------------ */

static fs_result read_entries(text *t, const banner *b, int64_t rows, int64_t cols, sparse_entries *e)
{
    for (int64_t i = 0; i < e->count; i++) {
        char *at, *end;
        int64_t row, col;
        const int more = next_words(t, 0, &at, &end);
        if (more < 0) return reader_failure(more);
        if (!more)
            return bad_file("%s: the header gives %" PRId64 " entries, but the file ends after %" PRId64, t->path,
                            e->count, i);
        FSI_TRY(read_whole(t, &at, "a row", &row));
        FSI_TRY(read_whole(t, &at, "a column", &col));
        FSI_TRY(read_value(t, b, &at, &e->value[i]));
        if (at != end) return wrong(t, at, "the end of the entry");
        if (row < 1 || row > rows || col < 1 || col > cols)
            return bad_file("%s: line %" PRId64 ": the entry (%" PRId64 ", %" PRId64 ") is outside the %" PRId64
                            " x %" PRId64 " matrix",
                            t->path, t->line, row, col, rows, cols);
        if (b->symmetry == SKEW && row == col)
            return bad_file("%s: line %" PRId64 ": the entry (%" PRId64 ", %" PRId64 ") of a skew-symmetric matrix is "
                            "on the diagonal",
                            t->path, t->line, row, col);
        e->row[i] = row - 1;
        e->col[i] = col - 1;
    }
    return at_the_end(t, e->count, "entries");
}

static fs_result read_coordinates(text *t, const banner *b, file_matrix *out)
{
    int64_t size[3];
    FSI_TRY(read_sizes(t, b, size, out));
    const int64_t rows = size[0], cols = size[1], count = size[2];
    const reader_source *in = t->stream.in;
    FSI_TRY(can_hold(t, "entries", count, b->field == PATTERN ? 4 : 6));
    FSI_TRY(sparse_check_rows(in, rows, count));
    if (out->whole) {
        sparse_located(rows, cols, out);
        return 0;
    }
    sparse_entries e;
    const int mirror = b->symmetry == GENERAL ? 0 : b->symmetry == SKEW ? -1 : 1;
    fs_result code = sparse_entries_allocate(in, count, &e);
    if (!code) code = read_entries(t, b, rows, cols, &e);
    if (!code) code = sparse_csr(in, rows, cols, mirror, &e, out);
    sparse_entries_free(&e);
    return code;
}

fs_result mtx_read(const reader_source *in, const file_options *options, file_matrix *out)
{
    text t;
    banner b;
    FSI_TRY(text_start(in, LONGEST, &t));
    out->gzip = t.stream.gzip;
    out->whole = options->locate == 2;
    fs_result code = read_banner(&t, &b, out);
    if (!code && (b.field == COMPLEX || b.symmetry == HERMITIAN)) code = read_complex(&t, &b, out);
    else if (!code) code = b.is_array ? read_array(&t, &b, out) : read_coordinates(&t, &b, out);
    text_stop(&t);
    return code;
}
