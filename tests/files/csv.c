/* csv.c - tables of numbers as text: what spreadsheets, NumPy, pandas and R write is read; what is not a number is
 * refused with its line and column. */
#include "tests/support/files.h"

#include "base/dtype.h"

static void write_text(const char *path, int gzip, const char *text)
{
    bytes b = {.count = 0};
    put_text(&b, "%s", text);
    (gzip ? save_gzip : save)(&b, path);
}

static void every_separator_header_and_end_of_line_is_read(void **state)
{
    static const struct {
        const char *text, *stored;
    } cases[] = {{"1,2,3\n4,5,6\n", "numbers, commas"},
                 {"1,2,3\n4,5,6", "numbers, commas"},
                 {"1,2,3\r\n4,5,6\r\n\r\n", "numbers, commas"},
                 {"a,b,c\n1,2,3\n4,5,6\n", "numbers, commas, header line"},
                 {"\"a, b\",\"b \"\"c\"\"\",\n1,2,3\n4,5,6\n\n\n", "numbers, commas, header line"},
                 {"\"\",\"V1\",\"V2\"\n\"1\",2,3\n\"4\",5,6\n", "numbers, commas, header line"},
                 {" 1 , 2\t, 3 \n\t4,5 ,6\n", "numbers, commas"},
                 {"1;2;3\n4;5;6\n", "numbers, semicolons"},
                 {"x, mean;y;z\n1;2;3\n4;5;6\n", "numbers, semicolons, header line"},
                 {"1\t2\t3\n4\t5\t6\n", "numbers, tabs"},
                 {"x y\ty\tz\n1\t 2\t3\n4\t5\t6\n", "numbers, tabs, header line"},
                 {"1 2 3\n4 5 6\n", "numbers, spaces"},
                 {"  1   2   3  \n4\t 5 6", "numbers, spaces"},
                 {"x y z\n1 2 3\n4 5 6\n", "numbers, spaces, header line"},
                 {"# a comment\n\n1 2 3\n  # another\n4 5 6\n# and one\n", "numbers, spaces"},
                 {"\xEF\xBB\xBF"
                  "1,2,3\n4,5,6\n",
                  "numbers, commas"},
                 {"\xEF\xBB\xBFgr\xC3\xB6\xC3\x9F"
                  "e,b,c\n1,2,3\n4,5,6\n",
                  "numbers, commas, header line"},
                 {"1.0,+2,3e0\n.4e1,5.,600e-2\n", "numbers, commas"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int gzip = 0; gzip < 2; gzip++)
            for (int locate = 0; locate <= 2; locate++) {
                const file_options options = {.locate = locate};
                write_text("A.csv", gzip, cases[i].text);
                file_matrix file = opened("A.csv", &options);
                assert_string_equal(file.stored, cases[i].stored);
                assert_true(file.format == FILE_CSV && file.gzip == gzip && !file.is_sparse);
                assert_true(file.dense.rows == 2 && file.dense.cols == 3 && file.dense.dtype == FS_F64);
                assert_true(file.dense.col_stride == 1 && file.whole == (locate == 2));
                assert_true((file.dense.data == NULL) == (locate == 2));
                for (int p = 0; p < 6 && locate < 2; p++) assert_true(((double *)file.dense.data)[p] == p + 1);
                file_close(&file);
            }
}

static void a_single_column_may_have_a_name_with_spaces(void **state)
{
    static const char *const texts[] = {"1\n2\n3\n", "height in cm\n1\n2\n3", "\"height, cm\"\n1\n2\n3\n",
                                        "# x\n 1\n2 \n3\n"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_text("A.txt", 0, texts[i]);
        file_matrix file = opened("A.txt", NULL);
        assert_true(file.dense.rows == 3 && file.dense.cols == 1);
        for (int p = 0; p < 3; p++) assert_true(((double *)file.dense.data)[p] == p + 1);
        file_close(&file);
    }
}

static void special_numbers_are_read(void **state)
{
    (void)state;
    write_text("A.csv", 0, "nan,-inf,Infinity,0.1,1e-400\n");
    file_matrix file = opened("A.csv", NULL);
    const double *x = file.dense.data;
    assert_true(x[0] != x[0] && x[1] < -1e308 && x[2] > 1e308 && x[3] == 0.1 && x[4] == 0);
    file_close(&file);
}

/* Lines and tables that are longer than any buffer at the start. */
static void long_tables_are_read(void **state)
{
    enum { ROWS = 70, COLS = 30011 }; /* lines of more than 64 KiB */
    (void)state;
    FILE *out = fopen("A.csv", "wb");
    assert_non_null(out);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLS; j++) fprintf(out, "%.1f%c", element(i, j), j + 1 < COLS ? ',' : '\n');
    assert_int_equal(fclose(out), 0);
    file_matrix file = opened("A.csv", NULL);
    expect_dense(&file, ROWS, COLS, FS_F64);
    file_close(&file);
}

static void what_is_wrong_is_named_by_line_and_column(void **state)
{
#define GUESSED "this is not the beginning of an npy, "
    static const struct {
        const char *text, *first, *second;
    } cases[] = {
        {"hello\n", GUESSED, "it has no row of numbers; for a raw file give --shape and --dtype"},
        {"{}", GUESSED, "no row of numbers"},
        {"# only\n", GUESSED, "no row of numbers"},
        {"\n\n", GUESSED, "no row of numbers"},
        {"a,b\n", GUESSED, "no row of numbers"},
        {"a,b\nc,d\n", GUESSED, "line 2, column 1: 'c' is not a number"},
        {"1,x,3\n4,5,6\n", GUESSED, "line 1 has 3 fields, of which 2 are numbers and column 2 is not; a row has"},
        {",0,1\n0,1,2\n", GUESSED, "line 1 has 3 fields, of which 2 are numbers and column 1 is not"},
        {"a,b\n1,2,3\n", GUESSED, "line 1 has 2 names, but line 2 has 3 numbers"},
        {"1,2,3\n4,x\xC3,6\n", "A.csv: line 2, column 2: 'x\\xc3' is not a number", ""},
        {"1,2,3\n4,,6\n", "A.csv: line 2, column 2: the field is empty; fill it in", ""},
        {"1,2,3\n4,5,\n", "A.csv: line 2, column 3: the field is empty", ""},
        {"1\t2\t3\n4\t\t6\n", "A.csv: line 2, column 2: the field is empty", ""},
        {"1\t2\n4\t\t6\n", "A.csv: line 2, column 2: the field is empty", ""},
        {"1,2,3\n# x\n4,5\n", "A.csv: line 3 has 2 numbers, but line 1 has 3", ""},
        {"a,b\n1,2\n4,5,6\n", "A.csv: line 3 has 3 numbers, but line 2 has 2", ""},
        {"1;2\n3;4,5\n", "line 2, column 2: '4,5' is not a number (a decimal comma is not read: write a point)", ""},
        {"1,2\n3,4;5\n", "line 2, column 2: '4;5' is not a number", ""},
        {"1,2\n0x3,4\n", "line 2, column 1: '0x3' is not a number", ""},
        {"1,2\n3,1e999\n", "line 2, column 2: '1e999' is not a number", ""},
        {"1,2\n3,4 5\n", "line 2, column 2: '4 5' is not a number", ""},
        {"1,2\n3,\"4\n", "line 2, column 2: '\"4' is not a number", ""},
        {"1,2\n3,\"4\"5\n", "line 2, column 2", ""},
        {"1 2\n3 4x\n", "line 2, column 2: '4x' is not a number", ""},
        {"1\n2\n\n3\n", "A.csv: line 3 is blank, but rows follow it", ""},
        {"1,2\r3,4\r", GUESSED, "line 1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int gzip = 0; gzip < 2; gzip++) {
            write_text("A.csv", gzip, cases[i].text);
            REFUSED("A.csv", NULL, cases[i].first, cases[i].second);
        }
    bytes b = {.count = 0};
    put(&b, "1,2\n3,4\0,5\n", 11);
    save(&b, "A.csv");
    REFUSED("A.csv", (&(file_options){.format = FILE_CSV}), "line 2, column 2: '4\\x00' is not a number");
    REFUSED("A.csv", NULL, "is not the beginning of an npy, npz, Matrix Market, safetensors or IDX file, nor text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_separator_header_and_end_of_line_is_read),
        cmocka_unit_test(a_single_column_may_have_a_name_with_spaces),
        cmocka_unit_test(special_numbers_are_read),
        cmocka_unit_test(long_tables_are_read),
        cmocka_unit_test(what_is_wrong_is_named_by_line_and_column),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
