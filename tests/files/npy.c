/* npy.c - npy files: every file that NumPy may write is read; any other is refused. */
#include "base/dtype.h"
#include "tests/support/files.h"

/* The start of a file: magic, version, length, header. */
static void put_header(bytes *b, int version, const char *header)
{
    put(b, "\x93NUMPY", 6);
    put_little(b, (uint64_t)version, 2);
    put_little(b, strlen(header), version == 1 ? 2 : 4);
    put_text(b, "%s", header);
}

static void put_elements(bytes *b, int64_t rows, int64_t cols, int by_columns, fs_dtype dtype)
{
    for (int64_t p = 0; p < rows * cols; p++)
        put_double(b, by_columns ? element(p % rows, p / rows) : element(p / cols, p % cols), dtype);
}

static uint64_t bits_of(const unsigned char *at, size_t size)
{
    uint64_t bits = 0;
    for (size_t i = size; i-- > 0;) bits = bits << 8 | at[i];
    return bits;
}

/* Lengths of headers make all alignments of the elements. */
static void every_type_order_version_and_alignment_is_read(void **state)
{
    static const char *const descr[] = {"", "<f4", "<f8", "<f2"};
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_F16; dtype++)
        for (int version = 1; version <= 3; version++)
            for (int by_columns = 0; by_columns < 2; by_columns++)
                for (int spaces = 0; spaces < 9; spaces++) {
                    bytes b = {.count = 0};
                    char header[128];
                    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (5, 3), }%*s\n",
                             descr[dtype], by_columns ? "True" : "False", spaces, "");
                    put_header(&b, version, header);
                    put_elements(&b, 5, 3, by_columns, (fs_dtype)dtype);
                    save(&b, "A.npy");
                    file_matrix file = opened("A.npy", NULL);
                    assert_int_equal(file.format, FILE_NPY);
                    expect_dense(&file, 5, 3, (fs_dtype)dtype);
                    file_close(&file);
                }
}

static void headers_may_be_written_in_other_ways(void **state)
{
    static const char *const headers[] = {
        "{\"shape\":(4,2),\"fortran_order\":False,\"descr\":\"<f4\"}",
        "{'shape': (4L, 2L), 'descr': '<f4', 'fortran_order': False}\n",
        "  {  'descr' :'<f4','fortran_order' : False , 'shape' : ( 4 , 2 , ) , } \n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1, 2)}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        bytes b = {.count = 0};
        put_header(&b, 1, headers[i]);
        put_elements(&b, 4, 2, 0, FS_F32);
        save(&b, "A.npy");
        file_matrix file = opened("A.npy", NULL);
        expect_dense(&file, 4, 2, FS_F32);
        assert_string_equal(file.stored, "float32");
        file_close(&file);
    }
}

static void one_dimension_is_a_column(void **state)
{
    (void)state;
    bytes b = {.count = 0};
    put_header(&b, 1, "{'descr': '<f8', 'fortran_order': True, 'shape': (6,), }\n");
    put_elements(&b, 6, 1, 0, FS_F64);
    save(&b, "A.npy");
    file_matrix file = opened("A.npy", NULL);
    expect_dense(&file, 6, 1, FS_F64);
    file_close(&file);
}

static void aligned_elements_are_not_copied(void **state)
{
    (void)state;
    bytes b = {.count = 0};
    put_header(&b, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}    \n");
    assert_int_equal(b.count % 8, 0);
    put_elements(&b, 2, 2, 0, FS_F64);
    save(&b, "A.npy");
    file_matrix file = opened("A.npy", NULL);
    assert_ptr_equal(file.dense.data, (char *)file.map + b.count - 32);
    file_close(&file);
}

static void a_file_that_is_cut_is_refused_with_the_numbers(void **state)
{
    (void)state;
    bytes b = {.count = 0};
    put_header(&b, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }\n");
    put_elements(&b, 4, 2, 0, FS_F32);
    refused_wherever_cut(&b, "A.npy", NULL);
    REFUSED("A.npy", NULL, "A.npy: the header gives 4 x 2 float32, which needs 32 bytes, but 31 follow it");
    put(&b, "x", 1);
    save(&b, "A.npy");
    REFUSED("A.npy", NULL, "A.npy: the header gives 4 x 2 float32, which needs 32 bytes, but 33 follow it");
}

/* The header is right but for what the error message names. */
static void other_arrays_and_wrong_headers_are_refused(void **state)
{
    static const struct {
        const char *header, *word;
    } cases[] = {
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 2)}", "Python objects"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 2)}", "structured"},
        {"{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (2, 2)}", "structured"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 1)}", "complex numbers are not read; save A.real"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 2)}", "complex '<c8', which needs 32 bytes, but 16"},
        {"{'descr': '<U1', 'fortran_order': False, 'shape': (2, 2)}", "it holds text; save it as numbers"},
        {"{'descr': '|S4', 'fortran_order': False, 'shape': (2, 2)}", "it holds text; save it as numbers"},
        {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (2,)}", "it holds times; save them"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "type '<f16', which is not read; save it as"},
        {"{'descr': '|f4', 'fortran_order': False, 'shape': (2, 2)}", "type '|f4'"},
        {"{'descr': '<i3', 'fortran_order': False, 'shape': (2, 2)}", "type '<i3'"},
        {"{'descr': '<i', 'fortran_order': False, 'shape': (2, 2)}", "type '<i'"},
        {"{'descr': '<i4x', 'fortran_order': False, 'shape': (2, 2)}", "type '<i4x'"},
        {"{'descr': [('a', '<f4'), 'fortran_order': False, 'shape': (2, 2)}", "expected the end of the list"},
        {"{'descr': <f4, 'fortran_order': False, 'shape': (2, 2)}", "expected a string"},
        {"{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (2, 2)}", "type '\\x1b[2J'"},
        {"{'descr': '', 'fortran_order': False, 'shape': (2, 2)}", "type ''"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "one float32, which needs 4 bytes, but 16 follow it"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4)}", "0 x 4 float32, which needs 0 bytes, but 16"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -2)}", "negative size in dimension 2"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1, 2)}", "3 dimensions in Fortran order"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
         "more bytes than can be counted"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952,)}", "more bytes than can be counted"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693951,)}",
         "needs 9223372036854775804 bytes, but 16"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", "more bytes than can be counted"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "more than 63 bits"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (92233720368547758079,)}", "more than 63 bits"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551618, 2)}", "more than 63 bits"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)", "expected ',' or '}'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2", "expected ',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}", "expected ',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [2, 2]}", "expected '('"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, , 2)}", "expected a size"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2.0)}", "expected ',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 2)}", "True or False"},
        {"{'descr': '<f4', 'fortran_order': F", "True or False"},
        {"{'descr': '<f4', 'shape': (2, 2)}", "has no 'fortran_order'"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}", "each of them once"},
        {"{'descr': '<f4', 'other': 1, 'fortran_order': False, 'shape': (2, 2)}", "each of them once"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} # more", "expected the end of the header"},
        {"{'descr' '<f4'}", "expected ':'"},
        {"{'descr': '<f4}", "a short string"},
        {"{descr: '<f4'}", "expected a string"},
        {"", "expected '{'"},
        {"{", "expected a string"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,"
         " 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4)}",
         "more than 32 dimensions"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = {.count = 0};
        put_header(&b, 1, cases[i].header);
        put_elements(&b, 2, 2, 0, FS_F32);
        save(&b, "A.npy");
        REFUSED("A.npy", NULL, cases[i].word);
    }
}

/* Every number that NumPy has and the library has a type for: as in the file, at the ends of its range and past 2^53.
 * Located, the file is the same, and a stream converts it. */
static void every_number_is_read(void **state)
{
    static const struct {
        const char *descr;
        int64_t value[4];
        const char *name;
        fs_dtype dtype;
    } cases[] = {{"|b1", {0, 1, 1, 0}, "bool", FS_F32},
                 {"|i1", {-128, 127, 0, -1}, "int8", FS_F32},
                 {"|u1", {0, 255, 128, 1}, "uint8", FS_F32},
                 {"<i2", {-32768, 32767, 258, -1}, "int16", FS_F32},
                 {">u2", {0, 65535, 258, 1}, "uint16, big-endian", FS_F32},
                 {">i4", {INT32_MIN, INT32_MAX, 16909060, -1}, "int32, big-endian", FS_F64},
                 {"<u4", {0, UINT32_MAX, 16909060, 1}, "uint32", FS_F64},
                 {"<i8", {INT64_MIN, INT64_MAX, 9007199254740993, -9007199254740995}, "int64", FS_F64},
                 {">i8", {1, -2, 72623859790382856, 0}, "int64, big-endian", FS_F64},
                 {">u8", {-1, 0, INT64_MAX, 1}, "uint64, big-endian", FS_F64}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int locate = 0; locate < 2; locate++) {
            const file_options options = {.locate = locate};
            const int size = cases[i].descr[2] - '0', is_big = cases[i].descr[0] == '>';
            const int is_unsigned = cases[i].descr[1] == 'u';
            bytes b = {.count = 0};
            char header[128];
            snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': True, 'shape': (2, 2), }\n",
                     cases[i].descr);
            put_header(&b, 1, header);
            for (int j = 0; j < 4; j++) (is_big ? put_big : put_little)(&b, (uint64_t)cases[i].value[j], size);
            save(&b, "A.npy");
            file_matrix file = opened("A.npy", &options);
            assert_string_equal(file.stored, cases[i].name);
            assert_int_equal(file.dense.dtype, cases[i].dtype);
            assert_int_equal(file.dense.row_stride, 1);
            assert_int_equal(file.start, b.count - 4 * (size_t)size);
            for (int j = 0; j < 4 && !locate; j++) {
                const double wanted = is_unsigned ? (double)(uint64_t)cases[i].value[j] : (double)cases[i].value[j];
                assert_true(fsi_load(file.dense.data, file.dense.dtype, j) == wanted);
            }
            file_close(&file);
            save_some(&b, "A.npy", b.count - 1);
            REFUSED("A.npy", &options, "the header gives 2 x 2", cases[i].name);
        }
}

static void big_endian_floats_are_read(void **state)
{
    static const char *const descr[] = {"", ">f4", ">f8", ">f2"};
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_F16; dtype++) {
        bytes b = {.count = 0}, little = {.count = 0};
        char header[128];
        const size_t size = (size_t)fsi_dtype_size((fs_dtype)dtype);
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (5, 3), }\n", descr[dtype]);
        put_header(&b, 1, header);
        put_elements(&little, 5, 3, 0, (fs_dtype)dtype);
        for (size_t i = 0; i < 15; i++) put_big(&b, bits_of(little.at + i * size, size), (int)size);
        save(&b, "A.npy");
        file_matrix file = opened("A.npy", NULL);
        expect_dense(&file, 5, 3, (fs_dtype)dtype);
        file_close(&file);
    }
}

/* Where a file may be described, unreadable contents are not an error; a malformed file still is. */
static void what_cannot_be_read_is_described(void **state)
{
    static const struct {
        const char *descr, *shape;
        int64_t bytes;
        const char *stored, *why;
    } cases[] = {
        {"'<c8'", "(2, 3, 4)", 192, "complex '<c8'", "complex"},
        {"'<U5'", "()", 20, "text '<U5'", "text"},
        {"[('x', '<f4'), ('y', '>i8', (2,))]", "(2,)", 40, "records '[('x', '<f4'), ('y', '>i8', (2,)'", "A['NAME']"},
        {"'|O'", "(7,)", 3, "objects '|O'", "Python objects"},
        {"'<f4'", "()", 4, "float32", "0 dimensions"},
        {"'<i4'", "(0, 5)", 0, "int32", "nothing to read"}};
    const file_options describe = {.describe = 1};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = {.count = 0};
        char header[160];
        snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': %s, }\n", cases[i].descr,
                 cases[i].shape);
        put_header(&b, 1, header);
        for (int64_t j = 0; j < cases[i].bytes; j++) put_little(&b, 1, 1);
        save(&b, "A.npy");
        REFUSED("A.npy", NULL, cases[i].why);
        file_matrix file = opened("A.npy", &describe);
        assert_non_null(strstr(file.why, cases[i].why));
        assert_string_equal(file.stored, cases[i].stored);
        assert_null(file.dense.data);
        assert_true(file.has_shape);
        if (i == 0) assert_true(file.dimensions == 3 && file.shape[0] == 2 && file.shape[2] == 4);
        file_close(&file);
        if (!strchr("'", cases[i].descr[0]) || cases[i].descr[2] == 'O') continue; /* their sizes are not known */
        put(&b, "x", 1);
        save(&b, "A.npy");
        REFUSED("A.npy", &describe, "follow it");
    }
}

static void lengths_and_versions_that_cannot_be_are_refused(void **state)
{
    const file_options npy = {.format = FILE_NPY};
    (void)state;
    bytes b = {.count = 0};
    put_header(&b, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}");
    put_elements(&b, 2, 2, 0, FS_F32);
    b.at[11] = 0xFF;
    save(&b, "A.npy");
    REFUSED("A.npy", NULL, "the header gives its length as 4278190137 bytes, but 73 follow");
    b.at[6] = 4;
    save(&b, "A.npy");
    REFUSED("A.npy", NULL, "version 4.0");
    b.at[0] = 'x';
    save(&b, "A.npy");
    REFUSED("A.npy", &npy, "not an npy file");

    static bytes large;
    large.count = 0;
    put(&large, "\x93NUMPY\2\0", 8);
    put_little(&large, 65536, 4);
    save(&large, "A.npy");
    FILE *file = fopen("A.npy", "ab");
    assert_non_null(file);
    for (int i = 0; i < 70000; i++) fputc(' ', file);
    fclose(file);
    REFUSED("A.npy", NULL, "65536 bytes; at most 65535");
}

static void what_is_not_a_file_with_a_matrix_is_refused(void **state)
{
    (void)state;
    bytes b = {.count = 0};
    REFUSED("absent.npy", NULL, "cannot be opened");
    REFUSED(".", NULL, "not a file");
    REFUSED("/dev/zero", NULL, "not a file");
    save(&b, "empty");
    REFUSED("empty", NULL, "the file is empty");
    put_text(&b, "\x1b]0;a,b\n1,2\n");
    save(&b, "A.csv");
    REFUSED("A.csv", NULL, "\\x1b]0;a,b\\x0a1,2", "--shape and --dtype");
    b.count = 0;
    put_header(&b, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}");
    put_elements(&b, 2, 2, 0, FS_F32);
    save_gzip(&b, "A.npy.gz");
    REFUSED("A.npy.gz", NULL, "npy inside gzip", "gunzip");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_order_version_and_alignment_is_read),
        cmocka_unit_test(headers_may_be_written_in_other_ways),
        cmocka_unit_test(one_dimension_is_a_column),
        cmocka_unit_test(aligned_elements_are_not_copied),
        cmocka_unit_test(a_file_that_is_cut_is_refused_with_the_numbers),
        cmocka_unit_test(other_arrays_and_wrong_headers_are_refused),
        cmocka_unit_test(every_number_is_read),
        cmocka_unit_test(big_endian_floats_are_read),
        cmocka_unit_test(what_cannot_be_read_is_described),
        cmocka_unit_test(lengths_and_versions_that_cannot_be_are_refused),
        cmocka_unit_test(what_is_not_a_file_with_a_matrix_is_refused),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
