/* npz.c - archives of arrays and SciPy's sparse matrices: what they write is read; inconsistent files are refused.
 *
 * Archives are made here member by member, stored or deflated, so that every field can be wrong.  The linker sends the
 * readers' malloc and calloc here, so that memory can run out at any moment. */
#include "tests/support/files.h"

#include <zlib.h>

#include "base/dtype.h"

#include "tests/support/failing_malloc.h"

/* archives --------------------------------------------------------------------------------------------------- */

enum { MEMBERS = 8 };
typedef struct archive {
    bytes file;
    struct {
        char name[32];
        uint32_t crc;
        size_t packed, count, offset;
        int method, flags;
    } member[MEMBERS];
    int count;
    int zip64;  /* local headers as numpy.savez writes them */
    int method; /* 0 stored, 8 deflated */
    int flags;
    size_t directory;
} archive;

static void add(archive *z, const char *name, const bytes *content)
{
    static unsigned char packed[1 << 16];
    const int i = z->count++;
    size_t count = content->count;
    memcpy(packed, content->at, count);
    if (z->method) {
        z_stream s = {.next_in = (unsigned char *)content->at,
                      .avail_in = (unsigned)count,
                      .next_out = packed,
                      .avail_out = sizeof packed};
        assert_int_equal(deflateInit2(&s, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
        count = s.total_out;
        deflateEnd(&s);
    }
    const uint32_t crc = (uint32_t)crc32(0, content->at, (unsigned)content->count);
    snprintf(z->member[i].name, sizeof z->member[i].name, "%s", name);
    z->member[i].crc = crc, z->member[i].packed = count, z->member[i].count = content->count;
    z->member[i].offset = z->file.count, z->member[i].method = z->method, z->member[i].flags = z->flags;
    put(&z->file, "PK\3\4", 4);
    put_little(&z->file, 45, 2), put_little(&z->file, (uint64_t)z->flags, 2);
    put_little(&z->file, (uint64_t)z->method, 2);
    put_little(&z->file, 0, 4), put_little(&z->file, z->flags & 8 ? 0 : crc, 4);
    put_little(&z->file, z->zip64 ? 0xFFFFFFFF : z->flags & 8 ? 0 : count, 4);
    put_little(&z->file, z->zip64 ? 0xFFFFFFFF : z->flags & 8 ? 0 : content->count, 4);
    put_little(&z->file, strlen(name), 2), put_little(&z->file, z->zip64 ? 20 : 0, 2);
    put_text(&z->file, "%s", name);
    if (z->zip64)
        put_little(&z->file, 1, 2), put_little(&z->file, 16, 2), put_little(&z->file, content->count, 8),
            put_little(&z->file, count, 8);
    put(&z->file, packed, count);
    if (z->flags & 8) put(&z->file, "PK\7\10", 4), put_little(&z->file, crc, 4), put_little(&z->file, 0, 8);
}

/* Directory and end record; wide: the directory's numbers are those of zip64, and so is the end record. */
static void finish(archive *z, int wide)
{
    z->directory = z->file.count;
    for (int i = 0; i < z->count; i++) {
        put(&z->file, "PK\1\2", 4);
        put_little(&z->file, 45 | 45 << 16, 4), put_little(&z->file, (uint64_t)z->member[i].flags, 2);
        put_little(&z->file, (uint64_t)z->member[i].method, 2), put_little(&z->file, 0, 4);
        put_little(&z->file, z->member[i].crc, 4);
        put_little(&z->file, wide ? 0xFFFFFFFF : z->member[i].packed, 4);
        put_little(&z->file, wide ? 0xFFFFFFFF : z->member[i].count, 4);
        put_little(&z->file, strlen(z->member[i].name), 2), put_little(&z->file, wide ? 34 : 0, 2);
        put_little(&z->file, 0, 8), put_little(&z->file, 0, 2);
        put_little(&z->file, wide ? 0xFFFFFFFF : z->member[i].offset, 4);
        put_text(&z->file, "%s", z->member[i].name);
        if (wide) {
            put_little(&z->file, 0x7075, 2), put_little(&z->file, 2, 2), put_little(&z->file, 0, 2); /* another field */
            put_little(&z->file, 1, 2), put_little(&z->file, 24, 2), put_little(&z->file, z->member[i].count, 8);
            put_little(&z->file, z->member[i].packed, 8), put_little(&z->file, z->member[i].offset, 8);
        }
    }
    const size_t end = z->file.count, count = (size_t)z->count;
    if (wide) {
        put(&z->file, "PK\6\6", 4);
        put_little(&z->file, 44, 8), put_little(&z->file, 45 | 45 << 16, 4), put_little(&z->file, 0, 8);
        put_little(&z->file, count, 8), put_little(&z->file, count, 8), put_little(&z->file, end - z->directory, 8);
        put_little(&z->file, z->directory, 8);
        put(&z->file, "PK\6\7", 4), put_little(&z->file, 0, 4);
        put_little(&z->file, end, 8), put_little(&z->file, 1, 4);
    }
    put(&z->file, "PK\5\6", 4), put_little(&z->file, 0, 4);
    put_little(&z->file, wide ? 0xFFFF : count, 2), put_little(&z->file, wide ? 0xFFFF : count, 2);
    put_little(&z->file, wide ? 0xFFFFFFFF : end - z->directory, 4);
    put_little(&z->file, wide ? 0xFFFFFFFF : z->directory, 4), put_little(&z->file, 0, 2);
}

/* An array: its header, and what follows it. */
static void array(bytes *b, const char *descr, const char *shape)
{
    char header[128];
    b->count = 0;
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
    put(b, "\x93NUMPY\1\0", 8);
    put_little(b, strlen(header), 2);
    put_text(b, "%s", header);
}

static void add_matrix(archive *z, const char *name, int64_t rows, int64_t cols, fs_dtype dtype)
{
    static const char *const descr[] = {"", "<f4", "<f8", "<f2"};
    char shape[64];
    bytes b;
    snprintf(shape, sizeof shape, "(%d, %d)", (int)rows, (int)cols);
    array(&b, descr[dtype], shape);
    for (int64_t p = 0; p < rows * cols; p++) put_double(&b, element(p / cols, p % cols), dtype);
    add(z, name, &b);
}

static void add_numbers(archive *z, const char *name, const char *descr, int count, const int64_t *numbers)
{
    char shape[64];
    bytes b;
    snprintf(shape, sizeof shape, "(%d,)", count);
    array(&b, descr, shape);
    for (int i = 0; i < count; i++) (descr[0] == '>' ? put_big : put_little)(&b, (uint64_t)numbers[i], descr[2] - '0');
    add(z, name, &b);
}

/* A sparse matrix as SciPy saves it, in these arrays of up to three numbers each.
 *
 *     0  5  0
 *     0  0  0
 *     7  0 -9     */
typedef struct sparse_arrays {
    const char *format, *first, *second; /* first: indices or row; second: indptr or col */
    int64_t shape[2], a[8], b[8], data[8];
    int a_count, b_count, data_count;
} sparse_arrays;
static const sparse_arrays csr = {"csr", "indices.npy", "indptr.npy", {3, 3}, {1, 0, 2}, {0, 1, 1, 3}, {5, 7, -9}, 3, 4,
                                  3};
static const sparse_arrays csc = {"csc", "indices.npy", "indptr.npy", {3, 3}, {2, 0, 2}, {0, 1, 2, 3}, {7, 5, -9}, 3, 4,
                                  3};
static const sparse_arrays coo = {"coo", "row.npy", "col.npy", {3, 3}, {2, 0, 2}, {2, 1, 0}, {-9, 5, 7}, 3, 3, 3};
static const double sparse_dense[] = {0, 5, 0, 0, 0, 0, 7, 0, -9};

static void add_sparse(archive *z, const sparse_arrays *s, const char *index, const char *value)
{
    bytes b;
    add_numbers(z, s->first, index, s->a_count, s->a);
    add_numbers(z, s->second, index, s->b_count, s->b);
    array(&b, "|S3", "()");
    put_text(&b, "%s", s->format);
    add(z, "format.npy", &b);
    add_numbers(z, "shape.npy", "<i8", 2, s->shape);
    add_numbers(z, "data.npy", value, s->data_count, s->data);
}

/* properties ------------------------------------------------------------------------------------------------------- */

static void arrays_are_read_stored_and_deflated(void **state)
{
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_F16; dtype++)
        for (int way = 0; way < 8; way++)
            for (int locate = 0; locate <= 2; locate++) {
                archive z = {.zip64 = way & 1, .method = way & 2 ? 8 : 0};
                const file_options options = {.locate = locate};
                add_matrix(&z, "arr_0.npy", 40, 9, (fs_dtype)dtype);
                finish(&z, way & 4);
                save(&z.file, "A.npz");
                file_matrix file = opened("A.npz", &options);
                assert_true(file.format == FILE_NPZ && file.whole == (locate == 2));
                if (locate < 2) expect_dense(&file, 40, 9, (fs_dtype)dtype);
                else assert_true(file.dense.rows == 40 && file.dense.cols == 9 && !file.dense.data);
                file_close(&file);
            }
}

static void list_one(void *user, const file_tensor *tensor)
{
    char *text = user;
    const size_t at = strlen(text);
    snprintf(text + at, 256 - at, "%s %s %d;", tensor->name, tensor->dtype, tensor->dimensions);
}

static void one_of_several_is_read_by_its_name(void **state)
{
    char text[256] = "";
    const file_options all = {.list = list_one, .describe = 1, .user = text}, w = {.tensor = "w"},
                       none = {.tensor = "x"};
    const int64_t numbers[] = {1, 2};
    archive z = {.method = 8};
    bytes readme = {.count = 0};
    (void)state;
    put_text(&readme, "not an array");
    add_numbers(&z, "v.npy", "<i4", 2, numbers);
    add(&z, "README", &readme);
    add_matrix(&z, "w.npy", 5, 3, FS_F64);
    finish(&z, 0);
    save(&z.file, "A.npz");
    file_matrix file = opened("A.npz", &w);
    expect_dense(&file, 5, 3, FS_F64);
    file_close(&file);
    REFUSED("A.npz", NULL, "A.npz: the archive holds 2 arrays; choose one with --tensor: 'v', 'w'");
    REFUSED("A.npz", &none, "A.npz: there is no array 'x'; the archive holds 2: 'v', 'w'");
    file = opened("A.npz", &all);
    assert_true(!strcmp(file.why, "the archive holds 2 arrays") && !file.dense.data);
    assert_string_equal(text, "v <i4 1;w <f8 2;");
    file_close(&file);
}

static void sparse_matrices_become_csr(void **state)
{
    static const sparse_arrays *const formats[] = {&csr, &csc, &coo};
    static const char *const index[] = {"<i4", "<i8", ">i4", "<u2"}, *const value[] = {"<i2", "|i1", ">i8", "<i4"};
    (void)state;
    for (int format = 0; format < 3; format++)
        for (int type = 0; type < 4; type++)
            for (int locate = 0; locate <= 2; locate++) {
                const file_options options = {.locate = locate};
                archive z = {.zip64 = 1, .method = type % 2 ? 8 : 0};
                add_sparse(&z, formats[format], index[type], value[type]);
                finish(&z, 0);
                save(&z.file, "A.npz");
                file_matrix file = opened("A.npz", &options);
                if (locate < 2) expect_sparse(&file, 3, 3, sparse_dense);
                else assert_true(file.is_sparse && file.whole && file.sparse.rows == 3 && !file.sparse.ptr);
                file_close(&file);
            }
    archive z = {.method = 0};
    add_sparse(&z, &csr, "<i4", "<i2");
    finish(&z, 0);
    save(&z.file, "A.npz");
    file_matrix file = opened("A.npz", (&(file_options){.tensor = "data"})); /* or one of its arrays */
    assert_true(!file.is_sparse && file.dense.rows == 3 && ((float *)file.dense.data)[2] == -9);
    file_close(&file);
}

/* what is wrong ---------------------------------------------------------------------------------------------- */

static void wrong_sparse_matrices_are_refused(void **state)
{
    static const struct {
        const sparse_arrays *from;
        int field, at;
        int64_t value;
        const char *word;
    } cases[] = {
        {&csr, 'a', 0, 3, "entry 0 is at (0, 3), outside the 3 x 3 matrix"},
        {&csr, 'a', 1, -1, "entry 1 is at (2, -1), outside"},
        {&csc, 'a', 2, 9, "entry 2 is at (9, 2), outside"},
        {&coo, 'a', 0, 3, "entry 0 is at (3, 2), outside"},
        {&coo, 'b', 2, -5, "entry 2 is at (2, -5), outside"},
        {&csr, 'b', 0, 1, "indptr goes from 1 to 3, but there are 3 entries"},
        {&csr, 'b', 3, 2, "indptr goes from 0 to 2, but there are 3 entries; save the matrix after A.prune()"},
        {&csr, 'b', 1, 2, "indptr goes from 2 to 1 at 1; it must not fall"},
        {&csr, 'b', 1, 99, "indptr goes from 0 to 99 at 0"},
        {&csr, 'b', 2, -1, "indptr goes from 1 to -1 at 1"},
        {&csr, 's', 0, 4, "indptr has 4 numbers, but a matrix of 4 x 3 in the format 'csr' needs 5"},
        {&csr, 's', 0, 0, "size 0 in dimension 1: there is nothing to read"},
        {&csr, 's', 1, -3, "size -3 in dimension 2"},
        {&coo, 's', 0, (int64_t)1 << 40, "1099511627776 rows and only 3 entries"},
        {&csc, 's', 0, INT64_MAX, "9223372036854775807 rows and only 3 entries"},
        {&csr, 'n', 0, 2, "A.npz: indices.npy: it must have 3 elements, but has 2"},
        {&coo, 'n', 1, 4, "A.npz: col.npy: it must have 3 elements, but has 4"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sparse_arrays s = *cases[i].from;
        archive z = {.zip64 = 1};
        if (cases[i].field == 'n') *(cases[i].at ? &s.b_count : &s.a_count) = (int)cases[i].value;
        else (cases[i].field == 'a' ? s.a : cases[i].field == 'b' ? s.b : s.shape)[cases[i].at] = cases[i].value;
        add_sparse(&z, &s, "<i8", "<i2");
        finish(&z, 0);
        save(&z.file, "A.npz");
        REFUSED("A.npz", NULL, cases[i].word);
    }
    sparse_arrays s = csr;
    for (int i = 0; i < 2; i++) {
        archive z = {.method = 8};
        s.format = i ? "bsr" : "csr";
        add_sparse(&z, &s, i ? "<i4" : "<f4", "<i2");
        finish(&z, 0);
        save(&z.file, "A.npz");
        REFUSED("A.npz", NULL, i ? "format 'bsr' is not read; save A.tocsr()" : "indptr.npy: it holds float32");
    }
    file_matrix file = opened("A.npz", (&(file_options){.describe = 1}));
    assert_non_null(strstr(file.why, "A.tocsr()"));
    assert_string_equal(file.stored, "bsr, int16");
    assert_true(file.has_shape && file.shape[0] == 3 && file.shape[1] == 3);
    file_close(&file);
}

/* Whatever bit of an archive is wrong, it is refused, or what is read is what was saved: names and times of day have
 * bits that nothing depends on. */
static void no_bit_can_be_wrong_unseen(void **state)
{
    (void)state;
    for (int method = 0; method <= 8; method += 8) {
        archive z = {.method = method, .zip64 = 1};
        add_sparse(&z, &csr, "<i4", "<i2");
        finish(&z, 0);
        int opened_anyway = 0;
        for (size_t i = 0; i < 8 * z.file.count; i += 7) {
            file_matrix file;
            z.file.at[i / 8] ^= (unsigned char)(1 << i % 8);
            save(&z.file, "A.npz");
            if (!file_open("A.npz", NULL, &file)) {
                expect_sparse(&file, 3, 3, sparse_dense);
                file_close(&file);
                opened_anyway++;
            }
            z.file.at[i / 8] ^= (unsigned char)(1 << i % 8);
        }
        assert_true(opened_anyway < (int)(8 * z.file.count / 7 / 2));
        refused_wherever_cut(&z.file, "A.npz", NULL);
    }
}

static void damaged_and_other_archives_are_refused(void **state)
{
    static const struct {
        size_t at;
        int directory;
        const char *bytes;
        size_t count;
        const char *word;
    } cases[] = {
        {0, 1, "PK\1\3", 4, "an entry of its directory is missing"},
        {8, 1, "\1\0", 2, "'arr_0.npy' is encrypted; save the archive without a password"},
        {10, 1, "\14\0", 2, "'arr_0.npy' is compressed by method 12; deflate (8) and none (0) are read"},
        {16, 1, "\0\0\0\0", 4, "a member's header is not what its directory says"},
        {24, 1, "\xFE\xFF\xFF\x7F", 4, "should have 2147483646 bytes, but"},
        {28, 1, "\xFF\xFF", 2, "an entry of its directory is cut"},
        {42, 1, "\xFF\0\0\0", 4, "a member"},
        {46, 1, "\0", 1, "the name of a member has a byte 0"},
        {46, 1, "b", 1, "a member's header is not what its directory says"},
        {18, 0, "\1\0\0\0", 4, "a member's header is not what its directory says"},
        {28, 0, "\xFF\xFF", 2, "a member is not where its directory says"},
        {30, 0, "x", 1, "a member's header is not what its directory says"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        archive z = {.method = 8};
        add_matrix(&z, "arr_0.npy", 40, 9, FS_F32);
        finish(&z, 0);
        memcpy(z.file.at + cases[i].at + (cases[i].directory ? z.directory : 0), cases[i].bytes, cases[i].count);
        save(&z.file, "A.npz");
        REFUSED("A.npz", NULL, cases[i].word);
    }
    archive z = {.method = 0};
    add_matrix(&z, "arr_0.npy", 4, 2, FS_F32);
    add_matrix(&z, "arr_0.npy", 4, 2, FS_F32);
    finish(&z, 0);
    save(&z.file, "A.npz");
    REFUSED("A.npz", NULL, "'arr_0.npy' occurs twice");
    z = (archive){.method = 0};
    finish(&z, 0);
    save(&z.file, "A.npz");
    REFUSED("A.npz", NULL, "a zip archive without arrays");
    z = (archive){.method = 0};
    add_matrix(&z, "arr_0.npy", 4, 2, FS_F32);
    z.file.at[z.file.count - 1] ^= 1; /* an element */
    finish(&z, 0);
    save(&z.file, "A.npz");
    REFUSED("A.npz", NULL, "A.npz: arr_0.npy: its bytes differ from those that were saved (CRC-32");
    z = (archive){.flags = 8, .method = 8}; /* written to a pipe: the sizes follow */
    add_matrix(&z, "arr_0.npy", 4, 2, FS_F32);
    finish(&z, 0);
    save(&z.file, "A.npz");
    file_matrix file = opened("A.npz", NULL);
    expect_dense(&file, 4, 2, FS_F32);
    file_close(&file);
}

static void memory_that_runs_out_is_an_error(void **state)
{
    archive z = {.method = 8};
    fs_result result = FS_EFILE;
    (void)state;
    add_sparse(&z, &csr, "<i4", "<i2");
    finish(&z, 0);
    save(&z.file, "A.npz");
    for (int times = 0; result; times++) {
        file_matrix file;
        left = times;
        result = file_open("A.npz", NULL, &file);
        left = -1;
        if (result) {
            assert_int_equal(result, FS_ENOMEM);
            assert_non_null(strstr(fs_error_message(), "memory"));
        } else {
            expect_sparse(&file, 3, 3, sparse_dense);
            assert_true(times > 20); /* 5 members, read by 8 streams */
            file_close(&file);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_read_stored_and_deflated),
        cmocka_unit_test(one_of_several_is_read_by_its_name),
        cmocka_unit_test(sparse_matrices_become_csr),
        cmocka_unit_test(wrong_sparse_matrices_are_refused),
        cmocka_unit_test(no_bit_can_be_wrong_unseen),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
        cmocka_unit_test(damaged_and_other_archives_are_refused),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
