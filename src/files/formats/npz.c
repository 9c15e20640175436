/* npz.c - archives of npy arrays (numpy.savez, savez_compressed), and SciPy's sparse matrices in them
 * (scipy.sparse.save_npz).
 *
 * An array NAME is the member NAME.npy.  A sparse matrix is the arrays format ('csr', 'csc', 'coo'), shape, data, and
 * indices and indptr, or row and col.  Every member that is used is read to its end and its CRC-32 compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/formats/npy.h"
#include "files/formats/sparse.h"
#include "files/formats/zip.h"

enum { CHUNK = 4096, NAME = 96 };

/* A member that is open as an array. */
typedef struct member {
    reader_source in; /* the file, by the name "FILE: MEMBER" */
    char path[512];
    const zip_member *zip;
    reader_stream stream;
    npy_array a;
} member;

static const char *shown(char name[NAME], const char *text, size_t length)
{
    return file_printable(name, NAME, text, length);
}

static int is_array(const zip_member *m)
{
    const size_t length = strlen(m->name);
    return length > 4 && !strcmp(m->name + length - 4, ".npy");
}

static fs_result member_open(const reader_source *in, const zip_member *zip, member *m)
{
    char name[NAME];
    m->in = *in;
    m->zip = zip;
    snprintf(m->path, sizeof m->path, "%.400s: %s", in->path, shown(name, zip->name, strlen(zip->name)));
    m->in.path = m->path;
    FSI_TRY(zip_start(&m->in, zip, &m->stream));
    const fs_result code = npy_header(&m->stream, &m->a);
    if (code) reader_stop(&m->stream);
    return code;
}

static int64_t elements(const member *m) { return m->zip->bytes - m->a.bytes; }

/* dense arrays ----------------------------------------------------------------------------------------------- */

static fs_result read_matrix(member *m, file_matrix *out)
{
    const npy_array *a = &m->a;
    int64_t rows, cols;
    if (!npy_is_matrix(&m->in, a, elements(m), out)) return reader_refused(out);
    reader_rows_cols(&a->shape, &rows, &cols);
    void *data = NULL;
    if (!out->whole) {
        data = reader_array(&m->in, out, 0, rows * cols, fsi_dtype_size(a->kind.dtype));
        if (!data) return FS_ENOMEM;
        const int64_t got = reader_values(&m->stream, &a->kind, rows * cols, rows * cols, data);
        if (got < 0) return reader_failure(got);
        FSI_TRY(zip_finish(m->zip, &m->stream));
    }
    const fs_dtype dtype = a->kind.dtype;
    out->dense = a->by_columns ? fs_col_major(data, rows, cols, dtype) : fs_row_major(data, rows, cols, dtype);
    return 0;
}

static fs_result open_matrix(const reader_source *in, const zip_member *zip, file_matrix *out)
{
    member m;
    FSI_TRY(member_open(in, zip, &m));
    const fs_result code = read_matrix(&m, out);
    reader_stop(&m.stream);
    return code;
}

/* which array ------------------------------------------------------------------------------------------------ */

/* The array of this name, or the only one; NULL after a message that lists the names. */
static const zip_member *choose(const reader_source *in, const zip_archive *zip, const char *wanted)
{
    char name[NAME], names[400] = "";
    const zip_member *only = NULL;
    int64_t count = 0;
    size_t at = 0;
    for (int64_t i = 0; i < zip->count; i++) {
        const zip_member *m = &zip->members[i];
        const size_t length = strlen(m->name) - 4;
        if (!is_array(m)) continue;
        if (wanted && strlen(wanted) == length && !memcmp(m->name, wanted, length)) return m;
        only = m;
        if (count++ && at >= sizeof names - NAME - 8) continue;
        at += (size_t)snprintf(names + at, sizeof names - at, "%s'%s'", at ? ", " : "", shown(name, m->name, length));
        if (at >= sizeof names - NAME - 8) at += (size_t)snprintf(names + at, sizeof names - at, ", ...");
    }
    if (!wanted && count == 1) return only;
    if (!count) bad_file("%s: this is a zip archive without arrays (members whose names end in .npy)", in->path);
    else if (wanted)
        bad_file("%s: there is no array '%s'; the archive holds %" PRId64 ": %s", in->path,
                 shown(name, wanted, strlen(wanted)), count, names);
    else bad_file("%s: the archive holds %" PRId64 " arrays; choose one with --tensor: %s", in->path, count, names);
    return NULL;
}

static int64_t count_arrays(const zip_archive *zip)
{
    int64_t count = 0;
    for (int64_t i = 0; i < zip->count; i++) count += is_array(&zip->members[i]);
    return count;
}

/* Lists every array, after the headers of all have been read. */
static fs_result list(const reader_source *in, const zip_archive *zip, const file_options *options)
{
    for (int64_t i = 0; i < 2 * zip->count; i++) {
        const zip_member *one = &zip->members[i % zip->count];
        member m;
        if (!is_array(one)) continue;
        FSI_TRY(member_open(in, one, &m));
        reader_stop(&m.stream);
        if (i < zip->count) continue;
        file_tensor seen = {FILE_NPZ, one->name, m.a.descr, m.a.shape.dimensions, {0}};
        memcpy(seen.shape, m.a.shape.size, sizeof seen.shape);
        char *end = one->name + strlen(one->name) - 4;
        *end = 0; /* the name without .npy */
        options->list(options->user, &seen);
        *end = '.';
    }
    return 0;
}

/* sparse matrices -------------------------------------------------------------------------------------------- */

typedef struct sparse_parts {
    const reader_source *in;
    const zip_archive *zip;
    char format[8];
    int64_t rows, cols, nnz;
    sparse_entries e;
} sparse_parts;

static int is_sparse(const zip_archive *zip)
{
    return zip_find(zip, "format.npy") && zip_find(zip, "shape.npy") && zip_find(zip, "data.npy");
}

/* Opens one of the arrays, which must have one dimension of `count` numbers (-1: any), integers where `whole`. */
static fs_result part_open(const sparse_parts *p, const char *name, int64_t count, int whole, member *m)
{
    const zip_member *zip = zip_find(p->zip, name);
    int64_t need;
    if (!zip) return bad_file("%s: a sparse matrix in the format '%s' needs '%s'", p->in->path, p->format, name);
    FSI_TRY(member_open(p->in, zip, m));
    const npy_array *a = &m->a;
    fs_result code = a->element ? reader_fits(&m->in, &a->shape, a->stored, a->element, elements(m), &need) : 0;
    if (!code && *a->why) code = bad_file("%s: %s", m->in.path, a->why);
    if (!code && whole && a->kind.letter != 'i' && a->kind.letter != 'u')
        code = bad_file("%s: it holds %s; numbers of rows and columns must be integers", m->in.path, a->stored);
    if (!code && a->shape.dimensions != 1)
        code = bad_file("%s: it must have one dimension, but has %d", m->in.path, a->shape.dimensions);
    if (!code && count >= 0 && a->shape.size[0] != count)
        code = bad_file("%s: it must have %" PRId64 " elements, but has %" PRId64, m->in.path, count, a->shape.size[0]);
    if (code) reader_stop(&m->stream);
    return code;
}

/* All elements as integers; one that int64_t does not hold becomes negative. */
static fs_result read_whole(member *m, int64_t count, int64_t *to)
{
    const file_kind *k = &m->a.kind;
    unsigned char chunk[CHUNK * 8];
    for (int64_t i = 0; i < count; i += CHUNK) {
        const int64_t n = count - i < CHUNK ? count - i : CHUNK, got = reader_more(&m->stream, chunk, n * k->bytes);
        if (got < 0) return reader_failure(got);
        if (got < n * k->bytes) break; /* zip_finish has the message */
        for (int64_t j = 0; j < n; j++) {
            const unsigned char *at = chunk + j * k->bytes;
            const uint64_t bits = k->big ? reader_big(at, k->bytes) : reader_little(at, k->bytes);
            const int shift = 64 - 8 * k->bytes;
            to[i + j] = k->letter == 'i' ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
        }
    }
    return zip_finish(m->zip, &m->stream);
}

static fs_result read_real(member *m, int64_t count, double *to)
{
    const file_kind *k = &m->a.kind;
    double chunk[CHUNK];
    for (int64_t i = 0; i < count; i += CHUNK) {
        const int64_t n = count - i < CHUNK ? count - i : CHUNK, got = reader_values(&m->stream, k, n, n, chunk);
        if (got < 0) return reader_failure(got);
        if (got < n * k->bytes) break;
        for (int64_t j = 0; j < n; j++) to[i + j] = fsi_load(chunk, k->dtype, j);
    }
    return zip_finish(m->zip, &m->stream);
}

static fs_result read_numbers(const sparse_parts *p, const char *name, int64_t count, int64_t *to)
{
    member m;
    FSI_TRY(part_open(p, name, count, 1, &m));
    const fs_result code = read_whole(&m, count, to);
    reader_stop(&m.stream);
    return code;
}

/* 'csr' and so on: a text of up to 7 bytes or characters. */
static fs_result read_format(sparse_parts *p)
{
    unsigned char bytes[32] = {0};
    member m;
    FSI_TRY(member_open(p->in, zip_find(p->zip, "format.npy"), &m));
    const int64_t width = strchr(m.a.descr, 'U') ? 4 : 1, room = (int64_t)sizeof p->format - 1;
    const int64_t got = reader_more(&m.stream, bytes, width * room);
    for (int64_t i = 0; i < room && i * width < got; i++) p->format[i] = (char)bytes[i * width];
    fs_result code = got < 0 ? reader_failure(got) : FS_OK;
    if (!code && !strstr(m.a.stored, "text '"))
        code = bad_file("%s: it holds %s; it must be the name of a format, like 'csr'", m.in.path, m.a.stored);
    if (!code) code = zip_finish(m.zip, &m.stream);
    reader_stop(&m.stream);
    return code;
}

/* Format, shape and how many entries there are. */
static fs_result read_shape(sparse_parts *p, file_matrix *out)
{
    int64_t size[2];
    char name[NAME];
    member data;
    FSI_TRY(read_format(p));
    FSI_TRY(read_numbers(p, "shape.npy", 2, size));
    p->rows = size[0];
    p->cols = size[1];
    const reader_shape shape = {2, {size[0], size[1]}};
    reader_keep_shape(&shape, out);
    shown(name, p->format, strlen(p->format));
    FSI_TRY(part_open(p, "data.npy", -1, 0, &data));
    reader_stop(&data.stream);
    snprintf(out->stored, sizeof out->stored, "%.28s, %.16s", name, data.a.stored);
    p->nnz = data.a.shape.size[0];
    if (strcmp(p->format, "csr") && strcmp(p->format, "csc") && strcmp(p->format, "coo")) {
        reader_cannot(p->in, out, "a sparse matrix in the format '%s' is not read; save A.tocsr()", name);
        return reader_refused(out);
    }
    if (!reader_is_matrix(p->in, &shape, out)) return reader_refused(out);
    return p->format[2] == 'r' ? 0 : sparse_check_rows(p->in, p->rows, p->nnz);
}

/* The number of the line of each entry, from where lines begin. */
static fs_result spread(const sparse_parts *p, int64_t lines, const int64_t *begin, int64_t *to)
{
    if (begin[0] != 0 || begin[lines] != p->nnz)
        return bad_file("%s: indptr goes from %" PRId64 " to %" PRId64 ", but there are %" PRId64 " entries; save the "
                        "matrix after A.prune()",
                        p->in->path, begin[0], begin[lines], p->nnz);
    for (int64_t i = 0; i < lines; i++) {
        if (begin[i + 1] < begin[i] || begin[i + 1] > p->nnz)
            return bad_file("%s: indptr goes from %" PRId64 " to %" PRId64 " at %" PRId64 "; it must not fall, nor "
                            "exceed %" PRId64,
                            p->in->path, begin[i], begin[i + 1], i, p->nnz);
        for (int64_t j = begin[i]; j < begin[i + 1]; j++) to[j] = i;
    }
    return 0;
}

/* Compressed lines: rows of csr, columns of csc. */
static fs_result read_compressed(sparse_parts *p, int64_t lines, int64_t *line, int64_t *other)
{
    file_matrix held = {0};
    member m;
    FSI_TRY(part_open(p, "indptr.npy", -1, 1, &m)); /* before memory is allocated */
    const int64_t there = m.a.shape.size[0];
    reader_stop(&m.stream);
    if (there - 1 != lines)
        return bad_file("%s: indptr has %" PRId64 " numbers, but a matrix of %" PRId64 " x %" PRId64 " in the format "
                        "'%s' needs %" PRId64,
                        p->in->path, there, p->rows, p->cols, p->format, lines + 1);
    int64_t *begin = reader_array(p->in, &held, 0, there, sizeof *begin);
    fs_result code = begin ? read_numbers(p, "indptr.npy", there, begin) : FS_ENOMEM;
    if (!code) code = spread(p, lines, begin, line);
    if (!code) code = read_numbers(p, "indices.npy", p->nnz, other);
    file_close(&held);
    return code;
}

static fs_result check_inside(const sparse_parts *p)
{
    for (int64_t i = 0; i < p->nnz; i++)
        if (p->e.row[i] < 0 || p->e.row[i] >= p->rows || p->e.col[i] < 0 || p->e.col[i] >= p->cols)
            return bad_file("%s: entry %" PRId64 " is at (%" PRId64 ", %" PRId64 "), outside the %" PRId64 " x %" PRId64
                            " matrix",
                            p->in->path, i, p->e.row[i], p->e.col[i], p->rows, p->cols);
    return 0;
}

static fs_result read_all(sparse_parts *p)
{
    member data;
    if (!strcmp(p->format, "csr")) FSI_TRY(read_compressed(p, p->rows, p->e.row, p->e.col));
    else if (!strcmp(p->format, "csc")) FSI_TRY(read_compressed(p, p->cols, p->e.col, p->e.row));
    else {
        FSI_TRY(read_numbers(p, "row.npy", p->nnz, p->e.row));
        FSI_TRY(read_numbers(p, "col.npy", p->nnz, p->e.col));
    }
    FSI_TRY(check_inside(p));
    FSI_TRY(part_open(p, "data.npy", p->nnz, 0, &data));
    const fs_result code = read_real(&data, p->nnz, p->e.value);
    reader_stop(&data.stream);
    return code;
}

static fs_result open_sparse(const reader_source *in, const zip_archive *zip, file_matrix *out)
{
    sparse_parts p = {.in = in, .zip = zip};
    FSI_TRY(read_shape(&p, out));
    if (*out->why) return 0;
    if (out->whole) {
        sparse_located(p.rows, p.cols, out);
        return 0;
    }
    fs_result code = sparse_entries_allocate(in, p.nnz, &p.e);
    if (!code) code = read_all(&p);
    if (!code) code = sparse_csr(in, p.rows, p.cols, 0, &p.e, out);
    sparse_entries_free(&p.e);
    return code;
}

/* the archive ------------------------------------------------------------------------------------------------ */

static fs_result read_archive(const reader_source *in, const zip_archive *zip, const file_options *options,
                              file_matrix *out)
{
    const int64_t arrays = count_arrays(zip);
    out->whole = options->locate == 2;
    if (!options->tensor && is_sparse(zip)) return open_sparse(in, zip, out);
    if (!options->tensor && options->list) FSI_TRY(list(in, zip, options));
    if (!options->tensor && options->describe && arrays > 1) {
        (void)reader_cannot(in, out, "the archive holds %" PRId64 " arrays", arrays);
        return FS_OK;
    }
    const zip_member *chosen = choose(in, zip, options->tensor);
    return chosen ? open_matrix(in, chosen, out) : FS_EFILE;
}

fs_result npz_read(const reader_source *in, const file_options *options, file_matrix *out)
{
    zip_archive zip;
    fs_result code = zip_open(in, &zip);
    if (!code) code = read_archive(in, &zip, options, out);
    zip_close(&zip);
    return code;
}
