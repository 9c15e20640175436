/* npy.c - npy files: what NumPy may write is read as it is; what it cannot have written is refused. */
#include "support.h"

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
    REFUSED("A.npy", NULL, "A.npy: the header says 4 x 2 float32, which needs 32 bytes, but 31 follow it");
    put(&b, "x", 1);
    save(&b, "A.npy");
    REFUSED("A.npy", NULL, "A.npy: the header says 4 x 2 float32, which needs 32 bytes, but 33 follow it");
}

/* The header is right but for what the sentence says. */
static void other_arrays_and_wrong_headers_are_refused(void **state)
{
    static const struct { const char *header, *word; } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2)}", "big-endian ('>f4'); save it with astype('<f4')"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 2)}", "Python objects"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 2)}", "structured"},
        {"{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (2, 2)}", "structured"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2)}", "type '<i4'"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 2)}", "type '<c8'"},
        {"{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (2, 2)}", "type '\\x1b[2J'"},
        {"{'descr': '', 'fortran_order': False, 'shape': (2, 2)}", "type ''"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "0 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4)}", "size 0 in dimension 1"},
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
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)", "must be ',' or '}'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2", "must be ',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}", "must be ',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [2, 2]}", "must be '('"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, , 2)}", "must be a size"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2.0)}", "must be ',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 2)}", "True or False"},
        {"{'descr': '<f4', 'fortran_order': F", "True or False"},
        {"{'descr': '<f4', 'shape': (2, 2)}", "does not say 'fortran_order'"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}", "each of them once"},
        {"{'descr': '<f4', 'other': 1, 'fortran_order': False, 'shape': (2, 2)}", "each of them once"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} # more", "must be the last"},
        {"{'descr' '<f4'}", "must be ':'"},
        {"{'descr': '<f4}", "a short string"},
        {"{descr: '<f4'}", "must be a string"},
        {"", "must be '{'"},
        {"{", "must be a string"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,"
         " 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4)}", "more than 32 dimensions"},
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

static void lengths_and_versions_that_cannot_be_are_refused(void **state)
{
    const file_options npy = {.format = FILE_NPY};
    (void)state;
    bytes b = {.count = 0};
    put_header(&b, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}");
    put_elements(&b, 2, 2, 0, FS_F32);
    b.at[11] = 0xFF;
    save(&b, "A.npy");
    REFUSED("A.npy", NULL, "the header says it has 4278190137 bytes, but 73 follow");
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
        cmocka_unit_test(lengths_and_versions_that_cannot_be_are_refused),
        cmocka_unit_test(what_is_not_a_file_with_a_matrix_is_refused),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
